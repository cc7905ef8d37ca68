/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_MKFS_PLAN_H
#define ESDM_TOOLS_MKFS_PLAN_H

/** @file The header of a planned output, as ncdump -h prints it (esdm-mkfs/header.c). */

#include "esdm-mkfs/esdm-mkfs.h"

typedef struct plan_dimension {
    char *name;
    guint64 length;
    gboolean unlimited;
} plan_dimension;

typedef struct plan_variable {
    char *name;   /* with the path of its group */
    char *type;   /* as in CDL */
    char *access; /* of its attribute esdm_access; NULL */
    guint64 element_bytes;
    gboolean record; /* its slowest dimension is unlimited */
    guint64 steps;   /* writes */
    guint rank;      /* of one write */
    guint64 shape[ESDM_MAX_RANK];
    const char *empty; /* a dimension that makes it so; NULL; borrowed */
} plan_variable;

typedef struct plan_header {
    const char *file;
    const char *at;
    guint line;
    char *container;       /* "netcdf NAME {" */
    GPtrArray *dimensions; /* of all groups that are open, newest last */
    GPtrArray *closed;     /* of groups that were read; variables have their names */
    GPtrArray *variables;
    guint64 steps; /* of --steps; 0: as the header says */
    char *error;
} plan_header;

/** To be called with `file`, `at` (its text) and `steps` set and all else 0. */
void mkfs_header_init(plan_header *header);
/** FALSE: it is no such header; `error` tells why. */
gboolean mkfs_header_read(plan_header *header);
void mkfs_header_clear(plan_header *header);

#endif
