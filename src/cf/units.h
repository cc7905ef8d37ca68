/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_CF_UNITS_H
#define ESDM_CF_UNITS_H

/** @file Units as UDUNITS-2 understands them. Any thread. */

#include <stdbool.h>

#include "esdm/status.h"

/** How numbers of one unit become those of another (UDUNITS-2): number * slope + offset.
 *  @return ESDM_EINVAL: they do not fit, or not by such a rule (decibels), or `from` is none
 *  (*ret_known); ESDM_ENOTSUP: the library is not there. */
esdm_status esdm__units_convert(const char *from, const char *to, bool *ret_known,
                                double *ret_slope, double *ret_offset, esdm_error *err);

#endif
