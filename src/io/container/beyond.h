/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_CONTAINER_BEYOND_H
#define ESDM_IO_CONTAINER_BEYOND_H

/** @file What is beyond `valid_range`, `valid_min` or `valid_max` is missing to readers: reductions
 * leave it out. Statistics that are stored count it, for the attributes may change later. */

#include "codec/limits.h"
#include "io/container/missing.h"

typedef struct esdm__beyond {
    esdm__limits limits;
    esdm_type type;       /* what readers take the numbers for */
    bool any;             /* whether a number can be beyond */
    esdm__number instead; /* a whole number that is missing */
} esdm__beyond;

/**
 * Limits of a dataset. Where no whole number is missing, one beyond the limits is added to
 * `missing`, whose rule stays: statistics by that rule are used where they lie within the limits.
 */
void esdm__beyond_of(const esdm_dataset *dataset, esdm__missing *missing, esdm__beyond *ret);
/** Puts missing values in place of numbers beyond the limits. @param type that of the dataset, or
 * ESDM_TYPE_FLOAT64 of what was converted. */
void esdm__beyond_hide(const esdm__beyond *beyond, esdm_type type, void *numbers, size_t n);
/** Whether no number that these statistics are of is beyond. */
bool esdm__beyond_none(const esdm__beyond *beyond, const esdm__statistics *statistics);

#endif
