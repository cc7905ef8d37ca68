#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-advise --propose: information of bits as published, spreads of ensembles, evidence, the page, bad input."""

import json
import math
import re
import sys

import netCDF4
import numpy

from esdmtest import SOURCE, Site, by_size, expect, expect_error, main, need_data, run, tool

sys.path.insert(0, str(SOURCE / "tests/bench/compression"))
import quality  # pylint: disable=wrong-import-position

CONFIDENCE_99 = 2.5758293035489004  # quantile of a normal deviate, two-sided


def write(site, name, values, dimensions, fill=None, units="K"):
    with netCDF4.Dataset(site.file(name), "w") as file:
        for dimension, length in zip(dimensions, values.shape):
            file.createDimension(dimension, length)
        v = file.createVariable("tas", values.dtype, dimensions, fill_value=fill)
        v.units = units
        v[:] = values


def propose(site, *arguments, check=True):
    done = run([tool("esdm-advise"), "--json", "--propose", *arguments], check=check, cwd=site.folder)
    return json.loads(done.stdout)["proposals"] if check else done


def information(values, is_data):
    """Klöwer et al. 2021: I = sum p(a, b) log2(p(a, b) / p(a) / p(b)) over the same bit a of a number and b of the next
    one of its row; 0 where that is no more than chance: 1 - H(1/2 + z / (2 sqrt(n))), z for 99 %."""
    bits = values.dtype.itemsize * 8
    whole = values.view(f"u{values.dtype.itemsize}").reshape(-1, values.shape[-1])
    good = is_data.reshape(whole.shape)
    pairs = good[:, :-1] & good[:, 1:]
    one, other = whole[:, :-1][pairs], whole[:, 1:][pairs]
    n, found = one.size, []
    p = min(0.5 + CONFIDENCE_99 / (2 * math.sqrt(n)), 1)
    chance = 1 + p * math.log2(p) + (1 - p) * math.log2(1 - p)
    for bit in range(bits - 1, -1, -1):
        a, b = (x >> x.dtype.type(bit) & x.dtype.type(1) for x in (one, other))
        joint = numpy.bincount((2 * a + b).astype(int), minlength=4).reshape(2, 2) / n
        split = numpy.outer(joint.sum(axis=1), joint.sum(axis=0))
        some = joint > 0
        mutual = float((joint[some] * numpy.log2(joint[some] / split[some])).sum())
        found.append(mutual if mutual > chance else 0.0)
    return numpy.array(found), n


def kept(found, share, head):
    total = numpy.cumsum(found)
    return max(int(numpy.argmax(total >= share * total[-1])) + 1 - head, 0)


def check_information(told, values, is_data, share=0.99):
    found, n = information(values, is_data)
    said = told["information"]
    expect(said["pairs"] == n, f"{said['pairs']} pairs, not {n}")
    expect(numpy.allclose(said["bits"], found, rtol=1e-9, atol=1e-12), f"{said['bits']}, not {found}")
    bits = kept(found, share, 9 if values.dtype.itemsize == 4 else 12)
    expect(said["kept_mantissa_bits"] == bits, f"{said['kept_mantissa_bits']} bits are kept, not {bits}")
    return bits


def smooth(shape, kind, noise=0.01):
    chance = numpy.random.default_rng(3)
    y, x = numpy.meshgrid(*(numpy.arange(n) for n in shape[-2:]), indexing="ij")
    wave = 280 + 20 * numpy.sin(x / 15) + 9 * numpy.cos(y / 9)
    return (wave + noise * chance.standard_normal(shape)).astype(kind)


def test_information__is_that_of_the_published_formula():
    with Site() as site:
        for kind in ("f4", "f8"):
            values = smooth((6, 40, 60), kind)
            write(site, "a.nc", values, ("time", "lat", "lon"))
            told, = propose(site, "a.nc")
            bits = check_information(told, values, numpy.ones(values.shape, bool))
            expect(told["from"] == "information" and told["accuracy"] == f"bits={bits + 1}", told)
            told, = propose(site, "--share", "0.999", "a.nc")
            check_information(told, values, numpy.ones(values.shape, bool), 0.999)


def test_missing_numbers__are_in_no_pair():
    with Site() as site:
        values = smooth((50, 70), "f4")
        values[10:20, 30:50] = -1e10
        values[3, 3] = numpy.nan
        write(site, "a.nc", values, ("lat", "lon"), fill=-1e10)
        told, = propose(site, "a.nc")
        check_information(told, values, numpy.isfinite(values) & (values != numpy.float32(-1e10)))
        expect(told["results"][1]["evidence"]["least"][0] > 200, told["results"][1]["evidence"]["least"])


def test_real_fields__have_the_information_that_numpy_finds():
    fields = need_data("fields")
    with Site() as site:
        for name in by_size(["era5_q", "ccm_fice"], ["era5_q", "ccm_fice", "levitus_SALT", "glosea_ts"], None) or [
                path.stem for path in sorted(fields.glob("*.nc"))]:
            with netCDF4.Dataset(fields / f"{name}.nc") as file:
                file.set_auto_maskandscale(False)
                v = file[name]
                values = v[:]
                missing = [v.getncattr(a) for a in ("_FillValue", "missing_value") if a in v.ncattrs()]
            if values.dtype.kind != "f" or values.nbytes > 16 << 20:
                continue
            values = numpy.ascontiguousarray(values.astype(values.dtype.newbyteorder("=")))
            is_data = numpy.abs(values) < 9.9692e36
            for one in missing:
                is_data &= values != one
            told = next(p for p in propose(site, fields / f"{name}.nc") if p["name"] == name)
            check_information(told, values, is_data)


def test_noise_and_constants__are_kept_without_loss():
    with Site() as site:
        chance = numpy.random.default_rng(1)
        noise = chance.integers(0, 1 << 32, 4000, numpy.uint32)
        noise = (noise & 0xBFFFFFFF).view("f4")  # no NaN
        for values in (noise, numpy.full(4000, 3.25, "f4")):
            write(site, "a.nc", values, ("x",))
            told, = propose(site, "a.nc")
            expect(told["accuracy"] is None and told["from"] == "lossless", told)
            expect([r["from"] for r in told["results"]] == ["lossless"], told["results"])
            text = run([tool("esdm-advise"), "-q", "--propose", "a.nc"], cwd=site.folder).stdout
            expect("keep it without loss" in text and "--accuracy" not in text, text)


def members(count, shape):
    """Of one ensemble, and the spread that nine of ten points exceed."""
    chance = numpy.random.default_rng(7)
    spread = numpy.linspace(0.1, 2, shape[-1])
    all_of = (smooth(shape, "f8", 0) + spread * chance.standard_normal((count, *shape))).astype("f4")
    found = numpy.sort(all_of.astype("f8").std(axis=0, ddof=1).reshape(-1))
    return all_of, found[int(0.1 * found.size)]


def check_ensemble(told, count, spread):
    expect(told["ensemble"]["members"] == count, told["ensemble"])
    expect(abs(told["ensemble"]["spread"] / spread - 1) < 1e-6, f"{told['ensemble']}, not {spread}")
    expect(told["from"] == "ensemble", told["from"])
    bound = float(told["accuracy"].removeprefix("abs="))
    expect(0.09 * spread < bound <= 0.1 * spread, f"{told['accuracy']} of a spread of {spread}")
    result = next(r for r in told["results"] if r["from"] == "ensemble")
    expect(0 < result["evidence"]["largest_error"] <= bound, result["evidence"]["largest_error"])


def test_ensembles__give_a_tenth_of_their_spread():
    with Site() as site:
        values, spread = members(9, (30, 40))
        write(site, "a.nc", values, ("realization", "lat", "lon"))
        told, = propose(site, "a.nc")
        check_ensemble(told, 9, spread)
        expect({r["from"] for r in told["results"]} == {"lossless", "information", "ensemble"}, told["results"])
        write(site, "b.nc", numpy.moveaxis(values, 0, 1), ("lat", "run", "lon"))
        told, = propose(site, "b.nc")
        expect(told["ensemble"]["spread"] is None, "a dimension of any name has members")
        told, = propose(site, "--members-along", "run", "b.nc")
        check_ensemble(told, 9, spread)
        names = []
        for i, one in enumerate(values):
            names.append(f"m{i}.nc")
            write(site, names[-1], one, ("lat", "lon"))
        told, = propose(site, "--members", *names)
        check_ensemble(told, 9, spread)
        for name in names:
            run([tool("esdm-cp"), "-q", name, f"esdm:run/{name}"], cwd=site.folder)
        told, = propose(site, "--members", "esdm:run")
        check_ensemble(told, 9, spread)


def close(a, b, share=1e-6):
    return abs(a - b) <= share * max(abs(a), abs(b))


def test_evidence__is_what_became_of_the_numbers():
    with Site() as site:
        values = smooth((4, 36, 48), "f4", 0.5)
        write(site, "a.nc", values, ("time", "lat", "lon"))
        told, = propose(site, "a.nc")
        result = told["results"][1]
        run([tool("esdm-cp"), "-q", "--accuracy", f"tas: {told['accuracy']}", "a.nc", "esdm:a.nc"], cwd=site.folder)
        run([tool("esdm-cp"), "-q", "esdm:a.nc", "b.nc"], cwd=site.folder)
        with netCDF4.Dataset(site.file("b.nc")) as file:
            after = numpy.asarray(file["tas"][:]).astype("f8")
        before, found = values.astype("f8"), result["evidence"]
        for name, of in (("mean", numpy.mean), ("deviation", numpy.std), ("least", numpy.min), ("most", numpy.max)):
            for said, x in zip(found[name], (before, after)):
                expect(close(said, of(x)), f"{name}: {found[name]}, not {of(before)} and {of(after)}")
        expect(close(found["largest_error"], numpy.abs(after - before).max()), found["largest_error"])
        slopes = [numpy.sqrt((numpy.diff(x, axis=-1) ** 2).mean()) for x in (before, after)]
        expect(close(found["gradients"], slopes[1] / slopes[0]), found["gradients"])
        rows = before.reshape(-1, 48)
        chosen = [k * 144 // 128 for k in range(128)]
        power = [(abs(numpy.fft.rfft(x.reshape(-1, 48)[chosen] - rows[chosen].mean(axis=-1, keepdims=True), axis=-1)) ** 2)
                 .sum(axis=0)[1:] for x in (before, after)]
        said = numpy.array(found["spectrum"])
        expect(said.shape == (24, 2) and numpy.allclose(said.T, power, rtol=1e-6, atol=1e-6 * power[0].max()), said)
        similar = numpy.mean([quality.dssim(x, y, numpy.ones(x.shape, bool)) for x, y in zip(before, after)])
        expect(0.5 < similar < 1 and close(found["dssim"], similar), f"{found['dssim']}, not {similar}")
        change = numpy.abs(power[1] - power[0]) / power[0]
        order = numpy.argsort(-power[0])
        most = change[order[:int(numpy.searchsorted(numpy.cumsum(power[0][order]) / power[0].sum(), 0.999)) + 1]].max()
        expect(close(found["spectral_change"], most), f"{found['spectral_change']}, not {most}")


def test_page__needs_nothing_else():
    with Site() as site:
        values, _ = members(5, (30, 40))
        write(site, "a.nc", values, ("member", "lat", "lon"), units="K<script>")
        done = run([tool("esdm-advise"), "-q", "--page", "p.html", "a.nc"], cwd=site.folder)
        expect("proposed: abs=" in done.stdout and "--accuracy 'tas: abs=" in done.stdout, done.stdout)
        page = site.file("p.html").read_text()
        expect(page.count("<svg") >= 3 and page.count("<svg") == page.count("</svg>"), "pictures")
        expect("<script" not in page and "K&lt;script" in page, "a unit is no text")
        expect(not re.search(r"(src|href)=|url\(|https?:", page), "the page refers to something else")
        expect_error(run([tool("esdm-advise"), "-q", "--page", "no/p.html", "a.nc"], check=False, cwd=site.folder),
                     "no/p.html")


def test_bad_input__is_named():
    with Site() as site:
        write(site, "a.nc", smooth((20, 30), "f4"), ("lat", "lon"))
        for arguments, text in ((["--share", "1.5"], "--share is '1.5'"), (["--fit", "1GB"], "--propose chooses"),
                                (["-a", "abs=1"], "--propose chooses"),
                                (["--members", "--members-along", "x"], "one of both")):
            expect_error(propose(site, *arguments, "a.nc", check=False), text)
        expect_error(run([tool("esdm-advise"), "--members", "a.nc"], check=False, cwd=site.folder), "for --propose")
        with netCDF4.Dataset(site.file("b.nc"), "w") as file:
            file.createDimension("x", 5)
            file.createVariable("flag", "i4", ("x",))[:] = range(5)
        expect_error(propose(site, "b.nc", check=False), "no variables of floating-point numbers")


main(test_information__is_that_of_the_published_formula, test_missing_numbers__are_in_no_pair,
     test_real_fields__have_the_information_that_numpy_finds, test_noise_and_constants__are_kept_without_loss,
     test_ensembles__give_a_tenth_of_their_spread, test_evidence__is_what_became_of_the_numbers,
     test_page__needs_nothing_else, test_bad_input__is_named)
