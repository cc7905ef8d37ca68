#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Members of an ensemble in GRIB files: variables, a dimension (--members), or a dimension that a query makes of several
files; values are those of ecCodes, put together by numpy."""

import json
import random
import sys

import gribs
from esdmtest import BUILD, Site, expect, expect_error, main, run, skip, tool
from test_grib_kinds import field
from test_grib_references import python

REF = tool("esdm-ref")

if not (BUILD / "esdm/esdm-codec-grib.so").exists():
    skip("built without ecCodes")

# The array of a variable against that of messages, of which each has its index; others are missing.
CHECK = """
import json, sys
import netCDF4, numpy as np
name, variable, wanted = sys.argv[1], sys.argv[2], json.loads(open(sys.argv[3]).read())
with netCDF4.Dataset(name) as nc:
    v = nc[variable]
    assert list(v.dimensions) == wanted["dims"], v.dimensions
    assert list(v.shape) == wanted["shape"], v.shape
    for n, values in wanted["coordinates"].items():
        assert nc[n][:].tolist() == values, (n, nc[n][:])
    array = np.full(v.shape, -9e33, "f4")
    for index, values in wanted["cells"]:
        array[tuple(index)] = np.array(values, "f4").reshape(v.shape[len(index):])
    v.set_auto_maskandscale(False)
    got = v[...]
    assert got.tobytes() == array.tobytes(), (variable, np.argwhere(got != array)[:5])
    rng = np.random.default_rng(3)
    for _ in range(10):
        box = tuple(slice(a, a + rng.integers(1, n - a + 1), rng.integers(1, 3)) for a, n in ((rng.integers(0, n), n) for n in v.shape))
        assert v[box].tobytes() == array[box].tobytes(), box
print("equal")
"""

RNG = random.Random(3)
STEPS, LEVELS = (0, 6, 12), (850, 500)


def message(member, step, level=850, **keys):
    return field(shortName="t", productDefinitionTemplateNumber=1, numberOfForecastsInEnsemble=4, perturbationNumber=member,
                 typeOfEnsembleForecast=1 if member == 0 else 3, stepRange=str(step), level=level, **keys)


def check(site, name, variable, cells, members, steps=STEPS, levels=LEVELS, dim="realization"):
    """@param cells messages by member, step and level."""
    wanted = {"dims": ["time", dim, "plev", "lat", "lon"], "shape": [len(steps), len(members), len(levels), 31, 16],
              "coordinates": {dim: list(members), "plev": [100 * k for k in levels]},
              "cells": [[[steps.index(s), members.index(m), levels.index(k)], gribs.values_of(x)] for (m, s, k), x in cells.items()]}
    path = site.folder / "wanted.json"
    path.write_text(json.dumps(wanted))
    python(CHECK, f"esdm://{name}", variable, path)


def test_members_of_a_file_are_a_dimension():
    with Site() as site:
        members = (0, 2, 3, 7)
        cells = {(m, s, k): message(m, s, k) for m in members for s in STEPS for k in LEVELS}
        del cells[2, 6, 500], cells[7, 12, 850]
        order = list(cells.values())
        RNG.shuffle(order)
        # Levels have the order of the file: the first message of each.
        first = [message(m, s, k) for m, s, k in ((0, 0, 850), (0, 0, 500))]
        cells[0, 0, 850], cells[0, 0, 500] = first
        order = first + [x for key, x in cells.items() if key not in ((0, 0, 850), (0, 0, 500))][::-1]
        alone = field("regular_ll_sfc_grib2", shortName="sp")
        path = site.folder / "all.grib"
        path.write_bytes(b"".join(order) + alone)
        told = json.loads(run([REF, "--json", "--members", "--verify", path, "esdm://all"]).stdout)
        expect(told["copies"][0]["referred"] == 2, told)
        check(site, "all", "t", cells, members)
        header = python("import netCDF4; d = netCDF4.Dataset('esdm://all'); print(d['sp'].dimensions, d['t'], d['realization'])").stdout
        expect("('time', 'lat', 'lon')" in header and "ensemble_members: 4" in header, header)
        expect("realization:" not in header and "forecast_init_type" not in header and "standard_name: realization" in header, header)
        run([tool("esdm-cp"), "-q", "--members", path, "esdm://own"])
        check(site, "own", "t", cells, members)
        # Without it they are variables, as before.
        run([REF, "-q", "-f", path, "esdm://all"])
        names = python("import netCDF4; print(*netCDF4.Dataset('esdm://all').variables)").stdout.split()
        expect({"t", "t_2", "t_3", "t_4"} <= set(names) and "realization" not in names, names)
        path.write_bytes(b"".join(order) + message(7, 6, 500))
        expect_error(run([REF, "--members", path, "esdm://twice"], check=False), "all.grib", "both 't'", "member")


def test_members_of_several_files():
    with Site() as site:
        folder = site.folder / "files"
        folder.mkdir()
        members = (1, 2, 10)
        cells = {(m, s, k): message(m, s, k) for m in members for s in STEPS for k in LEVELS}
        for m in members:  # a file for each member, or several along time
            for n, steps in enumerate(([STEPS] if m == 2 else [STEPS[:1], STEPS[1:]])):
                (folder / f"m{m}_{n}.grib").write_bytes(b"".join(cells[m, s, k] for s in steps for k in LEVELS))
        run([REF, "-q", folder, "esdm://ens"])
        check(site, "?realization >= 0&ensemble=realization", "t", cells, members)
        run([tool("esdm-ln"), "?realization >= 0&ensemble=realization", "saved"])
        check(site, "saved", "t", cells, members)
        # Two members in one file and one in the other, joined by their numbers.
        for name, some_of in (("a", (10, 1)), ("b", (2,))):
            (folder / f"{name}.grib").write_bytes(b"".join(cells[m, s, k] for m in some_of for s in STEPS for k in LEVELS))
        run([REF, "-q", "--members", folder / "a.grib", folder / "b.grib", "esdm://parts/"])
        run([tool("esdm-attr"), "--set", "set=parts", "esdm://parts/a.grib", "esdm://parts/b.grib"])
        check(site, "?set=parts", "t", cells, members)


if __name__ == "__main__":
    sys.exit(main(test_members_of_a_file_are_a_dimension, test_members_of_several_files))
