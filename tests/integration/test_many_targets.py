#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Sites with many targets: those behind the 64th take part as the others do."""

from esdmtest import BUILD, Site, client, expect, expect_error, main, run, skip, tool

# Writes, then makes one target useless before what it has in memory is stored.
MOVES = """
import shutil, sys
import netCDF4, numpy
d = netCDF4.Dataset("esdm://moves.nc", "w")
d.createDimension("time", None)
d.createDimension("x", 500)
v = d.createVariable("v", "f8", ("time", "x"))
for i in range(20):
    v[i] = numpy.arange(500.) + i
shutil.rmtree(sys.argv[1])
d.close()
d = netCDF4.Dataset("esdm://moves.nc")
for i in range(20):
    assert (d["v"][i] == numpy.arange(500.) + i).all(), i
"""


def targets(count, plugin="posix"):
    return [{"name": f"t{i}", "plugin": plugin, "directory": f"t{i}"} for i in range(count)]


def need_kv():
    """Its targets are made faster than folders with 256 folders each."""
    if not (BUILD / "esdm/esdm-data-kv.so").exists():
        skip("built without Kyoto Cabinet (package libkyotocabinet-dev)")


def test_all_take_part():
    need_kv()
    for count in (64, 65, 256):
        with Site(targets=targets(count, "kv"), engine={"fragment": "4 KiB", "inline": 0}) as site:
            run([tool("esdm-pattern"), "-q", "-s", f"{2 * count}x32x32", "esdm://a.nc"])
            run([tool("esdm-fsck")])
            used = {path.parent.name for path in site.folder.glob("t*/*.kch")}
            expect(len(used) == count, f"{len(used)} of {count} targets are used")


def test_too_many__are_refused():
    with Site(make=False, targets=targets(257)):
        for command in ([tool("esdm-mkfs")], [tool("esdm-ls")]):
            expect_error(run(command, check=False), "1 ... 256 targets")


def test_pack_moves_to_a_target_behind_the_64th():
    need_kv()
    for count in (64, 65):
        last = f"t{count - 1}"
        with Site(targets=targets(count, "kv"), engine={"inline": 0},
                  policies=[{"container": "*", "targets": ["t3", last]}]) as site:
            client(["/usr/bin/python3", "-c", MOVES, site.file("t3")])
            expect(any(site.file(last).glob("*.kch")), f"nothing has moved to {last}")


main(test_all_take_part, test_too_many__are_refused, test_pack_moves_to_a_target_behind_the_64th)
