/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Ranges of datasets and of coordinates, from what is pending or all that is there. */

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "cf/circle.h"
#include "io/commit/extents_parts.h"
#include "io/read/read.h"
#include "io/read/statistics.h"

/* Fragments of a dataset that are looked at one by one when some of them may hide others. */
#define FRAGMENTS_MOST 1024u
/* Longitudes that are read. */
#define LONGITUDES_MOST (UINT64_C(32) << 20)
#define READ_ELEMENTS   (UINT64_C(1) << 18)

typedef esdm__extents_maker maker;
typedef esdm__range range;

/* ---- values of a dataset -------------------------------------------------------------------- */

bool
esdm__extents_is_dirty(const maker *m, const esdm_dataset *dataset)
{
    return dataset != NULL && esdm__datasets_hold(m->written.datasets, m->written.count, dataset);
}

static void
box_of(const esdm_dataset *dataset, esdm__box *ret)
{
    ret->rank = dataset->rank;
    for (uint32_t d = 0; d < dataset->rank; d++) {
        ret->lo[d] = 0;
        ret->n[d] = esdm_dimension_length(dataset->dimensions[d]);
    }
}

static range
range_of_statistics(const esdm__statistics *s)
{
    range r = {.known = s->class != ESDM__CLASS_NONE && s->valid > 0};
    if (r.known) {
        r.low = esdm__number_double(s->class, s->min);
        r.high = esdm__number_double(s->class, s->max);
    }
    return r;
}

typedef struct pending {
    const esdm_dataset *dataset;
    esdm__index *index;
    esdm__missing missing;
    esdm__statistics total;
    bool unknown, hides;
} pending;

static bool
add_pending(const esdm__fragment *fragment, void *user)
{
    pending *p = user;
    const esdm__statistics one = esdm__fragment_statistics(p->dataset, &p->missing, fragment);
    p->unknown = one.class == ESDM__CLASS_NONE;
    esdm__statistics_add(&p->total, &one);
    p->hides = p->hides || esdm__index_count(p->index, &fragment->box, 2) > 1;
    return !p->unknown;
}

/* The range that the pending fragments tell by themselves. false: they do not tell it, or hide
 * others, and those are few enough to be looked at. */
static bool
range_of_own(const maker *m, esdm_dataset *dataset, range *ret)
{
    if (!esdm__extents_is_dirty(m, dataset))
        return false;
    esdm__dataset_io *io = dataset->io; /* the commit holds its write lock */
    pending p = {.dataset = dataset, .index = io->index};
    esdm__box box;
    box_of(dataset, &box);
    esdm__missing_of(dataset, &p.missing);
    if (p.missing.class == ESDM__CLASS_NONE)
        return false;
    (void) pthread_mutex_lock(&io->lock);
    size_t count = esdm__index_pending_count(io->index);
    p.total = (esdm__statistics){.class = p.missing.class, .rule = p.missing.rule};
    bool many = count > FRAGMENTS_MOST || /* all of them meet the box */
                esdm__index_count(io->index, &box, FRAGMENTS_MOST + 1) > FRAGMENTS_MOST;
    bool whole = m->all && !(many && esdm__io_of(m->container)->record == 0);
    p.hides = count > FRAGMENTS_MOST; /* that is not asked */
    if (!whole && (!p.hides || !esdm__index_pending_statistics(io->index, &p.total)))
        esdm__index_pending_visit(io->index, add_pending, &p);
    (void) pthread_mutex_unlock(&io->lock);
    if (whole || p.unknown || (p.hides && !many))
        return false;
    *ret = range_of_statistics(&p.total);
    ret->merged = true;
    return true;
}

/* ---- of ranks ------------------------------------------------------------------------------- */

/* Takes another range in. */
static void
join(range *r, const range *more)
{
    if (!more->known)
        return;
    r->low = r->known ? fmin(r->low, more->low) : more->low;
    r->high = r->known ? fmax(r->high, more->high) : more->high;
    r->known = true;
}

/* What all ranks have written into a dataset, or NULL. */
static range
range_of_ranks(const maker *m, const esdm_dataset *dataset)
{
    const esdm__written *w = &m->written;
    if (w->ranges == NULL || !esdm__extents_is_dirty(m, dataset))
        return (range){0};
    esdm_dataset *const *at =
        bsearch(&dataset, w->datasets, w->count, sizeof(esdm_dataset *), esdm__dataset_by_id);
    return w->ranges[at - w->datasets];
}

typedef struct bounding {
    const esdm_dataset *dataset;
    esdm__missing missing;
    esdm__statistics total;
    esdm__box unknown; /* of fragments that do not tell; rank UINT32_MAX: there are none */
} bounding;

static void
extend(esdm__box *box, const esdm__box *more)
{
    for (uint32_t d = 0; d < box->rank; d++) {
        uint64_t end = box->lo[d] + box->n[d], other = more->lo[d] + more->n[d];
        box->lo[d] = more->lo[d] < box->lo[d] ? more->lo[d] : box->lo[d];
        box->n[d] = (other > end ? other : end) - box->lo[d];
    }
}

static bool
add_bounded(const esdm__fragment *fragment, void *user)
{
    bounding *b = user;
    const esdm__statistics one = esdm__fragment_statistics(b->dataset, &b->missing, fragment);
    if (one.class != ESDM__CLASS_NONE) {
        esdm__statistics_add(&b->total, &one);
        return true;
    }
    if (b->unknown.rank == UINT32_MAX)
        b->unknown = fragment->box;
    else
        extend(&b->unknown, &fragment->box);
    return true;
}

static bool
is_coordinate(const esdm_dataset *dataset)
{
    esdm_container *container = dataset->group->container;
    const esdm__cf *cf = &esdm__io_of(container)->cf;
    if (esdm__extents_find_coordinates(container, NULL) != ESDM_OK)
        return false;
    for (size_t i = 0; i < cf->nsources; i++) {
        if (cf->sources[i].dataset == dataset || cf->sources[i].bounds == dataset)
            return true;
    }
    return false;
}

void
esdm__range_of_pending(esdm_dataset *dataset, range *ret)
{
    esdm__dataset_io *io = dataset->io;
    bounding b = {.dataset = dataset, .unknown = {.rank = UINT32_MAX}};
    esdm__box_statistics found = {0};
    *ret = (range){0};
    esdm__missing_of(dataset, &b.missing);
    if (b.missing.class == ESDM__CLASS_NONE)
        return;
    b.total = (esdm__statistics){.class = b.missing.class, .rule = b.missing.rule};
    (void) pthread_mutex_lock(&io->lock);
    if (!esdm__index_pending_statistics(io->index, &b.total))
        esdm__index_pending_visit(io->index, add_bounded, &b);
    (void) pthread_mutex_unlock(&io->lock);
    *ret = range_of_statistics(&b.total);
    if (b.unknown.rank == UINT32_MAX || !is_coordinate(dataset) ||
        esdm__io_statistics(dataset, &b.unknown, false, true, &found, NULL) != ESDM_OK)
        return;
    const range more = range_of_statistics(&found.values);
    join(ret, &more);
}

/* ---- of both -------------------------------------------------------------------------------- */

esdm_status
esdm__range_of(const maker *m, esdm_dataset *dataset, bool read, range *ret)
{
    esdm__box box;
    esdm__box_statistics found = {0};
    esdm_error why = {0};
    bool ranks = m->written.ranges != NULL;
    *ret = (range){0};
    if (ranks && (!m->all || esdm__io_of(m->container)->record == 0)) {
        *ret = range_of_ranks(m, dataset);
        ret->merged = !m->all;
        return ESDM_OK;
    }
    if (!ranks && range_of_own(m, dataset, ret)) {
        ret->merged = !m->all;
        return ESDM_OK;
    }
    box_of(dataset, &box);
    esdm_status status = esdm__io_statistics(dataset, &box, false, read || m->read, &found, &why);
    if (status == ESDM_ENOTSUP) /* other programs' kinds of sources, strange missing values */
        return ESDM_OK;
    if (status != ESDM_OK) {
        if (m->err != NULL)
            *m->err = why;
        return status;
    }
    if (found.bounds || found.exact)
        *ret = range_of_statistics(&found.values);
    const range more = range_of_ranks(m, dataset);
    join(ret, &more);
    return ESDM_OK;
}

void
esdm__range_unpack(const esdm__cf_packing *packing, range *r)
{
    double a = r->low * packing->scale + packing->offset;
    double b = r->high * packing->scale + packing->offset;
    r->low = fmin(a, b);
    r->high = fmax(a, b);
}

/* ---- coordinates ---------------------------------------------------------------------------- */

static bool
date_key(const esdm__time_units *units, double number, double *ret)
{
    esdm__instant instant;
    esdm__date date;
    if (!esdm__time_decode(units, number, &instant) ||
        !esdm__instant_date(units->calendar, instant, &date))
        return false;
    *ret = esdm__date_key(&date);
    return true;
}

/* From stored numbers to what is entered. The end of the last interval is not in it. */
static void
translate(const esdm__cf_source *s, bool bounds, range *r)
{
    if (!r->known)
        return;
    esdm__range_unpack(&s->packing, r);
    if (s->kind != ESDM__CF_TIME)
        return;
    r->known = date_key(&s->time, r->low, &r->low) && date_key(&s->time, r->high, &r->high);
    if (r->known && bounds && r->high > r->low)
        r->high = nextafter(r->high, -INFINITY);
}

/* The range of the bounds where there are any, else that of the coordinate. */
static esdm_status
range_of_source(const maker *m, const esdm__cf_source *s, range *ret)
{
    esdm_status status = ESDM_OK;
    *ret = (range){0};
    bool whole = m->all || !esdm__extents_is_dirty(m, s->dataset);
    if (s->bounds != NULL && (whole || esdm__extents_is_dirty(m, s->bounds))) {
        status = esdm__range_of(m, s->bounds, true, ret);
        translate(s, true, ret);
    } else if (s->bounds != NULL && atomic_load(&s->bounds->has_data)) {
        return ESDM_OK;
    }
    if (status != ESDM_OK || ret->known)
        return status;
    status = esdm__range_of(m, s->dataset, true, ret);
    translate(s, false, ret);
    return status;
}

/* ---- longitudes ----------------------------------------------------------------------------- */

typedef struct turning {
    esdm__circle circle;
    esdm__cf_packing packing;
    esdm__missing missing;
    uint64_t vertices; /* of a cell; 1: points */
} turning;

static bool
is_missing(const turning *t, double value)
{
    for (uint32_t i = 0; i < t->missing.count; i++) {
        if (value == esdm__number_double(t->missing.class, t->missing.values[i]))
            return true;
    }
    return !isfinite(value);
}

/* A cell may lie across the line where its longitudes jump. */
static void
add_cell(turning *t, const double *at)
{
    double low = 0, high = 0, first = 0;
    bool any = false;
    for (uint64_t i = 0; i < t->vertices; i++) {
        if (is_missing(t, at[i]))
            continue;
        double degrees = at[i] * t->packing.scale + t->packing.offset;
        if (!any)
            first = low = high = degrees;
        any = true;
        if (t->vertices > 2)
            degrees -= 360 * round((degrees - first) / 360);
        low = fmin(low, degrees);
        high = fmax(high, degrees);
    }
    /* Of two bounds the range between them is meant, unless that goes around by the jump alone. */
    if (t->vertices == 2 && high - low > 180 && high - low < 360) {
        double west = high;
        high = low + 360;
        low = west;
    }
    if (any)
        esdm__circle_add(&t->circle, low, high);
}

static esdm_status
add_cells(void *user, const esdm__box *part, const void *values, esdm_error *err)
{
    turning *t = user;
    const double *at = values;
    uint64_t count = esdm__box_elements(part) / t->vertices;
    (void) err;
    for (uint64_t i = 0; i < count; i++)
        add_cell(t, at + i * t->vertices);
    return ESDM_OK;
}

/* Cells of the bounds, else points of the coordinate. */
static esdm_status
turn_dataset(turning *t, esdm_dataset *dataset, uint64_t vertices, esdm_error *err)
{
    esdm__box box;
    box_of(dataset, &box);
    uint64_t elements = esdm__box_elements(&box);
    if (elements == 0 || vertices == 0 || vertices > READ_ELEMENTS || elements > LONGITUDES_MOST)
        return ESDM_OK;
    uint64_t most = elements < READ_ELEMENTS ? elements : READ_ELEMENTS;
    double *buffer = malloc((size_t) most * sizeof *buffer);
    if (buffer == NULL)
        return esdm__error_nomem(err, (size_t) most * sizeof *buffer, "longitudes");
    t->vertices = vertices;
    esdm__missing_of(dataset, &t->missing);
    const esdm__parts parts = {dataset, ESDM_TYPE_FLOAT64, most, buffer, add_cells, t};
    esdm_status status = esdm__read_in_parts(&parts, &box, err);
    free(buffer);
    return status;
}

static esdm_status
turn_source(turning *t, const esdm__cf_source *s, esdm_error *err)
{
    double west, east;
    esdm_status status = ESDM_OK;
    t->packing = s->packing;
    if (s->bounds != NULL)
        status = turn_dataset(
            t, s->bounds, esdm_dimension_length(s->bounds->dimensions[s->bounds->rank - 1]), err);
    if (status != ESDM_OK || esdm__circle_range(&t->circle, &west, &east))
        return status;
    return turn_dataset(t, s->dataset, 1, err);
}

/* The range of longitudes that ranks have written, of which nothing can be read yet. It is known
 * when all of them lie on one half of the circle and the container had nothing before; else it
 * is the whole circle. */
static void
turn_ranks(const maker *m, const esdm__cf_source *s, range *ret)
{
    range r = range_of_ranks(m, s->dataset), bounds = range_of_ranks(m, s->bounds);
    join(&r, &bounds);
    esdm__range_unpack(&s->packing, &r);
    *ret = (range){.known = true, .low = -180, .high = 180};
    if (!m->all || esdm__io_of(m->container)->record != 0 || !r.known || !(r.high - r.low <= 180))
        return;
    ret->low = r.low - 360 * floor((r.low + 180) / 360);
    ret->high = ret->low + (r.high - r.low);
}

esdm_status
esdm__range_of_kind(maker *m, const esdm__cf_source *s, range *ret)
{
    turning t = {.vertices = 1};
    if (s->kind != ESDM__CF_LONGITUDE)
        return range_of_source(m, s, ret);
    *ret = (range){0};
    if (m->written.ranges != NULL &&
        (esdm__extents_is_dirty(m, s->dataset) || esdm__extents_is_dirty(m, s->bounds))) {
        turn_ranks(m, s, ret);
        return ESDM_OK;
    }
    esdm_status status = esdm__circle_init(&t.circle, m->err);
    if (status == ESDM_OK)
        status = turn_source(&t, s, m->err);
    if (status == ESDM_OK)
        ret->known = esdm__circle_range(&t.circle, &ret->low, &ret->high);
    esdm__circle_clear(&t.circle);
    return status;
}
