/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef FIELD_H
#define FIELD_H

/**
 * @file
 * Codec of N-d blocks of numbers: lossless, or within a bound at every point.
 *
 * Encoding splits off special values, maps the others to integers ("codes"), predicts each code
 * from its neighbours and codes what the prediction misses. Everything that decoding needs is in
 * the encoded bytes. All arithmetic that decoding repeats is on integers, or on doubles in an order
 * that no compiler may change: every machine decodes the same values and encodes the same bytes.
 * Threads: pure functions.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "esdm/sys/codec.h"

/** What is encoded: `elements` values of `type`, the product of `shape` (C order). */
typedef struct field__block {
    int32_t type;          /**< esdm_type: a number; others are treated as bytes */
    uint32_t rank;         /**< 0: shape unknown, one axis is assumed */
    const uint64_t *shape; /**< borrowed */
    size_t elements;
} field__block;

/** Bytes of an element of `type`; 1 for what is treated as bytes. */
size_t field__element_bytes(int32_t type);

/**
 * Appends the encoded block to `out`. Every point is checked against its bound.
 * @param accuracy NULL: lossless.
 * @param effort 0 is ESDM_EFFORT_BALANCED.
 * @param raw block->elements values, any alignment; borrowed.
 * @return ESDM_OK, ESDM_ENOMEM; ESDM_EINVAL when shape and elements disagree.
 */
esdm_status field__encode(const field__block *block, const esdm_codec_accuracy *accuracy,
                          esdm_codec_effort effort, const void *raw, esdm__buffer *out,
                          esdm_error *err);

/**
 * Decodes exactly `elements` values of `type` into `raw`. Hostile bytes are ESDM_ECORRUPT; time and
 * memory are bounded by a small multiple of the elements.
 */
esdm_status field__decode(int32_t type, size_t elements, const void *encoded, size_t encoded_bytes,
                          void *raw, esdm_error *err);

/**
 * The same of the elements that some ranges of raw bytes meet: of a block in parts only parts with
 * one of these are decoded, the rest of `raw` is left as it is.
 * @param wanted borrowed; NULL: all.
 * @param ret_elements how many are decoded; `elements`: all.
 */
esdm_status field__decode_some(int32_t type, size_t elements, const void *encoded,
                               size_t encoded_bytes, const esdm_codec_range *wanted, size_t count,
                               void *raw, size_t *ret_elements, esdm_error *err);

#endif
