#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-explain finds the causes of times: on mixtures whose causes are known, and on reads of this
machine, of which the kernel tells which pages were in memory."""

import ctypes
import json
import mmap
import os
import pathlib
import random
import re
import resource
import struct
import sys
import tempfile

from esdmtest import BUILD, by_size, client_environment, expect, main, run, skip, tool

WINDOW = 65536
READ, WRITE, NFS = "pread64", "pwrite64", 0x6969


def number_of(name):
    """The number of a call, as calls.h has it."""
    text = (BUILD / "tools/watch/watch/calls.h").read_text()
    body = text[text.index("typedef enum watch_op {") + 24:text.index("WATCH_OPS")]
    names = [line.strip().rstrip(",") for line in body.splitlines() if line.strip()]
    return names.index(f"WATCH_OP_{name}")


def write_records(folder, calls, file_system=0, cpu_s=0, ended=True):
    """A file of one process: `calls` are (start, seconds, bytes, position, name) of one file."""
    head = struct.pack("<QIiiiiIQQQQQQQQQ64s256s2048s", 0x3168637461776465, WINDOW, 7, 1, -1, 0, 2,
                       10**18, 1, int((calls[-1][0] + 10) * 1e9) if ended else 0, int(cpu_s * 1e6), 0, 0, 1, len(calls), 0, b"host",
                       b"/bin/x", b"x\0")
    out = bytearray(head.ljust(WINDOW, b"\0"))
    entry = struct.pack("<IIiIIiiI", 1, 0, 0, 0, 0, -1, -1, file_system)
    reads = [c for c in calls if c[4] == READ]
    writes = [c for c in calls if c[4] == WRITE]
    for part in (reads, writes, []):
        entry += struct.pack("<QQQQ", len(part), sum(c[2] for c in part),
                             int(sum(c[1] for c in part) * 1e9), 0)
    entry += struct.pack("<QQ", 0, 1 << 30) + bytes(16 * 8 + 16 + 64) + b"/data/f"
    out += (struct.pack("<II56x", 1, 0) + entry.ljust(1024, b"\0")).ljust(WINDOW, b"\0")
    per = (WINDOW - 64) // 64
    ops = {READ: number_of(READ), WRITE: number_of(WRITE)}
    for first in range(0, len(calls), per):
        window = struct.pack("<II56x", 2, first // per)
        for start, seconds, size, position, name in calls[first:first + per]:
            window += struct.pack("<QQQQQIIHHHHQ", int(start * 1e9) + 2, max(int(seconds * 1e9), 1), size,
                                  position, size, 1, 9, ops[name], 0, 0, 0, 0)
        out += window.ljust(WINDOW, b"\0")
    (folder / "host.7.0.watch").write_bytes(out)


def mixture(parts, count, pattern, name=READ, size=4096, seed=1):
    """Calls whose times are log-normal about those of their causes: {cause: (share, seconds)}."""
    chance = random.Random(seed)
    calls, causes, at, position = [], [], 0.0, 0
    for i in range(count):
        cause = pattern(i, chance, parts)
        seconds = parts[cause][1] * chance.lognormvariate(0, 0.22)
        position = position + size if cause in SEQUENTIAL or pattern is in_order else \
            chance.randrange(1 << 18) * 4096
        calls.append((at, seconds, size, position, name))
        causes.append(cause)
        at += seconds + 1e-6
    return calls, causes


SEQUENTIAL = ()


def by_chance(_, chance, parts):
    return chance.choices(list(parts), [p[0] for p in parts.values()])[0]


def in_order(i, chance, parts):
    """One call in 16 waits for the device, which reads the others early."""
    del chance
    first, second = parts
    return second if i % 16 == 0 else first


MIXTURES = [
    ("a local disk", {"page cache": (0.6, 3e-6), "device": (0.4, 110e-6)}, by_chance, READ, 4096, 0),
    ("a spindle", {"page cache": (0.5, 4e-6), "device": (0.5, 8e-3)}, by_chance, READ, 4096, 0),
    ("a stream", {"read-ahead": (0.9, 18e-6), "device": (0.1, 2.5e-3)}, in_order, READ, 65536, 0),
    ("a network", {"page cache": (0.7, 3e-6), "network": (0.3, 700e-6)}, by_chance, READ, 4096, NFS),
    ("a busy disk", {"page cache": (0.3, 3e-6), "device": (0.5, 120e-6), "contention": (0.2, 5e-3)},
     by_chance, READ, 4096, 0),
    ("buffered writes", {"page cache": (0.95, 40e-6), "write-back": (0.05, 30e-3)}, by_chance, WRITE,
     65536, 0),
]


def causes_found(folder, trace):
    run([tool("esdm-explain"), "--trace", trace, folder])
    return [json.loads(line) for line in trace.read_text().splitlines()]


def test_causes_that_are_known():
    right = total = 0
    for what, parts, pattern, name, size, file_system in MIXTURES:
        with tempfile.TemporaryDirectory(prefix="esdm-test-explain.") as path:
            folder = pathlib.Path(path)
            calls, causes = mixture(parts, by_size(1500, 4000, 20000), pattern, name, size)
            write_records(folder, calls, file_system)
            found = causes_found(folder, folder / "t.jsonl")
            expect(len(found) == len(calls), f"{what}: {len(found)} of {len(calls)} calls")
            good = sum(f["cause"] == c for f, c in zip(found, causes))
            print(f"{what}: {100 * good / len(calls):.1f} % right", flush=True)
            expect(good >= 0.9 * len(calls), f"{what}: {good} of {len(calls)}: "
                   + run([tool("esdm-explain"), folder]).stdout)
            right, total = right + good, total + len(calls)
    print(f"all: {100 * right / total:.1f} %")


def test_one_kind_alone_stays_one_class():
    with tempfile.TemporaryDirectory(prefix="esdm-test-explain.") as path:
        folder = pathlib.Path(path)
        calls, _ = mixture({"page cache": (1, 3e-6)}, 3000, by_chance)
        write_records(folder, calls)
        report = json.loads(run([tool("esdm-explain"), "--json", folder]).stdout)
        expect([c["cause"] for c in report["read_times"]] == ["page cache"], str(report["read_times"]))


def test_numbers_of_a_sentence_agree():
    """A class of a few slow writes with one much slower: "22 ms for 64 KiB, 2 times the others" beside others of 40 us."""
    with tempfile.TemporaryDirectory(prefix="esdm-test-explain.") as path:
        folder = pathlib.Path(path)
        calls, at = [], 0.0
        for i in range(600):
            seconds = 80e-3 if i in (300, 480) else 40e-6 if i % 30 else 0.6e-3
            calls.append((at, seconds, 65536, i * 65536, WRITE))
            at += seconds + 1e-6
        write_records(folder, calls)
        text = run([tool("esdm-explain"), folder]).stdout
        units = {"µs": 1e-6, "ms": 1e-3, "s": 1}
        found = re.findall(r"calls, [^:]*: ([0-9.]+) (µs|ms|s) for [^,]*, ([0-9]+) times the others", text)
        expect(found, text)
        for number, unit, times in found:
            expect(0.8 < float(number) * units[unit] / 40e-6 / float(times) < 1.25, text)


def test_a_program_that_waits_is_no_program_that_computes():
    """Of ten seconds that are no calls of files, the processes had processors for one."""
    calls = [(i * 1e-3, 3e-6, 4096, 4096 * i, READ) for i in range(100)]
    for cpu_s, ended, told in ((1, True, True), (9.9, True, False), (1, False, False), (0, True, False)):
        with tempfile.TemporaryDirectory(prefix="esdm-test-explain.") as path:
            write_records(pathlib.Path(path), calls, 0, cpu_s, ended)
            text = run([tool("esdm-explain"), path]).stdout
            expect(("The program had processors for 1.0 s in all" in text) == told and ("waited," in text) == told, text)


def test_large_calls_do_not_wait_for_others():
    """They take longer than small ones of the same device, as they are larger."""
    with tempfile.TemporaryDirectory(prefix="esdm-test-explain.") as path:
        folder = pathlib.Path(path)
        small, _ = mixture({"page cache": (0.5, 2e-6), "device": (0.5, 110e-6)}, 1000, by_chance, size=600)
        large, _ = mixture({"device": (1, 30e-3)}, 200, by_chance, size=1800000)
        begin = small[-1][0] + 1
        write_records(folder, small + [(begin + at, *rest) for at, *rest in large])
        found = causes_found(folder, folder / "t.jsonl")[len(small):]
        expect(len(found) == len(large) and {f["cause"] for f in found} == {"device"},
               str({f["cause"] for f in found}))


def test_best_case():
    """'If everything were cached': what the calls from memory took, for all."""
    with tempfile.TemporaryDirectory(prefix="esdm-test-explain.") as path:
        folder = pathlib.Path(path)
        calls, _ = mixture({"page cache": (0.5, 4e-6), "device": (0.5, 8e-3)}, 1000, by_chance)
        write_records(folder, calls)
        report = json.loads(run([tool("esdm-explain"), "--json", folder]).stdout)
        now = report["time"]["reading"]
        expect(3.5 < now < 4.6 and report["time"]["reading_if_cached"] < 0.02, str(report["time"]))


def test_storage_that_takes_the_time_is_told():
    """Where calls are as they should be, the report does not end with "nothing"."""
    with tempfile.TemporaryDirectory(prefix="esdm-test-explain.") as path:
        folder = pathlib.Path(path)
        calls, _ = mixture({"page cache": (0.95, 3e-5), "write-back": (0.05, 60e-3)}, 600, by_chance, WRITE, 131072)
        write_records(folder, calls)
        text = run([tool("esdm-explain"), folder]).stdout
        said = " ".join(text.split())
        expect("Nothing that is worth it" in said and "What took longest was storage itself" in said
               and "calls that write waited" in said and "(write-back)" in said, text)


def write_many_files(folder, files, count):
    """Reads by turns of so many files, as write_records()."""
    write_records(folder, [(i * 1e-3, 1e-3, 4096, 4096 * i, READ) for i in range(count)])
    file = folder / "host.7.0.watch"
    whole = bytearray(file.read_bytes())
    entry, rest = whole[WINDOW + 64:WINDOW + 1088], whole[2 * WINDOW:]
    for i in range(count):
        window, place = divmod(i, (WINDOW - 64) // 64)
        struct.pack_into("<I", rest, window * WINDOW + 64 + 64 * place + 40, 1 + i % files)
    entries = bytearray()
    for first in range(0, files, 63):
        window = struct.pack("<II56x", 1, first // 63)
        for number in range(first, min(first + 63, files)):
            window += entry.replace(b"/data/f\0\0\0\0\0\0", b"/data/f%06d" % number)
        entries += window.ljust(WINDOW, b"\0")
    file.write_bytes(whole[:WINDOW] + entries + rest)


def test_many_files():
    """Each call is looked at so many times, whatever the number of files: 4,000 cost as 100 do."""
    used = []
    for files in (100, 4000):
        with tempfile.TemporaryDirectory(prefix="esdm-test-explain.") as path:
            write_many_files(pathlib.Path(path), files, 60000)
            least = min(user_seconds([tool("esdm-explain"), "--json", path], files) for _ in range(3))
            used.append(least)
    print(f"{used[0]:.2f} and {used[1]:.2f} s")
    expect(used[1] < 3 * used[0] + 0.2, f"{used[0]:.2f} and {used[1]:.2f} s of processors")


def user_seconds(command, files):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    report = json.loads(run(command, env=client_environment()).stdout)
    expect(sum(f["read"]["calls"] for f in report["files"]) >= 60000, str(report["files"])[:300])
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def resident(file):
    """Which pages of a file are in memory, as mincore() tells. It tells the owner alone."""
    libc = ctypes.CDLL(None, use_errno=True)
    size = os.fstat(file.fileno()).st_size
    area = mmap.mmap(file.fileno(), size, flags=mmap.MAP_SHARED)
    pages = (ctypes.c_ubyte * (size // 4096))()
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    if libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), pages) != 0:
        skip("no mincore()")
    return [p & 1 for p in pages]


def test_cached_reads_of_this_machine():
    """Reads of a file of which one half is in memory: told apart as mincore() tells them."""
    size = 48 << 20
    with tempfile.TemporaryDirectory(prefix="esdm-test-explain.", dir=BUILD) as path:
        file = pathlib.Path(path) / "data"
        file.write_bytes(os.urandom(1 << 20) * (size >> 20))
        with open(file, "r+b") as data:
            os.fsync(data.fileno())
            os.posix_fadvise(data.fileno(), 0, size, os.POSIX_FADV_DONTNEED)
            data.seek(size // 2)
            while data.read(1 << 20):
                pass
            pages = resident(data)
        if sum(pages[:len(pages) // 2]) > 64:
            skip("this file system keeps what is to be evicted")
        records = pathlib.Path(path) / "records"
        run([tool("esdm-run"), "-q", "--records", records, BUILD / "tests/netcdf/clients/nc_watched",
             "read", file, by_size(400, 1000, 4000), 4096, 0, 0], env=client_environment())
        calls = [c for c in causes_found(records, pathlib.Path(path) / "t.jsonl")
                 if c["call"].startswith("pread") and c["file"] == str(file.resolve())]
        good = 0
        for call in calls:
            page = call["position"] // 4096
            good += (call["cause"] == "page cache") == bool(pages[page])
            pages[page] = 1  # from now on
        print(f"{100 * good / len(calls):.1f} % of {len(calls)} reads as mincore() tells")
        expect(len(calls) >= 400, str(len(calls)))
        # What the host has in its own memory answers nearly as fast as ours.
        expect(good >= 0.9 * len(calls), f"{good} of {len(calls)}: "
               + run([tool("esdm-explain"), records]).stdout)


MIXED = """
import ctypes, mmap, os, random, sys
chance = random.Random(11)
libc = ctypes.CDLL(None)
fd = os.open(sys.argv[1], os.O_RDWR)
size = os.fstat(fd).st_size
area = mmap.mmap(fd, size, flags=mmap.MAP_SHARED)
base = ctypes.addressof(ctypes.c_char.from_buffer(area))
told = open(sys.argv[2], "w")
def read(at, count):
    pages = (ctypes.c_ubyte * ((at % 4096 + count + 4095) // 4096))()
    libc.mincore(ctypes.c_void_p(base + at // 4096 * 4096), ctypes.c_size_t(at % 4096 + count), pages)
    os.pread(fd, count, at)
    had = sum(p & 1 for p in pages)
    print(at, count, int(had == len(pages)), file=told)
for _ in range(int(sys.argv[3])):
    count = 1 << chance.randrange(10, 21)
    places = [chance.randrange(size - (1 << 20)) & ~1023 for _ in range(10)]
    os.posix_fadvise(fd, 0, size, os.POSIX_FADV_DONTNEED)
    for turn in range(chance.choice([1, 2, 3])):
        for at in places:
            read(at, count)
"""


def test_sizes_that_differ():
    """Reads of 1 KiB to 1 MiB of a disk and of memory, in any order: large ones of memory take longer than small ones of the disk, so
    times alone do not tell. Records do, as memory is asked before each read; held against mincore(), which the program asks."""
    with tempfile.TemporaryDirectory(prefix="esdm-test-explain.", dir=BUILD) as path:
        file, told, records = (pathlib.Path(path) / name for name in ("data", "told", "records"))
        file.write_bytes(os.urandom(1 << 20) * 48)
        with open(file, "r+b") as data:
            os.fsync(data.fileno())
            os.posix_fadvise(data.fileno(), 0, 48 << 20, os.POSIX_FADV_DONTNEED)
            if sum(resident(data)) > 64:
                skip("this file system keeps what is to be evicted")
        run([tool("esdm-run"), "-q", "--records", records, sys.executable, "-c", MIXED, file, told, str(by_size(30, 60, 200))],
            env=client_environment())
        truth = [tuple(map(int, line.split())) for line in told.read_text().splitlines()]
        calls = [c for c in causes_found(records, pathlib.Path(path) / "t.jsonl")
                 if c["call"].startswith("pread") and c["file"] == str(file.resolve())]
        expect([(c["position"], c["bytes"]) for c in calls] == [t[:2] for t in truth], f"{len(calls)} {len(truth)}")
        if not any("had_before" in c for c in calls):
            skip("the kernel does not tell what memory has (cachestat)")
        had = [c["cause"] for c, t in zip(calls, truth) if t[2]]
        lacked = [c["cause"] for c, t in zip(calls, truth) if not t[2]]
        good = sum(c in ("page cache", "read-ahead") for c in had) + sum(c != "page cache" for c in lacked)
        print(f"{100 * good / len(calls):.1f} % of {len(calls)} reads as mincore() tells: {len(had)} from memory, {len(lacked)} not")
        expect(len(had) > 50 and len(lacked) > 50 and good >= 0.9 * len(calls), f"{good} of {len(calls)}: " + run([tool("esdm-explain"), records]).stdout)


main(test_numbers_of_a_sentence_agree, test_a_program_that_waits_is_no_program_that_computes, test_sizes_that_differ, test_causes_that_are_known, test_many_files, test_storage_that_takes_the_time_is_told, test_one_kind_alone_stays_one_class, test_best_case, test_large_calls_do_not_wait_for_others,
     test_cached_reads_of_this_machine)
