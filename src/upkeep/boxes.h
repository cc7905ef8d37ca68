/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_UPKEEP_BOXES_H
#define ESDM_UPKEEP_BOXES_H

/** @file Going over a dataset in boxes whose values are read and written again. One thread. */

#include "io/io.h"
#include "model/values.h"

/** Values in memory at a time. */
#define ESDM__BOX_BYTES (UINT64_C(32) << 20)

typedef struct esdm__boxes {
    esdm_dataset *dataset;
    esdm__typeref type;
    uint64_t each; /* bytes of an element, about */
    uint64_t length[ESDM_MAX_RANK];
    uint64_t step[ESDM_MAX_RANK];
    const uint64_t *chunk; /* NULL: the site decides */
} esdm__boxes;

/** Chooses boxes of whole chunks or rows. @param ret_any false: the dataset has no elements. */
esdm_status esdm__boxes_begin(esdm_dataset *dataset, esdm__boxes *ret, bool *ret_any,
                              esdm_error *err);
/** The same as if it had these chunks; borrowed while boxes are used. */
esdm_status esdm__boxes_begin_as(esdm_dataset *dataset, const uint64_t *chunk, esdm__boxes *ret,
                                 bool *ret_any, esdm_error *err);
/** What serves the box. @param ret_plan zeroed; esdm__plan_clear() in any case. */
esdm_status esdm__boxes_plan(const esdm__boxes *boxes, const esdm__box *box, esdm__plan *ret_plan,
                             esdm_error *err);
/** The first box. */
void esdm__boxes_first(const esdm__boxes *boxes, esdm__box *ret);
/** The one after it; false: there is none. */
bool esdm__boxes_next(const esdm__boxes *boxes, esdm__box *box);
/** Reads a box and writes it again. @param buffer room for its elements. */
esdm_status esdm__boxes_store(const esdm__boxes *boxes, const esdm__box *box, void *buffer,
                              esdm_error *err);
/** Product, saturating. */
uint64_t esdm__boxes_volume(const uint64_t *n, uint32_t rank);
/** Whether what is written is rounded: values that are written again would be once more. */
bool esdm__boxes_are_rounded(const esdm_dataset *dataset);

#endif
