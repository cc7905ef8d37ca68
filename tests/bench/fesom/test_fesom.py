#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""The benchmark of a model's output works: all bits come back, and fewer are stored than by deflate 1."""

import json
import pathlib
import sys
import tempfile

import esdmtest
import mpirun

if esdmtest.SANITIZE:
    esdmtest.skip("it measures, and Fortran is compiled without sanitizers")
if not (esdmtest.DATA / "fields/merra_q.nc").exists():
    esdmtest.skip(f"no real fields in {esdmtest.DATA}")
mpirun.launcher("openmpi")
with tempfile.TemporaryDirectory(prefix="esdm-fesom-test.") as name:
    told = pathlib.Path(name) / "told.json"
    bench = pathlib.Path(__file__).with_name("fesom.py")
    done = esdmtest.run([sys.executable, bench, "--build", esdmtest.BUILD, "--nodes", "20000", "--steps", "4",
                         "--repeat", "1", "--folder", name, "--json", told], check=False)
    if done.returncode == 77:
        esdmtest.skip(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {row["row"]: row for row in json.loads(told.read_text())}
    assert len(rows) == 7, done.stdout
    for form in ("one file", "a file a variable"):
        stock, esdm = rows[f"netCDF-4 deflate 1, {form}"], rows[f"ESDM deflate 1, {form}"]
        assert esdm["value_bytes"] == 20000 * 4 * 4 * 31, esdm
        assert 0 < esdm["stored_bytes"] < stock["stored_bytes"], (esdm, stock)
    deflated, plain = rows["ESDM deflate 1, ranks independently"], rows["ESDM plain, ranks independently"]
    assert deflated["stored_bytes"] < 0.7 * plain["stored_bytes"], (deflated, plain)
print("ok")
