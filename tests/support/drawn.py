#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Draws half of the tests with the label "drawn", and names on its output those that are left out.

    drawn.py [--others] SEED COSTS ctest ARGUMENT…
        tests are those that ctest chooses; COSTS are ctest's times of them; --others: leaves out the other half

Of each two tests that take about as long one is left out, by SEED: so each seed leaves out half of the time, and
the same seed always the same tests. What a sanitizer's build leaves out, the build without one runs, and the
other way round. Tests that are also "plain" are drawn from by themselves: no sanitizer's build has them.
"""

import hashlib
import json
import subprocess
import sys

LABEL = "drawn"


def known_times(file):
    """Seconds by test's name, from lines "NAME RUNS SECONDS"."""
    times = {}
    with open(file, encoding="utf-8") as lines:
        for line in lines:
            fields = line.split()
            if len(fields) == 3:
                times[fields[0]] = float(fields[2])
    return times


def chosen(ctest):
    """Names of the tests with the label that ctest would run: those that are not plain, and those that are."""
    done = subprocess.run([*ctest, "--show-only=json-v1"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True, check=True)
    groups = [], []
    for test in json.loads(done.stdout)["tests"]:
        labels = [p["value"] for p in test.get("properties", []) if p["name"] == "LABELS"]
        if labels and LABEL in labels[0]:
            groups["plain" in labels[0]].append(test["name"])
    return groups


def left_out(names, times, seed, others=False):
    """Of each pair, and of the one that may remain, what the seed leaves out; or what it does not."""
    names = sorted(names, key=lambda name: (-times.get(name, 0), name))
    pairs = [names[i:i + 2] for i in range(0, len(names), 2)]
    for pair in pairs:
        digest = hashlib.sha256(f"{seed} {' '.join(pair)}".encode()).digest()
        out = digest[0] % 2
        yield from (name for i, name in enumerate(pair) if (i == out) != others)


def main():
    others = sys.argv[1:2] == ["--others"]
    arguments = sys.argv[2:] if others else sys.argv[1:]
    seed, costs, ctest = int(arguments[0]), arguments[1], arguments[2:]
    times = known_times(costs)
    out = [name for names in chosen(ctest) for name in left_out(names, times, seed, others)]
    print("".join(f"{name}\n" for name in sorted(out)), end="")


if __name__ == "__main__":
    main()
