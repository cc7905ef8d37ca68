# SPDX-License-Identifier: LGPL-3.0-or-later
"""Two copies of libnetcdf in one process: netCDF4-python's and the one whose path is the argument.
Both hand out the same ncids; both write and read containers at the same time."""

import ctypes
import sys

import netCDF4
import numpy as np

other = ctypes.CDLL(sys.argv[1])
other.nc_strerror.restype = other.nc_inq_libvers.restype = ctypes.c_char_p
prefix = sys.argv[2]
NC_NETCDF4, NC_WRITE, NC_DOUBLE, COUNT = 0x1000, 1, 6, 1000


def call(name, *args):
    status = getattr(other, name)(*args)
    if status:
        sys.exit(f"{name}: {other.nc_strerror(status).decode()}")


class Other:
    """The few calls that the test makes by hand."""

    def __init__(self, name, mode=None):
        self.ncid, self.varid = ctypes.c_int(), ctypes.c_int()
        path = f"{prefix}/{name}".encode()
        if mode is None:
            dimid = ctypes.c_int()
            call("nc_create", path, NC_NETCDF4, ctypes.byref(self.ncid))
            call("nc_def_dim", self.ncid, b"x", ctypes.c_size_t(COUNT), ctypes.byref(dimid))
            call("nc_def_var", self.ncid, b"v", NC_DOUBLE, 1, ctypes.byref(dimid),
                 ctypes.byref(self.varid))
            call("nc_enddef", self.ncid)
        else:
            call("nc_open", path, mode, ctypes.byref(self.ncid))

    def put(self, start, values):
        call("nc_put_vara_double", self.ncid, self.varid, ctypes.byref(ctypes.c_size_t(start)),
             ctypes.byref(ctypes.c_size_t(len(values))), values.ctypes.data_as(ctypes.c_void_p))

    def get(self):
        values = np.empty(COUNT)
        call("nc_get_var_double", self.ncid, self.varid, values.ctypes.data_as(ctypes.c_void_p))
        return values

    def close(self):
        call("nc_close", self.ncid)


def make(name):
    data = netCDF4.Dataset(f"{prefix}/{name}", "w")
    data.createDimension("x", COUNT)
    data.createVariable("v", "f8", ("x",))
    return data


theirs = Other("theirs.nc")
ours = make("ours.nc")
if ours._grpid != theirs.ncid.value:
    sys.exit(f"the copies hand out different ncids: {ours._grpid} and {theirs.ncid.value}")
for start in range(0, COUNT, 10):
    theirs.put(start, np.arange(start, start + 10, dtype="f8"))
    ours["v"][start:start + 10] = -np.arange(start, start + 10, dtype="f8")
theirs.close()
ours.close()

# Each reads what the other wrote, while both have both open.
theirs, ours = Other("ours.nc", mode=0), netCDF4.Dataset(f"{prefix}/theirs.nc", "r+")
assert (theirs.get() == -np.arange(COUNT)).all()
assert (ours["v"][:] == np.arange(COUNT)).all()
ours["v"][5] = 77
ours.close()
theirs.close()
theirs = Other("theirs.nc", mode=NC_WRITE)
assert theirs.get()[5] == 77
theirs.close()
print(f"{netCDF4.__netcdf4libversion__} and {other.nc_inq_libvers().decode().split()[0]}")
