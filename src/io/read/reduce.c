/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/read/reduce.h"

#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/scratch.h"
#include "codec/across.h"
#include "codec/tally.h"
#include "io/container/beyond.h"
#include "io/read/fetch.h"
#include "io/read/read.h"
#include "io/read/statistics.h"

/* Values that a thread has in memory: of parts of fragments that can be read by themselves, and of
 * those that lie on a server or have large blocks. */
#define PART_BYTES  (UINT64_C(256) << 10)
#define BLOCK_BYTES (UINT64_C(1) << 20)
#define FAR_BYTES   (UINT64_C(16) << 20)
/* Results that take so much lie in large pages. */
#define LARGE_BYTES (UINT64_C(4) << 20)
/* Less in a row is not read by itself. */
#define ROW_BYTES (UINT64_C(64) << 10)
/* So many tasks for each thread: those that come late find work left. */
#define TASKS_PER_THREAD 4u
/* Results of which each task may have its own. */
#define OWN_RESULTS UINT64_C(4096)
/* Below, looking for statistics costs more than reading. */
#define LEAST_ELEMENTS 1024u

typedef struct reducer {
    esdm_dataset *dataset;
    esdm_session *session;
    esdm_reduction what;
    esdm__across_what across;
    const bool *over;
    const esdm__box *box;           /* all of it */
    uint64_t stride[ESDM_MAX_RANK]; /* of the results, along each axis; 0 along those reduced */
    uint64_t nresults;
    uint64_t each; /* elements that each result is made of */
    esdm__across results;
    esdm__missing missing;
    esdm__beyond beyond;
    size_t element_bytes;
    uint64_t part_bytes; /* of a part that is read at a time */
} reducer;

/* ---- results ------------------------------------------------------------------------------- */

static void
across_free(esdm__across *a)
{
    free(a->value);
    free(a->squares);
    free(a->first);
    free(a->absent);
    *a = (esdm__across){0};
}

/* The pages of large results are all touched once: few large ones take less time. It is advice;
 * who has no large pages does without. */
static void
advise_large(void *memory, size_t bytes)
{
    uintptr_t page = 4096;
    uintptr_t begin = ((uintptr_t) memory + page - 1) / page * page;
    uintptr_t end = ((uintptr_t) memory + bytes) / page * page;
    if (memory != NULL && bytes >= LARGE_BYTES)
        (void) madvise((void *) begin, end - begin, MADV_HUGEPAGE);
}

static bool
across_new(const reducer *r, uint64_t count, esdm__across *ret)
{
    size_t n = (size_t) count;
    double begin = r->what == ESDM_REDUCE_MIN   ? (double) INFINITY
                   : r->what == ESDM_REDUCE_MAX ? -(double) INFINITY
                                                : 0;
    ret->value = malloc(n * sizeof *ret->value); /* written at once: each page is taken once */
    ret->absent = calloc(n, sizeof *ret->absent);
    bool squares = r->what == ESDM_REDUCE_VARIANCE;
    ret->squares = squares ? malloc(n * sizeof *ret->squares) : NULL;
    ret->first = squares ? malloc(n * sizeof *ret->first) : NULL;
    advise_large(ret->value, n * sizeof *ret->value);
    advise_large(ret->absent, n * sizeof *ret->absent);
    if (ret->value == NULL || ret->absent == NULL ||
        (squares && (ret->squares == NULL || ret->first == NULL)))
        return false;
    for (size_t i = 0; i < n; i++)
        ret->value[i] = begin;
    for (size_t i = 0; i < n && squares; i++)
        ret->squares[i] = 0;
    for (size_t i = 0; i < n && squares; i++)
        ret->first[i] = (double) NAN;
    return true;
}

/* Puts results of a part of the numbers to the others; not those of a variance. */
static void
merge(const reducer *r, const esdm__across *more)
{
    for (uint64_t i = 0; i < r->nresults; i++) {
        const esdm__across *a = &r->results;
        a->absent[i] += more->absent[i];
        if (r->across == ESDM__ACROSS_SUM) {
            a->value[i] += more->value[i];
        } else if (r->across == ESDM__ACROSS_MIN) {
            a->value[i] = fmin(a->value[i], more->value[i]);
        } else {
            a->value[i] = fmax(a->value[i], more->value[i]);
        }
    }
}

/* ---- numbers ------------------------------------------------------------------------------- */

/* What a task adds to. */
typedef struct lane {
    const reducer *r;
    const esdm__across *results; /* all of them; of the task, or of the reducer */
    void *buffer;                /* of values that are read */
} lane;

/* The result that the first element of a box belongs to. */
static uint64_t
result_at(const reducer *r, const esdm__box *box)
{
    uint64_t at = 0;
    for (uint32_t d = 0; d < box->rank; d++)
        at += (box->lo[d] - r->box->lo[d]) * r->stride[d];
    return at;
}

/* Axes of a dense box, slowest first, without those of length one; neighbours that lie in one row
 * of numbers and of results are one axis. */
static uint32_t
join_axes(const reducer *r, const esdm__box *box, uint64_t *ret_n, uint64_t *ret_stride)
{
    uint32_t count = 0;
    for (uint32_t d = 0; d < box->rank; d++) {
        uint64_t stride = r->stride[d];
        if (box->n[d] == 1)
            continue;
        if (count > 0 && ret_stride[count - 1] == stride * box->n[d]) {
            ret_n[count - 1] *= box->n[d];
            ret_stride[count - 1] = stride;
            continue;
        }
        ret_n[count] = box->n[d];
        ret_stride[count++] = stride;
    }
    return count;
}

/* Dense values of a box. */
static esdm_status
add_part(void *user, const esdm__box *box, const void *values, esdm_error *err)
{
    const lane *l = user;
    const reducer *r = l->r;
    const uint8_t *at = values;
    uint64_t n[ESDM_MAX_RANK + 1] = {1};
    uint64_t stride[ESDM_MAX_RANK + 1] = {0};
    uint64_t index[ESDM_MAX_RANK + 1] = {0};
    uint32_t axes = join_axes(r, box, n, stride);
    uint32_t outer = axes > 0 ? axes - 1 : 0;
    uint64_t first = result_at(r, box);
    (void) err;
    esdm__beyond_hide(&r->beyond, r->missing.type, l->buffer, (size_t) esdm__box_elements(box));
    for (;;) {
        uint64_t to = first;
        for (uint32_t d = 0; d < outer; d++)
            to += index[d] * stride[d];
        if (stride[outer] == 1)
            esdm__across_add(r->across, r->missing.type, &r->missing, at, (size_t) n[outer],
                             l->results, (size_t) to);
        else
            esdm__across_add_one(r->across, r->missing.type, &r->missing, at, (size_t) n[outer],
                                 l->results, (size_t) to);
        at += n[outer] * r->element_bytes;
        uint32_t axis = outer;
        while (axis > 0 && ++index[axis - 1] == n[axis - 1])
            index[--axis] = 0;
        if (axis == 0)
            return ESDM_OK;
    }
}

static esdm_status
read_lane(const reducer *r, const esdm__box *box, const esdm__across *results, esdm_error *err)
{
    lane l = {r, results, NULL};
    uint64_t elements = esdm__box_elements(box);
    uint64_t most = r->part_bytes / r->element_bytes;
    size_t bytes = (size_t) (elements < most ? elements : most) * r->element_bytes;
    void *buffer = esdm__scratch_new(bytes);
    if (buffer == NULL)
        return esdm__error_nomem(err, bytes, "a reduction");
    const esdm__parts parts = {r->dataset, r->dataset->type, most, buffer, add_part, &l};
    l.buffer = buffer;
    esdm_status status = esdm__read_in_parts(&parts, box, err);
    esdm__scratch_free(buffer);
    return status;
}

/* ---- tasks --------------------------------------------------------------------------------- */

/* A box that is cut along one axis, a task for each part. */
typedef struct tasks {
    const reducer *r;
    const esdm__box *box;
    uint32_t axis;
    uint64_t step;
    esdm__across *own; /* one for each task; NULL: their results do not meet */
} tasks;

static esdm_status
run_task(void *context, size_t i, esdm_error *err)
{
    const tasks *t = context;
    const esdm__across *results = &t->r->results;
    esdm__box part = *t->box;
    uint64_t before = (uint64_t) i * t->step;
    uint64_t left = t->box->n[t->axis] - before;
    part.lo[t->axis] += before;
    part.n[t->axis] = left < t->step ? left : t->step;
    if (t->own != NULL) {
        results = &t->own[i];
        if (!across_new(t->r, t->r->nresults, &t->own[i]))
            return esdm__error_nomem(err, (size_t) t->r->nresults * 16, "a reduction");
    }
    return read_lane(t->r, &part, results, err);
}

/* The elements of a box that belong to one index of an axis: in a row, and as results. */
static void
sizes_behind(const reducer *r, const esdm__box *box, uint32_t axis, uint64_t *ret_row,
             uint64_t *ret_results)
{
    *ret_row = 1;
    *ret_results = 1;
    for (uint32_t d = axis + 1; d < box->rank; d++) {
        *ret_row *= box->n[d];
        *ret_results *= r->over[d] ? 1 : box->n[d];
    }
}

static uint64_t
divide_up(uint64_t a, uint64_t b)
{
    return (a - 1) / b + 1;
}

/* Cuts along the slowest axis that is kept, so that results of a task stay in the cache; where
 * there is none, or too little in a row, along the slowest axis if every task can have its own
 * results.
 * @return whether there is more than one task */
static bool
choose_cut(const reducer *r, const esdm__box *box, tasks *t)
{
    uint64_t row;
    uint64_t results;
    uint64_t threads = esdm__pool_threads(r->session->pool);
    uint32_t axis = 0;
    if (r->part_bytes == FAR_BYTES)
        return false;
    while (axis < box->rank && (r->over[axis] || box->n[axis] == 1))
        axis++;
    if (axis < box->rank) {
        sizes_behind(r, box, axis, &row, &results);
        uint64_t least = divide_up(ROW_BYTES, row * r->element_bytes);
        uint64_t most = r->part_bytes / r->element_bytes / results;
        uint64_t even = divide_up(box->n[axis], threads * TASKS_PER_THREAD);
        uint64_t step = most < even ? most : even;
        step = step > least ? step : least;
        t->axis = axis;
        t->step = step;
        if (step < box->n[axis])
            return true;
    }
    for (axis = 0; axis < box->rank && box->n[axis] == 1; axis++)
        continue;
    if (axis == box->rank || !r->over[axis] || r->nresults > OWN_RESULTS ||
        r->across == ESDM__ACROSS_SQUARES)
        return false;
    sizes_behind(r, box, axis, &row, &results);
    uint64_t least = divide_up(ROW_BYTES, row * r->element_bytes);
    uint64_t even = divide_up(box->n[axis], threads * TASKS_PER_THREAD);
    t->axis = axis;
    t->step = even > least ? even : least;
    return t->step < box->n[axis];
}

static esdm_status
read_box(reducer *r, const esdm__box *box, esdm_error *err)
{
    tasks t = {.r = r, .box = box};
    if (!choose_cut(r, box, &t))
        return read_lane(r, box, &r->results, err);
    size_t count = (size_t) divide_up(box->n[t.axis], t.step);
    if (r->over[t.axis]) {
        t.own = calloc(count, sizeof *t.own);
        if (t.own == NULL)
            return esdm__error_nomem(err, count * sizeof *t.own, "a reduction");
    }
    esdm_status status = esdm__pool_run(r->session->pool, count, run_task, &t, err);
    for (size_t i = 0; i < count && t.own != NULL; i++) { /* in their order, whoever was first */
        if (status == ESDM_OK)
            merge(r, &t.own[i]);
        across_free(&t.own[i]);
    }
    free(t.own);
    return status;
}

/* ---- statistics ---------------------------------------------------------------------------- */

/* A box that belongs to one result, when its statistics are known. */
static esdm_status
add_known(reducer *r, const esdm__box *box, bool *ret_known, esdm_error *err)
{
    esdm__box_statistics found;
    esdm_status status = esdm__io_statistics(r->dataset, box, true, false, &found, err);
    *ret_known = status == ESDM_OK && found.exact;
    if (!*ret_known)
        return status;
    const esdm__statistics *s = &found.values;
    uint64_t at = result_at(r, box);
    r->results.absent[at] = found.elements - s->valid;
    if (s->valid == 0)
        return ESDM_OK;
    esdm__number extreme = r->what == ESDM_REDUCE_MIN ? s->min : s->max;
    double value = s->class == ESDM__CLASS_SIGNED     ? (double) extreme.i
                   : s->class == ESDM__CLASS_UNSIGNED ? (double) extreme.u
                                                      : extreme.f;
    r->results.value[at] = r->across == ESDM__ACROSS_SUM ? s->sum : value;
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

/* Whether the axes that are kept are the slowest ones: only then a fragment may serve one result.
 */
static bool
kept_are_slowest(const reducer *r, const esdm__box *box)
{
    bool reduced = false;
    for (uint32_t d = 0; d < box->rank; d++) {
        if (box->n[d] > 1 && reduced && !r->over[d])
            return false;
        reduced = reduced || (box->n[d] > 1 && r->over[d]);
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
    if (r->what == ESDM_REDUCE_VARIANCE || !kept_are_slowest(r, box) ||
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

/* ---- the call ------------------------------------------------------------------------------ */

static double
result_of(const reducer *r, uint64_t i)
{
    uint64_t valid = r->each - r->results.absent[i];
    double n = (double) valid;
    double value = r->results.value[i];
    if (r->what == ESDM_REDUCE_COUNT)
        return n;
    if (valid == 0)
        return (double) NAN;
    if (r->what == ESDM_REDUCE_MEAN)
        return value / n;
    if (r->what == ESDM_REDUCE_VARIANCE) {
        double variance = (r->results.squares[i] - value * (value / n)) / n;
        return variance < 0 ? 0 : variance; /* of infinities it is NaN */
    }
    return value;
}

/* Whether the first value lies in blocks that are decoded as a whole: then most others do. */
static bool
begins_coded(esdm_dataset *dataset, esdm__dataset_io *io, const esdm__box *box)
{
    esdm__box first = *box;
    esdm__plan plan = {0};
    bool coded = false;
    for (uint32_t d = 0; d < first.rank; d++)
        first.n[d] = 1;
    if (esdm__dataset_load_directory(dataset, io, NULL) == ESDM_OK &&
        esdm__read_plan(dataset, io, &first, &plan, NULL, NULL) == ESDM_OK)
        coded = plan.npieces > 0 && plan.pieces[0].fragment->pack != NULL &&
                !esdm__fragment_is_raw(plan.pieces[0].fragment);
    esdm__plan_clear(&plan);
    return coded;
}

/* How the numbers are read: what lies on servers with large requests, which run side by side. */
static esdm_status
prepare_reading(reducer *r, esdm_error *err)
{
    esdm__dataset_io *io = NULL;
    esdm_status status = esdm__dataset_io_get(r->dataset, &io, err);
    if (status != ESDM_OK)
        return status;
    r->session = r->dataset->group->container->session;
    r->element_bytes = io->elements.bytes;
    r->part_bytes = esdm__session_is_far(r->session)       ? FAR_BYTES
                    : begins_coded(r->dataset, io, r->box) ? BLOCK_BYTES
                                                           : PART_BYTES;
    if (io->block_bytes > r->part_bytes)
        r->part_bytes = io->block_bytes;
    esdm__dataset_io_put(r->dataset);
    return ESDM_OK;
}

static esdm_status
prepare(reducer *r, esdm_error *err)
{
    esdm_status status = esdm__missing_of_reduced(r->dataset, &r->missing, err);
    if (status != ESDM_OK)
        return status;
    esdm__beyond_of(r->dataset, &r->missing, &r->beyond);
    r->across = r->what == ESDM_REDUCE_MIN        ? ESDM__ACROSS_MIN
                : r->what == ESDM_REDUCE_MAX      ? ESDM__ACROSS_MAX
                : r->what == ESDM_REDUCE_VARIANCE ? ESDM__ACROSS_SQUARES
                                                  : ESDM__ACROSS_SUM;
    r->nresults = 1;
    r->each = 1;
    for (uint32_t d = r->box->rank; d-- > 0;) {
        r->stride[d] = r->over[d] ? 0 : r->nresults;
        if (__builtin_mul_overflow(r->nresults, r->over[d] ? 1 : r->box->n[d], &r->nresults))
            return esdm__error_set(err, ESDM_EINVAL,
                                   "the reduction has too many results; reduce more dimensions");
        if (__builtin_mul_overflow(r->each, r->over[d] ? r->box->n[d] : 1, &r->each))
            return esdm__error_set(err, ESDM_EINVAL, "there are too many values to reduce");
    }
    if (r->nresults == 0)
        return ESDM_OK;
    if (r->nresults > SIZE_MAX / 64 || !across_new(r, r->nresults, &r->results))
        return esdm__error_nomem(err, (size_t) r->nresults * 16, "a reduction");
    return prepare_reading(r, err);
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
    for (uint64_t i = 0; status == ESDM_OK && i < r.nresults; i++) {
        ret_values[i] = result_of(&r, i);
        if (ret_valid != NULL)
            ret_valid[i] = r.each - r.results.absent[i];
    }
    across_free(&r.results);
    return status == ESDM_OK ? ESDM_OK : esdm__dataset_prefix(dataset, status, err);
}
