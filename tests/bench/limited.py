#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Whether a program keeps its speed when memory is scarce: a variable that is larger than the address space that
it may have, written and read step by step, in turns with the same program without a limit.

    tests/bench/limited.py --build build-bench [--repeat 5] [--gigabytes 3] [--address-space 512]
                           [--memory "64 MiB"] [--folder /dev/shm] [--priority]

`--address-space` in MiB, by setrlimit(); `--memory` is the site's engine.memory in both. Prints medians, the
fastest and the slowest, through the C API and the netCDF API, and the ratio: above 1 the limit costs time. Every
value that is read is verified. `--build` must be an optimised build.
"""

import argparse
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

STEP_BYTES = 32 * 180 * 360 * 4
TASKS = ["write", "read-steps"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--gigabytes", type=float, default=3.0)
    parser.add_argument("--address-space", type=int, default=512)
    parser.add_argument("--memory", default="64 MiB")
    parser.add_argument("--folder", default="/dev/shm")
    parser.add_argument("--interfaces", nargs="+", choices=["C", "netCDF"], default=["C", "netCDF"])
    parser.add_argument("--priority", action="store_true", help="run with real-time priority")
    options = parser.parse_args()
    options.build = options.build.resolve()
    options.steps = max(2, round(options.gigabytes * 1e9 / STEP_BYTES))
    return options


def make_site(options, folder):
    path = folder / "site.json"
    path.write_text(json.dumps({"targets": [{"name": "disk", "plugin": "posix", "directory": "packs"}],
                                "metadata": {"plugin": "sqlite", "directory": "metadata"},
                                "engine": {"memory": options.memory}}))
    env = {**os.environ, "ESDM_CONFIG": str(path)}
    subprocess.run([options.build / "tools/esdm-mkfs"], check=True, stdout=subprocess.DEVNULL, env=env)
    return env


def run(options, env, interface, task, limit):
    """Seconds, and MiB that it had in memory at most."""
    programs = options.build / "tests/bench"
    command = [programs / "bench_esdm", task, "limited"]
    if interface == "netCDF":
        command = [options.build / "tools/esdm-run", programs / "bench_netcdf", task, "esdm://limited"]
    command += ["plain", str(options.steps), "0"]
    if options.priority:
        command = ["chrt", "--fifo", "10", *command]
    most = (options.address_space << 20,) * 2
    done = subprocess.run(command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          preexec_fn=(lambda: resource.setrlimit(resource.RLIMIT_AS, most)) if limit else None)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr}")
    told = done.stdout.split()
    return float(told[1]), float(told[2])


def measure(options, env):
    seconds = {}
    memory = {}
    for repetition in range(options.repeat):
        for interface in options.interfaces:
            for limit in (True, False) if repetition % 2 == 0 else (False, True):
                for task in TASKS:
                    key = (interface, task, limit)
                    took, mib = run(options, env, interface, task, limit)
                    seconds.setdefault(key, []).append(took)
                    memory[key] = max(mib, memory.get(key, 0))
                subprocess.run([options.build / "tools/esdm-rm", "-f", "limited"], env=env, check=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        print(f"repetition {repetition + 1} of {options.repeat}", file=sys.stderr)
    return seconds, memory


def spread(values):
    return f"{statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def main():
    options = arguments()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="esdm-bench.", dir=options.folder))
    try:
        seconds, memory = measure(options, make_site(options, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{options.steps * STEP_BYTES / 1e9:.2f} GB, {options.address_space} MiB of address space, engine.memory "
          f"{options.memory}, medians of {options.repeat}")
    print(f"{'':20}{'limited, s':>28}{'MiB':>8}{'not, s':>28}{'MiB':>8}{'ratio':>8}")
    for interface in options.interfaces:
        for task in TASKS:
            with_limit, without = ((interface, task, limit) for limit in (True, False))
            ratio = statistics.median(seconds[with_limit]) / statistics.median(seconds[without])
            print(f"{interface + ' ' + task:20}{spread(seconds[with_limit]):>28}{memory[with_limit]:8.0f}"
                  f"{spread(seconds[without]):>28}{memory[without]:8.0f}{ratio:8.2f}")


main()
