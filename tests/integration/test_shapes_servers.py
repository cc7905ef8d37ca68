#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Second shapes (test_shapes.py) where the metadata are in PostgreSQL, and where data are on an S3 server: which of both shapes
answers, and that no reader gets an old value."""

import contextlib
import os
import shutil

import postgres
import s3server
import test_shapes as shapes
from esdmtest import SIZE, Site, expect, main, run, tool
from s3proxy import Proxy, Rule, Sent

TESTS = (shapes.test_newer_values_come_from_the_first_shape, shapes.test_what_takes_the_place_is_another,
         shapes.test_moved_and_verified, shapes.test_two_at_once, shapes.test_readers_never_see_old_values)
# They count bytes of files.
OF_FILES = (shapes.test_each_read_takes_what_costs_less, shapes.test_appended_series_are_read_in_two_parts)


@contextlib.contextmanager
def instead(**changes):
    """The sites of those tests are on the servers."""
    count = 0

    def site(**own):
        nonlocal count
        count += 1
        more = {key: value(count) for key, value in changes.items()}
        return Site(**{**own, **more})

    saved, saved_size = shapes.Site, os.environ.get("ESDM_TEST_SIZE", "default")
    shapes.Site = site
    os.environ["ESDM_TEST_SIZE"] = "long" if SIZE == "long" else "quick"
    try:
        yield
    finally:
        shapes.Site = saved
        os.environ["ESDM_TEST_SIZE"] = saved_size


@contextlib.contextmanager
def s3():
    """How targets are stated, and the proxy before the server."""
    saved = dict(os.environ)
    with s3server.Server() as server, Proxy(server) as proxy:
        os.environ.update(server.client_environment())
        try:
            yield lambda n: [server.target(prefix=f"site{n}", part="5 MiB", endpoint=proxy.endpoint)], proxy
        finally:
            os.environ.clear()
            os.environ.update(saved)


def all_of(tests):
    for test in tests:
        test()
        print(f"    {test.__name__}", flush=True)


def test_metadata_in_postgresql():
    postgres.skip_without_postgres()
    with postgres.Server() as server:
        def metadata(n):
            return {"plugin": "postgres", "host": "127.0.0.1", "port": server.port, "database": "postgres", "user": "esdm",
                    "schema": f"shapes{n}"}
        with instead(metadata=metadata):
            all_of(OF_FILES + TESTS)


def test_data_on_s3():
    with s3() as (targets, _), instead(targets=targets):
        all_of(TESTS)


def test_fewer_bytes_of_s3():
    """A series comes from the second shape, a map from the first one."""
    with s3() as (targets, proxy), Site(engine=shapes.ENGINE, targets=targets(1), **shapes.TWO) as site:
        sent = []

        def count(proxy, exchange):
            exchange.forward(proxy.upstream)
            with proxy.lock:
                sent.append(len(exchange.answer))
            exchange.send()
            raise Sent

        def counted(key):
            """(requests, bytes) of a program that has nothing in memory."""
            shutil.rmtree(site.file("cache"), ignore_errors=True)
            sent.clear()
            code = f"import netCDF4\nwith netCDF4.Dataset('esdm://a.nc') as d: d['v'][{key}]\n"
            shapes.client(["/usr/bin/python3", "-c", code])
            return len(sent), sum(sent)

        proxy.rules = [Rule(count, method="GET", path="/[^?]*/packs/.*")]
        shapes.write()
        series, plain = counted(":, 7, 11"), counted("5")
        shapes.compact("--second-shape", "v=series")
        second_series, second_plain = counted(":, 7, 11"), counted("5")
        print(f"    series: {series} and {second_series} requests and bytes; map: {plain} and {second_plain}", flush=True)
        expect(second_series[1] < series[1] / 4 and second_series[0] <= series[0], f"series: {series} {second_series}")
        expect(second_plain[1] <= plain[1] * 1.1 + 10000 and second_plain[0] <= plain[0] + 2, f"map: {plain} {second_plain}")
        shapes.same(shapes.read(site), shapes.values())
        run([tool("esdm-fsck"), "--data"])


if __name__ == "__main__":
    main(test_metadata_in_postgresql, test_data_on_s3, test_fewer_bytes_of_s3)
