#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Branches of branches: random lines of commits, merged into what they began with, against a model that knows which
commits are in which line; parents that are removed; how the tools tell of them."""

import json
import shutil

from esdmtest import BUILD, SANITIZE, SEED, SOURCE, Site, by_size, client, client_environment, expect, expect_error, main, run, tool

MERGE, BRANCH, RM, GC, FSCK, LOG = (tool(name) for name in (
    "esdm-merge", "esdm-branch", "esdm-rm", "esdm-gc", "esdm-fsck", "esdm-log"))

# A line knows its commits in order, also those that it began with: (values, what is in it). "What is in it" are pairs
# (line, number of a commit). The base of a merge is the newest commit of the branch's line that is in the other one.
RANDOM = '''
import os, random, sys
import esdm, netCDF4, numpy

class Line:
    def __init__(self, name, parent, commits):
        self.name, self.parent, self.commits = name, parent, commits
        self.gone = False

    def commit(self, values, more=frozenset()):
        self.commits = self.commits + [(values, self.commits[-1][1] | more | {(self.name, len(self.commits))})]

def url(line):
    return "a.nc" if line.parent is None else "a.nc@branch:" + line.name

def read(line):
    with netCDF4.Dataset("esdm://" + url(line)) as d:
        return d["v"][:].filled()

def write(rng, line):
    values = line.commits[-1][0].copy()
    with netCDF4.Dataset("esdm://" + url(line), "a") as d:
        y, x = rng.randrange(4), rng.randrange(6)
        where = (slice(y, y + rng.randrange(1, 3)), slice(x, x + rng.randrange(1, 4)))
        values[where] = rng.randrange(3)
        d["v"][where] = values[where]
    line.commit(values)

def base_of(theirs, ours):
    """The newest commit of theirs that is in ours."""
    inside = ours.commits[-1][1]
    return max(n for n, (_, names) in enumerate(theirs.commits) if names <= inside)

def newest_of(lines, theirs, ours):
    """What both have, without what another one of these has too: several where merges have gone past each other."""
    both = ours.commits[-1][1] & theirs.commits[-1][1]
    found = {names: values for line in lines for values, names in line.commits if names <= both}
    return [values for names, values in found.items() if not any(names < other for other in found)]

def bases_of(lines, theirs, ours):
    """What both have: that which has all of it first, where there is such a commit."""
    both = ours.commits[-1][1] & theirs.commits[-1][1]
    found = [(names == both, values) for line in lines for values, names in line.commits if names <= both]
    found.sort(key=lambda one: not one[0])
    return found[0][0], [values for _, values in found]

def expected(b, t, o):
    return (o != b) & (t != b) & (o != t), numpy.where(t != b, t, o)

exact = older = open_ones = several = 0

def count(whole, bases, fits):
    """Where lines have merged in both directions, and past each other, an older common snapshot may be taken."""
    global exact, older, open_ones
    first = next((i for i, b in enumerate(bases) if fits(b)), None)
    exact, older, open_ones = exact + (whole and first == 0), older + (whole and first != 0), open_ones + (not whole)
    return first is not None and (MOST > 2 or first == 0)

def merge(rng, theirs, ours, lines):
    n = base_of(theirs, ours)
    t, o = theirs.commits[-1][0], ours.commits[-1][0]
    whole, bases = bases_of(lines, theirs, ours) if DOWN else (True, [theirs.commits[n][0]])
    what = f"{theirs.name} into {ours.name} since commit {n}"
    seen, prefer = numpy.zeros(t.shape, bool), None
    try:
        done = esdm.merge(url(ours), theirs.name or None)
    except esdm.MergeConflict as e:
        for c in e.result["conflicts"]:
            seen[tuple(slice(a, a + k) for a, k in zip(c["offset"], c["size"]))] = True
        prefer = rng.choice(("ours", "theirs"))
        done = esdm.merge(url(ours), theirs.name or None, prefer)
    got = read(ours)
    def fits(b):
        conflicts, merged = expected(b, t, o)
        return (seen == conflicts).all() and (got == (numpy.where(seen, o, merged) if prefer == "ours" else merged)).all()
    news = newest_of(lines, theirs, ours)
    if DOWN or len(news) == 1:
        if not DOWN:
            bases = news # of another line where that was merged into both
        assert count(whole, bases, fits), f"{what}: {done} {got} {t} {o} {bases[0]} {seen}"
    else: # each value is merged since one of them; where these differ it may be told instead
        global several
        several += 1
        merges = [expected(b, t, o) for b in news]
        right = (o == t) & (got == t) & ~seen
        right |= seen & (o != t) & (got == (o if prefer == "ours" else t)) & \
            ((numpy.array(news) != news[0]).any(0) | merges[0][0])
        for conflicts, merged in merges:
            right |= ~seen & ~conflicts & (got == merged)
        assert right.all(), f"{what}: {done} {got} {t} {o} {news} {seen}"
    if DOWN or done["snapshot"] != 0 or n < len(theirs.commits) - 1:
        ours.commit(got, theirs.commits[-1][1])

def round(seed, steps):
    rng = random.Random(seed)
    values = numpy.random.default_rng(seed).integers(0, 3, (4, 6), "i4")
    with netCDF4.Dataset("esdm://a.nc", "w") as d:
        d.createDimension("y", 4); d.createDimension("x", 6)
        d.createVariable("v", "i4", ("y", "x"))[:] = values
    lines = [Line("", None, [(values, frozenset({("", 0)}))])]
    said = []
    for step in range(steps):
        there = [line for line in lines if not line.gone]
        line = rng.choice(there)
        kind = rng.random()
        if kind < 0.2 and len(there) < MOST:
            new = Line(f"s{seed}b{step}", line, list(line.commits))
            said.append(f"{new.name} of {line.name}")
            assert esdm.branch(url(line), new.name) == url(new)
            lines.append(new)
        elif kind < 0.55:
            said.append(f"write {line.name}")
            write(rng, line)
        elif kind < 0.93 and line.parent is not None:
            above = [line.parent]
            while (SKIPS or DOWN) and above[-1].parent is not None:
                above.append(above[-1].parent)
            above = [other for other in above if not other.gone]
            if above:
                other = rng.choice(above)
                sides = (other, line) if DOWN and rng.random() < 0.5 else (line, other)
                said.append(f"merge {sides[0].name} into {sides[1].name}")
                try:
                    merge(rng, *sides, lines)
                except BaseException:
                    print("; ".join(said))
                    raise
        elif line.parent is not None and REMOVES:
            said.append(f"remove {line.name}")
            esdm.remove(url(line))
            line.gone = True
        for other in lines:
            assert other.gone or (read(other) == other.commits[-1][0]).all(), f"{other.name} has changed: {said}"
    for line in lines[1:]:
        if not line.gone:
            esdm.remove(url(line))

REMOVES, SKIPS, DOWN, MOST = "removes" in sys.argv, "skips" in sys.argv, "down" in sys.argv, 6
if "two" in sys.argv:
    MOST = 2
for seed in range(int(sys.argv[1]), int(sys.argv[2])):
    try:
        round(seed, 40)
    except BaseException:
        print("seed", seed)
        raise
if DOWN:
    assert older * 20 <= exact, f"{exact} {older} {open_ones}"
    if os.environ.get("ESDM_TEST_TELL"):
        raise SystemExit(f"{exact} merges since the newest common snapshot, {older} since an older one, {open_ones} without one")
print("right")
'''


def python(code, *arguments, check=True):
    env = client_environment({"PYTHONPATH": str(SOURCE / "python"),
                              "ESDM_LIBRARY_DIR": f"{BUILD}:{BUILD / 'netcdf-plugin'}"})
    env.pop("LD_PRELOAD", None)
    return run(["/usr/bin/python3", "-c", code, *map(str, arguments)], env=env, check=check).stdout


def check_random(*what):
    if SANITIZE:
        return
    with Site() as _:
        first = SEED
        out = python(RANDOM, first, first + by_size(4, 16, 200), *what)
        expect(out == "right\n", out)
        run([FSCK, "--data"])


def test_lines_are_merged_since_what_they_have_in_common():
    check_random()


def test_parents_are_removed():
    check_random("removes", "skips")


def test_two_lines_in_both_directions():
    check_random("down", "two")


def test_lines_in_both_directions():
    check_random("down")


MAKE = """
with netCDF4.Dataset("esdm://a.nc", "w") as d:
    d.createDimension("x", 8)
    d.createVariable("v", "i4", ("x",))[:] = 0
"""


def script(code, *arguments):
    return client(["/usr/bin/python3", "-c", "import netCDF4, numpy, sys\n" + code, *map(str, arguments)])


def put(name, index, value):
    script("with netCDF4.Dataset('esdm://' + sys.argv[1], 'a') as d: d['v'][int(sys.argv[2])] = int(sys.argv[3])\n",
           name, index, value)


def expect_values(name, *values):
    text = script("print(*netCDF4.Dataset('esdm://' + sys.argv[1])['v'][:])\n", name).stdout
    expect(text.split() == [str(v) for v in values], f"{name}: {text}")


def branches(*arguments):
    return {b["branch"]: b for b in json.loads(run([BRANCH, "--json", *arguments]).stdout)["branches"]}


def test_a_branch_that_is_merged_past_its_parent():
    """What the container has of the parent by way of the branch is not merged again: it was changed back since."""
    with Site() as _:
        script(MAKE)
        run([BRANCH, "a.nc", "b"])
        put("a.nc@branch:b", 0, 1)
        run([BRANCH, "a.nc@branch:b", "c"])
        put("a.nc@branch:c", 1, 1)
        run([MERGE, "a.nc", "c"])
        expect_values("a.nc", 1, 1, 0, 0, 0, 0, 0, 0)
        put("a.nc", 0, 0)
        put("a.nc@branch:b", 2, 1)
        run([MERGE, "a.nc", "b"])
        expect_values("a.nc", 0, 1, 1, 0, 0, 0, 0, 0)
        run([MERGE, "a.nc@branch:b", "c"])
        expect_values("a.nc@branch:b", 1, 1, 1, 0, 0, 0, 0, 0)
        run([FSCK, "--data"])


def test_a_parent_that_is_gone():
    """The container has more of it than it began with, and less than the branch began with: it is kept for that."""
    with Site(replaced={"keep": 0}) as _:
        script(MAKE)
        run([BRANCH, "a.nc", "b"])
        put("a.nc@branch:b", 0, 1)
        run([MERGE, "a.nc", "b"])
        put("a.nc", 0, 0)
        put("a.nc@branch:b", 1, 1)
        run([BRANCH, "a.nc@branch:b", "c", "d"])
        put("a.nc@branch:c", 2, 1)
        run([RM, "--yes", "a.nc@branch:b"])
        run([GC, "--yes", "--age=0"])
        expect_values("a.nc@branch:c", 1, 1, 1, 0, 0, 0, 0, 0)
        run([MERGE, "a.nc", "c"])
        expect_values("a.nc", 0, 1, 1, 0, 0, 0, 0, 0)
        expect(sorted(branches("a.nc")) == ["c", "d"], f"{branches('a.nc')}")
        expect(branches("a.nc")["d"]["parent"] == "a.nc@branch:b", f"{branches('a.nc')}")
        run([BRANCH, "-d", "a.nc", "c", "d"])  # nobody needs it any more
        run([GC, "--yes", "--age=0"])
        left = json.loads(run([tool("esdm-ls"), "--json", "--replaced"]).stdout)
        expect("branch:b" not in json.dumps(left), f"{left}")
        run([FSCK, "--data"])


def test_parents_that_are_gone_between_two_lines():
    """A branch of a branch whose own parent is gone knows what that began with."""
    with Site() as _:
        script(MAKE)
        run([BRANCH, "a.nc", "b"])
        run([BRANCH, "a.nc@branch:b", "c"])
        put("a.nc@branch:c", 0, 1)
        run([BRANCH, "a.nc@branch:c", "d"])
        run([RM, "--yes", "a.nc@branch:c"])
        run([BRANCH, "a.nc@branch:d", "e"])
        put("a.nc@branch:e", 1, 1)
        run([MERGE, "a.nc@branch:b", "e"])
        expect_values("a.nc@branch:b", 1, 1, 0, 0, 0, 0, 0, 0)
        run([MERGE, "a.nc", "b"])
        put("a.nc", 1, 0)
        put("a.nc@branch:e", 2, 1)
        run([MERGE, "a.nc", "e"])              # the container has all but the last change by way of b
        expect_values("a.nc", 1, 0, 1, 0, 0, 0, 0, 0)
        run([BRANCH, "-d", "a.nc", "e", "d", "b"])
        run([FSCK, "--data"])


def test_the_catalogue_is_lost():
    """What lines have in common comes back from the journals: the same is merged as would have been."""
    with Site(targets=[{"name": "disk", "plugin": "posix", "directory": "packs"}], replaced={"keep": 0},
              metadata={"plugin": "sqlite", "directory": "metadata"}) as site:
        script(MAKE)
        run([BRANCH, "a.nc", "b"])
        put("a.nc@branch:b", 0, 1)
        run([MERGE, "a.nc", "b"])
        put("a.nc", 0, 0)
        put("a.nc@branch:b", 1, 1)
        run([BRANCH, "a.nc@branch:b", "c"])
        put("a.nc@branch:c", 2, 1)
        before = branches("a.nc")
        shutil.rmtree(site.file("metadata"))
        run([tool("esdm-mkfs"), "--restore"])
        expect([(b["parent"], b["from"], b["merged"]) for b in branches("a.nc").values()] ==
               [(b["parent"], b["from"], b["merged"]) for b in before.values()], f"{branches('a.nc')}\n{before}")
        run([RM, "--yes", "a.nc@branch:b"])
        run([GC, "--yes", "--age=0"])
        run([MERGE, "a.nc", "c"])
        expect_values("a.nc", 0, 1, 1, 0, 0, 0, 0, 0)
        run([FSCK, "--data"])


def test_what_tools_tell():
    with Site(history=9) as _:
        script(MAKE)
        put("a.nc", 7, 7)
        run([BRANCH, "a.nc", "fix/a"])
        put("a.nc@branch:fix/a", 0, 1)
        out = run([BRANCH, "a.nc@branch:fix/a", "fix/b"]).stdout
        expect(out == "a.nc@branch:fix/b begins with snapshot 3 of a.nc@branch:fix/a\n", out)
        run([BRANCH, "a.nc@branch:fix/a", "fix/c", "--from", "@-1"])
        put("a.nc@branch:fix/b", 1, 1)
        told = branches("a.nc")
        expect([(b["parent"], b["from"], b["merged"]) for b in told.values()] ==
               [("a.nc", 2, None), ("a.nc@branch:fix/a", 3, None), ("a.nc@branch:fix/a", 2, None)], f"{told}")
        expect(sorted(branches("a.nc@branch:fix/a")) == ["fix/b", "fix/c"], f"{branches('a.nc@branch:fix/a')}")
        out = run([BRANCH, "a.nc"]).stdout
        expect("a.nc@branch:fix/b  from snapshot 3 of branch fix/a" in out, out)
        log = run([LOG, "-b", "a.nc@branch:fix/a"]).stdout
        expect("branch: fix/b" in log and "branch: fix/c" in log, log)
        log = run([LOG, "-b", "a.nc"]).stdout
        expect("branch: fix/a" in log and "fix/b" not in log, log)
        log = run([LOG, "-b", "--line", "a.nc@branch:fix/b"]).stdout
        expect([line.split()[0] for line in log.splitlines()] ==
               ["a.nc@branch:fix/b@4", "a.nc@branch:fix/b@3", "a.nc@branch:fix/a@3", "a.nc@branch:fix/a@2", "a.nc@2",
                "a.nc@1"], log)
        expect_error(run([MERGE, "a.nc@branch:fix/b", "fix/b"], check=False), "into itself")
        expect_error(run([BRANCH, "a.nc@branch:fix/a", "fix/b"], check=False), "exists")
        expect_error(run([BRANCH, "a.nc@branch:none", "x"], check=False), "no container 'a.nc@branch:none'")
        run([MERGE, "a.nc@branch:fix/a", "fix/b"])
        expect(branches("a.nc")["fix/b"]["merged"] == 4, f"{branches('a.nc')}")
        out = run([MERGE, "--pick", "@4", "--json", "a.nc", "fix/b"]).stdout
        expect_values("a.nc", 0, 1, 0, 0, 0, 0, 0, 7)
        expect_error(run([MERGE, "--pick", "@3", "a.nc", "fix/b"], check=False), "not one of its own")
        run([tool("esdm-mv"), "a.nc", "new.nc"])
        run([MERGE, "new.nc", "fix/b"])
        expect_values("new.nc", 1, 1, 0, 0, 0, 0, 0, 7)
        run([tool("esdm-mv"), "new.nc@branch:fix/a", "own.nc"])     # what began with it has lost it
        put("new.nc@branch:fix/b", 2, 2)
        run([MERGE, "new.nc", "fix/b"])
        expect_values("new.nc", 1, 1, 2, 0, 0, 0, 0, 7)
        expect_error(run([MERGE, "own.nc", "fix/b"], check=False), "no branch")
        run([FSCK, "--data"])


if __name__ == "__main__":
    main(test_lines_are_merged_since_what_they_have_in_common, test_two_lines_in_both_directions,
         test_lines_in_both_directions, test_parents_are_removed,
         test_a_branch_that_is_merged_past_its_parent, test_a_parent_that_is_gone, test_the_catalogue_is_lost,
         test_parents_that_are_gone_between_two_lines, test_what_tools_tell)
