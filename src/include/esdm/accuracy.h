/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_ACCURACY_H
#define ESDM_ACCURACY_H

/**
 * @file
 * What a scientist states about the accuracy of a dataset and the cost of storing it: quantities,
 * never the name of a codec. ESDM chooses codecs, and verifies every fragment that they change.
 *
 * A finite number x comes back as x' with |x' - x| <= e(x), where e(x) is the least of
 * - absolute_tolerance;
 * - relative_tolerance * |x|, or relative_finest where that is larger;
 * - 10^-significant_digits * |x|;
 * - 2^-significant_bits * |x|;
 * - gradient_tolerance / 2;
 * - vector_tolerance / sqrt(vector_components);
 * - range_tolerance * (largest - smallest number), std_tolerance * standard deviation, both of the
 *   numbers of the fragment that x is stored in, as far as they may be off;
 * - what `regions` state where x lies in one of them.
 * Beside these psnr bounds the mean of (x' - x)^2 of each block of a fragment by the range of the
 * fragment, and |x' - x| by less than 1.7 times the root of that mean.
 * mean_tolerance bounds the mean of (x' - x) of each block of a fragment.
 * Without a tolerance other than that nothing is lost. NaN (with its bits), infinities, the fill
 * value, the values of the attributes `_FillValue` and `missing_value`, `exact_values`, numbers <=
 * lossless_up_to and numbers >= lossless_from always come back bit for bit, and no other number
 * becomes one of the listed values.
 *
 * Tolerances are in the units of the dataset: where integers are packed (attribute `scale_factor`)
 * an absolute one is of the unpacked numbers, and relative ones are refused.
 */

#include "esdm/container.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Which quantities are stated. */
enum {
    ESDM_ACCURACY_ABSOLUTE_TOLERANCE = 1 << 0,
    ESDM_ACCURACY_RELATIVE_TOLERANCE = 1 << 1,
    ESDM_ACCURACY_RELATIVE_FINEST = 1 << 2,
    ESDM_ACCURACY_SIGNIFICANT_DIGITS = 1 << 3,
    ESDM_ACCURACY_SIGNIFICANT_BITS = 1 << 4,
    ESDM_ACCURACY_CONSERVE = 1 << 5,
    ESDM_ACCURACY_LOSSLESS_UP_TO = 1 << 6,
    ESDM_ACCURACY_LOSSLESS_FROM = 1 << 7,
    ESDM_ACCURACY_EXACT_VALUES = 1 << 8,
    ESDM_ACCURACY_COMPRESSION_SPEED = 1 << 9,
    ESDM_ACCURACY_DECOMPRESSION_SPEED = 1 << 10,
    ESDM_ACCURACY_MODE = 1 << 11,
    ESDM_ACCURACY_RANGE_TOLERANCE = 1 << 12,
    ESDM_ACCURACY_STD_TOLERANCE = 1 << 13,
    ESDM_ACCURACY_REGIONS = 1 << 14,
    ESDM_ACCURACY_PSNR = 1 << 15,
    ESDM_ACCURACY_GRADIENT_TOLERANCE = 1 << 16,
    ESDM_ACCURACY_VECTOR_TOLERANCE = 1 << 17,
    ESDM_ACCURACY_VECTOR_COMPONENTS = 1 << 18,
    ESDM_ACCURACY_MEAN_TOLERANCE = 1 << 19
};

/** What compression is for. */
typedef enum esdm_accuracy_mode {
    ESDM_MODE_SPEED = 1,    /**< the program shall wait as little as possible */
    ESDM_MODE_BALANCED = 2, /**< the least time for writing and one reading; the default */
    ESDM_MODE_ARCHIVE = 3,  /**< the fewest bytes; what is read together is stored in blocks of up
                                 to 16 MiB, in parts of 1 MiB that are decoded alone */
    ESDM_MODE_ENERGY = 4,   /**< the least work of CPU and storage together */
    ESDM_MODE_PROGRESSIVE = 5, /**< as balanced, in layers: who opens `NAME?accuracy=1%` reads only
                                   the bytes of which numbers become so accurate */
    ESDM_MODE_FAST = 6 /**< fewer bytes, by codecs that take little of the program's time: what a
                            program means that asks netCDF-4 for deflate of level 1 */
} esdm_accuracy_mode;

/** Speeds in bytes per second, or as multiples of what the site's model knows. */
typedef enum esdm_speed_unit {
    ESDM_SPEED_BYTES = 1,
    ESDM_SPEED_NETWORK = 2,
    ESDM_SPEED_NODE_LOCAL = 3, /**< of the storage of a node */
    ESDM_SPEED_SHARED = 4      /**< of the storage that nodes share */
} esdm_speed_unit;

typedef struct esdm_speed {
    double value;
    esdm_speed_unit unit;
} esdm_speed;

#define ESDM_ACCURACY_EXACT_MAX 16

/** By what a region is bounded. */
enum {
    ESDM_REGION_BOX = 1 << 0,    /**< latitudes and longitudes */
    ESDM_REGION_LEVELS = 1 << 1, /**< levels */
    ESDM_REGION_MASK = 1 << 2    /**< values of another variable */
};

#define ESDM_ACCURACY_REGIONS_MAX 8
/** Of the units of levels, with the NUL. */
#define ESDM_REGION_UNIT_BYTES 32
/** Of the name of a mask, with the NUL. */
#define ESDM_REGION_NAME_BYTES 64

/**
 * A part of a dataset that is to be more accurate than the rest: all points that lie in the box and
 * between the levels, and where the mask has values of its range, bounds included, by the
 * coordinates (CF conventions) and masks that the container has when numbers are stored. Where a
 * mask has no value the point is inside. A fragment that touches it keeps the stricter tolerances
 * as a whole. As long as coordinates are not there, or do not tell, they hold everywhere:
 * esdm_dataset_region_doubt(). Without padding; what `within` does not name is zero.
 */
typedef struct esdm_accuracy_region {
    uint32_t within;           /**< ESDM_REGION_* */
    uint32_t stated;           /**< ESDM_ACCURACY_*, tolerances alone: */
    double absolute_tolerance; /**< as in esdm_accuracy, and so are the others */
    double relative_tolerance;
    double relative_finest;
    double range_tolerance;
    double std_tolerance;
    double psnr;
    uint32_t significant_digits;
    uint32_t significant_bits;
    double west, south, east, north; /**< degrees; from west eastwards to east, east > west */
    double level_low, level_high;
    char level_units[ESDM_REGION_UNIT_BYTES]; /**< "": those of the levels */
    double mask_low, mask_high;               /**< one of them may be infinite */
    char mask[ESDM_REGION_NAME_BYTES];        /**< a variable of the group, or of one above it, with
                                                   one or two of the dimensions of the dataset */
    double gradient_tolerance;
    double vector_tolerance;
    double mean_tolerance; /**< of the mean over the points of the region: fragments that lie in it
                                in part keep it at each number */
    uint32_t vector_components;
    uint32_t reserved; /**< 0 */
} esdm_accuracy_region;

/** Fill it with esdm_accuracy_init() and the members that `stated` names, or from texts. */
typedef struct esdm_accuracy {
    uint32_t stated;             /**< ESDM_ACCURACY_* */
    double absolute_tolerance;   /**< >= 0, in the units of the dataset; 0: lossless */
    double relative_tolerance;   /**< 0 <= r < 1; 0.01 is one per cent */
    double relative_finest;      /**< >= 0: the relative tolerance need not be finer than this
                                      absolute one (around zero) */
    uint32_t significant_digits; /**< 1 ... 17, decimal: a share of |x|, no place */
    uint32_t significant_bits;   /**< 1 ... 53: a share of |x|; n + 2 are CF's NSB of n */
    double conserve;       /**< 0 <= c < 1: largest change of the sum of a fragment, hence of the
                                sum and the mean of the dataset, as a share of sum(|x|) */
    double lossless_up_to; /**< numbers <= this are exact */
    double lossless_from;  /**< numbers >= this are exact */
    double exact_values[ESDM_ACCURACY_EXACT_MAX];
    uint32_t exact_count;
    esdm_speed compression_speed;   /**< at least, for each thread */
    esdm_speed decompression_speed; /**< at least, for each thread */
    esdm_accuracy_mode mode;
    double range_tolerance; /**< 0 <= r < 1: an absolute tolerance, as a share of the range of the
                                 numbers. Each fragment goes by its own, which is at most that of
                                 the dataset; the share is of stored fragments, so it can be
                                 stricter, and is up to 9 % (one eighth of an octave): so that
                                 numbers that are read and written again keep their bound */
    double std_tolerance;   /**< 0 <= s < 1: the same of the standard deviation of a fragment */
    double psnr;            /**< 0 < p <= 300, dB: 20 log10(range) - 10 log10(mean of (x' - x)^2) is
                                 at least this, of the numbers of a fragment that may be off: with
                                 their range, as in range_tolerance */
    esdm_accuracy_region regions[ESDM_ACCURACY_REGIONS_MAX]; /**< stricter than what is stated for
                                                                  all */
    uint32_t region_count;
    uint32_t vector_components; /**< 2 or 3: of the vector; 2 where it is not stated */
    double gradient_tolerance; /**< >= 0, in the units of the dataset: largest error of a difference
                                    x[i] - x[j] of two numbers, neighbours as well as any others.
                                    What is computed from such differences is off by at most as
                                    many times this: the slope (x[i+1] - x[i]) / d by this by d */
    double vector_tolerance;   /**< >= 0, in the units of the dataset: largest error of the length
                                    sqrt(x1^2 + x2^2 [+ x3^2]) of vectors, and of the vector that is
                                    the difference, when all components state it */
    double mean_tolerance;     /**< >= 0, in the units of the dataset: largest change of the mean of
                                    each block of a fragment, hence of each fragment and of the
                                    dataset, over the numbers that may be off, as long as no part of
                                    a fragment is written again */
} esdm_accuracy;

/** Nothing stated. */
ESDM_API void esdm_accuracy_init(esdm_accuracy *accuracy);

/**
 * States one quantity, instead of what was stated of it before, by its name and a text:
 * `absolute_tolerance`, `relative_tolerance`, `relative_finest`, `significant_digits`,
 * `significant_bits`, `conserve`, `lossless_up_to`, `lossless_from`, `exact_values`,
 * `compression_speed`, `decompression_speed`, `mode`, `range_tolerance`, `std_tolerance`,
 * `psnr`, `regions`, `gradient_tolerance`, `vector_tolerance`, `vector_components`,
 * `mean_tolerance`; short names are `abs`, `rel`, `finest`, `digits`, `bits`, `exact`, `range`,
 * `std`, `gradient`, `vector`, `components`, `mean`. `nsb` and `nsd` state significant_bits, by the
 * numbers of explicit bits (1 ... 51) and decimal digits (1 ... 15) that CF and netCDF mean by
 * quantization_nsb and quantization_nsd: at every number at most half a unit of the last place.
 *
 * Values: numbers; of `psnr` also `60 dB`; of relative quantities also `1 %`; of `conserve` also
 * `sum` and `mean` (1e-6); of `exact_values` numbers separated by blanks; of speeds `200 MiB/s`,
 * `1.5 GiB/s`, `0.5 network`, `2 node-local`, `1 shared`; of `mode` `speed`, `balanced`, `archive`,
 * `energy`, `progressive`, `fast`. What has the units of the dataset may name them: `0.01 K`. The
 * dataset's own units are understood, and those that differ from it by a prefix (`10 mK`, `1 hPa`
 * for `Pa`). Of `regions` several, separated by ';': `WHERE: TOLERANCES`, with tolerances separated
 * by ','. WHERE is `box=WEST,SOUTH,EAST,NORTH` in degrees (WEST > EAST goes around), or
 * `level=1000..500 hPa`, or `mask=sftlf>=50` (>, <, <=, = as well; > is >=), or several of them
 * with '&' between: `box=-10,35,30,60 & level=850 hPa: abs=0.01 K`.
 *
 * @param units of the dataset; NULL: none are known, and none may be named.
 * @return ESDM_EINVAL naming the quantity and what is wrong; the accuracy is then as before.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_accuracy_set(esdm_accuracy *accuracy, const char *name,
                                                       const char *value, const char *units,
                                                       esdm_error *err);

/** States several: `abs=0.01 K; mode=archive`, separated by ';' or ','; regions, which follow,
 *  by ';': `abs=0.5 K; box=-10,35,30,60: abs=0.01 K`. Those that were stated
 *  before stay; of a quantity that is stated more than once the strictest counts (of speeds and
 *  modes the last), and `relative_finest` loosens only relative tolerances of the texts that have
 *  it. Ends with esdm_accuracy_check(). */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_accuracy_parse(esdm_accuracy *accuracy, const char *text,
                                                         const char *units, esdm_error *err);

/** Whether esdm_accuracy_parse() takes the text for some dataset, with whatever units, beside what
 *  is stated of it otherwise: for texts that are read before datasets are known. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_accuracy_check_text(const char *text, esdm_error *err);

/** Prints what is stated so that esdm_accuracy_parse() reads it back to the same numbers.
 *  @param ret_text owned, free(). */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_accuracy_print(const esdm_accuracy *accuracy,
                                                         char **ret_text, esdm_error *err);

/** Whether what is stated makes sense together: ESDM_EINVAL naming what does not. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_accuracy_check(const esdm_accuracy *accuracy,
                                                         esdm_error *err);

/** Whether it lets numbers be off. */
ESDM_API bool esdm_accuracy_is_lossy(const esdm_accuracy *accuracy);

/**
 * States the accuracy of a dataset, for what is written from now on; it is published with the next
 * commit. NULL, or nothing stated, takes it back. With it ESDM chooses the codecs, unless
 * esdm_dataset_set_codec() named them.
 * @return ESDM_EINVAL for texts and user-defined types, for what makes no sense together, and for
 * exact values that the type does not have.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_dataset_set_accuracy(esdm_dataset *dataset,
                                                               const esdm_accuracy *accuracy,
                                                               esdm_error *err);
/**
 * The units in which the accuracy was stated, when the attribute `units` has become another one
 * since: absolute tolerances, and all that is stated with them, do not hold any more, nothing is
 * lost of what is written, and the next commit drops the statement. Units that are written
 * otherwise (K, kelvin) or differ by an offset alone (K, degC) are the same. NULL: it holds. What
 * was rounded in other units and is not committed makes the commit fail with ESDM_EINVAL, unless
 * what is stated anew allows numbers to lose the same.
 * Borrowed, until accuracy or units are set again; one thread at a time, as attributes.
 */
ESDM_API const char *esdm_dataset_accuracy_units(const esdm_dataset *dataset);
/** What is stated; false, and *ret_accuracy untouched, when nothing is. */
ESDM_API bool esdm_dataset_accuracy(const esdm_dataset *dataset, esdm_accuracy *ret_accuracy);

/** What holds for what is written now: what is stated, else a rule of the site's configuration
 *  ("accuracy"), which also joins a mode that stands alone. false: nothing. */
ESDM_API bool esdm_dataset_accuracy_in_force(const esdm_dataset *dataset,
                                             esdm_accuracy *ret_accuracy);

/**
 * Whether the dataset describes others: coordinates and their bounds, times, grid mappings, cell
 * measures, flags, scalars, as CF tells them, coefficients of hybrid levels and weights of Gaussian
 * latitudes by the names that models give them (`hyam`, `gw`), and integers that are not packed
 * (`scale_factor`), which are dates, counts or numbers of something. What is stated of datasets by
 * a pattern that has wildcards, or by units or standard names alone, never rounds them: only who
 * names one literally wants that. Thread rule: as for reading structure.
 * @param ret_kind static text, such as "a coordinate"; may be NULL.
 */
ESDM_API bool esdm_dataset_is_auxiliary(const esdm_dataset *dataset, const char **ret_kind);
/** Whether the first rule of the site that is of the dataset does not round it, as it is auxiliary.
 *  @param ret_rule its number. @param ret_kind as above. */
ESDM_API bool esdm_dataset_accuracy_spared(const esdm_dataset *dataset, size_t *ret_rule,
                                           const char **ret_kind);
/** Whether a pattern of names has no wildcards. NULL, which stands for all, is none. */
ESDM_API bool esdm_accuracy_pattern_is_literal(const char *pattern);

/**
 * Whether numbers that were read keep the accuracy that is in force, compared with those
 * that were written: `count` elements of its type each, aligned. Conservation of sums is not looked
 * at.
 * @param ret_index of the first that does not; may be NULL.
 */
ESDM_API bool esdm_dataset_accuracy_holds(const esdm_dataset *dataset, const void *before,
                                          const void *after, uint64_t count, uint64_t *ret_index);

/**
 * Why fragments that this handle has stored so far keep the strictest tolerances of all regions: it
 * was not known which of them they touch, as coordinates were written later, say, or have other
 * units. Static text that follows "as "; NULL: there are no such fragments. Thread-safe.
 */
ESDM_API const char *esdm_dataset_region_doubt(const esdm_dataset *dataset);

/** What became of the numbers of committed fragments. */
typedef struct esdm_accuracy_report {
    uint64_t fragments;       /**< committed ones, and of those: */
    uint64_t lossy_fragments; /**< with numbers that may be off */
    uint64_t points;          /**< numbers that may be off */
    uint64_t exact_points;    /**< in those fragments, numbers that were to be kept */
    double absolute;          /**< loosest bounds asked of a fragment, in units of the stored */
    double relative;          /**< numbers; INFINITY: not asked for */
    double finest;
    double largest_error;       /**< |x' - x|, of the stored numbers */
    double largest_share;       /**< of its bound; at most 1 */
    double sum_change;          /**< sum(x') - sum(x) */
    double mean_change;         /**< of all points that may be off */
    uint64_t blocks_again;      /**< that were encoded again, because a codec missed its bound */
    uint64_t blocks_lossless;   /**< of those, kept without loss */
    uint64_t changed_fragments; /**< lossy ones in which some number is off */
} esdm_accuracy_report;

/** Adds up what the committed fragments tell, reading the head of each lossy one. Of a container
 *  that was opened as `NAME?accuracy=1%` what holds for numbers as they are read: of fragments that
 *  are read less accurately bounds and largest errors alone, no points and sums. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_dataset_accuracy_report(esdm_dataset *dataset,
                                                                  esdm_accuracy_report *ret_report,
                                                                  esdm_error *err);
/**
 * The same of those fragments that touch a region of the accuracy in force, as the coordinates lie
 * now: whether `absolute` and `relative` are what it states.
 * @param region  its number, from 0. @return ESDM_EINVAL: there is none; ESDM_ENOTSUP: it is not
 * known where it lies, and why.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_dataset_region_report(esdm_dataset *dataset,
                                                                uint32_t region,
                                                                esdm_accuracy_report *ret_report,
                                                                esdm_error *err);

#ifdef __cplusplus
}
#endif
#endif
