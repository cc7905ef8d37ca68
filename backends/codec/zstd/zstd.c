/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Codec "zstd" (id 2): Zstandard frames without checksum (libzstd), level 1 unless more
 * effort is asked for. */

#include <stdlib.h>
#include <zstd_errors.h>

#include "base/error.h"
#include "base/zstd_own.h"
#include "esdm/sys/codec.h"

static int
level_of(const esdm_codec_input *input)
{
    return input->effort == ESDM_EFFORT_ARCHIVE ? 9 : input->effort == ESDM_EFFORT_BALANCED ? 3 : 1;
}

static size_t
zstd_bound(size_t raw_bytes)
{
    size_t bound = ZSTD_compressBound(raw_bytes);
    return ZSTD_isError(bound) ? SIZE_MAX : bound;
}

static esdm_status
zstd_encode(const esdm_codec_input *input, const void *raw, size_t raw_bytes, void *out,
            size_t out_bytes, size_t *ret_bytes, esdm_error *err)
{
    ZSTD_CCtx *encoder = esdm__zstd_own_encoder();
    if (encoder == NULL)
        return esdm__error_nomem(err, raw_bytes, "zstd");
    size_t encoded = ZSTD_compressCCtx(encoder, out, out_bytes, raw, raw_bytes, level_of(input));
    if (ZSTD_getErrorCode(encoded) == ZSTD_error_memory_allocation)
        return esdm__error_nomem(err, raw_bytes, "zstd");
    *ret_bytes = !ZSTD_isError(encoded) && encoded < raw_bytes ? encoded : 0;
    return ESDM_OK;
}

static esdm_status
zstd_decode(const esdm_codec_input *input, const void *encoded, size_t encoded_bytes, void *raw,
            size_t raw_bytes, esdm_error *err)
{
    (void) input;
    ZSTD_DCtx *decoder = esdm__zstd_own_decoder();
    if (decoder == NULL)
        return esdm__error_nomem(err, raw_bytes, "zstd");
    size_t n = ZSTD_decompressDCtx(decoder, raw, raw_bytes, encoded, encoded_bytes);
    if (ZSTD_isError(n) || n != raw_bytes)
        return esdm__error_set(err, ESDM_ECORRUPT,
                               "zstd: %zu stored bytes do not decode to %zu raw ones%s%s",
                               encoded_bytes, raw_bytes, ZSTD_isError(n) ? ": " : "",
                               ZSTD_isError(n) ? ZSTD_getErrorName(n) : "");
    return ESDM_OK;
}

extern const esdm_codec_plugin esdm_codec_zstd_plugin;
const esdm_codec_plugin esdm_codec_zstd_plugin = {
    .base = {.abi = ESDM_PLUGIN_ABI,
             .table_bytes = sizeof(esdm_codec_plugin),
             .kind = ESDM_PLUGIN_CODEC,
             .name = "zstd",
             .summary = "Zstandard, stronger lossless compression of bytes"},
    .id = 2,
    .bound = zstd_bound,
    .encode = zstd_encode,
    .decode = zstd_decode,
};
