#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""PostgreSQL as metadata store: connections that break, servers that restart or go away. What was
committed is there, once; what was not says so."""

import concurrent.futures
import contextlib
import json
import random
import subprocess
import threading
import time

from esdmtest import (Failed, Site, by_build, by_clock, by_size, client, client_environment, environment, expect,
                      expect_error, is_pack, main, run, some, tool)
from faults import LONG, PROGRAM, Writer, check_goes_on, committed, generation, must, program, shown
from postgres import Server, skip_without_postgres
from proxy import Proxy


def metadata(port, **keys):
    return {"plugin": "postgres", "host": "127.0.0.1", "port": port, "database": "postgres",
            "user": "esdm", **keys}


def expect_commits(server, name, number):
    """The container has exactly so many snapshots behind it."""
    found = server.sql(f"SELECT snapshot FROM esdm.container WHERE name = '{name}'")
    expect(found == [str(number)], f"{name}: snapshot {found} instead of {number}")
    expect(generation(name) == number, f"{name}: wrong generation")


def messages_of(proxy):
    """How many there were; all of programs that have ended."""
    proxy.wait_until_idle()
    return proxy.messages


@contextlib.contextmanager
def planned(proxy, plan):
    """What happens at messages while a program runs: plan(number), counted from 1. Its last messages may
    come when it has ended: then it is too late for them."""
    lock = threading.Lock()
    first = messages_of(proxy)
    over = False

    def decide(*_):
        with lock:
            return None if over else plan(proxy.messages - first)

    proxy.plan = decide
    try:
        yield
    finally:
        with lock:
            over = True
        proxy.plan = lambda *_: None


def test_postgres__connection_cut_at_every_message():
    with Server() as server, Proxy(server.port) as proxy, Site(metadata=metadata(proxy.port)):
        must("write", "first", 1, 3) # what is made once for a store takes messages, too
        before = messages_of(proxy)
        must("write", "plain", 1, 3)
        messages = messages_of(proxy) - before
        expect(messages > 5, f"only {messages} messages")
        cases = [(number, what) for number in range(1, messages + 1)
                 for what in ("before", "after")]
        cases = some(cases, len(cases) // by_size(by_build(11, 6), 8, 1))
        late = 0
        for number, what in cases:
            name, before, first = f"{what}-{number}", proxy.cuts, messages_of(proxy)
            proxy.plan = lambda *_, at=first + number, how=what: (
                how if proxy.messages == at else None)
            must("write", name, 1, 3)
            cut = proxy.cuts > before
            # What is sent without waiting may travel with the next message: then there are fewer.
            late += not cut and messages_of(proxy) - first < number
            expect(cut or messages_of(proxy) - first < number, f"{name} was not cut")
            proxy.plan = lambda *_: None
            expect_commits(server, name, 3)
        expect(late <= len(cases) / 2, f"{late} of {len(cases)} ended before")


def test_postgres__connections_cut_at_random():
    generator = random.Random(3)
    with Server() as server, Proxy(server.port) as proxy, Site(metadata=metadata(proxy.port)):
        # Two messages make the connection and look at the store, the third pins again.
        proxy.plan = lambda _, message: (
            generator.choice(["before", "after"]) if message > 5 and generator.random() < 0.15
            else None)
        last = by_size(by_build(8, 15), 20, 1000)
        writers = [subprocess.Popen([PROGRAM, "write", f"random{i}", "1", str(last)],
                                    env=environment(), stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True) for i in range(3)]
        for writer in writers:
            _, text = writer.communicate(timeout=LONG)
            expect(writer.returncode == 0, f"writer: {text}")
        proxy.plan = lambda *_: None
        for i in range(3):
            expect_commits(server, f"random{i}", last)
        print(f"{proxy.cuts} cuts")
        expect(proxy.cuts > 3, "too few cuts")


def test_postgres__server_restarts_while_writing():
    with Server() as server, Site(metadata=metadata(server.port, timeout=300), durability="system"):
        last = by_size(by_build(16, 40), 40, 2000)
        with Writer("a", 1, last) as writer:
            for number, mode in enumerate(["fast", "immediate", "fast", "immediate"]):
                writer.wait_for("committed", 1 + number * last // 8)
                server.restart(mode)
            done = writer.finish()
        expect(done.returncode == 0, shown(done))
        expect_commits(server, "a", last)
        check_goes_on("a", last)


@by_clock
def test_postgres__durability_process_waits_for_no_disk():
    """The server flushes its log once in a while; a program is told when it crashed before."""

    def flushes():
        server.sql("SELECT pg_stat_force_next_flush()")
        return int(server.sql("SELECT wal_sync FROM pg_stat_wal")[0])

    with Server(fsync="on", wal_sync_method="fdatasync", wal_writer_delay="2s") as server:
        told = {}
        for durability in ("process", "system"):
            with Site(metadata=metadata(server.port, schema=durability), durability=durability):
                before = flushes()
                must("write", "a", 1, 60)
                time.sleep(1.1)  # sessions tell their numbers once a second
                told[durability] = flushes() - before
        expect(told["system"] >= 60 and told["process"] < 30, f"flushes: {told}")
        with Site(metadata=metadata(server.port, schema="crash", timeout=60)):
            must("write", "ended", 1, 3)
            server.restart("immediate")
            expect(generation("ended") == 3, "a program that had ended has lost something")
            with Writer("a", 1, 400) as writer:
                writer.wait_for("committed 20")
                server.restart("immediate")
                done = writer.finish()
            last = generation("a")
            if done.returncode == 0:
                expect(last == 400, f"generation {last}: {shown(done)}")
            else:
                expect("has lost the last commits" in done.stderr, shown(done))
            check_goes_on("a", last)


MAKES = """
import netCDF4
d = netCDF4.Dataset("esdm://shared.nc", "w")
d.createDimension("t", None)
d.createDimension("x", 2)
v = d.createVariable("v", "f8", ("t", "x"))
w = d.createVariable("w", "f8", ("t",))
for i in range(5):
    v[i, :] = float(i)
    w[i] = float(i)
    d.sync()
d.close()
"""
PAUSES = """
import sys, netCDF4
d = netCDF4.Dataset("esdm://shared.nc", sys.argv[1])
v = d["v"]
first = v[:, 1].tolist()
print("open", flush=True)
if sys.argv[1] == "a":
    for i in range(5, 10):
        v[i, 0] = float(i)
        d["w"][i] = float(i)
sys.stdin.readline()
if sys.argv[1] == "a":
    v[10, 0] = 10.
    assert v[10, 0] == 10. and v[7, 0] == 7. and d["w"][2] == 2.
    d.sync()
    v[11, 0] = 11.
    d.close()
else:
    print(d["w"][3])
print("done", flush=True)
"""
OTHERS_GO_ON = """
import time, netCDF4
d = netCDF4.Dataset("esdm://shared.nc", "a")
for i in range(48):
    d["v"][i % 12, 1] = float(i)
    d["w"][3] = 100. + i  # so that nothing of the old snapshot stays
    d.sync()
    time.sleep(0.03)
d.close()
"""


def test_postgres__pauses_of_the_server_cost_writers_nothing():
    """Pins vanish with the sessions, and others delete the snapshot that a writer had opened."""
    with Server() as server, Site(metadata=metadata(server.port, timeout=60)):
        client(["/usr/bin/python3", "-c", MAKES])
        programs = [subprocess.Popen([tool("esdm-run"), "/usr/bin/python3", "-c", PAUSES, mode],
                                     env=client_environment(), stdin=subprocess.PIPE, text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                    for mode in ("a", "r")]
        for one in programs:
            expect(one.stdout.readline() == "open\n", "not opened")
        server.restart()
        client(["/usr/bin/python3", "-c", OTHERS_GO_ON])
        kept = server.sql("SELECT count(*) FROM esdm.snapshot WHERE NOT pruned AND snapshot <= 6")
        expect(kept == ["0"], f"the old snapshot is still there: {kept}")
        writer, reader = (one.communicate("\n", timeout=300) for one in programs)
        expect(programs[0].returncode == 0 and "done" in writer[0], f"{writer}")
        expect("snapshot" in reader[1] and "open the container again" in reader[1], f"{reader}")
        expect("No such file" not in reader[1], f"a wrong code: {reader[1]}")
        told = client(["/usr/bin/python3", "-c",
                       "import netCDF4\nd = netCDF4.Dataset('esdm://shared.nc')\n"
                       "print(d['v'][:, 0].tolist(), d['v'][11, 1])"]).stdout
        expect(told == f"{[float(i) for i in range(12)]} 47.0\n", told)


READS_ON = """
import sys, netCDF4
d = netCDF4.Dataset("esdm://shared.nc")
print("open", flush=True)
sys.stdin.readline()
assert d["v"][:, 1].tolist() == [0., 1., 2., 3., 4.]
print("read", flush=True)
sys.stdin.readline()
print(d["w"][3], flush=True)
"""


def test_postgres__pins_are_taken_again():
    """What a reader has opened stays when the server was away and nobody deleted it meanwhile."""
    with Server() as server, Site(metadata=metadata(server.port, timeout=60)):
        client(["/usr/bin/python3", "-c", MAKES])
        with subprocess.Popen([tool("esdm-run"), "/usr/bin/python3", "-c", READS_ON], text=True,
                              env=client_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as reader:
            expect(reader.stdout.readline() == "open\n", "not opened")
            server.restart()
            reader.stdin.write("\n")
            reader.stdin.flush()
            expect(reader.stdout.readline() == "read\n", "not read after the restart")
            client(["/usr/bin/python3", "-c", OTHERS_GO_ON])
            out, err = reader.communicate("\n", timeout=300)
        expect(reader.returncode == 0 and out.strip() == "3.0", f"{out}{err}")


def test_postgres__server_restarts_in_the_middle_of_a_commit():
    """At any message; or when a commit took place and its answer was lost, as the client comes back."""
    # A server ends with the thread that has started it. One that is stopped waits for who is not yet
    # authenticated, and the proxy holds such connections back until it has restarted.
    with concurrent.futures.ThreadPoolExecutor(1) as keeper, \
            Server(authentication_timeout="10s") as server, Proxy(server.port) as proxy, \
            Site(metadata=metadata(proxy.port), durability="system"):
        before = messages_of(proxy)
        must("write", "plain", 1, 2)
        # The first ones make the connection: who finds nobody there says so soon.
        cases = [(number, what) for number in range(6, messages_of(proxy) - before + 1)
                 for what in ("before", "after")]
        cases = some(cases, len(cases) // by_size(by_build(11, 6), 6, 1))
        for number, what in cases:
            name = f"{what}-{number}"
            restarted = threading.Event()

            def plan(message, at=number, how=what, done=restarted):
                if message == at + (how == "after") and not done.is_set():
                    done.set()
                    keeper.submit(server.restart, "immediate").result(60)
                    return "before"
                return how if message == at else None

            with planned(proxy, plan):
                must("write", name, 1, 2)
            expect_commits(server, name, 2)
        expect(proxy.cuts >= len(cases) * 3 / 4, f"only {proxy.cuts} of {len(cases)} were cut")


def test_postgres__sessions_are_terminated():
    """Some time after each commit, so that the writer gets on in any case."""
    generator = random.Random(6)
    with Server() as server, Site(metadata=metadata(server.port)):
        last = by_size(by_build(5, 10), 12, 500)
        with Writer("a", 1, last) as writer:
            for number in range(1, last):
                writer.wait_for("committed", number)
                time.sleep(generator.random() * 0.05)
                server.sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                           "WHERE application_name = 'esdm'")
            done = writer.finish()
        expect(done.returncode == 0, shown(done))
        expect_commits(server, "a", last)


def test_postgres__server_goes_away():
    with Server() as server, Site(metadata=metadata(server.port, timeout=1), durability="system"):
        must("write", "a", 1, 2)
        with Writer("a", 3, 1000000) as writer:
            writer.wait_for("committed")
            server.stop("immediate")
            done = writer.finish()
        expect(done.returncode == 3 and "metadata store" in done.stderr, shown(done))
        told = committed(done)
        done = run([tool("esdm-ls")], check=False)
        expect_error(done, "metadata store", "Connection refused")
        server.start()
        found = generation("a")
        expect(told <= found <= told + 1, f"generation {found}, told {told}")
        check_goes_on("a", found)


UNKNOWN = """
import netCDF4, sys, time
d = netCDF4.Dataset("esdm://doubt.nc", "w")
d.createDimension("t", None)
v = d.createVariable("v", "f8", ("t",))
v[0] = 1.0
d.sync()
v[1] = 2.0
print("ready", flush=True)
sys.stdin.readline()
try:
    d.sync()
    print("synced", flush=True)
except Exception as why:
    print("sync:", why, flush=True)
sys.stdin.readline()
v[2] = 3.0
try:
    d.close()
    print("closed", flush=True)
except Exception as why:
    print("close:", why, flush=True)
"""


def test_postgres__unknown_outcome_is_found_out():
    """The server commits, nobody hears of it, and it is not reachable until the program gives up:
    the next commit must neither publish the same twice nor succeed as if nothing was lost."""
    for kind in ("before", "after"):
        with Server() as server, Proxy(server.port) as proxy, \
                Site(metadata=metadata(proxy.port, timeout=1)):
            command = [tool("esdm-run"), "/usr/bin/python3", "-c", UNKNOWN]
            with subprocess.Popen(command, env=client_environment(), stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as user:
                expect(user.stdout.readline() == "ready\n", "the program did not start")
                proxy.refuse = True
                proxy.plan = lambda *_, how=kind: how
                user.stdin.write("\n")
                user.stdin.flush()
                answer = user.stdout.readline()
                expect(answer.startswith("sync:"), f"{kind}: {answer}")
                proxy.refuse = False
                proxy.plan = lambda *_: None
                user.stdin.write("\n")
                user.stdin.flush()
                answer = user.stdout.readline()
            count = client(["ncdump", "-v", "v", "esdm://doubt.nc"]).stdout
            found = server.sql("SELECT snapshot FROM esdm.container WHERE name = 'doubt.nc'")
            if kind == "before":
                expect(answer == "closed\n" and "v = 1, 2, 3" in count and found == ["2"],
                       f"{kind}: {answer}{count}{found}")
            else:
                expect(answer.startswith("close:") and "v = 1, 2 ;" in count and found == ["2"],
                       f"{kind}: {answer}{count}{found}")


def test_postgres__unknown_outcome_then_refused():
    """The server commits, nobody hears of it, and then it lets nobody in: that is no answer, and
    what the commit may need stays."""
    with Server() as server:
        server.sql("CREATE ROLE writer LOGIN SUPERUSER")
        with Proxy(server.port) as proxy, \
                Site(metadata=metadata(proxy.port, user="writer", timeout=5)):
            must("write", "plain", 1, 1)
            before = messages_of(proxy)
            must("write", "plain", 2, 2)
            messages = messages_of(proxy) - before

            def refused_from(name, is_it):
                """The server answers one message to nobody; how the program ends, and what is there."""
                must("write", name, 1, 1)
                hit = []

                def plan(message):
                    if hit or not is_it(message):
                        return None
                    hit.append(message)
                    server.sql("ALTER ROLE writer NOLOGIN")
                    return "after"

                with planned(proxy, plan):
                    done = program("write", name, 2, 2)
                # An answer to an earlier message may have ended the connection: the server then still
                # works on the commit.
                server.wait_until_gone(server.sessions())
                server.sql("ALTER ROLE writer LOGIN")
                found = generation(name)
                expect(found == 2 if done.returncode == 0 else found in (1, 2),
                       f"{name}: generation {found}")
                if done.returncode != 0 and found == 2:
                    expect("may have taken place" in done.stderr, shown(done))
                return done, found, len(hit)

            numbers = range(1, messages + 1)
            for number in some(numbers, messages // by_size(by_build(4, 2), 5, 1)):
                refused_from(f"refused-{number}", lambda message, at=number: message == at)
            # Which number the commit has is chance: two messages may come as one.
            done, found, hit = refused_from("published", lambda _: b"publish($1" in proxy.text)
            expect(hit == 1 and found == 2, f"{hit} commits, generation {found}\n{shown(done)}")
            expect_error(done, "may have taken place")


def test_postgres__drain_spares_writers_whose_session_was_lost():
    """What a program has not committed stays on its node while the server does not know of it."""
    targets = [{"name": "burst", "plugin": "posix", "accessibility": "local",
                "directory": "burst"},
               {"name": "disk", "plugin": "posix", "directory": "disk"}]
    env = {"ESDM_NODE": "alpha"}
    with Server() as server, Site(metadata=metadata(server.port), targets=targets, make=False,
                                  engine={"pack": "64KiB"}) as site:
        run([tool("esdm-mkfs")], env=environment(env))
        with Writer("a", 1, 2, "pause", env=env) as writer:
            writer.wait_for("written 2")  # and not committed
            server.end_sessions()
            done = json.loads(run([tool("esdm-drain"), "--json"], env=environment(env)).stdout)
            expect(done["fragments"] > 0 and done["young"] > 0, f"{done}")
            run([tool("esdm-gc"), "--yes"], env=environment(env))
            writer.go_on()
            done = writer.finish()
            expect(done.returncode == 0 and committed(done) == 2, shown(done))
        expect("generation 2" in must("check", "a", env=env).stdout, "data are lost")
        server.wait_until_gone(server.sessions())
        run([tool("esdm-drain"), "--age", "0"], env=environment(env))
        left = [p for p in site.file("burst").rglob("*") if is_pack(p)]
        expect(not left, f"left: {left}")
        expect("generation 2" in must("check", "a", env={"ESDM_NODE": "beta"}).stdout, "drained")


def test_postgres__writer_learns_that_its_packs_are_gone():
    """They were removed, with --age 0, while the server did not know of the writer."""
    with Server() as server, Site(metadata=metadata(server.port)):
        must("write", "a", 1, 1)
        with Writer("a", 2, 2, "pause") as writer:
            writer.wait_for("written 2")
            server.end_sessions()
            run([tool("esdm-gc"), "--age", "0", "--yes"])
            writer.go_on()
            done = writer.finish()
            expect(done.returncode == 3 and "was removed while" in done.stderr, shown(done))
        check_goes_on("a", 1)


def test_postgres__writer_is_killed():
    with Server() as server, Site(metadata=metadata(server.port)):
        must("write", "a", 1, 1)
        last = 1
        for _ in range(by_size(3, 4, 50)):
            with Writer("a", last + 1, 1000000) as writer:
                writer.wait_for("started")
                time.sleep(0.1 + random.random() * 0.15)
                told = max(committed(writer.kill()), last)
            server.wait_until_gone(server.sessions())  # what it asked for last may be done still
            last = generation("a")
            expect(told <= last <= told + 1, f"generation {last}, told {told}")
        check_goes_on("a", last)
        server.wait_until_gone(server.sessions())
        locks = server.sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
        expect(locks == ["0"], f"pins are left: {locks}")


def test_postgres__large_commit_is_one_transaction():
    """More bytes in index pages than one statement carries, cut in the middle and at the end."""
    script = ("import netCDF4, numpy\n"
              "d = netCDF4.Dataset('esdm://NAME', 'w')\n"
              "d.createDimension('t', None); d.createDimension('x', 60000)\n"
              "for n in 'abcde':\n"
              "    v = d.createVariable(n, 'f8', ('t', 'x'), chunksizes=(1, 60000))\n"
              "    for t in range(0, 30, 2): v[t] = numpy.arange(60000) + t\n"
              "d.close()\n")
    check = ("import netCDF4, numpy\n"
             "d = netCDF4.Dataset('esdm://NAME')\n"
             "print(all((d[n][t] == numpy.arange(60000) + t).all()\n"
             "          for n in 'abcde' for t in range(0, 30, 2)))\n")
    with Server() as server, Proxy(server.port) as proxy, \
            Site(metadata=metadata(proxy.port), engine={"inline": "1 MiB"}):
        sizes = []
        proxy.plan = lambda connection, message: sizes.append((connection, message))
        client(["/usr/bin/python3", "-c", script.replace("NAME", "plain")])
        last = sizes[-1][1]
        expect(last > 15, f"only {last} messages: not a large commit")
        for number, what in ((last // 2, "before"), (last - 2, "before"), (last - 2, "after"),
                             (last - 1, "after"), (last, "after")):
            name = f"{what}-{number}"
            seen = proxy.connections
            proxy.plan = lambda connection, message, at=number, how=what, first=seen: (
                how if connection == first + 1 and message == at else None)
            client(["/usr/bin/python3", "-c", script.replace("NAME", name)])
            proxy.plan = lambda *_: None
            found = server.sql(f"SELECT snapshot FROM esdm.container WHERE name = '{name}'")
            expect(found == ["1"], f"{name}: snapshot {found}")
            done = client(["/usr/bin/python3", "-c", check.replace("NAME", name)])
            expect(done.stdout.strip() == "True", f"{name}: wrong data")


if __name__ == "__main__":
    skip_without_postgres()
    main(test_postgres__connection_cut_at_every_message,
         test_postgres__connections_cut_at_random,
         test_postgres__server_restarts_while_writing,
         test_postgres__durability_process_waits_for_no_disk,
         test_postgres__pauses_of_the_server_cost_writers_nothing,
         test_postgres__pins_are_taken_again,
         test_postgres__server_restarts_in_the_middle_of_a_commit,
         test_postgres__sessions_are_terminated,
         test_postgres__server_goes_away,
         test_postgres__unknown_outcome_is_found_out,
         test_postgres__unknown_outcome_then_refused,
         test_postgres__drain_spares_writers_whose_session_was_lost,
         test_postgres__writer_learns_that_its_packs_are_gone,
         test_postgres__writer_is_killed,
         test_postgres__large_commit_is_one_transaction)
