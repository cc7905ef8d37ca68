# SPDX-License-Identifier: LGPL-3.0-or-later
"""What a snapshot contains, as a text to be cited (esdm/digest.h); branches (esdm/branch.h)."""

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


_BRANCH_TYPES = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p]


def branch(name: str, branch_name: str, snapshot=None) -> str:
    """Makes a branch of a container, a named line of commits, and returns its name, to be opened and written:
    "NAME@branch:BRANCH". No data are copied.
    @param snapshot with which it begins, as in open(): a number, -1 (the one before the newest), or a time."""
    function = _catalogue._api().esdm_branch_create  # pylint: disable=protected-access
    function.restype, function.argtypes = ctypes.c_int, [ctypes.c_void_p, *_BRANCH_TYPES]
    plain = name.removeprefix("esdm://")
    source = _catalogue._url(plain, snapshot)  # pylint: disable=protected-access
    _catalogue._call("esdm_branch_create", source.encode(),  # pylint: disable=protected-access
                     branch_name.encode(), None)
    return f"{plain}@branch:{branch_name}"
