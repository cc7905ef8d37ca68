# SPDX-License-Identifier: LGPL-3.0-or-later
"""The Python installations that tests run: Debian's, and one with wheels of PyPI."""

import difflib
import hashlib
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

from esdmtest import BUILD, Failed, Site, client, environment, expect, run, skip

HERE = pathlib.Path(__file__).parent
COMPARE = BUILD / "tests/netcdf/clients/nc_compare"

# What the wheels' installation holds.
WHEELS = ["netCDF4>=1.7", "xarray>=2024.1", "numpy", "cftime", "dask", "pytest"]
# An installation of its own: zarr 3, and what reads over HTTP.
ZARR = ["zarr>=3", "netCDF4>=1.7", "xarray>=2025.1", "numpy", "fsspec", "aiohttp", "tensorstore", "h5py",
        "pydap"]
# Who catches what functions raise: workers, notebooks.
WORKERS = ["netCDF4>=1.7", "xarray>=2024.1", "numpy", "distributed", "joblib", "ipython", "trio", "uvloop"]
# What xarray's own tests need besides, for none of them to be skipped for that.
SUITE = [*WHEELS, "scipy", "pytest-asyncio"]


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(os.environ.get("ESDM_TEST_CACHE", base)) / "esdm-tests"


def python_tag():
    """Names what belongs to one version of Python in the cache: "3.11"."""
    return "%d.%d" % sys.version_info[:2]


def python_of(kind):
    """Path of an interpreter that imports netCDF4 and xarray; skips the test when there is none."""
    if kind == "debian":
        python = "/usr/bin/python3"
        if not all(importlib.util.find_spec(name) for name in ("netCDF4", "xarray")):
            skip("Debian's python3-netcdf4 and python3-xarray are not installed")
        return python
    name, wheels = {"zarr": ("zarr", ZARR), "workers": ("workers", WORKERS), "suite": ("suite", SUITE)}.get(kind, ("wheels", WHEELS))
    # Other versions of these tests, which may run beside this one, want other wheels.
    told = hashlib.sha256(" ".join(wheels).encode()).hexdigest()[:8]
    folder = cache_folder() / f"{name}-{python_tag()}-{told}"
    python = folder / "bin/python"
    if not is_complete(folder, wheels):
        make_environment(folder, python, wheels)
    return str(python)


def is_complete(folder, wheels):
    mark = folder / "complete"
    return mark.exists() and mark.read_text() == " ".join(wheels)


def make_environment(folder, python, wheels):
    """Two tests may come at once: the second one waits for the lock."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    import fcntl

    with open(folder.parent / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_complete(folder, wheels):
            return
        steps = [
            [sys.executable, "-m", "venv", "--clear", str(folder)],
            [str(python), "-m", "pip", "install", "-q", "--only-binary=:all:", *wheels],
        ]
        for step in steps:
            done = subprocess.run(step, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False, timeout=300,
                                  env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"})
            if done.returncode:
                skip(f"cannot install wheels from PyPI: {done.stdout.strip()[-300:]}")
        (folder / "complete").write_text(" ".join(wheels))


def check_modes(python, env=None):
    """netcdf4_modes.py, with an interpreter and an environment, on files and on esdm:// paths."""
    script = HERE / "netcdf4_modes.py"
    with Site() as site:
        folder = site.file("files")
        folder.mkdir()
        on_files = run([python, script, folder], env=environment(env))
        on_esdm = client([python, script, "esdm://modes"], env=env)
        compare_output(on_files.stdout, on_esdm.stdout, f"{python} {env}")
        if shutil.which("nccopy") is None:
            return
        names = sorted(p.name for p in folder.glob("*.nc"))
        expect(len(names) >= 8, f"{python} {env}: {names}")
        for name in names:
            out = site.file(name)
            client(["nccopy", f"esdm://modes/{name}", out])
            run([COMPARE, "--ignore-attribute", "_NCProperties", out, folder / name])


def compare_output(on_files, on_esdm, what):
    """Two runs that must have printed the same."""
    if on_files != on_esdm:
        lines = difflib.unified_diff(on_files.splitlines(), on_esdm.splitlines(), "on files",
                                     "on ESDM", lineterm="")
        raise Failed(f"{what}\n" + "\n".join(list(lines)[:60]))
