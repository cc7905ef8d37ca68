#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""What earlier runs of a program read is asked for early: requests are counted by a slow target, which
answers none before enough have arrived. A program that does something else gets right data, and few
requests that nobody wanted."""

import contextlib
import json
import os
import subprocess

from esdmtest import BUILD, Site, by_clock, client_environment, environment, expect, main, run, tool

PROGRAM = str(BUILD / "tests/integration/far_program")
STEPS = 24


@contextlib.contextmanager
def slow_site(engine=None, shape=(60, 90), latency_ms=20):
    """A container of a fragment a step on a target that counts requests. Its requests are slow enough that
    what is gained is more than what it costs on a machine that has other work too."""
    os.environ["ESDM_PLUGIN_PATH"] = str(BUILD / "plugins")
    targets = [{"name": "far", "plugin": "background", "directory": "far", "latency_ms": latency_ms}]
    with Site(targets=targets, engine={"threads": 2, "memory": "64 MiB", **(engine or {})}) as site:
        run([PROGRAM, "write", "far.nc", STEPS, *shape, "none", 1])
        yield site


def records(site):
    return sorted((site.folder / "cache" / "esdm" / "runs").rglob("*.json"))


def record(site):
    files = records(site)
    expect(len(files) == 1, f"records: {files}")
    return json.loads(files[0].read_text())


def requests(site, *command, gate=0, env=None):
    """Runs the program; how many requests it made, and how many of them before the first was answered."""
    log = site.file("requests.log")
    log.unlink(missing_ok=True)
    run([PROGRAM, *command], env=environment({"THROTTLED_LOG": str(log), "THROTTLED_GATE": str(gate),
                                              **(env or {})}))
    lines = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
    return len(lines), sum(answered == "0" for _, answered, *_ in lines)


def wasted(site, *command):
    """Requests that the record made the program make, and that nobody wanted."""
    stats = site.file("stats.json")
    stats.unlink(missing_ok=True)
    requests(site, *command, env={"ESDM_MONITOR": f"stats:{stats}"})
    return sum(a["requests"] - a["used"] for a in json.loads(stats.read_text())["actions"]
               if a["action"] == "earlier runs")


LOOP = ["loop", "far.nc", 0, STEPS, 1]


def test_earlier__the_second_run_asks_before_it_has_seen_the_pattern():
    with slow_site() as site:
        _, at_once = requests(site, *LOOP)
        expect(at_once <= 3, f"first run: {at_once} at once")  # the first step and the next two
        use = record(site)["uses"]
        expect(len(use) == 1 and use[0]["dataset"] == "/tas" and use[0]["trust"] == 1, str(use))
        expect(use[0]["loops"][0]["count"] == STEPS, str(use))
        # None of these would end before its 20 seconds if the others did not arrive meanwhile.
        _, at_once = requests(site, *LOOP, gate=6)
        expect(at_once >= 6, f"second run: {at_once} at once")
        expect(record(site)["uses"][0]["trust"] == 2, str(record(site)))
        _, at_once = requests(site, *LOOP, gate=12)
        expect(at_once >= 12, f"third run: {at_once} at once")
        expect(wasted(site, *LOOP) == 0, "requests that nobody wanted")


def test_earlier__any_order_is_remembered():
    """Steps in no order, which no pattern of the last reads foresees."""
    order = [3, 17, 8, 21, 2, 13, 1, 20, 5, 11, 7, 16]
    with slow_site() as site:
        command = ["steps", "far.nc", *order]
        requests(site, *command)
        _, at_once = requests(site, *command, gate=6)
        expect(at_once >= 6, f"{at_once} at once")


def test_earlier__a_program_that_changes_ends_it():
    with slow_site() as site:
        requests(site, *LOOP)
        requests(site, *LOOP)
        order = [17, 3, 8, 21, 2, 13, 1, 20, 5, 11, 7, 16]
        most = wasted(site, "steps", "far.nc", *order)
        expect(most <= 16, f"{most} requests that nobody wanted")
        expect(record(site)["uses"][0]["trust"] <= 0, str(record(site)))
        # What did not help is not done again: no request more than steps, whatever is read.
        for first in (9, 4, 14):
            order = order[first % 5:] + order[:first % 5]
            _, at_once = requests(site, "steps", "far.nc", *order)
            expect(at_once == 1, f"{at_once} at once")
        # Until the program does the same again and again.
        for _ in range(5):
            requests(site, *LOOP)
        _, at_once = requests(site, *LOOP, gate=6)
        expect(at_once >= 6, f"{at_once} at once")


def asked_for(site):
    """Pack, begin and end of what was requested for the last program."""
    lines = [line.split() for line in site.file("requests.log").read_text().splitlines()]
    return [(pack, int(begin), int(begin) + int(length)) for *_, pack, begin, _, length in lines]


def middle_of(site, step):
    """Pack and place of the middle of a step, where it is read by itself."""
    requests(site, "steps", "far.nc", step, env={"ESDM_EARLIER_RUNS": "off"})
    pack, begin, end = max(asked_for(site), key=lambda range_: range_[2] - range_[1])
    return pack, (begin + end) // 2


@by_clock  # what is not asked for yet when the program ends never is
def test_earlier__a_loop_begins_where_the_record_does_not():
    """The first eight reads of the record are under way when the program begins with something else: a loop.
    Its next steps are asked for at once; where the eight fill the room, as soon as they have arrived."""
    order = [10, 8, 13, 17, 19, 12, 14, 22]
    # A quarter of the memory is room: for all, or for eight steps of 30 KiB.
    for memory, loop, wanted in (("64 MiB", 1, {1, 2}), ("1 MiB", 4, {4, 5, 6})):
        with slow_site({"memory": memory, "fragment": "1 MiB"}, (64, 120), 60) as site:
            places = {step: middle_of(site, step) for step in wanted}
            for _ in range(2):
                requests(site, "steps", "far.nc", *order)
            expect(record(site)["uses"][0]["trust"] == 2, str(record(site)))
            requests(site, "loop", "far.nc", 0, loop, 1)
            asked = asked_for(site)
            steps = {step for step, (pack, at) in places.items()
                     if any(pack == p and begin <= at < end for p, begin, end in asked)}
            enough = steps == wanted if loop > 1 else steps  # which the end of the program comes before
            expect(enough, f"{memory}: only {sorted(steps)} of {sorted(wanted)} were asked for")


def test_earlier__what_follows_the_end_of_the_record_is_read():
    """A longer loop than before, a shorter one, and a container of another length."""
    with slow_site() as site:
        requests(site, "loop", "far.nc", 0, 10, 1)
        expect(wasted(site, *LOOP) == 0, "the loop that went on")
        requests(site, *LOOP)
        requests(site, "loop", "far.nc", 0, 5, 1)
        run([PROGRAM, "write", "far.nc", 5, 60, 90, "none", 1])
        expect(wasted(site, "loop", "far.nc", 0, 5, 1) == 0, "the shorter container")
        run([PROGRAM, "write", "far.nc", STEPS, 60, 90, "none", 1])
        run([PROGRAM, "write", "other.nc", STEPS, 60, 90, "none", 1])
        requests(site, "loop", "other.nc", 0, STEPS, 1)
        run([PROGRAM, "write", "far.nc", 8, 30, 90, "none", 1])
        requests(site, "loop", "far.nc", 0, 8, 1)


def test_earlier__another_container_of_the_series():
    """The same variable with the same dimensions, under another name."""
    with slow_site() as site:
        run([PROGRAM, "write", "next.nc", STEPS, 60, 90, "none", 1])
        requests(site, *LOOP)
        _, at_once = requests(site, "loop", "next.nc", 0, STEPS, 1, gate=6)
        expect(at_once >= 6, f"{at_once} at once")


def test_earlier__off():
    with slow_site() as site:
        for _ in range(2):
            _, at_once = requests(site, *LOOP, env={"ESDM_EARLIER_RUNS": "off"})
            expect(at_once <= 3 and not records(site), f"{at_once} at once, {records(site)}")
    with slow_site({"earlier_runs": "off"}) as site:
        requests(site, *LOOP)
        expect(not records(site), f"{records(site)}")


def test_earlier__a_damaged_record_is_none():
    with slow_site() as site:
        requests(site, *LOOP)
        file = records(site)[0]
        good = json.loads(file.read_text())
        hostile = json.loads(file.read_text())
        hostile["uses"][0]["loops"][0].update(offset=[1 << 62, 0, 0], delta=[-(1 << 62), 1, 1 << 40],
                                              count=1 << 30)
        ranks = json.loads(file.read_text())
        ranks["uses"][0].update(lengths=[STEPS])
        for text in ("", "{", "[]", json.dumps({**good, "uses": [{}, 3, None]}), json.dumps(hostile),
                     json.dumps(ranks), json.dumps({**good, "format": 99}), "x" * (2 << 20)):
            file.write_text(text)
            requests(site, *LOOP)
            expect(record(site)["uses"][0]["loops"][0]["count"] == STEPS, file.read_text()[:500])


def test_earlier__only_its_own_files_are_removed():
    """Records of sites that nobody uses any more go; what a link leads to, and what others made, stay."""
    with slow_site() as site:
        requests(site, *LOOP)
        runs = records(site)[0].parent.parent
        victim, stranger, old = site.file("victim"), runs / "notes", runs / ("ab" * 16)
        for folder in (victim, stranger, old):
            folder.mkdir()
            (folder / "results.json").write_text("{}")
            os.utime(folder / "results.json", (1e9, 1e9))
        (runs / ("cd" * 16)).symlink_to(victim)
        os.utime(runs / ("cd" * 16), (1e9, 1e9), follow_symlinks=False)
        for folder in (stranger, old):
            os.utime(folder, (1e9, 1e9))
        requests(site, "steps", "far.nc", 9, 2, 5)
        expect((victim / "results.json").exists(), "a link was followed")
        expect((stranger / "results.json").exists(), "a folder of somebody else was emptied")
        expect(not old.exists(), "an old record stays")


def test_earlier__runs_that_end_together():
    """Each keeps what it read; the file is always whole."""
    with slow_site() as site:
        names = [f"part{i}.nc" for i in range(6)]
        for name in names:
            run([PROGRAM, "write", name, 4, 60, 90, "none", 1])
        many = [subprocess.Popen([PROGRAM, "loop", name, "0", "4", "1"], env=environment(),
                                 stdout=subprocess.DEVNULL) for name in names]
        expect(all(p.wait(timeout=120) == 0 for p in many), "a program failed")
        seen = {use["container"] for use in record(site)["uses"]}
        expect(seen <= set(names) and seen, f"{seen}")
        expect(not list(records(site)[0].parent.glob("new.*")), "a temporary file was left")


def test_earlier__what_it_gained_is_told():
    with slow_site() as site:
        requests(site, *LOOP)
        stats = site.file("stats.json")
        requests(site, *LOOP, env={"ESDM_MONITOR": f"stats:{stats}"})
        actions = json.loads(stats.read_text())["actions"]
        mine = [a for a in actions if a["action"] == "earlier runs"]
        expect(len(mine) == 1 and mine[0]["dataset"] == "/tas" and mine[0]["used"] > 0 and
               mine[0]["used"] == mine[0]["requests"] and mine[0]["gained_ns"] > 0 and
               mine[0]["stopped"] is None, str(actions))
        done = run([tool("esdm-run"), "-q", "--report", PROGRAM, *LOOP], env=client_environment())
        expect("As earlier runs did, far.nc /tas: " in done.stderr, done.stderr)
        done = run([tool("esdm-run"), "-q", "--report", PROGRAM, "steps", "far.nc", 9, 2, 5],
                   env=client_environment())
        expect("the program read something else" in done.stderr, done.stderr)


main(test_earlier__the_second_run_asks_before_it_has_seen_the_pattern,
     test_earlier__any_order_is_remembered, test_earlier__a_program_that_changes_ends_it,
     test_earlier__a_loop_begins_where_the_record_does_not,
     test_earlier__what_follows_the_end_of_the_record_is_read,
     test_earlier__another_container_of_the_series, test_earlier__off,
     test_earlier__only_its_own_files_are_removed,
     test_earlier__a_damaged_record_is_none, test_earlier__runs_that_end_together,
     test_earlier__what_it_gained_is_told)
