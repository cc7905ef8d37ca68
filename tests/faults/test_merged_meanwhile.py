#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Merges that end between their commit and the note of what was merged, or while others merge, drain and look for garbage: each
order is made by programs that wait for each other at questions to the catalogue."""

import json
import signal
import sqlite3
import subprocess

from esdmtest import client, environment, expect, run, tool
from test_named_meanwhile import GC, OrderedSite, hook, ordered, wait_for

MAKE = """
import netCDF4
with netCDF4.Dataset("esdm://a.nc", "w") as d:
    d.createDimension("x", 40000)
    d.createVariable("v", "i8", ("x",), chunksizes=(2000,))[:] = 0
"""
PUT = """
import netCDF4, sys
with netCDF4.Dataset("esdm://" + sys.argv[1], "a") as d:
    for pair in sys.argv[2:]:
        part, value = map(int, pair.split("="))
        d["v"][part * 2000:(part + 1) * 2000] = range(value, value + 2000)
"""
EXPECT = """
import netCDF4, sys
with netCDF4.Dataset("esdm://" + sys.argv[1]) as d:
    for pair in sys.argv[2:]:
        part, value = map(int, pair.split("="))
        got = d["v"][part * 2000:(part + 1) * 2000]
        assert (got == range(value, value + 2000)).all(), f"{pair}: {got}"
"""
DOWN = ["--into", "fix", "a.nc"]  # the container into the branch
UP = ["a.nc", "fix"]
TAKES, GIVES = {"up": "a.nc", "down": "a.nc@branch:fix"}, {"up": "a.nc@branch:fix", "down": "a.nc"}


def python(code, *arguments):
    client(["/usr/bin/python3", "-c", code, *map(str, arguments)])


def put(name, *pairs):
    python(PUT, name, *pairs)


def make():
    python(MAKE)
    run([tool("esdm-branch"), "a.nc", "fix"])


def merge(way, *options, **rest):
    return run([tool("esdm-merge"), "--json", *options, *(UP if way == "up" else DOWN)], **rest)


def killed_merge(way):
    """Ends right after its commit."""
    done = subprocess.run([tool("esdm-merge"), *(UP if way == "up" else DOWN)], check=False,
                          env=environment(hook("commit:1+1", "kill -9 $PPID")))
    expect(done.returncode == -signal.SIGKILL, f"status {done.returncode}")


def engine_tags(site):
    """What merges leave in the catalogue until they are noted."""
    found = []
    if site.server is not None:
        found = site.server.sql("SELECT name FROM esdm.tag", database="site")
    for path in site.file("metadata").rglob("*"):
        if path.is_file() and path.read_bytes()[:15] == b"SQLite format 3":
            with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
                if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'tag'").fetchone():
                    found += [row[0] for row in db.execute("SELECT name FROM tag")]
    return [name for name in found if name.startswith(("esdm:into:", "esdm:came:"))]


def test_what_was_merged_is_known_although_its_program_was_killed():
    """What has been written upon it since is no conflict, in both directions."""
    for way in "up", "down":
        with OrderedSite() as site:
            make()
            put(GIVES[way], "0=10", "1=11")
            killed_merge(way)
            python(EXPECT, TAKES[way], "0=10", "1=11")
            put(TAKES[way], "0=20")
            put(GIVES[way], "2=12")
            told = json.loads(merge(way).stdout)
            expect(told["merged"] and not told["conflicts"], f"{way}: {told}")
            python(EXPECT, TAKES[way], "0=20", "1=11", "2=12")
            back = "down" if way == "up" else "up"
            merge(back)
            python(EXPECT, TAKES[back], "0=20", "1=11", "2=12")
            expect(engine_tags(site) == [], f"{way}: {engine_tags(site)}")
            run([tool("esdm-fsck"), "--data"])


def test_who_makes_a_branch_notes_it_too():
    with OrderedSite() as site:
        make()
        put("a.nc@branch:fix", "0=10")
        killed_merge("up")
        run([tool("esdm-branch"), "a.nc", "other"])
        told = json.loads(run([tool("esdm-branch"), "--json", "a.nc"]).stdout)["branches"]
        expect(told[0]["merged"] == 2 and engine_tags(site) == [], f"{told} {engine_tags(site)}")


def test_a_newer_merge_is_not_forgotten():
    """One that was faster, between the commit of another one and its note."""
    for way in "up", "down":
        with OrderedSite() as site:
            make()
            put(GIVES[way], "0=10")
            pause = f"touch {site.file('there')}; {wait_for(site.file('go'))}"
            with subprocess.Popen([tool("esdm-merge"), *(UP if way == "up" else DOWN)], stdout=subprocess.DEVNULL,
                                  env=environment(hook("commit:1+1", pause))) as first:
                run(["sh", "-c", wait_for(site.file("there"))])
                put(GIVES[way], "1=11")
                merge(way)
                site.file("go").touch()
                expect(first.wait(600) == 0, "the first merge")
            if way == "up":
                told = json.loads(run([tool("esdm-branch"), "--json", "a.nc"]).stdout)["branches"]
                expect(told[0]["merged"] == 3, f"{told}")
            put(TAKES[way], "1=20")
            put(GIVES[way], "2=12")
            merge(way)
            python(EXPECT, TAKES[way], "0=10", "1=20", "2=12")
            expect(engine_tags(site) == [], f"{way}: {engine_tags(site)}")


def test_merges_in_both_directions_at_once():
    """One of the container into its branch, while one of the branch into the container waits before its commit, and the other
    way round: both have both, and so they have what each of them writes elsewhere then."""
    for first, second in ("up", "down"), ("down", "up"):
        with OrderedSite() as site:
            make()
            put("a.nc", "0=10")
            put("a.nc@branch:fix", "1=11")
            pause = f"touch {site.file('there')}; {wait_for(site.file('go'))}"
            with subprocess.Popen([tool("esdm-merge"), *(UP if first == "up" else DOWN)], stdout=subprocess.DEVNULL,
                                  env=environment(hook("begin:1+1", pause))) as waits:
                run(["sh", "-c", wait_for(site.file("there"))])
                merge(second)
                site.file("go").touch()
                expect(waits.wait(600) == 0, f"{first}: status {waits.returncode}")
            for name in "a.nc", "a.nc@branch:fix":
                python(EXPECT, name, "0=10", "1=11")
            # Each changes what the other one had changed, to something new and to what it was before.
            put("a.nc", "2=12", "1=21")
            put("a.nc@branch:fix", "3=13", "0=20")
            for way in first, second, first:
                expect(not json.loads(merge(way).stdout)["conflicts"], f"{first}: {way}")
            for name in "a.nc", "a.nc@branch:fix":
                python(EXPECT, name, "0=20", "1=21", "2=12", "3=13")
            put("a.nc", "1=0", "3=0")
            put("a.nc@branch:fix", "0=10", "2=0")
            for way in second, first:
                expect(not json.loads(merge(way).stdout)["conflicts"], f"{first}: {way}")
            for name in "a.nc", "a.nc@branch:fix":
                python(EXPECT, name, "0=10", "1=0", "2=0", "3=0")
            expect(engine_tags(site) == [], f"{engine_tags(site)}")
            run([tool("esdm-fsck"), "--data"])


def test_a_conflict_that_both_directions_decide_at_once_is_decided_once():
    """Each of two merges past each other keeps what its own line has: who commits second is bound to what the first one decided."""
    for first, second in ("up", "down"), ("down", "up"):
        with OrderedSite() as site:
            make()
            put("a.nc", "0=10", "1=11")
            put("a.nc@branch:fix", "0=20", "2=12")
            pause = f"touch {site.file('there')}; {wait_for(site.file('go'))}"
            with subprocess.Popen([tool("esdm-merge"), "--ours", *(UP if first == "up" else DOWN)], stdout=subprocess.DEVNULL,
                                  env=environment(hook("begin:1+1", pause))) as waits:
                run(["sh", "-c", wait_for(site.file("there"))])
                told = json.loads(merge(second, "--ours").stdout)
                expect(told["merged"] and told["conflict_elements"] == 2000, f"{second}: {told}")
                site.file("go").touch()
                expect(waits.wait(600) == 0, f"{first}: status {waits.returncode}")
            decided = 10 if second == "up" else 20
            for name in "a.nc", "a.nc@branch:fix":
                python(EXPECT, name, f"0={decided}", "1=11", "2=12")
            for way in first, second:
                expect(not json.loads(merge(way).stdout)["conflicts"], f"{first}: {way}")
            expect(engine_tags(site) == [], f"{engine_tags(site)}")


def test_what_is_merged_stays_while_others_drain_and_look_for_garbage():
    """Before its packs are guarded, and after the commit; the branch goes, too."""
    drain = [tool("esdm-drain"), "--age", "0", "--from"]
    for position in "begin:1+1", "commit:1+1":
        with OrderedSite() as site:
            make()
            put("a.nc@branch:fix", "0=10", "1=11")
            pause = f"touch {site.file('there')}; {wait_for(site.file('go'))}"
            with subprocess.Popen([tool("esdm-merge"), "a.nc", "fix"], stdout=subprocess.DEVNULL,
                                  env=environment(hook(position, pause))) as first:
                run(["sh", "-c", wait_for(site.file("there"))])
                if position[0] == "c":
                    put("a.nc@branch:fix", "0=30", "1=31")
                for target in "disk", "more":
                    run([tool("esdm-compact"), "--quiet", "a.nc@branch:fix"])
                    run([*drain, target])
                    run([tool("esdm-dedup"), "--json"])
                    run(GC)
                if position[0] == "c":
                    run([tool("esdm-rm"), "--yes", "--for-good", "a.nc@branch:fix"])
                    run(GC)
                site.file("go").touch()
                said = first.wait(600)
            expect(said == 0 or position[0] == "c", f"{position}: status {said}")
            for _ in range(2):
                python(EXPECT, "a.nc", "0=10", "1=11")
                run([tool("esdm-fsck"), "--data"])
                run(GC)


TESTS = (test_what_was_merged_is_known_although_its_program_was_killed, test_who_makes_a_branch_notes_it_too,
         test_a_newer_merge_is_not_forgotten, test_merges_in_both_directions_at_once,
         test_a_conflict_that_both_directions_decide_at_once_is_decided_once,
         test_what_is_merged_stays_while_others_drain_and_look_for_garbage)

if __name__ == "__main__":
    ordered(*TESTS)
