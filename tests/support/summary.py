#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Runs ctest, passes on what it says, and before its summary prints the tests that took longest, with
the processors' time of each: on a busy machine that alone is comparable. That of all tests is in
times.txt beside RESULTS.xml. Fails where ctest does, and
where it came to its --stop-time before it ran all tests, which its summary leaves out.

    summary.py RESULTS.xml ctest --output-junit RESULTS.xml …
"""

import os
import re
import subprocess
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


def processor_seconds(process):
    """What the children that this process waited for have used, with those that they waited for."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError: # no /proc
        return 0
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def main():
    summary = []
    planned = 0
    used = {} # processors' seconds by name: ctest waits for a test just before it tells of it
    before = 0
    ctest = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             stdin=subprocess.DEVNULL, text=True, errors="replace")
    for line in ctest.stdout:
        ended = re.match(r" *\d+/(\d+) Test +#\d+: (\S+)", line)
        if ended:
            planned = int(ended.group(1))
            now = processor_seconds(ctest.pid)
            used[ended.group(2)] = used.get(ended.group(2), 0) + now - before
            before = now
        if summary or re.match(r"\d+% tests passed", line):
            summary.append(line)
            continue
        print(line, end="", flush=True)
    status = ctest.wait()
    ran = times(sys.argv[1])
    print(f"\n{sum(seconds for seconds, _ in ran):.0f} s in {len(ran)} tests, "
          f"{sum(used.values()):.0f} s of processors; the longest:")
    print("      time   processors")
    for seconds, name in ran[:LONGEST]:
        print(f"{seconds:7.1f} s   {used.get(name, 0):7.1f} s  {name}")
    with open(os.path.join(os.path.dirname(sys.argv[1]), "times.txt"), "w", encoding="utf-8") as file:
        for seconds, name in sorted(((used.get(name, 0), name) for _, name in ran), reverse=True):
            file.write(f"{seconds:7.1f} s  {name}\n")
    if len(ran) < planned:
        print(f"\nOUT OF TIME: {planned - len(ran)} of {planned} tests were not run")
    print("\n" + "".join(summary), end="", flush=True)
    return status or (1 if len(ran) < planned else 0)


sys.stdout.reconfigure(errors="replace")
sys.exit(main())
