/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Types of any kind: their numbers and names. */

#include "internal.h"

#include "calls.h"

#include <stdlib.h>
#include <string.h>

static const char *const type_names[NC_STRING + 1] = {NULL,    "byte",   "char",  "short",  "int",
                                                      "float", "double", "ubyte", "ushort", "uint",
                                                      "int64", "uint64", "string"};

nc_type
esdmnc_memory_type(const esdmnc_file *file, nc_type file_type, nc_type memory_type)
{
    /* CDF-1 and CDF-2 read and write NC_BYTE as unsigned char without range errors; the classic
     * model of netCDF-4 does so in both directions. */
    if (file_type == memory_type || file->format == NC_FORMAT_NETCDF4 ||
        file->format == NC_FORMAT_64BIT_DATA)
        return memory_type;
    bool bytes = (file_type == NC_BYTE && memory_type == NC_UBYTE) ||
                 (file_type == NC_UBYTE && memory_type == NC_BYTE);
    return bytes ? file_type : memory_type;
}

esdm_conversion
esdmnc_conversion(const esdmnc_file *file)
{
    return esdmnc_is_nc3(file) ? ESDM_CONVERSION_NETCDF3 : ESDM_CONVERSION_NETCDF4;
}

/* ---- numbers -------------------------------------------------------------------------------- */

esdm_type
esdmnc_type_to_esdm(const esdmnc_file *file, nc_type type)
{
    if (esdmnc_type_is_atomic(type))
        return type;
    if (type < NC_FIRSTUSERTYPEID || (size_t) (type - NC_FIRSTUSERTYPEID) >= file->types.count)
        return ESDM_TYPE_NONE;
    return file->types.of_nc[type - NC_FIRSTUSERTYPEID];
}

nc_type
esdmnc_type_from_esdm(const esdmnc_file *file, esdm_type type)
{
    if (type < ESDM_TYPE_FIRST_USER)
        return type;
    size_t index = (size_t) (type - ESDM_TYPE_FIRST_USER);
    return index < file->types.count ? file->types.of_esdm[index] : NC_NAT;
}

size_t
esdmnc_type_bytes(const esdmnc_file *file, nc_type type)
{
    return esdm_container_type_size(file->container, esdmnc_type_to_esdm(file, type));
}

int
esdmnc_type_is_fixed(const esdmnc_file *file, nc_type type, bool *ret_is_fixed)
{
    esdm_error err;
    esdm_type esdm = esdmnc_type_to_esdm(file, type);
    return esdm_type_is_fixed_size(file->container, esdm, ret_is_fixed, &err) == ESDM_OK
               ? NC_NOERR
               : NC_EBADTYPE;
}

/* Gives numbers to the types of a group and of those below it that have none. */
static void
number_types(esdmnc_file *file, const esdm_group *group)
{
    esdmnc_types *types = &file->types;
    for (size_t i = 0; i < esdm_group_type_count(group); i++) {
        esdm_type type = esdm_group_type_at(group, i);
        nc_type *number = &types->of_esdm[type - ESDM_TYPE_FIRST_USER];
        if (*number != NC_NAT)
            continue;
        types->of_nc[types->count] = type;
        *number = NC_FIRSTUSERTYPEID + (nc_type) types->count++;
    }
    for (size_t i = 0; i < esdm_group_count(group); i++)
        number_types(file, esdm_group_at(group, i));
}

int
esdmnc_types_index(esdmnc_file *file)
{
    esdmnc_types *types = &file->types;
    size_t count = esdm_container_type_count(file->container);
    if (types->count == count)
        return NC_NOERR;
    esdm_type *of_nc = realloc(types->of_nc, count * sizeof *of_nc);
    if (of_nc != NULL)
        types->of_nc = of_nc;
    nc_type *of_esdm = realloc(types->of_esdm, count * sizeof *of_esdm);
    if (of_esdm != NULL)
        types->of_esdm = of_esdm;
    if (of_nc == NULL || of_esdm == NULL)
        return NC_ENOMEM;
    for (size_t i = types->count; i < count; i++)
        of_esdm[i] = NC_NAT;
    number_types(file, esdm_container_root(file->container));
    return NC_NOERR;
}

/* ---- inquiry -------------------------------------------------------------------------------- */

int
esdmnc_inq_type(esdmnc_id id, nc_type type, char *ret_name, size_t *ret_bytes)
{
    esdmnc_file *file;
    esdmnc_group *group;
    esdm_type_info info;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    if (!esdm_type_inquire(file->container, esdmnc_type_to_esdm(file, type), &info))
        return NC_EBADTYPE;
    if (ret_name != NULL)
        esdmnc_name_copy(esdmnc_type_is_atomic(type) ? type_names[type] : info.name, ret_name);
    if (ret_bytes != NULL)
        *ret_bytes = info.bytes;
    return NC_NOERR;
}

/* In a group and those below it. */
static esdm_type
find_below(const esdm_group *group, const char *name)
{
    esdm_type found = esdm_group_type_find(group, name);
    for (size_t i = 0; found == ESDM_TYPE_NONE && i < esdm_group_count(group); i++)
        found = find_below(esdm_group_at(group, i), name);
    return found;
}

/* In a group, those above it, and then anywhere. */
static esdm_type
find_visible(const esdmnc_file *file, const esdm_group *group, const char *name)
{
    esdm_type found = ESDM_TYPE_NONE;
    for (; found == ESDM_TYPE_NONE && group != NULL; group = esdm_group_parent(group))
        found = esdm_group_type_find(group, name);
    return found != ESDM_TYPE_NONE ? found : find_below(esdm_container_root(file->container), name);
}

/* "/group/name": the type of that very group. */
static int
find_by_path(const esdmnc_file *file, char *path, esdm_type *ret_type)
{
    const esdm_group *group = esdm_container_root(file->container);
    char *name = strrchr(path, '/');
    if (name == path)
        return NC_EINVAL; /* so netCDF-4 answers for the root */
    *name++ = '\0';
    char *rest = NULL;
    for (char *part = strtok_r(path, "/", &rest); part != NULL && group != NULL;
         part = strtok_r(NULL, "/", &rest))
        group = esdm_group_find(group, part);
    if (group == NULL)
        return NC_ENOGRP;
    *ret_type = esdm_group_type_find(group, name);
    return *ret_type != ESDM_TYPE_NONE ? NC_NOERR : NC_EBADTYPE;
}

static int
find_user_type(const esdmnc_file *file, const esdm_group *group, const char *name,
               esdm_type *ret_type)
{
    char normalised[ESDMNC_NAME_BYTES];
    if (name[0] == '/') {
        char *path = strdup(name);
        if (path == NULL)
            return NC_ENOMEM;
        int rc = find_by_path(file, path, ret_type);
        free(path);
        return rc;
    }
    if (strchr(name, '/') != NULL)
        return NC_EINVAL;
    int rc = esdmnc_name_normalise(file->instance, name, normalised);
    if (rc != NC_NOERR)
        return rc;
    *ret_type = find_visible(file, group, normalised);
    return *ret_type != ESDM_TYPE_NONE ? NC_NOERR : NC_EBADTYPE;
}

int
esdmnc_inq_typeid(esdmnc_id id, const char *name, nc_type *ret_type)
{
    esdmnc_file *file;
    esdmnc_group *group;
    esdm_type found = ESDM_TYPE_NONE;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    if (name == NULL)
        return NC_EINVAL;
    bool nc3 = esdmnc_is_nc3(file);
    for (nc_type type = NC_BYTE; type <= (nc3 ? NC_DOUBLE : NC_STRING); type++) {
        if (strcmp(type_names[type], name) == 0)
            found = type;
    }
    if (found == ESDM_TYPE_NONE)
        rc = nc3 ? NC_ENOTNC4 : find_user_type(file, group->group, name, &found);
    if (rc == NC_NOERR && ret_type != NULL)
        *ret_type = esdmnc_type_from_esdm(file, found);
    return rc;
}

int
esdmnc_inq_typeids(esdmnc_id id, int *ret_count, int *ret_types)
{
    esdmnc_file *file;
    esdmnc_group *group;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    size_t count = esdm_group_type_count(group->group);
    for (size_t i = 0; ret_types != NULL && i < count; i++)
        ret_types[i] = esdmnc_type_from_esdm(file, esdm_group_type_at(group->group, i));
    if (ret_count != NULL)
        *ret_count = (int) count;
    return NC_NOERR;
}

/* A type of a file; NC_EHDFERR when it is not complete, as HDF5 knows none of those. */
static int
find_complete(const esdmnc_file *file, nc_type type, esdm_type *ret_type)
{
    esdm_type_info info;
    *ret_type = esdmnc_type_to_esdm(file, type);
    if (!esdm_type_inquire(file->container, *ret_type, &info))
        return NC_EBADTYPE;
    return info.is_complete ? NC_NOERR : NC_EHDFERR;
}

/* The file of another id, which may be one of another format. */
static int
find_other(esdmnc_id id, int ncid, esdmnc_file **ret_file)
{
    esdmnc_group *group;
    return esdmnc_find(esdmnc_id_make(esdmnc_id_instance(id), ncid), ret_file, &group);
}

int
esdmnc_inq_type_equal(esdmnc_id id, nc_type type, int ncid2, nc_type type2, int *ret_equal)
{
    esdmnc_file *file;
    esdmnc_file *file2;
    esdmnc_group *group;
    esdm_type a;
    esdm_type b;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR || ret_equal == NULL)
        return rc;
    if (type <= NC_NAT || type2 <= NC_NAT)
        return NC_EINVAL;
    /* Atomic ones are the same in every file; for netCDF-4 there are thirteen, with NC_NAT. */
    bool mixed = (type <= NC_STRING) != (type2 <= NC_STRING);
    bool nc3 = esdmnc_is_nc3(file); /* which knows no more than the old types here */
    if (mixed || nc3 || type <= NC_STRING + 1) {
        *ret_equal = !mixed && type == type2 && (!nc3 || type <= NC_DOUBLE);
        return NC_NOERR;
    }
    int first = find_complete(file, type, &a);
    if (first == NC_EBADTYPE)
        return first;
    rc = find_other(id, ncid2, &file2);
    if (rc != NC_NOERR)
        return rc;
    rc = find_complete(file2, type2, &b);
    if (rc == NC_NOERR)
        rc = first;
    if (rc == NC_NOERR)
        *ret_equal = esdm_type_equal(file->container, a, file2->container, b);
    return rc;
}
