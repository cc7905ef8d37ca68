#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Two small files of each row of the table in test_virtual.py, and what a row says of them.

    virtual_files.py make FOLDER        writes FOLDER/CASE.1.nc and FOLDER/CASE.2.nc
    virtual_files.py check CASE URL     reads URL and compares, exit status 1 and what differs if so
    virtual_files.py equal URL FILE…    URL has what numpy joins of the plain files, bit for bit
"""
import sys

import netCDF4
import numpy

LATS = numpy.array([-45., 0., 45.])


def write(path, case, times, **how):
    """A file with tas(time, lat) = 100 time-of-day-1 + lat index, bounds, and what `how` changes."""
    with netCDF4.Dataset(path, "w", format=how.get("format", "NETCDF4")) as d:
        d.case = case
        d.tracking_id = path[-4]
        for name, value in how.get("attributes", {}).items():
            d.setncattr(name, value)
        if not how.get("scalar"):
            d.createDimension("time", how.get("length"))
        lat = how.get("lat_name", "lat")
        d.createDimension(lat, len(how.get("lats", LATS)))
        d.createDimension("bnds", 2)
        order = (lambda *dims: tuple(n for n in dims[::-1 if how.get("transposed") else 1]
                                     if n != "time" or not how.get("scalar")))
        turn = lambda a: a[0] if how.get("scalar") else a.T if how.get("transposed") else a
        t = d.createVariable("time", how.get("time_type", "f8"), order("time"))
        t.units = how.get("units", "days since 2000-01-01")
        t.calendar = how.get("calendar", "standard")
        if how.get("bounds", True):
            t.bounds = "time_bnds"
        if how.get("climatology"):
            t.climatology = "climatology_bounds"
            d.createVariable("climatology_bounds", "f8", order("time", "bnds"))[:] = numpy.stack(
                [numpy.asarray(times) - 1, numpy.asarray(times) + 366], axis=1)  # they overlap
        if "mapping" in how:
            d.createVariable("crs", "i4").setncatts({"grid_mapping_name": "rotated_latitude_longitude", **how["mapping"]})
        y = d.createVariable(lat, how.get("lat_type", "f8"), (lat,))
        y.units = "degrees_north"
        y[:] = how.get("lats", LATS)
        b = d.createVariable("time_bnds", "f8", order("time", "bnds")) if how.get("bounds", True) else {}
        v = d.createVariable(how.get("variable", "tas"), how.get("type", "f4"), order("time", lat),
                             fill_value=how.get("fill"), chunksizes=how.get("chunks"),
                             **how.get("codec", {}))
        v.units = how.get("var_units", "K")
        v.set_auto_maskandscale(False)
        for name in ("scale_factor", "add_offset"):
            if name in how:
                v.setncattr(name, how[name])
        times = numpy.asarray(times)
        t[...] = turn(times)
        if how.get("bounds", True):
            b[:] = turn(numpy.stack([times, times + 1], axis=1))
        v[:] = turn(numpy.asarray(how["values"]) if "values" in how else
                    how.get("base", 0) + numpy.arange(len(times) * 3).reshape(-1, 3))
        if how.get("orography") is not None:
            o = d.createVariable("orog", "f4", ("lat",))
            o.set_auto_maskandscale(False)
            if "static_scale" in how:
                o.scale_factor = how["static_scale"]
            o[:] = how["orography"]
        if how.get("lat_bounds"):
            y.bounds = "lat_bnds"
            step = numpy.sign(y[1] - y[0]) * how.get("bound_width", 15)
            for i, end in enumerate((-step, step)):
                d.variables.get("lat_bnds", None) or d.createVariable("lat_bnds", "f8", ("lat", "bnds"))
                d["lat_bnds"][:, i] = y[:] + end
        if "lons" in how:
            d.createDimension("lon", len(how["lons"]))
            x = d.createVariable("lon", "f8", ("lon",))
            x.units = "degrees_east"
            x[:] = how["lons"]
        if "height" in how:
            h = d.createVariable("height", "f8", ())
            h.units = "m"
            h[...] = how["height"]
            v.coordinates = "height"
        if "names" in how:
            d.createVariable("names", str, ("time",))[:] = numpy.array(how["names"], object)
        if "reference" in how:
            r = d.createVariable("reftime", "f8", ("time",))
            r.units, r.calendar = how["reference"][0], how.get("calendar", "standard")
            r[:] = how["reference"][1]
        if "missing_value" in how:
            v.missing_value = numpy.float32(how["missing_value"])
        v.setncatts(how.get("says", {}))
        if "label" in how:
            d.createVariable("label", str)[...] = how["label"]
        if "group" in how:
            w = d.createGroup(how["group"]).createVariable("tas", "f4", ("time", "lat"))
            w.units = "K"
            w[:] = v[:]
        for name in how.get("more", ()):
            d.createVariable(name, "f4", ("time",))[:] = times


RUN = {"source_id": "MPI-ESM1-2-HR", "variant_label": "r1i1p1f1", "table_id": "Amon", "grid_label": "gn"}


def origins():
    """Attributes that tell what a container comes from, two values, and what the error says of them."""
    for name, a, b in (("source_id", "A", "B"), ("model_id", "A", "B"), ("institution_id", "A", "B"), ("institute_id", "A", "B"),
                       ("variant_label", "r1i1p1f1", "r2i1p1f1"), ("member_id", "r1i1p1f1", "r2i1p1f1"),
                       ("realization_index", numpy.int32(1), numpy.int32(2)), ("initialization_index", numpy.int32(1), numpy.int32(2)),
                       ("physics_index", numpy.int32(1), numpy.int32(3)), ("forcing_index", numpy.int32(1), numpy.int32(2)),
                       ("realization", numpy.int32(1), numpy.int32(2)), ("initialization_method", numpy.int32(1), numpy.int32(2)),
                       ("physics_version", numpy.int32(1), numpy.int32(2)), ("sub_experiment_id", "s1960", "s1970"),
                       ("driving_source_id", "A", "B"), ("driving_model_id", "A", "B"), ("driving_variant_label", "r1i1p1f1", "r2i1p1f1"),
                       ("driving_model_ensemble_member", "r1i1p1", "r2i1p1"), ("version_realization", "v1-r1", "v1-r2"),
                       ("rcm_version_id", "v1", "v2"), ("domain_id", "EUR-12", "EUR-50"), ("CORDEX_domain", "EUR-11", "EUR-44")):
        yield name, a, b, (f"the {name} '{a}'", f"'{b}'", f"&{name}={a} in", f"(&ensemble={name})", f"(&across={name})")
    for name, a, b in (("table_id", "Amon", "day"), ("grid_label", "gn", "gr")):
        yield name, a, b, (f"the {name} '{a}'", f"'{b}'", f"&{name}={a} in", f"(&across={name})")
    yield "frequency", "mon", "day", ("the frequency 'mon'", "'day'", "&frequency=")


def cases():
    """name: (first file, second file, what is expected): a dictionary of variables, or words of the
    error."""
    one = dict(times=[0, 1])
    two = dict(times=[2, 3], base=6)
    joined = {"time": [0, 1, 2, 3], "tas": numpy.arange(12.).reshape(4, 3)}
    bounds = {"time_bnds": [[0, 1], [1, 2], [2, 3], [3, 4]]}
    hours = dict(two, times=[48, 72], units="hours since 2000-01-01")
    table = {
        "same": (one, two, {**joined, **bounds}),
        "unsorted": (two, one, joined),
        "epoch": (one, dict(two, times=[-29, -28], units="days since 2000-02-01"),
                  {**joined, "time_bnds": [[0, 1], [1, 2], [2, 3], [3, 4]]}),
        "hours": (one, hours, {**joined, "time_bnds": [[0, 1], [1, 2], [2, 2 + 1 / 24],
                                                       [3, 3 + 1 / 24]]}),
        "zone": (one, dict(two, units="days since 2000-01-01 06:00:00 +06:00"), joined),
        "noleap": (dict(one, calendar="noleap"), dict(two, calendar="365_day"), joined),
        "gregorian": (one, dict(two, calendar="gregorian"), joined),
        "days360": (dict(one, calendar="360_day"),
                    dict(two, times=[-28, -27], units="days since 2000-02-01", calendar="360_day"),
                    joined),
        "proleptic": (one, dict(two, calendar="proleptic_gregorian"), joined),
        "proleptic1": (dict(one, units="days since 0001-01-01", times=[730121, 730122]),
                       dict(two, units="days since 0001-01-01", times=[730121, 730122],
                            calendar="proleptic_gregorian"),
                       {"time": [730121, 730122, 730123, 730124]}),
        "calendars": (one, dict(two, calendar="noleap"), ("standard", "noleap")),
        "julian": (one, dict(two, calendar="julian"), ("standard", "julian")),
        "months": (dict(one, units="months since 2000-01-01"),
                   dict(two, units="months since 2000-01-01"), ("months",)),
        "time_int": (dict(one, time_type="i4"), dict(two, times=[2.5, 3.5]),
                     {"time": [0, 1, 2.5, 3.5]}),
        "packing": (dict(one, type="i2", scale_factor=0.5, add_offset=10.0, fill=-1),
                    dict(two, type="i2", scale_factor=0.25, add_offset=0.0, fill=-9,
                         values=[[4, 8, -9], [0, 2, 3]]),
                    {"tas": [[10, 10.5, 11], [11.5, 12, 12.5], [1, 2, -1], [0, .5, .75]],
                     "tas:type": "float64", "tas:no": "scale_factor"}),
        "packed_float": (dict(one, type="i2", scale_factor=0.5, add_offset=10.0),
                         dict(two, values=[[.1, 2, 3], [4, 5, 6]]),
                         {"tas": [[10, 10.5, 11], [11.5, 12, 12.5],
                                  [float(numpy.float32(.1)), 2, 3], [4, 5, 6]]}),
        "packed_same": (dict(one, type="i2", scale_factor=0.5, add_offset=10.0),
                        dict(two, type="i2", scale_factor=0.5, add_offset=10.0),
                        {**joined, "tas:type": "int16"}),
        "fill": (dict(one, fill=1e20), dict(two, fill=-999., values=[[1, -999, 3], [4, 5, 6]]),
                 {"tas": [[0, 1, 2], [3, 4, 5], [1, float(numpy.float32(1e20)), 3], [4, 5, 6]]}),
        "fill_hit": (dict(one, fill=5.), dict(two, fill=-999., values=[[1, 2, 3], [4, 5, 6]]),
                     ("fill value",)),
        "f4f8": (one, dict(two, type="f8", values=[[25.25, .1, 3], [4, 5, 6]]),
                 {"tas": [[0, 1, 2], [3, 4, 5], [25.25, .1, 3], [4, 5, 6]],
                  "tas:type": "float64"}),
        "i2f4": (dict(one, type="i2"), dict(two, values=[[25.25, 2, 3], [4, 5, 6]]),
                 {"tas": [[0, 1, 2], [3, 4, 5], [25.25, 2, 3], [4, 5, 6]], "tas:type": "float32"}),
        "big_endian": (one, dict(two, type=">f4"), joined),
        "chunks": (one, dict(two, chunks=(1, 2)), joined),
        "units": (one, dict(two, var_units="degC"), ("tas", "units", "K", "degC")),
        "lat_close": (one, dict(two, lats=LATS + 1e-9), joined),
        "lat_float": (dict(one, lats=LATS + .1), dict(two, lats=LATS + .1, lat_type="f4"), joined),
        "lat_descending": (one, dict(two, lats=LATS[::-1]),
                           {"time": [0, 1, 2, 3], "lat": LATS,
                            "tas": [[0, 1, 2], [3, 4, 5], [8, 7, 6], [11, 10, 9]]}),
        "lat_bounds": (dict(one, lat_bounds=True), dict(two, lats=LATS[::-1], lat_bounds=True),
                       {"lat_bnds": [[-60, -30], [-15, 15], [30, 60]],
                        "tas": [[0, 1, 2], [3, 4, 5], [8, 7, 6], [11, 10, 9]]}),
        "transposed": (one, dict(two, transposed=True), {**joined, **bounds}),
        "scalar_time": (one, dict(two, times=[2], scalar=True),
                        {"time": [0, 1, 2], "time_bnds": [[0, 1], [1, 2], [2, 3]],
                         "tas": numpy.arange(9.).reshape(3, 3)}),
        "scalar_first": (dict(one, times=[0], scalar=True), dict(two, times=[1, 2], base=3),
                         {"time": [0, 1, 2], "tas": numpy.arange(9.).reshape(3, 3)}),
        "static_packed": (dict(one, orography=[4, 8, 12], static_scale=0.5),
                          dict(two, orography=[2, 4, 6], static_scale=1.0),
                          {**joined, "orog": [4, 8, 12]}),
        "static_scale": (dict(one, orography=[4, 8, 12], static_scale=0.5),
                         dict(two, orography=[4, 8, 12], static_scale=1.0), ("orog", "2", "4")),
        "static_text": (dict(one, label="aa"), dict(two, label="aa"), joined),
        "static_texts": (dict(one, label="aa"), dict(two, label="ab"), ("label", "another text")),
        "groups": (dict(one, group="g"), dict(two, group="g"), {**joined, "g/tas": joined["tas"]}),
        "lat_other": (one, dict(two, lats=LATS + 1), ("lat", "time")),
        "lat_renamed": (one, dict(two, lat_name="latitude"), ("no variable 'lat'",)),
        "lat_number": (one, dict(two, lats=[0., 1.], values=[[1, 2], [3, 4]]), ("lat", "3", "2")),
        "overlap": (dict(one, times=[0, 1, 2]), dict(two, times=[2, 3]), joined),
        "overlap_differs": (dict(one, times=[0, 1, 2]), dict(two, times=[2, 3], base=7),
                            ("overlap", "tas", "&overlap=newest")),
        "gap": (one, dict(two, times=[10, 11]), {"time": [0, 1, 10, 11]}),
        "interleaved": (dict(one, times=[0, 2]), dict(two, times=[1, 3]),
                        {"time": [0, 1, 2, 3],
                         "tas": [[0, 1, 2], [6, 7, 8], [3, 4, 5], [9, 10, 11]]}),
        "twice": (dict(one, times=[0, 0]), two, ("same value", "time")),
        "descending": (one, dict(two, times=[3, 2]),
                       {"time": [0, 1, 2, 3],
                        "tas": [[0, 1, 2], [3, 4, 5], [9, 10, 11], [6, 7, 8]]}),
        "missing_time": (one, dict(two, times=[2, netCDF4.default_fillvals["f8"]]),
                         ("time", "no value")),
        "less": (dict(one, more=["extra"]), two, ("extra",)),
        "more": (one, dict(two, more=["extra"]), ("extra",)),
        "fixed": (dict(one, length=2), dict(two, length=2), {**joined, "unlimited": "time"}),
        "static": (dict(one, orography=[1, 2, 3]), dict(two, orography=[1, 2, 3]),
                   {**joined, "orog": [1, 2, 3]}),
        "static_differs": (dict(one, orography=[1, 2, 3]), dict(two, orography=[1, 2, 4]),
                           ("orog", "3", "4")),
        "attributes": (dict(one, attributes={"comment": "a", "title": "t"}),
                       dict(two, attributes={"comment": "b", "title": "t"}),
                       {**joined, "differs": "comment"}),
        "ensemble": (one, dict(one, base=100), ("same coordinates", "variant_label")),
        "scenario": (dict(one, attributes={**RUN, "institution_id": "MPI-M", "experiment_id": "historical",
                                           "activity_id": "CMIP", "parent_experiment_id": "piControl"}),
                     dict(two, attributes={**RUN, "institution_id": "DKRZ", "experiment_id": "ssp585",
                                           "activity_id": "ScenarioMIP", "parent_experiment_id": "historical"}),
                     {**joined, "differs": "activity_id\nexperiment_id\ninstitution_id\nparent_experiment_id"}),
        "source_in_one": (dict(one, attributes=RUN), two, joined),
        "table_cmip5": (dict(one, attributes={"table_id": "Table Amon (27 April 2011) a5a1c518f52ae340313ba0aada03f862"}),
                        dict(two, attributes={"table_id": "Table Amon (31 January 2011) 53b766a395ac41696af40aab76a49ae5"}),
                        {**joined, "differs": "table_id"}),
        **{f"other_{name}": (dict(one, attributes={**RUN, name: a}), dict(two, attributes={**RUN, name: b}), words)
           for name, a, b, words in origins()},
        "reference": (dict(one, reference=("days since 2000-01-01", [0, 0])),
                      dict(two, reference=("hours since 2000-01-02", [0, 24])),
                      {**joined, "reftime": [0, 0, 1, 2]}),
        "no_bounds": (dict(one, lat_bounds=True), dict(two, bounds=False),
                      {**joined, "differs": "lat_bnds:left out, not all have it\n"
                       "time_bnds:left out, not all have it", "absent": "time_bnds", "time:no": "bounds"}),
        "no_bounds_first": (dict(one, bounds=False), two,
                            {**joined, "absent": "time_bnds", "differs": "time_bnds:left out, not all have it"}),
        "strings": (dict(one, names=["a", "bc"]), dict(two, names=["", "de"]),
                    {**joined, "names": ["a", "bc", "", "de"]}),
        "height": (dict(one, height=2.), dict(two, height=10.), ("height", "2", "10")),
        "longitude": (dict(one, lons=[0., 90., 180., 270.]), dict(two, lons=[-180., -90., 0., 90.]),
                      ("lon", "time")),
        "kelvin": (one, dict(two, var_units="kelvin"), joined),
        "codec": (dict(one, codec=dict(zlib=True, shuffle=True)),
                  dict(two, codec=dict(zlib=True, shuffle=False, fletcher32=True)), joined),
        "missing_value": (dict(one, fill=1e20), dict(two, missing_value=-999.,
                                                     values=[[1, -999, 3], [4, 5, 6]]),
                          {"tas": [[0, 1, 2], [3, 4, 5], [1, float(numpy.float32(1e20)), 3], [4, 5, 6]]}),
        "twice_equal": (dict(one, times=[0, 0], values=[[1, 2, 3], [1, 2, 3]], bounds=False), dict(two, bounds=False),
                        {"time": [0, 2, 3], "tas": [[1, 2, 3], [6, 7, 8], [9, 10, 11]]}),
        "marks_hit": (dict(one, fill=1e20, missing_value=-999.), dict(two, fill=-5., values=[[-999, 1, 3], [-5, 5, 6]]),
                      ("fill value",)),
        "marks_type": (dict(one, fill=1e20, missing_value=-999., values=[[-999, 1, 3], [4, 5, 6]]),
                       dict(two, type="f8", fill=1e20, missing_value=-999., values=[[7, .1, 3], [4, 5, 6]]),
                       {"tas": [[-999, 1, 3], [4, 5, 6], [7, .1, 3], [4, 5, 6]], "tas:says": {"missing_value": -999.}}),
        "bytes_hit": (dict(one, type="u1", values=[[255, 1, 2], [3, 4, 5]]), dict(two, type="u1", fill=255, values=[[255, 1, 2], [3, 4, 5]]),
                      ("fill value",)),
        "valid": (dict(one, says={"valid_min": numpy.float32(0), "valid_max": numpy.float32(500)}),
                  dict(two, says={"valid_min": numpy.float32(-9), "valid_max": numpy.float32(500)}),
                  {**joined, "differs": "tas:valid_min", "tas:no": "valid_min", "tas:says": {"valid_max": 500.}}),
        "valid_in_one": (one, dict(two, says={"valid_range": numpy.float32([0, 7])}), {**joined, "differs": "tas:valid_range"}),
        "flags": (dict(one, says={"flag_values": numpy.int32([0, 1]), "flag_meanings": "land sea"}),
                  dict(two, says={"flag_values": numpy.int32([0, 1]), "flag_meanings": "sea land"}), ("flag_meanings", "tas")),
        "unsigned": (dict(one, type="i2", says={"_Unsigned": "true"}), dict(two, type="i2"), ("_Unsigned", "true")),
        "unsigned_packed": (dict(one, type="i2", scale_factor=.5, says={"_Unsigned": "true"}),
                            dict(two, type="i2", scale_factor=.25, says={"_Unsigned": "true"}), ("_Unsigned", "packing")),
        "calendar360": (one, dict(two, calendar="360_day"), ("standard", "360_day")),
        "climatology": (dict(one, climatology=True, bounds=False),
                        dict(two, times=[-29, -28], units="days since 2000-02-01", climatology=True, bounds=False),
                        {**joined, "climatology_bounds": [[-1, 366], [0, 367], [1, 368], [2, 369]]}),
        "pole": (dict(one, mapping={"grid_north_pole_latitude": 39.25}), dict(two, mapping={"grid_north_pole_latitude": 20.}),
                 ("crs", "grid_north_pole_latitude", "39.25", "20")),
        "pole_float": (dict(one, mapping={"grid_north_pole_latitude": 39.3, "long_name": "pole"}),
                       dict(two, mapping={"grid_north_pole_latitude": numpy.float32(39.3), "long_name": "the pole"}),
                       {**joined, "differs": "crs:grid_north_pole_latitude\ncrs:long_name"}),
        "parallels": (dict(one, mapping={"standard_parallel": [30., 60.]}), dict(two, mapping={"standard_parallel": 30.}),
                      ("crs", "standard_parallel", "(60)", "(30)")),
        "pole_east": (dict(one, mapping={"grid_north_pole_longitude": -162., "north_pole_grid_longitude": 0.}),
                      dict(two, mapping={"grid_north_pole_longitude": 198., "north_pole_grid_longitude": 360.}),
                      {**joined, "differs": "crs:grid_north_pole_longitude\ncrs:north_pole_grid_longitude"}),
        "pole_east_of": (dict(one, mapping={"grid_north_pole_longitude": -162.}),
                         dict(two, mapping={"grid_north_pole_longitude": 162.}), ("crs", "grid_north_pole_longitude", "-162")),
        "one_parallel": (dict(one, mapping={"standard_parallel": [60., 60.], "false_easting": 0.}),
                         dict(two, mapping={"standard_parallel": 60., "false_easting": 4e-10}),
                         {**joined, "differs": "crs:false_easting\ncrs:standard_parallel"}),
        "mapping_marks": (dict(one, mapping={"missing_value": numpy.int32(-9), "GeoTransform": [0., 1.]}),
                          dict(two, mapping={"missing_value": numpy.int32(-99), "GeoTransform": [5., 1.]}),
                          {**joined, "differs": "crs:GeoTransform"}),
        "mapping": (dict(one, mapping={}), dict(two, mapping={"grid_mapping_name": "lambert_conformal_conic"}),
                    ("crs", "grid_mapping_name")),
        "classic": (dict(one, format="NETCDF3_CLASSIC"), two, {**joined, "unlimited": "time"}),
    }
    return table


def check(case, url):
    expected = cases()[case][2]
    wrong = []
    with netCDF4.Dataset(url) as d:
        d.set_auto_maskandscale(False)
        for name, value in expected.items():
            if name == "differs":
                found = d.esdm_differs == value and d.esdm_members.startswith("2 containers")
            elif name == "absent":
                found = value not in d.variables
            elif name == "unlimited":
                found = d.dimensions[value].isunlimited()
            elif name.endswith(":type"):
                found = str(d[name[:-5]].dtype) == value
            elif name.endswith(":says"):
                found = all(d[name[:-5]].getncattr(k) == x for k, x in value.items())
            elif name.endswith(":no"):
                found = value not in d[name[:-3]].ncattrs()
            else:
                found = numpy.array_equal(d[name][:], numpy.asarray(value, d[name].dtype if d[name].dtype != str else object))
            if not found:
                wrong.append(f"{name}: {d[name][:] if name in d.variables else {n: d.getncattr(n) for n in d.ncattrs()}}")
        last = d["tas"][-1:, ::2]
        if "tas" in expected and not numpy.array_equal(
                last[0], numpy.asarray(expected["tas"], last.dtype)[-1, ::2]):
            wrong.append(f"a part of tas: {last}")
    return wrong


def equal(url, files):
    wrong = []
    plain = [netCDF4.Dataset(f) for f in files]
    with netCDF4.Dataset(url) as d:
        for whole in [d, *plain]:
            whole.set_auto_maskandscale(False)
        for name, v in d.variables.items():
            if "time" in v.dimensions:
                parts = [p[name][:] for p in plain]
                value = numpy.concatenate(parts, v.dimensions.index("time"))
            else:
                value = plain[0][name][:]
            if v[:].tobytes() != value.tobytes():
                wrong.append(name)
        if set(d.variables) != set(plain[0].variables):
            wrong.append("variables")
    return wrong


if __name__ == "__main__":
    if sys.argv[1] == "make":
        for name, (one, two, _) in cases().items():
            for i, how in enumerate((one, two), 1):
                write(f"{sys.argv[2]}/{name}.{i}.nc", name, **how)
        found = []
    elif sys.argv[1] == "names":
        print(*cases())
        found = []
    elif sys.argv[1] == "check":
        found = [f"{case}: {w}" for case in sys.argv[2:]
                 if not isinstance(cases()[case][2], tuple)
                 for w in check(case, f"esdm://?case={case}")]
        for case in sys.argv[2:]:
            if isinstance(cases()[case][2], tuple):
                try:
                    with netCDF4.Dataset(f"esdm://?case={case}") as d:
                        d.set_auto_maskandscale(False)
                        _ = d["tas"][:]
                    found.append(f"{case}: no error")
                except (OSError, RuntimeError):
                    pass
    elif sys.argv[1] == "words":
        print(*(cases()[sys.argv[2]][2] if isinstance(cases()[sys.argv[2]][2], tuple) else ()),
              sep="\n")
        found = []
    else:
        found = equal(sys.argv[2], sys.argv[3:])
    print("\n".join(found))
    sys.exit(1 if found else 0)
