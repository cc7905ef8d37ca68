/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "model/compare.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/accuracy.h"
#include "model/accuracy_kept.h"
#include "model/values.h"

typedef struct comparison {
    const char *one;
    const char *other;
    char *text;
    size_t bytes;
} comparison;

/* Says what differs. Returns true. */
static bool differs(const comparison *c, const char *format, ...) ESDM_PRINTF(2, 3);

static bool
differs(const comparison *c, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void) vsnprintf(c->text, c->bytes, format, arguments);
    va_end(arguments);
    return true;
}

/* "a" is on one, "b" on the other; NULL: nothing is there. */
static bool
names_differ(const comparison *c, const char *what, const char *where, const char *a, const char *b)
{
    if (a == NULL || b == NULL)
        return differs(c, "%s '%s' of '%s' is defined on %s but not on %s", what, a != NULL ? a : b,
                       where, a != NULL ? c->one : c->other, a != NULL ? c->other : c->one);
    if (strcmp(a, b) == 0)
        return false;
    return differs(c, "a %s of '%s' is called '%s' on %s and '%s' on %s", what, where, a, c->one, b,
                   c->other);
}

static bool
numbers_differ(const comparison *c, const char *what, const char *where, uint64_t a, uint64_t b)
{
    if (a == b)
        return false;
    return differs(c, "%s of '%s' is %" PRIu64 " on %s and %" PRIu64 " on %s", what, where, a,
                   c->one, b, c->other);
}

static bool
texts_differ(const comparison *c, const char *what, const char *where, const char *a, const char *b)
{
    if (a == b || (a != NULL && b != NULL && strcmp(a, b) == 0))
        return false;
    return differs(c, "%s of '%s' is '%s' on %s and '%s' on %s", what, where,
                   a != NULL ? a : "(none)", c->one, b != NULL ? b : "(none)", c->other);
}

/* ---- attributes --------------------------------------------------------------------------- */

/* Both containers have the same types by now. */
static bool
values_equal(const esdm_container *container, esdm_type type, uint64_t count, const void *a,
             const void *b)
{
    esdm__typeref of;
    return esdm__type_resolve(container, type, &of, NULL) == ESDM_OK &&
           esdm__values_equal(of, count, a, b);
}

static bool
attributes_differ(const comparison *c, const char *where, const esdm_attributes *a,
                  const esdm_attributes *b)
{
    esdm_attribute x = {0};
    esdm_attribute y = {0};
    size_t most = a->count > b->count ? a->count : b->count;
    for (size_t i = 0; i < most; i++) {
        bool has_x = esdm_attribute_at(a, i, &x);
        bool has_y = esdm_attribute_at(b, i, &y);
        if (names_differ(c, "attribute", where, has_x ? x.name : NULL, has_y ? y.name : NULL))
            return true;
        if (x.type != y.type || x.count != y.count ||
            !values_equal(a->container, x.type, x.count, x.values, y.values))
            return differs(c, "attribute '%s' of '%s' has another value on %s than on %s", x.name,
                           where, c->one, c->other);
    }
    return false;
}

static bool
hints_differ(const comparison *c, const char *where, const esdm__hints *a, const esdm__hints *b)
{
    for (size_t i = 0; i < a->count; i++) {
        if (texts_differ(c, a->items[i].key, where, a->items[i].value,
                         esdm__hints_get(b, a->items[i].key)))
            return true;
    }
    for (size_t i = 0; i < b->count; i++) {
        if (texts_differ(c, b->items[i].key, where, esdm__hints_get(a, b->items[i].key),
                         b->items[i].value))
            return true;
    }
    return false;
}

/* ---- objects ------------------------------------------------------------------------------ */

/* "/group/name" of what is called `name` in `group`; in `buffer`, cut when it is too long. */
static const char *
path_of(const esdm_group *group, const char *name, char *buffer, size_t bytes)
{
    size_t at = bytes;
    buffer[--at] = '\0';
    while (name != NULL && at > 0) {
        size_t length = strlen(name);
        length = length < at - 1 ? length : at - 1;
        at -= length;
        memcpy(buffer + at, name, length);
        if (at > 0)
            buffer[--at] = '/';
        name = group->parent != NULL ? group->name : NULL;
        group = group->parent;
    }
    return buffer + at;
}

static const char *
group_path(const esdm_group *group, char *buffer, size_t bytes)
{
    return group->parent != NULL ? path_of(group->parent, group->name, buffer, bytes) : "/";
}

/* What both sides take a type from; they have the same ones, as far as they have been compared. */
static bool
types_used_differ(const comparison *c, const char *what, const char *where, esdm_type a,
                  esdm_type b, const esdm_container *container)
{
    return a != b &&
           differs(c, "%s of '%s' is '%s' on %s and '%s' on %s", what, where,
                   esdm__type_name(container, a), c->one, esdm__type_name(container, b), c->other);
}

/* Not their offsets, nor sizes of compounds: the memory layout is each program's own. */
static bool
members_differ(const comparison *c, const char *where, const esdm__usertype *a,
               const esdm__usertype *b)
{
    for (size_t i = 0; i < a->count; i++) {
        if (a->kind == ESDM_CLASS_ENUM) {
            if (names_differ(c, "member", where, a->enumerators[i].name, b->enumerators[i].name) ||
                numbers_differ(c, "a value", where, a->enumerators[i].value,
                               b->enumerators[i].value))
                return true;
            continue;
        }
        const esdm__member *x = &a->members[i];
        const esdm__member *y = &b->members[i];
        if (names_differ(c, "member", where, x->name, y->name) ||
            types_used_differ(c, "the type of a member", where, x->type, y->type,
                              a->group->container) ||
            numbers_differ(c, "the rank of a member", where, x->rank, y->rank))
            return true;
        for (uint32_t k = 0; k < x->rank; k++) {
            if (numbers_differ(c, "the shape of a member", where, x->shape[k], y->shape[k]))
                return true;
        }
    }
    return false;
}

static bool
types_differ(const comparison *c, const esdm__usertype *a, const esdm__usertype *b)
{
    char path[300];
    const esdm__usertype *there = a != NULL ? a : b;
    const char *where = group_path(there->group, path, sizeof path);
    if (names_differ(c, "type", where, a != NULL ? a->name : NULL, b != NULL ? b->name : NULL) ||
        a == NULL || b == NULL)
        return true;
    where = path_of(a->group, a->name, path, sizeof path);
    return numbers_differ(c, "the group", where, a->group->id, b->group->id) ||
           numbers_differ(c, "the class", where, (uint64_t) a->kind, (uint64_t) b->kind) ||
           (a->kind == ESDM_CLASS_OPAQUE &&
            numbers_differ(c, "the size", where, a->memory_bytes, b->memory_bytes)) ||
           types_used_differ(c, "the base type", where, a->base, b->base, a->group->container) ||
           numbers_differ(c, "the number of members", where, a->count, b->count) ||
           members_differ(c, where, a, b);
}

static bool
dimensions_differ(const comparison *c, const esdm_dimension *a, const esdm_dimension *b)
{
    char path[300];
    const esdm_dimension *there = a != NULL ? a : b;
    const char *where = group_path(there->group, path, sizeof path);
    if (names_differ(c, "dimension", where, a != NULL ? a->name : NULL,
                     b != NULL ? b->name : NULL) ||
        a == NULL || b == NULL)
        return true;
    where = path_of(a->group, a->name, path, sizeof path);
    if (a->unlimited != b->unlimited)
        return differs(c, "dimension '%s' is unlimited on %s but not on %s", where,
                       a->unlimited ? c->one : c->other, a->unlimited ? c->other : c->one);
    return numbers_differ(c, "the group", where, a->group->id, b->group->id) ||
           (!a->unlimited && numbers_differ(c, "the length", where, atomic_load(&a->length),
                                            atomic_load(&b->length)));
}

static bool
storage_differs(const comparison *c, const char *where, const esdm_dataset *a,
                const esdm_dataset *b)
{
    if ((a->stated->chunk == NULL) != (b->stated->chunk == NULL))
        return differs(c, "the chunk shape of '%s' is stated on %s alone", where,
                       a->stated->chunk != NULL ? c->one : c->other);
    for (uint32_t i = 0; a->stated->chunk != NULL && i < a->rank; i++) {
        if (numbers_differ(c, "the chunk shape", where, a->stated->chunk[i], b->stated->chunk[i]))
            return true;
    }
    if (texts_differ(c, "the codec", where, a->stated->codec, b->stated->codec))
        return true;
    esdm_accuracy x, y; /* without what ended with its units */
    bool has_x = esdm_dataset_accuracy(a, &x), has_y = esdm_dataset_accuracy(b, &y);
    if (!esdm__accuracy_equal(has_x ? &x : NULL, has_y ? &y : NULL))
        return differs(c, "the accuracy of '%s' is another one on %s than on %s", where, c->one,
                       c->other);
    if ((a->stated->fill == NULL) != (b->stated->fill == NULL) ||
        (a->stated->fill != NULL &&
         !values_equal(a->group->container, a->type, 1, a->stated->fill, b->stated->fill)))
        return differs(c, "the fill value of '%s' is another one on %s than on %s", where, c->one,
                       c->other);
    return false;
}

static bool
datasets_differ(const comparison *c, const esdm_dataset *a, const esdm_dataset *b)
{
    char path[300];
    const esdm_dataset *there = a != NULL ? a : b;
    const char *where = group_path(there->group, path, sizeof path);
    if (names_differ(c, "dataset", where, a != NULL ? a->name : NULL, b != NULL ? b->name : NULL) ||
        a == NULL || b == NULL)
        return true;
    where = path_of(a->group, a->name, path, sizeof path);
    if (numbers_differ(c, "the group", where, a->group->id, b->group->id) ||
        types_used_differ(c, "the type", where, a->type, b->type, a->group->container) ||
        numbers_differ(c, "the number of dimensions", where, a->rank, b->rank))
        return true;
    for (uint32_t i = 0; i < a->rank; i++) {
        if (a->dimensions[i]->id != b->dimensions[i]->id)
            return differs(c, "dimension %u of '%s' is '%s' on %s and '%s' on %s", i, where,
                           a->dimensions[i]->name, c->one, b->dimensions[i]->name, c->other);
    }
    return storage_differs(c, where, a, b) ||
           hints_differ(c, where, &a->stated->hints, &b->stated->hints) ||
           attributes_differ(c, where, &a->attributes, &b->attributes);
}

static bool
groups_differ(const comparison *c, const esdm_group *a, const esdm_group *b)
{
    char path[300];
    const esdm_group *there = a != NULL ? a : b;
    const char *where = there->parent != NULL ? group_path(there->parent, path, sizeof path) : "/";
    if (names_differ(c, "group", where, a != NULL ? a->name : NULL, b != NULL ? b->name : NULL) ||
        a == NULL || b == NULL)
        return true;
    where = group_path(there, path, sizeof path);
    if (a->parent != NULL &&
        numbers_differ(c, "the parent group", where, a->parent->id, b->parent->id))
        return true;
    return attributes_differ(c, where, &a->attributes, &b->attributes);
}

static void *
item(const esdm__pointers *list, size_t i)
{
    return i < list->count ? list->items[i] : NULL;
}

static size_t
more(size_t a, size_t b)
{
    return a > b ? a : b;
}

bool
esdm__structure_differs(const esdm_container *a, const char *one, const esdm_container *b,
                        const char *other, char *text, size_t bytes)
{
    const comparison c = {one, other, text, bytes};
    for (size_t i = 0; i < more(a->types.count, b->types.count); i++) {
        if (types_differ(&c, item(&a->types, i), item(&b->types, i)))
            return true;
    }
    for (size_t i = 0; i < more(a->groups.count, b->groups.count); i++) {
        if (groups_differ(&c, item(&a->groups, i), item(&b->groups, i)))
            return true;
    }
    for (size_t i = 0; i < more(a->dimensions.count, b->dimensions.count); i++) {
        if (dimensions_differ(&c, item(&a->dimensions, i), item(&b->dimensions, i)))
            return true;
    }
    for (size_t i = 0; i < more(a->datasets.count, b->datasets.count); i++) {
        if (datasets_differ(&c, item(&a->datasets, i), item(&b->datasets, i)))
            return true;
    }
    return hints_differ(&c, "/", &a->hints, &b->hints);
}

/* ---- following ---------------------------------------------------------------------------- */

static bool
decides_what_is_stored(const char *name)
{
    return strcmp(name, "_FillValue") == 0 || strncmp(name, "esdm_", 5) == 0;
}

static esdm_status
follow(const char *where, esdm_attributes *list, const esdm_attributes *first, char *text,
       size_t bytes, bool *told, esdm_error *err)
{
    esdm_attribute x = {0};
    esdm_attribute y = {0};
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < list->count && status == ESDM_OK; i++) {
        if (!esdm_attribute_at(list, i, &x) || !esdm_attribute_at(first, i, &y) ||
            strcmp(x.name, y.name) != 0 || x.type != y.type || decides_what_is_stored(x.name) ||
            (x.count == y.count &&
             values_equal(list->container, x.type, x.count, x.values, y.values)))
            continue;
        if (!*told)
            (void) snprintf(text, bytes, "attribute '%.100s' of '%.100s'", x.name, where);
        *told = true;
        status = esdm_attribute_set(list, y.name, y.type, y.count, y.values, err);
    }
    return status;
}

/* What is the same in other numbers is kept in those of the first one. */
static esdm_status
follow_accuracy(esdm_dataset *dataset, const esdm_dataset *first, esdm_error *err)
{
    const esdm__stated *here = dataset->stated;
    const esdm__stated *there = first->stated;
    esdm_accuracy mine, others;
    if (here->accuracy == NULL || there->accuracy == NULL || here->units != NULL ||
        there->units != NULL)
        return ESDM_OK;
    esdm__accuracy_of_kept(here->accuracy, &mine);
    esdm__accuracy_of_kept(there->accuracy, &others);
    if (!esdm__accuracy_equal(&mine, &others))
        return ESDM_OK;
    esdm_status status = esdm__dataset_put_accuracy(dataset, NULL, NULL, err);
    return status == ESDM_OK ? esdm__dataset_put_accuracy(dataset, &others, NULL, err) : status;
}

esdm_status
esdm__attributes_follow(esdm_container *container, const esdm_container *first, char *text,
                        size_t bytes, esdm_error *err)
{
    char path[300];
    bool told = false;
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < container->groups.count && i < first->groups.count; i++) {
        esdm_group *group = container->groups.items[i];
        const esdm_group *other = first->groups.items[i];
        if (status == ESDM_OK)
            status = follow(group_path(group, path, sizeof path), &group->attributes,
                            &other->attributes, text, bytes, &told, err);
    }
    for (size_t i = 0; i < container->datasets.count && i < first->datasets.count; i++) {
        esdm_dataset *dataset = container->datasets.items[i];
        const esdm_dataset *other = first->datasets.items[i];
        if (status == ESDM_OK && strcmp(dataset->name, other->name) == 0)
            status = follow(path_of(dataset->group, dataset->name, path, sizeof path),
                            &dataset->attributes, &other->attributes, text, bytes, &told, err);
        if (status == ESDM_OK && strcmp(dataset->name, other->name) == 0)
            status = follow_accuracy(dataset, other, err);
    }
    return status;
}
