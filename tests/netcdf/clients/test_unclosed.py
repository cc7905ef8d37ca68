#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Programs that end without nc_close(). An orderly end commits, as HDF5 flushes; a crash does not."""

import pathlib
import subprocess
import threading

import clients
import prestarted
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

CDL = """netcdf t {{
dimensions: x = 4 ;
variables: float t(x) ; t:units = "K" ; t:esdm_absolute_tolerance = "{}" ;
data: t = 1, 2, 3, 4 ;
}}
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
        for how in ("return", "exit3", "daemon", "child"):
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


def test_failure_replaces_nothing():
    """What a name stood for stays when the program that was to replace it ends with a failure."""
    python = clients.python_of("debian")
    with Site() as site:
        data = site.file("data.nc")
        for where in ("esdm://run.nc", "routed"):
            routed = site.file("routed") / "run.nc"
            routed.parent.mkdir(exist_ok=True)
            route = {"ESDM_NC_ROUTE": str(routed.parent)} if where == "routed" else {}
            path = str(routed) if where == "routed" else where
            client([python, SCRIPT, path, "return"], env=route)
            before = client(["ncdump", path], env=route).stdout
            for how in ("exit3", "exception"):
                done = client([python, SCRIPT, path, how, "NETCDF3_CLASSIC"], env=route, check=False)
                expect(done.returncode != 0 and "stays" in done.stderr, done.stderr)
                expect(client(["ncdump", path], env=route).stdout == before, f"{where} {how}")
            client([python, SCRIPT, path, "return", "NETCDF3_CLASSIC"], env=route)
            expect(client(["ncdump", "-k", path], env=route).stdout != "netCDF-4\n", where)
        # A statement that is refused, by a program that does not close what it has made.
        site.file("good.cdl").write_text(CDL.format("0.01 K"))
        site.file("bad.cdl").write_text(CDL.format("0.01 C"))
        client(["ncgen", "-4", "-o", "esdm://kept.nc", site.file("good.cdl")])
        before = client(["ncdump", "esdm://kept.nc"]).stdout
        run(["ncgen", "-4", "-o", data, site.file("bad.cdl")])
        done = client(["nccopy", data, "esdm://kept.nc"], check=False)
        expect(done.returncode != 0, "nccopy took a wrong unit")
        expect(client(["ncdump", "esdm://kept.nc"]).stdout == before, done.stderr)


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


def test_one_that_takes_too_long_is_ended_alone():
    """Of the tests' own: clients that are forks of one program, which goes on then."""
    with Site():
        wait = "import netCDF4, time\ntime.sleep({})\nprint('slept')"
        command = ["/usr/bin/python3", "-c", wait.format(4)]
        expect(prestarted.takes(command, {}), "it is to be a fork")
        for code in ("import netCDF4, os\nos.system('ncdump x')", "import netCDF4, os\nos.execv('x', [])"):
            expect(not prestarted.takes(["/usr/bin/python3", "-c", code], {}), f"{code}: sees that it is a fork")
        zones = [prestarted.surroundings({"TZ": zone}) for zone in ("UTC", "Europe/Berlin")]
        expect(zones[0] != zones[1], "C libraries read TZ once")
        told = []
        other = threading.Thread(target=lambda: told.append(client(command).stdout))
        other.start()
        try:
            client(["/usr/bin/python3", "-c", wait.format(60)], timeout=1)
            raise Failed("it was waited for")
        except subprocess.TimeoutExpired:
            pass
        finally:
            other.join()
        expect(told == ["slept\n"], f"the other one: {told}")


main(test_one_that_takes_too_long_is_ended_alone, test_failure_replaces_nothing, test_python_of_debian, test_python_of_pypi, test_fortran)
