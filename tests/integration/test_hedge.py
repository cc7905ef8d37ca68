#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Reads that wait unusually long for their first byte are asked for a second time: they end without
waiting for the straggler, the second requests are few, and none are sent to a server that is slow or
refuses. far_program compares all values with what was written; a proxy makes stragglers and counts."""

import contextlib
import os
import tempfile

import s3proxy
from esdmtest import Site, by_clock, expect, main, run, tool
from s3proxy import Proxy
from s3server import Server
from stragglers import (PROGRAM, WAIT_S, Stragglers, another_range, breaks_off, expect_few, expect_few_of_a_slow_server,
                        expect_few_of_many, expect_no_harm, expect_no_mixture, expect_none_of_a_server_that_refuses,
                        expect_patience, requests_of)

PACKS = r"/[^?]*/packs/.*"
STEPS = 120


@contextlib.contextmanager
def site_behind(**options):
    """A site whose data lie behind a proxy, with a container of one fragment a step."""
    saved = dict(os.environ)
    with Server() as server, Proxy(server) as proxy:
        os.environ.update(server.client_environment())
        try:
            target = server.target(prefix="far", part="5 MiB", endpoint=proxy.endpoint) | options
            with Site(targets=[target], engine={"threads": 2, "memory": "256 MiB"}):
                run([PROGRAM, "write", "far.nc", str(STEPS), "180", "360", "none", "1"])
                yield proxy
        finally:
            os.environ.clear()
            os.environ.update(saved)


def reader(proxy):
    return lambda action, *command: requests_of(proxy, PACKS, action, command or ("series", "far.nc", 100, 90))


@by_clock
def expect_no_waiting(command):
    with site_behind() as proxy:  # a new one: without what earlier runs tell
        late = Stragglers()
        requests, seconds = reader(proxy)(late, *command)
        expect(late.late == 2 and late.canceled == 2, f"{late.late} late, {late.canceled} canceled")
        if command[0] == "series":  # loops ask for a part again that they have forgotten
            expect(seconds < WAIT_S, f"{seconds} s")
            expect_few(late, requests)


def test_hedge__reads_do_not_wait_for_stragglers():
    """A series of points; a loop with requests ahead; one request after the other. Losers are
    canceled."""
    expect_no_waiting(("series", "far.nc", 100, 90))
    expect_no_waiting(("loop", "far.nc", 0, STEPS, 1))
    expect_no_waiting(("steps", "far.nc", *[i * 43 % 60 * 2 for i in range(60)]))


@by_clock
def test_hedge__a_target_can_do_without():
    with site_behind(hedge=False) as proxy:
        expect_patience(reader(proxy), Stragglers())


@by_clock
def test_hedge__a_slow_server_gets_no_more_requests():
    """One that always is, and one that becomes so: until that is seen a few may be sent."""
    with site_behind() as proxy:
        expect_few_of_a_slow_server(reader(proxy))
        slow = Stragglers(range(30, STEPS), first=s3proxy.delay(0.3), second=s3proxy.delay(0.3))
        requests, _ = reader(proxy)(slow)
        expect_few(slow, requests)


@by_clock
def test_hedge__many_stragglers_get_few_requests():
    with site_behind() as proxy:
        expect_few_of_many(reader(proxy), STEPS)


@by_clock
def test_hedge__a_server_that_refuses_gets_no_second_requests():
    with site_behind() as proxy:
        for status, code in ((503, "SlowDown"), (429, "TooManyRequests")):
            expect_none_of_a_server_that_refuses(reader(proxy), status, code)


@by_clock
def test_hedge__statistics_tell_of_second_requests():
    with site_behind() as proxy, tempfile.TemporaryDirectory() as folder:
        os.environ["ESDM_MONITOR"] = f"stats:{folder}/runs.sqlite"
        late = Stragglers()
        reader(proxy)(late)
        report = run([tool("esdm-explain"), f"{folder}/runs.sqlite#latest"]).stdout
        expect(f"Second requests: {late.again} reads" in report, report)


@by_clock
def test_hedge__second_requests_that_fail_do_no_harm():
    seconds = [s3proxy.reset, breaks_off, another_range, s3proxy.with_status(203),
               s3proxy.fail(503, "SlowDown"), s3proxy.fail(404, "NoSuchKey"),
               s3proxy.fail(403, "AccessDenied"), s3proxy.hang]
    with site_behind() as proxy:
        expect_no_harm(reader(proxy), seconds)


@by_clock
def test_hedge__answers_do_not_mix():
    """A checksum that is wrong would be an error, as there is no copy."""
    with site_behind() as proxy:
        expect_no_mixture(reader(proxy), 1)


main(test_hedge__reads_do_not_wait_for_stragglers, test_hedge__a_target_can_do_without,
     test_hedge__a_slow_server_gets_no_more_requests, test_hedge__many_stragglers_get_few_requests,
     test_hedge__a_server_that_refuses_gets_no_second_requests,
     test_hedge__statistics_tell_of_second_requests,
     test_hedge__second_requests_that_fail_do_no_harm, test_hedge__answers_do_not_mix)
