#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Measuring, planning and explaining a site with data on S3 and Kyoto Cabinet, metadata in PostgreSQL:
real servers, as a user would drive them."""

import contextlib
import json
import os
import subprocess
import sys

import postgres
import s3server
from esdmtest import (BUILD, SOURCE, Failed, Site, by_size, client, expect, expect_error, main,
                      need_program, run, skip, tool)
from s3server import Server

sys.path.insert(0, str(SOURCE / "tests/faults"))
from stores import OUTPUTS, giving_up, s3_site  # noqa: E402

MKFS = tool("esdm-mkfs")
BUDGET = [by_size("--seconds=2", "--seconds=2", "--seconds=6")]
PASSWORD = "a-Password/of+tests"
TINY = {"name": "tiny", "plugin": "kv", "directory": "kv"}


@contextlib.contextmanager
def mixed_site(server, database):
    saved = os.environ.get("PGPASSWORD")
    os.environ["PGPASSWORD"] = PASSWORD
    try:
        with s3_site(server, others=[TINY], metadata={
                "plugin": "postgres", "schema": f"mixed{os.getpid()}",
                "connection": database.connection()},
                     backup={"journal": False, "every": 0}) as site:
            yield site
    finally:
        os.environ.pop("PGPASSWORD")
        if saved is not None:
            os.environ["PGPASSWORD"] = saved


def calibrate(*options):
    return json.loads(run([MKFS, "--calibrate=quick", *BUDGET, "--json", *options]).stdout)["models"]


def by_target(models):
    return {(m["target"], m["direction"]): m for m in models}


def leftovers(server, site):
    """Objects and databases beside the marks of the targets."""
    objects = [k for k in server.client().keys(site.prefix) if not k.endswith(".json")]
    return objects + server.client().uploads(site.prefix) + list(site.file("kv").glob("*.kch"))


def check_calibration(server, site):
    plot = site.file("model.svg")
    models = by_target(calibrate("--plot", plot))
    expect(set(models) == {(t, d) for t in ("cloud", "tiny") for d in ("write", "read")},
           f"{sorted(models)}")
    for key, m in models.items():
        expect(0 <= m["latency_s"] < 2 and len(m["samples"]) > 3, f"{key}: {m}")
        for speed in (m["stream_bytes_per_s"], m["shared_bytes_per_s"]):  # None: never the limit
            expect(speed is None or 1e5 < speed < 1e12, f"{key}: {m}")
        expect(m["held_out"] <= len(m["samples"]) and m["error"] is not None, f"{key}: {m}")
    expect(not leftovers(server, site), f"left behind: {leftovers(server, site)}")
    svg = plot.read_text()
    expect("cloud: read" in svg and "tiny: write" in svg and svg.count("<polyline") >= 8, svg[:300])
    run([MKFS, "--plot", site.file("again.svg")])
    expect(site.file("again.svg").read_text() == svg, "the model in PostgreSQL is another one")

    again = by_target(calibrate("--target", "tiny"))
    for direction in ("read", "write"):
        expect(again["cloud", direction]["measured"] == models["cloud", direction]["measured"],
               "another target was measured too")
    text = run([MKFS, "--calibrate=quick", *BUDGET, "--target", "cloud"]).stdout
    expect("cloud, write: latency" in text and "tiny" not in text, text)


HEADER = """netcdf run1 {
dimensions:
\ttime = UNLIMITED ; // (24 currently)
\tlat = 128 ;
\tlon = 256 ;
variables:
\tdouble time(time) ;
\tfloat tas(time, lat, lon) ;
\tfloat orog(lat, lon) ;
}
"""
SIZES = {"time": 24 * 8, "tas": 24 * 128 * 256 * 4, "orog": 128 * 256 * 4}


def check_plan(site):
    header = site.file("run1.cdl")
    header.write_text(HEADER)
    text = run([MKFS, "--plan", header]).stdout
    expect("tas" in text and "together" in text, text)
    plan = json.loads(run([MKFS, "--json", "--plan", header]).stdout)
    expect({v["path"]: v["bytes"] for v in plan["variables"]} == SIZES, f"{plan}")
    expect(sum(t["bytes"] for t in plan["targets"]) == sum(SIZES.values()), f"{plan}")
    expect({t["target"] for t in plan["targets"]} <= {"cloud", "tiny", "(inline)"}, f"{plan}")
    expect(0 < plan["seconds"] < 600, f"{plan}")
    longer = json.loads(run([MKFS, "--json", "--plan", header, "--steps", "240"]).stdout)
    expect(longer["seconds"] > plan["seconds"], f"{longer}")


DATA = "; ".join(f"{name} = " + ", ".join(str(i % 97) for i in range(n))
                 for name, n in (("tas", 4 * 32 * 64), ("orog", 32 * 64)))
CDL = f"""netcdf run1 {{ dimensions: time = UNLIMITED ; lat = 32 ; lon = 64 ;
variables: float tas(time, lat, lon) ; float orog(lat, lon) ; int count ; data:
{DATA} ; count = 7 ; }}"""


def explain(*arguments):
    text = run([tool("esdm-stat"), "--explain", "--json", *arguments]).stdout
    return {d["path"]: d for d in json.loads(text)["containers"][0]["datasets"]}


def check_explanation(site):
    """What a NetCDF program wrote, and something larger that both targets have parts of."""
    need_program("ncgen", "ncdump")
    site.file("run1.cdl").write_text(CDL)
    client(["ncgen", "-o", "esdm://exp/run1.nc", site.file("run1.cdl")])
    bench = BUILD / "tests/bench/bench_placement"
    run([bench, "write", "exp/large", "24", "24"])
    run([bench, "read", "exp/large", "24", "24"])
    found = {**explain("exp/run1.nc"), **explain("--fragments", "exp/large")}
    expect(set(found) == {"tas", "orog", "count", "v"}, f"{sorted(found)}")
    for path in ("tas", "orog", "v"):
        for t in found[path]["targets"]:
            expect(t["target"] in ("cloud", "tiny") and t["predicted_s"] > 0 and
                   t["observed_s"] > 0 and t["why"], f"{path}: {t}")
            other = {"cloud": "tiny", "tiny": "cloud"}[t["target"]]
            expect([a["target"] for a in t["alternatives"]] == [other] and
                   t["alternatives"][0]["why"], f"{path}: {t}")
    expect([t["target"] for t in found["count"]["targets"]] == ["(inline)"], f"{found['count']}")
    expect(sum(t["bytes"] for t in found["v"]["targets"]) >= 24 << 20, f"{found['v']}")
    expect(sum(f["bytes"] for f in found["v"]["fragments"]) ==
           sum(t["bytes"] for t in found["v"]["targets"]), "fragments are missing")
    text = run([tool("esdm-stat"), "--explain", "exp/run1.nc/tas"]).stdout
    expect("predicted" in text and "observed" in text and "not " in text, text)
    expect_error(run([tool("esdm-stat"), "--explain", "exp/run1.nc/pr"], check=False),
                 "no variable 'pr'")
    return found["v"]


def check_without_servers(server, database, site, explained):
    """The model and the explanations are metadata: they stay when a target is away."""
    def model_of_cloud():
        done = run([MKFS, "--plot", site.file("x.svg"), "--json"])
        return [m for m in json.loads(done.stdout)["models"] if m["target"] == "cloud"]

    before = model_of_cloud()
    server.kill()
    with giving_up(site, 2):
        done = run([MKFS, "--calibrate=quick", *BUDGET], check=False)
        expect_error(done, "cloud", "127.0.0.1")
        expect(len(before) == 2 and model_of_cloud() == before,
               "a calibration that failed changed the model")
        expect(not list(site.file("kv").glob("*.kch")) or explained, "databases are left")
        check_plan(site)
        expect(explain("--fragments", "exp/large")["v"] == explained, "another explanation")
    server.start()
    database.restart("immediate")
    check_plan(site)
    expect(explain("--fragments", "exp/large")["v"] == explained, "after a restart")
    database.stop("immediate")
    for command in ([MKFS, "--calibrate=quick"], [MKFS, "--plan", site.file("run1.cdl")],
                    [tool("esdm-stat"), "--explain", "exp/large"]):
        expect_error(run(command, check=False), "postgres")
    database.start()


def test_site__is_measured_planned_and_explained():
    with Server() as server, postgres.Server(password=PASSWORD) as database:
        with mixed_site(server, database) as site:
            check_calibration(server, site)
            check_plan(site)
            explained = check_explanation(site)
            check_without_servers(server, database, site, explained)
            run([tool("esdm-fsck"), "--data"])
            run([tool("esdm-rm"), "--for-good", "exp/run1.nc", "exp/large"])
            expect(not leftovers(server, site), f"left behind: {leftovers(server, site)}")
            facts = database.sql(f"SELECT key FROM mixed{os.getpid()}.store "
                                 "WHERE key LIKE '%/place/%'")
            expect(len(facts) <= 1, f"what was told of removed containers is left: {facts}")


def test_site__no_secret_was_printed():
    expect(len(OUTPUTS) > 10, f"only {len(OUTPUTS)} outputs were seen")
    for text in OUTPUTS:
        for secret in (s3server.SECRET_KEY, PASSWORD):
            expect(secret not in text, f"a secret is in: {text}")


for plugin in ("data-s3", "data-kv", "meta-postgres"):
    if not (BUILD / f"esdm/esdm-{plugin}.so").exists():
        skip(f"this ESDM was built without {plugin}")
postgres.skip_without_postgres()
main(test_site__is_measured_planned_and_explained, test_site__no_secret_was_printed)
