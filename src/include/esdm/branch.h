/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BRANCH_H
#define ESDM_BRANCH_H

/**
 * @file
 * Branches: named lines of commits that begin with a snapshot of a container. A branch is a
 * container of its own, `NAME@branch:BRANCH`, which every program reads and writes under that name.
 * It shares the packs of its container, so that making one stores no data; whatever becomes of one
 * of them changes nothing of the other. Queries pass branches by. A branch may begin with another
 * one: all branches of a container have their names beside each other, `NAME@branch:BRANCH`.
 */

#include "esdm/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A branch; borrowed during the callback. */
typedef struct esdm_branch_info {
    const char *branch;
    const char *name;    /**< of the container that it is: NAME@branch:BRANCH */
    const char *parent;  /**< with which it began: NAME, or another branch of it, NAME@branch:… */
    uint64_t from;       /**< snapshot of the parent with which it began; 0: not kept any more */
    uint64_t merged;     /**< its own newest snapshot that was merged into it; 0: none */
    uint64_t snapshot;   /**< its newest one; `from` until something was committed to it */
    uint64_t created_ns; /**< since 1970 */
    uint64_t modified_ns;
} esdm_branch_info;
typedef bool (*esdm_branch_visitor)(const esdm_branch_info *info, void *user);

/**
 * Makes a branch of a snapshot. One transaction of the metadata store; no data are copied. The
 * snapshot is kept as long as the branch is there, for merging.
 * @param name of a container or of a branch of it (its newest snapshot), or what says one of its
 * snapshots: NAME@7, NAME@-1, NAME@2026-11-20, NAME@tag:TAG, NAME@branch:OTHER@7.
 * @param branch 1 to ESDM_BRANCH_MAX bytes of UTF-8, without '@', '?', ':', blanks and control
 * characters; '/' between parts, as in names of containers: where there is a branch `a` there is no
 * `a/b`.
 * @param ret_snapshot number of the snapshot; may be NULL.
 * @return ESDM_EINVAL: no such name can be given. ESDM_EEXIST: the container has that branch.
 * ESDM_ENOENT: no such container or snapshot. ESDM_ENOTSUP: the metadata store makes no clones, or
 * the name is a query, or a snapshot of a former container. ESDM_EACCES.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_branch_create(esdm_session *session, const char *name,
                                                        const char *branch, uint64_t *ret_snapshot,
                                                        esdm_error *err);
/** Removes a branch, as esdm_container_remove() does: the site keeps it for a while. What was
 *  merged stays. ESDM_ENOENT: there is none. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_branch_remove(esdm_session *session, const char *name,
                                                        const char *branch, esdm_error *err);
/** Visits the branches of a container in the order of their names (bytes), also of one that was
 *  removed and left some; of a branch those that began with it. ESDM_ENOENT: neither the container
 *  nor a branch is there. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_branch_list(esdm_session *session, const char *name,
                                                      esdm_branch_visitor visit, void *user,
                                                      esdm_error *err);

/* ---- gathering ---------------------------------------------------------------------------- */

/** Bytes of a name of esdm_gather_name(), with the zero. */
#define ESDM_GATHER_NAME_BYTES 112
/**
 * A name for a branch in which one process has others write, to merge it at the end: nobody else
 * has it, and it tells node, process and time: `gather-NODE-PROCESS-…`. Once that process runs no
 * more, esdm_gather_left() finds the branch. Threads: any.
 * @param ret_branch of ESDM_GATHER_NAME_BYTES; NULL: nothing is done.
 */
ESDM_API void esdm_gather_name(char *ret_branch);
/**
 * Has such a branch stay also when the process ends: a commit that changes nothing, whose message
 * says so.
 * @param name NAME\@branch:BRANCH. @param why for the message. Errors of opening and committing.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_gather_keep(esdm_session *session, const char *name,
                                                      const char *why, esdm_error *err);
/** @param name NAME\@branch:BRANCH, borrowed. @return false: enough. */
typedef bool (*esdm_gather_visitor)(const char *name, void *user);
/**
 * Visits branches of esdm_gather_name() whose process has ended before it merged or removed them.
 * Those of other nodes, other namespaces of processes, or from before the node was started count
 * when nobody has committed to them for a week. Those of esdm_gather_keep() do not.
 * @param name the container whose branches these are, or one of them; NULL: of all containers.
 * @param age_s those that somebody has committed to since are left out.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_gather_left(esdm_session *session, const char *name,
                                                      uint64_t age_s, esdm_gather_visitor visit,
                                                      void *user, esdm_error *err);

/* ---- merging ------------------------------------------------------------------------------ */

/** What is done where both sides have changed the same. */
typedef enum esdm_merge_prefer {
    ESDM_MERGE_REFUSE, /**< nothing is merged */
    ESDM_MERGE_OURS,   /**< what is in the line that gets the changes stays */
    ESDM_MERGE_THEIRS  /**< what is merged wins */
} esdm_merge_prefer;

/** Where both sides have changed the same, in different ways. Borrowed during the call. */
typedef struct esdm_merge_conflict {
    const char *object;    /**< path of the variable, group or dimension */
    const char *what;      /**< "values", "attribute", "name", "group", "dimension", "variable": of
                                the last three one of that name that does not fit is on the other
                                side, which no preference decides */
    const char *attribute; /**< its name, with "attribute"; else NULL */
    uint32_t rank;         /**< with "values": of the box */
    const uint64_t *offset;
    const uint64_t *size;
    bool decided; /**< by the preference */
} esdm_merge_conflict;
typedef void (*esdm_merge_visitor)(const esdm_merge_conflict *conflict, void *user);

/** Zero-initialise. */
typedef struct esdm_merge_options {
    esdm_merge_prefer prefer;
    bool dry_run;        /**< look for conflicts, and change nothing */
    uint64_t pick;       /**< only what this snapshot of the branch changed; 0: all that is new */
    uint64_t pick_after; /**< with `pick`: what was changed since this one; 0: the one before */
    const char *message; /**< of the commit; NULL: what was merged */
    esdm_merge_visitor report; /**< may be NULL; the boxes of one variable do not meet */
    void *user;
} esdm_merge_options;

typedef struct esdm_merge_result {
    uint64_t base;      /**< snapshot since which it was looked for changes: of the branch,
                             or of what was merged into it last */
    uint64_t theirs;    /**< snapshot of the branch that was merged */
    uint64_t snapshot;  /**< of the container, that was made, also where it has the same changes
                             already; 0: none, as nothing was new */
    uint64_t objects;   /**< groups, dimensions, variables, attributes that changed */
    uint64_t fragments; /**< that the container refers to now */
    uint64_t referenced_bytes;  /**< stored ones of these; none was copied */
    uint64_t rewritten_bytes;   /**< of values that were stored anew, as both sides changed them */
    uint64_t conflicts;         /**< that were told */
    uint64_t open_conflicts;    /**< that nothing decides */
    uint64_t conflict_elements; /**< values in conflict */
} esdm_merge_result;

/**
 * Makes the changes of a branch to its container, in one commit; the branch stays, and may be
 * merged again later. A branch can be merged into its container and into each other branch of it,
 * and the container into each of its branches. Changes are those since both lines had the same: as
 * the one began with the other, or both with a third one, and by all merges since, of any lines.
 * Values change by fragments, which are referred to and not copied; where both sides have written,
 * their values are compared, bit by bit: an element is in conflict when both differ from what was
 * before, and from each other. Attributes, names, dimensions, groups and variables are merged one
 * by one; of the attribute `history` the additions of both are kept. Records that both have
 * appended are values as others. What a program writes to the container meanwhile is looked at,
 * too.
 *
 * @param name of the container, or of the branch that is to get the changes. @param branch of the
 * same container, whose changes these are; NULL: those of the container itself, into its branch
 * `name`. @param options may be NULL. @param ret_result may be NULL; filled
 * in also when there are conflicts.
 * @return ESDM_ECONFLICT: there are conflicts that nothing decides, or others wrote to the same
 * parts again and again; nothing has changed. ESDM_ENOENT: no such container, branch or snapshot.
 * ESDM_ENOTSUP: the container or the branch was replaced since they parted, none of them began
 * with the other one, or what is new has user-defined types. ESDM_EACCES.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_merge(esdm_session *session, const char *name,
                                                const char *branch,
                                                const esdm_merge_options *options,
                                                esdm_merge_result *ret_result, esdm_error *err);

#ifdef __cplusplus
}
#endif

#endif
