/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_CF_CIRCLE_H
#define ESDM_CF_CIRCLE_H

/**
 * @file
 * The shortest range of longitudes that holds all of some: they go around, so that the range lies
 * opposite to the widest gap between neighbours. One thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "esdm/status.h"

/** Gaps below a tenth of a degree are not seen. */
#define ESDM__CIRCLE_BINS 3600

typedef struct esdm__circle {
    double *low, *high;                           /* of what lies in each bin; owned */
    uint64_t used[(ESDM__CIRCLE_BINS + 63) / 64]; /* a bit for each bin that has something */
    bool cells;                                   /* something has a width */
} esdm__circle;

/** @return ESDM_ENOMEM. */
esdm_status esdm__circle_init(esdm__circle *circle, esdm_error *err);
void esdm__circle_clear(esdm__circle *circle); /* a zeroed one is accepted */
/** Adds the range from `west` eastwards to `east`, in degrees; what is not finite is left out. */
void esdm__circle_add(esdm__circle *circle, double west, double east);
/**
 * @param ret_west in [-180, 180), and *ret_east in [west, west + 360]. All around is -180 to 180;
 * so are eight points or more without a width of which no two neighbours are further apart than one
 * and a half times the next widest gap: a global grid without bounds. @return false: nothing was
 * added.
 */
bool esdm__circle_range(const esdm__circle *circle, double *ret_west, double *ret_east);

#endif
