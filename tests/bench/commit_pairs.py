#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""What a part of the tables of PostgreSQL costs commits: two schemas of one server, from one of which SQL takes it away.

    commit_pairs.py --build BUILD [--runs 8] [--containers 1000] [SQL]

Runs of bench_find, which makes containers, take turns between both; printed is the processor time of the server for a new
container, and the ratio. SQL is for the second schema, {S}; unless it is said it takes the triggers away that keep the
table `reach`. The server lies on /dev/shm, and serves nobody else.
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

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

SQL = ("DROP TRIGGER reach_added ON {S}.extent; DROP TRIGGER reach_changed ON {S}.extent; "
       "DROP TRIGGER reach_gone ON {S}.extent")


def used(server):
    """Seconds of processors that the server and its sessions have taken, once all of ESDM's have ended."""
    server.wait_for_sql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'esdm'", ["0"])
    time.sleep(0.5)  # until they are processes no more
    fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--containers", type=int, default=1000)
    parser.add_argument("sql", nargs="?", default=SQL)
    options = parser.parse_args()
    os.environ["ESDM_BUILD"] = str(options.build)
    from postgres import Server  # pylint: disable=import-outside-toplevel

    with Server(shared_buffers="256MB", autovacuum="off") as server, tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        sites = {}
        for name in ("whole", "less"):
            (pathlib.Path(folder) / name).mkdir()
            path = pathlib.Path(folder) / name / "site.json"
            path.write_text(json.dumps({
                "site": {"name": name}, "views": {"bench": "{model}/{experiment}/{member}/{table}/{variable}"},
                "targets": [{"name": "t", "plugin": "posix", "directory": "packs"}],
                "metadata": {"plugin": "postgres", "host": "127.0.0.1", "port": server.port, "database": "postgres",
                             "user": "esdm", "schema": name}}))
            sites[name] = {**os.environ, "ESDM_CONFIG": str(path)}
            subprocess.run([options.build / "tools/esdm-mkfs"], env=sites[name], check=True, stdout=subprocess.DEVNULL)
        server.sql(options.sql.replace("{S}", "less"))
        times = {"whole": [], "less": []}
        for run in range(options.runs):
            for name in sorted(sites, reverse=run % 2 != 0):
                before, count = used(server), (run + 1) * options.containers
                subprocess.run([options.build / "tests/bench/bench_find", str(count), "--make"], env=sites[name], check=True,
                               stdout=subprocess.DEVNULL)
                times[name].append((used(server) - before) / options.containers * 1e3)
        ratios = [a / b for a, b in zip(times["whole"], times["less"])]
        for name, all_of in times.items():
            print(f"{name}: {statistics.median(all_of):.3f} ms of the server for a container, "
                  f"{min(all_of):.3f} to {max(all_of):.3f}")
        print(f"ratio {statistics.median(ratios):.3f}, {min(ratios):.3f} to {max(ratios):.3f}")


if __name__ == "__main__":
    main()
