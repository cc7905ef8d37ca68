/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_CODEC_ACROSS_KERNELS_H
#define ESDM_CODEC_ACROSS_KERNELS_H

/** @file Loops of codec/across.h, compiled for instruction sets that not every CPU has. */

#include "codec/across.h"

/** Adds n numbers to results from results.….[0] on. Numbers that equal one of `count` values, and
 *  NaN, do not count. */
typedef void (*esdm__across_fn)(const void *numbers, size_t n, const esdm__number *values,
                                uint32_t count, esdm__across results);

/** By what is made of numbers, and esdm_type. */
typedef struct esdm__across_table {
    esdm__across_fn add[ESDM__ACROSS_COUNT][16];
} esdm__across_table;

extern const esdm__across_table esdm__across_base;
#if defined(__x86_64__)
extern const esdm__across_table esdm__across_avx2;   /* needs AVX2 */
extern const esdm__across_table esdm__across_avx512; /* needs AVX-512F, BW, DQ and VL */
#endif

#endif
