#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-explain --trace FILE.otf2: an archive that OTF2's own tools read, of all processes and threads of a run, with the calls
and bytes that the lines of JSON have; of plain files, and of what ESDM recorded in a database."""

import collections
import json
import os
import re
import resource
import shutil
import signal
import subprocess

from esdmtest import Site, client, client_environment, expect, expect_error, main, need_program, run, skip, tool

EXPLAIN = tool("esdm-explain")


def need_otf2():
    if not shutil.which("otf2-print"):
        skip("otf2-print is not installed (package otf2-tools)")
    if not re.search("libotf2|libopen-trace-format2", run(["ldd", EXPLAIN]).stdout):
        skip("esdm-explain was built without OTF2")


def events(archive):
    """Checks that calls lie in each other, and gives [(location, region, bytes or None, mode)] and the definitions."""
    definitions = run(["otf2-print", "-G", archive]).stdout
    stacks, last, found = collections.defaultdict(list), collections.defaultdict(int), []
    for line in run(["otf2-print", archive]).stdout.splitlines():
        match = re.match(r"(ENTER|LEAVE|IO_OPERATION_BEGIN|IO_OPERATION_COMPLETE) +(\d+) +(\d+)  (.*)", line)
        if not match:
            continue
        what, location, at, rest = match.group(1), int(match.group(2)), int(match.group(3)), match.group(4)
        expect(at >= last[location], f"back in time: {line}")
        last[location] = at
        stack = stacks[location]
        if what == "ENTER":
            stack.append([re.search(r'Region: "(.*?)" <', rest).group(1), None, None, None])
        elif what == "LEAVE":
            region, size, mode, _ = stack.pop()
            expect(f'"{region}"' in rest, f"another one ends: {line}")
            found.append((location, region, size, mode))
        elif what == "IO_OPERATION_BEGIN":
            stack[-1][2:] = re.search(r"Mode: (\w+)", rest).group(1), re.search(r"Id: (\d+)", rest).group(1)
        else:
            expect(stack[-1][3] == re.search(r"Id: (\d+)", rest).group(1), f"another operation ends: {line}")
            stack[-1][1] = int(re.search(r"Bytes Result: (\d+)", rest).group(1))
    expect(not any(stacks.values()), f"{stacks}")
    expect(len(last) == definitions.count("\nLOCATION  "), f"{len(last)} {definitions}")
    return found, definitions


def compare(source, folder):
    """With the lines of JSON of the same run."""
    archive, lines = folder / "run.otf2", folder / "run.jsonl"
    run([EXPLAIN, "--quiet", "--trace", archive, source])
    run([EXPLAIN, "--quiet", "--trace", lines, source])
    calls = [json.loads(line) for line in lines.read_text().splitlines()]
    found, definitions = events(archive)
    expect(collections.Counter(c["call"] for c in calls) == collections.Counter(f[1] for f in found), "calls")
    expect(len({(c["pid"], c["thread"]) for c in calls}) == len({f[0] for f in found}), "threads")
    expect(len({c["pid"] for c in calls}) == definitions.count("\nLOCATION_GROUP  "), definitions)
    for name in {f[1] for f in found if f[2] is not None}:
        expect(sum(c["bytes"] for c in calls if c["call"] == name and not c["failed"]) ==
               sum(f[2] for f in found if f[1] == name), f"bytes of {name}")
    return calls, found, definitions


def test_plain_files_of_several_processes():
    need_otf2()
    need_program("nccopy")
    with Site() as s:
        run([tool("esdm-pattern"), "-q", "-s", "time=8,lat=200,lon=300", "-v", "tas", s.file("in.nc")])
        run([tool("esdm-run"), "-q", "--records", s.file("records"), "sh", "-c", "nccopy in.nc a.nc & nccopy -4 in.nc b.nc; wait"],
            env=client_environment(), cwd=s.folder)
        calls, found, definitions = compare(s.file("records"), s.folder)
        expect({f[3] for f in found if f[2]} == {"READ", "WRITE"}, "both")
        expect(sum(f[2] or 0 for f in found if f[1].startswith("nc_put")) >= 2 * 8 * 200 * 300 * 4, "values")
        for words in (str(s.file("in.nc").resolve()), '"NetCDF"', '"POSIX"', f'Name: "{os.uname().nodename}"', ": tas"):
            expect(words in definitions, f"{words}: {definitions}")
        expect(len({c["pid"] for c in calls}) >= 2, "processes")
        again = run([EXPLAIN, "--quiet", "--trace", s.file("run.otf2"), s.file("records")], check=False)
        expect_error(again, "already")
        away = run([EXPLAIN, "--quiet", "--trace", "/proc/no/run.otf2", s.file("records")], check=False)
        expect(away.returncode == 1 and "does not exist" in away.stderr, f"{away.returncode} {away.stderr}")
        expect_error(run([EXPLAIN, "--quiet", "--trace", s.file(".otf2"), s.file("records")], check=False), "a name before")


def test_what_esdm_recorded():
    need_otf2()
    need_program("nccopy")
    with Site() as s:
        run([tool("esdm-pattern"), "-q", "-s", "time=8,lat=200,lon=300", "-v", "tas", "esdm://in.nc"])
        bad = client(["nccopy", "esdm://in.nc", "esdm://out.nc"], env={"ESDM_MONITOR": "trace:run.otf2"}, check=False)
        expect("esdm-explain --trace" in bad.stderr, bad.stderr)
        runs = s.file("runs.sqlite")
        client(["nccopy", "esdm://in.nc", "esdm://out2.nc"], env={"ESDM_MONITOR": f"stats:{runs},trace:{runs}"})
        _, found, definitions = compare(f"{runs}#latest", s.folder)
        expect('"ESDM"' in definitions and "in.nc" in definitions, definitions)
        expect(any(f[2] for f in found), "bytes")


def small_files():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))


def test_damaged_records_and_full_disks():
    """Calls that never end are cut at the end of the run; what was begun in vain is not left in the way."""
    need_otf2()
    need_program("nccopy")
    with Site() as s:
        run([tool("esdm-pattern"), "-q", "-s", "time=8,lat=200,lon=300", "-v", "tas", s.file("in.nc")])
        run([tool("esdm-run"), "-q", "--records", s.file("records"), "nccopy", "in.nc", "a.nc"], env=client_environment(),
            cwd=s.folder)
        full = subprocess.run([EXPLAIN, "--quiet", "--trace", s.file("run.otf2"), s.file("records")], restore_signals=False,
                              preexec_fn=small_files, check=False,
                              text=True, capture_output=True)
        left = [p.name for p in s.folder.glob("run*")]
        expect(full.returncode == 1 and not left, f"{full.returncode} {full.stderr} {left}")
        window, damaged = 65536, 0
        for file in s.file("records").glob("*.watch"):
            data = bytearray(file.read_bytes())
            for at in range(window, len(data) - window + 1, window):
                if int.from_bytes(data[at:at + 4], "little") == 2:  # records: start_ns, ns, … of 64 bytes
                    for one in range(at + 64, at + window, 64 * 3):
                        if any(data[one:one + 8]):
                            data[one + 8:one + 16] = b"\xff" * 8
                            damaged += 1
            file.write_bytes(data)
        run([EXPLAIN, "--quiet", "--trace", s.file("run.otf2"), s.file("records")])
        found, _ = events(s.file("run.otf2"))
        expect(damaged > 3 and len(found) >= damaged, f"{damaged} {len(found)}")


def test_a_full_disk_is_told():
    """Whatever the last file that finds no room: the library does not tell of all, so that the archive is read again."""
    need_otf2()
    need_program("mount")
    with Site() as s:
        whole, small = s.file("whole"), s.file("small")
        run([tool("esdm-pattern"), "-q", "-s", "time=8,lat=20,lon=30", "-v", "tas", s.file("in.nc")])
        run([tool("esdm-run"), "-q", "--records", s.file("records"), "nccopy", s.file("in.nc"), s.file("a.nc")], env=client_environment())
        whole.mkdir()
        small.mkdir()
        run([EXPLAIN, "--quiet", "--trace", whole / "run.otf2", s.file("records")])
        printed = run(["otf2-print", whole / "run.otf2"]).stdout
        pages = sum(-(-f.stat().st_size // 4096) for f in whole.rglob("*") if f.is_file())
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small], stderr=subprocess.DEVNULL, check=False).returncode:
            skip("may not mount here")
        try:
            results = []
            for room in range(1, pages + 3):
                run(["mount", "-o", f"remount,size={4 * room}k", small])
                done = run([EXPLAIN, "--quiet", "--trace", small / "run.otf2", s.file("records")], check=False)
                results.append(done.returncode == 0)
                if done.returncode == 0:
                    expect(run(["otf2-print", small / "run.otf2"]).stdout == printed, f"{room} pages: not all of it")
                    shutil.rmtree(small / "run")
                    (small / "run.otf2").unlink()
                    (small / "run.def").unlink()
                else:
                    expect_error(done, "run.otf2", "full")
                expect(not list(small.iterdir()), f"{room} pages: {list(small.iterdir())}")
            expect(not results[0] and results[-1], str(results))
        finally:
            subprocess.run(["umount", "-l", small], check=False)



main(test_plain_files_of_several_processes, test_what_esdm_recorded, test_damaged_records_and_full_disks, test_a_full_disk_is_told)
