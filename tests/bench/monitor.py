#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""What observing costs programs: instructions, system calls, written bytes, and time in pairs.

    monitor.py --build BUILD [--pairs 15] [--steps 120] [--counts-only] [--spread] [--programs read,cdo] [--data FOLDER]

A model-like writer and its reader (bench_model) and cdo on a real field, each on a container without observers (ESDM_MONITOR=off),
with the site's runs, "stats", "trace" and both; and on a plain file by itself and under esdm-run --report, whose own report, made when the
program has ended, is not counted as the program's. Instructions are callgrind's, of all threads, of a shorter run; system calls are counted
by strace. Times are of processors (user and system), of pairs that take turns; the median of ratios has the middle half of them behind it.
--spread: times alone, in rounds of "off", "off" again, "stats" and "trace", whose order turns: what equal runs differ by beside what observing costs.
"""

import argparse
import json
import os
import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

MODES = {"off": "off", "runs": None, "stats": "stats:{f}/s.json", "trace": "trace:{f}/t.jsonl",
         "stats and trace": "stats:{f}/s.json,trace:{f}/t.jsonl"}


class Bench:
    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.run_tool = options.build / "tools/esdm-run"
        self.plain = {k: v for k, v in os.environ.items() if not k.startswith("ESDM_")}
        for name, monitor in (("runs", {"runs": str(folder / "runs")}), ("other", {})):
            site = folder / f"{name}.json"
            site.write_text(json.dumps({
                "site": {"name": "bench"}, "engine": {"earlier_runs": "off"},
                "targets": [{"name": "t", "plugin": "posix", "directory": str(folder / "packs")}],
                "metadata": {"plugin": "sqlite", "directory": str(folder / "meta")}, "monitor": monitor}))
            if name == "runs":
                subprocess.run([options.build / "tools/esdm-mkfs", site], env=self.plain, check=True, stdout=subprocess.DEVNULL)

    def environment(self, mode):
        env = dict(self.plain, XDG_CACHE_HOME=str(self.folder / "cache"), ESDM_LIBRARY_DIR=str(self.options.build),
                   ESDM_CONFIG=str(self.folder / ("runs.json" if mode == "runs" else "other.json")))
        monitor = MODES.get(mode)
        if monitor is not None:
            env["ESDM_MONITOR"] = monitor.format(f=self.folder)
        return env

    def command(self, name, mode, steps):
        """@return its words; `mode` "plain" and "report" are of a file."""
        model = str(self.options.build / "tests/bench/bench_model")
        files = mode in ("plain", "report")
        path = str(self.folder / "{}.nc") if files else "esdm://{}.nc"
        if name == "cdo":
            words = ["cdo", "-s", "-O", "timmean", path.format("field"), path.format("mean")]
        else:
            words = [model, name, path.format(f"model{steps}"), str(steps)]
        return words

    def wrapped(self, words, mode, before=()):
        if mode == "plain":
            return [*before, *words]
        # What it says of a run afterwards is no part of the program.
        option = ["--records", str(self.folder / "records")] if mode == "report" else []
        return [self.run_tool, "-q", *option, *before, *words]

    def clean(self):
        for name in ("records",):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for name in ("s.json", "t.jsonl"):
            (self.folder / name).unlink(missing_ok=True)

    def do(self, name, mode, steps, before=()):
        self.clean()
        env = self.environment(mode)
        if mode == "report":
            env["ESDM_MONITOR"] = "off"
        words = self.wrapped(self.command(name, mode, steps), mode, before)
        start = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(words, env=env, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode != 0:
            sys.exit(f"{words}: {done.stderr[-2000:]}")
        return end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime, done

    def instructions(self, name, mode, steps):
        out = self.folder / "callgrind"
        _, done = self.do(name, mode, steps, ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}.%p"])
        found = re.findall(r"Collected : (\d+)", done.stderr)
        for file in self.folder.glob("callgrind*"):
            file.unlink()
        return sum(map(int, found))

    def calls(self, name, mode, steps):
        out = self.folder / "strace"
        self.do(name, mode, steps, ["strace", "-f", "-qq", "-c", "-o", out])
        line = [text.split() for text in out.read_text().splitlines() if text.endswith("total")]
        return int(line[0][3])

    def written(self):
        """Bytes of records."""
        return sum(f.stat().st_size for f in self.folder.rglob("*") if f.is_file() and
                   (f.name in ("s.json", "t.jsonl") or "records" in f.parts))


def middle(ratios):
    low, _, high = statistics.quantiles(ratios, n=4)
    return f"{statistics.median(ratios):.3f} ({low:.3f} to {high:.3f})"


def spread(bench, name, options):
    """Rows of ratios to the first "off" of each round."""
    modes = ["off", "off again", "stats", "trace"]
    times = {mode: [] for mode in modes}
    for turn in range(options.pairs):
        first = turn % len(modes)
        for mode in (modes[first:] + modes[:first])[::1 if turn // len(modes) % 2 else -1]:
            times[mode].append(bench.do(name, mode.split()[0], options.steps)[0])
    print(f"| {name} | off | {statistics.median(times['off']):.3f} s |")
    for mode in modes[1:]:
        ratios = [a / b for a, b in zip(times[mode], times["off"])]
        print(f"| {name} | {mode} | {middle(ratios)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=lambda text: pathlib.Path(text).resolve(), required=True)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--short", type=int, default=36, help="steps under callgrind")
    parser.add_argument("--counts-only", action="store_true")
    parser.add_argument("--spread", action="store_true")
    parser.add_argument("--data", type=pathlib.Path, default=os.environ.get("ESDM_TEST_DATA", "/nowhere"))
    parser.add_argument("--programs", type=lambda text: text.split(","), default=["write", "read", "cdo"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        bench = Bench(options, pathlib.Path(folder))
        names = [name for name in ("write", "read") if name in options.programs]
        field = pathlib.Path(options.data) / "fields/pop_SST.nc"
        if field.exists() and shutil.which("cdo") and "cdo" in options.programs:
            names.append("cdo")
            shutil.copy(field, bench.folder / "field.nc")
            subprocess.run([bench.run_tool, "-q", "nccopy", bench.folder / "field.nc", "esdm://field.nc"],
                           env=bench.environment("off"), check=True)
        for steps in {options.steps, options.short}:
            for mode in ("off", "plain"):
                bench.do("write", mode, steps)
        if options.spread:
            for name in names:
                spread(bench, name, options)
            return
        print("| program | observed | instructions | system calls | records | time |\n| --- | --- | --- | --- | --- | --- |")
        for name in names:
            for base, modes in (("off", [m for m in MODES if m != "off"]), ("plain", ["report"])):
                before = bench.instructions(name, base, options.short), bench.calls(name, base, options.steps)
                print(f"| {name} | {base} | {before[0] / 1e6:.0f} million | {before[1]} | | |")
                for mode in modes:
                    after = bench.instructions(name, mode, options.short), bench.calls(name, mode, options.steps)
                    size = bench.written()
                    ratios = []
                    for pair in range(0 if options.counts_only else options.pairs):
                        both = {m: bench.do(name, m, options.steps)[0] for m in ((base, mode) if pair % 2 else (mode, base))}
                        ratios.append(both[mode] / both[base])
                    print(f"| {name} | {mode} | {100 * (after[0] / before[0] - 1):+.2f} % | {after[1] - before[1]:+d} "
                          f"| {size / 1e3:.0f} kB | {middle(ratios) if ratios else ''} |", flush=True)


main()
