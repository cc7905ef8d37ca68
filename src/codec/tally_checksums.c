/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Compiled with AVX2 switched on (cmake/EsdmBuild.cmake): calls need a check. XXH3 of 4 KiB is made
 * of the parts of xxhash.h, so that numbers are tallied between its stripes of 64 bytes. */
#include "codec/tally_checksums.h"

#if defined(__AVX2__)

#define XXH_INLINE_ALL
#define XXH_VECTOR XXH_AVX2
#include <xxhash.h>

#include "codec/tally_vectors.h"

enum {
    STRIPE = 64,
    ROUND_STRIPES = 16, /* of the default secret; then the sums are scrambled */
    ROUND = ROUND_STRIPES * STRIPE,
    ROUNDS = ESDM__TALLY_BLOCK_BYTES / ROUND,
    SECRET_STEP = 8,                             /* from one stripe to the next */
    SCRAMBLED_BY = XXH_SECRET_DEFAULT_SIZE - 64, /* places in the secret */
    LAST_BY = SCRAMBLED_BY - 7,
    MERGED_BY = 11,
    AHEAD = 512 /* bytes that are asked for before they are wanted */
};

/* Of singles. Minimum and maximum as in extremes_of(). */
typedef struct tally_f32 {
    __m256i least;
    __m256i most;
    __m256i far;
    doubles sum[4];
} tally_f32;

typedef struct tally_f64 {
    doubles low[2];
    doubles high[2];
    doubles sum[2];
} tally_f64;

#define INLINED static inline __attribute__((always_inline))

INLINED void
take_f32(tally_f32 *t, const uint8_t *stripe)
{
    for (size_t k = 0; k < 2; k++) {
        const uint8_t *y = stripe + k * sizeof(singles);
        const float *x = (const float *) (const void *) y;
        __m256i v = _mm256_loadu_si256((const __m256i_u *) (const void *) y);
        t->least = _mm256_min_epi32(t->least, v);
        t->most = _mm256_max_epi32(t->most, v);
        t->far = _mm256_max_epu32(t->far, v);
        t->sum[2 * k] = _mm256_add_pd(t->sum[2 * k], _mm256_cvtps_pd(_mm_loadu_ps(x)));
        t->sum[2 * k + 1] = _mm256_add_pd(t->sum[2 * k + 1], _mm256_cvtps_pd(_mm_loadu_ps(x + 4)));
    }
}

INLINED void
take_f64(tally_f64 *t, const uint8_t *stripe)
{
    for (size_t k = 0; k < 2; k++) {
        doubles v = _mm256_loadu_pd((const double *) (const void *) (stripe + k * sizeof v));
        t->low[k] = _mm256_min_pd(t->low[k], v);
        t->high[k] = _mm256_max_pd(t->high[k], v);
        t->sum[k] = _mm256_add_pd(t->sum[k], v);
    }
}

/* A stripe goes into the checksum and into the tally. */
#define TAKE(take, tally, acc, stripe, secret)                                                     \
    do {                                                                                           \
        _mm_prefetch((const char *) ((uintptr_t) (stripe) + AHEAD), _MM_HINT_T0);                  \
        XXH3_accumulate_512_avx2(acc, stripe, secret);                                             \
        take(tally, stripe);                                                                       \
    } while (0)

/* XXH3 of a block of 4 KiB. */
#define BLOCK(name, TALLY, take)                                                                   \
    INLINED uint64_t name(TALLY *tally, const uint8_t *block)                                      \
    {                                                                                              \
        XXH_ALIGN(XXH_ACC_ALIGN) xxh_u64 acc[XXH_ACC_NB] = XXH3_INIT_ACC;                          \
        const uint8_t *at = block;                                                                 \
        for (size_t r = 0; r < ROUNDS; r++) {                                                      \
            size_t stripes = r + 1 < ROUNDS ? ROUND_STRIPES : ROUND_STRIPES - 1;                   \
            for (size_t i = 0; i < stripes; i++, at += STRIPE)                                     \
                TAKE(take, tally, acc, at, XXH3_kSecret + i * SECRET_STEP);                        \
            if (r + 1 < ROUNDS)                                                                    \
                XXH3_scrambleAcc_avx2(acc, XXH3_kSecret + SCRAMBLED_BY);                           \
        }                                                                                          \
        TAKE(take, tally, acc, at, XXH3_kSecret + LAST_BY);                                        \
        return XXH3_mergeAccs(acc, XXH3_kSecret + MERGED_BY,                                       \
                              ESDM__TALLY_BLOCK_BYTES * XXH_PRIME64_1);                            \
    }

BLOCK(block_f32, tally_f32, take_f32)
BLOCK(block_f64, tally_f64, take_f64)

void
esdm__tally_checksums_f32(const void *numbers, size_t blocks, uint64_t *ret_checksums,
                          esdm__run *ret)
{
    const uint8_t *at = numbers;
    typedef UNALIGNED(float) item;
    const __m256i first = _mm256_castps_si256(_mm256_set1_ps(*(const item *) numbers));
    tally_f32 t = {.least = first, .most = first, .far = first};
    for (size_t b = 0; b < blocks; b++, at += ESDM__TALLY_BLOCK_BYTES)
        ret_checksums[b] = block_f32(&t, at);
    float low;
    float high;
    extremes_of(t.least, t.most, t.far, &low, &high);
    doubles sum =
        _mm256_add_pd(_mm256_add_pd(t.sum[0], t.sum[1]), _mm256_add_pd(t.sum[2], t.sum[3]));
    *ret = (esdm__run){.valid = blocks * (ESDM__TALLY_BLOCK_BYTES / sizeof(float))};
    end_f32(&low, &high, 1, sum_of(sum), NULL, 0, ret);
}

void
esdm__tally_checksums_f64(const void *numbers, size_t blocks, uint64_t *ret_checksums,
                          esdm__run *ret)
{
    enum { LANES = sizeof(doubles) / sizeof(double) };
    const uint8_t *at = numbers;
    typedef UNALIGNED(double) item;
    const doubles first = _mm256_set1_pd(*(const item *) numbers);
    tally_f64 t = {.low = {first, first}, .high = {first, first}};
    for (size_t b = 0; b < blocks; b++, at += ESDM__TALLY_BLOCK_BYTES)
        ret_checksums[b] = block_f64(&t, at);
    double lows[LANES];
    double highs[LANES];
    _mm256_storeu_pd(lows, _mm256_min_pd(t.low[0], t.low[1]));
    _mm256_storeu_pd(highs, _mm256_max_pd(t.high[0], t.high[1]));
    *ret = (esdm__run){.valid = blocks * (ESDM__TALLY_BLOCK_BYTES / sizeof(double))};
    end_f64(lows, highs, LANES, sum_of(_mm256_add_pd(t.sum[0], t.sum[1])), NULL, 0, ret);
}

#endif
