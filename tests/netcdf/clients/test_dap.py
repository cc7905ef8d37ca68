#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Containers for clients of OPeNDAP: libnetcdf's own (ncdump, netCDF4), pydap and xarray see what the container
has; constraint expressions give what they say, and wrong ones an error."""

import json
import re
import struct
import subprocess

from clients import python_of
from esdmtest import SOURCE, Site, expect, main, need_data, run, skip, tool
from served import ask, serving

CDL = SOURCE / "tests/netcdf/clients"

XARRAY = """
import sys, warnings; warnings.simplefilter("ignore")
import numpy as np, xarray as xr
port, file = sys.argv[1:]
own, other = xr.open_dataset(file), xr.open_dataset(f"http://localhost:{port}/dap/real.nc", engine="pydap")
assert set(own.variables) == set(other.variables), set(own.variables) ^ set(other.variables)
for name in own.variables:
    assert own[name].dims == other[name].dims and own[name].attrs == other[name].attrs, (name, other[name].attrs)
    xr.testing.assert_equal(own[name].variable.load(), other[name].variable.load())
assert set(own.attrs) <= set(other.attrs)
part = {d: slice(1, None, 2) for d in own.sizes}
name = max(own.data_vars, key=lambda n: own[n].size)
xr.testing.assert_equal(own[name].isel(part, missing_dims="ignore").load().variable, other[name].isel(part, missing_dims="ignore").load().variable)
types = xr.open_dataset(f"http://localhost:{port}/dap/types.nc", engine="pydap", decode_cf=False)
assert types.b.values.tolist() == [1, -127, -128] and types.ub.values.tolist() == [0, 7, 255]
assert types.ui.values.tolist() == [0, 1, 4294967295] and types.forecast_w.dims == ("forecast_level", "y")
assert [str(v.decode() if isinstance(v, bytes) else v) for v in types.name.values] == ["first", "second", ""]
missing = xr.open_dataset(f"http://localhost:{port}/dap/missing.nc", engine="pydap")
assert np.isnan(missing.fill.values).tolist() == [True, False, True], missing.fill.values
assert np.isnan(missing.former.values).tolist() == [True, False, False], missing.former.values
print("ok")
"""
# Clients that read attributes as doubles must find the float32 that is meant.
MISSING = """netcdf missing { dimensions: x = 3; variables: float fill(x); fill:_FillValue = 1e20f;
float former(x); former:missing_value = 9.96921e36f; data: fill = _, 1.5, _; former = 9.96921e36, 0.1, 2; }
"""


def need_dap():
    if subprocess.run(["nc-config", "--has-dap"], capture_output=True, text=True, check=False).stdout.strip() != "yes":
        skip("libnetcdf has no client of OPeNDAP here")


def take(site, name, file):
    run([tool("esdm-cp"), file, f"esdm://{name}"])


def make(site):
    for name, kind in (("all_types", "nc4"), ("classic", "nc3")):
        run(["ncgen", "-k", kind, "-o", site.file(f"{name}.nc"), CDL / f"{name}.cdl"])
    take(site, "types.nc", site.file("all_types.nc"))
    take(site, "classic.nc", site.file("classic.nc"))


def dump(source):
    """What ncdump says, in an order of its own; without what the client adds."""
    text = run(["ncdump", "-p", "9,17", source]).stdout
    text = re.sub(r"(?m)^\s*\w*:DODS[._]\S* = .*\n", "", text).replace("\n// global attributes:\n}", "}")
    text = text.replace('\\n",\n\t\t\t"', "\\n")  # as of files that are no classic ones
    text = re.sub(r"UNLIMITED ; // \((\d+) currently\)", r"\1 ;", text)  # the client knows one such dimension
    head, _, data = text.partition("\ndata:\n")
    return sorted(head.split("\n")[1:]), sorted(d.strip() for d in data.rstrip("}\n").split(" ;"))


def test_ncdump__sees_what_the_container_has():
    need_dap()
    with Site() as site:
        make(site)
        real = min(need_data("cmip6").rglob("*.nc"), key=lambda f: (f.stat().st_size, f.name))
        take(site, "exp/real.nc", real)
        site.file("g.cdl").write_text(
            "netcdf g { dimensions: t = UNLIMITED; x = 3; e = UNLIMITED; variables: double t(t); float x(x); int v(t, x); "
            'v:units = "a\\"b\\\\c"; short none(e); char c(t, x); data: t = 1, 2; x = 1, 2, 3; v = 1, 2, 3, 4, 5, 6; '
            'c = "abc", "d"; }')
        run(["ncgen", "-k", "nc4", "-o", site.file("g.nc"), site.file("g.cdl")])
        take(site, "g.nc", site.file("g.nc"))
        with serving(site) as (port, _):
            url = f"http://localhost:{port}/dap/"
            expect(dump(url + "exp/real.nc") == dump(real), f"another {real}")
            head, data = dump(url + "g.nc")
            expect("\tint v(t, x) ;" in head and '\t\t:esdm_left_out = "none" ;' in head, f"{head}")
            expect("t = UNLIMITED ; // (2 currently)" in run(["ncdump", "-h", url + "g.nc"]).stdout, "UNLIMITED")
            expect(any("4, 5, 6" in d for d in data) and any('"d"' in d for d in data), f"{data}")
            expect(any('v:units = "a\\"b\\\\c"' in line for line in head), f"{head}")
            head, data = dump(url + "classic.nc")
            own = dump(site.file("classic.nc"))
            expect([line for line in head if "flag" not in line] == [line for line in own[0] if "flag" not in line],
                   f"{head}\n{own[0]}")
            expect(data == own[1], f"{data}\n{own[1]}")
            head, data = dump(url + "types.nc")
            expect("\tdouble ui(x) ;" in head and '\t\t:esdm_left_out = "i64 u64" ;' in head, f"{head}")
            expect(any("4294967295" in d for d in data), f"{data}")
            expect(run(["ncdump", "-v", "v", url + "g.nc@1?v[1][1:1:2]"]).stdout.count("5, 6") == 1, "a hyperslab")


def test_unlimited_dimensions__that_clients_cannot_take():
    """Files that came over OPeNDAP say so in an attribute, which clients take for the server's own word; libnetcdf's
    opens nothing where an unlimited dimension is not the first of a variable."""
    need_dap()
    files = {"stale": 'record = UNLIMITED; time = 2; x = 3; variables: int v(record, time, x); double time(time); '
                      ':DODS_EXTRA.Unlimited_Dimension = "time"; data: v = 1, 2, 3, 4, 5, 6; time = 7, 8; }',
             "second": 'x = 3; t = UNLIMITED; variables: int v(x, t); double t(t); data: v = {1}, {2}, {3}; t = 9; }',
             "fixed": 'x = 3; time = 2; variables: int v(x, time); :DODS_EXTRA.Unlimited_Dimension = "time"; '
                      'data: v = 1, 2, 3, 4, 5, 6; }'}
    with Site() as site:
        for name, text in files.items():
            site.file(f"{name}.cdl").write_text(f"netcdf {name} {{ dimensions: {text}")
            run(["ncgen", "-k", "nc4", "-o", site.file(f"{name}.nc"), site.file(f"{name}.cdl")])
            take(site, f"{name}.nc", site.file(f"{name}.nc"))
        with serving(site) as (port, _):
            for name in files:
                _, data = dump(f"http://localhost:{port}/dap/{name}.nc")
                _, own = dump(site.file(f"{name}.nc"))
                numbers = [re.findall(r"[a-z]+ =|[0-9]+", " ".join(d)) for d in (data, own)]
                expect(numbers[0] == numbers[1], f"{name}: {data}")
            head = run(["ncdump", "-h", f"http://localhost:{port}/dap/stale.nc"]).stdout
            expect("record = UNLIMITED" in head and "time = 2 ;" in head and 'Dimension = "time"' not in head, head)


def test_xarray__through_pydap():
    python = python_of("zarr")
    with Site() as site:
        make(site)
        real = min(need_data("cmip6").rglob("*.nc"), key=lambda f: (f.stat().st_size, f.name))
        take(site, "real.nc", real)
        for name in ("words",):  # pydap knows ASCII alone
            run([tool("esdm-rm"), "types.nc"])
            text = (CDL / "all_types.cdl").read_text()
            site.file("ascii.cdl").write_text(re.sub(r"[^\x00-\x7f]", "x", text))
            run(["ncgen", "-k", "nc4", "-o", site.file(f"{name}.nc"), site.file("ascii.cdl")])
            take(site, "types.nc", site.file(f"{name}.nc"))
        site.file("missing.cdl").write_text(MISSING)
        run(["ncgen", "-k", "nc4", "-o", site.file("missing.nc"), site.file("missing.cdl")])
        take(site, "missing.nc", site.file("missing.nc"))
        with serving(site) as (port, _):
            told = run([python, "-c", XARRAY, port, real]).stdout
            expect(told == "ok\n", told)


def test_constraints__and_what_is_wrong_with_them():
    with Site() as site:
        site.file("g.cdl").write_text(
            "netcdf g { dimensions: t = 4; x = 3; variables: double t(t); float x(x); short v(t, x); int s; long w(t); "
            "data: t = 1, 2, 3, 4; x = 1, 2, 3; v = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12; s = 7; w = 1, 2, 3, 4; "
            "group: a { variables: int b(t); data: b = 1, 2, 3, 4; } }")
        run(["ncgen", "-k", "nc4", "-o", site.file("g.nc"), site.file("g.cdl")])
        take(site, "g.nc", site.file("g.nc"))
        with serving(site) as (port, _):
            def get(kind, expression=""):
                return ask(port, f"/dap/g.nc.{kind}{expression}")

            def values(expression, form):
                reply, body = get("dods", expression)
                expect(reply.status == 200 and reply.getheader("Content-Description") == "dods_data", f"{body[:200]}")
                head, data = body.split(b"\nData:\n", 1)
                expect(head.decode() == get("dds", expression)[1].decode(), f"{head}")
                return struct.unpack(">" + form, data)
            dds = get("dds")[1].decode()
            expect("Grid {" in dds and "Int16 v[t = 4][x = 3];" in dds and "Int32 a_b[t = 4];" in dds, dds)
            expect(values("?v[1:2:3][2]", "2I2i2I2d2If") == (2, 2, 6, 12, 2, 2, 2.0, 4.0, 1, 1, 3.0), "a grid")
            expect(values("?v.v[0:1][0],s", "2I2ii") == (2, 2, 1, 4, 7), "an array of a grid")
            expect(values("?v.x[2],v.t%5B1%5D", "2Id2If") == (1, 1, 2.0, 1, 1, 3.0), "maps of a grid")
            expect(values("?a_b[3]", "2Ii2Id") == (1, 1, 4, 1, 1, 4.0), "in a group")
            expect("Structure {" in get("dds", "?v.x")[1].decode(), "a structure")
            for wrong in ("?v[4][0]", "?v[0]", "?v[0][0][0]", "?v[2:1][0]", "?v[0:0:1][0]", "?none", "?v.none", "?v[a][0]",
                          "?v[0][0", "?v&t>1", "?geogrid(v)", "?v[18446744073709551617][0]", "?v=1", "?,", "?v[0:1:2:3][0]",
                          "?s[0]", "?v.v.v"):
                for kind in ("dds", "dods"):
                    reply, body = get(kind, wrong)
                    expect(reply.status == 400 and body.startswith(b"Error {") and
                           reply.getheader("Content-Description") == "dods_error", f"{wrong}: {reply.status} {body[:200]}")
            for path, status in (("/dap/g.nc", 404), ("/dap/none.nc.dds", 404), ("/dap/g.nc.html", 404), ("/dap/.dds", 400)):
                reply, body = ask(port, path)
                expect(reply.status == status, f"{path}: {reply.status} {body[:100]}")
            reply, body = ask(port, "/dap/g.nc.dods", "HEAD")
            expect(reply.status == 200 and body == b"" and reply.getheader("ETag"), "HEAD")
            expect(json.loads(ask(port, "/api/list")[1])["containers"][0]["name"] == "g.nc", "the server goes on")


main(test_ncdump__sees_what_the_container_has, test_unlimited_dimensions__that_clients_cannot_take, test_xarray__through_pydap,
     test_constraints__and_what_is_wrong_with_them)
