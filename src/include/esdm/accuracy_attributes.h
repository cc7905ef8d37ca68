/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_ACCURACY_ATTRIBUTES_H
#define ESDM_ACCURACY_ATTRIBUTES_H

/**
 * @file
 * Attributes with which programs state the accuracy of a dataset, and those that tell its readers.
 *
 * A statement belongs to the numbers for which it was made, but programs copy attributes to results
 * that have other magnitudes. So an attribute `esdm_NAME` is taken once, when definitions end, and
 * does not stay: what readers see, and copy, is documentation that states nothing.
 */

#include "esdm/accuracy.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The attribute that tells readers what is stated of a dataset, as esdm_accuracy_print() does. It
 *  states nothing, whoever writes it. */
#define ESDM_ACCURACY_STORED_ATTRIBUTE "esdm_stored_accuracy"

/** Whether an attribute of that name, `esdm_NAME`, states a quantity NAME. */
ESDM_API bool esdm_accuracy_is_attribute(const char *name);
/** The quantity that it states, ESDM_ACCURACY_*; 0: there is none of that name. */
ESDM_API uint32_t esdm_accuracy_attribute_quantity(const char *name);
/** States in *accuracy what the attributes `esdm_NAME` of the dataset say.
 *  @param ret_last name of the last that was looked at, which an error is about; NULL: there are
 *  none. Borrowed. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_dataset_accuracy_attributes(esdm_dataset *dataset,
                                                                      esdm_accuracy *accuracy,
                                                                      const char **ret_last,
                                                                      esdm_error *err);
/** Tells readers of the accuracy in force with attributes in the manner of CF's quantization and,
 *  unless the site wants none (esdm_session_keeps_accuracy()), with `esdm_stored_accuracy`. What is
 *  stored already counts, too: where an earlier statement was looser, or `scale_factor` another
 * one, the attributes tell what holds for all numbers, or are removed. Does nothing where nothing
 * may be lost. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_dataset_tell_accuracy(esdm_dataset *dataset,
                                                                esdm_error *err);
/** Removes the attributes `esdm_NAME` that state something, once they are taken. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_dataset_remove_accuracy_attributes(esdm_dataset *dataset,
                                                                             esdm_error *err);

/**
 * What numbers must span so that an absolute tolerance can have been meant for them, in the same
 * units; with less it was stated of another variable and copied to this one, of which it would
 * leave next to nothing. 0: nothing that tells (relative bounds fit every magnitude).
 */
ESDM_API double esdm_accuracy_least_span(const esdm_accuracy *accuracy);
/**
 * Adds `count` numbers to what a dataset's span; fill values, missing values and what is not finite
 * do not count. Pure but for the dataset's attributes.
 * @param type of the values in memory. @param low, high  INFINITY and -INFINITY at first.
 * @return the span of all numbers so far, unpacked (`scale_factor`); 0: none, or equal ones.
 */
ESDM_API double esdm_dataset_span(const esdm_dataset *dataset, esdm_type type, const void *values,
                                  uint64_t count, double *low, double *high);

#ifdef __cplusplus
}
#endif
#endif
