#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""ESDM, Zarr 3 with obstore, and Icechunk on one S3 server that is far away: each request is held
back for some milliseconds (bench_delay.c).

    tests/bench/far.py --install VENV                                    once: rivals from PyPI
    tests/bench/far.py --build build --python VENV/bin/python [--repeat 3] [--delay 30] [--mib 1,4]
          [--steps 120] [--stores NAME,…] [--tasks NAME,…] [--server versitygw|minio] [--json FILE]
          [--codec zstd] [--stragglers EVERY,MILLISECONDS]

A variable (time, y, x) of float32 is written without the way, one chunk a step, without
compression (`--codec`: ESDM compresses, the others do not); `--mib` says how large a step is. Then each task is a process of its own, stores take
turns, and what is read must have the same checksum everywhere:

open    the variable is opened; its time is not in the others
point   one value
series  all steps of one point, by one read
loop    40 steps, one after the other
whole   all of it, by one read

Printed are medians by the clock, requests and bytes of answers as bench_delay counts them (opening
included), most requests at once, and the time in units of ESDM's: above 1 ESDM is faster. ESDM's
With --stragglers every so manyth request is held back for so long instead, and ESDM is also measured
with "hedge": false: it does not ask a second time. ESDM's
catalogue is a file of SQLite beside the program; the others have theirs on the server. All data
lies in $TMPDIR, best on tmpfs.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
RIVALS = ["numpy", "netCDF4", "zarr", "obstore", "icechunk"]
TASKS = ["open", "point", "series", "loop", "whole"]
LOOP_STEPS = 40
LIMIT_S = 300


# ---- stores: what runs in a process of its own ----------------------------------------------------


class Esdm:
    def make(self, told, values):
        import netCDF4
        file = netCDF4.Dataset("esdm://far.nc", "w")
        for name, length in zip(("time", "y", "x"), values.shape):
            file.createDimension(name, length)
        variable = file.createVariable("v", "f4", ("time", "y", "x"), chunksizes=(1, *values.shape[1:]))
        for step in range(len(values)):
            variable[step] = values[step]
        file.close()

    def open(self, told):
        import netCDF4
        self.file = netCDF4.Dataset("esdm://far.nc")
        self.file.set_auto_maskandscale(False)
        return self.file["v"]


class Zarr:
    def group(self, told, mode):
        import obstore.store
        import zarr
        import zarr.storage
        store = obstore.store.S3Store(
            told["bucket"], prefix="zarr", endpoint=told["endpoint"], access_key_id=told["access_key"],
            secret_access_key=told["secret_key"], region="us-east-1", virtual_hosted_style_request=False,
            client_options={"allow_http": True})
        return zarr.open_group(zarr.storage.ObjectStore(store, read_only=mode == "r"), mode=mode)

    def make(self, told, values):
        array = self.group(told, "w").create_array("v", shape=values.shape, chunks=(1, *values.shape[1:]),
                                                   dtype="f4", compressors=None)
        array[:] = values

    def open(self, told):
        return self.group(told, "r")["v"]


class Icechunk:
    def storage(self, told):
        import icechunk
        return icechunk.s3_storage(
            bucket=told["bucket"], prefix="icechunk", endpoint_url=told["endpoint"], allow_http=True,
            access_key_id=told["access_key"], secret_access_key=told["secret_key"], region="us-east-1",
            force_path_style=True)

    def make(self, told, values):
        import icechunk
        import zarr
        session = icechunk.Repository.create(self.storage(told)).writable_session("main")
        array = zarr.group(session.store).create_array(
            "v", shape=values.shape, chunks=(1, *values.shape[1:]), dtype="f4", compressors=None)
        array[:] = values
        session.commit("written")

    def open(self, told):
        import icechunk
        import zarr
        session = icechunk.Repository.open(self.storage(told)).readonly_session("main")
        return zarr.open_group(session.store, mode="r")["v"]


NO_HEDGE = "ESDM, no hedge"
STORES = {"ESDM": Esdm, NO_HEDGE: Esdm, "Zarr 3, obstore": Zarr, "Icechunk": Icechunk}


def do(task, variable, shape):
    """What was read, and the seconds that it took."""
    import numpy
    steps, y, x = shape[0], shape[1] * 2 // 3, shape[2] // 3
    started = time.perf_counter()
    if task == "point":
        got = variable[steps // 2, y, x]
    elif task == "series":
        got = variable[:, y, x]
    elif task == "loop":
        got = numpy.array([float(variable[step].sum(dtype="f8")) for step in range(LOOP_STEPS)])
    else:
        got = variable[:]
    seconds = time.perf_counter() - started
    return float(numpy.asarray(got, "f8").sum()), seconds


def worker(told):
    """Called in a process of its own; tells by a line of JSON."""
    import numpy
    if told["store"] in ("ESDM", NO_HEDGE):
        import esdm
        esdm.activate()
    store = STORES[told["store"]]()
    if told["task"] == "make":
        values = numpy.random.default_rng(7).random(told["shape"], "f4")
        store.make(told, values)
        print("{}")
        return
    started = time.perf_counter()
    variable = store.open(told)
    opened = time.perf_counter() - started
    checksum, seconds = (0.0, opened) if told["task"] == "open" else do(told["task"], variable, told["shape"])
    print(json.dumps({"seconds": seconds, "checksum": checksum}))


# ---- the run --------------------------------------------------------------------------------------


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--install", type=pathlib.Path, metavar="VENV",
                        help="make this virtual environment with the rivals, and end")
    parser.add_argument("--python", default=sys.executable, help="that has the rivals")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--delay", type=float, default=30, help="milliseconds of each request")
    parser.add_argument("--mib", default="1,4", help="sizes of a step")
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--stores", default="", help="those whose names have one of these texts")
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--server", default="versitygw")
    parser.add_argument("--codec", default="none", help="ESDM's")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--stragglers", default="", metavar="EVERY,MILLISECONDS")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.build is None and not (options.install or options.worker):
        parser.error("--build is needed")
    return options


def install(venv):
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    subprocess.run([venv / "bin/pip", "install", "-q", *RIVALS], check=True)


class Way:
    """The long way to a server on loopback; use as a context manager."""

    def __init__(self, build, port, milliseconds, stragglers):
        self.process = subprocess.Popen([build / "tests/bench/bench_delay", str(port), str(milliseconds),
                                         *filter(None, stragglers.split(","))],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.endpoint = f"http://127.0.0.1:{int(self.process.stdout.readline())}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(10)

    def counts(self):
        """Of what there was since the last call."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        words = self.process.stdout.readline().split()
        return dict(zip(words[::2], map(int, words[1::2])))


class Run:
    """One size of steps: a site, a server, and what was measured."""

    def __init__(self, options, server, way, folder, mib):
        import s3server
        self.options, self.server, self.way, self.folder = options, server, way, folder
        side = int((mib * (1 << 18)) ** 0.5)
        self.shape = [options.steps, side, side]
        self.told = {"bucket": s3server.BUCKET, "access_key": s3server.ACCESS_KEY,
                     "secret_key": s3server.SECRET_KEY, "shape": self.shape}
        self.runs = {}
        texts = [t.lower() for t in options.stores.split(",") if t]
        self.tasks = [t for t in TASKS if t in options.tasks.split(",")]
        self.stores = [n for n in STORES if (not texts or any(t in n.lower() for t in texts))
                       and (n != NO_HEDGE or options.stragglers)]

    def environment(self):
        build = self.options.build
        env = {k: v for k, v in os.environ.items() if not k.startswith("ESDM_")}
        env.update(self.server.client_environment())
        env.update({"PYTHONPATH": str(SOURCE / "python"), "ESDM_CONFIG": str(self.folder / "site.json"),
                    "ESDM_LIBRARY_DIR": f"{build}:{build / 'netcdf-plugin'}"})
        return env

    def write_site(self, endpoint, hedge=True):
        """What was written without the way is read by it."""
        (self.folder / "site.json").write_text(json.dumps({
            "site": {"name": self.folder.name}, "engine": {"codec": self.options.codec},
            "targets": [self.server.target(prefix="esdm", endpoint=endpoint, hedge=hedge)],
            "metadata": {"plugin": "sqlite", "directory": "metadata"}}))

    def work(self, store, task, endpoint):
        self.write_site(endpoint, store != NO_HEDGE)
        told = json.dumps({**self.told, "store": store, "task": task, "endpoint": endpoint})
        done = subprocess.run([self.options.python, __file__, "--worker", told], env=self.environment(),
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT_S,
                              check=False)
        if done.returncode:
            raise RuntimeError(f"{store}, {task}: status {done.returncode} {done.stderr[-600:]}")
        return json.loads(done.stdout.splitlines()[-1])

    def make(self):
        self.write_site(self.server.endpoint)
        subprocess.run([self.options.build / "tools/esdm-mkfs"], check=True, env=self.environment(),
                       stdout=subprocess.DEVNULL)
        for store in self.stores:
            if store != NO_HEDGE or "ESDM" not in self.stores:
                self.work(store, "make", self.server.endpoint)

    def measure(self):
        for turn in range(self.options.repeat):
            for task in self.tasks:
                checksums = set()
                for store in self.stores[turn % len(self.stores):] + self.stores[:turn % len(self.stores)]:
                    self.way.counts()
                    one = self.work(store, task, self.way.endpoint)
                    one.update(self.way.counts())
                    checksums.add(one["checksum"])
                    self.runs.setdefault((task, store), []).append(one)
                if len(checksums) != 1:
                    raise RuntimeError(f"{task}: stores read different values: {checksums}")

    def rows(self):
        for task in self.tasks:
            ours = None
            for store in self.stores:
                runs = self.runs[task, store]
                row = {w: statistics.median(r[w] for r in runs) for w in ("seconds", "requests", "bytes", "at_once")}
                ours = ours or row["seconds"]
                yield {"task": task, "store": store, **row, "ratio": row["seconds"] / ours}


def print_rows(shape, rows):
    print(f"\n{shape[0]} steps of {shape[1]} x {shape[2]} float32 "
          f"({shape[1] * shape[2] * 4 / (1 << 20):.2f} MiB)\n")
    print("| task | store | seconds | ratio | requests | MiB | at once |\n| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for row in rows:
        print(f"| {row['task']} | {row['store']} | {row['seconds']:.3f} | {row['ratio']:.2f} | "
              f"{row['requests']:.0f} | {row['bytes'] / (1 << 20):.1f} | {row['at_once']:.0f} |")


def main():
    options = arguments()
    if options.worker:
        worker(json.loads(options.worker))
        return
    if options.install:
        install(options.install)
        return
    options.build = options.build.resolve()
    sys.path.insert(0, str(SOURCE / "tests/support"))
    os.environ.setdefault("TMPDIR", "/dev/shm")
    import s3server
    found = []
    for mib in map(float, options.mib.split(",")):
        with tempfile.TemporaryDirectory(prefix="far-") as folder, s3server.Server(options.server) as server, \
                Way(options.build, server.port, options.delay, options.stragglers) as way:
            run = Run(options, server, way, pathlib.Path(folder), mib)
            run.make()
            run.measure()
            rows = list(run.rows())
            print_rows(run.shape, rows)
            found.append({"shape": run.shape, "delay_ms": options.delay, "rows": rows})
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
