# SPDX-License-Identifier: LGPL-3.0-or-later
"""Weighted means of xarray's variables where their values are, by esdm_reduce_weighted(), and areas of cells."""

import ctypes

import numpy
import xarray

from . import _data, _reducing
from ._library import Error, check

MEAN = 2
NEAR_POLE = 88.0  # degrees; a last cell without bounds that ends beyond ends at the pole


def _coordinate(dataset, units, standard_name):
    """The one-dimensional coordinate of a regular grid."""
    for name in dataset.dims:
        at = dataset.coords.get(name)
        if at is not None and at.ndim == 1 and (
                str(at.attrs.get("units", "")).startswith(units) or at.attrs.get("standard_name") == standard_name):
            return at
    raise ValueError(f"the grid is not regular: no dimension has a coordinate of {standard_name}; weights=ARRAY "
                     "takes the areas of cells")


def _bounds(dataset, coordinate):
    """Two for each cell: those that the dataset has, else the middles between neighbours."""
    name = coordinate.attrs.get("bounds") or coordinate.encoding.get("bounds")
    if name in dataset.variables and dataset[name].shape == (coordinate.size, 2):
        return dataset[name].values.astype("f8")
    values = coordinate.values.astype("f8")
    if values.size < 2:
        middles = numpy.array([values[0] - 0.5, values[0] + 0.5])
    else:
        inner = (values[1:] + values[:-1]) / 2
        middles = numpy.concatenate([[2 * values[0] - inner[0]], inner, [2 * values[-1] - inner[-1]]])
    return numpy.stack([middles[:-1], middles[1:]], 1)


def area_weights(dataset):
    """Exact areas of the cells of a grid of latitudes and longitudes on a sphere of radius 1."""
    lat = _coordinate(dataset, ("degrees_north", "degree_north"), "latitude")
    lon = _coordinate(dataset, ("degrees_east", "degree_east"), "longitude")
    y = _bounds(dataset, lat)
    if y.size and not (lat.attrs.get("bounds") or lat.encoding.get("bounds")) in dataset.variables:
        ends = y[[0, -1], [0, 1]]
        y[[0, -1], [0, 1]] = numpy.where(abs(ends) > NEAR_POLE, numpy.copysign(90, ends), ends)
    unwrapped = lon.copy(data=numpy.unwrap(lon.values.astype("f8"), period=360))
    x = _bounds(dataset, unwrapped)
    width = abs(x[:, 1] - x[:, 0])
    width = numpy.where(width > 360, abs(width - 360 * numpy.round(width / 360)), width)
    height = abs(numpy.diff(numpy.sin(numpy.radians(y)), axis=1)[:, 0])
    return xarray.DataArray(numpy.outer(height, numpy.radians(width)), dims=(lat.dims[0], lon.dims[0]))


def _reduce(dataset, over, weighted, weights):
    library = _data.api()
    library.esdm_reduce_weighted.restype = ctypes.c_int
    library.esdm_reduce_weighted.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int] + [ctypes.c_void_p] * 5
    results = numpy.empty(tuple(n for n, reduced in zip(dataset.shape, over) if not reduced), "f8")
    flags = [(ctypes.c_bool * max(1, len(f)))(*f) for f in (over, weighted)]
    error = Error()
    check(library.esdm_reduce_weighted(dataset.pointer, None, flags[0], MEAN, flags[1], weights.ctypes.data,
                                       results.ctypes.data, None, ctypes.byref(error)), error)
    return results


def mean_of_variable(variable, dims, weights):
    """The variable without these dimensions, or None: xarray is to do it."""
    if not _reducing._can_reduce(variable) or not set(weights.dims) <= set(variable.dims):  # pylint: disable=protected-access
        return None
    weighted = [name in weights.dims for name in variable.dims]
    over = [name in dims for name in variable.dims]
    ordered = weights.transpose(*[name for name in variable.dims if name in weights.dims])
    results = _reduce(_reducing._stored(variable).dataset(), over, weighted,  # pylint: disable=protected-access
                      numpy.ascontiguousarray(ordered.values, "f8"))
    results = results * float(variable.encoding.get("scale_factor", 1)) + float(variable.encoding.get("add_offset", 0))
    return xarray.Variable([name for name in variable.dims if name not in dims], results)


def _weights_of(dataset, weights, here):
    if isinstance(weights, str):
        if weights != "area":
            raise ValueError(f"weights={weights!r}: they are an array, a DataArray, or \"area\"")
        return area_weights(dataset)
    if isinstance(weights, xarray.DataArray):
        return weights.reset_coords(drop=True).drop_vars(list(weights.coords), errors="ignore")
    return xarray.DataArray(numpy.asarray(weights), dims=here)


def mean_of_dataset(dataset, dim, weights):
    """As Dataset.weighted(weights).mean(dim), without attributes, of the variables that have these dimensions."""
    here = list(dataset.dims) if dim is None else [dim] if isinstance(dim, str) else list(dim)
    unknown = set(here) - set(dataset.dims)
    if unknown:
        raise ValueError(f"the dataset has no dimension {sorted(map(str, unknown))}")
    weights = _weights_of(dataset, weights, here)
    for name, size in weights.sizes.items():
        if dataset.sizes.get(name) != size:
            raise ValueError(f"{size} weights along '{name}', where the dataset has {dataset.sizes.get(name)} values")
    variables = {}
    for name, variable in dataset.data_vars.items():
        own = [d for d in here if d in variable.dims]
        if not own or variable.dtype.kind not in "fiub":
            if not own:
                variables[name] = variable.variable
            continue
        reduced = mean_of_variable(variable.variable, own, weights)
        if reduced is None:
            plain = variable.drop_vars(list(variable.coords))
            reduced = plain.weighted(weights).mean(own).variable
        variables[name] = reduced
    kept = {name: c.variable for name, c in dataset.coords.items() if not set(here) & set(c.dims)}
    return xarray.Dataset(variables, kept)
