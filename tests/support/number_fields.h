/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TESTS_NUMBER_FIELDS_H
#define ESDM_TESTS_NUMBER_FIELDS_H

/** @file Fields of numbers that are hard on codecs; the same in every run. */

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "esdm/types.h"

static inline uint64_t
field_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static const esdm_type field_types[] = {
    ESDM_TYPE_FLOAT32, ESDM_TYPE_FLOAT64, ESDM_TYPE_INT8,   ESDM_TYPE_INT16,  ESDM_TYPE_INT32,
    ESDM_TYPE_INT64,   ESDM_TYPE_UINT8,   ESDM_TYPE_UINT16, ESDM_TYPE_UINT32, ESDM_TYPE_UINT64,
};
#define FIELD_TYPES (sizeof field_types / sizeof field_types[0])

static inline size_t
field_type_bytes(esdm_type type)
{
    static const uint8_t sizes[] = {
        [ESDM_TYPE_INT8] = 1,    [ESDM_TYPE_INT16] = 2,   [ESDM_TYPE_INT32] = 4,
        [ESDM_TYPE_FLOAT32] = 4, [ESDM_TYPE_FLOAT64] = 8, [ESDM_TYPE_UINT8] = 1,
        [ESDM_TYPE_UINT16] = 2,  [ESDM_TYPE_UINT32] = 4,  [ESDM_TYPE_INT64] = 8,
        [ESDM_TYPE_UINT64] = 8};
    return sizes[type];
}

typedef enum field_kind {
    FIELD_SMOOTH, /* waves around an offset */
    FIELD_CONSTANT,
    FIELD_BITS,    /* any bits: NaN, infinities, denormals, all exponents */
    FIELD_MASKED,  /* waves with blocks of a fill value and of NaN */
    FIELD_WIDE,    /* magnitudes from the least to the largest, both signs, zeros of both signs */
    FIELD_OUTLIER, /* waves with one huge value */
    FIELD_GRID,    /* multiples of 1/64 */
    FIELD_TINY,    /* denormals */
    FIELD_KINDS
} field_kind;

static const double field_fill = -1e10;

static inline double
field_waves(size_t i, uint64_t *random)
{
    double t = (double) i;
    return 280.0 + 20.0 * sin(t * 0.031) + 3.0 * cos(t * 0.0017) +
           1e-3 * (double) (field_random(random) % 1000);
}

static inline double
field_number(field_kind kind, size_t i, size_t n, uint64_t *random)
{
    double noise = (double) (field_random(random) % 1000003) / 1000003.0;
    switch (kind) {
    case FIELD_CONSTANT:
        return 273.15;
    case FIELD_MASKED:
        return (i / 37) % 3 == 0   ? field_fill
               : (i / 37) % 7 == 1 ? (double) NAN
                                   : field_waves(i, random);
    case FIELD_WIDE:
        if (i % 11 == 0)
            return i % 2 == 0 ? 0.0 : -0.0;
        return (i % 2 == 0 ? 1 : -1) * ldexp(1.0 + noise, (int) (field_random(random) % 250) - 125);
    case FIELD_OUTLIER:
        return i == n / 2 ? 3e38 : field_waves(i, random);
    case FIELD_GRID:
        return floor(field_waves(i, random) * 64) / 64;
    case FIELD_TINY:
        return noise * 1e-40;
    default:
        return field_waves(i, random);
    }
}

static inline void
field_put(esdm_type type, double value, void *to)
{
    double most = type == ESDM_TYPE_INT8    ? 127
                  : type == ESDM_TYPE_UINT8 ? 255
                  : type == ESDM_TYPE_INT16 ? 32767
                                            : 65535;
    float single = (float) value;
    int64_t whole = isfinite(value) ? (int64_t) fmod(value, most) : 7;
    bool is_unsigned = type >= ESDM_TYPE_UINT8 && type != ESDM_TYPE_INT64;
    if (is_unsigned && whole < 0)
        whole = -whole;
    if (type == ESDM_TYPE_FLOAT32)
        memcpy(to, &single, sizeof single);
    else if (type == ESDM_TYPE_FLOAT64)
        memcpy(to, &value, sizeof value);
    else
        memcpy(to, &whole, field_type_bytes(type)); /* little-endian */
}

static inline void
field_make(field_kind kind, esdm_type type, size_t n, uint8_t *data)
{
    uint64_t random = (uint64_t) kind * 977 + n;
    size_t bytes = field_type_bytes(type);
    for (size_t i = 0; i < n; i++) {
        if (kind != FIELD_BITS) {
            field_put(type, field_number(kind, i, n, &random), data + i * bytes);
            continue;
        }
        uint64_t bits =
            field_random(&random) ^ field_random(&random) << 31 ^ field_random(&random) << 50;
        memcpy(data + i * bytes, &bits, bytes);
    }
}

#endif
