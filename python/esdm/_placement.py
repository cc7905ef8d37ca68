# SPDX-License-Identifier: LGPL-3.0-or-later
"""Where the data of variables lie, and why there (esdm/session.h, esdm/placement.h), as `esdm-stat --explain` tells."""

import collections
import ctypes
import dataclasses
import typing

from . import _catalogue, _data, _stored
from ._library import Error, check


class _DecisionTarget(ctypes.Structure):
    _fields_ = [("target", ctypes.c_char_p), ("why", ctypes.c_char_p), ("predicted_s", ctypes.c_double)]


class _Decision(ctypes.Structure):
    """esdm_decision_info"""
    _fields_ = [("pack", ctypes.c_char_p), ("target", ctypes.c_char_p), ("fragments", ctypes.c_uint64),
                ("bytes", ctypes.c_uint64), ("predicted_s", ctypes.c_double), ("observed_s", ctypes.c_double),
                ("ntargets", ctypes.c_size_t), ("targets", ctypes.POINTER(_DecisionTarget))]


class _Request(ctypes.Structure):
    """esdm_forecast_request"""
    _fields_ = [("container", ctypes.c_char_p), ("path", ctypes.c_char_p), ("element_bytes", ctypes.c_uint64),
                ("rank", ctypes.c_uint32), ("shape", ctypes.POINTER(ctypes.c_uint64)), ("writes", ctypes.c_uint64),
                ("access", ctypes.c_char_p)]


class _Share(ctypes.Structure):
    """esdm_forecast_share"""
    _fields_ = [("target", ctypes.c_char_p), ("fragments", ctypes.c_uint64), ("bytes", ctypes.c_uint64),
                ("busy_s", ctypes.c_double)]


class CodecShare(typing.NamedTuple):
    """What of a variable, on one target, is stored by one codec."""
    codec: str
    fragments: int
    raw_bytes: int
    stored_bytes: int


class Alternative(typing.NamedTuple):
    """A target that was not chosen."""
    target: str
    why: str
    predicted_s: "float | None"  # of one fragment there, a mean; None: the site was not measured


@dataclasses.dataclass(frozen=True)
class Placement:
    """What of a variable lies on one target, and why there."""
    variable: str  # "tas", "ocean/tos"
    # "(inline)", "(constant)": in the metadata store; "(file)", "(link)": elsewhere; copies: "one,two";
    # on one node alone: "burst@node7".
    target: str
    fragments: int
    raw_bytes: int
    stored_bytes: int
    packs: int
    codecs: "tuple[CodecShare, ...]"  # most bytes first
    why: "str | None"  # the most frequent reason of its writers; None: they told none
    predicted_s: "float | None"  # for all fragments; None: the site was not measured
    observed_s: "float | None"
    others: "tuple[Alternative, ...]"  # targets that were not chosen

    def row(self):
        return {"variable": self.variable, "target": self.target,
                "data": _catalogue._bytes(self.raw_bytes),  # pylint: disable=protected-access
                "stored": _catalogue._bytes(self.stored_bytes),  # pylint: disable=protected-access
                "fragments": self.fragments, "codec": ", ".join(c.codec for c in self.codecs), "why": self.why or ""}


def _decoded(text):
    return text.decode("utf-8", "replace")


def _visit(name, pointers, structure, take, *rest):
    """Calls a function that visits what its first arguments, `pointers`, have."""
    function, error = getattr(_data.api(), name), Error()
    function.restype = ctypes.c_int
    function.argtypes = [ctypes.c_void_p] * (len(pointers) + 2 + len(rest) + 1)
    check(_catalogue._visiting(structure, take,  # pylint: disable=protected-access
                               lambda visitor: function(*pointers, visitor, None, *rest, ctypes.byref(error))), error)


class _Story:
    """What a writer said about one of its packs."""

    def __init__(self, told):
        self.bytes, self.predicted_s, self.observed_s = told.bytes, told.predicted_s, told.observed_s
        self.targets = [(_decoded(t.target), _decoded(t.why), t.predicted_s) for t in told.targets[:told.ntargets]]


class _Stand:
    """How a target stood, over the fragments of a variable."""

    def __init__(self):
        self.whys = collections.Counter()
        self.seconds = self.predicted = 0

    def why(self):
        return min(self.whys, key=lambda why: (-self.whys[why], why), default="")

    def mean_s(self):
        return self.seconds / self.predicted if self.predicted else None


class _Place:
    """A variable's fragments on one target."""

    def __init__(self):
        self.codecs = {}  # codec: [fragments, raw bytes, stored bytes]
        self.packs = {}  # pack: [fragments, stored bytes]

    def add(self, fragment):
        stored = fragment.stored_bytes
        codec = self.codecs.setdefault(fragment.codec, [0, 0, 0])
        codec[0] += 1
        codec[1] += fragment.raw_bytes
        codec[2] += stored
        if fragment.pack:
            pack = self.packs.setdefault(fragment.pack, [0, 0])
            pack[0] += 1
            pack[1] += stored

    def told(self, variable, target, stories, only):
        """Fragments have the part of their pack's seconds that they have of its bytes."""
        predicted, observed, known = 0.0, 0.0, False
        stands = collections.defaultdict(_Stand)
        for pack, (fragments, stored) in self.packs.items():
            story = stories.get(pack)
            if story is None:
                continue
            known = True
            share = stored / story.bytes if story.bytes else 0.0
            predicted += story.predicted_s * share
            observed += story.observed_s * share
            for name, why, seconds in story.targets:
                stand = stands[name]
                stand.whys[why] += fragments
                stand.seconds += seconds * fragments
                stand.predicted += fragments if seconds > 0 else 0
        chosen = [name.partition("@")[0] for name in target.split(",")]
        own = next((stands[name] for name in chosen if name in stands), None)
        why = own.why() if own else None
        if not known and self.packs and only() == chosen[0]:
            why = "no other target"
        codecs = sorted((CodecShare(_decoded(codec), *counts) for codec, counts in self.codecs.items()),
                        key=lambda share: (-share.stored_bytes, share.codec))
        sums = [sum(share[i] for share in codecs) for i in (1, 2, 3)]
        others = tuple(Alternative(name, stand.why(), stand.mean_s()) for name, stand in stands.items() if name not in chosen)
        return Placement(variable, target, *sums, len(self.packs), tuple(codecs), why, predicted or None,
                         observed if known else None, others)


def _only_target(handle):
    """The site's target where it has but one: then writers have no choice, and tell nothing. None: it has several."""
    targets, seconds = [], ctypes.c_double()
    request = _Request(container=handle.stored.encode(), path=b"/", element_bytes=1 << 30, writes=1)
    session = _catalogue._open_session()  # pylint: disable=protected-access
    _visit("esdm_forecast_write", (session, ctypes.byref(request)), _Share,
           lambda share: targets.append(_decoded(share.target)), ctypes.byref(seconds))
    return targets[0] if len(targets) == 1 else None


def placement(name: str, snapshot: "typing.Any" = 0) -> _catalogue.Table:
    """Where the data of each variable lie: bytes and fragments by target and codec, and why there and not elsewhere,
    as `esdm-stat --explain` tells. No values are read. What writers said of their choice is there once they have
    closed the container; those that were killed said nothing.
    @param snapshot 0: the newest one; a number, -1 (the one before the newest), or a time.
    @return a list of Placement, one for each variable and target, most bytes first; it is shown as a table. Variables
    without data are not in it."""
    handle = _stored.snapshot_of(name, snapshot)
    stories, known = {}, []

    def only():
        if not known:
            known.append(_only_target(handle))
        return known[0]

    _visit("esdm_container_decisions", (handle.container,), _Decision,
           lambda told: stories.__setitem__(told.pack, _Story(told)))
    found = _catalogue.Table()
    for variable, dataset in _stored.variables(handle):
        places = collections.defaultdict(_Place)
        _visit("esdm_dataset_fragments", (dataset.pointer,), _data.Fragment,
               lambda fragment, places=places: places[fragment.target].add(fragment))
        rows = [place.told(variable, _decoded(target), stories, only) for target, place in places.items()]
        found.extend(sorted(rows, key=lambda row: (-row.stored_bytes, row.target)))
    return found
