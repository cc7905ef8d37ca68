#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Reads that wait unusually long for their first byte are asked for a second time: they end without
waiting for the straggler, the second requests are few, and none are sent to a server that is slow or
refuses. far_program compares all values with what was written; a proxy makes stragglers and counts."""

import contextlib
import os
import re
import tempfile

import s3proxy
from esdmtest import BUILD, Site, by_clock, expect, main, run, tool
from s3proxy import Proxy, Rule
from s3server import Server
from stragglers import WAIT_S, Stragglers, another_range, breaks_off, expect_few, slow_at_last, spoilt_and_slow

PROGRAM = str(BUILD / "tests/integration/far_program")
PACKS = r"/[^?]*/packs/.*"
GETS = "GET " + PACKS
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


def read(proxy, action, *command):
    """Requests that the program made, and the seconds it tells."""
    proxy.rules = [Rule(action, method="GET", path=PACKS)]
    with proxy.lock:
        proxy.log.clear()
    command = command or ("series", "far.nc", 100, 90)
    done = run([PROGRAM, *map(str, command)])
    seconds = float(re.search(r"seconds (\S+)", done.stdout).group(1))
    print(f"    {' '.join(map(str, command))}: {proxy.count(GETS)} requests, {seconds:.3f} s", flush=True)
    return proxy.count(GETS), seconds


@by_clock
def expect_no_waiting(command):
    with site_behind() as proxy:  # a new one: without what earlier runs tell
        late = Stragglers()
        requests, seconds = read(proxy, late, *command)
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
        late = Stragglers()
        requests, seconds = read(proxy, late)
        expect((requests, late.again, late.canceled) == (len(late.seen), 0, 0), f"{requests} requests")
        expect(seconds >= WAIT_S, f"{seconds} s")


@by_clock
def test_hedge__a_slow_server_gets_no_more_requests():
    """One that always is, and one that becomes so: until that is seen a few may be sent."""
    with site_behind() as proxy:
        slow = Stragglers((), usual_s=0.3)
        requests, _ = read(proxy, slow)
        expect((requests, slow.again) == (len(slow.seen), 0), f"{slow.again} again")
        slow = Stragglers(range(30, STEPS), first=s3proxy.delay(0.3), second=s3proxy.delay(0.3))
        requests, _ = read(proxy, slow)
        expect_few(slow, requests)


@by_clock
def test_hedge__many_stragglers_get_few_requests():
    """Every fifth GET waits: more than one in 20 is never asked for again."""
    with site_behind() as proxy:
        late = Stragglers(range(4, STEPS, 5), first=s3proxy.delay(0.5))
        requests, _ = read(proxy, late)
        expect(late.late >= 12, f"{late.late} late")
        expect_few(late, requests)


@by_clock
def test_hedge__a_server_that_refuses_gets_no_second_requests():
    with site_behind() as proxy:
        for status, code in ((503, "SlowDown"), (429, "TooManyRequests")):
            late = Stragglers(first=s3proxy.delay(1))
            refusals = iter(range(2))

            def action(proxy, exchange, late=late, refusals=refusals, answer=s3proxy.fail(status, code)):
                if next(refusals, None) is not None:
                    answer(proxy, exchange)
                else:
                    late(proxy, exchange)

            requests, seconds = read(proxy, action)
            expect((requests, late.again) == (len(late.seen) + 2, 0), f"{requests} requests, {late.again} again")
            expect(seconds >= 1, f"{seconds} s")


@by_clock
def test_hedge__statistics_tell_of_second_requests():
    with site_behind() as proxy, tempfile.TemporaryDirectory() as folder:
        os.environ["ESDM_MONITOR"] = f"stats:{folder}/runs.sqlite"
        late = Stragglers()
        read(proxy, late)
        report = run([tool("esdm-explain"), f"{folder}/runs.sqlite#latest"]).stdout
        expect(f"Second requests: {late.again} reads" in report, report)


@by_clock
def test_hedge__second_requests_that_fail_do_no_harm():
    """The first one is waited for: its answer counts."""
    seconds = [s3proxy.reset, breaks_off, another_range, s3proxy.with_status(203),
               s3proxy.fail(503, "SlowDown"), s3proxy.fail(404, "NoSuchKey"),
               s3proxy.fail(403, "AccessDenied"), s3proxy.hang]
    with site_behind() as proxy:
        for second in seconds:
            late = Stragglers(first=s3proxy.delay(1), second=second)
            requests, took = read(proxy, late)
            if second != s3proxy.reset:  # libcurl sends it again when a kept connection ends so
                expect_few(late, requests)
            expect(late.again >= 1, f"{late.again} again")
            expect(took >= 1, f"{took} s")


@by_clock
def test_hedge__answers_do_not_mix():
    """Both answer at once, one with wrong bytes: the one that is whole first is the answer, and
    nothing of the other one is in it. (far_program ends at the first wrong value; a checksum that is
    wrong would be an error, as there is no copy.)"""
    with site_behind() as proxy:
        late = Stragglers(first=spoilt_and_slow, second=s3proxy.delay(1))
        requests, _ = read(proxy, late)
        expect(late.again >= 1 and requests == len(late.seen) + late.again, f"{requests} requests")
        late = Stragglers(first=s3proxy.delay(1), second=slow_at_last)
        requests, _ = read(proxy, late)
        expect(late.again >= 1 and requests == len(late.seen) + late.again, f"{requests} requests")


main(test_hedge__reads_do_not_wait_for_stragglers, test_hedge__a_target_can_do_without,
     test_hedge__a_slow_server_gets_no_more_requests, test_hedge__many_stragglers_get_few_requests,
     test_hedge__a_server_that_refuses_gets_no_second_requests,
     test_hedge__statistics_tell_of_second_requests,
     test_hedge__second_requests_that_fail_do_no_harm, test_hedge__answers_do_not_mix)
