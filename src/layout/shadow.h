/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_LAYOUT_SHADOW_H
#define ESDM_LAYOUT_SHADOW_H

/** @file Newest wins: which parts of boxes are not hidden by newer ones. Pure functions. */

#include "layout/bounds.h"

typedef struct esdm__parts {
    size_t count;
    size_t capacity;
    uint64_t *bounds; /* owned; disjoint */
    uint32_t *owner;  /* owned; index of the box that a part belongs to */
} esdm__parts;

/**
 * Splits the union of the boxes into disjoint parts, each of the newest box there. Boxes that meet
 * no other stay whole; of the others the newer ones are subtracted, found through an R-tree, so
 * that n boxes without overlap cost O(n log n), and overlaps cost O(log n) for each cut that they
 * make.
 *
 * @param sequence of each box; the greater is the newer, of equal ones the later index.
 * @param porous NULL, or one byte a box: not 0 for boxes that hide nothing, because they are not
 * filled (strided fragments). Newer ones that are filled are subtracted from them too, but their
 * parts meet those of others.
 * @param ret_parts zeroed, or reused (then it keeps its memory); its contents are replaced, also by
 * a failure. Parts of one box follow each other.
 */
esdm_status esdm__shadow_parts(uint32_t rank, const uint64_t *bounds, const uint64_t *sequence,
                               const uint8_t *porous, uint32_t count, esdm__parts *ret_parts,
                               esdm_error *err);
void esdm__parts_clear(esdm__parts *parts); /* a zeroed one is accepted */

#endif
