#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""One snapshot of real files through every door (the nc API, xarray's engine, Zarr in the process and over HTTP,
a mounted folder read by h5py and ncdump, byte ranges, OPeNDAP, esdm-cp to files and to Zarr): one digest of values and attributes."""

import contextlib
import json
import pathlib
import shutil
import time

from clients import HERE, python_of
from esdmtest import SANITIZE, BUILD, Site, by_size, client_environment, expect, main, need_data, run, skip, tool
from inprocess import packages
from mounts import mounted, why_no_fuse
from served import serving


AT_ONCE = 10  # files for one process of Python


def files():
    """Smallest and largest first, so that few are a sample of all kinds."""
    real = [*need_data("cmip6").rglob("*.nc"), *need_data("fields").glob("*.nc")]
    real.sort(key=lambda f: (f.stat().st_size, f.name))
    small = [f for f in real if f.stat().st_size < 40e6]
    step = max(1, len(small) // by_size(10, 20, len(small)))
    return small[::step][:by_size(10, 20, 200)]


def dump(file):
    return run(["ncdump", "-p", "9,17", file]).stdout.split("\n", 1)[1]


def compare(said, told):
    what = f"{said['file']}: {json.dumps(told, indent=1)}"
    expect(told["values"] > 0 and len(told["digests"]) >= 8, what)
    expect(len(set(told["digests"].values())) == 1, f"doors differ: {what}")
    expect(len({json.dumps(d, sort_keys=True) for d in told["dimensions"].values()}) == 1, f"dimensions differ: {what}")
    expect(told["numbers"]["file"] == told["numbers"]["DAP2"], f"OPeNDAP differs: {what}")
    if said["mounted"]:
        expect(dump(said["mounted"]) == dump(said["exported"]), f"ncdump of the mounted file differs: {said['file']}")


def take(site, port, folder, number, file):
    name = f"real/{number}.nc"
    exported = site.file(f"{number}.nc")
    run([tool("esdm-cp"), file, f"esdm://{name}"])
    run([tool("esdm-cp"), f"esdm://{name}", exported])
    run([tool("esdm-cp"), f"esdm://{name}", site.file(f"{number}.zarr")])
    return {"name": name, "file": str(file), "port": port, "exported": str(exported), "zarr": str(site.file(f"{number}.zarr")),
            "mounted": str(pathlib.Path(folder, name)) if folder else None}


def test_one_digest_through_every_door():
    if SANITIZE:
        skip("the sanitizer's library must come first, and nothing is preloaded here")
    python = python_of("zarr")
    chosen, most_seconds = files(), by_size(6, 40, 3000)
    with Site() as site, contextlib.ExitStack() as stack:
        env = client_environment({"PYTHONPATH": str(packages(site)),
                                  "ESDM_LIBRARY_DIR": f"{BUILD}:{BUILD / 'netcdf-plugin'}"})
        port, _ = stack.enter_context(serving(site))
        reason = why_no_fuse()
        folder = stack.enter_context(mounted(site))[0] if reason is None else None
        done, begun, told = 0, time.monotonic(), {}
        while done < len(chosen) and (done == 0 or time.monotonic() - begun < most_seconds):
            said = [take(site, port, folder, done + i, f) for i, f in enumerate(chosen[done:done + AT_ONCE])]
            lines = run([python, HERE / "doors.py", *map(json.dumps, said)], env=env).stdout.splitlines()
            expect(len(lines) == len(said), "\n".join(lines))
            for one, line in zip(said, lines):
                told = json.loads(line)
                compare(one, told)
                pathlib.Path(one["exported"]).unlink()
                shutil.rmtree(one["zarr"])
                run([tool("esdm-rm"), one["name"]])
            done += len(said)
        print(f"{done} of {len(chosen)} files through {', '.join(sorted(told['digests']))} and OPeNDAP",
              f"; not mounted: {reason}" if reason else "")


main(test_one_digest_through_every_door)
