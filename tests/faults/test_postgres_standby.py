#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""PostgreSQL with a synchronous standby as metadata store: the primary dies, the standby takes over.
Whoever writes or reads goes on; what was told as committed is there, once."""

import contextlib
import socket
import time

from esdmtest import Site, client, client_environment, expect, expect_error, main, run, tool
from faults import Beside, Writer, committed, generation, must, need_netcdf4_python, shown
from postgres import Server, Standby, skip_without_postgres
from proxy import Proxy
from test_postgres import expect_commits

PATIENCE = 300  # seconds: a promotion takes its time on a busy machine


def metadata(*ports, timeout=PATIENCE, **keys):
    """The store of a site that names all servers, the first one first."""
    hosts = ",".join("127.0.0.1" for _ in ports)
    return {"plugin": "postgres", "timeout": timeout, "connection":
            f"host={hosts} port={','.join(map(str, ports))} dbname=postgres user=esdm "
            f"target_session_attrs=read-write", **keys}


@contextlib.contextmanager
def servers():
    with Server() as primary, Standby(primary) as standby:
        yield primary, standby


def count(program, word):
    with program.news:
        return sum(line.startswith(word) for line in program.lines)


def wait_for_commit(server, writer, told):
    """Until its next commit waits for the standby, which does not answer; it is not told before."""
    deadline = time.monotonic() + PATIENCE
    while server.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' "
                     "AND application_name = 'esdm'") == ["0"]:
        expect(count(writer, "committed") == told, "told of a commit that the standby has not got")
        expect(not writer.ended and time.monotonic() < deadline, "no commit waits for the standby")
        time.sleep(0.02)
    expect(count(writer, "committed") == told, "told of a commit that the standby has not got")


# Makes containers, one after another, until a line comes in. Each holds its number.
MAKER = """
import netCDF4, numpy, select, sys
number = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    number += 1
    with netCDF4.Dataset(f"esdm://{sys.argv[1]}-{number}.nc", "w") as d:
        d.createDimension("t", None)
        d.createDimension("x", 3000)
        v = d.createVariable("v", "i8", ("t", "x"))
        v.number = number
        v[0] = numpy.arange(3000) + number
        v[1] = numpy.arange(3000) - number
    print("committed", number, flush=True)
"""

# Reads one container again and again, through a handle that stays open and a new one.
READER = """
import netCDF4, numpy, select, sys
def check(d):
    v = d["v"]
    assert v.shape == (2, 3000) and v.number == 1, (v.shape, v.number)
    assert (v[0] == numpy.arange(3000) + 1).all() and (v[1] == numpy.arange(3000) - 1).all()
held = netCDF4.Dataset("esdm://base-1.nc")
number = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    number += 1
    check(held)
    with netCDF4.Dataset("esdm://base-1.nc") as d:
        check(d)
    print("read", number, flush=True)
"""

CHECK = """
import netCDF4, numpy, sys
for number in range(1, int(sys.argv[2]) + 1):
    with netCDF4.Dataset(f"esdm://{sys.argv[1]}-{number}.nc") as d:
        v = d["v"]
        assert v.shape == (2, 3000) and v.number == number, (number, v.shape)
        assert (v[0] == numpy.arange(3000) + number).all(), number
        assert (v[1] == numpy.arange(3000) - number).all(), number
"""


def script(text, *arguments):
    return Beside([tool("esdm-run"), "/usr/bin/python3", "-c", text, *arguments],
                  client_environment())


def test_standby__takes_over_from_a_primary_that_is_killed():
    """Beside programs that make containers, one that commits to a single one, and readers."""
    with servers() as (primary, standby), \
            Site(metadata=metadata(primary.port, standby.port)), contextlib.ExitStack() as open_:
        with script(MAKER, "base") as first:
            first.wait_for("committed")
            first.go_on()
            expect(first.finish().returncode == 0, "".join(first.lines))
        makers = [open_.enter_context(script(MAKER, name)) for name in ("a", "b")]
        writer = open_.enter_context(Writer("c", 1, 60))
        reader = open_.enter_context(script(READER))
        programs = [(makers[0], "committed"), (makers[1], "committed"), (writer, "committed"),
                    (reader, "read")]
        for program, word in programs:
            program.wait_for(word, 3)
        primary.crash()
        before = [count(program, word) for program, word in programs]
        standby.promote()
        for (program, word), n in zip(programs, before):
            if program is not writer:
                program.wait_for(word, n + 5)
                program.go_on()
        for program, _ in programs:
            done = program.finish()
            expect(done.returncode == 0, shown(done))
        expect_commits(standby, "c", 60)
        for name, program in (("a", makers[0]), ("b", makers[1])):
            number = count(program, "committed")
            client(["/usr/bin/python3", "-c", CHECK, name, str(number)])
            found = standby.sql("SELECT count(*), min(snapshot), max(snapshot) "
                                f"FROM esdm.container WHERE name ~ '^{name}-'")
            expect(found == [f"{number}|1|1"], f"{name}: {found} instead of {number} containers")
        # A container that was made twice has replaced itself.
        found = standby.sql("SELECT count(*) FROM esdm.container WHERE name IS NULL")
        expect(found == ["0"], f"{found} records were replaced")


def test_standby__takes_over_in_the_middle_of_a_commit():
    """The servers have it and nobody has heard; or they have not."""
    for done_before in (True, False):
        with servers() as (primary, standby), Proxy(primary.port) as proxy, \
                Site(metadata=metadata(proxy.port, standby.port)), \
                Writer("a", 1, 5, "pause") as writer:
            writer.wait_for("written 5")
            proxy.mute = True
            if not done_before:
                proxy.refuse = True
                proxy.plan = lambda *_: "before"
            writer.go_on()
            if done_before:
                primary.wait_for_sql("SELECT snapshot FROM esdm.container WHERE name = 'a'", ["5"])
            else:
                proxy.wait_until_idle()  # it has tried
                found = primary.sql("SELECT snapshot FROM esdm.container WHERE name = 'a'")
                expect(found == ["4"], f"snapshot {found} without a commit")
            primary.crash()
            expect(count(writer, "committed") == 4, "told of a commit that nobody heard of")
            standby.promote()
            done = writer.finish()
            expect(done.returncode == 0 and committed(done) == 5, shown(done))
            expect_commits(standby, "a", 5)


def test_standby__commit_that_it_has_not_got():
    """The primary has it on its disk. Until the standby has it, too, it is not told as committed, not
    even when the primary comes back and finds it; and when the primary dies then, it is done anew."""
    with servers() as (primary, standby), Site(metadata=metadata(primary.port, standby.port)):
        with Writer("a", 1, 5, "pause") as writer:
            writer.wait_for("written 5")
            standby.stop()
            writer.go_on()
            wait_for_commit(primary, writer, 4)
            primary.restart("immediate")
            found = primary.sql("SELECT snapshot FROM esdm.container WHERE name = 'a'")
            expect(found == ["5"], f"the primary has lost it: {found}")
            wait_for_commit(primary, writer, 4)  # the same one, asked for again
            standby.start()
            done = writer.finish()
            expect(done.returncode == 0 and committed(done) == 5, shown(done))
        expect_commits(primary, "a", 5)
        standby.wait_until_synchronous()
        with Writer("a", 6, 8, "pause") as writer:
            writer.wait_for("written 8")
            standby.stop()
            writer.go_on()
            wait_for_commit(primary, writer, 2)
            primary.crash()
            standby.start()
            found = standby.sql("SELECT snapshot FROM esdm.container WHERE name = 'a'")
            expect(found == ["7"], f"the standby has it: {found}")
            standby.promote()
            done = writer.finish()
            expect(done.returncode == 0 and committed(done) == 8, shown(done))
        expect_commits(standby, "a", 8)


def test_standby__alone_is_read_only():
    """Nobody promotes it: who writes, reads or opens hears why nothing goes on, in time."""
    with servers() as (primary, standby), \
            Site(metadata=metadata(primary.port, standby.port, timeout=1)):
        must("write", "a", 1, 2)
        with Writer("a", 3, 1000000) as writer:
            writer.wait_for("committed")
            primary.crash()
            done = writer.finish()
        expect(done.returncode == 3, shown(done))
        expect_error(done, "commit of container 'a'", "read-only", "standby", "no primary")
        told = committed(done)
        expect_error(run([tool("esdm-ls")], check=False), "metadata store", "read-only", "standby")
        expect_error(client(["ncdump", "-h", "esdm://a"], check=False), "read-only", "standby")
        expect_error(run([tool("esdm-mkfs"), "--check"], check=False), "read-only", "standby")
        standby.promote()
        found = generation("a")
        expect(told <= found <= told + 1, f"generation {found}, told {told}")
        must("write", "a", found + 1, found + 1)
        expect_commits(standby, "a", found + 1)


def test_standby__host_that_hangs_is_passed_by():
    """It takes connections and never says a word. The next one has its own time."""
    with Server() as server, socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        store = metadata(port, server.port, timeout=20)
        store["connection"] += " connect_timeout=2"
        with Site(metadata=store):
            found = server.sql("SELECT value FROM esdm.store WHERE key = 'format'")
            expect(len(found) == 1, f"no store was made: {found}")
        # Nobody else is there.
        alone = metadata(port, timeout=0)
        alone["connection"] += " connect_timeout=2"
        with Site(metadata=alone, make=False):
            expect_error(run([tool("esdm-mkfs")], check=False), "does not answer")


def test_standby__only_a_primary_will_do():
    for wanted in ("standby", "prefer-standby", "read-only", "any"):
        store = {"plugin": "postgres",
                 "connection": f"host=127.0.0.1 port=1 target_session_attrs={wanted}"}
        with Site(metadata=store, make=False):
            expect_error(run([tool("esdm-mkfs")], check=False), "metadata: connection", "primary",
                         f"target_session_attrs={wanted}")


if __name__ == "__main__":
    skip_without_postgres()
    need_netcdf4_python()
    main(test_standby__takes_over_from_a_primary_that_is_killed,
         test_standby__takes_over_in_the_middle_of_a_commit,
         test_standby__commit_that_it_has_not_got,
         test_standby__alone_is_read_only,
         test_standby__host_that_hangs_is_passed_by,
         test_standby__only_a_primary_will_do)
