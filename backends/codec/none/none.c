/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Codec "none" (id 0): leaves blocks as they are. */

#include <string.h>

#include "base/error.h"
#include "esdm/sys/codec.h"

static size_t
none_bound(size_t raw_bytes)
{
    return raw_bytes;
}

/* Never shorter than the raw bytes: 0 asks the caller to store those. */
static esdm_status
none_encode(const esdm_codec_input *input, const void *raw, size_t raw_bytes, void *out,
            size_t out_bytes, size_t *ret_bytes, esdm_error *err)
{
    (void) input;
    (void) raw;
    (void) raw_bytes;
    (void) out;
    (void) out_bytes;
    (void) err;
    *ret_bytes = 0;
    return ESDM_OK;
}

static esdm_status
none_decode(const esdm_codec_input *input, const void *encoded, size_t encoded_bytes, void *raw,
            size_t raw_bytes, esdm_error *err)
{
    (void) input;
    if (encoded_bytes != raw_bytes)
        return esdm__error_set(err, ESDM_ECORRUPT, "none: %zu stored bytes for %zu raw ones",
                               encoded_bytes, raw_bytes);
    if (raw_bytes > 0)
        memcpy(raw, encoded, raw_bytes);
    return ESDM_OK;
}

extern const esdm_codec_plugin esdm_codec_none_plugin;
const esdm_codec_plugin esdm_codec_none_plugin = {
    .base = {.abi = ESDM_PLUGIN_ABI,
             .table_bytes = sizeof(esdm_codec_plugin),
             .kind = ESDM_PLUGIN_CODEC,
             .name = "none",
             .summary = "stores blocks as they are"},
    .id = 0,
    .bound = none_bound,
    .encode = none_encode,
    .decode = none_decode,
};
