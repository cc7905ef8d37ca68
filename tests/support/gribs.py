# SPDX-License-Identifier: LGPL-3.0-or-later
"""GRIB messages made by ecCodes' library, from its samples; and messages with several fields, which it does
not write."""

import ctypes
import ctypes.util
import functools
import pathlib
import struct

SAMPLES = pathlib.Path("/usr/share/eccodes/samples")


@functools.lru_cache(maxsize=None)  # to find it a program is started
def library():
    lib = ctypes.CDLL(ctypes.util.find_library("eccodes"))
    lib.codes_handle_new_from_message_copy.restype = ctypes.c_void_p
    lib.codes_handle_new_from_message_copy.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
    lib.codes_handle_delete.argtypes = [ctypes.c_void_p]
    lib.codes_set_long.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_long]
    lib.codes_set_double.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_double]
    lib.codes_set_string.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p]
    lib.codes_set_double_array.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t]
    lib.codes_get_size.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    lib.codes_get_double_array.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p]
    lib.codes_get_message.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    lib.codes_get_error_message.restype = ctypes.c_char_p
    return lib


def message(source, values=None, **keys):
    """A message like `source` (bytes, or the name of a sample) with other keys, set in their order."""
    lib = library()
    data = source if isinstance(source, bytes) else (SAMPLES / f"{source}.tmpl").read_bytes()
    h = lib.codes_handle_new_from_message_copy(None, data, len(data))
    assert h, source

    def good(code, what):
        assert code == 0, f"{what}: {lib.codes_get_error_message(code).decode()}"

    for key, value in keys.items():
        name = key.encode()
        if isinstance(value, str):
            text = value.encode()
            good(lib.codes_set_string(h, name, text, ctypes.byref(ctypes.c_size_t(len(text)))), key)
        elif isinstance(value, float):
            good(lib.codes_set_double(h, name, value), key)
        elif isinstance(value, int):
            good(lib.codes_set_long(h, name, value), key)
        else:
            array = (ctypes.c_double * len(value))(*value)
            good(lib.codes_set_double_array(h, name, array, len(value)), key)
    if values is not None:
        array = (ctypes.c_double * len(values))(*values)
        good(lib.codes_set_double_array(h, b"values", array, len(values)), "values")
    where, size = ctypes.c_void_p(), ctypes.c_size_t()
    good(lib.codes_get_message(h, ctypes.byref(where), ctypes.byref(size)), "message")
    result = ctypes.string_at(where.value, size.value)
    lib.codes_handle_delete(h)
    return result


def values_of(data, missing=-9e33):
    """All values of a message."""
    lib = library()
    h = lib.codes_handle_new_from_message_copy(None, data, len(data))
    assert h
    assert lib.codes_set_double(h, b"missingValue", missing) == 0
    size = ctypes.c_size_t()
    assert lib.codes_get_size(h, b"values", ctypes.byref(size)) == 0
    array = (ctypes.c_double * size.value)()
    assert lib.codes_get_double_array(h, b"values", array, ctypes.byref(size)) == 0
    lib.codes_handle_delete(h)
    return list(array)


def sections(data):
    """Sections 1 to 7 of a message of edition 2 with one field, by number."""
    at, found = 16, {}
    while data[at:at + 4] != b"7777":
        length = struct.unpack(">I", data[at:at + 4])[0]
        found[data[at + 4]] = data[at:at + length]
        at += length
    return found


def together(messages, share_bitmap=False):
    """One message that has the fields of several, whose grid is that of the first."""
    parts = [sections(m) for m in messages]
    body = b"".join(parts[0][n] for n in sorted(parts[0]))
    for one in parts[1:]:
        again = {**one, 6: bytes([0, 0, 0, 6, 6, 254])} if share_bitmap else one
        body += b"".join(again[n] for n in (4, 5, 6, 7))
    return messages[0][:8] + struct.pack(">Q", 16 + len(body) + 4) + body + b"7777"


def split(data):
    """The messages of a file."""
    at, all_of = 0, []
    while (at := data.find(b"GRIB", at)) >= 0:
        size = struct.unpack(">Q", data[at + 8:at + 16])[0] if data[at + 7] == 2 else int.from_bytes(data[at + 4:at + 7], "big")
        all_of.append(data[at:at + size])
        at += size
    return all_of
