# SPDX-License-Identifier: LGPL-3.0-or-later
"""`Dataset.esdm` and `DataArray.esdm` of xarray, there as soon as both xarray and esdm are imported, in any order."""

import importlib.abc
import importlib.util
import os
import sys

import esdm


class Accessor:
    """`dataset.esdm`: storing it, and reducing what is stored."""

    def __init__(self, dataset):
        self._dataset = dataset

    def __repr__(self):
        calls = ", ".join(f".{name}()" for name in vars(Accessor) if not name.startswith("_"))
        return f"what esdm can do with it: {calls}; help() of one tells more"

    def to(self, name, accuracy=None, chunks=None, region=None, **options):
        """As esdm.write(): makes, or replaces, a container, or writes a region of one that is there."""
        return esdm.write(self._dataset, name, accuracy, chunks, region, **options)

    def append(self, name, dim="time", message=None):
        """As esdm.append(): adds it behind the end of `dim`, in one commit."""
        return esdm.append(self._dataset, name, dim, message)

    def write_region(self, name, region, message=None):
        """As esdm.write_region(): overwrites a part, in one commit."""
        return esdm.write_region(self._dataset, name, region, message)

    def _reduce(self, dim, operation):
        from ._reducing import reduce_dataset  # pylint: disable=import-outside-toplevel
        return reduce_dataset(self._dataset, dim, operation)

    def mean(self, dim=None, weights=None):
        """As dataset.mean(dim), missing values left out, made by ESDM of the variables that are as they were
        opened from a container: in all threads, without reading what the statistics of fragments tell.
        `weights`: as dataset.weighted(weights).mean(dim): a DataArray, an array over `dim` in this order, or "area",
        the exact areas of cells of a grid of latitudes and longitudes. A missing value is left out with its weight."""
        if weights is not None:
            from ._weighting import mean_of_dataset  # pylint: disable=import-outside-toplevel
            return mean_of_dataset(self._dataset, dim, weights)
        return self._reduce(dim, "mean")

    def sum(self, dim=None):
        """As mean(): the sum, 0 where no value is valid."""
        return self._reduce(dim, "sum")

    def min(self, dim=None):
        """As mean(): the least value."""
        return self._reduce(dim, "min")

    def max(self, dim=None):
        """As mean(): the largest value."""
        return self._reduce(dim, "max")

    def var(self, dim=None):
        """As mean(): the mean squared difference to the mean."""
        return self._reduce(dim, "var")

    def count(self, dim=None):
        """As mean(): how many values are not missing."""
        return self._reduce(dim, "count")


class ArrayAccessor(Accessor):
    """`array.esdm`: the same of a DataArray, which is stored under its name, with its coordinates."""

    def __init__(self, array):  # pylint: disable=super-init-not-called
        self._array = array

    @property
    def _dataset(self):
        if self._array.name is None:
            raise ValueError("the array has no name, which its variable would have: array.rename(\"tas\") gives it one")
        return self._array.to_dataset(name=self._array.name)

    def to(self, name, accuracy=None, chunks=None, region=None, **options):
        """As esdm.write(). @param accuracy of the array itself may be a text: "abs=0.01 K"."""
        if isinstance(accuracy, str):
            accuracy = {self._array.name: accuracy}
        return super().to(name, accuracy, chunks, region, **options)

    def _reduce(self, dim, operation):
        return super()._reduce(dim, operation)[self._array.name]


def register():
    """Gives xarray's datasets and arrays the accessor, once, and xarray the engine."""
    dataset = getattr(sys.modules.get("xarray"), "Dataset", None)
    if dataset is not None and "esdm" not in vars(dataset):
        sys.modules["xarray"].register_dataset_accessor("esdm")(Accessor)
        sys.modules["xarray"].register_dataarray_accessor("esdm")(ArrayAccessor)
        _tell_engine()


def _tell_engine():
    """xarray asks installed packages alone for their engines."""
    import importlib.metadata  # pylint: disable=import-outside-toplevel
    try:
        importlib.metadata.distribution("esdm")
    except importlib.metadata.PackageNotFoundError:
        if not os.environ.get("ESDM_NO_ACTIVATION"):  # the engine's module activates
            from . import xarray_engine  # pylint: disable=import-outside-toplevel,unused-import


class _Loader(importlib.abc.Loader):
    """Of xarray: as its own, with the accessor at its end."""

    def __init__(self, own):
        self._own = own

    def __getattr__(self, name):
        return getattr(self._own, name)

    def create_module(self, spec):
        return self._own.create_module(spec)

    def exec_module(self, module):
        self._own.exec_module(module)
        module.__loader__ = module.__spec__.loader = self._own
        register()


def spec_of_xarray():
    """Where xarray is, with a loader that registers the accessor; None: there is none."""
    spec = importlib.util.find_spec("xarray")
    if spec is not None and hasattr(spec.loader, "exec_module"):
        spec.loader = _Loader(spec.loader)
    return spec
