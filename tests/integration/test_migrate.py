#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-mkfs --migrate: the catalogue of a site moves between metadata stores, and nothing is lost
or open twice, whatever gets in the way."""

import json
import random
import sqlite3
import subprocess
import time

from esdmtest import (SEED, Site, by_build, by_size, client, client_environment, environment, expect,
                      expect_error, main, need_data, run, tool)
from postgres import Server, skip_without_postgres


def postgres(server, schema="esdm"):
    return {"plugin": "postgres", "host": "127.0.0.1", "port": server.port, "database": "postgres",
            "user": "esdm", "schema": schema}


def write_config(made, name, metadata, **changes):
    """A configuration of the same site with other metadata."""
    config = json.loads(made.config.read_text())
    config.update(metadata=metadata, **changes)
    path = made.file(name)
    path.write_text(json.dumps(config))
    return str(path)


def migrate(*arguments, **options):
    return run([tool("esdm-mkfs"), "--migrate", *arguments], check=False, **options)


def expect_success(done):
    expect(done.returncode == 0, f"{done.args}: {done.stdout}{done.stderr}")
    return done


def in_site(config, command, check=True, esdm_client=False):
    env = environment({"ESDM_CONFIG": config})
    if esdm_client:
        return client(command, check=check, env=env)
    return run(command, check=check, env=env)


HISTORY = """
import netCDF4, numpy
for n in range(3):
    d = netCDF4.Dataset(f"esdm://grown/{n}.nc", "w")
    d.institution = "T\\u00fcbingen"
    d.createDimension("t", None); d.createDimension("x", 50)
    v = d.createVariable("v", "f4", ("t", "x"))
    v.units = "K"; v.valid_range = numpy.array([1.5, float("inf")], "f8")
    for t in range(15):
        v[t] = numpy.arange(50) * (t + 1)
        d.sync()
        if t == 10:
            w = d.createVariable("later", str, ("x",))
    d.close()
"""


def fill():
    """Real files, containers with a history, one that is removed and one that is renamed."""
    for path in sorted(need_data("cmip6").rglob("*.nc"), key=lambda p: p.stat().st_size)[:4]:
        run([tool("esdm-cp"), path, f"esdm://real/{path.name}"])
    client(["/usr/bin/python3", "-c", HISTORY])
    run([tool("esdm-rm"), "esdm://grown/1.nc"])


def picture(config):
    """Everything that a user can see of the site."""
    names = in_site(config, [tool("esdm-ls")]).stdout.split()
    shown = {"names": names}
    for name in names:
        shown[name] = in_site(config, ["ncdump", f"esdm://{name}"], esdm_client=True).stdout
        stat = json.loads(in_site(config, [tool("esdm-stat"), "--json", f"esdm://{name}"]).stdout)
        shown[name + " stat"] = stat
    for query in ('units = "K"', 'institution = "T\u00fcbingen"', "valid_range > 1e300",
                  'standard_name = "air_temperature"'):
        shown[query] = in_site(config, [tool("esdm-find"), query], check=False).stdout
    return shown


def expect_same(before, after):
    for key, value in before.items():
        expect(after.get(key) == value, f"{key} differs:\n{value}\n{after.get(key)}")


def test_migrate__there_and_back():
    with Server() as server, Site(history=5) as site:
        old = str(site.config)
        fill()
        before = picture(old)
        expect(len(before["names"]) == 6 and before['units = "K"'], f"{before['names']}")
        new = write_config(site, "new.json", postgres(server))
        done = expect_success(migrate("--dry-run", old, new))
        expect("6 containers" in done.stdout, done.stdout)
        expect_same(before, picture(old))
        expect(server.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'esdm'") == ["0"],
               "the dry run has made a schema")
        done = expect_success(migrate(old, new))
        expect("copied and verified 6 containers" in done.stdout, done.stdout)
        expect_same(before, picture(new))
        expect_success(in_site(new, [tool("esdm-mkfs"), "--check"]))
        # The old store is closed, and nothing of the site can be removed by it.
        for command in ([tool("esdm-ls")], [tool("esdm-mkfs"), "--check"], [tool("esdm-mkfs")],
                        [tool("esdm-mkfs"), "--remove", "--yes"], [tool("esdm-rm"), "esdm://x"]):
            expect_error(in_site(old, command, check=False), "migrated", "new.json")
        expect_error(migrate(old, new), "migrated already")
        expect_same(before, picture(new))
        # Goes on, and back to a store of the first kind.
        in_site(new, [tool("esdm-rm"), "esdm://grown/0.nc"])
        in_site(new, ["/usr/bin/python3", "-c", HISTORY.replace("grown", "again")],
                esdm_client=True)
        before = picture(new)
        back = write_config(site, "back.json", {"plugin": "sqlite", "directory": "back"})
        expect_success(migrate(new, back))
        expect_same(before, picture(back))
        expect_error(in_site(new, [tool("esdm-ls")], check=False), "migrated", "back.json")
        expect_success(in_site(back, [tool("esdm-mkfs"), "--check"]))
        in_site(back, ["/usr/bin/python3", "-c", HISTORY], esdm_client=True)
        in_site(back, [tool("esdm-mkfs"), "--remove", "--yes"])
        expect(not site.packs.exists(), "packs are left")


def test_migrate__between_files_and_schemas():
    with Server() as server, Site() as site:
        client(["/usr/bin/python3", "-c", HISTORY])
        before = picture(str(site.config))
        steps = [str(site.config),
                 write_config(site, "a.json", {"plugin": "sqlite", "directory": "second"}),
                 write_config(site, "b.json", postgres(server, "one")),
                 write_config(site, "c.json", postgres(server, "two"))]
        for old, new in zip(steps, steps[1:]):
            expect_success(migrate(old, new))
            expect_same(before, picture(new))


def test_migrate__wrong_pairs_are_refused():
    with Server() as server, Site() as site:
        old = str(site.config)
        client(["/usr/bin/python3", "-c", HISTORY])
        before = picture(old)
        expect_error(migrate(old, old), "same metadata store")
        expect_error(migrate(old), "metadata")
        other = write_config(site, "other.json", postgres(server), targets=[
            {"name": "disk", "plugin": "posix", "directory": "elsewhere"}])
        expect_error(migrate(old, other), "target", "disk")
        with Site(metadata=postgres(server, "taken")) as second:
            taken = write_config(site, "taken.json", postgres(server, "taken"))
            expect_error(migrate(old, taken), "another site")
            del second
        gone = dict(postgres(server), port=1)
        expect_error(migrate(old, write_config(site, "gone.json", gone)), "refused")
        stated = write_config(site, "stated.json", postgres(server), site={"id": "0" * 32})
        expect_error(migrate(old, stated), "site.id")
        expect_same(before, picture(old))
        new = write_config(site, "new.json", postgres(server))
        expect_success(migrate(old, new))
        third = write_config(site, "third.json", {"plugin": "sqlite", "directory": "third"})
        expect_error(migrate(old, third), "migrated already")
        expect_same(before, picture(new))


def test_migrate__writers_are_refused_and_readers_go_on():
    writer = ("import netCDF4, sys\n"
              "d = netCDF4.Dataset('esdm://open.nc', 'w')\n"
              "d.createDimension('t', None)\n"
              "v = d.createVariable('v', 'f8', ('t',))\n"
              "v[0] = 1.0\nd.sync()\nprint('ready', flush=True)\nsys.stdin.readline()\n"
              "v[1] = 2.0\n"
              "try:\n    d.sync()\n    print('synced')\n"
              "except Exception as why:\n    print('refused')\n")
    with Server() as server, Site() as site:
        new = write_config(site, "new.json", postgres(server))
        with subprocess.Popen([tool("esdm-run"), "/usr/bin/python3", "-c", writer],
                              env=client_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as user:
            expect(user.stdout.readline() == "ready\n", "writer")
            expect_success(migrate(str(site.config), new))
            out, _ = user.communicate("\n", timeout=600)
            expect("refused" in out, f"a commit went into the closed store: {out}")
        done = in_site(new, ["ncdump", "esdm://open.nc"], esdm_client=True)
        expect("v = 1 ;" in done.stdout, done.stdout)


def test_migrate__interrupted_ones_are_completed():
    """Killed at any time: the site is open by one configuration at most, and a second call does
    what is left."""
    generator = random.Random(SEED)
    for round_number in range(by_size(by_build(1, 2), 3, 60)):
        to_postgres = round_number % 2 == 0
        with Server() as server, Site() as site:
            first = str(site.config)
            client(["/usr/bin/python3", "-c", HISTORY])
            before = picture(first)
            old, new = first, write_config(site, "new.json", postgres(server))
            if not to_postgres:
                expect_success(migrate(first, new))
                old, new = new, write_config(site, "back.json",
                                             {"plugin": "sqlite", "directory": "back"})
            victim = subprocess.Popen([tool("esdm-mkfs"), "--migrate", old, new],
                                      env=environment(), stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL)
            time.sleep(generator.random() * 0.25)
            victim.kill()
            victim.wait()
            usable = [config for config in (old, new)
                      if in_site(config, [tool("esdm-ls")], check=False).stdout.split()]
            expect(len(usable) <= 1, "both stores are open")
            done = migrate(old, new)
            expect(done.returncode == 0 or "migrated already" in done.stderr,
                   f"{done.stdout}{done.stderr}")
            expect_same(before, picture(new))
            expect_error(in_site(old, [tool("esdm-ls")], check=False), "migrated")


def test_migrate__failure_in_the_middle_leaves_the_site():
    with Server() as server, Site() as site:
        old = str(site.config)
        client(["/usr/bin/python3", "-c", HISTORY])
        before = picture(old)
        new = write_config(site, "new.json", postgres(server))
        # An index page is lost for a while.
        database = sqlite3.connect(site.file("metadata") / "catalogue.sqlite")
        pages = "FROM page_data WHERE page >> 32 = (SELECT max(container) FROM container)"
        rows = database.execute("SELECT * " + pages).fetchall()
        with database:
            database.execute("DELETE " + pages)
        expect_error(migrate(old, new), "nothing was migrated", "no index page")
        expect_error(in_site(new, [tool("esdm-ls")], check=False), "target of a migration")
        expect_error(in_site(new, [tool("esdm-mkfs"), "--remove", "--yes"], check=False),
                     "target of a migration")
        with database:
            database.executemany("INSERT INTO page_data VALUES(?, ?, ?)", rows)
        database.close()
        expect_same(before, picture(old))
        client(["/usr/bin/python3", "-c", HISTORY.replace("grown", "meanwhile")])
        run([tool("esdm-rm"), "esdm://grown/0.nc"])
        before = picture(old)
        expect_success(migrate(old, new))
        expect_same(before, picture(new))


def test_migrate__clones_go_on_sharing():
    with Server() as server, Site(history=5) as site:
        old = str(site.config)
        client(["/usr/bin/python3", "-c", HISTORY.replace("50", "900")])
        for source, target in (("grown/0.nc", "b.nc"), ("b.nc", "c.nc"), ("grown/1.nc@-1", "d.nc")):
            run([tool("esdm-cp"), "--reflink", f"esdm://{source}", f"esdm://{target}"])
        run([tool("esdm-tag"), "esdm://b.nc", "cited"])
        new = write_config(site, "new.json", postgres(server))
        back = write_config(site, "back.json", {"plugin": "sqlite", "directory": "back"})
        before = picture(old)
        for here, there, gone in ((old, new, "grown/0.nc"), (new, back, "b.nc")):
            expect_success(migrate(here, there))
            expect_same(before, picture(there))
            if gone == "b.nc":
                in_site(there, [tool("esdm-tag"), "--remove", "esdm://b.nc", "cited"])
            in_site(there, [tool("esdm-rm"), "--yes", "--for-good", gone])
            in_site(there, [tool("esdm-gc"), "--yes", "--age=0"])
            names = [name for name in before["names"] if name != gone]
            before = {"names": names, **{name: before[name] for name in names}}
            expect_same(before, picture(there))
            in_site(there, [tool("esdm-fsck"), "--data"])


if __name__ == "__main__":
    skip_without_postgres()
    main(test_migrate__clones_go_on_sharing,
         test_migrate__there_and_back,
         test_migrate__between_files_and_schemas,
         test_migrate__wrong_pairs_are_refused,
         test_migrate__writers_are_refused_and_readers_go_on,
         test_migrate__interrupted_ones_are_completed,
         test_migrate__failure_in_the_middle_leaves_the_site)
