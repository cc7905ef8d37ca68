#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Placement over two targets of different speed, measured against what its model predicts.

    tests/bench/placement.py --build build [--fast 160] [--slow 80] [--mib 1024] [--call-mib 256]
                             [--folder /dev/shm] [--json FILE] [--quick] [--priority]

Two POSIX targets are throttled to --fast and --slow MB/s (tests/support/throttled_data.c) and
calibrated. A dataset is written, in calls of --call-mib, and read back:
  placed       by the model, over both
  turns        round robin: the same site before it was calibrated
  fast, slow   one target alone: what it really does

`placed` is to reach 90 % of the sum of both, and to beat turns and fast by the ratio that follows
from the models alone, within 15 %. The models are to predict what they have not seen at least twice
as well as the mean does. Exit status 1 when something does not hold. On a machine that others use,
--priority (as root) runs the programs with real-time priority: most of their time they sleep.
stores.py --tasks placement,... runs it together with what the other stores are to reach.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from goals import Goals


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.prefix = ["chrt", "-r", "5"] if options.priority else []
        self.env = dict(os.environ, ESDM_PLUGIN_PATH=str(options.build / "plugins"))

    def site(self, name, speeds):
        """A site with the targets of `speeds` (name -> MB/s), made."""
        root = self.folder / name
        config = {
            "targets": [{"name": target, "plugin": "throttled", "directory": str(root / target),
                         "bytes_per_s": speed * 1e6, "latency_ms": 0.5, "service_ms": 0.1}
                        for target, speed in speeds.items()],
            "metadata": {"plugin": "sqlite", "directory": str(root / "metadata")}}
        root.mkdir()
        file = root / "site.json"
        file.write_text(json.dumps(config, indent=2))
        self.tool("esdm-mkfs", file)
        return file

    def tool(self, name, *arguments):
        done = subprocess.run([*self.prefix, self.options.build / "tools" / name, *arguments], env=self.env,
                              capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{name}: {done.stderr}")
        return done.stdout

    def rates(self, config):
        """MB/s of writing and of reading the dataset."""
        rates = {}
        for task in ("write", "read"):
            done = subprocess.run(
                [*self.prefix, self.options.build / "tests/bench/bench_placement", task, "bench",
                 str(self.options.mib), str(self.options.call_mib)],
                env=dict(self.env, ESDM_CONFIG=str(config)), capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"bench_placement {task}: {done.stderr}")
            rates[task] = self.options.mib * 2**20 / float(done.stdout) / 1e6
        return rates



def bandwidth(model, bytes_, concurrency=4):
    alone = model["latency_s"] + bytes_ / (model["stream_bytes_per_s"] or float("inf"))
    busy = model["service_s"] + bytes_ / (model["shared_bytes_per_s"] or float("inf"))
    return concurrency * bytes_ / max(alone, concurrency * busy) / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--fast", type=float, default=160)
    parser.add_argument("--slow", type=float, default=80)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--call-mib", type=int, default=256)
    parser.add_argument("--folder", default="/dev/shm")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="256 MiB in calls of 128")
    parser.add_argument("--priority", action="store_true", help="real-time priority (as root)")
    options = parser.parse_args()
    options.build = options.build.resolve()
    if options.quick:
        options.mib, options.call_mib = 256, 128
    goals = Goals()
    placement(options, goals)
    sys.exit(goals.end(options.json))


def placement(options, goals):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="esdm-placement.", dir=options.folder))
    try:
        goals.results["placement"] = measure(Bench(options, folder), options, goals)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def models(report, goals, what):
    """How well the models of a calibration predict what they were not fitted to."""
    for m in report["models"]:
        goals.most(f"{what}: error of {m['target']}, {m['direction']}", m["error"] * 100,
                   m["naive_error"] * 50, " %")


def measure(bench, options, goals):
    speeds = {"fast": options.fast, "slow": options.slow}
    alone = {name: bench.rates(bench.site(name, {name: speed})) for name, speed in speeds.items()}
    both = bench.site("both", speeds)
    turns = bench.rates(both)
    report = json.loads(bench.tool("esdm-mkfs", "--calibrate=quick", "--json", both))
    placed = bench.rates(both)
    result = {"alone": alone, "turns": turns, "placed": placed, "models": report["models"]}
    for task in ("write", "read"):
        model = {m["target"]: m for m in report["models"] if m["direction"] == task}
        speed = {name: bandwidth(model[name], 4 * 2**20) for name in speeds}
        total = sum(speed.values())
        wanted = {"fast": total / max(speed.values()), "turns": total / (2 * min(speed.values()))}
        print(f"{options.mib} MiB, {task}: placed {placed[task]:.0f} MB/s, in turns "
              f"{turns[task]:.0f}, " +
              ", ".join(f"{name} alone {alone[name][task]:.0f}" for name in speeds))
        share = placed[task] / sum(a[task] for a in alone.values())
        goals.least(f"{task}: share of both targets' speed", share * 100, 90, " %")
        for rival, rate in (("fast alone", alone["fast"][task]), ("turns", turns[task])):
            ratio, model_ratio = placed[task] / rate, wanted[rival.split()[0]]
            goals.add(f"{task}: times as fast as {rival}", f"{model_ratio:.2f} +- 15 %",
                      f"{ratio:.2f}", abs(ratio / model_ratio - 1) <= 0.15 and ratio > 1)
    models(report, goals, "throttled")
    return result


if __name__ == "__main__":
    main()
