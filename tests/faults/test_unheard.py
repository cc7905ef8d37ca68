#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""NetCDF programs whose commit takes place although they are told that it failed."""

from esdmtest import BUILD, Site, client, environment, expect, main, run, skip, tool

WRITE = """
import ctypes, netCDF4, numpy, sys
lib = ctypes.CDLL("libnetcdf.so.19")
d = netCDF4.Dataset("esdm://NAME", "w")
d.createDimension("t", None); d.createDimension("x", 100000)
v = d.createVariable("v", "f8", ("t", "x"))
v[0] = numpy.arange(100000)
if STEPS > 1:
    print("sync:", lib.nc_sync(d._grpid))
    v[1] = numpy.arange(100000) + 1
print("HOW:", lib.nc_HOW(d._grpid))
print("abort:", lib.nc_abort(d._grpid))
sys.stdout.flush()
import os; os._exit(0)
"""
CHECK = """
import netCDF4, numpy
d = netCDF4.Dataset("esdm://NAME")
print(d["v"].shape[0], all((d["v"][t] == numpy.arange(100000) + t).all()
                           for t in range(d["v"].shape[0])))
"""


def test_unheard__commit_of_a_netcdf_program():
    """nc_close() or nc_sync() fails, nc_abort() follows; the data are there all the same."""
    plugins = {"ESDM_PLUGIN_PATH": str(BUILD / "plugins")}
    with Site(make=False, metadata={"plugin": "faulty", "directory": "metadata"}):
        run([tool("esdm-mkfs")], env=environment(plugins))
        for how in ("close", "sync"):
            for steps in (1, 2):
                name = f"{how}{steps}.nc"
                script = WRITE.replace("NAME", name).replace("STEPS", str(steps))
                said = client(["/usr/bin/python3", "-c", script.replace("HOW", how)],
                              env={**plugins, "ESDM_FAULTY_META": f"commit:{steps}+1:unknown"})
                lines = dict(line.split(": ") for line in said.stdout.splitlines())
                expect(lines.get("sync") == "0" or steps == 1 or how == "sync", f"{lines}")
                expect(int(lines[how]) != 0, f"{name}: {lines}: the commit did not fail")
                done = client(["/usr/bin/python3", "-c", CHECK.replace("NAME", name)], env=plugins)
                expect(done.stdout.split() == [str(steps), "True"], f"{name}: {done.stdout}")
        run([tool("esdm-fsck"), "--data"], env=environment(plugins))


if __name__ == "__main__":
    if not (BUILD / "plugins/esdm-meta-faulty.so").exists():
        skip("esdm-meta-faulty was not built")
    main(test_unheard__commit_of_a_netcdf_program)
