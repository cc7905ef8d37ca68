#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Several lines of one container that are merged into each other in all directions, branches beside each other too, against a model
with exact version vectors: of each element it is known what both lines have had, or that nobody can know. No value is lost, each
overlap is told, and nothing else is."""

import json
import os
import sqlite3

import postgres
from esdmtest import BUILD, SANITIZE, SEED, SOURCE, Site, by_size, client, client_environment, expect, main, run, skip, tool

MERGE, BRANCH, FSCK, RM = (tool(name) for name in ("esdm-merge", "esdm-branch", "esdm-fsck", "esdm-rm"))

# A line has commits: (values, vector), and a vector says for each line the newest commit of it.
RANDOM = '''
import itertools, random, sys
import esdm, netCDF4, numpy

class Line:
    def __init__(self, name, values, vector):
        self.name, self.commits, self.merges = name, [], set()
        self.commit(values, vector)

    def commit(self, values, vector, merge=False):
        if merge:
            self.merges.add(len(self.commits))
        self.commits.append((values.copy(), {**vector, self.name: len(self.commits)}))

    @property
    def newest(self):
        return self.commits[-1]

container = "a.nc"

def url(line):
    return container + "@branch:" + line.name if line.name else container

def rename(to):
    global container
    esdm.move(container, to)
    container = to

def read(line):
    with netCDF4.Dataset("esdm://" + url(line)) as d:
        return d["v"][:].filled(), getattr(d, "note", None)

def meet(a, b):
    return {name: min(n, b[name]) for name, n in a.items() if name in b}

def join(a, b):
    return {name: max(a.get(name, -1), b.get(name, -1)) for name in (*a, *b)}

def maxima(lines, both):
    """The newest commits which have all of it."""
    found = [(lines[name].commits[n], name, n) for name, n in both.items()]
    return [commit for commit, name, n in found
            if not any(other[1].get(name, -1) >= n for other, its, _ in found if its != name)]

def base_of(lines, both, order):
    """Values of what both have, and where they are not known; how many commits that takes."""
    several = maxima(lines, both)
    several = sorted(several, key=lambda c: order(sorted(c[1].items())))
    values, vector = several[0]
    values, unknown = values.copy(), numpy.zeros(values.shape, bool)
    for other, its in several[1:]:
        before, lost, _ = base_of(lines, meet(vector, its), order)
        same = (values == other) & ~unknown
        mine = ~unknown & ~lost & (before == other)
        theirs = ~unknown & ~lost & (before == values)
        unknown = ~(same | mine | theirs)
        values = numpy.where(same | mine, values, other)
        vector = join(vector, its)
    return values, unknown, len(several)

def expected(base, unknown, t, o):
    conflicts = (o != t) & (unknown | ((o != base) & (t != base)))
    return conflicts, numpy.where(~unknown & (o == base), t, o)

count = {}

def merge(rng, lines, theirs, ours):
    (t, its), (o, has) = theirs.newest, ours.newest
    seen, prefer = numpy.zeros(t.shape, bool), None
    try:
        done = esdm.merge(url(ours), theirs.name or None)
    except esdm.MergeConflict as e:
        for c in e.result["conflicts"]:
            seen[tuple(slice(a, a + k) for a, k in zip(c["offset"], c["size"]))] = True
        prefer = rng.choice(("ours", "theirs"))
        done = esdm.merge(url(ours), theirs.name or None, prefer)
    got = read(ours)[0]
    if its[theirs.name] <= has.get(theirs.name, -1):
        assert not seen.any() and (got == o).all() and not done["snapshot"], f"nothing is new: {done}"
        return
    fits, most = False, 0
    # Of several ones the order is free.
    for order in (lambda v: v, lambda v: [(-ord(n[0]) if n else 0, -k) for n, k in v], lambda v: [(k, n) for n, k in v]):
        base, unknown, most = base_of(lines, meet(its, has), order)
        conflicts, merged = expected(base, unknown, t, o)
        right = numpy.where(conflicts, t if prefer == "theirs" else o, merged)
        if fits := (seen == conflicts).all() and (got == right).all():
            break
    count[most] = count.get(most, 0) + 1
    assert fits, f"{theirs.name} into {ours.name}: {done}, {most} bases\\nread {got}\\nof {t}\\n{o}\\nsince {base}\\n{unknown}\\n{seen}"
    if not done["snapshot"]:  # as theirs has only merged what ours has
        assert (got == o).all() and all(n <= has.get(name, 0) or name == theirs.name for name, n in its.items()), f"{done}"
        assert theirs.merges >= set(range(has.get(theirs.name, 0) + 1, its[theirs.name] + 1)), f"{done} {theirs.merges} {its} {has}"
        return
    ours.commit(got, join(its, has), merge=True)

def round(seed, steps):
    rng = random.Random(seed)
    values = numpy.random.default_rng(seed).integers(0, 3, (4, 6), "i4")
    with netCDF4.Dataset("esdm://a.nc", "w") as d:
        d.createDimension("y", 4); d.createDimension("x", 6)
        d.createVariable("v", "i4", ("y", "x"))[:] = values
    lines = {"": Line("", values, {})}
    said, most = [], rng.randrange(3, 6)
    try:
        for step in range(steps):
            line = rng.choice(list(lines.values()))
            kind = rng.random()
            if rng.random() < 0.1:  # branches keep what they have in common
                said.append("rename")
                rename("f/b.nc" if container == "a.nc" else "a.nc")
                count["renamed"] = count.get("renamed", 0) + 1
            if len(lines) < most and kind < 0.3:
                name = chr(ord("b") + len(lines)) + str(seed)
                said.append(f"{name} of {line.name}")
                esdm.branch(url(line), name)
                lines[name] = Line(name, *line.newest)
            elif kind < 0.5 or len(lines) == 1:
                said.append(f"write {line.name}")
                values = line.newest[0].copy()
                y, x = rng.randrange(4), rng.randrange(6)
                where = (slice(y, y + rng.randrange(1, 3)), slice(x, x + rng.randrange(1, 4)))
                values[where] = rng.randrange(3)
                with netCDF4.Dataset("esdm://" + url(line), "a") as d:
                    d["v"][where] = values[where]
                line.commit(values, line.newest[1])
            else:
                other = rng.choice([l for l in lines.values() if l is not line])
                said.append(f"merge {other.name} into {line.name}")
                merge(rng, lines, other, line)
            for one in lines.values():
                assert (read(one)[0] == one.newest[0]).all(), f"{one.name} has changed"
    except BaseException:
        print("seed", seed, "; ".join(said))
        raise
    for name in lines:
        if name:
            esdm.remove(url(lines[name]))
    if container != "a.nc":
        rename("a.nc")

for seed in range(int(sys.argv[1]), int(sys.argv[2])):
    round(seed, int(sys.argv[3]))
print(*(f"{n}:{k}" for n, k in sorted(count.items(), key=str)))
'''


def python(code, *arguments):
    env = client_environment({"PYTHONPATH": str(SOURCE / "python"), "ESDM_LIBRARY_DIR": f"{BUILD}:{BUILD / 'netcdf-plugin'}"})
    env.pop("LD_PRELOAD", None)
    return run(["/usr/bin/python3", "-c", code, *map(str, arguments)], env=env).stdout


def check_random(rounds):
    for batch in range(10):  # in most rounds no base is made of several snapshots
        told = python(RANDOM, SEED + batch * rounds, SEED + (batch + 1) * rounds, 60)
        print(f"merges by the number of snapshots that make the base: {told}")
        merges = {n: int(k) for n, k in (one.split(":") for one in told.split())}
        expect(merges.pop("renamed", 0) > rounds, told)
        expect(sum(merges.values()) > 10 * rounds, told)
        if max(map(int, merges)) > 1:
            break
    expect(max(map(int, merges)) > 1, "no base was made of several snapshots")
    run([FSCK, "--data"])


def test_lines_in_all_directions():
    with Site() as _:
        check_random(by_size(4, 8, 200))


def test_lines_in_all_directions__postgres():
    if not (BUILD / "esdm/esdm-meta-postgres.so").exists() or postgres.binaries() is None:
        skip("no PostgreSQL")
    with postgres.Server() as server, Site(metadata={"plugin": "postgres", "connection": server.connection()}) as _:
        check_random(by_size(2, 4, 50))


MAKE = """
with netCDF4.Dataset("esdm://a.nc", "w") as d:
    d.createDimension("x", 8)
    d.createVariable("v", "i4", ("x",))[:] = 0
    d.units, d.note = "1", "old"
"""


def script(code, *arguments):
    return client(["/usr/bin/python3", "-c", "import netCDF4, sys\n" + code, *map(str, arguments)]).stdout


def put(name, index, value, **attributes):
    script("with netCDF4.Dataset('esdm://' + sys.argv[1], 'a') as d:\n"
           " d['v'][int(sys.argv[2])] = int(sys.argv[3])\n"
           " for a in sys.argv[4:]: d.setncattr(*a.split('='))\n", name, index, value, *(f"{k}={v}" for k, v in attributes.items()))


def values(name):
    return script("d = netCDF4.Dataset('esdm://' + sys.argv[1])\n"
                  "print(*d['v'][:], d.units, d.note, *(n for n in d.variables if n != 'v'))\n", name).split()


def conflicts(ours, theirs, *options):
    return json.loads(run([MERGE, "--json", *options, ours, theirs], check=False).stdout)["conflicts"]


def four_lines():
    """Two branches, p and q, are in the container and in the branch x: no snapshot has just what these have in common."""
    script(MAKE)
    run([BRANCH, "a.nc", "p", "q", "x"])
    put("a.nc@branch:p", 0, 1, units="K")
    put("a.nc@branch:q", 1, 1, note="new")
    script("with netCDF4.Dataset('esdm://a.nc@branch:q', 'a') as d: d.renameVariable('v', 'w'); d.renameVariable('w', 'v')\n"
           "with netCDF4.Dataset('esdm://a.nc@branch:p', 'a') as d: d.createVariable('u', 'i4', ('x',))[:] = 5\n")
    for branch in "p", "q":
        run([MERGE, "a.nc", branch])
        run([MERGE, "a.nc@branch:x", branch])


def test_what_both_got_of_two_others():
    with Site() as _:
        four_lines()
        put("a.nc@branch:x", 0, 0, units="1")     # as it was before p: that counts, as both had p
        put("a.nc@branch:x", 1, 2, note="newer")
        expect(conflicts("a.nc", "x") == [], "what one side has changed is a conflict")
        expect(values("a.nc") == ["0", "2", *"000000", "1", "newer", "u"], f"{values('a.nc')}")
        put("a.nc", 2, 1)
        run([MERGE, "a.nc@branch:x", "p"])           # which has nothing new
        run([MERGE, "--into", "x", "a.nc"])
        expect(values("a.nc@branch:x") == ["0", "2", "1", *"00000", "1", "newer", "u"], f"{values('a.nc@branch:x')}")
        put("a.nc@branch:x", 1, 3, note="x")
        put("a.nc", 1, 4, note="a")
        told = [(c["what"], c.get("attribute")) for c in conflicts("a.nc", "x")]
        expect(sorted(told) == [("attribute", "note"), ("values", None)], f"{told}")
        run([FSCK, "--data"])


def test_two_resolutions_of_one_conflict():
    """Both lines have both changes, and each has decided otherwise: that is a conflict, whatever was before."""
    with Site() as _:
        script(MAKE)
        run([BRANCH, "a.nc", "p", "q", "x"])
        put("a.nc@branch:p", 0, 1)
        put("a.nc@branch:q", 0, 2)
        for line, wins in ("a.nc", "--ours"), ("a.nc@branch:x", "--theirs"):
            run([MERGE, line, "p"])
            run([MERGE, wins, line, "q"])
        expect(len(conflicts("a.nc", "x")) == 1, "one decision has won without a word")
        run([MERGE, "--theirs", "a.nc", "x"])
        expect(values("a.nc")[0] == "2", f"{values('a.nc')}")
        expect(conflicts("a.nc@branch:x", "p") == conflicts("a.nc@branch:x", "q") == [], "it is to be decided again")


def own_tags(site, begins):
    with sqlite3.connect(next(site.file("metadata").glob("*.sqlite"))) as catalogue:
        return [name for name, in catalogue.execute("SELECT name FROM tag WHERE name LIKE ?", (begins + "%",))]


LATER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t which, struct timespec *ret)
{
    int (*real)(clockid_t, struct timespec *) = (int (*)(clockid_t, struct timespec *)) dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(which, ret);
    if (which == CLOCK_REALTIME)
        ret->tv_sec += 7200;
    return status;
}
"""


def later(site):
    """A library by which it is two hours later."""
    site.file("later.c").write_text(LATER)
    run(["cc", "-shared", "-fPIC", "-o", str(site.file("later.so")), str(site.file("later.c")), "-ldl"])
    return str(site.file("later.so"))


def test_notes_go_that_nobody_needs():
    if SANITIZE:
        skip("another library comes first")
    with Site(metadata={"plugin": "sqlite", "directory": "metadata"}) as site:
        script(MAKE)
        run([BRANCH, "a.nc", "p", "q"])
        for i in range(6):
            put("a.nc@branch:p", i, i + 1)
            run([MERGE, "a.nc@branch:q", "p"])
        for begins in "esdm:has:", "esdm:kept:":
            expect(len(own_tags(site, begins)) >= 6, f"{own_tags(site, 'esdm:')}")
        put("a.nc@branch:p", 6, 7)
        run([MERGE, "a.nc@branch:q", "p"], env={**os.environ, "LD_PRELOAD": later(site)})
        expect(len(own_tags(site, "esdm:kept:")) <= 2, f"{own_tags(site, 'esdm:')}")
        expect(len(own_tags(site, "esdm:has:")) <= 4, f"{own_tags(site, 'esdm:')}")
        expect(values("a.nc@branch:q")[:7] == list("1234567"), f"{values('a.nc@branch:q')}")
        put("a.nc@branch:q", 0, 0)
        put("a.nc@branch:p", 1, 0)
        expect(conflicts("a.nc@branch:p", "q") == [], "what they have in common is lost")
        expect(values("a.nc@branch:p")[:7] == list("0034567"), f"{values('a.nc@branch:p')}")


def test_sites_of_older_versions():
    """Merges that older versions have noted of two lines count on."""
    with Site(metadata={"plugin": "sqlite", "directory": "metadata"}) as site:
        script(MAKE)
        run([BRANCH, "a.nc", "p"])
        put("a.nc@branch:p", 0, 1)
        run([MERGE, "a.nc", "p"])
        put("a.nc", 0, 2)
        run([MERGE, "--into", "p", "a.nc"])
        with sqlite3.connect(next(site.file("metadata").glob("*.sqlite"))) as catalogue:
            catalogue.execute("DELETE FROM tag WHERE name LIKE 'esdm:has:%' OR name LIKE 'esdm:kept:%'")
        put("a.nc@branch:p", 0, 0)
        expect(conflicts("a.nc", "p") == [], "an older base")
        expect(values("a.nc")[0] == "0", f"{values('a.nc')}")
        run([BRANCH, "a.nc", "q"])
        put("a.nc@branch:q", 1, 1)
        expect(conflicts("a.nc@branch:p", "q") == [], "an older base")
        expect(values("a.nc@branch:p")[:2] == ["0", "1"], f"{values('a.nc@branch:p')}")


def test_what_both_had_of_a_line_that_is_gone():
    """Without it nobody knows what was changed back: what differs is told, and a preference decides."""
    for prefer, right in ("--ours", ["2", "7", "0", "9"]), ("--theirs", ["0", "7", "0", "9"]):
        with Site() as _:
            script(MAKE)
            run([BRANCH, "a.nc", "p", "c"])
            put("a.nc@branch:c", 0, 2, note="new", more="c")
            for line in "a.nc", "a.nc@branch:p":
                run([MERGE, line, "c"])
            run([RM, "--for-good", "--yes", "a.nc@branch:c"])
            put("a.nc", 0, 0)
            script("with netCDF4.Dataset('esdm://a.nc', 'a') as d: d.delncattr('more')\n")
            put("a.nc", 1, 7)
            put("a.nc@branch:p", 3, 9)
            told = [c["what"] for c in conflicts("a.nc", "p", "--dry-run")]
            expect("values" in told, f"what was changed back is lost: {told}")
            told = json.loads(run([MERGE, "--json", "--into", "p", "a.nc"],
                                  check=False).stdout)["conflicts"]
            expect(("values", None) in [(c["what"], c.get("attribute")) for c in told], f"what was changed back is lost: {told}")
            expect(("attribute", "more") in [(c["what"], c.get("attribute")) for c in told], f"what was removed is back: {told}")
            run([MERGE, prefer, "--into", "p", "a.nc"])
            expect(values("a.nc@branch:p")[:4] == right, f"{values('a.nc@branch:p')}")
            run([MERGE, "a.nc", "p"])
            put("a.nc", 0, 5)
            run([MERGE, "--into", "p", "a.nc"])
            expect(values("a.nc@branch:p") == values("a.nc"), f"{values('a.nc')}")
            run([FSCK, "--data"])


def test_merges_of_older_versions_into_a_third_line():
    """What they noted of the branch and the container counts when the branch comes by way of another one."""
    with Site(metadata={"plugin": "sqlite", "directory": "metadata"}) as site:
        script(MAKE)
        run([BRANCH, "a.nc", "p", "q"])
        put("a.nc@branch:p", 0, 1)
        run([MERGE, "a.nc", "p"])
        with sqlite3.connect(next(site.file("metadata").glob("*.sqlite"))) as catalogue:
            catalogue.execute("DELETE FROM tag WHERE name LIKE 'esdm:has:%' OR name LIKE 'esdm:kept:%'")
        put("a.nc", 0, 0)
        run([MERGE, "a.nc@branch:q", "p"])
        put("a.nc@branch:q", 1, 1)
        expect(conflicts("a.nc", "q") == [], "an older base")
        expect(values("a.nc")[:2] == ["0", "1"], f"what was changed back is lost: {values('a.nc')}")
        run([MERGE, "--into", "q", "a.nc"])
        expect(values("a.nc@branch:q")[:2] == ["0", "1"], f"{values('a.nc@branch:q')}")


def test_older_versions_skip_notes_that_they_cannot_read():
    """They take tags whose authors begin with "up:" or "down:", and look for a branch that is called as the rest. These
    notes are there for a moment, so a trigger of PostgreSQL notes them: writers of SQLite run none."""
    if not (BUILD / "esdm/esdm-meta-postgres.so").exists() or postgres.binaries() is None:
        skip("no PostgreSQL")
    with postgres.Server() as server, Site(metadata={"plugin": "postgres", "connection": server.connection()}):
        script(MAKE)
        run([BRANCH, "a.nc", "p", "q"])
        server.sql("""
            CREATE TABLE esdm.seen(author text);
            CREATE FUNCTION esdm.see() RETURNS trigger LANGUAGE plpgsql AS
                'BEGIN INSERT INTO esdm.seen VALUES(new.author); RETURN new; END';
            CREATE TRIGGER seen_tag AFTER INSERT ON esdm.tag
                FOR EACH ROW WHEN (new.name LIKE 'esdm:came:%') EXECUTE FUNCTION esdm.see();""")
        put("a.nc@branch:p", 0, 1)
        run([MERGE, "a.nc", "p"])
        run([MERGE, "--into", "q", "a.nc"])
        put("a.nc@branch:p", 1, 1)
        run([MERGE, "a.nc@branch:q", "p"])
        authors = server.sql("SELECT author FROM esdm.seen")
        expect(len(authors) == 3 and all("=" in a for a in authors), f"{authors}")
        expect(not any(a.startswith(("up:", "down:")) for a in authors), f"{authors}")


if __name__ == "__main__":
    main(*(() if SANITIZE else (test_lines_in_all_directions, test_lines_in_all_directions__postgres)),
         test_what_both_got_of_two_others, test_two_resolutions_of_one_conflict, test_notes_go_that_nobody_needs,
         test_sites_of_older_versions, test_what_both_had_of_a_line_that_is_gone, test_merges_of_older_versions_into_a_third_line,
         test_older_versions_skip_notes_that_they_cannot_read)
