/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_ZARR_H
#define ESDM_TOOLS_ZARR_H

/**
 * @file
 * Datasets as arrays of Zarr, version 3 and 2: metadata and the grid of chunks. Pure functions.
 *
 * The chunks of a container over HTTP follow from its structure alone, not from its fragments nor
 * from the length of unlimited dimensions: a reader that has the metadata goes on finding its
 * chunks while others append.
 *
 * Types: numbers as they are; `char` as "null_terminated_bytes" of length 1 and texts as "string",
 * as zarr-python has them. Datasets and attributes of user-defined types are left out.
 */

#include "esdm-cp/esdm-cp.h"

/** A chunk that nobody stated has about so many bytes, one that somebody did at most so many. */
#define ZARR_CHUNK_USUAL (4u << 20)
#define ZARR_CHUNK_MOST  (64u << 20)

/** Whether Zarr has the type. */
bool zarr_has_type(const cp_type *type);
/** The shape of chunks, `rank` values of at least 1. Their elements and bytes do not overflow.
 *  @param most bytes of a chunk whose shape was stated, at least ZARR_CHUNK_USUAL. */
void zarr_chunk(const cp_dataset *dataset, uint64_t most, uint64_t *ret_chunk);
/** Bytes of a chunk of values of fixed size. */
uint64_t zarr_chunk_bytes(const cp_dataset *dataset, const uint64_t *chunk);
/**
 * The number of a chunk, in C order of the grid, by its key: "c/1/0", "c" of a scalar. false: the
 * array has no such chunk.
 */
bool zarr_chunk_number(const cp_dataset *dataset, const uint64_t *chunk, const char *key,
                       uint64_t *ret_number);

/** How arrays are described. */
typedef struct zarr_style {
    int format;         /* 2 or 3 */
    uint64_t most;      /* see zarr_chunk() */
    const char *codecs; /* of format 3: those behind "bytes" or "vlen-utf8", as JSON with a comma
                           before each; of format 2: the compressor, or "null" */
} zarr_style;

/** Appends the content of zarr.json, or of .zarray. @param dataset of a container that is open. */
void zarr_array_json(const cp_dataset *dataset, const zarr_style *style, GString *json);
/** Appends the content of zarr.json. @param consolidated NULL, or "consolidated_metadata". */
void zarr_group_json(const cp_group *group, const char *consolidated, GString *json);
/** Appends the content of .zattrs. @param dataset NULL: of a group. (zarr/format2.c) */
void zarr_zattrs_json(const GPtrArray *attributes, const cp_dataset *dataset, GString *json);
/** Appends what "consolidated_metadata" of a root is, or .zmetadata: of all that Zarr has. */
void zarr_consolidated_json(const cp_model *model, const zarr_style *style, GString *json);
/** For format2.c: what it shares with format 3. */
void zarr_value_json(esdm_type type, const void *values, uint64_t index, GString *json);
void zarr_attributes_json(const GPtrArray *attributes, const cp_dataset *dataset, int format,
                          GString *json);
void zarr_numbers_json(uint32_t rank, const uint64_t *numbers, GString *json);
void zarr_array2_json(const cp_dataset *dataset, const uint64_t *chunk, const char *compressor,
                      GString *json);
void zarr_consolidated2_json(const cp_model *model, const zarr_style *style, GString *json);
/** Appends a text as JSON has it, with its quotes. What is not UTF-8 becomes U+FFFD. */
void zarr_text_json(const char *text, gssize bytes, GString *json);

#endif
