# SPDX-License-Identifier: LGPL-3.0-or-later
"""Actions of s3proxy.py that let some GETs wait unusually long for their first byte, and answers to second requests
that are of no use."""

import re
import select
import threading
import time

from esdmtest import expect
from s3proxy import Dropped, Sent

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


def expect_few(late, requests):
    """Each part is asked for once, and no more than one in 20 for a second time."""
    expect(requests == len(late.seen) + late.again and late.again <= len(late.seen) // 20,
           f"{requests} requests for {len(late.seen)} parts, {late.again} again")


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
