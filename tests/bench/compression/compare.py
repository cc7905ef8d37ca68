#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Benchmarks ESDM's compression against other compressors on real fields, in one run.

    tests/bench/compression/compare.py --build build-bench [--fields FOLDER] [--repeat 3]
        [--only TEXTS] [--names FIELDS] [--json FILE] [--per-field] [--quick]

Modes of ESDM store each field through the public API, in a site in memory; "field fast" and so on are
ESDM's own codec alone. The others get the whole field. Lossy ones of other people get fields in which
fill values are replaced by the number before, and pay for a mask; of several ways to group the axes
the best one counts. Compressors from PyPI take part when this Python can import `imagecodecs`
(SZ3, SPERR), `pcodec`, `blosc2`:

    python3 -m venv --system-site-packages rivals && rivals/bin/pip install imagecodecs pcodec blosc2
    rivals/bin/python tests/bench/compression/compare.py ...

Ratios are geometric means over the fields; speeds are bytes of all fields by the sum of the medians
of CPU time; one thread. `--build` must be an optimised build. Needs numpy.
"""

import argparse
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import competitors  # pylint: disable=wrong-import-position
import measure  # pylint: disable=wrong-import-position
import report  # pylint: disable=wrong-import-position

BOUNDS = [1e-2, 1e-3, 1e-4]
TASKS = [("lossless", 0.0)] + [(kind, b) for kind in ("absolute", "relative") for b in BOUNDS]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--fields", type=pathlib.Path, default=measure.default_fields(),
                        help="folder of netCDF files")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", default="", help="only compressors whose name contains one of these texts, with commas between")
    parser.add_argument("--names", default="", help="only these fields, with commas between")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--per-field", action="store_true", help="ratios of every field as well")
    parser.add_argument("--quick", action="store_true",
                        help="the three smallest fields, one repetition, bound 1e-3 alone")
    options = parser.parse_args()
    options.build = options.build.resolve()
    if options.quick:
        options.repeat = 1
    return options


def main():
    options = arguments()
    paths = sorted(options.fields.glob("*.nc"), key=lambda path: path.stat().st_size)
    if options.names:
        paths = [path for path in paths if path.stem in options.names.split(",")]
    if not paths:
        sys.exit(f"no netCDF files in {options.fields}")
    tasks = TASKS
    if options.quick:
        paths, tasks = paths[:3], [t for t in TASKS if t[1] in (0.0, 1e-3)]
    library = measure.Library(options.build)
    with tempfile.TemporaryDirectory(prefix="esdm-compare.") as folder:
        entrants, absent = competitors.all_of(library, folder)
        entrants = [e for e in entrants if any(text in e.name for text in options.only.split(","))]
        results = []
        for path in paths:
            field = library.load(path)
            for kind, bound in tasks:
                for entrant in entrants:
                    if kind in entrant.kinds:
                        results.append(measure.run(entrant, field, kind, bound, options.repeat))
            print(f"{field.name}: {len(results)} results", file=sys.stderr)
        for entrant in entrants:
            entrant.close()
    text, goals = report.tables(results, per_field=options.per_field)
    print(text)
    for name, reason in absent:
        print(f"absent: {name}: {reason}")
    if options.json:
        options.json.write_text(json.dumps(
            {"results": results, "summary": report.summary(results), "goals": goals,
             "absent": [name for name, _ in absent]}, indent=1))
    broken = [r for r in results if r["own"] and r["violations"]]
    for r in broken:
        print(f"VIOLATION: {r['name']} on {r['field']}, {r['kind']} {r['bound']:g}")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
