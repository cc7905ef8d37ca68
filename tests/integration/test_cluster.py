#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""A cluster without an administrator: nodes that share a site's own PostgreSQL server, lose it and go on."""

import contextlib
import json
import os
import pathlib
import signal
import sys
from unittest.mock import patch

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from esdmtest import BUILD, by_size, expect, expect_error, main_at_once, tool  # noqa: E402
from nodes import Cluster, skip_without_namespaces, wait_until  # noqa: E402
from ownserver import APPEND, OwnServer, check_shared, shared_container  # noqa: E402
from postgres import skip_without_postgres  # noqa: E402
from s3server import NodeServer  # noqa: E402


def test_cluster__two_first_jobs_start_one_server():
    with OwnServer() as own, Cluster("node1", "node2", "node3") as cluster:
        number = own.leases()[-1]
        shared_container(cluster.nodes[0])
        own_stop(own, cluster.nodes[1])
        for _ in range(by_size(2, 2, 20)):
            programs = [node.begin([tool("esdm-run"), "/usr/bin/python3", "-c", APPEND, str(i), "5"], True)
                        for i, node in enumerate(cluster.nodes)] + \
                       [node.begin([tool("esdm-ls")]) for node in cluster.nodes * 3]
            for program in programs:
                said, _ = program.communicate(timeout=600)
                expect(program.returncode == 0, said)
            expect(len(own.postmasters()) == 1, f"{own.postmasters()}")
            check_shared([0, 1, 2], 5, cluster.nodes[1])
            own_stop(own, cluster.nodes[2])
        started = own.leases()[-1] - number
        expect(started == by_size(3, 3, 21), f"{started} servers were started")


def own_stop(own, node):
    node.tool("esdm-postgres", "--stop", own.folder)


def test_cluster__moves_to_another_node():
    with OwnServer() as own, Cluster("node1", "node2") as cluster:
        one, two = cluster.nodes
        shared_container(one)
        expect(own.lease()["host"] == "node1", own.lease())
        check_shared([], 0, two)  # over the network
        expect(own.lease()["host"] == "node1", own.lease())
        own_stop(own, two)
        check_shared([], 0, two)
        expect(own.lease()["host"] == "node2", own.lease())
        status = json.loads(one.tool("esdm-postgres", "--status", "--json", own.folder).stdout)
        expect(status["node"] == "node2" and status["addresses"] == two.address, f"{status}")


def test_cluster__a_killed_node_is_followed_by_another():
    """A program on another node goes on when the node with the server dies."""
    count = by_size(40, 60, 1000)
    with OwnServer() as own, Cluster("node1", "node2") as cluster:
        one, two = cluster.nodes
        shared_container(one)
        program = two.begin([tool("esdm-run"), "/usr/bin/python3", "-c", APPEND, "1", count], True)
        expect(program.stdout.readline() == "open\n", "not open")
        expect(program.stdout.readline() == "begun\n", "not begun")
        expect(own.lease()["host"] == "node1", own.lease())
        one.kill()
        said, _ = program.communicate(timeout=600)
        expect(program.returncode == 0 and "done" in said, said)
        expect(own.lease()["host"] == "node2", own.lease())
        expect(len(own.postmasters()) == 1, f"{own.postmasters()}")
        check_shared([1], count, two)
        two.tool("esdm-mkfs", "--check")
        own_stop(own, two)


def test_cluster__a_job_of_its_own_hands_over_when_it_ends():
    """As a batch system ends a job: SIGTERM first. Nobody waits for a lease then."""
    count = by_size(40, 60, 1000)
    with OwnServer("--lease", "3600") as own, Cluster("node1", "node2") as cluster:
        one, two = cluster.nodes
        job = one.begin([tool("esdm-postgres"), "--run", own.folder])
        wait_until(lambda: own.status()["node"] == "node1", "it runs")
        shared_container(two)
        program = two.begin([tool("esdm-run"), "/usr/bin/python3", "-c", APPEND, "2", count], True)
        expect(program.stdout.readline() == "open\n", "not open")
        expect(program.stdout.readline() == "begun\n", "not begun")
        for pid in one.processes():
            with contextlib.suppress(OSError):  # others come and go
                if b"--run" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                    os.kill(pid, signal.SIGTERM)
        expect(job.wait(timeout=300) == 0, "the job has failed")
        said, _ = program.communicate(timeout=600)
        expect(program.returncode == 0 and "done" in said, said)
        expect(own.lease()["host"] == "node2", own.lease())
        check_shared([2], count, two)
        own_stop(own, two)


def write_drain_lose_one_and_go_on(own, nodes, shared):
    """Variable v lies on disks of the nodes until it is drained, w is stored at once where all see it."""
    each, count = by_size(1, 1, 4), by_size(8, 12, 200)
    write = ("import netCDF4, numpy, sys\nname, count = sys.argv[1], int(sys.argv[2])\n"
             "d = netCDF4.Dataset('esdm://' + name, 'w')\nd.createDimension('t', None)\n"
             "d.createDimension('x', 5000)\nv = d.createVariable('v', 'f4', ('t', 'x'))\n"
             "w = d.createVariable('w', 'f8', ('t', 'x'))\n"
             "for t in range(count):\n    v[t] = t + numpy.arange(5000)\n    w[t] = t - numpy.arange(5000)\n"
             "    d.sync()\nd.close()\n")
    check = ("import netCDF4, numpy, sys\nx = numpy.arange(5000)\nfor name in sys.argv[2:]:\n"
             "    d = netCDF4.Dataset('esdm://' + name)\n    v, w = d['v'][:], d['w'][:]\n"
             "    assert v.shape[0] == w.shape[0] == int(sys.argv[1])\n"
             "    assert all((v[t] == t + x).all() and (w[t] == t - x).all() for t in range(v.shape[0]))\n")

    def everywhere(turn, nodes):
        begun = [node.begin([tool("esdm-run"), "/usr/bin/python3", "-c", write,
                             f"{turn}-{node.name}-{i}.nc", count], True) for node in nodes for i in range(each)]
        for program in begun:
            said, _ = program.communicate(timeout=900)
            expect(program.returncode == 0, said)
        for node in nodes:
            packs = node.run(["find", "/tmp/burst", "-name", "*-*-*", "-size", f"+{2 * count}k"]).stdout
            expect(packs, f"nothing lies on the disk of {node.name}")
            node.tool("esdm-drain")
        return [f"{turn}-{node.name}-{i}.nc" for node in nodes for i in range(each)]

    config = json.loads(own.site.config.read_text())
    config["targets"] = [shared, {"name": "burst", "plugin": "posix", "directory": "/tmp/burst",
                                  "accessibility": "local"}]
    config["policies"] = [{"variable": "v", "targets": ["burst"]}]
    own.site.config.write_text(json.dumps(config))
    for node in nodes:
        node.tool("esdm-mkfs")
    names = everywhere("first", nodes)
    server = next(n for n in nodes if n.name == own.lease()["host"])
    server.kill()
    rest = [n for n in nodes if n is not server]
    names += everywhere("second", rest)
    rest[0].client(["/usr/bin/python3", "-c", check, count, *names])
    expect(own.lease()["host"] != server.name, own.lease())
    rest[0].tool("esdm-fsck", "--data")
    own_stop(own, rest[0])


def test_cluster__four_nodes_write_drain_lose_one_and_go_on():
    """Data on disks of the nodes first; what was drained before a node dies is there for all."""
    with OwnServer() as own, Cluster("node1", "node2", "node3", "node4") as cluster:
        write_drain_lose_one_and_go_on(own, cluster.nodes,
                                       {"name": "disk", "plugin": "posix", "directory": "packs"})


def test_cluster__four_nodes_share_objects_on_a_fifth():
    """The same with a target on S3, whose server is a node of its own that the others reach over the network."""
    with OwnServer() as own, Cluster("node1", "node2", "node3", "node4", "store") as cluster:
        *nodes, store = cluster.nodes
        with NodeServer(store) as server, patch.dict(os.environ, server.client_environment()):
            write_drain_lose_one_and_go_on(own, nodes, server.target())
            expect(sum(p.stat().st_size for p in server.objects.rglob("*") if p.is_file()) > 7 * 40000 * by_size(8, 12, 200),
                   "the objects are not on the server")


def test_cluster__a_frozen_node_keeps_the_server():
    """Its processes may go on at any time, so no other server is started beside them."""
    with OwnServer() as own, Cluster("node1", "node2") as cluster:
        one, two = cluster.nodes
        shared_container(one)
        postmasters = own.postmasters()
        one.freeze()
        done = two.tool("esdm-postgres", "--start", "--wait", "60", own.folder, check=False)
        expect_error(done, "lock", "end them")
        expect(own.postmasters() == postmasters, f"{own.postmasters()}")
        one.freeze(thaw=True)  # it finds that it was given up
        wait_until(lambda: own.postmasters() == [], "the old server ends")
        check_shared([], 0, two)
        expect(own.lease()["host"] == "node2", own.lease())
        own_stop(own, two)


def test_cluster__without_locks_the_lease_decides():
    with OwnServer() as own, Cluster("node1", "node2", "node3") as cluster:
        one, two, three = cluster.nodes
        for node in cluster.nodes:
            node.start = lambda node=node: node.run(
                ["env", f"LD_PRELOAD={BUILD}/tests/support/esdm-test-noflock.so", tool("esdm-postgres"),
                 "--start", own.folder])
        one.start()
        shared_container(one)
        number = own.lease()["beat"]
        wait_until(lambda: own.lease()["beat"] > number, "a heartbeat")
        one.kill()
        two.start()
        expect(own.lease()["host"] == "node2", own.lease())
        before = own.postmasters()
        two.freeze()
        three.start()  # as if node2 had died
        expect(own.lease()["host"] == "node3", own.lease())
        two.freeze(thaw=True)
        wait_until(lambda: not set(before) & set(own.postmasters()), "the old server ends")
        check_shared([], 0, two)
        expect(own.lease()["host"] == "node3", own.lease())
        three.tool("esdm-fsck", "--data")
        own_stop(own, three)


if __name__ == "__main__":
    skip_without_postgres()
    skip_without_namespaces()
    # Most of the time they wait for leases.
    main_at_once(test_cluster__two_first_jobs_start_one_server,
                 test_cluster__moves_to_another_node,
                 test_cluster__a_killed_node_is_followed_by_another,
                 test_cluster__a_job_of_its_own_hands_over_when_it_ends,
                 test_cluster__four_nodes_write_drain_lose_one_and_go_on,
                 test_cluster__four_nodes_share_objects_on_a_fifth,
                 test_cluster__a_frozen_node_keeps_the_server,
                 test_cluster__without_locks_the_lease_decides, processes=3)
