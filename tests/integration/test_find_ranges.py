# SPDX-License-Identifier: LGPL-3.0-or-later
"""What esdm-find answers about times, boxes, levels, grids, values, lengths and words is what a program
finds that reads all coordinates and values of the source files."""

import itertools
import json
import pathlib
import math
import random
import re
import subprocess
import tempfile

from brute_force import INHERITED, NO, OWN, expected
from esdmtest import Site, by_size, client, expect, main, need_data, need_program, run, tool
from postgres import Server, skip_without_postgres

FIND = tool("esdm-find")
FILES = by_size(10, 30, 80)
SEED = 19970101

# Files with what real ones of the archive lack: other grids, calendars, packing, units, no bounds.
MAKE = """
import sys
import netCDF4, numpy as np
folder = sys.argv[1]

def begin(name, **attributes):
    f = netCDF4.Dataset(f"{folder}/{name}.nc", "w")
    f.setncatts(attributes)
    return f

def add(f, name, dims, values, type="f8", fill=None, **attributes):
    values = np.asarray(values)
    for d, n in zip(dims, values.shape):
        if d not in f.dimensions:
            f.createDimension(d, None if d == "time" else n)
    v = f.createVariable(name, type, dims, fill_value=fill)
    v.set_auto_maskandscale(False)
    v.setncatts(attributes)
    v[...] = values
    return v

def time(f, values, units, calendar=None, bounds=None):
    extra = {"calendar": calendar} if calendar else {}
    if bounds is not None:
        extra["bounds"] = "time_bnds"
    add(f, "time", ("time",), values, units=units, standard_name="time", **extra)
    if bounds is not None:
        add(f, "time_bnds", ("time", "bnds"), bounds)

def latlon(f, lat, lon, bounds=True):
    for name, values, unit in (("lat", lat, "degrees_north"), ("lon", lon, "degrees_east")):
        add(f, name, (name,), values, units=unit, **({"bounds": name + "_bnds"} if bounds else {}))
        if bounds:
            half = abs(values[1] - values[0]) / 2 if len(values) > 1 else 1
            add(f, name + "_bnds", (name, "bnds"), np.stack([values - half, values + half], 1))

def field(f, name="tas", dims=("time", "lat", "lon"), low=200, high=300, **attributes):
    shape = [len(f.dimensions[d]) for d in dims]
    n = int(np.prod(shape))
    add(f, name, dims, np.linspace(low, high, n).reshape(shape), "f4", **attributes)

with begin("global_points", title="Global points of ocean and land") as f:
    time(f, np.arange(12) * 30 + 15, "days since 1990-01-01", "360_day")
    latlon(f, np.linspace(-87.5, 87.5, 36), np.arange(72) * 5.0, bounds=False)
    field(f, units="K", long_name="Near-Surface Air Temperature")
with begin("across_date_line", title="Pacific") as f:
    time(f, np.arange(24.0), "hours since 1999-12-31 12:00")
    latlon(f, np.arange(-10.0, 11, 2), np.arange(170.0, 201, 2))
    field(f, units="degC", low=-5, high=28, long_name="Sea surface temperature", comment="Sea ice is masked")
with begin("west") as f:
    time(f, [0.5, 1.5], "days since 2001-02-27", "noleap", [[0, 1], [1, 2]])
    latlon(f, np.arange(30.0, 61, 5), np.arange(-30.0, 1, 5))
    field(f, "pr", units="kg m-2 s-1", low=-1e-6, high=1e-3)
with begin("curved", title="Ocean model") as f:
    y, x = np.mgrid[0:8, 0:9]
    time(f, [15], "days since 2010-06-01", "proleptic_gregorian")
    add(f, "nav_lat", ("y", "x"), 50 + y + 0.1 * x, units="degrees_north")
    add(f, "nav_lon", ("y", "x"), 355.0 + x + 0.2 * y, units="degrees_east")
    field(f, "tos", ("time", "y", "x"), 271, 280, units="K", coordinates="nav_lat nav_lon")
with begin("cells") as f:
    lat, lon = np.array([0.0, 10, 20, 30]), np.array([179.0, -179, -178, -177])
    add(f, "clat", ("cell",), np.radians(lat), units="radian", standard_name="latitude", bounds="clat_v")
    add(f, "clon", ("cell",), np.radians(lon), units="radian", standard_name="longitude", bounds="clon_v")
    add(f, "clat_v", ("cell", "nv"), np.radians(np.stack([lat - 1, lat, lat + 1], 1)))
    turn = lambda a: (a + 180) % 360 - 180
    add(f, "clon_v", ("cell", "nv"), np.radians(turn(np.stack([lon - 1.5, lon, lon + 1.5], 1))))
    field(f, "topo", ("cell",), -4000, 10, units="m", coordinates="clat clon")
with begin("packed") as f:
    time(f, [0, 31], "days since 1850-01-01 00:00", "gregorian", [[0, 31], [31, 59]])
    add(f, "plev", ("plev",), [1000.0, 850, 500], units="hPa", positive="down")
    raw = np.array([[-100, 0, 50], [-32767, 200, 300]], "i2")
    add(f, "ta", ("time", "plev"), raw, "i2", fill=-32767, units="degC", scale_factor=0.1, add_offset=-20.0)
with begin("mixed", comment="two times of different variables") as f:
    time(f, [0, 365], "days since 2003-01-01")
    add(f, "time2", ("time2",), [0.0], units="days since 1950-01-01")
    add(f, "height", (), 2.0, units="m", positive="up")
    f.createDimension("x", 3)
    field(f, "tas", ("time", "x"), 250, 260, units="K", coordinates="height")
    field(f, "ts", ("time2", "x"), 270, 275, units="K")
    field(f, "orog", ("x",), 0, 900, units="m")
with begin("plain") as f:
    f.createDimension("n", 4)
    field(f, "v", ("n",), 1, 2)
"""

READ = """
import json, math, sys
import cftime, netCDF4, numpy as np

def text(v, name):
    a = getattr(v, name, "")
    return a if isinstance(a, str) else ""

def kind(v):
    units, name = text(v, "units"), text(v, "standard_name")
    if " since " in units:
        return "time"
    if units in ("degrees_north", "degree_north") or name == "latitude":
        return "lat"
    if units in ("degrees_east", "degree_east") or name == "longitude":
        return "lon"
    if (text(v, "positive") or text(v, "axis") == "Z" or name in ("air_pressure", "height", "depth", "altitude")):
        return "level"
    return None

def values(v):
    v.set_auto_maskandscale(False)
    a = np.ma.masked_invalid(np.ma.asarray(v[...], "f8"))
    for name in ("_FillValue", "missing_value"):
        if hasattr(v, name):
            a = np.ma.masked_equal(a, float(np.ravel(getattr(v, name))[0]))
    if not hasattr(v, "_FillValue") and v.dtype.itemsize > 1:  # what was never written
        a = np.ma.masked_equal(a, float(np.asarray(netCDF4.default_fillvals[v.dtype.str[1:]], v.dtype)))
    return np.ma.asarray(a * getattr(v, "scale_factor", 1.0) + getattr(v, "add_offset", 0.0))

def key(number, v):
    d = cftime.num2date(number, v.units, getattr(v, "calendar", None) or "standard")
    second = d.hour * 3600 + d.minute * 60 + d.second + d.microsecond / 1e6
    return (12 * d.year + d.month - 1) * 31 + d.day - 1 + second / 86400

def bounds_of(f, v):
    for name in ("bounds", "climatology"):
        b = text(v, name)
        if b in f.variables and values(f.variables[b]).count():
            return values(f.variables[b])
    return None

def turned(cells):
    # the range opposite to the widest gap; cells: list of [west, east]
    cells = sorted([w % 360, w % 360 + (e - w)] for w, e in cells)
    points = all(w == e for w, e in cells)
    end, gaps = cells[0][1], []
    for w, e in cells[1:] + [[cells[0][0] + 360, cells[0][1] + 360]]:
        if w - end > 0.1:
            gaps.append((w - end, w % 360))
        end = max(end, e)
    gaps.sort(reverse=True)
    if not gaps or points and len(cells) >= 8 and len(gaps) > 1 and gaps[0][0] <= 1.5 * gaps[1][0]:
        return [-180.0, 180.0]
    gap, west = gaps[0]
    west = west - 360 if west >= 180 else west
    return [west, west + 360 - gap]

def coordinate(f, v):
    k = kind(v)
    b = bounds_of(f, v)
    a = b if b is not None else values(v)
    scale = 180 / math.pi if text(v, "units").startswith("radian") else 1
    if k == "lon":
        cells = np.ma.asarray(a).reshape(-1, a.shape[-1]) if b is not None else np.ma.asarray(a).reshape(-1, 1)
        out = []
        for cell in cells * scale:
            c = [float(x) for x in cell.compressed()]
            if not c:
                continue
            if len(c) > 2:
                c = [x - 360 * round((x - c[0]) / 360) for x in c]
            out.append([min(c), max(c)])
        return k, "", out
    low, high = float(a.min()) * scale, float(a.max()) * scale
    if k == "time":
        low, high = key(low, v), key(high, v)
        return k, "", [low, math.nextafter(high, -math.inf) if b is not None and high > low else high]
    return k, text(v, "units") if k == "level" else "", [low, high]

def read(path):
    with netCDF4.Dataset(path) as f:
        named, bounds = set(), set()
        for v in f.variables.values():
            for name in ("bounds", "climatology", "coordinates", "grid_mapping", "cell_measures", "formula_terms",
                         "ancillary_variables"):
                for word in text(v, name).replace(":", " ").split():
                    named.add(word)
                    if name in ("bounds", "climatology"):
                        bounds.add(word)
        number = lambda v: np.dtype(v.dtype).kind in "iuf" if v.dtype is not str else False
        data = [n for n, v in f.variables.items() if n not in named and number(v) and v.dimensions != (n,)
                and not hasattr(v, "grid_mapping_name")]
        own, found = {}, {}
        for n in data:
            v, mine, grid = f.variables[n], {}, None
            sources = [d for d in v.dimensions if d in f.variables and f.variables[d].dimensions == (d,)]
            sources += [w for w in text(v, "coordinates").split() if w in f.variables]
            for s in sources:
                if number(f.variables[s]) and kind(f.variables[s]) and kind(f.variables[s]) not in mine:
                    mine[kind(f.variables[s])] = s
            if "lat" in mine and "lon" in mine:
                a, b = f.variables[mine["lat"]], f.variables[mine["lon"]]
                grid = ("curvilinear" if a.ndim == 2 else "point" if a.ndim == 0 else
                        "unstructured" if a.dimensions == b.dimensions else "regular")
            own[n] = {"grid": grid}
            for k, s in mine.items():
                if s not in found:
                    found[s] = coordinate(f, f.variables[s])
                own[n][k] = [found[s][1], turned(found[s][2]) if k == "lon" else found[s][2]]
        whole = {"grid": next((o["grid"] for o in own.values() if o["grid"]), None)}
        for k in ("time", "lat", "lon", "level"):
            units = {}
            for kk, unit, r in found.values():
                if kk == k:
                    units.setdefault(unit, []).append(r)
            whole[k] = [[u, turned(sum(rs, [])) if k == "lon" else [min(r[0] for r in rs), max(r[1] for r in rs)]]
                        for u, rs in units.items()]
        for o in own.values():
            for k in ("time", "lat", "lon", "level"):
                o[k] = [o[k]] if k in o else []
        extremes = {}
        for n, v in f.variables.items():
            if n in bounds or not number(v) or not v.size or kind(v) == "time" and n not in data:
                continue
            a = values(v)
            if a.count():
                extremes[n] = [text(v, "units"), float(a.min()), float(a.max())]
        words = " ".join([text(f, "title"), text(f, "comment"), text(f, "long_name")]
                         + [text(v, w) for v in f.variables.values() for w in ("title", "long_name", "comment")])
        return {"own": own, "whole": whole, "values": extremes, "words": words,
                "lengths": {n: len(d) for n, d in f.dimensions.items()},
                "datasets": {n: {w: text(v, w) for w in ("units", "standard_name") if text(v, w)}
                             for n, v in f.variables.items()}}

json.dump({p.rsplit("/", 1)[1]: read(p) for p in sys.argv[1:]}, sys.stdout)
"""

# ---- the other program ------------------------------------------------------------------------------

COMPARE = {"=": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b,
           "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b}
# To the first unit of each group: number * slope + offset.
UNITS = {"K": ("K", 1, 0), "degC": ("K", 1, 273.15), "Pa": ("Pa", 1, 0), "hPa": ("Pa", 100, 0), "m": ("m", 1, 0),
         "km": ("m", 1000, 0), "kg m-2 s-1": ("kg m-2 s-1", 1, 0)}


def converted(number, to, unit):
    """A number of `unit` in the unit `to`; None: they do not fit."""
    if unit is None or unit == to:
        return number
    if to not in UNITS or UNITS[to][0] != UNITS[unit][0]:
        return None
    return (number * UNITS[unit][1] + UNITS[unit][2] - UNITS[to][2]) / UNITS[to][1]


def ranges_meet(container, dataset, kind, meets):
    holder = container["own"].get(dataset, container["whole"])
    return any(meets(unit, r) for unit, r in holder[kind])


def lon_meets(stored, west, east):
    return any(stored[0] <= east + 360 * k and stored[1] >= west + 360 * k for k in range(-4, 5))


def words_of(text):
    return {w.lower() for w in re.findall(r"[A-Za-z0-9\u0080-\U0010ffff]{2,}", text)}


def about(test, c, dataset):
    what, scope, *rest = test
    if what == "time":
        return ranges_meet(c, dataset, "time", lambda u, r: r[0] < rest[1] and r[1] >= rest[0])
    if what == "box":
        w, s, e, n = rest
        e += 360 if e < w else 0
        return (ranges_meet(c, dataset, "lat", lambda u, r: r[0] <= n and r[1] >= s) and
                ranges_meet(c, dataset, "lon", lambda u, r: lon_meets(r, w, e)))
    if what == "level":
        low, high, unit = rest
        return ranges_meet(c, dataset, "level", lambda u, r: converted(low, u, unit) is not None and
                           r[0] <= converted(high, u, unit) and r[1] >= converted(low, u, unit))
    if what == "grid":
        grid = c["own"].get(dataset, c["whole"])["grid"]
        return grid is not None and COMPARE[rest[0]](grid, rest[1])
    if what in ("min", "max"):
        name, op, number, unit = rest
        if name not in c["values"]:
            return False
        to, low, high = c["values"][name]
        there = converted(number, to, unit)
        return there is not None and COMPARE[op](low if what == "min" else high, there)
    if what == "length":
        return rest[0] in c["lengths"] and COMPARE[rest[1]](c["lengths"][rest[0]], rest[2])
    words = words_of(c["words"])
    return all(w in words if not w.endswith("*") else any(x.startswith(w[:-1]) for x in words) for w in rest[0])


def leaf(test, c, dataset):
    what, scope = test[:2]
    if what == "attribute":
        _, _, name, value = test
        met = dataset and c["datasets"][dataset].get(name) == value
        return OWN if met else NO
    if scope and scope != dataset:
        return NO
    if not about(test, c, dataset):
        return NO
    return OWN if not dataset or scope else INHERITED


# ---- questions --------------------------------------------------------------------------------------

def text_of(tree):
    if tree[0] == "not":
        return f"not ({text_of(tree[1])})"
    if tree[0] in ("and", "or"):
        return f" {tree[0]} ".join(f"({text_of(t)})" for t in tree[1:])
    return tree[2]


def date_text(r, year, month, day):
    form = r.choice(["{0:04d}", "{0:04d}-{1:02d}", "{0:04d}-{1:02d}-{2:02d}", "{0:04d}-{1:02d}-{2:02d}T06"])
    low = (12 * year + (month - 1 if "1" in form else 0)) * 31 + (day - 1 if "2:" in form else 0)
    width = {7: 372, 16: 31, 25: 1}.get(len(form), 1 / 24)
    if form.endswith("T06"):
        low += 0.25
    return form.format(year, month, day), low, low + width


class Questions:
    def __init__(self, archive):
        self.r = random.Random(SEED)
        self.archive = archive
        self.extremes = sorted({(n, *v) for c in archive.values() for n, v in c["values"].items()})
        self.words = sorted({w for c in archive.values() for w in words_of(c["words"])})

    def scope(self):
        name = self.r.choice([None, None, None, None, "ta", "tas", "orog", "ts"])
        return name, f"{name}:" if name else ""

    def time(self):
        scope, prefix = self.scope()
        year = self.r.choice([self.r.randrange(1845, 2020), 1850, 1950, 1990, 2000, 2001, 2003, 2010])
        first, low, high = date_text(self.r, year, self.r.randrange(1, 13), self.r.randrange(1, 29))
        if self.r.random() < 0.6:
            second, _, high = date_text(self.r, year + self.r.randrange(1, 30), 6, 15)
            first += self.r.choice([" .. ", ".."]) + second
        return ("leaf", ("time", scope, low, high), f"{prefix}time overlaps {first}")

    def box(self):
        scope, prefix = self.scope()
        west = self.r.choice([self.r.randrange(-180, 360), -179, 0, 175, 355])
        east = west + self.r.choice([0, 2, 10, 90, 360])
        if east > 360:
            east -= 360
        south = self.r.randrange(-90, 90)
        north = self.r.randrange(south, 91)
        return ("leaf", ("box", scope, west, south, east, north),
                f"{prefix}box overlaps {west},{south},{east},{north}")

    def level(self):
        scope, prefix = self.scope()
        unit, numbers = self.r.choice([("hPa", [10, 500, 850, 925, 1000]), ("Pa", [85000, 92500, 1e5, 50]),
                                       ("km", [0.001, 0.002, 1]), (None, [2, 500, 92500])])
        low = self.r.choice(numbers)
        high = self.r.choice([low, low, 2 * low])
        text = f"{low!r}" + (f" .. {high!r}" if high != low or self.r.random() < 0.3 else "")
        return ("leaf", ("level", scope, low, high, unit), f"{prefix}level overlaps {text} {unit or ''}")

    def grid(self):
        scope, prefix = self.scope()
        op, kind = self.r.choice(["=", "=", "!="]), self.r.choice(["regular", "curvilinear", "unstructured", "point"])
        return ("leaf", ("grid", scope, op, kind), f"{prefix}grid {op} {kind}")

    def values(self):
        name, unit, low, high = self.r.choice(self.extremes)
        what, op = self.r.choice(["min", "max"]), self.r.choice(["<", "<=", ">", ">=", "!="])
        number = round(self.r.choice([low, high, (low + high) / 2, 0.0]), 3) + 0.0005
        said = None
        if unit in UNITS and self.r.random() < 0.7:
            said = self.r.choice([u for u, v in UNITS.items() if v[0] == UNITS[unit][0]])
            number = round(converted(number, said, unit), 6)
        quoted = "" if said is None else f' "{said}"' if " " in said else f" {said}"
        return ("leaf", (what, None, name, op, number, said), f"{what}({name}) {op} {number!r}{quoted}")

    def length(self):
        name = self.r.choice(["time", "lat", "lon", "x", "cell", "plev", "bnds"])
        op, number = self.r.choice(list(COMPARE)), self.r.choice([1, 2, 3, 12, 24, 100])
        return ("leaf", ("length", None, name, op, number), f"length({name}) {op} {number}")

    def text(self):
        words = [self.r.choice(self.words + ["nowhere"]) for _ in range(self.r.randrange(1, 3))]
        if self.r.random() < 0.3:
            words[-1] = words[-1][:3] + "*"
        said = " ".join(w.upper() if self.r.random() < 0.3 else w for w in words)
        return ("leaf", ("text", None, words), f"text ~ {json.dumps(said, ensure_ascii=False)}")

    def attribute(self):
        name, value = self.r.choice([("units", "K"), ("standard_name", "air_temperature"), ("units", "degC"),
                                     ("units", "m")])
        return ("leaf", ("attribute", None, name, value), f'{name} = "{value}"')

    def all(self):
        kinds = [self.time, self.box, self.level, self.grid, self.values, self.length, self.text]
        for kind in kinds:
            yield from (kind() for _ in range(by_size(4, 8, 40)))
        for a, b in itertools.combinations_with_replacement([*kinds, self.attribute], 2):
            for _ in range(by_size(1, 2, 10)):
                tests = [a(), b()]
                if self.r.random() < 0.3:
                    tests[1] = ("not", tests[1])
                yield (self.r.choice(["and", "and", "or"]), *tests)


def agrees(archive, files):
    run([tool("esdm-cp"), *files, "esdm://"])
    asked = found_some = 0
    for tree in Questions(archive).all():
        text = text_of(tree)
        done = run([FIND, text], check=False)
        want, got = sorted(expected(tree, archive, leaf, lambda c: [None, *c["datasets"]])), sorted(done.stdout.splitlines())
        expect(done.returncode == (0 if want else 3), f"{text}: {done.returncode} {done.stderr} {want[:3]}")
        expect(got == want, f"{text}:\nonly found: {sorted(set(got) - set(want))[:5]}\n"
                            f"not found: {sorted(set(want) - set(got))[:5]}")
        asked += 1
        found_some += bool(want)
    expect(asked >= by_size(60, 120, 600) and found_some > asked // 4, f"{asked} questions, {found_some} found some")


def sources(folder):
    subprocess.run(["/usr/bin/python3", "-c", MAKE, folder], check=True)
    made = sorted(f"{folder}/{n}.nc" for n in re.findall(r'begin\("(\w+)"', MAKE))
    real = sorted(need_data("cmip6").rglob("*.nc"), key=lambda p: (p.stat().st_size, p.name))
    return made + [str(p) for p in real[::max(1, len(real) // FILES)][:FILES]]


def test_ranges__agree_with_reading_every_source_file():
    need_program("/usr/bin/python3")
    with tempfile.TemporaryDirectory() as folder:
        files = sources(folder)
        archive = json.loads(subprocess.run(["/usr/bin/python3", "-c", READ, *files], check=True,
                                            capture_output=True).stdout)
        with Site():
            agrees(archive, files)
        if by_size(False, False, True):
            skip_without_postgres()
            with Server() as server:
                store = {"plugin": "postgres", "host": "127.0.0.1", "port": server.port,
                         "database": "postgres", "user": "esdm"}
                with Site(metadata=store):
                    agrees(archive, files)


def test_ranges__say_where_a_question_is_wrong():
    with tempfile.TemporaryDirectory() as folder, Site():
        subprocess.run(["/usr/bin/python3", "-c", MAKE, folder], check=True)
        run([tool("esdm-cp"), f"{folder}/curved.nc", "esdm://"])
        for text, words in {
                "time overlaps": ("column 14", "expected a date"),
                "time overlaps 1990-13": ("column 15", "expected a date"),
                "time overlaps 1990-1999": ("column 15", "1990 .. 1999"),
                "time overlaps 2000 .. 1990": ("column 15", "earlier date first"),
                "a = b and time overlap 1990": ("column 16", "overlaps"),
                "box overlaps 1,2,3": ("column 19", "west,south,east,north"),
                "box overlaps 0,50,10,40": ("column 14", "southern"),
                "box overlaps 0,40,10,140": ("column 14", "-90 to 90"),
                "level overlaps x": ("column 16", "expected a number"),
                "max(tos) ~ 3": ("column 10", "expected one of"),
                "max(tos) > warm": ("column 12", "expected a number"),
                "max(tos) > 3 parsec": ("column 14", "'parsec'", "'K'", "max(tos)"),
                "max(tos) > 3 nosuchunit": ("column 14", "no unit"),
                "max(tos) > 3 C": ("column 14", "'C'", "'K'", "did you mean degC?"),
                "max(tos) > 300 k": ("column 16", "did you mean K?"),
                "max(tos) > 300 kelvn": ("column 16", "did you mean kelvin?"),
                "max(tos) > 3 Farenheit": ("column 14", "did you mean fahrenheit?"),
                'text ~ "."': ("column 8", "expected words"),
        }.items():
            done = run([FIND, text], check=False)
            expect(done.returncode == 2, f"{text}: {done.returncode} {done.stderr}")
            for word in words:
                expect(word in done.stderr, f"{text}: {done.stderr}")
        for unit in "degC", "celsius", "Celsius", "°C", "degrees_celsius", "DegC":
            expect(run([FIND, f"max(tos) > 6 {unit}"]).stdout == "curved.nc\n", f"a unit that fits: {unit}")
        expect(run([FIND, 'exists "max(tos)" or "text" ~ a or time = 3'], check=False).returncode == 3,
               "names in quotes are attributes'")


def test_ranges__open_what_they_find():
    need_program("ncdump")
    with tempfile.TemporaryDirectory() as folder, Site():
        subprocess.run(["/usr/bin/python3", "-c", MAKE, folder], check=True)
        run([tool("esdm-cp"), *(f"{folder}/{n}.nc" for n in ("curved", "packed", "mixed", "cells")), "esdm://"])
        for query, variable in {"max(tos)>6 degC": "tos", "grid=curvilinear": "tos", "grid%3Dunstructured": "topo",
                                "time overlaps 2003&box overlaps 0,0,1,1": None, "time overlaps 2003 .. 2005": "orog",
                                "max(ta) < 300&time%20overlaps%201850": "ta", "title=Ocean model&length(x) >= 9": "tos",
                                "title=Ocean model&length(x) > 9": None, "max(tos)>6 kg": None}.items():
            done = client(["ncdump", "-h", f"esdm://?{query}"], check=False)
            expect((done.returncode == 0) == (variable is not None), f"{query}: {done.stderr}")
            expect(variable is None or f" {variable}(" in done.stdout, f"{query}: {done.stdout}")


def test_ranges__look_at_all_words_that_begin_so():
    """Some hundred words begin alike: none is passed over."""
    with tempfile.TemporaryDirectory() as folder, Site():
        for i in range(12):
            title = " ".join(f"wq{i:02}x{k}" for k in range(60))
            cdl = f'netcdf t {{ variables: int v; :title = "{title}"; data: v = 1; }}'
            pathlib.Path(folder, "t.cdl").write_text(cdl)
            run(["ncgen", "-o", f"{folder}/t{i:02}.nc", f"{folder}/t.cdl"])
        run([tool("esdm-cp"), *(f"{folder}/t{i:02}.nc" for i in range(12)), "esdm://"])
        expect(run([FIND, 'text ~ "wq*"']).stdout.split() == [f"t{i:02}.nc" for i in range(12)], "some are missing")


def test_ranges__are_made_for_sites_of_older_versions():
    with tempfile.TemporaryDirectory() as folder, Site() as site:
        subprocess.run(["/usr/bin/python3", "-c", MAKE, folder], check=True)
        run([tool("esdm-cp"), *(f"{folder}/{n}.nc" for n in ("curved", "packed", "mixed", "cells")), "esdm://"])
        question = "grid = curvilinear or max(ta) < 300 or ts:time overlaps 1950"
        want = run([FIND, question]).stdout
        catalogue = next(site.folder.rglob("catalogue.sqlite"))
        subprocess.run(["sqlite3", str(catalogue), "DELETE FROM attribute WHERE name GLOB '@*' AND name <> '@type'"],
                       check=True)
        expect(run([FIND, question], check=False).returncode == 3, "nothing is known")
        told = json.loads(run([tool("esdm-mkfs"), "--reindex", "--json"]).stdout)
        expect(told["result"] == {"containers": 4, "failed": 0}, f"{told}")
        expect(run([FIND, question]).stdout == want and want.count("\n") == 3, f"{want}")


if __name__ == "__main__":
    main(*[f for n, f in sorted(globals().items()) if n.startswith("test_")])
