#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Compares stock netCDF with ESDM on several ranks: parallel.py (mpi|pnetcdf) PROGRAM

The records of the run on 4 ranks go beside those of tests/netcdf/compare, for the report."""

import pathlib
import re
import sys
import tempfile

import esdmtest
import mpirun

KIND, PROGRAM = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
RANKS = {"quick": (4,), "default": (*esdmtest.some((1, 3), 1), 4), "long": (1, 2, 3, 4, 8, 16, 64)}
if KIND == "pnetcdf":
    # On 16 ranks PnetCDF itself reads something else now and then; many.py checks classic formats there.
    RANKS.update(default=(4,), long=(1, 2, 3, 4, 8))
SLOW = 5 if esdmtest.SANITIZE else 1


def compare(folder, ranks):
    env = mpirun.make_site(folder, f"{KIND}{ranks}")
    files = folder / f"files{ranks}"
    files.mkdir()
    if ranks == 4:
        records = esdmtest.BUILD / "tests/netcdf/compare/records"
        records.mkdir(exist_ok=True)
        env["NC_COMPARE_RECORD"] = str(records / f"parallel-{KIND}")
    # Many ranks on few cores take long in MPI: the longest area alone, but in the long form.
    areas = ["par_access"] if ranks > 4 and esdmtest.SIZE != "long" else []
    done = mpirun.run("openmpi", ranks, [PROGRAM, str(files), *areas], env,
                      timeout=(500 + 100 * ranks) * SLOW)
    passed = re.search(r"PASSED *\] (\d+) test", done.stdout)
    print(f"{ranks} ranks: {passed.group(1) if passed else '?'} comparisons", flush=True)


def main():
    if "thread" in esdmtest.SANITIZE:
        esdmtest.skip("threads are watched in integration.ranks; HDF5 and MPI are not built for it")
    if not PROGRAM:
        mpirun.missing("libnetcdf-" + KIND + "-dev and OpenMPI were not there when ESDM was built")
    mpirun.launcher("openmpi")
    with tempfile.TemporaryDirectory(prefix="esdm-parallel.", dir=esdmtest.folder_of_sites()) as name:
        for ranks in RANKS[esdmtest.SIZE]:
            compare(pathlib.Path(name), ranks)


main()
