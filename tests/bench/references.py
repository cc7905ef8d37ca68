#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Reading netCDF files that containers refer to, and opening an archive of files that differ, beside stock netCDF and xarray.

    references.py --build BUILD --folder FOLDER make      makes the files and refers to them
    references.py --build BUILD --folder FOLDER read      variables read as a whole, in turns: warm, and with the files' pages dropped
    references.py --build BUILD --folder FOLDER archive   the archive of tests/netcdf/clients/archive_files.py, opened as one

Each time is of a program of its own, which opens the file, reads, and says what these took; least and median of --repeat.
Ratios are medians of those of programs that ran next to each other.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]
PYTHON = "/usr/bin/python3"

MAKE = """
import sys, netCDF4, numpy as np
folder, mib = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(1)
steps, shape = mib, (512, 512)
smooth = np.add.outer(np.sin(np.arange(512) / 40), np.cos(np.arange(512) / 55))
for name, how in {"plain": dict(chunksizes=(1, 512, 512)), "whole": dict(contiguous=True), "classic": {},
                  "deflated": dict(chunksizes=(1, 512, 512), zlib=True, complevel=4, shuffle=True)}.items():
    with netCDF4.Dataset(f"{folder}/{name}.nc", "w", format="NETCDF4" if how else "NETCDF3_64BIT_OFFSET") as d:
        for dim, n in zip(("time", "lat", "lon"), (steps, *shape)):
            d.createDimension(dim, n)
        v = d.createVariable("tas", "f4", ("time", "lat", "lon"), **how)
        for k in range(steps):
            v[k] = np.round(280 + 10 * smooth + rng.standard_normal(shape), 2)
"""
READ = """
import sys, time, os
import netCDF4
path, drop = sys.argv[1], sys.argv[2]
if drop:
    fd = os.open(drop, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
begun = time.perf_counter()
with netCDF4.Dataset(path) as d:
    d.set_auto_maskandscale(False)
    opened = time.perf_counter()
    v = d["tas"][...]
    read = time.perf_counter()
print((read - begun) * 1e3, (read - opened) * 1e3, float(v[-1].sum()))
"""
OPEN = """
import sys, time
import netCDF4
times = []
for _ in range(7):
    begun = time.perf_counter()
    d = netCDF4.Dataset(sys.argv[1])
    times.append((time.perf_counter() - begun) * 1e3)
    d.close()
print(*times)
"""
XARRAY = """
import glob, sys, time, warnings
warnings.simplefilter("ignore")
import xarray
begun = time.perf_counter()
try:
    d = xarray.open_mfdataset(sorted(glob.glob(sys.argv[1] + "/*.nc") + glob.glob(sys.argv[1] + ".made/*.nc"), key=lambda f: f[-11:]), combine="by_coords", data_vars="all", coords="minimal",
                              compat="override", combine_attrs="override")
    took = (time.perf_counter() - begun) * 1e3
    print(took, dict(d.sizes), float(d.skt.isnull().sum()))
except Exception as error:
    print((time.perf_counter() - begun) * 1e3, type(error).__name__, str(error)[:300].replace(chr(10), " "))
"""


def site_of(options, threads):
    """The environment of a site with so many threads; all have the same store."""
    path = options.folder / f"site{threads}.json"
    path.write_text(json.dumps({
        "site": {"name": "references"}, "targets": [{"name": "disk", "plugin": "posix", "directory": "packs"}],
        "metadata": {"plugin": "sqlite", "directory": "metadata"}, "engine": {"threads": threads}}))
    return dict(os.environ, ESDM_CONFIG=str(path))


def tool(options, name):
    return str(options.build / "tools" / name)


def make(options):
    data = options.folder / "data"
    archive = options.folder / "archive"
    data.mkdir()
    archive.mkdir()
    subprocess.run([PYTHON, "-c", MAKE, data, str(options.mib)], check=True)
    subprocess.run([PYTHON, ROOT / "tests/netcdf/clients/archive_files.py", "make", archive, "200", "others"], check=True)
    env = site_of(options, 1)
    subprocess.run([tool(options, "esdm-mkfs")], env=env, check=True, stdout=subprocess.DEVNULL)
    for folder in (data, archive):
        subprocess.run([tool(options, "esdm-ref"), "-q", folder, f"esdm://{folder.name}"], env=env, check=True)
    gribs = sorted(f"archive/{f.name}" for f in archive.glob("*.grb"))  # GRIB says nothing of series
    subprocess.run([tool(options, "esdm-attr"), "--set", "series=dirty", *gribs], env=env, check=True, stdout=subprocess.DEVNULL)


def read(options):
    """Programs take turns; the one that begins is another one each time."""
    ways = [("stock netCDF", None, 0), ("ESDM, 1 thread", 1, 1), ("ESDM, 2 threads", 2, 2)]
    for name in options.files.split(","):
        for dropped in (False, True):
            times, alone = {label: [] for label, *_ in ways}, {label: [] for label, *_ in ways}
            sums = set()
            path = options.folder / "data" / f"{name}.nc"
            for k in range(options.repeat + 1):
                for label, threads, _ in ways[k % 3:] + ways[:k % 3]:
                    stock = threads is None
                    command = [PYTHON, "-c", READ, path if stock else f"esdm://data/{name}.nc", path if dropped else ""]
                    env = dict(os.environ) if stock else site_of(options, threads)
                    out = subprocess.run(command if stock else [tool(options, "esdm-run"), *command], env=env, check=True,
                                         stdout=subprocess.PIPE, text=True).stdout.split()
                    sums.add(out[2])
                    if k > 0:
                        times[label].append(float(out[0]))
                        alone[label].append(float(out[1]))
            if len(sums) != 1:
                sys.exit(f"references.py: {name} has other values: {sums}")
            for label, t in times.items():
                ratio, read_ratio = (statistics.median(a / b for a, b in zip(of[ways[0][0]], of[label])) for of in (times, alone))
                print(f"{name:9} {'pages dropped' if dropped else 'warm':13} {label:16} {min(t):8.1f} least {statistics.median(t):8.1f} "
                      f"median ms, stock / this {ratio:.2f}; without opening {statistics.median(alone[label]):8.1f} ms, {read_ratio:.2f}",
                      flush=True)


def archive(options):
    env = site_of(options, 2)
    for _ in range(options.repeat):
        out = subprocess.run([tool(options, "esdm-run"), PYTHON, "-c", OPEN, "esdm://?series=dirty"], env=env, check=True,
                             stdout=subprocess.PIPE, text=True).stdout.split()
        print(f"?series=dirty: a program's first opening {float(out[0]):.1f} ms, then {min(map(float, out[1:])):.1f}", flush=True)
    out = subprocess.run([PYTHON, "-c", XARRAY, options.folder / "archive"], check=True, stdout=subprocess.PIPE, text=True).stdout
    print("xarray.open_mfdataset:", out.strip())


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--mib", type=int, default=96, help="of each variable")
    parser.add_argument("--files", default="whole,plain,deflated,classic")
    parser.add_argument("what", choices=("make", "read", "archive"))
    options = parser.parse_args()
    {"make": make, "read": read, "archive": archive}[options.what](options)


if __name__ == "__main__":
    main()
