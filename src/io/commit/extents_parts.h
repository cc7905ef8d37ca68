/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_COMMIT_EXTENTS_PARTS_H
#define ESDM_IO_COMMIT_EXTENTS_PARTS_H

/** @file What the files that make extents share; see io/commit/extents.h. */

#include "io/commit/extents.h"

/* Values of a dataset. */
typedef struct esdm__range {
    double low, high;
    bool known;
    bool merged; /* together with what is stored; else instead of it */
} esdm__range;

typedef struct esdm__extents_maker {
    esdm_container *container;
    const esdm__cf *cf;
    esdm_dataset *const *dirty;
    size_t ndirty;
    bool all, read;
    esdm__extents made;
    esdm_error *err;
} esdm__extents_maker;

/** Whether something of the dataset, or NULL, is pending. */
bool esdm__extents_is_dirty(const esdm__extents_maker *m, const esdm_dataset *dataset);
/** Least and greatest stored number. @param read whether values may be read for that. */
esdm_status esdm__range_of(const esdm__extents_maker *m, esdm_dataset *dataset, bool read,
                           esdm__range *ret);
/** From stored numbers to values. */
void esdm__range_unpack(const esdm__cf_packing *packing, esdm__range *r);
/** What a coordinate and its bounds say: dates, degrees, levels. */
esdm_status esdm__range_of_kind(esdm__extents_maker *m, const esdm__cf_source *s, esdm__range *ret);

#endif
