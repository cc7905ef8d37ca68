/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The content of zarr.json, and what format 2 has as well. Written here and not by Jansson,
 * which has no whole numbers above INT64_MAX: the fill value of uint64 is one. */

#include "zarr/zarr.h"

#include <math.h>
#include <string.h>

/* ---- texts and numbers -------------------------------------------------------------------- */

void
zarr_text_json(const char *text, gssize bytes, GString *json)
{
    g_autofree char *valid = g_utf8_make_valid(text, bytes);
    g_string_append_c(json, '"');
    for (const char *c = valid; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            g_string_append_c(json, '\\');
        if ((unsigned char) *c < 0x20)
            g_string_append_printf(json, "\\u%04x", (unsigned) *c);
        else
            g_string_append_c(json, *c);
    }
    g_string_append_c(json, '"');
}

/* So many digits that it reads back to the same double. What JSON does not have is a text. */
static void
put_real(double value, GString *json)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    if (!isfinite(value)) {
        g_string_append(json, isnan(value) ? "\"NaN\""
                              : value > 0  ? "\"Infinity\""
                                           : "\"-Infinity\"");
        return;
    }
    (void) g_ascii_formatd(text, sizeof text, "%.17g", value);
    g_string_append(json, text);
    if (text[strspn(text, "-0123456789")] == '\0')
        g_string_append(json, ".0");
}

#define ELEMENT(c_type, index) (((const c_type *) values)[index])

static void
put_text(const char *text, GString *json)
{
    zarr_text_json(text != NULL ? text : "", -1, json);
}

void
zarr_value_json(esdm_type type, const void *values, uint64_t index, GString *json)
{
    gint64 whole = 0;
    switch (type) {
    case ESDM_TYPE_FLOAT32:
        put_real((double) ELEMENT(float, index), json);
        return;
    case ESDM_TYPE_FLOAT64:
        put_real(ELEMENT(double, index), json);
        return;
    case ESDM_TYPE_STRING:
        put_text(ELEMENT(char *, index), json);
        return;
    case ESDM_TYPE_UINT64:
        g_string_append_printf(json, "%" G_GUINT64_FORMAT, (guint64) ELEMENT(uint64_t, index));
        return;
    case ESDM_TYPE_INT8:
        whole = ELEMENT(int8_t, index);
        break;
    case ESDM_TYPE_UINT8:
        whole = ELEMENT(uint8_t, index);
        break;
    case ESDM_TYPE_INT16:
        whole = ELEMENT(int16_t, index);
        break;
    case ESDM_TYPE_UINT16:
        whole = ELEMENT(uint16_t, index);
        break;
    case ESDM_TYPE_INT32:
        whole = ELEMENT(int32_t, index);
        break;
    case ESDM_TYPE_UINT32:
        whole = ELEMENT(uint32_t, index);
        break;
    default:
        whole = ELEMENT(int64_t, index);
        break;
    }
    g_string_append_printf(json, "%" G_GINT64_FORMAT, whole);
}

/* ---- attributes --------------------------------------------------------------------------- */

static void
put_base64(const void *bytes, size_t count, GString *json)
{
    g_autofree char *text = g_base64_encode(bytes, count);
    g_string_append_printf(json, "\"%s\"", text);
}

static void
put_characters(const cp_attribute *a, GString *json)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (uint64_t i = 0; i < a->count; i++) { /* as netCDF4-python gives it */
        if (((const char *) a->values)[i] != '\0')
            g_string_append_c(text, ((const char *) a->values)[i]);
    }
    zarr_text_json(text->str, (gssize) text->len, json);
}

/* One value stands for itself, several are a list. */
static void
put_attribute(const cp_attribute *a, GString *json)
{
    esdm_type type = a->type->atomic;
    if (type == ESDM_TYPE_CHAR) {
        put_characters(a, json);
        return;
    }
    if (a->count != 1)
        g_string_append_c(json, '[');
    for (uint64_t i = 0; i < a->count; i++) {
        if (i > 0)
            g_string_append_c(json, ',');
        zarr_value_json(type, a->values, i, json);
    }
    if (a->count != 1)
        g_string_append_c(json, ']');
}

/* The attribute _FillValue, as xarray keeps it in Zarr 3. */
static void
put_fill_attribute(const cp_attribute *a, GString *json)
{
    esdm_type type = a->type->atomic;
    double value = 0;
    if (type == ESDM_TYPE_CHAR) {
        put_base64(a->values, (size_t) a->count, json);
    } else if ((type == ESDM_TYPE_FLOAT32 || type == ESDM_TYPE_FLOAT64) && a->count == 1) {
        value = type == ESDM_TYPE_FLOAT32 ? (double) *(const float *) a->values
                                          : *(const double *) a->values;
        guint64 bits;
        memcpy(&bits, &value, sizeof bits);
        bits = GUINT64_TO_LE(bits);
        put_base64(&bits, sizeof bits, json);
    } else {
        put_attribute(a, json);
    }
}

/* Format 2 has names of dimensions among the attributes, and the fill value elsewhere. */
static void
put_dimension_names(const cp_dataset *d, GString *json)
{
    for (uint32_t i = 0; i < d->rank; i++) {
        g_string_append_c(json, i > 0 ? ',' : '[');
        zarr_text_json(d->dimensions[i]->name, -1, json);
    }
    g_string_append(json, d->rank > 0 ? "]" : "[]");
}

void
zarr_attributes_json(const GPtrArray *attributes, const cp_dataset *dataset, int format,
                     GString *json)
{
    const char *comma = "";
    g_string_append_c(json, '{');
    if (format == 2 && dataset != NULL) {
        g_string_append(json, "\"_ARRAY_DIMENSIONS\":");
        put_dimension_names(dataset, json);
        comma = ",";
    }
    for (guint i = 0; i < attributes->len; i++) {
        const cp_attribute *a = g_ptr_array_index(attributes, i);
        bool is_fill = dataset != NULL && g_str_equal(a->name, "_FillValue");
        if (a->type->path != NULL || (is_fill && format == 2))
            continue;
        g_string_append(json, comma);
        zarr_text_json(a->name, -1, json);
        g_string_append_c(json, ':');
        if (is_fill)
            put_fill_attribute(a, json);
        else
            put_attribute(a, json);
        comma = ",";
    }
    g_string_append_c(json, '}');
}

/* ---- arrays and groups -------------------------------------------------------------------- */

bool
zarr_has_type(const cp_type *type)
{
    return type->path == NULL && type->atomic <= ESDM_TYPE_STRING;
}

static void
put_type(const cp_dataset *d, const void *fill, const char *codecs, GString *json)
{
    if (d->type->atomic == ESDM_TYPE_STRING) {
        g_string_append(json, "\"data_type\":\"string\",\"fill_value\":");
        put_text(*(char *const *) fill, json);
        g_string_append(json, ",\"codecs\":[{\"name\":\"vlen-utf8\",\"configuration\":{}}");
    } else if (d->type->atomic == ESDM_TYPE_CHAR) {
        g_string_append(json, "\"data_type\":{\"name\":\"null_terminated_bytes\",\"configuration\":"
                              "{\"length_bytes\":1}},\"fill_value\":");
        put_base64(fill, 1, json);
        g_string_append(json, ",\"codecs\":[{\"name\":\"bytes\"}");
    } else {
        g_string_append_printf(
            json, "\"data_type\":\"%s\",\"fill_value\":", esdm_type_name(d->type->atomic));
        zarr_value_json(d->type->atomic, fill, 0, json);
        g_string_append(json, d->type->bytes == 1
                                  ? ",\"codecs\":[{\"name\":\"bytes\"}"
                                  : ",\"codecs\":[{\"name\":\"bytes\",\"configuration\":"
                                    "{\"endian\":\"little\"}}");
    }
    g_string_append_printf(json, "%s],", codecs);
}

void
zarr_numbers_json(uint32_t rank, const uint64_t *numbers, GString *json)
{
    g_string_append_c(json, '[');
    for (uint32_t i = 0; i < rank; i++)
        g_string_append_printf(json, "%s%" G_GUINT64_FORMAT, i > 0 ? "," : "",
                               (guint64) numbers[i]);
    g_string_append_c(json, ']');
}

void
zarr_array_json(const cp_dataset *d, const zarr_style *style, GString *json)
{
    uint64_t chunk[ESDM_MAX_RANK], shape[ESDM_MAX_RANK];
    zarr_chunk(d, style->most, chunk);
    if (style->format == 2) {
        zarr_array2_json(d, chunk, style->codecs, json);
        return;
    }
    for (uint32_t i = 0; i < d->rank; i++)
        shape[i] = d->dimensions[i]->length;
    g_string_append(json, "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":");
    zarr_numbers_json(d->rank, shape, json);
    g_string_append_c(json, ',');
    put_type(d, esdm_dataset_fill(d->from.dataset, NULL), style->codecs, json);
    g_string_append(json, "\"attributes\":");
    zarr_attributes_json(d->attributes, d, 3, json);
    g_string_append(json, ",\"chunk_grid\":{\"name\":\"regular\",\"configuration\":"
                          "{\"chunk_shape\":");
    zarr_numbers_json(d->rank, chunk, json);
    g_string_append(json, "}},\"chunk_key_encoding\":{\"name\":\"default\",\"configuration\":"
                          "{\"separator\":\"/\"}},\"dimension_names\":");
    put_dimension_names(d, json);
    g_string_append(json, ",\"storage_transformers\":[]}");
}

void
zarr_group_json(const cp_group *group, const char *consolidated, GString *json)
{
    g_string_append(json, "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":");
    zarr_attributes_json(group->attributes, NULL, 3, json);
    if (consolidated != NULL)
        g_string_append_printf(json, ",\"consolidated_metadata\":%s", consolidated);
    g_string_append_c(json, '}');
}

/* ---- consolidated metadata ---------------------------------------------------------------- */

static void
put_key(const char *path, const char **comma, GString *json)
{
    g_string_append(json, *comma);
    zarr_text_json(path + 1, -1, json);
    g_string_append_c(json, ':');
    *comma = ",";
}

static void
put_nodes(const cp_group *group, const zarr_style *style, const char **comma, GString *json)
{
    for (guint i = 0; i < group->datasets->len; i++) {
        const cp_dataset *d = g_ptr_array_index(group->datasets, i);
        if (!zarr_has_type(d->type))
            continue;
        put_key(d->path, comma, json);
        zarr_array_json(d, style, json);
    }
    for (guint i = 0; i < group->groups->len; i++) {
        const cp_group *child = g_ptr_array_index(group->groups, i);
        put_key(child->path, comma, json);
        zarr_group_json(child, NULL, json);
        put_nodes(child, style, comma, json);
    }
}

void
zarr_consolidated_json(const cp_model *model, const zarr_style *style, GString *json)
{
    const char *comma = "";
    if (style->format == 2) {
        zarr_consolidated2_json(model, style, json);
        return;
    }
    g_string_append(json, "{\"kind\":\"inline\",\"must_understand\":false,\"metadata\":{");
    put_nodes(model->root, style, &comma, json);
    g_string_append(json, "}}");
}
