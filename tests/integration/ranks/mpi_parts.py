# SPDX-License-Identifier: LGPL-3.0-or-later
"""What behind.py and handover.py share: programs of ranks over MPI, called (openmpi|mpich) PROGRAM."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import esdmtest
import mpirun

if len(sys.argv) < 3:
    mpirun.missing(f"built without {sys.argv[1]}")
MPI, PROGRAM = sys.argv[1], sys.argv[2]
RANKS, STEPS = 4, 4
if MPI == "mpich" and "thread" in os.environ.get("ESDM_SANITIZE", ""):
    print("skipped: MPICH does not run under ThreadSanitizer")
    sys.exit(77)
TIMEOUT = 300 * (5 if os.environ.get("ESDM_SANITIZE") else 1)


def make_site(folder, name, plugin, engine, ranks=None, **more):
    """@param engine, ranks go into those parts of the site. @param more of mpirun.make_site()."""
    target = {"name": "disk", "plugin": plugin, "directory": f"{name}/packs"}
    env = mpirun.make_site(folder, name, targets=[target], **more)
    path = pathlib.Path(env["ESDM_CONFIG"])
    site = json.loads(path.read_text())
    site["engine"].update(engine)
    if ranks:
        site["ranks"] = ranks
    path.write_text(json.dumps(site))
    return env


def held(make, folder, name, *arguments):
    """A site whose target takes nothing as long as a file is not there, and the file that lists who stored."""
    appends = folder / f"{name}.appends"
    env = make(folder, name, "throttled", *arguments, THROTTLED_HOLD=str(folder / f"{name}.go"),
               THROTTLED_APPENDS=str(appends))
    return env, appends


def run(env, *arguments, check=True):
    return mpirun.run(MPI, RANKS, [PROGRAM, *arguments], env, timeout=TIMEOUT, check=check)


def verify(env, steps):
    subprocess.run([PROGRAM, "verify", str(steps)], env=env, check=True, timeout=TIMEOUT)


def expect_stored_by(appends, count):
    writers = {line.split()[0] for line in appends.read_text().splitlines()}
    if len(writers) != count:
        raise SystemExit(f"{len(writers)} processes stored what {RANKS} ranks put, not {count}")


def main(*parts):
    with tempfile.TemporaryDirectory(prefix="esdm-ranks.", dir=esdmtest.folder_of_sites()) as temporary:
        mpirun.launcher(MPI)
        for part in parts:
            part(pathlib.Path(temporary))
            print(part.__name__)
