# SPDX-License-Identifier: LGPL-3.0-or-later
"""What scripts do with netCDF4-python and xarray, on a path prefix given as the argument: modes
'w', 'x', 'a', 'r+' and 'r'. Prints what it reads, so that two runs can be compared."""

import os
import sys
import warnings

import netCDF4
import numpy as np
import xarray as xr

warnings.simplefilter("ignore")
prefix = sys.argv[1]


def path(name):
    return f"{prefix}/{name}.nc"


def show(*values):
    for value in values:
        if isinstance(value, np.ma.MaskedArray):
            value = value.filled(-99)
        if isinstance(value, np.ndarray):
            value = value.tolist()
        print(value)


def refused(action, *errors):
    try:
        action()
    except errors or (OSError, RuntimeError, IndexError):
        print("refused")
        return
    sys.exit("should have been refused")


def describe(name):
    with netCDF4.Dataset(path(name)) as nc:
        print(nc.data_model, list(nc.dimensions), list(nc.variables), list(nc.groups))
        for var in nc.variables.values():
            print(var.name, var.dtype, var.dimensions, var.shape,
                  {k: str(var.getncattr(k)) for k in var.ncattrs()})


def write(name, fmt):
    with netCDF4.Dataset(path(name), "w", format=fmt) as nc:
        nc.title = "a title, Grüße"
        nc.numbers = np.arange(3, dtype="i4")
        nc.createDimension("time", None)
        nc.createDimension("x", 5)
        time = nc.createVariable("time", "f8", ("time",))
        time.units = "days since 2000-01-01"
        v = nc.createVariable("v", "f4", ("time", "x"), fill_value=-1e10)
        v.valid_min = np.float32(-5)
        packed = nc.createVariable("packed", "i2", ("x",))
        packed.scale_factor, packed.add_offset = 0.5, 10.0
        nc.createVariable("scalar", "f8")[...] = 2.5
        time[:] = np.arange(4)
        v[0:4] = np.arange(20).reshape(4, 5)
        v[1, 2] = np.ma.masked
        packed[:] = [10, 10.5, 11, 11.5, 12]


def write_new_model(name):
    """What only the netCDF-4 model has."""
    with netCDF4.Dataset(path(name), "w") as nc:
        nc.createDimension("x", 6)
        nc.createDimension("u", None)
        nc.createDimension("w", None)
        for kind in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "S1"):
            var = nc.createVariable(f"v_{kind}", kind, ("x",))
            var[:] = np.frombuffer(b"abcdef", "S1") if kind == "S1" else np.arange(6)
        text = nc.createVariable("text", str, ("x",))
        text[:] = np.array(["", "ä", "long " * 100, "d", "e", "f"], dtype=object)
        nc.words = ["one", "two"]
        deep = nc.createGroup("a/b/c")
        deep.note = "deep"
        inner = deep.createVariable("both", "i8", ("u", "w"), chunksizes=(2, 3))
        inner[2, 3] = 7
        compressed = nc.createVariable("compressed", "f4", ("x",), zlib=True, complevel=1,
                                       shuffle=True)
        compressed[:] = 1.5
    with netCDF4.Dataset(path(name)) as nc:
        for var in nc.variables.values():
            show(var[:])
        show(nc["a/b/c/both"][:], nc["a/b/c"].note, nc.words)


def strided(name):
    with netCDF4.Dataset(path(name), "r+") as nc:
        v = nc["v"]
        show(v[::2, ::-1], v[1:4, [0, 2]], v[-1], v[:, 3])
        v[0:4:3, 1:5:2] = [[100, 101], [102, 103]]
        v[6] = 1  # leaves record 5 as fill values
        show(v[:], nc["time"][:])


def append(name):
    with netCDF4.Dataset(path(name), "a") as nc:
        n = len(nc.dimensions["time"])
        nc["v"][n] = np.arange(5) * 10
        nc["time"][n] = n
        nc.createVariable("late", "i4", ("x",))[:] = np.arange(5)
        nc.history = "appended"
        nc.renameVariable("scalar", "renamed")
        if nc.data_model == "NETCDF4":  # in the others it may not become longer
            nc.renameAttribute("title", "headline")
        nc.delncattr("numbers")
        nc.sync()
        show(nc["v"][n], nc["late"][:])


def netcdf4_modes():
    for fmt in ("NETCDF4", "NETCDF4_CLASSIC", "NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET",
                "NETCDF3_64BIT_DATA"):
        name = f"w_{fmt}"
        write(name, fmt)
        strided(name)
        append(name)
        describe(name)
        write(name, fmt)  # 'w' replaces
        describe(name)
    write_new_model("model")
    describe("model")
    refused(lambda: netCDF4.Dataset(path("model"), "x"))
    refused(lambda: netCDF4.Dataset(path("model"), "w", clobber=False))
    refused(lambda: netCDF4.Dataset(path("nowhere")))
    for mode in ("a", "r+"):  # which create what does not exist, in netCDF4-python
        for _ in range(2):
            with netCDF4.Dataset(path(f"made-by-{mode}"), mode) as nc:
                nc.createDimension(f"x{len(nc.dimensions)}", 1)
                show(list(nc.dimensions))
    with netCDF4.Dataset(path("model")) as nc:
        refused(lambda: nc.createDimension("new", 1))
    show(os.path.exists(path("model")), os.path.exists(path("nowhere")))


def xarray_modes():
    time = np.arange("2000-01-01", "2000-01-11", dtype="datetime64[D]").astype("datetime64[ns]")
    dataset = xr.Dataset(
        {
            "tas": (("time", "x"), np.arange(30.0).reshape(10, 3), {"units": "K"}),
            "name": (("x",), np.array(["a", "bb", "ccc"], dtype=object)),
            "flag": (("x",), np.array([True, False, True])),
        },
        coords={"time": time, "x": [10, 20, 30]},
    )
    dataset["tas"][2, 1] = np.nan
    dataset.to_netcdf(path("xr"), unlimited_dims=["time"], encoding={"tas": {"_FillValue": -1.0}})
    more = xr.Dataset({"pr": (("x",), [1.0, 2.0, 3.0])}, coords={"x": [10, 20, 30]})
    more.to_netcdf(path("xr"), mode="a")
    more.to_netcdf(path("xr"), mode="a", group="sub/group")
    with xr.open_dataset(path("xr")) as back:
        for name in dataset.variables:
            assert back[name].equals(dataset[name]), name
        show(back["tas"].isel(time=slice(1, 9, 3), x=[0, 2]).values, list(back.variables))
        show(float(back["tas"].mean()))
    with xr.open_dataset(path("xr"), group="sub/group") as back:
        show(back["pr"].values)
    with xr.open_dataset(path("xr"), engine="netcdf4", mask_and_scale=False) as back:
        show(back["tas"].values[2])
    describe("xr")


netcdf4_modes()
xarray_modes()
