#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Programs that write to, close or replace descriptors which they never opened harm only themselves."""

import resource

import clients
from esdmtest import BUILD, Site, by_size, client, expect, main, run, tool

PROGRAM = BUILD / "tests/netcdf/clients/nc_descriptors"
ALL = ("scribble", "close", "closefrom", "close_range", "dup2", "daemon", "exec")

PYTHON = """
import os, subprocess, sys
import netCDF4
d = netCDF4.Dataset("esdm://py.nc", "w")
d.createDimension("x", None)
v = d.createVariable("v", "f8", ("x",))
v[:1000] = range(1000)
d.sync()
subprocess.run(["true"], close_fds=True, check=True)
subprocess.run(["true"], close_fds=True, preexec_fn=lambda: os.closerange(3, 4096), check=True)
os.closerange(3, 4096)
files = [open(f"{sys.argv[1]}/mine.{i}", "w+b") for i in range(60)]
for f in files:
    f.write(b"mine" * 1000)
    f.flush()
v[1000:2000] = range(1000, 2000)
d.close()
for f in files:
    f.seek(0)
    assert f.read() == b"mine" * 1000
if os.fork() == 0:
    os.setsid()
    os.closerange(0, 4096)
    os.open("/dev/null", os.O_RDWR)
    d = netCDF4.Dataset("esdm://daemon.nc", "w")
    d.createDimension("x", 1)
    d.close()
    os._exit(0)
assert os.wait()[1] == 0
"""


def is_good(name):
    text = client(["ncdump", "-v", "v", f"esdm://{name}"]).stdout
    expect("63998, 63999 ;" in text and "_" not in text.split("data:")[1], text[-300:])


def check_site(site, ways, **options):
    client([PROGRAM, "daemon", "esdm://before.nc", site.folder])
    for how in ways:
        client([PROGRAM, how, f"esdm://{how}.nc", site.folder], **options)
        is_good(f"{how}.nc")
    is_good("before.nc")
    done = run([tool("esdm-fsck")])
    expect("0 problems" in done.stdout or "problem" not in done.stdout, done.stdout)


def test_programs():
    with Site() as site:
        check_site(site, ALL)
        inherited = site.file("inherited").read_text()
        expect(str(site.folder / "packs") not in inherited and "catalogue" not in inherited, inherited)


def test_small_limit():
    """Half of the numbers are the program's."""
    with Site() as site:
        limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
        check_site(site, by_size(("close", "daemon"), ALL[1:], ALL[1:]), preexec_fn=limit)


def test_python():
    for kind in by_size(("debian",), ("debian", "pypi"), ("debian", "pypi")):
        with Site() as site:
            client([clients.python_of(kind), "-c", PYTHON, site.folder])
            text = client(["ncdump", "-v", "v", "esdm://py.nc"]).stdout
            expect("1998, 1999 ;" in text and "_" not in text.split("data:")[1], text[-300:])
            expect(run([tool("esdm-ls")]).stdout.split() == ["daemon.nc", "py.nc"], "esdm-ls")
            run([tool("esdm-fsck")])


main(test_programs, test_small_limit, test_python)
