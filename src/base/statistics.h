/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_STATISTICS_H
#define ESDM_BASE_STATISTICS_H

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

/** Values of a dataset that stand for "nothing is known here". */
#define ESDM__MISSING_MOST 4u
typedef struct esdm__missing {
    uint8_t class; /* of `type`; ESDM__CLASS_NONE: no statistics are made */
    int32_t type;  /* what readers take the numbers for: the dataset's, but for _Unsigned */
    uint32_t count;
    uint32_t rule;                           /* esdm__missing_rule() of the rest */
    esdm__number values[ESDM__MISSING_MOST]; /* different; not NaN, which is missing anyhow */
} esdm__missing;

/** A number as double. @param number_class esdm__number_class. */
static inline double
esdm__number_double(uint8_t number_class, esdm__number number)
{
    if (number_class == ESDM__CLASS_SIGNED)
        return (double) number.i;
    return number_class == ESDM__CLASS_UNSIGNED ? (double) number.u : number.f;
}

/** The same without loss. */
static inline long double
esdm__number_wide(uint8_t number_class, esdm__number number)
{
    if (number_class == ESDM__CLASS_SIGNED)
        return (long double) number.i;
    return number_class == ESDM__CLASS_UNSIGNED ? (long double) number.u : (long double) number.f;
}

/** Adds a value, unless it is there or NaN; without room the class becomes ESDM__CLASS_NONE. */
void esdm__missing_add(esdm__missing *missing, esdm__number value);
/** The rule that these values are: see esdm__statistics. Their order does not matter. */
uint32_t esdm__missing_rule(const esdm__missing *missing);

/** Adds what `more` says to `total`, which may be zeroed. Neither is known: nothing happens; the
 *  classes differ: `total` becomes unknown. The rule stays that of the first. */
void esdm__statistics_add(esdm__statistics *total, const esdm__statistics *more);

#endif
