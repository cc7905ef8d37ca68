/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_REDUCE_VARIABLE_H
#define ESDM_REDUCE_VARIABLE_H

/** @file What a variable states, and which others belong to it. */

#include "esdm/esdm.h"

/** A number that an attribute states; `none` where it states none. */
double stated_number(const esdm_dataset *dataset, const char *name, double none);

/** A variable that the group of a dataset sees: in itself, or in one above. NULL: there is none. */
esdm_dataset *seen_from(const esdm_dataset *dataset, const char *name);

#endif
