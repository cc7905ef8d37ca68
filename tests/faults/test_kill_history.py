#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""kill -9 at the system calls of every operation on history: branches, merges, tags, clones, restorations, seals,
de-duplication, compaction, recipes. Whatever the instant: what is there is what was there before or is there afterwards,
all of it is sound, and the same command ends the work. README.md has figures.

    test_kill_history.py [postgres] [TEST…]     with the catalogue in SQLite, or on a PostgreSQL server
"""

import json
import os
import random
import re
import subprocess
import sys
import time

import postgres
from esdmtest import SEED, Site, by_size, client, environment, expect, in_memory, main, need_program, run, tool
from faults import KILLED, PROGRAM, killing, need_strace, shown, sweep
from templates import CALLS, Postgres, Sqlite

SETUP = """
import netCDF4, numpy
def put(name, mode, **values):
    with netCDF4.Dataset("esdm://" + name, mode) as d:
        if mode == "w":
            d.createDimension("t", None)
            d.createDimension("x", 2000)
            d.createVariable("v", "f8", ("t", "x"))[:] = numpy.random.default_rng(1).random((6, 2000))
            d.createVariable("w", "f8", ("t", "x"))[:] = numpy.random.default_rng(2).random((6, 2000))
        for key, (at, value) in values.items():
            d[key][at] = value + numpy.arange(2000.)
"""
MADE = "put('a.nc', 'w')\nput('a.nc', 'a', v=(0, 10.))\n"


def script(code):
    client(["/usr/bin/python3", "-c", SETUP + code])


def own_key(site):
    """Seals are made with a key of the test, not of whoever runs it."""
    os.environ["XDG_CONFIG_HOME"] = str(site.file("config"))


STORE = Sqlite()


def digests_of(names):
    """All values are read."""
    done = run([tool("esdm-stat"), "--digest", "--exact", *names], check=False)
    if done.returncode == 0:
        return {name: line.split()[0] for name, line in zip(names, done.stdout.splitlines())}
    if len(names) == 1:
        expect("esdm-recipe restore" in done.stderr, shown(done))
        return {names[0]: "dropped"}
    return {key: value for name in names for key, value in digests_of([name]).items()}


def state(more=None):
    """What there is: digests of all containers, and what else counts."""
    names = [one["name"] for one in json.loads(run([tool("esdm-ls"), "--json"]).stdout)["containers"]]
    return digests_of(names), more() if more else None


def tags():
    return [one["tag"] for one in json.loads(run([tool("esdm-tag"), "--json", "a.nc"]).stdout)["tags"]]


def lines():
    """What each branch began with."""
    return [(one["branch"], one["parent"], one["from"])
            for one in json.loads(run([tool("esdm-branch"), "--json", "a.nc"]).stdout)["branches"]]


def sealed():
    return [one["name"] for one in json.loads(run([tool("esdm-seal"), "--json", "--verify"]).stdout)["containers"]]


def count(command):
    """How often each call occurs in a run that is not disturbed."""
    log = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"strace.{os.getpid()}")
    subprocess.run(["strace", "-f", "--seccomp-bpf", "-qq", "-o", log, "-e", "trace=" + ",".join(STORE.calls), *command], check=True,
                   env=environment(), stdout=subprocess.DEVNULL)
    with open(log, encoding="utf-8", errors="replace") as lines:
        found = [re.match(r"\d+ +(\w+)\(", line) for line in lines]
    os.unlink(log)
    counts = {}
    for name in filter(None, found):
        counts[name.group(1)] = counts.get(name.group(1), 0) + 1
    return counts


MOST = by_size(2, 3, 1000)        # of each call and operation
POINTS = by_size(3, 7, 100000)   # of each operation
SECONDS = by_size(60, 300, 3000)  # an operation that takes longer leaves the rest of its points out


def kill_at(command, call, number, alone):
    """@param alone no other program belongs to it, which may be the one that is killed."""
    done = subprocess.run([*killing(call, number), *command], check=False, env=environment(), stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL)
    STORE.settle()
    return done.returncode == KILLED or (not alone and done.returncode != 0)


def same(now, wanted, renames=False):
    """Where several are renamed some may have the new name already."""
    if renames:
        return sorted(now[0].values()) == sorted(wanted[0].values())
    return now == wanted


def left():
    """What a tool that was ended has made for the time of its run: lists of the site do not show it."""
    done = run([tool("esdm-ls"), "--json", ".esdm-recipe"], check=False)
    return [one["name"] for one in json.loads(done.stdout or "{}").get("containers", [])]


def check_point(command, point, legal, more, renames, alone):
    """Whether it was killed there; other threads may have made the call. @param legal states in order: before, any number
    between, afterwards."""
    if not kill_at(command, *point, alone):
        return False
    now, after = state(more), legal[-1]
    where = f"{command} killed at {point}"
    expect(any(same(now, one, renames) for one in legal), f"{where}: {now}\nexpected one of {legal}")
    run([tool("esdm-fsck"), "--data"])
    again = run(command, check=False)
    now = state(more)
    expect(same(now, after), f"{where}, and run again: {now}\nnot {after}\n{shown(again)}")
    if left():  # what the command itself did not have to make again
        run([tool("esdm-gc"), "--yes", "--age=0"])
    expect(not left(), f"{where}: left {left()}")
    return True


SITE = {"history": 9, "engine": {"pack": "32KiB"}}


def between(steps, more):
    """States after each of several commands but the last one, from what is there on."""
    states = []
    for step in steps[:-1]:
        run(step)
        states.append(state(more))
    return states


def check_operation(prepare, command, more=None, renames=False, alone=True, options=None, steps=(), ends=None):
    """@param prepare what is called with the site to make what the command is about, or Python code for that.
    @param options of the site, in place of SITE. @param steps commands that do what this one does, commit by commit.
    @param ends called with the site when the command has been run again to its end."""
    need_strace()
    command = [command[0] if "/" in command[0] else tool(command[0]), *command[1:]]
    chance = random.Random(SEED)
    with Site(parent=in_memory(), **(options or SITE), **STORE.site) as site:
        own_key(site)
        if callable(prepare):
            prepare(site)
        else:
            script(MADE + prepare)
        template = STORE.template(site)
        try:
            legal = [state(more)]
            template.restore()
            legal += between(steps, more)
            template.restore()
            counts = count(command)
            legal.append(state(more))
            points = [(call, number) for call, calls in counts.items() for number in sweep(calls, MOST)]
            chance.shuffle(points)
            points = points[:POINTS]
            begun, killed, done = time.monotonic(), 0, 0
            while done < len(points) and time.monotonic() - begun < SECONDS:
                template.restore()
                if check_point(command, points[done], legal, more, renames, alone):
                    killed += 1
                    if ends is not None:
                        ends(site)
                done += 1
            print(f"{killed} kill points of {sum(counts.values())} calls in {time.monotonic() - begun:.0f} s"
                  f"{f', {len(points) - done} left out' if done < len(points) else ''}: "
                  f"{' '.join(map(os.path.basename, command))}", flush=True)
            expect(killed > 0, f"none was killed: {counts}")
        finally:
            template.remove()


BRANCHES = ("import subprocess\n"
            "def tool(*words): subprocess.run(['%s/' + words[0], *words[1:]], check=True, stdout=subprocess.DEVNULL)\n"
            % os.path.dirname(tool("esdm-branch")) +
            "tool('esdm-branch', 'a.nc', 'b', 'd')\n"
            "put('a.nc@branch:b', 'a', v=(1, 11.))\n"
            "tool('esdm-branch', 'a.nc@branch:b', 'c')\n"
            "put('a.nc@branch:c', 'a', w=(2, 12.))\n"
            "put('a.nc@branch:d', 'a', v=(0, 13.))\n"
            "put('a.nc', 'a', v=(0, 14.), w=(3, 15.))\n")


def test_kill_history__branch():
    check_operation(BRANCHES, ["esdm-branch", "a.nc", "new"], more=lines)


def test_kill_history__branch_of_a_branch():
    check_operation(BRANCHES, ["esdm-branch", "a.nc@branch:c", "new"], more=lines)


def test_kill_history__branch_removed():
    check_operation(BRANCHES, ["esdm-branch", "--remove", "a.nc", "b"])


def test_kill_history__merge():
    check_operation(BRANCHES, ["esdm-merge", "a.nc", "b"])


def test_kill_history__merge_past_a_branch():
    check_operation(BRANCHES, ["esdm-merge", "a.nc", "c"])


def test_kill_history__merge_into_a_branch():
    check_operation(BRANCHES, ["esdm-merge", "a.nc@branch:b", "c"])


def test_kill_history__merge_downwards():
    check_operation(BRANCHES, ["esdm-merge", "--into", "b", "a.nc"])


def test_kill_history__merge_that_stores_anew():
    check_operation(BRANCHES, ["esdm-merge", "--ours", "a.nc", "d"])


def test_kill_history__rename_with_branches():
    check_operation(BRANCHES, ["esdm-mv", "a.nc", "z.nc"], renames=True)


def test_kill_history__tag():
    check_operation("", ["esdm-tag", "a.nc@1", "draft"], more=tags)


def test_kill_history__clone():
    check_operation(BRANCHES, ["esdm-cp", "-f", "--reflink", "esdm://a.nc", "esdm://x.nc"])


def test_kill_history__restore():
    check_operation(BRANCHES + "tool('esdm-rm', '--yes', 'a.nc@branch:b')\n", ["esdm-restore", "a.nc@branch:b"])


def test_kill_history__seal():
    check_operation("", ["esdm-seal", "a.nc"], more=sealed)


def test_kill_history__dedup():
    check_operation("put('b.nc', 'w')\nput('c.nc', 'w')\nput('c.nc', 'a', w=(1, 3.))\n", ["esdm-dedup"])


def test_kill_history__compact():
    check_operation("for i in range(6): put('a.nc', 'a', v=(i, float(i)))\n", ["esdm-compact", "a.nc"])


# 2 MiB in fragments of 64 KiB, of which all but the last 256 KiB are written again and again by one handle.
OVER = """
import netCDF4, numpy
n, most = 1 << 18, 28 << 13
with netCDF4.Dataset("esdm://a.nc", "w") as d:
    d.createDimension("x", n)
    v = d.createVariable("v", "f8", ("x",), chunksizes=(1 << 13,))
    v[most:] = numpy.random.default_rng(0).random(n)[most:]
    for i in range(4):
        d.sync()
        v[:most] = numpy.random.default_rng(i).random(most)
"""


def pack_bytes(site):
    return sum(path.stat().st_size for path in site.pack_files())


def sparse_packs(site):
    client(["/usr/bin/python3", "-c", OVER])
    for path in site.pack_files():  # where a living writer may seem dead, young ones stay
        os.utime(path, (time.time() - 90000,) * 2)
    told = json.loads(run([tool("esdm-compact"), "--json", "--dry-run", "a.nc"]).stdout)["containers"][0]
    expect(told["moved_bytes"] > 1 << 20 and pack_bytes(site) > 5 << 20, f"nothing is sparse: {told} {pack_bytes(site)}")


def little_is_left(site):
    """At the latest when esdm-gc has taken what a call that was killed had stored."""
    if pack_bytes(site) > 9 << 18:
        run([tool("esdm-gc"), "--yes", "--age=0"])
    expect(pack_bytes(site) <= 9 << 18, f"{pack_bytes(site)} bytes of packs are left of {2 << 20}")


def test_kill_history__compact_of_sparse_packs():
    check_operation(sparse_packs, ["esdm-compact", "a.nc"], options={"engine": {"threads": 1, "inline": 0}}, ends=little_is_left)


def generations(first, last):
    return [PROGRAM, "write", "a.nc", str(first), str(last)]


def test_kill_history__written_over():
    """One handle commits twice: what was written over goes at its close."""
    check_operation(lambda site: run(generations(1, 3)), generations(4, 5), options={"engine": {"threads": 2}},
                    steps=[generations(4, 4), generations(5, 5)])


RECORDED = ("import subprocess\n"
            "subprocess.run(['%s', 'record', '--', 'nccopy', 'esdm://a.nc', 'esdm://out.nc'], check=True,\n"
            "               stdout=subprocess.DEVNULL)\n" % tool("esdm-recipe"))


def test_kill_history__recipe_dropped():
    need_program("nccopy")
    check_operation(RECORDED, ["esdm-recipe", "drop", "out.nc"], alone=False)


def test_kill_history__recipe_restored():
    need_program("nccopy")
    check_operation(RECORDED + "subprocess.run(['%s', 'drop', 'out.nc'], check=True, stdout=subprocess.DEVNULL)\n"
                    % tool("esdm-recipe"), ["esdm-recipe", "restore", "out.nc"], alone=False)


TESTS = [test for name, test in list(globals().items()) if name.startswith("test_")]


def on_postgres(tests, points=None):
    """Runs them beside a server. @param points of each operation, at most."""
    global STORE, POINTS
    postgres.skip_without_postgres()
    POINTS = min(POINTS, points or POINTS)
    with postgres.Server() as server:
        def beside(test):
            def run_test():
                global STORE
                STORE = Postgres(server)
                test()
            run_test.__name__ = test.__name__
            return run_test
        main(*map(beside, tests))


if __name__ == "__main__":
    if sys.argv[1:2] == ["postgres"]:
        del sys.argv[1]
        on_postgres(TESTS)
    else:
        main(*TESTS)
