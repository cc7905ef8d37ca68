#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Reads from a server that is far away: as few requests as fragments, and many of them at once where
a loop over steps tells what will be wanted. Requests are counted by a proxy before the server, which
holds each back."""

import contextlib
import json
import os
import re
import tempfile

import s3proxy
from esdmtest import BUILD, SANITIZE, Site, by_clock, by_size, client, expect, main, run, skip, tool
from s3proxy import Proxy, Rule
from s3server import Server

PROGRAM = str(BUILD / "tests/integration/far_program")
GETS = r"GET /[^?]*/packs/.*"
DELAY_S = 0.2


@contextlib.contextmanager
def far_site(name, *written):
    """A site whose data lie behind a slow proxy, and a container that was written without it."""
    with Server() as server, Proxy(server) as proxy:
        target = server.target(prefix="far", part="5 MiB", endpoint=proxy.endpoint, hedge=False)
        with contextlib.ExitStack() as stack:
            site = stack.enter_context(server_site(server, target))
            run([PROGRAM, "write", name, *map(str, written)])
            proxy.rules = [Rule(s3proxy.delay(DELAY_S), method="GET", path="/[^?]*/packs/.*")]
            yield site, proxy


@contextlib.contextmanager
def server_site(server, *targets):
    saved = dict(os.environ)
    os.environ.update(server.client_environment())
    try:
        with Site(targets=list(targets), engine={"threads": 2, "memory": "256 MiB"}) as site:
            yield site
    finally:
        os.environ.clear()
        os.environ.update(saved)


def counted(proxy, *command):
    """Runs the program; requests that it made, most of them at once, and the seconds it tells."""
    with proxy.lock:
        proxy.log.clear()
        proxy.most_at_once = 0
    done = run([PROGRAM, *map(str, command)])
    seconds = float(re.search(r"seconds (\S+)", done.stdout).group(1))
    print(f"    {' '.join(map(str, command))}: {proxy.count(GETS)} requests, {proxy.most_at_once} at "
          f"once, {seconds:.3f} s", flush=True)
    return proxy.count(GETS), proxy.most_at_once, seconds


@by_clock
def test_far__a_loop_over_steps_has_many_requests_under_way():
    """Whole steps, parts of them, every second one, and backwards."""
    with far_site("far.nc", by_size(60, 60, 120), 180, 360, "none", 1) as (_, proxy):
        steps = by_size(60, 60, 120)
        for loop in ([0, steps, 1], [0, steps, 1, 50], [0, steps // 2, 2], [steps - 1, steps, -1]):
            requests, at_once, _ = counted(proxy, "loop", "far.nc", *loop)
            expect(at_once >= 16, f"{at_once} requests at once for {loop}")
            expect(requests <= loop[1] + 2, f"{requests} requests for {loop}")


@by_clock
def test_far__wrong_guesses_end():
    """Random steps, and neighbours now and then: the requests that nobody wanted stay few."""
    order = [3, 4, 17, 30, 8, 9, 25, 2, 12, 13, 36, 1, 20, 21, 5, 33, 11, 28, 29, 7, 38, 16]
    with far_site("far.nc", 40, 180, 360, "none", 1) as (_, proxy):
        requests, *_ = counted(proxy, "steps", "far.nc", *order)
        expect(requests <= len(order) + 6, f"{requests} requests for {len(order)} steps")


def test_far__a_part_of_a_fragment_takes_one_call():
    with far_site("far.nc", 2, 721, 1440, "none") as (_, proxy):
        requests, *_ = counted(proxy, "loop", "far.nc", 1, 1, 1, 101)
        expect(requests == 1, f"{requests} requests")


def test_far__the_first_read_does_not_wait_for_the_mark():
    """A program's first point: the mark of the place and the data are asked for at once."""
    mark = r"GET /[^?]*/esdm-mark\.json.*"
    with far_site("far.nc", 2, 180, 360, "none") as (_, proxy):
        proxy.rules = [Rule(s3proxy.delay(DELAY_S), method="GET")]
        requests, at_once, _ = counted(proxy, "loop", "far.nc", 1, 1, 1, 101)
        expect(requests == 1 and proxy.count(mark) == 1 and at_once == 2,
               f"{requests} requests, {proxy.count(mark)} of the mark, {at_once} at once")


def test_far__the_first_reads_of_a_series_do_not_wait_for_the_mark():
    """Those that find another one opening the place read meanwhile."""
    steps = 6
    with far_site("far.nc", steps, 512, 512, "none", 1) as (_, proxy):
        proxy.rules = [Rule(s3proxy.delay(DELAY_S), method="GET")]
        requests, at_once, _ = counted(proxy, "series", "far.nc", 400, 300)
        expect(requests == steps and at_once >= steps, f"{requests} requests, {at_once} at once")


def test_far__nothing_is_read_from_a_place_that_is_not_the_sites():
    """The data would be there, but the mark is another site's, or cannot be had."""
    def other_site(_, exchange):
        exchange.forward(proxy.upstream)
        exchange.answer = re.sub(rb"[0-9a-f]{32}", b"0123456789abcdef" * 2, exchange.answer)

    with far_site("far.nc", 6, 512, 512, "none", 1) as (_, proxy):
        for rule, words in ((other_site, "another site"), (s3proxy.fail(403, "AccessDenied"), "AccessDenied")):
            proxy.rules = [Rule(rule, method="GET", path=r"/[^?]*/esdm-mark\.json.*")]
            for arguments in (["loop", "far.nc", 1, 1, 1, 101], ["series", "far.nc", 400, 300]):
                done = run([PROGRAM, *arguments], check=False)
                expect(done.returncode != 0 and words in done.stdout + done.stderr,
                       f"{done.returncode}: {done.stdout} {done.stderr}")


def test_far__the_first_step_brings_the_next_two():
    """A loop over steps begins with the first one; who reads no other has read two too many."""
    for arguments, most in (([0, 1, 1], 3), ([7, 1, 1], 1), ([0, 1, 1, 50], 1)):
        with far_site("far.nc", 40, 180, 360, "none", 1) as (_, proxy):
            requests, at_once, _ = counted(proxy, "loop", "far.nc", *arguments)
            expect(requests <= most and (requests > 1 and at_once > 1) == (most > 1),
                   f"{requests} requests, {at_once} at once for {arguments}")


def test_far__a_point_of_a_large_fragment_takes_one_request():
    """The index page has what a reader needs of the table of blocks."""
    steps = by_size(4, 6, 30)
    for codec in ("none", "zstd"):
        with far_site("far.nc", steps, 1024, 1024, codec, 1) as (_, proxy):
            points = [100, 0, 700, 500, 300, 300, 1000, 20]
            requests, *_ = counted(proxy, "series", "far.nc", *points[:2])
            expect(requests == steps, f"{requests} requests for {codec}")
            requests, *_ = counted(proxy, "series", "far.nc", *points)
            expect(requests == 4 * steps, f"{requests} requests of four points for {codec}")
            run([tool("esdm-fsck"), "--data"])


@by_clock
def test_far__whole_reads_and_loops_take_one_request_a_fragment():
    """No less than before index pages had outlines."""
    steps = by_size(4, 6, 30)
    for codec in ("none", "zstd"):
        for command in (["whole"], ["loop", 0, steps, 1]):
            with far_site("far.nc", steps, 1024, 1024, codec, 1) as (_, proxy):
                requests, *_ = counted(proxy, command[0], "far.nc", *command[1:])
                expect(requests == steps, f"{requests} requests for {codec}")


def test_far__a_fragment_of_a_mebibyte_takes_one_request():
    """Its table comes on top of what a read costs."""
    steps = by_size(6, 20, 120)
    with far_site("far.nc", steps, 512, 512, "none", 1) as (_, proxy):
        requests, *_ = counted(proxy, "series", "far.nc", 400, 300)
        expect(requests == steps, f"{requests} requests")


def test_far__what_was_drained_takes_one_request():
    """Data that were written near have no outline until they move far away."""
    steps = by_size(4, 6, 30)
    with Server() as server, Proxy(server) as proxy, tempfile.TemporaryDirectory() as disk:
        near = {"name": "disk", "plugin": "posix", "directory": disk}
        far = server.target(prefix="far", part="5 MiB", endpoint=proxy.endpoint, hedge=False)
        with server_site(server, near) as site:
            for codec in ("none", "zstd"):
                run([PROGRAM, "write", f"{codec}.nc", str(steps), "1024", "1024", codec, "1"])
            config = json.loads(site.config.read_text())
            config["targets"].append(far)
            site.config.write_text(json.dumps(config))
            run([tool("esdm-mkfs")])
            run([tool("esdm-drain"), "--age", "0s", "--from", "disk"])
            for codec in ("none", "zstd"):
                requests, *_ = counted(proxy, "series", f"{codec}.nc", 100, 0)
                expect(requests == steps, f"{requests} requests for {codec}")
            run([tool("esdm-fsck"), "--data"])


MOST_OF_A_FRAGMENT = """
import resource, netCDF4, numpy
with netCDF4.Dataset("esdm://far.nc") as nc:
    nc["v"].set_auto_mask(False)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    got = nc["v"][0:2, 3:2900, 1:4090:2]
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
numpy.testing.assert_array_equal(got, numpy.arange(2 * 3000 * 4096, dtype="i4").reshape(2, 3000, 4096)[
    :, 3:2900, 1:4090:2])
"""


def test_far__most_of_a_large_fragment_takes_its_memory_once():
    """What is wanted ends within groups: their bytes beside the wanted ones are few, and so is the memory for them."""
    if SANITIZE:
        skip("sanitizers take memory of their own")
    writes = """
import netCDF4, numpy
with netCDF4.Dataset("esdm://far.nc", "w") as nc:
    for name, length in ("t", 2), ("y", 3000), ("x", 4096):
        nc.createDimension(name, length)
    nc.createVariable("v", "i4", ("t", "y", "x"), chunksizes=(2, 3000, 4096))[:] = (
        numpy.arange(2 * 3000 * 4096, dtype="i4").reshape(2, 3000, 4096))
"""
    with Server() as server, server_site(server, server.target(prefix="far", part="5 MiB")) as site:
        config = json.loads(site.config.read_text())
        config["engine"] |= {"fragment": "256 MiB", "codec": "none"}
        site.config.write_text(json.dumps(config))
        client(["/usr/bin/python3", "-c", writes])
        kib = int(client(["/usr/bin/python3", "-c", MOST_OF_A_FRAGMENT]).stdout)
        most = 45.3 + 93.8 + 24  # what was asked for, the fragment, and what else is needed
        expect(kib < most * 1024, f"{kib} KiB")


def test_far__other_data_of_the_same_length_are_noticed():
    """Two packs change places on the server: each is sound by itself."""
    with Server() as server, Proxy(server) as proxy:
        target = server.target(prefix="far", part="5 MiB", endpoint=proxy.endpoint)
        with server_site(server, target):
            packs = []
            for lat in (1024, 512):  # the same bytes a step
                run([PROGRAM, "write", f"{lat}.nc", "1", str(lat), str((1 << 20) // lat), "none", "1"])
                packs += [pack for pack in server.objects.glob("far/packs/*")
                          if pack.stat().st_size > 1 << 20 and pack not in packs]
            expect(len(packs) == 2, f"{packs}")
            contents = [pack.read_bytes() for pack in packs]
            for pack, content in zip(packs, reversed(contents)):
                pack.write_bytes(content)
            for command in ([PROGRAM, "series", "1024.nc", "100", "0"], [tool("esdm-fsck")]):
                done = run(command, check=False)
                expect(done.returncode != 0, f"{command}: {done.stdout} {done.stderr}")
            expect("outline" in done.stdout + done.stderr, done.stdout + done.stderr)


def test_far__damaged_tables_are_not_kept():
    """Every second row is wanted, for which the table is read: an entry that nobody wants yet is
    damaged on the way."""
    head = 64 + 1024 * 16  # of 4 MiB in blocks of 4 KiB
    hits = []

    def flip_entry(_, exchange):
        exchange.forward(proxy.upstream)
        if len(exchange.answer) == head and not hits:
            hits.append(exchange.target)
            answer = bytearray(exchange.answer)
            answer[64 + 513 * 16 + 8] ^= 0x10
            exchange.answer = bytes(answer)

    with far_site("far.nc", 1, 1024, 1024, "none", 1) as (_, proxy):
        proxy.rules = [Rule(flip_entry, method="GET", path="/[^?]*/packs/.*")]
        requests, *_ = counted(proxy, "rows", "far.nc", 400, 2, 401, 2)
        expect(len(hits) == 1, "no table was read")
        expect(requests == 4, f"{requests} requests")


def test_far__programs_end_while_requests_are_under_way():
    """Without a close: what has been asked for ahead needs libraries that go with the program."""
    with far_site("far.nc", 40, 180, 360, "none", 1) as (_, proxy):
        proxy.rules = [Rule(s3proxy.delay(0.02), method="GET", path="/[^?]*/packs/.*")]
        for i in range(by_size(24, 60, 200)):
            run([PROGRAM, "leave", "far.nc", str(1 + i % 4)])


main(test_far__a_loop_over_steps_has_many_requests_under_way, test_far__wrong_guesses_end,
     test_far__a_part_of_a_fragment_takes_one_call,
     test_far__the_first_read_does_not_wait_for_the_mark,
     test_far__the_first_reads_of_a_series_do_not_wait_for_the_mark,
     test_far__nothing_is_read_from_a_place_that_is_not_the_sites,
     test_far__the_first_step_brings_the_next_two,
     test_far__a_point_of_a_large_fragment_takes_one_request,
     test_far__whole_reads_and_loops_take_one_request_a_fragment,
     test_far__what_was_drained_takes_one_request,
     test_far__other_data_of_the_same_length_are_noticed,
     test_far__most_of_a_large_fragment_takes_its_memory_once,
     test_far__a_fragment_of_a_mebibyte_takes_one_request, test_far__damaged_tables_are_not_kept,
     test_far__programs_end_while_requests_are_under_way)
