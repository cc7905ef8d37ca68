# SPDX-License-Identifier: LGPL-3.0-or-later
"""`Dataset.esdm` of xarray, there as soon as both xarray and esdm are imported, in any order."""

import importlib.abc
import importlib.util
import os
import sys

import esdm


class Accessor:
    """`dataset.esdm`: storing it, and reducing what is stored."""

    def __init__(self, dataset):
        self._dataset = dataset

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

    def mean(self, dim=None):
        """As dataset.mean(dim), missing values left out, made by ESDM of the variables that are as they were
        opened from a container: in all threads, without reading what the statistics of fragments tell."""
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


def register():
    """Gives xarray's datasets the accessor, once, and xarray the engine."""
    dataset = getattr(sys.modules.get("xarray"), "Dataset", None)
    if dataset is not None and "esdm" not in vars(dataset):
        sys.modules["xarray"].register_dataset_accessor("esdm")(Accessor)
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
