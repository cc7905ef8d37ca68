#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Checks what commits leave out of the tests "drawn": half of the time, of each pair one, each test by some, and
what a sanitizer's build leaves out not without one.

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
    # As run.sh asks of one commit: with a sanitizer, again, and without one. Each test has one of the two builds.
    sanitized = ["77", COSTS, *ctest, "-LE", "^plain$"]
    told = [set(subprocess.run([SUPPORT / "drawn.py", *command], stdout=subprocess.PIPE, text=True,
                               check=True).stdout.split())
            for command in (sanitized, sanitized, ["--others", "77", COSTS, *ctest])]
    if told[0] != told[1] or not told[0] or told[0] - names:
        wrong.append(f"drawn.py names {told[:2]}")
    if told[0] & told[2] or told[0] | told[2] != names:
        wrong.append(f"without a sanitizer drawn.py leaves out {sorted(told[2])}, with one {sorted(told[0])}")
    print("\n".join(wrong) or f"{len(names)} tests are drawn from")
    return 1 if wrong else 0


sys.exit(main())
