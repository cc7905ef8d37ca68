/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The values of a dimension, and the order of members and their elements by them. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "virtual/parts.h"

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
esdm__values_room(const esdm_dataset *dataset, esdm_dataspace *ret_space, double **ret,
                  uint64_t *ret_count, esdm_error *err)
{
    esdm_status status = esdm__space_of_all(dataset, ret_space, err);
    if (status != ESDM_OK)
        return status;
    uint64_t count = esdm_dataspace_elements(ret_space);
    *ret = count < SIZE_MAX / sizeof **ret - 1 ? malloc((count + 1) * sizeof **ret) : NULL;
    if (*ret == NULL)
        return esdm__error_nomem(err, (size_t) count * sizeof **ret, "the values of a variable");
    *ret_count = count;
    return ESDM_OK;
}

esdm_status
esdm__values_all(esdm_dataset *dataset, double **ret, uint64_t *ret_count, esdm_error *err)
{
    esdm_dataspace space;
    double *values;
    uint64_t count;
    esdm_status status = esdm__values_room(dataset, &space, &values, &count, err);
    if (status != ESDM_OK)
        return status;
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

/* ---- keys --------------------------------------------------------------------------------- */

static esdm_status
key_of(const esdm_dataset *coordinate, const esdm__meaning *meaning, uint64_t i, double *value,
       esdm_error *err)
{
    bool missing = isnan(*value);
    esdm__instant when;
    for (uint32_t k = 0; k < meaning->nmarks; k++)
        missing = missing || *value == meaning->marks[k];
    if (missing)
        return esdm__error_set(err, ESDM_EINVAL, "the coordinate '%s' has no value at %" PRIu64,
                               coordinate->name, i);
    if (!meaning->is_time)
        return ESDM_OK;
    if (meaning->time.unit_ns == 0)
        return esdm__error_set(err, ESDM_EINVAL,
                               "the units of '%s' are %s: months and years have no fixed length, "
                               "so they cannot be joined",
                               coordinate->name, meaning->time_text);
    if (!esdm__time_decode(&meaning->time, *value, &when))
        return esdm__error_set(err, ESDM_EINVAL, "the time '%s' at %" PRIu64 " is no date",
                               coordinate->name, i);
    *value = esdm__instant_ms(when);
    return ESDM_OK;
}

bool
esdm__is_coordinate(const esdm_dataset *dataset)
{
    return dataset != NULL && dataset->rank == 1 && esdm__meaning_is_number(dataset->type) &&
           strcmp(dataset->dimensions[0]->name, dataset->name) == 0;
}

/* Keys are milliseconds: what is closer would be one of both, and the other one lost. Numbers that
 * differ by their rounding alone mean the same time. */
static esdm_status
check_steps(const esdm_dataset *coordinate, const double numbers[2], const double keys[2],
            uint64_t i, esdm_error *err)
{
    double epsilon = coordinate->type == ESDM_TYPE_FLOAT32 ? (double) FLT_EPSILON : DBL_EPSILON;
    double noise = 8 * epsilon * fmax(fabs(numbers[0]), fabs(numbers[1]));
    if (keys[0] != keys[1] || fabs(numbers[0] - numbers[1]) <= noise)
        return ESDM_OK;
    return esdm__error_set(err, ESDM_EINVAL,
                           "the times '%s' at %" PRIu64 " and at %" PRIu64
                           " are less than a millisecond apart, which cannot be joined",
                           coordinate->name, i - 1, i);
}

esdm_status
esdm__keys_of(esdm_dataset *dataset, esdm__keys *ret, esdm_error *err)
{
    esdm__keys keys = {0};
    esdm__meaning meaning;
    *ret = keys;
    if (!esdm__is_coordinate(dataset) &&
        (dataset == NULL || dataset->rank != 0 || !esdm__meaning_is_number(dataset->type)))
        return ESDM_OK;
    esdm_status status = esdm__meaning_of(dataset, &meaning, err);
    if (status == ESDM_OK)
        status = esdm__values_all(dataset, &keys.values, &keys.count, err);
    double number = 0;
    for (uint64_t i = 0; i < keys.count && status == ESDM_OK; i++) {
        const double numbers[2] = {number, keys.values[i]};
        number = numbers[1];
        status = key_of(dataset, &meaning, i, &keys.values[i], err);
        if (status == ESDM_OK && meaning.is_time && i > 0)
            status = check_steps(dataset, numbers, &keys.values[i - 1], i, err);
    }
    if (status != ESDM_OK) {
        free(keys.values);
        return esdm__dataset_prefix(dataset, status, err);
    }
    keys.is_time = meaning.is_time;
    keys.calendar = meaning.is_time ? meaning.time.calendar : ESDM__CALENDAR_STANDARD;
    keys.spacing = keys.is_time ? 0 : esdm__coordinate_spacing(keys.values, keys.count);
    *ret = keys;
    return ESDM_OK;
}

void
esdm__keys_clear(esdm__keys *keys)
{
    free(keys->values);
    *keys = (esdm__keys){0};
}

/* ---- order of the elements ---------------------------------------------------------------- */

/* One element of a member along the joined dimension. */
typedef struct element {
    double key; /* milliseconds, or the coordinate itself */
    size_t member;
    uint64_t index;
    uint64_t rank; /* of the member among those that have this key: the least wins */
} element;

typedef struct finder {
    const esdm__members *members;
    element *elements;
    size_t count;
} finder;

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
            axis->nwithin += before->member == e->member;
            axis->twice[axis->ntwice++] = (esdm__twice){axis->length - 1, e->member, e->index};
            continue;
        }
        esdm__run *last = axis->nruns > 0 ? &axis->runs[axis->nruns - 1] : NULL;
        /* What is counted is set. NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinary*) */
        if (last != NULL && last->member == e->member && last->first + last->count == e->index)
            last->count++;
        else
            axis->runs[axis->nruns++] = (esdm__run){axis->length, 1, e->member, e->index};
        axis->length++;
    }
    return ESDM_OK;
}

static esdm_status
add_elements(finder *f, const esdm__keys *keys, esdm_error *err)
{
    uint64_t count = 0;
    for (size_t m = 0; m < f->members->count; m++)
        if (__builtin_add_overflow(count, keys[m].count, &count))
            return esdm__error_nomem(err, SIZE_MAX, "coordinates");
    f->elements =
        count < SIZE_MAX / sizeof *f->elements ? malloc((count + 1) * sizeof *f->elements) : NULL;
    if (f->elements == NULL)
        return esdm__error_nomem(err, (size_t) count * sizeof *f->elements, "coordinates");
    for (size_t m = 0; m < f->members->count; m++)
        for (uint64_t i = 0; i < keys[m].count; i++)
            f->elements[f->count++] = (element){keys[m].values[i], m, i, 0};
    return ESDM_OK;
}

esdm_status
esdm__axis_sort(const esdm__members *members, esdm__overlap_rule rule, const esdm__keys *keys,
                esdm__axis *axis, esdm_error *err)
{
    finder f = {.members = members};
    esdm_status status = add_elements(&f, keys, err);
    if (status == ESDM_OK)
        status = rank_members(&f, rule, err);
    if (status == ESDM_OK)
        status = make_runs(&f, axis, err);
    if (status == ESDM_OK && axis->nruns > 0)
        /* What is counted is set. NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign) */
        axis->first = axis->runs[0].member;
    free(f.elements);
    return status;
}

void
esdm__axis_clear(esdm__axis *axis)
{
    free(axis->runs);
    free(axis->twice);
    free(axis->filled);
    esdm__buffer_clear(&axis->told);
    *axis = (esdm__axis){0};
}
