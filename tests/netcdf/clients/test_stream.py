#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""`esdm.stream()` on real fields and on what a query finds, against numpy; what ends it; memory that stays bounded."""

import json

from esdmtest import Site, client, expect, main, need_data, run, tool
from inprocess import python

REAL = """
import json, sys, threading, numpy as np, netCDF4, esdm
count = 0
for name, paths in json.loads(%r).items():
    with netCDF4.Dataset(name) as nc:
        nc.set_auto_maskandscale(False)
        for v in nc.variables.values():
            if v.dtype == str:
                continue
            whole = v[...]
            found = np.empty(whole.shape, whole.dtype)
            for where, part in esdm.stream(name, v.name, part_bytes=10000):
                assert part.nbytes <= 10000 and part.flags.writeable
                found[where] = part
                count += 1
            assert found.tobytes() == np.ascontiguousarray(whole).tobytes(), (name, v.name)
            if v.ndim and v.dtype.kind == "f":
                sums = list(esdm.stream(name, v.name, lambda where, x: x.sum(dtype="f8"), part_bytes=50000))
                assert np.isclose(sum(sums), whole.sum(dtype="f8"), rtol=1e-9), (name, v.name)
                first = v.dimensions[0]
                cut = {first: slice(1, v.shape[0] - 1)}
                n = sum(esdm.stream(name, v.name, lambda where, x: x.size, select=cut))
                assert n == whole[1:-1].size, (name, v.name, n)
assert count > 100, count
print("ok")
"""

ENDS = """
import gc, os, resource, threading, time, numpy as np, netCDF4, esdm
ROWS, COLUMNS = %d, 1 << 17
with netCDF4.Dataset("esdm://big.nc", "w") as nc:
    nc.createDimension("t", None); nc.createDimension("x", COLUMNS)
    v = nc.createVariable("v", "f4", ("t", "x"))
    for t in range(ROWS):
        v[t] = np.arange(COLUMNS) + t
def status():
    return int(next(l for l in open("/proc/self/status") if l.startswith("VmRSS")).split()[1]) / 1024
def highest():
    return int(next(l for l in open("/proc/self/status") if l.startswith("VmHWM")).split()[1]) / 1024
open("/proc/self/clear_refs", "w").write("5")
before = status()
seen = set()
def mean(where, values):
    seen.add(threading.get_ident())
    assert not values.flags.writeable
    return where[0].start, values.mean(dtype="f8") * values.size
parts = list(esdm.stream("big.nc", "v", mean))
assert [p[0] for p in parts] == sorted(p[0] for p in parts)
total = sum(p[1] for p in parts) / (ROWS * COLUMNS)
assert np.isclose(total, (COLUMNS - 1) / 2 + (ROWS - 1) / 2), total
whole = ROWS * COLUMNS * 4 / 2 ** 20
used = highest() - before
assert used < whole / 2, (used, whole)

# Who does not go on holds the read, not memory; who leaves ends it.
threads = threading.active_count()
parts = esdm.stream("big.nc", "v")
next(parts)
parts.close()
assert threading.active_count() == threads
for where, values in esdm.stream("big.nc", "v"):
    break
del where, values
gc.collect()
assert threading.active_count() == threads

def fails(where, values):
    if where[0].start > 3:
        raise RuntimeError("of the function")
    return 1
got = 0
try:
    for one in esdm.stream("big.nc", "v", fails):
        got += one
    raise SystemExit("no error")
except RuntimeError as problem:
    assert str(problem) == "of the function"
for wrong, words in ((lambda: esdm.stream("big.nc", "w"), "no variable 'w'"),
                     (lambda: esdm.stream("none.nc", "v"), "none.nc"),
                     (lambda: esdm.stream("big.nc", "v", select={"y": slice(0, 1)}), "no dimension ['y']"),
                     (lambda: esdm.stream("big.nc", "v", select={"t": slice(0, 9, 2)}), "steps")):
    try:
        next(wrong())
        raise SystemExit("no error: " + words)
    except (KeyError, ValueError, esdm.EsdmError) as problem:
        assert words in str(problem), problem
print("ok")
"""

VIRTUAL = """
import numpy as np, netCDF4, esdm
for year in range(3):
    with netCDF4.Dataset(f"esdm://y{year}.nc", "w") as nc:
        nc.series = "s"
        nc.createDimension("time", None); nc.createDimension("x", 5000)
        t = nc.createVariable("time", "f8", ("time",)); t.units = "days since 2000-01-01"; t[:] = np.arange(9) + 9 * year
        t.standard_name = "time"
        v = nc.createVariable("v", "f4", ("time", "x")); v[:] = np.random.default_rng(year).random((9, 5000))
with netCDF4.Dataset("esdm://?series=s") as nc:
    whole = nc["v"][:]
found = np.empty(whole.shape, "f4")
for where, part in esdm.stream("?series=s", "v", part_bytes=1 << 14):
    found[where] = part
assert whole.shape == (27, 5000) and (found == whole).all()
print("ok")
"""


def test_stream__real_fields_come_whole():
    sources = sorted(need_data("cmip6").rglob("*.nc"), key=lambda p: p.stat().st_size)
    sources = sources[:2] + [p for p in sources if p.stat().st_size > 1000000][:2]
    with Site() as site:
        for i, source in enumerate(sources):
            run([tool("esdm-cp"), source, f"esdm://{i}.nc"])
        names = json.dumps({f"esdm://{i}.nc": 0 for i in range(len(sources))})
        told = python(site, "pypi", REAL % names).stdout
        expect(told.endswith("ok\n"), told)


def test_stream__ends_when_told_and_is_bounded():
    with Site() as site:
        told = python(site, "pypi", ENDS % 200).stdout
        expect(told.endswith("ok\n"), told)


def test_stream__of_what_a_query_finds():
    with Site() as site:
        told = python(site, "pypi", VIRTUAL).stdout
        expect(told.endswith("ok\n"), told)


main(test_stream__real_fields_come_whole,
     test_stream__ends_when_told_and_is_bounded,
     test_stream__of_what_a_query_finds)
