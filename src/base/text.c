/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Text of unknown origin, made safe to print. */

#include "esdm/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The longest that one character becomes: "\U000e0001". */
#define SHOWN_BYTES 11

/* Characters that are not shown as they are, in rising order. The marks and joiners that some
 * scripts need (U+200C, U+200D) stay. */
static const uint32_t hidden[][2] = {
    {0x00, 0x08},     {0x0b, 0x1f},     {0x7f, 0x9f},       {0xad, 0xad},     {0x61c, 0x61c},
    {0x180e, 0x180e}, {0x200b, 0x200b}, {0x200e, 0x200f},   {0x2028, 0x202e}, {0x2060, 0x206f},
    {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
};

static bool
is_hidden(uint32_t character)
{
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++) {
        if (character <= hidden[i][1])
            return character >= hidden[i][0];
    }
    return false;
}

/* Bytes of the UTF-8 character at `text`; 0 when there is none. */
static size_t
decode(const unsigned char *text, uint32_t *ret_character)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (text[0] < 0x80) {
        *ret_character = text[0];
        return 1;
    }
    size_t bytes = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : text[0] >= 0xc0 ? 2 : 0;
    if (bytes == 0 || text[0] >= 0xf8)
        return 0;
    uint32_t character = text[0] & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++) {
        if ((text[i] & 0xc0) != 0x80) /* the NUL, too */
            return 0;
        character = character << 6 | (text[i] & 0x3fu);
    }
    bool wrong = character < least[bytes] || character > 0x10ffff ||
                 (character >= 0xd800 && character <= 0xdfff);
    *ret_character = character;
    return wrong ? 0 : bytes;
}

/* What stands for the character at `text`; returns the bytes that were taken. */
static size_t
show(const unsigned char *text, char ret_shown[SHOWN_BYTES])
{
    uint32_t character = 0;
    size_t bytes = decode(text, &character);
    if (bytes == 0 || (bytes == 1 && is_hidden(character))) {
        (void) snprintf(ret_shown, SHOWN_BYTES, "\\x%02x", text[0]);
        return 1;
    }
    if (is_hidden(character)) {
        (void) snprintf(ret_shown, SHOWN_BYTES, character > 0xffff ? "\\U%08x" : "\\u%04x",
                        (unsigned) character);
    } else {
        memcpy(ret_shown, text, bytes);
        ret_shown[bytes] = '\0';
    }
    return bytes;
}

size_t
esdm_text_printable(const char *text, char *buffer, size_t bytes)
{
    size_t length = 0;
    size_t used = 0;
    bool fits = buffer != NULL;
    for (const unsigned char *at = (const unsigned char *) text; at != NULL && *at != '\0';) {
        char shown[SHOWN_BYTES];
        at += show(at, shown);
        size_t n = strlen(shown);
        length += n;
        fits = fits && used + n < bytes;
        if (fits) {
            memcpy(buffer + used, shown, n);
            used += n;
        }
    }
    if (buffer != NULL && bytes > 0)
        buffer[used] = '\0';
    return length;
}
