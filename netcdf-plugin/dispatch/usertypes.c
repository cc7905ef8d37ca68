/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Definition and inquiry of user-defined types. The checks have netCDF-4's order. */

#include "internal.h"

#include "calls.h"

#include <string.h>

/* ---- definition ------------------------------------------------------------------------------ */

/* What every definition asks for; the name is normalised. */
static int
check_new_type(esdmnc_id id, const char *name, esdmnc_file **ret_file, esdmnc_group **ret_group,
               char *normalised)
{
    int rc = esdmnc_find(id, ret_file, ret_group);
    if (rc != NC_NOERR)
        return rc;
    if (esdmnc_is_nc3(*ret_file))
        return NC_ENOTNC4;
    rc = esdmnc_name_check((*ret_file)->instance, name, normalised);
    if (rc == NC_NOERR && esdmnc_is_classic(*ret_file))
        rc = NC_ESTRICTNC3;
    /* netCDF-4 does not enter define mode for types. */
    return rc == NC_NOERR && !(*ret_file)->writable ? NC_EPERM : rc;
}

/* Passes a definition's result on, and the new type's number. */
static int
finish_new_type(esdmnc_file *file, const char *name, esdm_status st, const esdm_error *err,
                esdm_type type, nc_type *ret_type)
{
    if (st != ESDM_OK)
        return esdmnc_error(err, "define type", name);
    int rc = esdmnc_types_index(file);
    if (rc == NC_NOERR && ret_type != NULL)
        *ret_type = esdmnc_type_from_esdm(file, type);
    return rc;
}

/* A type that is `bytes` long, which `create` makes. */
static int
define_sized(esdmnc_id id, size_t bytes, const char *name, typeof(esdm_opaque_create) *create,
             nc_type *ret_type)
{
    esdmnc_file *file;
    esdmnc_group *group;
    char normalised[ESDMNC_NAME_BYTES];
    esdm_error err;
    esdm_type type = ESDM_TYPE_NONE;
    int rc = check_new_type(id, name, &file, &group, normalised);
    if (rc == NC_NOERR && bytes == 0)
        rc = NC_EINVAL;
    if (rc == NC_NOERR)
        rc = esdmnc_name_free(group->group, normalised);
    if (rc != NC_NOERR)
        return rc;
    esdm_status st = create(group->group, normalised, bytes, &type, &err);
    return finish_new_type(file, normalised, st, &err, type, ret_type);
}

int
esdmnc_def_compound(esdmnc_id id, size_t bytes, const char *name, nc_type *ret_type)
{
    return define_sized(id, bytes, name, esdm_compound_create, ret_type);
}

int
esdmnc_def_opaque(esdmnc_id id, size_t bytes, const char *name, nc_type *ret_type)
{
    return define_sized(id, bytes, name, esdm_opaque_create, ret_type);
}

int
esdmnc_def_vlen(esdmnc_id id, const char *name, nc_type base, nc_type *ret_type)
{
    esdmnc_file *file;
    esdmnc_group *group;
    char normalised[ESDMNC_NAME_BYTES];
    esdm_error err;
    esdm_type type = ESDM_TYPE_NONE;
    int rc = check_new_type(id, name, &file, &group, normalised);
    if (rc == NC_NOERR)
        rc = esdmnc_name_free(group->group, normalised);
    if (rc != NC_NOERR)
        return rc;
    /* A base type that does not exist is found when define mode ends. */
    esdm_status st =
        esdm_vlen_create(group->group, normalised, esdmnc_type_to_esdm(file, base), &type, &err);
    return finish_new_type(file, normalised, st, &err, type, ret_type);
}

int
esdmnc_def_enum(esdmnc_id id, nc_type base, const char *name, nc_type *ret_type)
{
    esdmnc_file *file;
    esdmnc_group *group;
    char normalised[ESDMNC_NAME_BYTES];
    esdm_error err;
    esdm_type type = ESDM_TYPE_NONE;
    int rc = check_new_type(id, name, &file, &group, normalised);
    if (rc == NC_NOERR && esdmnc_type_bytes(file, base) == 0)
        rc = base < 0 ? NC_EINVAL : NC_EBADTYPID;
    if (rc == NC_NOERR)
        rc = esdmnc_name_free(group->group, normalised);
    if (rc == NC_NOERR && !esdmnc_type_is_number(base))
        rc = NC_EBADTYPE;
    if (rc != NC_NOERR)
        return rc;
    esdm_status st = esdm_enum_create(group->group, normalised, base, &type, &err);
    return finish_new_type(file, normalised, st, &err, type, ret_type);
}

/* A type of that class that may still change. */
static int
find_changeable(esdmnc_id id, nc_type type, const char *name, esdm_type_class kind,
                esdmnc_file **ret_file, esdm_type *ret_type, char *normalised)
{
    esdmnc_group *group;
    esdm_type_info info;
    int rc = esdmnc_find(id, ret_file, &group);
    if (rc != NC_NOERR)
        return rc;
    if (esdmnc_is_nc3(*ret_file))
        return NC_ENOTNC4;
    rc = esdmnc_name_check((*ret_file)->instance, name, normalised);
    if (rc != NC_NOERR)
        return rc;
    *ret_type = esdmnc_type_to_esdm(*ret_file, type);
    if (!esdm_type_inquire((*ret_file)->container, *ret_type, &info))
        return type < 0 ? NC_EINVAL : type <= NC_STRING ? NC_EBADTYPE : NC_EBADTYPID;
    if (info.kind != kind)
        return NC_EBADTYPE;
    return info.is_complete ? NC_ETYPDEFINED : NC_NOERR;
}

int
esdmnc_insert_array_compound(esdmnc_id id, nc_type type, const char *name, size_t offset,
                             nc_type field, int rank, const int *shape)
{
    esdmnc_file *file;
    esdm_type compound = ESDM_TYPE_NONE;
    uint32_t sizes[NC_MAX_VAR_DIMS];
    char normalised[ESDMNC_NAME_BYTES];
    esdm_error err;
    int rc = find_changeable(id, type, name, ESDM_CLASS_COMPOUND, &file, &compound, normalised);
    if (rc != NC_NOERR)
        return rc;
    if (rank < 0 || rank > NC_MAX_VAR_DIMS || (rank > 0 && shape == NULL))
        return NC_EINVAL;
    for (int i = 0; i < rank; i++)
        sizes[i] = (uint32_t) shape[i]; /* wrong ones are found when define mode ends */
    esdm_type member = esdmnc_type_to_esdm(file, field);
    if (member == ESDM_TYPE_NONE)
        return NC_EBADTYPE;
    if (esdm_compound_add(file->container, compound, normalised, offset, member, (uint32_t) rank,
                          sizes, &err) != ESDM_OK)
        return esdmnc_error(&err, "define member", normalised);
    return NC_NOERR;
}

int
esdmnc_insert_compound(esdmnc_id id, nc_type type, const char *name, size_t offset, nc_type field)
{
    return esdmnc_insert_array_compound(id, type, name, offset, field, 0, NULL);
}

int
esdmnc_insert_enum(esdmnc_id id, nc_type type, const char *name, const void *value)
{
    esdmnc_file *file;
    esdm_type found = ESDM_TYPE_NONE;
    char normalised[ESDMNC_NAME_BYTES];
    esdm_error err;
    int rc = find_changeable(id, type, name, ESDM_CLASS_ENUM, &file, &found, normalised);
    if (rc != NC_NOERR)
        return rc;
    if (value == NULL)
        return NC_EINVAL;
    if (esdm_enum_add(file->container, found, normalised, value, &err) != ESDM_OK)
        return esdmnc_error(&err, "define member", normalised);
    return NC_NOERR;
}

/* Why HDF5 would refuse a type. */
static int
completion_error(const esdm_type_info *info)
{
    if (info->kind == ESDM_CLASS_ENUM && info->members == 0)
        return NC_EINVAL;
    if (info->kind == ESDM_CLASS_VLEN && info->base == ESDM_TYPE_NONE)
        return NC_EBADTYPE;
    return NC_EHDFERR;
}

int
esdmnc_types_complete(const esdmnc_file *file)
{
    esdm_error err;
    esdm_type_info info;
    for (size_t i = 0; i < file->types.count; i++) {
        esdm_type type = file->types.of_nc[i];
        esdm_status st = esdm_type_complete(file->container, type, &err);
        if (st == ESDM_EINVAL && esdm_type_inquire(file->container, type, &info)) {
            esdmnc_debug("'%s': %s", file->name, err.message);
            return completion_error(&info);
        }
        if (st != ESDM_OK)
            return esdmnc_error(&err, "define types in", file->name);
    }
    return NC_NOERR;
}

/* ---- inquiry --------------------------------------------------------------------------------- */

/* A user-defined type. */
static int
find_type(esdmnc_id id, nc_type type, esdmnc_file **ret_file, esdm_type *ret_type,
          esdm_type_info *ret_info)
{
    esdmnc_group *group;
    int rc = esdmnc_find(id, ret_file, &group);
    if (rc != NC_NOERR)
        return rc;
    if (esdmnc_is_nc3(*ret_file))
        return NC_ENOTNC4;
    *ret_type = esdmnc_type_to_esdm(*ret_file, type);
    if (!esdm_type_inquire((*ret_file)->container, *ret_type, ret_info) ||
        ret_info->kind == ESDM_CLASS_ATOMIC)
        return NC_EBADTYPE;
    return NC_NOERR;
}

int
esdmnc_inq_user_type(esdmnc_id id, nc_type type, char *ret_name, size_t *ret_bytes,
                     nc_type *ret_base, size_t *ret_members, int *ret_class)
{
    static const int classes[] = {[ESDM_CLASS_ATOMIC] = NC_NAT,
                                  [ESDM_CLASS_COMPOUND] = NC_COMPOUND,
                                  [ESDM_CLASS_ENUM] = NC_ENUM,
                                  [ESDM_CLASS_OPAQUE] = NC_OPAQUE,
                                  [ESDM_CLASS_VLEN] = NC_VLEN};
    esdmnc_file *file;
    esdm_type found;
    esdm_type_info info;
    int rc = find_type(id, type, &file, &found, &info);
    if (rc != NC_NOERR)
        return rc;
    if (ret_name != NULL)
        esdmnc_name_copy(info.name, ret_name);
    if (ret_bytes != NULL)
        *ret_bytes = info.bytes;
    if (ret_base != NULL)
        *ret_base = esdmnc_type_from_esdm(file, info.base);
    if (ret_members != NULL)
        *ret_members = info.members;
    if (ret_class != NULL)
        *ret_class = classes[info.kind];
    return NC_NOERR;
}

int
esdmnc_inq_compound_field(esdmnc_id id, nc_type type, int index, char *ret_name, size_t *ret_offset,
                          nc_type *ret_type, int *ret_rank, int *ret_shape)
{
    esdmnc_file *file;
    esdm_type found;
    esdm_type_info info;
    esdm_compound_member member;
    int rc = find_type(id, type, &file, &found, &info);
    if (rc != NC_NOERR)
        return rc;
    if (info.kind != ESDM_CLASS_COMPOUND)
        return NC_EBADTYPE;
    if (index < 0 || !esdm_compound_member_at(file->container, found, (uint32_t) index, &member))
        return NC_EBADFIELD;
    if (ret_name != NULL)
        esdmnc_name_copy(member.name, ret_name);
    if (ret_offset != NULL)
        *ret_offset = member.offset;
    if (ret_type != NULL)
        *ret_type = esdmnc_type_from_esdm(file, member.type);
    if (ret_rank != NULL)
        *ret_rank = (int) member.rank;
    for (uint32_t i = 0; ret_shape != NULL && i < member.rank; i++)
        ret_shape[i] = (int) member.shape[i];
    return NC_NOERR;
}

int
esdmnc_inq_compound_fieldindex(esdmnc_id id, nc_type type, const char *name, int *ret_index)
{
    esdmnc_file *file;
    esdm_type found;
    esdm_type_info info;
    esdm_compound_member member;
    char normalised[ESDMNC_NAME_BYTES];
    int rc = find_type(id, type, &file, &found, &info);
    if (rc == NC_EBADTYPE && (type < 0 || type > NC_STRING))
        return type < 0 ? NC_EINVAL : NC_EBADTYPID;
    if (rc == NC_NOERR && info.kind != ESDM_CLASS_COMPOUND)
        rc = NC_EBADTYPE;
    if (rc == NC_NOERR && name == NULL)
        rc = NC_EINVAL;
    if (rc == NC_NOERR)
        rc = esdmnc_name_normalise(file->instance, name, normalised);
    if (rc != NC_NOERR)
        return rc;
    for (uint32_t i = 0; esdm_compound_member_at(file->container, found, i, &member); i++) {
        if (strcmp(member.name, normalised) != 0)
            continue;
        if (ret_index != NULL)
            *ret_index = (int) i;
        return NC_NOERR;
    }
    return NC_EBADFIELD;
}

/* The enumeration. */
static int
find_enum(esdmnc_id id, nc_type type, esdmnc_file **ret_file, esdm_type *ret_type,
          esdm_type_info *ret_info)
{
    int rc = find_type(id, type, ret_file, ret_type, ret_info);
    return rc == NC_NOERR && ret_info->kind != ESDM_CLASS_ENUM ? NC_EBADTYPE : rc;
}

int
esdmnc_inq_enum_member(esdmnc_id id, nc_type type, int index, char *ret_name, void *ret_value)
{
    esdmnc_file *file;
    esdm_type found;
    esdm_type_info info;
    esdm_enum_member member;
    int rc = find_enum(id, type, &file, &found, &info);
    if (rc != NC_NOERR)
        return rc;
    if (index < 0 || !esdm_enum_member_at(file->container, found, (uint32_t) index, &member))
        return NC_EINVAL;
    if (ret_name != NULL)
        esdmnc_name_copy(member.name, ret_name);
    if (ret_value != NULL)
        memcpy(ret_value, member.value, info.bytes);
    return NC_NOERR;
}

int
esdmnc_inq_enum_ident(esdmnc_id id, nc_type type, long long value, char *ret_name)
{
    esdmnc_file *file;
    esdm_type found;
    esdm_type_info info;
    esdm_enum_member member;
    esdm_error err;
    int rc = find_enum(id, type, &file, &found, &info);
    if (rc != NC_NOERR)
        return rc;
    for (uint32_t i = 0; esdm_enum_member_at(file->container, found, i, &member); i++) {
        int64_t number = 0;
        if (info.base == ESDM_TYPE_UINT64)
            memcpy(&number, member.value, sizeof number);
        else if (esdm_convert(info.base, member.value, ESDM_TYPE_INT64, &number, 1, NULL, &err) !=
                 ESDM_OK)
            return NC_EINVAL;
        if (number != value)
            continue;
        if (ret_name != NULL)
            esdmnc_name_copy(member.name, ret_name);
        return NC_NOERR;
    }
    return NC_EINVAL;
}
