/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MODEL_ACCURACY_UNITS_H
#define ESDM_MODEL_ACCURACY_UNITS_H

/** @file Units of tolerances: those of the dataset, and what is a multiple of them. The usual ones
 *  are known here, all others to UDUNITS-2 (cf/units.h). */

#include <stdbool.h>
#include <stddef.h>

/**
 * What a number in `unit` is multiplied with to be in `units`.
 * @param unit "" for none, which are those of the dataset. @param units NULL: not known.
 * @param difference  of two values: kelvin and degrees Celsius are then the same.
 * @return false when they do not convert; `why` then says so, in `bytes`.
 */
bool esdm__units_factor(const char *unit, const char *units, bool difference, double *ret_factor,
                        char *why, size_t bytes);

/** In place of a dataset's units, by address: every unit is taken as it is. For texts that are read
 *  before the dataset is known. */
extern const char esdm__units_any[];

#endif
