/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Results of a reduction as a container, with coordinates and attributes as CF has them. */

#include "esdm-reduce/output.h"

#include <math.h>
#include <string.h>

#include "common/common.h"
#include "esdm-reduce/variable.h"

/* CF's words for methods (CF 1.11, appendix E); of a count there is none. */
static const struct {
    esdm_reduction what;
    const char *method;
} methods[] = {{ESDM_REDUCE_SUM, "sum"},     {ESDM_REDUCE_MEAN, "mean"},
               {ESDM_REDUCE_MIN, "minimum"}, {ESDM_REDUCE_MAX, "maximum"},
               {ESDM_REDUCE_COUNT, NULL},    {ESDM_REDUCE_VARIANCE, "variance"}};

typedef struct store {
    const reduce_output *output;
    esdm_container *container;
    esdm_group *root;
    esdm_dataset *result;
    GString *coordinates; /* names of auxiliary ones that fit */
    esdm_error *err;
} store;

/* ---- attributes ---------------------------------------------------------------------------- */

/* The text of an attribute, to be freed; NULL: there is none. */
static char *
text_of(const esdm_attributes *list, const char *name)
{
    esdm_attribute a;
    if (!esdm_attribute_find(list, name, &a, NULL))
        return NULL;
    if (a.type == ESDM_TYPE_CHAR)
        return g_strndup(a.values, a.count);
    return a.type == ESDM_TYPE_STRING && a.count == 1 ? g_strdup(*(const char *const *) a.values)
                                                      : NULL;
}

static esdm_status
put_text(const store *s, esdm_attributes *list, const char *name, const char *text)
{
    return esdm_attribute_set(list, name, ESDM_TYPE_CHAR, strlen(text), text, s->err);
}

static bool
is_simple(esdm_type type)
{
    return type > ESDM_TYPE_NONE && type <= ESDM_TYPE_STRING;
}

/* What tells of stored numbers, of their accuracy, or which file it is, is not true of results. */
static bool
is_of_values(const char *name)
{
    static const char *const names[] = {
        "scale_factor", "add_offset",   "_FillValue",    "missing_value", "valid_range",
        "valid_min",    "valid_max",    "actual_range",  "_Unsigned",     "flag_values",
        "flag_masks",   "cell_methods", "flag_meanings", "coordinates",   "least_significant_digit",
    };
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return g_str_has_prefix(name, "esdm_") || g_str_has_prefix(name, "quantization") ||
           g_str_has_prefix(name, "_Quantize");
}

static esdm_status
copy_attributes(const store *s, const esdm_attributes *from, esdm_attributes *to, bool of_result)
{
    esdm_status status = ESDM_OK;
    esdm_attribute a;
    for (size_t i = 0; status == ESDM_OK && esdm_attribute_at(from, i, &a); i++)
        if (is_simple(a.type) && !g_str_has_prefix(a.name, "_NC") &&
            (of_result ? !is_of_values(a.name)
                       : strcmp(a.name, "_FillValue") != 0 && strcmp(a.name, "tracking_id") != 0 &&
                             !g_str_has_prefix(a.name, "esdm_")))
            status = esdm_attribute_set(to, a.name, a.type, a.count, a.values, s->err);
    return status;
}

static const char *
method_of(esdm_reduction what)
{
    for (size_t i = 0; i < G_N_ELEMENTS(methods); i++)
        if (methods[i].what == what)
            return methods[i].method;
    return NULL;
}

/* "area: mean" becomes "area: mean time: maximum"; what is weighted by areas is one of the area. */
static esdm_status
put_methods(const store *s)
{
    const reduce_output *o = s->output;
    g_autofree char *former = text_of(esdm_dataset_attributes(o->source), "cell_methods");
    const char *method = method_of(o->what);
    g_autoptr(GString) text = g_string_new(former);
    uint32_t reduced = 0;
    for (uint32_t d = 0; d < esdm_dataset_rank(o->source); d++)
        reduced += o->over[d];
    bool of_areas =
        o->weights != NULL && reduced <= 2 &&
        (g_str_has_prefix(o->weights, "area") || strcmp(o->weights, "great-circles") == 0);
    if (method != NULL && of_areas)
        g_string_append_printf(text, "%sarea:", text->len > 0 ? " " : "");
    for (uint32_t d = 0; method != NULL && !of_areas && d < esdm_dataset_rank(o->source); d++)
        if (o->over[d])
            g_string_append_printf(text, "%s%s:", text->len > 0 ? " " : "",
                                   esdm_dimension_name(esdm_dataset_dimension(o->source, d)));
    if (method != NULL && g_str_has_suffix(text->str, ":"))
        g_string_append_printf(text, " %s", method);
    return text->len > 0
               ? put_text(s, esdm_dataset_attributes(s->result), "cell_methods", text->str)
               : ESDM_OK;
}

/* Squares have squared units, a count has none and is not the quantity itself. */
static esdm_status
put_units(const store *s)
{
    esdm_attributes *list = esdm_dataset_attributes(s->result);
    if (s->output->what == ESDM_REDUCE_COUNT) {
        esdm_status status = esdm_attribute_find(list, "standard_name", NULL, NULL)
                                 ? esdm_attribute_remove(list, "standard_name", s->err)
                                 : ESDM_OK;
        return status == ESDM_OK ? put_text(s, list, "units", "1") : status;
    }
    g_autofree char *units = text_of(list, "units");
    if (s->output->what != ESDM_REDUCE_VARIANCE || units == NULL || strcmp(units, "1") == 0)
        return ESDM_OK;
    g_autofree char *squared = g_strdup_printf("(%s)^2", units);
    return put_text(s, list, "units", squared);
}

static esdm_status
put_history(const store *s)
{
    const reduce_output *o = s->output;
    esdm_container *from = esdm_group_container(esdm_dataset_group(o->source));
    esdm_attributes *list = esdm_group_attributes(s->root);
    g_autofree char *former = text_of(list, "history");
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *time = g_date_time_format(now, "%Y-%m-%dT%H:%M:%SZ");
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_printf(text, "%s: esdm-reduce %s %s %s --over ", time, o->operation,
                    esdm_container_name(from), esdm_dataset_name(o->source));
    for (uint32_t d = 0, n = 0; d < esdm_dataset_rank(o->source); d++)
        if (o->over[d])
            g_string_append_printf(text, "%s%s", n++ > 0 ? "," : "",
                                   esdm_dimension_name(esdm_dataset_dimension(o->source, d)));
    if (o->weights != NULL)
        g_string_append_printf(text, " --weights %s", o->weights);
    g_string_append_printf(text, " --to %s", o->name);
    if (former != NULL)
        g_string_append_printf(text, "\n%s", former);
    return put_text(s, list, "history", text->str);
}

/* ---- coordinates --------------------------------------------------------------------------- */

/* The new dimension for one of the source's container; NULL: it was reduced. */
static esdm_dimension *
dimension_for(const store *s, const esdm_dimension *of)
{
    return esdm_group_dimension_find(s->root, esdm_dimension_name(of));
}

static bool
fits(const store *s, const esdm_dataset *from, bool is_bounds)
{
    uint32_t rank = esdm_dataset_rank(from);
    for (uint32_t d = 0; d + (is_bounds ? 1 : 0) < rank; d++)
        if (dimension_for(s, esdm_dataset_dimension(from, d)) == NULL)
            return false;
    return esdm_dataset_type(from) < ESDM_TYPE_STRING && (rank > 0 || !is_bounds);
}

static esdm_status
copy_values(const store *s, esdm_dataset *from, esdm_dataset *to)
{
    uint64_t shape[ESDM_MAX_RANK];
    uint64_t count = 1;
    esdm_dataspace space;
    esdm_type type = esdm_dataset_type(from);
    uint32_t rank = esdm_dataset_rank(from);
    for (uint32_t d = 0; d < rank; d++) {
        shape[d] = esdm_dimension_length(esdm_dataset_dimension(from, d));
        if (__builtin_mul_overflow(count, shape[d], &count) || count > G_MAXSIZE / 16)
            return tool_error_set(s->err, ESDM_ENOMEM, "'%s' does not fit into memory",
                                  esdm_dataset_name(from));
    }
    esdm_status status = esdm_dataspace_init(&space, rank, NULL, shape, s->err);
    g_autofree void *values = g_try_malloc((gsize) count * esdm_type_size(type) + 1);
    if (status == ESDM_OK && values == NULL)
        status = tool_error_set(s->err, ESDM_ENOMEM, "'%s' does not fit into memory",
                                esdm_dataset_name(from));
    if (status == ESDM_OK)
        status = esdm_read(from, &space, type, values, NULL, s->err);
    return status == ESDM_OK && count > 0 ? esdm_write(to, &space, type, values, NULL, s->err)
                                          : status;
}

/* Copies a variable whose axes stayed, once; bounds have one axis more. */
static esdm_status
copy_variable(const store *s, esdm_dataset *from, bool is_bounds)
{
    esdm_dimension *axes[ESDM_MAX_RANK];
    esdm_dataset *to = NULL;
    esdm_status status = ESDM_OK;
    bool is_default = true;
    if (from == NULL || !fits(s, from, is_bounds) ||
        esdm_group_dataset_find(s->root, esdm_dataset_name(from)) != NULL)
        return ESDM_OK;
    for (uint32_t d = 0; d < esdm_dataset_rank(from) && status == ESDM_OK; d++) {
        const esdm_dimension *axis = esdm_dataset_dimension(from, d);
        axes[d] = dimension_for(s, axis);
        if (axes[d] == NULL)
            status = esdm_dimension_create(s->root, esdm_dimension_name(axis),
                                           esdm_dimension_length(axis), &axes[d], s->err);
    }
    if (status == ESDM_OK)
        status = esdm_dataset_create(s->root, esdm_dataset_name(from), esdm_dataset_type(from),
                                     esdm_dataset_rank(from), axes, &to, s->err);
    if (status == ESDM_OK)
        status =
            copy_attributes(s, esdm_dataset_attributes(from), esdm_dataset_attributes(to), false);
    const void *fill = esdm_dataset_fill(from, &is_default);
    if (status == ESDM_OK && !is_default)
        status = esdm_dataset_set_fill(to, fill, s->err);
    if (status == ESDM_OK && !is_default)
        status = esdm_attribute_set(esdm_dataset_attributes(to), "_FillValue",
                                    esdm_dataset_type(from), 1, fill, s->err);
    return status == ESDM_OK ? copy_values(s, from, to) : status;
}

static esdm_status
copy_coordinate(const store *s, esdm_dataset *from)
{
    esdm_status status = copy_variable(s, from, false);
    if (from == NULL || status != ESDM_OK)
        return status;
    static const char *const bounds[] = {"bounds", "climatology"};
    for (size_t i = 0; i < G_N_ELEMENTS(bounds) && status == ESDM_OK; i++) {
        g_autofree char *name = text_of(esdm_dataset_attributes(from), bounds[i]);
        if (name != NULL && fits(s, from, false))
            status = copy_variable(s, seen_from(s->output->source, name), true);
    }
    return status;
}

static esdm_status
copy_coordinates(store *s)
{
    const reduce_output *o = s->output;
    esdm_attributes *list = esdm_dataset_attributes(o->source);
    esdm_status status = ESDM_OK;
    for (uint32_t d = 0; d < esdm_dataset_rank(o->source) && status == ESDM_OK; d++) {
        const char *name = esdm_dimension_name(esdm_dataset_dimension(o->source, d));
        if (!o->over[d] && strcmp(name, esdm_dataset_name(o->source)) != 0)
            status = copy_coordinate(s, seen_from(s->output->source, name));
    }
    g_autofree char *text = text_of(list, "coordinates");
    g_auto(GStrv) names = g_strsplit(text != NULL ? text : "", " ", -1);
    for (char **name = names; *name != NULL && status == ESDM_OK; name++) {
        esdm_dataset *auxiliary = **name != '\0' ? seen_from(s->output->source, *name) : NULL;
        if (auxiliary == NULL || auxiliary == o->source || !fits(s, auxiliary, false))
            continue;
        status = copy_coordinate(s, auxiliary);
        g_string_append_printf(s->coordinates, "%s%s", s->coordinates->len > 0 ? " " : "", *name);
    }
    g_autofree char *mapping = text_of(list, "grid_mapping");
    if (mapping != NULL && status == ESDM_OK)
        status = copy_variable(s, seen_from(s->output->source, mapping), false);
    return status;
}

/* ---- the result ---------------------------------------------------------------------------- */

/* Single numbers stay single, counts are whole, all others are double. */
static esdm_type
type_of(const reduce_output *o)
{
    if (o->what == ESDM_REDUCE_COUNT)
        return ESDM_TYPE_INT64;
    return esdm_dataset_type(o->source) == ESDM_TYPE_FLOAT32 ? ESDM_TYPE_FLOAT32
                                                             : ESDM_TYPE_FLOAT64;
}

static esdm_status
make_result(store *s)
{
    const reduce_output *o = s->output;
    esdm_dimension *axes[ESDM_MAX_RANK];
    uint32_t rank = 0;
    esdm_status status = ESDM_OK;
    for (uint32_t d = 0; d < esdm_dataset_rank(o->source) && status == ESDM_OK; d++) {
        const esdm_dimension *axis = esdm_dataset_dimension(o->source, d);
        if (!o->over[d])
            status = esdm_dimension_create(
                s->root, esdm_dimension_name(axis),
                esdm_dimension_is_unlimited(axis) ? ESDM_UNLIMITED : esdm_dimension_length(axis),
                &axes[rank++], s->err);
    }
    if (status == ESDM_OK)
        status = esdm_dataset_create(s->root, esdm_dataset_name(o->source), type_of(o), rank, axes,
                                     &s->result, s->err);
    if (status == ESDM_OK)
        status = copy_attributes(s, esdm_dataset_attributes(o->source),
                                 esdm_dataset_attributes(s->result), true);
    if (status == ESDM_OK)
        status = put_methods(s);
    return status == ESDM_OK ? put_units(s) : status;
}

static esdm_status
write_result(const store *s, double *values, uint64_t count)
{
    uint64_t shape[ESDM_MAX_RANK];
    esdm_dataspace space;
    bool is_default = true;
    esdm_type type = esdm_dataset_type(s->result);
    uint32_t rank = esdm_dataset_rank(s->result);
    for (uint32_t d = 0, k = 0; k < rank; d++)
        if (!s->output->over[d])
            shape[k++] = esdm_dimension_length(esdm_dataset_dimension(s->output->source, d));
    esdm_status status = esdm_dataspace_init(&space, rank, NULL, shape, s->err);
    if (status == ESDM_OK && type != ESDM_TYPE_INT64) {
        const void *fill = esdm_dataset_fill(s->result, &is_default);
        double missing =
            type == ESDM_TYPE_FLOAT32 ? (double) *(const float *) fill : *(const double *) fill;
        status = esdm_attribute_set(esdm_dataset_attributes(s->result), "_FillValue", type, 1, fill,
                                    s->err);
        for (uint64_t i = 0; i < count; i++)
            if (isnan(values[i]))
                values[i] = missing;
    }
    return status == ESDM_OK && count > 0
               ? esdm_write(s->result, &space, ESDM_TYPE_FLOAT64, values, NULL, s->err)
               : status;
}

esdm_status
reduce_store(esdm_session *session, const reduce_output *output, double *values, uint64_t count,
             esdm_error *err)
{
    store s = {.output = output, .err = err};
    esdm_group *from = esdm_container_root(
        esdm_group_container(esdm_dataset_group((esdm_dataset *) output->source)));
    esdm_status status = esdm_container_create(
        session, output->name, output->replace ? ESDM_CREATE_REPLACE : ESDM_CREATE_NEW,
        &s.container, err);
    if (status != ESDM_OK)
        return status;
    s.root = esdm_container_root(s.container);
    s.coordinates = g_string_new(NULL);
    status = copy_attributes(&s, esdm_group_attributes(from), esdm_group_attributes(s.root), false);
    if (status == ESDM_OK)
        status = put_history(&s);
    if (status == ESDM_OK)
        status = make_result(&s);
    if (status == ESDM_OK)
        status = copy_coordinates(&s);
    if (status == ESDM_OK && s.coordinates->len > 0)
        status = put_text(&s, esdm_dataset_attributes(s.result), "coordinates", s.coordinates->str);
    if (status == ESDM_OK)
        status = write_result(&s, values, count);
    if (status == ESDM_OK)
        status = esdm_container_close(s.container, err);
    else
        esdm_container_discard(s.container);
    g_string_free(s.coordinates, TRUE);
    return status;
}
