/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MONITOR_TEXT_H
#define ESDM_MONITOR_TEXT_H

/** @file Texts and numbers behind each other in memory, without printf(): for what is done for each
 *  span. The caller has seen to it that there is room. Each function returns the end. */

#include <stdint.h>
#include <string.h>

#define ESDM__NUMBER_BYTES 21u /* of a number with a sign, or with a comma */

static inline char *
esdm__put_text(char *at, const char *text)
{
    size_t bytes = strlen(text);
    memcpy(at, text, bytes);
    return at + bytes;
}

static inline char *
esdm__put_number(char *at, uint64_t number)
{
    char digits[ESDM__NUMBER_BYTES];
    size_t n = 0;
    do
        digits[n++] = (char) ('0' + number % 10);
    while ((number /= 10) > 0);
    while (n > 0)
        *at++ = digits[--n];
    return at;
}

static inline char *
esdm__put_signed(char *at, int64_t number)
{
    if (number < 0)
        *at++ = '-';
    return esdm__put_number(at, number < 0 ? 0 - (uint64_t) number : (uint64_t) number);
}

#endif
