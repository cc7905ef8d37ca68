#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
""""dedup": "write": what is equal to what is stored already is referred to. A restart series through
NetCDF programs; what it refers to may be removed, replaced, drained and collected meanwhile; kills."""

import json
import os
import signal
import subprocess

from esdmtest import SANITIZE, Site, by_build, client, client_environment, expect, expect_error, is_pack, main, run, tool
from lostsite import POSIX, SQLITE, check_sound, contents, expect_restored, lose, restore
from postgres import Server, skip_without_postgres

FIELDS = 6
ELEMENTS = 60_000
POLICY = [{"container": "restart/*", "dedup": "write"}]
# Fields of which one changes at each step; with "ask" it waits before and after it is closed.
WRITE = """
import netCDF4, numpy, sys
name, step, mode, ask = sys.argv[1], int(sys.argv[2]), sys.argv[3], len(sys.argv) > 4
def wait(text):
    if ask:
        print(text, flush=True)
        sys.stdin.readline()
d = netCDF4.Dataset(f"esdm://{name}", mode)
if mode == "w":
    d.createDimension("x", %d)
    for f in range(%d):
        d.createVariable(f"f{f}", "f8", ("x",))
wait("open")
for f in range(%d):
    d[f"f{f}"][:] = numpy.random.default_rng(f if f != step %% %d else 1000 * step + f).random(%d)
    if f == 2:
        d.sync() if mode == "a" else None
        wait("half")
wait("written")
d.close()
wait("closed")
""" % (ELEMENTS, FIELDS, FIELDS, FIELDS, ELEMENTS)


def command(name, step, mode="w"):
    return ["/usr/bin/python3", "-c", WRITE, name, str(step), mode]


def write(name, step, mode="w"):
    client(command(name, step, mode))


class Asked:
    """A writer that goes on when it is told to."""

    def __init__(self, name, step, mode="w"):
        self.process = subprocess.Popen([tool("esdm-run"), *command(name, step, mode), "ask"], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=client_environment(),
                                        start_new_session=True)

    def until(self, text):
        while True:
            line = self.process.stdout.readline().strip()
            if line == "":
                raise AssertionError(f"it ended: {self.process.communicate()}")
            if line == text:
                return
            self.go_on()

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)  # esdm-run and the program
        self.process.communicate()

    def finish(self):
        out, err = self.process.communicate("\n" * 9, timeout=120)
        expect(self.process.returncode == 0, f"{self.process.returncode}: {out}{err}")


CHECK = """
import netCDF4, numpy, sys
name, step = sys.argv[1], int(sys.argv[2])
with netCDF4.Dataset(f"esdm://{name}") as d:
    for f in range(%d):
        values = numpy.random.default_rng(f if f != step %% %d else 1000 * step + f).random(%d)
        assert (d[f"f{f}"][:] == values).all(), f"{name}: field {f} of step {step} has other values"
""" % (FIELDS, FIELDS, ELEMENTS)


def check(name, step):
    client(["/usr/bin/python3", "-c", CHECK, name, str(step)])


def packs(site):
    return [p for folder in ("packs", "spare") for p in site.file(folder).rglob("*") if is_pack(p)]


def stored(site):
    return sum(p.stat().st_size for p in packs(site))


def gc():
    run([tool("esdm-gc"), "--yes", "--age=0", "--replaced-now"])


def drop(*names):
    run([tool("esdm-rm"), "--yes", "--for-good", *names])
    gc()


def check_series(site):
    sizes = []
    for step in range(5):
        write(f"restart/{step}.nc", step)
        sizes.append(stored(site))
        check(f"restart/{step}.nc", step)
    new = [b - a for a, b in zip(sizes, sizes[1:])]
    # two fields differ from the restart before, of which one is that of an earlier one
    expect(all(n < 2.2 / FIELDS * sizes[0] for n in new), f"{sizes}")
    told = json.loads(run([tool("esdm-stat"), "--json", "restart/4.nc"]).stdout)["containers"][0]
    shared = [d["shared_fragments"] for d in told["root"]["datasets"]]
    expect(sum(n > 0 for n in shared) >= FIELDS - 2, f"{shared}")
    expect("of other containers" in run([tool("esdm-stat"), "restart/4.nc"]).stdout, "not told")
    for step in range(5):  # elsewhere everything is stored
        write(f"other/{step}.nc", 0)
    expect(stored(site) - sizes[-1] >= 5 * sizes[0] * 0.99, f"{sizes} {stored(site)}")
    drop(*[f"other/{step}.nc" for step in range(5)])
    check_sound()
    drop("restart/0.nc", "restart/2.nc")
    for step in 1, 3, 4:
        check(f"restart/{step}.nc", step)
    check_sound()
    write("restart/1.nc", 7)         # replaces, in part by what it was
    write("restart/3.nc", 3, "a")    # the same once more, in place
    gc()
    for name, step in ("1", 7), ("3", 3), ("4", 4):
        check(f"restart/{name}.nc", step)
    check_sound()


def check_end(site):
    drop("restart/1.nc", "restart/3.nc", "restart/4.nc")
    expect(not packs(site), f"left: {packs(site)}")


def test_a_restart_series_stores_what_changes():
    with Site(targets=[POSIX], metadata=SQLITE, policies=POLICY) as site:
        check_series(site)
        values = contents(site)
        lose(site)
        expect_restored(restore())
        expect(contents(site) == values, "other values came back")
        run([tool("esdm-gc"), "--yes", "--restoration-complete"])
        check_sound()
        check_end(site)


def test_a_restart_series_on_postgresql():
    skip_without_postgres()
    with Server() as server:
        metadata = {"plugin": "postgres", "host": "127.0.0.1", "port": server.port,
                    "database": "postgres", "user": "esdm", "schema": "dedup"}
        with Site(targets=[POSIX], metadata=metadata, policies=POLICY) as site:
            check_series(site)
            check_end(site)
            check_races(site, by_build(("removed",), ("removed", "for good", "replaced")), ("written",))


def check_races(site, harms=("removed", "for good", "replaced", "drained"), states=("half", "written")):
    for harm in harms:
        for state in states:
            write("restart/0.nc", 0)
            writer = Asked("restart/1.nc", 1)
            writer.until(state)
            if harm == "removed":
                run([tool("esdm-rm"), "restart/0.nc"])
                gc()
            elif harm == "for good":
                drop("restart/0.nc")
            elif harm == "replaced":
                write("restart/0.nc", 50)
                gc()
            elif site.file("spare").exists():
                run([tool("esdm-drain"), "--age", "0s", "--from", "disk"], check=False)
                gc()
            writer.finish()
            gc()
            check("restart/1.nc", 1)
            check_sound()
            if harm in ("replaced", "drained"):
                check("restart/0.nc", 50 if harm == "replaced" else 0)
                drop("restart/0.nc")
                check("restart/1.nc", 1)
            drop("restart/1.nc")
            expect(not packs(site), f"{harm}, {state}: left {packs(site)}")


def test_what_it_refers_to_may_go_meanwhile():
    spare = {"name": "spare", "plugin": "posix", "directory": "spare"}
    with Site(targets=[POSIX, spare], metadata=SQLITE, policies=POLICY, replaced={"keep": 0}) as site:
        check_races(site, states=by_build(("written",), ("half", "written")))
    if not SANITIZE:
        with Site(targets=[POSIX], metadata=SQLITE, policies=POLICY) as site:
            check_races(site, ("removed", "replaced"), ("written",))


def test_kills_lose_nothing():
    with Site(targets=[POSIX], metadata=SQLITE, policies=POLICY) as site:
        write("restart/0.nc", 0)
        write("restart/1.nc", 1)
        size = stored(site)
        for mode, states in ("w", ("half", "written", "closed")), ("a", ("half", "written")):
            for state in states:
                writer = Asked("restart/1.nc", 1, mode)
                writer.until(state)
                writer.kill()
                check("restart/0.nc", 0)
                check("restart/1.nc", 1)
                gc()
                check("restart/1.nc", 1)
                check_sound()
                expect(stored(site) <= size * 1.01, f"{mode} {state}: {stored(site)}, was {size}")
        drop("restart/0.nc")
        check("restart/1.nc", 1)


def test_it_is_asked_for():
    for policies, key, words in (([{"container": "*", "dedup": "now"}], "off", "now"),
                                 ([{"variable": "v", "dedup": "write"}], "off", "variables"),
                                 ([], "yes", "write")):
        with Site(targets=[POSIX], metadata=SQLITE) as site:
            config = json.loads(site.config.read_text())
            site.config.write_text(json.dumps(dict(config, policies=policies, dedup=key)))
            expect_error(run([tool("esdm-ls")], check=False), words)
    with Site(targets=[POSIX], metadata=SQLITE, dedup="write",
              policies=[{"container": "all/*", "dedup": "off"}]) as site:
        write("0.nc", 0)
        size = stored(site)
        write("1.nc", 0)
        expect(stored(site) < 1.01 * size, f"{stored(site)}, one has {size}")
        write("all/0.nc", 0)
        write("all/1.nc", 0)
        expect(stored(site) >= 2.9 * size, f"{stored(site)}, one has {size}")


main(
    test_a_restart_series_stores_what_changes,
    test_a_restart_series_on_postgresql,
    test_what_it_refers_to_may_go_meanwhile,
    test_kills_lose_nothing,
    test_it_is_asked_for,
)
