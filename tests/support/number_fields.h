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
    FIELD_KINDS,
    /* These by field_make_hard() alone, out of the bits of the type. */
    FIELD_SPECIALS = FIELD_KINDS, /* NaN with payloads, infinities, zeros, the ends of the type */
    FIELD_DENORMALS,              /* of both signs; of integers -1, 0 and 1 */
    FIELD_FINITE,                 /* all finite numbers there are */
    FIELD_NARROW,                 /* neighbours of one number */
    FIELD_EDGES,                  /* numbers in question, and their neighbours */
    FIELD_ALL_KINDS
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

/* ---- hard ones ---------------------------------------------------------------------------- */

static inline bool
field_is_float(esdm_type type)
{
    return type == ESDM_TYPE_FLOAT32 || type == ESDM_TYPE_FLOAT64;
}

/* The bits of a number, low bytes first. */
static inline uint64_t
field_bits(esdm_type type, double value)
{
    uint64_t bits = 0;
    field_put(type, value, &bits);
    return bits;
}

/* Numbers of which some are asked for: waves, zeros of both signs, NaN of every kind (quiet or not,
 * any payload and sign), infinities, the least and the largest. */
static inline uint64_t
field_special(esdm_type type, size_t i, uint64_t *random)
{
    int mantissa = type == ESDM_TYPE_FLOAT32 ? 23 : 52;
    size_t bits = 8 * field_type_bytes(type);
    uint64_t any = field_random(random) | field_random(random) << 31;
    uint64_t sign = any & UINT64_C(1) << (bits - 1);
    uint64_t infinite = (UINT64_C(1) << (bits - 1)) - (UINT64_C(1) << mantissa);
    uint64_t all = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    uint64_t which = field_random(random) % 12;
    if (!field_is_float(
            type)) /* 0, -1 or the largest, the least of either kind, and beside these */
        return (which < 3   ? field_bits(type, field_waves(i, random))
                : which < 6 ? any % 3 - 1
                : which < 9 ? (all >> 1) - any % 3
                            : (all >> 1) + 1 + any % 3) &
               all;
    switch (which) {
    case 0:
        return sign;
    case 1:
        return sign | infinite;
    case 2:
        return sign | infinite | (any & ((UINT64_C(1) << mantissa) - 1)) | 1;
    case 3:
        return sign | 1;
    case 4:
        return sign | (infinite - 1);
    case 5:
        return sign | UINT64_C(1) << mantissa;
    default:
        return field_bits(type, field_waves(i, random));
    }
}

/* A number in question, or one of its neighbours. */
static inline uint64_t
field_edge(esdm_type type, uint64_t *random)
{
    static const double edges[] = {265.5, 290.25, 273, 280,  281,   0, -0.0, 0.05, 0.025,
                                   0.25,  -0.25,  1e3, -1e3, -1e10, 1, 0.5,  2};
    uint64_t bits =
        field_bits(type, edges[field_random(random) % (sizeof edges / sizeof edges[0])]);
    return bits + field_random(random) % 3 - 1;
}

/* As field_make(), for all kinds. */
static inline void
field_make_hard(field_kind kind, esdm_type type, size_t n, uint8_t *data)
{
    uint64_t random = (uint64_t) kind * 1009 + n;
    size_t bytes = field_type_bytes(type);
    int mantissa = type == ESDM_TYPE_FLOAT32 ? 23 : 52;
    uint64_t top = UINT64_C(1) << (8 * bytes - 1);
    if (kind < FIELD_KINDS) {
        field_make(kind, type, n, data);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t any =
            field_random(&random) ^ field_random(&random) << 31 ^ field_random(&random) << 50;
        uint64_t bits = any;
        if (kind == FIELD_SPECIALS)
            bits = field_special(type, i, &random);
        else if (kind == FIELD_DENORMALS && field_is_float(type))
            bits = any & (top | ((UINT64_C(1) << mantissa) - 1)) & (any >> 7 | top);
        else if (kind == FIELD_DENORMALS)
            bits = any % 3 - 1;
        else if (kind == FIELD_FINITE && field_is_float(type)) /* one bit of the exponent is 0 */
            bits &= ~(UINT64_C(1) << (mantissa + (int) (any >> 60) % 8));
        else if (kind == FIELD_NARROW)
            bits = field_bits(type, 280.0) + any % 5;
        else if (kind == FIELD_EDGES)
            bits = field_edge(type, &random);
        memcpy(data + i * bytes, &bits, bytes);
    }
}

#endif
