#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Runs of all users' programs, kept by the site: who may write and read what, how much, and what tools
say of it."""

import fcntl
import json
import os
import pathlib
import shutil
import stat
import subprocess
import time

from esdmtest import (SANITIZE, Site, client, client_environment, expect, expect_error, main, need_data,
                      need_program, run, skip, tool)

ME = str(os.geteuid())
OTHER = 4021
LINES = 256 << 10
STUCK = """
#include <stdio.h>
#include <unistd.h>
int mkdirat(int folder, const char *path, unsigned mode)
{
    (void) folder, (void) path, (void) mode;
    fputs("stuck\\n", stderr);
    for (;;)
        pause();
    return 0;
}
"""
SILENT = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static int open_slowly(int folder, const char *path, int flags, unsigned mode)
{
    if (strcmp(path, "%s") == 0) {
        fputs("stuck\\n", stderr);
        for (;;)
            pause();
    }
    return (int) syscall(SYS_openat, folder, path, flags, mode);
}
int openat(int folder, const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    unsigned mode = va_arg(more, unsigned);
    va_end(more);
    return open_slowly(folder, path, flags, mode);
}
int openat64(int folder, const char *path, int flags, ...) __attribute__((alias("openat")));
""" % ME


def kept(site, program=None, user=ME):
    """Records of a user, those of one program or of all."""
    folder = site.file("runs") / user
    files = sorted(folder.glob(f"{program or ''}*.jsonl")) if folder.exists() else []
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def moved(record, kind):
    return sum(s["bytes"] for s in record["spans"] if s["kind"] == kind)


def record(program, started_s, seconds, speed, target="disk", **more):
    """As a session leaves it: so fast from and to one target."""
    size = int(speed * seconds)
    spans = [{"kind": k, "container": None, "dataset": None, "target": t, "count": 10, "failed": 0,
              "bytes": size, "seconds": seconds} for k, t in (("fetch", target), ("read", None))]
    return json.dumps({"what": "statistics", "version": 1, "program": program, "started_ns": int(started_s * 1e9),
                       "seconds": seconds, "spans": spans, **more})


def put(site, user, name, lines):
    folder = site.file("runs") / str(user)
    folder.mkdir(mode=0o755, exist_ok=True)
    file = folder / f"{name}.jsonl"
    file.write_text("".join(f"{line}\n" for line in lines))
    if int(user) != os.geteuid():
        os.chown(folder, int(user), int(user))
        os.chown(file, int(user), int(user))
    return file


def test_one_line_keeps_all_runs():
    """Without names unless the site wants them; not of who only looks; not after ESDM_MONITOR=off."""
    need_program("ncks", "ncdump")
    file = need_data("fields", "era5_u.nc")
    with Site(monitor={"runs": "runs"}) as site:
        folder = site.file("runs")
        expect(stat.S_IMODE(folder.stat().st_mode) == 0o1777, oct(folder.stat().st_mode))
        client(["nccopy", file, "esdm://secret/a.nc"])
        client(["ncks", "--trd", "-H", "-C", "-v", "era5_u", "esdm://secret/a.nc"])
        client(["ncdump", "-h", "esdm://secret/a.nc"])
        run([tool("esdm-ls")])
        found = kept(site)
        expect(sorted(r["program"] for r in found) == ["nccopy", "ncks"], str(found))
        written, read = kept(site, "nccopy")[0], kept(site, "ncks")[0]
        expect(moved(written, "write") > 300000 and moved(read, "read") > 300000, str(found))
        expect(moved(read, "fetch") > 0 and all(s["container"] is None and s["dataset"] is None
                                                for r in found for s in r["spans"]), str(found))
        expect("secret" not in json.dumps(found) and "era5" not in json.dumps(found), "names")
        expect(not list(site.folder.glob("esdm-stats*")), "statistics that nobody asked for")
        client(["nccopy", file, "esdm://b.nc"], env={"ESDM_MONITOR": "off"})
        expect(len(kept(site, "nccopy")) == 1, "though it was off")
        client(["nccopy", file, "esdm://b.nc"], env={"ESDM_MONITOR": f"stats:{site.file('s.json')}"})
        expect(len(kept(site, "nccopy")) == 2 and site.file("s.json").exists(), "beside statistics")
        client(["nccopy", file, "esdm://b.nc"], env={"PMI_RANK": "1"})
        expect(len(kept(site, "nccopy")) == 2, "a rank that is not the first")
    with Site(monitor={"runs": "runs", "runs_names": True}) as site:
        client(["nccopy", file, "esdm://a.nc"])
        names = {(s["container"], s["dataset"]) for r in kept(site) for s in r["spans"]}
        expect(("a.nc", "/era5_u") in names, str(names))
    with Site(make=False, monitor={"runs": 5}):
        expect_error(run([tool("esdm-mkfs")], check=False), "monitor.runs")
    with Site(make=False, monitor={"runs": "runs", "runs_names": "yes"}):
        expect_error(run([tool("esdm-mkfs")], check=False), "monitor.runs_names", "true or false")


def test_nobody_fails_for_it():
    """A folder that is gone, a file, full, unsafe, or held by another one: programs run as they did."""
    file = need_data("fields", "era5_u.nc")
    with Site(monitor={"runs": "runs"}) as site:
        folder = site.file("runs")
        folder.rmdir()
        client(["nccopy", file, "esdm://a.nc"])
        told = run([tool("esdm-mkfs"), "--check"]).stdout
        expect("note: runs are not recorded" in told and "not there" in told, told)
        folder.write_text("no folder")
        client(["nccopy", file, "esdm://a.nc"])
        folder.unlink()
        folder.mkdir()
        folder.chmod(0o777)
        client(["nccopy", file, "esdm://a.nc"])
        expect(not list(folder.iterdir()), "where others can replace it")
        told = run([tool("esdm-mkfs"), "--check"]).stdout
        expect("sticky bit" in told, told)
        folder.chmod(0o1777)
        client(["nccopy", file, "esdm://a.nc"])
        expect(len(kept(site)) == 1, str(kept(site)))
        expect("runs are not" not in run([tool("esdm-mkfs"), "--check"]).stdout, "it is good")
        # Somebody holds the lock for ever.
        with open(folder / ME / ".lock", "r+", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            client(["nccopy", file, "esdm://a.nc"])
        expect(len(kept(site)) == 1, f"{kept(site)}")
        # A server that never answers.
        if shutil.which("cc") is not None and not SANITIZE:
            stuck = site.file("stuck.so")
            site.file("stuck.c").write_text(STUCK)
            run(["cc", "-shared", "-fPIC", "-o", stuck, site.file("stuck.c")])
            done = client(["nccopy", file, "esdm://a.nc"], env={"LD_PRELOAD": str(stuck)})
            expect("stuck" in done.stderr, done.stderr)
        # A FIFO in its place would hold who opens it.
        for old in (folder / ME).glob("*.jsonl"):
            old.unlink()
            os.mkfifo(old)
        client(["nccopy", file, "esdm://a.nc"])
        expect_error(run([tool("esdm-explain"), "--site"], check=False), "no records of runs")


def explained(site, *command, env=None):
    page = site.file("page.html")
    page.unlink(missing_ok=True)
    done = subprocess.run([tool("esdm-run"), "-q", f"--report={page}", *map(str, command)], text=True,
                          env=client_environment(env), stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=600)
    expect(done.returncode == 0 and page.exists(), f"{done.returncode} {done.stderr}")
    return done.stderr


def test_reports_do_not_need_it():
    """A run that cannot be kept has its page; a folder that hangs when runs are read or kept holds nobody up."""
    file = need_data("fields", "era5_u.nc")
    with Site(monitor={"runs": "runs"}) as site:
        copy, folder = site.file("copy.nc"), site.file("runs")
        folder.chmod(0o777)
        told = explained(site, "nccopy", file, copy)
        expect("not kept for the site" in told, told)
        folder.chmod(0o1777)
        told = explained(site, "nccopy", file, copy)
        expect("not kept" not in told and len(kept(site, "nccopy")) == 1, told)
        if shutil.which("cc") is None or SANITIZE:
            return
        for name, source, words in (("write", STUCK, "this run is not kept"), ("read", SILENT, "left out")):
            site.file(f"{name}.c").write_text(source)
            run(["cc", "-shared", "-fPIC", "-o", site.file(f"{name}.so"), site.file(f"{name}.c")])
            records, page = site.file(f"records-{name}"), site.file(f"{name}.html")
            client([tool("esdm-run"), "-q", "--records", records, "nccopy", file, copy])
            done = subprocess.run([tool("esdm-explain"), f"--page={page}", "--note-run", records], text=True, timeout=600,
                                  env=client_environment({"LD_PRELOAD": str(site.file(f"{name}.so"))}), check=False,
                                  stdin=subprocess.DEVNULL, capture_output=True)
            told = done.stdout + done.stderr
            expect(done.returncode == 0 and page.exists() and "stuck" in told and words in told, f"{name}: {told}")


def test_who_asks_for_them_is_told():
    """A folder that hangs: those who ask for its runs wait for ten seconds, and say so."""
    if shutil.which("cc") is None or SANITIZE:
        skip("needs a C compiler, without a sanitizer")
    with Site(monitor={"runs": "runs"}) as site:
        for number in range(4):
            put(site, ME, "prog", [record("prog", 10 + number, 1.0, 1e6)])
        run(["cp", site.config, f"{site.config}.before-esdm-tune"])
        site.file("read.c").write_text(SILENT)
        run(["cc", "-shared", "-fPIC", "-o", site.file("read.so"), site.file("read.c")])
        for command in ([tool("esdm-explain"), "--site"], [tool("esdm-tune"), "--look-back"]):
            done = subprocess.run(command, env=client_environment({"LD_PRELOAD": str(site.file("read.so"))}), text=True,
                                  capture_output=True, stdin=subprocess.DEVNULL, timeout=600, check=False)
            expect("stuck" in done.stderr, f"{command}: {done.stderr}")
            expect_error(done, "monitor.runs", "has not answered for 10 s", "nothing is told of any run")


def test_a_folder_that_is_not_there_is_made_by_mkfs():
    with Site(monitor={"runs": "runs"}) as site:
        site.file("runs").rename(site.file("away"))
        expect_error(run([tool("esdm-explain"), "--site"], check=False), "runs' does not exist (esdm-mkfs makes it)")
        run([tool("esdm-mkfs")])
        expect("No such file" not in run([tool("esdm-explain"), "--site"], check=False).stderr, "it is there")


def test_users_may_close_their_own():
    """What a user has taken from others stays so; the site's folder, closed later, closes what is in it."""
    file = need_data("fields", "era5_u.nc")
    with Site(monitor={"runs": "runs"}) as site:
        own = site.file("runs") / ME

        def modes():
            client(["nccopy", file, "esdm://a.nc"])
            return [oct(stat.S_IMODE(p.stat().st_mode)) for p in (own, next(own.glob("nccopy*")))]
        expect(modes() == ["0o755", "0o644"], str(modes()))
        own.chmod(0o700)
        expect(modes() == ["0o700", "0o644"], str(modes()))
        next(own.glob("nccopy*")).chmod(0o600)
        own.chmod(0o755)
        expect(modes() == ["0o755", "0o600"], str(modes()))
        site.file("runs").chmod(0o1733)
        expect(modes() == ["0o700", "0o600"], str(modes()))


def test_folders_of_others_are_named():
    """Who makes a folder of another one's number keeps that one's runs away: the check says so."""
    with Site(monitor={"runs": "runs"}) as site:
        (site.file("runs") / ME).mkdir(mode=0o755)
        expect("not recorded" not in run([tool("esdm-mkfs"), "--check"]).stdout, "the own one")
        for number in range(10):
            (site.file("runs") / str(70001 + number)).mkdir()
        told = run([tool("esdm-mkfs"), "--check"]).stdout
        expect(told.count(f"belongs to user {ME};") == 8 and "those of 2 others" in told, told)


def test_nobody_hides_the_others():
    """One user's very many lines: the last 2,000 of them count."""
    with Site(monitor={"runs": "runs"}) as site:
        root = os.geteuid() == 0
        many = OTHER if root else int(ME)
        for number in range(50):
            put(site, many, f"p{number}", [record(f"p{number}", 1000 * number + k + 1, 1.0, 1e6) for k in range(500)])
        if root:
            put(site, ME, "model", [record("model", 5, 1.0, 1e6)])
        report = json.loads(run([tool("esdm-explain"), "--site", "--json"]).stdout)
        expect(report["runs"] == 2000 + root and report["users"] == 1 + root, f"{report['runs']} {report['users']}")
        names = {p["program"] for p in report["programs"]}
        expect(names - {"model"} == {"p46", "p47", "p48", "p49"} and (not root or "model" in names), str(names))


def test_it_is_bounded():
    """A full file keeps its newer half, a full folder its newest programs; lines cut or damaged are left out."""
    file = need_data("fields", "era5_u.nc")
    with Site(monitor={"runs": "runs"}) as site:
        client(["nccopy", file, "esdm://a.nc"])
        own = next((site.file("runs") / ME).glob("nccopy*"))
        one = record("nccopy", 1, 2.0, 1e6)
        own.write_text(f"{one}\n" * (LINES // (len(one) + 1)))
        client(["nccopy", file, "esdm://a.nc"])
        lines = own.read_text().splitlines()
        expect(LINES // 3 < own.stat().st_size < LINES, str(own.stat().st_size))
        expect(json.loads(lines[0])["seconds"] == 2.0 and moved(json.loads(lines[-1]), "write") > 300000, lines[-1])
        expect(stat.S_IMODE(own.stat().st_mode) == 0o644, oct(own.stat().st_mode))
        for number in range(300):
            (own.parent / f"p{number}.jsonl").write_text("{}\n")
            os.utime(own.parent / f"p{number}.jsonl", (number, number))
        own.unlink()
        client(["nccopy", file, "esdm://a.nc"])
        names = {f.name for f in own.parent.glob("*.jsonl")}
        expect("p0.jsonl" not in names and own.name in names, "the oldest goes")
        own.write_text(f"{one}\n" + '{"what": "stat\n[1]\n\x00\xff\n' + f"{one}")
        report = json.loads(run([tool("esdm-explain"), "--site", "--json"]).stdout)
        expect(report["runs"] == 2, str(report))


def as_user(uid, command, env=None, check=True):
    done = subprocess.run(command, env=client_environment(env), user=uid, group=uid, extra_groups=[],
                          text=True, capture_output=True, stdin=subprocess.DEVNULL, check=False, cwd="/")
    if check:
        expect(done.returncode == 0, f"{command}: {done.stderr}")
    return done


def test_users_cannot_write_for_others():
    """With real accounts: own folders; a folder, link or file that somebody else has put there is left alone;
    who may not list the site's folder sees the own runs, the operator all."""
    if os.geteuid() != 0 or SANITIZE:
        skip("needs root, without a sanitizer")
    with Site(monitor={"runs": "/nowhere"}, make=False) as site:
        site.folder.chmod(0o755)
        folder = site.file("runs")
        folder.mkdir()
        folder.chmod(0o1777)
        config = json.loads(site.config.read_text())
        config["monitor"]["runs"] = str(folder)
        site.config.write_text(json.dumps(config))
        site.config.chmod(0o644)
        probe = as_user(OTHER, [tool("esdm-explain"), "--site"], check=False)
        if probe.returncode not in (0, 3):
            skip(f"other users cannot use this build: {probe.stderr}")
        put(site, 0, "prog-1", [record("prog", 10, 1.0, 1e6)])
        put(site, OTHER, "prog-1", [record("prog", 20, 1.0, 1e6)])

        def seen(uid):
            done = as_user(uid, [tool("esdm-explain"), "--site", "--json"], check=False)
            return json.loads(done.stdout)["runs"] if done.returncode == 0 else 0
        expect((seen(0), seen(OTHER)) == (2, 2), f"{seen(0)} {seen(OTHER)}")
        # What is said to be of user 7, but was put there by another one, or leads elsewhere.
        put(site, OTHER, "x", [])
        forged = folder / "7"
        forged.mkdir()
        (forged / "prog-1.jsonl").write_text(record("prog", 30, 1.0, 1e6) + "\n")
        (folder / "8").symlink_to(folder / str(OTHER))
        os.chown(forged / "prog-1.jsonl", 7, 7)
        (folder / str(OTHER) / "linked.jsonl").symlink_to(folder / "0" / "prog-1.jsonl")
        (folder / str(OTHER) / "other.jsonl").write_text(record("prog", 40, 1.0, 1e6) + "\n")
        expect(seen(0) == 2, f"forged ones count: {seen(0)}")
        folder.chmod(0o1733)
        expect((seen(0), seen(OTHER)) == (2, 1), f"{seen(0)} {seen(OTHER)}")


def test_modes_follow_the_folder():
    """Who may read the site's folder may read what is in it."""
    file = need_data("fields", "era5_u.nc")
    for mode, folders, files in ((0o1777, 0o755, 0o644), (0o1733, 0o700, 0o600), (0o1773, 0o750, 0o640)):
        with Site(monitor={"runs": "runs"}) as site:
            site.file("runs").chmod(mode)
            old = os.umask(0o077)
            try:
                client(["nccopy", file, "esdm://a.nc"])
            finally:
                os.umask(old)
            own = site.file("runs") / ME
            got = [stat.S_IMODE(p.stat().st_mode) for p in (own, next(own.glob("nccopy*")))]
            expect(got == [folders, files], f"{oct(mode)}: {[oct(m) for m in got]}")


def reported(site, *command, check=True):
    done = subprocess.run([tool("esdm-run"), "-q", "--report", "--json", *map(str, command)], text=True,
                          env=client_environment(), stdin=subprocess.DEVNULL, capture_output=True,
                          check=False)
    expect(not check or done.returncode == 0, done.stderr)
    return json.loads(done.stderr[done.stderr.index("{\n"):])


def test_reports_compare():
    """Plain programs and those with ESDM: beside earlier runs, of all users; what is far off is said."""
    need_program("nccopy")
    file = need_data("fields", "era5_u.nc")
    with Site(monitor={"runs": "runs"}) as site:
        copy = site.file("copy.nc")
        report = reported(site, "nccopy", file, copy)
        expect("earlier_runs" not in report, str(report.get("earlier_runs")))
        note = [r for r in kept(site, "nccopy") if r.get("by") == "esdm-run"]
        expect(len(note) == 1 and moved(note[0], "file-read") > 0.5 * file.stat().st_size, str(note))
        report = reported(site, "nccopy", file, copy)["earlier_runs"]
        expect(report["program"] == "nccopy" and report["runs"] == 1 and report["users"] == 1, str(report))
        expect(not any(row["unusual"] for row in report["compared"]), "one run is not enough")
        # Earlier ones, ten thousand times as fast, and so many that the runs of this test hardly count beside them.
        now = time.time()
        own = next((site.file("runs") / ME).glob("nccopy*"))
        own.write_text("".join(record("nccopy", now - 1000 * k, 1e-6, 1e6, by="esdm-run") + "\n"
                               for k in range(24, 0, -1)))
        report = reported(site, "nccopy", file, copy)["earlier_runs"]
        whole = [row for row in report["compared"] if row["what"] == "the whole run"]
        expect(whole and whole[0]["unusual"] and whole[0]["runs"] == 24, str(report))

        # Requests of ESDM to its target.
        reported(site, "nccopy", file, "esdm://a.nc")
        fetches = [{"kind": "fetch", "target": s["target"]} for r in kept(site) for s in r["spans"]
                   if s["kind"] == "append"]
        expect(fetches, "no target")
        target = fetches[0]["target"]
        client(["ncks", "--trd", "-H", "-C", "-v", "era5_u", "esdm://a.nc"])
        own = next((site.file("runs") / ME).glob("ncks*"))
        own.write_text("".join(record("ncks", now - 1000 * k, 1.0, 1e14, target) + "\n" for k in range(6, 0, -1)))
        site.file("big.py").write_text("")
        report = reported(site, "ncks", "--trd", "-H", "-C", "-v", "era5_u", "esdm://a.nc")["earlier_runs"]
        slow = [row for row in report["compared"] if row["what"].endswith(f"read from target {target}")]
        for row in slow:  # reads of less than a millisecond say nothing
            expect(row["unusual"] and row["now"] < row["usual"], str(report))
        text = subprocess.run([tool("esdm-run"), "-q", "--report", "nccopy", file, copy], text=True,
                              env=client_environment(), capture_output=True, check=True).stderr
        expect("Compared with the" in text and "earlier runs of nccopy, by 1 user" in text, text)
        expect("UNUSUAL: " in text and "times as long as usual" in text, text)


def test_the_site_at_a_glance():
    """Programs, users, and a target that is slow today, from records whose numbers are known."""
    with Site(monitor={"runs": "runs"}) as site:
        now = time.time()
        old = [record("model\x1b[31m", now - 86400 * (2 + k), 2.0, 100e6 * (1 + k / 100)) for k in range(8)]
        put(site, ME, "model", old + [record("model\x1b[31m", now - 60, 2.0, 10e6)])
        report = json.loads(run([tool("esdm-explain"), "--site", "--json"]).stdout)
        expect(report["runs"] == 9 and report["programs"][0]["runs"] == 9, str(report))
        expect(abs(report["programs"][0]["read_bytes"] - (8 * 200e6 * 1.035 + 20e6)) < 1e3, str(report))
        target = report["targets"][0]
        expect(target["unusual"] and target["last_day"]["usual"] == 10e6 and target["before"]["runs"] == 8,
               str(target))
        text = run([tool("esdm-explain"), "--site"]).stdout
        expect("UNUSUAL" in text and "\x1b" not in text, repr(text))
        advice = json.loads(run([tool("esdm-advise"), "--site", "--json", need_data("fields", "era5_u.nc")]).stdout)
        expect(advice["site_runs"] == 9 and advice["site_read_bytes"] == report["programs"][0]["read_bytes"],
               str(advice))
    with Site():
        expect_error(run([tool("esdm-explain"), "--site"], check=False), "keeps no runs", "monitor")


def test_looking_back_after_a_change():
    """Runs that became slower bring the former configuration back, others do not."""
    with Site(monitor={"runs": "runs"}) as site:
        former = json.loads(site.config.read_text())
        config = dict(former, engine=dict(former.get("engine", {}), fragment="1 MiB"))
        backup = pathlib.Path(f"{site.config}.before-esdm-tune")
        expect_error(run([tool("esdm-tune"), "--look-back"], check=False), "has not changed this site")
        backup.write_text(json.dumps(former))
        site.config.write_text(json.dumps(config))
        changed = time.time() - 5000
        os.utime(backup, (changed, changed))

        def runs(speed_after):
            put(site, ME, "model", [record("model", changed + 100 * k, 1.0 + k % 2 / 50, 100e6 if k < 0 else speed_after)
                                    for k in range(-4, 4)])
        put(site, ME, "model", [record("model", changed - 100, 1.0, 100e6)])
        expect_error(run([tool("esdm-tune"), "--look-back"], check=False), "no program has 3 runs")
        runs(101e6)
        report = json.loads(run([tool("esdm-tune"), "--look-back", "--apply", "--json"]).stdout)
        expect(not report["slower"] and json.loads(site.config.read_text()) == config, str(report))
        runs(80e6)
        text = run([tool("esdm-tune"), "--look-back"]).stdout
        expect("slower than it was" in text and "Nothing was changed" in text, text)
        expect(json.loads(site.config.read_text()) == config, "changed without --apply")
        report = json.loads(run([tool("esdm-tune"), "--look-back", "--apply", "--json"]).stdout)
        expect(report["slower"] and abs(report["ratio"] - 1.25) < 0.01, str(report))
        expect(json.loads(site.config.read_text()) == former, "the former one is not back")
        expect_error(run([tool("esdm-tune"), "--look-back", "--kernel", "gcrm"], check=False), "runs nothing")


def test_invented_records_decide_nothing():
    """Times that cannot be count for nothing, and many programs of one user as one vote."""
    with Site(monitor={"runs": "runs"}) as site:
        config = json.loads(site.config.read_text())
        backup = pathlib.Path(f"{site.config}.before-esdm-tune")
        backup.write_text(json.dumps(dict(config, engine=dict(config.get("engine", {}), fragment="1 MiB"))))
        changed = time.time() - 5000
        os.utime(backup, (changed, changed))

        def lines(name, before, after):
            return [record(name, changed + 100 * k + 50, 1.0, before if k < 0 else after) for k in range(-4, 4)]

        def invented(name):
            return [record(name, changed + 100 * k + 50, 1.0, 1e8).replace('"seconds": 1.0, "spans"', '"seconds": 2.0, "spans"')
                    .replace('"seconds": 1.0', f'"seconds": {"1e-300" if k < 0 else "1e8"}') for k in range(-4, 4)]
        put(site, ME, "model", lines("model", 100e6, 101e6))
        for number in range(9):
            put(site, ME, f"x{number}", invented(f"x{number}"))
        report = json.loads(run([tool("esdm-tune"), "--look-back", "--apply", "--json"]).stdout)
        expect(not report["slower"] and 0.9 < report["ratio"] < 1 and len(report["programs"]) == 1, str(report))
        if os.geteuid() != 0:
            return
        for number in range(40):
            put(site, OTHER, f"y{number}", lines(f"y{number}", 1e9, 1e6))
        report = json.loads(run([tool("esdm-tune"), "--look-back", "--apply", "--json"]).stdout)
        expect(not report["slower"] and (report["users"], report["users_slower"]) == (2, 1), str(report))
        expect(json.loads(site.config.read_text()) == config, "it was taken back")
        put(site, OTHER + 1, "model", lines("model", 100e6, 50e6))
        report = json.loads(run([tool("esdm-tune"), "--look-back", "--json"]).stdout)
        expect(report["slower"] and abs(report["ratio"] - 2) < 0.01, str(report["ratio"]))


def test_many_at_once():
    """All of them are kept, each as a whole."""
    file = need_data("fields", "era5_u.nc")
    with Site(monitor={"runs": "runs"}) as site:
        client(["nccopy", file, "esdm://a.nc"])
        env = client_environment()
        some = [subprocess.Popen([tool("esdm-run"), "-q", "ncdump", "esdm://a.nc"], env=env,
                                 stdout=subprocess.DEVNULL) for _ in range(8)]
        expect(all(one.wait() == 0 for one in some), "a program failed")
        expect(len(kept(site, "ncdump")) == 8, str(len(kept(site, "ncdump"))))


if shutil.which("nccopy") is None:
    skip("program not installed: nccopy")
main(test_a_folder_that_is_not_there_is_made_by_mkfs, test_one_line_keeps_all_runs, test_nobody_fails_for_it, test_it_is_bounded, test_users_cannot_write_for_others,
     test_modes_follow_the_folder, test_reports_compare, test_the_site_at_a_glance, test_looking_back_after_a_change,
     test_many_at_once, test_reports_do_not_need_it, test_users_may_close_their_own, test_folders_of_others_are_named,
     test_nobody_hides_the_others, test_who_asks_for_them_is_told, test_invented_records_decide_nothing)
