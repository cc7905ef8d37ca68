/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file A codec with one fault, chosen by a definition: the registry must refuse it. RIGHT_SHORT
 *  is one of an older interface, whose table had no flags: it must be taken. */

#include <stddef.h>

#include "esdm/sys/codec.h"

static size_t
bound(size_t raw_bytes)
{
    return raw_bytes;
}

static esdm_status
encode(const esdm_codec_input *input, const void *raw, size_t raw_bytes, void *out,
       size_t out_bytes, size_t *ret_bytes, esdm_error *err)
{
    (void) input, (void) raw, (void) raw_bytes, (void) out, (void) out_bytes, (void) err;
    *ret_bytes = 0;
    return ESDM_OK;
}

#ifndef WRONG_FUNCTION
static esdm_status
decode(const esdm_codec_input *input, const void *encoded, size_t encoded_bytes, void *raw,
       size_t raw_bytes, esdm_error *err)
{
    (void) input, (void) encoded, (void) encoded_bytes, (void) raw, (void) raw_bytes, (void) err;
    return ESDM_ENOTSUP;
}
#endif

static const esdm_codec_plugin plugin = {
    .base =
        {
#ifdef WRONG_ABI
            .abi = ESDM_PLUGIN_ABI + 1,
#elif defined(WRONG_OLD)
            .abi = ESDM_PLUGIN_ABI_OLDEST - 1,
#else
            .abi = ESDM_PLUGIN_ABI,
#endif
#ifdef WRONG_BYTES
            .table_bytes = 2 * sizeof(esdm_codec_plugin),
#elif defined(WRONG_SHORT)
            .table_bytes = offsetof(esdm_codec_plugin, decode),
#elif defined(RIGHT_SHORT)
            .table_bytes = offsetof(esdm_codec_plugin, flags),
#else
            .table_bytes = sizeof(esdm_codec_plugin),
#endif
#ifdef WRONG_KIND
            .kind = ESDM_PLUGIN_META,
#else
            .kind = ESDM_PLUGIN_CODEC,
#endif
#ifdef WRONG_NAME
            .name = "something_else",
#else
            .name = PLUGIN_NAME,
#endif
            .summary = "refused"},
#ifdef RIGHT_SHORT
    .id = 251,
    .flags = 0xffffffffU, /* stands for whatever lies behind a shorter table */
#else
    .id = 250,
#endif
    .bound = bound,
    .encode = encode,
#ifndef WRONG_FUNCTION
    .decode = decode,
#endif
};

#ifdef WRONG_ENTRY
ESDM_API const esdm_plugin *wrong_entry(void);
const esdm_plugin *
wrong_entry(void)
#else
ESDM_API const esdm_plugin *esdm_plugin_entry(void);
const esdm_plugin *
esdm_plugin_entry(void)
#endif
{
#ifdef WRONG_NULL
    return plugin.id == 0 ? &plugin.base : NULL;
#else
    return &plugin.base;
#endif
}
