#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""What a query finds opens as one container, in unmodified programs."""

import json
import pathlib
import sqlite3

import virtual_files
from esdmtest import (BUILD, Site, by_size, client, expect, expect_error, main, need_data, need_program, run, tool)

HERE = pathlib.Path(__file__).parent
FILES = HERE / "virtual_files.py"
ARCHIVE = HERE / "archive_files.py"
PYTHON = "/usr/bin/python3"


def ingest(files, folder):
    for f in files:
        run([tool("esdm-cp"), f, f"esdm://{folder}/{f.name}"])


def test_two_files_of_each_kind_join_or_tell_why_not():
    table = virtual_files.cases()
    with Site() as site:
        run([PYTHON, FILES, "make", site.folder])
        ingest(sorted(site.folder.glob("*.[12].nc")), "in")
        joined = [name for name, row in table.items() if isinstance(row[2], dict)]
        client([PYTHON, FILES, "check", *joined])
        for name in table.keys() - joined:
            done = run([tool("esdm-cp"), f"esdm://?case={name}", site.file("out.nc")], check=False)
            expect_error(done, *table[name][2])
            expect_error(done, name)


def test_programs_read_and_export_it():
    need_program("ncdump", "ncks", "cdo")
    with Site() as site:
        run([PYTHON, FILES, "make", site.folder])
        ingest(sorted(site.folder.glob("same.[12].nc")), "in")
        url = "esdm://?case=same"
        dump = client(["ncdump", url]).stdout
        expect("UNLIMITED ; // (4 currently)" in dump and "9, 10, 11" in dump, dump)
        client(["ncks", "-h", "-O", url, site.file("nco.nc")])
        run([tool("esdm-cp"), url, site.file("cp.nc")])
        client(["cdo", "-s", "copy", url, site.file("cdo.nc")])
        for name in ("nco.nc", "cp.nc", "cdo.nc"):
            text = run(["ncdump", "-v", "time,tas", site.file(name)]).stdout
            expect("9, 10, 11" in text and "0, 1, 2, 3 ;" in text, text)
        one = client(["ncdump", "-h", "esdm://?case=same&tracking_id=1"]).stdout
        expect("(2 currently)" in one, one)


def test_which_member_wins_where_they_overlap():
    with Site() as site:
        run([PYTHON, FILES, "make", site.folder])
        ingest(sorted(site.folder.glob("overlap_differs.[12].nc")), "in")
        for rule, value in (("first", "6, 7, 8,"), ("newest", "7, 8, 9,")):
            text = client(["ncdump", "-v", "tas", f"esdm://?case=overlap_differs&overlap={rule}"])
            expect(value in text.stdout, text.stdout)


def test_wrong_queries_and_writes_are_told():
    with Site() as site:
        run([PYTHON, FILES, "make", site.folder])
        ingest(sorted(site.folder.glob("same.[12].nc")), "in")
        out = site.file("out.nc")
        for query, words in (("?case=nothing", ("no container",)), ("?case", ("attribute=value",)),
                             ("?", ("no condition",)),
                             ("?case=same&levels=union", ("levels", "not served")),
                             ("?case=same&overlap=all", ("equal, first or newest",))):
            expect_error(run([tool("esdm-cp"), f"esdm://{query}", out], check=False), *words)
        plain = next(site.folder.glob("same.1.nc"))
        expect_error(run([tool("esdm-cp"), "-f", plain, "esdm://?case=same"], check=False),
                     "query")
        expect_error(client([PYTHON, "-c", "import netCDF4; "
                             "netCDF4.Dataset('esdm://?case=same', 'a')"], check=False),
                     "query, which nobody can write to", "Permission denied")
        ingest(sorted(site.folder.glob("units.[12].nc")), "in")
        expect_error(client(["ncdump", "-h", "esdm://?case=units"], check=False), "units.1.nc",
                     "units.2.nc", "degC")


def test_saved_names_follow_or_are_pinned():
    def times(name):
        text = client(["ncdump", "-v", "time", f"esdm://{name}"]).stdout
        return text[text.index("data:"):].split("time =")[1].split(";")[0].split(",")

    def digest(name):
        return client(["ncdump", "-h", f"esdm://{name}"]).stdout.split(":esdm_members")[1].split(";")[0]

    def found(expression):
        return sorted(set(line.split()[0].removeprefix("esdm://") for line in
                          run([tool("esdm-find"), "-c", expression], check=False).stdout.splitlines()))

    with Site() as site:
        run([PYTHON, FILES, "make", site.folder])
        ingest(sorted(site.folder.glob("same.[12].nc")), "in")
        query = "esdm://?case=same"
        run([tool("esdm-ln"), query, "esdm://all/follows"])
        run([tool("esdm-ln"), "--pin", query, "all/pinned"])
        packs = sum(p.stat().st_size for p in site.pack_files())
        expect(len(times("all/follows")) == len(times("all/pinned")) == 4, "four times")
        expect("all/follows" in run([tool("esdm-ls")]).stdout, "it is listed")
        expect("all/follows" in run([tool("esdm-find"), "-c", "case = same"]).stdout, "it is found")
        # Ranges of values, times and boxes are those of all members together.
        ranges = "case = same and max(tas) >= 11 and max(tas) < 12 and time overlaps 2000-01-04"
        expect(found(ranges) == ["all/follows", "all/pinned", "in/same.2.nc"], found(ranges))
        expect(found("case = same and min(tas) <= 0") == ["all/follows", "all/pinned", "in/same.1.nc"], "the least")
        expect(found("case = same and time overlaps 2001") == [], found("case = same and time overlaps 2001"))
        # It is no member of what a query opens, and neither of itself.
        expect(len(times("?case=same")) == 4, "members of the query")
        expect_error(run([tool("esdm-ln"), query, "all/follows"], check=False), "exists", "--force")
        run([tool("esdm-ln"), "-f", query, "all/follows"])
        expect_error(client([PYTHON, "-c", "import netCDF4; netCDF4.Dataset('esdm://all/follows', 'a')"],
                            check=False), "Permission denied")
        expect_error(run([tool("esdm-ln"), "?case=none", "none"], check=False), "no container")
        ingest(sorted(site.folder.glob("units.[12].nc")), "in")
        expect_error(run([tool("esdm-ln"), "?case=units", "units"], check=False), "degC")
        # One more step in a member, and one more member.
        client([PYTHON, "-c", """
import netCDF4
with netCDF4.Dataset("esdm://in/same.2.nc", "a") as d:
    d["time"][2] = 4
    d["tas"][2] = [12, 13, 14]
"""])
        expect(len(times("all/follows")) == 5 and len(times("all/pinned")) == 4, "one follows")
        longer = "case = same and max(tas) > 13"
        expect(found(longer) == ["all/follows", "in/same.2.nc"], found(longer))
        run([tool("esdm-mkfs"), "--reindex"])
        expect(found(longer) == ["all/follows", "in/same.2.nc"], f"made anew: {found(longer)}")
        expect(sum(p.stat().st_size for p in site.pack_files()) - packs < 8192, "no data are copied")
        listed = json.loads(run([tool("esdm-ln"), "--json"]).stdout)["virtual"]
        expect([(v["name"], v["pinned"], len(v["members"])) for v in listed] ==
               [("all/follows", False, 2), ("all/pinned", True, 2)], listed)
        done = run([tool("esdm-rm"), "esdm://in/same.1.nc"])
        expect("'all/follows'" in done.stderr and "'all/pinned' (pinned)" in done.stderr, done.stderr)
        expect(len(times("all/follows")) == 3, "the other member is left")
        expect_error(client(["ncdump", "esdm://all/pinned"], check=False), "same.1.nc")
        run([tool("esdm-restore"), "in/same.1.nc"])
        expect(len(times("all/pinned")) == 4, "brought back")
        # A pinned member keeps its place under another name, and what gets its old one is none.
        members = digest("all/pinned")
        run([tool("esdm-mv"), "in/same.1.nc", "old/first.nc"])
        expect(digest("all/pinned") == members, "the members are the same")
        run([tool("esdm-cp"), site.file("units.1.nc"), "esdm://in/same.1.nc"])
        expect(len(times("all/pinned")) == 4, "a member was moved")
        expect("first.nc" in run([tool("esdm-ln"), "--json"]).stdout, "under its name of now")
        done = run([tool("esdm-rm"), "esdm://old/first.nc"])
        expect("'all/pinned' (pinned)" in done.stderr, done.stderr)
        expect_error(client(["ncdump", "esdm://all/pinned"], check=False), "its member 'old/first.nc'", "removed or replaced")
        run([tool("esdm-fsck")])
        run([tool("esdm-restore"), "old/first.nc"])
        expect(len(times("all/pinned")) == 4, "brought back under its name of now")
        run([tool("esdm-rm"), "esdm://old/first.nc"])
        # What is replaced is another one, at the same snapshot.
        run([tool("esdm-cp"), site.file("same.1.nc"), "esdm://in/third.nc"])
        before = digest("?case=same")
        run([tool("esdm-rm"), "esdm://in/third.nc"])
        run([tool("esdm-cp"), site.file("same.1.nc"), "esdm://in/third.nc"])
        expect(digest("?case=same") != before, "another third.nc")


def test_ranges_that_a_member_lacks_are_none_of_the_whole():
    def found(expression):
        return run([tool("esdm-find"), "-c", expression], check=False)

    with Site() as site:
        run([PYTHON, FILES, "make", site.folder])
        ingest([site.file("same.1.nc")], "in")
        run([tool("esdm-ref"), "-q", site.file("same.2.nc"), "esdm://ref"])
        run([tool("esdm-ln"), "esdm://?case=same", "esdm://all"])
        done = found("case = same and max(tas) > 1")  # nobody knows the second half
        expect("all" not in done.stdout.split() and "virtual container (esdm-ln) has 'tas'" in done.stderr, done)
        done = found("time overlaps 2000-01-04")
        expect("all" in done.stdout.split(), done)
        # Its values are looked at when they are copied, which no snapshot of the other member tells.
        run([tool("esdm-rm"), "esdm://ref"])
        ingest([site.file("same.2.nc")], "in")
        run([tool("esdm-mkfs"), "--reindex"])
        done = found("case = same and max(tas) >= 11")
        expect("all" in done.stdout.split() and done.stderr == "", done)


def test_names_that_were_saved_before_there_were_ranges():
    """Whoever asks is told that they are not found, and by what they are."""
    def found(expression):
        return run([tool("esdm-find"), "-c", expression], check=False)

    with Site() as site:
        run([PYTHON, FILES, "make", site.folder])
        ingest(sorted(site.folder.glob("same.[12].nc")), "in")
        for name in ("all", "again"):
            run([tool("esdm-ln"), "esdm://?case=same", f"esdm://{name}"])
        expect(found("time overlaps 2000-01-04").stderr == "", "they have ranges")
        catalogue = sqlite3.connect(site.folder / "metadata/catalogue.sqlite")
        with catalogue:
            catalogue.execute("DELETE FROM attribute WHERE name LIKE '@%' AND dataset = 0 AND container IN "
                              "(SELECT container FROM container WHERE name IN ('all', 'again'))")
        catalogue.close()
        for question in ("time overlaps 2000-01-04", "case = same and max(tas) >= 11"):
            done = found(question)
            expect("in/same.2.nc" in done.stdout and "all" not in done.stdout.split(), done)
            expect("2 virtual containers (esdm-ln) have" in done.stderr and "esdm-mkfs --reindex" in done.stderr, done)
        client(["ncdump", "-h", "esdm://all"])
        done = found("time overlaps 2000-01-04")
        expect("all" in done.stdout.split() and "1 virtual container (esdm-ln) has no known time" in done.stderr, done)
        run([tool("esdm-mkfs"), "--reindex"])
        done = found("time overlaps 2000-01-04 and max(tas) >= 11")
        expect("again" in done.stdout.split() and done.stderr == "", done)


def test_an_archive_of_files_that_differ_opens_as_one():
    """Files stay where they are; the whole equals what numpy and cftime make of them."""
    with Site() as site:
        folder = site.folder / "archive"
        folder.mkdir()
        others = ["others"] if (BUILD / "esdm/esdm-codec-grib.so").exists() else []
        if others:
            need_program("cdo")
            need_program("nccopy")
        run([PYTHON, ARCHIVE, "make", folder, by_size(40, 200, 200), *others])
        run([tool("esdm-ref"), "-q", folder, "esdm://archive"])
        if others:  # GRIB says nothing of series
            run([tool("esdm-attr"), "--set", "series=dirty",
                 *(n for n in run([tool("esdm-ls")]).stdout.split() if n.endswith(".grb"))])
        client([PYTHON, ARCHIVE, "check", folder, "esdm://?series=dirty"])
        run([tool("esdm-ln"), "?series=dirty", "one"])
        client([PYTHON, ARCHIVE, "check", folder, "esdm://one"])
        expect(sum(p.stat().st_size for p in site.pack_files()) < 65536, "source bytes were copied")


def test_what_was_found_out_is_remembered():
    """Once a query was opened, no member is opened before data are read, as long as all are as they were."""
    with Site() as site:
        folder, away = site.folder / "archive", site.folder / "away"
        folder.mkdir()
        run([PYTHON, ARCHIVE, "make", folder, "20"])
        run([tool("esdm-ref"), "-q", folder, "esdm://archive"])
        header = client(["ncdump", "-h", "esdm://?series=dirty"]).stdout
        folder.rename(away)  # times are in the files
        expect(client(["ncdump", "-h", "esdm://?series=dirty"]).stdout == header, "the same structure")
        expect_error(client(["ncdump", "-v", "skt", "esdm://?series=dirty"], check=False), "tas_00")
        expect_error(client(["ncdump", "-h", "esdm://?series=dirty&overlap=first"], check=False), "tas_00")
        away.rename(folder)
        client([PYTHON, ARCHIVE, "check", folder, "esdm://?series=dirty"])
        # Another snapshot of a member is looked at; so is another member.
        client([PYTHON, "-c", """
import netCDF4
with netCDF4.Dataset("esdm://archive/tas_0019.nc", "a") as d:
    d["skt"].long_name = "changed"
"""])
        run([tool("esdm-rm"), "esdm://archive/tas_0003.nc"])
        times = client(["ncdump", "-h", "esdm://?series=dirty"]).stdout
        expect("(55 currently)" in times and "(58 currently)" in header, f"{header} {times}")
        run([tool("esdm-restore"), "archive/tas_0003.nc"])
        run([tool("esdm-fsck")])
        for path in sorted(folder.glob("*.nc"))[:3]:
            path.unlink()
        expect_error(client(["ncdump", "-v", "skt", "esdm://?series=dirty"], check=False), "tas_000")


def series(folder):
    """Files of the smallest series of several files."""
    found = {}
    for f in sorted(folder.rglob("*.nc")):
        found.setdefault(f.name.rsplit("_", 1)[0], []).append(f)
    several = [files for files in found.values() if len(files) > 1]
    return min(several, key=lambda files: sum(f.stat().st_size for f in files))


def test_a_series_of_an_archive_is_what_numpy_joins():
    folder = need_data("cmip6")
    with Site():
        files = series(pathlib.Path(folder))
        ingest(files, "in")
        words = files[0].name[:-3].split("_")
        keys = ("variable_id", "table_id", "source_id", "experiment_id", "variant_label")
        query = "&".join(f"{key}={word}" for key, word in zip(keys, words))
        client([PYTHON, FILES, "equal", f"esdm://?{query}", *files])


NAMED = """
import netCDF4
for name, source, table in (("a", "INM-CM4-8", "Amon"), ("b", "INM-CM5-0", "Amon"), ("c", "INM-CM5-0", "day")):
    with netCDF4.Dataset(f"esdm://{name}.nc", "w") as d:
        d.setncatts({"source_id": source, "table_id": table, "level": 3})
"""


def test_a_query_that_finds_nothing_says_which_value_nothing_has():
    with Site():
        client([PYTHON, "-c", NAMED])
        for query, words in (("source_id=inm-cm4-8", "nothing has source_id=inm-cm4-8; did you mean 'INM-CM4-8'?"),
                             ("table_id=day&source_id=INM-CM4-9", "did you mean 'INM-CM4-8'?"),
                             ("source_id=INM-CM4-8,INM-CM5-0", "several values are 'source_id in (A, B)'"),
                             ("source_id=INM-CM4-8&table_id=day", "each condition is met by something, but nothing meets all"),
                             ("level=4&table_id=day", "nothing has level=4"), ("source=x", "did you mean 'source_id'?")):
            expect_error(client(["ncdump", f"esdm://?{query}"], check=False), "asks for: ", words)
        found = client(["ncdump", "-h", "esdm://?source_id in (INM-CM4-8, nix)&table_id=Amon"]).stdout
        expect('source_id = "INM-CM4-8"' in found, found)


main(test_a_query_that_finds_nothing_says_which_value_nothing_has,
     test_two_files_of_each_kind_join_or_tell_why_not, test_programs_read_and_export_it,
     test_which_member_wins_where_they_overlap, test_wrong_queries_and_writes_are_told,
     test_saved_names_follow_or_are_pinned, test_ranges_that_a_member_lacks_are_none_of_the_whole,
     test_names_that_were_saved_before_there_were_ranges,
     test_an_archive_of_files_that_differ_opens_as_one,
     test_what_was_found_out_is_remembered,
     test_a_series_of_an_archive_is_what_numpy_joins)
