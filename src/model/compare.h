/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MODEL_COMPARE_H
#define ESDM_MODEL_COMPARE_H

/** @file What differs between two structures. */

#include "model/container.h"

/**
 * Describes the first difference between two containers: "dimension '/lat' has length 10 on rank 0
 * and 12 on rank 3". Data and the lengths of unlimited dimensions are not looked at.
 *
 * @param one,other what to call the two ("rank 0").
 * @return false, and `text` untouched, when they have the same structure.
 */
bool esdm__structure_differs(const esdm_container *a, const char *one, const esdm_container *b,
                             const char *other, char *text, size_t bytes);

/**
 * Gives attributes the values that they have in another container, where name, place and type are
 * the same: what ranks state differently in passing (times, hosts). Not those that decide what is
 * stored: `_FillValue` and `esdm_…`. Accuracies that are the same in other numbers become those of
 * the other container.
 *
 * @param text describes the first one that had another value; untouched when there was none.
 */
esdm_status esdm__attributes_follow(esdm_container *container, const esdm_container *first,
                                    char *text, size_t bytes, esdm_error *err);

#endif
