#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""The accuracy that somebody stated of a variable does not travel to what is computed from it: programs
copy attributes to results of other magnitudes. Each operator leaves in ESDM, bit for bit, what it
leaves in a plain file."""

import json
import pathlib

from clients import python_of
from esdmtest import (Site, by_size, client, expect, expect_error, main, need_program, run, some, tool)

HERE = pathlib.Path(__file__).parent
FIELDS = HERE / "derived_fields.py"
STATED = "absolute_tolerance=0.01"


def lines():
    """(words, whether the numbers are handed on as they are)"""
    chosen = [l for l in (HERE / "derived.txt").read_text().splitlines() if l and l[0] != "#"]
    for line in some(chosen, len(chosen) // by_size(9, 7, 1)):
        words = line.lstrip("= ").split()
        words[1:1] = ["-s", "-O"] if words[0] == "cdo" else [] if words[0] == "nccopy" else ["-O"]
        yield words, line.startswith("=")


def fill_in(words, places):
    return [str(places[word[1:]]) if word.startswith("$") else word for word in words]


def series(site, python):
    """Plain files of which a person states what is accurate enough, the same in ESDM (rounded), and
    plain files of that."""
    run([python, FIELDS, "make", site.folder])
    plain = {key: site.file(f"{key}.nc") for key in "AB"}
    rounded = {key: site.file(f"rounded-{key}.nc") for key in "AB"}
    stored = {key: f"esdm://in/{key}.nc" for key in "AB"}
    for key, path in plain.items():
        run(["ncatted", "-h", "-a", "esdm_absolute_tolerance,tas,c,c,0.01 K", "-a",
             "esdm_relative_tolerance,flux,c,c,1 %", "-a", "esdm_mode,flux,c,c,speed", path])
        client(["ncks", "-h", path, stored[key]])
        expect(accuracy_of(f"in/{key}.nc")["stated"] == STATED, "the program that imports states it")
        expect(accuracy_of(f"in/{key}.nc")["changed_fragments"] > 0, "nothing is rounded")
        run([tool("esdm-cp"), stored[key], rounded[key]])
        header = run(["ncdump", "-h", rounded[key]]).stdout
        expect("esdm_absolute" not in header and "esdm_relative" not in header and
               f'tas:esdm_stored_accuracy = "{STATED}"' in header, header)
    return plain, rounded, stored


def accuracy_of(container, variable="tas"):
    shown = json.loads(run([tool("esdm-stat"), "--accuracy", "--json", container]).stdout)
    return next(d["accuracy"] for d in shown["containers"][0]["root"]["datasets"]
                if d["name"] == variable)


def stated_in(container):
    shown = json.loads(run([tool("esdm-stat"), "--accuracy", "--json", container]).stdout)
    return {d["name"]: d["accuracy"]["stated"] for d in shown["containers"][0]["root"]["datasets"]
            if "stated" in d.get("accuracy", {})}


def test_operators__derive_the_same_numbers():
    need_program("cdo", "ncks", "ncap2")
    python = python_of("debian")
    with Site() as site:
        plain, rounded, stored = series(site, python)
        pairs, copies = [], []
        for number, (words, copies_numbers) in enumerate(lines()):
            expected, of_plain = site.file(f"r{number}.nc"), site.file(f"p{number}.nc")
            run(fill_in(words, {**rounded, "O": expected}))
            done = client(fill_in(words, {**stored, "O": f"esdm://c/{number}"}))
            expect("not taken" not in done.stderr, done.stderr)
            pairs += [expected, f"esdm://c/{number}"]
            if number % 4 == 0:  # from files that ESDM was exported to
                client(fill_in(words, {**rounded, "O": f"esdm://r/{number}"}))
                pairs += [expected, f"esdm://r/{number}"]
            done = client(fill_in(words, {**plain, "O": f"esdm://p/{number}"}))
            if copies_numbers:
                copies.append((f"p/{number}", words))
            else:
                run(fill_in(words, {**plain, "O": of_plain}))
                pairs += [of_plain, f"esdm://p/{number}"]
        client([python, FIELDS, "compare", *pairs])
        for container, words in copies:
            stated = stated_in(container)
            expect(stated.get("tas", stated.get("t2m")) == STATED, f"{words}: {stated}")


def test_xarray__derives_the_same_numbers():
    need_program("ncks", "ncatted")
    python = python_of("debian")
    names = ("var", "std", "diff", "mean", "anomaly", "same")
    with Site() as site:
        plain, rounded, stored = series(site, python)
        pairs = []
        for kind, source, reference in (("c", stored["A"], rounded["A"]),
                                        ("p", plain["A"], plain["A"])):
            run([python, FIELDS, "xarray", reference, site.file(kind)])
            done = client([python, FIELDS, "xarray", source, f"esdm://{kind}"])
            expect(("not taken" in done.stderr) == (kind == "p"), done.stderr)
            for name in names:
                pairs += [site.file(f"{kind}-{name}"), f"esdm://{kind}-{name}"]
            expect(stated_in(f"{kind}-own") == {"small": "absolute_tolerance=0.0001"},
                   "what the program states itself counts")
        client([python, FIELDS, "compare", *pairs])


def test_results_of_plain_files__are_told():
    """A chain of programs on plain files ends in ESDM."""
    need_program("cdo", "ncks", "ncatted")
    python = python_of("debian")
    with Site() as site:
        plain, _, stored = series(site, python)
        done = client(["cdo", "-s", "regres", plain["A"], "esdm://trend"])
        expect("'esdm_absolute_tolerance' of variable 'tas'" in done.stderr and
               "--accuracy" in done.stderr, done.stderr)
        expect(done.stderr.count("not taken") == 1, done.stderr)
        # in a container a person states and takes back with ncatted
        client(["ncatted", "-h", "-a", "esdm_absolute_tolerance,tas,o,c,0.02 K", stored["A"]])
        expect(stated_in("in/A.nc")["tas"] == "absolute_tolerance=0.02", "stated anew")
        header = client(["ncdump", "-h", stored["A"]]).stdout
        expect('tas:esdm_stored_accuracy = "absolute_tolerance=0.02"' in header and
               "quantization_maximum_absolute_error = 0.02" in header, header)
        client(["ncatted", "-h", "-a", "esdm_stored_accuracy,tas,d,,", stored["A"]])
        expect("tas" not in stated_in("in/A.nc"), "taken back")
        # variables keep theirs under another name, and where others are appended
        client(["ncrename", "-h", "-v", "tas,t2m", stored["B"]])
        expect(stated_in("in/B.nc")["t2m"] == STATED, "renamed")
        client(["ncks", "-h", "-A", "-v", "tas", stored["A"], stored["B"]])
        client(["ncrename", "-h", "-v", "t2m,old", stored["B"]])
        stated = stated_in("in/B.nc")
        expect(stated["old"] == STATED and "tas" not in stated, stated)


def test_results_in_plain_files__are_not_rounded_to_nothing():
    """The attribute came into the plain file with a result: what the programs that hand numbers on, and
    esdm-cp, cannot know, but the numbers tell."""
    need_program("cdo", "ncks", "ncatted", "nccopy")
    python = python_of("debian")
    with Site() as site:
        plain, _, _ = series(site, python)
        for operator in ("regres", "timvar", "detrend"):
            run(["cdo", "-s", "-O", operator, plain["A"], site.file("result.nc")])
            expect("esdm_absolute_tolerance" in run(["ncdump", "-h", site.file("result.nc")]).stdout,
                   "cdo does not copy attributes")
            pairs = []
            for number, command in enumerate((["ncks", "-h"], ["nccopy"], ["cdo", "-s", "copy"],
                                              [tool("esdm-cp")])):
                url = f"esdm://{operator}/{number}"
                done = client([*command, site.file("result.nc"), url])
                expect("tas" in done.stderr and "16 times" in done.stderr, done.stderr)
                expect("tas" not in stated_in(f"{operator}/{number}"), command)
                pairs += [site.file("result.nc"), url]
            # relative ones fit every magnitude
            client([python, FIELDS, "compare", *pairs], env={"FIELDS_ONLY": "tas"})
        run([tool("esdm-cp"), "-f", "--accuracy", "tas: abs=0.01", site.file("result.nc"), "esdm://meant"])
        expect(stated_in("meant")["tas"] == STATED, "who says it means it")
        done = run([tool("esdm-cp"), "-f", "--accuracy", "*: abs=0.01", plain["A"], "esdm://all"])
        expect("'/flux' is not taken" in done.stderr and "16 times" in done.stderr, done.stderr)
        expect("flux" not in stated_in("all") or "absolute" not in stated_in("all")["flux"], stated_in("all"))
        header = client(["ncdump", "-h", "esdm://all"]).stdout
        expect("flux:quantization_maximum_absolute" not in header, header)


def test_appended_records__keep_the_containers_accuracy():
    need_program("cdo", "ncrcat", "ncks")
    python = python_of("debian")
    with Site() as site:
        plain, rounded, stored = series(site, python)
        for source in (plain["B"], rounded["B"], stored["B"]):
            client(["ncks", "-h", "-O", stored["A"], "esdm://long"])
            run([tool("esdm-cp"), "-f", stored["A"], "esdm://long"])
            client(["cdo", "-s", "cat", source, "esdm://long"])
            expect(stated_in("long")["tas"] == STATED, "appended to")
            client(["ncks", "-h", "-A", source, "esdm://long"])
            expect(stated_in("long")["tas"] == STATED, "overwritten")


PROGRAM = """
import netCDF4, sys
with netCDF4.Dataset(sys.argv[1], "w", format=sys.argv[2]) as nc:
    nc.createDimension("x", 300)
    v = nc.createVariable("tas", "f8", ("x",))
    v.esdm_absolute_tolerance = "0.01 K"
    v.units = "K"
    v[:] = [273 + i / 7 for i in range(300)]
    if len(sys.argv) > 3:
        w = nc.createVariable("late", "f8", ("x",))
        w.units = sys.argv[3]
        w.esdm_absolute_tolerance = "0.02 K"
        v.esdm_absolute_tolerance = "20 mK"
        w[:] = v[:]
"""


def test_statements__are_judged_when_definitions_end():
    python = python_of("debian")
    with Site() as site:
        site.file("program.py").write_text(PROGRAM, encoding="ascii")
        for kind in ("NETCDF4", "NETCDF3_CLASSIC"):
            client([python, site.file("program.py"), "esdm://a", kind, "K"])
            expect(stated_in("a") == {"tas": "absolute_tolerance=0.02",
                                      "late": "absolute_tolerance=0.02"}, stated_in("a"))
            before = run([tool("esdm-ls"), "-l"]).stdout
            for name in "a", "new":  # nothing comes of a program that fails
                done = client([python, site.file("program.py"), f"esdm://{name}", kind, "m"], check=False)
                expect_error(done, "esdm_absolute_tolerance", "'late'", "units 'K'", "'m'")
            expect(run([tool("esdm-ls"), "-l"]).stdout == before, "something was left or replaced")


def test_programs_that_fail__leave_what_was_there():
    need_program("ncap2", "ncatted", "ncks")
    python = python_of("debian")
    with Site() as site:
        _, _, stored = series(site, python)
        state = [run([tool("esdm-ls"), "-l"]).stdout, client(["ncdump", stored["A"]]).stdout]
        for command in (["ncap2", "-h", "-O", "-s", 'tas@esdm_absolute_tolerance="1 Pa"', stored["A"],
                         "esdm://new"],
                        ["ncatted", "-h", "-a", "esdm_absolute_tolerance,tas,o,c,1 Pa", stored["A"]]):
            expect_error(client(command, check=False), "'tas'", "units 'Pa'")
            now = [run([tool("esdm-ls"), "-l"]).stdout, client(["ncdump", stored["A"]]).stdout]
            expect(now == state, f"{command[0]}: {now[0]}, not {state[0]}")
        # definitions of other units, and statements beside them, in one go
        client(["ncap2", "-h", "-O", "-s", 'low=tas*1000;low@esdm_absolute_tolerance="5 mm";low@units="mm"',
                stored["A"], "esdm://new"])
        expect(stated_in("new") == {"low": "absolute_tolerance=5"}, stated_in("new"))


CHANGES = """
import netCDF4, sys
with netCDF4.Dataset(sys.argv[1], "a") as nc:
    v = nc["tas"]
    values = v[:] / 1000
    if sys.argv[2] in ("values first", "values first, restated"):
        v[:] = values
    elif sys.argv[2] == "in between":
        del v.units
    v.units = sys.argv[3]
    if sys.argv[2] == "values first, restated":
        v.esdm_absolute_tolerance = "1e-5 " + sys.argv[3]
    v[:] = values
"""


def test_units_that_change__end_the_statement():
    """A variable that is brought to other units in place: the tolerance was of the old ones."""
    need_program("ncks", "ncatted", "ncap2")
    python = python_of("debian")
    with Site() as site:
        _, rounded, stored = series(site, python)
        site.file("change.py").write_text(CHANGES, encoding="ascii")
        change = [python, site.file("change.py")]
        expected = site.file("expected.nc")
        run(["cp", rounded["A"], expected])
        run([*change, expected, "at once", "kW"])
        # few numbers wait in memory until the units are known
        for number, how in enumerate(("at once", "in between", "values first")):
            url = f"esdm://changed/{number}"
            run([tool("esdm-cp"), stored["A"], url])
            done = client([*change, url, how, "kW"])
            expect("accuracy was stated in 'K'" in done.stderr, done.stderr)
            client([python, FIELDS, "compare", expected, url], env={"FIELDS_ONLY": "tas"})
            expect("tas" not in stated_in(url), "it holds still")
        # numbers that were rounded before the units changed
        run([tool("esdm-pattern"), "-q", "-s", "time=30,lat=60,lon=80", "-u", "-v", "tas", site.file("large.nc")])
        run(["ncatted", "-h", "-a", "units,tas,o,c,K", site.file("large.nc")])
        run([tool("esdm-cp"), "--accuracy", "tas: abs=0.01 K", site.file("large.nc"), "esdm://late"])
        before = client(["ncdump", "esdm://late"]).stdout
        for how in "values first", "values first, restated":
            expect_error(client([*change, "esdm://late", how, "kW"], check=False), "'/tas'", "units", "'K'")
        expect_error(client(["ncap2", "-h", "-A", "-s", 'tas=tas/1000;tas@units="kW"', "esdm://late",
                             "esdm://late"], check=False), "units", "'K'")
        expect(client(["ncdump", "esdm://late"]).stdout == before, "something was committed")
        # the same unit by another name, and what only has another zero
        for units in ("kelvin", "degC"):
            client(["ncatted", "-h", "-a", f"units,tas,o,c,{units}", "esdm://late"])
            expect(stated_in("late")["tas"] == STATED, units)
        # through another door
        run([tool("esdm-attr"), "-V", "tas", "--set", "units=hPa", "late"])
        expect("tas" not in stated_in("late"), "esdm-attr")


def test_rules_of_a_site__leave_results_of_other_magnitudes():
    """Trends and variances have the names and attributes of what they were computed from."""
    need_program("cdo", "ncks", "ncap2")
    python = python_of("debian")
    with Site() as site:
        run([python, FIELDS, "make", site.folder])
        site.config.write_text(site.config.read_text().replace(
            '"metadata"', '"accuracy": [{"variable": "tas", "quantities": "abs=0.01 K"}], "metadata"', 1))
        run([tool("esdm-cp"), site.file("A.nc"), "esdm://A"])
        expect(accuracy_of("A")["changed_fragments"] > 0, "nothing is rounded")
        run([tool("esdm-cp"), "esdm://A", site.file("rounded.nc")])
        pairs = []
        for number, words in enumerate((["cdo", "-s", "-O", "regres"], ["cdo", "-s", "-O", "timvar"],
                                        ["ncap2", "-h", "-O", "-v", "-s", "tas=tas/100000"])):
            expected = site.file(f"r{number}.nc")
            run([*words, site.file("rounded.nc"), expected])
            client([*words, "esdm://A", f"esdm://r/{number}"])
            run([tool("esdm-cp"), expected, f"esdm://cp/{number}"])
            pairs += [expected, f"esdm://r/{number}", expected, f"esdm://cp/{number}"]
        run([python, FIELDS, "xarray", site.file("rounded.nc"), site.file("x")])
        client([python, FIELDS, "xarray", "esdm://A", "esdm://x"])
        pairs += [site.file("x-var"), "esdm://x-var"]
        client([python, FIELDS, "compare", *pairs], env={"FIELDS_ONLY": "tas"})


main(test_operators__derive_the_same_numbers, test_xarray__derives_the_same_numbers,
     test_results_of_plain_files__are_told,
     test_results_in_plain_files__are_not_rounded_to_nothing, test_appended_records__keep_the_containers_accuracy,
     test_statements__are_judged_when_definitions_end, test_programs_that_fail__leave_what_was_there,
     test_units_that_change__end_the_statement, test_rules_of_a_site__leave_results_of_other_magnitudes)
