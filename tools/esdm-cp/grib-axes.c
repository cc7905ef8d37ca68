/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Axes of what GRIB messages become: valid time with the periods that values are of, and levels,
 * layers and hybrid levels as cdo has them. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "esdm-cp/grib.h"

/* ---- small things --------------------------------------------------------------------------- */

void
cp_grib_put_text(GPtrArray *attributes, const char *name, const char *text)
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

char *
cp_grib_free_name(const cp_group *root, const char *name)
{
    char *result = g_strdup(name);
    for (unsigned i = 2; is_taken(root, result); i++) {
        g_free(result);
        result = g_strdup_printf("%s_%u", name, i);
    }
    return result;
}

cp_dataset *
cp_grib_coordinate(cp_grib *g, cp_model *model, const char *name, uint32_t rank,
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

/* Two of each, which all bounds share. */
static cp_dimension *
bounds_dimension(cp_model *model)
{
    for (guint i = 0; i < model->root->dimensions->len; i++) {
        cp_dimension *dimension = g_ptr_array_index(model->root->dimensions, i);
        if (g_str_equal(dimension->name, "bnds"))
            return dimension;
    }
    return cp_dimension_add(model->root, "bnds", 2, false);
}

/* @param values stolen: pairs. */
static void
add_bounds(cp_grib *g, cp_model *model, cp_dataset *of, cp_dimension *dimension, double *values)
{
    g_autofree char *plain = g_strconcat(of->name, "_bnds", NULL);
    g_autofree char *name = cp_grib_free_name(model->root, plain);
    cp_dimension *dimensions[] = {dimension, bounds_dimension(model)};
    cp_grib_put_text(of->attributes, "bounds", name);
    (void) cp_grib_coordinate(g, model, name, 2, dimensions, values);
}

/* ---- time ----------------------------------------------------------------------------------- */

static gint
compare_times(gconstpointer a, gconstpointer b)
{
    int64_t x = *(const int64_t *) a, y = *(const int64_t *) b;
    return x < y ? -1 : x > y;
}

GArray *
cp_grib_times(const gribs_index *index, int64_t *ret_first)
{
    GArray *all = g_array_new(FALSE, FALSE, sizeof(int64_t));
    *ret_first = INT64_MAX;
    for (guint i = 0; i < index->messages->len; i++) {
        const gribs_message *m = &g_array_index(index->messages, gribs_message, i);
        g_array_append_val(all, m->time_s);
        *ret_first = MIN(*ret_first, MIN(m->reference_s, MIN(m->time_s, m->begin_s)));
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

uint32_t
cp_grib_time_number(const GArray *times, int64_t time_s)
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

/* Where the period of each time begins: the time itself for instants. NULL: there are no periods,
 * or two of them end at one time. */
static int64_t *
begins_of(const gribs_index *index, const GArray *times)
{
    bool any = false, contradict = false;
    int64_t *begins = g_memdup2(times->data, times->len * sizeof(int64_t));
    for (guint i = 0; i < index->messages->len; i++) {
        const gribs_message *m = &g_array_index(index->messages, gribs_message, i);
        int64_t *begin = &begins[cp_grib_time_number(times, m->time_s)];
        if (m->begin_s == m->time_s)
            continue;
        any = true;
        contradict |= *begin != m->time_s && *begin != m->begin_s;
        *begin = m->begin_s;
    }
    if (any && !contradict)
        return begins;
    g_free(begins);
    return NULL;
}

const char *
cp_grib_unit(int64_t unit_s)
{
    return unit_s == 3600 ? "hours" : unit_s == 60 ? "minutes" : "seconds";
}

static double
since(int64_t time_s, int64_t first, int64_t unit)
{
    int64_t units = (time_s - first) / unit; /* the unit divides all times */
    return (double) units;
}

cp_dimension *
cp_grib_time_axis(cp_grib *g, cp_model *model, const GArray *times, int64_t first, bool *ret_bounds)
{
    g_autofree int64_t *begins = begins_of(g->index, times);
    const int64_t *all = (const int64_t *) (const void *) times->data;
    int64_t unit = 3600;
    for (guint i = 0; i < times->len; i++) {
        while ((all[i] - first) % unit != 0 || (begins != NULL && (begins[i] - first) % unit != 0))
            unit = unit == 3600 ? 60 : 1;
    }
    double *values = g_new(double, times->len);
    for (guint i = 0; i < times->len; i++)
        values[i] = since(all[i], first, unit);
    cp_dimension *time = cp_dimension_add(model->root, "time", times->len, true);
    cp_dataset *dataset = cp_grib_coordinate(g, model, "time", 1, &time, values);
    g_autoptr(GDateTime) epoch = g_date_time_new_from_unix_utc(first);
    g_autofree char *date = g_date_time_format(epoch, "%Y-%m-%d %H:%M:%S");
    g_autofree char *units = g_strdup_printf("%s since %s", cp_grib_unit(unit), date);
    cp_grib_put_text(dataset->attributes, "standard_name", "time");
    cp_grib_put_text(dataset->attributes, "units", units);
    cp_grib_put_text(dataset->attributes, "calendar", "proleptic_gregorian");
    cp_grib_put_text(dataset->attributes, "axis", "T");
    *ret_bounds = begins != NULL;
    if (begins != NULL) {
        double *bounds = g_new(double, 2 * (size_t) times->len);
        for (guint i = 0; i < times->len; i++) {
            bounds[2 * i] = since(begins[i], first, unit);
            bounds[2 * i + 1] = values[i];
        }
        add_bounds(g, model, dataset, time, bounds);
    }
    return time;
}

/* ---- members of an ensemble ----------------------------------------------------------------- */

GArray *
cp_grib_members(const gribs_index *index)
{
    GArray *all = g_array_new(FALSE, FALSE, sizeof(long));
    for (guint i = 0; i < index->messages->len; i++) {
        const gribs_message *m = &g_array_index(index->messages, gribs_message, i);
        guint at = m->member >= 0 ? cp_grib_member_number(all, m->member) : 0;
        if (m->member >= 0 && (at == all->len || g_array_index(all, long, at) != m->member))
            g_array_insert_val(all, at, m->member);
    }
    return all;
}

uint32_t
cp_grib_member_number(const GArray *members, long member)
{
    guint lo = 0, hi = members->len;
    while (lo < hi) {
        guint middle = lo + (hi - lo) / 2;
        if (g_array_index(members, long, middle) < member)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

cp_dimension *
cp_grib_member_axis(cp_grib *g, cp_model *model, const GArray *members)
{
    double *values = g_new(double, members->len);
    for (guint i = 0; i < members->len; i++)
        values[i] = (double) g_array_index(members, long, i);
    cp_dimension *dimension = cp_dimension_add(model->root, "realization", members->len, false);
    cp_dataset *dataset = cp_grib_coordinate(g, model, "realization", 1, &dimension, values);
    cp_grib_put_text(dataset->attributes, "standard_name", "realization");
    cp_grib_put_text(dataset->attributes, "long_name", "member of the ensemble");
    cp_grib_put_text(dataset->attributes, "units", "1");
    return dimension;
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
    {"isobaricLayer", "plev", "air_pressure", "pressure", "Pa", "down"},
    {"heightAboveGround", "height", "height", "height", "m", "up"},
    {"heightAboveGroundLayer", "height", "height", "height", "m", "up"},
    {"heightAboveSea", "alt", "height_above_mean_sea_level", "height above mean sea level", "m",
     "up"},
    {"depthBelowLand", "depth", "depth", "depth below land", "m", "down"},
    {"depthBelowLandLayer", "depth", "depth", "depth below land", "m", "down"},
    {"depthBelowSea", "depth", "depth", "depth below sea", "m", "down"},
    {"hybrid", "lev", "hybrid_sigma_pressure", "hybrid level at layer midpoints", "level", "down"},
    {"hybridLayer", "lev", "hybrid_sigma_pressure", "hybrid layer", "level", "down"},
    {"generalVertical", "height", "height", "generalized_height", NULL, NULL},
    {"generalVerticalLayer", "height", "height", "generalized_height", NULL, NULL},
    {"theta", "lev", NULL, "isentropic", "K", NULL},
    {"sigma", "lev", NULL, "sigma", "level", NULL},
    {"meanSea", "lev", NULL, "meansea", "level", NULL},
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

/* ---- hybrid levels -------------------------------------------------------------------------- */

static void
add_coefficient(cp_grib *g, cp_model *model, const char *name, cp_dimension *dimension,
                const char *what, const char *units, double *values)
{
    cp_dataset *dataset = cp_grib_coordinate(g, model, name, 1, &dimension, values);
    cp_grib_put_text(dataset->attributes, "long_name", what);
    cp_grib_put_text(dataset->attributes, "units", units);
}

static double *
midpoints(const double *interfaces, size_t n)
{
    double *values = g_new(double, n - 1);
    for (size_t i = 0; i + 1 < n; i++)
        values[i] = (interfaces[i] + interfaces[i + 1]) * 0.5;
    return values;
}

/* Those at interfaces and in the middle of layers, and what the axis says of them. */
static void
add_hybrid(cp_grib *g, cp_model *model, cp_dataset *axis, const gribs_hybrid *hybrid,
           const char *pressure)
{
    size_t n = hybrid->interfaces;
    const cp_group *root = model->root;
    g_autofree char *nhyi = cp_grib_free_name(root, "nhyi");
    g_autofree char *nhym = cp_grib_free_name(root, "nhym");
    g_autofree char *hyai = cp_grib_free_name(root, "hyai");
    g_autofree char *hybi = cp_grib_free_name(root, "hybi");
    g_autofree char *hyam = cp_grib_free_name(root, "hyam");
    g_autofree char *hybm = cp_grib_free_name(root, "hybm");
    cp_dimension *interfaces = cp_dimension_add(model->root, nhyi, n, false);
    cp_dimension *middles = cp_dimension_add(model->root, nhym, n - 1, false);
    add_coefficient(g, model, hyai, interfaces, "hybrid A coefficient at layer interfaces", "Pa",
                    g_memdup2(hybrid->a, n * sizeof *hybrid->a));
    add_coefficient(g, model, hybi, interfaces, "hybrid B coefficient at layer interfaces", "1",
                    g_memdup2(hybrid->b, n * sizeof *hybrid->b));
    add_coefficient(g, model, hyam, middles, "hybrid A coefficient at layer midpoints", "Pa",
                    midpoints(hybrid->a, n));
    add_coefficient(g, model, hybm, middles, "hybrid B coefficient at layer midpoints", "1",
                    midpoints(hybrid->b, n));
    const char *ps = pressure != NULL ? pressure : "aps"; /* as cdo, where there is none */
    g_autofree char *formula = g_strdup_printf("%s %s (mlev=%s+%s*%s)", hyam, hybm, hyam, hybm, ps);
    g_autofree char *terms = g_strdup_printf("ap: %s b: %s ps: %s", hyam, hybm, ps);
    cp_grib_put_text(axis->attributes, "formula", formula);
    cp_grib_put_text(axis->attributes, "formula_terms", terms);
}

/* ---- axes ----------------------------------------------------------------------------------- */

typedef struct axis {
    const axis_kind *kind;
    const cp_grib_variable *like; /* borrowed: the first that has it */
    cp_dimension *dimension;
    cp_dataset *dataset;
} axis;

/* The text of another axis' attribute, NULL: it has none. */
static void
copy_text(cp_dataset *to, const cp_dataset *from, const char *name)
{
    const cp_attribute *a = cp_attribute_find(from->attributes, name);
    g_autofree char *text = a != NULL ? g_strndup(a->values, a->count) : NULL;
    cp_grib_put_text(to->attributes, name, text);
}

static bool
is_alike(const axis *a, const axis_kind *kind, const cp_grib_variable *v)
{
    return a->kind == kind && a->like->hybrid == v->hybrid &&
           g_strcmp0(a->like->parameter->level_type, v->parameter->level_type) == 0 &&
           a->like->levels->len == v->levels->len &&
           memcmp(a->like->levels->data, v->levels->data, v->levels->len * sizeof(cp_grib_level)) ==
               0;
}

/* Coefficients that another axis has already are shared with it. */
static void
describe_hybrid(cp_grib *g, cp_model *model, const cp_grib_axes *axes, const cp_grib_variable *v,
                cp_dataset *dataset)
{
    if (v->hybrid == NULL)
        return;
    for (guint i = 0; i < axes->made->len; i++) {
        const axis *a = &g_array_index(axes->made, axis, i);
        if (a->like->hybrid != v->hybrid)
            continue;
        copy_text(dataset, a->dataset, "formula");
        copy_text(dataset, a->dataset, "formula_terms");
        return;
    }
    add_hybrid(g, model, dataset, v->hybrid, axes->pressure);
}

static axis
make_axis(cp_grib *g, cp_model *model, const cp_grib_axes *axes, const axis_kind *kind,
          const cp_grib_variable *v)
{
    size_t n = v->levels->len;
    const cp_grib_level *levels = (const cp_grib_level *) (const void *) v->levels->data;
    g_autofree char *name = cp_grib_free_name(model->root, kind->name);
    cp_dimension *dimension = cp_dimension_add(model->root, name, n, false);
    double *values = g_new(double, n);
    bool layers = true;
    for (size_t i = 0; i < n; i++) {
        values[i] = levels[i].level;
        layers &= !isnan(levels[i].end);
    }
    cp_dataset *dataset = cp_grib_coordinate(g, model, name, 1, &dimension, values);
    cp_grib_put_text(dataset->attributes, "standard_name", kind->standard_name);
    cp_grib_put_text(dataset->attributes, "long_name",
                     kind->long_name != NULL ? kind->long_name : v->parameter->level_type);
    cp_grib_put_text(dataset->attributes, "units", kind->units);
    cp_grib_put_text(dataset->attributes, "positive", kind->positive);
    cp_grib_put_text(dataset->attributes, "axis", "Z");
    describe_hybrid(g, model, axes, v, dataset);
    if (layers) {
        double *bounds = g_new(double, 2 * n);
        for (size_t i = 0; i < n; i++) {
            bounds[2 * i] = levels[i].level;
            bounds[2 * i + 1] = levels[i].end;
        }
        add_bounds(g, model, dataset, dimension, bounds);
    }
    return (axis){kind, v, dimension, dataset};
}

cp_dimension *
cp_grib_level_axis(cp_grib *g, cp_model *model, cp_grib_axes *axes, const cp_grib_variable *v)
{
    const axis_kind *kind = kind_of(v->parameter->level_type);
    if (is_single(v->parameter->level_type, v->levels))
        return NULL;
    if (axes->made == NULL)
        axes->made = g_array_new(FALSE, FALSE, sizeof(axis));
    for (guint i = 0; i < axes->made->len; i++) {
        const axis *a = &g_array_index(axes->made, axis, i);
        if (is_alike(a, kind, v))
            return a->dimension;
    }
    axis made = make_axis(g, model, axes, kind, v);
    g_array_append_val(axes->made, made);
    return made.dimension;
}

void
cp_grib_axes_clear(cp_grib_axes *axes)
{
    if (axes->made != NULL)
        g_array_unref(axes->made);
    axes->made = NULL;
}
