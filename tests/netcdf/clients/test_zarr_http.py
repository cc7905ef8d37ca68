#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Containers as Zarr over HTTP: zarr-python, xarray and TensorStore see what the container has; keys, tags,
ranges and origins are as the protocols say."""

import json

from esdmtest import Site, expect, expect_error, main, run, tool
from inprocess import MAKE, python
from served import ask, serving

IMPORTS = "import warnings; warnings.simplefilter('ignore'); import zarr\n"

READ = """
URL = "http://localhost:%d/zarr/"
z = zarr.open(URL + "e.nc", mode="r")
assert sorted(z.array_keys()) == sorted(xr.open_dataset("esdm://e.nc").variables), list(z.array_keys())
assert z["v"].chunks == (2, 25) and z["v"][1, :3].tolist() == [2, 4, 6]
assert z["s"][3] == "n\\u00e43" and z["c4"][7].tolist() == [b"a", b"b", b"c", b"d"] and z["sc"][()] == 3
assert z["u8"].fill_value == 18446744073709551614 and z["g/w"].shape == (6, 50)
assert z["f4"].metadata.dimension_names == ("x",) and z["v"].fill_value == -9
own = xr.open_dataset("esdm://e.nc").load()
xr.testing.assert_identical(own, xr.open_zarr(URL + "e.nc").load())
xr.testing.assert_identical(own, xr.open_zarr(URL + "e.nc@1").load())
xr.testing.assert_identical(xr.open_datatree(URL + "e.nc", engine="zarr").load(),
                            xr.open_datatree("esdm://e.nc").load())
import tensorstore as ts
for name in ("v", "t", "i1", "u8", "f4", "sc", "g/w"):
    array = ts.open({"driver": "zarr3", "kvstore": URL + "e.nc/" + name + "/"}, read=True).result()
    mine = z[name]
    assert array.shape == mine.shape and (array.chunk_layout.read_chunk.shape or ()) == mine.chunks, name
    assert np.array_equal(array.read().result(), mine[...]), name
    assert list(array.domain.labels) == list(mine.metadata.dimension_names), name
with netCDF4.Dataset("esdm://e.nc", "a") as d:
    d["t"][6], d["v"][6] = 6, np.arange(50)
    d["f4"][:] = 7
grown = xr.open_zarr(URL + "e.nc").load()
xr.testing.assert_identical(grown, xr.open_dataset("esdm://e.nc").load())
assert grown.sizes["t"] == 7
xr.testing.assert_identical(own, xr.open_zarr(URL + "e.nc@1").load())
print("ok")
"""

CDL = """netcdf x { types: compound pair { int a; int b; }; dimensions: t = UNLIMITED; y = 3; x = 4;
    variables: short v(t, y, x); v:_FillValue = -1s; v:units = "K\\"\\n"; v:range = 0.1f, NaNf; string s(t);
    pair p(x); float u(y, x); v:_ChunkSizes = 2, 2, 3;
    data: v = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12; s = "one"; }"""


def test_programs__see_what_the_container_has():
    with Site(history=10) as site:
        made = python(site, "zarr", MAKE + "print('made')").stdout
        expect(made == "made\n", made)
        with serving(site) as (port, _):
            script = MAKE[:MAKE.index("with netCDF4")] + IMPORTS + READ % port
            told = python(site, "zarr", script).stdout
            expect(told.endswith("ok\n"), told)


def make(site):
    site.file("x.cdl").write_text(CDL)
    run(["ncgen", "-k", "nc4", "-o", site.file("x.nc"), site.file("x.cdl")])
    run([tool("esdm-cp"), site.file("x.nc"), "esdm://exp/x.nc"])


def test_keys__and_what_they_give():
    with Site(history=10) as site:
        make(site)
        with serving(site) as (port, _):
            def get(key, **headers):
                return ask(port, "/zarr/exp/x.nc" + key, headers=headers)
            root = json.loads(get("/zarr.json")[1])
            nodes = root["consolidated_metadata"]["metadata"]
            expect(sorted(nodes) == ["s", "u", "v"], f"{sorted(nodes)}")
            v = json.loads(get("/v/zarr.json")[1])
            expect(v == nodes["v"] and v["shape"] == [1, 3, 4], f"{v}")
            expect(v["chunk_grid"]["configuration"]["chunk_shape"] == [2, 2, 3], f"{v}")
            expect(v["attributes"]["units"] == 'K"\n' and v["attributes"]["range"][1] == "NaN", f"{v}")
            reply, chunk = get("/v/c/0/1/1")
            values = [int.from_bytes(chunk[i:i + 2], "little", signed=True) for i in range(0, len(chunk), 2)]
            expect(values == [12, -1, -1, -1, -1, -1] + [-1] * 6, f"a chunk at the end: {values}")
            expect(reply.getheader("Content-Location") == "/zarr/exp/x.nc@1/v/c/0/1/1", "Content-Location")
            tag = reply.getheader("ETag")
            reply, body = get("/v/c/0/1/1", **{"If-None-Match": tag})
            expect(reply.status == 304 and body == b"" and reply.getheader("ETag") == tag, "304")
            reply, body = get("/v/c/0/1/1", Range="bytes=1-4")
            expect(reply.status == 206 and body == chunk[1:5], "a range")
            reply, body = ask(port, "/zarr/exp/x.nc/v/c/0/1/1", "HEAD")
            expect(reply.status == 200 and reply.getheader("Content-Length") == "24" and body == b"", "HEAD")
            texts = get("/s/c/0")[1]
            count = int.from_bytes(texts[:4], "little")
            expect(texts[4:11] == b"\x03\x00\x00\x00one" and len(texts) == 4 + 4 * count + 3, f"texts: {texts[:20]}")
            for wrong in ("", "/", "/v", "/v/c", "/v/c/0/0", "/v/c/1/0/0", "/v/c/00/0/0", "/v/c/-1/0/0", "/p/zarr.json",
                          "/v/c/0/0/0/0", "/v/c/18446744073709551616/0/0", "/none/zarr.json", "/.zgroup", "/p/c/0",
                          "/v/c/0/0/", "/c/0", "//zarr.json"):
                reply, body = get(wrong)
                expect(reply.status == 404 and json.loads(body)["error"], f"{wrong}: {reply.status} {body[:100]}")
            expect(ask(port, "/zarr/exp/x.nc@9/zarr.json")[0].status == 404, "a snapshot that is not there")
            expect(ask(port, "/zarr/exp/zarr.json")[0].status == 404, "a folder")
            expect(ask(port, "/zarr/../exp/x.nc/zarr.json")[0].status == 404, "..")
            run([tool("esdm-cp"), "-f", site.file("x.nc"), "esdm://exp/x.nc"])
            expect(get("/v/c/0/1/1", **{"If-None-Match": tag})[0].status == 200, "the tag of another container")


def test_pages_of_other_places__need_to_be_allowed():
    with Site() as site:
        make(site)
        page = {"Origin": "https://viewer.example"}
        path = "/zarr/exp/x.nc/zarr.json"
        with serving(site) as (port, _):
            expect(ask(port, path, headers=page)[0].getheader("Access-Control-Allow-Origin") is None, "any page reads")
            expect(ask(port, path, "OPTIONS", page)[0].status == 405, "OPTIONS")
        with serving(site, "--allow-origin", "https://viewer.example") as (port, _):
            reply, _ = ask(port, path, headers=page)
            expect(reply.getheader("Access-Control-Allow-Origin") == page["Origin"], "not allowed")
            expect("ETag" in reply.getheader("Access-Control-Expose-Headers") and reply.getheader("Vary") == "Origin", "CORS")
            other = ask(port, path, headers={"Origin": "https://other.example"})[0]
            expect(other.getheader("Access-Control-Allow-Origin") is None and other.getheader("Vary") == "Origin", "other")
            reply, body = ask(port, path, "OPTIONS", page)
            expect(reply.status == 204 and body == b"" and "Range" in reply.getheader("Access-Control-Allow-Headers"),
                   "preflight")
        with serving(site, "--allow-origin", "*") as (port, _):
            expect(ask(port, path, headers=page)[0].getheader("Access-Control-Allow-Origin") == "*", "*")
        expect_error(run([tool("esdm-serve"), "--allow-origin"], check=False), "origin")


main(test_programs__see_what_the_container_has, test_keys__and_what_they_give,
     test_pages_of_other_places__need_to_be_allowed)
