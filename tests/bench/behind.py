#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""How long a model on several ranks takes with "writes": "background" and without, in one run.

    tests/bench/behind.py --build build-bench [--ranks 1 2 4] [--repeat 5] [--steps 20] [--compute 100]
                          [--folder /dev/shm] [--priority]

Each rank computes so many ms of processor time, then all put a step (8.3 MB together), again and again;
the time has creating and closing in it. "slow": a target of 50 MB/s for each rank, that makes writers
wait. "tmpfs" and "tmpfs, zstd": storing takes processors alone. Prints medians, beside the computing
alone. What was written is read and verified. `--build` must be an optimised build.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import mpirun  # pylint: disable=wrong-import-position

SITES = {"tmpfs": ({"plugin": "posix"}, "none"),
         "tmpfs, zstd": ({"plugin": "posix"}, "shuffle+zstd"),
         "slow": ({"plugin": "throttled", "bytes_per_s": 50e6}, "none")}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--compute", type=int, default=100, help="ms of each rank and step")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("/dev/shm"))
    parser.add_argument("--priority", action="store_true", help="run with real-time priority")
    return parser.parse_args()


def make_sites(folder):
    """{(site, "direct" or "background"): environment}"""
    made = {}
    for number, (site, (target, codec)) in enumerate(SITES.items()):
        for writes in "direct", "background":
            name = f"{writes}{number}"
            targets = [dict(target, name="disk", directory=f"{name}/packs")]
            env = mpirun.make_site(folder, name, targets=targets, threads=None)
            path = pathlib.Path(env["ESDM_CONFIG"])
            text = json.loads(path.read_text())
            text["engine"] = {"writes": writes, "codec": codec}
            path.write_text(json.dumps(text))
            made[site, writes] = env
    return made


def run(options, env, ranks, task):
    program = options.build.resolve() / "tests/bench/bench_ranks_mpi"
    # A rank that is bound to one core has none left for storing.
    line = [mpirun.launcher("openmpi"), "--bind-to", "none", "-n", str(ranks)]
    line += ["chrt", "--rr", "10"] if options.priority else []
    line += [str(program), task, "esdm://model", "plain", str(options.steps), str(options.compute)]
    done = subprocess.run(line, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=600, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(line)}: {done.stderr}")
    return float(done.stdout.split()[1])


def measure(options, sites):
    seconds = {}
    for repetition in range(options.repeat):
        for ranks in options.ranks:
            for (site, writes), env in sorted(sites.items(), reverse=repetition % 2 == 1):
                seconds.setdefault((site, writes, ranks), []).append(run(options, env, ranks, "model"))
                if repetition == 0:
                    run(options, env, ranks, "read")
        print(f"repetition {repetition + 1} of {options.repeat}", file=sys.stderr)
    return {key: statistics.median(values) for key, values in seconds.items()}


def main():
    options = arguments()
    os.environ["ESDM_BUILD"] = str(options.build.resolve())
    folder = pathlib.Path(tempfile.mkdtemp(prefix="esdm-bench.", dir=options.folder))
    try:
        medians = measure(options, make_sites(folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{'':14}{'ranks':>6}{'computing s':>13}{'direct s':>10}{'background s':>14}{'ratio':>7}")
    for site in SITES:
        for ranks in options.ranks:
            direct, background = (medians[site, writes, ranks] for writes in ("direct", "background"))
            print(f"{site:14}{ranks:6}{options.steps * options.compute / 1e3:13.1f}{direct:10.2f}"
                  f"{background:14.2f}{direct / background:7.2f}")


if __name__ == "__main__":
    main()
