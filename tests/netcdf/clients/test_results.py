#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""What was computed from a query is no part of it: the same numbers, or an error that says how to leave it out."""

import pathlib
import re

import netCDF4
import numpy

from esdmtest import Site, by_size, client, expect, expect_error, main, need_data, need_program, run, tool

SERIES = "INM/INM-CM5-0/historical/r1i1p1f1/Amon/ta/gr1"
QUERY = "esdm://?source_id=INM-CM5-0&variable_id=ta&table_id=Amon"
VIEW = f"esdm://cmip6:/CMIP6/CMIP/{SERIES}"


def refer(site):
    source = pathlib.Path(need_data("cmip6")) / "CMIP6" / "CMIP" / SERIES
    files = sorted(source.rglob("*.nc"))
    run([tool("esdm-ref"), "-q", *files, "esdm://cmip6/"])
    return len(files)


def mean(url):
    return client(["cdo", "-s", "outputf,%.5f,1", "-timmean", "-fldmean", "-sellevidx,1", url]).stdout, \
        client(["cdo", "-s", "ntime", url]).stdout.split()


def suggested(url, text):
    """The query that the message proposes."""
    said = re.search(r"; (add|open) (\S+) to leave '", text)
    expect(said is not None, text)
    return url + said.group(2) if said.group(1) == "add" else said.group(2)


def check_operator(site, url, operator, target, *words):
    before = mean(url)
    expect(before[1] == ["780"], before)
    client(["cdo", "-s", f"-{operator}", url, target])
    done = client(["cdo", "-s", "ntime", url], check=False)
    expect_error(done, *words)
    expect_error(done, "history says that it was made of the others")
    better = suggested(url, done.stderr)
    expect(mean(better) == before, f"{operator}: {better}")
    run([tool("esdm-rm"), target])
    expect(mean(url) == before, operator)


def test_means_of_a_query_and_of_a_view_are_no_part_of_it():
    need_program("cdo")
    with Site() as site:
        refer(site)
        names = ("esdm://w/y.nc", "esdm://a.nc")  # behind and before the others
        for number, url in enumerate((QUERY, VIEW)):
            for target in names[number:by_size(number + 1, 2, 2)]:
                check_operator(site, url, "yearmean", target, "frequency", "'mon'", "'year'", "&frequency=mon")
                check_operator(site, url, "timmean", target, "overlap", "1950-01-01 to 2015-01-01", "&without=")
                check_operator(site, url, "fldmean", target, "differ along 'time' and along 'l", " values)", "&without=")
                check_operator(site, url, "ymonmean", target, "overlap", "&without=")
                check_operator(site, url, "mulc,2", target, "other values of 'ta'", "&without=")


def test_a_cut_of_a_query_is_one_with_it():
    need_program("cdo")
    with Site() as site:
        refer(site)
        before = mean(QUERY)
        client(["cdo", "-s", "-seltimestep,1/12", QUERY, "esdm://w/y1950.nc"])
        expect(mean(QUERY) == before, mean(QUERY))


CALENDARS = """
import netCDF4
for name, calendar, history in (("one", "julian", "made by a model"), ("w/m", "standard", "cdo -ymonsub\\nmade by a model")):
    with netCDF4.Dataset(f"esdm://{name}.nc", "w") as d:
        d.setncatts({"source_id": "x", "history": history})
        d.createDimension("time", None)
        t = d.createVariable("time", "f8", ("time",))
        t.setncatts({"units": "days since 2000-01-01", "calendar": calendar})
        t[:] = [0, 1]
        d.createVariable("ta", "f4", ("time",))[:] = [1, 2]
"""


def test_results_in_another_calendar_are_no_part_of_it():
    """cdo calls julian times standard ones."""
    with Site():
        client(["/usr/bin/python3", "-c", CALENDARS])
        done = client(["ncdump", "esdm://?source_id=x"], check=False)
        expect_error(done, "calendar julian", "standard", "add &without=w/m.nc", "made of the others")
        done = client(["ncdump", "-v", "ta", "esdm://?source_id=x&without=w/m.nc"])
        expect("ta = 1, 2" in done.stdout, done.stdout)


def test_means_of_one_file_are_no_part_of_it():
    need_program("cdo")
    with Site() as site:
        source = pathlib.Path(need_data("cmip6")) / "CMIP6" / "CMIP" / SERIES
        run([tool("esdm-cp"), sorted(source.rglob("*.nc"))[0], "esdm://one.nc"])
        before = mean(QUERY)
        for operator in ("yearmean", "timmean", "fldmean", "ymonmean", "zonmean", "mermean"):
            client(["cdo", "-s", f"-{operator}", QUERY, "esdm://w/m.nc"])
            done = client(["cdo", "-s", "ntime", QUERY], check=False)
            expect_error(done, "one.nc", "w/m.nc", "made of the others")
            expect(mean(suggested(QUERY, done.stderr)) == before, operator)
            expect(mean(f"{QUERY}&within=one.nc") == before, operator)
            run([tool("esdm-rm"), "esdm://w/m.nc"])


def test_within_a_folder__what_was_computed_elsewhere_is_left_out():
    need_program("cdo")
    with Site() as site:
        for number in range(3):
            write(site.file("in.nc"), **steps(5 * number, 5 * number + 5))
            run([tool("esdm-cp"), site.file("in.nc"), f"esdm://archive/tas/{number}.nc"])
        for operator in ("yearmean", "fldmean", "addc,1"):
            client(["cdo", "-s", f"-{operator}", "esdm://archive/tas/0.nc", f"esdm://work/{operator[:4]}.nc"])
        query = "esdm://?kind=x&within="
        expect(client(["cdo", "-s", "ntime", "esdm://?kind=x"], check=False).returncode != 0, "all of them join")
        for where, count in (("archive", 15), ("esdm://archive/", 15), ("archive/tas/[01].nc", 10),
                             ("archive&without=*/1.nc", 10), ("archive/tas/0.nc&within=archive/tas/2.nc", 10)):
            told = client(["cdo", "-s", "ntime", query + where]).stdout.split()
            expect(told == [str(count)], f"{where}: {told}")
        for where in ("arch", "none"):
            expect_error(client(["cdo", "-s", "ntime", query + where], check=False), "no container has what",
                         f" elsewhere have it, none within '{where}'")
        # What the messages say: below one folder alone.
        done = client(["cdo", "-s", "ntime", "esdm://?kind=x"], check=False)
        expect_error(done, "; &within=archive takes only what lies there")
        done = client(["cdo", "-s", "ntime", "esdm://archive?kind=x"], check=False)
        expect_error(done, "esdm://?ATTRIBUTE=VALUE&within=archive")
        expect_error(run([tool("esdm-stat"), query], check=False), "'within' needs the name")


# ---- without a history --------------------------------------------------------------------------

def write(path, days, bounds=None, methods=None, frequency=None, lats=(10., 20., 30.), values=1.):
    with netCDF4.Dataset(path, "w") as d:
        d.kind = "x"
        if frequency:
            d.frequency = frequency
        d.createDimension("time", None)
        d.createDimension("lat", len(lats))
        d.createDimension("bnds", 2)
        time = d.createVariable("time", "f8", ("time",))
        time.units, time.calendar = "days since 2000-01-01", "noleap"
        time[:] = days
        d.createVariable("lat", "f8", ("lat",))[:] = lats
        if bounds is not None:
            time.bounds = "time_bnds"
            d.createVariable("time_bnds", "f8", ("time", "bnds"))[:] = bounds
        tas = d.createVariable("tas", "f4", ("time", "lat"))
        tas[:] = numpy.full((len(days), len(lats)), values)
        if methods:
            tas.cell_methods = methods


def steps(first, last):
    """Daily means."""
    return {"days": [d + .5 for d in range(first, last)], "bounds": [[d, d + 1] for d in range(first, last)]}


def of_two(one, other, *words):
    """How many steps both have; or what the error says."""
    with Site() as site:
        for number, how in enumerate((one, other)):
            write(site.file(f"{number}.nc"), **how)
            run([tool("esdm-cp"), site.file(f"{number}.nc"), f"esdm://in/{number}.nc"])
        done = client(["ncdump", "-v", "time", "esdm://?kind=x"], check=False)
        if not words:
            expect(done.returncode == 0, done.stderr)
            return int(re.search(r"\((\d+) currently\)", done.stdout).group(1))
        expect_error(done, "in/0.nc", "in/1.nc", *words)
        expect("history" not in done.stderr, done.stderr)
        better = suggested("esdm://?kind=x", done.stderr)
        expect("UNLIMITED" in client(["ncdump", "-h", better]).stdout, better)
        return 0


def test_cells_that_touch_or_are_equal_join():
    expect(of_two(steps(0, 5), steps(5, 8)) == 8, "touch")
    expect(of_two(steps(0, 5), steps(3, 8)) == 8, "equal steps")
    expect(of_two({"days": [0, 1, 2]}, {"days": [.5, 1.5]}) == 5, "points between points")
    expect(of_two(steps(0, 5), {"days": [5, 6]}) == 7, "points at the end of cells")
    expect(of_two(steps(0, 5), {"days": [3.5, 4.5, 5.5]}) == 6, "the same steps without bounds")
    running = [{"days": list(range(a, b)), "bounds": [[d - 5, d + 5] for d in range(a, b)]} for a, b in ((0, 4), (4, 9))]
    expect(of_two(*running) == 9, "running means")
    since = [{"days": [d], "bounds": [[0, d]]} for d in (1, 2)]
    expect(of_two(*since) == 2, "sums from one beginning on")


def test_cells_that_lie_over_each_other_do_not_join():
    of_two(steps(0, 10), {"days": [5], "bounds": [[0, 10]]}, "overlap", "2000-01-01 to 2000-01-11", "&without=in/1.nc")
    of_two({"days": [5], "bounds": [[0, 10]]}, steps(0, 10), "overlap", "2000-01-01 to 2000-01-11", "&without=in/1.nc")
    of_two(steps(0, 10), {"days": [4.75]}, "overlap", "2000-01-05T18:00:00", "&without=in/1.nc")
    of_two(steps(0, 10), {"days": [4.5], "bounds": [[3, 6]]}, "overlap", "2000-01-04 to 2000-01-07")


def test_what_cells_are_must_be_the_same():
    day, more = steps(0, 5), steps(5, 8)
    of_two({**day, "methods": "time: mean"}, {**more, "methods": "time: maximum"}, "cell_methods", "&without=in/1.nc")
    of_two({**day, "frequency": "day"}, {**more, "frequency": "mon"}, "frequency", "&frequency=day")
    expect(of_two({**day, "frequency": "day"}, more) == 8, "one says nothing of its frequency")
    expect(of_two({**day, "methods": "area: mean time: mean (interval: 1 h)"},
                  {**more, "methods": " time:  mean (interval: 1 h) area: mean"}) == 8, "other order")
    expect(of_two({**day, "methods": "time: mean"}, more) == 8, "one says nothing, both have cells")
    of_two({**day, "methods": "time: mean"}, {"days": [6, 7]}, "cell_methods")


def test_what_is_left_out_is_named_or_matches():
    with Site() as site:
        for number in range(3):
            write(site.file(f"{number}.nc"), **steps(number, number + 1))
            run([tool("esdm-cp"), site.file(f"{number}.nc"), f"esdm://in/{number}.nc"])
        for without, left in (("", 3), ("&without=in/1.nc", 2), ("&without=esdm://in/1.nc", 2),
                              ("&without=in/1.nc&without=in/2.nc", 1), ("&without=in/[12].nc", 1), ("&without=x*", 3)):
            text = client(["ncdump", "-h", f"esdm://?kind=x{without}"]).stdout
            expect(f"({left} currently)" in text, f"{without}: {text}")
        expect_error(client(["ncdump", "-h", "esdm://?kind=x&without=*"], check=False), "no container has")
        expect_error(client(["ncdump", "-h", "esdm://?kind=x&without="], check=False), "needs the name of a container")


main(test_means_of_one_file_are_no_part_of_it, test_within_a_folder__what_was_computed_elsewhere_is_left_out,
     test_a_cut_of_a_query_is_one_with_it, test_cells_that_touch_or_are_equal_join,
     test_cells_that_lie_over_each_other_do_not_join, test_what_cells_are_must_be_the_same,
     test_results_in_another_calendar_are_no_part_of_it, test_what_is_left_out_is_named_or_matches,
     test_means_of_a_query_and_of_a_view_are_no_part_of_it)
