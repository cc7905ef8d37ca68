/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "esdm-reduce/number_text.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { DIGITS = 10 };

/* By the library: what is rare, and what lies so close to the middle of two texts that the product
 * below may have been rounded across it. */
static size_t
by_printf(double value, char *ret)
{
    return (size_t) snprintf(ret, NUMBER_TEXT_BYTES, "%.10g", value);
}

/* The number in units of its last digit, 10^9 to 10^10; 0: printf() must do it. */
static uint64_t
digits_of(double value, int *ret_exponent)
{
    static const long double powers[] = {1e0L, 1e1L, 1e2L, 1e3L,  1e4L,  1e5L,  1e6L,
                                         1e7L, 1e8L, 1e9L, 1e10L, 1e11L, 1e12L, 1e13L};
    const long double limit = 1e10L * LDBL_EPSILON * 4;
    long double size = (long double) value;
    if (!(size >= 1e-4L && size < 1e10L))
        return 0;
    int exponent = 9;
    while (exponent >= 0 && size < powers[exponent])
        exponent--;
    while (exponent < 0 && size * powers[-exponent] < 1)
        exponent--;
    if (exponent < -4)
        return 0;
    long double scaled = size * powers[9 - exponent];
    uint64_t number = (uint64_t) scaled;
    long double rest = scaled - (long double) number;
    if (rest > 0.5L - limit && rest < 0.5L + limit)
        return 0;
    number += rest > 0.5L;
    *ret_exponent = exponent;
    return number >= UINT64_C(1000000000) && number < UINT64_C(10000000000) ? number : 0;
}

size_t
number_text(double value, char ret[NUMBER_TEXT_BYTES])
{
    char digits[DIGITS];
    int exponent = 0;
    int count = DIGITS;
    char *to = ret;
    uint64_t number = digits_of(fabs(value), &exponent);
    if (number == 0)
        return by_printf(value, ret);
    for (int i = DIGITS; i-- > 0; number /= 10)
        digits[i] = (char) ('0' + number % 10);
    while (count > 1 && digits[count - 1] == '0')
        count--;
    if (signbit(value))
        *to++ = '-';
    if (exponent < 0) {
        memcpy(to, "0.0000", (size_t) (1 - exponent));
        to += 1 - exponent;
        memcpy(to, digits, (size_t) count);
        return (size_t) (to + count - ret);
    }
    int whole = exponent + 1;
    memcpy(to, digits, (size_t) whole);
    to += whole;
    if (count > whole) {
        *to++ = '.';
        memcpy(to, digits + whole, (size_t) (count - whole));
        to += count - whole;
    }
    return (size_t) (to - ret);
}
