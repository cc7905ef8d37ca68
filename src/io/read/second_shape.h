/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_READ_SECOND_SHAPE_H
#define ESDM_IO_READ_SECOND_SHAPE_H

/**
 * @file
 * Variables that are stored twice, in fragments of two shapes, as for maps and for time series
 * (upkeep/shapes.h makes them): a read takes those that cost it less.
 *
 * The second ones are the data of a container of its own, NAME@shapes. Two numbers say when they
 * hold. Of each variable it has all that snapshot `until` of NAME showed; and nothing in it is
 * newer than snapshot `since`. So a box is the same in both when the snapshot that is read is
 * `since` or a later one, and all that NAME shows of the box is of snapshot `until` or an earlier
 * one. Who reads looks at that for each read, in the index: nobody has to tell the second shape of
 * writes. It is known by the uuid of NAME, so what takes its place is never mistaken for it.
 *
 * Ranks that share NAME look for themselves, and read alone: nobody waits for another one. Who
 * asks for less accuracy (?accuracy=) gets exact numbers from the second shape, where that costs
 * less than the layers of the first one.
 */

#include "io/read/read.h"

/* Hints of the second container, */
#define ESDM__HINT_SHAPES_OF    "esdm.shapes.of"    /* uuid of the first one */
#define ESDM__HINT_SHAPES_SINCE "esdm.shapes.since" /* snapshot of that */
#define ESDM__HINT_SHAPES_STEP  "esdm.shapes.step"  /* another one with each commit */
/* and of its datasets. */
#define ESDM__HINT_SHAPE_OF    "esdm.shape.of"    /* number of the dataset in the first one */
#define ESDM__HINT_SHAPE_UNTIL "esdm.shape.until" /* snapshot of that; 0: nothing yet */
#define ESDM__HINT_SHAPE_FOR   "esdm.shape.for"   /* "maps", "series" or "chunk" */

/** What is best done with a read. */
typedef struct esdm__second_shape {
    esdm_dataset *dataset; /* it is best read from this; borrowed from the container; or NULL */
    uint32_t axis;         /* else, where `low` > 0: */
    uint64_t low; /* the first so many selected elements along the axis may be, the others not */
} esdm__second_shape;

/** The name of what has the second shapes of a container. ESDM_EINVAL: it would be too long. */
esdm_status esdm__shapes_name(const char *name, char ret_name[ESDM_CONTAINER_NAME_MAX + 1],
                              esdm_error *err);
/** Opens what has second shapes by its own name; it says whose they are (ESDM__HINT_SHAPES_OF).
 *  ESDM_ENOENT: nothing has. ESDM_EEXIST: what has the name is none. */
esdm_status esdm__shapes_open(esdm_session *session, const char *shapes, esdm_open_mode mode,
                              esdm_container **ret, esdm_error *err);
/** A number that a hint says; 0: none. */
uint64_t esdm__shapes_number(const char *hint);
/** The dataset in which a second shape has dataset number `id`; NULL: it has not. */
esdm_dataset *esdm__shapes_find(const esdm_container *shapes, uint32_t id);

/**
 * Whether a read costs less with the second shape, as far as fragments tell. Never fails: what
 * cannot be told is read as ever. Any thread.
 * @param plan of the box around all that is selected.
 */
void esdm__second_shape_choose(const esdm__transfer *t, const esdm__box *hull,
                               const esdm__plan *plan, esdm__second_shape *ret);

#endif
