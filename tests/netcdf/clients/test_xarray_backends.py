#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""xarray's own tests of its netCDF4 backend, unmodified, in a routed folder: every file that they make
is a container and a stub. In the long form of the tests."""

import re

import clients
from esdmtest import SIZE, Failed, Site, client, environment, expect, main, run, skip, tool

# The engines of other libraries are not concerned.
SELECTED = "(NetCDF4 or netcdf4 or Dask) and not h5netcdf and not H5 and not Zarr and not zarr"


def outcomes(text):
    """{"passed": 432, …}"""
    return {word: int(count) for count, word in re.findall(r"(\d+) (\w+)", text.splitlines()[-1])}


def test_backend_tests__pass():
    if SIZE != "long":
        skip("in the long form of the tests")
    python = clients.python_of("pypi")
    command = [python, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "-W", "ignore",
               "-k", SELECTED, "--pyargs", "xarray.tests.test_backends"]
    with Site() as site:
        found = []
        for name in ("plain", "routed"):
            folder = site.file(name)
            folder.mkdir()
            env = {"TMPDIR": str(folder)}
            if name == "plain":
                done = run(command, check=False, cwd=folder, env=environment(env))
            else:
                env["ESDM_NC_ROUTE"] = str(folder)
                done = client(command, check=False, cwd=folder, env=env)
            found.append(done)
        stock, got = (outcomes(done.stdout) for done in found)
        if got.get("failed") or got.get("error") or got.get("errors"):
            raise Failed("\n".join(line for line in found[1].stdout.splitlines()
                                   if re.match(r"FAILED|ERROR|E  ", line))[:3000])
        expect(got["passed"] == stock["passed"], f"{stock} on files, {got} on containers")
        expect(got["passed"] > 400, found[1].stdout[-2000:])
        names = run([tool("esdm-ls")]).stdout.split()
        print(f"        {got['passed']} tests pass, {len(names)} containers are left")


main(test_backend_tests__pass)
