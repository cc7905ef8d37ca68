#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Copies and drained data on an S3 server: it dies, comes back, and is the only one left."""

import contextlib
import json
import os
import random
import subprocess
import time

from esdmtest import Site, by_size, environment, expect, main, run, tool
from faults import check_goes_on, generation, must
from s3server import Server
from stores import Timed, giving_up


@contextlib.contextmanager
def site_on(server, *others, **changes):
    """The first target is on the server."""
    saved = dict(os.environ)
    os.environ.update(server.client_environment())
    os.environ["ESDM_NODE"] = "alpha"
    cloud = server.target(prefix=f"t{time.monotonic_ns():x}", part="5 MiB", timeout=60)
    try:
        with Site(targets=[cloud, *others], engine={"threads": 2, "memory": "256 MiB"},
                  **changes) as site:
            yield site
    finally:
        os.environ.clear()
        os.environ.update(saved)


def fsck(*options, status=0):
    done = run([tool("esdm-fsck"), "--json", *options], check=False)
    expect(done.returncode == status, f"status {done.returncode}, not {status}: "
           f"{done.stdout[-3000:]}{done.stderr}")
    return json.loads(done.stdout)


def test_copies__the_server_dies_and_comes_back():
    disk = {"name": "disk", "plugin": "posix", "directory": "disk"}
    with Server() as server, site_on(server, disk, copies=2) as site:
        must("write", "a", 1, 2)
        fsck("--data")
        server.kill()
        with giving_up(site, 2), Timed(60):
            expect(generation("a") == 2, "without the server")
            must("write", "b", 1, 1)
            expect(generation("b") == 1, "written without the server")
        server.start()
        result = fsck("--repair", "--data", status=1)
        expect(result["repaired"] == result["problems"] > 0, f"{result}")
        fsck("--data")
        site.file("disk").rename(site.file("away"))
        expect(generation("a") == 2 and generation("b") == 1, "from the server alone")
        site.file("away").rename(site.file("disk"))
        run([tool("esdm-gc"), "--age", "0", "--yes"])
        fsck("--data")
        check_goes_on("a", 2)


def test_drain__to_a_server():
    """Killed at any time and tried again: other nodes find all on the server."""
    generator = random.Random(3)
    burst = {"name": "burst", "plugin": "posix", "accessibility": "local",
             "directory": "node-$ESDM_NODE"}
    beta = {"ESDM_NODE": "beta"}
    with Server() as server, site_on(server, burst) as site:
        for i in range(by_size(3, 6, 40)):
            name = f"c{i}"
            must("write", name, 1, 2)
            drain = subprocess.Popen([tool("esdm-drain"), "--quiet", name], env=environment())
            time.sleep(generator.uniform(0.01, 0.3))
            drain.kill()
            drain.wait()
            expect(generation(name) == 2, "after a killed drain")
            run([tool("esdm-drain"), "--quiet", name])
            expect("generation 2" in must("check", name, env=beta).stdout, "on the other node")
        run([tool("esdm-gc"), "--age", "0", "--yes"])
        left = [p for p in site.file("node-alpha").rglob("*-*-*") if p.is_file()]
        expect(not left, f"left on the node: {left}")
        fsck("--data")


if __name__ == "__main__":
    main(*[f for n, f in sorted(globals().items()) if n.startswith("test_")])
