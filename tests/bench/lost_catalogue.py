#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""How long a lost catalogue takes to come back, and whether all containers do: by the journals alone, and
by a backup and the journals since. On files, Kyoto Cabinet, S3 and PostgreSQL; not in ctest.

    PYTHONPATH=tests/support ESDM_BUILD=build tests/bench/lost_catalogue.py [CONTAINERS [STORE…]]

Stores: posix, kv, s3, postgresql; the default is all.
"""

import json
import pathlib
import shutil
import sqlite3
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "faults"))
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from esdmtest import Site, client, expect, run, tool  # noqa: E402
from postgres import Server  # noqa: E402
from s3server import Server as S3Server  # noqa: E402
from stores import s3_site  # noqa: E402

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
SAMPLE = 20  # whose values are read
SQLITE = {"plugin": "sqlite", "directory": "metadata"}
POSIX = {"name": "disk", "plugin": "posix", "directory": "packs"}

WRITE = """
import netCDF4, numpy, sys
for n in range(int(sys.argv[1]), int(sys.argv[2])):
    d = netCDF4.Dataset(f"esdm://run/{n}.nc", "w"); d.number = n
    d.createDimension("t", None); d.createDimension("x", 600)
    v = d.createVariable("v", "f4", ("t", "x"))
    for t in range(3):
        v[t] = numpy.arange(600) + 1000 * n + t
        d.sync()
    d.close()
"""
CHECK = """
import netCDF4, numpy, sys
for n in map(int, sys.argv[1:]):
    d = netCDF4.Dataset(f"esdm://run/{n}.nc")
    assert d.number == n and d["v"].shape == (3, 600)
    for t in range(3):
        assert (d["v"][t] == (numpy.arange(600) + 1000 * n + t).astype("f4")).all()
    d.close()
"""


def write(first, last):
    client(["/usr/bin/python3", "-c", WRITE, str(first), str(last)])


def listed():
    told = json.loads(run([tool("esdm-ls"), "--json"]).stdout)
    return {c["name"]: {k: v for k, v in c.items() if k != "snapshots"} for c in told["containers"]}


def come_back(where, how, lose):
    before = listed()
    lose()
    start = time.monotonic()
    done = json.loads(run([tool("esdm-mkfs"), "--restore", "--json"]).stdout)["result"]
    seconds = time.monotonic() - start
    expect(done["lost"] == 0 and done["incomplete"] == 0, f"{where}: {done}")
    expect(listed() == before, f"{where}, {how}: other containers")
    client(["/usr/bin/python3", "-c", CHECK,
            *map(str, range(0, len(before), max(1, len(before) // SAMPLE)))])
    run([tool("esdm-mkfs"), "--check"])
    print(f"{where:22} {how:24} {len(before):6} containers {done['commits']:6} commits of journals "
          f"{seconds:7.2f} s", flush=True)


def measure(where, lose, age):
    start = time.monotonic()
    write(0, COUNT)
    print(f"{where:22} {'written':24} {COUNT:6} containers {time.monotonic() - start:35.2f} s", flush=True)
    come_back(where, "journals alone", lose)
    write(COUNT, COUNT + 1)  # from now on the site knows when a backup was due
    age()
    write(COUNT + 1, COUNT + 2)  # makes a backup
    write(COUNT + 2, COUNT + COUNT // 10 + 2)
    come_back(where, "backup and journals", lose)


def age_sqlite(site):
    with sqlite3.connect(site.file("metadata/catalogue.sqlite")) as database:
        database.execute("UPDATE store SET value = '1000' WHERE key = 'fact:esdm/backup'")
    database.close()


def on_sqlite(where, site):
    measure(where, lambda: shutil.rmtree(site.file("metadata")), lambda: age_sqlite(site))


def on_files():
    with Site(targets=[POSIX], metadata=SQLITE) as site:
        on_sqlite("posix, sqlite", site)


def on_kyoto_cabinet():
    with Site(targets=[{"name": "kv", "plugin": "kv", "directory": "kv"}], metadata=SQLITE) as site:
        on_sqlite("kyoto cabinet, sqlite", site)


def on_s3():
    with S3Server() as server, s3_site(server, metadata=SQLITE) as site:
        on_sqlite("s3, sqlite", site)


def on_postgresql():
    with Server() as server:
        metadata = {"plugin": "postgres", "host": "127.0.0.1", "port": server.port,
                    "database": "postgres", "user": "esdm", "schema": "lost"}
        with Site(targets=[POSIX], metadata=metadata):
            measure("posix, postgresql", lambda: server.sql("DROP SCHEMA lost CASCADE"),
                    lambda: server.sql("UPDATE lost.store SET value = '1000' WHERE key = 'fact:esdm/backup'"))


STORES = {"posix": on_files, "kv": on_kyoto_cabinet, "s3": on_s3, "postgresql": on_postgresql}
for store in sys.argv[2:] or STORES:
    STORES[store]()
