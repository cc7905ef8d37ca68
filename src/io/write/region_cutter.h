/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_WRITE_REGION_CUTTER_H
#define ESDM_IO_WRITE_REGION_CUTTER_H

/** @file Cuts the box of a write as the fragmenter does, and then where regions begin and end; or
 *  where its values say so. */

#include "io/container/region_map.h"
#include "io/write/content_cutter.h"
#include "layout/fragmenter.h"

typedef struct esdm__region_cutter {
    esdm__cutter cutter;
    const esdm__region_map *map; /* borrowed; NULL: the fragmenter alone cuts */
    uint64_t least;              /* elements of a piece */
    esdm__box *pieces;           /* of the last fragment box, owned; the last one is next */
    size_t npieces;
    esdm__content_cutter *content; /* owned; NULL: values do not say where */
} esdm__region_cutter;

/** @param content values that say where to cut; then there are no regions. NULL: they do not.
 *  @return ESDM_ENOMEM. */
esdm_status esdm__region_cutter_init(esdm__region_cutter *cutter, const esdm__layout *layout,
                                     const esdm__box *box, const esdm__region_map *map,
                                     const esdm__transfer *content, esdm_error *err);
bool esdm__region_cutter_next(esdm__region_cutter *cutter, esdm__box *ret_fragment);
/** Also after a failed init. */
void esdm__region_cutter_clear(esdm__region_cutter *cutter);

#endif
