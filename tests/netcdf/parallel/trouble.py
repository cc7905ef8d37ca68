#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Ranks that make mistakes, fail or are killed: all are told, nobody waits for ever, and what was
committed stays. trouble.py PROGRAM"""

import contextlib
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

import esdmtest
import mpirun

PROGRAM = sys.argv[1] if len(sys.argv) > 1 else ""
SLOW = 5 if esdmtest.SANITIZE else 1
SECONDS = 300 * SLOW


def limit(ranks):
    """Seconds within which every job ends, whatever happens to its ranks."""
    return SECONDS + 5 * ranks * SLOW


def job(env, ranks, *arguments, check=True, prefix=()):
    return mpirun.run("openmpi", ranks, [*prefix, PROGRAM, *map(str, arguments)], env,
                      timeout=limit(ranks), check=check)


def mistakes(folder):
    env = mpirun.make_site(folder, "mistakes")
    for ranks in esdmtest.by_size((4,), (4,), (1, 2, 3, 4, 8)):
        text = job(env, ranks, "differ").stdout
        for part in ("the length of '/y' is 10 on rank 0 and 12 on rank 1",
                     "the type of '/f' is 'int32' on rank 0 and 'float32' on rank 1",
                     "group 'g' of '/' is defined on rank 0 but not on rank"):
            if ranks == 4 and part not in text:
                raise SystemExit(f"not told: {part}\n{text[-3000:]}")
        told = text.count("attribute 'units' of '/s', and maybe others, had another value")
        if told != (2 if ranks > 1 else 0):
            raise SystemExit(f"attributes that follow rank 0 are told {told} times\n{text[-3000:]}")
        job(env, ranks, "refused")
    print("mistakes: all ranks are told")


def other_sites(folder):
    env = mpirun.make_site(folder, "one")
    other = mpirun.make_site(folder, "two")["ESDM_CONFIG"]
    broken = folder / "broken.json"
    broken.write_text("{")
    for config in (other, broken, folder / "none.json"):
        job(env, 3, "sites", config)
    print("sites: all ranks are told")


def lost(folder):
    env = mpirun.make_site(folder, "faulty", "faulty")
    for ranks in esdmtest.by_size((4,), (4,), (1, 4)):
        job(env, ranks, "lost")
        shutil.rmtree(folder / "faulty")
        env = mpirun.make_site(folder, "faulty", "faulty")
    print("lost: all ranks are told, the last commit stays")


def full(folder):
    small = folder / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(small)]
    if os.geteuid() != 0 or subprocess.run(mount, stderr=subprocess.DEVNULL, check=False).returncode:
        print("full: skipped: a small disk needs root")
        return
    with contextlib.ExitStack() as stack:
        stack.callback(subprocess.run, ["umount", "-l", str(small)], check=False)
        target = {"name": "disk", "plugin": "posix", "directory": "small/packs"}
        env = mpirun.make_site(folder, "full", targets=[target])
        print("full:", job(env, 4, "full").stdout.strip().splitlines()[-1])
        remove = [esdmtest.tool("esdm-rm"), "--for-good", "full"]
        subprocess.run(remove, env=env, check=True, timeout=SECONDS)
        collect(env, check=True)
        ballast = small / "ballast"
        ballast.write_bytes(bytes(8 << 20))
        print("room:", job(env, 4, "room", ballast).stdout.strip().splitlines()[-1])
        subprocess.run([esdmtest.tool("esdm-fsck"), "--data", "--quiet"], env=env, check=True,
                       timeout=SECONDS)


# ---- killed ranks -------------------------------------------------------------------------------

def collect(env, check):
    """Removes what killed programs left behind, however young it is."""
    return subprocess.run([esdmtest.tool("esdm-gc"), "--yes", "--age", "0s"], env=env, check=check,
                          stdout=subprocess.DEVNULL, timeout=SECONDS)


def collected_meanwhile(folder):
    """esdm-gc takes nothing away from ranks that are writing."""
    env = mpirun.make_site(folder, "collected")
    line = [mpirun.launcher("openmpi"), "-n", "4", PROGRAM, "steps", "12"]
    collections = 0
    with subprocess.Popen(line, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as process:
        while process.poll() is None:
            collect(env, check=True)
            collections += 1
        told = process.stdout.read()
    if process.returncode:
        raise SystemExit(f"ranks fail beside esdm-gc:\n{told[-3000:]}")
    subprocess.run([PROGRAM, "verify", "11"], env=env, check=True, timeout=SECONDS)
    subprocess.run([esdmtest.tool("esdm-fsck"), "--data", "--quiet"], env=env, check=True,
                   timeout=SECONDS)
    print(f"collected {collections} times beside the ranks")


def check_after(env, ranks, told, what):
    """What another job finds: whole steps, all that were told, and it can write."""
    last = max((int(n) for n in re.findall(r"^committed (\d+)$", told, re.M)), default=-1)
    subprocess.run([PROGRAM, "verify", str(last)], env=env, check=True, timeout=SECONDS)
    job(env, ranks, "append")
    collect(env, check=True)
    subprocess.run([esdmtest.tool("esdm-fsck"), "--data", "--quiet"], env=env, check=True,
                   timeout=SECONDS)
    subprocess.run([PROGRAM, "verify", str(last + 1)], env=env, check=True, timeout=SECONDS)
    print(f"killed {what}: after step {last}", flush=True)


def can_trace():
    return not esdmtest.SANITIZE and shutil.which("strace") and subprocess.run(
        ["strace", "-o", "/dev/null", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0


# Ranks, the one that is killed, at which call, on which file below the site's folder, and what it is then doing. In each
# commit rank 0 writes eight pages of its catalogue; the others send messages only (MESSAGES).
POINTS = [(4, 0, "pwrite64", "", 20, "rank 0 in a commit"),
          (4, 2, "pwritev", "", 3, "a rank that writes"),
          (4, 0, "pwritev", "", 2, "rank 0 that writes"),
          (16, 0, "pwrite64", "", 24, "rank 0 in a commit"),
          (16, 11, "pwritev", "", 3, "a rank that writes")]
LONG_POINTS = [(64, *point[1:]) for point in POINTS[-2:]]

# Ranks, the one that is killed, as it begins which message of a commit.
MESSAGES = [(4, 3, 1), (16, 5, 1), (16, 5, 2), (16, 8, 4), (16, 0, 6)]
LONG_MESSAGES = [(64, rank, message) for rank in (0, 21, 32) for message in (1, 2, 3)]


def killed_at_calls(folder):
    """SIGKILL at the n-th system call of a kind, on rank 0, which commits, and on another one."""
    if not can_trace():
        print("killed at calls: skipped: strace may not trace here")
        return
    script = ('if [ "$OMPI_COMM_WORLD_RANK" = "$VICTIM" ]; then exec strace -f -qq -o /dev/null '
              '${FILE:+-P "$FILE"} -e trace="$CALL" -e inject="$CALL:signal=SIGKILL:when=$WHEN" "$@"; fi; exec "$@"')
    points = esdmtest.by_size(POINTS[:1], esdmtest.some(POINTS, 3), POINTS + LONG_POINTS)
    sweep = []  # further than the last such call some of them survive
    if esdmtest.SIZE == "long":
        sweep += [(4, 1, "openat", "", 120, "")]
        sweep += [(4, 0, "pwrite64", "", n, "") for n in range(4, 100, 8)]
        sweep += [(4, rank, "pwritev", "", n, "") for rank in (0, 3) for n in range(1, 8, 2)]
    for number, (ranks, victim, call, file, when, what) in enumerate(points + sweep):
        env = mpirun.make_site(folder, f"calls{number}")
        path = str(folder / f"calls{number}" / file) if file else ""
        env.update(VICTIM=str(victim), CALL=call, WHEN=str(when), FILE=path)
        done = job(env, ranks, "steps", 6, check=False, prefix=["/bin/sh", "-c", script, "sh"])
        if what and done.returncode == 0:
            raise SystemExit(f"{what} of {ranks} was not killed at {call} {when}")
        ended = "survives" if done.returncode == 0 else "killed"
        check_after(env, ranks, done.stdout, f"{what or 'rank %d' % victim} of {ranks} at {call} {when} ({ended})")
        shutil.rmtree(folder / f"calls{number}")


def killed_at_messages(folder):
    """SIGKILL as a rank begins the n-th message of the third commit."""
    points = esdmtest.by_size(MESSAGES[:1], esdmtest.some(MESSAGES, 2), MESSAGES + LONG_MESSAGES)
    for number, (ranks, victim, message) in enumerate(points):
        env = mpirun.make_site(folder, f"messages{number}")
        done = job(env, ranks, "dies", victim, message, check=False)
        if done.returncode == 0 or "committed 1" not in done.stdout:
            raise SystemExit(f"rank {victim} of {ranks} was not killed at message {message} of the third commit")
        check_after(env, ranks, done.stdout, f"rank {victim} of {ranks} at message {message}")
        shutil.rmtree(folder / f"messages{number}")


def processes_of(launcher):
    """The ranks below a launcher."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if parent == launcher and (entry / "exe").resolve() == pathlib.Path(PROGRAM).resolve():
                found.append(int(entry.name))
    return sorted(found)


def killed_at_times(folder):
    """SIGKILL some milliseconds after a commit."""
    generator = random.Random(7)
    jobs = esdmtest.by_size((4,), (16,), (4, 4, 16, 4, 64) * 4)
    for number, ranks in enumerate(jobs):
        env = mpirun.make_site(folder, f"times{number}")
        line = [mpirun.launcher("openmpi"), "-n", str(ranks), PROGRAM, "steps", "100000"]
        told = ""
        with subprocess.Popen(line, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True) as process:
            for text in process.stdout:
                told += text
                if text.strip() == f"committed {1 + number % 4}":
                    break
            time.sleep(generator.random() * 0.03)
            victims = processes_of(process.pid)
            if victims:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(victims[number % len(victims)], 9)
            try:
                told += process.communicate(timeout=limit(ranks))[0]
            except subprocess.TimeoutExpired:
                process.kill()
                raise SystemExit("the other ranks wait for one that was killed")
        if process.returncode == 0 or not victims:
            raise SystemExit("a job with a killed rank succeeded")
        check_after(env, ranks, told, f"one of {len(victims)} ranks after some time")
        shutil.rmtree(folder / f"times{number}")


def main():
    if "thread" in esdmtest.SANITIZE:
        esdmtest.skip("threads are watched in integration.ranks; HDF5 and MPI are not built for it")
    if not PROGRAM:
        mpirun.missing("libnetcdf-mpi-dev and OpenMPI were not there when ESDM was built")
    with tempfile.TemporaryDirectory(prefix="esdm-trouble.", dir=esdmtest.folder_of_sites()) as name:
        folder = pathlib.Path(name)
        for part in (mistakes, other_sites, lost, full):
            part(folder)
        mpirun.LEAKS_TOO = False  # which those above look for: ranks that are killed leave all they have
        for part in (collected_meanwhile, killed_at_calls, killed_at_messages, killed_at_times):
            part(folder)


main()
