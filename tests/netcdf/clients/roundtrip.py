#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Real files go into ESDM with one unmodified program and come out again with it.

    roundtrip.py nccopy|ncks|cdo|esdm-cp|xarray-debian|xarray-pypi

What comes out is compared with what the same program makes of the file in two steps without ESDM:
header by ncdump, everything by nc_compare; and with the source itself, data bit for bit, whenever
the program without ESDM keeps them. The header is also read from ESDM directly.
"""

import concurrent.futures
import difflib
import pathlib
import sys

import clients
from esdmtest import BUILD, SEED, Failed, Site, by_size, client, need_data, need_program, run, tool

PROGRAMS = {
    "nccopy": lambda a, b: ["nccopy", a, b],
    "ncks": lambda a, b: ["ncks", "-4", "-h", a, b],
    "cdo": lambda a, b: ["cdo", "-s", "--no_history", "copy", a, b],
}


def real_files(program):
    """Every file with --long. Else each program has a part of them, with each commit another one: the files are dealt
    out in turn, so that programs that run beside each other have different ones."""
    turn = SEED + [*PROGRAMS, "esdm-cp", "xarray-debian", "xarray-pypi"].index(program)
    cmip6 = sorted(need_data("cmip6").rglob("*.nc"))
    fields = sorted(need_data("fields").glob("*.nc"))
    deal = by_size(24, 9, 1)
    return cmip6[turn % deal :: deal] + fields[turn % min(deal, 6) :: min(deal, 6)]


class Item:
    """One file and the places it passes through; the base name is the same everywhere, because
    ncdump prints it."""

    def __init__(self, site, number, source):
        self.source = source
        self.url = f"esdm://roundtrip/{number}/{source.name}"
        self.unsupported = False  # by the program itself, without ESDM
        self.places = {}
        for place in ("out", "middle", "reference"):
            folder = site.file(f"{place}/{number}")
            folder.mkdir(parents=True)
            self.places[place] = folder / source.name
        self.out, self.middle, self.reference = self.places.values()


def header(command, path):
    return command(["ncdump", "-h", path]).stdout


def require_equal(what, a, b):
    if a != b:
        lines = difflib.unified_diff(b.splitlines(), a.splitlines(), "expected", "got", lineterm="")
        raise Failed(f"{what}\n" + "\n".join(list(lines)[:40]))


def through_program(name, item):
    command = PROGRAMS[name]
    alone = run(command(item.source, item.middle), check=False)
    if alone.returncode:  # cdo does not know fields without a time axis
        item.unsupported = True
        return
    run(command(item.middle, item.reference))
    client(command(item.source, item.url))
    client(command(item.url, item.out))


def through_esdm_cp(item):
    run([tool("esdm-cp"), item.source, item.url])
    run([tool("esdm-cp"), item.url, item.out])
    # esdm-cp changes nothing: the reference is the source.
    for place in (item.middle, item.reference):
        place.symlink_to(item.source)


def through_xarray(name, items, site):
    """One process for all files, with the plug-in and without."""
    python = clients.python_of(name.split("-")[1])
    script = pathlib.Path(__file__).parent / "xarray_copy.py"
    for kind, runner, steps in (
        ("esdm", client, [(i.source, i.url, i.out) for i in items]),
        ("files", run, [(i.source, i.middle, i.reference) for i in items]),
    ):
        listing = site.file(f"{kind}.list")
        listing.write_text("".join("\t".join(map(str, s)) + "\n" for s in steps))
        runner([python, script, listing])


def check_item(item, name):
    require_equal(f"header of {item.out}", header(run, item.out), header(run, item.reference))
    require_equal(f"header of {item.url}", header(client, item.url), header(run, item.middle))
    require_equal(f"kind of {item.url}", run_kind(client, item.url), run_kind(run, item.middle))
    require_equal(f"kind of {item.out}", run_kind(run, item.out), run_kind(run, item.reference))


def run_kind(command, path):
    return command(["ncdump", "-k", path]).stdout.strip()


def compare_all(items, site):
    compare = BUILD / "tests/netcdf/clients/nc_compare"

    def listing(name, pairs):
        file = site.file(name)
        file.write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
        return file

    same = listing("same.list", [(i.out, i.reference) for i in items])
    run([compare, "--list", same])
    kept = [i for i in items if keeps_data(compare, i)]
    run([compare, "--data", "--list", listing("source.list", [(i.source, i.out) for i in kept])])
    print(f"{len(items)} files equal; {len(kept)} of them bit for bit equal to the source")


def keeps_data(compare, item):
    """Whether the program alone leaves the data of this file as they are."""
    return run([compare, "--data", item.source, item.reference], check=False).returncode == 0


def main():
    name = sys.argv[1]
    if name in PROGRAMS:
        need_program(name)
    failures = []
    with Site() as site, concurrent.futures.ThreadPoolExecutor(2) as pool:
        items = [Item(site, n, s) for n, s in enumerate(real_files(name))]

        def attempt(work, item):
            try:
                work(item)
            except Failed as problem:
                failures.append(f"{item.source.name}: {problem}")

        if name == "esdm-cp":
            list(pool.map(lambda i: attempt(through_esdm_cp, i), items))
        elif name in PROGRAMS:
            list(pool.map(lambda i: attempt(lambda x: through_program(name, x), i), items))
        else:
            through_xarray(name, items, site)
        unsupported = [i.source.name for i in items if i.unsupported]
        if unsupported:
            print(f"{name} itself cannot copy {', '.join(unsupported)}")
        items = [i for i in items if not i.unsupported]
        done = [i for i in items if i.out.exists() and i.reference.exists()]
        list(pool.map(lambda i: attempt(lambda x: check_item(x, name), i), done))
        try:
            compare_all(done, site)
        except Failed as problem:
            failures.append(str(problem))
        if len(done) != len(items):
            failures.append(f"{len(items) - len(done)} of {len(items)} files did not come out")
    for failure in failures[:10]:
        print(f"FAILED  {failure}")
    if failures:
        print(f"{len(failures)} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
