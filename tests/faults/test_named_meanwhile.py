#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Packs that de-duplication names while somebody looks for packs that nobody needs, and while the container that named them
gives them up: each order of these is made by programs that wait for each other at questions to the catalogue."""

import json
import os
import shlex
import shutil
import subprocess

import postgres
from esdmtest import BUILD, Site, client, client_environment, environment, expect, is_pack, main, run, skip, tool

GC = [tool("esdm-gc"), "--yes", "--age=0"]
WRITE = """
import netCDF4, numpy, sys
with netCDF4.Dataset(f"esdm://{sys.argv[1]}", "w") as d:
    d.createDimension("x", 20000)
    d.createVariable("v", "i8", ("x",))[:] = numpy.random.default_rng(1).integers(0, 1 << 60, 20000)
"""
CHECK = """
import netCDF4, numpy, sys
for name in sys.argv[1:]:
    with netCDF4.Dataset(f"esdm://{name}") as d:
        assert (d["v"][:] == numpy.random.default_rng(1).integers(0, 1 << 60, 20000)).all(), name
"""


class OrderedSite(Site):
    """Whose catalogue lets programs wait for each other, in SQLite or, once there is a `server`, on PostgreSQL."""

    server = None

    def __init__(self, **changes):
        where = {"directory": "metadata"} if self.server is None else {"connection": self.server.connection("site")}
        super().__init__(**{"metadata": {"plugin": "faulty", **where}, "replaced": {"keep": 0}, "engine": {"inline": 0},
                            "targets": [{"name": name, "plugin": "posix", "directory": name} for name in ("disk", "more")],
                            **changes})

    def __enter__(self):
        if self.server is not None:
            self.server.wait_until_gone(self.server.sessions())
            self.server.sql("DROP DATABASE IF EXISTS site")
            self.server.sql("CREATE DATABASE site")
        return super().__enter__()


def ordered(*tests):
    if not (BUILD / "plugins/esdm-meta-faulty.so").exists():
        skip("esdm-meta-faulty was not built")
    os.environ["ESDM_PLUGIN_PATH"] = str(BUILD / "plugins")
    main(*tests)


def ordered_on_postgres(*tests):
    postgres.skip_without_postgres()
    if not (BUILD / "esdm/esdm-meta-postgres.so").exists():
        skip("esdm-meta-postgres was not built")
    os.environ["ESDM_FAULTY_META_STORE"] = "postgres"
    with postgres.Server() as OrderedSite.server:
        ordered(*tests)


def python(code, *arguments):
    client(["/usr/bin/python3", "-c", code, *map(str, arguments)])


def wait_for(file):
    """Shell: until the file is there, for ten minutes at most."""
    return f"n=0; until [ -e {file} ]; do sleep 0.02; n=$((n+1)); [ $n -lt 30000 ] || exit 1; done"


def hook(operation, command):
    """What a program runs at an operation of the catalogue, without what makes others run something."""
    return {"ESDM_FAULTY_META": f"{operation}:run", "ESDM_FAULTY_META_RUN": f"unset ESDM_FAULTY_META; {command}"}


def at_calls(site, **commands):
    """Shell: counts how often it is called, and runs a command at some of the calls: c4='…'."""
    cases = " ".join(f"{number[1:]}) {command};;" for number, command in commands.items())
    return f"echo >> {site.file('calls')}; case $(wc -l < {site.file('calls')}) in {cases} esac"


def waiting_dedup(site, operation):
    """A command that tells when it is at an operation, goes on when it may, and tells of its end."""
    pause = f"touch {site.file('there')}; {wait_for(site.file('go'))}"
    assign = " ".join(f"{key}={shlex.quote(value)}" for key, value in hook(operation, pause).items())
    return f"env {assign} {tool('esdm-dedup')} --json > {site.file('told')} 2>&1; echo $? > {site.file('end')}; touch {site.file('done')}"


def make(site):
    """Equal ones. Returns the pack of the one that de-duplication takes first."""
    python(WRITE, "x")
    first = packs(site)
    python(WRITE, "y")
    expect(len(first) == 1 and len(packs(site)) == 2, f"{first} {packs(site)}")
    return first[0]


def packs(site):
    return [path for name in ("disk", "more") for path in site.file(name).rglob("*") if is_pack(path)]


def check(site, *containers):
    expect(site.file("done").exists(), "the programs did not meet")
    expect(site.file("end").read_text().strip() == "0", site.file("told").read_text())
    for _ in range(2):
        python(CHECK, *containers)
        run([tool("esdm-fsck"), "--data"])
        run(GC)


def test_what_was_given_up_since_it_was_listed_is_not_named():
    """Its pack may be removed by somebody who has looked for what names it, and saw nothing."""
    for position in "c3", "c4":  # before the second look, and before the pack is removed
        with OrderedSite() as site:
            source = make(site).relative_to(site.folder).parts[0]
            with subprocess.Popen(["sh", "-c", waiting_dedup(site, "begin:1+1")], env=environment()) as dedup:
                run(["sh", "-c", wait_for(site.file("there"))])
                go = f"touch {site.file('go')}; {wait_for(site.file('done'))}"
                run([tool("esdm-drain"), "--from", source, "--age", "0", "x"],
                    env=environment(hook("lives:1+0", at_calls(site, **{position: go}))))
                expect(dedup.wait(600) == 0, "esdm-dedup")
            check(site, "x", "y")


def test_what_is_named_between_two_looks_stays():
    """It is named by a container that was looked at before, and the other one goes before that is looked at."""
    with OrderedSite() as site:
        known = make(site)
        uuid, _, number = known.name.split("-")
        shutil.copy(known, known.with_name(f"{uuid}-{'1' * 16}-{number}"))  # of a writer that was killed
        begin = (f"({waiting_dedup(site, 'relocate:1+1')}) & {wait_for(site.file('there'))}; "
                 f"{tool('esdm-rm')} --yes --for-good x")
        go = f"touch {site.file('go')}; {wait_for(site.file('done'))}"
        run(GC, env=environment(hook("lives:1+0", at_calls(site, c4=begin, c5=go))))
        check(site, "y")
        told = json.loads(site.file("told").read_text())
        expect(told["pages"] > 0, f"nothing was named: {told}")


PAIR = """
import netCDF4, numpy, sys
for pair in sys.argv[1:]:
    name, variable, seed = pair.split(":")
    with netCDF4.Dataset(f"esdm://{name}", "w") as d:
        d.createDimension("x", 20000)
        d.createVariable(variable, "i8", ("x",))[:] = numpy.random.default_rng(int(seed)).integers(0, 1 << 60, 20000)
"""


def test_what_may_lie_at_few_places_stays_there():
    """Its container is replaced before its names are read, or before it names others: it is kept, under another name."""
    for position in "open:4+1", "begin:1+1":
        with OrderedSite(replaced={"keep": 3600}, policies=[{"variable": "secret", "targets": ["more"]},
                                                             {"variable": "*", "targets": ["disk"]}]) as _:
            python(PAIR, "a:plain:1", "b:plain:1", "other:plain:2", "z:secret:1")
            replace = f"{tool('esdm-mv')} --replace other z"
            told = json.loads(run([tool("esdm-dedup"), "--json"], env=environment(hook(position, replace))).stdout)
            expect(told["duplicates"] == 1 and told["pages"] == 1, f"{position}: {told}")
            run(GC)
            run([tool("esdm-restore"), "--yes", "z"])
            text = run([tool("esdm-stat"), "--json", "--fragments", "z"]).stdout
            expect('"target": "more"' in text and '"target": "disk"' not in text, f"{position}: {text}")
            run([tool("esdm-fsck"), "--data"])


PUT = """
import netCDF4, numpy, sys
for pair in sys.argv[2:]:
    variable, seed = pair.split(":")
    with netCDF4.Dataset(f"esdm://{sys.argv[1]}", "a" if variable == "v" else "w") as d:
        if "x" not in d.dimensions: d.createDimension("x", 200000)
        for one in variable:
            v = d[one] if one in d.variables else d.createVariable(one, "i8", ("x",))
            v[:] = numpy.random.default_rng(int(seed) + ord(one)).integers(0, 1 << 60, 200000)
"""


def test_what_is_named_beside_both_looks_stays():
    """A fragment is named anew and given up twice: each time by one that was looked at before, of one that will be looked at."""
    with OrderedSite() as site:
        script = site.file("put.py")
        script.write_text(PUT)
        # Preloaded for Python alone: the programs around it are ours.
        stock = client_environment()
        some = " ".join(f"{key}={shlex.quote(stock[key])}" for key in ("LD_PRELOAD", "ASAN_OPTIONS") if key in stock)
        put = f"env {some} {tool('esdm-run')} /usr/bin/python3 {script}"
        run(["sh", "-ec", f"{put} c wz:5 v:101; {put} a wz:5 v:102; {put} b w:5; {put} b v:1; {tool('esdm-dedup')} b a c"])
        run(["sh", "-ec", f"{put} a v:1; {put} c v:1"])  # equal ones, and rows that say who shares whose packs
        run(GC)
        first = f"{tool('esdm-dedup')} --json b a > {site.file('first')}; {put} b v:77"
        second = f"{tool('esdm-dedup')} --json a c > {site.file('second')}; {put} a v:78"
        run(GC, env=environment(hook("relocate:1+0", at_calls(site, c3=first, c5=second))))
        for told in "first", "second":
            expect(json.loads(site.file(told).read_text())["duplicates"] > 0, f"nothing was named: {told}")
        for _ in range(2):
            run([tool("esdm-fsck"), "--data"])
            run(GC)


PARTS = """
import netCDF4, numpy
with netCDF4.Dataset("esdm://x", "w") as d:
    d.createDimension("x", 20000)
    d.createVariable("v", "i8", ("x",), chunksizes=(5000,))
for part in range(4):
    with netCDF4.Dataset("esdm://x", "a") as d:
        d["v"][part * 5000:(part + 1) * 5000] = numpy.random.default_rng(part).integers(0, 1 << 60, 5000)
"""


def test_pages_that_are_stored_anew_are_looked_at_again():
    """All fragments move to the other target before one of the index pages is read."""
    ends = ([tool("esdm-compact"), "x"], [tool("esdm-stat"), "--json", "--fragments", "x"], [tool("esdm-dedup"), "--dry-run"],
            [tool("esdm-fsck"), "--data"])
    with OrderedSite(engine={"inline": 0, "pack": "32KiB"}) as site:
        python(PARTS)
        asked = site.file("asked")
        for command in ends:
            count = {"ESDM_FAULTY_META": "page:1+0:run", "ESDM_FAULTY_META_RUN": f"echo >> {asked}"}
            wanted = run(command, env=environment(count)).stdout.count('"offset"')
            total = len(asked.read_text(encoding="ascii")) if asked.exists() else 0
            asked.unlink(missing_ok=True)
            print(f"{command[0]}: {total} pages")
            for number in range(1, total + 1):
                source = packs(site)[0].relative_to(site.folder).parts[0]
                drain = f"{tool('esdm-drain')} --quiet --from {source} --age 0 x"
                told = run(command, env=environment(hook(f"page:{number}+1", drain))).stdout
                expect("stat" not in command[0] or told.count('"offset"') == wanted, f"{told} has not {wanted} fragments")
        run([tool("esdm-fsck"), "--data"])


HALVES = """
import netCDF4, numpy, sys
numbers = numpy.random.default_rng(1).integers(0, 1 << 60, 30000)
for name in sys.argv[1:]:
    with netCDF4.Dataset(f"esdm://{name}", "w") as d:
        d.createDimension("x", None)
        d.createVariable("v", "i8", ("x",))
        d["v"][:10000] = numbers[:10000]
        if name != "half":
            d["v"][20000:] = numbers[20000:]
"""


def test_what_stands_in_a_page_that_came_meanwhile_is_shared_or_not_named():
    """A page goes, and another one names what stays in its place: no row tells yet whose packs that is to name."""
    dedup = [tool("esdm-dedup"), "--json", "x", "y"]
    for point in 0, 5, 6, 7:  # pages are looked at for rows at the sixth
        with OrderedSite() as site:
            python(HALVES, "half", "x", "y")
            asked = site.file("asked")
            other = f"{tool('esdm-dedup')} half y > /dev/null"
            run(dedup, env=environment(hook(f"page:{point}+1", other) if point else
                                       {"ESDM_FAULTY_META": "page:1+0:run", "ESDM_FAULTY_META_RUN": f"echo >> {asked}"}))
            if point == 0:
                total = len(asked.read_text(encoding="ascii"))
                expect(total > 7, f"{total} pages")
            run([tool("esdm-rm"), "--yes", "--for-good", "x"])
            for _ in range(2):
                run(GC)
            run([tool("esdm-fsck"), "--data"])


GROW = """
import netCDF4, sys
first, last = int(sys.argv[1]), int(sys.argv[2])
with netCDF4.Dataset("esdm://a.nc", "w" if first == 1 else "a") as d:
    if first == 1:
        d.createDimension("t", None)
        d.createVariable("v", "i4", ("t",))
    for i in range(first, last + 1):
        d["v"][i - 1] = i
        d.sync()
"""


GC_NOW = " ".join(map(str, GC)) + " > /dev/null"


def snapshot_of(name, env=None):
    return json.loads(run([tool("esdm-stat"), "--json", name], env=environment(env or {})).stdout)["containers"][0]["snapshot"]


def test_the_last_of_many_snapshots():
    """One that is not found as the catalogue is away for a moment, or as commits have let it go, is not one that is not kept: an
    older one would be read for it."""
    with OrderedSite(history=3):
        python(GROW, 1, 110)
        run([tool("esdm-tag"), "a.nc", "kept"])
        python(GROW, 111, 120)
        kept, newest = snapshot_of("a.nc@tag:kept"), snapshot_of("a.nc")
        expect(newest > kept + 3 and newest - kept < 16, f"{kept} is kept beside {newest}")
        expect(snapshot_of("a.nc@-1") == newest - 1, "nothing happens meanwhile")
        found = snapshot_of("a.nc@-1", {"ESDM_FAULTY_META": "pin:1+1:fail"})
        expect(found == newest - 1, f"the catalogue was away: snapshot {found} of {newest}")
        changes = "; ".join(f"{tool('esdm-attr')} --set n={n} a.nc > /dev/null" for n in range(6)) + f"; {GC_NOW}"
        found = snapshot_of("a.nc@-1", hook("pin:1+1", changes))
        expect(snapshot_of("a.nc") == newest + 6, f"not {newest + 6} snapshots, but {snapshot_of('a.nc')}")
        expect(found > newest - 1, f"six commits came between: snapshot {found} of {newest + 6}")


TESTS = (test_pages_that_are_stored_anew_are_looked_at_again, test_what_was_given_up_since_it_was_listed_is_not_named,
         test_what_is_named_between_two_looks_stays, test_the_last_of_many_snapshots,
         test_what_stands_in_a_page_that_came_meanwhile_is_shared_or_not_named,
         test_what_may_lie_at_few_places_stays_there, test_what_is_named_beside_both_looks_stays)

if __name__ == "__main__":
    ordered(*TESTS)
