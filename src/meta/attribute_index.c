/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "meta/attribute_index.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/usertype.h"

static bool
grow(void **items, size_t *capacity, size_t count, size_t item_bytes)
{
    if (count < *capacity)
        return true;
    size_t larger = *capacity == 0 ? 32 : 2 * *capacity;
    void *grown = realloc(*items, larger * item_bytes);
    if (grown == NULL)
        return false;
    *items = grown;
    *capacity = larger;
    return true;
}

/* Keeps a copy of the first bytes up to a NUL, whole UTF-8 sequences only; NULL: out of memory. */
static const char *
keep_text(esdm__attribute_index *index, const char *text, size_t bytes)
{
    bytes = strnlen(text, bytes);
    if (bytes > ESDM__INDEXED_TEXT_BYTES) {
        bytes = ESDM__INDEXED_TEXT_BYTES;
        while (bytes > 0 && ((unsigned char) text[bytes] & 0xc0) == 0x80)
            bytes--;
    }
    char *copy = malloc(bytes + 1);
    if (copy == NULL || !grow((void **) &index->texts, &index->text_capacity, index->ntexts,
                              sizeof *index->texts)) {
        free(copy);
        return NULL;
    }
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    index->texts[index->ntexts++] = copy;
    return copy;
}

static esdm_status
add(esdm__attribute_index *index, const esdm_meta_attribute *entry, esdm_error *err)
{
    if (!grow((void **) &index->entries, &index->capacity, index->count, sizeof *index->entries))
        return esdm__error_nomem(err, sizeof *entry, "the attribute index");
    index->entries[index->count++] = *entry;
    return ESDM_OK;
}

static esdm_status
add_text(esdm__attribute_index *index, esdm_meta_attribute entry, const char *text, size_t bytes,
         esdm_error *err)
{
    entry.text = keep_text(index, text, bytes);
    if (entry.text == NULL)
        return esdm__error_nomem(err, bytes, "the attribute index");
    return add(index, &entry, err);
}

static esdm_status
add_number(esdm__attribute_index *index, esdm_meta_attribute entry, esdm_type type,
           const void *element, esdm_error *err)
{
    char text[64];
    esdm_status status =
        esdm_convert(type, element, ESDM_TYPE_FLOAT64, &entry.number, 1, NULL, err);
    if (status != ESDM_OK)
        return status;
    entry.has_number = entry.number == entry.number; /* a NaN compares with nothing */
    int64_t integer;
    uint64_t natural;
    if (type == ESDM_TYPE_FLOAT32) {
        (void) snprintf(text, sizeof text, "%.9g", entry.number);
    } else if (type == ESDM_TYPE_FLOAT64) {
        (void) snprintf(text, sizeof text, "%.17g", entry.number);
    } else if (type == ESDM_TYPE_UINT64) {
        memcpy(&natural, element, sizeof natural);
        (void) snprintf(text, sizeof text, "%" PRIu64, natural);
    } else {
        status = esdm_convert(type, element, ESDM_TYPE_INT64, &integer, 1, NULL, err);
        if (status != ESDM_OK)
            return status;
        (void) snprintf(text, sizeof text, "%" PRId64, integer);
    }
    return add_text(index, entry, text, sizeof text, err);
}

/* Enumerations are indexed by their numbers. What other user-defined types hold is not, but that
 * the attribute is there. */
static esdm_status
add_user_attribute(esdm__attribute_index *index, esdm_meta_attribute entry,
                   const esdm_container *container, const esdm_attribute *attribute,
                   esdm_error *err)
{
    esdm_type_info info;
    if (!esdm_type_inquire(container, attribute->type, &info) || info.kind != ESDM_CLASS_ENUM)
        return ESDM_OK;
    esdm_status status = ESDM_OK;
    const uint8_t *element = attribute->values;
    for (uint64_t i = 0; i < attribute->count && i < ESDM__INDEXED_ELEMENTS && status == ESDM_OK;
         i++)
        status = add_number(index, entry, info.base, element + i * info.bytes, err);
    return status;
}

static esdm_status
add_attribute(esdm__attribute_index *index, esdm_meta_attribute entry,
              const esdm_container *container, const esdm_attribute *attribute, esdm_error *err)
{
    entry.name = attribute->name;
    if (attribute->type == ESDM_TYPE_CHAR)
        return add_text(index, entry, attribute->count > 0 ? attribute->values : "",
                        (size_t) attribute->count, err);
    size_t size = esdm_type_size(attribute->type);
    if (size == 0)
        return add_user_attribute(index, entry, container, attribute, err);
    for (uint64_t i = 0; i < attribute->count && i < ESDM__INDEXED_ELEMENTS; i++) {
        const void *element = (const uint8_t *) attribute->values + i * size;
        esdm_status status;
        if (attribute->type == ESDM_TYPE_STRING) {
            const char *text = ((const char *const *) attribute->values)[i];
            text = text != NULL ? text : "";
            status = add_text(index, entry, text, strlen(text), err);
        } else {
            status = add_number(index, entry, attribute->type, element, err);
        }
        if (status != ESDM_OK)
            return status;
    }
    return ESDM_OK;
}

static esdm_status
add_list(esdm__attribute_index *index, const esdm_meta_attribute *entry,
         const esdm_attributes *list, esdm_error *err)
{
    esdm_attribute attribute;
    for (size_t i = 0; esdm_attribute_at(list, i, &attribute); i++) {
        esdm_status status = add_attribute(index, *entry, list->container, &attribute, err);
        if (status != ESDM_OK)
            return status;
    }
    return ESDM_OK;
}

static esdm_status
add_dataset(esdm__attribute_index *index, const esdm_dataset *dataset, esdm_error *err)
{
    char *path = esdm__dataset_path(dataset);
    if (path == NULL)
        return esdm__error_nomem(err, strlen(dataset->name), "the attribute index");
    esdm_meta_attribute entry = {.dataset = dataset->id};
    if (!grow((void **) &index->texts, &index->text_capacity, index->ntexts,
              sizeof *index->texts)) {
        free(path);
        return esdm__error_nomem(err, sizeof entry, "the attribute index");
    }
    index->texts[index->ntexts++] = path;
    entry.dataset_path = path;
    entry.name = "@type";
    const char *type = esdm__type_name(dataset->group->container, dataset->type);
    esdm_status status = add_text(index, entry, type, strlen(type), err);
    return status == ESDM_OK ? add_list(index, &entry, &dataset->attributes, err) : status;
}

esdm_status
esdm__attribute_index_make(const esdm_container *container, esdm__attribute_index *ret_index,
                           esdm_error *err)
{
    esdm__attribute_index index = {0};
    const esdm_group *root = container->groups.items[0];
    esdm_meta_attribute entry = {.dataset = 0};
    esdm_status status = add_list(&index, &entry, &root->attributes, err);
    for (size_t i = 0; i < container->datasets.count && status == ESDM_OK; i++)
        status = add_dataset(&index, container->datasets.items[i], err);
    if (status != ESDM_OK) {
        esdm__attribute_index_clear(&index);
        return status;
    }
    *ret_index = index;
    return ESDM_OK;
}

void
esdm__attribute_index_clear(esdm__attribute_index *index)
{
    for (size_t i = 0; i < index->ntexts; i++)
        free(index->texts[i]);
    free(index->texts);
    free(index->entries);
    *index = (esdm__attribute_index){0};
}
