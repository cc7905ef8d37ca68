# SPDX-License-Identifier: LGPL-3.0-or-later
"""What tests of lost catalogues share: sites, what is in them, losing and restoring."""

import json
import shutil
import sqlite3

from esdmtest import BUILD, SANITIZE, Site, client, client_environment, expect, run, sanitizer_preload, tool


MKFS = tool("esdm-mkfs")
JOURNAL = "0" * 24 + "6a6f7572"  # of packs
SQLITE = {"plugin": "sqlite", "directory": "metadata"}
POSIX = {"name": "disk", "plugin": "posix", "directory": "packs"}

WRITE = """
import netCDF4, numpy, sys
first, last, steps = map(int, sys.argv[1:])
for n in range(first, last):
    d = netCDF4.Dataset(f"esdm://exp/{n}.nc", "w")
    d.number = n
    d.createDimension("t", None); d.createDimension("x", 600)
    v = d.createVariable("v", "f4", ("t", "x")); v.units = "K"
    s = d.createVariable("s", "i4", ("t",))
    for t in range(steps):
        v[t] = numpy.arange(600) + 1000 * n + t
        s[t] = n + t
        d.sync()
        if t == 1:
            w = d.createVariable("late", "f8", ("x",)); w[:] = n
    d.close()
"""


def write(first, last, steps=3):
    client(["/usr/bin/python3", "-c", WRITE, str(first), str(last), str(steps)])


def contents(site):
    """All containers and branches as text."""
    out, names = site.file("out"), listed()
    run([tool("esdm-cp"), "-q", "-r", "esdm://", out])
    for name in names:
        if "@" in name:
            run([tool("esdm-cp"), "-q", f"esdm://{name}", out / name])
    dumped = {name: run(["ncdump", out / name]).stdout.split("{", 1)[1] for name in names}
    shutil.rmtree(out)
    return dumped


def listed():
    """Name to what esdm-ls says of it."""
    told = json.loads(run([tool("esdm-ls"), "--json"]).stdout)
    return {c["name"]: c for c in told["containers"]}


def facts(told):
    """What must be the same afterwards."""
    return {name: {k: v for k, v in c.items() if k not in ("snapshots",)}
            for name, c in told.items()}


def lose(site):
    shutil.rmtree(site.file("metadata"))


def restore(*options):
    return run([MKFS, "--restore", *options], check=False)


def expect_restored(done, status=0):
    expect(done.returncode == status, f"status {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def check_sound():
    run([tool("esdm-fsck"), "--data"])
    run([MKFS, "--check"])


def sqlite_site(**changes):
    return Site(targets=[POSIX], metadata=SQLITE, **changes)


def age_backups(site):
    """The next program that commits makes a backup."""
    with sqlite3.connect(site.file("metadata/catalogue.sqlite")) as database:
        database.execute("UPDATE store SET value = '1000' WHERE key = 'fact:esdm/backup'")
    database.close()


def backups(site):
    return sorted(site.packs.rglob("0" * 24 + "6261636b-*"))


def at_clock(seconds):
    """The environment of a program on a node whose clock is ahead by that."""
    clock = BUILD / "tests/support/esdm-test-clock.so"
    expect(clock.exists(), f"{clock} is missing")
    env = client_environment({"ESDM_TEST_CLOCK_S": str(seconds)})
    first = sanitizer_preload() + ":" if SANITIZE else ""
    return env | {"LD_PRELOAD": f"{first}{clock}"}
