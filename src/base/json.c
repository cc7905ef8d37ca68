/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "base/json.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/error.h"

/* ---- documents ---------------------------------------------------------------------------- */

/* What people write that JSON does not have; "" when it is something else.
 * @param end behind the token that was wrong. */
static const char *
syntax_hint(const char *text, size_t bytes, size_t end)
{
    if (bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        return "; the text begins with a byte order mark (BOM): save it as UTF-8 without one";
    if (end == 0 || end > bytes)
        return "";
    switch (text[--end]) {
    case '/':
    case '#':
        return "; JSON has no comments";
    case '\'':
        return "; texts stand in double quotes";
    case '}':
    case ']':
        while (end > 0 && isspace((unsigned char) text[end - 1]))
            end--;
        return end > 0 && text[end - 1] == ',' ? "; take away the comma before it" : "";
    default:
        return "";
    }
}

/* Takes the quotation out of a message about a document that may hold secrets. */
static void
hide_secrets(const char *text, size_t bytes, char *message)
{
    static const char *const words[] = {"secret", "password", "token"};
    char *quotation = strstr(message, " near '");
    for (size_t i = 0; quotation != NULL && i < sizeof words / sizeof words[0]; i++) {
        if (memmem(text, bytes, words[i], strlen(words[i])) != NULL)
            *quotation = '\0';
    }
}

/* How deep it is nested Jansson limits itself (2048). @param ret_problem may be NULL. */
static json_t *
parse(const char *text, size_t bytes, size_t also, json_error_t *ret_problem)
{
    return json_loadb(text, bytes, JSON_REJECT_DUPLICATES | also, ret_problem);
}

static json_t *
read_text(const char *text, size_t also)
{
    size_t bytes = text != NULL ? strnlen(text, ESDM__JSON_MAX_BYTES + 1) : 0;
    return bytes > 0 && bytes <= ESDM__JSON_MAX_BYTES ? parse(text, bytes, also, NULL) : NULL;
}

json_t *
esdm__json_read(const char *text)
{
    return read_text(text, 0);
}

json_t *
esdm__json_read_any(const char *text)
{
    return read_text(text, JSON_DECODE_ANY);
}

esdm_status
esdm__json_parse(const char *text, size_t bytes, const char *source, json_t **ret_value,
                 esdm_error *err)
{
    if (bytes > ESDM__JSON_MAX_BYTES)
        return esdm__error_set(err, ESDM_EINVAL, "%s: %zu bytes are too long for a configuration",
                               source, bytes);
    json_error_t problem;
    json_t *value = parse(text, bytes, 0, &problem);
    if (value != NULL) {
        *ret_value = value;
        return ESDM_OK;
    }
    /* Jansson leaves the text empty when it could not even begin. */
    if (json_error_code(&problem) == json_error_out_of_memory || problem.text[0] == '\0')
        return esdm__error_nomem(err, bytes, "a JSON document");
    hide_secrets(text, bytes, problem.text);
    return esdm__error_set(
        err, ESDM_EINVAL, "%s: line %d, column %d: %s%s", source, problem.line, problem.column,
        problem.text,
        syntax_hint(text, bytes, problem.position > 0 ? (size_t) problem.position : 0));
}

static esdm_status
read_all(FILE *file, const char *path, esdm__buffer *buffer, esdm_error *err)
{
    for (;;) {
        const size_t step = 16384;
        uint8_t *to = esdm__buffer_reserve(buffer, step);
        if (to == NULL)
            return esdm__error_nomem(err, buffer->bytes + step, path);
        errno = 0;
        size_t got = fread(to, 1, step, file);
        buffer->bytes += got;
        if (ferror(file))
            return esdm__error_set_errno(err, errno, "cannot read '%s'", path);
        if (buffer->bytes > ESDM__JSON_MAX_BYTES)
            return esdm__error_set(err, ESDM_EINVAL, "%s: too long for a configuration", path);
        if (got < step)
            return ESDM_OK;
    }
}

esdm_status
esdm__json_load(const char *path, json_t **ret_value, esdm_error *err)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return esdm__error_set_errno(err, errno, "cannot open '%s'", path);
    esdm_status status = esdm__json_load_file(file, path, ret_value, err);
    (void) fclose(file);
    return status;
}

esdm_status
esdm__json_load_file(FILE *file, const char *path, json_t **ret_value, esdm_error *err)
{
    esdm__buffer buffer;
    esdm__buffer_init(&buffer);
    esdm_status status = read_all(file, path, &buffer, err);
    if (status == ESDM_OK)
        status = esdm__json_parse((const char *) buffer.data, buffer.bytes, path, ret_value, err);
    esdm__buffer_clear(&buffer);
    return status;
}

/* ---- nodes and their paths ---------------------------------------------------------------- */

esdm__json_node
esdm__json_root(json_t *value, const char *source)
{
    return (esdm__json_node){.value = value, .source = source};
}

bool
esdm__json_member(const esdm__json_node *object, const char *key, esdm__json_node *ret_node)
{
    json_t *value = json_object_get(object->value, key);
    if (value == NULL)
        return false;
    *ret_node =
        (esdm__json_node){.value = value, .source = object->source, .parent = object, .key = key};
    return true;
}

esdm_status
esdm__json_require(const esdm__json_node *object, const char *key, esdm__json_node *ret_node,
                   esdm_error *err)
{
    if (esdm__json_member(object, key, ret_node))
        return ESDM_OK;
    return esdm__json_error(object, err, "the key \"%s\" is missing", key);
}

esdm__json_node
esdm__json_element(const esdm__json_node *array, size_t index)
{
    return (esdm__json_node){.value = json_array_get(array->value, index),
                             .source = array->source,
                             .parent = array,
                             .index = index};
}

/* Appends to a text that may have been cut already. */
static size_t append_text(char *text, size_t used, size_t bytes, const char *format, ...)
    ESDM_PRINTF(4, 5);

static size_t
append_text(char *text, size_t used, size_t bytes, const char *format, ...)
{
    if (used + 1 >= bytes)
        return used;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text + used, bytes - used, format, args);
    va_end(args);
    if (n < 0)
        return used;
    return (size_t) n < bytes - used ? used + (size_t) n : bytes - 1;
}

static size_t
append_path(const esdm__json_node *node, char *path, size_t bytes)
{
    if (node->parent == NULL)
        return 0;
    size_t used = append_path(node->parent, path, bytes);
    if (node->key == NULL)
        return append_text(path, used, bytes, "[%zu]", node->index);
    return append_text(path, used, bytes, "%s%s", used > 0 ? "." : "", node->key);
}

void
esdm__json_path(const esdm__json_node *node, char *ret_path, size_t bytes)
{
    if (bytes > 0)
        ret_path[0] = '\0';
    (void) append_path(node, ret_path, bytes);
}

esdm_status
esdm__json_error(const esdm__json_node *node, esdm_error *err, const char *format, ...)
{
    char text[ESDM_ERROR_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    (void) vsnprintf(text, sizeof text, format, args);
    va_end(args);
    char path[256];
    esdm__json_path(node, path, sizeof path);
    return esdm__error_set(err, ESDM_EINVAL, "%s: %s%s%s", node->source, path,
                           path[0] != '\0' ? ": " : "", text);
}

/* ---- types -------------------------------------------------------------------------------- */

static const char *
found_type(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    case JSON_NULL:
        return "null";
    }
    return "something else";
}

static esdm_status
wrong_type(const esdm__json_node *node, const char *expected, esdm_error *err)
{
    return esdm__json_error(node, err, "expected %s, found %s", expected, found_type(node->value));
}

esdm_status
esdm__json_is_object(const esdm__json_node *node, esdm_error *err)
{
    return json_is_object(node->value) ? ESDM_OK : wrong_type(node, "an object", err);
}

esdm_status
esdm__json_is_array(const esdm__json_node *node, esdm_error *err)
{
    return json_is_array(node->value) ? ESDM_OK : wrong_type(node, "an array", err);
}

esdm_status
esdm__json_list(const esdm__json_node *object, const char *key, size_t max,
                esdm__json_node *ret_list, size_t *ret_count, esdm_error *err)
{
    *ret_count = 0;
    if (!esdm__json_member(object, key, ret_list))
        return ESDM_OK;
    esdm_status status = esdm__json_is_array(ret_list, err);
    if (status != ESDM_OK)
        return status;
    size_t count = json_array_size(ret_list->value);
    if (count > max)
        return esdm__json_error(ret_list, err, "more than %zu %s", max, key);
    *ret_count = count;
    return ESDM_OK;
}

esdm_status
esdm__json_string(const esdm__json_node *node, const char **ret_text, esdm_error *err)
{
    if (!json_is_string(node->value))
        return wrong_type(node, "a string", err);
    /* Jansson refuses \u0000 unless asked for, so the text ends where it says. */
    *ret_text = json_string_value(node->value);
    return ESDM_OK;
}

static bool
is_among(const char *word, const char *const *known, size_t *ret_index)
{
    for (size_t i = 0; known[i] != NULL; i++) {
        if (strcmp(word, known[i]) == 0) {
            *ret_index = i;
            return true;
        }
    }
    return false;
}

/* "a, b, c" */
static void
join_words(const char *const *words, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; words[i] != NULL; i++)
        used = append_text(text, used, bytes, "%s%s", i > 0 ? ", " : "", words[i]);
}

esdm_status
esdm__json_choice(const esdm__json_node *node, const char *const *choices, size_t *ret_index,
                  esdm_error *err)
{
    const char *text = NULL;
    esdm_status status = esdm__json_string(node, &text, err);
    if (status != ESDM_OK || is_among(text, choices, ret_index))
        return status;
    char list[256];
    join_words(choices, list, sizeof list);
    return esdm__json_error(node, err, "unknown value \"%.64s\", choose one of: %s", text, list);
}

esdm_status
esdm__json_u64(const esdm__json_node *node, uint64_t min, uint64_t max, uint64_t *ret_value,
               esdm_error *err)
{
    if (json_is_real(node->value))
        return esdm__json_error(node, err, "expected a whole number, found %g",
                                json_real_value(node->value));
    if (!json_is_integer(node->value))
        return wrong_type(node, "a number", err);
    json_int_t value = json_integer_value(node->value);
    if (value < 0 || (uint64_t) value < min || (uint64_t) value > max)
        return esdm__json_error(node, err,
                                "%" JSON_INTEGER_FORMAT " is outside %" PRIu64 " ... %" PRIu64,
                                value, min, max);
    *ret_value = (uint64_t) value;
    return ESDM_OK;
}

esdm_status
esdm__json_size(const esdm__json_node *node, uint64_t min, uint64_t max, uint64_t *ret_bytes,
                esdm_error *err)
{
    if (json_is_number(node->value))
        return esdm__json_u64(node, min, max, ret_bytes, err);
    if (!json_is_string(node->value))
        return wrong_type(node, "a number of bytes or a text such as \"4 MiB\"", err);
    const char *text = json_string_value(node->value);
    uint64_t bytes = 0;
    if (!esdm__size_parse(text, &bytes))
        return esdm__json_error(node, err, "\"%.64s\" is not a size; write bytes or \"4 MiB\"",
                                text);
    if (bytes < min || bytes > max)
        return esdm__json_error(node, err, "\"%.64s\" is outside %" PRIu64 " ... %" PRIu64 " bytes",
                                text, min, max);
    *ret_bytes = bytes;
    return ESDM_OK;
}

/* ---- known keys --------------------------------------------------------------------------- */

#define WORD_MAX_BYTES 64

static unsigned
smallest(unsigned a, unsigned b, unsigned c)
{
    unsigned least = a < b ? a : b;
    return least < c ? least : c;
}

/* Levenshtein distance without regard to case; UINT_MAX-like for over-long words. */
static unsigned
edit_distance(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b);
    if (na > WORD_MAX_BYTES || nb > WORD_MAX_BYTES)
        return 2 * WORD_MAX_BYTES;
    unsigned row[WORD_MAX_BYTES + 1];
    for (unsigned j = 0; j <= nb; j++)
        row[j] = j;
    for (unsigned i = 1; i <= na; i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            bool same = tolower((unsigned char) a[i - 1]) == tolower((unsigned char) b[j - 1]);
            unsigned next = smallest(row[j] + 1, row[j - 1] + 1, diagonal + (same ? 0 : 1));
            diagonal = row[j];
            row[j] = next;
        }
    }
    return row[nb];
}

/* Whether one is the other's beginning: "dir" for "directory". */
static bool
begins(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b);
    size_t shorter = na < nb ? na : nb;
    return shorter >= 3 && strncasecmp(a, b, shorter) == 0;
}

const char *
esdm__nearest_word(const char *word, const char *const *known)
{
    const char *nearest = NULL;
    bool begun = false;
    unsigned least = 0;
    for (size_t i = 0; known[i] != NULL; i++) {
        unsigned distance = edit_distance(word, known[i]);
        /* One letter more or less is as good as a beginning. */
        bool begins_so = begins(word, known[i]) || (distance == 1 && strlen(known[i]) > 3);
        /* Half of the letters must be right, or one is only guessing. */
        if (!begins_so && (begun || distance > strlen(known[i]) / 2))
            continue;
        if (nearest == NULL || begins_so > begun || distance < least) {
            begun = begins_so;
            nearest = known[i];
            least = distance;
        }
    }
    return nearest;
}

static esdm_status
unknown_key(const esdm__json_node *object, const char *key, const char *const *keys,
            esdm_error *err)
{
    const char *nearest = esdm__nearest_word(key, keys);
    if (nearest != NULL)
        return esdm__json_error(object, err, "unknown key \"%.64s\"; did you mean \"%s\"?", key,
                                nearest);
    char list[256];
    join_words(keys, list, sizeof list);
    return esdm__json_error(object, err, "unknown key \"%.64s\"; known keys: %s", key, list);
}

esdm_status
esdm__json_known_keys(const esdm__json_node *object, const char *const *keys, esdm_error *err)
{
    esdm_status status = esdm__json_is_object(object, err);
    if (status != ESDM_OK)
        return status;
    const char *key;
    json_t *value;
    json_object_foreach(object->value, key, value)
    {
        size_t index;
        if (!is_among(key, keys, &index))
            return unknown_key(object, key, keys, err);
    }
    return ESDM_OK;
}

/* ---- sizes -------------------------------------------------------------------------------- */

/* Bytes of a unit name; 0 when there is no such unit. */
static uint64_t
unit_bytes(const char *unit)
{
    static const char letters[] = "KMGTP";
    if (unit[0] == '\0' || strcasecmp(unit, "b") == 0)
        return 1;
    const char *letter = strchr(letters, toupper((unsigned char) unit[0]));
    if (letter == NULL)
        return 0;
    const char *rest = unit + 1;
    uint64_t base = strcasecmp(rest, "b") == 0 ? 1000 : 1024;
    if (base == 1024 && rest[0] != '\0' && strcasecmp(rest, "ib") != 0)
        return 0;
    uint64_t bytes = 1;
    for (const char *at = letters; at <= letter; at++)
        bytes *= base;
    return bytes;
}

static const char *
skip_blanks(const char *at)
{
    while (*at == ' ' || *at == '\t')
        at++;
    return at;
}

bool
esdm__size_parse(const char *text, uint64_t *ret_bytes)
{
    const char *at = skip_blanks(text);
    uint64_t whole = 0, fraction = 0, scale = 1;
    if (!isdigit((unsigned char) *at))
        return false;
    for (; isdigit((unsigned char) *at); at++) {
        if (!esdm__mul_u64(whole, 10, &whole) ||
            !esdm__add_u64(whole, (uint64_t) (*at - '0'), &whole))
            return false;
    }
    if (*at == '.') {
        for (at++; isdigit((unsigned char) *at); at++) {
            if (scale < 1000) { /* three decimals are enough for people */
                scale *= 10;
                fraction = 10 * fraction + (uint64_t) (*at - '0');
            }
        }
    }
    char unit[8] = "";
    at = skip_blanks(at);
    size_t n = 0;
    while (isalpha((unsigned char) *at) && n + 1 < sizeof unit)
        unit[n++] = *at++;
    uint64_t bytes = unit_bytes(unit);
    if (bytes == 0 || *skip_blanks(at) != '\0' || !esdm__mul_u64(whole, bytes, &whole) ||
        !esdm__add_u64(whole, fraction * bytes / scale, &whole))
        return false;
    *ret_bytes = whole;
    return true;
}
