# SPDX-License-Identifier: LGPL-3.0-or-later
"""What a snapshot contains, as a text to be cited (esdm/digest.h)."""

import ctypes

from . import _catalogue, _data
from ._library import Error, check


def digest(name: str, snapshot=None) -> str:
    """The digest of what a container contains: equal contents have equal digests, wherever and however
    they are stored. Reads all values the first time.
    @param snapshot as in open(): a number, -1 (the one before the newest), or a time."""
    text, error = ctypes.create_string_buffer(71), Error()
    function = _data.api().esdm_container_digest
    function.restype = ctypes.c_int
    function.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p]
    handle = _data.handle(_catalogue._url(name, snapshot))  # pylint: disable=protected-access
    check(function(handle.container, 0, text, ctypes.byref(error)), error)
    return text.value.decode()
