/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_CODEC_BITROUND_ROUND_H
#define ESDM_CODEC_BITROUND_ROUND_H

/** @file Rounding of floating-point numbers, compiled for instruction sets that not every CPU has.
 *  Pure, equal results. */

#include <stddef.h>
#include <stdint.h>

#define EXPONENT_MASK INT64_C(0x7ff0000000000000)
/* Of steps: their inverse must be a normal number too. */
#define STEP_LEAST INT64_C(0x0020000000000000)
#define STEP_MOST  INT64_C(0x7fc0000000000000)

/* Numbers at a time. */
#define LANES 8u

/* What is known of all points. */
typedef struct limits {
    double absolute;
    double relative; /* 0 where only `absolute` counts */
    double finest;
    double below;
    double above;
} limits;

/* `n` numbers, a multiple of LANES; nothing needs to be aligned. */
typedef struct rounder {
    void (*singles)(const limits *l, const void *raw, void *out, size_t n);
    void (*doubles)(const limits *l, const void *raw, void *out, size_t n);
} rounder;

extern const rounder bitround__base;
#if defined(__x86_64__)
extern const rounder bitround__avx2;   /* needs AVX2 */
extern const rounder bitround__avx512; /* needs AVX-512F and DQ */
#endif

#endif
