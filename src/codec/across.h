/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_CODEC_ACROSS_H
#define ESDM_CODEC_ACROSS_H

/**
 * @file
 * Rows of numbers added to rows of results: number i belongs to result i. What is missing (NaN, and
 * the values stated) is told apart in the type of the numbers, so that large integers are compared
 * as they are. Pure functions; a result is used by one thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/statistics.h"

/** What is made of each number. */
typedef enum esdm__across_what {
    ESDM__ACROSS_SUM,
    ESDM__ACROSS_MIN,
    ESDM__ACROSS_MAX,
    ESDM__ACROSS_SQUARES, /* sums of differences to the first one, and of their squares */
    ESDM__ACROSS_COUNT
} esdm__across_what;

/** Results, one after the other; what is not made of numbers is NULL. */
typedef struct esdm__across {
    double *value;    /* sum, minimum (begins as INFINITY), maximum (-INFINITY), or sum of
                         differences */
    double *squares;  /* sum of squared differences */
    double *first;    /* first valid number; NaN: none yet */
    uint64_t *absent; /* numbers that were missing */
} esdm__across;

/** Adds `n` numbers to results `at` to at+n-1.
 *  @param type esdm_type of numbers. @param missing of that type. */
void esdm__across_add(esdm__across_what what, int32_t type, const esdm__missing *missing,
                      const void *numbers, size_t n, const esdm__across *results, size_t at);
/** Adds `n` numbers to the one result `at`. */
void esdm__across_add_one(esdm__across_what what, int32_t type, const esdm__missing *missing,
                          const void *numbers, size_t n, const esdm__across *results, size_t at);

#endif
