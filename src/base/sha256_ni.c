/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* SHA-256 with the instructions that processors have for it. */
#include "base/sha256.h"

#ifdef ESDM__SHA256_X86

#include <immintrin.h>

static inline __m128i
load(const void *p)
{
    return _mm_loadu_si128((const __m128i *) p);
}

/* Four words of the schedule from the sixteen before them. */
static inline __m128i
schedule(__m128i w0, __m128i w4, __m128i w8, __m128i w12)
{
    __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(w0, w4), _mm_alignr_epi8(w12, w8, 4));
    return _mm_sha256msg2_epu32(sum, w12);
}

void
esdm__sha256_ni(uint32_t state[8], const uint8_t *blocks, size_t count)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
    /* a b c d and e f g h become a b e f and c d g h, highest word first */
    __m128i low = _mm_shuffle_epi32(load(state), 0xb1);
    __m128i high = _mm_shuffle_epi32(load(state + 4), 0x1b);
    __m128i abef = _mm_alignr_epi8(low, high, 8);
    __m128i cdgh = _mm_blend_epi16(high, low, 0xf0);
    for (size_t i = 0; i < count; i++, blocks += 64) {
        __m128i abef_before = abef, cdgh_before = cdgh;
        __m128i w[4];
        for (unsigned t = 0; t < 16; t++) {
            w[t % 4] = t < 4 ? _mm_shuffle_epi8(load(blocks + 16 * (size_t) t), swap)
                             : schedule(w[t % 4], w[(t + 1) % 4], w[(t + 2) % 4], w[(t + 3) % 4]);
            __m128i words = _mm_add_epi32(w[t % 4], load(esdm__sha256_k + 4 * (size_t) t));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, words);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(words, 0x0e));
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    low = _mm_shuffle_epi32(abef, 0x1b);
    high = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *) state, _mm_blend_epi16(low, high, 0xf0));
    _mm_storeu_si128((__m128i *) (state + 4), _mm_alignr_epi8(high, low, 8));
}

#endif
