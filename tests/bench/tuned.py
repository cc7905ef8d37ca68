#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""How much faster than what a site begins with esdm-tune makes it, in how many runs, and what a genetic search takes for that.

    tuned.py --build BUILD [--kernels vorpal,vpic,gcrm] [--size 16M] [--latency 20] [--pairs 5] [--from defaults,narrow,narrower] [--json FILE]
    tuned.py --build BUILD --stations 10,50,250 [--days 365] [--pairs 3]

The target is the emulated one of the tests ("throttled"): each request waits `--latency` milliseconds, any number of them at once, as storage behind a
network does that has many servers. A site begins with the engine's own defaults, or "narrow" ("narrower"): one thread and fragments of 64 (32) KiB, that is one small request at a time, as a
program writes that was made for one disk. esdm-tune searches among threads and fragments, with the model and, by itself, with a genetic search of up to 60
runs; in the end the site as it is and what was found take turns. Time of a search is that of the tool from begin to end, these pairs included.

With `--stations` it is a plain netCDF file and a program of nine lines that nobody has tuned: daily surface temperature (steps of cesm_TS from $ESDM_TEST_DATA,
again and again), written with compression and nothing else stated, so in chunks of a day, and the mean over all days at some places, one place after the
other. esdm-tune tries chunk caches; it begins with that of netCDF. Once more, the program runs without ESDM, as it is at home.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

BEGIN = {"defaults": {}, "narrow": {"threads": 1, "fragment": "64K"}, "narrower": {"threads": 1, "fragment": "32K"}}
DATA = """
import sys, netCDF4
values = netCDF4.Dataset(sys.argv[3])["cesm_TS"][:]
with netCDF4.Dataset(sys.argv[1], "w") as d:
    for name, size in (("time", None), ("lat", 192), ("lon", 288)):
        d.createDimension(name, size)
    v = d.createVariable("TS", "f4", ("time", "lat", "lon"), zlib=True)
    for day in range(int(sys.argv[2])):
        v[day] = values[day % len(values)]
"""
SERIES = """
import random, sys, netCDF4
chance = random.Random(1)
v = netCDF4.Dataset(sys.argv[1])["TS"]
total = 0.0
for _ in range(int(sys.argv[2])):
    j, i = chance.randrange(v.shape[1]), chance.randrange(v.shape[2])
    total += float(v[:, j, i].mean())
print(total)
"""
PYTHON = "/usr/bin/python3"
TRY = ["--try=threads=1,2,4,8,16,32", "--try=fragment=64K,256K,1M,4M,16M"]


def tool(options, config, *words):
    env = {k: v for k, v in os.environ.items() if not k.startswith("ESDM_")}
    env.update(ESDM_CONFIG=str(config), ESDM_LIBRARY_DIR=str(options.build), ESDM_PLUGIN_PATH=str(options.build / "plugins"),
               ESDM_MONITOR="off")
    start = time.monotonic()
    done = subprocess.run([options.build / "tools" / words[0], *map(str, words[1:])], env=env, text=True, capture_output=True,
                          stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        sys.exit(f"{words}: {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout, time.monotonic() - start


def site(options, folder, engine):
    config = folder / "site.json"
    config.write_text(json.dumps({
        "targets": [{"name": "far", "plugin": "throttled", "directory": str(folder / "far"), "bytes_per_s": 2e9,
                     "latency_ms": options.latency, "service_ms": 0.01}],
        "metadata": {"plugin": "sqlite", "directory": str(folder / "metadata")}, "engine": engine}))
    tool(options, config, "esdm-mkfs")
    tool(options, config, "esdm-mkfs", "--calibrate=quick", "--seconds=0.4")
    return config


def measure(options, kernel, begin):
    words = ["esdm-tune", "--json", "--quiet", f"--kernel={kernel}", f"--size={options.size}"]
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        folder = pathlib.Path(name)
        config = site(options, folder, BEGIN[begin])
        text, search_s = tool(options, config, *words, *TRY, f"--pairs={options.pairs}")
        found = json.loads(text)
        row = {"kernel": kernel, "from": begin, "settings": found["settings"], "trials": len(found["trials"]), "search_s": search_s,
               "best": found["best"], "ratio": found["ratio"], "better": found["better"]}
        if found["seconds_best"]:
            row["before_s"] = statistics.median(found["seconds_as_it_is"])
            row["after_s"] = statistics.median(found["seconds_best"])
            row["factors"] = [a / b for a, b in zip(found["seconds_as_it_is"], found["seconds_best"])]
        if options.genetic:
            text, row["genetic_s"] = tool(options, config, *words, *TRY, "--pairs=0", "--trials=1", "--search=genetic",
                                          f"--genetic-trials={options.genetic}")
            row["genetic_trials"] = json.loads(text)["genetic"]["trials"]
            row["genetic_best_s"] = json.loads(text)["genetic"]["seconds"]
    return row


def paired(found):
    """Columns of the time before and after, and the factors of pairs."""
    before, after = found["seconds_as_it_is"], found["seconds_best"]
    factors = [a / b for a, b in zip(before, after)]
    return (f"{statistics.median(before):.2f} s | {statistics.median(after):.2f} s | **{statistics.median(factors):.1f}** "
            f"({min(factors):.1f} to {max(factors):.1f})")


def series(options):
    real = pathlib.Path(os.environ["ESDM_TEST_DATA"]) / "fields" / "cesm_TS.nc"
    print("| days, places | without ESDM | before | tuned | factor (pairs) | found | runs, time |\n| --- | ---: | ---: | ---: | --- | --- | --- |")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        folder = pathlib.Path(name)
        config = site(options, folder, {})
        data, script = folder / "TS.nc", folder / "series.py"
        script.write_text(SERIES)
        subprocess.run([PYTHON, "-c", DATA, data, str(options.days), real], check=True)
        for stations in options.stations:
            program = [PYTHON, script, data, stations]
            start = time.monotonic()
            subprocess.run(list(map(str, program)), check=True, stdout=subprocess.DEVNULL)
            alone_s = time.monotonic() - start
            text, search_s = tool(options, config, "esdm-tune", "--json", "--quiet", "--try=chunk-cache", "--trials=3",
                                  f"--pairs={options.pairs}", "--", *program)
            found = json.loads(text)
            print(f"| {options.days}, {stations} | {alone_s:.2f} s | {paired(found)} | chunk cache {found['best']['chunk-cache'] >> 20} MiB | "
                  f"{len(found['trials'])} of {found['settings']}, {search_s:.0f} s |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=lambda text: pathlib.Path(text).resolve(), required=True)
    parser.add_argument("--kernels", type=lambda text: text.split(","), default=["vorpal", "vpic", "gcrm"])
    parser.add_argument("--from", dest="begin", type=lambda text: text.split(","), default=["defaults", "narrow"])
    parser.add_argument("--size", default="16M")
    parser.add_argument("--latency", type=float, default=20)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--genetic", type=int, default=60, help="runs of the genetic search at most; 0: none")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--stations", type=lambda text: list(map(int, text.split(","))))
    parser.add_argument("--days", type=int, default=365)
    options = parser.parse_args()
    if options.stations:
        series(options)
        return
    rows = []
    print("| kernel | begins with | before | tuned | factor (pairs) | found | runs of the search, time | genetic search: runs, time, best |\n"
          "| --- | --- | ---: | ---: | --- | --- | --- | --- |")
    for kernel in options.kernels:
        for begin in options.begin:
            row = measure(options, kernel, begin)
            rows.append(row)
            best = ", ".join(f"{k} {v}" for k, v in row["best"].items())
            paired = "| | | (today's setting is the best) | " if "factors" not in row else (
                f"| {row['before_s']:.3f} s | {row['after_s']:.3f} s | {statistics.median(row['factors']):.1f} "
                f"({min(row['factors']):.1f} to {max(row['factors']):.1f}) | ")
            genetic = "" if "genetic_s" not in row else f"{row['genetic_trials']}, {row['genetic_s']:.0f} s, {row['genetic_best_s']:.3f} s"
            print(f"| {kernel} | {begin} {paired}{best} | {row['trials']} of {row['settings']}, {row['search_s']:.0f} s | {genetic} |", flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


main()
