#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""A program writes a container again and again, others read time series of it: from the second one on its
fragments are cut for them. What reading takes is counted, and what writing takes; nobody who states a shape
gets another one, and readers who change their mind are followed."""

import json
import re
import shlex
import subprocess

from esdmtest import Site, client, client_environment, expect, main, need_program, run, skip, tool

STEPS, LAT, LON = 192, 90, 180
FRAGMENT = 256 << 10

WRITER = """
import sys
import netCDF4, numpy as np
name, chunks, access = sys.argv[1], sys.argv[2], sys.argv[3]
steps, lat, lon = map(int, sys.argv[4:7])
with netCDF4.Dataset(name, "w") as f:
    f.createDimension("time", None); f.createDimension("lat", lat); f.createDimension("lon", lon)
    v = f.createVariable("tas", "f4", ("time", "lat", "lon"), contiguous=False,
                         chunksizes=tuple(map(int, chunks.split(","))) if chunks != "-" else None)
    if access != "-":
        v.esdm_access = access
    field = np.arange(lat * lon).reshape(lat, lon) * 7919
    for t in range(steps):  # numbers that no codec makes small
        v[t] = (field + t * 104729) * 2654435761 % 2**32 % 16777213
"""

SERIES = """
import sys
import netCDF4, numpy as np
with netCDF4.Dataset(sys.argv[1]) as f:
    v = f["tas"]
    for i in range(6):
        j, k = i + 2, 29 * i + 7  # stations of one region
        at = (j * v.shape[2] + k) * 7919 + np.arange(v.shape[0]) * 104729
        assert (v[:, j, k] == at * 2654435761 % 2**32 % 16777213).all()
"""

MAPS = """
import sys
import netCDF4, numpy as np
with netCDF4.Dataset(sys.argv[1]) as f:
    v = f["tas"]
    for t in range(0, v.shape[0], 3):
        at = np.arange(v.shape[1] * v.shape[2]) * 7919 + t * 104729
        assert (v[t].ravel() == at * 2654435761 % 2**32 % 16777213).all()
"""


def python(code, *arguments, env=None):
    client(["/usr/bin/python3", "-c", code, *arguments], env=env)


def counted(site, code, *arguments, kind):
    """Requests to targets of a kind, their bytes, and what ESDM did by itself."""
    stats = site.file("stats.json")
    stats.unlink(missing_ok=True)
    python(code, *arguments, env={"ESDM_MONITOR": f"stats:{stats}"})
    said = json.loads(stats.read_text())
    spans = [s for s in said["spans"] if s["kind"] == kind and s.get("target")]
    return sum(s["count"] for s in spans), sum(s["bytes"] for s in spans), said.get("actions", [])


def write(site, name, chunks="-", access="-"):
    return counted(site, WRITER, f"esdm://{name}", chunks, access, STEPS, LAT, LON, kind="append")[:2]


def series(site, name):
    return counted(site, SERIES, f"esdm://{name}", kind="fetch")


def reason(name):
    said = json.loads(run([tool("esdm-stat"), "--explain", "--json", name]).stdout)
    return said["containers"][0]["datasets"][-1].get("shape")


def site_of(shapes=1, **engine):
    return Site(engine={"fragment": "256 KiB", "memory": "256 MiB", "threads": 2, "codec": "lz4", **engine}, shapes=shapes)


def need_python():
    if subprocess.run(["/usr/bin/python3", "-c", "import netCDF4"], check=False).returncode != 0:
        skip("no netCDF4")


def test_time_series():
    need_python()
    with site_of() as site:
        first = write(site, "run/out_1.nc")
        before = series(site, "run/out_1.nc")
        expect(reason("run/out_1.nc") is None, "cut for readers before there were any")
        second = write(site, "run/out_2.nc")
        after = series(site, "run/out_2.nc")
        print(f"write: {first} and {second}; series: {before[:2]} and {after[:2]}", flush=True)
        expect(after[1] * 2 < before[1] and after[0] < before[0], f"{before} {after}")
        expect(second[0] <= first[0] * 1.05 + 1, f"more requests to write: {first} {second}")
        expect("time series" in reason("run/out_2.nc") and "run/out_#.nc" in reason("run/out_2.nc"),
               str(reason("run/out_2.nc")))
        text = run([tool("esdm-stat"), "--explain", "run/out_2.nc"]).stdout
        expect("cut for time series" in text, text)
        actions = [a for a in after[2] if a["action"] == "shape for readers"]
        expect(len(actions) == 1 and actions[0]["dataset"] == "/tas" and actions[0]["requests"] > 5, str(after[2]))
        # Of another name nothing is known.
        write(site, "run/other.nc")
        expect(reason("run/other.nc") is None, "another container")


def compact(*arguments):
    return json.loads(run([tool("esdm-compact"), "--for-readers", "--json", *arguments]).stdout)["containers"][0]


def test_what_is_there_is_stored_anew():
    """What was written before anybody read it: esdm-compact --for-readers."""
    need_python()
    with site_of() as site:
        write(site, "run/out_1.nc")
        expect(compact("run/out_1.nc")["for_readers"] == [], "nobody has read anything")
        before = series(site, "run/out_1.nc")
        python(MAPS, "esdm://run/out_1.nc", env={"ESDM_EARLIER_RUNS": "off"})  # does not count
        would = compact("--dry-run", "run/out_1.nc")
        wish = would["for_readers"][0]
        expect(wish["variable"] == "/tas" and wish["chunk"][0] == STEPS and "time series" in wish["why"], f"{would}")
        same = series(site, "run/out_1.nc")
        expect(same[:2] == before[:2], f"a dry run changed something: {before} {same}")
        done = compact("run/out_1.nc")
        expect(done["for_readers"][0]["chunk"] == wish["chunk"] and done["fragments"] > 0 and done["commits"] > 0, f"{done}")
        after = series(site, "run/out_1.nc")
        print(f"series: {before[:2]} and {after[:2]}", flush=True)
        expect(after[1] * 2 < before[1], f"{before} {after}")
        python(MAPS, "esdm://run/out_1.nc")
        again = compact("run/out_1.nc")
        expect(again["for_readers"] == [] and again["fragments"] == 0, f"{again}")
        text = run([tool("esdm-compact"), "--for-readers", "--chunk", "tas=1,90,180", "run/out_1.nc"]).stdout
        expect("gets chunks" not in text, f"what is stated counts: {text}")


def test_a_second_shape_is_proposed():
    """Where the site allows two: the command that is printed gives readers what they want, and maps stay as they are."""
    need_python()
    for shapes in 1, 2:
        with site_of(shapes) as site:
            write(site, "run/out_1.nc")
            before = series(site, "run/out_1.nc")
            text = run([tool("esdm-compact"), "--for-readers", "--dry-run", "run/out_1.nc"]).stdout
            wish = compact("--dry-run", "run/out_1.nc")["for_readers"][0]
            expect(("--second-shape" in text) == ("second_shape_bytes" in wish) == (shapes == 2), f"{text} {wish}")
            if shapes == 1:
                continue
            expect(wish["second_shape_bytes"] == STEPS * LAT * LON * 4, f"{wish}")
            command = re.search(r"esdm-compact (--second-shape .*)", text).group(1)
            run([tool("esdm-compact"), *shlex.split(command)])
            after = series(site, "run/out_1.nc")
            expect(after[1] * 2 < before[1], f"{before} {after}")
            done = compact("run/out_1.nc")
            expect(done["for_readers"] == [] and done["fragments"] == 0 and done["commits"] == 0, f"the first one is changed: {done}")
            text = run([tool("esdm-compact"), "--for-readers", "run/out_1.nc"]).stdout
            expect("/tas: has a second shape" in text, text)


def test_readers_who_change():
    """Maps are read for some runs: the writer does as usual again."""
    need_python()
    with site_of() as site:
        write(site, "a1.nc")
        python(SERIES, "esdm://a1.nc")
        write(site, "a2.nc")
        expect(reason("a2.nc") is not None, "not cut for readers")
        for _ in range(4):
            python(MAPS, "esdm://a2.nc")
        write(site, "a3.nc")
        expect(reason("a3.nc") is None or "both" in reason("a3.nc"), str(reason("a3.nc")))


def test_without_a_codec():
    """Pages are read, however fragments are cut: nothing is to be gained."""
    need_python()
    with site_of(codec="none") as site:
        write(site, "a1.nc")
        python(SERIES, "esdm://a1.nc")
        write(site, "a2.nc")
        expect(reason("a2.nc") is None, str(reason("a2.nc")))


def test_what_is_stated_counts():
    need_python()
    with site_of() as site:
        write(site, "a1.nc")
        python(SERIES, "esdm://a1.nc")
        write(site, "a2.nc", chunks=f"4,{LAT},{LON}")
        expect(reason("a2.nc") is None, "against a stated chunk")
        write(site, "a3.nc", access="maps")
        expect(reason("a3.nc") is None, "against the attribute")
        python(WRITER, "esdm://a4.nc", "-", "-", STEPS, LAT, LON, env={"ESDM_EARLIER_RUNS": "off"})
        expect(reason("a4.nc") is None, "although it is switched off")
    with site_of(earlier_runs="off") as site:
        write(site, "a1.nc")
        python(SERIES, "esdm://a1.nc")
        write(site, "a2.nc")
        expect(reason("a2.nc") is None, "although the site has switched it off")


def test_stock_programs():
    """NCO reads a point, cdo one as well; ncks writes what they read."""
    need_python()
    need_program("ncks", "cdo")
    with site_of() as site:
        plain = site.file("plain.nc")
        python(WRITER, plain, "-", "-", STEPS, LAT, LON)
        for n in (1, 2):
            run([tool("esdm-run"), "cdo", "-s", "-f", "nc", "copy", plain, f"esdm://model_{n}.nc"],
                env=client_environment())
            for i in range(5):
                run([tool("esdm-run"), "ncks", "-O", "-h", "-d", f"lat,{i + 3}", "-d", f"lon,{7 * i}",
                     f"esdm://model_{n}.nc", site.file("point.nc")], env=client_environment())
        expect("time series" in (reason("model_2.nc") or ""), str(reason("model_2.nc")))
        run(["cdo", "-s", "diffn", "-selname,tas", plain, "-selname,tas", plain])
        run([tool("esdm-run"), "cdo", "-s", "diffn", plain, "esdm://model_2.nc"], env=client_environment())


main(test_time_series, test_what_is_there_is_stored_anew, test_a_second_shape_is_proposed, test_without_a_codec,
     test_readers_who_change, test_what_is_stated_counts, test_stock_programs)
