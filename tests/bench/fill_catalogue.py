#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Fills the catalogue of a site, SQLite or PostgreSQL, with the containers that bench_find makes, without commits.

    fill_catalogue.py DATABASE COUNT     adds those from the last that is there up to COUNT
    fill_catalogue.py --asked FILE COUNT the same of SQLite without documents and pages, which no question reads
    fill_catalogue.py --check DATABASE   compares what it would write with what commits wrote

DATABASE is the file of SQLite, or a connection string of PostgreSQL ("host=127.0.0.1 dbname=esdm", for a user that may
disable triggers); the schema is esdm.

The site is made with esdm-mkfs, and bench_find with a COUNT that 64 divides has made some containers, the last of
which is the template of what differs from container to container only in its values. Nothing else has the site open.
All that queries and views look at is what commits would write, which --check compares; rows have no checksums, and
pages of values and the checksum of a document are the template's: no query reads them, but do not open these containers.
"""

import collections
import datetime
import functools
import json
import pathlib
import sqlite3
import subprocess
import sys

FACETS = ("model", "experiment", "member", "table", "variable")
VALUES = (60, 40, 20, 10, 8)
UNITS = ("days since 1850-01-01", "degrees_north", "degrees_east", "K")
PATHS = ("/time", "/lat", "/lon", "/tas")
TAB = "\t"


def date_key(days):
    """What esdm__date_key() makes of a date."""
    whole = int(days)
    date = datetime.date(1850, 1, 1) + datetime.timedelta(days=whole)
    return date.year * 372 + (date.month - 1) * 31 + date.day - 1 + days - whole


def attributes_of(i):
    """The attributes that bench_find sets, in its order."""
    rest, result = i, []
    for name, count in zip(FACETS, VALUES):
        result.append((name, f"{name}-{rest % count}"))
        rest //= count
    result += [(f"attribute_{k}", f"value {i % (k * k + 1)} of {k}") for k in range(25)]
    return result


def extents_of(i):
    """Names and values of the extents that a commit derives, sorted by name."""
    time, lat, east = i % 165 * 365.25, i % 160 - 80.0, i * 7 % 350
    lon = float(east - 360 if east >= 180 else east)
    units = [f"{path[1:]}{TAB}{unit}" for path, unit in zip(PATHS, UNITS)]
    low, high = 300 + i % 997 / 50, max(300 + i % 997 / 50, 290.0)
    return [
        ("@grid", "regular"), ("@lat_max", lat + 5), ("@lat_min", lat), ("@length:lat", 2.0), ("@length:lon", 2.0),
        ("@length:time", 2.0), ("@lon_max", lon + 5), ("@lon_min", lon), (f"@max:{units[1]}", lat + 5),
        (f"@max:{units[2]}", east + 5.0), (f"@max:{units[3]}", high), (f"@min:{units[1]}", lat),
        (f"@min:{units[2]}", float(east)), (f"@min:{units[3]}", min(lat, low, 280.0)),
        ("@time_max", date_key(time + 365)), ("@time_min", date_key(time))]


def rows_of(i):
    """Rows of the table attribute, in the order of its key."""
    n = i + 1
    rows = [(n, 0, name, 0, None, value, None) for name, value in extents_of(i)]
    rows += sorted((n, 0, name, k, None, value, None) for k, (name, value) in enumerate(attributes_of(i)))
    for d in range(4):
        rows.append((n, d + 1, "@type", 30 + 2 * d, PATHS[d], "float64", None))
        rows.append((n, d + 1, "units", 31 + 2 * d, PATHS[d], UNITS[d], None))
    return rows


def varint(value):
    """An unsigned number in groups of seven bits."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def text(value):
    """A text of an attribute list: its bytes, and the NUL behind it."""
    raw = value.encode() + b"\0"
    return varint(len(raw)) + raw


@functools.lru_cache(None)
def in_list(pair):
    """An attribute of a container in such a list."""
    return b"\0\0" + text(pair[0]) + text(pair[1]) + b"\0"


@functools.lru_cache(None)
def list_end():
    """What the lists have of datasets."""
    out = b""
    for d in range(4):
        head = varint(d + 1)
        out += head + text(PATHS[d]) + text("@type") + text("float64") + b"\0"
        out += head + b"\0" + text("units") + text(UNITS[d]) + b"\0"
    return out


def list_of(i):
    """The attribute list of a snapshot."""
    return b"".join(map(in_list, attributes_of(i))) + list_end()


@functools.lru_cache(None)
def in_document(pair):
    """An attribute of a container in a document."""
    return json.dumps([pair[0], "char", pair[1]], separators=(",", ":")).encode()


def document_of(template, i):
    """The document of the template with the values of another container."""
    begin = template.index(b'"attributes":[')
    end = template.index(b"]]", begin) + 2
    own = b",".join(map(in_document, attributes_of(i)))
    return b"%s\"attributes\":[%s]%s" % (template[:begin], own, template[end:])


def check_view(part):
    """@param part of the view's root."""
    if part.split("\n")[1:] != list(FACETS):
        sys.exit("fill_catalogue.py: the first view is to be {model}/{experiment}/{member}/{table}/{variable}")


def add_to_view(nodes, part, numbers):
    """Counts containers in the nodes of a view: {(parent, part): [node, containers]}, and makes those that lack.
    @param part of the root. @return each container with its last node."""
    following, members = max(node for node, _ in nodes.values()) + 1, []
    for n in numbers:
        at = nodes[0, part]
        at[1] += 1
        for _, value in attributes_of(n - 1)[:5]:
            key = at[0], "=" + value
            if key not in nodes:
                nodes[key] = [following, 0]
                following += 1
            at = nodes[key]
            at[1] += 1
        members.append((n, at[0]))
    return members


class Filler:
    """The catalogue that is filled."""

    def __init__(self, path):
        self.db = sqlite3.connect(path, isolation_level=None)
        for pragma in ("cache_size = -1000000", "threads = 2"):  # sorting for the index, too
            self.db.execute(f"PRAGMA {pragma}")
        self.last = self.one("SELECT max(container) FROM container")[0]
        if self.last is None or self.last % 64 != 0:
            sys.exit("fill_catalogue.py: bench_find is to make a number of containers that 64 divides first")

    def one(self, sql, *values):
        """The first row."""
        return self.db.execute(sql, values).fetchone()

    def check(self):
        """Ends the program where a container that was committed has other rows."""
        step = max(1, self.last // 500)
        for n in range(1, self.last + 1, step):
            rows = sorted(self.db.execute("SELECT * FROM attribute WHERE container = ?", (n,)))
            name, = self.one("SELECT name FROM container WHERE container = ?", n)
            document, blob = self.one("SELECT document, attributes FROM snapshot WHERE id = ?", (n << 32) + 1)
            parts = [part for part, in self.db.execute(
                "WITH RECURSIVE up(node, part, depth) AS (SELECT v.node, v.part || '|' || v.parent, 0 FROM view_member m "
                "JOIN view_node v USING (node) WHERE m.container = ?1 UNION ALL SELECT v.node, v.part || '|' || v.parent, "
                "depth + 1 FROM up JOIN view_node v ON v.node = CAST(substr(up.part, instr(up.part, '|') + 1) AS INTEGER) "
                "WHERE v.node <> 0) SELECT substr(part, 1, instr(part, '|') - 1) FROM up ORDER BY depth DESC", (n,))]
            expected = [(rows, sorted(rows_of(n - 1))), (name, f"bench/{(n - 1) // 1000}/{n - 1}.nc"),
                        (blob, list_of(n - 1)), (document, document_of(document, n - 1)),
                        (parts[1:], ["=" + value for _, value in attributes_of(n - 1)[:5]])]
            for have, want in expected:
                if have != want:
                    sys.exit(f"fill_catalogue.py: container {n} has\n{have}\nand would get\n{want}")
        print(f"{len(range(1, self.last + 1, step))} of {self.last} containers are as they would be filled")

    def copies(self, table, key, numbers, changes):
        """Rows of the template for each number n, by SQL. changes: columns, as expressions."""
        columns = [row[1] for row in self.db.execute(f"PRAGMA table_info({table})")]
        rows = self.db.execute(f"SELECT * FROM {table} WHERE {key} ORDER BY 1, 2, 3", (self.last,)).fetchall()
        self.db.execute(f"CREATE TEMP TABLE template AS SELECT * FROM main.{table} LIMIT 0")
        self.db.executemany(f"INSERT INTO template VALUES({', '.join('?' * len(columns))})", rows)
        values = ", ".join(changes.get(c, "t." + c) for c in columns)
        self.db.execute("WITH RECURSIVE s(n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM s WHERE n < ?2) "
                        f"INSERT INTO {table} SELECT {values} FROM s CROSS JOIN template t", (numbers[0], numbers[-1]))
        self.db.execute("DROP TABLE template")

    def fill_snapshots(self, numbers):
        """Documents and attribute lists of the template's snapshot with other values."""
        columns = [row[1] for row in self.db.execute("PRAGMA table_info(snapshot)")]
        (row,) = self.db.execute("SELECT * FROM snapshot WHERE id >> 32 = ?", (self.last,)).fetchall()
        at = [columns.index(c) for c in ("id", "sum", "document", "attributes")]

        def one(n):
            new = list(row)
            for k, value in zip(at, ((n << 32) + (row[at[0]] & 0xffffffff), "none", document_of(row[at[2]], n - 1),
                                     list_of(n - 1))):
                new[k] = value
            return new

        self.db.executemany(f"INSERT INTO snapshot VALUES({', '.join('?' * len(columns))})", map(one, numbers))

    def fill_views(self, numbers):
        """The counts and last nodes of the first view."""
        root, part = self.one("SELECT node, part FROM view_node WHERE parent = 0 ORDER BY node LIMIT 1")
        check_view(part)
        nodes = {(parent, p): [node, n] for node, parent, p, n in self.db.execute("SELECT * FROM view_node")}
        members = add_to_view(nodes, part, numbers)
        self.db.executemany("INSERT OR REPLACE INTO view_node VALUES(?, ?, ?, ?)",
                            ((node, parent, p, n) for (parent, p), (node, n) in nodes.items()))
        self.db.executemany("INSERT INTO view_member VALUES(?, ?)", members)
        assert root == nodes[0, part][0]

    def fill_trees(self, numbers):
        """The ranges of times and the boxes, which triggers and commits would enter."""
        for table, names in {"extent_time": ("n", "@time_min", "@time_max"),
                             "extent_box": ("n", "@lat_min", "@lat_max", "@lon_min", "@lon_max")}.items():
            ends = (dict(extents_of(n - 1)) | {"n": n} for n in numbers)
            self.db.executemany(f"INSERT INTO {table} VALUES({', '.join('?' * len(names))})",
                                ([one[name] for name in names] for one in ends))

    def fill(self, count, asked=False):
        """Adds what is missing. @param asked what questions read alone."""
        numbers = range(self.last + 1, count + 1)
        index, = self.one("SELECT sql FROM sqlite_master WHERE name = 'attribute_value'")
        triggers = self.db.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'attribute'").fetchall()
        for pragma in ("journal_mode = DELETE", "synchronous = OFF", "temp_store = FILE"):
            self.db.execute(f"PRAGMA {pragma}")
        self.db.execute("BEGIN IMMEDIATE")
        for name, _ in triggers:
            self.db.execute(f"DROP TRIGGER {name}")
        self.db.execute("DROP INDEX attribute_value")
        marks = ", ".join("?" * 7)
        self.db.executemany(f"INSERT INTO attribute VALUES({marks})", (row for n in numbers for row in rows_of(n - 1)))
        self.copies("container", "container = ?", numbers, {
            "container": "s.n", "name": "'bench/' || ((s.n - 1) / 1000) || '/' || (s.n - 1) || '.nc'",
            "uuid": "lower(hex(randomblob(16)))", "sum": "'none'"})
        if not asked:
            self.fill_snapshots(numbers)
            key = {"container": "s.n", "page": "(s.n << 32) + (t.page & 4294967295)", "sum": "'none'"}
            self.copies("page", "container = ?", numbers, key)
            self.copies("page_data", "page >> 32 = ?", numbers, key)
        self.fill_views(numbers)
        self.fill_trees(numbers)
        self.db.execute(index)
        for _, trigger in triggers:
            self.db.execute(trigger)
        self.db.execute("UPDATE store SET value = ? WHERE key = 'indexed'", (count // 64 * 64,))
        self.db.execute("COMMIT")
        self.db.execute("PRAGMA journal_mode = WAL")


def escaped(value):
    """A text as COPY takes it."""
    if value is None:
        return r"\N"
    return str(value).replace("\\", r"\\").replace("\t", r"\t").replace("\n", r"\n")


def objects_of(i):
    """Rows of the table object."""
    own, n = attributes_of(i), i + 1
    yield n, 0, None, json.dumps({"n": [name for name, _ in own], "s": {name: [value] for name, value in own}})
    for d in range(4):
        yield n, d + 1, PATHS[d], json.dumps({"n": ["@type", "units"], "s": {"@type": ["float64"], "units": [UNITS[d]]}})


class PostgresFiller:
    """The same of PostgreSQL, by psql."""

    def __init__(self, connection):
        self.command = ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", connection]
        self.last = int(self.ask("SELECT coalesce(max(container), 0) FROM esdm.container"))
        if self.last == 0:
            sys.exit("fill_catalogue.py: bench_find is to make some containers first")

    def ask(self, sql):
        """What a statement answers."""
        return subprocess.run(self.command + ["-c", sql], check=True, stdout=subprocess.PIPE, text=True).stdout.rstrip("\n")

    def load(self, table, rows):
        """Appends rows to a table."""
        with subprocess.Popen(self.command + ["-c", f"COPY esdm.{table} FROM STDIN"], stdin=subprocess.PIPE, text=True) as p:
            for row in rows:
                p.stdin.write("\t".join(map(escaped, row)) + "\n")
            p.stdin.close()
            if p.wait() != 0:
                sys.exit(f"fill_catalogue.py: table {table} could not be filled")

    def check(self):
        """Ends the program where a container that was committed has other rows."""
        step = max(1, self.last // 20)
        for n in range(1, self.last + 1, step):
            have = json.loads(self.ask("SELECT json_agg(json_build_array(container, dataset, path, attributes) ORDER BY dataset) "
                                       f"FROM esdm.object WHERE container = {n}"))
            want = [[*row[:3], json.loads(row[3])] for row in objects_of(n - 1)]
            extents = json.loads(self.ask("SELECT json_agg(json_build_array(name, coalesce(to_json(value), to_json(text))) "
                                          f'ORDER BY name COLLATE "C") FROM esdm.extent WHERE container = {n}'))
            document = self.ask(f"SELECT document FROM esdm.snapshot WHERE container = {n}").encode()
            for a, b in ((have, want), (extents, [list(row) for row in extents_of(n - 1)]),
                         (document, document_of(document, n - 1))):
                if a != b:
                    sys.exit(f"fill_catalogue.py: container {n} has\n{a}\nand would get\n{b}")
        print(f"{len(range(1, self.last + 1, step))} of {self.last} containers are as they would be filled")

    def fill_views(self, numbers):
        """The counts and last nodes of the first view."""
        root, part = json.loads(self.ask("SELECT json_build_array(node, part) FROM esdm.view_node WHERE parent = 0 "
                                         "ORDER BY node LIMIT 1"))
        check_view(part)
        rows = json.loads(self.ask("SELECT json_agg(json_build_array(v.node, parent, part, v.n + coalesce((SELECT sum(d.n) "
                                   "FROM esdm.view_delta d WHERE d.node = v.node), 0))) FROM esdm.view_node v"))
        nodes = {(parent, p): [node, n] for node, parent, p, n in rows}
        members = add_to_view(nodes, part, numbers)
        assert root == nodes[0, part][0]
        self.ask("TRUNCATE esdm.view_node, esdm.view_delta")
        self.load("view_node", ((node, parent, p, n) for (parent, p), (node, n) in nodes.items()))
        self.load("view_member", members)
        self.fill_facets(numbers)
        self.ask(f"SELECT setval(pg_get_serial_sequence('esdm.view_node', 'node'), {max(node for node, _ in nodes.values()) + 1})")

    def fill_facets(self, numbers):
        """The counts of the values of each attribute that the view names, and the values of the others."""
        counts = collections.Counter({("", ""): len(numbers)})
        for n in numbers:
            for name, value in attributes_of(n - 1)[:5]:
                counts[name, ""] += 1
                counts[name, "=" + value] += 1
        for name, value in (pair for n in numbers for pair in attributes_of(n - 1)[5:]):
            counts[name, "=" + value] = 0
        for name, part, n in json.loads(self.ask("SELECT facet_fold::text FROM esdm.facet_fold(); "
                                                 "SELECT json_agg(json_build_array(name, part, n)) FROM esdm.facet")):
            counts[name, part] += n
        counts.update({(name, part): 1 for (name, part), n in counts.items() if name.startswith("attribute_")})
        self.ask("TRUNCATE esdm.facet")
        self.load("facet", ((name, part, n) for (name, part), n in counts.items()))

    def copies(self, table, changes):
        """SQL that appends rows of the template for the numbers n of a series. changes: columns, as expressions."""
        columns = self.ask("SELECT string_agg(attname, ',' ORDER BY attnum) FROM pg_attribute "
                           f"WHERE attrelid = 'esdm.{table}'::regclass AND attnum > 0").split(",")
        values = ", ".join(changes.get(c, "t." + c) for c in columns)
        return (f"INSERT INTO esdm.{table} SELECT {values} FROM esdm.{table} t, generate_series(%d, %d) n "
                f"WHERE t.container = {self.last}")

    def fill(self, count):
        """Adds what is missing."""
        numbers = range(self.last + 1, count + 1)
        tables = "container", "object", "extent", "snapshot", "page", "view_node", "view_member"
        indexes = self.ask("SELECT pg_get_indexdef(i.indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid "
                           "WHERE c.relnamespace = 'esdm'::regnamespace AND NOT i.indisunique AND c.relname IN "
                           "('object', 'extent')").split("\n")
        for sql in indexes:
            self.ask("DROP INDEX esdm." + sql.split()[2])
        for table in tables:
            self.ask(f"ALTER TABLE esdm.{table} DISABLE TRIGGER ALL")
        ends = (numbers[0], numbers[-1])
        self.ask(self.copies("container", {"container": "n", "uuid": "md5(n::text)",
                                           "name": "'bench/' || (n - 1) / 1000 || '/' || n - 1 || '.nc'"}) % ends)
        self.ask(self.copies("page", {"container": "n", "page": "(n::bigint << 32) + (t.page & 4294967295)"}) % ends)
        head = self.ask("SELECT array_to_string(array_agg(attname ORDER BY attnum), ',') FROM pg_attribute "
                        "WHERE attrelid = 'esdm.snapshot'::regclass AND attnum > 0").split(",")
        template = json.loads(self.ask(f"SELECT to_json(s) FROM esdm.snapshot s WHERE container = {self.last}"))
        document = template["document"].encode()
        self.load("snapshot", ([{**template, "container": n, "document": document_of(document, n - 1).decode()}[c]
                                for c in head] for n in numbers))
        self.load("object", (row for n in numbers for row in objects_of(n - 1)))
        self.load("extent", ((n, 0, name, None if name == "@grid" else value, value if name == "@grid" else None, 0)
                             for n in numbers for name, value in extents_of(n - 1)))
        self.fill_views(numbers)
        for sql in indexes:
            self.ask(sql)
        for table in tables:
            self.ask(f"ALTER TABLE esdm.{table} ENABLE TRIGGER ALL")
        self.ask("SELECT esdm.reach_make()")
        self.ask(f"SELECT setval('esdm.container_number', {count})")
        self.ask("VACUUM")


def main():
    """The command line."""
    if sys.argv[1:2] == ["--asked"] and len(sys.argv) == 4:
        Filler(sys.argv[2]).fill(int(sys.argv[3]) // 64 * 64, asked=True)
        return
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    where = sys.argv[2 if sys.argv[1] == "--check" else 1]
    filler = Filler(where) if pathlib.Path(where).exists() else PostgresFiller(where)
    if sys.argv[1] == "--check":
        filler.check()
    else:
        filler.fill(int(sys.argv[2]) // 64 * 64)


if __name__ == "__main__":
    main()
