#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Queries that put containers together in other ways than along one dimension."""

import json

import numpy

import virtual_files
from esdmtest import Site, client, expect, expect_error, main, need_program, run, tool

PYTHON = "/usr/bin/python3"
READ = """
import json, sys
import netCDF4
def listed(v):
    v.set_auto_maskandscale(False)
    return {"dims": v.dimensions, "type": str(v.dtype), "values": v[...].tolist(), "part": v[-1:].tolist()
            if v.ndim else None, **{"@" + n: str(v.getncattr(n)) for n in v.ncattrs()}}
with netCDF4.Dataset(sys.argv[1]) as d:
    print(json.dumps({**{"@" + n: str(d.getncattr(n)) for n in d.ncattrs()},
                      **{n: listed(v) for n, v in d.variables.items()}}))
"""


def read(url):
    return json.loads(client([PYTHON, "-c", READ, url]).stdout)


def make(site, name, times, **how):
    path = site.file(f"{name}.1.nc")
    attributes = {"set": "joins", **how.pop("attributes", {})}
    virtual_files.write(str(path), "joins", times, attributes=attributes, **how)
    run([tool("esdm-cp"), path, f"esdm://in/{name}.nc"])


def fails(query, *words):
    expect_error(client(["ncdump", "-h", f"esdm://?{query}"], check=False), *words)


# ---- ensembles --------------------------------------------------------------------------------------

def test_members_of_an_ensemble_are_a_dimension():
    with Site() as site:
        for number in (1, 2, 10):
            parts = [[0, 1, 2, 3]] if number == 10 else [[2, 3], [0, 1]]
            for k, times in enumerate(parts):
                later = number == 2
                make(site, f"r{number}_{k}", [t - 31 for t in times] if later else times,
                     base=100 * number + 3 * times[0], orography=[1, 2, 3], type="f8" if number == 10 else "f4",
                     units=f"days since 2000-0{1 + later}-01",
                     attributes={"variant_label": f"r{number}i1p1f1", "realization_index": numpy.int32(number),
                                 "title": f"member {number}"})
        want = [[[100 * n + 3 * t + y for y in range(3)] for n in (1, 2, 10)] for t in range(4)]
        for attribute, labels, kind in (("variant_label", ["r1i1p1f1", "r2i1p1f1", "r10i1p1f1"], "<class 'str'>"),
                                        ("realization_index", [1, 2, 10], "int32")):
            d = read(f"esdm://?set=joins&ensemble={attribute}")
            expect(d[attribute]["values"] == labels and d[attribute]["type"] == kind, d[attribute])
            expect(d[attribute]["@standard_name"] == "realization" and "@" + attribute not in d, d[attribute])
            expect(d["tas"]["dims"] == ["time", attribute, "lat"], d["tas"])
            expect(d["tas"]["values"] == want and d["tas"]["part"] == want[-1:], d["tas"])
            expect(d["time"]["values"] == [0, 1, 2, 3] and d["time"]["dims"] == ["time"], d["time"])
            expect(d["time_bnds"]["dims"] == ["time", "bnds"], "bounds are shared")
            expect(d["orog"]["dims"] == [attribute, "lat"], d["orog"])
            expect("title" in d["@esdm_differs"].split("\\n")[0] or "title" in d["@esdm_differs"], d)
            expect(d["@esdm_members"].startswith("5 containers"), d["@esdm_members"])
        # One label is a dimension of length one.
        one = read("esdm://?variant_label=r10i1p1f1&ensemble=variant_label")
        expect(one["variant_label"]["values"] == ["r10i1p1f1"], one)
        expect(numpy.shape(one["tas"]["values"]) == (4, 1, 3), one["tas"])
        need_program("ncks", "cdo")
        for command in (["ncks", "-O", "-h"], ["cdo", "-s", "copy"]):
            out = site.file("out.nc")
            client([*command, "esdm://?set=joins&ensemble=realization_index", out])
            text = run(["ncdump", "-v", "tas", out]).stdout
            expect("100, 101, 102" in text and "1009, 1010, 1011" in text, text)
        # A name for it, which follows, and one that does not.
        run([tool("esdm-ln"), "--ensemble", "variant_label", "?set=joins", "all"])
        run([tool("esdm-ln"), "--pin", "?set=joins&ensemble=variant_label", "pinned"])
        make(site, "r3", [0, 1, 2, 3], base=300, orography=[1, 2, 3], attributes={"variant_label": "r3i1p1f1"})
        expect(read("esdm://all")["variant_label"]["values"] ==
               ["r1i1p1f1", "r2i1p1f1", "r3i1p1f1", "r10i1p1f1"], "it follows")
        expect(read("esdm://pinned")["variant_label"]["values"] == ["r1i1p1f1", "r2i1p1f1", "r10i1p1f1"], "pinned")
        listed = json.loads(run([tool("esdm-ln"), "--json"]).stdout)["virtual"]
        expect([len(v["members"]) for v in listed] == [6, 5], listed)
        run([tool("esdm-fsck")])


def test_members_that_do_not_fit_are_told():
    with Site() as site:
        for n, how in ((1, {}), (2, {})):
            make(site, f"r{n}", [0, 1], base=n, attributes={"variant_label": f"r{n}"}, **how)
        make(site, "short", [0], attributes={"variant_label": "r3"})
        fails("set=joins&ensemble=variant_label", "in/r1.nc", "in/short.nc", "'time'", "2 and 1")
        fails("set=joins&ensemble=lat", "no attribute 'lat'")
        fails("set=joins&ensemble=case", "in/r1.nc", "in/r2.nc", "overlap")
        fails("set=joins&ensemble=", "needs one attribute")
        make(site, "calendar", [0, 1], calendar="noleap", attributes={"variant_label": "r4", "set": "calendars"})
        make(site, "standard", [0, 1], attributes={"variant_label": "r5", "set": "calendars"})
        fails("set=calendars&ensemble=variant_label", "noleap", "standard")
        make(site, "without", [0, 1], attributes={"set": "calendars"})
        fails("set=calendars&ensemble=variant_label", "in/without.nc", "no attribute 'variant_label'")
        make(site, "many", [0, 1], attributes={"variant_label": numpy.array([1, 2]), "set": "many"})
        fails("set=many&ensemble=variant_label", "2 values")
        make(site, "named", [0, 1], more=["member"], attributes={"set": "named", "member": "a"})
        fails("set=named&ensemble=member", "variable 'member' already")


main(test_members_of_an_ensemble_are_a_dimension, test_members_that_do_not_fit_are_told)
