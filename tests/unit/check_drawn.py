#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Checks what commits leave out of the tests "drawn": half of the time, of each pair one, and each test by some.

Usage: check_drawn.py SOURCE BUILD
"""

import pathlib
import subprocess
import sys

SOURCE, BUILD = map(pathlib.Path, sys.argv[1:3])
SUPPORT = SOURCE / "tests/support"
sys.path.insert(0, str(SUPPORT))

import drawn  # noqa: E402

COSTS = SUPPORT / "costs.txt"
SEEDS = range(1, 101)


def main():
    ctest = ["ctest", "--test-dir", str(BUILD)]
    names = set(drawn.chosen(ctest))
    times = drawn.known_times(COSTS)
    everything = sum(times.get(name, 0) for name in names)
    wrong = [f"{name}: no time in {COSTS}" for name in sorted(names - set(times))]
    if len(names) < 20:
        wrong.append(f"only {len(names)} tests have the label")
    ran = dict.fromkeys(names, 0)
    for seed in SEEDS:
        left = set(drawn.left_out(names, times, seed))
        share = sum(times.get(name, 0) for name in left) / everything
        if left - names or not 0.4 < share < 0.6:
            wrong.append(f"seed {seed} leaves out {share:.2f}: {sorted(left - names)}")
        for name in names - left:
            ran[name] += 1
    wrong += [f"{name}: run by {count} of {len(SEEDS)} seeds" for name, count in ran.items()
              if not 25 <= count <= 75]
    # As run.sh asks, twice.
    command = [SUPPORT / "drawn.py", "77", COSTS, *ctest, "-LE", "^plain$"]
    told = [subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
            for _ in range(2)]
    if told[0] != told[1] or not told[0] or set(told[0]) - names:
        wrong.append(f"drawn.py names {told}")
    print("\n".join(wrong) or f"{len(names)} tests are drawn from")
    return 1 if wrong else 0


sys.exit(main())
