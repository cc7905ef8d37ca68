#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm.report(): what a Python program did with ESDM so far, in mid-session and without esdm-run, compared with what it
did."""

import json

from esdmtest import Site, expect, main, run, tool
from inprocess import python

USE = """
import json, threading, numpy as np, netCDF4, xarray as xr
try:
    esdm.report()
    raise SystemExit("a report of nothing")
except esdm.NotFound as error:
    assert "nothing was done with ESDM yet" in str(error) and "plain files" in str(error), error
rng = np.random.default_rng(1)
with netCDF4.Dataset("esdm://run.nc", "w") as d:
    d.createDimension("t", None); d.createDimension("x", 50000)
    v = d.createVariable("tas", "f4", ("t", "x"), chunksizes=(1, 50000))
    for t in range(20):
        v[t] = rng.random(50000)
first = esdm.report()
written = next(m for m in first.variables if m.variable == "tas")
assert (written.container, written.target) == ("run.nc", None), written
assert written.written_bytes == 20 * 50000 * 4 and written.write_calls == 20 and written.read_calls == 0, written
assert first.written_bytes > 2e6 and first.write_calls >= 1 and first.read_bytes == 0, vars(first)
assert first.time["commits"] > 0 and first.time["writing"] > 0 and 0 < first.seconds < 300, first.time
with xr.open_dataset("esdm://run.nc", engine="esdm") as d:
    for x in range(30):
        d.tas[:, x].values
second = esdm.report()
read = next(m for m in second.variables if m.variable == "tas")
assert read.read_bytes == 30 * 20 * 4 and read.read_calls == 30, read
assert read.write_calls == 20 and second.seconds > first.seconds and second.written_bytes == first.written_bytes
assert [m.target for m in second.targets] == ["disk"] and second.targets[0].written_bytes == second.written_bytes
assert first.text.count("wrote") == 1 and "so far" in repr(first) and "What would help most" in repr(second), repr(second)
assert "tas" in second._repr_html_() and "<script" not in second._repr_html_()
second.save("kept.jsonl")
try:
    second.save("kept.txt")
    raise SystemExit("no error")
except ValueError:
    pass
print(json.dumps([second.data, second.text]))
"""


def test_a_report_in_mid_session():
    with Site() as site:
        for before in ("", "import netCDF4, xarray\n"):
            data, text = json.loads(python(site, "pypi", before + "import esdm" + USE).stdout)
            again = json.loads(run([tool("esdm-explain"), "--json", site.file("kept.jsonl")]).stdout)
            expect(again == data, f"{again} instead of {data}")
            expect(run([tool("esdm-explain"), site.file("kept.jsonl")]).stdout == text, text)
            run([tool("esdm-rm"), "run.nc"])


def test_only_the_last_calls_are_kept_and_all_are_counted():
    with Site() as site:
        told = python(site, "pypi", """
import esdm, netCDF4, numpy as np, os, threading
with netCDF4.Dataset("esdm://many.nc", "w") as d:
    d.createDimension("x", 100)
    d.createVariable("v", "f8", ("x",))[:] = np.arange(100)
def loop():
    with netCDF4.Dataset("esdm://many.nc") as d:
        for i in range(5000):
            d["v"][i % 100]
threads = [threading.Thread(target=loop) for _ in range(2)]
for t in threads: t.start()
during = [esdm.report().variables[0].read_calls for _ in range(3)]
for t in threads: t.join()
assert during == sorted(during), during
report = esdm.report()
assert report.variables[0].read_calls == 10000, report.variables
assert report.data["dropped"] > 1000, report.data["dropped"]
assert "are only counted" in report.text
if os.fork() == 0:  # a child has done nothing yet
    try:
        esdm.report()
    except esdm.NotFound:
        os._exit(7)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 7
assert esdm.report().variables[0].read_calls == 10000
""")
        expect(told.stderr == "", told.stderr)


def test_a_site_that_is_not_observed_and_one_that_is():
    with Site() as site:
        python(site, "pypi", """
import os
os.environ["ESDM_MONITOR"] = "off"
import esdm
esdm.ls()
try:
    esdm.report()
    raise SystemExit("no error")
except esdm.NotFound as error:
    assert "ESDM_MONITOR=off" in str(error), error
""")
        python(site, "pypi", """
import os, json
os.environ["ESDM_MONITOR"] = "stats:own.json"
import esdm, netCDF4
with netCDF4.Dataset("esdm://a.nc", "w") as d:
    d.createDimension("x", 100); d.createVariable("v", "f8", ("x",))[:] = 1
assert esdm.report().variables[0].written_bytes == 800
""")
        line = json.loads(site.file("own.json").read_text().splitlines()[0])
        expect(line["what"] == "statistics", f"{line}")


def test_without_the_tool():
    with Site() as site:
        python(site, "pypi", """
import esdm, os
from esdm import _reporting
esdm.ls()
_reporting.folders = lambda: []
os.environ["PATH"] = "/nowhere"
try:
    esdm.report()
    raise SystemExit("no error")
except esdm.EsdmError as error:
    assert "esdm-explain was not found" in str(error), error
""")


main(test_a_report_in_mid_session, test_only_the_last_calls_are_kept_and_all_are_counted,
     test_a_site_that_is_not_observed_and_one_that_is, test_without_the_tool)
