#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-diff against numpy: snapshots, containers and files that differ in what a seed says."""

import json
import os

from esdmtest import Site, by_size, client, expect, expect_error, main, run, tool

import numpy
import netCDF4

SHAPE = (6, 30, 40)


def base(seed):
    random = numpy.random.default_rng(seed)
    return {"a": random.normal(280, 10, SHAPE).astype("f4"), "b": random.integers(0, 9, SHAPE[1:]),
            "c": random.normal(0, 1, SHAPE)}


def write(path, data, title="one", steps=SHAPE[0]):
    with netCDF4.Dataset(path, "w") as d:
        d.title = title
        d.createDimension("t", None)
        d.createDimension("y", SHAPE[1])
        d.createDimension("x", SHAPE[2])
        for name, values in data.items():
            axes = ("t", "y", "x")[3 - values.ndim:]
            v = d.createVariable(name, values.dtype, axes)
            v.units = "K"
            v[:] = values[:steps] if values.ndim == 3 else values


def change(data, seed):
    """Another copy, and what is expected of each variable: count, largest difference, box."""
    random = numpy.random.default_rng(seed)
    changed = {name: values.copy() for name, values in data.items()}
    for name, values in changed.items():
        if random.random() < 0.4:
            continue
        low = [int(random.integers(0, n)) for n in values.shape]
        high = [int(random.integers(a + 1, n + 1)) for a, n in zip(low, values.shape)]
        box = tuple(slice(a, b) for a, b in zip(low, high))
        values[box] += random.integers(0, 3, values[box].shape).astype(values.dtype)
    return changed


def expected(x, y):
    told = {}
    for name in x:
        a, b = x[name].astype("f8"), y[name].astype("f8")
        where = numpy.argwhere(a != b)
        if len(where):
            told["/" + name] = (len(where), float(abs(a - b).max()),
                                [[int(m), int(n) + 1] for m, n in zip(where.min(0), where.max(0))])
    return told


def diff(a, b, *options, status=None):
    done = run([tool("esdm-diff"), "--json", *options, a, b], check=False)
    expect(done.returncode in (0, 1) if status is None else done.returncode == status,
           f"status {done.returncode}: {done.stdout}{done.stderr}")
    told = json.loads(done.stdout)
    expect(told["equal"] == (done.returncode == 0), done.stdout)
    return told


def check(a, b, x, y):
    told = {v["variable"]: (v["different"], v["largest_difference"], v["box"])
            for v in diff(a, b)["values"]}
    wanted = expected(x, y)
    expect(told.keys() == wanted.keys(), f"{told}\n{wanted}")
    for name, (count, size, box) in wanted.items():
        expect(told[name][0] == count and told[name][2] == box and
               abs(told[name][1] - size) <= 1e-12 * size, f"{name}: {told[name]} is {wanted[name]}")


def test_files_and_containers():
    with Site(history=20) as site:
        for seed in range(by_size(3, 10, 100)):
            x = base(seed)
            y = change(x, seed + 1000)
            one, two = site.file("one.nc"), site.file("two.nc")
            write(one, x)
            write(two, y)
            run([tool("esdm-cp"), "-f", one, "esdm://one.nc"])
            run([tool("esdm-cp"), "-f", two, "esdm://two.nc"])
            for a in (one, "esdm://one.nc"):
                for b in (two, "two.nc"):
                    check(a, b, x, y)
            expect(diff(one, "one.nc")["equal"], "a copy differs")


OVERWRITE = """
import netCDF4, numpy, sys
with netCDF4.Dataset("esdm://run.nc", "a") as d:
    d["a"][2] = numpy.load(sys.argv[1])
"""


def test_snapshots_read_what_differs():
    with Site(history=20, engine={"inline": 0}) as site:
        x = base(5)
        write(site.file("x.nc"), x)
        run([tool("esdm-cp"), site.file("x.nc"), "esdm://run.nc"])
        y = {name: values.copy() for name, values in x.items()}
        y["a"][2] += 1
        numpy.save(site.file("step.npy"), y["a"][2])
        client(["/usr/bin/python3", "-c", OVERWRITE, site.file("step.npy")])
        check("run.nc@-1", "run.nc", x, y)
        expect(diff("run.nc", "run.nc", status=0)["equal"], "it differs from itself")
        told = run([tool("esdm-diff"), "run.nc@-1", "run.nc"], check=False).stdout
        expect("values of /a" in told and " K (" in told and "[2, 0:30, 0:40]" in told, told)
        for pack in site.pack_files():  # nothing is read of what both snapshots share
            pack.chmod(0o644)
            with open(pack, "r+b") as damaged:
                damaged.seek(0)
                damaged.write(os.urandom(16))
        expect(diff("run.nc", "run.nc", status=0)["equal"], "shared fragments were read")


# Writes rows, some of them again, with a snapshot after each; the seed says which.
HISTORY = """
import netCDF4, numpy, sys
seed, commits, width = (int(a) for a in sys.argv[1:])
random = numpy.random.default_rng(seed)
with netCDF4.Dataset("esdm://grow.nc", "w") as d:
    d.createDimension("t", None); d.createDimension("x", width)
    t = d.createVariable("t", "f8", ("t",)); t.units = "days since 2000-01-01"
    v = d.createVariable("v", "f4", ("t", "x")); v.units = "K"
    for i in range(commits):
        at = len(d.dimensions["t"])
        if at and random.random() < 0.3:
            at = int(random.integers(0, at))
        low = int(random.integers(0, width // 2)) if random.random() < 0.3 else 0
        v[at, low:] = random.normal(280, 5, width - low).astype("f4")
        t[at] = at
        d.sync()
"""


def test_any_two_snapshots_of_a_growing_container():
    """History, log and diff against numpy copies; read are only fragments that changed."""
    commits, width = by_size((12, 3000), (40, 3000), (1000, 3000))
    with Site(history=2000) as site:
        client(["/usr/bin/python3", "-c", HISTORY, "3", str(commits), str(width)])
        log = json.loads(run([tool("esdm-log"), "--brief", "--json", "grow.nc"]).stdout)["snapshots"]
        numbers = sorted(s["snapshot"] for s in log)
        expect(len(numbers) >= commits, f"{len(numbers)} snapshots of {commits} commits")
        random = numpy.random.default_rng(7)
        for _ in range(by_size(4, 10, 50)):
            a, b = (int(n) for n in random.choice(numbers[1:], 2, replace=False))
            copies = []
            for n in (a, b):
                path = site.file(f"{n}.nc")
                if not path.exists():
                    run([tool("esdm-cp"), f"esdm://grow.nc@{n}", path])
                with netCDF4.Dataset(path) as d:
                    d.set_auto_mask(False)
                    copies.append(d["v"][:])
            steps = min(len(c) for c in copies)
            x, y = (c[:steps] for c in copies)
            told = diff(f"grow.nc@{a}", f"grow.nc@{b}")
            values = {v["variable"]: v for v in told["values"]}
            wanted = expected({"v": x}, {"v": y})
            expect(("/v" in values) == ("/v" in wanted), f"{a} {b}: {told} {wanted}")
            if "/v" in wanted:
                count, size, box = wanted["/v"]
                v = values["/v"]
                expect(v["different"] == count and v["box"] == box and
                       abs(v["largest_difference"] - size) <= 1e-6 * size, f"{a} {b}: {v} {wanted}")
            changed = int((x != y).any(axis=1).sum()) * width * 4
            expect(told["read_bytes"] <= 1.2 * changed + 1024, f"{told['read_bytes']} of {changed}")


def test_erratum():
    with Site(history=20, engine={"inline": 0}) as site:
        client(["/usr/bin/python3", "-c", HISTORY, "3", "5", "3000"])
        run([tool("esdm-tag"), "grow.nc", "v1"])
        client(["/usr/bin/python3", "-c", 'import netCDF4\nwith netCDF4.Dataset("esdm://grow.nc", "a") as d:\n'
                "    d['v'][1] = d['v'][1] + 1\n    d.comment = 'row 1'"])
        done = run([tool("esdm-diff"), "--erratum", site.file("e.txt"), "grow.nc@tag:v1", "grow.nc"],
                   check=False)
        text = site.file("e.txt").read_text()
        expect(done.returncode == 1 and "values of /v" in done.stdout, done.stdout)
        for words in ("before: esdm://grow.nc", "after: esdm://grow.nc", "snapshot", " K (",
                      "t 1 to 1 days since 2000-01-01", "x index 0 to 2999", "comment"):
            expect(words in text, f"{words}: {text}")
        expect(run([tool("esdm-diff"), "-e", "-", "grow.nc@tag:v1", "grow.nc"], check=False).stdout.
               split("\n")[1:] == text.split("\n")[1:], "not to standard output")


def test_integers_that_no_double_holds():
    with Site() as site:
        one, two = site.file("one.nc"), site.file("two.nc")
        for path, values in ((one, [2**60, 2**60, 5]), (two, [2**60 + 1, 2**60, 9])):
            with netCDF4.Dataset(path, "w") as d:
                d.createDimension("x", 3)
                d.createVariable("n", "i8", ("x",))[:] = numpy.array(values)
        (told,) = diff(one, two)["values"]
        expect(told["different"] == 2 and told["largest_difference"] == 4 and
               told["box"] == [[0, 3]], f"{told}")


def test_what_has_no_fragments():
    with Site() as site:
        for number in range(4):  # two pairs, joined along t
            path = site.file(f"{number}.nc")
            with netCDF4.Dataset(path, "w") as d:
                d.pair, d.number = f"p{number // 2}", number
                d.createDimension("t", None)
                d.createDimension("x", 5)
                d.createVariable("unwritten", "f4", ("x",), fill_value=float(number // 2))
                t = d.createVariable("t", "f8", ("t",))
                t.units = "days since 2000-01-01"
                t[:] = [number % 2]
                d.createVariable("v", "f4", ("t", "x"))[:] = number
            run([tool("esdm-cp"), path, f"esdm://{number}.nc"])
        told = {v["variable"]: v["different"] for v in diff("0.nc", "2.nc")["values"]}
        expect(told == {"/unwritten": 5, "/v": 5}, f"{told}")
        told = {v["variable"]: v["different"] for v in diff("esdm://?pair=p0", "esdm://?pair=p1")["values"]}
        expect(told == {"/unwritten": 5, "/v": 10}, f"{told}")


def test_structure():
    with Site(history=20) as site:
        x = base(9)
        one, two = site.file("one.nc"), site.file("two.nc")
        write(one, x)
        write(two, x, title="two", steps=4)
        told = diff(one, two)["differences"]
        expect('attribute /:title = "one" in A, "two" in B' in told and
               "dimension /t = 6 in A, 4 in B" in told and len(told) == 2, f"{told}")
        told = diff(one, two, "-i", "title")["differences"]
        expect(len(told) == 1, f"{told}")
        with netCDF4.Dataset(two, "a") as d:
            d.createGroup("g").setncattr("z", 1)
            d.createVariable("extra", "i4", ("x",))
            d["a"].units = "degC"
        told = diff(one, two)["differences"]
        expect("group /g is in B alone" in told and "variable /extra is in B alone" in told and
               'attribute /a:units = "K" in A, "degC" in B' in told, f"{told}")
        expect(run([tool("esdm-diff"), "-q", one, two], check=False).stdout == "", "not quiet")
        expect_error(run([tool("esdm-diff"), one, "none.nc"], check=False), "none.nc")
        expect(run([tool("esdm-diff"), one], check=False).returncode == 2, "usage")


def test_long_texts_are_shown_where_they_differ():
    with Site() as site:
        texts = ("Sun Nov 29 2026: cdo -s mergetime a.nc b.nc c.nc and so on, for very long; then {} and more of this "
                 "and that until the end", "ä" * 80 + "{}", "{}" + "x" * 100, "{}")
        for name in ("one", "two"):
            with netCDF4.Dataset(site.file(f"{name}.nc"), "w") as d:
                for number, text in enumerate(texts):
                    d.setncattr(f"t{number}", text.format(name))
        told = run([tool("esdm-diff"), site.file("one.nc"), site.file("two.nc")], check=False).stdout.splitlines()
        expect(told[0] == 'attribute /:t0 = …for very long; then one and more of this and that until t… in A, '
               '…for very long; then two and more of this and that until t… in B', told[0])
        expect(told[1] == 'attribute /:t1 = …' + "ä" * 10 + 'one"] in A, …' + "ä" * 10 + 'two"] in B', told[1])
        expect(told[2] == 'attribute /:t2 = "one' + "x" * 53 + '… in A, "two' + "x" * 53 + "… in B", told[2])
        expect(told[3] == 'attribute /:t3 = "one" in A, "two" in B' and len(told) == 4, f"{told}")
        done = run([tool("esdm-diff"), site.file("none.nc"), "esdm://none.nc"], check=False)
        expect(done.returncode == 3, f"{done}")
        expect_error(done, f"there is no file '{site.file('none.nc')}'")


main(test_long_texts_are_shown_where_they_differ,
     
    test_files_and_containers,
    test_snapshots_read_what_differs,
    test_integers_that_no_double_holds,
    test_what_has_no_fragments,
    test_structure,
    test_any_two_snapshots_of_a_growing_container,
    test_erratum,
)
