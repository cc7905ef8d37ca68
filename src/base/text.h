/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_TEXT_H
#define ESDM_BASE_TEXT_H

/**
 * @file
 * Short texts put together by copying. Each small container makes some thirty of them, for which
 * snprintf() takes a thousand instructions each where a library has registered formats of its own
 * (libquadmath, which comes with numpy).
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline char *
esdm__text_bytes(char *at, const char *end, const char *text, size_t bytes)
{
    size_t room = (size_t) (end - at) - 1;
    if (bytes > room)
        bytes = room;
    memcpy(at, text, bytes);
    at[bytes] = '\0';
    return at + bytes;
}

/** Puts a text, cut where the room ends.
 *  @param end behind the last byte of the room. @return where the zero stands that was put. */
static inline char *
esdm__text_put(char *at, const char *end, const char *text)
{
    return esdm__text_bytes(at, end, text, strlen(text));
}

/** The same of at most `most` bytes; a zero among them ends it. */
static inline char *
esdm__text_part(char *at, const char *end, const char *text, size_t most)
{
    return esdm__text_bytes(at, end, text, strnlen(text, most));
}

/** A number in base 10 or 16, with leading zeros up to so many digits (at most 20). */
static inline char *
esdm__text_number(char *at, const char *end, uint64_t number, unsigned base, unsigned digits)
{
    char text[21];
    char *first = text + sizeof text - 1;
    *first = '\0';
    do {
        *--first = "0123456789abcdef"[number % base];
        number /= base;
    } while (number > 0 || (unsigned) (text + sizeof text - 1 - first) < digits);
    return esdm__text_put(at, end, first);
}

/** A text into a buffer of that size, cut where it is too long. */
static inline void
esdm__text_copy(char *to, size_t bytes, const char *text)
{
    (void) esdm__text_put(to, to + bytes, text);
}

#endif
