# SPDX-License-Identifier: LGPL-3.0-or-later
"""Views: every level has what a program counts that reads the attributes of all files, places open as names do."""

import json
import random
import subprocess

from esdmtest import BUILD, SOURCE, Site, by_size, client, expect, expect_error, main, need_data, need_program, run, tool
from postgres import Server, skip_without_postgres

LS = tool("esdm-ls")
PYTHON = "/usr/bin/python3"
EQUAL = SOURCE / "tests/netcdf/clients/virtual_files.py"
CMIP6 = ["mip_era", "activity_id", "institution_id", "source_id", "experiment_id", "variant_label", "table_id",
         "variable_id", "grid_label"]
ODD = ["x", "a/b", "../../etc", ".", "..", "_missing_", "_empty_", "", "%2F", "100%", "a b", " a ", "a\tb\n", "run@7",
       "?a=b", "#1", "C:\\x", "ä", "*", "[a]", "{b}", "x, y", "l" * 300, "l" * 299 + "m", "'", '"', "-l", "~", "$HOME"]

READ = """
import json, sys, netCDF4
names = json.loads(sys.argv[1])
all = {}
for path in sys.argv[2:]:
    with netCDF4.Dataset(path) as d:
        all[path.rsplit("/", 1)[1]] = [str(d.getncattr(n)) if n in d.ncattrs() else None for n in names]
json.dump(all, sys.stdout)
"""
WRITE = """
import json, sys, netCDF4
for path, attributes in json.load(open(sys.argv[1])).items():
    with netCDF4.Dataset(path, "w") as d:
        d.setncatts(attributes)
        d.createDimension("x", 2)
        d.createVariable("v", "i4", ("x",))[:] = [len(path), 1]
"""


def attributes_of(files, names):
    done = run([PYTHON, "-c", READ, json.dumps(names), *files])
    return json.loads(done.stdout)


def escaped(value):
    """What docs/reference.md says of a component; of a long value the beginning."""
    if value is None:
        return "_missing_"
    if value == "":
        return "_empty_"
    text = ""
    for i, c in enumerate(value):
        edge = c == " " and i in (0, len(value) - 1)
        word = i == 0 and value in ("_missing_", "_empty_", ".", "..")
        if edge or word or c in "/%?@#\\" or ord(c) < 0x20 or 0x7f <= ord(c) < 0xa0:
            text += "".join(f"%{b:02X}" for b in c.encode())
        else:
            text += c
    return text if len(text.encode()) <= 120 else text[:102] + "%~"


def tree(rows):
    """Counts of all places: {(component, …): containers}."""
    counts = {}
    for row in rows:
        parts = tuple(escaped(v) for v in row)
        for depth in range(1, len(parts) + 1):
            counts[parts[:depth]] = counts.get(parts[:depth], 0) + 1
    return counts


def told(view, depth):
    """The same, as esdm-ls tells it; of a cut component the beginning."""
    found = json.loads(run([LS, "--json", "--depth", str(depth), f"{view}:"]).stdout)["containers"]
    counts = {}
    for line in found:
        parts = line["name"].removeprefix(f"{view}:/").rstrip("/").split("/")
        place = tuple(c.split("%~")[0] + "%~" if "%~" in c else c for c in parts)
        counts[place] = counts.get(place, 0) + line["containers"]
    return counts, [line["name"] for line in found]


def sources():
    """Series of several files and single ones, small."""
    series = {}
    for file in sorted(need_data("cmip6").rglob("*.nc")):
        series.setdefault(file.parent, []).append(file)
    chosen = [s for s in series.values() if sum(f.stat().st_size for f in s) < 2 << 20]
    chosen.sort(key=lambda s: (-min(len(s), 3), sum(f.stat().st_size for f in s)))
    return chosen[:by_size(6, 20, 60)]


def same_units(files):
    """Joined times have the first's units, else."""
    dumps = [run(["ncdump", "-h", f]).stdout for f in files]
    return len({line for dump in dumps for line in dump.splitlines() if "time:units" in line}) == 1


def test_views__levels_are_what_a_program_counts():
    need_program(PYTHON, "ncdump")
    series = sources()
    files = [f for s in series for f in s]
    rows = attributes_of(files, CMIP6)
    with Site(views={"models": "{source_id}/{no_such}/{table_id}", "cordex": False}):
        run([tool("esdm-cp"), *files, "esdm://in/"])
        want = tree(rows.values())
        for depth in range(1, 10):
            got, _ = told("cmip6", depth)
            expect(got == {p: n for p, n in want.items() if len(p) == depth}, f"depth {depth}: {got}")
        mine = tree([r[3], None, r[6]] for r in rows.values())
        got, names = told("models", 3)
        expect(got == {p: n for p, n in mine.items() if len(p) == 3}, f"{got}")
        expect(all("/_missing_/" in n for n in names), f"{names}")
        shown = run([LS, "--tree", "cmip6:"]).stdout.splitlines()
        expect(len(shown) == len(want) + 1 and shown[1] == f"  CMIP6/  {len(files)}", "\n".join(shown[:5]))
        expect(run([LS, "--views"]).stdout.splitlines()[2] == "models:\t{source_id}/{no_such}/{table_id}", "views")
        expect(run([LS, "cordex:/"], check=False).returncode == 3, "it is switched off")
        expect(run([LS, "cmip7:/"], check=False).returncode == 3, "nothing is in it")
        for one in [s for s in series if same_units(s)][:3]:
            place = "cmip6:/" + "/".join(escaped(v) for v in rows[one[0].name])
            expect(run([LS, place]).stdout.split() == sorted(f"in/{f.name}" for f in one), place)
            client([PYTHON, EQUAL, "equal", f"esdm://{place}", *one])
        removed = series[0][0].name
        run([tool("esdm-rm"), f"in/{removed}"])
        run([tool("esdm-mv"), f"in/{series[1][0].name}", "elsewhere.nc"])
        del rows[removed]
        got, _ = told("cmip6", 9)
        expect(got == {p: n for p, n in tree(rows.values()).items() if len(p) == 9}, f"after a removal: {got}")


def python_lists(place, want):
    """The module esdm tells the same."""
    code = """
import sys
sys.path.insert(0, sys.argv[1])
import esdm
found = esdm.ls("esdm://cmip6:")
while not isinstance(found[0], esdm.Container):
    assert len(found) == 1, found
    last, found = found[0], found[0].ls()
assert last.name == sys.argv[2] and not last.is_folder, last
assert [v.name for v in esdm.views()] == ["cmip6", "cmip7", "cordex"], esdm.views()
with last.open() as d:
    assert len(d.dimensions["time"]) > 0
print(*(c.name for c in found))
"""
    done = client([PYTHON, "-c", code, SOURCE / "python", place],
                  env={"ESDM_LIBRARY_DIR": f"{BUILD}:{BUILD}/netcdf-plugin"})
    expect(done.stdout.split() == want, f"esdm.ls: {done.stdout}")


def test_views__places_are_used_like_names():
    need_program(PYTHON, "ncdump", "ncks", "cdo")
    one = next(s for s in sources() if len(s) > 1)
    row = attributes_of(one[:1], CMIP6)[one[0].name]
    with Site() as site:
        run([tool("esdm-cp"), *one, "esdm://in/"])
        place = "cmip6:/" + "/".join(escaped(v) for v in row)
        url = f"esdm://{place}"
        run([tool("esdm-cp"), url, site.file("cp.nc")])
        client(["ncks", "-O", "-h", url, site.file("nco.nc")])
        client(["cdo", "-s", "copy", url, site.file("cdo.nc")])
        count = {name: run(["ncdump", "-h", site.file(name)]).stdout.split("currently")[0].rsplit("(", 1)[1]
                 for name in ("cp.nc", "nco.nc", "cdo.nc")}
        expect(len(set(count.values())) == 1, f"{count}")
        expect(place in run([tool("esdm-stat"), url]).stdout, "esdm-stat")
        want = sorted(f"in/{f.name}" for f in one)
        folder = place.rsplit("/", 2)[0]
        expect(run([tool("esdm-find"), "-c", folder]).stdout.split() == want, "esdm-find PLACE")
        years = sorted(f.name.rsplit("_", 1)[1][:4] for f in one)
        expect(run([tool("esdm-find"), "-c", folder, f"time overlaps {years[0]}-06"]).stdout.split() == want[:1],
               "esdm-find PLACE EXPRESSION")
        python_lists(place, want)
        run([tool("esdm-cp"), url, "esdm://whole"])
        run([tool("esdm-rm"), "whole"])
        for wrong, why in (([tool("esdm-cp"), site.file("cp.nc"), "esdm://cmip6:/x.nc"], "cmip6:"),
                           ([tool("esdm-mv"), f"in/{one[0].name}", "cmip6:/x"], "nobody can write to"),
                           ([tool("esdm-rm"), place], "cmip6:"),
                           ([LS, "cmip6:/CMIP6/nix"], "--views"),
                           ([LS, "cmip6:" + "/x" * 10], "more levels than the 9"),
                           ([tool("esdm-cp"), "esdm://cmip6:/CMIP6", site.file("y.nc")], "folder of a view")):
            expect_error(run(wrong, check=False), why)
        expect(client(["ncdump", "-h", "esdm://cmip6:/CMIP6/x"], check=False).returncode == 1, "there is none")


def test_views__hostile_values():
    need_program(PYTHON)
    with Site(views={"odd": "{word}/{next}"}) as site:
        archive = {str(site.file(f"{i}.nc")): {"word": word, "next": ODD[i - 1]} if i % 3 else {"word": word}
                   for i, word in enumerate(ODD)}
        archive[str(site.file("none.nc"))] = {"next": "x"}
        archive[str(site.file("number.nc"))] = {"word": 7, "next": 0.5}
        archive[str(site.file("list.nc"))] = {"word": [1, 2, 3]}
        with open(site.file("odd.json"), "w", encoding="utf-8") as f:
            json.dump(archive, f)
        run([PYTHON, "-c", WRITE, site.file("odd.json")])
        run([tool("esdm-cp"), *archive, "esdm://"])
        rows = [[v["word"], v.get("next")] for v in archive.values() if "word" in v]
        rows = [["1, 2, 3" if r[0] == [1, 2, 3] else str(r[0]), None if r[1] is None else str(r[1])] for r in rows]
        want = tree(rows)
        for depth in (1, 2):
            got, names = told("odd", depth)
            level = {p: n for p, n in want.items() if len(p) == depth}
            both = sum(n for p, n in level.items() if p[0].endswith("%~"))
            expect(sum(got.values()) == sum(level.values()) and both == 2, f"{got}")
            expect({p: n for p, n in got.items() if not any(c.endswith("%~") for c in p)}
                   == {p: n for p, n in level.items() if not any(c.endswith("%~") for c in p)}, f"{got}")
            cut = [n for n in names if "l" * 99 in n.split("/")[1]]
            expect(len(set(cut)) == 2 and len(set(names)) == len(names), f"{cut}")
        for name in names:
            found = run([tool("esdm-find"), "-c", "-0", name], check=False)
            expect("%~" in name or ", " in name or found.stdout.strip("\0") == run([LS, name]).stdout.strip(), f"{name}: {found}")
            found = run([LS, name]).stdout.split()
            expect(len(found) == 1, f"{name}: {found}")
            done = client(["ncdump", "-v", "v", f"esdm://{name}"], check=False)
            expect(f"v = {len(str(site.file(found[0])))}, 1 ;" in done.stdout, f"{name}: {done}")
        plain = run([LS, "--depth", "2", "odd:"]).stdout.splitlines()
        expect(sorted(plain) == sorted(names), "names are printed as they are opened")
        run([tool("esdm-ln"), "?word=x", "saved.nc"])
        expect("saved.nc" in run([LS]).stdout.split(), "esdm-ln")
        expect(told("odd", 2)[1] == names, "what was saved is not counted twice")


FILL = """
import sys, netCDF4
for i in range(int(sys.argv[2]), int(sys.argv[3])):
    with netCDF4.Dataset(f"{sys.argv[1]}{i}.nc", "w") as d:
        d.setncatts({"model": "abc"[i % 3], "run": str(i % 2)})
"""


def counts_leave_branches_out(store):
    """What queries pass by is in no level, whether its attributes wait to be entered or are."""
    with Site(views={"runs": "{model}/{run}"}, **store):
        made = 0
        for more in (4, 70):
            client([PYTHON, "-c", FILL, "esdm://in/", str(made), str(made + more)])
            made += more
            for i in (0, 3, made - 2):
                run([tool("esdm-branch"), f"in/{i}.nc", f"try{made}"])
            client([PYTHON, "-c", FILL, f"esdm://in/.esdm-cp-{made}-", "0", "2"])
            rows = [["abc"[i % 3], str(i % 2)] for i in range(made)]
            for depth in (1, 2):
                got, _ = told("runs", depth)
                expect(got == {p: n for p, n in tree(rows).items() if len(p) == depth}, f"depth {depth} of {made}: {got}")
            found = run([tool("esdm-find"), "--facets", "model", "model ~ *", "--json"]).stdout
            expect(sum(json.loads(found)["facets"]["model"].values()) == made, found)
            expect(len(run([LS, "runs:/a/0"]).stdout.split()) == tree(rows)["a", "0"], "the containers of a place")
        for i in (0, 3):
            for name in ("try4", "try74"):
                run([tool("esdm-branch"), "--remove", f"in/{i}.nc", name])
        run([tool("esdm-mv"), "in/.esdm-cp-74-0.nc", "whole.nc"])
        got, _ = told("runs", 1)
        expect(got["a",] == sum(r[0] == "a" for r in rows) + 1, f"a copy that is whole counts: {got}")


def test_views__levels_count_what_queries_find():
    need_program(PYTHON)
    counts_leave_branches_out({})
    skip_without_postgres()
    with Server() as server:
        counts_leave_branches_out({"metadata": {"plugin": "postgres", "host": "127.0.0.1", "port": server.port,
                                                "database": "postgres", "user": "esdm"}})


# Twenty containers: names that queries pass by and others, attributes that come and go.
def changes(rng, count):
    for _ in range(count):
        n = rng.randrange(1, 21)
        name = rng.choice((f"'c{n}.nc'", f"'c{n}.nc@branch:x'", f"'d/.esdm-cp-{n}'", f"'.esdm-recipe/{n}'",
                           f"'/former/c{n}'", f"'@branch:c{n}'", "NULL"))
        attributes = {"n": ["model", "run"], "s": {"model": [rng.choice("abc")], "run": [rng.choice("01")]}}
        yield rng.choice((f"UPDATE esdm.container SET name = {name} WHERE container = {n}",
                          f"DELETE FROM esdm.object WHERE container = {n}",
                          f"INSERT INTO esdm.object VALUES({n}, 0, NULL, '{json.dumps(attributes)}') ON CONFLICT DO NOTHING"))


def test_views__levels_of_postgresql_cost_nothing_for_what_is_hidden():
    skip_without_postgres()
    kept = "SELECT node, sum(n) FROM esdm.view_hidden GROUP BY node HAVING sum(n) <> 0 ORDER BY node"
    with Server() as server, Site(views={"runs": "{model}/{run}"}, metadata={
            "plugin": "postgres", "host": "127.0.0.1", "port": server.port, "database": "postgres", "user": "esdm"}) as site:
        server.sql("INSERT INTO esdm.container SELECT i, 'c' || i || '.nc', 'u', 1, 1, 1, 1, 1, 1, 0, 0, 0, 2 "
                   "FROM generate_series(1, 20) AS i")
        for turn in range(8):
            server.sql("; ".join(changes(random.Random(turn), 100)))
            counts = server.sql(kept)
            server.sql("SELECT esdm.view_hide_all()")
            expect(counts == server.sql(kept) and counts != [], f"turn {turn}: {counts} instead of {server.sql(kept)}")
        right, _ = told("runs", 2)
        rows = server.sql("SELECT (o.attributes->'s'->'model'->>0) || (o.attributes->'s'->'run'->>0) FROM esdm.object o "
                          "JOIN esdm.container c USING (container) WHERE c.name = 'c' || c.container || '.nc' "
                          "OR c.name = '@branch:c' || c.container")
        expect(right == {p: n for p, n in tree([list(r) for r in rows]).items() if len(p) == 2}, f"{right}, {rows}")
        # A store of before: they are looked at, until esdm-mkfs counts them.
        server.sql("DELETE FROM esdm.view_node WHERE parent = -1 AND part = 'hidden'; TRUNCATE esdm.view_hidden")
        expect(told("runs", 2)[0] == right, "of a store of before")
        run([tool("esdm-mkfs"), site.config])
        expect(server.sql(kept) == counts, "counted by esdm-mkfs")
        server.sql("CREATE OR REPLACE FUNCTION esdm.view_parts(p_view text[], p_attributes jsonb) RETURNS text[] "
                   "LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE EXCEPTION 'a container is looked at'; END $$")
        expect(told("runs", 2)[0] == right, "none is looked at")


# What may change a count: a function that runs as the owner, or a trigger with one on a table of one's own.
ATTEMPTS = [
    "SELECT esdm.view_enter(1000, '{\"n\": [\"model\", \"run\"], \"s\": {\"model\": [\"a\"], \"run\": [\"0\"]}}')",
    "SELECT esdm.view_leave(container) FROM esdm.container",
    "SELECT esdm.view_hide(container, 5) FROM esdm.container",
    "SELECT esdm.facet_put(7, '{}')",
    "SELECT esdm.view_hide_all()",
    "SELECT esdm.view_make('{}')",
    *(f"CREATE TEMP TABLE mine AS SELECT * FROM esdm.{table}; "
      f"CREATE TRIGGER mine AFTER INSERT OR UPDATE ON mine FOR EACH ROW EXECUTE FUNCTION esdm.{function}(); {change}"
      for table, function, change in (
          ("object", "view_object", "INSERT INTO mine SELECT * FROM esdm.object WHERE dataset = 0"),
          ("container", "view_named", "UPDATE mine SET name = '/former/' || name"))),
]
# Functions as they were before.
OPEN = """
ALTER FUNCTION esdm.view_enter SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION esdm.view_leave SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION esdm.view_hide SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
GRANT EXECUTE ON FUNCTION esdm.view_object, esdm.view_named TO PUBLIC;
"""


def refused(server, role):
    """How many attempts of somebody are refused for want of rights."""
    count = 0
    for attempt in ATTEMPTS:
        try:
            server.sql(attempt, user=role)
        except RuntimeError as told_why:
            expect("permission denied for" in str(told_why), f"{told_why}")
            count += 1
    return count


def test_views__readers_of_postgresql_change_no_counts():
    """Writers who have no rights to the counts do, by what they write."""
    need_program(PYTHON)
    skip_without_postgres()
    with Server() as server, Site(views={"runs": "{model}/{run}"}, metadata={
            "plugin": "postgres", "host": "127.0.0.1", "port": server.port, "database": "postgres", "user": "esdm"}) as site:
        own = site.config.read_text()
        server.sql("CREATE ROLE reader LOGIN; CREATE ROLE writer LOGIN; GRANT USAGE ON SCHEMA esdm TO reader, writer; "
                   "GRANT SELECT ON ALL TABLES IN SCHEMA esdm TO reader; "
                   "GRANT SELECT, INSERT, UPDATE, DELETE ON esdm.store, esdm.container, esdm.snapshot, esdm.page, esdm.object, "
                   "esdm.token, esdm.shared, esdm.tag, esdm.extent, esdm.reach TO writer; "
                   "GRANT USAGE ON SEQUENCE esdm.container_number TO writer")
        site.config.write_text(own.replace('"user": "esdm"', '"user": "writer"'))
        client([PYTHON, "-c", FILL, "esdm://in/", "0", "12"])
        run([tool("esdm-branch"), "in/0.nc", "try"])
        run([tool("esdm-rm"), "--yes", "--for-good", "in/1.nc"])
        rows = [["abc"[i % 3], str(i % 2)] for i in range(12) if i != 1]
        want = {p: n for p, n in tree(rows).items() if len(p) == 2}
        expect(told("runs", 2)[0] == want, f"what a writer wrote: {told('runs', 2)[0]}")
        for role in ("reader", "writer"):
            expect(refused(server, role) == len(ATTEMPTS), f"{role}: {refused(server, role)}")
        expect(told("runs", 2)[0] == want, "counts have changed")
        # A store of before lets them; esdm-mkfs ends that, and counts anew.
        server.sql(OPEN)
        expect(refused(server, "reader") == 3, "functions are not as they were")
        site.config.write_text(own)
        run([tool("esdm-mkfs"), site.config])
        expect(refused(server, "reader") == len(ATTEMPTS), "esdm-mkfs has left them")
        run([tool("esdm-mkfs"), "--reindex"])
        expect(told("runs", 2)[0] == want, "counted anew")


if __name__ == "__main__":
    main(*(f for n, f in sorted(globals().items()) if n.startswith("test_")))
