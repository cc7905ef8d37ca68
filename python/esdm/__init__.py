# SPDX-License-Identifier: LGPL-3.0-or-later
"""ESDM in Python and notebooks.

    import esdm                                    # now esdm:// names work in netCDF4 and xarray
    esdm.find("source_id = MPI-ESM1-2-LR and table_id = Amon")
    data = xarray.open_dataset("esdm://run1.nc")
    old = esdm.open("run1.nc", snapshot=-1)        # a netCDF4.Dataset, as it was before

The import makes the whole process understand esdm:// names, whether netCDF4 was imported before or comes
later. Which site is used is said as for all programs: ESDM_CONFIG, ./esdm.json, …
"""

import ctypes as _ctypes
import importlib as _importlib
import os as _os
import sys as _sys

from ._library import PLUGIN as _PLUGIN
from ._library import EsdmError, NotFound
from ._library import load as _load

TYPE_CHECKING = False  # as typing has it, which takes longer to import than all of this
if TYPE_CHECKING:
    from ._catalogue import (Container, Facet, Match, Place, Snapshot, Table, View, clone, facets, find, ls, move, remove,
                             site, snapshots, stat, version, views)
    from ._catalogue import open_dataset as open  # pylint: disable=redefined-builtin
    __version__: str
    from ._accuracy import Accuracy, accuracy
    from ._history import MergeConflict, branch, digest, merge
    from ._placement import Placement, placement
    from ._query import link, query
    from ._reporting import Report, report
    from ._stored import StoredAccuracy, stored_accuracy

# Read when first used: every program pays for what is read at once.
_LATER = {name: module for module, names in {
    "_accuracy": ("Accuracy", "accuracy"),
    "_catalogue": ("Container", "Facet", "Match", "Place", "Snapshot", "Table", "View", "clone", "facets", "find", "ls", "move",
                   "open", "remove", "site", "snapshots", "stat", "version", "views"),
    "_history": ("MergeConflict", "branch", "digest", "merge"),
    "_placement": ("Placement", "placement"),
    "_query": ("link", "query"),
    "_reporting": ("Report", "report"),
    "_stored": ("StoredAccuracy", "stored_accuracy")}.items() for name in names}

__all__ = ["Container", "EsdmError", "Facet", "Match", "NotFound", "Place", "Snapshot", "Table", "View", "activate",
           "append", "clone", "digest", "facets", "find", "gather", "link", "ls", "move", "open", "query", "remove", "site", "snapshots", "stat", "stream", "version", "views",
           "write", "write_region", "zarr"]

__all__ += ["Accuracy", "MergeConflict", "Placement", "Report", "StoredAccuracy", "accuracy", "branch", "merge", "placement", "report", "stored_accuracy"]

_report = "not active"


def __getattr__(name):
    if name == "__version__":  # of the library that runs
        return __getattr__("version")()
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _importlib.import_module(f".{_LATER[name]}", __name__)
    found = globals()[name] = getattr(module, "open_dataset" if name == "open" else name)
    return found


def __dir__():
    return sorted({*globals(), *_LATER})


def activate() -> str:
    """Makes this process understand esdm:// names; done by `import esdm`. Again after a NetCDF library
    was loaded in an unusual way. @return what was done, for people."""
    global _report
    library = _load(_PLUGIN)
    report = _ctypes.create_string_buffer(300)
    done = library.esdm_netcdf_activate(report, len(report))
    if done < 0:
        raise ImportError("ESDM cannot be made active: " + report.value.decode())
    _report = report.value.decode()
    return _report


def zarr(name: str, snapshot: int = 0):
    """A snapshot of a container as a Zarr store that is read only: `zarr.open(esdm.zarr("run1.nc"), mode="r")`,
    `xarray.open_zarr(esdm.zarr("run1.nc"))`. Needs zarr 3. @param snapshot 0: the newest one."""
    from ._zarr import EsdmStore  # pylint: disable=import-outside-toplevel
    return EsdmStore(name, snapshot)


def stream(name: str, variable: str, function=None, select=None, snapshot: int = 0, part_bytes: int = 0):
    """A generator of the values of a variable part by part, in order, where the whole does not fit into memory:
    `for where, values in esdm.stream("run1.nc", "tas"): …`. `where` are the slices of the part in the variable, values
    are as they are stored (packed, with fill values). With a function that is called with both, in several threads at the
    same time, what it returns comes instead, in the same order; its values are read-only and end with the call:
    `total = sum(esdm.stream("run1.nc", "tas", lambda where, values: values.sum(dtype="f8")))`.
    Ending the loop, or an exception of the function, ends the read.
    @param variable its name, with its group before it ("ocean/sst"). @param select {"time": slice(0, 12)}, without steps.
    @param snapshot 0: the newest one. @param part_bytes of a part at most; 0: ESDM chooses."""
    from ._streaming import stream as begin  # pylint: disable=import-outside-toplevel
    return begin(name, variable, function, select, snapshot, part_bytes)


def write(dataset, name: str, accuracy=None, chunks=None, region=None, **options):
    """Stores an xarray.Dataset as a container; `dataset.esdm.to(…)` does the same.
    @param region a part of a container that is there, {"time": slice(4, 6)}: as write_region(), whose `message` it takes;
    accuracy, chunks and other options are those of the container.
    @param accuracy what must be kept: {"tas": "abs=0.01 K; mode=archive"}, or esdm.accuracy(…); others lose nothing.
    @param chunks shape of fragments: {"time": 1}. @param options as of Dataset.to_netcdf()."""
    from . import _writing  # pylint: disable=import-outside-toplevel
    if region is not None:
        message = options.pop("message", None)
        if accuracy is not None or chunks is not None or options:
            given = [*(["accuracy"] if accuracy is not None else []), *(["chunks"] if chunks is not None else []), *options]
            raise TypeError(f"with region= the container says how it is stored: no {', '.join(given)}")
        return _writing.write_region(dataset, name, region, message)
    return _writing.write(dataset, name, accuracy, chunks, options)


def append(dataset, name: str, dim: str = "time", message=None) -> int:
    """Adds an xarray.Dataset to a container, behind the end of an unlimited dimension, packed and in units of
    time as the container has them. It is published at once or, after an error, not at all.
    dask arrays that other processes compute are gathered: a MergeConflict names a branch that stays, see gather().
    @return the number of the snapshot."""
    from . import _writing  # pylint: disable=import-outside-toplevel
    return _writing.store_into(dataset, name, {dim: None}, True, message)


def gather(name: str, message=None):
    """Has what many processes write into one container published in one commit, or not at all:

        with esdm.gather("run1.nc") as line:
            client.gather([client.submit(store, part, line) for part in parts])

    where `store` is, in any process of the same site, `esdm.write_region(part, line, {"time": slice(4, 6)})`. `line` is a
    name (of a branch, which begins with the container as it is now), and nothing is seen in the container until the
    end of the `with`. Then all of it is merged in one commit, by reference: no values are copied. After an error the
    branch is removed and the container is as it was. MergeConflict: others have written the same elements meanwhile; the
    branch `gather-…` stays, also that of append() and write_region() of dask arrays, and the message tells its name and
    the command that removes it. What a process leaves that is killed is removed by the next gather() of the container, and by
    esdm-gc a day later (the site keeps it for a while); `esdm-fsck` tells it.
    @param name of a container, or of a branch. @param message of the commit."""
    from . import _gathering  # pylint: disable=import-outside-toplevel
    return _gathering.gather(name, message)


def write_region(dataset, name: str, region: dict, message=None) -> int:
    """Overwrites a part of a container with an xarray.Dataset: region={"time": slice(4, 6)}, as long
    as the data are; slice(4, None) ends where the container does. Times, other coordinates, also of two dimensions, and
    bounds must be those that the container has there, or has no values of yet; without them data are written as they lie. dask's blocks are
    written by many threads, or by the processes of dask's scheduler (distributed, "processes"; see gather()), and published
    in one commit. @return the number of the snapshot."""
    from . import _writing  # pylint: disable=import-outside-toplevel
    return _writing.write_region(dataset, name, region, message)


class _WhenXarrayComes:
    """A finder of modules: registers Dataset.esdm and DataArray.esdm when xarray is imported later."""

    @staticmethod
    def find_spec(fullname, path=None, target=None):
        if fullname == "xarray":
            _sys.meta_path.remove(_WhenXarrayComes)
            from . import _accessor  # pylint: disable=import-outside-toplevel
            return _accessor.spec_of_xarray()
        return None


if hasattr(_sys.modules.get("xarray"), "register_dataset_accessor"):
    from . import _accessor
    _accessor.register()
elif "xarray" not in _sys.modules:
    _sys.meta_path.insert(0, _WhenXarrayComes)

if not _os.environ.get("ESDM_NO_ACTIVATION"):
    activate()
