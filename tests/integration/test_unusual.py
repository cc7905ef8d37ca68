#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Requests that become slow in the middle of a run turn the trace on for a while, by what is usual: earlier
runs of the program, or the site's model. A slow run has the next ones traced. Nothing happens otherwise."""

import contextlib
import json
import os
import shutil
import stat

from esdmtest import BUILD, SANITIZE, Site, by_clock, client_environment, environment, expect, expect_error, main_at_once, run, skip, tool

PROGRAM = str(BUILD / "tests/integration/far_program")
STEP = ["200", "250", "none", "1"]  # 200 kB: 14 ms, and later 110 ms
RULE = {"when": "requests", "for": "1s"}
SLOW = {"changes_at": 12e6, "then_bytes_per_s": 2e6}
USER = str(os.geteuid())


def target(**more):
    return [{"name": "disk", "plugin": "throttled", "directory": "disk", "bytes_per_s": 50e6, "latency_ms": 10, **more}]


@contextlib.contextmanager
def slow_site(steps=110, step=STEP, **monitor):
    os.environ["ESDM_PLUGIN_PATH"] = str(BUILD / "plugins")
    quick = target(bytes_per_s=2e9, latency_ms=0.01)
    with Site(targets=quick, monitor=monitor, engine={"threads": 2, "memory": "64 MiB", "earlier_runs": "off"}) as site:
        run([PROGRAM, "write", "far.nc", steps, *step], env=environment({"ESDM_MONITOR": "off"}))
        change(site)
        yield site


def change(site, monitor=None, **more):
    """The target is another one from now on."""
    config = json.loads(site.config.read_text())
    config["targets"] = target(**more)
    config["monitor"] = monitor or config["monitor"]
    site.config.write_text(json.dumps(config))


def loop(steps, env=None):
    run([PROGRAM, "loop", "far.nc", 0, steps, 1], env=environment(env or {}))


def usually(site, steps=12):
    """The record of the quicker one of two runs, six times."""
    loop(steps)
    loop(steps)
    for file in (site.file("runs") / USER).glob("far_program*.jsonl"):
        quicker = min(file.read_text().splitlines(), key=lambda line: json.loads(line)["seconds"])
        file.write_text(6 * (quicker + "\n"))


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def records(site):
    """Of sessions; esdm-run --report keeps one of its own."""
    return [r for f in sorted((site.file("runs") / USER).glob("far_program*.jsonl")) for r in lines(f) if "by" not in r]


def traces(site):
    return sorted((site.file("runs") / USER / "traces").glob("*"))


def unusual(site):
    return records(site)[-1].get("unusual", [])


@by_clock
def test_what_becomes_slow_is_traced():
    """Of the slow time alone, and no longer than the rule says; reports and the site tell it."""
    with slow_site(runs="runs", rules=[RULE]) as site:
        usually(site)
        loop(90)
        expect(not traces(site) and not any("unusual" in r for r in records(site)), "though all was as usual")
        change(site, **SLOW)
        old = site.file("runs") / USER / "traces"
        old.mkdir(mode=0o700)
        for number in range(10):
            (old / f"old-{number}.jsonl").write_text("{}\n")
            os.utime(old / f"old-{number}.jsonl", (number, number))
        done = run([tool("esdm-run"), "-q", "--report", PROGRAM, "loop", "far.nc", 0, 80, 1], env=client_environment())
        report = done.stderr
        told = unusual(site)
        expect(len(told) == 1 and told[0]["of"] == "fetch" and told[0]["target"] == "disk" and told[0]["times"] > 3
               and told[0]["by"] == "earlier runs" and 0.9 < told[0]["lasted_s"] < 30, str(told))
        found = [t for t in traces(site) if not t.name.startswith("old")]
        expect(len(found) == 1 and str(found[0]) == told[0]["trace"] and len(traces(site)) == 10, str(traces(site)))
        expect(stat.S_IMODE(found[0].stat().st_mode) == 0o600, "others can read it")
        trace = lines(found[0])
        begin, end = [u["now_ns"] for u in trace if u["what"] == "unusual"]
        spans = [s for s in trace if s["what"] == "span" and "before" not in s]
        reads = [s for s in spans if s.get("kind") == "fetch" and s["bytes"] > 100000]
        # A loaded machine may give the alarm a little early.
        expect(sum(s["ns"] > 90e6 for s in reads) >= 4, f"not the slow ones: {[s['ns'] for s in reads]}")
        before = [s for s in trace if s["what"] == "span" and s.get("before") and s["bytes"] > 100000]
        last = [s["ns"] for s in before[-4:]]
        expect(len(before) > 20 and max(last) > 40e6 and sum(s["ns"] < 90e6 for s in before) > len(before) / 2
               and all(s["kind"] == "fetch" and s["start_ns"] + s["ns"] <= begin for s in before)
               and told[0]["before"] >= len(before), f"not the ones that gave the alarm: {last} {len(before)} {told}")
        expect(all(begin - 5e9 < s["start_ns"] < end for s in spans)
               and told[0]["spans"] <= len(spans) <= told[0]["spans"] + 2, f"{len(spans)} {told}")
        all_reads = next(s["count"] for s in records(site)[-1]["spans"] if s["kind"] == "fetch")
        expect(len(spans) < all_reads / 2, f"{len(spans)} of {all_reads} is no part")
        expect("What was unusual" in report and told[0]["because"] in report and str(found[0]) in report, report)
        text = run([tool("esdm-explain"), found[0]]).stdout
        expect(f"the {told[0]['before']} requests before" in report, report)
        expect("a part of the run" in text and told[0]["because"] in text and "the whole run:" not in text, text)
        text = run([tool("esdm-explain"), "--site"]).stdout
        expect("Unusual in the last 7 days" in text and told[0]["because"] in text, text)
        shown = json.loads(run([tool("esdm-explain"), "--site", "--json"]).stdout)["unusual"]
        expect(shown[0]["unusual"] == told and shown[0]["program"] == "far_program", str(shown))


@by_clock
def test_the_model_says_what_is_usual():
    """Without earlier runs, what a calibration measured; into the file that the site names, and until it is large
    enough. A rule for another target does nothing."""
    other = [{"name": "other", "plugin": "posix", "directory": "other"}]
    monitor = {"modules": ["stats"], "stats_file": "s.json", "trace_file": "t.jsonl",
               "rules": [{"when": "requests", "then": ["trace", "node"], "targets": ["disk"], "bytes": "64 KiB", "slower": 2.5}]}
    with slow_site(**monitor) as site:
        run([tool("esdm-mkfs"), "--calibrate=quick", "--seconds=0.5"])
        site.file("s.json").unlink(missing_ok=True)
        loop(40)
        expect(not site.file("t.jsonl").exists(), "though all was as usual")
        change(site, changes_at=12e6, then_bytes_per_s=4e6)
        loop(80)
        trace = lines(site.file("t.jsonl"))
        expect(sum(s["what"] == "span" and "before" in s for s in trace) > 20, "nothing of before")
        told = [a for line in lines(site.file("s.json")) for a in line["actions"] if a["action"] == "detailed monitoring"]
        expect(len(told) == 1 and told[0]["by"] == "model" and told[0]["ended"] == "the program ended", str(told))
        expect(any(s["what"] == "node" for s in trace) and any(s.get("kind") == "fetch" for s in trace), "no samples")
        site.file("t.jsonl").unlink()
        config = json.loads(site.config.read_text())
        config["targets"] += other
        config["monitor"]["rules"][0]["targets"] = ["other"]
        site.config.write_text(json.dumps(config))
        loop(70)
        expect(not site.file("t.jsonl").exists(), "a rule for another target")


@by_clock
def test_a_trace_ends_when_it_is_large():
    """Many requests: the bytes of the rule count, not its minute."""
    small = ["20", "250", "none", "1"]
    with slow_site(steps=600, step=small, runs="runs", rules=[{"when": "requests", "bytes": "64 KiB"}]) as site:
        change(site, bytes_per_s=2e9, latency_ms=0.2)
        usually(site, steps=400)
        change(site, bytes_per_s=2e9, latency_ms=0.2, changes_at=8e6, then_bytes_per_s=1.5e6)
        loop(600)
        told = unusual(site)
        expect(len(told) == 1 and told[0]["ended"] == "the trace was large enough", str(told))
        size = sum(len(line) + 1 for line in traces(site)[0].read_text().splitlines() if '"before":true' not in line)
        expect(64 << 10 <= size < 300 << 10, str(size))
        before = [s for s in lines(traces(site)[0]) if s["what"] == "span" and s.get("before")]
        starts = [s["start_ns"] for s in before]
        expect(900 < len(before) <= 1024 == told[0]["before"] and starts == sorted(starts), f"{len(before)} {told}")


@by_clock
def test_the_runs_after_a_slow_one_are_traced():
    """From the beginning, and not again and again."""
    with slow_site(steps=90, runs="runs", rules=[{"when": "run", "for": "1h", "times": 1}]) as site:
        usually(site)
        change(site, latency_ms=60)
        loop(12)
        expect(not traces(site), "nothing was slow before")
        change(site)
        loop(80)
        told = unusual(site)
        expect(len(told) == 1 and told[0]["last_run"] and "the last run of this program was" in told[0]["because"]
               and told[0]["ended"] == "the program ended", str(told))
        first = len(lines(traces(site)[0]))
        expect(first > 60, f"{first} lines")
        change(site, latency_ms=60)
        loop(12)
        change(site)
        loop(80)
        expect(not unusual(site) and len(traces(site)) == 1, "one of ten is what the rule says")


@by_clock
def test_by_default_where_runs_are_kept():
    """Unless there are no rules; ESDM_MONITOR=off ends that, too."""
    with slow_site(runs="runs") as site:
        usually(site)
        change(site, **SLOW)
        loop(75, env={"ESDM_MONITOR": "off"})
        expect(not traces(site), "though it is off")
        change(site, monitor={"runs": "runs", "rules": []}, **SLOW)
        loop(75)
        expect(not traces(site) and not unusual(site), "without rules")
        change(site, monitor={"runs": "runs"}, **SLOW)
        loop(75)
        expect(len(traces(site)) == 1 and len(unusual(site)) == 1, str(unusual(site)))


@by_clock
def test_a_folder_that_is_gone():
    """Nobody fails; the statistics say that there is no trace."""
    with slow_site(runs="runs", rules=[RULE], modules=["stats"], stats_file="s.json") as site:
        usually(site)
        change(site, **SLOW)
        (site.file("runs") / USER / "traces").write_text("no folder")
        loop(75)
        told = [a for a in lines(site.file("s.json"))[-1]["actions"] if a["action"] == "detailed monitoring"]
        expect(len(told) == 1 and told[0]["trace"] is None and "monitor.runs" in told[0]["ended"], str(told))
        expect(not list(site.folder.glob("*trace*")), "a trace that nobody wanted")


HANGS = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
int openat(int folder, const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    unsigned mode = va_arg(more, unsigned);
    va_end(more);
    if (strcmp(path, "USER") == 0) {
        fputs("stuck\\n", stderr);
        for (;;)
            pause();
    }
    return (int) syscall(SYS_openat, folder, path, flags, mode);
}
int openat64(int folder, const char *path, int flags, ...) __attribute__((alias("openat")));
"""


def test_a_folder_that_hangs():
    """A server that is away while earlier runs are read: the program goes on, and ends with its data."""
    if shutil.which("cc") is None or SANITIZE:
        skip("needs a C compiler, without a sanitizer")
    with slow_site(runs="runs", rules=[RULE]) as site:
        usually(site)
        site.file("hangs.c").write_text(HANGS.replace("USER", USER))
        run(["cc", "-shared", "-fPIC", "-o", site.file("hangs.so"), site.file("hangs.c")])
        done = run([PROGRAM, "loop", "far.nc", 0, 70, 1], env=environment({"LD_PRELOAD": str(site.file("hangs.so"))}))
        expect("stuck" in done.stderr, done.stderr)


def test_wrong_rules_are_refused():
    for rule, *words in (({"when": "requests", "then": ["trail"]}, "monitor.rules[0].then[0]", "trace"),
                         ({"when": "requests", "then": []}, "monitor.rules[0].then", "at least one"),
                         ({"when": "never"}, "monitor.rules[0].when", "requests"),
                         ({"slower": 3}, "monitor.rules[0]", "when"),
                         ({"when": "requests", "slower": 1}, "monitor.rules[0].slower", "1.5"),
                         ({"when": "requests", "slower": "3x"}, "monitor.rules[0].slower", "number"),
                         ({"when": "requests", "for": "2d"}, "monitor.rules[0].for", "1 d"),
                         ({"when": "requests", "for": 0}, "monitor.rules[0].for", "1 s"),
                         ({"when": "requests", "bytes": 5}, "monitor.rules[0].bytes"),
                         ({"when": "requests", "times": 0}, "monitor.rules[0].times"),
                         ({"when": "requests", "targets": ["nowhere"]}, "monitor.rules[0].targets[0]", "no target 'nowhere'"),
                         ({"when": "requests", "targets": []}, "monitor.rules[0].targets", "at least one"),
                         ({"when": "run"}, "monitor.rules[0].when", "runs"),
                         ({"when": "files"}, "monitor.rules[0].when", "runs"),
                         ({"when": "requests", "until": 5}, "monitor.rules[0]", "until")):
        with Site(make=False, monitor={"rules": [rule]}):
            expect_error(run([tool("esdm-mkfs")], check=False), *words)
    for rules, *words in (([{"when": "run", "targets": ["disk"]}], "monitor.rules[0].targets", 'not with "run"'),
                          ([{"when": "files", "targets": ["disk"]}], "monitor.rules[0].targets", 'not with "files"'),
                          ([{"when": "files", "then": ["trace", "node"]}], "monitor.rules[0].then[1]", "trace alone"),
                          ([{"when": "files"}, {"when": "run"}, {"when": "files"}], "monitor.rules[2].when", "one rule")):
        with Site(make=False, monitor={"runs": "runs", "rules": rules}):
            expect_error(run([tool("esdm-mkfs")], check=False), *words)


main_at_once(test_what_becomes_slow_is_traced, test_the_model_says_what_is_usual, test_a_trace_ends_when_it_is_large,
             test_the_runs_after_a_slow_one_are_traced, test_by_default_where_runs_are_kept, test_a_folder_that_is_gone,
             test_a_folder_that_hangs, test_wrong_rules_are_refused)
