/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Types of elements and fill values of Zarr. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "refer/zarr.h"

#define TEXT_LENGTH_MAX 65536u

/* ---- types ---------------------------------------------------------------------------------- */

static bool
number(zarr_array *a, char kind, uint64_t bytes)
{
    static const struct {
        char kind;
        uint32_t bytes;
        esdm_type type;
    } types[] = {
        {'b', 1, ESDM_TYPE_INT8},    {'i', 1, ESDM_TYPE_INT8},    {'i', 2, ESDM_TYPE_INT16},
        {'i', 4, ESDM_TYPE_INT32},   {'i', 8, ESDM_TYPE_INT64},   {'u', 1, ESDM_TYPE_UINT8},
        {'u', 2, ESDM_TYPE_UINT16},  {'u', 4, ESDM_TYPE_UINT32},  {'u', 8, ESDM_TYPE_UINT64},
        {'f', 4, ESDM_TYPE_FLOAT32}, {'f', 8, ESDM_TYPE_FLOAT64},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(types); i++) {
        if (types[i].kind != kind || types[i].bytes != bytes)
            continue;
        a->kind = ZARR_NUMBER;
        a->type = types[i].type;
        a->element_bytes = types[i].bytes;
        a->is_bool = kind == 'b';
        return true;
    }
    return false;
}

static bool
text(zarr_array *a, zarr_kind kind, uint64_t length, char why[200])
{
    if (length == 0 || length > TEXT_LENGTH_MAX)
        return zarr_fail(why, "its texts have %" G_GUINT64_FORMAT " characters", (guint64) length);
    a->kind = length == 1 && kind == ZARR_BYTES ? ZARR_NUMBER : kind;
    a->type = kind == ZARR_BYTES ? ESDM_TYPE_CHAR : ESDM_TYPE_STRING;
    a->element_bytes = kind == ZARR_BYTES ? 1 : (uint32_t) (4 * length);
    a->length = (uint32_t) length;
    return true;
}

static bool
text_of_any_length(zarr_array *a)
{
    a->kind = ZARR_TEXT;
    a->type = ESDM_TYPE_STRING;
    a->element_bytes = 1;
    return true;
}

bool
zarr_parse_type2(const json_t *dtype, zarr_array *a, char why[200])
{
    const char *name = zarr_json_text(dtype);
    if (name == NULL)
        return zarr_fail(why, "its elements are structures, which NetCDF's readers do not know");
    if (strlen(name) < 2 || strchr("<>|", name[0]) == NULL)
        return zarr_fail(why, "its type '%.40s' is unknown", name);
    char *end = NULL;
    uint64_t bytes = g_ascii_strtoull(name + 2, &end, 10);
    a->big_endian = name[0] == '>';
    if (strcmp(name + 1, "O") == 0)
        return text_of_any_length(a);
    if (!g_ascii_isdigit(name[2]) || *end != '\0')
        return zarr_fail(why, "elements of type '%.40s' have no meaning in NetCDF", name);
    if (name[1] == 'S')
        return text(a, ZARR_BYTES, bytes, why);
    if (name[1] == 'U')
        return text(a, ZARR_UTF32, bytes, why);
    return number(a, name[1], bytes) ||
           zarr_fail(why, "elements of type '%.40s' have no meaning in NetCDF", name);
}

bool
zarr_parse_type3(const json_t *data_type, zarr_array *a, char why[200])
{
    static const struct {
        const char *name;
        char kind;
        uint32_t bytes;
    } types[] = {
        {"bool", 'b', 1},   {"int8", 'i', 1},    {"int16", 'i', 2},   {"int32", 'i', 4},
        {"int64", 'i', 8},  {"uint8", 'u', 1},   {"uint16", 'u', 2},  {"uint32", 'u', 4},
        {"uint64", 'u', 8}, {"float32", 'f', 4}, {"float64", 'f', 8},
    };
    const json_t *of = json_is_object(data_type) ? json_object_get(data_type, "name") : data_type;
    const json_t *configuration = json_object_get(data_type, "configuration");
    const char *name = zarr_json_text(of);
    if (name == NULL)
        return zarr_fail(why, "it does not say of what type its elements are");
    for (size_t i = 0; i < G_N_ELEMENTS(types); i++) {
        if (strcmp(name, types[i].name) == 0)
            return number(a, types[i].kind, types[i].bytes);
    }
    json_int_t bytes = json_integer_value(json_object_get(configuration, "length_bytes"));
    if (strcmp(name, "string") == 0 || strcmp(name, "variable_length_utf8") == 0)
        return text_of_any_length(a);
    if (strcmp(name, "null_terminated_bytes") == 0 && bytes > 0)
        return text(a, ZARR_BYTES, (uint64_t) bytes, why);
    if (strcmp(name, "fixed_length_utf32") == 0 && bytes > 0 && bytes % 4 == 0)
        return text(a, ZARR_UTF32, (uint64_t) bytes / 4, why);
    return zarr_fail(why, "elements of type '%.40s' have no meaning in NetCDF", name);
}

/* ---- fill values ---------------------------------------------------------------------------- */

static bool
is_unsigned_type(esdm_type type)
{
    return type == ESDM_TYPE_UINT8 || type == ESDM_TYPE_UINT16 || type == ESDM_TYPE_UINT32 ||
           type == ESDM_TYPE_UINT64;
}

static bool
fill_integer(const json_t *fill, zarr_array *a, char why[200])
{
    int64_t value = json_is_true(fill) ? 1 : 0;
    bool is_unsigned = false;
    if (!json_is_boolean(fill) && !zarr_json_integer(fill, &value, &is_unsigned))
        return zarr_fail(why, "its fill value is no whole number");
    size_t bytes = a->element_bytes;
    bool positive = is_unsigned_type(a->type);
    unsigned bits = (unsigned) (8 * bytes) - (positive ? 0 : 1);
    int64_t most = bits >= 63 ? INT64_MAX : (INT64_C(1) << bits) - 1;
    int64_t least = positive ? 0 : -most - 1;
    if (is_unsigned ? a->type != ESDM_TYPE_UINT64 : value < least || value > most)
        return zarr_fail(why, "its fill value does not fit its type");
    for (size_t i = 0; i < bytes; i++) /* little-endian, as this machine is */
        a->fill[i] = (uint8_t) ((uint64_t) value >> (8 * i));
    a->has_fill = true;
    return true;
}

static bool
fill_real(const json_t *fill, zarr_array *a, char why[200])
{
    double value = 0;
    if (!zarr_json_real(fill, a->element_bytes, &value))
        return zarr_fail(why, "its fill value is no number");
    float single = (float) value;
    if (a->element_bytes == sizeof single)
        memcpy(a->fill, &single, sizeof single);
    else
        memcpy(a->fill, &value, sizeof value);
    a->has_fill = true;
    return true;
}

/* A text in base64, of which one character must stand for all. */
static bool
fill_characters(const json_t *fill, zarr_array *a, char why[200])
{
    const char *is = zarr_json_text(fill);
    gsize n = 0;
    if (json_is_integer(fill) && json_integer_value(fill) == 0)
        return true;
    if (is == NULL)
        return zarr_fail(why, "its fill value is no text");
    g_autofree guchar *bytes = g_base64_decode(is, &n);
    for (gsize i = 1; i < n; i++) {
        if (bytes[i] != bytes[0])
            return zarr_fail(why, "its fill value is a text that no character stands for");
    }
    a->has_fill = n > 0;
    a->fill[0] = n > 0 ? bytes[0] : 0;
    return true;
}

bool
zarr_parse_fill(const json_t *fill, zarr_array *a, char why[200])
{
    if (fill == NULL || json_is_null(fill))
        return true;
    if (a->type == ESDM_TYPE_STRING) {
        const char *is = zarr_json_text(fill);
        g_free(a->fill_text);
        a->fill_text = g_strdup(is != NULL ? is : "");
        return true;
    }
    if (a->type == ESDM_TYPE_CHAR)
        return fill_characters(fill, a, why);
    if (a->type == ESDM_TYPE_FLOAT32 || a->type == ESDM_TYPE_FLOAT64)
        return fill_real(fill, a, why);
    return fill_integer(fill, a, why);
}
