#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Compares what two versions of ESDM take of the processors, row by row (bench_rows.c).

    versions.py OLD-LIBRARY OLD-PROGRAM NEW-LIBRARY NEW-PROGRAM [--pairs 12] [--instructions]
                [--rows write,read,…] [--rounds 1] [--folder /dev/shm]

LIBRARY is the folder of libesdm.so, PROGRAM bench_rows that was compiled with the headers of that version:

    cc -O2 -Isrc/include tests/bench/bench_rows.c -o rows -LLIBRARY -lesdm

Both run in turn, beginning with another one each time; the ratio is new to old, pair by pair. Where the kernel places a
store moves reads by some percent: with --rounds both are made anew so often, and each round's median counts. On a machine that others
use processor time still moves by some percent, instructions (of callgrind) do not: they are taken as the difference of
two runs, so that beginning and end do not count. One thread does the work.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile

# Of each row: engine settings, and how often it is done for instructions (two runs) and for time.
PARTS = {"fragment": "4 KiB", "inline": 0}
ROWS = {"write": ({}, (2, 10), 40), "read": ({}, (1, 3), 3), "point": ({}, (10, 60), 60),
        "column": ({}, (5, 30), 30), "create": ({}, (20, 120), 240), "open": ({}, (50, 450), 900),
        "append": ({}, (2000, 12000), 24000), "parts": (PARTS, (1, 2), 2), "commit": (PARTS, (1, 2), 2),
        "recommit": (PARTS, (2, 12), 36)}


class Version:
    def __init__(self, folder, library, program):
        self.library, self.program = library, program
        self.configs = {}
        for name, engine in (("plain", {}), ("parts", PARTS)):
            place = folder / name
            place.mkdir(parents=True)
            self.configs[bool(engine)] = place / "site.json"
            self.configs[bool(engine)].write_text(json.dumps({
                "site": {"name": "bench"}, "metadata": {"plugin": "sqlite", "directory": "metadata"},
                "targets": [{"name": "disk", "plugin": "posix", "directory": "packs"}],
                "durability": "process", "engine": {"threads": 1, **engine}}))

    def run(self, engine, row, times, tool=()):
        env = {**os.environ, "LD_LIBRARY_PATH": self.library, "ESDM_CONFIG": str(self.configs[bool(engine)])}
        return subprocess.run([*tool, self.program, row, str(times)], env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=True)

    def prepare(self, mkfs):
        for config in self.configs.values():
            for name in "metadata", "packs":
                shutil.rmtree(config.parent / name, ignore_errors=True)
        for engine in ({}, PARTS):
            subprocess.run([mkfs], check=True, stdout=subprocess.DEVNULL,
                           env={**os.environ, "LD_LIBRARY_PATH": self.library,
                                "ESDM_CONFIG": str(self.configs[bool(engine)])})
            self.run(engine, "prepare", 1)

    def instructions(self, engine, row, times):
        done = self.run(engine, row, times, ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"))
        return int(re.search(r"Collected : (\d+)", done.stderr).group(1))


def of_instructions(old, new, row):
    engine, (few, many), _ = ROWS[row]
    each = [(v.instructions(engine, row, many) - v.instructions(engine, row, few)) / (many - few) for v in (old, new)]
    print(f"{row:10} {each[0]:14.0f} {each[1]:14.0f} {each[1] / each[0]:6.3f}", flush=True)


def in_turns(old, new, row, pairs):
    engine, _, times = ROWS[row]
    ratios, seconds = [], []
    for i in range(pairs):
        took = {v: float(v.run(engine, row, times).stdout) for v in ((old, new) if i % 2 else (new, old))}
        ratios.append(took[new] / took[old])
        seconds.append(took[old] / times)
    return ratios, seconds


def tell_times(row, ratios, seconds):
    low, middle, high = statistics.quantiles(ratios)
    print(f"{row:10} {statistics.median(seconds) * 1e6:12.1f} us {middle:6.3f} ({low:.3f} ... {high:.3f})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("old_library", "old_program", "new_library", "new_program"):
        parser.add_argument(name, type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--folder", default="/dev/shm")
    parser.add_argument("--mkfs", nargs=2, default=("esdm-mkfs", "esdm-mkfs"), help="of the old and of the new version")
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="esdm-bench.", dir=options.folder))
    try:
        old = Version(folder / "old", options.old_library, options.old_program)
        new = Version(folder / "new", options.new_library, options.new_program)
        rows = options.rows.split(",")
        ratios, seconds = {row: [] for row in rows}, {row: [] for row in rows}
        for i in range(options.rounds):
            for version, mkfs in list(zip((old, new), options.mkfs))[::1 if i % 2 else -1]:
                version.prepare(mkfs)
            for row in rows:
                if options.instructions:
                    of_instructions(old, new, row)
                    continue
                pairs, took = in_turns(old, new, row, options.pairs)
                ratios[row] += pairs if options.rounds == 1 else [statistics.median(pairs)]
                seconds[row] += took
        for row in rows if not options.instructions else ():
            tell_times(row, ratios[row], seconds[row])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
