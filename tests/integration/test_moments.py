#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Names that say a point of time, through NetCDF programs and tools; esdm-log."""

import datetime
import json
import re
import time

from esdmtest import Site, client, expect, expect_error, main, run, tool

MAKE = """
import netCDF4, numpy, sys
name, steps = sys.argv[1], int(sys.argv[2])
d = netCDF4.Dataset(f"esdm://{name}", "w")
d.createDimension("t", None); d.createDimension("x", 2000)
v = d.createVariable("v", "f8", ("t", "x"))
for i in range(steps):
    v[i] = i
    d.setncattr("step", i)
    d.sync()
d.close()
"""

READ = """
import netCDF4, sys
for name in sys.argv[1:]:
    d = netCDF4.Dataset(f"esdm://{name}")
    print(len(d.dimensions["t"]), d.step, float(d["v"][:].max()))
"""


def make(name, steps):
    client(["/usr/bin/python3", "-c", MAKE, name, str(steps)])


def read(*names):
    return client(["/usr/bin/python3", "-c", READ, *names]).stdout.split("\n")[:-1]


def log(name):
    return json.loads(run([tool("esdm-log"), "--json", name]).stdout)["snapshots"]


def test_snapshots_open_by_number_and_from_the_newest():
    with Site(history=10) as _:
        make("exp/run.nc", 4)
        numbers = [s["snapshot"] for s in log("exp/run.nc")]
        expect(numbers == sorted(numbers, reverse=True) and len(numbers) >= 4, f"{numbers}")
        newest = read("exp/run.nc")[0]
        expect(newest == "4 3 3.0", newest)
        told = read(*[f"exp/run.nc@{n}" for n in sorted(numbers)])
        expect(told[-1] == newest and told[0].startswith("1 0"), f"{told}")
        back = read("exp/run.nc@-1", "exp/run.nc@-0", f"exp/run.nc@-{len(numbers) - 1}")
        expect(back[1] == newest and back[2] == told[0], f"{back}")
        dump = client(["ncdump", "-h", f"esdm://exp/run.nc@{min(numbers)}"]).stdout
        expect("t = UNLIMITED ; // (1 currently)" in dump, dump)
        out = run([tool("esdm-cp"), "-f", f"esdm://exp/run.nc@{min(numbers)}", "esdm://first.nc"])
        expect(read("first.nc")[0].startswith("1 0"), f"{out.stdout}{read('first.nc')}")


def test_what_is_not_there_is_told():
    with Site(history=10) as _:
        make("run.nc", 2)
        expect_error(run([tool("esdm-stat"), "run.nc@77"], check=False), "no snapshot '77'")
        expect_error(run([tool("esdm-stat"), "run.nc@2x"], check=False), "is no snapshot of")
        expect_error(run([tool("esdm-stat"), "run.nc@2026-02-30"], check=False), "is no snapshot of")
        expect_error(run([tool("esdm-stat"), "other.nc@1"], check=False), "other.nc")
        done = client(["/usr/bin/python3", "-c", "import netCDF4\n"
                       "netCDF4.Dataset('esdm://run.nc@1', 'a')"], check=False)
        expect(done.returncode != 0 and "ermission" in done.stderr, done.stderr)
        expect("'run.nc@1' is a snapshot, which nobody can write to" in done.stderr, done.stderr)
        expect(read("run.nc")[0] == "2 1 1.0", f"{read('run.nc')}")


def test_programs_are_told_which_snapshots_there_are():
    with Site(history=1) as _:
        make("run.nc", 1)
        make("run.nc", 2)
        for wrong, words in (("run.nc@-9", ["no snapshot '-9'", "kept", "replaced", "esdm-ls --replaced"]),
                             ("run.nc@1999-01-01", ["no snapshot '1999-01-01'"]),
                             ("run.nc@tag:none", ["no tag 'none'"]),
                             ("run*.nc", ["nobody expands *", "esdm-ls"])):
            done = client(["ncdump", "-h", f"esdm://{wrong}"], check=False)
            expect(done.returncode == 1, f"{wrong}: {done.returncode}")
            expect(all(w in done.stderr for w in words), f"{wrong}: {done.stderr}")


def test_a_name_with_that_sign_is_a_name():
    with Site(history=10) as _:
        make("run.nc@1", 1)
        make("run.nc@1", 2)
        expect(read("run.nc@1")[0] == "2 1 1.0", f"{read('run.nc@1')}")
        make("run.nc", 3)
        make("run.nc@1", 1)  # it was there before
        make("run.nc@x", 1)


def test_no_container_hides_a_snapshot():
    """A result that was written to NAME@7 by mistake stood in the place of snapshot 7."""
    with Site(history=10) as site:
        make("run.nc", 3)
        make("other.nc", 1)
        first = min(s["snapshot"] for s in log("run.nc"))
        before = read(f"run.nc@{first}")
        made = client(["/usr/bin/python3", "-c", MAKE, f"run.nc@{first}", "1"], check=False)
        expect(made.returncode != 0 and "which nobody can write to" in made.stderr, made.stderr)
        copied = client(["nccopy", "esdm://other.nc", f"esdm://run.nc@{first}"], check=False)
        expect(copied.returncode != 0 and "which nobody can write to" in copied.stderr, copied.stderr)
        for name in (f"run.nc@{first}", "run.nc@-1", "run.nc@2026-11-20", "run.nc@tag:v1"):
            for command in (["esdm-mv", "other.nc", name], ["esdm-cp", "-f", "esdm://other.nc", f"esdm://{name}"],
                            ["esdm-cp", "--reflink", "-f", "esdm://other.nc", f"esdm://{name}"],
                            ["esdm-ln", "esdm://?step=0", f"esdm://{name}"]):
                expect_error(run([tool(command[0]), *command[1:]], check=False), "which nobody can write to")
        run([tool("esdm-rm"), "other.nc"])
        expect_error(run([tool("esdm-restore"), "--yes", "--as", f"run.nc@{first}", "other.nc"], check=False),
                     "which nobody can write to")
        expect(read(f"run.nc@{first}") == before, f"{before}")
        listed = run([tool("esdm-ls")]).stdout
        expect(listed == "run.nc\n", f"{listed} {site.folder}")


def test_times_reach_former_containers():
    with Site(history=10) as _:
        make("run.nc", 1)
        time.sleep(1.1)
        between = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
        time.sleep(1.1)
        make("run.nc", 3)  # replaces it
        today = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
        expect(read(f"run.nc@{between}")[0] == "1 0 0.0", f"{read(f'run.nc@{between}')}")
        expect(read("run.nc")[0] == "3 2 2.0", f"{read('run.nc')}")
        tomorrow = (datetime.datetime.now(datetime.timezone.utc)
                    + datetime.timedelta(days=1)).strftime("%Y-%m-%d")
        expect(read(f"run.nc@{tomorrow}")[0] == "3 2 2.0", today)
        now = datetime.datetime.now(datetime.timezone.utc)
        for digits in (1, 6):
            second = now.strftime("%Y-%m-%dT%H:%M:%S.%f")[:20 + digits]
            expect(read(f"run.nc@{second}Z")[0] == "3 2 2.0", f"parts of a second: {second}")
        for wrong in (f"{between}.", f"{between}.1234567891", f"{between}.x"):
            expect_error(run([tool("esdm-stat"), f"run.nc@{wrong}"], check=False), "is no snapshot")
        expect(read("run.nc@2600-01-01")[0] == "3 2 2.0", "beyond what 64 bits hold")
        expect_error(run([tool("esdm-stat"), "run.nc@1999-01-01"], check=False), "no snapshot")
        told = run([tool("esdm-log"), "run.nc"]).stdout
        expect("before that a container of the same name, replaced" in told, told)


def test_the_log_tells_what_changed():
    with Site(history=10) as _:
        make("run.nc", 3)
        client(["/usr/bin/python3", "-c", "import netCDF4\nd = netCDF4.Dataset('esdm://run.nc', 'a')\n"
                "d['v'][1, 5:50] = 77\nw = d.createVariable('w', 'i4', ('x',))\nw.units = 'm'\nd.close()"])
        newest = log("run.nc")[0]
        expect(any(re.match(r"variable /v: .* written in \d+ fragment", c) for c in newest["changes"])
               and "variable /w added" in newest["changes"]
               and "attribute /w:units added" in newest["changes"], f"{newest}")
        told = run([tool("esdm-log"), "run.nc"]).stdout
        expect("dimension /t from 2 to 3" in told and "attribute /:step changed" in told, told)
        brief = run([tool("esdm-log"), "-b", "run.nc"]).stdout.splitlines()
        expect(len(brief) == len(log("run.nc")), f"{brief}")
        expect_error(run([tool("esdm-log"), "none.nc"], check=False), "none.nc")


main(
    test_snapshots_open_by_number_and_from_the_newest,
    test_what_is_not_there_is_told,
    test_programs_are_told_which_snapshots_there_are,
    test_a_name_with_that_sign_is_a_name,
    test_no_container_hides_a_snapshot,
    test_times_reach_former_containers,
    test_the_log_tells_what_changed,
)
