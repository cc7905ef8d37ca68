#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-replay: does what a recorded program did, call by call, and writes to scratch names alone."""

import json
import os
import random
import signal
import subprocess
import time

from esdmtest import BUILD, Site, by_clock, by_size, environment, expect, expect_error, main, run, tool

os.environ["ESDM_PLUGIN_PATH"] = str(BUILD / "plugins")

def replay(*options, **kw):
    done = run([tool("esdm-replay"), "--json", *options], **kw)
    return json.loads(done.stdout)


def by_operation(report):
    return {o["operation"]: o for o in report["operations"]}


def names():
    return run([tool("esdm-ls")]).stdout.split()


def record_kernel(s, name="trace.jsonl", kernel="gcrm", size="--size=4M"):
    lines = s.file(name)
    run([tool("esdm-tune"), f"--run-kernel={kernel}", size],
        env=environment({"ESDM_MONITOR": f"trace:{lines}"}))
    return lines


def test_definitions_and_values():
    """What is kept has the dimensions, chunks and types of the record, and values as asked for."""
    with Site() as s:
        lines = s.file("made.jsonl")
        run([tool("esdm-pattern"), "-s", "6x8x16", "-v", "tas", "esdm:real.nc"],
            env=environment({"ESDM_MONITOR": f"trace:{lines}"}))
        kept = replay("--keep", "--data", "esdm://real.nc", lines)["kept"]
        before = run([tool("esdm-stat"), "--json", "real.nc"]).stdout
        after = run([tool("esdm-stat"), "--json", f"{kept}/0"]).stdout

        def structure(text):
            root = json.loads(text)["containers"][0]["root"]
            tas = [d for d in root["datasets"] if d["name"] == "tas"][0]
            return {k: tas.get(k) for k in ("type", "shape", "chunk", "dimensions")}
        expect(structure(before) == structure(after), f"{before}\nis not\n{after}")
        sums = [run([tool("esdm-reduce"), "sum", name, "tas"]).stdout.split()[-1]
                for name in ("real.nc", f"{kept}/0")]
        expect(sums[0] == sums[1], f"--data: the values are those of the container: {sums}")
        expect_error(run([tool("esdm-replay"), "--data", "absent.nc", lines], check=False),
                     "absent.nc")


def test_one_target():
    targets = [{"name": name, "plugin": "posix", "directory": name} for name in ("disk", "other")]
    with Site(targets=targets) as s:
        lines = record_kernel(s)
        for target in ("disk", "other"):
            kept = replay("--target", target, "--keep", lines)["kept"]
            text = run([tool("esdm-stat"), "--json", f"{kept}/0"]).stdout
            found = {t["target"] for d in json.loads(text)["containers"][0]["root"]["datasets"]
                     for t in d["targets"]}
            expect(found == {target}, f"all is on {target}: {found}")
        expect_error(run([tool("esdm-replay"), "--target", "tape", lines], check=False),
                     "no target 'tape'", "disk, other")
        expect(not list(s.folder.glob(".esdm-replay*")), "no configuration is left")


def line(what, **members):
    return json.dumps({"what": what, **members}) + "\n"


def span(kind, number, start_ms, ms=1, pid=1, thread=1, **members):
    return line("span", kind=kind, pid=pid, thread=thread, id=number, cause=members.pop("cause", 0),
                start_ns=int(start_ms * 1e6), ns=int(ms * 1e6), stored_bytes=0, pieces=1, status=0,
                target=None, **{"dataset": None, "bytes": 0, "container": "a.nc", **members})


def head(pid=1):
    return line("process", version=1, program="p", host="h", pid=pid, rank=-1,
                realtime_ns=10 ** 18, monotonic_ns=0)


def described(handle, pid=1, container="a.nc", length=8):
    return line("dataset", pid=pid, handle=handle, container=container, dataset="/tas",
                id=1, type="float32", dimensions=[{"id": 0, "name": "time", "length": length,
                                             "unlimited": True},
                                            {"id": 1, "name": "x", "length": 100,
                                             "unlimited": False}],
                chunk=None, codec=None, accuracy=None)


def moved(kind, number, start_ms, handle, step, **members):
    return span(kind, number, start_ms, **{"dataset": "/tas", "bytes": 400, "handle": handle,
                                           "memory": "float32", "offset": [step, 0],
                                           "size": [1, 100], **members})


def test_pauses_threads_and_processes():
    with Site() as s:
        trace = s.file("t.jsonl")
        opened = span("open", 1, 0, handle=1, mode="create", ranks=0)
        ends = span("commit", 90, 900, handle=1) + span("close", 91, 902, handle=1)
        trace.write_text(head() + opened + described(1) + moved("write", 2, 10, 1, 0) +
                         moved("write", 3, 500, 1, 1) + ends)
        expect(replay("--think-time", trace)["seconds"] > 0.85, "pauses are kept when asked for")
        report = replay(trace)
        expect(abs(report["recorded_seconds"] - 0.903) < 1e-6, f"{report['recorded_seconds']}")

        # Two threads at once; what a read makes others read is no call of the program.
        trace.write_text(head() + opened + described(1) + "".join(
            moved("write", 10 + i, 10 + 10 * (i // 2), 1, i, thread=1 + i % 2, ms=9)
            for i in range(40)) + moved("read", 80, 400, 1, 0) +
            moved("read", 81, 401, 1, 1, cause=80) + ends)
        did = by_operation(replay(trace))
        expect(did["write"]["calls"] == 40 and did["read"]["calls"] == 1, f"{did}")

        # A process that reads what another one has committed waits for it; its beginning is later.
        reader = (head(2) + span("open", 1, 905, pid=2, handle=1, mode="read", ranks=0) +
                  described(1, pid=2) +
                  "".join(moved("read", 2 + i, 910 + i, 1, i, pid=2) for i in range(2)) +
                  span("close", 9, 950, pid=2, handle=1))
        trace.write_text(head() + opened + described(1) + moved("write", 2, 10, 1, 0) +
                         moved("write", 3, 500, 1, 1) + ends + reader)
        report = replay(trace)
        expect(report["processes"] == 2 and by_operation(report)["read"]["calls"] == 2,
               f"the reader finds what the writer made: {report}")
        expect(names() == [], "nothing is left")


@by_clock
def test_threads_work_at_once():
    """Each commit waits for a far target; those of two threads do so at the same time."""
    with Site(make=False) as s:
        s.config.write_text(json.dumps({
            "targets": [{"name": "far", "plugin": "throttled", "directory": "far",
                         "bytes_per_s": 2e9, "latency_ms": 30, "service_ms": 0.01}],
            "metadata": {"plugin": "sqlite", "directory": "metadata"},
            "engine": {"inline": 0, "threads": 2}}))
        run([tool("esdm-mkfs")])
        names_ = ("a.nc", "b.nc")
        trace = s.file("t.jsonl")
        trace.write_text(head() + "".join(
            span("open", 1 + i, i, handle=1 + i, mode="create", ranks=0, container=c, thread=1 + i) +
            described(1 + i, container=c) for i, c in enumerate(names_)) + "".join(
                moved("write", 100 * (n + 1) + i, 100 * (n + 1), 1 + i, n, container=c,
                      thread=1 + i) +
                span("commit", 100 * (n + 1) + 10 + i, 100 * (n + 1) + 10 + i, ms=80, handle=1 + i,
                     container=c, thread=1 + i)
                for n in range(8) for i, c in enumerate(names_)))
        report = replay(trace)
        expect(by_operation(report)["commit"]["seconds"] > 16 * 0.03, f"it is far: {report}")
        expect(report["seconds"] < 0.8 * report["call_seconds"],
               f"both wait at once: {report['seconds']} of {report['call_seconds']}")


def test_damaged_records():
    """Each is told, or what is left of it is replayed; nothing else is written to."""
    with Site() as s:
        run([tool("esdm-pattern"), "-s", "2x4x8", "-v", "tas", "esdm:mine.nc"])
        trace = record_kernel(s, size="--size=64K")
        good = trace.read_bytes()
        chance = random.Random(7)
        bad = s.file("bad.jsonl")
        numbers = [b"-1", b"9223372036854775807", b"99999999999999999999", b"1e99", b"null",
                   b"\"../../mine.nc\"", b"[]", b"4611686018427387904"]
        for i in range(by_size(40, 200, 2000)):
            text = bytearray(good)
            if i % 4 == 0:
                text = text[:chance.randrange(len(text))]
            elif i % 4 == 1:
                for _ in range(1 + i % 7):
                    text[chance.randrange(len(text))] = chance.randrange(256)
            else:  # another number, of those that matter
                at = [j for j, c in enumerate(text) if c in b":[,"]
                where = chance.choice(at) + 1
                end = where
                while end < len(text) and text[end:end + 1] not in b",]}\n":
                    end += 1
                text[where:end] = chance.choice(numbers)
            bad.write_bytes(text)
            done = run([tool("esdm-replay"), "--limit", "1G", bad], check=False)
            expect(done.returncode in (0, 1, 3, 4), f"case {i}: {done.returncode} {done.stderr}")
            expect(done.returncode == 0 or done.stderr.startswith("esdm-replay: "), done.stderr)
        expect(names() == ["mine.nc"], f"nothing is left, nothing else was made: {names()}")

        hostile = (head() + span("open", 1, 0, handle=1, mode="create", ranks=0,
                                 container="../../mine.nc") +
                   described(1, container="../../mine.nc") +
                   moved("write", 2, 1, 1, 0, container="../../mine.nc") +
                   span("commit", 3, 5, handle=1, container="../../mine.nc"))
        bad.write_text(hostile)
        run([tool("esdm-replay"), bad])
        expect(names() == ["mine.nc"], "names in records are no names of containers")
        for text, words, status in (
                ("", ["no call that could be replayed"], 3),
                ("\x00\x01rubbish\n" * 5, ["no call that could be replayed"], 3),
                ('{"a": 1}\n', ["line 1", "no line of a trace"], 1),
                (head() + span("open", 1, 0, handle=1, mode="create", ranks=0) + described(1) +
                 moved("write", 2, 1, 1, 0, bytes=7), ["line 4", "7 bytes"], 1),
                (head() + span("open", 1, 0, handle=1, mode="create", ranks=0) +
                 moved("write", 2, 1, 1, 0), ["line 3", "'/tas' was not described"], 1),
                (head() + span("open", 1, 0, handle=1, mode="create", ranks=0) + described(1) +
                 moved("write", 2, 1, 1, 0, offset=[0, 50]), ["a.nc", "/tas"], 1),
                (head() + span("open", 1, 0, handle=1, mode="create", ranks=0) + described(1) +
                 moved("write", 2, 1, 1, 0, size=[10 ** 9, 100], bytes=4 * 10 ** 11),
                 ["372.5 GiB", "--limit"], 4)):
            bad.write_text(text)
            done = run([tool("esdm-replay"), bad], check=False)
            expect_error(done, *words)
            expect(done.returncode == status, f"{words}: {done.returncode}")
        def of_two(rank, commits):
            """What one of two ranks did that share a container."""
            pid = rank + 1
            return (head(pid) + span("open", 1, rank, pid=pid, handle=1, mode="create", ranks=2,
                                     rank=rank) + described(1, pid=pid) +
                    "".join(span("commit", 2 + i, 10 + i, pid=pid, handle=1)
                            for i in range(commits)) + span("close", 99, 99, pid=pid, handle=1))
        for text, words in ((of_two(0, 1), ["shared by 2 ranks"]),
                            (of_two(0, 1) + of_two(0, 1), ["two of which"]),
                            (of_two(0, 1) + of_two(1, 3), ["do not fit together"])):
            bad.write_text(text)
            expect_error(run([tool("esdm-replay"), bad], check=False), *words)
        bad.write_text(of_two(0, 2) + of_two(1, 2))
        expect(by_operation(replay(bad))["commit"]["calls"] == 4, "those of both do")
        expect_error(run([tool("esdm-replay"), s.file("absent")], check=False), "absent", "No such")
        expect_error(run([tool("esdm-replay")], check=False), "which records?")
        expect_error(run([tool("esdm-replay"), "--limit=many", bad], check=False), "--limit")
        expect(names() == ["mine.nc"], f"nothing is left: {names()}")


def test_damaged_records_of_plain_files():
    with Site() as s:
        records = s.file("records")
        run([tool("esdm-run"), "--records", records, tool("esdm-pattern"), "-s", "4x8x16", "-u",
             "-v", "tas", s.file("plain.nc")])
        did = by_operation(replay(records))
        expect(did["create"]["calls"] == 1 and did["write"]["bytes"] >= 4 * 4 * 8 * 16, f"{did}")
        whole = next(records.glob("*.watch"))
        good = whole.read_bytes()
        chance = random.Random(3)
        bad = s.file("bad")
        bad.mkdir()
        for i in range(by_size(40, 200, 2000)):
            text = bytearray(good)
            if i % 3 == 0:
                text = text[:chance.randrange(len(text))]
            for _ in range(1 + i % 50):
                # Where something is: in the beginning of each window.
                at = chance.randrange(len(good) // 65536) * 65536 + chance.randrange(3000)
                if at + 8 < len(text):
                    text[at:at + chance.choice((1, 4, 8))] = chance.choice(
                        (b"\xff" * 8, b"\0" * 8, os.urandom(8)))[:chance.choice((1, 4, 8))]
            (bad / whole.name).write_bytes(text)
            done = run([tool("esdm-replay"), "--limit", "1G", bad], check=False)
            expect(done.returncode in (0, 1, 3, 4), f"case {i}: {done.returncode} {done.stderr}")
        expect(names() == [], f"nothing is left: {names()}")


def test_it_can_be_interrupted():
    with Site() as s:
        trace = s.file("long.jsonl")
        trace.write_text(head() + span("open", 1, 0, handle=1, mode="create", ranks=0) +
                         described(1) + moved("write", 2, 1, 1, 0) +
                         span("commit", 3, 5, handle=1) + moved("write", 4, 3600e3, 1, 1))
        process = subprocess.Popen([tool("esdm-replay"), "--think-time", trace],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not names():  # what it has committed
            expect(process.poll() is None, "it runs")
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        expect("interrupted" in said and process.returncode == 1, f"{process.returncode} {said}")
        expect(names() == [], "and leaves nothing")


main(test_definitions_and_values, test_one_target, test_pauses_threads_and_processes, test_threads_work_at_once,
     test_damaged_records,
     test_damaged_records_of_plain_files, test_it_can_be_interrupted)
