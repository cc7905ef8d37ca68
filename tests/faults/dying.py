# SPDX-License-Identifier: LGPL-3.0-or-later
"""A NetCDF program, run by test_stores.py, during whose write a target dies.

    dying.py write FILE RECORDS AT COMMAND   before record AT the shell runs COMMAND
    dying.py check FILE RECORDS
"""

import subprocess
import sys

import netCDF4
import numpy

LARGE, SMALL = 400_000, 100  # elements of a record: a fragment of its own, and gathered


def record(i, n):
    return numpy.random.default_rng(i).standard_normal(n).astype("f4")


def write(path, records, at, command):
    with netCDF4.Dataset(path, "w") as out:
        out.createDimension("time", None)
        for name, n in (("large", LARGE), ("small", SMALL)):
            out.createDimension(name, n)
            out.createVariable(name, "f4", ("time", name), fill_value=False)
        for i in range(records):
            if i == at:
                subprocess.run(command, shell=True, check=True)
            out["large"][i] = record(i, LARGE)
            out["small"][i] = record(i, SMALL)
            if i == records // 2:  # what was written is readable at once
                assert (out["small"][i // 2] == record(i // 2, SMALL)).all()


def check(path, records):
    with netCDF4.Dataset(path) as data:
        assert len(data.dimensions["time"]) == records
        for i in range(records):
            assert (data["large"][i] == record(i, LARGE)).all(), i
            assert (data["small"][i] == record(i, SMALL)).all(), i
    print("all values are there")


if sys.argv[1] == "write":
    write(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
else:
    check(sys.argv[2], int(sys.argv[3]))
