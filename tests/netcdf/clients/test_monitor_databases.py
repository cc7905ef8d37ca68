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

from esdmtest import (SANITIZE, Site, client, client_environment, environment, expect, expect_error, main, need_data,
                      need_program, run, tool)
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


def check_explained(source, db_bytes):
    """esdm-explain says what the database has."""
    said = json.loads(run([tool("esdm-explain"), "--json", source], env=no_leaks()).stdout)
    variables = {(v["file"], v["variable"]): v for v in said["variables"]}
    expect(sum(v["write"]["bytes"] for v in variables.values()) == db_bytes, str(variables))
    expect(said["moved"]["write_bytes"] > 1e5 and said["time"]["sync"] > 0, str(said["moved"]))
    expect([f["file"] for f in said["files"]] == ["target disk"], str(said["files"]))
    expect(any(t["cause"] in ("page cache", "target") for t in said["write_times"]), str(said["write_times"]))
    text = run([tool("esdm-explain"), source], env=no_leaks()).stdout
    expect("to targets in" in text and "esdm:" in text, text)


def rows(base, question):
    with contextlib.closing(sqlite3.connect(base)) as db:
        return db.execute(question).fetchall()


def test_statistics_alone_and_traces_alone():
    """What is counted is the same, whether spans or counters tell it."""
    file = need_data("fields", "era5_u.nc")
    with Site() as site:
        said = []
        for part in ("stats", "trace", "both"):
            base = site.file(f"{part}.sqlite")
            asked = f"stats:{base},trace:{base}" if part == "both" else f"{part}:{base}"
            client(["nccopy", file, f"esdm://{part}.nc"], env={"ESDM_MONITOR": asked})
            report = json.loads(run([tool("esdm-explain"), "--json", base], env=no_leaks()).stdout)
            said.append([(v["write"]["calls"], v["write"]["bytes"], v["write"]["below_64_KiB"])
                         for v in report["variables"]] + [report["moved"]["write_calls"]])
            expect(report["seconds"] > 0 and report["time"]["sync"] > 0, str(report["time"]))
        expect(said[0] == said[1] == said[2] and len(said[0]) == 2, str(said))


def test_programs_of_a_script_are_runs():
    """One shell starts two programs: each has a name; $ESDM_RUN names both."""
    file = need_data("fields", "era5_u.nc")
    with Site() as site:
        base = site.file("runs.sqlite")
        script = f"'{tool('esdm-run')}' nccopy {file} esdm://s1.nc; '{tool('esdm-run')}' ncdump -h esdm://s1.nc"
        plain = client_environment({"ESDM_MONITOR": f"stats:{base},trace:{base}"})
        for name in ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PMIX_NAMESPACE", "ESDM_RUN"):
            plain.pop(name, None)
        run(["sh", "-c", script], env=plain)
        jobs = rows(base, "SELECT job FROM esdm_process")
        expect(len(jobs) == 2 == len(set(jobs)), str(jobs))
        latest = run([tool("esdm-explain"), f"{base}#latest"], env=no_leaks())
        expect(latest.stdout.startswith("ncdump") and not latest.stderr, latest.stdout + latest.stderr)
        both = run([tool("esdm-explain"), base], env=no_leaks())
        expect("2 processes" in both.stdout and "these are 2 runs as one" in both.stderr,
               both.stdout + both.stderr)
        run(["sh", "-c", script.replace("s1", "s2")], env={**plain, "ESDM_RUN": "night"})
        expect(rows(base, "SELECT count(*) FROM esdm_process WHERE job = 'night'") == [(2,)], "ESDM_RUN")


def test_report_takes_counters_from_a_database():
    """esdm-run --report beside ESDM_MONITOR: ESDM's counters of this program, of no other one."""
    file = need_data("fields", "era5_u.nc")
    with Site() as site:
        base = site.file("runs.sqlite")
        for name, batch in (("a", {}), ("b", {"PBS_JOBID": "7"}), ("c", {"PBS_JOBID": "7"})):
            done = client(["--report", "nccopy", file, f"esdm://{name}.nc"],
                          env={"ESDM_MONITOR": f"stats:{base}", **batch})
            line = next((li for li in done.stderr.splitlines() if "ESDM made" in li), done.stderr)
            raw, = rows(base, "SELECT s.bytes FROM esdm_statistic s JOIN esdm_process p USING (process) "
                              f"WHERE s.kind = 'encode' AND s.container = '{name}.nc'")[0]
            expect(f" of {raw / 1000:.0f} kB " in line, f"{line} {raw}")
        kept = site.file("none.txt")
        done = client(["--report", "nccopy", file, "esdm://d.nc"], env={"ESDM_MONITOR": f"stats:{kept}"})
        expect("What it did" in done.stderr, done.stderr)


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
        check_explained(f"{base}#42.it's", db_bytes=traced)
        expect_error(run([tool("esdm-explain"), f"{base}#43"], check=False, env=no_leaks()), "the run 43")


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


def test_a_file_without_its_log():
    """Half of the pages are newer than the others: it is said where the rest is."""
    file = need_data("fields", "era5_u.nc")
    with Site() as site:
        base = site.file("runs.sqlite")
        client(["nccopy", file, "esdm://a.nc"], env={"ESDM_MONITOR": f"stats:{base},trace:{base}"})
        whole = base.read_bytes()
        base.write_bytes(whole[:len(whole) // 2])
        told = run([tool("esdm-explain"), base], check=False, env=no_leaks())
        expect_error(told, "-wal at the end of its name")
        expect("malformed" in told.stderr, told.stderr)


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


SLOW_NAMES = """
#include <netdb.h>
#include <unistd.h>
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **res)
{
    (void) node, (void) service, (void) hints, (void) res;
    for (;;)
        pause();
}
"""


def test_a_name_that_is_looked_up_for_ever_holds_nobody_up():
    if SANITIZE or binaries() is None:
        print("without libpq, or with a runtime that has to be loaded first")
        return
    need_program("cc")
    file = need_data("fields", "era5_u.nc")
    with Site() as site:
        source, library = site.file("slow_names.c"), site.file("slow_names.so")
        source.write_text(SLOW_NAMES)
        run(["cc", "-shared", "-fPIC", "-o", library, source])
        url = "postgresql://esdm:secret@nowhere.invalid/postgres"
        client(["nccopy", file, "esdm://a.nc"], cwd=site.folder, timeout=120,
               env={"ESDM_MONITOR": f"stats:{url},trace:{url}", "LD_PRELOAD": str(library)})
        line = fallback(site.folder)
        expect("name of the host" in line["trace_failure"], str(line)[:400])
        expect("secret" not in json.dumps(line), "the password is told")
        run([tool("esdm-ls"), "a.nc"])


def url_of(server):
    return f"postgresql://esdm:secret@127.0.0.1:{server.port}/postgres"


def send(pids, number):
    """Some served clients that have gone, and may end meanwhile."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


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
        one, = server.sql("SELECT sum(bytes) FROM esdm_span WHERE kind = 'write' AND process = "
                          "(SELECT process FROM esdm_process ORDER BY realtime_ns DESC LIMIT 1)")
        check_explained(url_of(server) + "#latest", db_bytes=int(one))
        done = client(["--report", "nccopy", file, "esdm://r.nc"], env=env)
        expect("ESDM made" in done.stderr and "secret" not in done.stderr, done.stderr)

        # A server that is stopped: its processes answer nothing.
        pids = [server.process.pid, *map(int, subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(server.process.pid)], stdout=subprocess.PIPE,
            text=True, check=True).stdout.split())]
        send(pids, signal.SIGSTOP)
        begin = time.monotonic()
        try:
            client(["nccopy", file, "esdm://stopped.nc"], env=env, cwd=site.folder, timeout=120)
        finally:
            send(pids, signal.SIGCONT)
        print(f"beside a stopped server: {time.monotonic() - begin:.1f} s")
        line = fallback(site.folder)
        expect(line["dropped"] > 0 and "does not answer" in line["trace_failure"],
               str(line)[:400])
        expect("secret" not in json.dumps(line), "the password is told")
        run([tool("esdm-ls"), "stopped.nc"])


main(test_sqlite_has_what_files_have, test_a_file_without_its_log, test_statistics_alone_and_traces_alone,
     test_programs_of_a_script_are_runs, test_report_takes_counters_from_a_database, test_names_that_mislead, test_a_colleague_reads,
     test_a_wrong_url_keeps_its_password, test_programs_share_a_file, test_a_locked_file_holds_nobody_up, test_a_name_that_is_looked_up_for_ever_holds_nobody_up,
     test_postgres)
