/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "model/tape.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/names.h"

typedef struct parser {
    esdm__tape *tape;
    const char *at;
    const char *end;
    uint32_t depth;
    uint32_t open[ESDM__TAPE_MAX_DEPTH]; /* nodes of the arrays and objects around `at` */
    esdm_error *err;
} parser;

static esdm_status
wrong(const parser *p, const char *what)
{
    return esdm__error_set(p->err, ESDM_ECORRUPT, "byte %zu: %s", (size_t) (p->at - p->tape->text),
                           what);
}

/* ---- tokens -------------------------------------------------------------------------------- */

static void
skip_space(parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\n' || *p->at == '\r' || *p->at == '\t'))
        p->at++;
}

/* Adds a node that starts at `p->at`; `next` is right for a value without children. */
static esdm_status
add_node(parser *p, esdm__tape_kind kind, esdm__tape_node **ret_node)
{
    esdm__tape *tape = p->tape;
    if (tape->count == tape->capacity) {
        /* A node takes at least two bytes of text, so that the numbers of nodes fit 32 bits. */
        uint32_t capacity = tape->capacity > 0 ? tape->capacity * 2 : 64;
        esdm__tape_node *nodes = reallocarray(tape->nodes, capacity, sizeof *nodes);
        if (nodes == NULL) {
            (void) esdm__error_nomem(p->err, capacity * sizeof *nodes, "a container document");
            return ESDM_ENOMEM;
        }
        tape->nodes = nodes;
        tape->capacity = capacity;
    }
    esdm__tape_node *node = &tape->nodes[tape->count++];
    node->next = tape->count;
    node->start = (uint32_t) (p->at - tape->text);
    node->length = 0;
    node->kind = (uint8_t) kind;
    node->escaped = false;
    *ret_node = node;
    return ESDM_OK;
}

static int
hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Four hexadecimal digits; -1 if they are not there. */
static int32_t
hex_unit(const char *at, const char *end)
{
    int32_t unit = 0;
    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(at[i]);
        if (digit < 0)
            return -1;
        unit = unit * 16 + digit;
    }
    return unit;
}

/* Checks the escape at `at` (a backslash) and returns its bytes; 0 when it is none. */
static size_t
escape_bytes(const char *at, const char *end)
{
    if (end - at < 2)
        return 0;
    if (at[1] != 'u')
        return at[1] != '\0' && strchr("\"\\/bfnrt", at[1]) != NULL ? 2 : 0;
    int32_t unit = hex_unit(at + 2, end);
    if (unit < 0 || (unit >= 0xDC00 && unit <= 0xDFFF))
        return 0;
    if (unit < 0xD800 || unit > 0xDBFF)
        return 6;
    if (end - at < 8 || at[6] != '\\' || at[7] != 'u')
        return 0;
    int32_t low = hex_unit(at + 8, end);
    return low >= 0xDC00 && low <= 0xDFFF ? 12 : 0;
}

static esdm_status
parse_string(parser *p)
{
    esdm__tape_node *node;
    bool ascii = true;
    if (p->at == p->end || *p->at != '"')
        return wrong(p, "expected a string");
    p->at++;
    esdm_status st = add_node(p, ESDM__TAPE_STRING, &node);
    if (st != ESDM_OK)
        return st;
    const char *start = p->at;
    for (;;) {
        if (p->at == p->end)
            return wrong(p, "the text ends within a string");
        unsigned char c = (unsigned char) *p->at;
        if (c == '"')
            break;
        if (c < 0x20)
            return wrong(p, "control character in a string");
        if (c == '\\') {
            size_t bytes = escape_bytes(p->at, p->end);
            if (bytes == 0)
                return wrong(p, "invalid escape in a string");
            node->escaped = true;
            p->at += bytes;
        } else {
            ascii = ascii && c < 0x80;
            p->at++;
        }
    }
    node->length = (uint32_t) (p->at - start);
    if (!ascii && !esdm__utf8_is_valid(start, node->length))
        return wrong(p, "the string before is not valid UTF-8");
    p->at++;
    return ESDM_OK;
}

static bool
skip_digits(parser *p)
{
    const char *start = p->at;
    while (p->at < p->end && *p->at >= '0' && *p->at <= '9')
        p->at++;
    return p->at > start;
}

static esdm_status
parse_number(parser *p)
{
    esdm__tape_node *node;
    const char *start = p->at;
    esdm_status st = add_node(p, ESDM__TAPE_NUMBER, &node);
    if (st != ESDM_OK)
        return st;
    if (*p->at == '-')
        p->at++;
    if (p->at < p->end && *p->at == '0')
        p->at++;
    else if (!skip_digits(p))
        return wrong(p, "expected a digit");
    if (p->at < p->end && *p->at == '.') {
        p->at++;
        if (!skip_digits(p))
            return wrong(p, "expected a digit behind the point");
    }
    if (p->at < p->end && (*p->at == 'e' || *p->at == 'E')) {
        p->at++;
        if (p->at < p->end && (*p->at == '+' || *p->at == '-'))
            p->at++;
        if (!skip_digits(p))
            return wrong(p, "expected a digit in the exponent");
    }
    node->length = (uint32_t) (p->at - start);
    return ESDM_OK;
}

static esdm_status
parse_word(parser *p)
{
    static const struct {
        const char *text;
        size_t bytes;
        esdm__tape_kind kind;
    } words[] = {
        {"null", 4, ESDM__TAPE_NULL}, {"true", 4, ESDM__TAPE_TRUE}, {"false", 5, ESDM__TAPE_FALSE}};
    for (size_t i = 0; i < 3; i++) {
        esdm__tape_node *node;
        if ((size_t) (p->end - p->at) < words[i].bytes ||
            memcmp(p->at, words[i].text, words[i].bytes) != 0)
            continue;
        esdm_status st = add_node(p, words[i].kind, &node);
        p->at += words[i].bytes;
        return st;
    }
    return wrong(p, "expected a value");
}

/* ---- structure ----------------------------------------------------------------------------- */

static esdm_status
open_value(parser *p, esdm__tape_kind kind)
{
    esdm__tape_node *node;
    if (p->depth == ESDM__TAPE_MAX_DEPTH)
        return wrong(p, "values are nested too deeply");
    p->open[p->depth++] = p->tape->count;
    esdm_status st = add_node(p, kind, &node);
    p->at++;
    return st;
}

/* Takes the closing bracket if it is there. */
static bool
close_value(parser *p)
{
    esdm__tape_node *node = &p->tape->nodes[p->open[p->depth - 1]];
    char bracket = node->kind == ESDM__TAPE_ARRAY ? ']' : '}';
    skip_space(p);
    if (p->at == p->end || *p->at != bracket)
        return false;
    p->at++;
    node->next = p->tape->count;
    p->depth--;
    return true;
}

/* Key and colon of an object's member; counts the value to come. */
static esdm_status
start_child(parser *p)
{
    uint32_t parent = p->open[p->depth - 1];
    p->tape->nodes[parent].length++;
    skip_space(p);
    if (p->tape->nodes[parent].kind == ESDM__TAPE_ARRAY)
        return ESDM_OK;
    esdm_status st = parse_string(p);
    if (st != ESDM_OK)
        return st;
    skip_space(p);
    if (p->at == p->end || *p->at != ':')
        return wrong(p, "expected ':'");
    p->at++;
    skip_space(p);
    return ESDM_OK;
}

/* One value; of an array or object that is not empty only its beginning, up to the first child. */
static esdm_status
parse_value(parser *p, bool *ret_complete)
{
    *ret_complete = true;
    if (p->at == p->end)
        return wrong(p, "expected a value");
    if (*p->at == '"')
        return parse_string(p);
    if (*p->at == '-' || (*p->at >= '0' && *p->at <= '9'))
        return parse_number(p);
    if (*p->at != '{' && *p->at != '[')
        return parse_word(p);
    esdm_status st = open_value(p, *p->at == '{' ? ESDM__TAPE_OBJECT : ESDM__TAPE_ARRAY);
    if (st != ESDM_OK || close_value(p))
        return st;
    *ret_complete = false;
    return start_child(p);
}

/* Behind a complete value: closes what ends here; a comma leads to the next value. */
static esdm_status
end_value(parser *p)
{
    while (p->depth > 0 && close_value(p))
        ;
    if (p->depth == 0)
        return ESDM_OK;
    if (p->at == p->end || *p->at != ',')
        return wrong(p, "expected ',' or a closing bracket");
    p->at++;
    return start_child(p);
}

esdm_status
esdm__tape_parse(esdm__tape *tape, const char *text, size_t bytes, esdm_error *err)
{
    parser p = {.tape = tape, .at = text, .end = text + bytes, .err = err};
    bool complete;
    memset(tape, 0, sizeof *tape);
    tape->text = text;
    tape->bytes = bytes;
    if (bytes > ESDM__TAPE_MAX_BYTES)
        return esdm__error_set(err, ESDM_ECORRUPT, "%zu bytes are too many", bytes);

    skip_space(&p);
    do {
        esdm_status st = parse_value(&p, &complete);
        if (st == ESDM_OK && complete)
            st = end_value(&p);
        if (st != ESDM_OK)
            return st;
    } while (!complete || p.depth > 0);
    skip_space(&p);
    return p.at == p.end ? ESDM_OK : wrong(&p, "text behind the document");
}

void
esdm__tape_clear(esdm__tape *tape)
{
    free(tape->nodes);
    memset(tape, 0, sizeof *tape);
}

/* ---- strings ------------------------------------------------------------------------------- */

bool
esdm__tape_equals(const esdm__tape *tape, const esdm__tape_node *node, const char *text,
                  size_t bytes)
{
    return node->length == bytes && !node->escaped &&
           memcmp(tape->text + node->start, text, bytes) == 0;
}

static size_t
put_utf8(uint32_t c, char *to)
{
    if (c < 0x80) {
        to[0] = (char) c;
        return 1;
    }
    if (c < 0x800) {
        to[0] = (char) (0xC0 | c >> 6);
        to[1] = (char) (0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        to[0] = (char) (0xE0 | c >> 12);
        to[1] = (char) (0x80 | (c >> 6 & 0x3F));
        to[2] = (char) (0x80 | (c & 0x3F));
        return 3;
    }
    to[0] = (char) (0xF0 | c >> 18);
    to[1] = (char) (0x80 | (c >> 12 & 0x3F));
    to[2] = (char) (0x80 | (c >> 6 & 0x3F));
    to[3] = (char) (0x80 | (c & 0x3F));
    return 4;
}

/* Decodes the escape at *at, which was checked, and moves *at behind it. */
static size_t
decode_escape(const char **at, const char *end, char *to)
{
    static const char letters[] = "bfnrt";
    static const char meanings[] = "\b\f\n\r\t";
    const char *escape = *at;
    if (escape[1] != 'u') {
        const char *letter = strchr(letters, escape[1]);
        *to = (char) (letter != NULL ? meanings[letter - letters] : escape[1]);
        *at += 2;
        return 1;
    }
    uint32_t unit = (uint32_t) hex_unit(escape + 2, end);
    *at += 6;
    if (unit >= 0xD800 && unit <= 0xDBFF) {
        uint32_t low = (uint32_t) hex_unit(escape + 8, end);
        unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
        *at += 6;
    }
    return put_utf8(unit, to);
}

size_t
esdm__tape_decode(const esdm__tape *tape, const esdm__tape_node *node, char *ret_text)
{
    const char *at = tape->text + node->start;
    const char *end = at + node->length;
    size_t used = 0;
    if (!node->escaped) {
        memcpy(ret_text, at, node->length);
        return node->length;
    }
    while (at < end) {
        if (*at == '\\')
            used += decode_escape(&at, end, ret_text + used);
        else
            ret_text[used++] = *at++;
    }
    return used;
}

const char *
esdm__tape_kind_name(const esdm__tape_node *node)
{
    static const char *const names[] = {"null",     "false",    "true",     "a number",
                                        "a string", "an array", "an object"};
    return names[node->kind];
}
