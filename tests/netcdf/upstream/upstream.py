#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Runs the test programs of netCDF-C and netCDF-Fortran, unmodified, on stock netCDF and on ESDM.

    upstream.py --suite SUITE --source FOLDER --work FOLDER --esdm-run PROGRAM [--size SIZE]
                [PATTERN...]

The programs are compiled from their source and linked with the installed libraries. Each
runs twice: in a folder of plain files, and in one that is routed to ESDM, where every NetCDF file
that it creates becomes a container. What passes with stock must pass with ESDM; what cannot is in
exceptions.txt with the reason, and what is listed there but passes is reported too. Scripts that only
stop at such a thing run again without it: edits.txt.

Exit status: 0 all as expected, 1 differences, 77 nothing could be run.
"""
import argparse
import concurrent.futures
import copy
import fnmatch
import os
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDERS = ("nc_test", "nc_test4", "nctest", "unit_test", "ncgen3", "ncgen", "ncdump", "examples/C")
COPIED = (".nc", ".cdl", ".sh", ".h5", ".ncml", ".bin", ".txt", ".1")
HDF5 = "/usr/include/hdf5/serial"
TIMEOUT_S = {"default": 60, "long": 300}


class Test:
    """One line of c.txt or fortran.txt: FOLDER NAME [OPTION...] [-- SOURCE...]

    An option arg=TEXT is an argument; @ in it stands for esdm://, on stock netCDF for the folder."""

    def __init__(self, line):
        words = line.split()
        sources = []
        if "--" in words:
            sources = words[words.index("--") + 1:]
            words = words[:words.index("--")]
        self.folder, self.name = words[:2]
        self.is_script = self.name.endswith(".sh")
        self.sources = sources or [self.name + ".c"]
        self.options = set(w for w in words[2:] if "=" not in w)
        self.arguments = [w[4:] for w in words[2:] if w.startswith("arg=")]

    @property
    def is_large(self):
        """Writes gigabytes."""
        return "large" in self.options

    def edited(self):
        """The script that run_edited() makes of it."""
        other = copy.copy(self)
        other.name = "edited-" + self.name
        return other

    @property
    def title(self):
        return f"{self.folder}/{self.name}" + "".join(" " + a for a in self.arguments)


def read_lines(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        for line in file:
            line = line.split("#")[0].strip()
            if line:
                yield line


def read_tests(suite):
    return [Test(line) for line in read_lines(suite + ".txt")]


def read_table(name):
    """What a file says about tests: title -> text. exceptions.txt, edits.txt."""
    found = {}
    for line in read_lines(name):
        title, _, reason = line.partition(":")
        found[title.strip()] = reason.strip()
    return found


def call(command, log, timeout=None, **more):
    """Runs a command with its output in a file; the exit status, or None after a timeout."""
    with open(log, "wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL, start_new_session=True, **more)
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # a script's programs as well
            process.wait()
            return None


class Upstream:
    """netCDF-C's."""

    folders = FOLDERS

    def __init__(self, options):
        self.source = os.path.abspath(options.source)
        self.work = os.path.abspath(options.work)
        self.esdm_run = os.path.abspath(options.esdm_run)
        self.config = os.path.join(self.work, "config")
        self.bin = os.path.join(self.work, "bin")
        self.timeout_s = TIMEOUT_S["long" if options.size == "long" else "default"]

    # ---- building -------------------------------------------------------------------------------

    def configure(self):
        """config.h and test_common.sh, as netCDF-C's own build makes them."""
        done = os.path.join(self.config, "test_common.sh")
        if os.path.exists(done):
            return True
        os.makedirs(self.work, exist_ok=True)
        log = os.path.join(self.work, "configure.log")
        command = ["cmake", "-S", self.source, "-B", self.config, "-DENABLE_TESTS=ON",
                   "-DENABLE_PLUGINS=OFF"]
        return call(command, log) == 0 and os.path.exists(done)

    def source_file(self, home, name, place):
        """The path of a source; configuring takes those away that m4 makes."""
        path = os.path.join(home, name)
        if os.path.exists(path):
            return path
        made = os.path.join(place, name)
        with open(made, "wb") as output:
            subprocess.run(["m4", os.path.splitext(path)[0] + ".m4"], stdout=output, check=True)
        return made

    def build_one(self, folder, name, sources):
        """Compiles a program; None, or the log of the failure."""
        program = os.path.join(self.bin, folder, name)
        if os.path.exists(program):
            return None
        os.makedirs(os.path.dirname(program), exist_ok=True)
        home = os.path.join(self.source, folder)
        includes = [self.config, os.path.join(self.config, "include"), home]
        includes += [os.path.join(self.source, f)
                     for f in ("include", "libsrc", "libdispatch", "ncdump", "oc2", "libdap2")]
        includes += [HDF5]
        log = program + ".log"
        command = ["cc", "-O1", "-w", "-DHAVE_CONFIG_H", f"-DTOPSRCDIR={self.source}",
                   f"-DTOPBINDIR={self.config}", "-D_GNU_SOURCE"]
        command += ["-I" + i for i in includes]
        command += [self.source_file(home, s, os.path.dirname(program)) for s in sources]
        command += ["-o", program]
        command += ["-L/usr/lib/x86_64-linux-gnu/hdf5/serial", "-lnetcdf", "-lhdf5_hl", "-lhdf5",
                    "-lm", "-lpthread"]
        return None if call(command, log) == 0 else log

    def build(self, tests):
        """Compiles everything; the tests whose programs could not be built."""
        jobs = {}
        for test in tests:
            if not test.is_script:
                jobs[(test.folder, test.name)] = test.sources
        if any(t.is_script for t in tests):
            for line in read_lines("helpers.txt"):
                words = line.split()
                jobs[(words[0], words[1])] = words[2:] or [words[1] + ".c"]
        failed = {}
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            futures = {pool.submit(self.build_one, *key, sources): key
                       for key, sources in jobs.items()}
            for future in concurrent.futures.as_completed(futures):
                if future.result() is not None:
                    failed["/".join(futures[future])] = future.result()
        return failed

    def make_tree(self, name):
        """A build tree as the scripts expect it, with the installed tools in place of built ones."""
        tree = os.path.join(self.work, name)
        shutil.rmtree(tree, ignore_errors=True)
        for folder in self.folders:
            home = os.path.join(tree, folder)
            os.makedirs(home)
            for entry in os.listdir(os.path.join(self.source, folder)):
                path = os.path.join(self.source, folder, entry)
                if entry.endswith(COPIED) or entry.startswith("ref_"):
                    shutil.copy(path, home)
                elif folder == "ncdump" and entry in ("cdl", "expected"):
                    shutil.copytree(path, os.path.join(home, entry))
            built = os.path.join(self.bin, folder)
            for entry in os.listdir(built) if os.path.isdir(built) else ():
                if not entry.endswith((".log", ".files")):
                    os.link(os.path.join(built, entry), os.path.join(home, entry))
        self.complete_tree(tree)
        return tree

    def complete_tree(self, tree):
        """What scripts need besides."""
        for folder, tool in (("ncdump", "ncdump"), ("ncdump", "nccopy"), ("ncgen", "ncgen"),
                             ("ncgen3", "ncgen3")):
            os.symlink(shutil.which(tool), os.path.join(tree, folder, tool))
        shutil.copy(os.path.join(self.config, "config.h"), tree)  # scripts look into it
        with open(os.path.join(self.config, "test_common.sh"), encoding="utf-8") as file:
            text = file.read().replace(f"TOPBUILDDIR='{self.config}'", f"TOPBUILDDIR='{tree}'")
        with open(os.path.join(tree, "test_common.sh"), "w", encoding="utf-8") as file:
            file.write(text)

    # ---- running --------------------------------------------------------------------------------

    def run(self, tree, test, routed):
        """None when it passes, else what happened."""
        home = os.path.join(tree, test.folder)
        command = ["bash", test.name] if test.is_script else ["./" + test.name]
        command += [a.replace("@", "esdm://upstream/" if routed else "./") for a in test.arguments]
        env = {k: v for k, v in os.environ.items() if not k.startswith("ESDM_") or k == "ESDM_DEBUG"}
        env["srcdir"] = os.path.join(self.source, test.folder)
        env["LC_ALL"] = "C.UTF-8"
        env["HOME"] = tree
        site = os.path.join(self.work, "site" + ("-large" if test.is_large else ""))
        before = set(os.listdir(home))
        if routed:
            env["XDG_DATA_HOME"] = env["XDG_CONFIG_HOME"] = site
            env["ESDM_NC_ROUTE"] = tree
            command = [self.esdm_run, "-q"] + command
        log = os.path.join(home, test.name + ".log")
        status = call(command, log, cwd=home, env=env, timeout=self.timeout_s)
        if test.is_large:  # nothing else needs what it wrote
            for name in set(os.listdir(home)) - before - {test.name + ".log"}:
                os.unlink(os.path.join(home, name))
            shutil.rmtree(site, ignore_errors=True)
        if status == 0:
            return None
        return f"no end after {self.timeout_s} s" if status is None else f"exit status {status}"


    def run_edited(self, tree, test, edit):
        """A script on ESDM without what cannot pass; as run()."""
        path = os.path.join(self.source, test.folder, test.name)
        script = os.path.join(tree, test.folder, test.edited().name)
        with open(script, "wb") as output:
            subprocess.run(["sed", edit, path], stdout=output, check=True)
        return self.run(tree, test.edited(), True)


class Fortran(Upstream):
    """netCDF-Fortran's."""

    folders = ("nf_test", "nf_test4", "nf03_test", "nf03_test4")
    # What netCDF-Fortran's configuration finds out here; the installed netCDF-C was built with
    # RELAX_COORD_BOUND.
    defines = {"NF_INT1_T": "byte", "NCBYTE_T": "byte", "NF_INT2_T": "integer*2",
               "NCSHORT_T": "integer*2", "NF_INT8_T": "integer*8", "NF_RELAX_COORD_BOUND": 1,
               "NF_INT1_IS_C_SIGNED_CHAR": 1, "NF_INT2_IS_C_SHORT": 1, "NF_INT_IS_C_INT": 1,
               "NF_INT8_IS_C_LONG": 1, "NF_REAL_IS_C_FLOAT": 1, "NF_DOUBLEPRECISION_IS_C_DOUBLE": 1}

    def configure(self):
        os.makedirs(self.work, exist_ok=True)
        return True

    def source_file(self, home, name, place):
        """The path of a source; those of the interfaces of Fortran 2003 are made."""
        for folder in (home, os.path.join(self.source, "nf_test")):
            path = os.path.join(folder, name)
            if os.path.exists(path):
                return path
        origin = name.replace("f03tst_", "ftst_")
        with open(os.path.join(home, origin), encoding="utf-8") as file:
            text = file.read()
        text = text.replace("implicit none", "USE netcdf4_f03")
        text = text.replace("include 'netcdf.inc'", "implicit none")
        text = text.replace(origin[:-2] + ".nc", name[:-2] + ".nc")
        made = os.path.join(place, name)
        with open(made, "w", encoding="utf-8") as file:
            file.write(text)
        return made

    def build_one(self, folder, name, sources):
        program = os.path.join(self.bin, folder, name)
        if os.path.exists(program):
            return None
        place = program + ".files"  # modules of programs have the same names
        os.makedirs(place, exist_ok=True)
        home = os.path.join(self.source, folder)
        flags = subprocess.run(["nf-config", "--fflags"], check=True, capture_output=True, text=True)
        command = ["gfortran", "-w", "-fallow-argument-mismatch", "-J", place]
        command += [f"-D{key}={value}" for key, value in self.defines.items()]
        command += flags.stdout.split() + ["-I" + os.path.join(self.source, "nf_test")]
        command += [self.source_file(home, s, place) for s in sources]
        log = program + ".log"
        return None if call(command + ["-o", program, "-lnetcdff", "-lnetcdf"], log) == 0 else log

    def complete_tree(self, tree):
        shutil.copy(os.path.join(self.source, "nf_test", "ref_fills.nc"),
                    os.path.join(tree, "nf_test", "fills.nc"))


SUITES = {"c": Upstream, "fortran": Fortran}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--suite", default="c", choices=SUITES)
    parser.add_argument("--source", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--esdm-run", required=True)
    parser.add_argument("--size", default="default", choices=("quick", "default", "long"))
    parser.add_argument("--only", choices=("stock", "esdm"))
    parser.add_argument("--large", action="store_true", help="also what writes gigabytes")
    parser.add_argument("--keep", action="store_true", help="run in the trees that are there")
    parser.add_argument("patterns", nargs="*")
    options = parser.parse_args()
    upstream = SUITES[options.suite](options)
    if not upstream.configure():
        print(f"skipped: netCDF-C cannot be configured: {upstream.work}/configure.log")
        return 77
    tests = read_tests(options.suite)
    if options.patterns:
        tests = [t for t in tests if any(fnmatch.fnmatch(t.title, p) for p in options.patterns)]
    elif options.size == "long":
        tests = [t for t in tests if options.large or not t.is_large]
    else:
        tests = [t for t in tests if "fast" in t.options]
    unbuilt = upstream.build(tests)
    for title, log in sorted(unbuilt.items()):
        print(f"NOT BUILT  {title}: {log}")
    exceptions, edits = read_table("exceptions.txt"), read_table("edits.txt")
    trees = [os.path.join(upstream.work, n) if options.keep else upstream.make_tree(n)
             for n in ("stock", "esdm")]
    if not options.keep:
        shutil.rmtree(os.path.join(upstream.work, "site"), ignore_errors=True)
    counts = {}
    for test in tests:
        if not test.is_script and test.title.split()[0] in unbuilt:
            continue
        begin = time.monotonic()
        stock = None if options.only == "esdm" else upstream.run(trees[0], test, False)
        middle = time.monotonic()
        if stock is not None:
            verdict, detail = "STOCK FAILS", stock
        elif options.only == "stock":
            verdict, detail = "stock ok", ""
        else:
            esdm = upstream.run(trees[1], test, True)
            reason = exceptions.get(test.title)
            if esdm is None:
                verdict = "ok" if reason is None else "UNEXPECTED PASS"
                detail = reason or ""
            else:
                verdict = "FAILED" if reason is None else "differs"
                detail = esdm if reason is None else reason
            if verdict == "differs" and test.title in edits:
                rest = upstream.run_edited(trees[1], test, edits[test.title])
                verdict = "rest ok" if rest is None else "REST FAILED"
        end = time.monotonic()
        counts[verdict] = counts.get(verdict, 0) + 1
        print(f"{verdict:15} {middle - begin:6.1f} s {end - middle:6.1f} s  {test.title}"
              + (f": {detail}" if detail else ""), flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    return 1 if {"FAILED", "REST FAILED", "UNEXPECTED PASS"} & set(counts) or unbuilt else 0


if __name__ == "__main__":
    sys.exit(main())
