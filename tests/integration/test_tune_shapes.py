#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Records in a chunk of plain netCDF-4 files that programs make under esdm-run (ESDM_NC_CHUNK_STEPS, "chunk_steps" of a site), and
esdm-tune --try chunk-steps, which finds how many. What a program states itself stays."""

import json
import os
import subprocess

from esdmtest import Site, by_clock, by_size, client_environment, environment, expect, expect_error, main, need_program, run, tool

PYTHON = "/usr/bin/python3"
STEPS = by_size(400, 600, 1460)
STATIONS = 40

# As netCDF makes it: a chunk for each step. Then series at some places, as a tutorial has them.
WORK = """
import sys, netCDF4, numpy
values = numpy.add.outer(numpy.arange(96), numpy.arange(144)).astype("f4")
steps, stations = int(sys.argv[2]), int(sys.argv[3])
if sys.argv[4] != "read":
    with netCDF4.Dataset(sys.argv[1], "w") as d:
        for name, size in (("time", None), ("lat", 96), ("lon", 144)):
            d.createDimension(name, size)
        v = d.createVariable("tas", "f4", ("time", "lat", "lon"), zlib=True)
        for i in range(steps):
            v[i] = values + i % 30
if sys.argv[4] != "write":
    v = netCDF4.Dataset(sys.argv[1])["tas"]
    for i in range(stations):
        print(v[:, i * 5 % 96, i * 7 % 144].sum(dtype="f8"))
"""

# Variables of all kinds: some state their chunks, some have none, some cannot have others.
KINDS = """
import sys, netCDF4, numpy
d = netCDF4.Dataset(sys.argv[1], "w", format=sys.argv[2])
for name, size in (("time", None), ("lat", 96), ("lon", 144), ("other", None)):
    if name != "other" or sys.argv[2] == "NETCDF4":
        d.createDimension(name, size)
g = d.createGroup("inner") if sys.argv[2] == "NETCDF4" else d
def show(of, name, type, dims, **options):
    v = of.createVariable(name, type, dims, **options)
    if type is not str:
        v[:] = numpy.ones([3 if n in ("time", "other") else d.dimensions[n].size for n in dims], type)
    print(name, v.chunking())
show(d, "plain", "f4", ("time", "lat", "lon"))
show(g, "packed", "f4", ("time", "lat", "lon"), zlib=True)
show(d, "stated", "f4", ("time", "lat", "lon"), chunksizes=(4, 96, 72))
show(d, "fixed", "f4", ("lat", "lon"))
show(d, "tight", "f4", ("lat", "lon"), contiguous=True)
show(d, "time", "f8", ("time",))
if sys.argv[2] == "NETCDF4":
    show(d, "two", "f4", ("time", "other", "lon"))
    show(d, "late", "f4", ("lat", "time"))
    show(d, "text", str, ("time", "lon"))
"""


def printed(script, *arguments, env=None):
    done = run([tool("esdm-run"), "-q", PYTHON, "-c", script, *arguments], env=client_environment(env or {}))
    return done.stdout, done.stderr


def test_what_states_its_chunks_keeps_them():
    with Site() as site:
        for form in ("NETCDF4", "NETCDF4_CLASSIC", "NETCDF3_CLASSIC"):
            usual = dict(line.split(" ", 1) for line in printed(KINDS, site.file("usual.nc"), form)[0].splitlines())
            shaped = dict(line.split(" ", 1) for line in printed(KINDS, site.file("shaped.nc"), form, env={"ESDM_NC_CHUNK_STEPS": "32"})[0].splitlines())
            new = {name: shape for name, shape in shaped.items() if shape != usual[name]}
            print(f"    {form}: {new}", flush=True)
            wanted = {"plain": "[32, 96, 72]", "packed": "[32, 96, 72]"} if form != "NETCDF3_CLASSIC" else {}
            expect(new == wanted, f"{form}: {usual} {shaped}")
        # Containers of ESDM have a shape of their own, which this does not touch.
        usual = printed(KINDS, "esdm://usual.nc", "NETCDF4")[0]
        expect(printed(KINDS, "esdm://shaped.nc", "NETCDF4", env={"ESDM_NC_CHUNK_STEPS": "32"})[0] == usual, usual)


LARGE = """
import sys, netCDF4
if sys.argv[2] != "0":
    netCDF4.set_chunk_cache(int(sys.argv[2]), 4133, 0.75)
d = netCDF4.Dataset(sys.argv[1], "w")
for name, size in (("time", None), ("lev", 10), ("lat", 180), ("lon", 360)):
    d.createDimension(name, size)
print(d.createVariable("ta", "f4", ("time", "lev", "lat", "lon")).chunking())
"""


def test_chunks_fit_into_the_cache():
    """A record has 2.6 MB. As many as find room in three quarters of the cache; what finds none keeps netCDF's shape."""
    with Site() as site:
        usual = printed(LARGE, site.file("a.nc"), 0)[0]
        for cache, steps in ((1 << 20, 1), (16 << 20, 4), (256 << 20, 32)):
            shape = json.loads(printed(LARGE, site.file("a.nc"), cache, env={"ESDM_NC_CHUNK_STEPS": "32"})[0])
            if steps == 1:
                expect(shape == json.loads(usual), f"{shape} {usual}")
                continue
            number = shape[0] * shape[1] * shape[2] * shape[3]
            expect(shape[0] == steps and 1 << 18 < 4 * number <= 1 << 20, f"{cache}: {shape}")


SHORT = """
import sys, netCDF4
d = netCDF4.Dataset(sys.argv[1], "w")
d.createDimension("time", None)
for i in range(7):
    d.createDimension(f"x{i}", 3)
print(d.createVariable("v", "f4", ("time", *(f"x{i}" for i in range(7)))).chunking(), netCDF4.get_chunk_cache()[0])
"""


def test_short_dimensions_stay_whole():
    """Halves of 3 are 2 and 2: in seven dimensions such chunks would hold seven times what a record has, more than the cache."""
    with Site() as site:
        text = printed(SHORT, site.file("a.nc"), env={"ESDM_NC_CHUNK_STEPS": "2000"})[0]
        shape, cache = json.loads(f"[{text.replace('] ', '], ')}]")
        expect(shape[0] == min(2000, cache * 3 // 4 // (4 * 3**7)) and shape[1:] == [3] * 7, text)


def reads_of(command, site):
    log = site.file("calls")
    command = [str(c) for c in ["strace", "-f", "-qq", "-o", log, "-e", "trace=pread64", tool("esdm-run"), "-q", *command]]
    done = subprocess.run(command, env=client_environment({}), text=True, capture_output=True, check=True)
    return log.read_text().count("pread64("), done.stdout


@by_clock
def test_records_in_a_chunk():
    need_program("strace")
    with Site() as site:
        data = site.file("tas.nc")
        command = [PYTHON, "-c", WORK, data, STEPS, STATIONS]
        run([tool("esdm-run"), "-q", *command, "write"])
        before, values = reads_of([*command, "read"], site)
        size = data.stat().st_size
        found = json.loads(run([tool("esdm-tune"), "--json", "--quiet", "--try=chunk-steps=32", "--pairs=2", "--apply", "--", *command, "both"]).stdout)
        expect(found["ratio"] is not None, f"a run of a pair took too long: {found}")
        print(f"    {1 / found['ratio']:.1f} times as fast: {found['best']}", flush=True)
        expect(found["better"] and found["best"] == {"chunk-steps": 32} and found["ratio"] < 0.7, f"{found}")
        expect(json.loads(site.config.read_text())["netcdf"] == {"chunk_steps": 32}, site.config.read_text())
        run([tool("esdm-run"), "-q", *command, "write"])
        after, same = reads_of([*command, "read"], site)
        print(f"    reads of the file: {before}, then {after}; bytes {size}, then {data.stat().st_size}", flush=True)
        expect(before >= STEPS * STATIONS and after < before / 8 and same == values, f"{before} {after}")
        # A program without ESDM reads the file as any other.
        plain = subprocess.run([str(c) for c in [*command, "read"]], text=True, capture_output=True, check=True, env=dict(os.environ)).stdout
        expect(plain == values, "the same numbers")


def test_whose_number_counts():
    show = [tool("esdm-run"), "-q", "sh", "-c", "echo \"<$ESDM_NC_CHUNK_STEPS $ESDM_NC_CHUNK_CACHE>\""]
    with Site() as site:
        config = json.loads(site.config.read_text())
        for netcdf, seen in (({}, "< >"), ({"chunk_steps": 32}, "<32 >"), ({"chunk_steps": 8, "chunk_cache": "64M"}, f"<8 {64 << 20}>")):
            site.config.write_text(json.dumps({**config, "netcdf": netcdf}))
            expect(run(show).stdout == seen + "\n", f"{netcdf}")
        expect(run(show, env=environment({"ESDM_NC_CHUNK_STEPS": "4"})).stdout == f"<4 {64 << 20}>\n", "the environment counts more")
        expect(run(show, env=environment({"ESDM_NC_CHUNK_STEPS": "", "ESDM_NC_CHUNK_CACHE": ""})).stdout == "< >\n", "empty ones take both away")
        done = run(show, env=environment({"ESDM_NC_CHUNK_STEPS": "many"}))
        expect("expected a number of records such as 32" in done.stderr and done.stdout == f"< {64 << 20}>\n", done.stderr)
        bad = run([tool("esdm-tune"), "--try=chunk-steps", "--", "true"], env=environment({"ESDM_NC_CHUNK_STEPS": "4"}), check=False)
        expect_error(bad, "ESDM_NC_CHUNK_STEPS is in the environment", "unset it")
        for bad in (0, "8", 1.5):
            site.config.write_text(json.dumps({**config, "netcdf": {"chunk_steps": bad}}))
            expect_error(run([tool("esdm-ls")], check=False), "chunk_steps")


main(test_what_states_its_chunks_keeps_them, test_chunks_fit_into_the_cache, test_short_dimensions_stay_whole, test_records_in_a_chunk,
     test_whose_number_counts)
