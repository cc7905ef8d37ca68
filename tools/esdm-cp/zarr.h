/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_CP_ZARR_H
#define ESDM_TOOLS_CP_ZARR_H

/** @file What the files about Zarr stores as the source of a copy share. */

#include "esdm-cp/esdm-cp.h"
#include "refer/zarr.h"

/** An array of the store; cp_dataset.from.varid is its number. */
typedef struct cp_zarr_array {
    const zarr_node *node; /* borrowed from the store */
    zarr_array array;
    GArray *chunks; /* cp_zarr_chunk, when values were read; else NULL */
} cp_zarr_array;

/** Where a chunk lies. */
typedef struct cp_zarr_chunk {
    const char *location; /* borrowed from `locations` */
    esdm_file_part part;
} cp_zarr_chunk;

/** A store that is open: cp_end.state. */
typedef struct cp_zarr {
    zarr_store *store;
    GPtrArray *arrays;       /* cp_zarr_array, owned */
    GStringChunk *locations; /* of chunks */
} cp_zarr;

/** Values, as cp_read() (esdm-cp/zarr-values.c). */
esdm_status cp_zarr_read(const cp_end *end, const cp_dataset *dataset, const cp_slab *slab,
                         void *buffer, esdm_error *err);

/** Attributes as a NetCDF variable or group has them (esdm-cp/zarr-attributes.c).
 *  @param dataset whose they are; NULL: of a group. */
void cp_zarr_attributes(const json_t *attributes, const cp_dataset *dataset, GPtrArray *to);

#endif
