/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Codec "field" (id 4): prediction and entropy coding of N-d blocks of numbers. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "esdm/sys/codec.h"
#include "esdm/types.h"
#include "field.h"

#define HEAD_MOST 64 /* what an incompressible block is longer by */

/* Elements that are not of the type's size are bytes, as are those of types that are no numbers. */
static int32_t
type_of(const esdm_codec_input *input, size_t raw_bytes)
{
    size_t size = field__element_bytes(input->type);
    return size == input->element_bytes && raw_bytes % size == 0 ? input->type : ESDM_TYPE_CHAR;
}

static size_t
field_bound(size_t raw_bytes)
{
    return raw_bytes <= SIZE_MAX - HEAD_MOST ? raw_bytes + HEAD_MOST : SIZE_MAX;
}

static esdm_status
field_encode(const esdm_codec_input *input, const void *raw, size_t raw_bytes, void *out,
             size_t out_bytes, size_t *ret_bytes, esdm_error *err)
{
    int32_t type = type_of(input, raw_bytes);
    field__block block = {.type = type, .elements = raw_bytes / field__element_bytes(type)};
    if (type == input->type) {
        block.rank = input->rank;
        block.shape = input->shape;
    }
    esdm__buffer encoded;
    esdm__buffer_init(&encoded);
    esdm_status st = field__encode(&block, input->accuracy, input->effort, raw, &encoded, err);
    if (st == ESDM_OK) {
        bool useful = encoded.bytes < raw_bytes && encoded.bytes <= out_bytes;
        if (useful)
            memcpy(out, encoded.data, encoded.bytes);
        *ret_bytes = useful ? encoded.bytes : 0;
    }
    esdm__buffer_clear(&encoded);
    return st;
}

static esdm_status
field_decode(const esdm_codec_input *input, const void *encoded, size_t encoded_bytes, void *raw,
             size_t raw_bytes, esdm_error *err)
{
    int32_t type = type_of(input, raw_bytes);
    return field__decode(type, raw_bytes / field__element_bytes(type), encoded, encoded_bytes, raw,
                         err);
}

static esdm_status
field_decode_some(const esdm_codec_input *input, const void *encoded, size_t encoded_bytes,
                  const esdm_codec_range *wanted, size_t count, void *raw, size_t raw_bytes,
                  size_t *ret_bytes, esdm_error *err)
{
    int32_t type = type_of(input, raw_bytes);
    size_t size = field__element_bytes(type);
    size_t elements = 0;
    esdm_status st = field__decode_some(type, raw_bytes / size, encoded, encoded_bytes, wanted,
                                        count, raw, &elements, err);
    *ret_bytes = elements * size;
    return st;
}

extern const esdm_codec_plugin esdm_codec_field_plugin;
const esdm_codec_plugin esdm_codec_field_plugin = {
    .base = {.abi = ESDM_PLUGIN_ABI,
             .table_bytes = sizeof(esdm_codec_plugin),
             .kind = ESDM_PLUGIN_CODEC,
             .name = "field",
             .summary = "predicts numbers from their neighbours, the strongest for fields"},
    .id = 4,
    .flags = ESDM_CODEC_LOSSY | ESDM_CODEC_SHAPED,
    .bound = field_bound,
    .encode = field_encode,
    .decode = field_decode,
    .decode_some = field_decode_some,
};
