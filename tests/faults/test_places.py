#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""What else can be wrong with places: entries of new folders that are not flushed, pipes in place of
files, and locks that somebody holds who may only read."""

import fcntl
import os
import re
import shutil
import sqlite3

from esdmtest import BUILD, Site, by_size, client, expect, expect_error, main, run, skip, tool
from faults import need_strace


def traced(site, command, **options):
    """System calls of a command that make or flush folders, in order: ("mkdir" | "fsync", path)."""
    log = site.file("strace.log")
    run(["strace", "-f", "-qq", "-y", "-s", "300", "-o", log, "-e", "trace=mkdir,mkdirat,fsync",
         *command], **options)
    calls = []
    for line in log.read_text().splitlines():
        made = re.search(r'mkdir(?:at)?\((?:\w+<(?P<at>[^>]*)>, )?"(?P<path>[^"]*)".* = 0$', line)
        flushed = re.search(r"fsync\(\d+<(?P<path>[^>]*)>\)", line)
        if made:
            calls.append(("mkdir", os.path.normpath(os.path.join(made["at"] or "/", made["path"]))))
        elif flushed:
            calls.append(("fsync", flushed["path"]))
    return calls


def check_flushed(calls, below):
    made = [at for at, (call, path) in enumerate(calls) if call == "mkdir" and below in path]
    expect(made, f"nothing was made: {calls}")
    for at in made:
        parent = os.path.dirname(calls[at][1])
        expect(("fsync", parent) in calls[at:], f"{parent} is not flushed after {calls[at][1]}")


def test_new_folders__are_flushed():
    need_strace()
    posix = [{"name": "disk", "plugin": "posix", "directory": "deep/er/packs"}]
    with Site(make=False, durability="system", targets=posix,
              metadata={"plugin": "sqlite", "directory": "also/deep/metadata"}) as site:
        check_flushed(traced(site, [tool("esdm-mkfs")]), site.folder.name)
        for shard in site.file("deep/er/packs").iterdir():
            if shard.is_dir():
                shard.rmdir()  # as after a maker that was killed
        pattern = [tool("esdm-pattern"), "-q", "-s", "10x300x300", "esdm://a.nc"]
        check_flushed(traced(site, pattern), "deep/er/packs")


def replace_by_pipe(path):
    mode = path.stat().st_mode & 0o777
    path.unlink()
    os.mkfifo(path, mode)


def check_no_hang(site, *words):
    for command in (["ncdump", "esdm://a.nc"], ["cdo", "-s", "info", "esdm://a.nc"]):
        if shutil.which(command[0]):
            expect_error(client(command, check=False, timeout=120))
    expect_error(run([tool("esdm-cp"), "esdm://a.nc", site.file("a.nc")], check=False, timeout=120),
                 *words)
    expect_error(run([tool("esdm-fsck")], check=False, timeout=120), *words)


def test_pipe_in_place_of_a_pack__is_damage():
    posix = [{"name": "disk", "plugin": "posix", "directory": "packs"}]
    with Site(targets=posix) as site:
        run([tool("esdm-pattern"), "-q", "-s", "10x300x300", "esdm://a.nc"])
        for pack in site.pack_files():
            replace_by_pipe(pack)
        check_no_hang(site, "pack")


def test_pipe_in_place_of_a_shard__is_damage():
    if not (BUILD / "esdm/esdm-data-kv.so").exists():
        return
    with Site(targets=[{"name": "tiny", "plugin": "kv", "directory": "kv"}]) as site:
        run([tool("esdm-pattern"), "-q", "-s", "10x30x30", "esdm://a.nc"])
        for file in list(site.file("kv").glob("*.kch")):
            replace_by_pipe(file)
        check_no_hang(site)


def test_pipe_in_place_of_the_catalogue__is_an_error():
    with Site(metadata={"plugin": "sqlite", "directory": "metadata"}) as site:
        run([tool("esdm-pattern"), "-q", "-s", "10x30x30", "esdm://a.nc"])
        replace_by_pipe(site.file("metadata/pins"))
        run([tool("esdm-stat"), "esdm://a.nc"], check=False, timeout=120)  # holds no bytes
        replace_by_pipe(site.file("metadata/catalogue.sqlite"))
        expect_error(run([tool("esdm-stat"), "esdm://a.nc"], check=False, timeout=120))


def test_lock_of_a_reader__does_not_stop_writers():
    if not (BUILD / "esdm/esdm-data-kv.so").exists():
        return
    with Site(targets=[{"name": "tiny", "plugin": "kv", "directory": "kv"}]) as site:
        lock = site.file("kv") / "lock"
        expect(lock.stat().st_mode & 0o077 == 0, f"others can open it: {lock.stat().st_mode:o}")
        lock.chmod(0o644)  # as older versions made it
        write = [tool("esdm-pattern"), "-q", "-s", "10x30x30", "esdm://a.nc"]
        run(write)
        expect(lock.stat().st_mode & 0o077 == 0, "the writer has left it open")
        with open(lock, "rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            done = run([*write[:-1], "esdm://b.nc"], check=False, timeout=120)
            expect_error(done, "lock", "is locked for more than")
        run([*write[:-1], "esdm://b.nc"])


CODES = """
import sys
import netCDF4
def code(call):
    try:
        call()
    except OSError as e: # of open; reading is RuntimeError
        return str(e)
    except RuntimeError as e:
        return str(e)
print(code(lambda: netCDF4.Dataset("esdm://a.nc")["pattern"][:]))
print(code(lambda: netCDF4.Dataset("esdm://new.nc", "w", clobber=False).close()))
"""


def test_what_is_missing__is_no_missing_or_existing_file():
    with Site(make=False, targets=[{"name": "d", "plugin": "posix", "directory": "packs"}]) as site:
        home = {"HOME": str(site.folder), "XDG_DATA_HOME": str(site.file("data")), "ESDM_CONFIG": ""}
        run([tool("esdm-pattern"), "-q", "-s", "10x300x300", "esdm://a.nc"],
            env={**os.environ, **home})
        for pack in site.file("data/esdm/data").glob("??/*-*-*"):
            pack.unlink()
        done = client(["/usr/bin/python3", "-c", CODES], env=home)
        expect("No such file" not in done.stdout and "truncated" in done.stdout, done.stdout)
        run([tool("esdm-pattern"), "-q", "-s", "10x300x300", "esdm://b.nc"],
            env={**os.environ, **home})
        shutil.rmtree(site.file("data/esdm/meta"))
        done = client(["/usr/bin/python3", "-c", CODES], env=home)
        expect("exists" not in done.stdout and "None" not in done.stdout, done.stdout)
        expect("esdm: cannot open the site" in done.stderr, done.stderr)


def test_waits_for_locks__are_timed():
    """On a slow machine naps take longer than they should: waits end all the same."""
    if by_size(True, True, False):
        skip("half a minute of waiting")
    need_strace()
    with Site(metadata={"plugin": "sqlite", "directory": "metadata"}) as site:
        write = [tool("esdm-pattern"), "-q", "-s", "2x2", "esdm://a.nc"]
        slow = ["strace", "-f", "-qq", "-o", "/dev/null", "-e",
                "inject=nanosleep,clock_nanosleep:delay_exit=100000"]
        holder = sqlite3.connect(site.file("metadata/catalogue.sqlite"), isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        try:
            done = run([*slow, *write], check=False, timeout=120)  # 6,000 such naps are 10 minutes
        finally:
            holder.close()
        expect_error(done, "another process holds its lock")
        run(write)


main(test_waits_for_locks__are_timed, test_what_is_missing__is_no_missing_or_existing_file, test_new_folders__are_flushed, test_pipe_in_place_of_a_pack__is_damage,
     test_pipe_in_place_of_a_shard__is_damage, test_pipe_in_place_of_the_catalogue__is_an_error,
     test_lock_of_a_reader__does_not_stop_writers)
