/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "model/container.h"

#include <stdlib.h>
#include <string.h>

#include "base/arguments.h"
#include "base/error.h"
#include "model/undo.h"
#include "model/usertype.h"

/* Longer ones grow by a quarter: containers of very many variables have two of them. */
#define SHORT_LIST 1024u

/* ---- lists --------------------------------------------------------------------------------- */

bool
esdm__pointers_reserve(esdm__pointers *list)
{
    if (list->count < list->capacity)
        return true;
    size_t capacity =
        list->capacity < SHORT_LIST ? list->capacity * 2 : list->capacity + list->capacity / 4;
    if (capacity == 0)
        capacity = 4;
    void **items = reallocarray(list->items, capacity, sizeof *items);
    if (items == NULL)
        return false;
    list->items = items;
    list->capacity = capacity;
    return true;
}

bool
esdm__pointers_add(esdm__pointers *list, void *item)
{
    if (!esdm__pointers_reserve(list))
        return false;
    list->items[list->count++] = item;
    return true;
}

/* ---- hints --------------------------------------------------------------------------------- */

static esdm__hint *
find_hint(const esdm__hints *hints, const char *key)
{
    for (size_t i = 0; i < hints->count; i++) {
        if (strcmp(hints->items[i].key, key) == 0)
            return &hints->items[i];
    }
    return NULL;
}

static void
remove_hint(esdm__hints *hints, esdm__hint *hint)
{
    free(hint->key);
    free(hint->value);
    hints->count--;
    memmove(hint, hint + 1, (size_t) (hints->items + hints->count - hint) * sizeof *hint);
}

static esdm_status
add_hint(esdm__hints *hints, const char *key, const char *value, esdm_error *err)
{
    if (hints->count == ESDM__HINTS_MAX)
        return esdm__error_set(err, ESDM_EINVAL, "hint '%.100s': there are %d already", key,
                               ESDM__HINTS_MAX);
    esdm__hint hint = {strdup(key), strdup(value)};
    esdm__hint *items = reallocarray(hints->items, hints->count + 1, sizeof *items);
    if (items != NULL)
        hints->items = items;
    if (items == NULL || hint.key == NULL || hint.value == NULL) {
        free(hint.key);
        free(hint.value);
        return esdm__error_nomem(err, sizeof hint, "a hint");
    }
    items[hints->count++] = hint;
    return ESDM_OK;
}

esdm_status
esdm__hints_set(esdm__hints *hints, const char *key, const char *value, bool *ret_changed,
                esdm_error *err)
{
    if (key == NULL || key[0] == '\0')
        return esdm__error_set(err, ESDM_EINVAL, "the key of a hint must not be empty");
    if (!esdm__utf8_is_valid(key, strlen(key)) ||
        (value != NULL && !esdm__utf8_is_valid(value, strlen(value))))
        return esdm__error_set(err, ESDM_EINVAL, "hint '%.100s' is not valid UTF-8", key);

    esdm__hint *hint = find_hint(hints, key);
    bool changed = hint == NULL ? value != NULL : value == NULL || strcmp(hint->value, value) != 0;
    if (changed && hint == NULL) {
        esdm_status st = add_hint(hints, key, value, err);
        if (st != ESDM_OK)
            return st;
    } else if (changed && value == NULL) {
        remove_hint(hints, hint);
    } else if (changed) {
        char *copy = strdup(value);
        if (copy == NULL)
            return esdm__error_nomem(err, strlen(value), "a hint");
        free(hint->value);
        hint->value = copy;
    }
    *ret_changed = changed;
    return ESDM_OK;
}

const char *
esdm__hints_get(const esdm__hints *hints, const char *key)
{
    const esdm__hint *hint = key != NULL ? find_hint(hints, key) : NULL;
    return hint != NULL ? hint->value : NULL;
}

void
esdm__hints_clear(esdm__hints *hints)
{
    for (size_t i = 0; i < hints->count; i++) {
        free(hints->items[i].key);
        free(hints->items[i].value);
    }
    free(hints->items);
    memset(hints, 0, sizeof *hints);
}

/* ---- container ----------------------------------------------------------------------------- */

static esdm_group *
new_root(esdm_container *container)
{
    esdm_group *root = calloc(1, sizeof *root);
    if (root == NULL)
        return NULL;
    root->container = container;
    root->attributes.container = container;
    root->name = strdup("");
    if (root->name == NULL || !esdm__pointers_add(&container->groups, root)) {
        esdm__group_free(root);
        return NULL;
    }
    return root;
}

esdm_container *
esdm__container_new(const char *name)
{
    esdm_container *container = calloc(1, sizeof *container);
    if (container == NULL)
        return NULL;
    container->writable = true;
    container->next_dataset_id = 1;
    atomic_init(&container->lengths_dirty, false);
    atomic_init(&container->changes, 1);
    atomic_init(&container->shape_notes, NULL);
    (void) pthread_mutex_init(&container->types_lock, NULL);
    container->name = strdup(name);
    if (container->name == NULL || new_root(container) == NULL) {
        esdm__container_free(container);
        return NULL;
    }
    return container;
}

void
esdm__container_free(esdm_container *container)
{
    if (container == NULL)
        return;
    if (container->provider != NULL)
        container->provider->free(container->provided);
    esdm__undo_forget(container);
    for (size_t i = 0; i < container->datasets.count; i++)
        esdm__dataset_free(container->datasets.items[i]);
    for (size_t i = 0; i < container->dimensions.count; i++)
        esdm__dimension_free(container->dimensions.items[i]);
    for (size_t i = 0; i < container->groups.count; i++)
        esdm__group_free(container->groups.items[i]);
    for (size_t i = 0; i < container->types.count; i++)
        esdm__usertype_free(container->types.items[i]);
    free(container->datasets.items);
    free(container->dimensions.items);
    free(container->types.items);
    (void) pthread_mutex_destroy(&container->types_lock);
    free(container->groups.items);
    esdm__words_clear(container);
    esdm__hints_clear(&container->hints);
    for (esdm__shape_note *note = atomic_load(&container->shape_notes), *next; note != NULL;
         note = next) {
        next = note->next;
        free(note);
    }
    free(container->name);
    free(container->said);
    free(container);
}

esdm_status
esdm__container_check_writable(esdm_container *container, esdm_error *err)
{
    if (!container->writable)
        return esdm__error_set(err, ESDM_EACCES,
                               "container '%.300s' is open for reading only; open it for writing",
                               container->name);
    esdm__container_settle(container);
    return ESDM_OK;
}

esdm_status
esdm__container_touch(esdm_container *container, esdm_error *err)
{
    esdm_status st = esdm__container_check_writable(container, err);
    if (st == ESDM_OK)
        esdm__container_changed(container);
    return st;
}

const char *
esdm_container_name(const esdm_container *container)
{
    if (container == NULL)
        return NULL;
    return container->said != NULL ? container->said : container->name;
}

uint64_t
esdm_container_snapshot(const esdm_container *container)
{
    if (container == NULL)
        return 0;
    return container->snapshot;
}

bool
esdm_container_is_writable(const esdm_container *container)
{
    if (container == NULL)
        return false;
    return container->writable;
}

void
esdm_container_set_conversion(esdm_container *container, esdm_conversion rules)
{
    if (container == NULL)
        return;
    container->conversion = rules;
}

esdm_group *
esdm_container_root(esdm_container *container)
{
    if (container == NULL)
        return NULL;
    return container->groups.items[0];
}

esdm_session *
esdm_container_session(esdm_container *container)
{
    if (container == NULL)
        return NULL;
    return container->session;
}

esdm_status
esdm_container_set_hint(esdm_container *container, const char *key, const char *value,
                        esdm_error *err)
{
    ESDM__NEED(err, container);
    ESDM__NEED(err, key);
    bool changed = false;
    esdm_status st = esdm__container_check_writable(container, err);
    if (st == ESDM_OK)
        st = esdm__undo_keep_hints(container, err);
    if (st == ESDM_OK)
        st = esdm__hints_set(&container->hints, key, value, &changed, err);
    if (changed)
        esdm__container_changed(container);
    return st;
}

const char *
esdm_container_hint(const esdm_container *container, const char *key)
{
    if (container == NULL)
        return NULL;
    return esdm__hints_get(&container->hints, key);
}

size_t
esdm_container_group_count(const esdm_container *container)
{
    if (container == NULL)
        return 0;
    return container->groups.count;
}

esdm_group *
esdm_container_group(const esdm_container *container, uint32_t id)
{
    if (container == NULL)
        return NULL;
    return id < container->groups.count ? container->groups.items[id] : NULL;
}

size_t
esdm_container_dimension_count(const esdm_container *container)
{
    if (container == NULL)
        return 0;
    return container->dimensions.count;
}

esdm_dimension *
esdm_container_dimension(const esdm_container *container, uint32_t id)
{
    if (container == NULL)
        return NULL;
    return id < container->dimensions.count ? container->dimensions.items[id] : NULL;
}
