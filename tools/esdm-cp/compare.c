/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Compares what was copied with what was read: structure and attributes. */

#include "esdm-cp/esdm-cp.h"

#include <string.h>

/* A difference is reported as damage: the copy is not what was read. */
static esdm_status differs(esdm_error *err, const char *format, ...) G_GNUC_PRINTF(2, 3);

static esdm_status
differs(esdm_error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    return tool_error_set(err, ESDM_ECORRUPT, "the copy differs: %s", text);
}

/* ---- attributes --------------------------------------------------------------------------- */

static esdm_status
compare_attribute(const char *owner, const cp_attribute *a, const cp_attribute *b, esdm_error *err)
{
    uint64_t index = 0;
    if (!g_str_equal(a->name, b->name))
        return differs(err, "attribute %s:%s became %s:%s", owner, a->name, owner, b->name);
    if (!cp_type_equal(a->type, b->type))
        return differs(err, "attribute %s:%s was %s and is %s", owner, a->name,
                       cp_type_name(a->type), cp_type_name(b->type));
    if (a->count != b->count)
        return differs(
            err, "attribute %s:%s had %" G_GUINT64_FORMAT " values and has %" G_GUINT64_FORMAT,
            owner, a->name, (guint64) a->count, (guint64) b->count);
    if (!cp_values_equal(a->type, b->type, a->count, a->values, b->values, &index))
        return differs(err, "value %" G_GUINT64_FORMAT " of attribute %s:%s", (guint64) index,
                       owner, a->name);
    return ESDM_OK;
}

/* A fill value that was not an attribute becomes one in a NetCDF file: not a difference. */
static esdm_status
compare_attributes(const char *owner, const GPtrArray *a, const GPtrArray *b, bool new_fill,
                   esdm_error *err)
{
    guint j = 0;
    for (guint i = 0; i < a->len; i++, j++) {
        while (new_fill && j < b->len &&
               g_str_equal(((cp_attribute *) g_ptr_array_index(b, j))->name, "_FillValue"))
            j++;
        const cp_attribute *attribute = g_ptr_array_index(a, i);
        if (j >= b->len)
            return differs(err, "attribute %s:%s is missing", owner, attribute->name);
        esdm_status status = compare_attribute(owner, attribute, g_ptr_array_index(b, j), err);
        if (status != ESDM_OK)
            return status;
    }
    while (new_fill && j < b->len &&
           g_str_equal(((cp_attribute *) g_ptr_array_index(b, j))->name, "_FillValue"))
        j++;
    if (j < b->len)
        return differs(err, "%s has an attribute too many: %s", owner,
                       ((cp_attribute *) g_ptr_array_index(b, j))->name);
    return ESDM_OK;
}

/* ---- datasets and groups ------------------------------------------------------------------ */

static esdm_status
compare_dataset(const cp_dataset *a, const cp_dataset *b, esdm_error *err)
{
    if (!g_str_equal(a->path, b->path))
        return differs(err, "dataset %s became %s", a->path, b->path);
    if (!cp_type_equal(a->type, b->type))
        return differs(err, "dataset %s was %s and is %s", a->path, cp_type_name(a->type),
                       cp_type_name(b->type));
    if (a->rank != b->rank)
        return differs(err, "dataset %s had %u dimensions and has %u", a->path, a->rank, b->rank);
    for (uint32_t i = 0; i < a->rank; i++) {
        if (!g_str_equal(a->dimensions[i]->name, b->dimensions[i]->name))
            return differs(err, "dimension %u of dataset %s was %s and is %s", i, a->path,
                           a->dimensions[i]->name, b->dimensions[i]->name);
    }
    bool new_fill = a->fill != NULL && cp_attribute_find(a->attributes, "_FillValue") == NULL;
    return compare_attributes(a->path, a->attributes, b->attributes, new_fill, err);
}

static esdm_status
compare_dimension(const cp_dimension *a, const cp_dimension *b, esdm_error *err)
{
    if (!g_str_equal(a->name, b->name))
        return differs(err, "dimension %s became %s", a->name, b->name);
    if (a->unlimited != b->unlimited)
        return differs(err, "dimension %s is %s", a->name, b->unlimited ? "unlimited" : "limited");
    /* A NetCDF file knows the length of an unlimited dimension from the data along it. */
    if (a->length != b->length && (a->filled || !a->unlimited))
        return differs(err,
                       "dimension %s had length %" G_GUINT64_FORMAT " and has %" G_GUINT64_FORMAT,
                       a->name, (guint64) a->length, (guint64) b->length);
    return ESDM_OK;
}

static esdm_status
compare_counts(const char *folder, const char *what, guint a, guint b, esdm_error *err)
{
    if (a == b)
        return ESDM_OK;
    return differs(err, "group %s/ had %u %s and has %u", folder, a, what, b);
}

static esdm_status
compare_type(const cp_type *a, const cp_type *b, esdm_error *err)
{
    if (!g_str_equal(a->name, b->name))
        return differs(err, "type %s became %s", a->path, b->path);
    return cp_type_equal(a, b) ? ESDM_OK : differs(err, "type %s is another one", a->path);
}

static esdm_status
compare_groups(const char *folder, const cp_group *a, const cp_group *b, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    if (!g_str_equal(a->name, b->name))
        return differs(err, "group %s became %s", a->name, b->name);
    if ((status = compare_counts(folder, "types", a->types->len, b->types->len, err)) != ESDM_OK ||
        (status = compare_counts(folder, "dimensions", a->dimensions->len, b->dimensions->len,
                                 err)) != ESDM_OK ||
        (status = compare_counts(folder, "datasets", a->datasets->len, b->datasets->len, err)) !=
            ESDM_OK ||
        (status = compare_counts(folder, "groups", a->groups->len, b->groups->len, err)) !=
            ESDM_OK ||
        (status = compare_attributes(folder, a->attributes, b->attributes, false, err)) != ESDM_OK)
        return status;
    for (guint i = 0; i < a->types->len && status == ESDM_OK; i++)
        status = compare_type(g_ptr_array_index(a->types, i), g_ptr_array_index(b->types, i), err);
    for (guint i = 0; i < a->dimensions->len && status == ESDM_OK; i++)
        status = compare_dimension(g_ptr_array_index(a->dimensions, i),
                                   g_ptr_array_index(b->dimensions, i), err);
    for (guint i = 0; i < a->datasets->len && status == ESDM_OK; i++)
        status = compare_dataset(g_ptr_array_index(a->datasets, i),
                                 g_ptr_array_index(b->datasets, i), err);
    for (guint i = 0; i < a->groups->len && status == ESDM_OK; i++) {
        const cp_group *child = g_ptr_array_index(a->groups, i);
        g_autofree char *path = g_strdup_printf("%s/%s", folder, child->name);
        status = compare_groups(path, child, g_ptr_array_index(b->groups, i), err);
    }
    return status;
}

esdm_status
cp_compare_models(const cp_model *a, const cp_model *b, esdm_error *err)
{
    return compare_groups("", a->root, b->root, err);
}
