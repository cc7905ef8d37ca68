# SPDX-License-Identifier: LGPL-3.0-or-later
"""Groups, datasets and attributes of a snapshot, over the C API (esdm/container.h)."""

import ctypes

import numpy

from . import _data


class _Attribute(ctypes.Structure):
    """esdm_attribute"""
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int32), ("count", ctypes.c_uint64),
                ("values", ctypes.c_void_p)]


def _api():
    library = _data.api()
    if getattr(library, "esdm_nodes_ready", False):
        return library
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    for name, result, arguments in (
            ("esdm_group_dataset_count", size, [pointer]),
            ("esdm_group_dataset_at", pointer, [pointer, size]),
            ("esdm_dataset_name", ctypes.c_char_p, [pointer]),
            ("esdm_dataset_attributes", pointer, [pointer]),
            ("esdm_group_attributes", pointer, [pointer]),
            ("esdm_attribute_count", size, [pointer]),
            ("esdm_attribute_at", ctypes.c_bool, [pointer, size, pointer]),
            ("esdm_dataset_fill", pointer, [pointer, pointer]),
            ("esdm_dataset_chunk", ctypes.POINTER(ctypes.c_uint64), [pointer])):
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    library.esdm_nodes_ready = True
    return library


def _text(pointer, count):
    return ctypes.string_at(pointer, count).decode("utf-8", "replace").replace("\0", "") if count else ""


def _value(attribute):
    """As netCDF4 gives it: a text, a list of texts, a number of numpy, or an array."""
    count, values = attribute.count, attribute.values
    if attribute.type == _data.TEXT:
        return _text(values, count)
    if attribute.type == _data.STRING:
        pointers = ctypes.cast(values, ctypes.POINTER(ctypes.c_char_p))
        texts = [(pointers[i] or b"").decode("utf-8", "replace") for i in range(count)]
        return texts[0] if count == 1 else texts
    dtype = numpy.dtype(_data.DTYPES[attribute.type])
    numbers = numpy.frombuffer(ctypes.string_at(values, count * dtype.itemsize) if count else b"", dtype)
    return numbers[0] if count == 1 else numbers


def attributes(pointer):
    """Names and values of a list of attributes; those of user-defined types are left out."""
    found, attribute = {}, _Attribute()
    for i in range(_api().esdm_attribute_count(pointer)):
        if _api().esdm_attribute_at(pointer, i, ctypes.byref(attribute)) and (
                attribute.type < _data.FIRST_USER_TYPE):
            found[attribute.name.decode()] = _value(attribute)
    return found


def dataset_attributes(dataset):
    return attributes(_api().esdm_dataset_attributes(dataset.pointer))


def fill(dataset):
    """What holes read as: one element, a number of numpy, bytes, or a text."""
    at = _api().esdm_dataset_fill(dataset.pointer, None)
    if dataset.type == _data.STRING:
        text = ctypes.cast(at, ctypes.POINTER(ctypes.c_char_p))[0]
        return (text or b"").decode("utf-8", "replace")
    return numpy.frombuffer(ctypes.string_at(at, dataset.dtype.itemsize), dataset.dtype)[0]


def stated_chunk(dataset):
    """The shape of fragments that was asked for, or None."""
    at = _api().esdm_dataset_chunk(dataset.pointer)
    return tuple(at[i] for i in range(len(dataset.shape))) if at and dataset.shape else None


def walk(handle):
    """All groups, parents first: (path, attributes, {name: dataset}). The root's path is ""."""
    def of(pointer, path):
        datasets = {}
        for i in range(_api().esdm_group_dataset_count(pointer)):
            at = _api().esdm_group_dataset_at(pointer, i)
            datasets[_api().esdm_dataset_name(at).decode()] = _data.Dataset(handle, at)
        yield path, attributes(_api().esdm_group_attributes(pointer)), datasets
        for i in range(_api().esdm_group_count(pointer)):
            child = _api().esdm_group_at(pointer, i)
            name = _api().esdm_group_name(child).decode()
            yield from of(child, f"{path}/{name}" if path else name)

    yield from of(_api().esdm_container_root(handle.container), "")
