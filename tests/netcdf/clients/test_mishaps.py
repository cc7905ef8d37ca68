#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""What a scientist sees next when something went wrong: programs that were ended, formats that no container takes."""

import os
import shutil

import clients
from esdmtest import SOURCE, Site, client, environment, expect, expect_error, main, need_program, run, tool

KILLED = """
import os, signal, sys, netCDF4
d = netCDF4.Dataset(sys.argv[1], 'w')
d.createDimension('x', 2)
d.createVariable('v', 'i4', ('x',))[:] = 1
if len(sys.argv) > 2:
    d.sync()
os.kill(os.getpid(), signal.SIGKILL)
"""


WRITE = """
import sys, netCDF4
for name in sys.argv[1:]:
    with netCDF4.Dataset(name, 'w') as d:
        d.createDimension('x', 2)
        d.createVariable('v', 'i4', ('x',))[:] = 1
"""
# Of a size beyond that of all stubs.
ADD = """
import os, sys, netCDF4
with netCDF4.Dataset(sys.argv[1], 'a' if os.path.exists(sys.argv[1]) else 'w', format='NETCDF3_CLASSIC') as d:
    d.createDimension('y', 5000)
    d.createVariable('w', 'i4', ('y',))[:] = 5
"""


class Routed(Site):
    def __enter__(self):
        super().__enter__()
        self.out = self.folder / "out"
        self.out.mkdir()
        self.env = {"ESDM_NC_ROUTE": str(self.out)}
        return self

    def program(self, script, *arguments):
        """Whatever becomes of it."""
        return client(["sh", "-c", '"$@"; true', "sh", clients.python_of("debian"), "-c", script, *arguments],
                      env=self.env)


def test_a_format_that_no_container_takes():
    """cdo says "Operation not supported" alone."""
    need_program("cdo")
    with Site() as site:
        expect_error(client(["cdo", "-s", "-f", "grb", "-topo", "esdm://topo.grb"], check=False),
                     "a container takes no bytes", "'esdm:topo.grb'", "-f nc4")
        expect(run([tool("esdm-ls")]).stdout == "", "something is left")
        client(["cdo", "-s", "-f", "grb", "-topo", site.folder / "topo.grb"])
        expect(client(["cdo", "-s", "-f", "nc4", "-topo", "esdm://topo.nc"]).stderr == "", "NetCDF")


def test_a_file_whose_program_was_killed():
    """Before its first commit nothing is there but the stub; it says so, and not that a container was lost."""
    with Routed() as site:
        path = site.out / "a.nc"
        site.program(KILLED, path)
        done = client(["ncdump", "-h", path], check=False)
        expect(done.returncode != 0 and "was ended before it had closed or synced it" in done.stderr, done.stderr)
        site.program(KILLED, path, "sync")
        expect("v = 1, 1" in client(["ncdump", path]).stdout, "what was synced")
        run([tool("esdm-rm"), path])
        path.exists() or site.program(KILLED, path)
        done = client(["ncdump", "-h", path], check=False)
        expect(done.returncode != 0 and "esdm-restore" in done.stderr, done.stderr)
        done = client(["ncdump", "-h", path], env=site.env, check=False)
        expect(done.stderr.count("there is no container") == 1, done.stderr)


def test_a_name_that_became_a_path():
    """xarray takes esdm:NAME for a path below the working folder."""
    with Site():
        client(["ncgen", "-o", "esdm://exp/a.nc", SOURCE / "tests/netcdf/clients/classic.cdl"])
        script = "import sys, xarray\nxarray.open_dataset(sys.argv[1])"
        done = client([clients.python_of("debian"), "-c", script, "esdm:exp/a.nc"], check=False)
        expect(done.returncode != 0 and "write esdm://exp/a.nc" in done.stderr, done.stderr)
        client([clients.python_of("debian"), "-c", script, "esdm://exp/a.nc"])


def test_a_stub_that_was_changed_without_esdm_run():
    """A stub is a valid, empty file, to which stock programs write: what they wrote is not in the container, and what
    the container has is not in their file. Nobody takes the one for the other unawares."""
    need_program("ncatted", "ncks")
    with Routed() as site:
        names = [site.out / f"{name}.nc" for name in "abcd"]
        site.program(WRITE, *names)
        extra = site.folder / "extra.nc"
        run([clients.python_of("debian"), "-c", ADD, extra])
        run(["ncatted", "-h", "-a", "author,global,c,c,me", names[0]])
        run(["ncks", "-h", "-A", extra, names[1]])
        run([clients.python_of("debian"), "-c", ADD, names[2]])
        done = client(["ncdump", names[0]])
        expect("v = 1, 1" in done.stdout and "do that again with esdm-run" in done.stderr, f"{done.stdout}{done.stderr}")
        for path in names[1:3]:
            done = client(["ncdump", path])
            expect("w = " in done.stdout and "v = " not in done.stdout, done.stdout)
            expect(f"which is esdm://{str(path)[1:]}" in done.stderr and done.stderr.count("\n") == 1, done.stderr)
            expect("v = 1, 1" in client(["ncdump", f"esdm://{str(path)[1:]}"]).stdout, "the container")
        for path in (names[3], extra):
            expect(client(["ncdump", path]).stderr == "", path)


def test_a_file_of_another_site():
    """Somebody has another ESDM_CONFIG, or stands in a folder with another esdm.json."""
    with Routed() as site:
        path = site.out / "a.nc"
        site.program(WRITE, path)
        other = site.folder / "other"
        other.mkdir()
        (other / "site.json").write_text(site.config.read_text().replace(str(site.folder), str(other)))
        env = {"ESDM_CONFIG": str(other / "site.json")}
        run([tool("esdm-mkfs")], env=environment(env))
        done = client(["ncdump", path], env=env, check=False)
        expect(done.returncode != 0 and "made on another one" in done.stderr and "esdm-restore" not in done.stderr,
               done.stderr)
        expect("v = 1, 1" in client(["ncdump", path]).stdout, "on its own site")


VALUE = """
import sys, netCDF4
with netCDF4.Dataset(sys.argv[1], "w") as d:
    d.createVariable("v", "f4", ())[...] = float(sys.argv[2])
"""

READ_BACK = """
import sys, netCDF4
with netCDF4.Dataset(sys.argv[1], "w") as d:
    d.createVariable("v", "f4", ())[...] = float(sys.argv[2])
    with netCDF4.Dataset(sys.argv[1]) as again:
        print("opened" if "v" in again.variables else "other")
"""


def test_a_file_that_two_sites_wrote():
    """A job without ESDM_CONFIG writes a run anew: the former values must not be taken for it."""
    with Routed() as site:
        path, name = site.out / "a.nc", str(site.out / "a.nc")[1:]
        other = site.folder / "other"
        other.mkdir()
        (other / "site.json").write_text(site.config.read_text().replace(str(site.folder), str(other)))
        env = {"ESDM_CONFIG": str(other / "site.json")}
        run([tool("esdm-mkfs")], env=environment(env))
        site.program(VALUE, path, 1)
        there = {**env, "ESDM_NC_ROUTE": str(site.out)}
        done = client([clients.python_of("debian"), "-c", VALUE, path, "2"], env=there)
        expect("stood for a container of another site" in done.stderr and f"esdm://{name}" in done.stderr, done.stderr)
        expect("v = 2" in client(["ncdump", path], env=env).stdout, "on the site that wrote it last")
        for door in (lambda: client(["ncdump", path], check=False), lambda: run([tool("esdm-stat"), path], check=False),
                     lambda: client(["ncatted", "-a", "x,global,o,c,y", path], check=False)):
            done = door()
            expect(done.returncode != 0 and "container of another site" in done.stderr, f"{done.stdout}{done.stderr}")
        expect("v = 1" in client(["ncdump", f"esdm://{name}"]).stdout, "by its name")
        run([tool("esdm-cp"), f"esdm://{name}", site.folder / "plain.nc"])
        other_name = site.out / "b.nc"
        client([clients.python_of("debian"), "-c", VALUE, f"esdm://{str(other_name)[1:]}", "3"])
        client([clients.python_of("debian"), "-c", VALUE, other_name, "4"], env=there)
        done = client(["ncdump", other_name])
        expect("v = 3" in done.stdout and "was written on another site" in done.stderr, f"{done.stdout}{done.stderr}")
        expect("was written on another site" in run([tool("esdm-stat"), other_name]).stderr, "esdm-stat")
        client([clients.python_of("debian"), "-c", VALUE, path, "5"], env={"ESDM_NC_ROUTE": str(site.out)})
        done = client(["ncdump", path])
        expect("v = 5" in done.stdout and done.stderr == "", "written anew where it was made")
        # Who writes it there can read it before it is closed, and when the file could not be changed after the commit.
        was, times = path.read_bytes(), path.stat()
        done = client([clients.python_of("debian"), "-c", READ_BACK, path, "6"], env=there)
        expect(done.stdout == "opened\n" and "was written on another site" not in done.stderr, f"{done.stdout}{done.stderr}")
        path.write_bytes(was)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        for door in (lambda: client(["ncdump", path], env=env), lambda: run([tool("esdm-reduce"), "mean", path, "v"],
                                                                            env=environment(env))):
            done = door()
            expect("6" in done.stdout and "5" not in done.stdout and "was written on another site" in done.stderr,
                   f"{done.stdout}{done.stderr}")


def test_a_path_that_reads_like_the_name_of_another_container():
    """mv out old; a new run in out: the old run's container keeps the name, and tools are given the new run's file."""
    with Routed() as site:
        path, old = site.out / "a.nc", site.folder / "old"
        site.program(VALUE, path, 1)
        site.out.rename(old)
        site.out.mkdir()
        site.program(VALUE, path, 2)
        name = str(path)[1:]
        expect(run([tool("esdm-ls"), "esdm://"]).stdout.split() == [name, f"{name}~2"], "names")
        for command, told in ((["esdm-stat"], f"esdm://{name}~2\n"), (["esdm-stat", "--explain"], f"{name}~2\n")):
            expect(run([tool(command[0]), *command[1:], path]).stdout.startswith(told), f"{command}")
        expect(run([tool("esdm-stat"), "--digest", path]).stdout == run([tool("esdm-stat"), "--digest", f"esdm://{name}~2"])
               .stdout, "digest")
        expect(run([tool("esdm-reduce"), "mean", path, "v"]).stdout.split() == ["2"], "esdm-reduce")
        expect(run([tool("esdm-reduce"), "mean", old / "a.nc", "v"]).stdout.split() == ["1"], "esdm-reduce of the moved one")
        for command in (["esdm-rm", path], ["esdm-attr", "--set", "x=y", path], ["esdm-mv", path, "esdm://b"],
                        ["esdm-ls", path]):
            expect_error(run([tool(command[0]), *command[1:]], check=False), f"{name}~2")
        expect("v = 1" in client(["ncdump", old / "a.nc"]).stdout, "the old run")
        expect(run([tool("esdm-ls"), "esdm://"]).stdout.split() == [name, f"{name}~2"], "names")


TWO_SITES = """
import os, sys, netCDF4
def write(value):
    with netCDF4.Dataset("esdm://run/a.nc", "w") as d:
        d.createVariable("v", "f4", ())[...] = value
write(1)
still = netCDF4.Dataset("esdm://run/b.nc", "w")
before = netCDF4.Dataset("esdm://run/a.nc")
os.environ["ESDM_CONFIG"] = sys.argv[1]
try:
    write(2)
    print("written")
except OSError as error:
    print("refused")
try:
    print(netCDF4.Dataset("esdm://run/a.nc")["v"][...])
except OSError as error:
    print(error.strerror)
print(before["v"][...])
still.close()
os.environ["ESDM_CONFIG"] = os.path.join(os.path.dirname(sys.argv[2]), ".", os.path.basename(sys.argv[2]))
write(3)
"""


def test_a_program_that_names_another_site_later():
    """It replaced the container of the first site, and the second one had none; or read there what it took for the
    second one's."""
    with Routed() as site:
        other = site.folder / "other"
        other.mkdir()
        (other / "site.json").write_text(site.config.read_text().replace(str(site.folder), str(other)))
        env = {"ESDM_CONFIG": str(other / "site.json")}
        run([tool("esdm-mkfs")], env=environment(env))
        done = client([clients.python_of("debian"), "-c", TWO_SITES, other / "site.json", site.config])
        expect(done.stdout.splitlines() == ["refused", "Permission denied", "1.0"], done.stdout)
        expect("start another process" in done.stderr and done.stderr.count("\n") == 1, done.stderr)
        expect("v = 3" in client(["ncdump", "esdm://run/a.nc"]).stdout, "named by another path, it is the same site")
        expect(run([tool("esdm-ls")]).stdout.split()[-1] == "run/b.nc", "what was open is committed")
        expect(run([tool("esdm-ls")], env=environment(env)).stdout == "", "the other site")


SAME_SITE = """
import os, sys, netCDF4
def write(value):
    with netCDF4.Dataset("esdm://run/a.nc", "w") as d:
        d.createVariable("v", "f4", ())[...] = value
write(1)
os.environ["ESDM_CONFIG"] = sys.argv[1]
write(2)
os.environ["ESDM_CONFIG"] = ""
write(3)
os.chdir(os.path.dirname(sys.argv[1]))
os.environ["ESDM_CONFIG"] = os.path.basename(sys.argv[1])
write(4)
os.chdir("/")
os.environ["ESDM_CONFIG"] = sys.argv[1]
write(5)
del os.environ["ESDM_CONFIG"]
write(6)
"""


def test_a_program_that_names_its_site_in_other_words():
    """The file that was found without ESDM_CONFIG, and a relative path, after which the program goes elsewhere."""
    with Routed() as site:
        config = site.folder / "home/esdm/site.json"
        config.parent.mkdir(parents=True)
        config.write_text(site.config.read_text())
        run([tool("esdm-mkfs"), config])
        env = {"XDG_CONFIG_HOME": str(site.folder / "home"), "ESDM_CONFIG": ""}
        done = client([clients.python_of("debian"), "-c", SAME_SITE, config], env=env)
        expect(done.stderr == "", done.stderr)
        expect("v = 6" in client(["ncdump", "esdm://run/a.nc"], env={"ESDM_CONFIG": str(config)}).stdout, "all was written")


def test_files_of_a_backup_whose_original_was_moved():
    """`mv run3 run3-old; cp -a backup/run3 run3`: what lies at the path of the original is a copy, wherever that is
    now. Nothing that is written to it, or over it by a rerun, changes what the original reads."""
    add = "import sys, netCDF4\nwith netCDF4.Dataset(sys.argv[1], 'a') as d:\n    d['v'][1] = 9"
    with Routed() as site:
        routed = site.folder / "deep/out"
        site.env = {"ESDM_NC_ROUTE": str(routed)}
        for moved, to in (("run/run3", "run/run3-old"), ("run/a", "elsewhere-in/the-route"), (".", "../out-old"),
                          (".", "../../far/out")):
            shutil.rmtree(routed, ignore_errors=True)
            path, was, now = (routed / moved / "a.nc").resolve(), (routed / moved).resolve(), (routed / to).resolve()
            path.parent.mkdir(parents=True)
            site.program(WRITE, path)
            backup = shutil.copytree(was, site.folder / "backup")
            now.parent.mkdir(exist_ok=True)
            was.rename(now)
            backup.rename(was)
            name = str(path)[1:]
            for target in path, now / "a.nc":
                expect("v = 1, 1" in client(["ncdump", target]).stdout, target)
            done = site.program(add, path)
            expect("is a copy of the stub" in done.stderr and f"esdm-cp 'esdm://{name}' esdm://NEW" in done.stderr,
                   f"{moved} {to}: {done.stderr}")
            expect("v = 1, 1" in client(["ncdump", now / "a.nc"]).stdout, f"{moved} {to}: the original was changed")
            site.program(WRITE.replace("= 1", "= 2"), path)
            expect("v = 2, 2" in client(["ncdump", path]).stdout, f"{moved} {to}: the rerun")
            expect("v = 1, 1" in client(["ncdump", now / "a.nc"]).stdout, f"{moved} {to}: the rerun replaced it")
            listed = run([tool("esdm-ls")]).stdout.split()
            expect({name, f"{name}~2"} <= set(listed), f"{moved} {to}: {listed}")
            expect("replaced since" not in client(["ncdump", now / "a.nc"]).stderr, "it is no former one")
            run([tool("esdm-rm"), "-r", "--yes", "esdm://"])
            shutil.rmtree(now)


main(test_files_of_a_backup_whose_original_was_moved, test_a_format_that_no_container_takes,
     test_a_stub_that_was_changed_without_esdm_run, test_a_file_of_another_site, test_a_file_that_two_sites_wrote,
     test_a_path_that_reads_like_the_name_of_another_container,
     test_a_program_that_names_another_site_later, test_a_program_that_names_its_site_in_other_words,
     test_a_name_that_became_a_path, test_a_file_whose_program_was_killed)
