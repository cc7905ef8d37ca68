# SPDX-License-Identifier: LGPL-3.0-or-later
"""The engine "esdm" of xarray: `xr.open_dataset("esdm://run1.nc")` with nothing imported but xarray.

Names, attributes and encodings come through netCDF4, so that they are what xarray's own engine tells. Data
come over the C API: lazily, of the one snapshot that was opened, and without a lock, so that threads (dask)
read side by side. Variables of user-defined types are read through netCDF4.
"""

import functools
import os
import threading

import numpy
import xarray.backends
import xarray.backends.api
import xarray.backends.common
import xarray.backends.netCDF4_
import xarray.backends.plugins
from xarray.backends import BackendArray, NetCDF4BackendEntrypoint, NetCDF4DataStore
from xarray.backends.store import StoreBackendEntrypoint
from xarray.core import indexing

from . import _data, activate
from . import _accessor

try:
    from xarray.coding.strings import create_vlen_dtype
except ImportError:  # pragma: no cover
    create_vlen_dtype = None

activate()
_accessor.register()

class _Lock:
    """xarray's lock of netCDF4, which who holds it may take again. xarray holds its own for opening and closing, but not
    while it asks for names and attributes: libnetcdf crashes when another thread opens or closes a file meanwhile."""

    def __init__(self):
        self._own, self._depth = threading.RLock(), 0

    def acquire(self, blocking=True):
        if not self._own.acquire(blocking):
            return False
        if self._depth == 0 and not _shared.acquire(blocking=blocking):
            self._own.release()
            return False
        self._depth += 1
        return True

    def release(self):
        self._depth -= 1
        if self._depth == 0:
            _shared.release()
        self._own.release()

    def locked(self):
        return self._depth > 0

    def __enter__(self):
        self.acquire()

    def __exit__(self, *_):
        self.release()

    def __reduce__(self):  # other processes have their own
        return _netcdf4_lock, ()


_shared = getattr(xarray.backends.netCDF4_, "NETCDF4_PYTHON_LOCK", None) or threading.Lock()
_lock = _Lock()


def _netcdf4_lock():
    return _lock


def _renew_lock():
    global _lock  # pylint: disable=global-statement
    _lock = _Lock()


os.register_at_fork(after_in_child=_renew_lock)

# A container that is replaced so often while it is opened is opened as it comes.
TRIES = 10


def _leave_to_us(entrypoint):
    """xarray asks its own engines first, and they would take esdm:// for some other URL."""
    asked = entrypoint.guess_can_open

    @functools.wraps(asked)
    def guess_can_open(self, filename_or_obj, *rest, **options):
        if isinstance(filename_or_obj, str) and filename_or_obj.startswith("esdm:"):
            return False
        return asked(self, filename_or_obj, *rest, **options)

    entrypoint.guess_can_open = guess_can_open


for _name in ("NetCDF4BackendEntrypoint", "H5netcdfBackendEntrypoint", "ScipyBackendEntrypoint",
              "PydapBackendEntrypoint", "ZarrBackendEntrypoint"):
    if hasattr(xarray.backends, _name):
        _leave_to_us(getattr(xarray.backends, _name))


# What this thread opened last: (url, container and snapshot).
_opened = threading.local()


def _tell_what_was_opened(api):
    """dask takes blocks of equal names for equal data. xarray calls them after a file's name and time of
    change; a container has no such time, so that old and new data had the same names: `new - old` was 0."""
    asked = getattr(api, "_get_mtime", None)
    if asked is None:
        return

    @functools.wraps(asked)
    def _get_mtime(filename_or_obj):
        if not str(filename_or_obj).startswith("esdm:"):
            return asked(filename_or_obj)
        url, told = getattr(_opened, "last", (None, None))
        return told if told and url == str(filename_or_obj) else os.urandom(16).hex()

    _get_mtime.esdm = True  # the plug-in's watch.py looks for this
    api._get_mtime = _get_mtime  # pylint: disable=protected-access


def _forget_what_was_opened(entrypoint):
    """Where xarray's own engine opens a container, nobody knows its snapshot."""
    asked = entrypoint.open_dataset

    @functools.wraps(asked)
    def open_dataset(self, *rest, **options):
        _opened.last = (None, None)
        return asked(self, *rest, **options)

    entrypoint.open_dataset = open_dataset


_tell_what_was_opened(xarray.backends.api)
_forget_what_was_opened(NetCDF4BackendEntrypoint)


class EsdmArray(BackendArray):
    """A variable of a snapshot. It can be pickled: where it arrives, that snapshot is opened."""

    def __init__(self, dataset, group, variable):
        owner = dataset.owner
        self.place = (owner.name, owner.snapshot, owner.identity, group, variable)
        self._dataset = dataset
        self.shape = dataset.shape
        self.dtype = create_vlen_dtype(str) if dataset.type == _data.STRING else dataset.dtype

    def __getstate__(self):
        return {"place": self.place, "shape": self.shape, "dtype": self.dtype, "_dataset": None}

    def dataset(self):
        """In this process."""
        found = self._dataset
        if found is None or found.owner.process != _data.os.getpid():
            name, snapshot, identity, group, variable = self.place
            found = _data.handle(name, snapshot, identity).dataset(group, variable)
            self._dataset = found
        return found

    def __getitem__(self, key):
        if not isinstance(key, indexing.VectorizedIndexer):
            return self._read(key.tuple)  # xarray 2023.1 turns slices with negative steps wrongly
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER,
                                                  self._read)

    def _read(self, key):
        dataset = self.dataset()
        parts, turned = [], []
        for k, length in zip(key, self.shape):
            if isinstance(k, slice):
                numbers = range(*k.indices(length))
                back = numbers.step < 0
                if back:  # read forwards and turned round
                    numbers = numbers[::-1]
                k = slice(numbers.start, numbers.stop, numbers.step) if numbers else slice(0, 0)
                turned.append(slice(None, None, -1 if back else 1))
            elif isinstance(k, (int, numpy.integer)):
                k = int(k) + length if k < 0 else int(k)
            else:
                k = numpy.where(numpy.asarray(k) < 0, numpy.asarray(k) + length, k)
                turned.append(slice(None))
            parts.append(k)
        result = dataset.read(tuple(parts))
        return result[tuple(turned)] if any(t.step == -1 for t in turned) else result


class EsdmDataStore(NetCDF4DataStore):
    """What xarray reads of one group."""

    snapshot = None  # a _data.Handle

    def open_store_variable(self, name, var):
        variable = super().open_store_variable(name, var)
        group = var.group().path
        dataset = self.snapshot.dataset(group, name)
        if dataset is None or dataset.dtype is None or variable.dtype.kind == "c":
            return variable
        array = EsdmArray(dataset, group, name)
        encoding = variable.encoding
        if dataset.shape and not encoding.get("preferred_chunks"):
            shape = dataset.fragment_shape()
            if shape:
                encoding["preferred_chunks"] = dict(zip(dataset.dimensions, shape))
        return type(variable)(variable.dims, indexing.LazilyIndexedArray(array), variable.attrs,
                              encoding)


def _open_store(url, group, options):
    for _ in range(TRIES):
        snapshot = _data.handle(url)
        store = EsdmDataStore.open(snapshot.url, mode="r", group=group, **options)
        # Names and data come through two doors: was the container replaced in between?
        if not snapshot.snapshot or _data.handle(snapshot.url).identity == snapshot.identity:
            break
        store.close()
    store.snapshot = snapshot
    store._filename = url  # pylint: disable=protected-access
    told = f"{snapshot.identity}@{snapshot.snapshot}{snapshot.asked}" if snapshot.snapshot else None
    _opened.last = (url, told)
    return store


def _paths(dataset, path):
    yield path
    for name, group in dataset.groups.items():
        yield from _paths(group, path.rstrip("/") + "/" + name)


class EsdmBackend(NetCDF4BackendEntrypoint):
    """Containers by their esdm:// names, read as xarray reads netCDF files."""

    description = "Open containers of ESDM (esdm://NAME) in Xarray"

    def guess_can_open(self, filename_or_obj):
        """Names that begin with esdm:, and no others."""
        return isinstance(filename_or_obj, str) and filename_or_obj.startswith("esdm:")

    def open_dataset(self, filename_or_obj, *, mask_and_scale=True, decode_times=True,
                     concat_characters=True, decode_coords=True, drop_variables=None, use_cftime=None,
                     decode_timedelta=None, group=None, auto_complex=None, lock=None, autoclose=False):
        """@param filename_or_obj `esdm://NAME`, with `@SNAPSHOT` or `@TIME` for an old one."""
        options = {"lock": lock or _lock, "autoclose": autoclose}
        if auto_complex is not None:  # older ones of xarray do not know it
            options["auto_complex"] = auto_complex
        opened = _data.handle(str(filename_or_obj))  # what takes time far away is done side by side
        with _lock:
            store = _open_store(str(filename_or_obj), group, options)
            del opened
            try:
                return StoreBackendEntrypoint().open_dataset(
                    store, mask_and_scale=mask_and_scale, decode_times=decode_times,
                    concat_characters=concat_characters, decode_coords=decode_coords,
                    drop_variables=drop_variables, use_cftime=use_cftime, decode_timedelta=decode_timedelta)
            except BaseException:
                store.close()
                raise

    def open_groups_as_dict(self, filename_or_obj, *, group=None, **options):
        """All groups by their paths; each of the same snapshot."""
        url = str(filename_or_obj)
        snapshot = _data.handle(url)
        pinned = snapshot.url
        with _lock:
            store = _open_store(pinned, group, {"lock": _lock})
            try:
                paths = list(_paths(store.ds, "/"))
            finally:
                store.close()
        above = (group or "").rstrip("/")
        return {path: self.open_dataset(pinned, group=(above + path).rstrip("/") or None, **options)
                for path in paths}

    def open_datatree(self, filename_or_obj, *, group=None, **options):
        """All groups as a tree."""
        from xarray import DataTree  # pylint: disable=import-outside-toplevel
        groups = self.open_groups_as_dict(filename_or_obj, group=group, **options)
        tree = DataTree.from_dict(groups)

        def close():
            for dataset in groups.values():
                dataset.close()

        tree.set_close(close)
        return tree


def _register():
    """xarray knows engines of installed packages. One that is in PYTHONPATH alone tells its own: others
    have left names of containers to it above."""
    known = xarray.backends.common.BACKEND_ENTRYPOINTS
    with_modules = any(isinstance(backend, tuple) for backend in known.values())  # since 2023
    known.setdefault("esdm", (None, EsdmBackend) if with_modules else EsdmBackend)
    xarray.backends.plugins.list_engines.cache_clear()


_register()
