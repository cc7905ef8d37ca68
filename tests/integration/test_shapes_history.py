#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Second shapes never show an old value, in whatever order a container is written, appended to, branched, merged, tagged, replaced,
brought back, renamed, compacted, de-duplicated, drained and restored: drawn histories, compared with copies in numpy."""

import json
import os
import random

import numpy

from esdmtest import SEED, SIZE, Site, client, expect, main, run, tool

T, Y, X = 120, 48, 48
MAKE = f"""
import netCDF4, numpy, sys
with netCDF4.Dataset("esdm://" + sys.argv[1], "w") as d:
    for n, size in (("t", None), ("y", {Y}), ("x", {X})):
        d.createDimension(n, size)
    v = d.createVariable("v", "f4", ("t", "y", "x"), fill_value=-9)
    v[:] = numpy.random.default_rng(int(sys.argv[2])).normal(280, 9, ({T}, {Y}, {X})).astype("f4")
"""
SET = """
import netCDF4, sys
with netCDF4.Dataset("esdm://" + sys.argv[1], "a") as d:
    t, tn, y, yn, x, xn = map(int, sys.argv[2].split(","))
    d["v"][t:t + tn, y:y + yn, x:x + xn] = float(sys.argv[3])
"""
# Series, and then all: a read of all takes the first shape.
SEE = """
import netCDF4, numpy, sys
for name, file in zip(sys.argv[1::2], sys.argv[2::2]):
    with netCDF4.Dataset("esdm://" + name) as d:
        v = d["v"]
        v.set_auto_mask(False)
        before = int(open("/proc/self/io").read().split()[1])
        series = numpy.stack([v[:, y, y] for y in range(0, v.shape[1], 3)])
        got = int(open("/proc/self/io").read().split()[1]) - before
        steps = v[1::5, 7, 11]
        numpy.savez(file, series=series, steps=steps, all=v[:], got=got)
"""


def python(code, *arguments):
    client(["/usr/bin/python3", "-c", code, *map(str, arguments)])


class History:
    """What is there, and what each name must show."""

    def __init__(self, site, seed):
        self.site, self.random, self.now, self.marks, self.log = site, random.Random(seed), {}, {}, []
        self.former, self.count, self.uses = [], 0, 0

    def make(self, name="a.nc"):
        self.count += 1
        if name in self.now:
            self.former.append(self.now[name])
        python(MAKE, name, self.count)
        self.now[name] = numpy.random.default_rng(self.count).normal(280, 9, (T, Y, X)).astype("f4")

    def set(self, name):
        self.count += 1
        values = self.now[name]
        r = self.random
        t = r.choice((r.randrange(len(values)), len(values), len(values) - 1))
        y, x = r.randrange(Y - 4), r.randrange(X - 4)
        tn, yn, xn = r.choice((1, 3, 9)), r.choice((1, 4, Y - y)), r.choice((1, 4, X - x))
        if t + tn > len(values):
            values = numpy.concatenate([values, numpy.full((t + tn - len(values), Y, X), -9, "f4")])
        else:
            values = values.copy()
        values[t:t + tn, y:y + yn, x:x + xn] = self.count
        python(SET, name, f"{t},{tn},{y},{yn},{x},{xn}", self.count)
        self.now[name] = values

    def shape(self, *more):
        run([tool("esdm-compact"), "--quiet", *more, "a.nc"])

    def tag(self):
        self.count += 1
        run([tool("esdm-tag"), "a.nc", f"t{self.count}"])
        self.marks[f"a.nc@tag:t{self.count}"] = self.now["a.nc"]

    def branch(self):
        self.count += 1
        run([tool("esdm-branch"), "a.nc", f"b{self.count}"])
        self.now[f"a.nc@branch:b{self.count}"] = self.now["a.nc"]
        self.bases = getattr(self, "bases", {})
        self.bases[f"b{self.count}"] = self.now["a.nc"]

    def merged(self, base, ours, theirs):
        """What a merge in favour of theirs gives."""
        length = max(len(a) for a in (base, ours, theirs))
        base, ours, theirs = (numpy.concatenate([a, numpy.full((length - len(a), Y, X), -9, "f4")]) for a in (base, ours, theirs))
        return numpy.where(theirs != base, theirs, ours)

    def merge(self):
        branches = [n for n in self.now if n.startswith("a.nc@branch:")]
        if not branches:
            return
        name = self.random.choice(branches)
        own = name.partition(":")[2]
        if self.random.random() < 0.3:
            run([tool("esdm-merge"), "--theirs", "--into", own, "a.nc"])
            self.now[name] = self.merged(self.bases[own], self.now[name], self.now["a.nc"])
            self.bases[own] = self.now["a.nc"]
        else:
            run([tool("esdm-merge"), "--theirs", "a.nc", own])
            self.now["a.nc"] = self.merged(self.bases[own], self.now["a.nc"], self.now[name])
            self.bases[own] = self.now[name]

    def bring_back(self):
        run([tool("esdm-rm"), "--yes", "a.nc"])
        run([tool("esdm-restore"), "a.nc"])

    def replaced(self):
        """Another one in its place, and then the first one again."""
        if any("@branch:" in n for n in self.now) or self.marks:
            return
        mine = self.now["a.nc"]
        before = self.ids()
        self.make()
        own = self.ids() - before
        expect(len(own) == 1, f"one more former container: {before} {own}")
        if self.random.random() < 0.5:
            self.set("a.nc")
        run([tool("esdm-restore"), "--yes", "--id", own.pop(), "a.nc"])
        self.now["a.nc"] = mine

    def ids(self):
        told = json.loads(run([tool("esdm-restore"), "--list", "--json", "a.nc"], check=False).stdout)
        return {one["id"] for one in told["replaced"]}

    def clone_over(self):
        """What was tagged takes the place."""
        if not self.marks or any("@branch:" in n for n in self.now):
            return
        mark = self.random.choice(sorted(self.marks))
        run([tool("esdm-cp"), "--reflink", "--force", f"esdm://{mark}", "esdm://a.nc"])
        self.now["a.nc"] = self.marks[mark]
        self.marks = {}

    def rename(self):
        run([tool("esdm-mv"), "a.nc", "other.nc"])
        run([tool("esdm-mv"), "other.nc", "a.nc"])

    def dedup(self):
        run([tool("esdm-dedup"), "a.nc"], check=False)

    def drain(self):
        run([tool("esdm-drain")], check=False)

    def gc(self):
        run([tool("esdm-gc"), "--yes", "--age", "0"])

    def catalogue(self):
        if any("@branch:" in n for n in self.now) or self.marks:
            return
        run([tool("esdm-mkfs"), "--restore"])

    def step(self):
        r = self.random.random()
        names = sorted(self.now)
        for share, what in ((0.30, lambda: self.set(self.random.choice(names))), (0.46, self.shape),
                            (0.49, lambda: self.shape("--second-shape", self.random.choice(("v=series", f"v={T},6,6")))),
                            (0.60, self.tag), (0.66, self.branch), (0.78, self.merge), (0.82, self.bring_back), (0.86, self.replaced),
                            (0.88, self.clone_over), (0.91, self.rename), (0.94, self.dedup), (0.96, self.drain), (0.98, self.gc),
                            (1.0, self.catalogue)):
            if r < share:
                self.log.append(getattr(what, "__name__", "set"))
                what()
                return

    def check(self):
        wanted = {**self.now, **self.marks}
        files = {name: self.site.file(f"see{i}.npz") for i, name in enumerate(wanted)}
        python(SEE, *[part for pair in files.items() for part in pair])
        for name, values in wanted.items():
            got = numpy.load(files[name])
            expect(got["all"].shape == values.shape and (got["all"] == values).all(), f"{name}: the first shape differs: {self.log}")
            wrong = [y for i, y in enumerate(range(0, Y, 3)) if (got["series"][i] != values[:, y, y]).any()]
            expect(not wrong, f"{name}: old values at {wrong}: {self.log}")
            expect((got["steps"] == values[1::5, 7, 11]).all(), f"{name}: old values in steps: {self.log}")
        return int(numpy.load(files["a.nc"])["got"])


def test_drawn_histories():
    rounds, steps = {"quick": (2, 14), "default": (4, 20)}.get(SIZE, (40, 40))
    for n in range(int(os.environ.get("ROUNDS", rounds))):
        with Site(engine={"fragment": "64 KiB"}, history=50, shapes=2) as site:
            history = History(site, SEED * 1000 + n)
            history.make()
            one = history.check()
            history.shape("--second-shape", "v=series")
            two = history.check()
            expect(two < one / 2, f"series are not read from the second shape: {one} and {two} bytes")
            for _ in range(steps):
                history.step()
                history.check()
            run([tool("esdm-fsck"), "--data"])


main(test_drawn_histories)
