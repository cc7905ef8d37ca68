/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_UPKEEP_DRAIN_RECORDS_H
#define ESDM_UPKEEP_DRAIN_RECORDS_H

/** @file The containers that a drain is about. */

#include "upkeep/groups.h"
#include "upkeep/upkeep.h"

/** One of the catalogue. */
typedef struct esdm__drain_record {
    uint64_t container;
    char *name; /* owned; NULL: garbage that somebody reads */
    char uuid[ESDM_META_UUID_BYTES];
    bool done; /* with others that share its packs */
} esdm__drain_record;

typedef struct esdm__drain_records {
    esdm__drain_record *items; /* owned; by uuid */
    size_t count;
    bool failed;
} esdm__drain_records;

/** All of the catalogue, with what is removed and still read; or what was asked for, with what
 *  shares packs with it. @param list zeroed; esdm__drain_records_clear() in any case. */
esdm_status esdm__drain_records_load(const esdm_session *session, const esdm_drain_options *options,
                                     const esdm__share_groups *groups, esdm__drain_records *list,
                                     esdm_error *err);
void esdm__drain_records_clear(esdm__drain_records *list);
/** Whether a pack belongs to what is drained. */
bool esdm__drain_records_have(const esdm__drain_records *list, const esdm_drain_options *options,
                              const esdm__share_groups *groups, const char *pack);

#endif
