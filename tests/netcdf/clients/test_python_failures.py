#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Python closes files while an exception unwinds the stack. What is half written then neither replaces
nor changes what was there when nobody handles the exception; handled ones cost nothing."""

import json
import re
import shlex
import signal
import subprocess

import clients
from esdmtest import Site, by_build, by_size, client, client_environment, expect, main, run, skip, some, tool

SCRIPT = clients.HERE / "failing.py"
WHOLE, HALF = "v = 1, 1, 1, 1 ;", "v = 0, 0, "

# How the program ends on files: with status 0, with another one, by SIGINT.
FAILS = {"top": 1, "with": 1, "finally": 1, "frame": 1, "other": 1, "interrupt": -signal.SIGINT, "exit1": 1, "exit-closes": 1,
         "append": 1, "message": 1, "thread": 0, "thread-frame": 0, "future": 1, "child": 0, "pool": 0, "dask": 1, "dask-caught": 0,
         "future-unasked": 0, "future-frame": 0, "future-kept": 0, "future-kept-frame": 0,
         "task": 1, "task-unasked": 0, "task-frame": 0, "task-kept": 0, "task-kept-frame": 0, "task-thread": 0, "task-cancelled": 1,
         "task-second": 1, "task-second-caught": 0, "task-second-thread": 0, "task-second-executor": 0, "task-shielded": 0,
         "dask-second": 0, "trio-cancelled": 1}
HALF_DONE = {"exit0": 0, "raised-later": 1, "caught": 0, "caught-at-once": 0, "kept": 0, "collected": 0,
             "pickled": 0, "future-caught": 0, "task-caught": 0, "task-stopped": 0, "task-other-loop": 0,
             "task-shared": 0, "task-returned": 0, "dask-task-caught": 0, "trio-stopped": 0}
COMPLETE = {"retried": 0, "dask-retried": 0, "dask-late": 0, "appends-after": 0, "generator": 0, "exit-writes": 1, "handler": 0, "future-reopened": 0}
SOME = ("top", "with", "frame", "interrupt", "exit1", "append", "message", "thread", "thread-frame", "child", "dask", "dask-caught",
        "future-unasked", "future-frame", "future-kept-frame", "future-caught", "future-reopened", "raised-later",
        "task-unasked", "task-kept-frame", "task-caught", "task-cancelled", "task-stopped", "task-other-loop", "task-second", "task-second-executor", "task-shielded", "dask-second", "caught-at-once", "kept", "collected", "appends-after", "generator", "exit-closes", "exit-writes", "handler")


def fail(python, path, how, *loop):
    """Like client(), but a death by signal is told as the others."""
    command = [tool("esdm-run"), python, str(SCRIPT), path, how, *loop]
    return subprocess.run(command, env=client_environment(), stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300, check=False)


def values(path):
    return client(["ncdump", "-v", "v", path]).stdout.partition("data:")[2].strip(" \n}")


def check(kind, chosen, *loop):
    python = clients.python_of(kind)
    absent = [name for name, modules in (("dask", "dask.array, xarray"), ("trio", "trio"))
              if subprocess.run([python, "-c", f"import {modules}"], stderr=subprocess.DEVNULL, check=False).returncode]
    with Site():
        client([python, SCRIPT, "esdm://whole.nc", "whole"])
        for ways, expected in ((FAILS, WHOLE), (HALF_DONE, HALF), (COMPLETE, WHOLE)):
            for how, status in ways.items():
                if how not in chosen or how.partition("-")[0] in absent:
                    continue
                path = f"esdm://{how}.nc"
                if ways is not COMPLETE:
                    client([tool("esdm-cp"), "esdm://whole.nc", path])
                done = fail(python, path, how, *loop)
                expect(done.returncode == status, f"{how}: {done.returncode}\n{done.stderr}")
                expect(values(path).startswith(expected), f"{how}: {values(path)}\n{done.stderr}")
                told = f"'{how}.nc' is not committed" in done.stderr and "stays" in done.stderr
                expect(told == (ways is FAILS), f"{how}: {done.stderr}")


def test_debian():
    ways = (*FAILS, *HALF_DONE, *COMPLETE)
    check("debian", by_size(some(SOME, by_build(14, len(SOME))), some(ways, 10), ways))


def test_pypi():
    ways = ("top", "with", "interrupt", "dask", "dask-caught", "dask-retried", "dask-late", "kept", "caught-at-once")
    check("pypi", by_size(some(ways, by_build(4, 9)), some(ways, 5), ways))


def test_tasks_of_trio_and_several_that_fail():
    ways = ("trio-cancelled", "trio-stopped", "task-second-caught", "task-second-thread", "task-shared", "task-returned",
            "dask-task-caught")
    check("workers", by_size(some(ways, by_build(4, 7)), some(ways, 4), ways))


def test_tasks_of_uvloop():
    """Its loops are no classes of asyncio's, and call back in their own way."""
    python = clients.python_of("workers")
    if subprocess.run([python, "-c", "import uvloop"], stderr=subprocess.DEVNULL, check=False).returncode:
        skip("there is no uvloop for this Python")
    tasks = [way for ways in (FAILS, HALF_DONE) for way in ways if way.partition("-")[0] == "task"]
    few = ("task", "task-unasked", "task-frame", "task-cancelled", "task-stopped", "task-other-loop", "task-second",
           "task-second-caught", "task-second-executor", "task-shielded", "task-shared")
    check("workers", by_size(some(few, by_build(5, len(few))), some(tasks, 5), tasks), "uvloop")


def test_threads_that_write_their_first_files_at_once():
    """None of them goes unwatched. The interpreter runs another thread as often as it can."""
    python = clients.python_of("debian")
    often = "import sys; sys.setswitchinterval(1e-6); sys.argv = sys.argv[1:]; exec(open(sys.argv[0]).read())"
    with Site():
        for i in range(by_size(2, 4, 20)):
            done = client([python, "-c", often, SCRIPT, f"esdm://{i}.nc", "at-once"], check=False)
            expect(done.returncode == 0 and "AssertionError" not in done.stderr, done.stderr)


def test_nothing_is_left_of_a_new_container():
    """Nor of its stub; and an interpreter at a prompt tells at once."""
    python = clients.python_of("debian")
    with Site() as site:
        routed = site.file("routed")
        routed.mkdir()
        env = {"ESDM_NC_ROUTE": f"{routed}=r"}
        done = client([python, SCRIPT, routed / "a.nc", "with"], env=env, check=False)
        expect("nothing is left" in done.stderr and "Stop: half way" in done.stderr, done.stderr)
        expect(not list(routed.iterdir()) and not client([tool("esdm-ls")]).stdout, "something is")
        cells = f"import sys\nsys.argv = ['', '{routed / 'b.nc'}', 'with']\n" \
                f"exec(open('{SCRIPT}').read())\nimport os\nos.listdir('{routed}')\n"
        command = [tool("esdm-run"), python, "-i"]
        done = subprocess.run(command, env=client_environment(env), input=cells, text=True, timeout=300,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        expect("nothing is left" in done.stdout and "[]" in done.stdout, done.stdout)
        before = done.stdout.index("nothing is left")
        expect(before < done.stdout.index("[]"), done.stdout)


def test_what_was_replaced_before_the_failure_is_told():
    """By a container that was closed well: the way back is shown. Others are not spoken of."""
    python = clients.python_of("debian")
    with Site():
        done = client([python, SCRIPT, "esdm://new.nc", "filled-by-others"], check=False)
        expect("in a worker" in done.stderr and "replaced" not in done.stderr, done.stderr)
        client([python, SCRIPT, "esdm://a.nc", "stated"])
        former = client(["ncdump", "esdm://a.nc"]).stdout
        done = client([python, SCRIPT, "esdm://a.nc", "filled-by-others"], check=False)
        told = re.search(r"\(Stop: in a worker\) after it had replaced 'a.nc': (esdm-restore .*) brings",
                         done.stderr)
        expect(told and done.stderr.count("esdm:") == 1, done.stderr)
        expect(client(["ncdump", "esdm://a.nc"]).stdout != former, "nothing was replaced")
        words = shlex.split(told[1])
        run([tool(words[0]), "--yes", *words[1:]])
        expect(client(["ncdump", "esdm://a.nc"]).stdout == former, "another one came back")


def test_committed_all_the_same_on_request():
    python = clients.python_of("debian")
    with Site():
        for how in ("with", "top"):
            client([python, SCRIPT, "esdm://a.nc", "whole"])
            done = client([python, SCRIPT, "esdm://a.nc", how], check=False,
                          env={"ESDM_NC_FAILURE": "commit"})
            expect(done.returncode == 1 and values("esdm://a.nc").startswith(HALF), done.stderr)


# Says after each opening whether code of the library's own runs in this interpreter.
READERS = """
import sys, types
import netCDF4
ours = []
sys.setprofile(lambda frame, event, _: ours.append(frame.f_code.co_name) if frame.f_code.co_filename == "<esdm>" else None)
def opened(path, mode):
    ours.clear()
    netCDF4.Dataset(path, mode).close()
    return "<module>" in ours, "reading" in ours
print(opened(sys.argv[1], "r"))
if sys.argv[2] == "xarray":
    sys.modules["xarray.backends.api"] = types.SimpleNamespace(_get_mtime=lambda name: None)
    print(opened(sys.argv[1], "r"))
else:
    print(opened(sys.argv[1], "a"))
print(opened(sys.argv[1], "r"))
"""


def test_programs_that_only_read_do_not_wait_for_it():
    """Compiling watch.py takes three times as long as opening a file does without ESDM."""
    python = clients.python_of("debian")
    with Site():
        client([python, "-c", "import netCDF4; netCDF4.Dataset('esdm://a.nc', 'w').close()"])
        for how, want in (("writes", ["(False, False)", "(True, False)", "(False, False)"]),
                          ("xarray", ["(False, False)", "(True, True)", "(False, True)"])):
            told = client([python, "-c", READERS, "esdm://a.nc", how]).stdout.splitlines()
            expect(told == want, f"{how}: {told}")


def test_tolerances_that_came_with_a_file():
    """A close that waits for the exception judges them as every close. Only programs that are known to
    hand numbers on take them: here Python is called as one of these."""
    python = clients.python_of("debian")
    with Site() as site:
        plain, copier = site.file("plain.nc"), site.file("ncks")
        copier.symlink_to(python)
        run([python, SCRIPT, plain, "stated"])
        done = client([copier, SCRIPT, plain, "copied-tolerance"])
        expect("of variable 'small' in 'small.nc' state is not taken" in done.stderr, done.stderr)
        shown = json.loads(run([tool("esdm-stat"), "--accuracy", "--json", "small.nc"]).stdout)
        stated_of = {d["name"]: d.get("accuracy", {}).get("stated")
                     for d in shown["containers"][0]["root"]["datasets"]}
        expect(stated_of == {"small": None, "later": "absolute_tolerance=100"}, f"{stated_of}")


main(test_debian, test_pypi, test_tasks_of_trio_and_several_that_fail, test_tasks_of_uvloop,
     test_threads_that_write_their_first_files_at_once, test_nothing_is_left_of_a_new_container,
     test_what_was_replaced_before_the_failure_is_told,
     test_committed_all_the_same_on_request, test_programs_that_only_read_do_not_wait_for_it,
     test_tolerances_that_came_with_a_file)
