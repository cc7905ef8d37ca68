/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_LAYOUT_SOURCE_H
#define ESDM_LAYOUT_SOURCE_H

/**
 * @file
 * Where the values of a fragment come from when it is neither in a pack of the site nor in the
 * index page, and how they become elements: descriptions that records of an index page refer to.
 *
 * A description is bytes with a role. The index keeps and merges descriptions without looking into
 * them, so those of newer programs survive in pages that older ones rewrite. The structs here are
 * the contents of the roles that are known now. Their stored form (little-endian) begins with a
 * version; a text ends with NUL, so that a parsed struct borrows from the description.
 * Pure functions.
 */

#include "base/buffer.h"
#include "esdm/status.h"
#include "layout/fragment.h"

/** What a description describes. */
enum {
    ESDM__ROLE_FOREIGN = 1,  /* a file or object: esdm__foreign */
    ESDM__ROLE_LINK = 2,     /* a dataset of some container: esdm__link */
    ESDM__ROLE_DECODING = 3, /* how stored bytes become elements: esdm__decoding */
    ESDM__ROLE_MAP = 4       /* which elements of a link belong where: esdm__link_map */
};

/** Longest description, in bytes. */
#define ESDM__SOURCE_BYTES_MAX 65536u

/** What esdm__elsewhere.check is. */
enum {
    ESDM__CHECK_NONE = 0,
    ESDM__CHECK_ADLER32 = 1,    /* of the content: the last 4 bytes of a zlib stream */
    ESDM__CHECK_FLETCHER32 = 2, /* HDF5's filter: the last 4 bytes as they are stored */
    ESDM__CHECK_CRC32C = 3,     /* of the stored bytes */
    ESDM__CHECK_XXH3 = 4,       /* 64 bits, of the stored bytes */
    ESDM__CHECK_TAIL = 5,       /* the last 4 stored bytes, which are a checksum of the others */
    ESDM__CHECK_GZIP = 6        /* CRC-32 of the content: 4 bytes, 4 bytes before the end */
};

/** A file or object that stays where it is. */
typedef struct esdm__foreign {
    const char *location; /* absolute path, or URL */
    uint64_t bytes;       /* its size; UINT64_MAX: unknown */
    int64_t mtime_ns;     /* since 1970; INT64_MIN: unknown */
    const char *identity; /* inode and ctime, or ETag and version, as the reader wrote it; "" */
    const uint8_t *tag;   /* for whoever made the reference; opaque */
    uint32_t tag_bytes;
} esdm__foreign;

/** One step of undoing a chain of filters. */
typedef struct esdm__filter {
    const char *name; /* "hdf5", "zarr2", "zarr3", "grib", … : whose numbers or names these are */
    uint32_t id;      /* HDF5's filter number; 0 where a name tells */
    const char *codec;         /* "zstd"; "" where the number tells */
    const uint8_t *parameters; /* HDF5: cd_values as u32; Zarr: of "shuffle" the bytes of an
                                  element, of "transpose" the order of axes, of "delta"
                                  esdm__delta (io/read/foreign_codecs.h), all as u32 */
    uint32_t parameter_bytes;
} esdm__filter;

#define ESDM__FILTERS_MAX 32u

enum {
    ESDM__DECODING_BIG_ENDIAN = 1u,
    /** Chunks at the edge of the array are stored whole; the box of the fragment is cut. */
    ESDM__DECODING_EDGES_WHOLE = 2u,
    /** Chunks at the edge are stored without filters (H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS). */
    ESDM__DECODING_EDGES_PLAIN = 4u,
    /** The first index is the fastest. */
    ESDM__DECODING_FORTRAN = 8u
};

/** How stored bytes become the elements of a fragment. */
typedef struct esdm__decoding {
    uint32_t flags;
    uint32_t type;          /* esdm_type of the stored elements; 0: that of the dataset */
    uint32_t element_bytes; /* stored */
    uint32_t rank;          /* of the chunk; 0: shaped as the fragment's box */
    uint64_t chunk[ESDM_MAX_RANK];
    uint32_t nfilters; /* in the order of writing: undone from the last to the first */
    esdm__filter filters[ESDM__FILTERS_MAX];
    const uint8_t *extra; /* for whoever made the reference; opaque */
    uint32_t extra_bytes;
} esdm__decoding;

/** A dataset of this or another container of the site. */
typedef struct esdm__link {
    const char *container; /* UUID, or name when by_name */
    bool by_name;
    const char *dataset; /* path, for messages and where the number is 0 */
    uint32_t number;     /* of the dataset; 0: by its path */
    uint64_t snapshot;   /* 0: the newest one whenever it is read */
} esdm__link;

/** One axis of the linked dataset: index there = first + step * index here. */
typedef struct esdm__link_axis {
    uint32_t here; /* axis of this dataset; UINT32_MAX: the index there is always `first` */
    int64_t first;
    int64_t step; /* not 0; -1: reversed */
} esdm__link_axis;

enum {
    ESDM__MAP_SCALE = 1u /* value here = scale * value there + offset */
};

/** Which elements, and how their values change. */
typedef struct esdm__link_map {
    uint32_t rank; /* of the dataset there */
    esdm__link_axis axes[ESDM_MAX_RANK];
    uint32_t flags;
    uint32_t type; /* esdm_type in which it is read there; 0: that of this dataset */
    double scale;
    double offset;
    const uint8_t *extra; /* for whoever made the link (units, fill values); opaque */
    uint32_t extra_bytes;
} esdm__link_map;

/** Appends the stored form. What is too long makes buffer->failed or esdm__index_source() fail. */
void esdm__foreign_put(esdm__buffer *buffer, const esdm__foreign *foreign);
void esdm__decoding_put(esdm__buffer *buffer, const esdm__decoding *decoding);
void esdm__link_put(esdm__buffer *buffer, const esdm__link *link);
void esdm__link_map_put(esdm__buffer *buffer, const esdm__link_map *map);

/**
 * Reads a description; what the struct points to is borrowed from it.
 * @return ESDM_ENOTSUP: of a newer version; ESDM_ECORRUPT: damaged, or of another role.
 */
esdm_status esdm__foreign_get(const esdm__source *source, esdm__foreign *ret, esdm_error *err);
esdm_status esdm__decoding_get(const esdm__source *source, esdm__decoding *ret, esdm_error *err);
esdm_status esdm__link_get(const esdm__source *source, esdm__link *ret, esdm_error *err);
esdm_status esdm__link_map_get(const esdm__source *source, esdm__link_map *ret, esdm_error *err);

#endif
