#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-tune: what it tries is really run with other settings, and only what is faster is kept."""

import contextlib
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

import kernels
from esdmtest import BUILD, Site, by_clock, by_size, environment, expect, expect_error, main, run, skip, tool

os.environ["ESDM_PLUGIN_PATH"] = str(BUILD / "plugins")
# So many requests one after the other take far longer than what a busy machine adds.
LATENCY_MS = 20
SUPPORT = pathlib.Path(__file__).resolve().parent.parent / "support"
SIZE = by_size("--size=1M", "--size=2M", "--size=16M")


@contextlib.contextmanager
def far_site(**engine):
    """Each request waits, any number of them at once."""
    with Site(make=False) as s:
        s.config.write_text(json.dumps({
            "targets": [{"name": "far", "plugin": "throttled", "directory": "far",
                         "bytes_per_s": 2e9, "latency_ms": LATENCY_MS, "service_ms": 0.01}],
            "metadata": {"plugin": "sqlite", "directory": "metadata"},
            "engine": engine}))
        run([tool("esdm-mkfs")])
        yield s


def tune(*options, **kw):
    done = run([tool("esdm-tune"), "--json", *options], **kw)
    return json.loads(done.stdout)


def leaves_nothing(s):
    expect(not list(s.config.parent.glob(".esdm-tune*")), "no configuration of a trial is left")
    expect(run([tool("esdm-ls")]).stdout == "", "no container of a kernel is left")


@by_clock
def test_threads_for_a_far_target():
    with far_site(threads=1, fragment="32K") as s:
        before = s.config.read_text()
        found = tune("--kernel=vorpal", SIZE, "--try=threads=8", "--pairs=2")
        expect(found["better"] and found["best"] == {"threads": 8}, f"more threads: {found}")
        expect(found["ratio"] < 0.9, f"they hide latency: {found['ratio']}")
        expect(len(found["trials"]) == 2 and found["settings"] == 2, "each value ran once")
        expect(s.config.read_text() == before, "without --apply nothing is changed")
        leaves_nothing(s)

        found = tune("--kernel=vorpal", SIZE, "--try=threads=8", "--pairs=2", "--apply")
        changed = json.loads(s.config.read_text())
        former = s.config.with_name(s.config.name + ".before-esdm-tune")
        expect(changed["engine"] == {"threads": 8, "fragment": "32K"}, f"applied: {changed}")
        expect(json.loads(former.read_text()) == json.loads(before), "the former one is kept")

        # What is slower does not come back, what was applied and is slower does not stay.
        back = tune("--kernel=vorpal", SIZE, f"--compare={former}", "--pairs=2", "--apply")
        expect(not back["better"] and back["ratio"] > 1, f"one thread is slower: {back}")
        expect(json.loads(s.config.read_text()) == changed, "so the site stays as it is")
        fast = s.config.with_name("fast.json")
        fast.write_text(s.config.read_text())
        s.config.write_text(before)
        back = tune("--kernel=vorpal", SIZE, f"--compare={fast}", "--pairs=2", "--apply")
        expect(back["better"], f"eight threads are faster: {back}")
        expect(json.loads(s.config.read_text()) == changed, "they are back")


@by_clock
def test_many_times_as_fast_as_one_small_request_at_a_time():
    """What tests/bench/tuned.py measures: a site made for one disk, storage far away. A few runs find both that pieces are too small and that
    they wait for each other."""
    with far_site(threads=1, fragment="64K") as s:
        run([tool("esdm-mkfs"), "--calibrate=quick", "--seconds=0.4"])
        found = tune("--kernel=vorpal", "--size=4M", "--trials=5", "--try=threads=1,2,4,8,16", "--try=fragment=64K,256K,1M,4M", "--pairs=2")
        print(f"    {1 / found['ratio']:.1f} times as fast, after {len(found['trials'])} of {found['settings']} settings: {found['best']}", flush=True)
        expect(found["better"] and found["ratio"] < 0.25, f"it is many times as fast: {found}")
        expect(len(found["trials"]) <= 5 < found["settings"] == 20, f"few runs: {found}")
        leaves_nothing(s)


@by_clock
def test_the_model_chooses_what_to_try():
    """Latency alone matters: the search finds threads without running all settings."""
    with far_site(threads=1, fragment="32K") as s:
        run([tool("esdm-mkfs"), "--calibrate=quick", "--seconds=0.4"])
        found = tune("--kernel=vorpal", SIZE, "--trials=4", "--try=threads=1,2,8",
                     "--try=fragment=32K,48K", "--pairs=2")
        expect(found["from_model"], "the measured model is where it begins")
        expect(len(found["trials"]) <= 4 < found["settings"], f"few runs: {found}")
        first = found["trials"][1]["setting"]
        expect(first["threads"] == 8, f"the model tries more threads at once: {first}")
        expect(found["best"]["threads"] > 1 and found["better"], f"and is right: {found}")
        written = s.config.with_name("better.json")
        run([tool("esdm-tune"), "--quiet", "--kernel=vorpal", SIZE, "--trials=2", "--try=threads=8",
             "--write", written])
        expect(json.loads(written.read_text())["engine"]["threads"] == 8, "--write writes it")


def test_a_genetic_search():
    """Both searches do the same work; what one has run the other does not run again."""
    with far_site(threads=1, fragment="32K") as s:
        options = ["--kernel=vorpal", SIZE, "--try=threads=2,8", "--pairs=2", "--search=genetic",
                   "--genetic-trials=3", "--trials=2"]
        found = tune(*options, "--seed=7")
        genetic = found["genetic"]
        expect(genetic["trials"] == found["settings"] == 3, f"it found all that there are: {found}")
        expect(genetic["seed"] == 7 and genetic["model_trials"] == len(found["trials"]) <= 2, str(found))
        told = run([tool("esdm-tune"), "--quiet", *options[:3], "--pairs=0", *options[4:], "--genetic-trials=2"]).stdout
        expect("genetic search (seed 1) ran 2 of 3 settings" in told and "model-driven search took" in told, told)
        leaves_nothing(s)


@by_clock
def test_programs():
    with far_site(threads=1, fragment="32K") as s:
        run([tool("esdm-pattern"), "-s", "8x128x128", "-v", "tas", "esdm:in.nc"])
        found = tune("--try=threads=8", "--", tool("esdm-cp"), "--force", "esdm://in.nc",
                     "esdm://out.nc")
        expect(found["better"] and found["best"] == {"threads": 8}, f"a program: {found}")
        names = run([tool("esdm-ls")]).stdout.split()
        expect(names == ["in.nc", "out.nc"], f"it did what it does: {names}")

        bad = run([tool("esdm-tune"), "--", tool("esdm-cp"), "esdm://absent", "esdm://x"],
                  check=False)
        expect_error(bad, "ended with status", "absent")
        expect(bad.returncode == 1, "a program that fails is an error")
        bad = run([tool("esdm-tune"), "--", "no-such-program"], check=False)
        expect(bad.returncode == 1, "so is one that is not there")
        expect(not list(s.config.parent.glob(".esdm-tune*")), "no configuration is left")


@by_clock
def test_a_recorded_program():
    """The load is a record of a program: threads hide the latency of the site that it runs on."""
    with far_site(threads=1, fragment="32K") as s:
        lines = s.file("trace.jsonl")
        with Site() as other:  # it ran elsewhere
            run([tool("esdm-tune"), "--run-kernel=vorpal", SIZE],
                env=environment({"ESDM_MONITOR": f"trace:{lines}"}))
            expect(other.config != s.config, "another site")
        found = tune("--replay", lines, "--try=threads=8", "--pairs=2", "--apply")
        expect(found["better"] and found["best"] == {"threads": 8}, f"more threads: {found}")
        expect(found["ratio"] < 0.9, f"they hide latency: {found['ratio']}")
        expect(json.loads(s.config.read_text())["engine"]["threads"] == 8, "it is kept")
        leaves_nothing(s)
        expect_error(run([tool("esdm-tune"), "--replay", s.file("absent")], check=False),
                     "esdm-replay", "absent", "No such file")


def test_it_can_be_interrupted():
    with far_site(threads=1, fragment="32K") as s:
        before = s.config.read_text()
        process = subprocess.Popen([tool("esdm-tune"), "--kernel=vorpal", "--size=64M", "--apply"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not list(s.config.parent.glob(".esdm-tune*")):
            expect(process.poll() is None, "it runs")
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        expect(s.config.read_text() == before, "the configuration is as it was")
        expect(not list(s.config.parent.glob(".esdm-tune*")), "that of the trial is gone")


def test_wrong_use():
    with far_site() as s:
        for options, words in (
                (["--kernel=vipc"], ["no kernel", "vpic, vorpal, gcrm"]),
                ([], ["--kernel, a program"]),
                (["--kernel=vorpal", "--", "ls"], ["--kernel, a program"]),
                (["--kernel=vorpal", "--replay=x"], ["--kernel, a program"]),
                (["--kernel=vpic", "--try=threds"], ["no parameter 'threds'", "threads"]),
                (["--kernel=vorpal", "--try=fragment=huge"], ["'huge'", "fragment"]),
                (["--kernel=vorpal", "--try=codec", "--try=codec"], ["twice"]),
                (["--kernel=vorpal", "--size=1"], ["--size"]),
                (["--kernel=vorpal", "--phase=all"], ["--phase"]),
                (["--kernel=vorpal", "--search=random"], ["--search", "model or genetic"]),
                (["--kernel=vorpal", "--search=genetic", "--genetic-trials=0"], ["--genetic-trials"]),
                (["--kernel=vorpal", "--compare=absent.json"], ["absent.json"])):
            bad = run([tool("esdm-tune"), *options], check=False)
            expect_error(bad, *words)
            expect(bad.returncode in (1, 2), f"{options}: {bad.returncode}")
        leaves_nothing(s)


def table(name, rows):
    path = pathlib.Path(name)
    path.write_text("bytes,hole,speed\n" + "".join(f"{b},{h},{v}\n" for b, h, v in rows))
    return path


def test_rules_are_those_of_the_emulator():
    """A device that needs 0.1 ms a request, 5 ms behind holes of 128 KiB, and 200 MB/s."""
    chance = random.Random(4)
    rows = []
    for _ in range(3000):
        size = int(2 ** chance.uniform(9, 22))
        hole = int(chance.choice([0, 2 ** chance.uniform(9, 24)]))
        seconds = (1e-4 if hole < 2 ** 17 else 5e-3) + size / 200e6
        rows.append((size, hole, size / seconds / 1e6 * chance.uniform(0.95, 1.05)))
    with Site(make=False) as s:
        known = tune("--learn", str(table(s.file("emulated.csv"), rows)))
        errors = known["mean_errors"]
        # Published for disks: the mean 28.5 MB/s, linear 12.7 at best, trees 5.7.
        expect(errors["tree"] * 5 < errors["the mean"] and errors["tree"] * 2 < errors["linear"] < errors["the mean"],
               f"the tree knows: {errors}")
        expect(known["best"] in ("tree", "many trees", "boosted trees") and known["records"] == 3000, f"{known['best']}")
        splits = {float(n) for rule in known["rules"]
                  for n in re.findall(r"hole (?:<|>=) ([0-9.]+) KiB", rule["rule"])}
        expect(any(abs(n - 128) < 13 for n in splits), f"holes of 128 KiB matter: {splits}")
        # 0.1 ms are 20 kB: a power of two below.
        expect({p["hole"] for p in known["sieve"]} == {2.0 ** 14}, f"{known['sieve']}")
        text = run([tool("esdm-tune"), "--learn", s.file("emulated.csv")]).stdout
        expect("one read that spans both is faster" in text, "and says so")

        noise = table(s.file("noise.csv"), [(chance.randrange(1, 99), 0, chance.random())
                                            for _ in range(400)])
        errors = tune("--learn", str(noise))["mean_errors"]
        expect(errors["tree"] > 0.9 * errors["the mean"], f"noise tells nothing: {errors}")
        text = run([tool("esdm-tune"), "--learn", noise]).stdout
        expect("Nothing that is known before a call tells" in text, text)
        same = table(s.file("same.csv"), [(b, b % 7, 0.1) for b in range(1, 200)])
        text = run([tool("esdm-tune"), "--learn", same]).stdout
        expect("all of them have 0.1 speed" in text and "nothing to learn" in text and "nan" not in text and "inf" not in text, text)
        expect(tune("--learn", str(same))["rules"] == [], "rounding makes no rules")
        line = table(s.file("line.csv"), [(b, b % 7, 3.0 * b + 2 * (b % 7)) for b in range(1, 200)])
        errors = tune("--learn", str(line))["mean_errors"]
        expect(errors["linear"] < 1e-3 * errors["the mean"], f"a line is found: {errors}")
        for content, words in (("a\n1\n", ["line 1"]), ("a,b\n1,x\n", ["line 2", "numbers"]),
                               ("a,b\n1,2\n", ["40"]), ("a,b\n1,2,3\n", ["line 2", "columns"])):
            s.file("bad.csv").write_text(content)
            expect_error(run([tool("esdm-tune"), "--learn", s.file("bad.csv")], check=False), *words)


READER = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
for i in range(300):
    os.pread(fd, 65536, i * 65536)
for i in range(300):
    os.pread(fd, 16, i * 65536)
"""


@by_clock
def test_records_of_a_program_and_of_esdm():
    with Site() as s:
        s.file("data").write_bytes(os.urandom(300 * 65536))
        records = s.file("records")
        records.mkdir()
        run([tool("esdm-run"), "--records", records, sys.executable, "-c", READER,
             s.file("data")])
        known = tune("--learn", str(records))
        expect(known["records"] + known["left_out"] >= 600 and known["records"] >= 300, f"all reads are there: {known['records']}")
        errors = known["mean_errors"]
        expect(min(errors["tree"], errors["many trees"]) < 0.8 * errors["the mean"], f"small reads are slow: {errors}")

        lines = s.file("trace.jsonl")
        run([tool("esdm-tune"), "--run-kernel=vorpal", "--size=64M"],
            env=environment({"ESDM_MONITOR": f"trace:{lines}"}))
        known = tune("--learn", str(lines))
        rules = " ".join(rule["rule"] for rule in known["rules"])
        expect(known["records"] >= 40 and known["target"] == "MB/s", f"requests: {known}")
        expect("others under way" in rules or "requests that" in rules or "of" in rules, rules)


MIXED = """
import os, random, sys, time
chance = random.Random(int(sys.argv[2]))
fd = os.open(sys.argv[1], os.O_RDWR)
size = os.fstat(fd).st_size
for _ in range(60):
    count, bytes, at = chance.randrange(4, 16), 1 << chance.randrange(10, 22), chance.randrange(size - (48 << 20)) & ~1023
    stride = chance.choice([bytes, 4 * bytes if bytes < 1 << 20 else bytes])
    places = [at + (i * stride if chance.random() < 0.7 else chance.randrange(24 << 20)) for i in range(count)]
    if chance.random() < 0.5:
        os.posix_fadvise(fd, at & ~4095, 48 << 20, os.POSIX_FADV_DONTNEED)
    else:
        for place in places:
            os.pread(fd, bytes, place)
    for place in places:
        os.pread(fd, bytes, place)
        time.sleep(chance.choice([0, 0, 0, chance.random() / 1000]))
"""


def records_of_a_disk(site, disk, program):
    """Four runs of a program, program(DATA, NUMBER), over 96 MiB on a disk. Returns the folders of their records."""
    data = pathlib.Path(disk) / "data"
    if run(["stat", "-f", "-c", "%T", disk]).stdout.strip() == "tmpfs":
        skip("the folder of the build is in memory")
    with open(data, "wb") as file:
        for _ in range(96):
            file.write(os.urandom(1 << 20))
        os.fsync(file.fileno())
    folders = [str(site.file(f"records-{i}")) for i in range(4)]
    for i, folder in enumerate(folders):
        run([tool("esdm-run"), "-q", "--records", folder, sys.executable, *program(data, i)])
    return folders


@by_clock
def test_what_memory_has_decides():
    """Reads of this machine's disk and of its memory, sequential, strided and random, of 1 KiB to 2 MiB: those of a run are predicted
    from other runs much better than by the mean. How much better depends on what else the machine does, as noise is not to be predicted;
    so what calls differ by that are made again is measured with them, and the best model is not far from that."""
    with Site() as s, tempfile.TemporaryDirectory(dir=BUILD) as disk:
        folders = records_of_a_disk(s, disk, lambda data, i: ["-c", MIXED, data, str(i)])
        known = tune("--learn", *folders)
        errors, again = known["mean_errors"], known["again"]
        rules = " ".join(rule["rule"] for rule in known["rules"])
        print(f"    {known['records']} records, {known['left_out']} left out, mean error {errors['the mean']:.0f} MB/s; of that "
              + ", ".join(f"{name} {error / errors['the mean']:.2f}" for name, error in errors.items())
              + f"; of calls made again {again['error']:.0f} of at least {again['least_error']:.0f}, at most "
              f"{again['mean_error'] / again['least_error']:.1f} times better than the mean", flush=True)
        if "in memory" not in rules and known["left_out"] == 0:
            skip("the kernel does not tell what memory has (cachestat)")
        expect(known["best"] in ("many trees", "boosted trees") and 2 * errors[known["best"]] < errors["the mean"], str(errors))
        expect("of it in memory" in rules, rules)
        expect(known["folds"] == 4, f"each run is predicted from the others: {known['folds']}")
        expect(again["records"] >= 100 and 0 < again["least_error"] < again["error"] < 2 * again["least_error"], str(again))
        expect(again["error"] < 0.8 * again["mean_error"], f"the model knows more of them than the mean: {again}")
        factors = known["factors"]
        expect(factors["many trees"] < 0.5 * factors["the mean"], f"it is off by less: {factors}")
        text = run([tool("esdm-tune"), "--learn", *folders]).stdout
        expect("is the most that is possible there" in text, text)
        expect("4 parts, runs" in text and "no model of these can err by less" in text, text)


@by_clock
def test_reads_and_writes_of_a_disk():
    """Reads and writes of 512 bytes to 4 MiB, in memory and not, of this machine's disk. With more records, and nobody else there, they are
    predicted more than four times better than by the mean (tests/bench/predicted.py); with few of a busy machine, not much less so."""
    with Site() as s, tempfile.TemporaryDirectory(dir=BUILD) as disk:
        folders = records_of_a_disk(s, disk, lambda data, i: [SUPPORT / "disk_mix.py", data, str(i), "40"])
        known = tune("--learn", *folders)
        errors = known["mean_errors"]
        if known["left_out"] == 0 and "in memory" not in " ".join(rule["rule"] for rule in known["rules"]):
            skip("the kernel does not tell what memory has (cachestat)")
        print(f"    {known['records']} records, mean error {errors['the mean']:.0f} MB/s; better by " +
              ", ".join(f"{name} {errors['the mean'] / error:.2f}" for name, error in errors.items()), flush=True)
        expect(errors["the mean"] > 2.5 * errors["boosted trees"], str(errors))
        expect(errors["boosted trees"] < errors["tree"], f"what interrupted calls took does not count: {errors}")


@by_clock
def test_runs_of_kernels_that_do_not_tell():
    """What memory had is known of the reads of one run, and of none of another one's: those are left out, not "0 of it in memory"."""
    if tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2]) < (6, 5):
        skip("the kernel does not tell what memory has (cachestat)")
    with Site() as s:
        s.file("data").write_bytes(os.urandom(300 * 65536))
        for name, before in (("old", kernels.without(kernels.CACHESTAT)), ("new", [])):
            done = run([*before, tool("esdm-run"), "-q", "--records", s.file(name), sys.executable, "-c", READER, s.file("data")], check=False)
            if done.returncode == kernels.CANNOT:
                skip("no system call can be taken away here")
        old, new = (tune("--learn", str(s.file(name))) for name in ("old", "new"))
        expect(old["left_out"] == 0 and old["records"] >= 600, f"none is known: {old['records']} {old['left_out']}")
        both = tune("--learn", str(s.file("old")), str(s.file("new")))
        expect(both["left_out"] >= 600 + new["left_out"], f"{both['left_out']} left out, {new['left_out']} of the new one's")


def trace_of(host, realtime_ns, speeds):
    """Requests of 1 MB, one after the other, from the start of the node's clock on."""
    lines = [{"what": "process", "version": 1, "program": "p", "host": host, "pid": 1, "rank": -1,
              "realtime_ns": realtime_ns, "monotonic_ns": 0}]
    for i, start_s, seconds in speeds:
        lines.append({"what": "span", "kind": "fetch", "pid": 1, "thread": 1, "id": i + 1, "cause": 0,
                      "start_ns": int(start_s * 1e9), "ns": int(seconds * 1e9), "container": None,
                      "dataset": None, "target": "disk", "bytes": 1000000, "stored_bytes": 0,
                      "pieces": 1, "status": 0})
    return "".join(json.dumps(line) + "\n" for line in lines)


def test_nodes_have_clocks_of_their_own():
    """What two nodes did on different days was not under way at once, whatever their clocks say."""
    with Site() as s:
        one = trace_of("a", 10 ** 18, [(i, i, 0.01 if i < 60 else 0.5) for i in range(120)])
        other = trace_of("b", 10 ** 18 + 10 ** 14, [(i, 60 + i, 0.5) for i in range(60)])
        lines = s.file("two.jsonl")
        lines.write_text(one + other)
        known = tune("--learn", str(lines))
        rules = " ".join(rule["rule"] for rule in known["rules"])
        expect(known["records"] == 180 and "under way" not in rules, str(known))


main(test_what_memory_has_decides, test_reads_and_writes_of_a_disk, test_runs_of_kernels_that_do_not_tell, test_nodes_have_clocks_of_their_own, test_rules_are_those_of_the_emulator, test_records_of_a_program_and_of_esdm,
     test_threads_for_a_far_target, test_the_model_chooses_what_to_try, test_many_times_as_fast_as_one_small_request_at_a_time, test_a_genetic_search, test_programs,
     test_a_recorded_program, test_it_can_be_interrupted, test_wrong_use)
