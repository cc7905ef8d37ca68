#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Branches of branches: random lines of commits, merged into each other, against a model that knows which commits are in
which line; parents that are removed; how the tools tell of them."""

import json
import shutil

from esdmtest import (BUILD, SANITIZE, SEED, SOURCE, Site, by_size, client, client_environment, expect, expect_error, main,
                      run, tool)

MERGE, BRANCH, RM, GC, FSCK, LOG = (tool(name) for name in (
    "esdm-merge", "esdm-branch", "esdm-rm", "esdm-gc", "esdm-fsck", "esdm-log"))

def check_random(*kinds):
    """The model says what each merge has to give (tests/support/branch_model.py)."""
    if SANITIZE:
        return
    with Site() as _:
        env = client_environment({"PYTHONPATH": str(SOURCE / "python"),
                                  "ESDM_LIBRARY_DIR": f"{BUILD}:{BUILD / 'netcdf-plugin'}"})
        env.pop("LD_PRELOAD", None)
        rounds = [SEED, SEED + by_size(4, 16, 200)]
        out = run(["/usr/bin/python3", SOURCE / "tests/support/branch_model.py", *map(str, rounds), *kinds], env=env).stdout
        expect(out.startswith("right "), out)
        print(out, end="")
        run([FSCK, "--data"])


def test_lines_are_merged_since_what_they_have_in_common():
    check_random()


def test_parents_are_removed():
    check_random("removes", "skips")


def test_two_lines_in_both_directions():
    check_random("down", "two")


def test_lines_in_both_directions():
    check_random("down")


def test_any_line_into_any_other():
    check_random("beside")


MAKE = """
with netCDF4.Dataset("esdm://a.nc", "w") as d:
    d.createDimension("x", 8)
    d.createVariable("v", "i4", ("x",))[:] = 0
"""


def script(code, *arguments):
    return client(["/usr/bin/python3", "-c", "import netCDF4, numpy, sys\n" + code, *map(str, arguments)])


def put(name, index, value):
    script("with netCDF4.Dataset('esdm://' + sys.argv[1], 'a') as d: d['v'][int(sys.argv[2])] = int(sys.argv[3])\n",
           name, index, value)


def expect_values(name, *values):
    text = script("print(*netCDF4.Dataset('esdm://' + sys.argv[1])['v'][:])\n", name).stdout
    expect(text.split() == [str(v) for v in values], f"{name}: {text}")


def branches(*arguments):
    return {b["branch"]: b for b in json.loads(run([BRANCH, "--json", *arguments]).stdout)["branches"]}


def test_a_branch_that_is_merged_past_its_parent():
    """What the container has of the parent by way of the branch is not merged again: it was changed back since."""
    with Site() as _:
        script(MAKE)
        run([BRANCH, "a.nc", "b"])
        put("a.nc@branch:b", 0, 1)
        run([BRANCH, "a.nc@branch:b", "c"])
        put("a.nc@branch:c", 1, 1)
        run([MERGE, "a.nc", "c"])
        expect_values("a.nc", 1, 1, 0, 0, 0, 0, 0, 0)
        put("a.nc", 0, 0)
        put("a.nc@branch:b", 2, 1)
        run([MERGE, "a.nc", "b"])
        expect_values("a.nc", 0, 1, 1, 0, 0, 0, 0, 0)
        run([MERGE, "a.nc@branch:b", "c"])
        expect_values("a.nc@branch:b", 1, 1, 1, 0, 0, 0, 0, 0)
        run([FSCK, "--data"])


def test_three_in_common():
    """They are merged with each other in the order of their names: one that has the value that another one
    changed comes before that one or after it."""
    for n in range(by_size(1, 2, 10)):
        for last, result in ("bd", 3), ("bb", None):
            with Site() as _:
                script(MAKE)
                run([BRANCH, "a.nc", "x", "ba", "bc", last, "o", "t"])
                put("a.nc@branch:x", 0, 1)
                put("a.nc@branch:ba", 0, 1)
                run([MERGE, "a.nc@branch:bc", "x"])
                put("a.nc@branch:bc", 1, 1)
                run([MERGE, "a.nc@branch:" + last, "x"])
                put("a.nc@branch:" + last, 0, 2)
                for branch in "ba", "bc", last:
                    run([MERGE, "a.nc@branch:o", branch])
                for branch in "bc", last, "ba":
                    run([MERGE, "--ours", "a.nc@branch:t", branch])
                put("a.nc@branch:t", 0, 3)
                put("a.nc@branch:o", 2, 1)
                for theirs, ours in ("t", "o"), ("o", "t"):
                    done = json.loads(run([MERGE, "--json", "--dry-run", "a.nc@branch:" + ours, theirs], check=False).stdout)
                    told = [(c["offset"], c["size"]) for c in done["conflicts"]]
                    expect(told == ([] if result else [([0], [1])]), f"{n} {last} {theirs} into {ours}: {done}")
                run([MERGE, *([] if result else ["--ours"]), "a.nc@branch:o", "t"])
                expect_values("a.nc@branch:o", result or 2, 1, 1, 0, 0, 0, 0, 0)


def test_a_parent_that_is_gone():
    """The container has more of it than it began with, and less than the branch began with: it is kept for that."""
    with Site(replaced={"keep": 0}) as _:
        script(MAKE)
        run([BRANCH, "a.nc", "b"])
        put("a.nc@branch:b", 0, 1)
        run([MERGE, "a.nc", "b"])
        put("a.nc", 0, 0)
        put("a.nc@branch:b", 1, 1)
        run([BRANCH, "a.nc@branch:b", "c", "d"])
        put("a.nc@branch:c", 2, 1)
        run([RM, "--yes", "a.nc@branch:b"])
        run([GC, "--yes", "--age=0"])
        expect_values("a.nc@branch:c", 1, 1, 1, 0, 0, 0, 0, 0)
        run([MERGE, "a.nc", "c"])
        expect_values("a.nc", 0, 1, 1, 0, 0, 0, 0, 0)
        expect(sorted(branches("a.nc")) == ["c", "d"], f"{branches('a.nc')}")
        expect(branches("a.nc")["d"]["parent"] == "a.nc@branch:b", f"{branches('a.nc')}")
        run([BRANCH, "-d", "a.nc", "c", "d"])  # nobody needs it any more
        run([GC, "--yes", "--age=0"])
        left = json.loads(run([tool("esdm-ls"), "--json", "--replaced"]).stdout)
        expect("branch:b" not in json.dumps(left), f"{left}")
        run([FSCK, "--data"])


def test_parents_that_are_gone_between_two_lines():
    """A branch of a branch whose own parent is gone knows what that began with."""
    with Site() as _:
        script(MAKE)
        run([BRANCH, "a.nc", "b"])
        run([BRANCH, "a.nc@branch:b", "c"])
        put("a.nc@branch:c", 0, 1)
        run([BRANCH, "a.nc@branch:c", "d"])
        run([RM, "--yes", "a.nc@branch:c"])
        run([BRANCH, "a.nc@branch:d", "e"])
        put("a.nc@branch:e", 1, 1)
        run([MERGE, "a.nc@branch:b", "e"])
        expect_values("a.nc@branch:b", 1, 1, 0, 0, 0, 0, 0, 0)
        run([MERGE, "a.nc", "b"])
        put("a.nc", 1, 0)
        put("a.nc@branch:e", 2, 1)
        run([MERGE, "a.nc", "e"])              # the container has all but the last change by way of b
        expect_values("a.nc", 1, 0, 1, 0, 0, 0, 0, 0)
        run([BRANCH, "-d", "a.nc", "e", "d", "b"])
        run([FSCK, "--data"])


def test_a_line_keeps_what_branches_of_removed_ones_began_with():
    """Nobody else has a tag on the snapshot that both have once the branch between them is gone; and nobody at all once both
    are."""
    for how in [], ["--for-good"]:
        with Site(history=1, replaced={"keep": 0}) as _:
            script(MAKE)
            run([BRANCH, "a.nc", "b"])
            put("a.nc@branch:b", 0, 1)
            run([BRANCH, "a.nc@branch:b", "c"])
            run([BRANCH, "a.nc@branch:c", "d"])
            run([RM, "--yes", *how, "a.nc@branch:c"])
            put("a.nc@branch:b", 0, 2)
            put("a.nc@branch:b", 1, 2)
            put("a.nc@branch:d", 2, 3)
            run([GC, "--yes", "--age=0"])
            for theirs, ours in ("b", "d"), ("d", "b"):
                run([MERGE, "a.nc@branch:" + ours, theirs])
                expect_values("a.nc@branch:" + ours, 2, 2, 3, 0, 0, 0, 0, 0)
            run([RM, "--yes", *how, "a.nc@branch:d"])
            run([MERGE, "a.nc", "b"])
            run([RM, "--yes", *how, "a.nc@branch:b"])
            put("a.nc", 3, 4)
            run([GC, "--yes", "--age=0"])
            out = run([LOG, "a.nc"]).stdout
            expect("a.nc@1 " not in out, f"{how}: {out}")
            run([FSCK, "--data"])


def test_a_name_that_is_given_again():
    """Lines that had merged a branch, or had come into it, do so with another one of its name as if it had a name of its own."""
    for source in "a.nc@branch:c@1", "a.nc@branch:d", "a.nc@1":
        for how in [], ["--for-good"]:
            with Site(replaced={"keep": 0 if how else 3600}) as _:
                script(MAKE)
                run([BRANCH, "a.nc", "b"])
                run([BRANCH, "a.nc@branch:b", "c"])
                run([BRANCH, "a.nc@branch:c", "d"])
                put("a.nc@branch:c", 0, 5)
                run([MERGE, "a.nc@branch:b", "c"])
                put("a.nc@branch:b", 3, 5)
                run([MERGE, "a.nc@branch:c", "b"])
                run([RM, "--yes", *how, "a.nc@branch:b"])
                put("a.nc@branch:c", 1, 5)
                run([BRANCH, source, "b"])
                put("a.nc@branch:b", 7, 7)
                for ours, theirs in ("b", "c"), ("c", "b"):
                    run([MERGE, "a.nc@branch:" + ours, theirs])
                    expect_values("a.nc@branch:" + ours, 5, 5, 0, 5, 0, 0, 0, 7)
                run([FSCK, "--data"])


def test_the_catalogue_is_lost():
    """What lines have in common comes back from the journals: the same is merged as would have been."""
    with Site(targets=[{"name": "disk", "plugin": "posix", "directory": "packs"}], replaced={"keep": 0},
              metadata={"plugin": "sqlite", "directory": "metadata"}) as site:
        script(MAKE)
        run([BRANCH, "a.nc", "b"])
        put("a.nc@branch:b", 0, 1)
        run([MERGE, "a.nc", "b"])
        put("a.nc", 0, 0)
        put("a.nc@branch:b", 1, 1)
        run([BRANCH, "a.nc@branch:b", "c"])
        put("a.nc@branch:c", 2, 1)
        before = branches("a.nc")
        shutil.rmtree(site.file("metadata"))
        run([tool("esdm-mkfs"), "--restore"])
        expect([(b["parent"], b["from"], b["merged"]) for b in branches("a.nc").values()] ==
               [(b["parent"], b["from"], b["merged"]) for b in before.values()], f"{branches('a.nc')}\n{before}")
        run([RM, "--yes", "a.nc@branch:b"])
        run([GC, "--yes", "--age=0"])
        run([MERGE, "a.nc", "c"])
        expect_values("a.nc", 0, 1, 1, 0, 0, 0, 0, 0)
        run([FSCK, "--data"])


def test_what_tools_tell():
    with Site(history=9) as _:
        script(MAKE)
        put("a.nc", 7, 7)
        run([BRANCH, "a.nc", "fix/a"])
        put("a.nc@branch:fix/a", 0, 1)
        out = run([BRANCH, "a.nc@branch:fix/a", "fix/b"]).stdout
        expect(out == "a.nc@branch:fix/b begins with snapshot 3 of a.nc@branch:fix/a\n", out)
        run([BRANCH, "a.nc@branch:fix/a", "fix/c", "--from", "@-1"])
        put("a.nc@branch:fix/b", 1, 1)
        told = branches("a.nc")
        expect([(b["parent"], b["from"], b["merged"]) for b in told.values()] ==
               [("a.nc", 2, None), ("a.nc@branch:fix/a", 3, None), ("a.nc@branch:fix/a", 2, None)], f"{told}")
        expect(sorted(branches("a.nc@branch:fix/a")) == ["fix/b", "fix/c"], f"{branches('a.nc@branch:fix/a')}")
        out = run([BRANCH, "a.nc"]).stdout
        expect("a.nc@branch:fix/b  from snapshot 3 of branch fix/a" in out, out)
        log = run([LOG, "-b", "a.nc@branch:fix/a"]).stdout
        expect("branch: fix/b" in log and "branch: fix/c" in log, log)
        log = run([LOG, "-b", "a.nc"]).stdout
        expect("branch: fix/a" in log and "fix/b" not in log, log)
        log = run([LOG, "-b", "--line", "a.nc@branch:fix/b"]).stdout
        expect([line.split()[0] for line in log.splitlines()] ==
               ["a.nc@branch:fix/b@4", "a.nc@branch:fix/b@3", "a.nc@branch:fix/a@3", "a.nc@branch:fix/a@2", "a.nc@2",
                "a.nc@1"], log)
        expect_error(run([MERGE, "a.nc@branch:fix/b", "fix/b"], check=False), "into itself")
        expect_error(run([BRANCH, "a.nc@branch:fix/a", "fix/b"], check=False), "exists")
        expect_error(run([BRANCH, "a.nc@branch:none", "x"], check=False), "no container 'a.nc@branch:none'")
        run([MERGE, "a.nc@branch:fix/a", "fix/b"])
        expect(branches("a.nc")["fix/b"]["merged"] == 4, f"{branches('a.nc')}")
        out = run([MERGE, "--pick", "@4", "--json", "a.nc", "fix/b"]).stdout
        expect_values("a.nc", 0, 1, 0, 0, 0, 0, 0, 7)
        expect_error(run([MERGE, "--pick", "@3", "a.nc", "fix/b"], check=False), "not one of its own")
        run([tool("esdm-mv"), "a.nc", "new.nc"])
        run([MERGE, "new.nc", "fix/b"])
        expect_values("new.nc", 1, 1, 0, 0, 0, 0, 0, 7)
        run([tool("esdm-mv"), "new.nc@branch:fix/a", "own.nc"])     # what began with it has lost it
        put("new.nc@branch:fix/b", 2, 2)
        run([MERGE, "new.nc", "fix/b"])
        expect_values("new.nc", 1, 1, 2, 0, 0, 0, 0, 7)
        expect_error(run([MERGE, "own.nc", "fix/b"], check=False), "no branch")
        run([FSCK, "--data"])


if __name__ == "__main__":
    main(test_lines_are_merged_since_what_they_have_in_common, test_two_lines_in_both_directions,
         test_lines_in_both_directions, test_any_line_into_any_other, test_parents_are_removed,
         test_a_branch_that_is_merged_past_its_parent, test_three_in_common, test_a_parent_that_is_gone,
         test_a_line_keeps_what_branches_of_removed_ones_began_with, test_the_catalogue_is_lost,
         test_parents_that_are_gone_between_two_lines, test_a_name_that_is_given_again, test_what_tools_tell)
