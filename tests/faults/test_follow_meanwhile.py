#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Saved virtual containers are found by what others commit while a program makes their ranges exact, or saves them."""

import os
import shlex

from esdmtest import BUILD, Site, client, client_environment, environment, expect, main, run, skip, tool

# A container of a year.
MAKE = """
import sys, netCDF4
with netCDF4.Dataset(sys.argv[1], "w") as d:
    d.series = "a"
    d.createDimension("time", None)
    t = d.createVariable("time", "f8", ("time",))
    t.units, t.standard_name = "days since 1990-01-01", "time"
    v = d.createVariable("tas", "f4", ("time",))
    v.units = "K"
    for m in range(12):
        t[m] = (int(sys.argv[2]) - 1990) * 365.25 + 15 + 30 * m
        v[m] = 250 + m
"""
OPEN = ["ncdump", "-h", "esdm://all/a"]
SAVE = [tool("esdm-ln"), "esdm://?series=a", "esdm://all/a"]


def make(year):
    client(["/usr/bin/python3", "-c", MAKE, f"esdm://in/{year}.nc", year])


def found(year, env=None):
    lines = run([tool("esdm-find"), "-c", f"time overlaps {year}"], check=False, env=env).stdout.split()
    return sorted(line.removeprefix("esdm://") for line in lines)


def meanwhile(site, calls, year):
    """For a program in whose middle another one makes a container: before it stores ranges."""
    script = site.file(f"{year}.py")
    script.write_text(MAKE)
    words = [tool("esdm-run"), "/usr/bin/python3", script, f"esdm://in/{year}.nc", year]
    other = " ".join(shlex.quote(str(w)) for w in words)
    return {"ESDM_FAULTY_META": f"put:{calls}+1:run", "ESDM_FAULTY_META_RUN": f"unset ESDM_FAULTY_META; {other}"}


def new_site():
    return Site(metadata={"plugin": "faulty", "directory": "metadata"})


def test_a_member_that_is_committed_while_ranges_are_made_exact():
    with new_site() as site:
        make(1990)
        run(SAVE)
        make(1991)
        client(OPEN, env=meanwhile(site, 1, 2020))
        expect(found(2020) == ["all/a", "in/2020.nc"], f"{found(2020)}")
        expect(found(1991) == ["all/a", "in/1991.nc"], f"{found(1991)}")
        expect(found(2030) == [], "ranges are no wider than the members")


def test_a_member_that_is_committed_while_the_query_is_saved():
    for again in (False, True):
        with new_site() as site:
            make(1990)
            if again:  # the store has a saved query: commits bear marks
                run([tool("esdm-ln"), "esdm://?series=a", "esdm://all/b"])
            run(SAVE, env=client_environment(meanwhile(site, 1, 2020)))
            expect("all/a" in found(2020) and "in/2020.nc" in found(2020), f"{again}: {found(2020)}")


def test_one_that_cannot_be_opened_keeps_no_other_waiting():
    with new_site() as site:
        make(1990)
        for name in ("0", "a"):
            run([tool("esdm-ln"), "esdm://?series=a", f"esdm://all/{name}"])
        script = site.file("killed.py")
        script.write_text(MAKE + "    d.sync()\n    import os; os._exit(0)\n")
        client(["/usr/bin/python3", script, "esdm://in/2020.nc", 2020])
        seen = found(2020, env=environment({"ESDM_FAULTY_META": "open:1+1:fail"}))
        expect(seen == ["all/a", "in/2020.nc"], f"the first one could not be opened: {seen}")
        expect(found(2020) == ["all/0", "all/a", "in/2020.nc"], f"the next question opens it: {found(2020)}")


if __name__ == "__main__":
    if not (BUILD / "plugins/esdm-meta-faulty.so").exists():
        skip("esdm-meta-faulty was not built")
    os.environ["ESDM_PLUGIN_PATH"] = str(BUILD / "plugins")
    main(test_a_member_that_is_committed_while_ranges_are_made_exact, test_a_member_that_is_committed_while_the_query_is_saved,
         test_one_that_cannot_be_opened_keeps_no_other_waiting)
