/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Texts in URLs, as S3 encodes them. */

#include "encode.h"

static bool
is_unreserved(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

void
s3__encode(esdm__buffer *out, const char *text, bool keep_slashes)
{
    static const char digits[] = "0123456789ABCDEF";
    for (; *text != '\0'; text++) {
        uint8_t byte = (uint8_t) *text;
        if (is_unreserved(*text) || (keep_slashes && *text == '/')) {
            esdm__buffer_put_u8(out, byte);
        } else {
            const char escaped[3] = {'%', digits[byte >> 4], digits[byte & 15u]};
            esdm__buffer_put(out, escaped, sizeof escaped);
        }
    }
}

static int
hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

void
s3__decode(char *text)
{
    char *to = text;
    while (*text != '\0') {
        int high = text[0] == '%' ? hex_value(text[1]) : -1;
        int low = high >= 0 ? hex_value(text[2]) : -1;
        if (low >= 0 && high + low > 0) {
            *to++ = (char) (high * 16 + low);
            text += 3;
        } else {
            *to++ = *text++;
        }
    }
    *to = '\0';
}
