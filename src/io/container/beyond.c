/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/container/beyond.h"

#include <math.h>
#include <string.h>

#include "io/container/accuracy.h"

#define DEFINE_HIDE(name, number_type, wide, missing)                                              \
    static void name(const esdm__beyond *beyond, void *numbers, size_t n)                          \
    {                                                                                              \
        const wide low = (wide) beyond->limits.low;                                                \
        const wide high = (wide) beyond->limits.high;                                              \
        const number_type instead = (number_type) (missing);                                       \
        number_type *x = numbers;                                                                  \
        for (size_t i = 0; i < n; i++)                                                             \
            x[i] = (((wide) x[i] < low) | ((wide) x[i] > high)) ? instead : x[i];                  \
    }

DEFINE_HIDE(hide_f32, float, float, NAN)
DEFINE_HIDE(hide_f64, double, double, (double) NAN)
DEFINE_HIDE(hide_i8, int8_t, double, beyond->instead.i)
DEFINE_HIDE(hide_i16, int16_t, double, beyond->instead.i)
DEFINE_HIDE(hide_i32, int32_t, double, beyond->instead.i)
DEFINE_HIDE(hide_i64, int64_t, long double, beyond->instead.i)
DEFINE_HIDE(hide_u8, uint8_t, double, beyond->instead.u)
DEFINE_HIDE(hide_u16, uint16_t, double, beyond->instead.u)
DEFINE_HIDE(hide_u32, uint32_t, double, beyond->instead.u)
DEFINE_HIDE(hide_u64, uint64_t, long double, beyond->instead.u)

static bool
is_beyond(const esdm__beyond *beyond, long double x)
{
    return x < beyond->limits.low || x > beyond->limits.high;
}

/* The least or the largest number of a type of whole numbers. */
static esdm__number
end_of(esdm_type type, bool largest)
{
    const unsigned bits = (unsigned) esdm_type_size(type) * 8;
    esdm__number end = {.u = largest ? UINT64_MAX >> (64 - bits) : 0};
    if (esdm__class_of(type) == ESDM__CLASS_SIGNED)
        end.i = largest ? INT64_MAX >> (64 - bits) : INT64_MIN >> (64 - bits);
    return end;
}

void
esdm__beyond_of(const esdm_dataset *dataset, esdm__missing *missing, esdm__beyond *ret)
{
    *ret = (esdm__beyond){.type = missing->type};
    if (missing->class == ESDM__CLASS_NONE)
        return;
    esdm__limits_of(dataset, &ret->limits);
    ret->any = isfinite(ret->limits.low) || isfinite(ret->limits.high);
    if (!ret->any || missing->class >= ESDM__CLASS_FLOAT)
        return;
    if (missing->count == 0) {
        const esdm__number least = end_of(missing->type, false);
        const esdm__number largest = end_of(missing->type, true);
        const bool above = is_beyond(ret, esdm__number_wide(missing->class, largest));
        ret->any = above || is_beyond(ret, esdm__number_wide(missing->class, least));
        if (!ret->any)
            return;
        missing->values[missing->count++] = above ? largest : least;
    }
    ret->instead = missing->values[0];
}

void
esdm__beyond_hide(const esdm__beyond *beyond, esdm_type type, void *numbers, size_t n)
{
    static void (*const of[])(const esdm__beyond *, void *, size_t) = {
        [ESDM_TYPE_INT8] = hide_i8,     [ESDM_TYPE_INT16] = hide_i16,
        [ESDM_TYPE_INT32] = hide_i32,   [ESDM_TYPE_INT64] = hide_i64,
        [ESDM_TYPE_UINT8] = hide_u8,    [ESDM_TYPE_UINT16] = hide_u16,
        [ESDM_TYPE_UINT32] = hide_u32,  [ESDM_TYPE_UINT64] = hide_u64,
        [ESDM_TYPE_FLOAT32] = hide_f32, [ESDM_TYPE_FLOAT64] = hide_f64,
    };
    if (beyond->any)
        of[type == ESDM_TYPE_FLOAT64 ? type : beyond->type](beyond, numbers, n);
}

bool
esdm__beyond_none(const esdm__beyond *beyond, const esdm__statistics *statistics)
{
    return !beyond->any || statistics->valid == 0 ||
           (!is_beyond(beyond, esdm__number_wide(statistics->class, statistics->min)) &&
            !is_beyond(beyond, esdm__number_wide(statistics->class, statistics->max)));
}
