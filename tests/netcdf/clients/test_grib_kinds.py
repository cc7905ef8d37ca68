#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-ref of GRIB messages of many kinds, made by ecCodes: several fields in one message, and what else is rare in
files but not in archives. Values are those of ecCodes, and of `cdo -f nc4 copy` where cdo reads such messages."""

import json
import os
import random
import struct
import sys
import time

import gribs
from esdmtest import BUILD, Site, by_size, client, expect, expect_error, main, need_program, run, skip, tool
from test_grib_references import python
from webserver import Web

REF = tool("esdm-ref")

if not (BUILD / "esdm/esdm-codec-grib.so").exists():
    skip("built without ecCodes")
if not (gribs.SAMPLES / "regular_ll_pl_grib2.tmpl").exists():
    skip("there are no samples of ecCodes")

RNG = random.Random(11)


def numbers(n, missing=0):
    """Values like those of a field; the first `missing` of a row of 16 are missing."""
    return [-9e33 if i % 16 < missing else 280 + 20 * RNG.random() for i in range(n)]


def field(sample="regular_ll_pl_grib2", values=None, missing=0, **keys):
    m = gribs.message(sample, **keys)
    n = len(gribs.values_of(m))
    values = values if values is not None else numbers(n, missing)
    bitmap = {"missingValue": -9e33, "bitmapPresent": 1} if missing else {}
    return gribs.message(m, values=values, bitsPerValue=16, **bitmap)


# Of each variable of a container the values, as text, in the order of its elements.
VALUES = """
import sys, json, netCDF4, numpy as np
with netCDF4.Dataset(sys.argv[1]) as nc:
    nc.set_auto_maskandscale(False)
    print(json.dumps({n: {"dims": v.dimensions, "shape": v.shape, "values": v[...].ravel().tolist(),
                          **{k: str(v.getncattr(k)) for k in v.ncattrs()}} for n, v in nc.variables.items()}))
"""


def read(name):
    return json.loads(python(VALUES, f"esdm://{name}").stdout)


def same(got, message):
    """Whether values are those that ecCodes decodes, as float."""
    wanted = gribs.values_of(message)
    return [struct.pack("f", x) for x in got] == [struct.pack("f", x) for x in wanted]


def set_roots(site, *roots):
    config = json.loads(site.config.read_text())
    config["references"] = {"roots": [str(r) for r in roots]}
    site.config.write_text(json.dumps(config))


def age(path):
    os.utime(path, (time.time() - 60, time.time() - 60))


def pairs():
    """Winds at three times and two levels, of which u and v are in one message, and a field by itself."""
    made = {}
    for t in (0, 6, 12):
        for level in (850, 500):
            for name in ("u", "v", "t"):
                made[t, level, name] = field(shortName=name, stepRange=str(t), level=level, missing=5 if name != "t" else 0)
    data = b"".join(gribs.together([made[t, level, "u"], made[t, level, "v"]]) + made[t, level, "t"]
                    for t in (0, 6, 12) for level in (850, 500))
    return made, data


def check_pairs(made, name):
    got = read(name)
    for variable in ("u", "v", "t"):
        values = got[variable]["values"]
        expect(got[variable]["shape"][:2] == [3, 2], got[variable]["shape"])
        n = len(values) // 6
        for i, (t, level) in enumerate((t, level) for t in (0, 6, 12) for level in (850, 500)):
            expect(same(values[i * n:(i + 1) * n], made[t, level, variable]), f"{variable} at {t} h, {level} hPa")


def test_several_fields_in_a_message():
    with Site() as site:
        made, data = pairs()
        path = site.folder / "uv.grb2"
        path.write_bytes(data)
        told = json.loads(run([REF, "--json", "--verify", path, "esdm://uv"]).stdout)
        expect(told["copies"][0]["referred"] == 3, told)
        check_pairs(made, "uv")
        # Parts of both, one after the other, and with the message in memory.
        python("""
import netCDF4, numpy as np
with netCDF4.Dataset("esdm://uv") as nc:
    whole = {n: nc[n][:] for n in "uv"}
    for k in range(3):
        for n in "uv":
            assert np.ma.allequal(nc[n][k, 1, 3:9:2, 4:], whole[n][k, 1, 3:9:2, 4:]), n
    assert not np.ma.allequal(whole["u"], whole["v"])
""")
        # Fields may have one bitmap, that of the first.
        u, v = made[0, 850, "u"], made[0, 850, "v"]
        path.write_bytes(gribs.together([u, v], share_bitmap=True))
        run([REF, "-f", path, "esdm://shared"])
        got = read("shared")
        expect(same(got["u"]["values"], u) and same(got["v"]["values"], v), "fields that share a bitmap")
        run([tool("esdm-fsck"), "--data"], check=False)
        # What is damaged within such a message is told.
        for at in (16 + 5, len(u) // 3, len(path.read_bytes()) - 40):
            broken = bytearray(path.read_bytes())
            broken[at:at + 4] = b"\xff" * 4
            bad = site.folder / "bad.grb2"
            bad.write_bytes(broken)
            done = run([REF, "-q", bad, "esdm://bad"], check=False)
            if done.returncode != 0:
                expect_error(done, "bad.grb2", "message at byte 0")
            else:
                run([tool("esdm-rm"), "-y", "bad"])


def test_messages_on_a_web_server():
    with Site() as site:
        folder = site.folder / "web"
        folder.mkdir()
        made, data = pairs()
        (folder / "uv.grb2").write_bytes(data)
        one = field("regular_ll_pl_grib1", shortName="t", level=500)
        (folder / "t.grb1").write_bytes(one)
        # Small messages by thousands, and a few large ones, whose data are not read.
        small = made[0, 850, "t"]
        count = by_size(600, 1500, 10000)
        (folder / "many.grb2").write_bytes(b"".join(
            gribs.message(small, stepRange=str(k)) for k in range(count)))
        large = gribs.message("regular_ll_pl_grib2", Ni=720, Nj=361, iDirectionIncrementInDegrees=0.5, jDirectionIncrementInDegrees=0.5,
                              longitudeOfLastGridPointInDegrees=359.5, latitudeOfFirstGridPointInDegrees=90.0,
                              latitudeOfLastGridPointInDegrees=-90.0, longitudeOfFirstGridPointInDegrees=0.0)
        large = field(large, values=[280 + k % 1000 for k in range(720 * 361)])
        (folder / "large.grb2").write_bytes(b"".join(gribs.message(large, stepRange=str(k)) for k in range(8)))
        for path in folder.iterdir():
            age(path)
        with Web(folder) as web:
            set_roots(site, web.url, folder)

            def refer(name, *options):
                del web.requests[:]
                run([REF, "-q", "-f", *options, f"{web.url}/{name}", f"esdm://{name}"])
                return [h["Range"].removeprefix("bytes=").split("-") for _, _, h in web.seen("GET")]

            refer("uv.grb2", "--verify")
            check_pairs(made, "uv.grb2")
            refer("t.grb1")
            expect(same(read("t.grb1")["t"]["values"], one), "edition 1")
            ranges = refer("many.grb2")
            expect(len(ranges) <= 3 + os.path.getsize(folder / "many.grb2") // 500000, f"{len(ranges)} requests for {count}")
            expect(read("many.grb2")["t"]["shape"][0] == count, "not all messages")
            ranges = refer("large.grb2")
            asked = sum(int(b) - int(a) + 1 for a, b in ranges)
            expect(len(ranges) <= 10 and asked < os.path.getsize(folder / "large.grb2") // 4, f"{ranges}")
            expect(same(read("large.grb2")["t"]["values"][-720 * 361:], gribs.message(large, stepRange="7")), "large ones")
            run([tool("esdm-cp"), "-q", f"{web.url}/uv.grb2", "esdm://own"])
            check_pairs(made, "own")
            run([tool("esdm-fsck"), "--data"])

            # An object that is another one is an error that names it and the chunk, never other values.
            other = bytearray(data)
            other[len(other) // 2] ^= 0x55
            for changed, words in ((bytes(other), ["was changed"]), (data[:-300], ["was changed"]), (None, [])):
                path = folder / "uv.grb2"
                path.unlink()
                if changed is not None:
                    path.write_bytes(changed)
                    age(path)
                done = python(VALUES, "esdm://uv.grb2", check=False)
                expect_error(done, f"{web.url}/uv.grb2", "fragment [", *words)
                path.write_bytes(data)
                age(path)
            (folder / "cut.grb2").write_bytes(data[:-300])
            expect_error(run([REF, f"{web.url}/cut.grb2", "esdm://cut"], check=False), "cut.grb2", "byte", "cut off")
            (folder / "none.grb2").write_bytes(b"GRIB of no kind, but long enough to be one")
            expect_error(run([REF, f"{web.url}/none.grb2", "esdm://none"], check=False), "none.grb2", "no message")
            web.faults = [404] * 9
            expect_error(run([REF, f"{web.url}/many.grb2", "esdm://gone"], check=False), "many.grb2", "not there")


def test_random_changes_on_a_web_server_never_give_other_values():
    with Site() as site:
        folder = site.folder / "web"
        folder.mkdir()
        _, data = pairs()
        path = folder / "uv.grb2"
        path.write_bytes(data)
        age(path)
        with Web(folder) as web:
            set_roots(site, web.url)
            run([REF, "-q", f"{web.url}/uv.grb2", "esdm://uv"])
            done = python(MUTATE, path, by_size(100, 1000, 5000), web.url)
            lines = [line for line in done.stderr.splitlines() if line.startswith("esdm:")]
            expect(lines and all("fragment [" in line and f"{web.url}/uv.grb2" in line for line in lines), done.stderr)


MUTATE = """
import netCDF4, os, random, sys, time
path, count, url = sys.argv[1], int(sys.argv[2]), sys.argv[3]
rng = random.Random(3)
whole, was = open(path, "rb").read(), os.stat(path)
names = ("u", "v", "t")
with netCDF4.Dataset("esdm://uv") as nc:
    nc.set_auto_maskandscale(False)
    old = {n: nc[n][...].tobytes() for n in names}
failed = same = 0
for k in range(count):
    data = bytearray(whole)
    what = rng.choice(["bytes", "cut", "longer", "zeros", "removed", "same", "same"])
    at = rng.randrange(len(data))
    if what == "bytes":
        data[at] ^= 1 << rng.randrange(8)
    elif what == "cut":
        del data[at:]
    elif what == "longer":
        data[at:at] = b"12345678"
    elif what == "zeros":
        data[at:at + 64] = bytes(len(data[at:at + 64]))
    if what == "removed":
        if os.path.exists(path):
            os.unlink(path)
    else:
        with open(path, "wb") as f:
            f.write(data)
        os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
    n = rng.choice(names)
    with netCDF4.Dataset("esdm://uv") as nc:
        nc.set_auto_maskandscale(False)
        try:
            assert nc[n][...].tobytes() == old[n], f"{k}: {n}: other values after '{what}' at {at}"
            same += 1
        except (OSError, RuntimeError):
            failed += 1
print(f"{count} changes: {failed} errors, {same} reads of old bytes")
assert failed > count // 10 and same > count // 10
"""


SAME_AXES = """
import netCDF4, numpy as np, sys
a, b = (netCDF4.Dataset(n) for n in sys.argv[1:3])
for name in sys.argv[3:]:
    v, w = a[name], b[name]
    assert v.dimensions == w.dimensions and v.shape == w.shape, (name, v, w)
    assert np.ma.allequal(v[:], w[:]), (name, v[:], w[:])
    for k in ("standard_name", "units", "positive", "axis", "bounds"):
        if "GRIB_shortName" not in w.ncattrs() and k in v.ncattrs():
            assert v.getncattr(k) == w.getncattr(k), (name, k, v, w)
"""


def as_cdo(site, name, messages, *variables):
    """Refers to the messages; the variables equal those of cdo."""
    path, copy = site.folder / f"{name}.grib", site.folder / f"{name}.nc"
    path.write_bytes(b"".join(messages))
    run([REF, "-q", path, f"esdm://{name}"])
    if variables:
        run(["cdo", "-s", "-f", "nc4", "copy", path, copy])
        python(SAME_AXES, copy, f"esdm://{name}", *variables)
    return read(name)


def surfaces(kind, first, second=None):
    """Keys of a level in centimetres, or of a layer."""
    keys = {"typeOfFirstFixedSurface": kind} | ({"typeOfSecondFixedSurface": kind} if second is not None else {})
    keys |= {"scaleFactorOfFirstFixedSurface": 2, "scaledValueOfFirstFixedSurface": first}
    if second is not None:
        keys |= {"scaleFactorOfSecondFixedSurface": 2, "scaledValueOfSecondFixedSurface": second}
    return keys


def test_levels_are_those_of_cdo():
    need_program("cdo")
    with Site() as site:
        pv = [0.0, 2000.0, 4000.0, 0.0, 0.0, 0.1, 0.4, 1.0]
        hybrid = {"typeOfLevel": "hybrid", "PVPresent": 1, "pv": pv}
        got = as_cdo(site, "hybrid", [field(shortName="t", **hybrid, level=k) for k in (1, 2, 3)] +
                     [field(shortName="q", **hybrid, level=k) for k in (1, 2)] + [field("regular_ll_sfc_grib2", shortName="sp")],
                     "t", "q", "lev", "lev_2", "hyai", "hybi", "hyam", "hybm")
        expect(got["lev"]["formula_terms"] == got["lev_2"]["formula_terms"] == "ap: hyam b: hybm ps: sp", got["lev"])
        expect(got["lev"]["long_name"] == "hybrid level at layer midpoints", got["lev"])
        # Two sets of coefficients are two axes, and variables.
        other = {**hybrid, "pv": [0.0, 5000.0, 0.0, 0.0, 0.5, 1.0]}
        got = as_cdo(site, "two", [field(shortName="t", **hybrid, level=1), field(shortName="t", **other, level=1)])
        expect(got["hyai"]["shape"] == [4] and got["hyai_2"]["shape"] == [3] and "hyam_2" in got["lev_2"]["formula_terms"], f"{got.keys()}")
        expect(got["t"]["dims"][1] == "lev" and got["t_2"]["dims"][1] == "lev_2", "both are one axis")
        soil = as_cdo(site, "soil", [field(shortName="t", **surfaces(106, a, b)) for a, b in ((0, 7), (7, 28), (28, 100))],
                      "t", "depth", "depth_bnds")
        expect(soil["depth_bnds"]["values"] == [0, .07, .07, .28, .28, 1], soil["depth_bnds"])
        for kind in ("theta", "sigma", "generalVertical", "depthBelowSea", "heightAboveSea", "isobaricInPa"):
            axis = {"depthBelowSea": "depth", "heightAboveSea": "alt", "isobaricInPa": "plev", "generalVertical": "height"}.get(kind, "lev")
            as_cdo(site, kind, [field(shortName="t", typeOfLevel=kind, level=k) for k in (3, 7)], "t", axis)
        one = as_cdo(site, "hybrid1", [field("regular_ll_pl_grib1", shortName="t", typeOfLevel="hybrid", PVPresent=1, pv=pv, level=k)
                                       for k in (1, 2, 3)], "t", "lev")
        expect(one["hyai"]["values"] == pv[:4], one["hyai"])


def periods(steps, kind=1, **keys):
    return [field("regular_ll_sfc_grib2", productDefinitionTemplateNumber=8, typeOfStatisticalProcessing=kind, **keys, stepRange=s)
            for s in steps]


def test_periods_have_bounds():
    need_program("cdo")
    with Site() as site:
        rain = {"shortName": "tp"}
        got = as_cdo(site, "each", periods(("0-6", "6-12", "12-18"), **rain), "tp")
        expect(got["time"]["bounds"] == "time_bnds" and got["time_bnds"]["values"] == [0, 6, 6, 12, 12, 18], got["time"])
        expect(got["tp"]["cell_methods"] == "time: sum" and got["time"]["values"] == [6, 12, 18], got["tp"])
        got = as_cdo(site, "since", periods(("0-6", "0-12"), **rain) + [field("regular_ll_sfc_grib2", shortName="sp", stepRange=str(t))
                                                                       for t in (3, 12)])
        expect(got["time_bnds"]["values"] == [3, 3, 0, 6, 0, 12], got["time_bnds"])
        expect(got["sp"]["cell_methods"] == "time: point", got["sp"])
        # Sums since the start of the run, every quarter of an hour, and of half a minute.
        sums = [field("regular_ll_sfc_grib2", productDefinitionTemplateNumber=8, typeOfStatisticalProcessing=1, **rain,
                      stepUnits=unit, startStep=0, endStep=n) for unit, n in ((0, 15), (0, 30), (0, 60), (13, 5430))]
        got = as_cdo(site, "minutes", sums)
        unit = {"minutes": 60, "seconds": 1}[got["time"]["units"].split()[0]]
        expect([v * unit for v in got["time_bnds"]["values"]] == [0, 900, 0, 1800, 0, 3600, 0, 5430], got["time_bnds"])
        # Periods of two lengths that end together have no common bounds.
        got = as_cdo(site, "both", periods(("0-12", "12-24"), **rain) + periods(("6-12", "18-24"), kind=2, parameterCategory=2,
                                                                                parameterNumber=22))
        expect("time_bnds" not in got and got["tp"]["cell_methods"] == "time: sum (comment: over the 12 hours before)", f"{got['tp']}")
        expect(any(v.get("cell_methods") == "time: maximum (comment: over the 6 hours before)" for v in got.values()), f"{got}")


def test_members_grids_and_constant_fields():
    need_program("cdo")
    with Site() as site:
        members = [field(shortName="t", productDefinitionTemplateNumber=1, numberOfForecastsInEnsemble=3, perturbationNumber=m,
                         level=500) for m in (0, 1, 2)]
        got = as_cdo(site, "members", members, "t", "t_2", "t_3")
        for m, name in enumerate(("t", "t_2", "t_3")):
            expect(got[name]["realization"] == str(m) and got[name]["ensemble_members"] == "3", got[name])
            expect(same(got[name]["values"], members[m]), name)
        holes = field(shortName="t", level=850, missing=7)
        constant = gribs.message("regular_ll_pl_grib2", shortName="t", level=500, values=[273.5] * 496)
        got = as_cdo(site, "holes", [holes, constant], "t", "plev")
        expect(same(got["t"]["values"][:496], holes) and set(got["t"]["values"][496:]) == {273.5}, "constant")
        for sample in ("reduced_gg_sfc_grib2", "reduced_rotated_gg_sfc_grib2", "rotated_ll_sfc_grib2", "rotated_gg_pl_grib1",
                       "reduced_gg_pl_32_grib1", "polar_stereographic_pl_grib2"):
            data = (gribs.SAMPLES / f"{sample}.tmpl").read_bytes()
            got = as_cdo(site, sample, [data])
            name = next(n for n, v in got.items() if "GRIB_shortName" in v)
            expect(same(got[name]["values"], data) and got[name]["coordinates"] == "lat lon", f"{sample}: {got[name]}")
            expect(got["lat"]["dims"] == got[name]["dims"][-len(got["lat"]["dims"]):] and "GRIB_gridType" in got[name], sample)
        path = site.folder / "spectral.grib"
        path.write_bytes((gribs.SAMPLES / "sh_pl_grib2.tmpl").read_bytes())
        expect_error(run([REF, path, "esdm://sh"], check=False), "spectral.grib", "message at byte 0", "spectral")
        path.write_bytes((gribs.SAMPLES / "lambert_bf_grib2.tmpl").read_bytes())
        expect_error(run([REF, path, "esdm://bf"], check=False), "message at byte 0", "where its points lie")


if __name__ == "__main__":
    sys.exit(main(test_levels_are_those_of_cdo, test_periods_have_bounds, test_members_grids_and_constant_fields,
                  test_several_fields_in_a_message, test_messages_on_a_web_server,
                  test_random_changes_on_a_web_server_never_give_other_values))
