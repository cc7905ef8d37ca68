#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Sizes that data are to fit: esdm-advise --fit proposes accuracies, esdm-cp --fit makes copies that fit."""

import json

from esdmtest import SANITIZE, Site, by_size, expect, expect_error, main, run, tool

SHAPE = by_size("12x40x100", "12x40x100", "120x240x400")  # codecs of mode archive are tried again and again
ADVISED, ADVISED_TEXT = by_size(33000, 33000, 200000), by_size("32.2 KiB", "32.2 KiB", "195.3 KiB")
if SANITIZE:
    SHAPE, ADVISED, ADVISED_TEXT = "12x40x100", 33000, "32.2 KiB"


def pattern(site, name, kind, limits, shape=SHAPE):
    run([tool("esdm-pattern"), "-q", "-s", shape, "-p", kind, "-r", limits, site.file(name)])


def make_data(site):
    """Two variables of different magnitudes; that of the second one costs more."""
    site.file("data").mkdir()
    pattern(site, "data/smooth.nc", "noise:octaves=3", "250,300")
    pattern(site, "data/rough.nc", "noise:octaves=7", "0,0.02")
    return site.file("data")


def stored(*names):
    """Bytes of all variables of containers."""
    shown = json.loads(run([tool("esdm-stat"), "--accuracy", "--json", *names]).stdout)
    return {c["name"]: sum(d["stored_bytes"] for d in c["root"]["datasets"])
            for c in shown["containers"]}, shown


def fit(site, *arguments, check=True):
    done = run([tool("esdm-cp"), "-q", *arguments], check=check, cwd=site.folder)
    return json.loads(done.stdout)["fit"] if "--json" in arguments else done


def test_copies_fit():
    with Site() as site:
        data = make_data(site)
        run([tool("esdm-cp"), "-q", "-r", "--accuracy", "*: mode=archive", data, "esdm://exact"])
        exact = sum(stored("exact/smooth.nc", "exact/rough.nc")[0].values())
        wanted = exact // 4
        told = fit(site, "--json", "-r", f"--fit={wanted}", data, "esdm://small")
        sizes, shown = stored("small/smooth.nc", "small/rough.nc")
        print(exact, wanted, sizes, told)
        expect(0.6 * wanted < sum(sizes.values()) <= wanted, sizes)
        expect(told["bytes"] == sum(sizes.values()) and told["wanted_bytes"] == wanted, told)
        (one,) = told["variables"]
        expect(one["accuracy"].startswith("range=") and one["bytes"] == told["bytes"], one)
        share = float(one["accuracy"].split("=")[1].split(";")[0])
        for container, span in zip(shown["containers"], (50, 0.02)):
            error = container["root"]["datasets"][0]["accuracy"]["largest_error"]
            expect(0 < error <= share * span * 1.0001, (container["name"], error, share))
        # what fits without loss is not rounded
        told = fit(site, "--json", "-r", f"--fit={exact * 2}", data, "esdm://large")
        expect([v["rounded"] for v in told["variables"]] == [False] and told["rounds"] == 1, told)
        for name in ("smooth", "rough"):
            run([tool("esdm-diff"), "-q", f"esdm://large/{name}.nc", f"data/{name}.nc"],
                cwd=site.folder)


def test_coordinates_are_not_rounded():
    with Site() as site:
        pattern(site, "in.nc", "noise:octaves=5", "250,300")
        run([tool("esdm-cp"), "-q", "in.nc", "esdm://whole.nc"], cwd=site.folder)
        whole = stored("whole.nc")[0]["whole.nc"]
        told = fit(site, "--json", f"--fit={whole // 10}", "in.nc", "esdm://tenth.nc")
        expect(stored("tenth.nc")[0]["tenth.nc"] <= whole // 10, told)
        for variable in told["variables"]:
            expect(variable["rounded"] == (variable["name"] == "pattern"), variable)


def test_advice():
    with Site() as site:
        pattern(site, "in.nc", "noise:octaves=5", "250,300")
        told = json.loads(run([tool("esdm-advise"), "--json", "--fit", f"{ADVISED // 1000} kB", "in.nc"],
                              cwd=site.folder).stdout)["fit"]
        expect(told["wanted_bytes"] == ADVISED and 0 < told["bytes"] <= ADVISED, told)
        one = next(v for v in told["variables"] if v["rounded"])
        expect(0 < one["largest_error"] <= 50 and one["samples"] > 0, one)
        text = run([tool("esdm-advise"), "-q", f"--fit={ADVISED / 1e9:.6f}GB", "in.nc"], cwd=site.folder).stdout
        expect(f"To fit {ADVISED_TEXT}: about" in text and one["accuracy"] in text, text)


def test_what_cannot_be_is_told():
    with Site() as site:
        pattern(site, "in.nc", "noise:octaves=5", "250,300", "6x40x100")
        for program, more in (("esdm-advise", ()), ("esdm-cp", ("esdm://out.nc",))):
            for size, words in (("100", ["does not fit"]), ("many", ["takes a size", "many"]),
                                ("-5MB", ["takes a size"]), ("5 miles", ["takes a size"])):
                expect_error(run([tool(program), "-q", f"--fit={size}", "in.nc", *more], check=False,
                                 cwd=site.folder), "--fit" if size != "100" else "100 B", *words)
        expect_error(fit(site, "--fit=1MB", "--accuracy", "*: abs=1", "in.nc", "esdm://out.nc",
                         check=False), "--fit chooses")
        run([tool("esdm-cp"), "-q", "in.nc", "esdm://in.nc"], cwd=site.folder)
        expect_error(fit(site, "--fit=1MB", "esdm://in.nc", "copy.nc", check=False), "for containers")
        expect_error(run([tool("esdm-advise"), "--fit=1MB", "-a", "abs=1", "in.nc"], check=False,
                         cwd=site.folder), "--fit", "--accuracy")
        expect("out.nc" not in run([tool("esdm-ls")]).stdout, "something was copied")


main(test_copies_fit, test_coordinates_are_not_rounded, test_advice, test_what_cannot_be_is_told)
