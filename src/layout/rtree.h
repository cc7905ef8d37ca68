/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_LAYOUT_RTREE_H
#define ESDM_LAYOUT_RTREE_H

/**
 * @file
 * Static packed R-tree over boxes: items in an order that keeps neighbours together, and the hulls
 * of every 16 items, of every 16 of those, and so on. The order comes from sort-tile recursion: cut
 * at the median of the dimension along which the boxes spread most, at a multiple of a power of 16,
 * until 16 are left (Leutenegger et al. 1997, with the dimension chosen by the data: steps of a
 * time series spread along time alone).
 *
 * Boxes stay with the caller (layout/bounds.h). Immutable after build; reads in many threads.
 */

#include "layout/bounds.h"

#define ESDM__RTREE_FANOUT 16u
#define ESDM__RTREE_LEVELS 8u /* 16^8 = 2^32 items */

typedef struct esdm__rtree {
    uint32_t rank;
    uint32_t count;
    uint32_t levels; /* 0 when there are no items */
    uint32_t
        start[ESDM__RTREE_LEVELS + 1]; /* first node of each level in `hulls`, then their number */
    uint64_t *hulls;                   /* owned; nodes of all levels, lowest first */
    uint32_t *order;                   /* owned; item i is box order[i]; NULL: box i */
} esdm__rtree;

/** Return false to stop. */
typedef bool (*esdm__rtree_fn)(uint32_t box, void *user);

/**
 * Permutes `order` (`count` indices of boxes) so that neighbours come together. Deterministic;
 * every aligned run of 16^k entries is compact. O(n log n), and about O(n) when the boxes already
 * are in order.
 * @return false when out of memory; the order is then still a permutation.
 */
bool esdm__rtree_sort(uint32_t rank, const uint64_t *bounds, uint32_t *order, uint32_t count);

/** Hulls over the items in the order given; no sorting. @param order taken over in every case, or
 * NULL.
 *  @return false when out of memory. */
bool esdm__rtree_pack(esdm__rtree *tree, uint32_t rank, const uint64_t *bounds, uint32_t count,
                      uint32_t *order);
/** Sorts and packs. @return false when out of memory. */
bool esdm__rtree_build(esdm__rtree *tree, uint32_t rank, const uint64_t *bounds, uint32_t count);
void esdm__rtree_clear(esdm__rtree *tree); /* a zeroed one is accepted */
size_t esdm__rtree_memory_bytes(const esdm__rtree *tree);

/** Visits every box that meets `request`. @return false when a visit returned false. */
bool esdm__rtree_query(const esdm__rtree *tree, const uint64_t *bounds, const uint64_t *request,
                       esdm__rtree_fn visit, void *user);

/**
 * Marks the boxes that meet another box of the tree, comparing hulls first and pairs of boxes only
 * where something below is not marked yet.
 * @param mark one byte a box; set to 1 for those, others stay as they are.
 * @param tests_per_box how many comparisons to spend at most, on average. Without overlaps and in a
 * good order about 20 are needed.
 * @return false when they did not suffice, or when out of memory; the marks are then incomplete.
 */
bool esdm__rtree_self_join(const esdm__rtree *tree, const uint64_t *bounds, uint32_t tests_per_box,
                           uint8_t *mark);

/** Number of nodes of a level. */
static inline uint32_t
esdm__rtree_nodes(const esdm__rtree *tree, uint32_t level)
{
    return tree->start[level + 1] - tree->start[level];
}

static inline const uint64_t *
esdm__rtree_hull(const esdm__rtree *tree, uint32_t level, uint32_t node)
{
    return esdm__bounds_at(tree->rank, tree->hulls, (size_t) tree->start[level] + node);
}

static inline uint32_t
esdm__rtree_item(const esdm__rtree *tree, uint32_t item)
{
    return tree->order != NULL ? tree->order[item] : item;
}

/** Children of a node (items, for level 0): [*ret_first, returned end). */
static inline uint32_t
esdm__rtree_children(const esdm__rtree *tree, uint32_t level, uint32_t node, uint32_t *ret_first)
{
    uint32_t below = level == 0 ? tree->count : esdm__rtree_nodes(tree, level - 1);
    *ret_first = node * ESDM__RTREE_FANOUT;
    uint32_t end = *ret_first + ESDM__RTREE_FANOUT;
    return end < below ? end : below;
}

#endif
