/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What must be equal in all members, but for the joined dimension. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cf/units.h"
#include "query/query.h"
#include "virtual/parts.h"

static esdm_status
check_kind(const esdm__pair *p, esdm_container *container, const char *name, esdm_error *err)
{
    for (size_t i = 0; i < container->dimensions.count; i++) {
        const esdm_dimension *d = container->dimensions.items[i];
        if (d->group->parent != NULL && strcmp(d->name, p->axis) == 0)
            return esdm__error_set(err, ESDM_ENOTSUP,
                                   "'%s' has a dimension '%s' of its own in the group '%s': only "
                                   "those of the root group are joined by this version",
                                   name, p->axis, d->group->name);
    }
    if (container->types.count > 0)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "'%s' has user-defined types: containers with these are not joined "
                               "by this version",
                               name);
    return ESDM_OK;
}

static esdm_status
check_dimensions(const esdm__pair *p, const esdm_dataset *x, const esdm_dataset *y, esdm_error *err)
{
    uint32_t axes[ESDM_MAX_RANK];
    if (!esdm__member_axes(x, y, p->axis, axes))
        return esdm__error_set(err, ESDM_EINVAL,
                               "variable '%s' has other dimensions in '%s' than in '%s'", x->name,
                               p->other, p->one);
    for (uint32_t i = 0; i < y->rank; i++) {
        const char *name = y->dimensions[i]->name;
        uint64_t n = esdm_dimension_length(x->dimensions[axes[i]]);
        uint64_t m = esdm_dimension_length(y->dimensions[i]);
        if (n != m && (p->axis == NULL || strcmp(name, p->axis) != 0) &&
            (p->cross == NULL || strcmp(name, p->cross) != 0))
            return esdm__error_set(err, ESDM_EINVAL,
                                   "dimension '%s' of variable '%s' has length %" PRIu64
                                   " in '%s' and %" PRIu64 " in '%s'",
                                   name, x->name, n, p->one, m, p->other);
    }
    return ESDM_OK;
}

static esdm_status
check_type(const esdm__pair *p, const esdm_dataset *x, const esdm_dataset *y, esdm_error *err)
{
    if (esdm__type_of_both(x->type, y->type) != ESDM_TYPE_NONE)
        return ESDM_OK;
    return esdm__error_set(err, ESDM_EINVAL,
                           "no type holds the values of variable '%s' of both '%s' and '%s'",
                           x->name, p->one, p->other);
}

/* Whether two texts are the same unit: "K" and "kelvin". */
static bool
same_units(const char *one, const char *other)
{
    bool known = false;
    double slope = 0;
    double offset = 0;
    return esdm__units_convert(one, other, &known, &slope, &offset, NULL) == ESDM_OK &&
           slope == 1 && offset == 0;
}

/* What numbers of categories stand for; a member may say nothing of it. */
static esdm_status
check_flags(const esdm__pair *p, const esdm_dataset *x, const esdm_dataset *y, esdm_error *err)
{
    static const char *const names[] = {"flag_values", "flag_masks", "flag_meanings"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        esdm_attribute a, b;
        if (esdm_attribute_find(&x->attributes, names[i], &a, NULL) &&
            esdm_attribute_find(&y->attributes, names[i], &b, NULL) && a.type == b.type &&
            a.type != ESDM_TYPE_STRING &&
            (a.count != b.count ||
             memcmp(a.values, b.values, (size_t) a.count * esdm_type_size(a.type)) != 0))
            return esdm__error_set(err, ESDM_EINVAL, "variable '%s' has other %s in '%s' and '%s'",
                                   x->name, names[i], p->one, p->other);
    }
    return ESDM_OK;
}

static bool
as_numbers(const esdm_attribute *a, double *values, uint64_t most)
{
    return a->count <= most && esdm__meaning_is_number(a->type) &&
           esdm_convert(a->type, a->values, ESDM_TYPE_FLOAT64, values, a->count, NULL, NULL) ==
               ESDM_OK;
}

/* Of a variable, not of a mapping: what GDAL says of one tile, and marks of missing values. */
static bool
says_nothing_of_mapping(const char *name)
{
    static const char *const names[] = {"_FillValue",  "missing_value", "valid_min",   "valid_max",
                                        "valid_range", "actual_range",  "GeoTransform"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

/* Smaller numbers are 0, which was computed. */
#define NOTHING 1e-8

/* 198 degrees east are 162 degrees west. */
static bool
same_number(const char *name, double a, double b)
{
    if (strstr(name, "longitude") != NULL)
        b += 360 * round((a - b) / 360);
    return esdm__coordinate_same(a, b, 0) || fmax(fabs(a), fabs(b)) < NOTHING;
}

/* Numbers of a grid mapping say where on Earth x and y lie: a pole, a parallel, an ellipsoid. Its
 * texts but the name may be written in several ways. */
static esdm_status
check_grid_mapping(const esdm__pair *p, const esdm_dataset *x, const esdm_dataset *y,
                   esdm_error *err)
{
    static const char name[] = "grid_mapping_name";
    char text[100];
    char other_text[100];
    esdm__attribute_text(x, name, text, sizeof text);
    esdm__attribute_text(y, name, other_text, sizeof other_text);
    if (text[0] == '\0' || other_text[0] == '\0')
        return ESDM_OK;
    if (strcmp(text, other_text) != 0)
        return esdm__error_set(err, ESDM_EINVAL,
                               "variable '%s' has %s '%.80s' in '%s' and '%.80s' in '%s'", x->name,
                               name, text, p->one, other_text, p->other);
    for (size_t i = 0; i < esdm_attribute_count(&x->attributes); i++) {
        esdm_attribute a, b;
        double one[32], other[32];
        if (!esdm_attribute_at(&x->attributes, i, &a) ||
            !esdm_attribute_find(&y->attributes, a.name, &b, NULL) || !as_numbers(&a, one, 32) ||
            !as_numbers(&b, other, 32) || says_nothing_of_mapping(a.name) || a.count == 0 ||
            b.count == 0)
            continue;
        /* One parallel is two that are equal. */
        for (uint64_t k = 0; k < a.count || k < b.count; k++) {
            double here = one[k < a.count ? k : a.count - 1];
            double there = other[k < b.count ? k : b.count - 1];
            if (!same_number(a.name, here, there))
                return esdm__error_set(err, ESDM_EINVAL,
                                       "the grid mapping '%s' has another %s in '%s' (%.9g) than "
                                       "in '%s' (%.9g)",
                                       x->name, a.name, p->other, there, p->one, here);
        }
    }
    return ESDM_OK;
}

/* Who says nothing of methods means the same, unless one of both has cells and the other points. */
static bool
same_cells(const esdm__pair *p, const char *one, const char *other)
{
    if (one[0] != '\0' && other[0] != '\0')
        return esdm__same_methods(one, other);
    return p->axis != NULL && esdm__has_cells(p->a, p->axis) == esdm__has_cells(p->b, p->axis);
}

/* Texts that say what the numbers are. */
static esdm_status
check_attributes(const esdm__pair *p, const esdm_dataset *x, const esdm_dataset *y, esdm_error *err)
{
    static const char methods[] = "cell_methods";
    static const char *const names[] = {"units",        "standard_name", methods,    "positive",
                                        "grid_mapping", "formula_terms", "_Unsigned"};
    char one[1000];
    char other[1000];
    esdm__meaning mx;
    esdm__meaning my;
    esdm_status status = esdm__meaning_of(x, &mx, err);
    if (status == ESDM_OK)
        status = esdm__meaning_of(y, &my, err);
    if (status != ESDM_OK)
        return status;
    for (size_t i = mx.is_time && my.is_time ? 1 : 0; i < sizeof names / sizeof *names; i++) {
        esdm__attribute_text(x, names[i], one, sizeof one);
        esdm__attribute_text(y, names[i], other, sizeof other);
        if (strcmp(one, other) != 0 && !(i == 0 && same_units(one, other)) &&
            !(names[i] == methods && same_cells(p, one, other)))
            return esdm__error_set(err, ESDM_EINVAL,
                                   "variable '%s' has %s '%.80s' in '%s' and '%.80s' in '%s'",
                                   x->name, names[i], one, p->one, other, p->other);
    }
    status = check_flags(p, x, y, err);
    return status == ESDM_OK ? check_grid_mapping(p, x, y, err) : status;
}

/* A value as meant() has it: a date, of times. */
static void
say_value(const esdm_dataset *x, double value, char text[40])
{
    esdm__meaning meaning;
    if (esdm__meaning_of(x, &meaning, NULL) == ESDM_OK && meaning.is_time && !isnan(value))
        esdm__ms_format(meaning.time.calendar, value, text);
    else
        (void) snprintf(text, 40, "%.9g", value);
}

static esdm_status
differ_at(const esdm__pair *p, const esdm_dataset *x, uint64_t at, double one, double other,
          esdm_error *err)
{
    char first[40], second[40];
    say_value(x, one, first);
    say_value(x, other, second);
    if (p->axis == NULL)
        return esdm__error_set(err, ESDM_EINVAL,
                               "variable '%s' is %s in '%s' and %s in '%s' (element %" PRIu64
                               "), so others are not put together",
                               x->name, first, p->one, second, p->other, at);
    return esdm__error_set(err, ESDM_EINVAL,
                           "variable '%s', which does not depend on '%s', is %s in '%s' and %s in "
                           "'%s' (element %" PRIu64 ")",
                           x->name, p->axis, first, p->one, second, p->other, at);
}

/* What a number stands for: unpacked, times as milliseconds; NaN is no value. */
static double
meant(const esdm__meaning *m, double value)
{
    esdm__instant when;
    if (esdm__meaning_is_missing(m, value))
        return NAN;
    if (m->packed)
        value = value * m->scale + m->offset;
    if (!m->is_time || !esdm__time_decode(&m->time, value, &when))
        return value;
    return esdm__instant_ms(when);
}

static esdm_status
meant_by(const esdm__pair *p, const esdm_dataset *x, esdm_dataset *y, double **ret,
         uint64_t *ret_count, esdm_error *err)
{
    esdm_dataspace space;
    esdm__meaning meaning;
    double *values;
    uint64_t count;
    esdm_status status = esdm__meaning_of(y, &meaning, err);
    if (status == ESDM_OK)
        status = esdm__values_room(x, &space, &values, &count, err);
    if (status != ESDM_OK)
        return status;
    status = esdm__member_read(x, y, p->axis, y->group->container == p->b ? p->flips : 0, &space,
                               ESDM_TYPE_FLOAT64, values, NULL, err);
    for (uint64_t i = 0; i < count && status == ESDM_OK; i++)
        values[i] = meant(&meaning, values[i]);
    if (status != ESDM_OK) {
        free(values);
        return status;
    }
    *ret = values;
    *ret_count = count;
    return ESDM_OK;
}

/* Bounds of a coordinate in reversed order have their two ends exchanged. */
static bool
same_exchanged(const double *one, const double *other, uint64_t count)
{
    uint64_t i = 0;
    while (i < count && esdm__coordinate_same(one[i], other[i ^ 1u], 0))
        i++;
    return i == count;
}

static esdm_status
check_numbers(const esdm__pair *p, esdm_dataset *x, esdm_dataset *y, esdm_error *err)
{
    double *one = NULL;
    double *other = NULL;
    uint64_t count = 0;
    uint64_t same = 0;
    esdm_status status = meant_by(p, x, x, &one, &count, err);
    if (status == ESDM_OK)
        status = meant_by(p, x, y, &other, &count, err);
    bool coordinate = x->rank == 1 && strcmp(x->dimensions[0]->name, x->name) == 0;
    double spacing = status == ESDM_OK && coordinate ? esdm__coordinate_spacing(one, count) : 0;
    while (status == ESDM_OK && same < count &&
           esdm__coordinate_same(one[same], other[same], spacing))
        same++;
    bool pairs = x->rank > 1 && esdm_dimension_length(x->dimensions[x->rank - 1]) == 2;
    if (status == ESDM_OK && same < count &&
        !(p->flips != 0 && pairs && same_exchanged(one, other, count)))
        status = differ_at(p, x, same, one[same], other[same], err);
    free(one);
    free(other);
    return status;
}

static esdm_status
another_text(const esdm__pair *p, const esdm_dataset *x, esdm_error *err)
{
    if (p->axis == NULL)
        return esdm__error_set(err, ESDM_EINVAL,
                               "variable '%s' has another text in '%s' than in '%s'", x->name,
                               p->other, p->one);
    return esdm__error_set(err, ESDM_EINVAL,
                           "variable '%s', which does not depend on '%s', has another text in '%s' "
                           "than in '%s'",
                           x->name, p->axis, p->other, p->one);
}

/* @param size of an element in memory. */
static esdm_status
read_both(const esdm__pair *p, esdm_dataset *x, esdm_dataset *y, size_t size, void **ret_one,
          void **ret_other, uint64_t *ret_count, esdm_error *err)
{
    esdm_dataspace space;
    esdm_status status = esdm__space_of_all(x, &space, err);
    if (status != ESDM_OK)
        return status;
    *ret_count = esdm_dataspace_elements(&space);
    *ret_one = calloc((size_t) *ret_count + 1, size);
    *ret_other = calloc((size_t) *ret_count + 1, size);
    if (*ret_one == NULL || *ret_other == NULL)
        return esdm__error_nomem(err, (size_t) *ret_count * size, "a variable");
    status = esdm__io_read(x, &space, x->type, *ret_one, NULL, err);
    if (status == ESDM_OK)
        status = esdm__member_read(x, y, p->axis, p->flips, &space, x->type, *ret_other, NULL, err);
    return status;
}

static esdm_status
check_characters(const esdm__pair *p, esdm_dataset *x, esdm_dataset *y, esdm_error *err)
{
    void *one = NULL;
    void *other = NULL;
    uint64_t count = 0;
    esdm_status status = read_both(p, x, y, 1, &one, &other, &count, err);
    if (status == ESDM_OK && memcmp(one, other, (size_t) count) != 0)
        status = another_text(p, x, err);
    free(one);
    free(other);
    return status;
}

static esdm_status
check_texts(const esdm__pair *p, esdm_dataset *x, esdm_dataset *y, esdm_error *err)
{
    char **one = NULL;
    char **other = NULL;
    uint64_t count = 0;
    esdm_status status =
        read_both(p, x, y, sizeof(char *), (void **) &one, (void **) &other, &count, err);
    for (uint64_t i = 0; i < count && status == ESDM_OK; i++)
        if (strcmp(one[i] != NULL ? one[i] : "", other[i] != NULL ? other[i] : "") != 0)
            status = another_text(p, x, err);
    for (uint64_t i = 0; i < count; i++) {
        free(one != NULL ? one[i] : NULL);
        free(other != NULL ? other[i] : NULL);
    }
    free(one);
    free(other);
    return status;
}

/* Of what does not depend on the joined dimension the values must be equal. */
static esdm_status
check_values(const esdm__pair *p, esdm_dataset *x, esdm_dataset *y, esdm_error *err)
{
    if (x->type == ESDM_TYPE_STRING)
        return check_texts(p, x, y, err);
    return x->type == ESDM_TYPE_CHAR ? check_characters(p, x, y, err) : check_numbers(p, x, y, err);
}

/* Whether each member has its own part of it. */
static bool
is_along(const esdm__pair *p, const esdm_dataset *x)
{
    if (p->axis == NULL)
        return false;
    if (p->cross != NULL && esdm__dataset_axis(x, p->cross) >= 0)
        return true;
    for (size_t k = 0; p->stacked != NULL && k < p->a->datasets.count; k++)
        if (p->a->datasets.items[k] == x)
            return p->stacked[k].stacked;
    return esdm__dataset_axis(x, p->axis) >= 0;
}

bool
esdm__is_bounds(const esdm_dataset *dataset)
{
    static const char *const names[] = {"bounds", "climatology"};
    char text[ESDM_NAME_MAX + 1];
    for (size_t i = 0; i < esdm_group_dataset_count(dataset->group); i++) {
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            esdm__attribute_text(esdm_group_dataset_at(dataset->group, i), names[k], text,
                                 sizeof text);
            if (strcmp(text, dataset->name) == 0)
                return true;
        }
    }
    return false;
}

static esdm_status
lacks(const char *who, const char *what, const char *other, esdm_error *err)
{
    return esdm__error_set(err, ESDM_EINVAL, "'%s' has no variable '%s', which '%s' has", who, what,
                           other);
}

esdm_status
esdm__pair_compare_dataset(const esdm__pair *p, esdm_dataset *x, esdm_error *err)
{
    esdm_dataset *y = esdm__member_same(p->b, x);
    if (y == NULL && esdm__is_bounds(x))
        return ESDM_OK; /* left out of the whole */
    if (y == NULL)
        return lacks(p->other, x->name, p->one, err);
    esdm_status status = check_dimensions(p, x, y, err);
    if (status == ESDM_OK)
        status = check_type(p, x, y, err);
    if (status == ESDM_OK)
        status = check_attributes(p, x, y, err);
    if (status == ESDM_OK && !is_along(p, x))
        status = check_values(p, x, y, err);
    return status;
}

/* Monthly and yearly values are no series. */
static esdm_status
check_frequency(const esdm__pair *p, esdm_error *err)
{
    char *one = esdm__global_text(p->a, "frequency");
    char *other = esdm__global_text(p->b, "frequency");
    esdm_status status = ESDM_OK;
    if (one != NULL && other != NULL && one[0] != '\0' && other[0] != '\0' &&
        !esdm__same_frequency(one, other))
        status =
            esdm__error_set(err, ESDM_EINVAL, "'%s' has the frequency '%.20s' and '%s' '%.20s'",
                            p->one, one, p->other, other);
    free(one);
    free(other);
    return status;
}

esdm_status
esdm__pair_compare(const esdm__pair *p, esdm_error *err)
{
    esdm_status status = check_kind(p, p->a, p->one, err);
    if (status == ESDM_OK && p->axis != NULL && p->stacked == NULL)
        status = check_frequency(p, err);
    if (status == ESDM_OK)
        status = check_kind(p, p->b, p->other, err);
    for (size_t i = 0; i < p->a->datasets.count && status == ESDM_OK; i++)
        status = esdm__pair_compare_dataset(p, p->a->datasets.items[i], err);
    for (size_t i = 0; i < p->b->datasets.count && status == ESDM_OK; i++) {
        const esdm_dataset *y = p->b->datasets.items[i];
        if (esdm__member_same(p->a, y) == NULL && !esdm__is_bounds(y))
            status = lacks(p->one, y->name, p->other, err);
    }
    return status;
}
