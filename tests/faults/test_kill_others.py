#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""The same kills for stores that are not ours, to compare with: stock netCDF-4 and, in the long form and where PyPI has it,
Icechunk. Nothing of them is expected but that they can be killed: it tells how often the state that was committed last
(or the one under way, as a whole) is there afterwards. README.md has figures."""

import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import venv

from esdmtest import by_size, environment, expect, main, skip
from faults import need_strace, strace

PROGRAM = str(pathlib.Path(__file__).with_name("other_stores.py"))
CALLS = ["pwrite64", "write", "fsync", "fdatasync", "ftruncate", "rename", "renameat2", "linkat", "unlink", "mkdir"]
STATES = 3


def plain():
    env = environment()
    env.pop("LD_PRELOAD", None)
    return env


def counts_of(python, kind, folder):
    log = os.path.join(folder, "strace.log")
    subprocess.run(["strace", "-f", "-qq", "-y", "-o", log, "-e", "trace=" + ",".join(CALLS), python, PROGRAM, kind, "write",
                    os.path.join(folder, "counting"), str(STATES)], check=True, env=plain(), stdout=subprocess.DEVNULL)
    counts = {}
    with open(log, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            match = re.match(r"\d+ +(\w+)\(", line)
            if match and "counting" in line:
                counts[match[1]] = counts.get(match[1], 0) + 1
    return counts


def last_state(text):
    """Libraries print warnings, too."""
    told = re.findall(r"^state (\w+)$", text, re.MULTILINE)
    return told[-1] if told else None


def what_is_there(python, kind, path, said):
    """"committed", "older", "mixed", "unreadable"; None: it was killed before its first commit."""
    told = int(last_state(said) or 0)
    if told == 0:
        return None
    seen = subprocess.run([python, PROGRAM, kind, "check", path], env=plain(), check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True)
    text = last_state(seen.stdout)
    if seen.returncode != 0 or text is None:
        return "unreadable"
    if text == "mixed":
        return text
    return "committed" if int(text) in (told, told + 1) else "older"


def kill_at(python, kind, folder, call, number):
    """At a call that changes the file. None: there was no such call."""
    path = os.path.join(folder, f"{call}-{number}")
    prefix = strace("-e", f"trace={call}", "-P", path, "-e", f"inject={call}:signal=SIGKILL:when={number}")
    done = subprocess.run([*prefix, python, PROGRAM, kind, "write", path, str(STATES)], env=plain(), check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    killed = done.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL)
    return what_is_there(python, kind, path, done.stdout) if killed else None


def kill_some_time(python, kind, folder, number, chance):
    """At a random time after its first commit: its threads make the calls, in no order."""
    path = os.path.join(folder, f"time-{number}")
    with subprocess.Popen([python, PROGRAM, kind, "write", path, "1000"], env=plain(), stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) as program:
        said = ""
        while last_state(said) is None:
            line = program.stdout.readline()
            expect(line, f"{kind}: it ended by itself: {said}")
            said += line
        time.sleep(chance.random() * 0.3)
        program.kill()
        said += program.stdout.read()
    return what_is_there(python, kind, path, said)


def check(python, kind):
    need_strace()
    found = {}
    with tempfile.TemporaryDirectory(prefix="esdm-others.", dir=os.environ.get("TMPDIR", "/tmp")) as folder:
        chance = random.Random(1)
        if kind == "netcdf":
            counts, most = counts_of(python, kind, folder), by_size(6, 12, 100)
            kills = [(kill_at, call, number) for call, count in counts.items()
                     for number in sorted({1 + i * count // most for i in range(most)})]
        else:
            kills = [(kill_some_time, number, chance) for number in range(by_size(5, 20, 100))]
        chance.shuffle(kills)
        until = time.monotonic() + by_size(5, 10, 600)
        while kills and (time.monotonic() < until or not found):
            kill, *where = kills.pop()
            outcome = kill(python, kind, folder, *where)
            if outcome is not None:
                found[outcome] = found.get(outcome, 0) + 1
    print(f"{kind}: of {sum(found.values())} kills after a commit: {found}")
    expect(found, "none was killed")


def test_stock_netcdf():
    check("/usr/bin/python3", "netcdf")


def test_icechunk():
    python = os.environ.get("ESDM_TEST_ICECHUNK")  # a Python that has it
    if python:
        check(python, "icechunk")
        return
    if by_size(0, 0, 1) == 0:
        skip("in the long form, or with a Python that has it in ESDM_TEST_ICECHUNK")
    with tempfile.TemporaryDirectory(prefix="esdm-icechunk.") as folder:
        venv.create(folder, with_pip=True, system_site_packages=True)
        python = os.path.join(folder, "bin", "python")
        done = subprocess.run([python, "-m", "pip", "install", "-q", "icechunk"], check=False, stdout=sys.stderr,
                              stderr=sys.stderr, timeout=600)
        if done.returncode != 0:
            skip("PyPI gives no Icechunk")
        check(python, "icechunk")


if __name__ == "__main__":
    main(test_stock_netcdf, test_icechunk)
