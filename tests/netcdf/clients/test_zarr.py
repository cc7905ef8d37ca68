#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""`esdm.zarr(name)` read by zarr-python and by xarray's engine "zarr", compared with the container."""

from esdmtest import Site, by_size, expect, main, need_data, run, tool
from inprocess import MAKE, python

AT_ONCE = 20  # files for one process of Python: most of a small file's time is the start of one

IMPORTS = "import warnings; warnings.simplefilter('ignore'); import zarr, asyncio, pickle, esdm\n"

STORE = """
store = esdm.zarr("e.nc")
z = zarr.open(store, mode="r")
assert sorted(z.array_keys()) == sorted(xr.open_dataset("esdm://e.nc").variables), list(z.array_keys())
assert z["v"].chunks == (2, 25) and z["v"][1, :3].tolist() == [2, 4, 6]
assert z["s"][3] == "nä3" and z["c4"][7].tolist() == [b"a", b"b", b"c", b"d"] and z["sc"][()] == 3
assert z["u8"].dtype == "u8" and z["g/w"].shape == (6, 50)
own = xr.open_dataset("esdm://e.nc").load()
xr.testing.assert_identical(own, xr.open_zarr(store).load())
again = pickle.loads(pickle.dumps(store))
assert again == store and again.left_out == []
xr.testing.assert_identical(own, xr.open_dataset(again, engine="zarr", consolidated=False).load())
xr.testing.assert_identical(xr.open_datatree(store, engine="zarr").load(),
                            xr.open_datatree("esdm://e.nc").load())
async def keys():
    listed = [k async for k in store.list()]
    assert len(listed) == len(set(listed)) and all([await store.exists(k) for k in listed])
    for wrong in ("v/c/0", "v/c/3/0", "v/c/00/0", "v/c/-1/0", "none/zarr.json", "c/0", "v/c/0/0/0", ""):
        assert not await store.exists(wrong) and await store.get(wrong) is None, wrong
    assert sorted([k async for k in store.list_dir("g")]) == ["h", "w", "zarr.json"]
    whole = (await store.get("v/c/0/0")).to_bytes()
    part = await store.get("v/c/0/0", byte_range=zarr.abc.store.RangeByteRequest(2, 8))
    assert part.to_bytes() == whole[2:8]
asyncio.run(keys())
with netCDF4.Dataset("esdm://e.nc", "a") as d:
    d["f4"][:] = 7
assert float(z["f4"][3]) == 3 and float(zarr.open(esdm.zarr("e.nc"), mode="r")["f4"][3]) == 7
for change in (lambda: z["f4"].__setitem__(0, 1), lambda: zarr.open(store, mode="w")):
    try:
        change()
        raise SystemExit("written")
    except ValueError:
        pass
print("ok")
"""

DIGEST = """
import hashlib, numpy as np, xarray as xr
def digest(d):
    h = hashlib.sha256()
    for name in sorted(d.variables):
        v = d.variables[name]
        values = np.asarray(v.values)
        h.update(repr((name, v.dims, v.shape, str(values.dtype))).encode())
        h.update(values.tobytes() if values.dtype != object else repr(values.tolist()).encode())
    return h.hexdigest()
plain = dict(mask_and_scale=False, decode_times=False, concat_characters=False)
for number, file in enumerate(FILES):
    name = f"real{number}.nc"
    doors = [xr.open_dataset(f"esdm://{name}", engine="netcdf4", **plain),
             xr.open_dataset(f"esdm://{name}", **plain),
             xr.open_zarr(esdm.zarr(name), **plain),
             xr.open_dataset(file, engine="netcdf4", **plain)]
    found = [digest(d) for d in doors]
    assert len(set(found)) == 1, (file, found)
    for d in doors:
        d.close()
print("ok")
"""


def test_all_types():
    with Site(history=10) as site:
        told = python(site, "zarr", IMPORTS + MAKE + STORE).stdout
        expect(told.endswith("ok\n"), told)


def test_one_digest_through_three_doors():
    """The nc API, the engine over the C API, the Zarr store, and the file that they came from."""
    files = sorted(need_data("cmip6").rglob("*.nc"), key=lambda f: (f.stat().st_size, f.name))
    files += sorted(need_data("fields").glob("*.nc"))[:1]
    wanted = by_size(1, 3, 200)
    files = [*files[-1:], *files[:wanted - 1]]
    for first in range(0, len(files), AT_ONCE):
        few = files[first:first + AT_ONCE]
        with Site() as site:
            for number, file in enumerate(few):
                run([tool("esdm-cp"), file, f"esdm://real{number}.nc"])
            told = python(site, "zarr", f"{IMPORTS}FILES = {list(map(str, few))!r}\n{DIGEST}").stdout
            expect(told.endswith("ok\n"), f"{first}: {told}")
    print(f"{len(files)} files, one digest each")


main(test_all_types, test_one_digest_through_three_doors)
