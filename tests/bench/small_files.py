#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""What small files and single calls cost, in instructions, beside the same program with plain files.

    tests/bench/small_files.py --build build [--rows create,open,…] [--json FILE] [--keep FOLDER]
    tests/bench/small_files.py --build build --turns 9 [--folder FOLDER] [--before BUILD]

Each row runs the same program twice under `valgrind --tool=callgrind`, with few and with many files
(or records), for containers and for plain files. The figure is the difference, divided by the
number of files between them: so the start and the end of the program do not count. Instructions of
user space alone; they do not depend on what else the machine does.
Valgrind counts each byte of `rep stosb` as an instruction, so glibc is told not to use it.
`--keep` keeps the profiles (`callgrind_annotate`).
With `--turns` it is processor time, user and kernel, of a program that computes for about 3 ms and writes
a file of 11 KiB, 300 times (`bench_days`): on files, in containers, and in those of another build, in turns.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

TUNABLES = "glibc.cpu.x86_rep_stosb_threshold=1000000000:glibc.cpu.x86_rep_movsb_threshold=1000000000"

# A classic file of 20 KiB: three coordinates and a field of one day.
WRITER = """
import sys
import netCDF4
import numpy
first, last, prefix = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
field = numpy.arange(48 * 96, dtype="f4").reshape(1, 48, 96)
for day in range(first, last):
    with netCDF4.Dataset(f"{prefix}{day:05}.nc", "w", format="NETCDF3_CLASSIC") as data:
        data.title = "a small file"
        data.Conventions = "CF-1.8"
        data.createDimension("time", None)
        data.createDimension("lat", 48)
        data.createDimension("lon", 96)
        for name, units, long_name, size in (
                ("lat", "degrees_north", "latitude", 48), ("lon", "degrees_east", "longitude", 96)):
            axis = data.createVariable(name, "f8", (name,))
            axis.units, axis.standard_name, axis.long_name = units, long_name, long_name
            axis[:] = numpy.linspace(0, 3.75 * (size - 1), size) - (88.125 if name == "lat" else 0)
        axis = data.createVariable("time", "f8", ("time",))
        axis.units, axis.calendar, axis.standard_name = "days since 2000-01-01", "standard", "time"
        tas = data.createVariable("tas", "f4", ("time", "lat", "lon"))
        tas.units, tas.long_name, tas.standard_name = "K", "air temperature", "air_temperature"
        axis[0] = day
        tas[0] = field[0] + day
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--rows", default=",".join(ROWS), help="the default is all")
    parser.add_argument("--python", default="/usr/bin/python3", help="one that imports netCDF4")
    parser.add_argument("--folder", default="/dev/shm", help="where files and the site lie")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--turns", type=int, help="processor time, so many times in turns")
    parser.add_argument("--before", type=pathlib.Path, help="another build, with --turns")
    options = parser.parse_args()
    options.build = options.build.resolve()
    unknown = [row for row in options.rows.split(",") if row not in ROWS]
    if unknown:
        parser.error(f"--rows: {', '.join(unknown)}: not one of {', '.join(ROWS)}")
    return options


class Bench:
    """A site and a folder of plain files, and programs that are counted on either."""

    def __init__(self, options):
        self.options = options
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="esdm-small.", dir=options.folder))
        self.profiles = options.keep or self.folder / "profiles"
        self.profiles.mkdir(parents=True, exist_ok=True)
        config = self.folder / "site.json"
        config.write_text(json.dumps({
            "site": {"name": "small"},
            "targets": [{"name": "disk", "plugin": "posix", "directory": "packs"}],
            "metadata": {"plugin": "sqlite", "directory": "metadata"}}))
        (self.folder / "files").mkdir()
        self.environment = {**os.environ, "ESDM_CONFIG": str(config), "GLIBC_TUNABLES": TUNABLES}
        self.run([options.build / "tools/esdm-mkfs"])

    def run(self, command):
        done = subprocess.run([str(word) for word in command], env=self.environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode:
            sys.exit(f"{' '.join(map(str, command))}: {done.stdout}")
        return done.stdout

    def prefix(self, containers, name):
        return f"esdm://{name}" if containers else str(self.folder / "files" / name)

    def of_esdm(self, containers):
        return [self.options.build / "tools/esdm-run"] if containers else []

    def count(self, containers, label, command):
        """Instructions of a program."""
        out = self.profiles / f"{label}.{'esdm' if containers else 'plain'}"
        for old in self.profiles.glob(f"{out.name}*"):
            old.unlink()
        told = self.run([*self.of_esdm(containers), "valgrind", "--tool=callgrind",
                         f"--callgrind-out-file={out}", *command])
        return int(re.search(r"Collected : (\d+)", told).group(1))


def calls(task, counted="files"):
    """A task of bench_netcdf: `few` and `many` files (of which it makes its own), or records."""
    def row(bench, containers, count):
        # Of each task alone: to create what another row has left is to replace it, which costs more.
        name = f"{task}-{counted}-{'few' if count < 200 else 'many'}"
        command = [bench.options.build / "tests/bench/bench_netcdf", task,
                   bench.prefix(containers, name), "classic" if containers else "cdf5", 2, count]
        if task == "create":  # each from nothing
            return bench.count(containers, f"{task}-{count}", command)
        if task in ("open", "read-back"):
            maker = "create" if task == "open" else "append"
            bench.run([*bench.of_esdm(containers), *command[:1], maker, *command[2:]])
        return bench.count(containers, f"{task}-{count}", command)
    return row


def write_python(bench, containers, count):
    script = bench.folder / "writer.py"
    script.write_text(WRITER)
    first = 0 if count < 100 else 1000
    return bench.count(containers, f"python-{count}",
                       [bench.options.python, script, first, first + count,
                        bench.prefix(containers, "day-")])


def mergetime(bench, containers, count):
    script = bench.folder / "writer.py"
    script.write_text(WRITER)
    prefix = bench.prefix(containers, "merged-")
    bench.run([*bench.of_esdm(containers), bench.options.python, script, 0, count, prefix])
    names = [f"{prefix}{day:05}.nc" for day in range(count)]
    return bench.count(containers, f"mergetime-{count}",
                       ["cdo", "-s", "-O", "mergetime", *names, bench.folder / "out.nc"])


def write_days(bench, containers, count):
    return bench.count(containers, f"days-{count}",
                       [bench.options.build / "tests/bench/bench_days", bench.prefix(containers, f"day{count}-"), count, 0])


def spend(command, environment):
    """Seconds of processors, of user and kernel."""
    pid = os.posix_spawnp(str(command[0]), [str(word) for word in command], environment)
    _, status, used = os.wait4(pid, 0)
    if status != 0:
        sys.exit(f"{command}: status {status}")
    return used.ru_utime, used.ru_stime


DAYS = 300


def take_turns(bench):
    """The same program on files and in containers of one or two builds, in turns; the first round does not count."""
    days = bench.options.build / "tests/bench/bench_days"
    builds = {"now": bench.options.build, "before": bench.options.before}
    sites = {"files": None}
    for name, build in builds.items():
        if build is not None:
            sites[name] = build.resolve()
    spent = {name: [] for name in sites}
    for turn in range(bench.options.turns + 1):
        for name, build in sites.items():
            prefix = bench.prefix(build is not None, f"{name}{turn}-")
            run = [build / "tools/esdm-run"] if build is not None else []
            spent[name].append(spend([*run, days, prefix, DAYS, 30], bench.environment))
    files = [sum(each) for each in spent["files"][1:]]
    for name, each in spent.items():
        sums = [sum(one) for one in each[1:]]
        ratios = [mine / plain for mine, plain in zip(sums, files)]
        user, kernel = (statistics.median(one[k] for one in each[1:]) for k in (0, 1))
        print(f"{name:8} user {user:.3f} s, kernel {kernel:.3f} s, together {statistics.median(sums):.3f} s; "
              f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})", flush=True)


# name: what one of them is, how many, and how it is counted
ROWS = {
    "create": ("a container, created, one variable written, closed", (100, 600), calls("create")),
    "open": ("a container, opened, closed", (100, 600), calls("open")),
    "append": ("a scalar, appended", (100, 20100), calls("append", "records")),
    "read-back": ("a scalar of those, read back", (100, 20100), calls("read-back", "records")),
    "days": ("a classic file of 11 KiB, written by a C program", (64, 256), write_days),
    "python": ("a file of 20 KiB, written by netCDF4-python", (2, 202), write_python),
    "mergetime": ("a file of 20 KiB, read by cdo mergetime", (2, 202), mergetime),
}


def main():
    options = arguments()
    bench = Bench(options)
    rows = []
    try:
        if options.turns:
            take_turns(bench)
            return
        for name in options.rows.split(","):
            what, (few, many), count = ROWS[name]
            each = {}
            for containers in (True, False):
                costs = [count(bench, containers, number) for number in (few, many)]
                each[containers] = (costs[1] - costs[0]) / (many - few)
            ratio = each[True] / each[False]
            rows.append({"row": name, "esdm": each[True], "plain": each[False], "ratio": ratio})
            print(f"{name:10} {what:52} {each[True]:12,.0f} {each[False]:12,.0f} {ratio:6.2f}", flush=True)
    finally:
        shutil.rmtree(bench.folder, ignore_errors=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
