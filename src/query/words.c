/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "query/words.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"

/* isspace() depends on the locale. */
bool
esdm__query_is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

esdm_status
esdm__query_wrong(esdm__query_parser *p, const char *at, const char *what)
{
    size_t column = (size_t) (at - p->text) + 1;
    if (*at == '\0')
        return esdm__error_set(p->err, ESDM_EINVAL, "query, column %zu: %s, found the end", column,
                               what);
    /* No half UTF-8 sequences in messages. */
    int bytes = 0;
    while (bytes < 24 && at[bytes] != '\0' && !esdm__query_is_blank(at[bytes]))
        bytes++;
    while (bytes > 1 && ((unsigned char) at[bytes] & 0xc0) == 0x80)
        bytes--;
    return esdm__error_set(p->err, ESDM_EINVAL, "query, column %zu: %s, found '%.*s'", column, what,
                           bytes > 0 ? bytes : 1, at);
}

void
esdm__query_skip_blanks(esdm__query_parser *p)
{
    while (esdm__query_is_blank(*p->at))
        p->at++;
}

static bool
is_word_byte(char c, esdm__query_place where)
{
    return c != '\0' && !esdm__query_is_blank(c) && strchr("\"'=!<>~", c) == NULL &&
           !(where == ESDM__QUERY_IN_NAME && c == ':') &&
           !(where == ESDM__QUERY_IN_LIST && c == ',');
}

/* Copies the bytes of a bare word. */
static void
bare_word(esdm__query_parser *p, esdm__query_place where)
{
    int open = 0; /* brackets of the word itself */
    while (is_word_byte(*p->at, where)) {
        open += *p->at == '(';
        if (*p->at == ')' && --open < 0 && (p->brackets > 0 || where != ESDM__QUERY_IN_VALUE))
            return;
        *p->out++ = *p->at++;
    }
}

/* ---- quoted words ------------------------------------------------------------------------- */

static bool
hex_unit(const char *at, uint32_t *ret_unit)
{
    uint32_t unit = 0;
    for (int i = 0; i < 4; i++) {
        if (!isxdigit((unsigned char) at[i]))
            return false;
        char c = (char) tolower((unsigned char) at[i]);
        unit = unit * 16 + (uint32_t) (isdigit((unsigned char) c) ? c - '0' : c - 'a' + 10);
    }
    *ret_unit = unit;
    return true;
}

static void
put_utf8(esdm__query_parser *p, uint32_t c)
{
    if (c < 0x80) {
        *p->out++ = (char) c;
        return;
    }
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const uint8_t heads[] = {0, 0xc0, 0xe0, 0xf0};
    *p->out++ = (char) (heads[more] | (c >> (6 * more)));
    while (more-- > 0)
        *p->out++ = (char) (0x80 | ((c >> (6 * more)) & 0x3f));
}

/* At "uXXXX", which may be the first half of a pair. */
static esdm_status
unicode_escape(esdm__query_parser *p)
{
    const char *start = p->at - 1;
    uint32_t c = 0, low = 0;
    if (!hex_unit(p->at + 1, &c))
        return esdm__query_wrong(p, start, "expected four hexadecimal digits after \\u");
    p->at += 5;
    if (c >= 0xd800 && c < 0xdc00 && p->at[0] == '\\' && p->at[1] == 'u' &&
        hex_unit(p->at + 2, &low) && low >= 0xdc00 && low < 0xe000) {
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        p->at += 6;
    }
    if (c == 0 || (c >= 0xd800 && c < 0xe000))
        return esdm__query_wrong(p, start, "this \\u escape is not a character");
    put_utf8(p, c);
    return ESDM_OK;
}

/* After the backslash. */
static esdm_status
escape(esdm__query_parser *p)
{
    static const char letters[] = "\\\"'/nrtbf", bytes[] = "\\\"'/\n\r\t\b\f";
    if (*p->at == 'u')
        return unicode_escape(p);
    const char *found = *p->at != '\0' ? strchr(letters, *p->at) : NULL;
    if (found == NULL)
        return esdm__query_wrong(p, p->at - 1, "unknown escape (write \\\\ for a backslash)");
    *p->out++ = bytes[found - letters];
    p->at++;
    return ESDM_OK;
}

static esdm_status
quoted_word(esdm__query_parser *p)
{
    const char *start = p->at;
    char quote = *p->at++;
    while (*p->at != quote) {
        if (*p->at == '\0')
            return esdm__query_wrong(p, start, "this quote is not closed");
        if (*p->at != '\\') {
            *p->out++ = *p->at++;
            continue;
        }
        p->at++;
        esdm_status status = escape(p);
        if (status != ESDM_OK)
            return status;
    }
    p->at++;
    return ESDM_OK;
}

/* Each word takes at most its bytes in the expression plus a NUL. */
esdm_status
esdm__query_read_word(esdm__query_parser *p, esdm__query_place where, const char *expected,
                      esdm__query_word *ret_word)
{
    esdm__query_skip_blanks(p);
    *ret_word = (esdm__query_word){
        .text = p->out, .start = p->at, .quoted = *p->at == '"' || *p->at == '\''};
    if (ret_word->quoted) {
        esdm_status status = quoted_word(p);
        if (status != ESDM_OK)
            return status;
    } else {
        bare_word(p, where);
        if (p->at == ret_word->start)
            return esdm__query_wrong(p, p->at, expected);
    }
    *p->out++ = '\0';
    return ESDM_OK;
}
