#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""netCDF4-python on several ranks (parallel=True, with mpi4py) reads the same from containers as from
files.

Neither Debian's netCDF4-python nor PyPI's wheels can do that. Its source distribution is built
against libnetcdf_mpi, in the long form of the tests, and kept in the user's cache."""

import pathlib
import subprocess
import sys
import tempfile

import esdmtest
import mpirun

sys.path.insert(0, str(esdmtest.SOURCE / "tests/netcdf/clients"))
import clients  # pylint: disable=wrong-import-position

VERSION = "1.6.5"  # the last one for Debian's numpy
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
SETTINGS = {"USE_SETUPCFG": "0", "USE_NCCONFIG": "0", "CC": "mpicc.openmpi",
            "HDF5_INCDIR": "/usr/include/hdf5/openmpi", "HDF5_LIBDIR": f"{LIBRARIES}/hdf5/openmpi",
            "NETCDF4_INCDIR": f"{LIBRARIES}/netcdf/mpi/include",
            "NETCDF4_LIBDIR": f"{LIBRARIES}/netcdf/mpi"}
CHECK = "import mpi4py.MPI, netCDF4; assert netCDF4.__has_parallel4_support__"


def works(python):
    return python.exists() and subprocess.run([python, "-c", CHECK], stderr=subprocess.DEVNULL,
                                              check=False).returncode == 0


def build(folder):
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--system-site-packages", folder], check=True)
    pip = [folder / "bin/pip", "--no-cache-dir", "install", "-q"]
    tools = subprocess.run([*pip, "cython>=0.29,<3.1", "setuptools>=61", "setuptools_scm"], check=False)
    built = tools.returncode == 0 and subprocess.run(
        [*pip, "--no-deps", "--no-binary", "netCDF4", "--no-build-isolation", f"netCDF4=={VERSION}"],
        env={**esdmtest.environment(), **SETTINGS}, check=False).returncode == 0
    if not built:
        esdmtest.skip("netCDF4-python cannot be built from PyPI's source distribution")


def python_of_cache():
    folder = clients.cache_folder() / f"netcdf4-mpi-{VERSION}"
    python = folder / "bin/python"
    if not works(python):
        if esdmtest.SIZE != "long":
            esdmtest.skip("netCDF4-python with mpi4py is built in the long form of the tests")
        if not pathlib.Path("/usr/lib/python3/dist-packages/mpi4py").exists():
            mpirun.missing("python3-mpi4py is not installed")
        build(folder)
    return python


def main():
    if esdmtest.SANITIZE:
        esdmtest.skip("without sanitizers")
    mpirun.launcher("openmpi")
    python = python_of_cache()
    program = [str(python), str(pathlib.Path(__file__).with_name("python_ranks.py"))]
    with tempfile.TemporaryDirectory(prefix="esdm-python.") as name:
        env = mpirun.make_site(name, "python")
        for kind in ("NETCDF4", "NETCDF4_CLASSIC"):
            seen = []
            for path, prefix in ((f"{name}/{kind}.nc", []),
                                 (f"esdm://python/{kind}.nc", [esdmtest.tool("esdm-run")])):
                done = mpirun.run("openmpi", 4, [*prefix, *program, path, kind], env)
                seen.append(sorted(line for line in done.stdout.splitlines() if "rank" in line))
            if seen[0] != seen[1] or len(seen[0]) != 4:
                raise SystemExit(f"{kind}:\n{seen[0]}\n{seen[1]}")
            print(f"{kind}: equal on 4 ranks")


main()
