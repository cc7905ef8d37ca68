#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Containers that refer to NetCDF files and Zarr stores on a web server equal these files; objects that were
changed, cut off, removed or moved are errors that name URL and chunk, whatever the server tells about
them; failures that pass are tried again; nothing is asked for that the site does not allow."""

import json
import os
import random
import shutil
import sys
import time

from esdmtest import BUILD, SEED, Site, by_size, expect, expect_error, main, run, skip, some, tool
from test_reference_update import counts, python, store, update
from test_references import EQUAL, READ, make, set_roots
from webserver import Authority, Web

REF = tool("esdm-ref")
FSCK = tool("esdm-fsck")

if not (BUILD / "esdm/esdm-source-http.so").exists():
    skip("built without libcurl")


def age(folder):
    """As if all had been written a minute ago: clocks of web servers count seconds."""
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, (time.time() - 60, time.time() - 60))


def netcdf_files(folder):
    return sorted(p.name for p in folder.glob("*.nc"))


def test_netcdf_files():
    with Site() as site:
        folder = make(site)
        age(folder)
        names = netcdf_files(folder)
        for options in ({}, {"etags": False}, {"etags": "weak"}, {"no_head": True}):
            names = some(names, max(1, len(names) // by_size(4, 4, 1))) if options else names
            with Web(folder, **options) as web:
                set_roots(site, web.url)
                for name in names:
                    run([REF, "-q", "-f", f"{web.url}/{name}", f"esdm://web/{name}"])
                # Local files are not below the places that the site states.
                expect_error(run([REF, "-q", folder / "odd.nc", "esdm://no.nc"], check=False), "references.roots")
                python(EQUAL, "parts", *[f"{folder / n}=esdm://web/{n}" for n in names])
                told = json.loads(run([REF, "--json", f"{web.url}/whole.nc", "esdm://again/"]).stdout)
                expect(told["copies"][0]["target"] == "esdm://again/whole.nc" and told["copies"][0]["referred"] > 10, told)
                run([tool("esdm-rm"), "-y", "again/whole.nc"])
                if not options:  # else others refer to a server that has ended
                    run([FSCK])
                    run([FSCK, "--data"])
        # What was read, was read from there.
        expect_error(python(READ, f"esdm://web/{names[0]}", check=False), names[0], "no answer")


CLASSIC = """
import sys, netCDF4, numpy as np
with netCDF4.Dataset(sys.argv[1], "w", format=sys.argv[2]) as nc:
    nc.history = "x" * int(sys.argv[3])
    for name, n in (("t", None), ("y", 300), ("x", 400)):
        nc.createDimension(name, n)
    fixed = nc.createVariable("fixed", "f8", ("y", "x"))
    a, b = (nc.createVariable(n, "f4", ("t", "y", "x")) for n in "ab")
    fixed[:] = np.arange(120000).reshape(300, 400)
    for t in range(9):
        a[t], b[t] = np.arange(120000).reshape(300, 400) + t, 7 * t
"""


def test_classic_files_cost_few_requests():
    """The header is read by one or two ranges, values by those that are wanted; what contradicts itself is an error."""
    with Site() as site:
        folder = site.folder / "files"
        folder.mkdir()
        for name, form, header, most in (("one.nc", "NETCDF3_CLASSIC", 10, 1), ("two.nc", "NETCDF3_64BIT_OFFSET", 300000, 2),
                                         ("five.nc", "NETCDF3_64BIT_DATA", 10, 1)):
            python(CLASSIC, folder / name, form, header)
            age(folder)
            with Web(folder) as web:
                set_roots(site, web.url)
                run([REF, "-q", f"{web.url}/{name}", f"esdm://{name}"])
                expect(len(web.seen("GET")) <= most, f"{name}: {web.seen()}")
                del web.requests[:]
                python("""
import sys, netCDF4, numpy as np
with netCDF4.Dataset(sys.argv[1]) as nc:
    assert np.array_equal(nc["a"][6, 100:103], (np.arange(120000).reshape(300, 400) + 6)[100:103])
""", f"esdm://{name}")
                ranges = [h["Range"].removeprefix("bytes=").split("-") for _, _, h in web.seen("GET")]
                expect(0 < sum(int(b) - int(a) + 1 for a, b in ranges) <= 3 * 400 * 4, f"{name}: {ranges}")
                run([REF, "-q", "-f", "--verify", f"{web.url}/{name}", f"esdm://{name}"])
                run([tool("esdm-cp"), "-q", f"{web.url}/{name}", f"esdm://own/{name}"])
            python(EQUAL, "parts", f"{folder / name}=esdm://own/{name}")
        whole = (folder / "one.nc").read_bytes()
        with Web(folder) as web:
            set_roots(site, web.url)
            for data, words in ((whole[:-1000], ["cut off"]), (whole[:40], ["one.nc", "header"]), (b"CDF\1" + b"\xff" * 90, ["one.nc", "header"]),
                                (b"CDF\7" + whole[4:], ["one.nc", "no netCDF"]), (b"CDF", ["one.nc"])):
                (folder / "one.nc").write_bytes(data)
                expect_error(run([REF, "-q", "-f", f"{web.url}/one.nc", "esdm://one.nc"], check=False), *words)


STORE = """
import sys, json, pathlib, numpy as np, zlib
folder, values = pathlib.Path(sys.argv[1]), np.arange(60, dtype="<f4").reshape(6, 10)
def put(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
array = {"zarr_format": 2, "shape": [6, 10], "chunks": [4, 4], "dtype": "<f4", "compressor": {"id": "zlib", "level": 1},
         "fill_value": -1.0, "order": "C", "filters": None}
attributes = {"_ARRAY_DIMENSIONS": ["y", "x"], "units": "K"}
plain = dict(array, compressor=None, fill_value=0.0)
put(folder / ".zgroup", {"zarr_format": 2})
put(folder / ".zmetadata", {"zarr_consolidated_format": 1, "metadata": {
    ".zgroup": {"zarr_format": 2}, "a b/v/.zarray": array, "a b/v/.zattrs": attributes, "a b/.zgroup": {"zarr_format": 2},
    "plain/.zarray": plain, "plain/.zattrs": attributes}})
put(folder / "a b/.zgroup", {"zarr_format": 2})
put(folder / "a b/v/.zarray", array)
put(folder / "a b/v/.zattrs", attributes)
put(folder / "plain/.zarray", plain)
put(folder / "plain/.zattrs", attributes)
for y in range(2):
    for x in range(3):
        chunk = np.full((4, 4), -1, "<f4")
        part = values[4 * y:4 * y + 4, 4 * x:4 * x + 4]
        chunk[:part.shape[0], :part.shape[1]] = part
        if (y, x) != (1, 1):  # one is missing
            put(folder / f"a b/v/{y}.{x}", zlib.compress(chunk.tobytes()))
        put(folder / f"plain/{y}.{x}", chunk.tobytes())
# Version 3, in shards of two by two chunks.
shard = {"zarr_format": 3, "node_type": "array", "shape": [6, 10], "data_type": "float32",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [8, 8]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "fill_value": 0,
    "dimension_names": ["y", "x"],
    "codecs": [{"name": "sharding_indexed", "configuration": {"chunk_shape": [4, 4],
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "index_location": "end"}}], "attributes": {}}
put(pathlib.Path(sys.argv[2]) / "zarr.json", shard)
whole = np.zeros((8, 16), "<f4")
whole[:6, :10] = values
for x in range(2):
    data, index = b"", []
    for j in range(2):
        for i in range(2):
            index += [len(data), 64]
            data += whole[4 * j:4 * j + 4, 8 * x + 4 * i:8 * x + 4 * i + 4].tobytes()
    put(pathlib.Path(sys.argv[2]) / f"c/0/{x}", data + np.array(index, "<u8").tobytes())
"""


def test_zarr_stores():
    with Site() as site:
        folder = site.folder / "files"
        python(STORE, folder / "s.zarr", folder / "shards.zarr")
        store(folder / "loose.zarr", 4)
        age(folder)
        run([REF, "-q", folder / "s.zarr", "esdm://local/s.zarr"])
        run([REF, "-q", folder / "shards.zarr", "esdm://local/shards.zarr"])
        # Of a server without ranges small objects are read as a whole.
        for ranges in (True, False):
            with Web(folder, ranges=ranges) as web:
                set_roots(site, folder, web.url + "/")
                run([REF, "-q", "-f", f"{web.url}/s.zarr/", "esdm://web/s.zarr"])
                python(EQUAL, "parts", "esdm://local/s.zarr=esdm://web/s.zarr")
                run([REF, "-q", "-f", f"{web.url}/shards.zarr", "esdm://web/shards.zarr"])
                python(EQUAL, "parts", "esdm://local/shards.zarr=esdm://web/shards.zarr")
                done = run([REF, f"{web.url}/loose.zarr", "esdm://web/loose.zarr"], check=False)
                expect_error(done, "loose.zarr", "consolidated metadata")
                # Verified against values that are read chunk by chunk.
                run([REF, "-q", "-f", "--verify", f"{web.url}/s.zarr", "esdm://web/s.zarr"])
                # Single arrays need no consolidated metadata.
                run([REF, "-q", "-f", f"{web.url}/s.zarr/plain", "esdm://web/plain"])
                python("""
import netCDF4, numpy as np
with netCDF4.Dataset("esdm://web/plain") as nc:
    assert np.array_equal(nc["plain"][:], np.arange(60).reshape(6, 10))
""")


def test_changed_objects_are_errors():
    """Whatever the server tells: an ETag, times alone, and whether it minds conditions or not."""
    with Site() as site:
        folder = make(site)
        python(STORE, folder / "s.zarr", folder / "shards.zarr")
        every = ({}, {"etags": False, "conditions": False}, {"etags": False}, {"conditions": False}, {"modified": False})
        for options in (every[0], *some(every[1:], by_size(1, 2, 4))):
            age(folder)
            with Web(folder, **options) as web:
                set_roots(site, web.url)
                for name in ("contiguous.nc", "shuffle.nc", "NETCDF3_CLASSIC-many.nc", "s.zarr"):
                    run([REF, "-q", "-f", f"{web.url}/{name}", f"esdm://{name}"])
                for name in ("contiguous.nc", "shuffle.nc", "NETCDF3_CLASSIC-many.nc", "s.zarr/plain/0.0"):
                    container, path = name.split("/")[0], folder / name
                    whole = path.read_bytes()
                    for what in ("bytes", "cut", "removed"):
                        data = bytearray(whole)
                        for at in range(len(data) // 2, len(data), 7):
                            data[at] ^= 0x5a
                        path.write_bytes(data if what == "bytes" else data[:-20])
                        if what == "removed":
                            path.unlink()
                        words = [f"{web.url}/{name}", "fragment ["]
                        words += ["was changed"] if what == "bytes" else []
                        expect_error(python(READ.replace("> 1", "> 0"), f"esdm://{container}", check=False), *words)
                        if options == {}:
                            expect_error(run([FSCK], check=False), f"{web.url}/{name}")
                        path.write_bytes(whole)
                        age(folder)


LARGE = """
import sys, netCDF4, numpy as np
with netCDF4.Dataset(sys.argv[1], "w") as nc:
    for name, n in (("t", 5), ("y", 1000), ("x", 1000)):
        nc.createDimension(name, n)
    v = nc.createVariable("v", "f4", ("t", "y", "x"), contiguous=True)
    for t in range(5):
        v[t] = np.arange(1000000).reshape(1000, 1000) + t
"""


def test_large_objects_need_ranges():
    with Site() as site:
        folder = site.folder / "files"
        folder.mkdir()
        python(LARGE, folder / "large.nc")
        with Web(folder) as web:
            set_roots(site, web.url)
            run([REF, "-q", f"{web.url}/large.nc", "esdm://l.nc"])
            python("""
import netCDF4, numpy as np
with netCDF4.Dataset("esdm://l.nc") as nc:
    assert np.array_equal(nc["v"][3, 10:20:5, ::7], (np.arange(1000000).reshape(1000, 1000) + 3)[10:20:5, ::7])
""")
            sent = sum(int(h.get("Range", "0-0").split("-")[1]) - int(h.get("Range", "=0-0").split("=")[1].split("-")[0])
                       for m, _, h in web.seen("GET"))
            expect(sent < 3 << 20, f"{sent} bytes were asked for")
            web.ranges = False
            expect_error(python(READ, "esdm://l.nc", check=False), f"{web.url}/large.nc", "has no ranges")
            expect_error(run([REF, f"{web.url}/large.nc", "esdm://m.nc"], check=False), "large.nc", "has no ranges")


def test_what_may_change_unseen_is_not_taken():
    with Site() as site:
        folder = make(site)
        with Web(folder, etags=False) as web:
            set_roots(site, web.url)
            os.utime(folder / "whole.nc", (time.time() + 20,) * 2)  # however long the tool takes to ask
            done = run([REF, f"{web.url}/whole.nc", "esdm://w.nc"], check=False)
            expect_error(done, "whole.nc", "written this moment")
            web.modified = False
            done = run([REF, f"{web.url}/whole.nc", "esdm://w.nc"], check=False)
            expect_error(done, "whole.nc", "neither an ETag nor a time")
            web.etags = True
            run([REF, "-q", f"{web.url}/whole.nc", "esdm://w.nc"])
            expect(all("If-Match" in headers for method, _, headers in web.seen("GET")), "an unconditional read")


def test_only_what_the_site_allows():
    with Site() as site:
        folder = make(site)
        (folder / "open").mkdir()
        shutil.copy(folder / "whole.nc", folder / "open/whole.nc")
        with Web(folder) as web:
            for roots in ((), (folder,), (f"{web.url}/open",)):
                set_roots(site, *roots)
                expect_error(run([REF, f"{web.url}/whole.nc", "esdm://w.nc"], check=False), "references.roots", "whole.nc")
            for crooked in ("/open/../whole.nc", "/open/%2e%2e/whole.nc", "/open%2fwhole.nc", "/openly/whole.nc", "/open/w?x=1"):
                done = run([REF, f"{web.url}{crooked}", "esdm://w.nc"], check=False)
                expect(done.returncode != 0, crooked)
            expect(web.seen() == [], f"it was asked all the same: {web.seen()}")
            run([REF, "-q", f"{web.url}/open/whole.nc", "esdm://w.nc"])
            # Nor is a redirection followed.
            web.moved["/open/whole.nc"] = f"{web.url}/whole.nc"
            expect_error(python(READ, "esdm://w.nc", check=False), "lies elsewhere now", f"{web.url}/whole.nc")
            # What is not allowed any more is not read.
            web.moved.clear()
            set_roots(site, folder)
            asked = len(web.seen())
            expect_error(python(READ, "esdm://w.nc", check=False), "references.roots")
            expect(len(web.seen()) == asked, "it was asked all the same")
        set_roots(site, "http://user@host/x")
        expect_error(run([tool("esdm-ls")], check=False), "references.roots", "no URL of a place")


def test_failures_that_pass_and_those_that_stay():
    with Site() as site:
        folder = make(site)
        age(folder)
        config = json.loads(site.config.read_text())
        with Web(folder) as web:
            config["references"] = {"roots": [web.url], "timeout": 60}
            site.config.write_text(json.dumps(config))
            run([REF, "-q", f"{web.url}/shuffle.nc", "esdm://s.nc"])
            for faults in ([503, "drop", "cut", 500], [429, 502, "drop"]):
                web.faults = faults
                python(EQUAL, "whole", f"{folder / 'shuffle.nc'}=esdm://s.nc")
                expect(web.faults == [], web.faults)
            config["references"]["timeout"] = 8
            site.config.write_text(json.dumps(config))
            web.faults = [503] * 1000
            expect_error(python(READ, "esdm://s.nc", check=False), f"{web.url}/shuffle.nc", "status 503")
            expect(len(web.faults) > 900, "tried without end")
            config["references"]["timeout"] = 2
            site.config.write_text(json.dumps(config))
            web.faults = ["hang"] * 1000
            expect_error(python(READ, "esdm://s.nc", check=False), f"{web.url}/shuffle.nc", "no answer")
        expect_error(python(READ, "esdm://s.nc", check=False), "shuffle.nc", "no answer in")


def test_pinned_and_updated():
    with Site() as site:
        folder = make(site)
        with Web(folder) as web:
            set_roots(site, web.url)
            url = f"{web.url}/shuffle.nc"
            got, _, _ = update(url, "esdm://s.nc")
            expect(got == counts(new=1), got)
            got, _, _ = update(url, "esdm://s.nc")
            expect(got == counts(unchanged=1), got)
            shutil.copy(folder / "fletcher.nc", folder / "shuffle.nc")
            got, _, _ = update(url, "esdm://s.nc")
            expect(got == counts(changed=1), got)
            run([REF, "-q", "--pin", "esdm://s.nc"])
        python(EQUAL, "whole", f"{folder / 'fletcher.nc'}=esdm://s.nc")
        run([FSCK, "--data"], check=False)


def test_sources_of_a_list():
    with Site() as site:
        folder = make(site)
        (folder / "a/b").mkdir(parents=True)
        for name in ("a/one.nc", "a/b/one.nc", "a/b/two.nc"):
            shutil.copy(folder / "whole.nc", folder / name)
        with Web(folder) as web:
            set_roots(site, web.url, folder)
            listed = site.folder / "list.txt"
            listed.write_text(f"# what there is\n{web.url}/a/one.nc\n\n{web.url}/a/b/one.nc  \n{web.url}/a/b/two.nc\n")
            got, _, _ = update("--list", listed, "esdm://web")
            expect(got == counts(new=3), got)
            got, _, _ = update("--list", listed, "esdm://web")
            expect(got == counts(unchanged=3), got)
            shutil.copy(folder / "fletcher.nc", folder / "a/b/one.nc")
            got, _, _ = update("--list", listed, "esdm://web")
            expect(got == counts(changed=1, unchanged=2), got)
            python(EQUAL, "whole", f"{folder / 'a/b/one.nc'}=esdm://web/b/one.nc", f"{folder / 'a/one.nc'}=esdm://web/one.nc")
            names = "".join(f"{folder}/{n}\n" for n in ("whole.nc", "fletcher.nc", "a"))
            listed.write_text(names)
            run(["sh", "-c", '"$1" -q --list - esdm://local < "$2"', "sh", REF, listed])
            python(EQUAL, "whole", f"{folder / 'a/b/two.nc'}=esdm://local/a/b/two.nc", f"{folder / 'whole.nc'}=esdm://local/whole.nc")
            for text, words in (("", ["names no source"]), ("a\0b\n", ["line 1", "zero byte"]), ("esdm://x\n", ["is no file"]),
                                (f"{folder}/whole.nc\n{folder}/whole.nc\n", ["two sources"]), (f"{folder}/no.nc\n", ["no.nc"])):
                listed.write_text(text)
                expect_error(run([REF, "-q", "--list", listed, "esdm://wrong"], check=False), *words)
            expect_error(run([REF, "--list", site.folder / "none", "esdm://wrong"], check=False), "none")


def set_authority(site, file):
    config = json.loads(site.config.read_text())
    config["references"]["ca_file"] = str(file)
    site.config.write_text(json.dumps(config))


def test_https():
    """Only a server whose certificate is for its name and of an authority that is trusted is asked for anything."""
    if shutil.which("openssl") is None:
        print("there is no openssl: not tested")
        return
    with Site() as site:
        folder = make(site)
        age(folder)
        ours, others = (Authority(site.folder / "tls", n) for n in ("ours", "others"))
        good, wrong = ours.certify("IP:127.0.0.1"), ours.certify("DNS:elsewhere.example")
        with Web(folder, tls=good) as web, Web(folder, tls=wrong) as elsewhere:
            def refer(of=web):
                return run([REF, "-q", "-f", f"{of.url}/deflate.nc", "esdm://deflate.nc"], check=False)

            set_roots(site, web.url, elsewhere.url)
            expect_error(refer(), "deflate.nc", "certificate", "references.ca_file")
            set_authority(site, others.file)
            expect_error(refer(), "certificate", "an authority in", "references.ca_file")
            set_authority(site, site.folder / "nowhere.pem")
            expect_error(refer(), "nowhere.pem", "references.ca_file")
            (site.folder / "empty.pem").write_text("")
            set_authority(site, site.folder / "empty.pem")
            expect_error(refer(), "references.ca_file")
            expect(web.seen() == [], f"asked for: {web.seen()}")
            set_authority(site, ours.file)
            expect_error(refer(elsewhere), "references.ca_file")
            expect(elsewhere.seen() == [], f"asked for: {elsewhere.seen()}")
            done = refer()
            expect(done.returncode == 0, done.stderr)
            python(EQUAL, "parts", f"{folder / 'deflate.nc'}=esdm://deflate.nc")
            run([FSCK, "--data"])
            # A path in the configuration is relative to its folder.
            set_authority(site, "tls/ours.pem")
            python(EQUAL, "whole", f"{folder / 'deflate.nc'}=esdm://deflate.nc")
            # Who trusts it no more reads no more.
            set_authority(site, others.file)
            expect_error(python(READ, "esdm://deflate.nc", check=False), "deflate.nc", "certificate")


def test_random_changes_never_give_other_values():
    with Site() as site:
        folder = make(site)
        python(STORE, folder / "s.zarr", folder / "shards.zarr")
        age(folder)
        rng = random.Random(SEED)
        with Web(folder) as web:
            set_roots(site, web.url)
            names = ["contiguous.nc", "deflate.nc", "bigplain.nc", "NETCDF3_CLASSIC-many.nc", "NETCDF3_64BIT_DATA-fixed.nc",
                     "s.zarr", "shards.zarr"]
            for n in names:
                run([REF, "-q", f"{web.url}/{n}", f"esdm://{n}"])
            old = {n: python(DUMP, f"esdm://{n}").stdout for n in names}
            results = {True: 0, False: 0}
            for _ in range(by_size(12, 25, 300)):
                n = rng.choice(names)
                path = folder / n
                if path.is_dir():
                    path = rng.choice(sorted(p for p in path.rglob("*") if p.is_file() and p.name[0].isdigit()))
                whole, times = path.read_bytes(), os.stat(path)
                data = bytearray(whole)
                what = rng.choice(["bytes", "cut", "longer", "removed", "same"])
                if what == "bytes":
                    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
                path.write_bytes(data[:rng.randrange(len(data))] if what == "cut" else data + b"x" if what == "longer" else data)
                os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
                if what == "removed":
                    path.unlink()
                web.etags = True
                web.conditions = rng.random() < 0.5
                done = python(DUMP, f"esdm://{n}", check=False)
                results[done.returncode == 0] += 1
                expect(done.returncode != 0 or done.stdout == old[n], f"{what} of {path}: other values")
                expect(done.returncode == 0 or web.url in done.stderr, f"{what} of {path}: {done.stderr}")
                path.write_bytes(whole)
                os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            expect(results[True] > 0 and results[False] > 0, f"{results}")


DUMP = """
import sys, netCDF4
def dump(g):
    for name, v in g.variables.items():
        v.set_auto_maskandscale(False)
        print(name, v[...].tobytes().hex())
    for child in g.groups.values():
        dump(child)
with netCDF4.Dataset(sys.argv[1]) as nc:
    dump(nc)
"""


if __name__ == "__main__":
    sys.exit(main(test_netcdf_files, test_classic_files_cost_few_requests, test_zarr_stores, test_changed_objects_are_errors, test_large_objects_need_ranges,
                  test_what_may_change_unseen_is_not_taken, test_only_what_the_site_allows,
                  test_failures_that_pass_and_those_that_stay, test_pinned_and_updated, test_sources_of_a_list,
                  test_https, test_random_changes_never_give_other_values))
