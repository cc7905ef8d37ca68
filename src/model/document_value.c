/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "model/document_value.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "model/copy.h"

/* ---- errors -------------------------------------------------------------------------------- */

void
esdm__document_enter(esdm__document_reader *r, const char *key)
{
    r->path[r->depth].key = key;
    r->path[r->depth].index = UINT32_MAX;
    r->depth++;
}

void
esdm__document_advance(esdm__document_reader *r)
{
    r->path[r->depth - 1].index++;
}

void
esdm__document_leave(esdm__document_reader *r)
{
    r->depth--;
}

/* "datasets[3].attributes[1]"; "top level" for the document itself. */
static void
print_path(const esdm__document_reader *r, const char *key, char *text, size_t bytes)
{
    size_t used = 0;
    (void) snprintf(text, bytes, "%s", key != NULL ? key : "top level");
    for (uint32_t i = 0; i < r->depth; i++) {
        used +=
            (size_t) snprintf(text + used, bytes - used, "%s%s", i > 0 ? "." : "", r->path[i].key);
        if (r->path[i].index != UINT32_MAX)
            used += (size_t) snprintf(text + used, bytes - used, "[%" PRIu32 "]", r->path[i].index);
    }
    if (r->depth > 0 && key != NULL)
        (void) snprintf(text + used, bytes - used, ".%s", key);
}

/* Four levels of short keys and numbers of 32 bits. */
enum { PATH_BYTES = 160 };

esdm_status
esdm__document_wrong(esdm__document_reader *r, const char *key, const char *format, ...)
{
    char path[PATH_BYTES];
    char text[ESDM_ERROR_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): a false alarm of clang-tidy 14 */
    (void) vsnprintf(text, sizeof text, format, args);
    va_end(args);
    print_path(r, key, path, sizeof path);
    (void) esdm__error_set(r->err, ESDM_ECORRUPT, "container document: %s: %s", path, text);
    return ESDM_ECORRUPT;
}

esdm_status
esdm__document_result(esdm__document_reader *r, esdm_status st)
{
    char path[PATH_BYTES];
    if (st == ESDM_OK || st == ESDM_ENOMEM)
        return st;
    print_path(r, NULL, path, sizeof path);
    return esdm__error_prefix(r->err, ESDM_ECORRUPT, "container document: %s", path);
}

esdm_status
esdm__document_expect(esdm__document_reader *r, const char *key, uint32_t node,
                      esdm__tape_kind kind)
{
    esdm__tape_node wanted = {.kind = (uint8_t) kind};
    if (r->tape.nodes[node].kind == kind)
        return ESDM_OK;
    (void) esdm__document_wrong(r, key, "expected %s, found %s", esdm__tape_kind_name(&wanted),
                                esdm__tape_kind_name(&r->tape.nodes[node]));
    return ESDM_ECORRUPT;
}

/* ---- integers ------------------------------------------------------------------------------ */

/* Digits alone; false when there is anything else or the value does not fit. */
static bool
parse_digits(const char *text, size_t bytes, uint64_t *ret_value)
{
    uint64_t value = 0;
    if (bytes == 0)
        return false;
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, (uint64_t) (text[i] - '0'), &value))
            return false;
    }
    *ret_value = value;
    return true;
}

esdm_status
esdm__document_u64(esdm__document_reader *r, const char *key, uint32_t node, uint64_t max,
                   uint64_t *ret_value)
{
    const esdm__tape_node *n = &r->tape.nodes[node];
    uint64_t value;
    bool text = n->kind == ESDM__TAPE_STRING && max > INT64_MAX;
    if ((n->kind != ESDM__TAPE_NUMBER && !text) ||
        !parse_digits(r->tape.text + n->start, n->length, &value) || value > max)
        return esdm__document_wrong(r, key, "expected a whole number from 0 to %" PRIu64, max);
    *ret_value = value;
    return ESDM_OK;
}

static bool
parse_i64(const char *text, size_t bytes, int64_t *ret_value)
{
    bool negative = bytes > 0 && text[0] == '-';
    uint64_t magnitude;
    if (!parse_digits(text + negative, bytes - negative, &magnitude) ||
        magnitude > (uint64_t) INT64_MAX + negative)
        return false;
    *ret_value = negative ? (int64_t) (0 - magnitude) : (int64_t) magnitude;
    return true;
}

/* ---- texts --------------------------------------------------------------------------------- */

static int
base64_digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c != '\0' ? strchr(digits, c) : NULL;
    return at != NULL ? (int) (at - digits) : -1;
}

/* Strict: padded, no other characters, no bits that mean nothing. */
static bool
decode_base64(const char *text, size_t bytes, char *to, size_t *ret_bytes)
{
    size_t used = 0;
    if (bytes % 4 != 0)
        return false;
    for (size_t i = 0; i < bytes; i += 4) {
        size_t padding = i + 4 < bytes || text[i + 3] != '=' ? 0 : text[i + 2] == '=' ? 2 : 1;
        uint32_t group = 0;
        for (size_t k = 0; k < 4; k++) {
            int digit = k < 4 - padding ? base64_digit(text[i + k]) : 0;
            if (digit < 0)
                return false;
            group = group << 6 | (uint32_t) digit;
        }
        if ((group & ((UINT32_C(1) << (8 * padding)) - 1)) != 0)
            return false;
        for (size_t k = 0; k < 3 - padding; k++)
            to[used++] = (char) (group >> (16 - 8 * k));
    }
    *ret_bytes = used;
    return true;
}

/* The string node of a text, which may be wrapped as {"base64": …}. */
static esdm_status
find_text(esdm__document_reader *r, const char *key, uint32_t node, bool *ret_base64,
          const esdm__tape_node **ret_string)
{
    const esdm__tape_node *n = &r->tape.nodes[node];
    *ret_base64 = n->kind == ESDM__TAPE_OBJECT;
    if (n->kind == ESDM__TAPE_OBJECT) {
        if (n->length != 1 || !esdm__tape_equals(&r->tape, n + 1, "base64", 6) ||
            n[2].kind != ESDM__TAPE_STRING) {
            (void) esdm__document_wrong(r, key, "expected a text or {\"base64\": \"…\"}");
            return ESDM_ECORRUPT;
        }
        *ret_string = n + 2;
        return ESDM_OK;
    }
    *ret_string = n;
    return esdm__document_expect(r, key, node, ESDM__TAPE_STRING);
}

/* At most as many bytes as the string node is long. */
static esdm_status
decode_text(esdm__document_reader *r, const char *key, const esdm__tape_node *string, bool base64,
            char *to, size_t *ret_bytes)
{
    if (!base64) {
        *ret_bytes = esdm__tape_decode(&r->tape, string, to);
    } else if (!decode_base64(r->tape.text + string->start, string->length, to, ret_bytes)) {
        (void) esdm__document_wrong(r, key, "invalid base64");
        return ESDM_ECORRUPT;
    }
    return ESDM_OK;
}

/* A C text: decodes it with a NUL behind; a NUL within is refused. */
static esdm_status
decode_c_text(esdm__document_reader *r, const char *key, const esdm__tape_node *string, bool base64,
              char *to, size_t *ret_bytes)
{
    esdm_status st = decode_text(r, key, string, base64, to, ret_bytes);
    if (st != ESDM_OK)
        return st;
    if (memchr(to, '\0', *ret_bytes) != NULL)
        return esdm__document_wrong(r, key, "a text of this kind must not contain NUL");
    to[*ret_bytes] = '\0';
    return ESDM_OK;
}

esdm_status
esdm__document_text(esdm__document_reader *r, const char *key, uint32_t node, char **ret_text)
{
    const esdm__tape_node *n = &r->tape.nodes[node];
    size_t bytes;
    esdm_status st = esdm__document_expect(r, key, node, ESDM__TAPE_STRING);
    if (st != ESDM_OK)
        return st;
    char *text = malloc((size_t) n->length + 1);
    if (text == NULL)
        return esdm__error_nomem(r->err, (size_t) n->length + 1, "a text");
    st = decode_c_text(r, key, n, false, text, &bytes);
    if (st != ESDM_OK) {
        free(text);
        return st;
    }
    *ret_text = text;
    return ESDM_OK;
}

esdm_status
esdm__document_name(esdm__document_reader *r, const char *key, uint32_t node, char *ret_name)
{
    const esdm__tape_node *n = &r->tape.nodes[node];
    char text[6 * ESDM_NAME_MAX + 1]; /* an escape takes six bytes for one */
    size_t bytes;
    esdm_status st = esdm__document_expect(r, key, node, ESDM__TAPE_STRING);
    if (st != ESDM_OK)
        return st;
    if (n->length >= sizeof text)
        return esdm__document_wrong(r, key, "the name is longer than %d bytes", ESDM_NAME_MAX);
    st = decode_c_text(r, key, n, false, text, &bytes);
    if (st == ESDM_OK && bytes > ESDM_NAME_MAX)
        st = esdm__document_wrong(r, key, "the name is longer than %d bytes", ESDM_NAME_MAX);
    if (st == ESDM_OK)
        memcpy(ret_name, text, bytes + 1);
    return st;
}

esdm_status
esdm__document_type(esdm__document_reader *r, const char *key, uint32_t node, esdm_type *ret_type)
{
    char name[ESDM_NAME_MAX + 1];
    uint64_t number = 0;
    if (r->tape.nodes[node].kind == ESDM__TAPE_NUMBER) {
        esdm_status bad = esdm__document_u64(r, key, node, INT32_MAX, &number);
        if (bad != ESDM_OK)
            return bad;
        if (esdm__usertype_at(r->container, (esdm_type) number) == NULL)
            return esdm__document_wrong(r, key, "there is no type %" PRIu64 " before it", number);
        *ret_type = (esdm_type) number;
        return ESDM_OK;
    }
    esdm_status st = esdm__document_name(r, key, node, name);
    if (st != ESDM_OK)
        return st;
    esdm_type type = esdm__type_from_name(name);
    if (type == ESDM_TYPE_NONE)
        return esdm__document_wrong(r, key, "unknown type '%s'", name);
    *ret_type = type;
    return ESDM_OK;
}

/* ---- numbers ------------------------------------------------------------------------------- */

static bool
read_i64(const esdm__document_reader *r, uint32_t node, int64_t low, int64_t high,
         int64_t *ret_value)
{
    const esdm__tape_node *n = &r->tape.nodes[node];
    return n->kind == ESDM__TAPE_NUMBER &&
           parse_i64(r->tape.text + n->start, n->length, ret_value) && *ret_value >= low &&
           *ret_value <= high;
}

static bool
read_u64(const esdm__document_reader *r, uint32_t node, uint64_t *ret_value)
{
    const esdm__tape_node *n = &r->tape.nodes[node];
    return (n->kind == ESDM__TAPE_NUMBER || n->kind == ESDM__TAPE_STRING) &&
           parse_digits(r->tape.text + n->start, n->length, ret_value);
}

/* "0x" and exactly `digits` hexadecimal digits: the bits of what JSON has no number for. */
static bool
read_bits(const esdm__document_reader *r, uint32_t node, size_t digits, uint64_t *ret_bits)
{
    const esdm__tape_node *n = &r->tape.nodes[node];
    const char *text = r->tape.text + n->start;
    uint64_t bits = 0;
    if (n->kind != ESDM__TAPE_STRING || n->length != digits + 2 || text[0] != '0' || text[1] != 'x')
        return false;
    for (size_t i = 2; i < digits + 2; i++) {
        bool decimal = text[i] >= '0' && text[i] <= '9';
        if (!decimal && (text[i] < 'a' || text[i] > 'f'))
            return false;
        bits = bits << 4 | (uint64_t) (decimal ? text[i] - '0' : text[i] - 'a' + 10);
    }
    *ret_bits = bits;
    return true;
}

/* A JSON number ends before a comma or bracket, which is where strtod() stops. */
static bool
read_f32(const esdm__document_reader *r, uint32_t node, void *ret_value)
{
    const esdm__tape_node *n = &r->tape.nodes[node];
    uint64_t bits;
    if (n->kind == ESDM__TAPE_NUMBER) {
        float value = strtof(r->tape.text + n->start, NULL);
        memcpy(ret_value, &value, sizeof value);
        return isfinite(value);
    }
    if (!read_bits(r, node, 8, &bits))
        return false;
    memcpy(ret_value, &(uint32_t){(uint32_t) bits}, 4);
    return true;
}

static bool
read_f64(const esdm__document_reader *r, uint32_t node, void *ret_value)
{
    const esdm__tape_node *n = &r->tape.nodes[node];
    uint64_t bits;
    if (n->kind == ESDM__TAPE_NUMBER) {
        double value = strtod(r->tape.text + n->start, NULL);
        memcpy(ret_value, &value, sizeof value);
        return isfinite(value);
    }
    if (!read_bits(r, node, 16, &bits))
        return false;
    memcpy(ret_value, &bits, 8);
    return true;
}

/* One number in memory form. Little-endian: the low bytes of an int64 are the narrower integer. */
static bool
read_number(const esdm__document_reader *r, uint32_t node, esdm_type type, void *ret_value)
{
    int64_t i = 0;
    uint64_t u = 0;
    bool good;
    switch (type) {
    case ESDM_TYPE_FLOAT32:
        return read_f32(r, node, ret_value);
    case ESDM_TYPE_FLOAT64:
        return read_f64(r, node, ret_value);
    case ESDM_TYPE_UINT64:
        good = read_u64(r, node, &u);
        memcpy(ret_value, &u, sizeof u);
        return good;
    case ESDM_TYPE_INT8:
        good = read_i64(r, node, INT8_MIN, INT8_MAX, &i);
        break;
    case ESDM_TYPE_INT16:
        good = read_i64(r, node, INT16_MIN, INT16_MAX, &i);
        break;
    case ESDM_TYPE_INT32:
        good = read_i64(r, node, INT32_MIN, INT32_MAX, &i);
        break;
    case ESDM_TYPE_INT64:
        good = read_i64(r, node, INT64_MIN, INT64_MAX, &i);
        break;
    case ESDM_TYPE_UINT8:
        good = read_i64(r, node, 0, UINT8_MAX, &i);
        break;
    case ESDM_TYPE_UINT16:
        good = read_i64(r, node, 0, UINT16_MAX, &i);
        break;
    default: /* ESDM_TYPE_UINT32: text does not come here */
        good = read_i64(r, node, 0, UINT32_MAX, &i);
        break;
    }
    memcpy(ret_value, &i, esdm_type_size(type));
    return good;
}

/* ---- values -------------------------------------------------------------------------------- */

static esdm_status
read_chars(esdm__document_reader *r, const char *key, uint32_t node, uint32_t nodes,
           uint64_t *ret_count, void **ret_values)
{
    const esdm__tape_node *string;
    bool base64;
    size_t bytes;
    if (nodes != 1)
        return esdm__document_wrong(r, key, "expected one text, found %" PRIu32 " values", nodes);
    esdm_status st = find_text(r, key, node, &base64, &string);
    if (st != ESDM_OK)
        return st;
    char *text = malloc((size_t) string->length + 1);
    if (text == NULL)
        return esdm__error_nomem(r->err, (size_t) string->length + 1, "a text");
    st = decode_text(r, key, string, base64, text, &bytes);
    if (st != ESDM_OK || bytes == 0) {
        free(text);
        text = NULL;
    }
    if (st != ESDM_OK)
        return st;
    *ret_count = bytes;
    *ret_values = text;
    return ESDM_OK;
}

/* Fills `strings` with pointers to the texts, which are put behind them from `text` on. */
static esdm_status
decode_strings(esdm__document_reader *r, const char *key, uint32_t node, uint32_t nodes,
               char **strings, char *text)
{
    for (uint32_t i = 0; i < nodes; i++, node = r->tape.nodes[node].next) {
        const esdm__tape_node *string;
        bool base64;
        size_t bytes;
        strings[i] = NULL;
        if (r->tape.nodes[node].kind == ESDM__TAPE_NULL)
            continue;
        esdm_status st = find_text(r, key, node, &base64, &string);
        if (st == ESDM_OK)
            st = decode_c_text(r, key, string, base64, text, &bytes);
        if (st != ESDM_OK)
            return st;
        strings[i] = text;
        text += bytes + 1;
    }
    return ESDM_OK;
}

static esdm_status
read_strings(esdm__document_reader *r, const char *key, uint32_t node, uint32_t nodes,
             uint64_t *ret_count, void **ret_values)
{
    size_t bytes = nodes * sizeof(char *);
    uint32_t at = node;
    for (uint32_t i = 0; i < nodes; i++, at = r->tape.nodes[at].next) {
        const esdm__tape_node *string;
        bool base64;
        if (r->tape.nodes[at].kind == ESDM__TAPE_NULL)
            continue;
        esdm_status st = find_text(r, key, at, &base64, &string);
        if (st != ESDM_OK)
            return st;
        bytes += (size_t) string->length + 1;
    }
    char **strings = malloc(bytes > 0 ? bytes : 1);
    if (strings == NULL)
        return esdm__error_nomem(r->err, bytes, "strings");
    esdm_status st = decode_strings(r, key, node, nodes, strings, (char *) (strings + nodes));
    if (st != ESDM_OK) {
        free(strings);
        return st;
    }
    *ret_count = nodes;
    *ret_values = strings;
    return ESDM_OK;
}

esdm_status
esdm__document_values(esdm__document_reader *r, const char *key, uint32_t node, uint32_t nodes,
                      esdm_type type, uint64_t *ret_count, void **ret_values)
{
    size_t step = esdm_type_size(type);
    if (type == ESDM_TYPE_CHAR)
        return read_chars(r, key, node, nodes, ret_count, ret_values);
    if (nodes == 0) {
        *ret_count = 0;
        *ret_values = NULL;
        return ESDM_OK;
    }
    if (type == ESDM_TYPE_STRING)
        return read_strings(r, key, node, nodes, ret_count, ret_values);
    char *values = malloc(nodes * step);
    if (values == NULL)
        return esdm__error_nomem(r->err, nodes * step, "values");
    for (uint32_t i = 0; i < nodes; i++, node = r->tape.nodes[node].next) {
        if (!read_number(r, node, type, values + i * step)) {
            free(values);
            return esdm__document_wrong(r, key, "value %" PRIu32 " is not of type %s", i,
                                        esdm_type_name(type));
        }
    }
    *ret_count = nodes;
    *ret_values = values;
    return ESDM_OK;
}

/* @param stored all of it makes up the elements. */
static esdm_status
decode_values(esdm__document_reader *r, esdm__typeref of, uint64_t count, const char *stored,
              size_t bytes, void **ret_values)
{
    esdm__cursor cursor;
    size_t memory_bytes;
    /* An element takes a byte at least: what is claimed cannot be far more than what is there. */
    if (count > bytes || !esdm__mul_size((size_t) count, esdm__typeref_bytes(of), &memory_bytes))
        return esdm__error_set(r->err, ESDM_ECORRUPT,
                               "%" PRIu64 " values cannot lie in %zu stored bytes", count, bytes);
    void *values = malloc(memory_bytes);
    if (values == NULL)
        return esdm__error_nomem(r->err, memory_bytes, "values");
    esdm__cursor_init(&cursor, stored, bytes);
    esdm_status st = esdm__values_decode(of, count, &cursor, values, r->err);
    if (st == ESDM_OK && esdm__cursor_left(&cursor) > 0) {
        esdm__values_clear(of, count, values);
        st = esdm__error_set(r->err, ESDM_ECORRUPT, "there are bytes behind the values");
    }
    if (st != ESDM_OK) {
        free(values);
        return st;
    }
    *ret_values = values;
    return ESDM_OK;
}

esdm_status
esdm__document_user_values(esdm__document_reader *r, const char *key, uint32_t node, esdm_type type,
                           uint64_t count, void **ret_values)
{
    const esdm__tape_node *string;
    esdm__typeref of;
    bool base64;
    size_t bytes;
    esdm_status st = find_text(r, key, node, &base64, &string);
    if (st != ESDM_OK)
        return st;
    st = esdm__type_resolve(r->container, type, &of, r->err);
    if (st != ESDM_OK)
        return esdm__document_result(r, st);
    char *stored = malloc((size_t) string->length + 1);
    if (stored == NULL)
        return esdm__error_nomem(r->err, (size_t) string->length + 1, "values");
    st = decode_text(r, key, string, base64, stored, &bytes);
    if (st == ESDM_OK)
        st = esdm__document_result(r, decode_values(r, of, count, stored, bytes, ret_values));
    free(stored);
    return st;
}
