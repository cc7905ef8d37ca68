#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-recipe: containers that are recorded (from NCO, CDO, Python, a model in Fortran), made again bit for bit, and dropped only then."""

import json
import os
import signal
import subprocess

from esdmtest import SOURCE, Site, client, client_environment, environment, expect, expect_error, main, need_program, run, skip, tool

RECIPE = tool("esdm-recipe")
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


def scratch():
    done = run([tool("esdm-ls"), ".esdm-recipe"], check=False)
    return done.stdout.split()


def end_a_run(where):
    """A run that is killed when its program has made what it makes."""
    running = subprocess.Popen([RECIPE, "check", "out.nc"], env=environment(), stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    while not scratch():
        expect(running.poll() is None, "it ended before it could be killed")
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    (where / "go").write_text("")              # the program itself ends, too
    expect(scratch(), "nothing is left")


def test_recorded_by_esdm_run():
    need_program("ncra")
    with site():
        pattern("in.nc", 1)
        run([tool("esdm-run"), "--record", *MEAN], env=client_environment())
        known = json.loads(recipe("--json", "show", "mean.nc").stdout)
        expect(known["program"] == MEAN and known["output"] == "mean.nc", f"{known}")
        expect(json.loads(recipe("--json", "check", "mean.nc").stdout)["same"], "bit for bit")
        wrong = run([tool("esdm-run"), "--record", "--report", *MEAN], env=client_environment(), check=False)
        expect(wrong.returncode == 125 and "--record" in wrong.stderr, f"{wrong.returncode} {wrong.stderr}")
        absent = run([tool("esdm-run"), "--record", "no-such-program"], env=client_environment(), check=False)
        expect(absent.returncode == 127, f"{absent.returncode} {absent.stderr}")


def test_a_run_that_was_ended_leaves_nothing_for_long():
    need_program("nccopy")
    with site() as place:
        pattern("in.nc", 1)
        program = place.folder / "wait.sh"     # a bounded wait for a file
        program.write_text(f"#!/bin/sh\nnccopy esdm://in.nc esdm://out.nc\n[ -e {place.folder}/wait ] || exit 0\n"
                           f"i=0; while [ ! -e {place.folder}/go ] && [ $i -lt 600 ]; do sleep 0.1; i=$((i+1)); done\n")
        program.chmod(0o755)
        recipe("record", "--", str(program))
        (place.folder / "wait").write_text("")
        end_a_run(place.folder)
        expect(names() == ["in.nc", "out.nc"], f"{names()}")
        found = run([tool("esdm-find"), "exists units"], check=False).stdout
        expect(".esdm-recipe" not in found, found)
        expect("would remove 1 container" in run([tool("esdm-gc"), "--dry-run"]).stdout and scratch(), "dry run")
        recipe("check", "out.nc")              # the next run
        expect(not scratch(), f"{scratch()}")
        (place.folder / "go").unlink()
        end_a_run(place.folder)
        out = run([tool("esdm-gc"), "--yes", "--age=0"]).stdout
        expect("runs of esdm-recipe that were ended" in out and not scratch(), out)


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


def test_inputs_of_dropped_values_are_kept():
    need_program("ncra", "ncdump")
    with site():
        pattern("in.nc", 1, "time=3,lat=128,lon=256")       # the mean is one fragment
        recipe("record", "--", *MEAN)
        before = values("mean.nc")
        size = stored("mean.nc")
        dropped = recipe("drop", "mean.nc")
        expect("note: values come back only as long as" in dropped.stderr and "ncra" in dropped.stderr, dropped.stderr)
        expect(stored("mean.nc") < size // 4, f"small values are gone, too: {size}, {stored('mean.nc')}")
        refused = run([tool("esdm-rm"), "--for-good", "in.nc"], check=False)
        expect(refused.returncode == 4, f"refused: {refused.returncode}")
        expect_error(refused, "'recipe-mean.nc-")
        run([tool("esdm-rm"), "in.nc"])
        run([tool("esdm-gc"), "--replaced-now", "--yes"])
        pattern("in.nc", 2, "time=3,lat=128,lon=256")       # another one has its name and its number
        recipe("restore", "mean.nc")
        expect(values("mean.nc") == before, "all values are back")
        recipe("drop", "mean.nc")
        recipe("restore", "mean.nc")
        tags = json.loads(run([tool("esdm-tag"), "--json", "in.nc"]).stdout)["tags"]
        expect(len(tags) == 1 and tags[0]["former"], f"{tags}")
        run([tool("esdm-tag"), "--remove", "in.nc", tags[0]["tag"]])
        run([tool("esdm-rm"), "--for-good", "in.nc"])


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


MODEL = """
program heat
    use netcdf
    implicit none
    integer, parameter :: nx = 256, ny = 128
    integer :: steps = 0, step, input, output, from, to, dims(3)
    real :: rate = 0., t(nx, ny), again(nx, ny)
    namelist /heat_control/ steps, rate
    open (unit=7, file="heat.nml", status="old", action="read")
    read (7, nml=heat_control)
    close (7)
    call check(nf90_open("esdm://in.nc", nf90_nowrite, input))
    call check(nf90_inq_varid(input, "tas", from))
    call check(nf90_get_var(input, from, t, start=[1, 1, 1], count=[nx, ny, 1]))
    call check(nf90_close(input))
    call check(nf90_create("esdm://heat.nc", ior(nf90_netcdf4, nf90_clobber), output))
    call check(nf90_def_dim(output, "lon", nx, dims(1)))
    call check(nf90_def_dim(output, "lat", ny, dims(2)))
    call check(nf90_def_dim(output, "time", nf90_unlimited, dims(3)))
    call check(nf90_def_var(output, "tas", nf90_float, dims, to))
    call check(nf90_put_att(output, to, "units", "K"))
    call check(nf90_enddef(output))
    do step = 1, steps
        again = 0.25 * (cshift(t, 1, 1) + cshift(t, -1, 1) + eoshift(t, 1, dim=2) + eoshift(t, -1, dim=2))
        t = t + rate * (again - t) + 0.01 * sin(real(step))
        call check(nf90_put_var(output, to, t, start=[1, 1, step], count=[nx, ny, 1]))
        if (mod(step, 5) == 0) call check(nf90_sync(output))
    end do
    call check(nf90_close(output))
contains
    subroutine check(status)
        integer, intent(in) :: status
        if (status /= nf90_noerr) then
            print *, trim(nf90_strerror(status))
            error stop
        end if
    end subroutine check
end program heat
"""
CONTROL = "&heat_control steps = {steps}, rate = {rate} /\n"


def compiled_model(folder):
    source, model = folder / "heat.f90", folder / "heat"
    source.write_text(MODEL)
    try:
        flags = [run(["nf-config", f"--{what}"]).stdout.split() for what in ("fflags", "flibs")]
        run(["gfortran", "-O2", *flags[0], source, "-o", model, *flags[1]], cwd=folder)
    except FileNotFoundError:
        skip("gfortran or libnetcdff-dev is not installed")
    return model


def test_a_fortran_model():
    """It reads a container and a namelist, and writes step by step, with commits between; all that it read is known."""
    with site(history=8) as s:
        model, control = compiled_model(s.folder), s.file("heat.nml")
        control.write_text(CONTROL.format(steps=12, rate=0.5))

        def here(*arguments, check=True):
            return run([RECIPE, *arguments], check=check, cwd=s.folder)

        pattern("in.nc", 6, "time=1,lat=128,lon=256")
        here("record", "--", str(model))
        before = values("heat.nc")
        known = json.loads(here("--json", "show", "heat.nc").stdout)
        inputs = {one.get("container", one.get("file")) for one in known["inputs"]}
        expect(inputs == {"in.nc", str(model), str(control)}, f"{inputs}")
        done = json.loads(here("--json", "check", "heat.nc").stdout)
        expect(done["same"] and done["digest"] == known["digest"], f"bit for bit: {done}")

        full = stored("heat.nc")
        here("drop", "heat.nc")
        expect(stored("heat.nc") < full // 8, f"the values are gone: {full}, {stored('heat.nc')} bytes")
        here("restore", "heat.nc")
        expect(values("heat.nc") == before, "all values are back")

        here("drop", "heat.nc")
        control.write_text(CONTROL.format(steps=12, rate=0.25))
        for command in "check", "restore":
            expect_error(here(command, "heat.nc", check=False), "heat.nml' is not what it was")
        control.write_text(CONTROL.format(steps=12, rate=0.5))
        program = model.read_bytes()
        model.unlink()
        model.write_bytes(program + b"\0")
        model.chmod(0o755)
        expect_error(here("restore", "heat.nc", check=False), "heat' is not what it was")
        model.write_bytes(program)
        here("restore", "heat.nc")
        expect(values("heat.nc") == before, "all values are back")
        pattern("in.nc", 7, "time=1,lat=128,lon=256")
        expect(json.loads(here("--json", "check", "heat.nc").stdout)["same"], "the input is kept for it, under another one of its name")


def test_small_values_stay():
    need_program("ncra", "ncdump")
    with site():
        pattern("in.nc", 1, "time=3,lat=8,lon=16")
        recipe("record", "--", *MEAN)
        before, tags = values("mean.nc"), run([tool("esdm-tag"), "in.nc"]).stdout
        dropped = recipe("drop", "mean.nc")
        expect("nothing was dropped" in dropped.stdout and "restore" not in dropped.stdout, dropped.stdout)
        expect(values("mean.nc") == before, "its values are there")
        expect(run([tool("esdm-tag"), "in.nc"]).stdout == tags, "no input is kept for what was not dropped")
        expect_error(recipe("restore", "mean.nc", check=False), "are there")


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


# Another machine: a file that was not there when the recipe was recorded says by how much values are off there.
ELSEWHERE = """
import netCDF4, numpy, os, sys
other = float(open(sys.argv[1]).read()) if os.path.exists(sys.argv[1]) else 0.0
with netCDF4.Dataset("esdm://in.nc") as d:
    tas = d["tas"][:].astype("f8")
with netCDF4.Dataset("esdm://out.nc", "w") as d:
    for name, length in zip(("t", "y", "x"), tas.shape):
        d.createDimension(name, length)
    v = d.createVariable("tas", "f4", ("t", "y", "x"), fill_value=1e20)
    v.units = "K"
    v.note = "other" if other < 0 else "same"
    tas = 280 + tas * abs(other + 1) if other > 0.5 else tas + 280
    values = tas.astype("f4")
    values[0, 0, :5] = 1e20
    values[0, 0, 5:9] = numpy.nan
    if 0 < other < 0.5:
        values[:, ::2] += numpy.float32(other)
        values[0, 0, :5] = 1e20
    if other == 2:
        values[0, 0, 0] = 280.0
    if other > 5:
        values += numpy.random.default_rng().integers(0, 2, values.shape) * numpy.float32(2e-4)
        values[0, 0, :5] = 1e20
    v[:] = values
    d.createVariable("n", "i4", ("t",))[:] = 7
    packed = d.createVariable("packed", "i1", ("t",))
    packed.setncattr("_Unsigned", "true")
    coded = d.createVariable("coded", "f4", ("t",))
    coded.missing_value = numpy.array([-999, -998], "f4")
"""


def out(command, *arguments, check=True):
    return json.loads(recipe("--json", command, *arguments, check=check).stdout)


def test_tolerances():
    with site(history=9) as s:
        pattern("in.nc", 3, "time=2,lat=200,lon=300")
        script, other = s.file("out.py"), s.file("other")
        script.write_text(ELSEWHERE)
        command = ["--", "/usr/bin/python3", str(script), str(other)]
        for wrong, why in (("tas", "is not NAME"), ("tas: abs=x", "abs"), ("pr: abs=1", "no such variable|has such a"),
                           ("tas: abs=1 kg", "kg"), ("tas: psnr=60", "by themselves"), ("tas: mode=archive", "by themselves"),
                           ("packed: abs=1", "_Unsigned"), ("coded: abs=1", "several missing values")):
            bad = recipe("record", "--tolerance", wrong, *command, check=False)
            expect(bad.returncode not in (0, 1) and any(w in bad.stderr for w in why.split("|")), f"{wrong}: {bad.stderr}")
        expect_error(recipe("show", "out.nc", check=False), "has no recipe")
        recipe("record", "--tolerance", "ta?: abs=0.01 K", *command)
        expect("within   ta?: abs=0.01 K" in recipe("show", "out.nc").stdout, "show")
        done = out("check", "out.nc")
        expect(done["same"] and done["accepted"] and "differences" not in done, f"{done}")

        other.write_text("-1")                  # an attribute is not the same
        bad = recipe("check", "out.nc", check=False)
        expect_error(bad, "has no tolerance is not the same")
        other.write_text("0.02")
        bad = recipe("check", "out.nc", check=False)
        expect_error(bad, "gives other data", "by more than they may")
        other.write_text("2")                   # a missing value becomes a number
        expect_error(recipe("check", "out.nc", check=False), "in one of both alone")
        expect_error(recipe("drop", "out.nc", check=False), "nothing was changed")
        expect("accepted" not in out("show", "out.nc"), "what differs was accepted")

        other.write_text("0.001")
        before = client(["ncdump", "-v", "tas", "esdm://out.nc"]).stdout
        done = out("check", "out.nc")
        expect(not done["same"] and done["accepted"] and
               [(d["variable"], d["different"] > 50000, d["beyond"], round(d["largest"], 4))
                for d in done["differences"]] == [("/tas", True, 0, 0.001)], f"{done}")
        expect(client(["ncdump", "-v", "tas", "esdm://out.nc"]).stdout == before, "a check has changed values")
        expect(names() == ["in.nc", "out.nc"], f"nothing is left: {names()}")
        told = run([tool("esdm-stat"), "out.nc"]).stdout
        expect("tolerance ta?: abs=0.01 K" in told and "1 other result" in told, told)
        expect("compared before" in recipe("check", "out.nc").stdout, "it was accepted")

        recipe("drop", "out.nc")
        other.write_text("0.002")               # a third machine: with what is its result compared?
        bad = recipe("restore", "out.nc", check=False)
        expect_error(bad, "nothing was changed", "were compared")
        other.write_text("0.001")
        text = recipe("restore", "out.nc").stdout
        expect("within the tolerances" in text, text)
        told = json.loads(run([tool("esdm-stat"), "--json", "out.nc"]).stdout)["containers"][0]["recipe"]
        expect(told["tolerances"] == ["ta?: abs=0.01 K"] and told["restored"]["differences"][0]["beyond"] == 0, f"{told}")
        expect("computed again" in run([tool("esdm-stat"), "out.nc"]).stdout, "esdm-stat")
        other.write_text("0.008")               # tolerances do not add up
        expect_error(recipe("check", "out.nc", check=False), "gives other data")
        expect_error(recipe("drop", "out.nc", check=False), "nothing was changed")
        other.unlink()
        recipe("drop", "out.nc")
        recipe("restore", "out.nc")
        expect(client(["ncdump", "-v", "tas", "esdm://out.nc"]).stdout == before, "bit for bit")
        run([tool("esdm-fsck"), "--data"])


def test_values_that_differ_in_each_run_are_not_dropped():
    with site() as s:
        pattern("in.nc", 3, "time=2,lat=100,lon=100")
        script, other = s.file("out.py"), s.file("other")
        script.write_text(ELSEWHERE.replace("tas = 280 + tas * abs(other + 1) if other > 0.5 else", "tas ="))
        recipe("record", "-t", "tas: abs=0.01 K", "-t", "tas: rel=1e-3", "--", "/usr/bin/python3", str(script), str(other))
        other.write_text("6")
        done = out("check", "out.nc")
        expect(done["accepted"] and not done["same"], f"{done}")
        expect_error(recipe("drop", "out.nc", check=False), "others in each run")
        expect("280" in client(["ncdump", "-v", "tas", "esdm://out.nc"]).stdout, "values are there")


main(test_tolerances, test_values_that_differ_in_each_run_are_not_dropped, test_record_check_drop_restore, test_recorded_by_esdm_run,
     test_a_run_that_was_ended_leaves_nothing_for_long, test_inputs_that_change,
     test_small_values_stay, test_inputs_of_dropped_values_are_kept, test_scripts_are_inputs,
     test_programs_that_append_and_rename, test_a_fortran_model, test_wrong_use)
