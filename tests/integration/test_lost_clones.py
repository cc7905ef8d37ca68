#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Clones come back with what they share, from the targets alone and from a backup."""

import json

from esdmtest import Site, client, expect, is_pack, main, run, tool
from lostsite import (POSIX, age_backups, backups, check_sound, contents, expect_restored, facts,
                      listed, lose, restore, sqlite_site, write)
from postgres import Server, skip_without_postgres


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
    test_clones_come_back_with_what_they_share,
    test_clones_come_back_from_a_backup,
    test_clones_come_back_on_postgresql,
)
