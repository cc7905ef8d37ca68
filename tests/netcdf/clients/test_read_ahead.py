#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-run --read-ahead on a slow device with a cold cache: strided reads of plain files are at least
twice as fast, others are not slower, and where it does not help it stops."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from esdmtest import (BUILD, by_size, client_environment, expect, main, need_program, run, skip, tool)

WATCHED = BUILD / "tests/netcdf/clients/nc_watched"
SLOW = BUILD / "tests/netcdf/clients/slow_file"
DELAY_US = 4000
RECORD = 1024000
ATTEMPTS = 4


@contextlib.contextmanager
def slow_device(content):
    """`content(path)` makes the file; yields the path of the slow one."""
    if not SLOW.exists():
        skip("built without FUSE")
    need_program("fusermount3")
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        skip("no /dev/fuse")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="esdm-test-ahead."))
    mount = folder / "slow"
    mount.mkdir()
    content(folder / "content")
    server = subprocess.Popen([SLOW, folder / "content", str(DELAY_US), mount],
                              stdin=subprocess.DEVNULL)
    try:
        for _ in range(200):
            if (mount / "data").exists():
                break
            if server.poll() is not None:
                skip("FUSE file systems cannot be mounted here")
            time.sleep(0.05)
        yield mount / "data"
    finally:
        run(["fusermount3", "-u", mount], check=False)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(timeout=20)
        server.kill()
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def sparse(path):
    with open(path, "wb") as file:
        file.truncate(400 * RECORD)


def observed(*command, ahead=True):
    """What a report tells of the slow file, and what the program printed. Opening forgets the cache."""
    options = ["--report", "--json", *(["--read-ahead"] if ahead else [])]
    done = subprocess.run([tool("esdm-run"), "-q", *options, *map(str, command)], text=True,
                          env=client_environment(), stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=600, check=False)
    expect(done.returncode == 0, f"{command}: {done.stderr[-2000:]}")
    report = json.loads(done.stderr[done.stderr.index("{\n"):])
    file = [f for f in report["files"] if f["file"].endswith("/slow/data")]
    expect(len(file) == 1, done.stderr[-3000:])
    return file[0], done.stdout, report


def factor(command, least):
    """How many times as fast the reads are with read-ahead: pairs, until one shows at least `least`."""
    seen = []
    for _ in range(ATTEMPTS):
        plain, text, _ = observed(*command, ahead=False)
        fast, again, report = observed(*command)
        expect(text.split()[1:] == again.split()[1:], "other bytes were read")
        expect(plain.get("read_ahead") is None, str(plain))
        seen.append(plain["read"]["seconds"] / (fast["read"]["seconds"] +
                                                fast.get("read_ahead", {}).get("seconds", 0)))
        if seen[-1] >= least:
            break
    print(f"{command[1:]}: {seen[-1]:.1f} times as fast", flush=True)
    expect(max(seen) >= least, f"{command}: {seen}")
    return fast, report


def test_strided_reads():
    with slow_device(sparse) as file:
        for stride in (RECORD, 20480 * 8):
            fast, report = factor([WATCHED, "read", file, by_size(150, 300, 390), 1024, stride, 100], 2)
            ahead = fast["read_ahead"]
            expect(ahead["calls"] > 50 and ahead["advised_reads"] > 50, str(fast))
            expect(ahead["stopped"] == 0, str(ahead))
            # What it says to have gained is what it gained, about.
            expect(report["time"]["read_ahead_gain"] > 0.1, str(report["time"]))


def test_other_reads_are_not_slower():
    with slow_device(sparse) as file:
        factor([WATCHED, "read", file, by_size(100, 200, 400), 65536, 65536, 100], 0.85)
        plain, _, _ = observed(WATCHED, "read", file, 100, 4096, 0, 0)
        expect(plain.get("read_ahead") is None, f"advice for random reads: {plain}")


def test_what_is_in_memory_needs_none():
    with tempfile.TemporaryDirectory(prefix="esdm-test-ahead.") as folder:
        path = pathlib.Path(folder) / "slow" / "data"
        path.parent.mkdir()
        path.write_bytes(bytes(64 << 20))
        file, _, _ = observed(WATCHED, "read", path, 2000, 1024, 20480, 0)
        calls = file.get("read_ahead", {}).get("calls", 0)
        expect(calls < 200, f"{calls} pieces of advice for 2000 reads from memory")


def test_a_plain_netcdf_file():
    """A part of each record of a classic file, by an unmodified program."""
    need_program("ncks", "ncgen")
    steps = by_size(60, 120, 300)

    def classic(path):
        cdl = (f"netcdf a {{ dimensions: t = UNLIMITED; x = {RECORD // 4}; variables: float v(t, x); }}")
        text = path.with_suffix(".cdl")
        text.write_text(cdl)
        run(["ncgen", "-k", "classic", "-o", path, text])
        with open(path, "r+b") as file:
            file.seek(4)
            file.write(steps.to_bytes(4, "big"))  # so many records; zeros
            file.truncate(file.seek(0, os.SEEK_END) + steps * RECORD)

    with slow_device(classic) as file:
        out = file.parent.parent / "out.nc"
        command = ["ncks", "-O", "-h", "-v", "v", "-d", "x,0,99", file, out]
        fast, _ = factor(command, 2)
        expect(fast["read_ahead"]["advised_reads"] > steps / 2, str(fast))


main(test_strided_reads, test_other_reads_are_not_slower, test_what_is_in_memory_needs_none,
     test_a_plain_netcdf_file)
