/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_CHECKSUM_KERNELS_H
#define ESDM_BASE_CHECKSUM_KERNELS_H

/** @file XXH3 compiled for instruction sets that not every CPU has. Pure functions, equal results.
 */

#include <stddef.h>
#include <stdint.h>

typedef uint64_t (*esdm__checksum_fn)(const void *data, size_t bytes);

#if defined(__x86_64__)
#define ESDM__CHECKSUM_X86
/** Needs AVX2. */
uint64_t esdm__checksum_avx2(const void *data, size_t bytes);
/** Needs AVX-512F. */
uint64_t esdm__checksum_avx512(const void *data, size_t bytes);
#endif

#endif
