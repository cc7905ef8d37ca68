#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Ranks that share a container on a site whose targets die, are copies of each other, or belong to one
node: nothing is lost, all ranks have the same, and who cannot read is told why. targets.py PROGRAM"""

import contextlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import esdmtest
import mpirun
from esdmtest import expect

mpirun.LEAKS_TOO = False  # netcdf.parallel.mpi, trouble.py and integration.ranks look for leaks
PROGRAM = sys.argv[1] if len(sys.argv) > 1 else ""
SECONDS = 300 * (5 if esdmtest.SANITIZE else 1)  # within which every job ends
RANKS = esdmtest.by_size((4,), tuple(esdmtest.some((2, 3, 4), 1)), (2, 3, 4))
STEPS = 6


def disk(name, plugin="posix", **keys):
    return {"name": name, "plugin": plugin, "directory": name, **keys}


def site(folder, name, targets, **keys):
    """A site in a folder of its own; its environment and its folder."""
    place = folder / name
    place.mkdir()
    env = mpirun.make_site(place, name, targets=[disk("unused")])
    config = json.loads((place / f"{name}.json").read_text())
    config.update(targets=targets, **keys)
    (place / f"{name}.json").write_text(json.dumps(config))
    return env, place


def make(env, **more):
    esdmtest.run([esdmtest.tool("esdm-mkfs")], env={**env, **more})


def tool(env, name, *options, check=True):
    return esdmtest.run([esdmtest.tool(name), *options], env=env, check=check, timeout=SECONDS)


def job(env, ranks, *arguments, script=""):
    """`script` is run by the shell of each rank before."""
    prefix = ["/bin/sh", "-c", script + ' exec "$@"', "sh"]
    return mpirun.run("openmpi", ranks, [*prefix, PROGRAM, *map(str, arguments)], env,
                      timeout=SECONDS)


def verify(env, step, check=True):
    """As another job finds it: all steps are whole, at least up to this one."""
    return esdmtest.run([PROGRAM, "verify", str(step)], env=env, check=check, timeout=SECONDS)


def targets_of(env):
    """Places of the fragments: "one", "one,two", "burst@alpha"."""
    text = tool(env, "esdm-stat", "--json", "--fragments", "killed").stdout
    return set(re.findall(r'"target": "([^"]+)"', text)) - {"(inline)"}


def writes(env):
    """How the writes of all ranks went."""
    text = tool(env, "esdm-stat", "--json", "--summary", "killed").stdout
    return json.loads(text)["containers"][0]["writes"]


@contextlib.contextmanager
def without(folder):
    folder.rename(folder.with_suffix(".away"))
    yield
    folder.with_suffix(".away").rename(folder)


# From the n-th operation on the target fails for good, on one rank or on all of them.
DEATHS = ("append:2+0:fail:EIO", "append:3+0:fail:ENOSPC", "create:1+0:fail:EIO")


def dying(victim, fault):
    chosen = "true" if victim is None else f'[ "$OMPI_COMM_WORLD_RANK" = {victim} ]'
    return f"if {chosen}; then export ESDM_FAULTY={fault}; fi;"


def a_target_dies(folder):
    for ranks in RANKS:
        victims = (None, 0, ranks - 1)
        pairs = esdmtest.by_size([(DEATHS[0], None), (DEATHS[1], 0)][esdmtest.by_build(1, 0):], list(zip(DEATHS, victims)),
                                 [(fault, victim) for fault in DEATHS for victim in victims])
        for number, (fault, victim) in enumerate(pairs):
            env, place = site(folder, f"dies-{ranks}-{number}",
                              [disk("one", "faulty"), disk("two")])
            make(env)
            told = job(env, ranks, "steps", STEPS, script=dying(victim, fault)).stdout
            counts = writes(env)
            expect(told.count("esdm: close 'killed'") == 1 and
                   f"{counts['elsewhere']} of {ranks * STEPS} fragments" in told, told[-2000:])
            expect(counts["fragments"] == ranks * STEPS and counts["elsewhere"] > 0, f"{counts}")
            tool(env, "esdm-fsck", "--data", "--quiet")
            job(env, ranks, "append")  # the target is well again
            verify(env, STEPS)
            expect(any(place.joinpath("one").rglob("*-*-*")), "one is unused")
    print("a target that dies: nothing is lost", flush=True)


def all_targets_die(folder):
    """Where nothing is left to go to, all ranks are told alike and the last commit stays."""
    env, _ = site(folder, "none", [disk("one", "faulty"), disk("two", "faulty")])
    make(env)
    job(env, 4, "lost")
    print("no target is left: all ranks are told", flush=True)


def copies(folder):
    """While one of three targets dies there are two copies still; of two, one is left, which esdm-fsck
    makes two of again."""
    for ranks in RANKS:
        for number, names in enumerate((("one", "two", "three"), ("one", "two"))):
            targets = [disk(n, "faulty" if n == "one" else "posix") for n in names]
            env, place = site(folder, f"copies-{ranks}-{number}", targets, copies=2)
            make(env)
            job(env, ranks, "steps", STEPS, script=dying(ranks - 1, DEATHS[0]))
            verify(env, STEPS - 1)
            counts = {t.count(",") + 1 for t in targets_of(env)}
            expect(2 in counts and (1 in counts or number == 0), f"{names}: {targets_of(env)}")
            expect(writes(env)["fewer_copies"] > 0, f"{names}: {writes(env)}")
            tool(env, "esdm-fsck", "--data", "--repair", "--quiet", check=False)
            tool(env, "esdm-fsck", "--data", "--quiet")
            expect(all("," in t for t in targets_of(env)), f"{names}: {targets_of(env)}")
            for name in names:
                with without(place / name):
                    verify(env, STEPS - 1)
            with without(place / "two"):
                job(env, ranks, "append")
            verify(env, STEPS)
    print("copies: each target can be lost", flush=True)


NODES = ('if [ "$OMPI_COMM_WORLD_RANK" -lt $((OMPI_COMM_WORLD_SIZE / 2)) ]; '
         "then export ESDM_NODE=alpha; else export ESDM_NODE=beta; fi;")


def node_local(folder):
    """Each node has what its ranks wrote, until it is drained; each rank is told which node has what
    it cannot read."""
    for ranks in RANKS:
        burst = disk("burst", accessibility="local")
        burst["directory"] = "nodes-$ESDM_NODE"
        env, _ = site(folder, f"local-{ranks}", [burst, disk("disk")])
        nodes = [{**env, "ESDM_NODE": node} for node in ("alpha", "beta")]
        make(nodes[0])
        job(env, ranks, "steps", STEPS, script=NODES)
        expect({"burst@alpha", "burst@beta"} <= targets_of(nodes[0]), f"{targets_of(nodes[0])}")
        told = job(env, ranks, "neighbours", script=NODES).stdout
        for rank in range(ranks):
            same = (rank < ranks // 2) == ((rank + 1) % ranks < ranks // 2)
            line = re.search(rf"^rank {rank} reads rank \d+: (.*)$", told, re.M)
            expect(line and (line[1] == "good") == same, f"rank {rank} of {ranks}:\n{told}")
        for words in (("burst", "alpha", "esdm-drain"), ("burst", "beta", "esdm-drain")):
            expect(all(word in told for word in words), f"not told: {words}\n{told}")
        esdmtest.expect_error(verify(nodes[0], STEPS - 1, check=False), "beta", "esdm-drain")
        for node in nodes:
            tool(node, "esdm-drain", "--quiet")
        for node in nodes:
            verify(node, STEPS - 1)
            tool(node, "esdm-fsck", "--data", "--quiet")
        told = job(env, ranks, "neighbours", script=NODES).stdout
        expect(told.count(": good") == ranks, told)
        job(env, ranks, "append", script=NODES)
    print("node-local targets: all is read after esdm-drain", flush=True)


def a_server_dies(folder):
    """A real one, killed while the ranks write; and back again."""
    if not (esdmtest.BUILD / "esdm/esdm-data-s3.so").exists():
        print("a server that dies: skipped: built without S3")
        return
    from s3server import Server  # pylint: disable=import-outside-toplevel
    with Server(may_build=False) as server:
        cloud = server.target(prefix="ranks", part="5 MiB", timeout=5)
        env, place = site(folder, "server", [cloud, disk("disk")])
        env.update(server.client_environment())
        make(env)
        line = [mpirun.launcher("openmpi"), "-n", "4", PROGRAM, "steps", "12"]
        told = ""
        with subprocess.Popen(line, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True) as process:
            for text in process.stdout:
                told += text
                if text.strip() == "committed 3":
                    server.kill()
            process.wait(SECONDS)
        expect(process.returncode == 0, f"ranks fail with the server:\n{told[-3000:]}")
        expect("committed 11" in told and targets_of(env) == {"cloud", "disk"},
               f"{targets_of(env)}\n{told[-3000:]}")
        server.start()
        config = place / "server.json"  # it lives: on a busy machine that may take longer
        config.write_text(config.read_text().replace('"timeout": 5', '"timeout": 60'))
        verify(env, 11)
        tool(env, "esdm-fsck", "--data", "--quiet")
    print("a server that dies: nothing is lost", flush=True)


def main():
    if "thread" in esdmtest.SANITIZE:
        esdmtest.skip("threads are watched in integration.ranks; HDF5 and MPI are not built for it")
    if not PROGRAM:
        mpirun.missing("libnetcdf-mpi-dev and OpenMPI were not there when ESDM was built")
    with tempfile.TemporaryDirectory(prefix="esdm-targets.", dir=esdmtest.folder_of_sites()) as name:
        for part in (a_target_dies, all_targets_die, copies, node_local, a_server_dies):
            part(pathlib.Path(name))


try:
    main()
except esdmtest.Failed as problem:
    raise SystemExit(str(problem)) from None
