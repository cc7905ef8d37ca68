# SPDX-License-Identifier: LGPL-3.0-or-later
"""Prints everything that netCDF4-python tells about a data set, and the values."""

import sys

import netCDF4


def attributes(holder):
    return {name: repr(holder.getncattr(name)) for name in holder.ncattrs()}


def show(group):
    print(group.path, attributes(group))
    for name, dimension in group.dimensions.items():
        print(group.path, name, len(dimension), dimension.isunlimited())
    for var in group.variables.values():
        print(group.path, var.name, var.dtype, var.dimensions, attributes(var))
        print(var.chunking(), var.filters(), var.endian(), var.get_var_chunk_cache())
        var.set_auto_maskandscale(False)
        print(var[...].tolist())
    for inner in group.groups.values():
        show(inner)


with netCDF4.Dataset(sys.argv[1]) as dataset:
    print(dataset.data_model)
    show(dataset)
