#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""xarray's own tests of its netCDF4 engine, unmodified, for the engine "esdm": a part in short forms, all in the long one."""

import re
import subprocess

import clients
from esdmtest import BUILD, SANITIZE, SIZE, Failed, Site, client_environment, expect, main, skip
from inprocess import packages

# What is drawn otherwise: what values, types and encodings come back as.
PART = "TestEngine and not Dask and roundtrip"


def test_their_tests_pass():
    if SANITIZE:
        skip("the sanitizer's library must come first, and nothing is preloaded here")
    python = clients.python_of("suite" if SIZE == "long" else "pypi")
    chosen = [] if SIZE == "long" else ["-k", PART]
    with Site() as site:
        env = client_environment({"PYTHONPATH": str(packages(site)),
                                  "ESDM_LIBRARY_DIR": f"{BUILD}:{BUILD / 'netcdf-plugin'}"})
        env.pop("LD_PRELOAD", None)
        done = subprocess.run([python, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "-p",
                               "xarray.tests.conftest", "-W", "ignore", "--tb=short", *chosen,
                               clients.HERE / "xarray_suite.py"], env=env, cwd=site.folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        lines = [line for line in done.stdout.splitlines() if re.search(r"\d+ passed", line)]
        told = {word: int(count) for count, word in re.findall(r"(\d+) ([a-z]{2,})", lines[-1] if lines else "")}
        if done.returncode != 0:
            raise Failed("\n".join(line for line in done.stdout.splitlines() if re.match(r"FAILED|ERROR|E  ", line))[:3000]
                         or done.stdout[-3000:])
        expect(told.get("passed", 0) > (400 if SIZE == "long" else 20), f"{told} {done.stdout[-1000:]}")
        print(f"        {told}")


main(test_their_tests_pass)
