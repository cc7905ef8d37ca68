#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""`import esdm` in programs that esdm-run did not start: before and after netCDF4, with xarray alone,
with Debian's and PyPI's libraries; the catalogue from Python; and the C function by itself."""

import json
import os
import shutil
import struct
import sys

from esdmtest import BUILD, SANITIZE, SOURCE, Site, client_environment, expect, main, run, skip, tool
from clients import python_of
from inprocess import names, packages, python, started

WRITE = """
import numpy
with netCDF4.Dataset("esdm://exp/a.nc", "w") as d:
    d.title = "x<y"
    d.createDimension("t", None); d.createDimension("x", 5000)
    v = d.createVariable("v", "f4", ("t", "x"))
    for i in range(3):
        v[i] = i
        d.sync()
with netCDF4.Dataset("esdm://exp/a.nc") as d:
    assert d["v"].shape == (3, 5000) and float(d["v"][2].mean()) == 2
"""
PLAIN = """
import netCDF4
with netCDF4.Dataset("plain.nc", "w") as d:
    d.createDimension("x", 3); d.createVariable("v", "f8", ("x",))[:] = [1, 2, 3]
"""
READ_PLAIN = """
with netCDF4.Dataset("plain.nc") as d:
    assert list(d["v"][:]) == [1, 2, 3]
assert not __import__("os").path.exists("exp")
"""


def check_orders(kind):
    with Site() as site:
        for script in ("import esdm, netCDF4" + WRITE, PLAIN + "import esdm" + WRITE + READ_PLAIN):
            python(site, kind, script)
            expect(names() == ["exp/a.nc"], f"{names()}")
            run([tool("esdm-rm"), "exp/a.nc"])
        told = python(site, kind, PLAIN + "import esdm\nprint(esdm.activate())").stdout
        expect(told.startswith("0 calls"), f"a second activation: {told}")


def test_debian_s_netcdf4_before_and_after():
    check_orders("debian")


def test_pypi_s_netcdf4_before_and_after():
    check_orders("pypi")


def test_xarray_alone():
    with Site() as site:
        client_script = ("import netCDF4, esdm\nwith netCDF4.Dataset('esdm://made.nc', 'w') as d:\n"
                         "    d.createDimension('x', 4); d.createVariable('tas', 'f4', ('x',))[:] = 7")
        python(site, "pypi", client_script)
        told = python(site, "pypi", "import sys, xarray as xr\n"
                      "with xr.open_dataset('esdm://made.nc') as d:\n"
                      "    print(d.tas.values.sum(), 'netCDF4' in sys.modules)\n"
                      "    (d * 2).to_netcdf('esdm://doubled.nc')\n"
                      "print(xr.open_dataset('esdm://doubled.nc').tas.values.sum())").stdout.split()
        expect(told == ["28.0", "True", "56.0"], f"{told}")
        expect(names() == ["doubled.nc", "made.nc"], f"{names()}")


WRITE_FIRST = """
import sys, os
assert "esdm" not in sys.modules and "netCDF4" not in sys.modules
import numpy, xarray as xr
d = xr.Dataset({"tas": ("x", numpy.arange(4.0), {"units": "K"})})
d.to_netcdf("plain.nc", engine="netcdf4")
assert "esdm" not in sys.modules, "a plain file has nothing to do with esdm"
"""


def test_xarray_alone_writes_at_once():
    with Site() as site:
        python(site, "pypi", started(site) + WRITE_FIRST + """
d.to_netcdf("esdm://first.nc")
assert d.esdm and sys.modules["esdm"].stat("first.nc").datasets == 1
assert xr.open_dataset("esdm://first.nc").tas.values.sum() == xr.open_dataset("plain.nc").tas.values.sum() == 6
assert xr.backends.NetCDF4DataStore.open.__func__.__module__ == "xarray.backends.netCDF4_"
""")
        expect(names() == ["first.nc"], f"{names()}")
        python(site, "pypi", started(site) + WRITE_FIRST + """
xr.save_mfdataset([d, d + 1], ["esdm://a.nc", "ESDM://b.nc"])
assert [c.name for c in sys.modules["esdm"].ls()] == ["a.nc", "b.nc", "first.nc"]
""")
        python(site, "pypi", started(site) + WRITE_FIRST + """
import esdm
d.to_netcdf("esdm://imported.nc")
if hasattr(xr, "DataTree"):
    xr.DataTree.from_dict({"/": d, "/inner": d}).to_netcdf("esdm://tree.nc", engine="netcdf4")
    assert float(xr.open_dataset("esdm://tree.nc", group="inner").tas.sum()) == 6
""")
        told = python(site, "pypi", started(site) + WRITE_FIRST.replace("d.to_netcdf", "os.environ['ESDM_LIBRARY_DIR'] = os.environ['PATH'] = "
                      "'/none'\nd.to_netcdf") + "d.to_netcdf('esdm://x.nc')", check=False)
        expect(told.returncode == 1 and "libesdm-netcdf.so was not found: install ESDM" in told.stderr, told.stderr)


PATH_ALONE = """
import {0}, numpy, sys
assert "esdm.xarray_engine" not in sys.modules
import {1}
sys.path.insert(0, "")
data = xarray.Dataset({"v": (("t", "x"), numpy.arange(6.0).reshape(2, 3))}, {"t": [0, 1], "x": [0, 1, 2]})
data.to_netcdf("esdm://exp/a.nc", unlimited_dims="t")
with xarray.open_dataset("esdm://exp/a.nc", engine="esdm") as one:
    assert one.sizes["t"] == 2
esdm.append(data.assign_coords(t=[2, 3]), "exp/a.nc", dim="t")
esdm.write_region(data * 10, "exp/a.nc", {"t": slice(0, 2)})
with xarray.open_mfdataset(["esdm://exp/a.nc"], chunks={}) as all, xarray.open_dataset("esdm://exp/a.nc", engine="esdm") as one:
    assert all.sizes["t"] == 4 and one.sizes["t"] == 4
for found in (esdm.ls("exp")[-1], esdm.find("max(v) > 1")[-1]):
    with found.to_xarray() as read:
        assert read.sizes["t"] == 4 and float(read["v"].max()) == 50, read
"""


def test_the_package_in_the_path_alone():
    """As tools/quickstart.sh says: it is not installed, so xarray does not know the engine by its name."""
    if SANITIZE:
        skip("the sanitizer's library must come first, and nothing is preloaded here")
    with Site() as site:
        env = client_environment({"PYTHONPATH": str(SOURCE / "python"),
                                  "ESDM_LIBRARY_DIR": f"{BUILD}:{BUILD / 'netcdf-plugin'}"})
        env.pop("LD_PRELOAD", None)
        for kind in ("debian", "pypi"):
            for order in (("esdm", "xarray"), ("xarray", "esdm")):
                script = PATH_ALONE.replace("{0}", order[0]).replace("{1}", order[1])
                run([python_of(kind), "-c", script.replace("exp/", f"exp/{kind}-{order[0]}-")], env=env, cwd=site.folder)


ASKED = """
import esdm, netCDF4, os, sys, warnings
def left():
    return sorted(os.listdir("home"))
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    assert esdm.ls() == [] and esdm.ls("run") == [] and esdm.find("a = 3") == [] and esdm.views() == []
    assert esdm.facets("a = 3", "b") == [] and esdm.facets(None, "a", "b") == []
    assert len(told) == 6 and all("there is no site yet" in str(t.message) for t in told), told
    assert {t.filename for t in told} == {"<string>"}, told
import xarray
for asks in (lambda: esdm.stat("x.nc"), lambda: esdm.open("x.nc"), esdm.site,
             lambda: netCDF4.Dataset("esdm://x.nc"), lambda: xarray.open_dataset("esdm://x.nc", engine="esdm"),
             lambda: esdm.snapshots("x.nc"), lambda: esdm.remove("x.nc"), lambda: esdm.move("x.nc", "y.nc"),
             lambda: esdm.clone("x.nc", "y.nc"), lambda: esdm.placement("x.nc"), lambda: esdm.merge("x.nc", "b")):
    try:
        asks()
        raise SystemExit("no error")
    except FileNotFoundError as error:
        print(error)
assert left() == [], left()
with esdm.open("x.nc", mode="w") as d:
    d.createDimension("x", 3); d.createVariable("v", "f8", ("x",))[:] = [1, 2, 3]
assert left() == [".local"], left()
assert [c.name for c in esdm.ls()] == ["x.nc"] and list(esdm.open("x.nc")["v"][:]) == [1, 2, 3]
"""


def test_asking_makes_no_default_site():
    if SANITIZE:
        skip("the sanitizer's library must come first, and nothing is preloaded here")
    for kind in ("debian", "pypi"):
        with Site() as site:
            home = site.file("home")
            home.mkdir()
            env = client_environment({"PYTHONPATH": str(packages(site)), "HOME": str(home),
                                      "ESDM_LIBRARY_DIR": f"{BUILD}:{BUILD / 'netcdf-plugin'}"})
            for name in ("LD_PRELOAD", "ESDM_CONFIG", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
                env.pop(name, None)
            done = run([python_of(kind), "-c", ASKED], env=env, cwd=site.folder)
            expect("there is no site yet" in done.stdout, done.stdout)
            expect("x.nc" in run([tool("esdm-ls")], env=env, cwd=home).stdout, "the site is made")


def test_the_catalogue():
    with Site(history=10) as site:
        python(site, "pypi", "import esdm, netCDF4" + WRITE)
        told = python(site, "pypi", """
import esdm
assert [c.name for c in esdm.ls()] == ["exp/a.nc"] and esdm.ls("none") == []
(found,) = esdm.find('title = "x<y"')
assert found.container == "exp/a.nc" and found.variable is None
steps = esdm.snapshots("exp/a.nc")
assert len(steps) >= 3 and steps[-1].snapshot == esdm.stat("esdm://exp/a.nc").snapshot
assert esdm.open("exp/a.nc", snapshot=steps[0].snapshot)["v"].shape[0] == 1
assert esdm.open("exp/a.nc", snapshot=-1)["v"].shape[0] < 4
for step in steps:
    assert esdm.open("exp/a.nc", snapshot=step.time)["v"].shape == esdm.open("exp/a.nc", snapshot=step.snapshot)["v"].shape
assert esdm.ls()[0].to_xarray().v.shape == (3, 5000)
assert esdm.open(esdm.query(title="x<y"))["v"].shape == (3, 5000)
assert esdm.open(esdm.query("exists :title", ensemble="title"))["v"].shape == (3, 1, 5000)
esdm.link(esdm.query(title="x<y"), "exp/named")
assert esdm.open("exp/named")["v"].shape == (3, 5000)
esdm.remove("exp/named")
assert "<td>exp/a.nc</td>" in esdm.ls()._repr_html_()
import warnings
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    assert esdm.find("titel = 3") == [] and "did you mean 'title'" in str(told[0].message), told
    assert len(told) == 1 and told[0].filename == "<string>", told
    assert esdm.find("title = 3") == [] and len(told) == 1, told
try:
    esdm.find("title ! 3")
    raise SystemExit("no error")
except esdm.EsdmError as error:
    print(error)
for wrong in (lambda: esdm.stat("none.nc"), lambda: esdm.open("none.nc")):
    try:
        wrong()
        raise SystemExit("no error")
    except FileNotFoundError:
        pass
esdm.clone("esdm://exp/a.nc@-1", "exp/clone.nc")
assert esdm.open("exp/clone.nc")["v"].shape == esdm.open("exp/a.nc", snapshot=-1)["v"].shape
try:
    esdm.clone("exp/a.nc", "exp/clone.nc")
    raise SystemExit("no error")
except esdm.EsdmError as error:
    assert "exp/clone.nc" in str(error)
esdm.clone("exp/a.nc", "exp/clone.nc", replace=True)
esdm.move("exp/a.nc", "exp/b.nc")
esdm.remove("exp/b.nc")
assert esdm.open("exp/clone.nc")["v"].shape == (3, 5000)
esdm.remove("exp/clone.nc")
""").stdout
        expect("column" in told and names() == [], told)


ERRORS = """
import ctypes, sys, threading, esdm, netCDF4
for name, mode, kind, words in (("exp/a.nc@99", "r", FileNotFoundError, "has no snapshot '99'"),
                                ("?none=1", "r", FileNotFoundError, "no container has an attribute 'none'"),
                                ("exp/a.nc@foo", "r", FileNotFoundError, "behind '@' stands a number of esdm-log"),
                                ("none.nc", "r", FileNotFoundError, "there is no container 'none.nc'"),
                                ("exp/a.nc?accuracy=much", "r", esdm.EsdmError, "a number greater than 0 is expected"),
                                ("exp/a.nc@1", "a", PermissionError, "is a snapshot, which nobody can write to"),
                                ("exp/../a.nc", "w", esdm.EsdmError, "'.' and '..' are not allowed")):
    try:
        esdm.open(name, mode=mode)
        raise SystemExit(f"no error: {name}")
    except kind as error:
        assert str(error).count(words) == 1, error
sys.stderr.write("now netCDF4 alone\\n")
def fail(snapshot):
    try:
        netCDF4.Dataset(f"esdm://exp/a.nc@{snapshot}", "a")
    except OSError:
        pass
fail(1)
plugin, text = ctypes.CDLL("libesdm-netcdf.so"), ctypes.create_string_buffer(b"old", 30)
plugin.esdm_netcdf_listen(text, ctypes.c_size_t(30))
fail(2)
assert text.value == b"open 'exp/a.nc@2': 'exp/a.nc@", text.value
other = threading.Thread(target=fail, args=[3])
other.start(); other.join()
plugin.esdm_netcdf_listen(None, ctypes.c_size_t(0))
assert len(text.value) == 29
"""


def test_esdm_open_tells_errors_once():
    with Site() as site:
        python(site, "pypi", "import esdm, netCDF4" + WRITE)
        told = python(site, "pypi", ERRORS.replace('"libesdm-netcdf.so"', repr(str(BUILD / "netcdf-plugin/libesdm-netcdf.so")))).stderr
        before, _, after = told.partition("now netCDF4 alone\n")
        expect(before == "", f"{before}")
        told = [number for number in (1, 2, 3) if f"'exp/a.nc@{number}' is a snapshot" in after]
        expect(told == [1, 3], f"those of netCDF4, and of another thread: {after}")


SNAPSHOTS = """
import datetime, esdm, numpy as np
step = esdm.snapshots("exp/a.nc")[-1]
writes = "esdm.write() and Dataset.esdm.to() write datasets"
for snapshot, kind, words in (("w", ValueError, writes), ("r+", ValueError, writes), ("a", ValueError, writes),
                              (True, TypeError, "True names no snapshot"), (False, TypeError, "False names"),
                              (1.0, TypeError, "1.0 names no snapshot"), (step, TypeError, "names no snapshot"),
                              ("yesterday", ValueError, "'yesterday' names no snapshot"), ("", ValueError, "'' names"),
                              ("2026-11", ValueError, "'2026-11' names"), ("tag:", ValueError, "'tag:' names")):
    for call in (esdm.open, esdm.digest, esdm.stat("exp/a.nc").open, esdm.stat("exp/a.nc").to_xarray):
        try:
            call(*(["exp/a.nc"] if call in (esdm.open, esdm.digest) else []), snapshot)
            raise SystemExit(f"no error: {snapshot!r}")
        except kind as error:
            assert words in str(error) and "a number, -1 (the one before the newest), a time" in str(error), error
            assert ("If it is a mode" in str(error)) == (words == writes), error
tomorrow = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
for snapshot in (step.snapshot, np.int64(step.snapshot), str(step.snapshot), -1, "-1", step.time, step.time.isoformat()[:26], tomorrow.date(),
                 f"{tomorrow:%Y-%m-%d}", f"{tomorrow:%Y-%m-%d %H:%M}Z", np.datetime64(tomorrow.replace(tzinfo=None)), None):
    assert "v" in esdm.open("exp/a.nc", snapshot).variables, snapshot
"""


FACETS = """
import esdm, netCDF4, warnings
made = [("a", "old"), ("a", "new"), ("b", "new"), ("c", 'say "x"'), ("a", "new")]
for k, (model, run) in enumerate(made):
    with netCDF4.Dataset(f"esdm://many/{k}.nc", "w") as d:
        d.setncatts({"model": model, "run": run, "number": k % 2, "at": "2", "in words": "yes"})
        d.createDimension("x", 1)
        d.createVariable("v", "f4", ("x",)).units = "K"
def counted(question, *names):
    return [(f.name, f.value, f.containers) for f in esdm.facets(question, *names)]
assert counted(None, "model") == [("model", "a", 3), ("model", "b", 1), ("model", "c", 1)], counted(None, "model")
assert counted("model = a", "run", "number") == [("run", "new", 2), ("run", "old", 1), ("number", "0", 2), ("number", "1", 1)]
assert counted("v.units = K and not model = a", "run") == [("run", "new", 1), ("run", 'say "x"', 1)]
assert counted(None, "number", "at") == [("number", "0", 3), ("number", "1", 2), ("at", "2", 5)]
assert counted(None, "in words") == counted("model = a or not model = a", "in words") == [("in words", "yes", 5)]
assert "a" in repr(esdm.facets(None, "model")) and isinstance(esdm.facets(None, "model")[0], esdm.Facet)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    assert counted("model = a", "modell") == [] and "did you mean 'model'" in str(told[0].message), told
    assert counted("model = none", "run") == [] and len(told) == 1, told
    assert counted(None, 'no "such\\\\"') == [] and 'no "such' in str(told[1].message), told
for wrong, error in (((None,), TypeError), (("model !", "run"), esdm.EsdmError)):
    try:
        esdm.facets(*wrong)
        raise SystemExit("no error")
    except error:
        pass
"""


def test_facets_are_counted():
    with Site() as site:
        python(site, "pypi", FACETS)


def test_what_is_no_snapshot_is_told():
    with Site(history=10) as site:
        python(site, "pypi", "import esdm, netCDF4" + WRITE)
        python(site, "pypi", SNAPSHOTS)


def test_the_import_reads_little():
    with Site() as site:
        python(site, "pypi", """
import sys
before = set(sys.modules)
import esdm
read = set(sys.modules) - before
assert len(read) < 25 and not read & {"dataclasses", "inspect", "typing", "pathlib", "shutil", "datetime", "esdm._catalogue"}, read
assert "esdm._catalogue" not in sys.modules and {"open", "Table", "find"} <= set(dir(esdm))
everything = {}
exec("from esdm import *", everything)
assert {*esdm.__all__} <= {*everything} and everything["open"] is esdm.open and esdm.open is not open
assert esdm.open.__module__ == "esdm._catalogue" and esdm.ls() == esdm.Table()
try:
    esdm.nothing
    raise SystemExit("no error")
except AttributeError as error:
    assert "'esdm' has no attribute 'nothing'" in str(error), error
""")
        told = python(site, "pypi", """
import os
os.environ["ESDM_LIBRARY_DIR"], os.environ["PATH"] = "/none", "/none:/tmp"
import esdm
""", check=False).stderr
        expect("libesdm-netcdf.so was not found: install ESDM" in told, told)


def test_a_program_that_fails_keeps_what_was_there():
    with Site() as site:
        python(site, "pypi", "import esdm, netCDF4" + WRITE)
        done = python(site, "pypi", PLAIN + "import esdm\n"
                      "d = netCDF4.Dataset('esdm://exp/a.nc', 'w')\nd.createDimension('y', 2)\n"
                      "1 / 0", check=False)
        expect(done.returncode == 1 and "ZeroDivisionError" in done.stderr, done.stderr)
        told = python(site, "pypi", "import esdm\nprint(esdm.open('exp/a.nc')['v'].shape)").stdout
        expect(told == "(3, 5000)\n", f"the former container is gone: {told}{done.stderr}")


def test_what_is_forked_is_active_too():
    with Site() as site:
        told = python(site, "pypi", PLAIN + """
import esdm, os, sys
if os.fork() == 0:
    exec(%r)
    os._exit(0)
sys.exit(os.wait()[1])
""" % WRITE)
        expect(names() == ["exp/a.nc"], f"{names()}{told.stderr}")


PROGRAM = r"""
#include <dlfcn.h>
#include <netcdf.h>
#include <stdio.h>
#include <string.h>
#include "esdm/netcdf.h"
#define CHECK(x) do { int rc_ = (x); if (rc_) { printf("%s: %s\n", #x, nc_strerror(rc_)); return 1; } } while (0)
int
main(int argc, char **argv)
{
    int ncid, dim, var, value = 7, again = 0;
    char report[200];
    CHECK(nc_create("first.nc", NC_CLOBBER, &ncid)); /* the slots are filled */
    CHECK(nc_close(ncid));
    void *plugin = dlopen(argv[1], RTLD_NOW);
    int (*activate)(char *, size_t) = (int (*)(char *, size_t)) dlsym(plugin, "esdm_netcdf_activate");
    int (*deactivate)(void) = (int (*)(void)) dlsym(plugin, "esdm_netcdf_deactivate");
    if (argc < 2 || activate(report, sizeof report) <= 0 || strstr(report, "redirected") == NULL)
        return printf("%s\n", report), 2;
    CHECK(nc_create("esdm://c.nc", NC_CLOBBER, &ncid));
    CHECK(nc_def_dim(ncid, "x", 1, &dim));
    CHECK(nc_def_var(ncid, "v", NC_INT, 1, &dim, &var));
    CHECK(nc_enddef(ncid));
    CHECK(nc_put_var_int(ncid, var, &value));
    CHECK(nc_close(ncid));
    CHECK(nc_open("esdm://c.nc", NC_NOWRITE, &ncid));
    CHECK(nc_get_var_int(ncid, var, &again));
    CHECK(nc_close(ncid));
    int back = deactivate();
    int blind = nc_open("esdm://c.nc", NC_NOWRITE, &ncid) != NC_NOERR;
    int more = activate(report, sizeof report);
    CHECK(nc_open("esdm://c.nc", NC_NOWRITE, &ncid));
    CHECK(nc_close(ncid));
    printf("%d %d %d\n", again, blind, back > 0 && more > 0);
    return 0;
}
"""


def test_a_c_program():
    if SANITIZE:
        skip("the sanitizer's library must come first, and nothing is preloaded here")
    with Site() as site:
        source, program = site.file("p.c"), site.file("p")
        source.write_text(PROGRAM)
        flags = run(["pkg-config", "--cflags", "--libs", "netcdf"]).stdout.split()
        run(["cc", "-o", program, source, f"-I{SOURCE / 'src/include'}", *flags, "-ldl"])
        env = {k: v for k, v in client_environment().items() if k != "LD_PRELOAD"}
        told = run([program, BUILD / "netcdf-plugin/libesdm-netcdf.so"], env=env,
                   cwd=site.folder).stdout
        expect(told == "7 1 1\n" and names() == ["c.nc"], f"{told}{names()}")


R = """
activate <- function() {
    dyn.load("PLUGIN")
    .C("esdm_netcdf_activate_r", calls = 0L)$calls
}
use <- function(name) {
    x <- ncdim_def("x", "m", 1:5)
    made <- nc_create(name, ncvar_def("v", "K", list(x)))
    ncvar_put(made, "v", c(1, 2, 3, 4, 5))
    nc_close(made)
    back <- nc_open(name)
    cat(sum(ncvar_get(back, "v")), "\\n")
    nc_close(back)
}
"""
LOADED_BEFORE = """
library(ncdf4)
use("plain.nc")
stopifnot(activate() > 0, activate() == 0)
use("esdm://r/before.nc")
"""
LOADED_AFTER = """
invisible(activate())
library(ncdf4)
use("esdm://r/after.nc")
use("plain2.nc")
stopifnot(file.exists("plain2.nc"), !file.exists("r"))
"""
# What was done so far, as esdm.report() of Python.
RECORDS = """
records <- function(file) .C("esdm_netcdf_records_r", file, status = 0L)$status
stopifnot(activate() >= 0)
library(ncdf4)
use("plain3.nc")
stopifnot(records("none.jsonl") == -1, !file.exists("none.jsonl"))
use("esdm://r/told.nc")
stopifnot(records("told.txt") == -1, records("no/folder.jsonl") == -1, records("told.jsonl") == 0, records("told.jsonl") == 0)
stopifnot(all(list.files(".", "jsonl|txt") == "told.jsonl"))
"""


def test_r__before_and_after_ncdf4():
    if SANITIZE:
        skip("the sanitizer's library must come first, and nothing is preloaded here")
    if shutil.which("Rscript") is None or run(["Rscript", "-e", "library(ncdf4)"], check=False).returncode:
        skip("R's ncdf4 is not installed")
    with Site() as site:
        env = {k: v for k, v in client_environment().items() if k != "LD_PRELOAD"}
        told = ""
        for script in (LOADED_BEFORE, LOADED_AFTER):
            site.file("try.R").write_text(R.replace("PLUGIN", str(BUILD / "netcdf-plugin/libesdm-netcdf.so")) + script)
            told += run(["Rscript", site.file("try.R")], env=env, cwd=site.folder).stdout
        expect(told.split() == ["15"] * 4 and names() == ["r/after.nc", "r/before.nc"], f"{told}{names()}")
        site.file("try.R").write_text(R.replace("PLUGIN", str(BUILD / "netcdf-plugin/libesdm-netcdf.so")) + RECORDS)
        done = run(["Rscript", site.file("try.R")], env=env, cwd=site.folder)
        for words in ("alls of plain files are not recorded here", "must end in .jsonl", "cannot write 'no/folder.jsonl'"):
            expect(words in done.stderr, done.stderr)
        report = json.loads(run([tool("esdm-explain"), "--json", site.file("told.jsonl")]).stdout)
        expect([v["write"]["bytes"] for v in report["variables"] if v["variable"] == "/v"] == [20], report["variables"])
        told = run([tool("esdm-explain"), site.file("told.jsonl")]).stdout
        expect("It wrote nothing to targets." in told and "/v" in told, told)


FOUND_BY_NAME = """
import ctypes, os
stock = ctypes.CDLL("libnetcdf.so.19", mode=os.RTLD_LOCAL | os.RTLD_NOW)
plugin = ctypes.CDLL("PLUGIN", mode=os.RTLD_LOCAL | os.RTLD_NOW)
assert plugin.esdm_netcdf_activate(None, ctypes.c_size_t(0)) > 0
file, dim, var = (ctypes.c_int() for _ in range(3))
def check(status):
    assert status == 0, status
check(stock.nc_create(b"esdm://by-name.nc", 0x1000, ctypes.byref(file)))
check(stock.nc_def_dim(file, b"x", ctypes.c_size_t(3), ctypes.byref(dim)))
check(stock.nc_def_var(file, b"v", 4, 1, ctypes.byref(dim), ctypes.byref(var)))
check(stock.nc_enddef(file))
check(stock.nc_put_var_int(file, var, (ctypes.c_int * 3)(5, 6, 7)))
check(stock.nc_close(file))
check(stock.nc_open(b"esdm://by-name.nc", 0, ctypes.byref(file)))
values = (ctypes.c_int * 3)()
check(stock.nc_get_var_int(file, 0, values))
check(stock.nc_close(file))
print(*values)
"""


def test_functions_that_are_found_by_name():
    """Julia calls what dlsym() finds in the NetCDF library: no object has slots that could be directed."""
    if SANITIZE:
        skip("the sanitizer's library must come first, and nothing is preloaded here")
    with Site() as site:
        env = {k: v for k, v in client_environment().items() if k != "LD_PRELOAD"}
        script = FOUND_BY_NAME.replace("PLUGIN", str(BUILD / "netcdf-plugin/libesdm-netcdf.so"))
        told = run(["/usr/bin/python3", "-c", script], env=env, cwd=site.folder).stdout
        expect(told == "5 6 7\n" and names() == ["by-name.nc"], f"{told}{names()}")


PARTLY_SEALED = r"""
#include <netcdf.h>
int written = 1; /* lies behind the slots, in the same page */
int (*const opens)(const char *, int, int *) = nc_open;
int count(void) { int ncid; return written++ + (nc_open("none.nc", NC_NOWRITE, &ncid) == NC_NOERR); }
"""
LOADS = r"""
#include <dlfcn.h>
#include <stdio.h>
int
main(int argc, char **argv)
{
    void *part = dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL), *plugin = dlopen(argv[1], RTLD_NOW);
    int (*activate)(char *, size_t) = (int (*)(char *, size_t)) dlsym(plugin, "esdm_netcdf_activate");
    int (*count)(void) = (int (*)(void)) dlsym(part, "count");
    int before = count(), calls = activate(NULL, 0);
    return printf("%d %d %d\n", before, calls > 0, count()) < 0 || argc < 3;
}
"""


def seal_until_the_slots(path):
    """Lets the part that is read-only after linking end behind the slots, inside a page: so do linkers
    that know of smaller pages than the kernel has."""
    data = bytearray(path.read_bytes())
    start, size, count = (*struct.unpack_from("<Q", data, 32), *struct.unpack_from("<HH", data, 54))
    for at in range(start, start + count * size, size):
        if struct.unpack_from("<I", data, at)[0] == 0x6474E552:  # PT_GNU_RELRO
            bytes_in_memory = struct.unpack_from("<Q", data, at + 40)[0]
            struct.pack_into("<Q", data, at + 40, bytes_in_memory + 48)
    path.write_bytes(data)


def test_data_beside_the_slots_stay_writable():
    if SANITIZE:
        skip("the sanitizer's library must come first, and nothing is preloaded here")
    with Site() as site:
        part, program = site.file("part.so"), site.file("p")
        site.file("part.c").write_text(PARTLY_SEALED)
        site.file("p.c").write_text(LOADS)
        flags = run(["pkg-config", "--cflags", "--libs", "netcdf"]).stdout.split()
        run(["cc", "-shared", "-fPIC", "-o", part, site.file("part.c"), *flags,
             "-Wl,-z,relro,-z,lazy"])
        seal_until_the_slots(part)
        run(["cc", "-o", program, site.file("p.c"), "-ldl"])
        env = {k: v for k, v in client_environment().items() if k != "LD_PRELOAD"}
        told = run([program, BUILD / "netcdf-plugin/libesdm-netcdf.so", part], env=env,
                   cwd=site.folder).stdout
        expect(told == "1 1 2\n", told)


def test_an_installed_package():
    if os.environ.get("ESDM_TEST_SIZE") != "long":
        skip("in the long form")
    with Site() as site:
        folder = site.file("venv")
        run([sys.executable, "-m", "venv", "--system-site-packages", folder])
        run([folder / "bin/pip", "install", "-q", SOURCE / "python"])
        env = client_environment({"PATH": f"{BUILD / 'tools'}:{os.environ['PATH']}"})
        env.pop("LD_PRELOAD", None)
        env.pop("PYTHONPATH", None)
        run([folder / "bin/python", "-c", "import esdm, netCDF4" + WRITE], env=env, cwd=site.folder)
        expect(names() == ["exp/a.nc"], f"{names()}")


main(
    test_debian_s_netcdf4_before_and_after,
    test_pypi_s_netcdf4_before_and_after,
    test_xarray_alone,
    test_the_package_in_the_path_alone, test_asking_makes_no_default_site, test_the_catalogue,
    test_esdm_open_tells_errors_once,
    test_what_is_no_snapshot_is_told,
    test_the_import_reads_little,
    test_a_program_that_fails_keeps_what_was_there,
    test_what_is_forked_is_active_too,
    test_a_c_program,
    test_r__before_and_after_ncdf4,
    test_functions_that_are_found_by_name,
    test_data_beside_the_slots_stay_writable,
    test_an_installed_package,
    test_xarray_alone_writes_at_once,
)
