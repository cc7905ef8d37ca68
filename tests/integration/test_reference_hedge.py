#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Reads of objects on web servers that containers refer to are asked for a second time when they wait unusually
long, as those of targets on S3 are (test_hedge.py): they end without waiting for the straggler, the second requests
are few, and none are sent to a server that is slow or refuses. far_program compares all values."""

import contextlib
import json
import os
import re
import time
import types

import s3proxy
from esdmtest import BUILD, Site, by_clock, client, expect, expect_error, main, run, skip, tool
from s3proxy import Proxy, Rule
from stragglers import WAIT_S, Stragglers, another_range, breaks_off, expect_few, slow_at_last, spoilt_and_slow
from webserver import Web

if not (BUILD / "esdm/esdm-source-http.so").exists():
    skip("built without libcurl")

PROGRAM = str(BUILD / "tests/integration/far_program")
STEPS, LAT, LON = 120, 45, 90
CHUNKS = r"/far\.zarr/tas/\d.*"

# A store of Zarr, version 2, with a chunk for each step, of what far_program has written.
MAKE = """
import json, netCDF4, numpy, os, sys
folder = sys.argv[1] + "/far.zarr"
d = netCDF4.Dataset("esdm://far.nc")
v = next(v for v in d.variables.values() if v.ndim == 3)
os.makedirs(folder + "/" + v.name)
meta = {".zgroup": {"zarr_format": 2}, ".zattrs": {}, v.name + "/.zattrs": {"_ARRAY_DIMENSIONS": list(v.dimensions)},
        v.name + "/.zarray": {"zarr_format": 2, "shape": list(v.shape), "chunks": [1, *v.shape[1:]], "dtype": "<f4",
                              "compressor": None, "filters": None, "fill_value": None, "order": "C"}}
for key, value in meta.items():
    with open(folder + "/" + key, "w") as f:
        json.dump(value, f)
with open(folder + "/.zmetadata", "w") as f:
    json.dump({"zarr_consolidated_format": 1, "metadata": meta}, f)
for step in range(v.shape[0]):
    numpy.asarray(v[step], "<f4").tofile(f"{folder}/{v.name}/{step}.0.0")
print(v.name)
"""


@contextlib.contextmanager
def site_behind(**options):
    """A site with a container that refers to a store behind a proxy, as options of "references" say."""
    with Site(engine={"threads": 2, "memory": "256 MiB"}) as site:
        run([PROGRAM, "write", "far.nc", str(STEPS), str(LAT), str(LON), "none", "1"])
        client(["/usr/bin/python3", "-c", MAKE, site.folder])
        run([tool("esdm-rm"), "-y", "far.nc"])
        for path in (site.folder / "far.zarr").rglob("*"):
            os.utime(path, (time.time() - 60, time.time() - 60))
        with Web(site.folder) as web, Proxy(types.SimpleNamespace(port=web.server.server_address[1])) as proxy:
            config = json.loads(site.config.read_text())
            config["references"] = {"roots": [proxy.endpoint], **options}
            site.config.write_text(json.dumps(config))
            run([tool("esdm-ref"), "-q", f"{proxy.endpoint}/far.zarr", "esdm://far.zarr"])
            yield proxy


def read(proxy, action, *command):
    """Requests for chunks that the program made, and the seconds it tells."""
    proxy.rules = [Rule(action, method="GET", path=CHUNKS)]
    with proxy.lock:
        proxy.log.clear()
    command = command or ("series", "far.zarr", 10, 20)
    done = run([PROGRAM, *map(str, command)])
    seconds = float(re.search(r"seconds (\S+)", done.stdout).group(1))
    requests = proxy.count("GET " + CHUNKS)
    print(f"    {' '.join(map(str, command))}: {requests} requests, {seconds:.3f} s", flush=True)
    return requests, seconds


@by_clock
def expect_no_waiting(command):
    with site_behind() as proxy:
        late = Stragglers((30, 80))
        requests, seconds = read(proxy, late, *command)
        expect(late.late == 2 and late.canceled == 2, f"{late.late} late, {late.canceled} canceled")
        expect(seconds < WAIT_S, f"{seconds} s")
        expect(requests >= STEPS // 2, f"{requests} requests")
        expect_few(late, requests)


def test_reference_hedge__reads_do_not_wait_for_stragglers():
    """A series of points, and one step after the other. Losers are canceled."""
    expect_no_waiting(("series", "far.zarr", 10, 20))
    expect_no_waiting(("steps", "far.zarr", *[i * 43 % STEPS for i in range(100)]))


@by_clock
def test_reference_hedge__a_site_can_do_without():
    with site_behind(hedge=False) as proxy:
        late = Stragglers((30, 80))
        requests, seconds = read(proxy, late)
        expect((requests, late.again, late.canceled) == (len(late.seen), 0, 0), f"{requests} requests")
        expect(seconds >= WAIT_S, f"{seconds} s")


def test_reference_hedge__is_true_or_false():
    with site_behind():
        config = json.loads(open(os.environ["ESDM_CONFIG"], encoding="ascii").read())
        config["references"]["hedge"] = "no"
        with open(os.environ["ESDM_CONFIG"], "w", encoding="ascii") as file:
            file.write(json.dumps(config))
        expect_error(run([tool("esdm-ls")], check=False), "references.hedge", "expected true or false")


@by_clock
def test_reference_hedge__slow_servers_and_those_that_refuse_get_few():
    with site_behind() as proxy:
        slow = Stragglers((), usual_s=0.3)
        requests, _ = read(proxy, slow)
        expect((requests, slow.again) == (len(slow.seen), 0), f"{slow.again} again")
        late = Stragglers(range(4, STEPS, 5), first=s3proxy.delay(0.5))
        requests, _ = read(proxy, late)
        expect(late.late >= 12, f"{late.late} late")
        expect_few(late, requests)
        late = Stragglers(first=s3proxy.delay(1))
        refusals = iter(range(2))

        def action(proxy, exchange, answer=s3proxy.fail(503, "SlowDown")):
            if next(refusals, None) is not None:
                answer(proxy, exchange)
            else:
                late(proxy, exchange)

        requests, seconds = read(proxy, action)
        expect((requests, late.again) == (len(late.seen) + 2, 0), f"{requests} requests, {late.again} again")
        expect(seconds >= 1, f"{seconds} s")


def other_etag(proxy, exchange):
    """As whole as an answer can be, of an object that was changed."""
    exchange.headers.pop("if-match", None)
    exchange.forward(proxy.upstream)
    exchange.answer = bytes(len(exchange.answer))
    exchange.answer_headers = [(k, '"other"' if k.lower() == "etag" else v) for k, v in exchange.answer_headers]


@by_clock
def test_reference_hedge__second_requests_that_fail_do_no_harm():
    """The first one is waited for: its answer counts."""
    seconds = [s3proxy.reset, breaks_off, another_range, other_etag, s3proxy.fail(503, "SlowDown"),
               s3proxy.fail(404, "NoSuchKey"), s3proxy.hang]
    with site_behind() as proxy:
        for second in seconds:
            late = Stragglers(first=s3proxy.delay(1), second=second)
            requests, took = read(proxy, late)
            if second != s3proxy.reset:  # libcurl sends it again when a kept connection ends so
                expect_few(late, requests)
            expect(late.again >= 1, f"{second.__name__}: {late.again} again")
            expect(took >= 1, f"{took} s")


@by_clock
def test_reference_hedge__answers_do_not_mix():
    """Both answer at once, one with wrong bytes, of which no checksum tells: the one that is whole first is the answer,
    and nothing of the other one is in it."""
    whole_steps = ("steps", "far.zarr", *range(STEPS // 2))  # 16 KB each: a second takes longer than the other's wait
    with site_behind() as proxy:
        late = Stragglers(first=spoilt_and_slow, second=s3proxy.delay(1))
        requests, _ = read(proxy, late, *whole_steps)
        expect(late.again >= 1 and requests == len(late.seen) + late.again, f"{requests} requests")
        late = Stragglers(first=s3proxy.delay(0.5), second=slow_at_last)
        requests, _ = read(proxy, late, *whole_steps)
        expect(late.again >= 1 and requests == len(late.seen) + late.again, f"{requests} requests")


main(test_reference_hedge__reads_do_not_wait_for_stragglers, test_reference_hedge__a_site_can_do_without,
     test_reference_hedge__is_true_or_false, test_reference_hedge__slow_servers_and_those_that_refuse_get_few,
     test_reference_hedge__second_requests_that_fail_do_no_harm, test_reference_hedge__answers_do_not_mix)
