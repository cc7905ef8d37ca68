/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_LAYOUT_BOUNDS_H
#define ESDM_LAYOUT_BOUNDS_H

/**
 * @file
 * Boxes as columns: `2 * rank` numbers a box, lower corners and then upper corners (exclusive), so
 * that a million boxes of rank 4 take 64 MB instead of 520. With rank 0 there is nothing to store,
 * and every box is the same one point.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "model/box.h"

static inline const uint64_t *
esdm__bounds_at(uint32_t rank, const uint64_t *bounds, size_t box)
{
    return bounds + box * 2 * rank;
}

static inline bool
esdm__bounds_meet(uint32_t rank, const uint64_t *a, const uint64_t *b)
{
    for (uint32_t d = 0; d < rank; d++) {
        if (a[d] >= b[rank + d] || b[d] >= a[rank + d])
            return false;
    }
    return true;
}

static inline bool
esdm__bounds_contain(uint32_t rank, const uint64_t *outer, const uint64_t *inner)
{
    for (uint32_t d = 0; d < rank; d++) {
        if (inner[d] < outer[d] || inner[rank + d] > outer[rank + d])
            return false;
    }
    return true;
}

/** `box` becomes the common part of both, which must meet. */
static inline void
esdm__bounds_clip(uint32_t rank, uint64_t *box, const uint64_t *by)
{
    for (uint32_t d = 0; d < rank; d++) {
        box[d] = box[d] > by[d] ? box[d] : by[d];
        box[rank + d] = box[rank + d] < by[rank + d] ? box[rank + d] : by[rank + d];
    }
}

/** `box` becomes the hull of both. */
static inline void
esdm__bounds_grow(uint32_t rank, uint64_t *box, const uint64_t *by)
{
    for (uint32_t d = 0; d < rank; d++) {
        box[d] = box[d] < by[d] ? box[d] : by[d];
        box[rank + d] = box[rank + d] > by[rank + d] ? box[rank + d] : by[rank + d];
    }
}

static inline void
esdm__bounds_copy(uint32_t rank, uint64_t *to, const uint64_t *from)
{
    if (rank > 0)
        memcpy(to, from, (size_t) 2 * rank * sizeof *to);
}

static inline bool
esdm__bounds_equal(uint32_t rank, const uint64_t *a, const uint64_t *b)
{
    for (uint32_t d = 0; d < 2 * rank; d++) {
        if (a[d] != b[d])
            return false;
    }
    return true;
}

static inline void
esdm__bounds_from_box(uint64_t *bounds, const esdm__box *box)
{
    for (uint32_t d = 0; d < box->rank; d++) {
        bounds[d] = box->lo[d];
        bounds[box->rank + d] = box->lo[d] + box->n[d];
    }
}

static inline void
esdm__bounds_to_box(uint32_t rank, const uint64_t *bounds, esdm__box *box)
{
    box->rank = rank;
    for (uint32_t d = 0; d < rank; d++) {
        box->lo[d] = bounds[d];
        box->n[d] = bounds[rank + d] - bounds[d];
    }
}

/** Elements as a floating-point number: compares sizes without overflow. */
static inline double
esdm__bounds_volume(uint32_t rank, const uint64_t *bounds)
{
    double volume = 1;
    for (uint32_t d = 0; d < rank; d++)
        volume *= (double) (bounds[rank + d] - bounds[d]);
    return volume;
}

#endif
