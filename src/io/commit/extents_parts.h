/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_COMMIT_EXTENTS_PARTS_H
#define ESDM_IO_COMMIT_EXTENTS_PARTS_H

/** @file What the files that make extents share; see io/commit/extents.h. */

#include "io/commit/extents.h"

typedef struct esdm__extents_maker {
    esdm_container *container;
    const esdm__cf *cf;
    esdm__written written;
    bool all, read;
    esdm__extents made;
    esdm_error *err;
} esdm__extents_maker;

/** Whether something was written into the dataset, or NULL. */
bool esdm__extents_is_dirty(const esdm__extents_maker *m, const esdm_dataset *dataset);
/** Whether ranges only get wider, by what ranks have written. */
static inline bool
esdm__extents_widen(const esdm__extents_maker *m)
{
    return m->written.ranges != NULL && !m->all;
}
/** Least and greatest stored number. @param read whether values may be read for that. */
esdm_status esdm__range_of(const esdm__extents_maker *m, esdm_dataset *dataset, bool read,
                           esdm__range *ret);
/** From stored numbers to values. */
void esdm__range_unpack(const esdm__cf_packing *packing, esdm__range *r);
/** What a coordinate and its bounds say: dates, degrees, levels. */
esdm_status esdm__range_of_kind(esdm__extents_maker *m, const esdm__cf_source *s, esdm__range *ret);

#endif
