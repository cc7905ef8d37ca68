/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDMNC_QUANTIZE_H
#define ESDMNC_QUANTIZE_H

/**
 * @file
 * netCDF's quantisation: rounding of floats that makes them compress better.
 *
 * It lives here and not in libesdm because it must give netCDF-C's bits, down to what netCDF-C
 * does with NaN and to the position of a value in the call that writes it; nobody else would want
 * that. Pure functions, any thread.
 */

#include <netcdf.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct esdmnc_quantizer {
    nc_type type;        /**< NC_FLOAT or NC_DOUBLE */
    int mode;            /**< NC_QUANTIZE_… */
    int digits;          /**< significant decimal digits; bits for NC_QUANTIZE_BITROUND */
    bool keeps_nan;      /**< netCDF-C ≥ 4.10.1: NaN and zeros of either sign stay as they are */
    const void *missing; /**< one value of `type` that stays as it is */
} esdmnc_quantizer;

/** How BitGroom, which alternates between rounding down and up, begins. */
typedef enum esdmnc_groom {
    ESDMNC_GROOM_EVEN, /**< the first value goes down */
    ESDMNC_GROOM_ODD,  /**< the first value goes up */
    ESDMNC_GROOM_DOWN  /**< all go down */
} esdmnc_groom;

/** Rounds `count` values in place. */
void esdmnc_quantize(const esdmnc_quantizer *quantizer, esdmnc_groom groom, void *values,
                     size_t count);

#endif
