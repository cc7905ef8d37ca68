# SPDX-License-Identifier: LGPL-3.0-or-later
"""What esdm-find answers is what a program finds that reads every attribute of the source files."""

import fnmatch
import itertools
import json
import random
import re
import subprocess

from brute_force import INHERITED, NO, OWN, expected
from esdmtest import Site, by_size, client, expect, expect_error, main, need_data, need_program, run, tool
from postgres import Server, skip_without_postgres

FIND = tool("esdm-find")
FILES = by_size(12, 24, 1000)  # in the long form all that there are
SEED = 20261124

READ = """
import json, sys
import netCDF4, numpy
def values(holder):
    found = {}
    for name in holder.ncattrs():
        v = holder.getncattr(name)
        if not isinstance(v, str):
            v = numpy.atleast_1d(v)
            form = {"f4": "%.9g", "f8": "%.17g"}.get(v.dtype.str[1:], "%d")
            found[name] = [[float(x), form % x] for x in v]
        else:
            found[name] = [v]
    return found
all = {}
for path in sys.argv[1:]:
    with netCDF4.Dataset(path) as f:
        all[path.rsplit("/", 1)[1]] = {"": values(f), **{n: values(v) for n, v in f.variables.items()}}
json.dump(all, sys.stdout)
"""


def sources():
    """The smallest files, of as many variables and models as there are."""
    files = sorted(need_data("cmip6").rglob("*.nc"), key=lambda p: (p.stat().st_size, p.name))
    groups = {}
    for file in files:
        groups.setdefault(file.name.split("_")[0:3:2].__str__(), []).append(file)
    turns = itertools.zip_longest(*groups.values())
    return [f for turn in turns for f in turn if f is not None][:FILES]


# ---- the other program: own, inherited, or not at all ---------------------------------------------

COMPARE = {"=": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b,
           "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
           "~": fnmatch.fnmatchcase, "=~": lambda a, b: re.search(b, a) is not None,
           "in": lambda a, b: a in b, "exists": lambda a, b: True}



class Number(float):
    """A number, and how it is written."""


def number(pair):
    made = Number(pair[0])
    made.text = pair[1]
    return made


def value_meets(have, op, value):
    if op == "exists":
        return True
    if op == "in":
        return any(value_meets(have, "=", v) for v in value)
    if op in ("~", "=~") and isinstance(have, Number):
        have = have.text
    if type(have) is not type(value):
        return op == "!="
    return COMPARE[op](have, value)


def leaf(test, container, dataset):
    scope, name, op, value = test
    values = container[""].get(name)
    kind = INHERITED if dataset else OWN
    if scope is not None and scope != "" and scope != dataset:
        return NO
    if dataset and scope != "" and name in container[dataset]:
        values, kind = container[dataset][name], OWN
    if values is None or not any(value_meets(v, op, value) for v in values):
        return NO
    return kind


# ---- questions ------------------------------------------------------------------------------------

def quoted(value):
    if not isinstance(value, str):
        return repr(float(value))
    return json.dumps(value)


def text_of(tree):
    if tree[0] == "not":
        return f"not ({text_of(tree[1])})"
    if tree[0] in ("and", "or"):
        return f" {tree[0]} ".join(f"({text_of(t)})" if t[0] in ("and", "or") else text_of(t)
                                   for t in tree[1:])
    scope, name, op, value = tree[1]
    name = name if scope is None else f"{scope}:{name}"
    if op == "exists":
        return f"exists {name}"
    if op == "in":
        return f"{name} in ({', '.join(quoted(v) for v in value)})"
    return f"{name} {op} {quoted(value)}"


class Questions:
    def __init__(self, archive):
        self.random = random.Random(SEED)
        self.known = {}
        for container in archive.values():
            for dataset, attributes in container.items():
                for name, values in attributes.items():
                    # Longer texts are found by their beginnings alone.
                    if len(str(values[0])) < 200 and values[0] == values[0]:
                        self.known.setdefault(name, []).append((dataset, values[0]))

    def value(self, name, kind):
        fitting = [v for _, v in self.known[name] if isinstance(v, kind)]
        return self.random.choice(fitting)

    def test(self, op):
        r = self.random
        kind = str if op in ("~", "=~") else (str, float)
        name = r.choice([n for n, v in self.known.items() if any(isinstance(x, kind) for _, x in v)])
        dataset, value = r.choice([x for x in self.known[name] if isinstance(x[1], kind)])
        scope = r.choice([None, None, None, dataset])
        if op == "in":
            value = [value] + [self.value(name, type(value)) for _ in range(r.randrange(3))]
        elif op == "~":
            word = re.sub(r"[^A-Za-z0-9 _-]", "?", value)
            start = r.randrange(len(word) + 1)
            value = r.choice([word[:start] + "*", "*" + word[start:], "*" + word[start:start + 3] + "*"])
        elif op == "=~":
            word = re.escape(value[:12])
            value = r.choice(["^" + word, word[:4].rstrip("\\"), "[0-9]{2}", f"^({word}|x+)"])
        return ("leaf", (scope, name, op, value))


def pairs(questions):
    operators = list(COMPARE)
    yield from (questions.test(op) for op in operators for _ in range(3))
    yield from (("not", questions.test(op)) for op in operators)
    for a, b in itertools.product(operators, operators):
        joint = questions.random.choice(["and", "or"])
        for join in {joint} if by_size(True, True, False) else {"and", joint}:
            tests = [questions.test(a), questions.test(b)]
            if questions.random.random() < 0.3:
                tests[1] = ("not", tests[1])
            yield (join, *tests)
    for _ in range(by_size(20, 20, 130)):
        a, b, c, d = (questions.test(questions.random.choice(operators)) for _ in range(4))
        yield questions.random.choice([("and", ("or", a, b), ("not", c)), ("or", ("and", a, b), c),
                                       ("not", ("or", a, ("and", b, ("not", c)))),
                                       ("and", ("or", a, b), ("or", c, d))])


def agrees(archive, files):
    run([tool("esdm-cp"), *files, "esdm://"])
    asked = found_some = 0
    for tree in pairs(Questions(archive)):
        text = text_of(tree)
        done = run([FIND, text], check=False)
        want = sorted(expected(tree, archive, leaf, lambda container: container))
        got = sorted(done.stdout.splitlines())
        expect(done.returncode == (0 if want else 3), f"{text}: {done.returncode} {done.stderr}")
        expect(got == want, f"{text}:\nonly found: {sorted(set(got) - set(want))[:5]}\n"
                            f"not found: {sorted(set(want) - set(got))[:5]}")
        asked += 1
        found_some += bool(want)
    expect(asked >= by_size(150, 150, 300) and found_some > asked // 3, f"{asked} questions, {found_some} found some")


def test_find__agrees_with_reading_every_source_file():
    need_program("/usr/bin/python3")
    files = [str(f) for f in sources()]
    archive = json.loads(subprocess.run(["/usr/bin/python3", "-c", READ, *files], check=True,
                                        capture_output=True).stdout)
    for container in archive.values():
        for attributes in container.values():
            for values in attributes.values():
                values[:] = [v if isinstance(v, str) else number(v) for v in values]
    with Site():
        agrees(archive, files)
    if by_size(False, True, True):
        skip_without_postgres()
        with Server() as server:
            store = {"plugin": "postgres", "host": "127.0.0.1", "port": server.port,
                     "database": "postgres", "user": "esdm"}
            with Site(metadata=store):
                agrees(archive, files)


def test_find__columns_order_limits_and_counts():
    files = [str(f) for f in sources()][:8]
    archive = json.loads(subprocess.run(["/usr/bin/python3", "-c", READ, *files], check=True,
                                        capture_output=True).stdout)
    with Site():
        run([tool("esdm-cp"), *files, "esdm://"])
        names = ["source_id", "realization_index", "no_such"]
        ask = [FIND, "-c", "--columns", ",".join(names), "exists :source_id"]
        rows = {n: c[""] for n, c in archive.items()}
        want = [[n, v["source_id"][0], v["realization_index"][0][1], "-"] for n, v in rows.items()]
        got = [line.split("\t") for line in run(ask).stdout.splitlines()]
        expect(got == sorted(want), f"columns: {got}")
        got = [line.split("\t") for line in run([*ask, "--sort", "no_such,-source_id"]).stdout.splitlines()]
        want.sort()
        want.sort(key=lambda row: row[1], reverse=True)
        expect(got == want, f"sorted: {got}")
        told = json.loads(run([*ask, "--sort=-source_id", "-n", "3", "--json"]).stdout)
        expect(told["found"] is None and told["more"] and [m["container"] for m in told["matches"]]
               == [w[0] for w in want[:3]], f"limit: {told}")
        told = json.loads(run([*ask, "--sort=-source_id", "-n", str(len(files)), "--json"]).stdout)
        expect(told["found"] == len(files) and not told["more"], f"all: {told}")
        expect(told["matches"][0]["values"]["realization_index"] == rows[want[0][0]]["realization_index"][0][0]
               and told["matches"][0]["values"]["no_such"] is None, f"values: {told['matches'][0]}")
        counts = json.loads(run([FIND, "--facets", "source_id,units", "--json",
                                 "units = K or exists :source_id"]).stdout)["facets"]
        models = [v["source_id"][0] for v in rows.values()]
        expect(counts["source_id"] == {m: models.count(m) for m in models}, f"facets: {counts}")
        expect(counts["units"]["K"] == sum(any(v.get("units") == ["K"] for v in c.values())
                                           for c in archive.values()), f"facets: {counts}")
        lines = run([FIND, "--facets", "source_id", "-n", "1", "exists :source_id"]).stdout.splitlines()
        most = max(models.count(m) for m in models)
        expect(lines[0] == "source_id" and lines[1].split()[0] == str(most) and len(lines) == 2, f"{lines}")
        expect(run([FIND, "--facets", "a", "--sort", "b", "c = d"], check=False).returncode == 2, "")
        for wrong in ("-1", "0"):
            done = run([FIND, "--limit", wrong, "exists :source_id"], check=False)
            expect(done.returncode == 2 and not done.stdout and f"not {wrong}" in done.stderr, f"{done.stderr}")


def test_find__saved_queries():
    ls = tool("esdm-ls")
    files = [str(f) for f in sources()][:4]
    with Site():
        run([tool("esdm-cp"), *files, "esdm://"])
        first = sorted(f.rsplit("/", 1)[1] for f in files)[0]
        expect(run([FIND, "--list"]).stdout == "", "nothing is saved")
        run([FIND, "--save", "kelvin", "units = K", "variable_id = ta or variable_id = tas"])
        run([FIND, "--save", "all", "exists :source_id"])
        want = run([FIND, "-c", "units = K and variable_id in (ta, tas)"], check=False).stdout
        expect(run([FIND, "-c", "kelvin:"], check=False).stdout == want != "", f"kelvin: {want}")
        expect(run([ls, "kelvin:"]).stdout == want, "esdm-ls kelvin:")
        expect(run([ls, "-l", "all:"]).stdout.count(".nc") == 4, "esdm-ls -l all:")
        both = run([FIND, "all:", "exists :no_such or exists tracking_id"]).stdout.splitlines()
        expect(first in both and len(both) == 4, f"{both}")
        expect(set(json.loads(run([FIND, "--list", "--json"]).stdout)) == {"all", "kelvin"}, "list")
        run([FIND, "--save", "all", "exists :no_such"])
        expect(run([ls, "all:"], check=False).returncode == 3, "it was replaced")
        run([FIND, "--forget", "all"])
        for wrong in ([FIND, "all:"], [ls, "all:"], [FIND, "--forget", "all"]):
            done = run(wrong, check=False)
            expect(done.returncode == 3 and "esdm-find --list" in done.stderr, f"{wrong}: {done}")
        for wrong in (["--save", "a b", "c = d"], ["--save", "x", "c ="], ["--save", "", "c = d"]):
            expect(run([FIND, *wrong], check=False).returncode == 2, f"{wrong}")
        expect(run([FIND, "--list"]).stdout.split(":")[0] == "kelvin", "one is left")


def test_find__says_where_a_question_is_wrong():
    with Site():
        for text, words in {
                "(a = b": ("column 1", "not closed"),
                "(a = b or": ("column 10", 'after "or"'),
                "a in b": ("column 6", '"("'),
                "a in (b": ("column 8", '","'),
                "a in ()": ("column 7", "expected a value"),
                "a =~ '('": ("column 6", "regular expression, byte 2"),
                "not": ("column 4", "expected one of"),
                "(" * 5000: ("too deep",),
                "not " * 5000 + "a = b": ("too deep",),
                "exists (a": ("not closed",),
                "a = b) ": (),
        }.items():
            done = run([FIND, text], check=False)
            expect(done.returncode == (2 if words else 3), f"{text[:40]}: {done.returncode}")
            for word in words:
                expect(word in done.stderr, f"{text[:40]}: {done.stderr}")
        many = " or ".join(f"a = {i}" for i in range(5000))
        expect("4096" in run([FIND, many], check=False).stderr, "too many comparisons")


def test_find__says_why_nothing_was_found():
    need_program("ncgen")
    with Site() as site:
        for name, model, variable in (("a", "EC-Earth3", "ta"), ("b", "EC-Earth3-Veg", "pr"), ("c", "and or", "ta")):
            text = site.file("a.cdl")
            text.write_text(f'netcdf a {{ :model = "{model}" ; :variable = "{variable}" ; }}')
            client(["ncgen", "-4", "-o", f"esdm://{name}.nc", text])
        for expression, said in {
                "model = ec-earth3 and variable = ta":
                    "nothing has model = ec-earth3; there is EC-Earth3, EC-Earth3-Veg",
                '(variable = "hus") and (model = EC-Earth3)': "there is ta, pr",
                "not exists model and :model = x": "nothing has not exists model",
                "model = EC-Earth3 and variable = pr": "each of the 2 conditions",
                "model = ecearth3_veg": "; there is EC-Earth3, EC-Earth3-Veg",
                "model = EC-Erth3-Vegg": "; there is EC-Earth3-Veg",
                "time = 1990": "did you mean 'time overlaps 1990-01 .. 2000-12'?",
                "lat > 30": "did you mean 'box overlaps WEST,SOUTH,EAST,NORTH'?",
                "plev = 500": "did you mean 'level overlaps 500 .. 850 hPa'?",
                'model = "and or" and variable = "pr"': "each of the 2 conditions",
                "model = x or model = y": "nothing has model = x or model = y",
                "sauce = 1 and model = x": "an attribute 'sauce'"}.items():
            for options in ([], ["--columns", "model"]):
                done = run([FIND, *options, expression], check=False)
                expect(done.returncode == 3 and said in done.stderr, f"{expression}: {done.stderr}")
        expect(not run([FIND, "model = EC-Earth3"]).stderr, "a word too many")
        plain = run([FIND, "exists model"]).stdout
        for option in ("--sort=modle", "--sort=-modle", "--columns=variable,modle", "--facets=modle"):
            done = run([FIND, option, "exists model"])
            said = f"{option.split('=')[0]}: nothing has an attribute 'modle'; did you mean 'model'?"
            expect(said in done.stderr and done.stderr.count("\n") == 1, f"{option}: {done.stderr}")
            expect("facets" in option or [line.split("\t")[0] for line in done.stdout.splitlines()] == plain.splitlines(), done.stdout)
        for option in ("--sort=-model,variable", "--columns=variable,:model", "--facets=model"):
            expect(not run([FIND, option, "exists model"]).stderr, f"{option}: a word too many")


# Containers, and attributes as CDL has them.
NUMBERS = {"a": "0", "b": "0.", "c": "-0.", "d": "NaN", "e": "NaN", "f": "1.e10", "g": "10000000000LL", "h": "0.1f",
           "i": "0.100000001490116119", "j": "5", "k": "5.", "l": "-3", "m": '"0"', "n": "NaN", "o": "0.5"}


def make_numbers(site):
    for name, value in NUMBERS.items():
        text = site.file("a.cdl")
        text.write_text(f'netcdf a {{ :all = "x" ; :number = {value} ; }}')
        client(["ncgen", "-4", "-o", f"esdm://{name}.nc", text])


def told_by_rows():
    """Counts of the values that the rows show."""
    lines = run([FIND, "-c", "--columns", "number", "exists :all"]).stdout.splitlines()
    values = [line.split("\t")[1] for line in lines]
    return {v: values.count(v) for v in values}


def test_find__words_alone_are_answered_with_expressions():
    files = [str(f) for f in sources()][:4]
    with Site():
        run([tool("esdm-cp"), *files, "esdm://"])
        source = run([FIND, "-c", "--columns=source_id", "exists :source_id"]).stdout.split("\n")[0].split("\t")[1]
        for words, wanted in {("temperature",): "standard_name = air_temperature",
                              ("Air", "temperature"): 'text ~ "Air temperature"',
                              ("air temperature",): "standard_name = air_temperature",
                              (source,): f"source_id = {source}", (source[1:],): f"source_id ~ *{source[1:]}*",
                              ("ta",): "exists ta:units", ("table_id",): "exists table_id", ("",): None,
                              ("'\"\\x",): None, ("nothing-like-it",): None}.items():
            done = run([FIND, *words], check=False)
            expect(done.returncode == 2 and done.stdout == "", f"{words}: {done}")
            offered = re.findall(r"esdm-find -c '(.*)'   # (\d+) container", done.stderr)
            expect(wanted in [e for e, _ in offered] if wanted else not offered, f"{words}: {done.stderr}")
            for expression, count in offered:
                found = run([FIND, "-c", expression]).stdout.split()
                expect(len(found) == int(count), f"{words}: {expression} finds {len(found)}, not {count}")
        # Times, places and levels have forms of their own.
        for words, form in {"time 1990 to 2000": "time overlaps 1990-01 .. 2000-12", "Box of Europe": "box overlaps -10,35",
                            "levels 500": "level overlaps 500 .. 850 hPa"}.items():
            expect_error(run([FIND, words], check=False), f"an expression is like {form}")


def test_find__facets_tell_numbers_as_they_are_written():
    """0 is not NaN, nor -0; a float and a double, or an integer, of the same number may have other texts."""
    need_program("ncgen")
    with Site() as site:
        make_numbers(site)
        want = told_by_rows()
        expect(want["nan"] == 3 and want["-0"] == 1 and want["0"] == 3, f"rows: {want}")
        for padding in (0, 128):  # those that wait to be entered are counted by themselves
            for i in range(padding):
                run([tool("esdm-cp"), "--reflink", "esdm://m.nc", f"esdm://more{i}.nc"])
            for expression in ("exists :all", "exists :number", 'all = "x"'):
                told = json.loads(run([FIND, "--facets", "number", "--json", expression]).stdout)["facets"]["number"]
                expect(told == {**want, "0": 3 + padding}, f"{expression}, {padding} more: {told} in place of {want}")


def test_find__leaves_containers_out():
    need_program("ncgen")
    with Site() as site:
        for name, model in {"a/x.nc": "m1", "a/y.nc": "m2", "b/z.nc": "m2", "b/deep/z.nc": "m3"}.items():
            text = site.file("a.cdl")
            text.write_text(f'netcdf a {{ variables: int v ; v:units = "K" ; :model = "{model}" ; }}')
            client(["ncgen", "-4", "-o", f"esdm://{name}", text])

        def found(*options):
            return run([FIND, *options, "exists model"], check=False).stdout.split()

        expect(found() == ["a/x.nc", "a/y.nc", "b/deep/z.nc", "b/z.nc"], "all")
        expect(found("--without", "a/y.nc") == ["a/x.nc", "b/deep/z.nc", "b/z.nc"], "a name")
        got = found("--without", "esdm://a/y.nc", "--without", "b/*")
        expect(got == ["a/x.nc"], f"a name and a pattern: {got}")
        expect(found("--without=b/*", "--sort=-model") == ["a/y.nc", "a/x.nc"], "sorted")
        expect(found("--without=*", "-n", "5") == [], "nothing is left")
        expect(run([FIND, "--without=a/*", "units = K"]).stdout.split() == ["b/deep/z.nc:/v", "b/z.nc:/v"], "variables")
        expect(run([FIND, "--without=*", "exists model"], check=False).returncode == 3, "status")
        counts = json.loads(run([FIND, "--without=a/y.nc", "--facets", "model", "--json", "units = K or exists model"]).stdout)
        expect(counts["facets"] == {"model": {"m1": 1, "m2": 1, "m3": 1}}, f"{counts}")
        for wrong in (["--without=esdm://", "exists model"], ["--without=a", "--save", "x", "exists model"]):
            expect(run([FIND, *wrong], check=False).returncode == 2, f"{wrong}")


def check_facets_of_listed(site):
    """Facets count each container that esdm-find lists, and no other."""
    def facets(expression):
        return json.loads(run([FIND, "--facets", "model,kind", "--json", expression]).stdout)["facets"]

    def listed(expression):
        lines = json.loads(run([FIND, "--columns", "model,kind", "--json", expression]).stdout)["matches"]
        seen = {(line["container"], name, value) for line in lines for name, value in line["values"].items() if value}
        counts = {"model": {}, "kind": {}}
        for _, name, value in seen:
            counts[name][value] = counts[name].get(value, 0) + 1
        return counts

    text = site.file("a.cdl")
    for name, model in {"a.nc": "m1", "b.nc": "m1", "in/c.nc": "m2", "d.nc": "m3"}.items():
        text.write_text(f'netcdf a {{ variables: int v ; v:units = "K" ; :model = "{model}" ; :kind = "k" ; }}')
        client(["ncgen", "-4", "-o", f"esdm://{name}", text])
    run([tool("esdm-branch"), "a.nc", "fix"])
    run([tool("esdm-branch"), "in/c.nc", "one/two"])
    for name in (".esdm-recipe/x.nc", "in/.esdm-cp-1", ".esdm-cp-2.nc", "in/.esdm-other", "x@branch.nc"):
        client(["ncgen", "-4", "-o", f"esdm://{name}", text])
    run([tool("esdm-rm"), "d.nc"])  # a former one
    for expression in ("exists :model", "model = m1", "model = m3", "kind = k", "units = K", "not model = m1",
                       "exists :kind and not model = m2"):
        want, told = listed(expression), facets(expression)
        expect(told == want and want["model"], f"{expression}: {told} in place of {want}")
    expect(facets("exists :model")["model"] == {"m1": 2, "m3": 2, "m2": 1}, "counts")


def test_find__facets_count_what_is_listed():
    need_program("ncgen")
    views = {"kinds": "{model}/{kind}"}
    for kept in ({}, {"views": views}):
        with Site(**kept) as site:
            check_facets_of_listed(site)
    skip_without_postgres()
    with Server() as server:
        for schema, kept in (("a", {}), ("b", {"views": views})):
            store = {"plugin": "postgres", "host": "127.0.0.1", "port": server.port, "database": "postgres", "user": "esdm",
                     "schema": schema}
            with Site(metadata=store, **kept) as site:
                check_facets_of_listed(site)


def test_find__regular_expressions_with_literal_parts():
    """What a literal part leaves is looked at, of many containers at once; a part is no condition of its own."""
    need_program("ncgen")
    models = ["CNRM-CM6-1", "CNRM-ESM2-1", "cnrm-x", "EC-Earth3", "EC-Earth3-Veg", "x.y", "xzy", "CNRM"]
    patterns = ["^CNRM-", "CNRM", "^CNRM-(CM|ESM)", "^EC-Earth3$", "Earth3?", "^x\\\\.y", "(?i)^cnrm", "^CNRM-*", "M6|Veg", "[0-9]$"]
    with Site() as site:
        for i, model in enumerate(models):
            text = site.file("a.cdl")
            text.write_text(f'netcdf a {{ variables: int v ; v:model = "{models[i - 1]}" ; int w ; w:units = "K" ; :model = "{model}" ; }}')
            client(["ncgen", "-4", "-o", f"esdm://{i}.nc", text])
        for pattern in patterns:
            plain = pattern.replace("\\\\", "\\")
            want = {f"{i}.nc" for i, m in enumerate(models) if re.search(plain, m)}
            want |= {f"{i}.nc:/v" for i in range(len(models)) if re.search(plain, models[i - 1])}
            got = set(run([FIND, f'model =~ "{pattern}"'], check=False).stdout.split())
            expect(got == want, f"{pattern}: {got ^ want}")
            got = set(run([FIND, f':model =~ "{pattern}" and units = K'], check=False).stdout.split())
            expect(got == {f"{i}.nc:/w" for i, m in enumerate(models) if re.search(plain, m)}, f"{pattern} of containers: {got}")

if __name__ == "__main__":
    main(*[f for n, f in sorted(globals().items()) if n.startswith("test_")])
