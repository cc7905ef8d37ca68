#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Storage that takes nothing more for a while, on a folder, an S3 server and Kyoto Cabinet: the program
that is told writes the same box again, and goes on; what it wrote to other variables is unharmed."""

import contextlib
import os
import re
import subprocess

import s3proxy
from esdmtest import BUILD, Site, client, expect, main, run, skip, tool
from s3proxy import Proxy, Rule
from s3server import Server
from stores import s3_site

# Boxes of `failing` are written again when a call that concerns them fails; nothing of the others is.
# It is told twice before somebody makes room.
WAITS = """
import os, netCDF4, numpy as np
ballast = os.environ["BALLAST"]
odd = np.arange(100000) % 2 / 4  # equal values take no pack
nc = netCDF4.Dataset("esdm://waits.nc", "w")
nc.createDimension("t", None)
nc.createDimension("x", 100000)
before = nc.createVariable("before", "f8", ("x",))
failing = nc.createVariable("failing", "f8", ("t", "x"))
beside = nc.createVariable("beside", "f4", ("t",))
failures = 0

def failed(error):
    global failures
    failures += 1
    print("told:", error)
    if failures > 8:
        raise error
    if failures == 2:
        os.unlink(ballast)  # somebody makes room

before[:] = 7 + odd
for i in range(30):
    beside[i] = i / 4
    while True:
        try:
            failing[i] = i + odd
            nc.sync()
            break
        except (RuntimeError, OSError) as error:
            failed(error)
nc.close()
print("failures", failures)
"""
READS = """
import netCDF4, numpy as np
odd = np.arange(100000) % 2 / 4
with netCDF4.Dataset("esdm://waits.nc") as nc:
    assert len(nc["failing"]) == 30
    assert (nc["before"][:] == 7 + odd).all()
    assert (nc["beside"][:] == np.arange(30, dtype="f4") / 4).all()
    assert all((nc["failing"][i] == i + odd).all() for i in range(30))
"""
ENGINE = {"memory": "64 MiB", "threads": 2, "inline": 0}


def check(ballast):
    python = "/usr/bin/python3"
    ballast.touch()
    done = client([python, "-c", WAITS], env={"BALLAST": str(ballast)})
    failures = int(re.search(r"^failures (\d+)$", done.stdout, re.M)[1])
    expect(2 <= failures <= 6, f"{failures} failures: {done.stdout}{done.stderr}")
    expect("space" in done.stdout.lower(), f"the cause is not told: {done.stdout}")
    client([python, "-c", READS])
    run([tool("esdm-fsck"), "--data"])
    return failures


@contextlib.contextmanager
def small_disk(folder, megabytes):
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", folder]
    if os.geteuid() != 0 or subprocess.run(mount, stderr=subprocess.DEVNULL, check=False).returncode:
        skip("mounting a small tmpfs needs root and the right to mount")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=False)


def check_small_disk(plugin):
    target = {"name": "small", "plugin": plugin, "directory": "small"}
    with Site(make=False, targets=[target], engine=ENGINE) as site, \
            small_disk(site.file("small"), 60):
        run([tool("esdm-mkfs")])
        ballast = site.file("small/ballast")
        ballast.write_bytes(bytes(45 << 20))
        check(ballast)


def test_room__on_a_folder():
    check_small_disk("posix")


def test_room__in_kyoto_cabinet():
    if not (BUILD / "esdm/esdm-data-kv.so").exists():
        skip("built without Kyoto Cabinet (package libkyotocabinet-dev)")
    check_small_disk("kv")


def test_room__on_an_s3_server():
    """Objects that are stored with one request, and in parts; the first ones are taken."""
    for pack in ("64 KiB", "1 GiB"):
        refused = []
        with Server() as server, Proxy(server) as proxy, \
                s3_site(server, endpoint=proxy.endpoint, engine={**ENGINE, "pack": pack}) as site:
            ballast = site.file("ballast")

            def refuse(_, exchange, ballast=ballast, refused=refused):
                if ballast.exists():
                    refused.append(exchange.target)
                    exchange.reply(507, "XMinioStorageFull", "Storage backend has reached its minimum")

            proxy.rules = [Rule(refuse, method="PUT|POST", path="/[^?]*/packs/.*", skip=8)]
            check(ballast)
            expect(len(refused) >= 2, f"{pack}: only {refused} were refused")


main(test_room__on_a_folder, test_room__in_kyoto_cabinet, test_room__on_an_s3_server)
