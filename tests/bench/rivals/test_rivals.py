#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""The benchmark of rivals works: ESDM and CDF-5 in small patterns, with the same values."""

import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(sys.argv[1])


def compare(folder, *args):
    return subprocess.run(["/usr/bin/python3", HERE / "compare.py", "--build", BUILD, "--python", "/usr/bin/python3",
                           "--folder", folder, "--repeat", "1", "--scale", "0.008", *args], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)


with tempfile.TemporaryDirectory() as folder:
    told = pathlib.Path(folder) / "told.json"
    done = compare(folder, "--stores", "esdm,cdf-5", "--json", told,
                   "--patterns", "structured,unbalanced,isosurface")
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads(told.read_text())
    assert not results["failed"], results["failed"]
    ran = {(r["pattern"], r["task"], r["store"]): r["runs"] for r in results["runs"]}
    assert len({p for p, _, _ in ran}) == 3, ran.keys()
    for (pattern, task, store), runs in ran.items():
        assert runs[0]["seconds"] > 0, (pattern, task, store)
        assert task == "write" or runs[0]["checksum"] == ran[pattern, task, "ESDM"][0]["checksum"]
    stored = {(b["pattern"], b["store"]): b for b in results["bytes"]}
    values = ran["structured", "write", "ESDM"][0]["value_bytes"]
    # ESDM was in the path: packs and a catalogue beside the name, and they have the values
    assert stored["structured", "ESDM"]["files"] > 1
    assert stored["structured", "ESDM"]["bytes"] >= values
    assert stored["structured", "ESDM deflate 1"]["bytes"] < stored["structured", "ESDM"]["bytes"]
    assert "| CDF-5 |" in done.stdout and "### isosurface" in done.stdout, done.stdout
    done = compare(folder, "--patterns", "cubes")
    assert done.returncode == 1 and "no pattern 'cubes'" in done.stderr, done.stderr
    assert not list(pathlib.Path(folder).glob("esdm-rivals.*"))
print("ok")
