#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-replay: a recorded program and its replay make the same calls, as the monitor counts them."""

import json
import pathlib

from esdmtest import (Site, client_environment, environment, expect, main, need_data, need_program,
                      run, tool)

KINDS = ("read", "write", "commit", "open", "close")


def counted(files):
    """What the monitor's statistics of processes say: calls and bytes by kind and dataset."""
    sums = {}
    for file in files:
        for line in pathlib.Path(file).read_text().splitlines():
            for s in json.loads(line)["spans"]:
                if s["kind"] in KINDS:
                    key = (s["kind"], s["dataset"])
                    count, size = sums.get(key, (0, 0))
                    sums[key] = (count + s["count"], size + s["bytes"])
    return sums


def made_by_program(files):
    """The same of traces, without what calls of the program made ESDM do: a commit reads bounds of
    coordinates for the index of places, where attributes say that they are some."""
    sums = {}
    for file in files:
        spans = [s for s in map(json.loads, file.read_text().splitlines())
                 if s.get("kind") in KINDS]
        ids = {s["id"] for s in spans}
        for s in spans:
            if s["cause"] not in ids:
                key = (s["kind"], s["dataset"])
                count, size = sums.get(key, (0, 0))
                sums[key] = (count + 1, size + s["bytes"])
    return sums


def other_site(s):
    """A second site, which has none of the program's containers; the path of its configuration."""
    config = s.file("other/site.json")
    config.parent.mkdir()
    config.write_text(json.dumps({
        "targets": [{"name": "disk", "plugin": "posix", "directory": "packs"}],
        "metadata": {"plugin": "sqlite", "directory": "meta"}, "engine": {"threads": 1}}))
    run([tool("esdm-mkfs"), config])
    return config


def replayed(s, records, config):
    """What the replay tells, and what the monitor counted in the process that replays."""
    folder = s.file(f"stats-{config.parent.name}")
    folder.mkdir()
    done = run([tool("esdm-replay"), "--json", "--config", config, records],
               env=environment({"ESDM_MONITOR": f"stats:{folder}/%p.json"}))
    # The process that makes the inputs writes them, and reads nothing.
    players = [f for f in folder.iterdir() if any(k[0] == "read" for k in counted([f]))]
    return json.loads(done.stdout), counted(players)


def test_cdo():
    need_program("cdo")
    files = sorted(need_data("cmip6").rglob("*.nc"), key=lambda f: (f.stat().st_size, f.name))
    with Site() as s:
        run([tool("esdm-cp"), "--quiet", files[0], "esdm://in.nc"])
        records = s.file("records")
        run([tool("esdm-run"), "--records", records, "cdo", "-s", "timmean", "esdm://in.nc",
             "esdm://out.nc"], env=client_environment())
        program = made_by_program(records.glob("*.trace.jsonl"))
        reads = {k: v for k, v in program.items() if k[0] == "read"}
        writes = {k: v for k, v in program.items() if k[0] == "write"}
        expect(sum(v[0] for v in reads.values()) > 20 and writes and
               program["commit", None][0] >= 1, f"it read and wrote: {program}")
        for config in (s.config, other_site(s)):
            report, did = replayed(s, records, config)
            expect(did == program, f"{did}\nis not\n{program}")
            expect(report["processes"] == 1 and report["left_out"] == report["failed"] == 0,
                   f"{report}")
            told = {o["operation"]: o for o in report["operations"]}
            for kind, counts in (("read", reads), ("write", writes)):
                expect((told[kind]["calls"], told[kind]["bytes"]) ==
                       tuple(sum(v[i] for v in counts.values()) for i in (0, 1)), f"{told}")
                expect(told[kind]["seconds"] > 0 and told[kind]["recorded_seconds"] > 0, f"{told}")
            left = run([tool("esdm-ls"), "--config", config]).stdout.split()
            expect(left == (["in.nc", "out.nc"] if config == s.config else []),
                   f"what was there is left, and nothing else: {left}")
        text = run([tool("esdm-replay"), "--compare", records]).stdout
        expect("recorded" in text and "ratio" in text and "1 process" in text, text)


PYTHON = """
import sys, netCDF4
with netCDF4.Dataset(sys.argv[1]) as a, netCDF4.Dataset(sys.argv[2], "w") as b:
    group = b.createGroup("g")
    for name, variable in a.variables.items():
        for d in variable.dimensions:
            if d not in group.dimensions:
                group.createDimension(d, None if a.dimensions[d].isunlimited()
                                      else len(a.dimensions[d]))
        if variable.ndim > 0:
            made = group.createVariable(name, variable.dtype, variable.dimensions, zlib=True)
            made[:] = variable[:]
"""


def test_plain_files():
    """NetCDF calls on files become calls on containers: as many, of as many bytes."""
    need_program("cdo", "ncks")
    files = sorted(need_data("cmip6").rglob("*.nc"), key=lambda f: (f.stat().st_size, f.name))
    with Site() as s:
        for name, command in (("cdo", ["cdo", "-s", "timmean", files[0], s.file("mean.nc")]),
                              ("ncks", ["ncks", "-O", "-4", "-L1", files[0], s.file("copy.nc")]),
                              ("python", ["/usr/bin/python3", "-c", PYTHON, files[0],
                                          s.file("group.nc")])):
            records = s.file(name)
            run([tool("esdm-run"), "--records", records, *command], env=client_environment())
            calls = s.file(f"{name}.jsonl")
            run([tool("esdm-explain"), "--trace", calls, records])
            program = {}
            for call in map(json.loads, calls.read_text().splitlines()):
                way = {"get": "read", "put": "write"}.get(call["call"][3:6])
                if call["variable"] and way:
                    key = (way, "/" + call["variable"].removeprefix("/"))
                    count, size = program.get(key, (0, 0))
                    program[key] = (count + 1, size + call["bytes"])
            folder = s.file(f"stats-{name}")
            folder.mkdir()
            done = run([tool("esdm-replay"), "--json", records],
                       env=environment({"ESDM_MONITOR": f"stats:{folder}/%p.json"}))
            told = {o["operation"]: o["calls"] for o in json.loads(done.stdout)["operations"]}
            expect(told["open"] == told["create"] == 1 and told["close"] == 2, f"{name}: {told}")
            players = [f for f in folder.iterdir() if any(k[0] == "read" for k in counted([f]))]
            did = {k: v for k, v in counted(players).items() if k[0] in ("read", "write")}
            expect(did == program and len(did) > 4, f"{name}: {did}\nis not\n{program}")
        expect(run([tool("esdm-ls")]).stdout == "", "nothing is left")


def test_containers_under_names_of_files():
    """What a route makes a container is one call of the program, not two."""
    need_program("ncks")
    files = sorted(need_data("cmip6").rglob("*.nc"), key=lambda f: (f.stat().st_size, f.name))
    with Site() as s:
        folder = s.file("routed")
        folder.mkdir()
        routed = folder / "x.nc"
        for name, command, kept in (("to", ["ncks", "-O", files[0], routed], "write"),
                                    ("from", ["ncks", "-O", routed, s.file("y.nc")], "read")):
            records = s.file(name)
            run([tool("esdm-run"), "--records", records, *command],
                env=client_environment({"ESDM_NC_ROUTE": str(folder)}))
            calls = made_by_program(records.glob("*.trace.jsonl"))
            done = run([tool("esdm-replay"), "--json", records])
            told = {o["operation"]: o for o in json.loads(done.stdout)["operations"]}
            expect(told["open"]["calls"] == told["create"]["calls"] == 1, f"{name}: {told}")
            bytes_ = sum(v[1] for k, v in calls.items() if k[0] == kept)
            expect(told["read"]["bytes"] == told["write"]["bytes"] == bytes_ > 0,
                   f"{name}: {told} {calls}")


main(test_cdo, test_plain_files, test_containers_under_names_of_files)
