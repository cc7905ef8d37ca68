#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""xarray on dask, with threads and processes: xarray_dask.py says the same on esdm:// paths and in
a routed folder as on files."""

import shutil
import subprocess

import clients
from esdmtest import SIZE, Failed, Site, by_size, client, main, need_data, run, skip, some


def series():
    """The longest series of monthly files."""
    need_data()
    folders = {}
    for file in sorted(need_data("cmip6").rglob("ta_Amon_*_gr1_*.nc")):
        folders.setdefault(file.parent, []).append(file)
    return max(folders.values(), key=len)[: by_size(1, 1, 3)]


ATTEMPTS = 5


def stock_output(python, script, folder, files):
    """What it prints on files, and the folder that they are in. HDF5 is not made for threads and fails or hangs now
    and then: then again, in a folder of its own, as workers of the one that hung may still write."""
    for attempt in range(ATTEMPTS):
        own = folder.with_name(f"{folder.name}{attempt}")
        own.mkdir()
        try:
            return run([python, script, own, *files], timeout=90).stdout, own
        except (Failed, subprocess.TimeoutExpired):
            shutil.rmtree(own, ignore_errors=True)
    return skip("it fails on plain files again and again")


def check(kind):
    python = clients.python_of(kind)
    if subprocess.run([python, "-c", "import dask.array"], stderr=subprocess.DEVNULL,
                      check=False).returncode:
        skip("dask is not installed")
    files = series()
    script = clients.HERE / "xarray_dask.py"
    with Site() as site:
        routed = site.file("routed")
        routed.mkdir()
        expected, plain = stock_output(python, script, site.file("plain"), files)
        got = client([python, script, "esdm://dask", *files]).stdout
        clients.compare_output(expected, got, f"{kind}: esdm://")
        if SIZE == "long":
            env = {"ESDM_NC_ROUTE": str(routed)}
            got = client([python, script, routed, *files], env=env).stdout
            clients.compare_output(expected, got, f"{kind}: a routed folder")
        names = sorted(p.name for p in plain.iterdir())
        for name in names:
            client(["nccopy", f"esdm://dask/{name}", site.file("copy.nc")])
            run([clients.COMPARE, "--ignore-attribute", "_NCProperties", site.file("copy.nc"),
                 plain / name])


def test_debian_packages():
    check("debian")


def test_pypi_wheels():
    check("pypi")


main(*some([test_debian_packages, test_pypi_wheels], by_size(1, 2, 2)))
