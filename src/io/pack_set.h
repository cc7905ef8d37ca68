/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_PACK_SET_H
#define ESDM_IO_PACK_SET_H

/**
 * @file
 * The packs that one open container writes. Each append has a pack to itself while it lasts, so
 * threads never share a file: two threads fill two packs at twice the speed.
 * Threads: locked inside.
 */

#include "io/session.h"

typedef struct esdm__pack_set esdm__pack_set;

/** Where a blob went. The names live as long as the esdm__pack_set. */
typedef struct esdm__place {
    const char *target;
    const char *pack;
    uint64_t position;
} esdm__place;

/** @param uuid of the container, 32 hex digits; copied. NULL when out of memory. */
esdm__pack_set *esdm__pack_set_new(esdm_session *session, const char *uuid);

/**
 * Appends one blob. A target that is full or fails is tried last from then on, and the blob goes
 * to the next one; only when all targets refuse is the first refusal returned.
 */
esdm_status esdm__pack_set_append(esdm__pack_set *packs, const esdm_iov *iov, size_t niov,
                                  esdm__place *ret_place, esdm_error *err);

/** Makes everything appended readable for other processes, and durable if asked. */
esdm_status esdm__pack_set_publish(esdm__pack_set *packs, bool durable, esdm_error *err);
/** Makes everything appended readable for this process. */
esdm_status esdm__pack_set_make_readable(esdm__pack_set *packs, esdm_error *err);
/** What was appended so far is referenced by a commit now: it must stay. */
void esdm__pack_set_committed(esdm__pack_set *packs);
/** Another process is about to commit what was appended so far (`offered`), or could not (false).
 *  What is offered must stay as well, since the answer may never come. */
void esdm__pack_set_offer(esdm__pack_set *packs, bool offered);
/** Seals all packs, removes those that no commit refers to, frees; in a forked child only frees.
 *  NULL is accepted. */
void esdm__pack_set_free(esdm__pack_set *packs);

#endif
