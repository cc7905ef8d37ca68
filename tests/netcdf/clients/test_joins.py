#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Queries that put containers together in other ways than along one dimension."""

import json

import cftime
import netCDF4
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
def read(url):
    with netCDF4.Dataset(url) as d:
        return {**{"@" + n: str(d.getncattr(n)) for n in d.ncattrs()},
                **{n: listed(v) for n, v in d.variables.items()}}
print(json.dumps([read(url) for url in sys.argv[1:]]))
"""


files = []  # made, and not stored yet


def read(*urls):
    """What is in each; of one it alone."""
    found = json.loads(client([PYTHON, "-c", READ, *urls]).stdout)
    return found if len(urls) > 1 else found[0]


def make(site, name, times, **how):
    path = site.file(f"{name}.nc")
    attributes = {"set": "joins", **how.pop("attributes", {})}
    virtual_files.write(str(path), "joins", times, attributes=attributes, **how)
    files.append(path)


def store():
    """All that were made since."""
    run([tool("esdm-cp"), *files, "esdm://in/"])
    files.clear()


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
        store()
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
        store()
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
        store()
        fails("set=joins&ensemble=variant_label", "in/r1.nc", "in/short.nc", "'time'", "2 and 1")
        fails("set=joins&ensemble=lat", "no attribute 'lat'")
        fails("set=joins&ensemble=case", "in/r1.nc", "in/r2.nc", "the variant_label 'r1'", "&across=variant_label")
        fails("set=joins&ensemble=case&across=variant_label", "in/r1.nc", "in/r2.nc", "overlap")
        fails("set=joins&ensemble=", "needs one attribute")
        make(site, "calendar", [0, 1], calendar="noleap", attributes={"variant_label": "r4", "set": "calendars"})
        make(site, "standard", [0, 1], attributes={"variant_label": "r5", "set": "calendars"})
        store()
        fails("set=calendars&ensemble=variant_label", "noleap", "standard")
        # What the option offers, and no more than that; times as dates.
        fails("set=calendars&ensemble=variant_label&gaps=fill", "'time' in the calendar")
        done = client(["ncdump", "-h", "esdm://?set=calendars&ensemble=variant_label"], check=False)
        expect("gaps=fill" not in done.stderr, done.stderr)
        make(site, "early", [0, 1], attributes={"variant_label": "r1", "set": "days"})
        make(site, "late", [1, 2], attributes={"variant_label": "r2", "set": "days"})
        store()
        fails("set=days&ensemble=variant_label", "'time' at 0 is 2000-01-01 and 2000-01-02", "gaps=fill")
        make(site, "without", [0, 1], attributes={"set": "calendars"})
        store()
        fails("set=calendars&ensemble=variant_label", "in/without.nc", "no attribute 'variant_label'")
        make(site, "many", [0, 1], attributes={"variant_label": numpy.array([1, 2]), "set": "many"})
        store()
        fails("set=many&ensemble=variant_label", "2 values")
        make(site, "named", [0, 1], more=["member"], attributes={"set": "named", "member": "a"})
        store()
        fails("set=named&ensemble=member", "variable 'member' already")


def test_times_less_than_a_millisecond_apart_are_told():
    """They were taken for one time: of six with equal values two were left, without a word."""
    with Site() as site:
        for n in range(2):
            make(site, f"fast{n}", [3 * n + i * 1e-9 for i in range(3)], attributes={"set": "fast"})
        for n in range(2):  # 0.3 and 0.1 + 0.2: one time, said twice
            make(site, f"noise{n}", [3 * n + 0.3, 3 * n + (0.1 + 0.2), 3 * n + 1], base=0, attributes={"set": "noise"})
        store()
        fails("set=fast", "in/fast0.nc", "the times 'time' at 0 and at 1 are less than a millisecond apart")
        done = client(["ncdump", "-v", "time", "esdm://?set=noise"], check=False)
        expect("less than a millisecond" not in done.stderr, done.stderr)


# ---- gaps -------------------------------------------------------------------------------------------

def days(*dates, calendar="standard", units="days since 2000-01-01"):
    return [float(cftime.date2num(cftime.datetime(*d, calendar=calendar), units, calendar)) for d in dates]


def middles(calendar, *months):
    """The middle of months counted from 2000-01, and their ends."""
    ends = [days((2000 + m // 12, m % 12 + 1, 1), (2000 + (m + 1) // 12, (m + 1) % 12 + 1, 1), calendar=calendar)
            for m in months]
    return [sum(e) / 2 for e in ends], ends


def test_gaps_are_told_and_filled():
    fill = float(numpy.float32(netCDF4.default_fillvals["f4"]))
    with Site() as site:
        # Days, a day of each month, the middle of months, seasons, years; numbers that are no times.
        steps = {"days": ([0, 1], [4, 6], [0, 1, 2, 3, 4, 5, 6]),
                 "day15": (days((2000, 1, 15), (2000, 2, 15)), days((2000, 5, 15)),
                           days(*[(2000, m, 15) for m in (1, 2, 3, 4, 5)]))}
        for calendar in ("standard", "noleap", "360_day"):
            steps[calendar] = tuple(middles(calendar, *m)[0] for m in ((0, 1), (13, 14), range(15)))
        years = [(a + b) / 2 for a, b in (days((y, 1, 1), (y + 1, 1, 1)) for y in range(2000, 2006))]
        steps["years"] = (years[:2], years[4:], years)
        for name, (one, two, whole) in steps.items():
            calendar = name if name in ("noleap", "360_day") else "standard"
            for k, times in enumerate((one, two)):
                make(site, f"{name}{k}", times, base=10 * k, calendar=calendar, attributes={"step": name})
        store()
        found = iter(read(*[f"esdm://?step={name}{option}" for name in steps for option in ("", "&gaps=fill")]))
        for name, (one, two, whole) in steps.items():
            calendar = name if name in ("noleap", "360_day") else "standard"
            told = next(found)
            missing = len(whole) - len(one) - len(two)
            expect("missing between 200" in told["@esdm_gaps"], told["@esdm_gaps"])
            expect(told["time"]["values"] == [*one, *two], told["time"])
            d = next(found)
            expect(d["time"]["values"] == list(whole), f"{name}: {d['time']['values']} for {whole}")
            expect(d["tas"]["type"] == "float32" and numpy.float32(d["tas"]["@_FillValue"]) / fill == 1, d["tas"])
            there = [t in one or t in two for t in whole]
            values = iter([[0, 1, 2], [3, 4, 5], *([10 + 3 * i + y for y in range(3)] for i in range(len(two)))])
            want = [next(values) if t else [fill] * 3 for t in there]
            expect(d["tas"]["values"] == want, f"{name}: {d['tas']['values']}")
            expect(sum(int(line.split()[1]) for line in d["@esdm_gaps"].splitlines()) == missing, d["@esdm_gaps"])
            ends = d["time_bnds"]["values"]
            if name == "days":
                expect(ends == [[t, t + 1] for t in whole], ends)
            elif name in ("standard", "noleap"):
                expect(ends[2:13] == middles(calendar, *range(2, 13))[1], ends)
        fails("step=days&gaps=no", "report or fill")
        text = client(["ncdump", "-v", "tas", "esdm://?step=days&gaps=fill"]).stdout
        expect("_, _, _" in text, text)
        run([tool("esdm-ln"), "--gaps", "fill", "?step=days", "days"])
        expect(len(read("esdm://days")["time"]["values"]) == 7, "a saved query fills")
        # Packed integers keep their fill; bytes have none; whole numbers of days that become halves.
        for k, times in enumerate(([0, 1], [4, 5])):
            make(site, f"packed{k}", times, type="i2", scale_factor=.5, add_offset=0., attributes={"step": "packed"})
            make(site, f"byte{k}", times, type="i1", attributes={"step": "byte"})
            make(site, f"uneven{k}", [0, 1.25] if k == 0 else [7, 9.5], attributes={"step": "uneven"})
        store()
        d = read("esdm://?step=packed&gaps=fill")["tas"]
        expect(d["type"] == "int16" and d["values"][2] == [-32767] * 3 and d["@_FillValue"] == "-32767", d)
        fails("step=byte&gaps=fill", "bytes without a _FillValue")
        fails("step=uneven&gaps=fill", "no regular step", "2000-01-08")
        expect("@esdm_gaps" not in read("esdm://?step=uneven"), "no step, no gaps")


# ---- tiles and holes --------------------------------------------------------------------------------

def test_tiles_are_joined_along_two_dimensions():
    fill = float(numpy.float32(netCDF4.default_fillvals["f4"]))
    south, north = [-45., -30., -15.], [0., 15., 30.]
    rows = numpy.arange(6.).reshape(2, 3)
    with Site() as site:
        for k, times in enumerate(([0, 1], [2, 3], [4, 5])):
            for j, lats in enumerate((south, north)):
                how = dict(lats=lats, base=100 * k + 10 * j, lat_bounds=True)
                make(site, f"all{k}{j}", times, attributes={"tiles": "all"}, **how)
                if (k, j) != (1, 1):
                    make(site, f"hole{k}{j}", times, attributes={"tiles": "hole"}, **how)
                if k == j:
                    make(site, f"two{k}{j}", times, attributes={"tiles": "two"}, **how)
        make(site, "between0", [0, 1], lats=[0., 2., 4.], attributes={"tiles": "between"})
        make(site, "between1", [2, 3], lats=[1., 3., 5.], attributes={"tiles": "between"})
        store()
        everything = [[list(100 * k + row) + list(100 * k + 10 + row) for row in rows] for k in range(3)]
        want = [step for part in everything for step in part]
        full, hole, two = read(*[f"esdm://?tiles={name}" for name in ("all", "hole", "two")])
        expect(full["lat"]["values"] == south + north and full["time"]["values"] == [0, 1, 2, 3, 4, 5], full["lat"])
        expect(full["tas"]["values"] == want and "@esdm_gaps" not in full, full["tas"])
        expect(full["lat_bnds"]["values"] == [[y - 15, y + 15] for y in south + north], full["lat_bnds"])
        for k in (2, 3):
            want[k] = want[k][:3] + [fill] * 3
        expect(hole["tas"]["values"] == want and hole["tas"]["part"] == want[-1:], hole["tas"])
        expect(hole["time"]["values"] == [0, 1, 2, 3, 4, 5] and
               hole["time_bnds"]["values"] == [[t, t + 1] for t in range(6)], hole["time"])
        expect("time: 2 filled in lat=0 to 30" in hole["@esdm_gaps"], hole["@esdm_gaps"])
        first, second = [list(row) + [fill] * 3 for row in rows], [[fill] * 3 + list(110 + row) for row in rows]
        expect(two["tas"]["values"] == first + second, two["tas"])
        fails("tiles=between", "in/between0.nc", "in/between1.nc", "'lat'", "'time'")
        part = client(["ncks", "-H", "-C", "-v", "tas", "-d", "time,1,4,2", "-d", "lat,2,4,2", "-s", "%g ",
                       "esdm://?tiles=hole"]).stdout
        expect(part.split() == ["_" if want[t][y] == fill else f"{want[t][y]:g}" for t in (1, 3) for y in (2, 4)], part)


def test_members_of_an_ensemble_may_lack_times():
    fill = float(numpy.float32(netCDF4.default_fillvals["f4"]))
    with Site() as site:
        for n, times in ((1, [0, 1, 2, 3]), (2, [2, 3]), (3, [0, 3])):
            make(site, f"r{n}", times, base=10 * n, attributes={"realization_index": numpy.int32(n)})
        store()
        fails("set=joins&ensemble=realization_index", "in/r1.nc", "in/r2.nc", "'time'", "gaps=fill")
        d = read("esdm://?set=joins&ensemble=realization_index&gaps=fill")
        have = [[[10 * n + 3 * times.index(t) + y for y in range(3)] if t in times else [fill] * 3
                 for n, times in ((1, [0, 1, 2, 3]), (2, [2, 3]), (3, [0, 1, 2, 3]))] for t in range(4)]
        for t, y in ((0, 0), (3, 1)):
            have[t][2] = [30 + 3 * y + k for k in range(3)]
        for t in (1, 2):
            have[t][2] = [fill] * 3
        expect(d["time"]["values"] == [0, 1, 2, 3] and d["tas"]["values"] == have, d["tas"])
        expect(d["time_bnds"]["values"] == [[t, t + 1] for t in range(4)], d["time_bnds"])
        expect("time: 2 filled in in/r2.nc" in d["@esdm_gaps"], d["@esdm_gaps"])


# ---- variables --------------------------------------------------------------------------------------

def test_variables_of_several_containers_are_put_together():
    with Site() as site:
        for k, times in enumerate(([0, 1], [2, 3])):
            make(site, f"ta{k}", times, base=6 * k, lat_bounds=True, attributes={"title": "ta"})
            # Other units of time, other chunks, packed, and one dimension more.
            make(site, f"pr{k}", [t - 31 for t in times], variable="pr", units="days since 2000-02-01", lat_bounds=True,
                 type="i2", scale_factor=.5, add_offset=0., base=100 + 6 * k, attributes={"title": "pr"})
        make(site, "hus", [0, 1, 2, 3], variable="hus", base=50, more=["extra"], orography=[1, 2, 3])
        make(site, "other0", [0, 1], variable="ua", attributes={"set": "times"})
        make(site, "other1", [0, 1, 2], variable="va", attributes={"set": "times"})
        make(site, "lat0", [0, 1], variable="ua", attributes={"set": "lats"})
        make(site, "lat1", [0, 1], variable="va", lats=virtual_files.LATS + 1, attributes={"set": "lats"})
        make(site, "fixed0", [0, 1], variable="ua", lat_bounds=True, attributes={"set": "bounds"})
        make(site, "fixed1", [0, 1], variable="va", lat_bounds=True, bound_width=14, attributes={"set": "bounds"})
        make(site, "part0", [0, 1], attributes={"set": "part"})
        make(site, "part1", [0, 1], more=["extra"], attributes={"set": "part"})
        store()
        d = read("esdm://?set=joins")
        rows = numpy.arange(12.).reshape(4, 3)
        expect(d["tas"]["values"] == rows.tolist() and d["time"]["values"] == [0, 1, 2, 3], d["tas"])
        expect(d["pr"]["values"] == (100 + rows).tolist() and d["pr"]["@scale_factor"] == "0.5", d["pr"])
        expect(d["hus"]["values"] == (50 + rows).tolist() and d["extra"]["values"] == [0, 1, 2, 3], d["hus"])
        expect(d["orog"]["values"] == [1, 2, 3] and d["@esdm_members"].startswith("5 containers"), d["@esdm_members"])
        expect("title" in d["@esdm_differs"].split(), d["@esdm_differs"])
        need_program("ncks", "cdo")
        for command in (["ncks", "-O", "-h"], ["cdo", "-s", "copy"]):
            client([*command, "esdm://?set=joins", site.file("out.nc")])
            text = run(["ncdump", "-v", "tas,hus", site.file("out.nc")]).stdout
            expect("9, 10, 11" in text and "59, 60, 61" in text, text)
        fails("set=times", "in/other0.nc", "in/other1.nc", "'time'", "2 and 3")
        fails("set=lats", "in/lat0.nc", "in/lat1.nc", "'lat'", "-45 and -44")
        fails("set=bounds", "in/fixed0.nc", "in/fixed1.nc", "lat_bnds", "-60", "-59")
        fails("set=part", "in/part0.nc", "in/part1.nc", "same coordinates")
        run([tool("esdm-ln"), "--pin", "?set=joins", "pinned"])
        expect(set(read("esdm://pinned")) >= {"tas", "pr", "hus"}, "pinned")


main(test_tiles_are_joined_along_two_dimensions, test_members_of_an_ensemble_may_lack_times,
     test_variables_of_several_containers_are_put_together, test_gaps_are_told_and_filled, test_members_of_an_ensemble_are_a_dimension,
     test_members_that_do_not_fit_are_told, test_times_less_than_a_millisecond_apart_are_told)
