/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Dimensions: created, renamed, asked about. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arguments.h"
#include "base/error.h"
#include "model/group.h"
#include "model/undo.h"

static const char *
dimension_name(const void *owner, uint32_t value)
{
    const esdm_group *group = owner;
    return ((const esdm_dimension *) group->dimensions.items[value])->name;
}

static esdm_status
check_free(const esdm_group *group, const char *name, uint32_t hash, esdm_error *err)
{
    uint32_t value;
    esdm_status st = esdm__name_check(name, "dimension", err);
    if (st == ESDM_OK &&
        esdm__names_find(&group->dimension_names, name, hash, dimension_name, group, &value))
        return esdm__error_set(err, ESDM_EEXIST, "group '%s/' already has a dimension named '%s'",
                               group->name, name);
    return st;
}

void
esdm__dimension_free(esdm_dimension *dimension)
{
    if (dimension == NULL)
        return;
    free(dimension->name);
    free(dimension);
}

esdm_status
esdm__dimension_new(esdm_group *group, const char *name, uint64_t length,
                    esdm_dimension **ret_dimension, esdm_error *err)
{
    esdm_container *container = group->container;
    uint32_t hash = esdm__names_hash(name);
    esdm_status st = check_free(group, name, hash, err);
    if (st != ESDM_OK)
        return st;
    if (container->dimensions.count >= ESDM__OBJECTS_MAX)
        return esdm__error_set(err, ESDM_EINVAL, "container '%.300s' has too many dimensions",
                               container->name);

    esdm_dimension *dimension = calloc(1, sizeof *dimension);
    char *copy = strdup(name);
    if (dimension == NULL || copy == NULL || !esdm__pointers_reserve(&container->dimensions) ||
        !esdm__pointers_reserve(&group->dimensions) ||
        !esdm__names_reserve(&group->dimension_names)) {
        free(dimension);
        free(copy);
        return esdm__error_nomem(err, sizeof *dimension, "a dimension");
    }
    dimension->group = group;
    dimension->name = copy;
    dimension->id = (uint32_t) container->dimensions.count;
    dimension->unlimited = length == ESDM_UNLIMITED;
    atomic_init(&dimension->length, dimension->unlimited ? 0 : length);
    esdm__names_add(&group->dimension_names, hash, (uint32_t) group->dimensions.count);
    (void) esdm__pointers_add(&container->dimensions, dimension); /* room was reserved */
    (void) esdm__pointers_add(&group->dimensions, dimension);
    *ret_dimension = dimension;
    return ESDM_OK;
}

esdm_status
esdm_dimension_create(esdm_group *group, const char *name, uint64_t length,
                      esdm_dimension **ret_dimension, esdm_error *err)
{
    ESDM__NEED(err, group);
    ESDM__NEED(err, name);
    ESDM__NEED(err, ret_dimension);
    esdm_status st = esdm__container_check_writable(group->container, err);
    if (st == ESDM_OK)
        st = esdm__dimension_new(group, name, length, ret_dimension, err);
    if (st == ESDM_OK)
        esdm__container_changed(group->container);
    return st;
}

esdm_status
esdm_dimension_rename(esdm_dimension *dimension, const char *name, esdm_error *err)
{
    ESDM__NEED(err, dimension);
    ESDM__NEED(err, name);
    esdm_group *group = dimension->group;
    uint32_t index = 0;
    esdm_status st = esdm__container_check_writable(group->container, err);
    if (st == ESDM_OK)
        st = esdm__name_check(name, "dimension", err);
    if (st != ESDM_OK || strcmp(dimension->name, name) == 0)
        return st;
    uint32_t hash = esdm__names_hash(name);
    st = check_free(group, name, hash, err);
    if (st != ESDM_OK)
        return st;
    while (group->dimensions.items[index] != dimension)
        index++;
    st = esdm__undo_keep_name(group->container, &dimension->name, NULL, &group->dimension_names,
                              index, err);
    if (st != ESDM_OK)
        return st;
    char *copy = strdup(name);
    if (copy == NULL)
        return esdm__error_nomem(err, strlen(name), "a name");
    esdm__names_remove(&group->dimension_names, esdm__names_hash(dimension->name), index);
    free(dimension->name);
    dimension->name = copy;
    esdm__names_add(&group->dimension_names, hash, index);
    esdm__container_changed(group->container);
    return ESDM_OK;
}

const char *
esdm_dimension_name(const esdm_dimension *dimension)
{
    if (dimension == NULL)
        return NULL;
    return dimension->name;
}

uint32_t
esdm_dimension_id(const esdm_dimension *dimension)
{
    if (dimension == NULL)
        return 0;
    return dimension->id;
}

uint64_t
esdm_dimension_length(const esdm_dimension *dimension)
{
    if (dimension == NULL)
        return 0;
    return atomic_load_explicit(&dimension->length, memory_order_acquire);
}

bool
esdm_dimension_is_unlimited(const esdm_dimension *dimension)
{
    if (dimension == NULL)
        return false;
    return dimension->unlimited;
}

esdm_group *
esdm_dimension_group(const esdm_dimension *dimension)
{
    if (dimension == NULL)
        return NULL;
    return dimension->group;
}

esdm_dimension *
esdm_group_dimension_find(const esdm_group *group, const char *name)
{
    if (group == NULL)
        return NULL;
    uint32_t index;
    if (name == NULL || !esdm__names_find(&group->dimension_names, name, esdm__names_hash(name),
                                          dimension_name, group, &index))
        return NULL;
    return group->dimensions.items[index];
}

bool
esdm__dimension_grow(esdm_dimension *dimension, uint64_t length)
{
    uint64_t now = atomic_load_explicit(&dimension->length, memory_order_relaxed);
    while (now < length) {
        if (atomic_compare_exchange_weak_explicit(&dimension->length, &now, length,
                                                  memory_order_acq_rel, memory_order_relaxed))
            return true;
    }
    return false;
}

esdm_status
esdm_dimension_extend(esdm_dimension *dimension, uint64_t length, esdm_error *err)
{
    ESDM__NEED(err, dimension);
    esdm_container *container = dimension->group->container;
    esdm_status st = esdm__container_check_writable(container, err);
    if (st != ESDM_OK)
        return st;
    if (!dimension->unlimited)
        return esdm__error_set(err, ESDM_EINVAL,
                               "dimension '%s' has the fixed length %" PRIu64
                               "; only unlimited dimensions grow",
                               dimension->name, esdm_dimension_length(dimension));
    if (length == ESDM_UNLIMITED)
        return esdm__error_set(err, ESDM_EINVAL, "dimension '%s': length %" PRIu64 " is too large",
                               dimension->name, length);
    if (esdm__dimension_grow(dimension, length))
        atomic_store(&container->lengths_dirty, true);
    return ESDM_OK;
}
