# SPDX-License-Identifier: LGPL-3.0-or-later
"""Sites whose targets have a speed (plug-in "throttled"), their measured model, and what lies on them."""

import contextlib
import json
import os

from esdmtest import BUILD, Site, by_size, is_pack, run, tool

os.environ["ESDM_PLUGIN_PATH"] = str(BUILD / "plugins")


@contextlib.contextmanager
def site(speeds, **changes):
    """A site with throttled targets: name -> MB/s."""
    with Site(make=False) as s:
        config = {
            "targets": [{"name": name, "plugin": "throttled", "directory": name,
                         "bytes_per_s": speed * 1e6, "latency_ms": 0.2, "service_ms": 0.05}
                        for name, speed in speeds.items()],
            "metadata": {"plugin": "sqlite", "directory": "metadata"}}
        config.update(changes)
        s.config.write_text(json.dumps(config))
        run([tool("esdm-mkfs")])
        yield s


# MB/s; so slow that also a busy machine keeps up with them.
SPEEDS = {"fast": 200, "slow": 50}

SECONDS = by_size("--seconds=0.4", "--seconds=0.4", "--seconds=3")
ENOUGH = by_size("--seconds=1.5", "--seconds=1.5", "--seconds=6")  # to tell targets apart


def calibrate(*options, seconds=SECONDS):
    done = run([tool("esdm-mkfs"), "--calibrate=quick", seconds, "--json", *options])
    return json.loads(done.stdout)


def packs(s, target):
    return [p for p in s.file(target).rglob("*") if is_pack(p)]


def stored(s, target):
    return sum(p.stat().st_size for p in packs(s, target))


def write(name, mib=32):
    run([BUILD / "tests/bench/bench_placement", "write", name, str(mib), str(mib)])
    run([BUILD / "tests/bench/bench_placement", "read", name, str(mib), str(mib)])


def explain(*arguments):
    done = run([tool("esdm-stat"), "--explain", "--json", *arguments])
    return json.loads(done.stdout)["containers"][0]["datasets"]
