/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Which dimension the members continue each other along, and in which order their elements are. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "virtual/parts.h"

/* One element of a member along the joined dimension. */
typedef struct element {
    double key; /* milliseconds, or the coordinate itself */
    size_t member;
    uint64_t index;
    uint64_t rank; /* of the member among those that have this key: the least wins */
} element;

typedef struct finder {
    esdm__members *members;
    esdm_dataset *coordinate; /* of the member that is looked at */
    element *elements;
    size_t count;
    size_t capacity;
    esdm__calendar calendar; /* of the first member that was read */
    bool is_time;
    size_t first; /* that member */
} finder;

esdm_dataset *
esdm__member_dataset(esdm_container *member, const char *name)
{
    return esdm_group_dataset_find(esdm_container_root(member), name);
}

int
esdm__dataset_axis(const esdm_dataset *dataset, const char *dimension)
{
    for (uint32_t i = 0; i < dataset->rank; i++)
        if (strcmp(dataset->dimensions[i]->name, dimension) == 0)
            return (int) i;
    return -1;
}

const esdm__run *
esdm__axis_run(const esdm__axis *axis, uint64_t at)
{
    size_t low = 0;
    size_t high = axis->nruns;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (axis->runs[middle].start <= at)
            low = middle;
        else
            high = middle;
    }
    return &axis->runs[low];
}

esdm_status
esdm__space_of_all(const esdm_dataset *dataset, esdm_dataspace *ret, esdm_error *err)
{
    uint64_t size[ESDM_MAX_RANK];
    for (uint32_t i = 0; i < dataset->rank; i++)
        size[i] = esdm_dimension_length(dataset->dimensions[i]);
    return esdm_dataspace_init(ret, dataset->rank, NULL, size, err);
}

esdm_status
esdm__values_all(esdm_dataset *dataset, double **ret, uint64_t *ret_count, esdm_error *err)
{
    esdm_dataspace space;
    esdm_status status = esdm__space_of_all(dataset, &space, err);
    if (status != ESDM_OK)
        return status;
    uint64_t count = esdm_dataspace_elements(&space);
    double *values =
        count < SIZE_MAX / sizeof *values - 1 ? malloc((count + 1) * sizeof *values) : NULL;
    if (values == NULL)
        return esdm__error_nomem(err, (size_t) count * sizeof *values, "coordinates");
    status = esdm__io_read(dataset, &space, ESDM_TYPE_FLOAT64, values, NULL, err);
    if (status != ESDM_OK) {
        free(values);
        return status;
    }
    *ret = values;
    *ret_count = count;
    return ESDM_OK;
}

double
esdm__coordinate_spacing(const double *values, uint64_t count)
{
    double least = 0;
    for (uint64_t i = 1; i < count; i++) {
        double step = fabs(values[i] - values[i - 1]);
        if (step > 0 && (least == 0 || step < least))
            least = step;
    }
    return least;
}

bool
esdm__coordinate_same(double a, double b, double spacing)
{
    if (a == b || (isnan(a) && isnan(b)))
        return true;
    double distance = fabs(a - b);
    return distance <= fmax(fmax(fabs(a), fabs(b)), spacing) * (double) FLT_EPSILON &&
           (spacing == 0 || distance < 1e-3 * spacing);
}

/* ---- which dimension ---------------------------------------------------------------------- */

/* Numbers of a coordinate that can be compared: those of times are milliseconds. */
static esdm_status
keys_of(esdm_dataset *coordinate, double **ret, uint64_t *ret_count, esdm__meaning *ret_meaning,
        esdm_error *err)
{
    double *values = NULL;
    uint64_t count = 0;
    esdm_status status = esdm__meaning_of(coordinate, ret_meaning, err);
    if (status == ESDM_OK)
        status = esdm__values_all(coordinate, &values, &count, err);
    for (uint64_t i = 0; i < count && status == ESDM_OK; i++) {
        bool missing = isnan(values[i]);
        for (uint32_t k = 0; k < ret_meaning->nmarks; k++)
            missing = missing || values[i] == ret_meaning->marks[k];
        esdm__instant when;
        if (missing)
            status =
                esdm__error_set(err, ESDM_EINVAL, "the coordinate '%s' has no value at %" PRIu64,
                                coordinate->name, i);
        else if (ret_meaning->is_time && ret_meaning->time.unit_ns == 0)
            status = esdm__error_set(err, ESDM_EINVAL,
                                     "the units of '%s' are %s: months and years have no fixed "
                                     "length, so they cannot be joined",
                                     coordinate->name, ret_meaning->time_text);
        else if (ret_meaning->is_time && !esdm__time_decode(&ret_meaning->time, values[i], &when))
            status = esdm__error_set(err, ESDM_EINVAL, "the time '%s' at %" PRIu64 " is no date",
                                     coordinate->name, i);
        else if (ret_meaning->is_time) {
            when = esdm__instant_round(when);
            values[i] = (double) when.day * 86400000. + (double) (when.day_ns / 1000000);
        }
    }
    if (status != ESDM_OK) {
        free(values);
        return esdm__dataset_prefix(coordinate, status, err);
    }
    *ret = values;
    *ret_count = count;
    return ESDM_OK;
}

static bool
is_coordinate(const esdm_dataset *dataset)
{
    return dataset != NULL && dataset->rank == 1 && esdm__meaning_is_number(dataset->type) &&
           strcmp(dataset->dimensions[0]->name, dataset->name) == 0;
}

/* Whether two members have the same coordinate `name`; *ret_what says in what they differ. */
static esdm_status
same_coordinate(esdm_container *a, esdm_container *b, const char *name, bool *ret_same, char *what,
                size_t bytes, esdm_error *err)
{
    esdm_dataset *one = esdm__member_dataset(a, name);
    esdm_dataset *other = esdm__member_dataset(b, name);
    double *x = NULL;
    double *y = NULL;
    uint64_t nx = 0;
    uint64_t ny = 0;
    esdm__meaning mx;
    esdm__meaning my;
    *ret_same = true;
    if (!is_coordinate(one) || !is_coordinate(other))
        return ESDM_OK; /* told when structures are compared */
    esdm_status status = keys_of(one, &x, &nx, &mx, err);
    if (status == ESDM_OK)
        status = keys_of(other, &y, &ny, &my, err);
    uint64_t i = 0;
    double spacing = status == ESDM_OK && !mx.is_time ? esdm__coordinate_spacing(x, nx) : 0;
    while (status == ESDM_OK && nx == ny && i < nx &&
           (x[i] == y[i] || (!mx.is_time && esdm__coordinate_same(x[i], y[i], spacing))))
        i++;
    if (status == ESDM_OK && (nx != ny || i < nx)) {
        *ret_same = false;
        if (nx != ny)
            (void) snprintf(what, bytes, "'%s' has %" PRIu64 " and %" PRIu64 " values", name, nx,
                            ny);
        else
            (void) snprintf(what, bytes, "'%s' at %" PRIu64 " is %.9g and %.9g", name, i, x[i],
                            y[i]);
    }
    free(x);
    free(y);
    return status;
}

static esdm_status
two_dimensions(const esdm__members *members, size_t i, const char *one, const char *other,
               const char *what, esdm_error *err)
{
    return esdm__error_set(err, ESDM_EINVAL,
                           "'%s' and '%s' differ along '%s' and along '%s' (%s): members may "
                           "continue each other along one dimension only",
                           members->items[0].name, members->items[i].name, one, other, what);
}

/* Compares all dimensions of member `i` with those of the first one. */
static esdm_status
look_for_axis(esdm__members *members, size_t i, esdm_container *zero, esdm_container *other,
              esdm__axis *axis, esdm_error *err)
{
    const esdm_group *root = esdm_container_root(zero);
    esdm_status status = ESDM_OK;
    for (size_t d = 0; d < esdm_group_dimension_count(root) && status == ESDM_OK; d++) {
        const char *name = esdm_dimension_name(esdm_group_dimension_at(root, d));
        bool same = true;
        char what[200];
        status = same_coordinate(zero, other, name, &same, what, sizeof what, err);
        if (status != ESDM_OK || same || strcmp(axis->name, name) == 0)
            continue;
        if (axis->name[0] != '\0')
            status = two_dimensions(members, i, axis->name, name, what, err);
        else
            (void) snprintf(axis->name, sizeof axis->name, "%s", name);
    }
    return status;
}

static esdm_status
find_dimension(esdm__members *members, esdm__axis *axis, esdm_error *err)
{
    esdm_container *zero = NULL;
    esdm_status status = esdm__member_use(members, 0, &zero, err);
    if (status != ESDM_OK)
        return status;
    for (size_t i = 1; i < members->count && status == ESDM_OK; i++) {
        esdm_container *other = NULL;
        status = esdm__member_use(members, i, &other, err);
        if (status != ESDM_OK)
            break;
        status = look_for_axis(members, i, zero, other, axis, err);
        esdm__member_release(members, i);
    }
    esdm__member_release(members, 0);
    if (status == ESDM_OK && axis->name[0] == '\0')
        status = esdm__error_set(
            err, ESDM_EINVAL,
            "'%s' and '%s' have the same coordinates, so neither continues the other: name one "
            "more attribute in the query that tells them apart (of an ensemble: variant_label)",
            members->items[0].name, members->items[1].name);
    return status;
}

/* ---- order of the elements ---------------------------------------------------------------- */

static esdm_status
add_elements(finder *f, size_t member, const double *keys, uint64_t count, esdm_error *err)
{
    if (count > SIZE_MAX / sizeof *f->elements / 4 - f->count)
        return esdm__error_nomem(err, SIZE_MAX, "coordinates");
    if (f->count + count > f->capacity) {
        size_t capacity = 2 * (f->count + (size_t) count);
        element *grown = realloc(f->elements, capacity * sizeof *grown);
        if (grown == NULL)
            return esdm__error_nomem(err, capacity * sizeof *grown, "coordinates");
        f->elements = grown;
        f->capacity = capacity;
    }
    for (uint64_t i = 0; i < count; i++)
        f->elements[f->count++] = (element){keys[i], member, i, 0};
    return ESDM_OK;
}

/* Standard and proleptic are looked at again for each value (maps.c). */
static bool
calendars_agree(esdm__calendar a, esdm__calendar b)
{
    return a == b || ((a == ESDM__CALENDAR_STANDARD || a == ESDM__CALENDAR_PROLEPTIC) &&
                      (b == ESDM__CALENDAR_STANDARD || b == ESDM__CALENDAR_PROLEPTIC));
}

static esdm_status
add_member(finder *f, size_t i, const char *name, esdm_error *err)
{
    esdm_container *container = NULL;
    double *keys = NULL;
    uint64_t count = 0;
    esdm__meaning meaning;
    esdm_status status = esdm__member_use(f->members, i, &container, err);
    if (status != ESDM_OK)
        return status;
    esdm_dataset *coordinate = esdm__member_dataset(container, name);
    if (!is_coordinate(coordinate))
        status = esdm__error_set(err, ESDM_EINVAL,
                                 "'%s' has a coordinate '%s' along the dimension of that name, and "
                                 "'%s' has none",
                                 f->members->items[0].name, name, f->members->items[i].name);
    if (status == ESDM_OK)
        status = keys_of(coordinate, &keys, &count, &meaning, err);
    if (status == ESDM_OK && i > 0 &&
        (meaning.is_time != f->is_time ||
         (meaning.is_time && !calendars_agree(meaning.time.calendar, f->calendar))))
        status = esdm__error_set(
            err, ESDM_EINVAL, "'%s' has '%s' in the calendar %s, '%s' in %s: these do not join",
            f->members->items[0].name, name, f->is_time ? esdm__calendar_name(f->calendar) : "none",
            f->members->items[i].name,
            meaning.is_time ? esdm__calendar_name(meaning.time.calendar) : "none");
    if (status == ESDM_OK && i == 0) {
        f->is_time = meaning.is_time;
        f->calendar = meaning.is_time ? meaning.time.calendar : ESDM__CALENDAR_STANDARD;
    }
    if (status == ESDM_OK)
        status = add_elements(f, i, keys, count, err);
    free(keys);
    esdm__member_release(f->members, i);
    return status;
}

static int
by_key(const void *a, const void *b)
{
    const element *x = a;
    const element *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->member != y->member)
        return x->member < y->member ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Which member wins where several have a value: the one that begins first, or the newest. */
static esdm_status
rank_members(finder *f, esdm__overlap_rule rule, esdm_error *err)
{
    const esdm__members *members = f->members;
    double *least = malloc(members->count * sizeof *least);
    uint64_t *ranks = calloc(members->count, sizeof *ranks);
    if (least == NULL || ranks == NULL) {
        free(least);
        free(ranks);
        return esdm__error_nomem(err, members->count * sizeof *least, "members");
    }
    for (size_t i = 0; i < members->count; i++)
        least[i] = INFINITY;
    for (size_t i = 0; i < f->count; i++)
        least[f->elements[i].member] = fmin(least[f->elements[i].member], f->elements[i].key);
    uint64_t rank = 0;
    qsort(f->elements, f->count, sizeof *f->elements, by_key);
    for (size_t i = 0; i < f->count; i++) { /* members in the order of their beginnings */
        size_t m = f->elements[i].member;
        if (ranks[m] == 0 && f->elements[i].key == least[m])
            ranks[m] = ++rank;
    }
    for (size_t i = 0; i < f->count; i++) {
        size_t m = f->elements[i].member;
        f->elements[i].rank =
            rule == ESDM__OVERLAP_NEWEST ? UINT64_MAX - members->items[m].modified_ns : ranks[m];
    }
    qsort(f->elements, f->count, sizeof *f->elements, by_key);
    free(least);
    free(ranks);
    return ESDM_OK;
}

static esdm_status
make_runs(const finder *f, esdm__axis *axis, esdm_error *err)
{
    axis->runs = malloc((f->count + 1) * sizeof *axis->runs);
    axis->twice = malloc((f->count + 1) * sizeof *axis->twice);
    if (axis->runs == NULL || axis->twice == NULL)
        return esdm__error_nomem(err, f->count * sizeof *axis->runs, "coordinates");
    for (size_t i = 0; i < f->count; i++) {
        const element *e = &f->elements[i];
        const element *before = i > 0 ? &f->elements[i - 1] : NULL;
        if (before != NULL && before->key == e->key) {
            if (before->member == e->member)
                return esdm__error_set(err, ESDM_EINVAL,
                                       "'%s' has the same value of '%s' at %" PRIu64
                                       " and at %" PRIu64 ": it cannot be joined with others",
                                       f->members->items[e->member].name, axis->name, before->index,
                                       e->index);
            axis->twice[axis->ntwice++] = (esdm__twice){axis->length - 1, e->member, e->index};
            continue;
        }
        esdm__run *last = axis->nruns > 0 ? &axis->runs[axis->nruns - 1] : NULL;
        if (last != NULL && last->member == e->member && last->first + last->count == e->index)
            last->count++;
        else
            axis->runs[axis->nruns++] = (esdm__run){axis->length, 1, e->member, e->index};
        axis->length++;
    }
    return ESDM_OK;
}

esdm_status
esdm__axis_find(esdm__members *members, esdm__overlap_rule rule, esdm__axis *ret, esdm_error *err)
{
    finder f = {.members = members};
    esdm_status status = find_dimension(members, ret, err);
    for (size_t i = 0; i < members->count && status == ESDM_OK; i++)
        status = add_member(&f, i, ret->name, err);
    if (status == ESDM_OK)
        status = rank_members(&f, rule, err);
    if (status == ESDM_OK)
        status = make_runs(&f, ret, err);
    if (status == ESDM_OK && ret->nruns > 0)
        ret->first = ret->runs[0].member;
    free(f.elements);
    return status;
}

void
esdm__axis_clear(esdm__axis *axis)
{
    free(axis->runs);
    free(axis->twice);
    *axis = (esdm__axis){0};
}
