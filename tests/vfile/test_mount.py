#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-mount: containers as files for programs that know nothing of ESDM."""

import concurrent.futures
import contextlib
import json
import mmap
import os
import pathlib
import shutil
import signal
import subprocess
import time

from esdmtest import SANITIZE, SOURCE, Site, client, expect, expect_error, main, need_data, run, skip, tool
from mounts import mounted, need_fuse

MOST_MEMORY_KIB = 256 * 1024


def fill(site):
    """Containers in folders; returns the files they were made of."""
    folder = need_data("fields")
    pop = min(pathlib.Path(folder).glob("*.nc"), key=lambda p: p.stat().st_size)
    made = {"a/b/field.nc": pop}
    for name in ("all_types", "user_types"):
        made[f"{name}.nc"] = site.file(f"{name}.nc")
        run(["ncgen", "-k", "nc4", "-o", made[f"{name}.nc"], SOURCE / f"tests/netcdf/clients/{name}.cdl"])
    for name, file in made.items():
        run([tool("esdm-cp"), file, f"esdm://{name}"])
    return made


def dump(file, *options):
    return run(["ncdump", *options, file]).stdout.split("\n", 1)[1]


def test_views__are_folders():
    need_fuse()
    with Site(views={"kinds": "{kind}/{part}"}) as site:
        for i in (1, 2):
            cdl = site.file(f"{i}.cdl")
            cdl.write_text('netcdf x { dimensions: time = UNLIMITED ; variables: double time(time) ; time:units = '
                           f'"days since 2000-01-01" ; :kind = "a/b" ; :part = "one" ; data: time = {i} ; }}')
            run(["ncgen", "-k", "nc4", "-o", site.file(f"{i}.nc"), cdl])
            run([tool("esdm-cp"), site.file(f"{i}.nc"), f"esdm://in/{i}.nc"])
        with mounted(site, "--write", "--staging", site.file("staged")) as (mnt, _):
            expect(sorted(os.listdir(mnt / "@views")) == ["cmip6", "cmip7", "cordex", "kinds"], "views")
            expect(os.listdir(mnt / "@views/kinds") == ["a%2Fb"], "an escaped value")
            file = mnt / "@views/kinds/a%2Fb/one"
            expect(os.listdir(file.parent) == ["one"] and file.is_file(), "the last level")
            expect("time = 1, 2 ;" in run(["ncdump", "-v", "time", file]).stdout, "both as one")
            expect(not (mnt / "@views/kinds/nix").exists() and not (mnt / "@views/nix").exists(), "there is none")
            for wrong in (["touch", mnt / "@views/kinds/x"], ["rm", "-f", file], ["mkdir", mnt / "@views/x"],
                          ["sh", "-c", f"echo x > '{file}'"], ["mv", file, mnt / "y.nc"]):
                expect(run(wrong, check=False).returncode != 0, f"{wrong}")
            expect("@views" not in os.listdir(mnt), "as @snapshots it is not listed")


def test_stock_programs__see_files():
    need_fuse()
    with Site() as site:
        made = fill(site)
        with mounted(site) as (mnt, daemon):
            names = sorted(run(["find", ".", "-type", "f", "-name", "*.nc"], cwd=mnt).stdout.split())
            expect(names == sorted(f"./{n}" for n in made), f"find: {names}")
            for name, file in made.items():
                exported = site.file("exported.nc")
                exported.unlink(missing_ok=True)
                run([tool("esdm-cp"), f"esdm://{name}", exported])
                expect(dump(mnt / name) == dump(exported), f"ncdump sees another {name}")
                shutil.copyfile(mnt / name, site.file("copied.nc"))
                expect(site.file("copied.nc").read_bytes() == (mnt / name).read_bytes(), f"cp of {name}")
            listed = run(["ls", "-lR", mnt]).stdout
            expect("field.nc" in listed and str((mnt / "a/b/field.nc").stat().st_size) in listed, listed)
            run(["du", "-s", mnt])
            expect("esdm:" in run(["df", mnt]).stdout, "df")
            run(["cp", "-r", mnt, site.file("all")])
            if shutil.which("h5dump"):
                expect("GROUP" in run(["h5dump", "-H", mnt / "all_types.nc"]).stdout, "h5dump")
            h5py = subprocess.run(["/usr/bin/python3", "-c", "import sys, h5py\nwith h5py.File(sys.argv[1]) as f: print(len(f))",
                                   mnt / "all_types.nc"], capture_output=True, text=True, check=False)
            expect(h5py.returncode == 0 or "No module" in h5py.stderr, h5py.stderr)
            expect_error(run(["touch", mnt / "new.nc"], check=False), "read-only")
            expect_error(run(["rm", mnt / "all_types.nc"], check=False), "read-only")
            expect_error(run(["cat", mnt / "none.nc"], check=False), "no such file")
            if os.geteuid() == 0 and shutil.which("setpriv"):
                site.folder.chmod(0o755)
                expect_error(run(["setpriv", "--reuid=65534", "--clear-groups", "ls", mnt], check=False), "denied")
            memory = int(pathlib.Path(f"/proc/{daemon.pid}/status").read_text().split("VmHWM:")[1].split()[0])
            expect(SANITIZE or memory < MOST_MEMORY_KIB, f"{memory} KiB of memory")


def test_open_files__keep_their_snapshot():
    need_fuse()
    cdl = "netcdf x {{ dimensions: t = UNLIMITED; variables: int a(t); data: a = {}; }}"
    with Site() as site:
        def write(values, *options):
            site.file("x.cdl").write_text(cdl.format(values))
            site.file("x.nc").unlink(missing_ok=True)
            run(["ncgen", "-k", "nc4", "-o", site.file("x.nc"), site.file("x.cdl")])
            run([tool("esdm-cp"), *options, site.file("x.nc"), "esdm://x.nc"])
        write("1, 2")
        with mounted(site) as (mnt, _):
            before = (mnt / "x.nc").read_bytes()
            with open(mnt / "x.nc", "rb") as old:
                write("3, 4, 5", "--force")
                time.sleep(1.2)  # so long names are kept
                expect("a = 3, 4, 5" in dump(mnt / "x.nc"), "the new snapshot is not seen")
                expect(old.read() == before, "an open file changed")
            expect(run(["ls", mnt / "@snapshots/x.nc"]).stdout.split() != [], "no snapshots")


def test_unmounting_and_killing__breaks_nothing():
    need_fuse()
    with Site() as site:
        fill(site)
        with mounted(site) as (mnt, daemon):
            with open(mnt / "all_types.nc", "rb") as held:
                held.read(10)
                expect_error(run(["fusermount3", "-u", mnt], check=False), "busy")
                run(["fusermount3", "-u", "-z", mnt])
                held.read(10)
            expect(daemon.wait(60) == 0,
                   f"the daemon did not end in order: {site.file('mount.log').read_text()[-3000:]}")
        with mounted(site) as (mnt, daemon):
            with contextlib.suppress(OSError), open(mnt / "all_types.nc", "rb") as held:
                held.read(10)
                daemon.send_signal(signal.SIGKILL)
                daemon.wait()
            expect_error(run([tool("esdm-mount"), mnt], check=False), "fusermount3 -u")
            run(["fusermount3", "-u", mnt])
        run([tool("esdm-fsck")])
        with mounted(site) as (mnt, _):
            expect((mnt / "all_types.nc").stat().st_size > 0, "not mounted again")


def test_written_files__become_containers():
    need_fuse()
    with Site() as site:
        made = fill(site)
        with mounted(site, "--write", "--staging", site.file("staged")) as (mnt, _):
            (mnt / "new").mkdir()
            run(["cp", made["user_types.nc"], mnt / "new/copied.nc"])
            run([tool("esdm-cp"), "esdm://new/copied.nc", site.file("back.nc")])
            expect(dump(site.file("back.nc")) == dump(made["user_types.nc"]), "cp")
            run(["cp", made["all_types.nc"], mnt / "new/copied.nc"])  # replaces it
            expect(dump(mnt / "new/copied.nc") == dump(made["all_types.nc"]), "replaced")
            run(["ncgen", "-k", "nc4", "-o", mnt / "new/made.nc", SOURCE / "tests/netcdf/clients/settings.cdl"])
            run(["ncgen", "-k", "classic", "-o", mnt / "classic.nc", SOURCE / "tests/netcdf/clients/classic.cdl"])
            names = run([tool("esdm-ls")]).stdout.split()
            expect({"new/copied.nc", "new/made.nc", "classic.nc"} < set(names), f"{names}")
            expect(not [f for f in site.file("staged").rglob("*") if f.is_file()], "something stayed in the staging folder")
            run(["mv", mnt / "new/made.nc", mnt / "moved.nc"])
            run(["mv", mnt / "new", mnt / "old"])
            run(["rm", mnt / "classic.nc"])
            names = run([tool("esdm-ls")]).stdout.split()
            expect({"old/copied.nc", "moved.nc"} < set(names) and "classic.nc" not in names, f"{names}")
            expect_error(run(["rmdir", mnt / "old"], check=False), "not empty")
            (mnt / "empty/below").mkdir(parents=True)
            run(["rmdir", mnt / "empty/below", mnt / "empty"])
            # What is no NetCDF file stays, and what had its name before, too.
            before = dump(mnt / "moved.nc")
            site.file("bad.nc").write_text("this is no NetCDF file")
            expect_error(run(["cp", site.file("bad.nc"), mnt / "moved.nc"], check=False), "moved.nc")
            time.sleep(0.2)
            expect((mnt / "moved.nc.failed").read_text() == "this is no NetCDF file", "the failed file is lost")
            told = (mnt / "moved.nc.failed.why").read_text()
            expect("moved.nc" in told and "NetCDF" in told, f"the reason: {told}")
            expect(dump(mnt / "moved.nc") == before, "what was there is lost")
            run(["cp", made["all_types.nc"], mnt / "moved.nc"])  # it can be repeated
            expect(not (mnt / "moved.nc.failed.why").exists(), "a reason is left")
            before = dump(mnt / "moved.nc")
            expect_error(run(["sh", "-c", f"echo x >> {mnt}/moved.nc"], check=False), "not supported")
            run(["rm", mnt / "moved.nc.failed"])
            expect_error(run(["mkdir", mnt / "@snapshots/x"], check=False), "denied")
            # A snapshot stays as it was, whoever writes to it.
            expect_error(run(["cp", made["all_types.nc"], mnt / "@snapshots/moved.nc/1"], check=False), "denied")
            expect(dump(mnt / "moved.nc") == before == dump(mnt / "@snapshots/moved.nc/1"), "it was replaced")


def test_programs_that_overwrite__replace_containers():
    """HDF5 opens what is there, cuts it, and looks at its size."""
    need_fuse()
    with Site() as site:
        made = fill(site)
        with mounted(site, "--write", "--staging", site.file("staged")) as (mnt, _):
            run(["cp", made["all_types.nc"], mnt / "out.nc"])
            run(["nccopy", "-k", "nc4", made["user_types.nc"], mnt / "out.nc"])
            expect(dump(mnt / "out.nc") == dump(made["user_types.nc"]), "nccopy")
            run(["/usr/bin/python3", "-c", "import netCDF4, sys\n"
                 "with netCDF4.Dataset(sys.argv[1], 'w') as d:\n"
                 "    d.createDimension('x', 3)\n"
                 "    d.createVariable('v', 'f4', ('x',))[:] = [1, 2, 3]\n"
                 "assert netCDF4.Dataset(sys.argv[1])['v'][:].tolist() == [1, 2, 3]\n", mnt / "out.nc"])
            run(["ncgen", "-k", "classic", "-o", mnt / "out.nc", SOURCE / "tests/netcdf/clients/classic.cdl"])
            former = run([tool("esdm-ls"), "--replaced"]).stdout.splitlines()
            expect(sum(line.endswith(" out.nc") for line in former) >= 3, f"{former}")


def test_readers__keep_what_they_opened_while_a_program_overwrites():
    """Beyond the length that the file has meanwhile HDF5 would read zeros."""
    need_fuse()
    with Site() as site:
        file = site.file("x.nc")
        run(["ncgen", "-k", "nc4", "-o", file, SOURCE / "tests/netcdf/clients/all_types.cdl"])
        with mounted(site, "--write", "--staging", site.file("staged")) as (mnt, _):
            run(["cp", file, mnt / "x.nc"])
            with open(mnt / "x.nc", "rb", buffering=0) as reader:
                length = reader.seek(0, os.SEEK_END)
                writer = os.open(mnt / "x.nc", os.O_RDWR | os.O_TRUNC)
                try:
                    expect(os.fstat(writer).st_size == 0, "the writer has another file")
                    expect(len(os.pread(reader.fileno(), 2 * length, 0)) == length, "the reader has lost its file")
                    os.write(writer, b"part")
                    found = os.pread(reader.fileno(), 2 * length, 0)
                    expect(len(found) == length and not found.startswith(b"part"), f"{len(found)} of {length} bytes")
                    expect(os.fstat(writer).st_size == 4, f"the writer's file has {os.fstat(writer).st_size} bytes")
                finally:
                    with contextlib.suppress(OSError):  # it is no NetCDF file
                        os.close(writer)
                writer = os.open(mnt / "x.nc", os.O_WRONLY | os.O_TRUNC | os.O_APPEND)
                try:
                    for _ in range(3):  # the end is the writer's own
                        os.write(writer, b"part")
                        expect(len(os.pread(reader.fileno(), 10, length - 5)) == 5, "the reader has lost its file")
                    expect(os.fstat(writer).st_size == 12, f"the writer's file has {os.fstat(writer).st_size} bytes")
                finally:
                    with contextlib.suppress(OSError):
                        os.close(writer)


def test_several_writers__lose_nothing():
    need_fuse()
    with Site() as site:
        file = site.file("x.nc")
        run(["ncgen", "-k", "nc4", "-o", file, SOURCE / "tests/netcdf/clients/all_types.cdl"])
        with mounted(site, "--write", "--staging", site.file("staged")) as (mnt, _):
            with open(mnt / "x.nc", "wb") as first:
                first.write(file.read_bytes())
                first.flush()
                with open(mnt / "x.nc", "r+b"):  # changes nothing, and is the last one to go
                    expect_error(run(["mv", mnt / "x.nc", mnt / "y.nc"], check=False), "busy")
                    first.close()
                    time.sleep(0.3)
            until = time.monotonic() + 30
            while "x.nc" not in run([tool("esdm-ls")]).stdout.split() and time.monotonic() < until:
                time.sleep(0.05)
            expect("x.nc" in run([tool("esdm-ls")]).stdout.split(), "what the first one wrote is lost")
            expect(dump(mnt / "x.nc") == dump(file), "it differs")
            with contextlib.suppress(OSError):
                (mnt / "x.nc").write_text("this is no NetCDF file")
            until = time.monotonic() + 30
            while not (mnt / "x.nc.failed").exists() and time.monotonic() < until:
                time.sleep(0.05)
            expect_error(run(["mv", mnt / "x.nc.failed", mnt / "x.nc"], check=False), "exists")


def bytes_read(daemon):
    return int(pathlib.Path(f"/proc/{daemon.pid}/io").read_text().split("rchar:")[1].split()[0])


def stored_as_it_is(site):
    """A container x.nc of 12 MiB. @return a part of its values' bytes."""
    run(["/usr/bin/python3", "-c", """
import sys, netCDF4, numpy
with netCDF4.Dataset(sys.argv[1], "w") as d:
    d.createDimension("t", 12)
    d.createDimension("x", 1 << 18)
    values = numpy.random.default_rng(1).integers(0, 1 << 12, (12, 1 << 18)).astype("f4")
    d.createVariable("v", "f4", ("t", "x"))[:] = values
    open(sys.argv[2], "wb").write(values[7].tobytes())
""", site.file("x.nc"), site.file("part")])
    run([tool("esdm-cp"), site.file("x.nc"), "esdm://x.nc"])
    return site.file("part").read_bytes()


def test_values_stored_as_they_are__are_kept_once_in_memory():
    need_fuse()
    for codec, again, options in ("none", True, ["--direct"]), ("none", False, []), ("shuffle+zstd", False, ["--direct"]):
        with Site(engine={"codec": codec}) as site:
            stored_as_it_is(site)
            made = site.file("x.nc")
            with mounted(site, *options) as (mnt, daemon):
                whole = (mnt / "x.nc").read_bytes()
                before = bytes_read(daemon)
                expect((mnt / "x.nc").read_bytes() == whole, "a second reading has other bytes")
                told = bytes_read(daemon) - before
                direct = told > 12 << 20
                can = tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 6)
                expect(direct == (again and can), f"{codec}: {told} bytes were read by the daemon for the second reading")
                with open(mnt / "x.nc", "rb") as f:
                    pieces = [os.pread(f.fileno(), n, at) for at in (0, 5, len(whole) // 2 + 1, len(whole) - 7) for n in (1, 4097, 3 << 20)]
                    expect(pieces == [whole[at:at + n] for at in (0, 5, len(whole) // 2 + 1, len(whole) - 7)
                                      for n in (1, 4097, 3 << 20)], f"{codec}: pieces differ")
                    with mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as mapped:  # as scipy does
                        expect(mapped[:] == whole, f"{codec}: mapped, it has other bytes")
                expect(dump(mnt / "x.nc", "-h") == dump(made, "-h"), f"{codec}: ncdump")


def test_files_that_are_read_directly__are_read_ahead():
    need_fuse()
    if tuple(map(int, os.uname().release.split(".")[:2])) < (6, 6):
        skip("this kernel does not map files that are read directly: none is")
    piece = 1 << 20
    with Site(engine={"codec": "none"}) as site:
        stored = stored_as_it_is(site)
        with mounted(site, "--direct") as (mnt, daemon):
            whole = (mnt / "x.nc").read_bytes()
            expect(stored in whole, "other values")
            with open(mnt / "x.nc", "rb", buffering=0) as f:
                before = bytes_read(daemon)
                for i in range(3):
                    expect(f.read(piece) == whole[i * piece:][:piece], f"piece {i}")
                until = time.monotonic() + 60
                while bytes_read(daemon) - before < 3.9 * piece and time.monotonic() < until:
                    time.sleep(0.01)
                expect(bytes_read(daemon) - before > 3.9 * piece, "the fourth piece was not read ahead")
                f.seek(7 * piece + 5)  # what was read ahead is dropped
                expect(f.read(piece) == whole[7 * piece + 5:][:piece], "elsewhere")
                f.seek(3 * piece)
                expect(f.read() == whole[3 * piece:], "to the end")

                # Who opens it besides shares what the kernel keeps.
                expect((mnt / "x.nc").read_bytes() == whole, "the second who has it open")
                before = bytes_read(daemon)
                expect((mnt / "x.nc").read_bytes() == whole, "the third who has it open")
                expect(bytes_read(daemon) - before < piece, "the third does not read what the kernel keeps")

                # Threads that share an open file, and several programs.
                def read_all(step):
                    return b"".join(os.pread(f.fileno(), step, at) for at in range(0, len(whole), step)) == whole
                with concurrent.futures.ThreadPoolExecutor(4) as pool:
                    expect(all(pool.map(read_all, [piece, piece, 1 << 17, 3 << 20])), "threads read other bytes")
            site.file("whole").write_bytes(whole)
            programs = [subprocess.Popen(["cmp", mnt / "x.nc", site.file("whole")]) for _ in range(3)]
            expect([p.wait() for p in programs] == [0, 0, 0], "programs read other bytes")


def loop_over(file, step, beyond=0):
    """The bytes of a file, read with memory that begins so many bytes beyond a page."""
    memory = memoryview(mmap.mmap(-1, step + mmap.PAGESIZE))[beyond:beyond + step]
    whole = b""
    with open(file, "rb", buffering=0) as f:
        while n := f.readinto(memory):
            whole += memory[:n]
    return whole


def test_the_kernel__has_several_answers_made_at_the_same_time():
    need_fuse()
    if os.geteuid() != 0 or not os.access("/sys/class/bdi", os.W_OK):
        skip("only root tells the kernel how far to read ahead")
    piece = 1 << 20
    with Site(engine={"codec": "none"}) as site:
        stored_as_it_is(site)
        with mounted(site) as (mnt, daemon), open(mnt / "x.nc", "rb", buffering=0) as f:
            before = bytes_read(daemon)
            for i in range(3):
                expect(len(f.read(piece)) == piece, f"piece {i}")
            until = time.monotonic() + 60
            while bytes_read(daemon) - before < 4.9 * piece and time.monotonic() < until:
                time.sleep(0.01)
            told = bytes_read(daemon) - before
            expect(told > 4.9 * piece, f"{told} bytes were asked for when 3 MiB had been read")


def test_reading_ahead__is_never_in_vain_and_has_an_end():
    need_fuse()
    if tuple(map(int, os.uname().release.split(".")[:2])) < (6, 6):
        skip("this kernel does not map files that are read directly: none is")
    piece, files, most = 1 << 20, 40, 32
    with Site(engine={"codec": "none"}) as site:
        stored_as_it_is(site)
        client(["/usr/bin/python3", "-c", "import sys, netCDF4\nwith netCDF4.Dataset('esdm://x.nc', 'a') as d:\n"
                "    for i in range(int(sys.argv[1])):\n        d.n = i\n        d.sync()", str(files)])
        with mounted(site, "--direct") as (mnt, daemon):
            whole = (mnt / "x.nc").read_bytes()
            # The kernel cuts reads where pages of the program's memory end: malloc() begins 16 bytes behind.
            for step, beyond in ((piece, 0), (piece, 16), (4 * piece, 16), (3 * piece + 5, 4000)):
                before = bytes_read(daemon)
                expect(loop_over(mnt / "x.nc", step, beyond) == whole, f"other bytes by {step}, {beyond}")
                told = bytes_read(daemon) - before
                expect(told < 1.1 * len(whole), f"by {step}, {beyond}: {told} bytes are read for {len(whole)}")
            with contextlib.ExitStack() as held:  # each of them would have the next bytes made
                opened = [held.enter_context(open(mnt / "@snapshots/x.nc" / name, "rb", buffering=0))
                          for name in os.listdir(mnt / "@snapshots/x.nc")][-files:]
                before, memory = bytes_read(daemon), mmap.mmap(-1, piece)
                for f in opened:
                    expect(f.readinto(memory) == piece, "cut off")
                until = time.monotonic() + 60
                while bytes_read(daemon) - before < (files + 0.9) * piece and time.monotonic() < until:
                    time.sleep(0.01)
                time.sleep(0.2)  # what comes beyond the bound, if there is any
                told = (bytes_read(daemon) - before) / piece
                expect(len(opened) == files and files < told < files + most + 1.5, f"{told} pieces for {files} of files")
            with open(mnt / "x.nc", "rb", buffering=0) as f:  # and what was kept for them is there for others
                before = bytes_read(daemon)
                expect(f.readinto(memory) == piece, "cut off")
                until = time.monotonic() + 60
                while bytes_read(daemon) - before < 1.9 * piece and time.monotonic() < until:
                    time.sleep(0.01)
                expect(bytes_read(daemon) - before > 1.9 * piece, "the second piece was not read ahead")


def test_queries__are_files_of_now():
    need_fuse()
    with Site() as site:
        for number in (1, 2):
            path = site.file(f"{number}.nc")
            site.file("m.cdl").write_text(
                "netcdf m { dimensions: t = UNLIMITED; variables: double t(t); int v(t); "
                f':pair = "p"; data: t = {number}; v = {number}; }}')
            run(["ncgen", "-k", "nc4", "-o", path, site.file("m.cdl")])
            run([tool("esdm-cp"), path, f"esdm://{number}.nc"])
        with mounted(site) as (mnt, _):
            expect("v = 1, 2 ;" in dump(mnt / "?pair=p"), "two")
            client(["/usr/bin/python3", "-c", "import netCDF4\nwith netCDF4.Dataset('esdm://2.nc', 'a') as d:\n"
                    "    d['t'][1] = 3\n    d['v'][1] = 3"])
            time.sleep(1.2)  # so long names are kept
            expect("v = 1, 2, 3 ;" in dump(mnt / "?pair=p"), "what was added is not seen")


def test_folder__wrong_ones_are_told():
    need_fuse()
    with Site() as site:
        expect_error(run([tool("esdm-mount"), site.file("none")], check=False), "no folder")
        expect_error(run([tool("esdm-mount"), "--format", "hdf4", site.folder], check=False), "netcdf4")
        full = site.file("full")
        full.mkdir()
        (full / "mine").write_text("")
        done = run([tool("esdm-mount"), full], check=False)
        expect(done.returncode == 4 and not os.path.ismount(full), f"over what lies there: {done}")
        expect_error(done, "not empty")
        told = json.loads(site.config.read_text())
        told["targets"].append({"name": "far", "plugin": "s3", "endpoint": "http://localhost:1", "bucket": "b"})
        site.file("far.json").write_text(json.dumps(told))
        site.file("empty").mkdir()
        done = run([tool("esdm-mount"), "--direct", "--config", site.file("far.json"), site.file("empty")], check=False)
        expect_error(done, "--direct", "leave the option out")
        expect(done.returncode == 4, f"{done}")
        with mounted(site) as (mnt, _):  # of a site that has nothing
            done = run([tool("esdm-mount"), "--write", mnt], check=False)
            expect(done.returncode == 4, f"mounted twice: {done}")
            expect_error(done, "mounted on", "fusermount3 -u")
            run(["fusermount3", "-u", mnt])
            expect(not os.path.ismount(mnt), "something is mounted below it")


main(test_stock_programs__see_files, test_views__are_folders, test_open_files__keep_their_snapshot,
     test_unmounting_and_killing__breaks_nothing,
     test_written_files__become_containers, test_programs_that_overwrite__replace_containers,
     test_readers__keep_what_they_opened_while_a_program_overwrites, test_several_writers__lose_nothing,
     test_queries__are_files_of_now, test_folder__wrong_ones_are_told, test_values_stored_as_they_are__are_kept_once_in_memory,
     test_files_that_are_read_directly__are_read_ahead, test_the_kernel__has_several_answers_made_at_the_same_time,
     test_reading_ahead__is_never_in_vain_and_has_an_end)
