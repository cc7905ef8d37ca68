#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Merging branches: random changes of two sides against numpy copies, conflicts, metadata, picks, and what is
stored by it."""

import json

from esdmtest import BUILD, SANITIZE, SEED, SOURCE, Site, by_size, client, client_environment, expect, expect_error, main, run, tool

MERGE, BRANCH, RM, GC, FSCK = (tool(name) for name in ("esdm-merge", "esdm-branch", "esdm-rm", "esdm-gc", "esdm-fsck"))

RANDOM = '''
import random, sys
import esdm, netCDF4, numpy
FILL = netCDF4.default_fillvals["i4"]

def grown(a, length):
    more = numpy.full((max(length - a.shape[0], 0), *a.shape[1:]), FILL, a.dtype)
    return numpy.concatenate([a, more])

def change(rng, name, a, attributes):
    """Some writes to a side; returns what it is to be."""
    with netCDF4.Dataset("esdm://" + name, "a") as d:
        d.set_auto_mask(False)
        v = d["v"]
        for _ in range(rng.randrange(1, 5)):
            lo = [rng.randrange(a.shape[0] + 2), rng.randrange(9), rng.randrange(7)]
            n = [rng.randrange(1, 4), rng.randrange(1, 9), rng.randrange(1, 7)]
            step = rng.choice((1, 1, 1, 2))
            hi = [lo[0] + n[0], min(lo[1] + n[1], 9), min(lo[2] + n[2], 7)]
            where = (slice(lo[0], hi[0]), slice(lo[1], hi[1], step), slice(lo[2], hi[2]))
            a = grown(a, hi[0])
            shape = a[where].shape
            value = numpy.full(shape, rng.randrange(3), "i4") if rng.random() < 0.5 else \
                numpy.random.default_rng(rng.random().as_integer_ratio()[0] % 2**32).integers(0, 3, shape, "i4")
            v[where] = value
            a[where] = value
            if rng.random() < 0.2:
                d.sync()
        for key in "pqr":
            kind = rng.random()
            if kind < 0.2:
                attributes[key] = rng.randrange(3)
                v.setncattr(key, numpy.int32(attributes[key]))
            elif kind < 0.3 and key in attributes:
                del attributes[key]
                v.delncattr(key)
    return a

def read(name):
    with netCDF4.Dataset("esdm://" + name) as d:
        d.set_auto_mask(False)
        return d["v"][:], {k: int(d["v"].getncattr(k)) for k in d["v"].ncattrs()}

def expected(base, ours, theirs):
    length = max(len(base), len(ours), len(theirs))
    b, o, t = (grown(a, length) for a in (base, ours, theirs))
    return (o != b) & (t != b) & (o != t), numpy.where(t != b, t, o), o

def check_round(seed):
    rng = random.Random(seed)
    name = f"r{seed}.nc"
    base = numpy.random.default_rng(seed).integers(0, 3, (3, 9, 7), "i4")
    with netCDF4.Dataset("esdm://" + name, "w") as d:
        d.createDimension("t", None); d.createDimension("y", 9); d.createDimension("x", 7)
        v = d.createVariable("v", "i4", ("t", "y", "x")); v[:] = base
        v.p = numpy.int32(1)
    other = esdm.branch(name, "b")
    sides = {name: (base.copy(), {"p": 1}), other: (base.copy(), {"p": 1})}
    a_base = {"p": 1}
    for step in range(3):
        # Either the branch is merged, or it catches up: what was merged last is what both have in common.
        to, of, branch = (name, other, "b") if rng.random() < 0.5 else (other, name, None)
        for side in sides:
            attributes = dict(sides[side][1])
            sides[side] = (change(rng, side, sides[side][0].copy(), attributes), attributes)
        (ours, a_ours), (theirs, a_theirs) = sides[to], sides[of]
        conflicts, merged, padded = expected(base, ours, theirs)
        wrong = {k for k in "pqr" if a_base.get(k) != a_ours.get(k) and a_base.get(k) != a_theirs.get(k)
                 and a_ours.get(k) != a_theirs.get(k)}
        prefer = None
        try:
            done = esdm.merge(to, branch, dry_run=rng.random() < 0.5)
            assert not conflicts.any() and not wrong, f"seed {seed}: conflicts were not found"
            if done["snapshot"] == 0:
                done = esdm.merge(to, branch)
        except esdm.MergeConflict as e:
            done = e.result
            prefer = rng.choice(("ours", "theirs"))
        seen = numpy.zeros_like(conflicts, dtype="i4")
        for c in done["conflicts"]:
            if c["what"] == "values":
                seen[tuple(slice(o, o + n) for o, n in zip(c["offset"], c["size"]))] += 1
        told = {c["attribute"] for c in done["conflicts"] if c["what"] == "attribute"}
        assert (seen == conflicts).all(), f"seed {seed}: {done}\\n{conflicts.astype(int)}"
        assert done["conflict_elements"] == conflicts.sum() and told == wrong, f"seed {seed}: {done} {wrong}"
        if prefer:
            got = read(to)
            assert (got[0] == ours).all() and got[1] == a_ours, f"seed {seed}: refused, and changed"
            esdm.merge(to, branch, prefer)
            if prefer == "ours":
                merged = numpy.where(conflicts, padded, merged)
        for k in "pqr":
            if a_theirs.get(k) != a_base.get(k) and (k not in wrong or prefer == "theirs"):
                if k in a_theirs:
                    a_ours[k] = a_theirs[k]
                else:
                    a_ours.pop(k, None)
        got = read(to)
        assert got[0].shape == merged.shape and (got[0] == merged).all(), f"seed {seed}: values"
        assert got[1] == a_ours, f"seed {seed}: attributes {got[1]}, not {a_ours}"
        left = read(of)
        assert (left[0] == theirs).all() and left[1] == a_theirs, f"seed {seed}: the other side has changed"
        again = esdm.merge(to, branch)
        assert again["snapshot"] == 0 and again["fragments"] == 0, f"seed {seed}: {again}"
        base, a_base, sides[to] = theirs.copy(), dict(a_theirs), (merged, a_ours)

for seed in range(int(sys.argv[1]), int(sys.argv[2])):
    check_round(seed)
print("right")
'''


def python(code, *arguments, check=True):
    env = client_environment({"PYTHONPATH": str(SOURCE / "python"),
                              "ESDM_LIBRARY_DIR": f"{BUILD}:{BUILD / 'netcdf-plugin'}"})
    env.pop("LD_PRELOAD", None)
    return run(["/usr/bin/python3", "-c", code, *map(str, arguments)], env=env, check=check).stdout


def merge(*arguments, check=True):
    return run([MERGE, *arguments], check=check)


def told(*arguments):
    done = merge("--json", *arguments, check=False)
    return json.loads(done.stdout)


def test_random_changes_are_merged_or_reported():
    if SANITIZE:
        return
    with Site(history=3) as _:
        first = SEED
        out = python(RANDOM, first, first + by_size(12, 40, 400))
        expect(out == "right\n", out)
        run([FSCK, "--data"])


MAKE = """
import netCDF4, numpy, sys
with netCDF4.Dataset("esdm://a.nc", "w") as d:
    d.history = "made"
    d.createDimension("t", None); d.createDimension("x", 4000)
    v = d.createVariable("v", "f8", ("t", "x")); v.units = "K"
    x = d.createVariable("x", "f8", ("x",)); x.units = "km"; x[:] = numpy.arange(4000.) / 2
    v[:] = numpy.arange(64 * 4000.).reshape(64, 4000)
"""


def script(code, *arguments):
    return client(["/usr/bin/python3", "-c", "import netCDF4, numpy, sys\n" + code, *map(str, arguments)])


def data_bytes(site):
    """Bytes in packs of containers: what targets hold of data."""
    return sum(path.stat().st_size for path in site.pack_files())


def test_many_branches_that_are_apart_store_nothing():
    if SANITIZE:
        return
    with Site(replaced={"keep": 0}) as site:
        script(MAKE)
        names = [f"b{i}" for i in range(64)]
        run([BRANCH, "a.nc", *names])
        script("for i in range(64):\n"
               " with netCDF4.Dataset(f'esdm://a.nc@branch:b{i}', 'a') as d: d['v'][i] = -i - 1.0\n")
        before, packs = data_bytes(site), [p.name for p in site.pack_files()]
        out = python("import esdm\n"
                     "for i in range(64):\n"
                     " r = esdm.merge('a.nc', f'b{i}')\n"
                     " assert r['fragments'] == 1 and r['rewritten_bytes'] == 0 and not r['conflicts'], r\n"
                     "print('done')\n")
        expect(out == "done\n", out)
        expect(data_bytes(site) == before and [p.name for p in site.pack_files()] == packs,
               f"{data_bytes(site) - before} bytes were stored")
        for i in range(0, 64, 2):              # removing one side does no harm to the other
            run([RM, "--yes", "--for-good", f"a.nc@branch:b{i}"])
        run([GC, "--yes", "--age=0"])
        script("d = netCDF4.Dataset('esdm://a.nc')\n"
               "assert all((d['v'][i] == -i - 1.0).all() for i in range(64))\n")
        run([FSCK, "--data"])


TILES = '''
import random, sys
import esdm, netCDF4, numpy

def cut(rng, boxes, count):
    """As many boxes that do not meet and cover all: the largest is cut at random until there are enough."""
    while len(boxes) < count:
        boxes.sort(key=lambda box: numpy.prod(box[1]))
        at, size = boxes.pop()
        axis = rng.choice([d for d in range(len(size)) if size[d] > 1])
        n = rng.randrange(1, size[axis])
        boxes.append((at, tuple(n if d == axis else s for d, s in enumerate(size))))
        boxes.append((tuple(o + n if d == axis else o for d, o in enumerate(at)),
                      tuple(s - n if d == axis else s for d, s in enumerate(size))))
    rng.shuffle(boxes)
    return boxes

def where(box):
    return tuple(slice(o, o + n) for o, n in zip(*box))

def check(seed, count, shape, overlaps):
    """Every branch gets a tile; some write beside it, too, where others may have."""
    rng = random.Random(seed)
    name = f"t{seed}.nc"
    base = numpy.arange(numpy.prod(shape), dtype="i4").reshape(shape)
    with netCDF4.Dataset("esdm://" + name, "w") as d:
        dims = [d.createDimension(f"d{i}", n).name for i, n in enumerate(shape)]
        d.createVariable("v", "i4", dims)[:] = base
    sides, written = [], []
    for i, tile in enumerate(cut(rng, [((0,) * len(shape), shape)], count)):
        esdm.branch(name, f"b{i}")
        boxes = [tile]
        if i in overlaps:
            at = [rng.randrange(n) for n in shape]
            boxes.append((at, [rng.randrange(1, n - o + 1) for o, n in zip(at, shape)]))
        side, mine = base.copy(), numpy.zeros(shape, bool)
        with netCDF4.Dataset(f"esdm://{name}@branch:b{i}", "a") as d:
            for box in boxes:
                value = -rng.randrange(1, 4) if i in overlaps else -10 - i - base[where(box)] % 1009
                d["v"][where(box)] = side[where(box)] = value
                mine[where(box)] = True
        sides.append(side)
        written.append(mine)
    ours, touched, told = base.copy(), numpy.zeros(shape, bool), 0
    stored = 0
    for i in rng.sample(range(count), count):
        theirs = sides[i]
        conflicts = (ours != base) & (theirs != base) & (ours != theirs)
        try:
            done = esdm.merge(name, f"b{i}")
            assert not conflicts.any(), f"seed {seed}: an overlap of b{i} was not reported"
        except esdm.MergeConflict as e:
            seen = numpy.zeros(shape, "i4")
            for c in e.result["conflicts"]:
                seen[where((c["offset"], c["size"]))] += 1
            assert (seen == conflicts).all() and e.result["conflict_elements"] == conflicts.sum(), \
                f"seed {seed}: b{i}: {e.result}\\n{conflicts.sum()}"
            told += 1
            done = esdm.merge(name, f"b{i}", "theirs")
        if not (touched & written[i]).any():
            assert done["rewritten_bytes"] == 0, f"seed {seed}: b{i} meets nobody: {done}"
        assert overlaps or done["fragments"] == 1, f"seed {seed}: {done}"
        stored += done["referenced_bytes"]       # of small fragments none: they lie in index pages
        ours = numpy.where(theirs != base, theirs, ours)
        touched |= written[i]
    with netCDF4.Dataset("esdm://" + name) as d:
        assert (d["v"][:] == ours).all() and stored > 0, f"seed {seed}: values"
    return told

first, last = int(sys.argv[1]), int(sys.argv[2])
told = 0
for seed in range(first, last):
    rng = random.Random(seed)
    shape = rng.choice(((640, 480), (64, 60, 80), (300000,)))
    told += check(seed, 64, shape, set(rng.sample(range(64), 20)) if sys.argv[3] == "overlaps" else set())
print("told" if told else "apart")
'''


def test_64_branches_that_are_apart():
    if SANITIZE:
        return
    with Site() as _:
        first = SEED
        out = python(TILES, first, first + by_size(1, 3, 20), "apart")
        expect(out == "apart\n", out)
        run([FSCK, "--data"])


def test_64_branches_of_which_some_overlap():
    if SANITIZE:
        return
    with Site() as _:
        first = SEED
        out = python(TILES, first, first + by_size(1, 3, 20), "overlaps")
        expect(out == "told\n", out)
        run([FSCK, "--data"])


def test_conflicts_are_told_in_words():
    with Site(history=9) as _:
        script(MAKE)
        run([BRANCH, "a.nc", "fix"])
        script("for name, value in (('a.nc', 1.), ('a.nc@branch:fix', 2.)):\n"
               " with netCDF4.Dataset('esdm://' + name, 'a') as d:\n"
               "  d['v'][3:5, 10:20] = value; d['v'].units = f'{value} K'; d.history = f'at {value}\\nmade'\n")
        done = merge("a.nc", "fix", check=False)
        expect(done.returncode == 1, f"status {done.returncode}")
        expect_error(done, "conflict: values of /v [3:5, 10:20]", "x 5 to 9.5 km", "attribute of /v: units",
                     "changed the same in 2 places")
        json_told = told("a.nc", "fix")
        expect(not json_told["merged"] and json_told["conflict_elements"] == 20 and
               [c["what"] for c in json_told["conflicts"]] == ["attribute", "values"], f"{json_told}")
        expect("K" == script("print(netCDF4.Dataset('esdm://a.nc@1')['v'].units)\n").stdout.strip(), "")
        out = merge("--theirs", "-m", "as agreed", "a.nc", "fix").stdout
        expect("merged branch 'fix'" in out and "0 B is stored anew" in out, out)
        expect("as agreed" in run([tool("esdm-log"), "-b", "a.nc"]).stdout, "no message")
        script("d = netCDF4.Dataset('esdm://a.nc')\n"
               "assert (d['v'][3:5, 10:20] == 2).all() and d['v'].units == '2.0 K'\n"
               "assert d.history.split('\\n') == ['at 2.0', 'at 1.0', 'made'], d.history\n")
        expect("has all of branch" in merge("a.nc", "fix").stdout, "it is merged twice")
        expect([b["merged"] for b in json.loads(run([BRANCH, "--json", "a.nc"]).stdout)["branches"]] == [2], "")


def test_structure():
    with Site() as _:
        script(MAKE)
        run([BRANCH, "a.nc", "fix"])
        script("with netCDF4.Dataset('esdm://a.nc@branch:fix', 'a') as d:\n"
               " d.renameVariable('v', 'tas')\n"
               " g = d.createGroup('g'); g.createDimension('k', 3); g.note = 'new'\n"
               " w = g.createVariable('w', 'i2', ('t', 'k'), fill_value=-5); w[70] = [1, 2, 3]; w.a = 'b'\n"
               " del d['tas'].units\n"
               "with netCDF4.Dataset('esdm://a.nc', 'a') as d:\n"
               " u = d.createVariable('u', 'f4', ('x',)); u[:] = 7\n"
               " d['v'].long_name = 'kept'\n")
        out = json.loads(merge("--json", "--dry-run", "a.nc", "fix").stdout)
        expect(out["snapshot"] is None and out["objects"] >= 6 and not out["conflicts"], f"{out}")
        merge("a.nc", "fix")
        script("d = netCDF4.Dataset('esdm://a.nc'); d.set_auto_mask(False)\n"
               "assert list(d.variables) == ['tas', 'x', 'u'] and d.dimensions['t'].size == 71, d\n"
               "assert d['tas'].ncattrs() == ['long_name'] and (d['u'][:] == 7).all()\n"
               "w = d['g/w']\n"
               "assert w.a == 'b' and d['g'].note == 'new' and list(w[70]) == [1, 2, 3] and (w[:70] == -5).all()\n"
               "assert (d['tas'][:64] == numpy.arange(64 * 4000.).reshape(64, 4000)).all()\n")
        script("with netCDF4.Dataset('esdm://a.nc@branch:fix', 'a') as d: d.createVariable('z', 'i4', ('x',))\n"
               "with netCDF4.Dataset('esdm://a.nc', 'a') as d: d.createVariable('z', 'f8', ('x',))\n")
        for option in (), ("--theirs",), ("--ours",):
            expect_error(merge(*option, "a.nc", "fix", check=False), "conflict: variable of /z")


def snapshots(name):
    return len(json.loads(run([tool("esdm-log"), "--json", "-b", name]).stdout)["snapshots"])


def test_a_branch_catches_up():
    """What was merged into it comes not back, and nothing is stored for it; structure goes both ways."""
    with Site(history=9) as _:
        script(MAKE)
        run([BRANCH, "a.nc", "fix"])
        script("with netCDF4.Dataset('esdm://a.nc', 'a') as d:\n"
               " d['v'][0:8] = 5.0; d['v'].units = 'K'; d.renameVariable('v', 'tas')\n"
               " u = d.createVariable('u', 'f4', ('x',)); u[:] = 7\n"
               "with netCDF4.Dataset('esdm://a.nc@branch:fix', 'a') as d: d['v'][8:16] = 6.0; d.note = 'own'\n")
        dry = told("--dry-run", "--into", "fix", "a.nc")
        expect(dry["snapshot"] is None and dry["branch"] is None and dry["from"] == "a.nc" and not dry["conflicts"],
               f"{dry}")
        down = told("--into", "fix", "a.nc")
        expect(down["name"] == "a.nc@branch:fix" and down["rewritten_bytes"] == 0 and down["fragments"] > 0, f"{down}")
        read_both = ("d = netCDF4.Dataset('esdm://' + sys.argv[1])\n"
                     "assert list(d.variables) == ['tas', 'x', 'u'] and d['tas'].units == 'K' and (d['u'][:] == 7).all()\n"
                     "assert (d['tas'][0:8] == 5).all() and (d['tas'][8:16] == 6).all() and d.note == 'own'\n")
        script(read_both, "a.nc@branch:fix")
        expect("has all of 'a.nc'" in merge("--into", "fix", "a.nc").stdout, "it is merged twice")
        up = told("a.nc", "fix")
        expect(up["fragments"] == down["fragments"] or up["fragments"] == 1, f"{up}")
        expect(up["rewritten_bytes"] == 0 and not up["conflicts"], f"{up}")
        script(read_both, "a.nc")
        before = snapshots("a.nc"), snapshots("a.nc@branch:fix")
        for _ in range(2):                     # both are equal: merges make no snapshots
            merge("--into", "fix", "a.nc")
            merge("a.nc", "fix")
        expect((snapshots("a.nc"), snapshots("a.nc@branch:fix")) == before, "equal lines made snapshots")
        script("with netCDF4.Dataset('esdm://a.nc', 'a') as d: d['tas'][0:4] = 0.0\n")
        up = told("a.nc", "fix")               # what the container changed since stays
        expect(up["fragments"] == 0 and not up["conflicts"], f"{up}")
        script("assert (netCDF4.Dataset('esdm://a.nc')['tas'][0:4] == 0).all()\n")
        script("for n in 'a.nc', 'a.nc@branch:fix':\n"
               " with netCDF4.Dataset('esdm://' + n, 'a') as d: d['tas'][20, 3] = len(n)\n")
        done = merge("--into", "fix", "a.nc", check=False)
        expect_error(done, "conflict: values of /tas [20, 3]", "--ours or --theirs")
        merge("--ours", "--into", "fix", "a.nc")
        up = told("a.nc", "fix")
        expect(not up["conflicts"] and up["merged"], f"{up}")
        script("assert netCDF4.Dataset('esdm://a.nc')['tas'][20, 3] == 15\n")
        run([FSCK, "--data"])
        run([RM, "--yes", "--for-good", "a.nc"])
        run([GC, "--yes", "--age=0"])
        script("assert (netCDF4.Dataset('esdm://a.nc@branch:fix')['tas'][0:4] == 0).all()\n")


def test_picks_of_ranges_and_into_branches():
    with Site(history=20) as _:
        script(MAKE)
        run([BRANCH, "a.nc", "fix"])
        for i in range(5):
            script("for n in 'a.nc', 'a.nc@branch:fix':\n"
                   " with netCDF4.Dataset('esdm://' + n, 'a') as d:\n"
                   "  d['v'][int(sys.argv[1]) + (0 if n == 'a.nc' else 10)] = -1.0\n", i)
        first = told("--dry-run", "a.nc", "fix")["base"]
        merge("--pick", f"@{first + 1}..@{first + 3}", "a.nc", "fix")
        merge("--pick", f"@{first + 2}..@{first + 4}", "--into", "fix", "a.nc")
        merge("--pick", f"@{first + 1}", "--into", "fix", "a.nc")
        script("a, b = (netCDF4.Dataset('esdm://' + n)['v'][:, 1] == -1 for n in ('a.nc', 'a.nc@branch:fix'))\n"
               "assert list(a.nonzero()[0]) == [0, 1, 2, 3, 4, 11, 12], a.nonzero()\n"
               "assert list(b.nonzero()[0]) == [0, 2, 3, 10, 11, 12, 13, 14], b.nonzero()\n")
        log = run([tool("esdm-log"), "-b", "a.nc"]).stdout
        expect(f"pick of branch fix@{first + 1}..{first + 3}" in log, log)
        expect_error(merge("--pick", f"@{first}", "--into", "fix", "a.nc", check=False), "already")
        expect_error(merge("--pick", "@1..@99", "--into", "fix", "a.nc", check=False), "no such snapshot")
        for wrong in "@4..@3", "@3..@3", "@3..", "..@3", "3..4", "@0..@3":
            expect_error(merge("--pick", wrong, "a.nc", "fix", check=False), "@6..@9")
        expect_error(merge("--into", "none", "a.nc", check=False), "no container 'a.nc@branch:none'")
        expect_error(merge("--into", "fix", "a.nc", "fix", check=False), "of what")
        run([BRANCH, "a.nc", "other"])
        merge("--into", "other", "a.nc@branch:fix")   # which lie beside each other
        script("assert (netCDF4.Dataset('esdm://a.nc@branch:other')['v'][:] == netCDF4.Dataset('esdm://a.nc@branch:fix')['v'][:]).sum() >\\\n"
               " (netCDF4.Dataset('esdm://a.nc')['v'][:] == netCDF4.Dataset('esdm://a.nc@branch:fix')['v'][:]).sum()\n")
        merge("--into", "fix", "a.nc")
        script("assert list((netCDF4.Dataset('esdm://a.nc@branch:fix')['v'][:, 1] == -1).nonzero()[0]) ==\\\n"
               " [0, 1, 2, 3, 4, 10, 11, 12, 13, 14]\n")
        script(MAKE)
        expect_error(merge("--into", "fix", "a.nc", check=False), "written anew")


def test_picks_and_refusals():
    with Site(history=9) as _:
        script(MAKE)
        run([BRANCH, "a.nc", "fix"])
        for i in range(3):
            script("with netCDF4.Dataset('esdm://a.nc@branch:fix', 'a') as d: d['v'][int(sys.argv[1])] = -1.0\n", i)
        out = merge("--pick", "@3", "a.nc", "fix").stdout
        expect("1 fragments" in out, out)
        script("d = netCDF4.Dataset('esdm://a.nc')\n"
               "assert [float(d['v'][i, 1]) for i in range(3)] == [1.0, -1.0, 8001.0]\n")
        merge("a.nc", "fix")
        script("d = netCDF4.Dataset('esdm://a.nc'); assert (d['v'][:3] == -1).all()\n")
        expect_error(merge("--pick", "@1", "a.nc", "fix", check=False), "began with")
        expect_error(merge("--pick", "@77", "a.nc", "fix", check=False), "no such snapshot")
        expect_error(merge("--pick", "7", "a.nc", "fix", check=False), "@9")
        expect_error(merge("a.nc", "none", check=False), "no branch 'none'")
        expect_error(merge("b.nc", "fix", check=False), "b.nc")
        expect_error(merge("--ours", "--theirs", "a.nc", "fix", check=False), "exclude")
        script(MAKE)                           # replaced: they have nothing in common any more
        expect_error(merge("a.nc", "fix", check=False), "written anew")


if __name__ == "__main__":
    main(test_random_changes_are_merged_or_reported, test_many_branches_that_are_apart_store_nothing,
         test_64_branches_that_are_apart, test_64_branches_of_which_some_overlap,
         test_conflicts_are_told_in_words, test_structure, test_a_branch_catches_up,
         test_picks_of_ranges_and_into_branches, test_picks_and_refusals)
