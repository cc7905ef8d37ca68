# SPDX-License-Identifier: LGPL-3.0-or-later
"""Storing xarray's datasets: with stated accuracies, and into containers that are there."""

import ctypes
import threading
import warnings

import numpy
import xarray

from . import _accuracy, _agreed, _catalogue, _data, _encoding, _gathering
from ._library import Error, EsdmError, check, plain_name

CONFLICT = 4  # ESDM_ECONFLICT
TRIES = 5


def _need_dataset(dataset):
    if isinstance(dataset, xarray.DataArray):
        raise TypeError("an xarray.Dataset is needed, not a DataArray: array.to_dataset(name=\"VARIABLE\") makes one of it")
    if not isinstance(dataset, xarray.Dataset):
        raise TypeError(f"an xarray.Dataset is needed, not a {type(dataset).__name__}")


def write(dataset, name, accuracy, chunks, options):
    _need_dataset(dataset)
    copy = _accuracy.accuracy(accuracy).apply(dataset)
    encoding = {k: dict(v) for k, v in options.pop("encoding", {}).items()}
    for unknown in set(chunks or {}) - set(copy.sizes):
        raise ValueError(f"chunks: there is no dimension '{unknown}'")
    for key, variable in copy.variables.items() if chunks else ():
        if set(variable.dims) & set(chunks):
            sizes = tuple(max(1, min(chunks.get(d, n), n)) for d, n in variable.sizes.items())
            encoding.setdefault(key, {}).setdefault("chunksizes", sizes)
    return copy.to_netcdf("esdm://" + plain_name(name), engine="netcdf4", encoding=encoding,
                          **options)


def _write_block(target, offset, values):
    """Of esdm_write(): dense values at that place."""
    if target.type == _data.STRING:
        texts = [str(t).encode() for t in values.reshape(-1)]
        buffer = (ctypes.c_char_p * len(texts))(*texts)
    else:
        values = numpy.ascontiguousarray(values, dtype=target.dtype)
        buffer = values.ctypes.data
    space, error = _data.Dataspace(rank=values.ndim), Error()
    for axis, (start, size) in enumerate(zip(offset, values.shape)):
        space.offset[axis], space.size[axis], space.stride[axis] = start, size, 1
    check(_data.api().esdm_write(target.pointer, ctypes.byref(space), target.type, buffer, None,
                                 ctypes.byref(error)), error)


class _Writes:
    """Writes that are under way: dask raises what one block raised while others are still written, and the
    container must not go beneath these."""

    def __init__(self):
        self.changed, self.running, self.ended = threading.Condition(), 0, False

    def __enter__(self):
        with self.changed:
            if self.ended:
                raise RuntimeError("nothing more is written: another block failed")
            self.running += 1

    def __exit__(self, *_):
        with self.changed:
            self.running -= 1
            self.changed.notify_all()

    def end(self):
        """Waits for those under way, and lets no more begin."""
        with self.changed:
            self.ended = True
            self.changed.wait_for(lambda: self.running == 0)


class _Far:
    """The same of a container that whoever computes a block opens by its name, in its own process."""

    def __init__(self, name, key, start):
        self.name, self.key, self.start = name, key, start

    def __setitem__(self, where, values):
        offset = [s + (k.start or 0) for s, k in zip(self.start, where)]
        values = numpy.asarray(values)
        for attempt in range(TRIES):
            container = _open_for_writing(self.name)
            try:
                _write_block(_data.Handle.borrowed(container, self.name).dataset("/", self.key), offset, values)
                _commit(container, None)
                return
            except EsdmError as error:
                # The same block, which a scheduler has given to another one, too: what is there now may be overwritten.
                if error.status != CONFLICT or attempt + 1 == TRIES:
                    raise
            finally:
                _data.api().esdm_container_discard(container)


class _Target:
    """A block of a dataset that takes values as an array does; for dask."""

    def __init__(self, dataset, start, writes):
        self.dataset, self.start, self.writes = dataset, start, writes

    def __setitem__(self, key, values):
        offset = [s + (k.start or 0) for s, k in zip(self.start, key)]
        with self.writes:
            _write_block(self.dataset, offset, numpy.asarray(values))


def _write_variable(target, start, variable, writes):
    data = variable.data
    if hasattr(data, "__dask_graph__"):
        # One block in memory for each thread; esdm_write() takes them side by side.
        data.store(_Target(target, start, writes), lock=False, scheduler="threads")
    elif variable.size:
        _write_block(target, start, numpy.asarray(data))


def _computed_elsewhere(variables):
    """The dask arrays of variables, if these are computed by other processes, or by a scheduler of which that is not
    known: dask.distributed, "processes". Else nothing: threads of this one write side by side into one handle."""
    arrays = [v.data for v in variables if hasattr(v.data, "__dask_graph__")]
    if not arrays:
        return []
    import dask  # pylint: disable=import-outside-toplevel
    from dask import local, threaded  # pylint: disable=import-outside-toplevel
    chosen = dask.base.get_scheduler(collections=arrays)
    return [] if chosen in (None, threaded.get, local.get_sync) else arrays


def _commit(container, message):
    error = Error()
    check(_data.api().esdm_container_commit(container, message.encode() if message else None, ctypes.byref(error)), error)


def _open_for_writing(name):
    library, pointer, error = _data.api(), ctypes.c_void_p, Error()
    for function, arguments in (
            ("esdm_write", [pointer, pointer, ctypes.c_int32, pointer, pointer, pointer]),
            ("esdm_container_commit", [pointer, ctypes.c_char_p, pointer])):
        getattr(library, function).argtypes = arguments
        getattr(library, function).restype = ctypes.c_int
    container = pointer()
    session = _catalogue._open_session()  # pylint: disable=protected-access
    check(library.esdm_container_open(session, name.encode(), 1, 0, ctypes.byref(container),
                                      ctypes.byref(error)), error)
    return container


def _same_points(dim, given, stored):
    """Latitudes the other way round have the same length, too."""
    if given.dims != (dim,) or stored.dims != (dim,) or not given.size:
        return
    if given.dtype.kind in "iuf" and stored.dtype.kind in "iuf":
        # Far less than the distance of two points: single precision, and texts of numbers, are rounded.
        a, b = (v.values.astype("f8") for v in (given, stored))
        same = numpy.allclose(a, b, rtol=1e-6, atol=1e-3 * numpy.ptp(b) / b.size, equal_nan=True)
        known = True
    else:
        known = given.dtype.kind in "OSUT" and stored.dtype.kind in "OSUT"
        same = not known or given.values.astype(str).tolist() == stored.values.astype(str).tolist()
    if known and not same:
        raise ValueError(f"'{dim}' has other values in the container, or another order: {stored.values[0]} to "
                         f"{stored.values[-1]}, not {given.values[0]} to {given.values[-1]} (without the variable '{dim}' "
                         "data are written as they lie)")


def _readable(variable, at):
    """One of its values, as a time where it is one."""
    one = variable[tuple(slice(i, i + 1) for i in at)]
    try:
        return xarray.conventions.decode_cf_variable("", one, decode_timedelta=False).values.reshape(-1)[0]
    except (ValueError, OverflowError):
        return one.values.reshape(-1)[0]


def _step(values):
    """How far the points of a coordinate are from each other, about; 0 of a single one."""
    steps = [numpy.abs(numpy.diff(values, axis=axis)) for axis in range(values.ndim)]
    if values.ndim == 1:
        return min(steps[0][steps[0] > 0], default=0.0)
    return max((float(numpy.median(s[s > 0])) for s in steps if (s > 0).any()), default=0.0)


def _same_places(name, given, stored, begin):
    """Data of another month, or another grid: the container's own coordinate or bounds, where the region lies, are what is
    given, or missing.
    @param given as it is to be stored. @param begin {dimension: where the region begins}."""
    if given.dims != stored.dims:
        return
    stored = stored.isel({d: slice(begin.get(d, 0), begin.get(d, 0) + given.sizes[d]) for d in given.dims})
    given = given.isel({d: slice(stored.sizes[d]) for d in given.dims})
    if not stored.size:
        return
    import netCDF4  # pylint: disable=import-outside-toplevel
    dtype = stored.encoding.get("dtype", stored.dtype)
    a, b = (v.values for v in (xarray.conventions.decode_cf_variable(name, given, decode_times=False, decode_timedelta=False), stored))
    if a.dtype.kind in "iuf" and b.dtype.kind in "iuf":
        missing = b == netCDF4.default_fillvals.get(numpy.dtype(dtype).str[1:])
        rounded = numpy.dtype(dtype).kind == "f" or "scale_factor" in stored.encoding
        if rounded or "f" in (a.dtype.kind, b.dtype.kind):
            missing |= numpy.isnan(b)
            if not set(given.dims) & set(begin):  # it is not written: what the data do not know takes nothing away
                missing |= numpy.isnan(a)
        other = (a != b) & ~missing
        if rounded and other.any():
            # Far less than the distance of two points: single precision, and texts of numbers, are rounded.
            a, b = a.astype("f8"), b.astype("f8")
            near = (1e-6 if numpy.dtype("f4") in (dtype, given.dtype) else 1e-12) * numpy.abs(b) + 1e-3 * _step(a)
            with numpy.errstate(invalid="ignore"):
                other &= ~(numpy.abs(a - b) <= near)
    elif a.dtype.kind in "OSUT" and b.dtype.kind in "OSUT":
        a, b = a.astype(str), b.astype(str)
        other = (a != b) & (b != "")
    else:
        return
    if other.any():
        at = numpy.unravel_index(int(other.argmax()), other.shape)
        where = ", ".join(str(begin.get(d, 0) + int(i)) for d, i in zip(given.dims, at))
        if "units" not in stored.attrs and "units" in given.attrs:  # bounds have those of what they are bounds of
            stored.attrs = {**stored.attrs, **{k: given.attrs[k] for k in ("units", "calendar") if k in given.attrs}}
        region = "region: " if set(given.dims) & set(begin) else ""
        raise ValueError(f"{region}'{name}' has other values in the container: at {where} it is {_readable(stored, at)}, not "
                         f"{_readable(given, at)} (without the variable '{name}' data are written as they lie, and netCDF4 changes it)")


def _checked(dataset, there, places, every):
    """Names of the variables that are written. Whatever does not fit is told before anything is."""
    wanted = [k for k, v in dataset.variables.items() if set(v.dims) & set(places)]
    if not wanted:
        raise ValueError(f"no variable has the dimension {', '.join(map(repr, places))}")
    for key in wanted:
        if key not in there.variables:
            raise ValueError(f"the container has no variable '{key}'")
        stored = there.variables[key]
        if set(stored.dims) != set(dataset.variables[key].dims):
            raise ValueError(f"'{key}' has the dimensions {stored.dims} in the container")
        if stored.encoding.get("char_dim_name") or stored.encoding.get("dtype") == numpy.dtype("S1"):
            raise NotImplementedError(f"'{key}' is stored as characters: write it with netCDF4")
        for dim, size in dataset.variables[key].sizes.items():
            if dim not in places and there.sizes[dim] != size:
                raise ValueError(f"'{dim}' has {there.sizes[dim]} in the container, not {size}")
    for dim, size in dataset.sizes.items():
        if dim not in places and there.sizes.get(dim) == size and dim in dataset.variables and dim in there.variables:
            _same_points(dim, dataset.variables[dim], there.variables[dim])
    missing = [k for k, v in there.variables.items() if set(v.dims) & set(places) and k not in wanted]
    if every and missing:
        raise ValueError(f"not given, and would be missing values: {', '.join(missing)}")
    return wanted


def _placing(dataset, there, described, places, wanted):
    """Names of coordinates and bounds that both have: what is written, and what lies along the other dimensions, but for
    those of one dimension, which _checked() has compared."""
    along = {d for key in wanted for d in dataset.variables[key].dims}
    terms = _encoding.terms(there.variables) | _encoding.terms(dataset.variables)
    for key in sorted({*dataset.coords, *there.coords, *described} & set(dataset.variables) & set(there.variables)):
        given, stored = dataset.variables[key], there.variables[key]
        other = not set(given.dims) & set(places)
        if key in terms and key not in given.dims and not other:  # as the pressure at the ground: data like others
            continue
        if stored.encoding.get("char_dim_name") or stored.encoding.get("dtype") == numpy.dtype("S1"):
            continue
        if set(given.dims) == set(stored.dims) and given.dims and not (other and (
                key in given.dims or given.sizes != stored.sizes or not set(given.dims) <= along)):
            yield key


def _tell_times_that_are_there(name, dim, given, stored):
    """Whoever runs a job again adds its times once more, and means of the whole are wrong."""
    if " since " not in str(stored.attrs.get("units", "")) or stored.dims != (dim,) or given.dims != (dim,) or not stored.size:
        return
    if {"scale_factor", "add_offset"} & set(stored.encoding):  # `given` is packed, `stored` is not
        return
    numbers = given.values
    last = stored[-1:].values[0]
    if numbers.dtype.kind not in "iuf" or not numbers.size or (numbers > last).all():
        return
    again = numpy.isin(numbers, stored.values)
    if again.any():
        first = numbers[again][0]
        warnings.warn(f"'{name}' has {again.sum()} of {numbers.size} times already that are added to it, such as {first} "
                      f"{stored.attrs['units']}: now it has them twice (a job that ran again?); esdm.write_region() writes over "
                      "what is there", stacklevel=5)


def store_into(dataset, name, places, every, message):
    """Writes a dataset into a container and commits once; after an error nothing is published.
    @param places {dimension: slice}; None as slice: behind the end."""
    name = plain_name(name)
    _need_dataset(dataset)
    if _computed_elsewhere([v for v in dataset.variables.values() if set(v.dims) & set(places)]):
        with _gathering.gather(name, message) as line:
            _store_into(dataset, line, places, every, None, True)
        return line.snapshot
    return _store_into(dataset, name, places, every, message, False)


def _store_into(dataset, name, places, every, message, elsewhere):
    from .xarray_engine import EsdmBackend  # pylint: disable=import-outside-toplevel
    library = _data.api()
    container = _open_for_writing(name)
    writes, left = _Writes(), {}
    try:
        handle = _data.Handle.borrowed(container, name)
        snapshot = library.esdm_container_snapshot(container)
        # Times stay numbers: some may be missing, where another process has written behind them (gather()).
        with xarray.open_dataset(f"esdm://{name}@{snapshot}", engine=EsdmBackend, decode_times=False) as there:
            unknown = set(places) - set(there.sizes)
            if unknown:
                raise ValueError(f"the container has no dimension {', '.join(map(repr, unknown))}")
            fixed = [d for d, part in places.items() if part is None and d not in there.encoding.get("unlimited_dims", ())]
            if fixed:
                raise ValueError(f"nothing can be added to '{name}': its dimension '{fixed[0]}' has a fixed length of "
                                 f"{there.sizes[fixed[0]]}; esdm.write(…, unlimited_dims=['{fixed[0]}']) makes one that grows")
            begin = {d: there.sizes[d] if part is None else part.start or 0 for d, part in places.items()}
            for dim, part in places.items():
                if part is not None and part.stop is None:
                    _same_length(dim, part, there.sizes[dim] - begin[dim], dataset)
            wanted = _checked(dataset, there, places, every)
            described = {**_encoding.bounds(dataset.variables), **_encoding.bounds(there.variables)}

            def encoded(key):
                of = described.get(key)
                return _encoding.encoded(dataset.variables[key], there.variables[key], key,
                                         (dataset.variables.get(of), there.variables.get(of)))

            # What says where the values lie, of other dimensions, too: data of another grid may have as many points.
            for key in _placing(dataset, there, described, places, wanted):
                given = encoded(key)
                known = _agreed.digest(handle, key, given, there.variables[key], begin)
                if known is None or not _agreed.seen(known):
                    _same_places(key, given, there.variables[key], begin)
                    _agreed.note(known)
            for dim in (d for d, part in places.items() if part is None and d in wanted and d in there.variables):
                _tell_times_that_are_there(name, dim, encoded(dim), there.variables[dim])
            for key in wanted:
                variable = encoded(key)
                start = [begin.get(d, 0) for d in variable.dims]
                if elsewhere and hasattr(variable.data, "__dask_graph__"):
                    left[_Far(str(name), key, start)] = variable.data
                    continue
                _write_variable(handle.dataset("/", key), start, variable, writes)
        _commit(container, message)
        if left:
            import dask.array  # pylint: disable=import-outside-toplevel
            dask.array.store(list(left.values()), list(left), lock=False)
        return library.esdm_container_snapshot(container)
    finally:
        writes.end()
        library.esdm_container_discard(container)


def _checked_region(dataset, region):
    """{dimension: slice}, of which those that have both ends are as long as the data."""
    wanted = "{\"time\": slice(4, 6)}"
    if not hasattr(region, "items"):
        raise TypeError(f"region: a dictionary such as {wanted} is needed, not {region!r}")
    if not region:
        raise ValueError(f"region: it names no dimension; {wanted} is one")
    for dim, part in region.items():
        if not isinstance(part, slice):
            one = f": slice({part}, {part + 1}) is that one" if hasattr(part, "__index__") and part >= 0 else ""
            raise TypeError(f"region: '{dim}' must be a slice(A, B), not {part!r}{one}")
        numbers = [n for n in (part.start, part.stop, part.step) if n is not None]
        if not all(hasattr(n, "__index__") for n in numbers):
            raise TypeError(f"region: '{dim}' must be a slice(A, B) of whole numbers, not {part!r}")
        if any(n < 0 for n in numbers) or part.step not in (None, 1):
            raise ValueError(f"region: '{dim}' must be a slice(A, B) that counts from 0 and has no steps, not {part!r}")
        if dim not in dataset.sizes:
            raise ValueError(f"region: the data have no dimension '{dim}'")
        if part.stop is not None:
            _same_length(dim, part, part.stop - (part.start or 0), dataset)
    return dict(region)


def _same_length(dim, part, length, dataset):
    if length != dataset.sizes[dim]:
        to = "the end" if part.stop is None else part.stop
        raise ValueError(f"region: '{dim}' from {part.start or 0} to {to} has the length {max(0, length)}, and the data "
                         f"{dataset.sizes[dim]}")


def write_region(dataset, name, region, message=None):
    _need_dataset(dataset)
    return store_into(dataset, name, _checked_region(dataset, region), False, message)
