#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Programs of earlier versions of ESDM, built from this repository's history (support/old_versions.py), meet what this
version has written. What they cannot read they refuse, with a message, and change nothing. What they write
while this version upgrades the site fails, and nothing that was committed is lost. Programs and plug-ins of this version
run with a later library.

With ESDM_TEST_SIZE=long, as building takes minutes; otherwise with the versions that have been built before:

    ESDM_TEST_SIZE=long ctest --test-dir build -R integration.earlier_versions --output-on-failure
"""

import contextlib
import hashlib
import os
import pathlib
import sqlite3
import subprocess

import old_versions
from esdmtest import BUILD, SANITIZE, SIZE, SOURCE, Site, client, environment, expect, main, run, skip, tool
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


# What the next version may do.
LATER = {
    "esdm/version.h": ("#define ESDM_VERSION_MINOR 1", "#define ESDM_VERSION_MINOR 2"),
    "esdm/sys/plugin.h": ("#define ESDM_PLUGIN_ABI        9", "#define ESDM_PLUGIN_ABI        10"),
    "esdm/sys/data_target.h": ("} esdm_data_plugin;", "    void (*more)(void *target);\n} esdm_data_plugin;"),
    "esdm/sys/codec.h": ("} esdm_codec_plugin;", "    void (*more)(void *codec);\n} esdm_codec_plugin;")}

# The library's version, and that of the headers.
VERSION = """
#include <stdio.h>
#include "esdm/esdm.h"
int
main(void)
{
    printf("%s %d\\n", esdm_version(), ESDM_VERSION_NUMBER);
    return 0;
}
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


def sqlite_format(site):
    """Without a change to its files."""
    file = site.file("metadata") / "catalogue.sqlite"
    with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as catalogue:
        return catalogue.execute("PRAGMA user_version").fetchone()[0]


def check_own_site(old, form, before_and_after, **changes):
    """@param form tells the format of the catalogue. Reading alone upgrades nothing, nor do notes of what was found (digests),
    so both versions go on with it; the
    first change does."""
    with Site(make=False, **changes) as site:
        run([old.tool("esdm-mkfs")])
        run([old.tool("esdm-run"), PYTHON, "-c", FIELDS, "esdm://run1.nc"])
        known = digest("run1.nc")
        run([tool("esdm-fsck"), "--data"])
        run([old.tool("esdm-run"), "ncdump", "-h", "esdm://run1.nc"])
        forms = [form(site)]
        client([PYTHON, "-c", FIELDS, "esdm://folder/run2.nc"])
        forms.append(form(site))
        expect(forms == before_and_after, f"formats {forms}")
        run([tool("esdm-cp"), "--reflink", "esdm://run1.nc", "esdm://clone.nc"])
        digests = {"run1.nc": known, "clone.nc": known.replace("run1.nc", "clone.nc"),
                   "folder/run2.nc": digest("folder/run2.nc")}
        check_refused(old, site)
        check_whole(digests)


def test_refused__a_site_of_its_own_that_this_version_wrote_to():
    check_own_site(version(PAGES), sqlite_format, [3, 5])


def check_own_site_on_postgresql(old, before):
    with Server() as server:
        check_own_site(old, lambda site: server.sql("SELECT value FROM esdm.store WHERE key = 'format'"), [[before], ["3"]],
                       metadata={"plugin": "postgres", "connection": server.connection("postgres")})


def test_refused__a_site_of_its_own_on_postgresql_without_shared_packs():
    skip_without_postgres()
    check_own_site_on_postgresql(version(PAGES), "1")


def test_refused__a_site_of_its_own_on_postgresql_without_ranges():
    skip_without_postgres()
    check_own_site_on_postgresql(version(RANGES), "2")


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
        expect(sqlite_format(site) == 5, "no upgrade")
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


def test_later__programs_and_plug_ins_of_now_run_with_a_later_library():
    """One with a higher version, a higher interface of plug-ins and longer tables of them."""
    if SANITIZE:
        skip("programs have no sanitizer")
    with Site(make=False, engine={"codec": "outside", "inline": 0}) as site:
        later = old_versions.later(site.file("later"), LATER)
        build_program(site.file("version"), VERSION)
        build_program(site.file("example"), pathlib.Path(SOURCE, "tests/integration/example.c").read_text())
        text = pathlib.Path(SOURCE, "backends/codec/template/template.c").read_text()
        site.file("outside.c").write_text(text.replace("template", "outside").replace(".id = 200", ".id = 212"))
        run(["cc", "-shared", "-fPIC", "-D_GNU_SOURCE", "-DESDM_PLUGIN_LOADABLE", site.file("outside.c"), f"-I{SOURCE}/src",
             f"-I{SOURCE}/src/include", "-o", site.file("esdm-codec-outside.so"), f"{BUILD}/libesdm-plugin.a", "-ljansson",
             "-lxxhash"])
        told = []
        for library, minor in (BUILD, 1), (later, 2):
            env = environment({"LD_LIBRARY_PATH": str(library), "ESDM_PLUGIN_PATH": str(site.folder)})
            expect(run([site.file("version")], env=env).stdout == f"0.{minor}.0 1000\n", "another library runs")
            run([tool("esdm-mkfs")], env=env)
            told.append(run([site.file("example")], env=env).stdout)
            run([tool("esdm-mv"), "example/tas.nc", f"{minor}.nc"], env=env)
            expect("outside" in run([tool("esdm-stat"), "--fragments", f"{minor}.nc"], env=env).stdout, "not by the plug-in")
            run([tool("esdm-fsck"), "--data"], env=env)
            told.append(run([tool("esdm-stat"), "--digest", f"{minor}.nc"], env=env).stdout.split()[0])
        expect(told[0] and told[:2] == told[2:], f"{told}")


def build_program(program, text):
    source = program.with_suffix(".c")
    source.write_text(text)
    run(["cc", source, f"-I{SOURCE}/src/include", "-o", program, f"-L{BUILD}", "-lesdm"])


main(
    test_later__programs_and_plug_ins_of_now_run_with_a_later_library,
    test_refused__by_a_version_without_checksums_of_rows,
    test_refused__by_a_version_without_statistics_and_kinds,
    test_refused__by_a_version_without_shared_packs,
    test_refused__a_site_of_its_own_that_this_version_wrote_to,
    test_refused__a_site_of_its_own_on_postgresql_without_shared_packs,
    test_refused__a_site_of_its_own_on_postgresql_without_ranges,
    test_refused__a_writer_of_an_earlier_version_that_goes_on,
    test_refused__on_postgresql_by_a_version_without_shared_packs,
    test_refused__on_postgresql_by_a_version_without_ranges,
)
