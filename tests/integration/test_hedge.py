#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Reads that wait unusually long for their first byte are asked for a second time: they end without
waiting for the straggler, the second requests are few, and none are sent to a server that is slow or
refuses. far_program compares all values with what was written; a proxy makes stragglers and counts."""

import contextlib
import os
import re
import select
import tempfile
import threading
import time

import s3proxy
from esdmtest import BUILD, Site, by_clock, expect, main, run, tool
from s3proxy import Dropped, Proxy, Rule, Sent
from s3server import Server

PROGRAM = str(BUILD / "tests/integration/far_program")
PACKS = r"/[^?]*/packs/.*"
GETS = "GET " + PACKS
STEPS = 120
USUAL_S = 0.02
WAIT_S = 3


class Stragglers:
    """An action for GETs of packs: `first` for those of these numbers, `second` when one of them is
    asked for again, and a short wait for all others."""

    def __init__(self, numbers=(30, 50), first=None, second=None, usual_s=USUAL_S):
        self.numbers, self.first, self.second, self.usual_s = numbers, first or self.wait, second, usual_s
        self.lock = threading.Lock()
        self.seen = {}
        self.late = self.again = self.canceled = 0

    def __call__(self, proxy, exchange):
        key = (exchange.target, exchange.headers.get("range"))
        with self.lock:
            again = key in self.seen
            late = self.seen.setdefault(key, len(self.seen) in self.numbers)
            self.again += again
            self.late += late and not again
        if late and not again:
            self.first(proxy, exchange)
        elif late and self.second is not None:
            self.second(proxy, exchange)
        else:
            time.sleep(self.usual_s)

    def wait(self, proxy, exchange):
        """Until the client has enough, or the time is over."""
        if select.select([exchange.connection], [], [], WAIT_S)[0]:
            with self.lock:
                self.canceled += 1
            raise Dropped


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


def expect_few(late, requests):
    """Each part is asked for once, and no more than one in 20 for a second time."""
    expect(requests == len(late.seen) + late.again and late.again <= len(late.seen) // 20,
           f"{requests} requests for {len(late.seen)} parts, {late.again} again")


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


def breaks_off(proxy, exchange):
    exchange.forward(proxy.upstream)
    exchange.send(limit=1000)


def another_range(proxy, exchange):
    """As whole as an answer can be, of other bytes of the object."""
    first, last = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", exchange.headers["range"]).groups())
    exchange.headers["range"] = f"bytes={first + 1}-{last}"
    exchange.forward(proxy.upstream)
    exchange.send()
    raise Sent


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


def spoilt_and_slow(proxy, exchange):
    """Late, then bytes that are wrong, for longer than the second answer takes."""
    time.sleep(0.5)
    exchange.forward(proxy.upstream)
    exchange.answer = bytes(b ^ 0x5A for b in exchange.answer)
    exchange.send(bytes_per_s=20000)
    raise Sent


def slow_at_last(proxy, exchange):
    """The head and most of the body come; the rest does not."""
    exchange.forward(proxy.upstream)
    exchange.answer = exchange.answer[:-1000] + bytes(1000)
    exchange.send(bytes_per_s=20000)
    raise Sent


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
