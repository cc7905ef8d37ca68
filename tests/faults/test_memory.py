#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""No memory, at every allocation: an error that says so, never a crash, never wrong data."""

import resource
import subprocess

from esdmtest import BUILD, SANITIZE, Site, by_size, environment, expect, main, skip
from faults import PROGRAM, check_goes_on, check_last_commit, committed, must, program, shown

SHIM = str(BUILD / "tests/faults/fail_malloc.so")


unclear = []  # messages that hide the cause


def starve(at, goes_on, *arguments):
    env = {"LD_PRELOAD": SHIM, "ESDM_FAIL_AT": str(at)}
    if goes_on:
        env["ESDM_FAIL_ON"] = "1"
    done = program(*arguments, env=env)
    expect(done.returncode in (0, 3), f"allocation {at}, {goes_on}:\n{shown(done)}")
    if done.returncode == 3:
        expect(done.stderr.strip(), f"allocation {at}, {goes_on}: no message:\n{shown(done)}")
        # In the site configuration Jansson calls a failed allocation a syntax error.
        if "memory" not in done.stderr.lower() and "site.json" not in done.stderr:
            unclear.append(f"allocation {at}, {goes_on}: {done.stderr.strip()}")
    return done


def sweep_allocations(action):
    """Calls action(at, goes_on) with growing numbers until nothing fails any more."""
    told = 0
    for goes_on in (False, True):
        at, calm = 1, 0
        while calm < 5:
            failed = action(at, goes_on)
            told += failed
            calm = 0 if failed else calm + (at > 200)
            at += 1 + at // by_size(10, 40, 400)
            if at > 100000:
                break
    hidden, unclear[:] = list(unclear), []
    expect(not hidden, f"{len(hidden)} of {told} messages hide the cause:\n" +
           "\n".join(hidden[:20]))
    return told


def need_shim():
    if SANITIZE:
        skip("sanitizers bring their own allocator")


def test_reader__is_told():
    need_shim()
    with Site():
        must("write", "r", 1, 2)

        def read(at, goes_on):
            done = starve(at, goes_on, "check", "r")
            expect(done.returncode == 3 or "generation 2" in done.stdout, shown(done))
            return done.returncode == 3

        print(f"{sweep_allocations(read)} readers were told")
        check_last_commit("r", 2, 2)


def test_writer__is_told_and_the_last_commit_stays():
    need_shim()
    with Site():
        must("write", "w", 1, 1)
        last = 1

        def write(at, goes_on):
            nonlocal last
            done = starve(at, goes_on, "write", "w", last + 1, last + 1)
            last = check_last_commit("w", max(committed(done), last), last + 1)
            return done.returncode == 3

        print(f"{sweep_allocations(write)} writers were told")
        check_goes_on("w", last)


def test_creator__is_told():
    need_shim()
    with Site():
        number = 0

        def create(at, goes_on):
            nonlocal number
            number += 1
            done = starve(at, goes_on, "write", f"c{number}", 1, 1)
            if done.returncode == 0:
                check_last_commit(f"c{number}", 1, 1)
            return done.returncode == 3

        print(f"{sweep_allocations(create)} creators were told")


def test_address_space_limit__is_told_or_enough():
    if SANITIZE:
        skip("sanitizers need a large address space")
    with Site():
        must("write", "u", 1, 1)
        for megabytes in (20, 25, 30, 40, 60, 80, 120, 200, 400):
            limit = megabytes << 20
            done = subprocess.run(
                [PROGRAM, "check", "u"], env=environment(), stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True, check=False, timeout=600,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
            # 2: not even the program's own buffer; 127: not even its libraries.
            expect(done.returncode in (0, 2, 3, 127), f"{megabytes} MiB:\n{shown(done)}")
        check_last_commit("u", 1, 1)


main(test_reader__is_told, test_writer__is_told_and_the_last_commit_stays, test_creator__is_told,
     test_address_space_limit__is_told_or_enough)
