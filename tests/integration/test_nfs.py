#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""A site with SQLite on NFS: nodes that are clients of one NFSv4 server, each with its own mount.

In the long form only, as each test starts a Linux (support/guest.py; packages: tools/install-deps.sh guest).
"""

import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from esdmtest import SANITIZE, SIZE, by_size, client_environment, expect, main, skip, tool  # noqa: E402
from guest import INSIDE, in_guest, skip_without_guest  # noqa: E402
from nfsnodes import MODULES, NfsCluster  # noqa: E402


@in_guest(*MODULES)
def test_nfs__locks():
    """The server tells a lock of one node to the other: without that SQLite would be damaged."""
    hold = "import fcntl, time\nf = open('/mnt/lock', 'w')\nfcntl.lockf(f, fcntl.LOCK_EX)\nprint('held', flush=True)\ntime.sleep(1000)\n"
    ask = "import fcntl\nf = open('/mnt/lock', 'w')\nfcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
    with NfsCluster("node1", "node2") as cluster:
        one, two = cluster.nodes
        holder = one.begin(["/usr/bin/python3", "-c", hold])
        expect(holder.stdout.readline() == "held\n", "not held")
        expect(two.run(["/usr/bin/python3", "-c", ask], check=False).returncode != 0, "both have the lock")
        for pid in one.processes():  # not `holder`, which has entered the node and waits for it
            os.kill(pid, signal.SIGKILL)
        holder.wait()
        two.run(["/usr/bin/python3", "-c", ask])


MAKE = """
import netCDF4
d = netCDF4.Dataset('esdm://shared.nc', 'w')
d.createDimension('t', None); d.createDimension('x', 2000)
for i in range(4):
    d.createVariable(f'v{i}', 'f8', ('t', 'x'), fill_value=-1)
d.close()
"""

# As ranks of a node: forks of one program. Each tells what it has committed.
APPEND = """
import netCDF4, numpy, os, sys
name, first, ranks, count = sys.argv[1], *map(int, sys.argv[2:])
for rank in range(first, first + ranks):
    if os.fork() == 0:
        d = netCDF4.Dataset('esdm://' + name, 'a')
        for i in range(count):
            d[f'v{rank % 4}'][i] = 1000 * (rank % 4) + i + numpy.arange(2000) / 2000
            d.sync()
            os.write(1, b'%d %d\\n' % (rank % 4, i))
        d.close()
        os._exit(0)
while True:
    try:
        if os.wait()[1] != 0:
            sys.exit('a rank has failed')
    except ChildProcessError:
        break
"""

# Follows what others say that they have committed; opens the container anew for each, as a monitor does.
FOLLOW = """
import netCDF4, numpy, sys
wrong = 0
for line in sys.stdin:
    writer, i = map(int, line.split())
    with netCDF4.Dataset('esdm://shared.nc') as d:
        v = d[f'v{writer}']
        found = v[i] if v.shape[0] > i else 'no record'
    if str(found) == 'no record' or not (found == 1000 * writer + i + numpy.arange(2000) / 2000).all():
        print(f'record {i} of {writer}: {found}', flush=True)
        wrong += 1
sys.exit(wrong != 0)
"""

CHECK = """
import netCDF4, numpy, sys
for word in sys.argv[1:]: # names, and writers with their counts
    if ':' not in word:
        d = netCDF4.Dataset('esdm://' + word)
        continue
    writer, count = map(int, word.split(':'))
    v = d[f'v{writer}'][:]
    wrong = [i for i in range(count) if not (v[i] == 1000 * writer + i + numpy.arange(2000) / 2000).all()]
    assert not wrong, f'records {wrong} of {writer} of {count}'
"""


def python(node, text, *arguments, **options):
    return node.client(["/usr/bin/python3", "-c", text, *arguments], **options)


def begin(node, text, *arguments):
    return node.begin([tool("esdm-run"), "/usr/bin/python3", "-c", text, *arguments], True)


def ended(program):
    said, _ = program.communicate(timeout=600)
    expect(program.returncode == 0, said)
    return said


@in_guest(*MODULES)
def test_nfs__nodes_write_one_container():
    """Commits of two nodes at once: none is lost, and a third node sees each as soon as it is told."""
    count = by_size(10, 20, 40)
    with NfsCluster("node1", "node2", "node3") as cluster:
        one, two, three = cluster.nodes
        one.tool("esdm-mkfs")
        expect(not list(cluster.folder.rglob("*-wal")), "SQLite's log needs memory that nodes do not share")
        python(one, MAKE)
        writers = [begin(node, APPEND, "shared.nc", 2 * i, 2, count) for i, node in enumerate((one, two))]
        follower = subprocess.Popen([*three.inside, tool("esdm-run"), "/usr/bin/python3", "-c", FOLLOW],
                                    env=client_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True)
        told = threading.Thread(target=lambda: [follower.stdin.write(line) for line in writers[0].stdout])
        told.start()
        ended(writers[1])
        told.join()
        expect(writers[0].wait(timeout=600) == 0, "a writer has failed")
        ended(follower)
        for node in cluster.nodes:
            python(node, CHECK, "shared.nc", *(f"{i}:{count}" for i in range(4)))
        two.tool("esdm-fsck", "--data")


# Each value says its place.
HOLD = """
import netCDF4, numpy, sys
d = netCDF4.Dataset('esdm://held.nc', 'w')
d.createDimension('t', None); d.createDimension('x', 1 << 17)
v = d.createVariable('v', 'f8', ('t', 'x'))
for i in range(100):
    v[i] = i + numpy.arange(1 << 17) / (1 << 17)
    d.sync()
    print(i, flush=True)
    sys.stdin.readline()
"""

LAST = """
import netCDF4, numpy, sys
for line in sys.stdin:
    i = int(line)
    with netCDF4.Dataset('esdm://held.nc') as d:
        print((d['v'][i] == i + numpy.arange(1 << 17) / (1 << 17)).all(), flush=True)
"""


@in_guest(*MODULES)
def test_nfs__what_was_committed_is_on_the_server():
    """While the writer still has its packs open, and another node has read them before."""
    with NfsCluster("node1", "node2") as cluster:
        one, two = cluster.nodes
        one.tool("esdm-mkfs")
        writer, reader = (
            subprocess.Popen([*node.inside, tool("esdm-run"), "/usr/bin/python3", "-c", text], env=client_environment(),
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1)
            for node, text in ((one, HOLD), (two, LAST)))
        for i in range(by_size(5, 10, 20)):
            said = writer.stdout.readline()
            expect(said == f"{i}\n", said)
            reader.stdin.write(said)
            found = reader.stdout.readline()
            expect(found == "True\n", f"record {i}: {found}")
            writer.stdin.write("\n")
        writer.kill()
        reader.kill()


@in_guest(*MODULES)
def test_nfs__nodes_are_lost_while_they_commit():
    """Their power is cut; what they had committed is there, and others go on."""
    turns = by_size(1, 2, 3)
    with NfsCluster("node1", "node2", *(f"lost{i}" for i in range(turns))) as cluster:
        one, two = cluster.nodes[:2]
        one.tool("esdm-mkfs")
        python(one, MAKE)
        for turn, node in enumerate(cluster.nodes[2:]):
            python(one, MAKE)
            going = begin(one, APPEND, "shared.nc", 0, 1, 100)
            lost = begin(node, APPEND, "shared.nc", 1, 3, 1000)
            for _ in range(3):
                expect(going.stdout.readline().startswith("0 "), "nothing is committed")
            told = [lost.stdout.readline() for _ in range(10 + 7 * turn)]
            cluster.lose(node)
            begun = time.monotonic()
            ended(going)
            print(f"the others went on and ended after {time.monotonic() - begun:.1f} s", flush=True)
            counts = {w: max(int(line.split()[1]) for line in told if line.startswith(f"{w} ")) + 1
                      for w in {line.split()[0] for line in told}}
            python(two, CHECK, "shared.nc", "0:100", *(f"{w}:{n}" for w, n in counts.items()))
            two.tool("esdm-fsck", "--data")
        two.tool("esdm-gc", "--yes")
        two.tool("esdm-fsck", "--data")


@in_guest(*MODULES)
def test_nfs__four_nodes_drain_and_lose_one():
    """4 nodes with 4 ranks each: data on the nodes' own disks first; what was drained is there when a node is lost."""
    count = by_size(3, 4, 5)
    write = APPEND.replace("netCDF4.Dataset('esdm://' + name, 'a')", "make(f'{name}-{rank}.nc')").replace(
        "for rank", "def make(name):\n"
        "    d = netCDF4.Dataset('esdm://' + name, 'w')\n    d.createDimension('t', None); d.createDimension('x', 2000)\n"
        "    for i in range(4):\n        d.createVariable(f'v{i}', 'f8', ('t', 'x'), fill_value=-1)\n    return d\nfor rank", 1)
    burst = {"name": "burst", "plugin": "posix", "directory": "/tmp/burst", "accessibility": "local"}
    disk = {"name": "disk", "plugin": "posix", "directory": "packs"}
    policies = [{"variable": "*", "targets": ["burst"]}]

    def everywhere(nodes, turn):
        for program in [begin(node, write, f"{turn}-{node.name}", 0, 4, count) for node in nodes]:
            ended(program)
        for node in nodes:
            expect(node.run(["find", "/tmp/burst", "-name", "*-*-*"]).stdout, f"nothing lies on the disk of {node.name}")
            node.tool("esdm-drain")
        return [f"{turn}-{node.name}" for node in nodes]

    with NfsCluster("node1", "node2", "node3", "node4", targets=[disk, burst], policies=policies) as cluster:
        for node in cluster.nodes:
            node.tool("esdm-mkfs")
        names = everywhere(cluster.nodes, "first")
        *rest, lost = cluster.nodes
        begin(lost, write, "lost", 0, 4, 1000).stdout.readline()
        cluster.lose(lost)
        names += everywhere(rest, "second")
        python(rest[0], CHECK, *(word for name in names for rank in range(4) for word in (f"{name}-{rank}.nc", f"{rank}:{count}")))
        said = rest[1].tool("esdm-fsck", "--data", check=False).stdout
        expect(not any(name in said for name in names), said)
        for name in rest[1].tool("esdm-ls").stdout.split():
            if name.startswith("lost-"): # its data were on the node's own disk
                rest[1].tool("esdm-rm", name)
        rest[1].tool("esdm-fsck", "--data")


@in_guest(*MODULES)
def test_nfs__the_server_is_restarted():
    """It forgets who holds which lock, and asks the nodes for it; they wait for it."""
    with NfsCluster("node1", "node2") as cluster:
        one, two = cluster.nodes
        one.tool("esdm-mkfs")
        python(one, MAKE)
        writers = [begin(node, APPEND, "shared.nc", 2 * i, 2, 40) for i, node in enumerate((one, two))]
        for seconds in (0, 3):
            for _ in range(10):
                writers[0].stdout.readline()
            cluster.restart_server(seconds)
        for writer in writers:
            ended(writer)
        for node in cluster.nodes:
            python(node, CHECK, "shared.nc", *(f"{i}:40" for i in range(4)))
        two.tool("esdm-fsck", "--data")


OLD = """
import netCDF4, numpy, sys
d = netCDF4.Dataset('esdm://shared.nc')
print(d['v0'].shape[0], flush=True)
sys.stdin.readline()
v = d['v0'][:]
print(all((v[i] == i + numpy.arange(2000) / 2000).all() for i in range(10)), flush=True)
"""


@in_guest(*MODULES)
def test_nfs__what_another_node_reads_is_kept():
    """Packs of a snapshot that a node has open are not removed by the other; afterwards they are."""
    def packs():
        return {p.name for p in (cluster.folder / "packs").rglob("*-*-*") if p.name[:24] != 24 * "0"}

    with NfsCluster("node1", "node2", history=1) as cluster:
        one, two = cluster.nodes
        one.tool("esdm-mkfs")
        python(one, MAKE)
        python(one, APPEND, "shared.nc", 0, 1, 10)
        first = packs()
        expect(first, "no packs")
        reader = subprocess.Popen([*two.inside, tool("esdm-run"), "/usr/bin/python3", "-c", OLD], env=client_environment(),
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        expect(reader.stdout.readline() == "10\n", "not open")
        python(one, MAKE)
        python(one, APPEND, "shared.nc", 1, 1, 2)
        one.tool("esdm-gc", "--yes", "--age", "0", "--replaced-now")
        said, _ = reader.communicate("\n", timeout=300)
        expect(said == "True\n" and reader.returncode == 0, said)
        one.tool("esdm-gc", "--yes", "--age", "0", "--replaced-now")
        expect(not first & packs(), "what nobody reads any more is kept")
        two.tool("esdm-fsck", "--data")


if __name__ == "__main__":
    if SIZE != "long" and INSIDE not in os.environ:
        skip("ESDM_TEST_SIZE=long: it starts a Linux")
    if SANITIZE:
        skip("the guest has too little memory for sanitizers")
    skip_without_guest()
    main(test_nfs__locks,
         test_nfs__nodes_write_one_container,
         test_nfs__what_was_committed_is_on_the_server,
         test_nfs__nodes_are_lost_while_they_commit,
         test_nfs__four_nodes_drain_and_lose_one,
         test_nfs__the_server_is_restarted,
         test_nfs__what_another_node_reads_is_kept)
