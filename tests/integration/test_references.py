#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-ref: containers whose values stay in netCDF classic and netCDF-4 files equal these files,
read by netCDF4-python; files that were changed, cut off, removed or exchanged are errors that name
file and chunk, never other values; what is written goes to ESDM; a copy needs no file."""

import json
import os
import shutil
import sys

from esdmtest import Site, by_size, client, expect, expect_error, main, need_data, need_program, run, some, tool

REF = tool("esdm-ref")
CP = tool("esdm-cp")
RM = tool("esdm-rm")

MAKE = """
import sys, netCDF4, numpy as np
folder = sys.argv[1]
rng = np.random.default_rng(1)
def fill(nc, fixed, types):
    for t in types:
        for name, dims in (("all", ("y", "x")), ("step", ("t", "y", "x"))):
            v = nc.createVariable(f"{name}_{t}", t, dims, **fixed(dims))
            shape = (7, 5, 9) if name == "step" else (5, 9)
            v[:] = np.arange(np.prod(shape)).reshape(shape).astype(t) if t != "S1" else \\
                rng.choice([b"a", b"b", b"c"], shape)
    nc.createVariable("scalar", "f8")[...] = 2.5
for form in ("NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"):
    for layout in ("many", "one", "fixed"):
        with netCDF4.Dataset(f"{folder}/{form}-{layout}.nc", "w", format=form) as nc:
            nc.set_auto_mask(False)
            nc.title = "classic"
            nc.createDimension("t", None if layout != "fixed" else 7)
            nc.createDimension("y", 5)
            nc.createDimension("x", 9)
            if layout == "one":  # records of one variable are not padded
                nc.createVariable("only", "i1", ("t", "y"))[:] = np.arange(35).reshape(7, 5)
            else:
                fill(nc, lambda d: {}, ["i1", "i2", "i4", "f4", "f8", "S1"])
kinds = {
    "contiguous": lambda d: dict(contiguous=True),
    "chunked": lambda d: dict(chunksizes=(2, 3, 4)[-len(d):]),
    "deflate": lambda d: dict(zlib=True, shuffle=False, chunksizes=(2, 3, 4)[-len(d):]),
    "shuffle": lambda d: dict(zlib=True, shuffle=True, complevel=1, chunksizes=(3, 5, 9)[-len(d):]),
    "fletcher": lambda d: dict(zlib=True, fletcher32=True, chunksizes=(2, 3, 4)[-len(d):]),
    "sum": lambda d: dict(fletcher32=True, chunksizes=(2, 3, 4)[-len(d):]),
    "big": lambda d: dict(zlib=True, endian="big", chunksizes=(2, 3, 4)[-len(d):]),
    "bigplain": lambda d: dict(endian="big", contiguous=True),
    "whole": lambda d: dict(zlib=True, chunksizes=(7, 5, 9)[-len(d):]),
}
for kind, fixed in kinds.items():
    with netCDF4.Dataset(f"{folder}/{kind}.nc", "w") as nc:
        for name, n in (("t", 7), ("y", 5), ("x", 9)):
            nc.createDimension(name, n)
        fill(nc, fixed, ["i1", "u2", "i4", "u8", "f4", "f8"])
with netCDF4.Dataset(f"{folder}/odd.nc", "w") as nc:
    nc.createDimension("t", None)
    nc.createDimension("x", 6)
    nc.createDimension("empty", None)
    g = nc.createGroup("a").createGroup("b")
    e = g.createEnumType("u1", "e", {"no": 0, "yes": 1})
    g.createVariable("enum", e, ("t", "x"), fill_value=0)[:] = np.arange(18).reshape(3, 6) % 2
    s = g.createVariable("texts", str, ("x",))
    s[:] = np.array(list("abcdef"), object)
    nc.createVariable("x", "f4", ("t", "x"), zlib=True)[:] = np.arange(18).reshape(3, 6)
    nc.createVariable("a1", "i4", ("t",))[:3] = [1, 2, 3]
    h = nc.createVariable("holes", "f4", ("t", "x"), chunksizes=(1, 6), zlib=True, fill_value=-1.)
    h[2] = 5.
    nc.createVariable("none", "f4", ("empty", "x"))
    c = nc.createCompoundType(np.dtype([("a", "i2"), ("b", "f8")], align=True), "c")
    nc.createVariable("pair", c, ("x",))[:] = np.zeros(6, np.dtype([("a", "i2"), ("b", "f8")], align=True))
    noncoord = nc.createVariable("empty", "i2", ("x",))
    noncoord[:] = np.arange(6)
"""

EQUAL = """
import sys, netCDF4, numpy as np
def same(a, b):
    if isinstance(a, np.ndarray) and a.dtype.names:
        return a.dtype.names == b.dtype.names and all(same(a[n], b[n]) for n in a.dtype.names)
    if isinstance(a, np.ndarray) and a.dtype.kind in "fiuS":
        return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return np.array_equal(np.asarray(a), np.asarray(b))
def compare(g, h, parts):
    assert list(g.variables) == list(h.variables) and list(g.groups) == list(h.groups)
    assert g.ncattrs() == h.ncattrs() and all(same(g.getncattr(n), h.getncattr(n)) for n in g.ncattrs())
    for name, v in g.variables.items():
        w = h[name]
        assert v.dimensions == w.dimensions and v.shape == w.shape, name
        assert v.ncattrs() == w.ncattrs() and all(same(v.getncattr(n), w.getncattr(n)) for n in v.ncattrs())
        assert same(v[...], w[...]), name
        for part in (np.s_[::2], np.s_[-1:], np.s_[..., 1:3], np.s_[1:4, ..., ::3]) if parts and v.ndim > 1 else ():
            assert same(v[part], w[part]), (name, part)
    for name in g.groups:
        compare(g[name], h[name], parts)
for pair in sys.argv[2:]:
    a, b = pair.split("=")
    with netCDF4.Dataset(a) as x, netCDF4.Dataset(b) as y:
        x.set_auto_maskandscale(False)
        y.set_auto_maskandscale(False)
        compare(x, y, sys.argv[1] == "parts")
print("equal")
"""

READ = """
import sys, netCDF4
with netCDF4.Dataset(sys.argv[1]) as nc:
    nc.set_auto_maskandscale(False)
    for name, v in nc.variables.items():
        if v.ndim > 1:
            v[...]
"""


def python(script, *arguments, check=True):
    return client(["/usr/bin/python3", "-c", script, *map(str, arguments)], check=check)


def make(site):
    folder = site.folder / "files"
    folder.mkdir()
    python(MAKE, folder)
    return folder







def test_values_stay_in_generated_files():
    with Site() as site:
        folder = make(site)
        told = json.loads(run([REF, "--json", folder, "esdm://files"]).stdout)
        odd = next(c for c in told["copies"] if c["source"].endswith("odd.nc"))
        expect(odd["referred"] == odd["datasets"] - 2, f"texts and pairs alone are copied: {odd}")
        names = sorted(p.name for p in folder.iterdir())
        python(EQUAL, "parts", *[f"{folder / n}=esdm://files/{n}" for n in names])
        # They are indeed read from there.
        (folder / "shuffle.nc").rename(folder / "gone")
        done = python(READ, "esdm://files/shuffle.nc", check=False)
        expect_error(done, "shuffle.nc")


def test_a_copy_needs_no_file_and_writes_go_to_esdm():
    with Site() as site:
        folder = make(site)
        run([REF, folder, "esdm://files"])
        run([CP, "esdm://files/deflate.nc", "esdm://own.nc"])
        python("""
import netCDF4
with netCDF4.Dataset("esdm://files/whole.nc", "a") as nc:
    nc["step_f4"][2, 1] = -5
with netCDF4.Dataset("esdm://files/whole.nc") as nc:
    v = nc["step_f4"][:]
    assert (v[2, 1] == -5).all() and v[2, 2, 0] == 2 * 45 + 18 and v[6, 4, 8] == 7 * 45 - 1
""")
        shutil.copy(folder / "deflate.nc", site.folder / "kept.nc")
        (folder / "deflate.nc").unlink()
        python(EQUAL, "parts", f"{site.folder / 'kept.nc'}=esdm://own.nc")
        expect_error(python(READ, "esdm://files/deflate.nc", check=False), "deflate.nc")


def test_changed_files_are_errors():
    with Site() as site:
        folder = make(site)
        run([REF, folder, "esdm://files"])
        for name in ("contiguous.nc", "shuffle.nc", "NETCDF3_CLASSIC-many.nc", "sum.nc"):
            path = folder / name
            whole = path.read_bytes()
            times = os.stat(path)
            for what in ("byte", "cut", "exchanged"):
                data = bytearray(whole)
                if what == "cut":
                    data = data[:-200]
                else:
                    for at in range(len(data) // 2, len(data), 11):
                        data[at] ^= 0x5a
                if what == "exchanged":
                    os.unlink(path)
                path.write_bytes(data)
                os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
                done = python(READ, f"esdm://files/{name}", check=False)
                expect(done.returncode != 0, f"{name}: {what} was not noticed")
            # The same bytes in another file: chunks with a checksum tell so.
            path.write_bytes(whole)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            done = python(READ, f"esdm://files/{name}", check=False)
            known = name in ("shuffle.nc", "sum.nc")
            expect((done.returncode == 0) == known, f"{name}: {done.stderr}")


def test_commits_do_not_need_coordinates_that_are_away():
    """The index of times and boxes cannot be made anew then: what it had stays, and data are committed."""
    with Site() as site:
        path = site.folder / "away.nc"
        python("""
import sys, netCDF4, numpy as np
with netCDF4.Dataset(sys.argv[1], "w", format="NETCDF3_CLASSIC") as nc:
    nc.createDimension("lat", 64)
    lat = nc.createVariable("lat", "f8", "lat")
    lat.units, lat.standard_name = "degrees_north", "latitude"
    lat[:] = np.linspace(-30, 30, 64)
    nc.createDimension("lon", 8)
    lon = nc.createVariable("lon", "f8", "lon")
    lon.units, lon.standard_name = "degrees_east", "longitude"
    lon[:] = np.arange(8)
    nc.createVariable("tas", "f4", ("lat", "lon"))[:] = 280
""", path)
        run([REF, path, "esdm://away.nc"])
        find, box = tool("esdm-find"), "box overlaps -10,-5,10,5"
        expect(run([find, "-c", box]).stdout == "away.nc\n", "the box is not known")
        path.unlink()
        run([tool("esdm-attr"), "--set", "comment=later", "away.nc"])
        python("""
import netCDF4
with netCDF4.Dataset("esdm://away.nc", "a") as nc:
    nc.createVariable("more", "f4", "lat")[:] = 3
with netCDF4.Dataset("esdm://away.nc") as nc:
    assert nc.comment == "later" and (nc["more"][:] == 3).all()
""")
        expect(run([find, "comment = later"]).stdout == "away.nc\n", "the attribute is not found")
        expect(run([find, "-c", box]).stdout == "away.nc\n", "the box is forgotten")


def test_a_file_that_was_cut_off_is_not_taken():
    with Site() as site:
        folder = make(site)
        path = folder / "NETCDF3_CLASSIC-many.nc"
        path.write_bytes(path.read_bytes()[:-200])
        done = run([REF, path, "esdm://cut/"], check=False)
        expect_error(done, "cut off", path.name)


DAMAGED = """
import sys, netCDF4
with netCDF4.Dataset(sys.argv[1], "w") as nc:
    nc.setncattr_string("history", "made")
    nc.createVariable("v", "f4")[...] = 1
data = open(sys.argv[1], "rb").read()
open(sys.argv[1], "wb").write(data.replace(b"GCOL", b"XCOL"))
"""


def test_files_that_crash_libnetcdf_do_not_end_a_scan():
    """libnetcdf 4.9.0 frees what it never had when it closes such a file."""
    with Site() as site:
        folder = site.folder / "archive"
        folder.mkdir()
        python(DAMAGED, folder / "bad0.nc")
        for n in range(1, 5):
            shutil.copy(folder / "bad0.nc", folder / f"bad{n}.nc")
        for n in range(4):
            python("import sys, netCDF4\nwith netCDF4.Dataset(sys.argv[1], 'w') as nc: nc.createVariable('v', 'f4')[...] = 1",
                   folder / f"good{n}.nc")
        done = run([REF, "-j", "2", folder, "esdm://archive"], check=False)
        expect(done.returncode == 1 and all(f"bad{n}.nc: " in done.stderr for n in range(5)), done.stderr)
        expect("no process was left" not in done.stderr, done.stderr)
        names = run([tool("esdm-ls")]).stdout.split()
        expect(names == [f"archive/good{n}.nc" for n in range(4)], f"{names}")


def set_roots(site, *roots):
    config = json.loads(site.config.read_text())
    config["references"] = {"roots": [str(r) for r in roots]}
    site.config.write_text(json.dumps(config))


def test_roots_limit_where_references_may_point():
    with Site() as site:
        folder = make(site)
        outside = site.folder / "outside"
        outside.mkdir()
        shutil.copy(folder / "contiguous.nc", outside / "other.nc")
        run([REF, folder, outside, "esdm://all/"])
        set_roots(site, folder)
        python(EQUAL, "parts", f"{folder / 'shuffle.nc'}=esdm://all/files/shuffle.nc")
        done = python(READ, "esdm://all/outside/other.nc", check=False)
        expect_error(done, "other.nc", "references.roots", "Permission denied")
        expect_error(run([REF, outside / "other.nc", "esdm://new.nc"], check=False), "other.nc", "references.roots")
        # A link within the directory does not lead out of it, and one to the directory counts.
        (folder / "link.nc").symlink_to(outside / "other.nc")
        expect_error(run([REF, folder / "link.nc", "esdm://new.nc"], check=False), "other.nc", "references.roots")
        (folder / "shuffle.nc").rename(outside / "shuffle.nc")
        (folder / "shuffle.nc").symlink_to(outside / "shuffle.nc")
        expect_error(python(READ, "esdm://all/files/shuffle.nc", check=False), "shuffle.nc", "references.roots")
        (site.folder / "alias").symlink_to(outside)
        set_roots(site, folder, site.folder / "alias")
        python(EQUAL, "parts", f"{outside / 'other.nc'}=esdm://all/outside/other.nc")
        set_roots(site)
        expect_error(python(READ, "esdm://all/outside/other.nc", check=False), "references.roots")
        config = json.loads(site.config.read_text())
        config["references"] = {"root": []}
        site.config.write_text(json.dumps(config))
        expect_error(run([tool("esdm-ls")], check=False), "references: unknown key", "roots")


def test_searches_tell_whose_ranges_nobody_knows():
    """max(tas) > 310 K over an archive found nothing, or a part, and was silent: files that are referred to have no
    statistics."""
    with Site() as site:
        folder = site.file("archive")
        folder.mkdir()
        for name, kelvin in (("hot", 320), ("cold", 250)):
            python("import netCDF4, sys\nwith netCDF4.Dataset(sys.argv[1], 'w') as d:\n    d.createDimension('x', 3)\n"
                   "    v = d.createVariable('tas', 'f4', ('x',)); v.units = 'K'; v[:] = float(sys.argv[2])",
                   str(folder / f"{name}.nc"), str(kelvin))
        told = run([REF, folder, "esdm://archive"]).stdout
        expect(told.startswith("2 referred to, 0 failed"), told)
        none = run([tool("esdm-find"), "max(tas) > 310 K"], check=False).stderr
        expect("nobody knows the range of 'tas'" in none and "is called" not in none and "did you mean" not in none, none)
        run([tool("esdm-cp"), folder / "hot.nc", "esdm://own.nc"])
        for options in ([], ["-c"], ["--columns", "units"]):
            done = run([tool("esdm-find"), *options, "max(tas) > 310 K"])
            expect("own.nc" in done.stdout and "hot.nc" not in done.stdout, done.stdout)
            expect("2 containers have 'tas', but nobody knows its range" in done.stderr, done.stderr)
        expect(run([tool("esdm-find"), "tas:units = K"]).stderr == "", "a warning for nothing")


def test_nothing_but_files_is_opened():
    with Site() as site:
        folder = make(site)
        path = folder / "contiguous.nc"
        run([REF, path, "esdm://c.nc"])
        path.unlink()
        os.mkfifo(path)
        expect_error(python(READ, "esdm://c.nc", check=False), "contiguous.nc", "no regular file", "Can't read")


def test_programs_and_fsck_name_file_and_chunk():
    with Site() as site:
        folder = make(site)
        run([REF, folder, "esdm://files"])
        fsck = tool("esdm-fsck")
        run([fsck])
        run([fsck, "--data"])
        path = folder / "shuffle.nc"
        whole = bytearray(path.read_bytes())
        path.write_bytes(whole + b"x")
        done = python(READ, "esdm://files/shuffle.nc", check=False)
        expect_error(done, "NetCDF: Can't read file", "shuffle.nc' was changed", "fragment [", "esdm-ref")
        done = run([fsck], check=False)
        expect_error(done, "shuffle.nc' was changed", "esdm-ref", "fragment [")
        # Bytes changed behind a restored time, in a chunk that has a checksum.
        times = os.stat(folder / "fletcher.nc")
        data = bytearray((folder / "fletcher.nc").read_bytes())
        path.write_bytes(whole)
        run([REF, "-f", path, "esdm://files/shuffle.nc"])
        run([fsck])
        for at in range(len(data) // 2, len(data)):
            data[at] ^= 0x5a
        (folder / "fletcher.nc").write_bytes(data)
        os.utime(folder / "fletcher.nc", ns=(times.st_atime_ns, times.st_mtime_ns))
        expect_error(run([fsck], check=False), "fletcher.nc", "checksum")
        (folder / "fletcher.nc").unlink()
        expect_error(run([fsck], check=False), "fletcher.nc", "No such file")


# Files are changed under a reader that has all of them open: each read gives old bytes, or fails.
MUTATE = """
import os, random, sys, netCDF4, numpy as np
folder, count = sys.argv[1], int(sys.argv[2])
rng = random.Random(4)
names = ["contiguous.nc", "chunked.nc", "deflate.nc", "shuffle.nc", "fletcher.nc", "sum.nc", "bigplain.nc",
         "NETCDF3_CLASSIC-many.nc", "NETCDF3_64BIT_DATA-fixed.nc"]
sources, handles, old = {}, {}, {}
for n in names:
    sources[n] = (open(f"{folder}/{n}", "rb").read(), os.stat(f"{folder}/{n}"))
    handles[n] = netCDF4.Dataset(f"esdm://files/{n}")
    handles[n].set_auto_maskandscale(False)
    old[n] = {v: handles[n][v][...] for v in handles[n].variables}
wrong, failed, same = [], 0, 0
for k in range(count):
    n = rng.choice(names)
    path = f"{folder}/{n}"
    whole, was = sources[n]
    data = bytearray(whole)
    what = rng.choice(["bytes", "cut", "longer", "swap", "zeros", "removed", "folder", "exchanged"])
    at = rng.randrange(len(data) // 4, len(data) - 64)
    if what in ("bytes", "exchanged"):
        for i in range(rng.choice([1, 1, 40])):
            data[(at + 7 * i) % len(data)] ^= 1 << rng.randrange(8)
    elif what == "cut":
        del data[at:]
    elif what == "longer":
        data[at:at] = b"12345678"
    elif what == "zeros":
        data[at:at + 64] = bytes(64)
    elif what == "swap":
        other = rng.randrange(len(data) // 4, len(data) - 64)
        data[at:at + 64], data[other:other + 64] = data[other:other + 64], data[at:at + 64]
    if what in ("removed", "folder", "exchanged") or not os.path.isfile(path):
        os.rmdir(path) if os.path.isdir(path) else os.path.exists(path) and os.unlink(path)
    if what == "folder":
        os.mkdir(path)
    elif what != "removed":
        with open(path, "r+b" if os.path.exists(path) else "wb") as f:
            f.truncate(len(data))
            f.write(data)
        if rng.random() < .8:
            os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
    v = rng.choice(list(old[n]))
    h = handles[n]
    if k % 3 == 0:  # and one that was opened after it
        try:
            h = netCDF4.Dataset(f"esdm://files/{n}")
            h.set_auto_maskandscale(False)
        except OSError as e:
            wrong.append(f"{k}: {n} cannot be opened: {e}")
            continue
    try:
        values = h[v][...]
        same += 1
        if values.tobytes() != old[n][v].tobytes():
            wrong.append(f"{k}: {n} {v}: other values after '{what}' at {at}")
    except (OSError, RuntimeError):
        failed += 1
    if h is not handles[n]:
        h.close()
print(f"{count} changes: {failed} errors, {same} reads of old bytes")
print("\\n".join(wrong))
sys.exit(bool(wrong) or failed < count // 10)
"""


def test_sources_that_change_under_readers():
    with Site() as site:
        folder = make(site)
        run([REF, folder, "esdm://files"])
        done = python(MUTATE, folder, by_size(200, 400, 5000))
        lines = [line for line in done.stderr.splitlines() if line.startswith("esdm:")]
        expect(lines and all("fragment [" in line and f"{folder}/" in line for line in lines),
               f"not all messages name file and chunk: {done.stderr}")


LARGE = """
import sys, netCDF4, numpy as np
values = np.random.default_rng(2).integers(0, 255, (40, 200, 260), "u1").astype("f4") / 7
for form, name in (("NETCDF4", "c.nc"), ("NETCDF3_64BIT_OFFSET", "r.nc")):
    with netCDF4.Dataset(f"{sys.argv[1]}/{name}", "w", format=form) as nc:
        nc.createDimension("t", None if name == "r.nc" else 40)
        nc.createDimension("y", 200)
        nc.createDimension("x", 260)
        fixed = dict(contiguous=True) if name == "c.nc" else {}
        for v in ("a", "b"):
            nc.createVariable(v, "f4", ("t", "y", "x"), **fixed)[:] = values
"""


def test_large_plain_variables_are_read_by_several_threads():
    """In parts; from a disk, by one thread in order: the same values."""
    with Site(engine={"threads": 3}) as site:
        folder = site.folder / "files"
        folder.mkdir()
        python(LARGE, folder)
        run([REF, "-q", folder, "esdm://files"])
        pairs = [f"{folder / n}=esdm://files/{n}" for n in ("c.nc", "r.nc")]
        python(EQUAL, "parts", *pairs)
        for n in ("c.nc", "r.nc"):
            with open(folder / n, "rb") as f:
                os.fsync(f.fileno())
                os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        python(EQUAL, "parts", *pairs)


SUM = """
import sys, netCDF4
with netCDF4.Dataset(sys.argv[1]) as nc:
    nc.set_auto_maskandscale(False)
    print(nc["a"][...].tobytes() == nc["b"][...].tobytes())
"""


def test_long_ranges_are_read_with_one_call_after_two_small_ones():
    """The kernel reads ahead in aligned steps that grow only where the first calls are small ones (tests/bench/README.md)."""
    need_program("strace")
    with Site(engine={"threads": 1}) as site:
        folder = site.folder / "files"
        folder.mkdir()
        python(LARGE, folder)
        run([REF, "-q", folder / "c.nc", "esdm://files/"])
        log = site.folder / "calls"
        told = client(["/usr/bin/python3", "-c", SUM, "esdm://files/c.nc"],
                      prefix=["strace", "-f", "-qq", "-y", "-o", log, "-e", "trace=pread64,preadv2"]).stdout
        expect(told == "True\n", told)
        lines = [line for line in log.read_text().splitlines() if "/files/c.nc>" in line and " pread64(" in line]
        calls = [(int(line.rsplit(", ", 1)[1].split(")")[0]), int(line.rsplit(" = ", 1)[1])) for line in lines]
        bytes_of_one = 40 * 200 * 260 * 4
        begins = [at for at, n in calls if n > 1]
        expect(len(begins) == 2 and calls == [c for at in begins for c in ((at, 1), (at + os.sysconf("SC_PAGE_SIZE"), 1), (at, bytes_of_one))], f"{lines}")


def test_real_files():
    data = need_data("cmip6")
    files = sorted(data.rglob("*.nc"))
    files = some(files, len(files) // by_size(12, 6, 1))
    with Site() as site:
        folder = site.folder / "links"
        folder.mkdir()
        for f in files:
            os.symlink(f, folder / f.name)
        before = sum(p.stat().st_size for p in site.pack_files())
        run([REF, "-q", *files, "esdm://cmip6/"])
        python(EQUAL, "whole", *[f"{f}=esdm://cmip6/{f.name}" for f in files])
        expect(sum(p.stat().st_size for p in site.pack_files()) - before < 1 << 20, "values were copied")


if __name__ == "__main__":
    sys.exit(main(test_values_stay_in_generated_files, test_a_copy_needs_no_file_and_writes_go_to_esdm,
                  test_changed_files_are_errors, test_roots_limit_where_references_may_point,
                  test_searches_tell_whose_ranges_nobody_knows,
                  test_nothing_but_files_is_opened, test_programs_and_fsck_name_file_and_chunk,
                  test_large_plain_variables_are_read_by_several_threads, test_long_ranges_are_read_with_one_call_after_two_small_ones,
                  test_sources_that_change_under_readers, test_commits_do_not_need_coordinates_that_are_away,
                  test_a_file_that_was_cut_off_is_not_taken, test_files_that_crash_libnetcdf_do_not_end_a_scan,
                  test_real_files))
