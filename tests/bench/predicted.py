#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""How well esdm-tune --learn predicts the speed of calls on this machine's disk and page cache: each run of a program from the others.

    python3 tests/bench/predicted.py --build build [--runs 8] [--rounds 150] [--seed 0] [--folder ON_A_DISK]
    python3 tests/bench/predicted.py --build build --records RECORDS    # what was recorded before, by --keep RECORDS
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from goals import Goals

PROGRAM = pathlib.Path(__file__).resolve().parent.parent / "support" / "disk_mix.py"
FILE_BYTES = 96 << 20


def record(options, folder):
    with tempfile.TemporaryDirectory(dir=options.folder or options.build) as disk:
        data = pathlib.Path(disk) / "data"
        with open(data, "wb") as file:
            for _ in range(FILE_BYTES >> 20):
                file.write(os.urandom(1 << 20))
            os.fsync(file.fileno())
        for i in range(options.runs):
            one = folder / f"run-{i}"
            one.mkdir(parents=True)
            subprocess.run([options.build / "tools/esdm-run", "-q", "--records", one, sys.executable, PROGRAM, data,
                            str(options.seed + i), str(options.rounds)], check=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default="build")
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--records", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.records or options.keep or pathlib.Path(scratch)
        if not options.records:
            record(options, folder)
        if options.keep:
            return 0
        told = json.loads(subprocess.run([options.build / "tools/esdm-tune", "--json", "--learn", *sorted(folder.iterdir())],
                                         check=True, stdout=subprocess.PIPE).stdout)
    errors = told["mean_errors"]
    print(f"{told['records']} records; mean errors in MB/s: " + ", ".join(f"{name} {error:.0f}" for name, error in errors.items()))
    if "again" in told:
        print(f"of {told['again']['records']} calls made again: the mean {told['again']['mean_error']:.0f}, the best model "
              f"{told['again']['error']:.0f}, at least {told['again']['least_error']:.0f}")
    goals = Goals()
    goals.least("the mean's error, of the best model's", errors["the mean"] / min(errors.values()), 4)
    return goals.end()


sys.exit(main())
