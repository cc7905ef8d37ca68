#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Programs that end without nc_close(). An orderly end commits, as HDF5 flushes; a crash does not."""

import pathlib

import clients
from esdmtest import BUILD, Failed, Site, client, expect, main, run, skip, tool

SCRIPT = pathlib.Path(__file__).parent / "unclosed.py"
COMPARE = BUILD / "tests/netcdf/clients/nc_compare"

FORTRAN = """
program unclosed
  use netcdf
  integer :: ncid, x, v, rc
  character(len=200) :: path
  call get_command_argument(1, path)
  rc = nf90_create(trim(path), NF90_NETCDF4, ncid)
  rc = nf90_def_dim(ncid, 'x', 4, x)
  rc = nf90_def_var(ncid, 'v', NF90_INT, (/ x /), v)
  rc = nf90_enddef(ncid)
  rc = nf90_put_var(ncid, v, (/ 1, 2, 3, 4 /))
  if (rc /= NF90_NOERR) stop 2
end program
"""


def containers():
    return run([tool("esdm-ls")]).stdout.split()


def killed(call):
    try:
        call()
    except Failed:
        return
    raise Failed("was not killed")


def check_python(kind):
    python = clients.python_of(kind)
    with Site() as site:
        for how in ("return", "exit3", "exception", "daemon", "child"):
            name = f"{how}.nc"
            on_file = run([python, SCRIPT, site.file(name), how], check=False)
            on_esdm = client([python, SCRIPT, f"esdm://{name}", how], check=False)
            expect(on_esdm.returncode == on_file.returncode and on_esdm.stderr == on_file.stderr,
                   f"{how}: {on_file.returncode} {on_esdm.returncode}\n{on_esdm.stderr}")
            client(["nccopy", f"esdm://{name}", site.file("copy.nc")])
            run([COMPARE, "--ignore-attribute", "_NCProperties", site.file("copy.nc"),
                 site.file(name)])
        before = containers()
        client([python, SCRIPT, "esdm://_exit.nc", "_exit"])
        killed(lambda: client([python, SCRIPT, "esdm://terminated.nc", "terminated"]))
        expect(containers() == before, str(containers()))
        # What was committed before a hard end stays.
        client([python, SCRIPT, "esdm://synced.nc", "synced"])
        text = client(["ncdump", "-v", "v", "esdm://synced.nc"]).stdout
        expect("2999 ;" in text and "-1" not in text.split("data:")[1], text[-300:])
        # A classic file knows its number of records only once it is closed; a container does at once.
        client([python, SCRIPT, "esdm://classic.nc", "return", "NETCDF3_CLASSIC"])
        text = client(["ncdump", "-v", "v", "esdm://classic.nc"]).stdout
        expect("2999 ;" in text, text[-300:])


def test_python_of_debian():
    check_python("debian")


def test_python_of_pypi():
    check_python("pypi")


def test_fortran():
    with Site() as site:
        try:
            flags = [run(["nf-config", f"--{what}"]).stdout.split() for what in ("fflags", "flibs")]
            site.file("unclosed.f90").write_text(FORTRAN)
            run(["gfortran", *flags[0], site.file("unclosed.f90"), "-o", site.file("unclosed"),
                 *flags[1]], cwd=site.folder)
        except FileNotFoundError:
            skip("gfortran or libnetcdff-dev is not installed")
        client([site.file("unclosed"), "esdm://fortran.nc"])
        text = client(["ncdump", "esdm://fortran.nc"]).stdout
        expect("v = 1, 2, 3, 4 ;" in text, text)


main(test_python_of_debian, test_python_of_pypi, test_fortran)
