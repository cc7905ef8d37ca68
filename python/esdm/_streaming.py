# SPDX-License-Identifier: LGPL-3.0-or-later
"""Values part by part, over esdm_read_stream(): a generator that has a few parts in memory, and a function that
runs on parts in the threads of ESDM."""

import ctypes
import queue
import threading

import numpy

from . import _data
from ._library import Error, EsdmError, check

CANCELED = 12  # ESDM_ECANCELED
# Results that wait for who iterates; the engine waits when there are more.
WAITING = 4


class _Part(ctypes.Structure):
    """esdm_stream_part"""
    _fields_ = [("index", ctypes.c_uint64), ("rank", ctypes.c_uint32),
                ("offset", ctypes.POINTER(ctypes.c_uint64)), ("size", ctypes.POINTER(ctypes.c_uint64)),
                ("elements", ctypes.c_uint64), ("values", ctypes.c_void_p),
                ("out_of_range", ctypes.c_uint64)]


_WORK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Part), ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_REDUCE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Part), ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


class _Stream(ctypes.Structure):
    """esdm_stream"""
    _fields_ = [("type", ctypes.c_int32), ("part_bytes", ctypes.c_uint64), ("work", _WORK), ("reduce", _REDUCE),
                ("discard", ctypes.c_void_p), ("user", ctypes.c_void_p)]


def _box(dataset, select):
    """The first index and the length along each axis."""
    offset, size = [0] * len(dataset.shape), list(dataset.shape)
    unknown = set(select) - set(dataset.dimensions)
    if unknown:
        raise ValueError(f"the variable has no dimension {sorted(unknown)}; it has {list(dataset.dimensions)}")
    for axis, name in enumerate(dataset.dimensions):
        if name not in select:
            continue
        wanted = select[name] if isinstance(select[name], slice) else slice(select[name], select[name] + 1)
        first, last, step = wanted.indices(dataset.shape[axis])
        if step != 1:
            raise ValueError(f"{name}: a selection with steps cannot be read part by part")
        offset[axis], size[axis] = first, max(last - first, 0)
    return offset, size


class _Run:
    """A read in a thread of its own, and what comes out of it, in order."""

    def __init__(self, dataset, box, function, part_bytes):
        self.dataset, self.box, self.function, self.part_bytes = dataset, box, function, part_bytes
        self.results = {}  # by number of the part
        self.ready = queue.Queue(WAITING)
        self.stopped = False
        self.failure = None
        self.thread = threading.Thread(target=self.read, name="esdm-stream", daemon=True)

    def work(self, part, _user, _result, _error):
        """Runs in several threads at once; no exception may leave it."""
        try:
            if self.stopped:
                return CANCELED
            told = part.contents
            shape = tuple(told.size[:told.rank])
            where = tuple(slice(o, o + n) for o, n in zip(told.offset[:told.rank], shape))
            raw = (ctypes.c_char * (told.elements * self.dataset.dtype.itemsize)).from_address(told.values)
            values = numpy.frombuffer(raw, self.dataset.dtype).reshape(shape)
            if self.function is None:
                self.results[told.index] = where, values.copy()
            else:
                values.flags.writeable = False
                self.results[told.index] = self.function(where, values)
            return 0
        except BaseException as problem:  # pylint: disable=broad-exception-caught
            self.failure = self.failure or problem
            return CANCELED

    def reduce(self, part, _result, _user, _error):
        """In the order of parts. Waits until there is room, or nobody iterates any more."""
        result = self.results.pop(part.contents.index)
        while not self.stopped:
            try:
                self.ready.put((True, result), timeout=0.1)
                return 0
            except queue.Full:
                continue
        return CANCELED

    def read(self):
        """The thread."""
        try:
            space, error = _data.Dataspace(rank=len(self.box[0])), Error()
            for axis, (first, length) in enumerate(zip(*self.box)):
                space.offset[axis], space.size[axis], space.stride[axis] = first, length, 1
            stream = _Stream(type=self.dataset.type, part_bytes=self.part_bytes, work=_WORK(self.work),
                             reduce=_REDUCE(self.reduce))
            function = _data.api().esdm_read_stream
            function.restype = ctypes.c_int
            function.argtypes = [ctypes.c_void_p] * 4
            status = function(self.dataset.pointer, ctypes.byref(space), ctypes.byref(stream),
                              ctypes.byref(error))
            if status and self.failure is None and not self.stopped:
                check(status, error)
        except BaseException as problem:  # pylint: disable=broad-exception-caught
            self.failure = self.failure or problem
        self.results.clear()
        while not self.stopped:
            try:
                self.ready.put((False, None), timeout=0.1)
                return
            except queue.Full:
                continue


def stream(name, variable, function, select, snapshot, part_bytes):
    """esdm.stream()"""
    group, _, plain = variable.rpartition("/")
    dataset = _data.handle(name, snapshot).dataset(group, plain)
    if dataset is None:
        raise KeyError(f"'{name}' has no variable '{variable}'")
    if dataset.dtype is None or dataset.dtype.hasobject:
        raise EsdmError(5, f"'{variable}': elements with texts or a type of the container's own are not read "
                        "part by part")
    run = _Run(dataset, _box(dataset, select or {}), function, part_bytes)
    return _iterate(run)


def _iterate(run):
    run.thread.start()
    try:
        while True:
            more, result = run.ready.get()
            if not more:
                break
            yield result
        if run.failure is not None:
            raise run.failure
    finally:
        run.stopped = True
        run.thread.join()
