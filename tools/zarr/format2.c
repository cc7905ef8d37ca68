/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Metadata of Zarr, version 2: .zarray, .zattrs and .zmetadata. */

#include "zarr/zarr.h"

static const char *
type_code(esdm_type type)
{
    static const char *const codes[] = {
        [ESDM_TYPE_INT8] = "|i1",  [ESDM_TYPE_CHAR] = "|S1",    [ESDM_TYPE_INT16] = "<i2",
        [ESDM_TYPE_INT32] = "<i4", [ESDM_TYPE_FLOAT32] = "<f4", [ESDM_TYPE_FLOAT64] = "<f8",
        [ESDM_TYPE_UINT8] = "|u1", [ESDM_TYPE_UINT16] = "<u2",  [ESDM_TYPE_UINT32] = "<u4",
        [ESDM_TYPE_INT64] = "<i8", [ESDM_TYPE_UINT64] = "<u8",  [ESDM_TYPE_STRING] = "|O"};
    return codes[type];
}

/* It stands for the attribute _FillValue; all chunks are stored. */
static void
put_fill(const cp_dataset *d, GString *json)
{
    const cp_attribute *fill = cp_attribute_find(d->attributes, "_FillValue");
    if (d->type->atomic == ESDM_TYPE_STRING) {
        const char *text = fill != NULL && fill->type == d->type && fill->count == 1
                               ? *(char *const *) fill->values
                               : NULL;
        zarr_text_json(text != NULL ? text : "", -1, json);
    } else if (fill == NULL || fill->count != 1 || fill->type != d->type) {
        g_string_append(json, "null");
    } else if (d->type->atomic == ESDM_TYPE_CHAR) {
        g_autofree char *text = g_base64_encode(fill->values, 1);
        g_string_append_printf(json, "\"%s\"", text);
    } else {
        zarr_value_json(d->type->atomic, fill->values, 0, json);
    }
}

void
zarr_array2_json(const cp_dataset *d, const uint64_t *chunk, const char *compressor, GString *json)
{
    uint64_t shape[ESDM_MAX_RANK];
    for (uint32_t i = 0; i < d->rank; i++)
        shape[i] = d->dimensions[i]->length;
    g_string_append(json, "{\"zarr_format\":2,\"shape\":");
    zarr_numbers_json(d->rank, shape, json);
    g_string_append(json, ",\"chunks\":");
    zarr_numbers_json(d->rank, chunk, json);
    g_string_append_printf(json,
                           ",\"dtype\":\"%s\",\"order\":\"C\",\"compressor\":%s,\"filters\":%s,"
                           "\"dimension_separator\":\".\",\"fill_value\":",
                           type_code(d->type->atomic), compressor,
                           d->type->atomic == ESDM_TYPE_STRING ? "[{\"id\":\"vlen-utf8\"}]"
                                                               : "null");
    put_fill(d, json);
    g_string_append_c(json, '}');
}

void
zarr_zattrs_json(const GPtrArray *attributes, const cp_dataset *dataset, GString *json)
{
    zarr_attributes_json(attributes, dataset, 2, json);
}

static void
put_key(const char *path, const char *file, const char **comma, GString *json)
{
    g_autofree char *key =
        path[0] == '/' ? g_strdup_printf("%s/%s", path + 1, file) : g_strdup(file);
    g_string_append(json, *comma);
    zarr_text_json(key, -1, json);
    g_string_append_c(json, ':');
    *comma = ",";
}

static void
put_nodes(const cp_group *group, const zarr_style *style, const char **comma, GString *json)
{
    put_key(group->path, ".zgroup", comma, json);
    g_string_append(json, "{\"zarr_format\":2}");
    put_key(group->path, ".zattrs", comma, json);
    zarr_zattrs_json(group->attributes, NULL, json);
    for (guint i = 0; i < group->datasets->len; i++) {
        const cp_dataset *d = g_ptr_array_index(group->datasets, i);
        if (!zarr_has_type(d->type))
            continue;
        put_key(d->path, ".zarray", comma, json);
        zarr_array_json(d, style, json);
        put_key(d->path, ".zattrs", comma, json);
        zarr_zattrs_json(d->attributes, d, json);
    }
    for (guint i = 0; i < group->groups->len; i++)
        put_nodes(g_ptr_array_index(group->groups, i), style, comma, json);
}

void
zarr_consolidated2_json(const cp_model *model, const zarr_style *style, GString *json)
{
    const char *comma = "";
    g_string_append(json, "{\"zarr_consolidated_format\":1,\"metadata\":{");
    put_nodes(model->root, style, &comma, json);
    g_string_append(json, "}}");
}
