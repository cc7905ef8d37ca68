# SPDX-License-Identifier: LGPL-3.0-or-later
"""Statements for regions of a field, drawn at random: boxes, levels and masks, with coordinates made up for it.
Which points are inside is found here from the definition, not from what ESDM found."""

import ctypes

import numpy

import measure

TOLERANCES = ("abs", "rel", "gradient", "range", "digits", "bits", "mean")


class Grid:
    """Coordinates of the last two axes, levels of the one before, and a mask, which has no value at some points."""

    def __init__(self, shape, chance):
        self.shape, rank = shape, len(shape)
        rows, columns = shape[-2:]
        lat = numpy.linspace(-88, 88, rows) if rows > 1 else numpy.array([12.5])
        lon = numpy.arange(columns) * 360 / columns - chance.choice((0, 180))
        self.curvilinear = chance.random() < 0.5
        y, x = numpy.meshgrid(lat, lon, indexing="ij")
        if self.curvilinear:  # rows and columns that are bent
            y, x = y + numpy.sin(numpy.radians(3 * x)), x + numpy.cos(numpy.radians(2 * y))
            lat, lon = y, x
        self.lat, self.lon = y, x
        self.levels = 1e5 * 0.93 ** numpy.arange(shape[-3]) if rank > 2 else None
        self.mask = 100 * numpy.sin(numpy.radians(3 * x)) * numpy.cos(numpy.radians(y))
        self.mask[chance.randrange(rows), chance.randrange(columns)] = numpy.nan
        at, on = rank - 2, 2 if self.curvilinear else 1
        found = [("lat" if on == 2 else f"d{at}", "degrees_north", at, on, lat),
                 ("lon" if on == 2 else f"d{at + 1}", "degrees_east", at if on == 2 else at + 1, on, lon),
                 ("mask", "", at, 2, self.mask)]
        if self.levels is not None:
            found.append((f"d{rank - 3}", "Pa", rank - 3, 1, self.levels))
        self.kept = [numpy.ascontiguousarray(values, float) for *_, values in found]
        self.raw = (measure.Variable * len(found))(*(
            measure.Variable(name.encode(), units.encode(), first, on,
                             values.ctypes.data_as(ctypes.POINTER(ctypes.c_double)))
            for (name, units, first, on, _), values in zip(found, self.kept)))

    def put(self, site):
        site.c.own_beside(site.site, len(self.raw), ctypes.cast(self.raw, ctypes.c_void_p),
                          b"lat lon" if self.curvilinear else None)

    def inside(self, place):
        """Whether each number is in the region, bounds included."""
        inside = numpy.ones(self.shape, bool)
        if "box" in place:
            west, south, east, north = place["box"]
            width = east - west if east >= west else (east - west) % 360
            inside &= ((self.lat >= south) & (self.lat <= north) &
                       ((width >= 360) | ((self.lon - west) % 360 <= width)))
        if "mask" in place:
            inside &= ~(self.mask < place["mask"])
        if "level" in place:
            low, high = (100 * bound for bound in place["level"])
            within = (self.levels >= low) & (self.levels <= high)
            inside &= within.reshape(-1, 1, 1)
        return inside

    def draw(self, chance):
        """A box, levels, a mask, or two of them together."""
        one = {"box": lambda: (round(chance.uniform(-180, 350), 2), *self.between(chance)),
               "mask": lambda: round(chance.uniform(-90, 99), 1)}
        if self.levels is not None:
            one["level"] = lambda: tuple(sorted(round(chance.uniform(5, 1010), 1) for _ in range(2)))
        return {name: one[name]() for name in chance.sample(sorted(one), chance.choice((1, 1, 2)))}

    @staticmethod
    def between(chance):
        south, north = sorted(round(chance.uniform(-90, 90), 2) for _ in range(2))
        return south, round(chance.uniform(-180, 350), 2), north


def text_of(place):
    words = {"box": lambda v: "box=" + ",".join(map(repr, v)), "mask": lambda v: f"mask=mask>={v!r}",
             "level": lambda v: f"level={v[0]!r}..{v[1]!r} hPa"}
    return " & ".join(words[name](value) for name, value in place.items())


def adds(statement, stated):
    """Whether a region states anything that is not stated for all; else ESDM refuses it."""
    return any(name not in statement or (value > statement[name] if name in ("digits", "bits") else
                                         value < statement[name]) for name, value in stated.items())


def stricter(statement, chance, draw):
    """What a region states: some of what `draw` gives, or less of what is stated for all."""
    drawn = {name: value for name, value in draw().items() if name in TOLERANCES}
    for name in TOLERANCES:
        if name in statement and name not in ("digits", "bits") and chance.random() < 0.7:
            drawn[name] = float(f"{statement[name] * chance.choice((0.5, 0.1, 0.01)):.4g}")
    while not adds(statement, drawn):
        drawn["rel"] = drawn.get("rel", 0.1) / 10
    return drawn
