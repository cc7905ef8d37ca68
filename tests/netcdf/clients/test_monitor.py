#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""What is observed of ESDM when a stock program runs: every byte, and who caused what."""

import json
import signal
import subprocess
import time

from esdmtest import (Site, client, client_environment, expect, expect_error, main, need_data,
                      need_program, run, skip, tool)


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def spans(path, kind):
    return [line for line in lines(path) if line.get("kind") == kind]


def within(inner, outer):
    return (outer["start_ns"] <= inner["start_ns"]
            and inner["start_ns"] + inner["ns"] <= outer["start_ns"] + outer["ns"])


def values_bytes(file, variable):
    """What a variable has, by ncdump's own count."""
    head = run(["ncks", "--trd", "-m", "-v", variable, file]).stdout
    size = [line for line in head.splitlines() if " size (RAM) = " in line]
    return int(size[0].split("=")[-1].split()[0])


def test_spans_have_their_causes_and_bytes():
    need_program("ncks")
    file = need_data("fields", "era5_u.nc")
    with Site(monitor={"modules": ["stats", "trace"], "trace_file": "t.%r.jsonl",
                       "stats_file": "s.json"}) as site:
        client(["nccopy", file, "esdm://a.nc"])
        trace = site.file("t.0.jsonl")
        calls, writes = spans(trace, "netcdf-write"), spans(trace, "write")
        by_id = {s["id"]: s for s in calls + writes}
        written = [s for s in writes if s["dataset"] == "/era5_u"]
        expect(sum(s["bytes"] for s in written) == values_bytes(file, "era5_u"),
               f"not every byte was seen: {written}")
        for write in writes:
            call = by_id[write["cause"]]
            expect(call["kind"] == "netcdf-write" and within(write, call), f"{write} {call}")
        commit = spans(trace, "commit")[-1]
        expect(any(c["cause"] == commit["id"] for c in spans(trace, "catalog")),
               "the transaction is not part of the commit")
        known = {s["id"] for s in lines(trace) if s["what"] == "span"}
        for kind in ("encode", "append"):
            found = spans(trace, kind)
            expect(found and all(s["cause"] in known for s in found), f"{kind}: {found}")
        packs = sum(p.stat().st_size for p in site.pack_files())
        expect(packs >= sum(s["bytes"] for s in spans(trace, "append")) > 0, "appends and packs")
        stats = lines(site.file("s.json"))
        totals = {}
        for line in stats:
            expect(line["dropped"] == 0 and line["trace_failure"] is None, str(line))
            for s in line["spans"]:
                totals[s["kind"]] = totals.get(s["kind"], 0) + s["bytes"]
        expect(totals["write"] == sum(s["bytes"] for s in writes), f"{totals}")

        trace.unlink()
        client(["ncks", "--trd", "-H", "-C", "-v", "era5_u", "esdm://a.nc"])
        read = [s for s in spans(trace, "read") if s["dataset"] == "/era5_u"]
        expect(sum(s["bytes"] for s in read) == values_bytes(file, "era5_u"), f"{read}")
        known = {s["id"] for s in lines(trace) if s["what"] == "span"}
        expect(all(s["cause"] in known for s in spans(trace, "fetch")), "fetches without a cause")


def test_the_environment_counts_more_than_the_site():
    file = need_data("fields", "era5_u.nc")
    with Site(monitor={"modules": ["stats"], "stats_file": "s.json"}) as site:
        chrome = site.file("c.json")
        client(["nccopy", file, "esdm://a.nc"], env={"ESDM_MONITOR": f"trace:{chrome},node"})
        expect(not site.file("s.json").exists(), "statistics, though nobody asked")
        text = chrome.read_text().rstrip()
        events = json.loads(text.rstrip(",") + "]")
        names = {e["name"] for e in events}
        expect({"write", "append", "commit", "node", "process_name"} <= names, f"{names}")
        client(["nccopy", file, "esdm://b.nc"], env={"ESDM_MONITOR": "off"})
        expect(not site.file("s.json").exists(), "statistics, though they are off")
        done = client(["nccopy", file, "esdm://b.nc"], env={"ESDM_MONITOR": "stats,trail"},
                      check=False)
        expect_error(done, "ESDM_MONITOR: 'trail' is none of stats")
    with Site(make=False, monitor={"modules": ["stat"]}):
        expect_error(run([tool("esdm-mkfs")], check=False), "monitor.modules[0]", "stats")


def test_a_killed_program_leaves_its_trace():
    """A writer that is killed in the middle: what it did until then can be read, line by line."""
    file = need_data("fields", "era5_u.nc")
    with Site() as site:
        trace = site.file("killed.jsonl")
        env = client_environment({"ESDM_MONITOR": f"trace:{trace}"})
        loop = f"while :; do nccopy {file} esdm://k.nc || exit 1; done"
        program = subprocess.Popen([tool("esdm-run"), "sh", "-c", f"exec bash -c '{loop}'"],
                                   env=env, start_new_session=True, stdin=subprocess.DEVNULL)
        try:
            for _ in range(1200):
                if trace.exists() and trace.read_text().count("\n") > 40:
                    break
                time.sleep(0.05)
        finally:
            program.send_signal(signal.SIGKILL)
            run(["kill", "-9", "--", f"-{program.pid}"], check=False)
            program.wait()
        text = trace.read_text()
        whole = text[:text.rfind("\n") + 1].splitlines()
        expect(len(whole) > 40 and all(json.loads(line) for line in whole), "a broken trace")


POWER = """
mount -t tmpfs power /sys/class || exit 77
cd /sys/class
zone() { mkdir -p "powercap/$1"; echo "$2" > "powercap/$1/name"; echo 1000000000 > "powercap/$1/energy_uj"; }
zone intel-rapl:0 package-0; zone intel-rapl:0:0 core; zone intel-rapl:1 psys; zone intel-rapl-mmio:0 package-0
joule() { echo "$1" > powercap/new; mv powercap/new "powercap/$2/energy_uj"; }
( i=0; while :; do i=$((i + 1)); joule $((1000000000 + 1000000 * i)) intel-rapl:0
  for z in intel-rapl:0:0 intel-rapl:1 intel-rapl-mmio:0; do joule $((1000000000 + 50000000 * i)) $z; done; done ) &
counting=$!
before=$(cat powercap/intel-rapl:0/energy_uj)
"$@"; status=$?
after=$(cat powercap/intel-rapl:0/energy_uj)
kill $counting
echo "joules $before $after"
exit $status
"""


def test_energy_is_that_of_packages():
    """Counters of processors as Linux shows them (RAPL), made up: of the parts of a package, the whole machine (psys), and the same
    package seen a second way (mmio) nothing is added."""
    need_program("unshare")
    file = need_data("fields", "pop_SST.nc")
    with Site() as site:
        stats = site.file("energy.json")
        done = client(["unshare", "-m", "/bin/sh", "-c", POWER, "sh", "nccopy", file, "esdm://a.nc"], check=False,
                      env={"ESDM_MONITOR": f"stats:{stats},node"})
        if not stats.exists() and ("unshare:" in done.stderr or done.returncode == 77):
            skip("no mount in a namespace of its own")
        expect(done.returncode == 0, done.stderr)
        before, after = map(int, done.stdout.split("joules", 1)[1].split())
        energy = max(line["node"]["energy_j"] for line in lines(stats))
        print(f"    {energy:.0f} J, {(after - before) / 1e6:.0f} J while the program ran", flush=True)
        expect(0 < energy <= (after - before) / 1e6, f"{energy} J of {before} to {after}")


main(test_energy_is_that_of_packages, test_spans_have_their_causes_and_bytes,
     test_the_environment_counts_more_than_the_site, test_a_killed_program_leaves_its_trace)
