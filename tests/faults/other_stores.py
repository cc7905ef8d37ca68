#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Writes states to a store that is not ESDM's, and checks what is there: test_kill_others.py kills it.

    other_stores.py netcdf|icechunk write PATH N    states 1 to N, each committed and then told
    other_stores.py netcdf|icechunk check PATH      tells which state is there: "state 2" or "state mixed"
"""

import sys

import numpy

SHAPE = (8, 4096)


def values(state):
    return numpy.full(SHAPE, state, "f8") + numpy.arange(SHAPE[1])


class NetCDF:
    """As a model does: a file that is opened once, and synchronised after each state."""

    def __init__(self, path, create):
        import netCDF4
        self.data = netCDF4.Dataset(path, "w" if create else "r")
        if create:
            self.data.createDimension("y", SHAPE[0])
            self.data.createDimension("x", SHAPE[1])
            self.data.createVariable("a", "f8", ("y", "x"), chunksizes=(1, SHAPE[1]))
        self.a = self.data["a"]
        self.data.set_auto_mask(False)

    def put(self, state):
        self.a[:] = values(state)
        self.data.state = state
        self.data.sync()

    def get(self):
        return int(self.data.state), self.a[:]


class Icechunk:
    """A session for each state, which ends with a commit."""

    def __init__(self, path, create):
        import icechunk
        storage = icechunk.local_filesystem_storage(path)
        self.repository = icechunk.Repository.create(storage) if create else icechunk.Repository.open(storage)

    def put(self, state):
        import zarr
        session = self.repository.writable_session("main")
        group = zarr.open_group(session.store, mode="a")
        a = group.require_array("a", shape=SHAPE, chunks=(1, SHAPE[1]), dtype="f8")
        a[:] = values(state)
        group.attrs["state"] = state
        session.commit(f"state {state}")

    def get(self):
        import zarr
        group = zarr.open_group(self.repository.readonly_session("main").store, mode="r")
        return int(group.attrs["state"]), group["a"][:]


def main(kind, what, path, last="0"):
    store = {"netcdf": NetCDF, "icechunk": Icechunk}[kind](path, what == "write")
    if what == "write":
        for state in range(1, int(last) + 1):
            store.put(state)
            print(f"state {state}", flush=True)
        return
    state, found = store.get()
    print("state", state if (found == values(state)).all() else "mixed")


main(*sys.argv[1:])
