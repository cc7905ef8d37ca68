#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Stores of newer versions are refused and left alone; odd names go through every tool."""

import json
import sqlite3

from esdmtest import (BUILD, Site, client, expect, expect_error, main, need_program, run, tool)
from faults import database, must, program

CDL = "netcdf t { dimensions: x = 3 ; variables: int v(x) ; data: v = 1, 2, 3 ; }\n"
COMPARE = BUILD / "tests/netcdf/clients/nc_compare"


def expect_newer(site):
    for done in (program("check", "c"), program("write", "c", 2, 2),
                 run([tool("esdm-ls")], check=False),
                 run([tool("esdm-mkfs"), "--check"], check=False)):
        expect_error(done, "newer")


def test_newer_metadata_store__is_refused():
    with Site() as site:
        must("write", "c", 1, 1)
        with sqlite3.connect(database(site)) as db:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            db.execute(f"PRAGMA user_version = {version + 1000}")
        db.close()
        expect_newer(site)
        with sqlite3.connect(database(site)) as db:
            db.execute(f"PRAGMA user_version = {version}")
        db.close()
        must("check", "c")


def test_newer_places__are_refused():
    for folder in ("packs", "metadata"):
        with Site() as site:
            must("write", "c", 1, 1)
            mark = site.file(folder) / "esdm-mark.json"
            content = json.loads(mark.read_text())
            mark.write_text(json.dumps({**content, "format": content["format"] + 1}))
            done = program("check", "c")
            expect_error(done, "newer", folder)


def test_foreign_mark__is_refused():
    with Site() as site:
        must("write", "c", 1, 1)
        mark = site.file("packs") / "esdm-mark.json"
        content = json.loads(mark.read_text())
        mark.write_text(json.dumps({**content, "site": "0" * 32}))
        expect_error(program("check", "c"), "packs")
        mark.write_text("{")
        expect_error(program("check", "c"), "packs")


NAMES = ["with space.nc", "Zürich/東京 ☃.nc", "a%20b&c?d#e.nc", "quote'\"\\back.nc", "-dash.nc",
         "dots..in.name", "n" * 252 + ".nc", "/".join(["deep"] * 60) + ".nc", "$HOME;`id`.nc"]
WRONG = ["../escape.nc", "a/../../b.nc", "..", "./x.nc", "a/./b.nc", "n" * 256,
         "/".join(["n" * 200] * 6), "tab\there.nc", "new\nline.nc"]


def test_odd_names__go_through_every_tool():
    need_program("ncgen", "ncks")
    with Site() as site:
        cdl = site.file("t.cdl")
        cdl.write_text(CDL)
        file = site.file("file.nc")
        run(["ncgen", "-4", "-o", file, cdl])
        for number, name in enumerate(NAMES):
            url = f"esdm://{name}"
            client(["nccopy", file, url])
            out = site.file(f"out-{number}.nc")
            client(["nccopy", url, out])
            run([COMPARE, file, out])
            listed = json.loads(run([tool("esdm-ls"), "--json"]).stdout)
            expect([c["name"] for c in listed["containers"]] == [name],
                   f"esdm-ls does not show {name!r}: {listed}")
            run([tool("esdm-cp"), url, site.file("cp.nc")])
            site.file("cp.nc").unlink()
            run([tool("esdm-stat"), url])
            run([tool("esdm-rm"), "-f", url])
            done = client(["ncdump", "-h", url], check=False)
            expect(done.returncode != 0, f"{name!r} is still there")


def test_wrong_names__are_refused():
    need_program("ncgen")
    with Site() as site:
        cdl = site.file("t.cdl")
        cdl.write_text(CDL)
        before = sorted(str(p) for p in site.folder.rglob("*"))
        for name in WRONG:
            expect_error(client(["ncgen", "-4", "-o", f"esdm://{name}", cdl], check=False))
            expect_error(program("write", name, 1, 1))
        expect(run([tool("esdm-ls")]).stdout.strip() == "", "something was written")
        after = sorted(str(p) for p in site.folder.rglob("*"))
        extra = [p for p in set(after) - set(before) if not p.endswith(("-wal", "-shm"))]
        expect(not extra, f"left behind: {extra}")


main(
    test_newer_metadata_store__is_refused,
    test_newer_places__are_refused,
    test_foreign_mark__is_refused,
    test_odd_names__go_through_every_tool,
    test_wrong_names__are_refused,
)
