/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Tolerances of a recipe: value by value against those that are there, and all else bit for bit. */
#include "esdm-recipe/esdm-recipe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "esdm/accuracy.h"
#include "esdm/digest.h"

/* Of values in memory at a time, of each side. */
#define PART_BYTES (8u << 20)
/* Quantities that bound each value by itself. */
#define BOUNDS                                                                                     \
    (ESDM_ACCURACY_ABSOLUTE_TOLERANCE | ESDM_ACCURACY_RELATIVE_TOLERANCE |                         \
     ESDM_ACCURACY_RELATIVE_FINEST | ESDM_ACCURACY_SIGNIFICANT_DIGITS |                            \
     ESDM_ACCURACY_SIGNIFICANT_BITS | ESDM_ACCURACY_GRADIENT_TOLERANCE |                           \
     ESDM_ACCURACY_VECTOR_TOLERANCE | ESDM_ACCURACY_VECTOR_COMPONENTS)
/* Those of packed numbers: absolute ones. */
#define OF_PACKED                                                                                  \
    (ESDM_ACCURACY_ABSOLUTE_TOLERANCE | ESDM_ACCURACY_GRADIENT_TOLERANCE |                         \
     ESDM_ACCURACY_VECTOR_TOLERANCE | ESDM_ACCURACY_VECTOR_COMPONENTS)

/* What one variable may be off by, and is. */
typedef struct variable {
    char *path;          /* owned */
    esdm_dataset *of[2]; /* as it is, and as it was made; borrowed */
    esdm_accuracy accuracy;
    double scale;      /* of packed numbers; else 1 */
    double missing[3]; /* values that stand for none */
    guint nmissing;
    guint64 different; /* values that are not equal */
    guint64 beyond;    /* of these, by more than they may */
    double largest;    /* difference, in the units of the variable */
} variable;

static void
free_variable(gpointer data)
{
    variable *v = data;
    g_free(v->path);
    g_free(v);
}

/* ---- what is stated ------------------------------------------------------------------------- */

bool
recipe_tolerances_wrong(char **options)
{
    for (char **option = options; option != NULL && *option != NULL; option++) {
        g_autofree char *pattern = NULL;
        const char *text;
        esdm_error err = {0};
        if (!tool_wish_split(*option, &pattern, &text)) {
            tool_error("--tolerance '%s' is not NAME: QUANTITIES, such as 'tas: abs=0.01 K'",
                       *option);
            return true;
        }
        if (esdm_accuracy_check_text(text, &err) != ESDM_OK) {
            tool_error("--tolerance '%s': %s", *option, err.message);
            return true;
        }
    }
    return false;
}

/* A number of an attribute. false: it has none. */
static bool
attribute_number(esdm_dataset *dataset, const char *name, double *ret)
{
    esdm_attribute a;
    uint64_t ignored;
    esdm_error err;
    return esdm_attribute_find(esdm_dataset_attributes(dataset), name, &a, NULL) && a.count == 1 &&
           a.type < ESDM_TYPE_STRING && a.type != ESDM_TYPE_CHAR &&
           esdm_convert(a.type, a.values, ESDM_TYPE_FLOAT64, ret, 1, &ignored, &err) == ESDM_OK;
}

static char *
units_of(esdm_dataset *dataset)
{
    esdm_attribute a;
    return esdm_attribute_find(esdm_dataset_attributes(dataset), "units", &a, NULL) &&
                   a.type == ESDM_TYPE_CHAR
               ? g_strndup(a.values, a.count)
               : NULL;
}

static tool_exit
refuse(const char *option, const variable *v, const char *why)
{
    tool_error("the tolerance '%s' cannot hold for %s: %s", option, v->path, why);
    return TOOL_REFUSED;
}

static tool_exit
take_option(const char *option, const char *text, variable *v)
{
    esdm_error err = {0};
    esdm_type type = esdm_dataset_type(v->of[0]);
    double offset = 0;
    g_autofree char *units = units_of(v->of[0]);
    esdm_status st = esdm_accuracy_parse(&v->accuracy, text, units, &err);
    bool scaled = attribute_number(v->of[0], "scale_factor", &v->scale);
    bool packed = attribute_number(v->of[0], "add_offset", &offset) || scaled;
    if (st != ESDM_OK)
        return refuse(option, v, err.message);
    if (type >= ESDM_TYPE_STRING || type == ESDM_TYPE_CHAR || type == ESDM_TYPE_INT64 ||
        type == ESDM_TYPE_UINT64)
        return refuse(option, v, "its values are no numbers of up to 53 bits");
    esdm_attribute attribute;
    if (esdm_attribute_find(esdm_dataset_attributes(v->of[0]), "_Unsigned", &attribute, NULL))
        return refuse(option, v, "its numbers are marked _Unsigned, which is not looked at");
    if (esdm_attribute_find(esdm_dataset_attributes(v->of[0]), "missing_value", &attribute, NULL) &&
        attribute.count != 1)
        return refuse(option, v, "it has several missing values");
    if ((v->accuracy.stated & ~(uint32_t) BOUNDS) != 0)
        return refuse(
            option, v,
            "only abs, rel, finest, digits, bits, gradient and vector tell of two values by "
            "themselves whether they agree");
    if (packed && (v->accuracy.stated & ~(uint32_t) OF_PACKED) != 0)
        return refuse(option, v,
                      "its numbers are packed, which allows for abs, gradient and vector alone");
    if (!(fabs(v->scale) > 0 && isfinite(v->scale)))
        return refuse(option, v, "its scale_factor is no number but 0");
    return TOOL_OK;
}

static void
find_missing(variable *v)
{
    static const char *const names[] = {"_FillValue", "missing_value"};
    uint64_t ignored;
    esdm_error err;
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++)
        v->nmissing += attribute_number(v->of[0], names[i], &v->missing[v->nmissing]);
    if (esdm_convert(esdm_dataset_type(v->of[0]), esdm_dataset_fill(v->of[0], NULL),
                     ESDM_TYPE_FLOAT64, &v->missing[v->nmissing], 1, &ignored, &err) == ESDM_OK)
        v->nmissing++;
}

/* ---- variables ------------------------------------------------------------------------------ */

typedef struct search {
    const json_t *tolerances;
    bool *used; /* for each of them; NULL: nobody asks */
    GPtrArray *variables;
} search;

static tool_exit
look_at(search *s, esdm_dataset *dataset, const char *above)
{
    const char *name = esdm_dataset_name(dataset);
    g_autofree char *path = g_strconcat(above, "/", name, NULL);
    variable *v = NULL;
    tool_exit result = TOOL_OK;
    size_t i;
    const json_t *one;
    json_array_foreach(s->tolerances, i, one)
    {
        const char *option = json_string_value(one);
        g_autofree char *pattern = NULL;
        const char *text;
        if (option == NULL || !tool_wish_split(option, &pattern, &text)) {
            tool_error("a tolerance of the recipe is damaged");
            return TOOL_DAMAGED;
        }
        if (!g_pattern_match_simple(pattern, name) && !g_pattern_match_simple(pattern, path))
            continue;
        if (s->used != NULL)
            s->used[i] = true;
        if (v == NULL) {
            v = g_new0(variable, 1);
            *v = (variable){.path = g_strdup(path), .of = {dataset}, .scale = 1};
            esdm_accuracy_init(&v->accuracy);
            g_ptr_array_add(s->variables, v);
        }
        if (result == TOOL_OK)
            result = take_option(option, text, v);
    }
    if (v != NULL && result == TOOL_OK)
        find_missing(v);
    return result;
}

static tool_exit
look_below(search *s, const esdm_group *group, const char *above)
{
    tool_exit result = TOOL_OK;
    for (size_t i = 0; i < esdm_group_dataset_count(group) && result == TOOL_OK; i++)
        result = look_at(s, esdm_group_dataset_at(group, i), above);
    for (size_t i = 0; i < esdm_group_count(group) && result == TOOL_OK; i++) {
        const esdm_group *child = esdm_group_at(group, i);
        g_autofree char *path = g_strconcat(above, "/", esdm_group_name(child), NULL);
        result = look_below(s, child, path);
    }
    return result;
}

tool_exit
recipe_tolerances_fit(esdm_session *session, const char *name, const json_t *tolerances, bool *used)
{
    esdm_error err = {0};
    esdm_container *container = NULL;
    g_autoptr(GPtrArray) variables = g_ptr_array_new_with_free_func(free_variable);
    search s = {tolerances, used, variables};
    esdm_status st =
        esdm_container_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container, &err);
    if (st != ESDM_OK)
        return tool_fail(st, &err);
    tool_exit result = look_below(&s, esdm_container_root(container), "");
    esdm_container_discard(container);
    return result;
}

/* ---- values --------------------------------------------------------------------------------- */

static double
bound_of(const variable *v, double x)
{
    const esdm_accuracy *a = &v->accuracy;
    double bound = INFINITY;
    if ((a->stated & ESDM_ACCURACY_ABSOLUTE_TOLERANCE) != 0)
        bound = a->absolute_tolerance / fabs(v->scale);
    if ((a->stated & ESDM_ACCURACY_GRADIENT_TOLERANCE) != 0)
        bound = fmin(bound, a->gradient_tolerance / 2 / fabs(v->scale));
    if ((a->stated & ESDM_ACCURACY_VECTOR_TOLERANCE) != 0) {
        double components =
            (a->stated & ESDM_ACCURACY_VECTOR_COMPONENTS) != 0 ? a->vector_components : 2;
        bound = fmin(bound, a->vector_tolerance / sqrt(components) / fabs(v->scale));
    }
    if ((a->stated & ESDM_ACCURACY_RELATIVE_TOLERANCE) != 0) {
        double finest = (a->stated & ESDM_ACCURACY_RELATIVE_FINEST) != 0 ? a->relative_finest : 0;
        bound = fmin(bound, fmax(a->relative_tolerance * fabs(x), finest));
    }
    if ((a->stated & ESDM_ACCURACY_SIGNIFICANT_DIGITS) != 0)
        bound = fmin(bound, pow(10, -(double) a->significant_digits) * fabs(x));
    if ((a->stated & ESDM_ACCURACY_SIGNIFICANT_BITS) != 0)
        bound = fmin(bound, ldexp(fabs(x), -(int) a->significant_bits));
    return isfinite(bound) ? bound : 0; /* nothing is stated */
}

static bool
is_missing(const variable *v, double x)
{
    for (guint i = 0; i < v->nmissing; i++) {
        if (x == v->missing[i])
            return true;
    }
    return !isfinite(x);
}

/* What stands for no number must be the same on both sides. */
static void
compare_values(variable *v, const double *x, const double *y, guint64 count)
{
    for (guint64 i = 0; i < count; i++) {
        if (x[i] == y[i] || (isnan(x[i]) && isnan(y[i])))
            continue;
        bool numbers = !is_missing(v, x[i]) && !is_missing(v, y[i]);
        double by = numbers ? fabs(y[i] - x[i]) : INFINITY;
        v->different++;
        v->beyond += !(by <= bound_of(v, x[i]));
        v->largest = fmax(v->largest, by * fabs(v->scale));
    }
}

/* Memory for parts of both sides. */
typedef struct parts {
    guint64 most; /* elements */
    guint64 each; /* bytes of an element */
    void *stored[2];
    double *numbers[2];
} parts;

static esdm_status
compare_part(variable *v, const parts *p, const uint64_t *offset, const uint64_t *size,
             esdm_error *err)
{
    esdm_dataspace space;
    uint64_t ignored;
    uint32_t rank = esdm_dataset_rank(v->of[0]);
    esdm_type type = esdm_dataset_type(v->of[0]);
    guint64 count = 1;
    esdm_status st = esdm_dataspace_init(&space, rank, offset, size, err);
    for (uint32_t d = 0; d < rank; d++)
        count *= size[d];
    for (int i = 0; i < 2 && st == ESDM_OK; i++)
        st = esdm_read(v->of[i], &space, type, p->stored[i], NULL, err);
    if (st != ESDM_OK || memcmp(p->stored[0], p->stored[1], count * p->each) == 0)
        return st;
    for (int i = 0; i < 2 && st == ESDM_OK; i++)
        st = esdm_convert(type, p->stored[i], ESDM_TYPE_FLOAT64, p->numbers[i], count, &ignored,
                          err);
    if (st == ESDM_OK)
        compare_values(v, p->numbers[0], p->numbers[1], count);
    return st;
}

typedef esdm_status (*part_function)(variable *v, const parts *p, const uint64_t *offset,
                                     const uint64_t *size, esdm_error *err);

/* Halves a box until it fits. */
static esdm_status
each_part(variable *v, const parts *p, const uint64_t *offset, const uint64_t *size,
          part_function run, esdm_error *err)
{
    uint32_t rank = esdm_dataset_rank(v->of[0]);
    uint64_t at[ESDM_MAX_RANK], half[ESDM_MAX_RANK];
    guint64 count = 1;
    uint32_t axis = 0;
    for (uint32_t d = 0; d < rank; d++) {
        count *= size[d];
        at[d] = offset[d];
        half[d] = size[d];
    }
    if (count == 0)
        return ESDM_OK;
    if (count <= p->most)
        return run(v, p, offset, size, err);
    while (size[axis] == 1)
        axis++;
    half[axis] = size[axis] / 2;
    esdm_status st = each_part(v, p, at, half, run, err);
    at[axis] += half[axis];
    half[axis] = size[axis] - half[axis];
    return st == ESDM_OK ? each_part(v, p, at, half, run, err) : st;
}

static esdm_status
whole(variable *v, part_function run, esdm_error *err)
{
    uint64_t offset[ESDM_MAX_RANK] = {0}, size[ESDM_MAX_RANK];
    parts p = {.each = esdm_type_size(esdm_dataset_type(v->of[0]))};
    p.most = PART_BYTES / sizeof(double);
    for (uint32_t d = 0; d < esdm_dataset_rank(v->of[0]); d++)
        size[d] = esdm_dimension_length(esdm_dataset_dimension(v->of[0], d));
    for (int i = 0; i < 2; i++) {
        p.stored[i] = g_malloc(p.most * p.each);
        p.numbers[i] = g_malloc(p.most * sizeof(double));
    }
    esdm_status st = each_part(v, &p, offset, size, run, err);
    for (int i = 0; i < 2; i++) {
        g_free(p.stored[i]);
        g_free(p.numbers[i]);
    }
    return st;
}

/* ---- all else ------------------------------------------------------------------------------- */

static esdm_dataset *
dataset_at(esdm_container *container, const char *path)
{
    g_auto(GStrv) names = g_strsplit(path + 1, "/", -1);
    const esdm_group *group = esdm_container_root(container);
    guint last = g_strv_length(names) - 1;
    for (guint i = 0; i < last && group != NULL; i++)
        group = esdm_group_find(group, names[i]);
    return group != NULL ? esdm_group_dataset_find(group, names[last]) : NULL;
}

static bool
same_shape(const esdm_dataset *a, const esdm_dataset *b)
{
    bool same = esdm_dataset_type(a) == esdm_dataset_type(b) &&
                esdm_dataset_rank(a) == esdm_dataset_rank(b);
    for (uint32_t d = 0; same && d < esdm_dataset_rank(a); d++)
        same = esdm_dimension_length(esdm_dataset_dimension(a, d)) ==
               esdm_dimension_length(esdm_dataset_dimension(b, d));
    return same;
}

/* Writes fill values over a part. */
static esdm_status
blank_part(variable *v, const parts *p, const uint64_t *offset, const uint64_t *size,
           esdm_error *err)
{
    esdm_dataspace space;
    uint32_t rank = esdm_dataset_rank(v->of[0]);
    const void *fill = esdm_dataset_fill(v->of[0], NULL);
    guint64 count = 1;
    for (uint32_t d = 0; d < rank; d++)
        count *= size[d];
    for (guint64 i = 0; i < count; i++)
        memcpy((char *) p->stored[0] + i * p->each, fill, p->each);
    esdm_status st = esdm_dataspace_init(&space, rank, offset, size, err);
    return st == ESDM_OK
               ? esdm_write(v->of[0], &space, esdm_dataset_type(v->of[0]), p->stored[0], NULL, err)
               : st;
}

/* The digest of a container without the values that were compared: of a clone of it. */
static esdm_status
digest_of_rest(esdm_session *session, const char *name, const char *as, const GPtrArray *variables,
               char ret[ESDM_DIGEST_BYTES], esdm_error *err)
{
    esdm_container *clone = NULL;
    esdm_status st = esdm_container_clone(session, name, as, false, err);
    if (st == ESDM_OK)
        st = esdm_container_open(session, as, ESDM_OPEN_WRITE, ESDM_SNAPSHOT_LATEST, &clone, err);
    for (guint i = 0; i < variables->len && st == ESDM_OK; i++) {
        const variable *v = g_ptr_array_index(variables, i);
        variable blank = {.of = {dataset_at(clone, v->path)}};
        st = whole(&blank, blank_part, err);
    }
    if (st == ESDM_OK)
        st = esdm_container_commit(clone, "esdm-recipe: without values", err);
    if (st == ESDM_OK)
        st = esdm_container_digest(clone, 0, ret, err);
    if (clone != NULL)
        esdm_container_discard(clone);
    return st;
}

/* ---- both ----------------------------------------------------------------------------------- */

static json_t *
differences_json(const GPtrArray *variables)
{
    json_t *list = json_array();
    for (guint i = 0; i < variables->len; i++) {
        const variable *v = g_ptr_array_index(variables, i);
        json_t *object = json_object();
        if (v->of[1] == NULL)
            tool_json_set(object, "made", json_false());
        tool_json_set(object, "variable", tool_json_text(v->path));
        tool_json_set(object, "different", tool_json_u64(v->different));
        tool_json_set(object, "beyond", tool_json_u64(v->beyond));
        tool_json_set(object, "largest",
                      isfinite(v->largest) ? json_real(v->largest) : json_null());
        tool_json_append(list, object);
    }
    return list;
}

static tool_exit
compare_all(const GPtrArray *variables, esdm_container *made, bool *ret_within)
{
    esdm_error err = {0};
    *ret_within = true;
    for (guint i = 0; i < variables->len; i++) {
        variable *v = g_ptr_array_index(variables, i);
        v->of[1] = dataset_at(made, v->path);
        if (v->of[1] != NULL && !same_shape(v->of[0], v->of[1]))
            v->of[1] = NULL;
        esdm_status st = v->of[1] != NULL ? whole(v, compare_part, &err) : ESDM_OK;
        if (st != ESDM_OK)
            return tool_fail(st, &err);
        *ret_within = *ret_within && v->of[1] != NULL && v->beyond == 0;
    }
    return TOOL_OK;
}

tool_exit
recipe_compare_values(esdm_session *session, const char *name, const json_t *recipe,
                      recipe_replay *r)
{
    esdm_error err = {0};
    esdm_container *original = NULL, *made = NULL;
    char here[ESDM_DIGEST_BYTES], there[ESDM_DIGEST_BYTES];
    g_autofree char *one = g_strconcat(r->prefix, "/.compared/was", NULL);
    g_autofree char *other = g_strconcat(r->prefix, "/.compared/made", NULL);
    g_autoptr(GPtrArray) variables = g_ptr_array_new_with_free_func(free_variable);
    search s = {json_object_get(recipe, "tolerances"), NULL, variables};
    esdm_status st =
        esdm_container_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &original, &err);
    if (st == ESDM_OK)
        st = esdm_container_open(session, r->made, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &made,
                                 &err);
    tool_exit result =
        st == ESDM_OK ? look_below(&s, esdm_container_root(original), "") : tool_fail(st, &err);
    if (result == TOOL_OK)
        result = compare_all(variables, made, &r->within);
    if (result == TOOL_OK && r->within) {
        st = digest_of_rest(session, name, one, variables, here, &err);
        if (st == ESDM_OK)
            st = digest_of_rest(session, r->made, other, variables, there, &err);
        result = st == ESDM_OK ? TOOL_OK : tool_fail(st, &err);
        r->others_differ = result == TOOL_OK && !g_str_equal(here, there);
        r->within = result == TOOL_OK && !r->others_differ;
    }
    if (result == TOOL_OK)
        r->differences = differences_json(variables);
    esdm_container_discard(made);
    esdm_container_discard(original);
    return result;
}
