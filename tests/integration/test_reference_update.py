#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-ref --update: a tree that was referred to is scanned again. What is as it was is not opened, what
is new is added, what changed is replaced in one step, what is gone is told, and removed when asked;
a scan that was killed is gone on with; what somebody has written since is not lost."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

from esdmtest import Site, client, environment, expect, expect_error, main, need_program, run, tool

REF = tool("esdm-ref")
LS = tool("esdm-ls")

MAKE = """
import sys, netCDF4, numpy as np
for item in sys.argv[1:]:
    path, value = item.split("=")
    form = "NETCDF3_CLASSIC" if "classic" in path else "NETCDF4"
    with netCDF4.Dataset(path, "w", format=form) as nc:
        nc.createDimension("x", 2000)
        more = {} if form != "NETCDF4" else dict(zlib=True, chunksizes=(100,))
        v = np.random.default_rng(1).random(2000)
        v[0] = float(value)
        nc.createVariable("v", "f8", ("x",), **more)[:] = v
"""

FIRST = """
import sys, netCDF4
for name in sys.argv[1:]:
    with netCDF4.Dataset(name) as nc:
        print(nc["v"][0])
"""


def python(script, *arguments, check=True):
    return client(["/usr/bin/python3", "-c", script, *map(str, arguments)], check=check)


def make(**files):
    python(MAKE, *[f"{path}={value}" for path, value in files.items()])


def settle(folder):
    """Waits until nothing in the folder is so new that a change could leave its times as they are."""
    newest = max(max(os.lstat(p).st_ctime, os.lstat(p).st_mtime) for p in folder.rglob("*"))
    while time.time() < newest + 0.2:
        time.sleep(0.02)


def store(folder, value):
    """A Zarr store of version 2, with two chunks of 4 numbers."""
    folder.mkdir(exist_ok=True)
    (folder / ".zgroup").write_text('{"zarr_format": 2}')
    (folder / "v").mkdir(exist_ok=True)
    (folder / "v/.zarray").write_text(json.dumps(
        {"zarr_format": 2, "shape": [8], "chunks": [4], "dtype": "<i4", "compressor": None, "fill_value": 0,
         "order": "C", "filters": None}))
    for c in range(2):
        (folder / f"v/{c}").write_bytes(b"".join((value + i).to_bytes(4, "little") for i in range(4)))


def tree(site):
    folder = site.folder / "archive"
    (folder / "sub").mkdir(parents=True)
    make(**{str(folder / "a.nc"): 1, str(folder / "classic.nc"): 2, str(folder / "sub/b.nc"): 3})
    store(folder / "s.zarr", 4)
    settle(folder)
    return folder


def update(*arguments, check=True):
    done = run([REF, "--update", "--json", *arguments], check=check)
    told = json.loads(done.stdout)
    return {k: told[k] for k in ("new", "changed", "unchanged", "removed", "failed")}, told, done


def counts(new=0, changed=0, unchanged=0, removed=0, failed=0):
    return {"new": new, "changed": changed, "unchanged": unchanged, "removed": removed, "failed": failed}


def value(name):
    return float(python(FIRST, f"esdm://{name}").stdout.split()[0])


def snapshots(prefix):
    told = json.loads(run([LS, "--json", "-l", prefix], check=False).stdout)
    # A program that is killed between its commit and the renaming leaves a temporary name.
    return {c["name"]: c["modified"] for c in told["containers"] if "/.esdm-cp-" not in c["name"]}


def test_a_tree_is_scanned_again():
    with Site() as site:
        folder = tree(site)
        got, _, _ = update(folder, "esdm://arc")
        expect(got == counts(new=4), got)
        was = snapshots("arc")
        got, _, _ = update(folder, "esdm://arc")
        expect(got == counts(unchanged=4), got)
        expect(snapshots("arc") == was, "something was committed although nothing changed")
        make(**{str(folder / "a.nc"): 10, str(folder / "sub/new.nc"): 5})
        os.unlink(folder / "classic.nc")
        (folder / "s.zarr/v/1").write_bytes(bytes(16))
        settle(folder)
        got, told, _ = update("-n", folder, "esdm://arc")
        expect(got == counts(new=1, changed=2, unchanged=1), got)
        expect(snapshots("arc") == was, "a dry run changed something")
        expect([(g["target"], g["removed"]) for g in told["gone"]] == [("esdm://arc/classic.nc", False)], told["gone"])
        done = run([REF, "--update", folder, "esdm://arc"])
        expect("gone: " in done.stdout and "classic.nc" in done.stdout and "1 new, 2 changed, 1 unchanged, 0 kept, 1 gone" in done.stdout,
               done.stdout)
        expect(value("arc/a.nc") == 10 and value("arc/sub/new.nc") == 5 and value("arc/sub/b.nc") == 3, "values")
        ends = python(FIRST.replace('nc["v"][0]', '*nc["v"][[0, 7]]'), "esdm://arc/s.zarr").stdout.split()
        expect(ends in (["4", "0"], ["4", "--"]), f"values of the store: {ends}")
        got, told, _ = update("--delete", folder, "esdm://arc")
        expect(got == counts(unchanged=4, removed=1), got)
        expect(told["gone"][0]["removed"] and "arc/classic.nc" not in snapshots("arc"), told)
        got, told, _ = update("--delete", folder, "esdm://arc")
        expect(got == counts(unchanged=4) and told["gone"] == [], told)


def test_what_is_as_it_was_is_not_opened():
    need_program("strace")
    with Site() as site:
        folder = tree(site)
        run([REF, "-q", folder, "esdm://arc"])
        make(**{str(folder / "sub/b.nc"): 7})
        settle(folder)
        log = site.folder / "log"
        run(["strace", "-f", "-o", log, "-e", "trace=open,openat", REF, "-q", "--update", folder, "esdm://arc"],
            env=environment({"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}))  # not under strace
        opened = log.read_text()
        expect("sub/b.nc" in opened, "the changed file was not opened")
        for name in ("a.nc", "classic.nc", ".zarray", "v/0"):
            expect(f"{folder}/{name}" not in opened and f"/{name}\"" not in opened, f"{name} was opened")


def test_touched_copied_and_exchanged_files_are_looked_at():
    with Site() as site:
        folder = tree(site)
        run([REF, "-q", folder, "esdm://arc"])
        times = os.stat(folder / "a.nc")
        make(**{str(folder / "other.nc"): 100})
        os.rename(folder / "other.nc", folder / "a.nc")
        os.utime(folder / "a.nc", ns=(times.st_atime_ns, times.st_mtime_ns))
        os.chmod(folder / "sub/b.nc", 0o600)
        settle(folder)
        got, _, _ = update(folder, "esdm://arc")
        expect(got == counts(changed=2, unchanged=2), got)
        expect(value("arc/a.nc") == 100 and value("arc/sub/b.nc") == 3, "values")


def test_what_was_written_or_made_otherwise_is_kept():
    with Site() as site:
        folder = tree(site)
        run([REF, "-q", folder, "esdm://arc"])
        python("""
import netCDF4
with netCDF4.Dataset("esdm://arc/a.nc", "a") as nc:
    nc["v"][0] = -1
with netCDF4.Dataset("esdm://arc/own.nc", "w") as nc:
    nc.createDimension("x", 1000)
    nc.createVariable("v", "f8", ("x",))[:] = 77
""")
        got, _, _ = update(folder, "esdm://arc")
        expect(got == counts(unchanged=4), got)
        make(**{str(folder / "a.nc"): 10, str(folder / "own.nc"): 11, str(folder / "sub/b.nc"): 12})
        settle(folder)
        got, told, done = update(folder, "esdm://arc", check=False)
        expect(got == counts(changed=1, unchanged=2, failed=2) and done.returncode == 4, (got, done.returncode))
        expect("'arc/a.nc' was written to since" in done.stderr and "arc/own.nc" in done.stderr and "--force" in done.stderr,
               done.stderr)
        expect(value("arc/a.nc") == -1 and value("arc/own.nc") == 77, "what was written is lost")
        os.unlink(folder / "a.nc")
        got, told, done = update("--delete", folder, "esdm://arc", check=False)
        expect(done.returncode == 4 and got["removed"] == 0 and "written to since" in done.stderr, (got, done.stderr))
        make(**{str(folder / "a.nc"): 10})
        got, told, done = update("--force", folder, "esdm://arc")
        expect(value("arc/a.nc") == 10 and value("arc/own.nc") == 11, "--force")
        # Whoever has the old one open, or wants it back, has it.
        run([tool("esdm-restore"), "--as", "arc/own-before.nc", "arc/own.nc"])
        expect(value("arc/own-before.nc") == 77, "the former one")


def test_nothing_is_removed_when_the_archive_is_not_there():
    with Site() as site:
        folder = tree(site)
        run([REF, "-q", folder, "esdm://arc"])
        away = site.folder / "away"
        folder.rename(away)
        done = run([REF, "--update", "--delete", folder, "esdm://arc"], check=False)
        expect(done.returncode != 0 and len(snapshots("arc")) == 4, done)
        done = run([REF, "--update", folder, "esdm://arc"], check=False)
        expect(done.returncode == 3 and f"4 of 4 sources are gone below '{folder}'" in done.stderr and
               f"esdm-ref --moved '{folder}' NEW 'esdm://arc'" in done.stderr and "gone: " not in done.stdout, done)
        done = run([REF, "--update", site.folder / "typo", "esdm://arc"], check=False)
        expect(done.returncode == 3 and "typo: No such file" in done.stderr, done)
        folder.mkdir()
        done = run([REF, "--update", "--delete", folder, "esdm://arc"], check=False)
        expect(done.returncode == 4 and "is it mounted?" in done.stderr and len(snapshots("arc")) == 4, done)
        run([REF, "--update", "--delete", "--force", folder, "esdm://arc"])
        expect(snapshots("arc") == {}, "--force")
        # A file that cannot be read is an error, and the others are done.
        shutil.rmtree(folder)
        away.rename(folder)
        (folder / "bad.nc").write_bytes(b"no NetCDF")
        got, _, done = update(folder, "esdm://arc", check=False)
        expect(got == counts(new=4, failed=1) and "bad.nc" in done.stderr and done.returncode == 1, (got, done.stderr))


def test_an_archive_that_was_moved():
    """One sentence says it, and not one for each file. What is the same by size and time is taken over."""
    with Site() as site:
        folder = tree(site)
        run([REF, "-q", folder, "esdm://arc"])
        new = site.folder / "elsewhere/archive"
        new.parent.mkdir()
        folder.rename(new)
        got, told, done = update(new, "esdm://arc", check=False)
        expect(got == counts(failed=4) and done.returncode == 4, (got, done.stderr))
        lines = done.stderr.strip().splitlines()
        expect(len(lines) == 1 and f"4 of 4 containers refer to files below '{folder}', which is gone" in lines[0] and
               f"esdm-ref --moved '{folder}' '{new}' 'esdm://arc'" in lines[0], done.stderr)
        expect(all("was made of" in c["message"] for c in told["copies"]), told)
        # One was changed on the way, and one was written to as a container.
        times = os.stat(new / "a.nc")
        make(**{str(new / "a.nc"): 50})
        os.utime(new / "a.nc", ns=(times.st_atime_ns, times.st_mtime_ns + 10**9))
        run([tool("esdm-attr"), "--set", "note=mine", "esdm://arc/sub/b.nc"])
        settle(new)
        done = run([REF, "--json", "--moved", folder, new, "esdm://arc"], check=False)
        told = json.loads(done.stdout)
        expect((told["changed"], told["failed"]) == (2, 2) and done.returncode == 4, (told, done.stderr))
        expect("differs in size or time" in done.stderr and "was written to since" in done.stderr, done.stderr)
        expect(value("arc/classic.nc") == 2, "it is read where it lies now")
        got, _, _ = update("--force", "--moved", folder, new, "esdm://arc")
        expect(got == counts(changed=2, unchanged=2), got)
        expect((value("arc/a.nc"), value("arc/sub/b.nc")) == (50, 3), "--force")
        # Of another folder nothing is taken.
        new.rename(folder)
        done = run([REF, "--moved", "/nowhere", folder, "esdm://arc"], check=False)
        expect(done.returncode == 4 and done.stderr.count("was made of") == 4, done.stderr)


def test_archives_of_which_one_sentence_does_not_tell_all():
    """Two trees of which one was moved; in it files of two others; names with quotes."""
    with Site() as site:
        one, third, lone = site.folder / "it's one", site.folder / "third", site.folder / "lone"
        new = site.folder / "the new"
        for folder, names in (one, ("a.nc", "b.nc")), (third, ("c.nc", "d.nc", "e.nc")), (lone, ("f.nc",)):
            folder.mkdir()
            make(**{str(folder / name): 1 for name in names})
            run([REF, "-q", folder, "esdm://arc"])
            shutil.copytree(folder, new, dirs_exist_ok=True)
        done = run([REF, "--update", new, "esdm://arc"], check=False)
        lines = done.stderr.splitlines()
        expect(done.returncode == 4 and len(lines) == 3, done.stderr)
        quoted = str(one).replace("'", "'\\''")
        for count, folder, shown in (2, one, quoted), (3, third, third):
            expect(any(f"{count} of 6 containers refer to files below '{folder}'" in line and
                       f"esdm-ref --moved '{shown}' '{new}' 'esdm://arc'" in line for line in lines), done.stderr)
        expect(any(f"'arc/f.nc' was made of '{lone}/f.nc'" in line for line in lines), done.stderr)
        run([REF, "-q", third, lone, "esdm://two"])
        for folder in third, lone:
            shutil.copytree(folder, new / folder.name)
        done = run([REF, "--update", new / "third", new / "lone", "esdm://two"], check=False)
        lines = done.stderr.splitlines()
        expect(len(lines) == 2 and f"3 of 3 containers refer to files below '{third}'" in lines[0] and
               f"'two/lone/f.nc' was made of '{lone}/f.nc'" in lines[1], done.stderr)


def test_copied_stores_are_taken_over():
    """Inodes and times of change are others; names, sizes and times of all objects are the same."""
    with Site() as site:
        folder = tree(site)
        run([REF, "-q", folder, "esdm://arc"])
        new, changed = site.folder / "new", site.folder / "changed"
        for target in new, changed:
            shutil.copytree(folder, target)
        (changed / "s.zarr/v/1").write_bytes(bytes(16))
        os.utime(changed / "s.zarr/v/1", (1, 1))
        settle(changed)
        got, told, done = update("--moved", folder, changed, "esdm://arc", check=False)
        expect((got["changed"], got["failed"]) == (3, 1) and "s.zarr' differs in size or time" in done.stderr, done.stderr)
        got, told, done = update("--force", folder, "esdm://arc")
        shutil.rmtree(changed)
        settle(new)
        got, told, done = update("--moved", folder, new, "esdm://arc", check=False)
        expect(got == counts(changed=4), (got, done.stderr))
        shutil.rmtree(folder)
        ends = python(FIRST.replace('nc["v"][0]', '*nc["v"][[0, 7]]'), "esdm://arc/s.zarr").stdout.split()
        expect(ends == ["4", "7"], f"{ends}")


def test_a_scan_that_was_killed_is_gone_on_with():
    with Site() as site:
        folder = site.folder / "many"
        folder.mkdir()
        make(**{str(folder / f"f{i:03}.nc"): i for i in range(32)})
        settle(folder)
        for k in range(4):
            begun = len(snapshots("arc"))
            with subprocess.Popen([REF, "-q", "-j", "1", "--update", folder, "esdm://arc"], env=environment()) as process:
                while process.poll() is None and len(snapshots("arc")) < min(begun + 4, 32):
                    time.sleep(0.01)
                process.send_signal(signal.SIGKILL if k % 2 == 0 else signal.SIGTERM)
        done = run([REF, "--update", folder, "esdm://arc"])
        names, again = sorted(snapshots("arc")), 0
        while len(names) != 32 and again < 100:  # a worker of one that was killed may have lived on for a moment
            time.sleep(0.1)
            run([REF, "--update", folder, "esdm://arc"])
            names, again = sorted(snapshots("arc")), again + 1
        expect(names == [f"arc/f{i:03}.nc" for i in range(32)], f"{done.stdout} {names}")
        expect(" 0 new" in f" {done.stdout}" or " 0 unchanged" not in done.stdout, f"nothing was kept: {done.stdout}")
        for i in range(0, 32, 7):
            expect(value(f"arc/f{i:03}.nc") == i, f"{i}")


def test_options_that_contradict_are_told():
    with Site() as site:
        expect_error(run([REF, "--delete", site.folder, "esdm://a"], check=False), "--delete goes with --update")
        expect_error(run([REF, "--update", "-s", site.folder, "esdm://a"], check=False), "--skip-existing")


if __name__ == "__main__":
    sys.exit(main(test_a_tree_is_scanned_again, test_what_is_as_it_was_is_not_opened,
                  test_touched_copied_and_exchanged_files_are_looked_at,
                  test_what_was_written_or_made_otherwise_is_kept,
                  test_nothing_is_removed_when_the_archive_is_not_there, test_an_archive_that_was_moved,
                  test_archives_of_which_one_sentence_does_not_tell_all, test_copied_stores_are_taken_over,
                  test_a_scan_that_was_killed_is_gone_on_with, test_options_that_contradict_are_told))
