#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Checks that every #include points down.

The layers and what each may use are the esdm_layer() lines of the root CMakeLists.txt, taken
literally: what is not listed there may not be included. esdm_room() lines say the same of the rooms of a
layer: folders of src/LAYER that are compiled together. The tables of ARCHITECTURE.md say the same, and no
source is longer than a reader can bear. Usage: check_includes.py [SOURCE_FOLDER]
"""

import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.M)
LAYER = re.compile(r"^esdm_layer\(([^)]*)\)", re.M)
ROOM = re.compile(r"^esdm_room\(([^)]*)\)", re.M)

# What lies beside the layers: folder -> (layers it may use, public headers it may use).
PLUGIN_HEADERS = re.compile(r"esdm/(sys/.*|status|types)\.h$|esdm/sys/.*")
PUBLIC_HEADERS = re.compile(r"esdm/[^/]+\.h$")
ROLE = re.compile(r"@file|^/\*\*?\n \* |\A/\* SPDX[^\n]*\n+/\*", re.M)
ANY_ESDM_HEADER = re.compile(r"esdm/.*")
ROW = re.compile(r"^\| ((?:io/)?[a-z]+) \| ([a-z -]+) \|", re.M)
LINES = 650  # some 600 are the goal
ASKS_PLACEMENT = "tests/integration/emulated_loads.c"  # what the engine does without advice, for the comparison


def sources(folder):
    return sorted(p for p in folder.rglob("*") if p.suffix in (".c", ".h") and p.is_file())


def allowed_headers(root, layers):
    """Yields (file, layers that it may include, pattern of esdm/ headers that it may include)."""
    for layer, uses in layers.items():
        for path in sources(root / "src" / layer):
            yield path, {layer, *uses}, ANY_ESDM_HEADER
    for path in sources(root / "src/include/esdm/sys"):
        yield path, set(), PLUGIN_HEADERS
    for path in (root / "src/include/esdm").glob("*.h"):
        yield path, set(), PUBLIC_HEADERS
    for path in sources(root / "backends"):
        yield path, {"base"}, PLUGIN_HEADERS
    for folder in ("src/mpi", "netcdf-plugin", "tools", "tests/integration", "tests/faults", "tests/bench"):
        for path in sources(root / folder):
            asks = path == root / ASKS_PLACEMENT
            yield path, {"placement"} if asks else set(), PUBLIC_HEADERS


def component(root, path):
    """src/LAYER, backends/KIND/NAME, or the top folder."""
    parts = path.resolve().relative_to(root).parts
    return parts[: {"src": 2, "backends": 3}.get(parts[0], 1)]


def room(path):
    """LAYER/ROOM of LAYER/ROOM/FILE; LAYER of a file beside the rooms."""
    return "/".join(path.split("/")[:2]) if path.count("/") > 1 else path.split("/")[0]


def room_violations(root, cmake):
    """Includes between the rooms of a layer; a room may use itself, and what its line names."""
    rooms = {name: {name, *rest} for name, *rest in (m.group(1).split() for m in ROOM.finditer(cmake))}
    layers = {name.split("/")[0] for name in rooms}
    for layer in sorted(layers):
        for folder in sorted(p for p in (root / "src" / layer).iterdir() if p.is_dir()):
            if f"{layer}/{folder.name}" not in rooms:
                yield f"src/{layer}/{folder.name}: not named by any esdm_room() line in CMakeLists.txt"
        for path in sources(root / "src" / layer):
            here = room(str(path.relative_to(root / "src")))
            for match in INCLUDE.finditer(path.read_text(errors="replace")):
                there = room(match.group(2))
                if here in rooms and there.split("/")[0] == layer and there not in rooms[here]:
                    allowed = ", ".join(sorted(rooms[here]))
                    yield f"{path.relative_to(root)}: includes {match.group(2)}; allowed rooms are: {allowed}"


def says_its_role(path):
    """A comment on the whole file at its head, or at the head of its header."""
    return path.is_file() and ROLE.search(path.read_text(errors="replace")[:1500])


SCRIPT_ROLE = re.compile(r'\A(#![^\n]*\n)?# SPDX[^\n]*\n("""|# )')


def without_role(root):
    for path in sorted(p for p in (root / "tests").rglob("*") if p.suffix in (".py", ".sh") and p.is_file()):
        if not SCRIPT_ROLE.search(path.read_text(errors="replace")[:500]):
            yield f"{path.relative_to(root)}: no text at the head says what the script is for"
    for folder in ("src", "backends", "netcdf-plugin", "tools", "tests"):
        for path in sources(root / folder):
            if not says_its_role(path) and not (path.suffix == ".c" and says_its_role(path.with_suffix(".h"))):
                yield f"{path.relative_to(root)}: no line at the head says what the file is for (/** @file … */)"


def too_long(root):
    for folder in ("src", "backends", "netcdf-plugin", "tools", "tests", "fortran", "python"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".c", ".h", ".inc", ".sql", ".py", ".sh", ".f90", ".js") and path.is_file():
                lines = path.read_text(errors="replace").count("\n")
                if lines > LINES:
                    yield f"{path.relative_to(root)}: {lines} lines; divide it"


def untrue_tables(root, layers, rooms):
    """Rows of ARCHITECTURE.md that differ from the lines of CMakeLists.txt."""
    rows = {name: set(uses.split()) - {"-"} for name, uses in ROW.findall((root / "ARCHITECTURE.md").read_text())}
    stated = {**{name: set(uses) for name, uses in layers.items()},
              **{name: {room.split("/")[1] for room in uses} for name, uses in rooms.items()}}
    for name, uses in stated.items():
        if rows.get(name) not in (uses, {"all", "above"}):
            written = " ".join(sorted(rows[name])) if name in rows else "(no row)"
            yield f"ARCHITECTURE.md: {name} may include {' '.join(sorted(uses))} by CMakeLists.txt, {written} by the table"


# Who parses JSON; all others call it, so that limits and keys that stand twice are looked at in one place.
JSON_READERS = ("src/base/json.c", "tools/common/json_read.c")
PARSES_JSON = re.compile(r"\bjson_load(s|b|f|fd|_file|_callback)\s*\(")


def json_readers(root):
    for folder in ("src", "backends", "netcdf-plugin", "tools"):
        for path in sources(root / folder):
            name = str(path.relative_to(root))
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                found = PARSES_JSON.search(line)
                if found and name not in JSON_READERS:
                    yield f"{name}:{number}: {found.group(0)}) parses JSON; esdm__json_parse() and _read() of base/json.h do it, tool_json_read() in tools"


def violations(root):
    yield from without_role(root)
    yield from json_readers(root)
    yield from too_long(root)
    cmake = (root / "CMakeLists.txt").read_text()
    layers = {name: rest for name, *rest in (m.group(1).split() for m in LAYER.finditer(cmake))}
    if not layers:
        raise SystemExit(f"{root}/CMakeLists.txt: no esdm_layer() lines found")
    yield from room_violations(root, cmake)
    yield from untrue_tables(root, layers, {name: rest for name, *rest in (m.group(1).split() for m in ROOM.finditer(cmake))})
    folders = {p.name for p in (root / "src").iterdir() if p.is_dir()} - {"include", "mpi"}
    for folder in sorted(folders - set(layers)):
        if sources(root / "src" / folder):
            yield f"src/{folder}: not named by any esdm_layer() line in CMakeLists.txt"
    for name, uses in layers.items():
        for used in set(uses) - set(layers):
            yield f"CMakeLists.txt: layer '{name}' uses '{used}', which is none"

    for path, may_use, headers in allowed_headers(root, layers):
        for match in INCLUDE.finditer(path.read_text(errors="replace")):
            header = match.group(2)
            line = path.read_text(errors="replace").count("\n", 0, match.start()) + 1
            where = f"{path.relative_to(root)}:{line}: includes {header}"
            first = header.split("/")[0]
            if first == "esdm" and "/" in header:
                if not headers.fullmatch(header):
                    yield f"{where}, which this folder may not see"
            elif first in folders and "/" in header:
                if first not in may_use:
                    allowed = ", ".join(sorted(may_use)) or "public headers only"
                    yield f"{where}; allowed are: {allowed}"
            elif header.startswith(".."):
                if component(root, path.parent / header) != component(root, path):
                    yield f"{where}, which leaves its component by '..'"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
    if root.is_file():
        root = root.parents[2]
    found = list(violations(root))
    for line in found:
        print(line)
    print(f"{len(found)} violations" if found else "include directions: fine")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
