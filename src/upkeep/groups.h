/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_UPKEEP_GROUPS_H
#define ESDM_UPKEEP_GROUPS_H

/**
 * @file
 * Which containers hang together because they share packs, directly or by way of others: what is
 * to leave a target has to go for all of them together. Most containers share nothing and are in no
 * group.
 */

#include "io/session/sharers.h"

typedef struct esdm__share_node {
    char uuid[ESDM_META_UUID_BYTES]; /* packs are named after it */
    size_t parent;                   /* in the array; the root of a group is its own */
    bool has_record;
} esdm__share_node;

/** Zero-initialise. */
typedef struct esdm__share_groups {
    esdm__share_node *nodes; /* owned; by uuid */
    size_t count;
} esdm__share_groups;

#define ESDM__NO_GROUP SIZE_MAX

/** Looks at all of the catalogue; what cannot be told is a failure. */
esdm_status esdm__share_groups_load(const esdm_session *session, esdm__share_groups *ret_groups,
                                    esdm_error *err);
void esdm__share_groups_clear(esdm__share_groups *groups);
/** The group of the container or pack whose name begins with this uuid; ESDM__NO_GROUP: none. */
size_t esdm__share_group_of(const esdm__share_groups *groups, const char *uuid);

#endif
