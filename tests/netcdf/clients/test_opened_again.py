#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Data that are read, changed, and read again by one Python program: nothing that was kept of the former
ones may stand for the new ones. Numbers of snapshots begin anew when a container is replaced, and dask takes
blocks of equal names for equal data."""

from clients import python_of
from esdmtest import Site, client, expect, main
from inprocess import python

MAKE = """
import pickle, subprocess, sys, netCDF4, xarray as xr
def make(name, value):
    with netCDF4.Dataset(name, "w") as d:
        d.createDimension("t", 3)
        d.createVariable("a", "f4", ("t",))[:] = value
def change(name, value):
    with netCDF4.Dataset(name, "a") as d:
        d["a"][:] = value
def differs(new, old):
    return (new - old).a.values.tolist()
"""
# Stock files give an error here; what a container gave were the old values, and no word.
ONTO_ITSELF = """
import esdm
make("esdm://r/a.nc", 1)
x = xr.open_dataset("esdm://r/a.nc")
x["a"] = x.a * 2
x.to_netcdf("esdm://r/a.nc")
assert xr.open_dataset("esdm://r/a.nc").a.values.tolist() == [2, 2, 2]
"""
PICKLED = """
kept = xr.open_dataset("esdm://r/a.nc")
sent = pickle.dumps(kept)
make("esdm://r/a.nc", 9)
assert pickle.loads(sent).a.values.tolist() == [2, 2, 2]     # the one that is open here
there = "import pickle, sys; print(pickle.load(sys.stdin.buffer).a.values)"
done = subprocess.run([sys.executable, "-c", there], input=sent, capture_output=True)
assert done.returncode != 0 and b"was replaced since it was opened" in done.stderr, done
assert kept.a.values.tolist() == [2, 2, 2]
error = pickle.loads(pickle.dumps(esdm.NotFound(2, "gone")))
assert isinstance(error, FileNotFoundError) and str(error) == "gone"
"""
BLOCKS = """
for engine in ENGINES:
    make("esdm://r/b.nc", 1)
    a = xr.open_dataset("esdm://r/b.nc", chunks={}, engine=engine)
    make("esdm://r/b.nc", 5)
    b = xr.open_dataset("esdm://r/b.nc", chunks={}, engine=engine)
    change("esdm://r/b.nc", 7)
    c = xr.open_dataset("esdm://r/b.nc", chunks={}, engine=engine)
    assert differs(b, a) == [4, 4, 4] and differs(c, b) == [2, 2, 2], (engine, differs(b, a), differs(c, b))
"""
SAME_BLOCKS = """
again = xr.open_dataset("esdm://r/b.nc", chunks={})
assert again.a.data.name == xr.open_dataset("esdm://r/b.nc", chunks={}).a.data.name  # the same snapshot
"""
STORES = """
a = xr.open_zarr(esdm.zarr("r/b.nc"))
sent = pickle.dumps(esdm.zarr("r/b.nc"))
make("esdm://r/b.nc", 8)
b = xr.open_zarr(esdm.zarr("r/b.nc"))
assert differs(b, a) == [1, 1, 1], differs(b, a)
there = "import pickle, sys; print(pickle.load(sys.stdin.buffer))"
done = subprocess.run([sys.executable, "-c", there], input=sent, capture_output=True)
assert done.returncode != 0 and b"was replaced since it was opened" in done.stderr, done
"""
ROUTED = """
name = sys.argv[1]
times = []
make(name, 1)
a = xr.open_dataset(name, chunks={}, engine="netcdf4")
times.append(__import__("os").stat(name).st_mtime_ns)
make(name, 5)
b = xr.open_dataset(name, chunks={}, engine="netcdf4")
times.append(__import__("os").stat(name).st_mtime_ns)
change(name, 7)
c = xr.open_dataset(name, chunks={}, engine="netcdf4")
times.append(__import__("os").stat(name).st_mtime_ns)
assert differs(b, a) == [4, 4, 4] and differs(c, b) == [2, 2, 2], (differs(b, a), differs(c, b))
assert times[0] < times[1] < times[2], times
d = netCDF4.Dataset(name, "a")
d["a"][:] = 8
d.sync()
times.append(__import__("os").stat(name).st_mtime_ns)
d["a"][:] = 9
d.close()
times.append(__import__("os").stat(name).st_mtime_ns)
assert times[2] < times[3] < times[4], times
"""
# A cell of a notebook that is run again before its data set was closed. netCDF4 closes the first one when the
# collector comes, which may be at the end: what was made later counts, as with a file that is made anew.
LEFT_OPEN = """
import gc, os, sys, netCDF4
name = sys.argv[1]
gc.disable()
def values():
    with netCDF4.Dataset(name) as d:
        return d["b"][:].tolist()
def make(value):
    d = netCDF4.Dataset(name, "w")
    d.createDimension("t", None)
    d.createVariable("b", "i4", ("t",))[:3] = value
    return d
def close(d):
    try:
        d.close()
    except RuntimeError:
        return False
    return True
first = make(1)
second = make(2)
assert values() == [2, 2, 2]
second.close()
assert values() == [2, 2, 2], values()
first.close()
assert values() == [2, 2, 2], values()
first = make(3)
second = make(4)
first.close()
assert values() == [4, 4, 4]
second.close()
# One that was there before: its close is an error, and nobody is shown its values any more.
old = netCDF4.Dataset(name, "a")
old["b"][0] = 9
make(5).close()
assert values() == [5, 5, 5], values()
assert not close(old) and values() == [5, 5, 5], values()
# Nor those of an append that is refused.
first, second = netCDF4.Dataset(name, "a"), netCDF4.Dataset(name, "a")
for d, value in (first, 6), (second, 7):
    d["b"][3] = value
second.close()
assert not close(first) and values() == [5, 5, 5, 7], values()
# What was published meanwhile (sync()) and is left open is replaced: to close it later is an error, if it was changed.
first = make(10)
first.sync()
first["b"][0] = 11
make(12).close()
assert values() == [12, 12, 12], values()
assert not close(first) and values() == [12, 12, 12], values()
# Readers keep what they opened, also one of what is given up.
reader, first = netCDF4.Dataset(name), make(13)
shown = netCDF4.Dataset(name)
second = make(14)
assert reader["b"][:].tolist() == [12, 12, 12] and shown["b"][:].tolist() == [13, 13, 13]
first.close()
second.close()
assert reader["b"][:].tolist() == [12, 12, 12] and shown["b"][:].tolist() == [13, 13, 13]
reader.close()
shown.close()
assert values() == [14, 14, 14], values()
# Who must not clobber it is refused, and nothing is given up.
first = make(15)
try:
    netCDF4.Dataset(name, "w", clobber=False)
    raise AssertionError("it was created anew")
except OSError:
    pass
first.close()
assert values() == [15, 15, 15], values()
kept = make(8), make(9)     # both are closed at the end
if sys.argv[2] == "cycle":
    kept = None
"""


def test_package():
    for kind, engines in (("pypi", '"esdm", "netcdf4"'), ("debian", '"esdm", "netcdf4"')):
        with Site(history=5) as site:
            python(site, kind, f"{MAKE}{ONTO_ITSELF}{PICKLED}ENGINES = ({engines})\n{BLOCKS}{SAME_BLOCKS}")


def test_zarr_stores():
    with Site(history=5) as site:
        python(site, "zarr", MAKE + "import esdm\nmake('esdm://r/b.nc', 7)\n" + STORES)


def test_esdm_run_alone():
    with Site() as site:
        for kind in ("pypi", "debian"):
            script = site.file("script.py")
            script.write_text(f'{MAKE}ENGINES = ("netcdf4",)\n{BLOCKS}')
            for environment in ({}, {"ESDM_NC_FAILURE": "commit"}):
                client([python_of(kind), "-W", "ignore", script], env=environment)


def test_stub_files():
    with Site() as site:
        folder = site.file("run")
        folder.mkdir()
        script = site.file("script.py")
        script.write_text(MAKE + ROUTED)
        client([python_of("pypi"), script, folder / "a.nc"], env={"ESDM_NC_ROUTE": str(folder)})
        expect((folder / "a.nc").stat().st_size < 10000, "no stub")


def test_left_open():
    said = "is created anew, and this process has not closed the one that it created before"
    with Site() as site:
        folder = site.file("run")
        folder.mkdir()
        script = site.file("script.py")
        script.write_text(LEFT_OPEN)
        for name, ending in ("esdm://r/a.nc", "held"), ("esdm://r/b.nc", "cycle"), (folder / "c.nc", "cycle"):
            done = client([python_of("pypi"), "-W", "ignore", script, name, ending], env={"ESDM_NC_ROUTE": str(folder)})
            expect(done.stderr.count(said) == 4, done.stderr)
            dump = client(["ncdump", "-v", "b", name]).stdout
            expect("b = 9, 9, 9 ;" in dump, dump)


main(test_left_open, test_package, test_zarr_stores, test_esdm_run_alone, test_stub_files)
