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

#endif
