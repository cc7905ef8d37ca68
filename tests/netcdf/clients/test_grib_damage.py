#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Damage in GRIB files: no container is made that misses messages; the error names the bytes that are lost, and where
messages begin again. What lies between messages is padding. Long messages of edition 1 are read."""

import array
import json
import os
import random
import re
import struct
import sys

import gribs
from esdmtest import BUILD, Site, by_build, by_size, expect, expect_error, main, run, skip, some, tool
from test_grib_kinds import VALUES, field, read, same, set_roots
from test_grib_references import python
from webserver import Web

REF = tool("esdm-ref")
MISSING = struct.unpack("f", struct.pack("f", -9e33))[0]

if not (BUILD / "esdm/esdm-codec-grib.so").exists():
    skip("built without ecCodes")


def steps(sample, count=6):
    return [field(sample, shortName="t", level=500, stepRange=str(k)) for k in range(count)]


def refer(path, check=True, name="f"):
    return run([REF, "-q", "-f", path, f"esdm://{name}"], check=check)


def check_all(messages):
    got = read("f")["t"]
    n = len(got["values"]) // len(messages)
    expect(got["shape"][0] == len(messages), f"{got['shape']}")
    for k, m in enumerate(messages):
        expect(same(got["values"][k * n:(k + 1) * n], m), f"message {k}")


def test_what_lies_between_messages():
    telegram = b"\1\r\r\n123\r\r\nHTXX98 ECMF 010000\r\r\n"
    with Site() as site:
        path = site.folder / "f.grib"
        for sample in ("regular_ll_pl_grib1", "regular_ll_pl_grib2"):
            m = steps(sample)
            size = len(m[0])
            for before, behind in some(((b"", b"\0" * 500), (b"", b"\0" * 60000), (telegram, b"\r\r\n\3"), (telegram + b"GRIB follows\n", b""),
                                        (struct.pack("<I", size),) * 2, (struct.pack(">Q", size),) * 2, (b"", b"\xff" * 20)), by_size(3, 3, 7)):
                data = b"".join(x + before * (k > 0) + behind for k, x in enumerate(m[:-1])) + before + m[-1] + behind
                path.write_bytes(data)
                refer(path)
                check_all(m)
            for between, rest in some(((x, rest) for rest in (m[3:], []) for x in (
                    b"\0" * 70000, b"\x80" * 64, bytes(range(256)), m[2][1:], m[2][:-5], b"XRIB" + m[2][4:])), by_size(5, 5, 12)):
                path.write_bytes(b"".join(m[:2]) + between + b"".join(rest))
                done = refer(path, check=False)
                after = f"byte {len(m[0] + m[1] + between)}" if rest else "no whole message is behind it"
                expect_error(done, "f.grib", f"byte {len(m[0] + m[1])}", after)
            # What the error says to do does it.
            words = re.search(r"head -c (\d+), tail -c \+(\d+)", refer_broken(path, m))
            data = path.read_bytes()
            path.write_bytes(data[:int(words[1])] + data[int(words[2]) - 1:])
            refer(path)
            check_all(m[:3] + m[4:])


def refer_broken(path, m):
    path.write_bytes(b"".join(m[:3]) + b"GRIX" + m[3][4:] + b"".join(m[4:]))
    done = refer(path, check=False)
    expect_error(done, "f.grib")
    return done.stderr


def fields_of(name):
    """How many fields of two dimensions have values; None: reading them is an error, which names the message."""
    count = 0
    done = python(VALUES, f"esdm://{name}", check=False)
    if done.returncode != 0:
        expect_error(done, "fragment [", "f.grib")
        return None
    for v in json.loads(done.stdout).values():
        if len(v["shape"]) >= 3:
            n = v["shape"][-1] * v["shape"][-2]
            count += sum(set(v["values"][i:i + n]) != {MISSING} for i in range(0, len(v["values"]), n))
    return count


def test_no_damage_is_passed_over():
    """Any byte flipped or lost, anywhere: all messages are there and equal, or an error names the bytes. (What changes
    values and nothing else no format of GRIB can tell.)"""
    rng = random.Random(5)
    with Site() as site:
        path = site.folder / "f.grib"
        for sample in ("regular_ll_pl_grib1", "regular_ll_pl_grib2"):
            m = steps(sample, 4)
            whole = b"".join(m)
            heads = [sum(map(len, m[:k])) + i for k in range(4) for i in range(17)]
            ends = [sum(map(len, m[:k + 1])) - 1 - i for k in range(4) for i in range(4)]
            places = heads + ends + [rng.randrange(len(whole)) for _ in range(20)]
            failed = 0
            for k, at in enumerate(rng.sample(places, by_size(by_build(12, 20), 20, len(places)))):
                data = bytearray(whole)
                if k % 3 == 0:
                    del data[at:at + rng.choice((1, 3, 100))]
                elif k % 3 == 1:
                    data[at] ^= 1 << rng.randrange(8)
                else:
                    del data[at:]
                if bytes(data[:4]) != b"GRIB":
                    continue
                path.write_bytes(data)
                done = refer(path, check=False)
                if done.returncode == 0:
                    ends_whole = at in [sum(map(len, m[:k])) for k in range(5)] and k % 3 == 2
                    expect(ends_whole or fields_of("f") in (4, None), f"{sample}: messages are missing after change {k % 3} at {at}")
                else:
                    expect_error(done, "f.grib", "byte")
                    failed += 1
            expect(failed > by_build(5, 10), failed)


def large(bits, ni, nj, sample="regular_ll_pl_grib1", **keys):
    grid = {"Ni": ni, "Nj": nj, "latitudeOfFirstGridPointInDegrees": 60.0, "longitudeOfFirstGridPointInDegrees": 0.0,
            "latitudeOfLastGridPointInDegrees": 0.0, "longitudeOfLastGridPointInDegrees": 30.0}
    m = gribs.message(sample, shortName="t", level=500, **grid, **keys)
    values = array.array("d", [250 + (i * 7919 % 65521) / 1000 for i in range(ni * nj)])
    return gribs.message(m, bitsPerValue=bits, values=values)


COMPARE = """
import netCDF4, numpy as np, sys
with netCDF4.Dataset(sys.argv[1]) as nc:
    nc.set_auto_mask(False)
    got, wanted = nc["t"][:], np.fromfile(sys.argv[2], "f4")
    assert got.size == wanted.size and got.ravel().tobytes() == wanted.tobytes(), (got.shape, abs(got.ravel() - wanted).max())
    assert (nc["t"][1, 0, 5:70:9, 3:200] == got[1, 0, 5:70:9, 3:200]).all()
"""


def test_long_messages_of_edition_1():
    with Site() as site:
        folder = site.folder / "web"
        folder.mkdir()
        # Below 8 MiB, above in units of 120 bytes, beyond what 24 bits can tell.
        for bits, ni, nj in some(((16, 2048, 2040), (16, 2048, 2050), (16, 2999, 1501)), by_size(1, 1, 3)) + [(24, 2500, 2501)]:
            parts = [large(bits, ni, nj, stepRange=str(k)) for k in (0, 1)]
            path = folder / "long.grib"
            path.write_bytes(parts[0] + b"\0" * 40 + parts[1] + b"\0" * 8)
            expect((len(parts[0]) >= 1 << 23) == (parts[0][4] >= 0x80), "what ecCodes writes")
            wanted = site.folder / "wanted"
            wanted.write_bytes(b"".join(array.array("f", gribs.values_of(m)).tobytes() for m in parts))
            run([REF, "-q", "-f", path, "esdm://long"])
            python(COMPARE, "esdm://long", wanted)
            if bits == 24:
                with Web(folder) as web:
                    os.utime(path, (1e9, 1e9))
                    set_roots(site, web.url, folder)
                    run([REF, "-q", f"{web.url}/long.grib", "esdm://far"])
                    python(COMPARE, "esdm://far", wanted)
        # One of them in front of short ones, behind them, and damaged.
        one, short = large(16, 2048, 2050, stepRange="3"), steps("regular_ll_pl_grib1", 3)
        for order in ([one, *short], [*short, one]):
            path.write_bytes(b"".join(order))
            told = json.loads(run([REF, "--json", "-f", path, "esdm://both"]).stdout)
            expect(told["copies"][0]["referred"] == 2, told)
            got = json.loads(python("""
import netCDF4, json, sys
with netCDF4.Dataset("esdm://both") as nc:
    print(json.dumps({n: v.shape for n, v in nc.variables.items() if v.ndim == 4}))
""").stdout)
            expect(sorted(v[0] for v in got.values()) == [4, 4] and sorted(v[2:] for v in got.values()) == [[31, 16], [2050, 2048]], got)
        broken = bytearray(one + b"".join(short))
        broken[5] ^= 0x10
        path.write_bytes(broken)
        expect_error(run([REF, path, "esdm://bad"], check=False), "long.grib", "byte 0", f"byte {len(one)}")
        path.write_bytes(one[:-1000])
        expect_error(run([REF, path, "esdm://bad"], check=False), "long.grib", "byte 0", "cut off")


def test_without_definitions__an_error():
    """ecCodes itself would end the process."""
    hidden = ["unshare", "-rm", "sh", "-c", f"mount -t tmpfs none {gribs.SAMPLES.parent / 'definitions'} && exec \"$@\"", "sh"]
    if run([*hidden, "true"], check=False).returncode:
        print("nothing can be hidden here: unshare does not work")
        return
    with Site() as site:
        path = site.folder / "f.grib"
        path.write_bytes(b"".join(steps("regular_ll_pl_grib2")))
        refer(path)
        for command in ([REF, path, "esdm://g"], [tool("esdm-cp"), path, "esdm://g"], [tool("esdm-cp"), "esdm://f", site.file("f.nc")]):
            done = run([*hidden, *command], check=False)
            expect_error(done, "there is no boot.def in", "libeccodes-data")
        run([tool("esdm-cp"), "esdm://f", site.file("f.nc")])


def test_what_ends_ecCodes__an_error():
    """A byte of the section of the grid, over which ecCodes 2.28 ends a process by an assertion."""
    with Site() as site:
        path = site.folder / "ill.grib"
        good = (gribs.SAMPLES / "reduced_gg_ml_grib1.tmpl").read_bytes()
        ill = bytearray(good)
        ill[63] ^= 0x08
        path.write_bytes(good + bytes(ill))
        for command in ([REF, path, "esdm://g"], [tool("esdm-cp"), path, "esdm://g"]):
            done = run(command, check=False)
            expect(done.returncode == 1, f"{done.returncode}: {done.stderr}")
            expect_error(done, "ill.grib", f"message at byte {len(good)}", "damaged")


if __name__ == "__main__":
    sys.exit(main(test_what_lies_between_messages, test_no_damage_is_passed_over, test_long_messages_of_edition_1, test_what_ends_ecCodes__an_error,
                  test_without_definitions__an_error))
