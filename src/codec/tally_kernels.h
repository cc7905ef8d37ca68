/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_CODEC_TALLY_KERNELS_H
#define ESDM_CODEC_TALLY_KERNELS_H

/**
 * @file
 * Loops of a tally, compiled for instruction sets that not every CPU has. Sums may differ in their
 * last bits from one to another. Pure functions.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/statistics.h"

/** Numbers of one call at most: sums of integers do not overflow. */
#define ESDM__TALLY_MOST 8192u

/** What a run of numbers has. */
typedef struct esdm__run {
    esdm__number min;
    esdm__number max;
    double sum;
    size_t valid;
    size_t infinite; /* of `masked`: numbers that it did not look at */
} esdm__run;

/** All numbers count. Of floating-point numbers the result is right when the sum is finite. */
typedef void (*esdm__tally_all_fn)(const void *numbers, size_t n, esdm__run *ret);
/** Numbers that equal a or b, and NaN, do not count; nor do infinite ones, which are counted apart.
 *  Minimum and maximum are right when there are valid ones. */
typedef void (*esdm__tally_masked_fn)(const void *numbers, size_t n, esdm__number a, esdm__number b,
                                      esdm__run *ret);

/** By esdm_type, from ESDM_TYPE_INT8 to ESDM_TYPE_UINT64. */
typedef struct esdm__tallies {
    esdm__tally_all_fn all[16];
    esdm__tally_masked_fn masked[16];
} esdm__tallies;

extern const esdm__tallies esdm__tallies_base;
#if defined(__x86_64__)
extern const esdm__tallies esdm__tallies_avx2;   /* needs AVX2 */
extern const esdm__tallies esdm__tallies_avx512; /* needs AVX-512F, BW, DQ and VL */
#endif

#endif
