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
    uint32_t member;
    uint32_t level;
} cp_grib_cell;

/** Dimensions of variables before those of the grid, at most: time, member, level. */
#define CP_GRIB_OUTER 3u

/** A level, or a layer: as gribs_message has them. */
typedef struct cp_grib_level {
    double level, end;
} cp_grib_level;

/** A variable; cp_dataset.from.varid is its number. */
typedef struct cp_grib_variable {
    GArray *cells;  /* cp_grib_cell; NULL: a coordinate */
    GArray *levels; /* cp_grib_level */
    const gribs_hybrid *hybrid;
    const gribs_parameter *parameter;
    const gribs_grid *grid;
    long member;      /* the only one; -1: none, or all */
    bool has_members; /* they are a dimension */
    double *values;   /* of a coordinate */
} cp_grib_variable;

/** A file that is open: cp_end.state. */
typedef struct cp_grib {
    char *path; /* absolute, or a URL */
    gribs_file file;
    struct stat is;
    gribs_index *index;
    GPtrArray *variables; /* cp_grib_variable, owned */
} cp_grib;

/** The indices of a cell in the dimensions before those of the grid. */
void cp_grib_indices(const cp_grib_variable *v, const cp_grib_cell *cell,
                     uint64_t ret_at[CP_GRIB_OUTER]);
/** Makes variables, axes and attributes of the messages (esdm-cp/grib-model.c). Members of an
 *  ensemble are a dimension where cp_wants.members says so, else variables.
 *  @param missing the fill value. */
esdm_status cp_grib_model(cp_grib *grib, cp_model *model, float missing, esdm_error *err);

/* ---- axes (esdm-cp/grib-axes.c) ------------------------------------------------------------- */

void cp_grib_put_text(GPtrArray *attributes, const char *name, const char *text); /* NULL: none */
/** "height", "height_2", …: the first that is free. Owned. */
char *cp_grib_free_name(const cp_group *root, const char *name);
/** A coordinate. @param values stolen. */
cp_dataset *cp_grib_coordinate(cp_grib *g, cp_model *model, const char *name, uint32_t rank,
                               cp_dimension *const *dimensions, double *values);

/** All valid times, in order: int64_t. @param ret_first the earliest time of all. */
GArray *cp_grib_times(const gribs_index *index, int64_t *ret_first);
uint32_t cp_grib_time_number(const GArray *times, int64_t time_s);
/** "hours", "minutes" or "seconds", of 3600, 60 or 1. */
const char *cp_grib_unit(int64_t unit_s);
/** @param ret_bounds whether it has the periods that values are of; not where two of them end at
 *  one time. */
cp_dimension *cp_grib_time_axis(cp_grib *g, cp_model *model, const GArray *times, int64_t first,
                                bool *ret_bounds);

/** The numbers of all members, in order: long. */
GArray *cp_grib_members(const gribs_index *index);
uint32_t cp_grib_member_number(const GArray *members, long member);
cp_dimension *cp_grib_member_axis(cp_grib *g, cp_model *model, const GArray *members);

/** Axes of levels that were made. Zeroed. */
typedef struct cp_grib_axes {
    GArray *made;
    const char *pressure; /* borrowed: the variable of the surface's; NULL: none */
} cp_grib_axes;
void cp_grib_axes_clear(cp_grib_axes *axes);
/** The axis of a variable's levels; NULL: they have no numbers. */
cp_dimension *cp_grib_level_axis(cp_grib *g, cp_model *model, cp_grib_axes *axes,
                                 const cp_grib_variable *v);

#endif
