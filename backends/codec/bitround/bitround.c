/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Codec "bitround" (id 9): zeros in place of bits that the accuracy does not need. */

#include "bitround.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "esdm/types.h"

static size_t
bitround_bound(size_t raw_bytes)
{
    return raw_bytes;
}

/* Bytes of a number of this type; 0 for what is no number. */
static size_t
number_bytes(int32_t type)
{
    switch (type) {
    case ESDM_TYPE_INT8:
    case ESDM_TYPE_UINT8:
        return 1;
    case ESDM_TYPE_INT16:
    case ESDM_TYPE_UINT16:
        return 2;
    case ESDM_TYPE_INT32:
    case ESDM_TYPE_UINT32:
    case ESDM_TYPE_FLOAT32:
        return 4;
    case ESDM_TYPE_INT64:
    case ESDM_TYPE_UINT64:
    case ESDM_TYPE_FLOAT64:
        return 8;
    default:
        return 0;
    }
}

static void
round_numbers(const esdm_codec_input *input, size_t bytes, const void *raw, void *out, size_t n)
{
    const esdm_codec_accuracy *a = input->accuracy;
    bool is_signed = input->type <= ESDM_TYPE_INT32 || input->type == ESDM_TYPE_INT64;
    bool is_float = input->type == ESDM_TYPE_FLOAT32 || input->type == ESDM_TYPE_FLOAT64;
    if (!is_float) {
        esdm__bitround_integers(a, bytes, is_signed, raw, out, n);
        esdm__bitround_keep_values(a, bytes, raw, out, n);
        return;
    }
    for (double part = 1; part >= 0.5; part /= 2) {
        esdm__bitround_floats(a, part, bytes, raw, out, n);
        esdm__bitround_keep_values(a, bytes, raw, out, n);
        if (!(a->sum_bound < (double) INFINITY) ||
            esdm__bitround_balance(a, part, bytes, raw, out, n))
            return;
    }
}

static esdm_status
bitround_encode(const esdm_codec_input *input, const void *raw, size_t raw_bytes, void *out,
                size_t out_bytes, size_t *ret_bytes, esdm_error *err)
{
    (void) err;
    *ret_bytes = 0;
    if (out_bytes < raw_bytes)
        return ESDM_OK;
    size_t bytes = number_bytes(input->type);
    if (input->accuracy == NULL || bytes == 0 || bytes != input->element_bytes ||
        raw_bytes % bytes != 0)
        memcpy(out, raw, raw_bytes);
    else
        round_numbers(input, bytes, raw, out, raw_bytes / bytes);
    *ret_bytes = raw_bytes;
    return ESDM_OK;
}

static esdm_status
bitround_decode(const esdm_codec_input *input, const void *encoded, size_t encoded_bytes, void *raw,
                size_t raw_bytes, esdm_error *err)
{
    (void) input;
    if (encoded_bytes != raw_bytes)
        return esdm__error_set(err, ESDM_ECORRUPT,
                               "bitround: %zu stored bytes for %zu raw ones; it keeps the length",
                               encoded_bytes, raw_bytes);
    memcpy(raw, encoded, raw_bytes);
    return ESDM_OK;
}

extern const esdm_codec_plugin esdm_codec_bitround_plugin;
const esdm_codec_plugin esdm_codec_bitround_plugin = {
    .base = {.abi = ESDM_PLUGIN_ABI,
             .table_bytes = sizeof(esdm_codec_plugin),
             .kind = ESDM_PLUGIN_CODEC,
             .name = "bitround",
             .summary = "rounds to the bits that the accuracy needs; before shuffle+zstd"},
    .id = 9,
    .flags = ESDM_CODEC_FILTER | ESDM_CODEC_LOSSY | ESDM_CODEC_ROUNDS,
    .bound = bitround_bound,
    .encode = bitround_encode,
    .decode = bitround_decode,
};
