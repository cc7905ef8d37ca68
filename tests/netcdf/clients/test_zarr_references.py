#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-ref of Zarr stores that zarr-python and xarray wrote, version 2 and 3: containers equal what
zarr-python and xarray read; chunks stay where they are; what changes under readers is an error; what
has no meaning in NetCDF is an error that names the array."""

import json
import shutil
import sys

from clients import python_of
from esdmtest import Site, by_size, client, expect, expect_error, main, need_data, run, some, tool

REF = tool("esdm-ref")

IMPORTS = """
import sys, warnings
warnings.simplefilter("ignore")
import json, numpy as np, numcodecs, zarr, os, shutil, glob
from zarr.codecs import BytesCodec, GzipCodec, ZstdCodec, BloscCodec, Crc32cCodec, TransposeCodec, ShardingCodec
folder = sys.argv[1]
rng = np.random.default_rng(3)
smooth = np.cumsum(rng.normal(size=(7, 21, 40)), axis=2)
"""

# One store of each version with many arrays; some chunks are missing.
MAKE = """
def fill(a, dtype):
    kind = np.dtype(dtype).kind
    data = smooth[:, :a.shape[1], :a.shape[2]]
    a[...] = (data * 100).astype(dtype) if kind in "iu" else (data > 0) if kind == "b" else data.astype(dtype)
def two(name, dtype, chunks=(2, 10, 17), **more):
    a = g2.create_array(name, shape=smooth.shape, dtype=dtype, chunks=chunks, **more)
    a.attrs["_ARRAY_DIMENSIONS"] = ["t", "y", "x"]
    fill(a, dtype)
    return a
g2 = zarr.open_group(f"{folder}/two.zarr", mode="w", zarr_format=2)
g2.attrs.update(title="zwei", numbers=[1, 2, 3], real=2.5, big=2**40, flag=True, names=["a", "b"], nan=float("nan"),
                nested={"a": [1]}, nothing=None)
for t in ("i1", "u1", "<i2", ">i2", "<u2", "<i4", ">u4", "<i8", ">i8", "<u8", "<f4", ">f4", "<f8", ">f8", "|b1"):
    two("type_" + t.strip("<>|") + ("_big" if ">" in t else ""), t, compressors=None)
    two("zip_" + t.strip("<>|") + ("_big" if ">" in t else ""), t, compressors=numcodecs.Zlib(3))
for n, c in dict(gzip=numcodecs.GZip(5), zlib=numcodecs.Zlib(1), zstd=numcodecs.Zstd(3), lz4=numcodecs.LZ4()).items():
    two(n, "<f4", compressors=c)
    two(n + "_fortran", "<f8", compressors=c, order="F", chunks=(3, 5, 40))
for c in numcodecs.blosc.list_compressors():
    for s in (0, 1, 2):
        for t in ("<f4", "<i2", "|u1", "<f8"):
            two(f"blosc_{c}_{s}_{t[1:]}", t, compressors=numcodecs.Blosc(c, 5, s))
        two(f"blosc_large_{c}_{s}", "<f4", chunks=(7, 21, 40), compressors=numcodecs.Blosc(c, 5, s, blocksize=2048))
two("delta", "<i4", filters=[numcodecs.Delta("<i4")], compressors=numcodecs.Zlib(1))
two("delta_f", "<f4", filters=[numcodecs.Delta("<f4")], compressors=numcodecs.Zlib(1))
two("shuffled", "<f4", filters=[numcodecs.Shuffle(4)], compressors=numcodecs.Zlib(1))
two("rounded", "<f4", filters=[numcodecs.BitRound(8)], compressors=numcodecs.Zstd(1))
two("sums", "<f4", filters=[numcodecs.Fletcher32()], compressors=None)
two("crc", "<f4", filters=None, compressors=numcodecs.CRC32())
a = g2.create_array("nested/slash", shape=smooth.shape, dtype="<f4", chunks=(2, 10, 17), chunk_key_encoding=dict(name="v2", separator="/"))
a.attrs["_ARRAY_DIMENSIONS"] = ["t", "y", "x"]
a[...] = smooth.astype("f4")
holes = g2.create_array("holes", shape=smooth.shape, dtype="<f4", chunks=(2, 10, 17), fill_value=-5)
holes.attrs["_ARRAY_DIMENSIONS"] = ["t", "y", "x"]
holes[2:4, :10] = smooth[2:4, :10].astype("f4")
for n, v, t in (("nan", float("nan"), "f4"), ("inf", float("-inf"), "f8"), ("most", 2**64 - 1, "u8"), ("least", -2**63, "i8")):
    a = g2.create_array("fill_" + n, shape=(5,), dtype=t, chunks=(2,), fill_value=v)
    a.attrs["_ARRAY_DIMENSIONS"] = ["five"]
    a[2:4] = [1, 2]
for n, d in (("one", "S1"), ("five", "S5"), ("wide", "<U6"), ("wide_big", ">U6")):
    a = g2.create_array("text_" + n, shape=(5,), dtype=d, chunks=(3,))
    a[...] = np.array(["a", "bcd", "", "xyz12", "q"] if n != "wide" else ["a", "b\\u00e4d", "", "\\u20ac", "q"], d)
a = g2.create_array("text_any", shape=(5,), dtype=str, chunks=(2,))
a[:3] = np.array(["a", "b\\u00e4d", "c"], object)
a = g2.create_array("scalar", shape=(), dtype="f8")
a[...] = 2.5
g2.create_array("empty", shape=(0, 4), dtype="f4", chunks=(1, 4))

g3 = zarr.open_group(f"{folder}/three.zarr", mode="w", zarr_format=3)
g3.attrs.update(title="drei", numbers=[1, 2, 3], real=2.5, names=["a", "b"])
def three(name, dtype, chunks=(2, 10, 17), **more):
    a = g3.create_array(name, shape=smooth.shape, dtype=dtype, chunks=chunks, dimension_names=["t", "y", "x"], **more)
    fill(a, dtype)
for t in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64", "bool"):
    three("type_" + t, t, compressors=None)
    three("big_" + t, t, serializer=BytesCodec(endian="big") if t not in ("int8", "uint8", "bool") else "auto",
          compressors=GzipCodec())
for n, c in dict(gzip=[GzipCodec()], zstd=[ZstdCodec()], zstd_sum=[ZstdCodec(checksum=True)], crc=[Crc32cCodec()],
                 both=[GzipCodec(), Crc32cCodec()], blosc=[BloscCodec(cname="lz4")], none=None,
                 twice=[GzipCodec(), ZstdCodec()]).items():
    three(n, "float32", compressors=c)
    three(n + "_turned", "float64", filters=[TransposeCodec(order=(2, 0, 1))], compressors=c, chunks=(3, 5, 40))
    three(n + "_shard", "float32", shards=(4, 20, 34), compressors=c)
for c in ("lz4", "lz4hc", "zstd", "zlib", "blosclz", "snappy"):
    for s in ("noshuffle", "shuffle", "bitshuffle"):
        try:
            three(f"blosc_{c}_{s}", "float32", compressors=[BloscCodec(cname=c, shuffle=s)])
        except Exception as e:
            assert c == "snappy", e
            if f"blosc_{c}_{s}" in g3:
                del g3[f"blosc_{c}_{s}"]
g3.create_array("dotted", shape=(5, 5), chunks=(2, 2), dtype="i4", chunk_key_encoding=dict(name="default", separator="."))[...] = 3
g3.create_array("flat", shape=(5, 5), chunks=(2, 2), dtype="i4", chunk_key_encoding=dict(name="v2", separator="."))[...] = 4
start = zarr.create(store=f"{folder}/three.zarr/start", shape=(9, 12), chunks=(6, 8), dtype="f4", zarr_format=3, fill_value=7,
    dimension_names=["p", "q"], codecs=[ShardingCodec(chunk_shape=(3, 4), codecs=[BytesCodec(), GzipCodec()], index_location="start")])
start[0:3, 0:4] = 1.5
start[6:, 8:] = np.arange(12).reshape(3, 4)
inner = zarr.create(store=f"{folder}/three.zarr/turned_inside", shape=(9, 12), chunks=(6, 8), dtype="i2", zarr_format=3,
    dimension_names=["p", "q"], codecs=[ShardingCodec(chunk_shape=(3, 4), codecs=[TransposeCodec(order=(1, 0)), BytesCodec(endian="big"), ZstdCodec()])])
inner[...] = np.arange(108).reshape(9, 12)
h = g3.create_array("holes", shape=smooth.shape, dtype="f4", chunks=(2, 10, 17), fill_value=-5, dimension_names=["t", "y", "x"])
h[2:4, :10] = smooth[2:4, :10].astype("f4")
h = g3.create_array("shard_holes", shape=smooth.shape, dtype="f4", chunks=(1, 5, 10), shards=(2, 10, 20), fill_value=np.nan, dimension_names=["t", "y", "x"])
h[2:3, :5] = 3
s = g3.create_group("deep/er", attributes=dict(level=2))
s.create_array("own", shape=(4,), chunks=(4,), dtype="i2", dimension_names=["x"])[:] = [1, 2, 3, 4]
s.create_array("shared", shape=(7,), chunks=(4,), dtype="i2", dimension_names=["t"])[:] = np.arange(7)
for n, d in (("five", "S5"), ("wide", "<U6")):
    g3.create_array("text_" + n, shape=(5,), dtype=d, chunks=(3,))[...] = np.array(["a", "bcd", "", "xyz12", "q"], d)
g3.create_array("text_any", shape=(5,), dtype=str, chunks=(2,))[:3] = np.array(["a", "b\\u00e4d", "c"], object)
for version in ("two", "three"):
    shutil.copytree(f"{folder}/{version}.zarr", f"{folder}/{version}_all.zarr")
    zarr.consolidate_metadata(f"{folder}/{version}_all.zarr")
"""

# Arrays as zarr-python reads them, and as netCDF4 does through ESDM.
EQUAL = """
import netCDF4
count = 0
def texts(v):
    return [str(x).rstrip("\\0") for x in np.asarray(v).ravel().tolist()]
def compare(array, v, name):
    global count
    z = array[...]
    v.set_auto_maskandscale(False)
    v.set_auto_chartostring(False)
    e = v[...]
    if z.dtype.kind == "S" and z.dtype.itemsize > 1:
        assert e.shape == z.shape + (z.dtype.itemsize,) and e.tobytes() == z.tobytes(), name
    elif z.dtype.kind in "UOT":
        assert texts(e) == texts(z), (name, texts(e), texts(z))
    elif z.dtype.kind == "b":
        assert v.dtype == np.int8 and (e == z).all(), name
    else:
        assert e.shape == z.shape and v.dtype == z.dtype.newbyteorder("="), (name, e.dtype, z.dtype)
        assert e.tobytes() == z.astype(v.dtype).tobytes(), name
        for part in (np.s_[1:6:2, ::3, 5:], np.s_[-1], np.s_[:, 9:11, 16:18]) if z.ndim == 3 else ():
            assert v[part].tobytes() == z[part].astype(v.dtype).tobytes(), (name, part)
    count += 1
for store in sys.argv[2:]:
    g = zarr.open_group(f"{folder}/{store}", mode="r")
    with netCDF4.Dataset(f"esdm://z/{store}") as nc:
        for path, array in sorted(g.members(max_depth=None)):
            if isinstance(array, zarr.Array):
                compare(array, nc[path], f"{store}/{path}")
            else:
                assert set(array.attrs) == set(nc[path].ncattrs()), path
        assert nc.title == g.attrs["title"] and list(nc.numbers) == [1, 2, 3] and nc.real == 2.5
        assert list(nc.names) == ["a", "b"], nc.names
        if store.startswith("two"):
            assert nc.big == 2**40 and nc.flag == 1 and np.isnan(nc.nan) and nc.nested == '{"a":[1]}'
            assert nc["holes"]._FillValue == -5 and "_FillValue" in nc["fill_nan"].ncattrs()
        else:
            assert nc["deep/er"].level == 2 and "_FillValue" not in nc["holes"].ncattrs()
            assert nc["deep/er/shared"].get_dims()[0].group().name == "/" and nc["deep/er/own"].shape == (4,)
print("equal:", count)
"""


def python(script, *arguments, check=True, esdm=True):
    command = [python_of("zarr"), "-c", IMPORTS + script, *map(str, arguments)]
    return client(command, check=check) if esdm else run(command)


def make(site):
    folder = site.folder / "stores"
    folder.mkdir()
    python(MAKE, folder, esdm=False)
    return folder


def test_stores_of_zarr_python():
    with Site() as site:
        folder = make(site)
        names = sorted(p.name for p in folder.iterdir())
        expect(len(names) == 4, f"stores: {names}")
        told = json.loads(run([REF, "--json", folder, "esdm://z"]).stdout)
        for copy in told["copies"]:
            texts = 3 if "two" in copy["source"] else 2
            expect(copy["datasets"] - copy["referred"] == texts, f"texts alone are copied: {copy}")
        done = python(EQUAL, folder, *names)
        expect(int(done.stdout.split(":")[1]) > 300, done.stdout)
        # Also as copies, which ESDM's own reader of stores makes, and compared with it.
        run([tool("esdm-cp"), folder / "three.zarr", "esdm://copy.nc"])
        run([REF, "-f", "--verify", folder / "two.zarr", "esdm://z/two.zarr"])
        # They are indeed read from there.
        (folder / "three.zarr/zstd/c").rename(folder / "away")
        script = "import netCDF4\nnetCDF4.Dataset('esdm://z/three.zarr')['zstd'][...]"
        expect_error(python(script, folder, check=False), "zstd/c/0/0/0", "fragment [")


REAL = """
import xarray as xr
source = sys.argv[2]
ds = xr.open_dataset(source, decode_times=False)
n = os.path.basename(source)[:-3]
for version in (2, 3):
    for v in ds.variables.values():
        for k in ("chunksizes", "zlib", "shuffle", "complevel", "fletcher32", "contiguous", "original_shape", "source",
                  "preferred_chunks", "szip", "zstd", "bzip2", "blosc", "unlimited_dims"):
            v.encoding.pop(k, None)
    ds.to_zarr(f"{folder}/{n}-{version}.zarr", zarr_format=version, mode="w", consolidated=version == 2)
"""

SAME = """
import xarray as xr
for store in sys.argv[2:]:
    for decode in (False, True):
        a = xr.open_zarr(f"{folder}/{store}", decode_times=decode)
        b = xr.open_dataset(f"esdm://real/{store}", decode_times=decode, engine="netcdf4")
        xr.testing.assert_equal(a, b)
        for name in a.variables:
            x, y = a[name].attrs, b[name].attrs
            x, y = ({k: v for k, v in d.items() if k not in ("_FillValue", "missing_value")} for d in (x, y))
            assert set(x) == set(y), (name, set(x) ^ set(y))
            for k in x:
                assert np.array_equal(x[k], y[k]), (name, k, x[k], y[k])
            assert a[name].dims == b[name].dims
        assert {k: v for k, v in a.attrs.items()}.keys() == b.attrs.keys()
print("same")
"""


def test_real_fields_of_xarray():
    data = need_data("fields")
    files = some(sorted(data.glob("*.nc"), key=lambda p: p.stat().st_size)[:by_size(8, 8, 13)], by_size(2, 4, 13))
    with Site() as site:
        folder = site.folder / "real"
        folder.mkdir()
        for file in files:
            python(REAL, folder, file, esdm=False)
        before = sum(p.stat().st_size for p in site.pack_files())
        run([REF, "-q", folder, "esdm://real"])
        expect(sum(p.stat().st_size for p in site.pack_files()) - before < 1 << 20, "values were copied")
        python(SAME, folder, *sorted(p.name for p in folder.iterdir()))


# What has no meaning, or cannot be undone: an error that names the array and why.
WRONG = """
g = zarr.open_group(f"{folder}/bad.zarr", mode="w", zarr_format=2)
a = g.create_array("bad", shape=(4,), chunks=(2,), **eval(sys.argv[2]))
if a.dtype.fields is None:
    a[...] = np.ones(4, a.dtype)
"""


def test_what_cannot_be_referred_to_is_named():
    with Site() as site:
        folder = site.folder
        for what, *words in (("dict(dtype='c8')", "<c8"), ("dict(dtype='<f2')", "<f2"),
                             ("dict(dtype=[('a', 'i4')])", "structures"), ("dict(dtype='<M8[ns]')", "M8"),
                             ("dict(dtype='f4', compressors=numcodecs.BZ2())", "bz2"),
                             ("dict(dtype='f4', filters=[numcodecs.FixedScaleOffset(0, 10, 'f4', 'i2')])",
                              "fixedscaleoffset")):
            python(WRONG, folder, what, esdm=False)
            done = run([REF, folder / "bad.zarr", "esdm://bad"], check=False)
            expect_error(done, "array '/bad'", *words)
        (folder / "bad.zarr/.zgroup").write_text("{")
        for name in (".zarray", ".zattrs"):
            (folder / "bad.zarr/bad" / name).unlink(missing_ok=True)
        expect_error(run([REF, folder / "bad.zarr", "esdm://bad"], check=False), ".zgroup", "JSON")
        shutil.rmtree(folder / "bad.zarr")


# Objects of a store are changed under readers: each read gives old bytes, or fails.
MUTATE = """
import netCDF4, random
count = int(sys.argv[2])
rng = random.Random(5)
names = ["gzip", "zstd", "crc", "none", "blosc", "none_shard", "gzip_shard", "crc_shard", "both", "twice_turned", "holes"]
nc = netCDF4.Dataset("esdm://z/three.zarr")
old, sources = {}, {}
for n in names:
    nc[n].set_auto_maskandscale(False)
    old[n] = nc[n][...]
    for path in glob.glob(f"{folder}/three.zarr/{n}/c/*/*/*"):
        sources[path] = (n, open(path, "rb").read(), os.stat(path))
paths = sorted(sources)
failed = same = 0
for k in range(count):
    path = rng.choice(paths)
    n, whole, was = sources[path]
    data = bytearray(whole)
    what = rng.choice(["bytes", "cut", "longer", "other", "zeros", "removed", "folder", "exchanged"])
    at = rng.randrange(len(data))
    if what in ("bytes", "exchanged"):
        for i in range(rng.choice([1, 1, 30])):
            data[(at + 7 * i) % len(data)] ^= 1 << rng.randrange(8)
    elif what == "cut":
        del data[at:]
    elif what == "longer":
        data[at:at] = b"12345678"
    elif what == "zeros":
        data[at:at + 40] = bytes(len(data[at:at + 40]))
    elif what == "other":
        data = bytearray(sources[rng.choice([p for p in paths if sources[p][0] == n])][1])
    if os.path.isdir(path):
        os.rmdir(path)
    elif what in ("removed", "folder", "exchanged") and os.path.exists(path):
        os.unlink(path)
    if what == "folder":
        os.mkdir(path)
    elif what != "removed":
        with open(path, "r+b" if os.path.exists(path) else "wb") as f:
            f.truncate(len(data))
            f.write(data)
        if rng.random() < .8:
            os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
    h = nc
    if k % 3 == 0:
        h = netCDF4.Dataset("esdm://z/three.zarr")
    h[n].set_auto_maskandscale(False)
    try:
        assert h[n][...].tobytes() == old[n].tobytes(), f"{k}: {path}: other values after '{what}' at {at}"
        same += 1
    except (OSError, RuntimeError):
        failed += 1
    if k % 2 == 0:  # some again as they were: the same bytes, with a checksum or not
        if os.path.isdir(path):
            os.rmdir(path)
        open(path, "wb").write(whole)
        os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
print(f"{count} changes: {failed} errors, {same} reads of old bytes")
assert failed > count // 4 and same > 0
"""


def test_objects_that_change_under_readers():
    with Site() as site:
        folder = make(site)
        run([REF, folder, "esdm://z"])
        done = python(MUTATE, folder, by_size(150, 400, 5000))
        lines = [line for line in done.stderr.splitlines() if line.startswith("esdm:")]
        expect(lines and all("fragment [" in line and "three.zarr/" in line for line in lines),
               f"not all messages name file and chunk: {done.stderr}")


if __name__ == "__main__":
    sys.exit(main(test_stores_of_zarr_python, test_real_fields_of_xarray, test_what_cannot_be_referred_to_is_named,
                  test_objects_that_change_under_readers))
