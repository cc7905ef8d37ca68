/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_DIVISOR_H
#define ESDM_BASE_DIVISOR_H

/** @file The greatest common divisor, by Euclid's algorithm. */

#include <stdint.h>

/** Of 0 and a number it is the number. */
static inline uint64_t
esdm__common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

#endif
