/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Buffers of Blosc 1, undone: https://github.com/Blosc/c-blosc/blob/main/README_CHUNK_FORMAT.rst
 * with the codecs blosclz, lz4, snappy, zlib and zstd, shuffled by bytes or bits. Every length
 * comes from the buffer and is checked.
 */

#include <string.h>

#include "base/error.h"
#include "base/scratch.h"
#include "io/read/foreign.h"
#include "io/read/foreign_codecs.h"

#define HEADER_BYTES 16u

enum { SHUFFLED = 1, COPIED = 2, BITSHUFFLED = 4, NOT_SPLIT = 0x10 };
enum { BLOSCLZ, LZ4, SNAPPY, ZLIB, ZSTD };

/* A block is split into one stream for each byte of its elements under these conditions. */
#define SPLITS_MAX        16u
#define SPLIT_BYTES_LEAST 128u

typedef struct blosc {
    const uint8_t *data;
    size_t bytes;
    uint32_t flags;
    uint32_t element;
    uint32_t raw_bytes;
    uint32_t block;
    uint32_t blocks;
} blosc;

static esdm_status
damaged(esdm_error *err, const char *what)
{
    return esdm__error_set(err, ESDM_ECORRUPT, "blosc: %s", what);
}

/* ---- codecs that ESDM has for these buffers alone ------------------------------------------ */

/* Bytes of a match may overlap those that it makes. */
static void
repeat(uint8_t *to, size_t distance, size_t n)
{
    const uint8_t *from = to - distance;
    if (distance >= n)
        memcpy(to, from, n);
    else
        for (size_t i = 0; i < n; i++)
            to[i] = from[i];
}

/* What a reader of bytes is at. */
typedef struct input {
    const uint8_t *at;
    const uint8_t *end;
    bool failed;
} input;

static uint32_t
next(input *in)
{
    if (in->at == in->end) {
        in->failed = true;
        return 0;
    }
    return *in->at++;
}

/* @return of a match: its length; how far back it begins in *ret_distance. */
static size_t
blosclz_match(input *in, uint32_t control, size_t *ret_distance)
{
    size_t length = (control >> 5) - 1;
    size_t distance = (size_t) (control & 31) << 8;
    uint32_t code = 255;
    if (length == 6)
        while (code == 255 && !in->failed)
            length += code = next(in);
    code = next(in);
    if (code == 255 && distance == 31 << 8) {
        distance = (size_t) next(in) << 8;
        distance += next(in) + 8191;
    } else {
        distance += code;
    }
    *ret_distance = distance + 1;
    return length + 3;
}

static bool
blosclz(const uint8_t *from, size_t bytes, uint8_t *to, size_t room)
{
    input in = {.at = from, .end = from + bytes};
    size_t done = 0;
    uint32_t control = next(&in) & 31;
    while (!in.failed) {
        size_t distance = 0;
        size_t n = control + 1;
        if (control >= 32) {
            n = blosclz_match(&in, control, &distance);
            if (in.failed || n > room - done || distance > done)
                return false;
            repeat(to + done, distance, n);
        } else {
            if (n > (size_t) (in.end - in.at) || n > room - done)
                return false;
            memcpy(to + done, in.at, n);
            in.at += n;
        }
        done += n;
        if (in.at == in.end)
            break;
        control = next(&in);
    }
    return !in.failed && done == room;
}

/* https://github.com/google/snappy/blob/main/format_description.txt */
static bool
snappy_length(input *in, size_t room)
{
    uint64_t length = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
        uint32_t byte = next(in);
        length |= (uint64_t) (byte & 127) << shift;
        if ((byte & 128) == 0)
            return !in->failed && length == room;
    }
    return false;
}

static size_t
snappy_literal(input *in, uint32_t tag)
{
    size_t n = tag >> 2;
    if (n >= 60) {
        unsigned more = (unsigned) n - 59;
        n = 0;
        for (unsigned i = 0; i < more; i++)
            n |= (size_t) next(in) << (8 * i);
    }
    return n + 1;
}

static bool
snappy(const uint8_t *from, size_t bytes, uint8_t *to, size_t room)
{
    input in = {.at = from, .end = from + bytes};
    size_t done = 0;
    if (!snappy_length(&in, room))
        return false;
    while (in.at < in.end) {
        uint32_t tag = next(&in);
        if ((tag & 3) == 0) {
            size_t n = snappy_literal(&in, tag);
            if (in.failed || n > (size_t) (in.end - in.at) || n > room - done)
                return false;
            memcpy(to + done, in.at, n);
            in.at += n;
            done += n;
            continue;
        }
        size_t n = (tag & 3) == 1 ? (tag >> 2 & 7) + 4 : (tag >> 2) + 1;
        size_t distance = (tag & 3) == 1 ? (size_t) (tag >> 5) << 8 : 0;
        distance |= next(&in);
        for (unsigned i = 1; (tag & 3) != 1 && i < ((tag & 3) == 2 ? 2u : 4u); i++)
            distance |= (size_t) next(&in) << (8 * i);
        if (in.failed || distance == 0 || distance > done || n > room - done)
            return false;
        repeat(to + done, distance, n);
        done += n;
    }
    return done == room;
}

/* ---- bits ----------------------------------------------------------------------------------- */

/* Rows of bits become elements: row 8 b + k has bit k of byte b of all elements. */
static void
unshuffle_bits(const uint8_t *from, size_t element, size_t elements, uint8_t *to)
{
    size_t row = elements / 8;
    for (size_t b = 0; b < element; b++) {
        for (size_t i = 0; i < row; i++) {
            uint64_t bits = 0;
            for (unsigned k = 0; k < 8; k++)
                bits |= (uint64_t) from[(8 * b + k) * row + i] << (8 * k);
            /* An 8 × 8 matrix of bits, transposed (Hacker's Delight, 7-3). */
            uint64_t t = (bits ^ (bits >> 7)) & UINT64_C(0x00aa00aa00aa00aa);
            bits ^= t ^ (t << 7);
            t = (bits ^ (bits >> 14)) & UINT64_C(0x0000cccc0000cccc);
            bits ^= t ^ (t << 14);
            t = (bits ^ (bits >> 28)) & UINT64_C(0x00000000f0f0f0f0);
            bits ^= t ^ (t << 28);
            for (unsigned k = 0; k < 8; k++)
                to[(8 * i + k) * element + b] = (uint8_t) (bits >> (8 * k));
        }
    }
}

static esdm_status
unshuffle(const blosc *b, const uint8_t *from, uint8_t *to, size_t bytes, esdm_error *err)
{
    size_t elements = bytes / b->element;
    if ((b->flags & SHUFFLED) != 0) /* bytes behind the last whole element stand at the end */
        return esdm__filter_decode("shuffle", b->element, from, bytes, to, bytes, err);
    if (elements % 8 != 0) {
        memcpy(to, from, bytes);
        return ESDM_OK;
    }
    unshuffle_bits(from, b->element, elements, to);
    memcpy(to + elements * b->element, from + elements * b->element, bytes - elements * b->element);
    return ESDM_OK;
}

/* ---- blocks --------------------------------------------------------------------------------- */

static esdm_status
stream(const blosc *b, const uint8_t *from, size_t bytes, uint8_t *to, size_t room, esdm_error *err)
{
    if (bytes == room) {
        memcpy(to, from, room);
        return ESDM_OK;
    }
    switch (b->flags >> 5) {
    case BLOSCLZ:
        return blosclz(from, bytes, to, room) ? ESDM_OK : damaged(err, "blosclz: it is damaged");
    case LZ4:
        return esdm__filter_decode("lz4", 1, from, bytes, to, room, err);
    case SNAPPY:
        return snappy(from, bytes, to, room) ? ESDM_OK : damaged(err, "snappy: it is damaged");
    case ZLIB:
        return esdm__filter_decode("deflate", 1, from, bytes, to, room, err);
    case ZSTD:
        return esdm__filter_decode("zstd", 1, from, bytes, to, room, err);
    default:
        return esdm__error_set(err, ESDM_ENOTSUP, "blosc: codec %u is unknown", b->flags >> 5);
    }
}

static esdm_status
streams(const blosc *b, size_t at, uint8_t *to, size_t bytes, esdm_error *err)
{
    bool split = (b->flags & NOT_SPLIT) == 0 && b->element <= SPLITS_MAX &&
                 b->block / b->element >= SPLIT_BYTES_LEAST && bytes == b->block;
    uint32_t n = split ? b->element : 1;
    esdm_status status = ESDM_OK;
    for (uint32_t i = 0; i < n && status == ESDM_OK; i++) {
        if (b->bytes - at < 4)
            return damaged(err, "a block is cut off");
        size_t stored = esdm__little_u32(b->data + at);
        at += 4;
        if (stored > b->bytes - at)
            return damaged(err, "a block is cut off");
        status = stream(b, b->data + at, stored, to + i * (bytes / n), bytes / n, err);
        at += stored;
    }
    return status;
}

static esdm_status
block(const blosc *b, uint32_t index, uint8_t *raw, uint8_t *room, esdm_error *err)
{
    uint8_t *to = raw + (size_t) index * b->block;
    size_t left = b->raw_bytes - (size_t) index * b->block;
    size_t bytes = left < b->block ? left : b->block;
    size_t at = esdm__little_u32(b->data + HEADER_BYTES + 4 * (size_t) index);
    bool shuffled = ((b->flags & SHUFFLED) != 0 && b->element > 1) ||
                    ((b->flags & BITSHUFFLED) != 0 && bytes >= b->element);
    if (at < HEADER_BYTES || at > b->bytes)
        return damaged(err, "a block lies outside of the buffer");
    esdm_status status = streams(b, at, shuffled ? room : to, bytes, err);
    return status == ESDM_OK && shuffled ? unshuffle(b, room, to, bytes, err) : status;
}

static esdm_status
open_buffer(const uint8_t *data, size_t bytes, blosc *ret, esdm_error *err)
{
    if (bytes < HEADER_BYTES)
        return damaged(err, "its header is cut off");
    blosc b = {.data = data,
               .bytes = bytes,
               .flags = data[2],
               .element = data[3],
               .raw_bytes = esdm__little_u32(data + 4),
               .block = esdm__little_u32(data + 8)};
    if (data[0] != 1 && data[0] != 2)
        return esdm__error_set(err, ESDM_ENOTSUP, "blosc: version %u of the format", data[0]);
    if (b.element == 0 || esdm__little_u32(data + 12) != bytes || (b.block == 0 && b.raw_bytes > 0))
        return damaged(err, "its header does not fit its length");
    b.blocks = b.raw_bytes > 0 ? (b.raw_bytes - 1) / b.block + 1 : 0;
    *ret = b;
    return ESDM_OK;
}

size_t
esdm__blosc_raw_bytes(const uint8_t *data, size_t bytes)
{
    blosc b;
    return open_buffer(data, bytes, &b, NULL) == ESDM_OK ? b.raw_bytes : 0;
}

esdm_status
esdm__blosc_decode(const uint8_t *data, size_t bytes, uint8_t *raw, size_t raw_bytes,
                   esdm_error *err)
{
    blosc b;
    esdm_status status = open_buffer(data, bytes, &b, err);
    if (status != ESDM_OK)
        return status;
    if (b.raw_bytes != raw_bytes)
        return esdm__error_set(err, ESDM_ECORRUPT, "blosc: %u bytes instead of %zu", b.raw_bytes,
                               raw_bytes);
    if ((b.flags & COPIED) != 0) {
        if (bytes - HEADER_BYTES != raw_bytes)
            return damaged(err, "its header does not fit its length");
        memcpy(raw, data + HEADER_BYTES, raw_bytes);
        return ESDM_OK;
    }
    if (b.blocks > (bytes - HEADER_BYTES) / 4)
        return damaged(err, "its list of blocks is cut off");
    size_t room_bytes = b.block < raw_bytes ? b.block : raw_bytes;
    uint8_t *room = esdm__scratch_new(room_bytes + 1);
    if (room == NULL)
        return esdm__error_nomem(err, room_bytes, "a block");
    for (uint32_t i = 0; i < b.blocks && status == ESDM_OK; i++)
        status = block(&b, i, raw, room, err);
    esdm__scratch_free(room);
    return status;
}
