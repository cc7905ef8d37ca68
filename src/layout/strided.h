/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_LAYOUT_STRIDED_H
#define ESDM_LAYOUT_STRIDED_H

/**
 * @file
 * Strided fragments: every stride[d]-th element of a box, and no other. They hide nothing but
 * themselves; readers lay them over older data in the order of their sequence. Pure functions.
 */

#include "layout/bounds.h"
#include "layout/index.h"

/** What a strided record holds inside some bounds. Borrows everything. */
typedef struct esdm__strided {
    const uint64_t *bounds; /* layout/bounds.h; perhaps cut to a request */
    const uint64_t *stride;
    const uint64_t *origin; /* index of some element it holds */
    uint64_t sequence;
    uint32_t item; /* the caller's number for it */
} esdm__strided;

/**
 * Marks those that repeat others: a newer one has the same bounds, strides and elements there.
 * Sorts `items`. @param hidden one byte for each number `item`; set to 1, others stay as they are.
 */
void esdm__strided_hide_repeats(uint32_t rank, esdm__strided *items, size_t count, uint8_t *hidden);

/** Whether two pieces may have an element in common; dense ones count as filled. */
bool esdm__strided_meet(const esdm__piece *a, const esdm__piece *b);

/** Elements of a fragment inside a piece of it; UINT64_MAX when they are too many. */
uint64_t esdm__strided_elements(const esdm__piece *piece);

#endif
