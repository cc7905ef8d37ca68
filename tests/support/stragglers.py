# SPDX-License-Identifier: LGPL-3.0-or-later
"""Actions of s3proxy.py that let some GETs wait unusually long for their first byte, and answers to second requests
that are of no use."""

import re
import select
import threading
import time

import s3proxy
from esdmtest import BUILD, expect, run
from s3proxy import Dropped, Rule, Sent

PROGRAM = str(BUILD / "tests/integration/far_program")

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


def requests_of(proxy, path, action, command):
    """GETs of such paths that far_program makes, and the seconds it tells."""
    proxy.rules = [Rule(action, method="GET", path=path)]
    with proxy.lock:
        proxy.log.clear()
    done = run([PROGRAM, *map(str, command)])
    seconds = float(re.search(r"seconds (\S+)", done.stdout).group(1))
    requests = proxy.count("GET " + path)
    print(f"    {' '.join(map(str, command))}: {requests} requests, {seconds:.3f} s", flush=True)
    return requests, seconds


def expect_few(late, requests):
    """Each part is asked for once, and no more than one in 20 for a second time."""
    expect(requests == len(late.seen) + late.again and late.again <= len(late.seen) // 20,
           f"{requests} requests for {len(late.seen)} parts, {late.again} again")


# What is the same of targets and of references; read(action, *command) has far_program read.

def expect_patience(read, late):
    """Where nothing is asked for again the stragglers are waited for. @param read of such a place"""
    requests, seconds = read(late)
    expect((requests, late.again, late.canceled) == (len(late.seen), 0, 0), f"{requests} requests")
    expect(seconds >= WAIT_S, f"{seconds} s")


def expect_few_of_a_slow_server(read):
    slow = Stragglers((), usual_s=0.3)
    requests, _ = read(slow)
    expect((requests, slow.again) == (len(slow.seen), 0), f"{slow.again} again")


def expect_few_of_many(read, steps):
    """Every fifth GET waits: more than one in 20 is never asked for again."""
    late = Stragglers(range(4, steps, 5), first=s3proxy.delay(0.5))
    requests, _ = read(late)
    expect(late.late >= 12, f"{late.late} late")
    expect_few(late, requests)


def expect_none_of_a_server_that_refuses(read, status, code):
    late = Stragglers(first=s3proxy.delay(1))
    refusals = iter(range(2))
    answer = s3proxy.fail(status, code)

    def action(proxy, exchange):
        if next(refusals, None) is not None:
            answer(proxy, exchange)
        else:
            late(proxy, exchange)

    requests, seconds = read(action)
    expect((requests, late.again) == (len(late.seen) + 2, 0), f"{requests} requests, {late.again} again")
    expect(seconds >= 1, f"{seconds} s")


def expect_no_harm(read, seconds):
    """Second requests that fail: the first one is waited for, and its answer counts."""
    for second in seconds:
        late = Stragglers(first=s3proxy.delay(1), second=second)
        requests, took = read(late)
        if second != s3proxy.reset:  # libcurl sends it again when a kept connection ends so
            expect_few(late, requests)
        expect(late.again >= 1, f"{second.__name__}: {late.again} again")
        expect(took >= 1, f"{took} s")


def expect_no_mixture(read, waits_s, *command):
    """Both answer at once, one with wrong bytes: the one that is whole first is the answer, and nothing of the other one
    is in it; far_program ends at the first wrong value. @param waits_s the first request where the second is slow"""
    for first, second in ((spoilt_and_slow, s3proxy.delay(1)), (s3proxy.delay(waits_s), slow_at_last)):
        late = Stragglers(first=first, second=second)
        requests, _ = read(late, *command)
        expect(late.again >= 1 and requests == len(late.seen) + late.again, f"{requests} requests")


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
