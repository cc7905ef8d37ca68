#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""A second shape of variables (esdm-compact --second-shape): readers take what costs less, and never get an old value, whoever
writes, appends, renames, replaces, branches or restores meanwhile."""

import json
import os
import random
import shutil
import signal
import subprocess
import time

from esdmtest import (Site, client, client_environment, expect, expect_error, main, run, tool)

import numpy

T, Y, X = 120, 60, 90
WRITE = f"""
import netCDF4, numpy, sys
name, steps, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
values = numpy.random.default_rng(seed).normal(280, 9, (steps, {Y}, {X})).astype("f4")
with netCDF4.Dataset("esdm://" + name, "w") as d:
    for n, size in (("t", None), ("y", {Y}), ("x", {X})):
        d.createDimension(n, size)
    v = d.createVariable("v", "f4", ("t", "y", "x"), fill_value=-9)
    s = d.createVariable("s", str, ("y",))
    s[0] = "text"
    w = d.createGroup("g").createVariable("w", "i2", ("t", "y", "x"), chunksizes=(1, {Y}, {X}), fill_value=-1)
    for i in range(steps):
        v[i] = values[i]
        w[i] = values[i].astype("i2")
"""
# Prints bytes that were read by each selection.
READ = """
import netCDF4, numpy, sys
def read():
    return int(open("/proc/self/io").read().split()[1])
out = {}
with netCDF4.Dataset("esdm://" + sys.argv[1]) as d:
    v = d[sys.argv[3] if len(sys.argv) > 3 else "v"]
    v.set_auto_mask(False)
    d.set_always_mask(False)
    out["first"] = v[0, 0, 0]
    for name, key in (("series", (slice(None), 7, 11)), ("steps", (slice(3, None, 7), 7, 11)), ("map", (5,)),
                      ("box", (slice(2, 90), slice(3, 9), slice(4, 50)))):
        before = read()
        out[name] = v[key]
        out[name + "_bytes"] = read() - before
    out["all"] = v[:]
numpy.savez(sys.argv[2], **out)
"""
# Prints bytes that were read by one map, before anything could be read ahead.
MAP = """
import netCDF4, sys
with netCDF4.Dataset("esdm://" + sys.argv[1]) as d:
    first = d["v"][0, 0, 0]
    before = int(open("/proc/self/io").read().split()[1])
    d["v"][5]
    print(int(open("/proc/self/io").read().split()[1]) - before)
"""
# Another variable, in which no file is.
APPENDED = """
import netCDF4, sys
with netCDF4.Dataset("esdm://" + sys.argv[1], "a") as d:
    own = d.createVariable("own", "f4", ("t", "y", "x"), fill_value=-9)
    own[:] = d["v"][:]
"""
TWO = {"shapes": 2}
ENGINE = {"fragment": "64 KiB"}


def write(name="a.nc", steps=T, seed=1):
    client(["/usr/bin/python3", "-c", WRITE, name, str(steps), str(seed)])


def values(steps=T, seed=1):
    return numpy.random.default_rng(seed).normal(280, 9, (steps, Y, X)).astype("f4")


def read(site, name="a.nc", variable="v"):
    file = site.file("read.npz")
    client(["/usr/bin/python3", "-c", READ, name, str(file), variable])
    return dict(numpy.load(file))


def same(got, wanted, what=""):
    expect(got["all"].shape == wanted.shape, f"{got['all'].shape} {wanted.shape} {what}")
    for name, key in (("series", (slice(None), 7, 11)), ("steps", (slice(3, None, 7), 7, 11)), ("map", (5,)),
                      ("box", (slice(2, 90), slice(3, 9), slice(4, 50))), ("all", (slice(None),))):
        expect((got[name] == wanted[key]).all(), f"{name} differs {what}")


def compact(*options, name="a.nc", check=True):
    done = run([tool("esdm-compact"), "--json", *options, name], check=check)
    return json.loads(done.stdout)["containers"][0]["second_shape"] if check else done


def stat(name="a.nc"):
    return json.loads(run([tool("esdm-stat"), "--json", name]).stdout)["containers"][0]


def names():
    text = json.loads(run([tool("esdm-fsck"), "--json"]).stdout)
    return text["containers"]


def change(code, name="a.nc"):
    client(["/usr/bin/python3", "-c", f"import netCDF4, numpy\nwith netCDF4.Dataset('esdm://{name}', 'a') as d:\n    {code}\n"])


def test_each_read_takes_what_costs_less():
    with Site(engine=ENGINE, **TWO) as site:
        write()
        wanted = values()
        one = read(site)
        digest = run([tool("esdm-stat"), "--digest", "a.nc"]).stdout.split()[0]
        number = stat()["snapshot"] if "snapshot" in stat() else None
        would = compact("--second-shape", "series", "--dry-run")
        expect("second_shape" not in stat(), "a dry run has made something")
        done = compact("--second-shape", "series")
        expect(done["variables"] == 2 and done["bytes"] == would["bytes"] == T * Y * X * 6, f"{done} {would}")
        told = stat()
        expect([v["variable"] for v in told["second_shape"]["variables"]] == ["/v", "/g/w"], f"{told['second_shape']}")
        expect(told["second_shape"]["stored_bytes"] > T * Y * X * 5, f"{told['second_shape']}")
        expect("second shape, stored" in run([tool("esdm-stat"), "a.nc"]).stdout, "not told")
        two = read(site)
        same(one, wanted), same(two, wanted)
        expect(two["series_bytes"] < one["series_bytes"] / 4, f"series {one['series_bytes']} {two['series_bytes']}")
        expect(two["map_bytes"] <= one["map_bytes"] * 1.1, f"map {one['map_bytes']} {two['map_bytes']}")
        same(read(site, variable="g/w"), wanted.astype("i2"), "in a group")
        expect(stat().get("snapshot") == number, "the container has changed")
        expect(run([tool("esdm-stat"), "--digest", "a.nc"]).stdout.split()[0] == digest, "another digest")
        expect(run([tool("esdm-ls")]).stdout.split() == ["a.nc"] or "@shapes" not in run([tool("esdm-ls")]).stdout, "it is listed")
        expect(compact()["bytes"] == 0, "something is stored once more")
        run([tool("esdm-fsck"), "--data"])
        expect(compact("--one-shape")["removed_bytes"] == told["second_shape"]["stored_bytes"], "removed")
        expect("second_shape" not in stat(), "it is still there")
        same(read(site), wanted)
        expect_error(compact("--one-shape", check=False), "has no second shape")


def test_newer_values_come_from_the_first_shape():
    with Site(engine=ENGINE, history=20, **TWO) as site:
        write()
        wanted = values()
        compact("--second-shape", "v=series")
        change("d['v'][40:44, 5:9, 10:13] = 1")
        wanted[40:44, 5:9, 10:13] = 1
        got = read(site)
        same(got, wanted, "overwritten")
        change("d['v'][120:125] = 2")  # appended
        wanted = numpy.concatenate([wanted, numpy.full((5, Y, X), 2, "f4")])
        got = read(site)
        same(got, wanted, "appended")
        change("d['v'][130, 0, 0] = 3")  # with a hole
        more = numpy.full((6, Y, X), -9, "f4")
        more[5, 0, 0] = 3
        wanted = numpy.concatenate([wanted, more])
        same(read(site), wanted, "a hole")
        before = stat("a.nc")["second_shape"]["variables"][0]["snapshot"]
        done = compact()
        expect(done["commits"] >= 1 and done["bytes"] > 0, f"{done}")
        expect(stat()["second_shape"]["variables"][0]["snapshot"] > before, "not brought up to date")
        got = read(site)
        same(got, wanted, "up to date")
        for old in range(1, 5):  # nothing newer is in an older snapshot
            shown = read(site, f"a.nc@{old}")
            expect(shown["all"].shape[0] == (T if old <= 2 else wanted.shape[0]) or old > 2, f"{old}")
            expect((shown["series"] == shown["all"][:, 7, 11]).all() and (shown["box"] == shown["all"][2:90, 3:9, 4:50]).all(),
                   f"snapshot {old}")
        expect((read(site, "a.nc@1")["series"] == values()[:, 7, 11]).all(), "the first snapshot has changed")


def test_less_accurate_reads():
    """Who asks for less accuracy takes what costs less, too: layers of the first shape, or exact numbers of the second."""
    with Site(engine=ENGINE, accuracy=[{"variable": "v", "quantities": "mode=progressive"}], **TWO) as site:
        write()
        change(f"t, y, x = numpy.ogrid[:{T}, :{Y}, :{X}]; d['v'][:] = 280 + 9 * numpy.sin(t / 9) * numpy.sin(y / 7) * numpy.cos(x / 11)")
        one = read(site)
        coarse = read(site, "a.nc?accuracy=1%")
        coarse_map = int(client(["/usr/bin/python3", "-c", MAP, "a.nc?accuracy=1%"]).stdout)
        bound = 0.01 * (one["all"].max() - one["all"].min())
        expect(0 < numpy.abs(coarse["map"] - one["map"]).max() <= bound, "no layer was read")
        expect(compact("--second-shape", "v=series")["variables"] == 1, "no second shape")
        same(read(site), one["all"])
        again = read(site, "a.nc?accuracy=1%")
        expect(again["series_bytes"] < coarse["series_bytes"] / 4, f"{coarse['series_bytes']} {again['series_bytes']}")
        again_map = int(client(["/usr/bin/python3", "-c", MAP, "a.nc?accuracy=1%"]).stdout)
        expect(0 < again_map <= coarse_map + 2000, f"a map costs more: {coarse_map} {again_map}")
        for name in ("series", "steps", "map", "box", "all"):
            expect(numpy.abs(again[name] - one[name]).max() <= bound, f"{name} is further off than asked for")
        change("d['v'][40:44, 5:9, 10:13] = 300")
        got = read(site, "a.nc?accuracy=1%")
        expect((numpy.abs(got["series"][40:44] - 300) <= bound * 2.5).all(), f"old values: {got['series'][38:46]}")


def test_appended_series_are_read_in_two_parts():
    with Site(engine=ENGINE, **TWO) as site:
        write()
        one = read(site)
        compact("--second-shape", "v=series")
        change("d['v'][120:122] = 2")
        wanted = numpy.concatenate([values(), numpy.full((2, Y, X), 2, "f4")])
        got = read(site)
        same(got, wanted)
        expect(got["series_bytes"] < one["series_bytes"] / 2, f"{one['series_bytes']} {got['series_bytes']}")
        # It is long enough, though series of 122 steps would be cut otherwise; what it is for may change.
        chunk = stat()["second_shape"]["variables"][0]["chunk"]
        compact("--second-shape", "v=series")
        expect(stat()["second_shape"]["variables"][0]["chunk"] == chunk, "all is copied again when it has grown")
        compact("--second-shape", "maps")
        expect(stat()["second_shape"]["variables"][0]["chunk"][1:] == [Y, X], "it is for series still")
        same(read(site), wanted)


def test_variables_that_refer_to_files_are_left_out():
    with Site(engine=ENGINE, **TWO) as site:
        write()
        plain = site.file("plain.nc")
        run([tool("esdm-cp"), "esdm://a.nc", plain])
        run([tool("esdm-ref"), "-q", plain, "esdm://r.nc"])
        client(["/usr/bin/python3", "-c", APPENDED, "r.nc"])
        expect_error(compact("--second-shape", "v=series", name="r.nc", check=False), "--reflink=never")
        done = compact("--second-shape", "series", name="r.nc")
        expect(done["variables"] == 3 and done["left"] == 2 and done["bytes"] > 0, f"{done}")
        got = read(site, "r.nc", "own")
        same(got, values())
        done = compact(name="r.nc")
        expect(done["bytes"] == 0 and done["commits"] == 0, f"{done}")


def test_what_takes_the_place_is_another():
    with Site(engine=ENGINE, **TWO) as site:
        write()
        compact("--second-shape", "series")
        run([tool("esdm-mv"), "a.nc", "b.nc"])
        expect("second_shape" in stat("b.nc"), "it did not follow")
        same(read(site, "b.nc"), values())
        write("b.nc", seed=2)  # replaced
        same(read(site, "b.nc"), values(seed=2), "replaced")
        expect("second_shape" not in stat("b.nc"), "it is another's")
        gone = json.loads(run([tool("esdm-gc"), "--yes", "--json"]).stdout)
        expect(gone["shapes"] == 1 and gone["shapes_bytes"] > 0, f"{gone}")
        compact("--second-shape", "series", name="b.nc")
        write("b.nc", seed=3)  # and the next one is made over what is left
        compact("--second-shape", "series", name="b.nc")
        same(read(site, "b.nc"), values(seed=3))
        run([tool("esdm-cp"), "--reflink", "esdm://b.nc", "esdm://c.nc"])
        expect("second_shape" not in stat("c.nc"), "of a clone")
        same(read(site, "c.nc"), values(seed=3), "a clone")
        run([tool("esdm-rm"), "--yes", "b.nc"])
        run([tool("esdm-restore"), "b.nc"])
        same(read(site, "b.nc"), values(seed=3), "brought back")
        run([tool("esdm-gc"), "--yes"])
        run([tool("esdm-fsck"), "--data"])


def test_moved_and_verified():
    with Site(engine=ENGINE, **TWO) as site:
        write()
        compact("--second-shape", "v=series")
        run([tool("esdm-gc"), "--yes", "--age", "0"])
        run([tool("esdm-dedup"), "a.nc"], check=False)
        same(read(site), values())
        change("[(d['v'].__setitem__((3, i), i), d.sync()) for i in range(60)]")
        wanted = values()
        wanted[3] = numpy.arange(60)[:, None]
        done = json.loads(run([tool("esdm-compact"), "--json", "a.nc"]).stdout)["containers"][0]
        expect(done["fragments"] > 10 and done["second_shape"]["bytes"] > 0, f"{done}")
        same(read(site), wanted, "compacted")
        again = compact()
        expect(again["bytes"] == 0, f"{again}")


def test_it_goes_with_the_catalogue():
    """Numbers of snapshots may begin again in a catalogue that is brought back: a second shape is not trusted then."""
    for lost in (False, True):
        with Site(engine=ENGINE, **TWO) as site:
            write()
            compact("--second-shape", "v=series")
            change("d['v'][3] = 5")
            compact()
            wanted = values()
            wanted[3] = 5
            if lost:
                shutil.rmtree(site.file("metadata"))
            run([tool("esdm-mkfs"), "--restore"])
            expect("second_shape" not in stat(), "it is there still")
            same(read(site), wanted, "brought back")
            run([tool("esdm-fsck"), "--data"])
            compact("--second-shape", "v=series")
            same(read(site), wanted, "and made again")


def test_what_the_configuration_does_not_allow_is_not_looked_for():
    with Site(engine=ENGINE, **TWO) as site:
        write()
        one = read(site)
        compact("--second-shape", "v=series")
        config = json.loads(site.config.read_text())
        site.config.write_text(json.dumps({**config, "shapes": 1}))
        got = read(site)
        same(got, values())
        # A record of the run may be some bytes longer.
        expect(abs(got["series_bytes"] - one["series_bytes"]) < 1000, f"{one['series_bytes']} {got['series_bytes']}")


def test_errors():
    with Site(engine=ENGINE) as site:
        write()
        done = compact("--second-shape", "v=series", check=False)
        expect_error(done, '"shapes": 2')
        expect(compact("--second-shape", "series")["left"] == 2, "not allowed")
    with Site(engine=ENGINE, policies=[{"container": "a*", "shapes": 2}]) as site:
        write()
        expect(compact("--second-shape", "series")["variables"] == 2, "allowed by a policy")
        for wrong, why in ((["--second-shape", "s=series"], "only arrays"), (["--second-shape", "none=maps"], "no variable"),
                           (["--second-shape", "v=3,4"], "3 dimensions"), (["--second-shape", "v=0,1,1"], "expected"),
                           (["--second-shape", "3,4,5"], "expected"), (["--second-shape", "v=maps", "--one-shape"], "--one-shape")):
            expect_error(compact(*wrong, check=False), why)
        for name in ("a.nc@shapes", "b.nc@shapes"):
            done = run([tool("esdm-cp"), "--reflink", "esdm://a.nc", f"esdm://{name}", "--force"], check=False)
            expect_error(done, "second shape")
            expect_error(run([tool("esdm-mv"), "a.nc", name], check=False), "second shape")
        expect_error(compact("--second-shape", "series", name="a.nc@1", check=False), "nobody can write")
        run([tool("esdm-branch"), "a.nc", "fix"])
        expect_error(compact("--second-shape", "series", name="a.nc@branch:fix", check=False), "second shape")
        expect(compact(name="a.nc@branch:fix")["variables"] == 0, "a branch has a second shape")
        expect_error(client(["/usr/bin/python3", "-c", "import netCDF4; netCDF4.Dataset('esdm://a.nc@shapes', 'a')"],
                            check=False))
        same(read(site), values())
    with Site(engine=ENGINE, accuracy=[{"variable": "v", "quantities": "abs=0.1"}], **TWO) as site:
        write()
        done = compact("--second-shape", "series")
        expect(done["variables"] == 1 and done["left"] == 1, f"{done}")


# Writes here and there, appends, and remembers.
BUSY = f"""
import netCDF4, numpy, sys
random = numpy.random.default_rng(int(sys.argv[1]))
for i in range(int(sys.argv[2])):
    with netCDF4.Dataset("esdm://a.nc", "a") as d:
        v = d["v"]
        t, y, x = random.integers(0, len(v)), random.integers(0, {Y}), random.integers(0, {X})
        v[t:t + 3, y:y + 4, x:x + 5] = 1000 + i
        if i % 5 == 0:
            v[len(v)] = 2000 + i
print("done", flush=True)
"""
# Each snapshot that is read is the same, in whatever way it is read.
WATCH = """
import netCDF4, numpy, sys
random = numpy.random.default_rng(int(sys.argv[1]))
for i in range(int(sys.argv[2])):
    with netCDF4.Dataset("esdm://a.nc") as d:
        v = d["v"]
        v.set_auto_mask(False)
        points = [(random.integers(0, v.shape[1]), random.integers(0, v.shape[2])) for k in range(4)]
        series = [v[:, y, x] for y, x in points]
        whole = v[:]
        for (y, x), one in zip(points, series):
            assert (one == whole[:, y, x]).all(), (i, y, x, one - whole[:, y, x])
"""


def test_readers_never_see_old_values():
    with Site(engine=ENGINE, history=5, **TWO) as site:
        write(steps=60)
        compact("--second-shape", "v=series")
        count = 25 if os.environ.get("ESDM_TEST_SIZE") == "quick" else 80
        start = lambda code, seed: subprocess.Popen([tool("esdm-run"), "/usr/bin/python3", "-c", code, str(seed), str(count)],
                                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                                    env=client_environment())
        writer, watchers = start(BUSY, 1), [start(WATCH, seed) for seed in (2, 3)]
        rounds = kills = 0
        rng = random.Random(5)
        while writer.poll() is None or any(w.poll() is None for w in watchers):
            one = subprocess.Popen([tool("esdm-compact"), "--quiet", "a.nc"], stderr=subprocess.DEVNULL)
            if rng.random() < 0.4:
                time.sleep(rng.random() * 0.1)
                one.send_signal(signal.SIGKILL)
                kills += 1
            one.wait(timeout=300)
            rounds += 1
        for process in (writer, *watchers):
            out, err = process.communicate(timeout=300)
            expect(process.returncode == 0, f"after {rounds} rounds and {kills} kills: {err}")
        run([tool("esdm-compact"), "a.nc"])
        client(["/usr/bin/python3", "-c", WATCH, "9", "1"])
        run([tool("esdm-fsck"), "--data"])


def test_two_at_once():
    with Site(engine=ENGINE, **TWO) as site:
        write()
        both = [subprocess.Popen([tool("esdm-compact"), "--second-shape", shape, "--step", "100K", "a.nc"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for shape in ("series", "v=120,5,5")]
        told = [(p.communicate(timeout=300)[1], p.returncode) for p in both]
        expect(any(code == 0 for text, code in told), f"{told}")
        for text, code in told:
            expect(code == 0 or "up to date" in text or "exists" in text, text)
        same(read(site), values())
        change("d['v'][3] = 5")
        wanted = values()
        wanted[3] = 5
        same(read(site), wanted)
        compact("--second-shape", "v=120,6,6")
        same(read(site), wanted)


if __name__ == "__main__":
    main(test_each_read_takes_what_costs_less, test_less_accurate_reads, test_newer_values_come_from_the_first_shape,
         test_appended_series_are_read_in_two_parts, test_variables_that_refer_to_files_are_left_out,
         test_what_takes_the_place_is_another, test_moved_and_verified,
         test_it_goes_with_the_catalogue, test_what_the_configuration_does_not_allow_is_not_looked_for, test_errors, test_readers_never_see_old_values, test_two_at_once)
