/* SPDX-License-Identifier: LGPL-3.0-or-later */
/** @file The table of atomic types: sizes, names, default fill values (NC_FILL_* of netcdf.h). */

#include "model/copy.h"

#include <string.h>

typedef struct type_row {
    const char *name;
    size_t bytes;
    bool numeric;
    const void *fill;
} type_row;

static const int8_t fill_int8 = -127;
static const char fill_char = 0;
static const int16_t fill_int16 = -32767;
static const int32_t fill_int32 = -2147483647;
static const float fill_float32 = 9.9692099683868690e+36f;
static const double fill_float64 = 9.9692099683868690e+36;
static const uint8_t fill_uint8 = 255;
static const uint16_t fill_uint16 = 65535;
static const uint32_t fill_uint32 = 4294967295u;
static const int64_t fill_int64 = -9223372036854775806;
static const uint64_t fill_uint64 = 18446744073709551614u;
static const char *const fill_string = "";

static const type_row rows[] = {
    [ESDM_TYPE_INT8] = {"int8", 1, true, &fill_int8},
    [ESDM_TYPE_CHAR] = {"char", 1, false, &fill_char},
    [ESDM_TYPE_INT16] = {"int16", 2, true, &fill_int16},
    [ESDM_TYPE_INT32] = {"int32", 4, true, &fill_int32},
    [ESDM_TYPE_FLOAT32] = {"float32", 4, true, &fill_float32},
    [ESDM_TYPE_FLOAT64] = {"float64", 8, true, &fill_float64},
    [ESDM_TYPE_UINT8] = {"uint8", 1, true, &fill_uint8},
    [ESDM_TYPE_UINT16] = {"uint16", 2, true, &fill_uint16},
    [ESDM_TYPE_UINT32] = {"uint32", 4, true, &fill_uint32},
    [ESDM_TYPE_INT64] = {"int64", 8, true, &fill_int64},
    [ESDM_TYPE_UINT64] = {"uint64", 8, true, &fill_uint64},
    [ESDM_TYPE_STRING] = {"string", sizeof(char *), false, &fill_string},
};

#define ROW_COUNT ((esdm_type) (sizeof rows / sizeof rows[0]))

static const type_row *
find_row(esdm_type type)
{
    return type > ESDM_TYPE_NONE && type < ROW_COUNT ? &rows[type] : NULL;
}

size_t
esdm_type_size(esdm_type type)
{
    const type_row *row = find_row(type);
    return row != NULL ? row->bytes : 0;
}

const char *
esdm_type_name(esdm_type type)
{
    const type_row *row = find_row(type);
    return row != NULL ? row->name : NULL;
}

const void *
esdm_type_default_fill(esdm_type type)
{
    const type_row *row = find_row(type);
    return row != NULL ? row->fill : NULL;
}

bool
esdm__type_is_numeric(esdm_type type)
{
    const type_row *row = find_row(type);
    return row != NULL && row->numeric;
}

bool
esdm__type_converts(esdm_type from, esdm_type to)
{
    if (from == to)
        return find_row(from) != NULL;
    return esdm__type_is_numeric(from) && esdm__type_is_numeric(to);
}

esdm_type
esdm__type_from_name(const char *name)
{
    for (esdm_type type = 1; type < ROW_COUNT; type++) {
        if (strcmp(rows[type].name, name) == 0)
            return type;
    }
    return ESDM_TYPE_NONE;
}
