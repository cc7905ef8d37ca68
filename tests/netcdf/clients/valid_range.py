# SPDX-License-Identifier: LGPL-3.0-or-later
"""Numbers near the limits of valid_range, stored with a tolerance: none of them may be read as missing, and none
beyond the limits (-1 for land) as a number."""

import sys

import netCDF4
import numpy

path, mode = sys.argv[1:3]
random = numpy.random.default_rng(2)
COUNT = 60000
SMOOTH = numpy.clip(random.normal(0, 60, COUNT).cumsum() / 300 % 140 - 20, 0, 100)
SMOOTH[::7] = random.uniform(99.9, 100, SMOOTH[::7].size)
LAND = SMOOTH.copy()
LAND[::5] = -1  # no fill value, and missing all the same
HIGH = numpy.where(SMOOTH > 60, SMOOTH + 40.5, SMOOTH)
# Whole numbers without a sign, as netCDF's classic formats have them: 250 is stored as -6.
NATURAL = {"_Unsigned": "true"}
UNROUNDED = ("span", "low", "byte")
CASES = {  # type, limits, attributes of a statement, numbers, largest error
    "range": ("f4", {"valid_range": [0, 100]}, {"absolute_tolerance": "0.05 %"}, SMOOTH, 0.05),
    "coarse": ("f4", {"valid_range": [0, 100]}, {"absolute_tolerance": "0.7 %"}, SMOOTH, 0.7),
    "double": ("f8", {"valid_max": [100.0]}, {"absolute_tolerance": "0.05 %"}, SMOOTH, 0.05),
    "below": ("f4", {"valid_min": [-100.0]}, {"absolute_tolerance": "0.05 %"}, -SMOOTH, 0.05),
    "share": ("f4", {"valid_range": [0, 100]}, {"relative_tolerance": "0.002"}, SMOOTH, 0.2),
    "digits": ("f4", {"valid_range": [0, 99.99]}, {"significant_digits": "3"}, numpy.minimum(SMOOTH, 99.99), 0.5),
    "of-range": ("f4", {"valid_range": [0, 100]}, {"range_tolerance": "0.003"}, SMOOTH, 0.3),
    "land": ("f4", {"valid_range": [0, 100]}, {"absolute_tolerance": "1.5 %"}, LAND, 1.5),
    "land-whole": ("i2", {"valid_min": [0]}, {"absolute_tolerance": "3 %"}, numpy.rint(LAND), 3),
    "beyond": ("f8", {"valid_max": [100.0]}, {"absolute_tolerance": "2 %"}, HIGH, 2),
    "beyond-digits": ("f4", {"valid_range": [-0.5, 100]}, {"significant_digits": "2"}, HIGH, 1.5),
    "lossless": ("f4", {"valid_range": [0, 100]}, {}, SMOOTH, 0),
    "low": ("i1", {"valid_range": [0, 100], **NATURAL}, {"absolute_tolerance": "5 %"}, numpy.rint(SMOOTH), 5),
    "byte": ("i1", {"valid_range": [2, -6], **NATURAL}, {"absolute_tolerance": "5 %"},
             numpy.rint(2 + 2.48 * SMOOTH), 5),
    "short": ("i2", {**NATURAL}, {"absolute_tolerance": "70 %"}, numpy.rint(655.35 * SMOOTH), 70),
    "long": ("i4", {"valid_max": [-1], **NATURAL}, {"absolute_tolerance": "70 %"}, numpy.rint(42949672.95 * SMOOTH), 70),
    "span": ("i2", {**NATURAL}, {"range_tolerance": "0.01"}, numpy.rint(32767.5 + SMOOTH), 1),
    "whole": ("i4", {"valid_range": [0, 100000]}, {"absolute_tolerance": "70 %"}, numpy.rint(SMOOTH * 1000), 70),
}

with netCDF4.Dataset(path, "w") as data:
    data.createDimension("x", COUNT)
    for name, (kind, limits, stated, numbers, _) in CASES.items():
        variable = data.createVariable(name, kind, ("x",))
        variable.units = "%"
        for limit, values in limits.items():
            variable.setncattr(limit, values if isinstance(values, str) else numpy.array(values, kind))
        for quantity, text in stated.items():
            variable.setncattr(f"esdm_{quantity}", text)
        if mode != "balanced":
            variable.esdm_mode = mode
        variable.set_auto_maskandscale(False)
        variable[:] = numbers.astype(f"u{kind[1:]}" if "_Unsigned" in limits else kind).astype(kind)

# Limits of packed integers that are floats are of what these are unpacked to, and need not be whole; with a
# negative factor the largest one is stored as the least.
PACKED = {"unpacked": (0.01, {"valid_range": [0.0, 100.0]}, 0, 10000), "halves": (1.0, {"valid_range": [0.5, 10000.5]}, 1, 10000),
          "turned": (-0.01, {"valid_range": [-99.85, -0.15]}, 15, 9985), "apart": (-0.01, {"valid_min": -99.85, "valid_max": -0.15}, 15, 9985)}
with netCDF4.Dataset(path + "-packed", "w") as data:
    data.createDimension("x", COUNT)
    for name, (scale, limits, least, most) in PACKED.items():
        variable = data.createVariable(name, "i2", ("x",))
        variable.set_auto_maskandscale(False)
        variable.units = "%"
        for limit, values in limits.items():
            variable.setncattr(limit, numpy.array(values, "f8"))  # an assignment makes 16 bits of it
        variable.scale_factor, variable.esdm_absolute_tolerance = scale, f"{30 * abs(scale)} %"
        variable[:] = numpy.clip(numpy.rint(SMOOTH * 100), least, most).astype("i2")
with netCDF4.Dataset(path + "-packed") as data:
    data.set_auto_mask(False)
    data.set_auto_scale(False)
    for name, (_, _, least, most) in PACKED.items():
        read, numbers = data[name][:], numpy.clip(numpy.rint(SMOOTH * 100), least, most)
        assert read.min() >= least and read.max() <= most, (name, read.min(), read.max())
        assert (read != numbers).mean() > 0.4, (name, "most numbers are far from the limits, and are rounded")

for suffix in ("", "?accuracy=1%")[:2 if mode == "progressive" else 1]:
    with netCDF4.Dataset(path + suffix) as data:
        for name, (kind, limits, _, numbers, largest) in CASES.items():
            natural = "_Unsigned" in limits
            read = data[name][:]
            mask = numpy.ma.getmaskarray(read)
            numbers = numbers if natural else numbers.astype(kind)
            error = abs(numpy.ma.getdata(read).astype("f8") - numbers).max()
            ends = limits.get("valid_range", limits.get("valid_min", [-numpy.inf]) + limits.get("valid_max", [numpy.inf]))
            beyond = ((numbers < ends[0]) | (numbers > ends[1])) & (not natural)
            print(f"{name}{suffix}: {mask.sum()} missing of {beyond.sum()}, off by {error:.4f}")
            assert (mask == beyond).all(), (mode, name, suffix, (mask & ~beyond).sum(), (beyond & ~mask).sum())
            assert not (suffix and natural) or error <= 0.02 * 256 ** int(kind[1]), (mode, name, error)  # nothing wraps
            assert suffix or error <= largest * 1.000001, (mode, name, error)
            assert mode == "speed" or largest == 0 or error > 0 or name in UNROUNDED or (natural and mode != "balanced"), \
                (mode, name)
