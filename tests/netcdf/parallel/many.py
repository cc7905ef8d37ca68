#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Containers shared by up to 64 ranks, which read what the others wrote; and up to 64 ranks of which one
fails or defines something else: many.py MANY TROUBLE, programs made of many.c and trouble.c."""

import pathlib
import sys
import tempfile

import esdmtest
import mpirun

MANY, TROUBLE = sys.argv[1:3] if len(sys.argv) > 2 else ("", "")
SLOW = 5 if esdmtest.SANITIZE else 1
RANKS = esdmtest.by_size((16,), (1, 2, 4, 8, 16), (1, 2, 4, 8, 16, 32, 64))
if esdmtest.SANITIZE and esdmtest.SIZE != "long":
    RANKS = (4,)


def job(env, ranks, *command):
    return mpirun.run("openmpi", ranks, list(command), env, timeout=(120 + 10 * ranks) * SLOW).stdout


def check(folder, ranks):
    env = mpirun.make_site(folder, f"many{ranks}")
    told = job(env, ranks, MANY)
    esdmtest.expect(f"{ranks} ranks: good" in told, told)
    if ranks > 8:  # trouble.py has the others
        job(env, ranks, TROUBLE, "differ")
        job(env, ranks, TROUBLE, "refused")
        job(mpirun.make_site(folder, f"faulty{ranks}", "faulty"), ranks, TROUBLE, "lost")
    print(f"{ranks} ranks: good", flush=True)


def main():
    if "thread" in esdmtest.SANITIZE:
        esdmtest.skip("threads are watched in integration.ranks; HDF5 and MPI are not built for it")
    if not MANY:
        mpirun.missing("libnetcdf-mpi-dev and OpenMPI were not there when ESDM was built")
    mpirun.launcher("openmpi")
    with tempfile.TemporaryDirectory(prefix="esdm-many.") as name:
        for ranks in RANKS:
            check(pathlib.Path(name), ranks)


main()
