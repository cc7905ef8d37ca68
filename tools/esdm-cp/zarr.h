/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_CP_ZARR_H
#define ESDM_TOOLS_CP_ZARR_H

/** @file What the files about Zarr stores as source and target of a copy share. */

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

/* ---- stores that are written (esdm-cp/zarr-write.c, esdm-cp/zarr-target.c) ------------------ */

/** Whether the copy becomes a Zarr store: 2 or 3; 0: none. */
int cp_zarr_format(const cp_job *job);
/** As cp_netcdf_create(). Datasets of the model have the chunks of the store afterwards. The model
 *  is of a container, and stays until the end is closed. */
esdm_status cp_zarr_create(cp_end *end, cp_model *model, int format, esdm_error *err);
/** Gives a folder its name. One that is no store is never replaced. */
esdm_status cp_zarr_publish(const char *folder, const char *target, esdm_error *err);
/** With all that is in it. */
void cp_zarr_remove(const char *folder);
/** Finds the datasets of a model in what was written: borrowed cp_dataset, in the model's order.
 *  Attributes are not compared: their types are other ones. ESDM_ECORRUPT: one is missing, or has
 *  another type or shape. */
esdm_status cp_zarr_match(const cp_model *model, const cp_model *written, GPtrArray *ret_pairs,
                          esdm_error *err);
/** Texts as a store has them: NULL becomes "". */
void cp_zarr_texts(const cp_dataset *dataset, uint64_t count, void *values);

#endif
