#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""netCDF-C 4.10 and newer read stub files without esdm-run, when an RC file tells them to."""

import pathlib

import clients
from esdmtest import (SOURCE, Site, client, client_environment, expect, expect_error, main, run,
                      skip, tool)

HERE = pathlib.Path(__file__).parent
OPEN = "import sys, netCDF4; netCDF4.Dataset(sys.argv[1], sys.argv[2]).close()"


class RcSite(Site):
    """A site with a routed folder that holds `all.nc`, every atomic type and groups."""

    def __enter__(self):
        super().__enter__()
        self.python = clients.python_of("pypi")
        version = run([self.python, "-c", "import netCDF4; print(netCDF4.__netcdf4libversion__)"])
        if tuple(map(int, version.stdout.split(".")[:2])) < (4, 10):
            skip(f"the wheel bundles netCDF {version.stdout.strip()}, older than 4.10")
        folder = self.file("routed")
        folder.mkdir()
        self.stub = folder / "all.nc"
        self.route = {"ESDM_NC_ROUTE": str(folder)}
        client(["ncgen", "-k", "nc4", "-o", self.stub,
                SOURCE / "tests/netcdf/clients/all_types.cdl"], env=self.route)
        self.rc = self.file("rc")
        self.rc.write_text(run([tool("esdm-run"), "--print-rc"]).stdout)
        return self

    def alone(self, *command, check=True):
        """Without esdm-run."""
        env = client_environment({"NCRCENV_RC": str(self.rc)})
        return run([self.python, *command], env=env, check=check)


def test_reads_what_esdm_run_reads():
    with RcSite() as site:
        expected = client([site.python, HERE / "python_dump.py", site.stub]).stdout
        got = site.alone(HERE / "python_dump.py", site.stub).stdout
        expect(got == expected, f"expected:\n{expected[:2000]}\ngot:\n{got[:2000]}")
        expect("NETCDF4" in got and len(got) > 3000, got)


def test_from_the_home_folder():
    with RcSite() as site:
        home = site.file("home")
        home.mkdir()
        (home / ".ncrc").write_text(site.rc.read_text())
        env = client_environment({"HOME": str(home)})
        got = run([site.python, HERE / "python_dump.py", site.stub], env=env).stdout
        expect("NETCDF4" in got and len(got) > 3000, got)


def test_writes_nothing():
    with RcSite() as site:
        expect_error(site.alone("-c", OPEN, site.stub, "a", check=False), "esdm-run",
                     "for reading only")
        site.alone("-c", OPEN, site.file("plain.nc"), "w")
        expect(site.file("plain.nc").read_bytes()[:4] == b"\x89HDF", "no plain file")


def test_esdm_run_comes_first():
    with RcSite() as site:
        env = dict(site.route, NCRCENV_RC=str(site.rc))
        client([site.python, "-c", OPEN, site.stub, "a"], env=env)
        client([site.python, "-c", OPEN, "esdm://new.nc", "w"], env=env)
        client([site.python, "-c", OPEN, site.stub.with_name("new.nc"), "w"], env=env)
        client([site.python, "-c", OPEN, site.stub.with_name("new.nc"), "r"], env=env)


main(test_reads_what_esdm_run_reads, test_from_the_home_folder, test_writes_nothing,
     test_esdm_run_comes_first)
