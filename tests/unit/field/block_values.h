/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TESTS_UNIT_FIELD_BLOCK_VALUES_H
#define TESTS_UNIT_FIELD_BLOCK_VALUES_H

/** @file Blocks of all types and shapes, and values of many kinds, the same in every run. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "esdm/types.h"
#include "field.h"

static const int32_t types[] = {ESDM_TYPE_INT8,    ESDM_TYPE_UINT8,  ESDM_TYPE_INT16,
                                ESDM_TYPE_UINT16,  ESDM_TYPE_INT32,  ESDM_TYPE_UINT32,
                                ESDM_TYPE_INT64,   ESDM_TYPE_UINT64, ESDM_TYPE_FLOAT32,
                                ESDM_TYPE_FLOAT64, ESDM_TYPE_CHAR};
#define TYPES (sizeof types / sizeof types[0])

typedef struct shape {
    uint32_t rank;
    uint64_t sizes[5];
} shape;

static const shape shapes[] = {
    {0, {1}},
    {1, {1}},
    {1, {2}},
    {1, {17}},
    {1, {1009}},
    {2, {1, 1}},
    {2, {31, 37}},
    {2, {100, 3}},
    {2, {2, 2}},
    {3, {5, 7, 31}},
    {3, {2, 1, 64}},
    {3, {13, 2, 17}},
    {3, {3, 3, 3}},
    {4, {3, 2, 5, 19}},
    {4, {2, 3, 16, 16}},
    {5, {2, 3, 2, 5, 23}},
    {5, {1, 1, 7, 1, 1}},
};
#define SHAPES (sizeof shapes / sizeof shapes[0])

typedef enum pattern {
    SMOOTH,
    NOISE,
    CONSTANT,
    OUTLIER,
    FILLED,
    RANDOM_BITS,
    SPECIALS,
    DENORMAL,
    WIDE_RANGE,
    DECIMAL,
    PATTERNS
} pattern;

static uint64_t random_state;

static uint64_t
next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * UINT64_C(2685821657736338717);
}

static double
uniform(void)
{
    return (double) (next_random() >> 11) * 0x1p-53;
}

static double
special_value(void)
{
    static const double values[] = {0.0, -0.0, INFINITY, -INFINITY, 1e-40, -1e-40, 1e38, -1e38, 1};
    return values[next_random() % 9];
}

static double
pattern_value(pattern which, size_t i)
{
    double x = (double) i;
    switch (which) {
    case SMOOTH:
        return 50 + 40 * sin(x * 0.05) + 3 * cos(x * 0.31);
    case NOISE:
        return uniform() * 100;
    case CONSTANT:
        return 42.5;
    case OUTLIER:
        return i == 3 ? 1e30 : sin(x * 0.1);
    case FILLED:
        return i / 9 % 3 == 1 ? 9.969209968386869e36 : 20 + sin(x * 0.03);
    case SPECIALS:
        return next_random() % 4 == 0 ? special_value() : x * 0.25;
    case DENORMAL:
        return (double) (next_random() % 1000) * 1e-43;
    case WIDE_RANGE:
        return (next_random() & 1 ? 1 : -1) * exp(uniform() * 160 - 80);
    default:
        return floor(1000 * sin(x * 0.02)) / 100;
    }
}

static size_t
elements_of(const shape *s)
{
    size_t n = 1;
    for (uint32_t i = 0; i < s->rank; i++)
        n *= (size_t) s->sizes[i];
    return n;
}

static void
put_number(int32_t type, double value, void *to)
{
    double low = type == ESDM_TYPE_UINT8 || type == ESDM_TYPE_UINT16 || type == ESDM_TYPE_UINT32 ||
                         type == ESDM_TYPE_UINT64
                     ? 0
                     : -100;
    double whole = value != value ? 0 : value < low ? low : value > 100 ? 100 : value;
    int64_t integer = (int64_t) whole;
    float single = (float) value;
    if (type == ESDM_TYPE_FLOAT32)
        memcpy(to, &single, sizeof single);
    else if (type == ESDM_TYPE_FLOAT64)
        memcpy(to, &value, sizeof value);
    else
        memcpy(to, &integer, field__element_bytes(type));
}

/* Owned values; random bits include NaN with payloads. */
static uint8_t *
make_values(int32_t type, size_t n, pattern which)
{
    size_t size = field__element_bytes(type);
    uint8_t *raw = malloc(n * size);
    assert_non_null(raw);
    random_state = 88172645463325252u + n * 31 + (uint64_t) which;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = next_random();
        if (which == RANDOM_BITS)
            memcpy(raw + i * size, &bits, size);
        else
            put_number(type, pattern_value(which, i), raw + i * size);
    }
    return raw;
}

#endif
