/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_RANKS_HANDOVER_ROLES_H
#define ESDM_IO_RANKS_HANDOVER_ROLES_H

/** @file Which ranks store for which others ("ranks" of the site): a pure function. */

#include <stdbool.h>
#include <stdint.h>

#include "esdm/comm.h"

typedef struct esdm__handover_role {
    int stores;  /**< who stores for this rank; itself: it does */
    bool serves; /**< it stores for others */
} esdm__handover_role;

/**
 * Spreads so many ranks evenly over the nodes, one on each at least, and the ranks of a node evenly
 * over its own; the first of each group stores for it. Where the nodes are not known there is one.
 * @param io how many store; 0: each for itself.
 */
esdm__handover_role esdm__handover_role_of(const esdm_comm *comm, uint32_t io);

#endif
