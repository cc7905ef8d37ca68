#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Ranks that go on while their data are stored: behind.py (openmpi|mpich) PROGRAM"""

from mpi_parts import RANKS, STEPS, expect_stored_by, held, main, make_site, run, verify


def make(folder, name, plugin, **more):
    return make_site(folder, name, plugin, {"writes": "background"}, **more)


def steps(folder):
    env, appends = held(make, folder, "steps")
    run(env, "steps")
    verify(env, STEPS)
    expect_stored_by(appends, RANKS)


def killed(folder):
    """The job ends with the rank; what was committed is there, and nothing of what was not."""
    env, _ = held(make, folder, "killed")
    done = run(env, "killed", check=False)
    told = [line for line in done.stdout.splitlines() if line.isdigit()]
    if done.returncode == 0 or told != ["1"]:
        raise SystemExit(f"a job with a killed rank ended with {done.returncode}, commits {told}")
    verify(env, 1)


def repaired(folder):
    env = make(folder, "repaired", "faulty", ESDM_FAULTY="append:1+2:fail:ENOSPC",
               BEHIND_FAULTY_RANK=str(RANKS - 1))
    run(env, "repaired")
    env.pop("ESDM_FAULTY")
    verify(env, STEPS)


main(steps, killed, repaired)
