/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_META_COORDINATES_H
#define ESDM_META_COORDINATES_H

/**
 * @file
 * Which datasets of a container are coordinates of which others, by the CF conventions: coordinate
 * variables, and the attributes `coordinates`, `bounds` and `climatology`. A pure function of the
 * structure; the result borrows datasets, and holds until the structure changes.
 */

#include "cf/calendar.h"
#include "model/container.h"

/** What a coordinate says. */
typedef enum esdm__cf_kind {
    ESDM__CF_TIME,
    ESDM__CF_LATITUDE,
    ESDM__CF_LONGITUDE,
    ESDM__CF_VERTICAL,
    ESDM__CF_KINDS /* as many as there are; none of them */
} esdm__cf_kind;

/** Longest text of units that are understood, with its NUL. */
#define ESDM__CF_UNIT_BYTES 128

/** Stored number * scale + offset is the value in `unit`. */
typedef struct esdm__cf_packing {
    double scale, offset;
    char unit[ESDM__CF_UNIT_BYTES]; /* as it is written; "": none */
} esdm__cf_packing;

/** A coordinate of some data variable. */
typedef struct esdm__cf_source {
    esdm__cf_kind kind;
    esdm_dataset *dataset;
    esdm_dataset *bounds;     /* NULL: it has none */
    esdm__cf_packing packing; /* of angles: to degrees */
    esdm__time_units time;    /* of times */
} esdm__cf_source;

/** Where a data variable lies: many have the same coordinates. */
typedef struct esdm__cf_place {
    size_t sources[ESDM__CF_KINDS]; /* numbers of the coordinates; SIZE_MAX: none */
    const char *grid;               /* "regular", "curvilinear", "unstructured", "point"; NULL */
} esdm__cf_place;

/** A data variable: one that describes no other. */
typedef struct esdm__cf_variable {
    esdm_dataset *dataset;
    size_t place; /* its number */
} esdm__cf_variable;

typedef struct esdm__cf {
    esdm__cf_source *sources; /* owned; and so are the others */
    size_t nsources;
    esdm__cf_variable *variables; /* data variables; all coordinates where there are none */
    size_t nvariables;
    esdm__cf_place *places;
    size_t nplaces;
    esdm_dataset **values; /* those of numbers that are not bounds */
    size_t nvalues;
} esdm__cf;

/** @return ESDM_ENOMEM. @param ret_cf owned; esdm__cf_clear(). */
esdm_status esdm__cf_make(const esdm_container *container, esdm__cf *ret_cf, esdm_error *err);
static inline const esdm__cf_place *
esdm__cf_place_of(const esdm__cf *cf, const esdm__cf_variable *variable)
{
    return &cf->places[variable->place];
}
/** What turns the stored numbers of a dataset into values. */
esdm__cf_packing esdm__cf_packing_of(const esdm_dataset *dataset);
/** A zeroed one is accepted. */
void esdm__cf_clear(esdm__cf *cf);

#endif
