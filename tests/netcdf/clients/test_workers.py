#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Who catches what a function raises and hands it on: workers of dask.distributed and joblib, shells. What the
function had half written is not committed; what somebody may go on with is told."""

import subprocess

import clients
from esdmtest import Site, by_size, client, client_environment, expect, main, need_program, tool

WRITE = """
import sys, netCDF4

def begin(path="esdm://a.nc"):
    ds = netCDF4.Dataset(path, "w")
    ds.createDimension("x", 4)
    ds.createVariable("v", "i4", ("x",))[:2] = 0
    return ds

def half():
    with begin():
        raise ValueError("half way")

def frame():
    ds = begin()
    raise ValueError("half way")

def whole():
    with begin() as ds:
        ds["v"][:] = 1

async def slowly():
    import asyncio
    with begin():
        await asyncio.sleep(60)
"""
DASK = """
import sys, time, write
from distributed import Client

if __name__ == "__main__":
    with Client(n_workers=1, threads_per_worker=1, processes=sys.argv[2] == "processes", dashboard_address=None) as c:
        task = c.submit(getattr(write, sys.argv[1]))
        while not task.done():
            time.sleep(0.05)
        assert task.status == "error"
        c.submit(write.whole).result() if sys.argv[3:] else None
"""
JOBLIB = """
import sys, joblib, write
try:
    joblib.Parallel(n_jobs=2)(joblib.delayed(getattr(write, sys.argv[1]))() for _ in range(1))
except ValueError:
    pass
"""
WHOLE, HALF = "v = 1, 1, 1, 1 ;", "v = 0, 0, "


def values():
    return client(["ncdump", "-v", "v", "esdm://a.nc"]).stdout.partition("data:")[2].strip(" \n}")
NOTEBOOK = """
from IPython.terminal.interactiveshell import TerminalInteractiveShell
shell = TerminalInteractiveShell.instance(simple_prompt=True)
for cell in ("import asyncio, subprocess, write",
             "t = asyncio.ensure_future(write.slowly())\\nawait asyncio.sleep(0.5)\\nt.cancel()\\nawait asyncio.wait([t])",
             "print(subprocess.run(['ncdump', '-v', 'v', 'esdm://a.nc'], capture_output=True, text=True).stdout)"):
    assert shell.run_cell(cell, store_history=True).success, cell
"""


class Scripts(Site):
    def __enter__(self):
        super().__enter__()
        self.python = clients.python_of("workers")
        for name, text in (("write.py", WRITE), ("notebook.py", NOTEBOOK), ("with_dask.py", DASK),
                           ("with_joblib.py", JOBLIB)):
            self.file(name).write_text(text)
        self.env = {"PYTHONPATH": str(self.folder)}
        self.whole()
        return self

    def whole(self):
        client([self.python, "-c", "import write; write.whole()"], env=self.env)

    def runs(self, script, *how):
        return client([self.python, self.file(script), *how], env=self.env).stderr

    def types(self, shell, *lines):
        """What a shell says to lines that somebody types."""
        done = subprocess.run([tool("esdm-run"), self.python, *shell], env=client_environment(self.env),
                              input="\n".join(["import write", *lines, ""]), text=True, timeout=300,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return done.stdout


def test_tasks_of_dask_workers():
    need_program("ncks")
    with Scripts() as site:
        cases = [("half", "processes"), ("frame", "threads"), ("frame", "processes"), ("half", "threads")]
        for how, kind in by_size(cases[:2], cases, cases):
            told = site.runs("with_dask.py", how, kind)
            expect("'a.nc' is not committed" in told and "stays" in told, f"{how} {kind}: {told}")
            expect(values().startswith(WHOLE), f"{how} {kind}: {values()}")
        client(["ncks", "-O", "-x", "-v", "v", "esdm://a.nc", "esdm://a.nc"])
        site.runs("with_dask.py", "frame", "threads", "and-again")  # by the thread whose task has failed
        expect(values().startswith(WHOLE), values())


def test_tasks_of_joblib():
    with Scripts() as site:
        for how in ("half", "frame"):
            site.runs("with_joblib.py", how)
            expect(values().startswith(WHOLE), f"{how}: {values()}")


def test_cells_and_prompts():
    """What was closed as the cell failed is dropped. What is still open may go on, so it is told."""
    with Scripts() as site:
        for shell in (["-m", "IPython", "--simple-prompt", "--no-banner", "--colors=NoColor"], ["-i"]):
            told = site.types(shell, "write.half()")
            expect("'a.nc' is not committed" in told and values().startswith(WHOLE), f"{told}{values()}")
            told = site.types(shell, "write.frame()")
            expect("'a.nc' is still open for writing after a failure" in told, told)
            expect(values().startswith(HALF), values())
            told = site.types(shell, "d = write.begin()", "1 / 0", "d['v'][:] = 1", "d.close()")
            expect(values().startswith(WHOLE), f"{told}{values()}")
            told = site.types(shell, "write.whole()", "1 / 0")
            expect("esdm: " not in told and values().startswith(WHOLE), told)


def test_task_cancelled_in_a_notebook():
    """Its loop is never closed: what the task has closed is there when the cell is done."""
    with Scripts() as site:
        done = client([site.python, site.file("notebook.py")], env=site.env)
        expect(HALF in done.stdout, f"{done.stdout}{done.stderr}")


main(test_tasks_of_dask_workers, test_tasks_of_joblib, test_cells_and_prompts, test_task_cancelled_in_a_notebook)
