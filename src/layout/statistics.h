/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_LAYOUT_STATISTICS_H
#define ESDM_LAYOUT_STATISTICS_H

/**
 * @file
 * Statistics of the values of one fragment, as they will be read. What is missing (NaN, the fill
 * value, `missing_value`) counts in none of them. Pure functions.
 */

#include <stdbool.h>
#include <stdint.h>

/** How minimum and maximum are held; of the dataset's type. */
typedef enum esdm__number_class {
    ESDM__CLASS_NONE = 0, /* no statistics are known */
    ESDM__CLASS_SIGNED = 1,
    ESDM__CLASS_UNSIGNED = 2,
    ESDM__CLASS_FLOAT = 3, /* single precision: held as double, stored with 4 bytes */
    ESDM__CLASS_DOUBLE = 4
} esdm__number_class;

typedef union esdm__number {
    int64_t i;
    uint64_t u;
    double f;
} esdm__number;

typedef struct esdm__statistics {
    esdm__number min; /* meaningless when valid is 0, and so is max */
    esdm__number max;
    double sum;     /* of the valid values; 0 without any */
    uint64_t valid; /* values that are not missing */
    uint32_t rule;  /* which values counted as missing: a hash of them; 0: only NaN */
    uint8_t class;  /* esdm__number_class */
} esdm__statistics;

/** Adds what `more` says to `total`, which may be zeroed. Neither is known: nothing happens; the
 *  classes differ: `total` becomes unknown. The rule stays that of the first. */
void esdm__statistics_add(esdm__statistics *total, const esdm__statistics *more);

#endif
