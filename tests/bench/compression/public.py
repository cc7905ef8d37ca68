#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Compares ESDM with public compressors as ClimateBenchPress and SDRBench do: on real fields, with bounds
of 1 %, 0.1 % and 0.01 % of the range: is the bound kept, how small, how fast, and what becomes of
structure (DSSIM), spectra, means and extremes. One command, one table, one page.

    python3 -m venv rivals && rivals/bin/pip install numpy imagecodecs pcodec blosc2
    rivals/bin/python tests/bench/compression/public.py --build build-bench [--fields FOLDER] [--short]
        [--markdown FILE] [--json FILE] [--html FILE]

--short ends within five minutes: one repetition, and fields that are not done after four minutes are left
out, which is told. Fields go from small to large. Without a wheel its compressors are absent, which is told, too.
Ratios are geometric means over the fields, speeds the bytes of all by the CPU time of one thread, other
figures means over the fields; "bound kept" is the number of fields. Exit status 1: ESDM broke a bound.
"""

import argparse
import json
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import competitors  # pylint: disable=wrong-import-position
import measure  # pylint: disable=wrong-import-position
import public_report  # pylint: disable=wrong-import-position

BOUNDS = [1e-2, 1e-3, 1e-4]
SHORT_S = 240
# Of compare.py's: what people would take, and ESDM's modes.
TAKEN = ("ESDM speed", "ESDM balanced", "ESDM archive", "zfp", "SZ3", "SPERR", "quantise+pcodec-8",
         "quantise+zstd-3")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--fields", type=pathlib.Path, default=measure.default_fields(),
                        help="folder of netCDF files")
    parser.add_argument("--short", action="store_true", help="at most five minutes")
    parser.add_argument("--repeat", type=int, default=3)
    for kind in ("markdown", "json", "html"):
        parser.add_argument(f"--{kind}", type=pathlib.Path)
    options = parser.parse_args()
    options.build = options.build.resolve()
    options.repeat = 1 if options.short else options.repeat
    return options


def of_field(field, entrants, repeat, ends):
    """None: time was up before all were done."""
    found = []
    for bound in BOUNDS:
        for entrant in entrants:  # one after the other: a busy machine is so for all
            if ends is not None and time.monotonic() > ends:
                return None
            if "absolute" in entrant.kinds:
                found.append(measure.run(entrant, field, "absolute", bound, repeat, quality=True))
    return found


def run(options):
    """Results, the fields that were left out, and who is absent."""
    paths = sorted(options.fields.glob("*.nc"), key=lambda path: path.stat().st_size)
    if not paths:
        sys.exit(f"no netCDF files in {options.fields}")
    library = measure.Library(options.build)
    results, left_out = [], []
    began = time.monotonic()
    ends = began + SHORT_S if options.short else None
    with tempfile.TemporaryDirectory(prefix="esdm-public.") as folder:
        everyone, absent = competitors.all_of(library, folder)
        entrants = [e for e in everyone if e.name in TAKEN]
        names = {e.name for e in entrants}
        absent = [(name, why) for name, why in absent if name in TAKEN and name not in names]
        for path in paths:
            field = library.load(path) if ends is None or time.monotonic() < ends else None
            found = of_field(field, entrants, options.repeat, ends) if field is not None else None
            if found is None:
                left_out.append(path.stem)
                continue
            results += found
            print(f"{field.name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
        for entrant in everyone:
            entrant.close()
    return results, left_out, absent


def main():
    options = arguments()
    results, left_out, absent = run(options)
    told = public_report.notes(results, left_out, absent)
    markdown = public_report.markdown(results, told)
    print(markdown)
    if options.markdown:
        options.markdown.write_text(markdown, encoding="utf-8")
    if options.json:
        options.json.write_text(json.dumps(
            {"results": results, "summary": public_report.summary(results), "left_out": left_out,
             "absent": [name for name, _ in absent]}, indent=1), encoding="utf-8")
    if options.html:
        options.html.write_text(public_report.page(results, told), encoding="utf-8")
    broken = [r for r in results if r["own"] and r["violations"]]
    for r in broken:
        print(f"VIOLATION: {r['name']} on {r['field']}, {r['bound']:g} of the range", file=sys.stderr)
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
