/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_COMMIT_EXTENTS_H
#define ESDM_IO_COMMIT_EXTENTS_H

/**
 * @file
 * What a commit tells the metadata store about the values of a container (esdm_meta_extent):
 *
 *     @time_min @time_max      of dates, as esdm__date_key() orders them
 *     @lat_min @lat_max        degrees; @lon_min in [-180, 180), @lon_max up to 360 more
 *     @level_min @level_max    of the vertical axis, a tab, and its units
 *     @grid                    "regular", "curvilinear", "unstructured", "point"
 *     @length:DIMENSION
 *     @word:WORD               1: in its title, a long name or a comment (meta/search_words.h)
 *     @min:VARIABLE @max:VARIABLE   a tab, and the units; scale_factor and add_offset are applied
 *     @fresh                   1: changed since saved queries were widened (virtual/follow.c)
 *
 * They are the container's. Where its data variables do not all have the same coordinates, each
 * has its own range, or "" for none.
 */

#include "io/container/dataset_io.h"
#include "meta/coordinates.h"

/** Of containers that saved queries have not seen yet, 1; of others 0, or none. */
#define ESDM__EXTENT_FRESH "@fresh"

/** Of values of a dataset, or what a coordinate says. */
typedef struct esdm__range {
    double low, high;
    bool known;
    bool merged; /* together with what is stored; else instead of it */
} esdm__range;

/** What a commit brings. */
typedef struct esdm__written {
    esdm_dataset *const *datasets; /* by id */
    size_t count;
    const esdm__range
        *ranges; /* of ranks: one a dataset, what all ranks have written into it. NULL:
                    all of it is pending here, write-locked, and nothing gathered */
} esdm__written;

typedef struct esdm__extents {
    esdm_meta_extent *items; /* owned, with their names */
    size_t count;
    bool all; /* these are all that the container has */
} esdm__extents;

/**
 * Of what was written, and where that hides what was there, of the dataset as a whole, as far as
 * its fragments tell without being read.
 *
 * Of ranks ranges only get wider, whatever is hidden, and longitudes are all around where the
 * shortest range that holds them cannot be told: too wide until esdm__extents_refresh(), never too
 * narrow.
 * @param written NULL: nothing.
 * @param all as if everything were new.
 * @param read whether values are read where fragments do not tell.
 */
esdm_status esdm__extents_make(esdm_container *container, const esdm__written *written, bool all,
                               bool read, esdm__extents *ret_extents, esdm_error *err);
/**
 * The same for a commit. What the index would say must not keep data from being committed: where
 * coordinates cannot be read, what was there stays, with what the commit brings as far as that is
 * known (esdm-mkfs --reindex makes the rest). Nothing where the store keeps no such index.
 */
esdm_status esdm__extents_of_commit(esdm_container *container, const esdm__written *written,
                                    bool all, esdm__extents *ret_extents, esdm_error *err);
/**
 * Within which all pending values of a dataset lie, as stored numbers. Those of coordinates are
 * read where fragments do not tell. Unknown: there are none, or they are no numbers.
 * @param dataset write-locked, and nothing of it is gathered.
 */
void esdm__range_of_pending(esdm_dataset *dataset, esdm__range *ret);
/** Finds out which datasets are coordinates (`cf` of the container's state), unless that is known.
 *  With the commit lock held. */
esdm_status esdm__extents_find_coordinates(esdm_container *container, esdm_error *err);
/**
 * Makes all extents of a container anew, as its handle sees it, and stores them. With the commit
 * lock held, or a handle that nobody else uses. Nothing is pending.
 * @return ESDM_ECONFLICT: there is a newer snapshot.
 */
esdm_status esdm__extents_refresh(esdm_container *container, bool read, esdm_error *err);
/** Says that saved queries, if there are any, have to look at a container that has got a name. */
void esdm__extents_mark(const esdm_session *session, const char *name);
void esdm__extents_clear(esdm__extents *extents); /* a zeroed one is accepted */

#endif
