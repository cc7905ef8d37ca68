#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Ranks of which some store for the others: handover.py (openmpi|mpich) PROGRAM"""

from mpi_parts import RANKS, STEPS, expect_stored_by, held, main, make_site, run, verify


def make(folder, name, plugin, io, engine=None, **more):
    return make_site(folder, name, plugin, engine or {}, {"io": io, "timeout": 240}, threads=1, **more)


def expect_writers(folder, name, io):
    """Packs are named after the ranks that wrote them. A rank that stores has one for what it puts
    and one for what others hand over, for each handle."""
    packs = [p.name for p in (folder / name / "packs").rglob("*-*-*-*") if p.is_file()]
    writers = {int(p.split("-")[2], 16) for p in packs}
    if writers != {i * RANKS // io for i in range(io)} or len(packs) > 4 * io:
        raise SystemExit(f"{name}: packs {packs}")


def steps(folder):
    for plugin in "posix", "background":
        for io in 1, 2:
            for writes in "direct", "background":
                name = f"steps-{plugin}-{io}-{writes}"
                env = make(folder, name, plugin, io, {"writes": writes})
                run(env, "steps")
                verify(env, STEPS)
                if plugin == "posix":
                    expect_writers(folder, name, io)


def behind(folder):
    env, appends = held(make, folder, "behind", 2, {"writes": "background"})
    run(env, "behind")
    verify(env, STEPS)
    expect_stored_by(appends, 2)


def killed(folder):
    """The job ends with a rank that stores, and with one that hands over; what was committed stays."""
    for who in 0, 1:
        env = make(folder, f"killed{who}", "posix", 2)
        done = run(env, "killed", str(who), check=False)
        if done.returncode == 0:
            raise SystemExit("a job with a killed rank succeeded")
        verify(env, 1)


def full(folder):
    env = make(folder, "full", "faulty", 2, ESDM_FAULTY="append:2+3:fail:ENOSPC")
    run(env, "full", "2")
    env.pop("ESDM_FAULTY")
    verify(env, STEPS)


main(steps, behind, killed, full)
