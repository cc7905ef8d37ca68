#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-cp to Zarr stores of both versions and back: zarr-python, xarray and TensorStore see what the container
has; a copy that fails leaves nothing, and no folder but a store is replaced."""

import json

from esdmtest import SOURCE, Site, by_size, expect, expect_error, main, need_data, run, tool
from inprocess import MAKE, python

READ = """
import warnings; warnings.simplefilter("ignore")
import zarr, tensorstore as ts
own = xr.open_dataset("esdm://e.nc").load()
for format, folder in ((3, "e.zarr"), (2, "old")):
    z = zarr.open(folder, mode="r")
    assert z.metadata.zarr_format == format and z["v"].chunks == (2, 25) and z["g/w"].shape == (6, 50)
    assert "zstd" in str(z["v"].compressors).lower(), z["v"].compressors
    xr.testing.assert_identical(own, xr.open_zarr(folder).load())
    xr.testing.assert_identical(own, xr.open_zarr(folder, consolidated=False).load())
    xr.testing.assert_identical(xr.open_datatree(folder, engine="zarr").load(), xr.open_datatree("esdm://e.nc").load())
    for name in ("v", "t", "i1", "u8", "f4", "sc", "g/w"):
        driver = {3: "zarr3", 2: "zarr"}[format]
        array = ts.open({"driver": driver, "kvstore": {"driver": "file", "path": f"{folder}/{name}/"}}, read=True).result()
        assert np.array_equal(array.read().result(), z[name][...]), name
assert zarr.open("plain.zarr", mode="r")["v"].compressors == ()
print("ok")
"""


def take_in(site, name, cdl):
    site.file("x.cdl").write_text(cdl)
    site.file("x.nc").unlink(missing_ok=True)
    run(["ncgen", "-k", "nc4", "-o", site.file("x.nc"), site.file("x.cdl")])
    run([tool("esdm-cp"), "-f", site.file("x.nc"), f"esdm://{name}"])


def dump(name, site):
    out = site.file("dump.nc")
    out.unlink(missing_ok=True)
    run([tool("esdm-cp"), f"esdm://{name}", out])
    return run(["ncdump", "-p", "9,17", out]).stdout.split("\n", 1)[1]


def test_programs__see_what_the_container_has():
    with Site(history=10) as site:
        expect(python(site, "zarr", MAKE + "print('made')").stdout == "made\n", "made")
        for options, folder in (([], "e.zarr"), (["--format", "zarr2", "--zstd", "7"], "old"), (["--zstd", "0"], "plain.zarr")):
            run([tool("esdm-cp"), *options, "esdm://e.nc", site.file(folder)])
        told = python(site, "zarr", MAKE[:MAKE.index("with netCDF4")] + READ).stdout
        expect(told.endswith("ok\n"), told)


def test_there_and_back__has_the_same_values():
    files = sorted(need_data("cmip6").rglob("*.nc"), key=lambda f: (f.stat().st_size, f.name))[:by_size(1, 3, 40)]
    files += sorted(need_data("fields").glob("*.nc"), key=lambda f: f.stat().st_size)[:by_size(1, 2, 40)]
    with Site() as site:
        for i, file in enumerate(files):
            run([tool("esdm-cp"), file, f"esdm://{i}.nc"])
            for kind in ("zarr", "zarr2"):
                run([tool("esdm-cp"), "--format", kind, f"esdm://{i}.nc", site.file(f"{i}.{kind}")])
                run([tool("esdm-cp"), site.file(f"{i}.{kind}"), f"esdm://{i}.{kind}"])
                same = run([tool("esdm-diff"), "--json", f"esdm://{i}.nc", f"esdm://{i}.{kind}"], check=False)
                told = json.loads(same.stdout)
                other = [d for d in told["differences"] if not d.startswith(("attribute", "dimension"))]
                expect(told["values"] == [] and not other and told["read_bytes"] > 0, f"{file} as {kind}: {told}")



def test_edges__texts_holes_scalars_and_empty_ones():
    cdl = """netcdf x { dimensions: t = UNLIMITED; e = UNLIMITED; y = 5; x = 7; c = 3; variables: short v(t, y, x); v:_FillValue = -1s;
        v:_ChunkSizes = 2, 2, 3; string s(y); char w(y, c); int one; double none(e, x); float n(y); n:_FillValue = NaNf;
        data: v = %s; s = "a", "", "drei", "v", "f"; w = "ab", "cde", "f"; one = 3; n = 1, NaNf, 3, _, 5; }"""
    with Site() as site:
        take_in(site, "x.nc", cdl % ", ".join(map(str, range(105))))
        for kind in ("zarr", "zarr2"):
            folder = site.file(f"x.{kind}")
            run([tool("esdm-cp"), "--format", kind, "esdm://x.nc", folder])
            chunks = [p for p in (folder / "v").rglob("*") if p.is_file() and p.name[0] != "." and p.name != "zarr.json"]
            expect(len(chunks) == 2 * 3 * 3, f"{kind}: {len(chunks)} chunks")
            run([tool("esdm-cp"), folder, f"esdm://{kind}.nc"])
            for name in ("v", "s", "w", "one", "n"):
                a, b = (run([tool("esdm-run"), "ncdump", "-v", name, f"esdm://{n}.nc"]).stdout.partition("data:")[2]
                        for n in ("x", kind))
                expect(a == b, f"{kind}: {name}:\n{a}{b}")


def test_what_cannot_be__leaves_nothing():
    with Site() as site:
        take_in(site, "x.nc", "netcdf x { dimensions: x = 3; variables: int v(x); data: v = 1, 2, 3; }")
        take_in(site, "y.nc", "netcdf x { dimensions: x = 2; variables: int v(x); data: v = 4, 5; }")
        take_in(site, "types.nc", "netcdf x { types: compound p { int a; }; dimensions: x = 1; variables: p v(x); }")
        take_in(site, "dots.nc", "netcdf x { dimensions: x = 1; variables: int zarr.json(x); }")
        out = site.file("out")
        out.mkdir()
        expect_error(run([tool("esdm-cp"), "esdm://types.nc", out / "t.zarr"], check=False), "user-defined", "/v")
        expect_error(run([tool("esdm-cp"), "esdm://dots.nc", out / "t.zarr"], check=False), "zarr.json")
        expect_error(run([tool("esdm-cp"), "--deflate", "3", "esdm://x.nc", out / "t.zarr"], check=False), "--zstd")
        expect_error(run([tool("esdm-cp"), "--format", "zarr", site.file("x.nc"), "esdm://z.nc"], check=False), "folder")
        expect(not list(out.iterdir()), f"something stayed: {list(out.iterdir())}")
        run([tool("esdm-cp"), "esdm://x.nc", out / "x.zarr"])
        before = sorted(p.name for p in out.rglob("*"))
        expect_error(run([tool("esdm-cp"), "esdm://y.nc", out / "x.zarr"], check=False), "exists", "--force")
        expect(sorted(p.name for p in out.rglob("*")) == before, "it was changed")
        run([tool("esdm-cp"), "-f", "esdm://y.nc", out / "x.zarr"])
        expect(json.loads((out / "x.zarr/v/zarr.json").read_text())["shape"] == [2], "not replaced")
        expect([p.name for p in out.iterdir()] == ["x.zarr"], f"{list(out.iterdir())}")
        precious = out / "tree/x.nc/precious"
        precious.parent.mkdir(parents=True)
        precious.write_text("x")
        expect_error(run([tool("esdm-cp"), "-f", "-r", "--format", "zarr", "esdm://x.nc", f"{out}/tree/"], check=False),
                     "no Zarr store")
        expect(precious.exists() and len(list((out / "tree").iterdir())) == 1, "a folder was replaced")


main(test_programs__see_what_the_container_has, test_there_and_back__has_the_same_values,
     test_edges__texts_holes_scalars_and_empty_ones, test_what_cannot_be__leaves_nothing)
