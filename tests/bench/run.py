#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Benchmarks ESDM against stock netCDF and against bare pwrite and pread, in one run.

    tests/bench/run.py --build build-bench [--repeat 5] [--gigabytes 1] [--folders /dev/shm /var/tmp]
                       [--tasks write,read,…] [--json FILE] [--quick] [--priority]

Every repetition runs every variant of a task in turn, beginning with another one each time, so that
drifts of the machine meet all alike.
Prints a table of medians and ratios for each folder. `--build` must be an optimised build.

On a machine that others use, `--priority` (as root) runs every program in turn with real-time
priority, so that it has the processors to itself; memory and disks stay shared.
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
import time

STEP_BYTES = 32 * 180 * 360 * 4
SMALL = 1000
RECORDS = 100_000
TINY = 1_000_000

LARGE = ["write", "read", "read-steps", "point"]  # of bare loops, too
SUM = ["write", "sum"]
BOXES = LARGE + ["column"]
SERIAL = BOXES + ["create", "open", "append", "read-back"]
# Tasks of bench_calls.c, and the one whose file they read.
CALLS = {"mapped-write": None, "mapped-read": "mapped-write", "strided-read": "mapped-write",
         "strided-write": None, "gathered-read": "strided-write", "put-var1": None,
         "get-var1": "put-var1", "many-create": None, "many-open": "many-create",
         "ncdump -h": "many-create", "parts-write": None, "parts-column": "parts-write"}
TASKS = SERIAL + list(CALLS)
PARTS = ["parts-write", "parts-column"]  # not of netCDF-4: HDF5 keeps 7 KB of memory for each chunk
ALL = TASKS + ["sum"]
# The task whose file a task reads.
AFTER = {"read": "write", "read-steps": "write", "point": "write", "column": "write", "open": "create",
         "read-back": "append", "sum": "write", **CALLS}
# How a task's seconds become a figure: unit, seconds -> figure, whether more is better.
UNITS = {
    "write": ("MB/s", lambda s, b: b / s / 1e6, True),
    "read": ("MB/s", lambda s, b: b / s / 1e6, True),
    "read-steps": ("MB/s", lambda s, b: b / s / 1e6, True),
    "point": ("ms", lambda s, b: s * 1e3, False),
    "column": ("ms", lambda s, b: s * 1e3, False),
    "create": ("us each", lambda s, b: s / SMALL * 1e6, False),
    "open": ("us each", lambda s, b: s / SMALL * 1e6, False),
    "append": ("us each", lambda s, b: s / RECORDS * 1e6, False),
    "read-back": ("ms", lambda s, b: s * 1e3, False),
    "sum": ("MB/s", lambda s, b: b / s / 1e6, True),
    **{task: ("ms", lambda s, b: s * 1e3, False) for task in CALLS},
}


def sum_stored(told):
    """Bytes of the containers in the JSON of esdm-stat."""
    return sum(container["stored_bytes"] for container in told["containers"])


class Variant:
    def __init__(self, name, program, fmt, tasks, stock=False, refers=False):
        self.name, self.program, self.format, self.tasks = name, program, fmt, tasks
        self.stock, self.refers = stock, refers

    @property
    def is_esdm(self):
        return self.name.startswith("ESDM")

    @property
    def runs_netcdf(self):
        return self.program == "bench_netcdf"

    @property
    def compresses(self):
        return self.format == "deflate" or "=" in self.format or "+" in self.name or \
            "lz4" in self.name


VARIANTS = [
    Variant("bare loop, 1 thread", "bench_raw", "1", LARGE),
    Variant("bare loop, 2 threads", "bench_raw", "2", LARGE),
    Variant("netCDF-4 contiguous", "bench_netcdf", "contiguous", BOXES, stock=True),
    Variant("netCDF-4 chunked", "bench_netcdf", "chunked", BOXES, stock=True),
    Variant("netCDF-4 deflate-1", "bench_netcdf", "deflate", BOXES, stock=True),
    Variant("netCDF-4", "bench_netcdf", "plain", [t for t in TASKS[5:] if t not in PARTS], stock=True),
    Variant("CDF-5", "bench_netcdf", "cdf5", TASKS, stock=True),
    Variant("ESDM, C API", "bench_esdm", "plain", SERIAL + ["sum"]),
    # The sum of all values: esdm_read_stream() beside one read of all of them.
    Variant("ESDM, C API, by parts", "bench_esdm", "parts", SUM),
    Variant("ESDM shuffle+zstd, C API", "bench_esdm", "plain", SUM),
    Variant("ESDM shuffle+zstd, C API, by parts", "bench_esdm", "parts", SUM),
    Variant("ESDM, netCDF API", "bench_netcdf", "plain", TASKS),
    Variant("ESDM, netCDF API, chunk stated", "bench_netcdf", "chunked", BOXES),
    Variant("ESDM lz4, netCDF API", "bench_netcdf", "plain", BOXES),
    Variant("ESDM shuffle+zstd, netCDF API", "bench_netcdf", "plain", BOXES),
    Variant("ESDM lossless (deflate-1 asked for)", "bench_netcdf", "deflate", BOXES),
    Variant("ESDM lossless (balanced)", "bench_netcdf", "esdm_mode=balanced", BOXES),
    # 1e-3 of the range of the field
    Variant("ESDM within 0.128", "bench_netcdf", "esdm_absolute_tolerance=0.128", BOXES),
    # Containers whose values stay in files (esdm-ref)
    *[Variant(f"ESDM, refers to {name}", "bench_netcdf", fmt, BOXES[1:], refers=True)
      for name, fmt in (("contiguous", "contiguous"), ("deflate-1", "deflate"), ("CDF-5", "cdf5"))],
]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--folders", nargs="+", default=["/dev/shm", "/var/tmp"])
    parser.add_argument("--tasks", default=",".join(ALL))
    parser.add_argument("--variants", default="", help="only those whose name contains this")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--priority", action="store_true", help="run with real-time priority")
    parser.add_argument("--quick", action="store_true", help="small sizes, two repetitions")
    options = parser.parse_args()
    options.build = options.build.resolve()
    if options.quick:
        options.repeat, options.gigabytes = min(options.repeat, 2), min(options.gigabytes, 0.1)
    options.steps = max(2, round(options.gigabytes * 1e9 / STEP_BYTES))
    return options


class Place:
    """A folder of a file system with a site for each kind of ESDM variant."""

    def __init__(self, parent, options):
        self.options = options
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="esdm-bench.", dir=parent))
        self.parent = parent
        self.memory_mib = {}  # of the task "sum", the most

    def environment(self, variant):
        env = dict(os.environ)
        if variant.is_esdm:
            env["ESDM_CONFIG"] = str(self.config(next(
                (codec for codec in ("lz4", "shuffle+zstd") if codec in variant.name), "none")))
        return env

    def config(self, codec):
        path = self.folder / f"site-{codec}" / "site.json"
        if not path.exists():
            path.parent.mkdir()
            path.write_text(json.dumps({
                "site": {"name": f"bench-{codec}".replace("+", "-")},
                "targets": [{"name": "disk", "plugin": "posix", "directory": "packs"}],
                "metadata": {"plugin": "sqlite", "directory": "metadata"},
                "engine": {"codec": codec},
            }))
            subprocess.run([self.options.build / "tools/esdm-mkfs"], check=True,
                           stdout=subprocess.DEVNULL, env={**os.environ, "ESDM_CONFIG": str(path)})
        return path

    def path(self, variant, task):
        kind = "large" if task in BOXES + SUM else "small" if task in ("create", "open") else "records"
        if task in CALLS:
            kind = CALLS[task] or task
        name = f"{kind}-{VARIANTS.index(variant)}"
        if variant.is_esdm:
            return f"esdm://{name}" if variant.runs_netcdf else name
        return str(self.folder / name)

    def clean(self, variant, task):
        """Writing tasks start from nothing, as a first run does."""
        if variant.is_esdm:
            prefix = self.path(variant, task).removeprefix("esdm://")
            listed = subprocess.run([self.options.build / "tools/esdm-ls"], check=True, text=True,
                                    stdout=subprocess.PIPE, env=self.environment(variant)).stdout
            names = [n for n in listed.split("\n") if n.startswith(prefix)]
            if names:
                subprocess.run([self.options.build / "tools/esdm-rm", "-f", *names], check=True,
                               stdout=subprocess.DEVNULL, env=self.environment(variant))
        else:
            for file in self.folder.glob(f"{pathlib.Path(self.path(variant, task)).name}*"):
                file.unlink()

    def refer(self, variant):
        """Writes a file with stock netCDF and makes a container that refers to it, once."""
        file = self.folder / f"source-{VARIANTS.index(variant)}"
        if file.exists():
            return
        command = [self.options.build / "tests/bench/bench_netcdf", "write", file, variant.format,
                   self.options.steps, 0]
        subprocess.run([str(c) for c in command], stdout=subprocess.DEVNULL, check=True)
        subprocess.run([self.options.build / "tools/esdm-ref", "-q", "--no-verify", file,
                        self.path(variant, "read")], check=True, env=self.environment(variant))

    def run(self, variant, task):
        """Seconds of one run."""
        options = self.options
        if variant.refers:
            self.refer(variant)
        if task in ("write", "create", "append") or CALLS.get(task, "") is None:
            self.clean(variant, task)
        if task == "write":
            self.warm_memory()
        os.sync()
        count = SMALL if task in ("create", "open") else TINY if task in CALLS else RECORDS
        program = "bench_calls" if task in CALLS else variant.program
        command = [options.build / "tests/bench" / program, task, self.path(variant, task),
                   variant.format, options.steps, count]
        if task == "ncdump -h":
            command = ["ncdump", "-h", self.path(variant, task)]
        if variant.is_esdm and variant.runs_netcdf:
            command.insert(0, options.build / "tools/esdm-run")
        if options.priority:
            command = ["chrt", "--fifo", "10", *command]
        began = time.perf_counter()
        done = subprocess.run([str(c) for c in command], env=self.environment(variant), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if done.returncode:
            sys.exit(f"{' '.join(map(str, command))}: {done.stderr}")
        if task == "ncdump -h":
            return time.perf_counter() - began
        told = done.stdout.split()
        if task == "sum":
            self.memory_mib[variant.name] = max(float(told[2]), self.memory_mib.get(variant.name, 0))
        return float(told[1])

    def stored_bytes(self, variant):
        """What the large variable takes."""
        path = self.path(variant, "write")
        if not variant.is_esdm:
            return sum(f.stat().st_size for f in self.folder.glob(f"{pathlib.Path(path).name}*"))
        told = subprocess.run([self.options.build / "tools/esdm-stat", "--json",
                               path.removeprefix("esdm://")], check=True, text=True,
                              stdout=subprocess.PIPE, env=self.environment(variant)).stdout
        return sum_stored(json.loads(told))

    def warm_memory(self):
        """Page-cache memory that a virtual machine touches for the first time costs about 1 ns a
        byte, whoever writes: a throw-away file of the same size takes that cost before the clock runs."""
        file = self.folder / "warm"
        command = [self.options.build / "tests/bench/bench_raw", "write", file, "2",
                   self.options.steps, 0]
        subprocess.run([str(c) for c in command], stdout=subprocess.DEVNULL, check=True)
        for part in self.folder.glob("warm*"):
            part.unlink()

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def measure(options, tasks, variants):
    results = []
    for parent in options.folders:
        place = Place(parent, options)
        try:
            seconds = {}
            stored = {}
            for repetition in range(options.repeat):
                for task in tasks:
                    turn = repetition % len(variants)
                    for variant in variants[turn:] + variants[:turn]:
                        if task in variant.tasks:
                            key = (task, variant.name)
                            seconds.setdefault(key, []).append(place.run(variant, task))
                            if task == "write" and variant.compresses:
                                stored[variant.name] = place.stored_bytes(variant)
                print(f"{parent}: repetition {repetition + 1} of {options.repeat}", file=sys.stderr)
            results += [{"folder": parent, "task": task, "variant": name, "seconds": values,
                         "median": statistics.median(values),
                         "stored_bytes": stored.get(name) if task == "write" else None,
                         "memory_mib": place.memory_mib.get(name) if task == "sum" else None}
                        for (task, name), values in seconds.items()]
        finally:
            place.remove()
    return results


def figure(result, options):
    _, convert, _ = UNITS[result["task"]]
    return convert(result["median"], options.steps * STEP_BYTES)


def print_table(results, options, tasks, variants):
    for folder in options.folders:
        print(f"\n{folder}: medians of {options.repeat}, "
              f"{options.steps * STEP_BYTES / 1e9:.2f} GB, {SMALL} containers, {RECORDS} records")
        rows = {(r["variant"], r["task"]): r for r in results if r["folder"] == folder}
        print(f"{'':44}" + "".join(f"{t + ' ' + UNITS[t][0]:>18}" for t in tasks))
        for variant in variants:
            cells = [rows.get((variant.name, t)) for t in tasks]
            print(f"{variant.name:44}" +
                  "".join(f"{figure(c, options):18.2f}" if c else f"{'-':>18}" for c in cells))
        for (name, task), row in rows.items():
            if task == "sum":
                print(f"{name + ': memory of sum, MiB':62}{row['memory_mib']:18.1f}")
        print_ratios(rows, tasks, variants)
        print_compression(rows, options.steps * STEP_BYTES)


def print_compression(rows, raw_bytes):
    """How small the large variable became, and the speed beside netCDF's deflate and its fastest."""
    packed = [r for (_, task), r in rows.items() if task == "write" and r["stored_bytes"]]
    deflate = "netCDF-4 deflate-1"
    if not packed:
        return
    print(f"{'compression':44}{'ratio':>18}{'write / deflate':>18}{'read / deflate':>18}"
          f"{'write / plain':>18}")
    for written in packed:
        name = written["variant"]
        cells = [f"{raw_bytes / written['stored_bytes']:18.3f}"]
        for task, others in (("write", [deflate]), ("read", [deflate]),
                             ("write", ["netCDF-4 contiguous", "netCDF-4 chunked"])):
            mine = rows.get((name, task))
            times = [rows[(o, task)]["median"] for o in others if (o, task) in rows]
            cells.append(f"{min(times) / mine['median']:18.2f}" if mine and times else f"{'-':>18}")
        print(f"{name:44}" + "".join(cells))


def print_ratios(rows, tasks, variants):
    """Times of the others divided by ESDM's: above 1 ESDM is faster."""
    print("ratios (above 1: ESDM is faster)")
    for variant in filter(lambda v: v.is_esdm, variants):
        names = {v.name for v in variants}
        bare = [n for n in ("bare loop, 1 thread", "bare loop, 2 threads") if n in names]
        for other in ("best netCDF-4", "CDF-5", *bare):
            cells = []
            for task in tasks:
                mine = rows.get((variant.name, task))
                if other == "best netCDF-4":
                    rivals = [rows[(v.name, task)] for v in variants
                              if v.stock and v.name.startswith("netCDF-4")
                              and (v.name, task) in rows]
                else:
                    rivals = [rows[(other, task)]] if (other, task) in rows else []
                best = min((r["median"] for r in rivals), default=None)
                cells.append(f"{best / mine['median']:18.2f}" if mine and best else f"{'-':>18}")
            print(f"{variant.name + ' / ' + other:44}" + "".join(cells))


def tasks_of(wanted):
    """The tasks of --tasks and those whose files they read, in the order to run them."""
    unknown = [name for name in wanted if name not in ALL]
    if unknown:
        sys.exit(f"--tasks: {', '.join(unknown)}: not one of {', '.join(ALL)}")
    needed = {AFTER.get(name) for name in wanted}
    return [name for name in ALL if name in wanted or name in needed]


def main():
    options = arguments()
    tasks = tasks_of(options.tasks.split(","))
    variants = [v for v in VARIANTS if options.variants in v.name and set(tasks) & set(v.tasks)]
    results = measure(options, tasks, variants)
    print_table(results, options, tasks, variants)
    if options.json:
        options.json.write_text(json.dumps({"steps": options.steps, "repeat": options.repeat,
                                            "cpus": os.cpu_count(), "results": results}, indent=1))


if __name__ == "__main__":
    main()
