#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Retiring a target and balancing them: whatever happens meanwhile, nothing is lost."""

import contextlib
import json
import random
import re
import sqlite3
import subprocess
import time

from esdmtest import Site, by_size, client, expect, expect_error, main, run, some, tool
from faults import KILLED, PROGRAM, Writer, committed, killing, must, need_strace, shown

NAMES = ("one", "two", "three")


def disks(*names, **keys):
    return [{"name": n, "plugin": "posix", "directory": n, **keys.get(n, {})} for n in names]


class Disks(Site):
    def __init__(self, *names, keys=None, **changes):
        changes.setdefault("engine", {"pack": "64KiB"})
        super().__init__(targets=disks(*names, **(keys or {})), **changes)

    def set_targets(self, targets, **changes):
        config = json.loads(self.config.read_text())
        config["targets"] = targets
        config.update(changes)
        self.config.write_text(json.dumps(config))
        run([tool("esdm-mkfs")])

    def packs(self, name):
        return sorted(p for p in self.file(name).rglob("*") if p.is_file() and
                      p.name.count("-") >= 2)

    def bytes(self, name):
        return sum(p.stat().st_size for p in self.packs(name))


def write(name, first, last):
    return must("write", name, first, last)


def check(name):
    return int(re.search(r"generation (\d+)", must("check", name).stdout).group(1))


def drain(*options, status=0):
    done = run([tool("esdm-drain"), "--json", *options], check=False)
    expect(done.returncode == status, f"esdm-drain: status {done.returncode}\n"
           f"{done.stdout[-3000:]}{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def fsck(*options):
    run([tool("esdm-fsck"), "--data", *options])


def test_drain__a_disk_is_retired():
    """As the help text says it."""
    with Disks(*NAMES, history=5) as site:
        for i in range(3):
            write(f"c{i}", 1, 3)
        write("gone", 1, 2)
        snapshots = run([tool("esdm-stat"), "--json", "c0"]).stdout
        expect(site.packs("two"), "nothing lies there")
        site.set_targets(disks(*NAMES, two={"retiring": True}))
        before = site.packs("two")
        write("c3", 1, 3)
        write("c0", 4, 4)
        expect(site.packs("two") == before, "something new came to a target that retires")
        told = drain("--from", "two", "--dry-run")
        expect(told["dry_run"] and told["fragments"] > 0 and told["bytes"] > 0 and
               told["packs"] == 0 and site.packs("two") == before, f"{told}")
        text = run([tool("esdm-drain"), "-n", "--from", "two"]).stdout
        expect("two: would bring" in text, text)
        with subprocess.Popen([PROGRAM, "check", "c1"], text=True,
                              stdout=subprocess.PIPE) as reader:
            done = drain("--from", "two")
            expect("generation 3" in reader.communicate()[0], "a reader was disturbed")
        expect(done["fragments"] == told["fragments"] and done["packs_left"] == 0 and
               done["from"] == ["two"], f"{told} {done}")
        expect(not site.packs("two"), f"left: {site.packs('two')}")
        text = run([tool("esdm-drain"), "--from", "two"]).stdout
        expect("can go out of the site's configuration" in text, text)
        after = run([tool("esdm-stat"), "--json", "c1"]).stdout
        expect(snapshots.count('"snapshot"') >= 1 and after.count('"snapshot"') >= 1, "snapshots")
        site.set_targets(disks("one", "three"))
        for name, last in (("c0", 4), ("c1", 3), ("c2", 3), ("c3", 3), ("gone", 2)):
            expect(check(name) == last, name)
        fsck()
        write("c1", 4, 4)
        run([tool("esdm-mkfs"), "--check"])


def test_a_line_that_went_too_early__check_tells():
    with Disks("one", "two") as site:
        for name in ("a", "b", "c", "d"):
            write(name, 1, 3)
        expect(site.packs("one") and site.packs("two"), "both have data")
        run([tool("esdm-mkfs"), "--check"])
        site.set_targets(disks("one"))
        done = run([tool("esdm-mkfs"), "--check"], check=False)
        expect(done.returncode == 5, f"status {done.returncode}: {done.stdout}")
        expect_error(done, '"two"', "not in the configuration")
        site.set_targets(disks("one", "two"))
        run([tool("esdm-mkfs"), "--check"])
        # Beside another problem it is told as well.
        site.set_targets(disks("one"))
        for pack in site.packs("one"):
            pack.unlink()
        done = run([tool("esdm-mkfs"), "--check"], check=False)
        told = done.stdout + done.stderr
        expect(done.returncode == 5 and "are not there" in told and "not in the configuration" in told, told)


def test_drain__while_programs_write_to_it():
    with Disks("one", "two") as site:
        write("a", 1, 1)
        last = by_size(20, 60, 600)
        with Writer("a", 2, last, "pause") as writer:
            writer.wait_for("started")
            for _ in range(by_size(2, 4, 30)):
                drain("--from", "two")
                expect(check("a") >= 1, "reading")
            site.set_targets(disks("one", "two", two={"retiring": True}))
            waiter = subprocess.Popen([tool("esdm-drain"), "--from", "two", "--wait", "--quiet"])
            try:
                writer.go_on()
                done = writer.finish()
                expect(done.returncode == 0 and committed(done) == last, shown(done))
                expect(waiter.wait(500) == 0, "it failed")
            finally:
                waiter.kill()
                waiter.wait()
        expect(not site.packs("two"), f"left: {site.packs('two')}")
        site.set_targets(disks("one"))
        expect(check("a") == last, "on the other target")
        fsck()


def kill_drain(call, number):
    done = subprocess.run([*killing(call, number), tool("esdm-drain"), "--quiet", "--from", "two"], check=False,
                          stderr=subprocess.DEVNULL)
    return done.returncode == KILLED


def test_drain__killed_at_system_calls():
    need_strace()
    with Disks("one", "two") as site:
        killed = 0
        for call in ("pwritev", "openat", "unlinkat", "fcntl"):
            for number in sorted({1, *some(range(3, by_size(9, 30, 300)), by_size(2, 4, 99))}):
                name = f"{call}-{number}"
                write(name, 1, 1)
                killed += kill_drain(call, number)
                expect(check(name) == 1, f"{name}: data are lost")
                fsck(name)
                drain("--from", "two", name)
        expect(killed > 4, f"only {killed} were killed")
        drain("--from", "two")
        run([tool("esdm-gc"), "--age", "0", "--yes"])
        expect(not site.packs("two"), f"left: {site.packs('two')}")
        site.set_targets(disks("one"))
        fsck()


def test_drain__copies_stay_as_many():
    with Disks(*NAMES, copies=2) as site:
        write("a", 1, 2)
        done = drain("--from", "two")
        expect(done["fewer_copies"] == 0 and not site.packs("two"), f"{done}")
        text = run([tool("esdm-stat"), "--json", "--fragments", "a"]).stdout
        places = set(re.findall(r'"target": "([^"]+)"', text)) - {"(inline)"}
        expect(places and all(set(p.split(",")) == {"one", "three"} for p in places), f"{places}")
        fsck()
        done = drain("--from", "three")
        expect(done["fewer_copies"] > 0 and "esdm-fsck --repair" in json.dumps(done["findings"]) or
               done["fewer_copies"] == 0 and site.packs("two"), f"{done}")
        expect(check("a") == 2, "data are lost")


def test_drain__a_dead_disk_with_copies():
    with Disks(*NAMES, copies=2) as site:
        write("a", 1, 2)
        site.file("two").rename(site.file("dead"))
        done = drain("--from", "two")
        expect(done["fragments"] > 0 and done["failed"] == 0, f"{done}")
        site.set_targets(disks("one", "three"))
        expect(check("a") == 2, "data are lost")
        fsck()


def test_drain__what_cannot_go_is_told():
    with Disks("one", "two", policies=[{"variable": "large", "targets": ["two"]}]) as site:
        write("a", 1, 1)
        done = drain("--from", "two", status=1)
        expect(done["stuck"] > 0 and "policies" in json.dumps(done["findings"]), f"{done}")
        expect(check("a") == 1, "data are lost")
        for options, word in ((("--from", "nowhere"), "no target 'nowhere'"),
                              (("--from", "one", "--from", "two"), "no other target"),
                              (("--from", "one", "--rebalance"), "exclude"),
                              (("--rebalance", "--wait"), "--wait")):
            expect_error(run([tool("esdm-drain"), *options], check=False), word)
        site.set_targets(disks("one", "two", one={"reserve": "900 TiB"}), policies=[])
        expect_error(run([tool("esdm-drain"), "--from", "two"], check=False), "other targets have")
        site.set_targets(disks("one", "two", one={"retiring": True}, two={"retiring": True}))
        expect_error(client(["nccopy", "-4", "esdm://a", "esdm://b"], check=False), "")


def test_drain__index_pages_that_cannot_be_read_are_told():
    """Where their fragments lie nobody knows: that is no program which is still writing."""
    with Disks("one", "two") as site:
        write("a", 1, 1)
        with contextlib.closing(sqlite3.connect(site.file("metadata") / "catalogue.sqlite")) as catalogue, catalogue:
            pages = catalogue.execute("SELECT page, data FROM page_data").fetchall()
            catalogue.executemany("UPDATE page_data SET data = ? WHERE page = ?",
                                  [(data[:-1] + bytes([data[-1] ^ 1]), page) for page, data in pages])
        done = drain("--from", "one", "--wait", status=5)
        expect(done["failed"] > 0 and "is damaged" in json.dumps(done["findings"]), f"{done}")
        expect(site.packs("one"), "packs are gone that a page needs")


def test_drain__a_new_disk_gets_its_share():
    with Disks("one", "two") as site:
        for i in range(by_size(6, 12, 60)):
            write(f"c{i}", 1, 1)
        total = site.bytes("one") + site.bytes("two")
        site.set_targets(disks(*NAMES))
        told = drain("--rebalance", "--dry-run")
        expect(told["fragments"] > 0 and not site.packs("three"), f"{told}")
        expect(any("three" in f["place"] and "its share is" in f["what"]
                   for f in told["findings"]), f"{told}")
        done = drain("--rebalance")
        expect(done["fragments"] > 0 and done["packs"] > 0, f"{done}")
        parts = {n: site.bytes(n) / total for n in NAMES}
        expect(0.9 < sum(parts.values()) < 1.1, f"old packs are left: {parts}")
        expect(all(0.2 < part < 0.47 for part in parts.values()), f"{parts}")
        again = drain("--rebalance")
        expect(again["bytes"] < total / 10, f"it does not come to rest: {again}")
        for i in range(by_size(6, 12, 60)):
            expect(check(f"c{i}") == 1, f"c{i}")
        fsck()


def test_drain__killed_while_balancing():
    generator = random.Random(5)
    with Disks("one", "two") as site:
        for i in range(by_size(4, 8, 40)):
            write(f"c{i}", 1, 2)
        site.set_targets(disks(*NAMES))
        for _ in range(by_size(3, 8, 60)):
            child = subprocess.Popen([tool("esdm-drain"), "--quiet", "--rebalance"])
            time.sleep(generator.uniform(0.005, 0.1))
            child.kill()
            child.wait()
            expect(check("c0") == 2, "data are lost")
        drain("--rebalance")
        fsck()


def test_drain__balancing_keeps_copies():
    with Disks("one", "two", copies=2) as site:
        for i in range(6):
            write(f"c{i}", 1, 1)
        site.set_targets(disks(*NAMES))
        drain("--rebalance")
        text = "".join(run([tool("esdm-stat"), "--json", "--fragments", f"c{i}"]).stdout
                       for i in range(6))
        places = set(re.findall(r'"target": "([^"]+)"', text)) - {"(inline)"}
        expect(places and all(p.count(",") == 1 for p in places), f"{places}")
        fsck()


if __name__ == "__main__":
    main(*[f for n, f in sorted(globals().items()) if n.startswith("test_")])
