#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-reduce --to: what is made is a container that other programs understand as a result."""

from esdmtest import Site, client, expect, expect_error, main, run, tool

MAKE = """
import netCDF4, numpy
d = netCDF4.Dataset("esdm://run/in.nc", "w")
d.history = "made"
d.createDimension("time", None); d.createDimension("y", 7); d.createDimension("x", 9)
d.createDimension("bnds", 2); d.createDimension("height", 3)
t = d.createVariable("time", "f8", ("time",)); t.units = "days since 1850-01-01"
t.calendar = "noleap"; t.bounds = "time_bnds"
b = d.createVariable("time_bnds", "f8", ("time", "bnds"))
lat = d.createVariable("lat", "f4", ("y", "x")); lat.units = "degrees_north"; lat.bounds = "lat_bnds"
d.createDimension("four", 4)
lb = d.createVariable("lat_bnds", "f4", ("y", "x", "four"))
h = d.createVariable("height", "f8", ("height",)); h.units = "m"
g = d.createVariable("rotated", "i4", ()); g.grid_mapping_name = "rotated_latitude_longitude"
v = d.createVariable("tas", "f4", ("time", "height", "y", "x"), fill_value=1e20)
v.units = "K"; v.standard_name = "air_temperature"; v.coordinates = "lat"; v.grid_mapping = "rotated"
v.cell_methods = "area: mean"; v.valid_range = numpy.array([0, 400], "f4")
p = d.createVariable("packed", "i2", ("time", "y", "x"), fill_value=-1)
p.scale_factor = 0.5; p.add_offset = 100.0; p.units = "1"
r = numpy.random.default_rng(3)
a = numpy.ma.masked_less(r.random((11, 3, 7, 9), "f4") * 100 + 200, 215)
a[:, 1, 2, 3] = numpy.ma.masked
t[:] = numpy.arange(11); b[:] = numpy.stack([numpy.arange(11), numpy.arange(1, 12)], 1)
v[:] = a; lat[:] = r.random((7, 9)); lb[:] = r.random((7, 9, 4)); h[:] = [2, 10, 100]
p[:] = r.integers(0, 100, (11, 7, 9)) * 0.5 + 100
d.close()
"""

CHECK = """
import netCDF4, numpy
i = netCDF4.Dataset("esdm://run/in.nc")
tas, packed = i["tas"][:], i["packed"][:]
for how, axes, name in (("mean", 0, "t-mean"), ("max", 0, "t-max"), ("variance", 0, "t-variance"), ("count", 0, "t-count"),
                        ("mean", (2, 3), "a-mean"), ("sum", (0, 1, 2, 3), "all-sum")):
    o = netCDF4.Dataset(f"esdm://{name}.nc")
    got = o["tas"][:]
    want = {"variance": lambda: tas.astype("f8").var(axis=axes), "count": lambda: tas.count(axis=axes),
            "mean": lambda: tas.astype("f8").mean(axis=axes), "sum": lambda: tas.astype("f8").sum(axis=axes),
            "max": lambda: tas.max(axis=axes)}[how]()
    assert o["tas"].dtype == ("i8" if how == "count" else "f4"), o["tas"].dtype
    assert got.shape == numpy.shape(want), (name, got.shape)
    if how != "count":
        assert (numpy.ma.getmaskarray(got) == numpy.ma.getmaskarray(want)).all(), name
    assert numpy.ma.allclose(got, want, rtol=1e-6), name
    kept = o["tas"].dimensions
    names = set(o.variables)
    if axes == 0:
        assert kept == ("height", "y", "x") and names == {"tas", "lat", "lat_bnds", "height", "rotated"}, names
        assert o["tas"].coordinates == "lat" and o["lat"].bounds == "lat_bnds"
        assert (o["lat_bnds"][:] == i["lat_bnds"][:]).all() and (o["lat"][:] == i["lat"][:]).all()
    if name == "a-mean":
        assert kept == ("time", "height") and names == {"tas", "time", "time_bnds", "height", "rotated"}, names
        assert o.dimensions["time"].isunlimited() and o["time"].calendar == "noleap"
        assert (o["time_bnds"][:] == i["time_bnds"][:]).all() and "coordinates" not in o["tas"].ncattrs()
    told = {"mean": "mean", "max": "maximum", "variance": "variance", "sum": "sum"}.get(how)
    over = {"t": "time:", "a": "y: x:", "all": "time: height: y: x:"}[name.split("-")[0]]
    assert o["tas"].cell_methods == "area: mean" + (f" {over} {told}" if told else ""), o["tas"].cell_methods
    assert o["tas"].units == {"variance": "(K)^2", "count": "1"}.get(how, "K")
    assert ("standard_name" in o["tas"].ncattrs()) == (how != "count") and "valid_range" not in o["tas"].ncattrs()
    assert o.history.splitlines()[1] == "made" and f"esdm-reduce {how} run/in.nc tas --over" in o.history
o = netCDF4.Dataset("esdm://packed.nc")
assert o["packed"].dtype == "f8" and "scale_factor" not in o["packed"].ncattrs()
assert numpy.allclose(o["packed"][:], packed.mean(axis=0)), "packed"
print("equal")
"""


def reduce(*arguments, check=True):
    return run([tool("esdm-reduce"), *arguments], check=check)


def test_results_are_containers_as_programs_expect_them():
    with Site() as _:
        client(["/usr/bin/python3", "-c", MAKE])
        for how in ("mean", "max", "variance", "count"):
            out = reduce(how, "run/in.nc", "tas", "--over", "time", "--to", f"t-{how}.nc")
            expect(out.stdout == "", out.stdout)
        reduce("mean", "run/in.nc", "tas", "--over", "y,x", "--to", "esdm://a-mean.nc")
        reduce("sum", "run/in.nc", "tas", "--to", "all-sum.nc")
        reduce("mean", "run/in.nc", "packed", "--over", "time", "--to", "packed.nc")
        done = client(["/usr/bin/python3", "-c", CHECK])
        expect("equal" in done.stdout, done.stdout)
        found = run([tool("esdm-find"), "cell_methods = 'area: mean time: maximum'"]).stdout
        expect("t-max.nc" in found and "t-mean.nc" not in found, found)


def test_nothing_is_replaced_without_being_asked():
    with Site() as _:
        client(["/usr/bin/python3", "-c", MAKE])
        reduce("mean", "run/in.nc", "tas", "--over", "time", "--to", "out.nc")
        done = reduce("max", "run/in.nc", "tas", "--over", "time", "--to", "out.nc", check=False)
        expect_error(done, "out.nc", "--force")
        expect(done.returncode == 4, f"{done.returncode}")
        reduce("max", "run/in.nc", "tas", "--over", "time", "--to", "out.nc", "--force")
        header = client(["ncdump", "-h", "esdm://out.nc"]).stdout
        expect("time: maximum" in header, header)
        for name in ("run/in.nc", "esdm://run//in.nc"):
            done = reduce("mean", "run/in.nc", "tas", "--to", name, "--force", check=False)
            expect_error(done, "run/in.nc", "what is read")
        expect("tas(time, height" in client(["ncdump", "-h", "esdm://run/in.nc"]).stdout, "the source is gone")


if __name__ == "__main__":
    main(test_results_are_containers_as_programs_expect_them, test_nothing_is_replaced_without_being_asked)
