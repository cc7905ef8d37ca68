/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MODEL_SPREAD_H
#define ESDM_MODEL_SPREAD_H

/**
 * @file
 * Copies a dense run to every second element, as reading interleaved strided fragments does. What
 * lies between is not written, not even with the value that it has: another thread may be writing
 * it. Pure functions.
 */

#include <stddef.h>
#include <stdint.h>

/** @param n elements. Neither side need be aligned. */
typedef void (*esdm__spread_fn)(uint64_t n, const void *source, void *target);

/** For elements of so many bytes on this CPU; NULL: nothing is faster than a loop. */
esdm__spread_fn esdm__spread_of(size_t element_bytes);

#if defined(__x86_64__)
/** They need AVX-512F. */
void esdm__spread32_avx512(uint64_t n, const void *source, void *target);
void esdm__spread64_avx512(uint64_t n, const void *source, void *target);
#endif

#endif
