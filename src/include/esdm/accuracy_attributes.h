/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_ACCURACY_ATTRIBUTES_H
#define ESDM_ACCURACY_ATTRIBUTES_H

/** @file Attributes with which programs state the accuracy of a dataset, and those that tell its
 *  readers. */

#include "esdm/accuracy.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Whether an attribute of that name, `esdm_NAME`, states a quantity NAME. */
ESDM_API bool esdm_accuracy_is_attribute(const char *name);
/** States in *accuracy what the attributes `esdm_NAME` of the dataset say.
 *  @param ret_last name of the last that was looked at, which an error is about; NULL: there are
 *  none. Borrowed. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_dataset_accuracy_attributes(esdm_dataset *dataset,
                                                                      esdm_accuracy *accuracy,
                                                                      const char **ret_last,
                                                                      esdm_error *err);
/** Tells readers of the accuracy in force with attributes in the manner of CF's quantization. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_dataset_tell_accuracy(esdm_dataset *dataset,
                                                                esdm_error *err);
/** Removes the attributes `esdm_NAME`, as sites may want it (esdm_session_keeps_accuracy()). */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_dataset_remove_accuracy_attributes(esdm_dataset *dataset,
                                                                             esdm_error *err);

#ifdef __cplusplus
}
#endif
#endif
