#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""GDAL and R, whose NetCDF drivers look at files by themselves: the same on containers as on files."""

import re

from esdmtest import Site, client, environment, expect, main, need_data, need_program, run, skip

R = """
library(ncdf4)
at <- commandArgs(TRUE)[1]
x <- ncdim_def("x", "m", 1:5)
time <- ncdim_def("time", "days since 2000-01-01", 1:3, unlim = TRUE)
a <- ncvar_def("a", "K", list(x, time), -99, prec = "float")
out <- nc_create(at, a)
ncvar_put(out, a, matrix(1:15, 5, 3))
ncatt_put(out, 0, "title", "from R")
nc_close(out)
out <- nc_open(at, write = TRUE)
ncvar_put(out, "a", c(9, NA, 9, 9, 9), start = c(1, 4), count = c(5, 1))
nc_close(out)
back <- nc_open(at)
print(ncvar_get(back, "a"))
print(ncvar_get(back, "time"))
print(ncatt_get(back, 0, "title")$value)
print(file.exists(at))
"""


def as_asc(path, out, env=None):
    command = ["gdal_translate", "-q", "-of", "AAIGrid", path, out]
    return (run(command, env=environment()) if env is None else client(command, env=env)) and out.read_text()


def test_gdal():
    need_program("gdal_translate", "gdalinfo")
    relief = need_data("fields") / "etopo5.nc"
    with Site() as site:
        small = ["-q", "-srcwin", "100", "50", "60", "40"]
        run(["gdal_translate", *small, "-of", "netCDF", relief, site.file("own.nc")])
        made = client(["gdal_translate", *small, "-of", "netCDF", relief, "esdm://gdal/relief.nc"])
        expect(made.stderr == "", made.stderr)
        wanted = as_asc(site.file("own.nc"), site.file("own.asc"))
        expect(as_asc("esdm://gdal/relief.nc", site.file("ours.asc"), {}) == wanted, "other values")
        told = re.search(r'"name": *"(\w+)"|(\w+)#', client(["gdalinfo", "-json", "esdm://gdal/relief.nc"]).stdout)
        expect(told is not None, "no description")
        variable = re.findall(r"^\t(?:short|int|float) (\w+)\(", run(["ncdump", "-h", site.file("own.nc")]).stdout, re.M)
        place = f'NETCDF:"esdm://gdal/relief.nc":{variable[0]}'
        expect(as_asc(place, site.file("part.asc"), {}) == wanted, "other values of a subdataset")
        done = client(["gdalinfo", "esdm://gdal/none.nc"], check=False)
        expect(done.returncode == 1 and "there is no container 'gdal/none.nc'" in done.stderr, done.stderr)


def test_r():
    need_program("Rscript")
    if run(["Rscript", "-e", "library(ncdf4)"], check=False).returncode:
        skip("R's ncdf4 is not installed")
    with Site() as site:
        site.file("try.R").write_text(R)
        on_file = run(["Rscript", site.file("try.R"), site.file("own.nc")])
        on_esdm = client(["Rscript", site.file("try.R"), "esdm://r/a.nc"])
        expect(on_file.stdout == on_esdm.stdout and "from R" in on_file.stdout, f"{on_file.stdout}{on_esdm.stdout}")


main(test_gdal, test_r)
