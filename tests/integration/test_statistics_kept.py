#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-stat --statistics of real fields against numpy; statistics and equal values are kept when
fragments are moved, and when the catalogue is made anew from the targets."""

import json
import shutil

from esdmtest import Site, client, expect, expect_error, main, need_data, need_program, run, tool

STAT = tool("esdm-stat")
TARGETS = [{"name": name, "plugin": "posix", "directory": name} for name in ("one", "two")]

NUMPY = """
import json, sys, netCDF4, numpy as np
told = {}
with netCDF4.Dataset(sys.argv[1]) as nc:
    nc.set_auto_scale(False)
    for name, v in nc.variables.items():
        if v.dtype.kind not in "fiu" or v.dtype.itemsize == 1:
            continue
        x = np.ma.masked_invalid(v[:]) if v.dtype.kind == "f" else np.ma.asarray(v[:])
        x = x.compressed()
        told[name] = [len(x)] + ([float(x.min()), float(x.max()), float(x.astype("f8").sum())]
                                 if len(x) else [])
print(json.dumps(told))
"""

CONSTANTS = """
import netCDF4, numpy as np
with netCDF4.Dataset("esdm://constants.nc", "w") as nc:
    nc.createDimension("t", None)
    nc.createDimension("x", 5000)
    v = nc.createVariable("v", "f8", ("t", "x"), fill_value=-1.)
    w = nc.createVariable("w", "i2", ("t", "x"), chunksizes=(1, 700), zlib=True)
    c = nc.createVariable("c", "S1", ("t", "x"))
    for t in range(6):
        v[t] = [-1., 7.5, np.arange(5000.)][t % 3]
        w[t] = t // 2
        c[t] = np.full(5000, b"a")
        nc.sync()
with netCDF4.Dataset("esdm://constants.nc") as nc:
    v = nc["v"]
    assert all(v[t].mask.all() for t in (0, 3)) and (v[1] == 7.5).all()
    assert (v[2, 7:4000:3] == np.arange(7, 4000, 3)).all() and v[4, 4999] == 7.5
    assert (nc["w"][:] == (np.arange(6) // 2)[:, None]).all()
    assert (nc["c"][:] == b"a").all()
"""


def statistics(name):
    """Of each variable, as esdm-stat tells it; nothing is read."""
    told = json.loads(run([STAT, "--statistics", "--json", name]).stdout)["containers"][0]
    return {d["name"]: d["statistics"] for d in told["root"]["datasets"] if "statistics" in d}


def near(a, b):
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b))


def test_statistics__of_real_fields_are_those_of_numpy():
    files = sorted(need_data("fields").glob("*.nc"), key=lambda p: p.stat().st_size)[:6]
    files += sorted(need_data("cmip6").rglob("*.nc"), key=lambda p: p.stat().st_size)[:3]
    with Site(targets=TARGETS):
        for file in files:
            run([tool("esdm-cp"), file, f"esdm://{file.name}"])
            expected = json.loads(client(["/usr/bin/python3", "-c", NUMPY, file]).stdout)
            told = statistics(file.name)
            expect(set(expected) <= set(told), f"{file}: {expected.keys()} {told.keys()}")
            for name, values in expected.items():
                s = told[name]
                expect(s["exact"] and s["read"] == 0 and s["valid"] == values[0], f"{name}: {s}")
                if len(values) > 1:
                    expect([s["min"], s["max"]] == values[1:3] and near(s["sum"], values[3]),
                           f"{file} {name}: {s} {values}")


def test_statistics__and_constants_survive_moving_and_restoring():
    with Site(targets=TARGETS, metadata={"plugin": "sqlite", "directory": "metadata"}) as site:
        client(["/usr/bin/python3", "-c", CONSTANTS])
        before = statistics("constants.nc")
        expect(before["v"]["exact"] and before["v"]["valid"] == 20000 and before["v"]["max"] == 4999,
               f"{before}")
        told = run([STAT, "--fragments", "constants.nc"]).stdout
        expect(told.count("(constant)") > 10, told)
        stored = sum(p.stat().st_size for p in site.pack_files())
        expect(stored < 2.2 * 40000, f"{stored} bytes: equal values take some")
        text = client(["ncdump", "esdm://constants.nc"]).stdout
        for target in ("one", "two"):
            run([tool("esdm-drain"), "--age", "0s", "--from", target], check=False)
            expect(statistics("constants.nc") == before, f"{target}: {statistics('constants.nc')}")
        run([tool("esdm-fsck"), "--data"])
        run([tool("esdm-cp"), "esdm://constants.nc", "esdm://copy.nc"])
        shutil.rmtree(site.file("metadata"))
        run([tool("esdm-mkfs"), "--restore"])
        expect(statistics("constants.nc") == before, f"{statistics('constants.nc')}")
        expect(client(["ncdump", "esdm://constants.nc"]).stdout == text, "other values")
        run([tool("esdm-fsck"), "--data"])
        run([tool("esdm-gc"), "--yes", "--age", "0s"])
        expect(client(["ncdump", "esdm://constants.nc"]).stdout == text, "gc took something")


def reduced(operation, name, variable, *over):
    told = run([tool("esdm-reduce"), operation, name, variable, "--json", *over]).stdout
    return json.loads(told)["values"]


def test_reduce__is_what_cdo_and_numpy_find():
    need_program("cdo")
    file = min(need_data("cmip6").rglob("ta_*.nc"), key=lambda p: p.stat().st_size)
    operators = {"mean": "mean", "min": "min", "max": "max", "variance": "var"}
    with Site(targets=TARGETS):
        run([tool("esdm-cp"), file, "esdm://f.nc"])
        for operation, operator in operators.items():
            weights = ",weights=FALSE" if operation in ("mean", "variance") else ""
            for over, cdo in (("time", [f"-tim{operator}"]),
                              ("lat,lon", [f"-fld{operator}" + weights])):
                ours = reduced(operation, "f.nc", "ta", "--over", over)
                theirs = [float(v) for v in run(["cdo", "-s", "output", *cdo, "-selname,ta",
                                                 file]).stdout.split()]
                expect(len(ours) == len(theirs), f"{operation} {over}: {len(ours)} {len(theirs)}")
                limit = 2e-4 if operation == "variance" else 2e-5  # six digits are printed
                expect(all(b > 1e19 if a is None else abs(a - b) <= limit * max(abs(b), 1)
                           for a, b in zip(ours, theirs)),
                       f"{operation} {over}: {ours[:3]} {theirs[:3]}")
        whole = reduced("sum", "f.nc", "ta")
        steps = reduced("sum", "f.nc", "ta", "--over", "lat,lon")
        expect(len(whole) == 1 and near(whole[0], sum(steps)), f"{whole} {sum(steps)}")
        expect_error(run([tool("esdm-reduce"), "mean", "f.nc", "ta", "--over", "x"], check=False),
                     "no dimension 'x'")
        expect_error(run([tool("esdm-reduce"), "mean", "f.nc", "none"], check=False), "none")


def test_reduce__unpacks():
    for scale in (0.5, -0.5):
        with Site() as _:
            client(["/usr/bin/python3", "-c", "import netCDF4, numpy, sys\n"
                    "with netCDF4.Dataset('esdm://p.nc', 'w') as d:\n"
                    "    d.createDimension('x', 5)\n"
                    "    v = d.createVariable('tas', 'i2', ('x',), fill_value=-9)\n"
                    "    v.scale_factor = float(sys.argv[1]); v.add_offset = numpy.int16(273)\n"
                    "    v.set_auto_maskandscale(False); v[:] = [1, 2, 3, 6, -9]\n", str(scale)])
            numbers = [273 + scale * n for n in (1, 2, 3, 6)]
            mean = sum(numbers) / 4
            wanted = {"sum": sum(numbers), "mean": mean, "min": min(numbers), "max": max(numbers), "count": 4,
                      "variance": sum((n - mean) ** 2 for n in numbers) / 4}
            for operation, number in wanted.items():
                told = json.loads(run([tool("esdm-reduce"), operation, "p.nc", "tas", "--json"]).stdout)["values"]
                expect(len(told) == 1 and abs(told[0] - number) < 1e-9, f"{operation}: {told}, {number}")


main(test_reduce__unpacks, test_reduce__is_what_cdo_and_numpy_find, test_statistics__of_real_fields_are_those_of_numpy,
     test_statistics__and_constants_survive_moving_and_restoring)
