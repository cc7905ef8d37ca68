/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_CODEC_DOUBLES_H
#define ESDM_CODEC_DOUBLES_H

/** @file Numbers as double, with NaN in place of those that are missing. Pure functions. */

#include <stddef.h>
#include <stdint.h>

#include "base/statistics.h"

/** Converts `n` numbers. What is missing is told in the type of the numbers, so that large integers
 *  are compared as they are.
 *  @param type esdm_type of numbers. @param missing of that type. */
void esdm__doubles(int32_t type, const esdm__missing *missing, const void *numbers, size_t n,
                   double *ret);

#endif
