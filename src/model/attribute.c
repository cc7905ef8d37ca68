/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "model/attribute.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/arguments.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/text.h"
#include "model/accuracy.h"
#include "model/undo.h"
#include "model/values.h"

/* Lists of up to so many are searched one by one. */
#define FEW 8u

static const char *
attribute_name(const void *owner, uint32_t value)
{
    const esdm_attributes *list = owner;
    return list->items[value].name;
}

static esdm__attribute_entry *
find_entry(const esdm_attributes *list, const char *name, uint32_t hash)
{
    uint32_t index;
    if (list->names != NULL)
        return esdm__names_find(list->names, name, hash, attribute_name, list, &index)
                   ? &list->items[index]
                   : NULL;
    for (index = 0; index < list->count; index++) {
        if (list->items[index].hash == hash && strcmp(list->items[index].name, name) == 0)
            return &list->items[index];
    }
    return NULL;
}

/* ---- words: names of attributes, which mostly are those of other variables, too ------------- */

static const char *
word_at(const void *owner, uint32_t value)
{
    const esdm_container *container = owner;
    return container->words.items[value];
}

/* The container's copy of the name; NULL: out of memory. They stay until the container is freed. */
static const char *
word_of(esdm_container *container, const char *name, uint32_t hash)
{
    uint32_t index;
    if (esdm__names_find(&container->words_by_text, name, hash, word_at, container, &index))
        return container->words.items[index];
    char *copy = strdup(name);
    if (copy == NULL || !esdm__pointers_reserve(&container->words) ||
        !esdm__names_reserve(&container->words_by_text)) {
        free(copy);
        return NULL;
    }
    esdm__names_add(&container->words_by_text, hash, (uint32_t) container->words.count);
    (void) esdm__pointers_add(&container->words, copy); /* room was reserved */
    return copy;
}

void
esdm__words_clear(esdm_container *container)
{
    for (size_t i = 0; i < container->words.count; i++)
        free(container->words.items[i]);
    free(container->words.items);
    esdm__names_clear(&container->words_by_text);
}

/* ---- freeing ------------------------------------------------------------------------------- */

void
esdm__attribute_values_free(const esdm_container *container, esdm_type type, uint64_t count,
                            void *values)
{
    if (esdm_type_size(type) == 0) /* strings lie behind their pointers */
        esdm_values_clear(container, type, count, values);
    free(values);
}

static void
free_values(const esdm_attributes *list, const esdm__attribute_entry *entry)
{
    esdm__attribute_values_free(list->container, entry->type, entry->count, entry->values);
}

void
esdm__attributes_clear(esdm_attributes *list)
{
    for (size_t i = 0; i < list->count; i++)
        free_values(list, &list->items[i]);
    free(list->items);
    if (list->names != NULL)
        esdm__names_clear(list->names);
    free(list->names);
    list->items = NULL;
    list->names = NULL;
    list->count = 0;
}

/* ---- values -------------------------------------------------------------------------------- */

/* Pointers first, the texts behind them; a NULL stays NULL. */
static esdm_status
copy_strings(uint64_t count, const char *const *values, void **ret_copy, esdm_error *err)
{
    size_t bytes = (size_t) count * sizeof(char *);
    for (uint64_t i = 0; i < count; i++)
        bytes += values[i] != NULL ? strlen(values[i]) + 1 : 0;
    char **copy = malloc(bytes);
    if (copy == NULL)
        return esdm__error_nomem(err, bytes, "an attribute");
    char *text = (char *) (copy + count);
    for (uint64_t i = 0; i < count; i++) {
        copy[i] = values[i] != NULL ? text : NULL;
        if (values[i] != NULL)
            text = stpcpy(text, values[i]) + 1;
    }
    *ret_copy = copy;
    return ESDM_OK;
}

static esdm_status
copy_values(const char *name, esdm__typeref of, uint64_t count, const void *values, void **ret_copy,
            esdm_error *err)
{
    size_t bytes;
    if (count > 0 && values == NULL)
        return esdm__error_set(err, ESDM_EINVAL, "attribute '%s': values must not be NULL", name);
    if (!esdm__mul_size(count, esdm__typeref_bytes(of), &bytes) || bytes > PTRDIFF_MAX)
        return esdm__error_set(err, ESDM_EINVAL, "attribute '%s': %" PRIu64 " values are too many",
                               name, count);
    if (count == 0) {
        *ret_copy = NULL;
        return ESDM_OK;
    }
    if (of.type == ESDM_TYPE_STRING)
        return copy_strings(count, values, ret_copy, err);
    void *copy = malloc(bytes);
    if (copy == NULL)
        return esdm__error_nomem(err, bytes, "an attribute");
    esdm_status st = esdm__values_copy(of, count, values, copy, err);
    if (st != ESDM_OK) {
        free(copy);
        return esdm__error_prefix(err, st, "attribute '%s'", name);
    }
    *ret_copy = copy;
    return ESDM_OK;
}

static bool
has_values(const esdm__attribute_entry *entry, esdm__typeref of, uint64_t count, const void *values)
{
    if (entry->type != of.type || entry->count != count)
        return false;
    if (entry->values == NULL || values == NULL)
        return entry->values == values; /* no elements */
    return esdm__values_equal(of, count, entry->values, values);
}

/* ---- changes ------------------------------------------------------------------------------- */

/* A table of the names that are there; false: out of memory. */
static bool
make_table(esdm_attributes *list)
{
    esdm__names *names = calloc(1, sizeof *names);
    bool ok = names != NULL;
    for (uint32_t i = 0; i < list->count && ok; i++) {
        ok = esdm__names_reserve(names);
        if (ok)
            esdm__names_add(names, list->items[i].hash, i);
    }
    if (!ok && names != NULL)
        esdm__names_clear(names);
    if (!ok)
        free(names);
    else
        list->names = names;
    return ok;
}

/* There is room for as many as the next power of two says, or more. */
static bool
reserve_entry(esdm_attributes *list)
{
    if ((list->count & (list->count - 1)) == 0) {
        size_t capacity = list->count > 0 ? (size_t) list->count * 2 : 1;
        esdm__attribute_entry *items = reallocarray(list->items, capacity, sizeof *items);
        if (items == NULL)
            return false;
        list->items = items;
    }
    if (list->count >= FEW && list->names == NULL && !make_table(list))
        return false;
    return list->names == NULL || esdm__names_reserve(list->names);
}

static esdm_status
add_entry(esdm_attributes *list, const char *name, uint32_t hash, esdm_type type, uint64_t count,
          void *values, esdm_error *err)
{
    if (list->count >= INT32_MAX) {
        (void) esdm__error_set(err, ESDM_EINVAL, "attribute '%s': the object has too many", name);
        return ESDM_EINVAL;
    }
    const char *word = word_of(list->container, name, hash);
    if (word == NULL || !reserve_entry(list)) {
        (void) esdm__error_nomem(err, strlen(name), "an attribute");
        return ESDM_ENOMEM;
    }
    if (list->names != NULL)
        esdm__names_add(list->names, hash, list->count);
    list->items[list->count++] = (esdm__attribute_entry){word, hash, type, count, values};
    return ESDM_OK;
}

esdm_status
esdm__attribute_adopt(esdm_attributes *list, const char *name, esdm_type type, uint64_t count,
                      void *values, esdm_error *err)
{
    esdm_status st = esdm__name_check(name, "attribute", err);
    if (st != ESDM_OK)
        return st;
    uint32_t hash = esdm__names_hash(name);
    if (find_entry(list, name, hash) != NULL)
        return esdm__error_set(err, ESDM_EEXIST, "there is already an attribute named '%s'", name);
    return add_entry(list, name, hash, type, count, values, err);
}

esdm_status
esdm__attribute_put(esdm_attributes *list, const char *name, esdm_type type, uint64_t count,
                    const void *values, bool *ret_changed, esdm_error *err)
{
    void *copy = NULL;
    esdm__typeref of;
    esdm_status st = esdm__name_check(name, "attribute", err);
    if (st != ESDM_OK)
        return st;
    st = esdm__type_resolve(list->container, type, &of, err);
    if (st != ESDM_OK)
        return esdm__error_prefix(err, st, "attribute '%s'", name);
    st = copy_values(name, of, count, values, &copy, err);
    if (st != ESDM_OK)
        return st;
    uint32_t hash = esdm__names_hash(name);
    esdm__attribute_entry *entry = find_entry(list, name, hash);
    bool changed = entry == NULL || !has_values(entry, of, count, copy);
    if (entry == NULL) {
        st = add_entry(list, name, hash, type, count, copy, err);
        if (st != ESDM_OK) {
            esdm__attribute_values_free(list->container, type, count, copy);
            return st;
        }
    } else if (changed) {
        free_values(list, entry);
        entry->type = type;
        entry->count = count;
        entry->values = copy;
    } else {
        esdm__attribute_values_free(list->container, type, count, copy);
    }
    *ret_changed = changed;
    return ESDM_OK;
}

esdm_status
esdm__attributes_copy(const esdm_attributes *from, esdm_attributes *to, esdm_error *err)
{
    bool changed;
    esdm_status st = ESDM_OK;
    for (size_t i = 0; i < from->count && st == ESDM_OK; i++) {
        const esdm__attribute_entry *entry = &from->items[i];
        st = esdm__attribute_put(to, entry->name, entry->type, entry->count, entry->values,
                                 &changed, err);
    }
    return st;
}

/* Before a public function changes or removes an attribute. */
static esdm_status
before_change(esdm_attributes *list, const char *name, esdm_error *err)
{
    esdm_status st = esdm__undo_keep_attributes(list, err);
    if (st == ESDM_OK && list->of_dataset && strcmp(name, "units") == 0)
        st = esdm__accuracy_note_units(
            (esdm_dataset *) ((char *) list - offsetof(esdm_dataset, attributes)), err);
    return st;
}

esdm_status
esdm_attribute_set(esdm_attributes *list, const char *name, esdm_type type, uint64_t count,
                   const void *values, esdm_error *err)
{
    ESDM__NEED(err, list);
    ESDM__NEED(err, name);
    bool changed = false;
    esdm_status st = esdm__container_check_writable(list->container, err);
    if (st == ESDM_OK)
        st = before_change(list, name, err);
    if (st == ESDM_OK)
        st = esdm__attribute_put(list, name, type, count, values, &changed, err);
    if (changed)
        esdm__container_changed(list->container);
    return st;
}

static esdm_status
not_found(const char *name, esdm_error *err)
{
    return esdm__error_set(err, ESDM_ENOENT, "there is no attribute named '%.256s'",
                           name != NULL ? name : "");
}

esdm_status
esdm_attribute_rename(esdm_attributes *list, const char *name, const char *new_name,
                      esdm_error *err)
{
    ESDM__NEED(err, list);
    ESDM__NEED(err, name);
    ESDM__NEED(err, new_name);
    esdm_status st = esdm__container_check_writable(list->container, err);
    if (st != ESDM_OK)
        return st;
    esdm__attribute_entry *entry =
        name != NULL ? find_entry(list, name, esdm__names_hash(name)) : NULL;
    if (entry == NULL)
        return not_found(name, err);
    st = esdm__name_check(new_name, "attribute", err);
    if (st != ESDM_OK || strcmp(name, new_name) == 0)
        return st;
    uint32_t hash = esdm__names_hash(new_name);
    if (find_entry(list, new_name, hash) != NULL)
        return esdm__error_set(err, ESDM_EEXIST, "there is already an attribute named '%s'",
                               new_name);
    st = before_change(list, name, err);
    if (st != ESDM_OK)
        return st;
    const char *word = word_of(list->container, new_name, hash);
    if (word == NULL)
        return esdm__error_nomem(err, strlen(new_name), "a name");
    uint32_t index = (uint32_t) (entry - list->items);
    if (list->names != NULL) {
        esdm__names_remove(list->names, entry->hash, index);
        esdm__names_add(list->names, hash, index);
    }
    entry->name = word;
    entry->hash = hash;
    esdm__container_changed(list->container);
    return ESDM_OK;
}

static void
take_out(esdm_attributes *list, esdm__attribute_entry *entry)
{
    size_t index = (size_t) (entry - list->items);
    if (list->names != NULL) {
        esdm__names_remove(list->names, entry->hash, (uint32_t) index);
        esdm__names_shift(list->names, (uint32_t) index);
    }
    free_values(list, entry);
    list->count--;
    memmove(entry, entry + 1, (list->count - index) * sizeof *entry);
}

void
esdm__attribute_drop(esdm_attributes *list, const char *name)
{
    esdm__attribute_entry *entry = find_entry(list, name, esdm__names_hash(name));
    if (entry != NULL)
        take_out(list, entry);
}

esdm_status
esdm_attribute_remove(esdm_attributes *list, const char *name, esdm_error *err)
{
    ESDM__NEED(err, list);
    ESDM__NEED(err, name);
    esdm_status st = esdm__container_check_writable(list->container, err);
    if (st != ESDM_OK)
        return st;
    esdm__attribute_entry *entry =
        name != NULL ? find_entry(list, name, esdm__names_hash(name)) : NULL;
    if (entry == NULL)
        return not_found(name, err);
    st = before_change(list, name, err);
    if (st != ESDM_OK)
        return st;
    take_out(list, entry);
    esdm__container_changed(list->container);
    return ESDM_OK;
}

/* ---- reading ------------------------------------------------------------------------------- */

static void
show(const esdm__attribute_entry *entry, esdm_attribute *ret)
{
    ret->name = entry->name;
    ret->type = entry->type;
    ret->count = entry->count;
    ret->values = entry->values != NULL ? entry->values : ""; /* never NULL, for memcpy's sake */
}

size_t
esdm_attribute_count(const esdm_attributes *list)
{
    if (list == NULL)
        return 0;
    return list->count;
}

bool
esdm_attribute_at(const esdm_attributes *list, size_t index, esdm_attribute *ret)
{
    if (list == NULL)
        return false;
    if (index >= list->count)
        return false;
    show(&list->items[index], ret);
    return true;
}

bool
esdm_attribute_find(const esdm_attributes *list, const char *name, esdm_attribute *ret,
                    size_t *ret_index)
{
    if (list == NULL)
        return false;
    const esdm__attribute_entry *entry =
        name != NULL ? find_entry(list, name, esdm__names_hash(name)) : NULL;
    if (entry == NULL)
        return false;
    if (ret != NULL)
        show(entry, ret);
    if (ret_index != NULL)
        *ret_index = (size_t) (entry - list->items);
    return true;
}

void
esdm__attribute_text(const esdm_dataset *dataset, const char *name, char *buffer, size_t bytes)
{
    esdm_attribute a;
    buffer[0] = '\0';
    if (!esdm_attribute_find(&dataset->attributes, name, &a, NULL) || a.count == 0)
        return;
    if (a.type == ESDM_TYPE_CHAR)
        (void) esdm__text_part(buffer, buffer + bytes, a.values, a.count);
    else if (a.type == ESDM_TYPE_STRING && a.count == 1 && *(const char *const *) a.values != NULL)
        esdm__text_copy(buffer, bytes, *(const char *const *) a.values);
}
