#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""A lost catalogue comes back: from what lies on the targets alone, from a backup and what was
committed after it, and from a backup that somebody has put back by hand."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys

from esdmtest import (BUILD, SANITIZE, SOURCE, Site, by_size, client, client_environment, environment,
                      expect, expect_error, is_pack, main, run, sanitizer_preload, tool)
from postgres import Server, skip_without_postgres
from s3server import Server as S3Server

sys.path.insert(0, str(SOURCE / "tests/faults"))
from faults import (check_last_commit, committed, count_calls, must, need_strace, program,  # noqa: E402
                    strace, sweep)
from stores import s3_site  # noqa: E402

MKFS = tool("esdm-mkfs")
JOURNAL = "0" * 24 + "6a6f7572"  # of packs
COUNT = by_size(12, 40, 1000)
SQLITE = {"plugin": "sqlite", "directory": "metadata"}
POSIX = {"name": "disk", "plugin": "posix", "directory": "packs"}

WRITE = """
import netCDF4, numpy, sys
first, last, steps = map(int, sys.argv[1:])
for n in range(first, last):
    d = netCDF4.Dataset(f"esdm://exp/{n}.nc", "w")
    d.number = n
    d.createDimension("t", None); d.createDimension("x", 600)
    v = d.createVariable("v", "f4", ("t", "x")); v.units = "K"
    s = d.createVariable("s", "i4", ("t",))
    for t in range(steps):
        v[t] = numpy.arange(600) + 1000 * n + t
        s[t] = n + t
        d.sync()
        if t == 1:
            w = d.createVariable("late", "f8", ("x",)); w[:] = n
    d.close()
"""


def write(first, last, steps=3):
    client(["/usr/bin/python3", "-c", WRITE, str(first), str(last), str(steps)])


def contents(site):
    """All containers as text, in one process each."""
    dumped = {}
    for name in listed():
        out = site.file("out.nc")
        run([tool("esdm-cp"), "-f", f"esdm://{name}", out])
        dumped[name] = run(["ncdump", out]).stdout.split("{", 1)[1]
        out.unlink()
    return dumped


def listed():
    """Name to what esdm-ls says of it."""
    told = json.loads(run([tool("esdm-ls"), "--json"]).stdout)
    return {c["name"]: c for c in told["containers"]}


def facts(told):
    """What must be the same afterwards."""
    return {name: {k: v for k, v in c.items() if k not in ("snapshots",)}
            for name, c in told.items()}


def lose(site):
    shutil.rmtree(site.file("metadata"))


def restore(*options):
    return run([MKFS, "--restore", *options], check=False)


def expect_restored(done, status=0):
    expect(done.returncode == status, f"status {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def check_sound():
    run([tool("esdm-fsck"), "--data"])
    run([MKFS, "--check"])


def sqlite_site(**changes):
    return Site(targets=[POSIX], metadata=SQLITE, **changes)


def test_targets_alone_bring_every_container_back():
    with sqlite_site() as site:
        write(0, COUNT)
        write(3, 5, 20)  # replaced
        run([tool("esdm-rm"), "exp/0.nc"])
        run([tool("esdm-cp"), "esdm://exp/1.nc", "esdm://other.nc"])
        before, values = facts(listed()), contents(site)
        lose(site)
        expect_error(run([tool("esdm-ls")], check=False), "esdm-mkfs")
        told = expect_restored(restore("--dry-run"))
        expect(not site.file("metadata").exists() and "journals alone" in told, told)
        done = json.loads(expect_restored(restore("--json")))
        expect(done["result"]["lost"] == 0 and done["result"]["backup"] is None, f"{done}")
        expect(facts(listed()) == before, f"{listed()}\nwas {before}")
        expect(contents(site) == values, "other values")
        check_sound()
        told = run([tool("esdm-find"), "number = 7"]).stdout
        expect("exp/7.nc" in told, told)
        write(COUNT, COUNT + 1)  # the site goes on, and can be lost again
        before, values = facts(listed()), contents(site)
        lose(site)
        told = expect_restored(restore())
        expect("backup of" in told, told)
        expect(facts(listed()) == before and contents(site) == values, "after the second loss")
        check_sound()
        told = expect_restored(restore())  # nothing is missing
        expect("0 came from" in told and facts(listed()) == before, told)



LARGE = """
import netCDF4, numpy, sys
random = numpy.random.default_rng(1)
variables = int(sys.argv[1])
d = netCDF4.Dataset("esdm://large.nc", "w")
d.table = random.random(400000)                  # a structure of some 8 MB
d.createDimension("x", 250)
for i in range(variables):                       # what lies in index pages: 1 KB each
    d.createVariable(f"v{i}", "f4", ("x",), fill_value=False)
    d[f"v{i}"][:] = random.random(250)
d.sync()
for i in range(variables // 2):
    d[f"v{i}"][:] = random.random(250)
d.close()
"""


def test_commits_larger_than_a_record_come_back():
    variables = 5000  # some 5 MB of pages: more than a record of the journal takes
    with sqlite_site() as site:
        client(["/usr/bin/python3", "-c", LARGE, str(variables)])
        # Pages of several ranks go into records of their own before the commit's.
        run([BUILD / "tests/integration/ranks/ranks_large_commit", "ranks", str(variables)])
        noted = sum(p.stat().st_size for p in site.packs.rglob("*") if p.name.startswith(JOURNAL))
        expect(noted > (8 << 20) + variables * 2500, f"the journal has {noted} bytes")
        before, values = facts(listed()), contents(site)
        lose(site)
        done = json.loads(expect_restored(restore("--json")))
        expect(done["result"]["lost"] == 0 and done["result"]["backup"] is None, f"{done}")
        expect(facts(listed()) == before and contents(site) == values, "other contents")
        check_sound()


def age_backups(site):
    """The next program that commits makes a backup."""
    with sqlite3.connect(site.file("metadata/catalogue.sqlite")) as database:
        database.execute("UPDATE store SET value = '1000' WHERE key = 'fact:esdm/backup'")
    database.close()


def backups(site):
    return sorted(site.packs.rglob("0" * 24 + "6261636b-*"))


def test_a_backup_and_what_came_after_it():
    with sqlite_site() as site:
        write(0, 4)
        expect(not backups(site), "a backup of a site that has just been made")
        age_backups(site)
        write(4, 8)
        expect(len(backups(site)) == 1, f"{backups(site)}")
        by_hand = shutil.copy(site.file("metadata/catalogue.sqlite"), site.file("copy"))
        write(8, 11)
        write(2, 3, 30)
        run([tool("esdm-rm"), "exp/5.nc"])
        before, values = facts(listed()), contents(site)
        lose(site)
        told = expect_restored(restore())
        expect("backup of" in told and facts(listed()) == before, told)
        expect(contents(site) == values, "other values")
        check_sound()
        lose(site)  # a copy that was put back without the mark
        site.file("metadata").mkdir()
        shutil.copy(by_hand, site.file("metadata/catalogue.sqlite"))
        expect_error(run([tool("esdm-ls")], check=False), "not marked")
        told = expect_restored(restore())
        expect("it is kept" in told and facts(listed()) == before, f"{told}{listed()}\nwas {before}")
        expect(contents(site) == values, "other values")
        check_sound()
        newest = backups(site)[-1]  # damaged backups cost nothing
        data = bytearray(newest.read_bytes())
        data[len(data) // 2] ^= 1
        newest.write_bytes(data)
        lose(site)
        told = expect_restored(restore())
        expect("not whole" in told and facts(listed()) == before, told)


def test_packs_that_came_after_the_backup_are_kept():
    with sqlite_site(backup={"journal": False}, engine={"inline": 0}) as site:
        write(0, 2)
        age_backups(site)
        write(2, 3)
        write(3, 4)  # no journal: nobody knows of it afterwards
        packs = site.pack_files()
        lose(site)
        expect_restored(restore())
        expect("exp/2.nc" in listed() and "exp/3.nc" not in listed(), f"{listed()}")
        told = run([tool("esdm-fsck")]).stdout
        expect("1 of containers that the catalogue does not know" in told and
               "esdm-mkfs --restore" in told, told)
        run([tool("esdm-gc"), "--age", "0", "--yes"], check=False)
        expect(site.pack_files() == packs, "esdm-gc removed packs")
        complete = [tool("esdm-gc"), "--age", "0", "--restoration-complete"]
        told = run([*complete, "--dry-run"]).stdout
        expect("was brought back at" in told, told)
        expect_error(run(complete, check=False), "say --yes")
        expect(site.pack_files() == packs, "esdm-gc removed packs without --yes")
        names = set(listed())
        run([*complete, "--yes"])
        left = site.pack_files()
        expect(len(left) < len(packs) and set(left) <= set(packs), f"{left}\nwere {packs}")
        expect(set(listed()) == names, "containers went")
        run([tool("esdm-fsck"), "--data"])
        told = run([*complete, "--yes"]).stderr
        expect("was not brought back" in told, told)


REWRITE = """
import netCDF4, numpy, sys
name, seed = sys.argv[1], int(sys.argv[2])
values = numpy.random.default_rng(seed).random(300000)
d = netCDF4.Dataset("esdm://big.nc", "w" if seed == 0 else "a")
if seed == 0:
    d.createDimension("x", 300000)
    for n in "v", "w":
        d.createVariable(n, "f8", ("x",))
d[name][:] = values
d.close()
"""


def rewrite(name, seed):
    client(["/usr/bin/python3", "-c", REWRITE, name, str(seed)])


def test_rewriting_and_draining_keep_what_came_after_the_backup():
    spare = {"name": "spare", "plugin": "posix", "directory": "spare"}
    with Site(targets=[POSIX, spare], metadata=SQLITE, backup={"journal": False},
              engine={"inline": 0}) as site:

        def packs():
            return {p for folder in ("packs", "spare") for p in site.file(folder).rglob("*")
                    if is_pack(p)}

        rewrite("v", 0)
        age_backups(site)
        write(0, 1)
        before = packs()
        rewrite("w", 1)  # no journal: nobody knows of it afterwards
        unknown = packs() - before
        expect(unknown, "the data lie in no pack of their own")
        lose(site)
        expect_restored(restore())
        rewrite("v", 2)  # frees what it replaces, where that is known
        expect(unknown <= packs(), f"rewriting removed {unknown - packs()}")
        for target in "disk", "spare":
            run([tool("esdm-drain"), "--age", "0s", "--from", target], check=False)
            expect(unknown <= packs(), f"esdm-drain removed {unknown - packs()}")
        lose(site)  # and a second restoration does not forget it
        expect_restored(restore())
        run([tool("esdm-gc"), "--age", "0", "--yes"], check=False)
        expect(unknown <= packs(), f"esdm-gc removed {unknown - packs()}")



def test_fragments_that_were_moved_are_found_where_they_are():
    spare = {"name": "spare", "plugin": "posix", "directory": "spare"}
    with Site(targets=[POSIX, spare], metadata=SQLITE, engine={"inline": 0}) as site:
        rewrite("v", 0)
        rewrite("w", 1)
        write(0, 3)
        values = contents(site)
        for target, folder in ("disk", "packs"), ("spare", "spare"), ("disk", "packs"):
            run([tool("esdm-drain"), "--age", "0s", "--from", target])
            left = [p for p in site.file(folder).rglob("*") if is_pack(p)]
            expect(not left, f"esdm-drain left {left}")
        write(3, 4)
        values |= {"exp/3.nc": contents(site)["exp/3.nc"]}
        before = facts(listed())
        lose(site)
        told = expect_restored(restore())
        expect("journals alone" in told and facts(listed()) == before, f"{told}{listed()}")
        expect(contents(site) == values, "other values")
        check_sound()


def check_alone(site, lose_it):
    write(0, 5)
    write(1, 2, 20)
    run([tool("esdm-rm"), "exp/0.nc"])
    for attempt in range(2):  # by the journal, then by the backup that a restoration makes
        before, values = facts(listed()), contents(site)
        lose_it()
        expect_restored(restore())
        expect(facts(listed()) == before, f"{listed()}\nwas {before}")
        expect(contents(site) == values, "other values")
        check_sound()
        write(6 + attempt, 7 + attempt)


def test_kyoto_cabinet_brings_them_back():
    with Site(targets=[{"name": "kv", "plugin": "kv", "directory": "kv"}],
              metadata=SQLITE) as site:
        check_alone(site, lambda: lose(site))


def test_a_bucket_brings_them_back():
    with S3Server() as server, s3_site(server, metadata=SQLITE) as site:
        check_alone(site, lambda: lose(site))


def test_postgresql_comes_back():
    skip_without_postgres()
    with Server() as server:
        metadata = {"plugin": "postgres", "host": "127.0.0.1", "port": server.port,
                    "database": "postgres", "user": "esdm", "schema": "lost"}
        with Site(targets=[POSIX], metadata=metadata) as site:
            check_alone(site, lambda: server.sql("DROP SCHEMA lost CASCADE"))


def test_what_is_missing_is_told_and_gives_status_5():
    with sqlite_site(engine={"inline": 0}) as site:
        write(0, 2)
        lose(site)
        lost = [p for p in site.packs.rglob("*") if is_pack(p)]
        expect(lost, "no data pack")
        lost[0].unlink()
        told = expect_restored(restore("--dry-run"), 5)
        expect("lack something" in told, told)
        told = expect_restored(restore(), 5)
        expect("lack something; run esdm-fsck" in told and len(listed()) == 2, told)


def exchange(first, second, spare):
    names = [f"esdm://{name}" for name in (first, second, spare)]
    client(["/usr/bin/python3", "-c", "import os, sys\na, b, c = sys.argv[1:]\n"
            "os.rename(a, c); os.rename(b, a); os.rename(c, b)", *names])


def test_a_restoration_that_is_killed_loses_no_name():
    """The catalogue is older than the journals; each call but the last is killed, a little later each
    time: in the middle of exchanging records, of exchanging names, and of opening it again."""
    need_strace()
    calls = "pwrite64,fdatasync,unlink"
    with sqlite_site() as site:
        write(0, 6, 1)
        older = shutil.copy(site.file("metadata/catalogue.sqlite"), site.file("older"))
        write(2, 4, 2)  # replaced
        client(["/usr/bin/python3", "-c",
                "import netCDF4; d = netCDF4.Dataset('esdm://exp/4.nc', 'a'); d.more = 1; d.close()"])
        run([tool("esdm-rm"), "exp/5.nc"])
        write(6, 8, 1)
        exchange("exp/0.nc", "exp/1.nc", "exp/other.nc")
        before, values = facts(listed()), contents(site)

        def older_again():
            lose(site)
            site.file("metadata").mkdir()
            shutil.copy(older, site.file("metadata/catalogue.sqlite"))

        def killed_after(count):
            done = subprocess.run(
                [*strace("-e", f"trace={calls}", "-e", f"inject={calls}:signal=KILL:when={count}+"),
                 MKFS, "--restore"], env=environment(), stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
            return done.returncode != 0

        older_again()
        log = site.file("calls")
        run(["strace", "-f", "-qq", "-o", log, "-e", f"trace={calls}", MKFS, "--restore"])
        total = len(log.read_text().splitlines())
        expect(facts(listed()) == before, f"{listed()}\nwas {before}")
        step = max(1, total // by_size(6, 24, 200))
        kills = 0
        for count in range(2, total, step):
            older_again()
            kills += killed_after(count)
            kills += killed_after(count + step // 2)  # and the next call, somewhere
            told = expect_restored(restore())
            expect(facts(listed()) == before, f"{count}: {told}\n{listed()}\nwas {before}")
            run([tool("esdm-gc"), "--age", "0", "--yes"], check=False)
            if count + step >= total or count < 3 * step:
                expect(contents(site) == values, f"{count}: other values")
            check_sound()
        expect(kills > 4, f"only {kills} calls were killed")


# What a commit, its entry in the journal and a backup consist of.
COMMITTING = ("pwrite64", "pwritev", "openat", "fdatasync", "close")


def kill_writers(site, calls, last, most, aged):
    """One writer for each of these calls, which dies at it. Returns what each was told of."""
    told, killed = {}, 0
    for call in COMMITTING:
        for number in sweep(calls.get(call, 0), most):
            name = f"{call}-{number}-{aged}"
            if aged:
                age_backups(site)
            done = program("write", name, 1, last, prefix=strace(
                "-e", f"trace={call}", "-e", f"inject={call}:signal=SIGKILL:when={number}"))
            killed += done.returncode != 0
            told[name] = committed(done)
    return told, killed


def check_told(told):
    there = listed()
    for name, least in told.items():
        expect(least == 0 or name in there, f"{name} is gone; it was told of commit {least}")
        if name in there:
            check_last_commit(name, least, least + 1)


def test_what_killed_writers_were_told_of_comes_back():
    """Writers die in commits and in entries of the journal, and others in backups. Each time the
    catalogue is lost: each commit that a program was told of is back, and none by half."""
    need_strace()
    with sqlite_site() as site:
        calls = count_calls("write", "counting", 1, 3)
        told, killed = kill_writers(site, calls, 3, by_size(2, 7, 60), False)
        expect(not backups(site), "there is a backup; the journal was to be tried")
        lose(site)
        expect("journals alone" in expect_restored(restore()), "there was a backup")
        check_told(told | {"counting": 3})
        must("write", "counting", 4, 4)  # from now on the site knows when the last backup was due
        age_backups(site)
        made = backups(site)
        calls = count_calls("write", "counting", 5, 5)
        expect(set(backups(site)) - set(made), "the counted program made no backup")
        more, killed_more = kill_writers(site, calls, 1, by_size(2, 7, 60), True)
        told |= more
        expect(killed >= 5 and killed_more >= 5, f"only {killed} and {killed_more} were killed")
        for _ in range(2):  # of backups and journals, then of what restoring left
            lose(site)
            expect_restored(restore())
            check_told(told | {"counting": 5})
        check_sound()
        must("write", "counting", 6, 6)
        print(f"{killed + killed_more} writers were killed; "
              f"{sum(n > 0 for n in told.values())} had committed")


def at_clock(seconds):
    """The environment of a program on a node whose clock is ahead by that."""
    clock = BUILD / "tests/support/esdm-test-clock.so"
    expect(clock.exists(), f"{clock} is missing")
    env = client_environment({"ESDM_TEST_CLOCK_S": str(seconds)})
    first = sanitizer_preload() + ":" if SANITIZE else ""
    return env | {"LD_PRELOAD": f"{first}{clock}"}


RENAME = ["/usr/bin/python3", "-c", "import ctypes, sys; esdm = ctypes.CDLL(sys.argv[1]); "
          "session = ctypes.c_void_p(); "
          "assert esdm.esdm_session_open(None, ctypes.byref(session), None) == 0; "
          "assert esdm.esdm_container_move(session, sys.argv[2].encode(), sys.argv[3].encode(), "
          "False, None) == 0; esdm.esdm_session_close(session)"]


def rename(old, new, seconds):
    run([*RENAME, BUILD / "libesdm.so", old, new], env=at_clock(seconds))


def test_names_do_not_depend_on_clocks():
    """Nodes with clocks that differ remove, replace and rename each other's containers."""
    def copy(source, name, seconds):
        run([tool("esdm-cp"), "-f", f"esdm://{source}", f"esdm://{name}"], env=at_clock(seconds))

    with sqlite_site() as site:
        for number in (1, 2):
            must("write", f"from{number}", 1, number)
        copy("from1", "removed", 100)
        run([tool("esdm-rm"), "removed"], env=at_clock(-100))
        copy("from1", "replaced", 100)
        copy("from2", "replaced", -100)
        copy("from1", "first", -100)
        rename("first", "second", 100)
        rename("second", "third", -50)
        copy("from1", "again", 50)
        rename("again", "elsewhere", 100)
        copy("from2", "again", -100)
        before = facts(listed())
        expect(set(before) == {"from1", "from2", "replaced", "third", "again", "elsewhere"},
               f"{before}")
        for attempt in range(2):  # by the journals alone, then with a catalogue that is kept
            if attempt == 0:
                lose(site)
            told = expect_restored(restore())
            expect(facts(listed()) == before, f"{told}{listed()}\nwas {before}")
            for name, generation in (("replaced", 2), ("third", 1), ("again", 2), ("elsewhere", 1)):
                check_last_commit(name, generation, generation)
        check_sound()


def test_a_journal_that_cannot_be_written_is_told_until_a_backup_has_it():
    need_strace()
    small = ["/usr/bin/python3", "-c", "import netCDF4, sys; d = netCDF4.Dataset(sys.argv[1], 'w'); "
             "d.a = 1; d.close()"]
    with sqlite_site() as site:
        client([*small, "esdm://first.nc"])
        expect("lacks changes" not in run([MKFS, "--check"]).stdout, "told too early")
        full = strace("-e", "trace=pwritev", "-e", "inject=pwritev:error=ENOSPC")
        client([*small, "esdm://second.nc"], prefix=full)  # the commit succeeds
        expect(set(listed()) == {"first.nc", "second.nc"}, f"{listed()}")
        expect("journal lacks changes" in run([MKFS, "--check"]).stdout, "it is not told")
        age_backups(site)
        client([*small, "esdm://third.nc"])
        expect(backups(site), "no backup")
        expect("lacks changes" not in run([MKFS, "--check"]).stdout, "told for ever")
        lose(site)
        expect_restored(restore())
        expect(set(listed()) == {"first.nc", "second.nc", "third.nc"}, f"{listed()}")


def test_what_is_replaced_while_it_is_removed_stays_removed():
    """Another program replaces the container between what a program has looked up and its removal or
    renaming: what was really removed or renamed is in the journal."""
    metadata = {"plugin": "faulty", "directory": "metadata"}
    former = [tool("esdm-ls"), "--replaced", "--json"]

    def replaced_meanwhile(name, operation, command):
        env = {"ESDM_FAULTY_META": f"{operation}:1+1:run", "ESDM_FAULTY_META_RUN":
               f"env -u ESDM_FAULTY_META {tool('esdm-cp')} -f esdm://from2 esdm://{name}"}
        run(command, env=client_environment(env))

    saved = os.environ.get("ESDM_PLUGIN_PATH")
    os.environ["ESDM_PLUGIN_PATH"] = str(BUILD / "plugins")
    try:
        for keep in 3600, 0:  # removed containers are kept, or not
            with Site(targets=[POSIX], metadata=metadata, replaced={"keep": keep}) as site:
                for number in (1, 2):
                    must("write", f"from{number}", 1, number)
                for name in "removed", "moved":
                    run([tool("esdm-cp"), "esdm://from1", f"esdm://{name}"])
                replaced_meanwhile("removed", "move" if keep else "remove",
                                   [tool("esdm-rm"), "removed"])
                replaced_meanwhile("moved", "move",
                                   [*RENAME, BUILD / "libesdm.so", "moved", "elsewhere"])
                before = facts(listed())
                expect(set(before) == {"from1", "from2", "elsewhere"}, f"{before}")
                kept = len(json.loads(run(former).stdout)["replaced"])
                lose(site)
                told = expect_restored(restore())
                expect(facts(listed()) == before, f"{told}{listed()}\nwas {before}")
                check_last_commit("elsewhere", 2, 2)
                now = len(json.loads(run(former).stdout)["replaced"])
                expect(now == kept, f"{now} former containers, {kept} before")
    finally:
        if saved is None:
            del os.environ["ESDM_PLUGIN_PATH"]
        else:
            os.environ["ESDM_PLUGIN_PATH"] = saved


def rows(path):
    with sqlite3.connect(path) as database:
        tables = [t for t, in database.execute("SELECT name FROM sqlite_master "
                                               "WHERE type = 'table' ORDER BY name")]
        counts = {t: database.execute(f'SELECT count(*) FROM "{t}"').fetchone() for t in tables}
    database.close()
    return counts


def test_the_last_session_leaves_all_in_the_file_of_the_catalogue():
    with sqlite_site() as site:
        # The log is not copied again and again by programs that follow each other closely.
        os.utime(site.file("metadata/catalogue.sqlite"), (1e9, 1e9))
        write(0, 3)
        alone = rows(shutil.copy(site.file("metadata/catalogue.sqlite"), site.file("alone")))
        expect(len(listed()) == 3 and alone == rows(site.file("metadata/catalogue.sqlite")),
               f"a copy of the file alone has {alone}")


def clone(source, target, *options):
    run([tool("esdm-cp"), "--reflink", *options, f"esdm://{source}", f"esdm://{target}"])


def drop(*names):
    run([tool("esdm-rm"), "--yes", "--for-good", *names])
    run([tool("esdm-gc"), "--yes", "--age=0"])


def make_clones():
    write(0, 4)
    clone("exp/0.nc", "b.nc")
    clone("b.nc", "c.nc")
    clone("exp/1.nc", "exp/2.nc", "-f")  # replaces
    clone("exp/3.nc@-1", "exp/3.nc", "-f")  # goes back
    client(["/usr/bin/python3", "-c", """
import netCDF4
for name in "b.nc", "exp/3.nc":
    with netCDF4.Dataset(f"esdm://{name}", "r+") as data:
        data["v"][1] = 5
        data["v"][len(data.dimensions["t"])] = 7
"""])
    drop("exp/0.nc")  # b.nc and c.nc need its packs


def check_clones(site, lose_it):
    make_clones()
    before, values = facts(listed()), contents(site)
    expect(len(before) == 5, f"{before}")
    lose_it()
    done = json.loads(expect_restored(restore("--json")))
    expect(done["result"]["lost"] == 0, f"{done}")
    expect(facts(listed()) == before, f"{listed()}\nwas {before}")
    expect(contents(site) == values, "other values")
    check_sound()
    run([tool("esdm-gc"), "--yes", "--restoration-complete"])
    run([tool("esdm-gc"), "--yes", "--age=0", "--replaced-now"])
    expect(contents(site) == values, "other values after esdm-gc")
    # what came back knows what it shares
    drop("exp/1.nc", "b.nc")
    left = {name: value for name, value in values.items() if name not in ("exp/1.nc", "b.nc")}
    expect(contents(site) == left, "went with what it shares")
    check_sound()
    drop(*left)
    packs = [path for path in site.packs.rglob("*") if is_pack(path)]
    expect(not packs, f"left: {packs}")


def test_clones_come_back_with_what_they_share():
    with sqlite_site(history=5) as site:
        check_clones(site, lambda: lose(site))


def test_clones_come_back_from_a_backup():
    """That has some of them; the others come after it."""
    with sqlite_site(history=5) as site:
        write(7, 8)
        clone("exp/7.nc", "early.nc")
        age_backups(site)
        write(8, 9)
        expect(len(backups(site)) == 1, f"{backups(site)}")
        drop("exp/7.nc")
        make_clones()
        before, values = facts(listed()), contents(site)
        lose(site)
        done = json.loads(expect_restored(restore("--json")))
        expect(done["result"]["backup"] is not None, f"{done}")
        expect(facts(listed()) == before and contents(site) == values, "other values")
        run([tool("esdm-gc"), "--yes", "--restoration-complete"])
        run([tool("esdm-gc"), "--yes", "--age=0"])
        expect(contents(site) == values, "other values after esdm-gc")
        check_sound()


def test_clones_come_back_on_postgresql():
    skip_without_postgres()
    with Server() as server:
        metadata = {"plugin": "postgres", "host": "127.0.0.1", "port": server.port,
                    "database": "postgres", "user": "esdm", "schema": "lost"}
        with Site(targets=[POSIX], metadata=metadata, history=5) as site:
            check_clones(site, lambda: server.sql("DROP SCHEMA lost CASCADE"))


main(
    test_commits_larger_than_a_record_come_back,
    test_clones_come_back_with_what_they_share,
    test_clones_come_back_from_a_backup,
    test_clones_come_back_on_postgresql,
    test_targets_alone_bring_every_container_back,
    test_a_backup_and_what_came_after_it,
    test_packs_that_came_after_the_backup_are_kept,
    test_rewriting_and_draining_keep_what_came_after_the_backup,
    test_fragments_that_were_moved_are_found_where_they_are,
    test_what_is_missing_is_told_and_gives_status_5,
    test_a_restoration_that_is_killed_loses_no_name,
    test_what_killed_writers_were_told_of_comes_back,
    test_names_do_not_depend_on_clocks,
    test_what_is_replaced_while_it_is_removed_stays_removed,
    test_a_journal_that_cannot_be_written_is_told_until_a_backup_has_it,
    test_the_last_session_leaves_all_in_the_file_of_the_catalogue,
    test_kyoto_cabinet_brings_them_back,
    test_a_bucket_brings_them_back,
    test_postgresql_comes_back,
)
