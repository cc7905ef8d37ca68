# SPDX-License-Identifier: LGPL-3.0-or-later
"""What became of the numbers of variables, as it was measured when they were written (esdm/accuracy.h)."""

import ctypes
import dataclasses
import math
import typing

import numpy

from . import _accuracy, _catalogue, _data, _nodes
from ._library import Error, check

NOT_KNOWN = 5  # ESDM_ENOTSUP


class _Report(ctypes.Structure):
    """esdm_accuracy_report"""
    _fields_ = [("fragments", ctypes.c_uint64), ("lossy_fragments", ctypes.c_uint64), ("points", ctypes.c_uint64),
                ("exact_points", ctypes.c_uint64), ("absolute", ctypes.c_double), ("relative", ctypes.c_double),
                ("finest", ctypes.c_double), ("largest_error", ctypes.c_double), ("largest_share", ctypes.c_double),
                ("sum_change", ctypes.c_double), ("mean_change", ctypes.c_double), ("blocks_again", ctypes.c_uint64),
                ("blocks_lossless", ctypes.c_uint64), ("changed_fragments", ctypes.c_uint64)]


@dataclasses.dataclass(frozen=True)
class RegionAccuracy:
    """What became of the fragments that touch a region of the accuracy in force."""
    stated: str  # "box=-10,35,30,60: absolute_tolerance=0.01"
    unknown: "str | None"  # why it is not known where it lies; then nothing else is known
    fragments: "int | None"
    lossy_fragments: "int | None"
    absolute: "float | None"
    relative: "float | None"
    largest_error: "float | None"


@dataclasses.dataclass(frozen=True)
class StoredAccuracy:
    """What is stated of a variable, the bounds that its fragments were held to, and what became of its numbers. Numbers
    are in its units, unpacked; None: it was not asked for, or nothing is lost."""
    variable: str  # "tas", "ocean/tos"
    stated: "str | None"
    in_force: "str | None"  # for what is written now: what is stated, or a rule of the site's configuration
    units: str
    fragments: int
    lossy_fragments: int  # of these: with numbers that may be off
    changed_fragments: int  # of these: with some number that is off
    points: int  # numbers that may be off
    exact_points: int  # in the same fragments, numbers that were to be kept
    absolute: "float | None"  # the loosest bounds that a fragment was held to
    relative: "float | None"
    finest: "float | None"  # the relative bound need not be finer than this absolute one
    largest_error: "float | None"
    largest_share: "float | None"  # of its bound; at most 1
    mean_change: "float | None"  # of all numbers that may be off
    regions: "tuple[RegionAccuracy, ...]"

    @property
    def is_lossless(self) -> bool:
        """Whether all numbers that are stored have their bits."""
        return self.lossy_fragments == 0

    @property
    def bound(self) -> str:
        """"0.01 K", "0.001 |x|", or both; "" where nothing is lost."""
        parts = [self._with_units(self.absolute)] if self.absolute is not None else []
        if self.relative is not None:
            finest = f" (not finer than {self._with_units(self.finest)})" if self.finest is not None else ""
            parts.append(f"{self.relative:.6g} |x|{finest}")
        return " and ".join(parts)

    def _with_units(self, number, form=".6g"):
        return "" if number is None else f"{number:{form}} {self.units}".rstrip()

    def row(self):
        what = "no data" if self.fragments == 0 else "nothing is lost" if self.is_lossless else self.bound
        share = "" if self.largest_share is None else f"{100 * self.largest_share:.1f} %"
        return {"variable": self.variable, "stated": self.stated or "", "bound": what,
                "largest error": self._with_units(self.largest_error), "of its bound": share,
                "mean changes by": self._with_units(self.mean_change, ".3g")}


def _api():
    library = _data.api()
    for name in ("esdm_dataset_accuracy", "esdm_dataset_accuracy_in_force"):
        getattr(library, name).restype = ctypes.c_bool
        getattr(library, name).argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    for name in ("esdm_accuracy_print", "esdm_dataset_accuracy_report"):
        getattr(library, name).restype = ctypes.c_int
        getattr(library, name).argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    library.esdm_dataset_region_report.restype = ctypes.c_int
    library.esdm_dataset_region_report.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p]
    return library


def _text(library, tell, dataset):
    """What `tell` says of the dataset, as esdm_accuracy_parse() reads it; None: nothing."""
    stated, text, error = ctypes.create_string_buffer(_accuracy.STATED_BYTES), ctypes.c_void_p(), Error()
    if not tell(dataset.pointer, stated):
        return None
    check(library.esdm_accuracy_print(stated, ctypes.byref(text), ctypes.byref(error)), error)
    try:
        return ctypes.string_at(text.value).decode("utf-8", "replace")
    finally:
        _data.free(text.value)


def _scale(attributes):
    """By which stored numbers are multiplied when they are unpacked."""
    factor = attributes.get("scale_factor")
    scale = abs(float(factor)) if isinstance(factor, numpy.floating) else 1.0
    return scale if math.isfinite(scale) and scale else 1.0


def _number(report, value, factor=1.0):
    """What a report of fragments tells, where numbers of them may be off."""
    return value * factor if report.lossy_fragments and math.isfinite(value) else None


def _regions(library, dataset, in_force, scale):
    """Of what is in force, as esdm_accuracy_print() made it: the regions stand last."""
    stated = [part for part in map(str.strip, (in_force or "").split(";")) if part.startswith(_accuracy.REGIONS)]
    for i, part in enumerate(stated):
        report, error = _Report(), Error()
        status = library.esdm_dataset_region_report(dataset.pointer, i, ctypes.byref(report), ctypes.byref(error))
        if status == NOT_KNOWN:
            yield RegionAccuracy(part, error.message.decode("utf-8", "replace"), *[None] * 5)
            continue
        check(status, error)
        yield RegionAccuracy(part, None, report.fragments, report.lossy_fragments, _number(report, report.absolute, scale),
                             _number(report, report.relative), _number(report, report.largest_error, scale))


def _told(library, variable, dataset):
    report, error = _Report(), Error()
    check(library.esdm_dataset_accuracy_report(dataset.pointer, ctypes.byref(report), ctypes.byref(error)), error)
    attributes = _nodes.dataset_attributes(dataset)
    scale, units = _scale(attributes), attributes.get("units", "")
    in_force = _text(library, library.esdm_dataset_accuracy_in_force, dataset)
    return StoredAccuracy(
        variable, _text(library, library.esdm_dataset_accuracy, dataset), in_force,
        units if isinstance(units, str) else "", report.fragments, report.lossy_fragments, report.changed_fragments,
        report.points, report.exact_points, _number(report, report.absolute, scale), _number(report, report.relative),
        _number(report, report.finest, scale) or None, _number(report, report.largest_error, scale),
        _number(report, report.largest_share), _number(report, report.mean_change, scale) if report.points else None,
        tuple(_regions(library, dataset, in_force, scale)))


def variables(handle):
    """(path, dataset) of all variables of a snapshot: "tas", "ocean/tos"."""
    for path, _, datasets in _nodes.walk(handle):
        for name, dataset in datasets.items():
            yield (f"{path}/{name}" if path else name), dataset


def snapshot_of(name, snapshot):
    """A handle. @param snapshot as in esdm.open(); 0 or None: the newest one, or the one that the name tells."""
    return _data.handle(_catalogue._url(name, snapshot or None))  # pylint: disable=protected-access


def stored_accuracy(name: str, snapshot: "typing.Any" = 0) -> _catalogue.Table:
    """What `esdm-stat --accuracy` tells of each variable: what is stated, the bound that its fragments were held to,
    the largest error, and the change of the mean, as they were measured when the fragments were written. No values are
    read. Of "run.nc?accuracy=1%" what holds for numbers as they are read so.
    @param snapshot 0: the newest one; a number, -1 (the one before the newest), or a time.
    @return a list of StoredAccuracy, which is shown as a table."""
    library, handle = _api(), snapshot_of(name, snapshot)
    return _catalogue.Table(_told(library, variable, dataset) for variable, dataset in variables(handle))
