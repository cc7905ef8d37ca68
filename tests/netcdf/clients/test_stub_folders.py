#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Stubs of routes to a name, of patterns and of `*`: esdm-gc --stubs FOLDER finds the containers of a folder by what
they tell of it themselves, whichever program has made, renamed, copied or written them anew."""

import json
import os
import pathlib
import shutil

import clients
import lostsite
from esdmtest import SOURCE, Site, client, environment, expect, expect_error, main, run, skip, tool

WRITE = """
import sys, netCDF4
for name in sys.argv[2:]:
    with netCDF4.Dataset(name, 'w', format='NETCDF4') as d:
        d.createDimension('x', 2)
        d.createVariable('v', 'i4', ('x',))[:] = int(sys.argv[1])
"""


class Named(Site):
    """A site, and a folder that programs know under the name `exp`."""

    def __enter__(self):
        super().__enter__()
        self.run = self.folder / "run"
        (self.run / "sub").mkdir(parents=True)
        self.routes = f"{self.run}=exp"
        return self

    def client(self, *command, **options):
        return client(command, env={"ESDM_NC_ROUTE": self.routes}, **options)

    def write(self, *names, value=1):
        self.client(clients.python_of("debian"), "-c", WRITE, value, *[self.run / n for n in names])

    def gc(self, *options, folders=None, age="0", status=0, env=None):
        stubs = [o for folder in folders or [self.run] for o in ("--stubs", folder)]
        done = run([tool("esdm-gc"), "--json", "--age", age, *stubs, *options], check=False,
                   env=environment(env))
        expect(done.returncode == status, f"{done.returncode}: {done.stdout}{done.stderr}")
        self.told = done.stderr
        return json.loads(done.stdout) if done.stdout else {}

    def stubless(self, **options):
        return self.gc("--dry-run", **options)["without_stub"]

    def names(self):
        return sorted(run([tool("esdm-ls")]).stdout.split())


def commit_later(env=None):
    """As time goes on: stubs that are younger than anything of the site stay."""
    client([clients.python_of("debian"), "-c", WRITE, "0", "esdm://later.nc"], env=env)
    run([tool("esdm-rm"), "esdm://later.nc"], env=environment(env))


def remove_for_good(*names):
    run([tool("esdm-rm"), "--for-good", *[f"esdm://{n}" for n in names]])
    commit_later()


def test_containers_of_a_named_route_go_with_their_stubs():
    """Without a word of the name, in the environment or in the call."""
    with Named() as site:
        site.write("a.nc", "b.nc", "sub/c.nc", "keep.nc")
        run(["rm", site.run / "b.nc", site.run / "sub/c.nc"])
        expect(site.stubless() == ["exp/b.nc", "exp/sub/c.nc"], f"{site.stubless()} {site.told}")
        expect(site.gc(age="1d", status=0)["without_stub_young"] == 2, site.told)
        expect(len(site.names()) == 4, "the rehearsal removed")
        expect(site.gc(status=4) == {} and len(site.names()) == 4, "it did not ask")
        expect(site.gc("--yes")["without_stub"] == ["exp/b.nc", "exp/sub/c.nc"], site.told)
        expect(site.names() == ["exp/a.nc", "exp/keep.nc"], f"{site.names()}")


def test_patterns_and_everything():
    """FOLDER/member*=ens, FOLDER/*.nc and `*`."""
    with Named() as site:
        for entry, folder in ((f"{site.folder}/member*=ens", "member1"), (f"{site.folder}/other/*.nc", "other"),
                              ("*", "all"), (f"{site.folder}/plain", "plain"), ("*=every", "every")):
            site.run, site.routes = site.folder / folder, entry
            site.run.mkdir()
            site.write("a.nc", "b.nc")
            made = [n for n in site.names() if n.endswith(f"{folder}/b.nc")]
            expect(len(made) == 1, f"{entry}: {site.names()}")
            (site.run / "b.nc").unlink()
            expect(site.stubless() == made, f"{entry}: {site.stubless()} {site.told}")
            expect(site.stubless(env={"ESDM_NC_ROUTE": entry}) == made, f"{entry}: {site.told}")
            expect(site.gc("--yes")["without_stub"] == made, site.told)


def test_programs_that_rename_and_write_anew():
    """NCO writes to .tmp and has mv rename; cdo and mode "w" write through the stub that is there."""
    with Named() as site:
        site.write("a.nc")
        site.client("ncks", "-O", site.run / "a.nc", site.run / "nco.nc")
        site.client("ncks", "-O", site.run / "a.nc", site.run / "nco.nc")
        site.client("ncap2", "-O", "-s", "w=v+1", site.run / "nco.nc", site.run / "other.nc")
        site.client("cdo", "-O", "-s", "-f", "nc4", "addc,1", site.run / "a.nc", site.run / "cdo.nc")
        site.client("cdo", "-O", "-s", "-f", "nc4", "addc,2", site.run / "a.nc", site.run / "cdo.nc")
        site.write("anew.nc")
        run([tool("esdm-rm"), "esdm://exp/anew.nc"])  # what is written through its stub is another container
        site.write("anew.nc", value=2)
        for name in ("nco.nc", "other.nc", "cdo.nc", "anew.nc"):
            expect(site.stubless() == [], f"before {name}: {site.stubless()}")
            run(["mv", site.run / name, site.folder / "aside"])
            expect(site.stubless() == [f"exp/{name}"], f"{name}: {site.stubless()} {site.told}")
            run(["mv", site.folder / "aside", site.run / name])
        expect(site.stubless() == [], "they are back")
        # A container that follows its stub to another folder is not taken for one of this folder.
        site.client("mv", site.run / "cdo.nc", site.run / "sub/cdo.nc")
        expect("exp/sub/cdo.nc" in site.names(), f"{site.names()}")
        expect(site.stubless() == [], f"{site.stubless()}")


def test_clones_and_branches_are_not_the_original():
    """They have what their original tells; nobody has removed their stubs, as they never had any."""
    with Named() as site:
        site.write("a.nc", "b.nc")
        run([tool("esdm-cp"), "--reflink", "esdm://exp/a.nc", "esdm://exp/clone.nc"])
        run([tool("esdm-cp"), "--reflink", "esdm://exp/a.nc", "esdm://elsewhere/clone.nc"])
        run([tool("esdm-branch"), "esdm://exp/a.nc", "trial"])
        (site.run / "a.nc").unlink()
        expect(site.stubless() == ["exp/a.nc"], f"{site.stubless()} {site.told}")
        expect(site.gc("--yes")["without_stub"] == ["exp/a.nc"], site.told)
        expect({"exp/clone.nc", "elsewhere/clone.nc", "exp/b.nc"} <= set(site.names()), f"{site.names()}")
        text = client(["ncdump", "-v", "v", "esdm://exp/clone.nc"]).stdout
        expect("v = 1, 1" in text, text)
        run([tool("esdm-mv"), "esdm://exp/clone.nc", "esdm://exp/a.nc"])  # in its place, with no stub either
        expect(site.stubless() == [], f"{site.stubless()} {site.told}")
        site.gc("--yes")
        expect("exp/a.nc" in site.names(), f"{site.names()}")


def test_what_was_renamed_or_brought_back_by_hand_stays():
    with Named() as site:
        site.write("a.nc", "b.nc", "c.nc", "d.nc")
        run([tool("esdm-mv"), "esdm://exp/a.nc", "esdm://archive/a.nc"])
        (site.run / "a.nc").unlink()
        expect(site.stubless() == [], f"moved by its name: {site.stubless()}")
        site.write("b.nc", value=2)
        run([tool("esdm-restore"), "--as", "exp/b-before.nc", "exp/b.nc"])
        expect(site.stubless() == [], f"brought back beside: {site.stubless()}")
        run(["mv", site.run / "c.nc", site.folder])
        expect(site.stubless(folders=[site.run, site.folder]) == [], "moved to a folder that is named")
        expect(site.stubless() == ["exp/c.nc"], f"{site.stubless()}")
        expect("copy elsewhere" in site.told, site.told)


def test_another_folder_of_the_same_name():
    """Two folders are routed to one name: of neither go containers of the other one."""
    with Named() as site:
        site.write("a.nc", "gone.nc")
        other = site.folder / "other"
        other.mkdir()
        site.routes, site.run = f"{other}=exp", other
        site.write("x.nc", "removed.nc")
        site.run = site.folder / "run"
        for path in (site.run / "gone.nc", other / "removed.nc"):
            path.unlink()
        expect(site.stubless() == ["exp/gone.nc"], f"{site.stubless()}")
        expect(site.stubless(folders=[other]) == ["exp/removed.nc"], f"{site.stubless(folders=[other])}")
        # By its name, too: where the stubs of the others were made is looked at.
        both = ["exp/gone.nc", "exp/removed.nc"]
        expect(site.stubless(folders=[f"{site.run}=exp"]) == both, f"{site.told}")
        run(["rm", site.run / "a.nc"])
        expect_error(run([tool("esdm-gc"), "--age", "0", "--stubs", site.run, "--yes"], check=False), "mounted",
                     "esdm-rm -r 'exp'")
        hidden = site.folder / "hidden"
        other.rename(hidden)
        shutil.copy(hidden / "x.nc", site.run)
        left = site.stubless(folders=[f"{site.run}=exp"])
        expect(left == ["exp/a.nc", "exp/gone.nc"] and "cannot be looked at" in site.told,
               f"a folder that is not mounted here: {left} {site.told}")
        other.write_text("no folder")
        left = site.stubless(folders=[f"{site.run}=exp"])
        expect(left == ["exp/a.nc", "exp/gone.nc"] and "cannot be looked at" in site.told, f"{left} {site.told}")
        other.unlink()
        other.symlink_to(other)  # as what lies below another user's folder
        left = site.stubless(folders=[f"{site.run}=exp"])
        expect(left == ["exp/a.nc", "exp/gone.nc"] and "cannot be looked at" in site.told, f"{left} {site.told}")


def test_a_folder_of_the_same_path_on_another_node():
    """Each node has a /scratch of its own: what lies in that of another one is not seen, so its containers stay."""
    with Named() as site:
        site.write("b.nc", "keep.nc")
        aside = site.folder / "scratch of the other node"
        site.run.rename(aside)
        site.run.mkdir()
        env = {"ESDM_NODE": "node 2", "ESDM_NC_ROUTE": site.routes}
        client([clients.python_of("debian"), "-c", WRITE, "2", site.run / "c.nc", site.run / "d.nc"], env=env)
        (site.run / "d.nc").unlink()
        for folder in (site.run, f"{site.run}=exp"):
            found = site.stubless(folders=[folder], env={"ESDM_NODE": "node 2"})
            expect(found == ["exp/d.nc"] and "2 containers without stub kept" in site.told and
                   "another node" in site.told and "exp/b.nc" in site.told, f"{found} {site.told}")
        done = site.gc("--yes", env={"ESDM_NODE": "node 2"})
        expect(done["without_stub"] == ["exp/d.nc"], f"{done}")
        expect(site.names() == ["exp/b.nc", "exp/c.nc", "exp/keep.nc"], f"{site.names()}")
        shutil.rmtree(site.run)
        aside.rename(site.run)
        (site.run / "b.nc").unlink()
        expect(site.stubless() == ["exp/b.nc"] and "exp/c.nc" in site.told, f"{site.told}")


def test_what_was_brought_back_after_a_rerun_stays():
    """A file was removed and made again; what it was before comes back under another name, long unchanged."""
    with Named() as site:
        site.write("a.nc", "keep.nc")
        (site.run / "a.nc").unlink()
        site.write("a.nc", value=2)
        run([tool("esdm-restore"), "--as", "exp/a-old.nc", "exp/a.nc"])
        for folder in (site.run, f"{site.run}=exp"):
            expect(site.stubless(folders=[folder]) == [] and "esdm-restore" in site.told and
                   "'exp/a-old.nc'" in site.told, f"{site.stubless()} {site.told}")
        expect(site.gc("--yes")["without_stub"] == [], site.told)
        text = client(["ncdump", "-v", "v", "esdm://exp/a-old.nc"]).stdout
        expect("v = 1, 1" in text, text)


def test_what_was_brought_back_without_its_stub_stays():
    """Somebody wanted it: an esdm-gc that runs every night must not take it away again. What is written anew under
    its name is another container, and what is removed again goes."""
    with Named() as site:
        site.write("a.nc", "b.nc", "keep.nc")
        (site.run / "a.nc").unlink()
        (site.run / "b.nc").unlink()
        expect(site.gc("--yes")["without_stub"] == ["exp/a.nc", "exp/b.nc"], site.told)
        run([tool("esdm-restore"), "esdm://exp/a.nc", "esdm://exp/b.nc"])
        (site.run / "a.nc").unlink()
        (site.run / "b.nc").unlink()
        expect(site.gc("--yes")["without_stub"] == [], site.told)
        expect("2 containers without stub kept, such as 'exp/a.nc': esdm-restore brought them back" in site.told,
               site.told)
        expect(site.names() == ["exp/a.nc", "exp/b.nc", "exp/keep.nc"], f"{site.names()}")
        remove_for_good("exp/b.nc")
        site.write("a.nc", "b.nc", value=2)
        (site.run / "a.nc").unlink()
        (site.run / "b.nc").unlink()
        expect(site.stubless() == ["exp/a.nc", "exp/b.nc"], site.told)


def dumped(site, path):
    return site.client("ncdump", "-v", "v", path).stdout


def test_files_come_back_with_their_containers():
    with Named() as site:
        site.write("a.nc", "sub/b.nc", "keep.nc")
        a, b = site.run / "a.nc", site.run / "sub" / "b.nc"
        for path in (a, b):
            path.unlink()
        run([tool("esdm-rm"), "esdm://exp/a.nc", "esdm://exp/sub/b.nc"])
        b.write_bytes(b"another file")
        told = run([tool("esdm-restore"), "esdm://exp/a.nc", "esdm://exp/sub/b.nc"]).stdout
        expect(str(a) in told and str(b) not in told and b.read_bytes() == b"another file", told)
        expect("v = 1, 1" in dumped(site, a), "read through its file")
        site.client(clients.python_of("debian"), "-c", "import sys, netCDF4\n"
                    "with netCDF4.Dataset(sys.argv[1], 'a') as d: d['v'][:] = 7", a)
        expect("v = 7, 7" in dumped(site, "esdm://exp/a.nc"), "written through its file")
        expect(site.stubless(folders=[site.run]) == [] and "exp/a.nc" not in site.told, site.told)
        # It is no copy: what is moved with a program's rename goes along.
        site.client("mv", a, site.run / "c.nc")
        expect("exp/c.nc" in site.names() and "v = 7, 7" in dumped(site, site.run / "c.nc"), f"{site.names()}")


def test_files_alone_come_back():
    """`rm -r run` has removed the files, and not what they stand for."""
    with Named() as site:
        site.write("a.nc", "sub/b.nc")
        shutil.rmtree(site.run)
        restore = [tool("esdm-restore"), "--json", "-r", "--files", "esdm://exp"]
        told = json.loads(run([*restore, "--dry-run"]).stdout)
        files = sorted(one["file"] for one in told["restored"])
        expect(files == [str(site.run / "a.nc"), str(site.run / "sub/b.nc")] and not site.run.exists(), f"{told}")
        expect_error(run([tool("esdm-restore"), "esdm://exp/a.nc"], check=False), "--files", str(site.run / "a.nc"))
        expect(not site.run.exists(), "a hint alone")
        told = json.loads(run(restore).stdout)
        expect(len(told["restored"]) == 2, f"{told}")
        expect("v = 1, 1" in dumped(site, site.run / "sub" / "b.nc"), "read through its file")
        expect_error(run(restore, check=False), "no file is missing")
        # Where it was replaced before, the file is what is missing all the same.
        site.write("a.nc", value=2)
        (site.run / "a.nc").unlink()
        expect_error(run([tool("esdm-restore"), "esdm://exp/a.nc"], check=False), "--files", "--yes")
        run([tool("esdm-restore"), "--files", "esdm://exp/a.nc"])
        expect("v = 2, 2" in dumped(site, site.run / "a.nc"), "the newest")
        # Another node's folder of the same path.
        (site.run / "a.nc").unlink()
        done = run([tool("esdm-restore"), "--files", "esdm://exp/a.nc"], check=False,
                   env=environment({"ESDM_NODE": "another"}))
        expect(done.returncode == 3 and not (site.run / "a.nc").exists(), f"{done.returncode} {done.stderr}")
        for wrong in (["--list"], ["--as", "exp/x.nc"], ["--id", "1"]):
            expect(run([tool("esdm-restore"), "--files", *wrong, "a"], check=False).returncode == 2, f"{wrong}")


def test_what_never_had_a_file_gets_none():
    """What came back under another name is read by that name; nobody made a file of it."""
    with Named() as site:
        site.write("a.nc")
        site.write("a.nc", value=2)
        run([tool("esdm-restore"), "--as", "exp/a-old.nc", "exp/a.nc"])
        shutil.rmtree(site.run)
        told = json.loads(run([tool("esdm-restore"), "--json", "-r", "--files", "esdm://exp"]).stdout)
        expect([one["file"] for one in told["restored"]] == [str(site.run / "a.nc")], f"{told}")
        expect([p.name for p in site.run.iterdir()] == ["a.nc"], "no file that was never there")
        site.client("mv", site.run / "a.nc", site.run / "c.nc")
        (site.run / "c.nc").unlink()
        run([tool("esdm-restore"), "--files", "esdm://exp/c.nc"])
        site.client("mv", site.run / "c.nc", site.run / "a.nc")
        run([tool("esdm-rm"), "-r", "--yes", "esdm://exp"])
        run([tool("esdm-restore"), "-r", "esdm://exp"])
        expect(sorted(site.names()) == ["exp/a-old.nc", "exp/a.nc"], f"{site.names()}")
        expect([p.name for p in site.run.iterdir()] == ["a.nc"], f"{list(site.run.iterdir())}")


def test_paths_of_folders_that_were_removed():
    """Who types what was removed is told how the containers are called."""
    with Named() as site:
        site.routes = str(site.run)
        site.write("a.nc", "sub/b.nc")
        shutil.rmtree(site.run)
        name = f"esdm:/{site.run}"
        for said, words in ((site.run, f"-r --files '{name}'"), ("run", f"-r --files '{name}'"), ("./run/a.nc", f"--files '{name}/a.nc'")):
            done = run([tool("esdm-restore"), "--files", said], check=False, cwd=site.folder)
            expect(done.returncode == 3 and words in done.stderr, f"{said}: {done.stderr}")
        done = run([tool("esdm-restore"), "--files", "none"], check=False, cwd=site.folder)
        expect(done.returncode == 3 and "--files" not in done.stderr, done.stderr)
        run([tool("esdm-restore"), "-r", "--files", name])
        expect("v = 1, 1" in dumped(site, site.run / "sub" / "b.nc"), "read through its file")


def test_files_that_were_moved_are_not_put_back():
    """`mv run run-1` keeps them: a second file would let the next run replace what they stand for."""
    with Named() as site:
        site.write("a.nc", "sub/b.nc", "c.nc")
        old = site.folder / "run-1"
        site.run.rename(old)
        shutil.copy(old / "c.nc", site.folder / "copy.nc")
        (old / "c.nc").unlink()
        restore = [tool("esdm-restore"), "--json", "-r", "--files", "esdm://exp"]
        done = run(restore)
        told = [one["file"] for one in json.loads(done.stdout)["restored"]]
        expect(told == [str(site.run / "c.nc")], f"the one that was removed, a copy of which is there: {told}")
        expect(str(old / "a.nc") in done.stderr and "moved" in done.stderr, done.stderr)
        expect_error(run(restore, check=False), "moved", str(old / "a.nc"))
        site.write("a.nc", value=2)
        expect("v = 1, 1" in dumped(site, old / "a.nc") and "v = 2, 2" in dumped(site, site.run / "a.nc"), "both runs")


def test_folders_that_cannot_be_read():
    """Of what another user keeps to himself nothing is known, and nothing is removed."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        skip("needs root, to be another user")
    with Named() as site:
        site.write("a.nc", "sub/b.nc", "gone.nc")
        (site.run / "gone.nc").unlink()
        os.chmod(site.run / "sub", 0o700)
        run(["chmod", "-R", "a+rwX", site.folder])
        os.chmod(site.run / "sub", 0o700)
        done = run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", tool("esdm-gc"), "--age", "0",
                    "--yes", "--stubs", site.run], check=False)
        expect(done.returncode != 0 and "nothing is removed" in done.stderr, f"{done.stdout}{done.stderr}")
        expect(len(site.names()) == 3, f"{site.names()}")


def test_stubs_of_containers_that_are_gone():
    """They go when the container cannot be brought back any more, and they alone."""
    with Named() as site:
        site.write("a.nc", "b.nc", "sub/c.nc", "d.nc", "renamed.nc")
        shutil.copy(site.run / "b.nc", site.run / "copy.nc")
        (site.run / "note.txt").write_bytes((site.run / "b.nc").read_bytes() + b"and a word of mine")
        stubs = {n: (site.run / n).read_bytes() for n in ("a.nc", "b.nc", "sub/c.nc")}
        run([tool("esdm-rm"), "esdm://exp/b.nc", "esdm://exp/sub/c.nc"])
        run([tool("esdm-mv"), "esdm://exp/renamed.nc", "esdm://archive/renamed.nc"])
        found = site.gc("--dry-run")
        expect(found["stubs"] == [], f"what esdm-restore would bring back: {found}")
        run([tool("esdm-restore"), "exp/b.nc"])
        expect("v = 1, 1" in client(["ncdump", site.run / "b.nc"]).stdout, "it came back, and its stub reads it")
        run([tool("esdm-rm"), "--for-good", "esdm://exp/b.nc", "esdm://exp/sub/c.nc"], check=False)
        run([tool("esdm-gc"), "--replaced-now", "--yes", "--age", "0"])
        commit_later()
        gone = sorted(str(site.run / n) for n in ("b.nc", "copy.nc", "sub/c.nc"))
        expect(site.gc(age="1d")["stubs_young"] == 3, site.told)
        found = site.gc("--dry-run")
        expect(sorted(found["stubs"]) == gone and found["stubs_left"] == 0, f"{found}")
        expect(site.gc(status=4) == {} and (site.run / "b.nc").exists(), "it did not ask")
        text = run([tool("esdm-gc"), "--stubs", site.run, "--age", "0", "-n"]).stdout
        expect(f"would remove stub '{site.run}/b.nc', whose container 'exp/b.nc' is gone" in text and
               "3 stubs without container" in text, text)
        found = site.gc("--yes")
        expect(sorted(found["stubs"]) == gone, f"{found}")
        left = sorted(str(p.relative_to(site.run)) for p in site.run.rglob("*") if p.is_file())
        expect(left == ["a.nc", "d.nc", "note.txt", "renamed.nc"], f"{left}")
        expect(site.names() == ["archive/renamed.nc", "exp/a.nc", "exp/d.nc"], f"{site.names()}")
        expect((site.run / "a.nc").read_bytes() == stubs["a.nc"], "another stub was changed")


def test_stubs_of_what_was_renamed_and_removed():
    """Renamed back after esdm-restore they read it again, so they stay as long as it is kept."""
    with Named() as site:
        site.write("a.nc", "keep.nc")
        run([tool("esdm-mv"), "esdm://exp/a.nc", "esdm://exp/b.nc"])
        run([tool("esdm-mv"), "esdm://exp/b.nc", "esdm://archive/c.nc"])
        run([tool("esdm-rm"), "esdm://archive/c.nc"])
        commit_later()
        expect(site.gc("--yes")["stubs"] == [], site.told)
        run([tool("esdm-restore"), "archive/c.nc"])
        run([tool("esdm-mv"), "esdm://archive/c.nc", "esdm://exp/a.nc"])
        expect("v = 1, 1" in client(["ncdump", site.run / "a.nc"]).stdout, "it is back")
        run([tool("esdm-mv"), "esdm://exp/a.nc", "esdm://exp/b.nc"])
        remove_for_good("exp/b.nc")
        run([tool("esdm-gc"), "--replaced-now", "--yes", "--age", "0"])
        commit_later()
        expect(site.gc("--dry-run")["stubs"] == [str(site.run / "a.nc")], f"in a ring of names: {site.told}")


def test_stubs_that_an_old_catalogue_lacks():
    """Somebody has copied an older one back by hand, so that nothing says that containers may be missing."""
    with Named() as site:
        site.write("a.nc", "gone.nc")
        remove_for_good("exp/gone.nc")
        site.write("keep.nc")
        metadata = site.folder / "metadata"
        if not metadata.is_dir():
            skip("the catalogue is elsewhere")
        shutil.copytree(metadata, site.folder / "kept")
        site.write("new.nc", "newer.nc")
        shutil.rmtree(metadata)
        (site.folder / "kept").rename(metadata)
        expect(site.names() == ["exp/a.nc", "exp/keep.nc"], f"{site.names()}")
        expect(site.gc("--dry-run")["stubs"] == [str(site.run / "gone.nc")] and
               "2 stubs without container left" in site.told and "esdm-mkfs --restore" in site.told, site.told)


def test_stubs_of_which_nothing_is_known_stay():
    """Of programs that still write or were killed before they had committed, of other sites, and of earlier
    versions: they are counted."""
    with Named() as site:
        site.write("a.nc", "gone.nc")
        other = site.folder / "other-site"
        other.mkdir()
        config = json.loads(site.config.read_text().replace(str(site.folder), str(other)))
        (other / "site.json").write_text(json.dumps(config))
        env = {"ESDM_CONFIG": str(other / "site.json"), "ESDM_NC_ROUTE": site.routes}
        run([tool("esdm-mkfs")], env=environment(env))
        client([clients.python_of("debian"), "-c", WRITE, "3", site.run / "theirs.nc"], env=env)
        killed = ("import os, signal, sys, netCDF4\nd = netCDF4.Dataset(sys.argv[1], 'w')\n"
                  "d.createDimension('x', 2)\nos.kill(os.getpid(), signal.SIGKILL)")
        site.client("sh", "-c", '"$@"; true', "sh", clients.python_of("debian"), "-c", killed, site.run / "killed.nc")
        old = (site.run / "gone.nc").read_bytes()
        at = old.index(b"\0\0\0\x09esdm_site")
        (site.run / "old.nc").write_bytes(old[:at].replace(b"\x0c\0\0\0\x07", b"\x0c\0\0\0\x06") + bytes(8))
        remove_for_good("exp/gone.nc")
        expect((site.run / "killed.nc").exists(), "the program was not killed late enough")
        found = site.gc("--yes")
        expect(found["stubs"] == [str(site.run / "gone.nc")] and found["stubs_left"] == 3, f"{found}")
        left = sorted(p.name for p in site.run.iterdir() if p.is_file())
        expect(left == ["a.nc", "killed.nc", "old.nc", "theirs.nc"], f"{left}")
        text = run([tool("esdm-gc"), "--stubs", site.run, "--age", "0", "-n"]).stdout
        expect("3 stubs left of containers that this site does not have" in text, text)
        # Theirs: the other site finds its own.
        run([tool("esdm-rm"), "--for-good", "esdm://exp/theirs.nc"], env=environment(env))
        commit_later(env)
        expect(site.gc("--dry-run", env=env)["stubs"] == [str(site.run / "theirs.nc")], site.told)


def test_a_stub_that_is_in_use_again():
    """A rerun through a stub whose container is gone makes it a living one; a run that has not committed yet has
    the stub of a new file, which nobody takes away."""
    with Named() as site:
        site.write("a.nc", "keep.nc")
        remove_for_good("exp/a.nc")
        site.write("a.nc", value=5)
        found = site.gc("--yes")
        expect(found["stubs"] == [] and found["without_stub"] == [], f"{found}")
        expect("v = 5, 5" in client(["ncdump", site.run / "a.nc"]).stdout, "the rerun")
        shutil.rmtree(site.run)
        site.run.mkdir()
        site.write("a.nc", "keep.nc", value=6)
        expect(site.gc("--yes")["stubs"] == [], site.told)
        expect("v = 6, 6" in client(["ncdump", site.run / "a.nc"]).stdout, "the second rerun")
        gc = [tool("esdm-gc"), "--stubs", site.run, "--age", "0", "--yes"]
        writing = ("import subprocess, sys, netCDF4\nd = netCDF4.Dataset(sys.argv[1], 'w')\n"
                   "d.createDimension('x', 2)\nd.createVariable('v', 'i4', ('x',))[:] = 7\n"
                   "print(subprocess.run(sys.argv[2:], check=True, capture_output=True, text=True).stdout)\n"
                   "d.close()")
        told = site.client(clients.python_of("debian"), "-c", writing, site.run / "new.nc", *gc).stdout
        expect("1 stub left of" in told, told)
        expect("v = 7, 7" in client(["ncdump", site.run / "new.nc"]).stdout, "what was being written")


def test_stubs_that_nco_renamed_and_of_another_container():
    with Named() as site:
        site.write("a.nc")
        site.client("ncks", "-O", site.run / "a.nc", site.run / "nco.nc")
        remove_for_good("exp/nco.nc")
        expect(site.gc("--dry-run")["stubs"] == [str(site.run / "nco.nc")], site.told)
        # Another folder of the same name has made another container of it: the stub is refused by now.
        other = site.folder / "deep/er/other"
        other.mkdir(parents=True)
        client([clients.python_of("debian"), "-c", WRITE, "9", other / "nco.nc"],
               env={"ESDM_NC_ROUTE": f"{other}=exp"})
        expect(site.gc("--dry-run")["stubs"] == [str(site.run / "nco.nc")], site.told)
        client([clients.python_of("debian"), "-c", WRITE, "9", other / "a.nc"],
               env={"ESDM_NC_ROUTE": f"{other}=exp"})
        expect(site.gc("--dry-run")["stubs"] == [str(site.run / "nco.nc")], "the former a.nc is kept")
        run([tool("esdm-gc"), "--replaced-now", "--yes", "--age", "0"])
        commit_later()
        both = sorted(str(site.run / n) for n in ("a.nc", "nco.nc"))
        expect(sorted(site.gc("--dry-run")["stubs"]) == both, site.told)
        expect(site.gc("--dry-run", folders=[other])["stubs"] == [], site.told)


def test_stubs_that_may_not_be_removed():
    """In another user's folder: told, and the exit status says so."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        skip("needs root, to be another user")
    with Named() as site:
        site.write("a.nc", "gone.nc")
        remove_for_good("exp/gone.nc")
        run(["chmod", "-R", "a+rwX", site.folder])
        os.chmod(site.run, 0o755)
        done = run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", tool("esdm-gc"), "--age", "0",
                    "--yes", "--stubs", site.run], check=False)
        expect(done.returncode != 0, f"{done.stdout}{done.stderr}")
        expect_error(done, "cannot remove the stub", "gone.nc", "Permission denied")
        expect((site.run / "gone.nc").exists(), "it is gone")


def test_a_catalogue_that_was_brought_back():
    """It may lack containers that are found yet: until somebody says that nothing is missing all stubs stay. Where
    stubs were made is brought back, too."""
    with Named() as site:
        site.write("a.nc", "gone.nc", "b.nc")
        remove_for_good("exp/gone.nc")
        lostsite.lose(site)
        lostsite.expect_restored(lostsite.restore())
        expect(site.names() == ["exp/a.nc", "exp/b.nc"], f"{site.names()}")
        expect(site.gc("--yes")["stubs"] == [] and "may lack containers" in site.told, site.told)
        (site.run / "b.nc").unlink()
        expect(site.stubless() == ["exp/b.nc"], site.told)
        run([tool("esdm-gc"), "--restoration-complete", "--yes"])
        expect(site.gc("--dry-run")["stubs"] == [str(site.run / "gone.nc")], site.told)


def test_folders_whose_names_are_no_utf8():
    """Such a folder cannot be told by containers: stubs tell the name of the route, and it is printed."""
    with Named() as site:
        folder = os.fsencode(site.folder) + b"/r\xfcn"
        os.mkdir(folder)
        site.run = pathlib.Path(os.fsdecode(folder))
        site.routes = os.fsdecode(folder) + "=exp"
        for name in ("a.nc", "b.nc"):  # netCDF4-python takes no such paths
            site.client("ncgen", "-4", "-o", site.run / name, SOURCE / "tests/netcdf/clients/classic.cdl")
        expect(site.names() == ["exp/a.nc", "exp/b.nc"], f"{site.names()}")
        (site.run / "b.nc").unlink()
        expect(site.stubless() == [] and "=exp'" in site.told, site.told)
        expect(site.stubless(folders=[f"{site.run}=exp"]) == ["exp/b.nc"], site.told)


if __name__ == "__main__":
    main(*[f for n, f in sorted(globals().items()) if n.startswith("test_")])
