#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Writers, readers, branches, tags, clones and all tools that move or remove data at once, on one site, with kills; each value
that is seen must be one that its history allows (concurrent_ledger.h). On SQLite and PostgreSQL.

$ESDM_MODEL_SECONDS says how long; $ESDM_TEST_SEED what is drawn, but not what meets what."""

import contextlib
import json
import os
import random
import signal
import subprocess
import tempfile
import time

from esdmtest import BUILD, SEED, Failed, Site, by_size, environment, expect, is_pack, main, run, tool
from postgres import Server, skip_without_postgres

PROGRAM = str(BUILD / "tests/faults/concurrent_worker")
SECONDS = float(os.environ.get("ESDM_MODEL_SECONDS") or by_size(5, 5, 60))
WRITERS, READERS, BRANCHERS, KEEPERS = by_size((6, 5, 2, 1), (16, 16, 4, 2), (16, 16, 4, 2))
TARGETS = ("fast", "disk", "more")
CONTAINERS = ("h0", "h1", "sub/h2", "sub/h3")
SHARING = CONTAINERS[:3]  # the last one shares packs with none, so that esdm-compact empties some
SITE = {
    "targets": [{"name": name, "plugin": "posix", "directory": name} for name in TARGETS],
    "history": 3,
    "durability": "process",
    "engine": {"threads": 2, "memory": "64 MiB", "inline": 0},
}
LONG = 900  # seconds in which all must have ended
PATIENCE = 20  # a machine that does much else has so many times $ESDM_MODEL_SECONDS for what must have happened
MUST = ("commits", "reads of the newest", "merges", "tags")


class Crowd:
    """Processes that run at once, each with a name of its own by which a server knows it."""

    def __init__(self, site, server):
        self.site, self.server = site, server
        self.chance = random.Random(SEED)
        self.ledger = site.file("ledger")
        self.running = []  # [process, what makes it again, its name]
        self.made = 0
        self.kills = {}
        self.tools = {}
        self.emptied = 0  # calls of esdm-compact that moved what was left in packs

    def name(self):
        self.made += 1
        return f"esdm-{self.made}"

    def start(self, command, name):
        output = tempfile.TemporaryFile("w+", errors="replace")
        process = subprocess.Popen(list(map(str, command)), env=environment({"PGAPPNAME": name}), stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=subprocess.STDOUT)
        process.output = output
        return process

    def add(self, make):
        name = self.name()
        self.running.append([self.start(make(), name), make, name])

    def worker(self, *role):
        return lambda: [PROGRAM, self.ledger, self.chance.randrange(1 << 32), *role]

    def once(self, *role):
        done = run(self.worker(*role)())
        return done.stdout

    def wait_for_server(self, name):
        """What a client that was killed has asked for may still be done; then it is forgotten."""
        until = time.monotonic() + 120
        while self.server and self.server.sql(f"SELECT pid FROM pg_stat_activity WHERE application_name = '{name}'"):
            expect(time.monotonic() < until, f"the server still works for {name}, which was killed")
            time.sleep(0.01)

    def said(self, process):
        process.output.seek(0)
        return process.output.read()[-4000:]

    def kill_one(self):
        entry = self.chance.choice(self.running)
        process, make, name = entry
        if process.poll() is not None:
            return
        process.kill()
        process.wait()
        if process.returncode != -signal.SIGKILL:
            return  # it has ended by itself: look() sees how
        self.wait_for_server(name)
        what = self.kind(process)
        self.kills[what] = self.kills.get(what, 0) + 1
        process.output.close()
        entry[2] = self.name()
        entry[0] = self.start(make(), entry[2])

    def kind(self, process):
        return process.args[3] if process.args[0] == PROGRAM else os.path.basename(process.args[0])

    def look(self, stopped=False):
        """Begins tools anew that have ended; anything else that ended is an error."""
        for entry in self.running:
            process, make, _ = entry
            if process.poll() is None:
                continue
            ended = process.returncode == 0 or self.met_others(process)
            expect(ended and (stopped or process.args[0] != PROGRAM),
                   f"seed {SEED}: {process.args}: status {process.returncode}\n{self.said(process)}")
            if not stopped:
                what = self.kind(process)
                self.tools[what] = self.tools.get(what, 0) + 1
                self.emptied += "out of packs of which little is needed" in self.said(process)
                process.output.close()
                entry[2] = self.name()
                entry[0] = self.start(make(), entry[2])

    def met_others(self, process):
        """Whether a compaction gave way to writers, which it says."""
        return self.kind(process) == "esdm-compact" and process.returncode == 1 and \
            "others wrote to the same parts" in self.said(process)

    def maintenance(self):
        """One of the tools at a time in each of four places."""
        chance = self.chance
        kinds = (
            lambda: [tool("esdm-gc"), "--yes", "--age", "0", *(["--replaced-now"] if chance.random() < 0.5 else [])],
            lambda: [tool("esdm-drain"), "--from", chance.choice(TARGETS), "--age", "0"],
            lambda: [tool("esdm-compact"), chance.choice((*CONTAINERS, CONTAINERS[-1]))],
            lambda: [tool("esdm-dedup"), *SHARING] if chance.random() < 0.7 else [tool("esdm-fsck"), "-q", "--data"])
        for kind in kinds:
            self.add(kind)

    def stop(self):
        with open(self.ledger, "r+b") as ledger:
            ledger.write((1).to_bytes(4, "little"))  # the first number: all end with what they are at
        until = time.monotonic() + LONG
        for process, _, _ in self.running:
            process.wait(max(until - time.monotonic(), 1))
        self.look(stopped=True)

    def left(self):
        """Whether what went wrong stays so."""
        said = [run(command, check=False) for command in (self.worker("check")(), [tool("esdm-fsck"), "-q", "--data"])]
        return "\n".join(f"{done.args}: status {done.returncode} {done.stdout}{done.stderr}" for done in said)

    def kill_all(self):
        for process, _, _ in self.running:
            with contextlib.suppress(OSError):
                process.kill()
            process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill_all()
        for process, _, _ in self.running:
            process.output.close()


def collect():
    """What nobody refers to goes, as soon as a server knows of all ends."""
    until = time.monotonic() + 60
    while True:
        run([tool("esdm-gc"), "--yes", "--age", "0", "--replaced-now"])
        done = run([tool("esdm-fsck"), "--data", "--json"], check=False)
        expect(done.returncode == 0, f"esdm-fsck: {done.stdout}{done.stderr}")
        told = json.loads(done.stdout)
        if told["orphans"] == 0 and told["unpublished"] == 0:
            return
        expect(time.monotonic() < until, f"esdm-gc leaves what nobody refers to: {done.stdout}")
        time.sleep(0.05)


def packs(site):
    return [path for name in TARGETS for path in site.file(name).rglob("*") if is_pack(path)]


def lacks(said):
    """What must have happened and has not, by what `counts` says."""
    return [what for what in MUST if f"\n0 {what}" in "\n" + said.replace(", ", "\n")]


def use(site, server=None):
    with Crowd(site, server) as crowd:
        crowd.once("make")
        for role, count in (("write", WRITERS), ("read", READERS), ("branch", BRANCHERS), ("keep", KEEPERS)):
            for number in range(count):
                crowd.add(crowd.worker(role, *([] if role == "read" else [number])))
        crowd.maintenance()
        began = looked = time.monotonic()
        try:
            while (now := time.monotonic()) < began + PATIENCE * SECONDS:
                if now >= began + SECONDS and now >= looked + 1:
                    looked = now
                    if not lacks(crowd.once("counts")):
                        break
                crowd.look()
                if crowd.chance.random() < 0.2:
                    crowd.kill_one()
                time.sleep(0.05)
            crowd.stop()
        except Failed as problem:
            crowd.kill_all()
            raise Failed(f"{problem}\nWhat is left: {crowd.left()}") from problem
        crowd.once("check")
        collect()
        crowd.once("check")
        said = crowd.once("counts")
        crowd.once("remove")
        collect()
        expect(packs(site) == [], f"packs are left of what was removed: {packs(site)}")
        print(said + f"killed: {crowd.kills}\ntools that went to their ends: {crowd.tools}; "
              f"{crowd.emptied} compactions emptied packs")
        expect(lacks(said) == [], f"no {', '.join(lacks(said))}: {said}")


def test_concurrent_history__sqlite():
    with Site(**SITE) as site:
        use(site)


def test_concurrent_history__postgres():
    skip_without_postgres()
    with Server() as server, Site(**SITE, metadata={"plugin": "postgres", "host": "127.0.0.1", "port": server.port,
                                                    "database": "postgres", "user": "esdm"}) as site:
        use(site, server)


main(test_concurrent_history__sqlite, test_concurrent_history__postgres)
