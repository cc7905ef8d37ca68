/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_UPKEEP_DEDUP_WISH_H
#define ESDM_UPKEEP_DEDUP_WISH_H

/** @file On which targets a fragment may lie, and in how many copies, as all containers want it
 *  that refer to it. One fragment takes the place of an equal one only if it is as good for all
 *  of these. */

#include "io/session/session.h"
#include "layout/packs.h"
#include "model/container.h"

/** What the site wants of a fragment. */
typedef struct esdm__dedup_wish {
    uint32_t copies;     /* the most that anybody wants */
    const bool *allowed; /* flags of targets; NULL: all; borrowed from the site */
    bool differs;        /* some want other targets than others: it stays where it is */
} esdm__dedup_wish;

/** What names a container's datasets, if the site has policies, which go by names. NULL when they
 *  cannot be told: it was removed or replaced meanwhile, or its newest snapshot cannot be read.
 *  @param record its number. @param ret esdm__container_drop(). ESDM_ENOMEM. */
esdm_status esdm__dedup_model(esdm_session *session, const char *container, uint64_t record,
                              esdm_container **ret, esdm_error *err);
/** Of the fragments of a dataset. One without a name may be of any policy: they stay where they
 *  are. @param model esdm__dedup_model(). */
void esdm__dedup_wish_of(const esdm_session *session, const char *container,
                         const esdm_container *model, uint32_t dataset, esdm__dedup_wish *ret);
/** Adds what somebody else wants of the same one. */
void esdm__dedup_wish_add(esdm__dedup_wish *wish, const esdm__dedup_wish *other);
/** Whether the place is as good as the one that it has now: targets that are allowed, which all
 *  nodes see, and as many copies as are wanted, or not fewer than now. */
bool esdm__dedup_wish_takes(esdm_session *session, const esdm__dedup_wish *wish,
                            const esdm__pack_name *now, const esdm__pack_name *then);

#endif
