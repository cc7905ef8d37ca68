#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Programs of earlier versions of ESDM, built from this repository's history (support/old_versions.py), meet what this
version has written. What they cannot read they refuse, with a message, and change nothing. What they write
while this version upgrades the site fails, and nothing that was committed is lost.

With ESDM_TEST_SIZE=long, as building takes minutes; otherwise with the versions that have been built before:

    ESDM_TEST_SIZE=long ctest --test-dir build -R integration.earlier_versions --output-on-failure
"""

import hashlib
import os
import sqlite3
import subprocess

import old_versions
from esdmtest import SANITIZE, SIZE, Site, client, environment, expect, main, run, skip, tool
from postgres import Server, skip_without_postgres

# Each is the last version without the text in the file.
CHECKSUMS = ("SQLITE__FORMAT 3", "backends/meta/sqlite/store.h")
PAGES = ("Versions 1 to 4, little-endian", "src/layout/page.h")
SHARED = ("SQLITE__FORMAT 5", "backends/meta/sqlite/store.h")
RANGES = ("POSTGRES__FORMAT 3", "backends/meta/postgres/link.h")

PYTHON = "/usr/bin/python3"

FIELDS = """
import netCDF4, numpy, sys
with netCDF4.Dataset(sys.argv[1], "w") as nc:
    nc.createDimension("time", None)
    nc.createDimension("x", 100000)
    nc.createVariable("a", "f4", ("time", "x"))[0:3] = numpy.arange(300000).reshape(3, 100000)
    nc.createVariable("equal", "f4", ("x",))[:] = 7
    nc.createVariable("small", "i2", ("time",))[:] = numpy.arange(3)
    nc.history = "made"
"""

# Appends a record, tells so, and goes on when it is told to.
APPENDS = """
import netCDF4, sys
nc = netCDF4.Dataset(sys.argv[1], "a")
for record in range(3, 6):
    nc["a"][record] = record
    nc.sync()
    print("stored", record, flush=True)
    sys.stdin.readline()
"""


def version(which):
    if SANITIZE:
        skip("earlier versions are built without sanitizers")
    if SIZE != "long" and not old_versions.is_built(*which):
        skip("builds earlier versions, which takes minutes: with ESDM_TEST_SIZE=long")
    return old_versions.Version(*which)


def contents(folder):
    """Of all files but what SQLite keeps of its locks in shared memory, and caches."""
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.rglob("*"))
            if p.is_file() and not p.name.endswith("-shm") and "cache" not in p.relative_to(folder).parts[:1]}


def digest(name):
    return run([tool("esdm-stat"), "--digest", name]).stdout


def write_as_now():
    client([PYTHON, "-c", FIELDS, "esdm://run1.nc"])
    client([PYTHON, "-c", FIELDS, "esdm://folder/run2.nc"])
    run([tool("esdm-cp"), "--reflink", "esdm://run1.nc", "esdm://clone.nc"])


def commands(old, site):
    """What a user of an earlier version may do."""
    t = old.tool
    plain = str(site.file("plain.nc"))
    run([PYTHON, "-c", FIELDS, plain])
    hooked = [t("esdm-run")]
    return [
        [t("esdm-ls")], [t("esdm-ls"), "-l", "folder"], [t("esdm-stat"), "run1.nc"],
        [t("esdm-find"), "history = 'made'"],
        [t("esdm-fsck")], [t("esdm-fsck"), "--data"], [t("esdm-fsck"), "--repair"], [t("esdm-gc"), "--yes", "--age=0"],
        [t("esdm-rm"), "--yes", "run1.nc"], [t("esdm-mv"), "run1.nc", "run3.nc"], [t("esdm-mkfs")],
        [t("esdm-drain"), "disk"],
        [t("esdm-cp"), "-f", "esdm://run1.nc", str(site.file("out.nc"))],
        [t("esdm-cp"), "-f", plain, "esdm://run1.nc"], [t("esdm-cp"), plain, "esdm://run4.nc"],
        [*hooked, "ncdump", "-h", "esdm://run1.nc"], [*hooked, "ncks", "-A", plain, "esdm://run1.nc"],
        [*hooked, "ncks", "-O", plain, "esdm://run5.nc"],
        [*hooked, PYTHON, "-c", FIELDS, "esdm://run6.nc"]]


def refuses(old, command):
    """@return the message, or None where that version has no such tool or option"""
    if not os.path.exists(command[0]):
        return None
    done = subprocess.run(command, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace", timeout=300, check=False)
    told = done.stdout + done.stderr
    if done.returncode == 2 and "Unknown option" in told:
        return None
    expect(done.returncode > 0, f"{old.commit[:8]}: {command} ended with {done.returncode}:\n{told[-2000:]}")
    expect("newer" in told and "format" in told, f"{old.commit[:8]}: {command} does not say why:\n{told[-2000:]}")
    return told


def check_refused(old, site):
    before = contents(site.folder)
    told = 0
    for command in commands(old, site):
        before["plain.nc"] = hashlib.sha256(site.file("plain.nc").read_bytes()).hexdigest()
        told += refuses(old, command) is not None
        after = contents(site.folder)
        changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        expect(not changed, f"{old.commit[:8]}: {command} changed {sorted(changed)}")
    expect(told >= 12, f"{old.commit[:8]}: only {told} commands were refused")
    print(f"version {old.commit[:8]}: {told} commands refused, no file changed")


def check_whole(digests):
    run([tool("esdm-fsck"), "--data"])
    for name, known in digests.items():
        expect(digest(name) == known, f"{name} is not what it was")


def check_version(which):
    old = version(which)
    with Site() as site:
        write_as_now()
        digests = {name: digest(name) for name in ("run1.nc", "folder/run2.nc", "clone.nc")}
        check_refused(old, site)
        check_whole(digests)


def test_refused__by_a_version_without_checksums_of_rows():
    check_version(CHECKSUMS)


def test_refused__by_a_version_without_statistics_and_kinds():
    check_version(PAGES)


def test_refused__by_a_version_without_shared_packs():
    check_version(SHARED)


def test_refused__a_site_of_its_own_that_this_version_wrote_to():
    """Reading alone upgrades nothing, nor do notes of what was found (digests), so both versions go on with it; the
    first change does."""
    old = version(PAGES)
    with Site(make=False) as site:
        run([old.tool("esdm-mkfs")])
        run([old.tool("esdm-run"), PYTHON, "-c", FIELDS, "esdm://run1.nc"])
        known = digest("run1.nc")
        run([tool("esdm-fsck"), "--data"])
        run([old.tool("esdm-run"), "ncdump", "-h", "esdm://run1.nc"])
        client([PYTHON, "-c", FIELDS, "esdm://folder/run2.nc"])
        run([tool("esdm-cp"), "--reflink", "esdm://run1.nc", "esdm://clone.nc"])
        digests = {"run1.nc": known, "clone.nc": known.replace("run1.nc", "clone.nc"),
                   "folder/run2.nc": digest("folder/run2.nc")}
        check_refused(old, site)
        check_whole(digests)


def check_writer(which):
    """A program of an earlier version writes while this version upgrades the site and shares packs of its container."""
    old = version(which)
    with Site(make=False) as site:
        run([old.tool("esdm-mkfs")])
        run([old.tool("esdm-run"), PYTHON, "-c", FIELDS, "esdm://run1.nc"])
        with subprocess.Popen([old.tool("esdm-run"), PYTHON, "-c", APPENDS, "esdm://run1.nc"], text=True,
                              env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as writer:
            expect(writer.stdout.readline() == "stored 3\n", "the writer does not begin")
            run([tool("esdm-cp"), "--reflink", "esdm://run1.nc", "esdm://clone.nc"])
            known = digest("clone.nc")
            out, err = writer.communicate("\n\n\n", timeout=300)
        with sqlite3.connect(site.file("metadata") / "catalogue.sqlite") as catalogue:
            expect(catalogue.execute("PRAGMA user_version").fetchone()[0] == 5, "no upgrade")
        # What such a version says to it is SQLite's own word, as it looks for tables and columns that it knew.
        expect(writer.returncode == 1 and "commit of container 'run1.nc'" in err and "stored 4" not in out,
               f"{old.commit[:8]}: the writer went on: {writer.returncode} {out} {err[-1500:]}")
        run([tool("esdm-gc"), "--yes", "--age=0"])
        check_whole({"clone.nc": known, "run1.nc": known.replace("clone.nc", "run1.nc")})


def test_refused__a_writer_of_an_earlier_version_that_goes_on():
    check_writer(PAGES)


def check_postgresql(which):
    skip_without_postgres()
    old = version(which)
    with Server() as server:
        with Site(metadata={"plugin": "postgres", "connection": server.connection("postgres")}) as site:
            write_as_now()
            digests = {name: digest(name) for name in ("run1.nc", "folder/run2.nc", "clone.nc")}
            check_refused(old, site)
            check_whole(digests)


def test_refused__on_postgresql_by_a_version_without_shared_packs():
    check_postgresql(PAGES)


def test_refused__on_postgresql_by_a_version_without_ranges():
    check_postgresql(RANGES)


main(test_refused__by_a_version_without_checksums_of_rows, test_refused__by_a_version_without_statistics_and_kinds,
     test_refused__by_a_version_without_shared_packs, test_refused__a_site_of_its_own_that_this_version_wrote_to,
     test_refused__a_writer_of_an_earlier_version_that_goes_on,
     test_refused__on_postgresql_by_a_version_without_shared_packs,
     test_refused__on_postgresql_by_a_version_without_ranges)
