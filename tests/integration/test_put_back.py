#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Somebody puts an older copy of the catalogue in its place, and programs go on without knowing: what was
committed since the copy is told as missing, is kept, and comes back."""

import contextlib
import os
import shutil
import sqlite3
import sys
import time

from esdmtest import SOURCE, Site, expect, main, run, tool
from lostsite import (MKFS, POSIX, SQLITE, age_backups, at_clock, backups, check_sound, expect_restored, listed, lose,
                      restore, sqlite_site)
from postgres import Server, skip_without_postgres
from s3server import Server as S3Server

sys.path.insert(0, str(SOURCE / "tests/faults"))
from stores import s3_site  # noqa: E402

DAY = 86400
DUE = "UPDATE older.store SET value = '1000' WHERE key = 'fact:esdm/backup'"
OLDER = "an older copy of"


def store(site, value, name, seconds=0):
    """A program whose clock is so far ahead stores a container."""
    plain = site.file(f"{value}.nc")
    if not plain.exists():
        text = site.file("text.cdl")
        numbers = ", ".join(str(value + i % 7) for i in range(4000))
        text.write_text(f"netcdf x {{ dimensions: x = 4000; variables: int v(x); data: v = {numbers}; }}")
        run(["ncgen", "-4", "-o", plain, text])
    run([tool("esdm-cp"), "-q", "-f", plain, f"esdm://{name}"], env=at_clock(seconds))


def first_value(name):
    return int(run([tool("esdm-reduce"), "min", f"esdm://{name}", "v"]).stdout.split()[-1])


def put_back(site, older):
    shutil.rmtree(site.file("metadata"))
    shutil.copytree(older, site.file("metadata"))


def older_site():
    return sqlite_site(engine={"inline": 0})


def begin(site):
    """A site of some days with backups. @return an older copy of its catalogue."""
    store(site, 1, "kept", -5 * DAY)
    store(site, 1, "old", -3 * DAY)
    older = shutil.copytree(site.file("metadata"), site.file("older"))
    store(site, 1, "lost", -2 * DAY)
    store(site, 2, "old", -2 * DAY + 3700)
    expect(len(backups(site)) >= 2, f"{backups(site)}")
    return older


def collect(site):
    """esdm-gc, when all packs are older than what it leaves alone. @return what it said."""
    for pack in site.pack_files():
        when = time.time() - 1.5 * DAY
        os.utime(pack, (when, when))
    done = run([tool("esdm-gc"), "--yes", "--age", "1h"])
    return done.stdout + done.stderr


def test_what_was_committed_since_the_copy_is_kept_and_comes_back():
    for again in ("new", "lost"):  # somebody misses a result, and makes it again
        with older_site() as site:
            older = begin(site)
            put_back(site, older)
            expect(set(listed()) == {"kept", "old"}, f"{listed()}")
            store(site, 3, again, -DAY)
            packs, saved = set(site.pack_files()), len(backups(site))
            for command in ([tool("esdm-fsck")], [MKFS, "--check"]):
                done = run(command, check=False)
                told = done.stdout + done.stderr
                expect(OLDER in told and "--restore" in told, told)
            expect(run([tool("esdm-fsck")], check=False).returncode != 0, "fsck is content")
            expect(OLDER in collect(site), "esdm-gc says nothing")
            expect(packs <= set(site.pack_files()), "esdm-gc removed what came after the copy")
            for number in range(4):  # later backups do not take the place of those that tell of it
                store(site, 4, f"later{number}", number * 2 * 3600)
            expect(len(backups(site)) >= saved + 4, f"{backups(site)}")
            told = expect_restored(restore())
            expect("an older copy of it was put back" in told, told)
            names = {"kept", "old", "lost", again, "later0", "later1", "later2", "later3"}
            second = set(listed()) - names  # two of one name: the later one has it
            expect(names <= set(listed()) and len(second) == (again == "lost"), f"{listed()}")
            expect(all(first_value(name) == 1 for name in second), f"{second}")
            values = [first_value(name) for name in ("kept", "old", "lost", again)]
            expect(values == [1, 2, 3 if again == "lost" else 1, 3], f"{values}")
            check_sound()
            expect(OLDER not in collect(site), "it is said for ever")
            told = expect_restored(restore())
            expect("0 came from" in told, told)


def test_esdm_gc_notices_it_before_any_program_does():
    with older_site() as site:
        put_back(site, begin(site))
        packs = set(site.pack_files())
        expect(OLDER in collect(site), "esdm-gc says nothing")
        expect(packs == set(site.pack_files()), "esdm-gc removed what came after the copy")
        expect_restored(restore())
        expect(set(listed()) == {"kept", "old", "lost"} and first_value("old") == 2, f"{listed()}")


def test_who_does_not_want_it_back_says_so():
    with older_site() as site:
        put_back(site, begin(site))
        packs = len(site.pack_files())
        run([tool("esdm-gc"), "--yes", "--age", "0", "--restoration-complete"])
        expect(len(site.pack_files()) < packs, "nothing was removed")
        told = run([tool("esdm-fsck"), "--data"]).stdout
        expect(OLDER not in told and "sound" in told, told)


def test_a_container_that_was_written_to_on_both_sides_is_told():
    with older_site() as site:
        store(site, 1, "kept", -5 * DAY)
        store(site, 1, "old", -3 * DAY)
        older = shutil.copytree(site.file("metadata"), site.file("older"))
        change = [tool("esdm-attr"), "esdm://kept"]
        run([*change, "--set", "said=lost"], env=at_clock(-2 * DAY))
        store(site, 1, "other", -2 * DAY + 3700)
        put_back(site, older)
        run([*change, "--set", "said=later"], env=at_clock(-DAY))
        done = restore()
        told = expect_restored(done, status=5)
        expect("'kept': 1 commit is left out" in told, told)
        expect(set(listed()) == {"kept", "old", "other"}, f"{listed()}")


def test_a_sound_site_is_not_taken_for_one():
    """Clocks that are ahead, restorations, and backups by programs of before."""
    with older_site() as site:
        store(site, 1, "first", -5 * DAY)
        for number, when in enumerate((-3 * DAY, 5 * DAY, 0, 2 * 3600)):
            store(site, 1, f"c{number}", when)
        for _ in range(2):
            done = run([tool("esdm-fsck")])
            expect(OLDER not in done.stdout + done.stderr, f"{done}")
            shutil.rmtree(site.file("metadata"))
            expect_restored(restore())
            store(site, 1, "after", 4 * 3600)
        check_sound()


def test_one_that_a_clock_ahead_has_told_of_is_brought_back_once():
    """By the time of the newest backup all that is made in the next days is older."""
    for end in "restore", "complete":
        with older_site() as site:
            store(site, 1, "kept", -5 * DAY)
            store(site, 1, "old", -3 * DAY)
            older = shutil.copytree(site.file("metadata"), site.file("older"))
            store(site, 1, "lost", 5 * DAY)
            put_back(site, older)
            expect(OLDER in collect(site), "esdm-gc says nothing")
            if end == "restore":
                expect_restored(restore())
                expect(set(listed()) == {"kept", "old", "lost"}, f"{listed()}")
            else:
                run([tool("esdm-gc"), "--yes", "--restoration-complete"])
            expect(OLDER not in collect(site), "it is said again")
            check_sound()


def test_a_catalogue_that_is_lost_after_that_comes_back_with_all():
    """From a backup that was made when the older copy had been noticed."""
    with older_site() as site:
        put_back(site, begin(site))
        store(site, 3, "new", -DAY)
        store(site, 3, "newer", -DAY + 2 * 3600)
        lose(site)
        told = expect_restored(restore())
        expect("the backup of" in told and "an older copy of it was put back" in told, told)
        expect(set(listed()) == {"kept", "old", "lost", "new", "newer"}, f"{listed()}")
        expect(first_value("old") == 2, "an older one")
        check_sound()
        expect(OLDER not in collect(site), "it is said for ever")


def test_a_target_that_cannot_be_listed_hides_nothing():
    targets = [{"name": n, "plugin": "posix", "directory": n} for n in ("one", "packs")]
    with Site(targets=targets, metadata=SQLITE, engine={"inline": 0}) as site:
        put_back(site, begin(site))
        shutil.rmtree(site.file("one") / "00")  # packs of the site belong there
        (site.file("one") / "00").write_text("")
        told = run([tool("esdm-fsck")], check=False)
        expect(OLDER in told.stdout + told.stderr, f"{told}")


def forget(site, *facts):
    """What programs of older versions do not note."""
    with contextlib.closing(sqlite3.connect(site.file("metadata/catalogue.sqlite"))) as database, database:
        for fact in facts:
            database.execute("DELETE FROM store WHERE key = ?", [f"fact:esdm/{fact}"])


def test_backups_by_programs_of_before_are_no_older_copy():
    """They note no backup; when a target is drained, or at the end of a restoration, not even that one was due."""
    with older_site() as site:
        store(site, 1, "first", -5 * DAY)
        store(site, 1, "second", -3 * DAY)
        lose(site)
        expect_restored(restore())
        forget(site, "backup_known")
        told = run([tool("esdm-fsck")])
        expect(OLDER not in told.stdout + told.stderr, f"{told}")
        forget(site, "backup_known", "restored")
        expect(OLDER in collect(site), "an older copy of days is noticed without it")


def check_store(site, copy, put_back_copy, due):
    """Another kind of store or target. Each program makes a backup."""
    store(site, 1, "kept")
    for name in "old", "other":
        due()
        store(site, 1, name)
    due()
    copy()
    store(site, 1, "lost")
    put_back_copy()
    expect(set(listed()) == {"kept", "old", "other"}, f"{listed()}")
    store(site, 3, "new")
    done = run([tool("esdm-fsck")], check=False)
    expect(OLDER in done.stdout + done.stderr and done.returncode != 0, f"{done}")
    run([tool("esdm-gc"), "--yes", "--age", "0"])
    for number in range(3):
        due()
        store(site, 4, f"later{number}")
    told = expect_restored(restore())
    expect("an older copy of it was put back" in told, told)
    expect(set(listed()) == {"kept", "old", "other", "lost", "new", "later0", "later1", "later2"}, f"{listed()}")
    expect(first_value("lost") == 1 and first_value("new") == 3, "other values")
    check_sound()
    done = run([tool("esdm-gc"), "--yes", "--age", "0"])
    expect(OLDER not in done.stdout + done.stderr, f"{done}")


def check_target(site):
    older = site.file("older")
    check_store(site, lambda: shutil.copytree(site.file("metadata"), older), lambda: put_back(site, older),
                lambda: age_backups(site))


def test_kyoto_cabinet_tells_of_it():
    with Site(targets=[{"name": "kv", "plugin": "kv", "directory": "kv"}], metadata=SQLITE,
              engine={"inline": 0}) as site:
        check_target(site)


def test_a_bucket_tells_of_it():
    with S3Server() as server, s3_site(server, metadata=SQLITE, engine={"inline": 0}) as site:
        check_target(site)


def test_a_database_that_was_put_back_is_noticed():
    skip_without_postgres()
    with Server() as server:
        metadata = {"plugin": "postgres", "host": "127.0.0.1", "port": server.port, "database": "postgres",
                    "user": "esdm", "schema": "older"}
        dump = server.folder / "dump"

        def bring():
            server.sql("DROP SCHEMA older CASCADE")
            run([server.bin / "pg_restore", "-d", server.connection(), dump])

        with Site(targets=[POSIX], metadata=metadata, engine={"inline": 0}) as site:
            check_store(site, lambda: run([server.bin / "pg_dump", "-Fc", "-n", "older", "-f", dump, server.connection()]),
                        bring, lambda: server.sql(DUE))


main(
    test_what_was_committed_since_the_copy_is_kept_and_comes_back,
    test_esdm_gc_notices_it_before_any_program_does,
    test_who_does_not_want_it_back_says_so,
    test_a_container_that_was_written_to_on_both_sides_is_told,
    test_a_sound_site_is_not_taken_for_one,
    test_one_that_a_clock_ahead_has_told_of_is_brought_back_once,
    test_a_catalogue_that_is_lost_after_that_comes_back_with_all,
    test_a_target_that_cannot_be_listed_hides_nothing,
    test_backups_by_programs_of_before_are_no_older_copy,
    test_kyoto_cabinet_tells_of_it,
    test_a_bucket_tells_of_it,
    test_a_database_that_was_put_back_is_noticed,
)
