/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Codec "lz4" (id 1): LZ4 blocks (liblz4), fast mode. */

#include <limits.h>
#include <lz4.h>

#include "base/error.h"
#include "esdm/sys/codec.h"

static size_t
lz4_bound(size_t raw_bytes)
{
    if (raw_bytes > LZ4_MAX_INPUT_SIZE)
        return SIZE_MAX;
    return (size_t) LZ4_compressBound((int) raw_bytes);
}

/* With room for the worst case LZ4 skips its checks of the output, which is faster; the comparison
 * with raw_bytes follows. */
static esdm_status
lz4_encode(const esdm_codec_input *input, const void *raw, size_t raw_bytes, void *out,
           size_t out_bytes, size_t *ret_bytes, esdm_error *err)
{
    (void) input;
    (void) err;
    size_t encoded = 0;
    if (raw_bytes <= LZ4_MAX_INPUT_SIZE && out_bytes > 0) {
        int room = out_bytes > INT_MAX ? INT_MAX : (int) out_bytes;
        int n = LZ4_compress_default(raw, out, (int) raw_bytes, room);
        encoded = n > 0 ? (size_t) n : 0;
    }
    *ret_bytes = encoded < raw_bytes ? encoded : 0;
    return ESDM_OK;
}

static esdm_status
lz4_decode(const esdm_codec_input *input, const void *encoded, size_t encoded_bytes, void *raw,
           size_t raw_bytes, esdm_error *err)
{
    (void) input;
    int n = -1;
    if (encoded_bytes > 0 && encoded_bytes <= INT_MAX && raw_bytes <= LZ4_MAX_INPUT_SIZE)
        n = LZ4_decompress_safe(encoded, raw, (int) encoded_bytes, (int) raw_bytes);
    if (n < 0 || (size_t) n != raw_bytes)
        return esdm__error_set(err, ESDM_ECORRUPT,
                               "lz4: %zu stored bytes do not decode to %zu raw ones", encoded_bytes,
                               raw_bytes);
    return ESDM_OK;
}

extern const esdm_codec_plugin esdm_codec_lz4_plugin;
const esdm_codec_plugin esdm_codec_lz4_plugin = {
    .base = {.abi = ESDM_PLUGIN_ABI,
             .table_bytes = sizeof(esdm_codec_plugin),
             .kind = ESDM_PLUGIN_CODEC,
             .name = "lz4",
             .summary = "LZ4, fast lossless compression of bytes"},
    .id = 1,
    .bound = lz4_bound,
    .encode = lz4_encode,
    .decode = lz4_decode,
};
