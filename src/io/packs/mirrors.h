/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_PACKS_MIRRORS_H
#define ESDM_IO_PACKS_MIRRORS_H

/**
 * @file
 * The copies of a pack that is being written: packs of the same name and content on other targets.
 * One that refuses something is lost and gets no more; what it has stays good.
 * Threads: one at a time.
 */

#include "io/session/session.h"

#define ESDM__MIRRORS_MAX (ESDM__COPIES_MAX - 1)

typedef struct esdm__mirror {
    esdm__target *target;
    void *handle; /* NULL: sealed */
    bool asks;    /* as in esdm__pack */
    bool lost;    /* it lacks something that the pack has */
} esdm__mirror;

typedef struct esdm__mirrors {
    esdm__mirror list[ESDM__MIRRORS_MAX];
    uint32_t count;
} esdm__mirrors;

/** Where copies shall go. */
typedef struct esdm__mirror_targets {
    esdm__target *targets[ESDM__MIRRORS_MAX];
    uint32_t count;
} esdm__mirror_targets;

/** Whether these are the targets, and no mirror is lost. */
bool esdm__mirrors_are_on(const esdm__mirrors *mirrors, const esdm__mirror_targets *targets);
/** Makes the packs; one that cannot be made is left out. */
void esdm__mirrors_create(esdm_session *session, esdm__mirrors *ret_mirrors, const char *name,
                          const esdm__mirror_targets *targets);
/** Appends at the position where the pack has it. false: a mirror was lost. */
bool esdm__mirrors_append(esdm__mirrors *mirrors, const esdm_iov *iov, size_t niov,
                          uint64_t position);
/** Flushes them, or ends them. @return whether one of them holds all that the pack holds. */
bool esdm__mirrors_sync(esdm__mirrors *mirrors);
bool esdm__mirrors_seal(esdm__mirrors *mirrors);
/** How many are not lost. */
uint32_t esdm__mirrors_good(const esdm__mirrors *mirrors);
bool esdm__mirrors_any_full(const esdm__mirrors *mirrors);
/** The ESDM_DATA_* flags that all of them have. */
uint32_t esdm__mirrors_flags(const esdm__mirrors *mirrors);
/** Places (layout/places.h) of what lies on the target and the mirrors that are not lost. NULL: no
 *  memory. */
char *esdm__mirrors_places(const esdm__target *target, const esdm__mirrors *mirrors);
/** Removes them. */
void esdm__mirrors_drop(esdm__mirrors *mirrors, const char *name);

/** Removes a pack, of which nothing need be stored first. @param handle NULL: sealed. */
void esdm__pack_drop(const esdm__target *target, void *handle, const char *name);

#endif
