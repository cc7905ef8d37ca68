# SPDX-License-Identifier: LGPL-3.0-or-later
"""Random lines of commits, branched and merged, beside a model of what each merge has to give: `FIRST LAST [KIND ...]`.

A round is made of each seed from FIRST on, before LAST. Kinds: "down" (merges of a line into what began with it, too),
"skips" (into what its parent began with, too), "beside" (of any line into any other one), "two" (lines at the most),
"removes" (of lines). What was done is printed when it fails.

The model says for each element what a merge gives, and says so of all lines: nothing else is right. It knows of each
commit which commits are in it. What two lines have in common are the commits that are in both. Where one of these has
all of them, it is the base. Else the newest ones are merged with each other, in the order of their lines' names, since
what *they* have in common; where two of them have changed an element differently, its base is not known.
An element that both lines have is kept. Where only one of both differs from the base, its value is taken. All else is a
conflict, also where the base is not known.
"""

import random
import sys

import esdm
import netCDF4
import numpy

STEPS = 40
MOST = 48  # commits of a base: ESDM takes no more, and says that it is not known
SEEN = {"one": 0, "several": 0, "most": 0, "open": 0}


class Line:
    """Commits in their order, also those that it began with: (values, what is in it). What is in it are pairs
    (line, number of a commit)."""

    def __init__(self, name, parent, commits):
        values, names = commits[-1]
        self.name, self.parent, self.gone = name, parent, False
        self.commits = commits[:-1] + [(values, names | {(name, len(commits) - 1)})]

    @property
    def values(self):
        return self.commits[-1][0]

    @property
    def has(self):
        return self.commits[-1][1]

    @property
    def url(self):
        return "a.nc" if self.parent is None else "a.nc@branch:" + self.name

    def commit(self, values, more=frozenset()):
        self.commits = self.commits + [(values, self.has | more | {(self.name, len(self.commits))})]

    def read(self):
        with netCDF4.Dataset("esdm://" + self.url) as d:
            return d["v"][:].filled()

    def write(self, rng):
        values = self.values.copy()
        with netCDF4.Dataset("esdm://" + self.url, "a") as d:
            y, x = rng.randrange(4), rng.randrange(6)
            where = (slice(y, y + rng.randrange(1, 3)), slice(x, x + rng.randrange(1, 4)))
            values[where] = rng.randrange(3)
            d["v"][where] = values[where]
        self.commit(values)


class TooMany(Exception):
    """The model says nothing: the round ends."""


class Model:
    """What merges are to give."""

    def __init__(self, lines):
        self.lines = lines
        self.known = {}
        self.commits = 0  # that make the base, at most

    def newest(self, names):
        """Of each line the newest commit that is in this, but for those that are in another one."""
        found = []
        for line in sorted(self.lines, key=lambda one: one.name):
            inside = [(has, values) for n, (values, has) in enumerate(line.commits)
                      if (line.name, n) in has and has <= names]
            found += inside[-1:]
        return [one for one in found if not any(one[0] < other[0] for other in found)]

    def base(self, names):
        """What has all of this: (values, where they are not known)."""
        if names not in self.known:
            (has, values), *others = self.newest(names)
            self.commits += 1 + len(others)
            if self.commits > MOST:
                raise TooMany
            unknown = numpy.zeros(values.shape, bool)
            for other, theirs in others:
                since, not_known = self.base(has & other)
                not_known = not_known | unknown
                take = (values != theirs) & ~not_known & (values == since)
                stay = (values != theirs) & ~not_known & (theirs == since)
                unknown = unknown | ((values != theirs) & ~take & ~stay)
                values = numpy.where(take, theirs, values)
                has = has | other
            self.known[names] = values, unknown
        return self.known[names]

    def merged(self, theirs, ours):
        """(values, which are from theirs, conflicts)"""
        t, o = theirs.values, ours.values
        since, unknown = self.base(theirs.has & ours.has)
        taken = ~unknown & (t != o) & (o == since)
        return numpy.where(taken, t, o), (t != o) & ~taken & (unknown | (t != since))

    def explain(self, theirs, ours):
        both = theirs.has & ours.has
        since, unknown = self.base(both)
        return (f"\ntheirs {theirs.values}\nours {ours.values}\nsince {since}\nwhich is not known at {unknown}\n" +
                "".join(f"in both, {sorted(has)}: {values}\n" for has, values in self.newest(both)))


def merge(rng, theirs, ours, lines):
    """Two lines in ESDM and in the model."""
    told = numpy.zeros(ours.values.shape, bool)
    model = Model(lines)
    values, conflicts = model.merged(theirs, ours)
    SEEN["several" if model.commits > 1 else "one"] += 1
    SEEN["most"] = max(SEEN["most"], model.commits)
    SEEN["open"] += bool(model.base(theirs.has & ours.has)[1].any())
    try:
        done = esdm.merge(ours.url, theirs.name or None)
    except esdm.MergeConflict as e:
        for c in e.result["conflicts"]:
            told[tuple(slice(a, a + k) for a, k in zip(c["offset"], c["size"]))] = True
        prefer = rng.choice(("ours", "theirs"))
        done = esdm.merge(ours.url, theirs.name or None, prefer)
        values = numpy.where(conflicts & (prefer == "theirs"), theirs.values, values)
    got = ours.read()
    if (told != conflicts).any() or (got != values).any():
        raise AssertionError(f"{theirs.name} into {ours.name}: {done}\ntold as conflicts {told}\nand not {conflicts}\n"
                             f"got {got}\nand not {values}{model.explain(theirs, ours)}")
    if done["snapshot"] == 0:
        assert (values == ours.values).all(), f"{done}"
        return
    assert done["snapshot"] == len(ours.commits) + 1, f"{done}"
    ours.commit(got, theirs.has)


def step(rng, seed, number, lines, kinds, said):
    there = [line for line in lines if not line.gone]
    line = rng.choice(there)
    kind = rng.random()
    if kind < 0.2 and len(there) < (2 if "two" in kinds else 6):
        new = Line(f"s{seed}b{number}", line, line.commits)
        said.append(f"{new.name} of {line.name}")
        assert esdm.branch(line.url, new.name) == new.url
        lines.append(new)
    elif kind < (0.4 if "beside" in kinds else 0.55):
        said.append(f"write {line.name}")
        line.write(rng)
    elif kind < 0.93 and "beside" in kinds and len(there) > 1:
        a, b, *more = rng.sample(there, min(len(there), 4))
        pairs = [(a, b)]
        if len(more) == 2 and kind > 0.7:  # what of both is in two others makes one base
            pairs = [(theirs, ours) for ours in more for theirs in rng.sample((a, b), 2)]
        for theirs, ours in pairs:
            said.append(f"merge {theirs.name} into {ours.name}")
            merge(rng, theirs, ours, lines)
    elif kind < 0.93 and line.parent is not None:
        above = [line.parent]
        while {"skips", "down"} & kinds and above[-1].parent is not None:
            above.append(above[-1].parent)
        above = [other for other in above if not other.gone]
        if above:
            other = rng.choice(above)
            theirs, ours = (other, line) if "down" in kinds and rng.random() < 0.5 else (line, other)
            said.append(f"merge {theirs.name} into {ours.name}")
            merge(rng, theirs, ours, lines)
    elif line.parent is not None and "removes" in kinds:
        said.append(f"remove {line.name}")
        esdm.remove(line.url)
        line.gone = True
    for other in lines:
        assert other.gone or (other.read() == other.values).all(), f"{other.name} has changed"


def round_of(seed, kinds):
    rng = random.Random(seed)
    values = numpy.random.default_rng(seed).integers(0, 3, (4, 6), "i4")
    with netCDF4.Dataset("esdm://a.nc", "w") as d:
        d.createDimension("y", 4)
        d.createDimension("x", 6)
        d.createVariable("v", "i4", ("y", "x"))[:] = values
    lines = [Line("", None, [(values, frozenset())])]
    said = []
    try:
        for number in range(STEPS):
            step(rng, seed, number, lines, kinds, said)
    except TooMany:
        pass
    except BaseException:
        print(f"seed {seed}: {'; '.join(said)}", flush=True)
        raise
    for line in lines[1:]:
        if not line.gone:
            esdm.remove(line.url)


def main():
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        round_of(seed, set(sys.argv[3:]))
    print("right", SEEN)


main()
