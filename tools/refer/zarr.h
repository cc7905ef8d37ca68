/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_REFER_ZARR_H
#define ESDM_TOOLS_REFER_ZARR_H

/**
 * @file
 * Zarr stores, version 2 and 3 (https://zarr-specs.readthedocs.io): what their metadata say, and
 * where their chunks lie. Metadata are parsed without looking at anything else; all of it may be
 * hostile.
 */

#include <esdm/reference.h>
#include <glib.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define ZARR_FILTERS_MAX 16u

/** What elements are. */
typedef enum zarr_kind {
    ZARR_NUMBER, /* also bool, which is int8 here, and single characters */
    ZARR_BYTES,  /* texts of fixed length: characters with one more axis */
    ZARR_UTF32,  /* texts of fixed length, 4 bytes a character */
    ZARR_TEXT    /* texts of any length */
} zarr_kind;

/** One array. */
typedef struct zarr_array {
    int format; /* 2 or 3 */
    uint32_t rank;
    uint64_t shape[ESDM_MAX_RANK];
    uint64_t chunk[ESDM_MAX_RANK]; /* what is compressed as one */
    uint64_t file[ESDM_MAX_RANK];  /* what one object holds: shards, else the same */
    bool sharded;
    bool index_at_start; /* of a shard */
    bool index_has_sum;  /* crc32c behind it */
    bool flat;           /* keys are "0.0", else "c/0/0" */
    char separator;
    zarr_kind kind;
    esdm_type type;
    bool is_bool;
    uint32_t element_bytes; /* of one element as it is stored; of ZARR_BYTES: 1 */
    uint32_t length;        /* ZARR_BYTES, ZARR_UTF32: characters */
    bool big_endian;
    bool ordered;
    uint32_t order[ESDM_MAX_RANK]; /* as esdm_file_layout has it */
    esdm_file_filter filters[ZARR_FILTERS_MAX];
    uint32_t values[ZARR_FILTERS_MAX][3]; /* of filters */
    uint32_t nfilters;
    bool has_fill;
    uint8_t fill[8];                 /* a number, in the byte order of this machine */
    char *fill_text;                 /* owned; of texts */
    char *dimensions[ESDM_MAX_RANK]; /* owned; NULL: no name */
} zarr_array;

/** Parses the metadata of an array: the contents of .zarray, or zarr.json.
 *  @param ret zeroed; zarr_array_clear() also after a failure.
 *  @param why what is wrong or not supported, on failure. */
bool zarr_array_parse(const json_t *metadata, zarr_array *ret, char why[200]);
void zarr_array_clear(zarr_array *array);

/* ---- JSON as Python writes it (refer/zarr_json.c) ------------------------------------------ */

/** Parses a document; NaN, Infinity and integers of any length are accepted. NULL: damaged. */
json_t *zarr_json(const char *text, size_t bytes, char why[200]);
/** A number, also "NaN", "Infinity" and "0x7fc00000" (the bits of a float of so many bytes). */
bool zarr_json_real(const json_t *node, size_t float_bytes, double *ret);
bool zarr_json_is_number(const json_t *node);
/** A whole number; of one above INT64_MAX the same bits. */
bool zarr_json_integer(const json_t *node, int64_t *ret, bool *ret_is_unsigned);
/** A text, but no number that JSON cannot have. */
const char *zarr_json_text(const json_t *node);
bool zarr_fail(char why[200], const char *format, ...) G_GNUC_PRINTF(2, 3);

/* ---- parts of the metadata (refer/zarr_types.c, refer/zarr_codecs.c) ----------------------- */

bool zarr_parse_type2(const json_t *dtype, zarr_array *a, char why[200]);
bool zarr_parse_type3(const json_t *data_type, zarr_array *a, char why[200]);
bool zarr_parse_fill(const json_t *fill, zarr_array *a, char why[200]);
bool zarr_parse_codecs2(const json_t *metadata, zarr_array *a, char why[200]);
bool zarr_parse_codecs3(const json_t *codecs, zarr_array *a, char why[200]);
/** `rank` lengths. @param least smallest that is allowed. */
bool zarr_parse_lengths(const json_t *list, uint32_t rank, uint64_t least, uint64_t *ret);

/* ---- stores (refer/zarr_store.c) ------------------------------------------------------------ */

/** A group or an array. */
typedef struct zarr_node {
    char *path; /* "" or "a/b" */
    int format;
    bool is_array;
    json_t *metadata;   /* owned */
    json_t *attributes; /* owned; an object */
} zarr_node;

typedef struct zarr_store {
    char *location;   /* absolute path of the folder, or URL */
    GPtrArray *nodes; /* zarr_node, sorted by path: groups stand before what is in them */
} zarr_store;

/** Whether a folder is a Zarr store: it has metadata of a group or array. */
bool zarr_is_store(const char *path);
esdm_status zarr_store_open(const char *path, zarr_store **ret, esdm_error *err);
void zarr_store_free(zarr_store *store); /* NULL is accepted */

/* ---- chunks (refer/zarr_chunks.c, the count in zarr_meta.c)
 * ----------------------------------------------------------- */

/** Chunks of one object, to be referred to together. */
typedef struct zarr_object {
    const char *location; /* absolute */
    uint64_t bytes;
    int64_t modified_ns, changed_ns;
    uint64_t inode;
    const char *identity;        /* of an object on a server; NULL: a file */
    const esdm_file_part *parts; /* of the array's axes: ZARR_BYTES have one more */
    size_t nparts;
} zarr_object;

typedef esdm_status (*zarr_visit)(const zarr_object *object, void *user, esdm_error *err);

/** Calls for each object of an array that is there. @param ret_chunks how many chunks there are. */
esdm_status zarr_chunks(const zarr_store *store, const zarr_node *node, const zarr_array *array,
                        zarr_visit visit, void *user, uint64_t *ret_chunks, esdm_error *err);
/** Bytes of the index of a shard. */
uint64_t zarr_index_bytes(const zarr_array *array);

/* ---- on a web server (refer/zarr_remote.c) -------------------------------------------------- */

/** @param index of a shard; NULL: the object is a chunk. */
typedef esdm_status (*zarr_remote_visit)(const char *url, const esdm_remote_state *state,
                                         const uint64_t *at, const uint8_t *index, void *user);
bool zarr_remote_is_store(const char *url);
/** @param ret_text owned; NULL, with ESDM_OK: there is no such object. */
esdm_status zarr_remote_load(const char *store, const char *path, const char *name, size_t most,
                             char **ret_text, size_t *ret_bytes, esdm_error *err);
/** Calls for each object of an array that is there. @param grid objects along each axis. */
esdm_status zarr_remote_chunks(const zarr_store *store, const zarr_node *node,
                               const zarr_array *array, const uint64_t *grid,
                               zarr_remote_visit visit, void *user, esdm_error *err);

/** Chunks that an array has when none is missing, saturating. */
uint64_t zarr_chunk_count(const zarr_array *array);

#endif
