/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/read/reduce.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "io/container/missing.h"
#include "io/read/read.h"
#include "io/read/statistics.h"

/* Values in memory at a time. */
#define READ_BYTES (UINT64_C(16) << 20)
/* Below, looking for statistics costs more than reading. */
#define LEAST_ELEMENTS 1024u

/* What is known of one result so far. */
typedef struct cell {
    double sum; /* of the differences to `first` when the variance is wanted, else of the values */
    double extra; /* minimum, maximum, or sum of the squared differences */
    double first; /* valid value */
    uint64_t valid;
} cell;

typedef struct reducer {
    esdm_dataset *dataset;
    esdm_reduction what;
    const bool *over;
    const esdm__box *box;           /* all of it */
    uint64_t stride[ESDM_MAX_RANK]; /* of the results, along each axis; 0 along those reduced */
    cell *cells;                    /* owned; NULL for sums, means and counts, which have: */
    double *sums;                   /* owned */
    uint64_t *valid;                /* owned */
    uint64_t ncells;
    double missing[ESDM__MISSING_MOST];
    uint32_t nmissing;
    double *buffer; /* owned */
} reducer;

/* ---- values -------------------------------------------------------------------------------- */

static inline bool
is_valid(const reducer *r, double x)
{
    if (isnan(x))
        return false;
    for (uint32_t i = 0; i < r->nmissing; i++) {
        if (x == r->missing[i])
            return false;
    }
    return true;
}

static inline void
add_value(const reducer *r, cell *c, double x)
{
    if (c->valid == 0) {
        c->first = x;
        c->extra = r->what == ESDM_REDUCE_VARIANCE ? 0 : x;
    }
    c->valid++;
    if (r->what == ESDM_REDUCE_VARIANCE) {
        double difference = x - c->first;
        c->sum += difference;
        c->extra += difference * difference;
        return;
    }
    c->sum += x;
    if (r->what == ESDM_REDUCE_MIN ? x < c->extra : x > c->extra)
        c->extra = x;
}

/* The result that the first element of a box belongs to. */
static uint64_t
cell_of(const reducer *r, const esdm__box *box)
{
    uint64_t at = 0;
    for (uint32_t d = 0; d < box->rank; d++)
        at += (box->lo[d] - r->box->lo[d]) * r->stride[d];
    return at;
}

/* A row of values whose results lie beside each other, or are one (`step` 0). */
static void
add_row(reducer *r, const double *values, uint64_t n, uint64_t at, uint64_t step)
{
    if (r->cells != NULL) {
        for (uint64_t i = 0; i < n; i++, at += step) {
            if (is_valid(r, values[i]))
                add_value(r, &r->cells[at], values[i]);
        }
        return;
    }
    double *sums = r->sums + at;
    uint64_t *valid = r->valid + at;
    if (step == 1 && r->nmissing <= 1) { /* most of all work is done here */
        double missing = r->nmissing > 0 ? r->missing[0] : (double) NAN;
        for (uint64_t i = 0; i < n; i++) {
            bool counts = !isnan(values[i]) & (values[i] != missing);
            sums[i] += counts ? values[i] : 0;
            valid[i] += counts ? 1u : 0u;
        }
        return;
    }
    for (uint64_t i = 0; i < n; i++) {
        bool counts = is_valid(r, values[i]);
        sums[i * step] += counts ? values[i] : 0;
        valid[i * step] += counts ? 1u : 0u;
    }
}

/* Dense values of a box. */
static void
add_values(reducer *r, const esdm__box *box, const double *values)
{
    uint32_t outer = box->rank > 0 ? box->rank - 1 : 0;
    uint64_t row = box->rank > 0 ? box->n[outer] : 1;
    uint64_t step = box->rank > 0 ? r->stride[outer] : 0;
    uint64_t index[ESDM_MAX_RANK] = {0};
    uint64_t first = cell_of(r, box);
    for (;;) {
        uint64_t at = first;
        for (uint32_t d = 0; d < outer; d++)
            at += index[d] * r->stride[d];
        add_row(r, values, row, at, step);
        values += row;
        uint32_t axis = outer;
        while (axis > 0 && ++index[axis - 1] == box->n[axis - 1])
            index[--axis] = 0;
        if (axis == 0)
            return;
    }
}

static esdm_status
add_part(void *user, const esdm__box *part, const void *values, esdm_error *err)
{
    (void) err;
    add_values(user, part, values);
    return ESDM_OK;
}

static esdm_status
read_box(reducer *r, const esdm__box *box, esdm_error *err)
{
    return esdm__read_in_parts(r->dataset, box, ESDM_TYPE_FLOAT64, READ_BYTES / sizeof *r->buffer,
                               r->buffer, add_part, r, err);
}

/* ---- statistics ---------------------------------------------------------------------------- */

/* A box that belongs to one result, when its statistics are known. */
static esdm_status
add_known(reducer *r, const esdm__box *box, bool *ret_known, esdm_error *err)
{
    esdm__box_statistics found;
    esdm_status status = esdm__io_statistics(r->dataset, box, false, &found, err);
    *ret_known = status == ESDM_OK && found.exact;
    if (!*ret_known || found.values.valid == 0)
        return status;
    const esdm__statistics *s = &found.values;
    if (r->cells == NULL) {
        r->sums[cell_of(r, box)] = s->sum;
        r->valid[cell_of(r, box)] = s->valid;
        return ESDM_OK;
    }
    cell *c = &r->cells[cell_of(r, box)];
    esdm__number extra = r->what == ESDM_REDUCE_MIN ? s->min : s->max;
    c->sum = s->sum;
    c->valid = s->valid;
    c->extra = s->class == ESDM__CLASS_SIGNED     ? (double) extra.i
               : s->class == ESDM__CLASS_UNSIGNED ? (double) extra.u
                                                  : extra.f;
    return ESDM_OK;
}

/* The first axis that is kept and longer than one; the rank when there is none. */
static uint32_t
kept_axis(const reducer *r, const esdm__box *box)
{
    uint32_t axis = 0;
    while (axis < box->rank && (r->over[axis] || box->n[axis] == 1))
        axis++;
    return axis;
}

/* Whether all axes before this one are of length one. */
static bool
is_slowest(const esdm__box *box, uint32_t axis)
{
    for (uint32_t d = 0; d < axis; d++) {
        if (box->n[d] != 1)
            return false;
    }
    return true;
}

/* Results along an axis, one after the other; those without statistics are read together. */
static esdm_status
reduce_along(reducer *r, const esdm__box *box, uint32_t axis, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    esdm__box one = *box;
    esdm__box unknown = *box;
    one.n[axis] = 1;
    unknown.n[axis] = 0;
    for (uint64_t i = 0; i < box->n[axis] && status == ESDM_OK; i++) {
        bool known = false;
        one.lo[axis] = box->lo[axis] + i;
        status = add_known(r, &one, &known, err);
        if (!known) {
            unknown.lo[axis] = unknown.n[axis] > 0 ? unknown.lo[axis] : one.lo[axis];
            unknown.n[axis]++;
        }
        if (status == ESDM_OK && unknown.n[axis] > 0 && (known || i + 1 == box->n[axis])) {
            status = read_box(r, &unknown, err);
            unknown.n[axis] = 0;
        }
    }
    return status;
}

/* Cuts along the axes that are kept, as far as these are the slowest ones, and asks for statistics.
 */
static esdm_status
reduce_box(reducer *r, const esdm__box *box, esdm_error *err)
{
    uint32_t axis = kept_axis(r, box);
    esdm__box one = *box;
    if (axis == box->rank && r->what != ESDM_REDUCE_VARIANCE) {
        bool known = false;
        esdm_status status = add_known(r, box, &known, err);
        return status == ESDM_OK && !known ? read_box(r, box, err) : status;
    }
    if (r->what == ESDM_REDUCE_VARIANCE || !is_slowest(box, axis) ||
        esdm__box_elements(box) / box->n[axis] < LEAST_ELEMENTS)
        return read_box(r, box, err);
    one.n[axis] = 1;
    if (kept_axis(r, &one) == box->rank)
        return reduce_along(r, box, axis, err);
    esdm_status status = ESDM_OK;
    for (uint64_t i = 0; i < box->n[axis] && status == ESDM_OK; i++) {
        one.lo[axis] = box->lo[axis] + i;
        status = reduce_box(r, &one, err);
    }
    return status;
}

/* ---- results ------------------------------------------------------------------------------- */

static double
result_of(const reducer *r, const cell *c)
{
    double n = (double) c->valid;
    if (r->what == ESDM_REDUCE_COUNT)
        return n;
    if (c->valid == 0)
        return (double) NAN;
    switch (r->what) {
    case ESDM_REDUCE_SUM:
        return c->sum;
    case ESDM_REDUCE_MEAN:
        return c->sum / n;
    case ESDM_REDUCE_VARIANCE: {
        double variance = (c->extra - c->sum * (c->sum / n)) / n;
        return variance < 0 ? 0 : variance; /* of infinities it is NaN */
    }
    default:
        return c->extra;
    }
}

static esdm_status
prepare(reducer *r, esdm_error *err)
{
    esdm__missing missing;
    esdm__missing_of(r->dataset, &missing);
    if (missing.class == ESDM__CLASS_NONE)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "only numbers can be reduced, of which at most %u values stand for "
                               "missing ones",
                               ESDM__MISSING_MOST);
    for (; r->nmissing < missing.count; r->nmissing++) {
        esdm__number x = missing.values[r->nmissing];
        r->missing[r->nmissing] = missing.class == ESDM__CLASS_SIGNED     ? (double) x.i
                                  : missing.class == ESDM__CLASS_UNSIGNED ? (double) x.u
                                                                          : x.f;
    }
    r->ncells = 1;
    for (uint32_t d = r->box->rank; d-- > 0;) {
        r->stride[d] = r->over[d] ? 0 : r->ncells;
        if (__builtin_mul_overflow(r->ncells, r->over[d] ? 1 : r->box->n[d], &r->ncells))
            return esdm__error_set(err, ESDM_EINVAL,
                                   "the reduction has too many results; reduce more dimensions");
    }
    if (r->ncells == 0)
        return ESDM_OK;
    bool summed =
        r->what == ESDM_REDUCE_SUM || r->what == ESDM_REDUCE_MEAN || r->what == ESDM_REDUCE_COUNT;
    if (summed) {
        r->sums = calloc((size_t) r->ncells, sizeof *r->sums);
        r->valid = calloc((size_t) r->ncells, sizeof *r->valid);
    } else {
        r->cells = calloc((size_t) r->ncells, sizeof *r->cells);
    }
    r->buffer = malloc(READ_BYTES);
    bool have = summed ? r->sums != NULL && r->valid != NULL : r->cells != NULL;
    return have && r->buffer != NULL
               ? ESDM_OK
               : esdm__error_nomem(err, (size_t) r->ncells * sizeof *r->cells, "a reduction");
}

esdm_status
esdm__io_reduce(esdm_dataset *dataset, const esdm__box *box, const bool *over, esdm_reduction what,
                double *ret_values, uint64_t *ret_valid, esdm_error *err)
{
    if (dataset->group->container->provider != NULL)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "'%s' is put together from several containers: there are statistics "
                               "of each of these, not of the whole",
                               dataset->group->container->name);
    reducer r = {.dataset = dataset, .what = what, .over = over, .box = box};
    esdm_status status = prepare(&r, err);
    if (status == ESDM_OK && !esdm__box_is_empty(box))
        status = reduce_box(&r, box, err);
    for (uint64_t i = 0; status == ESDM_OK && i < r.ncells; i++) {
        const cell c = r.cells != NULL ? r.cells[i] : (cell){.sum = r.sums[i], .valid = r.valid[i]};
        ret_values[i] = result_of(&r, &c);
        if (ret_valid != NULL)
            ret_valid[i] = c.valid;
    }
    free(r.cells);
    free(r.sums);
    free(r.valid);
    free(r.buffer);
    return status == ESDM_OK ? ESDM_OK : esdm__dataset_prefix(dataset, status, err);
}
