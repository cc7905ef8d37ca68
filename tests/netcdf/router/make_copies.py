#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Makes more copies of a libnetcdf: libnetcdf-plain.so, libnetcdf-second.so, and
libnetcdf-symbolic.so, which looks its own functions up in itself first (DF_SYMBOLIC), so that nothing
interposes its inner calls."""
import os
import re
import shutil
import struct
import sys

DT_NULL, DT_SYMBOLIC, DT_FLAGS = 0, 16, 30
DF_SYMBOLIC = 2
PT_DYNAMIC = 2


def dynamic_entries(data):
    """Offsets in the file of the entries of the dynamic section, the closing one included."""
    phoff, = struct.unpack_from("<Q", data, 32)
    phentsize, phnum = struct.unpack_from("<HH", data, 54)
    for i in range(phnum):
        at = phoff + i * phentsize
        kind, = struct.unpack_from("<I", data, at)
        if kind == PT_DYNAMIC:
            offset, = struct.unpack_from("<Q", data, at + 8)
            while True:
                yield offset
                if struct.unpack_from("<Q", data, offset)[0] == DT_NULL:
                    return
                offset += 16


def make_symbolic(source, folder):
    """Returns the path: the file is called as its changed soname says."""
    with open(source, "rb") as f:
        data = bytearray(f.read())
    for offset in dynamic_entries(data):
        tag, value = struct.unpack_from("<QQ", data, offset)
        if tag == DT_FLAGS:
            struct.pack_into("<QQ", data, offset, tag, value | DF_SYMBOLIC)
            break
        if tag == DT_NULL:  # what GNU ld writes ends with spare entries
            struct.pack_into("<QQ", data, offset, DT_SYMBOLIC, 0)
    soname = re.search(rb"\0(libnetcdf[-.0-9a-z]*\.so\.[0-9]+)\0", data).group(1)
    changed = soname[:-1] + b"S"
    data = data.replace(b"\0" + soname + b"\0", b"\0" + changed + b"\0")
    path = os.path.join(folder, changed.decode())
    with open(path, "wb") as f:
        f.write(data)
    return path


def main():
    source, folder = os.path.realpath(sys.argv[1]), sys.argv[2]
    os.makedirs(folder, exist_ok=True)
    for name in "libnetcdf-plain.so", "libnetcdf-second.so":
        shutil.copy(source, os.path.join(folder, name))
    link = os.path.join(folder, "libnetcdf-symbolic.so")
    if os.path.lexists(link):
        os.remove(link)
    os.symlink(os.path.basename(make_symbolic(source, folder)), link)


main()
