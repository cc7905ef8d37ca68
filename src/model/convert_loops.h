/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MODEL_CONVERT_LOOPS_H
#define ESDM_MODEL_CONVERT_LOOPS_H

/**
 * @file
 * The loop that all conversions are made of, and the casts in it. For convert*.c alone.
 */

/* These loops repay what GCC's -O2 does not do: vectorise whatever can be. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3")
#endif

#include "model/convert.h"

#include <float.h>
#include <inttypes.h>
#include <string.h>

typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef float f32;
typedef double f64;

/* The value is selected before the cast, which is then always defined, and the loops vectorise. */
static inline i32
f32_to_32_bits(f32 x)
{
    return (i32) (((x >= -0x1p31f) & (x < 0x1p31f)) ? x : -0x1p31f);
}

static inline i32
f64_to_32_bits(f64 x)
{
    return (i32) (((x > -0x1.00000002p31) & (x < 0x1p31)) ? x : -0x1p31);
}

static inline i64
f32_to_64_bits(f32 x)
{
    return (i64) (((x >= -0x1p63f) & (x < 0x1p63f)) ? x : -0x1p63f);
}

static inline i64
f64_to_64_bits(f64 x)
{
    return (i64) (((x >= -0x1p63) & (x < 0x1p63)) ? x : -0x1p63);
}

/* With the upper half of the range, which stock netCDF-4 (unlike CDF-5) gets wrong. */
static inline u64
f32_to_u64_bits(f32 x)
{
    bool upper = x >= 0x1p63f;
    return (u64) f32_to_64_bits(upper ? x - 0x1p63f : x) ^ (u64) upper << 63;
}

static inline u64
f64_to_u64_bits(f64 x)
{
    bool upper = x >= 0x1p63;
    return (u64) f64_to_64_bits(upper ? x - 0x1p63 : x) ^ (u64) upper << 63;
}

/* A constant trip count lets compilers vectorise without run-time checks and remainders. */
#define BLOCK ((size_t) 64)

/* No alignment is promised; what lacks it goes through buffers that have it. */
static uint64_t
convert_misaligned(esdm__converter convert, const char *source, size_t source_bytes, char *target,
                   size_t target_bytes, size_t count)
{
    uint64_t from[BLOCK];
    uint64_t to[BLOCK];
    uint64_t outside = 0;
    for (size_t n; count > 0; count -= n) {
        n = count < BLOCK ? count : BLOCK;
        memcpy(from, source, n * source_bytes);
        memcpy(to, target, n * target_bytes); /* some converters keep some of it */
        outside += convert(from, to, n);
        memcpy(target, to, n * target_bytes);
        source += n * source_bytes;
        target += n * target_bytes;
    }
    return outside;
}

/* Types as macro arguments cannot stand in parentheses. NOLINTBEGIN(bugprone-macro-parentheses) */
#define CONVERTER(FROM, TO, OUTSIDE, VALUE)                                                        \
    static uint64_t FROM##_to_##TO(const void *source, void *target, size_t count)                 \
    {                                                                                              \
        if ((uintptr_t) source % _Alignof(FROM) != 0 || (uintptr_t) target % _Alignof(TO) != 0)    \
            return convert_misaligned(FROM##_to_##TO, source, sizeof(FROM), target, sizeof(TO),    \
                                      count);                                                      \
        const FROM *restrict s = source;                                                           \
        TO *restrict t = target;                                                                   \
        uint64_t outside = 0;                                                                      \
        for (; count >= BLOCK; count -= BLOCK, s += BLOCK, t += BLOCK) {                           \
            uint32_t here = 0;                                                                     \
            for (size_t i = 0; i < BLOCK; i++) {                                                   \
                const FROM x = s[i];                                                               \
                here += (uint32_t) (OUTSIDE);                                                      \
                t[i] = (TO) (VALUE);                                                               \
            }                                                                                      \
            outside += here;                                                                       \
        }                                                                                          \
        for (size_t i = 0; i < count; i++) {                                                       \
            const FROM x = s[i];                                                                   \
            outside += (uint64_t) (OUTSIDE);                                                       \
            t[i] = (TO) (VALUE);                                                                   \
        }                                                                                          \
        return outside;                                                                            \
    }

/* NOLINTEND(bugprone-macro-parentheses) */
#define NEVER             0
#define BELOW_0           (x < 0)
#define ABOVE(high)       (x > (high))
#define BEYOND(low, high) ((x < (low)) | (x > (high)))

#endif
