#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""A Fortran model on several ranks gives the same data in containers as in files.

Debian's netCDF-Fortran is linked to the serial libnetcdf. Stock netCDF gets a parallel one preloaded;
ESDM serves the program with that, and with the serial one as well."""

import pathlib
import shutil
import subprocess
import tempfile

import esdmtest
import mpirun

HERE = pathlib.Path(__file__).parent
LIBRARIES = pathlib.Path("/usr/lib/x86_64-linux-gnu")
COMPARE = esdmtest.BUILD / "tests/netcdf/clients/nc_compare"
# What to preload for a format: HDF5 in parallel, and PnetCDF.
PRELOADED = {"nc4": LIBRARIES / "libnetcdf_mpi.so.19", "cdf5": LIBRARIES / "libnetcdf_pnetcdf.so.19"}


def build(folder):
    compiler = shutil.which("mpifort.openmpi")
    if not compiler or not pathlib.Path("/usr/include/netcdf.mod").exists():
        mpirun.missing("mpifort.openmpi or libnetcdff-dev is not installed")
    for library in PRELOADED.values():
        if not library.exists():
            mpirun.missing(f"there is no {library.name}")
    program = folder / "model"
    subprocess.run([compiler, "-I/usr/include", str(HERE / "model.f90"), "-o", str(program),
                    "-lnetcdff"], cwd=folder, check=True)
    return program


def run(program, ranks, path, kind, env, preload=None, prefix=()):
    """What the ranks printed, sorted. `preload`: a libnetcdf that comes before the one of netCDF-Fortran."""
    command = [*prefix, str(program), path, kind]
    libraries = [str(preload)] if preload else []
    if prefix and esdmtest.SANITIZE:
        env = esdmtest.client_environment(env, inherit=False)
        libraries.insert(0, env.pop("LD_PRELOAD"))
    if libraries:
        command = ["env", "LD_PRELOAD=" + ":".join(libraries)] + command
    lines = mpirun.run("openmpi", ranks, command, env).stdout.splitlines()
    return "\n".join(sorted(line for line in lines if line.startswith(" rank ")))


def compare(program, folder, ranks, kind):
    env = mpirun.make_site(folder, f"{kind}{ranks}")
    plain = folder / f"{kind}{ranks}.nc"
    expected = run(program, ranks, str(plain), kind, env, PRELOADED[kind])
    if len(expected.splitlines()) != ranks:
        raise SystemExit(f"stock netCDF: {expected}")
    for name, preload in (("serial", None), ("parallel", PRELOADED[kind])):
        got = run(program, ranks, f"esdm://fortran/{name}.nc", kind, env, preload,
                  [esdmtest.tool("esdm-run")])
        if got != expected:
            raise SystemExit(f"{kind}, {ranks} ranks, {name} libnetcdf:\n{expected}\n{got}")
        copy = folder / f"{kind}{ranks}{name}.nc"
        esdmtest.client(["nccopy", f"esdm://fortran/{name}.nc", copy],
                        env={"ESDM_CONFIG": env["ESDM_CONFIG"]})
        esdmtest.run([COMPARE, plain, copy])
    print(f"{kind}, {ranks} ranks: equal")


def main():
    if "thread" in esdmtest.SANITIZE:
        esdmtest.skip("threads are watched in integration.ranks; HDF5 and MPI are not built for it")
    mpirun.launcher("openmpi")
    with tempfile.TemporaryDirectory(prefix="esdm-fortran.") as name:
        folder = pathlib.Path(name)
        program = build(folder)
        for kind in PRELOADED:
            for ranks in esdmtest.by_size((4,), (4,), (1, 3, 4, 8)):
                compare(program, folder, ranks, kind)


main()
