# SPDX-License-Identifier: LGPL-3.0-or-later
"""Copies data sets with xarray: each line of the list is `source TAB middle TAB target`."""

import sys
import warnings

import xarray

warnings.simplefilter("ignore")


def copy(source, target):
    with xarray.open_dataset(source) as dataset:
        dataset.to_netcdf(target)


with open(sys.argv[1], encoding="utf-8") as listing:
    for line in listing:
        source, middle, target = line.rstrip("\n").split("\t")
        copy(source, middle)
        copy(middle, target)
        with xarray.open_dataset(source) as a, xarray.open_dataset(middle) as b:
            for name in a.variables:
                if not a[name].equals(b[name]):
                    sys.exit(f"{middle}: {name} differs from {source}")
