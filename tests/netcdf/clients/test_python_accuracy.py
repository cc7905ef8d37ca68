#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Statements of accuracy as objects of Python, and what was kept of them."""

from esdmtest import Site, expect, main
from inprocess import names, python

RAISES = """
def raises(kind, work, *words):
    try:
        work()
    except kind as error:
        assert all(word in str(error) for word in words), (words, str(error))
        return
    raise SystemExit(f"no {kind.__name__} with {words}")
"""

STATEMENTS = RAISES + """
import pickle, sys
import esdm
a = esdm.accuracy(tas="abs=0.01 K; mode=archive")
assert not {"numpy", "xarray", "netCDF4"} & set(sys.modules), "statements need none of these"
assert isinstance(a, esdm.Accuracy) and dict(a) == {"tas": "abs=0.01 K; mode=archive"}
assert a == {"tas": "abs=0.01 K; mode=archive"} and len(a) == 1 and hash(a) == hash(esdm.accuracy(a))
assert eval(repr(a)) == a and pickle.loads(pickle.dumps(a)) == a
raises(TypeError, lambda: exec("a['tas'] = 'abs=1'"), "assignment")
b = esdm.accuracy({"ocean/tos": "digits=4", "/x": "rel=1 %"}, y="bits=9")
assert list(b) == ["ocean/tos", "x", "y"] and list(esdm.accuracy()) == []

def attributes(text):
    return esdm.accuracy(v=text).attributes("v")
assert a.attributes("tas") == {"esdm_absolute_tolerance": "0.01 K", "esdm_mode": "archive"}
# As esdm_accuracy_parse() cuts texts: commas divide quantities, but not regions.
assert attributes("abs=0.01 K, mode=archive") == a.attributes("tas")
assert attributes("abs=1;box=-10,35,30,60: abs=0.1, rel=1 %; level=850 hPa: abs=0.2") == {
    "esdm_absolute_tolerance": "1", "esdm_regions": "box=-10,35,30,60: abs=0.1, rel=1 %; level=850 hPa: abs=0.2"}
assert attributes("exact=1 2; exact=3; abs=1; mode=fast; mode=archive") == {
    "esdm_exact_values": "1 2 3", "esdm_absolute_tolerance": "1", "esdm_mode": "archive"}

raises(esdm.EsdmError, lambda: esdm.accuracy(tas="abs=often"), "accuracy of 'tas': ", "absolute_tolerance", "often")
raises(esdm.EsdmError, lambda: esdm.accuracy(tas="absolutely=1"), "accuracy of 'tas': ", "there is no quantity 'absolutely'")
# The strictest must not be lost: the last one would win among attributes.
raises(ValueError, lambda: esdm.accuracy(tas="abs=0.01 K; abs=0.1 K"), "accuracy of 'tas': absolute_tolerance is stated twice")
raises(ValueError, lambda: esdm.accuracy({"tas": "abs=1"}, tas="abs=2"), "of 'tas' something is stated twice")
raises(TypeError, lambda: esdm.accuracy("abs=1"), "of which variables")
raises(TypeError, lambda: esdm.accuracy(tas=0.01), "'tas': 0.01")
raises(TypeError, lambda: esdm.accuracy({3: "abs=1"}), "3: 'abs=1'")
print("ok")
"""

APPLIED = RAISES + """
import netCDF4, numpy as np, xarray as xr, esdm
rng = np.random.default_rng(1)
values = 280 + rng.random((4, 5000)).astype("f4")
a = esdm.accuracy({"ocean/deep/tos": "abs=10 mK"}, tas="rel=0.1 %, mode=archive")
def make(name, format="NETCDF4"):
    d = netCDF4.Dataset(name, "w", format=format)
    for group in ("/",) if format != "NETCDF4" else ("/", "ocean/deep"):
        g = d if group == "/" else d.createGroup(group)
        g.createDimension("t", None); g.createDimension("x", 5000)
        for variable in ("tas", "pr") if g is d else ("tos",):
            g.createVariable(variable, "f4", ("t", "x")).units = "K"
    return d
with make("esdm://groups.nc") as d:
    raises(ValueError, lambda: esdm.accuracy(tsa="abs=1").apply(d), "there is no variable 'tsa'; did you mean 'tas'?")
    raises(ValueError, lambda: esdm.accuracy(tos="abs=1").apply(d), "did you mean 'ocean/deep/tos'?")
    raises(ValueError, lambda: esdm.accuracy(zzz="abs=1").apply(d), "there is no variable 'zzz'")
    raises(esdm.EsdmError, lambda: esdm.accuracy(pr="rel=1 %", tas="abs=1 m").apply(d), "accuracy of 'tas': ", "'m'", "'K'")
    d.createVariable("names", str, ("x",))
    raises(ValueError, lambda: esdm.accuracy(pr="rel=1 %", names="abs=1").apply(d), "accuracy of 'names': ", "not of texts")
    assert not [n for n in d["pr"].ncattrs() + d["tas"].ncattrs() if n != "units"], "all or nothing"
    assert a.apply(d) is d
    for v in (d["tas"], d["pr"], d["ocean/deep/tos"]):
        v[:] = values
with netCDF4.Dataset("esdm://groups.nc") as d:
    errors = {n: abs(d[n][:].astype("f8") - values).max() for n in ("tas", "pr", "ocean/deep/tos")}
    assert errors["pr"] == 0 and 0 < errors["tas"] <= 0.2811 and 0 < errors["ocean/deep/tos"] <= 0.01, errors
# What programs write into plain files is taken from there by esdm-cp.
with make("plain.nc", "NETCDF4_CLASSIC") as d:
    esdm.accuracy(tas="rel=1 %; finest=0.5 K").apply(d)
    assert d["tas"].esdm_relative_finest == "0.5 K"
# Bits and digits as CF and netCDF count them.
assert esdm.accuracy(tas="nsb=9; nsd=3").attributes("tas") == {"esdm_nsb": "9", "esdm_nsd": "3"}
raises(esdm.EsdmError, lambda: esdm.accuracy(tas="nsb=52"), "accuracy of 'tas': ", "whole number from 1 to 51")
with make("esdm://places.nc") as d:
    esdm.accuracy(tas="nsb=9").apply(d)
    d["tas"][:] = values
with netCDF4.Dataset("esdm://places.nc") as d:
    assert d["tas"].quantization_nsb == 9, d["tas"].ncattrs()
# Groups alone know their own names.
with make("group.nc") as d:
    esdm.accuracy(tos="digits=3").apply(d["ocean/deep"])
    assert d["ocean/deep/tos"].esdm_significant_digits == "3"

own = xr.Dataset({"tas": (("t", "x"), values, {"units": "K"}), "groups": ("x", values[0]), "children": 1})
stated = esdm.accuracy(tas="abs=0.01 K").apply(own)
assert stated.tas.attrs == {"units": "K", "esdm_absolute_tolerance": "0.01 K"} and own.tas.attrs == {"units": "K"}
assert np.shares_memory(stated.tas.values, own.tas.values)
raises(ValueError, lambda: esdm.accuracy(children="abs=1", tsa="abs=1").apply(own), "did you mean 'tas'?")
raises(TypeError, lambda: a.apply({"tas": 1}), "not dict")
raises(TypeError, lambda: a.apply(own.tas), "not DataArray")
raises(esdm.EsdmError, lambda: esdm.write(own, "no.nc", accuracy=esdm.accuracy(tas="abs=1 m")), "accuracy of 'tas': ")
raises(TypeError, lambda: own.esdm.to("no.nc", accuracy="abs=1"), "of which variables")
own.esdm.to("run.nc", accuracy=esdm.accuracy(tas="abs=0.01 K, mode=archive"))
error = abs(xr.open_dataset("esdm://run.nc").tas.values.astype("f8") - values).max()
assert 0 < error <= 0.01, error
print("ok")
"""


def test_statements_are_checked_at_once():
    with Site() as site:
        for kind in ("debian", "pypi"):
            told = python(site, kind, STATEMENTS).stdout
            expect(told == "ok\n", told)


def test_statements_hold_where_they_are_applied():
    with Site() as site:
        for kind in ("pypi", "debian"):
            told = python(site, kind, APPLIED).stdout
            expect(told == "ok\n" and names() == ["groups.nc", "places.nc", "run.nc"], f"{told}{names()}")


main(test_statements_are_checked_at_once, test_statements_hold_where_they_are_applied)
