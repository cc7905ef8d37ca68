#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-run --report: what programs did with files and variables, by numbers that are known."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

import mpirun
from esdmtest import (BUILD, SANITIZE, Site, by_clock, client_environment, expect, expect_error, main, need_data,
                      need_program, run, skip, tool)

WATCHED = BUILD / "tests/netcdf/clients/nc_watched"


def report_of(done):
    """The JSON after what the program itself said."""
    text = done.stderr
    return json.loads(text[text.index("{\n"):])


def reported(*command, options=("--report", "--json"), check=True, env=None, before=()):
    done = subprocess.run([*map(str, before), tool("esdm-run"), "-q", *options, *map(str, command)], text=True,
                          env=client_environment(env), stdin=subprocess.DEVNULL, capture_output=True,
                          errors="replace", timeout=600, check=False)
    if check:
        expect(done.returncode == 0, f"{command}: {done.returncode}\n{done.stderr[-3000:]}")
    return done


def entry(report, name, variable=None):
    found = [f for f in report["variables" if variable else "files"]
             if f["file"].endswith(name) and f["variable"] == variable]
    expect(len(found) == 1, f"{name} {variable}: {json.dumps(report, indent=1)[:4000]}")
    return found[0]


class Folder:
    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="esdm-test-report."))
        self.file = self.path / "data"
        self.file.write_bytes(os.urandom(1 << 20) * 8)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def leftovers():
    """Folders of ended runs; those of running ones are other tests'."""
    found = pathlib.Path("/dev/shm").glob("esdm-run-[0-9]*-*")
    return {f for f in found if not pathlib.Path("/proc", f.name.split("-")[2]).exists()}


def test_short_run__is_said_to_tell_little():
    with Folder() as folder:
        text = reported("head", "-c", "4096", folder.file, options=("--report",)).stderr
        expect("What would help most\n  Nothing" in text and "too short to tell" in text, text)


def test_headings_have_something_below():
    """Where calls took too little to tell why, that is not a question; one call is no "1 calls"."""
    with Folder() as folder:
        script = f"head -c 4096 {folder.file} > /dev/null; sleep 1; :"
        text = reported("sh", "-c", script, options=("--report",)).stderr
        alone = [this for this, below in zip(text.splitlines(), text.splitlines()[1:]) if this[:1] == "W" and not below]
        expect("Where the time went" in text and not alone and "in 1 call, which" in text, f"{alone}: {text}")


def test_patterns_and_bytes():
    with Folder() as folder:
        for count, size, stride, said in ((300, 1000, 1000, "sequential"),
                                          (300, 1024, 20480, "strided: 1.0 kB every 20 kB"),
                                          (300, 4096, 0, "random")):
            report = report_of(reported(WATCHED, "read", folder.file, count, size, stride, 0))
            file = entry(report, "/data")
            expect(file["read"]["calls"] == count and file["read"]["bytes"] == count * size, str(file))
            expect(file["read_pattern"]["is"] == said, f"{said}: {file}")
        text = reported(WATCHED, "stdio", folder.path / "text").stderr
        expect("FAILED" not in text, text)
        file = entry(report_of(reported(WATCHED, "stdio", folder.path / "text")), "/text")
        expect(file["write"]["bytes"] == 1010 and file["read"]["bytes"] == 10, str(file))


def test_calls_with_flags_are_seen():
    """Python's preadv and pwritev are preadv2() and pwritev2() of glibc."""
    script = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
for i in range(7):
    os.preadv(fd, [bytearray(1000), bytearray(24)], 4096 * i)
for i in range(3):
    os.pwritev(fd, [b"x" * 100, b"y" * 50], 512 * i)
"""
    with Folder() as folder:
        file = entry(report_of(reported("/usr/bin/python3", "-c", script, folder.file)), "/data")
        expect((file["read"]["calls"], file["read"]["bytes"]) == (7, 7168), f"reads: {file}")
        expect((file["write"]["calls"], file["write"]["bytes"]) == (3, 450), f"writes: {file}")


def test_calls_that_the_kernel_refuses_are_refused_alike():
    """Wrong vectors, flags, positions and descriptors; a position of -1 is that of the descriptor."""
    script = """
import ctypes, errno, os, sys
libc, fd = ctypes.CDLL(None, use_errno=True), os.open(sys.argv[1], os.O_RDONLY)
vector = (ctypes.c_size_t * 2)(ctypes.addressof(data := ctypes.create_string_buffer(1 << 20)), 1 << 20)
libc.preadv2.restype, libc.preadv2.argtypes = ctypes.c_ssize_t, [ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_int]
calls = (fd, vector, 1, -1, 0), (fd, vector, 1, 0, 0x40000000), (fd, vector, 1, -2, 0), (fd, vector, 1 << 30, 0, 0), (fd, None, 1, 0, 0), (fd, vector, -1, 0, 0), (-1, vector, 1, 0, 0)
for call in calls:
    n = libc.preadv2(*call)
    print(n, errno.errorcode[ctypes.get_errno()] if n < 0 else "")
print(os.lseek(fd, 0, os.SEEK_CUR))
"""
    with Folder() as folder:
        alone = run(["/usr/bin/python3", "-c", script, folder.file]).stdout
        done = reported("/usr/bin/python3", "-c", script, folder.file)
        expect(done.stdout == alone and alone.count("-1 E") == 6, f"{done.stdout} {alone}")
        file = entry(report_of(done), "/data")
        expect(file["read"]["bytes"] == 1 << 20, f"{file}")


def test_other_processes():
    """fork, vfork and exec: each is seen once, and the program finds what it would without."""
    before = leftovers()
    with Folder() as folder:
        report = report_of(reported(WATCHED, "processes", folder.file))
        file = entry(report, "/data")
        size = folder.file.stat().st_size
        # one byte each in the parent, ten in the child, all of it by cat
        expect(file["read"]["bytes"] == 3 + 10 + size, f"{file}")
        expect(report["processes"] >= 3, str(report["processes"]))
    expect(leftovers() <= before, f"left: {leftovers() - before}")


def test_netcdf_programs():
    """Real programs on real data: the bytes of variables, and those of files as the kernel saw them."""
    need_program("ncks", "cdo")
    source = need_data("fields", "era5_u.nc")
    with Folder() as folder:
        copy = folder.path / "copy.nc"
        report = report_of(reported("ncks", "-O", "-h", source, copy))
        read, written = entry(report, "era5_u.nc", "era5_u"), [
            v for v in report["variables"] if v["variable"] == "era5_u" and v["write"]["calls"]]
        expect(read["read"]["bytes"] == written[0]["write"]["bytes"] > 300000, f"{read} {written}")
        expect(entry(report, "era5_u.nc")["read"]["bytes"] > 0.5 * source.stat().st_size, "file")
        writes = [f for f in report["files"] if "copy.nc" in f["file"]]
        expect(sum(f["write"]["bytes"] for f in writes) >= 0.9 * copy.stat().st_size, str(writes))
        expect(report["time"]["netcdf_library"] > 0, str(report["time"]))

        page = folder.path / "page.html"
        done = reported("cdo", "-s", "-O", "-timmean", source, folder.path / "mean.nc",
                        options=(f"--report={page}",))
        for words in ("What it did", "Where the time went", "What would help most", "era5_u"):
            expect(words in done.stderr, f"{words}: {done.stderr}")
        html = page.read_text()
        expect(html.count("<svg") >= 2 and "era5_u" in html, html[:2000])
        expect(not re.search(r"""(src|href)\s*=|url\(|@import""", html), "the page needs others")


def test_a_command_is_told_as_it_was_given():
    """cdo's names of containers become shorter in place; an argument may be empty."""
    need_program("cdo")
    with Site():
        text = reported("cdo", "-s", "-O", "-timmean", "esdm://none.nc", "esdm:///out/none.nc", options=("--report",), check=False).stderr
        expect("cdo -s -O -timmean esdm:none.nc esdm:out/none.nc\n" in text, text)
    text = reported("sh", "-c", "cat /dev/null", "", "after", options=("--report",)).stderr
    expect("cat /dev/null after\n" in text, text)


def test_files_that_are_renamed_have_their_names():
    """NCO writes to a file of another name until it is complete; a name that only looks so stays."""
    need_program("ncks", "nccopy")
    with Folder() as folder:
        (folder.path / "in.cdl").write_text("netcdf in { dimensions: t = UNLIMITED; variables: float v(t); data: v = 1, 2, 3; }")
        run(["ncgen", "-4", "-o", folder.path / "in.nc", folder.path / "in.cdl"])
        report = report_of(reported("sh", "-c", f"cd {folder.path}; for t in 0 1; do ncks -O -d t,$t in.nc out.nc; done"))
        expect(".tmp" not in json.dumps(report) and entry(report, "/out.nc")["write"]["calls"] > 1
               and entry(report, "/out.nc", "v")["write"]["bytes"] == 8, json.dumps(report, indent=1)[:3000])
        odd = "own.pid1.ncks.tmp.nc"
        report = report_of(reported("nccopy", folder.path / "in.nc", folder.path / odd))
        expect(entry(report, odd, "v"), "that is its name")


def test_modules_are_told_from_data():
    """What Python reads to begin is no reason to compress data."""
    with tempfile.TemporaryDirectory(dir=BUILD) as disk:
        for i in range(150):
            (pathlib.Path(disk) / f"m{i}.py").write_text(f"x = '{os.urandom(1 << 16).hex()}'\n")
        script = "import os, sys\nsys.dont_write_bytecode = True\n" + "".join(f"import m{i}\n" for i in range(150))
        (pathlib.Path(disk) / "run.py").write_text(script)
        for _ in range(3):
            for file in pathlib.Path(disk).iterdir():
                with open(file, "rb") as f:
                    os.fsync(f.fileno())
                    os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            text = " ".join(reported("/usr/bin/python3", pathlib.Path(disk) / "run.py", options=("--report",)).stderr.split())
            if "What took longest was storage itself" in text:
                expect(re.search(r"Most of it was no data: reading 1[5-9]\d files of the program's own code", text) and "Fewer bytes" not in text, text)
                return
        skip("this disk made nobody wait")


def test_what_cdo_takes_for_a_file_is_esdms():
    """What is made in memory for programs that look at files is no file of the user's; one commit is no "1 commits"."""
    need_program("cdo")
    source = need_data("fields", "era5_u.nc")
    with Site():
        reported("cdo", "-s", "-O", "copy", source, "esdm://a.nc")
        text = reported("cdo", "-s", "-O", "timmean", "esdm://a.nc", "esdm://b.nc", options=("--report",)).stderr
        lines = [line for line in text.splitlines() if "esdm-stub" in line]
        expect(lines and all("ESDM's stand-in for a file" in line for line in lines), text)
        expect(" for 1 commit." in text, text)


def test_advice_names_what_took_the_time():
    """A program whose time goes into nc_sync() is told so, first or behind what it compresses each time, and how often it was called."""
    with Folder() as folder:
        advice = report_of(reported(WATCHED, "synced", folder.path / "s.nc"))["advice"]
        expect(any("nc_sync" in a["text"] and "called 40 times" in a["text"] for a in advice[:2]),
               json.dumps(advice, indent=1))


def test_advice_is_true():
    """What a scientist would follow: a file of fill values becomes as small as is said; ESDM's catalogue is nobody's
    small pieces, a file that is replaced is no file too many, and what memory has is not said to come from a device."""
    need_program("ncra", "ncks")
    with Site() as site:
        run([tool("esdm-pattern"), "-q", "-s", "time=120,lat=192,lon=288", "-v", "tas", site.file("in.nc")])
        run(["ncks", "-O", "--mk_rec_dmn", "time", site.file("in.nc"), site.file("record.nc")])
        done = reported("ncra", "-O", site.file("record.nc"), site.file("mean.nc"))
        advice = [a["text"] for a in report_of(done)["advice"]]
        found = [a for a in advice if "stored in chunks of 120 x 192 x 288" in a and "fill values" in a]
        large = site.file("mean.nc").stat().st_size
        expect(len(found) == 1 and "has 27 MB for 221 kB of values" in found[0] and large > 20e6, f"{large} {advice}")
        run(["ncra", "-O", "--cnk_dmn", "time,1", site.file("record.nc"), site.file("mean.nc")])
        expect(site.file("mean.nc").stat().st_size < 400e3, "the advice did not help")
        text = reported("nccopy", site.file("record.nc"), site.file("copy.nc"), options=("--report",)).stderr
        text += reported("nccopy", site.file("record.nc"), site.file("copy.nc"), options=("--report",)).stderr
        expect("put many small" not in text, text)
        done = reported(WATCHED, "synced", "esdm://s.nc", options=("--report",))
        expect("ESDM's catalogue" in done.stderr and "small pieces" not in done.stderr and "0 bytes of 0" not in done.stderr
               and "NetCDF library" not in done.stderr, done.stderr)
        done = report_of(reported(WATCHED, "synced", site.file("s.nc")))
        expect(any("chunks had changed" in a["text"] for a in done["advice"][:2]), json.dumps(done["advice"], indent=1))


def test_the_same_for_esdm():
    need_program("nccopy")
    source = need_data("fields", "era5_u.nc")
    with Site():
        done = reported("nccopy", source, "esdm://a/b.nc", options=("--report",))
        expect("esdm:" in done.stderr and "ESDM made" in done.stderr, done.stderr)
        report = report_of(reported("ncks", "--trd", "-H", "-C", "-v", "era5_u", "esdm://a/b.nc"))
        found = [v for v in report["variables"] if v["variable"] == "era5_u"]
        expect(len(found) == 1 and found[0]["read"]["bytes"] > 300000, str(found))


def test_python_with_its_own_library():
    """A libnetcdf that an extension has loaded for itself."""
    if SANITIZE:
        skip("Python is not sanitized")
    source = need_data("fields", "era5_u.nc")
    code = f"import netCDF4; print(netCDF4.Dataset({str(source)!r})['era5_u'][:].shape)"
    if run(["/usr/bin/python3", "-c", code], check=False).returncode != 0:
        skip("no netCDF4 for Python")
    report = report_of(reported("/usr/bin/python3", "-c", code))
    expect(entry(report, "era5_u.nc", "era5_u")["read"]["bytes"] > 300000, "not seen")


@by_clock  # who waits long for one file has the others put together
def test_files_that_nobody_named():
    """Packs of ESDM, whose numbers are hexadecimal, and of ranks; what Open MPI has for itself."""
    with Folder() as folder:
        pack = f"{'0f' * 16}-{'1e' * 8}"
        names = {f"{pack}-1f": "ESDM's data", f"{pack}-3-0": "ESDM's data", f"{pack}-3-0-1": "1 call",
                 f"{pack}-x": "1 call", "initial-pmix_shared-segment-0": "MPI's own"}
        for name in names:
            (folder.path / name).write_bytes(b"1" * 100000)
        code = "import sys; [open(n, 'rb', buffering=0).read(200000) for n in sys.argv[1:]]"
        done = reported("/usr/bin/python3", "-c", code, *[folder.path / name for name in names], options=("--report",))
        text = done.stderr[done.stderr.index("What it did"):]
        for name, how in names.items():
            found = [line for line in text.splitlines() if line.split()[:1] and line.split()[0].endswith(name[-8:])]
            expect(len(found) == 1 and how[2:] in found[0], f"{name}: {how}: {text}")


def test_a_killed_program():
    before = leftovers()
    with Folder() as folder:
        done = reported(WATCHED, "killed", folder.file, options=("--report",), check=False)
        expect(done.returncode == -signal.SIGKILL, f"{done.returncode} {done.stderr}")
        expect("ended by signal 9" in done.stderr and "100 kB" in done.stderr, done.stderr)
    expect(leftovers() <= before, f"left: {leftovers() - before}")


def test_a_program_that_fails():
    """Its exit status is told: what follows is not what it should have done."""
    with Folder() as folder:
        small = folder.path / "small"
        small.write_bytes(b"1")
        done = reported("/bin/sh", "-c", f"cat {20 * (str(folder.file) + chr(32))} {small} > /dev/null; exit 3", options=("--report",), check=False)
        expect(done.returncode == 3 and "the program ended with exit status 3" in done.stderr, done.stderr)
        expect(re.search("and 1 other, [0-9.]+ .?s\n", done.stderr), done.stderr)
        done = reported("/bin/cat", folder.file, options=("--report",))
        expect("exit status" not in done.stderr, done.stderr)


COLUMNS = """
import sys, netCDF4, numpy
with netCDF4.Dataset(sys.argv[1], "w") as d:
    for name, size in (("t", 40), ("y", 200), ("x", 200)):
        d.createDimension(name, size)
    d.createVariable("v", "f4", ("t", "y", "x"), zlib=True, chunksizes=(1, 200, 200))[:] = numpy.random.rand(40, 200, 200)
for first in range(0, 200, 20): # chunks are kept as long as the file is open
    with netCDF4.Dataset(sys.argv[1]) as d:
        for i in range(first, first + 20):
            d["v"][:, i, 7]
"""


def test_calls_without_decoding_take_time_too():
    """200 columns: what a file without deflate would take is more than a copy of their 32 kB."""
    if run(["/usr/bin/python3", "-c", "import netCDF4"], check=False).returncode != 0:
        skip("no python3-netcdf4")
    with Folder() as folder:
        done = reported("/usr/bin/python3", "-c", COLUMNS, folder.path / "v.nc", options=("--report",))
        text = " ".join(done.stderr.split())
        found = re.search(r"would take about ([0-9.]+) (\S+);", text)
        expect(found and found[2] == "ms" and float(found[1]) >= 2, text)


AGAIN = """
import sys, netCDF4
for _ in range(int(sys.argv[2])):
    with netCDF4.Dataset(sys.argv[1]) as d:
        d["v"].set_var_chunk_cache(1, 1, 0.75) # none is kept
        for i in range(int(sys.argv[3])):
            d["v"][:, i, :] if int(sys.argv[3]) > 1 else d["v"][:]
"""
TWENTY_STEPS = """
import sys, netCDF4, numpy
with netCDF4.Dataset(sys.argv[1], "w") as d:
    for name, size in (("t", 20), ("y", 200), ("x", 200)):
        d.createDimension(name, size)
    d.createVariable("v", "f4", ("t", "y", "x"), zlib=True, chunksizes=(1, 200, 200))[:] = numpy.random.rand(20, 200, 200)
"""


def test_a_file_that_is_opened_again_is_no_chunk_that_is_read_again():
    """Both read twenty times what the file has; what helps differs."""
    if SANITIZE or run(["/usr/bin/python3", "-c", "import netCDF4"], check=False).returncode != 0:
        skip("no python3-netcdf4, or it is not sanitized")
    with Folder() as folder:
        file = folder.path / "v.nc"
        run(["/usr/bin/python3", "-c", TWENTY_STEPS, file])
        texts = {}
        for case in ((20, 1), (1, 20)):
            done = reported("/usr/bin/python3", "-c", AGAIN, file, *case)
            texts[case] = [a["text"] for a in report_of(done)["advice"] if a["text"].startswith("v.nc was ")]
        expect(len(texts[20, 1]) == 1 and "was opened and read 20 times, about" in texts[20, 1][0] and "chunk" not in texts[20, 1][0]
               and re.search(r"20 times, about 2\.\d MB each time: 5\d MB from a file of 2\.\d MB", texts[20, 1][0]), str(texts))
        expect(len(texts[1, 20]) == 1 and re.search(r"was read (19|20|21)\.\d times over", texts[1, 20][0]) and "nc_set_chunk_cache" in texts[1, 20][0],
               str(texts))


STEPWISE = """
import sys, netCDF4, numpy
values = numpy.random.default_rng(1).integers(0, 100, (96, 144)).astype("f4")
with netCDF4.Dataset(sys.argv[1], "w") as d:
    for name, size in (("time", None), ("lat", 96), ("lon", 144)):
        d.createDimension(name, size)
    v = d.createVariable("tas", "f4", ("time", "lat", "lon"), zlib=True)
    for i in range(400):
        v[i] = values + i % 30
"""
PLACES = """
import sys, netCDF4
v = netCDF4.Dataset(sys.argv[1])["tas"]
for i in range(12):
    v[:, i * 5, i * 7].mean()
"""


def test_a_chunk_cache_is_told_that_helps():
    """How much the library decompressed for a few values, and the cache that ends it: with it, the sentences are gone."""
    if SANITIZE or run(["/usr/bin/python3", "-c", "import netCDF4"], check=False).returncode != 0:
        skip("no python3-netcdf4, or it is not sanitized")
    with Folder() as folder:
        file = folder.path / "tas.nc"
        run(["/usr/bin/python3", "-c", STEPWISE, file])
        text = " ".join(reported("/usr/bin/python3", "-c", PLACES, file, options=("--report",)).stderr.split())
        expect(re.search(r"tas.nc was read 1[12]\.\d times over", text) and "ESDM_NC_CHUNK_CACHE=32M esdm-run PROGRAM" in text, text)
        found = re.search(r"for 19 kB \([^)]*\), for which whole chunks of (\d+) MB were decompressed", text)
        expect(found and 250 <= int(found[1]) <= 280, f"12 times 22 MB: {text}")
        better = re.search(r"\(nccopy -d0\), would take about (\d+) ms", text)
        expect(better and 40 <= int(better[1]) <= 100, f"these are copied from the file: {text}")
        expect("Its chunks of 1 x 96 x 144 hold far more than the program takes of them" in text, text)
        text = " ".join(reported("/usr/bin/python3", "-c", PLACES, file, options=("--report",), env={"ESDM_NC_CHUNK_CACHE": "32M"}).stderr.split())
        expect("times over" not in text, text)


WHOLE = """
import os, sys, netCDF4, numpy
if os.fork() == 0: # a child that leaves no time
    os._exit(0)
with netCDF4.Dataset(sys.argv[1], "w") as d:
    for name, size in (("t", 60), ("y", 200), ("x", 200)):
        d.createDimension(name, size)
    d.createVariable("v", "f4", ("t", "y", "x"), zlib=True, chunksizes=(1, 200, 200))[:] = numpy.random.rand(60, 200, 200)
for _ in range(20): # most of the work
    with netCDF4.Dataset(sys.argv[1]) as d:
        d["v"][:]
"""


def on_a_busy_processor(*command, options):
    """Beside three programs that compute on the same one."""
    processor = min(os.sched_getaffinity(0))
    # Each in a session of its own: Linux may share processors out among sessions.
    others = [subprocess.Popen(["taskset", "-c", str(processor), "/bin/sh", "-c", "while :; do :; done"], start_new_session=True)
              for _ in range(3)]
    try:
        return reported(*command, options=options, before=("taskset", "-c", processor))
    finally:
        for other in others:
            other.kill()
            other.wait()


@by_clock  # which wait is longest goes by the others on the machine
def test_who_waits_for_a_processor_does_not_work():
    """Decompression that shares a processor with three other programs is not four times the work, and going without it saves no more
    than the work."""
    if run(["/usr/bin/python3", "-c", "import netCDF4"], check=False).returncode != 0:
        skip("no python3-netcdf4")
    need_program("taskset")
    with Folder() as folder:
        done = on_a_busy_processor("/usr/bin/python3", "-c", WHOLE, folder.path / "v.nc", options=("--report",))
    text = " ".join(done.stderr.split())
    found = re.search(r"held up by decompression: ([0-9.]+) (\S+) of work at most \(calls took ([0-9.]+) (\S+): the rest they waited", text)
    units = {"µs": 1e-6, "ms": 1e-3, "s": 1}
    expect(found, done.stderr)
    work, calls = float(found[1]) * units[found[2]], float(found[3]) * units[found[4]]
    saves = [float(n) * units[u] for n, u in re.findall(r"held up by decompression:.*?Could save up to ([0-9.]+) ([a-zµ]+)", text)]
    expect(work * 1.5 < calls and saves and saves[0] <= work, done.stderr)


PACKED = """
import sys, netCDF4, numpy
width = int(sys.argv[3]) if len(sys.argv) > 3 else 400
values = numpy.random.rand(5, width, width)
with netCDF4.Dataset(sys.argv[1], "w") as d:
    for name, size in (("t", 60), ("y", width), ("x", width)):
        d.createDimension(name, size)
    v = d.createVariable("v", "f4", ("t", "y", "x"), zlib=True, complevel=int(sys.argv[2]), chunksizes=(1, width, width))
    v.set_var_chunk_cache(64 << 20, 1009, 0.5)
    for t in range(0, 60, 5):
        v[t:t + 5] = values
"""


def test_compression_that_takes_the_time_is_told():
    """Of any level, with what to do: a lower one, or, where there is none, a container. All of it takes place while the file is closed."""
    if run(["/usr/bin/python3", "-c", "import netCDF4"], check=False).returncode != 0:
        skip("no python3-netcdf4")
    with Folder() as folder:
        for level, words in ((1, "with deflate 1. That is the fastest deflate; a container of ESDM"), (4, "with deflate 4. Deflate 1 would take little less; a container of ESDM"),
                             (6, "with deflate 6. Deflate 1 with shuffle")):
            done = reported("/usr/bin/python3", "-c", PACKED, folder.path / "v.nc", level, 200, options=("--report",))
            text = " ".join(done.stderr.split())
            expect("Writing was held up by compression" in text and words in text, done.stderr)
            expect("Nothing that is worth it" not in text, done.stderr)
            expect("NetCDF library: compression, conversion, copies" in text, done.stderr)
            expect(re.search(r"library's time [0-9.]+ m?s was closing files \(nc_close\)", text), done.stderr)


WHOLE_STEPS = """
import sys, netCDF4, numpy
values = numpy.random.rand(40000).astype("f4")
with netCDF4.Dataset(sys.argv[1], "w") as d:
    d.createDimension("t", None)
    d.createDimension("x", values.size)
    v = d.createVariable("v", "f4", ("t", "x"), zlib=True, complevel=1, chunksizes=(1, values.size))
    for t in range(40):
        v[t] = values
        d.sync()
"""


def test_chunks_of_one_step_are_not_blamed():
    """They are written once, however often the file is synchronised: what comes again are its tables."""
    if run(["/usr/bin/python3", "-c", "import netCDF4"], check=False).returncode != 0:
        skip("no python3-netcdf4")
    with Folder() as folder:
        text = " ".join(reported("/usr/bin/python3", "-c", WHOLE_STEPS, folder.path / "v.nc", options=("--report",)).stderr.split())
        expect("chunks had changed" not in text, text)
        told = re.search(r"nc_sync \(nf90_sync, sync in Python\) was called 40 times.*?Could save up to ([0-9.]+) (m?s)", text)
        took = re.search(r"Writing was held up by compression: ([0-9.]+) (m?s) of work", text)
        expect(took, text)
        seconds = [float(m[1]) / (1000 if m[2] == "ms" else 1) if m else 0 for m in (told, took)]
        expect(seconds[0] < 0.2 * seconds[1], f"compression has to be done once in any case: {text}")


BOTH = """
import sys, netCDF4, numpy
values = numpy.random.rand(500000).astype("f4")
def write(path, rows, level):
    with netCDF4.Dataset(path, "w") as d:
        d.createDimension("t", None)
        d.createDimension("x", values.size)
        v = d.createVariable("v", "f4", ("t", "x"), zlib=level > 0, complevel=level or 4, chunksizes=(1, values.size))
        for t in range(rows):
            v[t] = values
write("esdm://big.nc", 150, 0)
write(sys.argv[1], 1, 1)
for path, times in ("esdm://big.nc", 2), (sys.argv[1], 1):
    with netCDF4.Dataset(path) as d:
        for _ in range(times):
            d["v"][:]
"""


def test_what_containers_take_is_not_told_of_a_small_compressed_file():
    if run(["/usr/bin/python3", "-c", "import netCDF4"], check=False).returncode != 0:
        skip("no python3-netcdf4")
    with Folder() as folder, Site():
        done = reported("/usr/bin/python3", "-c", BOTH, folder.path / "small.nc", options=("--report",))
        text = " ".join(done.stderr.split())
        expect("NetCDF library and ESDM" in text and "held up by" not in text, done.stderr)


ROWS = """
import sys, netCDF4, numpy
with netCDF4.Dataset(sys.argv[1], "w") as d:
    for name, size in (("t", 10), ("y", 200), ("x", 200)):
        d.createDimension(name, size)
    d.createVariable("v", "f4", ("t", "y", "x"), zlib=sys.argv[2] == "1", chunksizes=(1, 200, 200))[:] = numpy.random.rand(10, 200, 200)
with netCDF4.Dataset(sys.argv[1]) as d:
    for i in range(12000):
        d["v"][i % 10, i // 10 % 200]
"""


def test_many_calls_cost_calls_and_decompression():
    """It is said to be mostly the cost of calls where nothing is compressed alone."""
    if run(["/usr/bin/python3", "-c", "import netCDF4"], check=False).returncode != 0:
        skip("no python3-netcdf4")
    with Folder() as folder:
        for compressed, words in ((0, "mostly the cost of calls."), (1, "the cost of calls, and of compression.")):
            done = reported("/usr/bin/python3", "-c", ROWS, folder.path / "v.nc", compressed, options=("--report",))
            text = " ".join(done.stderr.split())
            expect(f"together: {words} Read whole fields or many steps" in text, done.stderr)


def test_the_page_tells_where_the_time_went():
    """As the text does, waiting for processors in the library, too, when one processor is shared with three other programs."""
    if run(["/usr/bin/python3", "-c", "import netCDF4"], check=False).returncode != 0:
        skip("no python3-netcdf4")
    need_program("taskset")
    with Folder() as folder:
        page = folder.path / "page.html"
        done = on_a_busy_processor("/usr/bin/python3", "-c", PACKED, folder.path / "v.nc", 4, options=(f"--report={page}",))
        text = " ".join(done.stderr.split())
        found = re.search(r"The program had processors for \S+ \S+ in all: in at least \S+ \S+ of its own time and the library's it "
                          r"waited, for processors that others used", text)
        expect(found, done.stderr)
        shown = page.read_text()
        shares = shown[shown.index("<h2>Where the time went"):shown.index("<h2>Bytes over time")]
        expect(found[0] in shares.replace("&#39;", "'").replace("&apos;", "'"), shares)
        rows = re.findall(r"<td>([^<]+)</td><td>([^<]+)</td><td>(\d+) %</td>", shares)
        expect(len(rows) >= 2 and all(f"{what} " in text and f"{share} %" in text for what, _, share in rows), f"{rows}\n{done.stderr}")


def test_what_cannot_be_written_stops_nobody():
    """Records that find no room are counted; statuses are the program's; wrong options are told."""
    with Folder() as folder:
        report = report_of(reported(WATCHED, "read", folder.file, 20000, 10, 10, 0,
                                    env={"ESDM_WATCH_MB": "1"}))
        expect(report["dropped"] > 1000, str(report["dropped"]))
        expect(entry(report, "/data")["read"]["calls"] == 20000, "counters are not exact")
        done = reported(WATCHED, "nothing", check=False)
        expect(done.returncode == 2, str(done.returncode))
        records = folder.path / "records"
        reported(WATCHED, "read", folder.file, 10, 10, 10, 0, options=("--records", str(records)))
        expect("10 calls" in run([tool("esdm-explain"), records]).stdout, "records")
        expect_error(run([tool("esdm-explain"), folder.path], check=False), "holds no records")
        done = reported(WATCHED, "read", folder.file, 1, 1, 1, 0, check=False,
                        options=("--records", "/proc/x/y"))
        expect(done.returncode == 125, done.stderr)


def test_ranks_make_one_report():
    need_program("mpirun")
    with Folder() as folder:
        env = mpirun.environment(str(folder.path))
        for command in ([tool("esdm-run"), "-q", "--report", "--json", WATCHED, "rank", folder.path / "f"],):
            done = subprocess.run(["mpirun", "-n", "4", *map(str, command)], capture_output=True, text=True,
                                  env=client_environment(env), stdin=subprocess.DEVNULL, timeout=600,
                                  check=False)
            expect(done.returncode == 0, done.stderr[-3000:])
            expect(done.stderr.count('"command"') == 1, f"not one report: {done.stderr[-3000:]}")
            report = report_of(done)
            expect(report["ranks"] == 4, str(report["ranks"]))
            text = subprocess.run([w for w in ["mpirun", "-n", "4", *map(str, command)] if w != "--json"], capture_output=True, text=True,
                                  env=client_environment(env), stdin=subprocess.DEVNULL, timeout=600, check=False).stderr
            section = text[text.index("of all ranks together, and as shares"):text.index("What would help")]
            shares = [int(n) for n in re.findall(r"s +(\d+) %\n", section)]
            expect(shares and sum(shares) <= 101, text)
            for rank in range(4):
                file = entry(report, f"/f.{rank}", "tas")
                expect(file["write"]["bytes"] == 50 * 1000 * 4 and file["read"]["calls"] == 50, str(file))


def test_a_second_job_in_one_folder_waits_for_its_own_ranks():
    """Files of an earlier job said that all were done, and the report lacked what the other rank still did."""
    with Folder() as folder:
        def rank(job, number, seconds):
            env = {"PMIX_NAMESPACE": f"job{job}", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
                   "OMPI_COMM_WORLD_RANK": str(number)}
            return subprocess.Popen([tool("esdm-run"), "--records", folder.path / "records", "--report", "--json", "sh", "-c",
                                     f"sleep {seconds}; cat {folder.file} > {folder.path}/out.{job}.{number}"],
                                    text=True, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=client_environment(env))
        for job in (1, 2):
            last, first = rank(job, 1, 2 * (job - 1)), rank(job, 0, 0)
            told = first.communicate(timeout=300)[1]
            expect(last.wait(timeout=60) == 0 and "lacks" not in told, told[:3000])
            files = [f["file"] for f in json.loads(told[told.index("{\n"):])["files"]]
            for number in range(2):
                expect(any(f.endswith(f"/out.{job}.{number}") for f in files), f"job {job}: rank {number} of {files}")


main(test_files_that_are_renamed_have_their_names, test_modules_are_told_from_data, test_calls_that_the_kernel_refuses_are_refused_alike, test_many_calls_cost_calls_and_decompression, test_what_cdo_takes_for_a_file_is_esdms, test_the_page_tells_where_the_time_went, test_calls_with_flags_are_seen, test_compression_that_takes_the_time_is_told, test_chunks_of_one_step_are_not_blamed, test_what_containers_take_is_not_told_of_a_small_compressed_file, test_who_waits_for_a_processor_does_not_work, test_a_program_that_fails, test_calls_without_decoding_take_time_too,
     test_a_file_that_is_opened_again_is_no_chunk_that_is_read_again, test_a_chunk_cache_is_told_that_helps, test_short_run__is_said_to_tell_little,
     test_headings_have_something_below,
     test_patterns_and_bytes, test_other_processes, test_netcdf_programs,
     test_a_command_is_told_as_it_was_given, test_advice_names_what_took_the_time, test_advice_is_true, test_the_same_for_esdm,
     test_python_with_its_own_library, test_files_that_nobody_named, test_a_killed_program, test_what_cannot_be_written_stops_nobody,
     test_ranks_make_one_report, test_a_second_job_in_one_folder_waits_for_its_own_ranks)
