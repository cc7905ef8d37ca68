# SPDX-License-Identifier: LGPL-3.0-or-later
"""What many processes write into one container, published in one commit, or not at all: they write to a branch."""

import contextlib
import ctypes

from . import _catalogue, _history
from ._library import plain_name


class _Line(str):
    """The name of the branch, for esdm.write_region() in any process. `snapshot` of the container is known at the end."""
    snapshot = None

    def __reduce__(self):  # other processes need the name alone
        return str, (str(self),)


def _named():
    """A branch that nobody else has, told by node, process and time, so that people see whose it is."""
    text = ctypes.create_string_buffer(112)  # ESDM_GATHER_NAME_BYTES
    function = _catalogue._api().esdm_gather_name  # pylint: disable=protected-access
    function.restype, function.argtypes = None, [ctypes.c_char_p]
    function(text)
    return text.value.decode()


_VISITOR = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_char_p, ctypes.c_void_p)


def _remove_left(name):
    """Branches of the container whose process was ended before it had gathered: nobody would merge them any more. The site
    keeps them for a while, as all that is removed."""
    left = []

    def note(found, _):
        left.append(found)
        return True

    function = _catalogue._api().esdm_gather_left  # pylint: disable=protected-access
    function.restype = ctypes.c_int
    function.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, _VISITOR, ctypes.c_void_p, ctypes.c_void_p]
    _catalogue._call("esdm_gather_left", name.encode(), 0, _VISITOR(note), None)  # pylint: disable=protected-access
    for found in left:
        with contextlib.suppress(_catalogue.EsdmError):  # somebody else's, or one that has a tag
            _catalogue.remove(found.decode())


def _keep(line):
    """Has the branch stay when this process ends."""
    function = _catalogue._api().esdm_gather_keep  # pylint: disable=protected-access
    function.restype = ctypes.c_int
    function.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p]
    _catalogue._call("esdm_gather_keep", line.encode(),  # pylint: disable=protected-access
                     b"others wrote the same meanwhile")


@contextlib.contextmanager
def gather(name, message=None):
    """See esdm.gather()."""
    plain = plain_name(name)
    container, _, base = plain.partition("@branch:")
    _remove_left(plain)
    line = _Line(_history.branch(plain, _named()))
    try:
        yield line
        told = _history.merge(f"{container}@branch:{base}" if base else container, line.partition("@branch:")[2],
                              message=message or f"gathered from {line}")
        line.snapshot = told["snapshot"] or _catalogue.stat(plain).snapshot
    except _history.MergeConflict as conflict:
        with contextlib.suppress(_catalogue.EsdmError):  # what went wrong first is told
            _keep(line)
        conflict.message += (f" (others wrote the same to '{plain}' meanwhile: what was gathered is in the branch '{line}'. "
                             f"esdm-rm '{line}', or esdm.remove(), removes it, before the data are written anew; "
                             f"esdm.merge('{plain}', '{line.partition('@branch:')[2]}', prefer=\"theirs\") takes it in place "
                             "of what others wrote)")
        raise
    except BaseException:
        with contextlib.suppress(_catalogue.EsdmError):  # what went wrong first is told
            _catalogue._call("esdm_container_erase", line.encode())  # pylint: disable=protected-access
        raise
    _catalogue._call("esdm_container_erase", line.encode())  # pylint: disable=protected-access
