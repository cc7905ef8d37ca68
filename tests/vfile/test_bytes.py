#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Containers as files: every range is that of the whole, and stock programs see the values that
esdm-cp exports."""

import os
import pathlib
import shutil
import subprocess
import time

from esdmtest import BUILD, DATA, SOURCE, Site, by_size, client, expect, expect_error, main, need_data, run, tool

COPY = BUILD / "tests/vfile/vfile_copy"
CDL = SOURCE / "tests/netcdf/clients"


def make(site, cdl, name, kind="nc4"):
    file = site.file(f"{name}.source.nc")
    run(["ncgen", "-k", kind, "-o", file, cdl])
    run([tool("esdm-cp"), file, f"esdm://{name}"])
    return file


def virtual(site, name, form="netcdf4", snapshot=0, seed=1, check=True):
    """Reads the whole as a file, from several threads, and compares ranges."""
    out = site.file("virtual.nc")
    done = run([COPY, name, form, snapshot, out, seed], check=check)
    return out if check else done


def dump(file, *options):
    text = run(["ncdump", "-p", "9,17", *options, file]).stdout
    return text.split("\n", 1)[1]  # the first line has the file's name


def compare(site, name, form="netcdf4", seed=1):
    exported = site.file("exported.nc")
    exported.unlink(missing_ok=True)
    run([tool("esdm-cp"), f"esdm://{name}", exported, *(["--format", form] if form != "netcdf4" else [])])
    out = virtual(site, name, form, seed=seed)
    a, b = dump(exported), dump(out)
    expect(a == b, f"{name} as {form} differs:\n{diff(a, b)}")
    return out


def diff(a, b):
    for x, y in zip(a.split("\n"), b.split("\n")):
        if x != y:
            return f"- {x[:300]}\n+ {y[:300]}"
    return f"{len(a)} and {len(b)} bytes"


def test_all_types_groups_and_texts__as_exported():
    with Site() as site:
        names = ("all_types", "user_types", "nulls", "settings")
        first = {}
        for name in names:
            make(site, CDL / f"{name}.cdl", name)
            first[name] = compare(site, name).read_bytes()
        for file in site.file("cache").rglob("*.vfile"):
            file.unlink()
        time.sleep(1.1)  # made anew in another second, headers are the same
        for name in names:
            expect(virtual(site, name, seed=2).read_bytes() == first[name], f"{name}: other bytes")


def test_classic_formats__as_exported():
    with Site() as site:
        make(site, CDL / "classic.cdl", "classic", "classic")
        for form in ("classic", "64bit-offset", "cdf5", "netcdf4"):
            out = compare(site, "classic", form)
            exported = site.file("exported.nc")
            if form != "netcdf4":
                expect(out.stat().st_size == exported.stat().st_size, f"{form}: another size")
        make(site, CDL / "all_types.cdl", "types")
        expect_error(virtual(site, "types", "classic", check=False), "types as classic", "group")


def test_records__of_several_and_of_one_variable():
    odd = """netcdf x { dimensions: t = UNLIMITED; x = 3; variables: short a(t, x); byte b(t);
        double c(x); int d(t); char e(t, x); data: a = 1,2,3,4,5,6,7,8,9; b = 1, 2, 3; c = 1,2,3; d = 7, 8, 9;
        e = "abc", "def", "ghi"; }"""
    one = """netcdf x { dimensions: t = UNLIMITED; x = 3; variables: short a(t, x); int b(x);
        data: a = 1,2,3,4,5,6,7,8,9; b = 5, 6, 7; }"""
    none = "netcdf x { dimensions: t = UNLIMITED; variables: short a(t); int b; data: b = 4; }"
    with Site() as site:
        for i, text in enumerate((odd, one, none)):
            site.file("x.cdl").write_text(text)
            make(site, site.file("x.cdl"), f"x{i}", "classic")
            for form in ("classic", "cdf5", "netcdf4"):
                compare(site, f"x{i}", form)


def test_chunks_at_borders__and_unlimited_dimensions():
    with Site() as site:
        run([tool("esdm-pattern"), "-s", "time=37,lat=45,lon=91", "-p", "noise:frequency=5", "-u",
             "esdm:chunked.nc"])
        compare(site, "chunked.nc")
        text = """netcdf x { dimensions: t = UNLIMITED; u = UNLIMITED; x = 7;
            variables: float a(t, u, x); a:_ChunkSizes = 2, 3, 4; int b(x); b:_ChunkSizes = 3; string s(t);
            data: a = {1,2,3,4,5,6,7,8,9,10,11,12,13,14}, {15,16,17,18,19,20,21}; b = 1,2,3,4,5,6,7; s = "a"; }"""
        site.file("x.cdl").write_text(text)
        make(site, site.file("x.cdl"), "x")
        compare(site, "x")


def test_snapshots__stay_as_they_were():
    with Site() as site:
        site.file("x.cdl").write_text("netcdf x { dimensions: t = UNLIMITED; variables: int a(t); data: a = 1, 2; }")
        source = make(site, site.file("x.cdl"), "x")
        first = virtual(site, "x", snapshot=1).read_bytes()
        site.file("x.cdl").write_text("netcdf x { dimensions: t = UNLIMITED; variables: int a(t); data: a = 3, 4, 5; }")
        source.unlink()
        run(["ncgen", "-k", "nc4", "-o", source, site.file("x.cdl")])
        run([tool("esdm-cp"), "--force", source, "esdm://x"])
        expect(virtual(site, "x").read_bytes() != first, "the cache of another container was taken")
        expect("a = 3, 4, 5" in dump(site.file("virtual.nc")), "not the new values")
        damaged = next(f for f in site.file("cache").rglob("*.vfile"))
        os.chmod(damaged, 0o600)
        damaged.write_bytes(b"nonsense")
        compare(site, "x")


def test_catalogue_put_back__headers_are_those_of_its_own_commits():
    """The same UUID and the same number of a snapshot, other contents: so it is, too, with the copy of a site."""
    with Site(history=2) as site:
        if not site.file("metadata/catalogue.sqlite").exists():
            return  # of another store
        site.file("x.cdl").write_text("""netcdf x { dimensions: x = 2; variables: float a(x); a:units = "K"; string s(x);
            data: a = 1, 2; s = "one", "two"; }""")
        make(site, site.file("x.cdl"), "x")
        shutil.copytree(site.file("metadata"), site.file("former"))
        client(["ncatted", "-a", "units,a,o,c,degC", "esdm://x"])
        expect('a:units = "degC"' in dump(virtual(site, "x", snapshot=2)), "not what was committed")
        shutil.rmtree(site.file("metadata"))
        site.file("former").rename(site.file("metadata"))
        client(["ncatted", "-a", "units,a,o,c,m", "esdm://x"])
        for snapshot in (0, 2):
            text = dump(virtual(site, "x", snapshot=snapshot))
            expect('a:units = "m"' in text, f"attributes of the catalogue that was there before:\n{text}")
        expect('a:units = "K"' in dump(virtual(site, "x", snapshot=1)), "the former snapshot is another one")


def test_real_files__as_exported():
    folder = need_data("cmip6")
    files = sorted((p for p in pathlib.Path(folder).rglob("*.nc")), key=lambda p: p.stat().st_size)
    count = by_size(2, 6, len(files))
    files = files[:: max(1, len(files) // count)][:count]
    compared = 0
    with Site() as site:
        for i, file in enumerate(f for f in files if f.stat().st_size < 30e6):
            run([tool("esdm-cp"), file, f"esdm://real{i}.nc"])
            out = compare(site, f"real{i}.nc", seed=i)
            # Of a calendar that it does not know it warns, of the source as well.
            same = subprocess.run(["cdo", "-s", "diffn", str(file), str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, check=False)
            expect(same.returncode == 0 and not same.stdout.strip(), f"cdo sees another {file}: {same.stdout}{same.stderr}")
            compared += 1
        print(f"{compared} files")


main(test_all_types_groups_and_texts__as_exported, test_classic_formats__as_exported,
     test_records__of_several_and_of_one_variable, test_chunks_at_borders__and_unlimited_dimensions,
     test_snapshots__stay_as_they_were,
     test_catalogue_put_back__headers_are_those_of_its_own_commits, test_real_files__as_exported)
