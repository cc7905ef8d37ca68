#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-tune chooses by what a target is like: codecs pay where bytes are slow and not where they are quick, large parts of objects where a
request is; each kernel is tuned. And what needs no parameter: how often is flushed."""

import json
import os
import subprocess

from esdmtest import Site, by_clock, environment, expect, main, need_program, run
from s3proxy import Proxy, Rule, delay
from s3server import Server
from throttledsite import FAR, throttled, tuned


@by_clock
def test_codecs():
    """4 MiB at 8 MB/s take half a second; compressed half of that or less. Where bytes cost nothing the codec that is there goes."""
    kernel = ["--kernel=gcrm", "--size=4M", "--phase=write", "--pairs=2", "--apply"]
    with Site(targets=[throttled("slow", bytes_per_s=8e6)], engine={"threads": 2, "inline": 0, "codec": "none"}) as site:
        found = tuned(*kernel, "--try=codec=none,shuffle+zstd")
        expect(found["better"] and found["best"] == {"codec": "shuffle+zstd"} and found["ratio"] < 0.8, f"{found}")
        config = json.loads(site.config.read_text())
        expect(config["engine"]["codec"] == "shuffle+zstd", f"{config}")
        # The same kernel where bytes are quick: the paired test takes the codec back, or finds no difference.
        site.config.write_text(json.dumps({**config, "targets": [throttled("slow")], "engine": {**config["engine"], "codec": "none"}}))
        found = tuned(*kernel, "--try=codec=none,shuffle+zstd")
        expect(not found["better"], f"{found}")
        expect(json.loads(site.config.read_text())["engine"]["codec"] == "none", site.config.read_text())


@by_clock
def test_kernels():
    for kernel, size in (("vpic", "2M"), ("vorpal", "1M"), ("gcrm", "1M")):
        with Site(targets=[throttled("far", latency_ms=20, service_ms=0.01)], engine={"threads": 1, "fragment": "32K", "inline": 0}) as site:
            found = tuned(f"--kernel={kernel}", f"--size={size}", "--phase=write", "--try=threads=8", "--try=fragment=256K", "--pairs=1", "--apply")
            expect(found["better"] and found["ratio"] < 0.8 and len(found["trials"]) <= 4, f"{kernel}: {found}")
            engine = json.loads(site.config.read_text())["engine"]
            expect(engine["threads"] == 8 or engine["fragment"] == "256K" or engine["fragment"] == 256 << 10, f"{kernel}: {engine}")


@by_clock
def test_parts_of_objects():
    """Each request of 40 MiB waits a quarter of a second, one at a time: few parts are better."""
    saved = dict(os.environ)
    with Server() as server, Proxy(server) as proxy:
        os.environ.update(server.client_environment())
        try:
            target = server.target(prefix="parts", part="5M", endpoint=proxy.endpoint, connections=1)
            with Site(targets=[target], engine={"threads": 1, "fragment": "1M", "inline": 0, "codec": "none"}) as site:
                proxy.rules = [Rule(delay(0.25))]
                found = tuned("--kernel=gcrm", "--size=40M", "--phase=write", "--try=part=64M", "--pairs=2", "--apply")
                expect(found["better"] and found["best"] == {"part": 64 << 20} and found["ratio"] < 0.9, f"{found}")
                expect(json.loads(site.config.read_text())["targets"][0]["part"] == 64 << 20, site.config.read_text())
        finally:
            os.environ.clear()
            os.environ.update(saved)


def flushes(site, *command):
    log = site.file("flushes")
    subprocess.run([str(c) for c in ("strace", "-f", "-qq", "-o", log, "-e", "trace=fsync,fdatasync,sync_file_range", *command)], env=environment(), check=True)
    return sum("sync" in line and "resumed" not in line for line in log.read_text().splitlines())


def test_flushes_are_those_of_a_commit():
    """Durability has nothing to batch: sixteen times as many fragments are flushed as often, when they are committed: twice for each pack, of
    which each of four threads may have written one, and six times for the catalogue, the journal and folders."""
    need_program("strace")
    with Site(durability="system", engine={"threads": 4, "inline": 0, "fragment": "64 KiB"}) as site:
        counts = [flushes(site, FAR, "write", f"far{n}.nc", n, 64, 64, "none", 1) for n in (8, 128)]
        print(f"    flushes: {counts}", flush=True)
        expect(min(counts) >= 8 and max(counts) <= 6 + 2 * 4, f"{counts}")


main(test_codecs, test_kernels, test_parts_of_objects, test_flushes_are_those_of_a_commit)
