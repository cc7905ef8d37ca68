# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-attr changes attributes of many containers, each in one commit; esdm-mv gives other names."""

import json

from esdmtest import Site, expect, main, need_data, run, tool

ATTR, MV, LS, LOG, FIND = (tool(f"esdm-{n}") for n in ("attr", "mv", "ls", "log", "find"))


def filled():
    files = sorted(need_data("cmip6").rglob("*.nc"), key=lambda p: (p.stat().st_size, p.name))[:3]
    run([tool("esdm-cp"), *map(str, files), "esdm://exp/"])
    return sorted(f"exp/{f.name}" for f in files)


def attributes(name, *options):
    return json.loads(run([ATTR, "--json", *options, name]).stdout)[name]


def snapshots(name):
    return len(json.loads(run([LOG, "--json", name]).stdout)["snapshots"])


def test_attr__shows_sets_and_removes():
    with Site():
        first, second, third = filled()
        before, of_variable = attributes(first), attributes(first, "-V", "ta")
        expect(before["mip_era"] == "CMIP6" and of_variable["units"] == "K", f"{before}")
        expect("    mip_era = \"CMIP6\"" in run([ATTR, first]).stdout.splitlines(), "for people")
        run([ATTR, "--set", "title=a = b", "--remove", "tracking_id", first, second])
        for name in (first, second):
            now = attributes(name)
            expect(now["title"] == "a = b" and "tracking_id" not in now, f"{now}")
        expect({**before, "title": "a = b"} == {"tracking_id": before["tracking_id"], **attributes(first)},
               "others are as before")
        run([ATTR, "-V", "ta", "-t", "float", "-s", "valid_range=150, 350.5", "-t", "float", first])
        expect(attributes(first, "-V", "ta") == {**of_variable, "valid_range": [150.0, 350.5]}, "numbers")
        run([ATTR, "-t", "uint64", "-s", f"big={2**64 - 1}", first])
        expect(int(json.dumps(attributes(first)["big"]).strip('[]"')) == 2**64 - 1, f"{attributes(first)}")
        expect(run([FIND, "title = 'a = b'"]).stdout.splitlines() == [first, second], "the index has it")
        expect("valid_range" not in attributes(third, "-V", "ta"), "a third one is untouched")


def test_attr__changes_what_a_query_finds_in_one_commit_each():
    with Site():
        names = filled()
        change = [ATTR, "--where", "units = K", "-s", "note=x", "-s", "more=y", "-d", "tracking_id", "-m", "tidy"]
        count = [snapshots(n) for n in names]
        told = run([*change, "--dry-run"]).stdout
        expect(told.count("would set note") == 3 and told.count("would remove") == 3, told)
        expect([snapshots(n) for n in names] == count and "note" not in attributes(names[0]), "nothing changed")
        done = json.loads(run([*change, "--json"]).stdout)
        expect(done == {n: {"set": ["note", "more"], "removed": ["tracking_id"]} for n in names}, f"{done}")
        log = json.loads(run([LOG, "--json", names[0]]).stdout)["snapshots"]
        expect(log[0]["message"] == "tidy" or log[-1]["message"] == "tidy", f"{log}")
        after = [snapshots(n) for n in names]
        expect(json.loads(run([*change, "--json"]).stdout)[names[0]] == {"set": [], "removed": []}, "it is so already")
        expect(after == [snapshots(n) for n in names], "no further commit")


def test_attr__refuses_what_is_wrong():
    with Site():
        first = filled()[0]
        for arguments, status in {("-s", "a", first): 2, ("-s", "=b", first): 2, ("-t", "int", "-s", "a=1.5", first): 2,
                                  ("-t", "byte", "-s", "a=300", first): 2, ("-t", "nothing", "-s", "a=b", first): 2,
                                  ("-V", "nope", first): 3, ("nope.nc",): 3, (): 2,
                                  ("--where", "a ="): 2, ("--where", "no_such = 1"): 3,
                                  ("--where", "a = b", first): 2}.items():
            done = run([ATTR, *arguments], check=False)
            expect(done.returncode == status, f"{arguments}: {done.returncode} {done.stderr}")
        expect("--where 'model = x'" in run([ATTR, "model = x"], check=False).stderr, "a query is no name")
        expect(run([ATTR, "-s", "a=b", "nope.nc", first], check=False).returncode == 3 and
               attributes(first)["a"] == "b", "the first failure does not keep the others")


def test_mv__gives_other_names():
    with Site():
        first, second, third = filled()
        content = attributes(first)
        told = run([MV, "-n", first, "a.nc"]).stdout
        expect(told == f"would move {first} -> a.nc\n" and run([LS]).stdout.count("exp/") == 3, told)
        run([MV, first, "a.nc"])
        expect(attributes("a.nc") == content, "the same container")
        done = run([MV, second, "a.nc"], check=False)
        expect(done.returncode == 4 and "--replace" in done.stderr and attributes("a.nc") == content, f"{done}")
        expect(run([MV, "-n", second, "a.nc"], check=False).returncode == 4, "told before")
        run([MV, "--replace", second, "a.nc"])
        expect(attributes("a.nc") != content, "replaced")
        run([MV, "a.nc", third, "kept/"])
        expect(run([LS, "kept"]).stdout.split() == ["kept/a.nc", "kept/" + third.split("/")[1]], "a folder")
        told = json.loads(run([MV, "--json", "-r", "kept", "old/kept"]).stdout)["moved"]
        expect([m["to"] for m in told] == ["old/kept/a.nc", "old/kept/" + third.split("/")[1]], f"{told}")
        expect(run([MV, "nope", "x"], check=False).returncode == 3 and run([MV, "x"], check=False).returncode == 2, "")


def test_mv__tells_virtual_containers_of_a_member():
    ln = tool("esdm-ln")
    with Site():
        first, second, third = filled()
        table = attributes(first)["source_id"]
        expect(run([MV, first, "exp/none.nc"]).stderr == "", "no virtual container has it")
        run([MV, "exp/none.nc", first])
        for name, query in (("follows", f"?source_id={table}"), ("there", f"?source_id={table}&within=exp")):
            run([ln, f"{query}&without={second}&without={third}", f"all/{name}"])
        run([ln, "--pin", f"?source_id={table}&without={second}&without={third}", "all/pinned"])
        dry = run([MV, "-n", first, "old/first.nc"]).stderr
        expect(f"'{first}' is a member of the virtual container 'all/follows', 'all/pinned' (pinned), 'all/there'" in dry, dry)
        done = run([MV, first, "old/first.nc"]).stderr.splitlines()
        expect(len(done) == 2 and "'old/first.nc' is by its new name, too, a member" in done[0] and
               "'all/follows', 'all/pinned' (pinned) (" in done[0], done)
        expect(f"'{first}' was a member" in done[1] and "'all/there' (" in done[1], done)
        # A virtual container that is moved with its member has it.
        run([ln, f"?source_id={table}&within=old", "old/own"])
        done = run([MV, "-r", "old", "older"]).stderr
        expect("'older/own'" in done.splitlines()[1] and "by its new name is none" in done.splitlines()[1], done)
        # What is replaced was a member, too.
        done = run([MV, "--replace", second, "older/first.nc"]).stderr
        expect("'older/first.nc' that is replaced was a member of the virtual container 'all/follows', "
               "'all/pinned' (pinned)" in done, done)


def test_ls__trees_and_the_newest_first():
    with Site():
        first, second, third = filled()
        run([ATTR, "-s", "a=b", second])
        expect(run([LS, "-t"]).stdout.splitlines()[0] == second, "the newest first")
        run([MV, first, "a/b/c.nc"])
        names = [n.split("/")[1] for n in (second, third)]
        expect(run([LS, "--tree"]).stdout == f"a/\n  b/\n    c.nc\nexp/\n  {names[0]}\n  {names[1]}\n", "a tree")
        expect(run([LS, "--tree", "--depth", "1"]).stdout == "a/  1\nexp/  2\n", "counted")
        expect(run([LS, "--tree", "-l"], check=False).returncode == 2, "facts are no tree")


if __name__ == "__main__":
    main(*[f for n, f in sorted(globals().items()) if n.startswith("test_")])
