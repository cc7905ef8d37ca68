#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Datasets of xarray stored with accuracies, appended to and written into containers."""

from esdmtest import Site, expect, main, run, tool
from inprocess import names, python

SCRIPT = """
import time, numpy as np, pandas as pd, xarray as xr, esdm
def part(start, n, add=0.0):
    return xr.Dataset({"tas": (("time", "x"), 280 + add + np.random.rand(n, 500).astype("f4"), {"units": "K"}),
                       "name": (("time",), np.array([f"n{i}" for i in range(n)], dtype=object))},
                      coords={"time": pd.date_range(start, periods=n), "x": np.arange(500.0)})
first, second = part("2000-01-01", 4), part("2000-01-05", 3)
esdm.write(first, "run.nc", accuracy={"tas": "abs=0.01 K; mode=archive"}, chunks={"time": 2},
           unlimited_dims=["time"])
back = xr.open_dataset("esdm://run.nc")
error = abs(back.tas.values - first.tas.values).max()
assert 0 < error <= 0.01, error
assert back.tas.encoding["chunksizes"] == (2, 500), back.tas.encoding
before = len(esdm.snapshots("run.nc"))
esdm.append(second.chunk({"time": 1}), "run.nc", message="more")
both = xr.open_dataset("esdm://run.nc")
assert both.sizes["time"] == 7 and back.sizes["time"] == 4
assert (both.time.values == np.concatenate([first.time, second.time])).all()
assert abs(both.tas.values[4:] - second.tas.values).max() <= 0.01
assert both.name.values.tolist() == [*"n0 n1 n2 n3 n0 n1 n2".split()]
steps = esdm.snapshots("run.nc")
assert len(steps) == before + 1 and steps[-1].message == "more", steps
new = part("2000-01-03", 2, add=20)
new[["tas"]].esdm.write_region("run.nc", {"time": slice(2, 4)})
assert len(esdm.snapshots("run.nc")) == before + 2
values = xr.open_dataset("esdm://run.nc").tas.values
assert abs(values[2:4] - new.tas.values).max() <= 0.01 and (values[:2] == back.tas.values[:2]).all()
again = part("2000-01-03", 2, add=30)[["tas"]]
again.esdm.to("run.nc", region={"time": slice(2, 4)}, message="a region")
assert len(esdm.snapshots("run.nc")) == before + 3 and esdm.snapshots("run.nc")[-1].message == "a region"
assert abs(xr.open_dataset("esdm://run.nc").tas.values[2:4] - again.tas.values).max() <= 0.01
before += 1
import dask.array
broken = second.copy()
def fail(block, block_info=None):
    if block_info[0]["chunk-location"][0] == 2:
        raise RuntimeError("the third block")
    time.sleep(0.2)  # written when the container has been given up
    return block
broken["tas"] = (("time", "x"), dask.array.map_blocks(fail, second.tas.chunk({"time": 1}).data, dtype="f4",
                                                      meta=np.empty((0, 0), "f4")))
for wrong, kind in ((lambda: esdm.append(broken, "run.nc"), RuntimeError),
                    (lambda: esdm.write(broken, "half.nc"), RuntimeError),
                    (lambda: esdm.append(second.isel(x=slice(3)), "run.nc"), ValueError),
                    (lambda: esdm.append(second[["tas"]], "run.nc"), ValueError),
                    (lambda: esdm.write(second, "run.nc", region={"time": slice(0, 3)}, mode="a"), TypeError),
                    (lambda: second.esdm.to("run.nc", {"tas": "abs=1"}, region={"time": slice(0, 3)}), TypeError),
                    (lambda: second.esdm.to("run.nc", region={"time": slice(0, 4)}), ValueError),
                    (lambda: esdm.append(second, "run.nc", dim="y"), ValueError),
                    (lambda: esdm.write(first, "w.nc", accuracy={"tas": "abs=often"}), esdm.EsdmError),
                    (lambda: esdm.write(first, "w.nc", accuracy={"tos": "abs=1"}), ValueError),
                    (lambda: esdm.append(second, "none.nc"), FileNotFoundError)):
    try:
        wrong()
        raise SystemExit(f"no {kind}")
    except kind:
        pass
assert len(esdm.snapshots("run.nc")) == before + 2
assert xr.open_dataset("esdm://run.nc").sizes["time"] == 7
time.sleep(0.5)
print("ok")
"""


def test_storing_and_adding():
    with Site(history=20) as site:
        told = python(site, "pypi", SCRIPT).stdout
        expect(told.endswith("ok\n") and names() == ["run.nc"], f"{told}{names()}")
        run([tool("esdm-stat"), "--accuracy", "run.nc"])


FITS = """
import warnings, numpy as np, pandas as pd, xarray as xr, esdm, dask.array
def part(begin, values, freq="D"):
    values = np.asarray(values)
    return xr.Dataset({"tas": (("time", "lat"), np.stack([values] * 3, 1))}, coords={
        "time": pd.date_range(begin, periods=len(values), freq=freq), "lat": np.array([-45.0, 0.0, 45.5])})
made = {"packed.nc": {"dtype": "i2", "scale_factor": 0.01, "add_offset": 280.0, "_FillValue": -32768},
        "whole.nc": {"dtype": "i4"}, "bytes.nc": {"dtype": "i1", "_Unsigned": "true", "_FillValue": -1}, "floats.nc": {"dtype": "f4"}}
for name, encoding in made.items():
    part("2000-01-01", [280.0, 281.0] if name != "bytes.nc" else [10.0, 200.0]).to_netcdf(
        "esdm://" + name, unlimited_dims=["time"], encoding={"tas": encoding, "time": {"dtype": "i8", "units": "days since 2000-01-01"}})
def state(name):
    with xr.open_dataset("esdm://" + name, decode_times=False) as found:
        return found.tas.values.tobytes(), found.time.values.tobytes(), len(esdm.snapshots(name))
turned = part("2000-01-03", [280.0])
turned["lat"] = turned.lat[::-1].values
unpacked = part("2000-01-03", [280.0, 620.0])
lazy = unpacked.chunk({"time": 1})
for name, wrong, why in (("packed.nc", unpacked, "620.0 cannot be stored as int16 with scale_factor 0.01"),
                         ("packed.nc", lazy, "620.0 cannot be stored as int16"),
                         ("packed.nc", part("2000-01-03", [-47.68]), "read as missing"),
                         ("packed.nc", part("2000-01-03", [np.inf]), "infinity"),
                         ("whole.nc", part("2000-01-03", [2 ** 40]), "1099511627776 cannot be stored as int32"),
                         ("whole.nc", part("2000-01-03", [1.0, np.nan]), "no _FillValue"),
                         ("bytes.nc", part("2000-01-03", [-3.0]), "-3.0 cannot be stored"),
                         ("bytes.nc", part("2000-01-03", [256.0]), "256.0 cannot be stored"),
                         ("floats.nc", part("2000-01-03", [-1e39]), "-1e+39 cannot be stored as float32"),
                         ("packed.nc", part("2000-01-03T06:00", [280.0, 281.0], "6h"), "'days since 2000-01-01'"),
                         ("packed.nc", turned, "'lat' has other values")):
    before = state(name)
    for how, write in (("append", lambda: esdm.append(wrong, name)),
                       ("region", lambda: esdm.write_region(wrong.assign_coords(time=wrong.time - np.timedelta64(2, "D")), name,
                                                            {"time": slice(0, wrong.sizes["time"])}))):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # xarray's, of times
                write()
            raise SystemExit(f"{how}: no error: {why}")
        except ValueError as error:
            assert why in str(error), error
        assert state(name) == before, (how, why)
# What fits: to the last number, missing values, whole numbers given as floats, single precision of coordinates.
lazy = part("2000-01-03", [-47.67, 607.67, np.nan]).chunk({"time": 2})
lazy["lat"] = lazy.lat.astype("f4")
esdm.append(lazy, "packed.nc")
found = xr.open_dataset("esdm://packed.nc").tas.values[2:, 0]
assert np.allclose(found[:2], [-47.67, 607.67], atol=0.006) and np.isnan(found[2]), found
esdm.append(part("2000-01-03", [2.0 ** 31 - 1, -2.0 ** 31]), "whole.nc")
assert xr.open_dataset("esdm://whole.nc").tas.values[2:, 0].tolist() == [2 ** 31 - 1, -2 ** 31]
esdm.append(part("2000-01-03", [0.0, 254.0, np.nan]), "bytes.nc")
found = xr.open_dataset("esdm://bytes.nc").tas.values[2:, 0]
assert found[:2].tolist() == [0, 254] and np.isnan(found[2]), found
esdm.append(part("2000-01-03", [np.inf, np.nan, 3e38]), "floats.nc")
# Times as numbers that count from elsewhere are the same times.
numbers = part("2000-01-06", [281.0, 282.0])
numbers["time"] = ("time", np.array([48.0, 72.0]), {"units": "hours since 2000-01-04"})
esdm.append(numbers, "packed.nc")
times = xr.open_dataset("esdm://packed.nc").time.values
assert (times == pd.date_range("2000-01-01", periods=7)).all(), times
# Other units of data are told.
other = part("2000-01-05", [10])
other["tas"].attrs["units"] = "degC"
xr.Dataset({"tas": part("2000-01-01", [280.0]).tas.assign_attrs(units="K")}).to_netcdf("esdm://units.nc", unlimited_dims=["time"])
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    esdm.append(other, "units.nc")
assert any("in 'degC', and in 'K' in the container" in str(w.message) for w in told), told
# A job that runs again adds its times once more, which is told.
part("2000-01-01", [1, 2]).to_netcdf("esdm://again.nc", unlimited_dims=["time"])
for first, count in (("2000-01-03", 0), ("2000-01-03", 2), ("2000-01-04", 1), ("2000-01-07", 0)):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        esdm.append(part(first, [3, 4]), "again.nc")
    said = [str(w.message) for w in told if "now it has them twice" in str(w.message)]
    assert (f"has {count} of 2 times already" in said[0] if count else not said), (first, said)
# Packed times are not compared with those that they stand for, and missing ones are no others' times.
packed = part("2000-01-01", [1, 2, 3, 4, 5])
packed["time"].encoding.update(units="days since 2000-01-01", dtype="i4", scale_factor=2.0)
packed.isel(time=slice(0, None, 2)).to_netcdf("esdm://packed.nc", unlimited_dims=["time"])
nothing = part("2000-01-03", [3, 4])
nothing = nothing.assign_coords(time=nothing.time.where(nothing.time.isnull()))
for more, name in ((part("2000-01-05", [6]).assign_coords(time=part("2000-01-09", [6]).time), "packed.nc"), (nothing, "again.nc")):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        esdm.append(more, name)
    assert not [w for w in told if w.filename.endswith("_writing.py") or "twice" in str(w.message)], [str(w.message) for w in told]
print("ok")
"""


def test_what_does_not_fit_is_refused():
    with Site(history=20) as site:
        told = python(site, "pypi", FITS).stdout
        expect(told.endswith("ok\n"), told)


CALLS = """
import pathlib, numpy as np, xarray as xr, esdm
Path = pathlib.Path
def part(n, add=0):
    return xr.Dataset({"tas": (("time", "x"), add + np.arange(n * 3.0).reshape(n, 3))})
esdm.write(part(4), Path("sub/run.nc"), unlimited_dims=["time"])
esdm.write(part(4), "fixed.nc")
steps = len(esdm.snapshots(Path("sub/run.nc")))
one, two = part(1, 50), part(2, 70)
for wrong, kind, words in (
        (lambda: esdm.write_region(one, "sub/run.nc", {"time": 3}), TypeError, "'time' must be a slice(A, B), not 3: slice(3, 4) is that one"),
        (lambda: esdm.write_region(one, "sub/run.nc", "auto"), TypeError, '{"time": slice(4, 6)} is needed, not '),
        (lambda: one.esdm.to("sub/run.nc", region="auto"), TypeError, "not 'auto'"),
        (lambda: esdm.write_region(one, "sub/run.nc", {"time": "auto"}), TypeError, "must be a slice(A, B), not 'auto'"),
        (lambda: esdm.write_region(one, "sub/run.nc", {}), ValueError, "names no dimension"),
        (lambda: esdm.append(one, "fixed.nc"), ValueError, "its dimension 'time' has a fixed length of 4; esdm.write(…, unlimited_dims=['time'])"),
        (lambda: esdm.write_region(one, "sub/run.nc", {"time": slice("2000", "2001")}), TypeError, "of whole numbers"),
        (lambda: esdm.write_region(one, "sub/run.nc", {"time": slice(-1, None)}), ValueError, "counts from 0"),
        (lambda: esdm.write_region(one, "sub/run.nc", {"time": slice(0, 2, 2)}), ValueError, "has no steps"),
        (lambda: esdm.write_region(one, "sub/run.nc", {"y": slice(0, 2)}), ValueError, "the data have no dimension 'y'"),
        (lambda: esdm.write_region(two, "sub/run.nc", {"time": slice(0, 3)}), ValueError, "from 0 to 3 has the length 3, and the data 2"),
        (lambda: esdm.write_region(two, "sub/run.nc", {"time": slice(1, None)}), ValueError, "from 1 to the end has the length 3, and the data 2"),
        (lambda: esdm.write_region(two.chunk({"time": 1}), "sub/run.nc", {"time": slice(None)}), ValueError, "from 0 to the end has the length 4, and the data 2"),
        (lambda: esdm.write_region(two, "sub/run.nc", {"time": slice(5, None)}), ValueError, "has the length 0, and the data 2"),
        (lambda: esdm.append(one.tas, "sub/run.nc"), TypeError, "not a DataArray: array.to_dataset"),
        (lambda: esdm.write(one.tas, "new.nc"), TypeError, "not a DataArray"),
        (lambda: esdm.write_region(one.tas, "sub/run.nc", {"time": slice(0, 1)}), TypeError, "not a DataArray"),
        (lambda: esdm.append({"tas": one.tas}, "sub/run.nc"), TypeError, "an xarray.Dataset is needed, not a dict"),
        (lambda: esdm.append(one, 3), TypeError, "a text or a path, not a int"),
        (lambda: esdm.open(3), TypeError, "a text or a path, not a int")):
    try:
        wrong()
    except kind as error:
        assert words in str(error), error
    else:
        raise SystemExit(f"no error: {words}")
assert len(esdm.snapshots("sub/run.nc")) == steps and "new.nc" not in [c.name for c in esdm.ls()]
assert xr.open_dataset("esdm://sub/run.nc").tas.values.tolist() == part(4).tas.values.tolist()
# What is meant so is written: up to the end, and by a path, also with esdm:// before it.
esdm.write_region(two, Path("sub") / "run.nc", {"time": slice(np.int64(2), None)})
esdm.append(one, Path("esdm://sub/run.nc"))
with esdm.gather(Path("sub/run.nc")) as line:
    esdm.write_region(one, line, {"time": slice(0, 1)})
with esdm.open(Path("esdm://sub/run.nc")) as found:
    assert found["tas"][:, 0].tolist() == [50, 3, 70, 73, 50], found["tas"][:, 0]
assert esdm.open(Path("sub/run.nc"), -1)["tas"][0, 0] == 0 and esdm.stat(Path("esdm://sub/run.nc")).name == "sub/run.nc"
assert esdm.digest(Path("sub/run.nc")) == esdm.digest("sub/run.nc")
assert sum(v.sum() for _, v in esdm.stream(Path("sub/run.nc"), "tas")) == xr.open_dataset("esdm://sub/run.nc").tas.sum()
esdm.clone(Path("sub/run.nc"), Path("copy.nc")); esdm.move(Path("copy.nc"), Path("moved.nc")); esdm.remove(Path("moved.nc"))
print("ok")
"""


def test_calls_that_are_meant_otherwise():
    with Site(history=20) as site:
        told = python(site, "pypi", CALLS).stdout
        expect(told.endswith("ok\n") and sorted(names()) == ["fixed.nc", "sub/run.nc"], f"{told}{names()}")


PLACES = """
import warnings, numpy as np, pandas as pd, xarray as xr, esdm
def part(begin, n, freq="D", **coords):
    return xr.Dataset({"tas": (("time", "lat"), np.full((n, 3), 7.0))}, coords={
        "time": pd.date_range(begin, periods=n, freq=freq), "lat": np.array([-45.0, 0.0, 45.1]), **coords})
whole = part("2000-01-01", 6)
whole["tas"] = whole.tas * 0
for name, encoding in (("days.nc", {"dtype": "i8", "units": "days since 1850-01-01"}), ("hours.nc", {"dtype": "f8", "units": "hours since 1850-01-01"}),
                       ("single.nc", {"dtype": "f4", "units": "days since 1999-01-01"}), ("seconds.nc", {"dtype": "i4", "units": "seconds since 1970-01-01"}),
                       ("fill.nc", {"dtype": "f8", "units": "days since 1850-01-01", "_FillValue": 1e20})):
    whole.to_netcdf("esdm://" + name, unlimited_dims=["time"], encoding={"time": encoding})
    steps = len(esdm.snapshots(name))
    with xr.open_dataset("esdm://" + name, decode_times=False) as found:
        numbers = found[["time", "tas"]].isel(time=slice(1, 3)).load()
    numbers["tas"] = numbers.tas + 7
    other = numbers.copy()
    other["time"] = other.time + 1
    for wrong, start, words in ((part("2000-02-02", 2), 1, "at 1 it is 2000-01-02T00:00:00.000000000, not 2000-02-02T00:00:00.000000000"),
                                (part("2000-01-02", 2).chunk({"time": 1}), 0, "at 0 it is 2000-01-01T00:00:00.000000000, not 2000-01-02"),
                                (part("2000-01-02", 2, "2D"), 1, "at 2 it is 2000-01-03T00:00:00.000000000, not 2000-01-04"),
                                (part("2000-01-07", 2), 5, "at 5 it is 2000-01-06T00:00:00.000000000, not 2000-01-07"), (other, 1, "at 1 it is 2000-01-02T")):
        try:
            esdm.write_region(wrong, name, {"time": slice(start, start + 2)})
        except ValueError as error:
            assert "region: 'time' has other values in the container" in str(error) and words in str(error), error
        else:
            raise SystemExit(f"{name}: no error: {words}")
    assert len(esdm.snapshots(name)) == steps and not xr.open_dataset("esdm://" + name).tas.any()
    # The same, as a time, as numbers, in single precision; steps behind the end; and data without times.
    esdm.write_region(part("2000-01-02", 2), name, {"time": slice(1, 3)})
    esdm.write_region(numbers, name, {"time": slice(1, 3)})
    esdm.write_region(part("2000-02-02", 2).drop_vars("time"), name, {"time": slice(3, 5)})
    esdm.write_region(part("2000-01-06", 2), name, {"time": slice(5, 7)})
    # A step that only the data were written of has no time yet.
    esdm.write_region(part("2000-01-08", 2).drop_vars("time"), name, {"time": slice(7, 9)})
    esdm.write_region(part("2000-01-08", 2), name, {"time": slice(7, 9)})
    with xr.open_dataset("esdm://" + name) as found:
        assert (found.time.values == pd.date_range("2000-01-01", periods=9)).all(), found.time.values
        assert found.tas[:, 0].values.tolist() == [0, 7, 7, 7, 7, 7, 7, 7, 7], found.tas.values
# Coordinates that are no times: numbers, texts.
west = xr.Dataset({"z": (("lat", "name"), np.zeros((3, 2)))}, coords={"lat": np.array([-45.0, 0.0, 45.1]), "name": np.array(["a", "b"], dtype=object)})
west.to_netcdf("esdm://grid.nc")
for region, coords, words in (({"lat": slice(1, 3)}, {"lat": [45.1, 0.0]}, "'lat' has other values in the container: at 1 it is 0.0, not 45.1"),
                              ({"name": slice(0, 2)}, {"name": np.array(["a", "c"], dtype=object)}, "'name' has other values in the container: at 1 it is b, not c")):
    try:
        esdm.write_region(west.isel(region).assign_coords(coords), "grid.nc", region)
    except ValueError as error:
        assert words in str(error), error
    else:
        raise SystemExit(f"no error: {words}")
single = west.isel(lat=slice(1, 3)) + 1
esdm.write_region(single.assign_coords(lat=single.lat.astype("f4")), "grid.nc", {"lat": slice(1, 3), "name": slice(0, 2)})
assert xr.open_dataset("esdm://grid.nc").z.sum() == 4
print("ok")
"""


def test_regions_keep_the_container_s_coordinates():
    with Site(history=20) as site:
        told = python(site, "pypi", PLACES).stdout
        expect(told.endswith("ok\n"), told)


# Bounds and coordinates of two dimensions.
GRIDS = """
import numpy as np, pandas as pd, xarray as xr, esdm
def part(begin, n, move=0.0, days=1):
    t = pd.date_range(begin, periods=n)
    lon, lat = np.meshgrid(np.arange(5.0), np.arange(4.0) + move)
    return xr.Dataset({"tas": (("time", "y", "x"), np.full((n, 4, 5), 7.0)), "time_bnds": (("time", "b"), np.stack([t, t + pd.Timedelta(days=days)], 1)),
                       "lat_bnds": (("y", "x", "b"), np.stack([lat - 0.5, lat + 0.5], -1))},
                      coords={"time": ("time", t, {"bounds": "time_bnds"}), "lat": (("y", "x"), lat, {"bounds": "lat_bnds"}), "lon": (("y", "x"), lon)})
def numbers(data, unit):
    # As of a file whose times count from another day, opened without decoding them.
    data.time.encoding["units"] = unit
    data.to_netcdf("numbers.nc")
    with xr.open_dataset("numbers.nc", decode_times=False) as found:
        return found.load()
for name, unit in (("days.nc", "days since 1850-01-01"), ("hours.nc", "hours since 1999-12-31 12:00")):
    whole = part("2000-01-01", 4)
    whole["tas"] = whole.tas * 0
    esdm.write(whole, name, unlimited_dims=["time"], encoding={"time": {"units": unit}, "time_bnds": {"units": unit}})
    # Steps behind the end: their bounds count as the container's times do.
    esdm.append(part("2000-01-05", 2), name)
    esdm.append(numbers(part("2000-01-07", 1), "days since 2000-01-03"), name)
    def bounds():
        with xr.open_dataset("esdm://" + name) as found:
            return found.time_bnds.values
    wanted = part("2000-01-01", 7).time_bnds.values
    assert (bounds() == wanted).all(), bounds()
    before = len(esdm.snapshots(name))
    region = {"time": slice(1, 3)}
    right = part("2000-01-02", 2)
    south = {"time": slice(1, 3), "y": slice(1, 3)}
    other_bounds = right.copy()
    other_bounds["lat_bnds"] = right.lat_bnds + 1
    for wrong, where, words in (
            (part("2000-01-02", 2, days=2), region, "region: 'time_bnds' has other values in the container: at 1, 1 it is 2000-01-03T00:00:00.000000000, not 2000-01-04"),
            (numbers(part("2000-01-02", 2, days=2), "days since 1999-01-01"), region, "region: 'time_bnds' has other values"),
            (part("2000-01-02", 2, move=0.25), region, "'lat' has other values in the container: at 0, 0 it is 0.0, not 0.25"),
            (right.isel(y=slice(None, None, -1)), region, "'lat' has other values in the container: at 0, 0 it is 0.0, not 3.0"),
            (right.isel(y=slice(0, 2)), south, "region: 'lat' has other values in the container: at 1, 0 it is 1.0, not 0.0"),
            (other_bounds, region, "'lat_bnds' has other values in the container"),
            (other_bounds.drop_vars("lat").isel(y=slice(1, 3)).chunk(), south, "region: 'lat_bnds' has other values in the container")):
        try:
            esdm.write_region(wrong, name, where)
        except ValueError as error:
            assert words in str(error), f"{error}, not {words}"
        else:
            raise SystemExit(f"{name}: no error: {words}")
    try:
        esdm.append(part("2000-01-08", 1, move=0.25), name)
    except ValueError as error:
        assert str(error).startswith("'lat' has other values"), error
    else:
        raise SystemExit("no error: another grid is appended")
    assert len(esdm.snapshots(name)) == before and (bounds() == wanted).all()
    # The same; in single precision; by numbers; without what lies there.
    single = right.isel(y=slice(1, 3)).assign_coords(lat=right.lat.isel(y=slice(1, 3)).astype("f4"))
    esdm.write_region(single, name, south)
    esdm.write_region(numbers(right, "days since 1999-01-01"), name, region)
    esdm.write_region(part("2000-01-02", 2, move=9).drop_vars(["lat", "lat_bnds"]), name, region)
    with xr.open_dataset("esdm://" + name) as found:
        assert found.tas[:, 0, 0].values.tolist() == [0, 7, 7, 0, 7, 7, 7] and found.lat[3, 0] == 3, found.tas[:, 0, 0].values
    assert (bounds() == wanted).all()
    # Points that the data do not know (land that the model left out) are not written: they stay. What is the same is not searched.
    step, esdm._writing._step = esdm._writing._step, None
    land = part("2000-01-08", 1)
    land["lat"] = land.lat.where(land.lat > 0)
    esdm.append(land, name)
    esdm._writing._step = step
    with xr.open_dataset("esdm://" + name) as found:
        assert found.sizes["time"] == 8 and (found.lat.values == part("2000-01-01", 1).lat.values).all()
    try:
        esdm.write_region(land.isel(y=slice(0, 2)), name, {"time": slice(7, 8), "y": slice(0, 2)})
    except ValueError as error:
        assert "region: 'lat' has other values in the container: at 0, 0 it is 0.0, not nan" in str(error), error
    else:
        raise SystemExit("no error: places are overwritten by missing values")
# What a formula takes is data, also where xarray was asked to count it among the coordinates.
level = {"standard_name": "atmosphere_sigma_coordinate", "formula_terms": "sigma: lev ps: ps ptop: ptop"}
esdm.write(xr.Dataset({"ta": (("time", "lev"), np.zeros((4, 2))), "ps": ("time", np.arange(4.0)), "ptop": 1.0, "lev": ("lev", [0.5, 1.0], level)}), "sigma.nc")
with xr.open_dataset("esdm://sigma.nc", decode_coords="all") as found:
    given = found.isel(time=slice(1, 2)).load()
    assert "ps" in given.coords
given["ps"] = given.ps + 5
esdm.write_region(given, "sigma.nc", {"time": slice(1, 2)})
with xr.open_dataset("esdm://sigma.nc") as found:
    assert found.ps.values.tolist() == [0, 6, 2, 3], found.ps.values
print("ok")
"""


def test_regions_keep_bounds_and_grids():
    with Site(history=20) as site:
        told = python(site, "pypi", GRIDS).stdout
        expect(told.endswith("ok\n"), told)


AGAIN = """
import netCDF4, numpy as np, xarray as xr, esdm
def read():
    return int(open("/proc/self/io").read().split("rchar:")[1].split()[0])
rows = np.random.default_rng(1).random((600, 600))
given = xr.Dataset({"v": (("time", "y", "x"), np.zeros((3, 600, 600), "f4"))},
                   coords={"lat": (("y", "x"), rows, {"units": "degrees_north"}), "lon": (("y", "x"), rows + 1), "time": [0, 1, 2]})
esdm.write(given, "grid.nc")
def write(step, data=given):
    before = read()
    esdm.write_region(data.isel(time=slice(step, step + 1)) + 1, "grid.nc", {"time": slice(step, step + 1)})
    return read() - before
def refused(data=given):
    try:
        write(2, data)
    except ValueError as told:
        assert "'lat' has other values" in str(told), told
    else:
        raise AssertionError("other latitudes were taken")
first, again = write(0), write(1)
assert first > 4e6 and again < 1e6, (first, again)  # compared, and known
refused(given.assign_coords(lat=given.lat + 1))
was = rows[5, 7]
rows[5, 7] += 1  # in place
refused()
rows[5, 7] = was
assert write(1) < 1e6
with netCDF4.Dataset("esdm://grid.nc", "a") as d:  # by another: what was known is no more
    d["lat"][5, 7] += 1
refused()
with netCDF4.Dataset("esdm://grid.nc", "a") as d:
    d["lat"][5, 7] -= 1
assert write(2) > 2e6
with netCDF4.Dataset("esdm://grid.nc", "a") as d:
    d["lat"].scale_factor = 2.0
refused()
with xr.open_dataset("esdm://grid.nc") as found:
    assert found.v.values[:, 3, 3].tolist() == [1, 1, 1], found.v.values[:, 3, 3]
print("ok")
"""


def test_grids_are_compared_once():
    with Site(history=20, engine={"codec": "none"}) as site:
        told = python(site, "pypi", AGAIN).stdout
        expect(told.endswith("ok\n"), told)


ACCESSOR = """
import sys
import {0}
assert "xarray" not in sys.modules or "{0}" == "xarray"
import {1}
assert hasattr(xarray.Dataset, "esdm")
xarray.Dataset({{"a": ("x", [1, 2])}}).esdm.to("{0}.nc")
assert not [f for f in sys.meta_path if getattr(f, "__module__", "") == "esdm"], sys.meta_path
assert xarray.__spec__.loader.__class__.__module__.startswith(("importlib", "_frozen")), xarray.__spec__
"""


ARRAYS = """
import numpy as np, xarray as xr, esdm
assert esdm.__version__ == esdm.version()
try:
    esdm.open()
except TypeError as error:
    assert str(error).startswith("open() missing"), error
tas = xr.DataArray(280 + np.random.rand(4, 500).astype("f4"), {"time": np.arange(4.0), "x": np.arange(500.0)}, ("time", "x"), "tas", {"units": "K"})
tas.esdm.to("array.nc", accuracy="abs=0.01 K", unlimited_dims=["time"])
more = tas.assign_coords(time=tas.time + 4)
assert more.esdm.append("array.nc") == esdm.stat("array.nc").snapshot
tas[1:2].esdm.to("array.nc", region={"time": slice(1, 2)})
(tas[:1] + 5).esdm.write_region("array.nc", {"time": slice(0, 1)})
there = xr.open_dataarray("esdm://array.nc")
assert there.name == "tas" and there.sizes == {"time": 8, "x": 500} and there.units == "K"
wanted = np.concatenate([tas[:1] + 5, tas[1:], more])
assert 0 < abs(there.values - wanted).max() <= 0.0101
told = there.esdm.mean("time")
assert told.dims == ("x",) and told.name == "tas" and abs(told.values - there.mean("time").values).max() < 1e-3
assert ".to(), .append()" in repr(tas.esdm) and repr(tas.esdm) == repr(tas.to_dataset().esdm)
try:
    tas.rename(None).esdm.to("none.nc")
except ValueError as error:
    assert 'array.rename("tas")' in str(error), error
else:
    raise SystemExit("an array without a name was stored")
print("ok")
"""


def test_arrays_have_the_accessor_too():
    with Site(history=20) as site:
        expect(python(site, "pypi", ARRAYS).stdout == "ok\n" and names() == ["array.nc"], f"{names()}")


def test_the_accessor_is_there_in_both_orders():
    with Site() as site:
        for order in (("esdm", "xarray"), ("xarray", "esdm")):
            python(site, "pypi", ACCESSOR.format(*order))
        expect(sorted(names()) == ["esdm.nc", "xarray.nc"], names())


main(test_storing_and_adding, test_regions_keep_the_container_s_coordinates, test_regions_keep_bounds_and_grids,
     test_grids_are_compared_once, test_calls_that_are_meant_otherwise,
     test_what_does_not_fit_is_refused, test_arrays_have_the_accessor_too, test_the_accessor_is_there_in_both_orders)
