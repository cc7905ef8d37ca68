/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Compiled with this instruction set switched on (cmake/EsdmBuild.cmake): calls need a check. */
#include "model/spread.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

void
esdm__spread32_avx512(uint64_t n, const void *source, void *target)
{
    const char *from = source;
    char *to = target;
    for (; n >= 8; n -= 8, from += 32, to += 64) {
        __m512i wide =
            _mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i *) (const void *) from));
        _mm512_mask_storeu_epi32(to, 0x5555, wide);
    }
    for (; n > 0; n--, from += 4, to += 8)
        memcpy(to, from, 4);
}

void
esdm__spread64_avx512(uint64_t n, const void *source, void *target)
{
    const __m512i places = _mm512_set_epi64(3, 3, 2, 2, 1, 1, 0, 0);
    const char *from = source;
    char *to = target;
    for (; n >= 4; n -= 4, from += 32, to += 64) {
        __m512i run =
            _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *) (const void *) from));
        _mm512_mask_storeu_epi64(to, 0x55, _mm512_permutexvar_epi64(places, run));
    }
    for (; n > 0; n--, from += 8, to += 16)
        memcpy(to, from, 8);
}
#endif
