#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Lines of commits that go while others are merged, branched, listed or renamed: another program removes one of them for good,
removes it so that it is kept, or makes another one of its name, before each single question that the command asks the catalogue.
What comes of it is what comes of both commands one after the other, in one of both orders."""

import json
import random
import shutil

from esdmtest import SEED, by_size, client, environment, expect, in_memory, run, tool
from test_named_meanwhile import OrderedSite, hook, ordered

MERGE, BRANCH, RM, GC, MV, STAT, LS = (tool("esdm-" + name) for name in ("merge", "branch", "rm", "gc", "mv", "stat", "ls"))
PUT = """
import netCDF4, sys
for name, *pairs in (line.split() for line in sys.argv[1:]):
    with netCDF4.Dataset("esdm://" + name, "a" if pairs else "w") as d:
        if not pairs:
            d.createDimension("x", 8)
            d.createVariable("v", "i4", ("x",))[:] = 0
        for pair in pairs:
            at, value = map(int, pair.split("="))
            d["v"][at] = value
"""
POINTS = by_size(6, 12, 100000)  # of each pair of commands


def put(*lines):
    """Each line: a container and what is written to it; nothing: it is made."""
    client(["/usr/bin/python3", "-c", PUT, *lines])


def merge(*arguments):
    run([MERGE, *arguments])


def script(site, *commands):
    """A shell command that runs these, whatever each of them says."""
    return "".join(f"{command} >> {site.file('said')} 2>&1; " for command in commands) + "true"


class Copied(OrderedSite):
    """Brought back before each point."""

    def __init__(self):
        super().__init__(parent=in_memory(), replaced={"keep": 3600, "containers": 1000})

    def keep(self):
        self.kept = self.folder.with_name(self.folder.name + "-kept")
        shutil.copytree(self.folder, self.kept, symlinks=True)

    def bring_back(self):
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(self.kept, self.folder, symlinks=True, dirs_exist_ok=True)

    def __exit__(self, *why):
        if hasattr(self, "kept"):
            shutil.rmtree(self.kept, ignore_errors=True)
        return super().__exit__(*why)


def contents():
    """Of all lines."""
    names = [one["name"] for one in json.loads(run([LS, "--json"]).stdout)["containers"]]
    return tuple(run([STAT, "--digest", *sorted(names)]).stdout.splitlines())


def told(done):
    """What a command says: whether it did what it was asked for, and what hindered it."""
    expect("/former/" not in done.stderr, f"a name that no program can say: {done.stderr}")
    try:
        said = json.loads(done.stdout)
    except ValueError:
        return done.returncode, done.stderr
    return done.returncode, len(said.get("conflicts", [])), done.stderr if done.returncode else ""


def outcome(command, more, env=None):
    """What the command says, what there is then, and what there is when all has gone on for a while."""
    done = run(command, check=False, env=env)
    found = [told(done)[:1], contents()]
    for one in more:
        found.append(told(run(one, check=False))[:2])
    found.append(contents())
    return found, done


def count(command):
    """How often the command asks."""
    asked = SITE.file("asked")
    run(command, check=False, env=environment({"ESDM_FAULTY_META": "ask:1+0:run", "ESDM_FAULTY_META_RUN": f"echo >> {asked}"}))
    return len(asked.read_text(encoding="ascii"))


SITE = None


def check(make, command, other, more=()):
    """@param other commands of another program. @param more what is done afterwards."""
    global SITE
    with Copied() as SITE:
        make()
        SITE.keep()
        meanwhile = script(SITE, *(" ".join(map(str, one)) for one in other))
        total = count(command)
        expect(total > 8, f"{command} asks {total} times")
        SITE.bring_back()
        run(["sh", "-c", meanwhile])
        after, done = outcome(command, more)
        legal = [(after, done.stderr)]
        SITE.bring_back()
        first = run(command, check=False)
        run(["sh", "-c", meanwhile])
        legal.append(([told(first)[:1], contents()], first.stderr))
        for one in more:
            legal[1][0].append(told(run(one, check=False))[:2])
        legal[1][0].append(contents())
        points = sorted(random.Random(SEED).sample(range(1, total + 1), min(total, POINTS)))
        for point in points:
            SITE.bring_back()
            found, done = outcome(command, more, environment(hook(f"ask:{point}+1", meanwhile)))
            expect(any(found == one for one, _ in legal),
                   f"{command}, and {other} before question {point} of {total}: {found}\n{done.stdout}{done.stderr}\n"
                   f"expected one of {legal}")
        run([tool("esdm-fsck"), "--data"])
        print(f"{len(points)} of {total} questions")


FOR_GOOD = [GC, "--yes", "--age=0", "--replaced-now"]


def test_a_former_branch_of_the_same_name():
    """The container has it, and so has all that began with it or caught up with it."""
    def make():
        put("a.nc")
        run([BRANCH, "a.nc", "line", "other"])
        put("a.nc@branch:line 0=1")
        merge("a.nc", "line")
        run([RM, "--yes", "a.nc@branch:line"])
        run([BRANCH, "a.nc", "line"])
        put("a.nc 1=2", "a.nc@branch:line 2=3")
        merge("--into", "other", "a.nc")
        put("a.nc 3=4", "a.nc@branch:other 4=5")
    follow = [[MERGE, "--json", "a.nc", "line"], [MERGE, "--json", "a.nc", "other"], [MERGE, "--json", "--into", "line", "a.nc"]]
    for command in ([MERGE, "--json", "a.nc", "line"], [MERGE, "--json", "--into", "line", "a.nc"],
                    [MERGE, "--json", "--into", "other", "a.nc"], [BRANCH, "--json", "a.nc@branch:line", "more"]):
        check(make, command, [FOR_GOOD], follow)


def lines_that_got_a_third():
    put("a.nc")
    run([BRANCH, "a.nc", "third", "one", "two"])
    put("a.nc@branch:third 0=1 1=1")
    for line in "one", "two":
        merge("a.nc@branch:" + line, "third")
    put("a.nc@branch:one 2=2", "a.nc@branch:two 3=3")


def test_a_third_line():
    """Both have of it, and the container has nothing."""
    def removed():
        lines_that_got_a_third()
        run([RM, "--yes", "a.nc@branch:third"])
    follow = [[MERGE, "--json", "a.nc", line] for line in ("one", "two")]
    for command in [MERGE, "--json", "a.nc@branch:one", "two"], [MERGE, "--json", "a.nc", "one"]:
        check(removed, command, [FOR_GOOD], follow)
        check(lines_that_got_a_third, command, [[RM, "--yes", "a.nc@branch:third"]], follow)
        check(lines_that_got_a_third, command, [[RM, "--yes", "--for-good", "a.nc@branch:third"]], follow)


def test_another_line_of_the_name():
    """What is noted of the line that was removed is not noted of the new one: its changes would be lost."""
    anew = [[RM, "--yes", "a.nc@branch:third"], [BRANCH, "a.nc", "third"], [MERGE, "a.nc@branch:third", "source"]]
    def make():
        lines_that_got_a_third()
        run([BRANCH, "a.nc@branch:third", "below"])
        run([BRANCH, "a.nc", "source"])
        put("a.nc@branch:below 4=4", "a.nc@branch:source 0=5 5=5")
    follow = [[MERGE, "--json", "a.nc", "third"], [MERGE, "--json", "a.nc", "one"]]
    for command in ([MERGE, "--json", "a.nc@branch:one", "two"], [MERGE, "--json", "a.nc", "third"],
                    [MERGE, "--json", "--into", "third", "a.nc"], [MERGE, "--json", "a.nc", "below"],
                    [MERGE, "--json", "a.nc@branch:one", "third"]):
        check(make, command, anew, follow)


def branches_of_a_branch():
    put("a.nc")
    run([BRANCH, "a.nc", "parent"])
    put("a.nc@branch:parent 0=1")
    run([BRANCH, "a.nc@branch:parent", "left", "right"])
    put("a.nc@branch:left 1=1", "a.nc@branch:right 2=2", "a.nc@branch:parent 3=3", "a.nc 4=4")


def test_a_parent():
    follow = [[MERGE, "--json", "a.nc", line] for line in ("left", "right")]
    for command in ([MERGE, "--json", "a.nc@branch:left", "right"], [MERGE, "--json", "a.nc", "left"],
                    [MERGE, "--json", "--into", "left", "a.nc"]):
        check(branches_of_a_branch, command, [[RM, "--yes", "a.nc@branch:parent"]], follow)


def test_one_of_both():
    """It is merged, or it is not there."""
    for command in [MERGE, "--json", "a.nc", "left"], [MERGE, "--json", "--into", "right", "a.nc@branch:left"]:
        for how in [], ["--for-good"]:
            check(branches_of_a_branch, command, [[RM, "--yes", *how, "a.nc@branch:left"]],
                  [[MERGE, "--json", "a.nc", "right"]])


def test_lists_and_names():
    """One that goes while branches are listed, made or renamed with their container."""
    for command in [BRANCH, "--json", "a.nc"], [BRANCH, "--json", "a.nc@branch:left", "new"], [MV, "a.nc", "b.nc"]:
        for how in [], ["--for-good"]:
            check(branches_of_a_branch, command, [[RM, "--yes", *how, "a.nc@branch:right"]])


def test_a_name_that_is_taken_while_it_is_given_up():
    """What is noted of a line that goes does not count for the next one of its name: that is merged as a whole, or refused."""
    global SITE
    with Copied() as SITE:
        put("a.nc")
        put("a.nc 7=1")
        run([BRANCH, "a.nc", "source"])
        put("a.nc@branch:source 0=5")
        run([BRANCH, "a.nc@branch:source", "line"])
        put("a.nc@branch:line 1=5")
        merge("a.nc@branch:source", "line")
        put("a.nc@branch:source 2=5")
        merge("a.nc@branch:line", "source")
        SITE.keep()
        remove = [RM, "--yes", "a.nc@branch:line"]
        total = count(remove)
        points = sorted(random.Random(SEED).sample(range(8, total + 1), min(total - 7, 3 * POINTS)))
        merged = 0
        for point in points:
            SITE.bring_back()
            run(remove, env=environment(hook(f"ask:{point}+1", script(SITE, f"{BRANCH} a.nc@1 line"))))
            done = run([MERGE, "a.nc@branch:line", "source"], check=False)
            if done.returncode == 0:
                merged += 1
                found = run([STAT, "--digest", "a.nc@branch:line", "a.nc@branch:source"]).stdout.splitlines()
                expect(len({one.split()[0] for one in found}) == 1, f"before question {point} of {total}: {found}")
            else:
                expect("is not known any more" in done.stderr or "there is no" in done.stderr, f"{point}: {done.stderr}")
        expect(merged > len(points) // 3, f"{merged} of {points}")
        print(f"{merged} of {len(points)} are merged")


TESTS = (test_a_former_branch_of_the_same_name, test_a_third_line, test_another_line_of_the_name, test_a_parent, test_one_of_both,
         test_lists_and_names, test_a_name_that_is_taken_while_it_is_given_up)

if __name__ == "__main__":
    ordered(*TESTS)
