# SPDX-License-Identifier: LGPL-3.0-or-later
"""What netCDF4-python can do on several ranks: python_ranks.py PATH FORMAT. Rank 0 prints what
all ranks read in the end."""

import sys

import netCDF4
import numpy
from mpi4py import MPI

PATH, FORMAT = sys.argv[1:]
COMM = MPI.COMM_WORLD
RANK, RANKS = COMM.rank, COMM.size
MINE = slice(4 * RANK, 4 * RANK + 4)


def write():
    with netCDF4.Dataset(PATH, "w", format=FORMAT, parallel=True, comm=COMM, info=MPI.Info()) as file:
        file.createDimension("t", None)
        file.createDimension("x", 4 * RANKS)
        file.title = "on several ranks"
        steps = file.createVariable("steps", "f8", ("t", "x"), zlib=True, chunksizes=(1, 4))
        steps.units = "K"
        owners = file.createVariable("owners", "i4", ("x",), fill_value=-9)
        steps.set_collective(True)
        for step in range(3):
            steps[step, MINE] = numpy.arange(4) + 10 * RANK + 100 * step
        if RANK % 2 == 0:
            owners[MINE] = RANK


def append():
    with netCDF4.Dataset(PATH, "a", parallel=True, comm=COMM) as file:
        file["steps"].set_collective(True)
        file["steps"][3, MINE] = -RANK
        file["owners"].long_name = "who wrote"
        file["owners"].set_collective(False)
        if RANK == 1:
            file["owners"][4 * RANK] = 100
        file.sync()


def read():
    with netCDF4.Dataset(PATH, parallel=True, comm=COMM) as file:
        steps, owners = file["steps"], file["owners"]
        seen = [file.data_model, file.title, steps[:].tolist(), steps.filters()["zlib"],
                owners[:].tolist(), owners.ncattrs(), len(file.dimensions["t"])]
    for rank, values in enumerate(COMM.gather(seen) or []):
        print(f"rank {rank}:", values)


write()
append()
read()
