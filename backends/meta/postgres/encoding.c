/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Texts, lengths and attributes as the server takes them. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "postgres.h"

/* ---- texts ---------------------------------------------------------------------------------- */

/* The server takes valid UTF-8 only, and attributes may hold any bytes: a byte b >= 0x80 that
 * belongs to no character becomes U+10FF00 + b, which is F4 8F BC+x xx. To undo it without doubt,
 * the bytes of such characters are taken apart, too. */

/* Bytes of the character at `text`, 0 when there is none that may stay as it is. */
static size_t
character_bytes(const unsigned char *text)
{
    static const struct {
        unsigned char first_low, first_high, second_low, second_high;
        size_t bytes;
    } forms[] = {
        {0x01, 0x7f, 0, 0xff, 1},    {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (text[0] < forms[i].first_low || text[0] > forms[i].first_high)
            continue;
        if (forms[i].bytes > 1 && (text[1] < forms[i].second_low || text[1] > forms[i].second_high))
            return 0;
        for (size_t k = 2; k < forms[i].bytes; k++) {
            if (text[k] < 0x80 || text[k] > 0xbf)
                return 0;
        }
        bool ours = forms[i].bytes == 4 && text[0] == 0xf4 && text[1] == 0x8f && text[2] >= 0xbc;
        return ours ? 0 : forms[i].bytes;
    }
    return 0;
}

static void
put_byte(esdm__buffer *buffer, unsigned char byte)
{
    esdm__buffer_put_u8(buffer, 0xf4);
    esdm__buffer_put_u8(buffer, 0x8f);
    esdm__buffer_put_u8(buffer, (uint8_t) (0xbc + (byte >> 6)));
    esdm__buffer_put_u8(buffer, (uint8_t) (0x80 + (byte & 0x3f)));
}

void
postgres__put_text(esdm__buffer *buffer, const char *text)
{
    for (const unsigned char *at = (const unsigned char *) text; *at != '\0';) {
        size_t bytes = character_bytes(at);
        if (bytes > 0)
            esdm__buffer_put(buffer, at, bytes);
        else
            put_byte(buffer, *at);
        at += bytes > 0 ? bytes : 1;
    }
}

void
postgres__restore_text(char *text)
{
    unsigned char *to = (unsigned char *) text;
    for (const unsigned char *at = to; *at != '\0';) {
        if (at[0] == 0xf4 && at[1] == 0x8f && at[2] >= 0xbc) {
            *to++ = (unsigned char) ((at[2] - 0xbc) << 6 | (at[3] & 0x3f));
            at += 4;
        } else {
            *to++ = *at++;
        }
    }
    *to = '\0';
}

void
postgres__put_json(esdm__buffer *buffer, const char *text)
{
    esdm__buffer_put_u8(buffer, '"');
    for (const unsigned char *at = (const unsigned char *) text; *at != '\0';) {
        size_t bytes = character_bytes(at);
        char escape[8];
        if (*at < 0x20 || *at == '"' || *at == '\\') {
            int n = snprintf(escape, sizeof escape, *at < 0x20 ? "\\u%04x" : "\\%c", *at);
            esdm__buffer_put(buffer, escape, (size_t) n);
        } else if (bytes > 0) {
            esdm__buffer_put(buffer, at, bytes);
        } else {
            put_byte(buffer, *at);
        }
        at += bytes > 0 ? bytes : 1;
    }
    esdm__buffer_put_u8(buffer, '"');
}

void
postgres__put_number(esdm__buffer *buffer, double number)
{
    char text[40];
    if (isinf(number))
        (void) snprintf(text, sizeof text, "%s", number < 0 ? "-1e999" : "1e999");
    else
        (void) snprintf(text, sizeof text, "%.17g", number);
    for (char *at = text; *at != '\0'; at++) {
        if (*at == ',') /* the program's language */
            *at = '.';
    }
    esdm__buffer_put(buffer, text, strlen(text));
}

/* ---- attributes ----------------------------------------------------------------------------- */

static void
put(esdm__buffer *buffer, const char *text)
{
    esdm__buffer_put(buffer, text, strlen(text));
}

static bool
is_text(const esdm_meta_attribute *attribute)
{
    return !attribute->has_number;
}

/* One entry's value of a kind: 's' texts, 'd' numbers, 'f' the texts of numbers. */
static void
put_value(esdm__buffer *buffer, const esdm_meta_attribute *attribute, char kind)
{
    if (kind == 'd' && isnan(attribute->number)) {
        put(buffer, "null");
    } else if (kind == 'd') {
        postgres__put_number(buffer, attribute->number);
    } else if (attribute->text != NULL) {
        postgres__put_json(buffer, attribute->text);
    } else {
        put(buffer, "\"");
        postgres__put_number(buffer, attribute->number);
        put(buffer, "\"");
    }
}

/* "kind": {"name": [value, ...], ...} over the attributes that have values of the kind. */
static void
put_kind(esdm__buffer *buffer, const esdm_meta_attribute *first, size_t count, char kind)
{
    char head[8];
    size_t names = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_text(&first[i]) != (kind == 's'))
            continue;
        bool same = i > 0 && is_text(&first[i - 1]) == is_text(&first[i]) &&
                    strcmp(first[i - 1].name, first[i].name) == 0;
        (void) snprintf(head, sizeof head, ",\"%c\":{", kind);
        put(buffer, names == 0 ? head : same ? "," : "],");
        if (!same) {
            postgres__put_json(buffer, first[i].name);
            put(buffer, ":[");
        }
        names++;
        put_value(buffer, &first[i], kind);
    }
    if (names > 0)
        put(buffer, "]}");
}

/* {"n": [names], "s": {name: [texts]}, "d": {name: [numbers]}, "f": {name: [numbers as texts]}} */
static void
put_object(esdm__buffer *buffer, const esdm_meta_attribute *first, size_t count)
{
    put(buffer, "{\"n\":[");
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && strcmp(first[i - 1].name, first[i].name) == 0)
            continue;
        put(buffer, i > 0 ? "," : "");
        postgres__put_json(buffer, first[i].name);
    }
    put(buffer, "]");
    put_kind(buffer, first, count, 's');
    put_kind(buffer, first, count, 'd');
    put_kind(buffer, first, count, 'f');
    put(buffer, "}");
}

static size_t
object_size(const esdm_meta_attribute *first, size_t count)
{
    size_t size = 1;
    while (size < count && first[size].dataset == first->dataset)
        size++;
    return size;
}

static esdm_status
put_bodies(postgres__params *params, const esdm_meta_attribute *attributes, size_t count,
           esdm_error *err)
{
    esdm__buffer json;
    esdm__buffer_init(&json);
    postgres__array_begin(params, POSTGRES__TEXTS);
    for (size_t i = 0; i < count; i += object_size(attributes + i, count - i)) {
        json.bytes = 0;
        put_object(&json, attributes + i, object_size(attributes + i, count - i));
        postgres__array_bytes(params, json.data, json.failed ? 0 : json.bytes);
    }
    postgres__array_end(params);
    bool failed = json.failed;
    esdm__buffer_clear(&json);
    return failed ? esdm__error_nomem(err, json.bytes, "attributes") : ESDM_OK;
}

esdm_status
postgres__put_objects(postgres__params *params, const esdm_meta_attribute *attributes, size_t count,
                      esdm_error *err)
{
    postgres__array_begin(params, POSTGRES__INTS);
    for (size_t i = 0; i < count; i += object_size(attributes + i, count - i))
        postgres__array_int(params, attributes[i].dataset);
    postgres__array_end(params);
    postgres__array_begin(params, POSTGRES__TEXTS);
    for (size_t i = 0; i < count; i += object_size(attributes + i, count - i)) {
        const char *path = attributes[i].dataset_path;
        if (path == NULL)
            postgres__array_null(params);
        else
            postgres__array_bytes(params, path, strlen(path));
    }
    postgres__array_end(params);
    return put_bodies(params, attributes, count, err);
}

/* ---- lengths -------------------------------------------------------------------------------- */

void
postgres__put_lengths(postgres__params *params, const esdm_meta_length *lengths, size_t count)
{
    postgres__array_begin(params, POSTGRES__INTS);
    for (size_t i = 0; i < count; i++)
        postgres__array_int(params, lengths[i].dimension);
    postgres__array_end(params);
    postgres__array_begin(params, POSTGRES__TEXTS);
    for (size_t i = 0; i < count; i++) {
        char text[24];
        int n = snprintf(text, sizeof text, "%llu", (unsigned long long) lengths[i].length);
        postgres__array_bytes(params, text, (size_t) n);
    }
    postgres__array_end(params);
}

static size_t
count_words(const char *text)
{
    size_t count = *text != '\0';
    for (; *text != '\0'; text++)
        count += *text == ' ';
    return count;
}

esdm_status
postgres__read_lengths(const char *dimensions, const char *lengths, esdm_meta_length **ret_lengths,
                       size_t *ret_count, esdm_error *err)
{
    size_t count = count_words(dimensions);
    *ret_lengths = NULL;
    *ret_count = 0;
    if (count == 0)
        return ESDM_OK;
    if (count_words(lengths) != count)
        return esdm__error_set(err, ESDM_ECORRUPT, "metadata store: damaged lengths of dimensions");
    esdm_meta_length *all = malloc(count * sizeof *all);
    if (all == NULL)
        return esdm__error_nomem(err, count * sizeof *all, "lengths of dimensions");
    for (size_t i = 0; i < count; i++) {
        char *end = NULL;
        all[i].dimension = (uint32_t) strtoul(dimensions, &end, 10);
        dimensions = end + (*end == ' ');
        all[i].length = strtoull(lengths, &end, 10);
        lengths = end + (*end == ' ');
    }
    *ret_lengths = all;
    *ret_count = count;
    return ESDM_OK;
}
