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
    """@param variables {path: (dimensions or None, array, attributes)} @param told {group: attributes}"""
    h = hashlib.sha256(repr([(path, attributes(own)) for path, own in sorted(told.items())]).encode())
    for name in sorted(variables):
        _, array, own = variables[name]
        array = np.asarray(array)
        h.update(repr((name, array.shape, array.dtype.kind, array.dtype.itemsize, attributes(own))).encode())
        h.update(values_of(array))
    return h.hexdigest()


def numbers(variables):
    """The values alone, for doors with other types and without groups; characters as texts."""
    h = hashlib.sha256()
    flat = {name.replace("/", "_"): found for name, found in variables.items()}
    for name in sorted(flat):
        array = np.asarray(flat[name][1])
        if array.dtype.kind in "fiu":
            h.update(repr((name, array.shape)).encode() + array.astype("<f8").tobytes())
        elif array.dtype.kind == "O":
            h.update(repr((name, [plain(v) for v in array.reshape(-1)])).encode())
        else:
            h.update(name.encode() + array.tobytes().replace(b"\0", b""))
    return h.hexdigest()


def dimensions(variables):
    return {name: list(v[0]) for name, v in variables.items()}


def below(path, name):
    return f"{path}/{name}".lstrip("/")


def groups_of(group, path=""):
    yield path, group
    for name, inner in group.groups.items():
        yield from groups_of(inner, below(path, name))


def through_netcdf(path):
    with netCDF4.Dataset(path) as d:
        d.set_auto_maskandscale(False)
        d.set_auto_chartostring(False)
        groups = dict(groups_of(d))
        return ({below(at, n): (v.dimensions, v[...], v.__dict__) for at, g in groups.items()
                 for n, v in g.variables.items()}, {at: g.__dict__ for at, g in groups.items()})


def through_xarray(opening, groups):
    """@param opening gives a Dataset of a group."""
    variables, told = {}, {}
    for at in groups:
        with opening(at or None) as d:
            told[at] = d.attrs
            variables.update({below(at, n): (v.dims, v.values, v.attrs) for n, v in d.variables.items()})
    return variables, told


def through_h5py(path):
    variables, told = {}, {}

    def note(name, found):
        if isinstance(found, h5py.Group):
            told[name] = dict(found.attrs)
        elif not plain(found.attrs.get("NAME", "")).startswith("This is a netCDF dimension but not a netCDF variable"):
            variables[name] = (None, found[...], dict(found.attrs))

    with h5py.File(path) as f:
        told[""] = dict(f.attrs)
        f.visititems(note)
    return variables, told


def tried(opening):
    """What a door shows; or, for all to be compared, how it fails."""
    try:
        return opening()
    except Exception as failure:  # pylint: disable=broad-except
        return {f"failed: {type(failure).__name__}: {failure}": ((), np.zeros(0), {})}, {}


def compare(said):
    at, name = f"http://localhost:{said['port']}", said["name"]
    file = through_netcdf(said["file"])

    def by_xarray(opening):
        return lambda: through_xarray(opening, list(file[1]))

    doors = {
        "nc API": lambda: through_netcdf(f"esdm://{name}"),
        "engine": by_xarray(lambda g: xr.open_dataset(f"esdm://{name}", group=g, **RAW)),
        "Zarr store": by_xarray(lambda g: xr.open_zarr(esdm.zarr(name), group=g, **RAW)),
        "Zarr over HTTP": by_xarray(lambda g: xr.open_zarr(f"{at}/zarr/{name}", group=g, **RAW)),
        "esdm-cp": lambda: through_netcdf(said["exported"]),
        "esdm-cp, Zarr": by_xarray(lambda g: xr.open_zarr(said["zarr"], group=g, **RAW)),
        "#mode=bytes": lambda: through_netcdf(f"{at}/files/{name}#mode=bytes"),
    }
    if said["mounted"]:
        doors["mount, h5py"] = lambda: through_h5py(said["mounted"])
        doors["mount, netCDF"] = lambda: through_netcdf(said["mounted"])
    found = {"file": file, **{door: tried(opening) for door, opening in doors.items()}}
    dap = tried(lambda: through_netcdf(f"{at}/dap/{name}"))
    print(json.dumps({"digests": {door: digest(*f) for door, f in found.items()},
                      "differs": {door: differences(file, f) for door, f in found.items()},
                      "dimensions": {d: dimensions(f[0]) for d, f in found.items() if d != "mount, h5py"},
                      "numbers": {"file": numbers(file[0]), "DAP2": numbers(dap[0])},
                      "OPeNDAP": differences(({k.replace("/", "_"): v for k, v in file[0].items()}, {}), dap, False),
                      "values": sum(np.asarray(v[1]).size for v in file[0].values())}))


def differences(file, other, all_of_it=True):
    """In words: what a door lacks, has besides, or has otherwise."""
    told = []
    for name in sorted({*file[0], *other[0]}):
        a, b = file[0].get(name), other[0].get(name)
        if a is None or b is None:
            told.append(f"{name} is {'missing' if b is None else 'there besides'}")
        elif all_of_it and digest({name: a}, {}) != digest({name: b}, {}):
            mine, theirs = attributes(a[2]), attributes(b[2])
            which = sorted(k for k in {*mine, *theirs} if mine.get(k) != theirs.get(k))
            told.append(f"{name}: {np.asarray(a[1]).dtype} {np.asarray(b[1]).dtype} {np.asarray(b[1]).shape}, attributes "
                        f"{[(k, mine.get(k), theirs.get(k)) for k in which]}")
        elif not all_of_it and numbers({name: a}) != numbers({name: b}):
            told.append(f"{name} has other values, or {np.asarray(b[1]).dtype}")
    for group in sorted({*file[1], *other[1]}) if all_of_it else ():
        mine, theirs = attributes(file[1].get(group, {})), attributes(other[1].get(group, {}))
        told += [f"attribute {group}:{k} {mine.get(k)!r} {theirs.get(k)!r}"
                 for k in sorted({*mine, *theirs}) if mine.get(k) != theirs.get(k)]
    return [text[:300] for text in told[:5]]


for argument in sys.argv[1:]:
    compare(json.loads(argument))
