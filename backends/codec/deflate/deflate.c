/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Codec "deflate" (id 10): zlib streams (RFC 1950) by libdeflate. Decodes gzip (RFC 1952) as well:
 * what files have that ESDM refers to.
 */

#include <libdeflate.h>

#include "base/error.h"
#include "esdm/sys/codec.h"

static size_t
deflate_bound(size_t raw_bytes)
{
    return raw_bytes > SIZE_MAX / 2 ? SIZE_MAX : libdeflate_zlib_compress_bound(NULL, raw_bytes);
}

static esdm_status
deflate_encode(const esdm_codec_input *input, const void *raw, size_t raw_bytes, void *out,
               size_t out_bytes, size_t *ret_bytes, esdm_error *err)
{
    int level = input->effort == ESDM_EFFORT_FAST      ? 1
                : input->effort == ESDM_EFFORT_ARCHIVE ? 12
                                                       : 6;
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(level);
    if (c == NULL)
        return esdm__error_nomem(err, raw_bytes, "deflate");
    size_t bytes = libdeflate_zlib_compress(c, raw, raw_bytes, out, out_bytes);
    libdeflate_free_compressor(c);
    *ret_bytes = bytes < raw_bytes ? bytes : 0;
    return ESDM_OK;
}

static esdm_status
deflate_decode(const esdm_codec_input *input, const void *encoded, size_t encoded_bytes, void *raw,
               size_t raw_bytes, esdm_error *err)
{
    const uint8_t *head = encoded;
    bool gzip = encoded_bytes >= 2 && head[0] == 0x1f && head[1] == 0x8b;
    (void) input;
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    if (d == NULL)
        return esdm__error_nomem(err, raw_bytes, "deflate");
    size_t used = 0;
    enum libdeflate_result result =
        gzip
            ? libdeflate_gzip_decompress_ex(d, encoded, encoded_bytes, raw, raw_bytes, &used, NULL)
            : libdeflate_zlib_decompress_ex(d, encoded, encoded_bytes, raw, raw_bytes, &used, NULL);
    libdeflate_free_decompressor(d);
    if (result == LIBDEFLATE_SUCCESS && used == encoded_bytes)
        return ESDM_OK;
    return esdm__error_set(err, ESDM_ECORRUPT,
                           result == LIBDEFLATE_SHORT_OUTPUT ||
                                   result == LIBDEFLATE_INSUFFICIENT_SPACE
                               ? "deflate: not %zu bytes come out"
                               : "deflate: %zu bytes were expected, and the stream is damaged",
                           raw_bytes);
}

extern const esdm_codec_plugin esdm_codec_deflate_plugin;
const esdm_codec_plugin esdm_codec_deflate_plugin = {
    .base = {.abi = ESDM_PLUGIN_ABI,
             .table_bytes = sizeof(esdm_codec_plugin),
             .kind = ESDM_PLUGIN_CODEC,
             .name = "deflate",
             .summary = "zlib streams, as netCDF-4 files have them, by libdeflate"},
    .id = 10,
    .bound = deflate_bound,
    .encode = deflate_encode,
    .decode = deflate_decode,
};

#ifdef ESDM_PLUGIN_LOADABLE
ESDM_API const esdm_plugin *esdm_plugin_entry(void);

const esdm_plugin *
esdm_plugin_entry(void)
{
    return &esdm_codec_deflate_plugin.base;
}
#endif
