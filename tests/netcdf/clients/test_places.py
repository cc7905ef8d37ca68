#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Numbers of significant bits (NSB) and digits (NSD) mean what they mean in CF and netCDF: `nsb`, `nsd`, and what
readers are told. netCDF's own quantization of the same numbers stands beside it."""

import json

from clients import python_of
from esdmtest import Site, client, expect, expect_error, main, need_data, need_program, run, tool

# Arguments: container, plain file, field. Half a unit of the place that is kept bounds errors.
COMPARE = r"""
import json, sys, netCDF4, numpy as np
BIG = np.longdouble
container, plain, field = sys.argv[1:]
rng = np.random.default_rng(18)

def adversarial(kind):
    info = np.finfo(kind)
    powers = kind(2) ** np.arange(-20, 21).astype(kind)
    edges = np.concatenate([powers, np.nextafter(powers, kind(0)), np.nextafter(powers, kind(np.inf)),
                            np.array([9.999, 1.0, 0.9999999, 9.5, 99.95, 5.5, 1e-3, 1e3, 10, 100], kind)])
    return {
        "edges": np.concatenate([edges, -edges]),
        "below": (2.0 ** rng.integers(-3, 4, 5000) * (1 - rng.random(5000) / 64)).astype(kind),
        "above": (2.0 ** rng.integers(-3, 4, 5000) * (1 + rng.random(5000) / 64)).astype(kind),
        "nines": (10.0 ** rng.integers(-2, 4, 5000) * (1 - rng.random(5000) / 50)).astype(kind),
        "any": (10.0 ** rng.uniform(-6, 6, 5000) * rng.choice([-1, 1], 5000)).astype(kind),
        "smooth": (280 + 20 * np.sin(np.arange(20000) / 500) + rng.random(20000)).astype(kind),
        "subnormal": (rng.random(1000) * float(info.tiny) * 3).astype(kind) + info.smallest_subnormal,
    }

def half_a_bit(x, n, kind):
    _, exponent = np.frexp(abs(x))
    unit = np.maximum(exponent - 1, np.finfo(kind).minexp)  # of subnormals bits count from the least exponent
    return np.ldexp(BIG(1), unit - n - 1)

def half_a_digit(x, n):
    power = np.floor(np.log10(abs(x)))
    power = np.where(BIG(10) ** (power + 1) <= abs(x), power + 1, power)
    power = np.where(BIG(10) ** power > abs(x), power - 1, power)
    return BIG(10) ** (power + 1 - n) / 2

with netCDF4.Dataset(field) as d:
    d.set_auto_mask(False)
    real = [v for v in d.variables.values() if v.dtype.kind == "f"][-1]
    fill = getattr(real, "_FillValue", getattr(real, "missing_value", None))
    real = np.ravel(real[tuple(slice(0, 40) for _ in real.shape)])
    real = real[np.isfinite(real) & (real != 0) & (abs(real) < 1e30)]
    real = real if fill is None else real[real != fill]
arrays, cases = {}, []
for kind in (np.float32, np.float64):
    for what, x in {**adversarial(kind), "real": real.astype(kind)}.items():
        arrays[what + kind.__name__] = x
        for n in (1, 2, 5, 9, 13, 20) + ((35,) if kind is np.float64 else ()):
            cases.append((what + kind.__name__, "nsb", n))
        for n in (1, 2, 3, 5, 6) + ((9, 12) if kind is np.float64 else ()):
            cases.append((what + kind.__name__, "nsd", n))

def write(path, quantize):
    with netCDF4.Dataset(path, "w") as d:
        for what, x in arrays.items():
            d.createDimension(what, x.size)
        for what, quantity, n in cases:
            how = dict(significant_digits=n, quantize_mode="BitRound" if quantity == "nsb" else "GranularBitRound",
                       zlib=True) if quantize else {}
            v = d.createVariable(f"{what}_{quantity}_{n}", arrays[what].dtype, (what,), **how)
            if not quantize:
                v.setncattr("esdm_" + quantity, np.int32(n))
        for what, quantity, n in cases:
            d[f"{what}_{quantity}_{n}"][:] = arrays[what]

write(plain, True)
write(container, False)
changed = dict.fromkeys(("nsb", "nsd"), 0)
with netCDF4.Dataset(container) as ours, netCDF4.Dataset(plain) as theirs:
    for d in (ours, theirs):
        d.set_auto_mask(False)
    for what, quantity, n in cases:
        name, x = f"{what}_{quantity}_{n}", arrays[what].astype(BIG)
        y, q = (d[name][:].astype(BIG) for d in (ours, theirs))
        bound = half_a_bit(x, n, arrays[what].dtype) if quantity == "nsb" else half_a_digit(x, n)
        told = int(ours[name].getncattr("quantization_" + quantity))
        if told != n:
            sys.exit(f"{name}: told {told}")
        if quantity == "nsb":
            said = theirs[name].getncattr("_QuantizeBitRoundNumberOfSignificantBits")
            if said != n or not (abs(q - x) <= bound).all():
                sys.exit(f"{name}: netCDF means something else: {abs(q - x).max()!r}")
        bad = ~(abs(y - x) <= bound)
        if bad.any():
            i = np.flatnonzero(bad)[0]
            sys.exit(f"{name}: {bad.sum()} numbers are off: {x[i]!r} became {y[i]!r}, {bound[i]!r} are allowed")
        changed[quantity] += bool((y != x).any())
print(json.dumps({**changed, "cases": len(cases)}))
"""


def header_of(name):
    return client(["ncdump", "-h", f"esdm://{name}"]).stdout


def test_nsb_and_nsd__are_kept_as_netcdf_keeps_them():
    folder = need_data("fields")
    with Site() as site:
        for field in ("cesm_TS", "era5_q"):
            done = json.loads(client([python_of("debian"), "-c", COMPARE, f"esdm://{field}.nc", site.file(f"{field}.nc"),
                                      folder / f"{field}.nc"]).stdout)
            print(field, done)
            expect(done["nsb"] > 30 and done["nsd"] > 30, f"hardly anything was rounded: {done}")


CDL = """netcdf in {
dimensions: x = 3000 ;
variables: float t(x) ; t:units = "K" ; %s
data: t = %s ; }
"""


def test_what_readers_are_told__is_not_more_than_holds():
    """Bits and digits of ESDM are shares of the number, not places."""
    need_program("ncgen", "ncdump", "nccopy")
    values = ", ".join(f"{273 + (i * 7919 % 1000) / 37:.6f}" for i in range(3000))
    with Site() as site:
        for number, (attributes, nsb, nsd) in enumerate((
                ("t:esdm_significant_bits = 9 ;", 7, 2), ("t:esdm_significant_digits = 3 ;", None, 2),
                ("t:esdm_significant_bits = 2 ;", None, None), ("t:esdm_significant_digits = 1 ;", None, None),
                ("t:esdm_nsb = 9 ;", 9, 3), ("t:esdm_nsd = 3 ;", 9, 3), ('t:esdm_nsd = "2" ;', 6, 2),
                ("t:esdm_nsb = 9 ; t:esdm_significant_bits = 4 ;", 9, 3), ("t:esdm_nsb = 4 ; t:esdm_nsd = 3 ;", 9, 3),
                ("t:esdm_nsb = 3 ; t:esdm_significant_digits = 4 ;", 11, 3), ("t:esdm_nsb = 30 ;", 23, 7))):
            cdl = site.file(f"{number}.cdl")
            cdl.write_text(CDL % (attributes, values), encoding="ascii")
            run(["ncgen", "-4", "-o", site.file(f"{number}.nc"), cdl])
            client(["nccopy", site.file(f"{number}.nc"), f"esdm://{number}.nc"])
            told = [line.strip() for line in header_of(f"{number}.nc").splitlines() if "quantization_" in line]
            wanted = [f"t:quantization_{name} = {n} ;" for name, n in (("nsd", nsd), ("nsb", nsb)) if n is not None]
            expect(told == wanted, f"{attributes} told {told}")
        run([tool("esdm-cp"), "--accuracy", "t: nsb=7", site.file("0.nc"), "esdm://cp.nc"])
        expect("quantization_nsb = 7 ;" in header_of("cp.nc"), header_of("cp.nc"))  # 0.nc states as much
        shown = json.loads(run([tool("esdm-stat"), "--accuracy", "--json", "esdm://cp.nc"]).stdout)
        facts = shown["containers"][0]["root"]["datasets"][0]["accuracy"]
        expect(facts["stated"] == "significant_bits=9" and facts["lossy_fragments"] == 1, facts)
        # What readers see states nothing of copies.
        run([tool("esdm-cp"), "esdm://4.nc", site.file("out.nc")])
        client(["nccopy", site.file("out.nc"), "esdm://again.nc"])
        shown = json.loads(run([tool("esdm-stat"), "--accuracy", "--json", "esdm://again.nc"]).stdout)
        expect("stated" not in shown["containers"][0]["root"]["datasets"][0]["accuracy"], shown)
        for text, error in (("nsb=0", "whole number from 1 to 51"), ("nsd=16", "whole number from 1 to 15"),
                            ("nsd=3 K", "whole number from 1 to 15")):
            expect_error(run([tool("esdm-cp"), "--accuracy", f"t: {text}", site.file("4.nc"), "esdm://no.nc"], check=False), error)


main(test_nsb_and_nsd__are_kept_as_netcdf_keeps_them, test_what_readers_are_told__is_not_more_than_holds)
