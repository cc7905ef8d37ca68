/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_READ_LOCATE_H
#define ESDM_IO_READ_LOCATE_H

/** @file Where the elements of a piece of a plan are: in the fragment and in the selection. Pure.
 */

#include "layout/index.h"

typedef struct esdm__location {
    uint32_t rank;
    uint64_t count[ESDM_MAX_RANK]; /* selected elements along each axis */
    uint64_t source_first;         /* element of the fragment, which holds them in C order */
    int64_t source_stride[ESDM_MAX_RANK];
    int64_t target_first; /* element of the caller's memory, from that of index (0, …, 0) */
    int64_t target_stride[ESDM_MAX_RANK];
} esdm__location;

/**
 * @param memory_stride of the selection, `rank` numbers.
 * @return false when the selection has no element in the piece (a stride steps over it).
 */
bool esdm__locate(const esdm_dataspace *space, const int64_t *memory_stride,
                  const esdm__piece *piece, esdm__location *ret);

#endif
