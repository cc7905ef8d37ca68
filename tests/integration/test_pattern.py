#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-pattern: what was asked for comes out, the same everywhere, in files and in containers."""

import json
import math
import subprocess

from esdmtest import Site, expect, expect_error, main, run, tool

SHAPE = "time=5,lat=90,lon=180"


def pattern(site, output, *options, check=True):
    done = run([tool("esdm-pattern"), "--json", *options, output], check=check, cwd=site.folder)
    return json.loads(done.stdout) if check else done


def values(site, name, variable="pattern"):
    """All values of a file as ncdump tells them; None where masked."""
    text = subprocess.run(["ncdump", "-p", "9,17", "-v", variable, name], cwd=site.folder,
                          check=True, capture_output=True, text=True).stdout
    data = text.split("data:", 1)[1].split("=", 1)[1].rsplit(";", 1)[0]
    return [None if word.strip() == "_" else float(word) for word in data.split(",")]


def test_same_options__same_values_in_file_and_container():
    with Site() as site:
        options = ["-s", SHAPE, "-p", "noise:frequency=5", "-m", "noise:0.05", "-r", "250,310",
                   "-l", "0.3", "-u", "--units", "K"]
        one = pattern(site, "one.nc", *options)
        two = pattern(site, "esdm:two.nc", *options)
        for key in ("values", "masked", "bytes", "smallest", "largest"):
            expect(one[key] == two[key], f"{key}: {one[key]} and {two[key]}")
        run([tool("esdm-cp"), "esdm:two.nc", "back.nc"], cwd=site.folder)
        expect(values(site, "one.nc") == values(site, "back.nc"), "file and container differ")
        header = run(["ncdump", "-h", "back.nc"], cwd=site.folder).stdout
        for text in ("time = UNLIMITED ; // (5 currently)", "lat = 90", "lon = 180",
                     'pattern:units = "K"', "float pattern(time, lat, lon)"):
            expect(text in header, f"{text} is missing in {header}")


def test_seed__another_field_of_the_same_kind():
    with Site() as site:
        pattern(site, "a.nc", "-s", "40x50", "-p", "random")
        pattern(site, "b.nc", "-s", "40x50", "-p", "random", "--seed", "2")
        a, b = values(site, "a.nc"), values(site, "b.nc")
        same = sum(x == y for x, y in zip(a, b))
        expect(same < 5, f"{same} of {len(a)} values are equal")
        mean = sum(a) / len(a)
        expect(abs(mean - 0.5) < 0.03, f"random numbers have the mean {mean}")


def test_patterns__have_their_shapes():
    with Site() as site:
        pattern(site, "constant.nc", "-s", "100", "-p", "constant", "-r", "7,7")
        expect(set(values(site, "constant.nc")) == {7.0}, "not constant")
        pattern(site, "steps.nc", "-s", "90", "-p", "steps:count=9", "-r", "0,8", "-t", "short")
        expect(values(site, "steps.nc") == [float(i // 10) for i in range(90)], "no nine steps")
        pattern(site, "waves.nc", "-s", "64", "-p", "waves:frequency=2", "-t", "double")
        wave = values(site, "waves.nc")
        expect(all(abs(x - 0.5 - 0.5 * math.sin(4 * math.pi * i / 64)) < 1e-12
                   for i, x in enumerate(wave)), "no sine")
        pattern(site, "noise.nc", "-s", "200", "-p", "noise:frequency=3,octaves=1", "-t", "double")
        noise = values(site, "noise.nc")
        expect(max(abs(x - y) for x, y in zip(noise, noise[1:])) < 0.05, "noise is not smooth")
        expect(max(noise) - min(noise) > 0.1, "noise is flat")


def test_mutators__work_in_their_order():
    with Site() as site:
        base = ["-s", "3x64", "-p", "random", "-t", "double"]
        pattern(site, "repeat.nc", *base, "-m", "repeat:8")
        rows = values(site, "repeat.nc")
        expect(all(rows[i] == rows[i - i % 8] for i in range(len(rows))), "no repetition")
        expect(len(set(rows)) == 24, f"{len(set(rows))} different values instead of 24")
        pattern(site, "noisy.nc", *base, "-m", "repeat:8", "-m", "noise:0.01")
        noisy = values(site, "noisy.nc")
        far = max(abs(x - y) for x, y in zip(rows, noisy))
        expect(0.005 < far <= 0.01, f"noise of {far} instead of at most 0.01")
        pattern(site, "later.nc", *base, "-m", "noise:0.01", "-m", "repeat:8")
        expect(len(set(values(site, "later.nc"))) == 24, "what is repeated last is not repeated")


def test_land__has_the_share_and_stays_where_it_is():
    with Site() as site:
        for share in (0.0, 0.1, 0.29, 0.75, 1.0):
            told = pattern(site, "land.nc", "-f", "-s", "2x100x100", "-p", "random", "-l", str(share))
            expect(abs(told["masked"] / told["values"] - share) <= 0.0002,
                   f"{told['masked']} of {told['values']} instead of {share}")
            field = values(site, "land.nc")
            expect(sum(x is None for x in field) == told["masked"], "told another number")
            expect([x is None for x in field[:10000]] == [x is None for x in field[10000:]],
                   "the mask moves")


def test_types__hold_the_range():
    with Site() as site:
        for kind, low, high in (("byte", -100, 100), ("ubyte", 0, 255), ("short", -9, 9),
                                ("ushort", 0, 60000), ("int", -5, 5), ("uint", 0, 4000000000),
                                ("float", -1, 1), ("double", -1, 1)):
            told = pattern(site, f"{kind}.nc", "-s", "4000", "-p", "random", "-t", kind, "-r",
                           f"{low},{high}")
            found = values(site, f"{kind}.nc")
            expect(min(found) >= low and max(found) <= high, f"{kind}: beyond the range")
            expect(max(found) - min(found) > 0.9 * (high - low), f"{kind}: range not used")
            expect(abs(told["largest"] - max(found)) < 1e-6 * high, f"{kind}: told wrong")


def test_large_fields__are_made_in_slabs():
    with Site() as site:
        for shape in ("3x1500x1500", "5000000", "2100x1x1100"):
            pattern(site, "esdm:big.nc", "-f", "-s", shape, "-p", "random")
            small = pattern(site, "esdm:big.nc", "-f", "-s", shape, "-p", "steps:count=4")
            expect((small["smallest"], small["largest"]) == (0.0, 1.0), f"{shape}: {small}")
            expect(small["values"] == math.prod(int(x) for x in shape.split("x")), "too few")


def test_wrong_options__are_named():
    with Site() as site:
        for words, options in ((["--shape"], []), (["12y"], ["-s", "12y"]), (["0"], ["-s", "0"]),
                               (["foo", "noise"], ["-s", "9", "-p", "foo"]),
                               (["count"], ["-s", "9", "-p", "steps:count=0"]),
                               (["hight"], ["-s", "9", "-p", "noise:hight=0"]),
                               (["shrink"], ["-s", "9", "-m", "shrink:4"]),
                               (["--range"], ["-s", "9", "-r", "5,1"]),
                               (["--land"], ["-s", "9", "-l", "1.5"]),
                               (["text"], ["-s", "9", "-t", "text"]),
                               (["twice"], ["-s", "a=9,a=8"]),
                               (["points"], ["-s", "x".join(["9" * 15] * 3)]),
                               (["cdf9"], ["-s", "9", "--format", "cdf9"])):
            done = pattern(site, "x.nc", *options, check=False)
            expect_error(done, *words)
            expect(done.returncode == 2, f"{options}: status {done.returncode}")
        pattern(site, "x.nc", "-s", "9")
        done = pattern(site, "x.nc", "-s", "9", check=False)
        expect(done.returncode == 4, "an existing file is replaced")
        expect_error(done, "x.nc", "--force")
        done = pattern(site, "nowhere/x.nc", "-s", "9", check=False)
        expect_error(done, "nowhere")
        expect(sorted(p.name for p in site.folder.glob("x.nc*")) == ["x.nc"], "leftovers")


main(
    test_same_options__same_values_in_file_and_container,
    test_seed__another_field_of_the_same_kind,
    test_patterns__have_their_shapes,
    test_mutators__work_in_their_order,
    test_land__has_the_share_and_stays_where_it_is,
    test_types__hold_the_range,
    test_large_fields__are_made_in_slabs,
    test_wrong_options__are_named,
)
