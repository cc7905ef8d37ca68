/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MODEL_ACCURACY_KEPT_H
#define ESDM_MODEL_ACCURACY_KEPT_H

/** @file What a dataset states of its accuracy, without what it does not state: an esdm_accuracy
 * has room for many regions, and containers have many datasets. */

#include "esdm/accuracy.h"

typedef struct esdm__kept_accuracy {
    uint32_t stated; /* ESDM_ACCURACY_* */
    unsigned char members[];
} esdm__kept_accuracy;

/** @return owned: free(). NULL: out of memory. */
esdm__kept_accuracy *esdm__accuracy_keep(const esdm_accuracy *accuracy);
/** @param kept NULL: nothing is stated. */
void esdm__accuracy_of_kept(const esdm__kept_accuracy *kept, esdm_accuracy *ret);

#endif
