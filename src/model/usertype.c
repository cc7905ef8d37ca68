/* SPDX-License-Identifier: LGPL-3.0-or-later */
/** @file Definition of user-defined types; usertype_complete.c checks them. */

#include "model/usertype.h"

#include <stdlib.h>
#include <string.h>

#include "base/arguments.h"
#include "base/error.h"
#include "model/copy.h"
#include "model/group.h"

/* ---- finding ------------------------------------------------------------------------------- */

esdm__usertype *
esdm__usertype_at(const esdm_container *container, esdm_type type)
{
    if (type < ESDM_TYPE_FIRST_USER ||
        (size_t) (type - ESDM_TYPE_FIRST_USER) >= container->types.count)
        return NULL;
    return container->types.items[type - ESDM_TYPE_FIRST_USER];
}

esdm_status
esdm__type_resolve(const esdm_container *container, esdm_type type, esdm__typeref *ret_ref,
                   esdm_error *err)
{
    const esdm__usertype *user = NULL;
    if (esdm_type_size(type) == 0) {
        user = esdm__usertype_at(container, type);
        if (user == NULL)
            return esdm__error_set(err, ESDM_EINVAL, "there is no type %d", (int) type);
        esdm_status st = esdm__usertype_complete(user, err);
        if (st != ESDM_OK)
            return st;
    }
    *ret_ref = (esdm__typeref){type, user};
    return ESDM_OK;
}

const char *
esdm__type_name(const esdm_container *container, esdm_type type)
{
    const esdm__usertype *user = esdm__usertype_at(container, type);
    return user != NULL ? user->name : esdm_type_name(type);
}

const void *
esdm__type_default_fill(const esdm_container *container, esdm_type type)
{
    const esdm__usertype *user = esdm__usertype_at(container, type);
    if (user == NULL)
        return esdm_type_default_fill(type);
    return user->kind == ESDM_CLASS_ENUM ? esdm_type_default_fill(user->base) : user->zero;
}

esdm_status
esdm__usertype_need_zero(const esdm_container *container, esdm_type type, esdm_error *err)
{
    esdm__usertype *user = esdm__usertype_at(container, type);
    if (user == NULL || user->zero != NULL)
        return ESDM_OK;
    user->zero = calloc(1, user->memory_bytes);
    return user->zero != NULL ? ESDM_OK : esdm__error_nomem(err, user->memory_bytes, "a type");
}

/* ---- making -------------------------------------------------------------------------------- */

void
esdm__usertype_free(esdm__usertype *type)
{
    if (type == NULL)
        return;
    for (size_t i = 0; type->members != NULL && i < type->count; i++) {
        free(type->members[i].name);
        free(type->members[i].shape);
    }
    for (size_t i = 0; type->enumerators != NULL && i < type->count; i++)
        free(type->enumerators[i].name);
    free(type->members);
    free(type->enumerators);
    free(type->steps);
    free(type->zero);
    free(type->name);
    free(type);
}

static esdm__usertype *
allocate(esdm_group *group, const char *name, size_t memory_bytes)
{
    esdm__usertype *type = calloc(1, sizeof *type);
    if (type == NULL)
        return NULL;
    type->name = strdup(name);
    if (type->name == NULL) {
        free(type);
        return NULL;
    }
    type->group = group;
    type->memory_bytes = memory_bytes;
    atomic_init(&type->complete, false);
    return type;
}

esdm_status
esdm__usertype_new(esdm_group *group, const char *name, esdm_type_class kind, size_t memory_bytes,
                   esdm_type base, esdm__usertype **ret_type, esdm_error *err)
{
    esdm_container *container = group->container;
    uint32_t hash = esdm__names_hash(name);
    esdm_status st = esdm__group_check_free(group, name, hash, "type", err);
    if (st != ESDM_OK)
        return st;
    if (memory_bytes == 0 || memory_bytes > ESDM__TYPE_BYTES_MAX)
        return esdm__error_set(err, ESDM_EINVAL,
                               "type '%s': its size is %zu bytes; expected 1 to %zu", name,
                               memory_bytes, ESDM__TYPE_BYTES_MAX);
    if (container->types.count >= ESDM__OBJECTS_MAX)
        return esdm__error_set(err, ESDM_EINVAL, "container '%.300s' has too many types",
                               container->name);

    esdm__usertype *type = allocate(group, name, memory_bytes);
    if (type == NULL || !esdm__pointers_reserve(&container->types) ||
        !esdm__pointers_reserve(&group->types) || !esdm__names_reserve(&group->members)) {
        esdm__usertype_free(type);
        return esdm__error_nomem(err, sizeof *type, "a type");
    }
    type->type = ESDM_TYPE_FIRST_USER + (esdm_type) container->types.count;
    type->kind = kind;
    type->base = base;
    esdm__group_add_member(group, hash, (uint32_t) group->types.count, ESDM__MEMBER_TYPE);
    (void) esdm__pointers_add(&container->types, type); /* room was reserved */
    (void) esdm__pointers_add(&group->types, type);
    *ret_type = type;
    return ESDM_OK;
}

/* Room for one more of `item_bytes`. */
static bool
reserve(esdm__usertype *type, void **items, size_t item_bytes)
{
    if (*items != NULL && type->count < type->capacity)
        return true;
    size_t capacity = type->capacity > 0 ? type->capacity * 2 : 4;
    void *grown = reallocarray(*items, capacity, item_bytes);
    if (grown == NULL)
        return false;
    *items = grown;
    type->capacity = capacity;
    return true;
}

/* What adding any member asks for. */
static esdm_status
check_addition(const esdm__usertype *type, const char *name, esdm_error *err)
{
    if (atomic_load_explicit(&type->complete, memory_order_acquire))
        return esdm__error_set(err, ESDM_EINVAL, "type '%s' is in use: it does not change any more",
                               type->name);
    if (type->count >= UINT32_MAX)
        return esdm__error_set(err, ESDM_EINVAL, "type '%s' has too many members", type->name);
    return esdm__name_check(name, "member", err);
}

esdm_status
esdm__usertype_add_member(esdm__usertype *type, const char *name, size_t offset, esdm_type member,
                          uint32_t rank, const uint32_t *shape, esdm_error *err)
{
    esdm_status st = check_addition(type, name, err);
    if (st != ESDM_OK)
        return st;
    if (rank > ESDM__MEMBER_RANK_MAX || (rank > 0 && shape == NULL))
        return esdm__error_set(err, ESDM_EINVAL, "member '%s.%s': wrong shape", type->name, name);
    if (esdm_type_size(member) == 0 && esdm__usertype_at(type->group->container, member) == NULL)
        return esdm__error_set(err, ESDM_EINVAL, "member '%s.%s': there is no type %d", type->name,
                               name, (int) member);
    char *copy = strdup(name);
    uint32_t *sizes = rank > 0 ? calloc(rank, sizeof *sizes) : NULL;
    if (copy == NULL || (rank > 0 && sizes == NULL) ||
        !reserve(type, (void **) &type->members, sizeof *type->members)) {
        free(copy);
        free(sizes);
        return esdm__error_nomem(err, sizeof *type->members, "a member");
    }
    if (rank > 0)
        memcpy(sizes, shape, rank * sizeof *sizes);
    type->members[type->count++] = (esdm__member){
        .name = copy, .offset = offset, .type = member, .rank = rank, .shape = sizes};
    return ESDM_OK;
}

esdm_status
esdm__usertype_add_enumerator(esdm__usertype *type, const char *name, const void *value,
                              esdm_error *err)
{
    esdm_status st = check_addition(type, name, err);
    if (st != ESDM_OK)
        return st;
    if (value == NULL)
        return esdm__error_set(err, ESDM_EINVAL, "member '%s.%s': value must not be NULL",
                               type->name, name);
    esdm__enumerator item = {.name = strdup(name)};
    if (item.name == NULL ||
        !reserve(type, (void **) &type->enumerators, sizeof *type->enumerators)) {
        free(item.name);
        return esdm__error_nomem(err, sizeof item, "a member");
    }
    memcpy(&item.value, value, type->memory_bytes); /* at most 8: see esdm_enum_create() */
    type->enumerators[type->count++] = item;
    return ESDM_OK;
}

/* ---- public definition --------------------------------------------------------------------- */

static esdm_status
create(esdm_group *group, const char *name, esdm_type_class kind, size_t bytes, esdm_type base,
       esdm_type *ret_type, esdm_error *err)
{
    esdm__usertype *type = NULL;
    esdm_status st = esdm__container_check_writable(group->container, err);
    if (st == ESDM_OK)
        st = esdm__usertype_new(group, name, kind, bytes, base, &type, err);
    if (st != ESDM_OK)
        return st;
    esdm__container_changed(group->container);
    *ret_type = type->type;
    return ESDM_OK;
}

esdm_status
esdm_compound_create(esdm_group *group, const char *name, size_t bytes, esdm_type *ret_type,
                     esdm_error *err)
{
    ESDM__NEED(err, group);
    ESDM__NEED(err, name);
    ESDM__NEED(err, ret_type);
    return create(group, name, ESDM_CLASS_COMPOUND, bytes, ESDM_TYPE_NONE, ret_type, err);
}

esdm_status
esdm_opaque_create(esdm_group *group, const char *name, size_t bytes, esdm_type *ret_type,
                   esdm_error *err)
{
    ESDM__NEED(err, group);
    ESDM__NEED(err, name);
    ESDM__NEED(err, ret_type);
    return create(group, name, ESDM_CLASS_OPAQUE, bytes, ESDM_TYPE_NONE, ret_type, err);
}

esdm_status
esdm_vlen_create(esdm_group *group, const char *name, esdm_type base, esdm_type *ret_type,
                 esdm_error *err)
{
    ESDM__NEED(err, group);
    ESDM__NEED(err, name);
    ESDM__NEED(err, ret_type);
    return create(group, name, ESDM_CLASS_VLEN, sizeof(esdm_vlen), base, ret_type, err);
}

esdm_status
esdm_enum_create(esdm_group *group, const char *name, esdm_type base, esdm_type *ret_type,
                 esdm_error *err)
{
    ESDM__NEED(err, group);
    ESDM__NEED(err, name);
    ESDM__NEED(err, ret_type);
    /* Values of 8 bytes at most; that the type is an integer is asked when it is completed. */
    if (!esdm__type_is_numeric(base))
        return esdm__error_set(err, ESDM_EINVAL, "enumeration '%.256s': base type %d is no integer",
                               name != NULL ? name : "", (int) base);
    return create(group, name, ESDM_CLASS_ENUM, esdm_type_size(base), base, ret_type, err);
}

/* The type of that class, to be changed. */
static esdm_status
find_changeable(esdm_container *container, esdm_type type, esdm_type_class kind,
                esdm__usertype **ret_type, esdm_error *err)
{
    esdm_status st = esdm__container_check_writable(container, err);
    if (st != ESDM_OK)
        return st;
    esdm__usertype *found = esdm__usertype_at(container, type);
    if (found == NULL || found->kind != kind)
        return esdm__error_set(err, ESDM_EINVAL, "type %d is no %s of container '%.300s'",
                               (int) type, kind == ESDM_CLASS_ENUM ? "enumeration" : "compound",
                               container->name);
    *ret_type = found;
    return ESDM_OK;
}

esdm_status
esdm_compound_add(esdm_container *container, esdm_type compound, const char *name, size_t offset,
                  esdm_type member, uint32_t rank, const uint32_t *shape, esdm_error *err)
{
    ESDM__NEED(err, container);
    ESDM__NEED(err, name);
    esdm__usertype *type = NULL;
    esdm_status st = find_changeable(container, compound, ESDM_CLASS_COMPOUND, &type, err);
    if (st == ESDM_OK)
        st = esdm__usertype_add_member(type, name, offset, member, rank, shape, err);
    if (st == ESDM_OK)
        esdm__container_changed(container);
    return st;
}

esdm_status
esdm_enum_add(esdm_container *container, esdm_type type, const char *name, const void *value,
              esdm_error *err)
{
    ESDM__NEED(err, container);
    ESDM__NEED(err, name);
    ESDM__NEED(err, value);
    esdm__usertype *found = NULL;
    esdm_status st = find_changeable(container, type, ESDM_CLASS_ENUM, &found, err);
    if (st == ESDM_OK)
        st = esdm__usertype_add_enumerator(found, name, value, err);
    if (st == ESDM_OK)
        esdm__container_changed(container);
    return st;
}

/* ---- inquiry ------------------------------------------------------------------------------- */

bool
esdm_type_inquire(const esdm_container *container, esdm_type type, esdm_type_info *ret)
{
    if (ret == NULL)
        return false;
    const esdm__usertype *user = esdm__usertype_at(container, type);
    if (user == NULL) {
        if (esdm_type_size(type) == 0)
            return false;
        *ret = (esdm_type_info){.name = esdm_type_name(type),
                                .kind = ESDM_CLASS_ATOMIC,
                                .bytes = esdm_type_size(type),
                                .is_complete = true};
        return true;
    }
    *ret = (esdm_type_info){.name = user->name,
                            .group = user->group,
                            .kind = user->kind,
                            .bytes = user->memory_bytes,
                            .base = user->base,
                            .members = (uint32_t) user->count,
                            .is_complete =
                                atomic_load_explicit(&user->complete, memory_order_acquire)};
    return true;
}

size_t
esdm_container_type_size(const esdm_container *container, esdm_type type)
{
    const esdm__usertype *user = esdm__usertype_at(container, type);
    return user != NULL ? user->memory_bytes : esdm_type_size(type);
}

esdm_status
esdm_type_is_fixed_size(const esdm_container *container, esdm_type type, bool *ret_is_fixed,
                        esdm_error *err)
{
    ESDM__NEED(err, ret_is_fixed);
    esdm__typeref ref = {ESDM_TYPE_NONE, NULL};
    esdm_status st = esdm__type_resolve(container, type, &ref, err);
    if (st == ESDM_OK)
        *ret_is_fixed = !esdm__typeref_is_variable(ref);
    return st;
}

bool
esdm_compound_member_at(const esdm_container *container, esdm_type type, uint32_t index,
                        esdm_compound_member *ret)
{
    const esdm__usertype *user = esdm__usertype_at(container, type);
    if (user == NULL || user->kind != ESDM_CLASS_COMPOUND || index >= user->count)
        return false;
    const esdm__member *member = &user->members[index];
    *ret = (esdm_compound_member){.name = member->name,
                                  .offset = member->offset,
                                  .type = member->type,
                                  .rank = member->rank,
                                  .shape = member->shape};
    return true;
}

bool
esdm_enum_member_at(const esdm_container *container, esdm_type type, uint32_t index,
                    esdm_enum_member *ret)
{
    const esdm__usertype *user = esdm__usertype_at(container, type);
    if (user == NULL || user->kind != ESDM_CLASS_ENUM || index >= user->count)
        return false;
    *ret = (esdm_enum_member){user->enumerators[index].name, &user->enumerators[index].value};
    return true;
}

size_t
esdm_container_type_count(const esdm_container *container)
{
    if (container == NULL)
        return 0;
    return container->types.count;
}

size_t
esdm_group_type_count(const esdm_group *group)
{
    if (group == NULL)
        return 0;
    return group->types.count;
}

esdm_type
esdm_group_type_at(const esdm_group *group, size_t index)
{
    if (group == NULL)
        return ESDM_TYPE_NONE;
    if (index >= group->types.count)
        return ESDM_TYPE_NONE;
    return ((const esdm__usertype *) group->types.items[index])->type;
}

esdm_type
esdm_group_type_find(const esdm_group *group, const char *name)
{
    if (group == NULL)
        return ESDM_TYPE_NONE;
    const esdm__usertype *type = esdm__group_member(group, name, ESDM__MEMBER_TYPE);
    return type != NULL ? type->type : ESDM_TYPE_NONE;
}
