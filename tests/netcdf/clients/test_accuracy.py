#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Accuracy of variables: stated by attributes, by esdm-cp and by the site; kept on real fields; told by
esdm-stat and to readers."""

import json
import pathlib

from clients import python_of
from esdmtest import (Site, by_build, by_size, client, expect, expect_error, main, need_data, need_program, run,
                      tool)

HERE = pathlib.Path(__file__).parent
FIELDS = ["ccm_fice", "cesm_PRECT", "cesm_TS", "era5_clwc", "era5_q", "era5_u", "etopo5", "glosea_ts",
          "levitus_SALT", "merra_q", "pop_SSH", "pop_SST", "rap_pres"]

CDL = """netcdf in {
dimensions: x = 3000 ;
variables:
  float t(x) ; t:units = "K" ; %s
  int n(x) ;
data: t = %s ; n = %s ; }
"""


def make_file(site, name, attributes=""):
    """A NetCDF file with a temperature and a number."""
    values = ", ".join(f"{273 + (i * 7919 % 1000) / 37:.6f}" for i in range(3000))
    cdl = site.file(name + ".cdl")
    cdl.write_text(CDL % (attributes, values, ", ".join(str(i % 977) for i in range(3000))),
                   encoding="ascii")
    file = site.file(name + ".nc")
    run(["ncgen", "-4", "-o", file, cdl])
    return file


def accuracy_of(container, variable="t"):
    shown = json.loads(run([tool("esdm-stat"), "--accuracy", "--json", container]).stdout)
    for dataset in shown["containers"][0]["root"]["datasets"]:
        if dataset["name"] == variable:
            return dataset["accuracy"]
    return None


def test_real_fields():
    folder = need_data("fields")
    python = python_of("debian")
    script = HERE / "accuracy_fields.py"
    most, step = by_size((24, by_build(23, 11)), (30, 7), (100000, 1))
    with Site():
        for field in FIELDS:
            header = run(["ncdump", "-h", folder / f"{field}.nc"]).stdout
            name = [line.split("(")[0].split()[-1] for line in header.splitlines()
                    if line.strip().startswith(("float", "double")) and "(" in line][-1]
            for kind in ("float32", "float64"):
                done = client([python, script, f"esdm://{field}.{kind}", folder / f"{field}.nc", name,
                               most, step, kind])
                print(done.stdout.strip())
                expect("used" in done.stdout, done.stdout)
                run([tool("esdm-rm"), f"{field}.{kind}"])


def test_valid_range():
    """Numbers within it are not rounded out of it: readers would take them for missing ones."""
    with Site():
        for mode in ("balanced", "speed", "archive", "progressive"):
            done = client([python_of("debian"), HERE / "valid_range.py", f"esdm://{mode}.nc", mode])
            print(mode, done.stdout)
            expect(accuracy_of(f"{mode}.nc", "range")["stated"].startswith("absolute_tolerance=0.05"), "it is stated")


LATE = """
import netCDF4, sys
how, path = sys.argv[1:]
with netCDF4.Dataset(path, "a" if how == "again" else "w") as data:
    if how != "again":
        data.createDimension("x", 1000)
        v = data.createVariable("v", "f4", ("x",))
        v.units, v.esdm_absolute_tolerance = "%", "0.05 %"
    v = data["v"]
    if how == "late":
        v[:] = 99.98
    v.valid_max = 100.0
    v[:] = 99.98
"""


def test_valid_range_after_the_values__is_told():
    python = python_of("debian")
    with Site():
        for how, path, told in (("late", "esdm://late.nc", 1), ("before", "esdm://a.nc", 0), ("again", "esdm://a.nc", 0)):
            done = client([python, "-c", LATE, how, path])
            expect(done.stderr.count("'valid_max' of variable 'v'") == told, f"{how}: {done.stderr}")


SCALED = """
import netCDF4, numpy, sys
with netCDF4.Dataset(sys.argv[1], "w") as data:
    count = 20000 if len(sys.argv) == 2 else 8000000  # these are stored at once
    data.createDimension("x", count)
    v = data.createVariable("t", "i2", ("x",))
    v.units, v.scale_factor, v.esdm_absolute_tolerance = "K", 0.01, "0.2 K"
    v.set_auto_maskandscale(False)
    v[:] = (numpy.arange(count) * 7919 % 20011).astype("i2")
    if len(sys.argv) > 2:
        v.scale_factor = 0.1
"""


def test_what_readers_are_told_holds_for_all_that_is_stored():
    """Also for what was stored under a looser statement, or before another scale_factor."""
    need_program("ncatted", "ncdump")

    def told(name):
        lines = client(["ncdump", "-h", f"esdm://{name}"]).stdout.splitlines()
        return " ".join(line.strip() for line in lines if ":quantization_" in line)

    def change(name, *changes):
        client(["ncatted", "-h", *(word for change in changes for word in ("-a", change)), f"esdm://{name}"])
        return told(name)

    with Site() as site:
        file = make_file(site, "plain")
        run([tool("esdm-cp"), "--accuracy", "t: abs=0.5", file, "esdm://t.nc"])
        looser = "t:quantization_maximum_absolute_error = 0.5 ;"
        expect(told("t.nc") == looser, told("t.nc"))
        for stricter in ("esdm_absolute_tolerance,t,o,c,0.01 K", "esdm_significant_digits,t,o,i,4",
                         "esdm_relative_tolerance,t,o,d,1e-5"):
            expect(change("t.nc", stricter) == looser, f"{stricter}: {told('t.nc')}")
        expect("less accurately before" in client(["ncdump", "-h", "esdm://t.nc"]).stdout, "the statement alone")
        expect(change("t.nc", "esdm_stored_accuracy,t,d,,") == looser, "taken back")
        expect(change("t.nc", "esdm_significant_digits,t,o,i,3") == "", "another kind of bound")
        run([tool("esdm-cp"), "--accuracy", "t: digits=2", file, "esdm://d.nc"])
        expect(change("d.nc", "esdm_significant_digits,t,o,i,4") == "t:quantization_nsd = 1 ;", told("d.nc"))
        run([tool("esdm-cp"), "--accuracy", "t: abs=0.01", file, "esdm://l.nc"])
        expect(change("l.nc", "esdm_absolute_tolerance,t,o,c,0.3 K").endswith("= 0.3 ;"), told("l.nc"))
        python = python_of("debian")
        client([python, "-c", SCALED, "esdm://s.nc"])
        expect(accuracy_of("s.nc")["lossy_fragments"] > 0 and told("s.nc").endswith("error = 0.2 ;"), told("s.nc"))
        expect(change("s.nc", "scale_factor,t,o,d,0.1").endswith("error = 2. ;"), told("s.nc"))
        expect(change("s.nc", "scale_factor,t,o,d,0.01").endswith("error = 0.2 ;"), told("s.nc"))
        expect(change("s.nc", "scale_factor,t,o,d,0.001").endswith("error = 0.2 ;"), told("s.nc"))
        expect_error(client([python, "-c", SCALED, "esdm://late.nc", "late"], check=False), "scale_factor")


RESTATED = """
import netCDF4, numpy, sys
with netCDF4.Dataset(sys.argv[1], "w") as data:
    data.createDimension("x", 8000000)  # these are stored at once
    v = data.createVariable("t", "f4", ("x",))
    v.units = "K"
    for k, words in enumerate(sys.argv[2:]):
        name, value = words.split("=")
        v.setncattr(name, float(value) if "tolerance" in name else int(value))
        if k == 0:
            v[:] = 200 + numpy.random.default_rng(1).random(8000000) * 100
"""
MANY = """
import netCDF4, numpy, sys
with netCDF4.Dataset(sys.argv[1], "w") as data:
    data.createDimension("time", None)
    data.createDimension("x", 100)
    v = data.createVariable("t", "i2", ("time", "x"))
    v.units, v.scale_factor, v.esdm_absolute_tolerance = "K", 0.01, "0.2 K"
    v.set_auto_maskandscale(False)
    for time in range(260):
        v[time] = (numpy.arange(100) * 7919 % 20011).astype("i2")
        data.sync()
"""


def test_what_readers_are_told_holds_for_what_was_not_committed_or_is_too_much_to_ask():
    need_program("ncatted", "ncdump")

    def told(name):
        lines = client(["ncdump", "-h", f"esdm://{name}"]).stdout.splitlines()
        return [line.strip() for line in lines if ":quantization_" in line]

    python = python_of("debian")
    for first, then, wanted in (("esdm_significant_digits=2", "esdm_significant_digits=5", ["t:quantization_nsd = 1 ;"]),
                                ("esdm_relative_tolerance=0.1", "esdm_relative_tolerance=1e-5",
                                 ["t:quantization_maximum_relative_error = 0.1 ;"]),
                                ("esdm_relative_tolerance=0.1", "esdm_absolute_tolerance=0.01",
                                 ["t:quantization_maximum_relative_error = 0.1 ;"])):
        with Site():
            client([python, "-c", RESTATED, "esdm://r.nc", first, then])
            expect(accuracy_of("r.nc")["largest_error"] > 1 and told("r.nc") == wanted, f"{first}, {then}: {told('r.nc')}")
    with Site():  # before another scale_factor
        client([python, "-c", MANY, "esdm://m.nc"])
        expect(told("m.nc") == ["t:quantization_maximum_absolute_error = 0.2 ;"], told("m.nc"))
        for change in ("scale_factor,t,o,d,0.1", "esdm_absolute_tolerance,t,o,c,0.01 K"):
            client(["ncatted", "-h", "-a", change, "esdm://m.nc"])
            expect(told("m.nc") == [], f"{change}: {told('m.nc')}")


def test_attributes():
    """Programs that know nothing of ESDM state accuracies with attributes."""
    need_program("ncgen", "ncdump", "ncatted", "ncks")
    with Site() as site:
        file = make_file(site, "stated", "t:esdm_absolute_tolerance = 0.05 ; t:esdm_mode = \"archive\" ;")
        client(["nccopy", file, "esdm://nccopy.nc"])
        facts = accuracy_of("nccopy.nc")
        expect(facts["stated"] == "absolute_tolerance=0.050000000000000003; mode=archive" or
               facts["stated"] == "absolute_tolerance=0.05; mode=archive", facts)
        expect(0 < facts["largest_error"] <= 0.05 and facts["lossy_fragments"] == 1, facts)
        expect(facts["absolute"] == 0.05, facts)
        expect(accuracy_of("nccopy.nc", "n")["lossy_fragments"] == 0, "n is exact")
        header = client(["ncdump", "-h", "esdm://nccopy.nc"]).stdout
        expect("t:quantization_maximum_absolute_error = 0.05" in header, header)
        # the statement is taken; what readers see, and copy, states nothing
        expect("esdm_absolute_tolerance" not in header and
               't:esdm_stored_accuracy = "absolute_tolerance=0.05; mode=archive"' in header, header)
        # set by another program before the data come
        plain = make_file(site, "plain")
        client(["ncks", "-O", "-h", file, "esdm://ncks.nc"])
        expect(accuracy_of("ncks.nc")["lossy_fragments"] == 1, "ncks")
        client(["ncatted", "-h", "-a", "esdm_significant_digits,t,c,l,3", plain])
        client(["ncks", "-h", plain, "esdm://digits.nc"])
        facts = accuracy_of("digits.nc")
        expect(facts["stated"] == "significant_digits=3" and facts["lossy_fragments"] == 1, facts)
        header = client(["ncdump", "-h", "esdm://digits.nc"]).stdout
        expect("t:quantization_nsd = 2" in header, header)


WRONG = [
    ("t:esdm_absolut_tolerance = 1. ;", ["esdm_absolut_tolerance", "'t'", "no quantity"]),
    ("t:esdm_absolute_tolerance = -1. ;", ["esdm_absolute_tolerance", "negative"]),
    ("t:esdm_absolute_tolerance = \"1 Pa\" ;", ["units 'Pa'", "'K'"]),
    ("t:esdm_relative_finest = 1. ;", ["esdm_relative_finest", "without relative_tolerance"]),
    ("t:esdm_lossless_up_to = 1. ;", ["esdm_lossless_up_to", "may be off by"]),
    ("t:esdm_lossless_from = 1. ;", ["esdm_lossless_from", "may be off by"]),
    ("t:esdm_exact_values = 1. ;", ["esdm_exact_values", "may be off by"]),
    ("t:esdm_mode = \"best\" ;", ["esdm_mode", "energy or progressive"]),
    ("t:esdm_compression_speed = \"2 network\" ;", ["compression_speed", "not known"])]


def test_wrong_attributes_are_told():
    need_program("ncgen", "nccopy")
    with Site() as site:
        for i, (attributes, texts) in enumerate(WRONG):
            file = make_file(site, f"wrong{i}", attributes)
            expect_error(client(["nccopy", file, f"esdm://wrong{i}.nc"], check=False), *texts)


def header_of(path):
    return client(["ncdump", "-h", path]).stdout


def test_esdm_cp_takes_attributes():
    """As programs that write through NetCDF do; the strictest of them and of --accuracy counts."""
    need_program("ncgen", "ncdump")
    bound = "t:quantization_maximum_absolute_error = "
    with Site() as site:
        file = make_file(site, "stated", "t:esdm_absolute_tolerance = \"10 mK\" ;")
        run([tool("esdm-cp"), file, "esdm://a.nc"])
        facts = accuracy_of("a.nc")
        expect(facts["stated"] == "absolute_tolerance=0.01" and 0 < facts["largest_error"] <= 0.01,
               facts)
        expect(bound + "0.01 ;" in header_of("esdm://a.nc"), "readers are told")
        for quantities, strictest in [("abs=0.1", "0.01"), ("abs=0.001", "0.001")]:
            run([tool("esdm-cp"), "-f", "--accuracy", "t: " + quantities, file, "esdm://b.nc"])
            facts = accuracy_of("b.nc")
            expect(facts["stated"] == "absolute_tolerance=" + strictest, facts)
            expect(bound + strictest + " ;" in header_of("esdm://b.nc"), "readers are told")
        found = run([tool("esdm-find"), "-c", "quantization_maximum_absolute_error > 0"]).stdout
        expect(found.split() == ["a.nc", "b.nc"], found)
        # containers: the same numbers, and the same is stated
        out = site.file("out.nc")
        run([tool("esdm-cp"), "esdm://a.nc", out])
        run([tool("esdm-cp"), "esdm://a.nc", "esdm://c.nc"])
        expect(bound + "0.01 ;" in header_of(out), "out of a container")
        expect(accuracy_of("c.nc")["stated"] == "absolute_tolerance=0.01", accuracy_of("c.nc"))
        expect(accuracy_of("c.nc")["lossy_fragments"] == 0, "rounded twice")
        run([tool("esdm-cp"), "esdm://c.nc", site.file("c.nc")])
        texts = [run(["ncdump", "-n", "x", path]).stdout for path in (out, site.file("c.nc"))]
        expect(texts[0] == texts[1], "the copy of a container differs")
        run([tool("esdm-cp"), "--accuracy", "t: abs=1", "esdm://a.nc", "esdm://d.nc"])
        expect(accuracy_of("d.nc")["stated"] == "absolute_tolerance=0.01", accuracy_of("d.nc"))
        run([tool("esdm-cp"), out, "esdm://e.nc"])
        expect("stated" not in accuracy_of("e.nc"), "an exported file states nothing")
        run([tool("esdm-cp"), "esdm://e.nc", site.file("e.nc")])
        texts = [run(["ncdump", "-n", "x", path]).stdout for path in (out, site.file("e.nc"))]
        expect(texts[0] == texts[1], "out, in and out again differs")
        for i, (attributes, texts) in enumerate(WRONG):
            wrong = make_file(site, f"wrong{i}", attributes)
            expect_error(run([tool("esdm-cp"), wrong, f"esdm://wrong{i}.nc"], check=False),
                         *[text.strip("'") for text in texts])


def test_removal():
    """A site may want the attributes gone; what they stated stays."""
    need_program("ncgen", "ncdump", "nccopy")
    with Site() as site:
        config = json.loads(site.config.read_text())
        config["netcdf"] = {"accuracy_attributes": "remove"}
        site.config.write_text(json.dumps(config))
        file = make_file(site, "stated", "t:esdm_absolute_tolerance = \"50 mK\" ;")
        client(["nccopy", file, "esdm://removed.nc"])
        header = client(["ncdump", "-h", "esdm://removed.nc"]).stdout
        expect("esdm_" not in header and "quantization_maximum_absolute_error" in header, header)
        expect(accuracy_of("removed.nc")["stated"] == "absolute_tolerance=0.05", "stated")
        run([tool("esdm-cp"), file, "esdm://cp.nc"])
        header = header_of("esdm://cp.nc")
        expect("esdm_" not in header and "quantization_maximum_absolute_error" in header, header)
        expect(accuracy_of("cp.nc")["stated"] == "absolute_tolerance=0.05", "stated")


def test_esdm_cp():
    need_program("ncgen")
    with Site() as site:
        file = make_file(site, "in")
        run([tool("esdm-cp"), "--accuracy", "t: abs=10 mK; mode=archive", file, "esdm://cp.nc"])
        facts = accuracy_of("cp.nc")
        expect(facts["stated"] == "absolute_tolerance=0.01; mode=archive", facts)
        expect(0 < facts["largest_error"] <= 0.01, facts)
        shown = run([tool("esdm-stat"), "--accuracy", "cp.nc"]).stdout
        expect("accuracy: absolute_tolerance=0.01; mode=archive" in shown and "bound 0.01 K\n" in shown
               and " K (" in shown, shown)
        run([tool("esdm-cp"), file, "esdm://plain.nc"])
        shown = run([tool("esdm-stat"), "--accuracy", "plain.nc"]).stdout
        expect("nothing is lost: all numbers have their bits" in shown, shown)
        run([tool("esdm-cp"), "--accuracy", "*: abs=0.1", file, "esdm://all.nc"])
        expect(accuracy_of("all.nc")["lossy_fragments"] == 1, "a pattern")
        expect(accuracy_of("all.nc", "n")["lossy_fragments"] == 0, "of integers")
        # of several the strictest
        for i, options in enumerate([["t: abs=0.01 K; abs=0.1 K"], ["t: abs=0.1 K", "*t: abs=0.01 K"],
                                     ["t: abs=0.01 K", "t*: abs=0.1 K"]]):
            stated = [word for option in options for word in ("--accuracy", option)]
            run([tool("esdm-cp"), *stated, file, f"esdm://strict{i}.nc"])
            expect(accuracy_of(f"strict{i}.nc")["stated"] == "absolute_tolerance=0.01", options)
        # out again: a copy of what is there, which needs no accuracy
        run([tool("esdm-cp"), "esdm://cp.nc", site.file("out.nc")])
        for option, text in [("t: rel=2", "promises nothing"), ("t: digits=18", "from 1 to 17"),
                             ("t", "not NAME: QUANTITIES"), ("x: abs=1", "no variable 'x'; it has t"),
                             ("t:", "not NAME: QUANTITIES"), ("t: ;", "not NAME: QUANTITIES"), ("t: abs=0,01 K", "numbers have a point"),
                             ("t: abs=1 m", "units 'm'"), ("t: mode=best", "energy or progressive"),
                             ("t: max=1", "digits, bits")]:
            expect_error(run([tool("esdm-cp"), "--accuracy", option, file, "esdm://no.nc"],
                             check=False), text)


def test_names_that_no_file_of_a_tree_has():
    need_program("ncgen")
    with Site() as site:
        site.file("tree").mkdir()
        for name in ("tree/a", "tree/b"):
            cdl = site.file(name + ".cdl")
            cdl.write_text(f"netcdf x {{ dimensions: x = 2 ; variables: float tas(x) ; float {name[-1]}(x) ; "
                           "data: tas = 1, 2 ; }", encoding="ascii")
            run(["ncgen", "-o", site.file(name + ".nc"), cdl])
        copy = [tool("esdm-cp"), "-r", "-f", "-j", "2", site.file("tree"), "esdm://tree"]
        done = run([*copy, "--accuracy", "tass: abs=1", "--accuracy", "t*: abs=2"], check=False)
        expect_error(done, "'tass: abs=1'", "none of 2 copies", "did you mean 'tas'?")
        expect("t*" not in done.stderr, done.stderr)
        run([*copy, "--accuracy", "a: abs=1"])  # one file has it
        run([tool("esdm-ls"), "tree"])


def test_global_attributes_state_nothing_and_are_told_once():
    need_program("ncgen")
    with Site() as site:
        site.file("tree").mkdir()
        for name in "tree/a", "tree/b":
            make_file(site, name, ":esdm_absolute_tolerance = \"10 mK\" ; :esdm_mode = \"archive\" ;")
        done = run([tool("esdm-cp"), "-r", "-j", "2", site.file("tree"), "esdm://tree"])
        expect(done.stderr.count("global attribute 'esdm_") == 1 and "--accuracy" in done.stderr,
               done.stderr)
        expect("stated" not in accuracy_of("tree/a.nc"), "it states something")


def test_where_an_accuracy_comes_from():
    need_program("ncgen")
    rules = [{"variable": "n", "container": "ruled.nc", "quantities": "abs=2"}]
    with Site(accuracy=rules) as site:
        file = make_file(site, "in")
        attribute = make_file(site, "stated", "t:esdm_absolute_tolerance = \"10 mK\" ;")
        for source, options, name, text in [
                (file, ["--accuracy", "t: abs=0.01"], "call.nc", "0.01 (stated of this dataset, by"),
                (attribute, [], "attribute.nc", "0.01 (stated of this dataset, by an attribute"),
                (attribute, ["--accuracy", "t: abs=1 mK"], "both.nc", "0.001 (stated of this"),
                (file, [], "ruled.nc", "accuracy: absolute_tolerance=2 (a rule of the site's")]:
            run([tool("esdm-cp"), *options, source, f"esdm://{name}"])
            shown = run([tool("esdm-stat"), "--accuracy", name]).stdout
            expect(text in shown and "to be kept" not in shown, shown)
        expect("rule of the site" in accuracy_of("ruled.nc", "n")["origin"], "as JSON")


def test_numbers_that_did_not_change():
    need_program("ncgen")
    with Site() as site:
        site.file("whole.cdl").write_text(
            "netcdf x { dimensions: x = 3000 ; variables: double t(x) ; double u(x) ; "
            f"u:_FillValue = 7. ; data: t = {', '.join(map(str, range(3000)))} ; "
            f"u = {', '.join(str(i * 0.37 if i % 9 else 7) for i in range(3000))} ; }}", encoding="ascii")
        run(["ncgen", "-4", "-o", site.file("whole.nc"), site.file("whole.cdl")])
        run([tool("esdm-cp"), "--accuracy", "*: abs=0.01", site.file("whole.nc"), "esdm://whole.nc"])
        facts = accuracy_of("whole.nc")
        expect(facts["lossy_fragments"] == 1 and facts["changed_fragments"] == 0, facts)
        expect(accuracy_of("whole.nc", "u")["changed_fragments"] == 1, "u")
        shown = run([tool("esdm-stat"), "--accuracy", "whole.nc"]).stdout
        expect("changed numbers: 0 of 1" in shown and "changed numbers: 1 of 1" in shown, shown)
        expect(shown.count("numbers were to be kept") == 1, shown)  # the fill values of u


def test_site_rules():
    """The site states what programs do not."""
    need_program("ncgen", "ncdump", "nccopy")
    rules = [{"variable": "n", "quantities": "abs=2"},
             {"standard_name": "air_temperature", "units": "K", "container": "runs/*",
              "quantities": "abs=50 mK; compression_speed=0.001 network"}]
    with Site(accuracy=rules, speeds={"network": "1 MiB"}) as site:
        file = make_file(site, "in", "t:standard_name = \"air_temperature\" ;")
        for options in [], ["-d", "1"]:
            client(["nccopy", *options, file, "esdm://runs/a.nc"])
            facts = accuracy_of("runs/a.nc")
            expect(facts["absolute"] == 0.05 and 0 < facts["largest_error"] <= 0.05, facts)
            expect(accuracy_of("runs/a.nc", "n")["absolute"] == 2, "the other rule")
            header = client(["ncdump", "-h", "esdm://runs/a.nc"]).stdout
            expect("t:quantization_maximum_absolute_error = 0.05" in header, header)
            client(["nccopy", *options, file, "esdm://other.nc"])
            expect(accuracy_of("other.nc")["lossy_fragments"] == 0, "another container")
        stated = make_file(site, "stated", "t:standard_name = \"air_temperature\" ; "
                           "t:esdm_absolute_tolerance = 0. ;")
        client(["nccopy", stated, "esdm://runs/b.nc"])
        expect(accuracy_of("runs/b.nc")["lossy_fragments"] == 0, "the program wants it lossless")
        client(["nccopy", file, "esdm://runs/c.nc"])
        run([tool("esdm-cp"), file, "esdm://runs/d.nc"])
        expect(accuracy_of("runs/d.nc")["lossy_fragments"] == 1, "esdm-cp")
        header = client(["ncdump", "-h", "esdm://runs/d.nc"]).stdout
        expect("t:quantization_maximum_absolute_error = 0.05" in header, header)


GRID = """netcdf grid {
dimensions: time = 30 ; y = 20 ; x = 30 ; nv = 2 ; n = 5 ;
variables:
  double time(time) ; time:units = "days since 1850-01-01" ; time:bounds = "time_bnds" ;
  double time_bnds(time, nv) ;
  double stamp(time) ; stamp:units = "hours since 1900-01-01" ;
  float lat2(y, x) ; lat2:units = "degrees_north" ;
  float lon2(y, x) ;
  double y(y) ; y:standard_name = "projection_y_coordinate" ;
  double height ; height:units = "m" ;
  int crs ; crs:grid_mapping_name = "polar_stereographic" ;
  float area(y, x) ; area:units = "m2" ;
  int quality(y, x) ; quality:flag_values = 1, 2 ;
  int date(time) ; date:long_name = "current date (YYYYMMDD)" ;
  float ap(y) ;
  double hyam(y) ; double hybi(y) ; double gw(y) ; double y_bnds(y, nv) ;
  double b(y) ; b:long_name = "vertical coordinate formula term: b(k)" ;
  char label(n) ;
  float t(time, y, x) ; t:units = "K" ; t:coordinates = "lat2 lon2 height" ;
    t:cell_measures = "area: area" ; t:grid_mapping = "crs" ; t:formula_terms = "a: ap" ;
    t:standard_name = "air_temperature" ; t:positive = "up" ; t:long_name = "area of ap" ;
  // prose:
  :grid = "native t grid" ; :title = "t" ;
}
"""
AUXILIARY = ["time", "time_bnds", "stamp", "lat2", "lon2", "y", "height", "crs", "area", "quality", "ap",
             "date", "hyam", "hybi", "gw", "y_bnds", "b"]

FILL_GRID = """
import netCDF4, numpy, sys
with netCDF4.Dataset(sys.argv[1], "a") as nc:
    for name, v in nc.variables.items():
        if v.dtype.kind != "S":
            v[...] = (numpy.arange(v.size).reshape(v.shape) * 0.731 + 61234.5).astype(v.dtype)
"""


def grid_file(site):
    """A field on a curvilinear grid, with all that describes it."""
    site.file("grid.cdl").write_text(GRID, encoding="ascii")
    site.file("fill.py").write_text(FILL_GRID, encoding="ascii")
    run(["ncgen", "-4", "-o", site.file("grid.nc"), site.file("grid.cdl")])
    run([python_of("debian"), site.file("fill.py"), site.file("grid.nc")])
    return site.file("grid.nc")


def changed_in(container):
    shown = json.loads(run([tool("esdm-stat"), "--accuracy", "--json", container]).stdout)
    return {d["name"] for d in shown["containers"][0]["root"]["datasets"]
            if d.get("accuracy", {}).get("changed_fragments", 0) > 0}


def test_wildcards_round_no_coordinates():
    """Rounded, 365 days become 48, and flags other ones."""
    need_program("ncgen", "nccopy")
    with Site() as site:
        file = grid_file(site)
        done = run([tool("esdm-cp"), "--accuracy", "*: digits=3", file, "esdm://all.nc"])
        expect(changed_in("all.nc") == {"t"}, changed_in("all.nc"))
        expect("does not round" in done.stderr and done.stderr.count("esdm-cp:") == 1, done.stderr)
        for name in AUXILIARY:
            expect(name in done.stderr, done.stderr)
        done = run([tool("esdm-cp"), "--accuracy", "*: mode=archive", file, "esdm://mode.nc"])
        expect("does not round" not in done.stderr, "nothing is lost")
        expect(accuracy_of("mode.nc", "time")["stated"] == "mode=archive", "modes are for all")
        run([tool("esdm-cp"), "--accuracy", "lat2: digits=3", "--accuracy", "*_bnds: abs=1", file,
             "esdm://named.nc"])
        expect(changed_in("named.nc") == {"lat2"}, changed_in("named.nc"))
        done = run([tool("esdm-advise"), "-n", "300", "-q", "-a", "digits=3", file])
        expect("are kept without loss" in done.stderr and "lat2" in done.stderr and
               " t," not in done.stderr and not done.stderr.rstrip().endswith(" t"), done.stderr)
        shown = json.loads(run([tool("esdm-advise"), "-n", "300", "-q", "--json", "-a", "digits=3",
                                file]).stdout)
        lossy = {v["name"] for v in shown["variables"] for r in v["results"] if not r["exact"]}
        expect(lossy == {"t"}, shown)


def test_rules_round_no_coordinates():
    need_program("ncgen", "nccopy")
    rules = [{"variable": "lat2", "quantities": "digits=2"}, {"variable": "*", "quantities": "digits=3"}]
    for given, expected in ((rules, {"t", "lat2"}), ([{"quantities": "digits=3"}], {"t"})):
        with Site(accuracy=given) as site:
            file = grid_file(site)
            client(["nccopy", file, "esdm://a.nc"])
            run([tool("esdm-cp"), file, "esdm://b.nc"])
            for name in "a.nc", "b.nc":
                expect(changed_in(name) == expected, changed_in(name))
            shown = run([tool("esdm-stat"), "--accuracy", "a.nc"]).stdout
            expect("it is a time, which accuracy[" in shown, shown)


def test_copies_of_containers_are_not_rounded_again():
    """Where a rule of the site rounded, too; nor what was exported."""
    need_program("ncgen")
    rules = [{"variable": "t", "quantities": "abs=0.05 K"}]
    with Site(accuracy=rules) as site:
        run([tool("esdm-cp"), make_file(site, "in"), "esdm://a.nc"])
        expect(accuracy_of("a.nc")["changed_fragments"] > 0, "the rule counts")
        run([tool("esdm-cp"), "esdm://a.nc", site.file("a.nc")])
        config = json.loads(site.config.read_text())
        config["accuracy"][0]["quantities"] = "abs=3 K"  # it would be seen
        site.config.write_text(json.dumps(config))
        run([tool("esdm-cp"), "esdm://a.nc", "esdm://b.nc"])
        run([tool("esdm-cp"), site.file("a.nc"), "esdm://c.nc"])
        expected = run(["ncdump", "-n", "x", site.file("a.nc")]).stdout
        for name in "b.nc", "c.nc":
            expect(accuracy_of(name)["lossy_fragments"] == 0, name)
            run([tool("esdm-cp"), f"esdm://{name}", site.file(name)])
            expect(run(["ncdump", "-n", "x", site.file(name)]).stdout == expected, name)
        run([tool("esdm-cp"), "-f", "--accuracy", "t: abs=3 K", "esdm://a.nc", "esdm://b.nc"])
        expect(accuracy_of("b.nc")["lossy_fragments"] == 1, "who asks for it gets it")


def test_units_of_rules_are_those_of_the_dataset():
    """A rule that names no units of datasets is compared with each of them."""
    need_program("ncgen", "nccopy")
    for quantities, error in [("abs=0.01 K", None), ("abs=10 mK; mode=archive", None),
                              ("abs=1 m", "units 'm' are not those of the dataset, 'K'"),
                              ("abs=1 fish", "'fish'")]:
        with Site(accuracy=[{"variable": "none", "quantities": "abs=1"},
                            {"variable": "t", "quantities": quantities}]) as site:
            file = make_file(site, "in")
            for command in (["nccopy", file, "esdm://a.nc"],
                            [tool("esdm-cp"), file, "esdm://b.nc"]):
                done = client(command, check=error is None)
                if error is not None:
                    expect_error(done, "accuracy[1]", "'t'", error)
            if error is None:
                for name in ("a.nc", "b.nc"):
                    facts = accuracy_of(name)
                    expect(facts["absolute"] == 0.01 and facts["lossy_fragments"] > 0, facts)


def test_wrong_rules_are_told():
    for rule, text in [({"quantities": "rel=1 K"}, "%"), ({"variable": "t"}, "quantities"),
                       ({"quantities": "abs=x"}, "expected a number"), ({"quantities": "rel=100 %"}, "promises nothing"), ({"quantities": ""}, "nothing"),
                       ({"variables": "t", "quantities": "abs=1"}, "variable"),
                       ({"units": "K", "quantities": "abs=1 m"}, "units 'm'")]:
        with Site(make=False, accuracy=[rule]):
            expect_error(run([tool("esdm-mkfs")], check=False), "accuracy[0]", text)
    with Site(make=False, speeds={"network": 0}):
        expect_error(run([tool("esdm-mkfs")], check=False), "speeds.network")


def test_deflate_is_lossless_and_chosen():
    need_program("ncgen", "nccopy", "ncdump")
    with Site() as site:
        file = make_file(site, "in")
        for level, mode in [(1, "fast"), (4, "balanced"), (9, "archive")]:
            client(["nccopy", "-s", "-d", level, file, f"esdm://d{level}.nc"])
            facts = accuracy_of(f"d{level}.nc")
            expect(facts["stated"] == f"mode={mode}" and facts["lossy_fragments"] == 0, facts)
            header = client(["ncdump", "-hs", f"esdm://d{level}.nc"]).stdout
            expect(f"t:_DeflateLevel = {level}" in header and "t:_Shuffle" in header, header)
            client(["nccopy", f"esdm://d{level}.nc", site.file("back.nc")])
            back = run(["ncdump", site.file("back.nc")]).stdout.split("\n", 1)[1]
            expect(back == run(["ncdump", file]).stdout.split("\n", 1)[1], "the data differ")


DEFLATES = """
import ctypes
import sys
c = ctypes.CDLL("libnetcdf.so.19")
nc, x, v = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
def done(rc):
    assert rc == 0, rc
done(c.nc_create(sys.argv[1].encode(), 0x1000, ctypes.byref(nc)))
done(c.nc_def_dim(nc, b"x", ctypes.c_size_t(1000), ctypes.byref(x)))
done(c.nc_def_var(nc, b"t", 5, 1, ctypes.byref(x), ctypes.byref(v)))
for step in sys.argv[2:]:
    if step.isdigit():
        done(c.nc_def_var_deflate(nc, v, 0, 1, int(step)))
    else:
        done(c.nc_put_att_text(nc, v, b"esdm_mode", ctypes.c_size_t(len(step)), step.encode()))
done(c.nc_enddef(nc))
done(c.nc_put_var_float(nc, v, (ctypes.c_float * 1000)(*range(1000))))
done(c.nc_close(nc))
"""


def test_the_last_level_of_deflate_counts_and_an_attribute_above_all():
    with Site() as site:
        program = site.file("deflates.py")
        program.write_text(DEFLATES)
        for number, (*steps, mode) in enumerate([
                ("1", "fast"), ("1", "4", "balanced"), ("9", "4", "balanced"), ("9", "1", "fast"),
                ("4", "9", "archive"), ("1", "9", "2", "fast"), ("balanced", "1", "balanced"),
                ("1", "balanced", "balanced"), ("fast", "9", "fast"), ("speed", "9", "1", "speed")]):
            client(["/usr/bin/python3", program, f"esdm://{number}.nc", *steps])
            expect(accuracy_of(f"{number}.nc")["stated"] == f"mode={mode}", (steps, mode))


main(test_valid_range, test_valid_range_after_the_values__is_told,
     test_what_readers_are_told_holds_for_all_that_is_stored,
     test_what_readers_are_told_holds_for_what_was_not_committed_or_is_too_much_to_ask, test_wildcards_round_no_coordinates, test_rules_round_no_coordinates,
     test_copies_of_containers_are_not_rounded_again, test_real_fields, test_attributes, test_wrong_attributes_are_told, test_removal, test_site_rules, test_esdm_cp_takes_attributes,
     test_units_of_rules_are_those_of_the_dataset,
     test_wrong_rules_are_told, test_esdm_cp, test_names_that_no_file_of_a_tree_has,
     test_global_attributes_state_nothing_and_are_told_once, test_where_an_accuracy_comes_from,
     test_numbers_that_did_not_change,
     test_deflate_is_lossless_and_chosen,
     test_the_last_level_of_deflate_counts_and_an_attribute_above_all)
