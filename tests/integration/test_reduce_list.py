#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Lists of esdm-reduce, which several threads write: each line is what printf() makes of its number, and all
are there, in their order."""

import subprocess

from esdmtest import Site, client, environment, expect, main, run, tool

MAKE = """
import netCDF4, numpy, sys
d = netCDF4.Dataset("esdm://run/in.nc", "w")
for name, length in (("time", 2), ("a", 3), ("b", 7), ("c", 5003)):
    d.createDimension(name, length)
v = d.createVariable("t", "f8", ("time", "a", "b", "c"), fill_value=1e20)
r = numpy.random.default_rng(5)
one = r.standard_normal((3, 7, 5003)) * 10.0 ** r.integers(-12, 14, (3, 7, 5003))
one[r.random(one.shape) < 0.05] = 0
one[r.random(one.shape) < 0.05] = 1e20
v[0], v[1] = one, one
one.tofile(sys.argv[1])
"""


def lines(array):
    """As Python counts and prints."""
    a, b, c = 3, 7, 5003
    at = 0
    for i in range(a):
        for j in range(b):
            for k in range(c):
                yield f"{i} {j} {k} " + ("-" if array[at] == 1e20 else f"{array[at]:.10g}")
                at += 1


def test_list__has_every_result_in_order():
    from array import array  # pylint: disable=import-outside-toplevel
    with Site() as site:
        client(["/usr/bin/python3", "-c", MAKE, site.file("numbers")])
        numbers = array("d")
        numbers.frombytes(site.file("numbers").read_bytes())
        got = run([tool("esdm-reduce"), "max", "run/in.nc", "t", "--over", "time"]).stdout
        for number, (line, wanted) in enumerate(zip(got.splitlines(), lines(numbers))):
            expect(line == wanted, f"line {number}: '{line}', not '{wanted}'")
        expect(got.count("\n") == len(numbers) and got.endswith("\n"), f"{got.count(chr(10))} lines")
        got = run([tool("esdm-reduce"), "count", "run/in.nc", "t", "--over", "time,a,b"]).stdout
        expect(got.splitlines()[7].startswith("7 ") and got.count("\n") == 5003, got[:200])
        got = run([tool("esdm-reduce"), "count", "run/in.nc", "t"]).stdout
        expect(got == f"{2 * sum(n != 1e20 for n in numbers)}\n", got)


def test_list__tells_when_it_cannot_be_written():
    with Site() as site:
        client(["/usr/bin/python3", "-c", MAKE, site.file("numbers")])
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([tool("esdm-reduce"), "max", "run/in.nc", "t", "--over", "time"], stdout=full,
                                  stderr=subprocess.PIPE, text=True, env=environment(), check=False)
        expect(done.returncode == 1 and "cannot write the output: No space left" in done.stderr,
               f"{done.returncode} {done.stderr}")


main(test_list__has_every_result_in_order, test_list__tells_when_it_cannot_be_written)
