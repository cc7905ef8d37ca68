/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_CODEC_TALLY_VECTORS_H
#define ESDM_CODEC_TALLY_VECTORS_H

/**
 * @file
 * What the loops of a tally share that are written with vectors of AVX2: their types, and how the
 * lanes of results become one. Only for sources that are compiled for such processors.
 */

#include "codec/tally_kernels.h"

/* Memory of callers need not be aligned. */
#define UNALIGNED(T) T __attribute__((aligned(1), may_alias))

#if defined(__AVX2__)

#include <immintrin.h>
#include <string.h>

/* Not wider with AVX-512: these go through more ports, and wait for memory more evenly. */
typedef __m256 singles;
typedef __m256d doubles;

/* Adds the lanes of vectors, and numbers that made no whole step. */
#define END_FLOAT(name, T)                                                                         \
    static void name(const T *low, const T *high, size_t lanes, double sum, const T *rest,         \
                     size_t nrest, esdm__run *ret)                                                 \
    {                                                                                              \
        typedef UNALIGNED(T) item;                                                                 \
        const item *x = rest;                                                                      \
        T least = low[0];                                                                          \
        T most = high[0];                                                                          \
        for (size_t i = 1; i < lanes; i++) {                                                       \
            least = low[i] < least ? low[i] : least;                                               \
            most = high[i] > most ? high[i] : most;                                                \
        }                                                                                          \
        for (size_t i = 0; i < nrest; i++) {                                                       \
            T v = x[i];                                                                            \
            least = v < least ? v : least;                                                         \
            most = v > most ? v : most;                                                            \
            sum += (double) v;                                                                     \
        }                                                                                          \
        ret->min.f = (double) least;                                                               \
        ret->max.f = (double) most;                                                                \
        ret->sum = sum;                                                                            \
    }

END_FLOAT(end_f32, float)
END_FLOAT(end_f64, double)

static double
sum_of(doubles sum)
{
    double lanes[sizeof(doubles) / sizeof(double)];
    double all = 0;
    _mm256_storeu_pd(lanes, sum);
    for (size_t i = 0; i < sizeof lanes / sizeof lanes[0]; i++)
        all += lanes[i];
    return all;
}

static inline __attribute__((always_inline)) float
single_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Bits of singles compared as integers, which many processors do beside the conversions to double,
 * where comparisons of singles would wait for these. Bits of positive singles are ordered as
 * integers, those of negative ones the other way round, and beyond all positive ones when they
 * count as unsigned.
 * @param leasts signed; of numbers that all have one sign, the one that is nearest to 0
 * @param mosts signed; the largest number, when one is positive
 * @param fars unsigned; the smallest number, when one is negative
 * A call of its own: within the loops GCC would keep all three in memory all the time. */
static __attribute__((noinline)) void
extremes_of(__m256i leasts, __m256i mosts, __m256i fars, float *ret_low, float *ret_high)
{
    enum { LANES = sizeof(singles) / sizeof(float) };
    int32_t least[LANES];
    int32_t most[LANES];
    uint32_t far[LANES];
    _mm256_storeu_si256((__m256i *) least, leasts);
    _mm256_storeu_si256((__m256i *) most, mosts);
    _mm256_storeu_si256((__m256i *) far, fars);
    for (size_t i = 1; i < LANES; i++) {
        least[0] = least[i] < least[0] ? least[i] : least[0];
        most[0] = most[i] > most[0] ? most[i] : most[0];
        far[0] = far[i] > far[0] ? far[i] : far[0];
    }
    *ret_low = single_of(far[0] >> 31 != 0 ? far[0] : (uint32_t) least[0]);
    *ret_high = single_of((uint32_t) (most[0] >= 0 ? most[0] : least[0]));
}

#endif

#endif
