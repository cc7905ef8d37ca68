#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""How fast programs read containers in a folder of esdm-mount, beside the API.

    tests/bench/mount.py --build build [--mib 512] [--repeat 7] [--folder /tmp] [--readers 16] [--priority]

"first byte": of a file of 50 GiB that nobody has written to, just mounted: without and with a header in the cache. "cold": the folder was just mounted,
so that the kernel knows nothing of the file, and the container was just opened; "evicted": the file was read before, and taken out of the kernel's
memory, so that its pages come from memory that the machine has at hand; "all cold": just mounted, and the packs are not in memory, for both. "warm":
the file was read once before, "again": twice and more often. Ratios are of the API's speed, in alternating pairs: reading step by step into the same memory, in a new
process. "bare": a FUSE server that makes nothing (bench_fuse), which is what the kernel allows. Memory is the most that the daemon had.
"""

import argparse
import contextlib
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--mib", type=int, default=512)
    parser.add_argument("--gib", type=int, default=50, help="of the file whose first byte is read")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--readers", type=int, default=16)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("/tmp"))
    parser.add_argument("--codecs", nargs="+", default=["none", "shuffle+zstd"])
    parser.add_argument("--priority", action="store_true", help="run with real-time priority")
    return parser.parse_args()


OPTIONS = arguments()
os.environ["ESDM_BUILD"] = str(OPTIONS.build.resolve())
os.environ.setdefault("ESDM_SOURCE", str(pathlib.Path(__file__).resolve().parents[2]))
os.environ.setdefault("ESDM_SANITIZE", "")
from esdmtest import Site  # noqa: E402 pylint: disable=wrong-import-position
from mounts import mounted  # noqa: E402 pylint: disable=wrong-import-position

PROGRAM = OPTIONS.build.resolve() / "tests/bench/bench_mount"


def bench(*words):
    done = subprocess.run([PROGRAM, *map(str, words)], stdout=subprocess.PIPE, text=True, check=True)
    seconds, count = done.stdout.split()
    return float(seconds), int(count)


def evict(files):
    if files:
        bench("evict", *files)


def most_memory(daemon):
    return int(pathlib.Path(f"/proc/{daemon.pid}/status").read_text().split("VmHWM:")[1].split()[0]) / 1024


def quartiles(values):
    told = sorted(values)
    return f"{statistics.median(told):8.3f} ({told[len(told) // 4]:.3f} to {told[-1 - len(told) // 4]:.3f})"


def first_byte(site):
    bench("empty", "large.nc", OPTIONS.gib)
    made, kept, again, memory = [], [], [], 0
    for _ in range(OPTIONS.repeat):
        for header in (site.file("cache") / "esdm/vfile").glob("*.vfile"):
            header.unlink()
        for times in made, kept:
            with mounted(site) as (mnt, daemon):
                times.append(bench("first", mnt / "large.nc")[0] * 1000)
                again.append(bench("first", mnt / "large.nc")[0] * 1000)
                memory = max(memory, most_memory(daemon))
                size = (mnt / "large.nc").stat().st_size
    print(f"first byte of {size / 1e9:.0f} GB, ms: {quartiles(made)}; its header in the cache {quartiles(kept)}; "
          f"again {quartiles(again)}; {memory:.0f} MiB of memory")


def read_ahead_as_mounted(folder):
    """What esdm-mount asks for, where it may."""
    device = os.stat(folder).st_dev
    with contextlib.suppress(OSError):
        pathlib.Path(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb").write_text("2048", encoding="ascii")


@contextlib.contextmanager
def bare(site, *how):
    folder = site.file("bare")
    folder.mkdir(exist_ok=True)
    with subprocess.Popen([PROGRAM.with_name("bench_fuse"), folder, str(OPTIONS.mib), *how]) as server:
        while server.poll() is None and not os.path.ismount(folder):
            time.sleep(0.02)
        read_ahead_as_mounted(folder)
        try:
            yield folder
        finally:
            server.terminate()


def reading(site, codec):
    bench("make", "cube.nc", OPTIONS.mib)
    packs = site.pack_files()
    rows = {row: [] for row in ("cold", "cold, --direct", "bare, cold", "evicted", "bare, evicted", "all cold", "warm", "again", "warm, --direct",
                                "bare, warm", "bare, again", "bare, directly", f"{OPTIONS.readers} readers, cold")}
    speeds, memory = [], 0
    bench("container", "cube.nc")  # the first pass into fresh memory is slower
    for _ in range(OPTIONS.repeat):
        for row in ("cold", "cold, --direct", "all cold"):
            options = ["--direct"] if row.endswith("direct") else []
            evict(packs if row == "all cold" else [])
            api, count = bench("container", "cube.nc")
            evict(packs if row == "all cold" else [])
            with mounted(site, *options) as (mnt, daemon):
                file, size = bench("file", mnt / "cube.nc", 1)
                assert count <= size < count * 1.01, f"{count} bytes of values in {size}"
                rows[row].append(api / file)
                memory = max(memory, most_memory(daemon))
                if row == "cold":
                    speeds.append((count / api / 1e6, size / file / 1e6))
                if row != "all cold":
                    api, _ = bench("container", "cube.nc")
                    rows[row.replace("cold", "warm")].append(api / bench("file", mnt / "cube.nc", 1)[0])
                if row == "cold":
                    rows["again"] += [api / bench("file", mnt / "cube.nc", 1)[0] for _ in range(2)]
                    evict([mnt / "cube.nc"])
                    rows["evicted"].append(api / bench("file", mnt / "cube.nc", 1)[0])
        api, count = bench("container", "cube.nc")
        with bare(site) as folder:
            for row in "bare, cold", "bare, warm", "bare, again", "bare, again", "bare, evicted":
                if row == "bare, evicted":
                    evict([folder / "data"])
                file, size = bench("file", folder / "data", 1)
                rows[row].append(size / file / (count / api))
        with bare(site, "direct") as folder:
            file, size = bench("file", folder / "data", 1)
            rows["bare, directly"].append(size / file / (count / api))
        with mounted(site) as (mnt, daemon):
            file, size = bench("file", mnt / "cube.nc", OPTIONS.readers)
            rows[f"{OPTIONS.readers} readers, cold"].append(size / file / (count / api))
            memory = max(memory, most_memory(daemon))
    print(f"codec {codec}: API {statistics.median(s[0] for s in speeds):.0f} MB/s, mounted and cold "
          f"{statistics.median(s[1] for s in speeds):.0f} MB/s; {memory:.0f} MiB of memory")
    for row, ratios in rows.items():
        print(f"    {row:20}{quartiles(ratios)}")


def main():
    if OPTIONS.priority:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(10))
    with Site(parent=str(OPTIONS.folder)) as site:
        first_byte(site)
    for codec in OPTIONS.codecs:
        with Site(parent=str(OPTIONS.folder), engine={"codec": codec}) as site:
            reading(site, codec)


main()
