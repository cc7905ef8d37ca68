/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "glob.h"

#include <string.h>

#include "postgres.h"

static void
put(esdm__buffer *buffer, const char *text)
{
    esdm__buffer_put(buffer, text, strlen(text));
}

/* One character, with the bytes that continue it, taken literally. */
static const char *
put_character(esdm__buffer *buffer, const char *at)
{
    char one[8] = {*at};
    size_t bytes = 1;
    while (bytes < 4 && ((unsigned char) at[0] & 0xc0) == 0xc0 &&
           ((unsigned char) at[bytes] & 0xc0) == 0x80) {
        one[bytes] = at[bytes];
        bytes++;
    }
    /* A backslash before a letter or digit would mean something else. */
    if ((unsigned char) *at < 0x80 && strchr("\\^$.|?*+()[]{}-:=<>!#&~", *at) != NULL)
        put(buffer, "\\");
    postgres__put_text(buffer, one);
    return at + bytes;
}

/* End of the brackets that open before `at`, NULL when there is none. */
static const char *
find_end(const char *at)
{
    at += *at == '^';
    at += *at == ']';
    return strchr(at, ']');
}

/* What stands between the brackets; `end` is their end. */
static void
put_class(esdm__buffer *buffer, const char *at, const char *end)
{
    bool any = false;
    bool inverted = *at == '^';
    size_t start = 0;
    at += inverted;
    start = buffer->bytes;
    put(buffer, inverted ? "[^" : "[");
    while (at < end) {
        bool range = at + 1 < end && at[1] == '-' && at + 2 < end;
        if (range && (unsigned char) at[0] > (unsigned char) at[2]) { /* an empty one */
            at += 3;
            continue;
        }
        at = put_character(buffer, at);
        any = true;
        if (range) {
            put(buffer, "-");
            at = put_character(buffer, at + 1);
        }
    }
    if (any) {
        put(buffer, "]");
    } else if (!buffer->failed) {
        buffer->bytes = start;
        put(buffer, inverted ? "." : "(?!)");
    }
}

void
postgres__put_glob(esdm__buffer *buffer, const char *pattern)
{
    put(buffer, "^");
    for (const char *at = pattern; *at != '\0';) {
        const char *end = *at == '[' ? find_end(at + 1) : NULL;
        if (*at == '[' && end == NULL) {
            put(buffer, "(?!)");
            break;
        }
        if (*at == '*' || *at == '?') {
            put(buffer, *at == '*' ? ".*" : ".");
            at++;
        } else if (end != NULL) {
            put_class(buffer, at + 1, end);
            at = end + 1;
        } else {
            at = put_character(buffer, at);
        }
    }
    put(buffer, "$");
}
