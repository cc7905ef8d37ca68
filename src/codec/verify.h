/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_CODEC_VERIFY_H
#define ESDM_CODEC_VERIFY_H

/** @file Whether decoded numbers keep the accuracy that was asked for (esdm/sys/codec.h). Pure. */

#include <stdbool.h>

#include "esdm/sys/codec.h"

/** What verification found. Zeroed: of no numbers. */
typedef struct esdm__accuracy_facts {
    double largest_error; /* |x' - x| */
    double largest_share; /* |x' - x| / bound of x: at most 1 */
    double sum_change;    /* sum(x') - sum(x) over the points below */
    uint64_t points;      /* that may be off */
    uint64_t exact_points;
} esdm__accuracy_facts;

/** Whether the type has numbers of which an accuracy can be asked. */
bool esdm__accuracy_applies(int32_t type);
/** Sum of |x| over the points of a block that may be off: what a change of the sum is measured by.
 *  @param ret_points how many these are. */
double esdm__accuracy_magnitude(const esdm_codec_accuracy *a, int32_t type, const void *raw,
                                size_t n, size_t *ret_points);
/** What numbers that may be off span. */
typedef struct esdm__accuracy_spread {
    double low, high; /* of the finite numbers; low > high: there are none */
    double deviation; /* standard deviation, of all (not n - 1); 0 unless asked for */
} esdm__accuracy_spread;
/** Range and standard deviation of `n` numbers, as far as they may be off.
 *  @param wants_deviation else it is not computed. */
esdm__accuracy_spread esdm__accuracy_spread_of(const esdm_codec_accuracy *a, int32_t type,
                                               const void *raw, size_t n, bool wants_deviation);
/** The largest 2^(k/8) that is no more than a bound, as a double; 0 of what is not positive and
 *  normal. Bounds that were taken from data stay the same when numbers change a little. */
double esdm__accuracy_bound_below(double bound);
/**
 * Compares `n` numbers with what was decoded.
 * @param facts are added to, when all numbers keep their bound; else they stay as they are.
 * @return whether they do, sum_bound included.
 */
bool esdm__accuracy_verify(const esdm_codec_accuracy *a, int32_t type, const void *raw,
                           const void *decoded, size_t n, esdm__accuracy_facts *facts);
/**
 * Whether the root of the mean square of errors is at most `noise`, over the numbers that may be
 * off. Of numbers that esdm__accuracy_verify() found right. With errors of up to `noise` each it
 * always is.
 */
bool esdm__accuracy_verify_noise(const esdm_codec_accuracy *a, int32_t type, const void *raw,
                                 const void *decoded, size_t n, double noise);
/** Adds what two parts found. */
void esdm__accuracy_add(esdm__accuracy_facts *to, const esdm__accuracy_facts *from);

#endif
