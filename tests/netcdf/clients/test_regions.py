#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Accuracy by region and level on real fields: kept point by point inside and outside, cheaper than the
strict one everywhere, stated by esdm-cp, by attributes and by the site; told where coordinates come late."""

import json
import pathlib

from clients import python_of
from esdmtest import (Site, by_build, by_size, client, expect, expect_error, main, need_data, need_program, run,
                      tool)

SCRIPT = pathlib.Path(__file__).parent / "regions_fields.py"
STEPS = by_size(by_build(10, 20), 30, 100)
BOX = "-10,35,30,60"
BOTH = f"abs=0.5 K; box={BOX}: abs=0.01 K"


def field(site, kind="regular", source="cesm_TS", *attributes, path=None, steps=STEPS):
    """A NetCDF file of a real field with coordinates, or a container where `path` is one."""
    file = path or site.file(f"{source}-{kind}-{len(attributes)}-{steps}.nc")
    command = [python_of("debian"), SCRIPT, "make", file, need_data("fields") / f"{source}.nc", source,
               steps, kind, *attributes]
    return client(command) if path else (run(command), file)[1]


def check(file, container, name="ts", strict="0.01", loose="0.5", box=BOX, levels=()):
    """Points inside, the largest error there, and elsewhere."""
    done = client([python_of("debian"), SCRIPT, "check", file, f"esdm://{container}", name, strict,
                   loose, box, *levels])
    points, inside, outside = done.stdout.split()
    return int(points), float(inside), float(outside)


def stat(container, name="ts"):
    shown = json.loads(run([tool("esdm-stat"), "--accuracy", "--json", container]).stdout)
    return [d for d in shown["containers"][0]["root"]["datasets"] if d["name"] == name][0]


def copy(file, container, accuracy):
    return run([tool("esdm-cp"), "--accuracy", accuracy, file, f"esdm://{container}"])


def test_a_box_pays():
    with Site() as site:
        file = field(site)
        for mode in ("balanced", "archive"):
            sizes = {}
            for what, text in (("loose", "abs=0.5 K"), ("box", BOTH), ("strict", "abs=0.01 K")):
                copy(file, f"{what}.nc", f"ts: {text}; mode={mode}")
                sizes[what] = stat(f"{what}.nc")["stored_bytes"]
            print(mode, sizes)
            points, inside, outside = check(file, "box.nc")
            expect(points == 27 * 33 * STEPS, points)
            expect(0 < inside <= 0.01 and outside > 0.1, (inside, outside))
            expect(sizes["loose"] < sizes["box"], sizes)
            expect(sizes["box"] - sizes["loose"] < 0.1 * (sizes["strict"] - sizes["loose"]), sizes)
            region, = stat("box.nc")["accuracy"]["regions"]
            expect(region["absolute"] == 0.01 and 0 < region["largest_error"] <= 0.01, region)
            expect(0 < region["fragments"] < stat("box.nc")["fragment_count"], region)
            text = run([tool("esdm-stat"), "--accuracy", "box.nc"]).stdout
            expect(f"box={BOX}: absolute_tolerance=0.01; fragments there: " in text, text)
            run([tool("esdm-fsck"), "--data"])
            run([tool("esdm-rm"), *(f"{w}.nc" for w in sizes)])


def test_attributes_state_regions():
    """Taken by a program that copies the file; readers are told, and results of others are exact."""
    need_program("ncks", "ncdump", "cdo")
    with Site() as site:
        file = field(site, "regular", "cesm_TS", "esdm_absolute_tolerance=0.5 K",
                     f"esdm_regions=box={BOX}: abs=0.01 K")
        done = client(["ncks", file, "esdm://ncks.nc"])
        expect("strictest" not in done.stderr, done.stderr)
        _, inside, outside = check(file, "ncks.nc")
        expect(inside > 0 and outside > 0.1, (inside, outside))
        header = client(["ncdump", "-h", "esdm://ncks.nc"]).stdout
        expect("esdm_regions" not in header and "quantization_maximum_absolute_error = 0.5" in header,
               header)
        expect(f'esdm_stored_accuracy = "absolute_tolerance=0.5; box={BOX}: absolute_tolerance=0.01"'
               in header, header)
        client(["cdo", "-s", "mulc,2", "esdm://ncks.nc", "esdm://twice.nc"])
        expect(stat("twice.nc")["accuracy"]["lossy_fragments"] == 0, "a result is rounded")
        for text, words in ((f"box={BOX}: abs=1 Pa", ["'Pa'", "'K'"]),
                            (f"box={BOX}: mode=archive", ["tolerances alone"]),
                            ("mask=sftlf: abs=0.01", ["mask=VARIABLE>=NUMBER"])):
            wrong = field(site, "regular", "cesm_TS", "esdm_absolute_tolerance=0.5 K",
                          f"esdm_regions={text}")
            expect_error(client(["ncks", "-O", wrong, "esdm://wrong.nc"], check=False), "esdm_regions",
                         "'ts'", *words)


def test_coordinates_that_come_late():
    """Nothing tells then where the numbers lie: the strictest holds, and it is told."""
    stated = ["esdm_absolute_tolerance=0.5 K", f"esdm_regions=box={BOX}: abs=0.01 K"]
    with Site() as site:
        file = field(site)
        done = field(site, "regular", "cesm_TS", *stated, path="esdm://early.nc")
        expect("strictest" not in done.stderr, done.stderr)
        expect(check(file, "early.nc")[2] > 0.1, "loose outside")
        done = field(site, "late", "cesm_TS", *stated, path="esdm://late.nc")
        expect(done.stderr.count("keep the strictest accuracy of all its regions") == 1, done.stderr)
        expect("'ts'" in done.stderr and "no values yet" in done.stderr, done.stderr)
        _, inside, outside = check(file, "late.nc", loose="0.01")
        expect(0 < inside <= 0.01 and outside <= 0.01, (inside, outside))
        # what is in memory when they come is stored as if they had come before
        few = field(site, steps=1)
        done = field(site, "late", "cesm_TS", *stated, path="esdm://few.nc", steps=1)
        expect("strictest" not in done.stderr, done.stderr)
        expect(check(few, "few.nc")[2] > 0.1, "loose outside")


def test_rules_of_the_site():
    rule = {"variable": "t*", "units": "K", "quantities": BOTH}
    with Site(accuracy=[rule]) as site:
        file = field(site)
        run([tool("esdm-cp"), file, "esdm://ruled.nc"])
        _, inside, outside = check(file, "ruled.nc")
        expect(inside > 0 and outside > 0.1, (inside, outside))


def test_means_of_regions():
    """The mean of a box, of levels and of a mask: fragments at its edge keep it at each number."""
    mask = "mask=zland>=10"
    with Site() as site:
        file = field(site, "masked")
        for number, place in enumerate((f"box={BOX}", mask)):
            sizes = []
            for text in ("", "mean=1 mK", "abs=1 mK"):
                name = f"{number}-{len(sizes)}.nc"
                done = copy(file, name, f"ts: abs=0.5 K{'; ' * bool(text)}"
                                        f"{place + ': ' + text if text else ''}; mode=balanced")
                expect("strictest" not in done.stderr, done.stderr)
                sizes.append(stat(name)["stored_bytes"])
            points, mean = client([python_of("debian"), SCRIPT, "mean", file, f"esdm://{number}-1.nc", "ts",
                                   "0.001", "0.5", place.removeprefix("box=")]).stdout.split()
            print(place, sizes, points, mean)
            expect(int(points) > 0 and sizes[0] < sizes[1] <= sizes[2], sizes)
            expect(number == 1 or sizes[1] - sizes[0] < 0.8 * (sizes[2] - sizes[0]), "inside, means are cheap")
        # without coordinates nothing is known to lie inside
        done = field(site, "late", "cesm_TS", "esdm_absolute_tolerance=0.5 K",
                     f"esdm_regions=box={BOX}: mean=1 mK", path="esdm://late.nc")
        expect("strictest" in done.stderr, done.stderr)
        check(file, "late.nc", strict="0.001", loose="0.001")


def test_curvilinear_grids():
    """Latitudes and longitudes of two dimensions; land is missing; the box goes over the date line."""
    box = "160,-20,-120,20"
    with Site() as site:
        file = field(site, "curvilinear", "pop_SST")
        sizes = []
        for text in ("abs=0.1", f"abs=0.1; box={box}: abs=0.001", "abs=0.001"):
            copy(file, f"{len(sizes)}.nc", f"sst: {text}")
            sizes.append(stat(f"{len(sizes)}.nc", "sst")["stored_bytes"])
        points, inside, outside = check(file, "1.nc", "sst", "0.001", "0.1", box)
        print(sizes, points, inside, outside)
        expect(points > 0 and 0 < inside and outside > 0.01, (points, inside, outside))
        expect(sizes[0] < sizes[1] < sizes[0] + 0.6 * (sizes[2] - sizes[0]), sizes)


def test_masks():
    """Another variable tells where; esdm-cp writes it first, though its name comes last."""
    mask = "mask=zland>=10"
    with Site() as site:
        file = field(site, "masked")
        sizes = []
        for text in ("abs=0.5 K", f"abs=0.5 K; {mask}: abs=0.01 K", "abs=0.01 K"):
            done = copy(file, f"{len(sizes)}.nc", f"ts: {text}")
            expect("strictest" not in done.stderr, done.stderr)
            sizes.append(stat(f"{len(sizes)}.nc")["stored_bytes"])
        points, inside, outside = check(file, "1.nc", box=mask)
        print(sizes, points, inside, outside)
        expect(points > 0 and 0 < inside <= 0.01 and outside > 0.1, (points, inside, outside))
        expect(sizes[0] < sizes[1] < sizes[0] + 0.8 * (sizes[2] - sizes[0]), sizes)
        done = copy(file, "none.nc", "ts: abs=0.5 K; mask=land>=10: abs=0.01 K")
        expect("numbers of ts keep the strictest accuracy" in done.stderr and
               "name of its mask" in done.stderr, done.stderr)
        check(file, "none.nc", loose="0.01")


def test_levels():
    """Levels in Pa, of which a region is stated in hPa; one without units is another one."""
    file = sorted(need_data("cmip6").rglob("ta_day_*.nc"))[-1]
    with Site() as site:
        header = run(["ncdump", "-v", "plev", file]).stdout
        levels = [float(v) for v in header.split("plev = ")[-1].split(";")[0].split(",")]
        low = max(levels)
        hpa = f"{low / 100 - 1:g}..{low / 100 + 1:g}"
        done = copy(file, "levels.nc", f"ta: abs=0.5 K; level={hpa} hPa: abs=0.01 K")
        expect("strictest" not in done.stderr, done.stderr)
        everywhere = "-180,-90,179.99,90"
        _, inside, outside = check(file, "levels.nc", "ta", box=everywhere,
                                   levels=[f"{low - 100}..{low + 100}"])
        expect(0 < inside <= 0.01, inside)
        expect(len(levels) == 1 or outside > 0.05, outside)
        done = copy(file, "metres.nc", f"ta: abs=0.5 K; level={hpa} m: abs=0.01 K")
        expect("numbers of ta keep the strictest accuracy" in done.stderr and
               "units of its levels" in done.stderr, done.stderr)
        check(file, "metres.nc", "ta", loose="0.01", box=everywhere)
        del site


main(test_a_box_pays, test_attributes_state_regions, test_coordinates_that_come_late,
     test_rules_of_the_site, test_means_of_regions, test_curvilinear_grids, test_masks, test_levels)
