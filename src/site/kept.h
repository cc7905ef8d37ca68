/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_SITE_KEPT_H
#define ESDM_SITE_KEPT_H

/** @file The packs that the catalogue has, by target, and which of them are not there. Those of
 *  targets that each node has for itself are left out. One thread at a time. */

#include "site/admin.h"

typedef struct esdm__kept_pack {
    char *name;      /* owned; NULL: the slot is free */
    uint32_t target; /* number in the site */
    bool there;
} esdm__kept_pack;

/** Zero-initialise. */
typedef struct esdm__kept {
    esdm__kept_pack *table; /* owned; open addressing */
    size_t slots;           /* 0, or a power of two */
    size_t count;
    char
        elsewhere[64]; /* a target that has packs and is not in the configuration; may be cut off */
} esdm__kept;

/** Reads the pages of all containers, with all snapshots that are kept. Nothing where the metadata
 *  store was not made. @param ret_kept esdm__kept_clear(), also after a failure. */
esdm_status esdm__kept_load(const esdm__site *site, esdm__kept *ret_kept, esdm_error *err);
void esdm__kept_clear(esdm__kept *kept);
/** How many packs there should be on a target; of the number behind the last one: which have no
 * copy on any target of the configuration. */
uint64_t esdm__kept_on(const esdm__kept *kept, size_t target);
/** How many of them are not there, and are in the catalogue still. @param part the target. */
esdm_status esdm__kept_compare(esdm__kept *kept, const esdm__site *site, size_t target,
                               const esdm__part *part, uint64_t *ret_missing, esdm_error *err);

#endif
