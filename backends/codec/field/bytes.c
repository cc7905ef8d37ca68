/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Bytes that no prediction helps: as they are, by zstd, or shuffled and by zstd. */

#include <string.h>

#include "base/error.h"
#include "base/scratch.h"
#include "base/zstd_own.h"
#include "mask.h"

#define LEVEL 1

/* Methods: as they are; zstd; bytes of equal weight together, then zstd. */
enum { BYTES_RAW, BYTES_ZSTD, BYTES_SHUFFLED };

static void
shuffle(const uint8_t *raw, size_t elements, size_t size, uint8_t *to)
{
    for (size_t k = 0; k < size; k++) {
        for (size_t i = 0; i < elements; i++)
            to[k * elements + i] = raw[i * size + k];
    }
}

static void
unshuffle(const uint8_t *from, size_t elements, size_t size, uint8_t *raw)
{
    for (size_t k = 0; k < size; k++) {
        for (size_t i = 0; i < elements; i++)
            raw[i * size + k] = from[k * elements + i];
    }
}

static void
put_bytes(esdm__buffer *out, uint8_t method, const void *bytes, size_t count)
{
    esdm__buffer_put_u8(out, method);
    esdm__buffer_put_varint(out, count);
    if (count > 0)
        esdm__buffer_put(out, bytes, count);
}

esdm_status
field__bytes_encode(const void *raw, size_t raw_bytes, size_t element_bytes, esdm__buffer *out,
                    esdm_error *err)
{
    size_t room = ZSTD_compressBound(raw_bytes);
    bool apart = element_bytes > 1;
    uint8_t *shuffled = apart ? esdm__scratch_new(raw_bytes) : NULL;
    uint8_t *packed = esdm__scratch_new(room);
    ZSTD_CCtx *encoder = esdm__zstd_own_encoder();
    if ((apart && shuffled == NULL) || packed == NULL || encoder == NULL) {
        esdm__scratch_free(shuffled);
        esdm__scratch_free(packed);
        return esdm__error_nomem(err, room, "compressed bytes");
    }
    if (apart)
        shuffle(raw, raw_bytes / element_bytes, element_bytes, shuffled);
    size_t bytes =
        ZSTD_compressCCtx(encoder, packed, room, apart ? shuffled : raw, raw_bytes, LEVEL);
    if (ZSTD_isError(bytes) || bytes >= raw_bytes)
        put_bytes(out, BYTES_RAW, raw, raw_bytes);
    else
        put_bytes(out, apart ? BYTES_SHUFFLED : BYTES_ZSTD, packed, bytes);
    esdm__scratch_free(shuffled);
    esdm__scratch_free(packed);
    return out->failed ? esdm__error_nomem(err, raw_bytes, "compressed bytes") : ESDM_OK;
}

/* Bytes as they are stored, and how. */
typedef struct stored {
    uint8_t method;
    const uint8_t *bytes;
    size_t count;
} stored;

static esdm_status
take_stored(esdm__cursor *in, size_t raw_bytes, stored *ret, esdm_error *err)
{
    ret->method = esdm__cursor_u8(in);
    uint64_t count = esdm__cursor_varint(in);
    if (in->failed || count > esdm__cursor_left(in) || ret->method > BYTES_SHUFFLED ||
        (ret->method == BYTES_RAW && count != raw_bytes))
        return esdm__error_set(err, ESDM_ECORRUPT, "field: bytes of special values are damaged");
    ret->count = (size_t) count;
    ret->bytes = esdm__cursor_take(in, ret->count);
    return ESDM_OK;
}

static esdm_status
decompress(const stored *from, uint8_t *to, size_t bytes, esdm_error *err)
{
    ZSTD_DCtx *decoder = esdm__zstd_own_decoder();
    if (decoder == NULL)
        return esdm__error_nomem(err, bytes, "special values");
    size_t n = ZSTD_decompressDCtx(decoder, to, bytes, from->bytes, from->count);
    if (ZSTD_isError(n) || n != bytes)
        return esdm__error_set(err, ESDM_ECORRUPT, "field: bytes of special values do not decode");
    return ESDM_OK;
}

esdm_status
field__bytes_decode(void *raw, size_t raw_bytes, size_t element_bytes, esdm__cursor *in,
                    esdm_error *err)
{
    stored from;
    esdm_status st = take_stored(in, raw_bytes, &from, err);
    if (st != ESDM_OK || raw_bytes == 0)
        return st;
    if (from.method == BYTES_RAW) {
        memcpy(raw, from.bytes, raw_bytes);
        return ESDM_OK;
    }
    if (from.method == BYTES_ZSTD)
        return decompress(&from, raw, raw_bytes, err);
    uint8_t *shuffled = esdm__scratch_new(raw_bytes);
    if (shuffled == NULL)
        return esdm__error_nomem(err, raw_bytes, "special values");
    st = decompress(&from, shuffled, raw_bytes, err);
    if (st == ESDM_OK)
        unshuffle(shuffled, raw_bytes / element_bytes, element_bytes, raw);
    esdm__scratch_free(shuffled);
    return st;
}

esdm_status
field__bytes_view(uint8_t *room, size_t raw_bytes, esdm__cursor *in, const uint8_t **ret_bytes,
                  esdm_error *err)
{
    stored from;
    esdm_status st = take_stored(in, raw_bytes, &from, err);
    *ret_bytes = room;
    if (st == ESDM_OK && from.method == BYTES_RAW)
        *ret_bytes = from.bytes;
    else if (st == ESDM_OK && raw_bytes > 0) /* of single bytes there is nothing to shuffle */
        st = decompress(&from, room, raw_bytes, err);
    return st;
}
