#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Starts a program that is linked to ESDM's part for another MPI: other_mpi.py MPI PROGRAM"""

import os
import sys
import tempfile

import esdmtest
import mpirun

if "thread" in os.environ.get("ESDM_SANITIZE", ""):
    print("skipped: MPICH does not run under ThreadSanitizer")
    sys.exit(77)
with tempfile.TemporaryDirectory(prefix="esdm-mpi.", dir=esdmtest.folder_of_sites()) as folder:
    mpirun.run(sys.argv[1], 2, [sys.argv[2]], mpirun.environment(folder))
