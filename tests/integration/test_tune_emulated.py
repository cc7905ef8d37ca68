#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-tune on many emulated back ends, whose time is counted and not taken: latency, bandwidth, places in
the queue, caches, codecs and noise are drawn. What it chooses is compared with the best of an exhaustive
search; nothing that it chooses is slower than what was there."""

from esdmtest import BUILD, by_size, main, run

PROGRAM = BUILD / "tests/integration/tune_emulated"
BACK_ENDS = by_size(300, 600, 3000)


def tune(runs, share):
    """With so many runs, the one of today's setting among them."""
    done = run([PROGRAM, BACK_ENDS, runs, 0.1, share])
    print(f"    {done.stdout.splitlines()[-1]}", flush=True)


def test_tune__five_trials_beside_todays_setting():
    tune(6, 0.92)


def test_tune__five_runs_in_all():
    tune(5, 0.86)


def test_a_genetic_search_for_comparison():
    """It needs ten times as many runs to come as near; the same seed finds the same."""
    done = run([PROGRAM, by_size(60, 200, 1000), 6, 0.1, 0.8, 1, 60])
    print(f"    {done.stdout.splitlines()[-1]}", flush=True)


main(test_a_genetic_search_for_comparison, test_tune__five_trials_beside_todays_setting, test_tune__five_runs_in_all)
