#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Tags: names of snapshots through NetCDF programs and tools; they keep their snapshots. What else is
kept: by number and age, for sites, prefixes and containers."""

import json
import pathlib
import time

from esdmtest import Site, client, expect, expect_error, main, run, tool
from steps import write

READ = """
import netCDF4, sys
for name in sys.argv[1:]:
    with netCDF4.Dataset(f"esdm://{name}") as d:
        print(d.step, float(d["v"][0]))
"""


def read(*names, check=True):
    return client(["/usr/bin/python3", "-c", READ, *names], check=check)


def tag(*arguments, check=True):
    return run([tool("esdm-tag"), *arguments], check=check)


def tags(*arguments):
    return json.loads(run([tool("esdm-tag"), "--json", *arguments]).stdout)["tags"]


def log(name):
    return json.loads(run([tool("esdm-log"), "--json", "--brief", name]).stdout)["snapshots"]


def newest(name):
    return log(name)[0]["snapshot"]


def test_a_tag_keeps_its_snapshot():
    with Site() as site:                       # history 1
        write("exp/a.nc", 0, 2)
        number = newest("exp/a.nc")
        out = tag("exp/a.nc", "ipcc-draft", "Entwurf_ü").stdout
        expect(f"snapshot {number} has the tag 'ipcc-draft'" in out, out)
        write("exp/a.nc", 2, 7)
        time.sleep(0.6)                        # stores spare what is younger than half a second
        write("exp/a.nc", 7, 9)
        run([tool("esdm-gc")])
        expect(read("exp/a.nc@tag:ipcc-draft", "exp/a.nc@tag:Entwurf_ü", "exp/a.nc").stdout ==
               "1 1.0\n1 1.0\n8 8.0\n", read("exp/a.nc@tag:ipcc-draft").stdout)
        dump = client(["ncdump", "-h", "esdm://exp/a.nc@tag:ipcc-draft"]).stdout
        expect(":step = 1" in dump, dump)
        told = [s for s in log("exp/a.nc") if s["snapshot"] == number]
        expect(sorted(told[0]["tags"]) == ["Entwurf_ü", "ipcc-draft"], f"{log('exp/a.nc')}")
        expect(len(log("exp/a.nc")) <= 3, f"others stay as well: {log('exp/a.nc')}")
        expect("tag: " in run([tool("esdm-log"), "exp/a.nc"]).stdout, "esdm-log shows none")
        run([tool("esdm-cp"), "esdm://exp/a.nc@tag:ipcc-draft", site.file("a.nc")])
        run([tool("esdm-diff"), site.file("a.nc"), f"exp/a.nc@{number}"])
        expect([(t["tag"], t["snapshot"], t["former"]) for t in tags("exp/a.nc")] ==
               [("Entwurf_ü", number, False), ("ipcc-draft", number, False)], f"{tags('exp/a.nc')}")
        expect(len(tags("--all")) == 2 == len(tags("--all", "exp")), f"{tags('--all')}")
        tag("--remove", "exp/a.nc", "ipcc-draft", "Entwurf_ü")
        time.sleep(0.6)
        write("exp/a.nc", 9, 10)
        run([tool("esdm-gc")])
        expect_error(read(f"exp/a.nc@{number}", check=False))
        expect_error(run([tool("esdm-stat"), "exp/a.nc@tag:ipcc-draft"], check=False))


def test_wrong_names():
    with Site(history=9) as _:
        write("a.nc", 0, 3)
        for name in ("", "a/b", "a b", "a@b", "a?b", "a:b", "x" * 256, "a\nb"):
            expect_error(tag("a.nc", name, check=False), "tag")
        tag("a.nc@-1", "x")
        expect_error(tag("a.nc", "x", check=False), "--force", "a.nc")
        tag("a.nc@-1", "x")                    # it is there already
        tag("--force", "a.nc", "x")
        expect(tags("a.nc")[0]["snapshot"] == newest("a.nc"), f"{tags('a.nc')}")
        tag("a.nc@tag:x", "y")
        expect_error(tag("a.nc@999", "z", check=False), "999")
        expect_error(tag("b.nc", "z", check=False), "b.nc")
        expect_error(tag("--remove", "a.nc", "z", check=False), "no tag 'z'")
        expect_error(client(["/usr/bin/python3", "-c", "import netCDF4\n"
                             "netCDF4.Dataset('esdm://a.nc@tag:x', 'a')"], check=False))


def test_a_tag_outlives_its_container():
    for keep in ("1d", 0):
        with Site(replaced={"keep": keep}) as _:
            write("a.nc", 0, 3)
            tag("a.nc", "paper")
            write("b.nc", 0, 3)
            for _ in range(2):
                write("a.nc", 0, 1)            # replaced
            run([tool("esdm-rm"), "b.nc"])
            run([tool("esdm-gc"), "--replaced-now", "--yes"])
            expect(read("a.nc@tag:paper", "a.nc").stdout == "2 2.0\n0 0.0\n", "it is gone")
            expect([t["former"] for t in tags("a.nc")] == [True], f"{tags('a.nc')}")
            left = json.loads(run([tool("esdm-ls"), "--replaced", "--json"]).stdout)
            expect("b.nc" not in json.dumps(left), f"what has no tag stays: {left}")
            for options in ([], ["--recursive", "--yes"]):       # of a former container
                refused = run([tool("esdm-rm"), "--for-good", *options, "a.nc"], check=False)
                expect(refused.returncode == 4, f"{refused.returncode}")
                expect_error(refused, "tag 'paper'")
            expect(read("a.nc@tag:paper", "a.nc").stdout == "2 2.0\n0 0.0\n", "removed all the same")
            run([tool("esdm-rm"), "a.nc"])
            expect(read("a.nc@tag:paper").stdout == "2 2.0\n", "it is gone after esdm-rm")
            tag("--remove", "a.nc", "paper")
            run([tool("esdm-gc"), "--replaced-now", "--yes"])
            expect_error(read("a.nc@tag:paper", check=False))


def test_a_tag_is_not_hidden_by_a_new_container():
    """A run that is done again, with the same esdm-tag at its end: readers of the paper keep what they were given."""
    with Site() as _:
        write("a.nc", 0, 3)
        tag("a.nc", "paper")
        write("a.nc", 0, 1)                    # replaced
        refused = tag("a.nc", "paper", check=False)
        expect(refused.returncode == 4, f"{refused.returncode}: {refused.stdout}")
        expect_error(refused, "former", "tag 'paper'", "--force")
        expect(read("a.nc@tag:paper", "a.nc").stdout == "2 2.0\n0 0.0\n", read("a.nc@tag:paper").stdout)
        tag("a.nc@tag:paper", "paper")         # it is there already
        tag("a.nc", "second")
        expect_error(tag("a.nc@tag:paper", "second", check=False), "tag 'second'")   # nobody would find it
        tag("--force", "a.nc", "paper")
        expect(read("a.nc@tag:paper").stdout == "0 0.0\n", read("a.nc@tag:paper").stdout)
        tag("--remove", "a.nc", "paper")       # the former one has it still
        expect(read("a.nc@tag:paper").stdout == "2 2.0\n", read("a.nc@tag:paper").stdout)
        run([tool("esdm-rm"), "a.nc"])         # and a name that is free again
        write("a.nc", 0, 2)
        expect_error(tag("a.nc", "paper", check=False), "tag 'paper'")


def test_what_is_kept():
    policies = [{"container": "exp/special.nc", "history": 4},
                {"container": "exp/*", "history": 2},
                {"container": "young/*", "history_age": "1h"},
                {"container": "old/*", "history_age": 0}]
    with Site(history=3, policies=policies) as site:
        wanted = {"exp/special.nc": 4, "exp/a.nc": 2, "other.nc": 3, "young/a.nc": None, "old/a.nc": 3}
        for name in wanted:
            write(name, 0, 5)
        before = {name: len(log(name)) for name in wanted}
        time.sleep(0.6)
        for name in wanted:
            write(name, 5, 6)
        run([tool("esdm-gc")])
        for name, count in wanted.items():
            found = log(name)
            if count is None:
                expect(len(found) > before[name] >= 5, f"{name}: {len(found)}, {before[name]}")
            else:
                expect(len(found) == count, f"{name}: {len(found)} snapshots, {count} wanted")
        config = json.loads(pathlib.Path(site.config).read_text())
        for policy, words in (({"variable": "v", "history": 2}, "variables"),
                              ({"container": "*", "history": 0}, "history"),
                              ({"container": "*", "history_age": "1y"}, "1d")):
            pathlib.Path(site.config).write_text(json.dumps(dict(config, policies=[policy])))
            expect_error(run([tool("esdm-ls")], check=False), words)
        pathlib.Path(site.config).write_text(json.dumps(dict(config, policies=[
            {"container": "young/*", "history_age": 1}])))
        time.sleep(1.1)
        write("young/a.nc", 6, 7)              # what is too old goes when the container is closed
        expect(len(log("young/a.nc")) <= 5, f"{len(log('young/a.nc'))}")


def test_what_is_kept_of_each_level():
    """Number, age and tags, each of them said for the site, for a prefix and for one container: the closer one counts."""
    def kept(counts, ages):
        """How many of each are kept; arguments and result: of the site, the prefix, the container."""
        said = [{"container": pattern, "history": counts[level], "history_age": ages[level]}
                for pattern, level in (("p/c.nc", 2), ("p/*", 1))]
        with Site(history=counts[0], history_age=ages[0], policies=said) as _:
            names = ("a.nc", "p/b.nc", "p/c.nc")
            tagged = {}
            for name in names:
                write(name, 0, 5)
                tagged[name] = log(name)[-1]["snapshot"]
                tag(f"{name}@{tagged[name]}", "first")
            time.sleep(1.2)
            for name in names:
                write(name, 5, 6)
            run([tool("esdm-gc")])
            found = [log(name) for name in names]
            for name, snapshots in zip(names, found):
                expect(snapshots[-1]["snapshot"] == tagged[name] and snapshots[-1]["tags"] == ["first"], f"{name}: {snapshots}")
                read(f"{name}@tag:first", f"{name}@{snapshots[0]['snapshot']}")
            return [len(snapshots) for snapshots in found]

    found = kept((2, 3, 4), (0, 0, 0))         # and the one with a tag
    expect(found == [3, 4, 5], f"by number: {found}")
    for level in range(3):                     # an hour there, a second at the others
        ages = [1, 1, 1]
        ages[level] = "1h"
        found = [count >= 6 for count in kept((1, 1, 1), ages)]
        expect(found == [other == level for other in range(3)], f"{ages}: {found}")


if __name__ == "__main__":
    main(test_a_tag_keeps_its_snapshot, test_wrong_names, test_a_tag_outlives_its_container,
         test_a_tag_is_not_hidden_by_a_new_container,
         test_what_is_kept, test_what_is_kept_of_each_level)
