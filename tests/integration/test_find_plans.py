#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Queries to PostgreSQL are answered by its indexes: the plans that the server itself made for them, with the
rows that it touched, whether it knows how large its tables are or not."""

import fnmatch
import json
import pathlib
import re
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from esdmtest import BUILD, SOURCE, Site, client, client_environment, expect, main, run, tool  # noqa: E402
from postgres import Server, binaries, skip_without_postgres  # noqa: E402

CONTAINERS = 20_000

# One of each `tracking`, ten of each `model`, 66 of each `day` and `night`, 1,053 of each `member` and `rank` and
# 1,177 of each `run`, all of `project`; two variables each, a time range of ten days that begins a day later each time, values, and
# a box that moves around the earth.
FILL = """
CREATE TEMP TABLE g AS SELECT i FROM generate_series(1, {n}) AS i;
INSERT INTO esdm.container SELECT i, 'run' || i, 'u', 1, 1, 1, 1, 1, 1, 0, 0, 0, 2 FROM g;
INSERT INTO esdm.object SELECT i, 0, NULL, jsonb_build_object('n', jsonb_build_array('tracking', 'model', 'project', 'member',
    'run', 'day', 'night', 'rank'),
    'd', jsonb_build_object('rank', jsonb_build_array(i % 19)), 'f', jsonb_build_object('rank', jsonb_build_array((i % 19)::text)),
    's', jsonb_build_object('tracking', jsonb_build_array('id-' || i),
        'model', jsonb_build_array('model-' || i / 10), 'project', jsonb_build_array('CMIP6'),
        'member', jsonb_build_array('member-' || i % 19), 'run', jsonb_build_array('run-' || i % 17),
        'day', jsonb_build_array('day-' || i % 300), 'night', jsonb_build_array('night-' || i % 301))) FROM g;
INSERT INTO esdm.object SELECT i, 1, '/tas', jsonb_build_object('n', jsonb_build_array('units', 'level', '@type'),
    's', jsonb_build_object('units', jsonb_build_array('K'), '@type', jsonb_build_array('float')),
    'd', jsonb_build_object('level', jsonb_build_array(i + 0.5)),
    'f', jsonb_build_object('level', jsonb_build_array((i + 0.5)::text))) FROM g;
INSERT INTO esdm.object SELECT i, 2, '/pr', jsonb_build_object('n', jsonb_build_array('units'),
    's', jsonb_build_object('units', jsonb_build_array(i % 3 || ' mm'))) FROM g;
INSERT INTO esdm.extent SELECT i, 0, x.name, x.value, x.text, 0 FROM g CROSS JOIN LATERAL (VALUES
    ('@time_min', 12 * 31 * 1970 + i - 1.0, NULL), ('@time_max', 12 * 31 * 1970 + i + 9, NULL), ('@grid', NULL, 'regular'),
    (E'@max:tas\\tK', i, NULL), (E'@min:tas\\tK', i - 100, NULL), ('@length:time', i % 1000, NULL),
    ('@lat_min', i % 160 - 80, NULL), ('@lat_max', i % 160 - 79, NULL),
    ('@lon_min', (i * 7) % 359 - 180, NULL), ('@lon_max', (i * 7) % 359 - 179, NULL)) AS x(name, value, text);
"""

# Expression, containers and variables that are found, and rows that may be touched.
QUESTIONS = [
    ("tracking = id-777", 1, 50),
    ("tracking = id-777 and project = CMIP6", 1, 100),
    ("tracking = id-777 or tracking = id-9", 2, 50),
    ("member = member-1 and run = run-9", 62, 500),
    ("day = day-77 and night = night-77", 1, 50),
    # Python asks why: some containers tell that there are such names
    ("day = day-77 and night = night-none", 0, 450),
    ("units = K and model = model-none", 0, 450),
    ("tas:units = none", 0, 450),
    ("box overlaps -180,45,-100,65 and model = model-none", 0, 900),
    ("day = day-77 and night = night-77 and units = K", 1, 60),
    ("day = day-77 and night = night-77 and (units = K or model = model-7)", 2, 60),
    ("tracking in (id-1, id-2, id-3) and project = CMIP6", 3, 100),
    ("(tracking = id-777 or tracking = id-9) and (units = K or model = model-77)", 3, 200),
    ("model = model-77 and not (tracking = id-777 or project = CMIP5)", 9, 300),
    ("model = model-77 and not tracking = id-777 and units = K", 9, 300),
    ("max(tas) > 19990 K", 10, 48),
    ("max(tas) > 19716.85 degC", 10, 48),
    ("min(tas) < -97", 2, 100),
    ("min(tas) < -97 or max(tas) > 19998", 4, 100),
    ("level = 777.5", 1, 50),
    ("length(time) >= 999 and model = model-99", 1, 700),
    ("time overlaps 1970-01-01 .. 1970-01-05", 5, 700),
    ("time overlaps 1970-01-01 .. 1970-01-05 and model = model-0", 5, 700),
    (":time overlaps 1970-01-01 .. 1970-01-05 and units = K", 5, 900),
    ("box overlaps -180,45,-100,65 and model = model-77", 10, 700),
    # both ends of ranges in the midst of all
    ("time overlaps 1990-01-01 .. 1990-01-03", 13, 300),
    ("time overlaps 1990-01-01 .. 1990-01-03 and box overlaps -180,-90,180,90", 13, 400),
    ("box overlaps 10,10,10.5,10.5", None, 500),
    ("time overlaps 1980 .. 2000 and box overlaps 10,10,10.5,10.5", None, 500),
    ("(time overlaps 1990-01-01 .. 1990-01-03 or tracking = id-777) and box overlaps -180,-90,180,90", 14, 600),
    ("grid = regular and tracking = id-777", 1, 100),
    ("(time overlaps 1970-01-01 .. 1970-01-05 or tracking = id-777) and project = CMIP6", 6, 1500),
    ("member = member-1 and time overlaps 1990-01-01 .. 1992-11-30", 57, 2600),
    ("member = member-1 and time overlaps 1990-01-01 .. 1992-11-30 and night = night-225", 1, 1500),
]

# Expression, containers that are found, and how: texts are compared where they lie; marks of attributes beside times, or
# the list of an attribute meets that of times, before any container is looked up.
HOW = [
    ("member = member-1 and time overlaps 1990-01-01 .. 1992-11-30", 57, "get_bit"),
    ("member in (member-1, member-2) and time overlaps 1990-01-01 .. 1990-06-30", 21, "get_bit"),
    ("member = member-1 and time overlaps 1990-01-01 .. 1992-11-30", 57, "e.span[1])[0] >="),  # both ends are after it
    ("rank = 1 and time overlaps 1990-01-01 .. 1992-11-30", 57, "hashed SubPlan"),  # numbers have no marks
    ("max(tas) > 19990 K and project = CMIP6", 10, "get_bit"),  # before any object is looked up
    ("max(tas) > 19990 K and project = CMIP6", 10, "Index Scan using object_pkey on object"),  # one row each: no bitmap
    ("tracking ~ id-77* and model = model-77", 10, "jsonb_path_exists"),
    ("day ~ day-77* and night = night-77", 1, "@? "),  # the values that match
    ("day =~ ^day-7[7]$ and night = night-77", 1, "@? "),
    ("tracking ~ 'id-7\"*' and model = model-77", 0, "jsonb_path_exists"),
    ("tracking ~ i*-77? and model = model-77", 10, "jsonb_array_elements_text"),
    ("tracking =~ '^id-77[0-4]' and model = model-77", 5, "jsonb_path_exists"),
]


ASK = """
import sys
import esdm
for line in sys.stdin:
    print(len(list(esdm.find(line.strip()))), flush=True)
"""


class Asker:
    """A program that asks one question after the other."""

    def __enter__(self):
        env = client_environment({"PYTHONPATH": str(SOURCE / "python"),
                                  "ESDM_LIBRARY_DIR": f"{BUILD}:{BUILD / 'netcdf-plugin'}"})
        self.process = subprocess.Popen(["/usr/bin/python3", "-c", ASK], env=env, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def ask(self, question):
        self.process.stdin.write(question + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        expect(answer != "", f"{question}: no answer")
        return int(answer)


def check(server, asker, expression, found, most):
    at = server.log.stat().st_size
    count = asker.ask(expression)
    # What a session logs stands there when it has answered.
    text = server.log.read_bytes()[at:].decode(errors="replace")
    expect(count == found or found is None and count > 0, f"{expression}: {count} found")
    expect("Query Text" in text, f"{expression}: no plan in the log: {text[-500:]}")
    scans = re.findall(r"Seq Scan on (?:esdm\.)?(\w+)", text)
    expect(not set(scans) & {"object", "extent", "container", "snapshot", "page"},
           f"{expression}: goes through {scans}: {text}")
    touched = sample = 0
    for kind, rows, loops in re.findall(r"(\w+) Scan (?:using|on) .*\(actual [^)]*rows=(\d+) loops=(\d+)\)", text):
        if kind == "Function":  # numbers of the pages
            continue
        if kind in ("Sample", "Range"):
            sample += int(rows) * int(loops)
        else:
            touched += int(rows) * int(loops)
    for count in re.findall(r"Rows Removed by (?:Filter|Index Recheck): (\d+)", text):
        touched += int(count)
    expect(sample < CONTAINERS / 2, f"{expression}: a sample of {sample}")
    expect(0 < touched <= most, f"{expression}: touches {touched} rows, more than {most}: {text}")


def test_plans__questions_are_answered_by_indexes():
    skip_without_postgres()
    if not (binaries().parent / "lib" / "auto_explain.so").exists():
        print("SKIPPED: the server has no auto_explain")
        sys.exit(77)
    settings = {"session_preload_libraries": "auto_explain", "auto_explain.log_min_duration": "0",
                "auto_explain.log_analyze": "on", "auto_explain.log_timing": "off", "log_min_messages": "log",
                "shared_buffers": "64MB", "maintenance_work_mem": "64MB"}
    with Server(**settings) as server:
        store = {"plugin": "postgres", "host": "127.0.0.1", "port": server.port,
                 "database": "postgres", "user": "esdm"}
        with Site(metadata=store):
            server.sql(FILL.format(n=CONTAINERS))
            for turn in ("nothing is known of the tables", "after ANALYZE"):
                with Asker() as asker:
                    asker.ask("tracking = none")  # connects
                    for expression, found, most in QUESTIONS:
                        check(server, asker, expression, found, most)
                    for expression, found, how in HOW:
                        check_how(server, asker, expression, found, how)
                        if how == "get_bit" and "overlaps" in expression:
                            check_counts(server, asker, expression)
                        # The list of times needs no table once a server has tidied it up.
                        if how in ("hashed SubPlan", "get_bit") and "overlaps" in expression and turn[0] == "a":
                            check_how(server, asker, expression, found, "Index Only Scan using reach_both")
                if turn[0] == "n":
                    server.sql("VACUUM ANALYZE")


def check_how(server, asker, expression, found, how):
    at = server.log.stat().st_size
    expect((count := asker.ask(expression)) == found, f"{expression}: {count} found")
    text = server.log.read_bytes()[at:].decode(errors="replace")
    expect(how in text, f"{expression}: not by {how}: {text}")


def check_counts(server, asker, expression):
    """Times into which few containers reach are not counted: the answer reads the same rows."""
    at = server.log.stat().st_size
    asker.ask(expression)
    text = server.log.read_bytes()[at:].decode(errors="replace")
    expect(re.search(r"Sample Scan|Tid Range Scan", text), f"{expression}: no sample: {text}")
    expect("AS MATERIALIZED (SELECT FROM esdm.reach" not in text.replace('"', ""), f"{expression}: times are counted: {text}")


MAKE = """
import netCDF4
for i in range(12):
    netCDF4.Dataset(f"esdm://new/{i}.nc", "w").close()
"""


def test_plans__new_containers_look_at_few_names():
    """Also once the server has made up its mind about a statement, and when nothing is known of the tables: a commit
    costs the same in a large catalogue."""
    skip_without_postgres()
    if not (binaries().parent / "lib" / "auto_explain.so").exists():
        print("SKIPPED: the server has no auto_explain")
        sys.exit(77)
    settings = {"session_preload_libraries": "auto_explain", "auto_explain.log_min_duration": "0",
                "auto_explain.log_analyze": "on", "auto_explain.log_timing": "off", "log_min_messages": "log"}
    with Server(**settings) as server:
        store = {"plugin": "postgres", "host": "127.0.0.1", "port": server.port, "database": "postgres", "user": "esdm"}
        with Site(metadata=store):
            server.sql("INSERT INTO esdm.container SELECT i, 'run' || i, 'u', 1, 1, 1, 1, 1, 1, 0, 0, 0, 2 "
                       f"FROM generate_series(1, {CONTAINERS}) AS i; SELECT setval('esdm.container_number', {CONTAINERS})")
            at = server.log.stat().st_size
            client(["/usr/bin/python3", "-c", MAKE])
            text = server.log.read_bytes()[at:].decode(errors="replace")
            expect(server.sql("SELECT count(*) FROM esdm.container WHERE name LIKE 'new/%'") == ["12"], "new containers")
            lists = [p for p in text.split("Query Text: ") if "c.name = $3" in p]
            expect(len(lists) >= 12, f"{len(lists)} looks at names above and below: {text[-2000:]}")
            for plan in lists:
                touched = sum(map(int, re.findall(r"Rows Removed by (?:Filter|Index Recheck): (\d+)", plan)))
                expect(touched < 100 and "Seq Scan on container" not in plan, f"{touched} names: {plan[:2000]}")


FACETS = "{tracking}/{model}/{project}"


def facets_of(expression, names):
    text = run([tool("esdm-find"), "--facets", names, "--json", "-n", "100000", expression]).stdout
    return json.loads(text)["facets"]


def test_plans__facets_of_all_are_kept():
    """Counts of all containers come from a table that commits keep: what stands there is told."""
    skip_without_postgres()
    with Server() as server:
        store = {"plugin": "postgres", "host": "127.0.0.1", "port": server.port,
                 "database": "postgres", "user": "esdm"}
        with Site(metadata=store, views={"all": FACETS}) as site:
            server.sql(FILL.format(n=500))
            models = {"model-" + str(k): 10 for k in range(1, 50)} | {"model-0": 9, "model-50": 1}
            expect(facets_of("exists :model", "model,project") == {"model": models, "project": {"CMIP6": 500}}, "kept")
            server.sql("UPDATE esdm.facet SET n = n + 7 WHERE part = '=model-3'; "
                       "UPDATE esdm.facet_delta SET n = 8 WHERE attributes->'s'->'model'->>0 = 'model-3'")
            told = facets_of("exists :model", "model")["model"]
            expect(told["model-3"] > 10, f"they are counted: {told}")
            expect(facets_of("model = model-3", "model")["model"] == {"model-3": 10}, "what is found is counted")
            # A program that knows nothing of them made the views anew: nobody relies on them until they are made.
            server.sql("DELETE FROM esdm.view_node WHERE parent = -1")
            expect(facets_of("exists :model", "model")["model"] == models, "counted")
            run([tool("esdm-mkfs"), site.config])
            expect(server.sql("SELECT n FROM esdm.facet WHERE part = '=model-3'") == ["10"], "made anew")
            expect(facets_of("exists :model", "model")["model"] == models, "made anew")
            # What not all have, and several values.
            server.sql("INSERT INTO esdm.container SELECT 501, 'other', 'u', 1, 1, 1, 1, 1, 1, 0, 0, 0, 2; "
                       "INSERT INTO esdm.object VALUES(501, 0, NULL, '{\"n\": [\"project\"], "
                       "\"s\": {\"project\": [\"CMIP6\"]}}')")
            expect(facets_of("exists :model", "project") == {"project": {"CMIP6": 500}}, "one lacks it")
            expect(facets_of("exists :project", "model,project") == {"model": models, "project": {"CMIP6": 501}}, "all")
            server.sql("INSERT INTO esdm.container SELECT 502, 'both', 'u', 1, 1, 1, 1, 1, 1, 0, 0, 0, 2; "
                       "INSERT INTO esdm.object VALUES(502, 0, NULL, '{\"n\": [\"project\"], "
                       "\"s\": {\"project\": [\"CMIP6\", \"CMIP7\"]}}')")
            told = facets_of("exists :project", "project")
            expect(told == {"project": {"CMIP6": 501, "CMIP6, CMIP7": 1}}, f"several: {told}")


def test_plans__patterns_are_answered_from_values():
    """Globs and regular expressions find the containers of the values that are kept; what is not kept is looked for."""
    def found(patterns):
        with Asker() as asker:  # a connection that sees what is kept now
            return [asker.ask(p) for p in patterns]

    skip_without_postgres()
    with Server() as server:
        store = {"plugin": "postgres", "host": "127.0.0.1", "port": server.port,
                 "database": "postgres", "user": "esdm"}
        with Site(metadata=store) as site:
            server.sql(FILL.format(n=4300))
            server.sql("SELECT esdm.facet_fold()")
            expect(server.sql("SELECT part FROM esdm.facet WHERE name = 'tracking'") == ["*"], "too many values")
            expect(server.sql("SELECT count(*) FROM esdm.facet WHERE name = 'day'") == ["300"], "values of a day")
            expect(server.sql("SELECT count(*) FROM esdm.facet WHERE part = '@' AND name = 'source_id'") == ["1"], "of a view")
            patterns = [f'{name} {op} "{text}"' for name in ("day", ":model", "run", "tracking", "level", "units")
                        for op, text in (("~", "*7?"), ("=~", "-7[0-3]$"), ("~", "7*.5"))]
            patterns += ['day ~ "day-7*" and run = run-9', 'day ~ "day-7*" or model ~ "model-7*"', 'not day ~ "day-*"',
                         'day ~ "day-7*" and units ~ "0*"', 'day ~ "day-7*" and not run ~ "run-1*"']

            def compare(when):
                kept = found(patterns)
                server.sql("ALTER TABLE esdm.facet_delta RENAME TO gone")
                looked = found(patterns)
                server.sql("ALTER TABLE esdm.gone RENAME TO facet_delta")
                for pattern, a, b in zip(patterns, kept, looked):
                    expect(a == b, f"{when}: {pattern}: {a} and {b} found")
                return kept

            kept = compare("folded")
            days = sum(1 for i in range(1, 4301) if fnmatch.fnmatch(f"day-{i % 300}", "*7?"))
            expect(kept[0] == days, f"{kept[0]} of {days}")
            # What was not put together yet, another value of an array, one that is long, and one of a dataset.
            server.sql("INSERT INTO esdm.container SELECT 6000 + i, 'new' || i, 'u', 1, 1, 1, 1, 1, 1, 0, 0, 0, 2 "
                       "FROM generate_series(1, 4) AS i; INSERT INTO esdm.object "
                       "SELECT 6001, 0, NULL, '{\"n\": [\"day\"], \"s\": {\"day\": [\"new-70\"]}}'::jsonb")
            expect(compare("a new value")[0] == days + 1, "a new value is found")
            server.sql("SELECT esdm.facet_fold(); DELETE FROM esdm.object WHERE container = 6001")
            expect(compare("removed")[0] == days, "it is gone")
            unfolded = []
            for i, row in ((2, "{\"n\": [\"day\"], \"s\": {\"day\": [\"old-1\", \"new-71\"]}}"),
                           (3, "{\"n\": [\"run\"], \"s\": {\"run\": [\"" + "x" * 300 + "-72\"]}}")):
                server.sql(f"INSERT INTO esdm.object VALUES({6000 + i}, 0, NULL, '{row}')")
                unfolded = compare(f"row {i}")
                server.sql("SELECT esdm.facet_fold()")
                expect(compare(f"row {i}, folded") == unfolded, f"row {i} is found")
            expect(unfolded[0] == days + 1 and unfolded[7] == kept[7] + 1, unfolded)
            server.sql("INSERT INTO esdm.object VALUES(6004, 1, '/x', '{\"n\": [\"model\", \"run\"], "
                       "\"s\": {\"run\": [\"run-73\"], \"model\": [\"run-73\"]}}')")
            expect(compare("a dataset")[7] == kept[7] + 2, "a dataset is found")
            # Made anew, as of a store of before.
            server.sql("DELETE FROM esdm.facet WHERE part = '=new-70'")  # nobody has it any more
            before = server.sql("SELECT name, part, n FROM esdm.facet WHERE n > 0 ORDER BY 1, 2")
            server.sql("DELETE FROM esdm.view_node WHERE parent = -1")
            run([tool("esdm-mkfs"), site.config])
            expect(server.sql("SELECT name, part, n FROM esdm.facet WHERE n > 0 ORDER BY 1, 2") == before, "made anew")
            compare("made anew")


REPLACE = """
BEGIN; LOCK TABLE esdm.object IN ACCESS EXCLUSIVE MODE;
DO $$ BEGIN FOR i IN 1 .. 6000 LOOP
    EXIT WHEN EXISTS(SELECT FROM pg_locks WHERE NOT granted AND relation = 'esdm.object'::regclass); PERFORM pg_sleep(0.01);
END LOOP; END $$;
DELETE FROM esdm.object WHERE container = 7 AND dataset = 0; INSERT INTO esdm.object
    SELECT 7, 0, NULL, jsonb_build_object('n', jsonb_build_array('day', 'night'), 's',
        jsonb_build_object('day', jsonb_build_array('day-7{n}'), 'night', jsonb_build_array('night-7')));
COMMIT
"""


def test_plans__values_that_are_committed_meanwhile_are_none_that_are_missed():
    """A container meets a pattern all the time, by another value after the values were looked at: it is found."""
    skip_without_postgres()
    with Server() as server:
        store = {"plugin": "postgres", "host": "127.0.0.1", "port": server.port, "database": "postgres", "user": "esdm"}
        with Site(metadata=store):
            server.sql(FILL.format(n=250))
            for n, question in enumerate(("day ~ '*y-7*' and not night = x", "day ~ '*y-7*'", "day =~ ^day-7 and (night = night-7 or run = run-9)")):
                with Asker() as asker:
                    found = asker.ask(question)
                    replacing = threading.Thread(target=server.sql, args=(REPLACE.format(n="00" + "0" * n),))
                    replacing.start()
                    server.wait_for_sql("SELECT count(*) FROM pg_locks WHERE granted AND mode = 'AccessExclusiveLock' AND "
                                        "relation = 'esdm.object'::regclass", ["1"])
                    meanwhile = asker.ask(question)
                    replacing.join()
                    expect(meanwhile == found > 0, f"{question}: {found} before, {meanwhile} while one has another value")


if __name__ == "__main__":
    main(test_plans__new_containers_look_at_few_names, test_plans__values_that_are_committed_meanwhile_are_none_that_are_missed, test_plans__patterns_are_answered_from_values, test_plans__questions_are_answered_by_indexes, test_plans__facets_of_all_are_kept)
