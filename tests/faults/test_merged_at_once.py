#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Two programs that write to a container and to its branch, and merge both into each other all the time, and are killed meanwhile.
Each element is written on one of both lines alone, forth and back between few values: so no merge finds a conflict, none changes
what its line has written, and in the end both lines have the last values. A merge since the wrong snapshot breaks each of these."""

import json
import os
import random
import signal
import subprocess
import time

import postgres
from esdmtest import BUILD, SANITIZE, SEED, SOURCE, Site, by_size, client_environment, expect, main, run, skip, tool

SECONDS = float(os.environ.get("ESDM_MODEL_SECONDS") or by_size(5, 6, 60))
WORKER = '''
import json, os, random, sys
import esdm, netCDF4

own, other, first, ledger, seed, ends = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5]), sys.argv[6]
rng = random.Random(seed)
mine = slice(first, first + 12)

def merge(into):
    """A conflict is an exception."""
    esdm.merge(into, "fix" if "@" not in into else None)

def read():
    with netCDF4.Dataset("esdm://" + own) as d:
        return d["v"][mine].tolist()

def note(what, values):
    with open(ledger, "a") as f:
        f.write(json.dumps([what, values]) + "\\n")

def last():
    """What may be there: the newest of which it is known, and one that was being written when the program was killed."""
    may = [[0] * 12]
    for line in open(ledger) if os.path.exists(ledger) else ():
        if not line.endswith("\\n"):
            break
        what, values = json.loads(line)
        may = [values] if what == "done" else [may[0], values]
    return may

values = read()
assert values in last(), f"{own}: {values} instead of {last()}"
note("done", values)
while not os.path.exists(ends):
    kind = rng.random()
    if kind < 0.45:
        values = [rng.randrange(3) if rng.random() < 0.3 else v for v in values]
        note("wanted", values)
        with netCDF4.Dataset("esdm://" + own, "a") as d:
            d["v"][mine] = values
        note("done", values)
    elif kind < 0.8:
        merge(own)
    else:
        merge(other)
    got = read()
    assert got == values, f"{own}: {got} instead of {values}"
'''
MAKE = '''
import esdm, netCDF4
with netCDF4.Dataset("esdm://a.nc", "w") as d:
    d.createDimension("x", 24)
    d.createVariable("v", "i4", ("x",))[:] = 0
'''
READ = '''
import esdm, netCDF4, sys
for name in sys.argv[1:]:
    with netCDF4.Dataset("esdm://" + name) as d:
        print(d["v"][:].tolist())
'''
LINES = ("a.nc", "a.nc@branch:fix")


def python_environment():
    env = client_environment({"PYTHONPATH": str(SOURCE / "python"), "ESDM_LIBRARY_DIR": f"{BUILD}:{BUILD / 'netcdf-plugin'}"})
    env.pop("LD_PRELOAD", None)
    return env


def python(code, *arguments):
    return run(["/usr/bin/python3", "-c", code, *arguments], env=python_environment()).stdout


def start(site, which, seed):
    command = ["/usr/bin/python3", "-c", WORKER, LINES[which], LINES[1 - which], str(which * 12), str(site.file(f"ledger{which}")),
               str(seed), str(site.file("ends"))]
    return subprocess.Popen(command, env=python_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def last_of(site, which):
    lines = [json.loads(line) for line in site.file(f"ledger{which}").read_text().splitlines()]
    expect(lines[-1][0] == "done", f"{lines[-1]}")
    return lines[-1][1], len(lines)


def at_once(site):
    python(MAKE)
    run([tool("esdm-branch"), "a.nc", "fix"])
    chance, kills = random.Random(SEED), 0
    running = [start(site, which, SEED + which) for which in range(2)]
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        time.sleep(chance.uniform(0.2, 1.2))
        which = chance.randrange(2)
        if running[which].poll() is None and chance.random() < 0.6:
            kills += 1
            running[which].send_signal(signal.SIGKILL)
            running[which].wait()
        for i, one in enumerate(running):
            if one.poll() is not None:
                expect(one.returncode == -signal.SIGKILL, f"{LINES[i]}: {one.communicate()[0]}")
                running[i] = start(site, i, SEED + 2 * kills + i)
    site.file("ends").touch()
    for i, one in enumerate(running):
        said = one.communicate(timeout=600)[0]
        expect(one.returncode == 0, f"{LINES[i]}: {said}")
    (first, one), (second, other) = last_of(site, 0), last_of(site, 1)
    for options in ["a.nc", "fix"], ["--into", "fix", "a.nc"], ["a.nc", "fix"]:
        told = json.loads(run([tool("esdm-merge"), "--json", *options]).stdout)
        expect(told["conflicts"] == [], f"{options}: {told}")
    for line in python(READ, *LINES).splitlines():
        expect(json.loads(line) == first + second, f"{line}: not {first + second}")
    run([tool("esdm-fsck"), "--data"])
    print(f"{one + other} lines of ledgers, {kills} kills")


def test_merged_at_once__sqlite():
    with Site() as site:
        at_once(site)


def test_merged_at_once__postgres():
    if not (BUILD / "esdm/esdm-meta-postgres.so").exists() or postgres.binaries() is None:
        skip("no PostgreSQL")
    with postgres.Server() as server, Site(metadata={"plugin": "postgres", "connection": server.connection()}) as site:
        at_once(site)


if __name__ == "__main__":
    main(*(() if SANITIZE else (test_merged_at_once__sqlite, test_merged_at_once__postgres)))
