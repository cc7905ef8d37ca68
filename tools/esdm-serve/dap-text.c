/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The structure (DDS) and the attributes (DAS) as texts. */

#include "esdm-serve/dap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_TEXTS 10000u /* that are looked at to learn the longest */

/* ---- DDS ---------------------------------------------------------------------------------- */

static void
put_array(const dap_set *set, const dap_variable *v, const dap_slice *slices, const char *indent,
          GString *text)
{
    g_string_append_printf(text, "%s%s %s", indent, v->type, v->name);
    for (uint32_t i = 0; i < v->rank; i++)
        g_string_append_printf(text, "[%s = %" G_GUINT64_FORMAT "]",
                               dap_dimension_name(set, v->dataset->dimensions[i]),
                               (guint64) slices[i].count);
    g_string_append(text, ";\n");
}

static void
put_grid(const dap_set *set, const dap_variable *v, GString *text)
{
    g_string_append(text, "    Grid {\n      ARRAY:\n");
    put_array(set, v, v->slices, "        ", text);
    g_string_append(text, "      MAPS:\n");
    for (uint32_t i = 0; i < v->rank; i++)
        put_array(set, v->maps[i], &v->map_slices[i], "        ", text);
    g_string_append_printf(text, "    } %s;\n", v->name);
}

/* Parts of a Grid. */
static void
put_structure(const dap_set *set, const dap_variable *v, GString *text)
{
    g_string_append(text, "    Structure {\n");
    if (v->array)
        put_array(set, v, v->slices, "        ", text);
    for (uint32_t i = 0; i < v->rank; i++) {
        if (v->map[i])
            put_array(set, v->maps[i], &v->map_slices[i], "        ", text);
    }
    g_string_append_printf(text, "    } %s;\n", v->name);
}

void
dap_put_dds(const dap_set *set, GString *text)
{
    g_autofree char *base = g_path_get_basename(set->model->end.name);
    g_autofree char *name = dap_escape(base, ".");
    g_string_append(text, "Dataset {\n");
    for (guint i = 0; i < set->variables->len; i++) {
        const dap_variable *v = g_ptr_array_index(set->variables, i);
        bool some = v->array;
        for (uint32_t k = 0; k < v->rank; k++)
            some |= v->map[k];
        if (v->whole && v->is_grid)
            put_grid(set, v, text);
        else if (v->whole)
            put_array(set, v, v->slices, "    ", text);
        else if (some)
            put_structure(set, v, text);
    }
    g_string_append_printf(text, "} %s;\n", name);
}

/* ---- DAS ---------------------------------------------------------------------------------- */

static void
put_quoted(const char *bytes, size_t count, GString *text)
{
    g_string_append_c(text, '"');
    for (size_t i = 0; i < count && bytes[i] != '\0'; i++) {
        if (bytes[i] == '"' || bytes[i] == '\\')
            g_string_append_c(text, '\\');
        g_string_append_c(text, bytes[i]);
    }
    g_string_append_c(text, '"');
}

/* So that whoever reads it as a double, too, finds the same number: a float32 with the nine digits
 * that it needs would be another double, and no _FillValue of float32 data. */
static void
put_real(double value, GString *text)
{
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    if (!isfinite(value)) { /* as C and Python read it */
        g_string_append(text, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
        return;
    }
    g_string_append(text, g_ascii_formatd(number, sizeof number, "%.17g", value));
}

static void
put_value(const cp_attribute *a, esdm_type type, uint64_t index, GString *text)
{
    const char *at = (const char *) a->values + index * a->type->bytes;
    if (type == ESDM_TYPE_STRING) {
        const char *one =
            *(char *const *) a->values != NULL ? ((char *const *) a->values)[index] : "";
        put_quoted(one != NULL ? one : "", one != NULL ? strlen(one) : 0, text);
        return;
    }
    double value = 0;
    (void) !esdm_convert(type, at, ESDM_TYPE_FLOAT64, &value, 1, NULL, NULL);
    put_real(value, text);
}

/* @param taken what its values are taken for */
static void
put_attribute(const char *prefix, const cp_attribute *a, esdm_type taken, GString *text)
{
    const char *type = a->type->path == NULL ? dap_type_name(taken) : NULL;
    if (type == NULL || (a->count == 0 && a->type->atomic != ESDM_TYPE_CHAR))
        return;
    g_autofree char *whole = g_strconcat(prefix, a->name, NULL);
    g_autofree char *name = dap_escape(g_strdelimit(whole, "/", '_'), ".");
    g_string_append_printf(text, "        %s %s ", type, name);
    if (a->type->atomic == ESDM_TYPE_CHAR)
        put_quoted(a->values, (size_t) a->count, text);
    for (uint64_t i = 0; i < a->count && a->type->atomic != ESDM_TYPE_CHAR; i++) {
        if (i > 0)
            g_string_append(text, ", ");
        put_value(a, taken, i, text);
    }
    g_string_append(text, ";\n");
}

/* The longest of the texts, in bytes; 0: they are too many to look at all, or cannot be read. */
static uint64_t
longest_text(const cp_dataset *d)
{
    uint64_t count = cp_dataset_elements(d), longest = 0, size[ESDM_MAX_RANK];
    esdm_dataspace space;
    for (uint32_t i = 0; i < d->rank; i++)
        size[i] = d->dimensions[i]->length;
    char **texts = count > 0 && count <= MOST_TEXTS ? calloc(count, sizeof *texts) : NULL;
    if (texts == NULL)
        return 0;
    bool good = esdm_dataspace_init(&space, d->rank, NULL, size, NULL) == ESDM_OK &&
                esdm_read(d->from.dataset, &space, ESDM_TYPE_STRING, texts, NULL, NULL) == ESDM_OK;
    for (uint64_t i = 0; i < count; i++) {
        longest = texts[i] != NULL ? MAX(longest, strlen(texts[i])) : longest;
        free(texts[i]);
    }
    free(texts);
    return good ? longest : 0;
}

/* How many characters a String has, and what their dimension is called: libnetcdf has 64 for each
 * where nothing is told. */
static void
put_string_length(const dap_set *set, const dap_variable *v, GString *text)
{
    const cp_dataset *d = v->dataset;
    const cp_dimension *last = d->rank > v->rank ? d->dimensions[d->rank - 1] : NULL;
    uint64_t length = last != NULL                          ? last->length
                      : d->type->atomic == ESDM_TYPE_STRING ? longest_text(d)
                                                            : 0;
    if (length == 0)
        return;
    g_string_append_printf(text, "        Int32 DODS.strlen %" G_GUINT64_FORMAT ";\n",
                           (guint64) length);
    if (last != NULL)
        g_string_append_printf(text, "        String DODS.dimName \"%s\";\n",
                               dap_dimension_name(set, last));
}

/* libnetcdf's client opens nothing where an unlimited dimension stands behind another one. */
static bool
always_comes_first(const dap_set *set, const cp_dimension *dimension)
{
    for (guint i = 0; i < set->variables->len; i++) {
        const dap_variable *v = g_ptr_array_index(set->variables, i);
        for (uint32_t k = 1; k < v->dataset->rank; k++)
            if (v->dataset->dimensions[k] == dimension)
                return false;
    }
    return true;
}

/* The one that clients are told of: the format knows one. NULL: none. */
static const cp_dimension *
unlimited_of(const dap_set *set)
{
    const cp_group *root = set->model->model->root;
    for (guint i = 0; i < root->dimensions->len; i++) {
        const cp_dimension *d = g_ptr_array_index(root->dimensions, i);
        if (d->unlimited && always_comes_first(set, d))
            return d;
    }
    return NULL;
}

/* Files that came over OPeNDAP have as attributes what another server told of them, and clients
 * take it for what this one tells: that it is not so any more (a new record dimension) is no reason
 * to open nothing. */
static bool
is_outdated(const dap_set *set, const cp_attribute *a)
{
    const cp_group *root = set->model->model->root;
    if (!g_str_equal(a->name, "DODS_EXTRA.Unlimited_Dimension"))
        return false;
    if (a->type->atomic != ESDM_TYPE_CHAR)
        return true;
    g_autofree char *said = g_strndup(a->values, (gsize) a->count);
    const cp_dimension *unlimited = unlimited_of(set);
    if (unlimited != NULL)
        return !g_str_equal(unlimited->name, said);
    for (guint i = 0; i < root->dimensions->len; i++) {
        const cp_dimension *d = g_ptr_array_index(root->dimensions, i);
        if (g_str_equal(d->name, said))
            return !always_comes_first(set, d);
    }
    return true;
}

static void
put_group(const dap_set *set, const cp_group *group, GString *text)
{
    g_autofree char *prefix =
        group->path[0] != '\0' ? g_strconcat(group->path + 1, "/", NULL) : g_strdup("");
    for (guint i = 0; i < group->attributes->len; i++) {
        const cp_attribute *a = g_ptr_array_index(group->attributes, i);
        if (!is_outdated(set, a))
            put_attribute(prefix, a, a->type->atomic, text);
    }
    for (guint i = 0; i < group->groups->len; i++)
        put_group(set, g_ptr_array_index(group->groups, i), text);
}

/* Those of the variable's type (a fill value) are taken for what its values are. */
static void
put_attributes_of(const dap_variable *v, GString *text)
{
    const esdm_type type = v->dataset->type->atomic;
    for (guint i = 0; i < v->dataset->attributes->len; i++) {
        const cp_attribute *a = g_ptr_array_index(v->dataset->attributes, i);
        if (v->taken == type || !g_str_equal(a->name, "_Unsigned"))
            put_attribute("", a, a->type->atomic == type ? v->taken : a->type->atomic, text);
    }
}

void
dap_put_das(const dap_set *set, GString *text)
{
    const cp_group *root = set->model->model->root;
    g_string_append(text, "Attributes {\n");
    for (guint i = 0; i < set->variables->len; i++) {
        const dap_variable *v = g_ptr_array_index(set->variables, i);
        g_string_append_printf(text, "    %s {\n", v->name);
        put_attributes_of(v, text);
        put_string_length(set, v, text);
        g_string_append(text, "    }\n");
    }
    g_string_append(text, "    NC_GLOBAL {\n");
    put_group(set, root, text);
    if (set->left_out->len > 0) {
        g_string_append(text, "        String esdm_left_out ");
        put_quoted(set->left_out->str, set->left_out->len, text);
        g_string_append(text, ";\n");
    }
    g_string_append(text, "    }\n");
    const cp_dimension *unlimited = unlimited_of(set);
    if (unlimited != NULL)
        g_string_append_printf(text,
                               "    DODS_EXTRA {\n        String Unlimited_Dimension \"%s\";\n"
                               "    }\n",
                               dap_dimension_name(set, unlimited));
    g_string_append(text, "}\n");
}
