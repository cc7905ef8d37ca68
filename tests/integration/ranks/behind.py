#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Ranks that go on while their data are stored: behind.py (openmpi|mpich) PROGRAM"""

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


def make_site(folder, name, plugin, **more):
    target = {"name": "disk", "plugin": plugin, "directory": f"{name}/packs"}
    env = mpirun.make_site(folder, name, targets=[target], **more)
    path = pathlib.Path(env["ESDM_CONFIG"])
    site = json.loads(path.read_text())
    site["engine"]["writes"] = "background"
    path.write_text(json.dumps(site))
    return env


def held(folder, name):
    """A site whose target takes nothing as long as a file is not there."""
    appends = folder / f"{name}.appends"
    env = make_site(folder, name, "throttled", THROTTLED_HOLD=str(folder / f"{name}.go"),
                    THROTTLED_APPENDS=str(appends))
    return env, appends


def steps(folder):
    env, appends = held(folder, "steps")
    mpirun.run(MPI, RANKS, [PROGRAM, "steps"], env, timeout=TIMEOUT)
    subprocess.run([PROGRAM, "verify", str(STEPS)], env=env, check=True, timeout=TIMEOUT)
    writers = {line.split()[0] for line in appends.read_text().splitlines()}
    if len(writers) != RANKS:
        raise SystemExit(f"{len(writers)} processes stored what {RANKS} ranks put")


def killed(folder):
    """The job ends with the rank; what was committed is there, and nothing of what was not."""
    env, _ = held(folder, "killed")
    done = mpirun.run(MPI, RANKS, [PROGRAM, "killed"], env, timeout=TIMEOUT, check=False)
    told = [line for line in done.stdout.splitlines() if line.isdigit()]
    if done.returncode == 0 or told != ["1"]:
        raise SystemExit(f"a job with a killed rank ended with {done.returncode}, commits {told}")
    subprocess.run([PROGRAM, "verify", "1"], env=env, check=True, timeout=TIMEOUT)


def repaired(folder):
    env = make_site(folder, "repaired", "faulty", ESDM_FAULTY="append:1+2:fail:ENOSPC",
                    BEHIND_FAULTY_RANK=str(RANKS - 1))
    mpirun.run(MPI, RANKS, [PROGRAM, "repaired"], env, timeout=TIMEOUT)
    env.pop("ESDM_FAULTY")
    subprocess.run([PROGRAM, "verify", str(STEPS)], env=env, check=True, timeout=TIMEOUT)


with tempfile.TemporaryDirectory(prefix="esdm-behind.") as temporary:
    mpirun.launcher(MPI)
    for part in steps, killed, repaired:
        part(pathlib.Path(temporary))
        print(part.__name__)
