#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-cp --keep-codecs: NetCDF files that have ESDM's codecs, read by stock programs with the filter in
$HDF5_PLUGIN_PATH; smaller than deflate makes them; damaged chunks are errors."""

import json
import math
import os
import pathlib
import re
import subprocess

from clients import python_of
from esdmtest import BUILD, Site, by_size, environment, expect, expect_error, main, need_data, run, some, tool

FOLDER = BUILD / "hdf5-plugin"
READ = """
import sys, h5py, netCDF4, numpy as np
with netCDF4.Dataset(sys.argv[1]) as a, netCDF4.Dataset(sys.argv[2]) as b, h5py.File(sys.argv[1]) as h:
    a.set_auto_maskandscale(False), b.set_auto_maskandscale(False)
    for name in b.variables:
        assert a[name][...].tobytes() == b[name][...].tobytes(), name
        assert h[name][...].astype(b[name].dtype).tobytes() == b[name][...].tobytes(), name
    name = max(b.variables, key=lambda n: b[n].size)
    assert "317" in h[name]._filters, h[name]._filters
print(name)
"""


def with_filter():
    return environment({"HDF5_PLUGIN_PATH": str(FOLDER)})


def fit_into_the_cache(file):
    """Stock ncdump reads row by row: chunks larger than libnetcdf's cache are decoded anew for each row, for minutes."""
    text = run(["ncdump", "-hs", file]).stdout
    return all(math.prod(map(int, sizes.split(","))) < 1 << 20 for sizes in re.findall(r"_ChunkSizes = ([\d, ]+)", text))


def test_files__are_small_and_read_by_all():
    dumped = 0
    fields = sorted(need_data("fields").glob("*.nc"), key=lambda f: f.stat().st_size)
    drawn = some(fields[1:by_size(4, 8, 40)], by_size(1, 2, 40))
    fields = [fields[0], *drawn]  # the least is one that ncdump reads
    with Site() as site:
        for i, file in enumerate(fields):
            name = f"{i}.nc"
            run([tool("esdm-cp"), "--accuracy", "*: digits=4; mode=archive", file, f"esdm://{name}"])
            kept, plain = site.file(f"kept{i}.nc"), site.file(f"plain{i}.nc")
            told = run([tool("esdm-cp"), "--keep-codecs", f"esdm://{name}", kept]).stdout
            expect("HDF5_PLUGIN_PATH=" in told and pathlib.Path(told.strip().partition("=")[2]).is_dir(), told)
            run([tool("esdm-cp"), f"esdm://{name}", plain])
            deflated = site.file(f"deflated{i}.nc")
            run([tool("esdm-cp"), "--deflate", "9", f"esdm://{name}", deflated])
            expect(kept.stat().st_size < deflated.stat().st_size,
                   f"{file}: {kept.stat().st_size} bytes, deflated {deflated.stat().st_size}")
            for kind in ("debian", "zarr"):
                done = subprocess.run([python_of(kind), "-c", READ, kept, plain], env=with_filter(),
                                      capture_output=True, text=True, check=False)
                expect(done.returncode == 0 and done.stdout.strip(), f"{file} by {kind}: {done.stdout}{done.stderr[-2000:]}")
            if fit_into_the_cache(kept) and fit_into_the_cache(plain):
                a, b = (run(["ncdump", f], env=with_filter()).stdout.partition("data:")[2] for f in (kept, plain))
                expect(a and a == b, f"ncdump reads other values of {file}")
                dumped += 1
            expect_error(run(["ncdump", "-v", done.stdout.strip(), kept], env=environment({"HDF5_PLUGIN_PATH": "/none"}), check=False))
            run([tool("esdm-cp"), kept, f"esdm://again{i}.nc"], env=with_filter())
            told = json.loads(run([tool("esdm-diff"), "--json", name, f"again{i}.nc"], check=False).stdout)
            expect(told["values"] == [] and told["read_bytes"] > 0, f"{file} came back with other values: {told}")
    expect(dumped > 0, f"ncdump read none of {len(fields)} files")


def test_damage__is_an_error():
    with Site() as site:
        site.file("x.cdl").write_text("netcdf x { dimensions: x = 40000; variables: int v(x); v:_ChunkSizes = 40000; }")
        run(["ncgen", "-k", "nc4", "-o", site.file("x.nc"), site.file("x.cdl")])
        run(["/usr/bin/python3", "-c", "import netCDF4, numpy, sys\nwith netCDF4.Dataset(sys.argv[1], 'a') as d: d['v'][:] = "
             "numpy.arange(40000) // 3", site.file("x.nc")])
        config = json.loads(site.config.read_text())
        config["engine"]["codec"] = "shuffle+zstd"
        site.config.write_text(json.dumps(config))
        run([tool("esdm-cp"), site.file("x.nc"), "esdm://x.nc"])
        kept = site.file("kept.nc")
        run([tool("esdm-cp"), "--keep-codecs", "esdm://x.nc", kept])
        whole = kept.read_bytes()
        at = whole.index(b"ESDMFRAG")
        for place in (at + 1, at + 33, at + 41, at + 70, at + 200, at + 400):
            damaged = bytearray(whole)
            damaged[place] ^= 0x55
            kept.write_bytes(bytes(damaged))
            expect_error(run(["ncdump", "-v", "v", kept], env=with_filter(), check=False))
        kept.write_bytes(whole)
        expect("13333" in run(["ncdump", "-v", "v", kept], env=with_filter()).stdout, "the whole one")


def test_what_cannot_be__is_told():
    with Site() as site:
        site.file("x.cdl").write_text("netcdf x { dimensions: x = 3; variables: int v(x); data: v = 1, 2, 3; }")
        run(["ncgen", "-k", "nc4", "-o", site.file("x.nc"), site.file("x.cdl")])
        run([tool("esdm-cp"), site.file("x.nc"), "esdm://x.nc"])
        out = site.file("out.nc")
        for options, word in ((["--deflate", "3"], "exclude"), (["--format", "classic"], "netCDF-4"), (["--format", "zarr"], "netCDF-4")):
            expect_error(run([tool("esdm-cp"), "--keep-codecs", *options, "esdm://x.nc", out], check=False), word)
        expect_error(run([tool("esdm-cp"), "--keep-codecs", site.file("x.nc"), "esdm://y.nc"], check=False), "netCDF-4")
        expect(not out.exists(), "something was written")
        run([tool("esdm-cp"), "--keep-codecs", "esdm://x.nc", out])  # nothing is coded: a plain file
        run(["ncdump", out], env={k: v for k, v in os.environ.items() if k != "HDF5_PLUGIN_PATH"})


main(test_files__are_small_and_read_by_all, test_damage__is_an_error, test_what_cannot_be__is_told)
