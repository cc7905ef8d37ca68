/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TESTS_ACCURACY_CHECK_H
#define ESDM_TESTS_ACCURACY_CHECK_H

/**
 * @file
 * Whether values kept the promise of esdm_codec_accuracy: written apart from the library's own
 * check, in long double, one point at a time. Integers of 64 bits fit long double's mantissa.
 */

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "esdm/sys/codec.h"
#include "esdm/types.h"

/* The value of an element; NaN for types that are no numbers. */
static inline long double
accuracy_value(esdm_type type, const void *element)
{
    switch (type) {
#define ACCURACY_CASE(name, c_type)                                                                \
    case name: {                                                                                   \
        c_type value;                                                                              \
        memcpy(&value, element, sizeof value);                                                     \
        return (long double) value;                                                                \
    }
        ACCURACY_CASE(ESDM_TYPE_INT8, int8_t)
        ACCURACY_CASE(ESDM_TYPE_INT16, int16_t)
        ACCURACY_CASE(ESDM_TYPE_INT32, int32_t)
        ACCURACY_CASE(ESDM_TYPE_INT64, int64_t)
        ACCURACY_CASE(ESDM_TYPE_UINT8, uint8_t)
        ACCURACY_CASE(ESDM_TYPE_UINT16, uint16_t)
        ACCURACY_CASE(ESDM_TYPE_UINT32, uint32_t)
        ACCURACY_CASE(ESDM_TYPE_UINT64, uint64_t)
        ACCURACY_CASE(ESDM_TYPE_FLOAT32, float)
        ACCURACY_CASE(ESDM_TYPE_FLOAT64, double)
#undef ACCURACY_CASE
    default:
        return (long double) NAN;
    }
}

/* Whether the element is one whose bits must be kept. */
static inline bool
accuracy_is_exact(const esdm_codec_accuracy *a, esdm_type type, size_t bytes, const void *element)
{
    long double x = accuracy_value(type, element);
    if (!isfinite(x) || x <= (long double) a->exact_below || x >= (long double) a->exact_above)
        return true;
    for (uint32_t i = 0; i < a->exact_count; i++)
        if (memcmp((const char *) a->exact_values + i * bytes, element, bytes) == 0)
            return true;
    return false;
}

/* Whether one point kept the promise. */
static inline bool
accuracy_point_kept(const esdm_codec_accuracy *a, esdm_type type, size_t bytes, const void *before,
                    const void *after)
{
    if (memcmp(before, after, bytes) == 0)
        return true;
    if (accuracy_is_exact(a, type, bytes, before))
        return false;
    for (uint32_t i = 0; i < a->exact_count; i++)
        if (memcmp((const char *) a->exact_values + i * bytes, after, bytes) == 0)
            return false;
    long double x = accuracy_value(type, before);
    long double error = fabsl(accuracy_value(type, after) - x);
    long double limit = INFINITY;
    if (isfinite(a->relative)) {
        limit = (long double) a->relative * fabsl(x);
        limit = limit > (long double) a->finest ? limit : (long double) a->finest;
    }
    limit = limit < (long double) a->absolute ? limit : (long double) a->absolute;
    if (x == 0 && limit == 0)
        return false;      /* the sign changed */
    return error <= limit; /* false for NaN */
}

/* Index of the first point that did not; `n` when all did. */
static inline size_t
accuracy_first_violation(const esdm_codec_accuracy *a, esdm_type type, size_t bytes,
                         const void *before, const void *after, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!accuracy_point_kept(a, type, bytes, (const char *) before + i * bytes,
                                 (const char *) after + i * bytes))
            return i;
    return n;
}

/* The change of the sum over the points that are not exact. */
static inline long double
accuracy_sum_change(const esdm_codec_accuracy *a, esdm_type type, size_t bytes, const void *before,
                    const void *after, size_t n)
{
    long double sum = 0;
    long double rest = 0;
    for (size_t i = 0; i < n; i++) {
        const char *x = (const char *) before + i * bytes;
        const char *y = (const char *) after + i * bytes;
        if (accuracy_is_exact(a, type, bytes, x))
            continue;
        long double term = accuracy_value(type, y) - accuracy_value(type, x) - rest;
        long double next = sum + term;
        rest = (next - sum) - term;
        sum = next;
    }
    return sum;
}

#endif
