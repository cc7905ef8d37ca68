#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-cost: published figures follow from the inputs, other inputs give other figures, bad input."""

import copy
import json
import pathlib
import random
import tempfile

from esdmtest import SOURCE, Site, expect, expect_error, main, run, tool

EXAMPLE = SOURCE / "site-config/costs/climate.json"
YEARS = (2009, 2015, 2020, 2025)
# Thousand euros: computation, procurement, archive, total; and readings up to which recomputing pays.
PUBLISHED = {
    "CMIP5": {"computing": ("10.50", "0.55", "0.03", "0.001"), "procurement": ("45.02", "5.60", "0.93", "0.16"),
              "archive": ("10.35", "1.66", "0.41", "0.10"), "total": ("66.01", "7.82", "1.38", "0.26"),
              "readings_of_rounded": (5, 13, 44, 260)},
    "HD(CP)2": {"computing": ("165.07", "8.72", "0.44", "0.02"), "procurement": ("2.37", "0.30", "0.05", "0.01"),
                "archive": ("86.91", "13.91", "3.48", "0.87"), "total": ("255.29", "22.99", "3.97", "0.90"),
                "readings_of_rounded": (0, 1, 8, 44)},
}


def cost(centre, *options, check=True, as_json=True):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "centre.json")
        path.write_text(centre if isinstance(centre, str) else json.dumps(centre), encoding="utf-8")
        done = run([tool("esdm-cost"), *(["--json"] if as_json else []), *options, str(path)], check=check)
        return json.loads(done.stdout) if check and as_json else done


def example():
    return json.loads(EXAMPLE.read_text(encoding="utf-8"))


# ---- the formulas once more, from the README ------------------------------------------------------

def at(series, year):
    if not isinstance(series, dict):
        return series
    if "growth" in series:
        return series["value"] * series["growth"] ** (year - series["year"])
    points = sorted((float(y), v) for y, v in series.items())
    if year <= points[0][0]:
        return points[0][1]
    for (a, x), (b, y) in zip(points, points[1:]):
        if year <= b:
            part = (year - a) / (b - a)
            return x * (y / x) ** part if x > 0 and y > 0 else x + part * (y - x)
    return points[-1][1]


def of_year(centre, thing, bought, year):
    return (at(thing["purchase"], bought) / at(thing["life_years"], bought) + at(thing.get("upkeep_per_year", 0), bought)
            + at(thing.get("power_kw", 0), bought) * 8766 * at(centre["energy"]["price_per_kwh"], year))


def keeping(centre, thing, capacity, amount, start, years):
    total = 0
    while years > 1e-9:
        life = min(years, at(thing["life_years"], start))
        part = amount * thing.get("copies", 1) / (at(thing[capacity], start) * thing.get("utilisation", 1))
        done = 0
        while life - done > 1e-9:
            total += part * of_year(centre, thing, start, start + done) * min(1, life - done)
            done += 1
        start, years = start + life, years - life
    return total


def moving(centre, thing, tb, year):
    return tb * 1000 / at(thing["throughput_gb_per_s"], year) / 3600 * of_year(centre, thing, year, year) / 8766


def computing(centre, hours, year):
    thing = centre["computing"]
    return hours / (at(thing["capacity"], year) * 8766 * thing.get("utilisation", 1)) * of_year(centre, thing, year, year)


def expected(centre, case, year):
    volume, longest = case["volume_tb"], max(case["online_years"], case["archive_years"])
    told = {"computing": computing(centre, case["work_hours"], year),
            "procurement": keeping(centre, centre["storage"], "capacity_tb", volume, year, case["online_years"]),
            "access": moving(centre, centre["storage"], case["transfers"] * volume, year),
            "metadata": keeping(centre, centre["metadata"], "capacity_files", case["files"], year, longest),
            "archive": keeping(centre, centre["archive"], "capacity_tb", volume, year, case["archive_years"])}
    told["total"] = sum(told.values())
    return told


def expected_ways(centre, case, year):
    volume, years, read = case["volume_tb"], case["keep_years"], case["volume_tb"] * case.get("read_share", 1)
    steps = max(-int(-years // 1), 1)

    def average(price):
        return sum(price(year + years * (i + 0.5) / steps) for i in range(steps)) / steps

    def on(thing, amount):
        return keeping(centre, centre[thing], "capacity_tb", amount, year, years)

    disk = average(lambda y: moving(centre, centre["storage"], 1, y))
    tape = average(lambda y: moving(centre, centre["archive"]["drives"], 1, y))
    node = lambda y: computing(centre, at(centre["computing"]["node"], y), y)
    files = keeping(centre, centre["metadata"], "capacity_files", case["files"], year, years)
    ways = {"keep on disk": (files + on("storage", volume), read * disk),
            "archive": (files + on("archive", volume), read * (disk + tape))}
    for one in centre["compression"]:
        share = one["share"]
        encode = volume * 1e6 / at(one["write_mb_per_s"], year) / 3600 * node(year)
        decode = read * 1e6 / at(one["read_mb_per_s"], year + years / 2) / 3600 * average(node)
        ways["compress: " + one["name"]] = (files + on("storage", volume * share) + encode, read * share * disk + decode)
        ways["archive, compressed: " + one["name"]] = (files + on("archive", volume * share) + encode,
                                                       read * share * (disk + tape) + decode)
    double = centre["deduplication"]
    stored = volume * double["share"]
    table = keeping(centre, double["memory"], "capacity_tb", stored * double["entry_bytes"] / double["block_bytes"],
                    year, years)
    ways["de-duplicate"] = (files + on("storage", stored) + table, read * disk)
    ways["recompute"] = (0, average(lambda y: computing(centre, case["work_hours"], y)) + read * disk)
    return ways


def near(told, right, where):
    expect(abs(told - right) <= 1e-9 * abs(right) + 1e-12, f"{where}: {told} instead of {right}")


def compare(centre, told, years):
    for case, shown in zip(centre["cases"], told["cases"]):
        for year, one in zip(years, shown["years"]):
            for key, right in expected(centre, case, year).items():
                near(one[key], right, f"{case['name']} {year} {key}")
            ways = expected_ways(centre, case, year)
            expect({w["name"] for w in one["ways"]} == set(ways), f"ways: {one['ways']}")
            for way in one["ways"]:
                near(way["fixed"], ways[way["name"]][0], f"{case['name']} {year} {way['name']}, fixed")
                near(way["per_reading"], ways[way["name"]][1], f"{case['name']} {year} {way['name']}, a reading")


# ---- tests ----------------------------------------------------------------------------------------

def rounded(amount):
    text = f"{amount / 1000:.2f}"
    return text if float(text) > 0 else f"{amount / 1000:.3f}"


def test_published_figures__follow_from_the_inputs():
    told = cost(example())
    for case in told["cases"]:
        for key, right in PUBLISHED[case["name"]].items():
            for i, year in enumerate(YEARS):
                shown = case["years"][i][key]
                shown = shown if key == "readings_of_rounded" else rounded(shown)
                expect(shown == right[i], f"{case['name']} {year} {key}: {shown} instead of {right[i]}")
    expect(round(100 * told["deduplication_table_share"], 1) == 0.6, told["deduplication_table_share"])
    compare(example(), told, YEARS)


def test_tables__show_what_json_has():
    text = cost(example(), as_json=False).stdout
    for case, rows in PUBLISHED.items():
        block = text[text.index(case + ":"):].split("Kept for")[0]
        for label, key in (("computing", "computing"), ("procurement of disks", "procurement"), ("archive", "archive"),
                           ("total", "total"), ("by the rounded amounts above", "readings_of_rounded")):
            line = next(l for l in block.splitlines() if l.startswith(f"  {label}  "))
            columns = line[len(label) + 2:].split()[:4]
            expect(columns == [str(v) for v in rows[key]], f"{case} {label}: {line}")
    for words in ("1000 EUR", "is cheapest with", "computing it again for each reading", "0.59 % of the capacity"):
        expect(words in text, f"'{words}' is missing in {text}")


def test_other_inputs__give_other_figures():
    chance = random.Random(7)

    def shake(value):
        if isinstance(value, dict):
            return {k: v if k in ("years", "growth", "year") else shake(v) for k, v in value.items()}
        if isinstance(value, list):
            return [shake(v) for v in value]
        return value * chance.uniform(0.5, 2) if isinstance(value, float) or (
            isinstance(value, int) and value > 1) else value

    for turn in range(20):
        centre = shake(example())
        centre["years"] = list(YEARS) if turn % 2 else [2012, 2031]
        centre["energy"]["price_per_kwh"] = {"year": 2010, "value": 0.1, "growth": 1.05}
        centre["storage"]["capacity_tb"] = {"year": 2009, "value": 5000, "growth": chance.uniform(1.1, 1.6)}
        centre["computing"].update(utilisation=0.8, upkeep_per_year={"2009": 0, "2020": 1e6})
        centre["storage"].update(copies=1.25, utilisation=0.7)
        for thing in ("storage", "archive", "metadata", "computing"):
            centre[thing]["life_years"] = chance.choice((2, 3.5, 7))
        for technique in centre["compression"] + [centre["deduplication"]]:
            technique["share"] = chance.uniform(0.01, 1)
        for case in centre["cases"]:
            case["read_share"] = 0.25
        compare(centre, cost(centre), centre["years"])


def test_break_even__is_where_computing_again_stops_being_cheapest():
    for case in cost(example())["cases"]:
        for year in case["years"]:
            ways = {w["name"]: w for w in year["ways"]}
            again = ways.pop("recompute")
            most = year["recompute_up_to_readings"]
            for readings, right in ((most, True), (most + 1, False)):
                least = min(w["fixed"] + readings * w["per_reading"] for w in ways.values())
                is_cheapest = readings * again["per_reading"] <= least
                expect(is_cheapest == right, f"{case['name']} {year['year']}: {readings} readings")


def test_options__choose_case_years_and_readings():
    told = cost(example(), "--case", "CMIP5", "--from", "2018", "--from", "2022", "--years", "4", "--readings", "3")
    centre = example()
    centre["cases"] = [c | {"keep_years": 4, "readings": 3} for c in centre["cases"] if c["name"] == "CMIP5"]
    expect([c["name"] for c in told["cases"]] == ["CMIP5"], told)
    expect(told["cases"][0]["keep_years"] == 4 and told["cases"][0]["readings"] == 3, told)
    compare(centre, told, (2018, 2022))


def test_centre_without_archive_and_techniques__compares_what_it_has():
    centre = example()
    for key in ("archive", "metadata", "compression", "deduplication", "energy"):
        del centre[key]
    for case in centre["cases"]:
        del case["archive_years"]
    told = cost(centre)
    names = [w["name"] for w in told["cases"][0]["years"][0]["ways"]]
    expect(names == ["keep on disk", "recompute"], names)
    expect(told["cases"][0]["years"][0]["archive"] == 0, told)


def broken(change):
    centre = copy.deepcopy(example())
    change(centre)
    return centre


def test_bad_input__names_the_place():
    for words, status, centre in (
            (["storage", "'capacity_bt'", "capacity_tb"], 1, broken(lambda c: c["storage"].update(capacity_bt=1))),
            (["storage.purchase", "missing"], 1, broken(lambda c: c["storage"].pop("purchase"))),
            (["storage.life_years", "at least 0.05"], 1, broken(lambda c: c["storage"].update(life_years=0))),
            (["computing.capacity", "'soon'"], 1, broken(lambda c: c["computing"].update(capacity={"soon": 3}))),
            (["computing.capacity.2009", "number"], 1, broken(lambda c: c["computing"].update(capacity={"2009": "x"}))),
            (["energy.price_per_kwh.growth"], 1,
             broken(lambda c: c["energy"].update(price_per_kwh={"year": 2009, "value": 1, "growth": -1}))),
            (["cases[1].volume_tb"], 1, broken(lambda c: c["cases"][1].update(volume_tb=-3))),
            (["cases[0]", "archive"], 1, broken(lambda c: c.pop("archive"))),
            (["compression[0].share"], 1, broken(lambda c: c["compression"][0].update(share=0))),
            (["computing.node"], 1, broken(lambda c: c["computing"].pop("node"))),
            (["deduplication.memory"], 1, broken(lambda c: c["deduplication"].pop("memory"))),
            (["years"], 1, broken(lambda c: c.update(years=[]))),
            (["cases", "list"], 1, broken(lambda c: c.update(cases=3))),
            (["cases"], 3, broken(lambda c: c.pop("cases"))),
            (["no finite number", "grows"], 1, broken(lambda c: c["storage"].update(
                purchase={"year": 1901, "value": 1e30, "growth": 999}))),
            (["centre.json:1:"], 1, '{"currency": '), (["object"], 1, "[]")):
        done = cost(centre, check=False)
        expect_error(done, *words)
        expect(done.returncode == status, f"{words}: status {done.returncode}")
    for words, status, options in ((["no case 'X'", "CMIP5"], 3, ["--case", "X"]), (["--from"], 2, ["--from", "soon"]),
                                   (["--years"], 2, ["--years", "0"]), (["--readings"], 2, ["--readings", "-2"])):
        done = cost(example(), *options, check=False)
        expect_error(done, *words)
        expect(done.returncode == status, f"{options}: status {done.returncode}")
    expect(run([tool("esdm-cost"), "nowhere.json"], check=False).returncode == 3, "nowhere.json")
    expect(run([tool("esdm-cost")], check=False).returncode == 2, "no file")
    with Site():
        for data in ("esdm://run1.nc", "run1/ocean.nc"):
            expect_error(run([tool("esdm-cost"), data], check=False), "is data", "esdm-recipe cost", "climate.json")


main(
    test_published_figures__follow_from_the_inputs,
    test_tables__show_what_json_has,
    test_other_inputs__give_other_figures,
    test_break_even__is_where_computing_again_stops_being_cheapest,
    test_options__choose_case_years_and_readings,
    test_centre_without_archive_and_techniques__compares_what_it_has,
    test_bad_input__names_the_place,
)
