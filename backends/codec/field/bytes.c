/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/error.h"
#include "base/per_thread.h"
#include "mask.h"

#define LEVEL 1

/* Methods: as they are; zstd; bytes of equal weight together, then zstd. */
enum { BYTES_RAW, BYTES_ZSTD, BYTES_SHUFFLED };

/* Making one takes longer than encoding the bytes of a block. */
typedef struct contexts {
    ZSTD_CCtx *encoder;
    ZSTD_DCtx *decoder;
} contexts;

static void
clear_contexts(void *memory)
{
    contexts *own = memory;
    (void) ZSTD_freeCCtx(own->encoder);
    (void) ZSTD_freeDCtx(own->decoder);
}

static esdm__per_thread threads = ESDM__PER_THREAD(contexts, clear_contexts);

__attribute__((destructor)) static void
drop_contexts(void)
{
    esdm__per_thread_drop(&threads);
}

static ZSTD_CCtx *
own_encoder(void)
{
    contexts *own = esdm__per_thread_get(&threads);
    if (own != NULL && own->encoder == NULL)
        own->encoder = ZSTD_createCCtx();
    return own != NULL ? own->encoder : NULL;
}

static ZSTD_DCtx *
own_decoder(void)
{
    contexts *own = esdm__per_thread_get(&threads);
    if (own != NULL && own->decoder == NULL)
        own->decoder = ZSTD_createDCtx();
    return own != NULL ? own->decoder : NULL;
}

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
    uint8_t *shuffled = malloc(raw_bytes + 1);
    uint8_t *packed = malloc(room);
    ZSTD_CCtx *encoder = own_encoder();
    if (shuffled == NULL || packed == NULL || encoder == NULL) {
        free(shuffled);
        free(packed);
        return esdm__error_nomem(err, room, "compressed bytes");
    }
    bool apart = element_bytes > 1;
    if (apart)
        shuffle(raw, raw_bytes / element_bytes, element_bytes, shuffled);
    size_t bytes =
        ZSTD_compressCCtx(encoder, packed, room, apart ? shuffled : raw, raw_bytes, LEVEL);
    if (ZSTD_isError(bytes) || bytes >= raw_bytes)
        put_bytes(out, BYTES_RAW, raw, raw_bytes);
    else
        put_bytes(out, apart ? BYTES_SHUFFLED : BYTES_ZSTD, packed, bytes);
    free(shuffled);
    free(packed);
    return out->failed ? esdm__error_nomem(err, raw_bytes, "compressed bytes") : ESDM_OK;
}

esdm_status
field__bytes_decode(void *raw, size_t raw_bytes, size_t element_bytes, esdm__cursor *in,
                    esdm_error *err)
{
    uint8_t method = esdm__cursor_u8(in);
    uint64_t bytes = esdm__cursor_varint(in);
    if (bytes > esdm__cursor_left(in) || method > BYTES_SHUFFLED ||
        (method == BYTES_RAW && bytes != raw_bytes))
        return esdm__error_set(err, ESDM_ECORRUPT, "field: bytes of special values are damaged");
    if (raw_bytes == 0)
        return ESDM_OK;
    const uint8_t *from = esdm__cursor_take(in, (size_t) bytes);
    if (method == BYTES_RAW) {
        memcpy(raw, from, raw_bytes);
        return ESDM_OK;
    }
    ZSTD_DCtx *decoder = own_decoder();
    uint8_t *shuffled = method == BYTES_SHUFFLED ? malloc(raw_bytes) : NULL;
    if (decoder == NULL || (method == BYTES_SHUFFLED && shuffled == NULL)) {
        free(shuffled);
        return esdm__error_nomem(err, raw_bytes, "special values");
    }
    size_t n = ZSTD_decompressDCtx(decoder, shuffled != NULL ? shuffled : raw, raw_bytes, from,
                                   (size_t) bytes);
    if (!ZSTD_isError(n) && n == raw_bytes && shuffled != NULL)
        unshuffle(shuffled, raw_bytes / element_bytes, element_bytes, raw);
    free(shuffled);
    if (ZSTD_isError(n) || n != raw_bytes)
        return esdm__error_set(err, ESDM_ECORRUPT, "field: bytes of special values do not decode");
    return ESDM_OK;
}
