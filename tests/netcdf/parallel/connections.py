#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""How many connections to a metadata store on a server ranks make: connections.py PROGRAM RANKS,
made of connections.c and of tests/integration/ranks."""

import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile

import esdmtest
import mpirun
from postgres import Server, skip_without_postgres

mpirun.LEAKS_TOO = False  # netcdf.parallel.mpi, trouble.py and integration.ranks look for leaks
PROGRAM, LATE = sys.argv[1:3] if len(sys.argv) > 2 else ("", "")
SLOW = 5 if esdmtest.SANITIZE else 1
RANKS = esdmtest.by_size(4, 6, 12)
if esdmtest.SANITIZE:
    RANKS = 4


def make_site(folder, server, name, *more_targets):
    """The environment of ranks at a site of its own."""
    site = {"site": {"name": name}, "engine": {"threads": 2},
            "targets": [{"name": target, "plugin": "posix", "directory": f"{name}/{target}"}
                        for target in ("packs", *more_targets)],
            "metadata": {"plugin": "postgres", "host": "127.0.0.1", "port": server.port,
                         "database": "postgres", "user": "esdm", "schema": name}}
    path = folder / f"{name}.json"
    path.write_text(json.dumps(site))
    env = mpirun.environment(folder, ESDM_CONFIG=str(path),
                             ESDM_PLUGIN_PATH=str(esdmtest.BUILD / "plugins"))
    subprocess.run([esdmtest.tool("esdm-mkfs"), str(path)], env=env, check=True,
                   stdout=subprocess.DEVNULL)
    return env


def connections(server):
    """That the server has let in since it was started."""
    return server.log.read_text().count("connection authorized")


def gc(env):
    """Removes all packs that no commit refers to and whose writer is not seen; the report."""
    return esdmtest.run([esdmtest.tool("esdm-gc"), "--age", "0s", "--yes"], env=env).stdout


def packs(folder, name):
    """Of containers, not those of the journal."""
    return {p.name for p in (folder / name / "packs").rglob("*-*-*")
            if not p.name.startswith("0" * 24)}


@contextlib.contextmanager
def waiting(env, *command):
    """A job that has told that it waits; yields what lets it go on, which returns its exit status and
    what it told."""
    line = [mpirun.launcher("openmpi"), "-n", str(RANKS), *command]
    with subprocess.Popen(line, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as job:
        def go_on():
            told, _ = job.communicate("go on\n", timeout=200 * SLOW)
            return job.returncode, told
        try:
            told = job.stdout.readline()
            esdmtest.expect(told == "ready\n", told)
            yield go_on
        finally:
            job.kill()


def check_counts(folder, server):
    """Ranks that write need one connection together, and so do those of a node that read."""
    env = make_site(folder, server, "counts")
    for what, most in (("write", 1), ("append", 1), ("read", 1)):
        before = connections(server)
        mpirun.run("openmpi", RANKS, [PROGRAM, what], env, timeout=200 * SLOW)
        made = connections(server) - before
        print(f"{what}: {made} connections of {RANKS} ranks")
        esdmtest.expect(1 <= made <= most, f"{what}: {made} connections, not {most}")


def check_late(folder, server):
    """What ranks have opened to read they can read when rank 0 has closed it, and the container was
    removed: the pin of the first rank of each node lasts as long as they need it."""
    for node in (RANKS, 2):
        name = f"late{node}"
        env = make_site(folder, server, name)
        before = connections(server)
        with waiting(env, LATE, "late", str(node)) as go_on:
            made = connections(server) - before
            esdmtest.expect(made == RANKS // node, f"{made} connections of {RANKS // node} nodes")
            esdmtest.run([esdmtest.tool("esdm-rm"), "--for-good", "--yes", "late"], env=env)
            report = gc(env)
            esdmtest.expect(packs(folder, name), report)
            sessions, before = server.sessions(), connections(server)
            status, told = go_on()
            esdmtest.expect(status == 0, told)
            esdmtest.expect(connections(server) == before, "a rank has connected to read")
        server.wait_until_gone(sessions)
        report = gc(env)
        esdmtest.expect(not packs(folder, name), report)


def check_moved(folder, server):
    """What ranks have opened to read is stored elsewhere meanwhile: they ask for its new pages."""
    env = make_site(folder, server, "moved", "other")
    with waiting(env, LATE, "late", str(RANKS)) as go_on:
        esdmtest.expect(packs(folder, "moved"), "nothing to move")
        report = esdmtest.run([esdmtest.tool("esdm-drain"), "--age", "0s", "--from", "packs"], env=env)
        esdmtest.expect(not packs(folder, "moved"), report.stdout)
        status, told = go_on()
        esdmtest.expect(status == 0, told)


def check_living(folder, server):
    """Rank 0 says for all that they are writing: esdm-gc leaves the packs of all of them, also after
    the server went and came."""
    for steps in (1, 3):
        name = f"living{steps}"
        env = make_site(folder, server, name)
        with waiting(env, PROGRAM, "restart", str(steps), "0") as go_on:
            before = packs(folder, name)
            esdmtest.expect(len(before) >= RANKS, f"packs: {before}")
            report = gc(env)
            esdmtest.expect(packs(folder, name) == before, report)
            server.restart()
            status, told = go_on()
            esdmtest.expect(status == 0, told)


def check_lost(folder, server):
    """While the server does not see rank 0 esdm-gc takes the packs of all: rank 0, which has none,
    makes the others look."""
    env = make_site(folder, server, "lost")
    with waiting(env, PROGRAM, "restart", "1", "1") as go_on:
        server.restart()
        report = gc(env)
        esdmtest.expect(not packs(folder, "lost"), report)
        status, told = go_on()
        esdmtest.expect(status == 0 and "was removed while the connection" in told, told)


def main():
    if "thread" in esdmtest.SANITIZE:
        esdmtest.skip("threads are watched in integration.ranks; HDF5 and MPI are not built for it")
    skip_without_postgres()
    if not PROGRAM:
        mpirun.missing("libnetcdf-mpi-dev and OpenMPI were not there when ESDM was built")
    mpirun.launcher("openmpi")
    with tempfile.TemporaryDirectory(prefix="esdm-connections.", dir=esdmtest.folder_of_sites()) as name, \
            Server(log_connections="on", log_min_messages="log") as server:
        for part in (check_counts, check_late, check_moved, check_living, check_lost):
            part(pathlib.Path(name), server)


main()
