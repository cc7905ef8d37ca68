# SPDX-License-Identifier: LGPL-3.0-or-later
"""What is replaced or removed is kept for a while, comes back, and never fills the site."""

import concurrent.futures
import json
import os
import pty
import re
import time

from esdmtest import Failed, Site, client, expect, expect_error, main, need_program, run, tool

RM, LS, RESTORE, GC = (tool(f"esdm-{name}") for name in ("rm", "ls", "restore", "gc"))


def write(name, value, points="r60x30"):
    """A field with that mean; equal values would take no pack."""
    slope = "-expr,_x=clon(const);const=const+(_x-fldmean(_x))/1000;"
    client(["cdo", "-s", "-O", "-f", "nc", "-b", "F64", slope, f"-const,{value},{points}",
            f"esdm://{name}"])


def value(name):
    return round(float(client(["cdo", "-s", "output", "-timmean", "-fldmean",
                               f"esdm://{name}"]).stdout.split()[0]), 6)


def former(*names):
    return json.loads(run([LS, "--replaced", "--json", *names]).stdout)["replaced"]


def pack_bytes(site):
    return sum(p.stat().st_size for p in site.pack_files())


PYTHON = """
import netCDF4
with netCDF4.Dataset("esdm://exp/a.nc", "w") as f:
    f.createDimension("x", 10)
    f.createVariable("v", "f8", ("x",))[:] = 9
"""


def test_restore__whoever_replaces_or_removes_it():
    """cdo -O, NCO -O and a rename over it, Python's mode "w", esdm-cp --force, esdm-rm."""
    need_program("cdo", "ncks")
    with Site() as site:
        write("exp/a.nc", 1)
        write("other.nc", 5)
        replace = [
            lambda: write("exp/a.nc", 2),
            lambda: client(["ncks", "-O", "-h", "esdm://other.nc", "esdm://exp/a.nc"]),
            lambda: client(["/usr/bin/python3", "-c", PYTHON]),
            lambda: run([tool("esdm-cp"), "--force", "esdm://other.nc", "esdm://exp/a.nc"]),
            lambda: run([RM, "exp/a.nc"]),
        ]
        for count, step in enumerate(replace, 1):
            step()
            expect(len(former("exp/a.nc")) == count, f"step {count}: {former('exp/a.nc')}")
        kept = former("exp/a.nc")
        expect([k["was"] for k in kept] == ["replaced"] * 4 + ["removed"], f"{kept}")
        expect(former() == kept, f"others are kept as well: {former()}")
        expect(run([LS]).stdout.split() == ["other.nc"], "a former container is listed")
        expect(run([tool("esdm-find"), "Conventions ~ '*'"]).stdout.split() == ["other.nc"], "found")
        expect_error(run([tool("esdm-stat"), "exp/a.nc"], check=False), "esdm-restore 'exp/a.nc'")
        done = client(["ncdump", "-h", "esdm://exp/a.nc"], check=False)
        expect_error(done, "esdm-restore 'exp/a.nc'")
        run([tool("esdm-fsck"), "--data"])
        # The newest by default, any of them by its id; never over a living one without a word.
        run([RESTORE, "exp/a.nc"])
        expect(value("exp/a.nc") == 5, "not what was removed")
        done = run([RESTORE, "--id", kept[0]["id"], "exp/a.nc"], check=False)
        expect(done.returncode == 4, f"{done}")
        expect_error(done, "--yes", "--as")
        run([RESTORE, "--id", kept[0]["id"], "--as", "first.nc", "exp/a.nc"])
        expect(value("first.nc") == 1, "not the first one")
        run([RESTORE, "--id", kept[1]["id"], "--yes", "exp/a.nc"])
        expect(value("exp/a.nc") == 2, "not the second one")
        told = run([RESTORE, "--yes", "exp/a.nc"]).stderr
        expect(value("exp/a.nc") == 5, "restoring twice does not undo it")
        expect("newest of 3 former containers" in told and "--id" in told, f"older ones: {told}")
        done = run([RESTORE, "--id", "00000000", "exp/a.nc"], check=False)
        expect(done.returncode == 3, f"{done}")
        shown = json.loads(run([tool("esdm-stat"), "--json", "exp/a.nc"]).stdout)["containers"][0]
        expect(len(shown["former"]) == len(former("exp/a.nc")) == 3, f"{shown}")
        expect("esdm-ls --replaced" in run([tool("esdm-stat"), "exp/a.nc"]).stdout, "esdm-stat")
        # For good: space and all.
        run([RM, "--for-good", "exp/a.nc", "other.nc", "first.nc"])
        expect(former() == [] and pack_bytes(site) == 0, f"{former()} {site.pack_files()}")


def test_restore__whole_folders():
    need_program("cdo")
    with Site():
        names = [f"exp/{i}.nc" for i in range(7)]
        for name in names:
            write(name, 1, "r6x3")
        write("exp/0.nc", 2, "r6x3")
        run([RM, "-r", "exp"])
        run([RESTORE, "-r", "-n", "exp"])
        expect(run([LS]).stdout == "", "--dry-run restores")
        run([RESTORE, "-r", "exp"])
        expect(run([LS]).stdout.split() == names and value("exp/0.nc") == 2, run([LS]).stdout)
        # What has a name of those that were removed stays, and is not taken for what was removed.
        run([RM, "-r", "exp"])
        write("exp/3.nc", 5, "r6x3")
        done = run([RESTORE, "-r", "exp"])
        expect(run([LS]).stdout.split() == names and value("exp/3.nc") == 5, run([LS]).stdout)
        expect("1 of what was removed is not brought back" in done.stderr and "--yes 'exp/3.nc'" in done.stderr, done)
        run([RESTORE, "--yes", "exp/3.nc"])
        expect(value("exp/3.nc") == 1, "what was removed")


def test_restore__a_writer_whose_container_was_replaced_is_told():
    program = """
import netCDF4, subprocess, sys
f = netCDF4.Dataset("esdm://a.nc", "a")
f["v"][:] = 3
subprocess.run(sys.argv[1:], check=True)
try:
    f.close()
except RuntimeError as e:
    sys.exit(7)
"""
    with Site():
        client(["/usr/bin/python3", "-c", PYTHON.replace("exp/", "")])
        done = client(["/usr/bin/python3", "-c", program, RM, "a.nc"], check=False)
        expect(done.returncode == 7, f"{done}")
        expect_error(done, "removed or replaced")
        run([RESTORE, "a.nc"])
        expect("9, 9" in client(["ncdump", "-v", "v", "esdm://a.nc"]).stdout, "a changed container")


def test_limits__bound_what_is_kept():
    need_program("cdo", "ncks")
    with Site(replaced={"keep": 0}) as site:
        for i in range(3):
            write("a.nc", i)
        expect(former() == [] and len(site.pack_files()) == 1, f"{former()} {site.pack_files()}")
        told = client(["cdo", "-s", "-f", "nc", "const,1,r60x30", "esdm://a.nc"]).stderr
        expect("the site keeps nothing" in told, told)
    with Site(make=False, replaced={"keep": 0, "keep_moved": "5d"}):
        expect_error(run([tool("esdm-mkfs")], check=False), "keep_moved", "nothing is kept at all")
    with Site(replaced={"keep": "1d", "containers": 2}) as site:
        for i in range(5):
            write("a.nc", i)
        kept = former()
        expect(len(kept) == 2 and len(site.pack_files()) == 3, f"{kept} {site.pack_files()}")
        run([RESTORE, "--id", kept[1]["id"], "--as", "b.nc", "a.nc"])
        expect(value("b.nc") == 3, "not the newest ones are kept")
    with Site(replaced={"share": 0}) as site:
        for i in range(3):
            write("a.nc", i)
        told = client(["ncks", "-O", "esdm://a.nc", "esdm://b.nc"]).stderr
        expect("will not be kept" not in told, told)
        told = client(["cdo", "-s", "-f", "nc", "const,1,r60x30", "esdm://b.nc"]).stderr
        expect(told.count("'b.nc' is now will not be kept for esdm-restore") == 1, told)
        told = client(["ncks", "-O", "esdm://a.nc", "esdm://b.nc"]).stderr  # renames over it
        expect(told.count("'b.nc' is now will not be kept for esdm-restore") == 1, told)
        status, told = at_terminal([str(RM), "b.nc"], b"n\n")
        expect(status == 4 and "will not be kept" in told and "Remove for good?" in told, f"{status} {told}")
        told = run([RM, "b.nc"]).stderr
        expect("'b.nc' will not be kept" in told, told)
        expect(former() == [] and len(site.pack_files()) == 1, f"{former()} {site.pack_files()}")
    with Site(replaced={"keep": "1s"}) as site:
        write("a.nc", 1)
        write("a.nc", 2)
        while run([GC, "--yes", "--json"]) and former():
            pass  # a second later it is gone
        expect(len(site.pack_files()) == 1, f"{site.pack_files()}")
    with Site() as site:  # temporary files of NCO leave nothing
        write("a.nc", 1)
        client(["ncatted", "-h", "-O", "-a", "x,global,o,c,y", "esdm://a.nc", "esdm://b.nc"])
        expect(former() == [], f"{former()}")
        write("a.nc", 2)
        before = json.loads(run([GC, "--dry-run", "--json"]).stdout)
        expect(before["former"] == 0, f"{before}")
        told = json.loads(run([GC, "--replaced-now", "--yes", "--json"]).stdout)
        expect(told["former"] == 1 and told["former_bytes"] > 0 and former() == [], f"{told}")
        expect(len(site.pack_files()) == 2, f"{site.pack_files()}")
    with Site(make=False, replaced={"keep": "a day"}) as site:
        expect_error(run([LS], check=False), "replaced.keep", '"12h"')


def test_restore__many_at_once_lose_none():
    """Several processes replace one container: every commit but the last one is kept."""
    need_program("cdo")
    with Site() as site:
        write("a.nc", 0, "r6x3")
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda i: write("a.nc", i, "r6x3"), range(1, 9)))
        kept = former()
        values = {value("a.nc")}
        for k in kept:
            run([RESTORE, "--id", k["id"], "--as", k["id"], "a.nc"])
            values.add(value(k["id"]))
        expect(values == set(range(9)), f"{values}")


def at_terminal(command, answer):
    """Exit status and output of a command that may ask."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(command[0], command)
    output = b""
    try:
        while chunk := os.read(fd, 4096):
            output += chunk
            if output.endswith(b"[y/N] "):
                os.write(fd, answer)
    except OSError:
        pass
    os.close(fd)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), output.decode(errors="replace")


def test_rm__asks_before_it_removes_many():
    need_program("cdo")
    with Site():
        for i in range(6):
            write(f"exp/{i}.nc", i, "r6x3")
        status, output = at_terminal([RM, "-r", "exp"], b"n\n")
        expect(status == 4 and "6 containers" in output, f"{status} {output}")
        expect(len(run([LS]).stdout.split()) == 6, "removed all the same")
        done = run([RM, "-r", "esdm://"], check=False)
        expect(done.returncode == 4, f"{done}")
        expect_error(done, "whole site", "--yes")
        expect_error(run([RM, "esdm://"], check=False), "whole site", "esdm-rm -r")
        status, output = at_terminal([RM, "-r", "exp"], b"y\n")
        expect(status == 0 and run([LS]).stdout == "", f"{status} {output}")
        run([RESTORE, "-r", "esdm://"])
        expect(len(run([LS]).stdout.split()) == 6, run([LS]).stdout)
        run([RM, "-r", "--yes", "esdm://"])
        expect(run([LS]).stdout == "", "something is left")


def test_names__what_was_meant_is_told():
    need_program("cdo")
    with Site():
        write("experiment/run1.nc", 1, "r6x3")
        write("tas.nc", 1, "r6x3")
        for command in ([tool("esdm-stat"), "experiment/rum1.nc"], [LS, "experiment/rum1.nc"],
                        [RM, "experimnet/run1.nc"], [RM, "experiment/run1.cn"], [LS, "experiment/run1"],
                        [tool("esdm-cp"), "esdm://experiment/rum1.nc", "esdm://copy.nc"],
                        [tool("esdm-diff"), "experiment/rum1.nc", "tas.nc"]):
            done = run(command, check=False)
            expect(done.returncode == 3, f"{done}")
            expect_error(done, "did you mean 'experiment/run1.nc'?")
        done = client(["ncdump", "-h", "esdm://taz.nc"], check=False)
        expect_error(done, "did you mean 'tas.nc'?", "No such file")
        # They ask whether the file exists before they open it.
        done = client(["cdo", "-s", "infon", "esdm://taz.nc"], check=False)
        expect_error(done, "did you mean 'tas.nc'?", "No such file")
        expect(done.stderr.count("esdm: there is") == 1, done.stderr)
        for program in (["cdo", "-s", "infon"], ["ncdump", "-h"]):
            done = client([*program, "esdm://?name=value"], check=False)
            expect_error(done, "no container has what '?name=value' asks for", "No such file")
            expect(done.stderr.count("'?name=value'") == 1, done.stderr)
        # As esdm-find says it, and the query once.
        for query, why in (("titel = = 3", "query, column 9: expected a value"),
                           ("titel >", "query, column 8: expected a value"),
                           ("a=b&titel >", "in 'titel >': query, column 8: expected a value"),
                           ("titel == 3", "query, column 1: nothing has an attribute 'titel'"),
                           ("titel = 3", "query, column 1: nothing has an attribute 'titel'"),
                           ("titel=3", "query, column 1: no container has an attribute 'titel'")):
            done = client(["ncdump", "-h", f"esdm://?{query}"], check=False)
            expect(why in done.stderr and done.stderr.count(f"'?{query}'") == 1, done.stderr)
            if "&" not in query and why[17:24] != "no cont":
                told = run([tool("esdm-find"), query], check=False)
                expect(why in told.stderr, told.stderr)
        # Not what a program makes, nor when it fails before it has looked for anything.
        for words in (["-random,r6x3", "esdm://taz.nc"], ["-nosuch", "esdm://tas.nc", "esdm://tasx.nc"]):
            done = client(["cdo", "-s", "-f", "nc", *words], check=False)
            expect("did you mean" not in done.stderr, done.stderr)
        done = run([RESTORE, "tas.nc"], check=False)
        expect_error(done, "no former container 'tas.nc'", "stands, and replaced none", "esdm-log 'tas.nc'")
        expect("did you mean" not in done.stderr, done.stderr)
        run([RM, "-r", "--yes", "experiment"])
        for typo in "experiment/rum1.nc", "experimnet/run1.nc":
            done = run([RESTORE, typo], check=False)
            expect(done.returncode == 3, f"{done}")
            expect_error(done, "did you mean 'experiment/run1.nc'?", "esdm-ls --replaced")
        done = run([RESTORE, "quite/another"], check=False)
        expect(done.returncode == 3 and "did you mean" not in done.stderr, f"{done}")
        done = run([RESTORE, "--id", "00000000", "experiment/run1.nc"], check=False)
        expect(done.returncode == 3 and "did you mean" not in done.stderr, f"{done}")
        done = run([tool("esdm-stat"), "quite/another"], check=False)
        expect("did you mean" not in done.stderr, f"{done}")


def test_restore__of_a_folder_says_recursive_and_list_needs_no_name():
    need_program("cdo")
    with Site():
        write("experiment/run1.nc", 1)
        write("experiment/run2.nc", 2)
        done = run([tool("esdm-cp"), "esdm://experiment", "out"], check=False)
        expect(done.returncode == 3, f"{done}")
        expect_error(done, "2 below it", "--recursive")
        run([RM, "-r", "--yes", "experiment"])
        done = run([RESTORE, "experiment"], check=False)
        expect(done.returncode == 3, f"{done}")
        expect_error(done, "2 below it", "esdm-restore --recursive 'experiment'")
        listed = run([RESTORE, "--list"]).stdout
        expect("'experiment/run1.nc'" in listed and "'experiment/run2.nc'" in listed, listed)
        run([RESTORE, "--recursive", "experiment"])
        expect(run([LS]).stdout.split() == ["experiment/run1.nc", "experiment/run2.nc"], "back")


def test_names__what_was_renamed_is_told():
    """Also where an older container of the name is kept, which is not what is missed."""
    need_program("cdo", "ncdump")
    mv = tool("esdm-mv")
    with Site():
        write("a.nc", 1)
        write("a.nc", 2)
        run([mv, "a.nc", "b.nc"])
        for done in (client(["ncdump", "-h", "esdm://a.nc"], check=False), run([tool("esdm-stat"), "a.nc"], check=False)):
            expect_error(done, "it is called 'b.nc' now", "older one")
            expect("was removed" not in done.stderr, done.stderr)
        told = run([RESTORE, "a.nc"]).stderr
        expect("is 'b.nc' now" in told and "older one" in told, told)
        expect((value("a.nc"), value("b.nc")) == (1, 2), "another one came back")
        run([RM, "--for-good", "a.nc"])
        run([mv, "b.nc", "c/c.nc"])  # and once more
        expect_error(run([RESTORE, "a.nc"], check=False), "not removed", "'c/c.nc' now", "esdm-mv 'c/c.nc' 'a.nc'")
        expect_error(run([RESTORE, "b.nc"], check=False), "'c/c.nc' now")
        run([RM, "c/c.nc"])  # from here on it is no rename
        done = client(["ncdump", "-h", "esdm://a.nc"], check=False)
        expect_error(done, "No such file")
        expect("called" not in done.stderr, done.stderr)
        run([RESTORE, "c/c.nc"])
        run([mv, "c/c.nc", "a.nc"])
        write("c/c.nc", 3)  # another one has the name
        run([RM, "c/c.nc"])
        expect_error(run([tool("esdm-stat"), "c/c.nc"], check=False), "was removed and is kept")


def test_names__behind_at_stands_a_branch_or_a_tag():
    need_program("cdo", "ncdump")
    with Site():
        write("a.nc", 1)
        run([tool("esdm-branch"), "a.nc", "fix"])
        run([tool("esdm-tag"), "a.nc", "good"])
        for name, meant in (("a.nc@fix", "a.nc@branch:fix"), ("a.nc@good", "a.nc@tag:good")):
            expect_error(run([tool("esdm-stat"), name], check=False), f"did you mean '{meant}'?")
            expect_error(client(["ncdump", "-h", f"esdm://{name}"], check=False),
                         f"did you mean '{meant}'?")
        expect_error(run([tool("esdm-stat"), "a.nc@other"], check=False), "tag:TAG", "@-1")


def test_names__an_accuracy_that_is_none_says_how():
    need_program("cdo", "ncdump")
    with Site():
        write("a.nc", 1)
        for text in "1", "foo":
            done = client(["ncdump", "-h", f"esdm://a.nc?accuracy={text}"], check=False)
            expect(done.returncode != 0, f"{done}")
            expect_error(done, f"accuracy '{text}'", "say '1%'")
        done = run([tool("esdm-cp"), "--accuracy", "v: trend=1", "x.nc", "esdm://x.nc"], check=False)
        expect_error(done, "no quantity 'trend'", "mode, regions (box=…: …, level=…: …)")


def test_usage__what_is_missing_has_an_example():
    with Site():
        for name, example in (("reduce", "esdm-reduce max tas.nc tas"), ("merge", "run1.nc fix"),
                              ("explain", "esdm-explain --page"), ("cost", "climate.json")):
            done = run([tool(f"esdm-{name}")], check=False)
            expect(done.returncode == 2, f"{done}")
            expect_error(done, "?\n", "Example: ", example, f"Try 'esdm-{name} --help'.")
        done = run([tool("esdm-reduce"), "--nonsense"], check=False)
        expect("Example" not in done.stderr, f"{done}")


def test_ls__sorts_sums_and_folds():
    need_program("cdo")
    with Site():
        write("exp/run1/a.nc", 1, "r60x30")
        write("exp/run1/b.nc", 2, "r6x3")
        write("exp/run2/a.nc", 3, "r12x6")
        write("top.nc", 4, "r24x12")
        shown = json.loads(run([LS, "--json", "--sort", "size"]).stdout)
        names = [c["name"] for c in shown["containers"]]
        expect(names == ["exp/run1/a.nc", "top.nc", "exp/run2/a.nc", "exp/run1/b.nc"], f"{names}")
        expect(shown["total"]["containers"] == 4, f"{shown['total']}")
        expect(shown["total"]["raw_bytes"] == sum(c["raw_bytes"] for c in shown["containers"]), "sum")
        owner = run(["id", "-un"]).stdout.strip()
        expect({c["owner"] for c in shown["containers"]} == {owner}, f"{shown}")
        expect(run([LS, "-r"]).stdout.split()[0] == "top.nc", "--reverse")
        text = run([LS, "-l"]).stdout
        expect(re.search(rf" {owner} .* top.nc$", text, re.M) and "total: 4 containers" in text, text)
        folded = json.loads(run([LS, "--json", "--depth", "1"]).stdout)["containers"]
        expect([(c["name"], c.get("containers")) for c in folded] == [("exp/", 3), ("top.nc", None)],
               f"{folded}")
        expect(folded[0]["raw_bytes"] + folded[1]["raw_bytes"] == shown["total"]["raw_bytes"],
               f"{folded}")
        text = run([LS, "-l", "--depth", "1"]).stdout
        expect(re.search(r" \d+ +- +\S+ .* exp/$", text, re.M), f"a folder has no snapshot: {text}")
        below = run([LS, "--depth", "1", "exp"]).stdout.split()
        expect(below == ["exp/run1/", "exp/run2/"], f"{below}")
        expect_error(run([LS, "--sort", "colour"], check=False), "colour", "owner")


def test_restore__what_was_changed_in_place_is_no_former_container():
    """Who undoes a mistake, makes another one in place and undoes again must not get the first mistake back."""
    need_program("cdo", "ncatted")
    with Site():
        write("exp/a.nc", 1)
        write("exp/a.nc", 2)  # the mistake
        run([RESTORE, "--yes", "exp/a.nc"])
        expect(value("exp/a.nc") == 1, "the mistake is undone")
        run([RESTORE, "--yes", "exp/a.nc"])
        run([RESTORE, "--yes", "exp/a.nc"])
        expect(value("exp/a.nc") == 1, "and undone twice")
        client(["ncatted", "-a", "units,const,o,c,degC", "esdm://exp/a.nc"])
        kept = former("exp/a.nc")
        done = run([RESTORE, "--yes", "exp/a.nc"], check=False)
        expect(done.returncode == 4, f"{done.stdout}{done.stderr}")
        expect_error(done, "was written to in place", "esdm-log 'exp/a.nc'", f"--id {kept[-1]['id']}")
        expect(value("exp/a.nc") == 1 and former("exp/a.nc") == kept, "something has changed")
        run([RESTORE, "--yes", "--id", kept[-1]["id"], "exp/a.nc"])
        expect(value("exp/a.nc") == 2, "--id")


SYNCED = """
import time, netCDF4
with netCDF4.Dataset("esdm://exp/a.nc", "w") as f:
    f.createDimension("x", 10)
    v = f.createVariable("v", "f8", ("x",))
    for i in range(2):
        v[i] = 9
        f.sync()
        time.sleep(0.3)
"""


def test_restore__upkeep_and_programs_that_sync_are_no_change_in_place():
    need_program("cdo", "ncatted")

    def compact(rows=10):
        run([tool("esdm-compact"), "--chunk", f"const={rows},60", "exp/a.nc"])
        time.sleep(0.6)  # younger snapshots are kept in any case

    for history in 10, 1:
        with Site(history=history):
            write("exp/a.nc", 1)
            write("exp/a.nc", 2)
            run([RESTORE, "--yes", "exp/a.nc"])
            compact(15)
            compact()
            expect("esdm-compact" in run([tool("esdm-log"), "exp/a.nc"]).stdout, "it made no snapshot")
            done = run([RESTORE, "--yes", "exp/a.nc"])
            expect(value("exp/a.nc") == 2, "it was undone")
            expect(("stored anew" in done.stderr) == (history == 1), done.stderr)
            # What somebody changed before or after it counts, as far as it is kept.
            for change_comes_last in True, False:
                run([RESTORE, "--yes", "--id", former("exp/a.nc")[-1]["id"], "exp/a.nc"])
                for change in not change_comes_last, change_comes_last:
                    if change:
                        client(["ncatted", "-a", "units,const,o,c,degC", "esdm://exp/a.nc"])
                    else:
                        compact()
                done = run([RESTORE, "--yes", "exp/a.nc"], check=False)
                if history == 10 or change_comes_last:
                    expect(done.returncode == 4 and "was written to in place" in done.stderr, f"{done}")
                else:
                    expect("stored anew" in done.stderr and "is not kept" in done.stderr, f"{done}")
            client(["/usr/bin/python3", "-c", SYNCED])
            expect("in place" not in run([RESTORE, "--dry-run", "exp/a.nc"]).stderr, "a program that syncs")


if __name__ == "__main__":
    main(*[f for n, f in sorted(globals().items()) if n.startswith("test_")])
