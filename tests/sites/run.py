#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Runs tests of integration and of NetCDF clients on sites with data on an S3 server.

    run.py s3      data on S3 alone
    run.py both    data on S3 and on POSIX in turn
    run.py all     data on S3, POSIX and Kyoto Cabinet in turn, metadata in PostgreSQL

All kinds of NetCDF programs run on the last one in all but the quick form of the tests. Further
arguments choose the programs whose names contain one of them. Smaller inputs than on a folder, but
in the long form of the tests.
"""

import contextlib
import os
import subprocess
import sys
import time

import postgres
from esdmtest import BUILD, SKIP, SOURCE, by_size, skip, some
from s3server import Server

INTEGRATION = ["catalogue", "commit", "find_limit", "fragments", "overwrite", "processes", "threads", "types",
               "usertypes"]
CLIENTS = ["esdm-cp", "nccopy", "ncks", "cdo", "xarray-debian", "xarray-pypi"]
SCRIPTS = ["test_cdl.sh", "test_fortran.sh", "test_python.py", "test_operators.py",
           "test_netcdf4_python.py", "test_nctools.py", "test_usertypes.sh", "test_ncview.py",
           "test_descriptors.py"]
MORE_SCRIPTS = ["test_unclosed.py", "test_routes.py", "test_dask.py", "test_settings.py",
                "test_xarray_backends.py"]
# nc_create_par and nc_open_par, from Fortran.
PARALLEL = ["fortran.py"]


def commands(kind):
    programs = [[str(BUILD / f"tests/integration/integration_{name}")] for name in INTEGRATION]
    clients = SOURCE / "tests/netcdf/clients"
    copies = [["/usr/bin/python3", str(clients / "roundtrip.py"), name] for name in CLIENTS]
    paths = [clients / name for name in SCRIPTS]
    paths += [SOURCE / "tests/netcdf/parallel" / name for name in PARALLEL]
    paths += [clients / name for name in MORE_SCRIPTS]
    scripts = [[{".sh": "/bin/bash", ".py": "/usr/bin/python3"}[path.suffix], str(path)]
               for path in paths]
    everything = programs + copies + scripts
    if kind == "all":
        return by_size(scripts[:1], some(copies, 1) + some(scripts[:5], 2), everything)
    if kind == "s3":
        return by_size(some(programs, 3), some(programs, 4) + some(copies, 1), everything)
    return by_size(programs[3:4], programs[3:4] + some(copies, 1) + scripts[:1], everything)


def main():
    kind = sys.argv[1]
    failed = []
    metadata = None
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(Server())
        if kind == "all":
            if not (BUILD / "esdm/esdm-data-kv.so").exists():
                skip("built without Kyoto Cabinet (package libkyotocabinet-dev)")
            postgres.skip_without_postgres()
            database = stack.enter_context(postgres.Server())
            metadata = {"plugin": "postgres", "connection": database.connection(),
                        "schema": "t@hex@"}
        env = {**os.environ, **server.client_environment(),
               "ESDM_TEST_SITE": str(server.write_site(kind, metadata)),
               "ESDM_TEST_SIZE": by_size("quick", "quick", "default"),
               "ESDM_EARLIER_RUNS": "off"}  # programs count what they read, and run again and again
        wanted = sys.argv[2:]
        for command in commands(kind):
            if wanted and not any(word in " ".join(command[-2:]) for word in wanted):
                continue
            start = time.monotonic()
            name = " ".join(os.path.basename(word) for word in command[-2:])
            status = subprocess.run(command, env=env, stdin=subprocess.DEVNULL,
                                    check=False).returncode
            print(f"{'ok' if status in (0, SKIP) else 'FAILED'}  {kind}: {name}, "
                  f"{time.monotonic() - start:.0f} s", flush=True)
            if status not in (0, SKIP):
                failed.append(name)
    sys.exit(1 if failed else 0)


main()
