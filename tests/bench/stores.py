#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Benchmarks targets on servers and metadata in PostgreSQL, each against what it is to be measured by.

    tests/bench/stores.py --build build-bench [--repeat 5] [--steps 36] [--tiny 10000] [--priority]
                          [--tasks s3,tiny,models,placement,metadata] [--mib 1024] [--json FILE]

s3        a variable written to and read from an S3 server, and what a bare program on libcurl's multi
          interface gets from the same server with the same object sizes (bench_s3.c; the best of
          several numbers of connections)
tiny      many variables of a few values in one container, on kv and on s3, one commit each as NetCDF
          programs make them with nc_sync: what a commit takes, what of it is the store's (more than
          when the values lie with the metadata), and the whole program with its 10,000 definitions
models    a site of all kinds of targets is calibrated: how wrong its models are on what they were
          not fitted to
placement two targets of different speed, as placement.py does
metadata  small containers created, opened and committed to, with PostgreSQL and with SQLite

Repetitions take turns; medians and ratios are printed, and a table of what is to be reached. Exit
status 1 when something is not. --priority (as root) runs everything, servers
too, with real-time priority. All data lies in $TMPDIR, best on tmpfs.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import placement
from goals import Goals

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
os.environ.setdefault("TMPDIR", "/dev/shm")

import postgres  # pylint: disable=wrong-import-position
import s3server  # pylint: disable=wrong-import-position

STEP_BYTES = 32 * 180 * 360 * 4


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--steps", type=int, default=36)
    parser.add_argument("--tiny", type=int, default=10000)
    parser.add_argument("--tasks", default="s3,tiny,metadata")
    parser.add_argument("--mib", type=int, default=1024, help="of placement")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--priority", action="store_true")
    options = parser.parse_args()
    options.build = options.build.resolve()
    return options


class Bench:
    def __init__(self, options, folder, server):
        self.options, self.folder, self.server = options, folder, server
        self.goals = Goals()
        self.environment = {**os.environ, **server.client_environment()}

    def site(self, name, targets, metadata=None, **engine):
        """Makes a site; returns the environment of programs that use it."""
        folder = self.folder / name
        folder.mkdir()
        (folder / "site.json").write_text(json.dumps({
            "site": {"name": name}, "targets": targets, "engine": engine,
            "metadata": metadata or {"plugin": "sqlite", "directory": "metadata"}}))
        env = {**self.environment, "ESDM_CONFIG": str(folder / "site.json")}
        self.tool("esdm-mkfs", env=env)
        return env

    def tool(self, name, *arguments, env):
        return subprocess.run([self.options.build / "tools" / name, *arguments], env=env,
                              check=True, stdout=subprocess.PIPE, text=True).stdout

    def run(self, program, *arguments, env=None, whole=None):
        """Seconds that the program tells; those that it ran are added to the list `whole`."""
        command = [self.options.build / "tests/bench" / program, *map(str, arguments)]
        begin = time.monotonic()
        done = subprocess.run(command, env=env or self.environment, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode:
            sys.exit(f"{command}: {done.stderr}")
        if whole is not None:
            whole.append(time.monotonic() - begin)
        return float(done.stdout.split()[1])


def table(title, rows, unit, figure):
    """Rows of name -> seconds; the first one is what the others are compared with."""
    print(f"\n{title}")
    base = statistics.median(next(iter(rows.values())))
    for name, seconds in rows.items():
        median = statistics.median(seconds)
        print(f"  {name:34} {figure(median):10.2f} {unit:8} time / first: {median / base:6.2f}")


def s3(bench):
    options = bench.options
    # Neither signs what it sends: hashing costs both the same.
    env = bench.site("s3", [bench.server.target("cloud", prefix="esdm", sign_payload=False)])
    url = f"{bench.server.endpoint}/{s3server.BUCKET}/bare/"
    write, read = {}, {}
    for _ in range(options.repeat):
        write.setdefault("ESDM", []).append(
            bench.run("bench_esdm", "write", "x", "plain", options.steps, 0, env=env))
        sizes = [p.stat().st_size for p in (bench.server.objects / "esdm/packs").rglob("*")
                 if p.is_file()]
        read.setdefault("ESDM", []).append(
            bench.run("bench_esdm", "read", "x", "plain", options.steps, 0, env=env))
        count, each = len(sizes), sum(sizes) // len(sizes)
        for connections in (2, 4, 8, 16):
            name = f"bare, {connections} connections"
            for task, rows in (("put", write), ("get", read)):
                rows.setdefault(name, []).append(
                    bench.run("bench_s3", task, url, count, each, connections))
        bench.tool("esdm-rm", "-f", "x", env=env)
    total = options.steps * STEP_BYTES
    print(f"{count} objects of {each / 2**20:.1f} MiB")
    for task, rows in (("written", write), ("read", read)):
        table(f"{total / 1e6:.0f} MB {task}", rows, "MB/s", lambda s: total / s / 1e6)
        best = min(statistics.median(v) for k, v in rows.items() if k != "ESDM")
        bench.goals.least(f"s3, {task}: share of the best bare curl-multi figure",
                          100 * best / statistics.median(rows["ESDM"]), 90, " %")


def tiny(bench):
    options = bench.options
    kinds = {"kv": [{"name": "tiny", "plugin": "kv", "directory": "kv"}],
             "s3": [bench.server.target("cloud", prefix="tiny", sign_payload=False)],
             "posix": [{"name": "disk", "plugin": "posix", "directory": "packs"}]}
    sites = {k: bench.site(f"tiny-{k}", t, inline=0) for k, t in kinds.items()}
    sites["none (with the metadata)"] = bench.site("tiny-inline", kinds["posix"])
    write, read, whole = {}, {}, {}
    for i in range(options.repeat):
        for kind, env in sites.items():
            write.setdefault(kind, []).append(
                bench.run("bench_stores", "write", f"t{i}", options.tiny, env=env,
                          whole=whole.setdefault(kind, [])))
            read.setdefault(kind, []).append(
                bench.run("bench_stores", "read", f"t{i}", options.tiny, env=env))
    for task, rows in (("written, a commit each", write), ("read", read),
                       ("defined and written: whole programs", whole)):
        table(f"{options.tiny} variables of 25 numbers {task}", rows, "us each",
              lambda s: s / options.tiny * 1e6)
    middle = {kind: statistics.median(seconds) for kind, seconds in write.items()}
    common = middle["none (with the metadata)"]
    bench.goals.least("tiny variables: kv times as fast as s3", middle["s3"] / middle["kv"], 5)
    bench.goals.least("  of it what the stores do, without what the metadata take",
                      (middle["s3"] - common) / (middle["kv"] - common), 5)
    bench.goals.results["tiny"] = {"written": write, "read": read, "whole": whole}


def models(bench):
    """Of a site of all kinds; the throttled ones have known speeds."""
    env = bench.site("models", [bench.server.target("cloud", prefix="models"),
                                {"name": "tiny", "plugin": "kv", "directory": "kv"},
                                {"name": "disk", "plugin": "posix", "directory": "packs"}])
    report = json.loads(bench.tool("esdm-mkfs", "--calibrate", "--seconds=20", "--json",
                                   env=env))
    placement.models(report, bench.goals, "model")
    bench.goals.results["models"] = report["models"]


def place(bench):
    options = argparse.Namespace(
        build=bench.options.build, fast=160, slow=80, mib=bench.options.mib,
        call_mib=min(256, bench.options.mib // 2), folder=os.environ["TMPDIR"], priority=False)
    placement.placement(options, bench.goals)


def metadata(bench):
    options = bench.options
    disk = [{"name": "disk", "plugin": "posix", "directory": "packs"}]
    rows = {}
    with postgres.Server() as server:
        sites = {"sqlite": bench.site("m-sqlite", disk),
                 "postgres": bench.site("m-postgres", disk,
                                        {"plugin": "postgres", "connection": server.connection(),
                                         "schema": "bench"})}
        for _ in range(options.repeat):
            for name, env in sites.items():
                for task in ("create", "open"):
                    rows.setdefault(task, {}).setdefault(name, []).append(
                        bench.run("bench_esdm", task, "m", "plain", 0, 300, env=env))
                rows.setdefault("commit", {}).setdefault(name, []).append(
                    bench.run("bench_stores", "write", "c", 300, env=env))
    for task, figures in rows.items():
        table(f"{task}, 300 times", figures, "us each", lambda s: s / 300 * 1e6)


def main():
    options = arguments()
    if options.priority:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(5))
    with tempfile.TemporaryDirectory(prefix="esdm-bench.") as folder, s3server.Server() as server:
        bench = Bench(options, pathlib.Path(folder), server)
        for task in options.tasks.split(","):
            {"s3": s3, "tiny": tiny, "metadata": metadata, "models": models,
             "placement": place}[task](bench)
        status = bench.goals.end(options.json)
    sys.exit(status)


if __name__ == "__main__":
    main()
