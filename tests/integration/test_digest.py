#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-stat --digest: equal contents have equal digests, however and wherever they are stored, and
the digest is what esdm/digest.h says (made here with hashlib from a netCDF-4 file)."""

import hashlib
import json
import struct

from esdmtest import (BUILD, SANITIZE, SOURCE, Site, by_size, client, client_environment, expect,
                      expect_error, main, run, tool)

import netCDF4
import numpy

NAMES = {"i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64", "u1": "uint8", "u2": "uint16",
         "u4": "uint32", "u8": "uint64", "f4": "float32", "f8": "float64", "S1": "char"}


# ---- the definition, once more ----------------------------------------------------------------

def number(n):
    return struct.pack("<Q", n)


def text(t):
    t = t.encode() if isinstance(t, str) else t
    return number(len(t)) + t


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def texts(values):
    return b"".join(varint(len(v.encode()) + 1) + v.encode() for v in values)


def h(data):
    return hashlib.sha256(data).digest()


def attributes(of):
    out = number(len(of.ncattrs()))
    for name in sorted(of.ncattrs(), key=str.encode):
        value = of.getncattr(name)
        if isinstance(value, str) and value.isascii():
            value = value or "\0"                 # what netCDF4 writes, and takes away
            out += text(name) + text("char") + number(len(value)) + text(value)
        elif isinstance(value, str):
            out += text(name) + text("string") + number(1) + text(texts([value]))
        elif isinstance(value, list):
            out += text(name) + text("string") + number(len(value)) + text(texts(value))
        else:
            value = numpy.atleast_1d(value)
            kind = NAMES[value.dtype.str[1:]]
            out += text(name) + text(kind) + number(value.size) + text(value.tobytes())
    return out


def variable(v):
    v.set_auto_maskandscale(False)
    values = v[...]
    kind = "string" if v.dtype is str else NAMES[v.dtype.str[1:]]
    out = text("variable") + text(kind) + number(v.ndim)
    for name, n in zip(v.dimensions, v.shape):
        out += text(name) + number(n)
    if kind == "string":
        flat = list(numpy.asarray(values).ravel())
        leaves = [texts(flat[i:i + 4096]) for i in range(0, len(flat), 4096)]
    else:
        flat, step = numpy.ascontiguousarray(values).tobytes(), 1 << 20
        leaves = [flat[i:i + step] for i in range(0, len(flat), step)]
    return h(out + attributes(v) + h(b"".join(map(h, leaves))))


def group(g, path=""):
    out = text("group") + attributes(g) + number(len(g.dimensions))
    for name, d in sorted(g.dimensions.items()):
        out += text(name) + number(len(d))
    out += number(0) + number(len(g.variables))
    for name, v in sorted(g.variables.items()):
        out += text(name)
        for d in v.get_dims():
            owner = "" if d.group().path == "/" else d.group().path
            out += text(f"{owner}/{d.name}")
        out += variable(v)
    out += number(len(g.groups))
    for name, child in sorted(g.groups.items()):
        out += text(name) + group(child, f"{path}/{name}")
    return h(out)


def digest_of_file(path):
    with netCDF4.Dataset(path) as d:
        return "esdm1:" + h(text("esdm digest 1") + group(d)).hex()


# ---- containers -------------------------------------------------------------------------------

WRITE = '''
import netCDF4, numpy, sys
def write(path, seed, order, chunk, steps, **keys):
    """The same contents for one seed; all else says how they come to be stored."""
    random = numpy.random.default_rng(seed)
    t, y, x = (int(n) for n in random.integers((3, 20, 200), (9, 60, 500)))
    data = {"tas": random.normal(280, 9, (t, y, x)).astype("f4"),
            "orog": random.normal(0, 1e3, (y, x)), "flag": random.integers(0, 5, (y, x)).astype("i1"),
            "when": numpy.arange(t) * 0.25, "big": random.integers(0, 1 << 60, (t, 3))}
    names = [f"run {i}" for i in range(t)]; names[1] = "Zürich"; names[2] = ""
    with netCDF4.Dataset(path, "w") as d:
        turn = (lambda l: list(l)[::-1]) if order else list
        for name, n in turn((("t", None), ("y", y), ("x", x), ("three", 3))):
            d.createDimension(name, n if not (order and name == "t") else t)
        for name, value in turn((("title", "a"), ("level", numpy.int16(3)), ("ümlaut", "ü"),
                                 ("range", numpy.array([1.5, numpy.nan])), ("empty", ""))):
            d.setncattr(name, value)
        g = d.createGroup("deep").createGroup("er")
        g.createDimension("n", 2)
        g.createVariable("in", "u2", ("n", "y"))[:] = random.integers(0, 9, (2, y))
        axes = {"tas": ("t", "y", "x"), "orog": ("y", "x"), "flag": ("y", "x"), "when": ("t",),
                "big": ("t", "three")}
        for name, values in turn(data.items()):
            more = dict(keys)
            if chunk:
                more["chunksizes"] = [max(1, n // 3) for n in values.shape]
            fill = -1e30 if name == "tas" else None
            v = d.createVariable(name, values.dtype, axes[name], fill_value=fill, **more)
            for key, value in turn((("units", "K"), ("valid", numpy.float32([0, 400])))):
                v.setncattr(key, value)
            for i in range(0, len(values), steps):
                v[i:min(i + steps, len(values))] = values[i:i + steps]
        v = d.createVariable("names", str, ("t",))
        v[:] = numpy.array(names, object)
        d.createVariable("scalar", "f8", ())[...] = 3.5
        v = d.createVariable("holes", "i4", ("y", "x"))
        if order:                            # written, or left to be the fill value
            v[:] = numpy.full((y, x), netCDF4.default_fillvals["i4"], "i4")
        v[3, 5:9] = 1
'''
exec(WRITE)
CALL = WRITE + "\nwrite(sys.argv[1], int(sys.argv[2]), **eval(sys.argv[3]))\n"


def through_plugin(name, seed, **how):
    client(["/usr/bin/python3", "-c", CALL, f"esdm://{name}", str(seed), repr(how)])


def digest(name, *options):
    done = json.loads(run([tool("esdm-stat"), "--json", "--digest", *options, name]).stdout)
    return done["containers"][0]["digest"]


def copy(source, target, *options):
    run([tool("esdm-cp"), "-f", *options, source, target])


def test_equal_contents():
    with Site() as site:
        for seed in range(by_size(1, 3, 20)):
            file, back = site.file(f"{seed}.nc"), site.file(f"{seed}-back.nc")
            write(file, seed, order=0, chunk=0, steps=100)
            expected = digest_of_file(file)
            copy(file, "esdm://a.nc")
            expect(digest("a.nc") == expected, f"{seed}: {digest('a.nc')} is not {expected}")
            copy("esdm://a.nc", back)
            copy(back, "esdm://b.nc")
            through_plugin("c.nc", seed, order=1, chunk=1, steps=1, zlib=True)
            through_plugin("d.nc", seed, order=0, chunk=1, steps=2)
            copy("esdm://d.nc", "esdm://e.nc", "--accuracy", "tas:mode=balanced")
            told = {name: digest(name) for name in ("b.nc", "c.nc", "d.nc", "e.nc")}
            expect(set(told.values()) == {expected}, f"{seed}: {told}, expected {expected}")
            line = run([tool("esdm-stat"), "--digest", "c.nc"]).stdout
            expect(line == f"{expected}  esdm://c.nc\n", line)
            each = run([tool("esdm-stat"), "--digest", "--each", "c.nc", "e.nc"]).stdout.split("\n")
            half = len(each) // 2
            expect([l.split()[0] for l in sorted(each[:half])] ==
                   [l.split()[0] for l in sorted(each[half:-1])], f"{each}")


CHANGES = {
    "value": 'd["tas"][1, 2, 3] += 1', "bit": 'd["orog"][0, 0] = numpy.nextafter(d["orog"][0, 0], 9e9)',
    "attribute": 'd["tas"].units = "C"', "type": 'd.level = numpy.int32(3)',
    "more": 'd.more = "x"', "name": 'd.renameVariable("flag", "flags")',
    "length": 'd["when"][len(d.dimensions["t"])] = 1', "text": 'd["names"][0] = "other"',
    "deep": 'd["deep/er/in"][0, 0] = 77', "group": 'd.createGroup("g")',
    "dimension": 'd.createDimension("unused", 3)'}


def test_every_change_tells():
    with Site(history=50) as _:
        through_plugin("a.nc", 5, order=0, chunk=0, steps=9)
        seen = {digest("a.nc"): "first"}
        first = json.loads(run([tool("esdm-log"), "--json", "a.nc"]).stdout)["snapshots"]
        first = max(s["snapshot"] for s in first)
        for what, code in CHANGES.items():
            client(["/usr/bin/python3", "-c",
                    f'import netCDF4, numpy\nd = netCDF4.Dataset("esdm://a.nc", "a")\n{code}\nd.close()'])
            told = digest("a.nc")
            expect(told not in seen, f"{what}: {told} is that of {seen.get(told)}")
            seen[told] = what
        client(["/usr/bin/python3", "-c",
                'import netCDF4\nd = netCDF4.Dataset("esdm://a.nc", "a")\nd.esdm_note = "no"\nd.close()'])
        expect(seen[digest("a.nc")] == "dimension", "attributes of ESDM count")
        back = digest(f"a.nc@{first}")
        expect(seen.get(back) == "first", f"the first snapshot has {back}")


TYPES = '''
import netCDF4, numpy, sys
with netCDF4.Dataset(sys.argv[1], "w") as d:
    d.createDimension("n", 7)
    pair = numpy.dtype([("a", "i1"), ("b", "f8"), ("c", "i2", (3,))], align=sys.argv[2] == "1")
    c = d.createCompoundType(pair, "pair")
    e = d.createEnumType("i1", "colour", {"red": 1, "blue": 2})
    l = d.createVLType("i4", "list")
    v = d.createVariable("c", c, ("n",))
    values = numpy.zeros(7, c.dtype)
    values["a"], values["b"], values["c"] = numpy.arange(7), 0.5, 7
    v[:] = values
    d.createVariable("e", e, ("n",))[:] = [1, 2, 1, 2, 1, 1, 1]
    v = d.createVariable("l", l, ("n",))
    for i in range(7):
        v[i] = numpy.arange(i, dtype="i4")
'''


def test_user_defined_types():
    with Site() as site:
        file, back = str(site.file("t.nc")), site.file("back.nc")
        run(["/usr/bin/python3", "-c", TYPES, file, "0"])
        client(["/usr/bin/python3", "-c", TYPES, "esdm://a.nc", "1"])
        copy(file, "esdm://b.nc")
        copy("esdm://a.nc", back)
        copy(back, "esdm://c.nc")
        told = {name: digest(name) for name in ("a.nc", "b.nc", "c.nc")}
        expect(len(set(told.values())) == 1, f"{told}")


def test_other_site_and_what_is_noted():
    with Site() as site:
        through_plugin("a.nc", 3, order=0, chunk=0, steps=9)
        expected = digest("a.nc")
        file = site.file("a-file.nc")
        copy("esdm://a.nc", file)
        with Site(engine={"threads": 2, "codec": "lz4"}) as other:
            through_plugin("x/y.nc", 3, order=1, chunk=1, steps=2, zlib=True)
            expect(digest("x/y.nc") == expected, "the other site's digest differs")
            expect(digest_of_file(file) == expected, "the file's digest differs")
            for pack in other.pack_files():       # the digest is noted: nothing is read again
                pack.write_bytes(b"\0" * pack.stat().st_size)
            expect(digest("x/y.nc") == expected, "it is not noted")
            expect_error(run([tool("esdm-stat"), "--digest", "--exact", "x/y.nc"], check=False),
                         "damaged")


READ = 'import netCDF4, sys\nprint(getattr(netCDF4.Dataset("esdm://" + sys.argv[1]), "esdm_snapshot", None))'


def test_what_is_stored_otherwise():
    """Moved, compacted, shared and in another catalogue: the values are read anew, and have the digest that they had."""
    disks = [{"name": name, "plugin": "posix", "directory": f"packs-{name}"} for name in ("disk", "spare")]
    with Site(targets=disks, history=9, engine={"pack": "64KiB"}) as site:
        for name in "a.nc", "b.nc":
            through_plugin(name, 5, order=0, chunk=0, steps=20)
        expected = digest("a.nc")
        run([tool("esdm-tag"), "a.nc", "cited"])

        def check(what):
            told = {name: digest(name, "--exact") for name in ("a.nc", "a.nc@tag:cited", "b.nc")}
            expect(set(told.values()) == {expected}, f"{what}: {told}, expected {expected}")

        check("as it was written")
        for what, *command in (("drained", "esdm-drain", "--age", "0s", "--from", "disk"), ("de-duplicated", "esdm-dedup"),
                               ("compacted", "esdm-compact", "a.nc"),
                               ("cloned", "esdm-cp", "-f", "--reflink", "esdm://a.nc", "esdm://b.nc"),
                               ("collected", "esdm-gc", "--yes", "--age=0")):
            run([tool(command[0]), *command[1:]])
            check(what)
        configuration = json.loads(site.config.read_text())
        configuration["metadata"] = {"plugin": "sqlite", "directory": str(site.file("other"))}
        moved = site.file("moved.json")
        moved.write_text(json.dumps(configuration))
        run([tool("esdm-mkfs"), "--migrate", site.config, moved])
        told = json.loads(run([tool("esdm-stat"), "--config", moved, "--json", "--digest", "--exact", "a.nc"]).stdout)
        expect(told["containers"][0]["digest"] == expected, f"migrated: {told}")


def test_programs_are_told():
    with Site(history=9) as site:
        through_plugin("a.nc", 3, order=0, chunk=0, steps=9)
        number = json.loads(run([tool("esdm-log"), "--json", "a.nc"]).stdout)["snapshots"]
        number = max(s["snapshot"] for s in number)
        told = f"{digest('a.nc')} esdm://a.nc@{number}\n"

        def read(name, **env):
            return client(["/usr/bin/python3", "-c", READ, name], env=client_environment(env)).stdout

        expect(read("a.nc") == "None\n", read("a.nc"))
        for name in ("a.nc?digest", f"a.nc@{number}?digest"):
            expect(read(name) == told, f"{name}: {read(name)}")
        expect(read("a.nc", ESDM_NC_DIGEST="1") == told, "not by the environment")
        expect(f'esdm_snapshot = "{told[:-1]}"' in
               client(["ncdump", "-h", "esdm://a.nc?digest"]).stdout, "ncdump does not see it")
        copy("esdm://a.nc?digest", "esdm://b.nc")
        expect(digest("b.nc") == digest("a.nc"), "the attribute counts")
        expect_error(client(["/usr/bin/python3", "-c", 'import netCDF4\n'
                             'netCDF4.Dataset("esdm://a.nc?digest", "a")'], check=False))
        if not SANITIZE:
            env = client_environment({"PYTHONPATH": str(SOURCE / "python"), "ESDM_LIBRARY_DIR":
                                      f"{BUILD}:{BUILD / 'netcdf-plugin'}"})
            env.pop("LD_PRELOAD", None)
            out = run(["/usr/bin/python3", "-c", f"import esdm\nprint(esdm.digest('a.nc', {number}))"],
                      env=env).stdout
            expect(out == digest("a.nc") + "\n", out)


if __name__ == "__main__":
    main(test_equal_contents, test_every_change_tells, test_user_defined_types,
         test_other_site_and_what_is_noted, test_what_is_stored_otherwise,
         test_programs_are_told)
