#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""What the questions of bench_find cost the server: processor time of its process in ms, least and median of some runs.

    find_server.py CONNECTION [--repeat 11] [QUESTION…]

$ESDM_CONFIG names the site, CONNECTION is for psql; run as who may read /proc of the server's processes, which are on this
machine. A busy machine changes these times little, those by the clock (also printed) a lot. The library is found as for
"import esdm".
"""

import argparse
import pathlib
import statistics
import subprocess
import time

import esdm

QUESTIONS = [
    "model = model-7 and experiment = experiment-3 and member = member-2",
    "attribute_24 = \"value 77 of 24\" and model = model-7",
    "max(tas) > 319.9 K",
    "max(tas) > 46.75 degC and model = model-7",
    "time overlaps 1850 .. 1851 and experiment = experiment-3",
    "time overlaps 1900-06 and box overlaps 10,10,11,11",
    "model = model-7 and experiment = experiment-3 and member = member-2 and box overlaps 0,0,9,9",
    "box overlaps 10,70,12,72 and model = model-7",
    "box overlaps 10,70,12,72",
    "time overlaps 1900-06",
    "experiment = experiment-3 and not (model = model-7 or table = table-1)",
    "attribute_24 ~ \"value 77 of*\" and model = model-7",
    "attribute_24 =~ \"^value 77 of 2[0-9]\" and model = model-7",
]


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("connection")
    parser.add_argument("--repeat", type=int, default=11)
    parser.add_argument("questions", nargs="*")
    options = parser.parse_args()
    esdm.find("model = none")  # connects
    pid = subprocess.run(["psql", "-X", "-A", "-t", options.connection, "-c", "SELECT pid FROM pg_stat_activity WHERE "
                          "application_name = 'esdm' ORDER BY backend_start DESC LIMIT 1"], check=True,
                         stdout=subprocess.PIPE, text=True).stdout.strip()
    used = pathlib.Path(f"/proc/{pid}/schedstat")
    for question in options.questions or QUESTIONS:
        runs, clocks, found = [], [], []
        for _ in range(options.repeat):
            before, begun = int(used.read_text().split()[0]), time.monotonic()
            found = esdm.find(question)
            clocks.append((time.monotonic() - begun) * 1e3)
            runs.append((int(used.read_text().split()[0]) - before) / 1e6)
        print(f"{min(runs):9.2f} {statistics.median(runs):9.2f} ms of the server, {min(clocks):9.2f} by the clock, "
              f"{len(found):7} found  {question}", flush=True)


if __name__ == "__main__":
    main()
