#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Output of an ocean model on a mesh, as FESOM2 writes it, by stock netCDF-4 and through ESDM in one run.

    tests/bench/fesom/fesom.py --build build [--nodes 126858] [--steps 36] [--ranks 4] [--repeat 5]
                               [--folder /dev/shm] [--compute MILLISECONDS] [--priority] [--json FILE]

fesom.f90 is one program for all rows: 31 variables with deflate 1, gathered on rank 0, one
nf90_put_var for each variable and step; in one file, or in a file for each variable that is
synchronised after each record. ESDM gets it by esdm-run. Then all ranks write their own part of one
file, independently: stock netCDF-4 does that without deflate alone, by HDF5 in parallel. The fields
are real ones between whose values the nodes of a mesh lie ($ESDM_TEST_DATA). All bits are compared.
Times are those of output alone, of the slowest rank; medians, and ratios to stock netCDF-4.
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

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import esdmtest  # pylint: disable=wrong-import-position
import mpirun  # pylint: disable=wrong-import-position

HERE = pathlib.Path(__file__).resolve().parent
PARALLEL = pathlib.Path("/usr/lib/x86_64-linux-gnu/libnetcdf_mpi.so.19")
# name: kind of the program, through ESDM, on all ranks
ROWS = {
    "netCDF-4 deflate 1, one file": ("one", False),
    "ESDM deflate 1, one file": ("one", True),
    "netCDF-4 deflate 1, a file a variable": ("files", False),
    "ESDM deflate 1, a file a variable": ("files", True),
    "netCDF-4 plain, ranks independently": ("plain", False),
    "ESDM plain, ranks independently": ("plain", True),
    "ESDM deflate 1, ranks independently": ("ranks", True),
}
# The stock row that each is compared with.
STOCK = {"one": "netCDF-4 deflate 1, one file", "files": "netCDF-4 deflate 1, a file a variable",
         "ranks": "netCDF-4 deflate 1, one file", "plain": "netCDF-4 plain, ranks independently"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--nodes", type=int, default=126858)
    parser.add_argument("--steps", type=int, default=36)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("/dev/shm"))
    parser.add_argument("--compute", type=int, default=0, help="milliseconds between two steps")
    parser.add_argument("--rows", default="", help="those whose names contain this")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--priority", action="store_true", help="run with real-time priority")
    options = parser.parse_args()
    options.build = options.build.resolve()
    return options


def compile_program(folder):
    compiler = shutil.which("mpifort.openmpi")
    if not compiler or not pathlib.Path("/usr/include/netcdf.mod").exists():
        mpirun.missing("mpifort.openmpi or libnetcdff-dev is not installed")
    program = folder / "fesom"
    subprocess.run([compiler, "-O2", "-I/usr/include", str(HERE / "fesom.f90"), "-o", str(program),
                    "-lnetcdff"], cwd=folder, check=True)
    return program


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        os.environ["ESDM_BUILD"] = str(options.build)
        self.env = mpirun.environment(folder)
        self.program = compile_program(folder)
        self.input = folder / "input"
        self.call(1, ["make", esdmtest.DATA / "fields", options.nodes, options.steps, self.input])

    def call(self, ranks, args, esdm=False, preload=None):
        command = [str(self.program), *map(str, args)]
        if esdm:
            command = [str(self.options.build / "tools/esdm-run"), *command]
        if preload:
            command = ["env", f"LD_PRELOAD={preload}", *command]
        if self.options.priority:
            command = ["chrt", "--fifo", "10", *command]
        line = [mpirun.launcher("openmpi"), "--bind-to", "none", "-n", str(ranks), *command]
        done = subprocess.run(line, env=self.env, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=600, check=False)
        if done.returncode:
            sys.exit(f"{' '.join(line)}: {done.stdout[-3000:]}")
        return done.stdout

    def row(self, kind, esdm, check):
        """Seconds of output, bytes that were stored, and those of the values."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        self.env = mpirun.make_site(folder, "site", threads=None)
        path = "esdm://out.nc" if esdm else folder / "out.nc"
        preload = PARALLEL if kind in ("plain", "ranks") and not esdm else None
        told = self.call(self.options.ranks, ["write", self.input, path, kind, self.options.compute],
                         esdm, preload).split()
        files = (folder / "site/packs").rglob("*") if esdm else folder.glob("out*")
        stored = sum(f.stat().st_size for f in files if f.is_file())
        if check and self.call(1, ["check", self.input, path, kind], esdm).split() != ["equal"]:
            sys.exit(f"{kind}: other values")
        shutil.rmtree(folder)
        return float(told[1]), stored, int(told[5])


def main():
    options = arguments()
    seconds, stored, values = {}, {}, 0
    folder = pathlib.Path(tempfile.mkdtemp(prefix="esdm-fesom.", dir=options.folder))
    try:
        bench = Bench(options, folder)
        rows = {name: row for name, row in ROWS.items() if options.rows in name}
        for repetition in range(options.repeat):
            for name, (kind, esdm) in rows.items():
                took, size, values = bench.row(kind, esdm, repetition == 0)
                seconds.setdefault(name, []).append(took)
                stored[name] = size
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{'':40}{'seconds':>9}{'MB/s':>8}{'stored MB':>11}{'ratio':>7}{'times as fast as stock':>24}")
    results = []
    for name, (kind, _) in rows.items():
        took = statistics.median(seconds[name])
        stock = seconds.get(STOCK[kind])
        faster = statistics.median(stock) / took if stock else None
        print(f"{name:40}{took:9.3f}{values / took / 1e6:8.0f}{stored[name] / 1e6:11.1f}"
              f"{values / stored[name]:7.2f}" + (f"{faster:24.1f}" if faster else ""))
        results.append({"row": name, "seconds": seconds[name], "stored_bytes": stored[name],
                        "value_bytes": values, "times_stock": faster})
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
