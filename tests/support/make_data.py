#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Data for tests where the real ones are not there: files that look like them.

    make_data.py FOLDER

makes FOLDER/cmip6, a tree of CMIP6 output as data nodes give it out (several models, calendars, grids,
series in many files, some fifty global attributes), and FOLDER/fields, one gridded field a file, each with
what makes fields hard: fill values over land, NaN below ground, decades of magnitude, many zeros. The same
bytes of data every time; a few seconds.
"""

import pathlib
import sys
import uuid

import cftime
import netCDF4
import numpy as np

SEED = 20240229


# ---- CMIP6 ---------------------------------------------------------------------------------------

class Model:
    """How one model writes its output."""

    def __init__(self, institution, source, grid, units, calendar, version, lat=2, lon=2, real="f8",
                 bounds=("time", "lat", "lon"), nominal="250 km"):
        self.institution, self.source, self.grid = institution, source, grid
        self.units, self.calendar, self.version = units, calendar, version
        self.lat, self.lon, self.real, self.bounds, self.nominal = lat, lon, real, bounds, nominal


DAYS_1850 = "days since 1850-01-01"
MODELS = {m.source: m for m in (
    Model("CSIRO-ARCCSS", "ACCESS-CM2", "gn", DAYS_1850, "proleptic_gregorian", "v20191108",
          bounds=("time", "plev", "lat", "lon")),
    Model("AWI", "AWI-CM-1-1-MR", "gn", DAYS_1850 + " 00:00:00", "proleptic_gregorian",
          "v20181218", lon=3, nominal="100 km"),
    Model("BCC", "BCC-CSM2-MR", "gn", "days since 1970-01-01", "365_day", "v20181126"),
    Model("CAMS", "CAMS-CSM1-0", "gn", "days since 1940-1-1 00:00", "365_day", "v20190708"),
    Model("CMCC", "CMCC-CM2-HR4", "gn", DAYS_1850, "365_day", "v20200904", lat=3),
    Model("CCCma", "CanESM5", "gn", DAYS_1850 + " 0:0:0.0", "365_day", "v20190429",
          nominal="500 km"),
    Model("E3SM-Project", "E3SM-1-1-ECA", "gr", DAYS_1850 + " 00:00:00", "365_day", "v20200624"),
    Model("EC-Earth-Consortium", "EC-Earth3", "gr", DAYS_1850 + " 00:00:00",
          "proleptic_gregorian", "v20200310", lat=3, lon=3, nominal="100 km"),
    Model("CAS", "FGOALS-f3-L", "gr", "days since 0001-01-01 00:00:00", "365_day", "v20190927"),
    Model("CCCR-IITM", "IITM-ESM", "gn", DAYS_1850 + " 00:00:00", "julian", "v20191226"),
    Model("INM", "INM-CM4-8", "gr1", "days since 1850-1-1", "365_day", "v20190605",
          nominal="100 km"),
    Model("INM", "INM-CM5-0", "gr1", "days since 1850-1-1", "365_day", "v20190610",
          nominal="100 km"),
    Model("IPSL", "IPSL-CM6A-LR", "gr", DAYS_1850 + " 00:00:00", "gregorian", "v20180803",
          real="f4", bounds=("time",)),
    Model("MOHC", "UKESM1-0-LL", "gn", DAYS_1850, "360_day", "v20190406"),
)}

# source, table, years of each file, files, first year
SERIES = [
    ("ACCESS-CM2", "Amon", 65, 1, 1950), ("AWI-CM-1-1-MR", "Amon", 1, 10, 1950),
    ("BCC-CSM2-MR", "Amon", 40, 2, 1930), ("BCC-CSM2-MR", "day", 3, 1, 1998),
    ("CAMS-CSM1-0", "Amon", 15, 3, 1940), ("CMCC-CM2-HR4", "Amon", 20, 2, 1950),
    ("CanESM5", "Amon", 65, 1, 1950), ("CanESM5", "day", 5, 1, 1990),
    ("E3SM-1-1-ECA", "Amon", 10, 3, 1950), ("EC-Earth3", "Amon", 1, 10, 1950),
    ("EC-Earth3", "day", 1, 2, 1990), ("FGOALS-f3-L", "Amon", 10, 3, 1950),
    ("IITM-ESM", "Amon", 5, 3, 1950), ("INM-CM4-8", "Amon", 10, 4, 1950),
    ("INM-CM4-8", "day", 5, 1, 1990), ("INM-CM5-0", "Amon", 10, 7, 1950),
    ("IPSL-CM6A-LR", "Amon", 65, 1, 1950), ("IPSL-CM6A-LR", "day", 10, 1, 1990),
    ("UKESM1-0-LL", "Amon", 15, 2, 1950),
]

LICENSE = ("CMIP6-like data made for tests by ESDM's generator. They are no output of {}. A real file has a "
           "text of this length here, with blanks, commas, and an address: "
           "https://pcmdi.llnl.gov/CMIP6/TermsOfUse, which programs have to carry along as it is.")


def global_attributes(model, table, path):
    """As CMOR and the data nodes write them: texts, integers, reals, also with odd names."""
    monthly = table == "Amon"
    attributes = {
        "DODS_EXTRA.Unlimited_Dimension": "time",
        "activity_id": "CMIP", "branch_method": "standard", "branch_time_in_child": 0.0,
        "branch_time_in_parent": float(len(model.source) * 365), "cmor_version": "3.4.0",
        "comment": "Air Temperature", "contact": "nobody@example.org",
        "creation_date": "2019-06-06T19:50:07Z", "data_specs_version": "01.00.29",
        "experiment": "all-forcing simulation of the recent past", "experiment_id": "historical",
        "external_variables": "areacella", "forcing_index": np.int32(1),
        "frequency": "mon" if monthly else "day",
        "further_info_url": f"https://furtherinfo.es-doc.org/CMIP6.{model.institution}.{model.source}"
                            ".historical.none.r1i1p1f1",
        "grid": "native" if model.grid == "gn" else "regular, 2x1.5", "grid_label": model.grid,
        "history": "2019-06-06T19:50:07Z ;rewrote data to be consistent with CMIP for variable ta "
                   f"found in table {table}.\n2019-06-07T08:00:00Z ;checked",
        "initialization_index": np.int32(1),
        "institution": f"Institute of {model.institution}, Something & Co., 12345 Somewhere",
        "institution_id": model.institution, "license": LICENSE.format(model.source),
        "mip_era": "CMIP6", "nominal_resolution": model.nominal, "original_name": "ta",
        "parent_activity_id": "CMIP", "parent_experiment_id": "piControl",
        "parent_mip_era": "CMIP6", "parent_source_id": model.source,
        "parent_time_units": model.units, "parent_variant_label": "r1i1p1f1",
        "physics_index": np.int32(1), "product": "model-output", "realization_index": np.int32(1),
        "realm": "atmos", "run_variant": "standard",
        "source": f"{model.source} (2016): \naerosol: none\natmos: made up\nocean: none",
        "source_id": model.source, "source_type": "AOGCM", "sub_experiment": "none",
        "sub_experiment_id": "none", "table_id": table,
        "table_info": "Creation Date:(20 February 2019) MD5:951084b632bd52c3f6224e495b1cb65e",
        "title": f"{model.source} output prepared for CMIP6",
        "tracking_id": "hdl:21.14100/" + str(uuid.uuid5(uuid.NAMESPACE_URL, path)),
        "variable_id": "ta", "variant_label": "r1i1p1f1", "Conventions": "CF-1.7"}
    if model.calendar == "gregorian":
        attributes["EXPID"] = "historical"
        attributes["dr2xml_md5sum"] = "f1e40c1fc5d8281f865f72fbf4e38f9d"
    return attributes


def dates(model, table, year, years):
    """Bounds of the steps: so many months or days and one more."""
    def date(y, m, d):
        return cftime.datetime(y, m, d, calendar=model.calendar)
    if table == "Amon":
        steps = [date(year + i // 12, i % 12 + 1, 1) for i in range(12 * years + 1)]
        return cftime.date2num(steps, model.units, model.calendar).astype(float)
    first, last = cftime.date2num([date(year, 1, 1), date(year + years, 1, 1)], model.units,
                                  model.calendar)
    return np.arange(first, last + 1).astype(float)


def temperatures(model, edges, shape):
    """A year's course, a trend and weather."""
    generator = np.random.default_rng([SEED, len(model.source), int(edges[0]) % 1000003])
    phase = 2 * np.pi * ((edges[:-1] % 365.25) / 365.25)
    level = np.array([285.0, 218.0]).reshape(1, 2, 1, 1)
    course = (6 * np.cos(phase)).reshape(-1, 1, 1, 1)
    place = np.linspace(-2, 2, shape[2]).reshape(1, 1, -1, 1) + np.linspace(
        -1, 1, shape[3]).reshape(1, 1, 1, -1)
    trend = (np.arange(shape[0]) / 1000).reshape(-1, 1, 1, 1)
    return (level + course + place + trend + generator.normal(0, 1, shape)).astype("f4")


def add(file, name, kind, dimensions, values, **attributes):
    """A variable as the data nodes have them: contiguous, with an attribute of their server."""
    v = file.createVariable(name, kind, dimensions, contiguous=True)
    v.setncatts(attributes)
    v[:] = values
    return v


def add_axis(file, model, name, values, bounds, **attributes):
    if name in model.bounds:
        attributes["bounds"] = f"{name}_bnds"
        add(file, f"{name}_bnds", "f8", (name, "bnds"), bounds)
    add(file, name, "f8" if name == "time" else model.real, (name,), values, **attributes)


def write_series(root, model, table, year, years):
    months = (f"{year:04d}01-{year + years - 1:04d}12" if table == "Amon"
              else f"{year:04d}0101-{year + years - 1:04d}1231")
    folder = (root / "CMIP6/CMIP" / model.institution / model.source / "historical/r1i1p1f1" / table /
              "ta" / model.grid / model.version)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"ta_{table}_{model.source}_historical_r1i1p1f1_{model.grid}_{months}.nc"
    edges = dates(model, table, year, years)
    with netCDF4.Dataset(path, "w", format="NETCDF4") as f:
        f.set_fill_off()
        for name, size in (("time", edges.size - 1), ("plev", 2), ("lat", model.lat),
                           ("lon", model.lon), ("bnds", 2)):
            f.createDimension(name, size)
        shape = (edges.size - 1, 2, model.lat, model.lon)
        add(f, "ta", "f4", ("time", "plev", "lat", "lon"), temperatures(model, edges, shape),
            standard_name="air_temperature", long_name="Air Temperature", units="K",
            comment="Air Temperature", cell_methods="time: mean")
        add_axis(f, model, "time", (edges[:-1] + edges[1:]) / 2,
                 np.stack([edges[:-1], edges[1:]], 1), axis="T", units=model.units,
                 calendar=model.calendar, standard_name="time", long_name="time")
        plev = np.array([85000.0, 20000.0])
        add_axis(f, model, "plev", plev, np.stack([plev * 1.1, plev * 0.9], 1), axis="Z", units="Pa",
                 positive="down", standard_name="air_pressure", long_name="pressure")
        for name, count, first, axis in (("lat", model.lat, 47.25, "Y"), ("lon", model.lon, 8.75, "X")):
            values = first + 1.5 * np.arange(count)
            long_name = {"lat": "latitude", "lon": "longitude"}[name]
            add_axis(f, model, name, values, np.stack([values - 0.75, values + 0.75], 1), axis=axis,
                     units="degrees_north" if axis == "Y" else "degrees_east",
                     standard_name=long_name, long_name=long_name.title())
        f.setncatts(global_attributes(model, table, str(path.relative_to(root))))


# ---- fields --------------------------------------------------------------------------------------

def waves(shape, waves_along, seed):
    """A smooth field, -1 ... 1: a sum of waves along the axes."""
    generator = np.random.default_rng([SEED, seed])
    total = np.zeros(shape)
    for strength, factor in ((1.0, 1), (0.5, 3), (0.25, 7)):
        wave = np.full(shape, strength)
        for axis, n in enumerate(shape):
            steps = np.linspace(0, 2 * np.pi * waves_along[axis] * factor, n)
            form = [1] * len(shape)
            form[axis] = n
            wave = wave * np.sin(steps + generator.uniform(0, 6)).reshape(form)
        total += wave
    return total / 1.75


def noise(shape, seed):
    return np.random.default_rng([SEED, 1000 + seed]).normal(0, 1, shape)


def land(shape, seed, part):
    """Where the lowest part of a smooth map is."""
    mask = waves(shape[-2:], (1, 2), seed)
    return np.broadcast_to(mask < np.quantile(mask, part), shape)


def with_fill(values, mask, fill):
    return np.where(mask, np.float32(fill), values.astype("f4"))


def fields():
    """name, units, long name, values, chunks, fill value"""
    shape = (100, 192, 288)
    ts = 288 + 25 * waves(shape, (2, 1, 1), 1) + 0.5 * noise(shape, 1)
    yield "cesm_TS", "K", "surface temperature, daily", ts, (50, 96, 144), None
    shape = (12, 192, 288)
    rate = 10 ** (-9 + 2.5 * waves(shape, (1, 2, 3), 2) - np.abs(noise(shape, 2)))
    yield ("cesm_PRECT", "m/s", "precipitation rate, daily, many decades",
           np.where(noise(shape, 3) > 2.5, -1e-23, rate), shape, None)
    shape = (12, 192, 160)
    mask = land(shape, 4, 0.3)
    sst = 15 + 15 * waves(shape, (1, 1, 2), 4) + 0.2 * noise(shape, 4)
    yield "pop_SST", "degC", "sea surface temperature, land fill", with_fill(
        sst, mask, 9.96921e36), (6, 96, 80), 9.96921e36
    yield "pop_SSH", "centimeter", "sea surface height, land fill", with_fill(
        80 * waves(shape, (1, 2, 2), 5), mask, 9.96921e36), shape, 9.96921e36
    shape = (6, 31, 73, 144)
    q = 15 * np.exp(-np.arange(31) / 6).reshape(1, 31, 1, 1) * (1.2 + waves(shape, (1, 1, 2, 2), 6))
    yield "merra_q", "g/kg", "specific humidity, NaN below ground", with_fill(
        q, land(shape, 7, 0.34), np.nan), (3, 31, 73, 144), np.nan
    shape = (20, 90, 180)
    yield "levitus_SALT", "PPT", "salinity climatology", with_fill(
        34 + 2 * waves(shape, (1, 2, 3), 8), land(shape, 9, 0.45), -1e10), shape, -1e10
    shape = (3, 6, 145, 192)
    yield ("glosea_ts", "K", "ensemble of surface temperature",
           285 + 20 * waves(shape, (1, 1, 1, 2), 10) + 0.3 * noise(shape, 10), shape, None)
    shape = (37, 64, 32)
    column = np.exp(-np.arange(37)[::-1] / 8).reshape(37, 1, 1)
    yield ("era5_q", "kg kg**-1", "specific humidity, 37 levels",
           0.02 * column * (1.2 + waves(shape, (1, 2, 1), 11)), shape, None)
    cloud = 1e-4 * waves(shape, (2, 3, 2), 12)
    yield ("era5_clwc", "kg kg**-1", "cloud liquid water, 37 levels",
           np.where(cloud > 1e-5, cloud, np.where(noise(shape, 12) > 2, -1e-20, 0)), shape, None)
    yield ("era5_u", "m s**-1", "u wind, 37 levels",
           30 * waves(shape, (1, 2, 1), 13) + noise(shape, 13), shape, None)
    shape = (417, 476)
    yield ("rap_pres", "Pa", "surface pressure, packed origin",
           np.round((95000 + 6000 * waves(shape, (3, 4), 14)) / 10) * 10, shape, None)
    shape = (721, 1440)
    yield ("etopo5", "meters", "relief, integer metres",
           np.round(3000 * waves(shape, (3, 5), 15) + 40 * noise(shape, 15)), (361, 720), None)
    shape = (60, 49, 100)
    yield ("ccm_fice", " ", "sea-ice concentration",
           np.clip(1.5 * waves(shape, (2, 1, 1), 16) - 0.3, 0, 1), shape, None)


def write_field(root, name, units, long_name, values, chunks, fill):
    with netCDF4.Dataset(root / f"{name}.nc", "w", format="NETCDF4") as f:
        dimensions = [f"d{i}" for i in range(values.ndim)]
        for dimension, size in zip(dimensions, values.shape):
            f.createDimension(dimension, size)
        keys = {} if fill is None else {"fill_value": np.float32(fill)}
        v = f.createVariable(name, "f4", dimensions, zlib=True, complevel=1, shuffle=True,
                             chunksizes=chunks, **keys)
        v.set_auto_mask(False)
        v.setncatts({"units": units, "long_name": long_name})
        v[:] = values.astype("f4")
        f.setncatts({"source": "made by tests/support/make_data.py", "license": "as ESDM"})


def main(folder):
    root = pathlib.Path(folder)
    cmip6, plain = root / "cmip6", root / "fields"
    plain.mkdir(parents=True)
    for source, table, years, files, first in SERIES:
        for i in range(files):
            write_series(cmip6, MODELS[source], table, first + i * years, years)
    for field in fields():
        write_field(plain, *field)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
