/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_LAYOUT_FRAGMENTER_H
#define ESDM_LAYOUT_FRAGMENTER_H

/** @file Cuts the box of a write into fragment boxes. Pure functions. */

#include "model/box.h"

/** How boxes without a chunk shape are cut. */
typedef enum esdm__cut {
    ESDM__CUT_CONTIGUOUS, /**< whole in the fastest dimensions: for maps */
    ESDM__CUT_EQUALIZED,  /**< about as many indices in each dimension: for both */
    ESDM__CUT_SERIES      /**< whole in the slowest dimensions: for time series */
} esdm__cut;

typedef struct esdm__layout {
    uint32_t rank;
    uint64_t element_bytes;
    const uint64_t *chunk;    /* user's chunk shape, or NULL */
    esdm__cut cut;            /* where there is no chunk shape */
    uint64_t preferred_bytes; /* of a fragment; > 0 */
    uint64_t minimum_bytes;   /* chunks are grouped until a fragment has about this many */
    uint32_t parts;           /* fragments that are wanted at least: large chunks are cut; 0: one */
    uint64_t part_bytes;      /* into parts of at least so many; > 0 with `parts` */
} esdm__layout;

/** Iterator over the fragment boxes of one write, in C order. */
typedef struct esdm__cutter {
    esdm__box box;
    uint64_t cell[ESDM_MAX_RANK];   /* fragment shape */
    uint64_t origin[ESDM_MAX_RANK]; /* cells are aligned to multiples of cell from here */
    uint64_t next[ESDM_MAX_RANK];   /* lower corner of the next fragment */
    bool done;
} esdm__cutter;

/**
 * Without a chunk shape: pieces of at most preferred_bytes, whole in the fastest dimensions, so
 * each is contiguous in C order of the box; equal in size as far as possible; or as `cut` says, at
 * least half as large as preferred, and with rows of at least 1 KiB as long as there is another way
 * to get small. With one: cells
 * aligned to multiples of the chunk shape (grid from index 0); chunks below minimum_bytes are
 * grouped along the fastest dimensions first, never beyond the box. Boxes never exceed
 * preferred_bytes unless one chunk does. When that makes less than `parts` fragments, chunks are
 * cut along their slowest dimension that is longer than 1, each by itself. An empty box yields
 * nothing; rank 0 yields one.
 */
void esdm__cutter_init(esdm__cutter *cutter, const esdm__layout *layout, const esdm__box *box);
bool esdm__cutter_next(esdm__cutter *cutter, esdm__box *ret_fragment);
/** Number of boxes the cutter will yield, saturating. */
uint64_t esdm__cutter_count(const esdm__layout *layout, const esdm__box *box);

#endif
