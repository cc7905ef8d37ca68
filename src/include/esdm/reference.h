/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_REFERENCE_H
#define ESDM_REFERENCE_H

/**
 * @file
 * Datasets whose values are bytes of files that stay where they are. Nothing is copied: reads take
 * the bytes from the file, and fail (ESDM_ECONFLICT) when it is not what it was. What is written to
 * such a dataset is stored in ESDM and hides the file's values.
 */

#include "esdm/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A filter of HDF5, or a codec of Zarr. */
typedef struct esdm_file_filter {
    uint32_t id; /**< HDF5: 1 deflate, 2 shuffle, 3 fletcher32, 32001 blosc, 32015 zstd; others are
                      ESDM_ENOTSUP */
    uint32_t nvalues;
    const uint32_t *values; /**< HDF5: its `cd_values`; "shuffle": bytes of an element; "delta":
                                 bytes of an element, 1 for floats, 1 for big-endian; borrowed */
    const char *codec;      /**< Zarr: "zlib", "gzip", "zstd", "blosc", "lz4", "crc32c", "crc32",
                                 "adler32", "fletcher32", "shuffle", "delta", "bitround", "quantize";
                                 "grib": a message, whose missing values are -9e33;
                                 "grib-field", behind it: of one with several fields, `values` has
                                 the number of one, from 0; others are
                                 ESDM_ENOTSUP. NULL: a filter of HDF5 */
} esdm_file_filter;

/** The location of values that were let go, as they can be computed again (esdm-recipe): reading
 *  them is ESDM_ECONFLICT, and says so. */
#define ESDM_RECIPE_LOCATION "/esdm-recipe:"

/** Hints of containers (esdm_container_hint()). What the container was made of, as esdm-ref found
 *  it: JSON, with `path`, `bytes`, … of a file. */
#define ESDM_REFERENCE_SOURCE "reference.source"
/** esdm_pin() has brought its values into ESDM: "copy", or "reflink" where some share the blocks of
 *  the files that they were in. */
#define ESDM_REFERENCE_PIN "reference.pinned"

/** How the values of one dataset lie in one file. Borrows everything. */
typedef struct esdm_file_layout {
    const char *location; /**< absolute path, or URL */
    uint64_t bytes;       /**< size, times in ns since 1970 and inode of the file when it was
                               looked at: of fstat() */
    int64_t modified_ns;
    int64_t changed_ns;
    uint64_t inode;
    bool big_endian;
    bool edges_plain;  /**< chunks at the edge of the array have no filters */
    uint32_t nfilters; /**< in the order of writing */
    const esdm_file_filter *filters;
    const uint64_t *chunk; /**< `rank` lengths: parts are stored as whole chunks, those at the edge
                                too; NULL: as their box */
    const uint32_t *order; /**< `rank` axes: those of a stored chunk, slowest first, as axes of the
                                dataset (Zarr's transpose); NULL: as they are. Needs `chunk` */
    uint64_t record_bytes; /**< distance in the file from one index of the first dimension to the
                                next one; 0: as long as they are. Without filters alone */
    const char *identity;  /**< of an object at a URL: esdm_remote_state.identity; `changed_ns` and
                                `inode` do not count then. NULL: a file */
} esdm_file_layout;

/** What esdm_file_part.checksum is. */
typedef enum esdm_file_checksum {
    ESDM_FILE_CHECKSUM_NONE = 0,
    ESDM_FILE_CHECKSUM_ADLER32 = 1,    /**< the last 4 bytes of a zlib stream */
    ESDM_FILE_CHECKSUM_FLETCHER32 = 2, /**< the last 4 bytes of a chunk with fletcher32 */
    ESDM_FILE_CHECKSUM_XXH3 = 4,       /**< 64 bits, of all bytes; seed 0 */
    ESDM_FILE_CHECKSUM_TAIL = 5,       /**< the last 4 bytes of one that ends with any checksum */
    ESDM_FILE_CHECKSUM_GZIP = 6        /**< the CRC-32 of gzip: 4 bytes, 4 bytes before the end */
} esdm_file_checksum;

/** A box of the dataset that is one range of the file. */
typedef struct esdm_file_part {
    uint64_t offset[ESDM_MAX_RANK];
    uint64_t size[ESDM_MAX_RANK];
    uint64_t position; /**< of its first byte */
    uint64_t bytes;
    uint32_t filter_mask;   /**< bit i: filter i was skipped */
    uint32_t checksum_kind; /**< esdm_file_checksum */
    uint64_t checksum;      /**< little-endian, as it lies in the file; of XXH3 its value */
} esdm_file_part;

/**
 * Makes boxes of a dataset refer to parts of a file, as if they had been written: seen by this
 * handle at once, by others after the commit. Unlimited dimensions grow. The file is not read.
 * Elements are numbers, characters, enumerations or opaque values. Any thread.
 * @return ESDM_ENOTSUP: elements of another type, or a filter that cannot be undone. ESDM_EINVAL:
 * a box outside of the dataset, or a location that is no absolute path.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_dataset_refer(esdm_dataset *dataset,
                                                        const esdm_file_layout *layout,
                                                        const esdm_file_part *parts, size_t nparts,
                                                        esdm_error *err);

/** Whether a location is a URL (http, https), and no file. */
ESDM_API bool esdm_location_is_remote(const char *location);

/** What an object at a URL was. */
typedef struct esdm_remote_state {
    uint64_t bytes;
    int64_t
        modified_ns;    /**< since 1970, in steps of a second; INT64_MIN: the server does not say */
    char identity[256]; /**< its ETag; "" */
} esdm_remote_state;

/**
 * Looks at an object on a web server, without reading it. Only URLs below those that the site lists
 * in "references.roots" are asked for, redirections are not followed, and failures that may pass
 * are tried again within "references.timeout". Any thread.
 * @return ESDM_ENOENT: there is no such object, or the plug-in is not installed. ESDM_EACCES: the
 * site, or the server, does not allow it. ESDM_ENOTSUP: the server says nothing by which a change
 * could be found out. ESDM_ECONFLICT: it was written this moment, which its server's clock cannot
 * tell from a further change. ESDM_EIO, ESDM_ETIMEDOUT.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_remote_stat(esdm_session *session, const char *url,
                                                      esdm_remote_state *ret_state,
                                                      esdm_error *err);
/** Reads a range of it. @return ESDM_ECONFLICT: it is not what it was. ESDM_ENOTSUP: the server has
 *  no ranges. Else as esdm_remote_stat(). */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_remote_read(esdm_session *session, const char *url,
                                                      const esdm_remote_state *was,
                                                      uint64_t position, void *buffer, size_t bytes,
                                                      esdm_error *err);
/** Reads a small one as a whole. @param most more bytes are ESDM_EINVAL. @param ret_data owned,
 *  free(); NUL follows its last byte. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_remote_load(esdm_session *session, const char *url,
                                                      size_t most, esdm_remote_state *ret_state,
                                                      void **ret_data, size_t *ret_bytes,
                                                      esdm_error *err);

/** @param location of a file. @param bytes of values that are kept of it, as they are in memory. A
 *  file is visited for each part. @param shared they share the file's blocks, and are no copy.
 *  Borrowed during the call. */
typedef void (*esdm_pin_visitor)(const char *location, uint64_t bytes, bool shared, void *user);

/** Zero-initialise. */
typedef struct esdm_pin_options {
    esdm_pin_visitor file; /**< called by the calling thread; not yet committed; NULL: none */
    void *user;
    bool copies; /**< no blocks are shared, and what shares some from an earlier call is copied */
} esdm_pin_options;

typedef struct esdm_pin_result {
    uint64_t fragments;    /**< parts of files whose values are stored in ESDM now */
    uint64_t bytes;        /**< of these values, as they are in memory */
    uint64_t shared_bytes; /**< of these, those that share blocks of the files */
} esdm_pin_result;

/**
 * Keeps what a container refers to, bit for bit, as the next snapshot, which needs the files no
 * more. A file of 1 MiB and more, of which half and more is referred to, is cloned onto the first
 * target whose file system can share its blocks with it (FICLONE: XFS, Btrfs, …), which takes no
 * room until one of both is gone; a site that wants several copies has none of that. Of others the
 * values are read and stored. Older snapshots still do. Others may
 * write meanwhile: what they write is never hidden. Does nothing when no file is referred to. What
 * was interrupted is gone on with by the next call. One thread at a time for a container.
 * @param options,ret_result may be NULL.
 * @return ESDM_ECONFLICT, ESDM_ENOENT: a file is not what it was, or gone; the message names it.
 * ESDM_ENOTSUP: an accuracy is stated, by which values would be rounded; a query. Else as
 * esdm_write().
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_pin(esdm_session *session, const char *name,
                                              const esdm_pin_options *options,
                                              esdm_pin_result *ret_result, esdm_error *err);

/**
 * Undoes the filters of a chunk. Pure; any thread.
 * @param element_bytes of the stored elements. @param raw_bytes how many come out; 0: as many as
 * the stored bytes say themselves. @param ret_raw owned; free(). @param ret_bytes its length.
 * @return ESDM_ENOTSUP: a filter that is unknown here; ESDM_ECORRUPT: damaged, or not so many
 * bytes.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_file_decode(const esdm_file_filter *filters,
                                                      uint32_t nfilters, uint32_t element_bytes,
                                                      const void *stored, size_t stored_bytes,
                                                      size_t raw_bytes, void **ret_raw,
                                                      size_t *ret_bytes, esdm_error *err);

#ifdef __cplusplus
}
#endif
#endif
