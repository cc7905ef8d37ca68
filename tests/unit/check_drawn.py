#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Checks what commits leave out of the tests "drawn": half of the time, of each pair one, each test by some, and
what a sanitizer's build leaves out not without one.

Usage: check_drawn.py SOURCE BUILD
"""

import json
import pathlib
import re
import subprocess
import sys

SOURCE, BUILD = map(pathlib.Path, sys.argv[1:3])
SUPPORT = SOURCE / "tests/support"
sys.path.insert(0, str(SUPPORT))

import drawn  # noqa: E402

COSTS = SUPPORT / "costs.txt"
SEEDS = range(1, 101)


def lost_labels(ctest):
    """What a CMakeLists.txt gives to tests of another folder is lost: they have to be made in the same one."""
    done = subprocess.run([*ctest, "--show-only=json-v1"], stdout=subprocess.PIPE, text=True, check=True)
    labels = {test["name"]: [label for p in test.get("properties", []) if p["name"] == "LABELS" for label in p["value"]]
              for test in json.loads(done.stdout)["tests"]}
    for file in sorted((SOURCE / "tests").rglob("CMakeLists.txt")):
        for label, tests in re.findall(r"^esdm_label\((\w+) ([^)]*)\)", file.read_text(), re.MULTILINE):
            yield from (f"{file.relative_to(SOURCE)}: {test} has no label {label}" for test in tests.split()
                        if label not in labels.get(test, [label]))


def main():
    ctest = ["ctest", "--test-dir", str(BUILD)]
    groups = [set(names) for names in drawn.chosen(ctest)]
    names = set.union(*groups)
    times = drawn.known_times(COSTS)
    everything = sum(times.get(name, 0) for name in names)
    wrong = [f"{name}: no time in {COSTS}" for name in sorted(names - set(times))]
    wrong += lost_labels(ctest)
    if len(names) < 20:
        wrong.append(f"only {len(names)} tests have the label")
    ran = dict.fromkeys(names, 0)
    for seed in SEEDS:
        left = {name for group in groups for name in drawn.left_out(group, times, seed)}
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
    if told[0] != told[1] or not told[0] or told[0] - groups[0]:
        wrong.append(f"drawn.py names {told[:2]}")
    both = told[2] & groups[0]
    if told[0] & both or told[0] | both != groups[0] or not 0.3 < len(told[2] & groups[1]) / len(groups[1]) < 0.7:
        wrong.append(f"without a sanitizer drawn.py leaves out {sorted(told[2])}, with one {sorted(told[0])}")
    print("\n".join(wrong) or f"{len(names)} tests are drawn from")
    return 1 if wrong else 0


sys.exit(main())
