/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What NetCDF makes of GRIB messages: names of cfVarName, valid time, and axes of levels and points
 * as cdo has them. */

#include "esdm-cp/grib.h"

#include <stdlib.h>
#include <string.h>

/* ---- points --------------------------------------------------------------------------------- */

typedef struct points {
    const gribs_grid *grid;
    cp_dimension *dimensions[2];
    char *coordinates; /* attribute of variables; NULL: none is needed */
} points;

static void
free_points(gpointer data)
{
    g_free(((points *) data)->coordinates);
}

static cp_dataset *
add_degrees(cp_grib *g, cp_model *model, const char *name, bool latitude, uint32_t rank,
            cp_dimension *const *dimensions, const double *values)
{
    size_t n = 1;
    for (uint32_t d = 0; d < rank; d++)
        n *= dimensions[d]->length;
    cp_dataset *dataset =
        cp_grib_coordinate(g, model, name, rank, dimensions, g_memdup2(values, n * sizeof *values));
    cp_grib_put_text(dataset->attributes, "standard_name", latitude ? "latitude" : "longitude");
    cp_grib_put_text(dataset->attributes, "long_name", latitude ? "latitude" : "longitude");
    cp_grib_put_text(dataset->attributes, "units", latitude ? "degrees_north" : "degrees_east");
    if (rank == 1 && g_str_equal(dimensions[0]->name, name))
        cp_grib_put_text(dataset->attributes, "axis", latitude ? "Y" : "X");
    return dataset;
}

static points
add_points(cp_grib *g, cp_model *model, const gribs_grid *grid)
{
    points p = {.grid = grid};
    g_autofree char *lon = cp_grib_free_name(model->root, "lon");
    g_autofree char *lat = cp_grib_free_name(model->root, "lat");
    if (grid->regular) {
        p.dimensions[1] = cp_dimension_add(model->root, lon, grid->shape[1], false);
        p.dimensions[0] = cp_dimension_add(model->root, lat, grid->shape[0], false);
        (void) add_degrees(g, model, lon, false, 1, &p.dimensions[1], grid->longitudes);
        (void) add_degrees(g, model, lat, true, 1, &p.dimensions[0], grid->latitudes);
        return p;
    }
    for (uint32_t d = 0; d < grid->rank; d++) {
        g_autofree char *name = cp_grib_free_name(model->root, grid->rank == 1 ? "rgrid"
                                                               : d == 0        ? "y"
                                                                               : "x");
        p.dimensions[d] = cp_dimension_add(model->root, name, grid->shape[d], false);
    }
    (void) add_degrees(g, model, lon, false, grid->rank, p.dimensions, grid->longitudes);
    (void) add_degrees(g, model, lat, true, grid->rank, p.dimensions, grid->latitudes);
    p.coordinates = g_strdup_printf("%s %s", lat, lon);
    return p;
}

static const points *
points_of(cp_grib *g, cp_model *model, GArray *all, const gribs_grid *grid)
{
    for (guint i = 0; i < all->len; i++) {
        if (g_array_index(all, points, i).grid == grid)
            return &g_array_index(all, points, i);
    }
    points made = add_points(g, model, grid);
    g_array_append_val(all, made);
    return &g_array_index(all, points, all->len - 1);
}

/* ---- variables ------------------------------------------------------------------------------ */

static guint
hash_variable(gconstpointer key)
{
    const cp_grib_variable *v = key;
    guint hash = g_direct_hash(v->parameter);
    hash = hash * 31 + g_direct_hash(v->grid);
    hash = hash * 31 + g_direct_hash(v->hybrid);
    return (hash * 31 + (guint) v->member) * 2 + (v->has_members ? 1 : 0);
}

static gboolean
is_same_variable(gconstpointer a, gconstpointer b)
{
    const cp_grib_variable *x = a, *y = b;
    return x->parameter == y->parameter && x->grid == y->grid && x->hybrid == y->hybrid &&
           x->member == y->member && x->has_members == y->has_members;
}

/* @param known set of those in the list. */
static cp_grib_variable *
variable_of(GPtrArray *variables, GHashTable *known, const gribs_message *m)
{
    bool has_members = cp_wants.members && m->member >= 0;
    const cp_grib_variable wanted = {.hybrid = m->hybrid,
                                     .parameter = m->parameter,
                                     .grid = m->grid,
                                     .member = has_members ? -1 : m->member,
                                     .has_members = has_members};
    cp_grib_variable *v = g_hash_table_lookup(known, &wanted);
    if (v != NULL)
        return v;
    v = g_new0(cp_grib_variable, 1);
    *v = wanted;
    v->cells = g_array_new(FALSE, FALSE, sizeof(cp_grib_cell));
    v->levels = g_array_new(FALSE, FALSE, sizeof(cp_grib_level));
    g_ptr_array_add(variables, v);
    (void) g_hash_table_add(known, v);
    return v;
}

static uint32_t
level_number(GArray *levels, const gribs_message *m)
{
    cp_grib_level level = {m->level, m->level_end};
    for (guint i = 0; i < levels->len; i++) {
        if (memcmp(&g_array_index(levels, cp_grib_level, i), &level, sizeof level) == 0)
            return i;
    }
    g_array_append_val(levels, level);
    return levels->len - 1;
}

void
cp_grib_indices(const cp_grib_variable *v, const cp_grib_cell *cell, uint64_t ret_at[CP_GRIB_OUTER])
{
    unsigned n = 0;
    ret_at[n++] = cell->time;
    if (v->has_members)
        ret_at[n++] = cell->member;
    ret_at[n++] = cell->level;
    if (n < CP_GRIB_OUTER)
        ret_at[n] = 0;
}

static gint
compare_cells(gconstpointer a, gconstpointer b)
{
    const cp_grib_cell *x = a, *y = b;
    return x->time != y->time       ? (x->time < y->time ? -1 : 1)
           : x->member != y->member ? (x->member < y->member ? -1 : 1)
           : x->level != y->level   ? (x->level < y->level ? -1 : 1)
                                    : 0;
}

/* Two messages for one place: which of them counts is not known. */
static esdm_status
check_cells(const cp_grib *g, const cp_grib_variable *v, esdm_error *err)
{
    g_array_sort(v->cells, compare_cells);
    for (guint i = 1; i < v->cells->len; i++) {
        const cp_grib_cell *a = &g_array_index(v->cells, cp_grib_cell, i - 1), *b = a + 1;
        if (compare_cells(a, b) == 0)
            return tool_error_set(
                err, ESDM_ENOTSUP,
                "%s: the messages at byte %" G_GUINT64_FORMAT " and %" G_GUINT64_FORMAT
                " are both '%s' of the same valid time%s "
                "and level (forecasts of several runs?)",
                g->path, (guint64) a->message->place.position, (guint64) b->message->place.position,
                v->parameter->name, v->has_members ? ", member" : "");
    }
    return ESDM_OK;
}

/* "time: sum". The period of each value is in the bounds of time; where these cannot be, it is told
 * here if all have the same. */
static void
put_methods(cp_dataset *dataset, const cp_grib_variable *v, bool bounds)
{
    static const char *const steps[][2] = {
        {"instant", "time: point"},       {"avg", "time: mean"},
        {"accum", "time: sum"},           {"max", "time: maximum"},
        {"min", "time: minimum"},         {"sd", "time: standard_deviation"},
        {"rms", "time: root_mean_square"}};
    const gribs_message *first = g_array_index(v->cells, cp_grib_cell, 0).message;
    int64_t period = first->time_s - first->begin_s;
    const char *method = NULL;
    for (size_t i = bounds ? 0 : 1; i < G_N_ELEMENTS(steps); i++) {
        if (g_strcmp0(v->parameter->step_type, steps[i][0]) == 0)
            method = steps[i][1];
    }
    for (guint i = 1; i < v->cells->len; i++) {
        const gribs_message *m = g_array_index(v->cells, cp_grib_cell, i).message;
        period = m->time_s - m->begin_s == period ? period : 0;
    }
    if (method == NULL || bounds || period <= 0) {
        cp_grib_put_text(dataset->attributes, "cell_methods", method);
        return;
    }
    int64_t unit = period % 3600 == 0 ? 3600 : period % 60 == 0 ? 60 : 1;
    g_autofree char *text = g_strdup_printf("%s (comment: over the %" G_GINT64_FORMAT " %s before)",
                                            method, (gint64) (period / unit), cp_grib_unit(unit));
    cp_grib_put_text(dataset->attributes, "cell_methods", text);
}

static void
put_number(GPtrArray *attributes, const char *name, long value)
{
    int32_t *number = g_new(int32_t, 1);
    *number = (int32_t) value;
    cp_attribute_add(attributes, name, cp_type_atomic(ESDM_TYPE_INT32), 1, number);
}

/* Those that were perturbed, and the one that was not, may be of several types. */
static bool
is_one_type(const cp_grib_variable *v)
{
    long type = g_array_index(v->cells, cp_grib_cell, 0).message->ensemble;
    for (guint i = 1; i < v->cells->len; i++) {
        if (g_array_index(v->cells, cp_grib_cell, i).message->ensemble != type)
            return false;
    }
    return true;
}

static void
describe(cp_dataset *dataset, const cp_grib_variable *v, bool bounds, const points *where,
         float missing)
{
    const gribs_parameter *p = v->parameter;
    const gribs_message *first = g_array_index(v->cells, cp_grib_cell, 0).message;
    cp_grib_put_text(dataset->attributes, "standard_name", p->standard_name);
    cp_grib_put_text(dataset->attributes, "long_name", p->long_name);
    cp_grib_put_text(dataset->attributes, "units", p->units);
    put_methods(dataset, v, bounds);
    cp_grib_put_text(dataset->attributes, "coordinates", where->coordinates);
    cp_grib_put_text(dataset->attributes, "GRIB_shortName", p->short_name);
    cp_grib_put_text(dataset->attributes, "GRIB_typeOfLevel", p->level_type);
    if (where->grid->rank < 2 || !where->grid->regular)
        cp_grib_put_text(dataset->attributes, "GRIB_gridType", where->grid->type);
    if (p->id != 0)
        put_number(dataset->attributes, "GRIB_paramId", p->id);
    if (v->member >= 0) /* cdo's names */
        put_number(dataset->attributes, "realization", v->member);
    if (first->member >= 0 && first->members >= 0)
        put_number(dataset->attributes, "ensemble_members", first->members);
    if (first->member >= 0 && first->ensemble >= 0 && is_one_type(v))
        put_number(dataset->attributes, "forecast_init_type", first->ensemble);
    cp_attribute_add(dataset->attributes, "_FillValue", dataset->type, 1,
                     g_memdup2(&missing, sizeof missing));
    cp_attribute_add(dataset->attributes, "missing_value", dataset->type, 1,
                     g_memdup2(&missing, sizeof missing));
    dataset->fill = g_memdup2(&missing, sizeof missing);
}

static void
add_variable(cp_grib *g, cp_model *model, cp_grib_variable *v, cp_dimension *time, bool bounds,
             cp_dimension *member, cp_dimension *level, const points *where, float missing)
{
    g_autofree char *name = cp_grib_free_name(model->root, v->parameter->name);
    g_ptr_array_add(g->variables, v);
    cp_dataset *dataset =
        cp_dataset_add(model, model->root, name, cp_type_atomic(ESDM_TYPE_FLOAT32));
    dataset->from = (cp_place){.ncid = -1, .varid = (int) g->variables->len - 1};
    dataset->dimensions[dataset->rank++] = time;
    if (v->has_members)
        dataset->dimensions[dataset->rank++] = member;
    if (level != NULL)
        dataset->dimensions[dataset->rank++] = level;
    for (uint32_t d = 0; d < v->grid->rank; d++)
        dataset->dimensions[dataset->rank++] = where->dimensions[d];
    dataset->chunk = g_new0(uint64_t, dataset->rank);
    for (uint32_t d = 0; d < dataset->rank; d++)
        dataset->chunk[d] = d + v->grid->rank < dataset->rank ? 1 : dataset->dimensions[d]->length;
    dataset->storage = g_strdup("chunked");
    describe(dataset, v, bounds, where, missing);
}

/* ---- all ------------------------------------------------------------------------------------ */

/* Coordinates first, as cdo has them. @param variables steals them. */
static void
add_all(cp_grib *g, cp_model *model, GPtrArray *variables, const GArray *times,
        const GArray *members, int64_t first, float missing)
{
    g_autoptr(GArray) where = g_array_new(FALSE, FALSE, sizeof(points));
    cp_grib_axes axes = {0};
    bool bounds = false;
    g_array_set_clear_func(where, free_points);
    cp_dimension *time = cp_grib_time_axis(g, model, times, first, &bounds);
    cp_dimension *member =
        cp_wants.members && members->len > 0 ? cp_grib_member_axis(g, model, members) : NULL;
    for (guint i = 0; i < variables->len; i++) {
        const cp_grib_variable *v = g_ptr_array_index(variables, i);
        (void) points_of(g, model, where, v->grid);
        if (g_strcmp0(v->parameter->short_name, "sp") == 0 && axes.pressure == NULL)
            axes.pressure = v->parameter->name;
    }
    g_autofree cp_dimension **levels = g_new0(cp_dimension *, variables->len);
    for (guint i = 0; i < variables->len; i++) {
        const cp_grib_variable *v = g_ptr_array_index(variables, i);
        levels[i] = cp_grib_level_axis(g, model, &axes, v);
    }
    for (guint i = 0; i < variables->len; i++) {
        cp_grib_variable *v = g_ptr_array_index(variables, i);
        add_variable(g, model, v, time, bounds, member, levels[i],
                     points_of(g, model, where, v->grid), missing);
    }
    cp_grib_axes_clear(&axes);
}

esdm_status
cp_grib_model(cp_grib *g, cp_model *model, float missing, esdm_error *err)
{
    int64_t first = 0;
    esdm_status status = ESDM_OK;
    g_autoptr(GArray) times = cp_grib_times(g->index, &first);
    g_autoptr(GArray) members = cp_grib_members(g->index);
    g_autoptr(GPtrArray) variables = g_ptr_array_new();
    g_autoptr(GHashTable) known = g_hash_table_new(hash_variable, is_same_variable);
    for (guint i = 0; i < g->index->messages->len; i++) {
        const gribs_message *m = &g_array_index(g->index->messages, gribs_message, i);
        cp_grib_variable *v = variable_of(variables, known, m);
        cp_grib_cell cell = {.message = m,
                             .time = cp_grib_time_number(times, m->time_s),
                             .level = level_number(v->levels, m)};
        if (v->has_members)
            cell.member = cp_grib_member_number(members, m->member);
        g_array_append_val(v->cells, cell);
    }
    cp_grib_put_text(model->root->attributes, "Conventions", "CF-1.6");
    cp_grib_put_text(model->root->attributes, "institution", g->index->centre);
    if (members->len == 1 && !cp_wants.members) /* by which queries find and order files */
        put_number(model->root->attributes, "realization", g_array_index(members, long, 0));
    add_all(g, model, variables, times, members, first, missing);
    for (guint i = 0; i < variables->len && status == ESDM_OK; i++)
        status = check_cells(g, g_ptr_array_index(variables, i), err);
    return status;
}
