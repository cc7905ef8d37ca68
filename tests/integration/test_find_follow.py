#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Saved virtual containers are found by the times, boxes and values of members that were committed, renamed or
brought back since anybody opened them."""

import subprocess

from esdmtest import Site, client, expect, main, run, tool
from postgres import Server, skip_without_postgres

FIND = tool("esdm-find")

# A year of monthly numbers at some longitudes: name, year, least value, western and eastern end.
MAKE = """
import sys, netCDF4
name, year, low, west, east = sys.argv[1], *map(float, sys.argv[2:6])
with netCDF4.Dataset(name, "w") as d:
    d.series, d.model = sys.argv[6], "M"
    d.createDimension("time", None)
    d.createDimension("lon", 2)
    t = d.createVariable("time", "f8", ("time",))
    t.units, t.standard_name = "days since 1990-01-01", "time"
    x = d.createVariable("lon", "f8", ("lon",))
    x.units, x[:] = "degrees_east", [west, east]
    y = d.createVariable("lat", "f8", ())
    y.units, y[...] = "degrees_north", 50
    v = d.createVariable("tas", "f4", ("time", "lon"))
    v.units, v.coordinates = "K", "lat"
    t[:] = [(year - 1990) * 365.25 + 15 + 30 * m for m in range(12)]
    v[:] = [[low + m, low + m] for m in range(12)]
"""

# Commits one more month, and ends as one that is killed.
KILLED = """
import os, sys, netCDF4
d = netCDF4.Dataset(sys.argv[1], "a")
d["time"][12] = float(sys.argv[2])
d["tas"][12] = [600, 600]
d.sync()
os._exit(0)
"""


def make(name, year, low=250, west=10, east=20, series="a"):
    client(["/usr/bin/python3", "-c", MAKE, name, str(year), str(low), str(west), str(east), series])


def found(question):
    return sorted(line.removeprefix("esdm://") for line in
                  run([FIND, "-c", question], check=False).stdout.split())


def saved(question):
    return [name for name in found(question) if name.startswith("all/")]


def follows():
    make("esdm://in/1990.nc", 1990)
    make("esdm://in/1991.nc", 1991)
    make("esdm://other/1990.nc", 1990, series="b")
    for name, query in (("a", "?series=a"), ("words", "?series ~ \"a*\" and model = M"), ("b", "?series=b")):
        run([tool("esdm-ln"), f"esdm://{query}", f"esdm://all/{name}"])
    run([tool("esdm-ln"), "--pin", "esdm://?series=a", "all/pinned"])
    expect(saved("time overlaps 1991-06") == ["all/a", "all/pinned", "all/words"], saved("time overlaps 1991-06"))
    expect(saved("time overlaps 2020") == [], "nothing is of 2020")
    # A new member, from a program that knows nothing of them.
    make("esdm://in/2020.nc", 2020, low=300)
    expect(saved("time overlaps 2020") == ["all/a", "all/words"], saved("time overlaps 2020"))
    expect(saved("time overlaps 2020 and max(tas) > 310 K") == ["all/a", "all/words"], "values")
    expect(saved("max(tas) > 312 K") == [], "no more than the members have")
    # One that goes around the other way, and that reaches further.
    expect(saved("box overlaps 170,40,175,60") == [], "nothing is there")
    make("esdm://in/2021.nc", 2021, west=172, east=178)
    expect(saved("box overlaps 170,40,175,60") == ["all/a", "all/words"], saved("box overlaps 170,40,175,60"))
    expect("all/b" not in found("time overlaps 2021"), "others do not follow")
    # A member grows, and its program is killed behind the commit.
    client(["/usr/bin/python3", "-c", KILLED, "esdm://in/2021.nc", str(33.5 * 365.25)])
    expect(saved("time overlaps 2023-07") == ["all/a", "all/words"], saved("time overlaps 2023-07"))
    expect(saved("max(tas) > 599") == ["all/a", "all/words"], "values that were appended")
    # What gets an attribute by which it is found.
    make("esdm://in/2030.nc", 2030, series="c")
    expect(saved("time overlaps 2030") == [], "of another series")
    run([tool("esdm-attr"), "--set", "series=a", "esdm://in/2030.nc"])
    expect(saved("time overlaps 2030") == ["all/a", "all/words"], saved("time overlaps 2030"))
    # What is brought back, and what gets a name.
    make("esdm://box/first.nc", 1990, series="d")
    run([tool("esdm-ln"), "esdm://?series=d&within=box", "all/folder"])
    make("esdm://away/2040.nc", 2040, series="d")
    expect(saved("time overlaps 2040") == [], "it is elsewhere")
    run([tool("esdm-mv"), "esdm://away/2040.nc", "esdm://box/2040.nc"])
    expect(saved("time overlaps 2040") == ["all/folder"], saved("time overlaps 2040"))
    # Opening makes ranges exact.
    run([tool("esdm-rm"), "esdm://box/2040.nc"])
    client(["ncdump", "-h", "esdm://all/folder"])
    expect(saved("time overlaps 2040") == [], "it was removed")
    run([tool("esdm-restore"), "box/2040.nc"])
    expect(saved("time overlaps 2040") == ["all/folder"], "it was brought back")
    # What they were told is kept: nobody is left to tell.
    expect(found("time overlaps 2020 and series = a") == ["all/a", "all/words", "in/2020.nc"], "kept")


def test_saved_virtual_containers_follow_commits():
    with Site():
        follows()


def test_saved_virtual_containers_follow_commits_on_a_server():
    skip_without_postgres()
    with Server() as server:
        store = {"plugin": "postgres", "host": "127.0.0.1", "port": server.port, "database": "postgres",
                 "user": "esdm"}
        with Site(metadata=store):
            follows()


def test_what_some_members_do_not_tell_stays_unknown():
    """Values of files that are referred to are not known; those of the whole are not either."""
    with Site() as site:
        make("esdm://in/1990.nc", 1990)
        run([tool("esdm-ln"), "esdm://?series=a", "esdm://all/a"])
        expect(saved("max(tas) > 260") == ["all/a"], "all members tell")
        make(str(site.file("1991.nc")), 1991)
        run([tool("esdm-ref"), "-q", site.file("1991.nc"), "esdm://ref"])
        expect(saved("max(tas) > 260") == [], "one does not tell")
        expect(saved("time overlaps 1991-07") == ["all/a"], "its times are known")
        make("esdm://in/1992.nc", 1992, low=400)
        expect(saved("max(tas) > 260") == [], "one still does not tell")
        expect(saved("time overlaps 1992-07") == ["all/a"], "times go on")


def test_nothing_is_marked_where_nothing_is_saved():
    with Site() as site:
        make("esdm://in/1990.nc", 1990)
        catalogue = next(site.folder.rglob("catalogue.sqlite"))
        def marks(value):
            return subprocess.run(["sqlite3", str(catalogue), "SELECT count(*) FROM attribute WHERE name = '@fresh' "
                                   f"AND value = {value}"], check=True, capture_output=True, text=True).stdout.strip()
        expect(marks(1) == "0" and marks(0) == "0", "no saved query, no mark")
        run([tool("esdm-ln"), "esdm://?series=a", "esdm://all/a"])
        make("esdm://in/1991.nc", 1991)
        expect(marks(1) == "0" and marks(0) != "0", "the program that commits widens at its end")


if __name__ == "__main__":
    main(*[f for n, f in sorted(globals().items()) if n.startswith("test_")])
