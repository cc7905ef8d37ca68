#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Damaged files that crash libnetcdf, or keep it busy for ever: tools that read them name the file, and the others
are served."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

from esdmtest import SANITIZE, Site, environment, expect, expect_error, main, run, skip, tool

# Crashes as libnetcdf does with damaged HDF5 files: when a file is opened, when values are read, and when it is closed;
# or does not return.
CRASHES = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int crash_at_close = -1, crash_at_read = -1, hang_at_read = -1;
int nc_open(const char *path, int mode, int *id)
{
    int (*next)(const char *, int, int *) = dlsym(RTLD_NEXT, "nc_open");
    if (strstr(path, "crash-open"))
        raise(SIGSEGV);
    while (strstr(path, "hang-open"))
        pause();
    int rc = next(path, mode, id);
    if (strstr(path, "crash-read"))
        crash_at_read = *id;
    if (strstr(path, "hang-read"))
        hang_at_read = *id;
    if (strstr(path, "crash-close"))
        crash_at_close = *id;
    return rc;
}
int nc_get_vara(int id, int var, const size_t *start, const size_t *count, void *to)
{
    int (*next)(int, int, const size_t *, const size_t *, void *) = dlsym(RTLD_NEXT, "nc_get_vara");
    if (id == crash_at_read)
        raise(SIGBUS);
    while (id == hang_at_read)
        pause();
    return next(id, var, start, count, to);
}
int nc_close(int id)
{
    int (*next)(int) = dlsym(RTLD_NEXT, "nc_close");
    if (id == crash_at_close)
        abort();
    return next(id);
}
"""
KINDS = ("open", "read", "close")
CDL = "netcdf f { dimensions: x = 4; variables: float v(x); v:units = \"K\"; data: v = 1, 2, 3, 4; }"


@contextlib.contextmanager
def damaged():
    """A site, an environment in which the library crashes, a file that is sound, and those that are not."""
    if shutil.which("cc") is None or SANITIZE:
        skip("needs a C compiler, without a sanitizer")
    with Site() as site:
        site.file("crashes.c").write_text(CRASHES)
        site.file("f.cdl").write_text(CDL)
        run(["cc", "-shared", "-fPIC", "-o", site.file("crashes.so"), site.file("crashes.c"), "-ldl"])
        files = [site.file(f"crash-{kind}.nc") for kind in KINDS]
        for file in [site.file("sound.nc"), *files]:
            run(["ncgen", "-4", "-o", file, site.file("f.cdl")])
        yield site, environment({"LD_PRELOAD": str(site.file("crashes.so"))}), site.file("sound.nc"), files


def listed():
    return sorted(c["name"] for c in json.loads(run([tool("esdm-ls"), "--json"]).stdout)["containers"])


def test_a_single_file_is_named():
    with damaged() as (_, env, _, files):
        for name, kind, file in zip(("open.nc", "read.nc", "close.nc"), KINDS, files):
            done = run([tool("esdm-cp"), file, f"esdm://{name}"], env=env, check=False)
            expect(done.returncode == 1 and str(file) in done.stderr, f"{kind}: {done}")
            expect_error(done, "is the file damaged?")
            stored = "all of it was stored" in done.stderr
            expect(stored == (kind == "close") == (name in listed()), f"{kind}: {done} {listed()}")
        told = json.loads(run([tool("esdm-cp"), "--json", files[0], "esdm://x.nc"], env=env, check=False).stdout)
        expect(told["failed"] == 1 and str(files[0]) in told["copies"][0]["message"], f"{told}")
        done = run([tool("esdm-ref"), files[0], "esdm://r.nc"], env=env, check=False)
        expect(done.returncode == 1 and str(files[0]) in done.stderr, f"{done}")
        expect(listed() == ["close.nc"], f"{listed()}")
        run([tool("esdm-fsck"), "--data"])


def test_one_of_many_is_named_and_the_others_are_stored():
    with damaged() as (site, env, sound, files):
        folder = site.file("many")
        folder.mkdir()
        for i in range(3):
            shutil.copy(sound, folder / f"{i}.nc")
        shutil.copy(files[1], folder / "crash-read.nc")
        for jobs in (["-j", "1"], ["-j", "3"]):
            done = run([tool("esdm-cp"), "-f", "-r", *jobs, folder, "esdm://many"], env=env, check=False)
            expect(done.returncode == 1 and "many/crash-read.nc: the process that copied it died" in done.stderr,
                   f"{jobs}: {done}")
            expect(listed() == [f"many/{i}.nc" for i in range(3)], f"{jobs}: {listed()}")


def test_tools_that_look_at_files():
    with damaged() as (_, env, sound, files):
        for file in files:
            for command, status in ((["esdm-advise", file], 1), (["esdm-diff", sound, file], 2)):
                done = run([tool(command[0]), *command[1:]], env=env, check=False)
                expect(done.returncode == status and f"{file}: the NetCDF library crashed" in done.stderr, f"{done}")
        run([tool("esdm-diff"), sound, sound], env=env)


def advise(*args, env, **kwargs):
    done = run([tool("esdm-advise"), "--json", *args], env=env, check=False, **kwargs)
    return done, json.loads(done.stdout) if done.stdout else None


def test_advice_goes_on_after_files_that_crash_or_hang():
    with damaged() as (site, env, sound, files):
        folder = site.file("many")
        folder.mkdir()
        for name in ("0.nc", "2.nc", "4.nc"):
            shutil.copy(sound, folder / name)
        _, alone = advise("-n", "6", folder, env=env)
        for name in ("1-crash-open.nc", "2-crash-close.nc", "3-hang-open.nc"):
            shutil.copy(sound, folder / name)
        wanted = ["1-crash-open.nc: the NetCDF library crashed", "2-crash-close.nc: the NetCDF library crashed",
                  "3-hang-open.nc: nothing was read of it for 6 s (--timeout)"]
        done, told = advise("--timeout", "6", "-n", "6", folder, env=env)
        expect(done.returncode == 0 and all(text in done.stderr for text in wanted), f"{done}")
        expect(told["unreadable"] == 3, f"{told}")
        expect([v["name"] for v in told["variables"]] == [v["name"] for v in alone["variables"]], f"{told} {alone}")
        expect(told["samples"] == alone["samples"] == 6, f"{told} {alone}")

        for name in ("1-crash-open.nc", "2-crash-close.nc", "3-hang-open.nc"):
            (folder / name).unlink()
        for name in ("1-crash-read.nc", "3-hang-read.nc"):
            shutil.copy(sound, folder / name)
        wanted = ["1-crash-read.nc: the NetCDF library crashed", "3-hang-read.nc: nothing was read of it for 6 s"]
        for more in ([], ["--propose"]):
            done, told = advise("--timeout", "6", *more, folder, env=env)
            expect(all(done.stderr.count(text) == 1 for text in wanted), f"{more}: {done}")
            first = told["proposals" if more else "variables"][0]["name"]
            expect(done.returncode == (1 if more else 0) and first == "v", f"{more}: {done}")
        expect_error(run([tool("esdm-advise"), "--timeout", "-1", sound], check=False), "--timeout takes seconds")


def test_copies_go_on_after_files_that_hang():
    with damaged() as (site, env, sound, _):
        folder = site.file("many")
        folder.mkdir()
        for name in ("0.nc", "1-hang-open.nc", "2.nc", "3-hang-read.nc", "4.nc"):
            shutil.copy(sound, folder / name)
        sources = {"esdm-cp": ["-r", "-j", "1"], "esdm-ref": []}
        for name, more in sources.items():
            # Of a file that is referred to values are read when they are compared.
            hangs = ["1-hang-open.nc"] + (["3-hang-read.nc"] if name == "esdm-cp" else [])
            done = run([tool(name), *more, "--timeout", "6", folder, f"esdm://{name}"], env=env, check=False)
            expect(done.returncode == 1 and all(
                f"{folder}/{hang}: nothing of it was read or stored for 6 s (--timeout)" in done.stderr
                for hang in hangs), f"{name}: {done}")
            made = [n for n in listed() if n.startswith(name)]
            rest = [n for n in ("0.nc", "2.nc", "3-hang-read.nc", "4.nc") if n not in hangs]
            expect(made == [f"{name}/{n}" for n in rest], f"{name}: {made}")
        expect_error(run([tool("esdm-cp"), "--timeout", "-1", sound, "esdm://x.nc"], check=False),
                     "--timeout takes seconds")


def processes_of(folder):
    """That have it among their arguments."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found += [entry.parent.name] if str(folder).encode() in entry.read_bytes() else []
    return found


def test_copies_that_hang_end_when_their_program_was_killed():
    with damaged() as (site, env, sound, _):
        folder = site.file("many")
        folder.mkdir()
        for name in ("1-hang-open.nc", "2-hang-read.nc"):
            shutil.copy(sound, folder / name)
        with subprocess.Popen([tool("esdm-cp"), "-r", "-j", "2", "--timeout", "3", folder, "esdm://x"], env=env,
                              stdin=subprocess.DEVNULL) as program:
            until = time.monotonic() + 60
            while len(processes_of(folder)) < 3 and time.monotonic() < until:
                time.sleep(0.05)
            expect(len(processes_of(folder)) == 3, "no process for each copy")
            program.kill()
        while processes_of(folder) and time.monotonic() < until:
            time.sleep(0.05)
        left = processes_of(folder)
        for process in left:
            os.kill(int(process), signal.SIGKILL)
        expect(not left, f"processes {left} go on")


main(
    test_advice_goes_on_after_files_that_crash_or_hang,
    test_copies_go_on_after_files_that_hang,
    test_copies_that_hang_end_when_their_program_was_killed,
    test_a_single_file_is_named,
    test_one_of_many_is_named_and_the_others_are_stored,
    test_tools_that_look_at_files,
)
