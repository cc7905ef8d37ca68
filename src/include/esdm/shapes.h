/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_SHAPES_H
#define ESDM_SHAPES_H

/**
 * @file
 * Variables that are stored twice, in fragments of two shapes: maps are read from one and time
 * series from the other, by whoever reads, without being told.
 *
 * The second ones lie in a container of their own, NAME@shapes, which lists and queries pass by,
 * and which nobody can write to. NAME itself does not change, and may be written to at any time:
 * what is newer than its second shape is read from NAME, until esdm_shapes_update() brings it up to
 * date. A read never gets a value that NAME has not. The second shape follows a rename, and goes
 * with its container; copies, clones and branches have none.
 */

#include "esdm/container.h"
#include "esdm/upkeep.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum esdm_shape_for {
    ESDM_SHAPE_CHUNK,  /**< `chunk` says it */
    ESDM_SHAPE_MAPS,   /**< whole in the fastest dimensions */
    ESDM_SHAPE_SERIES, /**< whole in the slowest dimensions */
} esdm_shape_for;

/** A second shape that is wanted. */
typedef struct esdm_shape_wish {
    const char *variable; /**< "/group/name", or "name" of the root group; NULL: all that have at
                               least two dimensions and more than one fragment */
    esdm_shape_for shape;
    uint32_t rank; /**< numbers in `chunk` */
    uint64_t chunk[ESDM_MAX_RANK];
} esdm_shape_wish;

/** Zero-initialise. */
typedef struct esdm_shapes_options {
    const esdm_shape_wish *wishes; /**< the last one that fits a variable counts */
    size_t nwishes;                /**< 0: bring up to date what there is */
    bool dry_run;                  /**< count, and change nothing */
    uint64_t bytes_per_s;          /**< of values, at most; 0: as fast as it goes */
    uint64_t step_bytes;           /**< of values between two commits; 0: 4 GiB */
    esdm_finding_visitor report;   /**< variables that are left out, and why; may be NULL */
    void *user;
} esdm_shapes_options;

typedef struct esdm_shapes_result {
    uint64_t variables; /**< that have a second shape now, or would have */
    uint64_t bytes;     /**< of values that were stored for it, or would be */
    uint64_t commits;
    uint64_t left; /**< variables that were left out */
} esdm_shapes_result;

/**
 * Stores variables in a second shape, or brings the second shape up to date with the newest
 * snapshot: whole chunks in which something is newer are stored anew. Others may read and write
 * meanwhile. What was interrupted is done by the next call, variable by variable.
 * @param options,ret_result may be NULL.
 * @return ESDM_EACCES: the site allows one shape ("shapes"). ESDM_ENOTSUP: a variable that is named
 * cannot have another shape. ESDM_ENOENT: there is no such container or variable. ESDM_EEXIST: a
 * container of somebody has the name. ESDM_ECONFLICT: somebody else does the same. Else as
 * esdm_write().
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_shapes_update(esdm_session *session, const char *name,
                                                        const esdm_shapes_options *options,
                                                        esdm_shapes_result *ret_result,
                                                        esdm_error *err);

/** Removes the second shape of a container. @param ret_bytes stored, that it had; may be NULL.
 *  @return ESDM_ENOENT: it has none. ESDM_EEXIST: a container of somebody has the name. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_shapes_remove(esdm_session *session, const char *name,
                                                        uint64_t *ret_bytes, esdm_error *err);

/** What is told of a second shape. Borrowed during the call. */
typedef struct esdm_shape_info {
    const char *variable; /**< "/group/name" in the handle that was asked */
    uint32_t rank;
    const uint64_t *chunk;
    uint64_t snapshot; /**< up to which it is used; 0: it is not whole yet */
} esdm_shape_info;
/** Return false to stop. */
typedef bool (*esdm_shape_visitor)(const esdm_shape_info *info, void *user);

/**
 * Visits what a container has in a second shape.
 * @param ret_stored_bytes that it takes altogether; 0: there is none. May be NULL.
 * Threads: one for each handle.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_shapes_visit(const esdm_container *container,
                                                       esdm_shape_visitor visit, void *user,
                                                       uint64_t *ret_stored_bytes, esdm_error *err);

#ifdef __cplusplus
}
#endif
#endif
