/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "codec/limits.h"

#include <math.h>
#include <string.h>

#include "esdm/types.h"

/* More than what the bound and the difference lose by rounding. */
#define CAREFUL (1 + 0x1p-20)

#define DEFINE_KEPT(name, number_type, wide)                                                       \
    static bool name(const esdm__limits *limits, const void *raw, const void *decoded, size_t n)   \
    {                                                                                              \
        wide low = (wide) limits->low;                                                             \
        wide high = (wide) limits->high;                                                           \
        int left = 0;                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            number_type before;                                                                    \
            number_type after;                                                                     \
            memcpy(&before, (const char *) raw + i * sizeof before, sizeof before);                \
            memcpy(&after, (const char *) decoded + i * sizeof after, sizeof after);               \
            wide x = (wide) before;                                                                \
            wide y = (wide) after;                                                                 \
            left |= ((x < low) & (y >= low)) | ((x > high) & (y <= high)) |                        \
                    ((x >= low) & (x <= high) & ((y < low) | (y > high)));                         \
        }                                                                                          \
        return left == 0;                                                                          \
    }

DEFINE_KEPT(kept_f32, float, float)
DEFINE_KEPT(kept_f64, double, double)
DEFINE_KEPT(kept_i8, int8_t, double)
DEFINE_KEPT(kept_i16, int16_t, double)
DEFINE_KEPT(kept_i32, int32_t, double)
DEFINE_KEPT(kept_i64, int64_t, long double)
DEFINE_KEPT(kept_u8, uint8_t, double)
DEFINE_KEPT(kept_u16, uint16_t, double)
DEFINE_KEPT(kept_u32, uint32_t, double)
DEFINE_KEPT(kept_u64, uint64_t, long double)

/* Whether the highest bits are equal. */
#define DEFINE_SIGNS(name, number_type)                                                            \
    static bool name(const void *raw, const void *decoded, size_t n)                               \
    {                                                                                              \
        number_type changed = 0;                                                                   \
        for (size_t i = 0; i < n; i++) {                                                           \
            number_type before;                                                                    \
            number_type after;                                                                     \
            memcpy(&before, (const char *) raw + i * sizeof before, sizeof before);                \
            memcpy(&after, (const char *) decoded + i * sizeof after, sizeof after);               \
            changed = (number_type) (changed | (before ^ after));                                  \
        }                                                                                          \
        return changed >> (sizeof changed * 8 - 1) == 0;                                           \
    }

DEFINE_SIGNS(signs_8, uint8_t)
DEFINE_SIGNS(signs_16, uint16_t)
DEFINE_SIGNS(signs_32, uint32_t)
DEFINE_SIGNS(signs_64, uint64_t)

static bool
natural_kept(const esdm__limits *limits, int32_t type, const void *raw, const void *decoded,
             size_t n)
{
    switch (type) {
    case ESDM_TYPE_INT8:
        return signs_8(raw, decoded, n) && kept_u8(limits, raw, decoded, n);
    case ESDM_TYPE_INT16:
        return signs_16(raw, decoded, n) && kept_u16(limits, raw, decoded, n);
    case ESDM_TYPE_INT32:
        return signs_32(raw, decoded, n) && kept_u32(limits, raw, decoded, n);
    default:
        return signs_64(raw, decoded, n) && kept_u64(limits, raw, decoded, n);
    }
}

bool
esdm__limits_kept(const esdm__limits *limits, int32_t type, const void *raw, const void *decoded,
                  size_t n)
{
    static bool (*const kept[])(const esdm__limits *, const void *, const void *, size_t) = {
        [ESDM_TYPE_INT8] = kept_i8,     [ESDM_TYPE_INT16] = kept_i16,
        [ESDM_TYPE_INT32] = kept_i32,   [ESDM_TYPE_INT64] = kept_i64,
        [ESDM_TYPE_UINT8] = kept_u8,    [ESDM_TYPE_UINT16] = kept_u16,
        [ESDM_TYPE_UINT32] = kept_u32,  [ESDM_TYPE_UINT64] = kept_u64,
        [ESDM_TYPE_FLOAT32] = kept_f32, [ESDM_TYPE_FLOAT64] = kept_f64,
    };
    return limits->natural ? natural_kept(limits, type, raw, decoded, n)
                           : kept[type](limits, raw, decoded, n);
}

bool
esdm__limits_any(const esdm__limits *limits)
{
    return limits->natural || isfinite(limits->low) || isfinite(limits->high);
}

/* What a number near `limit` may be off by. */
static double
reach(const esdm_codec_accuracy *a, double limit)
{
    double bound = (double) INFINITY;
    if (a->relative < (double) INFINITY)
        bound = fmax(a->relative * fabs(limit), a->finest);
    return fmin(bound, a->absolute) * CAREFUL;
}

void
esdm__limits_spare(const esdm__limits *limits, esdm_codec_accuracy *a)
{
    const double low = (double) limits->low;
    const double high = (double) limits->high;
    if (isfinite(low)) /* of natural numbers at least 0 */
        a->exact_below = fmax(a->exact_below, low + reach(a, low));
    if (isfinite(high))
        a->exact_above = fmin(a->exact_above, high - reach(a, high));
}
