# SPDX-License-Identifier: LGPL-3.0-or-later
"""A site with a PostgreSQL server of its own, for tests."""

import contextlib
import json
import os
import pathlib
import shutil

from esdmtest import Site, client, expect, run, tool

# Alone in its folder, and ended with the test.
SETTINGS = ["--idle", "600", "--lease", "6"]  # a machine may stall for 3 s
LOCAL = ["--address", "127.0.0.1"]

APPEND = """
import netCDF4, sys
d = netCDF4.Dataset('esdm://shared.nc', 'a')
me, count = int(sys.argv[1]), int(sys.argv[2])
print('open', flush=True)
for i in range(count):
    d['v'][i, me] = 1000 * me + i
    d.sync()
    if i == 3:
        print('begun', flush=True)
d.close()
print('done', flush=True)
"""


class OwnServer:
    """A site with a server of its own; use as a context manager."""

    def __init__(self, *settings, make=True):
        self.settings = settings
        self.make = make

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        metadata = {"plugin": "sqlite", "directory": "metadata"}
        self.site = self.stack.enter_context(Site(make=False, parent="/dev/shm", metadata=metadata))
        self.site.folder.chmod(0o755)
        self.folder = self.site.folder / "postgres"
        self.folder.mkdir(mode=0o700)
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres")
        self.stack.callback(self.end)
        if self.make:
            self.tool("--make", *SETTINGS, *self.settings)  # later ones count
            run([tool("esdm-mkfs"), "--private-postgres", self.folder])
            self.tool("--stop")
        return self

    def __exit__(self, *_):
        self.stack.close()

    def end(self):
        if (self.folder / "esdm-postgres.json").exists():
            self.tool("--stop", "--wait", "30", check=False)  # may be that of a node that has gone

    def tool(self, *arguments, **options):
        return run([tool("esdm-postgres"), *arguments, self.folder], **options)

    def status(self):
        return json.loads(self.tool("--status", "--json").stdout)

    def leases(self):
        return sorted(int(p.name.split(".")[1]) for p in self.folder.glob("lease.*")
                      if p.name.count(".") == 1)

    def lease(self):
        return json.loads((self.folder / f"lease.{self.leases()[-1]}").read_text())

    def postmasters(self):
        """Processes that serve the folder, seen from outside of all nodes."""
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (process / "cmdline").read_bytes().split(b"\0")
                if words[0].endswith(b"/postgres") and str(self.folder / "data").encode() in words:
                    found.append(int(process.name))
        return found


def shared_container(node=None):
    make = ("import netCDF4\nd = netCDF4.Dataset('esdm://shared.nc', 'w')\n"
            "d.createDimension('t', None); d.createDimension('x', 4)\n"
            "d.createVariable('v', 'f8', ('t', 'x'), fill_value=-1)\nd.close()")
    command = ["/usr/bin/python3", "-c", make]
    return node.client(command) if node else client(command)


def check_shared(writers, count, node=None):
    check = ("import netCDF4\nv = netCDF4.Dataset('esdm://shared.nc')['v'][:]\n"
             f"print(all(v[i, me] == 1000 * me + i for me in {list(writers)} for i in range({count})))")
    command = ["/usr/bin/python3", "-c", check]
    done = node.client(command) if node else client(command)
    expect(done.stdout.strip() == "True", f"values are lost: {done.stdout}")


def dump(path):
    return (client(["ncdump", path]) if str(path).startswith("esdm:") else run(["ncdump", path])) \
        .stdout.split("\n", 1)[1]
