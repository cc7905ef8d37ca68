/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_LAYOUT_CUTS_H
#define ESDM_LAYOUT_CUTS_H

/** @file Cutting a box into parts of bounded size, where fragments end as far as that goes. */

#include "layout/index.h"

/** Parts of a box, disjoint, in the order of their first elements along the axes that were cut. */
typedef struct esdm__cuts {
    uint32_t rank;
    size_t count;
    uint64_t *places; /* of each part `rank` first indices, then `rank` lengths; owned */
} esdm__cuts;

/**
 * A part has at most `most` elements, or one along the axes that can be cut. A box is cut along the
 * slowest axis on which pieces end inside of it, at the end that is nearest to its middle; where
 * none does, in two halves along its slowest axis.
 * @param pieces of a plan; only their boxes are looked at. Fragments that lie in a regular grid are
 * not cut unless one alone is larger than `most`.
 * @param ret_cuts esdm__cuts_clear(), also after a failure. @return ESDM_ENOMEM.
 */
esdm_status esdm__cuts_make(const esdm__box *box, const esdm__piece *pieces, size_t npieces,
                            uint64_t most, esdm__cuts *ret_cuts, esdm_error *err);
void esdm__cuts_clear(esdm__cuts *cuts);
void esdm__cuts_at(const esdm__cuts *cuts, size_t i, esdm__box *ret_box);

#endif
