#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""One MPI job on the nodes of a cluster that shares a PostgreSQL server of its own: cluster.py openmpi|mpich PROGRAM

Each node has a host name, an address, processes and a disk of its own. MPI starts its parts there, with a
command in place of ssh, and ranks of different nodes meet over TCP. MPICH must be one with libfabric: UCX of
Debian's waits for ever in MPI_Finalize() with TCP alone. $ESDM_TEST_MPICH is a folder with another one's bin and
lib, as the package "mpich" of PyPI has them (pip download mpich; unzip; mpich-*.data/data). Without it: skipped.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import esdmtest
import mpirun
from esdmtest import by_size, expect, expect_error, skip
from nodes import Cluster, skip_without_namespaces
from ownserver import OwnServer
from postgres import skip_without_postgres

if len(sys.argv) < 3:
    mpirun.missing(f"built without {sys.argv[1]}")
MPI, PROGRAM = sys.argv[1:3]
MPICH = os.environ.get("ESDM_TEST_MPICH")
EACH = 4  # ranks of a node
TIMEOUT = 300

# Called as "ssh [OPTION]… HOST COMMAND…". ssh gives the words to a shell.
ENTER = """#!/bin/bash
while [[ $1 == -* ]]; do shift; done
host=$1; shift
read -r init < "{folder}/$host" || {{ echo "no node $host" >&2; exit 255; }}
exec nsenter -t "$init" -u -n -i -m -p /bin/sh -c "$*"
"""


class Job:
    """A job of EACH ranks on each of the nodes, begun on the node "login", which has none of them."""

    def __init__(self, folder, login, nodes, *arguments):
        for node in nodes:
            (folder / node.address).write_text(f"{node.init}\n")
        enter = folder / "enter"
        enter.write_text(ENTER.format(folder=folder))
        enter.chmod(0o755)
        env = mpirun.environment(str(folder), **esdmtest.environment())
        line = self.openmpi(env, enter, nodes) if MPI == "openmpi" else self.mpich(env, enter, nodes, folder)
        # The launcher has the login's network; the command in place of ssh needs the machine's processes.
        self.process = subprocess.Popen(
            ["nsenter", "-t", str(login.init), "-u", "-n", "-i", *line, "-n", str(EACH * len(nodes)), PROGRAM, *arguments],
            cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    @staticmethod
    def openmpi(env, enter, nodes):
        env.update(OMPI_MCA_plm_rsh_agent=str(enter), OMPI_MCA_plm_rsh_no_tree_spawn="1",
                   OMPI_MCA_btl="self,vader,tcp", OMPI_MCA_btl_tcp_if_include="eth0",
                   OMPI_MCA_oob_tcp_if_include="eth0")
        env.pop("OMPI_MCA_orte_tmpdir_base")  # each node has its own
        line = [mpirun.launcher("openmpi"), "-host", ",".join(f"{n.address}:{EACH}" for n in nodes)]
        for name in ("ESDM_CONFIG", "ESDM_PLUGIN_PATH"):
            line += ["-x", name]
        return line

    @staticmethod
    def mpich(env, enter, nodes, folder):
        copy = folder / "mpich"  # where all nodes see it, with the name that Debian gives to the same library
        if not copy.exists():
            for part in ("bin", "lib"):
                shutil.copytree(pathlib.Path(MPICH) / part, copy / part, symlinks=True)
            for program in (copy / "bin").iterdir():
                program.chmod(0o755)
            if not (copy / "lib/libmpich.so.12").exists():
                (copy / "lib/libmpich.so.12").symlink_to("libmpi.so.12")
        env.pop("HYDRA_LAUNCHER")
        env.update(LD_LIBRARY_PATH=f"{copy / 'lib'}:{env.get('LD_LIBRARY_PATH', '')}".rstrip(":"),
                   MPIR_CVAR_CH4_NETMOD="ofi", FI_PROVIDER="tcp", FI_TCP_IFACE="eth0")
        return [copy / "bin/mpiexec.hydra", "-launcher", "ssh", "-launcher-exec", enter, "-iface", "eth0",
                "-hosts", ",".join(f"{n.address}:{EACH}" for n in nodes)]

    def committed(self, count):
        """Waits until so many steps are committed."""
        said = ""
        for line in self.process.stdout:
            said += line
            if line.strip() == str(count):
                return
        raise SystemExit(f"the job has ended with {self.process.wait()}: {said[-4000:]}")

    def end(self):
        try:
            said, _ = self.process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise SystemExit(f"hangs: {self.process.communicate()[0][-4000:]}") from None
        return self.process.returncode, said


def done(job):
    code, said = job.end()
    expect(code == 0, f"{code}: {said[-4000:]}")


def drain(nodes):
    for node in nodes:
        # A killed job's are there, too.
        packs = node.run(["find", "/tmp/burst", "-name", "*-*-*", "-size", "+1000k"]).stdout.split()
        writers = {pathlib.Path(p).name.split("-")[2] for p in packs}
        expect(len(writers) >= EACH, f"{node.name} has packs {packs}")
        node.tool("esdm-drain")


def one_job_on_four_nodes(folder):
    steps = by_size(2, 2, 8)
    with OwnServer() as own, Cluster("login", "node1", "node2", "node3", "node4") as cluster:
        login, *nodes = cluster.nodes
        config = json.loads(own.site.config.read_text())
        config["targets"] = [{"name": "disk", "plugin": "posix", "directory": "packs"},
                             {"name": "burst", "plugin": "posix", "directory": "/tmp/burst", "accessibility": "local"}]
        config["policies"] = [{"variable": "v", "targets": ["burst"]}]
        config["engine"] = {"threads": 1}
        own.site.config.write_text(json.dumps(config))
        for node in nodes[1:] + nodes[:1]:
            node.tool("esdm-mkfs")
        lost = nodes[1]
        expect(own.lease()["host"] == lost.name, own.lease())
        done(Job(folder, login, nodes, "new", str(steps)))
        other = nodes[2].run([PROGRAM, "verify", str(steps)], check=False)
        expect_error(other, "burst")  # on the disks of the other nodes
        drain(nodes)
        nodes[2].run([PROGRAM, "verify", str(steps)])

        # The next job loses a node, with the server and with what was not drained.
        job = Job(folder, login, nodes, "from", str(steps), "1000000")
        job.committed(steps + 2)
        lost.kill()
        code, said = job.end()
        expect(code != 0, f"a job without one of its nodes succeeded: {said}")
        nodes.remove(lost)
        nodes[2].run([PROGRAM, "read", str(steps)])
        expect(own.lease()["host"] != lost.name, own.lease())
        expect(len(own.postmasters()) == 1, f"{own.postmasters()}")
        gone = nodes[2].run([PROGRAM, "read", str(steps + 1)], check=False)
        expect_error(gone, "burst")

        # It begins again from what was drained, with fewer ranks.
        done(Job(folder, login, nodes, "from", str(steps), str(steps + 2)))
        drain(nodes)
        nodes[1].run([PROGRAM, "read", str(steps + 2)])
        nodes[0].tool("esdm-fsck", "--data")
        nodes[0].tool("esdm-postgres", "--stop", own.folder)


skip_without_postgres()
skip_without_namespaces()
if MPI == "mpich" and not MPICH:
    skip("$ESDM_TEST_MPICH is not set: Debian's MPICH does not work over TCP alone")
if MPI == "openmpi":
    mpirun.launcher(MPI)
with tempfile.TemporaryDirectory(prefix="esdm-cluster.", dir="/dev/shm") as temporary:  # all nodes see it
    one_job_on_four_nodes(pathlib.Path(temporary))
