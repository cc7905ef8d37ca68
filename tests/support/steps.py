# SPDX-License-Identifier: LGPL-3.0-or-later
"""A NetCDF program that gives a container one commit after another: step i has the values i, i + 1 … and the attribute step."""

from esdmtest import client

WRITE = """
import netCDF4, numpy, sys
name, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for i in range(first, last):
    with netCDF4.Dataset(f"esdm://{name}", "a" if i else "w") as d:
        if not i:
            d.createDimension("x", 5000)
            d.createVariable("v", "f8", ("x",))
        d["v"][:] = numpy.arange(5000.0) + i
        d.step = i
"""


def write(name, first, last, check=True):
    """Steps `first` to `last` - 1; returns the finished process."""
    return client(["/usr/bin/python3", "-c", WRITE, name, str(first), str(last)], check=check)
