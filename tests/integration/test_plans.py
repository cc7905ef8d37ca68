# SPDX-License-Identifier: LGPL-3.0-or-later
"""PostgreSQL answers every operator of queries, facets and levels of views from indexes: no plan reads a whole table."""

import json
import re

from esdmtest import Site, expect, main, run, tool
from postgres import Server, skip_without_postgres

FIND = tool("esdm-find")
WRITE = """
import netCDF4, sys
for i in range(int(sys.argv[1])):
    with netCDF4.Dataset(f"{sys.argv[2]}/{i}.nc", "w") as d:
        d.setncatts({"model": f"m{i % 3}", "year": 1990 + i, "title": f"run {i}"})
        d.createDimension("time", None)
        t = d.createVariable("time", "f8", ("time",))
        t.units = "days since 2000-01-01"
        t[:] = [i, i + 1]
        v = d.createVariable("tas", "f4", ("time",))
        v.setncatts({"units": "K", "level": float(i)})
        v[:] = [280 + i, 281 + i]
"""
QUESTIONS = ["model = m1", "model != m1", "model < m1", "model <= m1", "model > m1", "model >= m1", "model ~ m*",
             "model =~ ^m", "model in (m0, m1)", "exists model", "year = 1991", "year != 1991", "year < 1991",
             "year <= 1991", "year > 1991", "year >= 1991", "tas:units = K", "tas:level > 1", ":model = m1",
             "time overlaps 2000-01-02", "max(tas) > 281 K", "length(time) >= 2", "text ~ run", "units = K and model = m1",
             "model = m1 or year = 1991", "model = m1 and not year = 1991", "max(tas) > 281 K and model = m1"]
# What may be read from end to end: the few rows of a question itself, and what is not of the catalogue.
LARGE = re.compile(r"Seq Scan on (?:\S+\.)?(object|extent|container|snapshot|page|view_node|view_delta|view_member)\b")


def plans(log, before):
    """What auto_explain has told since."""
    return log.read_text(encoding="utf-8", errors="replace")[before:]


def test_plans__every_operator_uses_an_index():
    skip_without_postgres()
    settings = {"session_preload_libraries": "auto_explain", "auto_explain.log_min_duration": "0",
                "auto_explain.log_nested_statements": "on", "enable_seqscan": "off", "log_min_messages": "log"}
    with Server(**settings) as server:
        store = {"plugin": "postgres", "host": "127.0.0.1", "port": server.port, "database": "postgres", "user": "esdm"}
        with Site(metadata=store, views={"kinds": "{model}/{year}"}) as site:
            run(["/usr/bin/python3", "-c", WRITE, "6", site.folder])
            run([tool("esdm-cp"), *[site.file(f"{i}.nc") for i in range(6)], "esdm://"])
            asked = [[FIND, q] for q in QUESTIONS]
            asked += [[FIND, "--facets", "model,year", ":model = m1"], [tool("esdm-ls"), "kinds:"],
                      [tool("esdm-ls"), "kinds:/m1"], [tool("esdm-ls"), "kinds:/m1/1991"]]
            for command in asked:
                before = len(plans(server.log, 0))
                done = run(command)
                told = plans(server.log, before)
                expect("Query Text:" in told and "Index" in told, f"{command}: no plan was told: {told[-500:]}")
                wrong = LARGE.search(told)
                expect(wrong is None, f"{command}: {wrong and told[max(0, wrong.start() - 1500):wrong.end()]}")
                expect(done.stdout, f"{command} finds nothing")
            facets = json.loads(run([FIND, "--facets", "model,year", "--json", "exists :model"]).stdout)["facets"]
            expect(facets["model"] == {"m0": 2, "m1": 2, "m2": 2} and len(facets["year"]) == 6, f"{facets}")
            expect(run([tool("esdm-ls"), "kinds:/m1"]).stdout.split() == ["kinds:/m1/1991", "kinds:/m1/1994"], "a level")


if __name__ == "__main__":
    main(test_plans__every_operator_uses_an_index)
