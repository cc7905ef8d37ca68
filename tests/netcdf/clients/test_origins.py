#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Containers of different models, members of an ensemble, tables and grids are no series; the table in
virtual_files.py has each attribute that tells one from another."""

import os
import pathlib

import virtual_files
from esdmtest import Site, client, expect, expect_error, main, run, tool

PYTHON = "/usr/bin/python3"
QUERY = "esdm://?set=origins"
OLDER = """
import ctypes, sys
esdm = ctypes.CDLL(sys.argv[1])
session, container = ctypes.c_void_p(), ctypes.c_void_p()
assert esdm.esdm_session_open(None, ctypes.byref(session), None) == 0
assert esdm.esdm_container_create(session, b"older", 0, ctypes.byref(container), None) == 0
assert esdm.esdm_container_set_hint(container, b"virtual.query", b"?set=origins", None) == 0
assert esdm.esdm_container_close(container, None) == 0
esdm.esdm_session_close(session)
"""


def store(site, name, times, attributes, **how):
    path = site.file(f"{name.split('/')[-1]}.nc")
    virtual_files.write(str(path), "origins", times, attributes={"set": "origins", **attributes}, **how)
    run([tool("esdm-cp"), "-q", path, f"esdm://in/{name}.nc"])


def header(url):
    return client(["ncdump", "-h", url]).stdout


def fails(url, *words):
    done = client(["ncdump", "-h", url], check=False)
    expect_error(done, *words)
    return done.stderr


def test_other_models_join_where_the_query_says_so():
    with Site() as site:
        a = {"source_id": "A & B", "institution_id": "I", "variant_label": "r1i1p1f1"}
        store(site, "a", [0, 1], a)
        store(site, "b", [2, 3], {**a, "source_id": "C", "institution_id": "J"})
        fails(QUERY, "'in/a.nc' has the source_id 'A & B' and 'in/b.nc' 'C'", "&source_id=A %26 B in",
              "&ensemble=source_id", "&across=source_id,institution_id")
        expect("(2 currently)" in header(f"{QUERY}&source_id=A %26 B"), "the one that is named")
        fails(f"{QUERY}&across=source_id", "the institution_id 'I'", "&across=source_id,institution_id")
        for across in ("source_id,institution_id", "*"):
            text = header(f"{QUERY}&across={across}")
            expect("(4 currently)" in text and ':esdm_across = "source_id,institution_id"' in text, text)
        fails(f"{QUERY}&across=", "needs attributes")
        fails(f"{QUERY}&across=source_id,", "needs attributes")
        fails(f"{QUERY}&across=experiment_id", "'experiment_id'", "without &across")
        fails(f"{QUERY}&across=source_id&across=institution_id", "given twice")
        # Long names do not hide the values, nor what can be done.
        folder = "/".join(f"folder{i}" for i in range(30))
        store(site, f"{folder}/c", [0, 1], {**a, "set": "long"})
        store(site, f"{folder}/d", [2, 3], {**a, "source_id": "D", "set": "long"})
        fails("esdm://?set=long", "'c.nc' has the source_id 'A & B' and 'd.nc' 'D'", "(&across=source_id)")
        # Of a third one that does not say its model nobody can tell.
        store(site, "0", [4, 5], {})
        fails(QUERY, "'in/a.nc' has the source_id 'A & B' and 'in/b.nc' 'C'")
        # The same institute, where the same model continues another one's experiment.
        store(site, "c", [6, 7], {"source_id": "C", "institution_id": "K", "set": "scenario", "experiment_id": "historical"})
        store(site, "d", [8, 9], {"source_id": "C", "institution_id": "J", "set": "scenario", "experiment_id": "ssp585"})
        expect("esdm_across" not in header("esdm://?set=scenario"), "historical and ssp585")
        store(site, "e", [10, 11], {"source_id": "C", "institution_id": "L", "set": "scenario", "experiment_id": "ssp585"})
        store(site, "f", [12, 13], {"source_id": "D", "institution_id": "J", "set": "models", "experiment_id": "historical"})
        store(site, "g", [14, 15], {"source_id": "D", "institution_id": "L", "set": "models", "experiment_id": "historical"})
        fails("esdm://?set=models", "the institution_id 'J'", "'L'")


def test_each_member_of_an_ensemble_is_of_one_model():
    with Site() as site:
        for model in "AB":
            for k, times in enumerate(([0, 1], [2, 3])):
                store(site, f"{model}{k}", times, {"source_id": model, "variant_label": "r1i1p1f1"})
        text = header(f"{QUERY}&ensemble=source_id")
        expect("source_id = 2 ;" in text and "(4 currently)" in text and "esdm_across" not in text, text)
        told = fails(f"{QUERY}&ensemble=variant_label", "source_id 'A'", "'B'", "&across=source_id")
        expect("&ensemble=source_id" not in told, told)
        store(site, "B2", [4], {"source_id": "C", "variant_label": "r2i1p1f1", "set": "parts"})
        store(site, "B3", [5], {"source_id": "D", "variant_label": "r2i1p1f1", "set": "parts"})
        store(site, "B4", [4, 5], {"source_id": "C", "variant_label": "r1i1p1f1", "set": "parts"})
        fails("esdm://?set=parts&ensemble=variant_label", "source_id 'C'", "'D'")
        text = header("esdm://?set=parts&ensemble=variant_label&across=source_id")
        expect(':esdm_across = "source_id"' in text, text)


def test_elements_of_a_new_dimension_are_of_one_model():
    with Site() as site:
        a = {"source_id": "A", "institution_id": "I", "table_id": "Amon"}
        store(site, "A1", [0, 1], {**a, "variant_label": "r1i1p1f1", "realization_index": 1})
        store(site, "B2", [0, 1], {**a, "variant_label": "r2i1p1f1", "realization_index": 2, "source_id": "B"})
        told = fails(f"{QUERY}&ensemble=variant_label", "source_id 'A'", "'B'", "no ensemble", "&across=source_id)")
        expect("make a dimension" not in told, told)
        text = header(f"{QUERY}&ensemble=variant_label&across=source_id")
        expect("variant_label = 2 ;" in text and ':esdm_across = "source_id"' in text, text)
        # Models of an ensemble have members of their own.
        text = header(f"{QUERY}&ensemble=source_id")
        expect("source_id = 2 ;" in text and "esdm_across" not in text, text)
        # An attribute that nobody knows: one model, too, but any member.
        for name, other in (("A3", {"variant_label": "r2i1p1f1"}), ("A4", {"source_id": "B"})):
            store(site, name, [0, 1], {**a, "set": name, "kind": "one", "variant_label": "r1i1p1f1"})
            store(site, f"{name}b", [0, 1], {**a, "set": name, "kind": "two", "variant_label": "r1i1p1f1", **other})
        expect("kind = 2" in header("esdm://?set=A3&ensemble=kind"), "members")
        fails("esdm://?set=A4&ensemble=kind", "source_id 'A'")


def test_the_site_says_what_else_tells_runs_apart():
    with Site(join={"equal": ["expid", "source_id"]}) as site:
        a = {"source_id": "A", "variant_label": "r1i1p1f1"}
        store(site, "a", [0, 1], {**a, "expid": "abc001"})
        store(site, "b", [2, 3], {**a, "expid": "abc002"})
        store(site, "c", [4, 5], {**a})
        fails(QUERY, "'in/a.nc' has the expid 'abc001' and 'in/b.nc' 'abc002'", "&ensemble=expid", "&across=expid")
        text = header(f"{QUERY}&across=expid")
        expect("(6 currently)" in text and ':esdm_across = "expid"' in text, text)
        expect("(4 currently)" in header(f"{QUERY}&without=in/b.nc"), "who does not say it fits")
        fails(f"{QUERY}&across=other", "'other'")
    for join, word in (({"equal": ["a,b"]}, "without blanks"), ({"equal": ["a", "a"]}, "twice"), ({"equals": []}, "equal"),
                       ({"equal": ["x"] * 17}, "16")):
        with Site(make=False, join=join):
            expect_error(run([tool("esdm-mkfs")], check=False), "join", word)


def test_variables_of_different_models_are_not_put_together():
    with Site() as site:
        store(site, "tas", [0, 1], {"source_id": "A", "table_id": "Amon", "variant_label": "r1i1p1f1"})
        store(site, "mrso", [0, 1], {"source_id": "A", "table_id": "Lmon", "variant_label": "r1i1p1f1"}, variable="mrso")
        text = header(QUERY)
        expect("mrso(" in text and "tas(" in text, text)
        store(site, "pr", [0, 1], {"source_id": "B", "variant_label": "r1i1p1f1"}, variable="pr")
        fails(QUERY, "source_id 'A'", "'B'", "&across=source_id")
        text = header(f"{QUERY}&across=source_id")
        expect("pr(" in text and ':esdm_across = "source_id"' in text, text)


def test_what_is_remembered_says_how_it_was_asked():
    """What was found out of 16 containers that may differ does not open a query that says nothing of that."""
    with Site() as site:
        paths = []
        for k in range(16):
            path = site.file(f"m{k:02}.nc")
            virtual_files.write(str(path), "origins", [2 * k, 2 * k + 1],
                                attributes={"set": "origins", "realization": f"{k % 2}"})
            paths.append(path)
        run([tool("esdm-cp"), "-q", *paths, "esdm://in/"])
        for _ in range(2):
            expect(':esdm_across = "realization"' in header(f"{QUERY}&across=realization"), "asked for")
            fails(QUERY, "'in/m00.nc'", "'in/m01.nc'", "realization '0'")


def test_saved_queries_of_older_versions_go_on():
    with Site() as site:
        store(site, "a", [0, 1], {"source_id": "A"})
        run([tool("esdm-ln"), "?set=origins", "newer"])
        store(site, "b", [2, 3], {"source_id": "B"})
        fails("esdm://newer", "'newer'", "source_id 'A'", "'B'", "&across=source_id")
        expect_error(run([tool("esdm-ln"), "?set=origins", "both"], check=False), "source_id", "&across=source_id")
        run([tool("esdm-ln"), "--across", "source_id", "?set=origins", "both"])
        expect("(4 currently)" in header("esdm://both"), "it was asked for")
        # What older versions saved says of its query only.
        client([PYTHON, "-c", OLDER, pathlib.Path(os.environ["ESDM_BUILD"], "libesdm.so")])
        text = header("esdm://older")
        expect("(4 currently)" in text and ':esdm_across = "source_id"' in text, text)


main(test_other_models_join_where_the_query_says_so, test_each_member_of_an_ensemble_is_of_one_model,
     test_elements_of_a_new_dimension_are_of_one_model, test_the_site_says_what_else_tells_runs_apart,
     test_variables_of_different_models_are_not_put_together, test_what_is_remembered_says_how_it_was_asked,
     test_saved_queries_of_older_versions_go_on)
