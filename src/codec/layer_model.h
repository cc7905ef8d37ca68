/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_CODEC_LAYER_MODEL_H
#define ESDM_CODEC_LAYER_MODEL_H

/**
 * @file
 * Codes of a layer (codec/layers.h) in few bytes. A number is predicted from finer neighbours; the
 * layer before says between which numbers it lies, and the prediction is moved in between. What is
 * left is coded by static tables, which are chosen by what was left nearby and by how far the
 * prediction was moved (asymmetric numeral systems). Pure functions, safe on hostile input.
 *
 *     0  predictor    u8        16  bytes of the tables      u32
 *     1  reserved = 0 u8 × 7    20  bytes of the loose bits  u32
 *     8  reach        u64       24  tables, loose bits, words of 32 bits
 *
 * A table has u16 symbols, then u8 symbol and u16 frequency of each.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Says that a known number has no number of a grid point. */
#define ESDM__LAYER_NOWHERE INT64_MIN

/** Where codes lead from. */
typedef struct esdm__layer_base {
    const int64_t *known; /* numbers of grid points; ESDM__LAYER_NOWHERE: there is none */
    size_t n;
    size_t row;   /* length of the fastest axis */
    size_t plane; /* of the two fastest */
    bool keeps;   /* code 0 says that a number stays, and differences from 0 on are one more */
} esdm__layer_base;

/** @return bytes written, fewer than `room`; 0: they did not fit, or memory did not. */
size_t esdm__layer_model_encode(const esdm__layer_base *base, const int64_t *codes, uint8_t *out,
                                size_t room);
/** @return false: damaged, or out of memory (*ret_nomem). */
bool esdm__layer_model_decode(const esdm__layer_base *base, const uint8_t *stored, size_t bytes,
                              int64_t *codes, bool *ret_nomem);

#endif
