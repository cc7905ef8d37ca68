#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""netCDF4-python and xarray, of Debian and of PyPI: netcdf4_modes.py says the same on esdm:// paths
as on files, and leaves the same data sets."""

import clients
from esdmtest import main


def test_debian_packages():
    clients.check_modes(clients.python_of("debian"))


def test_pypi_wheels():
    clients.check_modes(clients.python_of("pypi"))


main(test_debian_packages, test_pypi_wheels)
