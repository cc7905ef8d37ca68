#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm_reduce_weighted() and esdm_histogram() against numpy: missing values, packed numbers, several fragments, boxes
that cut these, one thread and several. esdm-reduce against numpy and cdo."""

import json

from esdmtest import BUILD, Site, client, expect, expect_error, main, need_data, need_program, run, tool

REDUCE = tool("esdm-reduce")

MAKE = """
import netCDF4, numpy as np
rng = np.random.default_rng(3)
with netCDF4.Dataset("esdm://w.nc", "w") as nc:
    for name, n in (("time", None), ("lat", 70), ("lon", 144)):
        nc.createDimension(name, n)
    lat = nc.createVariable("lat", "f8", ("lat",)); lat.units = "degrees_north"
    lon = nc.createVariable("lon", "f8", ("lon",)); lon.units = "degrees_east"
    lat[:] = np.linspace(-88.7, 88.7, 70) ; lon[:] = np.arange(144) * 2.5
    area = nc.createVariable("areacella", "f4", ("lat", "lon"), fill_value=1e20)
    a = rng.random((70, 144)).astype("f4") * 1e9; a[3, 4:9] = 1e20
    area[:] = np.ma.masked_equal(a, np.float32(1e20))
    v = nc.createVariable("v", "f4", ("time", "lat", "lon"), fill_value=-999., chunksizes=(2, 23, 50))
    p = nc.createVariable("p", "i2", ("time", "lat", "lon"), fill_value=-32767, zlib=True)
    p.scale_factor = 0.01; p.add_offset = 273.15
    n = nc.createVariable("n", "i2", ("time", "lat", "lon"))
    n.scale_factor = -0.5; n.add_offset = 3.
    d = nc.createVariable("d", "f8", ("time", "lat", "lon"), fill_value=float("nan"))
    s = nc.createVariable("step", "f4", ("time", "lat", "lon"))
    for t in range(11):
        x = rng.normal(size=(70, 144)).astype("f4") + t
        x[rng.random(x.shape) < 0.1] = -999.
        v[t] = np.ma.masked_equal(x, -999.) if t != 6 else np.ma.masked_all(x.shape)
        p.set_auto_maskandscale(False); p[t] = rng.integers(-300, 300, x.shape)
        n.set_auto_maskandscale(False); n[t] = rng.integers(-9, 9, x.shape)
        y = x.astype("f8"); y[x == -999.] = float("nan"); y[0, 0] = float("inf"); d[t] = y
        s[t] = rng.random(x.shape) + t
        nc.sync()
    v[4:6, 10:30, 7:90] = 2.5
"""

# Runs in a process with libesdm: values by esdm_read of netCDF4, results by the C functions.
COMPARE = """
import ctypes, sys, os
import netCDF4, numpy as np
lib = ctypes.CDLL(sys.argv[1])
P = ctypes.c_void_p
err = ctypes.create_string_buffer(8192)
for name in ("esdm_container_root", "esdm_group_dataset_find"):
    getattr(lib, name).restype = P
class Rest(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint64) for n in ("below", "above", "missing", "read")]

def ok(status):
    assert status == 0, (status, err.raw[:400])

session, container = P(), P()
ok(lib.esdm_session_open(None, ctypes.byref(session), err))
ok(lib.esdm_container_open(session, b"w.nc", 0, ctypes.c_uint64(LATEST), ctypes.byref(container), err))
root = P(lib.esdm_container_root(container))

def dataset(name):
    return P(lib.esdm_group_dataset_find(root, name.encode()))

def space(box):
    s = ctypes.create_string_buffer(8192)
    n = len(box)
    lo = (ctypes.c_uint64 * n)(*[b[0] for b in box]); size = (ctypes.c_uint64 * n)(*[b[1] - b[0] for b in box])
    ok(lib.esdm_dataspace_init(s, n, lo, size, err))
    return s

def weighted(name, box, over, axes, weights, what):
    shape = [b[1] - b[0] for b, o in zip(box, over) if not o]
    values, sums = np.empty(shape), np.empty(shape)
    weights = np.ascontiguousarray(weights, "f8")
    flags = lambda f: (ctypes.c_bool * 3)(*f)
    status = lib.esdm_reduce_weighted(dataset(name), space(box), flags(over), what, flags(axes), P(weights.ctypes.data),
                                      P(values.ctypes.data), P(sums.ctypes.data), err)
    return status, values, sums

def histogram(name, box, edges):
    edges = np.array(edges, "f8"); counts = np.zeros(max(1, len(edges) - 1), "u8"); rest = Rest()
    status = lib.esdm_histogram(dataset(name), space(box) if box else None, P(edges.ctypes.data), ctypes.c_size_t(len(edges)),
                                P(counts.ctypes.data), ctypes.byref(rest), err)
    return status, counts, rest

truth = {}
with netCDF4.Dataset("esdm://w.nc") as nc:
    nc.set_auto_maskandscale(False)
    for name, fill in (("v", -999.), ("p", -32767), ("n", -32767), ("d", None), ("step", None)):
        x = nc[name][:]
        truth[name] = np.ma.masked_array(x.astype("f8"), (x == fill) if fill is not None else np.isnan(x))
rng = np.random.default_rng(5)
out = []
boxes = [[(0, 11), (0, 70), (0, 144)], [(1, 10), (5, 69), (3, 101)], [(4, 5), (0, 70), (0, 144)], [(3, 9), (11, 12), (40, 144)],
         [(0, 11), (7, 60), (9, 10)]]
for name, x in truth.items():
    for box in boxes:
        part = x[tuple(slice(*b) for b in box)]
        for over in range(8):
            for axes in range(8) if box is boxes[1] else (over, 7 - over):
                over_axes = [bool(over & 4), bool(over & 2), bool(over & 1)]
                weight_axes = [bool(axes & 4), bool(axes & 2), bool(axes & 1)]
                w = rng.random([n for n, a in zip(part.shape, weight_axes) if a]); w[w < 0.1] = 0
                full = np.broadcast_to(w.reshape([n if a else 1 for n, a in zip(part.shape, weight_axes)]), part.shape)
                full = np.where(part.mask, 0, full)
                along = tuple(d for d in range(3) if over_axes[d])
                product = np.where(full > 0, part.filled(0) * np.where(full > 0, full, 1), 0)
                total, sums = product.sum(along), full.sum(along)
                size = np.abs(product).sum(along)
                for what in (1, 2):
                    status, values, got = weighted(name, box, over_axes, weight_axes, w, what)
                    ok(status)
                    with np.errstate(all="ignore"):
                        wanted = np.where(sums > 0, total / (sums if what == 2 else 1), np.nan)
                        limit = 1e-11 * size / (sums if what == 2 else 1)
                        near = (values == wanted) | (np.abs(values - wanted) <= limit) | (np.isnan(values) & np.isnan(wanted))
                    assert near.all(), (name, box, over_axes, weight_axes, what, values[~near][:3], wanted[~near][:3])
                    assert np.allclose(got, sums, rtol=1e-12, atol=0), (name, box, over_axes, weight_axes)
                    out.append(values.tobytes()); out.append(got.tobytes())
        for edges in ([-2, -1, 0, 0.5, 2.5, 7], np.linspace(-3, 12, 151), [2.5, np.inf], [-np.inf, 0, 1e-3], np.linspace(-300, 299, 7),
                      [2.5, np.nextafter(2.5, 3)], np.cumsum(rng.random(40)) / 3):
            status, counts, rest = histogram(name, box, edges)
            ok(status)
            valid = part.compressed()
            wanted = np.histogram(valid, np.array(edges))[0]
            assert (counts == wanted).all(), (name, box, edges, counts, wanted)
            assert rest.below == (valid < edges[0]).sum() and rest.above == (valid > edges[-1]).sum(), (name, rest.below, rest.above)
            assert rest.missing == part.mask.sum() and rest.read <= part.size
            out.append(counts.tobytes())
# Fragments that lie whole in one interval are not read: each step's values are in [t, t+1).
one = 70 * 144
status, counts, rest = histogram("step", None, np.arange(12.))
ok(status)
assert (counts == one).all() and rest.read == 0, (counts, rest.read)
status, counts, rest = histogram("step", None, [0, 1, 2, 2.5, 3, 11])
ok(status)
assert rest.read == one and counts.tolist()[:2] == [one, one] and counts.sum() == 11 * one, (counts, rest.read)
status, counts, rest = histogram("step", [(0, 11), (0, 69), (0, 144)], np.arange(12.))
ok(status)
assert rest.read == 11 * 69 * 144 and (counts == 69 * 144).all(), rest.read
box = boxes[0]
for bad in (-1., float("nan"), float("inf")):
    w = np.ones(70); w[9] = bad
    status, _, _ = weighted("v", box, [False, True, True], [False, True, False], w, 2)
    assert status == 1 and b"weight 9" in err.raw, err.raw[:200]
assert weighted("v", box, [False, True, True], [False, True, False], np.ones(70), 6)[0] == 1
for bad in ([1, 1], [2, 1], [1], [0, float("nan")]):
    assert histogram("v", None, bad)[0] == 1, bad
import hashlib
print(hashlib.sha256(b"".join(out)).hexdigest())
lib.esdm_container_discard(container)
lib.esdm_session_close(session)
"""

NUMPY = """
import json, sys, netCDF4, numpy as np
with netCDF4.Dataset("esdm://w.nc") as nc:
    x = nc[sys.argv[1]][:].astype("f8")
    edges = np.array(json.loads(sys.argv[2]))
    valid = x.compressed() if np.ma.isMaskedArray(x) else x.ravel()
    w = np.broadcast_to(nc["areacella"][:].astype("f8").filled(0), x.shape)
    m = np.ma.average(np.ma.asarray(x), axis=(1, 2), weights=w)
    lat = nc["lat"][:]
    edges_of = np.concatenate([[-90.], (lat[1:] + lat[:-1]) / 2, [90.]])
    exact = np.broadcast_to(np.diff(np.sin(np.radians(edges_of)))[:, None], x.shape)
    e = np.ma.average(np.ma.asarray(x), axis=(1, 2), weights=exact)
    print(json.dumps([np.histogram(valid, edges)[0].tolist(), int((valid < edges[0]).sum()),
                      int((valid > edges[-1]).sum()), int(x.size - valid.size),
                      *[[None if k is np.ma.masked else float(k) for k in y] for y in (m, e)]]))
"""

LATEST = "0"


def made():
    client(["/usr/bin/python3", "-c", MAKE])


def test_functions__are_what_numpy_finds_with_any_number_of_threads():
    program = COMPARE.replace("LATEST", LATEST)
    sums = set()
    for threads in (1, 5):
        with Site(engine={"threads": threads}):
            made()
            sums.add(client(["/usr/bin/python3", "-c", program, BUILD / "libesdm.so"]).stdout.strip())
    expect(len(sums) == 1, f"results depend on the number of threads: {sums}")


def reduced(*arguments):
    return json.loads(run([REDUCE, "--json", *arguments]).stdout)


def near(ours, theirs, limit):
    return len(ours) == len(theirs) and all(
        (a is None) == (b is None) and (a is None or abs(a - b) <= limit * abs(b)) for a, b in zip(ours, theirs))


def test_tool__histograms_and_weights_of_a_variable_are_those_of_numpy():
    with Site():
        made()
        for name, edges in (("v", [-1, 0, 0.25, 3, 8]), ("p", [270, 271.15, 273.16, 273.165, 273.1651, 273.17, 275.5]),
                            ("n", [-1, -0.5, 0, 2, 2.25, 2.4, 7.5]), ("step", [0, 1, 5.5, 11])):
            counts, below, above, missing, means, exact = json.loads(
                client(["/usr/bin/python3", "-c", NUMPY, name, json.dumps(edges)]).stdout)
            told = reduced("histogram", "w.nc", name, "--edges", ",".join(map(str, edges)))
            expect([told["counts"], told["below"], told["above"], told["missing"]] == [counts, below, above, missing],
                   f"{name}: {told} {counts} {below} {above} {missing}")
            told = reduced("mean", "w.nc", name, "--over", "lat,lon", "--weights", "areacella")["values"]
            expect(near(told, means, 1e-9), f"{name}: {told} {means}")
            told = reduced("mean", "w.nc", name, "--over", "lat,lon", "--weights", "area")["values"]
            expect(near(told, exact, 1e-9), f"{name}: {told} {exact}")
        text = run([REDUCE, "histogram", "w.nc", "step", "--bins", "2", "--from", "0", "--to-value", "22"]).stdout
        expect(text == f"0 11 {11 * 70 * 144}\n11 22 0\nbelow 0\nabove 0\nmissing 0\n", text)
        for words, error in ((["mean", "w.nc", "v", "--weights", "none"], "no variable 'none'"),
                             (["mean", "w.nc", "areacella", "--weights", "v"], "dimensions of 'v'"),
                             (["mean", "w.nc", "lat", "--weights", "area"], "on no grid"),
                             (["max", "w.nc", "v", "--weights", "area"], "only a mean and a sum"),
                             (["histogram", "w.nc", "v"], "needs --edges"),
                             (["histogram", "w.nc", "v", "--edges", "3,2"], "increase"),
                             (["mean", "w.nc", "v", "--bins", "3"], "only a histogram")):
            expect_error(run([REDUCE, *words], check=False), error)


GRIDS = {"n32": [], "r72x37": ["-setrtomiss,-300,0"], "r36x18": ["-setrtomiss,0,9000"],
         "r144x73": ["-sellonlatbox,-20,60,-30,71"], "r12x8": ["-invertlat"]}


def fldmean(file, name):
    """Of each step and level, with many digits; None where all is missing."""
    text = run(["cdo", "-s", "-b", "F64", "outputf,%.12g,1", "-fldmean", "-selname," + name, file]).stdout
    return [None if abs(float(v)) > 1e19 else float(v) for v in text.split()]


def test_tool__areas_are_those_of_cdo():
    need_program("cdo")
    with Site() as site:
        files = [(f, "ta") for f in sorted(need_data("cmip6").rglob("ta_Amon*.nc"))[::12][:3]]
        for grid, operators in GRIDS.items():
            file = site.file(grid + ".nc")
            run(["cdo", "-s", "-f", "nc", "-b", "F32", *operators, "-topo," + grid, file])
            files.append((file, "topo"))
        for i, (file, name) in enumerate(files):
            run([tool("esdm-cp"), file, f"esdm://f{i}.nc"])
            ours = reduced("mean", f"f{i}.nc", name, "--over", "lat,lon", "--weights", "great-circles")["values"]
            theirs = fldmean(file, name)
            expect(theirs and near(ours, theirs, 1e-9), f"{file}: {ours[:3]} {theirs[:3]}")
            exact = reduced("mean", f"f{i}.nc", name, "--over", "lat,lon", "--weights", "area")["values"]
            expect(near(exact, theirs, 1e-2) and (exact != ours or name == "ta"), f"{file}: {exact[:3]} {theirs[:3]}")


main(test_functions__are_what_numpy_finds_with_any_number_of_threads,
     test_tool__histograms_and_weights_of_a_variable_are_those_of_numpy, test_tool__areas_are_those_of_cdo)
