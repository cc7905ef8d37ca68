#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""A disk that fills up, or fails, in the middle of a write: the caller is told, by C and by NetCDF;
the last commit stays; with room again the next writer works."""

import contextlib
import json
import os
import sqlite3
import subprocess
import tempfile

from esdmtest import (Failed, Site, by_size, client, expect, expect_error, main, need_data, run,
                      skip, tool)
from faults import (check_goes_on, check_last_commit, committed, count_calls, must,
                    need_strace, program, shown, strace, sweep)

WRITING = ("pwrite64", "pwritev", "pwritev2", "writev", "fallocate", "ftruncate", "fdatasync",
           "fsync")


def fail_from(name, call, number, code, forever):
    must("write", name, 1, 1)
    when = f"{number}+" if forever else f"{number}"
    inject = f"inject={call}:error={code}:when={when}"
    done = program("write", name, 2, 4, prefix=strace("--seccomp-bpf", "-e", f"trace={call}", "-e", inject))
    expect(done.returncode in (0, 3), f"neither finished nor told:\n{shown(done)}")
    told = max(committed(done), 1)
    if done.returncode == 3:
        expect(done.stderr.strip(), "no message")
        if forever and call.startswith("pw"):
            words = {"ENOSPC": "space", "EIO": "error"}[code]
            expect(words in done.stderr.lower(), f"message hides the cause:\n{shown(done)}")
    last = check_last_commit(name, told, told + 1)
    check_goes_on(name, last)
    return done.returncode == 3


def test_errors_of_system_calls__are_told():
    need_strace()
    with Site():
        counts = count_calls("write", "counting", 1, 3)
        told = 0
        for call in WRITING:
            for number in sweep(counts.get(call, 0), by_size(3, 6, 60)):
                for code in ("ENOSPC", "EIO"):
                    for forever in (True, False):
                        told += fail_from(f"{call}-{number}-{code}-{forever}", call, number, code,
                                          forever)
        print(f"{told} writers were told")
        expect(told > 10, f"only {told} failures were told")


def test_a_store_that_opens_for_reading_alone_tells_why():
    """Its log is empty, so that readers need no shared memory; making that fails."""
    need_strace()
    with Site() as site:
        must("write", "a", 1, 1)
        catalogue = next(site.folder.rglob("catalogue.sqlite"))
        with contextlib.closing(sqlite3.connect(catalogue)) as database:
            expect(database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0, "no checkpoint")
        for shared in catalogue.parent.glob("*-shm"):
            shared.unlink()
        inject = strace("--seccomp-bpf", "-e", "trace=pwrite64", "-e", "inject=pwrite64:error=EIO:when=1+")
        expect(program("check", "a", prefix=inject).returncode == 0, "it cannot be read")
        done = program("write", "a", 2, 2, prefix=inject)
        expect(done.returncode == 3 and "read-only" not in done.stderr, shown(done))
        expect_error(done, "error", "catalogue.sqlite")
        check_goes_on("a", check_last_commit("a", 1, 1))


@contextlib.contextmanager
def small_disk(megabytes):
    """A tmpfs of that size as folder; needs root and mount rights."""
    if os.geteuid() != 0:
        skip("mounting a small tmpfs needs root")
    folder = tempfile.mkdtemp(prefix="esdm-small.")
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", folder]
    if subprocess.run(mount, stderr=subprocess.DEVNULL, check=False).returncode:
        os.rmdir(folder)
        skip("may not mount here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=False)
        os.rmdir(folder)


def test_full_disk__c_program_is_told():
    with small_disk(24) as folder, Site(parent=folder):
        must("write", "a", 1, 1)
        done = program("write", "a", 2, 1000)
        expect(done.returncode == 3 and "space" in done.stderr.lower(), shown(done))
        check_last_commit("a", max(committed(done), 1), max(committed(done), 1) + 1)
        # Reading needs no room, removing makes some.
        run([tool("esdm-ls")])
        run([tool("esdm-rm"), "-f", "a"])
        must("write", "b", 1, 1)
        check_last_commit("b", 1, 1)


def test_full_disk__netcdf_program_is_told():
    source = need_data("fields", "cesm_TS.nc")
    with small_disk(8) as folder, Site(parent=folder) as site:
        must("write", "a", 1, 1)
        for command in (["ncks", "-4", "-h", source, "esdm://full.nc"],
                        ["nccopy", source, "esdm://full2.nc"],
                        ["cdo", "-s", "copy", source, "esdm://full3.nc"]):
            done = client(command, check=False)
            expect_error(done)
            names = run([tool("esdm-ls")]).stdout
            expect("full" not in names, f"a half container is visible after {command}:\n{names}")
            for pid_file in site.folder.glob("*.tmp"):
                raise Failed(f"left behind: {pid_file}")
        check_last_commit("a", 1, 1)


FORMER = """
import netCDF4, sys, numpy as np
with netCDF4.Dataset(sys.argv[1], "w") as f:
    f.createDimension("x", int(sys.argv[2]) << 17)
    v = f.createVariable("v", "f8", ("x",))
    for i in range(int(sys.argv[2])):
        v[i << 17:(i + 1) << 17] = np.random.default_rng(i).random(1 << 17)
"""


def test_full_disk__former_containers_make_room():
    """What was replaced yesterday costs no program its data: it is freed, and that is told."""
    limits = {"keep": "7d", "share": 1}
    write = lambda name, mib, **more: client(["/usr/bin/python3", "-c", FORMER, name, str(mib)], **more)
    with small_disk(48) as folder, Site(parent=folder, replaced=limits):
        for name in ("a", "b"):
            write(f"esdm://{name}", 10)
        for name in ("a", "b"):
            run([tool("esdm-rm"), name])
        kept = json.loads(run([tool("esdm-ls"), "--replaced", "--json"]).stdout)["replaced"]
        expect(len(kept) == 2, f"{kept}")
        done = write("esdm://c", 30)
        expect("storage was full" in done.stderr and "freed for good" in done.stderr, shown(done))
        run([tool("esdm-fsck"), "--data"])
        expect(run([tool("esdm-ls")]).stdout.split() == ["c"], "not all was written")
        run([tool("esdm-rm"), "c"])
        expect_error(write("esdm://d", 60, check=False), "space")
        expect(json.loads(run([tool("esdm-ls"), "--replaced", "--json"]).stdout)["replaced"] == [],
               "something could have been freed")


PYTHON_APPENDS = """
import ctypes, sys, netCDF4, numpy as np
how, records = sys.argv[1], int(sys.argv[2])
nc = netCDF4.Dataset('esdm://python.nc', 'a' if how != 'new' else 'w')
if how == 'new':
    nc.createDimension('t', None)
    nc.createDimension('x', 100000)
    nc.createVariable('v', 'f8', ('t', 'x'))
if how == 'unclosed':
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(nc))
v = nc['v']
for i in range(len(v), len(v) + records):
    v[i] = i + np.arange(100000) % 2 / 4  # equal values take no pack
    if how == 'sync':
        nc.sync()
if how != 'unclosed':
    nc.close()
"""
PYTHON_READS = """
import netCDF4, numpy as np
with netCDF4.Dataset('esdm://python.nc') as nc:
    v = nc['v']
    assert all((v[i] == i + np.arange(100000) % 2 / 4).all() for i in range(len(v)))
    print(len(v))
"""


def test_full_disk__python_is_told():
    python = "/usr/bin/python3"
    if subprocess.run([python, "-c", "import netCDF4"], stderr=subprocess.DEVNULL,
                      check=False).returncode:
        skip("python3-netcdf4 is not installed")
    with small_disk(16) as folder, Site(parent=folder, engine={"memory": "16 MiB"}):

        def used():
            space = os.statvfs(folder)
            return (space.f_blocks - space.f_bfree) * space.f_frsize

        def records():
            return int(client([python, "-c", PYTHON_READS]).stdout)

        client([python, "-c", PYTHON_APPENDS, "new", "2"])
        before = used()
        for how in ("close", "unclosed"):
            expect_error(client([python, "-c", PYTHON_APPENDS, how, "60"], check=False), "space")
            expect(records() == 2, f"{how}: {records()} records")
            expect(used() < before + 200000, f"{how}: {used()} bytes used, {before} before")
        done = client([python, "-c", PYTHON_APPENDS, "sync", "60"], check=False)
        expect_error(done, "space")
        expect(2 < records() < 22, f"sync: {records()} records")


PYTHON_WAITS = """
import os, netCDF4, numpy as np
ballast = os.environ["BALLAST"]
nc = netCDF4.Dataset("esdm://python.nc", "w")
nc.createDimension("t", None)
nc.createDimension("x", 100000)
v = nc.createVariable("v", "f8", ("t", "x"))
w = nc.createVariable("w", "f8", ("t",))
failures = 0
for i in range(30):
    w[i] = float(i)
    while True:
        try:
            v[i] = i + np.arange(100000) % 2 / 4  # equal values take no pack
            nc.sync()
            break
        except Exception as error:
            failures += 1
            if failures > 3:
                raise
            os.unlink(ballast)  # somebody makes room
nc.close()
print("failures", failures)
"""


def test_full_disk__is_over_when_there_is_room():
    """A program that is told of a full disk writes the same again, and goes on."""
    python = "/usr/bin/python3"
    if subprocess.run([python, "-c", "import netCDF4"], stderr=subprocess.DEVNULL,
                      check=False).returncode:
        skip("python3-netcdf4 is not installed")
    with small_disk(48) as folder, Site(parent=folder, engine={"memory": "16 MiB"}) as site:
        ballast = site.file("ballast")
        ballast.write_bytes(bytes(30 << 20))
        done = client([python, "-c", PYTHON_WAITS], env={"BALLAST": str(ballast)})
        expect("failures 1" in done.stdout, done.stdout)
        expect(client([python, "-c", PYTHON_READS]).stdout.strip() == "30", "records are missing")


main(test_full_disk__is_over_when_there_is_room, test_errors_of_system_calls__are_told,
     test_a_store_that_opens_for_reading_alone_tells_why, test_full_disk__c_program_is_told,
     test_full_disk__netcdf_program_is_told, test_full_disk__python_is_told,
     test_full_disk__former_containers_make_room)
