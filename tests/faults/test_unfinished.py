#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Copies whose programs ended, or are waiting, between their commit and the name that they were to get."""

import json
import os
import signal
import subprocess

from esdmtest import BUILD, client, client_environment, environment, expect, main, run, skip, tool
from test_named_meanwhile import CHECK, WRITE, OrderedSite, hook, packs, wait_for


def python(code, *arguments):
    client(["/usr/bin/python3", "-c", code, *map(str, arguments)])


def collect(*options):
    return json.loads(run([tool("esdm-gc"), "--yes", "--json", *options]).stdout)["unfinished"]


def names(*folder):
    return [c["name"] for c in json.loads(run([tool("esdm-ls"), "--json", *folder]).stdout)["containers"]]


def copy(site, run_before_the_name):
    return subprocess.Popen([tool("esdm-cp"), str(site.file("f.nc")), "esdm://folder/a.nc"],
                            env=environment(hook("move:1+1", run_before_the_name)))


def make(site):
    python(WRITE, "x")
    run([tool("esdm-cp"), "esdm://x", site.file("f.nc")])


def test_what_was_not_finished_is_hidden_and_removed():
    with OrderedSite() as site:
        make(site)
        before = packs(site)
        with copy(site, "kill -9 $PPID") as killed:
            expect(killed.wait(600) == 1, f"status {killed.returncode}")  # it tells of the process that copied
        python(WRITE, "folder/b.nc")
        expect(names() == ["folder/b.nc", "x"] and names("folder") == ["folder/b.nc"], f"{names()} {names('folder')}")
        left = len(packs(site))
        expect(collect() == 0 and len(packs(site)) == left, "it is not a day old")
        expect(collect("--dry-run", "--age=0") == 1 and len(packs(site)) == left, "a dry run removes it")
        expect(collect("--age=0") == 1 and len(packs(site)) == len(before) + 1, f"{left} packs, now {packs(site)}")
        python(CHECK, "x", "folder/b.nc")
        run([tool("esdm-fsck"), "--data"])


def test_what_is_not_finished_stays():
    with OrderedSite() as site:
        make(site)
        with copy(site, f"touch {site.file('there')}; {wait_for(site.file('go'))}") as waits:
            run(["sh", "-c", wait_for(site.file("there"))])
            expect(collect("--age=0") == 0 and names() == ["x"], f"{names()}")
            site.file("go").touch()
            expect(waits.wait(600) == 0, f"status {waits.returncode}")
        python(CHECK, "folder/a.nc")


def test_what_users_call_alike_stays():
    """No name that anybody may give says that something may be removed."""
    with OrderedSite() as _:
        with subprocess.Popen(["true"]) as ended:
            ended.wait()
        mine = [f"{folder}{ended.pid}.0123abcd{end}" for folder in ("esdm-recipe.", "esdm-cp-") for end in ("/a", ".nc")]
        for name in mine:
            python(WRITE, name)
        expect(collect("--age=0") == 0 and sorted(names()) == sorted(mine), f"{names()}")


# Writes a branch anew, commits some of it, and waits.
ANEW = """
import netCDF4, numpy, os, sys, time
with netCDF4.Dataset("esdm://" + sys.argv[1], "w") as d:
    d.createDimension("x", 20000)
    d.createVariable("v", "i8", ("x",))[:] = numpy.random.default_rng(1).integers(0, 1 << 60, 20000)
    d.sync()
    with open(sys.argv[2] + ".new", "w") as f:
        f.write(str(os.getpid()))
    os.rename(sys.argv[2] + ".new", sys.argv[2])
    time.sleep(60)
"""


def test_branches_that_were_written_anew():
    """What was to become a snapshot of the branch goes when its program was killed, and not before; names that users give stay."""
    with OrderedSite() as site:
        python(WRITE, "a.nc")
        run([tool("esdm-branch"), "a.nc", "b"])
        branch, there = "a.nc@branch:b", site.file("there")
        with subprocess.Popen([tool("esdm-run"), "/usr/bin/python3", "-c", ANEW, branch, str(there)],
                              env=client_environment()) as anew:
            run(["sh", "-c", wait_for(there)])
            made = set(names()) - {"a.nc", branch}
            unharmed = collect("--age=0") == 0 and made <= set(names())
            pid = there.read_text()
            os.kill(int(pid), signal.SIGKILL)
        expect(unharmed, f"what is being written is removed: {names()}")
        expect(len(made) == 1 and next(iter(made)).startswith(f"{branch}.pid{pid}."), f"{made}")
        mine = f"{branch}.pid{pid}.ncks.tmp"
        python(WRITE, mine)
        expect(collect() == 0 and made < set(names()), "it is not a day old")
        place = next(iter(made)).split(f".pid{pid}.")[1]
        other = f"{branch}.pid{pid}.{int(place[:8], 16) ^ 1:08x}{place[8:]}"
        python(WRITE, other)  # of another node
        expect(collect("--dry-run", "--age=0") == 1 and made < set(names()), "a dry run removes it")
        expect(collect("--age=0") == 1 and sorted(names()) == sorted(["a.nc", branch, mine, other]), f"{names()}")
        python(CHECK, "a.nc", branch)
        run([tool("esdm-fsck"), "--data"])


if __name__ == "__main__":
    if not (BUILD / "plugins/esdm-meta-faulty.so").exists():
        skip("esdm-meta-faulty was not built")
    os.environ["ESDM_PLUGIN_PATH"] = str(BUILD / "plugins")
    main(test_what_was_not_finished_is_hidden_and_removed, test_what_is_not_finished_stays,
         test_what_users_call_alike_stays, test_branches_that_were_written_anew)
