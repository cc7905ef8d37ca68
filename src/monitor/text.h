/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MONITOR_TEXT_H
#define ESDM_MONITOR_TEXT_H

/** @file Texts and numbers behind each other in memory, without printf(): for what is done for each
 *  span. The caller has seen to it that there is room. Each function returns the end. */

#include <stdint.h>
#include <string.h>

#define ESDM__NUMBER_BYTES 21u /* of a number with a sign, or with a comma */

static inline char *
esdm__put_bytes(char *at, const char *text, size_t bytes)
{
    if (bytes > 0) /* else there may be no text */
        memcpy(at, text, bytes);
    return at + bytes;
}

static inline char *
esdm__put_text(char *at, const char *text)
{
    size_t bytes = strlen(text);
    memcpy(at, text, bytes);
    return at + bytes;
}

/* How many digits it has. */
static inline size_t
esdm__digits_of(uint64_t number)
{
    size_t n = 1;
    for (; number >= 10000; number /= 10000)
        n += 4;
    return n + (number >= 10) + (number >= 100) + (number >= 1000);
}

/* Two digits at a time: most of what a line of a trace takes is its numbers. */
static inline char *
esdm__put_number(char *at, uint64_t number)
{
    static const char pairs[201] = "00010203040506070809101112131415161718192021222324"
                                   "25262728293031323334353637383940414243444546474849"
                                   "50515253545556575859606162636465666768697071727374"
                                   "75767778798081828384858687888990919293949596979899";
    if (number < 10) { /* most are 0 or 1 */
        *at = (char) ('0' + number);
        return at + 1;
    }
    char *end = at + esdm__digits_of(number);
    char *to = end;
    for (; number >= 100; number /= 100)
        memcpy(to -= 2, pairs + 2 * (number % 100), 2);
    if (number >= 10)
        memcpy(to - 2, pairs + 2 * number, 2);
    else
        to[-1] = (char) ('0' + number);
    return end;
}

static inline char *
esdm__put_signed(char *at, int64_t number)
{
    if (number < 0)
        *at++ = '-';
    return esdm__put_number(at, number < 0 ? 0 - (uint64_t) number : (uint64_t) number);
}

#endif
