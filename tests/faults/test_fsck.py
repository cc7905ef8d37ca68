#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-fsck finds each kind of damage and tells its place; esdm-gc removes what nobody can reach,
and nothing else."""

import json
import os
import random
import sqlite3
import subprocess
import time

from esdmtest import (BUILD, Site, by_size, client, client_environment, environment, expect, expect_error,
                      main, need_program, run, tool)
from faults import Writer, database, generation, must, shown


def fsck(*options, status=0):
    done = run([tool("esdm-fsck"), "--json", *options], check=False)
    expect(done.returncode == status,
           f"esdm-fsck {options}: status {done.returncode}, not {status}\n"
           f"{done.stdout[-3000:]}{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def gc(*options, status=0):
    done = run([tool("esdm-gc"), "--json", *options], check=False)
    expect(done.returncode == status, f"esdm-gc {options}: status {done.returncode}\n"
           f"{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return json.loads(done.stdout) if done.stdout else {}


def problems(result, *words):
    found = [f for f in result["findings"] if f["kind"] in ("problem", "consequence")]
    counted = sum(f["kind"] == "problem" for f in found)
    expect(result["problems"] - result["repaired"] == counted, f"{counted} problems: {result}")
    expect(found, f"no problem was found: {result}")
    for finding in found:
        expect(finding["what"] and (finding["place"] or finding["remedy"]),
               f"a finding without place or remedy: {finding}")
    text = json.dumps(found)
    for word in words:
        expect(word in text, f"no finding says '{word}': {text[:3000]}")
    return found


def largest(site):
    return max(site.pack_files(), key=lambda p: p.stat().st_size)


def test_fsck__sound_site():
    with Site(history=3):
        must("write", "a/x", 1, 4)
        must("write", "b", 1, 1)
        result = fsck("--data")
        expect(result["problems"] == 0 and result["containers"] == 2 and result["orphans"] == 0,
               f"{result}")
        expect(result["fragments"] > 3 and result["bytes_read"] > 1000000, f"{result}")
        heads = fsck()
        expect(heads["bytes_read"] < result["bytes_read"] / 10, "heads alone: too much was read")
        expect(heads["fragments"] == result["fragments"], f"{heads}")
        one = fsck("a")
        expect(one["containers"] == 1 and 0 < one["packs"] < result["packs"], f"{one}")
        fsck("nothing/here", status=3)
        text = run([tool("esdm-fsck")]).stdout
        expect("sound" in text, text)
        done = run([tool("esdm-fsck"), "--wrong"], check=False)
        expect(done.returncode == 2, "a wrong option")


GROWING = """
import sys, netCDF4, numpy
nc = netCDF4.Dataset("esdm://growing.nc", "w")
nc.createDimension("t", None)
nc.createDimension("x", 1000)
v = [nc.createVariable(f"v{i}", "f8", ("t", "x")) for i in range(24)]
for step in range(1000000):
    for one in v:
        one[step] = numpy.arange(1000) + step
    nc.sync()
    print(f"{step:100}", flush=True) # the pipe holds it back
"""


def test_fsck__beside_a_writer():
    """Packs grow between their listing and their check."""
    with Site():
        with subprocess.Popen([tool("esdm-run"), "/usr/bin/python3", "-c", GROWING], stdout=subprocess.PIPE,
                              env=client_environment(), text=True) as writer:
            try:
                for _ in range(8):
                    for _ in range(20):
                        expect(writer.stdout.readline(), "the writer has ended")
                    fsck()
            finally:
                writer.kill()


def test_fsck__missing_pack():
    with Site() as site:
        must("write", "a", 1, 1)
        pack = largest(site)
        pack.rename(site.file("aside"))
        found = problems(fsck(status=1), "missing", pack.name, "/large", "cannot be read")
        expect(all(f["container"] == "a" for f in found), f"{found}")
        for finding in found:  # that data are lost is no problem of its own
            expect(("missing" in finding["what"]) == (finding["kind"] == "problem"), f"{finding}")
        result = fsck("--repair", status=4)
        problems(result, "missing", "cannot be read")
        expect(result["repaired"] == 0, "nothing could be repaired")
        site.file("aside").rename(pack)
        fsck("--data")


def test_fsck__missing_index_page():
    with Site() as site:
        must("write", "a", 1, 1)
        fsck("--data")
        with sqlite3.connect(database(site)) as db:
            page, = db.execute("SELECT page FROM page_data ORDER BY length(data) DESC").fetchone()
            db.execute("DELETE FROM page_data WHERE page = ?", (page,))
        db.close()
        for options in (), ("--data",):
            found = problems(fsck(*options, status=1), f"index page {page}", "no index page", "backup")
            expect(len(found) == 1 and found[0]["container"] == "a" and found[0]["dataset"], f"{found}")
        expect(fsck("--repair", status=4)["repaired"] == 0, "a page that is lost was repaired")


def test_fsck__short_pack():
    with Site() as site:
        must("write", "a", 1, 1)
        pack = largest(site)
        os.truncate(pack, pack.stat().st_size - 10)
        problems(fsck(status=1), "ends before", pack.name)


def test_fsck__flipped_bits():
    """Heads are looked at always, data with --data; nothing escapes."""
    generator = random.Random(4)
    with Site() as site:
        must("write", "a", 1, 1)
        for _ in range(by_size(4, 12, 100)):
            pack = generator.choice(site.pack_files())
            data = bytearray(pack.read_bytes())
            at = generator.randrange(len(data))
            data[at] ^= 1 << generator.randrange(8)
            whole = pack.read_bytes()
            pack.chmod(0o644)
            pack.write_bytes(data)
            result = fsck("--data", status=1)
            problems(result, "damaged", pack.name)
            pack.write_bytes(whole)
        data = bytearray(pack.read_bytes())
        data[8] ^= 1  # in the head of the first fragment
        pack.write_bytes(data)
        problems(fsck(status=1), "damaged", "byte 0")


def test_fsck__absent_target():
    targets = [{"name": n, "plugin": "posix", "directory": n} for n in ("one", "two")]
    with Site(targets=targets) as site:
        must("write", "a", 1, 1)
        site.file("two").rename(site.file("away"))
        problems(fsck(status=1), "target 'two'", "cannot be opened", "cannot be read")
        gc("--age", "0", "--yes")
        site.file("away").rename(site.file("two"))
        fsck("--data")


def test_fsck__index():
    with Site() as site:
        must("write", "a", 1, 1)
        with sqlite3.connect(database(site)) as base:
            page, data = base.execute("SELECT page, data FROM page_data").fetchone()
            broken = bytearray(data)
            broken[len(broken) // 2] ^= 4
            base.execute("UPDATE page_data SET data = ? WHERE page = ?", (bytes(broken), page))
        base.close()
        problems(fsck(status=1), f"index page {page}", "checksum")
        fsck("--repair", status=4)
        with sqlite3.connect(database(site)) as base:
            base.execute("UPDATE page_data SET data = ? WHERE page = ?", (data, page))
            base.execute("UPDATE snapshot SET attributes = NULL")
        base.close()
        problems(fsck(status=1), "attribute index")
        result = fsck("--repair", status=1)
        expect(result["repaired"] == result["problems"] == 1, f"{result}")
        fsck("--data")
        with sqlite3.connect(database(site)) as base:
            base.execute("UPDATE snapshot SET document = '{\"format\": 1, \"groups\": 7}'")
        base.close()
        problems(fsck(status=1), "snapshot")


def test_fsck__lost_entry_of_the_directory():
    with Site() as site:
        must("write", "a", 1, 1)
        must("write", "b", 1, 1)
        with sqlite3.connect(database(site)) as base:
            base.execute("UPDATE page SET dataset = 77, sum = 'none' "
                         "WHERE (container, dataset, page) = "
                         "(SELECT container, dataset, page FROM page ORDER BY page LIMIT 1)")
        base.close()
        problems(fsck(status=1), "dataset 77", "no such dataset")
        with sqlite3.connect(database(site)) as base:
            base.execute("DELETE FROM page WHERE dataset = 77")
        base.close()
        result = fsck(status=1)
        problems(result, '"a"', "fragments", "were committed")
        expect(result["problems"] == 1, f"{result}")


def node_of(site, name):
    """Where the first node of a table or an index begins in the database, which has no log then."""
    with sqlite3.connect(database(site)) as base:
        base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        root = base.execute("SELECT rootpage FROM sqlite_master WHERE name = ?",
                            (name,)).fetchone()[0]
    base.close()
    return (root - 1) * 4096


def test_fsck__changed_rows():
    """Their checksum differs; it is told of the container, and the others are looked at."""
    with Site(history=3) as site:
        must("write", "a", 1, 3)
        must("write", "b", 1, 1)
        own = "container = (SELECT container FROM container WHERE name = 'a')"
        first = "id = (SELECT container * 4294967296 FROM container WHERE name = 'a') + 2"
        for table, column, rows in (("container", "fragments", own), ("page", "raw_bytes", own),
                                    ("container", "snapshot", own), ("page", "removed", own),
                                    ("snapshot", "time_ns", f"{first} + 1"),
                                    ("snapshot", "pruned", first)):
            for change in (1, -1):
                with sqlite3.connect(database(site)) as base:
                    base.execute(f"UPDATE {table} SET {column} = {column} + {change} WHERE {rows}")
                base.close()
                if change > 0:
                    result = fsck(status=1)
                    problems(result, "checksum", f"'{table}'", "backup")
                    expect(result["complete"] and result["containers"] == 2, f"{result}")
                    expect(result["problems"] == 1 or table == "page", f"{result}")
                    expect(all(f["container"] in ("a", None) for f in result["findings"]),
                           f"{result}")
                    expect(generation("b") == 1, "the other one is not readable")
                    gc(status=5 if table == "container" else 0)
                else:
                    expect(fsck()["problems"] == 0, f"{table}.{column}: not as before")
        expect(generation("a") == 3 and generation("b") == 1, "they read otherwise")


def test_fsck__damaged_database():
    with Site() as site:
        must("write", "a", 1, 1)
        root = node_of(site, "attribute_value")
        with open(database(site), "r+b") as file:
            file.seek(root)
            file.write(b"\xff")  # a kind of node that there is not
        problems(fsck(status=1), "is damaged")


def test_fsck__lost_names():
    """The index of names has fewer than there are: lists are an error, and the check goes on."""
    with Site() as site:
        for name in ("a", "b/x", "b/y"):
            must("write", name, 1, 1)
        root = node_of(site, "sqlite_autoindex_container_1")
        with open(database(site), "r+b") as file:
            file.seek(root + 3)
            file.write((2).to_bytes(2, "big"))  # cells; there are three
        expect_error(run([tool("esdm-ls")], check=False), "damaged")
        expect_error(run([tool("esdm-cp"), "-r", "esdm://", site.file("out")], check=False),
                     "damaged")
        result = fsck(status=1)
        problems(result, "index has")
        expect(result["complete"] and result["containers"] == 2 and result["packs"] > 0, f"{result}")
        expect(fsck("--data", status=1)["complete"], "seals and what is left are not looked for")
        before = sorted(site.pack_files())
        expect_error(run([tool("esdm-gc"), "--yes", "--age", "0"], check=False),
                     "nothing is removed")
        expect(sorted(site.pack_files()) == before, "packs were removed")


def test_fsck__lists_containers_twice():
    """Once to check them, and once for seals and branches that nobody merges, however many there are."""
    os.environ["ESDM_PLUGIN_PATH"] = str(BUILD / "plugins")
    with Site(metadata={"plugin": "faulty", "directory": "metadata"}):
        for name in ("a", "b/x", "b/y"):
            must("write", name, 1, 1)
        for options in ((), ("--data",)):
            os.environ["ESDM_FAULTY_META"] = "names:3+0:fail"
            expect(fsck(*options)["complete"], "it lists them more than twice")
            os.environ["ESDM_FAULTY_META"] = "names:2+0:fail"
            expect(not fsck(*options, status=5)["complete"], "the fault was not in its way")
        del os.environ["ESDM_FAULTY_META"], os.environ["ESDM_PLUGIN_PATH"]


def test_gc__flipped_bits_of_the_catalogue_remove_nothing():
    generator = random.Random(5)
    with Site(engine={"inline": 64}) as site:
        for name in ("a", "b/x", "b/y"):
            must("write", name, 1, 2)
        with sqlite3.connect(database(site)) as base:
            base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            roots = [r[0] for r in base.execute(
                "SELECT rootpage FROM sqlite_master WHERE tbl_name IN ('container', 'page') "
                "AND name NOT IN ('page_removed', 'container_hidden') AND rootpage > 0")]
            base.execute("PRAGMA journal_mode = DELETE")
        base.close()
        expect(len(roots) == 3, f"{roots}")
        time.sleep(0.6)  # snapshots are deleted from half a second on
        gc("--age", "0", "--yes")
        before = sorted(site.pack_files())
        refused = 0
        rounds = by_size(40, 150, 3000)
        for _ in range(rounds):
            page = (generator.choice(roots) - 1) * 4096
            with open(database(site), "r+b") as file:
                file.seek(page)
                node = file.read(4096)
                # The head with the pointers to the cells, or the cells themselves.
                content = int.from_bytes(node[5:7], "big")
                cells = int.from_bytes(node[3:5], "big")
                at = generator.choice([generator.randrange(12 + 2 * cells),
                                       generator.randrange(content, 4096)])
                file.seek(page + at)
                file.write(bytes([node[at] ^ 1 << generator.randrange(8)]))
            done = run([tool("esdm-gc"), "--yes", "--age", "0"], check=False)
            refused += done.returncode != 0
            expect(sorted(site.pack_files()) == before,
                   f"byte {page + at}: packs were removed\n{done.stdout}{done.stderr}")
            with open(database(site), "r+b") as file:
                file.seek(page)
                file.write(node)
        expect(refused > rounds / 2, f"{refused} of {rounds} were refused")
        for name in ("a", "b/x", "b/y"):
            expect(generation(name) == 2, name)


def test_gc__killed_writers():
    """What they leave is removed, once it is old enough; what is committed stays."""
    generator = random.Random(2)
    with Site(engine={"pack": "4KiB"}) as site:
        must("write", "a", 1, 1)
        last = 1
        for _ in range(by_size(5, 20, 200)):
            before = len(site.pack_files())
            with Writer("a", last + 1, 1000000) as writer:
                while len(site.pack_files()) == before and writer.process.poll() is None:
                    time.sleep(0.001)
                time.sleep(generator.uniform(0, 0.05))
            last = generation("a")
        time.sleep(0.6)
        gc()  # deletes snapshots that the history does not keep
        result = fsck()
        young = gc()
        expect(young["packs"] == 0 and young["young"] == result["orphans"], f"{young} {result}")
        before = len(site.pack_files())
        dry = gc("--age", "0", "--dry-run")
        expect(dry["packs"] == result["orphans"] and len(site.pack_files()) == before, f"{dry}")
        expect(gc("--age", "0", status=4) == {}, "it did not ask")
        done = gc("--age", "0s", "--yes")
        expect(done["packs"] == dry["packs"] and done["failed"] == 0, f"{done}")
        expect(len(site.pack_files()) == before - done["packs"], "other packs went")
        expect(fsck("--data")["orphans"] == 0, "orphans are left")
        expect(generation("a") == last, "data went")
        done = run([tool("esdm-gc"), "--age", "soon"], check=False)
        expect(done.returncode == 2, "a wrong age")
        expect_error(run([tool("esdm-gc"), "a"], check=False), "esdm-rm")


def test_gc__living_writers_are_left_alone():
    with Site():
        must("write", "a", 1, 1)
        last = by_size(40, 120, 1000)
        with Writer("new", 1, last, "pause") as writer:
            writer.wait_for("started")
            for _ in range(by_size(5, 20, 100)):
                expect(gc("--age", "0", "--yes")["failed"] == 0, "something could not be removed")
            writer.wait_for(f"written {last}")  # and not committed
            result = gc("--age", "0", "--yes")
            expect(result["failed"] == 0, f"{result}")
            expect(fsck()["problems"] == 0, "the site is damaged")
            writer.go_on()
            done = writer.finish()
        expect(done.returncode == 0 and generation("new") == last, f"lost: {shown(done)}")
        fsck("--data")
        gc("--age", "0", "--yes")
        fsck("--data")


def test_gc__packs_of_old_snapshots():
    """Overwritten data go when their snapshots are not kept any more: by gc, or at the next close."""
    def used():
        return sum(p.stat().st_size for p in site.pack_files())

    with Site(engine={"pack": "4KiB"}, history=10) as site:
        must("write", "a", 1, 20)
        kept = used()
        config = json.loads(site.config.read_text())
        del config["history"]
        site.config.write_text(json.dumps(config))
        done = gc("--age", "0", "--yes")
        left = used()
        expect(0 < done["bytes"] == kept - left and left < kept / 5, f"{done}, {kept} {left}")
        expect(fsck("--data")["problems"] == 0 and generation("a") == 20, "data went")
        must("write", "a", 21, 40)
        expect(used() < kept / 5, f"{kept} {left} {used()}")


def test_gc__files_of_others():
    """What does not look like a pack of ours is not listed, and not removed."""
    with Site() as site:
        must("write", "a", 1, 1)
        folder = site.pack_files()[0].parent
        (folder / "notes.txt").write_text("mine")
        gc("--age", "0", "--yes")
        expect((folder / "notes.txt").exists(), "a foreign file was removed")


def test_gc__containers_without_stubs():
    """Those of removed stubs go when asked for; moved stubs, copies and other folders count."""
    need_program("ncgen", "ncdump")
    with Site() as site:
        site.file("run/sub").mkdir(parents=True)
        site.file("archive").mkdir()
        config = json.loads(site.config.read_text())
        config["netcdf"] = {"routes": [str(site.file("run"))]}
        site.config.write_text(json.dumps(config))
        cdl = site.file("a.cdl")
        cdl.write_text("netcdf a { dimensions: x = 5000 ; variables: double v(x) ; data: v = "
                       + ", ".join(map(str, range(5000))) + " ; }")
        for kind, name in (("-3", "kept"), ("-4", "removed"), ("-6", "moved"), ("-5", "copied"),
                           ("-4", "sub/deep")):
            client(["ncgen", kind, "-o", site.file(f"run/{name}.nc"), cdl])
        client(["ncgen", "-4", "-o", "esdm://elsewhere/b.nc", cdl])
        run(["rm", site.file("run/removed.nc")])
        run(["mv", site.file("run/moved.nc"), site.file("archive/m.nc")])
        run(["cp", site.file("run/copied.nc"), site.file("run/sub/copy.nc")])
        run(["rm", site.file("run/copied.nc")])
        prefix = str(site.file("run")).lstrip("/")
        here = ["--stubs", site.file("run")]
        both = [*here, "--stubs", site.file("archive")]
        count = lambda: len(run([tool("esdm-ls")]).stdout.split())
        expect(count() == 6, run([tool("esdm-ls")]).stdout)
        young = gc(*both)
        expect(young["without_stub"] == [] and young["without_stub_young"] == 1, f"{young}")
        text = run([tool("esdm-gc"), *both]).stdout
        expect("1 container without stub left" in text and "--age 0" in text, text)
        listed = gc(*both, "--age", "0", "--dry-run")
        expect(listed["without_stub"] == [f"{prefix}/removed.nc"] and count() == 6, f"{listed}")
        expect(len(gc(*here, "--age", "0", "--dry-run")["without_stub"]) == 2, "the archive")
        expect(gc(*both, "--age", "0", status=4) == {} and count() == 6, "it did not ask")
        done = gc(*both, "--age", "0", "--yes")
        expect(done["without_stub"] == [f"{prefix}/removed.nc"] and count() == 5, f"{done}")
        for name in ("run/kept.nc", "run/sub/deep.nc", "run/sub/copy.nc", "archive/m.nc"):
            expect("v = 0, 1, 2" in client(["ncdump", site.file(name)]).stdout, name)
        expect(fsck("--data")["problems"] == 0, "damaged")
        site.file("run").rename(site.file("unmounted"))
        site.file("run").mkdir()
        expect_error(run([tool("esdm-gc"), "--age", "0", "--yes", *here], check=False), "mounted",
                     f"esdm-rm -r '{prefix}'")
        expect_error(run([tool("esdm-gc"), "--stubs", "/nowhere/at/all"], check=False), "nowhere")
        expect(count() == 5, "containers went")


def test_gc__folders_routed_to_a_name():
    """The variable's routes count for folders below them, and names are written as there."""
    need_program("ncgen")
    with Site() as site:
        cdl = site.file("a.cdl")
        cdl.write_text("netcdf a { dimensions: x = 3 ; variables: double v(x) ; data: v = 1, 2, 3 ; }")
        run_folder, odd = site.file("run"), site.file("odd=x")
        (run_folder / "sub").mkdir(parents=True)
        odd.mkdir()
        route = {"ESDM_NC_ROUTE": f"{site.file('none')}=n:{run_folder}=/exp/one=1:{odd}=lost"}
        for folder in (run_folder, run_folder / "sub"):
            for name in ("kept", "removed"):
                client(["ncgen", "-4", "-o", folder / f"{name}.nc", cdl], env=route)
            (folder / "removed.nc").unlink()
        client(["ncgen", "-4", "-o", "esdm://exp/one=10/other.nc", cdl])
        names = run([tool("esdm-ls")]).stdout.split()
        expect("exp/one=1/removed.nc" in names and "exp/one=1/sub/removed.nc" in names, f"{names}")

        def stubless(*folders, env=None):
            options = [o for folder in folders for o in ("--stubs", folder)]
            done = run([tool("esdm-gc"), "--json", "--dry-run", "--age", "0", *options],
                       env=environment(env))
            return json.loads(done.stdout)["without_stub"]

        deep = ["exp/one=1/sub/removed.nc"]
        both = ["exp/one=1/removed.nc", *deep]
        # Containers tell in which folder their stubs were made, whatever the route called them.
        expect(stubless(run_folder) == both, "the containers' own word")
        told = run([tool("esdm-gc"), "-n", "--age", "0", "--stubs", run_folder])
        expect(told.stderr.count("esdm-gc:") == 1 and "were looked for" in told.stderr, told.stderr)
        empty = site.file("empty")
        empty.mkdir()
        told = run([tool("esdm-gc"), "-n", "--stubs", empty])
        expect("--stubs FOLDER=NAME" in told.stderr and str(empty) in told.stderr, told.stderr)
        expect(stubless(run_folder, env=route) == both, "the variable")
        for entry in (f"{site.folder}/r?n=x", f"{site.folder}/ru*=exp/one=1",  # exp/one=1/run/removed.nc
                      f"{site.folder}/no*=n:{run_folder}/*.nc=exp/one=1",
                      f"{run_folder}/*=/exp/one=1"):
            expect(stubless(run_folder, env={"ESDM_NC_ROUTE": entry}) == both, entry)
        expect(stubless(run_folder / "sub", env=route) == deep, "below a routed folder")
        for name in ("exp/one=1", "/exp/one=1"):
            expect(stubless(f"{run_folder}={name}") == both, name)
        expect(stubless(odd) == [], "a folder with = in its name")
        other = site.file("other")
        (other / "sub").mkdir(parents=True)
        (run_folder / "kept.nc").rename(other / "kept.nc")
        (run_folder / "sub" / "kept.nc").rename(other / "sub" / "kept.nc")
        for more in (f"{other}=exp/one=1", f"{other}/sub=/exp/one=1/sub:{other}=exp/one=1"):
            env = {"ESDM_NC_ROUTE": f"{route['ESDM_NC_ROUTE']}:{more}"}
            expect(stubless(run_folder, env=env) == both, f"stubs of another route: {more}")
        above = site.file("above")
        above.mkdir()
        other.rename(above / "one=1")
        env = {"ESDM_NC_ROUTE": f"{route['ESDM_NC_ROUTE']}:{above}=exp/"}
        expect(stubless(run_folder, env=env) == both, "stubs of a route above")
        (above / "one=1").rename(above / "there")
        for link in ("nowhere", "one=1"):  # a file system that is not mounted; one that leads to itself
            (above / "one=1").symlink_to(link)
            done = run([tool("esdm-gc"), "--dry-run", "--age", "0", "--stubs", run_folder],
                       check=False, env=environment(env))
            expect(done.returncode != 0, shown(done))
            expect_error(done, "nothing is removed")
            (above / "one=1").unlink()
        env = {"ESDM_NC_ROUTE": f"{run_folder}=exp/one=1:{site.file('gone')}=exp/one=1/x"}
        done = run([tool("esdm-gc"), "--dry-run", "--age", "0", "--stubs", run_folder],
                   check=False, env=environment(env))
        expect(done.returncode != 0, shown(done))
        expect_error(done, "which is not there")


if __name__ == "__main__":
    main(*[f for n, f in sorted(globals().items()) if n.startswith("test_")])
