/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_WRITE_ACCURACY_H
#define ESDM_IO_WRITE_ACCURACY_H

/**
 * @file
 * What a dataset's accuracy means for the numbers that are stored: several quantities become one
 * bound for each point, and names of attributes become bits that are kept.
 */

#include "esdm/accuracy.h"
#include "esdm/sys/codec.h"
#include "io/container/dataset_io.h"

/** Exact values of one dataset, at most. */
#define ESDM__EXACT_MAX 64u

typedef struct esdm__accuracy {
    bool stated; /* something is: the engine chooses codecs */
    bool lossy;  /* `codec` holds; else nothing may be lost */
    esdm_codec_accuracy codec;
    double conserved; /* see codec/blob.h */
    esdm_accuracy_mode mode;
    double compression_speed; /* bytes per second at least; 0: not asked for */
    double decompression_speed;
    uint64_t exact[ESDM__EXACT_MAX]; /* what codec.exact_values points at */
} esdm__accuracy;

/** esdm_dataset_accuracy_spared() */
bool esdm__accuracy_spared(const esdm_dataset *dataset, size_t *ret_rule, const char **ret_kind);
/** What the dataset states, or the site of it; false: nothing. */
bool esdm__accuracy_in_force(const esdm_dataset *dataset, esdm_accuracy *ret_accuracy);
/** The same, as it is now. ESDM_EINVAL naming attribute or quantity when it makes no
 *  sense with the dataset. @param ret not to be copied: it points into itself. */
esdm_status esdm__accuracy_compile(const esdm_dataset *dataset, esdm__accuracy *ret,
                                   esdm_error *err);
/** Whether the dataset can have that accuracy: ESDM_EINVAL, or ESDM_ENOTSUP for speeds of a site
 *  that are not known. */
esdm_status esdm__accuracy_accept(const esdm_dataset *dataset, const esdm_accuracy *accuracy,
                                  esdm_error *err);
/** Makes it the dataset's, also while others write. */
esdm_status esdm__io_set_accuracy(esdm_dataset *dataset, const esdm_accuracy *accuracy,
                                  bool *ret_changed, esdm_error *err);
/** Whether `after` keeps what the dataset states of `before`, but for sums. *ret_index: the first
 *  number that does not. */
bool esdm__accuracy_holds(const esdm_dataset *dataset, const void *before, const void *after,
                          uint64_t count, uint64_t *ret_index);

#endif
