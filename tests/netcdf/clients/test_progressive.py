#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Data in layers: `NAME?accuracy=1%` reads a part of the bytes, and numbers that are no further off, through
libnetcdf, the tools and the programs that people use; what is stored without layers is read as it is."""

import functools
import json
import pathlib
import subprocess
import urllib.parse

from esdmtest import (Site, by_build, by_size, client, environment, expect, expect_error, main, need_data,
                      need_program, run, skip, some, tool)
from inprocess import python
from mounts import mounted, why_no_fuse
from served import ask, serving

PYTHON = "/usr/bin/python3"
FIELDS = ("era5_u", "rap_pres", "merra_q", "cesm_TS", "cesm_PRECT", "pop_SST")
SCRIPT = pathlib.Path(__file__).parent / "progressive_fields.py"


@functools.lru_cache(maxsize=None)
def field(name):
    if subprocess.run([PYTHON, "-c", "import netCDF4"], stderr=subprocess.DEVNULL,
                      check=False).returncode:
        skip("Debian's python3-netcdf4 is not installed")
    return need_data("fields") / f"{name}.nc"


def copy(file, container, accuracy):
    run([tool("esdm-cp"), "--accuracy", accuracy, file, f"esdm://{container}"])


def largest(file, container, variable, share, *row):
    done = client([PYTHON, SCRIPT, file, f"esdm://{container}", variable, share, *row])
    return float(done.stdout)


def fetched(site, container, command=None):
    """Bytes that the targets are asked for when all of it is read."""
    told = site.file("told.json")
    told.unlink(missing_ok=True)
    command = command or [tool("esdm-cp"), "-f", f"esdm://{container}", site.file("out.nc")]
    run(command, env=dict(environment(), ESDM_MONITOR=f"stats:{told}"))
    return sum(s["bytes"] for s in json.loads(told.read_text())["spans"] if s["kind"] == "fetch")


def stat(container, variable):
    shown = json.loads(run([tool("esdm-stat"), "--accuracy", "--json", container]).stdout)
    return next(d for d in shown["containers"][0]["root"]["datasets"] if d["name"] == variable)


def test_real_fields_in_a_quarter_of_the_bytes():
    with Site() as site:
        for name in some(FIELDS, by_size(by_build(1, 2), 1, 6)):
            file = field(name)
            for mode in ("balanced", "progressive"):
                copy(file, f"{mode}/{name}.nc", f"{name}: range=0.0001; mode={mode}")
            stored = f"progressive/{name}.nc"
            coarse = fetched(site, f"{stored}?accuracy=1%")
            full = fetched(site, stored)
            balanced = fetched(site, f"balanced/{name}.nc")
            print(name, balanced, coarse, full)
            expect(4 * coarse <= full, (coarse, full))
            expect(3 * coarse <= balanced, (coarse, balanced))
            expect(full <= 1.35 * balanced, (full, balanced))
            at_1 = largest(file, f"{stored}?accuracy=1%", name, 0.01)
            at_all = largest(file, stored, name, 0.0001)
            expect(at_all < at_1 and at_1 > 0.001, (at_1, at_all))
            copy(file, f"exact/{name}.nc", f"{name}: mode=progressive")
            parts = [fetched(site, f"exact/{name}.nc{q}")
                     for q in ("?accuracy=1%", "?accuracy=0.02%", "")]
            print(name, "without loss", parts)
            expect(2 * parts[0] < parts[1] and 1.2 * parts[1] < parts[2], parts)
            at_02 = largest(file, f"exact/{name}.nc?accuracy=0.02%", name, 0.0002)
            expect(largest(file, f"exact/{name}.nc", name, 0) == 0 and at_02 > 0, at_02)
            told = stat(f"{stored}?accuracy=1%", name)["accuracy"]
            expect(0 < told["largest_error"] <= told["absolute"], told)
            # Without layers all is read, and nothing is said that is not so.
            expect(fetched(site, f"balanced/{name}.nc?accuracy=1%") ==
                   balanced, "without layers")
            largest(file, f"balanced/{name}.nc?accuracy=1%", name, 0.0001)
        run([tool("esdm-fsck"), "--data"])


def test_parts_and_both_in_one_process():
    """Rows by stride; and a reader of all does not get blocks of the other, whoever comes first."""
    with Site() as site:
        file = field("cesm_TS")
        copy(file, "ts.nc", "cesm_TS: mode=progressive")
        expect(largest(file, "ts.nc?accuracy=1%", "cesm_TS", 0.01, 77) > 0.0001, "a row")
        expect(largest(file, "ts.nc", "cesm_TS", 0, 77) == 0, "nothing is lost")
        program = ("import netCDF4, sys\n"
                   "names = sys.argv[2:]\n"
                   "want = netCDF4.Dataset(sys.argv[1])['cesm_TS'][3, 17:19]\n"
                   "for name in names:\n"
                   "    got = netCDF4.Dataset(name)['cesm_TS'][3, 17:19]\n"
                   "    print(float(abs(want - got).max()))\n")
        names = [f"esdm://ts.nc{q}" for q in ("?accuracy=1%", "", "?accuracy=1.5K", "",
                                              "?accuracy=1%")]
        lines = client([PYTHON, "-c", program, file, *names]).stdout.split()
        coarse, exact, half, again, last = map(float, lines)
        expect(exact == 0 == again and 0.05 < coarse == last and 0 < half <= 1.5, lines)


def test_copies_say_what_they_were_made_of():
    """What was read less accurately must not pass for what is stated of the source."""
    need_program("ncks")
    with Site():
        file = field("cesm_TS")
        copy(file, "ts.nc", "cesm_TS: abs=0.01 K; mode=progressive")
        run([tool("esdm-cp"), "esdm://ts.nc?accuracy=1K", "esdm://cp.nc"])
        client(["ncks", "-h", "esdm://ts.nc?accuracy=1K", "esdm://ncks.nc"])
        for name in "cp.nc", "ncks.nc":
            expect(largest(file, name, "cesm_TS", 1) > 0.001, "it is not coarse")
            told = stat(name, "cesm_TS")["accuracy"]
            expect("tolerance" not in told.get("stated", ""), told)
            shown = run([tool("esdm-stat"), "--accuracy", name]).stdout
            expect("made of: absolute_tolerance=1 asked for; stored with" in shown, shown)


def test_units_variables_and_what_is_told():
    need_program("ncdump", "ncks")
    with Site() as site:
        file = field("cesm_TS")
        copy(file, "ts.nc", "cesm_TS: abs=0.01 K; mode=progressive")
        header = client(["ncdump", "-h", "esdm://ts.nc?accuracy=cesm_TS:1500mK"]).stdout
        expect('esdm_stored_accuracy = "absolute_tolerance=1.5 asked for; stored with '
               'absolute_tolerance=0.01; mode=progressive"' in header and
               "quantization_maximum_absolute_error = 1.5 ;" in header, header)
        expect("absolute_error = 0.01 ;" in client(["ncdump", "-h", "esdm://ts.nc"]).stdout, "as ever")
        for door in ("ts.nc@1?accuracy=1.5K", "ts.nc?accuracy=cesm_TS:1.5", "ts.nc?accuracy=3%,1.5K"):
            told = stat(door, "cesm_TS")["accuracy"]
            expect(told["absolute"] == 1.5 and 0.01 < told["largest_error"] <= 1.5, (door, told))
        expect_error(run([tool("esdm-cp"), "--reflink", "esdm://ts.nc?accuracy=1.5K", "esdm://clone.nc"], check=False), "less accurately")
        client(["ncks", "esdm://ts.nc?accuracy=1.5K", site.file("plain.nc")])
        run([tool("esdm-cp"), "esdm://ts.nc?accuracy=1.5K", "esdm://small.nc"])
        for text, word in (("", "a number greater than 0"), ("1.5", "is not said"), ("1Pa", "such units"),
                           ("ta:1%", "no such variable"), ("-1%", "greater than 0"), ("100%", "100 %"),
                           ("1%,", "a number"), ("nan%", "a number"), ("cesm_TS:1m", "units")):
            expect_error(run([tool("esdm-stat"), f"ts.nc?accuracy={text}"], check=False), word)
        absent = run([tool("esdm-stat"), "t.nc?accuracy=1%"], check=False)
        expect_error(absent, "did you mean 'ts.nc'?")
        expect("nobody expands" not in absent.stderr, absent.stderr)
        expect_error(run([tool("esdm-stat"), "ts.nc?acuracy=1%"], check=False), "'?accuracy=1%'")
        for name in ("new.nc?accuracy=1%", "new.nc?digest"):      # nobody would find it
            expect_error(client(["ncks", site.file("plain.nc"), f"esdm://{name}"], check=False))
            expect_error(run([tool("esdm-cp"), "--reflink", "esdm://ts.nc", f"esdm://{name}"], check=False),
                         "is for reading: write to 'new.nc' itself")
        expect_error(run([tool("esdm-stat"), "--digest", "ts.nc?accuracy=1%"], check=False),
                     "a digest is of what is stored")


def members(site, most=3):
    """Days of a real field as containers that continue each other, the second one without layers."""
    program = ("import netCDF4, sys\n"
               "with netCDF4.Dataset(sys.argv[1]) as source:\n"
               "    source.set_auto_mask(False)\n"
               "    data = source['cesm_TS'][:6]\n"
               "for i in range(3):\n"
               "    with netCDF4.Dataset(f'{sys.argv[2]}{i}.nc', 'w') as out:\n"
               "        out.model, out.part = 'layered', i\n"
               "        for d, n in zip(('time', 'lat', 'lon'), (None, *data.shape[1:])):\n"
               "            out.createDimension(d, n)\n"
               "        t = out.createVariable('time', 'f8', ('time',))\n"
               "        t.units = 'days since 2000-01-01'\n"
               "        t[:] = [2 * i, 2 * i + 1]\n"
               "        for d, n in zip(('lat', 'lon'), data.shape[1:]):\n"
               "            c = out.createVariable(d, 'f8', (d,))\n"
               "            c.units = 'degrees_north' if d == 'lat' else 'degrees_east'\n"
               "            c[:] = [0.37 * k for k in range(n)]\n"
               "        v = out.createVariable('ts', 'f4', ('time', 'lat', 'lon'))\n"
               "        v.units = 'K'\n"
               "        v[:] = data[2 * i:2 * i + 2]\n")
    run([PYTHON, "-c", program, field("cesm_TS"), site.file("part")])
    for i in range(most):
        run([tool("esdm-cp"), "--accuracy", f"*: mode={'balanced' if i == 1 else 'progressive'}",
             site.file(f"part{i}.nc"), f"esdm://parts/{i}.nc"])


def test_queries_and_saved_ones():
    """Members with layers are read coarsely, one without as it is; coordinates are never rounded."""
    need_program("ncdump")
    program = ("import netCDF4, sys, numpy\n"
               "want = netCDF4.Dataset(sys.argv[1])\n"
               "got = netCDF4.Dataset(sys.argv[2])\n"
               "for name in ('time', 'lat', 'lon'):\n"
               "    assert (want[name][:] == got[name][:]).all(), name\n"
               "off = abs(want['ts'][:] - got['ts'][:])\n"
               "print(*[float(off[2 * i:2 * i + 2].max()) for i in range(3)])\n")
    with Site() as site:
        members(site)
        query = "?model=layered"
        run([tool("esdm-ln"), query, "saved.nc"])
        span = 130  # K, of all
        for name in (f"{query}&accuracy=1%", f"?accuracy=1%&{query[1:]}", f"{query}&accuracy=ts:1.3",
                     f"{query}&accuracy=1.3K", "saved.nc?accuracy=1%"):
            off = list(map(float, client([PYTHON, "-c", program, f"esdm://{query}", f"esdm://{name}"]).stdout.split()))
            print(name, off)
            expect(off[1] == 0 and all(0.01 < off[i] <= span / 100 for i in (0, 2)), (name, off))
            header = client(["ncdump", "-h", f"esdm://{name}"]).stdout
            expect("asked for; each container as it is stored" in header, header)
        coarse, full = (fetched(site, f"{query}{q}") for q in ("&accuracy=1%", ""))
        expect(coarse < 0.7 * full, (coarse, full))
        expect(fetched(site, f"{query}&part=0&accuracy=1%") < 0.5 * fetched(site, f"{query}&part=0"), "one alone")
        for text, word in (("pr:1%", "no such variable"), ("lat:1%", "describes variables"), ("1Pa", "such units"),
                           ("", "needs one value"), ("1%&accuracy=2%", "needs one value")):
            expect_error(run([tool("esdm-stat"), f"{query}&accuracy={text}"], check=False), word) \
                if word == "needs one value" else \
                expect_error(client(["ncdump", "-h", f"esdm://{query}&accuracy={text}"], check=False), word)
        expect_error(run([tool("esdm-ln"), f"{query}&accuracy=1%", "other.nc"], check=False), "no accuracy")


def test_what_earlier_statements_left():
    """A looser statement holds for what was written under it: it is told."""
    need_program("ncdump", "ncatted")
    with Site() as site:
        copy(field("cesm_TS"), "ts.nc", "cesm_TS: abs=2 K; mode=progressive")
        client(["ncatted", "-a", "esdm_absolute_tolerance,cesm_TS,o,c,0.01 K", "esdm://ts.nc"])
        header = client(["ncdump", "-h", "esdm://ts.nc?accuracy=0.5K"]).stdout
        expect("quantization_maximum_absolute_error = 2. ;" in header, header)


def test_mounted_and_over_http():
    """The same numbers by every door; what one door keeps of a name is not told of the other."""
    with Site() as site:
        copy(field("era5_u"), "u.nc", "era5_u: mode=progressive")
        want = {}
        for asked in ("", "?accuracy=1%"):
            run([tool("esdm-cp"), "-f", f"esdm://u.nc{asked}", site.file("out.nc")])
            want[asked] = numbers(site.file("out.nc"))
        expect(want[""] != want["?accuracy=1%"], "nothing is coarse")
        with serving(site) as (port, _):
            for asked in (*want, *want):
                name = urllib.parse.quote(f"u.nc{asked}")
                for place in (name, f"u.nc{asked.replace('%', '%25')}"):
                    reply, body = ask(port, f"/files/{place}")
                    site.file("served.nc").write_bytes(body)
                    expect(reply.status == 200 and numbers(site.file("served.nc")) == want[asked], (place, reply.status))
                reply, body = ask(port, f"/zarr/{name}/era5_u/c/0/0/0")
                expect(reply.status == 200 and body == want[asked][:len(body)] and body, asked)
                place = urllib.parse.unquote(reply.getheader("Content-Location") or "")
                expect(f"u.nc@1{asked}/" in place, place)
        reason = why_no_fuse()
        if reason:
            print("not mounted:", reason)
            return
        with mounted(site) as (folder, _):
            for asked in (*want, *want):
                expect(numbers(folder / f"u.nc{asked}") == want[asked], asked)


def test_xarray_keeps_them_apart():
    """One snapshot, opened as it is and coarsely: whoever comes first, pickled, by time, with dask, as Zarr."""
    with Site() as site:
        file = field("cesm_TS")
        copy(file, "ts.nc", "cesm_TS: mode=progressive")
        run([tool("esdm-attr"), "--set", "who=me", "ts.nc"])
        told = python(site, "debian", f"""
import pickle
import esdm, xarray
want = xarray.open_dataset({str(file)!r}).cesm_TS[3:5].load()
def opened(name, **options):
    return xarray.open_dataset("esdm://" + name, **options)
def off(dataset):
    return float(abs(dataset.cesm_TS[3:5] - want).max())
coarse, exact, again = opened("ts.nc?accuracy=1%"), opened("ts.nc"), opened("ts.nc?accuracy=1%")
assert off(exact) == 0, off(exact)
assert 0.05 < off(coarse) == off(again), (off(coarse), off(again))
assert "asked for" in coarse.cesm_TS.esdm_stored_accuracy
sent = pickle.loads(pickle.dumps(opened("ts.nc?accuracy=1%")))
assert off(sent) == off(coarse), off(sent)
for query in ("?who=me&accuracy=1%", "?accuracy=1%&who=me"):
    found = opened(query)
    assert off(found) == off(coarse) == off(pickle.loads(pickle.dumps(found))), (query, off(found))
assert off(opened("?who=me")) == 0
assert coarse.cesm_TS.esdm_stored_accuracy == opened("ts.nc@-0?accuracy=1%").cesm_TS.esdm_stored_accuracy
assert off(opened("ts.nc@-0?accuracy=1%")) == off(coarse)
assert opened("ts.nc?digest").esdm_snapshot.startswith("esdm1:") and "esdm_snapshot" not in opened("ts.nc").attrs
old = esdm.open("ts.nc?accuracy=1%", snapshot=1)["cesm_TS"][3:5]
assert abs(old - want.values).max() == off(coarse)
try:
    esdm.open("ts.nc?accuracy=ta:1%", snapshot=1)
    raise SystemExit("no error")
except esdm.EsdmError as error:
    assert "no such variable" in str(error), error
try:
    import dask.array
    chunked = [opened("ts.nc" + asked, chunks={{}}) for asked in ("?accuracy=1%", "")]
    assert float(abs(chunked[0].cesm_TS - chunked[1].cesm_TS)[3:5].max()) == off(coarse)
except ImportError:
    print("dask is not installed")
try:
    import zarr
    stores = [xarray.open_zarr(esdm.zarr("ts.nc" + asked)) for asked in ("?accuracy=1%", "")]
    assert [off(s) for s in stores] == [off(coarse), 0]
except ImportError:
    print("zarr is not installed")
print("ok")
""").stdout
        expect(told.endswith("ok\n"), told)


def numbers(path):
    """The bytes of era5_u in a plain file."""
    program = ("import netCDF4, sys\n"
               "sys.stdout.write(netCDF4.Dataset(sys.argv[1])['era5_u'][:].data.tobytes().hex())\n")
    return bytes.fromhex(run([PYTHON, "-c", program, path]).stdout)


main(test_real_fields_in_a_quarter_of_the_bytes, test_parts_and_both_in_one_process,
     test_copies_say_what_they_were_made_of, test_units_variables_and_what_is_told, test_queries_and_saved_ones,
     test_what_earlier_statements_left, test_mounted_and_over_http, test_xarray_keeps_them_apart)
