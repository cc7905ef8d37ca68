#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""S3 targets whose servers refuse, hang, die or come back: what was committed stays readable, what cannot work
is an error in time that says why."""

import random
import time

import s3proxy
import s3server
from esdmtest import by_size, client, expect, expect_error, main, run, skip, tool
from faults import check_goes_on, committed, generation, must, program, shown
from s3proxy import Proxy, Rule
from s3server import Server
from stores import RecordedWriter, Timed, giving_up, no_secret_was_printed, s3_site

MKFS = tool("esdm-mkfs")
PACKS = "/[^?]*/packs/.*"


def test_s3__lasting_failures_end_in_time():
    with Server() as server, Proxy(server) as proxy:
        with s3_site(server, endpoint=proxy.endpoint) as site:
            must("write", "a", 1, 1)
            cases = [(s3proxy.fail(503, "SlowDown"), 3, ["SlowDown", "attempts"]),
                     (s3proxy.reset, 3, ["attempts"]),
                     (s3proxy.hang, 2, ["timed out"]),
                     (s3proxy.fail(507, "XMinioStorageFull"), 60, ["no space", "full"]),
                     (s3proxy.fail(403, "AccessDenied"), 60, ["permission", "AccessDenied"]),
                     (s3proxy.fail(403, "QuotaExceeded"), 60, ["quota"])]
            for action, seconds, words in cases:
                proxy.rules = [Rule(action, method="PUT|POST")]
                with giving_up(site, seconds), Timed(30):
                    done = program("write", "a", 2, 2)
                expect(done.returncode == 3, shown(done))
                expect_error(done, "cloud", *words)
                proxy.rules = []
                expect(generation("a") == 1, "the last commit is not there")
            proxy.rules = [Rule(s3proxy.hang, method="GET", path=PACKS)]
            with giving_up(site, 2), Timed(40):
                done = program("check", "a")
            expect_error(done, "timed out", "container 'a'", "dataset")
            proxy.rules = []
            check_goes_on("a", 1)


SYNC_AGAIN = """
import netCDF4, numpy as np
nc = netCDF4.Dataset("esdm://again.nc", "w")
nc.createDimension("t", None)
nc.createDimension("x", 100000)
v = nc.createVariable("v", "f8", ("t", "x"))
failures = 0
odd = np.arange(100000) % 2 / 4  # equal values take no pack
for i in range(16):
    v[i] = i + odd
while True:
    try:
        nc.sync()
        break
    except Exception as error:
        failures += 1
        if failures > 5:
            raise
nc.close()
with netCDF4.Dataset("esdm://again.nc") as nc:
    assert len(nc["v"]) == 16 and all((nc["v"][i] == i + odd).all() for i in range(16))
print("failures", failures)
"""


def test_s3__what_was_refused_is_stored_by_the_next_commit():
    """A quota that is used up for a while costs nothing that was written."""
    with Server() as server:
        for pattern in (r"/[^?]*/packs/[^?]*", r"/[^?]*/packs/.*partNumber.*", r"/[^?]*/packs/[^?]*\?uploadId.*"):
            rule = Rule(s3proxy.fail(403, "QuotaExceeded"), "PUT|POST", pattern, count=1)
            whole = "uploadId" not in pattern and "partNumber" not in pattern
            with Proxy(server, [rule]) as proxy, s3_site(
                    server, endpoint=proxy.endpoint,
                    engine={"threads": 1, "memory": "64 MiB", "pack": "64 KiB" if whole else "1 GiB"}):
                done = client(["/usr/bin/python3", "-c", SYNC_AGAIN])
                # What was begun before the commit is tried again by it.
                told = done.stdout + done.stderr
                expect(rule.hits == 1 and done.stdout in ("failures 0\n", "failures 1\n"), f"{pattern}: {told}")
                expect("planned" not in told, told)


def test_s3__another_target_takes_over():
    """The server refuses everything: what follows goes to the second target."""
    with Server() as server, Proxy(server) as proxy:
        with s3_site(server, endpoint=proxy.endpoint, others=[
                {"name": "disk", "plugin": "posix", "directory": "packs"}]) as site:
            must("write", "a", 1, 1)
            for action in (s3proxy.fail(507, "InsufficientStorage"), s3proxy.reset):
                proxy.rules = [Rule(action, method="PUT|POST")]
                with giving_up(site, 3):
                    done = program("write", "b", 1, 1)
                proxy.rules = []
                # What it had taken before it refused cannot be had back: then the commit fails.
                if done.returncode == 0:
                    expect(generation("b") == 1, "wrong data")
                else:
                    expect_error(done, "cloud")
            expect(generation("a") == 1, "wrong data")


# ---- dying --------------------------------------------------------------------------------------


def test_s3__server_killed_during_a_write():
    generator = random.Random(8)
    with Server() as server:
        with s3_site(server) as site:
            must("write", "a", 1, 1)
            for commits in by_size([1], [2], [i % 5 for i in range(20)]):
                last = generation("a")
                with giving_up(site, 5), RecordedWriter("a", last + 1, 1000000) as writer:
                    writer.wait_for("started")
                    writer.wait_for("committed", commits)
                    time.sleep(generator.uniform(0.02, 0.1))
                    server.kill()
                    with Timed(60):
                        done = writer.finish()
                    with giving_up(site, 2):
                        expect_error(program("check", "a"), "127.0.0.1")
                expect(done.returncode == 3, shown(done))
                expect_error(done, "cloud", "cannot")
                server.start()
                found = generation("a")
                told = committed(done) or last
                expect(told <= found <= told + 1, f"{found} after {told}")
                check_goes_on("a", found)
            run([MKFS, "--check"])


def test_s3__server_restarted_during_a_write():
    with Server() as server:
        with s3_site(server, timeout=300), RecordedWriter("a", 1, 40) as writer:
            for number in range(by_size(1, 2, 5)):
                writer.wait_for("committed", 1 + 5 * number)
                server.kill()
                time.sleep(0.5)
                server.start()
            done = writer.finish()
            expect(done.returncode == 0 and committed(done) == 40, shown(done))
            expect(generation("a") == 40, "wrong data")


def test_s3__server_stopped_during_a_read():
    """It keeps its connections open and says nothing; then it goes on."""
    with Server() as server:
        with s3_site(server) as site:
            must("write", "a", 1, 1)
            server.pause()
            try:
                with giving_up(site, 2), Timed(30):
                    expect_error(program("check", "a"), "127.0.0.1")
            finally:
                server.resume()
            expect(generation("a") == 1, "wrong data")


def test_s3__killed_writer_leaves_the_last_commit():
    with Server() as server, Proxy(server) as proxy:
        with s3_site(server, endpoint=proxy.endpoint, engine={"threads": 1}) as site:
            must("write", "a", 1, 1)
            # It dies while the end of its upload is on the way.
            proxy.rules = [Rule(s3proxy.hang, method="POST", path=r".*\?uploadId.*")]
            with RecordedWriter("a", 2, 2) as writer:
                while proxy.count(r"POST .*\?uploadId.*") < 2 and writer.process.poll() is None:
                    time.sleep(0.05)
            proxy.rules = []
            expect(generation("a") == 1, "the last commit is not there")
            uploads = server.client().uploads(site.prefix)
            expect(uploads, "there is no upload left behind: the test is wrong")
            expect("upload" in run([MKFS, "--check"]).stdout, "the check does not tell of it")
            check_goes_on("a", 1)
            run([tool("esdm-rm"), "--for-good", "a"])
            expect(not server.client().uploads(site.prefix), "removed with its container")
            run([MKFS, "--remove", "--yes"])
            expect(not server.client().keys(site.prefix), "something is left")


def test_s3__no_secret_was_printed():
    no_secret_was_printed(100)


if not (s3server.pathlib.Path(tool("")).parent / "esdm/esdm-data-s3.so").exists():
    skip("this ESDM was built without S3")
main(*[test for name, test in list(globals().items()) if name.startswith("test_")])
