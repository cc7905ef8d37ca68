/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Encoding of a block, so that its numbers keep their bits when they are written again. */

#include <string.h>

#include "base/error.h"
#include "base/scratch.h"
#include "encode.h"

/* Steps that numbers were rounded to are found again by the numbers that lie on them. Of a few
 * numbers some lie on others by chance, or one stands apart before it is rounded and not behind:
 * whether small blocks stay is tried. */
#define SMALL 512u

static esdm_status
check_block(const field__block *block, esdm_error *err)
{
    uint64_t product = 1;
    for (uint32_t i = 0; i < block->rank; i++) {
        if (block->shape[i] == 0 || __builtin_mul_overflow(product, block->shape[i], &product))
            product = 0;
    }
    if (block->elements == 0 || block->rank > 64 || (block->rank > 0 && product != block->elements))
        return esdm__error_set(err, ESDM_EINVAL,
                               "field: the shape of a block does not have its %zu elements",
                               block->elements);
    return ESDM_OK;
}

/* Whether what was encoded since `start` becomes itself when it is written once more. */
static esdm_status
stays(const field__block *block, const esdm_codec_accuracy *accuracy, esdm_codec_effort effort,
      const void *raw, const uint8_t *encoded, size_t encoded_bytes, bool *ret_stays,
      esdm_error *err)
{
    size_t bytes = block->elements * field__element_bytes(block->type);
    esdm__buffer out;
    uint8_t *once = esdm__scratch_new(2 * bytes);
    if (once == NULL)
        return esdm__error_nomem(err, 2 * bytes, "values of a block");
    uint8_t *twice = once + bytes;
    esdm__buffer_init(&out);
    esdm_status st = field__decode(block->type, block->elements, encoded, encoded_bytes, once, err);
    *ret_stays = st == ESDM_OK && memcmp(once, raw, bytes) == 0;
    if (st == ESDM_OK && !*ret_stays)
        st = field__encode_once(block, accuracy, effort, once, &out, err);
    if (st == ESDM_OK && !*ret_stays)
        st = field__decode(block->type, block->elements, out.data, out.bytes, twice, err);
    if (st == ESDM_OK && !*ret_stays)
        *ret_stays = memcmp(once, twice, bytes) == 0;
    esdm__buffer_clear(&out);
    esdm__scratch_free(once);
    return st;
}

esdm_status
field__encode(const field__block *block, const esdm_codec_accuracy *accuracy,
              esdm_codec_effort effort, const void *raw, esdm__buffer *out, esdm_error *err)
{
    size_t start = out->bytes;
    bool keeps = true;
    esdm_status st = check_block(block, err);
    if (st == ESDM_OK)
        st = field__encode_once(block, accuracy, effort, raw, out, err);
    if (st == ESDM_OK && accuracy != NULL && field__is_number(block->type) &&
        block->elements <= SMALL)
        st =
            stays(block, accuracy, effort, raw, out->data + start, out->bytes - start, &keeps, err);
    if (st == ESDM_OK && !keeps) {
        out->bytes = start;
        st = field__encode_once(block, NULL, effort, raw, out, err);
    }
    return st;
}
