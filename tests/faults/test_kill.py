#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""kill -9 at every system call that changes something, and at random times: the last commit stays
readable as a whole, and the next writer works."""

import random
import subprocess
import time

from esdmtest import (BUILD, SEED, Site, by_size, client, environment, expect, main, need_program, run,
                      tool)
from faults import (KILLED, Writer, check_goes_on, check_last_commit, committed, count_calls, killing, must,
                    need_strace, program, shown, sweep)

COMPARE = BUILD / "tests/netcdf/clients/nc_compare"


def kill_at(name, call, number, create):
    """One writer that dies at its `number`-th such call; returns whether it did."""
    first = 1 if create else 2
    if not create:
        must("write", name, 1, 1)
    done = program("write", name, first, first + 2, prefix=killing(call, number))
    if done.returncode == 0:
        return False
    expect(done.returncode == KILLED,
           f"neither killed nor finished:\n{shown(done)}")
    told = committed(done)
    if create and told == 0:
        check = program("check", name)
        expect(check.returncode == 0 or "no such" in check.stderr.lower(), shown(check))
        last = 1 if check.returncode == 0 else 0
    else:
        last = check_last_commit(name, max(told, first - 1), max(told, first - 1) + 1)
    check_goes_on(name, last)
    return True


def test_kill__at_system_calls():
    need_strace()
    with Site():
        counts = count_calls("write", "counting", 1, 3)
        most = by_size(3, 4, 100)
        killed = 0
        for call, count in counts.items():
            for number in sweep(count, most):
                for create in (False, True):
                    killed += kill_at(f"{call}-{number}-{create}", call, number, create)
        print(f"killed {killed} writers at {', '.join(counts)}")
        expect(killed >= 2 * len(counts), f"only {killed} were killed")
        run([tool("esdm-mkfs"), "--check"])


def test_kill__at_random_times():
    generator = random.Random(SEED)
    with Site():
        must("write", "random", 1, 1)
        last = 1
        for _ in range(by_size(10, 15, 400)):
            with Writer("random", last + 1, 1000000) as writer:
                writer.wait_for("started")
                time.sleep(generator.uniform(0.001, 0.12))
                at_least = max(committed(writer.kill()), last)
            last = check_last_commit("random", at_least, at_least + 1)
        check_goes_on("random", last)
        run([tool("esdm-mkfs"), "--check"])


def test_kill__of_an_unmodified_program_leaves_the_old_or_the_new_container():
    need_strace()
    need_program("ncgen", "nccopy", "ncdump")
    with Site() as site:
        files = []
        for number in (1, 2):
            cdl, file = site.file(f"{number}.cdl"), site.file(f"{number}.nc")
            values = ", ".join(str(number * 100000 + i) for i in range(5000))
            cdl.write_text("netcdf t { dimensions: x = 5000 ; variables: int a(x), b(x) ; "
                           f"data: a = {values} ; b = {values} ; }}")
            run(["ncgen", "-4", "-o", file, cdl])
            files.append(file)
        url, out = "esdm://killed/t.nc", site.file("t.nc")
        outcomes = {}
        for call in ("pwrite64", "pwritev", "openat", "close", "mmap"):
            for number in sweep(200, by_size(4, 6, 200)):
                client(["nccopy", files[0], url])
                subprocess.run([*killing(call, number), tool("esdm-run"), "nccopy", files[1], url], check=False,
                               env=environment(), stderr=subprocess.DEVNULL)
                client(["nccopy", url, out])
                same = [run([COMPARE, file, out], check=False).returncode == 0 for file in files]
                expect(any(same), f"killed at {call} {number}: neither the old nor the new data")
                outcomes[same[1]] = outcomes.get(same[1], 0) + 1
        expect(outcomes.get(False, 0) > 4, f"hardly any was killed: {outcomes}")
        run([tool("esdm-mkfs"), "--check"])


def test_kill__of_one_writer_leaves_the_other():
    with Site():
        must("write", "a", 1, 1)
        must("write", "b", 1, 1)
        with Writer("a", 2, 1000000) as victim, Writer("b", 2, 20) as other:
            victim.wait_for("committed")
            other.wait_for("committed")
            victim.kill()
            done = other.finish()
        expect(done.returncode == 0, shown(done))
        check_last_commit("b", 20, 20)
        check_goes_on("a", check_last_commit("a", 1, 1000000))


main(test_kill__at_system_calls, test_kill__at_random_times,
     test_kill__of_an_unmodified_program_leaves_the_old_or_the_new_container,
     test_kill__of_one_writer_leaves_the_other)
