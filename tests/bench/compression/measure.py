# SPDX-License-Identifier: LGPL-3.0-or-later
"""Fields, and what a compressor makes of one: bytes, CPU time, errors."""

import ctypes
import os
import pathlib
import statistics
import time

import numpy

import quality as qualities

HUGE = 1e9  # numbers from here on are no data; FIELD_FILE_HUGE of field_file.h


def default_fields():
    data = os.environ.get("ESDM_TEST_DATA")
    root = pathlib.Path(data) if data else pathlib.Path(__file__).resolve().parents[4] / "shared/data"
    return root / "fields"


class Block(ctypes.Structure):
    """rivals_block"""
    _fields_ = [("elements", ctypes.c_uint64), ("rank", ctypes.c_uint32),
                ("shape", ctypes.c_uint64 * 4), ("bound", ctypes.c_double),
                ("fill", ctypes.c_float)]


class RawField(ctypes.Structure):
    """rivals_field"""
    _fields_ = [("block", Block), ("values", ctypes.POINTER(ctypes.c_float)),
                ("range", ctypes.c_double), ("name", ctypes.c_char * 64)]


class Variable(ctypes.Structure):
    """own_variable"""
    _fields_ = [("name", ctypes.c_char_p), ("units", ctypes.c_char_p), ("first", ctypes.c_uint32),
                ("rank", ctypes.c_uint32), ("values", ctypes.POINTER(ctypes.c_double))]


class Library:
    """bench_rivals.so"""

    def __init__(self, build):
        path = build / "tests/bench/bench_rivals.so"
        if not path.exists():
            raise SystemExit(f"{path} is not there: build the target bench_rivals (it needs zlib)")
        self.c = ctypes.CDLL(str(path))
        text, size, pointer = ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p
        block, field = ctypes.POINTER(Block), ctypes.POINTER(RawField)
        for name, result, *takes in [
                ("rivals_name", text, size), ("rivals_kind_of", ctypes.c_int, size),
                ("rivals_is_shaped", ctypes.c_bool, size),
                ("rivals_encode", size, size, block, pointer, pointer, size),
                ("rivals_decode", ctypes.c_bool, size, block, pointer, size, pointer),
                ("rivals_load", ctypes.c_int, text, field),
                ("rivals_free", None, field), ("own_open", pointer, text),
                ("own_close", None, pointer), ("own_error", text, pointer),
                ("own_prepare", ctypes.c_bool, pointer, field, text),
                ("own_beside", None, pointer, size, pointer, text), ("own_doubt", text, pointer),
                ("own_write", ctypes.c_bool, pointer),
                ("own_read", ctypes.c_bool, pointer, pointer),
                ("own_stored", ctypes.c_uint64, pointer), ("own_chain", text, pointer)]:
            function = getattr(self.c, name)
            function.restype, function.argtypes = result, takes

    def load(self, path):
        raw = RawField()
        status = self.c.rivals_load(str(path).encode(), ctypes.byref(raw))
        if status:
            raise SystemExit(f"{path}: netCDF status {status}")
        return Field(self, raw)


class Field:
    """A field: `values`, `shape`, which points are data, and the copy that lossy rivals get."""

    def __init__(self, library, raw):
        self.library, self.raw = library, raw
        self.name, self.range = raw.name.decode(), raw.range
        self.shape = tuple(raw.block.shape[:raw.block.rank])
        flat = numpy.ctypeslib.as_array(raw.values, (raw.block.elements,))
        self.values = flat.reshape(self.shape)
        self.is_data = numpy.abs(flat) < HUGE  # False for NaN
        if raw.block.fill != 0:
            self.is_data &= flat != numpy.float32(raw.block.fill)
        at = numpy.where(self.is_data, numpy.arange(flat.size), 0)
        first = int(numpy.argmax(self.is_data))
        at = numpy.maximum.accumulate(numpy.maximum(at, first))
        self.filled = numpy.ascontiguousarray(flat[at].reshape(self.shape))

    def __del__(self):
        self.library.c.rivals_free(ctypes.byref(self.raw))


def groupings(shape, most):
    """Shapes with at most `most` axes, by joining neighbours from the slow end."""
    shape = [n for n in shape if n > 1] or [1]
    found = []
    for rank in range(min(most, len(shape)), 0, -1):
        head = int(numpy.prod(shape[:len(shape) - rank + 1]))
        found.append((head, *shape[len(shape) - rank + 1:]))
    return found


def bounds_at(field, kind, bound):
    """The bound of each data point, in long double."""
    values = field.values.reshape(-1)[field.is_data].astype(numpy.longdouble)
    if kind == "absolute":
        return values, numpy.full(values.shape, numpy.longdouble(bound) * numpy.longdouble(1))
    if kind == "relative":
        return values, numpy.abs(values) * numpy.longdouble(bound)
    return values, numpy.zeros(values.shape, numpy.longdouble)


def compare(field, kind, bound, again, masked):
    """Violations, largest error over its bound, change of the mean over the range."""
    again = again.reshape(-1)
    before = field.values.reshape(-1)
    values, bounds = bounds_at(field, kind, bound)
    back = again[field.is_data].astype(numpy.longdouble)
    error = numpy.abs(back - values)
    if kind == "lossless":
        bad = (before.view(numpy.uint32) != again.view(numpy.uint32)) & field.is_data
        violations, worst = int(bad.sum()), 0.0
    else:
        violations = int((~(error <= bounds)).sum())
        with numpy.errstate(divide="ignore", invalid="ignore"):
            shares = numpy.where(error == 0, 0, error / bounds)
        worst = float(numpy.max(shares, initial=0))
    if not masked:  # what is no data must keep its bits
        special = ~field.is_data
        violations += int((before[special].view(numpy.uint32)
                           != again[special].view(numpy.uint32)).sum())
    mean = float(numpy.mean(back - values)) / field.range if values.size and field.range else 0.0
    return violations, worst, mean


def timed(function):
    began = time.process_time()
    result = function()
    return time.process_time() - began, result


def run(entrant, field, kind, relative_bound, repeat, quality=False):
    """One line of results. The absolute bound is a share of the field's range. @param quality: with what
    became of structure and spectra."""
    bound = relative_bound * field.range if kind == "absolute" else relative_bound
    encode_s, decode_s = [], []
    base = {"name": entrant.name, "own": entrant.own, "field": field.name, "kind": kind,
            "bound": relative_bound, "raw_bytes": field.values.nbytes}
    try:
        coder = entrant.prepare(field, kind, bound)
        for _ in range(repeat):
            seconds, encoded = timed(lambda: coder.encode())
            encode_s.append(seconds)
            seconds, again = timed(lambda: coder.decode(encoded))
            decode_s.append(seconds)
    except Exception as problem:  # pylint: disable=broad-except
        if entrant.own:
            raise
        return {**base, "failed": str(problem) or type(problem).__name__, "violations": 0}
    violations, worst, mean = compare(field, kind, bound, numpy.asarray(again), coder.masked)
    stored = coder.bytes(encoded)
    if quality:
        base |= qualities.of(field, again)
    return {**base, "stored_bytes": stored, "ratio": field.values.nbytes / stored,
            "encode_s": statistics.median(encode_s), "decode_s": statistics.median(decode_s),
            "violations": violations, "worst": worst, "mean_change": mean, "how": coder.how}
