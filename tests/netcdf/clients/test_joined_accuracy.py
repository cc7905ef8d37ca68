#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""What a query tells of the accuracy of containers that were stored with different ones: the loosest bound, not that
of the first container; and what was stated of one of them is not stated of a copy of all."""

import json

from esdmtest import Site, client, expect, main, run, tool

PYTHON = "/usr/bin/python3"

MAKE = """
import sys, netCDF4, numpy
for k, path in enumerate(sys.argv[2:]):
    with netCDF4.Dataset(path, "w") as d:
        d.set = sys.argv[1]
        d.createDimension("time", None)
        d.createDimension("x", 50)
        t = d.createVariable("time", "f8", ("time",))
        t.units = "days since 2000-01-01"
        t[:] = numpy.arange(40) + 40 * k
        v = d.createVariable("v", "f4", ("time", "x"))
        v.units = "K"
        v[:] = numpy.random.default_rng(k).normal(280, 10, (40, 50))
"""
READ = """
import json, sys, netCDF4, numpy
with netCDF4.Dataset(sys.argv[1]) as d:
    v = d["v"]
    exact = numpy.concatenate([netCDF4.Dataset(path)["v"][:] for path in sys.argv[2:]])
    told = {n: v.getncattr(n) for n in v.ncattrs() if n.startswith(("quantization", "esdm_"))}
    told = {n: x if isinstance(x, str) else float(x) for n, x in told.items()}
    print(json.dumps({"told": told, "off": float(abs(v[:] - exact).max()), "differs": getattr(d, "esdm_differs", "")}))
"""
APPEND = """
import sys, netCDF4, numpy
new = numpy.random.default_rng(9).normal(280, 10, (40, 50)).astype("f4")
with netCDF4.Dataset(sys.argv[1], "a") as d:
    n = len(d.dimensions["time"])
    d["time"][n:] = numpy.arange(40) + 40 * n
    d["v"][n:] = new
with netCDF4.Dataset(sys.argv[1]) as d:
    print(float(abs(d["v"][n:] - new).max()))
"""
ABSOLUTE, DIGITS = "quantization_maximum_absolute_error", "quantization_nsd"
STORED = "esdm_stored_accuracy"


def stored(site, name, *accuracies):
    """Members of the set `name`, one with each accuracy. @return their files, and what a query tells"""
    files = [site.file(f"{name}-{k:02}.nc") for k in range(len(accuracies))]
    client([PYTHON, "-c", MAKE, name, *files])
    for k, (file, accuracy) in enumerate(zip(files, accuracies)):
        how = ["--accuracy", f"v: {accuracy}"] if accuracy else []
        run([tool("esdm-cp"), *how, file, f"esdm://{name}/{k:02}.nc"])
    return files, read(f"esdm://?set={name}", files)


def read(name, files):
    return json.loads(client([PYTHON, "-c", READ, name, *files]).stdout)


def appended(name):
    """By how much numbers are off that are appended to a copy of what the query finds."""
    run([tool("esdm-cp"), f"esdm://?set={name}&within={name}", f"esdm://copies/{name}.nc"])
    return float(client([PYTHON, "-c", APPEND, f"esdm://copies/{name}.nc"]).stdout)


def test_the_loosest_bound_is_told():
    with Site() as site:
        for name, accuracies in {"first": ("abs=0.01 K", "abs=0.5 K", "abs=0.01 K"),
                                 "exact": ("", "abs=0.5 K", "abs=0.01 K"),
                                 "last": ("abs=0.5 K", "", "")}.items():
            files, found = stored(site, name, *accuracies)
            expect(0.1 < found["off"] <= 0.5 == found["told"].get(ABSOLUTE), f"{name}: {found}")
            expect("differs" in found["told"].get(STORED, ""), f"{name}: {found}")
            lines = found["differs"].splitlines()
            expect(f"v:{STORED}" in lines and all(line.startswith("v:") for line in lines), found["differs"])
            plain = site.file("plain.nc")
            run([tool("esdm-cp"), "-f", f"esdm://?set={name}", plain])
            expect(read(plain, files)["told"] == found["told"], "a plain copy tells something else")


def test_bounds_that_do_not_hold_for_all_are_not_told():
    with Site() as site:
        _, found = stored(site, "kinds", "abs=0.5 K", "significant_digits=4", "")
        expect(ABSOLUTE not in found["told"] and DIGITS not in found["told"], str(found))
        expect("differs" in found["told"][STORED], str(found))
        _, found = stored(site, "digits", "significant_digits=5", "significant_digits=4")
        expect(found["told"][DIGITS] == 3 and ABSOLUTE not in found["told"], str(found))


SAY = """
import sys, netCDF4, numpy
with netCDF4.Dataset(sys.argv[1], "a") as d:
    for name, kind, value in zip(*[iter(sys.argv[2:])] * 3):
        d["v"].setncattr(name, getattr(numpy, kind)(value) if kind != "str" else value)
"""


def test_bounds_of_other_programs_count():
    """They are float, short or text there; a text is compared with nothing, so that none is told."""
    with Site() as site:
        for name, members, told in (
                ("floats", ((ABSOLUTE, "float32", "0.25"), (ABSOLUTE, "float32", "0.5")), {ABSOLUTE: 0.5}),
                ("both", ((ABSOLUTE, "float64", "0.25"), (ABSOLUTE, "float32", "0.5")), {ABSOLUTE: 0.5}),
                ("second", ((), (ABSOLUTE, "float32", "0.5")), {ABSOLUTE: 0.5}),
                ("short", ((DIGITS, "int16", "5"), (DIGITS, "int16", "3")), {DIGITS: 3}),
                ("text", ((ABSOLUTE, "float64", "0.25"), (ABSOLUTE, "str", "0.5 K")), {})):
            files = [site.file(f"{name}-{k}.nc") for k in range(2)]
            client([PYTHON, "-c", MAKE, name, *files])
            for k, (file, said) in enumerate(zip(files, members)):
                client([PYTHON, "-c", SAY, file, *said])
                run([tool("esdm-cp"), file, f"esdm://{name}/{k}.nc"])
            found = read(f"esdm://?set={name}", files)["told"]
            expect("differs" in found.pop(STORED, ""), f"{name}: {found}")
            expect(found == told, f"{name}: {found}")
        files = [site.file(f"same-{k}.nc") for k in range(2)]
        client([PYTHON, "-c", MAKE, "same", *files])
        for k, file in enumerate(files):
            client([PYTHON, "-c", SAY, file, DIGITS, "str", "four"])
            run([tool("esdm-cp"), file, f"esdm://same/{k}.nc"])
        found = json.loads(client([PYTHON, "-c", READ, "esdm://?set=same", *files]).stdout)["told"]
        expect(found == {DIGITS: "four"}, f"what all say in the same way stays: {found}")


def test_what_was_stated_of_one_is_not_stated_of_a_copy_of_all():
    with Site() as site:
        stored(site, "one", "abs=0.5 K", "", "")
        off = appended("one")
        expect(off == 0, f"numbers that are appended are off by {off}")
        _, found = stored(site, "all", "abs=0.1 K", "abs=0.1 K")
        expect(found["told"] == {ABSOLUTE: 0.1, STORED: "absolute_tolerance=0.1"} and not found["differs"], str(found))
        expect(0 < appended("all") <= 0.1, "what was stated of all holds for the copy")


def test_what_the_site_remembers_of_a_query_tells_the_same():
    with Site() as site:
        files, found = stored(site, "many", "abs=0.01 K", *[""] * 15, "abs=0.5 K", "")
        again = read("esdm://?set=many", files)
        expect(found == again and again["told"][ABSOLUTE] == 0.5, f"{found}, then {again}")


main(test_the_loosest_bound_is_told, test_bounds_of_other_programs_count,
     test_bounds_that_do_not_hold_for_all_are_not_told,
     test_what_was_stated_of_one_is_not_stated_of_a_copy_of_all,
     test_what_the_site_remembers_of_a_query_tells_the_same)
