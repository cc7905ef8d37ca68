# SPDX-License-Identifier: LGPL-3.0-or-later
"""Reductions of xarray's variables where their values are: esdm_reduce() reads nothing that the statistics
of fragments tell, and the rest in all threads and little memory."""

import ctypes

import numpy
import xarray
from xarray.core import indexing

from . import _data
from ._library import Error, check
from .xarray_engine import EsdmArray

OPERATIONS = {"sum": 1, "mean": 2, "min": 3, "max": 4, "count": 5, "var": 6}
# What xarray has decoded stays in `encoding`; where it is an attribute still, values are as they are stored.
PACKING = ("scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned")

# Beyond these numbers are missing to esdm_reduce(), and not to xarray.
LIMITS = ("valid_range", "valid_min", "valid_max")


def _is_all(key, shape):
    parts = key.tuple
    return len(parts) == len(shape) and all(
        isinstance(k, slice) and k.indices(n) == (0, n, 1) for k, n in zip(parts, shape))


def _stored(variable):
    """The array of a variable that is as it was opened, whole and not loaded; or None."""
    at = variable._data  # pylint: disable=protected-access
    for _ in range(16):
        if isinstance(at, EsdmArray):
            return at
        if isinstance(at, indexing.LazilyIndexedArray) and not _is_all(at.key, at.array.shape):
            return None
        at = getattr(at, "array", None)
    return None


def _can_reduce(variable):
    if variable.dtype.kind not in "fiu" or any(name in variable.attrs for name in PACKING):
        return False
    if any(name in variable.attrs for name in LIMITS):
        return False
    stored = _stored(variable)
    return stored is not None and stored.dtype.kind in "fiu" and "_Unsigned" not in variable.encoding


def _reduce(dataset, over, operation):
    """Results, and how many valid values each is made of."""
    library = _data.api()
    library.esdm_reduce.restype = ctypes.c_int
    library.esdm_reduce.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int,
                                    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    shape = tuple(n for n, reduced in zip(dataset.shape, over) if not reduced)
    results = numpy.empty(shape, "f8")
    valid = numpy.empty(shape, "u8")
    flags = (ctypes.c_bool * max(1, len(over)))(*over)
    error = Error()
    check(library.esdm_reduce(dataset.pointer, None, flags, OPERATIONS[operation], results.ctypes.data,
                              valid.ctypes.data, ctypes.byref(error)), error)
    return results, valid


def _unpacked(operation, results, valid, encoding):
    """Of the numbers that the stored ones stand for."""
    scale = float(encoding.get("scale_factor", 1))
    offset = float(encoding.get("add_offset", 0))
    if operation == "var":
        return results * (scale * scale)
    if operation == "sum":
        return numpy.where(valid == 0, 0, results * scale + offset * valid)
    return results * scale + offset


def reduce_variable(variable, dims, operation):
    """The variable without these dimensions, or None: xarray is to do it."""
    if not _can_reduce(variable):
        return None
    encoding = variable.encoding
    stored = operation
    if operation in ("min", "max") and float(encoding.get("scale_factor", 1)) < 0:
        stored = "max" if operation == "min" else "min"
    over = [name in dims for name in variable.dims]
    results, valid = _reduce(_stored(variable).dataset(), over, stored)
    kept = [name for name in variable.dims if name not in dims]
    if operation == "count":
        return xarray.Variable(kept, valid.astype("i8"))
    results = _unpacked(operation, results, valid, encoding)
    if variable.dtype.kind == "f" or operation in ("min", "max", "sum"):
        results = results.astype(variable.dtype)
    return xarray.Variable(kept, results)


def reduce_dataset(dataset, dim, operation):
    """As Dataset.mean() and the like, without attributes, of the variables that have numbers."""
    dims = set(dataset.dims) if dim is None else {dim} if isinstance(dim, str) else set(dim)
    unknown = dims - set(dataset.dims)
    if unknown:
        raise ValueError(f"the dataset has no dimension {sorted(map(str, unknown))}; it has "
                         f"{sorted(map(str, dataset.dims))}")
    variables = {}
    rest = []
    for name, variable in dataset.data_vars.items():
        reduced = reduce_variable(variable.variable, dims, operation)
        if reduced is None:
            rest.append(name)
        else:
            variables[name] = reduced
    here = [d for d in dataset.dims if d in dims]
    others = getattr(dataset[rest], operation)([d for d in here if d in dataset[rest].dims])
    kept = {name: c.variable for name, c in dataset.coords.items() if not dims & set(c.dims)}
    return others.assign(variables).assign_coords(kept)[[n for n in dataset.data_vars
                                                        if n in variables or n in others]]
