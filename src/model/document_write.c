/* SPDX-License-Identifier: LGPL-3.0-or-later */
/** @file Writing the container document (schemas/container.schema.json). */

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/attribute.h"
#include "model/tape.h"

/* ---- texts --------------------------------------------------------------------------------- */

static void
put_text(esdm__buffer *out, const char *text)
{
    esdm__buffer_put(out, text, strlen(text));
}

static void
put_escape(esdm__buffer *out, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    char escape[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
    switch (c) {
    case '"':
    case '\\':
        escape[1] = (char) c;
        break;
    case '\n':
        escape[1] = 'n';
        break;
    case '\t':
        escape[1] = 't';
        break;
    default:
        esdm__buffer_put(out, escape, 6);
        return;
    }
    esdm__buffer_put(out, escape, 2);
}

/* Valid UTF-8 as a JSON string. */
static void
put_string(esdm__buffer *out, const char *text, size_t bytes)
{
    size_t start = 0;
    esdm__buffer_put_u8(out, '"');
    for (size_t i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char) text[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        esdm__buffer_put(out, text + start, i - start);
        put_escape(out, c);
        start = i + 1;
    }
    esdm__buffer_put(out, text + start, bytes - start);
    esdm__buffer_put_u8(out, '"');
}

static void
put_base64(esdm__buffer *out, const unsigned char *data, size_t bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < bytes; i += 3) {
        size_t n = bytes - i < 3 ? bytes - i : 3;
        uint32_t group = (uint32_t) data[i] << 16;
        group |= n > 1 ? (uint32_t) data[i + 1] << 8 : 0;
        group |= n > 2 ? data[i + 2] : 0;
        char text[4] = {digits[group >> 18], digits[group >> 12 & 63],
                        (char) (n > 1 ? digits[group >> 6 & 63] : '='),
                        (char) (n > 2 ? digits[group & 63] : '=')};
        esdm__buffer_put(out, text, 4);
    }
}

/* Any bytes: a JSON string, or {"base64": …} when they are not UTF-8. */
static void
put_bytes(esdm__buffer *out, const char *text, size_t bytes)
{
    if (esdm__utf8_is_valid(text, bytes)) {
        put_string(out, text, bytes);
        return;
    }
    put_text(out, "{\"base64\":\"");
    put_base64(out, (const unsigned char *) text, bytes);
    put_text(out, "\"}");
}

/* ---- numbers ------------------------------------------------------------------------------- */

static void
put_u64(esdm__buffer *out, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char) ('0' + value % 10);
        value /= 10;
    } while (value > 0);
    esdm__buffer_put(out, digits + at, sizeof digits - at);
}

/* Many readers of JSON hold integers in int64; larger ones are texts. */
static void
put_large_u64(esdm__buffer *out, uint64_t value)
{
    bool text = value > INT64_MAX;
    if (text)
        esdm__buffer_put_u8(out, '"');
    put_u64(out, value);
    if (text)
        esdm__buffer_put_u8(out, '"');
}

static void
put_i64(esdm__buffer *out, int64_t value)
{
    if (value < 0)
        esdm__buffer_put_u8(out, '-');
    put_u64(out, value < 0 ? 0 - (uint64_t) value : (uint64_t) value);
}

/* A number that looks like an integer gets ".0", so that readers keep -0.0 and the kind. */
static void
put_float_text(esdm__buffer *out, const char *text)
{
    put_text(out, text);
    if (strpbrk(text, ".e") == NULL)
        put_text(out, ".0");
}

/* The fewest digits that give the value back. The caller has set the "C" locale. */
static void
put_f64(esdm__buffer *out, double value)
{
    char text[32];
    if (!isfinite(value)) {
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        (void) snprintf(text, sizeof text, "\"0x%016" PRIx64 "\"", bits);
        put_text(out, text);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        (void) snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    put_float_text(out, text);
}

static void
put_f32(esdm__buffer *out, float value)
{
    char text[32];
    if (!isfinite(value)) {
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        (void) snprintf(text, sizeof text, "\"0x%08" PRIx32 "\"", bits);
        put_text(out, text);
        return;
    }
    for (int digits = 6; digits <= 9; digits++) {
        (void) snprintf(text, sizeof text, "%.*g", digits, (double) value);
        if (strtof(text, NULL) == value)
            break;
    }
    put_float_text(out, text);
}

/* ---- values -------------------------------------------------------------------------------- */

/* One element in memory form; text is written by its callers, who know its length. */
static void
put_value(esdm__buffer *out, esdm_type type, const void *value)
{
    switch (type) {
    case ESDM_TYPE_INT8:
        put_i64(out, *(const int8_t *) value);
        break;
    case ESDM_TYPE_INT16:
        put_i64(out, *(const int16_t *) value);
        break;
    case ESDM_TYPE_INT32:
        put_i64(out, *(const int32_t *) value);
        break;
    case ESDM_TYPE_INT64:
        put_i64(out, *(const int64_t *) value);
        break;
    case ESDM_TYPE_UINT8:
        put_u64(out, *(const uint8_t *) value);
        break;
    case ESDM_TYPE_UINT16:
        put_u64(out, *(const uint16_t *) value);
        break;
    case ESDM_TYPE_UINT32:
        put_u64(out, *(const uint32_t *) value);
        break;
    case ESDM_TYPE_UINT64:
        put_large_u64(out, *(const uint64_t *) value);
        break;
    case ESDM_TYPE_FLOAT32:
        put_f32(out, *(const float *) value);
        break;
    case ESDM_TYPE_FLOAT64:
        put_f64(out, *(const double *) value);
        break;
    case ESDM_TYPE_CHAR:
        put_bytes(out, value, 1);
        break;
    default: { /* ESDM_TYPE_STRING: there is no other */
        const char *text = *(const char *const *) value;
        if (text == NULL)
            put_text(out, "null");
        else
            put_bytes(out, text, strlen(text));
        break;
    }
    }
}

static void
put_attribute(esdm__buffer *out, const esdm__attribute_entry *entry)
{
    size_t step = esdm_type_size(entry->type);
    esdm__buffer_put_u8(out, '[');
    put_string(out, entry->name, strlen(entry->name));
    put_text(out, ",\"");
    put_text(out, esdm_type_name(entry->type));
    esdm__buffer_put_u8(out, '"');
    if (entry->type == ESDM_TYPE_CHAR) {
        esdm__buffer_put_u8(out, ',');
        put_bytes(out, entry->count > 0 ? entry->values : "", (size_t) entry->count);
    } else {
        const char *value = entry->values;
        for (uint64_t i = 0; i < entry->count; i++, value += step) {
            esdm__buffer_put_u8(out, ',');
            put_value(out, entry->type, value);
        }
    }
    esdm__buffer_put_u8(out, ']');
}

static void
put_attributes(esdm__buffer *out, const esdm_attributes *list)
{
    if (list->count == 0)
        return;
    put_text(out, ",\"attributes\":[");
    for (size_t i = 0; i < list->count; i++) {
        if (i > 0)
            esdm__buffer_put_u8(out, ',');
        put_attribute(out, &list->items[i]);
    }
    esdm__buffer_put_u8(out, ']');
}

static void
put_hints(esdm__buffer *out, const esdm__hints *hints)
{
    if (hints->count == 0)
        return;
    put_text(out, ",\"hints\":{");
    for (size_t i = 0; i < hints->count; i++) {
        if (i > 0)
            esdm__buffer_put_u8(out, ',');
        put_string(out, hints->items[i].key, strlen(hints->items[i].key));
        esdm__buffer_put_u8(out, ':');
        put_string(out, hints->items[i].value, strlen(hints->items[i].value));
    }
    esdm__buffer_put_u8(out, '}');
}

/* ---- objects ------------------------------------------------------------------------------- */

/* `{"name":"…"` and, unless it is the root, `,"group":n`. */
static void
put_head(esdm__buffer *out, const char *name, const esdm_group *group)
{
    put_text(out, "{\"name\":");
    put_string(out, name, strlen(name));
    if (group->id != 0) {
        put_text(out, ",\"group\":");
        put_u64(out, group->id);
    }
}

static void
put_group(esdm__buffer *out, const void *item)
{
    const esdm_group *group = item;
    if (group->parent == NULL) {
        put_text(out, "{\"name\":\"\"");
    } else {
        put_head(out, group->name, group->parent);
    }
    put_attributes(out, &group->attributes);
    esdm__buffer_put_u8(out, '}');
}

static void
put_dimension(esdm__buffer *out, const void *item)
{
    const esdm_dimension *dimension = item;
    put_head(out, dimension->name, dimension->group);
    if (dimension->unlimited) {
        put_text(out, ",\"unlimited\":true");
    } else {
        put_text(out, ",\"length\":");
        put_large_u64(out, esdm_dimension_length(dimension));
    }
    esdm__buffer_put_u8(out, '}');
}

static void
put_shape(esdm__buffer *out, const esdm_dataset *dataset)
{
    put_text(out, ",\"dimensions\":[");
    for (uint32_t i = 0; i < dataset->rank; i++) {
        if (i > 0)
            esdm__buffer_put_u8(out, ',');
        put_u64(out, dataset->dimensions[i]->id);
    }
    esdm__buffer_put_u8(out, ']');
    if (dataset->chunk == NULL)
        return;
    put_text(out, ",\"chunk\":[");
    for (uint32_t i = 0; i < dataset->rank; i++) {
        if (i > 0)
            esdm__buffer_put_u8(out, ',');
        put_large_u64(out, dataset->chunk[i]);
    }
    esdm__buffer_put_u8(out, ']');
}

static void
put_dataset(esdm__buffer *out, const void *item)
{
    const esdm_dataset *dataset = item;
    put_head(out, dataset->name, dataset->group);
    put_text(out, ",\"id\":");
    put_u64(out, dataset->id);
    put_text(out, ",\"type\":\"");
    put_text(out, esdm_type_name(dataset->type));
    esdm__buffer_put_u8(out, '"');
    put_shape(out, dataset);
    if (dataset->codec != NULL) {
        put_text(out, ",\"codec\":");
        put_string(out, dataset->codec, strlen(dataset->codec));
    }
    if (dataset->fill != NULL) {
        put_text(out, ",\"fill\":");
        put_value(out, dataset->type, dataset->fill);
    }
    put_hints(out, &dataset->hints);
    put_attributes(out, &dataset->attributes);
    esdm__buffer_put_u8(out, '}');
}

static void
put_list(esdm__buffer *out, const char *key, const esdm__pointers *list,
         void (*put)(esdm__buffer *out, const void *item))
{
    put_text(out, ",\n\"");
    put_text(out, key);
    put_text(out, "\":[");
    for (size_t i = 0; i < list->count; i++) {
        put_text(out, i > 0 ? ",\n" : "\n");
        put(out, list->items[i]);
    }
    esdm__buffer_put_u8(out, ']');
}

static void
put_document(esdm__buffer *out, const esdm_container *container)
{
    put_text(out, "{\"format\":");
    put_u64(out, ESDM__DOCUMENT_FORMAT);
    put_text(out, ",\"next_dataset\":");
    put_u64(out, container->next_dataset_id);
    put_hints(out, &container->hints);
    put_list(out, "groups", &container->groups, put_group);
    put_list(out, "dimensions", &container->dimensions, put_dimension);
    put_list(out, "datasets", &container->datasets, put_dataset);
    put_text(out, "}\n");
}

esdm_status
esdm__document_write(const esdm_container *container, char **ret_text, size_t *ret_bytes,
                     esdm_error *err)
{
    esdm__buffer out;
    size_t bytes;
    /* The program may run under a locale with another decimal point. */
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t) 0);
    if (plain == (locale_t) 0)
        return esdm__error_nomem(err, 0, "the C locale");
    locale_t before = uselocale(plain);
    esdm__buffer_init(&out);
    put_document(&out, container);
    esdm__buffer_put_u8(&out, '\0');
    (void) uselocale(before);
    freelocale(plain);

    if (out.failed) {
        bytes = out.bytes;
        esdm__buffer_clear(&out);
        return esdm__error_nomem(err, bytes, "a container document");
    }
    if (out.bytes - 1 > ESDM__TAPE_MAX_BYTES) {
        bytes = out.bytes - 1;
        esdm__buffer_clear(&out);
        return esdm__error_set(err, ESDM_EINVAL,
                               "container '%.200s': its structure takes %zu bytes, more than %u",
                               container->name, bytes, ESDM__TAPE_MAX_BYTES);
    }
    *ret_text = (char *) esdm__buffer_steal(&out, &bytes);
    *ret_bytes = bytes - 1;
    return ESDM_OK;
}
