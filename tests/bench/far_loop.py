#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""A loop over steps that lie on a server far away (bench_delay.c), in C, with other settings in turns, beside
what bare libcurl takes for as many bytes (bench_s3.c):

    tests/bench/far_loop.py --build build [--repeat 7] [--mib 4] [--steps 40] [--delay 30]

Printed are medians, least and most of the seconds of `far_program sums`, and requests and MiB with opening. All
data lie in $TMPDIR, best on tmpfs. A record of earlier runs is used in the row that says so alone.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import far

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))

# What differs from the defaults: of the target, of the engine, of the environment.
SETTINGS = {
    "as it is": ({}, {}, {}),
    "known from an earlier run": ({}, {}, {"ESDM_EARLIER_RUNS": "on"}),
    "8 connections": ({"connections": 8}, {}, {}),
    "32 connections": ({"connections": 32}, {}, {}),
    "64 connections": ({"connections": 64}, {}, {}),
    "`engine.memory` 64 MiB (4 steps ahead)": ({}, {"memory": "64 MiB"}, {}),
    "128 MiB (8)": ({}, {"memory": "128 MiB"}, {}),
    "1 GiB (64)": ({}, {"memory": "1 GiB"}, {}),
    "one thread": ({}, {"threads": 1}, {}),
}


class Loop:
    def __init__(self, options, server, way, folder):
        self.options, self.server, self.way, self.folder = options, server, way, folder

    def environment(self, target, engine, more, endpoint):
        """One site, whose configuration differs from run to run."""
        (self.folder / "site.json").write_text(json.dumps({
            "site": {"name": "loop"}, "engine": {"codec": "none", **engine},
            "targets": [self.server.target(prefix="esdm", endpoint=endpoint, **target)],
            "metadata": {"plugin": "sqlite", "directory": "metadata"}}))
        env = {k: v for k, v in os.environ.items() if not k.startswith("ESDM_")}
        env.update({**self.server.client_environment(), "ESDM_EARLIER_RUNS": "off", **more,
                    "ESDM_CONFIG": str(self.folder / "site.json"), "XDG_CACHE_HOME": str(self.folder / "cache")})
        if env["ESDM_EARLIER_RUNS"] == "on":
            del env["ESDM_EARLIER_RUNS"]
        return env

    def program(self, name, *words, env):
        done = subprocess.run([self.options.build / name, *map(str, words)], env=env, check=True, text=True,
                              stdout=subprocess.PIPE, timeout=300)
        return float(done.stdout.split()[-1]) if done.stdout.startswith("seconds") else None

    def make(self):
        side = int((self.options.mib * (1 << 18)) ** 0.5)
        env = self.environment({}, {}, {}, self.server.endpoint)
        self.program("tools/esdm-mkfs", env=env)
        self.program("tests/integration/far_program", "write", "field", 120, side, side, "none", 1, env=env)

    def esdm(self, settings):
        env = self.environment(*settings, self.way.endpoint)
        self.way.counts()
        seconds = self.program("tests/integration/far_program", "sums", "field", self.options.steps, env=env)
        return seconds, self.way.counts()

    def bare(self, what, endpoint, count, size, connections):
        return self.program("tests/bench/bench_s3", what, f"{endpoint}/{self.bucket()}/bare-{size}-", count, size,
                            connections, env=self.environment({}, {}, {}, endpoint))

    @staticmethod
    def bucket():
        import s3server
        return s3server.BUCKET


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--mib", type=float, default=4)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--delay", type=float, default=30)
    options = parser.parse_args()
    options.build = options.build.resolve()
    return options


def measure(loop, options):
    size = int(options.mib * (1 << 20))
    bare = {f"bare, {parts} part{'s' if parts > 1 else ''} a step, {n} connections": (parts, n)
            for parts, n in ((1, 16), (1, 32), (2, 32), (4, 64))}
    for parts in (1, 2, 4):
        loop.bare("put", loop.server.endpoint, options.steps * parts, size // parts, 4)
    runs, counts = {}, {}
    loop.esdm(SETTINGS["known from an earlier run"])
    for _ in range(options.repeat):
        for name, settings in SETTINGS.items():
            seconds, counts[name] = loop.esdm(settings)
            runs.setdefault(name, []).append(seconds)
        for name, (parts, n) in bare.items():
            runs.setdefault(name, []).append(
                loop.bare("get", loop.way.endpoint, options.steps * parts, size // parts, n))
    print("| | seconds | requests | MiB |\n| --- | --- | ---: | ---: |")
    for name, seconds in runs.items():
        of = counts.get(name)
        told = f"{of['requests']} | {of['bytes'] / (1 << 20):.0f}" if of else " | "
        print(f"| {name} | {statistics.median(seconds):.3f} ({min(seconds):.3f} to {max(seconds):.3f}) | {told} |")


def main():
    options = arguments()
    os.environ.setdefault("TMPDIR", "/dev/shm")
    import s3server
    with tempfile.TemporaryDirectory(prefix="far-loop-") as folder, s3server.Server("versitygw") as server, \
            far.Way(options.build, server.port, options.delay) as way:
        loop = Loop(options, server, way, pathlib.Path(folder))
        loop.make()
        measure(loop, options)


main()
