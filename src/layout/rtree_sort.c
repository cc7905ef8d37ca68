/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The order of records in a packed R-tree. */

#include "layout/rtree.h"

#include <stdlib.h>

/* The order of a packed R-tree; see rtree.h. */

#define SAMPLE_MAX 256u

typedef struct sort_key {
    uint64_t key; /* twice the centre, so that boxes with one lower corner are still told apart */
    uint32_t box;
} sort_key;

typedef struct sorter {
    uint32_t rank;
    const uint64_t *bounds;
    uint32_t *order;
    sort_key *keys;
    uint64_t random;
} sorter;

static bool
key_less(const sort_key *a, const sort_key *b)
{
    return a->key != b->key ? a->key < b->key : a->box < b->box;
}

static int
key_compare(const void *a, const void *b)
{
    return key_less(a, b) ? -1 : 1;
}

static uint64_t
centre(const sorter *s, uint32_t box, uint32_t dimension)
{
    const uint64_t *b = esdm__bounds_at(s->rank, s->bounds, box);
    return b[dimension] / 2 + b[s->rank + dimension] / 2;
}

/* Distance of the outermost lower corners in units of the mean size, looking at every step-th box.
 */
static double
spread(const sorter *s, uint32_t first, uint32_t count, uint32_t step, uint32_t dimension)
{
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;
    double size = 0;
    uint32_t samples = 0;
    for (uint32_t i = 0; i < count; i += step, samples++) {
        const uint64_t *b = esdm__bounds_at(s->rank, s->bounds, s->order[first + i]);
        uint64_t lower = b[dimension];
        least = lower < least ? lower : least;
        most = lower > most ? lower : most;
        size += (double) (b[s->rank + dimension] - lower);
    }
    return (double) (most - least) * samples / (size > 0 ? size : 1);
}

/* The dimension of the widest spread, and whether it is the only one with any. */
static uint32_t
choose_dimension(const sorter *s, uint32_t first, uint32_t count, uint32_t step, double *ret_spread,
                 bool *ret_alone)
{
    uint32_t best = 0;
    uint32_t spreading = 0;
    *ret_spread = 0;
    for (uint32_t d = 0; d < s->rank; d++) {
        double width = spread(s, first, count, step, d);
        spreading += width > 0;
        if (width > *ret_spread) {
            *ret_spread = width;
            best = d;
        }
    }
    *ret_alone = spreading <= 1;
    return best;
}

/* Quickselect: the `nth` smallest keys come first. Pivots are random, from a fixed seed. */
static void
select_keys(sorter *s, sort_key *keys, uint32_t count, uint32_t nth)
{
    uint32_t lo = 0;
    uint32_t hi = count;
    while (hi - lo > 1) {
        s->random = s->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        sort_key pivot = keys[lo + (uint32_t) ((s->random >> 33) % (hi - lo))];
        uint32_t i = lo;
        uint32_t k = hi - 1;
        for (;;) { /* Hoare: both scans stop at the pivot itself at the latest */
            while (key_less(&keys[i], &pivot))
                i++;
            while (key_less(&pivot, &keys[k]))
                k--;
            if (i >= k)
                break;
            sort_key swap = keys[i];
            keys[i] = keys[k];
            keys[k] = swap;
        }
        /* keys[i] is the pivot: all keys differ by their box */
        if (nth == i || nth == i + 1)
            return;
        if (nth < i)
            hi = i;
        else
            lo = i + 1;
    }
}

/* Where to cut: the multiple of the largest power of 16 below count that is nearest to the middle.
 */
static uint32_t
cut_position(uint32_t count)
{
    uint32_t unit = ESDM__RTREE_FANOUT;
    while (unit <= (count - 1) / ESDM__RTREE_FANOUT)
        unit *= ESDM__RTREE_FANOUT;
    uint32_t units = (uint32_t) (((uint64_t) count + unit) / (2 * (uint64_t) unit));
    return units > 0 ? units * unit : unit;
}

/* Loads keys of one dimension; returns whether they are in order already. */
static bool
load_keys(sorter *s, uint32_t first, uint32_t count, uint32_t dimension)
{
    bool sorted = true;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t box = s->order[first + i];
        s->keys[i] = (sort_key){centre(s, box, dimension), box};
        sorted = sorted && (i == 0 || s->keys[i - 1].key <= s->keys[i].key);
    }
    return sorted;
}

static void
store_keys(sorter *s, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        s->order[first + i] = s->keys[i].box;
}

static void
sort_range(sorter *s, uint32_t first, uint32_t count)
{
    while (count > ESDM__RTREE_FANOUT) {
        bool alone;
        double width;
        uint32_t step = count / SAMPLE_MAX + 1;
        uint32_t dimension = choose_dimension(s, first, count, step, &width, &alone);
        if (step > 1 && alone) /* the samples may mislead: look at all */
            dimension = choose_dimension(s, first, count, 1, &width, &alone);
        if (width <= 0)
            return;
        bool sorted = load_keys(s, first, count, dimension);
        if (alone) {
            if (!sorted) {
                qsort(s->keys, count, sizeof *s->keys, key_compare);
                store_keys(s, first, count);
            }
            return;
        }
        uint32_t cut = cut_position(count);
        if (!sorted) {
            select_keys(s, s->keys, count, cut);
            store_keys(s, first, count);
        }
        sort_range(s, first, cut);
        first += cut;
        count -= cut;
    }
}

bool
esdm__rtree_sort(uint32_t rank, const uint64_t *bounds, uint32_t *order, uint32_t count)
{
    if (rank == 0 || count <= ESDM__RTREE_FANOUT)
        return true;
    sorter s = {.rank = rank, .bounds = bounds, .order = order, .random = 1};
    s.keys = malloc((size_t) count * sizeof *s.keys);
    if (s.keys == NULL)
        return false;
    sort_range(&s, 0, count);
    free(s.keys);
    return true;
}
