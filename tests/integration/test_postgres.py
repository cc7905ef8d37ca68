#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Sites with their metadata in PostgreSQL: making them, errors, secrets, rights, real programs."""

import json
import os
import subprocess
from pathlib import Path

from esdmtest import (BUILD, Site, client, client_environment, environment, expect, expect_error, main,
                      need_data, run, tool)
from postgres import Server, skip_without_postgres

SECRET = "correct-horse-battery"


def metadata(server, **keys):
    return {"plugin": "postgres", "host": "127.0.0.1", "port": server.port, "database": "postgres",
            "user": "esdm", **keys}


def mkfs(*options, **changes):
    return run([tool("esdm-mkfs"), *options], check=False, **changes)


def expect_success(done):
    expect(done.returncode == 0, f"{done.args}: {done.stdout}{done.stderr}")
    return done


# ---- making and removing -------------------------------------------------------------------------

def test_postgres__makes_checks_and_removes():
    with Server() as server, Site(make=False, metadata=metadata(server, schema="mine")) as site:
        schemas = ("SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_|^information' "
                   "ORDER BY 1")
        done = expect_success(mkfs("--dry-run"))
        expect("schema mine" in done.stdout, done.stdout)
        expect(server.sql(schemas) == ["public"], "the dry run has made something")
        expect_error(mkfs("--check"), "esdm-mkfs")
        expect_success(mkfs())
        expect(server.sql(schemas) == ["mine", "public"], "no schema")
        expect_success(mkfs())
        expect_success(mkfs("--check"))
        server.sql("CREATE TABLE mine.notes(t text)")
        expect_success(mkfs("--remove", "--dry-run"))
        expect_success(mkfs("--check"))
        expect_success(mkfs("--remove", "--yes"))
        left = server.sql("SELECT relname FROM pg_class WHERE relnamespace = 'mine'::regnamespace "
                          "AND relkind IN ('r', 'S')")
        expect(left == ["notes"], f"left: {left}")
        functions = server.sql("SELECT count(*) FROM pg_proc WHERE pronamespace = "
                               "'mine'::regnamespace")
        expect(functions == ["0"], f"functions are left: {functions}")
        done = mkfs()
        expect_error(done, "notes", "another")
        server.sql("DROP TABLE mine.notes")
        expect_success(mkfs())
        expect_success(mkfs("--remove", "--yes"))
        expect(server.sql(schemas) == ["mine", "public"], "a schema that was found is gone")
        expect(not site.packs.exists(), "packs are left")


def test_postgres__sites_share_a_database():
    with Server() as server, Site(metadata=metadata(server, schema="one")) as one:
        source = one.file("x.cdl")
        source.write_text("netcdf x { dimensions: t = 2 ; variables: int v(t) ; "
                          "v:units = \"K\" ; data: v = 1, 2 ; }")
        client(["ncgen", "-o", "esdm://x.nc", source])
        with Site(metadata=metadata(server, schema="two")):
            expect(run([tool("esdm-ls")]).stdout == "", "sees the other site")
            client(["ncgen", "-o", "esdm://y.nc", source])
            expect_success(mkfs("--remove", "--yes"))
        expect(run([tool("esdm-ls")]).stdout.split() == ["x.nc"], "lost")
        # The schema of one with the packs of another.
        with Site(make=False, metadata=metadata(server, schema="one"), targets=[
                {"name": "disk", "plugin": "posix", "directory": "other"}]):
            expect_error(mkfs("--check"), "other")


# ---- errors --------------------------------------------------------------------------------------

def test_postgres__errors_name_the_cause():
    with Server(password=SECRET) as server:
        password = {"password": SECRET}
        server.sql("CREATE ROLE nobody LOGIN PASSWORD 'x'")
        server.sql("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
        cases = [
            ({"port": 1, **password}, ["127.0.0.1", "connection refused"]),
            ({"host": "no-such-host.invalid", **password}, ["no-such-host.invalid"]),
            ({"password": "wrong"}, ["password authentication failed", "~/.pgpass"]),
            ({}, ["no password supplied", "~/.pgpass"]),
            ({"database": "absent", **password}, ["absent", "createdb"]),
            ({"database": "latin", **password}, ["UTF8"]),
            ({"user": "nobody", "password": "x"}, ["GRANT CREATE"]),
            ({"schema": "Wrong Name", **password}, ["metadata: schema"]),
            ({"schema": "pg_own", **password}, ["metadata: schema"]),
            ({"hots": "x", **password}, ["metadata: unknown key", "host"]),
            ({"timeout": 1000, **password}, ["metadata: timeout"]),
            ({"database": "host=x", **password}, ["connection string"]),
            ({"connection": f"host=127.0.0.1 pass word={SECRET}"}, ["metadata: connection"]),
            ({"connection": f"host=127.0.0.1 {SECRET}"}, ["metadata: connection"]),
            ({"connection": f"postgresql://esdm:{SECRET}@x@127.0.0.1/"}, ["%40"]),
            ({"connection": f"postgresql://esdm:{SECRET}@127.0.0.1:port/", "host": None,
              "port": None}, ["metadata"]),
        ]
        env = environment({"HOME": str(server.folder), "PGPASSWORD": ""})
        for keys, words in cases:
            keys = {k: v for k, v in metadata(server, **keys).items() if v is not None}
            with Site(make=False, metadata=keys):
                done = mkfs(env=dict(env, ESDM_CONFIG=os.environ["ESDM_CONFIG"]))
                expect_error(done, *words)
                expect("metadata" in done.stderr, f"not named: {done.stderr}")
                expect(SECRET not in done.stdout + done.stderr, f"secret told: {done.stderr}")


def test_postgres__passwords_from_everywhere():
    with Server(password=SECRET) as server:
        home = server.folder / "home"
        home.mkdir()
        pgpass = home / ".pgpass"
        pgpass.write_text(f"127.0.0.1:{server.port}:postgres:esdm:{SECRET}\n")
        pgpass.chmod(0o600)
        (home / ".pg_service.conf").write_text(
            f"[climate]\nhost=127.0.0.1\nport={server.port}\ndbname=postgres\nuser=esdm\n"
            f"password={SECRET}\n")
        empty = server.folder / "empty"
        empty.mkdir()
        uri = f"postgresql://esdm:{SECRET}@127.0.0.1:{server.port}/postgres"
        service = {"plugin": "postgres", "connection": "service=climate"}
        cases = [(metadata(server), {"HOME": str(home)}),
                 (metadata(server), {"HOME": str(empty), "PGPASSWORD": SECRET}),
                 (metadata(server, password=SECRET), {"HOME": str(empty)}),
                 ({"plugin": "postgres", "connection": uri}, {"HOME": str(empty)}),
                 (service, {"HOME": str(home)})]
        for keys, env in cases:
            with Site(make=False, metadata=keys):
                env = environment(env)
                env["ESDM_CONFIG"] = os.environ["ESDM_CONFIG"]
                said = ""
                for options in ([], ["--check"], ["--remove", "--yes"]):
                    done = expect_success(mkfs(*options, env=env))
                    said += done.stdout + done.stderr
                expect(SECRET not in said, f"secret told: {said}")


def test_postgres__passwords_stay_in_the_configuration():
    """Not in the catalogue, not in packs, stubs or what programs say, however much they say."""
    with Server(password=SECRET) as server, \
            Site(make=False, metadata=metadata(server, password=SECRET)) as site:
        said = ""
        source = site.file("x.cdl")
        source.write_text("netcdf x { dimensions: t = 900 ; variables: double v(t) ; }")
        for command in ([tool("esdm-mkfs")], [tool("esdm-run"), "ncgen", "-o", "esdm://x.nc", source],
                        [tool("esdm-stat"), "--json", "x.nc"], [tool("esdm-ls"), "--json"],
                        [tool("esdm-mkfs"), "--check", "--json"],
                        [tool("esdm-mkfs"), "--calibrate=quick", "--seconds=1"],
                        [tool("esdm-stat"), "--explain", "x.nc"], [tool("esdm-fsck"), "--data"]):
            env = client_environment if command[0] == tool("esdm-run") else environment
            done = run(command, env=env({"ESDM_DEBUG": "1"}))
            said += done.stdout + done.stderr
        server.sql("CHECKPOINT")
        server.stop("fast")
        done = run([tool("esdm-ls")], check=False, env=environment({"ESDM_DEBUG": "1"}))
        expect_error(done, "metadata store")
        expect(SECRET not in said + done.stdout + done.stderr, f"secret told: {said}")
        files = [p for folder in (site.folder, server.data) for p in folder.rglob("*")
                 if p.is_file() and p != site.config]
        expect(len(files) > 100, f"{len(files)} files")
        for path in files:
            expect(SECRET.encode() not in path.read_bytes(), f"in {path}")


def test_postgres__newer_and_damaged_stores_are_refused():
    with Server() as server, Site(metadata=metadata(server)):
        server.sql("UPDATE esdm.store SET value = '99' WHERE key = 'format'")
        for command in ([tool("esdm-ls")], [tool("esdm-mkfs"), "--check"],
                        [tool("esdm-mkfs"), "--remove", "--yes"]):
            expect_error(run(command, check=False), "format 99", "newer")
        server.sql("DELETE FROM esdm.store WHERE key = 'format'")
        expect_error(run([tool("esdm-ls")], check=False), "does not tell its format")


def test_postgres__readers_and_writers_by_grant():
    with Server() as server, Site(metadata=metadata(server)) as site:
        server.sql("CREATE ROLE reader LOGIN; CREATE ROLE writer LOGIN; CREATE ROLE other LOGIN; "
                   "GRANT USAGE ON SCHEMA esdm TO reader, writer; "
                   "GRANT SELECT ON ALL TABLES IN SCHEMA esdm TO reader; "
                   "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA esdm TO writer; "
                   "GRANT USAGE ON ALL SEQUENCES IN SCHEMA esdm TO writer")
        source = site.file("x.cdl")
        source.write_text("netcdf x { dimensions: t = 2 ; variables: int v(t) ; "
                          "data: v = 1, 2 ; }")
        client(["ncgen", "-o", "esdm://x.nc", source])

        def as_user(user, command, check=True):
            config = json.loads(site.config.read_text())
            config["metadata"]["user"] = user
            path = site.file(f"{user}.json")
            path.write_text(json.dumps(config))
            env = client_environment if command[0] == tool("esdm-run") else environment
            return run(command, check=check, env=env({"ESDM_CONFIG": str(path)}))

        expect(as_user("reader", [tool("esdm-ls")]).stdout.split() == ["x.nc"], "reader")
        dump = as_user("reader", [tool("esdm-run"), "ncdump", "esdm://x.nc"]).stdout
        expect("v = 1, 2" in dump, dump)
        expect_error(as_user("reader", [tool("esdm-rm"), "esdm://x.nc"], check=False), "read")
        expect_error(as_user("reader", [tool("esdm-mkfs"), "--check"], check=False), "permission")
        expect_error(as_user("writer", [tool("esdm-mkfs"), "--remove", "--yes"], check=False),
                     "owner")
        as_user("writer", [tool("esdm-run"), "ncgen", "-o", "esdm://y.nc", source])
        as_user("writer", [tool("esdm-rm"), "esdm://x.nc"])
        expect(as_user("reader", [tool("esdm-ls")]).stdout.split() == ["y.nc"], "reader")
        expect_error(as_user("other", [tool("esdm-ls")], check=False), "permission denied")


# ---- real programs -------------------------------------------------------------------------------

def real_files(count):
    return sorted(need_data("cmip6").rglob("*.nc"), key=lambda p: p.stat().st_size)[:count]


def dump(path):
    text = client(["ncdump", path]).stdout if str(path).startswith("esdm:") \
        else run(["ncdump", path]).stdout
    return text.split("\n", 1)[1]


def test_postgres__real_files_come_back():
    with Server() as server, Site(metadata=metadata(server)) as site:
        for source in real_files(3):
            name = source.name
            run([tool("esdm-cp"), source, f"esdm://cp/{name}"])
            client(["nccopy", source, f"esdm://nccopy/{name}"])
            expect(dump(f"esdm://cp/{name}") == dump(source), f"esdm-cp: {name} differs")
            expect(dump(f"esdm://nccopy/{name}") == dump(source), f"nccopy: {name} differs")
            run([tool("esdm-cp"), f"esdm://nccopy/{name}", site.file("back.nc"), "--force"])
            expect(dump(site.file("back.nc")) == dump(source), f"back: {name} differs")
        found = run([tool("esdm-find"), "units = \"K\" and experiment_id = \"historical\""]).stdout
        wanted = {f"{how}/{p.name}:/ta" for how in ("cp", "nccopy") for p in real_files(3)}
        expect(set(found.split()) == wanted, f"found: {found}")
        run([tool("esdm-mkfs"), "--check"])


# ---- questions ----------------------------------------------------------------------------------

CONTAINERS = 20000


def fill(server):
    """Containers of one model each ten, with two variables each; without statistics."""
    def objects(dataset, path, **texts):
        names = ", ".join(f"'{name}'" for name in texts)
        pairs = ", ".join(f"'{name}', jsonb_build_array({text})" for name, text in texts.items())
        server.sql(f"INSERT INTO esdm.object SELECT g, {dataset}, {path}, jsonb_build_object("
                   f"'n', jsonb_build_array({names}), 's', jsonb_build_object({pairs})) "
                   f"FROM generate_series(1, {CONTAINERS}) g")
    server.sql("INSERT INTO esdm.container SELECT g, 'run' || g, 'u', 1, 1, 1, 1, 1, 1, 0, 0, 0, 2 "
               f"FROM generate_series(1, {CONTAINERS}) g")
    objects(0, "NULL", model="'model-' || g / 10", project="'CMIP6'")
    objects(1, "'/tas'", units="'K'")
    objects(2, "'/pr'", units="'mm'")


def rows_read(server):
    """Rows of the table of attributes that were read, of sessions that have ended."""
    server.wait_until_gone(server.sessions())
    return int(server.sql("SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables "
                          "WHERE relname = 'object'")[0])


def test_postgres__questions_begin_with_what_is_rare():
    with Server() as server, Site(metadata=metadata(server)):
        fill(server)
        for question, found in (("units = K and model = model-77", 10),
                                ("model = model-77 and units = K", 10),
                                ("project = CMIP6 and units ~ K* and model = model-77", 10),
                                ("project = CMIP6 and model = model-77", 10)):
            read = []
            for _ in range(3):  # what is rare is learned from a sample that is drawn by chance
                before = rows_read(server)
                done = run([tool("esdm-find"), "--json", question], check=False)
                count = len(json.loads(done.stdout)["matches"])
                expect(count == found, f"{question}: {count}")
                read.append(rows_read(server) - before)
                if read[-1] < CONTAINERS / 4:
                    break
            expect(read[-1] < CONTAINERS / 4, f"{question}: {read} rows were read")


def test_postgres__a_program_asks_once_what_the_store_is():
    """What was told to who asks for the site's id is not asked again; on a machine that waits long in between it is."""
    with Server(log_statement="all", log_min_messages="log") as server, Site(metadata=metadata(server)):
        def questions():
            before = server.log.read_text(errors="replace").count("has_sequence_privilege(")
            run([tool("esdm-ls")])
            return server.log.read_text(errors="replace").count("has_sequence_privilege(") - before

        asked = 0
        for _ in range(30):
            asked = questions()
            expect(asked > 0, "the server was not asked")
            if asked == 1:
                break
        expect(asked == 1, f"each program asks {asked} times what the store is")


def test_postgres__other_programs_do_not_load_libpq():
    with Server() as server, Site(metadata=metadata(server)):
        command = ["/usr/bin/python3", "-c",
                   "import netCDF4; d = netCDF4.Dataset('esdm://x.nc', 'w'); d.close(); "
                   "print('libpq' in open('/proc/self/maps').read())"]
        expect(client(command).stdout.strip() == "True", "libpq is not loaded")
        with Site():
            expect(client(command).stdout.strip() == "False", "libpq is loaded without need")


def test_postgres__two_nodes_append_to_one_container():
    append = ("import netCDF4, sys\n"
              "d = netCDF4.Dataset('esdm://shared.nc', 'a')\n"
              "me = int(sys.argv[1])\n"
              "for i in range(40):\n"
              "    d['v'][i, me] = 1000 * me + i\n"
              "    d.sync()\n"
              "d.close()\n")
    check = ("import netCDF4\n"
             "v = netCDF4.Dataset('esdm://shared.nc')['v'][:]\n"
             "print(all(v[i, me] == 1000 * me + i for me in range(3) for i in range(40)))\n")
    with Server() as server, Site(metadata=metadata(server)):
        client(["/usr/bin/python3", "-c",
                "import netCDF4\nd = netCDF4.Dataset('esdm://shared.nc', 'w')\n"
                "d.createDimension('t', None); d.createDimension('x', 3)\n"
                "d.createVariable('v', 'f8', ('t', 'x'))\nd.close()"])
        nodes = [subprocess.Popen([tool("esdm-run"), "/usr/bin/python3", "-c", append, str(i)],
                                  env=client_environment(), stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True) for i in range(3)]
        for node in nodes:
            out, _ = node.communicate(timeout=600)
            expect(node.returncode == 0, out)
        done = client(["/usr/bin/python3", "-c", check])
        expect(done.stdout.strip() == "True", "values are lost")


def test_postgres__appenders_of_the_same_records_are_told():
    with Server() as server, Site(metadata=metadata(server)):
        template = Path(os.environ["ESDM_CONFIG"])
        text = json.loads(template.read_text())
        text["metadata"] = metadata(server, schema="t@hex@")
        text["targets"] = [{"name": "disk", "plugin": "posix", "directory": "packs"}]
        text.pop("site", None)
        site = template.parent / "template.json"
        site.write_text(json.dumps(text))
        run([BUILD / "tests/integration/integration_appenders"],
            env={**environment(), "ESDM_TEST_SITE": str(site)})


if __name__ == "__main__":
    skip_without_postgres()
    main(test_postgres__makes_checks_and_removes,
         test_postgres__sites_share_a_database,
         test_postgres__errors_name_the_cause,
         test_postgres__passwords_from_everywhere,
         test_postgres__passwords_stay_in_the_configuration,
         test_postgres__newer_and_damaged_stores_are_refused,
         test_postgres__readers_and_writers_by_grant,
         test_postgres__real_files_come_back,
         test_postgres__questions_begin_with_what_is_rare,
         test_postgres__a_program_asks_once_what_the_store_is,
    test_postgres__other_programs_do_not_load_libpq,
         test_postgres__two_nodes_append_to_one_container,
         test_postgres__appenders_of_the_same_records_are_told)
