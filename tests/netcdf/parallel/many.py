#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Containers shared by up to 64 ranks, which read what the others wrote; and up to 64 ranks of which one
fails or defines something else: many.py MANY TROUBLE, programs made of many.c and trouble.c."""

import json
import pathlib
import sys
import tempfile

import esdmtest
import mpirun

mpirun.LEAKS_TOO = False  # netcdf.parallel.mpi, trouble.py and integration.ranks look for leaks
MANY, TROUBLE = sys.argv[1:3] if len(sys.argv) > 2 else ("", "")
SLOW = 5 if esdmtest.SANITIZE else 1
RANKS = esdmtest.by_size((16,), (*esdmtest.some((1, 2, 4, 8), 2), 16), (1, 2, 4, 8, 16, 32, 64))
if esdmtest.SANITIZE and esdmtest.SIZE != "long":
    RANKS = (4,)


def job(env, ranks, *command):
    return mpirun.run("openmpi", ranks, list(command), env, timeout=(120 + 10 * ranks) * SLOW).stdout


KINDS = ("open", "read", "write", "align", "commit", "close")


def made_by_program(files):
    """Calls and bytes by kind in traces, without calls that others made and meetings of one rank with itself."""
    sums = {}
    for file in files:
        spans = [s for s in map(json.loads, file.read_text().splitlines())
                 if s.get("kind") in KINDS and s["status"] == 0]
        ids = {s["id"] for s in spans}
        alone = {s["handle"] for s in spans if s["kind"] == "open" and s["ranks"] <= 1}
        for s in spans:
            if s["cause"] not in ids and not (s["kind"] == "align" and s["handle"] in alone):
                count, size = sums.get(s["kind"], (0, 0))
                sums[s["kind"]] = (count + 1, size + s["bytes"])
    return sums


def check_replay(folder, env, ranks):
    """The same ranks once more, as processes of esdm-replay: collective calls, what they read of each
    other, and all else."""
    records = [folder / f"many{ranks}.{rank}.jsonl" for rank in range(ranks)]
    program = made_by_program(records)
    esdmtest.expect(program["align"][0] > ranks, f"collective calls: {program}")
    env = {**env, "ESDM_MONITOR": f"trace:{folder}/replay{ranks}.%p.jsonl"}
    done = esdmtest.run([esdmtest.tool("esdm-replay"), "--json", *records], env=env)
    report = json.loads(done.stdout)
    did = {o["operation"]: (o["calls"], o["bytes"]) for o in report["operations"]}
    did["open"] = (did["open"][0] + did.pop("create")[0], 0)
    esdmtest.expect(did == program and report["processes"] == ranks, f"{did} is not {program}")
    # What makes the inputs and removes all reads and meets nobody.
    counted = made_by_program(folder.glob(f"replay{ranks}.*.jsonl"))
    for kind in ("read", "align"):
        esdmtest.expect(counted[kind] == program[kind], f"{counted} is not {program}")
    few = esdmtest.run([esdmtest.tool("esdm-replay"), *records[1:]], env=env, check=False)
    esdmtest.expect_error(few, f"was shared by {ranks} ranks")


def check(folder, ranks):
    env = mpirun.make_site(folder, f"many{ranks}")
    told = job({**env, "ESDM_MONITOR": f"trace:{folder}/many{ranks}.%r.jsonl"}, ranks, MANY)
    esdmtest.expect(f"{ranks} ranks: good" in told, told)
    if ranks > 1 and not esdmtest.SANITIZE:  # esdm-replay keeps its load until it ends: a leak to them
        check_replay(folder, env, ranks)
    if ranks > 8:  # trouble.py has the others
        job(env, ranks, TROUBLE, "differ")
        job(env, ranks, TROUBLE, "refused")
        job(mpirun.make_site(folder, f"faulty{ranks}", "faulty"), ranks, TROUBLE, "lost")
    print(f"{ranks} ranks: good", flush=True)


def check_stubs(folder):
    """Rank 0 alone knows where the stub of a new file lies; the container tells it all the same."""
    env = mpirun.make_site(folder, "stubs")
    routed = folder / "routed"
    routed.mkdir()
    names = ("kept.nc", "removed.nc")
    job({**env, "ESDM_NC_ROUTE": f"{routed}=ranks"}, 3, MANY, *[routed / name for name in names])
    (routed / "removed.nc").unlink()
    done = esdmtest.run([esdmtest.tool("esdm-gc"), "--json", "--yes", "--age", "0", "--stubs", routed], env=env)
    esdmtest.expect(json.loads(done.stdout)["without_stub"] == ["ranks/removed.nc"], done.stdout + done.stderr)
    left = esdmtest.run([esdmtest.tool("esdm-ls")], env=env).stdout.split()
    esdmtest.expect(left == ["ranks/kept.nc"], f"{left}")
    print("stubs of ranks: good", flush=True)


def main():
    if "thread" in esdmtest.SANITIZE:
        esdmtest.skip("threads are watched in integration.ranks; HDF5 and MPI are not built for it")
    if not MANY:
        mpirun.missing("libnetcdf-mpi-dev and OpenMPI were not there when ESDM was built")
    mpirun.launcher("openmpi")
    with tempfile.TemporaryDirectory(prefix="esdm-many.", dir=esdmtest.folder_of_sites()) as name:
        for ranks in RANKS:
            check(pathlib.Path(name), ranks)
        check_stubs(pathlib.Path(name))


main()
