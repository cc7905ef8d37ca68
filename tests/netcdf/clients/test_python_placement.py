#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""What Python is told of stored data, accuracy and placement, compared with what esdm-stat tells."""

import json

import measured
from esdmtest import Site, expect, main, run, tool
from inprocess import python

TARGETS = [{"name": name, "plugin": "posix", "directory": name} for name in ("one", "two")]

WRITE = """
import netCDF4, numpy as np, esdm
rng = np.random.default_rng(1)
values = 280 + rng.random((4, 5000))
with netCDF4.Dataset("esdm://run.nc", "w") as d:
    d.createDimension("t", None); d.createDimension("x", 5000)
    for name in ("tas", "rel", "kept", "none"):
        d.createVariable(name, "f4", ("t", "x"), chunksizes=(1, 5000)).units = "K"
    packed = d.createVariable("ocean/deep/packed", "i2", ("t", "x"), fill_value=-1)
    packed.setncatts({"units": "degC", "scale_factor": 0.001, "add_offset": 7.0})
    d.createVariable("text", str, ("x",))[:] = np.array(["x" * 20] * 5000, dtype=object)
    d.createVariable("small", "f8", ())[:] = 3
    esdm.accuracy({"ocean/deep/packed": "abs=0.01", "tas": "abs=0.01 K"}, rel="rel=0.1 %; finest=0.01 K").apply(d)
    for name, unit, numbers in (("lat", "degrees_north", np.zeros(1)), ("lon", "degrees_east", np.arange(5000) * 0.05)):
        d.createDimension(name, numbers.size)
        d.createVariable(name, "f8", (name,)).units = unit
        d[name][:] = numbers
    for name, where in (("region", ("t", "lat", "lon")), ("nowhere", ("t", "x"))):
        d.createVariable(name, "f4", where, chunksizes=(1, 1, 2500)[-len(where):]).units = "K"
        esdm.accuracy({name: "abs=0.1 K; box=0,-10,20,10: abs=0.001 K; box=150,-10,160,10: rel=0.01 %"}).apply(d)
        d[name][:] = values.reshape([4, *(len(d.dimensions[k]) for k in where[1:])])
    for name in ("tas", "rel", "kept"):
        d[name][:] = values
    packed[:] = values - 273
with netCDF4.Dataset("esdm://run.nc", "a") as d:
    d["kept"][4] = np.arange(5000)
"""

TELL = """
import dataclasses, json, esdm
def told(found):
    assert isinstance(found, esdm.Table), type(found)
    return [dataclasses.asdict(one) for one in found]
accuracy, placement = esdm.stored_accuracy(NAME, SNAPSHOT), esdm.placement(NAME, SNAPSHOT)
for row in accuracy:
    assert isinstance(row, esdm.StoredAccuracy)
    try:
        row.stated = "abs=1"
    except dataclasses.FrozenInstanceError:
        continue
    raise SystemExit("it can be changed")
assert all(isinstance(row, esdm.Placement) for row in placement)
print(json.dumps([told(accuracy), told(placement), repr(accuracy), repr(placement), placement._repr_html_()]))
"""


def tell(site, name, snapshot=0, kind="pypi"):
    """(accuracy by variable, placement, texts) as Python has them."""
    script = TELL.replace("NAME", repr(name)).replace("SNAPSHOT", repr(snapshot))
    accuracy, placement, *texts = json.loads(python(site, kind, script).stdout)
    return {row["variable"]: row for row in accuracy}, placement, texts


def stat(*options):
    return json.loads(run([tool("esdm-stat"), "--json", *options]).stdout)["containers"][0]


def of_all(group, path=""):
    """Datasets of esdm-stat by path."""
    found = {path + d["name"]: d for d in group["datasets"]}
    for child in group["groups"]:
        found.update(of_all(child, f"{path}{child['name']}/"))
    return found


SCALE = {"ocean/deep/packed": 0.001}


def check_accuracy(told, name, *options):
    """Numbers are unpacked, where esdm-stat --json has them as they are stored."""
    expected = of_all(stat("--accuracy", *options, name)["root"])
    expect(list(told) == list(expected), f"{list(told)} {list(expected)}")
    for variable, dataset in expected.items():
        row, truth = told[variable], dataset["accuracy"]
        scale = SCALE.get(variable, 1)
        for key in ("fragments", "lossy_fragments", "changed_fragments", "points", "exact_points", "stated"):
            expect(row[key] == truth.get(key), f"{variable} {key}: {row} {truth}")
        for key, factor in (("absolute", scale), ("relative", 1), ("finest", scale), ("largest_error", scale),
                            ("largest_share", 1), ("mean_change", scale)):
            number = truth.get(key) or None
            expect(row[key] is None if number is None else abs(row[key] / number / factor - 1) < 1e-12,
                   f"{variable} {key}: {row} {truth}")
        regions = [{k: v for k, v in region.items() if v is not None} for region in row["regions"]]
        expect(regions == truth.get("regions", []), f"{variable}: {row} {truth}")


def check_placement(told, name, *options):
    expected = stat("--explain", *options, name)["datasets"]
    there = [(d["path"], t) for d in expected for t in d["targets"]]
    expect([(row["variable"], row["target"]) for row in told] == [(path, t["target"]) for path, t in there], f"{told}")
    for row, (_, truth) in zip(told, there):
        found = {**row, "bytes": row["stored_bytes"], "alternatives": [
            dict(zip(("target", "why", "predicted_s"), other)) for other in row["others"]]}
        for key in ("fragments", "bytes", "packs", "why"):
            expect(found[key] == truth[key], f"{key}: {found} {truth}")
        for mine, other in [(found, truth), *zip(found["alternatives"], truth["alternatives"])]:
            for key in {"predicted_s", "observed_s"} & set(other):
                expect(mine[key] == other[key] or abs(mine[key] / other[key] - 1) < 1e-9, f"{key}: {found} {truth}")
        expect([(o["target"], o["why"]) for o in found["alternatives"]] ==
               [(o["target"], o["why"]) for o in truth["alternatives"]], f"{found} {truth}")


def check_codecs(told, name):
    """The fragments of esdm-stat, added up."""
    for variable, dataset in of_all(stat("--fragments", name)["root"]).items():
        sums = {}
        for f in dataset["fragments"]:
            one = sums.setdefault((f["target"], f["codec"]), [0, 0, 0])
            for i, count in enumerate((1, f["raw_bytes"], f["stored_bytes"])):
                one[i] += count
        mine = {(row["target"], codec): counts for row in told if row["variable"] == variable
                for codec, *counts in row["codecs"]}
        expect(mine == sums, f"{variable}: {mine} {sums}")


def check_texts(texts):
    accuracy, placement, page = texts
    lines = {line.split()[0]: line for line in accuracy.splitlines()}
    expect("  0.01 K " in lines["tas"] and " K  " in lines["tas"] and " %  " in lines["tas"], accuracy)
    expect("0.001 |x| (not finer than 0.01 K)" in lines["rel"], accuracy)
    expect("  0.01 degC " in lines["ocean/deep/packed"], accuracy)
    expect("nothing is lost" in lines["kept"] and "no data" in lines["none"] and len(lines) == 12, accuracy)
    lines = {line.split()[0]: line for line in placement.splitlines()}
    expect("none" not in lines and lines["small"].split()[1] == "(inline)" and "one" in lines["tas"], placement)
    expect("targets take turns" in lines["tas"] and "<td>targets take turns</td>" in page, page)


def test_what_was_kept_and_where_it_lies():
    with Site(targets=TARGETS, history=20) as site:
        python(site, "debian", WRITE)
        for kind in ("debian", "pypi"):
            accuracy, placement, texts = tell(site, "esdm://run.nc", kind=kind)
            check_accuracy(accuracy, "run.nc")
            check_placement(placement, "run.nc")
            check_codecs(placement, "run.nc")
            check_texts(texts)
        known, unknown = accuracy["region"]["regions"], accuracy["nowhere"]["regions"]
        expect(known[0]["largest_error"] <= 0.001 < accuracy["region"]["largest_error"] <= 0.1 and
               known[1]["relative"] == 1e-4 and len(unknown) == 2 and all(r["unknown"] for r in unknown),
               f"{known} {unknown}")
        kept = [row for row in placement if row["variable"] == "kept"]
        expect(sum(row["fragments"] for row in kept) == accuracy["kept"]["fragments"] > 1, f"{kept}")
        # What is there is told of the snapshot that is asked for.
        for name, snapshot in (("run.nc", 1), ("run.nc", -1), ("run.nc@1", 0)):
            accuracy, placement, _ = tell(site, name, snapshot)
            check_accuracy(accuracy, "run.nc", "--snapshot=1")
            check_placement(placement, "run.nc", "--snapshot=1")
            before = [row for row in placement if row["variable"] == "kept"]
            expect(sum(row["raw_bytes"] for row in before) == 80000 < sum(row["raw_bytes"] for row in kept), f"{before}")
        missing = "import esdm\ntry: esdm.FUNCTION('rum.nc')\nexcept esdm.NotFound as error: print(error)"
        for function in ("stored_accuracy", "placement"):
            told = python(site, "pypi", missing.replace("FUNCTION", function)).stdout
            expect("there is no container 'rum.nc'; did you mean 'run.nc'?" in told, told)
    with Site() as site:
        told = python(site, "pypi", missing.replace("FUNCTION", "placement")).stdout
        expect("there is no container 'rum.nc'; the site has no containers yet" in told, told)


def test_sites_with_one_target_and_copies():
    with Site() as site:
        python(site, "pypi", WRITE)
        _, placement, _ = tell(site, "run.nc")
        check_placement(placement, "run.nc")
        expect({row["why"] for row in placement if row["packs"]} == {"no other target"}, f"{placement}")
    with Site(targets=TARGETS, policies=[{"targets": ["one", "two"], "copies": 2}]) as site:
        python(site, "pypi", WRITE)
        _, placement, _ = tell(site, "run.nc")
        check_placement(placement, "run.nc")
        expect({row["target"].count(",") for row in placement if row["packs"]} == {1}, f"{placement}")


def test_predictions_of_a_measured_site():
    with measured.site(measured.SPEEDS) as site:
        measured.calibrate()
        python(site, "pypi", WRITE)
        _, placement, _ = tell(site, "run.nc")
        check_placement(placement, "run.nc")
        there = [row for row in placement if row["packs"]]
        expect(there and all(row["predicted_s"] > 0 and row["observed_s"] > 0 for row in there), f"{placement}")
        expect(all(row["others"] and row["others"][0][2] > 0 for row in there), f"{placement}")


main(test_what_was_kept_and_where_it_lies, test_sites_with_one_target_and_copies,
     test_predictions_of_a_measured_site)
