/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MODEL_CONVERT_H
#define ESDM_MODEL_CONVERT_H

/** @file Conversion of dense runs of numbers. Pure functions. */

#include "esdm/container.h"

/**
 * Converts `count` dense elements; neither side needs alignment, the sides must not overlap.
 * @return number of values that the target type cannot hold.
 */
typedef uint64_t (*esdm__converter)(const void *source, void *target, size_t count);

/** The converter of two different numeric types, else NULL. @param storing from memory to the type
 *  of a dataset or an attribute, else from there to memory. */
esdm__converter esdm__converter_find(esdm_conversion rules, bool storing, esdm_type from,
                                     esdm_type to);
/** The same where the rules of netCDF-3 differ; else NULL. */
esdm__converter esdm__converter_find_netcdf3(bool storing, esdm_type from, esdm_type to);

/** Whether values that do not fit leave the target as it was when they are read. Both types are
 *  atomic. */
bool esdm__conversion_keeps(esdm_conversion rules, esdm_type from, esdm_type to);

#endif
