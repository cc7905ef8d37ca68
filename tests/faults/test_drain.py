#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Node-local targets: two nodes, told apart by $ESDM_NODE, with folders of their own."""

import json
import os
import random
import re
import subprocess
import time

from esdmtest import (SEED, BUILD, Site, by_size, client, environment, expect, expect_error, is_pack, main, run,
                      some, tool)
from faults import (KILLED, LONG, PROGRAM, Writer, committed, killing, must, need_strace, program, shown)

NODES = ("alpha", "beta")


class Nodes(Site):
    """A site whose target "burst" each node has for itself."""

    def __init__(self, **changes):
        targets = [{"name": "burst", "plugin": "posix", "accessibility": "local",
                    "directory": "nodes/$ESDM_NODE"},
                   {"name": "disk", "plugin": "posix", "directory": "disk"}]
        changes.setdefault("engine", {"pack": "64KiB"})
        super().__init__(targets=targets, make=False, **changes)

    def __enter__(self):
        super().__enter__()
        (self.folder / "nodes").mkdir()
        run([tool("esdm-mkfs")], env=on("alpha"))
        return self

    def local(self, node):
        folder = self.folder / "nodes" / node
        return sorted(p for p in folder.rglob("*") if is_pack(p))


def on(node, **more):
    return environment({"ESDM_NODE": node, **more})


def write(node, name, first, last):
    return must("write", name, first, last, env={"ESDM_NODE": node})


def check(node, name):
    return int(re.search(r"generation (\d+)",
                         must("check", name, env={"ESDM_NODE": node}).stdout).group(1))


def drain(node, *options, status=0):
    done = run([tool("esdm-drain"), "--json", *options], check=False, env=on(node))
    expect(done.returncode == status, f"esdm-drain: status {done.returncode}\n"
           f"{done.stdout[-3000:]}{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def fsck(node, *options):
    run([tool("esdm-fsck"), "--data", *options], env=on(node))


def test_drain__other_nodes_read_it_afterwards():
    with Nodes() as site:
        write("alpha", "a", 1, 3)
        expect(site.local("alpha"), "nothing lies on the node")
        expect(check("alpha", "a") == 3, "the node itself")
        fsck("alpha")
        done = program("check", "a", env={"ESDM_NODE": "beta"})
        expect(done.returncode == 3, shown(done))
        for word in ("alpha", "burst", "esdm-drain"):
            expect(word in done.stderr, f"no '{word}': {done.stderr}")
        text = run([tool("esdm-stat"), "--fragments", "a"], env=on("beta")).stdout
        expect("burst@alpha" in text, text)

        elsewhere = drain("beta")
        expect(elsewhere["fragments"] == 0 and elsewhere["elsewhere"] > 0, f"{elsewhere}")
        expect("alpha" in json.dumps(elsewhere["findings"]), "it does not name the node")
        result = drain("alpha")
        expect(result["fragments"] > 0 and result["packs"] > 0 and result["packs_left"] == 0,
               f"{result}")
        expect(not site.local("alpha"), "space was not freed")
        for node in NODES:
            expect(check(node, "a") == 3, f"on {node}")
            fsck(node)
        again = drain("alpha")
        expect(again["fragments"] == again["packs"] == 0, f"twice: {again}")
        write("beta", "a", 4, 4)
        expect(check("beta", "a") == 4, "written on the other node")


def test_drain__snapshots_do_not_change():
    """Readers that have an old one open, and readers by its number, go on."""
    with Nodes(history=10) as site:
        write("alpha", "a", 1, 5)
        before = run([tool("esdm-stat"), "--json", "a"], env=on("alpha")).stdout
        readers = [subprocess.Popen([PROGRAM, "check", "a"], env=on("alpha"), text=True,
                                    stdout=subprocess.PIPE) for _ in range(4)]
        drain("alpha")
        for reader in readers:
            expect("generation 5" in reader.communicate()[0], "a reader was disturbed")
        after = run([tool("esdm-stat"), "--json", "a"], env=on("alpha")).stdout
        found = [re.findall(r'"snapshots": \[.*?\]', text, re.S) for text in (before, after)]
        expect(found[0] and found[0] == found[1], f"snapshots changed: {found}")
        expect(not site.local("alpha"), "old snapshots keep packs")
        fsck("beta")


def test_drain__while_it_is_written_and_read():
    """Neither writers nor readers notice; what a writer has open stays until it is closed."""
    with Nodes() as site:
        write("alpha", "a", 1, 1)
        last = by_size(40, 60, 1000)
        with Writer("a", 2, last, "pause", env={"ESDM_NODE": "alpha"}) as writer:
            writer.wait_for("started")
            for _ in range(by_size(3, 6, 40)):
                drain("alpha")
                expect(check("alpha", "a") >= 1, "reading")
            writer.go_on()
            done = writer.finish()
        expect(done.returncode == 0 and committed(done) == last, shown(done))
        drain("alpha", "--wait")
        expect(not site.local("alpha"), f"left: {site.local('alpha')}")
        expect(check("beta", "a") == last, "on the other node")
        fsck("beta")


def test_drain__waits_for_living_writers():
    with Nodes() as site:
        with Writer("a", 1, 4, "pause", env={"ESDM_NODE": "alpha"}) as writer:
            writer.wait_for("written 4")
            result = drain("alpha")
            expect(result["packs_left"] > 0, f"{result}")
            waiter = subprocess.Popen([tool("esdm-drain"), "--wait", "--quiet"], env=on("alpha"))
            try:
                time.sleep(0.3)
                drain("alpha")
                expect(waiter.poll() is None, "it did not wait")
                writer.go_on()
                done = writer.finish()
                expect(done.returncode == 0, shown(done))
                expect(waiter.wait(LONG) == 0, "it failed")
            finally:
                waiter.kill()
                waiter.wait()
        expect(not site.local("alpha"), f"{site.local('alpha')}")
        expect(check("beta", "a") == 4, "on the other node")


def test_drain__in_the_background():
    with Nodes(engine={"pack": "64KiB", "drain": "background"}) as site:
        write("alpha", "a", 1, 4)
        expect(not site.local("alpha"), f"left: {site.local('alpha')}")
        expect(check("beta", "a") == 4, "on the other node")
        write("beta", "b", 1, 2)
        expect(check("alpha", "b") == 2 and check("alpha", "a") == 4, "both nodes")
        fsck("alpha")
        run([tool("esdm-gc"), "--age", "0", "--yes"], env=on("alpha"))
        fsck("beta")


WRITE_ANEW = """
import netCDF4
with netCDF4.Dataset("esdm://a.nc@branch:fix", "w") as d:
    d.createDimension("x", 2)
    d.createVariable("v", "i4", ("x",))[:] = [7, 8]
"""


def test_drain__in_the_background_under_a_new_name():
    """What is renamed after it was written, or becomes a snapshot of a branch, is read on the other node."""
    def dump(name):
        return client(["ncdump", "-v", "v", f"esdm://{name}"], env={"ESDM_NODE": "beta"}).stdout.partition("data:")[2]

    with Nodes(engine={"pack": "64KiB", "drain": "background", "inline": 0}) as site:
        for i in range(3):
            site.file(f"{i}.cdl").write_text(f"netcdf x {{ dimensions: x = 2 ; variables: int v(x) ; data: v = {i}, {i} ; }}")
            run(["ncgen", "-4", "-o", site.file(f"{i}.nc"), site.file(f"{i}.cdl")])
        run([tool("esdm-cp"), site.file("0.nc"), "esdm://a.nc"], env=on("alpha"))
        client(["ncks", "-h", "-O", site.file("1.nc"), "esdm://n.nc"], env={"ESDM_NODE": "alpha"})
        expect(not site.local("alpha"), f"left: {site.local('alpha')}")
        expect("v = 0, 0" in dump("a.nc") and "v = 1, 1" in dump("n.nc"), "values")
        run([tool("esdm-branch"), "a.nc", "fix"], env=on("alpha"))
        client(["ncks", "-h", "-O", site.file("2.nc"), "esdm://a.nc@branch:fix"], env={"ESDM_NODE": "alpha"})
        expect("v = 2, 2" in dump("a.nc@branch:fix"), dump("a.nc@branch:fix"))
        client(["/usr/bin/python3", "-c", WRITE_ANEW], env={"ESDM_NODE": "alpha"})
        expect("v = 7, 8" in dump("a.nc@branch:fix"), dump("a.nc@branch:fix"))
        run([tool("esdm-gc"), "--age", "0", "--yes"], env=on("alpha"))
        expect(not site.local("alpha"), f"left: {site.local('alpha')}")
        fsck("beta")


def kill_drain(site, name, after_s=None, call=None, number=0):
    command = [tool("esdm-drain"), "--quiet", name]
    if call is None:
        child = subprocess.Popen(command, env=on("alpha"))
        time.sleep(after_s)
        child.kill()
        return child.wait() != 0
    done = subprocess.run([*killing(call, number), *command], check=False, env=on("alpha"), stderr=subprocess.DEVNULL)
    return done.returncode == KILLED


def check_killed(site, name, last):
    """Whatever the instant: all data are there, the next drain ends the work."""
    expect(check("alpha", name) == last, f"{name}: data are lost")
    fsck("alpha", name)
    drain("alpha", name)
    expect(check("beta", name) == last, f"{name}: on the other node")
    fsck("beta", name)


def test_drain__killed_at_system_calls():
    need_strace()
    with Nodes() as site:
        killed = 0
        for call in ("pwrite64", "pwritev", "openat", "unlinkat", "fcntl", "close", "ftruncate"):
            for number in sorted({1, 3, *some(range(5, by_size(20, 60, 400)), by_size(2, 4, 80))}):
                name = f"{call}-{number}"
                write("alpha", name, 1, 1)
                killed += kill_drain(site, name, call=call, number=number)
                check_killed(site, name, 1)
        expect(killed > 10, f"only {killed} were killed")
        run([tool("esdm-gc"), "--age", "0", "--yes"], env=on("alpha"))
        expect(not site.local("alpha"), "local packs are left")
        fsck("beta")


def test_drain__killed_at_random_times():
    generator = random.Random(SEED)
    with Nodes(durability="system") as site:
        for i in range(by_size(6, 10, 200)):
            write("alpha", f"c{i}", 1, 4)
            kill_drain(site, f"c{i}", after_s=generator.uniform(0.005, 0.15))
            check_killed(site, f"c{i}", 4)


def test_drain__with_copies():
    targets = [{"name": "burst", "plugin": "posix", "accessibility": "local",
                "directory": "nodes/$ESDM_NODE"}]
    targets += [{"name": n, "plugin": "posix", "directory": n} for n in ("one", "two")]
    with Nodes(copies=2) as site:
        config = json.loads(site.config.read_text())
        config["targets"] = targets
        site.config.write_text(json.dumps(config))
        run([tool("esdm-mkfs")], env=on("alpha"))
        write("alpha", "a", 1, 2)
        drain("alpha")
        text = run([tool("esdm-stat"), "--json", "--fragments", "a"], env=on("beta")).stdout
        places = set(re.findall(r'"target": "([^"]+)"', text)) - {"(inline)"}
        expect(all(set(p.split(",")) == {"one", "two"} for p in places), f"{places}")
        for name in ("one", "two"):
            site.file(name).rename(site.file("away"))
            expect(check("beta", "a") == 2, f"without {name}")
            site.file("away").rename(site.file(name))


def test_drain__keeps_to_the_policies():
    """Where a variable may lie counts for what is drained, as far as other nodes can see it."""
    with Nodes() as site:
        config = json.loads(site.config.read_text())
        config["targets"].append({"name": "tape", "plugin": "posix", "directory": "tape"})
        config["policies"] = [{"variable": "large", "targets": ["burst", "tape"]},
                              {"variable": "small", "targets": ["burst"]}]
        site.config.write_text(json.dumps(config))
        run([tool("esdm-mkfs")], env=on("alpha"))
        write("alpha", "a", 1, 3)
        drain("alpha")
        text = run([tool("esdm-stat"), "--fragments", "a"], env=on("beta")).stdout
        expect("burst" not in text and "tape" in text, text)
        expect(check("beta", "a") == 3, "on the other node")


def test_drain__work_grows_with_what_is_there():
    """The catalogue is listed once, whatever the number of containers; and what has nothing here costs no
    transaction."""
    os.environ["ESDM_PLUGIN_PATH"] = str(BUILD / "plugins")
    with Nodes(metadata={"plugin": "faulty", "directory": "metadata"}) as site:
        for i in range(by_size(4, 8, 40)):
            write("alpha", f"c{i}", 1, 1)
        done = run([tool("esdm-drain"), "--json"], check=False,
                   env=on("alpha", ESDM_FAULTY_META="records:2+0:fail"))
        expect(done.returncode == 0, f"{done.stdout}{done.stderr}")
        expect(not site.local("alpha"), "something is left")
        done = run([tool("esdm-drain"), "--json"], check=False,
                   env=on("alpha", ESDM_FAULTY_META="records:2+0:fail,relocate:1+0:fail"))
        expect(done.returncode == 0, f"with nothing to drain: {done.stdout}{done.stderr}")


def test_drain__nowhere_to_go():
    with Nodes() as site:
        write("alpha", "a", 1, 1)
        site.file("disk").rename(site.file("away"))
        done = run([tool("esdm-drain")], check=False, env=on("alpha"))
        expect_error(done, "no target that all nodes see")
        site.file("away").rename(site.file("disk"))
        expect(check("alpha", "a") == 1, "data are lost")
        expect_error(run([tool("esdm-drain"), "nothing"], check=False, env=on("alpha")), "nothing")
        done = run([tool("esdm-drain"), "--node", "a,b"], check=False, env=on("alpha"))
        expect_error(done, "node")


def test_drain__lost_node():
    """What a dead node had is told; the rest of the site goes on."""
    with Nodes() as site:
        write("alpha", "a", 1, 1)
        write("beta", "b", 1, 1)
        drain("beta")
        site.file("nodes/alpha").rename(site.file("nodes/dead"))
        done = program("check", "a", env={"ESDM_NODE": "alpha"})
        expect(done.returncode == 3, shown(done))
        expect(check("alpha", "b") == 1, "the other container")
        run([tool("esdm-rm"), "--for-good", "a"], env=on("alpha"))
        fsck("alpha")


if __name__ == "__main__":
    main(*[f for n, f in sorted(globals().items()) if n.startswith("test_")])
