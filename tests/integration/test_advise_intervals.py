#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Intervals of esdm-advise hold: on real fields, over variables and draws, what esdm-cp stores in the end lies in
at least nine of ten intervals of 95 %, and they are no wider than they need to be."""

import json

from esdmtest import Site, by_size, expect, main, need_data, run, tool

ACCURACIES = ["lossless", "digits=3", *by_size([], [], ["mode=archive", "mode=speed", "abs=0.001"])]
# MiB of a block, samples, draws, largest median of half an interval's width.
DRAWS = by_size([("16", "30", 1, 0.02), ("4", "40", 3, 0.08)],
                [("16", "30", 1, 0.02), ("4", "40", 1, 0.08)],
                [("16", "12", 20, 0.02), ("16", "30", 20, 0.02), ("4", "40", 20, 0.08)])


def stored_share(path, accuracy):
    """Stored bytes by raw bytes of the field in the file, which is called as it is."""
    run([tool("esdm-cp"), "-q", "-f", "--accuracy", f"*: {'mode=balanced' if accuracy == 'lossless' else accuracy}", path,
         "esdm://truth.nc"])
    shown = json.loads(run([tool("esdm-stat"), "--json", "truth.nc"]).stdout)["containers"][0]
    field = next(d for d in shown["root"]["datasets"] if d["name"] == path.stem)
    return field["stored_bytes"] / field["raw_bytes"]


def test_intervals__cover_what_is_stored_in_the_end():
    fields = need_data("fields")
    with Site():
        truth = {(path.stem, accuracy): stored_share(path, accuracy)
                 for path in sorted(fields.glob("*.nc")) for accuracy in ACCURACIES}
        for block, samples, draws, most in DRAWS:
            covered, missed, unknown, halves = 0, [], 0, []
            for seed in range(1, draws + 1):
                options = [o for a in ACCURACIES[1:] for o in ("-a", a)]
                told = json.loads(run([tool("esdm-advise"), "--json", "-q", "--block", block, "-n", samples, "--seed",
                                       str(seed), *options, fields]).stdout)
                for variable in told["variables"]:
                    for result in variable["results"]:
                        if (variable["name"], result["accuracy"]) not in truth:
                            continue
                        share, right = result["share_of_raw"], truth[variable["name"], result["accuracy"]]
                        if share["high"] is None:  # one block of several: nothing is known of the others
                            unknown += 1
                        elif share["low"] <= right <= share["high"]:
                            covered += 1
                            halves.append((share["high"] - share["low"]) / 2 / share["estimate"])
                        else:
                            missed.append(f"{variable['name']}, {result['accuracy']}: {right:.4f} not in {share}")
            counted = covered + len(missed)
            print(f"blocks of {block} MiB: {covered} of {counted} intervals cover, {unknown} are not known")
            expect(covered >= 0.9 * counted, f"blocks of {block} MiB: {covered} of {counted} cover: {missed}")
            expect(unknown <= 0.4 * (counted + unknown), f"{unknown} intervals are not known")
            half = sorted(halves)[len(halves) // 2]
            expect(half <= most, f"blocks of {block} MiB: half of the intervals are wider than {half}")


main(
    test_intervals__cover_what_is_stored_in_the_end,
)
