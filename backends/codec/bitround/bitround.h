/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_CODEC_BITROUND_H
#define ESDM_CODEC_BITROUND_H

/**
 * @file
 * The parts of the codec "bitround". All functions read `n` elements of `raw` and write as many to
 * `out`; both may be unaligned. Pure.
 */

#include <stdbool.h>

#include "esdm/sys/codec.h"

/** Rounds `n` floating-point numbers of `bytes` 4 or 8; specials keep their bits.
 *  @param part of the bounds to use, a power of two of at most 1. */
void esdm__bitround_floats(const esdm_codec_accuracy *a, double part, size_t bytes, const void *raw,
                           void *out, size_t n);
/** Rounds integers; `is_signed` says of which kind. `bytes` is 1, 2, 4 or 8. */
void esdm__bitround_integers(const esdm_codec_accuracy *a, size_t bytes, bool is_signed,
                             const void *raw, void *out, size_t n);
/** Takes back what was done to the listed values, or gave one of them. */
void esdm__bitround_keep_values(const esdm_codec_accuracy *a, size_t bytes, const void *raw,
                                void *out, size_t n);
/** Rounds some floating-point numbers the other way, so that the sum changes by no more than
 *  a->sum_bound. @param part that they were rounded with: with 1 few can be turned within their
 * bound, with 0.5 all. @return false: that was not possible. */
bool esdm__bitround_balance(const esdm_codec_accuracy *a, double part, size_t bytes,
                            const void *raw, void *out, size_t n);

#endif
