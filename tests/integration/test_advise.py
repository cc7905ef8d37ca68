#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-advise: estimates agree with what is stored in the end, promises are measured, bad input."""

import json
import subprocess
import xml.dom.minidom

from esdmtest import SOURCE, Site, by_build, by_size, expect, expect_error, main, run, some, tool

ROWS, COLUMNS = by_size(by_build(20, 60), 120, 300), by_build(100, 400)
# This mode does not weigh times, so that estimates are always the same.
ACCURACY = "digits=4; mode=archive"


def pattern(site, output, *options):
    run([tool("esdm-pattern"), "-q", *options, output], cwd=site.folder)


def advise(site, *arguments, check=True):
    done = run([tool("esdm-advise"), "--json", *arguments], check=check, cwd=site.folder)
    return json.loads(done.stdout) if check else done


def result(told, variable, accuracy):
    one = next(v for v in told["variables"] if v["name"] == variable)
    return next(r for r in one["results"] if r["accuracy"] == accuracy)


def total(told, accuracy):
    return next(t for t in told["totals"] if t["accuracy"] == accuracy)


def test_total__is_what_storing_everything_takes():
    with Site() as site:
        site.file("data").mkdir()
        for i, kind in enumerate(("noise:octaves=1", "noise:octaves=6", "random", "steps")):
            pattern(site, f"data/{i}.nc", "-s", f"{4 + 3 * i}x{ROWS}x{COLUMNS}", "-p", kind, "-r", "250,300")
        told = advise(site, "-n", "30", "data")
        expect(told["sources"] == 4 and told["samples"] == 30, told)
        raw = sum((4 + 3 * i) * ROWS * COLUMNS * 4 for i in range(4))
        none = total(told, "lossless, speed")["bytes"]
        expect(none["low"] * 0.99 <= raw * 1.01, f"{raw} raw bytes, and {none}")
        stored = 0
        for i in range(4):
            one = advise(site, "-n", by_size("8", "10", "15"), f"data/{i}.nc", "-a", ACCURACY)
            share = result(one, "pattern", ACCURACY)["share_of_raw"]
            expect(share["low"] <= share["estimate"] <= share["high"] < 1.0, share)
            stored += share["estimate"] * (4 + 3 * i) * ROWS * COLUMNS * 4
        told = advise(site, "-n", "30", "--confidence", "0.9999", "data", "-a", ACCURACY)
        together = total(told, ACCURACY)["bytes"]
        expect(together["low"] <= stored <= together["high"],
               f"{stored} bytes file by file, {together} together")


def test_few_blocks__are_all_measured_once():
    """Two draws of two blocks hit one of them twice half of the time: an estimate without an interval."""
    with Site() as site:
        pattern(site, "two.nc", "-s", "2x900x800", "-p", "noise:octaves=4", "-r", "250,300")
        for seed in by_build([1], some(range(1, 5), by_size(2, 2, 4))):
            told = advise(site, "--seed", str(seed), "--block", "4", "two.nc", "-a", ACCURACY)
            share = result(told, "pattern", ACCURACY)["share_of_raw"]
            expect(share["low"] > 0.8 * share["estimate"] and share["high"] < 1.2 * share["estimate"],
                   f"seed {seed}: {told}")
        text = run([tool("esdm-advise"), "--block", "4", "two.nc", "-a", ACCURACY], cwd=site.folder).stdout
        expect("1 source takes" in text and "blocks of up to 4 MiB were measured" in text, text)
        text = run([tool("esdm-advise"), "-n", "1", "two.nc", "-a", ACCURACY, "--block", "4"],
                   cwd=site.folder).stdout
        expect("one sample tells no interval" in text, text)


def test_promises__are_measured():
    with Site() as site:
        pattern(site, "tas.nc", "-s", "8x200x200", "-r", "250,300", "--units", "K", "-l", "0.3")
        told = advise(site, "-n", "12", "tas.nc", "-a", "abs=10 mK", "-a", "digits=3")
        expect(result(told, "pattern", "lossless")["exact"], "lossless is not exact")
        lossy = result(told, "pattern", "abs=10 mK")
        expect(0 < lossy["largest_error"] <= 0.01, lossy)
        expect(not lossy["exact"] and lossy["not_applicable"] == 0, lossy)
        expect(lossy["ratio"] > result(told, "pattern", "lossless")["ratio"], "abs gains nothing")
        expect(result(told, "pattern", "digits=3")["largest_error"] <= 300 * 1e-3, "digits=3")
        for key in ("write_mib_per_s", "read_mib_per_s"):
            expect(lossy[key] > 0, f"{key} is {lossy[key]}")


def test_accuracy_of_other_units__is_told_and_kept_without_loss():
    with Site() as site:
        pattern(site, "pr.nc", "-s", "50x50", "--units", "kg m-2 s-1")
        told = advise(site, "-n", "3", "pr.nc", "-a", "abs=0.1 K")
        refused = result(told, "pattern", "abs=0.1 K")
        expect(refused["not_applicable"] == 3 and refused["exact"], refused)


def test_names__are_of_those_variables_alone():
    with Site() as site:
        pattern(site, "pr.nc", "-s", "50x50")
        told = advise(site, "-n", "3", "pr.nc", "-a", "pat*: abs=0.1", "-a", "tas: abs=0.1")
        expect(result(told, "pattern", "pat*: abs=0.1")["not_applicable"] == 0, told)
        expect(result(told, "pattern", "tas: abs=0.1")["exact"], told)
        done = run([tool("esdm-advise"), "-n", "3", "pr.nc", "-a", "tas: abs=0.1"], cwd=site.folder)
        expect("'tas: abs=0.1' fits none of the variables" in done.stderr, done.stderr)
        for option, text in [("pattern:", "NAME: QUANTITIES"), ("tas: max=1 K", "no quantity 'max'")]:
            expect_error(advise(site, "pr.nc", "-a", option, check=False), text)


def test_samples__follow_confidence_and_error():
    with Site() as site:
        pattern(site, "big.nc", "-s", "60x500x500", "-p", "constant", "--format", "classic")
        blocks = ["--block", "4", "big.nc"]
        normal = advise(site, *blocks, "-a", "digits=3")["samples"]
        strict = advise(site, "--error", "0.04", *blocks, "-a", "digits=3")["samples"]
        loose = advise(site, "--confidence", "0.8", "--error", "0.1", *blocks)["samples"]
        expect(loose < normal <= strict <= 60, f"{loose}, {normal} and {strict} samples")
        one, two = (advise(site, "-n", "9", "--seed", seed, *blocks)["samples"]
                    for seed in ("1", "2"))
        expect(one == two == 9, f"{one} and {two} samples instead of 9")


def test_samples__of_small_files_are_as_many_as_their_blocks_ask_for():
    with Site() as site:
        site.file("data").mkdir()
        for i in range(40):  # less than 1 MiB together, in 40 blocks
            pattern(site, f"data/{i}.nc", "-s", "50x50", "--seed", str(i + 1))
        for error, count in (("0.05", 37), ("0.2", 16)):  # Cochran: 384.1 and 24.01, corrected
            told = advise(site, "--error", error, "data", "-a", "mode=speed")
            expect(told["samples"] == count, f"{told['samples']} samples for {error}")


def test_same_seed__draws_the_same_blocks():
    with Site() as site:
        site.file("data").mkdir()
        for i in range(by_build(6, 1)):  # blocks of several files, or of one
            pattern(site, f"data/{i}.nc", "-s", by_build("4x60x60", "40x300x300"), "-p", f"noise:octaves={3 - i % 3}", "--seed",
                    str(i + 1))
        # Other modes weigh the time that codecs take, which is not always the same.
        shares = [total(advise(site, "-n", "1", "--block", "4", "--seed", seed, "data", "-a", "mode=archive"),
                        "mode=archive")["share_of_now"]["estimate"] for seed in ("7", "7", "8")]
        expect(shares[0] == shares[1] != shares[2], shares)


def test_containers__are_sources():
    with Site() as site:
        pattern(site, "esdm:exp/a.nc", "-s", "10x200x200")
        pattern(site, "esdm:exp/b.nc", "-s", "10x200x200", "--seed", "2")
        told = advise(site, "-n", "6", "esdm:exp")
        expect(told["sources"] == 2, told["sources"])
        expect(told["bytes"] >= 2 * 10 * 200 * 200 * 4, told["bytes"])
        expect(advise(site, "-n", "1", "esdm:")["sources"] == 2, "not all containers")
        done = advise(site, "esdm:nothing", check=False)
        expect_error(done, "nothing")
        expect(done.returncode == 3, f"status {done.returncode}")


def test_price_and_plot__come_from_the_estimates():
    with Site() as site:
        pattern(site, "a.nc", "-s", "4x200x200")
        told = advise(site, "-n", "4", "--price", "1e6", "--years", "5", "--plot", "p.svg", "a.nc")
        one = total(told, "lossless, archive")
        expect(abs(one["cost"]["estimate"] - one["bytes"]["estimate"] / 1e12 * 5e6) < 1e-9, one)
        expect(abs(told["cost_now"] - told["bytes"] / 1e12 * 5e6) < 1e-9, told["cost_now"])
        svg = xml.dom.minidom.parse(str(site.file("p.svg")))
        expect(len(svg.getElementsByTagName("rect")) >= 1 + 1 + 5, "bars are missing")
        text = subprocess.run([tool("esdm-advise"), "-n", "4", "--price", "25", "a.nc"],
                              cwd=site.folder, check=True, capture_output=True, text=True).stdout
        for words in ("pattern", "lossless, archive", "EUR in 10 years", "95 %"):
            expect(words in text, f"'{words}' is missing in {text}")


def test_centre__states_the_price():
    with Site() as site:
        pattern(site, "a.nc", "-s", "4x200x200")
        centre = ["--centre", str(SOURCE / "site-config/costs/climate.json")]
        told = advise(site, "-n", "2", *centre, "--from", "2015", "--years", "5", "a.nc")
        price = (5.04e6 + 5 * 200 * 8766 * 0.12) / 45000  # of a TB on disk for 5 years
        expect(abs(told["cost_now"] / (told["bytes"] / 1e12 * price) - 1) < 1e-9, told["cost_now"])
        for words, options in ((["--price"], [*centre, "--price", "3"]), (["--from"], [*centre, "--from", "x"]),
                               (["nowhere"], ["--centre", "nowhere.json"])):
            expect_error(advise(site, *options, "a.nc", check=False), *words)


def test_bad_input__is_named_and_the_rest_is_advised():
    with Site() as site:
        site.file("data").mkdir()
        pattern(site, "data/good.nc", "-s", "4x200x200")
        site.file("data/bad.nc").write_bytes(b"CDF\x01" + bytes(range(256)) * 2000)
        done = run([tool("esdm-advise"), "--json", "-n", "30", "data"], cwd=site.folder)
        expect("bad.nc" in done.stderr and "left out" in done.stderr, done.stderr)
        told = json.loads(done.stdout)
        expect(told["unreadable"] == 1 and told["sources"] == 1 and told["samples"] == 30, told)
        site.file("broken").mkdir()
        site.file("broken/bad.nc").write_bytes(b"no NetCDF at all")
        expect_error(advise(site, "broken", check=False), "bad.nc", "nothing")
        for words, status, arguments in ((["nowhere"], 3, ["nowhere.nc"]),
                                         (["NetCDF"], 3, ["empty"]),
                                         (["--confidence"], 2, ["--confidence", "2", "data"]),
                                         (["--error"], 2, ["--error", "x", "data"]),
                                         (["--block"], 2, ["--block", "1", "data"]),
                                         (["--samples"], 2, ["-n", "0", "data"]),
                                         (["--samples"], 2, ["-n", "-1", "data"]),
                                         (["nonsense"], 2, ["-a", "nonsense=1", "data"]),
                                         (["which"], 2, [])):
            site.file("empty").mkdir(exist_ok=True)
            done = advise(site, *arguments, check=False)
            expect_error(done, *words)
            expect(done.returncode == status, f"{arguments}: status {done.returncode}")
        expect(not list(site.file("data").glob("*.esdm*")), "leftovers")


main(
    test_total__is_what_storing_everything_takes,
    test_few_blocks__are_all_measured_once,
    test_promises__are_measured,
    test_accuracy_of_other_units__is_told_and_kept_without_loss,
    test_names__are_of_those_variables_alone,
    test_samples__follow_confidence_and_error,
    test_samples__of_small_files_are_as_many_as_their_blocks_ask_for,
    test_same_seed__draws_the_same_blocks,
    test_containers__are_sources,
    test_price_and_plot__come_from_the_estimates,
    test_centre__states_the_price,
    test_bad_input__is_named_and_the_rest_is_advised,
)
