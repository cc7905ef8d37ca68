/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Rounding of integers within their bounds. */

#include "bitround.h"

#include <math.h>
#include <string.h>

/* Below the product by more than its rounding: a bound must not come out too large. */
#define CAREFUL (1.0 - 0x1p-50)
/* 2^62: steps of integers stay below it. */
#define STEP_MAX_LOG2 62

/* An integer as its sign and its distance from zero, which hold all of them. */
typedef struct integer {
    uint64_t magnitude;
    bool negative;
} integer;

static integer
get(const uint8_t *at, size_t bytes, bool is_signed)
{
    uint64_t bits = 0;
    memcpy(&bits, at, bytes); /* little-endian */
    uint64_t sign = UINT64_C(1) << (8 * bytes - 1);
    if (!is_signed || (bits & sign) == 0)
        return (integer){bits, false};
    uint64_t extended = bits | ~(sign - 1);
    return (integer){-extended, true};
}

/* false: it does not fit the type. */
static bool
put(integer value, uint8_t *at, size_t bytes, bool is_signed)
{
    uint64_t most = UINT64_MAX >> (64 - 8 * bytes);
    if (is_signed)
        most = (most >> 1) + (value.negative ? 1 : 0);
    if (value.magnitude > most)
        return false;
    uint64_t bits = value.negative ? -value.magnitude : value.magnitude;
    memcpy(at, &bits, bytes);
    return true;
}

/* log2 of the largest power of two whose half lies within the bound; 0: none but 1. */
static int
step_of(const esdm_codec_accuracy *a, uint64_t magnitude)
{
    double bound = a->absolute;
    if (a->relative < (double) INFINITY) {
        double relative = a->relative * (double) magnitude * CAREFUL;
        relative = relative > a->finest ? relative : a->finest;
        bound = bound < relative ? bound : relative;
    }
    if (!(bound >= 1.0))
        return 0;
    int log2 = ilogb(bound) + 1;
    return log2 < STEP_MAX_LOG2 ? log2 : STEP_MAX_LOG2;
}

static bool
in_exact_range(const esdm_codec_accuracy *a, integer value)
{
    long double x = (long double) value.magnitude;
    x = value.negative ? -x : x;
    return x <= (long double) a->exact_below || x >= (long double) a->exact_above;
}

void
esdm__bitround_integers(const esdm_codec_accuracy *a, size_t bytes, bool is_signed, const void *raw,
                        void *out, size_t n)
{
    const uint8_t *from = raw;
    uint8_t *to = out;
    memcpy(out, raw, n * bytes);
    for (size_t i = 0; i < n; i++) {
        integer value = get(from + i * bytes, bytes, is_signed);
        int log2 = step_of(a, value.magnitude);
        if (log2 == 0 || in_exact_range(a, value))
            continue;
        uint64_t half = UINT64_C(1) << (log2 - 1);
        uint64_t sum = value.magnitude + half;
        if (sum < half)
            continue;
        value.magnitude = sum & ~(2 * half - 1);
        (void) put(value, to + i * bytes, bytes, is_signed); /* else it stays */
    }
}
