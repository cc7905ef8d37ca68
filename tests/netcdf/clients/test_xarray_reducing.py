#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""`dataset.esdm.mean("time")` and the like against xarray's own, on packed, masked and plain variables; what is
not as it was opened is left to xarray."""

from esdmtest import Site, expect, main
from inprocess import python

SCRIPT = """
import ctypes, numpy as np, xarray as xr, esdm
from esdm import _data, _reducing
random = np.random.default_rng(3)
t = 250 + random.random((12, 40, 50)).astype("f4")
sst = t.copy(); sst[:, :13] = np.nan; sst[4, 20] = np.nan
data = xr.Dataset({"t": (("time", "y", "x"), t, {"units": "K"}), "sst": (("time", "y", "x"), sst),
                   "n": (("time",), np.arange(12))},
                  coords={"time": np.arange(12), "x": np.arange(50.0)})
data["packed"] = data.sst
data.to_netcdf("esdm://run.nc", encoding={"packed": {"dtype": "i2", "scale_factor": -0.01, "add_offset": 250.,
                                                     "_FillValue": -32768}})
opened = lambda: xr.open_dataset("esdm://run.nc", engine="esdm")
calls = []
real = _reducing._reduce
_reducing._reduce = lambda *a: calls.append(a[2]) or real(*a)
for operation in ("mean", "min", "max", "sum", "var", "count"):
    for dim in ("time", ["y", "x"], ["time", "x"], None):
        ours = getattr(opened().esdm, operation)(dim)
        theirs = getattr(opened().load(), operation)(dim)
        for name in ("t", "sst", "packed", "n"):
            assert ours[name].dims == theirs[name].dims, (operation, dim, name)
            assert np.allclose(ours[name], theirs[name], rtol=2e-5, atol=1e-4, equal_nan=True), (
                operation, dim, name, ours[name].values, theirs[name].values)
        assert set(ours.coords) == set(theirs.coords), (ours.coords, theirs.coords)
assert len(calls) == 6 * 4 * 4, len(calls)
del calls[:]
part = opened().isel(time=slice(2, 5))
assert np.allclose(part.esdm.mean("time").t, t[2:5].mean(0)) and not calls, calls
warm = opened() + 1
assert np.allclose(warm[["t"]].esdm.mean("time").t, t.mean(0) + 1) and not calls
try:
    opened().esdm.mean("nowhere")
    raise SystemExit("no error")
except ValueError as problem:
    assert "nowhere" in str(problem) and "time" in str(problem)
print("ok")
"""

WEIGHTED = """
import numpy as np, xarray as xr, esdm
from esdm import _weighting
random = np.random.default_rng(3)
t = 250 + random.random((12, 40, 50)).astype("f4")
sst = t.copy(); sst[:, :13] = np.nan; sst[4, 20] = np.nan; sst[7] = np.nan
lat = np.linspace(-87.75, 87.75, 40); lon = np.arange(50) * 7.2
data = xr.Dataset({"t": (("time", "lat", "lon"), t, {"units": "K"}), "sst": (("time", "lat", "lon"), sst),
                   "n": (("time",), np.arange(12)), "zonal": (("time", "lat"), t[:, :, 0])},
                  coords={"time": np.arange(12), "lat": ("lat", lat, {"units": "degrees_north"}),
                          "lon": ("lon", lon, {"units": "degrees_east"})})
data["packed"] = data.sst
data.to_netcdf("esdm://run.nc", encoding={"packed": {"dtype": "i2", "scale_factor": -0.01, "add_offset": 250.,
                                                     "_FillValue": -32768}})
opened = lambda: xr.open_dataset("esdm://run.nc", engine="esdm")
calls = []
real = _weighting._reduce
_weighting._reduce = lambda *a: calls.append(a[1]) or real(*a)
edges = np.concatenate([[-90.], (lat[1:] + lat[:-1]) / 2, [90.]])
areas = xr.DataArray(np.repeat(np.diff(np.sin(np.radians(edges)))[:, None], 50, 1), dims=("lat", "lon"))
grid = xr.DataArray(random.random((50, 40)), dims=("lon", "lat"))
months = xr.DataArray(random.random(12), dims=("time",))
for weights, theirs_weights, dim in (("area", areas, ("lat", "lon")), (grid, grid, ("lat", "lon")), (grid.T.values, grid, ("lat", "lon")),
                                     (grid.values, grid, ("lon", "lat")), (months, months, "time"), (grid, grid, "lat"),
                                     (grid, grid, None)):
    ours = opened().esdm.mean(dim, weights=weights)
    names = [n for n in ("t", "sst", "packed") if n in ours]
    theirs = opened().load()[names].astype("f8").weighted(theirs_weights).mean(dim)
    for name in names:
        assert ours[name].dims == theirs[name].dims, (dim, name)
        assert np.allclose(ours[name], theirs[name], rtol=1e-10, equal_nan=True), (dim, name, ours[name].values, theirs[name].values)
    if dim in (("lat", "lon"), "lat"):
        assert (ours.n == np.arange(12)).all() and np.isnan(ours.sst[7]).all()
assert len(calls) == 7 * 3 + 2, len(calls)  # the weights of months alone serve `n` and `zonal`
del calls[:]
part = opened().isel(time=slice(2, 5))
assert np.allclose(part[["t"]].esdm.mean(("lat", "lon"), weights=areas).t,
                   part.t.load().astype("f8").weighted(areas).mean(("lat", "lon")), rtol=1e-6) and not calls
for wrong in ("mass", np.ones((3, 4)), -grid):
    try:
        opened().esdm.mean(("lat", "lon"), weights=wrong)
        raise SystemExit("no error")
    except (ValueError, OSError, RuntimeError) as problem:
        assert "weight" in str(problem), problem
print("ok")
"""


def test_weighted_means_are_those_of_xarray():
    with Site() as site:
        told = python(site, "pypi", WEIGHTED).stdout
        expect(told.endswith("ok\n"), told)


LIMITED = """
import numpy as np, xarray as xr, esdm
from esdm import _reducing
a = np.random.default_rng(3).random((12, 500)).astype("f4")
limits = {"range": {"valid_range": np.array([.2, .8], "f4")}, "least": {"valid_min": np.float32(.5)}, "all": {}}
xr.Dataset({n: (("time", "x"), a, at) for n, at in limits.items()}).to_netcdf("esdm://limited.nc")
with xr.open_dataset("esdm://limited.nc", engine="esdm") as data:
    assert [_reducing._can_reduce(data[n].variable) for n in limits] == [False, False, True]
    for operation in ("mean", "min", "count"):
        own, other = getattr(data.esdm, operation)("time"), getattr(data, operation)("time")
        for n in limits:
            np.testing.assert_allclose(own[n], other[n], rtol=1e-5)
print("ok")
"""


def test_numbers_beyond_valid_range_count_as_in_xarray():
    with Site() as site:
        told = python(site, "pypi", LIMITED).stdout
        expect(told.endswith("ok\n"), told)


def test_reductions_are_made_where_the_values_are():
    with Site() as site:
        told = python(site, "pypi", SCRIPT).stdout
        expect(told.endswith("ok\n"), told)


main(test_reductions_are_made_where_the_values_are, test_weighted_means_are_those_of_xarray,
     test_numbers_beyond_valid_range_count_as_in_xarray)
