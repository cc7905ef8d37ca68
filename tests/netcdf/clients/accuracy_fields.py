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
    "psnr": ({"esdm_psnr": "60 dB"}, lambda x, s: BIG(1.7e-3 * s)),
    "gradient": ({"esdm_gradient_tolerance": "scale*1e-3"}, lambda x, s: BIG(s * 1e-3) / 2),
    "vector": ({"esdm_vector_tolerance": "scale*1e-3", "esdm_vector_components": np.int32(3)},
               lambda x, s: BIG(s * 1e-3) / np.sqrt(BIG(3))),
    "mean": ({"esdm_mean_tolerance": "scale*1e-7"}, None),
    "conserve": ({"esdm_conserve": "mean"}, None),
    "archive": ({"esdm_mode": "archive"}, None),
    "speed": ({"esdm_compression_speed": "1 MiB/s", "esdm_decompression_speed": "1 kB/s"}, None),
    "range": ({"esdm_lossless_from": "middle"}, None),
    "up_to": ({"esdm_lossless_up_to": "low"}, None),
    "exact": ({"esdm_exact_values": "often"}, None),
}
NEED_A_BOUND = {"range", "up_to", "exact"}  # refused where nothing may be off


class Field:
    """Numbers, and what is to be known of them."""

    def __init__(self, data, fill):
        self.data, self.fill = data, fill
        valid = data[np.isfinite(data) & (data != fill)].astype(float)
        self.scale = float(valid.max() - valid.min()) or 1.0
        self.named = {"middle": float(np.median(valid)), "low": float(np.quantile(valid, 0.1)),
                      "often": np.unique(valid[::valid.size // 5 + 1]).astype(float)}


def attributes_of(names, field):
    attributes = {}
    for name in names:
        for key, value in QUANTITIES[name][0].items():
            if isinstance(value, str) and value.startswith("scale*"):
                value = field.scale * float(value[6:])
            attributes[key] = field.named.get(value, value) if isinstance(value, str) else value
    return attributes


def check_differences(what, x, y, limit):
    """Of neighbours along each axis, and of what lies two steps apart."""
    with np.errstate(invalid="ignore"):
        for axis in range(x.ndim):
            for step in (1, 2):
                far = [slice(None)] * axis + [slice(step, None)]
                near = [slice(None)] * axis + [slice(None, -step)]
                error = abs((y[tuple(far)] - y[tuple(near)]) - (x[tuple(far)] - x[tuple(near)]))
                if (error > limit).any():
                    sys.exit(f"{what}: a difference along axis {axis} is off by {error.max()!r}, "
                             f"{limit!r} are allowed")


def check_vectors(what, x, y, limit):
    """Each number with two others, as if these were the other components of a vector."""
    def parts(a):
        return np.stack([a, np.roll(a, 1, -1), np.roll(a, 3, 0)])
    error = abs(np.sqrt((parts(y) ** 2).sum(axis=0)) - np.sqrt((parts(x) ** 2).sum(axis=0)))
    apart = np.sqrt(((parts(y) - parts(x)) ** 2).sum(axis=0))
    if (error > limit).any() or (apart > limit).any():
        sys.exit(f"{what}: a length is off by {error.max()!r}, {limit!r} are allowed")


def check(what, names, field, after):
    before, fill = field.data, field.fill
    x, y = before.astype(BIG), after.astype(BIG)
    bounds = [QUANTITIES[n][1] for n in names if QUANTITIES[n][1] is not None]
    if {"relative", "finest"} <= set(names):
        bounds.remove(QUANTITIES["relative"][1])  # stated twice: the attributes of "finest" stay
    exact = ~np.isfinite(before) | (before == fill)
    if not bounds:
        exact[...] = True
    if "range" in names:
        exact |= x >= field.named["middle"]  # not in the precision of the data
    if "up_to" in names:
        exact |= x <= field.named["low"]
    listed = field.named["often"] if "exact" in names else []
    exact |= np.isin(before, listed)
    same = before.view(np.uint8).reshape(before.size, -1) == after.view(np.uint8).reshape(
        before.size, -1)
    same = same.all(axis=1).reshape(before.shape)
    if not same[exact].all():
        sys.exit(f"{what}: {np.count_nonzero(~same[exact])} exact numbers changed")
    rest = ~exact
    if not rest.any():
        return 0
    error = abs(y[rest] - x[rest])
    limit = np.minimum.reduce([np.broadcast_to(b(x[rest], field.scale), error.shape) for b in bounds])
    bad = ~(error <= limit) | (after[rest] == fill) | np.isin(after[rest], listed)
    bad |= (limit == 0) & ~same[rest]  # a zero keeps its sign
    if bad.any():
        i = np.flatnonzero(bad)[0]
        sys.exit(f"{what}: {np.count_nonzero(bad)} numbers are off: {x[rest][i]!r} became "
                 f"{y[rest][i]!r}, {limit[i]!r} are allowed")
    if "psnr" in names and rest.any():  # the range of fragments is at most that of all
        noise = np.sqrt((error ** 2).mean())
        if noise > BIG(1e-3) * (x[rest].max() - x[rest].min()):
            sys.exit(f"{what}: the root of the mean square of errors is {noise!r}")
    if "gradient" in names:
        check_differences(what, x, y, BIG(field.scale * 1e-3))
    if "vector" in names:
        check_vectors(what, np.where(rest, x, 0), np.where(rest, y, 0), BIG(field.scale * 1e-3))
    if "mean" in names and abs((y[rest] - x[rest]).sum()) > BIG(field.scale * 1e-7) * rest.sum():
        sys.exit(f"{what}: the mean changes by {(y[rest] - x[rest]).mean()!r}")
    if "conserve" in names:
        change, magnitude = (y[rest] - x[rest]).sum(), abs(x[rest]).sum()
        if abs(change) > BIG(1e-6) * magnitude:
            sys.exit(f"{what}: the sum changes by {change!r} of {magnitude!r}")
    return np.count_nonzero(error)


def combinations():
    for names in itertools.chain(((q,) for q in QUANTITIES),
                                 itertools.combinations(QUANTITIES, 2)):
        if NEED_A_BOUND & set(names) and not any(QUANTITIES[n][1] for n in names):
            continue
        if "relative" in names and "finest" in names:
            names = ("relative", "finest")
        yield names


def read_field(source, name, most, kind):
    with netCDF4.Dataset(source) as file:
        file.set_auto_mask(False)
        variable = file[name]
        data = np.ascontiguousarray(variable[tuple(slice(0, most) for _ in variable.shape)])
        fill = getattr(variable, "_FillValue", getattr(variable, "missing_value", None))
    fill = data.dtype.type(netCDF4.default_fillvals[data.dtype.str[1:]] if fill is None else fill)
    if kind == "float64":
        wide = np.where(data == fill, data, data.astype(float) * (np.pi / 3))
        data, fill = np.ascontiguousarray(wide.astype(kind)), np.float64(fill)
    return Field(data, fill)


def main():
    path, source, name, most, step, kind = sys.argv[1:]
    field = read_field(source, name, int(most), kind)
    data = field.data
    first = (sum(map(ord, name)) + (kind == "float64")) % int(step)  # another one for each field
    chosen = list(combinations())[first::int(step)]
    lossy = 0
    with netCDF4.Dataset(path, "w") as out:
        for i, length in enumerate(data.shape):
            out.createDimension(f"d{i}", length)
        for i, names in enumerate(chosen):
            variable = out.createVariable(f"v{i}", data.dtype, [f"d{k}" for k in range(data.ndim)],
                                          fill_value=field.fill)
            variable.set_auto_mask(False)
            variable.setncatts(attributes_of(names, field))
        for i, _ in enumerate(chosen):
            out[f"v{i}"][...] = data
    with netCDF4.Dataset(path) as back:
        back.set_auto_mask(False)
        for i, names in enumerate(chosen):
            after = np.ascontiguousarray(back[f"v{i}"][...])
            lossy += check(f"{source}, {'+'.join(names)}", names, field, after) > 0
    print(f"{name}, {kind}: {len(chosen)} accuracies, {lossy} of them used")


main()
