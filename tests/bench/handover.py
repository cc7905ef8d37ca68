#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""What ranks that store for others ("ranks": {"io": N}) bring and cost, beside packs of each rank.

    tests/bench/handover.py --build build [--ranks 4] [--io 1 2] [--repeat 3] [--steps 10]
                            [--compute 100] [--folder /dev/shm] [--priority]

The model of behind.py. "slow": a store of 50 MB/s for all that write to it together, as many as they
are. "tmpfs": storing takes processors alone. Prints medians, the ratio to each rank for itself with
the same "writes", and of a run packs, appends and processes that stored. All is read and verified.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import behind  # pylint: disable=wrong-import-position
import mpirun  # pylint: disable=wrong-import-position

STORE_BYTES_PER_S = 50e6


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--io", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--compute", type=int, default=100, help="ms of each rank and step")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("/dev/shm"))
    parser.add_argument("--priority", action="store_true", help="run with real-time priority")
    return parser.parse_args()


def make_site(options, folder, kind, writes, io):
    """Environment of its ranks."""
    name = f"{kind}-{writes}-{io}"
    target = {"plugin": "posix"}
    if kind == "slow":
        target = {"plugin": "throttled", "bytes_per_s": STORE_BYTES_PER_S / (io or options.ranks)}
    targets = [dict(target, name="disk", directory=f"{name}/packs")]
    env = mpirun.make_site(folder, name, targets=targets, threads=1)
    path = pathlib.Path(env["ESDM_CONFIG"])
    text = json.loads(path.read_text())
    text["engine"]["writes"] = writes
    text["ranks"] = {"io": io}
    path.write_text(json.dumps(text))
    return env


def packs_of(folder, kind, writes, io):
    """The names of all packs but those of journals and backups."""
    place = folder / f"{kind}-{writes}-{io}" / "packs"
    return {p.name for p in place.rglob("*-*-*-*") if p.is_file()}


def counted(options, folder, key, env):
    """Packs, and of the target that tells, appends and processes, of one run."""
    log = folder / "appends"
    before = packs_of(folder, *key)
    log.unlink(missing_ok=True)
    behind.run(options, dict(env, THROTTLED_APPENDS=str(log)), options.ranks, "model")
    lines = log.read_text().splitlines() if log.exists() else []
    processes = len({line.split()[0] for line in lines})
    return len(packs_of(folder, *key) - before), len(lines), processes


def measure(options, folder):
    cases = [(kind, writes, io) for kind in ("slow", "tmpfs") for writes in ("direct", "background")
             for io in [0] + options.io]
    sites = {key: make_site(options, folder, *key) for key in cases}
    counts = {key: counted(options, folder, key, env) for key, env in sites.items()}
    seconds = {}
    for repetition in range(options.repeat):
        for key in cases[::-1] if repetition % 2 else cases:
            seconds.setdefault(key, []).append(
                behind.run(options, sites[key], options.ranks, "model"))
            if repetition == 0:
                behind.run(options, sites[key], options.ranks, "read")
        print(f"repetition {repetition + 1} of {options.repeat}", file=sys.stderr)
    return {key: statistics.median(values) for key, values in seconds.items()}, counts


def main():
    options = arguments()
    os.environ["ESDM_BUILD"] = str(options.build.resolve())
    folder = pathlib.Path(tempfile.mkdtemp(prefix="esdm-bench.", dir=options.folder))
    try:
        medians, counts = measure(options, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{'':7}{'writes':12}{'io':>4}{'s':>8}{'ratio':>7}{'packs':>7}{'appends':>9}{'processes':>11}")
    for key, median in medians.items():
        kind, writes, io = key
        packs, appends, processes = counts[key]
        print(f"{kind:7}{writes:12}{io or '-':>4}{median:8.2f}{medians[kind, writes, 0] / median:7.2f}"
              f"{packs:7}{appends or '-':>9}{processes or '-':>11}")


if __name__ == "__main__":
    main()
