#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Reads of objects on web servers that containers refer to are asked for a second time when they wait unusually
long, as those of targets on S3 are (test_hedge.py): they end without waiting for the straggler, the second requests
are few, and none are sent to a server that is slow or refuses. far_program compares all values."""

import contextlib
import json
import os
import time
import types

import s3proxy
from esdmtest import BUILD, Site, by_clock, client, expect, expect_error, main, run, skip, tool
from s3proxy import Proxy
from stragglers import (PROGRAM, WAIT_S, Stragglers, another_range, breaks_off, expect_few, expect_few_of_a_slow_server,
                        expect_few_of_many, expect_no_harm, expect_no_mixture, expect_none_of_a_server_that_refuses,
                        expect_patience, requests_of)
from webserver import Web

if not (BUILD / "esdm/esdm-source-http.so").exists():
    skip("built without libcurl")

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


def reader(proxy):
    return lambda action, *command: requests_of(proxy, CHUNKS, action, command or ("series", "far.zarr", 10, 20))


@by_clock
def expect_no_waiting(command):
    with site_behind() as proxy:
        late = Stragglers((30, 80))
        requests, seconds = reader(proxy)(late, *command)
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
        expect_patience(reader(proxy), Stragglers((30, 80)))


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
        expect_few_of_a_slow_server(reader(proxy))
        expect_few_of_many(reader(proxy), STEPS)
        expect_none_of_a_server_that_refuses(reader(proxy), 503, "SlowDown")


def other_etag(proxy, exchange):
    """As whole as an answer can be, of an object that was changed."""
    exchange.headers.pop("if-match", None)
    exchange.forward(proxy.upstream)
    exchange.answer = bytes(len(exchange.answer))
    exchange.answer_headers = [(k, '"other"' if k.lower() == "etag" else v) for k, v in exchange.answer_headers]


@by_clock
def test_reference_hedge__second_requests_that_fail_do_no_harm():
    seconds = [s3proxy.reset, breaks_off, another_range, other_etag, s3proxy.fail(503, "SlowDown"),
               s3proxy.fail(404, "NoSuchKey"), s3proxy.hang]
    with site_behind() as proxy:
        expect_no_harm(reader(proxy), seconds)


@by_clock
def test_reference_hedge__answers_do_not_mix():
    """No checksum tells of wrong bytes."""
    whole_steps = ("steps", "far.zarr", *range(STEPS // 2))  # 16 KB each: a second takes longer than the other's wait
    with site_behind() as proxy:
        expect_no_mixture(reader(proxy), 0.5, *whole_steps)


main(test_reference_hedge__reads_do_not_wait_for_stragglers, test_reference_hedge__a_site_can_do_without,
     test_reference_hedge__is_true_or_false, test_reference_hedge__slow_servers_and_those_that_refuse_get_few,
     test_reference_hedge__second_requests_that_fail_do_no_harm, test_reference_hedge__answers_do_not_mix)
