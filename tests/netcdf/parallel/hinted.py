#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-run --mpi-hints: files by MPI get the hints that earlier runs speak for, and the same bytes.

hinted.py: MPI=PROGRAM …, mpi_hinted.c as built with openmpi, mpich."""

import json
import pathlib
import subprocess
import sys
import tempfile

import esdmtest
import mpirun
from esdmtest import by_size, expect

PROGRAMS = dict(argument.split("=", 1) for argument in sys.argv[1:])
RANKS = 4
WANTED = RANKS * 32 * 64 * 512  # bytes that the ranks read
TOOL = esdmtest.tool("esdm-run")


def started(mpi, env, *line):
    done = subprocess.run([mpirun.launcher(mpi), *map(str, line)], env=env, timeout=300, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    expect(done.returncode == 0, f"{line}: {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return done


class Program:
    """One MPI's program with files in a folder; `plain` is what it does without ESDM."""

    def __init__(self, mpi, folder, *arguments):
        self.mpi, self.cache = mpi, folder / "cache"
        self.input, self.output = folder / "in", folder / "out"
        self.env = mpirun.environment(folder, XDG_CACHE_HOME=str(self.cache))
        self.line = [PROGRAMS[mpi], self.input, self.output, *arguments]
        self.plain = started(mpi, self.env, "-n", RANKS, *self.line).stdout, self.output.read_bytes()

    def run(self, *arguments, options=(), before=(), **env):
        """The hints that files were given, by end of name; bytes read of the input; sentences."""
        self.output.unlink()
        done = started(self.mpi, {**self.env, **env}, "-n", RANKS, *before, TOOL, "-q", "--mpi-hints", "--report", "--json",
                       *options, *self.line, *arguments)
        expect((done.stdout, self.output.read_bytes()) == self.plain, f"other bytes: {done.stdout}")
        report = json.loads(done.stderr[done.stderr.index("{\n"):])
        files = {pathlib.Path(f["file"]).name: f for f in report["mpi_files"]}
        read = sum(f["read"]["bytes"] for f in report["files"] if f["file"] == str(self.input))
        return ({name: f["hints_chosen"] for name, f in files.items()}, read,
                {name: f.get("earlier_runs", {}).get("hints", "") for name, f in files.items()}, files)

    def records(self):
        return sorted(self.cache.rglob("*.hints"))


NOTHING = {"in": {}, "out": {}}
FIRST = {"mpich": ("in", {"romio_ds_read": "disable"}), "openmpi": ("out", {"cb_nodes": "2"})}


def learns(mpi, folder):
    program = Program(mpi, folder)
    name, hint = FIRST[mpi]
    given, much, texts, _ = program.run(ESDM_EARLIER_RUNS="off")
    expect(given == NOTHING and not program.records() and texts == {"in": "", "out": ""}, f"off: {given} {texts}")
    for _ in range(2):
        given, much, texts, _ = program.run()
        expect(given == NOTHING, f"before anything is known: {given}")
    expect("the next run tries hint " + "=".join(*hint.items()) in texts[name], str(texts))
    if mpi == "mpich":
        expect(much > 20 * WANTED, f"ROMIO reads what lies between: {much}")
    # Those of the user and of the program come first.
    given, _, _, _ = program.run(ROMIO_HINTS="/dev/null")
    expect(given == NOTHING, f"the user has hints: {given}")
    given, read, texts, files = program.run("stated")
    expect("romio_ds_read" not in given["in"], f"the program has a hint: {given}")
    expect(files["in"]["hints_asked"] == {"romio_ds_read": "enable"}, str(files["in"]))
    if mpi == "mpich":
        expect(read > 20 * WANTED, f"as the program wants it: {read}")
    if mpi == "mpich":  # of that file it was the first run with a hint for the other one
        given, read, texts, files = program.run()
    expect(given[name] == hint, f"{given} {texts}")
    expect("tried" in texts[name] and "gain_s" in files[name]["earlier_runs"], str(files[name]))
    if mpi == "mpich":
        expect(read == WANTED and files["in"]["hints_used"]["romio_ds_read"] == "disable", f"{read} {files['in']}")
    # Whatever comes of it, the bytes are the same, and a slower hint is not given for long.
    for _ in range(by_size(2, 2, 12)):
        given, read, texts, _ = program.run()
    print(f"{mpi}: {texts}", flush=True)


def large_pieces(mpi, folder):
    """Collective calls that are large are not handed round any more, where that takes less time: with MPICH it
    does, some 20 times, with Open MPI there is no such hint."""
    program = Program(mpi, folder, "large")
    for _ in range(2):
        given, _, texts, files = program.run()
        expect(given == {"out": {}}, str(given))
    plain_s = files["out"]["read"]["seconds"] + files["out"]["write"]["seconds"]
    expect(("romio_cb_write=disable" in texts["out"]) == (mpi == "mpich"), str(texts))
    for _ in range(3 if mpi == "mpich" else 0):
        given, _, texts, files = program.run()
        expect(given == {"out": {"romio_cb_write": "disable", "romio_cb_read": "disable"}}, f"not kept: {given} {texts}")
    hinted_s = files["out"]["read"]["seconds"] + files["out"]["write"]["seconds"]
    print(f"{mpi}: {plain_s:.3f} s, {hinted_s:.3f} s with {given}: {texts}", flush=True)


# One rank has no record of earlier runs.
LAST_WITHOUT = ["/bin/sh", "-c", 'case ${OMPI_COMM_WORLD_RANK-$PMI_RANK} in 3) export ESDM_EARLIER_RUNS=off;; esac; exec "$@"', "-"]


def waits_for_nobody(mpi, folder):
    """Of a rank that is given no hints."""
    given, _, _, _ = Program(mpi, folder).run(before=LAST_WITHOUT)
    expect(given == NOTHING, f"{given}")


def is_careful(mpi, folder):
    """A damaged record is none; records that others may change are none; nor is one process a job."""
    program = Program(mpi, folder)
    for _ in range(2):
        program.run()
    record, = program.records()
    good = record.read_bytes()
    expect(record.stat().st_mode & 0o777 == 0o600, oct(record.stat().st_mode))
    for bad in (good[:-1], b"x" * len(good)):
        record.write_bytes(bad)
        given, _, _, _ = program.run()
        expect(given == NOTHING, f"{len(bad)} bytes: {given}")
    record.write_bytes(good)
    record.chmod(0o622)
    given, _, _, _ = program.run()
    expect(given == NOTHING, f"of others: {given}")
    done = subprocess.run([TOOL, "--mpi-hints", "/bin/true"], env=program.env, capture_output=True, text=True,
                          check=False)
    expect(done.returncode == 0 and "start each rank so" in done.stderr, f"{done.returncode} {done.stderr}")


def some_without(mpi, folder):
    """Two of four ranks run without esdm-run: nobody waits for them to tell hints, nor for their end."""
    program = Program(mpi, folder)
    for _ in range(2):
        program.run()
    half = [TOOL, "-q", "--mpi-hints", *program.line]
    program.output.unlink()
    done = started(mpi, program.env, "-n", 2, *half, ":", "-n", 2, *program.line)
    expect((done.stdout, program.output.read_bytes()) == program.plain, done.stdout)
    expect("the report has nothing of 2 of 4 ranks: no esdm-run started them" in done.stderr, done.stderr)


def user_states(mpi, folder):
    """Hints of the user are given at once, where the program states none of that name; nothing is learned from such a run."""
    program = Program(mpi, folder)
    key, value, file = {"mpich": ("romio_ds_read", "disable", "in"), "openmpi": ("cb_nodes", "2", "out")}[mpi]
    options = (f"--mpi-hint={key}={value}", "--mpi-hint", "of_no_library=7")
    given, read, texts, files = program.run(options=options)
    wanted = {key: value, "of_no_library": "7"}
    expect(given == {"in": wanted, "out": wanted}, f"{given}")
    expect(files[file]["hints_used"][key] == value, f"{files[file]}")
    if mpi == "mpich":
        expect(read == WANTED, f"nothing between the pieces was read: {read}")
        given, read, _, files = program.run("stated", options=options)
        expect(given["in"] == {"of_no_library": "7"} and read > 20 * WANTED, f"the program has a hint: {given} {read}")
    for bad in ("striping_factor", "=4", "a=", "a" * 200 + "=1"):
        done = subprocess.run([TOOL, "--mpi-hint", bad, "/bin/true"], env=program.env, capture_output=True, text=True, check=False)
        expect(done.returncode == 125 and "expected KEY=VALUE" in done.stderr, f"{bad}: {done.returncode} {done.stderr}")
    done = subprocess.run([TOOL, "--mpi-hint=a=1", "/bin/true"], env=program.env, capture_output=True, text=True, check=False)
    expect(done.returncode == 0 and "start each rank so" in done.stderr, f"{done.returncode} {done.stderr}")


@esdmtest.by_clock
def alone(check, mpi):
    with tempfile.TemporaryDirectory(prefix="esdm-test-hinted.") as name:
        check(mpi, pathlib.Path(name).resolve())


def main():
    if not PROGRAMS:
        mpirun.missing("there was no MPI when ESDM was built")
    for mpi in PROGRAMS:
        for check in (learns, large_pieces, user_states, waits_for_nobody, is_careful, *by_size((), (some_without,), (some_without,))):
            alone(check, mpi)
    print("hinted:", *PROGRAMS)


main()
