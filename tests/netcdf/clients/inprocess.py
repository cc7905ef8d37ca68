# SPDX-License-Identifier: LGPL-3.0-or-later
"""Running Python programs that make themselves active: `import esdm`, without esdm-run."""

import json
import subprocess

from clients import python_of
from esdmtest import BUILD, SANITIZE, SOURCE, client_environment, run, skip, tool

# A container e.nc of all atomic types, with groups, packed numbers and a time.
MAKE = """
import netCDF4, numpy as np, sys, esdm, xarray as xr, pickle, os
with netCDF4.Dataset("esdm://e.nc","w") as d:
    d.title="x"; d.createDimension("t",None); d.createDimension("x",50); d.createDimension("c",4)
    v=d.createVariable("v","i2",("t","x"),fill_value=-9,zlib=True,chunksizes=(2,25)); v.scale_factor=0.5; v.units="K"
    for i in range(6): v[i]=np.arange(50)+i
    t=d.createVariable("t","f8",("t",)); t.units="days since 2000-01-01"; t[:]=np.arange(6)
    s=d.createVariable("s",str,("x",)); s[:]=np.array([f"n\\u00e4{i}" for i in range(50)],dtype=object)
    c=d.createVariable("c4","S1",("x","c")); c[:]=np.array([list("abcd")]*50,dtype="S1")
    for k in ("i1","u1","u2","i4","u4","i8","u8","f4"): d.createVariable(k,k,("x",))[:]=np.arange(50)
    d.createVariable("sc","f4",())[...]=3
    g=d.createGroup("g"); w=g.createVariable("w","f4",("t","x")); w[:]=np.random.rand(6,50)
    g.createGroup("h").setncattr("a",np.int32(3))
a=xr.open_dataset("esdm://e.nc"); b=xr.open_dataset("esdm://e.nc",engine="netcdf4")
assert type(a.variables["v"]._data).__name__!="ndarray"
"""


def packages(site):
    """A folder as pip makes it, with the entry points."""
    folder = site.file("packages")
    info = folder / "esdm-0.1.0.dist-info"
    if not info.exists():
        info.mkdir(parents=True)
        (folder / "esdm").symlink_to(SOURCE / "python/esdm")
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: esdm\nVersion: 0.1.0\n")
        (info / "entry_points.txt").write_text(
            "[xarray.backends]\nesdm = esdm.xarray_engine:EsdmBackend\n")
    return folder


def python(site, kind, script, check=True, prefix=()):
    """Not under esdm-run, but under `prefix`."""
    if SANITIZE:
        skip("the sanitizer's library must come first, and nothing is preloaded here")
    env = client_environment({
        "PYTHONPATH": str(packages(site)),
        "ESDM_LIBRARY_DIR": f"{BUILD}:{BUILD / 'netcdf-plugin'}"})
    env.pop("LD_PRELOAD", None)
    return subprocess.run([*prefix, python_of(kind), "-c", script], env=env, cwd=site.folder, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300,
                          check=False) if not check else run(
        [*prefix, python_of(kind), "-c", script], env=env, cwd=site.folder)


def names():
    told = json.loads(run([tool("esdm-ls"), "--json"]).stdout)
    return [c["name"] for c in told["containers"]]


def started(site):
    """What a script begins with that runs as if pip had installed the package: Python reads .pth files of such folders."""
    folder = site.file("installed")
    if not folder.exists():
        folder.mkdir()
        for name in ("esdm", "esdm_start.py", "esdm-start.pth"):
            (folder / name).symlink_to(SOURCE.resolve() / "python" / name)
        (folder / "esdm-0.1.0.dist-info").symlink_to(packages(site) / "esdm-0.1.0.dist-info")
    return f"import site, sys\nsys.path.remove({str(packages(site))!r})\nsite.addsitedir({str(folder)!r})\n"
