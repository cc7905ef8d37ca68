#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Damaged files that crash libnetcdf: tools that read them name the file, and the others are served."""

import contextlib
import json
import shutil

from esdmtest import SANITIZE, Site, environment, expect, expect_error, main, run, skip, tool

# Crashes as libnetcdf does with damaged HDF5 files: when a file is opened, when values are read, and when it is closed.
CRASHES = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
static int crash_at_close = -1, crash_at_read = -1;
int nc_open(const char *path, int mode, int *id)
{
    int (*next)(const char *, int, int *) = dlsym(RTLD_NEXT, "nc_open");
    if (strstr(path, "crash-open"))
        raise(SIGSEGV);
    int rc = next(path, mode, id);
    if (strstr(path, "crash-read"))
        crash_at_read = *id;
    if (strstr(path, "crash-close"))
        crash_at_close = *id;
    return rc;
}
int nc_get_vara(int id, int var, const size_t *start, const size_t *count, void *to)
{
    int (*next)(int, int, const size_t *, const size_t *, void *) = dlsym(RTLD_NEXT, "nc_get_vara");
    if (id == crash_at_read)
        raise(SIGBUS);
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


main(
    test_a_single_file_is_named,
    test_one_of_many_is_named_and_the_others_are_stored,
    test_tools_that_look_at_files,
)
