#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""What containers store, of which some share a part: esdm-ls and esdm-mkfs --check count that once. Compared
with sets of what esdm-stat tells of all fragments, on SQLite and PostgreSQL."""

import contextlib
import json

from esdmtest import Site, client, expect, main, run, tool
from postgres import Server, binaries

SCRIPT = """
import netCDF4, numpy, sys
def put(name, mode, seed, rows):
    with netCDF4.Dataset("esdm://" + name, mode) as d:
        if mode == "w":
            d.createDimension("t", None)
            d.createDimension("x", 1000)
            d.createVariable("v", "f8", ("t", "x"))
            d.createVariable("few", "i4", ("t",))[:] = [1, 2]
        for row in rows:
            d["v"][row] = numpy.random.default_rng(100 * seed + row).random(1000)
            d.sync()
"""


@contextlib.contextmanager
def sites():
    """Names and arguments of sites on each metadata store that is here."""
    with contextlib.ExitStack() as stack:
        found = [("sqlite", {})]
        if binaries():
            server = stack.enter_context(Server())
            found.append(("postgres", {"metadata": {
                "plugin": "postgres", "host": "127.0.0.1", "port": server.port, "database": "postgres",
                "user": "esdm"}}))
        yield found


def put(*calls):
    client(["/usr/bin/python3", "-c", SCRIPT + "\n".join(f"put(*{call!r})" for call in calls)])


def pieces(name, number):
    """Stored fragments of a container, and bytes of each; those in index pages are its own."""
    told = run([tool("esdm-stat"), "--json", "-f", name]).stdout
    seen = []
    json.loads(told, object_hook=lambda o: seen.append(o) if "position" in o else o)
    expect(seen, f"no fragments: {told}")
    return {(f["pack"], f["position"]) if f["pack"] else (number, i): f["stored_bytes"]
            for i, f in enumerate(seen)}


def sums(groups):
    """Bytes and shared bytes of each group of containers, and of all together."""
    names = [name for group in groups for name in group]
    of = {name: pieces(name, number) for number, name in enumerate(names)}
    sets = [{key: size for name in group for key, size in of[name].items()} for group in groups]
    every = {key: size for one in of.values() for key, size in one.items()}

    def shared(one, others):
        return sum(size for key, size in one.items() if sum(key in other for other in others) > 1)
    return [(sum(one.values()), shared(one, sets)) for one in sets], \
        (sum(every.values()), shared(every, list(of.values())))


def listed(*options):
    told = json.loads(run([tool("esdm-ls"), "--json", *options]).stdout)
    rows = {one["name"]: (one["stored_bytes"], one["shared_bytes"]) for one in told["containers"]}
    return rows, (told["total"]["stored_bytes"], told["total"]["shared_bytes"])


def check(names):
    rows, total = listed()
    expect(sorted(rows) == sorted(names), f"{sorted(rows)}")
    each, wanted = sums([[name] for name in names])
    expect(rows == dict(zip(names, each)), f"rows\n{rows}\nnot\n{dict(zip(names, each))}")
    expect(total == wanted, f"total {total}, not {wanted}")
    rows, total = listed("--depth", "1")
    folders = {}
    for name in names:
        folders.setdefault(name.split("/")[0] + "/" if "/" in name else name, []).append(name)
    each, _ = sums(list(folders.values()))
    expect(rows == dict(zip(folders, each)), f"folders\n{rows}\nnot\n{dict(zip(folders, each))}")
    expect(total == wanted, f"total of folders {total}, not {wanted}")
    health = json.loads(run([tool("esdm-mkfs"), "--check", "--json"]).stdout)["health"]
    for who, told in (("all", health), ("user", health["users"][0]), ("age", health["ages"][0])):
        expect(told["stored_bytes"] == wanted[0], f"{who}: {told}, not {wanted}")
    expect(health["shared_bytes"] == wanted[1], f"{health}")
    expect(health["users"][0]["shared_bytes"] == 0, f"other users share nothing: {health['users']}")
    return total


def test_usage__what_is_shared_counts_once():
    with sites() as found:
        for store, arguments in found:
            with Site(history=1, **arguments):
                put(("run/a.nc", "w", 1, range(6)), ("b.nc", "w", 2, range(6)))
                first = check(["b.nc", "run/a.nc"])
                expect(first[1] == 0, f"nothing is shared: {first}")
                text = run([tool("esdm-ls"), "-l"]).stdout
                expect("shared" not in text and "several" not in text, text)

                run([tool("esdm-cp"), "--reflink", "esdm://run/a.nc", "esdm://run/c.nc"])
                cloned = check(["b.nc", "run/a.nc", "run/c.nc"])
                expect(first[0] < cloned[0] < first[0] + 1000, f"{cloned}: a clone takes nothing but index pages")
                put(("run/c.nc", "r+", 3, [2]), ("run/a.nc", "r+", 4, [4, 6]))  # other rows of both
                check(["b.nc", "run/a.nc", "run/c.nc"])

                put(("other/e.nc", "w", 2, range(6)))  # as b.nc
                apart = check(["b.nc", "other/e.nc", "run/a.nc", "run/c.nc"])
                run([tool("esdm-dedup")])
                once = check(["b.nc", "other/e.nc", "run/a.nc", "run/c.nc"])
                expect(once[0] < apart[0] - 5 * 8000 and once[1] > apart[1] + 5 * 8000, f"{apart} -> {once}")

                run([tool("esdm-branch"), "b.nc", "try"])
                put(("b.nc@branch:try", "r+", 5, [0]))
                check(["b.nc", "b.nc@branch:try", "other/e.nc", "run/a.nc", "run/c.nc"])
                text = run([tool("esdm-ls"), "-l"]).stdout
                expect(" shared " in text.splitlines()[0] and "for several containers" in text, text)

                # who made what is shared goes; what is left of it belongs to one alone
                run([tool("esdm-rm"), "--yes", "--for-good", "run/a.nc"])
                check(["b.nc", "b.nc@branch:try", "other/e.nc", "run/c.nc"])
                run([tool("esdm-rm"), "--yes", "b.nc@branch:try", "b.nc"])
                last = check(["other/e.nc", "run/c.nc"])
                expect(last[1] == 0, f"{last}")
                kept = json.loads(run([tool("esdm-ls"), "--json", "--replaced"]).stdout)
                alone = sum(one["stored_bytes"] for one in kept["replaced"])
                expect(len(kept["replaced"]) == 2 and kept["total"]["shared_bytes"] > 4 * 8000 and
                       kept["total"]["stored_bytes"] == alone - kept["total"]["shared_bytes"], f"{kept}")
                print(f"{store}: good")


main(test_usage__what_is_shared_counts_once)
