# SPDX-License-Identifier: LGPL-3.0-or-later
"""What a snapshot contains, as a text to be cited (esdm/digest.h); branches (esdm/branch.h)."""

import ctypes

from . import _catalogue, _data
from ._library import Error, EsdmError, check, plain_name


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
    """Makes a branch of a container, or of another branch, a named line of commits, and returns its name, to be opened
    and written: "NAME@branch:BRANCH". No data are copied.
    @param snapshot with which it begins, as in open(): a number, -1 (the one before the newest), or a time."""
    function = _catalogue._api().esdm_branch_create  # pylint: disable=protected-access
    function.restype, function.argtypes = ctypes.c_int, [ctypes.c_void_p, *_BRANCH_TYPES]
    plain = plain_name(name)
    source = _catalogue._url(plain, snapshot)  # pylint: disable=protected-access
    _catalogue._call("esdm_branch_create", source.encode(),  # pylint: disable=protected-access
                     branch_name.encode(), None)
    return f"{plain.partition('@branch:')[0]}@branch:{branch_name}"


class _Conflict(ctypes.Structure):
    _fields_ = [("object", ctypes.c_char_p), ("what", ctypes.c_char_p), ("attribute", ctypes.c_char_p),
                ("rank", ctypes.c_uint32), ("offset", ctypes.POINTER(ctypes.c_uint64)),
                ("size", ctypes.POINTER(ctypes.c_uint64)), ("decided", ctypes.c_bool)]


_VISITOR = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Conflict), ctypes.c_void_p)


class _Options(ctypes.Structure):
    _fields_ = [("prefer", ctypes.c_int), ("dry_run", ctypes.c_bool), ("pick", ctypes.c_uint64),
                ("pick_after", ctypes.c_uint64), ("message", ctypes.c_char_p), ("report", _VISITOR), ("user", ctypes.c_void_p)]


class _Result(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in (
        "base", "theirs", "snapshot", "objects", "fragments", "referenced_bytes", "rewritten_bytes", "conflicts",
        "open_conflicts", "conflict_elements")]


class MergeConflict(EsdmError):
    """Container and branch have changed the same; nothing was merged. `result` tells where."""

    def __init__(self, status, message, result):
        super().__init__(status, message)
        self.result = result

    def __reduce__(self):
        return type(self), (self.status, self.message, self.result)


def merge(name: str, branch_name=None, prefer=None, dry_run: bool = False, pick=0, message=None) -> dict:
    """Makes the changes of a branch to its container, or to another branch of it, "NAME@branch:OTHER", in one
    commit; or the other way: the branch `name` gets what was changed in its container.
    @param branch_name None: the container itself, which the branch `name` is of.
    @param prefer "ours" or "theirs": what is done where both have changed the same; None: MergeConflict is raised,
    and nothing changes.
    @param pick only what this snapshot of the branch changed; (A, B): what it changed after A, up to B.
    @return what was done; "conflicts" lists where both have changed the same: "values" with "offset" and "size" of
    a box of elements."""
    conflicts = []

    def note(item, _):
        c = item.contents
        found = {"object": c.object.decode(), "what": c.what.decode(), "decided": bool(c.decided)}
        if c.attribute is not None:
            found["attribute"] = c.attribute.decode()
        if found["what"] == "values":
            found["offset"] = [c.offset[i] for i in range(c.rank)]
            found["size"] = [c.size[i] for i in range(c.rank)]
        conflicts.append(found)

    after, pick = pick if isinstance(pick, tuple) else (0, pick)
    options = _Options(prefer={None: 0, "ours": 1, "theirs": 2}[prefer], dry_run=dry_run, pick=pick, pick_after=after,
                       message=message.encode() if message else None, report=_VISITOR(note))
    function = _catalogue._api().esdm_merge  # pylint: disable=protected-access
    function.restype = ctypes.c_int
    function.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p,
                         ctypes.c_void_p]
    told, error = _Result(), Error()
    session = _catalogue._open_session()  # pylint: disable=protected-access
    status = function(session, plain_name(name).encode(),
                      branch_name.encode() if branch_name is not None else None, ctypes.byref(options), ctypes.byref(told), ctypes.byref(error))
    result = {field: getattr(told, field) for field, _ in _Result._fields_}
    result["conflicts"] = conflicts
    if status != 0 and told.open_conflicts > 0:
        raise MergeConflict(status, error.message.decode("utf-8", "replace"), result)
    check(status, error)
    return result
