/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Fragments whose statistics lie in one interval are counted without reading; the others are cut
 * into parts, a task for each. Counts are whole numbers: the order of tasks does not matter. */

#include "io/read/histogram.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/scratch.h"
#include "codec/doubles.h"
#include "io/container/beyond.h"
#include "io/read/read.h"
#include "io/read/statistics.h"
#include "io/read/weighted.h"
#include "io/session/pool.h"
#include "layout/cuts.h"

/* Numbers that are converted at a time. */
#define RUN 512u
/* Parts of one box that are made at once. */
#define PARTS_MOST UINT64_C(16384)

/* Counts below, in each interval, above, and missing: nedges + 2. */
typedef struct counter {
    esdm_dataset *dataset;
    esdm__dataset_io *io;
    const double *edges;
    size_t nedges;
    double per_interval; /* intervals per unit where all are about equal; else 0 */
    esdm__missing missing;
    esdm__beyond beyond;
    size_t element_bytes;
    uint64_t most; /* elements of a part */
    bool known;    /* whether statistics of fragments are those of what is read */
    uint64_t read_elements;
    uint64_t *counts;
    pthread_mutex_t lock; /* guards counts and read_elements while tasks run */
} counter;

/* ---- numbers ------------------------------------------------------------------------------- */

/* Which of the counts a number belongs to: 0 below, nedges above. */
static size_t
place_of(const counter *c, double x)
{
    const double *edges = c->edges;
    size_t last = c->nedges - 1;
    if (x < edges[0])
        return 0;
    if (x >= edges[last])
        return x > edges[last] ? c->nedges : last;
    size_t low = 0; /* edges[low] <= x < edges[high] */
    size_t high = last;
    if (c->per_interval > 0) {
        double guess = (x - edges[0]) * c->per_interval;
        size_t at = guess < (double) last ? (size_t) guess : last - 1;
        while (x < edges[at])
            at--;
        while (x >= edges[at + 1])
            at++;
        return at + 1;
    }
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (x < edges[middle])
            high = middle;
        else
            low = middle;
    }
    return low + 1;
}

static void
count_numbers(const counter *c, const void *numbers, uint64_t n, uint64_t *counts)
{
    const uint8_t *at = numbers;
    double x[RUN];
    while (n > 0) {
        size_t some = n < RUN ? (size_t) n : RUN;
        esdm__doubles(c->missing.type, &c->missing, at, some, x);
        esdm__beyond_hide(&c->beyond, ESDM_TYPE_FLOAT64, x, some);
        for (size_t i = 0; i < some; i++)
            counts[x[i] == x[i] ? place_of(c, x[i]) : c->nedges + 1]++;
        at += some * c->element_bytes;
        n -= some;
    }
}

/* Whether one count takes all of a box; then it gets them. */
static bool
count_known(const counter *c, const esdm__statistics *s, uint64_t elements)
{
    size_t place = 0;
    if (s->class == ESDM__CLASS_NONE || s->valid > elements || !esdm__beyond_none(&c->beyond, s))
        return false;
    if (s->valid > 0) {
        place = place_of(c, esdm__number_double(s->class, s->min));
        if (place != place_of(c, esdm__number_double(s->class, s->max)))
            return false;
    }
    c->counts[place] += s->valid;
    c->counts[c->nedges + 1] += elements - s->valid;
    return true;
}

/* ---- parts that are read ------------------------------------------------------------------- */

/* Parts of a box, a task for each. */
typedef struct tasks {
    counter *c;
    const esdm__cuts *cuts;
} tasks;

/* A part of a task, and the task's counts. */
typedef struct lane {
    const counter *c;
    uint64_t *counts;
} lane;

static esdm_status
visit(void *user, const esdm__box *part, const void *values, esdm_error *err)
{
    const lane *l = user;
    (void) err;
    count_numbers(l->c, values, esdm__box_elements(part), l->counts);
    return ESDM_OK;
}

static esdm_status
run_task(void *context, size_t i, esdm_error *err)
{
    const tasks *t = context;
    counter *c = t->c;
    esdm__box box;
    size_t ncounts = c->nedges + 2;
    esdm__cuts_at(t->cuts, i, &box);
    uint64_t elements = esdm__box_elements(&box);
    size_t bytes = (size_t) (elements < c->most ? elements : c->most) * c->element_bytes;
    uint64_t *counts = calloc(ncounts, sizeof *counts);
    void *buffer = counts != NULL ? esdm__scratch_new(bytes) : NULL;
    lane l = {c, counts};
    const esdm__parts parts = {c->dataset, c->dataset->type, c->most, buffer, visit, &l};
    esdm_status status = buffer != NULL ? esdm__read_in_parts(&parts, &box, err)
                                        : esdm__error_nomem(err, bytes, "a histogram");
    if (status == ESDM_OK) {
        (void) pthread_mutex_lock(&c->lock);
        for (size_t k = 0; k < ncounts; k++)
            c->counts[k] += counts[k];
        c->read_elements += elements;
        (void) pthread_mutex_unlock(&c->lock);
    }
    esdm__scratch_free(buffer);
    free(counts);
    return status;
}

/* Cut where the pieces end. */
static esdm_status
read_box(counter *c, const esdm__box *box, const esdm__piece *pieces, size_t npieces,
         esdm_error *err)
{
    esdm__cuts cuts = {0};
    tasks t = {c, &cuts};
    uint64_t most = esdm__box_elements(box) / PARTS_MOST;
    esdm_status status =
        esdm__cuts_make(box, pieces, npieces, most > c->most ? most : c->most, &cuts, err);
    if (status == ESDM_OK)
        status = esdm__pool_run(c->dataset->group->container->session->pool, cuts.count, run_task,
                                &t, err);
    esdm__cuts_clear(&cuts);
    return status;
}

/* ---- fragments ----------------------------------------------------------------------------- */

/* Pieces of fragments that no statistics serve, each cut if it is large; all are read together. */
static esdm_status
read_pieces(counter *c, const esdm__piece *pieces, size_t npieces, esdm_error *err)
{
    esdm__cuts all = {0};
    tasks t = {c, &all};
    size_t room = 0;
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < npieces && status == ESDM_OK; i++) {
        esdm__cuts cuts = {0};
        const esdm__box *part = &pieces[i].part;
        uint64_t most = esdm__box_elements(part) / PARTS_MOST;
        status = esdm__cuts_make(part, &pieces[i], 1, most > c->most ? most : c->most, &cuts, err);
        size_t numbers = (size_t) 2 * part->rank;
        all.rank = part->rank;
        if (status == ESDM_OK && all.count + cuts.count > room) {
            room = 2 * (all.count + cuts.count);
            uint64_t *more = realloc(all.places, room * (numbers + 1) * sizeof *more);
            status = more != NULL ? ESDM_OK : esdm__error_nomem(err, room, "a histogram");
            all.places = more != NULL ? more : all.places;
        }
        for (size_t k = 0; k < cuts.count * numbers && status == ESDM_OK; k++)
            all.places[all.count * numbers + k] = cuts.places[k];
        all.count += status == ESDM_OK ? cuts.count : 0;
        esdm__cuts_clear(&cuts);
    }
    if (status == ESDM_OK && all.count > 0)
        status = esdm__pool_run(c->dataset->group->container->session->pool, all.count, run_task,
                                &t, err);
    esdm__cuts_clear(&all);
    return status;
}

/* What no fragment covers is the fill value, which is missing or not. */
static void
count_holes(const counter *c, uint64_t elements)
{
    double x;
    if (elements == 0)
        return;
    esdm__doubles(c->missing.type, &c->missing, esdm_dataset_fill(c->dataset, NULL), 1, &x);
    esdm__beyond_hide(&c->beyond, ESDM_TYPE_FLOAT64, &x, 1);
    c->counts[x == x ? place_of(c, x) : c->nedges + 1] += elements;
}

/* Pieces whose fragments lie whole in one interval are counted; the others move to the front. */
static esdm_status
count_plan(counter *c, const esdm__box *box, esdm__plan *plan, esdm_error *err)
{
    uint64_t left = esdm__box_elements(box);
    size_t unknown = 0;
    if (plan->ndense < plan->npieces || !c->known) /* strided ones lie over the others */
        return read_box(c, box, plan->pieces, plan->npieces, err);
    for (size_t i = 0; i < plan->npieces; i++) {
        const esdm__piece piece = plan->pieces[i];
        uint64_t elements = esdm__box_elements(&piece.part);
        left -= elements;
        bool whole = esdm__box_equal(&piece.part, &piece.fragment->box);
        esdm__statistics s = {0};
        if (whole)
            s = esdm__fragment_statistics(c->dataset, &c->missing, piece.fragment);
        if (!whole || !count_known(c, &s, elements))
            plan->pieces[unknown++] = piece;
    }
    count_holes(c, left);
    return read_pieces(c, plan->pieces, unknown, err);
}

static esdm_status
count_box(counter *c, const esdm__box *box, esdm_error *err)
{
    esdm__plan plan = {0};
    bool too_many = false;
    uint32_t axis = 0;
    while (axis < box->rank && box->n[axis] == 1)
        axis++;
    esdm_status status =
        esdm__read_plan(c->dataset, c->io, box, &plan, axis < box->rank ? &too_many : NULL, err);
    if (status == ESDM_OK && !too_many)
        status = count_plan(c, box, &plan, err);
    esdm__plan_clear(&plan);
    if (status != ESDM_OK || !too_many)
        return status;
    esdm__box half = *box;
    half.n[axis] /= 2;
    status = count_box(c, &half, err);
    half.lo[axis] += half.n[axis];
    half.n[axis] = box->n[axis] - half.n[axis];
    return status == ESDM_OK ? count_box(c, &half, err) : status;
}

/* ---- the call ------------------------------------------------------------------------------ */

/* Where intervals are about equal the one of a number is found by a product. */
static double
intervals_per_unit(const double *edges, size_t nedges)
{
    double last = (double) (nedges - 1);
    double width = (edges[nedges - 1] - edges[0]) / last;
    if (!isfinite(width) || !isfinite(1 / width))
        return 0;
    for (size_t i = 0; i < nedges; i++) {
        if (!(fabs(edges[i] - (edges[0] + width * (double) i)) < width / 2))
            return 0;
    }
    return 1 / width;
}

/* The whole from statistics where these do; they also bring own writes to the index. */
static esdm_status
count_all(counter *c, const esdm__box *box, esdm_error *err)
{
    esdm__box_statistics found;
    esdm_status status = esdm__io_statistics(c->dataset, box, true, false, &found, err);
    if (status != ESDM_OK || esdm__box_is_empty(box))
        return status;
    if (found.exact && count_known(c, &found.values, found.elements))
        return ESDM_OK;
    c->known = !esdm__coarse_is_asked(&c->dataset->stated->coarse);
    status = esdm__reduction_part_bytes(c->dataset, &c->most, err);
    if (status == ESDM_OK)
        status = esdm__dataset_io_get(c->dataset, &c->io, err);
    if (status != ESDM_OK)
        return esdm__dataset_prefix(c->dataset, status, err);
    c->element_bytes = c->io->elements.bytes;
    c->most = c->most / c->element_bytes > 0 ? c->most / c->element_bytes : 1;
    status = count_box(c, box, err);
    esdm__dataset_io_put(c->dataset);
    return status == ESDM_OK ? ESDM_OK : esdm__dataset_prefix(c->dataset, status, err);
}

esdm_status
esdm__io_histogram(esdm_dataset *dataset, const esdm__box *box, const double *edges, size_t nedges,
                   uint64_t *ret_counts, esdm_histogram_rest *ret_rest, esdm_error *err)
{
    counter c = {.dataset = dataset,
                 .edges = edges,
                 .nedges = nedges,
                 .per_interval = intervals_per_unit(edges, nedges),
                 .lock = PTHREAD_MUTEX_INITIALIZER};
    esdm__missing_of(dataset, &c.missing);
    esdm__beyond_of(dataset, &c.missing, &c.beyond);
    c.counts = nedges < SIZE_MAX / 16 ? calloc(nedges + 2, sizeof *c.counts) : NULL;
    if (c.counts == NULL)
        return esdm__error_nomem(err, nedges, "a histogram");
    esdm_status status = count_all(&c, box, err);
    for (size_t i = 0; i + 1 < nedges && status == ESDM_OK; i++)
        ret_counts[i] = c.counts[i + 1];
    if (status == ESDM_OK && ret_rest != NULL)
        *ret_rest = (esdm_histogram_rest){.below = c.counts[0],
                                          .above = c.counts[nedges],
                                          .missing = c.counts[nedges + 1],
                                          .read_elements = c.read_elements};
    free(c.counts);
    (void) pthread_mutex_destroy(&c.lock);
    return status;
}
