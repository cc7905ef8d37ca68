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


def every_door(site, name, some=False):
    """What each way to a name in time says: True, or the error."""
    out = site.file("out.nc")
    doors = {"stat": run([tool("esdm-stat"), name], check=False),
             "cp": run([tool("esdm-cp"), "-f", f"esdm://{name}", out], check=False),
             "ncdump": client(["ncdump", "-h", f"esdm://{name}"], check=False)}
    more = {} if some else {
             "digest": run([tool("esdm-stat"), "--digest", name], check=False),
             "explain": run([tool("esdm-stat"), "--explain", name], check=False),
             "log": run([tool("esdm-log"), name], check=False),
             "ls": run([tool("esdm-ls"), name], check=False),
             "diff": run([tool("esdm-diff"), name, name], check=False),
             "clone": run([tool("esdm-cp"), "-f", "--reflink", f"esdm://{name}", "esdm://clone.nc"],
                          check=False),
             "ncks": client(["ncks", "-m", f"esdm://{name}"], check=False),
             "cdo": client(["cdo", "-s", "sinfo", f"esdm://{name}"], check=False)}
    return {door: done.returncode == 0 or done.stdout + done.stderr for door, done in (doors | more).items()}


def expect_found(site, name):
    found = every_door(site, name)
    expect(all(said is True for said in found.values()), f"{name}: {found}")


def expect_told(site, name, *words, some=True):
    for door, said in every_door(site, name, some).items():
        expect(said is not True and all(word in said for word in words), f"{name}, {door}: {said}")


def test_what_was_removed_or_replaced_is_found_through_every_door():
    with Site(history=9) as site:
        make("gone.nc", 4)
        make("new.nc", 4)
        snapshots = log("gone.nc")
        digests = [run([tool("esdm-stat"), "--digest", f"gone.nc@{s['snapshot']}"]).stdout.split()[0]
                   for s in snapshots]
        old = log("new.nc")
        values = read("new.nc@1", "new.nc")
        make("new.nc", 1)
        run([tool("esdm-rm"), "gone.nc"])
        # removed: by number, from the last one, and by time
        for one, digest in zip(snapshots, digests):
            for name in f"gone.nc@{one['snapshot']}", f"gone.nc@{one['time']}":
                told = run([tool("esdm-stat"), "--digest", name]).stdout.split()[0]
                expect(told == digest, f"{name}: {told}, was {digest}")
        for name in "gone.nc@2", f"gone.nc@{snapshots[1]['time']}":
            expect_found(site, name)
        told = json.loads(run([tool("esdm-stat"), "--json", "gone.nc@2"]).stdout)["containers"][0]
        expect(told["name"] == "gone.nc@2" and told["snapshot"] == 2 and
               told["lost"]["name"] == "gone.nc", f"{told}")
        out = run([tool("esdm-stat"), "gone.nc@2"]).stdout
        restore = re.search(r"esdm-restore --id (\w+) 'gone.nc'", out)
        expect(restore and "removed" in out, out)
        logged = log("gone.nc@2")
        expect([s["snapshot"] for s in logged] == [2, 1] and logged[0]["name"] == "gone.nc" and
               "removed" in logged[0], f"{logged}")
        for line in run([tool("esdm-log"), "--brief", "gone.nc@-0"]).stdout.splitlines():
            read(line.split()[0])  # names that esdm-log says are names
        expect_error(client(["/usr/bin/python3", "-c", "import netCDF4; "
                             "netCDF4.Dataset('esdm://gone.nc@2', 'a')"], check=False))
        expect_told(site, "gone.nc@99", "99", "removed", "esdm-restore --id " + restore.group(1),
                    some=False)
        after = datetime.datetime.utcnow().isoformat()
        expect_told(site, f"gone.nc@{after}", "then", "removed", "esdm-restore --id")
        said = client(["ncdump", "-h", "esdm://gone.nc"], check=False).stderr
        expect("'gone.nc@-0'" in said and "esdm-restore 'gone.nc'" in said, said)
        # replaced: numbers are those of who has the name
        expect_found(site, f"new.nc@{old[0]['time']}")
        expect(read(f"new.nc@{old[-1]['time']}", f"new.nc@{old[0]['time']}") == values, "other values")
        number = old[0]["snapshot"]
        expect_told(site, f"new.nc@{number}", "has it", "replaced", "esdm-restore --id", some=False)
        said = every_door(site, f"new.nc@{number}", True)["stat"]
        name = re.search(r"has it: it is '([^']+)'", said).group(1)
        expect(read(name)[0] == values[1], f"{name}: {read(name)}")
        expect_told(site, "new.nc@-7", "replaced", "esdm-restore --id")
        before = run([tool("esdm-log"), "new.nc"]).stdout
        name = re.search(r"esdm-log '([^']+)'", before).group(1)
        expect([s["snapshot"] for s in log(name)] == [s["snapshot"] for s in old], before)
        # a tag keeps what was removed, and is listed with it
        run([tool("esdm-tag"), "gone.nc@2", "kept"])
        expect("kept" in run([tool("esdm-log"), "gone.nc@3"]).stdout, "no tag in the log")
        expect("kept" in run([tool("esdm-tag"), "gone.nc@3"]).stdout, "esdm-tag lists none")
        run([*restore.group(0).replace("'", "").replace("esdm-restore", tool("esdm-restore")).split()])
        expect(run([tool("esdm-stat"), "--digest", "gone.nc"]).stdout.split()[0] == digests[0], "other")
        # two of a name: the last one is meant
        run([tool("esdm-rm"), "gone.nc"])
        make("gone.nc", 1)
        few = [s["snapshot"] for s in log("gone.nc")]
        run([tool("esdm-rm"), "gone.nc"])
        expect([s["snapshot"] for s in log("gone.nc@-0")] == few, f"{log('gone.nc@-0')}")
        expect_told(site, f"gone.nc@{snapshots[0]['snapshot']}", "has it", "esdm-restore --id")
        # what is not kept any more
        run([tool("esdm-tag"), "--remove", "gone.nc", "kept"])
        run([tool("esdm-gc"), "--replaced-now", "--yes"])
        expect_told(site, "gone.nc@2", "gone.nc")


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


def test_the_log_tells_the_program():
    """Of an interpreter what it runs, not what stands in an argument; what others read of a writer stays what it was."""
    with Site(history=10) as site:
        make("run.nc", 1)
        script = site.file("a@b:c.py")
        script.write_text(MAKE.replace('"w")', '"a")').replace('d.createDimension("t", None); d.createDimension("x", 2000)', "")
                          .replace('d.createVariable("v", "f8", ("t", "x"))', 'd["v"]'))
        client(["/usr/bin/python3", str(script), "run.nc", "1"])
        writers = [s["writer"] for s in log("run.nc")]
        expect(re.fullmatch(r"[^@]+@[^:]+:\d+ python3(\.\d+)? a\?b\?c.py", writers[0]), f"{writers}")
        expect(re.fullmatch(r"[^@]+@[^:]+:\d+ python3(\.\d+)?", writers[-1]), f"{writers}")
        run([tool("esdm-cp"), "esdm://run.nc", "esdm://b.nc"])
        expect(log("b.nc")[0]["writer"].endswith(" esdm-cp"), f"{log('b.nc')}")
        expect(log("b.nc")[0]["writer"].split()[0] in run([tool("esdm-log"), "-b", "b.nc"]).stdout, "esdm-log -b")


main(
    test_snapshots_open_by_number_and_from_the_newest,
    test_what_is_not_there_is_told,
    test_programs_are_told_which_snapshots_there_are,
    test_a_name_with_that_sign_is_a_name,
    test_no_container_hides_a_snapshot,
    test_times_reach_former_containers,
    test_what_was_removed_or_replaced_is_found_through_every_door,
    test_the_log_tells_what_changed,
    test_the_log_tells_the_program,
)
