/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_PLACEMENT_FORECAST_H
#define ESDM_PLACEMENT_FORECAST_H

/** @file How a write would go: the placement, played through with the times of the models. Pure. */

#include "placement/placement.h"

/** What one target would get. */
typedef struct esdm__forecast_share {
    uint64_t fragments;
    uint64_t bytes;
    double busy_s; /* the target would work on it */
} esdm__forecast_share;

/** A write of `count` fragments of `bytes` each. */
typedef struct esdm__forecast_write {
    uint64_t count;
    uint64_t bytes;
    uint32_t streams; /* fragments under way at once; ≥ 1 */
    uint32_t batch;   /* that are placed together, and waited for; ≥ 1 */
    uint64_t turn;    /* of the first fragment */
    esdm__place_prefer prefer;
    uint32_t copies; /* of each fragment, on distinct targets; 0: one */
} esdm__forecast_write;

/** Most copies that are played through. */
#define ESDM__FORECAST_COPIES 4u

/**
 * Adds what the write brings to the shares, with all copies, which are stored one after the other
 * as the engine does; with fewer targets there are fewer of them. Long ones are played through for
 * their first batches, which repeat.
 * @param targets queues are ignored: nothing else is under way. At most ESDM__FORECAST_TARGETS.
 * @return seconds until the last fragment is stored; 0 where nothing was measured.
 */
double esdm__forecast(const esdm__place_target *targets, size_t ntargets,
                      const esdm__forecast_write *write, esdm__forecast_share *shares);

#define ESDM__FORECAST_TARGETS 256u

#endif
