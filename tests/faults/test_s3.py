#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""S3 targets whose servers fail for a moment, are slow, or lie: nobody notices, or it is found, and what was
committed stays readable."""

import itertools
import threading

import s3proxy
import s3server
from esdmtest import by_clock, by_size, expect, expect_error, main, run, skip, tool
from faults import check_goes_on, generation, must, program, shown
from s3proxy import Proxy, Rule
from s3server import Server
from stores import no_secret_was_printed, s3_site

MKFS = tool("esdm-mkfs")
PACKS = "/[^?]*/packs/.*"

TROUBLES = {
    "SlowDown": s3proxy.fail(503, "SlowDown", "Please reduce your request rate."),
    "busy": s3proxy.fail(500, "InternalError"),
    "throttled": s3proxy.fail(429, "TooManyRequests", headers=[("Retry-After", "0")]),
    "reset": s3proxy.reset,
    "lost answer": s3proxy.lose_answer,
    "truncated": s3proxy.truncate(100),
    "proxy page": lambda proxy, exchange: setattr(exchange, "status", 502) or setattr(
        exchange, "answer", b"<html>Bad gateway<br>") or setattr(exchange, "answer_headers", []),
}


def in_turn(actions):
    """Another one for each request."""
    turn = itertools.cycle(actions)
    return lambda proxy, exchange: next(turn)(proxy, exchange)


def test_s3__passing_failures_are_not_noticed():
    """Every single request fails once."""
    troubles = by_size({}, {}, dict(TROUBLES))
    troubles["all in turn"] = in_turn(TROUBLES.values())
    with Server() as server:
        for name, action in troubles.items():
            rule = Rule(action, each=True)
            with Proxy(server, [rule]) as proxy, s3_site(server, endpoint=proxy.endpoint,
                                                         engine={"threads": 1}) as site:
                rule.seen.clear()
                must("write", "a", 1, 2)
                expect(generation("a") == 2, f"{name}: wrong data")
                expect(rule.hits > 10, f"{name}: only {rule.hits} requests failed")
                expect(proxy.count(r"POST .*\?uploadId.*") >= 2, f"{name}: no long upload")
                run([MKFS, "--check"])
                run([MKFS, "--remove", "--yes"])
                left = server.client().keys(site.prefix) + server.client().uploads(site.prefix)
                expect(not left, f"{name}: left behind: {left}")


def test_s3__lost_answers_do_not_make_strangers_of_our_packs():
    """The server did what it was asked for and nobody heard of it, several times over."""
    for pattern in (PACKS, r"/[^?]*/packs/[^?]*\?uploadId.*"):
        rule = Rule(s3proxy.lose_answer, method="PUT|POST", path=pattern, count=3)
        with Server() as server, Proxy(server, [rule]) as proxy:
            with s3_site(server, endpoint=proxy.endpoint, engine={"threads": 1}):
                must("write", "a", 1, 3)
                expect(generation("a") == 3, "wrong data")
                expect(rule.hits == 3, f"{rule.hits} answers were lost")


def test_s3__answers_that_say_nothing_are_not_believed():
    """An answer from somewhere else, and bits that change on their way, once for each request."""
    foreign = '"0123456789abcdef0123456789abcdef"'
    cases = {"no ETag": ("PUT|POST", s3proxy.swallow()), "foreign ETag": ("PUT", s3proxy.swallow(foreign)),
             "flipped while sent": ("PUT", s3proxy.flip_sent), "flipped while read": ("GET", s3proxy.flip)}
    # Uploads of several parts, and of one.
    rules = {f"{name}, packs of {pack}": (Rule(action, method, PACKS, each=True), pack)
             for name, (method, action) in cases.items() for pack in ("1 GiB", "64 KiB")}
    rules["never an ETag"] = (Rule(s3proxy.strip_etag, "PUT", PACKS), "64 KiB")
    with Server() as server:
        for name, (rule, pack) in rules.items():
            with Proxy(server, [rule]) as proxy, s3_site(server, endpoint=proxy.endpoint,
                                                         engine={"threads": 1, "pack": pack}):
                must("write", "a", 1, 2)
                expect(generation("a") == 2, f"{name}: wrong data")
                expect(rule.hits >= 2, f"{name}: only {rule.hits} requests were concerned")
        # Packs of one request: of parts that were never stored the server itself tells.
        with Proxy(server) as proxy, s3_site(server, endpoint=proxy.endpoint,
                                             engine={"pack": "64 KiB"}):
            must("write", "a", 1, 1)
            proxy.rules = [Rule(s3proxy.swallow(foreign), method="PUT", path=PACKS)]
            done = program("write", "a", 2, 2)
            expect(done.returncode == 3, shown(done))
            expect_error(done, "does not have it", "0123456789abcdef")
            proxy.rules = []
            expect(generation("a") == 1, "wrong data")
            check_goes_on("a", 1)


def test_s3__servers_without_conditions_are_used():
    def refuse(proxy, exchange):
        if "if-none-match" in exchange.headers:
            exchange.reply(501, "NotImplemented", "A header you provided is not implemented")

    with Server() as server, Proxy(server, [Rule(refuse, method="PUT|POST")]) as proxy:
        with s3_site(server, endpoint=proxy.endpoint, engine={"threads": 1}):
            must("write", "a", 1, 2)
            expect(generation("a") == 2, "wrong data")


def test_s3__wrong_bytes_are_found():
    with Server() as server, Proxy(server) as proxy:
        with s3_site(server, endpoint=proxy.endpoint, engine={"threads": 1}):
            must("write", "a", 1, 1)
            for action, words in [(s3proxy.flip, ["damaged"]),
                                  (s3proxy.whole, ["range"]),
                                  (s3proxy.with_status(203), ["range"]),
                                  (s3proxy.fail(404, "NoSuchKey"), ["NoSuchKey"]),
                                  (s3proxy.fail(416, "InvalidRange"), ["shorter"])]:
                proxy.rules = [Rule(action, method="GET", path=PACKS)]
                done = program("read", "a")
                lines = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
                expect(lines["tiny"] == "ok 1", f"{lines}")  # inline: other data stays readable
                for name in ("large", "packed"):
                    text = lines[name]
                    expect(not text.startswith("ok"), f"{name} is taken for good")
                    for word in ("'a'", name, "fragment", "pack", "cloud", *words):
                        expect(word in text, f"'{word}' is not in: {text}")
            proxy.rules = []
            expect(generation("a") == 1, "wrong data")


@by_clock
def test_s3__slow_servers_are_waited_for():
    with Server() as server, Proxy(server, [Rule(s3proxy.delay(0.05))]) as proxy:
        with s3_site(server, endpoint=proxy.endpoint, timeout=4):
            must("write", "a", 1, 1)
            proxy.rules = [Rule(s3proxy.slow(800_000), method="GET", path=PACKS)]
            expect(generation("a") == 1, "wrong data")
            # Longer than the time limit for an object: what goes on is no failure.
            proxy.rules = []
            proxy.takes_bytes_per_s = by_size(4_000_000, 1_000_000, 500_000)
            must("write", "a", 2, 2)
            proxy.takes_bytes_per_s = None
            expect(generation("a") == 2, "wrong data")


def test_s3__one_slow_request_holds_up_no_other():
    """Of many requests each waits for any connection that is free, not for a certain one. The first
    one is held until all have come: shorter than it takes a client to give it up."""
    packs, arrived, held = set(), set(), []
    all_came = threading.Event()

    def hold_first(_, exchange):
        arrived.add(exchange.target)
        if len(arrived) == len(packs):
            all_came.set()
        if not held:
            held.append(0)
            held[0] = len(packs) if all_came.wait(20) else len(arrived)

    with Server() as server, Proxy(server) as proxy:
        for connections in (2, 3, 8):
            with s3_site(server, endpoint=proxy.endpoint, object=1, connections=connections,
                         engine={"fragment": "256 KiB"}) as site:
                must("write", "a", 1, 1)
                packs = {key for key in server.client().keys(site.prefix) if "/packs/" in key}
                expect(len(packs) > 16, f"few packs: {packs}")
                arrived.clear()
                held.clear()
                all_came.clear()
                proxy.rules = [Rule(hold_first, method="DELETE", path=PACKS)]
                run([MKFS, "--remove", "--yes"])
                proxy.rules = []
                expect(held == [len(packs)], f"{connections} connections: {held} of {len(packs)} "
                                             "came while the first one was held")


def test_s3__no_secret_was_printed():
    no_secret_was_printed(150)


if not (s3server.pathlib.Path(tool("")).parent / "esdm/esdm-data-s3.so").exists():
    skip("this ESDM was built without S3")
main(*[test for name, test in list(globals().items()) if name.startswith("test_")])
