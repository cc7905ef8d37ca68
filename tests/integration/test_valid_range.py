#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Numbers beyond valid_range, valid_min and valid_max are missing to readers: reductions and histograms leave them out,
whether statistics of fragments tell or numbers are read."""

import json
import math
import os

import netCDF4
import numpy

from esdmtest import Site, client, expect, main, run, tool

MAKE = """
import netCDF4, numpy, sys
random = numpy.random.default_rng(5)
with netCDF4.Dataset(sys.argv[1], "w") as d:
    d.createDimension("time", None); d.createDimension("x", 4000)
    def put(name, a, attributes, fill=None):
        v = d.createVariable(name, a.dtype, ("time", "x"), fill_value=fill)
        v.set_auto_maskandscale(False)
        v.setncatts(attributes)
        for i in range(len(a)): # fragments with none, some and all beyond
            v[i] = a[i]
    for kind in ("f4", "f8", "i2", "i4", "i8", "u2", "u8"):
        a = random.integers(0, 300, (6, 4000)).astype(kind)
        a[0] //= 3; a[1] = 250; a[2, :9] = 99
        put(f"range_{kind}", a, {"valid_range": numpy.array([10, 200], kind)}, 99)
        put(f"max_{kind}", a, {"valid_max": numpy.array(200, kind)[()]}, 99)
    for kind in ("i1", "u1"): # nothing else is missing
        put(f"min_{kind}", random.integers(0, 120, (6, 4000)).astype(kind), {"valid_min": numpy.array(30, kind)[()]})
        put(f"range_{kind}", random.integers(0, 120, (6, 4000)).astype(kind), {"valid_range": numpy.array([3, 70], kind)})
    put("natural", random.integers(0, 256, (6, 4000)).astype("u1").view("i1"),
        {"_Unsigned": "true", "valid_range": numpy.array([20, 200], "u1").view("i1")}) # as CF has it
    put("packed", random.integers(-900, 900, (6, 4000)).astype("i2"),
        {"scale_factor": 0.5, "add_offset": 100.0, "valid_range": numpy.array([-100, 800], "i2")}, -1)
"""
PYTHON = "/usr/bin/python3"


def reduced(*arguments):
    return json.loads(run([tool("esdm-reduce"), "--json", *arguments]).stdout)["values"]


def numbers_of(a):
    return [None if numpy.ma.is_masked(x) else float(x) for x in numpy.ma.atleast_1d(a)]


def near(a, b):
    return a == b or (None not in (a, b) and math.isclose(a, b, rel_tol=1e-6))


def test_numbers_beyond_valid_range_do_not_count():
    with Site() as site:
        plain = os.path.join(site.folder, "plain.nc")
        run([PYTHON, "-c", MAKE, plain])
        client([PYTHON, "-c", MAKE, "esdm://a.nc"])
        with netCDF4.Dataset(plain) as d:
            for name, variable in d.variables.items():
                a = numpy.ma.atleast_1d(variable[:]).astype("f8")
                expect(numpy.ma.count_masked(a) > 0, f"{name}: nothing is beyond")
                for axis, over in ((None, ()), (1, ("--over", "x")), (0, ("--over", "time"))):
                    for what, wanted in (("mean", a.mean(axis)), ("min", a.min(axis)), ("max", a.max(axis)),
                                         ("variance", a.var(axis)), ("count", a.count(axis))):
                        own = reduced(what, "a.nc", name, *over)
                        expect(len(own) == len(numbers_of(wanted)) and all(map(near, own, numbers_of(wanted))),
                               f"{name} {what} {over}: {own[:6]}, not {numbers_of(wanted)[:6]}")
                counts = json.loads(run([tool("esdm-reduce"), "--json", "histogram", "a.nc", name,
                                         "--edges=-1000,20,40,300,1000"]).stdout)
                expect(sum(counts["counts"]) == a.count() and counts["missing"] == numpy.ma.count_masked(a), f"{name}: {counts}")
                expect(counts["counts"] == list(numpy.histogram(a.compressed(), [-1000, 20, 40, 300, 1000])[0]), name)


def test_a_limit_that_is_stated_later_holds_for_numbers_that_are_there():
    with Site():
        client([PYTHON, "-c", MAKE, "esdm://a.nc"])
        before = reduced("count", "a.nc", "packed")[0]
        client(["ncatted", "-a", "valid_range,packed,d,,", "esdm://a.nc"])
        expect(reduced("count", "a.nc", "packed")[0] > before, "the limits are gone")
        client(["ncatted", "-a", "valid_max,packed,c,s,-100", "esdm://a.nc"])
        expect(reduced("max", "a.nc", "packed")[0] == 50, reduced("max", "a.nc", "packed"))


def test_infinities_are_told_apart_from_missing_values():
    with Site():
        client([PYTHON, "-c", "import netCDF4\nwith netCDF4.Dataset('esdm://a.nc', 'w') as d:\n"
                " d.createDimension('x', 4); v = d.createVariable('v', 'f4', ('x',), fill_value=-1)\n"
                " v[:] = [1, float('inf'), float('-inf'), -1]"])
        expect(reduced("max", "a.nc", "v") == ["Infinity"], reduced("max", "a.nc", "v"))
        expect(reduced("min", "a.nc", "v") == ["-Infinity"], reduced("min", "a.nc", "v"))


if __name__ == "__main__":
    main(test_numbers_beyond_valid_range_do_not_count,
         test_a_limit_that_is_stated_later_holds_for_numbers_that_are_there,
         test_infinities_are_told_apart_from_missing_values)
