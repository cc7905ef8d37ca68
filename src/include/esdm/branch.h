/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BRANCH_H
#define ESDM_BRANCH_H

/**
 * @file
 * Branches: named lines of commits that begin with a snapshot of a container. A branch is a
 * container of its own, `NAME@branch:BRANCH`, which every program reads and writes under that name.
 * It shares the packs of its container, so that making one stores no data; whatever becomes of one
 * of them changes nothing of the other. Queries pass branches by.
 */

#include "esdm/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A branch; borrowed during the callback. */
typedef struct esdm_branch_info {
    const char *branch;
    const char *name;    /**< of the container that it is: NAME@branch:BRANCH */
    uint64_t from;       /**< snapshot of NAME with which it began; 0: not kept any more */
    uint64_t merged;     /**< its own newest snapshot that was merged; 0: none */
    uint64_t snapshot;   /**< its newest one; `from` until something was committed to it */
    uint64_t created_ns; /**< since 1970 */
    uint64_t modified_ns;
} esdm_branch_info;
typedef bool (*esdm_branch_visitor)(const esdm_branch_info *info, void *user);

/**
 * Makes a branch of a snapshot. One transaction of the metadata store; no data are copied. The
 * snapshot is kept as long as the branch is there, for merging.
 * @param name of a container (its newest snapshot), or what says one of its snapshots: NAME@7,
 * NAME@-1, NAME@2026-11-20, NAME@tag:TAG.
 * @param branch 1 to ESDM_BRANCH_MAX bytes of UTF-8, without '@', '?', ':', blanks and control
 * characters; '/' between parts, as in names of containers: where there is a branch `a` there is no
 * `a/b`.
 * @param ret_snapshot number of the snapshot; may be NULL.
 * @return ESDM_EINVAL: no such name can be given. ESDM_EEXIST: the container has that branch.
 * ESDM_ENOENT: no such container or snapshot. ESDM_ENOTSUP: the metadata store makes no clones, or
 * the name is a query, a branch, or a snapshot of a former container. ESDM_EACCES.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_branch_create(esdm_session *session, const char *name,
                                                        const char *branch, uint64_t *ret_snapshot,
                                                        esdm_error *err);
/** Removes a branch, as esdm_container_remove() does: the site keeps it for a while. What was
 *  merged stays. ESDM_ENOENT: there is none. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_branch_remove(esdm_session *session, const char *name,
                                                        const char *branch, esdm_error *err);
/** Visits the branches of a container in the order of their names (bytes), also of one that was
 *  removed and left some. ESDM_ENOENT: neither the container nor a branch is there. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_branch_list(esdm_session *session, const char *name,
                                                      esdm_branch_visitor visit, void *user,
                                                      esdm_error *err);

#ifdef __cplusplus
}
#endif

#endif
