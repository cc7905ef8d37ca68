/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_ESDM_PATTERN_H
#define ESDM_TOOLS_ESDM_PATTERN_H

/**
 * @file
 * Synthetic fields. A value depends on its index, the shape and the seed alone, so that a field can
 * be made in slabs of any size, and made again.
 */

#include "common/common.h"

#define PATTERN_RANK_MAX     8
#define PATTERN_MUTATORS_MAX 8

typedef enum pattern_kind {
    PATTERN_CONSTANT,
    PATTERN_RANDOM,
    PATTERN_NOISE,
    PATTERN_STEPS,
    PATTERN_WAVES
} pattern_kind;

typedef enum pattern_mutation { PATTERN_REPEAT, PATTERN_ADD_NOISE } pattern_mutation;

typedef struct pattern_mutator {
    pattern_mutation kind;
    double amount; /**< elements that share a value; or largest deviation as a share of the range */
} pattern_mutator;

/** A field. Only what its kind needs is set. */
typedef struct pattern_field {
    uint32_t rank;
    uint64_t shape[PATTERN_RANK_MAX]; /**< slowest first */
    uint64_t seed;
    pattern_kind kind;
    double frequency; /**< periods along each axis (noise, waves) */
    uint32_t octaves; /**< noise: layers, each of twice the frequency and half the height */
    double count;     /**< plateaus (steps) */
    double lowest, highest;
    uint32_t mutators;
    pattern_mutator mutator[PATTERN_MUTATORS_MAX]; /**< applied in this order */
    double land;                                   /**< share of masked points, 0 ... 1 */
    double land_level; /**< of the mask's noise; pattern_field_prepare() */
} pattern_field;

/** Reads "waves:frequency=3". ESDM_EINVAL tells what there is. */
esdm_status pattern_parse(const char *text, pattern_field *field, esdm_error *err);
/** Reads "repeat:4" or "noise:0.01" and adds it. */
esdm_status pattern_parse_mutator(const char *text, pattern_field *field, esdm_error *err);
/** Finds the level of the mask's noise that covers the wanted share of the two fastest axes. */
void pattern_field_prepare(pattern_field *field);
/** The value at an index before masking. */
double pattern_value(const pattern_field *field, const uint64_t *index);
/** Whether the point is masked: the same for all indices of the slower axes. */
bool pattern_is_land(const pattern_field *field, const uint64_t *index);

/** How the field is stored. All borrowed. */
typedef struct pattern_output {
    const char *target; /**< file, or container */
    bool is_container;
    bool replace;
    bool unlimited; /**< the slowest dimension */
    const char *variable;
    const char *units;             /**< NULL: none */
    const char *history;           /**< attribute that tells how it was made */
    esdm_type type;                /**< of numbers */
    const char *format;            /**< of a file; NULL: netcdf4 */
    const char *const *dimensions; /**< `rank` names */
    double fill;
} pattern_output;

/** What was written. */
typedef struct pattern_summary {
    uint64_t values;
    uint64_t masked;
    uint64_t bytes;
    double smallest, largest; /**< of the values that are not masked; NaN: there are none */
} pattern_summary;

/** Number of a type by its name in CDL ("float"); ESDM_TYPE_NONE when it has no numbers. */
esdm_type pattern_type(const char *name);
/** Names of all types, for messages. Static. */
const char *pattern_types(void);
/** The value that NetCDF fills this type with. */
double pattern_default_fill(esdm_type type);
/** Whether a file can have this format. */
bool pattern_format_known(const char *format);

/** Makes and stores the field slab by slab, in at most some MiB of memory. What was begun and could
 *  not be finished is removed. */
tool_exit pattern_write(const pattern_field *field, const pattern_output *output,
                        tool_progress *progress, pattern_summary *ret_summary);

#endif
