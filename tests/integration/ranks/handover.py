#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Ranks of which some store for the others: handover.py (openmpi|mpich) PROGRAM"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import mpirun

if len(sys.argv) < 3:
    mpirun.missing(f"built without {sys.argv[1]}")
MPI, PROGRAM = sys.argv[1], sys.argv[2]
RANKS, STEPS = 4, 4
if MPI == "mpich" and "thread" in os.environ.get("ESDM_SANITIZE", ""):
    print("skipped: MPICH does not run under ThreadSanitizer")
    sys.exit(77)
TIMEOUT = 300 * (5 if os.environ.get("ESDM_SANITIZE") else 1)


def make_site(folder, name, plugin, io, engine=None, **more):
    target = {"name": "disk", "plugin": plugin, "directory": f"{name}/packs"}
    env = mpirun.make_site(folder, name, targets=[target], threads=1, **more)
    path = pathlib.Path(env["ESDM_CONFIG"])
    site = json.loads(path.read_text())
    site["engine"].update(engine or {})
    site["ranks"] = {"io": io, "timeout": 240}
    path.write_text(json.dumps(site))
    return env


def expect_writers(folder, name, io):
    """Packs are named after the ranks that wrote them. A rank that stores has one for what it puts
    and one for what others hand over, for each handle."""
    packs = [p.name for p in (folder / name / "packs").rglob("*-*-*-*") if p.is_file()]
    writers = {int(p.split("-")[2], 16) for p in packs}
    if writers != {i * RANKS // io for i in range(io)} or len(packs) > 4 * io:
        raise SystemExit(f"{name}: packs {packs}")


def verify(env, steps):
    subprocess.run([PROGRAM, "verify", str(steps)], env=env, check=True, timeout=TIMEOUT)


def steps(folder):
    for plugin in "posix", "background":
        for io in 1, 2:
            for writes in "direct", "background":
                name = f"steps-{plugin}-{io}-{writes}"
                env = make_site(folder, name, plugin, io, {"writes": writes})
                mpirun.run(MPI, RANKS, [PROGRAM, "steps"], env, timeout=TIMEOUT)
                verify(env, STEPS)
                if plugin == "posix":
                    expect_writers(folder, name, io)


def behind(folder):
    appends = folder / "behind.appends"
    env = make_site(folder, "behind", "throttled", 2, {"writes": "background"},
                    THROTTLED_HOLD=str(folder / "behind.go"), THROTTLED_APPENDS=str(appends))
    mpirun.run(MPI, RANKS, [PROGRAM, "behind"], env, timeout=TIMEOUT)
    verify(env, STEPS)
    writers = {line.split()[0] for line in appends.read_text().splitlines()}
    if len(writers) != 2:
        raise SystemExit(f"{len(writers)} processes stored, not 2")


def killed(folder):
    """The job ends with a rank that stores, and with one that hands over; what was committed stays."""
    for who in 0, 1:
        env = make_site(folder, f"killed{who}", "posix", 2)
        done = mpirun.run(MPI, RANKS, [PROGRAM, "killed", str(who)], env, timeout=TIMEOUT, check=False)
        if done.returncode == 0:
            raise SystemExit("a job with a killed rank succeeded")
        verify(env, 1)


def full(folder):
    env = make_site(folder, "full", "faulty", 2, ESDM_FAULTY="append:2+3:fail:ENOSPC")
    mpirun.run(MPI, RANKS, [PROGRAM, "full", "2"], env, timeout=TIMEOUT)
    env.pop("ESDM_FAULTY")
    verify(env, STEPS)


with tempfile.TemporaryDirectory(prefix="esdm-handover.") as temporary:
    mpirun.launcher(MPI)
    for part in steps, behind, killed, full:
        part(pathlib.Path(temporary))
        print(part.__name__)
