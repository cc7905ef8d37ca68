#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Whole numbers with _Unsigned = "true", as NetCDF's classic formats have bytes of satellites: what ESDM finds out about
them is of the numbers that readers take them for (-1 is 255), as of variables of unsigned types."""

import json
import math
import struct

from esdmtest import Site, client, expect, main, run, tool
from served import ask, serving

MAKE = """
import netCDF4, numpy, sys
name, late = sys.argv[1], sys.argv[2] == "late"
random = numpy.random.default_rng(4)
with netCDF4.Dataset(name, "w") as d:
    d.createDimension("time", None); d.createDimension("x", 3000)
    for bits in (8, 16, 32, 64):
        most = 2 ** min(bits, 52) - 1
        a = random.integers(0, most, (6, 3000)).astype(f"u{bits // 8}")
        a[:, :7] = most  # the fill value
        a[3] = most      # nothing there
        a[4] //= 4       # all below the highest bit
        v = d.createVariable(f"u{bits}", a.dtype, ("time", "x"), fill_value=a[0, 0])
        v.set_auto_mask(False); v[:] = a
        signed = a.view(f"i{bits // 8}")
        w = d.createVariable(f"s{bits}", signed.dtype, ("time", "x"), fill_value=signed[0, 0])
        w.set_auto_maskandscale(False)
        v.units = w.units = "1"
        if not late:
            w.setncattr("_Unsigned", "true")
        w[:] = signed
    p = d.createVariable("packed", "i1", ("time", "x"))
    p.set_auto_maskandscale(False)
    p.setncatts({"_Unsigned": "true", "scale_factor": 0.5, "add_offset": 100.0, "missing_value": numpy.int16(255), "units": "K"})
    p[:] = random.integers(0, 256, (6, 3000)).astype("u1").view("i1")
if late:  # the attribute comes after numbers
    with netCDF4.Dataset(name, "a") as d:
        for bits in (8, 16, 32, 64):
            d[f"s{bits}"].setncattr("_Unsigned", "true")
"""


def reduced(*arguments):
    return json.loads(run([tool("esdm-reduce"), "--json", *arguments]).stdout)["values"]


def near(a, b):
    """Sums have another order where numbers are read."""
    return a == b or (None not in (a, b) and math.isclose(a, b, rel_tol=1e-9))


def test_reductions_and_questions_are_of_what_readers_take_them_for():
    with Site():
        for name, late in (("a.nc", "at once"), ("b.nc", "late")):
            client(["/usr/bin/python3", "-c", MAKE, f"esdm://{name}", late])
            for bits in (8, 16, 32, 64):
                for what in ("mean", "sum", "min", "max", "count", "variance"):
                    for over in ((), ("--over", "x"), ("--over", "time")):
                        own, other = (reduced(what, name, f"{kind}{bits}", *over) for kind in "su")
                        expect(len(own) == len(other) and all(map(near, own, other)), f"{name} {what} {bits} {over}: {own[:4]}, {other[:4]}")
                expect(reduced("min", name, f"s{bits}")[0] >= 0, "a negative number")
            histograms = [run([tool("esdm-reduce"), "histogram", name, v, "--edges=0,64,128,200,256"]).stdout
                          for v in ("s8", "u8")]
            expect(histograms[0] == histograms[1] and "below 0" in histograms[0], histograms[0])
            if name == "b.nc":  # what was noted with the numbers is not known to hold any more
                expect("nobody knows its range" in run([tool("esdm-find"), "max(s8) > 200"], check=False).stderr, "s8")
                run([tool("esdm-mkfs"), "--reindex"])
            for variable in ("s8", "s16", "u8", "u16"):
                most = 2 ** int(variable[1:])
                expect(name in run([tool("esdm-find"), "-c", f"max({variable}) > {most * 0.9}"]).stdout, f"{name} {variable}")
                expect(name not in run([tool("esdm-find"), "-c", f"min({variable}) < 0"], check=False).stdout,
                       f"{name} {variable}")
        expect(100 <= reduced("min", "a.nc", "packed")[0] and 220 < reduced("max", "a.nc", "packed")[0] <= 227, "packed")
        run([tool("esdm-reduce"), "max", "a.nc", "s8", "--over", "x", "--to", "max.nc"])
        expect("-" not in client(["ncks", "-H", "-C", "-v", "s8", "esdm://max.nc"]).stdout.split("s8 =")[1], "as a container")


LARGE = """
import netCDF4, numpy, sys
with netCDF4.Dataset(sys.argv[1], "w") as d:
    d.createDimension("x", 4)
    for bits in (8, 16, 32, 64):
        v = d.createVariable(f"v{bits}", f"i{bits // 8}", ("x",))
        v.set_auto_maskandscale(False)
        v.setncattr("_Unsigned", "true")
        v[:] = numpy.array([1, 2, -100, -2], v.dtype)
"""


def test_esdm_stat_has_the_same_numbers():
    """Also above the largest one of the signed type of 64 bits."""
    with Site():
        client(["/usr/bin/python3", "-c", LARGE, "esdm://a.nc"])
        text = run([tool("esdm-stat"), "--statistics", "a.nc"]).stdout
        listed = json.loads(run([tool("esdm-stat"), "--statistics", "--json", "a.nc"]).stdout)["containers"][0]
        for bits, found in zip((8, 16, 32, 64), listed["root"]["datasets"], strict=True):
            expect(f"values: 1 to {2 ** bits - 2}, mean" in text, text)
            least, most = (int(found["statistics"][k]) for k in ("min", "max"))  # a string above 2^63
            expect((least, most) == (1, 2 ** bits - 2), str(found["statistics"]))


def test_pictures_and_opendap_have_the_same_numbers():
    with Site() as site:
        client(["/usr/bin/python3", "-c", MAKE, "esdm://a.nc", "at once"])
        with serving(site) as (port, _):
            def values(variable):
                answer = ask(port, f"/api/values/a.nc?variable=/{variable}&type=double")[1]
                return struct.unpack(f"<{len(answer) // 8}d", answer)
            for bits in (8, 16, 32):
                expect(str(values(f"s{bits}")) == str(values(f"u{bits}")), f"picture of {bits} bits")
            das = ask(port, "/dap/a.nc.das")[1].decode()
            expect("_Unsigned" not in das and das.count("Int16 _FillValue 255") == 2, das)
            for bits in (8, 16, 32):
                own, other = (ask(port, f"/dap/a.nc.dods?{kind}{bits}")[1].split(b"Data:\n")[1] for kind in "su")
                expect(own == other, f"OPeNDAP, {bits} bits")


if __name__ == "__main__":
    main(test_reductions_and_questions_are_of_what_readers_take_them_for,
         test_esdm_stat_has_the_same_numbers,
         test_pictures_and_opendap_have_the_same_numbers)
