/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Which of several snapshots has what two lines have in common. */

#include "merge/merge.h"

uint8_t
esdm__bases_pick(const esdm__bases *bases, esdm__bases_same same, const void *user, uint64_t i)
{
    uint8_t picked[ESDM__BASES_NODES];
    for (size_t n = 0; n < bases->count; n++) {
        const esdm__base_node *node = &bases->nodes[n];
        uint8_t sides[3] = {node->base, node->one, node->other};
        if (node->is_leaf) {
            picked[n] = node->leaf;
            continue;
        }
        for (int s = 0; s < 3; s++)
            sides[s] = sides[s] != ESDM__BASE_UNKNOWN ? picked[sides[s]] : ESDM__BASE_UNKNOWN;
        picked[n] = ESDM__BASE_UNKNOWN;
        if (sides[1] == ESDM__BASE_UNKNOWN || sides[2] == ESDM__BASE_UNKNOWN)
            continue;
        if (same(user, sides[1], sides[2], i))
            picked[n] = sides[1];
        else if (sides[0] != ESDM__BASE_UNKNOWN && same(user, sides[0], sides[1], i))
            picked[n] = sides[2];
        else if (sides[0] != ESDM__BASE_UNKNOWN && same(user, sides[0], sides[2], i))
            picked[n] = sides[1];
    }
    return bases->last != ESDM__BASE_UNKNOWN ? picked[bases->last] : ESDM__BASE_UNKNOWN;
}

uint32_t
esdm__merge_leaves(const esdm__merging *m)
{
    return m->bases != NULL ? (uint32_t) m->bases->nleaves : 1;
}

esdm_container *
esdm__merge_leaf(const esdm__merging *m, uint32_t leaf)
{
    return m->bases != NULL ? m->bases->leaves[leaf] : m->base;
}
