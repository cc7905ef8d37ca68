/* SPDX-License-Identifier: LGPL-3.0-or-later */
/** @file Groups. Child groups, datasets and types share one table of names; see `group.h`. */

#include "model/group.h"

#include <stdlib.h>
#include <string.h>

#include "base/arguments.h"
#include "base/error.h"
#include "model/undo.h"
#include "model/usertype.h"

/* ---- members: the names of child groups and datasets --------------------------------------- */

static void *
member_at(const esdm_group *group, uint32_t value)
{
    uint32_t index = value / 4;
    switch (value % 4) {
    case ESDM__MEMBER_GROUP:
        return group->groups.items[index];
    case ESDM__MEMBER_DATASET:
        return group->datasets.items[index];
    default:
        return group->types.items[index];
    }
}

static const char *
member_name(const void *owner, uint32_t value)
{
    const void *member = member_at(owner, value);
    switch (value % 4) {
    case ESDM__MEMBER_GROUP:
        return ((const esdm_group *) member)->name;
    case ESDM__MEMBER_DATASET:
        return ((const esdm_dataset *) member)->name;
    default:
        return ((const esdm__usertype *) member)->name;
    }
}

void *
esdm__group_member(const esdm_group *group, const char *name, uint32_t kind)
{
    uint32_t value;
    if (name == NULL || !esdm__names_find(&group->members, name, esdm__names_hash(name),
                                          member_name, group, &value))
        return NULL;
    return value % 4 == kind ? member_at(group, value) : NULL;
}

void
esdm__group_add_member(esdm_group *group, uint32_t hash, uint32_t index, uint32_t kind)
{
    esdm__names_add(&group->members, hash, 4 * index + kind);
}

esdm_status
esdm__group_check_free(const esdm_group *group, const char *name, uint32_t hash, const char *what,
                       esdm_error *err)
{
    static const char *const kinds[] = {"group", "dataset", "type"};
    uint32_t value;
    esdm_status st = esdm__name_check(name, what, err);
    if (st != ESDM_OK)
        return st;
    if (!esdm__names_find(&group->members, name, hash, member_name, group, &value))
        return ESDM_OK;
    return esdm__error_set(err, ESDM_EEXIST, "group '%s/' already has a %s named '%s'", group->name,
                           kinds[value % 4], name);
}

esdm_status
esdm__group_rename_member(esdm_group *group, const char *name, uint32_t kind, uint32_t index,
                          char **object_name, bool *apart, esdm_error *err)
{
    const char *what = kind == ESDM__MEMBER_GROUP ? "group" : "dataset";
    esdm_status st = esdm__container_check_writable(group->container, err);
    if (st == ESDM_OK)
        st = esdm__name_check(name, what, err);
    if (st != ESDM_OK || strcmp(*object_name, name) == 0)
        return st;
    uint32_t hash = esdm__names_hash(name);
    st = esdm__group_check_free(group, name, hash, what, err);
    if (st != ESDM_OK)
        return st;
    st = esdm__undo_keep_name(group->container, object_name, apart, &group->members,
                              4 * index + kind, err);
    if (st != ESDM_OK)
        return st;
    char *copy = strdup(name);
    if (copy == NULL)
        return esdm__error_nomem(err, strlen(name), "a name");
    esdm__names_remove(&group->members, esdm__names_hash(*object_name), 4 * index + kind);
    if (apart == NULL || *apart)
        free(*object_name);
    if (apart != NULL)
        *apart = true;
    *object_name = copy;
    esdm__group_add_member(group, hash, index, kind);
    esdm__container_changed(group->container);
    return ESDM_OK;
}

/* ---- groups -------------------------------------------------------------------------------- */

void
esdm__group_free(esdm_group *group)
{
    if (group == NULL)
        return;
    esdm__attributes_clear(&group->attributes);
    esdm__names_clear(&group->members);
    esdm__names_clear(&group->dimension_names);
    free(group->groups.items);
    free(group->dimensions.items);
    free(group->datasets.items);
    free(group->types.items);
    free(group->name);
    free(group);
}

esdm_status
esdm__group_new(esdm_group *parent, const char *name, esdm_group **ret_group, esdm_error *err)
{
    esdm_container *container = parent->container;
    uint32_t hash = esdm__names_hash(name);
    esdm_status st = esdm__group_check_free(parent, name, hash, "group", err);
    if (st != ESDM_OK)
        return st;
    if (container->groups.count >= ESDM__OBJECTS_MAX)
        return esdm__error_set(err, ESDM_EINVAL, "container '%.300s' has too many groups",
                               container->name);
    if (parent->depth == ESDM__GROUP_DEPTH_MAX)
        return esdm__error_set(err, ESDM_EINVAL, "group '%s' would be nested deeper than %d", name,
                               ESDM__GROUP_DEPTH_MAX);

    esdm_group *group = calloc(1, sizeof *group);
    char *copy = strdup(name);
    if (group == NULL || copy == NULL || !esdm__pointers_reserve(&container->groups) ||
        !esdm__pointers_reserve(&parent->groups) || !esdm__names_reserve(&parent->members)) {
        free(group);
        free(copy);
        return esdm__error_nomem(err, sizeof *group, "a group");
    }
    group->container = container;
    group->attributes.container = container;
    group->parent = parent;
    group->name = copy;
    group->id = (uint32_t) container->groups.count;
    group->depth = parent->depth + 1;
    esdm__group_add_member(parent, hash, (uint32_t) parent->groups.count, ESDM__MEMBER_GROUP);
    (void) esdm__pointers_add(&container->groups, group); /* room was reserved */
    (void) esdm__pointers_add(&parent->groups, group);
    *ret_group = group;
    return ESDM_OK;
}

esdm_status
esdm_group_create(esdm_group *parent, const char *name, esdm_group **ret_group, esdm_error *err)
{
    ESDM__NEED(err, parent);
    ESDM__NEED(err, name);
    ESDM__NEED(err, ret_group);
    esdm_status st = esdm__container_check_writable(parent->container, err);
    if (st == ESDM_OK)
        st = esdm__group_new(parent, name, ret_group, err);
    if (st == ESDM_OK)
        esdm__container_changed(parent->container);
    return st;
}

esdm_status
esdm_group_rename(esdm_group *group, const char *name, esdm_error *err)
{
    ESDM__NEED(err, group);
    ESDM__NEED(err, name);
    esdm_group *parent = group->parent;
    uint32_t index = 0;
    if (parent == NULL)
        return esdm__error_set(err, ESDM_EINVAL, "the root group cannot be renamed");
    while (parent->groups.items[index] != group)
        index++;
    return esdm__group_rename_member(parent, name, ESDM__MEMBER_GROUP, index, &group->name, NULL,
                                     err);
}

const char *
esdm_group_name(const esdm_group *group)
{
    if (group == NULL)
        return NULL;
    return group->name;
}

uint32_t
esdm_group_id(const esdm_group *group)
{
    if (group == NULL)
        return 0;
    return group->id;
}

esdm_group *
esdm_group_parent(const esdm_group *group)
{
    if (group == NULL)
        return NULL;
    return group->parent;
}

esdm_container *
esdm_group_container(const esdm_group *group)
{
    if (group == NULL)
        return NULL;
    return group->container;
}

size_t
esdm_group_count(const esdm_group *group)
{
    if (group == NULL)
        return 0;
    return group->groups.count;
}

esdm_group *
esdm_group_at(const esdm_group *group, size_t index)
{
    if (group == NULL)
        return NULL;
    return index < group->groups.count ? group->groups.items[index] : NULL;
}

esdm_group *
esdm_group_find(const esdm_group *group, const char *name)
{
    if (group == NULL)
        return NULL;
    return esdm__group_member(group, name, ESDM__MEMBER_GROUP);
}

esdm_attributes *
esdm_group_attributes(esdm_group *group)
{
    return group != NULL ? &group->attributes : NULL;
}

size_t
esdm_group_dimension_count(const esdm_group *group)
{
    if (group == NULL)
        return 0;
    return group->dimensions.count;
}

esdm_dimension *
esdm_group_dimension_at(const esdm_group *group, size_t index)
{
    if (group == NULL)
        return NULL;
    return index < group->dimensions.count ? group->dimensions.items[index] : NULL;
}

size_t
esdm_group_dataset_count(const esdm_group *group)
{
    if (group == NULL)
        return 0;
    return group->datasets.count;
}

esdm_dataset *
esdm_group_dataset_at(const esdm_group *group, size_t index)
{
    if (group == NULL)
        return NULL;
    return index < group->datasets.count ? group->datasets.items[index] : NULL;
}

esdm_dataset *
esdm_group_dataset_find(const esdm_group *group, const char *name)
{
    if (group == NULL)
        return NULL;
    return esdm__group_member(group, name, ESDM__MEMBER_DATASET);
}
