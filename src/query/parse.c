/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "query/query.h"

#include <ctype.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"

#define MAX_EXPRESSION_BYTES (1u << 20)

typedef struct parser {
    const char *text;
    const char *at;
    char *out; /* next free byte of the query's texts */
    locale_t c_locale;
    esdm__query query;
    size_t capacity;
    esdm_error *err;
} parser;

typedef struct word {
    const char *text; /* NUL-terminated, in the query's texts */
    const char *start;
    bool quoted;
} word;

/* isspace() depends on the locale. */
static bool
is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static esdm_status
wrong(parser *p, const char *at, const char *what)
{
    size_t column = (size_t) (at - p->text) + 1;
    if (*at == '\0')
        return esdm__error_set(p->err, ESDM_EINVAL, "query, column %zu: %s, found the end", column,
                               what);
    /* No half UTF-8 sequences in messages. */
    int bytes = 0;
    while (bytes < 24 && at[bytes] != '\0' && !is_blank(at[bytes]))
        bytes++;
    while (bytes > 1 && ((unsigned char) at[bytes] & 0xc0) == 0x80)
        bytes--;
    return esdm__error_set(p->err, ESDM_EINVAL, "query, column %zu: %s, found '%.*s'", column, what,
                           bytes > 0 ? bytes : 1, at);
}

static void
skip_blanks(parser *p)
{
    while (is_blank(*p->at))
        p->at++;
}

static bool
is_word_byte(char c, bool in_name)
{
    return c != '\0' && !is_blank(c) && strchr("\"'=!<>~", c) == NULL && !(in_name && c == ':');
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
put_utf8(parser *p, uint32_t c)
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
unicode_escape(parser *p)
{
    const char *start = p->at - 1;
    uint32_t c = 0, low = 0;
    if (!hex_unit(p->at + 1, &c))
        return wrong(p, start, "expected four hexadecimal digits after \\u");
    p->at += 5;
    if (c >= 0xd800 && c < 0xdc00 && p->at[0] == '\\' && p->at[1] == 'u' &&
        hex_unit(p->at + 2, &low) && low >= 0xdc00 && low < 0xe000) {
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        p->at += 6;
    }
    if (c == 0 || (c >= 0xd800 && c < 0xe000))
        return wrong(p, start, "this \\u escape is not a character");
    put_utf8(p, c);
    return ESDM_OK;
}

/* After the backslash. */
static esdm_status
escape(parser *p)
{
    static const char letters[] = "\\\"'/nrtbf", bytes[] = "\\\"'/\n\r\t\b\f";
    if (*p->at == 'u')
        return unicode_escape(p);
    const char *found = *p->at != '\0' ? strchr(letters, *p->at) : NULL;
    if (found == NULL)
        return wrong(p, p->at - 1, "unknown escape (write \\\\ for a backslash)");
    *p->out++ = bytes[found - letters];
    p->at++;
    return ESDM_OK;
}

static esdm_status
quoted_word(parser *p)
{
    const char *start = p->at;
    char quote = *p->at++;
    while (*p->at != quote) {
        if (*p->at == '\0')
            return wrong(p, start, "this quote is not closed");
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
static esdm_status
read_word(parser *p, bool in_name, const char *expected, word *ret_word)
{
    skip_blanks(p);
    *ret_word = (word){.text = p->out, .start = p->at, .quoted = *p->at == '"' || *p->at == '\''};
    if (ret_word->quoted) {
        esdm_status status = quoted_word(p);
        if (status != ESDM_OK)
            return status;
    } else {
        if (!is_word_byte(*p->at, in_name))
            return wrong(p, p->at, expected);
        while (is_word_byte(*p->at, in_name))
            *p->out++ = *p->at++;
    }
    *p->out++ = '\0';
    return ESDM_OK;
}

/* ---- comparisons -------------------------------------------------------------------------- */

static esdm_status
read_name(parser *p, esdm_meta_condition *condition)
{
    word first, second;
    static const char expected[] = "expected the name of an attribute";
    skip_blanks(p);
    if (*p->at == ':') {
        condition->variable = "";
    } else {
        esdm_status status = read_word(p, true, expected, &first);
        if (status != ESDM_OK)
            return status;
        if (*p->at != ':') {
            if (first.text[0] == '\0')
                return wrong(p, first.start, expected);
            condition->attribute = first.text;
            return ESDM_OK;
        }
        if (first.text[0] == '\0')
            return wrong(p, first.start, "expected the name of a variable");
        condition->variable = first.text;
    }
    p->at++; /* the colon */
    if (is_blank(*p->at))
        return wrong(p, p->at, expected);
    esdm_status status = read_word(p, true, expected, &second);
    if (status == ESDM_OK && second.text[0] == '\0')
        return wrong(p, second.start, expected);
    condition->attribute = second.text;
    return status;
}

static esdm_status
read_operator(parser *p, esdm_meta_operator *ret_op)
{
    static const struct {
        const char *text;
        esdm_meta_operator op;
    } operators[] = {{"==", ESDM_META_EQ}, {"!=", ESDM_META_NE}, {"<=", ESDM_META_LE},
                     {">=", ESDM_META_GE}, {"=", ESDM_META_EQ},  {"<", ESDM_META_LT},
                     {">", ESDM_META_GT},  {"~", ESDM_META_GLOB}};
    skip_blanks(p);
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        size_t bytes = strlen(operators[i].text);
        if (strncmp(p->at, operators[i].text, bytes) == 0) {
            p->at += bytes;
            *ret_op = operators[i].op;
            return ESDM_OK;
        }
    }
    return wrong(p, p->at, "expected one of = != < <= > >= ~");
}

/* Words such as "nan" and "infinity" are text: nothing compares usefully with them. */
static bool
number_of(parser *p, const char *text, double *ret_number)
{
    const char *digits = text + (text[0] == '-' || text[0] == '+');
    if (!isdigit((unsigned char) digits[0]) &&
        !(digits[0] == '.' && isdigit((unsigned char) digits[1])))
        return false;
    char *end = NULL;
    double number = strtod_l(text, &end, p->c_locale);
    if (*end != '\0' || !isfinite(number))
        return false;
    *ret_number = number;
    return true;
}

static esdm_status
read_comparison(parser *p, esdm_meta_condition *condition)
{
    esdm_status status = read_name(p, condition);
    if (status == ESDM_OK)
        status = read_operator(p, &condition->op);
    word value;
    static const char expected[] = "expected a value (put texts with blanks or signs in quotes)";
    if (status == ESDM_OK)
        status = read_word(p, false, expected, &value);
    if (status != ESDM_OK)
        return status;
    if (!value.quoted && strcasecmp(value.text, "and") == 0)
        return wrong(p, value.start, expected);
    condition->text = value.text;
    condition->is_number = !value.quoted && condition->op != ESDM_META_GLOB &&
                           number_of(p, value.text, &condition->number);
    return ESDM_OK;
}

/* A zeroed one at the end; NULL, and an error set, when out of memory. */
static esdm_meta_condition *
add_condition(parser *p)
{
    esdm__query *query = &p->query;
    if (query->nconditions == p->capacity) {
        size_t capacity = p->capacity > 0 ? 2 * p->capacity : 8;
        esdm_meta_condition *more = realloc(query->conditions, capacity * sizeof *more);
        if (more == NULL) {
            (void) esdm__error_nomem(p->err, capacity * sizeof *more, "a query");
            return NULL;
        }
        query->conditions = more;
        p->capacity = capacity;
    }
    esdm_meta_condition *condition = &query->conditions[query->nconditions++];
    *condition = (esdm_meta_condition){0};
    return condition;
}

static esdm_status
read_expression(parser *p)
{
    for (;;) {
        esdm_meta_condition *condition = add_condition(p);
        if (condition == NULL)
            return ESDM_ENOMEM;
        esdm_status status = read_comparison(p, condition);
        if (status != ESDM_OK)
            return status;
        const char *end = p->at;
        skip_blanks(p);
        if (*p->at == '\0')
            return ESDM_OK;
        if (p->at == end || strncasecmp(p->at, "and", 3) != 0 ||
            !(is_blank(p->at[3]) || p->at[3] == '\0'))
            return wrong(p, p->at, "expected \"and\" (a value with blanks must be in quotes)");
        p->at += 3;
        skip_blanks(p);
        if (*p->at == '\0')
            return wrong(p, p->at, "expected a comparison after \"and\"");
    }
}

esdm_status
esdm__query_parse(const char *text, esdm__query *ret_query, esdm_error *err)
{
    size_t bytes = strlen(text);
    if (bytes > MAX_EXPRESSION_BYTES)
        return esdm__error_set(err, ESDM_EINVAL, "the query has %zu bytes, more than %u", bytes,
                               MAX_EXPRESSION_BYTES);
    /* A word has at least one byte in the expression and never grows, but gets a NUL. */
    parser p = {.text = text, .at = text, .err = err};
    p.query.texts = malloc(2 * bytes + 2);
    p.c_locale = newlocale(LC_ALL_MASK, "C", (locale_t) 0);
    p.out = p.query.texts;
    esdm_status status = ESDM_OK;
    if (p.query.texts == NULL || p.c_locale == (locale_t) 0)
        status = esdm__error_nomem(err, 2 * bytes + 2, "a query");
    if (status == ESDM_OK)
        status = read_expression(&p);
    if (p.c_locale != (locale_t) 0)
        freelocale(p.c_locale);
    if (status == ESDM_OK)
        *ret_query = p.query;
    else
        esdm__query_clear(&p.query);
    return status;
}

void
esdm__query_clear(esdm__query *query)
{
    free(query->conditions);
    free(query->texts);
    *query = (esdm__query){0};
}
