/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file JSON as Python writes it: NaN, Infinity and large integers become texts that begin with a
 * mark. */

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_read.h"
#include "refer/zarr.h"

#define MARK '\1'
/* Jansson takes integers of up to so many digits. */
#define DIGITS_MAX 18u

bool
zarr_fail(char why[200], const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void) vsnprintf(why, 200, format, arguments);
    va_end(arguments);
    return false;
}

/* ---- text ----------------------------------------------------------------------------------- */

static size_t
skip_string(const char *text, size_t at, size_t bytes)
{
    for (at++; at < bytes && text[at] != '"'; at++)
        at += text[at] == '\\';
    return at < bytes ? at + 1 : bytes;
}

/* Bytes of a word that JSON does not have; 0: none. */
static size_t
odd_word(const char *text, size_t at, size_t bytes)
{
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; i < G_N_ELEMENTS(words); i++) {
        size_t n = strlen(words[i]);
        if (bytes - at >= n && memcmp(text + at, words[i], n) == 0)
            return n;
    }
    size_t n = at;
    while (n < bytes && (g_ascii_isdigit(text[n]) || (n == at && text[n] == '-')))
        n++;
    bool real = n < bytes && (text[n] == '.' || text[n] == 'e' || text[n] == 'E');
    return n - at > DIGITS_MAX && !real ? n - at : 0;
}

static bool
in_number(char c)
{
    return g_ascii_isdigit(c) || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-';
}

json_t *
zarr_json(const char *text, size_t bytes, char why[200])
{
    json_error_t error;
    g_autoptr(GString) plain = g_string_sized_new(bytes + 16);
    for (size_t at = 0; at < bytes;) {
        size_t to = at + 1;
        size_t odd = text[at] == '"' ? 0 : odd_word(text, at, bytes);
        if (odd > 0) {
            g_string_append(plain, "\"\\u0001");
            g_string_append_len(plain, text + at, (gssize) odd);
            g_string_append_c(plain, '"');
            at += odd;
            continue;
        }
        if (text[at] == '"')
            to = skip_string(text, at, bytes);
        else if (in_number(text[at]))
            while (to < bytes && in_number(text[to]))
                to++;
        g_string_append_len(plain, text + at, (gssize) (to - at));
        at = to;
    }
    json_t *root = tool_json_read(plain->str, (gssize) plain->len, JSON_DECODE_ANY, &error);
    if (root == NULL)
        (void) zarr_fail(why, "it is no JSON: line %d: %s", error.line, error.text);
    return root;
}

/* ---- values --------------------------------------------------------------------------------- */

static const char *
marked(const json_t *node)
{
    const char *text = json_string_value(node);
    return text != NULL && text[0] == MARK ? text + 1 : NULL;
}

const char *
zarr_json_text(const json_t *node)
{
    return marked(node) == NULL ? json_string_value(node) : NULL;
}

bool
zarr_json_is_number(const json_t *node)
{
    return json_is_number(node) || marked(node) != NULL;
}

static bool
bits_of(const char *text, size_t float_bytes, double *ret)
{
    char *end = NULL;
    uint64_t bits = strtoull(text, &end, 16);
    uint32_t half = (uint32_t) bits;
    float value;
    if (end == text || *end != '\0' || (float_bytes != 4 && float_bytes != 8))
        return false;
    memcpy(&value, &half, sizeof value);
    if (float_bytes == 4)
        *ret = (double) value;
    else
        memcpy(ret, &bits, sizeof bits);
    return true;
}

bool
zarr_json_real(const json_t *node, size_t float_bytes, double *ret)
{
    const char *text = marked(node) != NULL ? marked(node) : json_string_value(node);
    char *end = NULL;
    if (json_is_number(node)) {
        *ret = json_number_value(node);
        return true;
    }
    if (text == NULL)
        return false;
    if (strcmp(text, "NaN") == 0) {
        *ret = (double) NAN;
        return true;
    }
    if (strcmp(text, "Infinity") == 0 || strcmp(text, "-Infinity") == 0) {
        *ret = text[0] == '-' ? -(double) INFINITY : (double) INFINITY;
        return true;
    }
    if (strncmp(text, "0x", 2) == 0)
        return bits_of(text, float_bytes, ret);
    if (marked(node) == NULL)
        return false;
    *ret = g_ascii_strtod(text, &end);
    return end != text && *end == '\0';
}

bool
zarr_json_integer(const json_t *node, int64_t *ret, bool *ret_is_unsigned)
{
    const char *text = marked(node);
    char *end = NULL;
    *ret_is_unsigned = false;
    if (json_is_integer(node)) {
        *ret = json_integer_value(node);
        return true;
    }
    if (text == NULL) /* 2.0 is one, too */
        return json_is_real(node) && json_real_value(node) == trunc(json_real_value(node)) &&
               fabs(json_real_value(node)) < 9007199254740992.0 &&
               ((*ret = (int64_t) json_real_value(node)), true);
    errno = 0;
    if (text[0] == '-') {
        *ret = strtoll(text, &end, 10);
    } else {
        uint64_t value = strtoull(text, &end, 10);
        *ret = (int64_t) value;
        *ret_is_unsigned = value > INT64_MAX;
    }
    return errno == 0 && end != text && *end == '\0';
}
