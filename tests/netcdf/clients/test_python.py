#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""netCDF4-python and xarray, of Debian and of PyPI: netcdf4_modes.py says the same on esdm:// paths
as on files, and leaves the same data sets."""

import pathlib
import shutil

import clients
from esdmtest import BUILD, Site, client, expect, main, run

SCRIPT = pathlib.Path(__file__).parent / "netcdf4_modes.py"
COMPARE = BUILD / "tests/netcdf/clients/nc_compare"


def check(kind):
    python = clients.python_of(kind)
    with Site() as site:
        folder = site.file("files")
        folder.mkdir()
        on_files = run([python, SCRIPT, folder])
        on_esdm = client([python, SCRIPT, "esdm://modes"])
        if on_esdm.stdout != on_files.stdout:
            site.file("a").write_text(on_files.stdout)
            site.file("b").write_text(on_esdm.stdout)
            diff = run(["diff", site.file("a"), site.file("b")], check=False).stdout
            expect(False, f"{kind}: another output than on files:\n{diff[:3000]}")
        if shutil.which("nccopy") is None:
            return
        names = sorted(p.name for p in folder.glob("*.nc"))
        expect(len(names) >= 8, f"{kind}: {names}")
        for name in names:
            out = site.file(name)
            client(["nccopy", f"esdm://modes/{name}", out])
            run([COMPARE, "--ignore-attribute", "_NCProperties", out, folder / name])


def test_debian_packages():
    check("debian")


def test_pypi_wheels():
    check("pypi")


main(test_debian_packages, test_pypi_wheels)
