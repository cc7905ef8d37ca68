/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_CODEC_VERIFY_KERNELS_H
#define ESDM_CODEC_VERIFY_KERNELS_H

/**
 * @file
 * The quick look at decoded floating-point numbers, compiled for instruction sets that not every
 * CPU has. Pure functions, equal results.
 */

#include "esdm/sys/codec.h"

/** What a run of numbers has. */
typedef struct esdm__look {
    double largest_error;
    double largest_share; /* 0 unless there is a relative bound */
    double sum_change;
    size_t exact;  /* not finite, or in a range that is */
    size_t unsure; /* numbers that the look does not let pass: for a slower one */
} esdm__look;

/** Numbers at a time: `n` is a multiple of this. */
#define ESDM__LOOK_LANES 8u

typedef void (*esdm__look_fn)(const esdm_codec_accuracy *a, const void *raw, const void *decoded,
                              size_t n, esdm__look *ret);

/** Numbers at a time of a glance. */
#define ESDM__GLANCE_LANES 16u

/**
 * The same with single precision, where all numbers have one absolute bound: the largest error and
 * the sum are those of rounded differences. Unsure is the look when an error is above `limit`, or
 * a number not finite.
 */
typedef void (*esdm__glance_fn)(float limit, const float *raw, const float *decoded, size_t n,
                                esdm__look *ret);

typedef struct esdm__looks {
    esdm__look_fn singles;
    esdm__look_fn doubles;
    esdm__glance_fn glance;
} esdm__looks;

extern const esdm__looks esdm__looks_base;
#if defined(__x86_64__)
extern const esdm__looks esdm__looks_avx2;   /* needs AVX2 */
extern const esdm__looks esdm__looks_avx512; /* needs AVX-512F and DQ */
#endif

#endif
