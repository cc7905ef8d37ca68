/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * What this processor has. glibc has asked it when the program started, and is asked here:
 * __builtin_cpu_supports() would bring a constructor into each library that asks again, by
 * instructions of which each takes some 10 us in a virtual machine (0.07 ms of a program's first
 * open).
 */
#ifndef ESDM_BASE_CPU_H
#define ESDM_BASE_CPU_H

#include <stdbool.h>

#if defined(__x86_64__)

#if defined(__has_include)
#if __has_include(<sys/platform/x86.h>) /* glibc 2.33 */
#define ESDM__CPU_BY_LIBC 1
#endif
#endif

#ifdef ESDM__CPU_BY_LIBC
#include <sys/platform/x86.h>
#define ESDM__CPU_HAS(libc, builtin) esdm__cpu_active(x86_cpu_##libc)

/* As CPU_FEATURE_ACTIVE(), which shifts a 1 into the sign (AVX512VL is bit 31): undefined, which
 * sanitizers end programs for. */
static inline bool
esdm__cpu_active(unsigned index)
{
    const struct cpuid_feature *leaf = __x86_get_cpuid_feature_leaf(index / 128);
    return (leaf->active_array[index % 128 / 32] >> index % 32 & 1) != 0;
}
#else
#include <cpuid.h>
#define ESDM__CPU_HAS(libc, builtin) (__builtin_cpu_supports(builtin) != 0)
#endif

static inline bool
esdm__cpu_has_avx2(void)
{
    return ESDM__CPU_HAS(AVX2, "avx2");
}

static inline bool
esdm__cpu_has_avx512f(void)
{
    return ESDM__CPU_HAS(AVX512F, "avx512f");
}

static inline bool
esdm__cpu_has_avx512dq(void)
{
    return esdm__cpu_has_avx512f() && ESDM__CPU_HAS(AVX512DQ, "avx512dq");
}

/* All that compilers use for vectors of 512 bits. */
static inline bool
esdm__cpu_has_avx512(void)
{
    return esdm__cpu_has_avx512dq() && ESDM__CPU_HAS(AVX512BW, "avx512bw") &&
           ESDM__CPU_HAS(AVX512CD, "avx512cd") && ESDM__CPU_HAS(AVX512VL, "avx512vl");
}

/* Instructions for SHA-256, and those for vectors that stand beside them. */
static inline bool
esdm__cpu_has_sha(void)
{
#ifdef ESDM__CPU_BY_LIBC
    return ESDM__CPU_HAS(SSE4_1, "sse4.1") && ESDM__CPU_HAS(SHA, "sha");
#else
    unsigned a, b = 0, c, d;
    return __builtin_cpu_supports("sse4.1") && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 &&
           (b & bit_SHA) != 0;
#endif
}

#endif

#endif
