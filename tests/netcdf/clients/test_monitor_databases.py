#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Records of programs in SQLite and PostgreSQL: all are there, tools read them, nobody waits."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import time

from esdmtest import (Site, client, client_environment, environment, expect, expect_error, main, need_data, run,
                      tool)
from postgres import Server, binaries


def no_leaks():
    """These tools keep memory to the end of the process."""
    return environment({"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"})


def check_learned(source):
    """The tools that read traces read these."""
    replayed = run([tool("esdm-replay"), source], env=no_leaks()).stdout
    expect("\nwrite " in replayed and "\ncommit " in replayed, replayed)
    learned = run([tool("esdm-tune"), "--learn", source], check=False, env=no_leaks())
    expect(" of reads and writes; it takes 40" in learned.stderr and
           "are 0 records" not in learned.stderr, learned.stdout + learned.stderr)


def test_sqlite_has_what_files_have():
    file = need_data("fields", "era5_u.nc")
    with Site() as site:
        base = site.file("runs.sqlite")
        client(["nccopy", file, "esdm://a.nc"],
               env={"ESDM_MONITOR": f"stats:{base},trace:{base},node", "PBS_JOBID": "42.it's"})
        db = sqlite3.connect(base)
        (process, job, rank), = db.execute("SELECT process, job, rank FROM esdm_process")
        expect(job == "42.it's" and rank == -1, f"{job} {rank}")
        traced, = db.execute("SELECT sum(bytes) FROM esdm_span WHERE kind = 'write'").fetchone()
        counted, = db.execute("SELECT sum(bytes) FROM esdm_statistic WHERE kind = 'write' AND "
                              f"process = {process}").fetchone()
        expect(traced == counted > 1e5, f"{traced} {counted}")
        dropped, failure = db.execute("SELECT dropped, failure FROM esdm_end").fetchone()
        expect(dropped == 0 and failure is None, f"{dropped} {failure}")
        expect(db.execute("SELECT count(*) FROM esdm_node_total").fetchone() == (1,), "node")
        expect(not list(site.folder.glob("esdm-stats.*")), "statistics in a file, too")
        db.close()
        check_learned(f"{base}#latest")
        check_learned(f"{base}#42.it's")
        expect_error(run([tool("esdm-replay"), f"{base}#43"], check=False, env=no_leaks()), "the run 43")
        expect_error(run([tool("esdm-explain"), base], check=False, env=no_leaks()), "esdm-run --records")


def test_names_that_mislead():
    """A folder with the sign of runs in its name, and files that are not there."""
    file = need_data("fields", "era5_u.nc")
    with Site() as site:
        folder = site.file("run#3")
        folder.mkdir()
        base = folder / "runs.sqlite"
        client(["nccopy", file, "esdm://a.nc"], env={"ESDM_MONITOR": f"trace:{base}"})
        check_learned(str(base))
        check_learned(f"{base}#latest")
        for name, words in (("none.sqlite", "there is no such file"), ("no/none.sqlite", "no such folder")):
            expect_error(run([tool("esdm-replay"), folder / name], check=False, env=no_leaks()), words)


def test_a_colleague_reads():
    """A file in a folder that its reader may not write to."""
    file = need_data("fields", "era5_u.nc")
    with Site() as site:
        folder = site.file("run #%3")
        folder.mkdir()
        client(["nccopy", file, "esdm://a.nc"], env={"ESDM_MONITOR": f"trace:{folder / 'runs.sqlite'}"})
        expect(os.listdir(folder) == ["runs.sqlite"], os.listdir(folder))
        other = {}
        if os.getuid() == 0:
            site.folder.chmod(0o755)
            other = {"user": 65534, "group": 65534, "extra_groups": []}
        folder.chmod(0o555)
        try:
            read = subprocess.run([tool("esdm-tune"), "--learn", folder / "runs.sqlite"], env=no_leaks(),
                                  text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, **other)
            expect(" of reads and writes; it takes 40" in read.stderr, read.stderr)
        finally:
            folder.chmod(0o755)


def test_a_wrong_url_keeps_its_password():
    """libpq quotes what it cannot understand of a URL."""
    for url in ("postgresql://me:hidden%zz@127.0.0.1/d", "postgresql://me@127.0.0.1/d?password=hidden=x",
                "postgresql://me:hid@hidden@127.0.0.1:1/d"):
        result = run([tool("esdm-replay"), url], check=False, env=no_leaks())
        if "libpq.so.5" in result.stderr:
            print("without libpq: it is not installed")
            return
        expect_error(result, "URL cannot be understood")
        expect("hid" not in result.stderr, f"the password is told: {result.stderr}")


def test_programs_share_a_file():
    file = need_data("fields", "era5_u.nc")
    with Site() as site:
        base = site.file("runs.db")
        env = client_environment({"ESDM_MONITOR": f"stats:{base},trace:{base}"})
        programs = [subprocess.Popen([tool("esdm-run"), "nccopy", file, f"esdm://s{i}.nc"], env=env,
                                     stdin=subprocess.DEVNULL) for i in range(4)]
        expect(all(p.wait(600) == 0 for p in programs), "a program failed")
        with contextlib.closing(sqlite3.connect(base)) as db:
            expect(db.execute("PRAGMA integrity_check").fetchone() == ("ok",), "damaged")
            expect(db.execute("SELECT count(*), sum(dropped) FROM esdm_end").fetchone() == (4, 0),
                   "some are missing")


def fallback(folder):
    """Statistics beside the program, when a database does not take them."""
    found = list(folder.glob("esdm-stats.*.json"))
    expect(len(found) == 1, f"{found}")
    return json.loads(found[0].read_text())


def test_a_locked_file_holds_nobody_up():
    file = need_data("fields", "era5_u.nc")
    with Site() as site:
        base = site.file("locked.sqlite")
        with contextlib.closing(sqlite3.connect(base, isolation_level=None)) as db:
            db.execute("CREATE TABLE other (x)")
            db.execute("BEGIN EXCLUSIVE")
            client(["nccopy", file, "esdm://a.nc"], cwd=site.folder, timeout=120,
                   env={"ESDM_MONITOR": f"stats:{base},trace:{base}"})
            db.execute("ROLLBACK")
        line = fallback(site.folder)
        expect(line["dropped"] > 0 and "lock" in line["trace_failure"], str(line)[:400])
        expect(sum(s["bytes"] for s in line["spans"]) > 1e6, "nothing was counted")
        run([tool("esdm-ls"), "a.nc"])


def url_of(server):
    return f"postgresql://esdm:secret@127.0.0.1:{server.port}/postgres"


def test_postgres():
    if binaries() is None:
        print("without PostgreSQL: it is not installed")
        return
    file = need_data("fields", "era5_u.nc")
    with Site() as site, Server() as server:
        env = {"ESDM_MONITOR": f"stats:{url_of(server)},trace:{url_of(server)},node"}
        programs = [subprocess.Popen([tool("esdm-run"), "nccopy", file, f"esdm://p{i}.nc"],
                                     env=client_environment(env), stdin=subprocess.DEVNULL)
                    for i in range(3)]
        expect(all(p.wait(600) == 0 for p in programs), "a program failed")
        expect(server.sql("SELECT count(*), sum(dropped) FROM esdm_end") == ["3|0"], "ends")
        traced = server.sql("SELECT sum(bytes) FROM esdm_span WHERE kind = 'write'")
        expect(traced == server.sql("SELECT sum(bytes) FROM esdm_statistic WHERE kind = 'write'"),
               f"{traced}")
        check_learned(url_of(server) + "#latest")

        # A server that is stopped: its processes answer nothing.
        pids = [server.process.pid, *map(int, subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(server.process.pid)], stdout=subprocess.PIPE,
            text=True, check=True).stdout.split())]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        begin = time.monotonic()
        try:
            client(["nccopy", file, "esdm://stopped.nc"], env=env, cwd=site.folder, timeout=120)
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
        print(f"beside a stopped server: {time.monotonic() - begin:.1f} s")
        line = fallback(site.folder)
        expect(line["dropped"] > 0 and "does not answer" in line["trace_failure"],
               str(line)[:400])
        expect("secret" not in json.dumps(line), "the password is told")
        run([tool("esdm-ls"), "stopped.nc"])


main(test_sqlite_has_what_files_have, test_names_that_mislead, test_a_colleague_reads,
     test_a_wrong_url_keeps_its_password, test_programs_share_a_file, test_a_locked_file_holds_nobody_up,
     test_postgres)
