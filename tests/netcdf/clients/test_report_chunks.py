#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-run --report of programs whose chunks have another shape than what they write, and of one that moves no values at all."""

import pathlib
import re
import subprocess
import tempfile

from esdmtest import client_environment, expect, main, run, skip, tool

# A mean of 50 steps goes into chunks of 50 steps, as ncra makes them of its input.
MEAN = """
import sys, netCDF4, numpy
values = numpy.add.outer(numpy.arange(192), numpy.arange(288)).astype("f4")
with netCDF4.Dataset(sys.argv[1], "w") as d:
    for name, size in (("time", None), ("lat", 192), ("lon", 288)):
        d.createDimension(name, size)
    v = d.createVariable("tas", "f4", ("time", "lat", "lon"), zlib=True, complevel=5, chunksizes=(int(sys.argv[2]), 96, 144))
    for i in range(int(sys.argv[3])):
        v[i] = values + i
"""

# Chunks of eight records, of which there are eight; another one is added, or the last one is written again.
RECORDS = """
import sys, netCDF4, numpy
values = numpy.random.default_rng(7).normal(280, 9, (512, 512)).astype("f4")
with netCDF4.Dataset(sys.argv[1], sys.argv[2]) as d:
    if sys.argv[2] == "w":
        for name, size in (("time", None), ("lat", 512), ("lon", 512)):
            d.createDimension(name, size)
        d.createVariable("tas", "f4", ("time", "lat", "lon"), zlib=True, complevel=4, chunksizes=(8, 512, 512))
    for i in sys.argv[3:]:
        d["tas"][int(i)] = values + int(i)
"""

LOOK = """
import sys, netCDF4
print(len(netCDF4.Dataset(sys.argv[1]).variables))
"""


def told(script, *arguments):
    done = subprocess.run([str(c) for c in (tool("esdm-run"), "-q", "--report", "/usr/bin/python3", "-c", script, *arguments)],
                          env=client_environment(None), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False)
    expect(done.returncode == 0, done.stderr)
    return " ".join(done.stderr.split())


def test_chunks_that_are_hardly_filled():
    """221 kB are written, and 11 MB are compressed. A file whose chunks are filled has other advice."""
    with tempfile.TemporaryDirectory(prefix="esdm-test-report.") as name:
        path = pathlib.Path(name) / "mean.nc"
        text = told(MEAN, path, 50, 1)
        found = re.search(r"Writing was held up by compression: ([0-9.]+) (m?s) of work.*?wrote 221 kB of values there, and its chunks of 50 x 96 x 144 hold "
                          r"11 MB: the rest is fill values, which are compressed, too\. Chunks of the shape that is written .*?Could save up to ([0-9.]+) (m?s)", text)
        expect(found, text)
        work, saved = (float(found[i]) * {"ms": 1e-3, "s": 1}[found[i + 1]] for i in (1, 3))
        expect(0.9 * work < saved <= work, f"all but a fiftieth: {found[0]}")
        for steps, count in ((1, 50), (50, 50)):
            text = told(MEAN, path, steps, count)
            expect("Writing was held up by compression" in text and "the rest is fill values" not in text, text)


def test_files_that_were_there():
    """What a run adds to a file, or writes again, is little of what chunks hold that earlier runs filled. A new file in its place is told of."""
    with tempfile.TemporaryDirectory(prefix="esdm-test-report.") as name:
        path = pathlib.Path(name) / "records.nc"
        told(RECORDS, path, "w", *range(8))
        for step in (8, 3):
            text = told(RECORDS, path, "a", step)
            expect("Writing was held up by compression" in text and "fill values" not in text, f"{step}: {text}")
        text = told(RECORDS, path, "w", 0)
        expect("its chunks of 8 x 512 x 512 hold 8.4 MB: the rest is fill values" in text, text)


def test_a_program_that_moves_no_values():
    with tempfile.TemporaryDirectory(prefix="esdm-test-report.") as name:
        path = pathlib.Path(name) / "mean.nc"
        told(MEAN, path, 1, 2)
        text = told(LOOK, path)
        expect("NetCDF library: opening files, and what they say of themselves" in text and "conversion" not in text, text)


if run(["/usr/bin/python3", "-c", "import netCDF4"], check=False).returncode != 0:
    skip("no python3-netcdf4")
main(test_chunks_that_are_hardly_filled, test_files_that_were_there, test_a_program_that_moves_no_values)
