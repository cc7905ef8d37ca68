# SPDX-License-Identifier: LGPL-3.0-or-later
"""Writes a real field with many accuracies through netCDF4-python, reads all back, and checks what
was promised in long double. Arguments: path of the container, file, variable, number of elements
along the axes at most, how many accuracies to leave out between two."""

import itertools
import sys

import netCDF4
import numpy as np

BIG = np.longdouble

# Attributes, and the bound that they are for numbers x.
QUANTITIES = {
    "absolute": ({"esdm_absolute_tolerance": "scale*1e-3"}, lambda x, s: BIG(s * 1e-3)),
    "relative": ({"esdm_relative_tolerance": "0.1 %"}, lambda x, s: BIG(0.1 / 100) * abs(x)),
    "finest": ({"esdm_relative_tolerance": 0.02, "esdm_relative_finest": "scale*1e-4"},
               lambda x, s: np.maximum(BIG(0.02) * abs(x), BIG(s * 1e-4))),
    "digits": ({"esdm_significant_digits": np.int32(4)}, lambda x, s: BIG(10) ** -4 * abs(x)),
    "bits": ({"esdm_significant_bits": 9}, lambda x, s: BIG(2) ** -9 * abs(x)),
    "conserve": ({"esdm_conserve": "mean"}, None),
    "archive": ({"esdm_mode": "archive"}, None),
    "range": ({"esdm_lossless_from": "middle"}, None),
}


def attributes_of(names, scale, middle):
    attributes = {}
    for name in names:
        for key, value in QUANTITIES[name][0].items():
            if isinstance(value, str) and value.startswith("scale*"):
                value = scale * float(value[6:])
            attributes[key] = middle if value == "middle" else value
    return attributes


def check(what, names, before, after, fill, scale, middle):
    x, y = before.astype(BIG), after.astype(BIG)
    bounds = [QUANTITIES[n][1] for n in names if QUANTITIES[n][1] is not None]
    if {"relative", "finest"} <= set(names):
        bounds.remove(QUANTITIES["relative"][1])  # stated twice: the attributes of "finest" stay
    exact = ~np.isfinite(before) | (before == fill)
    if not bounds:
        exact[...] = True
    if "range" in names:
        exact |= before >= middle
    same = before.view(np.uint8).reshape(before.size, -1) == after.view(np.uint8).reshape(
        before.size, -1)
    same = same.all(axis=1).reshape(before.shape)
    if not same[exact].all():
        sys.exit(f"{what}: {np.count_nonzero(~same[exact])} exact numbers changed")
    rest = ~exact
    if not rest.any():
        return 0
    error = abs(y[rest] - x[rest])
    limit = np.minimum.reduce([np.broadcast_to(b(x[rest], scale), error.shape) for b in bounds])
    bad = ~(error <= limit) | (after[rest] == fill)
    if bad.any():
        i = np.flatnonzero(bad)[0]
        sys.exit(f"{what}: {np.count_nonzero(bad)} numbers are off: {x[rest][i]!r} became "
                 f"{y[rest][i]!r}, {limit[i]!r} are allowed")
    if "conserve" in names:
        change, magnitude = (y[rest] - x[rest]).sum(), abs(x[rest]).sum()
        if abs(change) > BIG(1e-6) * magnitude:
            sys.exit(f"{what}: the sum changes by {change!r} of {magnitude!r}")
    return np.count_nonzero(error)


def combinations():
    for names in itertools.chain(((q,) for q in QUANTITIES),
                                 itertools.combinations(QUANTITIES, 2)):
        if "range" in names and not any(QUANTITIES[n][1] for n in names):
            continue  # refused: nothing may be off
        if "relative" in names and "finest" in names:
            names = ("relative", "finest")
        yield names


def main():
    path, source, name, most, step = sys.argv[1:]
    with netCDF4.Dataset(source) as file:
        file.set_auto_mask(False)
        variable = file[name]
        cut = tuple(slice(0, int(most)) for _ in variable.shape)
        data = np.ascontiguousarray(variable[cut])
        fill = getattr(variable, "_FillValue", getattr(variable, "missing_value", None))
    fill = data.dtype.type(netCDF4.default_fillvals[data.dtype.str[1:]] if fill is None else fill)
    valid = data[np.isfinite(data) & (data != fill)].astype(float)
    scale, middle = float(valid.max() - valid.min()) or 1.0, float(np.median(valid))
    chosen = list(combinations())[::int(step)]
    lossy = 0
    with netCDF4.Dataset(path, "w") as out:
        for i, length in enumerate(data.shape):
            out.createDimension(f"d{i}", length)
        for i, names in enumerate(chosen):
            variable = out.createVariable(f"v{i}", data.dtype, [f"d{k}" for k in range(data.ndim)],
                                          fill_value=fill)
            variable.set_auto_mask(False)
            variable.setncatts(attributes_of(names, scale, middle))
        for i, _ in enumerate(chosen):
            out[f"v{i}"][...] = data
    with netCDF4.Dataset(path) as back:
        back.set_auto_mask(False)
        for i, names in enumerate(chosen):
            what = f"{source}, {'+'.join(names)}"
            after = np.ascontiguousarray(back[f"v{i}"][...])
            lossy += check(what, names, data, after, fill, scale, middle) > 0
    print(f"{name}: {len(chosen)} accuracies, {lossy} of them used")


main()
