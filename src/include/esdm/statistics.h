/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_STATISTICS_H
#define ESDM_STATISTICS_H

/** @file Minimum, maximum, sum and number of values, from what is noted when these are written. */

#include "esdm/container.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A number of a dataset's type: `i` of signed integers, `u` of unsigned ones (also of signed ones
 *  with `_Unsigned = "true"`), `f` of others. */
typedef union esdm_number {
    int64_t i;
    uint64_t u;
    double f;
} esdm_number;

/** What esdm_statistics says of the values. */
enum {
    /** Every valid value lies between minimum and maximum; these need not occur. */
    ESDM_STATISTICS_BOUNDS = 1,
    /** Minimum, maximum, sum and number are those of the values. */
    ESDM_STATISTICS_EXACT = 2
};

/**
 * Statistics of stored numbers: `scale_factor` and `add_offset` are not applied, `_Unsigned` is (a
 * byte -1 is 255 where this attribute is "true"). Missing are NaN, the fill value in force (but not
 * the default one of single bytes), `_FillValue`, `missing_value`, and what is beyond
 * `valid_range`, `valid_min` or `valid_max`; what was never written is the fill value.
 */
typedef struct esdm_statistics {
    uint32_t flags;        /**< ESDM_STATISTICS_…; 0: nothing is known */
    uint64_t elements;     /**< of the selection */
    uint64_t valid;        /**< values that are not missing; meaningful when exact */
    double min;            /**< as double; meaningless when exact and `valid` is 0 */
    double max;            /**< as min */
    esdm_number min_value; /**< in the dataset's type: large integers are no doubles */
    esdm_number max_value;
    double sum;             /**< of the valid values; meaningful when exact */
    uint64_t read_elements; /**< whose values had to be read */
} esdm_statistics;

/**
 * Statistics of the values in a box, mostly without reading any: each fragment has those of its
 * values. They are exact where the box takes whole fragments and no newer one hides a part of
 * these; elsewhere they are bounds. Fragments written by versions before have none.
 *
 * @param space selection without strides; NULL: all values. Where the values would go in memory
 * does not matter.
 * @param read whether values are read where the result would not be exact else.
 * Own writes count, committed or not. Threads: as esdm_read().
 * @return ESDM_ENOTSUP: the type is no number. ESDM_EINVAL: the selection has strides, or leaves
 * the dataset. Else as esdm_read().
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_dataset_statistics(esdm_dataset *dataset,
                                                             const esdm_dataspace *space, bool read,
                                                             esdm_statistics *ret_statistics,
                                                             esdm_error *err);

/** What esdm_reduce() makes of values. */
typedef enum esdm_reduction {
    ESDM_REDUCE_SUM = 1,
    ESDM_REDUCE_MEAN = 2,
    ESDM_REDUCE_MIN = 3,
    ESDM_REDUCE_MAX = 4,
    ESDM_REDUCE_COUNT = 5,   /**< of the valid values */
    ESDM_REDUCE_VARIANCE = 6 /**< mean squared difference to the mean: divided by the count */
} esdm_reduction;

/**
 * Reduces a box along some of its axes, as `timmean` or `zonmean` do: values are not weighted. What
 * is missing, and what is stored, is as in esdm_statistics; missing values are compared in the
 * dataset's type. Values are computed with as double, and read by all threads, some hundred KiB at
 * a time (what lies on servers 16 MiB), where the statistics of fragments do not suffice (a mean
 * over the grid for each time step mostly reads nothing).
 *
 * @param space selection without strides; NULL: all values.
 * @param over one for each axis: whether it is reduced.
 * @param ret_values one for each element along the axes that stay, in C order; NaN where no value
 * is valid (a count is 0).
 * @param ret_valid how many valid values each has; may be NULL.
 * Threads: as esdm_read(). @return as esdm_dataset_statistics(), and ESDM_EINVAL for an unknown
 * reduction.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_reduce(esdm_dataset *dataset, const esdm_dataspace *space,
                                                 const bool *over, esdm_reduction what,
                                                 double *ret_values, uint64_t *ret_valid,
                                                 esdm_error *err);

/**
 * Weighted sums or means of a box along some of its axes, as `fldmean` makes them with the areas of
 * cells. A missing value is left out with its weight. Values are read part by part, by all threads,
 * at most two parts of 1 MiB for each (eight of 16 MiB on servers) and a block or more; results are
 * the same however many threads there are.
 *
 * @param space selection without strides; NULL: all values.
 * @param over one for each axis: whether it is reduced.
 * @param what ESDM_REDUCE_SUM (of products of value and weight) or ESDM_REDUCE_MEAN.
 * @param weighted one for each axis: whether weights differ along it, be it reduced or not.
 * @param weights one for each element of the box along these axes, in C order, in any unit; finite,
 * not negative. Borrowed during the call.
 * @param ret_values one for each element along the axes that stay, in C order, of stored numbers as
 * in esdm_statistics, in the unit of these (a sum: times that of weights); NaN where no valid value
 * has a weight above 0. Not determined after a failure.
 * @param ret_weights the sum of the weights of the valid values of each; may be NULL.
 * Threads: as esdm_read(). @return as esdm_reduce(), and ESDM_EINVAL for another reduction, and for
 * a weight that is negative, infinite or NaN.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_reduce_weighted(esdm_dataset *dataset,
                                                          const esdm_dataspace *space,
                                                          const bool *over, esdm_reduction what,
                                                          const bool *weighted,
                                                          const double *weights, double *ret_values,
                                                          double *ret_weights, esdm_error *err);

/** Values that are in no interval of esdm_histogram(). */
typedef struct esdm_histogram_rest {
    uint64_t below;         /**< less than the first edge */
    uint64_t above;         /**< more than the last edge */
    uint64_t missing;       /**< as in esdm_statistics */
    uint64_t read_elements; /**< whose values had to be read */
} esdm_histogram_rest;

/**
 * Counts how many values of a box lie in each interval between two neighbouring edges, the lower
 * one included; the last interval includes its upper edge, too. Of a fragment that the box takes
 * whole, and whose values lie in one interval by its statistics, no value is read. The others are
 * read part by part, by all threads, about 1 MiB at a time (16 MiB on servers).
 *
 * @param space selection without strides; NULL: all values.
 * @param edges in the unit of the stored numbers, which are compared as double: each is more than
 * the one before. The first may be -INFINITY, the last INFINITY. Borrowed during the call.
 * @param nedges at least 2.
 * @param ret_counts nedges - 1; not set after a failure.
 * @param ret_rest all other values; may be NULL.
 * Threads: as esdm_read(). @return as esdm_dataset_statistics(), and ESDM_EINVAL for edges that do
 * not increase.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_histogram(esdm_dataset *dataset,
                                                    const esdm_dataspace *space,
                                                    const double *edges, size_t nedges,
                                                    uint64_t *ret_counts,
                                                    esdm_histogram_rest *ret_rest, esdm_error *err);

#ifdef __cplusplus
}
#endif

#endif
