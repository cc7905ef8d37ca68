#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Passes on what ctest says, and before its summary prints the tests that took longest. Fails where
ctest came to its --stop-time before it ran all tests, which its summary leaves out.

    ctest --output-junit RESULTS.xml … | summary.py RESULTS.xml
"""

import re
import sys
import xml.etree.ElementTree as xml

LONGEST = 20


def times(results):
    """Pairs of seconds and a test's name, longest first."""
    try:
        cases = xml.parse(results).getroot().iter("testcase")
    except (OSError, xml.ParseError) as error:
        print(f"no times of tests: {error}")
        return []
    return sorted(((float(case.get("time") or 0), case.get("name")) for case in cases), reverse=True)


def main():
    summary = []
    planned = 0
    for line in sys.stdin:
        if summary or re.match(r"\d+% tests passed", line):
            summary.append(line)
            continue
        print(line, end="", flush=True)
        counter = re.match(r" *\d+/(\d+) Test ", line)
        if counter:
            planned = int(counter.group(1))
    ran = times(sys.argv[1])
    print(f"\n{sum(seconds for seconds, _ in ran):.0f} s in {len(ran)} tests; the longest:")
    for seconds, name in ran[:LONGEST]:
        print(f"{seconds:7.1f} s  {name}")
    if len(ran) < planned:
        print(f"\nOUT OF TIME: {planned - len(ran)} of {planned} tests were not run")
    print("\n" + "".join(summary), end="", flush=True)
    return 1 if len(ran) < planned else 0


sys.stdin.reconfigure(errors="replace")
sys.stdout.reconfigure(errors="replace")
sys.exit(main())
