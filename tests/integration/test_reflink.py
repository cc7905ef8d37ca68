#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-cp --reflink: containers that are cloned by users, and changed by programs afterwards."""

import json

from esdmtest import Site, client, expect, expect_error, main, run, tool

CP, RM, GC, FSCK = (tool(name) for name in ("esdm-cp", "esdm-rm", "esdm-gc", "esdm-fsck"))


def make(site, name, first):
    """A container with 3 * 4000 numbers, more than lie in an index page."""
    text = site.file("x.cdl")
    values = ", ".join(str(first + i) for i in range(12000))
    text.write_text("netcdf x { dimensions: t = UNLIMITED ; n = 4000 ; variables: int v(t, n) ; "
                    f"v:units = \"K\" ; data: v = {values} ; }}")
    client(["ncgen", "-4", "-o", f"esdm://{name}", text])


def dump(name):
    return client(["ncdump", f"esdm://{name}"]).stdout.split("{", 1)[1]


def packs(site):
    """Packs of containers, not those of the site's own."""
    return sorted(path.name for path in site.packs.rglob("*")
                  if path.is_file() and not path.name.startswith("0" * 24)
                  and path.suffix != ".json")


def change(name, index, value):
    client(["/usr/bin/python3", "-c", f"""
import netCDF4
with netCDF4.Dataset("esdm://{name}", "r+") as data:
    data["v"][{index}, :] = {value}
"""])


def test_reflink__clones_are_changed_by_programs():
    with Site() as site:
        make(site, "a.nc", 0)
        before, stored = dump("a.nc"), packs(site)
        done = run([CP, "--reflink", "esdm://a.nc", "esdm://try/b.nc"])
        expect(done.stdout == "" and packs(site) == stored, f"{done.stdout} {packs(site)}")
        expect(dump("try/b.nc") == before, "the clone differs")
        change("try/b.nc", 1, -7)
        changed = dump("try/b.nc")
        expect(changed != before and dump("a.nc") == before, "the source has changed")
        change("a.nc", 3, 9)  # one more record
        expect(dump("try/b.nc") == changed, "the clone has changed")
        expect("t = UNLIMITED ; // (4 currently)" in dump("a.nc"), "no record was added")
        expect("clone of a.nc@" in run([tool("esdm-log"), "try/b.nc"]).stdout, "no message")
        run([RM, "--yes", "--for-good", "a.nc"])
        run([GC, "--yes", "--age=0"])
        expect(dump("try/b.nc") == changed, "it went with its source")
        run([FSCK, "--data"])
        run([RM, "--yes", "--for-good", "try/b.nc"])
        run([GC, "--yes", "--age=0"])
        expect(not packs(site), f"left: {packs(site)}")


def test_reflink__who_shares_is_told():
    with Site() as site:
        def told(name):
            return json.loads(run([tool("esdm-stat"), "--json", name]).stdout)["containers"][0]["shares_with"]
        for name in ("a", "alone"):
            make(site, name, 0)
        run([CP, "--reflink", "esdm://a", "esdm://b"])
        run([CP, "--reflink", "esdm://b", "esdm://c"])
        run([tool("esdm-branch"), "a", "fix"])
        expect(told("alone") == [], f"{told('alone')}")
        for name in "abc":
            expect(told(name) == sorted({"a", "a@branch:fix", "b", "c"} - {name}), f"{name}: {told(name)}")
        run([RM, "b"])
        expect(told("c") == ["a", "a@branch:fix"], f"{told('c')}")
        text = run([tool("esdm-stat"), "a"]).stdout
        expect("shares what is stored with a@branch:fix, c: it is freed when none of them needs it" in text, text)


def test_reflink__trees_and_what_is_told():
    with Site() as site:
        for i, name in enumerate(("run/a.nc", "run/sub/b.nc", "run/sub/c.nc")):
            make(site, name, 100 * i)
        stored = packs(site)
        done = run([CP, "--json", "--reflink=always", "-r", "esdm://run", "esdm://copy"])
        told = json.loads(done.stdout)
        expect(told["cloned"] == 3 and told["copied"] == 3 and told["failed"] == 0, done.stdout)
        expect(all(one["cloned"] and one["bytes"] == 48000 for one in told["copies"]), done.stdout)
        expect(packs(site) == stored, "data were copied")
        for name in ("a.nc", "sub/b.nc", "sub/c.nc"):
            expect(dump(f"run/{name}") == dump(f"copy/{name}"), f"{name} differs")
        done = run([CP, "--reflink=auto", "-r", "-s", "esdm://run", "esdm://copy"])
        expect("3 skipped" in done.stdout, done.stdout)
        done = run([CP, "--reflink", "-r", "esdm://run", "esdm://copy"], check=False)
        expect_error(done, "exists", "--force")
        done = run([CP, "--reflink", "-r", "-f", "esdm://run", "esdm://copy"])
        expect("3 cloned, 0 failed" in done.stdout, done.stdout)


def test_reflink__what_a_query_finds():
    with Site() as site:
        for name, kind in (("exp/a.nc", "x"), ("exp/b.nc", "y"), ("other/c.nc", "x")):
            make(site, name, len(name))
            client(["ncatted", "-O", "-h", "-a", f"kind,global,o,c,{kind}", f"esdm://{name}"])
        stored = packs(site)
        told = json.loads(run([CP, "--json", "--reflink", "esdm://?kind=x", "esdm://try/"]).stdout)
        expect(told["cloned"] == 2 and packs(site) == stored, f"{told}")
        expect(run([tool("esdm-ls"), "try"]).stdout == "try/exp/a.nc\ntry/other/c.nc\n", "other names")
        expect(dump("try/other/c.nc") == dump("other/c.nc"), "the clone differs")
        expect_error(run([CP, "--reflink", "esdm://?kind=x", "esdm://one.nc"], check=False), "FOLDER/")
        expect(run([CP, "--reflink", "esdm://?kind=none", "esdm://try/"], check=False).returncode != 0, "")


def test_reflink__auto_copies_what_cannot_be_cloned():
    with Site() as site:
        make(site, "a.nc", 0)
        stored = packs(site)
        expect_error(run([CP, "--reflink", "esdm://a.nc", site.file("a.nc")], check=False),
                     "--reflink=auto")
        expect_error(run([CP, "--reflink=often", "esdm://a.nc", "esdm://b.nc"], check=False),
                     "always, auto or never")
        expect_error(run([CP, "--reflink", "--accuracy", "v: lossless_up_to=1", "esdm://a.nc",
                          "esdm://b.nc"], check=False), "--accuracy")
        run([CP, "--reflink=auto", "esdm://a.nc", site.file("a.nc")])
        run([CP, "--reflink=auto", site.file("a.nc"), "esdm://from_file.nc"])
        expect(len(packs(site)) > len(stored), "nothing was copied")
        done = run([CP, "--json", "--reflink=auto", "esdm://?@type=int", "esdm://query.nc"],
                   check=False)
        stored = packs(site)
        done = run([CP, "--json", "--reflink=auto", "esdm://a.nc", "esdm://b.nc"])
        expect(json.loads(done.stdout)["copies"][0]["cloned"] is True, done.stdout)
        expect(packs(site) == stored, "data were copied")
        run([CP, "--reflink=never", "esdm://a.nc", "esdm://c.nc"])
        expect(len(packs(site)) > len(stored), "nothing was copied")


def test_reflink__back_to_an_earlier_snapshot():
    with Site(history=5) as site:
        make(site, "a.nc", 0)
        before = dump("a.nc")
        change("a.nc", 0, 5)
        stored = packs(site)
        expect(dump("a.nc") != before, "nothing was changed")
        run([CP, "--reflink", "-f", "esdm://a.nc@-1", "esdm://a.nc"])
        expect(dump("a.nc") == before and packs(site) == stored, "it is not what it was")
        run([GC, "--yes", "--age=0", "--replaced-now"])
        expect(dump("a.nc") == before, "it went with what it was")
        run([FSCK, "--data"])


main(
    test_reflink__who_shares_is_told,
    test_reflink__clones_are_changed_by_programs,
    test_reflink__trees_and_what_is_told,
    test_reflink__what_a_query_finds,
    test_reflink__auto_copies_what_cannot_be_cloned,
    test_reflink__back_to_an_earlier_snapshot,
)
