# SPDX-License-Identifier: LGPL-3.0-or-later
"""The engine "esdm" of xarray: `xr.open_dataset("esdm://run1.nc")` with nothing imported but xarray.

Names, attributes and encodings come through netCDF4, so that they are what xarray's own engine tells. Data
come over the C API: lazily, of the one snapshot that was opened, and without a lock, so that threads (dask)
read side by side. Variables of user-defined types are read through netCDF4.
"""

import functools

import numpy
import xarray.backends
from xarray.backends import BackendArray, NetCDF4BackendEntrypoint, NetCDF4DataStore
from xarray.backends.store import StoreBackendEntrypoint
from xarray.core import indexing

from . import _data, activate
from . import _writing  # pylint: disable=unused-import  # registers Dataset.esdm

try:
    from xarray.coding.strings import create_vlen_dtype
except ImportError:  # pragma: no cover
    create_vlen_dtype = None

activate()


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


class EsdmArray(BackendArray):
    """A variable of a snapshot. It can be pickled: where it arrives, that snapshot is opened."""

    def __init__(self, dataset, group, variable):
        self.place = (dataset.owner.name, dataset.owner.snapshot, group, variable)
        self._dataset = dataset
        self.shape = dataset.shape
        self.dtype = create_vlen_dtype(str) if dataset.type == _data.STRING else dataset.dtype

    def __getstate__(self):
        return {"place": self.place, "shape": self.shape, "dtype": self.dtype, "_dataset": None}

    def dataset(self):
        """In this process."""
        found = self._dataset
        if found is None or found.owner.process != _data.os.getpid():
            name, snapshot, group, variable = self.place
            found = _data.handle(name, snapshot).dataset(group, variable)
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
        if dataset is None or dataset.dtype is None:
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
    snapshot = _data.handle(url)
    store = EsdmDataStore.open(snapshot.url, mode="r", group=group, **options)
    store.snapshot = snapshot
    store._filename = url  # pylint: disable=protected-access
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
                     decode_timedelta=None, group=None, lock=None, autoclose=False):
        """@param filename_or_obj `esdm://NAME`, with `@SNAPSHOT` or `@TIME` for an old one."""
        store = _open_store(str(filename_or_obj), group, {"lock": lock, "autoclose": autoclose})
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
        store = _open_store(pinned, group, {})
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
