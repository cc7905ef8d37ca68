#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""A series as archives have them: files that differ in all that may differ.

    archive_files.py make FOLDER COUNT [others]   one file for each month, the last one shorter
    archive_files.py check FOLDER URL             URL has what numpy and cftime join of the files

others: some are GRIB files and Zarr stores; the netCDF files that these were made of lie in FOLDER.made.
"""
import os
import pathlib
import subprocess
import sys

import cftime
import netCDF4
import numpy

DAYS = 3
LATS = numpy.linspace(-80, 80, 9)
LONS = numpy.arange(0, 360, 20.)
UNITS = ("days since 1850-01-01", "hours since 1900-01-01 00:00:00", "days since 1850-1-1 00:00:00",
         "minutes since 1990-01-01 06:00:00 +06:00", "seconds since 1970-01-01T00:00:00Z")
CALENDARS = ("standard", "gregorian", "Gregorian", "proleptic_gregorian")
CHUNKS = ((1, 9, 18), (3, 4, 5), (2, 9, 6))
CODECS = (dict(zlib=True, shuffle=True), dict(zlib=True, shuffle=False, complevel=1), dict(),
          dict(zlib=True, fletcher32=True), dict(fletcher32=True))


def values(month, days):
    """Multiples of 1/8, which all packings of the series hold."""
    rng = numpy.random.default_rng(month)
    v = rng.integers(2000, 2800, (days, len(LATS), len(LONS))) / 8.
    hole = rng.random(v.shape) < .01
    return numpy.where(hole, numpy.nan, v)


def write(path, k, count):
    """Month k from 1999-11 on: two leap years lie in 60 of them."""
    year, month = 1999 + (k + 10) // 12, (k + 10) % 12 + 1
    days = 1 if k == count - 1 else DAYS
    first = 27 if month == 2 else 2  # up to the 29th of February, or the 1st of March
    noon = cftime.date2num(cftime.DatetimeGregorian(year, month, first, 12), UNITS[0], "standard")
    dates = cftime.num2date(noon + numpy.arange(days), UNITS[0], "standard")
    form = ("NETCDF4", "NETCDF4", "NETCDF3_CLASSIC", "NETCDF4_CLASSIC", "NETCDF3_64BIT_OFFSET")[k % 5]
    classic = form.startswith("NETCDF3")
    units, calendar = UNITS[k % len(UNITS)], CALENDARS[k % len(CALENDARS)]
    with netCDF4.Dataset(path, "w", format=form) as d:
        texts = [("series", "dirty"), ("source_id", "X"), ("tracking_id", f"id-{k}"), ("history", f"made {k}")]
        for name, text in texts[::1 if k % 2 else -1]:
            d.setncattr(name, text)
        d.createDimension("lat", len(LATS))
        d.createDimension("time", None if k % 3 else days)
        d.createDimension("lon", len(LONS))
        t = d.createVariable("time", "f8" if k % 7 else "f4", ("time",))
        t.standard_name = "time"
        if k % 7 == 0:
            units = f"days since {year}-{month:02}-01"
        for name, text in [("units", units), ("calendar", calendar)][::1 if k % 2 else -1]:
            t.setncattr(name, text)
        for name, axis, unit in (("lat", LATS, "degrees_north"), ("lon", LONS, "degrees_east")):
            x = d.createVariable(name, "f8" if k % 4 else "f4", (name,))
            x.units = unit
            x.standard_name = {"lat": "latitude", "lon": "longitude"}[name]
            x[:] = axis[::-1] if name == "lat" and k % 6 == 5 else axis
        t[:] = cftime.date2num(dates, units, "standard" if calendar != "proleptic_gregorian" else calendar)
        scale, offset = ((.125, 300.), (.125, 250.), (.0625, 300.))[k % 3]
        how = {} if classic else dict(CODECS[k % len(CODECS)], chunksizes=tuple(
            min(c, n) for c, n in zip(CHUNKS[k % 3], (days, len(LATS), len(LONS)))))
        packed = k % 4 != 1
        v = d.createVariable("skt", "i2" if packed else "f4", ("time", "lat", "lon"),
                             fill_value=(-32768, -9999)[k % 2] if packed else 1e20, **how)
        v.set_auto_maskandscale(False)
        if packed:
            v.add_offset, v.scale_factor = offset, scale
        v.units = "K"
        raw = values(k, days)
        if k % 6 == 5:
            raw = raw[:, ::-1]
        stored = numpy.round((raw - offset) / scale) if packed else raw
        v[:] = numpy.where(numpy.isnan(raw), v._FillValue, stored)


def replace(path, k):
    """A GRIB file, or a Zarr store, in place of some of the files."""
    if k % 25 not in (7, 11, 18):
        return
    made = path.parent.with_name(path.parent.name + ".made")
    made.mkdir(exist_ok=True)
    path = path.rename(made / path.name)
    plain = {n: v for n, v in os.environ.items() if n != "ESDM_CONFIG"}
    target = pathlib.Path(sys.argv[2]).resolve() / path.stem
    if k % 25 == 18:
        command = ["nccopy", "-u", path, f"file://{target}.zarr#mode=zarr,file"]
    else: # skin temperature, of a table that both editions know
        edition = "grb1" if k % 25 == 7 else "grb2"
        command = ["cdo", "-s", "-f", edition, "-b", "24", "setparam," + ("235.128" if edition == "grb1" else "17.0.0"), path,
                   f"{target}.grb"]
    subprocess.run(command, check=True, env=plain)


def check(folder, url):
    folder = pathlib.Path(folder)
    files = sorted([*folder.glob("*.nc"), *folder.with_name(folder.name + ".made").glob("*.nc")], key=lambda f: f.name)
    wrong = []
    with netCDF4.Dataset(url) as d:
        t = d["time"]
        seen = [tuple(x.timetuple()[:6]) for x in cftime.num2date(t[:], t.units, t.calendar)]
        skt = numpy.ma.filled(d["skt"][:].astype("f8"), numpy.nan)
        lat = d["lat"][:]
    dates, parts = [], []
    for k, f in enumerate(files):
        with netCDF4.Dataset(f) as p:
            dates += [tuple(x.timetuple()[:6]) for x in
                      cftime.num2date(p["time"][:], p["time"].units, p["time"].calendar)]
            part = numpy.ma.filled(p["skt"][:].astype("f8"), numpy.nan)
            parts.append(part if p["lat"][0] < 0 else part[:, ::-1])
            if not numpy.array_equal(parts[-1], values(k, len(part)), equal_nan=True):
                wrong.append(f"the file {f} is not what was meant")
    if seen != dates:
        wrong.append(f"times: {seen[:8]} and {dates[:8]}")
    if not numpy.array_equal(skt, numpy.concatenate(parts), equal_nan=True):
        wrong.append("values")
    if not numpy.array_equal(lat, LATS):
        wrong.append(f"latitudes: {lat}")
    return wrong


if __name__ == "__main__":
    if sys.argv[1] == "make":
        for i in range(int(sys.argv[3])):
            file = pathlib.Path(sys.argv[2]) / f"tas_{i:04}.nc"
            write(file, i, int(sys.argv[3]))
            if "others" in sys.argv[4:]:
                replace(file, i)
        found = []
    else:
        found = check(sys.argv[2], sys.argv[3])
    print("\n".join(found))
    sys.exit(1 if found else 0)
