#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-dedup --dry-run --as write|content: what is foretold for a series that is there is what it takes when it is written with that
in the configuration, for all codecs; and nothing is stored for it."""

import json

import test_dedup
import test_dedup_content
from esdmtest import Site, by_size, client, expect, expect_error, main, run, some, tool

CODECS = ("none", "lz4", "shuffle+zstd")


def foretell(policy, *names):
    return json.loads(run([tool("esdm-dedup"), "--dry-run", "--json", "--as", policy, *names]).stdout)


def stored(site):
    return sum(path.stat().st_size for path in site.pack_files())


def fixed_and_state():
    """Fields that stay and one that does not."""
    test_dedup.python(test_dedup.SERIES, 5)


def particles():
    """Lists that gain and lose some."""
    test_dedup_content.series("write", 0, 1, 2)


def check_series(make, codec, saved):
    """@param saved by each policy: at least that share."""
    engine = {"codec": codec, "codec_on_request": codec}
    with Site(engine=engine, replaced={"keep": 0}) as site:
        make()
        before = stored(site)
        told = {policy: foretell(policy, "restart") for policy in saved}
        expect(stored(site) == before, "a dry run stored something")
    for policy, least in saved.items():
        with Site(engine=engine, replaced={"keep": 0}, dedup=policy) as site:
            make()
            measured = stored(site)
        one = told[policy]
        foretold = one["bytes"] - one["duplicate_bytes"]
        really = before - measured
        print(f"{make.__name__}, {codec}, {policy}: {before} bytes; saved {really}, foretold {one['duplicate_bytes']}")
        expect(abs(measured - foretold) <= 0.1 * measured, f"{policy}, {codec}: {measured} bytes, foretold {one}")
        expect(abs(really - one["duplicate_bytes"]) <= 0.1 * max(really, 0.02 * before), f"{policy}, {codec}: saved {really}, {one}")
        expect(really >= least * before, f"{policy}, {codec}: saved {really} of {before}")


def test_forecast__equal_fields():
    for codec in some(CODECS, by_size(1, 2, 3)):
        check_series(fixed_and_state, codec, {"write": 0.4, "content": 0.4})


def test_forecast__lists_that_move():
    for codec in some(CODECS, by_size(1, 2, 3)):
        check_series(particles, codec, {"content": 0.2})
    with Site(replaced={"keep": 0}) as _:
        particles()
        told = foretell("write")
        expect(told["duplicate_bytes"] < 0.05 * told["bytes"] and told["table_bytes"] > 0, f"{told}")
        text = run([tool("esdm-dedup"), "-n", "--as", "write"]).stdout
        expect("That is little" in text and "of memory for the table" in text, text)


# Twice the same in one container, and once in each of others.
TWICE = """
import netCDF4, numpy, sys
for name in sys.argv[1:]:
    with netCDF4.Dataset(f"esdm://{name}", "w") as d:
        d.createDimension("x", 30000)
        for v in "ab":
            d.createVariable(v, "f8", ("x",))[:] = numpy.random.default_rng(1).random(30000)
"""


def test_forecast__counts_what_writers_look_at():
    """Not the same container, other folders, branches, or what lies more than 16 containers back."""
    with Site() as _:
        client(["/usr/bin/python3", "-c", TWICE, "a/0.nc", "b/0.nc", "b/1.nc"])
        run([tool("esdm-branch"), "b/0.nc", "line"])
        told = foretell("write")
        expect(told["containers"] == 3 and told["fragments"] == 6 and told["duplicates"] == 2, f"{told}")
        expect(foretell("write", "a")["duplicates"] == 0, "of one container")
        expect(foretell("write", "b", "b/1.nc")["containers"] == 2, "one is counted twice")
    code = TWICE.replace("default_rng(1)", "default_rng(0 if name in ('0.nc', '16.nc', '18.nc') else int(name[:-3]))")
    with Site() as _:
        client(["/usr/bin/python3", "-c", code, *[f"{n}.nc" for n in range(19)]])
        told = foretell("write")  # 16.nc has it from 0.nc, 18.nc from 16.nc
        expect(told["duplicates"] == 4, f"{told}")
    code = code.replace("'16.nc', '18.nc'", "'17.nc'")
    with Site() as _:
        client(["/usr/bin/python3", "-c", code, *[f"{n}.nc" for n in range(18)]])
        expect(foretell("write")["duplicates"] == 0, "writers do not look so far back")


def test_forecast__wrong_use():
    with Site() as _:
        expect_error(run([tool("esdm-dedup"), "--as", "write"], check=False), "--dry-run")
        expect_error(run([tool("esdm-dedup"), "-n", "--as", "contents"], check=False), "contents")
        expect_error(run([tool("esdm-dedup"), "-n", "--as", "write", "none"], check=False), "none")


if __name__ == "__main__":
    main(test_forecast__equal_fields, test_forecast__lists_that_move, test_forecast__counts_what_writers_look_at,
         test_forecast__wrong_use)
