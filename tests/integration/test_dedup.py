#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-dedup: what it foretells and what it saves, on a series of restarts; what is removed and written afterwards."""

import json
import re

from esdmtest import Site, by_size, client, expect, expect_error, main, run, tool

DEDUP, RM, GC, FSCK = (tool(name) for name in ("esdm-dedup", "esdm-rm", "esdm-gc", "esdm-fsck"))

# Made as restarts of a model are: masks and soil never change, the state does. (The real data of the tests have no restart files.)
SERIES = """
import netCDF4, numpy, sys
fixed = numpy.random.default_rng(1).random((40, 20000))
for n in range(int(sys.argv[1])):
    with netCDF4.Dataset(f"esdm://restart/{n:03}.nc", "w") as d:
        d.createDimension("k", 40); d.createDimension("x", 20000)
        for name in ("soil", "mask"):
            v = d.createVariable(name, "f8", ("k", "x"))
            for k in range(0, 40, 8): v[k:k + 8] = fixed[k:k + 8] + (name == "mask")
        v = d.createVariable("state", "f8", ("k", "x"))
        v[:] = numpy.random.default_rng(100 + n).random((40, 20000))
        d.n = n
"""
CHECK = """
import netCDF4, numpy, sys
fixed = numpy.random.default_rng(1).random((40, 20000))
for n in map(int, sys.argv[1:]):
    with netCDF4.Dataset(f"esdm://restart/{n:03}.nc") as d:
        assert d.n == n and (d["soil"][:] == fixed).all() and (d["mask"][:] == fixed + 1).all(), n
        assert (d["state"][:] == numpy.random.default_rng(100 + n).random((40, 20000))).all(), n
"""


def dedup(*arguments):
    return json.loads(run([DEDUP, "--json", *arguments]).stdout)


def stored(site):
    """Bytes that the packs of containers take."""
    return sum(path.stat().st_size for path in site.pack_files())


def python(code, *arguments):
    client(["/usr/bin/python3", "-c", code, *map(str, arguments)])


EQUAL = """
import netCDF4, numpy, sys
for name in sys.argv[1:]:
    with netCDF4.Dataset(f"esdm://{name}", "w") as d:
        d.createDimension("x", 20000)
        d.createVariable("v", "i8", ("x",))[:] = numpy.random.default_rng(1).integers(0, 1 << 60, 20000)
"""


def places(name):
    """Targets of each of its fragments."""
    return set(re.findall(r'"target": "([^"]+)"', run([tool("esdm-stat"), "--json", "--fragments", name]).stdout))


def test_what_is_named_has_the_copies_and_the_targets_that_are_wanted():
    """Equal fragments of containers with other policies, and one that was stored while targets were away."""
    policies = [{"container": "once/*", "copies": 1}, {"container": "thrice/*", "copies": 3},
                {"container": "here/*", "targets": ["d", "e"]}]
    targets = [{"name": name, "plugin": "posix", "directory": name} for name in "abcde"]
    with Site(targets=targets, copies=2, policies=policies, engine={"inline": 0}, replaced={"keep": 0}) as site:
        names = [f"{folder}/{n}" for n in range(2) for folder in ("once", "twice", "thrice", "here")]
        python(EQUAL, *names)
        before = len(site.pack_files())
        foretold, done = dedup("--dry-run"), dedup()
        expect(0 < done["duplicates"] == foretold["duplicates"], f"{foretold} {done}")
        run([GC, "--yes", "--age=0"])
        run([FSCK, "--data"])  # tells of fragments with too few copies
        expect(len(site.pack_files()) <= before // 2, f"{before} packs, now {site.pack_files()}")
        for name in names:
            expect(name[:4] != "here" or places(name) <= {"d,e", "e,d", "d", "e"}, f"{name}: {places(name)}")
        expect(dedup()["duplicates"] <= 2, "what policies keep apart is taken for equal")
        for name in names[:4]:
            run([RM, "--yes", name])
        run([GC, "--yes", "--age=0"])
        for target in "abc":
            run([tool("esdm-drain"), "--from", target, "--age", "0"])  # moves it for all that share it
        run([FSCK, "--data"])


def test_a_series_saves_what_was_foretold():
    with Site(replaced={"keep": 0}) as site:
        python(SERIES, 6)
        before = stored(site)
        foretold = dedup("--dry-run", "restart")
        expect(stored(site) == before and foretold["pages"] == 0, "a dry run changes something")
        expect(foretold["duplicate_bytes"] > 0.5 * foretold["bytes"], f"{foretold}")
        text = run([DEDUP, "-n", "restart"]).stdout
        expect("would be saved" in text and "of memory for the table" in text, text)
        done = dedup("restart")
        run([GC, "--yes", "--age=0"])
        saved = before - stored(site)
        expect(done["duplicate_bytes"] == foretold["duplicate_bytes"] and done["pages"] > 0, f"{done} {foretold}")
        expect(abs(saved - foretold["freed_bytes"]) <= 0.1 * foretold["freed_bytes"],
               f"saved {saved}, foretold {foretold['freed_bytes']}")
        python(CHECK, *range(6))
        run([FSCK, "--data"])
        expect(dedup("--dry-run", "restart")["duplicates"] == 0, "there are equal ones again")
        expect("is little" in run([DEDUP, "-n"]).stdout, "not told that it is little")


SMALL = """
import netCDF4, numpy, sys
for n in range(2):
    with netCDF4.Dataset(f"esdm://small/{n}", "w") as d:
        d.createDimension("x", int(sys.argv[1]))
        d.createVariable("v", "f8", ("x",))[:] = numpy.random.default_rng(n).random(int(sys.argv[1]))
"""


def test_the_table_is_small():
    """Published for de-duplication are tables of 0.6 % of the capacity with pieces of 8 KiB."""
    pieces = by_size(2000, 4000, 50000)
    with Site(engine={"fragment": "8K", "codec": "none"}, replaced={"keep": 0}):
        python(SMALL, pieces * 1024)
        told = dedup("--dry-run", "small")
        written = dedup("--dry-run", "--as", "write", "small")  # the second one is compared with the first
        expect(told["fragments"] >= 2 * pieces, f"fragments of 8 KiB: {told}")
        shares = [told["table_bytes"] / told["bytes"], 2 * written["table_bytes"] / written["bytes"]]
        print(f"    {told['fragments']} fragments: {told['table_bytes'] / told['fragments']:.1f} bytes each, {100 * shares[0]:.2f} %; "
              f"beside programs that write {100 * shares[1]:.2f} %")
        expect(0 < min(shares) and max(shares) < 0.0065, f"tables take {shares} of what is stored")


def test_what_is_removed_or_written_does_no_harm():
    with Site(replaced={"keep": 0}) as site:
        python(SERIES, 4)
        dedup()
        run([RM, "--yes", "--for-good", "restart/000.nc"])       # what the others refer to
        run([GC, "--yes", "--age=0"])
        python(CHECK, 1, 2, 3)
        python("import netCDF4\nwith netCDF4.Dataset('esdm://restart/001.nc', 'a') as d: d['soil'][:] = 0\n")
        run([GC, "--yes", "--age=0"])
        python(CHECK, 2, 3)
        run([FSCK, "--data"])
        for n in 1, 2, 3:
            run([RM, "--yes", "--for-good", f"restart/{n:03}.nc"])
        run([GC, "--yes", "--age=0"])
        expect(not site.pack_files(), f"left: {site.pack_files()}")


def test_branches_clones_and_names():
    with Site(history=3) as _:
        python(SERIES, 2)
        run([tool("esdm-branch"), "restart/000.nc", "b"])
        run([tool("esdm-cp"), "--reflink", "esdm://restart/001.nc", "esdm://restart/002.nc"])
        told = dedup("--dry-run")
        two = dedup("--dry-run", "restart/000.nc", "restart/001.nc")
        expect(told["containers"] == 4 and two["containers"] == 2 and told["duplicates"] > 0, f"{told}")
        for key in "fragments", "bytes", "duplicates", "duplicate_bytes":  # what is shared counts once
            expect(told[key] == two[key], f"{told} {two}")
        dedup()
        python(CHECK, 0, 1)
        run([tool("esdm-diff"), "restart/000.nc", "restart/000.nc@branch:b"])
        run([tool("esdm-diff"), "restart/001.nc", "restart/002.nc"])
        run([FSCK, "--data"])
        expect(dedup("--dry-run")["duplicates"] == 0, "there are equal ones again")
        expect_error(run([DEDUP, "none"], check=False), "none")
        expect_error(run([DEDUP, "restart", "none"], check=False), "'none'")
        expect(dedup("--dry-run", "restart", "restart/000.nc") == dedup("--dry-run", "restart"), "a second name that tells nothing new")


SMOOTH = """
import netCDF4, numpy
for name in ("a.nc", "b.nc"):
    with netCDF4.Dataset(f"esdm://{name}", "w") as d:
        d.createDimension("x", 100000)
        d.createVariable("v", "f8", ("x",), zlib=True)[:] = numpy.arange(100000) // 7
"""


def test_what_is_compressed_is_named_too():
    for codec in "lz4", "shuffle+zstd":
        with Site(engine={"codec": codec, "codec_on_request": codec}) as site:
            python(SMOOTH)
            before, would = stored(site), dedup("--dry-run", "a.nc", "b.nc")
            done = dedup("a.nc", "b.nc")
            expect(done["duplicates"] == would["duplicates"] > 0, f"{done} {would}")
            expect(done["freed_bytes"] == would["freed_bytes"] > 0, f"{done} {would}")
            run([GC, "--yes", "--age=0"])
            expect(before < 2 * 800000 and before - stored(site) == done["freed_bytes"], f"{before}, now {stored(site)}: {done}")
            run([FSCK, "--data"])


if __name__ == "__main__":
    main(test_the_table_is_small, test_what_is_compressed_is_named_too, test_a_series_saves_what_was_foretold,
         test_what_is_named_has_the_copies_and_the_targets_that_are_wanted,
         test_what_is_removed_or_written_does_no_harm,
         test_branches_clones_and_names)
