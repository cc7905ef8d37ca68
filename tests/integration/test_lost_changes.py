#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""A lost catalogue comes back with the changes that were under way: of killed writers and killed
restorations, of nodes whose clocks differ, of a journal that could not be written."""

import json
import os
import shutil
import subprocess
import sys

from esdmtest import (BUILD, SOURCE, Site, by_size, client, client_environment, environment, expect, main, run, tool)
from lostsite import (MKFS, POSIX, age_backups, at_clock, backups, check_sound, contents, expect_restored,
                      facts, listed, lose, restore, sqlite_site, write)

sys.path.insert(0, str(SOURCE / "tests/faults"))
from faults import (check_last_commit, committed, count_calls, killing, must, need_strace, program, strace,  # noqa: E402
                    sweep)


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
        run(["strace", "-f", "--seccomp-bpf", "-qq", "-o", log, "-e", f"trace={calls}", MKFS, "--restore"])
        total = len(log.read_text().splitlines())
        expect(facts(listed()) == before, f"{listed()}\nwas {before}")
        step = max(1, total // by_size(6, 10, 200))
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
            done = program("write", name, 1, last, prefix=killing(call, number))
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
        told, killed = kill_writers(site, calls, 3, by_size(2, 4, 60), False)
        expect(not backups(site), "there is a backup; the journal was to be tried")
        lose(site)
        expect("journals alone" in expect_restored(restore()), "there was a backup")
        check_told(told | {"counting": 3})
        must("write", "counting", 4, 4)  # from now on the site knows when the last backup was due
        age_backups(site)
        made = backups(site)
        calls = count_calls("write", "counting", 5, 5)
        expect(set(backups(site)) - set(made), "the counted program made no backup")
        more, killed_more = kill_writers(site, calls, 1, by_size(2, 4, 60), True)
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


def test_a_journal_that_cannot_be_written_is_told_until_a_backup_has_it():
    need_strace()
    small = ["/usr/bin/python3", "-c", "import netCDF4, sys; d = netCDF4.Dataset(sys.argv[1], 'w'); "
             "d.a = 1; d.close()"]
    with sqlite_site() as site:
        client([*small, "esdm://first.nc"])
        expect("lacks changes" not in run([MKFS, "--check"]).stdout, "told too early")
        full = strace("--seccomp-bpf", "-e", "trace=pwritev", "-e", "inject=pwritev:error=ENOSPC")
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


main(
    test_a_restoration_that_is_killed_loses_no_name,
    test_what_killed_writers_were_told_of_comes_back,
    test_names_do_not_depend_on_clocks,
    test_what_is_replaced_while_it_is_removed_stays_removed,
    test_a_journal_that_cannot_be_written_is_told_until_a_backup_has_it,
)
