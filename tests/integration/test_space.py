# SPDX-License-Identifier: LGPL-3.0-or-later
"""Data that are written again free what they held, former containers come back with PostgreSQL too,
and the numbers of a check."""

import contextlib
import json
import subprocess
import time

import postgres
from esdmtest import Site, client, client_environment, expect, expect_error, main, run, tool

WRITE = """
import netCDF4, sys, numpy as np
name, mode, value = sys.argv[1:4]
with netCDF4.Dataset(name, mode) as f:
    if mode == "w":
        f.createDimension("y", 500)
        f.createDimension("x", 1000)
        f.createVariable("v", "f8", ("y", "x"))
    f["v"][:] = np.random.default_rng(int(value)).random((500, 1000))
"""
BYTES = 4_000_000
READ = """
import netCDF4, sys, numpy as np
with netCDF4.Dataset(sys.argv[1]) as f:
    sys.exit(0 if (f["v"][:] == np.random.default_rng(int(sys.argv[2])).random((500, 1000))).all() else 7)
"""
HOLD = READ.replace("    sys.exit", "    f['v'][0, 0]; print('open', flush=True); sys.stdin.readline()\n"
                    "    sys.exit")


def write(name, mode, value):
    client(["/usr/bin/python3", "-c", WRITE, name, mode, str(value)])


def holds(name, value):
    return client(["/usr/bin/python3", "-c", READ, name, str(value)], check=False).returncode == 0


def stored(site):
    return sum(p.stat().st_size for p in site.pack_files())


@contextlib.contextmanager
def stores():
    """What the metadata can be in; PostgreSQL where it is installed. Functions of a name, which
    give the changes of a site."""
    with contextlib.ExitStack() as stack:
        found = [lambda _: {}]
        if postgres.binaries() is not None:
            server = stack.enter_context(postgres.Server())
            found.append(lambda name: {"metadata": {
                "plugin": "postgres", "host": "127.0.0.1", "port": server.port,
                "database": "postgres", "user": "esdm", "schema": name}})
        yield found


def age():
    """Snapshots are deleted from half a second on."""
    time.sleep(0.6)


def test_overwriting__keeps_what_the_history_wants():
    with stores() as found:
        for changes in found:
            with Site(**changes("one")) as site:
                write("esdm://a.nc", "w", 0)
                for i in range(1, 6):
                    age()
                    write("esdm://a.nc", "a", i)
                expect(stored(site) < 1.5 * BYTES, f"{changes('')}: {stored(site)} bytes")
                expect(holds("esdm://a.nc", 5), f"{changes('')}: wrong values")
                run([tool("esdm-fsck"), "--data"])
            with Site(history=3, **changes("three")) as site:
                write("esdm://a.nc", "w", 0)
                for i in range(1, 6):
                    age()
                    write("esdm://a.nc", "a", i)
                expect(2.5 * BYTES < stored(site) < 4.5 * BYTES, f"{changes('')}: {stored(site)} bytes")
                shown = json.loads(run([tool("esdm-stat"), "--json", "a.nc"]).stdout)
                snapshots = [s["snapshot"] for s in shown["containers"][0]["snapshots"]]
                expect(len(snapshots) >= 3, f"{snapshots}")
                run([tool("esdm-fsck"), "--data"])


def test_overwriting__leaves_a_reader_its_snapshot():
    with Site() as site:
        write("esdm://a.nc", "w", 0)
        age()
        reader = subprocess.Popen([tool("esdm-run"), "/usr/bin/python3", "-c", HOLD, "esdm://a.nc", "0"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                  env=client_environment())
        try:
            expect(reader.stdout.readline() == "open\n", "it does not read")
            write("esdm://a.nc", "a", 1)
            age()
            write("esdm://a.nc", "a", 2)
            reader.stdin.write("\n")
            reader.stdin.close()
            expect(reader.wait(60) == 0, "the reader's data changed or are gone")
        finally:
            reader.kill()
            reader.wait()
            reader.stdout.close()
        expect(holds("esdm://a.nc", 2), "wrong values")
        # What the reader held esdm-gc frees.
        run([tool("esdm-gc"), "--age", "0", "--yes"])
        expect(stored(site) < 1.5 * BYTES, f"{stored(site)} bytes")


def test_overwriting__of_a_part_loses_nothing():
    program = """
import netCDF4, sys, numpy as np
with netCDF4.Dataset("esdm://a.nc", "a") as f:
    f["v"][0] = -1
    f["v"][499] = -1
    f["v"][:, ::2] = -2
"""
    check = """
import netCDF4, sys, numpy as np
want = np.random.default_rng(1).random((500, 1000))
want[0] = want[499] = -1
want[:, ::2] = -2
with netCDF4.Dataset("esdm://a.nc") as f:
    sys.exit(0 if (f["v"][:] == want).all() else 7)
"""
    with Site() as site:
        write("esdm://a.nc", "w", 0)
        age()
        write("esdm://a.nc", "a", 1)
        age()
        client(["/usr/bin/python3", "-c", program])
        client(["/usr/bin/python3", "-c", check])
        run([tool("esdm-fsck"), "--data"])
        expect(stored(site) >= BYTES, "gone")


def test_former__with_postgres():
    with stores() as found:
        for changes in found[1:]:
            with Site(**changes("former")) as site:
                write("esdm://a.nc", "w", 1)
                write("esdm://a.nc", "w", 2)
                run([tool("esdm-restore"), "--yes", "a.nc"])
                expect(holds("esdm://a.nc", 1), "not the former one")
                run([tool("esdm-restore"), "--yes", "a.nc"])
                expect(holds("esdm://a.nc", 2), "not undone")
                run([tool("esdm-cp"), "esdm://a.nc", "esdm://b.nc"])
                client(["ncks", "-O", "-h", "esdm://b.nc", "esdm://a.nc"])
                run([tool("esdm-rm"), "a.nc"])
                kept = json.loads(run([tool("esdm-ls"), "--replaced", "--json"]).stdout)["replaced"]
                expect([k["was"] for k in kept] == ["replaced", "replaced", "removed"], f"{kept}")
                run([tool("esdm-fsck"), "--data"])
                run([tool("esdm-rm"), "--for-good", "a.nc", "b.nc"])
                expect(site.pack_files() == [], f"{site.pack_files()}")


def test_check__tells_numbers():
    with Site() as site:
        write("esdm://a.nc", "w", 1)
        write("esdm://a.nc", "w", 2)
        write("esdm://exp/b.nc", "w", 3)
        health = json.loads(run([tool("esdm-mkfs"), "--check", "--json"]).stdout)["health"]
        expect(health["errors"] == 0 and health["containers"] == 2, f"{health}")
        expect(health["raw_bytes"] == 2 * BYTES and health["stored_bytes"] > BYTES, f"{health}")
        expect(health["replaced"]["containers"] == 1, f"{health}")
        user = run(["id", "-un"]).stdout.strip()
        expect([u["user"] for u in health["users"]] == [user], f"{health['users']}")
        expect(health["users"][0]["raw_bytes"] == 2 * BYTES, f"{health['users']}")
        expect([a["within"] for a in health["ages"]] == ["day", "week", "month", "year", "older"]
               and health["ages"][0]["containers"] == 2 and health["ages"][4]["containers"] == 0,
               f"{health['ages']}")
        (target,) = health["targets"]
        expect(target["name"] == "disk" and target["status"] == "ok" and target["packs"] == 3 and
               target["used_bytes"] == stored(site) and
               0 < target["free_bytes"] < target["total_bytes"], f"{target}")
        expect(health["metadata"]["status"] == "ok", f"{health}")
        site.pack_files()[0].unlink()
        done = run([tool("esdm-mkfs"), "--check", "--json"], check=False)
        expect_error(done, "are not there")
        health = json.loads(done.stdout)["health"]
        expect(health["errors"] == 1 and health["targets"][0]["status"] != "ok" and
               "are not there" in health["targets"][0]["message"], f"{health}")


if __name__ == "__main__":
    main(*[f for n, f in sorted(globals().items()) if n.startswith("test_")])
