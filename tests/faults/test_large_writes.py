#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Large chunks that a program stated: several processors store one, in short system calls."""

import json
import re

from esdmtest import BUILD, Site, client_environment, expect, main, run, tool
from faults import need_strace

PROGRAM = str(BUILD / "tests/integration/far_program")
CALL_BYTES = 4 << 20
STEPS = 3


def test_large_writes__a_stated_chunk_is_stored_by_several_threads_in_short_calls():
    need_strace()
    with Site(engine={"threads": 2, "memory": "256 MiB"}) as site:
        log = site.file("calls")
        run(["strace", "-f", "-qq", "-o", str(log), "-e", "trace=pwritev,pwrite64", PROGRAM, "write",
             "large.nc", str(STEPS), "1440", "1500", "none", "1"])
        calls = re.findall(r"pwritev.* = (\d+)$", log.read_text(), re.M)
        large = [int(count) for count in calls if int(count) > 1 << 16]
        expect(sum(large) >= STEPS * 1440 * 1500 * 4, f"other calls: {calls}")
        expect(max(large) <= CALL_BYTES, f"long calls: {large}")
        told = json.loads(run([tool("esdm-stat"), "--json", "large.nc"]).stdout)
        expect(told["containers"][0]["fragments"] >= 2 * STEPS, f"chunks were not cut: {told}")
        run([PROGRAM, "whole", "large.nc"])
        text = run([tool("esdm-run"), "ncdump", "-hs", "esdm://large.nc"],
                   env=client_environment()).stdout
        expect("tas:_ChunkSizes = 1, 1440, 1500" in text, f"the chunk is another one:\n{text}")


main(test_large_writes__a_stated_chunk_is_stored_by_several_threads_in_short_calls)
