#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Runs ranks_mpi: mpi.py (openmpi|mpich) PROGRAM"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import esdmtest
import mpirun
import postgres

if len(sys.argv) < 3:
    mpirun.missing(f"built without {sys.argv[1]}")
MPI, PROGRAM = sys.argv[1], sys.argv[2]
SIZE = os.environ.get("ESDM_TEST_SIZE", "default")
BUILD = pathlib.Path(os.environ["ESDM_BUILD"])
if MPI == "mpich" and "thread" in os.environ.get("ESDM_SANITIZE", ""):
    print("skipped: MPICH does not run under ThreadSanitizer")
    sys.exit(77)
SLOW = 5 if os.environ.get("ESDM_SANITIZE") else 1


def make_site(folder, name, plugin="posix"):
    return mpirun.make_site(folder, name, plugin, ESDM_TEST_SIZE="quick")


def scenarios(folder):
    if MPI == "mpich":  # spins, which takes long with more ranks than cores
        counts = {"long": (1, 3, 4, 8, 64)}.get(SIZE, (4,))
    else:
        counts = {"quick": (4,), "long": (1, 2, 3, 4, 8, 64)}.get(SIZE, (1, 3, 4))
    for ranks in counts:
        env = make_site(folder, f"scenarios{ranks}")
        done = mpirun.run(MPI, ranks, [PROGRAM, "scenarios"], env, timeout=600 * SLOW)
        print(f"{ranks} ranks: {len(done.stdout.splitlines())} scenarios")
    # Commits merge their index pages: 40 commits of 4 ranks leave a handful.
    count = subprocess.run(
        ["sqlite3", "-readonly", folder / "scenarios4/metadata/catalogue.sqlite",
         "SELECT count(*) FROM page p JOIN container c ON p.container = c.container "
         "WHERE c.name = 'commit/merging' AND p.removed = 0"],
        check=True, stdout=subprocess.PIPE, text=True) if shutil.which("sqlite3") else None
    if count and not 0 < int(count.stdout) <= 20:
        raise SystemExit(f"40 commits left {count.stdout.strip()} index pages")


def on_postgres(folder):
    """The same, where a server keeps the catalogue."""
    if postgres.binaries() is None or not (BUILD / "esdm/esdm-meta-postgres.so").exists():
        print("no PostgreSQL: scenarios ran on SQLite alone")
        return
    with postgres.Server() as server:
        env = mpirun.make_site(folder, "server", ESDM_TEST_SIZE="quick", metadata={
            "plugin": "postgres", "host": "127.0.0.1", "port": server.port, "database": "postgres",
            "user": "esdm", "schema": "ranks"})
        done = mpirun.run(MPI, 4, [PROGRAM, "scenarios"], env, timeout=600 * SLOW)
        told = subprocess.run([BUILD / "tools/esdm-fsck", "--data"], env=env, check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=400 * SLOW)
        if told.returncode:
            raise SystemExit(f"after the scenarios on PostgreSQL: {told.stdout}")
    print(f"on PostgreSQL: {len(done.stdout.splitlines())} scenarios")


def many_ranks(folder):
    """More ranks than cores, with all that a commit does."""
    if SIZE == "quick" or (MPI == "mpich" and SIZE != "long"):
        return
    for i, name in enumerate(("order.random", "commit.blocks", "differ.definitions")):
        env = make_site(folder, f"many{i}")
        mpirun.run(MPI, 32 if MPI == "openmpi" else 16, [PROGRAM, "scenarios", name], env,
                   timeout=600 * SLOW)


def shapes(folder):
    """Series of a variable that is stored in two shapes."""
    os.environ["ESDM_TEST_SITE"] = str(esdmtest.SOURCE / "tests/support/site_shapes.json")
    try:
        env = make_site(folder, "shapes")
        done = mpirun.run(MPI, 4, [PROGRAM, "scenarios", "shapes"], env, timeout=600 * SLOW)
    finally:
        del os.environ["ESDM_TEST_SITE"]
    if " bytes" not in done.stdout:
        raise SystemExit(f"the site has one shape: {done.stdout}")


def lost(folder):
    env = make_site(folder, "faulty", "faulty")
    for ranks in (1, 4):
        mpirun.run(MPI, ranks, [PROGRAM, "lost"], env, timeout=400 * SLOW)
    packs = [p for p in (folder / "faulty/packs").rglob("*") if p.is_file() and p.suffix != ".json"]
    print(f"lost: {len(packs)} packs are left")


def killed(folder):
    """The job ends with the rank that is killed; what was committed is there, and whole."""
    for round_ in range({"quick": 2, "long": 15}.get(SIZE, 4)):
        env = make_site(folder, f"killed{round_}")
        done = mpirun.run(MPI, 4, [PROGRAM, "killed", str(0.05 + 0.113 * round_)], env,
                          timeout=400 * SLOW, check=False)
        if done.returncode == 0:
            raise SystemExit("a job with a killed rank succeeded")
        steps = [int(line) for line in done.stdout.splitlines() if line.isdigit()]
        last = steps[-1] if steps else -1
        subprocess.run([PROGRAM, "verify", str(last)], env=env, check=True, timeout=400 * SLOW)
        subprocess.run([BUILD / "tools/esdm-mkfs", "--check"], env=env, check=True,
                       stdout=subprocess.DEVNULL)
        print(f"killed after step {last}")


def found_after_kill(folder):
    """A query finds all that was committed, whatever the job was about to do then."""
    for steps in (1, 2, 40):
        env = make_site(folder, f"ends{steps}")
        done = mpirun.run(MPI, 4, [PROGRAM, "ends", str(steps)], env, timeout=400 * SLOW,
                          check=False)
        if done.returncode == 0:
            raise SystemExit("a job with killed ranks succeeded")
        for query in (f"max(v) = {1000 * (steps - 1) + 3}", f"length(time) = {steps}", "min(v) = 0"):
            found = subprocess.run([BUILD / "tools/esdm-find", "-c", query], env=env, text=True,
                                   stdout=subprocess.PIPE, timeout=400 * SLOW).stdout.split()
            if found != ["ends"]:
                raise SystemExit(f"killed after commit {steps}, {query} finds {found}")


def main():
    with tempfile.TemporaryDirectory(prefix="esdm-mpi.", dir=esdmtest.folder_of_sites()) as name:
        folder = pathlib.Path(name)
        mpirun.launcher(MPI)
        for part in (scenarios, on_postgres, many_ranks, shapes, lost, killed, found_after_kill):
            part(folder)


main()
