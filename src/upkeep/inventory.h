/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_UPKEEP_INVENTORY_H
#define ESDM_UPKEEP_INVENTORY_H

/** @file The packs that lie on the targets of a site at one moment. One thread at a time, but for
 *  `used` and looking up. */

#include <stdatomic.h>

#include "esdm/upkeep.h"
#include "io/packs/page_list.h"
#include "io/session/session.h"

typedef struct esdm__pack_entry {
    char *name; /* owned */
    uint32_t target;
    uint64_t bytes;
    uint64_t modified_ns;
    atomic_bool used; /* a page refers to it */
} esdm__pack_entry;

typedef struct esdm__inventory {
    esdm__pack_entry *entries; /* owned; by name and target */
    size_t count;
    size_t capacity;
    bool files; /* of files that are held (io/session/held_files.h), and no packs */
} esdm__inventory;

/** Adds all packs whose names begin with `prefix` (NULL: all), of targets that can be opened. Sort
 *  before looking up. */
esdm_status esdm__inventory_add(esdm__inventory *inventory, esdm_session *session,
                                const char *prefix, esdm_error *err);
/** The same of files that are held; nothing else is in the inventory. */
esdm_status esdm__inventory_add_files(esdm__inventory *inventory, esdm_session *session,
                                      esdm_error *err);
void esdm__inventory_sort(esdm__inventory *inventory);
void esdm__inventory_clear(esdm__inventory *inventory);
/** Tells of each target that cannot be opened. @return how many. */
size_t esdm__targets_report(esdm_session *session, esdm_finding_visitor report, void *user);
/** Tells when somebody has put an older copy of the catalogue in its place. */
bool esdm__put_back_report(esdm_session *session, esdm_finding_visitor report, void *user);
/** NULL when it is not there. */
esdm__pack_entry *esdm__inventory_find(const esdm__inventory *inventory, uint32_t target,
                                       const char *name);
/** First entry of a container, or the place where it would be. */
size_t esdm__inventory_first(const esdm__inventory *inventory, const char *uuid);

/** Whether nothing was written to the pack for a time. @param any_age `age_s` counts even if 0;
 * else 0 means ESDM_GC_AGE_S. */
bool esdm__pack_is_old(const esdm__pack_entry *entry, bool any_age, uint64_t age_s,
                       uint64_t now_ns);

#endif
