/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "esdm-reduce/number_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define TEN_DIGITS UINT64_C(10000000000) /* the least number that has more */

__extension__ typedef unsigned __int128 wide;

static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                            "25262728293031323334353637383940414243444546474849"
                            "50515253545556575859606162636465666768697071727374"
                            "75767778798081828384858687888990919293949596979899";

/* What is rare. */
static size_t
by_printf(double value, char *ret)
{
    return (size_t) snprintf(ret, NUMBER_TEXT_BYTES, "%.10g", value);
}

/* `size` is mantissa x 2^-shift, as a whole number of units of 10^-power: to the nearest one, and
 * to an even one from the middle, as printf() does. Nothing is lost: 53 and 47 bits are 100. */
static uint64_t
in_units(uint64_t mantissa, unsigned shift, unsigned power)
{
    static const uint64_t powers[] = {
        1,           10,           100,           1000,           10000,
        100000,      1000000,      10000000,      100000000,      1000000000,
        10000000000, 100000000000, 1000000000000, 10000000000000, 100000000000000};
    wide exact = (wide) mantissa * powers[power];
    uint64_t number = (uint64_t) (exact >> shift);
    wide rest = exact - ((wide) number << shift);
    wide middle = (wide) 1 << (shift - 1);
    return number + (rest > middle || (rest == middle && (number & 1) != 0));
}

/* The number in units of its last digit, 10^9 to 10^10, of 10^-4 to 10^10; 0: it is another one. */
static uint64_t
digits_of(double size, int *ret_exponent)
{
    uint64_t bits;
    if (!(size >= 1e-4 && size < 1e10))
        return 0;
    memcpy(&bits, &size, sizeof bits);
    int binary = (int) (bits >> 52) - 1023; /* -14 to 33 */
    uint64_t mantissa = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    /* The power of ten at or below 2^binary: 1233/4096 is the logarithm of 2, exactly enough. */
    int exponent = (binary * 1233 - (binary < 0 ? 4095 : 0)) / 4096;
    uint64_t number = in_units(mantissa, (unsigned) (52 - binary), (unsigned) (9 - exponent));
    if (number >= TEN_DIGITS && exponent < 9)
        number = in_units(mantissa, (unsigned) (52 - binary), (unsigned) (9 - ++exponent));
    *ret_exponent = exponent;
    return number >= TEN_DIGITS / 10 && number < TEN_DIGITS ? number : 0;
}

static void
put_digits(uint64_t number, char ret[NUMBER_TEXT_DIGITS])
{
    for (int i = NUMBER_TEXT_DIGITS - 2; i >= 0; i -= 2, number /= 100)
        memcpy(ret + i, pairs + number % 100 * 2, 2);
}

size_t
number_text(double value, char ret[NUMBER_TEXT_BYTES])
{
    char digits[NUMBER_TEXT_DIGITS];
    int exponent = 0;
    int count = NUMBER_TEXT_DIGITS;
    char *to = ret;
    uint64_t number = digits_of(fabs(value), &exponent);
    if (number == 0)
        return by_printf(value, ret);
    put_digits(number, digits);
    while (count > 1 && digits[count - 1] == '0')
        count--;
    if (signbit(value))
        *to++ = '-';
    if (exponent < 0) {
        memcpy(to, "0.0000", (size_t) (1 - exponent));
        to += 1 - exponent;
        memcpy(to, digits, NUMBER_TEXT_DIGITS);
        return (size_t) (to + count - ret);
    }
    int whole = exponent + 1;
    memcpy(to, digits, NUMBER_TEXT_DIGITS);
    if (count <= whole)
        return (size_t) (to + whole - ret);
    memmove(to + whole + 1, to + whole, (size_t) (count - whole));
    to[whole] = '.';
    return (size_t) (to + count + 1 - ret);
}

size_t
whole_text(uint64_t number, char ret[NUMBER_TEXT_BYTES])
{
    char digits[20];
    size_t at = sizeof digits;
    for (; number >= 10; number /= 100)
        memcpy(digits + (at -= 2), pairs + number % 100 * 2, 2);
    if (number > 0 || at == sizeof digits)
        digits[--at] = (char) ('0' + number);
    memcpy(ret, digits + at, sizeof digits - at);
    return sizeof digits - at;
}
