#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Benchmarks ESDM on several ranks against stock netCDF-4 in parallel and PnetCDF, in one run.

    tests/bench/ranks.py --build build-bench [--ranks 1 2 4] [--repeat 5] [--gigabytes 0.5]
                         [--folder /dev/shm] [--tasks write,read,robin,block,commit] [--json FILE] [--priority]
                         [--bind core|none]

One variable is written step by step, by bands, then read; whole steps are written in turns ("robin") and
by parts of the time ("block"); and small records are committed. Every
repetition runs every variant in turn. Prints medians, what more ranks bring, and the ratios to
stock. mpirun binds each of one or two ranks to a core of its own: `--bind none` lets one rank use
all cores. The programs need OpenMPI, and are linked with the plug-in; `--build` must be an optimised build.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import mpirun  # pylint: disable=wrong-import-position

STEP_BYTES = 32 * 180 * 360 * 4
COMMITS = 200
# name: program, format
VARIANTS = {
    "netCDF-4 contiguous": ("bench_ranks_mpi", "contiguous"),
    "netCDF-4 chunked": ("bench_ranks_mpi", "chunked"),
    "PnetCDF (CDF-5)": ("bench_ranks_pnetcdf", "cdf5"),
    "ESDM": ("bench_ranks_mpi", "plain"),
}
SPEED = ("MB/s", lambda s, b: b / s / 1e6)
FIGURES = {"write": SPEED, "read": SPEED, "robin": SPEED, "block": SPEED,
           "commit": ("us each", lambda s, b: s / COMMITS * 1e6)}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--gigabytes", type=float, default=0.5)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("/dev/shm"))
    parser.add_argument("--tasks", default="write,read,robin,block,commit")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--priority", action="store_true", help="run with real-time priority")
    parser.add_argument("--bind", help="what mpirun binds ranks to; its own choice")
    options = parser.parse_args()
    options.build = options.build.resolve()
    options.steps = max(2, round(options.gigabytes * 1e9 / STEP_BYTES))
    options.tasks = options.tasks.split(",")
    return options


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        os.environ["ESDM_BUILD"] = str(options.build)
        self.env = mpirun.make_site(folder, "site", threads=None)

    def run(self, name, task, ranks):
        """Seconds of one run."""
        program, form = VARIANTS[name]
        path = f"esdm://{task}" if name == "ESDM" else str(self.folder / f"file-{task}")
        if task == "read":
            path = path.replace("read", "write")
        command = [str(self.options.build / "tests/bench" / program), task, path, form,
                   str(self.options.steps), str(COMMITS)]
        if self.options.priority:
            command = ["chrt", "--fifo", "10"] + command
        bound = ["--bind-to", self.options.bind] if self.options.bind else []
        line = [mpirun.launcher("openmpi"), *bound, "-n", str(ranks)] + command
        done = subprocess.run(line, env=self.env, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=600, check=False)
        if done.returncode:
            sys.exit(f"{' '.join(line)}: {done.stderr}")
        return float(done.stdout.split()[1])

    def remove(self):
        """What a write has left: the next one begins with nothing."""
        for file in self.folder.glob("file-*"):
            file.unlink()
        for name in ("write", "robin", "block", "commit"):
            subprocess.run([self.options.build / "tools/esdm-rm", "-f", name], env=self.env,
                           check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def measure(options):
    seconds = {}
    folder = pathlib.Path(tempfile.mkdtemp(prefix="esdm-bench.", dir=options.folder))
    try:
        bench = Bench(options, folder)
        names = list(VARIANTS)
        for repetition in range(options.repeat):
            turn = repetition % len(names)
            for ranks in options.ranks:
                for name in names[turn:] + names[:turn]:
                    for task in options.tasks:
                        key = (task, name, ranks)
                        seconds.setdefault(key, []).append(bench.run(name, task, ranks))
                    bench.remove()
            print(f"repetition {repetition + 1} of {options.repeat}", file=sys.stderr)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {key: statistics.median(values) for key, values in seconds.items()}


def print_tables(options, medians):
    size = options.steps * STEP_BYTES
    for task in options.tasks:
        unit, convert = FIGURES[task]
        print(f"\n{task}, {unit}; ratio to the first column")
        print(f"{'':22}" + "".join(f"{r:>10} ranks" for r in options.ranks))
        for name in VARIANTS:
            one = medians[task, name, options.ranks[0]]
            cells = ((convert(medians[task, name, r], size), one / medians[task, name, r])
                     for r in options.ranks)
            print(f"{name:22}" + "".join(f"{f:10.1f} {x:4.2f}x" for f, x in cells))
        for other in [name for name in VARIANTS if name != "ESDM"]:
            ratios = (medians[task, other, r] / medians[task, "ESDM", r] for r in options.ranks)
            print(f"{'ESDM / ' + other:22}" + "".join(f"{x:15.2f}x" for x in ratios))


def main():
    options = arguments()
    medians = measure(options)
    print_tables(options, medians)
    if options.json:
        options.json.write_text(json.dumps([{"task": t, "variant": n, "ranks": r, "median": s}
                                            for (t, n, r), s in medians.items()], indent=1))


if __name__ == "__main__":
    main()
