#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-run --report of programs that use files by MPI: raw, through netCDF-4 and PnetCDF, and in Fortran.

watched.py: KIND=PROGRAM …, programs that were built: openmpi, mpich (mpi_files.c), mpi, pnetcdf (stock.c)."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import esdmtest
import mpirun
from esdmtest import expect

HERE = pathlib.Path(__file__).parent
PROGRAMS = dict(argument.split("=", 1) for argument in sys.argv[1:])
RANKS = 4


def reported(mpi, env, *command):
    """The one report of all ranks."""
    line = [mpirun.launcher(mpi), "-n", str(RANKS), esdmtest.tool("esdm-run"), "-q", "--report", "--json", *command]
    done = subprocess.run(line, env=env, timeout=600, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False)
    expect(done.returncode == 0, f"{line}: {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    expect(done.stderr.count('"command"') == 1, f"not one report: {done.stderr[-3000:]}")
    report = json.loads(done.stderr[done.stderr.index("{\n"):])
    expect(report["ranks"] == RANKS, str(report["ranks"]))
    return report


def by_mpi(report, name):
    found = [f for f in report["mpi_files"] if f["file"].endswith(name)]
    expect(len(found) == 1, f"{name}: {json.dumps(report['mpi_files'], indent=1)[:4000]}")
    return found[0]


@esdmtest.by_clock
def raw(mpi, folder, env):
    report = reported(mpi, env, PROGRAMS[mpi], str(folder / f"{mpi}.data"))
    file = by_mpi(report, f"/{mpi}.data")
    steps, width = 40, 4000
    expect(file["ranks"] == RANKS and file["through_gaps"] == RANKS * steps, str(file))
    expect(file["writes"]["collective"] == RANKS * steps and file["writes"]["independent"] == 0, str(file))
    expect(file["write"]["bytes"] == RANKS * steps * width * 4, str(file))
    expect(file["reads"]["independent"] == RANKS * (steps * width // 100 + 1), str(file))
    # The last read of each rank is half beyond the end.
    expect(file["read"]["bytes"] == RANKS * (steps * width * 4 + 200), str(file))
    # Rank 1 slept 0.2 s before five of its calls: the others waited for it.
    expect(file["latest_rank"] == 1 and file["waiting_seconds"] > 0.5 * (RANKS - 1) * 5 * 0.2, str(file))
    expect(file["hints_asked"] == {"cb_nodes": "1", "of_no_library": "7"}, str(file))
    expect(file["hints_used"].get("cb_nodes") == "1", str(file))
    other = by_mpi(report, f"/{mpi}.data.pointers")
    expect(other["writes"]["collective"] == 2 * RANKS and other["writes"]["independent"] == 2 * RANKS, str(other))
    expect(other["write"]["bytes"] == 4 * 10 * RANKS and other["read"]["bytes"] == 10 * RANKS, str(other))
    texts = " ".join(a["text"] for a in report["advice"])
    expect("waited for the last one to call" in texts and "rank 1" in texts, texts)
    # What MPI does with the file is seen, too, and is no time of MPI.
    plain = [f for f in report["files"] if f["file"].endswith(f"/{mpi}.data")]
    expect(len(plain) == 1 and plain[0]["write"]["bytes"] == RANKS * steps * width * 4, str(plain))
    waited = file["writes"]["collective_seconds"] + file["reads"]["independent_seconds"]
    expect(0 < report["time"]["mpi"], f"{report['time']} {waited}")


def stock(kind, folder, env):
    """Collective and independent calls of a variable become those of the file, whose chunks are netCDF's own: "chunk_steps" is for files
    that one process writes."""
    form = {"mpi": "nc4", "pnetcdf": "cdf5"}[kind]
    path = folder / f"{form}.nc"
    report = reported("openmpi", {**env, "ESDM_NC_CHUNK_STEPS": "8"}, PROGRAMS[kind], str(path), form)
    if kind == "mpi":
        header = subprocess.run(["ncdump", "-hs", path], env=env, capture_output=True, text=True, check=True).stdout
        expect("records:_ChunkSizes = 1, " in header, header)
    file = by_mpi(report, path.name)
    field = RANKS * 16 * 500 * 4
    variables = {v["variable"]: v["write"] for v in report["variables"]}
    expect(variables["together"]["calls"] == 20 * RANKS and variables["together"]["bytes"] == 20 * field, str(variables))
    expect(variables["alone"]["bytes"] == 4 * field, str(variables))
    expect(file["writes"]["collective"] >= 20 * RANKS and file["writes"]["collective_bytes"] >= 20 * field, str(file))
    expect(file["writes"]["independent"] >= 4 * RANKS and file["writes"]["independent_bytes"] >= 4 * field, str(file))
    expect(file["ranks"] == RANKS, str(file))
    expect(report["time"]["mpi"] > 0, str(report["time"]))


def fortran(mpi, folder, env):
    compiler = shutil.which(f"mpifort.{mpi}")
    if not compiler:
        mpirun.missing(f"no mpifort.{mpi}")
    program = folder / f"fortran.{mpi}"
    subprocess.run([compiler, "-o", str(program), str(HERE / "mpi_files.f90")], cwd=folder, check=True)
    report = reported(mpi, env, str(program), str(folder / f"f.{mpi}"))
    for end in ("old", "f08"):
        file = by_mpi(report, f"/f.{mpi}.{end}")
        expect(file["writes"]["collective"] == 5 * RANKS and file["writes"]["independent"] == 3 * RANKS, str(file))
        expect(file["write"]["bytes"] == 8 * 400 * RANKS, str(file))


def page(folder, env):
    """The text for people, of records that were kept; nothing is wrong with the trace."""
    records = folder / "records"
    mpirun.run("openmpi", RANKS, [esdmtest.tool("esdm-run"), "-q", "--records", str(records), PROGRAMS["openmpi"],
                                  str(folder / "kept")], env)
    text = esdmtest.run([esdmtest.tool("esdm-explain"), "--page", folder / "page.html", "--trace",
                         folder / "calls.jsonl", records]).stdout
    for words in ("file by MPI", "4 ranks: 160 collective calls", "ranks waited", "hint cb_nodes=1",
                  "MPI: ranks wait"):
        expect(words in text, f"{words}:\n{text}")
    expect("Files by MPI" in (folder / "page.html").read_text(), "page")
    calls = [json.loads(line) for line in (folder / "calls.jsonl").read_text().splitlines()]
    own = [c for c in calls if c["call"] == "MPI_File_write_all" and c["rank"] == 2]
    # Places in the file, through the view.
    expect([c["position"] for c in own] == [(step * RANKS + 2) * 16000 for step in range(40)], str(own[:3]))
    expect(all(c["collective"] and not c["in_mpi"] for c in own), str(own[:1]))
    if shutil.which("otf2-print"):
        archive = folder / "run.otf2"
        esdmtest.run([esdmtest.tool("esdm-explain"), "--quiet", "--trace", archive, records])
        named = esdmtest.run(["otf2-print", "-G", archive]).stdout
        expect(all(f'Name: "rank {rank}" ' in named for rank in range(RANKS)) and '"MPI-IO"' in named, named)
        events = esdmtest.run(["otf2-print", archive]).stdout
        expect(events.count("Operation Flags: {COLLECTIVE}") >= 160, "collective calls of all ranks")
    expect(any(c["in_mpi"] for c in calls if c["call"] in ("pwrite64", "pwrite", "pwritev", "write")), "in_mpi")


def main():
    with tempfile.TemporaryDirectory(prefix="esdm-test-watched.") as name:
        folder = pathlib.Path(name)
        env = mpirun.environment(name)
        done = []
        for kind in PROGRAMS:
            if kind in ("openmpi", "mpich"):
                raw(kind, folder, env)
                fortran(kind, folder, env)
            else:
                stock(kind, folder, env)
            done.append(kind)
        if "openmpi" in PROGRAMS:
            page(folder, env)
        if not done:
            mpirun.missing("there was no MPI when ESDM was built")
        print("watched:", *done)


main()
