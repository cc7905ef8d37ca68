#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Operators of NCO and cdo between esdm:// paths leave what they leave between files; those that
change in place and those that print, too."""

import pathlib
import re

from esdmtest import (BUILD, Failed, Site, client, expect, main, need_data, need_program, run,
                      tool)

HERE = pathlib.Path(__file__).parent
COMPARE = BUILD / "tests/netcdf/clients/nc_compare"

IN_PLACE = [
    # A value of another length would move to the end of the list, in netCDF-4 files.
    ["ncatted", "-h", "-a", "units,ta,o,c,C", "-a", "new,global,c,d,1.5"],
    ["ncatted", "-h", "-a", "long_name,ta,d,,"],
    ["ncrename", "-h", "-v", "ta,temperature"],
    # The last one: in netCDF-4 files a renamed attribute moves to the end of the list.
    ["ncrename", "-h", "-a", "temperature@cell_methods,methods"],
    ["ncrename", "-h", "-d", "lat,latitude"],
]
PRINTING = [
    ["ncks", "--cdl", "-m"],
    ["ncks", "-H", "-v", "ta", "-d", "time,3"],
    ["ncdump", "-v", "ta"],
    ["cdo", "-s", "infon"],
    ["cdo", "-s", "sinfon"],
    ["cdo", "-s", "showname"],
    ["cdo", "-s", "ntime"],
    ["cdo", "-s", "showdate"],
    ["cdo", "-s", "griddes"],
]


def inputs():
    need_program("ncks", "cdo")
    need_data()
    series = sorted(need_data("cmip6").rglob("ta_Amon_*_gr1_*.nc"))
    by_folder = {}
    for file in series:
        by_folder.setdefault(file.parent, []).append(file)
    a, b = next(files for files in by_folder.values() if len(files) > 1)[:2]
    return {"A": a, "B": b, "F": need_data("fields", "era5_u.nc")}


def with_records(site, given):
    """The series with time as record dimension, which some operators need."""
    for key in ("A", "B"):
        path = site.file(f"{key}.nc")
        run(["ncks", "-h", "--mk_rec_dmn", "time", given[key], path])
        given[key] = path
    return given


def gridded(site):
    """A real field with the coordinates that it lacks."""
    path = site.file("G.nc")
    run(["ncks", "-h", "-O", "--mk_rec_dmn", "d0", "-d", "d0,0,3", need_data("fields", "cesm_TS.nc"),
         path])
    run(["ncrename", "-h", "-d", "d0,time", "-d", "d1,lat", "-d", "d2,lon", path])
    run(["ncap2", "-h", "-O", "-s",
         'lat[$lat]=array(-90.0,180.0/191,$lat);lat@units="degrees_north";'
         'lon[$lon]=array(0.0,1.25,$lon);lon@units="degrees_east";'
         'time[$time]=array(0.5,1.0,$time);time@units="days since 1990-01-01";', path, path])
    return path


def fill_in(line, places):
    return [places.get(word[1:], word) if word.startswith("$") else word for word in line.split()]


def upload(given):
    urls = {}
    for key, path in given.items():
        urls[key] = f"esdm://in/{path.name}"
        client(["nccopy", path, urls[key]])
    return urls


def download(url, path):
    client(["nccopy", url, path])


def test_operators__leave_the_same():
    failures = []
    with Site() as site:
        given = with_records(site, inputs())
        given["G"] = gridded(site)
        urls = upload(given)
        lines = (HERE / "operators.txt").read_text().splitlines()
        for number, line in enumerate(l for l in lines if l and not l.startswith("#")):
            expected, got = site.file(f"expected-{number}.nc"), site.file(f"got-{number}.nc")
            url = f"esdm://out/{number}.nc"
            try:
                run(fill_in(line, {**given, "O": expected}))
                client(fill_in(line, {**urls, "O": url}))
                download(url, got)
                run([COMPARE, expected, got])
            except Failed as problem:
                failures.append(f"{line}\n{problem}")
    expect(not failures, f"{len(failures)} operators:\n" + "\n".join(failures))


def test_in_place__changes_the_same():
    given = inputs()
    with Site() as site:
        file = site.file("file.nc")
        run(["nccopy", given["A"], file])
        client(["nccopy", given["A"], "esdm://in/place.nc"])
        for command in IN_PLACE:
            run([*command, file])
            client([*command, "esdm://in/place.nc"])
            download("esdm://in/place.nc", site.file("got.nc"))
            run([COMPARE, file, site.file("got.nc")])


def test_split__makes_the_same_files():
    """Programs that make the names of their outputs themselves."""
    given = inputs()
    with Site() as site:
        two = site.file("two.nc")
        run(["cdo", "-s", "merge", "-chname,ta,tb", given["A"], given["A"], two])
        client(["nccopy", two, "esdm://in/two.nc"])
        for operator in ("splitname", "splityear"):
            folder = site.file(operator)
            folder.mkdir()
            run(["cdo", "-s", "--no_history", operator, two, folder / "part_"])
            client(["cdo", "-s", "--no_history", operator, "esdm://in/two.nc",
                    f"esdm://{operator}/part_"])
            names = sorted(p.name for p in folder.iterdir())
            made = run([tool("esdm-ls"), operator]).stdout.split()
            expect(made == [f"{operator}/{name}" for name in names], f"{made}, not {names}")
            for name in names:
                download(f"esdm://{operator}/{name}", site.file("got.nc"))
                run([COMPARE, folder / name, site.file("got.nc")])


def test_kind_of_output__follows_the_input():
    """cdo looks at bytes; what it sees of a container and of a stub file is of the right kind."""
    given = inputs()
    with Site() as site:
        folder = site.file("routed")
        folder.mkdir()
        route = {"ESDM_NC_ROUTE": str(folder)}
        for kind in ("classic", "64-bit-offset", "cdf5", "nc4", "nc7"):
            plain, out = site.file(f"{kind}.nc"), site.file(f"out-{kind}.nc")
            run(["ncks", "-h", "-O", "-d", "time,0", given["A"], site.file("small.nc")])
            run(["nccopy", "-k", kind, site.file("small.nc"), plain])
            run(["cdo", "-s", "copy", plain, out])
            expected = run(["ncdump", "-k", out]).stdout
            client(["nccopy", "-k", kind, plain, f"esdm://kind/{kind}.nc"])
            client(["nccopy", "-k", kind, plain, folder / f"{kind}.nc"], env=route)
            for path in (f"esdm://kind/{kind}.nc", folder / f"{kind}.nc"):
                client(["cdo", "-s", "-O", "copy", path, out])
                got = run(["ncdump", "-k", out]).stdout
                expect(got == expected, f"cdo makes {got} of {path}, not {expected}")


def comparable(text, names):
    """Without paths, dates and run times."""
    for name in names:
        text = text.replace(str(name), "PATH")
    return re.sub(r"processed.*|took.*|\[[0-9.]+s.*|.*File format.*|^netcdf .*", "", text,
                  flags=re.M)


def test_printing__says_the_same():
    given = inputs()
    with Site():
        urls = upload({"A": given["A"]})
        for command in PRINTING:
            expected = comparable(run([*command, given["A"]]).stdout, [given["A"]])
            got = comparable(client([*command, urls["A"]]).stdout, [urls["A"]])
            expect(expected == got, f"{command}\nexpected:\n{expected[:1500]}\ngot:\n{got[:1500]}")


def test_history__is_kept_by_default():
    given = inputs()
    with Site():
        client(["ncks", "-4", given["A"], "esdm://h/nco.nc"])
        client(["cdo", "copy", given["A"], "esdm://h/cdo.nc"])
        for name in ("nco", "cdo"):
            text = client(["ncdump", "-h", f"esdm://h/{name}.nc"]).stdout
            scheme = "esdm:" if name == "cdo" else "esdm://"  # see shim/habits.c
            expect(f"{scheme}h/{name}.nc" in text, f"no history by {name}")


def test_overwrite__asks_or_replaces_as_with_files():
    given = inputs()
    with Site():
        client(["ncks", "-h", "-O", given["A"], "esdm://o/a.nc"])
        client(["ncks", "-h", "-O", "-v", "time", "-C", given["A"], "esdm://o/a.nc"])
        text = client(["ncdump", "-h", "esdm://o/a.nc"]).stdout
        expect("ta(" not in text, "ncks -O did not replace")
        client(["ncks", "-h", "-A", "-v", "lat", "-C", given["A"], "esdm://o/a.nc"])
        text = client(["ncdump", "-h", "esdm://o/a.nc"]).stdout
        expect("lat(lat)" in text and "time(time)" in text, "ncks -A did not append")
        done = client(["ncks", "-h", "esdm://o/nowhere.nc", "esdm://o/b.nc"], check=False)
        expect(done.returncode != 0, "ncks read what does not exist")
        done = client(["cdo", "-s", "copy", "esdm://o/nowhere.nc", "esdm://o/b.nc"], check=False)
        expect(done.returncode != 0, "cdo read what does not exist")


main(
    test_operators__leave_the_same,
    test_split__makes_the_same_files,
    test_in_place__changes_the_same,
    test_kind_of_output__follows_the_input,
    test_printing__says_the_same,
    test_history__is_kept_by_default,
    test_overwrite__asks_or_replaces_as_with_files,
)
