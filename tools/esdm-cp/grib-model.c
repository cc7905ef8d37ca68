/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What NetCDF makes of GRIB messages: names of cfVarName, valid time, and axes of levels and points
 * as cdo has them. */

#include "esdm-cp/grib.h"

#include <stdlib.h>
#include <string.h>

/* ---- small things --------------------------------------------------------------------------- */

static void
put_text(GPtrArray *attributes, const char *name, const char *text)
{
    if (text != NULL)
        cp_attribute_add(attributes, name, cp_type_atomic(ESDM_TYPE_CHAR), strlen(text),
                         g_strdup(text));
}

static bool
is_taken(const cp_group *root, const char *name)
{
    for (guint i = 0; i < root->datasets->len; i++) {
        if (g_str_equal(((const cp_dataset *) g_ptr_array_index(root->datasets, i))->name, name))
            return true;
    }
    for (guint i = 0; i < root->dimensions->len; i++) {
        if (g_str_equal(((const cp_dimension *) g_ptr_array_index(root->dimensions, i))->name,
                        name))
            return true;
    }
    return false;
}

/* "height", "height_2", … */
static char *
free_name(const cp_group *root, const char *name)
{
    char *result = g_strdup(name);
    for (unsigned i = 2; is_taken(root, result); i++) {
        g_free(result);
        result = g_strdup_printf("%s_%u", name, i);
    }
    return result;
}

/* A coordinate. @param values stolen. */
static cp_dataset *
add_coordinate(cp_grib *g, cp_model *model, const char *name, uint32_t rank,
               cp_dimension *const *dimensions, double *values)
{
    cp_grib_variable *v = g_new0(cp_grib_variable, 1);
    v->values = values;
    g_ptr_array_add(g->variables, v);
    cp_dataset *dataset =
        cp_dataset_add(model, model->root, name, cp_type_atomic(ESDM_TYPE_FLOAT64));
    dataset->from = (cp_place){.ncid = -1, .varid = (int) g->variables->len - 1};
    dataset->rank = rank;
    for (uint32_t d = 0; d < rank; d++)
        dataset->dimensions[d] = dimensions[d];
    return dataset;
}

/* ---- time ----------------------------------------------------------------------------------- */

static gint
compare_times(gconstpointer a, gconstpointer b)
{
    int64_t x = *(const int64_t *) a, y = *(const int64_t *) b;
    return x < y ? -1 : x > y;
}

/* All valid times, in order. */
static GArray *
times_of(const gribs_index *index, int64_t *ret_first)
{
    GArray *all = g_array_new(FALSE, FALSE, sizeof(int64_t));
    *ret_first = INT64_MAX;
    for (guint i = 0; i < index->messages->len; i++) {
        const gribs_message *m = &g_array_index(index->messages, gribs_message, i);
        g_array_append_val(all, m->time_s);
        *ret_first = MIN(*ret_first, MIN(m->reference_s, m->time_s));
    }
    g_array_sort(all, compare_times);
    guint n = 0;
    for (guint i = 0; i < all->len; i++) {
        int64_t t = g_array_index(all, int64_t, i);
        if (n == 0 || g_array_index(all, int64_t, n - 1) != t)
            g_array_index(all, int64_t, n++) = t;
    }
    g_array_set_size(all, n);
    return all;
}

static cp_dimension *
add_time(cp_grib *g, cp_model *model, const GArray *times, int64_t first)
{
    bool hours = true;
    for (guint i = 0; i < times->len; i++)
        hours &= (g_array_index(times, int64_t, i) - first) % 3600 == 0;
    double *values = g_new(double, times->len);
    for (guint i = 0; i < times->len; i++) {
        int64_t whole = (g_array_index(times, int64_t, i) - first) / (hours ? 3600 : 60);
        values[i] = (double) whole;
    }
    cp_dimension *time = cp_dimension_add(model->root, "time", times->len, true);
    const cp_dataset *dataset = add_coordinate(g, model, "time", 1, &time, values);
    g_autoptr(GDateTime) epoch = g_date_time_new_from_unix_utc(first);
    g_autofree char *since = g_date_time_format(epoch, "%Y-%m-%d %H:%M:00");
    g_autofree char *unit = g_strdup_printf("%s since %s", hours ? "hours" : "minutes", since);
    put_text(dataset->attributes, "standard_name", "time");
    put_text(dataset->attributes, "units", unit);
    put_text(dataset->attributes, "calendar", "proleptic_gregorian");
    put_text(dataset->attributes, "axis", "T");
    return time;
}

/* ---- levels --------------------------------------------------------------------------------- */

typedef struct axis_kind {
    const char *level_type; /* of ecCodes */
    const char *name;
    const char *standard_name, *long_name, *units, *positive;
} axis_kind;

static const axis_kind kinds[] = {
    {"isobaricInhPa", "plev", "air_pressure", "pressure", "Pa", "down"},
    {"isobaricInPa", "plev", "air_pressure", "pressure", "Pa", "down"},
    {"heightAboveGround", "height", "height", "height", "m", "up"},
    {"heightAboveSea", "alt", "height_above_mean_sea_level", "height above mean sea level", "m",
     "up"},
    {"depthBelowLand", "depth", "depth", "depth below land", "m", "down"},
    {"depthBelowSea", "depth", "depth", "depth below sea", "m", "down"},
    {"hybrid", "lev", "hybrid_sigma_pressure", "hybrid level", "1", "down"},
    {"hybridLayer", "lev", "hybrid_sigma_pressure", "hybrid layer", "1", "down"},
};

/* Levels without a number: the variable has no axis for them. */
static bool
is_single(const char *level_type, const GArray *levels)
{
    static const char *const surfaces[] = {"surface",       "meanSea",          "entireAtmosphere",
                                           "atmosphere",    "cloudBase",        "cloudTop",
                                           "tropopause",    "nominalTop",       "isothermZero",
                                           "lowCloudLayer", "mediumCloudLayer", "highCloudLayer"};
    if (level_type == NULL || levels->len != 1)
        return levels->len == 1;
    for (size_t i = 0; i < G_N_ELEMENTS(surfaces); i++) {
        if (strcmp(level_type, surfaces[i]) == 0)
            return true;
    }
    return false;
}

static const axis_kind *
kind_of(const char *level_type)
{
    static const axis_kind other = {NULL, "lev", NULL, NULL, NULL, NULL};
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (g_strcmp0(level_type, kinds[i].level_type) == 0)
            return &kinds[i];
    }
    return &other;
}

/* Axes that were made. */
typedef struct axis {
    const axis_kind *kind;
    const char *level_type;
    const GArray *levels;
    cp_dimension *dimension;
} axis;

static cp_dimension *
level_axis(cp_grib *g, cp_model *model, GArray *axes, const cp_grib_variable *v)
{
    const axis_kind *kind = kind_of(v->parameter->level_type);
    size_t bytes = v->levels->len * sizeof(double);
    for (guint i = 0; i < axes->len; i++) {
        const axis *a = &g_array_index(axes, axis, i);
        if (a->kind == kind && g_strcmp0(a->level_type, v->parameter->level_type) == 0 &&
            a->levels->len == v->levels->len &&
            memcmp(a->levels->data, v->levels->data, bytes) == 0)
            return a->dimension;
    }
    g_autofree char *name = free_name(model->root, kind->name);
    cp_dimension *dimension = cp_dimension_add(model->root, name, v->levels->len, false);
    const cp_dataset *dataset =
        add_coordinate(g, model, name, 1, &dimension, g_memdup2(v->levels->data, bytes));
    put_text(dataset->attributes, "standard_name", kind->standard_name);
    put_text(dataset->attributes, "long_name",
             kind->long_name != NULL ? kind->long_name : v->parameter->level_type);
    put_text(dataset->attributes, "units", kind->units);
    put_text(dataset->attributes, "positive", kind->positive);
    put_text(dataset->attributes, "axis", "Z");
    axis made = {kind, v->parameter->level_type, v->levels, dimension};
    g_array_append_val(axes, made);
    return dimension;
}

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
        add_coordinate(g, model, name, rank, dimensions, g_memdup2(values, n * sizeof *values));
    put_text(dataset->attributes, "standard_name", latitude ? "latitude" : "longitude");
    put_text(dataset->attributes, "long_name", latitude ? "latitude" : "longitude");
    put_text(dataset->attributes, "units", latitude ? "degrees_north" : "degrees_east");
    if (rank == 1 && g_str_equal(dimensions[0]->name, name))
        put_text(dataset->attributes, "axis", latitude ? "Y" : "X");
    return dataset;
}

static points
add_points(cp_grib *g, cp_model *model, const gribs_grid *grid)
{
    points p = {.grid = grid};
    g_autofree char *lon = free_name(model->root, "lon");
    g_autofree char *lat = free_name(model->root, "lat");
    if (grid->regular) {
        p.dimensions[1] = cp_dimension_add(model->root, lon, grid->shape[1], false);
        p.dimensions[0] = cp_dimension_add(model->root, lat, grid->shape[0], false);
        (void) add_degrees(g, model, lon, false, 1, &p.dimensions[1], grid->longitudes);
        (void) add_degrees(g, model, lat, true, 1, &p.dimensions[0], grid->latitudes);
        return p;
    }
    for (uint32_t d = 0; d < grid->rank; d++) {
        g_autofree char *name = free_name(model->root, grid->rank == 1 ? "rgrid"
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

static cp_grib_variable *
variable_of(GPtrArray *variables, const gribs_message *m)
{
    for (guint i = variables->len; i-- > 0;) {
        cp_grib_variable *v = g_ptr_array_index(variables, i);
        if (v->parameter == m->parameter && v->grid == m->grid && v->member == m->member)
            return v;
    }
    cp_grib_variable *v = g_new0(cp_grib_variable, 1);
    v->parameter = m->parameter;
    v->grid = m->grid;
    v->member = m->member;
    v->cells = g_array_new(FALSE, FALSE, sizeof(cp_grib_cell));
    v->levels = g_array_new(FALSE, FALSE, sizeof(double));
    g_ptr_array_add(variables, v);
    return v;
}

static uint32_t
level_number(GArray *levels, double level)
{
    for (guint i = 0; i < levels->len; i++) {
        if (memcmp(&g_array_index(levels, double, i), &level, sizeof level) == 0)
            return i;
    }
    g_array_append_val(levels, level);
    return levels->len - 1;
}

static uint32_t
time_number(const GArray *times, int64_t time_s)
{
    guint lo = 0, hi = times->len;
    while (lo < hi) {
        guint middle = lo + (hi - lo) / 2;
        if (g_array_index(times, int64_t, middle) < time_s)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

static gint
compare_cells(gconstpointer a, gconstpointer b)
{
    const cp_grib_cell *x = a, *y = b;
    return x->time != y->time     ? (x->time < y->time ? -1 : 1)
           : x->level != y->level ? (x->level < y->level ? -1 : 1)
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
            return tool_error_set(err, ESDM_ENOTSUP,
                                  "%s: the messages at byte %" G_GUINT64_FORMAT
                                  " and %" G_GUINT64_FORMAT " are both '%s' of the same valid time "
                                  "and level (forecasts of several runs?)",
                                  g->path, (guint64) a->message->place.position,
                                  (guint64) b->message->place.position, v->parameter->name);
    }
    return ESDM_OK;
}

static void
describe(cp_dataset *dataset, const gribs_parameter *p, const points *where, float missing)
{
    static const char *const steps[][2] = {{"avg", "time: mean"},
                                           {"accum", "time: sum"},
                                           {"max", "time: maximum"},
                                           {"min", "time: minimum"},
                                           {"sd", "time: standard_deviation"}};
    put_text(dataset->attributes, "standard_name", p->standard_name);
    put_text(dataset->attributes, "long_name", p->long_name);
    put_text(dataset->attributes, "units", p->units);
    for (size_t i = 0; i < G_N_ELEMENTS(steps); i++) {
        if (g_strcmp0(p->step_type, steps[i][0]) == 0)
            put_text(dataset->attributes, "cell_methods", steps[i][1]);
    }
    put_text(dataset->attributes, "coordinates", where->coordinates);
    put_text(dataset->attributes, "GRIB_shortName", p->short_name);
    put_text(dataset->attributes, "GRIB_typeOfLevel", p->level_type);
    if (p->id != 0) {
        int32_t *id = g_new(int32_t, 1);
        *id = (int32_t) p->id;
        cp_attribute_add(dataset->attributes, "GRIB_paramId", cp_type_atomic(ESDM_TYPE_INT32), 1,
                         id);
    }
    cp_attribute_add(dataset->attributes, "_FillValue", dataset->type, 1,
                     g_memdup2(&missing, sizeof missing));
    cp_attribute_add(dataset->attributes, "missing_value", dataset->type, 1,
                     g_memdup2(&missing, sizeof missing));
    dataset->fill = g_memdup2(&missing, sizeof missing);
}

static void
add_variable(cp_grib *g, cp_model *model, cp_grib_variable *v, cp_dimension *time,
             cp_dimension *level, const points *where, float missing)
{
    g_autofree char *name = free_name(model->root, v->parameter->name);
    g_ptr_array_add(g->variables, v);
    cp_dataset *dataset =
        cp_dataset_add(model, model->root, name, cp_type_atomic(ESDM_TYPE_FLOAT32));
    dataset->from = (cp_place){.ncid = -1, .varid = (int) g->variables->len - 1};
    dataset->dimensions[dataset->rank++] = time;
    if (level != NULL)
        dataset->dimensions[dataset->rank++] = level;
    for (uint32_t d = 0; d < v->grid->rank; d++)
        dataset->dimensions[dataset->rank++] = where->dimensions[d];
    dataset->chunk = g_new0(uint64_t, dataset->rank);
    for (uint32_t d = 0; d < dataset->rank; d++)
        dataset->chunk[d] = d + v->grid->rank < dataset->rank ? 1 : dataset->dimensions[d]->length;
    dataset->storage = g_strdup("chunked");
    describe(dataset, v->parameter, where, missing);
}

/* ---- all ------------------------------------------------------------------------------------ */

/* Coordinates first, as cdo has them. @param variables steals them. */
static void
add_all(cp_grib *g, cp_model *model, GPtrArray *variables, const GArray *times, int64_t first,
        float missing)
{
    g_autoptr(GArray) where = g_array_new(FALSE, FALSE, sizeof(points));
    g_autoptr(GArray) axes = g_array_new(FALSE, FALSE, sizeof(axis));
    g_array_set_clear_func(where, free_points);
    cp_dimension *time = add_time(g, model, times, first);
    for (guint i = 0; i < variables->len; i++) {
        const cp_grib_variable *v = g_ptr_array_index(variables, i);
        (void) points_of(g, model, where, v->grid);
    }
    g_autofree cp_dimension **levels = g_new0(cp_dimension *, variables->len);
    for (guint i = 0; i < variables->len; i++) {
        const cp_grib_variable *v = g_ptr_array_index(variables, i);
        if (!is_single(v->parameter->level_type, v->levels))
            levels[i] = level_axis(g, model, axes, v);
    }
    for (guint i = 0; i < variables->len; i++) {
        cp_grib_variable *v = g_ptr_array_index(variables, i);
        add_variable(g, model, v, time, levels[i], points_of(g, model, where, v->grid), missing);
    }
}

esdm_status
cp_grib_model(cp_grib *g, cp_model *model, float missing, esdm_error *err)
{
    int64_t first = 0;
    esdm_status status = ESDM_OK;
    g_autoptr(GArray) times = times_of(g->index, &first);
    g_autoptr(GPtrArray) variables = g_ptr_array_new();
    for (guint i = 0; i < g->index->messages->len; i++) {
        const gribs_message *m = &g_array_index(g->index->messages, gribs_message, i);
        cp_grib_variable *v = variable_of(variables, m);
        cp_grib_cell cell = {m, time_number(times, m->time_s), level_number(v->levels, m->level)};
        g_array_append_val(v->cells, cell);
    }
    put_text(model->root->attributes, "Conventions", "CF-1.6");
    put_text(model->root->attributes, "institution", g->index->centre);
    add_all(g, model, variables, times, first, missing);
    for (guint i = 0; i < variables->len && status == ESDM_OK; i++)
        status = check_cells(g, g_ptr_array_index(variables, i), err);
    return status;
}
