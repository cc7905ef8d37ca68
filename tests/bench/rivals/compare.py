#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""ESDM beside what else stores arrays: netCDF-4, CDF-5, NCZarr, HDF5 by h5py, Zarr 3, zarrs,
TensorStore, Icechunk, TileDB and ADIOS2, in the patterns of I/O mini-apps, in one run.

    tests/bench/rivals/compare.py --build build-bench --install VENV     once: rivals from PyPI
    tests/bench/rivals/compare.py --build build-bench --python VENV/bin/python [--short]
          [--stores TEXT,…] [--plain] [--patterns NAME,…] [--repeat N] [--folder DIR]
          [--json FILE] [--plot FILE.svg] [--priority]

Every repetition runs every store in turn, beginning with another one each time, each task in a
process of its own; what is read must have the same checksum everywhere. Figures are medians by the
clock, with the ratio to ESDM of the same kind (without compression, without loss): above 1 the
rival takes longer. Memory is what the process grew by. `--build` must be an optimised build.
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

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[2]

RIVALS = ["netCDF4", "h5py", "zarr", "zarrs", "tensorstore", "icechunk", "tiledb", "adios2",
          "matplotlib"]
LIMIT_S = 600


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--install", type=pathlib.Path, metavar="VENV",
                        help="make this virtual environment with the rivals, and end")
    parser.add_argument("--python", default=sys.executable, help="that has the rivals")
    parser.add_argument("--stores", default="", help="those whose names have one of these texts")
    parser.add_argument("--plain", action="store_true", help="without those that compress")
    parser.add_argument("--patterns", default="", help="those with these names")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="1: 128 MB of values a pattern")
    parser.add_argument("--short", action="store_true", help="about five minutes: 0.1, once in turn")
    parser.add_argument("--folder", default="/dev/shm", help="where the stores are")
    parser.add_argument("--data", default=os.environ.get("ESDM_TEST_DATA", str(SOURCE.parent / "shared/data")),
                        help="folder of real fields; noise where it is absent")
    parser.add_argument("--priority", action="store_true", help="run with real-time priority, as root")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--plot", type=pathlib.Path, help="an SVG, by matplotlib")
    options = parser.parse_args()
    options.build = options.build.resolve()
    if options.short:
        options.repeat, options.scale = 1, min(options.scale, 0.1)
    return options


def install(options):
    subprocess.run([sys.executable, "-m", "venv", options.install], check=True)
    pip = options.install / "bin/pip"
    for rival in RIVALS:  # one that a platform lacks is no reason to have none
        if subprocess.run([pip, "install", "-q", rival], check=False).returncode:
            print(f"{rival}: could not be installed", file=sys.stderr)


def environment(options):
    build = options.build
    env = {k: v for k, v in os.environ.items() if not k.startswith("ESDM_")}
    env.update({"PYTHONPATH": str(SOURCE / "python"), "ESDM_LIBRARY_DIR": f"{build}:{build / 'netcdf-plugin'}",
                "ESDM_BENCH_MKFS": str(build / "tools/esdm-mkfs")})
    return env


def worker(options, *args):
    before = ["chrt", "--fifo", "10"] if options.priority else []
    done = subprocess.run([*before, options.python, HERE / "worker.py", *map(str, args)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT_S,
                          env=environment(options), check=False)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1])
    return json.loads(done.stdout.splitlines()[-1])


def stored_bytes(path):
    """Bytes of the files of a store, and how many they are; packs alone of ESDM's site, and its
    metadata."""
    total = files = 0
    for place in (path, path.with_name(path.name + ".site")):
        found = [place] if place.is_file() else place.rglob("*") if place.is_dir() else []
        for file in found:
            if file.is_file():
                total += file.stat().st_blocks * 512
                files += 1
    return total, files


class Known:
    """What can be run here: `stores`, `patterns` as worker.py tells them; tells of what is left out."""

    def __init__(self, options):
        told = worker(options, "--have")
        self.all = list(told["stores"])
        texts = [w.lower() for w in options.stores.split(",") if w]
        wanted = [n for n in self.all if (not texts or any(t in n.lower() for t in texts)) and
                  (told["stores"][n]["plain"] or not options.plain)]
        missing = {n: told["stores"][n]["missing"] for n in wanted}
        for name in wanted:
            if missing[name]:
                print(f"{name}: left out, not installed: {', '.join(missing[name])} (--install)",
                      file=sys.stderr)
        self.stores = {n: told["stores"][n] for n in wanted if not missing[n]}
        names = [p for p in options.patterns.split(",") if p] or list(told["patterns"])
        unknown = [p for p in names if p not in told["patterns"]]
        if unknown:
            sys.exit(f"there is no pattern {unknown[0]!r}; known are {', '.join(told['patterns'])}")
        if not self.stores:
            sys.exit("no store is left")
        if options.plot and not told["plots"]:
            sys.exit(f"--plot: {options.python} has no matplotlib (--install)")
        self.patterns = {n: told["patterns"][n] for n in names}

    def ours(self, store):
        """ESDM of the same kind."""
        return "ESDM" if self.stores[store]["plain"] else "ESDM deflate 1"


class Results:
    def __init__(self, versions):
        self.runs = {}  # (pattern, task, store) -> list of what workers told
        self.bytes = {}  # (pattern, store) -> (bytes, files)
        self.failed = {}  # (pattern, store) -> why
        self.versions = versions

    def median(self, pattern, task, store, what="seconds"):
        runs = self.runs.get((pattern, task, store))
        return statistics.median(r[what] for r in runs) if runs else None

    def json(self):
        return {"versions": self.versions,
                "runs": [{"pattern": p, "task": t, "store": s, "runs": r}
                         for (p, t, s), r in self.runs.items()],
                "bytes": [{"pattern": p, "store": s, "bytes": b, "files": f}
                          for (p, s), (b, f) in self.bytes.items()],
                "failed": [{"pattern": p, "store": s, "why": w}
                           for (p, s), w in self.failed.items()]}


def run_pattern(options, pattern, known, results):
    sums, stores = {}, list(known.stores)
    data = options.data if pathlib.Path(options.data).is_dir() else ""
    for repeat in range(options.repeat):
        first = repeat * len(stores) // options.repeat
        order = stores[first:] + stores[:first]
        folder = pathlib.Path(tempfile.mkdtemp(prefix="esdm-rivals.", dir=options.folder))
        try:
            for task in known.patterns[pattern]["tasks"]:
                for store in order:
                    if (pattern, store) in results.failed:
                        continue
                    try:
                        told = worker(options, store, pattern, task, folder, options.scale, data)
                    except (RuntimeError, subprocess.TimeoutExpired) as error:
                        results.failed[pattern, store] = f"{task}: {error}"
                        continue
                    if task == "write":
                        path = folder / f"{pattern}-{known.all.index(store)}"
                        results.bytes[pattern, store] = stored_bytes(path)
                    elif sums.setdefault(task, (told["checksum"], store))[0] != told["checksum"]:
                        results.failed[pattern, store] = \
                            f"{task}: other values than {sums[task][1]}"
                    results.runs.setdefault((pattern, task, store), []).append(told)
                    if sys.stderr.isatty():
                        print(f"\r{pattern} {repeat + 1}/{options.repeat} {task:8} {store:22}",
                              end="", file=sys.stderr, flush=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    if sys.stderr.isatty():
        print("\r" + " " * 60 + "\r", end="", file=sys.stderr)


def table(pattern, known, stores, results):
    """Lines of Markdown."""
    tasks = known.patterns[pattern]["tasks"]
    told = [r for (p, _, _), runs in results.runs.items() if p == pattern for r in runs]
    size = told[0]["value_bytes"] / 1e6 if told else 0
    yield f"### {pattern}: {known.patterns[pattern]['what']} {size:.0f} MB"
    yield ""
    yield "| | " + " | ".join(f"{t} ms" for t in tasks) + " | MB | files | MiB of memory |"
    yield "| --- |" + " ---: |" * (len(tasks) + 3)
    for store in stores:
        if (pattern, store) in results.failed:
            yield f"| {store} | failed: {results.failed[pattern, store]} |"
            continue
        cells = []
        for task in tasks:
            seconds = results.median(pattern, task, store)
            own = results.median(pattern, task, known.ours(store))
            ratio = f" ({seconds / own:.2f})" if own and store != known.ours(store) else ""
            cells.append(f"{seconds * 1e3:.3g}{ratio}")
        memory = max(results.median(pattern, t, store, "memory_mib") for t in tasks)
        total, files = results.bytes[pattern, store]
        yield f"| {store} | {' | '.join(cells)} | {total / 1e6:.1f} | {files} | {memory:.0f} |"
    yield ""


def plot(options, known, results):
    code = """
import json, sys
import matplotlib
matplotlib.use("svg")
import matplotlib.pyplot as pyplot
told = json.load(sys.stdin)
figure, axes = pyplot.subplots(len(told["rows"]), 1, figsize=(9, 1.2 + 2.1 * len(told["rows"])), squeeze=False)
for axis, row in zip(axes[:, 0], told["rows"]):
    for i, (store, ratios) in enumerate(row["ratios"].items()):
        axis.scatter(range(len(ratios)), ratios, label=store, marker="osD^vP*X<>hpd"[i % 13], s=28)
    axis.axhline(1, color="black", lw=0.8)
    axis.set_yscale("log")
    axis.set_xticks(range(len(row["tasks"])), row["tasks"])
    axis.set_ylabel(row["pattern"])
    axis.margins(x=0.2)
    axis.grid(alpha=0.3)
axes[0, 0].set_title("time of rivals / time of ESDM (above 1: ESDM is faster)")
axes[0, 0].legend(fontsize=6, ncol=2, loc="center left", bbox_to_anchor=(1, 0.5))
figure.savefig(sys.argv[1], bbox_inches="tight")
"""
    rows = []
    for pattern, has in known.patterns.items():
        tasks = has["tasks"]
        ratios = {}
        for store in known.stores:
            own = known.ours(store)
            if store == own or (pattern, store) in results.failed or \
                    results.median(pattern, "write", own) is None or (pattern, own) in results.failed:
                continue
            ratios[store] = [results.median(pattern, t, store) / results.median(pattern, t, own)
                             for t in tasks]
        rows.append({"pattern": pattern, "tasks": tasks, "ratios": ratios})
    subprocess.run([options.python, "-c", code, options.plot], input=json.dumps({"rows": rows}),
                   text=True, check=True)


def main():
    options = arguments()
    if options.install:
        install(options)
        return 0
    known = Known(options)
    versions = {n: s["versions"] for n, s in known.stores.items()}
    results = Results(versions)
    for pattern in known.patterns:
        run_pattern(options, pattern, known, results)
        for plain in (True, False):
            names = [n for n, s in known.stores.items() if s["plain"] == plain]
            if names:
                print("\n".join(table(pattern, known, names, results)), flush=True)
        if options.json:
            options.json.write_text(json.dumps(results.json(), indent=1))
    for store, used in versions.items():
        print(f"{store}: " + ", ".join(f"{m} {v}".strip() for m, v in used.items()))
    if options.plot:
        plot(options, known, results)
    return 1 if results.failed else 0


if __name__ == "__main__":
    sys.exit(main())
