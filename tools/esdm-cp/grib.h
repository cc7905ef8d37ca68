/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_CP_GRIB_H
#define ESDM_TOOLS_CP_GRIB_H

/** @file What the files about GRIB files as the source of a copy share. */

#include <sys/stat.h>

#include "esdm-cp/esdm-cp.h"
#include "refer/grib.h"

/** A message, and where it belongs. */
typedef struct cp_grib_cell {
    const gribs_message *message; /* borrowed from the index */
    uint32_t time;
    uint32_t level;
} cp_grib_cell;

/** A variable; cp_dataset.from.varid is its number. */
typedef struct cp_grib_variable {
    GArray *cells;  /* cp_grib_cell; NULL: a coordinate */
    GArray *levels; /* double */
    const gribs_parameter *parameter;
    const gribs_grid *grid;
    long member;
    double *values; /* of a coordinate */
} cp_grib_variable;

/** A file that is open: cp_end.state. */
typedef struct cp_grib {
    char *path; /* absolute, or a URL */
    gribs_file file;
    struct stat is;
    gribs_index *index;
    GPtrArray *variables; /* cp_grib_variable, owned */
} cp_grib;

/** Makes variables, axes and attributes of the messages (esdm-cp/grib-model.c).
 *  @param missing the fill value. */
esdm_status cp_grib_model(cp_grib *grib, cp_model *model, float missing, esdm_error *err);

#endif
