# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-find --sort is what a program sorts that has all attributes, of few matches and of the first of many."""

import functools
import json
import random
import resource
import sqlite3
import subprocess
import threading

from esdmtest import Site, by_size, expect, main, run, some, tool
from postgres import Server, skip_without_postgres

FIND = tool("esdm-find")
SEED = 20261130
MANY = 3008  # more than are sorted as a whole; 64 divides it: all are in the index
VARIABLES = "tas", "pr"


def number(value):
    """An attribute's element: how it is written, and its number."""
    return f"{value:g}", float(value)


def values_of(rng, kind):
    """What an object has of an attribute: elements; None: nothing."""
    words = "a", "a b", "a+b", "a,b", "a-", "ab", "", "b", "ä", "10", "b" * 40
    if kind == "mixed":  # numbers, texts, several of one kind, no number
        choice = rng.randrange(8)
        if choice == 0:
            return None
        if choice <= 2:
            return [number(rng.choice((-2.5, 0, 1, 1e20, 300, rng.random())))]
        if choice == 3:
            return [number(rng.choice((-2.5, 1, 300))) for _ in range(rng.randrange(2, 4))]
        if choice == 4:
            return [(w, None) for w in rng.sample(words, rng.randrange(2, 4))]
        return [(rng.choice(words) + rng.choice(("", str(rng.randrange(50)))), None)]
    if kind == "rare":
        return [number(rng.randrange(100))] if rng.random() < 0.004 else None
    if kind == "list":  # "a, A" comes behind all others, and neither "a" nor "A" does
        if rng.random() < 0.002:
            return [("a", None), ("A", None)]
        return [(f"a{rng.choice('+!')}{rng.randrange(900)}", None)]
    if kind == "few":
        return [(f"few-{rng.randrange(4)}", None)]
    if kind == "own":  # of variables, some of which take it from the container
        return [(f"own {rng.randrange(30)}", None)] if rng.random() < 0.5 else None
    return [(f"day {rng.randrange(10**6)}", None)]


def catalogue(count):
    """(name, {"": attributes, variable: attributes}) of each container, in the order of their numbers."""
    rng = random.Random(SEED)
    made = []
    for i in range(count):
        one = {"": {"model": [(f"m{i % 3}", None)]}}
        for kind in ("mixed", "rare", "few", "day", "list"):
            one[""][kind] = values_of(rng, kind)
        if rng.random() < 0.5:
            one[""]["own"] = values_of(rng, "own")
        for variable in VARIABLES:
            one[variable] = {"units": [(rng.choice(("K", "mm")), None)], "own": values_of(rng, "own"),
                             "mixed": values_of(rng, "mixed") if rng.random() < 0.1 else None}
        made.append((f"r{rng.randrange(10**8)}.nc", one))
    return made


# ---- into the stores ------------------------------------------------------------------------------

def fill_sqlite(site, made):
    with sqlite3.connect(str(site.folder / "metadata" / "catalogue.sqlite")) as db:
        for n, (name, objects) in enumerate(made, 1):
            db.execute("INSERT INTO container VALUES(?, ?, ?, 1, 1, 1, 1, 1, 1, 0, 0, 0, 2, 'none')",
                       (n, name, f"{n:032x}"))
            entry = 0
            for d, (variable, attributes) in enumerate(objects.items()):
                for key, values in attributes.items():
                    for text, value in values or ():
                        db.execute("INSERT INTO attribute VALUES(?, ?, ?, ?, ?, ?, ?)",
                                   (n, d, key, entry, "/" + variable if d else None, text if value is None else value,
                                    None if value is None else text))
                        entry += 1
        db.execute("UPDATE store SET value = ? WHERE key = 'indexed'", (len(made) // 64 * 64,))
        db.executemany("INSERT OR IGNORE INTO store VALUES(?, 1)", [("name:units",), ("name:own",), ("name:mixed",)])
    db.close()


def fill_postgres(server, made):
    rows, objects = [], []
    for n, (name, parts) in enumerate(made, 1):
        rows.append(f"({n}, '{name}', '{n:032x}', 1, 1, 1, 1, 1, 1, 0, 0, 0, 2)")
        for d, (variable, attributes) in enumerate(parts.items()):
            have = {k: v for k, v in attributes.items() if v}
            kinds = {"n": list(have)}
            for key, values in have.items():
                if values[0][1] is None:
                    kinds.setdefault("s", {})[key] = [t for t, _ in values]
                else:
                    kinds.setdefault("d", {})[key] = [v for _, v in values]
                    kinds.setdefault("f", {})[key] = [t for t, _ in values]
            path = f"'/{variable}'" if d else "NULL"
            objects.append(f"({n}, {d}, {path}, '{json.dumps(kinds)}')")
    for table, values in ("container", rows), ("object", objects):
        for i in range(0, len(values), 200):
            server.sql(f"INSERT INTO esdm.{table} VALUES " + ", ".join(values[i:i + 200]))


# ---- the other program ----------------------------------------------------------------------------

def shown(objects, variable, key):
    """Text and number that a row shows: its own or, lacking it, its container's."""
    values = objects[variable].get(key) or objects[""].get(key)
    if not values:
        return None
    return ", ".join(t for t, _ in values), values[0][1] if len(values) == 1 else None


def compare(a, b, descending):
    """Numbers, texts, nothing: nothing is last in either direction."""
    if a is None or b is None:
        return (a is None) - (b is None)
    kinds = (a[1] is None, b[1] is None)
    x, y = (a[1], b[1]) if kinds == (False, False) else (a[0].encode(), b[0].encode())
    order = kinds[0] - kinds[1] if kinds[0] != kinds[1] else (x > y) - (x < y)
    return -order if descending else order


# What an expression finds: of which containers, and which of their objects.
QUESTIONS = {
    "exists :model": lambda n, o: [""],
    ":model = m1": lambda n, o: [""] if o[""]["model"][0][0] == "m1" else [],
    ":model in (m0, m1) and not few = few-0":
        lambda n, o: [""] if o[""]["model"][0][0] != "m2" and o[""]["few"][0][0] != "few-0" else [],
    "units = K": lambda n, o: [v for v in VARIABLES if o[v]["units"][0][0] == "K"],
    "units = K and exists :model": lambda n, o: [v for v in VARIABLES if o[v]["units"][0][0] == "K"],
    "units = mm or :few = few-1": lambda n, o: ([""] if o[""]["few"][0][0] == "few-1" else [])
    + [v for v in VARIABLES if o[v]["units"][0][0] == "mm"],
    "not :model = m0": lambda n, o: [""] if o[""]["model"][0][0] != "m0" else [],
    "rare >= 0": lambda n, o: [""] if o[""]["rare"] else [],
}


def expected(made, question, keys, containers):
    rows = []
    for name, objects in made:
        found = sorted(QUESTIONS[question](name, objects))
        for variable in found[:1] if containers else found:
            label = name if containers or not variable else f"{name}:/{variable}"
            rows.append((name, variable, label, [shown(objects, variable, k) for k, _ in keys]))
    rows.sort(key=lambda r: (r[0].encode(), r[1].encode()))

    def order(a, b):
        for (_, descending), x, y in zip(keys, a[3], b[3]):
            if (c := compare(x, y, descending)) != 0:
                return c
        return 0
    rows.sort(key=functools.cmp_to_key(order))
    return [r[2] for r in rows]


def agrees(made, cases):
    for question, keys, limit, containers in cases:
        said = ",".join(("-" if d else "") + k for k, d in keys)
        command = [FIND, f"--sort={said}", *(["-c"] if containers else []),
                   *(["--limit", str(limit)] if limit else []), question]
        want = expected(made, question, keys, containers)
        got = run(command, check=False).stdout.splitlines()
        first = want[:limit] if limit else want
        expect(got == first, f"{command[1:]}: {got[:20]} instead of {first[:20]}")
        told = run([*command, "--json"], check=False).stdout
        told = json.loads(told) if told else {"matches": [], "found": 0, "more": False}
        got = [m["container"] + (f":{m['dataset']}" if m["dataset"] else "") for m in told["matches"]]
        more = len(want) > len(first)
        expect(got == first and told["more"] == more and told["found"] == (None if more else len(want)),
               f"{command[1:]} --json: {told['found']}, {told['more']}, {got[:20]} instead of {first[:20]}")
        kept = [w for w in want if not w.startswith(("r1", "r2", "r3"))]
        got = run([*command, "--without=r[12]*", "--without=r3*"], check=False).stdout.splitlines()
        first = kept[:limit] if limit else kept
        expect(got == first, f"{command[1:]} --without: {got[:20]} instead of {first[:20]}")


def draw(count):
    rng = random.Random(SEED + 1)
    attributes = "mixed", "rare", "few", "day", "list", "own", "none"
    cases = [(q, [(k, d)], 7, c) for q in QUESTIONS for k in attributes for d in (False, True) for c in (False, True)]
    for _ in range(count):
        keys = [(k, rng.random() < 0.5) for k in rng.sample(attributes, rng.randrange(1, 4))]
        cases.append((rng.choice(list(QUESTIONS)), keys, rng.choice((0, 1, 3, 20, 200, 900)), rng.random() < 0.5))
    return some(cases, by_size(16, 32, len(cases)))


def test_find_sorted__as_a_program_sorts():
    made = catalogue(MANY)
    with Site() as site:
        fill_sqlite(site, made)
        agrees(made, draw(100))


def test_find_sorted__in_postgresql():
    skip_without_postgres()
    made = catalogue(MANY)
    with Server() as server, Site(metadata={"plugin": "postgres", "host": "127.0.0.1", "port": server.port,
                                            "database": "postgres", "user": "esdm"}):
        fill_postgres(server, made)
        agrees(made, draw(30)[:by_size(16, 24, 300)])


def rows(site, made):
    """A catalogue of (name, {object: {attribute: values}}), where "" is the container."""
    with sqlite3.connect(site.folder / "metadata" / "catalogue.sqlite") as db:
        for n, (name, objects) in enumerate(made, 1):
            db.execute("INSERT INTO container VALUES(?, ?, ?, 1, 1, 1, 1, 1, 1, 0, 0, 0, 2, 'none')", (n, name, f"{n:032x}"))
            for d, (variable, attributes) in enumerate(objects.items()):
                entries = [(k, e, v) for k, values in attributes.items() for e, v in enumerate(values)]
                db.executemany("INSERT INTO attribute VALUES(?, ?, ?, ?, ?, ?, ?)", [
                    (n, d, k, e, f"/{variable}" if d else None, v, None if isinstance(v, str) else f"{v:g}")
                    for k, e, v in entries])
        db.execute("UPDATE store SET value = ? WHERE key = 'indexed'", (len(made) // 64 * 64,))
        db.execute("INSERT OR IGNORE INTO store VALUES('name:k', 1)")
    db.close()


def first_are_those_of_all(made, *arguments):
    with Site() as site:
        rows(site, made)
        every = run([FIND, "--columns=k", *arguments]).stdout.splitlines()
        expect(len(every) > 20, f"{every}")
        for limit in (3, 5, 20):
            some_of = run([FIND, "--columns=k", f"--limit={limit}", *arguments]).stdout.splitlines()
            expect(some_of == every[:limit], f"{arguments}: {some_of}, not {every[:limit]}")


def test_find_sorted__one_value_at_the_end():
    """Lists that begin with less come behind the value that all the last ones have."""
    kinds = {0: ("list", [1.0, 2.0]), 1: ("two", [2.0])}
    made = []
    for n in range(MANY):
        name, values = kinds.get(n % 8, ("none", []))
        made.append((f"{name}{n:05d}.nc", {"": {"model": ["m"], "k": values}}))
    first_are_those_of_all(made, "--sort=k", "exists :model")


def test_find_sorted__what_was_seen_last_before():
    """A container that is the last one of a question, and the first one of the next."""
    made = [(f"b{n:05d}.nc", {"": {"model": ["m"]}, "v": {}}) for n in range(MANY)]
    made[5] = ("aaa.nc", {"": {"model": ["m"]}, "v": {"k": [1.0]}})
    first_are_those_of_all(made, "-c", "--sort=k", "exists :model")
    made = [(f"b{n:05d}.nc", {"": {"model": ["m"], "k": [1e6 + n]}}) if n % 5 == 0 else
            (f"x{n:05d}.nc", {"": {"model": ["other"], "k": [float(n)]}}) for n in range(2 * MANY)]
    made[0] = ("aaa.nc", {"": {"model": ["m"], "k": [0.0]}})
    first_are_those_of_all(made, "-c", "--sort=k", ":model = m")


def test_find_sorted__lists_with_a_nan():
    """Such a list is a text that begins with a number."""
    made = [(f"c{n:05d}.nc", {"": {"model": ["m"], "k": [5.0, "-nan"] if n % 100 == 7 else [f"3 x{n % 50}"]}})
            for n in range(MANY)]
    first_are_those_of_all(made, "--sort=-k", "exists :model")


class Moving:
    """A thread that renames containers, forth and back, as fast as it can."""

    def __init__(self, rename, count):
        self.rename, self.count, self.moves = rename, count, 0
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.stop.is_set():
            n = self.moves * 37 % self.count
            self.rename(n + 1, f"{'dc'[self.moves // self.count % 2]}{n:05d}.nc")
            self.moves += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()


def none_is_missed(rename):
    first = [f"{n:05d}" for n in range(1200)]
    with Moving(rename, len(first)) as moving:
        for _ in range(by_size(6, 8, 60)):
            for options in (["--sort=k", "--limit=1200"], ["--sort=k,model"]):
                lines = run([FIND, "-c", "--columns=k", *options, "exists :model"]).stdout.splitlines()
                got = [line.split("\t")[1] for line in lines][:1200]
                wrong = [(a, b) for a, b in zip(got, first) if a != b]
                expect(len(got) == len(first) and not wrong, f"{options}: {len(got)} rows, {wrong[:5]}")
        rows_are_whole(len(first))
        expect(moving.moves > 50, f"{moving.moves} have moved")


def rows_are_whole(count):
    """What is found while it moves: each container once, with its values."""
    wanted = sorted(f"{n:05d}" for n in range(MANY))
    for _ in range(by_size(3, 4, 30)):
        for query in "exists :model", "model =~ '^m$' or model =~ '^n$'", "not (model =~ 'n')":
            lines = run([FIND, "-c", "--columns=k", query]).stdout.splitlines()
            got = sorted(line.split("\t")[1] for line in lines)
            expect(got == wanted, f"{query}: {len(got)} rows, {sum(not k for k in got)} without value, {count} move")
        names = run([FIND, "-c", "model =~ '^m$'"]).stdout.splitlines()
        expect(sorted(n[-8:-3] for n in names) == wanted, f"{len(names)} names")
        facets = json.loads(run([FIND, "--json", "--facets=model", "model =~ '^m$'"]).stdout)
        expect(str(MANY) in json.dumps(facets), f"facets: {facets}")


def test_find_sorted__what_moves_is_in_the_answer():
    """A container that gets another name while the question is answered has its place under one of them."""
    made = [(f"c{n:05d}.nc", {"": {"model": ["m"], "k": [f"{n:05d}"]}}) for n in range(MANY)]
    with Site() as site:
        rows(site, made)
        with sqlite3.connect(site.folder / "metadata" / "catalogue.sqlite", check_same_thread=False) as db:
            db.execute("PRAGMA synchronous = OFF")

            def rename(n, name):
                with db:
                    db.execute("UPDATE container SET name = ? WHERE container = ?", (name, n))
            none_is_missed(rename)
        db.close()


def is_asked_anew(tell):
    """A question whose connection is lost on the way."""
    ask = [FIND, "-c", "--columns=k", "--sort=k", "--limit=1200", "exists :model"]
    want, hit = run(ask).stdout, 0
    for _ in range(8):
        with subprocess.Popen(ask, stdout=subprocess.PIPE, text=True) as find:
            lost = 0
            while find.poll() is None and not lost:
                lost = tell("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'esdm' "
                            "AND xact_start IS NOT NULL AND query LIKE '%attributes%'") != "0"
            hit += lost
            expect(find.communicate()[0] == want, "the answer")
    expect(hit > 0, "no connection was lost")


def test_find_sorted__what_moves_in_postgresql():
    skip_without_postgres()
    made = [(f"c{n:05d}.nc", {"": {"model": [("m", None)], "k": [(f"{n:05d}", None)]}}) for n in range(MANY)]
    with Server() as server, Site(metadata={"plugin": "postgres", "host": "127.0.0.1", "port": server.port,
                                            "database": "postgres", "user": "esdm"}):
        fill_postgres(server, made)
        with subprocess.Popen(["psql", "-X", "-A", "-t", "-h", "127.0.0.1", "-p", str(server.port), "-U", "esdm", "postgres"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as psql:

            def tell(sql):
                psql.stdin.write(sql + ";\n")
                psql.stdin.flush()
                return psql.stdout.readline().strip()

            def rename(n, name):
                said = tell(f"UPDATE esdm.container SET name = '{name}' WHERE container = {n}")
                expect(said == "UPDATE 1", f"{name}: {said}")
            none_is_missed(rename)
            is_asked_anew(tell)
            psql.stdin.close()


def processor_ms(*arguments):
    """The least of some runs."""
    took = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run([FIND, *arguments])
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    return min(took)


def test_find_sorted__the_first_ones_cost_what_they_are():
    """Few of many, in an order or by names, as JSON or without some containers."""
    made = [(f"c{n:05d}.nc", {"": {"model": ["m"], "k": [f"k{n}"]}}) for n in range(8 * MANY)]
    with Site() as site:
        rows(site, made)
        for options in (["--sort=k"], ["--sort=-k"], ["--columns=k"]):
            every = processor_ms(*options, "exists :model")
            for more in ([], ["--json"], ["--without=c000*", "--without=c12*"]):
                few = processor_ms(*options, *more, "--limit=3", "exists :model")
                for _ in range(4):  # other programs cost both some time, and never save any
                    if few < 0.7 * every:
                        break
                    few = min(few, processor_ms(*options, *more, "--limit=3", "exists :model"))
                expect(few < 0.7 * every, f"{options + more}: {few:.1f} ms for the first, {every:.1f} for all")


if __name__ == "__main__":
    main(test_find_sorted__one_value_at_the_end, test_find_sorted__what_was_seen_last_before,
         test_find_sorted__lists_with_a_nan, test_find_sorted__the_first_ones_cost_what_they_are,
         test_find_sorted__what_moves_is_in_the_answer, test_find_sorted__what_moves_in_postgresql,
         test_find_sorted__as_a_program_sorts, test_find_sorted__in_postgresql)
