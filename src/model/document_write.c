/* SPDX-License-Identifier: LGPL-3.0-or-later */
/** @file Writing the container document (schemas/container.schema.json). */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "base/error.h"
#include "base/plain_locale.h"
#include "base/text.h"
#include "model/accuracy.h"
#include "model/attribute.h"
#include "model/document_put.h"
#include "model/group.h"
#include "model/tape.h"
#include "model/values.h"

/* ---- types and values ---------------------------------------------------------------------- */

/* Atomic types by name, others by number. */
static void
put_type_of(esdm__buffer *out, esdm_type type)
{
    const char *name = esdm_type_name(type);
    if (name == NULL) {
        esdm__put_u64(out, (uint64_t) type);
        return;
    }
    esdm__buffer_put_u8(out, '"');
    esdm__put_text(out, name);
    esdm__buffer_put_u8(out, '"');
}

/* Values of a user-defined type, in their stored form. */
static void
put_user_values(esdm__buffer *out, const esdm_container *container, esdm_type type, uint64_t count,
                const void *values)
{
    esdm__typeref of;
    esdm__buffer stored;
    esdm__buffer_init(&stored);
    /* Types are complete and values were checked when they were set. */
    if (esdm__type_resolve(container, type, &of, NULL) != ESDM_OK ||
        esdm__values_encode(of, count, values, &stored, NULL) != ESDM_OK || stored.failed)
        out->failed = true;
    else
        esdm__put_base64(out, stored.data, stored.bytes);
    esdm__buffer_clear(&stored);
}

static void
put_attribute_values(esdm__buffer *out, const esdm_container *container,
                     const esdm__attribute_entry *entry)
{
    const char *value = entry->values;
    if (entry->type == ESDM_TYPE_CHAR) {
        esdm__buffer_put_u8(out, ',');
        esdm__put_bytes(out, entry->count > 0 ? value : "", (size_t) entry->count);
    } else if (esdm_type_size(entry->type) == 0 && entry->count > 0) {
        esdm__buffer_put_u8(out, ',');
        esdm__put_large_u64(out, entry->count);
        esdm__buffer_put_u8(out, ',');
        put_user_values(out, container, entry->type, entry->count, value);
    } else {
        for (uint64_t i = 0; i < entry->count; i++, value += esdm_type_size(entry->type)) {
            esdm__buffer_put_u8(out, ',');
            esdm__put_value(out, entry->type, value);
        }
    }
}

static void
put_attribute(esdm__buffer *out, const esdm_container *container,
              const esdm__attribute_entry *entry)
{
    esdm__buffer_put_u8(out, '[');
    esdm__put_string(out, entry->name, strlen(entry->name));
    esdm__buffer_put_u8(out, ',');
    put_type_of(out, entry->type);
    put_attribute_values(out, container, entry);
    esdm__buffer_put_u8(out, ']');
}

static void
put_attributes(esdm__buffer *out, const esdm_attributes *list)
{
    if (list->count == 0)
        return;
    esdm__put_text(out, ",\"attributes\":[");
    for (size_t i = 0; i < list->count; i++) {
        if (i > 0)
            esdm__buffer_put_u8(out, ',');
        put_attribute(out, list->container, &list->items[i]);
    }
    esdm__buffer_put_u8(out, ']');
}

static void
put_hint(esdm__buffer *out, const char *key, const char *value)
{
    esdm__put_string(out, key, strlen(key));
    esdm__buffer_put_u8(out, ':');
    esdm__put_string(out, value, strlen(value));
}

/* @param fast what ESDM__HINT_MODE says; a hint of that name is nobody else's. @param shape what
 * ESDM__HINT_SHAPE says, which is no hint yet; NULL: nothing. */
static void
put_hints(esdm__buffer *out, const esdm__hints *hints, bool fast, const char *shape)
{
    const char *before = ",\"hints\":{";
    for (size_t i = 0; i < hints->count; i++) {
        if (strcmp(hints->items[i].key, ESDM__HINT_MODE) == 0)
            continue;
        esdm__put_text(out, before);
        put_hint(out, hints->items[i].key, hints->items[i].value);
        before = ",";
    }
    if (fast) {
        esdm__put_text(out, before);
        put_hint(out, ESDM__HINT_MODE, ESDM__HINT_MODE_FAST);
        before = ",";
    }
    if (shape != NULL) {
        esdm__put_text(out, before);
        put_hint(out, ESDM__HINT_SHAPE, shape);
        before = ",";
    }
    if (before[1] == '\0')
        esdm__buffer_put_u8(out, '}');
}

/* ---- objects ------------------------------------------------------------------------------- */

/* `{"name":"…"` and, unless it is the root, `,"group":n`. */
static void
put_head(esdm__buffer *out, const char *name, const esdm_group *group)
{
    esdm__put_text(out, "{\"name\":");
    esdm__put_string(out, name, strlen(name));
    if (group->id != 0) {
        esdm__put_text(out, ",\"group\":");
        esdm__put_u64(out, group->id);
    }
}

static void
put_group(esdm__buffer *out, const void *item)
{
    const esdm_group *group = item;
    if (group->parent == NULL) {
        esdm__put_text(out, "{\"name\":\"\"");
    } else {
        put_head(out, group->name, group->parent);
    }
    put_attributes(out, &group->attributes);
    esdm__buffer_put_u8(out, '}');
}

static void
put_member(esdm__buffer *out, const esdm__member *member)
{
    esdm__buffer_put_u8(out, '[');
    esdm__put_string(out, member->name, strlen(member->name));
    esdm__buffer_put_u8(out, ',');
    put_type_of(out, member->type);
    for (uint32_t i = 0; i < member->rank; i++) {
        esdm__buffer_put_u8(out, ',');
        esdm__put_u64(out, member->shape[i]);
    }
    esdm__buffer_put_u8(out, ']');
}

static void
put_enumerator(esdm__buffer *out, esdm_type base, const esdm__enumerator *enumerator)
{
    esdm__buffer_put_u8(out, '[');
    esdm__put_string(out, enumerator->name, strlen(enumerator->name));
    esdm__buffer_put_u8(out, ',');
    esdm__put_value(out, base, &enumerator->value);
    esdm__buffer_put_u8(out, ']');
}

static void
put_members(esdm__buffer *out, const esdm__usertype *type)
{
    esdm__put_text(out, ",\"members\":[");
    for (size_t i = 0; i < type->count; i++) {
        if (i > 0)
            esdm__buffer_put_u8(out, ',');
        if (type->kind == ESDM_CLASS_ENUM)
            put_enumerator(out, type->base, &type->enumerators[i]);
        else
            put_member(out, &type->members[i]);
    }
    esdm__buffer_put_u8(out, ']');
}

static void
put_usertype(esdm__buffer *out, const void *item)
{
    static const char *const kinds[] = {[ESDM_CLASS_COMPOUND] = "compound",
                                        [ESDM_CLASS_ENUM] = "enum",
                                        [ESDM_CLASS_OPAQUE] = "opaque",
                                        [ESDM_CLASS_VLEN] = "vlen"};
    const esdm__usertype *type = item;
    put_head(out, type->name, type->group);
    esdm__put_text(out, ",\"class\":\"");
    esdm__put_text(out, kinds[type->kind]);
    esdm__buffer_put_u8(out, '"');
    if (type->kind == ESDM_CLASS_OPAQUE) {
        esdm__put_text(out, ",\"bytes\":");
        esdm__put_u64(out, type->memory_bytes);
    }
    if (type->base != ESDM_TYPE_NONE) {
        esdm__put_text(out, ",\"base\":");
        put_type_of(out, type->base);
    }
    if (type->kind == ESDM_CLASS_COMPOUND || type->kind == ESDM_CLASS_ENUM)
        put_members(out, type);
    esdm__buffer_put_u8(out, '}');
}

static void
put_dimension(esdm__buffer *out, const void *item)
{
    const esdm_dimension *dimension = item;
    put_head(out, dimension->name, dimension->group);
    if (dimension->unlimited) {
        esdm__put_text(out, ",\"unlimited\":true");
    } else {
        esdm__put_text(out, ",\"length\":");
        esdm__put_large_u64(out, esdm_dimension_length(dimension));
    }
    esdm__buffer_put_u8(out, '}');
}

static void
put_shape(esdm__buffer *out, const esdm_dataset *dataset)
{
    esdm__put_text(out, ",\"dimensions\":[");
    for (uint32_t i = 0; i < dataset->rank; i++) {
        if (i > 0)
            esdm__buffer_put_u8(out, ',');
        esdm__put_u64(out, dataset->dimensions[i]->id);
    }
    esdm__buffer_put_u8(out, ']');
    if (dataset->stated->chunk == NULL)
        return;
    esdm__put_text(out, ",\"chunk\":[");
    for (uint32_t i = 0; i < dataset->rank; i++) {
        if (i > 0)
            esdm__buffer_put_u8(out, ',');
        esdm__put_large_u64(out, dataset->stated->chunk[i]);
    }
    esdm__buffer_put_u8(out, ']');
}

static void
put_dataset(esdm__buffer *out, const void *item)
{
    const esdm_dataset *dataset = item;
    put_head(out, dataset->name, dataset->group);
    esdm__put_text(out, ",\"id\":");
    esdm__put_u64(out, dataset->id);
    esdm__put_text(out, ",\"type\":");
    put_type_of(out, dataset->type);
    put_shape(out, dataset);
    if (dataset->stated->codec != NULL) {
        esdm__put_text(out, ",\"codec\":");
        esdm__put_string(out, dataset->stated->codec, strlen(dataset->stated->codec));
    }
    esdm_accuracy accuracy;
    bool fast = false;
    if (esdm_dataset_accuracy(dataset, &accuracy)) {
        fast = (accuracy.stated & ESDM_ACCURACY_MODE) != 0 && accuracy.mode == ESDM_MODE_FAST &&
               dataset->stated->hints.count < ESDM__HINTS_MAX;
        if (fast)
            accuracy.mode = ESDM_MODE_BALANCED;
        esdm__put_text(out, ",\"accuracy\":\"");
        esdm__accuracy_put(out, &accuracy);
        esdm__put_text(out, "\"");
    }
    if (dataset->stated->fill != NULL) {
        esdm__put_text(out, ",\"fill\":");
        if (esdm_type_size(dataset->type) > 0)
            esdm__put_value(out, dataset->type, dataset->stated->fill);
        else
            put_user_values(out, dataset->group->container, dataset->type, 1,
                            dataset->stated->fill);
    }
    const esdm__hints *hints = &dataset->stated->hints;
    bool noted =
        hints->count + fast < ESDM__HINTS_MAX && esdm__hints_get(hints, ESDM__HINT_SHAPE) == NULL;
    put_hints(out, hints, fast, noted ? esdm__dataset_shape_noted(dataset) : NULL);
    put_attributes(out, &dataset->attributes);
    esdm__buffer_put_u8(out, '}');
}

static void
put_list(esdm__buffer *out, const char *key, const esdm__pointers *list,
         void (*put)(esdm__buffer *out, const void *item))
{
    esdm__put_text(out, ",\n\"");
    esdm__put_text(out, key);
    esdm__put_text(out, "\":[");
    for (size_t i = 0; i < list->count; i++) {
        esdm__put_text(out, i > 0 ? ",\n" : "\n");
        put(out, list->items[i]);
    }
    esdm__buffer_put_u8(out, ']');
}

void
esdm__document_end(const void *text, size_t bytes, char ret_end[ESDM__DOCUMENT_END_BYTES + 1])
{
    const char *end = ret_end + ESDM__DOCUMENT_END_BYTES + 1;
    char *at = esdm__text_put(ret_end, end, ",\n\"checksum\":\"");
    at = esdm__text_number(at, end, esdm__checksum(text, bytes), 16, 16);
    (void) esdm__text_put(at, end, "\"}\n");
}

static void
put_document(esdm__buffer *out, const esdm_container *container)
{
    bool has_types = container->types.count > 0;
    esdm__put_text(out, "{\"format\":");
    esdm__put_u64(out, ESDM__DOCUMENT_FORMAT);
    esdm__put_text(out, ",\"next_dataset\":");
    esdm__put_u64(out, container->next_dataset_id);
    put_hints(out, &container->hints, false, NULL);
    put_list(out, "groups", &container->groups, put_group);
    if (has_types)
        put_list(out, "types", &container->types, put_usertype);
    put_list(out, "dimensions", &container->dimensions, put_dimension);
    put_list(out, "datasets", &container->datasets, put_dataset);
    if (!out->failed) {
        char end[ESDM__DOCUMENT_END_BYTES + 1];
        esdm__document_end(out->data, out->bytes, end);
        esdm__put_text(out, end);
    }
}

esdm_status
esdm__document_write(const esdm_container *container, char **ret_text, size_t *ret_bytes,
                     esdm_error *err)
{
    esdm__buffer out;
    size_t bytes;
    esdm_status st = esdm__usertypes_complete(container, err);
    if (st != ESDM_OK)
        return st;
    esdm__plain_locale locale;
    st = esdm__plain_locale_enter(&locale, err);
    if (st != ESDM_OK)
        return st;
    esdm__buffer_init(&out);
    put_document(&out, container);
    esdm__buffer_put_u8(&out, '\0');
    esdm__plain_locale_leave(&locale);

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
