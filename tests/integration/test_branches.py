#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Branches: made, written by NetCDF programs, listed, renamed and removed with their containers or without."""

import json
import shutil
import subprocess
import time

from esdmtest import (BUILD, SANITIZE, SOURCE, Site, by_size, client, client_environment, environment, expect, expect_error,
                      main, run, tool)
from postgres import Server, skip_without_postgres

BRANCH, RM, GC, FSCK, MERGE = (tool(f"esdm-{name}") for name in ("branch", "rm", "gc", "fsck", "merge"))

WRITE = """
import netCDF4, numpy, sys
name, first, mode = sys.argv[1], int(sys.argv[2]), sys.argv[3]
with netCDF4.Dataset(f"esdm://{name}", mode) as d:
    if mode == "w":
        d.createDimension("x", 5000)
        d.createVariable("v", "f8", ("x",))
    d["v"][:] = numpy.arange(5000.0) + first
    d.step = first
"""
READ = """
import netCDF4, sys
for name in sys.argv[1:]:
    with netCDF4.Dataset(f"esdm://{name}") as d:
        print(d.step, float(d["v"][-1]) - 4999)
"""


def write(name, first, mode="a", check=True):
    return client(["/usr/bin/python3", "-c", WRITE, name, str(first), mode], check=check)


def read(*names, check=True):
    return client(["/usr/bin/python3", "-c", READ, *names], check=check)


def expect_read(**steps):
    names = [name.replace("__", "@branch:").replace("_", ".") for name in steps]
    text = read(*names).stdout
    expect(text == "".join(f"{step} {step}.0\n" for step in steps.values()), f"{names}: {text}")


def branch(*arguments, check=True):
    return run([BRANCH, *arguments], check=check)


def branches(*arguments):
    return json.loads(branch("--json", *arguments).stdout)["branches"]


def names():
    return run([tool("esdm-ls")]).stdout.split()


def packs(site):
    """Packs of containers, not those of the site's own."""
    return sorted(path.name for path in site.packs.rglob("*")
                  if path.is_file() and not path.name.startswith("0" * 24)
                  and path.suffix != ".json")


def test_a_branch_is_written_by_programs():
    with Site() as site:                       # history 1
        write("a.nc", 1, "w")
        stored = packs(site)
        out = branch("a.nc", "fix").stdout
        expect("a.nc@branch:fix begins with snapshot 1" in out, out)
        expect(packs(site) == stored, "making it has stored data")
        write("a.nc@branch:fix", 2)
        write("a.nc", 3)
        expect_read(a_nc__fix=2, a_nc=3)
        dump = client(["ncdump", "-h", "esdm://a.nc@branch:fix"]).stdout
        expect(":step = 2" in dump, dump)
        client(["ncatted", "-O", "-a", "step,global,o,i,4", "esdm://a.nc@branch:fix"])
        expect(client(["ncdump", "-h", "esdm://a.nc@branch:fix"]).stdout.count("step = 4") == 1, "ncatted")
        time.sleep(0.6)                        # stores spare what is younger than half a second
        write("a.nc", 5)
        run([GC, "--yes", "--age=0"])
        told = branches("a.nc")
        expect([(b["branch"], b["container"], b["from"], b["merged"]) for b in told] ==
               [("fix", "a.nc@branch:fix", 1, None)], f"{told}")
        expect(read("a.nc@1", "a.nc").stdout == "1 1.0\n5 5.0\n", "what it began with is not kept")
        log = json.loads(run([tool("esdm-log"), "--json", "-b", "a.nc"]).stdout)["snapshots"]
        expect([s["branches"] for s in log if s["snapshot"] == 1] == [["fix"]], f"{log}")
        expect("branch: fix" in run([tool("esdm-log"), "a.nc"]).stdout, "esdm-log shows none")
        expect("branch of a.nc@1" in run([tool("esdm-log"), "a.nc@branch:fix"]).stdout, "no message")
        expect_error(run([tool("esdm-diff"), "a.nc", "a.nc@branch:fix"], check=False), "")
        run([FSCK, "--data"])


def test_each_side_may_go():
    for removed, left in (("a.nc", "a.nc@branch:fix/units"), ("a.nc@branch:fix/units", "a.nc")):
        with Site() as site:
            write("a.nc", 1, "w")
            branch("a.nc", "fix/units")
            write("a.nc", 2)
            write("a.nc@branch:fix/units", 2)
            run([RM, "--yes", "--for-good", removed])
            run([GC, "--yes", "--age=0"])
            expect(read(left).stdout == "2 2.0\n" and names() == [left], f"{names()}")
            run([FSCK, "--data"])
            write(left, 3)
            run([RM, "--yes", "--for-good", left])
            run([GC, "--yes", "--age=0"])
            expect(not packs(site), f"left: {packs(site)}")


def test_removing_and_restoring():
    with Site() as _:
        write("a.nc", 1, "w")
        branch("a.nc", "one", "two")
        write("a.nc@branch:one", 2)
        out = branch("--remove", "a.nc", "one").stdout
        expect("branch 'one' is removed" in out, out)
        expect([b["branch"] for b in branches("a.nc")] == ["two"], f"{branches('a.nc')}")
        expect_error(read("a.nc@branch:one", check=False), "")
        run([tool("esdm-restore"), "a.nc@branch:one"])
        expect_read(a_nc__one=2)
        branch("-d", "a.nc", "one", "two")
        expect(branch("a.nc").stdout == "a.nc has no branches\n", branch("a.nc").stdout)
        time.sleep(0.6)
        write("a.nc", 3)
        run([GC, "--yes", "--age=0"])
        expect_error(read("a.nc@1", check=False), "")


def test_beginning_with_older_snapshots():
    with Site(history=5) as _:
        write("exp/a.nc", 1, "w")
        write("exp/a.nc", 2)
        write("exp/a.nc", 3)
        run([tool("esdm-tag"), "exp/a.nc@1", "draft"])
        branch("exp/a.nc", "x", "--from", "@tag:draft")
        branch("exp/a.nc", "y", "--from", "@-1")
        branch("exp/a.nc@2", "z")
        expect(read(*(f"exp/a.nc@branch:{b}" for b in "xyz")).stdout == "1 1.0\n2 2.0\n2 2.0\n", "")
        expect([(b["branch"], b["from"]) for b in branches("--all", "exp")] ==
               [("x", 1), ("y", 2), ("z", 2)], f"{branches('--all')}")
        write("exp/a.nc@branch:x", 7)
        expect(read("exp/a.nc@branch:x@1", "exp/a.nc@branch:x@-1").stdout == "1 1.0\n1 1.0\n", "")
        run([tool("esdm-cp"), "--reflink", "exp/a.nc@branch:x", "b.nc"], check=False)
        run([tool("esdm-mv"), "-r", "exp", "new"])
        expect(names()[-4:] == ["new/a.nc", "new/a.nc@branch:x", "new/a.nc@branch:y",
                                "new/a.nc@branch:z"], f"{names()}")
        run([tool("esdm-mv"), "new/a.nc", "c.nc"])
        expect([b["branch"] for b in branches("c.nc")] == ["x", "y", "z"], f"{names()}")
        run([tool("esdm-mv"), "c.nc@branch:x", "d.nc"])      # a container of its own
        expect([b["branch"] for b in branches("c.nc")] == ["y", "z"], f"{names()}")
        expect(read("d.nc").stdout == "7 7.0\n", "")


def test_python():
    if SANITIZE:
        return
    with Site(history=3) as _:
        write("a.nc", 1, "w")
        write("a.nc", 2)
        env = client_environment({"PYTHONPATH": str(SOURCE / "python"),
                                  "ESDM_LIBRARY_DIR": f"{BUILD}:{BUILD / 'netcdf-plugin'}"})
        env.pop("LD_PRELOAD", None)
        out = run(["/usr/bin/python3", "-c", "import esdm, netCDF4\n"
                   "name = esdm.branch('a.nc', 'fix', -1)\n"
                   "print(name)\n"
                   "with netCDF4.Dataset('esdm://' + name, 'a') as d: d.step += 10\n"], env=env).stdout
        expect(out == "a.nc@branch:fix\n" and read(out.strip()).stdout == "11 1.0\n", out)


def test_queries_pass_them_by():
    with Site() as site:
        write("run/a.nc", 1, "w")
        branch("run/a.nc", "fix")
        write("run/a.nc@branch:fix", 2)
        found = run([tool("esdm-find"), "exists step"]).stdout
        expect("run/a.nc" in found and "branch" not in found, found)
        run([tool("esdm-cp"), "-r", "esdm://run", "esdm://copy"])
        run([tool("esdm-cp"), "-r", "--reflink", "esdm://run", "esdm://clone"])
        run([tool("esdm-cp"), "-r", "esdm://run", str(site.file("out"))])
        expect(names() == ["clone/a.nc", "copy/a.nc", "run/a.nc", "run/a.nc@branch:fix"], f"{names()}")
        run([tool("esdm-cp"), "esdm://run/a.nc@branch:fix", site.file("fix.nc")])
        run([tool("esdm-diff"), site.file("fix.nc"), "run/a.nc@branch:fix"])


ROUNDS = by_size(4, 6, 60)


def make_at_once(where):
    """Of several programs that make a branch at once one does, and what it began with is what is noted."""
    for i in range(1, ROUNDS + 1):
        write("a.nc", i, "a" if i > 1 else "w")
    for i in range(ROUNDS):
        name = f"b{i}"
        begun = [subprocess.Popen([BRANCH, "a.nc", name, "--from", f"@{snapshot}"], env=environment(),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                 for snapshot in range(1, 5)]
        said = [(one.communicate(timeout=300), one.returncode) for one in begun]
        made = [snapshot for snapshot, (_, status) in enumerate(said, 1) if status == 0]
        expect(len(made) == 1, f"{where}: made by {made}: {said}")
        expect(all("exists" in err for (_, err), status in said if status != 0), f"{where}: {said}")
        told = {b["branch"]: b["from"] for b in branches("a.nc")}
        expect(told[name] == made[0], f"{where}: {name} began with {made}, and {told}")
        expect(read(f"a.nc@branch:{name}").stdout.split()[0] == str(made[0]), f"{where}: {name} has other values")
    log = run([tool("esdm-log"), "-b", "--json", "a.nc"]).stdout
    expect("esdm:begin" not in log, log)
    run([FSCK, "--data"])


def test_several_make_one_at_once():
    with Site(history=20) as _:
        make_at_once("SQLite")


def test_several_make_one_at_once_on_postgresql():
    skip_without_postgres()
    with Server() as server:
        metadata = {"plugin": "postgres", "host": "127.0.0.1", "port": server.port, "database": "postgres",
                    "user": "esdm", "schema": "branches"}
        with Site(history=20, metadata=metadata) as _:
            make_at_once("PostgreSQL")


def test_what_is_refused():
    with Site() as _:
        write("a.nc", 1, "w")
        for name in ("", "a b", "a@b", "a?b", "a:b", "x" * 201, "a//b", "/a", "a/", "a/../b"):
            expect_error(branch("a.nc", name, check=False), "branch")
        branch("a.nc", "fix")
        expect_error(branch("a.nc", "fix", check=False), "exists")
        expect_error(branch("a.nc", "fix/more", check=False), "fix")
        expect_error(branch("a.nc@9", "more", check=False), "9")
        expect_error(branch("b.nc", "more", check=False), "b.nc")
        expect_error(branch("--remove", "a.nc", "none", check=False), "no branch 'none'")
        expect(write("a.nc@branch:none", 1, "w", check=False).returncode != 0, "it was made by a program")
        expect(write("a.nc@branch:none", 1, "a", check=False).returncode != 0, "it was made by a program")
        expect_error(run([tool("esdm-mv"), "a.nc", "a.nc@branch:none"], check=False), "esdm-branch")
        expect_error(run([tool("esdm-cp"), "--reflink", "esdm://a.nc", "esdm://a.nc@branch:none"],
                         check=False), "esdm-branch")
        expect(names() == ["a.nc", "a.nc@branch:fix"], f"{names()}")


NCO = """
import netCDF4, sys
with netCDF4.Dataset(sys.argv[1], "w") as d:
    d.createDimension("time", None)
    t = d.createVariable("time", "f8", ("time",)); t.units = "days since 2000-01-01"; t[:] = range(3)
    d.createDimension("lat", 2); d.createDimension("lon", 2)
    for name, units in (("lat", "degrees_north"), ("lon", "degrees_east")):
        v = d.createVariable(name, "f8", (name,)); v.units = units; v[:] = range(2)
    d.createVariable("tas", "f4", ("time", "lat", "lon"))[:] = 1
"""


XARRAY = """
import sys, xarray
name, mode, factor = sys.argv[1:]
old = xarray.open_dataset("esdm://" + name, engine="netcdf4").load()
old.close()
old["tas"] = old["tas"] * float(factor)
old.to_netcdf("esdm://" + name, mode=mode, engine="netcdf4")
"""
# One value of three is not written.
HALF = NCO.replace('("time", "lat", "lon"))[:] = 1', '("time", "lat", "lon"))[1:] = 1')
VALUE = "import netCDF4, sys; print(*netCDF4.Dataset(sys.argv[1])[sys.argv[2]][:].ravel()[:2])"


def line_of(name):
    """What is told of a branch."""
    return {b["branch"]: b for b in json.loads(branch("--json", name.split("@")[0]).stdout)["branches"]}[name.split(":")[1]]


def expect_tas(name, value, variable="tas"):
    text = client(["/usr/bin/python3", "-c", VALUE, name, variable]).stdout
    expect(text.split() == [f"{value:.1f}"] * 2, f"{name}: {text}")


def test_nco_and_cdo():
    """What writes a branch anew makes a commit on it: it can be merged, and the container stays as it is."""
    if shutil.which("ncks") is None or shutil.which("cdo") is None:
        print("skipped: NCO and cdo are not installed")
        return
    with Site(history=30) as site:
        to, from_ = "esdm://a.nc@branch:fix/x", "esdm://a.nc"
        client(["/usr/bin/python3", "-c", NCO, from_])
        run(["/usr/bin/python3", "-c", NCO, site.file("f.nc")])
        branch("a.nc", "fix/x")
        newest = 1
        commands = [(["ncatted", "-a", "hello,global,o,c,world", to], 1), (["ncatted", "-O", "-a", "hello,global,o,c,you", to, to], 1),
                    (["ncap2", "-O", "-s", "tas=tas+1", to, to], 2), (["ncap2", "-A", "-s", "b=tas*2", from_, to], 2),
                    (["ncks", "-A", "-C", "-v", "lat", site.file("f.nc"), to], 2), (["ncks", "-O", to, to], 2),
                    (["ncks", "-O", "--no_tmp_fl", to, to], 2), (["cdo", "-s", "-O", "-b", "F32", "addc,1", to, to], 3),
                    (["cdo", "-s", "-O", "-setattribute,tas@units=K", "-mulc,2", to, to], 6)]
        for command, value in commands:
            client(command)
            told = line_of("a.nc@branch:fix/x")
            expect(told["from"] == 1 and told["snapshot"] > newest, f"{command}: {told} after {newest}")
            newest = told["snapshot"]
            expect_tas(to, value)
            expect_tas(from_, 1)
            expect(names() == ["a.nc", "a.nc@branch:fix/x"], f"{command}: {names()}")
        client(["ncrcat", "-O", "-v", "tas", to, from_, "esdm://r.nc"])
        client(["cdo", "-s", "-O", "copy", to, "esdm://c.nc"])
        expect_tas("esdm://c.nc", 6)
        done = run([MERGE, "--json", "a.nc", "fix/x"])
        expect(json.loads(done.stdout)["conflicts"] == [], done.stdout)
        expect_tas(from_, 6)
        expect_tas(from_, 10, "b")
        run([FSCK, "--data"])


def test_what_takes_the_place_of_a_branch():
    """It has other lengths, or not all variables: the branch comes back, and the container stays as it is."""
    if shutil.which("ncks") is None or shutil.which("cdo") is None:
        print("skipped: NCO and cdo are not installed")
        return
    with Site() as _:
        to, from_ = "esdm://a.nc@branch:fix", "esdm://a.nc"
        client(["/usr/bin/python3", "-c", NCO, from_])
        branch("a.nc", "fix")
        client(["ncap2", "-O", "-s", "tas=tas+1", to, to])
        for command in (["ncks", "-O", "-d", "time,0,1", to, to], ["ncks", "-O", "-x", "-v", "lat", "-C", to, to],
                        ["cdo", "-s", "-O", "seltimestep,1", to, to], ["/usr/bin/python3", "-c", HALF, to]):
            client(command)
            expect_error(run([MERGE, "a.nc", "fix"], check=False), "esdm-restore")
            run([tool("esdm-restore"), "--yes", "a.nc@branch:fix"])
            expect_tas(to, 2)
            expect_tas(from_, 1)
            expect(names() == ["a.nc", "a.nc@branch:fix"], f"{command}: {names()}")
        run([MERGE, "a.nc", "fix"])
        expect_tas(from_, 2)
        branch("--remove", "a.nc", "fix")
        expect_error(client(["ncks", "-O", from_, to], check=False), "")
        expect(names() == ["a.nc"], f"{names()}")


def test_another_kind_takes_the_place_of_a_branch():
    """A branch of a classic container that a netCDF-4 file replaces, and the container with which it is merged, are
    of that kind: what classic files cannot hold made both unreadable."""
    script = ("import netCDF4, sys\nwith netCDF4.Dataset(sys.argv[1], 'w', format=sys.argv[2]) as d:\n"
              "    d.createDimension('x', 3)\n    d.createVariable('v', 'f4', ('x',))[:] = 1\n"
              "    d.note = 'plain'\n    if sys.argv[2] == 'NETCDF4':\n        d.setncattr_string('text', 'a string')\n")
    with Site() as site:
        kind = lambda name: client(["ncdump", "-k", f"esdm://{name}"]).stdout.strip()
        for merged in (False, True):
            client(["/usr/bin/python3", "-c", script, "esdm://a.nc", "NETCDF3_CLASSIC"])
            branch("a.nc", "fix")
            client(["/usr/bin/python3", "-c", script, "esdm://a.nc@branch:fix", "NETCDF4"])
            expect("from" in branch("a.nc").stdout, "it is no branch any more")
            name = "a.nc" if merged else "a.nc@branch:fix"
            if merged:
                run([MERGE, "a.nc", "fix"])
            expect(kind(name) == "netCDF-4", f"{name}: {kind(name)}")
            expect('string :text = "a string"' in client(["ncdump", "-h", f"esdm://{name}"]).stdout, name)
            plain = site.folder / "plain.nc"
            run([tool("esdm-cp"), "-f", f"esdm://{name}", plain])
            branch("--remove", "a.nc", "fix")
            run([RM, "a.nc"])


def test_a_kind_that_holds_less_is_not_taken():
    """A classic file takes the place of a branch; what the container got meanwhile fits no classic file."""
    write = ("import netCDF4, sys\nwith netCDF4.Dataset(sys.argv[1], 'w', format=sys.argv[2]) as d:\n"
             "    d.createDimension('x', 3)\n    d.createVariable('v', 'f4', ('x',))[:] = float(sys.argv[3])\n")
    more = ("import netCDF4\nwith netCDF4.Dataset('esdm://a.nc', 'a') as d:\n"
            "    d.setncattr_string('text', 'a string')\n    g = d.createGroup('g')\n"
            "    g.createVariable('n', 'u8', ('x',))[:] = 7\n")
    with Site() as _:
        client(["/usr/bin/python3", "-c", write, "esdm://a.nc", "NETCDF4", "1"])
        branch("a.nc", "fix")
        client(["/usr/bin/python3", "-c", write, "esdm://a.nc@branch:fix", "NETCDF3_CLASSIC", "2"])
        client(["/usr/bin/python3", "-c", more])
        run([MERGE, "a.nc", "fix"])
        text = client(["ncdump", "esdm://a.nc"]).stdout
        for part in ('string :text = "a string"', "uint64 n(x)", "n = 7, 7, 7", "v = 2, 2, 2"):
            expect(part in text, text)


def test_xarray_and_esdm_cp():
    with Site() as _:
        to, from_ = "esdm://a.nc@branch:fix", "esdm://a.nc"
        client(["/usr/bin/python3", "-c", NCO, from_])
        branch("a.nc", "fix")
        client(["/usr/bin/python3", "-c", XARRAY, "a.nc@branch:fix", "w", "3"])
        expect(line_of("a.nc@branch:fix")["from"] == 1 and line_of("a.nc@branch:fix")["snapshot"] > 1, "a new container")
        expect_tas(to, 3)
        expect_tas(from_, 1)
        run([tool("esdm-cp"), "--force", to, "esdm://b.nc"])
        client(["ncap2", "-O", "-s", "tas=tas*2", "esdm://b.nc", "esdm://b.nc"])
        run([tool("esdm-cp"), "--force", "esdm://b.nc", to])
        expect_tas(to, 6)
        run([MERGE, "a.nc", "fix"])
        expect_tas(from_, 6)
        run([FSCK, "--data"])


def test_what_is_read_is_not_written():
    """Names in time are read by every program, and a program that overwrites one leaves nothing behind."""
    if shutil.which("ncks") is None or shutil.which("cdo") is None:
        print("skipped: NCO and cdo are not installed")
        return
    with Site(history=9) as _:
        client(["/usr/bin/python3", "-c", NCO, "esdm://a.nc"])
        run([tool("esdm-tag"), "a.nc", "draft"])
        client(["ncap2", "-A", "-s", "tas=tas+1", "esdm://a.nc", "esdm://a.nc"])
        client(["ncatted", "-a", "hello,global,o,c,world", "esdm://a.nc"])
        for name in "a.nc@tag:draft", "a.nc@1":
            expect_tas("esdm://" + name, 1)
            for command in (["ncks", "-O", "esdm://a.nc", "esdm://" + name], ["ncap2", "-A", "-s", "c=1", "esdm://" + name],
                            ["ncatted", "-a", "a,global,o,c,b", "esdm://" + name],
                            ["cdo", "-s", "-O", "copy", "esdm://a.nc", "esdm://" + name]):
                expect(client(command, check=False).returncode != 0, f"{command}")
                expect(names() == ["a.nc"], f"{command}: {names()}")


def test_catalogue_that_is_lost_and_moved():
    with Site(targets=[{"name": "disk", "plugin": "posix", "directory": "packs"}],
              metadata={"plugin": "sqlite", "directory": "metadata"}) as site:
        write("a.nc", 1, "w")
        branch("a.nc", "fix")
        write("a.nc@branch:fix", 2)
        write("a.nc", 3)
        shutil.rmtree(site.file("metadata"))
        run([tool("esdm-mkfs"), "--restore"])
        expect_read(a_nc__fix=2, a_nc=3)
        run([FSCK, "--data"])


if __name__ == "__main__":
    main(test_a_branch_is_written_by_programs, test_python, test_each_side_may_go, test_removing_and_restoring,
         test_beginning_with_older_snapshots, test_several_make_one_at_once,
         test_several_make_one_at_once_on_postgresql, test_queries_pass_them_by, test_what_is_refused,
         test_nco_and_cdo, test_what_takes_the_place_of_a_branch,
         test_another_kind_takes_the_place_of_a_branch, test_a_kind_that_holds_less_is_not_taken, test_xarray_and_esdm_cp, test_what_is_read_is_not_written,
         test_catalogue_that_is_lost_and_moved)
