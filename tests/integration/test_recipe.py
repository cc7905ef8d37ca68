#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-recipe: containers that are recorded, made again bit for bit, and dropped only then."""

import json

from esdmtest import SOURCE, Site, client, expect, expect_error, main, need_program, run, tool

MEAN = ["ncra", "-O", "esdm://in.nc", "esdm://mean.nc"]


def site(history=1):
    return Site(history=history)


def pattern(name, seed, shape="time=3,lat=512,lon=1024"):
    run([tool("esdm-pattern"), "-q", "-f", "-s", shape, "-u", "-v", "tas", "--seed", str(seed),
         f"esdm:{name}"])


def recipe(*arguments, check=True):
    return run([tool("esdm-recipe"), *arguments], check=check)


def digest(name):
    return json.loads(run([tool("esdm-stat"), "--digest", "--json", name]).stdout)


def names():
    return run([tool("esdm-ls")]).stdout.split()


def stored(name):
    """Bytes of what the newest snapshot has; those of older ones go with them."""
    listed = json.loads(run([tool("esdm-ls"), "-l", "--json", name]).stdout)["containers"]
    return listed[0]["stored_bytes"]


def values(name):
    return client(["ncdump", "-v", "tas", f"esdm://{name}"]).stdout


def test_record_check_drop_restore():
    need_program("ncra", "ncdump")
    with site():
        pattern("in.nc", 1)
        recipe("record", "--", *MEAN)
        before = values("mean.nc")
        known = json.loads(recipe("--json", "show", "mean.nc").stdout)
        inputs = {one.get("container", one.get("file")) for one in known["inputs"]}
        expect("in.nc" in inputs and any(i.endswith("/ncra") for i in inputs), f"inputs: {inputs}")
        expect(len(inputs) == 2, f"neither files of the site nor of the system: {inputs}")
        expect(known["program"] == MEAN and known["output"] == "mean.nc", f"{known}")
        done = json.loads(recipe("--json", "check", "mean.nc").stdout)
        expect(done["same"] and done["digest"] == known["digest"], f"bit for bit: {done}")
        expect(names() == ["in.nc", "mean.nc"], f"nothing is left: {names()}")

        cost = json.loads(recipe("--json", "cost", "--years=1", "--storage-price=100",
                                 "--compute-price=1", "mean.nc").stdout)
        expect(abs(cost["keeping"] - cost["stored_bytes"] / 1e12 * 100) < 1e-12 and
               abs(cost["computing_once"] - cost["seconds"] / 3600) < 1e-12, f"{cost}")

        costs = ["--json", "cost", "--years=5", "--from=2015", "--centre", str(SOURCE / "site-config/costs/climate.json")]
        cost = json.loads(recipe(*costs, "mean.nc").stdout)
        a_year = 5.04e6 / 5 + 200 * 8766 * 0.12  # of disks with 45 PB; below: of 2500 nodes
        node_hour = (22.6e6 / 5 + 1400 * 8766 * 0.12) / 8766 / 2500
        expect(abs(cost["keeping"] / (cost["stored_bytes"] / 1e12 * a_year / 45000 * 5) - 1) < 1e-9, f"{cost}")
        expect(abs(cost["computing_once"] / (cost["seconds"] / 3600 * node_hour) - 1) < 1e-9, f"{cost}")
        expect(cost["readings"] == cost["keeping"] // cost["computing_once"], f"{cost}")
        cost = json.loads(recipe(*costs, "--compute-price=0", "mean.nc").stdout)
        expect(cost["computing_once"] == 0 and cost["readings"] is None and cost["keeping"] > 0, f"{cost}")
        expect_error(recipe("cost", "--centre", "nowhere.json", "mean.nc", check=False), "nowhere.json")
        expect_error(recipe("cost", "--years=0", "mean.nc", check=False), "--years")

        expect(stored("mean.nc") > 2 << 20, f"{stored('mean.nc')} bytes")
        recipe("drop", "mean.nc")
        expect(stored("mean.nc") < 1 << 16, f"the values are gone: {stored('mean.nc')} bytes")
        lost = client(["ncdump", "-v", "tas", "esdm://mean.nc"], check=False)
        expect(lost.returncode != 0 and "esdm-recipe restore" in lost.stderr, lost.stderr)
        expect("float tas(time, lat, lon)" in client(["ncdump", "-h", "esdm://mean.nc"]).stdout,
               "structure is there")
        checked = run([tool("esdm-fsck")])
        expect("problem" not in checked.stdout.replace("0 problems", ""), checked.stdout)
        expect_error(recipe("drop", "mean.nc", check=False), "already")
        recipe("restore", "mean.nc")
        expect(values("mean.nc") == before, "all values are back")
        expect(json.loads(recipe("--json", "check", "mean.nc").stdout)["same"], "and the recipe")
        expect_error(recipe("restore", "mean.nc", check=False), "are there")
        expect(names() == ["in.nc", "mean.nc"], f"nothing is left: {names()}")


def test_inputs_that_change():
    need_program("ncra")
    with site(history=4):
        pattern("in.nc", 1, "time=3,lat=64,lon=64")
        recipe("record", "--", *MEAN)
        client(["ncatted", "-O", "-a", "note,global,c,c,changed", "esdm://in.nc"])
        expect(json.loads(recipe("--json", "check", "mean.nc").stdout)["same"],
               "what was read then is read again")
    with site():
        pattern("in.nc", 1)
        recipe("record", "--", *MEAN)
        run([tool("esdm-rm"), "--force", "in.nc"], check=False)
        run([tool("esdm-gc"), "--yes", "--age=0"])
        pattern("in.nc", 2)
        before = values("mean.nc")
        for command in ("check", "drop"):
            bad = recipe(command, "mean.nc", check=False)
            expect_error(bad, "'in.nc' is not what it was")
            expect(bad.returncode == 4, f"refused: {bad.returncode}")
        expect(values("mean.nc") == before, "nothing was dropped")


SCRIPT = """
import netCDF4, sys
with netCDF4.Dataset("esdm://in.nc") as d:
    tas = d["tas"][:]
with netCDF4.Dataset("esdm://double.nc", "w") as d:
    for name, length in zip(("t", "y", "x"), tas.shape):
        d.createDimension(name, length)
    d.createVariable("tas", "f4", ("t", "y", "x"))[:] = tas * 2 {more}
    d.history = "made now"
"""


def test_scripts_are_inputs():
    with site() as s:
        pattern("in.nc", 3, "time=2,lat=300,lon=300")
        script = s.file("double.py")
        script.write_text(SCRIPT.format(more=""))
        recipe("record", "--", "/usr/bin/python3", str(script))
        known = json.loads(recipe("--json", "show", "double.nc").stdout)
        expect(str(script) in {i.get("file") for i in known["inputs"]}, f"{known['inputs']}")
        recipe("check", "double.nc")
        recipe("drop", "double.nc")
        script.write_text(SCRIPT.format(more="+ 1"))
        bad = recipe("restore", "double.nc", check=False)
        expect_error(bad, "double.py' is not what it was")
        script.write_text(SCRIPT.format(more=""))
        recipe("restore", "double.nc")

        script.write_text(SCRIPT.format(more="+ __import__('time').time() % 1000"))
        recipe("record", "--", "/usr/bin/python3", str(script))
        before = digest("double.nc")
        bad = recipe("check", "double.nc", check=False)
        expect(bad.returncode == 1 and "other data" in bad.stdout, bad.stdout)
        expect_error(recipe("drop", "double.nc", check=False), "other data")
        expect(digest("double.nc") == before, "what cannot be made again is kept")
        kept = recipe("check", "--keep", "double.nc", check=False)
        expect("esdm-diff" in kept.stdout and len(names()) == 3, f"{kept.stdout} {names()}")


def test_programs_that_append_and_rename():
    """NCO renames what it made; ncks -A writes to what is there, which must stay as it is."""
    need_program("ncks", "cdo")
    with site(history=8) as s:
        pattern("in.nc", 4, "time=2,lat=64,lon=64")
        pattern("both.nc", 5, "time=2,lat=64,lon=64")
        client(["ncrename", "-O", "-v", "tas,ta", "esdm://both.nc"])
        recipe("record", "--", "ncks", "-A", "esdm://in.nc", "esdm://both.nc")
        before = digest("both.nc")
        known = json.loads(recipe("--json", "show", "both.nc").stdout)
        read = {i["container"] for i in known["inputs"] if "container" in i}
        expect({"in.nc", "both.nc"} <= read, f"it began with what was there: {read}")
        expect(json.loads(recipe("--json", "check", "both.nc").stdout)["same"],
               "it is appended to what was there, apart from it")
        expect(digest("both.nc") == before, "which stays as it is")
        recipe("record", "--", "cdo", "-s", "timmean", "esdm://in.nc", "esdm://cdo.nc")
        expect(json.loads(recipe("--json", "check", "cdo.nc").stdout)["same"], "cdo, too")

        plain = s.file("plain.nc")
        recipe("record", "--", "sh", "-c",
               f"ncks -O esdm://in.nc {plain}; ncks -O {plain} esdm://copy.nc")
        bad = recipe("check", "copy.nc", check=False)
        expect_error(bad, "plain.nc", "--force")
        recipe("check", "--force", "copy.nc")


def test_wrong_use():
    with site():
        pattern("in.nc", 1, "time=2,lat=8,lon=8")
        expect_error(recipe("check", "in.nc", check=False), "has no recipe")
        expect_error(recipe("check", "absent.nc", check=False), "absent.nc")
        expect_error(recipe("chekc", "in.nc", check=False), "no command 'chekc'")
        expect_error(recipe("record", "--", "false", check=False), "status 1")
        expect_error(recipe("record", "--", "true", check=False), "no container")
        expect_error(recipe("record", check=False), "expected a command")
        expect(names() == ["in.nc"], "nothing is left")


main(test_record_check_drop_restore, test_inputs_that_change, test_scripts_are_inputs,
     test_programs_that_append_and_rename, test_wrong_use)
