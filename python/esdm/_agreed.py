# SPDX-License-Identifier: LGPL-3.0-or-later
"""Coordinates that were compared with those of a container, and are the same: a loop that writes one time after the
other reads latitudes and longitudes of two dimensions once, and again after others have written to them."""

import collections
import ctypes
import hashlib
import os
import threading

import numpy

from . import _data
from ._library import Error, check

SMALLEST_BYTES = 1 << 20  # less is read as fast
MOST_FRAGMENTS = 10000
MOST_KNOWN = 256
MEANING = ("dtype", "scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned", "units", "calendar")

_lock = threading.Lock()
_known = collections.OrderedDict()  # digests, the one that was used last at the end


def _renew_lock():
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


def _add_fragments(told, pointer):
    """Where the data of a dataset lie: packs are never written to again. False: not all lie in packs."""
    seen = []

    def visit(fragment, _):
        f = fragment.contents
        fits = bool(f.pack) and not f.target.startswith(b"(") and len(seen) < MOST_FRAGMENTS
        place = tuple((f.offset[i], f.size[i], f.stride[i] if f.stride else 1) for i in range(f.rank))
        seen.append((place, f.target, f.pack, f.position, f.stored_bytes, f.sequence) if fits else None)
        return fits

    callback = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.POINTER(_data.Fragment), ctypes.c_void_p)(visit)
    error = Error()
    check(_data.api().esdm_dataset_fragments(pointer, ctypes.cast(callback, ctypes.c_void_p), None, ctypes.byref(error)), error)
    told.update(repr(sorted(seen, key=repr)).encode())
    return bool(seen) and None not in seen


def digest(handle, name, given, stored, begin):
    """Of all that a comparison depends on, for seen() and note(); None: it has to be made each time.
    @param handle of the container. @param given, stored, begin as in _writing._same_places()."""
    if hasattr(given.data, "__dask_graph__") or given.dtype.kind not in "iuf" or given.size * given.dtype.itemsize < SMALLEST_BYTES:
        return None
    meant = {k: repr(stored.encoding[k]) for k in MEANING if k in stored.encoding}
    uuid = _data.api().esdm_container_uuid(handle.container)
    told = hashlib.sha256(repr((uuid, name, given.dims, given.shape, given.dtype.str, sorted(given.attrs.items(), key=repr),
                                stored.dims, stored.shape, str(stored.dtype), sorted(stored.attrs.items(), key=repr), meant,
                                sorted((d, begin[d]) for d in given.dims if d in begin))).encode())
    if not _add_fragments(told, handle.dataset("/", name).pointer):
        return None
    told.update(numpy.ascontiguousarray(given.values))
    return told.digest()


def seen(known):
    with _lock:
        if known not in _known:
            return False
        _known.move_to_end(known)
        return True


def note(known):
    if known is None:
        return
    with _lock:
        _known[known] = True
        while len(_known) > MOST_KNOWN:
            _known.popitem(last=False)
