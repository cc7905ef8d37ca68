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


def test_the_accessor_is_there_in_both_orders():
    with Site() as site:
        for order in (("esdm", "xarray"), ("xarray", "esdm")):
            python(site, "pypi", ACCESSOR.format(*order))
        expect(sorted(names()) == ["esdm.nc", "xarray.nc"], names())


main(test_storing_and_adding, test_the_accessor_is_there_in_both_orders)
