#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""A lost catalogue comes back: from what lies on the targets alone, from a backup and what was
committed after it, and from a backup that somebody has put back by hand."""

import contextlib
import json
import os
import shutil
import sqlite3
import sys

from esdmtest import (BUILD, SOURCE, Site, by_size, client, expect, expect_error, is_pack, main,
                      run, tool)
from lostsite import (JOURNAL, MKFS, POSIX, SQLITE, age_backups, backups, check_sound, contents,
                      expect_restored, facts, listed, lose, restore, sqlite_site, write)
from postgres import Server, skip_without_postgres
from s3server import Server as S3Server

sys.path.insert(0, str(SOURCE / "tests/faults"))
from stores import s3_site  # noqa: E402

COUNT = by_size(12, 20, 1000)


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
        ranges = [tool("esdm-find"), "-c", "max(v) > 7600 K and max(v) < 7700 K"]
        expect(run(ranges).stdout.split() == ["exp/7.nc"], "the index of values is there again")
        write(COUNT, COUNT + 1)  # the site goes on, and can be lost again
        before, values = facts(listed()), contents(site)
        lose(site)
        told = expect_restored(restore())
        expect("backup of" in told, told)
        expect(run(ranges).stdout.split() == ["exp/7.nc"], "what the backup has is there")
        expect(facts(listed()) == before and contents(site) == values, "after the second loss")
        check_sound()
        told = expect_restored(restore())  # nothing is missing
        expect("0 came from" in told and facts(listed()) == before, told)


def disks(site, *names, **keys):
    """The site has these targets from now on."""
    config = json.loads(site.config.read_text())
    config["targets"] = [{"name": n, "plugin": "posix", "directory": n, **keys.get(n, {})}
                         for n in names]
    site.config.write_text(json.dumps(config))
    run([tool("esdm-mkfs")])


def two_disks():
    targets = [{"name": n, "plugin": "posix", "directory": n} for n in ("one", "two")]
    return Site(targets=targets, metadata=SQLITE)


def journals(site, name):
    return [p for p in site.file(name).rglob(f"{JOURNAL}-*") if p.stat().st_size > 0]


def test_a_target_that_was_emptied_takes_no_journal_along():
    """The only journal of a young site lies on its first target, and it has no backup yet."""
    with two_disks() as site:
        write(0, 3)
        before, values = facts(listed()), contents(site)
        expect(journals(site, "one") and not journals(site, "two"), "where the journal lies")
        disks(site, "one", "two", one={"retiring": True})
        told = run([tool("esdm-drain"), "--from", "one"]).stdout
        expect("nothing that is needed is left there" in told, told)
        write(3, 4)  # its journal does not lie on what is to be taken away
        after = facts(listed())
        expect(journals(site, "two"), "commits are noted on a target that is retiring")
        disks(site, "two")
        shutil.rmtree(site.file("one"))
        lose(site)
        told = expect_restored(restore())
        expect("backup of" in told, told)
        expect(facts(listed()) == after, f"{listed()}")
        found = contents(site)
        expect(values.keys() < found.keys() and before.keys() < after.keys(), f"{found.keys()}")
        expect(all(found[name] == values[name] for name in values), "other values")
        check_sound()


def test_draining_tells_when_the_catalogue_cannot_be_saved_elsewhere():
    with two_disks() as site:
        write(0, 1)
        disks(site, "one", "two", one={"retiring": True})
        shutil.rmtree(site.file("two") / "00")  # packs of the site belong there
        (site.file("two") / "00").write_text("")
        done = run([tool("esdm-drain"), "--from", "one"], check=False)
        expect(done.returncode != 0, f"{done}")
        expect_error(done, "leave the target where it is")
        expect("can go out" not in done.stdout, done.stdout)


def test_a_target_that_was_taken_away_with_the_journal_is_asked_for():
    with two_disks() as site:
        write(0, 3)
        before = facts(listed())
        told = run([MKFS, "--check"]).stdout
        expect("neither a journal" not in told, told)
        disks(site, "two")
        told = run([MKFS, "--check"], check=False)
        expect("neither a journal nor a backup" in told.stdout + told.stderr, f"{told}")
        write(3, 4)  # the journal of that lies on the other one
        lose(site)
        told = restore()
        expect("is a target not in the configuration" in told.stdout + told.stderr, f"{told}")
        lose(site)
        site.file("two").rename(site.file("gone"))
        site.file("one").rename(site.file("two"))
        config = json.loads(site.config.read_text())
        config["targets"] = [{**POSIX, "name": n, "directory": d}
                             for n, d in (("one", "two"), ("two", "gone"))]
        site.config.write_text(json.dumps(config))
        told = expect_restored(restore())
        expect("is a target not" not in told, told)
        expect(before.keys() < facts(listed()).keys() and len(listed()) == 4, f"{listed()}")
        check_sound()


LARGE = """
import netCDF4, numpy, sys
random = numpy.random.default_rng(1)
variables = int(sys.argv[1])
d = netCDF4.Dataset("esdm://large.nc", "w")
d.table = random.random(400000)                  # a structure of some 8 MB
d.createDimension("x", 1000)
for i in range(variables):                       # what lies in index pages: 4 KB each
    d.createVariable(f"v{i}", "f4", ("x",), fill_value=False)
    d[f"v{i}"][:] = random.random(1000)
d.sync()
for i in range(variables // 2):
    d[f"v{i}"][:] = random.random(1000)
d.close()
"""


def test_commits_larger_than_a_record_come_back():
    variables = 1300  # some 5 MB of pages: more than a record of the journal takes
    with sqlite_site(engine={"inline": 4096}) as site:
        client(["/usr/bin/python3", "-c", LARGE, str(variables)])
        # Pages of several ranks go into records of their own before the commit's.
        run([BUILD / "tests/integration/ranks/ranks_large_commit", "ranks", str(variables)])
        noted = sum(p.stat().st_size for p in site.packs.rglob("*") if p.name.startswith(JOURNAL))
        expect(noted > (8 << 20) + variables * 9000, f"the journal has {noted} bytes")
        before, values = facts(listed()), contents(site)
        lose(site)
        done = json.loads(expect_restored(restore("--json")))
        expect(done["result"]["lost"] == 0 and done["result"]["backup"] is None, f"{done}")
        expect(facts(listed()) == before and contents(site) == values, "other contents")
        check_sound()


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
        for backup in site.folder.rglob("0" * 24 + "6261636b-*"):  # esdm-drain has made them
            backup.unlink()
        lose(site)
        told = expect_restored(restore())
        expect("journals alone" in told and facts(listed()) == before, f"{told}{listed()}")
        expect(contents(site) == values, "other values")
        check_sound()


def check_alone(site, lose_it):
    count = by_size(5, 5, 1000)
    write(0, count)
    write(1, 2, 20)
    run([tool("esdm-rm"), "exp/0.nc"])
    for attempt in range(2):  # by the journal, then by the backup that a restoration makes
        before, values = facts(listed()), contents(site)
        lose_it()
        expect_restored(restore())
        expect(facts(listed()) == before, f"{listed()}\nwas {before}")
        expect(contents(site) == values, "other values")
        check_sound()
        write(count + attempt, count + attempt + 1)


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
            server.sql("DROP SCHEMA lost CASCADE")
            expect_error(run([tool("esdm-fsck")], check=False), "esdm-mkfs --restore")


def test_a_damaged_catalogue__tells_what_to_do_and_comes_back():
    """Its first bytes are overwritten by a program that knows nothing of it, or its middle."""
    with sqlite_site() as site:
        write(0, 3)
        before, values = facts(listed()), contents(site)
        catalogue = site.file("metadata/catalogue.sqlite")
        for at, junk in ((0, b"X" * 4096), (4096, b"\xff" * (catalogue.stat().st_size - 4096))):
            with contextlib.closing(sqlite3.connect(catalogue)) as database:
                database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            with open(catalogue, "r+b") as file:
                file.seek(at)
                file.write(junk)
            for command in (["esdm-fsck"], ["esdm-ls"], ["esdm-mkfs", "--check"],
                            ["esdm-run", "ncdump", "-h", "esdm://exp/1.nc"]):
                ask = client if command[0] == "esdm-run" else run
                done = ask(command[1:] if ask is client else [tool(command[0]), *command[1:]], check=False)
                told = done.stdout + done.stderr
                expect(done.returncode != 0 and "is damaged" in told and
                       "esdm-mkfs --restore" in told, f"{command}: {told}")
            expect_restored(restore())
            expect(facts(listed()) == before and contents(site) == values, f"after damage at {at}")
            check_sound()


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


main(
    test_targets_alone_bring_every_container_back,
    test_commits_larger_than_a_record_come_back,
    test_a_backup_and_what_came_after_it,
    test_packs_that_came_after_the_backup_are_kept,
    test_rewriting_and_draining_keep_what_came_after_the_backup,
    test_fragments_that_were_moved_are_found_where_they_are,
    test_kyoto_cabinet_brings_them_back,
    test_a_bucket_brings_them_back,
    test_postgresql_comes_back,
    test_a_damaged_catalogue__tells_what_to_do_and_comes_back,
    test_what_is_missing_is_told_and_gives_status_5,
    test_the_last_session_leaves_all_in_the_file_of_the_catalogue,
    test_a_target_that_was_emptied_takes_no_journal_along,
    test_draining_tells_when_the_catalogue_cannot_be_saved_elsewhere,
    test_a_target_that_was_taken_away_with_the_journal_is_asked_for,
)
