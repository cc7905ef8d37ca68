# SPDX-License-Identifier: LGPL-3.0-or-later
"""What programs of Earth-system science write and read: the patterns of the benchmark of rivals.

A pattern makes its values before the clock runs, writes them into a store (stores.py) as a model
would, and reads them as analysts do. Every task that reads returns a checksum, which must be the
same for all stores.
"""

import zlib

import numpy

SEED = 20260101


def field(folder, name, count, rng):
    """`count` bytes or more of a real field (float32, its steps repeated, each time shifted a
    little), else of smooth noise where there are no real files."""
    path = folder / "fields" / f"{name}.nc" if folder is not None else None
    if path is not None and path.is_file():
        import netCDF4  # pylint: disable=import-outside-toplevel
        with netCDF4.Dataset(path) as file:
            file.set_auto_mask(False)
            variables = [v for v in file.variables.values() if v.ndim >= 3 and v.dtype == "f4"]
            values = max(variables, key=lambda v: v.size)[:]
            fill = getattr(max(variables, key=lambda v: v.size), "_FillValue", None)
        values = values.reshape(-1, *values.shape[-2:])
    else:
        noise = rng.standard_normal((20, 96, 144), "f4")
        values = numpy.cumsum(numpy.cumsum(noise, 1), 2).astype("f4")
        fill = None
    steps = max(2, -(-count // values[0].nbytes))
    result = values[numpy.arange(steps) % len(values)]
    shift = (numpy.arange(steps) // len(values) * 0.037).astype("f4")[:, None, None]
    return result + shift if fill is None else numpy.where(result == fill, fill, result + shift)


def checksum(*arrays):
    total = 0
    for values in arrays:
        values = numpy.ma.getdata(values)
        total = zlib.crc32(numpy.ascontiguousarray(values, "<f4").view("u1").data, total)
    return total


class Pattern:
    """`values` by variable; `chunks` by variable."""

    def __init__(self, scale, folder):
        self.rng = numpy.random.default_rng(SEED)
        self.bytes = int(scale * 128e6)
        self.make(folder)

    def size(self):
        return sum(v.nbytes for v in self.values.values())


class Structured(Pattern):
    """A variable of time, latitude and longitude, written step by step."""
    tasks = ("read", "steps", "point", "section")
    source = "cesm_TS"

    def make(self, folder):
        self.values = {"v": field(folder, self.source, self.bytes, self.rng)}

    def write(self, store):
        values = self.values["v"]
        store.define("v", values.shape, (1, *values.shape[1:]))
        for step in range(len(values)):
            store.put("v", step, values[step:step + 1])

    def read(self, store):
        return checksum(store.get("v", (slice(None),) * self.values["v"].ndim))

    def steps(self, store):
        values = self.values["v"]
        rest = (slice(None),) * (values.ndim - 1)
        return checksum(*(store.get("v", (slice(i, i + 1), *rest)) for i in range(len(values))))

    def point(self, store):
        """The series of one point."""
        middle = [n // 3 for n in self.values["v"].shape[1:]]
        return checksum(store.get("v", (slice(None), *(slice(i, i + 1) for i in middle))))

    def section(self, store):
        """Time and longitude at one latitude."""
        middle = self.values["v"].shape[1] // 2
        return checksum(store.get("v", (slice(None), slice(middle, middle + 1), slice(None))))


class Masked(Structured):
    """The same of an ocean, a third of which is land."""
    source = "pop_SST"
    tasks = ("read", "point")


class Unstructured(Structured):
    """A variable of time and cells of a mesh, large steps; a region is many runs of cells."""
    tasks = ("read", "region")

    def make(self, folder):
        values = field(folder, "cesm_TS", self.bytes, self.rng)
        steps = max(4, len(values) // 16)
        cells = values.size // steps
        self.values = {"v": values.reshape(-1)[:steps * cells].reshape(steps, cells)}

    def region(self, store):
        """50 runs of cells at all times."""
        cells = self.values["v"].shape[1]
        first = numpy.linspace(0, cells - cells // 1000 - 1, 50).astype(int)
        return checksum(*(store.get("v", (slice(None), slice(i, i + cells // 1000)))
                          for i in first.tolist()))


class Patches(Pattern):
    """Adaptive mesh refinement: blocks of many sizes, each a variable of its own."""
    tasks = ("read", "some")

    def make(self, folder):
        source = field(folder, "cesm_TS", self.bytes, self.rng).reshape(-1)
        self.values = {}
        at = 0
        while at < source.size:
            edge = int(self.rng.choice([16, 24, 32, 48]))
            part = source[at:at + edge ** 3]
            if part.size < edge ** 3:
                break
            self.values[f"patch_{len(self.values):05d}"] = part.reshape(edge, edge, edge)
            at += edge ** 3

    def write(self, store):
        for name, values in self.values.items():
            store.define(name, values.shape, values.shape)
        for name, values in self.values.items():
            store.put(name, 0, values)

    def _all_of(self, store, names):
        return checksum(*(store.get(n, (slice(None),) * self.values[n].ndim) for n in names))

    def read(self, store):
        return self._all_of(store, self.values)

    def some(self, store):
        """Every 20th block."""
        return self._all_of(store, list(self.values)[::20])


class Unbalanced(Patches):
    """One large variable, and 200 of 1 to 100 kB."""
    tasks = ("read", "small")

    def make(self, folder):
        source = field(folder, "cesm_TS", self.bytes, self.rng)
        flat = source.reshape(-1)
        self.values = {"large": source}
        for i in range(200):
            self.values[f"small_{i:03d}"] = flat[i * 999:i * 999 + int(250 * 1.023 ** i)]

    def small(self, store):
        """All but the large one."""
        return self._all_of(store, list(self.values)[1:])


class Isosurface(Pattern):
    """Triangles, whose number is another one at each step, appended along a dimension that grows."""
    tasks = ("read", "one")
    grows = True

    def make(self, folder):
        source = field(folder, "cesm_TS", self.bytes, self.rng).reshape(-1)
        count = source.size // 9
        shares = self.rng.uniform(0.2, 1.8, 40)
        ends = (numpy.cumsum(shares) / shares.sum() * count).astype(int)
        self.values = {"triangles": source[:count * 9].reshape(count, 9)}
        self.begins = [0, *ends[:-1].tolist()]
        self.ends = ends.tolist()

    def write(self, store):
        values = self.values["triangles"]
        store.define("triangles", (None, 9), (32768, 9), most=len(values))
        for first, end in zip(self.begins, self.ends):
            store.put("triangles", first, values[first:end])

    def read(self, store):
        return checksum(store.get("triangles", (slice(0, self.ends[-1]), slice(None))))

    def one(self, store):
        """One step."""
        return checksum(store.get("triangles", (slice(self.begins[17], self.ends[17]),
                                                slice(None))))


PATTERNS = {"structured": Structured, "masked": Masked, "unstructured": Unstructured,
            "patches": Patches, "unbalanced": Unbalanced, "isosurface": Isosurface}
