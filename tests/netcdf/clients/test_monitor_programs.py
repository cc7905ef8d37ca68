#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Programs of all kinds whose records go into databases: ranks of MPI, one that forks, one that has a SQLite
and a libpq of its own, and any beside a disk that is full."""

import contextlib
import json
import os
import pathlib
import sqlite3
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "parallel"))

import mpirun  # noqa: E402
from esdmtest import (BUILD, SANITIZE, Site, client, client_environment, environment, expect, expect_error, main, need_data,
                      need_program, run, skip, tool)
from postgres import Server, binaries

OWN = BUILD / "tests/netcdf/clients/own_databases"
WATCHED = BUILD / "tests/netcdf/clients/nc_watched"


def rows(base, question):
    with contextlib.closing(sqlite3.connect(base)) as db:
        expect(db.execute("PRAGMA integrity_check").fetchone() == ("ok",), "damaged")
        return db.execute(question).fetchall()


def explained(source):
    env = environment({"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"})
    return json.loads(run([tool("esdm-explain"), "--json", source], env=env).stdout)


def test_a_program_with_libraries_of_its_own():
    """Of all that it has, ESDM calls nothing."""
    with Site() as site:
        base = site.file("runs.sqlite")
        done = client(["-q", OWN, "esdm://own.nc"], env={"ESDM_MONITOR": f"stats:{base},trace:{base}"})
        expect(done.stdout == "good\n" and "clash" not in done.stderr, done.stdout + done.stderr)
        expect(rows(base, "SELECT sum(dropped) FROM esdm_end") == [(0,)], "dropped")
        if binaries() is None:
            print("without PostgreSQL: it is not installed")
            return
        with Server() as server:
            url = f"postgresql://esdm:secret@127.0.0.1:{server.port}/postgres"
            done = client(["-q", OWN, "esdm://own.nc"], env={"ESDM_MONITOR": f"stats:{url},trace:{url}"},
                          cwd=site.folder)
            expect(done.stdout == "good\n" and "clash" not in done.stderr, done.stdout + done.stderr)
            expect(server.sql("SELECT count(*), sum(dropped) FROM esdm_end") == ["1|0"], "no records")


def test_ranks():
    """Each rank a process of one run; the report has all."""
    if SANITIZE:
        skip("MPI is not sanitized")
    need_program("mpirun")
    with Site() as site:
        base = site.file("runs.sqlite")
        env = client_environment(mpirun.environment(str(site.folder)))
        env.update({"ESDM_MONITOR": f"stats:{base},trace:{base}", "ESDM_NC_ROUTE": str(site.folder) + "/out"})
        script = (f"exec '{tool('esdm-run')}' -q '{WATCHED}' rank "
                  "esdm://r${OMPI_COMM_WORLD_RANK:-$PMI_RANK}.nc")
        done = subprocess.run(["mpirun", "-n", "3", "sh", "-c", script], capture_output=True, text=True, env=env,
                              stdin=subprocess.DEVNULL, timeout=300, check=False)
        expect(done.returncode == 0, done.stderr[-2000:])
        seen = rows(base, "SELECT rank, job FROM esdm_process ORDER BY rank")
        expect([rank for rank, _ in seen] == [0, 1, 2] and len({job for _, job in seen}) == 1, str(seen))
        expect(rows(base, "SELECT count(*), sum(dropped) FROM esdm_end") == [(3, 0)], "ends")
        said = explained(f"{base}#latest")
        expect(said["ranks"] == said["processes"] == 3 and len(said["variables"]) >= 3, str(said)[:900])


FORKS = """
import os, sys, netCDF4
first = netCDF4.Dataset("esdm://a.nc")
name = list(first.variables)[-1]
sums = first[name][:].sum()
child = os.fork()
if child == 0:
    os._exit(0 if sum(range(10)) == 45 else 1)
pid, status = os.waitpid(child, 0)
second = os.fork()
if second == 0:
    os.execv("/bin/sh", ["sh", "-c", "exec ncdump -h esdm://a.nc > /dev/null"])
_, other = os.waitpid(second, 0)
again = first[name][:].sum()
first.close()
print("good" if status == 0 and other == 0 and sums == again else (status, other))
"""


def test_a_program_that_forks():
    """Records of the parent are whole, a child writes none of them again, what it starts has its own."""
    if SANITIZE:
        skip("Python is not sanitized")
    file = need_data("fields", "era5_u.nc")
    if subprocess.run(["/usr/bin/python3", "-c", "import netCDF4"], capture_output=True, check=False).returncode:
        skip("no netCDF4")
    with Site() as site:
        base = site.file("runs.sqlite")
        client(["nccopy", file, "esdm://a.nc"])
        done = client(["/usr/bin/python3", "-c", FORKS], env={"ESDM_MONITOR": f"stats:{base},trace:{base}"})
        expect(done.stdout == "good\n", done.stdout + done.stderr)
        seen = rows(base, "SELECT program FROM esdm_process ORDER BY realtime_ns")
        expect([name for name, in seen] == ["python3", "ncdump"], str(seen))
        expect(rows(base, "SELECT count(*), sum(dropped) FROM esdm_end") == [(2, 0)], "ends")
        expect(rows(base, "SELECT count(*) - count(DISTINCT process || '.' || id) FROM esdm_span") == [(0,)],
               "spans are there twice")
        reads = rows(base, "SELECT (SELECT sum(bytes) FROM esdm_span WHERE kind = 'netcdf-read'), "
                           "(SELECT sum(bytes) FROM esdm_statistic WHERE kind = 'netcdf-read')")
        expect(reads[0][0] == reads[0][1] > 1e5, str(reads))


FULL = """
mount -t tmpfs -o size=192k none '{folder}' || exit 77
'{esdm_run}' ncdump esdm://a.nc > '{out}'
code=$?
cp '{folder}'/* '{copy}'
exit $code
"""


def check_without_log(base, log):
    """What SQLite could not bring to the file is in its log: with both the records are read, without the log
    it is said what is missing."""
    explain = [tool("esdm-explain"), "--json", base]
    env = environment({"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"})
    kept = log.read_bytes()
    whole = run(explain, check=False, env=env)
    expect("malformed" not in whole.stderr, whole.stderr)
    log.write_bytes(kept)
    for name in (log, log.with_name("runs.sqlite-shm")):
        name.unlink(missing_ok=True)
    alone = run(explain, check=False, env=env)
    print(f"without its log: {alone.stderr.strip()}")
    if "malformed" in alone.stderr or "not a database" in alone.stderr:
        expect_error(alone, "-wal at the end of its name")


def test_a_disk_that_is_full():
    """A real file system without room: the program ends well, what it did is counted, the database is whole."""
    need_program("unshare")
    file = need_data("fields", "era5_u.nc")
    with Site() as site:
        folder = site.file("small")
        folder.mkdir()
        copies = site.file("copies")
        copies.mkdir()
        client(["nccopy", file, "esdm://a.nc"])
        plain = client(["ncdump", "esdm://a.nc"]).stdout
        base = folder / "runs.sqlite"
        script = FULL.format(folder=folder, esdm_run=tool("esdm-run"), out=site.file("out"), copy=copies)
        done = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, cwd=site.folder,
                              env=client_environment({"ESDM_MONITOR": f"stats:{base},trace:{base}"}),
                              stdin=subprocess.DEVNULL, timeout=300, check=False)
        if done.returncode == 77 or "unshare" in done.stderr:
            skip(f"no file systems of one's own here: {done.stderr.strip()}")
        expect(done.returncode == 0, done.stderr)
        print(f"left on the full disk: {sorted(os.listdir(copies))}")
        expect(site.file("out").read_text() == plain, "other output")
        copy = copies / "runs.sqlite"
        found = list(site.folder.glob("esdm-stats.*.json"))
        if found:  # there was no room for statistics either
            line = json.loads(found[0].read_text())
            dropped, why = line["dropped"], line["trace_failure"]
            read = sum(s["bytes"] for s in line["spans"] if s["kind"] == "netcdf-read")
        else:
            (dropped, why), = rows(copy, "SELECT dropped, failure FROM esdm_end")
            (read,), = rows(copy, "SELECT sum(bytes) FROM esdm_statistic WHERE kind = 'netcdf-read'")
        expect(dropped > 0 and "full" in why, f"{dropped} {why}")
        log = copies / "runs.sqlite-wal"
        if log.exists() and log.stat().st_size > 0:
            expect("-wal" in why, why)
            check_without_log(copy, log)
        expect(read > 1e5, f"not counted: {read}")


main(test_a_program_with_libraries_of_its_own, test_ranks, test_a_program_that_forks, test_a_disk_that_is_full)
