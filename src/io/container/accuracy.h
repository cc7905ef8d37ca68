/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_WRITE_ACCURACY_H
#define ESDM_IO_WRITE_ACCURACY_H

/**
 * @file
 * What a dataset's accuracy means for the numbers that are stored: several quantities become one
 * bound for each point, and names of attributes become bits that are kept.
 */

#include "codec/limits.h"
#include "esdm/accuracy.h"
#include "esdm/sys/codec.h"
#include "io/container/dataset_io.h"

/** Exact values of one dataset, at most. */
#define ESDM__EXACT_MAX 64u

typedef struct esdm__accuracy {
    bool stated;  /* something is: the engine chooses codecs */
    bool lossy;   /* `codec` holds; else nothing may be lost */
    bool by_rule; /* the site states it: of numbers that it has not seen */
    esdm_codec_accuracy codec;
    double conserved; /* see codec/blob.h */
    double range;     /* share of the range of a fragment; INFINITY: not asked */
    double deviation; /* share of the standard deviation of a fragment; likewise */
    double noise;     /* share of the range that the root of the mean square of errors may be */
    double mean;      /* of stored numbers: what the mean may change by; INFINITY: not asked */
    esdm_accuracy_mode mode;
    double compression_speed; /* bytes per second at least; 0: not asked for */
    double decompression_speed;
    uint64_t exact[ESDM__EXACT_MAX]; /* what codec.exact_values points at */
    esdm__limits limits;             /* valid_range, or valid_min and valid_max */
    const esdm_dataset *dataset;     /* borrowed; what is stated of it, as long as there are regions
                                        in it: */
    esdm_accuracy in_force;
} esdm__accuracy;

/** Where a fragment lies, a bit for each region. */
typedef struct esdm__whereabouts {
    uint32_t touched; /* that it has points of, perhaps */
    uint32_t inside;  /* of those, that all of its points are in for sure */
} esdm__whereabouts;

/** What holds for the numbers of one fragment beside the bound of each, as in codec/blob.h. */
typedef struct esdm__block_bounds {
    double noise;
    double mean;
} esdm__block_bounds;

/** esdm_dataset_accuracy_spared() */
bool esdm__accuracy_spared(const esdm_dataset *dataset, size_t *ret_rule, const char **ret_kind);
/** What the dataset states, or the site of it; false: nothing. */
bool esdm__accuracy_in_force(const esdm_dataset *dataset, esdm_accuracy *ret_accuracy);
/** The same. @param ret_stated something is. @param ret_by_rule of the site. ESDM_EINVAL: a rule's
 * units do not fit the dataset's. */
esdm_status esdm__accuracy_find(const esdm_dataset *dataset, esdm_accuracy *ret_accuracy,
                                bool *ret_stated, bool *ret_by_rule, esdm_error *err);
/** The attribute "units", cut to the buffer; NULL: it has none. */
const char *esdm__accuracy_units(const esdm_dataset *dataset, char *buffer, size_t bytes);
/** The same, as it is now. ESDM_EINVAL naming attribute or quantity when it makes no
 *  sense with the dataset. @param ret not to be copied: it points into itself. */
esdm_status esdm__accuracy_compile(const esdm_dataset *dataset, esdm__accuracy *ret,
                                   esdm_error *err);
/** Collects the limits that no number may leave: a->limits. */
void esdm__limits_of(const esdm_dataset *dataset, esdm__limits *limits);
/** Collects the values that keep their bits: a->exact. ESDM_EINVAL naming the attribute, or the
 * quantity. */
esdm_status esdm__accuracy_collect_exact(const esdm_dataset *dataset, const esdm_accuracy *stated,
                                         esdm__accuracy *a, esdm_error *err);
/**
 * What holds for the numbers of one fragment.
 * @param where  it lies.
 * @param values dense, `count` of that type, by which shares of their range become a bound.
 * @param ret points at the exact values of `accuracy`.
 * @return whether numbers may be off; else nothing is touched.
 */
bool esdm__accuracy_of_values(const esdm__accuracy *accuracy, const esdm__whereabouts *where,
                              esdm_type type, const void *values, uint64_t count,
                              esdm_codec_accuracy *ret, esdm__block_bounds *ret_blocks);
/** Where the regions that are stated lie, under write_lock; notes why that is not known. @return
 *  NULL: there are none, or nobody knows. */
const esdm__region_map *esdm__accuracy_map(const esdm__accuracy *accuracy, esdm__dataset_io *io);
/** The regions that the box touches, and lies in: all of them, and none, where the map is NULL. */
esdm__whereabouts esdm__accuracy_where(const esdm__accuracy *accuracy, const esdm__region_map *map,
                                       const esdm__box *box);
/** The one number of an attribute; `otherwise` when there is none. */
double esdm__accuracy_number(const esdm_dataset *dataset, const char *name, double otherwise);
/** By what numbers of the dataset are multiples of stored ones: |scale_factor| of packed ones,
 * else 1. */
double esdm__accuracy_scale(const esdm_dataset *dataset);
/** An absolute tolerance as a text, with or without units: *ret_stated states it, in the dataset's
 *  units; *ret_stored is it in those of the stored numbers. ESDM_EINVAL: what is wrong with it. */
esdm_status esdm__accuracy_tolerance(const esdm_dataset *dataset, const char *text,
                                     esdm_accuracy *ret_stated, double *ret_stored,
                                     esdm_error *err);
/** Whether the dataset can have that accuracy: ESDM_EINVAL, or ESDM_ENOTSUP for speeds of a site
 *  that are not known. */
esdm_status esdm__accuracy_accept(const esdm_dataset *dataset, const esdm_accuracy *accuracy,
                                  esdm_error *err);
/** Makes it the dataset's, also while others write. */
esdm_status esdm__io_set_accuracy(esdm_dataset *dataset, const esdm_accuracy *accuracy,
                                  bool *ret_changed, esdm_error *err);

#endif
