/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_LAYOUT_FOREST_H
#define ESDM_LAYOUT_FOREST_H

/**
 * @file
 * Search in a growing column of boxes: static trees over runs of it, whose lengths fall by half or
 * more, and a short unsorted tail (Bentley and Saxe 1980). Trees are built when a search needs
 * them, so adding costs nothing, and O(log n) builds of each box over the life of the column.
 *
 * One thread at a time, queries included.
 */

#include "layout/rtree.h"

#define ESDM__FOREST_RUNS 33u /* lengths at least double from run to run, up to 2^32 */

typedef struct esdm__forest_run {
    uint32_t first;
    uint32_t count;
    esdm__rtree tree;
} esdm__forest_run;

typedef struct esdm__forest {
    uint32_t indexed; /* boxes that some run holds */
    uint32_t nruns;
    esdm__forest_run *runs; /* owned; room for ESDM__FOREST_RUNS; NULL: none was needed yet, as of
                               most of very many datasets */
} esdm__forest;

/** Forgets all runs, and frees them: the column was emptied or its boxes moved. A zeroed forest is
 * empty. */
void esdm__forest_clear(esdm__forest *forest);

/**
 * Visits every box of the column that meets `request`. Without memory for a tree it scans.
 * @param count boxes in the column; none of those seen before has changed.
 * @return false when a visit returned false.
 */
bool esdm__forest_query(esdm__forest *forest, uint32_t rank, const uint64_t *bounds, uint32_t count,
                        const uint64_t *request, esdm__rtree_fn visit, void *user);

#endif
