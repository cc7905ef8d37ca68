/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file
 * Conversions that netCDF-3 does in another way (ncx.m4 in netCDF-C): it compares in double, and
 * looks at what becomes of a number when it is read. A floating-point number that does not fit the
 * integer type in memory leaves its place there as it was. What does not fit otherwise becomes what
 * netCDF-4 makes of it.
 */

#include "model/convert_loops.h"

#define OUTSIDE_DOUBLE  (((f64) x < -DBL_MAX) | ((f64) x > DBL_MAX))
#define OUTSIDE_F32_U32 ((x < 0.0f) | (x >= 0x1p32f))

CONVERTER(f32, f64, OUTSIDE_DOUBLE, x)
CONVERTER(f64, f32, BEYOND(-(f64) FLT_MAX, (f64) FLT_MAX),
          x > (f64) FLT_MAX    ? (f64) FLT_MAX
          : x < -(f64) FLT_MAX ? -(f64) FLT_MAX
                               : x)
CONVERTER(f32, u32, OUTSIDE_F32_U32, f32_to_64_bits(x))

/* Reading. `t[i]` is the place of the element. */
#define READER(FROM, TO, OUTSIDE, VALUE)                                                           \
    CONVERTER(FROM, TO##_kept, OUTSIDE, (OUTSIDE) ? t[i] : (TO##_kept)(VALUE))

typedef i8 i8_kept;
typedef i16 i16_kept;
typedef i32 i32_kept;
typedef i64 i64_kept;
typedef u8 u8_kept;
typedef u16 u16_kept;
typedef u32 u32_kept;
typedef u64 u64_kept;

READER(f32, i8, BEYOND(-128.0f, 127.0f), f32_to_32_bits(x))
READER(f32, i16, BEYOND(-32768.0f, 32767.0f), f32_to_32_bits(x))
READER(f32, i32, BEYOND(-0x1p31f, 2147483520.0f), f32_to_32_bits(x))
READER(f32, u8, BEYOND(0.0f, 255.0f), f32_to_32_bits(x))
READER(f32, u16, BEYOND(0.0f, 65535.0f), f32_to_32_bits(x))
READER(f32, u32, OUTSIDE_F32_U32, f32_to_64_bits(x))

READER(f64, i8, BEYOND(-128.0, 127.0), f64_to_32_bits(x))
READER(f64, i16, BEYOND(-32768.0, 32767.0), f64_to_32_bits(x))
READER(f64, i32, BEYOND(-2147483648.0, 2147483647.0), f64_to_32_bits(x))
READER(f64, u8, BEYOND(0.0, 255.0), f64_to_32_bits(x))
READER(f64, u16, BEYOND(0.0, 65535.0), f64_to_32_bits(x))
READER(f64, u32, BEYOND(0.0, 4294967295.0), f64_to_64_bits(x))

/* The limits themselves, which are no numbers of the type, become its largest ones. */
READER(f32, i64, BEYOND(-0x1p63f, 0x1p63f), x == 0x1p63f ? INT64_MAX : f32_to_64_bits(x))
READER(f64, i64, BEYOND(-0x1p63, 0x1p63), x == 0x1p63 ? INT64_MAX : f64_to_64_bits(x))
READER(f32, u64, BEYOND(0.0f, 0x1p64f), x == 0x1p64f ? UINT64_MAX : f32_to_u64_bits(x))
READER(f64, u64, BEYOND(0.0, 0x1p64), x == 0x1p64 ? UINT64_MAX : f64_to_u64_bits(x))

static const struct {
    esdm_type from;
    esdm_type to;
    esdm__converter convert;
} stored[] = {{ESDM_TYPE_FLOAT32, ESDM_TYPE_UINT32, f32_to_u32},
              {ESDM_TYPE_FLOAT32, ESDM_TYPE_FLOAT64, f32_to_f64}};

#define ROW(f)                                                                                     \
    {                                                                                              \
        [ESDM_TYPE_INT8] = f##_to_i8_kept, [ESDM_TYPE_INT16] = f##_to_i16_kept,                    \
        [ESDM_TYPE_INT32] = f##_to_i32_kept, [ESDM_TYPE_INT64] = f##_to_i64_kept,                  \
        [ESDM_TYPE_UINT8] = f##_to_u8_kept, [ESDM_TYPE_UINT16] = f##_to_u16_kept,                  \
        [ESDM_TYPE_UINT32] = f##_to_u32_kept, [ESDM_TYPE_UINT64] = f##_to_u64_kept                 \
    }
static const esdm__converter integers_of_f32[ESDM_TYPE_STRING + 1] = ROW(f32);
static const esdm__converter integers_of_f64[ESDM_TYPE_STRING + 1] = ROW(f64);

static esdm__converter
find_stored(esdm_type from, esdm_type to)
{
    for (size_t i = 0; i < sizeof stored / sizeof stored[0]; i++)
        if (stored[i].from == from && stored[i].to == to)
            return stored[i].convert;
    return NULL;
}

esdm__converter
esdm__converter_find_netcdf3(bool storing, esdm_type from, esdm_type to)
{
    if (storing)
        return find_stored(from, to);
    if (from == ESDM_TYPE_FLOAT64)
        return to == ESDM_TYPE_FLOAT32 ? f64_to_f32 : integers_of_f64[to];
    return from == ESDM_TYPE_FLOAT32 ? integers_of_f32[to] : NULL;
}

bool
esdm__conversion_keeps(esdm_conversion rules, esdm_type from, esdm_type to)
{
    return rules == ESDM_CONVERSION_NETCDF3 &&
           ((from == ESDM_TYPE_FLOAT64 && integers_of_f64[to] != NULL) ||
            (from == ESDM_TYPE_FLOAT32 && integers_of_f32[to] != NULL));
}
