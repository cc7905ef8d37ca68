#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Each series of several files of a real archive, opened by a query, is what numpy, ncrcat and cdo join of the
files, whether these were ingested or stay where they are; ncdump, cdo, NCO and xarray read it, unmodified."""

import json
import pathlib

from esdmtest import Site, by_size, client, expect, main, need_data, need_program, run, some, tool

PYTHON = "/usr/bin/python3"
KEYS = ("variable_id", "table_id", "source_id", "experiment_id", "variant_label", "grid_label")

# Bits of all variables: of the whole, of what numpy joins, and of what other programs wrote; then xarray.
COMPARE = """
import json, sys
import netCDF4, numpy, xarray
def load(path):
    with netCDF4.Dataset(path) as d:
        d.set_auto_maskandscale(False)
        return {n: (v.dimensions, v[...]) for n, v in d.variables.items()}
def joined(files):
    parts = [load(f) for f in files]
    units = []
    for f in files:
        with netCDF4.Dataset(f) as d:
            units.append(d["time"].units)
    if len(set(units)) > 1:
        return None  # ncrcat and cdo know dates
    return {n: (dims, numpy.concatenate([p[n][1] for p in parts], dims.index("time")) if "time" in dims else v)
            for n, (dims, v) in parts[0].items()}
wrong = []
for job in json.load(open(sys.argv[1])):
    whole = load(job["url"])
    others = {"numpy": joined(job["files"]), **{p: load(p) for p in job["others"]}}
    for who, other in others.items():
        for name, (dims, values) in (other or {}).items():
            have = whole.get(name, (None, numpy.zeros(0)))[1]
            if have.shape != values.shape or have.astype(values.dtype).tobytes() != values.tobytes():
                wrong.append(f"{job['url']}: {name} is not as {who} has it: {have.shape}, {values.shape}")
    with xarray.open_dataset(job["url"], decode_times=False, mask_and_scale=False) as d:
        for name, (dims, values) in whole.items():
            if d[name].dims != dims or d[name].values.tobytes() != values.tobytes():
                wrong.append(f"{job['url']}: {name} in xarray")
    if len(whole["time"][1]) != sum(len(load(f)["time"][1]) for f in job["files"]):
        wrong.append(f"{job['url']}: times")
print("\\n".join(wrong))
sys.exit(1 if wrong else 0)
"""


def all_series(folder):
    """Files of each series of several, those of the smallest first."""
    found = {}
    for f in sorted(folder.rglob("*.nc")):
        found.setdefault(f.name.rsplit("_", 1)[0], []).append(f)
    several = [files for files in found.values() if len(files) > 1]
    return sorted(several, key=lambda files: (len(files), files[0].name))


def join_plain(site, number, files):
    """What ncrcat and cdo make of the files."""
    folder = site.folder / f"plain{number}"
    folder.mkdir()
    records = []
    for f in files:
        records.append(folder / f"rec_{f.name}")
        run(["ncks", "-h", "--mk_rec_dmn", "time", f, records[-1]])
    run(["ncrcat", "-h", *records, folder / "ncrcat.nc"])
    run(["cdo", "-s", "--no_history", "mergetime", *files, folder / "cdo.nc"])
    return [folder / "ncrcat.nc", folder / "cdo.nc"]


def sections(text):
    """name: values, of a dump."""
    return dict(part.strip().split(" = ", 1) for part in text[text.index("data:") + 5:].split(";\n") if " = " in part)


def read_by_programs(site, number, url):
    """What cdo and NCO copy of the whole; what ncdump prints is what it prints of NCO's file."""
    nco, cdo = site.file(f"nco{number}.nc"), site.file(f"cdo{number}.nc")
    client(["ncks", "-h", "-O", url, nco])
    client(["cdo", "-s", "--no_history", "copy", url, cdo])
    expect(sections(client(["ncdump", "-p", "9,17", url]).stdout) ==
           sections(run(["ncdump", "-p", "9,17", nco]).stdout), f"ncdump {url}")
    return [nco, cdo]


def check(series, plain, store):
    with Site() as site:
        run([*store, *[f for files in series for f in files], "esdm://in/"])
        jobs = []
        for number, (files, others) in enumerate(zip(series, plain)):
            url = "esdm://?" + "&".join(f"{k}={w}" for k, w in zip(KEYS, files[0].name.split("_")))
            read = read_by_programs(site, number, url) if number < by_size(1, 3, 100) else []
            jobs.append({"url": url, "files": [str(f) for f in files], "others": [str(p) for p in [*others, *read]]})
        site.file("jobs.json").write_text(json.dumps(jobs))
        client([PYTHON, "-c", COMPARE, site.file("jobs.json")])


def test_series_of_an_archive_are_what_other_programs_join():
    need_program("ncrcat", "ncks", "cdo", "ncdump", PYTHON)
    chosen = all_series(pathlib.Path(need_data("cmip6")))
    chosen = some(chosen, len(chosen) // by_size(13, 8, 1))
    with Site() as site:
        plain = [join_plain(site, number, files) for number, files in enumerate(chosen)]
        check(chosen, plain, [tool("esdm-cp"), "-q"])
        check(chosen, plain, [tool("esdm-ref"), "-q"])


main(test_series_of_an_archive_are_what_other_programs_join)
