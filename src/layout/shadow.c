/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "layout/shadow.h"

#include <stdlib.h>

#include "base/error.h"
#include "layout/rtree.h"

#define TESTS_ORDERED 28u
#define TESTS_SORTED  256u

/* Growing lists of boxes */

static bool
parts_reserve(esdm__parts *parts, uint32_t rank, size_t more)
{
    if (parts->count + more <= parts->capacity && parts->bounds != NULL)
        return true;
    size_t capacity = parts->capacity < 8 ? 8 : parts->capacity;
    while (capacity < parts->count + more)
        capacity += capacity / 2;
    uint64_t *bounds = realloc(parts->bounds, (capacity * 2 * rank + 1) * sizeof *bounds);
    if (bounds != NULL)
        parts->bounds = bounds;
    uint32_t *owner = realloc(parts->owner, capacity * sizeof *owner);
    if (owner != NULL)
        parts->owner = owner;
    if (bounds == NULL || owner == NULL)
        return false;
    parts->capacity = capacity;
    return true;
}

static bool
parts_add(esdm__parts *parts, uint32_t rank, const uint64_t *bounds, uint32_t owner)
{
    if (!parts_reserve(parts, rank, 1))
        return false;
    esdm__bounds_copy(rank, parts->bounds + parts->count * 2 * rank, bounds);
    parts->owner[parts->count++] = owner;
    return true;
}

void
esdm__parts_clear(esdm__parts *parts)
{
    free(parts->bounds);
    free(parts->owner);
    memset(parts, 0, sizeof *parts);
}

/* Subtraction */

typedef struct shadow {
    uint32_t rank;
    const uint64_t *bounds;
    const uint64_t *sequence;
    const uint8_t *porous; /* or NULL */
    esdm__rtree tree;
    uint8_t *accepted; /* per box: newer than the current one and not wholly hidden */
    uint8_t *lit;      /* per node: something below is accepted */
    uint32_t *item;    /* per box: its place in the tree */
    esdm__parts stack; /* rest of the current box, still to be looked at */
} shadow;

/* The best box found so far to cut a part with. */
typedef struct cut {
    const uint64_t *part;
    double overlap;
    const uint64_t *by;
} cut;

static double
overlap(uint32_t rank, const uint64_t *a, const uint64_t *b)
{
    double volume = 1;
    for (uint32_t d = 0; d < rank; d++) {
        uint64_t lo = a[d] > b[d] ? a[d] : b[d];
        uint64_t hi = a[rank + d] < b[rank + d] ? a[rank + d] : b[rank + d];
        if (lo >= hi)
            return 0;
        volume *= (double) (hi - lo);
    }
    return volume;
}

static void
try_items(const shadow *s, cut *c, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        uint32_t box = esdm__rtree_item(&s->tree, i);
        if (s->accepted[box] == 0)
            continue;
        const uint64_t *by = esdm__bounds_at(s->rank, s->bounds, box);
        double common = overlap(s->rank, c->part, by);
        if (common > c->overlap) {
            c->overlap = common;
            c->by = by;
        }
    }
}

/*
 * Descends into the nodes that promise most, until a box is found. Large cuts first: many nested
 * boxes then take one cut each and not one for each pair.
 */
static void
find_cut(const shadow *s, cut *c, uint32_t level, uint32_t node)
{
    uint32_t first;
    uint32_t end = esdm__rtree_children(&s->tree, level, node, &first);
    if (level == 0) {
        try_items(s, c, first, end);
        return;
    }
    uint32_t children[ESDM__RTREE_FANOUT];
    double promise[ESDM__RTREE_FANOUT];
    uint32_t n = 0;
    for (uint32_t child = first; child < end; child++) {
        if (s->lit[s->tree.start[level - 1] + child] == 0)
            continue;
        double most = overlap(s->rank, c->part, esdm__rtree_hull(&s->tree, level - 1, child));
        if (most <= 0)
            continue;
        uint32_t at = n++;
        for (; at > 0 && promise[at - 1] < most; at--) {
            promise[at] = promise[at - 1];
            children[at] = children[at - 1];
        }
        promise[at] = most;
        children[at] = child;
    }
    for (uint32_t i = 0; i < n && c->by == NULL; i++)
        find_cut(s, c, level - 1, children[i]);
}

/* Pushes part \ by as slabs, dimension by dimension. `part` is a copy, and is consumed. */
static bool
push_rest(shadow *s, uint64_t *part, const uint64_t *by)
{
    uint32_t rank = s->rank;
    if (!parts_reserve(&s->stack, rank, (size_t) 2 * rank))
        return false;
    for (uint32_t d = 0; d < rank; d++) {
        uint64_t lo = part[d];
        uint64_t hi = part[rank + d];
        if (lo < by[d]) {
            part[rank + d] = by[d];
            (void) parts_add(&s->stack, rank, part, 0);
            lo = by[d];
        }
        if (hi > by[rank + d]) {
            part[d] = by[rank + d];
            part[rank + d] = hi;
            (void) parts_add(&s->stack, rank, part, 0);
            hi = by[rank + d];
        }
        part[d] = lo;
        part[rank + d] = hi;
    }
    return true;
}

static void
accept(shadow *s, uint32_t box)
{
    s->accepted[box] = 1;
    uint32_t node = s->item[box];
    for (uint32_t level = 0; level < s->tree.levels; level++) {
        node /= ESDM__RTREE_FANOUT;
        uint8_t *lit = &s->lit[s->tree.start[level] + node];
        if (*lit != 0)
            break;
        *lit = 1;
    }
}

/* Adds the parts of one box that the accepted, newer ones leave. */
static bool
cut_box(shadow *s, uint32_t box, esdm__parts *parts)
{
    uint64_t part[2 * ESDM_MAX_RANK];
    size_t before = parts->count;
    s->stack.count = 0;
    if (!parts_add(&s->stack, s->rank, esdm__bounds_at(s->rank, s->bounds, box), 0))
        return false;
    while (s->stack.count > 0) {
        s->stack.count--;
        esdm__bounds_copy(s->rank, part, esdm__bounds_at(s->rank, s->stack.bounds, s->stack.count));
        cut c = {.part = part};
        find_cut(s, &c, s->tree.levels - 1, 0);
        bool room = c.by == NULL ? parts_add(parts, s->rank, part, box) : push_rest(s, part, c.by);
        if (!room)
            return false;
    }
    if (parts->count > before && (s->porous == NULL || s->porous[box] == 0))
        accept(s, box);
    return true;
}

/* Order of work */

typedef struct age {
    uint64_t sequence;
    uint32_t box;
} age;

static int
newest_first(const void *a, const void *b)
{
    const age *x = a;
    const age *y = b;
    if (x->sequence != y->sequence)
        return x->sequence > y->sequence ? -1 : 1;
    return x->box > y->box ? -1 : 1;
}

static bool
cut_marked(shadow *s, uint32_t count, size_t marks, const uint8_t *mark, esdm__parts *parts)
{
    age *ages = malloc(marks * sizeof *ages);
    s->accepted = calloc(count, 1);
    s->lit = calloc(s->tree.start[s->tree.levels], 1);
    s->item = malloc(count * sizeof *s->item);
    bool ok = ages != NULL && s->accepted != NULL && s->lit != NULL && s->item != NULL;
    size_t n = 0;
    for (uint32_t i = 0; ok && i < count; i++) {
        s->item[esdm__rtree_item(&s->tree, i)] = i;
        if (mark[i] != 0)
            ages[n++] = (age){s->sequence[i], i};
    }
    if (ok)
        qsort(ages, n, sizeof *ages, newest_first);
    for (size_t i = 0; ok && i < n; i++)
        ok = cut_box(s, ages[i].box, parts);
    free(ages);
    return ok;
}

/* Boxes often come in a good order already, from pages or in the order of writing: then sorting,
 * which costs most, is not needed. */
static bool
build_tree(shadow *s, uint32_t count, uint8_t *mark)
{
    if (!esdm__rtree_pack(&s->tree, s->rank, s->bounds, count, NULL))
        return false;
    if (esdm__rtree_self_join(&s->tree, s->bounds, TESTS_ORDERED, mark))
        return true;
    esdm__rtree_clear(&s->tree);
    memset(mark, 0, count);
    if (!esdm__rtree_build(&s->tree, s->rank, s->bounds, count))
        return false;
    if (!esdm__rtree_self_join(&s->tree, s->bounds, TESTS_SORTED, mark))
        memset(mark, 1, count); /* so entangled that looking further would not pay */
    return true;
}

static bool
find_parts(shadow *s, uint32_t count, uint8_t *mark, esdm__parts *parts)
{
    if (!build_tree(s, count, mark) || !parts_reserve(parts, s->rank, count))
        return false;
    size_t marks = 0;
    for (uint32_t i = 0; i < count; i++) {
        marks += mark[i];
        if (mark[i] == 0)
            (void) parts_add(parts, s->rank, esdm__bounds_at(s->rank, s->bounds, i), i);
    }
    return marks == 0 || cut_marked(s, count, marks, mark, parts);
}

esdm_status
esdm__shadow_parts(uint32_t rank, const uint64_t *bounds, const uint64_t *sequence,
                   const uint8_t *porous, uint32_t count, esdm__parts *ret_parts, esdm_error *err)
{
    ret_parts->count = 0;
    if (count == 0)
        return ESDM_OK;
    shadow s = {.rank = rank, .bounds = bounds, .sequence = sequence, .porous = porous};
    uint8_t *mark = calloc(count, 1);
    bool ok = mark != NULL && find_parts(&s, count, mark, ret_parts);
    free(mark);
    esdm__rtree_clear(&s.tree);
    esdm__parts_clear(&s.stack);
    free(s.accepted);
    free(s.lit);
    free(s.item);
    return ok ? ESDM_OK
              : esdm__error_nomem(err, (size_t) count * 2 * rank * sizeof *bounds,
                                  "overlaps of fragments");
}
