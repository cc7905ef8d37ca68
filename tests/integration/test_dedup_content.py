#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
""""dedup": "content": lists of particles that gain and lose some from one restart file to the next are stored once where they
have only moved along; values, parts of them, other shapes and other types are as they are without it."""

import json

from esdmtest import Site, client, expect, expect_error, main, run, tool

SERIES = """
import netCDF4, numpy, sys

def particles(n):
    '''Of step n: some leave at the begin, some come in at three places, the others stay.'''
    x = numpy.random.default_rng(1).random(400000)
    for step in range(n):
        rng = numpy.random.default_rng(100 + step)
        for at in rng.integers(0, len(x), 3):
            x = numpy.insert(x, at, rng.random(rng.integers(1, 50)))
        x = x[rng.integers(1, 300):]
    return x

def write(n):
    x = particles(n)
    with netCDF4.Dataset(f"esdm://restart/{n:02}.nc", "w") as d:
        d.createDimension("particle", len(x)); d.createDimension("y", 300); d.createDimension("x", 200)
        d.createVariable("mass", "f8", ("particle",))[:] = x
        d.createVariable("single", "f4", ("particle",))[:] = x                 # converted by the library
        every = numpy.repeat(x, 2)[::2]
        d.createVariable("cell", "i4", ("particle",))[:] = (every * 2**31).astype("i4")
        d.createVariable("name", str, ("y",))[:] = numpy.array([f"name {i} of {n}" for i in range(300)], object)
        d.createVariable("few", "f8", ("y",))[:] = x[:300]
        d.createVariable("field", "f8", ("y", "x"))[:] = x[:60000].reshape(300, 200)

def check(n):
    x = particles(n)
    with netCDF4.Dataset(f"esdm://restart/{n:02}.nc") as d:
        assert (d["mass"][:] == x).all() and (d["single"][:] == x.astype("f4")).all(), n
        assert (d["cell"][:] == (x * 2**31).astype("i4")).all() and (d["few"][:] == x[:300]).all(), n
        assert d["name"][7] == f"name 7 of {n}" and (d["field"][:].ravel() == x[:60000]).all(), n
        for lo, hi, step in ((0, 1, 1), (9000, 61000, 1), (123, 399000, 7), (len(x) - 5, len(x), 1)):
            assert (d["mass"][lo:hi:step] == x[lo:hi:step]).all(), (n, lo, hi, step)

what = {"write": write, "check": check}[sys.argv[1]]
for n in map(int, sys.argv[2:]):
    what(n)
"""


FSCK = tool("esdm-fsck")


def series(what, *steps):
    client(["/usr/bin/python3", "-c", SERIES, what, *map(str, steps)])


def stored(site):
    return sum(path.stat().st_size for path in site.pack_files())


def fragments(name):
    told = json.loads(run([tool("esdm-stat"), "--json", "--fragments", name]).stdout)["containers"][0]["root"]
    return {d["name"]: [f["size"][0] for f in d["fragments"]] for d in told["datasets"]}


def test_what_has_moved_is_stored_once():
    share = {}
    for kind in ("write", "content"):
        with Site(dedup=kind, replaced={"keep": 0}) as site:
            series("write", 0)
            first = stored(site)
            series("write", 1, 2, 3, 4)
            share[kind] = (stored(site) - first) / (4 * first)
            series("check", 0, 1, 2, 3, 4)
            if kind == "content":
                sizes = fragments("restart/00.nc")["mass"]
                expect(len(sizes) > 20 and max(sizes) <= 32768 and min(sizes[:-1]) >= 2048, f"{sizes}")
                expect(len(fragments("restart/00.nc")["field"]) < 16, "short rows of a field")
            run([tool("esdm-rm"), "--yes", "--for-good", "restart/00.nc", "restart/02.nc"])
            run([tool("esdm-gc"), "--yes", "--age=0"])
            series("check", 1, 3, 4)
            run([tool("esdm-fsck"), "--data"])
    print({kind: f"{value:.2f}" for kind, value in share.items()})
    expect(share["write"] > 0.9 and share["content"] < 0.45, f"of what the first one takes each takes: {share}")


ROWS = """
import netCDF4, numpy, sys

def changed(a, rng, leave, come):
    for at in rng.integers(0, len(a), 2):
        a = numpy.insert(a, at, rng.random((rng.integers(1, come), *a.shape[1:])), axis=0)
    return a[rng.integers(1, leave):]

def state(n):
    # Of step n: particles with three components, and patches of a refined grid; they move along as rows.
    rng = numpy.random.default_rng(1)
    v, p = rng.random((100000, 3)), rng.random((1500, 8, 8, 8))
    for step in range(n):
        rng = numpy.random.default_rng(100 + step)
        v, p = changed(v, rng, 300, 50), changed(p, rng, 9, 4)
    return {"velocity": (("particle", "k"), v, "f8"), "component": (("k", "particle"), v.T, "f8"),
            "single": (("particle", "k"), v, "f4"), "patch": (("patch", "z", "y", "x"), p, "f8")}[sys.argv[2]]

def write(n):
    names, values, kind = state(n)
    with netCDF4.Dataset(f"esdm://{sys.argv[2]}/{n:02}.nc", "w") as d:
        for name, length in zip(names, values.shape):
            d.createDimension(name, length)
        d.createVariable("a", kind, names)[:] = values

def check(n):
    names, values, kind = state(n)
    with netCDF4.Dataset(f"esdm://{sys.argv[2]}/{n:02}.nc") as d:
        assert (d["a"][:] == values.astype(kind)).all(), n
        where = tuple(slice(length // 3, 2 * length // 3 + 1, 1 + i) for i, length in enumerate(values.shape))
        assert (d["a"][where] == values.astype(kind)[where]).all(), (n, where)

for n in map(int, sys.argv[3:]):
    {"write": write, "check": check}[sys.argv[1]](n)
"""


def rows(what, name, *steps):
    client(["/usr/bin/python3", "-c", ROWS, what, name, *map(str, steps)])


def test_rows_that_have_moved_are_stored_once():
    """Particles with components, in both orders, and patches: along the dimension whose rows are small."""
    share = {}
    for name in "velocity", "component", "single", "patch":
        for kind in "write", "content":
            with Site(dedup=kind, replaced={"keep": 0}) as site:
                rows("write", name, 0)
                first = stored(site)
                rows("write", name, 1, 2)
                share[name, kind] = (stored(site) - first) / (2 * first)
                rows("check", name, 0, 1, 2)
                run([FSCK, "--data"])
    print({" ".join(key): f"{value:.2f}" for key, value in share.items()})
    for (name, kind), value in share.items():
        expect(value > 0.7 if kind == "write" else value < 0.55, f"{name}, {kind}: {value:.2f} of the first one")


def test_later_calls_of_esdm_dedup_find_it():
    """In other folders, with which nothing was compared while they were written."""
    with Site(policies=[{"container": "*", "dedup": "content"}], replaced={"keep": 0}) as site:
        series("write", 0)
        run([tool("esdm-mv"), "restart/00.nc", "old/00.nc"])
        series("write", 1)
        before = stored(site)
        told = json.loads(run([tool("esdm-dedup"), "--json", "-n", "old", "restart"]).stdout)
        run([tool("esdm-dedup"), "old", "restart"])
        run([tool("esdm-gc"), "--yes", "--age=0"])
        expect(told["duplicate_bytes"] > 0.3 * told["bytes"] and stored(site) < 0.75 * before, f"{told}")
        series("check", 1)
        run([tool("esdm-fsck"), "--data"])


def test_wrong_words():
    with Site(make=False, dedup="contents") as _:
        expect_error(run([tool("esdm-mkfs")], check=False), '"contents"', '"content"')


if __name__ == "__main__":
    main(test_what_has_moved_is_stored_once, test_rows_that_have_moved_are_stored_once,
         test_later_calls_of_esdm_dedup_find_it, test_wrong_words)
