/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Variables as OPeNDAP has them. */

#include "esdm-serve/dap.h"

#include <string.h>

#include "esdm/statistics.h"

#define LARGEST_EXACT 0x1p53     /* whole numbers up to here are all doubles */
#define MOST_READ     (1u << 20) /* values, to learn how large they are */

char *
dap_escape(const char *name, const char *also)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (const char *c = name; *c != '\0'; c++) {
        if (g_ascii_isalnum(*c) || strchr("_-+~!*", *c) != NULL || strchr(also, *c) != NULL)
            g_string_append_c(text, *c);
        else
            g_string_append_printf(text, "%%%02X", (unsigned) (unsigned char) *c);
    }
    return g_strdup(text->str);
}

const char *
dap_type_name(esdm_type type)
{
    static const char *const names[] = {
        [ESDM_TYPE_INT8] = "Int16",      [ESDM_TYPE_CHAR] = "String",
        [ESDM_TYPE_INT16] = "Int16",     [ESDM_TYPE_INT32] = "Int32",
        [ESDM_TYPE_FLOAT32] = "Float32", [ESDM_TYPE_FLOAT64] = "Float64",
        [ESDM_TYPE_UINT8] = "Int16",     [ESDM_TYPE_UINT16] = "Int32",
        [ESDM_TYPE_UINT32] = "Float64",  [ESDM_TYPE_INT64] = "Float64",
        [ESDM_TYPE_UINT64] = "Float64",  [ESDM_TYPE_STRING] = "String"};
    return (size_t) type < G_N_ELEMENTS(names) ? names[type] : NULL;
}

esdm_type
dap_taken(const cp_dataset *dataset)
{
    static const esdm_type pairs[][2] = {{ESDM_TYPE_INT8, ESDM_TYPE_UINT8},
                                         {ESDM_TYPE_INT16, ESDM_TYPE_UINT16},
                                         {ESDM_TYPE_INT32, ESDM_TYPE_UINT32},
                                         {ESDM_TYPE_INT64, ESDM_TYPE_UINT64}};
    const esdm_type type = dataset->type->atomic;
    g_autofree char *said = NULL;
    for (guint i = 0; i < dataset->attributes->len; i++) {
        const cp_attribute *a = g_ptr_array_index(dataset->attributes, i);
        if (g_str_equal(a->name, "_Unsigned") && a->type->atomic == ESDM_TYPE_CHAR)
            said = g_strndup(a->values, (gsize) a->count);
    }
    for (size_t i = 0; said != NULL && i < G_N_ELEMENTS(pairs); i++) {
        if (type == pairs[i][0] && g_ascii_strcasecmp(said, "true") == 0)
            return pairs[i][1];
        if (type == pairs[i][1] && g_ascii_strcasecmp(said, "false") == 0)
            return pairs[i][0];
    }
    return type;
}

/* Whether all values are numbers that Float64 has. Those of a large variable are not read for it.
 */
static bool
fits_real(const cp_dataset *d)
{
    esdm_statistics known;
    bool few = cp_dataset_elements(d) <= MOST_READ;
    if (d->type->atomic != ESDM_TYPE_INT64 && d->type->atomic != ESDM_TYPE_UINT64)
        return true;
    if (esdm_dataset_statistics(d->from.dataset, NULL, few, &known, NULL) != ESDM_OK)
        return false;
    if ((known.flags & ESDM_STATISTICS_EXACT) != 0 && known.valid == 0)
        return true;
    return known.flags != 0 && known.min >= -LARGEST_EXACT && known.max <= LARGEST_EXACT;
}

static void
free_variable(gpointer data)
{
    dap_variable *v = data;
    g_free(v->name);
    g_free(v);
}

char *
dap_path_name(const char *path)
{
    g_autofree char *name = g_strdup(path);
    return dap_escape(g_strdelimit(name, "/", '_'), "");
}

/* What others are called already gets one more '_'. */
static char *
unique_name(const GHashTable *others, const char *path)
{
    char *name = dap_path_name(path);
    while (g_hash_table_contains((GHashTable *) others, name)) {
        char *longer = g_strconcat(name, "_", NULL);
        g_free(name);
        name = longer;
    }
    return name;
}

/* Those of the root keep their names; those of groups may be called alike. */
static void
name_dimensions(dap_set *set, const cp_group *group, GHashTable *taken)
{
    for (guint i = 0; i < group->dimensions->len; i++) {
        cp_dimension *d = g_ptr_array_index(group->dimensions, i);
        g_autofree char *path =
            g_strdup_printf("%s%s%s", group->path[0] != '\0' ? group->path + 1 : "",
                            group->path[0] != '\0' ? "/" : "", d->name);
        char *name = unique_name(taken, path);
        g_hash_table_add(taken, name);
        g_hash_table_insert(set->dimensions, d, name);
    }
    for (guint i = 0; i < group->groups->len; i++)
        name_dimensions(set, g_ptr_array_index(group->groups, i), taken);
}

const char *
dap_dimension_name(const dap_set *set, const cp_dimension *dimension)
{
    return g_hash_table_lookup(set->dimensions, dimension);
}

static void
add_variable(dap_set *set, const cp_dataset *dataset, GHashTable *by_name)
{
    const esdm_type taken = dap_taken(dataset);
    const char *type = dataset->type->path == NULL ? dap_type_name(taken) : NULL;
    /* libnetcdf fails on all variables of a set where one has a dimension of length 0. */
    if (type == NULL || cp_dataset_elements(dataset) == 0 || !fits_real(dataset)) {
        g_string_append_printf(set->left_out, "%s%s", set->left_out->len > 0 ? " " : "",
                               dataset->path + 1);
        return;
    }
    dap_variable *v = g_new0(dap_variable, 1);
    v->dataset = dataset;
    v->name = unique_name(by_name, dataset->path + 1);
    g_hash_table_insert(by_name, v->name, v);
    v->type = type;
    v->taken = taken;
    v->rank = dataset->rank;
    if (dataset->type->atomic == ESDM_TYPE_CHAR && v->rank > 0)
        v->rank--;
    for (uint32_t i = 0; i < v->rank; i++)
        v->slices[i] = v->map_slices[i] =
            (dap_slice){.stride = 1, .count = dataset->dimensions[i]->length};
    g_ptr_array_add(set->variables, v);
}

/* The variable that gives the coordinates of a dimension: of its name, with this dimension alone.
 */
static const dap_variable *
coordinates(const GHashTable *by_name, const dap_set *set, const cp_dimension *dimension)
{
    const dap_variable *v =
        g_hash_table_lookup((GHashTable *) by_name, dap_dimension_name(set, dimension));
    return v != NULL && v->rank == 1 && v->dataset->rank == 1 &&
                   v->dataset->dimensions[0] == dimension
               ? v
               : NULL;
}

static void
find_maps(const GHashTable *by_name, const dap_set *set, dap_variable *v)
{
    bool complete = v->rank > 0 && v->rank == v->dataset->rank;
    for (uint32_t i = 0; i < v->rank && complete; i++) {
        v->maps[i] = coordinates(by_name, set, v->dataset->dimensions[i]);
        complete = v->maps[i] != NULL && v->maps[i] != v;
        for (uint32_t k = 0; k < i; k++) /* names are said once */
            complete &= v->maps[k] != v->maps[i];
    }
    v->is_grid = complete;
}

dap_set *
dap_set_new(const serve_model *model)
{
    dap_set *set = g_new0(dap_set, 1);
    set->model = model;
    set->variables = g_ptr_array_new_with_free_func(free_variable);
    set->left_out = g_string_new(NULL);
    set->dimensions = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    g_autoptr(GHashTable) taken = g_hash_table_new(g_str_hash, g_str_equal);
    name_dimensions(set, model->model->root, taken);
    g_autoptr(GHashTable) by_name = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < model->model->datasets->len; i++)
        add_variable(set, g_ptr_array_index(model->model->datasets, i), by_name);
    for (guint i = 0; i < set->variables->len; i++)
        find_maps(by_name, set, g_ptr_array_index(set->variables, i));
    return set;
}

void
dap_set_free(dap_set *set)
{
    if (set == NULL)
        return;
    g_ptr_array_unref(set->variables);
    g_string_free(set->left_out, true);
    g_hash_table_unref(set->dimensions);
    g_free(set);
}

GArray *
dap_parts(const dap_set *set)
{
    GArray *parts = g_array_new(false, false, sizeof(dap_part));
    for (guint i = 0; i < set->variables->len; i++) {
        const dap_variable *v = g_ptr_array_index(set->variables, i);
        if (v->whole || v->array) {
            const dap_part part = {.variable = v, .slices = v->slices};
            g_array_append_val(parts, part);
        }
        for (uint32_t k = 0; k < v->rank && v->is_grid; k++) {
            const dap_part part = {.variable = v->maps[k], .slices = &v->map_slices[k]};
            if (v->whole || v->map[k])
                g_array_append_val(parts, part);
        }
    }
    return parts;
}
