/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_CONTAINER_H
#define ESDM_CONTAINER_H

/**
 * @file
 * Containers and their structure: groups, dimensions, datasets, attributes.
 *
 * A container is what a NetCDF program sees as a file. All objects below a container are
 * *borrowed*: they live until the container is closed, and are never freed by the caller.
 *
 * Threads: structure calls (create, rename, attributes, hints) on one container need one thread at
 * a time. esdm_read() and esdm_write() may run from many threads at once while no structure call
 * runs. Different containers are independent.
 */

#include "esdm/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct esdm_session esdm_session;
typedef struct esdm_container esdm_container;
typedef struct esdm_group esdm_group;
typedef struct esdm_dimension esdm_dimension;
typedef struct esdm_dataset esdm_dataset;
typedef struct esdm_attributes esdm_attributes; /**< ordered list of attributes of one object */

/** Longest container name in bytes, without the NUL; a component between slashes has ≤ 255. */
#define ESDM_CONTAINER_NAME_MAX 1024
/** Longest name of a branch in bytes (esdm/branch.h). */
#define ESDM_BRANCH_MAX 200
/** Longest name of a group, dimension, dataset or attribute in bytes (NetCDF's NC_MAX_NAME). */
#define ESDM_NAME_MAX 256

/* ---- containers --------------------------------------------------------------------------- */

typedef enum esdm_create_mode {
    ESDM_CREATE_NEW,    /**< ESDM_EEXIST when the name is taken, now or at the first commit */
    ESDM_CREATE_REPLACE /**< the first commit replaces an existing container at once; until then
                             readers see the old one */
} esdm_create_mode;

typedef enum esdm_open_mode { ESDM_OPEN_READ, ESDM_OPEN_WRITE } esdm_open_mode;

/** The newest snapshot. */
#define ESDM_SNAPSHOT_LATEST 0

/**
 * Starts a new, empty container. Nobody else sees it before the first commit.
 *
 * @param name `experiment/run1.nc`; UTF-8; `esdm://` and slashes around are taken off. Components
 *             `.` and `..`, control characters and over-long names are ESDM_EINVAL. A container
 *             is no folder: where `a` exists, `a/b` is ESDM_EEXIST, and the other way round.
 * @param ret_container owned; esdm_container_close() or esdm_container_discard().
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_create(esdm_session *session, const char *name,
                                                           esdm_create_mode mode,
                                                           esdm_container **ret_container,
                                                           esdm_error *err);

/**
 * Opens a snapshot of a container and pins it: what this handle reads does not change until
 * esdm_container_refresh(), whatever other writers commit.
 *
 * @param name     also `run1.nc@7` (a snapshot by its number), `run1.nc@-1` (the one before the
 *                 newest), `run1.nc@2026-11-20T12:00` (the newest of that time, UTC; a day without
 *                 time counts to its end; former containers of the name are looked at too), for
 *                 reading, unless a container is called so. Any of these with `?accuracy=1%`
 *                 behind it: numbers may be off by so much of the range of the fragment that they
 *                 are stored in; `?accuracy=0.5K`: of variables in these units, or in units with
 *                 another prefix; `?accuracy=tas:0.5,pr:1%`: of variables by name. Of what is
 *                 stored in layers (ESDM_MODE_PROGRESSIVE) only the bytes are read that this
 *                 needs. For reading alone. In a query it is one word more, `?a=b&accuracy=1%`; a
 *                 view and a saved query have it behind their names. Their members are read so as
 *                 far as they are stored in layers, coordinates never.
 * @param snapshot a number from esdm_container_snapshots() or ESDM_SNAPSHOT_LATEST. An old one
 *                 opens for reading only.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_open(esdm_session *session, const char *name,
                                                         esdm_open_mode mode, uint64_t snapshot,
                                                         esdm_container **ret_container,
                                                         esdm_error *err);

/**
 * Publishes everything written and defined since the last commit as the next snapshot, whole or
 * not at all. Without changes it does nothing.
 *
 * On failure nothing is published and the handle can go on reading; the changes stay pending so
 * that the call can be repeated (ESDM_ECONFLICT stays final). A write that failed must be repeated
 * before, or given up: see esdm_write().
 *
 * Among overlapping writes of several handles the last commit wins where the data were there when
 * the handle was opened. Behind that, along an unlimited dimension, what another handle has
 * published since may not be overwritten: ESDM_ECONFLICT, unless the site has "overlap": "last".
 * @param message text kept with the snapshot; NULL for none.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_commit(esdm_container *container,
                                                           const char *message, esdm_error *err);
/**
 * esdm_container_commit() of a handle that is only to be discarded afterwards, for who must have
 * the handle when that fails (then it is as it was). After success nothing keeps the snapshot that
 * this has made from being deleted, and the handle has forgotten where its data lie.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_commit_last(esdm_container *container,
                                                                const char *message,
                                                                esdm_error *err);

/**
 * Gives up what writes that failed have not stored, in all datasets: commits go on without it. What
 * such a write covered may hold old and new values beside each other.
 * @return how many selections that were.
 */
ESDM_API size_t esdm_container_give_up_failed(esdm_container *container);

/**
 * Marks the structure as it is: esdm_container_revert() goes back to it. A later mark takes the
 * place of this one, a commit forgets it. Nothing on handles that only read.
 */
ESDM_API void esdm_container_mark(esdm_container *container);
/**
 * Takes back what was created, renamed or set since the mark, accuracies among it. Data that were
 * written to datasets that stay are kept, and so are lengths of unlimited dimensions; objects that
 * were created are freed. Without a mark it does nothing. The mark stays.
 */
ESDM_API void esdm_container_revert(esdm_container *container);

/** Commits (writers), then frees the handle in every case. NULL is accepted. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_close(esdm_container *container,
                                                          esdm_error *err);

/** Frees the handle and drops what was not committed. NULL is accepted. */
ESDM_API void esdm_container_discard(esdm_container *container);

/**
 * Moves a handle without uncommitted changes to the newest snapshot. Objects that exist in both
 * keep their addresses. ESDM_EINVAL when changes are pending or an old snapshot was asked for;
 * ESDM_ENOENT when the container was removed, ESDM_ECONFLICT when it was replaced or its objects
 * renumbered (reopen it then).
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_refresh(esdm_container *container,
                                                            esdm_error *err);

/** Normalised name (`experiment/run1.nc`); borrowed. Of a container that was replaced or removed
 * since: the name in time by which it was opened. */
ESDM_API const char *esdm_container_name(const esdm_container *container);
/** Number of the snapshot this handle is at; 0 before the first commit. */
ESDM_API uint64_t esdm_container_snapshot(const esdm_container *container);
/** 32 hexadecimal digits that no other container has, whatever it is renamed to; one that replaces
 *  it has others. With the number of a snapshot they stand for its bytes. Borrowed. */
ESDM_API const char *esdm_container_uuid(const esdm_container *container);
ESDM_API bool esdm_container_is_writable(const esdm_container *container);
/** Whether a commit would publish something. */
ESDM_API bool esdm_container_is_dirty(const esdm_container *container);
/** The root group; borrowed. */
ESDM_API esdm_group *esdm_container_root(esdm_container *container);
ESDM_API esdm_session *esdm_container_session(esdm_container *container);

/**
 * Hints are short texts that travel with an object but are not attributes: a plug-in keeps there
 * what its interface must report back ("netcdf.format"). A NULL value removes the hint.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_set_hint(esdm_container *container,
                                                             const char *key, const char *value,
                                                             esdm_error *err);
/** NULL when not set; borrowed until the next set. */
ESDM_API const char *esdm_container_hint(const esdm_container *container, const char *key);

/** Whose rules say which numbers do not fit their new type, and what becomes of them. */
typedef enum esdm_conversion {
    ESDM_CONVERSION_NETCDF4, /**< see esdm_convert() */
    /** As the classic formats: 2^32 as a float does not fit uint32, infinite floats do not fit
     *  double when stored; reading, 2^63 and 2^64 give the largest integer, what exceeds float its
     *  largest value, and floating-point values that do not fit an integer type leave the memory as
     *  it was. */
    ESDM_CONVERSION_NETCDF3
} esdm_conversion;

/** For the data that this handle reads and writes from now on; nothing that is stored changes. One
 *  thread, before data are accessed. */
ESDM_API void esdm_container_set_conversion(esdm_container *container, esdm_conversion rules);

/* ---- groups ------------------------------------------------------------------------------- */

/** Names of groups, dimensions and datasets: 1 … ESDM_NAME_MAX bytes of UTF-8 without '/' and
 *  NUL, unique among the groups and datasets (and, apart, the dimensions) of a group. The
 *  caller normalises (NFC). */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_group_create(esdm_group *parent, const char *name,
                                                       esdm_group **ret_group, esdm_error *err);
ESDM_API ESDM_MUST_CHECK esdm_status esdm_group_rename(esdm_group *group, const char *name,
                                                       esdm_error *err);
/** "" for the root. */
ESDM_API const char *esdm_group_name(const esdm_group *group);
/** Dense number within the container in order of creation; the root is 0. */
ESDM_API uint32_t esdm_group_id(const esdm_group *group);
/** NULL for the root. */
ESDM_API esdm_group *esdm_group_parent(const esdm_group *group);
ESDM_API esdm_container *esdm_group_container(const esdm_group *group);
ESDM_API size_t esdm_group_count(const esdm_group *group); /**< direct child groups */
ESDM_API esdm_group *esdm_group_at(const esdm_group *group, size_t index);
/** Direct child by name; NULL when there is none. */
ESDM_API esdm_group *esdm_group_find(const esdm_group *group, const char *name);
ESDM_API esdm_attributes *esdm_group_attributes(esdm_group *group);
/** Number of groups in the container, the root included, and access by esdm_group_id(). */
ESDM_API size_t esdm_container_group_count(const esdm_container *container);
ESDM_API esdm_group *esdm_container_group(const esdm_container *container, uint32_t id);

/* ---- dimensions --------------------------------------------------------------------------- */

/** Length of an unlimited dimension in esdm_dimension_create(). */
#define ESDM_UNLIMITED UINT64_MAX

ESDM_API ESDM_MUST_CHECK esdm_status esdm_dimension_create(esdm_group *group, const char *name,
                                                           uint64_t length,
                                                           esdm_dimension **ret_dimension,
                                                           esdm_error *err);
ESDM_API ESDM_MUST_CHECK esdm_status esdm_dimension_rename(esdm_dimension *dimension,
                                                           const char *name, esdm_error *err);
ESDM_API const char *esdm_dimension_name(const esdm_dimension *dimension);
/** Dense number within the container in order of creation. */
ESDM_API uint32_t esdm_dimension_id(const esdm_dimension *dimension);
/** Current length; of an unlimited dimension the largest index written by anyone, plus one. */
ESDM_API uint64_t esdm_dimension_length(const esdm_dimension *dimension);
ESDM_API bool esdm_dimension_is_unlimited(const esdm_dimension *dimension);
ESDM_API esdm_group *esdm_dimension_group(const esdm_dimension *dimension);
ESDM_API size_t esdm_group_dimension_count(const esdm_group *group); /**< of this group alone */
ESDM_API esdm_dimension *esdm_group_dimension_at(const esdm_group *group, size_t index);
/** By name in this group alone; NULL when there is none. */
ESDM_API esdm_dimension *esdm_group_dimension_find(const esdm_group *group, const char *name);
ESDM_API size_t esdm_container_dimension_count(const esdm_container *container);
ESDM_API esdm_dimension *esdm_container_dimension(const esdm_container *container, uint32_t id);
/** Grows an unlimited dimension to at least `length` without writing data (holes read as fill). */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_dimension_extend(esdm_dimension *dimension,
                                                           uint64_t length, esdm_error *err);

/* ---- datasets ----------------------------------------------------------------------------- */

/**
 * Defines a dataset. @param dimensions `rank` dimensions of this group or its parents, slowest
 * first; the same one may appear twice. The product of their lengths may exceed 2^64: only what is
 * written takes room, and a dataspace of more than 2^63-1 elements is refused.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_dataset_create(esdm_group *group, const char *name,
                                                         esdm_type type, uint32_t rank,
                                                         esdm_dimension *const *dimensions,
                                                         esdm_dataset **ret_dataset,
                                                         esdm_error *err);
ESDM_API ESDM_MUST_CHECK esdm_status esdm_dataset_rename(esdm_dataset *dataset, const char *name,
                                                         esdm_error *err);
ESDM_API const char *esdm_dataset_name(const esdm_dataset *dataset);
/** Unique within the container for ever; survives renames. */
ESDM_API uint32_t esdm_dataset_id(const esdm_dataset *dataset);
/** Position in its group, in order of creation. */
ESDM_API uint32_t esdm_dataset_index(const esdm_dataset *dataset);
ESDM_API esdm_group *esdm_dataset_group(const esdm_dataset *dataset);
ESDM_API esdm_type esdm_dataset_type(const esdm_dataset *dataset);
ESDM_API uint32_t esdm_dataset_rank(const esdm_dataset *dataset);
ESDM_API esdm_dimension *esdm_dataset_dimension(const esdm_dataset *dataset, uint32_t axis);
ESDM_API size_t esdm_group_dataset_count(const esdm_group *group);
ESDM_API esdm_dataset *esdm_group_dataset_at(const esdm_group *group, size_t index);
ESDM_API esdm_dataset *esdm_group_dataset_find(const esdm_group *group, const char *name);
ESDM_API esdm_attributes *esdm_dataset_attributes(esdm_dataset *dataset);

/** Sets the value that holes read as (one element, copied; for strings a `char *const *`). NULL
 *  goes back to the type's default. ESDM_EINVAL once data was written or committed. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_dataset_set_fill(esdm_dataset *dataset, const void *value,
                                                           esdm_error *err);
/** The fill value in force (never NULL); borrowed. @param ret_is_default may be NULL. */
ESDM_API const void *esdm_dataset_fill(const esdm_dataset *dataset, bool *ret_is_default);

/** States the preferred fragment shape in elements, `rank` values ≥ 1; NULL: the site decides. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_dataset_set_chunk(esdm_dataset *dataset,
                                                            const uint64_t *shape, esdm_error *err);
/** `rank` values, or NULL when none was stated; borrowed. */
ESDM_API const uint64_t *esdm_dataset_chunk(const esdm_dataset *dataset);

/** States the codec chain for new fragments by plug-in names joined by '+': "none", "lz4".
 *  NULL: the site decides. ESDM_ENOENT for a codec that is not there. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_dataset_set_codec(esdm_dataset *dataset,
                                                            const char *chain, esdm_error *err);
ESDM_API const char *esdm_dataset_codec(const esdm_dataset *dataset);
/** Asks for lossless compression without saying how: sets the chain that the site has for this
 *  ("engine.codec_on_request"), by default its own one or, when that is "none", lets ESDM choose
 * for numbers (esdm/accuracy.h, ESDM_MODE_BALANCED), and "lz4" for others. A site that forbids it
 * says "none": then nothing changes. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_dataset_request_compression(esdm_dataset *dataset,
                                                                      esdm_error *err);

ESDM_API ESDM_MUST_CHECK esdm_status esdm_dataset_set_hint(esdm_dataset *dataset, const char *key,
                                                           const char *value, esdm_error *err);
ESDM_API const char *esdm_dataset_hint(const esdm_dataset *dataset, const char *key);
/** Whether any data was written to it, committed or not. */
ESDM_API bool esdm_dataset_has_data(esdm_dataset *dataset);

/* ---- attributes --------------------------------------------------------------------------- */

/** One attribute as seen by the reader; borrowed until the list changes. */
typedef struct esdm_attribute {
    const char *name;
    esdm_type type;
    uint64_t count;     /**< elements; for ESDM_TYPE_CHAR bytes; may be 0 */
    const void *values; /**< `count` elements in memory form (strings: `const char *` each) */
} esdm_attribute;

/** Creates or overwrites; an overwritten one keeps its position. `values` are copied. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_attribute_set(esdm_attributes *list, const char *name,
                                                        esdm_type type, uint64_t count,
                                                        const void *values, esdm_error *err);
ESDM_API ESDM_MUST_CHECK esdm_status esdm_attribute_rename(esdm_attributes *list, const char *name,
                                                           const char *new_name, esdm_error *err);
ESDM_API ESDM_MUST_CHECK esdm_status esdm_attribute_remove(esdm_attributes *list, const char *name,
                                                           esdm_error *err);
ESDM_API size_t esdm_attribute_count(const esdm_attributes *list);
/** false when index is past the end. */
ESDM_API bool esdm_attribute_at(const esdm_attributes *list, size_t index, esdm_attribute *ret);
/** false when there is none; @param ret_index may be NULL. */
ESDM_API bool esdm_attribute_find(const esdm_attributes *list, const char *name,
                                  esdm_attribute *ret, size_t *ret_index);

/* ---- data --------------------------------------------------------------------------------- */

/**
 * Writes a hyperslab. Unlimited dimensions grow as needed; past a limited one is ESDM_EINVAL.
 *
 * @param memory_type type of `buffer`'s elements; numbers convert to the dataset's type by the
 *        rules of C; text and strings do not convert.
 * @param ret_out_of_range may be NULL; the number of values that the dataset's type cannot
 *        hold. They are stored as the C cast that stock netCDF-4 does (NC_ERANGE semantics).
 * The buffer may be reused at return. Data is visible to this handle at once and to others from
 * the next commit. Among overlapping writes the later one wins.
 *
 * After a failure (a full disk, say) what was written before is kept, and a part of this selection
 * may be stored. Nothing is committed until the selection was written again, as a whole or in
 * slabs, or esdm_container_give_up_failed() was called.
 *
 * Where the site has "writes": "background" the data are stored after the return, and a failure is
 * told by the commit. They are kept, and the next commit tries again; or they are given up.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_write(esdm_dataset *dataset, const esdm_dataspace *space,
                                                esdm_type memory_type, const void *buffer,
                                                uint64_t *ret_out_of_range, esdm_error *err);

/**
 * Writes records that follow the last ones which this handle wrote to the dataset, where nothing is
 * to be converted, shared with other ranks or observed: little more than a copy, for layers above
 * ESDM that put many small ones. Any thread, as esdm_write().
 *
 * @param rank numbers in `offset` and `size`.
 * @return true: as esdm_write() that succeeded. false: nothing was done, for whatever reason;
 *         esdm_write() does it, or tells what is wrong.
 */
ESDM_API ESDM_MUST_CHECK bool esdm_write_next(esdm_dataset *dataset, uint32_t rank,
                                              const uint64_t *offset, const uint64_t *size,
                                              esdm_type memory_type, const void *buffer);

/**
 * Reads a hyperslab; what nobody wrote reads as the fill value. The hyperslab must lie inside the
 * current dimension lengths.
 *
 * @param buffer strings: each element is set to a malloc'ed text that the caller frees with free().
 * On ESDM_ECORRUPT or ESDM_EIO parts of the buffer may have been written.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_read(esdm_dataset *dataset, const esdm_dataspace *space,
                                               esdm_type memory_type, void *buffer,
                                               uint64_t *ret_out_of_range, esdm_error *err);

/**
 * Converts `count` dense elements between two numeric types, or copies equal types.
 * Values that do not fit are counted and cast as x86-64 C code does, without undefined
 * behaviour: floating point goes through int32 (types up to int32) or int64 (uint32 and wider),
 * whose lowest value stands for what does not fit, and is then truncated.
 * @return ESDM_EINVAL for text ↔ number.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_convert(esdm_type from, const void *source, esdm_type to,
                                                  void *target, uint64_t count,
                                                  uint64_t *ret_out_of_range, esdm_error *err);

/** The same by other rules. @param storing from memory to the type of a dataset or an attribute,
 *  else from there to memory: netCDF-3 differs. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_convert_as(esdm_conversion rules, bool storing,
                                                     esdm_type from, const void *source,
                                                     esdm_type to, void *target, uint64_t count,
                                                     uint64_t *ret_out_of_range, esdm_error *err);

#ifdef __cplusplus
}
#endif
#endif
