/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "layout/rtree.h"

#include <stdlib.h>

/* Packing */

void
esdm__rtree_clear(esdm__rtree *tree)
{
    free(tree->hulls);
    free(tree->order);
    memset(tree, 0, sizeof *tree);
}

size_t
esdm__rtree_memory_bytes(const esdm__rtree *tree)
{
    size_t nodes = tree->levels > 0 ? tree->start[tree->levels] : 0;
    return nodes * 2 * tree->rank * sizeof(uint64_t) +
           (tree->order != NULL ? tree->count * sizeof(uint32_t) : 0);
}

static void
pack_node(const esdm__rtree *tree, const uint64_t *bounds, uint32_t level, uint32_t node)
{
    uint32_t rank = tree->rank;
    uint64_t *hull = tree->hulls + ((size_t) tree->start[level] + node) * 2 * rank;
    uint32_t first;
    uint32_t end = esdm__rtree_children(tree, level, node, &first);
    for (uint32_t i = first; i < end; i++) {
        const uint64_t *child = level == 0
                                    ? esdm__bounds_at(rank, bounds, esdm__rtree_item(tree, i))
                                    : esdm__rtree_hull(tree, level - 1, i);
        if (i == first)
            esdm__bounds_copy(rank, hull, child);
        else
            esdm__bounds_grow(rank, hull, child);
    }
}

bool
esdm__rtree_pack(esdm__rtree *tree, uint32_t rank, const uint64_t *bounds, uint32_t count,
                 uint32_t *order)
{
    *tree = (esdm__rtree){.rank = rank, .count = count, .order = order};
    for (uint32_t nodes = count; nodes > (tree->levels > 0 ? 1 : 0);) {
        nodes = nodes / ESDM__RTREE_FANOUT + (nodes % ESDM__RTREE_FANOUT != 0);
        tree->start[tree->levels + 1] = tree->start[tree->levels] + nodes;
        tree->levels++;
    }
    size_t numbers = (size_t) tree->start[tree->levels] * 2 * rank;
    tree->hulls = malloc((numbers + 1) * sizeof *tree->hulls); /* not NULL for rank 0 either */
    if (tree->hulls == NULL) {
        esdm__rtree_clear(tree);
        return false;
    }
    for (uint32_t level = 0; level < tree->levels; level++) {
        for (uint32_t node = 0; node < esdm__rtree_nodes(tree, level); node++)
            pack_node(tree, bounds, level, node);
    }
    return true;
}

bool
esdm__rtree_build(esdm__rtree *tree, uint32_t rank, const uint64_t *bounds, uint32_t count)
{
    uint32_t *order = malloc((size_t) (count > 0 ? count : 1) * sizeof *order);
    if (order == NULL)
        return false;
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    if (!esdm__rtree_sort(rank, bounds, order, count)) {
        free(order);
        return false;
    }
    return esdm__rtree_pack(tree, rank, bounds, count, order);
}

/* Query */

typedef struct query {
    const esdm__rtree *tree;
    const uint64_t *bounds;
    const uint64_t *request;
    esdm__rtree_fn visit;
    void *user;
} query;

/* Visits all items below a node that lies inside the request. */
static bool
visit_all(const query *q, uint32_t level, uint32_t node)
{
    uint64_t first = node;
    uint64_t end = (uint64_t) node + 1;
    for (uint32_t l = 0; l <= level; l++) {
        first *= ESDM__RTREE_FANOUT;
        end *= ESDM__RTREE_FANOUT;
    }
    end = end < q->tree->count ? end : q->tree->count;
    for (uint64_t i = first; i < end; i++) {
        if (!q->visit(esdm__rtree_item(q->tree, (uint32_t) i), q->user))
            return false;
    }
    return true;
}

static bool
query_node(const query *q, uint32_t level, uint32_t node)
{
    const esdm__rtree *tree = q->tree;
    const uint64_t *hull = esdm__rtree_hull(tree, level, node);
    if (!esdm__bounds_meet(tree->rank, hull, q->request))
        return true;
    if (esdm__bounds_contain(tree->rank, q->request, hull))
        return visit_all(q, level, node);
    uint32_t first;
    uint32_t end = esdm__rtree_children(tree, level, node, &first);
    for (uint32_t i = first; i < end; i++) {
        if (level > 0) {
            if (!query_node(q, level - 1, i))
                return false;
            continue;
        }
        uint32_t box = esdm__rtree_item(tree, i);
        if (esdm__bounds_meet(tree->rank, esdm__bounds_at(tree->rank, q->bounds, box),
                              q->request) &&
            !q->visit(box, q->user))
            return false;
    }
    return true;
}

bool
esdm__rtree_query(const esdm__rtree *tree, const uint64_t *bounds, const uint64_t *request,
                  esdm__rtree_fn visit, void *user)
{
    const query q = {tree, bounds, request, visit, user};
    return tree->levels == 0 || query_node(&q, tree->levels - 1, 0);
}

/* Self join */

#define JOIN_TESTS_FREE 4096u

typedef struct join {
    const esdm__rtree *tree;
    const uint64_t *bounds;
    uint8_t *mark;
    uint8_t *full; /* per node: all items below are marked */
    uint64_t tests_left;
} join;

static const uint64_t *
join_bounds(const join *j, uint32_t item)
{
    return esdm__bounds_at(j->tree->rank, j->bounds, esdm__rtree_item(j->tree, item));
}

static void
join_items(join *j, uint32_t a, uint32_t b)
{
    uint32_t box_a = esdm__rtree_item(j->tree, a);
    uint32_t box_b = esdm__rtree_item(j->tree, b);
    if ((j->mark[box_a] & j->mark[box_b]) == 0 &&
        esdm__bounds_meet(j->tree->rank, join_bounds(j, a), join_bounds(j, b)))
        j->mark[box_a] = j->mark[box_b] = 1;
}

static bool
join_spend(join *j, uint64_t tests)
{
    if (j->tests_left < tests)
        return false;
    j->tests_left -= tests;
    return true;
}

/* Marks pairs with one item below each of two nodes. False when the tests are used up. */
static bool
join_cross(join *j, uint32_t level, uint32_t a, uint32_t b)
{
    const esdm__rtree *tree = j->tree;
    if (j->full[tree->start[level] + a] && j->full[tree->start[level] + b])
        return true;
    const uint64_t *hull_a = esdm__rtree_hull(tree, level, a);
    const uint64_t *hull_b = esdm__rtree_hull(tree, level, b);
    if (!esdm__bounds_meet(tree->rank, hull_a, hull_b))
        return true;
    uint32_t first_a, first_b;
    uint32_t end_a = esdm__rtree_children(tree, level, a, &first_a);
    uint32_t end_b = esdm__rtree_children(tree, level, b, &first_b);
    if (!join_spend(j, (uint64_t) (end_a - first_a) * (1 + end_b - first_b)))
        return false;
    for (uint32_t i = first_a; i < end_a; i++) {
        const uint64_t *child =
            level > 0 ? esdm__rtree_hull(tree, level - 1, i) : join_bounds(j, i);
        if (!esdm__bounds_meet(tree->rank, child, hull_b))
            continue;
        for (uint32_t k = first_b; k < end_b; k++) {
            if (level == 0)
                join_items(j, i, k);
            else if (!join_cross(j, level - 1, i, k))
                return false;
        }
    }
    return true;
}

/* Marks pairs below one node. */
static bool
join_self(join *j, uint32_t level, uint32_t node)
{
    const esdm__rtree *tree = j->tree;
    uint32_t first;
    uint32_t end = esdm__rtree_children(tree, level, node, &first);
    for (uint32_t i = first; level > 0 && i < end; i++) {
        if (!join_self(j, level - 1, i))
            return false;
    }
    if (!join_spend(j, (uint64_t) (end - first) * (end - first)))
        return false;
    for (uint32_t i = first; i < end; i++) {
        for (uint32_t k = i + 1; k < end; k++) {
            if (level == 0)
                join_items(j, i, k);
            else if (!join_cross(j, level - 1, i, k))
                return false;
        }
    }
    bool full = true;
    for (uint32_t i = first; i < end && full; i++)
        full = level == 0 ? j->mark[esdm__rtree_item(tree, i)] != 0
                          : j->full[tree->start[level - 1] + i] != 0;
    j->full[tree->start[level] + node] = full;
    return true;
}

bool
esdm__rtree_self_join(const esdm__rtree *tree, const uint64_t *bounds, uint32_t tests_per_box,
                      uint8_t *mark)
{
    if (tree->levels == 0)
        return true;
    join j = {.tree = tree,
              .bounds = bounds,
              .mark = mark,
              .full = calloc(tree->start[tree->levels], 1),
              .tests_left = (uint64_t) tree->count * tests_per_box + JOIN_TESTS_FREE};
    bool complete = j.full != NULL && join_self(&j, tree->levels - 1, 0);
    free(j.full);
    return complete;
}
