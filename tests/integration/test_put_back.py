#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Somebody puts an older copy of the catalogue in its place, and programs go on without knowing: what was
committed since the copy is told as missing, is kept, and comes back."""

import os
import shutil
import time

from esdmtest import expect, main, run, tool
from lostsite import MKFS, at_clock, backups, check_sound, expect_restored, listed, restore, sqlite_site

DAY = 86400
OLDER = "an older copy of"


def store(site, value, name, seconds):
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


main(
    test_what_was_committed_since_the_copy_is_kept_and_comes_back,
    test_esdm_gc_notices_it_before_any_program_does,
    test_who_does_not_want_it_back_says_so,
    test_a_container_that_was_written_to_on_both_sides_is_told,
    test_a_sound_site_is_not_taken_for_one,
)
