#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""kill -9 while a container is cloned, and while the catalogue of an older version is upgraded by
that: both containers are whole, the clone is there or not, and the next call works."""

import os
import re
import shutil
import sqlite3
import subprocess
import tarfile

from esdmtest import SOURCE, Site, by_size, client, environment, expect, in_memory, main, run, tool
from faults import KILLED, killing, need_strace, shown, sweep
from postgres import Server, skip_without_postgres
from templates import Postgres

CP, LS, STAT, FSCK, GC, RM = (tool(f"esdm-{name}") for name in
                              ("cp", "ls", "stat", "fsck", "gc", "rm"))
CALLS = ["pwrite64", "write", "fdatasync", "fsync", "ftruncate", "openat", "unlink", "fcntl",
         "close"]


def digest(name):
    """Of what the container has, however it is stored."""
    told = run([STAT, "--digest", name]).stdout
    found = re.findall(r"[0-9a-f]{32,}", told)
    expect(found, f"no digest: {told}")
    return found[-1]


def copy(source, target, *options, prefix=()):
    return subprocess.run([*prefix, CP, "--reflink", *options, f"esdm://{source}",
                           f"esdm://{target}"], env=environment(), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def count_calls(site, *arguments):
    log = site.file("calls")
    done = copy(*arguments, prefix=["strace", "-f", "--seccomp-bpf", "-qq", "-o", log, "-e",
                                    "trace=" + ",".join(CALLS)])
    expect(done.returncode == 0, shown(done))
    counts = {}
    for line in log.read_text(errors="replace").splitlines():
        name = re.match(r"\d+ +(\w+)\(", line)
        if name:
            counts[name.group(1)] = counts.get(name.group(1), 0) + 1
    log.unlink()
    return counts


def kill_at(call, number, *arguments):
    """Whether it was killed."""
    done = copy(*arguments, prefix=killing(call, number))
    if done.returncode == 0:
        return False
    expect(done.returncode == KILLED, shown(done))
    return True


def names():
    return run([LS]).stdout.split()


# ---- clones --------------------------------------------------------------------------------------

def make(site, name, first):
    text = site.file("x.cdl")
    values = ", ".join(str(first + i) for i in range(3000))
    text.write_text("netcdf x { dimensions: t = UNLIMITED ; n = 1000 ; variables: int v(t, n) ; "
                    f"data: v = {values} ; }}")
    client(["ncgen", "-4", "-o", f"esdm://{name}", text])


def check_after(source, others):
    """@param others digests of which the target has one; None: it may be absent."""
    expect(digest("a.nc") == source, "the source has changed")
    now = digest("b.nc") if "b.nc" in names() else None
    expect(now in others, f"the target is neither as before nor the clone: {now}")
    run([FSCK, "--data"])


def test_kill__at_system_calls_of_a_clone():
    need_strace()
    with Site(parent=in_memory()) as site:
        make(site, "a.nc", 0)
        make(site, "c.nc", 10000)
        clone, other = digest("a.nc"), digest("c.nc")
        counts = count_calls(site, "a.nc", "b.nc")
        expect(digest("b.nc") == clone, "the clone differs")
        killed = 0
        for call, count in counts.items():
            for number in sweep(count, by_size(1, 2, 100)):
                replaces = number % 2 == 0
                run([RM, "--yes", "--for-good", "--force", "b.nc"])
                if replaces:
                    run([CP, "--reflink", "esdm://c.nc", "esdm://b.nc"])
                killed += kill_at(call, number, "a.nc", "b.nc", "-f")
                check_after(clone, (clone, other if replaces else None))
                expect(copy("a.nc", "b.nc", "-f").returncode == 0, "it does not go on")
                check_after(clone, (clone,))
        print(f"killed {killed} clones at {', '.join(counts)}")
        expect(killed >= len(counts), f"only {killed} were killed")
        run([RM, "--yes", "--for-good", "a.nc", "b.nc", "c.nc"])
        run([GC, "--yes", "--age=0", "--replaced-now"])
        left = [path for path in site.packs.rglob("*") if path.is_file()
                and path.suffix != ".json" and not path.name.startswith("0" * 24)]
        expect(not left, f"left: {left}")


# ---- upgrades ------------------------------------------------------------------------------------

def unpack(golden, folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with tarfile.open(golden / "store.tar.xz") as store:
        store.extractall(folder)
    os.environ["ESDM_CONFIG"] = str(folder / "site.json")


def version(folder):
    connection = sqlite3.connect(folder / "metadata/catalogue.sqlite")
    with connection:
        found = connection.execute("PRAGMA user_version").fetchone()[0]
    connection.close()
    return found


def kill_upgrades(site, golden, most):
    folder = site.file("old")
    unpack(golden, folder)
    before, listed = digest("fields.nc"), names()
    counts = count_calls(site, "fields.nc", "clone2.nc")
    killed = 0
    for call, count in counts.items():
        for number in sweep(count, most):
            unpack(golden, folder)
            killed += kill_at(call, number, "fields.nc", "clone2.nc")
            now = names()
            expect(now in (listed, sorted([*listed, "clone2.nc"])), f"{call} {number}: {now}")
            expect(digest("fields.nc") == before, f"{call} {number}: the container has changed")
            done = copy("fields.nc", "clone2.nc", "-f")
            expect(done.returncode == 0 and digest("clone2.nc") == before,
                   f"{call} {number}: {shown(done)}")
            expect(version(folder) == 5, f"{call} {number}: format {version(folder)}")
    return killed


def test_kill__at_system_calls_of_an_upgrade():
    need_strace()
    goldens = sorted((SOURCE / "tests/golden").glob("[0-9]*"))
    old = [golden for golden in goldens if int(golden.name) < 7]
    chosen = by_size([old[0]], [old[0], old[-1]], old)
    with Site(parent=in_memory()) as site:
        killed = sum(kill_upgrades(site, golden, by_size(1, 2, 8)) for golden in chosen)
        print(f"killed {killed} upgrades of {len(chosen)} stores")
        expect(killed >= by_size(5, 15, 200), f"only {killed} were killed")


# ---- PostgreSQL ----------------------------------------------------------------------------------

# A store of format 1, and with the index that attributes had then.
OLDER = """
DROP TRIGGER IF EXISTS guard_prune ON esdm.snapshot;
DROP TRIGGER IF EXISTS guard_move ON esdm.page;
DROP TRIGGER IF EXISTS view_object ON esdm.object;
DROP TRIGGER IF EXISTS view_object_gone ON esdm.object;
DROP TRIGGER IF EXISTS view_named ON esdm.container;
DROP TABLE IF EXISTS esdm.view_node, esdm.view_delta, esdm.view_member CASCADE;
DROP TABLE esdm.shared, esdm.tag, esdm.extent, esdm.reach;
DROP FUNCTION esdm.reach_of, esdm.reach_end, esdm.reach_put, esdm.reach_added, esdm.reach_changed, esdm.reach_make;
DROP FUNCTION esdm.clone;
DROP FUNCTION IF EXISTS esdm.guard;
DROP INDEX esdm.object_global, esdm.object_dataset;
CREATE INDEX object_attributes ON esdm.object USING gin(attributes jsonb_path_ops) WITH (gin_pending_list_limit = 64);
UPDATE esdm.store SET value = '1' WHERE key = 'format'
"""
MESSAGES = ["sendto", "recvfrom"]
MKFS, FIND = tool("esdm-mkfs"), tool("esdm-find")


def kill_command(command, call, number):
    """Whether it was killed."""
    done = subprocess.run([*killing(call, number), *command], env=environment(), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    expect(done.returncode in (0, KILLED), shown(done))
    return done.returncode != 0


def count_messages(site, command):
    log = site.file("calls")
    run(["strace", "-f", "--seccomp-bpf", "-qq", "-o", log, "-e", "trace=" + ",".join(MESSAGES), *command])
    text = log.read_text(errors="replace")
    return {call: len(re.findall(rf"^\d+ +{call}\(", text, re.M)) for call in MESSAGES}


def expect_newest(store):
    found = store.server.sql("SELECT indexname FROM pg_indexes WHERE schemaname = 'esdm' ORDER BY 1", database="site")
    expect({"object_global", "object_dataset", "extent_value", "reach_both", "shared_container", "tag_snapshot"} <= set(found) and
           "object_attributes" not in found, f"indexes: {found}")
    told = run([FIND, "max(v) > 3500"], check=False).stdout
    expect(told.split() == ["c.nc"], f"by values: {told}")
    told = run([FIND, "min(v) < 100"], check=False).stdout
    expect(told.split() == ["a.nc"], f"by values: {told}")


def check_upgraded(store, before, clone):
    """The same command once more has ended the work."""
    expect(store.server.sql("SELECT value FROM esdm.store WHERE key = 'format'", database="site") == ["3"], "format")
    expect(digest("a.nc") == before, "the container has changed")
    if clone:
        expect(digest("b.nc") == before, "the clone differs")
    else:
        expect_newest(store)


def kill_postgres_upgrades(site, store, template, command, most):
    clone = command[0] == CP
    template.restore()
    before, listed = digest("a.nc"), names()
    counts = count_messages(site, command)
    check_upgraded(store, before, clone)
    killed = 0
    for call, count in counts.items():
        for number in sweep(count, most):
            template.restore()
            was_killed = kill_command(command, call, number)
            store.settle()
            now = names()
            expect(now in (listed, sorted([*listed, "b.nc"])), f"{call} {number}: {now}")
            expect(digest("a.nc") == before, f"{call} {number}: the container has changed")
            run([*command, "-f"] if clone else command)
            check_upgraded(store, before, clone)
            killed += was_killed
    print(f"{killed} kill points of {sum(counts.values())} messages: {' '.join(map(str, command))}", flush=True)
    return killed


def test_kill__at_messages_of_an_upgrade_of_postgresql():
    """By the first change, and by esdm-mkfs --reindex, which gives it all indexes."""
    need_strace()
    skip_without_postgres()
    with Server() as server:
        store = Postgres(server)
        with Site(parent=in_memory(), **store.site) as site:
            make(site, "a.nc", 0)
            make(site, "c.nc", 1000)
            store.settle()
            server.sql(OLDER, database="site")
            expect(run([FIND, "max(v) > 3500"], check=False).returncode != 0, "an old store knows no values")
            template = store.template(site)
            try:
                killed = sum(kill_postgres_upgrades(site, store, template, command, by_size(1, 3, 1000))
                             for command in ([CP, "--reflink", "esdm://a.nc", "esdm://b.nc"], [MKFS, "--reindex"]))
            finally:
                template.remove()
            expect(killed >= by_size(2, 6, 80), f"only {killed} were killed")


def test_upgrade__of_postgresql_by_the_owner_of_the_tables():
    """As format 1 was: without the tables that came later."""
    skip_without_postgres()
    with Server() as server:
        metadata = {"plugin": "postgres", "host": "127.0.0.1", "port": server.port,
                    "database": "postgres", "user": "esdm"}
        with Site(parent=in_memory(), metadata=metadata) as site:
            make(site, "a.nc", 0)
            before = digest("a.nc")
            server.sql(OLDER)
            server.sql("CREATE ROLE guest LOGIN; GRANT USAGE ON SCHEMA esdm TO guest; "
                       "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA esdm TO guest; "
                       "GRANT USAGE ON ALL SEQUENCES IN SCHEMA esdm TO guest")
            own = site.config.read_text()
            guest = own.replace('"user": "esdm"', '"user": "guest"')
            expect(guest != own, own)
            site.config.write_text(guest)
            expect(digest("a.nc") == before, "what is old is not read")
            done = copy("a.nc", "b.nc")
            expect(done.returncode != 0 and "owner" in done.stderr, shown(done))
            site.config.write_text(own)
            expect(copy("a.nc", "b.nc").returncode == 0, "the owner does not upgrade")
            expect(server.sql("SELECT value FROM esdm.store WHERE key = 'format'") == ["3"], "format")
            site.config.write_text(guest)
            done = copy("b.nc", "c.nc")
            expect(done.returncode == 0, shown(done))
            run([RM, "--yes", "--for-good", "a.nc", "b.nc"])
            run([GC, "--yes", "--age=0"])
            expect(digest("c.nc") == before, "the clone went with its source")
            # what is connected from before, and knows nothing of clones, deletes nothing
            tried = server.sql("DO $$ BEGIN DELETE FROM esdm.snapshot; RAISE 'deleted'; EXCEPTION "
                               "WHEN OTHERS THEN PERFORM set_config('esdm.told', sqlerrm, false); "
                               "END $$; SELECT current_setting('esdm.told')")
            expect("upgraded" in tried[-1], f"{tried}")


main(
    test_kill__at_system_calls_of_a_clone,
    test_kill__at_system_calls_of_an_upgrade,
    test_kill__at_messages_of_an_upgrade_of_postgresql,
    test_upgrade__of_postgresql_by_the_owner_of_the_tables,
)
