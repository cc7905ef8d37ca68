#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-ref of GRIB files that cdo wrote: containers equal `cdo -f nc4 copy` of the same file in values, times, levels
and points; names are cfVarName; messages stay where they are; what changes under readers is an error."""

import json
import pathlib
import shutil
import sys

from esdmtest import BUILD, Site, by_size, client, expect, expect_error, main, need_data, need_program, run, skip, tool

REF = tool("esdm-ref")

# Real winds and temperatures on axes that GRIB knows: 4 times, 5 levels of pressure, 2 heights, a surface, holes.
MAKE = """
import netCDF4, numpy as np, sys
folder, fields = sys.argv[1:]
def values(name):
    with netCDF4.Dataset(f"{fields}/{name}") as d:
        v = max(d.variables.values(), key=lambda x: x.size if x.dtype.kind == "f" or "scale_factor" in x.ncattrs() else 0)
        return np.ma.squeeze(v[:])
U, T = values("era5_u.nc"), values("cesm_TS.nc")
U = np.resize(np.ma.filled(U, 0), (37, 32, 64))
with netCDF4.Dataset(f"{folder}/a.nc", "w") as d:
    for n, l in (("time", None), ("plev", 5), ("height", 1), ("height_2", 1), ("lat", 32), ("lon", 64)):
        d.createDimension(n, l)
    def var(n, dims, values, **atts):
        v = d.createVariable(n, "f8", dims)
        v.setncatts(atts)
        v[:] = values
    var("time", "time", [0, 6, 12, 18], units="hours since 2001-03-01 00:00:00", calendar="proleptic_gregorian")
    var("lat", "lat", np.linspace(85, -70, 32), units="degrees_north", standard_name="latitude")
    var("lon", "lon", np.arange(64) * 5., units="degrees_east", standard_name="longitude")
    var("plev", "plev", [100000, 85000, 50000, 20000, 1000], units="Pa", positive="down", standard_name="air_pressure", axis="Z")
    var("height", "height", 2, units="m", positive="up", standard_name="height", axis="Z")
    var("height_2", "height_2", 10, units="m", positive="up", standard_name="height", axis="Z")
    def field(n, dims, values, units):
        v = d.createVariable(n, "f4", ("time", *dims, "lat", "lon"), fill_value=-9e33)
        v.units = units
        v[:] = values
    field("u", ["plev"], np.stack([U[5 * k:5 * k + 5] for k in range(4)]), "m s-1")
    x = np.ma.array(T[:4, :32, :64])
    x[1, 3:9, 5:20] = np.ma.masked
    field("2t", ["height"], x[:, None], "K")
    field("10u", ["height_2"], U[20:24][:, None], "m s-1")
    field("sp", [], T[4:8, :32, :64] * 300, "Pa")
"""

EQUAL = """
import netCDF4, numpy as np, sys
names = {"2t": "t2m", "10u": "u10"}
for pair in sys.argv[2:]:
    a, b = pair.split("=")
    with netCDF4.Dataset(a) as x, netCDF4.Dataset(b) as y:
        n = 0
        for name, v in x.variables.items():
            if name in ("reduced_points",) or (name == "lat" and "rgrid" in x.dimensions):
                continue
            w = y[names.get(name, name)]
            assert v.dimensions == w.dimensions and v.shape == w.shape and v.dtype == w.dtype, (name, v, w)
            if name == "time":
                p, q = (netCDF4.num2date(t[:], t.units, t.calendar) for t in (v, w))
                assert (p == q).all(), (p, q)
            elif name in ("lat", "lon"):
                assert np.abs(v[:] - w[:]).max() < 1e-5, (name, v[:], w[:])
            else:
                p, q = v[:], w[:]
                assert (np.ma.getmaskarray(p) == np.ma.getmaskarray(q)).all(), name
                assert np.ma.filled(p, 0).tobytes() == np.ma.filled(q, 0).tobytes(), (name, abs(p - q).max())
                if v.ndim > 2 and sys.argv[1] == "parts":
                    assert np.ma.allequal(v[1:3, ..., 4:20:3, -5:], w[1:3, ..., 4:20:3, -5:]), name
            for k in ("standard_name", "units", "positive", "axis"):
                if name not in ("time", "2t", "10u") and k in v.ncattrs() and k in w.ncattrs():
                    assert v.getncattr(k).replace("**", "") == w.getncattr(k), (name, k)
            n += 1
        assert n >= 3 and y.Conventions == "CF-1.6"
        if "rgrid" in x.dimensions:
            assert y["lat"].dimensions == ("rgrid",) and y["t"].coordinates == "lat lon"
print("equal")
"""


def python(script, *arguments, check=True):
    return client(["/usr/bin/python3", "-c", script, *map(str, arguments)], check=check)


def make(site):
    if not (BUILD / "esdm/esdm-codec-grib.so").exists():
        skip("built without ecCodes")
    need_program("cdo")
    folder = site.folder / "grib"
    folder.mkdir()
    run(["/usr/bin/python3", "-c", MAKE, folder, need_data("fields")])
    source = folder / "a.nc"
    for name, options in (("ieee.grb2", ["-f", "grb2", "copy"]), ("simple.grb1", ["-f", "grb", "copy"]),
                          ("packed.grb2", ["-b", "16", "-f", "grb2", "copy"]),
                          ("ccsds.grb2", ["-b", "12", "-f", "grb2", "-z", "aec", "copy"]),
                          ("gauss.grb2", ["-b", "16", "-f", "grb2", "setgrid,n16"]),
                          ("north.grb1", ["-b", "24", "-f", "grb", "invertlat"])):
        run(["cdo", "-s", *options, source, folder / name])
    both = (folder / "ieee.grb2").read_bytes() + b"\\0" * 100 + (folder / "gauss.grb2").read_bytes()
    (folder / "two_grids.grib").write_bytes(both)
    sample = pathlib.Path("/usr/share/eccodes/samples/reduced_gg_pl_32_grib2.tmpl")
    if sample.exists():
        shutil.copy(sample, folder / "reduced.grb2")
    return folder


def test_values_are_those_of_cdo():
    with Site() as site:
        folder = make(site)
        told = json.loads(run([REF, "--json", folder, "esdm://g"]).stdout)
        grib = [c for c in told["copies"] if "grb" in c["source"]]
        expect(len(grib) >= 6 and all(c["referred"] == (1 if "reduced" in c["source"] else 4) for c in grib), f"{grib}")
        pairs = []
        for path in sorted(folder.glob("*.grb*")):
            copy = site.folder / f"{path.name}.nc"
            run(["cdo", "-s", "-f", "nc4", "copy", path, copy])
            pairs.append(f"{copy}=esdm://g/{path.name}")
        python(EQUAL, "parts", *pairs)
        expect("two grids" if "float u_2(time, plev" in client(["ncdump", "-h", "esdm://g/two_grids.grib"]).stdout else "",
               "fields of two grids are two variables")
        run([REF, "-f", "--verify", folder / "packed.grb2", "esdm://g/packed.grb2"])
        run([tool("esdm-cp"), "esdm://g/ccsds.grb2", "esdm://own"])
        kept = site.folder / "ccsds.grb2.nc"
        (folder / "ccsds.grb2").unlink()
        python(EQUAL, "whole", f"{kept}=esdm://own")
        expect_error(client(["ncdump", "esdm://g/ccsds.grb2"], check=False), "ccsds.grb2", "fragment [")


def test_what_is_no_file_of_messages():
    with Site() as site:
        folder = make(site)
        path = folder / "packed.grb2"
        whole = path.read_bytes()
        path.write_bytes(whole[:-100])
        expect_error(run([REF, path, "esdm://cut"], check=False), "packed.grb2", "byte", "cut off")
        path.write_bytes(whole + whole)
        expect_error(run([REF, path, "esdm://twice"], check=False), "are both 'u'", "packed.grb2")


MUTATE = """
import netCDF4, numpy as np, os, random, sys
folder, count = sys.argv[1], int(sys.argv[2])
rng = random.Random(7)
names = ["ieee.grb2", "simple.grb1", "packed.grb2", "ccsds.grb2"]
handles, old, sources = {}, {}, {}
for n in names:
    handles[n] = netCDF4.Dataset(f"esdm://g/{n}")
    handles[n].set_auto_maskandscale(False)
    old[n] = {v: handles[n][v][...] for v in ("u", "t2m", "u10", "sp")}
    sources[n] = open(f"{folder}/{n}", "rb").read(), os.stat(f"{folder}/{n}")
failed = same = 0
for k in range(count):
    n = rng.choice(names)
    path = f"{folder}/{n}"
    whole, was = sources[n]
    data = bytearray(whole)
    what = rng.choice(["bytes", "cut", "longer", "zeros", "removed", "exchanged", "same"])
    at = rng.randrange(len(data))
    if what in ("bytes", "exchanged"):
        data[at] ^= 1 << rng.randrange(8)
    elif what == "cut":
        del data[at:]
    elif what == "longer":
        data[at:at] = b"12345678"
    elif what == "zeros":
        data[at:at + 64] = bytes(len(data[at:at + 64]))
    if what in ("removed", "exchanged") and os.path.exists(path):
        os.unlink(path)
    if what != "removed":
        with open(path, "r+b" if os.path.exists(path) else "wb") as f:
            f.truncate(len(data))
            f.write(data)
        if rng.random() < .9:
            os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
    v = rng.choice(sorted(old[n]))
    h = handles[n]
    if k % 3 == 0:
        h = netCDF4.Dataset(f"esdm://g/{n}")
        h.set_auto_maskandscale(False)
    try:
        assert h[v][...].tobytes() == old[n][v].tobytes(), f"{k}: {n} {v}: other values after '{what}' at {at}"
        same += 1
    except (OSError, RuntimeError):
        failed += 1
    if h is not handles[n]:
        h.close()
print(f"{count} changes: {failed} errors, {same} reads of old bytes")
assert failed > count // 10 and same > count // 10
"""


def test_files_that_change_under_readers():
    with Site() as site:
        folder = make(site)
        run([REF, folder, "esdm://g"])
        done = python(MUTATE, folder, by_size(150, 400, 5000))
        lines = [line for line in done.stderr.splitlines() if line.startswith("esdm:")]
        expect(lines and all("fragment [" in line and f"{folder}/" in line for line in lines),
               f"not all messages name file and chunk: {done.stderr}")


if __name__ == "__main__":
    sys.exit(main(test_values_are_those_of_cdo, test_what_is_no_file_of_messages, test_files_that_change_under_readers))
