/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_CONTAINER_REGION_MAP_H
#define ESDM_IO_CONTAINER_REGION_MAP_H

/**
 * @file
 * Where the regions of an accuracy lie in the indices of a dataset, as its coordinates told; and
 * cutting boxes where that makes less of them stricter. Immutable once it is made.
 */

#include "esdm/accuracy.h"
#include "model/box.h"

/** Points of one or two dimensions that are inside, counted: a summed-area table of cells. */
typedef struct esdm__region_part {
    uint32_t ndims;      /* 1 or 2 */
    uint32_t dims[2];    /* of the dataset, in the order of the coordinate */
    uint64_t lengths[2]; /* of the coordinate; 1 for a second one that there is not */
    uint64_t step;       /* indices of a dimension that one cell stands for */
    uint64_t cells[2];
    uint32_t *sums; /* (cells[0] + 1) * (cells[1] + 1), owned */
} esdm__region_part;

/** Latitudes and longitudes apart, levels, and a mask. */
#define ESDM__REGION_PARTS 4

/** A point is inside when it is in all parts. */
typedef struct esdm__region_place {
    bool everywhere; /* not known: what it states holds for all */
    bool nowhere;
    uint32_t count;
    esdm__region_part parts[ESDM__REGION_PARTS];
} esdm__region_place;

/** Three coordinates, and a mask of each region. */
#define ESDM__REGION_SOURCES (3 + ESDM_ACCURACY_REGIONS_MAX)

typedef struct esdm__region_map {
    uint32_t count;
    esdm_accuracy_region regions[ESDM_ACCURACY_REGIONS_MAX]; /* which it was made of */
    esdm__region_place places[ESDM_ACCURACY_REGIONS_MAX];
    const char *doubt; /* why one is not known; static; NULL: all are */
    const esdm_dataset
        *sources[ESDM__REGION_SOURCES]; /* what it was made of; NULL: there is none */
    uint64_t made_at;                   /* a sum of their writes and snapshots */
} esdm__region_map;

/** Makes a part that is inside nowhere. @return false: no memory. */
bool esdm__region_part_init(esdm__region_part *part, uint32_t ndims, const uint32_t *dims,
                            const uint64_t *lengths);
/** Marks a point before it is summed up. */
void esdm__region_part_mark(esdm__region_part *part, uint64_t row, uint64_t column);
/** Sums up. @return whether some point is marked. */
bool esdm__region_part_sum(esdm__region_part *part);
void esdm__region_part_clear(esdm__region_part *part);

/** NULL is accepted. */
void esdm__region_map_free(esdm__region_map *map);
/** Whether it is of these regions. A NULL map is of none. */
bool esdm__region_map_is_of(const esdm__region_map *map, const esdm_accuracy *accuracy);
/** The regions that the box touches, a bit for each. Indices that coordinates do not have count as
 *  inside. */
uint32_t esdm__region_map_touched(const esdm__region_map *map, const esdm__box *box);
/** Those that all of the box is in for sure, a bit for each. */
uint32_t esdm__region_map_holds(const esdm__region_map *map, const esdm__box *box);
/**
 * Cuts the box in two where a region begins or ends, so that both have `least` elements or more.
 * @return false: there is no such place.
 */
bool esdm__region_map_cut(const esdm__region_map *map, const esdm__box *box, uint64_t least,
                          esdm__box *ret_first, esdm__box *ret_second);

#endif
