#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""esdm-tune: parameters that are none of the engine's: the chunk cache of plain netCDF files, requests to targets on S3, ranks
that store for others, what earlier runs did, and options of esdm-run."""

import json
import os
import subprocess

import mpirun
from esdmtest import (BUILD, Site, by_clock, by_size, client_environment, environment, expect, expect_error, main, need_program, run, skip,
                      tool)
from s3proxy import Proxy, Rule, delay
from s3server import Server
from slow_device import slow_device

os.environ["ESDM_PLUGIN_PATH"] = str(BUILD / "plugins")
PYTHON = "/usr/bin/python3"
STEPS = by_size(400, 600, 1460)
STATIONS = 16

# As netCDF makes it: a chunk for each step. 22 MB at least, more than netCDF's chunk cache.
MAKE = """
import sys, netCDF4, numpy
values = numpy.add.outer(numpy.arange(96), numpy.arange(144)).astype("f4")
with netCDF4.Dataset(sys.argv[1], "w") as d:
    for name, size in (("time", None), ("lat", 96), ("lon", 144)):
        d.createDimension(name, size)
    v = d.createVariable("tas", "f4", ("time", "lat", "lon"), zlib=True)
    for i in range(int(sys.argv[2])):
        v[i] = values + i % 30
"""

# What a tutorial does.
SERIES = """
import sys, netCDF4
v = netCDF4.Dataset(sys.argv[1])["tas"]
for i in range(int(sys.argv[2])):
    print(v[:, i * 5, i * 7].mean())
"""


def series_of(site):
    data = site.file("tas.nc")
    script = site.file("series.py")
    script.write_text(SERIES)
    run([PYTHON, "-c", MAKE, data, STEPS])
    return [PYTHON, script, data, STATIONS]


def chunks_read(command, site):
    """How often a piece of the file was read, and what the program printed."""
    log = site.file("calls")
    command = [str(c) for c in ["strace", "-f", "-qq", "-o", log, "-e", "trace=pread64", tool("esdm-run"), *command]]
    done = subprocess.run(command, env=client_environment({"ESDM_DEBUG": "1"}), text=True, capture_output=True, check=True)
    return log.read_text().count("pread64("), done.stdout, done.stderr


@by_clock
def test_the_chunk_cache_of_plain_files():
    need_program("strace")
    with Site() as site:
        command = series_of(site)
        reads, values, said = chunks_read(command, site)
        expect(reads >= STEPS * STATIONS and "chunk cache" not in said, f"netCDF's own cache: {reads} reads")
        found = json.loads(run([tool("esdm-tune"), "--json", "--quiet", "--try=chunk-cache=16M,256M", "--pairs=2", "--apply", "--",
                                *command]).stdout)
        print(f"    {1 / found['ratio']:.1f} times as fast: {found['best']}", flush=True)
        expect(found["better"] and found["best"] == {"chunk-cache": 256 << 20} and found["ratio"] < 0.5, f"{found}")
        config = json.loads(site.config.read_text())
        expect(config["netcdf"] == {"chunk_cache": 256 << 20}, f"{config}")
        fewer, same, said = chunks_read(command, site)
        expect(f"chunk cache of plain files: {256 << 20} bytes: status 0" in said, said)
        expect(fewer < STEPS + STEPS // 4 and same == values, f"each chunk is read once: {fewer} reads in place of {reads}")


# As fast with 64M as with more.
ENOUGH = """case "$ESDM_NC_CHUNK_CACHE" in
67108864) sleep 0.41 ;;
268435456) sleep 0.405 ;;
1073741824) sleep 0.4 ;;
*) sleep 1 ;;
esac"""


@by_clock
def test_the_least_chunk_cache_that_is_as_fast():
    with Site():
        for how in ([], ["--exhaustive"]):
            found = json.loads(run([tool("esdm-tune"), "--json", "--quiet", "--try=chunk-cache", "--pairs=1", *how, "--", "sh", "-c", ENOUGH]).stdout)
            expect(found["better"] and found["best"] == {"chunk-cache": 64 << 20}, f"{how}: {found}")


# What netCDF tells with a cache that the program states before its first file, and with none.
OWN = """
import sys, netCDF4
if sys.argv[2] == "own":
    netCDF4.set_chunk_cache(1234567, 1009, 0.5)
d = netCDF4.Dataset(sys.argv[1])
print(netCDF4.get_chunk_cache(), d["tas"].get_var_chunk_cache())
d["tas"].set_var_chunk_cache(7654321, 2003, 0.25)
print(d["tas"].get_var_chunk_cache())
"""


def test_a_program_that_states_its_chunk_cache():
    with Site() as site:
        data = site.file("tas.nc")
        run([PYTHON, "-c", MAKE, data, 3])
        for who, wanted in (("site", (64 << 20, 4133, 0.75)), ("own", (1234567, 1009, 0.5))):
            said = run([tool("esdm-run"), "-q", PYTHON, "-c", OWN, data, who], env=client_environment({"ESDM_NC_CHUNK_CACHE": "64M"})).stdout
            expect(said == f"{wanted} {wanted}\n(7654321, 2003, 0.25)\n", f"{who}: {said}")


def test_whose_chunk_cache_counts():
    """The environment's, then that of the site; what is none is said or left out; a number for what starts below."""
    show = ["-q", "sh", "-c", "echo \"<$ESDM_NC_CHUNK_CACHE>\""]
    with Site() as site:
        config = json.loads(site.config.read_text())
        for value, seen in ((1 << 26, "67108864"), ("64M", "67108864"), ("64 MiB", "67108864"), ("64MB", "64000000"), (None, "")):
            config["netcdf"] = {"accuracy_attributes": "keep"} | ({} if value is None else {"chunk_cache": value})
            for indent in (None, 4):
                site.config.write_text(json.dumps({"note": "a \"netcdf\": {", **config}, indent=indent))
                done = run([tool("esdm-run"), *show])
                expect(done.stdout == f"<{seen}>\n", f"{value}: {done.stdout}")
            if value is not None:
                done = run([tool("esdm-run"), *show], env=environment({"ESDM_NC_CHUNK_CACHE": "1G"}))
                expect(done.stdout == f"<{1 << 30}>\n", done.stdout)
        config["netcdf"]["chunk_cache"] = "64M"
        site.config.write_text(json.dumps(config))
        done = run([tool("esdm-run"), *show], env=environment({"ESDM_NC_CHUNK_CACHE": ""}))
        expect(done.stdout == "<>\n", f"an empty one takes it away: {done.stdout}")
        done = run([tool("esdm-run"), *show], env=environment({"ESDM_NC_CHUNK_CACHE": "much"}))
        expect("expected a size such as 256M" in done.stderr and done.stdout == "<>\n", done.stderr + done.stdout)
        run([tool("esdm-ls")])
        for bad in ("1K", "much", -1):
            config["netcdf"]["chunk_cache"] = bad
            site.config.write_text(json.dumps(config))
            expect_error(run([tool("esdm-ls")], check=False), "chunk_cache")


def test_a_configuration_that_nobody_named_is_read_when_it_is_ones_own():
    env = {k: v for k, v in environment().items() if k != "ESDM_CONFIG"}
    show = [tool("esdm-run"), "-q", "sh", "-c", "echo \"<$ESDM_NC_CHUNK_CACHE>\""]
    with Site() as site:
        here = site.file("here")
        here.mkdir()
        (here / "esdm.json").write_text(json.dumps(json.loads(site.config.read_text()) | {"netcdf": {"chunk_cache": "2M"}}))
        for mode, seen in ((0o644, str(2 << 20)), (0o666, "")):
            (here / "esdm.json").chmod(mode)
            done = run(show, env=env, cwd=here)
            expect(done.stdout == f"<{seen}>\n", f"{mode:o}: {done.stdout}")
        home = site.file("home")
        (home / "esdm").mkdir(parents=True)
        (here / "esdm.json").rename(home / "esdm" / "site.json")
        (home / "esdm" / "site.json").chmod(0o600)
        done = run(show, env=env | {"XDG_CONFIG_HOME": str(home)}, cwd=here)
        expect(done.stdout == f"<{2 << 20}>\n", done.stdout)


@by_clock
def test_requests_to_s3():
    saved = dict(os.environ)
    with Server() as server, Proxy(server) as proxy:
        os.environ.update(server.client_environment())
        try:
            target = server.target(prefix="tuned", part="5 MiB", endpoint=proxy.endpoint, connections=1)
            with Site(targets=[target], engine={"threads": 8, "fragment": "256K", "inline": 0}) as site:
                proxy.rules = [Rule(delay(0.02))]
                found = json.loads(run([tool("esdm-tune"), "--json", "--quiet", "--kernel=vorpal", "--size=4M", "--try=connections=8",
                                        "--pairs=2", "--apply"]).stdout)
                print(f"    {1 / found['ratio']:.1f} times as fast: {found['best']}", flush=True)
                expect(found["better"] and found["best"] == {"connections": 8} and found["settings"] == 2, f"{found}")
                told = json.loads(site.config.read_text())["targets"][0]
                expect(told["connections"] == 8 and told["part"] == "5 MiB", f"{told}")
                found = json.loads(run([tool("esdm-tune"), "--json", "--quiet", "--kernel=vorpal", "--size=64K", "--try=part=8M", "--trials=2",
                                        "--pairs=0"]).stdout)
                expect([t["setting"]["part"] for t in found["trials"]] == [5 << 20, 8 << 20], f"{found}")
        finally:
            os.environ.clear()
            os.environ.update(saved)


FAR = str(BUILD / "tests/integration/far_program")
ORDER = [3, 17, 8, 21, 2, 13, 1, 20, 5, 11, 7, 16]  # which nobody foresees who has not seen it


def tuned(*command, env=None):
    done = run([tool("esdm-tune"), "--json", "--quiet", *command], env=env or environment())
    return json.loads(done.stdout), done.stderr


@by_clock
def test_what_earlier_runs_read():
    targets = [{"name": "far", "plugin": "background", "directory": "far", "latency_ms": 40}]
    with Site(targets=targets, engine={"threads": 2, "memory": "64 MiB", "earlier_runs": "off"}) as site:
        run([FAR, "write", "far.nc", 24, 60, 90, "none", 1])
        found, _ = tuned("--try=earlier-runs", "--pairs=1", "--apply", "--", FAR, "steps", "far.nc", *ORDER)
        print(f"    {1 / found['ratio']:.1f} times as fast: {found['best']}", flush=True)
        expect(found["better"] and found["best"] == {"earlier-runs": "prefetch"} and found["ratio"] < 0.8, f"{found}")
        expect(json.loads(site.config.read_text())["engine"]["earlier_runs"] == "prefetch", site.config.read_text())


# How many processes have stored more than the end of what they gave up, run after run.
WRITERS = """: > "$THROTTLED_APPENDS"
"$@" || exit 1
cut -d ' ' -f 1 "$THROTTLED_APPENDS" | sort | uniq -c | awk '$1 > 2' | wc -l >> "$0"
"""


def program_of_mpi(folder, name):
    for mpi in "mpich", "openmpi":
        program = BUILD / folder / f"{name}_{mpi}"
        if program.exists():
            return mpi, program
    return skip("built without MPI")


def test_ranks_that_store_for_others():
    mpi, program = program_of_mpi("tests/integration/ranks", "handover")
    with Site(targets=[{"name": "disk", "plugin": "throttled", "directory": "packs"}], engine={"threads": 1}) as site:
        counts = site.file("counts")
        env = mpirun.environment(site.folder, **environment({"THROTTLED_APPENDS": str(site.file("appends"))}))
        found, _ = tuned("--try=io-ranks=1", "--pairs=0", "--", "sh", "-c", WRITERS, counts, mpirun.launcher(mpi), "-n", "4",
                         program, "steps", env=env)
        expect([t["setting"]["io-ranks"] for t in found["trials"]] == [0, 1], f"{found}")
        expect(counts.read_text().split() == ["4", "1"], f"ranks that stored: {counts.read_text()}")


def expect_told(site, found, said, command):
    """What a site cannot state is told, and nothing is changed."""
    expect(found["command"] == command, f"{found}")
    expect(f"Start the program so:\n  {' '.join(command)}\n" in said, said)
    expect("has nothing to change" in said and not list(site.folder.rglob("*before-esdm-tune")), said)


@by_clock
def test_strided_reads_of_plain_files():
    def sparse(path):
        with open(path, "wb") as file:
            file.truncate(400 * 1024000)

    with Site() as site, slow_device(sparse) as file:
        text = site.config.read_text()
        command = [BUILD / "tests/netcdf/clients/nc_watched", "read", file, by_size(200, 300, 390), 1024, 1024000, 100]
        found, said = tuned("--try=read-ahead", "--pairs=1", "--apply", "--", *command)
        print(f"    {1 / found['ratio']:.1f} times as fast: {found['best']}", flush=True)
        expect(found["better"] and found["best"] == {"read-ahead": "on"} and found["ratio"] < 0.8, f"{found}")
        expect_told(site, found, said, ["esdm-run", "--read-ahead", *map(str, command)])
        expect(site.config.read_text() == text, site.config.read_text())


# Packs of 64M make it faster where it is started with --read-ahead, or (with an argument) always.
TOGETHER = """case "$ESDM_WATCH_AHEAD:$(grep -c 67108864 "$ESDM_CONFIG")" in
1:1) sleep 0.1 ;;
1:*) sleep 0.4 ;;
*:1) sleep "${1-0.8}" ;;
*) sleep 0.8 ;;
esac"""


@by_clock
def test_what_is_faster_only_with_an_option():
    """What a site states holds for programs that are started without the option, too."""
    for more, applied in ([], False), (["-", "0.5"], True):
        with Site() as site:
            text = site.config.read_text()
            found, said = tuned("--try=read-ahead", "--try=pack=64M", "--pairs=1", "--exhaustive", "--apply", "--", "sh", "-c", TOGETHER, *more)
            expect(found["best"] == {"read-ahead": "on", "pack": 64 << 20}, f"{found}")
            expect(found["command"] == ["esdm-run", "--read-ahead", "sh", "-c", TOGETHER, *more] and "Start the program so:" in said, f"{found}")
            expect((json.loads(site.config.read_text()).get("engine", {}).get("pack") == 64 << 20) == applied, site.config.read_text())
            expect(applied or ("not faster without that: it stays" in said and site.config.read_text() == text), said)


# Bytes that all ranks have read, run after run.
BYTES = """"$@" || exit 1
grep rchar "/proc/$$/io" >> "$0"
"""


def test_hints_of_mpi():
    """ROMIO reads what lies between pieces, until a hint says that it need not."""
    program = BUILD / "tests/netcdf/parallel/mpi_hinted_mpich"
    if not program.exists():
        skip("built without MPICH")
    with Site() as site:
        log = site.file("bytes")
        env = mpirun.environment(site.folder, **environment())
        found, _ = tuned("--try=mpi-hints", "--pairs=0", "--", "sh", "-c", BYTES, log, mpirun.launcher("mpich"), "-n", "4", tool("esdm-run"),
                         program, site.file("in"), site.file("out"), env=env)
        expect([t["setting"]["mpi-hints"] for t in found["trials"]] == ["off", "on"], f"{found}")
        read = [int(line.split()[1]) for line in log.read_text().splitlines()]
        print(f"    MiB read: {[n >> 20 for n in read]}", flush=True)
        # As it is; then four runs to learn from, of which two have no hint yet, and the trial.
        expect(len(read) == 6 and min(read[:3]) > 5 * read[-1], f"bytes read: {read}")


def test_what_changes_nothing_is_refused():
    with Site():
        for arguments, *texts in ((["--try=io-ranks", "--kernel=vpic"], "programs with ranks", "mpirun -n 4 PROGRAM"),
                                  (["--try=read-ahead", "--kernel=vpic"], "an option of esdm-run"),
                                  (["--try=read-ahead", "--", tool("esdm-run"), "--read-ahead", "true"], "leave --read-ahead out"),
                                  (["--try=mpi-hints", "--", "mpirun", "-n", "2", "true"], "mpirun -n 4 esdm-run PROGRAM"),
                                  (["--try=writes=never", "--", "true"], "'never' is no value of writes"),
                                  (["--try=io-ranks=some", "--", "true"], "'some' is no value of io-ranks")):
            expect_error(run([tool("esdm-tune"), *arguments], check=False), *texts)
        bad = run([tool("esdm-tune"), "--try=earlier-runs", "--", "true"], env=environment({"ESDM_EARLIER_RUNS": "off"}), check=False)
        expect_error(bad, "ESDM_EARLIER_RUNS is in the environment", "unset it")


def test_what_a_site_has_not():
    with Site(targets=[{"name": "disk", "plugin": "posix", "directory": "packs"}]):
        bad = run([tool("esdm-tune"), "--kernel=vorpal", "--try=connections"], check=False)
        expect_error(bad, "connections", "targets on S3, of which this site has none")
        bad = run([tool("esdm-tune"), "--try=chunk-cache", "--", "true"], env=environment({"ESDM_NC_CHUNK_CACHE": "1G"}), check=False)
        expect_error(bad, "ESDM_NC_CHUNK_CACHE is in the environment", "unset it")
        found = json.loads(run([tool("esdm-tune"), "--json", "--quiet", "--kernel=vorpal", "--size=64K", "--try=writes", "--pairs=0"]).stdout)
        expect([t["setting"]["writes"] for t in found["trials"]] == ["direct", "background"], f"{found}")


main(test_the_chunk_cache_of_plain_files, test_the_least_chunk_cache_that_is_as_fast, test_a_program_that_states_its_chunk_cache,
     test_whose_chunk_cache_counts, test_a_configuration_that_nobody_named_is_read_when_it_is_ones_own,
     test_requests_to_s3, test_what_earlier_runs_read, test_ranks_that_store_for_others, test_strided_reads_of_plain_files,
     test_what_is_faster_only_with_an_option, test_hints_of_mpi, test_what_changes_nothing_is_refused, test_what_a_site_has_not)
