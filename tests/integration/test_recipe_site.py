#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-recipe: a recipe that runs again writes to the site and to a folder of its own alone, belongs to the site of the
call, and what is worth to be dropped of a site is proposed."""

import json
import os

from esdmtest import Site, client, client_environment, expect, expect_error, main, need_program, run, skip, tool

RECIPE = tool("esdm-recipe")


def recipe(*arguments, check=True, **more):
    return run([RECIPE, *arguments], check=check, **more)


def pattern(name, seed, shape="time=3,lat=128,lon=256"):
    run([tool("esdm-pattern"), "-q", "-f", "-s", shape, "-u", "-v", "tas", "--seed", str(seed), f"esdm:{name}"])


def need_sandbox():
    """By a call of the kernel, as /sys may not be there."""
    import ctypes
    if ctypes.CDLL(None).syscall(444, 0, 0, 1) < 1:
        skip("this kernel has no Landlock")


# What it does beside its work is decided by files that were not there when it was recorded.
WANDERS = """
import netCDF4, os, sys, tempfile
folder = os.path.dirname(__file__)
with tempfile.NamedTemporaryFile() as f:
    f.write(b"1")
if os.path.exists(folder + "/wander"):
    what = open(folder + "/wander").read()
    if what == "truncate":
        open(folder + "/precious", "w").close()
    if what == "remove":
        os.unlink(folder + "/precious")
    if what == "rename":
        os.rename(folder + "/precious", folder + "/gone")
    if what == "child":
        assert os.system(f"rm -f {folder}/precious") == 0
    if what == "home":
        open(os.path.expanduser("~/precious"), "a").write("x")
with netCDF4.Dataset("esdm://in.nc") as d, netCDF4.Dataset("esdm://out.nc", "w") as o:
    o.createDimension("x", 50000)
    o.createVariable("v", "f4", ("x",))[:] = d["tas"][:].ravel()[:50000] * 2
"""


def test_a_recipe_writes_nowhere_else():
    need_sandbox()
    with Site(history=2) as s:
        pattern("in.nc", 1)
        script, precious, wander = s.file("wanders.py"), s.file("precious"), s.file("wander")
        script.write_text(WANDERS)
        precious.write_text("years of work")
        home = {**client_environment(), "HOME": str(s.folder)}
        run([RECIPE, "record", "--", "/usr/bin/python3", str(script)], env=home)
        recipe("check", "out.nc")
        before = sorted(os.listdir(s.folder))
        for what in "truncate", "remove", "rename", "child", "home":
            wander.write_text(what)
            bad = recipe("check", "out.nc", check=False)
            expect(bad.returncode == 1 and "--force" in bad.stderr, f"{what}: {bad.returncode} {bad.stderr}")
            expect(what == "child" or "Permission denied" in bad.stderr, f"{what}: {bad.stderr}")
            expect(precious.read_text() == "years of work", what)
        wander.unlink()
        expect(sorted(os.listdir(s.folder)) == before, f"{sorted(os.listdir(s.folder))}")
        recipe("drop", "out.nc")
        recipe("restore", "out.nc")
        wander.write_text("truncate")
        recipe("check", "--force", "out.nc")
        expect(precious.read_text() == "", "--force lifts it")


def test_it_belongs_to_the_site_of_the_call():
    """The folder in which it ran has another site by now."""
    need_program("ncks")
    with Site() as s:
        pattern("in.nc", 1)
        folder = s.folder / "work"
        folder.mkdir()
        run([RECIPE, "record", "--", "ncks", "-O", "esdm://in.nc", "esdm://out.nc"], cwd=folder)
        other = {"site": "other", "metadata": {"plugin": "sqlite", "directory": str(s.folder / "other")},
                 "targets": [{"name": "p", "plugin": "posix", "directory": str(s.folder / "elsewhere")}]}
        (folder / "esdm.json").write_text(json.dumps(other))
        os.symlink(s.config, s.folder / "esdm.json")
        place = {k: v for k, v in os.environ.items() if k != "ESDM_CONFIG"}
        done = recipe("check", "out.nc", cwd=s.folder, env=place, check=False)
        expect("same data" in done.stdout and not (s.folder / "elsewhere").exists(), f"{done.stdout}{done.stderr}")


def test_the_default_site():
    """Where $XDG_DATA_HOME says, and by the home of the call."""
    need_program("ncks")
    with Site() as s:
        plain = {k: v for k, v in os.environ.items() if k not in ("ESDM_CONFIG", "XDG_DATA_HOME", "XDG_CONFIG_HOME")}
        data, home, other = s.folder / "data", s.folder / "home", s.folder / "other"
        for folder in data, home, other:
            folder.mkdir()
        by_data, by_home = {**plain, "HOME": str(home), "XDG_DATA_HOME": str(data)}, {**plain, "HOME": str(home)}
        for env, where in (by_data, data), (by_home, home / ".local/share"):
            run([tool("esdm-pattern"), "-q", "-f", "-s", "time=3,lat=128,lon=256", "-u", "-v", "tas", "esdm:in.nc"], env=env, cwd=s.folder)
            run([RECIPE, "record", "--", "ncks", "-O", "esdm://in.nc", "esdm://out.nc"], env=env, cwd=s.folder)
            expect((where / "esdm").is_dir(), f"the site is in {where}")
            done = recipe("check", "out.nc", env=env, cwd=s.folder, check=False)
            expect("same data" in done.stdout, f"{where}: {done.stdout}{done.stderr}")
            recipe("drop", "out.nc", env=env, cwd=s.folder)
            recipe("restore", "out.nc", env=env, cwd=s.folder)
        # The same site by another home: the recipe knows the one of then.
        moved = {**plain, "HOME": str(other), "XDG_DATA_HOME": str(home / ".local/share")}
        done = recipe("check", "out.nc", env=moved, cwd=s.folder, check=False)
        expect("same data" in done.stdout, f"{done.stdout}{done.stderr}")


def proposals(*arguments):
    done = json.loads(recipe("--json", "propose", *arguments).stdout)
    return done, {one["name"]: one for one in done["recipes"]}


def test_what_is_worth_to_be_dropped():
    need_program("ncks", "ncra")
    with Site() as s:
        expect("none of 0 containers has a recipe" in recipe("propose").stdout, "of nothing")
        pattern("run/in.nc", 1, "time=6,lat=128,lon=256")
        recipe("record", "--", "ncks", "-O", "esdm://run/in.nc", "esdm://run/a.nc")        # 768 KiB
        recipe("record", "--", "ncra", "-O", "esdm://run/a.nc", "esdm://run/mean.nc")      # 128 KiB, made of a.nc
        recipe("record", "--", "ncks", "-O", "-d", "time,0", "esdm://run/in.nc", "esdm://first.nc")
        done, by_name = proposals("--compute-price=0")
        expect(done["containers"] == 4 and set(by_name) == {"run/a.nc", "run/mean.nc", "first.nc"}, f"{done}")
        expect([one["name"] for one in done["recipes"]][0] == "run/a.nc", "what saves most is first")
        expect(by_name["run/a.nc"]["proposed"] and by_name["first.nc"]["proposed"], f"{by_name}")
        expect(not by_name["run/mean.nc"]["proposed"] and "computed from one that goes" in by_name["run/mean.nc"]["why_not"],
               f"{by_name}")
        goes = by_name["run/a.nc"]["stored_bytes"] + by_name["first.nc"]["stored_bytes"]
        expect(done["stored_bytes"] == goes and abs(done["saves"] / (goes / 1e12 * 60 * 10) - 1) < 1e-9, f"{done}")
        done, by_name = proposals("--compute-price=1", "--storage-price=1", "--readings=2", "--years=1")
        expect(done["stored_bytes"] == 0 and all(one["why_not"] == "cheaper to keep" for one in by_name.values()), f"{done}")
        one = by_name["first.nc"]
        expect(abs(one["computing"] - one["seconds"] / 3600 * 2) < 1e-12 and
               abs(one["saves"] - (one["keeping"] - one["computing"])) < 1e-12, f"{one}")
        done, by_name = proposals("--compute-price=0", "run")
        expect(set(by_name) == {"run/a.nc", "run/mean.nc"}, f"{by_name}")
        text = recipe("propose", "--compute-price=0").stdout
        expect("2 of 3 would go" in text and "computed from one that goes" in text, text)
        expect("nothing is worth" in recipe("propose", "--storage-price=0").stdout, "of nothing that saves")

        recipe("drop", "run/mean.nc")      # its values are computed from a.nc, which stays
        done, by_name = proposals("--compute-price=0")
        expect(by_name["run/mean.nc"]["why_not"] == "dropped already" and
               by_name["run/a.nc"]["why_not"] == "one that goes is computed from it", f"{by_name}")
        plain = s.file("plain.nc")
        recipe("record", "--", "sh", "-c", f"ncks -O esdm://run/in.nc {plain}; ncks -O {plain} esdm://copy.nc")
        done, by_name = proposals("--compute-price=0")
        expect("plain files" in by_name["copy.nc"]["why_not"], f"{by_name['copy.nc']}")
        expect_error(recipe("propose", "absent", check=False), "absent")
        expect_error(recipe("cost", "--readings=3", "first.nc", check=False), "--readings goes with propose")
        expect_error(recipe("propose", "--readings=-1", check=False), "--readings")
        client(["ncdump", "-h", "esdm://first.nc"])


main(test_a_recipe_writes_nowhere_else, test_it_belongs_to_the_site_of_the_call, test_the_default_site,
     test_what_is_worth_to_be_dropped)
