# SPDX-License-Identifier: LGPL-3.0-or-later
"""Formats of the blocks of codec `field` in a store, as their first bytes tell: FOLDER of packs, and the formats
that must be there ("6", or "6 in parts"). Prints how many blocks have each one (src/codec/blob.h,
backends/codec/field/encode.c)."""

import collections
import pathlib
import struct
import sys

FIELD, RAW = 4, 1  # id of the codec; flag of a block that is stored as it is
LEVELS, PARTS = 3, 8  # the coder of format 6; its flag of a block in parts


def formats_of(fragment):
    """Of the blocks of a fragment whose only codec is `field`."""
    version, codecs = struct.unpack_from("<HB", fragment, 8)
    if version != 3 or codecs != 1 or fragment[16] != FIELD:
        return
    second, = struct.unpack_from("<I", fragment, 24)
    blocks, = struct.unpack_from("<I", fragment, 52)
    at = 64 + second + 16 * blocks
    for block in range(blocks):
        stored, flags = struct.unpack_from("<II", fragment, 64 + second + 16 * block)
        if not flags & RAW:
            number, _, coder, block_flags = fragment[at:at + 4]
            if number == 6 and coder != LEVELS:
                sys.exit(f"a block of format 6 has coder {coder}")
            yield f"{number} in parts" if number == 4 or (number == 6 and block_flags & PARTS) else str(number)
        at += stored


def main(folder, *wanted):
    found = collections.Counter()
    for pack in pathlib.Path(folder).rglob("*-*"):
        data = pack.read_bytes() if pack.is_file() else b""
        at = data.find(b"ESDMFRAG")
        while at >= 0:
            found.update(formats_of(data[at:]))
            at = data.find(b"ESDMFRAG", at + 8)
    print(*(f"format {name}: {count}" for name, count in sorted(found.items())), sep="\n")
    missing = [name for name in wanted if found[name] == 0]
    sys.exit(f"no block of format {', '.join(missing)} in {folder}" if missing else 0)


main(*sys.argv[1:])
