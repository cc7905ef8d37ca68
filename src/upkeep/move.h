/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_UPKEEP_MOVE_H
#define ESDM_UPKEEP_MOVE_H

/**
 * @file
 * Storing fragments of a container elsewhere, or on more targets: they are read, verified, written
 * to new packs (of the uuid that the old ones are named after, which may be that of another
 * container), and then the index pages that name them are replaced. No snapshot changes. What is
 * interrupted leaves the old state, and new packs that nothing refers to. Old packs stay. Since
 * they go soon, all of this survives power loss before it counts, whatever the site wants.
 */

#include "io/packs/pack_set.h"
#include "layout/page.h"
#include "model/container.h"

typedef struct esdm__move_job {
    esdm_session *session;
    const char *name; /* of the container, for messages */
    uint64_t container;
    const char *uuid;
    const esdm_container *model; /* whose policies say where fragments may lie; NULL: all may */
    bool global;                 /* to targets that all nodes see */
    const bool *barred;          /* flags of targets that take nothing; borrowed; NULL: none */
    bool dry_run;                /* only count what would be stored anew */
    /** Whether the fragment is to be stored anew, and how often. From any thread. */
    bool (*wants)(void *user, uint32_t dataset, const esdm__fragment *fragment,
                  uint32_t *ret_copies);
    /** Whether the same bytes are stored at another place already; then the record names that place
     * from now on. Called before wants(). NULL: never. @param ret_pack borrowed until the job ends.
     */
    bool (*stored_at)(void *user, const esdm__fragment *fragment, const esdm__pack_name **ret_pack,
                      uint64_t *ret_position);
    /** Called after each page. NULL: nobody listens. false: stop (ESDM_ECANCELED). */
    bool (*step)(void *user);
    /** Called for each fragment that was stored anew, with the pack that it lay in before, which
     *  still has it. NULL: nobody listens. */
    void (*moved)(void *user, const char *pack, uint64_t bytes);
    void *user;
} esdm__move_job;

typedef struct esdm__moved {
    uint64_t fragments;
    uint64_t bytes;
    uint64_t pages;
    uint64_t failed; /* fragments of which no sound copy, or whose page, could be read from here */
} esdm__moved;

/**
 * Where a dataset's fragments may be stored: the policies' targets without those that are barred.
 * Policies that allow no target which counts for the job, apart from barring, count as none.
 * @param ret_allowed flags of the session's targets.
 * @return how many of them can be opened.
 */
uint32_t esdm__move_targets(const esdm__move_job *job, uint32_t dataset, bool *ret_allowed);

/** What several jobs do one after the other: fragments that one of them has stored anew, others
 * find there. For containers that share packs. One thread. */
typedef struct esdm__mover esdm__mover;
esdm__mover *esdm__mover_new(esdm_session *session); /* NULL when out of memory */
void esdm__mover_free(esdm__mover *mover);           /* NULL is accepted */
esdm_status esdm__mover_run(esdm__mover *mover, const esdm__move_job *job, esdm__moved *ret_moved,
                            esdm_error *ret_first, esdm_error *err);

/** One job alone. ESDM_OK although some `failed`; then ret_first (may be NULL) tells about one of
 * them. */
esdm_status esdm__move(const esdm__move_job *job, esdm__moved *ret_moved, esdm_error *ret_first,
                       esdm_error *err);

#endif
