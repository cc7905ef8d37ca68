#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""The benchmark of a far server works: ESDM by itself, small steps, and a way that is long indeed."""

import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(sys.argv[1])

with tempfile.TemporaryDirectory() as folder:
    told = pathlib.Path(folder) / "told.json"
    done = subprocess.run(["/usr/bin/python3", HERE / "far.py", "--build", BUILD, "--python", "/usr/bin/python3",
                           "--stores", "esdm", "--repeat", "1", "--mib", "0.25", "--steps", "40", "--json", told],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode == 77:
        print(done.stdout)
        sys.exit(77)
    assert done.returncode == 0, done.stdout
    rows = {row["task"]: row for row in json.loads(told.read_text())[0]["rows"]}
    assert rows["point"]["seconds"] >= 0.03, rows["point"]  # a request took its way
    assert 1 <= rows["point"]["requests"] <= 2, rows["point"]
    assert rows["series"]["requests"] <= 42, rows["series"]
    assert rows["loop"]["seconds"] < 40 * 0.03, rows["loop"]  # one after the other would take that
    assert rows["loop"]["at_once"] >= 16, rows["loop"]
    assert rows["whole"]["bytes"] >= 40 << 18, rows["whole"]
    assert "| loop | ESDM |" in done.stdout, done.stdout
