#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Sites of several stores of which some are not there: who can do without them goes on, who cannot
is told which one it is and why."""

import json
import os
import subprocess
import time

import postgres
import s3server
from esdmtest import (BUILD, Site, by_size, client, expect, expect_error, main, run, skip, some, tool)
from faults import (DYING, PROGRAM, check_goes_on, generation, must, need_netcdf4_python, program,
                    shown, writes)
from s3server import Server
from stores import OUTPUTS, Timed, finish, giving_up, s3_site

MKFS = tool("esdm-mkfs")
DISK = {"name": "disk", "plugin": "posix", "directory": "packs"}


def change(site, **keys):
    """Changes keys of the first target."""
    config = json.loads(site.config.read_text())
    config["targets"][0].update(keys)
    site.config.write_text(json.dumps(config))


def lines_of(done):
    return dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)


def check_without(words, target="cloud", last=1):
    """The target is not there: what does not need it works, the rest is explained."""
    with Timed(60):
        expect("a" in run([tool("esdm-ls")]).stdout.split(), "esdm-ls")
        header = client(["ncdump", "-h", "esdm://a"]).stdout
        expect("large_row" in header, f"no header: {header}")
        seen = lines_of(program("read", "a"))
        expect(seen["tiny"] == f"ok {last}", f"{seen}")  # in the metadata store
        told = [text for text in seen.values() if not text.startswith("ok")]
        expect(told, f"nothing lay on {target}: the test is wrong: {seen}")
        for text in told:
            for word in (target, *words):
                expect(word.lower() in text.lower(), f"'{word}' is not in: {text}")
        must("write", "b", 1, 2)
        expect(generation("b") == 2, "what was written to the others is not read back")
        done = run([MKFS, "--check"], check=False)
        expect_error(done, f'target "{target}"', words[0])
        expect('metadata (sqlite): good' in done.stdout, shown(done))
        run([tool("esdm-rm"), "b"])


def test_stores__what_is_not_there_stops_nobody():
    with Server() as server, s3_site(server, others=[DISK]) as site:
        must("write", "a", 1, 1)
        good = json.loads(site.config.read_text())["targets"][0]
        cases = [({"endpoint": "http://127.0.0.1:1", "timeout": 1}, ["127.0.0.1:1"]),
                 ({"access_key": "nobody", "secret_key": "wrongSECRET/0"}, ["access_key"]),
                 ({"bucket": "no-such-bucket"}, ["no-such-bucket"])]
        for keys, words in cases:
            change(site, **keys)
            check_without(words)
            config = json.loads(site.config.read_text())
            config["targets"][0] = good
            site.config.write_text(json.dumps(config))
        server.kill()
        with giving_up(site, 1):
            check_without(["127.0.0.1"])
        server.start()
        expect(generation("a") == 1, "it is back, its data is not")
        check_goes_on("a", 1)
        os.rename(site.packs, site.file("unmounted"))
        check_without(["packs", "cannot be opened"], "disk", 2)
        os.mkdir(site.packs)
        check_without(["packs", "cannot be opened"], "disk", 2)
        os.rmdir(site.packs)
        os.rename(site.file("unmounted"), site.packs)
        expect(generation("a") == 2, "the folder is back, its data is not")


def test_stores__wrong_settings_are_not_passed_over():
    with Server() as server, s3_site(server, others=[DISK]) as site:
        change(site, bukket="x")
        expect_error(program("write", "a", 1, 1), "bukket", "targets[0]")


def test_stores__without_any_target_nothing_is_begun():
    with Server() as server, s3_site(server) as site:
        must("write", "a", 1, 1)
        server.kill()
        expect("a" in run([tool("esdm-ls")]).stdout.split(), "esdm-ls")
        with giving_up(site, 1), Timed(20):
            expect_error(program("write", "b", 1, 1), "container 'b'", "cloud", "127.0.0.1")
        expect("b" not in run([tool("esdm-ls")]).stdout.split(), "it was made")


def test_stores__what_may_not_go_elsewhere_does_not():
    """A policy allows one target alone, whose server is gone: that is an error that says so, nothing is
    committed, and what may lie elsewhere does."""
    with Server() as server, s3_site(server, others=[DISK], timeout=1) as site:
        config = json.loads(site.config.read_text())
        config["policies"] = [{"container": "strict", "targets": ["cloud"]}]
        site.config.write_text(json.dumps(config))
        must("write", "strict", 1, 1)
        server.kill()
        with Timed(60):
            done = program("write", "strict", 2, 2)
        expect(done.returncode == 3, shown(done))
        expect_error(done, "strict", "cloud", "127.0.0.1")
        must("write", "free", 1, 1)
        expect(generation("free") == 1, "what the policy does not concern")
        server.start()
        expect(generation("strict") == 1, "the last commit is not there")
        check_goes_on("strict", 1)
        expect(stored_on("strict", "disk") == 0, "it lies where it may not")


# ---- dying in the middle of a write -------------------------------------------------------------

RECORDS = by_size(30, 40, 200)


def target_of(server, name, **keys):
    return server.target(name, prefix=f"second{time.monotonic_ns():x}", part="5 MiB", **keys)


def stored_on(name, target):
    """Bytes of the container on a target."""
    text = run([tool("esdm-stat"), "--json", "-f", name]).stdout
    seen = []
    json.loads(text, object_hook=lambda o: seen.append(o) if "position" in o else o)
    return sum(f["stored_bytes"] for f in seen if f["target"] == target)


def write_while_dying(server, site, name, at, survivor):
    """The server dies before record `at`; the program notices nothing. Then it comes back, and all is
    there."""
    with giving_up(site, 5), Timed(90):
        told = client(["/usr/bin/python3", DYING, "write", f"esdm://{name}", RECORDS, at,
                       f"kill -9 {server.process.pid}"]).stderr
    server.kill()
    expect(stored_on(name, survivor) > 0, f"nothing is on {survivor}")
    count = writes(name)["elsewhere"]
    expect(count > 0 and f": {count} of " in told, f"{count}: {told}")
    server.start()
    done = client(["/usr/bin/python3", DYING, "check", f"esdm://{name}", RECORDS])
    expect("all values are there" in done.stdout, shown(done))
    run([MKFS, "--check"])


def test_stores__one_of_two_servers_is_killed_during_a_write():
    need_netcdf4_python()
    with Server() as server, Server() as second:
        others = [target_of(second, "second")]
        for codec in by_size(["none"], ["none"], ["none", "lz4"]):
            with s3_site(server, others=others, engine={"codec": codec}) as site:
                for at in by_size([RECORDS // 2], some([0, RECORDS // 2, RECORDS - 1], 1),
                                  range(0, RECORDS, 10)):
                    write_while_dying(server, site, f"w{at}", at, "second")


def test_stores__the_server_beside_a_folder_is_killed_during_a_write():
    need_netcdf4_python()
    with Server() as server:
        for durability in by_size(["process"], ["process", "system"], ["process", "system"]):
            with s3_site(server, others=[DISK], durability=durability) as site:
                for at in by_size([RECORDS // 3], some([1, RECORDS // 3], 1), range(0, RECORDS, 10)):
                    write_while_dying(server, site, f"w{at}", at, "disk")


def test_stores__a_database_that_is_full_is_left():
    need_netcdf4_python()
    if not (BUILD / "esdm/esdm-data-kv.so").exists():
        skip("built without Kyoto Cabinet (package libkyotocabinet-dev)")
    tiny = {"name": "tiny", "plugin": "kv", "directory": "kv"}
    with Site(targets=[tiny, DISK], make=False) as site:
        site.file("kv").mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", site.file("kv")],
                          stderr=subprocess.DEVNULL, check=False).returncode:
            skip("file systems may not be mounted here")
        try:
            run([MKFS])
            client(["/usr/bin/python3", DYING, "write", "esdm://full", RECORDS, RECORDS, "true"])
            expect(stored_on("full", "tiny") > 0 and stored_on("full", "disk") > 0, "one target")
            done = client(["/usr/bin/python3", DYING, "check", "esdm://full", RECORDS])
            expect("all values are there" in done.stdout, shown(done))
        finally:
            subprocess.run(["umount", site.file("kv")], check=False)


# ---- nodes without a shared file system ---------------------------------------------------------


class Node:
    """What one machine of a cluster has of its own: folders, a configuration, nothing else."""

    def __init__(self, site, name):
        self.folder = site.folder / name
        for part in ("home", "tmp", "work"):
            (self.folder / part).mkdir(parents=True)
        (self.folder / "site.json").write_text(site.config.read_text())
        self.env = {"HOME": self.folder / "home", "TMPDIR": self.folder / "tmp",
                    "XDG_DATA_HOME": self.folder / "home/data", "PWD": self.folder / "work",
                    "ESDM_CONFIG": self.folder / "site.json"}

    def run(self, *command):
        """Behind a file system of its own: the other nodes' folders are not there."""
        hidden = [str(p) for p in self.folder.parent.iterdir() if p.is_dir() and p != self.folder]
        script = "".join(f"mount -t tmpfs none '{p}' && " for p in hidden) + 'exec "$@"'
        env = {**os.environ, **{k: str(v) for k, v in self.env.items()}}
        return subprocess.Popen(["unshare", "-m", "sh", "-c", script, "sh", *map(str, command)],
                                cwd=self.folder / "work", env=env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def must(self, *command):
        done = finish(self.run(*command))
        expect(done.returncode == 0, shown(done))
        return done.stdout


def test_stores__nodes_share_nothing_but_servers():
    """Data on S3, metadata in PostgreSQL: several nodes write at once, and read what others wrote."""
    postgres.skip_without_postgres()
    if subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        skip("namespaces are not allowed here")
    with Server() as server, postgres.Server() as database:
        with s3_site(server, make=False, metadata={"plugin": "postgres", "schema": "nodes",
                                                   "connection": database.connection()}) as site:
            nodes = [Node(site, f"node{i}") for i in range(3)]
            nodes[0].must(MKFS)
            writers = [node.run(PROGRAM, "write", f"of{i}", 1, 3) for i, node in enumerate(nodes)]
            writers += [node.run(PROGRAM, "write", "shared", 1 + 10 * i, 4 + 10 * i)
                        for i, node in enumerate(nodes)]
            for writer in writers[:3]:
                done = finish(writer)
                expect(done.returncode == 0, shown(done))
            for writer in writers[3:]:  # the same structure at once: one of them makes it
                done = finish(writer)
                expect(done.returncode in (0, 3), shown(done))
            for node in nodes:
                for i in range(3):
                    expect("generation 3" in node.must(PROGRAM, "check", f"of{i}"), f"of{i}")
                expect(sorted(node.must(tool("esdm-ls")).split())[:3] == ["of0", "of1", "of2"],
                       "esdm-ls")
            nodes[1].must(PROGRAM, "write", "of0", 4, 5)
            expect("generation 5" in nodes[2].must(PROGRAM, "check", "of0"), "another node's commit")
            database.restart("immediate")
            expect("generation 5" in nodes[0].must(PROGRAM, "check", "of0"), "after a restart")
            nodes[2].must(MKFS, "--check")
            nodes[1].must(tool("esdm-rm"), "of0", "of1")
            expect("of1" not in nodes[0].must(tool("esdm-ls")), "removed on another node")


# ---- the end ------------------------------------------------------------------------------------


def test_stores__no_secret_was_printed():
    expect(len(OUTPUTS) > 10, f"only {len(OUTPUTS)} outputs were seen")
    for text in OUTPUTS:
        for secret in (s3server.SECRET_KEY, "wrongSECRET/0"):
            expect(secret not in text, f"a secret is in: {text}")


if not (BUILD / "esdm/esdm-data-s3.so").exists():
    skip("this ESDM was built without S3")
main(*[test for name, test in list(globals().items()) if name.startswith("test_")])
