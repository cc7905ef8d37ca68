#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""PostgreSQL's index over both ends of times and boxes (reach.sql): questions find with it what they find without it,
its rows follow every change, also of programs that know nothing of it, and stores of format 2 get it."""

import json
import os
import random
import subprocess

from esdmtest import BUILD, SOURCE, Site, by_size, client, client_environment, expect, main, tool, run
from postgres import Server, skip_without_postgres

ENDS = ("@time_min", "@time_max", "@lat_min", "@lat_max", "@lon_min", "@lon_max")
ROWS = "SELECT container, dataset, span::text, lon::text FROM esdm.reach ORDER BY 1, 2"
# A store as format 2 was.
OLDER = """
DROP TRIGGER reach_added ON esdm.extent; DROP TRIGGER reach_changed ON esdm.extent;
DROP TRIGGER reach_gone ON esdm.extent; DROP TRIGGER reach_marked ON esdm.object; DROP TABLE esdm.reach;
DROP FUNCTION esdm.reach_of, esdm.reach_end, esdm.reach_put, esdm.reach_added, esdm.reach_changed, esdm.reach_make,
    esdm.reach_mark, esdm.reach_marks, esdm.reach_marked;
DELETE FROM esdm.store WHERE key = 'marks';
CREATE OR REPLACE FUNCTION esdm.guard() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    IF current_setting('esdm.format', true) IS DISTINCT FROM '2'
            AND (EXISTS(SELECT FROM esdm.shared) OR EXISTS(SELECT FROM esdm.tag)) THEN
        RAISE EXCEPTION USING ERRCODE = 'ESD05', MESSAGE = 'the metadata store was upgraded: start this program again';
    END IF;
    RETURN NULL;
END $body$;
UPDATE esdm.store SET value = '2' WHERE key = 'format'
"""
# What reach_put() was before rows had marks.
UNMARKED = """
DROP TRIGGER reach_marked ON esdm.object; DROP FUNCTION esdm.reach_mark, esdm.reach_marks, esdm.reach_marked;
DELETE FROM esdm.store WHERE key = 'marks';
ALTER TABLE esdm.reach DROP COLUMN marks;
CREATE INDEX reach_both ON esdm.reach USING gist(span, lon);
CREATE OR REPLACE FUNCTION esdm.reach_put(p_container bigint, p_dataset bigint) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    v_row record;
BEGIN
    SELECT r.span, r.lon INTO v_row FROM esdm.reach_of(p_container, p_dataset) AS r;
    IF FOUND THEN
        INSERT INTO esdm.reach AS r VALUES (p_container, p_dataset, v_row.span, v_row.lon)
        ON CONFLICT (container, dataset) DO UPDATE SET span = excluded.span, lon = excluded.lon
        WHERE box_send(r.span) <> box_send(excluded.span) OR box_send(r.lon) <> box_send(excluded.lon);
    ELSE
        DELETE FROM esdm.reach r WHERE r.container = p_container AND r.dataset = p_dataset;
    END IF;
    IF p_dataset = 0 THEN
        FOR v_row IN SELECT r.dataset FROM esdm.reach r WHERE r.container = p_container AND r.dataset <> 0 LOOP
            PERFORM esdm.reach_put(p_container, v_row.dataset);
        END LOOP;
    END IF;
END $body$
"""
# Rows of containers whose marks lack one of what they have.
LACKING = """SELECT r.container FROM esdm.reach r JOIN esdm.object o USING (container, dataset) WHERE dataset = 0
    AND r.marks & esdm.reach_marks(o.attributes) <> esdm.reach_marks(o.attributes)"""
ASK = """
import json, sys
import esdm
for line in sys.stdin:
    print(json.dumps(sorted(f"{m.container}:{m.variable or ''}" for m in esdm.find(line.strip()))), flush=True)
"""
CONTAINERS = by_size(150, 400, 2000)


def number(r):
    """A time, or degrees; many are alike, so that ranges touch."""
    return r.choice([r.randrange(-20, 20) * 10, r.uniform(-300, 300), 5e9, -5e9, 0])


def extents(r, dataset):
    """Ends that an object has: all, some, none, or none whatever others have."""
    for name in ENDS:
        kind = r.random()
        if kind < (0.15 if dataset == 0 else 0.6):
            continue
        if kind > 0.95:
            yield name, "NULL", "''"
            continue
        low = name.endswith("min")
        value = number(r)
        if name.startswith("@time"):
            value = 730000 + value
        elif name.startswith("@lat"):
            value = max(-90, min(90, value / 3))
        else:
            value = max(-180, min(350, value))
        yield name, repr(float(value + (0 if low else r.choice([0, 1, 30])))), "NULL"


def fill(r):
    """SQL that makes containers with two datasets each."""
    rows = []
    for i in range(1, CONTAINERS + 1):
        for dataset in range(3):
            rows += [f"({i}, {dataset}, '{name}', {value}::float8, {text}::text, 0)"
                     for name, value, text in extents(r, dataset)]
        if i % 4 != 0:  # also of containers that have neither times nor a box, or no attributes
            rows.append(f"({i}, 0, E'@max:speed\\tK', {i * 7 % 100}, NULL, 0)")
    return f"""
CREATE TEMP TABLE g AS SELECT i FROM generate_series(1, {CONTAINERS}) AS i;
INSERT INTO esdm.container SELECT i, 'run' || i, 'u', 1, 1, 1, 1, 1, 1, 0, 0, 0, 2 FROM g;
INSERT INTO esdm.object SELECT i, 0, NULL, jsonb_build_object('n', jsonb_build_array('model', 'kind', 'place', 'member'),
    's', jsonb_build_object('model', jsonb_build_array('model-' || i % 7),
        'kind', CASE i % 3 WHEN 0 THEN jsonb_build_array('ocean', 'kind ' || i % 5) ELSE jsonb_build_array('kind ' || i % 5) END,
        'place', jsonb_build_array('Köln "' || i % 4)),
    'd', jsonb_build_object('member', jsonb_build_array(i % 3)),
    'f', jsonb_build_object('member', jsonb_build_array((i % 3)::text))) FROM g WHERE i % 11 <> 0;
INSERT INTO esdm.object SELECT i, d, '/v' || d, jsonb_build_object('n', jsonb_build_array('units', '@type')
        || CASE i % 23 WHEN 0 THEN '["kind"]'::jsonb ELSE '[]' END,
    's', jsonb_build_object('units', jsonb_build_array('K' || i % 3), '@type', jsonb_build_array('float'))
        || CASE i % 23 WHEN 0 THEN jsonb_build_object('kind', jsonb_build_array('own')) ELSE jsonb_build_object() END)
    FROM g CROSS JOIN generate_series(1, 2) AS d;
SELECT setval('esdm.container_number', {CONTAINERS});
INSERT INTO esdm.extent(container, dataset, name, value, text, how) VALUES {", ".join(rows)};
"""


def question(r):
    """Times, boxes and attributes, joined."""
    def date():
        return f"{r.randrange(1940, 1985)}-{r.randrange(1, 13):02}"

    def one():
        scope = r.choice(["", "", ":", "v1:", "v2:"])
        kind = r.randrange(5)
        if kind == 4:
            return f"max(speed) > {r.randrange(100)} K"
        if kind == 0:
            a, b = sorted([date(), date()])
            return f"{scope}time overlaps {a} .. {b}"
        if kind == 1:
            south, north = sorted(r.randrange(-90, 91) for _ in range(2))
            west = r.randrange(-180, 360)
            return f"{scope}box overlaps {west},{south},{west + r.randrange(0, 90)},{north}"
        if kind == 2:
            return r.choice([f"model = model-{r.randrange(8)}", f'kind = "kind {r.randrange(5)}"', "kind = ocean", "kind = own",
                             f'place = "Köln \\"{r.randrange(5)}"', f"member = {r.randrange(3)}",
                             f'(kind = "kind 1" or place = "Köln \\"{r.randrange(4)}" or kind = ocean)'])
        return f"units = K{r.randrange(3)}"

    if r.random() < 0.3:  # the container's time beside a dataset's box
        a, b = sorted(f"{r.randrange(1900, 2020)}-{r.randrange(1, 13):02}" for _ in range(2))
        south, north = sorted(r.randrange(-90, 91) for _ in range(2))
        west = r.randrange(-180, 360)
        return f":time overlaps {a} .. {b} and box overlaps {west},{south},{west + 60},{north} and units = K{r.randrange(3)}"
    parts = [one() for _ in range(r.randrange(1, 5))]
    if not any("overlaps" in p or "max(" in p for p in parts):
        parts.append("time overlaps 1960 .. 1965")
    text = parts[0]
    for part in parts[1:]:
        text = r.choice([f"{text} and {part}", f"{text} and {part}", f"({text}) or {part}", f"({text}) and not ({part})"])
    return text


def answers(questions):
    """What a program finds, for each question."""
    env = client_environment({"PYTHONPATH": str(SOURCE / "python"),
                              "ESDM_LIBRARY_DIR": f"{BUILD}:{BUILD / 'netcdf-plugin'}"})
    done = subprocess.run(["/usr/bin/python3", "-c", ASK], env=env, input="\n".join(questions) + "\n",
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    expect(done.returncode == 0, done.stderr[-2000:])
    return [json.loads(line) for line in done.stdout.splitlines()]


def store(server):
    return {"plugin": "postgres", "host": "127.0.0.1", "port": server.port, "database": "postgres", "user": "esdm"}


def test_reach__finds_what_is_found_without_it():
    skip_without_postgres()
    r = random.Random(5)
    with Server() as server, Site(metadata=store(server)):
        server.fill(fill(r))
        questions = [question(r) for _ in range(by_size(120, 300, 3000))]
        with_it = answers(questions)
        expect(server.sql(LACKING) == [], "marks lack some")
        for change in ("UPDATE esdm.reach SET marks = NULL WHERE container % 2 = 0",
                       "UPDATE esdm.reach SET marks = B'0'::bit(512); UPDATE esdm.store SET value = '1' WHERE key = 'marks'",
                       "ALTER TABLE esdm.reach RENAME TO away"):
            server.sql(change)
            for asked, one, other in zip(questions, with_it, answers(questions)):
                expect(one == other, f"{change}: {asked}: {set(one) ^ set(other)}")
        counts = [len(found) for found in with_it]
        expect(sum(c > 0 for c in counts) > len(counts) / 3, f"too few find anything: {counts}")


def change(r):
    """SQL that changes extents: as commits do, and as other programs may."""
    container, dataset = r.randrange(1, 12), r.choice([0, 0, 1, 2])
    kind = r.randrange(6)
    if kind == 0:
        return f"DELETE FROM esdm.extent WHERE container = {container} AND dataset = {dataset}"
    if kind == 1:
        return f"DELETE FROM esdm.extent WHERE container = {container} AND name = '{r.choice(ENDS)}'"
    if kind == 2:
        return f"UPDATE esdm.extent SET value = value + 1e-7 WHERE container = {container}"
    if kind == 3:
        return f"UPDATE esdm.extent SET value = NULL, text = '' WHERE container = {container} AND dataset = {dataset}"
    rows = ", ".join(f"({c}, {dataset}, '{name}', {value}::float8, {text}::text, 0)"
                     for c in (container, 12) for name, value, text in extents(r, dataset)) or "(1, 0, '@grid', NULL, 'point', 0)"
    return (f"INSERT INTO esdm.extent VALUES {rows} ON CONFLICT (container, dataset, name) DO UPDATE SET "
            "value = excluded.value, text = excluded.text")


def test_reach__rows_follow_every_change():
    skip_without_postgres()
    r = random.Random(17)
    with Server() as server, Site(metadata=store(server)):
        server.sql("INSERT INTO esdm.container SELECT i, 'run' || i, 'u', 1, 1, 1, 1, 1, 1, 0, 0, 0, 2 FROM generate_series(1, 12) i")
        turns = [[change(r) for _ in range(r.randrange(1, 4))] for _ in range(by_size(60, 200, 2000))]
        said = server.fill("\n".join(f"BEGIN; {'; '.join(changes)}; COMMIT; {ROWS}; SELECT 'made'; SELECT esdm.reach_make(); "
                                     f"{ROWS}; SELECT 'turn';" for changes in turns), at_once=False)
        most = 0
        told = said.split("turn\n")
        expect(len(told) == len(turns) + 1 and not told[-1], f"{len(told)} turns: {told[-1]}")
        for changes, one in zip(turns, told):
            kept, made = (rows.split("\n") for rows in one.split("made\n"))
            expect(made.pop(0) == "", f"reach_make() says {made}")
            expect(kept == made, f"after {changes}: {sorted(set(kept) ^ set(made))}")
            most = max(most, len(kept) - 1)
        expect(most > 12, f"at most {most} rows")
        server.sql("DELETE FROM esdm.container")
        expect(server.sql(ROWS) == [], "containers are gone, their rows are not")


def change_attributes(r):
    """SQL that changes extents or attributes of containers 1 to 12, or puts one of them anew."""
    container = r.randrange(1, 13)
    texts = ", ".join(f"'n{k}', jsonb_build_array({', '.join(repr(f't{r.randrange(30)}') for _ in range(r.choice([1, 1, 2])))})"
                      for k in range(r.randrange(6)))
    row = f"jsonb_build_object('n', '[]'::jsonb, 's', jsonb_build_object({texts}))"
    kind = r.randrange(4)
    if kind == 0:
        return change(r)
    if kind == 1:
        return f"UPDATE esdm.object SET attributes = {row} WHERE container = {container}"
    if kind == 2:
        return f"DELETE FROM esdm.object WHERE container = {container}"
    return (f"DELETE FROM esdm.object WHERE container = {container}; INSERT INTO esdm.object SELECT {container}, d, "
            f"CASE WHEN d > 0 THEN '/v' || d END, {row} FROM generate_series(0, 2) AS d")


def test_reach__marks_follow_every_change():
    """A container's row has the marks of all that it has, whether its times or its attributes come first."""
    skip_without_postgres()
    r = random.Random(23)
    with Server() as server, Site(metadata=store(server)):
        server.sql("INSERT INTO esdm.container SELECT i, 'run' || i, 'u', 1, 1, 1, 1, 1, 1, 0, 0, 0, 2 FROM generate_series(1, 12) i")
        turns = [[change_attributes(r) for _ in range(r.randrange(1, 4))] for _ in range(by_size(100, 300, 3000))]
        known = ("SELECT count(marks) FROM esdm.reach WHERE dataset = 0 AND container IN "
                 "(SELECT container FROM esdm.object WHERE dataset = 0)")
        said = server.fill("\n".join(f"BEGIN; {'; '.join(changes)}; COMMIT; {LACKING}; {known}; SELECT 'turn';" for changes in turns),
                           at_once=False).split("turn\n")
        counts = []
        for changes, one in zip(turns, said):
            lacking = one.split()
            counts.append(int(lacking.pop()))
            expect(lacking == [], f"after {changes}: {lacking}")
        expect(len(counts) == len(turns) and max(counts) > by_size(2, 6, 6), f"rows with marks: {counts}")
        expect(server.sql("SELECT count(*) FROM esdm.reach r JOIN esdm.object o USING (container, dataset) WHERE dataset = 0 "
                          "AND r.marks IS NULL") == ["0"], "marks are not known")


def test_reach__stores_without_marks_get_them():
    """Questions and commits go on without; esdm-mkfs --reindex makes them, and --remove takes all away."""
    skip_without_postgres()
    r = random.Random(29)
    with Server() as server, Site(metadata=store(server)) as site:
        server.fill(fill(r))
        questions = [question(r) for _ in range(30)]
        before, rows = answers(questions), server.sql(ROWS)
        server.sql(UNMARKED)
        expect(answers(questions) == before, "without marks something else is found")
        site.file("x.cdl").write_text('netcdf x { dimensions: time = 2 ; variables: double time(time) ; time:units = '
                                      '"days since 1970-01-01" ; :model = "own" ; data: time = 1, 2 ; }')
        run(["ncgen", "-4", "-o", site.file("x.nc"), site.file("x.cdl")])
        run([tool("esdm-cp"), site.file("x.nc"), "esdm://x.nc"])
        server.sql("DELETE FROM esdm.container WHERE name = 'x.nc'; UPDATE esdm.container SET name = NULL")
        run([tool("esdm-mkfs"), "--reindex", site.config])
        server.sql("UPDATE esdm.container SET name = 'run' || container")  # none that was made by SQL can be read
        expect(server.sql(ROWS) == rows and server.sql(LACKING) == [], "rows that were made anew")
        expect(server.sql("SELECT count(*) FROM esdm.reach WHERE dataset = 0 AND marks IS NULL AND container % 11 <> 0") == ["0"],
               "rows without marks")
        expect(answers(questions) == before, "with marks something else is found")
        run([tool("esdm-cp"), site.file("x.nc"), "esdm://y.nc"])
        expect(answers(["time overlaps 1970-01-02 and model = own"]) == [["y.nc:"]], "what is committed then")


def test_reach__marks_are_made_while_others_read():
    """Who reads in one transaction neither stops esdm-mkfs --reindex nor finds fewer containers after it."""
    skip_without_postgres()
    with Server() as server, Site(metadata=store(server)) as site:
        server.fill(fill(random.Random(31)))
        server.sql(UNMARKED)
        server.sql("UPDATE esdm.container SET name = NULL")  # none that was made by SQL can be read
        rows = server.sql("SELECT count(*) FROM esdm.reach")
        env = dict(os.environ, PGPASSWORD=server.password or "")
        with subprocess.Popen([*server.psql("")[:-2], "-f", "-"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as reader:
            reader.stdin.write("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT count(*) FROM esdm.object;\n")
            reader.stdin.flush()
            expect(int(reader.stdout.readline()) > CONTAINERS, "objects")
            with subprocess.Popen([tool("esdm-mkfs"), "--reindex", site.config], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True) as making:
                server.wait_for_sql("SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock' OR EXISTS("
                                    "SELECT FROM esdm.store WHERE key = 'marks')", ["t"])
                told, _ = reader.communicate("SELECT count(*) FROM esdm.reach; COMMIT;\n")
                said, _ = making.communicate()
        expect(making.returncode == 0, said)
        expect(reader.returncode == 0 and told.split() == rows, f"the reader: {told.split()}, not {rows}")
        expect(server.sql("SELECT count(*) FROM esdm.store WHERE key = 'marks'") == ["1"], "there are no marks")
        expect(server.sql("SELECT count(*) FROM esdm.reach") == rows, "rows that were made anew")


def with_guest(server, site):
    """Configurations of the owner of the tables, and of somebody who may use them."""
    server.sql("CREATE ROLE guest LOGIN; GRANT USAGE ON SCHEMA esdm TO guest; "
               "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA esdm TO guest; "
               "GRANT USAGE ON ALL SEQUENCES IN SCHEMA esdm TO guest")
    own = site.config.read_text()
    guest = own.replace('"user": "esdm"', '"user": "guest"')
    expect(guest != own, own)
    return own, guest


def test_reach__whoever_does_not_own_the_tables_goes_on():
    """With format 2, also once tags and what containers share are there: commits drop old snapshots, and gc records."""
    skip_without_postgres()
    with Server() as server, Site(metadata=store(server), history=1) as site:
        server.sql(OLDER)
        _, guest = with_guest(server, site)
        site.config.write_text(guest)
        for i in range(2):
            site.file(f"{i}.cdl").write_text(f"netcdf x {{ dimensions: x = 2 ; variables: int v(x) ; data: v = {i}, {i} ; }}")
            run(["ncgen", "-4", "-o", site.file(f"{i}.nc"), site.file(f"{i}.cdl")])
            run([tool("esdm-cp"), site.file(f"{i}.nc"), f"esdm://{i}.nc"])
        run([tool("esdm-cp"), "--reflink", "esdm://0.nc", "esdm://clone.nc"])
        run([tool("esdm-tag"), "0.nc", "kept"])
        for i in range(40):
            client(["ncatted", "-h", "-a", f"n,global,o,l,{i}", "esdm://1.nc"])
        snapshots = int(server.sql("SELECT count(*) FROM esdm.snapshot s JOIN esdm.container c USING (container) "
                                   "WHERE c.name = '1.nc' AND NOT s.pruned")[0])
        expect(snapshots < 30, f"{snapshots} snapshots: none was dropped")
        run([tool("esdm-rm"), "--yes", "--for-good", "1.nc"])
        run([tool("esdm-gc"), "--yes", "--age=0"])
        expect(server.sql("SELECT count(*) FROM esdm.container WHERE name IS NULL") == ["0"], "records are left")
        expect(server.sql("SELECT value FROM esdm.store WHERE key = 'format'") == ["2"], "it was upgraded by a guest")


def test_reach__stores_of_format_2_get_it():
    skip_without_postgres()
    r = random.Random(18)
    with Server() as server, Site(metadata=store(server)) as site:
        server.fill(fill(r))
        questions = [question(r) for _ in range(20)]
        before, rows = answers(questions), server.sql(ROWS)
        expect(len(rows) > CONTAINERS, f"{len(rows)} rows")
        server.sql(OLDER)
        own, guest = with_guest(server, site)
        source = site.file("x.cdl")
        source.write_text("netcdf x { dimensions: time = 2 ; variables: double time(time) ; "
                          'time:units = "days since 1970-01-01" ; data: time = 1, 2 ; }')

        def make(name):
            run(["ncgen", "-4", "-o", site.file(f"{name}"), source])
            run([tool("esdm-cp"), site.file(name), f"esdm://{name}"])

        # Who does not own the tables goes on with the old format, with tags and copies that share.
        site.config.write_text(guest)
        expect(answers(questions) == before, "the old format finds something else")
        make("guest.nc")
        run([tool("esdm-cp"), "--reflink", "esdm://guest.nc", "esdm://guest2.nc"])
        expect(server.sql("SELECT value FROM esdm.store WHERE key = 'format'") == ["2"], "it was upgraded by a guest")
        site.config.write_text(own)
        make("own.nc")
        expect(server.sql("SELECT value FROM esdm.store WHERE key = 'format'") == ["3"], "it was not upgraded")
        now = server.sql(ROWS)
        expect([row for row in now if int(row.split("|")[0]) <= CONTAINERS] == rows, "rows of before")
        expect(len(now) == len(rows) + 3, f"guest's two and the owner's: {now[-3:]}")
        found = answers(["time overlaps 1970-01-02"])
        expect({"guest.nc:", "guest2.nc:", "own.nc:"} <= set(found[0]), f"{found}")
        # and who may write before may write now
        site.config.write_text(guest)
        make("later.nc")
        expect(len(server.sql(ROWS)) == len(now) + 1, "a guest's commit has no row")
        expect("later.nc:" in answers(["time overlaps 1970-01-02"])[0], "a guest does not find it")


def test_reach__notes_of_merges_only_move_to_newer_snapshots():
    """With format 2, too, whose owner has not upgraded it: of two who note a merge the older one may come last."""
    skip_without_postgres()
    with Server() as server, Site(metadata=store(server)) as site:
        server.sql(OLDER)
        _, guest = with_guest(server, site)
        site.config.write_text(guest)
        site.file("a.cdl").write_text("netcdf a { dimensions: x = 2 ; variables: int v(x) ; data: v = 1, 2 ; }")
        run(["ncgen", "-4", "-o", site.file("a.nc"), site.file("a.cdl")])
        run([tool("esdm-cp"), site.file("a.nc"), "esdm://a.nc"])
        for i in range(3):
            client(["ncatted", "-h", "-a", f"n,global,o,l,{i}", "esdm://a.nc"])
        site_id, = server.sql("SELECT value FROM esdm.store WHERE key = 'site'")
        container, = server.sql("SELECT container FROM esdm.container WHERE name = 'a.nc'")

        def note(*snapshots, record=container):
            """What setting them in this order says, and what the tag is then."""
            done = run([BUILD / "tests/integration/raise_tag", BUILD / "esdm/esdm-meta-postgres.so", site_id,
                        json.dumps({**store(server), "user": "guest"}), record, "esdm:merged", *map(str, snapshots)])
            return done.stdout.splitlines(), server.sql("SELECT snapshot, author FROM esdm.tag WHERE name = 'esdm:merged'")

        def note_beside(sql, snapshot):
            """The same while another one's change is under way, which has been made when that is looked at."""
            with subprocess.Popen(server.psql(f"BEGIN; {sql}; SELECT pg_sleep(2); COMMIT"), stdout=subprocess.DEVNULL) as other:
                server.wait_for_sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'", ["1"])
                found = note(snapshot)
            expect(other.returncode == 0, sql)
            return found

        expect(note(3) == (["0"], ["3|3"]), "the first one")
        expect(note(2) == (["0"], ["3|3"]), "an older note took the place of a newer one")
        expect(note(4, 2, 3) == (["0", "0", "0"], ["4|4"]), "a newer one is not noted")
        for said, tags in (note(9), note(5, record="4711")):
            expect("has no snapshot" in said[0] and tags == ["4|4"], f"{said} {tags}")
        server.sql("DELETE FROM esdm.tag")
        said, tags = note_beside("SELECT FROM esdm.container FOR UPDATE; UPDATE esdm.snapshot SET pruned = true WHERE snapshot = 2", 2)
        expect("has no snapshot" in said[0] and tags == [], f"a snapshot that is dropped meanwhile: {said} {tags}")
        said, tags = note_beside("SELECT esdm.set_state(1, 'elsewhere')", 4)
        expect("is migrated" in said[0] and tags == [], f"a store that is migrated meanwhile: {said} {tags}")
        expect(server.sql("SELECT value FROM esdm.store WHERE key = 'format'") == ["2"], "it was upgraded by a guest")


if __name__ == "__main__":
    main(test_reach__finds_what_is_found_without_it, test_reach__notes_of_merges_only_move_to_newer_snapshots,
         test_reach__rows_follow_every_change, test_reach__marks_follow_every_change,
         test_reach__stores_without_marks_get_them, test_reach__marks_are_made_while_others_read,
         test_reach__stores_of_format_2_get_it, test_reach__whoever_does_not_own_the_tables_goes_on)
