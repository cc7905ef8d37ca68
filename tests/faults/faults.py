# SPDX-License-Identifier: LGPL-3.0-or-later
"""Running fault_program, also under strace with injected faults."""

import importlib.util
import json
import os
import random
import re
import signal
import subprocess
import threading

from esdmtest import (BUILD, SANITIZE, SEED, SOURCE, Failed, environment, expect, need_program, run,
                      skip, tool)

PROGRAM = str(BUILD / "tests/faults/fault_program")
KILL_AT = str(BUILD / "tests/support/kill_at")
DYING = str(SOURCE / "tests/faults/dying.py")  # of netCDF4-python

# System calls that change something, on a file or in the order of things.
CHANGING = ["pwrite64", "pwritev", "pwritev2", "write", "writev", "fdatasync", "fsync",
            "sync_file_range", "ftruncate", "fallocate", "openat", "unlink", "unlinkat", "rename",
            "renameat2", "link", "linkat", "mkdir", "mkdirat", "fcntl", "mmap", "close"]


LONG = 500  # seconds; what takes longer hangs, also on a machine that is busy


def program(*arguments, prefix=(), env=None, timeout=LONG):
    """Runs it; returns the finished process, whatever its status."""
    return subprocess.run([*prefix, PROGRAM, *map(str, arguments)], env=environment(env),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, errors="replace", timeout=timeout, check=False)


class Beside:
    """A program that runs beside the test; use as a context manager, which kills what still runs."""

    def __init__(self, command, env):
        self.process = subprocess.Popen(
            command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace")
        self.lines = []
        self.ended = False  # all lines are there
        self.news = threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def read(self):
        for line in self.process.stdout:
            with self.news:
                self.lines.append(line)
                self.news.notify_all()
        with self.news:
            self.ended = True
            self.news.notify_all()

    def wait_for(self, start, count=1):
        """Until it has printed so many lines that start so."""
        def printed():
            return sum(line.startswith(start) for line in self.lines) >= count
        with self.news:
            self.news.wait_for(lambda: printed() or self.ended, LONG)
            expect(printed(), f"no '{start}':\n{''.join(self.lines)}")

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def kill(self):
        self.process.kill()
        return self.finish()

    def finish(self):
        """Waits for its end; the finished process with all that it has printed."""
        self.process.wait(LONG)
        self.reader.join()
        self.process.stdin.close()
        self.process.stdout.close()
        text = "".join(self.lines)
        return subprocess.CompletedProcess(self.process.args, self.process.returncode, text, text)


class Writer(Beside):
    """fault_program that writes generations; with "pause" it waits before its last commit until
    go_on()."""

    def __init__(self, name, first, last, *more, env=None):
        super().__init__([PROGRAM, "write", name, str(first), str(last), *more], environment(env))


def shown(done):
    return f"{done.args}\nstatus {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-3000:]}"


def committed(done):
    """Last generation that the program told as committed; 0 for none."""
    found = re.findall(r"^committed (\d+)$", done.stdout, re.M)
    return int(found[-1]) if found else 0


def must(*arguments, **options):
    done = program(*arguments, **options)
    expect(done.returncode == 0, f"failed:\n{shown(done)}")
    return done


def generation(name):
    """Reads everything back; all of one generation, which is returned."""
    return int(re.search(r"generation (\d+)", must("check", name).stdout).group(1))


def check_last_commit(name, at_least, at_most):
    found = generation(name)
    expect(at_least <= found <= at_most,
           f"{name}: generation {found}, expected {at_least} to {at_most}")
    return found


def need_netcdf4_python():
    if importlib.util.find_spec("netCDF4") is None:
        skip("python3-netcdf4 is not installed")


def writes(name, env=None):
    """How the writes of a container went, as esdm-stat tells: fragments, elsewhere, fewer_copies."""
    done = run([tool("esdm-stat"), "--json", "--summary", name], env=environment(env))
    return json.loads(done.stdout)["containers"][0]["writes"]


def check_goes_on(name, last):
    """The next writer works."""
    must("write", name, last + 1, last + 1)
    expect(generation(name) == last + 1, f"{name}: the next writer's generation is not there")


def need_strace():
    need_program("strace")
    if SANITIZE:
        skip("strace and sanitizers do not go together")
    trial = subprocess.run(["strace", "-o", "/dev/null", "true"], stderr=subprocess.DEVNULL,
                           check=False)
    if trial.returncode:
        skip("strace may not trace here")
    trial = subprocess.run([*killing("write", 1), "echo"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                           check=False)
    expect(trial.returncode == KILLED, f"programs cannot be killed at their calls: {trial.stderr}")


KILLED = 128 + signal.SIGKILL


def killing(call, number):
    """Put before a program: it is killed when it is about to make that system call for the `number`-th time, and ends
    with KILLED. Takes a fifth of what strace takes, which stops a program at all of its calls."""
    return [KILL_AT, call, str(number)]


def strace(*options):
    return ["strace", "-f", "-qq", "-o", "/dev/null", *options]


def count_calls(*arguments):
    """How often each changing system call occurs in a run that is not disturbed."""
    log = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"strace.{os.getpid()}")
    try:
        prefix = ["strace", "-f", "--seccomp-bpf", "-qq", "-o", log, "-e", "trace=" + ",".join(CHANGING)]
        must(*arguments, prefix=prefix)
        with open(log, encoding="utf-8", errors="replace") as lines:
            names = [re.match(r"\d+ +(\w+)\(", line) for line in lines]
    finally:
        if os.path.exists(log):
            os.unlink(log)
    counts = {}
    for name in filter(None, names):
        counts[name.group(1)] = counts.get(name.group(1), 0) + 1
    if not counts:
        raise Failed("strace saw no system calls")
    return counts


def sweep(count, most):
    """Some `most` numbers from 1 to `count`: the first two, the last, and one of each of `most` equal
    parts, drawn by $ESDM_TEST_SEED."""
    if count <= most:
        return list(range(1, count + 1))
    step = count / most
    chance = random.Random(SEED)
    return sorted({1, 2, count} | {int(1 + (i + chance.random()) * step) for i in range(most)})


def database(site):
    """The SQLite file of the site."""
    files = [p for p in (site.folder / "metadata").iterdir()
             if p.is_file() and p.read_bytes()[:15] == b"SQLite format 3"]
    expect(len(files) == 1, f"databases: {files}")
    return files[0]
