/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_UPKEEP_GUARDED_H
#define ESDM_UPKEEP_GUARDED_H

/** @file Whose packs were guarded (io/packs/pack_guard.h) while somebody looked for what nobody
 *  needs. One thread. */

#include "base/ids.h"
#include "upkeep/inventory.h"

typedef struct esdm__guard {
    char writer[ESDM__UUID_BYTES];
    char chance[ESDM__UUID_BYTES]; /* another one each time */
} esdm__guard;

/** Zero-initialise. */
typedef struct esdm__guarded {
    esdm__guard *items; /* owned; by writer */
    size_t count;
    bool failed;
} esdm__guarded;

/** All that are noted now; none where the store keeps no facts. */
esdm_status esdm__guarded_list(const esdm_session *session, esdm__guarded *ret, esdm_error *err);
void esdm__guarded_clear(esdm__guarded *all);
/** What was guarded since `before` counts as alive. @param dead flags of the packs. */
esdm_status esdm__guarded_spare(const esdm_session *session, const esdm__inventory *packs,
                                const esdm__guarded *before, bool *dead, esdm_error *err);
/** Removes notes of writers that have no packs any more, when all targets can be looked at. Best
 *  effort. */
void esdm__guarded_forget(esdm_session *session);

#endif
