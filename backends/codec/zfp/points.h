/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_CODEC_ZFP_POINTS_H
#define ESDM_CODEC_ZFP_POINTS_H

/**
 * @file
 * Points that zfp cannot be trusted with: numbers that must keep their bits, and those that came
 * back too far off. They are listed as runs: varint points since the last run, varint length * 4 +
 * kind, then what the kind says. Pure functions; `bytes` is 4 or 8, memory may be unaligned.
 */

#include "base/buffer.h"
#include "esdm/sys/codec.h"

#include <stdbool.h>

/** Copies `n` numbers and puts others where bits must be kept: those before them. *ret_tolerance:
 *  the least bound of the rest. @return false: there is no rest. */
bool zfp__points_hide(const esdm_codec_accuracy *a, size_t bytes, const void *raw, void *ret_copy,
                      size_t n, double *ret_tolerance);
/**
 * Lists the points of `decoded` that are not within their bound of `raw`, and makes them equal.
 * @param most listed points at most, @return false: there are more, or the sum is off too far.
 */
bool zfp__points_list(const esdm_codec_accuracy *a, size_t bytes, const void *raw, void *decoded,
                      size_t n, size_t most, esdm__buffer *list);
/** Puts listed points in. false: the list is damaged; `numbers` then hold anything. */
bool zfp__points_apply(const void *list, size_t list_bytes, size_t bytes, void *numbers, size_t n);

#endif
