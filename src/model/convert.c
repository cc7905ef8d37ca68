/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file
 * Conversion loops for every pair of numeric types.
 *
 * Values and counts equal those of stock netCDF-4 on x86-64 (nc4_convert_type in netCDF-C), whose
 * code leaves out-of-range casts to the processor: cvttss2si and cvttsd2si give the lowest integer
 * of their width. Types of up to 16 bits and int32 come from a 32-bit one, uint32 and the 64-bit
 * types from a 64-bit one. NaN is never counted, and limits round to the source type, so that
 * 2^63 as a float is not counted for int64 although it becomes INT64_MIN.
 */

#include "model/convert_loops.h"

#include "base/checked.h"
#include "base/error.h"
#include "esdm/container.h"
#include "model/copy.h"

CONVERTER(i8, i16, NEVER, x)
CONVERTER(i8, i32, NEVER, x)
CONVERTER(i8, i64, NEVER, x)
CONVERTER(i8, u8, BELOW_0, x)
CONVERTER(i8, u16, BELOW_0, x)
CONVERTER(i8, u32, BELOW_0, x)
CONVERTER(i8, u64, BELOW_0, x)
CONVERTER(i8, f32, NEVER, x)
CONVERTER(i8, f64, NEVER, x)

CONVERTER(u8, i8, ABOVE(INT8_MAX), x)
CONVERTER(u8, i16, NEVER, x)
CONVERTER(u8, i32, NEVER, x)
CONVERTER(u8, i64, NEVER, x)
CONVERTER(u8, u16, NEVER, x)
CONVERTER(u8, u32, NEVER, x)
CONVERTER(u8, u64, NEVER, x)
CONVERTER(u8, f32, NEVER, x)
CONVERTER(u8, f64, NEVER, x)

CONVERTER(i16, i8, BEYOND(INT8_MIN, INT8_MAX), x)
CONVERTER(i16, i32, NEVER, x)
CONVERTER(i16, i64, NEVER, x)
CONVERTER(i16, u8, BEYOND(0, UINT8_MAX), x)
CONVERTER(i16, u16, BELOW_0, x)
CONVERTER(i16, u32, BELOW_0, x)
CONVERTER(i16, u64, BELOW_0, x)
CONVERTER(i16, f32, NEVER, x)
CONVERTER(i16, f64, NEVER, x)

CONVERTER(u16, i8, ABOVE(INT8_MAX), x)
CONVERTER(u16, i16, ABOVE(INT16_MAX), x)
CONVERTER(u16, i32, NEVER, x)
CONVERTER(u16, i64, NEVER, x)
CONVERTER(u16, u8, ABOVE(UINT8_MAX), x)
CONVERTER(u16, u32, NEVER, x)
CONVERTER(u16, u64, NEVER, x)
CONVERTER(u16, f32, NEVER, x)
CONVERTER(u16, f64, NEVER, x)

CONVERTER(i32, i8, BEYOND(INT8_MIN, INT8_MAX), x)
CONVERTER(i32, i16, BEYOND(INT16_MIN, INT16_MAX), x)
CONVERTER(i32, i64, NEVER, x)
CONVERTER(i32, u8, BEYOND(0, UINT8_MAX), x)
CONVERTER(i32, u16, BEYOND(0, UINT16_MAX), x)
CONVERTER(i32, u32, BELOW_0, x)
CONVERTER(i32, u64, BELOW_0, x)
CONVERTER(i32, f32, NEVER, x)
CONVERTER(i32, f64, NEVER, x)

CONVERTER(u32, i8, ABOVE(INT8_MAX), x)
CONVERTER(u32, i16, ABOVE(INT16_MAX), x)
CONVERTER(u32, i32, ABOVE(INT32_MAX), x)
CONVERTER(u32, i64, NEVER, x)
CONVERTER(u32, u8, ABOVE(UINT8_MAX), x)
CONVERTER(u32, u16, ABOVE(UINT16_MAX), x)
CONVERTER(u32, u64, NEVER, x)
CONVERTER(u32, f32, NEVER, x)
CONVERTER(u32, f64, NEVER, x)

CONVERTER(i64, i8, BEYOND(INT8_MIN, INT8_MAX), x)
CONVERTER(i64, i16, BEYOND(INT16_MIN, INT16_MAX), x)
CONVERTER(i64, i32, BEYOND(INT32_MIN, INT32_MAX), x)
CONVERTER(i64, u8, BEYOND(0, UINT8_MAX), x)
CONVERTER(i64, u16, BEYOND(0, UINT16_MAX), x)
CONVERTER(i64, u32, BEYOND(0, UINT32_MAX), x)
CONVERTER(i64, u64, BELOW_0, x)
CONVERTER(i64, f32, NEVER, x)
CONVERTER(i64, f64, NEVER, x)

CONVERTER(u64, i8, ABOVE(INT8_MAX), x)
CONVERTER(u64, i16, ABOVE(INT16_MAX), x)
CONVERTER(u64, i32, ABOVE(INT32_MAX), x)
CONVERTER(u64, i64, ABOVE(INT64_MAX), x)
CONVERTER(u64, u8, ABOVE(UINT8_MAX), x)
CONVERTER(u64, u16, ABOVE(UINT16_MAX), x)
CONVERTER(u64, u32, ABOVE(UINT32_MAX), x)
CONVERTER(u64, f32, NEVER, x)
CONVERTER(u64, f64, NEVER, x)

/* The float limits are INT32_MAX and the like compared in double, or rounded to float where stock
 * compares in float (uint32 and the 64-bit types). 2147483520 is the float below 2^31. */
CONVERTER(f32, i8, BEYOND(-128.0f, 127.0f), f32_to_32_bits(x))
CONVERTER(f32, i16, BEYOND(-32768.0f, 32767.0f), f32_to_32_bits(x))
CONVERTER(f32, i32, BEYOND(-0x1p31f, 2147483520.0f), f32_to_32_bits(x))
CONVERTER(f32, i64, BEYOND(-0x1p63f, 0x1p63f), f32_to_64_bits(x))
CONVERTER(f32, u8, BEYOND(0.0f, 255.0f), f32_to_32_bits(x))
CONVERTER(f32, u16, BEYOND(0.0f, 65535.0f), f32_to_32_bits(x))
CONVERTER(f32, u32, BEYOND(0.0f, 0x1p32f), f32_to_64_bits(x))
CONVERTER(f32, u64, BEYOND(0.0f, 0x1p64f), f32_to_u64_bits(x))
CONVERTER(f32, f64, NEVER, x)

CONVERTER(f64, i8, BEYOND(-128.0, 127.0), f64_to_32_bits(x))
CONVERTER(f64, i16, BEYOND(-32768.0, 32767.0), f64_to_32_bits(x))
CONVERTER(f64, i32, BEYOND(-2147483648.0, 2147483647.0), f64_to_32_bits(x))
CONVERTER(f64, i64, BEYOND(-0x1p63, 0x1p63), f64_to_64_bits(x))
CONVERTER(f64, u8, BEYOND(0.0, 255.0), f64_to_32_bits(x))
CONVERTER(f64, u16, BEYOND(0.0, 65535.0), f64_to_32_bits(x))
CONVERTER(f64, u32, BEYOND(0.0, 4294967295.0), f64_to_64_bits(x))
CONVERTER(f64, u64, BEYOND(0.0, 0x1p64), f64_to_u64_bits(x))
CONVERTER(f64, f32, BEYOND(-(f64) FLT_MAX, (f64) FLT_MAX), x)

/* One row; the equal pair stays NULL: it copies bits. */
#define TO_I8(f)  [ESDM_TYPE_INT8] = f##_to_i8
#define TO_I16(f) [ESDM_TYPE_INT16] = f##_to_i16
#define TO_I32(f) [ESDM_TYPE_INT32] = f##_to_i32
#define TO_I64(f) [ESDM_TYPE_INT64] = f##_to_i64
#define TO_U8(f)  [ESDM_TYPE_UINT8] = f##_to_u8
#define TO_U16(f) [ESDM_TYPE_UINT16] = f##_to_u16
#define TO_U32(f) [ESDM_TYPE_UINT32] = f##_to_u32
#define TO_U64(f) [ESDM_TYPE_UINT64] = f##_to_u64
#define TO_F32(f) [ESDM_TYPE_FLOAT32] = f##_to_f32
#define TO_F64(f) [ESDM_TYPE_FLOAT64] = f##_to_f64

#define TYPE_COUNT (ESDM_TYPE_STRING + 1)

/* clang-format off */
static const esdm__converter converters[TYPE_COUNT][TYPE_COUNT] = {
    [ESDM_TYPE_INT8] = {TO_I16(i8), TO_I32(i8), TO_I64(i8), TO_U8(i8), TO_U16(i8), TO_U32(i8),
                        TO_U64(i8), TO_F32(i8), TO_F64(i8)},
    [ESDM_TYPE_UINT8] = {TO_I8(u8), TO_I16(u8), TO_I32(u8), TO_I64(u8), TO_U16(u8), TO_U32(u8),
                         TO_U64(u8), TO_F32(u8), TO_F64(u8)},
    [ESDM_TYPE_INT16] = {TO_I8(i16), TO_I32(i16), TO_I64(i16), TO_U8(i16), TO_U16(i16),
                         TO_U32(i16), TO_U64(i16), TO_F32(i16), TO_F64(i16)},
    [ESDM_TYPE_UINT16] = {TO_I8(u16), TO_I16(u16), TO_I32(u16), TO_I64(u16), TO_U8(u16),
                          TO_U32(u16), TO_U64(u16), TO_F32(u16), TO_F64(u16)},
    [ESDM_TYPE_INT32] = {TO_I8(i32), TO_I16(i32), TO_I64(i32), TO_U8(i32), TO_U16(i32),
                         TO_U32(i32), TO_U64(i32), TO_F32(i32), TO_F64(i32)},
    [ESDM_TYPE_UINT32] = {TO_I8(u32), TO_I16(u32), TO_I32(u32), TO_I64(u32), TO_U8(u32),
                          TO_U16(u32), TO_U64(u32), TO_F32(u32), TO_F64(u32)},
    [ESDM_TYPE_INT64] = {TO_I8(i64), TO_I16(i64), TO_I32(i64), TO_U8(i64), TO_U16(i64),
                         TO_U32(i64), TO_U64(i64), TO_F32(i64), TO_F64(i64)},
    [ESDM_TYPE_UINT64] = {TO_I8(u64), TO_I16(u64), TO_I32(u64), TO_I64(u64), TO_U8(u64),
                          TO_U16(u64), TO_U32(u64), TO_F32(u64), TO_F64(u64)},
    [ESDM_TYPE_FLOAT32] = {TO_I8(f32), TO_I16(f32), TO_I32(f32), TO_I64(f32), TO_U8(f32),
                           TO_U16(f32), TO_U32(f32), TO_U64(f32), TO_F64(f32)},
    [ESDM_TYPE_FLOAT64] = {TO_I8(f64), TO_I16(f64), TO_I32(f64), TO_I64(f64), TO_U8(f64),
                           TO_U16(f64), TO_U32(f64), TO_U64(f64), TO_F32(f64)},
};
/* clang-format on */

esdm__converter
esdm__converter_find(esdm_conversion rules, bool storing, esdm_type from, esdm_type to)
{
    if (from < 0 || from >= TYPE_COUNT || to < 0 || to >= TYPE_COUNT)
        return NULL;
    esdm__converter special = NULL;
    if (rules == ESDM_CONVERSION_NETCDF3)
        special = esdm__converter_find_netcdf3(storing, from, to);
    return special != NULL ? special : converters[from][to];
}

esdm_status
esdm_convert(esdm_type from, const void *source, esdm_type to, void *target, uint64_t count,
             uint64_t *ret_out_of_range, esdm_error *err)
{
    return esdm_convert_as(ESDM_CONVERSION_NETCDF4, true, from, source, to, target, count,
                           ret_out_of_range, err);
}

esdm_status
esdm_convert_as(esdm_conversion rules, bool storing, esdm_type from, const void *source,
                esdm_type to, void *target, uint64_t count, uint64_t *ret_out_of_range,
                esdm_error *err)
{
    uint64_t out_of_range = 0;
    size_t bytes;

    if (!esdm__type_converts(from, to)) {
        const char *from_name = esdm_type_name(from);
        const char *to_name = esdm_type_name(to);
        return esdm__error_set(err, ESDM_EINVAL, "type %s (%d) does not convert to %s (%d)",
                               from_name != NULL ? from_name : "unknown", (int) from,
                               to_name != NULL ? to_name : "unknown", (int) to);
    }
    if (!esdm__mul_size(count, 8, &bytes))
        return esdm__error_set(err, ESDM_EINVAL, "cannot convert %" PRIu64 " elements", count);
    if (count > 0 && (source == NULL || target == NULL))
        return esdm__error_set(err, ESDM_EINVAL, "source and target must not be NULL");
    if (from == to) {
        if (count > 0)
            memmove(target, source, count * esdm_type_size(from));
    } else {
        out_of_range = esdm__converter_find(rules, storing, from, to)(source, target, count);
    }
    if (ret_out_of_range != NULL)
        *ret_out_of_range = out_of_range;
    return ESDM_OK;
}
