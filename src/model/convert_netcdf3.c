/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file
 * Conversions that netCDF-3 does in another way (ncx.m4 in netCDF-C): it compares in double, and
 * looks at what becomes of a number when it is read. What does not fit is left as it was by
 * netCDF-3; here it becomes what netCDF-4 makes of it.
 */

#include "model/convert_loops.h"

#define OUTSIDE_DOUBLE (((f64) x < -DBL_MAX) | ((f64) x > DBL_MAX))

CONVERTER(f32, u32, (x < 0.0f) | (x >= 0x1p32f), f32_to_64_bits(x))
CONVERTER(f32, f64, OUTSIDE_DOUBLE, x)

/* Reading: the limits themselves, which are no numbers of the type, become its largest ones. */
CONVERTER(f32, i64, BEYOND(-0x1p63f, 0x1p63f), x == 0x1p63f ? INT64_MAX : f32_to_64_bits(x))
CONVERTER(f64, i64, BEYOND(-0x1p63, 0x1p63), x == 0x1p63 ? INT64_MAX : f64_to_64_bits(x))
CONVERTER(f32, u64, BEYOND(0.0f, 0x1p64f), x == 0x1p64f ? UINT64_MAX : f32_to_u64_bits(x))
CONVERTER(f64, u64, BEYOND(0.0, 0x1p64), x == 0x1p64 ? UINT64_MAX : f64_to_u64_bits(x))
CONVERTER(f64, f32, BEYOND(-(f64) FLT_MAX, (f64) FLT_MAX),
          x > (f64) FLT_MAX    ? (f64) FLT_MAX
          : x < -(f64) FLT_MAX ? -(f64) FLT_MAX
                               : x)

static const struct {
    esdm_type from;
    esdm_type to;
    bool storing;
    bool loading;
    esdm__converter convert;
} special[] = {
    {ESDM_TYPE_FLOAT32, ESDM_TYPE_UINT32, true, true, f32_to_u32},
    {ESDM_TYPE_FLOAT32, ESDM_TYPE_FLOAT64, true, false, f32_to_f64},
    {ESDM_TYPE_FLOAT32, ESDM_TYPE_INT64, false, true, f32_to_i64},
    {ESDM_TYPE_FLOAT64, ESDM_TYPE_INT64, false, true, f64_to_i64},
    {ESDM_TYPE_FLOAT32, ESDM_TYPE_UINT64, false, true, f32_to_u64},
    {ESDM_TYPE_FLOAT64, ESDM_TYPE_UINT64, false, true, f64_to_u64},
    {ESDM_TYPE_FLOAT64, ESDM_TYPE_FLOAT32, false, true, f64_to_f32},
};

esdm__converter
esdm__converter_find_netcdf3(bool storing, esdm_type from, esdm_type to)
{
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++) {
        if (special[i].from == from && special[i].to == to &&
            (storing ? special[i].storing : special[i].loading))
            return special[i].convert;
    }
    return NULL;
}
