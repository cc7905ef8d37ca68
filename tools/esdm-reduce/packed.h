/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_REDUCE_PACKED_H
#define ESDM_REDUCE_PACKED_H

/** @file Numbers that attributes of a variable state. */

#include "esdm/esdm.h"

/** A number that an attribute states; `none` where it states none. */
double stated_number(const esdm_dataset *dataset, const char *name, double none);

#endif
