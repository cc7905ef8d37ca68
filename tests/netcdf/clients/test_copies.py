#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Copies of stubs: every tool takes the container that a copy was made for, as programs do, also when the
original's file was written anew meanwhile."""

import json
import pathlib
import shutil
import time

import clients
from esdmtest import Site, client, expect, expect_error, main, run, tool

WRITE = """
import sys, netCDF4
with netCDF4.Dataset(sys.argv[1], 'w') as d:
    d.createDimension('x', 2)
    d.createVariable('v', 'i4', ('x',))[:] = int(sys.argv[2])
"""


class Routed(Site):
    def __enter__(self):
        super().__enter__()
        self.out = self.folder / "out"
        self.out.mkdir()
        self.path, self.copy = self.out / "a.nc", self.folder / "backup.nc"
        config = json.loads(self.config.read_text())
        config["netcdf"] = {"routes": [str(self.out)]}
        self.config.write_text(json.dumps(config))
        self.container = str(self.out).lstrip("/") + "/a.nc"
        self.write(1)
        shutil.copy(self.path, self.copy)
        return self

    def write(self, value):
        client([clients.python_of("debian"), "-c", WRITE, self.path, value])

    def names(self):
        return run([tool("esdm-ls")]).stdout.split()


def values(path):
    return client(["ncdump", "-v", "v", path]).stdout.partition("data:")[2].strip(" \n}")


def ends(status, *command):
    done = run(command, check=False)
    expect(done.returncode == status, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def told(name, *arguments):
    """What a tool says of a copy: it works, and tells that this is a former container."""
    done = run([tool(name), *arguments])
    expect("replaced since then" in done.stderr, f"{name}: {done.stderr}")
    return done.stdout


def test_tools_take_what_a_copy_was_made_for():
    with Routed() as site:
        plain = site.folder / "plain.nc"
        before = run([tool("esdm-cp"), site.copy, plain]).stderr
        expect("replaced" not in before and values(plain).startswith("v = 1"), before)
        site.write(2)
        told("esdm-cp", "-f", site.copy, plain)
        expect(values(plain).startswith("v = 1"), values(plain))
        told("esdm-cp", site.copy, "esdm://kept.nc")
        expect(values("esdm://kept.nc").startswith("v = 1"), values("esdm://kept.nc"))
        run([tool("esdm-cp"), "-f", site.path, plain])
        expect(values(plain).startswith("v = 2"), values(plain))
        told("esdm-diff", site.copy, "esdm://kept.nc")
        ends(1, tool("esdm-diff"), site.path, "esdm://kept.nc")
        tree = json.loads(told("esdm-stat", "--json", site.copy))["containers"][0]
        former = tree["name"]
        expect(former.startswith(site.container + "@"), former)
        told("esdm-stat", "--explain", site.copy)
        expect(former.partition("@")[0] in told("esdm-log", site.copy), former)
        folder = site.folder / "copies"
        folder.mkdir()
        shutil.copy(site.copy, folder)
        told("esdm-cp", "-r", folder, site.folder / "plain")
        expect(values(site.folder / "plain/backup.nc").startswith("v = 1"), "esdm-cp -r took the new one")


def test_tools_change_no_other_container_for_a_copy():
    with Routed() as site:
        site.write(2)
        told_of_rm = ends(3, tool("esdm-rm"), site.copy).stderr
        expect("is a copy" in told_of_rm and f"rm '{site.copy}'" in told_of_rm, told_of_rm)
        expect(f"&& rm '{site.copy}'" not in told_of_rm, told_of_rm)
        expect(site.names() == [site.container] and values(site.path).startswith("v = 2"), str(site.names()))
        for name, arguments in (("esdm-tag", [site.copy, "named"]), ("esdm-seal", [site.copy]),
                                ("esdm-branch", [site.copy, "other"])):
            run([tool(name), *arguments], check=False)
            now = run([tool("esdm-log"), "--json", site.path]).stdout + run([tool("esdm-ls"), "-l"]).stdout
            expect("named" not in now and "sealed" not in now and "@branch" not in now, f"{name}: {now}")
        # What it was copied for comes back.
        run([tool("esdm-restore"), "--as", "back.nc", site.copy])
        expect(values("esdm://back.nc").startswith("v = 1"), values("esdm://back.nc"))


def test_a_copy_of_what_was_written_to_since():
    """A copied stub is no backup: what it stands for is appended to or changed in place, and who reads the copy for
    what it was then is told."""
    with Routed() as site:
        site.config.write_text(json.dumps(json.loads(site.config.read_text()) | {"history": 10}))
        add = "import sys, netCDF4\nwith netCDF4.Dataset(sys.argv[1], 'a') as d:\n    d['v'][1] = 9"
        shutil.copy2(site.path, site.folder / "kept.nc")  # with the time of its original
        for path in (site.copy, site.folder / "kept.nc"):
            expect(client(["ncdump", "-h", path]).stderr == "", "nothing was changed yet")
            expect("note:" not in run([tool("esdm-stat"), path]).stderr, "nothing was changed yet")
        time.sleep(2.1)  # clocks of file servers may differ by 2 s
        run([tool("esdm-compact"), "--chunk", "v=1", site.container])
        expect("esdm-compact" in run([tool("esdm-log"), site.path]).stdout, "it made no snapshot")
        expect("note:" not in run([tool("esdm-stat"), site.copy]).stderr, "upkeep changes nothing")
        client([clients.python_of("debian"), "-c", add, site.path])
        for path in (site.copy, site.folder / "kept.nc"):
            done = client(["ncdump", "-v", "v", path])
            expect("v = 1, 9" in done.stdout and "which has a newer snapshot than the copy" in done.stderr and
                   done.stderr.count("\n") == 1, f"{done.stdout}{done.stderr}")
            done = run([tool("esdm-cp"), "-f", path, site.folder / "plain.nc"])
            expect("which was written to after the copy was made" in done.stderr, done.stderr)
        shutil.copy(site.path, site.copy)  # over the older one
        expect(client(["ncdump", "-h", site.copy]).stderr == "", "this copy is newer")
        expect(client(["ncdump", "-h", site.path]).stderr == "", "the original")


def test_what_is_not_kept_is_refused():
    with Routed() as site:
        site.write(2)
        site.write(3)
        run([tool("esdm-gc"), "--replaced-now", "--yes"])
        for name, arguments in (("esdm-cp", [site.copy, site.folder / "plain.nc"]), ("esdm-stat", [site.copy]),
                                ("esdm-stat", ["--explain", site.copy]), ("esdm-log", [site.copy]),
                                ("esdm-diff", [site.copy, site.path]), ("esdm-seal", [site.copy])):
            expect_error(run([tool(name), *arguments], check=False), "stands for an earlier container")
        expect(not (site.folder / "plain.nc").exists(), "a plain file was made")
        expect(values(site.path).startswith("v = 3"), values(site.path))


IN_MEMORY = """
import sys, netCDF4
with netCDF4.Dataset("label", memory=open(sys.argv[1], "rb").read()) as d:
    print(d["v"][:].tolist())
"""


def test_bytes_in_memory_are_copies_too():
    """Of a stub that was read long ago, as a cache of files has them: nc_open_mem()."""
    with Routed() as site:
        raw = site.folder / "raw"
        raw.write_bytes(site.path.read_bytes())  # without ESDM: the stub itself

        def value():
            return client([clients.python_of("debian"), "-c", IN_MEMORY, raw], check=False)

        expect(value().stdout == "[1, 1]\n" and not value().stderr, str(value()))
        site.write(2)
        done = value()
        expect(done.stdout == "[1, 1]\n" and "replaced since then" in done.stderr, str(done))
        run([tool("esdm-gc"), "--replaced-now", "--yes"])
        expect_error(value(), "stands for an earlier container")


def test_moved_originals_stay_originals():
    with Routed() as site:
        moved = pathlib.Path(site.folder / "moved.nc")
        site.path.rename(moved)
        client([clients.python_of("debian"), "-c", WRITE, moved, 5])
        done = run([tool("esdm-cp"), moved, site.folder / "plain.nc"])
        expect(done.stderr == "" and values(site.folder / "plain.nc").startswith("v = 5"), done.stderr)


def test_a_folder_becomes_plain_again():
    """Beside files that stand for containers plain ones may lie: these stay as they are."""
    with Routed() as site:
        plain = site.out / "plain.nc"
        run([tool("esdm-cp"), site.path, plain])
        kept = plain.read_bytes()
        elsewhere = site.folder / "elsewhere"
        told = run([tool("esdm-cp"), "-r", site.out, elsewhere]).stderr
        expect("1 file that lies there is plain already" in told, told)
        expect([p.name for p in elsewhere.iterdir()] == ["a.nc"], f"{list(elsewhere.iterdir())}")
        run([tool("esdm-cp"), "-r", "-f", site.out, site.out])
        expect("v = 1, 1" in run(["ncdump", site.path]).stdout, "the data are not there")
        expect(plain.read_bytes() == kept and (elsewhere / "a.nc").read_bytes() == site.path.read_bytes(), "other bytes")
        done = run([tool("esdm-cp"), "-r", "-f", site.out, site.out], check=False)
        expect(done.returncode == 3, f"{done}")
        expect_error(done, "no NetCDF file that stands for a container")


main(test_a_folder_becomes_plain_again,
     test_tools_take_what_a_copy_was_made_for, test_tools_change_no_other_container_for_a_copy,
     test_a_copy_of_what_was_written_to_since, test_what_is_not_kept_is_refused, test_bytes_in_memory_are_copies_too,
     test_moved_originals_stay_originals)
