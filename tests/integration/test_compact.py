#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-compact: fewer fragments, the same values; old snapshots stay readable; what others write
meanwhile is never hidden; a second call finds nothing to do."""

import json
import os
import subprocess
import time

from esdmtest import Site, client, client_environment, environment, expect, expect_error, main, run, tool
import postgres

import numpy

# Many small writes, some of them again, in an order that a seed says.
WRITE = """
import netCDF4, numpy, sys
random = numpy.random.default_rng(int(sys.argv[1]))
with netCDF4.Dataset("esdm://a.nc", "w") as d:
    for name, n in (("t", None), ("y", 40), ("x", 500)):
        d.createDimension(name, n)
    v = d.createVariable("v", "f8", ("t", "y", "x"))
    s = d.createVariable("s", str, ("y",))
    g = d.createGroup("g").createVariable("w", "i4", ("x",))
    for t in range(6):
        for y in random.permutation(40):
            v[t, y] = random.normal(0, 1, 500)
            if y % 8 == 0:
                d.sync()
    for y in range(40):
        s[y] = f"name {y}"
    for x in range(0, 500, 50):
        g[x:x + 50] = x
        d.sync()
"""
READ = """
import netCDF4, numpy, sys
with netCDF4.Dataset("esdm://" + sys.argv[1]) as d:
    numpy.save(sys.argv[2], d["v"][:].filled())
    assert list(d["s"][:]) == [f"name {y}" for y in range(40)]
    assert (d["g/w"][:] == numpy.arange(500) // 50 * 50).all()
"""
# Writes one row after the other, while it is compacted.
BUSY = """
import netCDF4, sys
for i in range(int(sys.argv[1])):
    with netCDF4.Dataset("esdm://a.nc", "a") as d:
        d["v"][i % 6, (7 * i) % 40] = 1000 + i
print("done", flush=True)
"""


def write(seed=1):
    client(["/usr/bin/python3", "-c", WRITE, str(seed)])


def read(site, name="a.nc"):
    file = site.file("v.npy")
    client(["/usr/bin/python3", "-c", READ, name, str(file)])
    return numpy.load(file)


def fragments(name="v"):
    """Of a variable, in the newest snapshot; hidden ones count until they are freed."""
    text = run([tool("esdm-stat"), "-f", "a.nc"]).stdout.split(f" {name}(")[1]
    return int(text.split("fragments: ")[1].split(";")[0])


def compact(*options, check=True):
    done = run([tool("esdm-compact"), "--json", *options, "a.nc"], check=check)
    return json.loads(done.stdout)["containers"][0] if check else done


STEPS = """
import netCDF4, numpy
with netCDF4.Dataset("esdm://a.nc", "w") as d:
    d.createDimension("t", None)
    d.createDimension("x", 5000)
    v = d.createVariable("v", "f4", ("t", "x"), chunksizes=(1, 5000))
    for t in range(3000):
        v[t] = numpy.arange(5000) * 0.37 + t
        if t % 10 == 0:
            d.sync()
"""


def test_what_is_stored_anew_in_steps_takes_no_more_room_afterwards():
    """Pages of the index that lie across several steps named what was hidden for ever, and kept the room of it."""
    with Site(history=1, engine={"fragment": "20 KiB"}) as site:
        client(["/usr/bin/python3", "-c", STEPS])
        run([tool("esdm-gc"), "--yes", "--age=0"])
        before, digest = packs(site), run([tool("esdm-stat"), "--digest", "a.nc"]).stdout
        done = compact("--chunk", "v=100,1000", "--step", "12M")
        expect(done["fragments"] == 3000 and newest() > 3, f"{done}, snapshot {newest()}")
        run([tool("esdm-gc"), "--yes", "--age=0"])
        expect(fragments() < 400 and packs(site) < 1.3 * before,
               f"{fragments()} fragments, {before} MiB before, {packs(site)} afterwards")
        expect(run([tool("esdm-stat"), "--digest", "a.nc"]).stdout == digest, "other values")
        run([tool("esdm-fsck"), "-q", "--data"])


def newest():
    told = json.loads(run([tool("esdm-log"), "--brief", "--json", "a.nc"]).stdout)["snapshots"]
    return told[0]["snapshot"]


def test_fewer_fragments_and_the_same_values():
    with Site(history=1000, engine={"fragment": "200 KiB"}) as site:
        write()
        before, number, count = read(site), newest(), fragments()
        digest = run([tool("esdm-stat"), "--digest", "a.nc"]).stdout.split()[0]
        would = compact("--dry-run")
        expect(would["fragments"] > 10 and newest() == number, f"{would}")
        done = compact()
        expect(done["fragments"] == would["fragments"] and done["commits"] == 1, f"{done} {would}")
        expect(fragments() <= 12 < count, f"{fragments()} of {count}")
        expect((read(site) == before).all(), "values have changed")
        expect(run([tool("esdm-stat"), "--digest", "a.nc"]).stdout.split()[0] == digest, "digest")
        expect((read(site, f"a.nc@{number}") == before).all(), "the old snapshot is not readable")
        again = compact()
        expect(again["fragments"] == 0 and again["commits"] == 0, f"{again}")
        done = compact("--chunk", "v=6,40,50")
        expect(done["commits"] == 1 and 4 <= fragments() <= 12 and (read(site) == before).all(), f"{fragments()}")
        expect(compact()["fragments"] == 0, "it is not what was stated")
        compact("--chunk", "v=1,40,500", "--step", "200K", "--speed", "100M")
        expect(fragments() <= 12 and (read(site) == before).all(), f"{fragments()}")
        run([tool("esdm-fsck"), "--data"])
        for wrong in (["--chunk", "v=6,4"], ["--chunk", "none=1"], ["--speed", "fast"]):
            expect_error(compact(*wrong, check=False))


def test_it_is_as_slow_as_is_asked_and_needs_no_more_room_afterwards():
    """A commit stores anew what it merges; what it replaces goes with the next look for garbage."""
    with Site(history=1, engine={"fragment": "200 KiB"}) as site:
        write()
        run([tool("esdm-gc"), "--yes", "--age=0"])
        before, values = packs(site), read(site)
        began = time.monotonic()
        done = compact("--step", "100K", "--speed", "500K")
        took = time.monotonic() - began
        expect(done["bytes"] > 900_000 and took > 0.9 * done["bytes"] / 500_000, f"{done['bytes']} bytes in {took} s")
        expect(packs(site) < 2.1 * before, f"{before} MiB before, {packs(site)} with what is garbage")
        run([tool("esdm-gc"), "--yes", "--age=0"])
        expect(packs(site) <= before and (read(site) == values).all(), f"{before} MiB before, {packs(site)} afterwards")


def test_writers_go_on():
    with Site(history=1000) as site:
        write(2)
        expected = read(site)
        count = 60
        busy = subprocess.Popen([tool("esdm-run"), "/usr/bin/python3", "-c", BUSY, str(count)],
                                stdout=subprocess.PIPE, text=True, env=client_environment())
        rounds = 0
        while busy.poll() is None and rounds < 500:
            run([tool("esdm-compact"), "--step", "100K", "a.nc"], check=False)
            rounds += 1
        expect(busy.communicate(timeout=300)[0] == "done\n", "the writer failed")
        for i in range(count):
            expected[i % 6, (7 * i) % 40] = 1000 + i
        expect((read(site) == expected).all(), f"something was hidden, {rounds} rounds")
        compact()
        expect((read(site) == expected).all(), "values have changed")


def test_rounded_numbers_stay():
    with Site(accuracy=[{"variable": "v", "quantities": "abs=0.1"}]) as site:
        write(3)
        before = read(site)
        done = compact()
        expect(done["rounded"] == 1 and (read(site) == before).all(), f"{done}")


# Fragments of 256 KiB, of which most are written again and again.
OVER = """
import netCDF4, numpy, subprocess, sys
n, most = 1 << 20, 28 << 15
with netCDF4.Dataset("esdm://a.nc", "w") as d:
    d.createDimension("x", n)
    v = d.createVariable("v", "f8", ("x",), chunksizes=(1 << 15,))
    v[most:] = numpy.random.default_rng(0).random(n)[most:]
    for i in range(8):
        d.sync()
        v[:most] = numpy.random.default_rng(i).random(most)
for i in range(int(sys.argv[1])):
    with netCDF4.Dataset("esdm://a.nc", "a") as d:
        d["v"][:most] = numpy.random.default_rng(7).random(most)
    print(subprocess.run(["du", "-sk", sys.argv[2]], capture_output=True, text=True, check=True).stdout.split()[0])
"""
OVER_READ = """
import netCDF4, numpy
with netCDF4.Dataset("esdm://a.nc") as d:
    v, most = d["v"][:], 28 << 15
    assert (v[:most] == numpy.random.default_rng(7).random(most)).all()
    assert (v[most:] == numpy.random.default_rng(0).random(1 << 20)[most:]).all()
"""


def packs(site):
    return sum(path.stat().st_size for path in site.pack_files()) / 2**20


def test_packs_of_which_little_is_needed_go():
    """8 MiB, of which 7 are written seven times by one handle: what others need lies between them."""
    with Site(engine={"threads": 1}) as site:
        client(["/usr/bin/python3", "-c", OVER, "0", site.folder])
        left = packs(site)
        expect(left < 8 + 16 + 2 * 7, f"{left} MiB after the close")  # in a pack with what is needed are 16 MiB, and what came last
        run([tool("esdm-gc"), "--yes", "--age=0"])
        run([tool("esdm-cp"), "--reflink", "esdm://a.nc", "esdm://b.nc"])
        told = run([tool("esdm-compact"), "a.nc"]).stdout
        expect("other containers share" in told and packs(site) == left, f"{told} {packs(site)}")
        run([tool("esdm-rm"), "--yes", "--for-good", "b.nc"])
        run([tool("esdm-gc"), "--yes", "--age=0"])
        would, done = compact("--dry-run"), compact()
        expect(0 < done["moved_bytes"] == would["moved_bytes"] < 2 << 20, f"{would} {done}")
        expect(packs(site) < 8.5, f"{left} MiB before, now {packs(site)}")
        client(["/usr/bin/python3", "-c", OVER_READ])
        run([tool("esdm-fsck"), "--data"])
        expect(compact()["moved_bytes"] == 0, "it is done again")


def test_what_was_written_over_goes_at_the_close():
    """However soon the next program writes: no snapshot is kept for its youth."""
    with Site(engine={"threads": 1}) as site:
        client(["/usr/bin/python3", "-c", OVER, "0", site.folder])
        compact()
        told = client(["/usr/bin/python3", "-c", OVER, "6", site.folder]).stdout.split()
        expect(len(told) == 6 and int(told[-1]) < int(told[1]) + 2048, f"KiB of the site after each: {told}")
        client(["/usr/bin/python3", "-c", OVER_READ])


def test_what_all_nodes_see_stays_so():
    """Though what only one node has is faster, and esdm-compact runs there."""
    targets = [{"name": "disk", "plugin": "posix", "directory": "disk"}]
    burst = {"name": "burst", "plugin": "posix", "accessibility": "local", "directory": "nodes/$ESDM_NODE", "cost": 0.01}
    with Site(targets=targets, engine={"threads": 1}) as site:
        client(["/usr/bin/python3", "-c", OVER, "0", site.folder])
        text = json.loads(site.file("site.json").read_text())
        site.file("site.json").write_text(json.dumps({**text, "targets": [burst, *targets]}))
        site.file("nodes").mkdir()
        run([tool("esdm-mkfs")], env=environment({"ESDM_NODE": "alpha"}))
        done = json.loads(run([tool("esdm-compact"), "--json", "a.nc"], env=environment({"ESDM_NODE": "alpha"})).stdout)
        expect(done["containers"][0]["moved_bytes"] > 0, f"{done}")
        client(["/usr/bin/python3", "-c", OVER_READ], env={"ESDM_NODE": "beta"})


def test_packs_go_where_a_living_writer_may_seem_dead():
    if postgres.binaries() is None:
        return
    with postgres.Server() as server, Site(make=False, engine={"threads": 1}, metadata={
            "plugin": "postgres", "host": "127.0.0.1", "port": server.port, "database": "postgres", "user": "esdm"}) as site:
        run([tool("esdm-mkfs")])
        client(["/usr/bin/python3", "-c", OVER, "0", site.folder])
        expect(compact()["moved_bytes"] == 0, "it moved what could not go")
        for file in site.pack_files():
            os.utime(file, (os.stat(file).st_mtime - 90000,) * 2)
        done = compact()
        expect(done["moved_bytes"] > 0 and packs(site) < 8.5, f"{done} {packs(site)}")
        client(["/usr/bin/python3", "-c", OVER_READ])


if __name__ == "__main__":
    main(test_fewer_fragments_and_the_same_values, test_what_is_stored_anew_in_steps_takes_no_more_room_afterwards, test_writers_go_on, test_rounded_numbers_stay,
         test_it_is_as_slow_as_is_asked_and_needs_no_more_room_afterwards,
         test_what_all_nodes_see_stays_so, test_packs_go_where_a_living_writer_may_seem_dead,
         test_packs_of_which_little_is_needed_go, test_what_was_written_over_goes_at_the_close)
