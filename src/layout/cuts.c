/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "layout/cuts.h"

#include <stdlib.h>

#include "base/error.h"

/* Where pieces begin or end inside of a box, along each axis; sorted, each once. */
typedef struct bounds {
    uint64_t *at[ESDM_MAX_RANK];
    size_t count[ESDM_MAX_RANK];
} bounds;

typedef struct cutter {
    bounds bounds;
    uint64_t most;
    size_t capacity;
    esdm__cuts *cuts;
    esdm__box *waiting;
    size_t nwaiting, room;
} cutter;

/* ---- bounds ---------------------------------------------------------------------------------- */

static int
by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;
    return (x > y) - (x < y);
}

static void
add_bound(const esdm__box *box, uint32_t axis, uint64_t at, bounds *b)
{
    size_t n = b->count[axis];
    if (at <= box->lo[axis] || at - box->lo[axis] >= box->n[axis])
        return;
    if (n == 0 || b->at[axis][n - 1] != at) /* neighbours often have the same */
        b->at[axis][b->count[axis]++] = at;
}

static void
sort_bounds(uint64_t *at, size_t *count)
{
    size_t kept = 0;
    qsort(at, *count, sizeof *at, by_number);
    for (size_t i = 0; i < *count; i++) {
        if (kept == 0 || at[kept - 1] != at[i])
            at[kept++] = at[i];
    }
    *count = kept;
}

static bool
find_bounds(const esdm__box *box, const esdm__piece *pieces, size_t npieces, bounds *b)
{
    for (uint32_t axis = 0; axis < box->rank && npieces > 0; axis++) {
        b->at[axis] = malloc(2 * npieces * sizeof *b->at[axis]);
        if (b->at[axis] == NULL)
            return false;
        for (size_t i = 0; i < npieces; i++) {
            const esdm__box *part = &pieces[i].part;
            add_bound(box, axis, part->lo[axis], b);
            add_bound(box, axis, part->lo[axis] + part->n[axis], b);
        }
        sort_bounds(b->at[axis], &b->count[axis]);
    }
    return true;
}

/* The bound inside of [lo, lo + n) that is nearest to its middle; 0: there is none. */
static uint64_t
nearest_bound(const bounds *b, uint32_t axis, uint64_t lo, uint64_t n)
{
    const uint64_t *at = b->at[axis];
    uint64_t middle = lo + n / 2;
    size_t from = 0, to = n > 1 ? b->count[axis] : 0;
    while (from < to) {
        size_t half = from + (to - from) / 2;
        if (at[half] < middle)
            from = half + 1;
        else
            to = half;
    }
    bool above = n > 1 && from < b->count[axis] && at[from] - lo < n;
    bool below = from > 0 && at[from - 1] > lo;
    if (above && below)
        return at[from] - middle < middle - at[from - 1] ? at[from] : at[from - 1];
    return above ? at[from] : below ? at[from - 1] : 0;
}

/* ---- cutting --------------------------------------------------------------------------------- */

static bool
add_part(cutter *c, const esdm__box *box)
{
    esdm__cuts *cuts = c->cuts;
    if (cuts->count == c->capacity) {
        size_t capacity = c->capacity == 0 ? 64 : 2 * c->capacity;
        uint64_t *grown = realloc(cuts->places, capacity * (2 * cuts->rank + 1) * sizeof *grown);
        if (grown == NULL)
            return false;
        cuts->places = grown;
        c->capacity = capacity;
    }
    uint64_t *place = cuts->places + cuts->count++ * 2 * cuts->rank;
    for (uint32_t d = 0; d < cuts->rank; d++) {
        place[d] = box->lo[d];
        place[cuts->rank + d] = box->n[d];
    }
    return true;
}

/* Where a box is to be cut; false: nowhere. */
static bool
choose_cut(const cutter *c, const esdm__box *box, uint32_t *ret_axis, uint64_t *ret_at)
{
    if (esdm__box_elements(box) <= c->most)
        return false;
    for (uint32_t axis = 0; axis < box->rank; axis++) {
        *ret_axis = axis;
        *ret_at = nearest_bound(&c->bounds, axis, box->lo[axis], box->n[axis]);
        if (*ret_at != 0)
            return true;
    }
    uint32_t axis = 0;
    while (axis < box->rank && box->n[axis] == 1)
        axis++;
    if (axis == box->rank)
        return false;
    *ret_axis = axis;
    *ret_at = box->lo[axis] + box->n[axis] / 2;
    return true;
}

/* Boxes that are not cut yet lie on a stack of our own: as many as pieces in a row at worst. */
static bool
push(cutter *c, const esdm__box *box)
{
    if (c->nwaiting == c->room) {
        size_t room = c->room == 0 ? 32 : 2 * c->room;
        esdm__box *grown = realloc(c->waiting, room * sizeof *grown);
        if (grown == NULL)
            return false;
        c->waiting = grown;
        c->room = room;
    }
    esdm__box_copy(&c->waiting[c->nwaiting++], box);
    return true;
}

static bool
cut(cutter *c, const esdm__box *whole)
{
    uint32_t axis = 0;
    uint64_t at = 0;
    bool good = push(c, whole);
    while (good && c->nwaiting > 0) {
        esdm__box box;
        esdm__box_copy(&box, &c->waiting[--c->nwaiting]);
        if (!choose_cut(c, &box, &axis, &at)) {
            good = add_part(c, &box);
            continue;
        }
        uint64_t low = at - box.lo[axis];
        box.lo[axis] = at;
        box.n[axis] -= low;
        good = push(c, &box);
        box.lo[axis] -= low;
        box.n[axis] = low;
        good = good && push(c, &box);
    }
    free(c->waiting);
    return good;
}

esdm_status
esdm__cuts_make(const esdm__box *box, const esdm__piece *pieces, size_t npieces, uint64_t most,
                esdm__cuts *ret_cuts, esdm_error *err)
{
    cutter c = {.most = most > 0 ? most : 1, .cuts = ret_cuts};
    *ret_cuts = (esdm__cuts){.rank = box->rank};
    bool good =
        esdm__box_is_empty(box) || (find_bounds(box, pieces, npieces, &c.bounds) && cut(&c, box));
    for (uint32_t axis = 0; axis < box->rank; axis++)
        free(c.bounds.at[axis]);
    return good ? ESDM_OK : esdm__error_nomem(err, npieces * 16, "the parts of a box");
}

void
esdm__cuts_clear(esdm__cuts *cuts)
{
    free(cuts->places);
    *cuts = (esdm__cuts){0};
}

void
esdm__cuts_at(const esdm__cuts *cuts, size_t i, esdm__box *ret_box)
{
    const uint64_t *place = cuts->places + i * 2 * cuts->rank;
    esdm__box_set(ret_box, cuts->rank, place, place + cuts->rank);
}
