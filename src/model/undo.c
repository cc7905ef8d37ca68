/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "model/undo.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/accuracy_kept.h"
#include "model/group.h"
#include "model/values.h"

typedef enum kept_kind { KEPT_NAME, KEPT_ATTRIBUTES, KEPT_DATASET, KEPT_HINTS } kept_kind;

typedef struct kept_name {
    char **place;
    bool *apart; /* whether that is owned by itself; NULL: always */
    esdm__names *names;
    uint32_t value;
    char *text; /* owned */
} kept_name;

typedef struct kept_dataset {
    esdm_dataset *dataset;
    void *fill;      /* owned, as the others */
    uint64_t *chunk; /* … */
    char *codec;
    esdm__kept_accuracy *accuracy;
    char *units; /* of the accuracy */
    esdm__hints hints;
} kept_dataset;

struct esdm__undo_entry {
    kept_kind kind;
    union {
        kept_name name;
        struct {
            esdm_attributes *list;
            esdm_attributes copy;
        } attributes;
        kept_dataset dataset;
        esdm__hints hints;
    } of;
};
typedef struct esdm__undo_entry entry;

/* ---- keeping ------------------------------------------------------------------------------- */

/* Room for one more, which add() then fills. */
static esdm_status
reserve(esdm__undo *undo, esdm_error *err)
{
    if (undo->count < undo->capacity)
        return ESDM_OK;
    size_t capacity = undo->capacity > 0 ? 2 * undo->capacity : 8;
    entry *entries = reallocarray(undo->entries, capacity, sizeof *entries);
    if (entries == NULL)
        return esdm__error_nomem(err, capacity * sizeof *entries, "what can be undone");
    undo->entries = entries;
    undo->capacity = capacity;
    return ESDM_OK;
}

static void
add(esdm__undo *undo, const entry *kept)
{
    undo->entries[undo->count++] = *kept;
}

static esdm_status
copy_text(const char *text, char **ret_copy, esdm_error *err)
{
    *ret_copy = text != NULL ? strdup(text) : NULL;
    if (text != NULL && *ret_copy == NULL)
        return esdm__error_nomem(err, strlen(text), "what can be undone");
    return ESDM_OK;
}

static esdm_status
copy_hints(const esdm__hints *from, esdm__hints *to, esdm_error *err)
{
    bool changed;
    esdm_status st = ESDM_OK;
    for (size_t i = 0; i < from->count && st == ESDM_OK; i++)
        st = esdm__hints_set(to, from->items[i].key, from->items[i].value, &changed, err);
    return st;
}

static void
free_value(const esdm_dataset *dataset, void *value)
{
    esdm__typeref of;
    if (value != NULL &&
        esdm__type_resolve(dataset->group->container, dataset->type, &of, NULL) == ESDM_OK)
        esdm__value_free(of, value);
}

static void
entry_clear(entry *kept)
{
    switch (kept->kind) {
    case KEPT_NAME:
        free(kept->of.name.text);
        break;
    case KEPT_ATTRIBUTES:
        esdm__attributes_clear(&kept->of.attributes.copy);
        break;
    case KEPT_DATASET:
        free_value(kept->of.dataset.dataset, kept->of.dataset.fill);
        free(kept->of.dataset.chunk);
        free(kept->of.dataset.codec);
        free(kept->of.dataset.accuracy);
        free(kept->of.dataset.units);
        esdm__hints_clear(&kept->of.dataset.hints);
        break;
    case KEPT_HINTS:
        esdm__hints_clear(&kept->of.hints);
        break;
    }
}

esdm_status
esdm__undo_keep_name(esdm_container *container, char **place, bool *apart, esdm__names *names,
                     uint32_t value, esdm_error *err)
{
    esdm__undo *undo = &container->undo;
    entry kept = {
        .kind = KEPT_NAME,
        .of.name = {.place = place, .apart = apart, .names = names, .value = value},
    };
    if (!undo->active)
        return ESDM_OK;
    esdm_status st = reserve(undo, err);
    if (st == ESDM_OK)
        st = copy_text(*place, &kept.of.name.text, err);
    if (st == ESDM_OK)
        add(undo, &kept);
    return st;
}

esdm_status
esdm__undo_keep_attributes(esdm_attributes *list, esdm_error *err)
{
    esdm__undo *undo = &list->container->undo;
    entry kept = {.kind = KEPT_ATTRIBUTES, .of.attributes = {.list = list}};
    if (!undo->active || list->kept == undo->number)
        return ESDM_OK;
    esdm_status st = reserve(undo, err);
    if (st == ESDM_OK) {
        kept.of.attributes.copy.container = list->container;
        st = esdm__attributes_copy(list, &kept.of.attributes.copy, err);
    }
    if (st != ESDM_OK) {
        entry_clear(&kept);
        return st;
    }
    list->kept = undo->number;
    add(undo, &kept);
    return ESDM_OK;
}

static esdm_status
copy_accuracy(const esdm__stated *stated, kept_dataset *to, esdm_error *err)
{
    esdm_accuracy accuracy;
    if (stated->accuracy == NULL)
        return ESDM_OK;
    esdm__accuracy_of_kept(stated->accuracy, &accuracy);
    to->accuracy = esdm__accuracy_keep(&accuracy);
    if (to->accuracy == NULL)
        return esdm__error_nomem(err, sizeof accuracy, "what can be undone");
    return copy_text(stated->units, &to->units, err);
}

static esdm_status
copy_dataset(const esdm_dataset *dataset, kept_dataset *to, esdm_error *err)
{
    esdm__typeref of;
    size_t bytes = dataset->rank * sizeof *to->chunk;
    esdm_status st = copy_text(dataset->stated->codec, &to->codec, err);
    if (st == ESDM_OK)
        st = copy_accuracy(dataset->stated, to, err);
    if (st == ESDM_OK)
        st = copy_hints(&dataset->stated->hints, &to->hints, err);
    if (st == ESDM_OK && dataset->stated->chunk != NULL) {
        to->chunk = malloc(bytes > 0 ? bytes : 1);
        if (to->chunk == NULL)
            return esdm__error_nomem(err, bytes, "what can be undone");
        memcpy(to->chunk, dataset->stated->chunk, bytes);
    }
    if (st == ESDM_OK && dataset->stated->fill != NULL)
        st = esdm__type_resolve(dataset->group->container, dataset->type, &of, err);
    if (st == ESDM_OK && dataset->stated->fill != NULL)
        st = esdm__value_new(of, dataset->stated->fill, &to->fill, err);
    return st;
}

esdm_status
esdm__undo_keep_dataset(esdm_dataset *dataset, esdm_error *err)
{
    esdm__undo *undo = &dataset->group->container->undo;
    entry kept = {.kind = KEPT_DATASET, .of.dataset = {.dataset = dataset}};
    if (!undo->active || dataset->stated->kept == undo->number ||
        dataset->id >= undo->next_dataset_id)
        return ESDM_OK;
    esdm_status st = reserve(undo, err);
    esdm__stated *stated = st == ESDM_OK ? esdm__dataset_stated(dataset, err) : NULL;
    if (st == ESDM_OK && stated == NULL)
        st = ESDM_ENOMEM;
    if (st == ESDM_OK)
        st = copy_dataset(dataset, &kept.of.dataset, err);
    if (st != ESDM_OK) {
        entry_clear(&kept);
        /* All of it was freed. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
        return st;
    }
    stated->kept = undo->number;
    add(undo, &kept);
    return ESDM_OK;
}

bool
esdm__undo_has_kept(const esdm_dataset *dataset)
{
    const esdm__undo *undo = &dataset->group->container->undo;
    return undo->active && dataset->stated->kept == undo->number;
}

esdm_status
esdm__undo_keep_hints(esdm_container *container, esdm_error *err)
{
    esdm__undo *undo = &container->undo;
    entry kept = {.kind = KEPT_HINTS};
    if (!undo->active || undo->hints_kept)
        return ESDM_OK;
    esdm_status st = reserve(undo, err);
    if (st == ESDM_OK)
        st = copy_hints(&container->hints, &kept.of.hints, err);
    if (st != ESDM_OK) {
        entry_clear(&kept);
        return st;
    }
    undo->hints_kept = true;
    add(undo, &kept);
    return ESDM_OK;
}

/* ---- the mark ------------------------------------------------------------------------------ */

static void
clear_entries(esdm__undo *undo)
{
    for (size_t i = 0; i < undo->count; i++)
        entry_clear(&undo->entries[i]);
    undo->count = 0;
}

void
esdm__undo_forget(esdm_container *container)
{
    clear_entries(&container->undo);
    free(container->undo.entries);
    container->undo.entries = NULL;
    container->undo.capacity = 0;
    container->undo.active = false;
}

void
esdm_container_mark(esdm_container *container)
{
    if (container == NULL)
        return;
    esdm__undo *undo = &container->undo;
    if (!container->writable)
        return;
    /* The first one is 1: what carries 0 was never kept. */
    clear_entries(undo);
    undo->active = true;
    undo->dirty = container->structure_dirty;
    undo->hints_kept = false;
    undo->number++;
    undo->next_dataset_id = container->next_dataset_id;
    undo->groups = container->groups.count;
    undo->dimensions = container->dimensions.count;
    undo->datasets = container->datasets.count;
    undo->types = container->types.count;
}

/* ---- going back ---------------------------------------------------------------------------- */

/* Changes places with what is kept, which is freed afterwards. */
#define SWAP(a, b)                                                                                 \
    do {                                                                                           \
        __typeof__(a) swap_ = (a);                                                                 \
        (a) = (b);                                                                                 \
        (b) = swap_;                                                                               \
    } while (0)

static void
restore_name(kept_name *kept)
{
    esdm__names_remove(kept->names, esdm__names_hash(*kept->place), kept->value);
    SWAP(*kept->place, kept->text);
    if (kept->apart != NULL && !*kept->apart) { /* it was kept, and then not changed */
        kept->text = NULL;
        *kept->apart = true;
    }
    esdm__names_add(kept->names, esdm__names_hash(*kept->place), kept->value);
}

static void
restore_dataset(kept_dataset *kept)
{
    /* Its own, since it was kept. */
    esdm__stated *stated = (esdm__stated *) (uintptr_t) kept->dataset->stated;
    SWAP(stated->fill, kept->fill);
    SWAP(stated->chunk, kept->chunk);
    SWAP(stated->codec, kept->codec);
    SWAP(stated->accuracy, kept->accuracy);
    SWAP(stated->units, kept->units);
    SWAP(stated->hints, kept->hints);
}

static void
restore(esdm_container *container, entry *kept)
{
    switch (kept->kind) {
    case KEPT_NAME:
        restore_name(&kept->of.name);
        break;
    case KEPT_ATTRIBUTES:
        SWAP(*kept->of.attributes.list, kept->of.attributes.copy);
        break;
    case KEPT_DATASET:
        restore_dataset(&kept->of.dataset);
        break;
    case KEPT_HINTS:
        SWAP(container->hints, kept->of.hints);
        break;
    }
}

/* The last child of that kind leaves its group. */
static void
leave_group(esdm_group *group, esdm__pointers *list, const char *name, uint32_t kind)
{
    list->count--;
    esdm__names_remove(&group->members, esdm__names_hash(name), 4 * (uint32_t) list->count + kind);
}

/* New objects go, the newest first: they are the last ones of their groups. */
static void
drop_new(esdm_container *container, const esdm__undo *undo)
{
    while (container->datasets.count > undo->datasets) {
        esdm_dataset *dataset = container->datasets.items[--container->datasets.count];
        leave_group(dataset->group, &dataset->group->datasets, dataset->name, ESDM__MEMBER_DATASET);
        esdm__dataset_free(dataset);
    }
    while (container->dimensions.count > undo->dimensions) {
        esdm_dimension *dimension = container->dimensions.items[--container->dimensions.count];
        esdm_group *group = dimension->group;
        group->dimensions.count--;
        esdm__names_remove(&group->dimension_names, esdm__names_hash(dimension->name),
                           (uint32_t) group->dimensions.count);
        esdm__dimension_free(dimension);
    }
    while (container->types.count > undo->types) {
        esdm__usertype *type = container->types.items[--container->types.count];
        leave_group(type->group, &type->group->types, type->name, ESDM__MEMBER_TYPE);
        esdm__usertype_free(type);
    }
    while (container->groups.count > undo->groups) {
        esdm_group *group = container->groups.items[--container->groups.count];
        leave_group(group->parent, &group->parent->groups, group->name, ESDM__MEMBER_GROUP);
        esdm__group_free(group);
    }
}

void
esdm__undo_revert(esdm_container *container)
{
    esdm__undo *undo = &container->undo;
    if (!undo->active)
        return;
    for (size_t i = undo->count; i > 0; i--)
        restore(container, &undo->entries[i - 1]);
    clear_entries(undo); /* while the types of the values are there */
    drop_new(container, undo);
    container->next_dataset_id = undo->next_dataset_id;
    esdm__container_changed(container);
    container->structure_dirty = undo->dirty;
    esdm_container_mark(container);
}
