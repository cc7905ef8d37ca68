#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Runs the parallel test programs of netCDF-C and netCDF-Fortran, unmodified, on stock netCDF and on
ESDM.

    parallel.py [--source FOLDER] [--fortran FOLDER] --work FOLDER --esdm-run PROGRAM [PATTERN...]

As upstream.py, but over OpenMPI: in a folder of plain files with the parallel build of libnetcdf, and
in one that is routed to ESDM. parallel.txt lists the programs. Fortran programs run with Debian's
netCDF-Fortran, which is linked to the serial libnetcdf; stock netCDF has the parallel one preloaded.
"""
import argparse
import concurrent.futures
import fnmatch
import os
import shutil
import sys
import time

import mpirun
from upstream import call, read_lines

LIBRARIES = "/usr/lib/x86_64-linux-gnu"
TIMEOUT_S = 120

# What netCDF-C's own configuration finds out for a parallel build.
CONFIG = """\
#include <stdint.h>
#define HAVE_UNISTD_H 1
#define HAVE_STDINT_H 1
#define HAVE_SYS_TYPES_H 1
#define HAVE_SYS_TIME_H 1
#define HAVE_STRDUP 1
#define HAVE_MPI_COMM_F2C 1
#define USE_NETCDF4 1
#define USE_HDF5 1
#define USE_PARALLEL 1
#define USE_PARALLEL4 1
#define HDF5_SUPPORTS_PAR_FILTERS 1
#define TEMP_LARGE "."
#define CHUNK_CACHE_SIZE 16777216
#define CHUNK_CACHE_NELEMS 4133
#define CHUNK_CACHE_PREEMPTION 0.75
#define DEFAULT_CHUNK_SIZE 4194304
#define DEFAULT_CHUNKS_IN_CACHE 10
#define NC_DISPATCH_VERSION 5
#define ENABLE_CDF5 1
#define PACKAGE_VERSION "4.9.0"
"""


class Test:
    """One line of parallel.txt, on one number of ranks."""

    def __init__(self, words, ranks, reason):
        self.library, self.folder, self.source = words[:3]
        self.ranks = ranks
        self.options = set(w for w in words[4:] if "=" not in w)
        self.arguments = [w[4:] for w in words[4:] if w.startswith("arg=")]
        self.name = os.path.splitext(self.source)[0]
        self.reason = reason

    @property
    def title(self):
        return f"{self.library} {self.folder}/{self.name} {self.ranks}"


def read_tests():
    for line in read_lines("parallel.txt"):
        text, _, reason = line.partition(" : ")
        words = text.split()
        for ranks in words[3].split(","):
            yield Test(words, int(ranks), reason.strip())


class Runner:
    def __init__(self, options):
        self.fortran = os.path.abspath(options.fortran)
        self.source = os.path.abspath(options.source)
        self.work = os.path.abspath(options.work)
        self.esdm_run = os.path.abspath(options.esdm_run)
        self.bin = os.path.join(self.work, "bin")
        self.env = {k: v for k, v in mpirun.environment(self.work).items()
                    if not k.startswith("ESDM_") or k == "ESDM_DEBUG"}
        shutil.rmtree(self.work, ignore_errors=True)
        for name in ("bin", "config", "stock", "esdm"):
            os.makedirs(os.path.join(self.work, name))
        with open(os.path.join(self.work, "config/config.h"), "w", encoding="ascii") as file:
            file.write(CONFIG + f'#define TOPSRCDIR "{self.source}"\n')

    def compiler(self, test):
        if test.library == "fortran":
            return ["mpifort.openmpi", "-O1", "-w", "-fallow-argument-mismatch", "-I/usr/include",
                    os.path.join(self.fortran, test.folder, test.source)], ["-lnetcdff"]
        installed = f"{LIBRARIES}/netcdf/{test.library}"
        includes = [f"{installed}/include", f"{self.work}/config", f"{self.source}/{test.folder}",
                    f"{self.source}/include", f"{self.source}/nc_test", "/usr/include/hdf5/openmpi"]
        return (["mpicc.openmpi", "-O1", "-w", "-DHAVE_CONFIG_H"] + ["-I" + i for i in includes]
                + [os.path.join(self.source, test.folder, test.source)],
                [f"-L{installed}", "-lnetcdf", f"-L{LIBRARIES}/hdf5/openmpi", "-lhdf5_hl", "-lhdf5",
                 "-lm"] + (["-lpnetcdf"] if test.library == "pnetcdf" else []))

    def build(self, test):
        """None, or the log of a failure."""
        program = os.path.join(self.bin, test.name)
        front, back = self.compiler(test)
        if call(front + ["-o", program] + back, program + ".log", cwd=self.bin) == 0:
            return None
        return program + ".log"

    def run(self, test, routed):
        """None when it passes, else what happened."""
        home = os.path.join(self.work, "esdm" if routed else "stock")
        command = [os.path.join(self.bin, test.name)] + test.arguments
        env = dict(self.env)
        if routed:
            env["XDG_DATA_HOME"] = env["XDG_CONFIG_HOME"] = os.path.join(self.work, "site")
            env["ESDM_NC_ROUTE"] = home
            command = [self.esdm_run, "-q"] + command
        elif test.library == "fortran":
            command = ["env", f"LD_PRELOAD={LIBRARIES}/libnetcdf_mpi.so.19"] + command
        log = os.path.join(home, f"{test.name}.{test.ranks}.log")
        status = call([mpirun.launcher("openmpi"), "-n", str(test.ranks)] + command, log, cwd=home,
                      env=env, timeout=TIMEOUT_S)
        if status == 0:
            return None
        return f"no end after {TIMEOUT_S} s" if status is None else f"exit status {status}: {log}"


def verdict_of(runner, test):
    """(verdict, detail)"""
    stock = runner.run(test, False)
    if stock is not None:
        return "STOCK FAILS", stock
    esdm = runner.run(test, True)
    if esdm is None:
        return ("UNEXPECTED PASS", test.reason) if test.reason else ("ok", "")
    return ("differs", test.reason) if test.reason else ("FAILED", esdm)


def select(options):
    tests = [t for t in read_tests()
             if (options.fortran if t.library == "fortran" else options.source)]
    if options.patterns:
        return [t for t in tests if any(fnmatch.fnmatch(t.title, p) for p in options.patterns)]
    if options.size == "long":
        return [t for t in tests if "large" not in t.options]
    return [t for t in tests if "fast" in t.options]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--source", default="", help="of netCDF-C")
    parser.add_argument("--fortran", default="", help="source of netCDF-Fortran")
    parser.add_argument("--work", required=True)
    parser.add_argument("--esdm-run", required=True)
    parser.add_argument("--size", default="default", choices=("quick", "default", "long"))
    parser.add_argument("patterns", nargs="*")
    options = parser.parse_args()
    mpirun.launcher("openmpi")
    runner = Runner(options)
    tests = select(options)
    sources = {(t.library, t.source): t for t in tests}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        logs = dict(zip(sources, pool.map(runner.build, sources.values())))
    counts = {}
    for test in tests:
        begin = time.monotonic()
        log = logs[(test.library, test.source)]
        verdict, detail = ("NOT BUILT", log) if log else verdict_of(runner, test)
        counts[verdict] = counts.get(verdict, 0) + 1
        print(f"{verdict:15} {time.monotonic() - begin:6.1f} s  {test.title}"
              + (f": {detail}" if detail else ""), flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    return 1 if {"FAILED", "UNEXPECTED PASS", "NOT BUILT"} & set(counts) else 0


if __name__ == "__main__":
    sys.exit(main())
