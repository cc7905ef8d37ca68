#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""What was said about snapshots comes back with a lost catalogue: tags, branches, seals, retractions; from
the targets alone, and from a backup with what came after it."""

import json
import os
import time

from esdmtest import Site, expect, expect_error, main, run, tool
from lostsite import (POSIX, age_backups, backups, check_sound, contents, expect_restored, facts,
                      listed, lose, restore, sqlite_site)
from postgres import Server, skip_without_postgres
from steps import write


def do(name, *arguments, check=True):
    return run([tool(name), *arguments], check=check)


def told(name, *arguments):
    return json.loads(do(name, "--json", *arguments).stdout)


def digest(name):
    return do("esdm-stat", "--digest", name).stdout.split()[0]


def own_key(site):
    os.environ["XDG_CONFIG_HOME"] = str(site.file("config"))


def make():
    """Before or after a backup."""
    write("run.nc", 0, 3)
    do("esdm-tag", "run.nc", "paper")
    do("esdm-tag", "run.nc@tag:paper", "gone")
    do("esdm-tag", "run.nc", "moved")
    write("run.nc", 3, 4)
    write("mask.nc", 0, 1)
    do("esdm-seal", "--note", "for good", "mask.nc")
    write("wrong.nc", 0, 1)
    do("esdm-seal", "--retract", "the year is wrong", "wrong.nc")
    write("right.nc", 0, 1)
    do("esdm-seal", "--retract", "a mistake", "right.nc")


def go_on():
    """Changes and takes back what make() has said."""
    write("run.nc", 4, 5)
    do("esdm-tag", "--force", "run.nc", "moved")
    do("esdm-tag", "--remove", "run.nc", "gone")
    do("esdm-tag", "mask.nc", "of-a-sealed-one")
    do("esdm-seal", "--reinstate", "right.nc")
    do("esdm-branch", "run.nc", "fix")
    write("run.nc@branch:fix", 5, 6)
    do("esdm-branch", "run.nc@tag:paper", "old")
    write("run.nc@branch:old", 3, 4)
    write("old.nc", 0, 2)
    do("esdm-tag", "old.nc", "cited")
    write("old.nc", 0, 1)  # replaced
    write("run.nc", 5, 8)
    time.sleep(0.6)  # stores spare what is younger than half a second
    write("run.nc", 8, 9)
    do("esdm-gc")


def state():
    """All that was said, and the digests of what it is about."""
    tags = {name: told("esdm-tag", name)["tags"] for name in ("run.nc", "mask.nc", "old.nc")}
    return {
        "tags": tags,
        "branches": told("esdm-branch", "run.nc")["branches"],
        "seals": told("esdm-seal", "--verify")["containers"],
        "retracted": {name: [a["value"] for a in told("esdm-stat", name)["containers"][0]["root"]["attributes"]
                             if a["name"] == "esdm_retracted"] for name in ("wrong.nc", "right.nc")},
        "digests": {name: digest(name) for name in
                    ("run.nc", "run.nc@tag:paper", "run.nc@tag:moved", "run.nc@branch:fix",
                     "run.nc@branch:old", "old.nc@tag:cited", "mask.nc@tag:of-a-sealed-one")},
    }


def check_what_came_back(site, before, values):
    after = state()
    for key in before:
        expect(after[key] == before[key], f"{key}: {after[key]}\nwas {before[key]}")
    expect(contents(site) == values, "other values")
    expect(before["retracted"] == {"wrong.nc": ["the year is wrong"], "right.nc": []}, f"{before}")
    do("esdm-gc", "--yes", "--restoration-complete")
    do("esdm-gc", "--yes", "--age=0", "--replaced-now")
    expect(state() == before, f"{state()}\nwas {before}")
    check_sound()
    expect_error(do("esdm-stat", "run.nc@tag:gone", check=False), "gone")
    expect_error(write("mask.nc", 1, 2, check=False))
    expect_error(do("esdm-mv", "mask.nc", "other.nc", check=False), "sealed")
    merged = do("esdm-merge", "--ours", "run.nc", "fix")  # knows where it began
    expect(merged.returncode == 0, merged.stdout)
    do("esdm-tag", "--remove", "run.nc", "paper")  # an old branch keeps what it shares
    do("esdm-gc", "--yes", "--age=0")
    expect(digest("run.nc@branch:old") == before["digests"]["run.nc@branch:old"], "other values")
    do("esdm-rm", "--sealed", "mask.nc")


def check(site, lose_it):
    own_key(site)
    make()
    go_on()
    before, values, names = state(), contents(site), facts(listed())
    expect(len(before["branches"]) == 2 and len(before["seals"]) == 2 and
           [t["tag"] for t in before["tags"]["run.nc"]] == ["moved", "paper"] and
           [t["former"] for t in before["tags"]["old.nc"]] == [True], f"{before}")
    for attempt in range(2):  # by the journal, then by the backup that a restoration makes
        lose_it()
        done = json.loads(expect_restored(restore("--json")))
        expect(done["result"]["lost"] == 0, f"{done}")
        expect(facts(listed()) == names, f"{listed()}\nwas {names}")
        if attempt == 0:
            expect(state() == before, f"{state()}\nwas {before}")
    check_what_came_back(site, before, values)


def test_what_was_said_comes_back():
    with sqlite_site(backup={"every": 86400}) as site:
        check(site, lambda: lose(site))


def test_what_was_said_comes_back_on_postgresql():
    skip_without_postgres()
    with Server() as server:
        metadata = {"plugin": "postgres", "host": "127.0.0.1", "port": server.port,
                    "database": "postgres", "user": "esdm", "schema": "lost"}
        with Site(targets=[POSIX], metadata=metadata) as site:
            check(site, lambda: server.sql("DROP SCHEMA lost CASCADE"))


def test_what_was_said_after_the_backup_comes_back():
    spare = {"name": "spare", "plugin": "posix", "directory": "spare"}
    with Site(targets=[POSIX, spare], metadata={"plugin": "sqlite", "directory": "metadata"},
              engine={"inline": 0}) as site:
        own_key(site)
        make()
        write("later.nc", 0, 1)
        do("esdm-seal", "later.nc")
        age_backups(site)
        write("other.nc", 0, 1)
        expect(len(backups(site)) >= 1, f"{backups(site)}")
        go_on()
        do("esdm-drain", "--age", "0s", "--from", "disk")  # what is sealed lies elsewhere
        do("esdm-rm", "--sealed", "later.nc")
        before, values, names = state(), contents(site), facts(listed())
        lose(site)
        done = json.loads(expect_restored(restore("--json")))
        expect(done["result"]["backup"] is not None, f"{done}")
        expect(facts(listed()) == names, f"{listed()}\nwas {names}")
        do("esdm-restore", "later.nc")
        expect_error(write("later.nc", 1, 2, check=False))
        do("esdm-rm", "--sealed", "later.nc")
        check_what_came_back(site, before, values)


def test_a_sound_catalogue_keeps_what_it_says():
    """Also what the journal does not have, or has otherwise."""
    with sqlite_site() as site:
        own_key(site)
        make()
        go_on()
        before = state()
        expect_restored(restore())
        expect(state() == before, f"{state()}\nwas {before}")
        config = json.loads(site.config.read_text())
        site.config.write_text(json.dumps(dict(config, backup={"journal": False})))
        do("esdm-tag", "run.nc", "gone")
        do("esdm-tag", "--force", "run.nc", "paper")
        site.config.write_text(json.dumps(config))
        before = told("esdm-tag", "run.nc")
        expect_restored(restore())
        expect(told("esdm-tag", "run.nc") == before, f"{told('esdm-tag', 'run.nc')}")


def test_a_tag_whose_snapshot_is_lost_is_told():
    with sqlite_site(backup={"every": 86400}) as site:
        write("run.nc", 0, 2)
        config = json.loads(site.config.read_text())
        site.config.write_text(json.dumps(dict(config, backup={"journal": False})))
        write("run.nc", 2, 3)
        site.config.write_text(json.dumps(config))
        do("esdm-tag", "run.nc", "paper")
        lose(site)
        out = expect_restored(restore(), 5)
        expect("tag 'paper'" in out and "run.nc" in out, out)
        expect(told("esdm-tag", "run.nc")["tags"] == [], "it has a tag")


def test_policies_say_how_many_snapshots_come_back():
    policies = [{"container": "exp/*", "history": 3}, {"container": "young/*", "history_age": "1h"}]
    with sqlite_site(policies=policies) as site:
        for name in "exp/a.nc", "young/a.nc", "a.nc":
            write(name, 0, 5)
        time.sleep(0.6)
        for name in "exp/a.nc", "young/a.nc", "a.nc":
            write(name, 5, 6)
        do("esdm-gc")

        def numbers():
            return {name: [s["snapshot"] for s in told("esdm-log", "--brief", name)["snapshots"]]
                    for name in ("exp/a.nc", "young/a.nc", "a.nc")}

        before = numbers()
        expect(len(before["exp/a.nc"]) == 3 < len(before["young/a.nc"]), f"{before}")
        lose(site)
        expect_restored(restore())
        expect(numbers() == before, f"{numbers()}\nwas {before}")


main(
    test_what_was_said_comes_back,
    test_what_was_said_comes_back_on_postgresql,
    test_what_was_said_after_the_backup_comes_back,
    test_a_sound_catalogue_keeps_what_it_says,
    test_a_tag_whose_snapshot_is_lost_is_told,
    test_policies_say_how_many_snapshots_come_back,
)
