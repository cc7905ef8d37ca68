/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MODEL_BOX_H
#define ESDM_MODEL_BOX_H

/** @file Dense N-d boxes of element indices: the geometry of fragments. Values, no ownership. */

#include "esdm/types.h"

/** Indices lo[i] … lo[i]+n[i]-1. Rank 0 is the one point of a scalar. Some n[i] == 0: empty.
 *  lo[i]+n[i] never overflows. Only the first `rank` entries mean anything. */
typedef struct esdm__box {
    uint32_t rank;
    uint64_t lo[ESDM_MAX_RANK];
    uint64_t n[ESDM_MAX_RANK];
} esdm__box;

/** Copies `rank` values each; lo NULL means zeros. */
void esdm__box_set(esdm__box *box, uint32_t rank, const uint64_t *lo, const uint64_t *n);
/** Cheap copy of the used part. */
void esdm__box_copy(esdm__box *to, const esdm__box *from);
/** Smallest box that holds every element the hyperslab selects (strides included). */
void esdm__box_of_space(esdm__box *box, const esdm_dataspace *space);
bool esdm__box_is_empty(const esdm__box *box);
bool esdm__box_equal(const esdm__box *a, const esdm__box *b);
/** Number of elements; saturates at UINT64_MAX. */
uint64_t esdm__box_elements(const esdm__box *box);
/** false, and *ret untouched, when they do not meet. ret may be a or b. */
bool esdm__box_intersect(const esdm__box *a, const esdm__box *b, esdm__box *ret);
/** Whether they share an element. */
bool esdm__box_meets(const esdm__box *a, const esdm__box *b);
bool esdm__box_contains(const esdm__box *outer, const esdm__box *inner);
/** Grows `box` to the hull of both; an empty `box` becomes `other`. */
void esdm__box_hull(esdm__box *box, const esdm__box *other);
/**
 * Writes a \ b as at most 2*rank disjoint boxes.
 * @param ret array of 2*ESDM_MAX_RANK. @return number of boxes; 1 (a itself) if they do not meet.
 */
size_t esdm__box_subtract(const esdm__box *a, const esdm__box *b, esdm__box *ret);
/** "[0:12, 3:9]" (lo:lo+n per axis, "[]" for rank 0), cut to `bytes`; returns text. */
char *esdm__box_print(const esdm__box *box, char *text, size_t bytes);

#endif
