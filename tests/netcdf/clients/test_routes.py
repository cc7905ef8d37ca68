#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Folders that the site configuration routes: plain creates by unmodified programs become
containers and stubs. Whatever is wrong with the configuration, plain files stay plain files."""

import json
import os
import pathlib
import shutil
import tempfile
import time

import clients
from esdmtest import (skip, BUILD, SANITIZE, SOURCE, Site, client, client_environment, environment, expect,
                      expect_error, main, need_program, run, tool)

COMPARE = BUILD / "tests/netcdf/clients/nc_compare"
CLASSIC = SOURCE / "tests/netcdf/clients/classic.cdl"
STUB = b"CDF\x01ESDM"

WRITE = """
import sys, netCDF4, numpy
with netCDF4.Dataset(sys.argv[1], 'w') as d:
    d.createDimension('x', 5)
    d.createVariable('v', 'f8', ('x',))[:] = numpy.arange(5) * 1.5
"""
READ = """
import sys, netCDF4
with netCDF4.Dataset(sys.argv[1]) as d:
    print(d['v'][:].tolist())
"""


class RoutedSite(Site):
    """A site that routes the folder `out` beside its configuration."""

    def __init__(self, **options):
        super().__init__(make=False, **options)

    def __enter__(self):
        super().__enter__()
        self.out = self.folder / "out"
        self.out.mkdir()
        self.configure({"routes": [str(self.out)]})
        run([tool("esdm-mkfs")])
        self.source = self.folder / "source.nc"
        run(["ncgen", "-k", "nc4", "-o", self.source, CLASSIC])
        return self

    def configure(self, netcdf):
        config = json.loads(self.config.read_text())
        config["netcdf"] = netcdf
        self.config.write_text(json.dumps(config))

    def container(self, name):
        return str(self.out).lstrip("/") + "/" + name


def containers():
    return run([tool("esdm-ls")]).stdout.split()


def expect_stub(path):
    expect(path.read_bytes()[:8] == STUB, f"{path} is no stub")


def expect_plain(path):
    expect(path.exists(), f"{path} was not made")
    expect(path.read_bytes()[:8] != STUB, f"{path} is a stub")


def check_program(site, command, name):
    """A program writes `name` into the routed folder; read back through the stub it is what the
    same program makes without ESDM."""
    path = site.out / name
    client([*command, path])
    expect_stub(path)
    expect(site.container(name) in containers(), f"{name}: {containers()}")
    left = [p.name for p in site.out.iterdir() if p != path]
    expect(not left, f"{name}: left behind: {left}")
    copy, direct = site.file("copy.nc"), site.file("direct.nc")
    client(["nccopy", path, copy])
    run([*command, direct])
    run([COMPARE, "--ignore-attribute", "_NCProperties", "--ignore-attribute", "history", copy,
         direct])
    path.unlink()


def test_nccopy_and_ncks():
    need_program("ncks", "nccopy", "ncgen")
    with RoutedSite() as site:
        check_program(site, ["nccopy", site.source], "a.nc")
        check_program(site, ["ncks", "-O", "-h", site.source], "b.nc")


def test_cdo():
    need_program("cdo", "ncgen")
    with RoutedSite() as site:
        check_program(site, ["cdo", "-f", "nc4", "-topo"], "c.nc")


def check_python(kind):
    python = clients.python_of(kind)
    with RoutedSite() as site:
        path = site.out / "deep" / "d.nc"
        path.parent.mkdir()
        client([python, "-c", WRITE, path])
        expect_stub(path)
        expect(site.container("deep/d.nc") in containers(), str(containers()))
        client([python, "-c", WRITE, path])  # again: replaces
        expect(len(containers()) == 1, str(containers()))
        got = client([python, "-c", READ, os.path.relpath(path, site.out)], cwd=site.out).stdout
        expect(got.strip() == "[0.0, 1.5, 3.0, 4.5, 6.0]", got)


def test_python_of_debian():
    check_python("debian")


def test_python_of_pypi():
    check_python("pypi")


def test_rename_of_a_stub_by_another_program():
    need_program("ncgen", "mv")
    with RoutedSite() as site:
        client(["nccopy", site.source, site.out / "x.tmp"])
        client(["mv", site.out / "x.tmp", site.out / "x.nc"])
        expect(containers() == [site.container("x.nc")], str(containers()))
        client(["ncdump", "-h", site.out / "x.nc"])


def test_environment_comes_first():
    need_program("ncgen")
    with RoutedSite() as site:
        client(["nccopy", site.source, site.out / "a.nc"],
               env={"ESDM_NC_ROUTE": f"{site.out}=named"})
        expect(containers() == ["named/a.nc"], str(containers()))


def test_entries_that_route_nothing_are_told():
    """A plain file in place of a container is no surprise; files that are routed say nothing."""
    need_program("ncgen", "ncks")
    with RoutedSite() as site:
        plain, typo = site.file("plain.nc"), f"{site.folder}/uot"
        for entry in (typo, f"{typo}=x", f"{site.out},{site.folder}", f"{typo}/*.nc"):
            done = client(["ncks", "-O", site.source, plain], env={"ESDM_NC_ROUTE": entry})
            expect_plain(plain)
            expect("plain.nc" in done.stderr, done.stderr)
            expect(f"ESDM_NC_ROUTE names '{entry.partition('=')[0]}'" in done.stderr, done.stderr)
            expect(done.stderr.count("ESDM_NC_ROUTE") == 1, done.stderr)
        for path, entry in ((plain, f"{site.folder}/o*/*.nc"), (plain, str(site.out)),
                            (site.out / "a.nc", f"{typo}:{site.out}")):
            done = client(["nccopy", site.source, path], env={"ESDM_NC_ROUTE": entry})
            expect("ESDM_NC_ROUTE" not in done.stderr, done.stderr)


def test_everything_and_patterns():
    need_program("ncgen", "ncdump", "cdo")
    with Site() as site:
        for folder in ("one", "one/out", "two", "two/out", "here"):
            site.file(folder).mkdir()
        source = site.file("source.nc")
        run(["ncgen", "-k", "nc4", "-o", source, CLASSIC])
        paths = [site.file(p) for p in ("one/out/a.nc", "two/out/a.nc", "one/b.nc")]
        for entry, routed, prefix in ((f"{site.folder}/*/out=x", paths[:2], "x"),
                                      ("*", paths, str(site.folder).lstrip("/"))):
            for path in paths:
                client(["nccopy", source, path], env={"ESDM_NC_ROUTE": entry})
                (expect_stub if path in routed else expect_plain)(path)
            names = [f"{prefix}/{path.relative_to(site.folder)}" for path in routed]
            expect(set(names) <= set(containers()), f"{names} {containers()}")
            for path in paths:
                run([COMPARE, source, path]) if path not in routed else client([COMPARE, source, path])
                path.unlink()
        # A program that leaves its names to its current folder.
        client(["cdo", "-f", "nc4", "-topo", "t.nc"], cwd=site.file("here"), env={"ESDM_NC_ROUTE": "*"})
        expect_stub(site.file("here/t.nc"))


def test_other_folders_stay_plain():
    need_program("ncgen")
    with RoutedSite() as site:
        client(["nccopy", site.source, site.file("plain.nc")])
        expect_plain(site.file("plain.nc"))
        expect(not containers(), str(containers()))


def test_stubs_of_nothing_and_copies_are_explained():
    need_program("ncgen", "ncatted")
    with RoutedSite() as site:
        path = site.out / "a.nc"
        client(["nccopy", site.source, path])
        copy = site.file("copied.nc")
        shutil.copy(path, copy)
        client(["ncdump", "-h", copy])
        expect_error(client(["ncatted", "-h", "-a", "x,global,c,c,y", copy], check=False),
                     "copy of the stub", "esdm-cp")
        run([tool("esdm-rm"), "-f", site.container("a.nc")])
        expect_error(client(["ncdump", "-h", path], check=False), "does not exist",
                     site.container("a.nc"))
        client(["nccopy", site.source, path])
        client(["ncdump", "-h", path])


def test_esdm_cp_of_a_folder_follows_stubs():
    """The data are copied, not the files that stand for them: into containers, and out again."""
    with RoutedSite() as site:
        (site.out / "deep").mkdir()
        for name in ("a.nc", "deep/b.nc"):
            client(["nccopy", site.source, site.out / name])
            expect_stub(site.out / name)
        run([tool("esdm-cp"), "-r", site.out, "esdm://all"])
        run([tool("esdm-cp"), "-r", site.out, site.folder / "plain"])
        for name in ("a.nc", "deep/b.nc"):
            run([tool("esdm-cp"), f"esdm://all/{name}", site.folder / "back.nc", "-f"])
            for copy in (site.folder / "back.nc", site.folder / "plain" / name):
                expect_plain(copy)
                run([COMPARE, site.source, copy])
        (site.out / "plain.nc").write_bytes(site.source.read_bytes())
        told = run([tool("esdm-cp"), "-r", site.out, site.folder / "other"]).stderr
        expect("1 file that lies there is plain already" in told and "cp copies it" in told, told)
        copied = sorted(p.relative_to(site.folder / "other") for p in (site.folder / "other").rglob("*.nc"))
        expect([str(p) for p in copied] == ["a.nc", "deep/b.nc"], str(copied))


def test_tools_follow_stubs_or_say_what_to_type():
    with RoutedSite() as site:
        stub, name = site.out / "a.nc", site.container("a.nc")
        client(["nccopy", site.source, stub])
        moved = site.file("moved.nc")
        shutil.copy(stub, moved)
        for options in ([], ["--explain"], ["--json"]):
            shown = run([tool("esdm-stat"), *options, moved]).stdout
            expect(name in shown and "esdm_container" not in shown, shown)
        expect(run([tool("esdm-stat"), "a.nc"], cwd=site.out).stdout.startswith(f"esdm://{name}"), "")
        for source in (stub, site.out):
            told = json.loads(run([tool("esdm-advise"), "--json", "-n", "2", source]).stdout)
            expect(told["sources"] == 1 and told["unreadable"] == 0 and told["samples"] == 2, told)
        for options in ([], ["-r"]):
            done = run([tool("esdm-rm"), *options, "./a.nc"], check=False, cwd=site.out)
            expect_error(done, f"stands for container '{name}'", f"esdm-rm '{name}' && rm './a.nc'")
            expect(done.returncode == 3 and stub.exists() and containers() == [name], "it is gone")
        run([tool("esdm-rm"), name])
        expect_error(run([tool("esdm-stat"), stub], check=False), f"no container '{name}'")
        expect_error(run([tool("esdm-stat"), "a.nc"], cwd=site.out, check=False), f"'{name}'")


def test_a_second_run_by_programs_that_rename__replaces_the_first_one():
    """NCO writes a.nc.pid1.tmp and renames it."""
    need_program("ncks", "ncdump", "ncatted")
    with RoutedSite() as site:
        path = site.out / "a.nc"
        first, second = site.file("first.nc"), site.file("second.nc")
        for file, run_number in ((first, 1), (second, 2)):
            client(["ncks", "-O", site.source, file])
            client(["ncatted", "-O", "-a", f"run,global,c,l,{run_number}", file])

        def model(source):
            return client(["ncks", "-O", source, path]).stderr

        model(first)
        shutil.rmtree(site.out)
        site.out.mkdir()
        told = model(second)
        expect("replaces the container" in told, told)
        expect(containers() == [site.container("a.nc")], str(containers()))
        expect(":run = 2" in client(["ncdump", "-h", path]).stdout, "the first run is there")
        site.out.rename(site.folder / "old-run")  # what was moved away stays
        site.out.mkdir()
        told = model(first)
        expect("old-run/a.nc" in told, told)
        expect(containers() == [site.container("a.nc"), site.container("a.nc~2")], str(containers()))
        for file, run_number in ((path, 1), (site.folder / "old-run" / "a.nc", 2)):
            expect(f":run = {run_number}" in client(["ncdump", "-h", file]).stdout, f"{file}")


VALUE = """
import sys, netCDF4
with netCDF4.Dataset(sys.argv[1], 'w') as d:
    d.createDimension('x', 2)
    d.createVariable('v', 'i4', ('x',))[:] = int(sys.argv[2])
"""


def test_a_copy_of_a_stub_stays_what_it_was_copied_of():
    """`cp run/a.nc backup.nc`, and the program writes run/a.nc anew."""
    python = clients.python_of("debian")
    with RoutedSite() as site:
        path, backup = site.out / "a.nc", site.file("backup.nc")

        def value(file):
            return client([python, "-c", READ, file], check=False)

        def is_value(file, number):
            told = value(file)
            expect(told.returncode == 0 and f"[{number}, {number}]" in told.stdout,
                   f"{file}: {told.stdout}{told.stderr}")
            return told.stderr

        client([python, "-c", VALUE, path, 1])
        shutil.copy(path, backup)
        is_value(backup, 1)
        inode = path.stat().st_ino
        for number in (10, 11):
            client([python, "-c", VALUE, path, number])
            is_value(path, number)
            told = is_value(backup, 1)
            expect("former one" in told and "esdm-cp" in told, told)
        expect(path.stat().st_ino == inode, "the stub is another file")
        second = site.file("second.nc")
        shutil.copy(path, second)
        is_value(second, 11)
        # What stops before it commits replaces nothing.
        client([python, "-c", VALUE.replace("= int(", "= 1 / 0 * int("), path, 12], check=False)
        is_value(path, 11)
        is_value(second, 11)
        # A former one that is brought back stands behind the stub.
        name = site.container("a.nc")
        ids = [one["id"] for one in json.loads(run([tool("esdm-restore"), "--json", "--list", name]).stdout)["replaced"]]
        expect(len(ids) == 2, str(ids))
        run([tool("esdm-restore"), "--yes", "--id", ids[0], name])
        is_value(path, 1)
        is_value(backup, 1)
        # A time says the one that has the name again: the copy is refused, not shown with its data.
        expect_error(value(second), "stands for an earlier container", "esdm-restore --as")
        run([tool("esdm-gc"), "--replaced-now", "--yes"])
        expect_error(value(second), "stands for an earlier container")
        is_value(path, 1)


def test_a_second_run_replaces_the_first_one():
    """`rm -rf run; mkdir run; model` is one run. What was only moved away is not touched."""
    need_program("ncgen", "ncdump")
    other = CLASSIC.read_text().replace("data:", ":run = 2 ;\ndata:", 1)
    with RoutedSite() as site:
        site.file("other.cdl").write_text(other)
        run(["ncgen", "-k", "nc4", "-o", site.file("other.nc"), site.file("other.cdl")])
        path = site.out / "deep" / "a.nc"

        def model(source):
            path.parent.mkdir(parents=True, exist_ok=True)
            return client(["nccopy", source, path]).stderr

        def is_second(file):
            return ":run = 2 ;" in client(["ncdump", "-h", file]).stdout

        model(site.source)
        for gone in (site.out, path.parent):
            shutil.rmtree(gone)
            told = model(site.file("other.nc"))
            expect("replaces the container" in told, told)
            expect(containers() == [site.container("deep/a.nc")] and is_second(path), str(containers()))
        path.unlink()
        model(site.source)
        expect(len(containers()) == 1 and not is_second(path), str(containers()))
        # The whole folder, or the stub alone, is moved to where it can be found.
        for moved in (site.folder / "old-run", site.folder / "archive" / "deep" / "kept.nc"):
            moved.parent.mkdir(parents=True, exist_ok=True)
            (path if moved.suffix else site.out).rename(moved)
            before = containers()
            told = model(site.file("other.nc"))
            expect("old-run/deep/a.nc" in told or "kept.nc" in told, told)
            expect(len(containers()) == len(before) + 1 and is_second(path), str(containers()))
        expect(not is_second(site.folder / "old-run" / "deep" / "a.nc"), "its data are gone")
        expect(is_second(site.folder / "archive" / "deep" / "kept.nc"), "its data are gone")
        # Moved to where nobody looks: it does not show the data of another run.
        with tempfile.TemporaryDirectory() as elsewhere:
            far = pathlib.Path(elsewhere) / "far.nc"
            name = containers()[-1]
            path.rename(far)
            model(site.source)
            expect(name in containers() and not is_second(path), str(containers()))
            expect(is_second(far), "it shows another run")
            run([tool("esdm-gc"), "--replaced-now", "--yes"])
            expect_error(client(["ncdump", "-h", far], check=False), "earlier container", name)


def formers():
    return json.loads(run([tool("esdm-ls"), "--replaced", "--json"]).stdout)["replaced"]


def test_a_run_that_was_moved_far_away_stays():
    """Nobody knows whether the files of the last run were moved or removed, until one of them is read."""
    need_program("ncgen", "nccopy", "ncdump")
    with RoutedSite(replaced={"keep": 1}) as site, tempfile.TemporaryDirectory() as elsewhere:
        names, archive = ("a.nc", "b.nc", "c.nc"), pathlib.Path(elsewhere) / "archive" / "run"

        def model(number):
            source = site.file(f"{number}.cdl")
            source.write_text(CLASSIC.read_text().replace("data:", f":run = {number} ;\ndata:", 1))
            run(["ncgen", "-k", "nc4", "-o", site.file("run.nc"), source])
            site.out.mkdir(exist_ok=True)
            return "".join(client(["nccopy", site.file("run.nc"), site.out / name]).stderr for name in names)

        def collected(settings=None):
            if settings:
                config = json.loads(site.config.read_text())
                config["replaced"] = settings
                site.config.write_text(json.dumps(config))
            time.sleep(1.2)
            run([tool("esdm-gc"), "--yes"])
            return sorted(os.path.basename(former["name"]) for former in formers())

        def run_of(path):
            done = client(["ncdump", "-h", path], check=False)
            return done.stdout.split(":run = ")[-1].split(" ")[0] if done.returncode == 0 else None, done.stderr

        model(1)
        archive.parent.mkdir()
        shutil.move(site.out, archive)  # to another file system they come as copies
        told = model(2)
        expect("replaces the container" in told and "reading it there once" in told, told)
        expect(collected() == list(names), "longer than others, as the files may have been moved")
        expect(all(former["kept_until"] is not None for former in formers()), f"{formers()}")
        number, told = run_of(archive / "a.nc")
        expect(number == "1" and "as long as this file lies there" in told, f"{number} {told}")
        copied = archive.parent / "copied.nc"
        shutil.copy(archive / "b.nc", copied)
        client(["ncdump", "-h", copied])
        until = {os.path.basename(former["name"]): former["kept_until"] for former in formers()}
        expect(until["a.nc"] is None and until["b.nc"] is None and until["c.nc"] is not None, f"{until}")
        expect("its file is removed" in run([tool("esdm-ls"), "--replaced", "-l"]).stdout, "is not told")
        # Of c.nc nobody knows. What is there stays, though much less may be kept; and a full disk frees others.
        tight = {"keep": 1, "keep_moved": 1, "share": 0, "containers": 0}
        expect(collected(tight) == ["a.nc", "b.nc"], f"{formers()}")
        expect(run_of(archive / "a.nc")[0] == "1" and run_of(site.out / "a.nc")[0] == "2", "its data are gone")
        # Moved once more it is found by the next read; what was removed goes, a while after it was missed first.
        kept = {"keep": 1, "keep_moved": 1}
        (archive / "a.nc").rename(archive.parent / "moved.nc")
        copied.unlink()
        expect(collected(kept) == ["a.nc", "b.nc"], "they go as soon as they are missed")
        expect(run_of(archive.parent / "moved.nc")[0] == "1", "its data are gone")
        expect(collected() == ["a.nc"], f"{formers()}")
        run([tool("esdm-gc"), "--replaced-now", "--yes"])
        expect(formers() == [], f"{formers()}")
        expect_error(client(["ncdump", "-h", archive.parent / "moved.nc"], check=False), "earlier container")
        # A run that was removed is kept as long as one that was moved; a container that was removed is not.
        collected({"keep": 1, "keep_moved": "2d"})
        shutil.rmtree(site.out)
        model(3)
        run([tool("esdm-rm"), "-f", site.container("c.nc")])
        kept = collected()
        expect(kept == list(names), f"{kept}: those of run 2")
        expect(collected({"keep": 1, "keep_moved": 0}) == [], f"{formers()}")


COPY = "import shutil, sys; shutil.copyfile(sys.argv[1], sys.argv[2])"
TELL = "import sys, netCDF4; print(netCDF4.Dataset(sys.argv[1]).esdm_notice)"


def test_copied_bytes_tell_what_they_are():
    """By programs that know nothing of NetCDF, of a path that has no file: in each format."""
    need_program("nccopy", "dd", "cat", "cdo")
    python = clients.python_of("debian")
    with RoutedSite() as site:
        for kind in ("nc3", "nc6", "nc5", "nc4"):
            client(["nccopy", "-k", kind, site.source, "esdm://a.nc"])
            copies = [site.file(f"{kind}-{how}.nc") for how in ("shutil", "dd", "cat")]
            client([python, "-c", COPY, "esdm://a.nc", copies[0]])
            client(["dd", "if=esdm://a.nc", f"of={copies[1]}", "bs=4096", "status=none"])
            client(["sh", "-c", f"cat esdm://a.nc >{copies[2]}"])
            for copy in copies:
                expect(copy.read_bytes() == copies[0].read_bytes(), f"{copy} differs")
            dumped = run(["ncdump", "-h", copies[0]]).stdout
            expect(":esdm_notice = " in dumped, f"{kind}: {dumped}")
            for told in dumped, run([python, "-c", TELL, copies[0]]).stdout:
                expect("esdm-cp THIS_FILE plain.nc" in told, told)
            plain = site.file("plain.nc")
            client(["nccopy", copies[0], plain])
            run([COMPARE, plain, site.source])
            run([tool("esdm-cp"), "-f", copies[0], plain])
            run([COMPARE, plain, site.source])
            expect("a.nc" in run([tool("esdm-stat"), copies[0]]).stdout, "esdm-stat")


MEMORY = """
import ctypes, sys, netCDF4

class Memory(ctypes.Structure):  # NC_memio
    _fields_ = [("size", ctypes.c_size_t), ("memory", ctypes.c_void_p), ("flags", ctypes.c_int)]

with open("/proc/self/maps") as maps:
    nc = ctypes.CDLL(next(line.split()[-1] for line in maps if "/libnetcdf.so" in line))
numbers = ctypes.c_double * 3
for path in sys.argv[1:]:
    with open(path, "rb") as f:
        data = f.read()
    with netCDF4.Dataset("label", memory=data) as d:
        print(d["v"][:].tolist())
    buffer = ctypes.create_string_buffer(data, len(data))
    given, back = Memory(len(data), ctypes.addressof(buffer), 1), Memory()  # NC_MEMIO_LOCKED
    ncid, values = ctypes.c_int(), numbers(7, 8, 9)
    status = [nc.nc_open_memio(b"label", 1, ctypes.byref(given), ctypes.byref(ncid)),  # NC_WRITE
              nc.nc_put_var_double(ncid, 0, values), nc.nc_get_var_double(ncid, 0, numbers()),
              nc.nc_close_memio(ncid, ctypes.byref(back))]
    assert status == [0, 0, 0, 0] and back.size == len(data), status
"""


def test_stubs_in_memory():
    """What a program has read, as a service does that gets files as bytes: nc_open_mem(io)."""
    need_program("ncgen")
    python = clients.python_of("debian")
    cdl = "netcdf a { dimensions: x = 3 ; variables: double v(x) ; data: v = 1, 2, 3 ; }"
    with RoutedSite() as site:
        site.file("a.cdl").write_text(cdl)
        for kind in ("nc3", "nc6", "nc5", "nc4", "nc7"):
            path, raw = site.out / f"{kind}.nc", site.file("raw")
            client(["ncgen", "-k", kind, "-o", path, site.file("a.cdl")])
            raw.write_bytes(path.read_bytes())  # the stub itself, as programs without ESDM see it
            names = [path, raw, f"esdm://{site.container(path.name)}"]
            for _ in range(2):  # what is written in memory stays there
                got = client([python, "-c", MEMORY, *names]).stdout
                expect(got == 3 * "[1.0, 2.0, 3.0]\n", f"{kind}: {got}")


def test_stubs_may_be_called_as_their_attributes():
    """The path of a stub stands in it, too; its padding is another one in each of four."""
    with RoutedSite() as site:
        for letters in ("", "a", "ab", "abc"):
            stub = site.out / f"{letters}esdm_container"
            client(["nccopy", site.source, stub])
            name = site.container(stub.name)
            expect(name in run([tool("esdm-stat"), stub]).stdout, f"{letters}: another container")
            copy = site.file(f"{letters}.nc")
            run([tool("esdm-cp"), stub, copy])
            expect(copy.stat().st_size > 8192, f"{letters}: the stub was copied")


def test_wrong_configurations_break_no_plain_program():
    need_program("ncgen")
    with RoutedSite() as site:
        plain = site.out / "plain.nc"

        def check(what, said, env=None):
            done = client(["nccopy", site.source, plain], env=env)
            expect_plain(plain)
            expect(not done.stderr, f"{what}: {done.stderr}")
            done = client(["nccopy", site.source, plain], env=dict(env or {}, ESDM_DEBUG="1"))
            expect(said in done.stderr, f"{what}: {done.stderr}")
            plain.unlink()

        check("no file", "no folder is routed", {"ESDM_CONFIG": str(site.file("none.json"))})
        text = site.config.read_text()
        site.config.write_text(text[:-20])
        check("no JSON", "no folder is routed")
        site.config.write_text(text.replace('"netcdf"', '"netcfd"'))
        check("unknown key", "netcdf")
        site.config.write_text(text)
        if not site.file("metadata").is_dir():
            skip("the metadata store of this site is no folder")
        shutil.rmtree(site.file("metadata"))
        check("no store", "no folder is routed")
        expect(not site.file("metadata").exists(), "asking made a store")


def test_nco_writes_to_what_it_copies():
    """cp makes the file to which ncatted, ncrename, `ncks -A` and `ncap2 -A` write then. In a routed folder, and of
    stubs to a plain file, all is as with files; another cp copies the stub, as ever."""
    need_program("ncatted", "ncrename", "ncap2", "ncks")
    text = ["-a", "text,global,c,c,new"]
    commands = ([["ncatted", "-h", "-O", *text], "a", "new"], [["ncatted", "-h", "-O", *text], "a", "there"],
                [["ncrename", "-h", "-O", "-a", ".text,name", "-a", ".title,name"], "a", "renamed"], [["ncks", "-h", "-A"], "a", "more"],
                [["ncap2", "-h", "-A", "-s", "added=1"], "a", "added"], [["ncatted", "-h", *text], "a", "a"])
    with RoutedSite() as site:
        plain = site.folder / "plain"
        plain.mkdir()
        shown = {}
        for folder in (plain, site.out):
            for name in ("a", "there", "more", "added"):
                client(["ncks", "-h", "-O", site.source, folder / f"{name}.nc"])
            for words, source, target in commands:
                paths = [folder / f"{source}.nc"] + [folder / f"{target}.nc"] * (target != source)
                client([*words, *paths])
            names = sorted(p.name for p in folder.iterdir())
            shown[folder] = names, [client(["ncdump", folder / n]).stdout for n in names]
        expect(shown[plain][0] == shown[site.out][0], f"{shown[site.out][0]}")
        for name, file, routed in zip(shown[plain][0], shown[plain][1], shown[site.out][1]):
            lines = set(file.splitlines()) ^ set(routed.splitlines())
            expect(not lines, f"{name}: {sorted(lines)}")  # ncap2 has netCDF-4 write attributes in another order
        expect(all(p.read_bytes().startswith(STUB) for p in site.out.iterdir()), "some are no stubs")
        expect(containers() == [site.container(n) for n in shown[plain][0]], f"{containers()}")
        client(["ncatted", "-h", "-O", *text, site.out / "more.nc", site.folder / "outside.nc"])
        outside = run(["ncdump", site.folder / "outside.nc"]).stdout
        expect("new" in outside and "float" in outside, outside)
        client(["cp", site.out / "more.nc", site.out / "copy.nc"])
        expect((site.out / "copy.nc").read_bytes() == (site.out / "more.nc").read_bytes(), "cp by itself")


def test_asking_makes_no_default_site():
    need_program("ncgen")
    with RoutedSite() as site:
        home = site.file("home")
        home.mkdir()
        env = environment({"HOME": str(home), "XDG_DATA_HOME": str(home / "data"),
                           "XDG_CONFIG_HOME": str(home / "config")})
        del env["ESDM_CONFIG"]
        client(["nccopy", site.source, "plain.nc"], env=env, cwd=home)
        expect(pathlib.Path(home / "plain.nc").exists(), "no file")
        plug_in = client_environment(env, inherit=False)
        done = run([tool("esdm-run"), "ncdump", "-h", "esdm://absent.nc"], env=plug_in, cwd=home, check=False)
        expect_error(done, "No such file", "there is no site yet", "named by ESDM_CONFIG")
        expect(done.stderr.count("there is no site yet") == 1, done.stderr)
        for words in (["rm", "x"], ["rm", "-r", "x"], ["mv", "x", "y"], ["restore", "x"], ["tag", "x", "t"],
                      ["branch", "x", "b"], ["compact", "x"], ["attr", "x", "a=b"], ["stat", "--digest", "x"],
                      ["merge", "x", "b"], ["gc", "--yes"], ["fsck", "--data"], ["drain"], ["dedup"],
                      ["ls"], ["find", "a = b"]):
            done = run([tool(f"esdm-{words[0]}"), *words[1:]], env=env, cwd=home, check=False)
            expect("there is no site yet" in done.stderr, f"{words}: {done.stdout}{done.stderr}")
        left = sorted(p.name for p in home.iterdir())
        expect(left == ["plain.nc"], str(left))
        run([tool("esdm-run"), "nccopy", site.source, "esdm://first.nc"], env=plug_in, cwd=home)
        expect("first.nc" in run([tool("esdm-ls")], env=env, cwd=home).stdout, "the site is made")


# Preloaded with a sanitizer's runtime NCO is not known when its program begins.
NCO = () if SANITIZE else (test_nco_writes_to_what_it_copies,)

main(test_nccopy_and_ncks, test_cdo, test_python_of_debian, test_python_of_pypi,
     test_rename_of_a_stub_by_another_program, test_environment_comes_first,
     test_entries_that_route_nothing_are_told, test_everything_and_patterns,
     test_other_folders_stay_plain, test_stubs_of_nothing_and_copies_are_explained,
     test_esdm_cp_of_a_folder_follows_stubs, test_tools_follow_stubs_or_say_what_to_type,
     test_a_copy_of_a_stub_stays_what_it_was_copied_of, test_a_second_run_replaces_the_first_one,
     test_a_run_that_was_moved_far_away_stays,
     test_a_second_run_by_programs_that_rename__replaces_the_first_one, test_copied_bytes_tell_what_they_are,
     test_stubs_in_memory, test_stubs_may_be_called_as_their_attributes,
     test_wrong_configurations_break_no_plain_program,
     *NCO, test_asking_makes_no_default_site)
