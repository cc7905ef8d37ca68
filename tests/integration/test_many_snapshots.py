#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""A container that grows by very many commits: any snapshot of it opens with about the reads of the newest one, has just
what it had, and the catalogue grows by what changed."""

import json
import pathlib
import re
import sys
import tempfile

from esdmtest import SOURCE, Site, by_build, by_size, client, expect, main, run, tool

sys.path.insert(0, str(SOURCE / "tests/faults"))
from faults import need_strace  # noqa: E402

COMMITS = by_size(100, 300, 3000) if by_build(False, True) else 100

GROW = """
import netCDF4, numpy, sys
first, last = int(sys.argv[1]), int(sys.argv[2])
with netCDF4.Dataset("esdm://grow.nc", "w" if first == 1 else "a") as d:
    if first == 1:
        d.createDimension("t", None); d.createDimension("x", 400)
        d.createVariable("v", "f8", ("t", "x")); d.createVariable("count", "i4", ())
    for i in range(first, last + 1):
        d["v"][i - 1] = i + numpy.arange(400.0)
        d["count"][...] = i                    # written over by each
        d.sync()
"""
CHECK = """
import netCDF4, numpy, sys
for text in sys.argv[1:]:
    number, i = text.rsplit(":", 1)
    i = int(i)
    with netCDF4.Dataset(f"esdm://grow.nc@{number}") as d:
        assert d["v"].shape == (i, 400) and int(d["count"][...]) == i, (number, d["v"].shape, int(d["count"][...]))
        for at in {0, i // 2, i - 1}:
            assert (d["v"][at] == at + 1 + numpy.arange(400.0)).all(), (number, at)
"""
READ = re.compile(r"^\d+ +(?:pread64|read|preadv)\(.* = (\d+)$")


def reads(name):
    """How often a program that opens it reads, and how much: of the catalogue and the packs."""
    with tempfile.NamedTemporaryFile() as log:
        client(["ncdump", "-h", f"esdm://{name}"],
               prefix=["strace", "-f", "-qq", "-y", "-o", log.name, "-e", "trace=pread64,read,preadv"])
        lines = [line for line in pathlib.Path(log.name).read_text(errors="replace").splitlines() if "/metadata/" in line]
    found = [int(match[1]) for match in map(READ.match, lines) if match]
    return len(found), sum(found)


def catalogue(site):
    return sum(path.stat().st_size for path in site.file("metadata").rglob("*") if path.is_file())


def script(code, *arguments):
    client(["/usr/bin/python3", "-c", code, *map(str, arguments)])


def test_any_of_very_many_snapshots_opens_as_the_newest():
    need_strace()
    with Site(history=COMMITS + 10, metadata={"plugin": "sqlite", "directory": "metadata"}) as site:
        half = COMMITS // 2
        script(GROW, 1, half)
        first = catalogue(site)
        script(GROW, half + 1, COMMITS)
        second = catalogue(site) - first
        print(f"{COMMITS} commits: the catalogue has {first / half:.0f} bytes a commit, then {second / half:.0f}")
        expect(second < 2 * first, f"the catalogue grew by {first} bytes, and then by {second}")
        told = json.loads(run([tool("esdm-log"), "--json", "grow.nc"]).stdout)["snapshots"]
        times = {one["snapshot"]: one["time"] for one in told}
        log = sorted(times)
        expect(len(log) >= COMMITS, f"{len(log)} snapshots")
        offset = log[-1] - COMMITS             # of the commit that a program ends with, if it makes one
        some = [1, 2, half, COMMITS - 1]
        script(CHECK, *(f"{name}:{i}" for i in some for name in (i + offset, times[i + offset])))
        newest = reads("grow.nc")
        reads_of = {}
        for said in (*(str(i + offset) for i in some), "-1", "-6"):
            older = reads_of[said] = reads(f"grow.nc@{said}")
            expect(older[0] <= 2 * newest[0] and older[1] <= 2 * newest[1], f"snapshot {said}: reads {older}, newest {newest}")
        for i in some:                         # a time is looked for by halves
            older = reads_of[f"time {i}"] = reads(f"grow.nc@{times[i + offset]}")
            number = reads_of[str(i + offset)]
            expect(older[0] <= number[0] + COMMITS.bit_length() and older[1] <= 2 * newest[1],
                   f"the time of snapshot {i + offset}: reads {older}, by its number {number}, newest {newest}")
        for said in "-1", "-6":                # all of them are listed for none of the last few
            expect(reads_of[said][0] <= newest[0] + 1, f"snapshot {said}: reads {reads_of[said]}, newest {newest}")
        a, b = some[2] + offset, some[2] + 1 + offset
        diff = json.loads(run([tool("esdm-diff"), "--json", f"grow.nc@{a}", f"grow.nc@{b}"], check=False).stdout)
        print(f"reads of an open: newest {newest}, others {reads_of}")
        values = {v["variable"]: v for v in diff["values"]}
        expect(values["/count"]["different"] == 1 and "/v" not in values, f"{values}")
        run([tool("esdm-fsck")])


if __name__ == "__main__":
    main(test_any_of_very_many_snapshots_opens_as_the_newest)
