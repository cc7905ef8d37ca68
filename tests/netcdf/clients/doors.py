# SPDX-License-Identifier: LGPL-3.0-or-later
"""doors.py JSON…: digests of one snapshot through every door, in a process with zarr-python and netCDF4.

JSON: {"name", "file", "exported", "port", "mounted"}; "mounted" may be null. Prints a line of JSON: for each door its
digest of dimensions, types, values and attributes; and two of values alone, as numbers of 64 bits, for the door
that knows fewer types."""

import hashlib
import json
import sys
import warnings

import h5py
import netCDF4
import numpy as np
import xarray as xr

import esdm

warnings.simplefilter("ignore")
RAW = {"mask_and_scale": False, "decode_times": False, "concat_characters": False, "decode_coords": False}
# What HDF5 and the netCDF library keep there for themselves.
OWN = {"DIMENSION_LIST", "REFERENCE_LIST", "CLASS", "NAME", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict",
       "_NCProperties", "DIMENSION_LABELS"}


def plain(value):
    """An attribute as Python has it: numbers, texts, and lists of several."""
    if isinstance(value, h5py.Empty):
        return ""
    if isinstance(value, (bytes, np.bytes_)):
        return value.decode("utf-8", "replace").rstrip("\0")
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        values = [plain(v) for v in value]
        return values[0] if len(values) == 1 else values
    value = value.item() if isinstance(value, np.generic) else value
    return repr(value) if isinstance(value, float) else value


def attributes(told):
    return {k: plain(v) for k, v in sorted(told.items()) if k not in OWN}


def values_of(array):
    array = np.asarray(array)
    if array.dtype == object:
        return repr([plain(v) for v in array.reshape(-1)]).encode()
    if array.dtype.kind == "S":
        return array.astype("S1").tobytes() if array.dtype.itemsize == 1 else array.tobytes()
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def digest(variables, told):
    """@param variables {name: (dimensions or None, array, attributes)}"""
    h = hashlib.sha256(repr(attributes(told)).encode())
    for name in sorted(variables):
        _, array, own = variables[name]
        array = np.asarray(array)
        h.update(repr((name, array.shape, array.dtype.kind, array.dtype.itemsize, attributes(own))).encode())
        h.update(values_of(array))
    return h.hexdigest()


def numbers(variables):
    """The values alone, for doors with other types; characters as texts."""
    h = hashlib.sha256()
    for name in sorted(variables):
        array = np.asarray(variables[name][1])
        if array.dtype.kind in "fiu":
            h.update(repr((name, array.shape)).encode() + array.astype("<f8").tobytes())
        else:
            h.update(name.encode() + array.tobytes().replace(b"\0", b""))
    return h.hexdigest()


def dimensions(variables):
    return {name: list(v[0]) for name, v in variables.items()}


def through_netcdf(path):
    with netCDF4.Dataset(path) as d:
        d.set_auto_maskandscale(False)
        d.set_auto_chartostring(False)
        return ({n: (v.dimensions, v[...], v.__dict__) for n, v in d.variables.items()}, d.__dict__)


def through_xarray(opened):
    with opened as d:
        return ({n: (v.dims, v.values, v.attrs) for n, v in d.variables.items()}, d.attrs)


def through_h5py(path):
    with h5py.File(path) as f:
        found = {}
        for name, v in f.items():
            phantom = plain(v.attrs.get("NAME", "")).startswith("This is a netCDF dimension but not a netCDF variable")
            if not phantom:
                found[name] = (None, v[...], dict(v.attrs))
        return found, dict(f.attrs)


def compare(said):
    at, name = f"http://localhost:{said['port']}", said["name"]
    doors = {
        "file": through_netcdf(said["file"]),
        "nc API": through_netcdf(f"esdm://{name}"),
        "engine": through_xarray(xr.open_dataset(f"esdm://{name}", **RAW)),
        "Zarr store": through_xarray(xr.open_zarr(esdm.zarr(name), **RAW)),
        "Zarr over HTTP": through_xarray(xr.open_zarr(f"{at}/zarr/{name}", **RAW)),
        "esdm-cp": through_netcdf(said["exported"]),
        "esdm-cp, Zarr": through_xarray(xr.open_zarr(said["zarr"], **RAW)),
        "#mode=bytes": through_netcdf(f"{at}/files/{name}#mode=bytes"),
    }
    if said["mounted"]:
        doors["mount, h5py"] = through_h5py(said["mounted"])
        doors["mount, netCDF"] = through_netcdf(said["mounted"])
    print(json.dumps({"digests": {door: digest(*found) for door, found in doors.items()},
                      "dimensions": {d: dimensions(f[0]) for d, f in doors.items() if d != "mount, h5py"},
                      "numbers": {"file": numbers(doors["file"][0]),
                                  "DAP2": numbers(through_netcdf(f"{at}/dap/{name}")[0])},
                      "values": sum(np.asarray(v[1]).size for v in doors["file"][0].values())}))


for argument in sys.argv[1:]:
    compare(json.loads(argument))
