# SPDX-License-Identifier: LGPL-3.0-or-later
"""Reading data over the C API (esdm/container.h). ctypes releases Python's lock (the GIL) during a call, and
esdm_read() may run in many threads at once: reads of several threads run side by side."""

import ctypes
import itertools
import os
import re
import threading
import weakref

import numpy

from . import _catalogue
from ._library import Error, EsdmError, NotFound, check, plain_name

MAX_RANK = 32
REPLACED = 4  # ESDM_ECONFLICT
TEXT, STRING, FIRST_USER_TYPE = 2, 12, 64
DTYPES = {1: "i1", TEXT: "S1", 3: "i2", 4: "i4", 5: "f4", 6: "f8", 7: "u1", 8: "u2", 9: "u4", 10: "i8",
          11: "u8"}
# A selection by arrays of indices is read in so many pieces at most, else as the box around it.
PIECES_MAX = 256
MOMENT = re.compile(r"@(?:[0-9-]|tag:)[^/@]*$")  # as src/api/moment.c has it
# So many fragments are looked at to learn their shape.
FRAGMENTS_LOOKED_AT = 64


class Dataspace(ctypes.Structure):
    """esdm_dataspace"""
    _fields_ = [("rank", ctypes.c_uint32), ("has_stride", ctypes.c_bool),
                ("has_memory_stride", ctypes.c_bool), ("offset", ctypes.c_uint64 * MAX_RANK),
                ("size", ctypes.c_uint64 * MAX_RANK), ("stride", ctypes.c_uint64 * MAX_RANK),
                ("memory_stride", ctypes.c_int64 * MAX_RANK)]


class Fragment(ctypes.Structure):
    """esdm_fragment_info"""
    _fields_ = [("rank", ctypes.c_uint32), ("offset", ctypes.POINTER(ctypes.c_uint64)),
                ("size", ctypes.POINTER(ctypes.c_uint64)), ("stride", ctypes.POINTER(ctypes.c_uint64)),
                ("raw_bytes", ctypes.c_uint64), ("stored_bytes", ctypes.c_uint64), ("position", ctypes.c_uint64),
                ("target", ctypes.c_char_p), ("pack", ctypes.c_char_p), ("codec", ctypes.c_char_p),
                ("sequence", ctypes.c_uint64)]


_lock = threading.RLock()
_api_ready = None
# (process, site, name with what is asked for, snapshot, identity): Handle
_open = weakref.WeakValueDictionary()


def _renew_lock():
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)


def api():
    """libesdm with the types of the functions that are called here."""
    global _api_ready
    if _api_ready is not None:
        return _api_ready
    library = _catalogue._api()  # pylint: disable=protected-access
    pointer, text, u64, u32 = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint32
    size = ctypes.c_size_t
    for name, result, arguments in (
            ("esdm_container_open", ctypes.c_int, [pointer, text, ctypes.c_int, u64, pointer, pointer]),
            ("esdm_container_discard", None, [pointer]),
            ("esdm_container_name", text, [pointer]),
            ("esdm_container_snapshot", u64, [pointer]),
            ("esdm_container_uuid", text, [pointer]),
            ("esdm_container_root", pointer, [pointer]),
            ("esdm_group_find", pointer, [pointer, text]),
            ("esdm_group_count", size, [pointer]),
            ("esdm_group_at", pointer, [pointer, size]),
            ("esdm_group_name", text, [pointer]),
            ("esdm_group_dataset_find", pointer, [pointer, text]),
            ("esdm_dataset_type", ctypes.c_int32, [pointer]),
            ("esdm_dataset_rank", u32, [pointer]),
            ("esdm_dataset_dimension", pointer, [pointer, u32]),
            ("esdm_dimension_name", text, [pointer]),
            ("esdm_dimension_length", u64, [pointer]),
            ("esdm_dataset_fragments", ctypes.c_int, [pointer, pointer, pointer, pointer]),
            ("esdm_read", ctypes.c_int, [pointer, pointer, ctypes.c_int32, pointer, pointer, pointer])):
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    _api_ready = library
    return library


def _stored_name(container):
    return api().esdm_container_name(container).decode()


class Handle:
    """A snapshot of a container, open for reading; shared by all that read it. It is closed when the last
    one of them goes. A forked process opens its own."""

    def __init__(self, name, snapshot):
        session, error, container = _catalogue._open_session(), Error(), ctypes.c_void_p()
        try:
            check(api().esdm_container_open(session, name.encode(), 0, snapshot, ctypes.byref(container),
                                            ctypes.byref(error)), error)
        except NotFound as missing:
            hint = _catalogue._hint(name)  # pylint: disable=protected-access
            raise NotFound(missing.status, missing.message + hint) from None
        self.process = os.getpid()
        self.container = container
        # A former container, which NAME@TIME finds, is called so, and opens by that alone.
        self.stored = _stored_name(container)
        # How it is read belongs to the name: the same snapshot has other numbers, or attributes, without it.
        self.asked = "" if _catalogue.asked_of(self.stored) else _catalogue.asked_of(name)
        self.name = self.stored + self.asked
        self.snapshot = api().esdm_container_snapshot(container)
        # Numbers of snapshots begin anew when a container is replaced: they alone name no data.
        self.identity = api().esdm_container_uuid(container).decode()

    @classmethod
    def borrowed(cls, container, name):
        """Of a container that somebody else closes."""
        handle_ = cls.__new__(cls)
        handle_.process = os.getpid()
        handle_.name = handle_.stored = name
        handle_.container, handle_.owned = container, False
        return handle_

    owned = True
    asked = ""

    @property
    def url(self):
        """What opens the same data again: the snapshot, or a query or a time, which nothing else names."""
        told = self.snapshot and not MOMENT.search(self.stored)
        return f"esdm://{self.stored}@{self.snapshot}{self.asked}" if told else f"esdm://{self.name}"

    def __del__(self):
        if os is None or os.getpid is None:  # the interpreter ends, and the process with it
            return
        if self.owned and getattr(self, "container", None) is not None and self.process == os.getpid():
            api().esdm_container_discard(self.container)

    def __reduce__(self):
        return handle, (self.name, self.snapshot, self.identity)

    def dataset(self, group, name):
        """The dataset in the group of that path ("/", "/ocean"), or None."""
        at = api().esdm_container_root(self.container)
        for part in filter(None, (group or "").split("/")):
            at = at and api().esdm_group_find(at, part.encode())
        found = at and api().esdm_group_dataset_find(at, name.encode())
        return Dataset(self, found) if found else None


def handle(name, snapshot=0, identity=None):
    """A handle of that snapshot; 0 is the newest one, or the one that the name tells (`run.nc@3`).
    @param identity of the container whose snapshot it must be, where that is known: another one may have
    its name and its numbers by now."""
    name = plain_name(name)
    with _lock:
        key = (os.getpid(), os.environ.get("ESDM_CONFIG"), name, snapshot, identity)
        found = _open.get(key) if snapshot and identity else None
        if found is None:
            found = Handle(name, snapshot)
            if snapshot and identity and identity != found.identity:
                raise EsdmError(REPLACED, f"'{name}' was replaced since it was opened: open it again "
                                "(esdm-ls --replaced tells what is kept of the former one)")
            key = (key[0], key[1], found.name, found.snapshot, found.identity)
            if found.snapshot:  # a query has none: what it finds may be another answer next time
                found = _open.setdefault(key, found)
        return found


class Dataset:
    """A variable of a snapshot: its type and shape, and reading."""

    def __init__(self, owner, pointer):
        library = api()
        self.owner = owner  # keeps it open
        self.pointer = pointer
        self.type = library.esdm_dataset_type(pointer)
        axes = [library.esdm_dataset_dimension(pointer, i)
                for i in range(library.esdm_dataset_rank(pointer))]
        self.dimensions = tuple(library.esdm_dimension_name(a).decode() for a in axes)
        self.shape = tuple(library.esdm_dimension_length(a) for a in axes)

    @property
    def dtype(self):
        """numpy's type; None for a type of the container's own."""
        if self.type == STRING:
            return numpy.dtype(object)
        return numpy.dtype(DTYPES[self.type]) if self.type in DTYPES else None

    def _read(self, target, place, offset, size, stride):
        """@param target array of the result. @param place where in it, one slice an axis."""
        space, error = Dataspace(rank=len(size)), Error()
        step = target.itemsize
        for axis, values in enumerate(zip(offset, size, stride)):
            space.offset[axis], space.size[axis], space.stride[axis] = values
            space.memory_stride[axis] = target.strides[axis] // step
        space.has_stride = any(s != 1 for s in stride)
        space.has_memory_stride = True
        part = target[place] if place else target
        check(api().esdm_read(self.pointer, ctypes.byref(space), self.type, part.ctypes.data, None,
                              ctypes.byref(error)), error)

    def _read_box(self, offset, size, stride, target=None, place=None):
        if target is None:
            target = numpy.empty(size, dtype="u8" if self.type == STRING else self.dtype)
            place = tuple(slice(None) for _ in size)
        if all(size):
            self._read(target, place, offset, size, stride)
        return target

    def read(self, key):
        """@param key a tuple with, for each axis, a number, a slice with a positive step, or an array of
        numbers >= 0 that is sorted or not (the outer product of them is taken).
        @return a new array, without the axes that had a number."""
        axes = [_axis(k, n) for k, n in zip(key, self.shape)]
        if len(axes) != len(self.shape):
            raise IndexError(f"{len(self.shape)} indices are needed, not {len(key)}")
        shape = tuple(sum(r[1] for r in a) for a in axes)
        pieces = 1
        for runs in axes:
            pieces *= max(len(runs), 1)
        if pieces > PIECES_MAX:
            return self._read_around(key)
        result = numpy.zeros(shape, "u8") if self.type == STRING else numpy.empty(shape, self.dtype)
        try:
            for runs in itertools.product(*axes):
                place = tuple(slice(at, at + n) for _, n, _, at in runs)
                self._read_box([r[0] for r in runs], [r[1] for r in runs], [r[2] for r in runs], result,
                               place)
        finally:
            texts = _take_texts(result) if self.type == STRING else None
        result = result if texts is None else texts
        gone = tuple(0 if isinstance(k, (int, numpy.integer)) else slice(None) for k in key)
        return result[gone] if any(not isinstance(g, slice) for g in gone) else result

    def _read_around(self, key):
        """For many single indices: what lies between the first and the last of them is read as well."""
        box, inner = [], []
        for k in key:
            if isinstance(k, numpy.ndarray) and k.size:
                low = int(k.min())
                box.append(slice(low, int(k.max()) + 1))
                inner.append(k - low)
            else:
                box.append(k)
                if not isinstance(k, (int, numpy.integer)):
                    inner.append(slice(None))
        result = self.read(tuple(box))
        for axis, k in enumerate(inner):
            if isinstance(k, numpy.ndarray):
                result = numpy.take(result, k, axis=axis)
        return result

    def fragment_shape(self):
        """The most common shape of the first fragments, or None."""
        shapes = []

        def visit(fragment, _):
            f = fragment.contents
            if not f.stride:
                shapes.append(tuple(f.size[i] for i in range(f.rank)))
            return len(shapes) < FRAGMENTS_LOOKED_AT

        callback = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.POINTER(Fragment), ctypes.c_void_p)(visit)
        error = Error()
        check(api().esdm_dataset_fragments(self.pointer, ctypes.cast(callback, ctypes.c_void_p), None,
                                           ctypes.byref(error)), error)
        return max(shapes, key=shapes.count) if shapes else None


def _axis(key, length):
    """Runs (offset, count, step, place in the result) that make up a key of one axis."""
    if isinstance(key, (int, numpy.integer)):
        if not 0 <= key < length:
            raise IndexError(f"index {key} is out of range: the axis has {length}")
        return [(int(key), 1, 1, 0)]
    if isinstance(key, slice):
        numbers = range(*key.indices(length))
        if numbers.step < 0:
            raise IndexError("steps must be positive")
        return [(numbers.start if numbers else 0, len(numbers), numbers.step, 0)]
    numbers = numpy.asarray(key)
    if numbers.size == 0:
        return [(0, 0, 1, 0)]
    if numbers.min() < 0 or numbers.max() >= length:
        raise IndexError(f"an index is out of range: the axis has {length}")
    cuts = numpy.flatnonzero(numpy.diff(numbers) != 1) + 1
    starts = [0, *cuts.tolist()]
    ends = [*cuts.tolist(), numbers.size]
    return [(int(numbers[a]), b - a, 1, a) for a, b in zip(starts, ends)]


_libc = ctypes.CDLL(None)
_libc.free.argtypes = [ctypes.c_void_p]


def free(pointer):
    """What a function of the C API handed over."""
    _libc.free(pointer)


def _take_texts(pointers):
    """Python's texts from those that esdm_read() made, which are freed."""
    texts = numpy.empty(pointers.shape, dtype=object)
    flat, into = pointers.reshape(-1), texts.reshape(-1)
    for i, at in enumerate(flat.tolist()):
        into[i] = ctypes.string_at(at).decode("utf-8", "replace") if at else ""
        _libc.free(at or None)
    return texts
