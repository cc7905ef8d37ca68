#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-tune: how much of small writes is gathered, which holes between pieces are read, and over which targets writes are split. Each on
targets of which these decide; requests and bytes are counted."""

import json

from esdmtest import Site, by_clock, environment, expect, expect_error, main, run, tool
from throttledsite import FAR, throttled, tuned

PYTHON = "/usr/bin/python3"


def appends(site, *command):
    """Bytes of each request that stores, but for the journal's short ones."""
    log = site.file("appends")
    log.unlink(missing_ok=True)
    run(command, env=environment({"THROTTLED_APPENDS": str(log)}))
    return [n for n in (int(line.split()[1]) for line in log.read_text().splitlines()) if n > 1 << 14]


@by_clock
def test_how_much_is_gathered():
    """Steps of 2 MiB: a request for each, one after the other; or four fragments of 4 MiB at once."""
    kernel = ["--size=16MiB", "--phase=write"]
    with Site(targets=[throttled("far", latency_ms=60)], engine={"threads": 8, "inline": 0}) as site:
        before = appends(site, tool("esdm-tune"), "--run-kernel=gcrm", *kernel)
        found = tuned("--kernel=gcrm", *kernel, "--try=gather=16M", "--pairs=2", "--apply")
        expect(found["better"] and found["best"] == {"gather": "16M"} and found["ratio"] < 0.7, f"{found}")
        expect(json.loads(site.config.read_text())["engine"]["gather"] == "16M", site.config.read_text())
        after = appends(site, tool("esdm-tune"), "--run-kernel=gcrm", *kernel)
        print(f"    requests that store: {[n >> 10 for n in before]} KiB, then {[n >> 10 for n in after]}", flush=True)
        expect(len(before) == 8 and len(after) == 4, f"{before} {after}")
        expect(sum(after) <= sum(before) + 4096, "the same bytes")


def test_what_was_gathered_is_what_was_written():
    with Site(targets=[throttled("disk")], engine={"threads": 4, "inline": 0, "fragment": "64 KiB", "gather": "2 MiB"}) as site:
        for codec, chunk in (("none", []), ("shuffle+lz4", []), ("none", [3])):
            sizes = appends(site, FAR, "write", "far.nc", 40, 60, 90, codec, *chunk)
            expect(len(sizes) >= 10 and max(sizes) < 100 << 10, f"fragments are as large as before: {sizes}")
            run([FAR, "whole", "far.nc"])


STRIDED = """
import sys, netCDF4
d = netCDF4.Dataset(sys.argv[1])
print(next(v for v in d.variables.values() if v.ndim == 3)[::32].sum(dtype="f8"))
"""


def reads(site, command):
    log = site.file("reads")
    log.unlink(missing_ok=True)
    printed = run([tool("esdm-run"), "-q", *command], env=environment({"THROTTLED_LOG": str(log)})).stdout
    lines = log.read_text().splitlines()
    return len(lines), sum(int(line.split()[-1]) for line in lines), printed


@by_clock
def test_which_holes_are_read():
    """Each 32nd of steps of 8 KiB: 248 KiB lie between two. A request has a price of 60 ms there, bytes cost nothing; the site says that no
    hole is read, and each step takes two requests."""
    with Site(targets=[throttled("far")], engine={"threads": 2, "inline": 0, "fragment": "8 KiB"}) as site:
        script = site.file("strided.py")
        script.write_text(STRIDED)
        run([FAR, "write", "far.nc", 1024, 32, 64, "none"])
        config = json.loads(site.config.read_text())
        site.config.write_text(json.dumps({**config, "targets": [throttled("far", service_ms=60)], "engine": {**config["engine"], "sieve": 0}}))
        command = [PYTHON, script, "esdm://far.nc"]
        before, bytes_before, values = reads(site, command)
        found = tuned("--try=sieve=4M", "--pairs=2", "--apply", "--", *command)
        expect(found["better"] and found["best"] == {"sieve": "4M"} and found["ratio"] < 0.7, f"{found}")
        expect(json.loads(site.config.read_text())["engine"]["sieve"] == "4M", site.config.read_text())
        after, bytes_after, same = reads(site, command)
        print(f"    requests that read: {before} of {bytes_before >> 10} KiB, then {after} of {bytes_after >> 10}", flush=True)
        expect(bytes_before < 512 << 10 and bytes_after > 7 << 20, f"what a stride leaves out: {bytes_before} {bytes_after}")
        expect(before >= 32 and after == 1 and same == values, f"{before} {after} {values} {same}")


# What a request costs where nobody has measured it. Of 32 steps two and two tell it, one more with a hole what that costs: the others are
# one request where that is cheaper, and what they were before on targets that are quick, or slow by their bytes.
UNMEASURED = (("a slow server", {"service_ms": 30}, True), ("a disk", {"service_ms": 8, "bytes_per_s": 150e6}, True),
              ("far away", {"latency_ms": 20}, True), ("quick", {}, False), ("slow by bytes", {"latency_ms": 5, "bytes_per_s": 5e6}, False))


@by_clock
def test_what_requests_cost_where_nobody_has_measured_it():
    with Site(targets=[throttled("far")], engine={"threads": 2, "inline": 0, "fragment": "8 KiB"}) as site:
        script = site.file("strided.py")
        script.write_text(STRIDED)
        run([FAR, "write", "far.nc", 1024, 32, 64, "none"])
        config = json.loads(site.config.read_text())
        command = [PYTHON, script, "esdm://far.nc"]
        for what, keys, learns in UNMEASURED:
            site.config.write_text(json.dumps({**config, "targets": [throttled("far", **keys)], "engine": {**config["engine"], "sieve": 0}}))
            before, bytes_before, values = reads(site, command)
            site.config.write_text(json.dumps({**config, "targets": [throttled("far", **keys)]}))
            count, size, same = reads(site, command)
            print(f"    {what}: {before} requests of {bytes_before >> 10} KiB, then {count} of {size >> 10}", flush=True)
            expect(before == 64 and same == values, f"{before} {values} {same}")
            if learns:
                expect(count <= 24, f"{what}: {count} requests")
            elif keys:
                expect(count <= before and size <= bytes_before + (300 << 10), f"{what}: one hole is read: {count} {size}")
            else:
                expect((count, size) == (before, bytes_before), f"{what}: {count} {size}")
        # Holes that are much larger than the one that was read are another matter.
        site.config.write_text(json.dumps({**config, "targets": [throttled("far", service_ms=30)], "engine": {**config["engine"], "threads": 1}}))
        sizes = []
        for larger in "", "\nprint(next(v for v in d.variables.values() if v.ndim == 3)[::128].sum(dtype='f8'))":
            script.write_text(STRIDED.replace("[::32]", "[::10]") + larger)
            sizes.append(reads(site, command)[1])
        print(f"    and larger holes: {sizes[0] >> 10} and {sizes[1] - sizes[0] >> 10} KiB", flush=True)
        expect(sizes[1] - sizes[0] < 1 << 20, f"{sizes} bytes")
        script.write_text(STRIDED)
        # Few reads tell nothing: with eight threads these would be over before.
        site.config.write_text(json.dumps({**config, "targets": [throttled("far", service_ms=30)], "engine": {**config["engine"], "threads": 8}}))
        expect(reads(site, command) == (64, bytes_before, values), "as it was")


def stored(site, target):
    return sum(file.stat().st_size for file in (site.folder / target).rglob("*") if file.is_file())


@by_clock
def test_over_which_targets_writes_are_split():
    """Nobody has measured them, so they take turns, and all wait for the slow one."""
    targets = [throttled("fast"), throttled("slow", service_ms=20), throttled("fine")]
    write = [FAR, "write", "far.nc", 64, 128, 128, "none"]
    with Site(targets=targets, engine={"threads": 4, "inline": 0, "fragment": "64 KiB"}) as site:
        run(write)
        before = {t["name"]: stored(site, t["name"]) for t in targets}
        expect(min(before.values()) > 1 << 20, f"{before}")
        found = tuned("--kernel=gcrm", "--size=4MiB", "--phase=write", "--try=split", "--pairs=2", "--apply")
        expect(found["settings"] == 7 and found["better"] and "slow" not in found["best"]["split"] and found["ratio"] < 0.7, f"{found}")
        policies = json.loads(site.config.read_text())["policies"]
        expect(policies == [{"targets": found["best"]["split"].split("+")}], f"{policies}")
        run([*write[:2], "again.nc", *write[3:]])
        expect(stored(site, "slow") < before["slow"] + (1 << 16), f"nothing new is there: {before} {stored(site, 'slow')}")
        run([FAR, "whole", "far.nc"])
        run([FAR, "whole", "again.nc"])
        # It is what the site has, and can be taken back; policies of some containers stay before it.
        config = json.loads(site.config.read_text())
        config["policies"].insert(0, {"container": "again*", "targets": ["slow"]})
        site.config.write_text(json.dumps(config))
        again = tuned("--kernel=gcrm", "--size=64K", "--try=split=all", "--trials=2", "--pairs=0", "--exhaustive")
        expect([t["setting"]["split"] for t in again["trials"]] == [found["best"]["split"], "all"], f"{again}")


def test_settings_that_cannot_be():
    with Site(targets=[throttled("one"), throttled("two"), throttled("old", retiring=True)]) as site:
        for arguments, *texts in ((["--try=split=three"], "'three' is no value of split"), (["--try=split=one+old"], "'one+old' is no value"),
                                  (["--try=gather=128M"], "gather of 128M", "a quarter of memory"), (["--try=sieve=some"], "'some' is no value of sieve")):
            expect_error(run([tool("esdm-tune"), "--kernel=gcrm", *arguments], check=False), *texts)
        config = json.loads(site.config.read_text())
        for policy, text in (({"copies": 2}, "'one' is no value of split"), ({"tier": "t"}, "states a tier")):
            targets = [{**t, "tier": "t"} for t in config["targets"]]
            site.config.write_text(json.dumps({**config, "targets": targets, "policies": [policy]}))
            expect_error(run([tool("esdm-tune"), "--kernel=gcrm", "--try=split=one"], check=False), text)
        site.config.write_text(json.dumps({**config, "targets": config["targets"][:1]}))
        expect_error(run([tool("esdm-tune"), "--kernel=gcrm", "--try=split"], check=False), "over targets", "has 1")
        # What the site states and nobody tries counts, too.
        site.config.write_text(json.dumps({**config, "engine": {"gather": "64M"}}))
        found = json.loads(run([tool("esdm-tune"), "--json", "--quiet", "--kernel=gcrm", "--size=64K", "--try=memory=64M", "--pairs=0"]).stdout)
        expect([t["setting"]["memory"] for t in found["trials"]] == [256 << 20], f"{found}")
        for engine, text in (({"gather": "much"}, "gather"), ({"gather": "65M"}, "a quarter of"), ({"sieve": "8M"}, "sieve"),
                             ({"sieve": "some"}, "\"model\"")):
            site.config.write_text(json.dumps({**config, "engine": engine}))
            expect_error(run([tool("esdm-ls")], check=False), text)
        for engine in ({"gather": "fragment", "sieve": "model"}, {"gather": 4096, "sieve": 0}, {"gather": "64 MiB", "sieve": "0"}):
            site.config.write_text(json.dumps({**config, "engine": engine}))
            run([tool("esdm-ls")])


main(test_how_much_is_gathered, test_what_was_gathered_is_what_was_written, test_which_holes_are_read,
     test_what_requests_cost_where_nobody_has_measured_it,
     test_over_which_targets_writes_are_split, test_settings_that_cannot_be)
