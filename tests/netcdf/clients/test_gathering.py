#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Regions that many processes write into one container: dask's processes, dask.distributed, multiprocessing. They are
published in one commit; when a worker fails or is killed, the container stays as it was and nothing is left."""

import json
import signal
import subprocess

from clients import python_of
from esdmtest import BUILD, SANITIZE, Site, client_environment, expect, main, run, skip, tool
from inprocess import packages, python

PARTS = """
import os, signal, sys, time, numpy as np, pandas as pd, xarray as xr, esdm, dask, dask.array
def part(start, n, add=0.0):
    return xr.Dataset({"tas": (("time", "x"), 280 + add + np.random.rand(n, 500).astype("f4"), {"units": "K"}),
                       "name": (("time",), np.array([f"n{i}" for i in range(n)], dtype=object))},
                      coords={"time": pd.date_range(start, periods=n), "x": np.arange(500.0)})
def broken(data, how):
    def block(values, block_info=None):
        if block_info[0]["chunk-location"][0] == 5:
            time.sleep(1)  # others have been written
            if how == "raises":
                raise RuntimeError("the sixth block")
            os.kill(os.getpid(), signal.SIGKILL)
        return values
    chunked = data.chunk({"time": 1})
    chunked["tas"] = (("time", "x"), dask.array.map_blocks(block, chunked.tas.data, dtype="f4", meta=np.empty((0, 0), "f4")))
    return chunked
def state():
    # What the container is, and what is beside it.
    found = xr.open_dataset("esdm://run.nc", decode_times=False)
    return found.tas.values.tobytes(), found.time.values.tobytes(), [s.snapshot for s in esdm.snapshots("run.nc")]
first, more = part("2000-01-01", 4), part("2000-01-05", 8)
def make():
    esdm.write(first, "run.nc", unlimited_dims=["time"], chunks={"time": 1})
"""

PROCESSES = PARTS + """
make()
before = state()
with dask.config.set(scheduler="processes", num_workers=2):
    for how, wrong in (("raises", lambda: esdm.append(broken(more, "raises"), "run.nc")),
                       ("kills", lambda: broken(more, "kills").drop_vars("time").esdm.write_region("run.nc", {"time": slice(0, 8)}))):
        try:
            wrong()
            raise SystemExit("no error")
        except Exception as error:
            assert type(error).__name__ in ("RuntimeError", "BrokenProcessPool"), error
            assert ("sixth" in str(error)) == (how == "raises"), error
        assert state() == before, how
    esdm.append(more.chunk({"time": 1}), "run.nc", message="by processes")
    new = part("2000-01-03", 6, add=50)[["tas"]]
    # Blocks that are no fragments, side by side in the same ones.
    last = esdm.write_region(new.chunk({"time": 4, "x": 170}), "run.nc", {"time": slice(2, 8)})
values = xr.open_dataset("esdm://run.nc")
assert values.tas.values.tobytes() == np.concatenate([first.tas[:2], new.tas, more.tas[4:]]).tobytes()
assert values.name.values.tolist() == [*first.name.values, *more.name.values] and values.sizes["time"] == 12
steps = esdm.snapshots("run.nc")
assert len(steps) == len(before[2]) + 2 and steps[-2].message == "by processes" and steps[-1].snapshot == last, steps
print("ok")
"""

DISTRIBUTED = PARTS + """
from distributed import Client, KilledWorker, LocalCluster
if __name__ == "__main__":
    make()
    before = state()
    dask.config.set({"distributed.scheduler.allowed-failures": 0})
    with LocalCluster(n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None) as cluster, Client(cluster) as client:
        for how in ("raises", "kills"):
            try:
                esdm.append(broken(more, how), "run.nc")
                raise SystemExit("no error")
            except (RuntimeError, KilledWorker) as error:
                assert isinstance(error, KilledWorker) == (how == "kills"), error
            assert state() == before, how
        client.wait_for_workers(2)
        esdm.append(more.chunk({"time": 1}), "run.nc")
        assert state()[0] == np.concatenate([first.tas, more.tas]).tobytes() and len(state()[2]) == len(before[2]) + 1
    print("ok")
"""

# Without dask: any processes that have the name.
POOL = PARTS + """
import concurrent.futures, multiprocessing
def store(start, line):
    more.isel(time=slice(start, start + 2)).esdm.write_region(line, {"time": slice(4 + start, 6 + start)})
    return type(line) is str and "@branch:" in line
make()
before = state()
with esdm.gather("run.nc") as line:  # the last part first: times between are not there yet
    for start in (6, 0, 4, 2):
        store(start, line)
assert state()[0] == np.concatenate([first.tas, more.tas]).tobytes()
assert (xr.open_dataset("esdm://run.nc").time.values == np.concatenate([first.time, more.time])).all()
esdm.write(first, "run.nc", unlimited_dims=["time"], chunks={"time": 1})
before = state()
with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
    with esdm.gather("esdm://run.nc", message="a pool") as line:
        assert all(pool.map(store, range(0, 8, 2), [line] * 4))
        assert state() == before  # nothing is seen yet
    assert line.snapshot == state()[2][-1] and len(state()[2]) == len(before[2]) + 1
    assert state()[0] == np.concatenate([first.tas, more.tas]).tobytes()
    assert esdm.snapshots("run.nc")[-1].message == "a pool"
    with esdm.gather("run.nc") as nothing:
        pass
    assert nothing.snapshot == line.snapshot == state()[2][-1]
    # Others write the same meanwhile.
    try:
        with esdm.gather("run.nc") as line:
            more.isel(time=slice(2)).drop_vars("time").esdm.write_region(line, {"time": slice(0, 2)})
            more.isel(time=slice(4, 6)).drop_vars("time").esdm.write_region("run.nc", {"time": slice(0, 2)})
        raise SystemExit("no conflict")
    except esdm.MergeConflict as error:
        assert line in str(error) and error.result["conflicts"], error
    assert state()[0] == np.concatenate([more.tas[4:6], first.tas[2:], more.tas]).tobytes()
    esdm.merge("run.nc", line.partition("@branch:")[2], prefer="theirs")
    assert state()[0] == np.concatenate([more.tas[:2], first.tas[2:], more.tas]).tobytes()
    esdm.remove(line)
    # Another part of the container meanwhile: both are there.
    with esdm.gather("run.nc") as line:
        first.isel(time=slice(2)).esdm.write_region(line, {"time": slice(0, 2)})
        first.isel(time=slice(2)).drop_vars("time").esdm.write_region("run.nc", {"time": slice(2, 4)})
    assert state()[0] == np.concatenate([first.tas[:2], first.tas[:2], more.tas]).tobytes()
try:
    with esdm.gather("none.nc"):
        raise SystemExit("no error")
except FileNotFoundError:
    print("ok")
"""

# Another program appends while dask's blocks are written.
CONFLICT = PARTS + """
import pickle, shlex, subprocess
def meanwhile(graph, keys, **options):
    esdm.append(part("2001-01-01", 8), "run.nc")
    return dask.get(graph, keys)
make()
for removes in (lambda command: subprocess.run(command, check=True), lambda command: esdm.remove(command[1])):
    try:
        with dask.config.set(scheduler=meanwhile):
            esdm.append(more.chunk({"time": 1}), "run.nc")
        raise SystemExit("no conflict")
    except esdm.MergeConflict as error:
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == str(error) and again.result == error.result
        told = str(error)
    command = shlex.split(told[told.index("esdm-rm "):].partition(",")[0])
    assert len(command) == 2 and command[1].startswith("run.nc@branch:gather-"), command
    assert f"is in the branch '{command[1]}'" in told and 'prefer="theirs"' in told, told
    assert xr.open_dataset("esdm://" + command[1]).tas.values[-8:].tobytes() == more.tas.values.tobytes()
    removes(command)
    assert xr.open_dataset("esdm://run.nc").time.values[-1] == np.datetime64("2001-01-08")
print("ok")
"""

# What is left of a coordinator that was killed, by whoever looks next.
KILLED = PARTS + """
how = HOW
if how == "killed":
    make()
    with esdm.gather("run.nc") as line:
        more.isel(time=slice(4, 6)).esdm.write_region(line, {"time": slice(4, 6)})
        os.kill(os.getpid(), signal.SIGKILL)
elif how == "conflict":
    try:
        with esdm.gather("run.nc") as line:
            more.isel(time=slice(2)).drop_vars("time").esdm.write_region(line, {"time": slice(0, 2)})
            more.isel(time=slice(4, 6)).drop_vars("time").esdm.write_region("run.nc", {"time": slice(0, 2)})
        raise SystemExit("no conflict")
    except esdm.MergeConflict as error:
        assert line in str(error)
elif how == "waits":
    with esdm.gather("run.nc@branch:other") as line:
        print("there", flush=True)
        sys.stdin.read()
elif how == "next":
    with esdm.gather("run.nc") as line:
        print(line, flush=True)
        more.isel(time=slice(2)).esdm.write_region(line, {"time": slice(4, 6)})
print("ok")
"""


def left():
    """Branches of the container, also those that are kept for a while."""
    told = json.loads(run([tool("esdm-branch"), "--json", "run.nc"]).stdout)
    return told["branches"]


def check(kind, script):
    with Site(history=50) as site:
        program = site.file("program.py")
        program.write_text(script)
        told = python(site, kind, f"import runpy\nif __name__ == '__main__':\n    runpy.run_path({str(program)!r}, "
                      "run_name='__main__')" if kind == "workers" else script)
        expect(told.stdout.endswith("ok\n"), f"{told.stdout}{told.stderr}")
        expect(left() == [], f"{left()}")
        run([tool("esdm-fsck"), "--data"])


def test_dask_s_processes():
    check("pypi", PROCESSES)


def test_dask_distributed():
    check("workers", DISTRIBUTED)


def test_a_pool_of_processes():
    check("pypi", POOL)


def test_a_conflict_names_the_branch_that_stays():
    check("pypi", CONFLICT.replace("subprocess.run(command,", f"subprocess.run([{str(tool('esdm-rm'))!r}, command[1]],"))


def begin(site, how):
    """The program, as another process; it needs no end."""
    env = client_environment({"PYTHONPATH": str(packages(site)), "ESDM_LIBRARY_DIR": f"{BUILD}:{BUILD / 'netcdf-plugin'}"})
    env.pop("LD_PRELOAD", None)
    return subprocess.Popen([python_of("pypi"), "-c", KILLED.replace("HOW", repr(how), 1)], env=env, cwd=site.folder, text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def branches():
    return sorted(b["branch"] for b in left())


def told_by_fsck():
    findings = json.loads(run([tool("esdm-fsck"), "--json"]).stdout)["findings"]
    return sorted(f["container"].partition("@branch:")[2] for f in findings if "process that was ended" in f["what"])


def collected(*options):
    return json.loads(run([tool("esdm-gc"), "--json", "--yes", *options]).stdout)["gathers"]


def test_what_a_killed_coordinator_leaves():
    if SANITIZE:
        skip("the sanitizer's library must come first, and nothing is preloaded here")
    with Site(history=50) as site:
        expect(begin(site, "killed").wait() == -signal.SIGKILL, "was not killed")
        killed = branches()
        expect(len(killed) == 1 and killed[0].startswith("gather-"), killed)
        expect(told_by_fsck() == killed, told_by_fsck())
        expect(collected("--dry-run", "--age", "0") == 1 and collected() == 0, "its age does not count")
        # One of another node, and one that only looks like it, stay.
        elsewhere = killed[0][:killed[0].rindex("-") + 1] + "00000000" + killed[0][killed[0].rindex("-") + 9:]
        others = sorted([elsewhere, "other", "gather-" + "x" * 20])
        run([tool("esdm-branch"), "run.nc", *others])
        waits = begin(site, "waits")
        expect(waits.stdout.readline() == "there\n", "it runs")
        alive = set(branches()) - {*killed, *others}
        expect(len(alive) == 1, alive)
        # The next one removes it, and nothing else; so does esdm-gc.
        conflict = begin(site, "conflict")
        expect(conflict.communicate()[0] == "ok\n" and conflict.returncode == 0, "a conflict")
        kept = set(branches()) - {*others, *alive}
        expect(len(kept) == 1 and kept != set(killed), f"{kept} {killed}")
        expect(told_by_fsck() == [] and collected("--age", "0") == 0, "what has a conflict is kept when its process has ended")
        waits.kill()
        waits.communicate()
        expect(told_by_fsck() == sorted(alive), told_by_fsck())
        expect(collected("--age", "0") == 1 and set(branches()) == {*others, *kept}, branches())
        expect("@branch:gather-" in run([tool("esdm-ls"), "--replaced"]).stdout, "kept a while, as all that is removed")
        merged = begin(site, "next").communicate()[0].split("\n")
        expect(merged[1] == "ok" and set(branches()) == {*others, *kept}, branches())
        run([tool("esdm-fsck"), "--data"])


main(test_what_a_killed_coordinator_leaves, test_a_conflict_names_the_branch_that_stays, test_dask_s_processes, test_dask_distributed, test_a_pool_of_processes)
