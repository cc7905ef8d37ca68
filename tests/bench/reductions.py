#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""`esdm-reduce` beside `cdo`, programs with their start, in turns, on one container each:

    tests/bench/reductions.py --build build [--repeat 5] [--shapes 640x180x360 40x1000x2000]
                              [--rival FOLDER] [--tasks time grid time-to]

cdo reads the same container through netCDF and stores its result in a file on the same RAM disk; esdm-reduce
writes a list into one, or a container (`time-to`); with `time-c` esdm_reduce() is timed from opening to the result,
without the start of a program. Printed are medians, least and most of the seconds, and the
ratio. --rival: a build folder whose esdm-reduce runs in turns, too. All data lie in $TMPDIR, best on tmpfs.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

MAKE = """
import netCDF4, numpy, sys
steps, lats, lons = map(int, sys.argv[2].split("x"))
random = numpy.random.default_rng(1)
field = (280 + 20 * random.standard_normal((lats, lons))).astype("f4")
with netCDF4.Dataset(sys.argv[1], "w") as f:
    for name, values in (("time", None), ("lat", numpy.linspace(-89.5, 89.5, lats)),
                         ("lon", numpy.arange(lons) * 360.0 / lons)):
        f.createDimension(name, None if name == "time" else len(values))
        v = f.createVariable(name, "f8", (name,))
        v.units = {"time": "days since 2000-01-01", "lat": "degrees_north", "lon": "degrees_east"}[name]
        v.standard_name = {"time": "time", "lat": "latitude", "lon": "longitude"}[name]
        if values is not None:
            v[:] = values
    f["time"][:] = numpy.arange(steps)
    v = f.createVariable("t", "f4", ("time", "lat", "lon"))
    for step in range(steps):
        v[step] = field + numpy.float32(step) * numpy.float32(0.01)
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--rival", type=pathlib.Path)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--shapes", nargs="+", default=["640x180x360", "40x1000x2000"])
    parser.add_argument("--tasks", nargs="+", default=["time", "grid", "time-to", "time-c"],
                        choices=["time", "grid", "time-to", "time-c"])
    return parser.parse_args()


def commands(site, task, options):
    """{name: words}"""
    operator = {"grid": "fldmean"}.get(task, "timmean")
    over = {"grid": "lat,lon"}.get(task, "time")
    words = ["mean", "esdm://field", "t", "--over", over]
    words += ["--to", "esdm://mean", "--force"] if task == "time-to" else []
    made = {"esdm-reduce": [options.build.resolve() / "tools/esdm-reduce", *words]}
    if task == "time-c":
        made = {"esdm_reduce()": [options.build.resolve() / "tests/bench/bench_esdm", "reduce", "field", "-", "0", "0"]}
    elif options.rival:
        made["esdm-reduce of --rival"] = [options.rival.resolve() / "tools/esdm-reduce", *words]
    made["cdo"] = [options.build.resolve() / "tools/esdm-run", "cdo", "-s", "-O", operator, "esdm://field",
                   site.file("mean.nc")]
    return made


def seconds(site, words):
    with open(site.file("text"), "w", encoding="ascii") as text:
        begin = time.perf_counter()
        subprocess.run([str(w) for w in words], stdout=text, check=True)  # with a timeout it would look every 50 ms
        took = time.perf_counter() - begin
    return float(site.file("text").read_text().split()[1]) if words[1] == "reduce" else took


def measure(site, task, options):
    taken = {}
    programs = commands(site, task, options)
    for repetition in range(options.repeat + 1):
        for name, words in programs.items():
            took = seconds(site, words)
            if repetition > 0:
                taken.setdefault(name, []).append(took)
    return taken


def main():
    options = arguments()
    os.environ["ESDM_BUILD"] = str(options.build.resolve())
    os.environ.setdefault("TMPDIR", "/dev/shm")
    from esdmtest import Site, client  # pylint: disable=import-outside-toplevel
    print("| | seconds | cdo's, ratio |\n| --- | --- | ---: |", flush=True)
    for shape in options.shapes:
        with Site(parent=os.environ["TMPDIR"]) as site:
            site.file("make.py").write_text(MAKE)
            client(["/usr/bin/python3", site.file("make.py"), "esdm://field", shape])
            for task in options.tasks:
                taken = measure(site, task, options)
                cdo = statistics.median(taken["cdo"])
                for name, of in taken.items():
                    print(f"| {shape}, {task}, {name} | {statistics.median(of):.3f} ({min(of):.3f} to {max(of):.3f}) | "
                          f"{cdo / statistics.median(of):.2f} |", flush=True)


main()
