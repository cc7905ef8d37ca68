# SPDX-License-Identifier: LGPL-3.0-or-later
"""A snapshot of a container as a Zarr store (version 3 of the format), which is made on the fly: for
zarr-python and xarray's engine "zarr". Chunks are regular, whatever the fragments are; no data are copied
to storage."""

import asyncio
import base64
import itertools
import json
import math
import struct

import numpy
from zarr.abc.store import OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest
from zarr.core.buffer import default_buffer_prototype

from . import _data, _nodes

CHUNK_BYTES_MAX = 64 << 20
CHUNK_BYTES_WANTED = 4 << 20
META = "zarr.json"


def _json_value(value):
    """Numbers that JSON does not have are texts, as Zarr has them."""
    if isinstance(value, numpy.ndarray):
        return [_json_value(v) for v in value]
    if isinstance(value, numpy.generic):
        value = value.item()
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _encoded_fill(value):
    """The attribute _FillValue as xarray keeps it in Zarr 3."""
    if isinstance(value, numpy.floating):
        return base64.standard_b64encode(struct.pack("<d", float(value))).decode()
    if isinstance(value, numpy.integer):
        return int(value)
    if isinstance(value, bytes):
        return base64.standard_b64encode(value).decode()
    return _json_value(value)


def _chunk_of(dataset):
    """What was asked for, else the shape of the fragments, else about 4 MiB; at most 64 MiB."""
    stated = _nodes.stated_chunk(dataset) or (dataset.fragment_shape() if dataset.shape else None)
    item = max(dataset.dtype.itemsize, 1)
    limit = CHUNK_BYTES_MAX if stated else CHUNK_BYTES_WANTED
    shape = [max(1, min(c, n)) for c, n in zip(stated or dataset.shape, dataset.shape)]
    for axis in range(len(shape)):
        others = math.prod(shape) // shape[axis] * item
        if others * shape[axis] > limit:
            shape[axis] = max(1, limit // others)
    return tuple(shape)


class _Array:
    """A variable, cut into chunks."""

    def __init__(self, dataset):
        self.dataset = dataset
        self.chunk = _chunk_of(dataset)
        self.fill = _nodes.fill(dataset)
        self.grid = tuple(-(-n // c) for n, c in zip(dataset.shape, self.chunk))

    def metadata(self):
        told = {}
        for name, value in _nodes.dataset_attributes(self.dataset).items():
            told[name] = _encoded_fill(self._raw(value)) if name == "_FillValue" else _json_value(value)
        kind, codecs, fill = self._type()
        return {"zarr_format": 3, "node_type": "array", "shape": list(self.dataset.shape),
                "data_type": kind, "fill_value": fill, "codecs": codecs, "attributes": told,
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(self.chunk)}},
                "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
                "dimension_names": list(self.dataset.dimensions), "storage_transformers": []}

    def _raw(self, value):
        return value.encode() if self.dataset.type == _data.TEXT and isinstance(value, str) else value

    def _type(self):
        if self.dataset.type == _data.STRING:
            return "string", [{"name": "vlen-utf8", "configuration": {}}], self.fill
        if self.dataset.type == _data.TEXT:
            return ({"name": "null_terminated_bytes", "configuration": {"length_bytes": 1}},
                    [{"name": "bytes"}], base64.standard_b64encode(self.fill).decode())
        codec = {"name": "bytes", "configuration": {"endian": "little"}}
        if self.dataset.dtype.itemsize == 1:
            codec = {"name": "bytes"}
        return self.dataset.dtype.name, [codec], _json_value(self.fill)

    def keys(self):
        for index in itertools.product(*map(range, self.grid)):
            yield "/".join(("c", *map(str, index)))

    def index_of(self, key):
        """The chunk that `c/1/0` names, or None."""
        parts = key.split("/")
        if parts[0] != "c" or len(parts) != len(self.grid) + 1 or not all(
                p.isdecimal() and p == str(int(p)) for p in parts[1:]):
            return None
        index = tuple(map(int, parts[1:]))
        return index if all(i < n for i, n in zip(index, self.grid)) else None

    def read(self, index):
        """The bytes of a chunk; those at the end of an axis are filled up."""
        box = tuple(slice(i * c, min((i + 1) * c, n))
                    for i, c, n in zip(index, self.chunk, self.dataset.shape))
        values = self.dataset.read(box)
        if values.shape != self.chunk:
            whole = numpy.full(self.chunk, self.fill, dtype=values.dtype)
            whole[tuple(slice(0, n) for n in values.shape)] = values
            values = whole
        if self.dataset.type == _data.STRING:
            texts = [t.encode() for t in values.reshape(-1)]
            return struct.pack("<I", len(texts)) + b"".join(
                struct.pack("<I", len(t)) + t for t in texts)
        return values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()


class EsdmStore(Store):
    """@see esdm.zarr(). `left_out` lists the variables of user-defined types, which Zarr does not have."""

    supports_writes = False
    supports_deletes = False
    supports_listing = True

    def __init__(self, name, snapshot=0, identity=None):
        super().__init__(read_only=True)
        self._make(_data.handle(name, snapshot, identity))

    def _make(self, handle):
        self.handle = handle
        self.arrays, self.nodes, self.left_out = {}, {}, []
        for path, told, datasets in _nodes.walk(handle):
            self.nodes[path] = {"zarr_format": 3, "node_type": "group",
                                "attributes": {k: _json_value(v) for k, v in told.items()}}
            for name, dataset in datasets.items():
                at = f"{path}/{name}" if path else name
                if dataset.dtype is None:
                    self.left_out.append(at)
                    continue
                self.arrays[at] = _Array(dataset)
                self.nodes[at] = self.arrays[at].metadata()
        self.nodes[""]["consolidated_metadata"] = {
            "kind": "inline", "must_understand": False,
            "metadata": {k: v for k, v in self.nodes.items() if k}}

    def __getstate__(self):
        return {"place": (self.handle.name, self.handle.snapshot, self.handle.identity)}

    def __setstate__(self, state):
        self.__init__(*state["place"])

    def __eq__(self, other):
        return isinstance(other, EsdmStore) and self.__getstate__() == other.__getstate__()

    __hash__ = None

    def __str__(self):
        return self.handle.url

    def __repr__(self):
        return f"EsdmStore({str(self)!r})"

    def with_read_only(self, read_only=False):
        if not read_only:
            raise ValueError(f"{self} is a snapshot: it cannot be written through Zarr")
        return self

    def _find(self, key):
        """The node and what is wanted of it: META, or the index of a chunk; None: no such key."""
        path, _, last = key.rpartition("/")
        if last == META or key == META:
            return (path, META) if path in self.nodes else None
        cut = key.rfind("/c/")
        path, rest = (key[:cut], key[cut + 1:]) if cut >= 0 else (path, last)
        array = self.arrays.get(path)
        index = array.index_of(rest) if array else None
        return (path, index) if index is not None else None

    def read_bytes(self, key):
        """The bytes of a key, or None; blocks."""
        found = self._find(key)
        if found is None:
            return None
        if self.handle.process != _data.os.getpid():  # forked
            self._make(_data.handle(*self.__getstate__()["place"]))
        path, what = found
        return json.dumps(self.nodes[path]).encode() if what == META else self.arrays[path].read(what)

    def get_sync(self, key, *, prototype=None, byte_range=None):
        """As get(), for callers that are not asynchronous."""
        data = self.read_bytes(key)
        if data is None:
            return None
        if isinstance(byte_range, RangeByteRequest):
            data = data[byte_range.start:byte_range.end]
        elif isinstance(byte_range, OffsetByteRequest):
            data = data[byte_range.offset:]
        elif isinstance(byte_range, SuffixByteRequest):
            data = data[max(0, len(data) - byte_range.suffix):]
        return (prototype or default_buffer_prototype()).buffer.from_bytes(data)

    async def get(self, key, prototype=None, byte_range=None):
        return await asyncio.to_thread(self.get_sync, key, prototype=prototype, byte_range=byte_range)

    async def get_partial_values(self, prototype, key_ranges):
        return list(await asyncio.gather(*(self.get(k, prototype, r) for k, r in key_ranges)))

    async def exists(self, key):
        return self._find(key) is not None

    async def set(self, key, value):
        self._check_writable()

    async def delete(self, key):
        self._check_writable()

    async def list(self):
        for path in self.nodes:
            above = path + "/" if path else ""
            yield above + META
            if path in self.arrays:
                for key in self.arrays[path].keys():
                    yield above + key

    async def list_prefix(self, prefix):
        async for key in self.list():
            if key.startswith(prefix):
                yield key

    async def list_dir(self, prefix):
        prefix = prefix.strip("/")
        seen = {}
        if prefix in self.nodes:
            seen[META] = None
            above = prefix + "/" if prefix else ""
            seen.update((p[len(above):].split("/")[0], None) for p in self.nodes
                        if p and p.startswith(above))
            if prefix in self.arrays and all(self.arrays[prefix].grid):
                seen["c"] = None
        else:
            cut = (prefix + "/").rfind("/c/")
            array = self.arrays.get(prefix[:cut]) if cut >= 0 else None
            depth = len(prefix[cut + 1:].split("/")) - 1
            if array and depth < len(array.grid):
                seen.update((str(i), None) for i in range(array.grid[depth]))
        for name in seen:
            yield name
