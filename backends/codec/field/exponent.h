/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef FIELD_EXPONENT_H
#define FIELD_EXPONENT_H

/**
 * @file
 * 2^x and log2(x) that give the same bits on every machine: additions and multiplications of
 * doubles in a fixed order, no library function. Relative errors below 1e-11; they need be no
 * smaller, the encoder checks what comes out.
 */

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline double
field__exp2(double x)
{
    x = x > 1023 ? 1023 : x > -1022 ? x : -1022;
    double whole = floor(x + 0.5);
    double y = (x - whole) * 0.69314718055994530942; /* |y| ≤ 0.35: Taylor series to y^10 */
    double sum = 1.0 / 3628800;
    sum = sum * y + 1.0 / 362880;
    sum = sum * y + 1.0 / 40320;
    sum = sum * y + 1.0 / 5040;
    sum = sum * y + 1.0 / 720;
    sum = sum * y + 1.0 / 120;
    sum = sum * y + 1.0 / 24;
    sum = sum * y + 1.0 / 6;
    sum = sum * y + 0.5;
    sum = sum * y + 1;
    sum = sum * y + 1;
    uint64_t bits = (uint64_t) ((int64_t) whole + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return sum * power;
}

/** Of a positive number that is neither subnormal nor infinite. */
static inline double
field__log2(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int64_t exponent = (int64_t) (bits >> 52) - 1023;
    bits = (bits & UINT64_C(0x000FFFFFFFFFFFFF)) | UINT64_C(0x3FF0000000000000);
    double m;
    memcpy(&m, &bits, sizeof m);
    int64_t high = m > 1.41421356237309504880;
    m = high ? m * 0.5 : m;
    double s = (m - 1) / (m + 1); /* |s| ≤ 0.172: log m = 2 (s + s^3/3 + s^5/5 + …) */
    double s2 = s * s;
    double sum = 1.0 / 13;
    sum = sum * s2 + 1.0 / 11;
    sum = sum * s2 + 1.0 / 9;
    sum = sum * s2 + 1.0 / 7;
    sum = sum * s2 + 1.0 / 5;
    sum = sum * s2 + 1.0 / 3;
    sum = sum * s2 + 1;
    return (double) (exponent + high) + sum * s * (2 * 1.44269504088896340736);
}

#endif
