/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Dimensions. Their ids count over the whole container, as in netCDF. */

#include "storage.h"

#include "calls.h"

#include <string.h>

static bool
has_unlimited(const esdm_group *group)
{
    for (size_t i = 0; i < esdm_group_dimension_count(group); i++)
        if (esdm_dimension_is_unlimited(esdm_group_dimension_at(group, i)))
            return true;
    return false;
}

static int
check_new_dim(esdmnc_file *file, const esdm_group *group, const char *name, size_t length,
              char *normalised)
{
    bool nc3 = esdmnc_is_nc3(file);
    if (!nc3 && !file->writable)
        return NC_EPERM;
    if (!nc3 && esdmnc_is_classic(file) && length == NC_UNLIMITED && has_unlimited(group))
        return NC_EUNLIMIT;
    if (esdmnc_is_classic(file) && !atomic_load(&file->indef))
        return NC_ENOTINDEFINE;
    int rc = esdmnc_name_check(file->instance, name, normalised);
    if (rc != NC_NOERR)
        return rc;
    rc = esdmnc_classic_length(file, length);
    if (rc != NC_NOERR)
        return rc;
    if (nc3 && length == NC_UNLIMITED && has_unlimited(group))
        return NC_EUNLIMIT;
    return esdm_group_dimension_find(group, normalised) == NULL ? NC_NOERR : NC_ENAMEINUSE;
}

int
esdmnc_def_dim(esdmnc_id id, const char *name, size_t length, int *ret_dimid)
{
    esdmnc_file *file;
    esdmnc_group *group;
    char normalised[ESDMNC_NAME_BYTES];
    int rc = esdmnc_find(id, &file, &group);
    if (rc == NC_NOERR)
        rc = check_new_dim(file, group->group, name, length, normalised);
    if (rc == NC_NOERR)
        rc = esdmnc_need_define(file);
    if (rc != NC_NOERR)
        return rc;
    esdm_error err;
    esdm_dimension *dimension;
    uint64_t esdm_length = length == NC_UNLIMITED ? ESDM_UNLIMITED : length;
    if (esdm_dimension_create(group->group, normalised, esdm_length, &dimension, &err) != ESDM_OK)
        return esdmnc_error(&err, "define dimension", normalised);
    if (ret_dimid != NULL)
        *ret_dimid = (int) esdm_dimension_id(dimension);
    return length == NC_UNLIMITED ? esdmnc_chunks_room(file) : NC_NOERR;
}

/* A full name: groups from the root on, then the dimension. */
static int
find_by_path(const esdmnc_file *file, const char *path, const esdm_dimension **ret)
{
    const esdm_group *at = esdm_container_root(file->container);
    const char *end;
    path++;
    while ((end = strchr(path, '/')) != NULL) {
        char part[ESDMNC_NAME_BYTES];
        size_t bytes = (size_t) (end - path);
        if (bytes >= sizeof part)
            return NC_EMAXNAME;
        memcpy(part, path, bytes);
        part[bytes] = '\0';
        at = esdm_group_find(at, part);
        if (at == NULL)
            return NC_ENOGRP;
        path = end + 1;
    }
    *ret = esdm_group_dimension_find(at, path);
    return NC_NOERR;
}

static const esdm_dimension *
find_in_scope(const esdm_group *group, const char *name)
{
    for (; group != NULL; group = esdm_group_parent(group)) {
        const esdm_dimension *dimension = esdm_group_dimension_find(group, name);
        if (dimension != NULL)
            return dimension;
    }
    return NULL;
}

int
esdmnc_inq_dimid(esdmnc_id id, const char *name, int *ret_dimid)
{
    esdmnc_file *file;
    esdmnc_group *group;
    char normalised[ESDMNC_NAME_BYTES];
    if (name == NULL)
        return NC_EINVAL;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    bool nc3 = esdmnc_is_nc3(file);
    const esdm_dimension *dimension = NULL;
    if (!nc3 && strchr(name, '/') != NULL) {
        if (name[0] != '/' || name[1] == '\0')
            return NC_EINVAL;
        rc = find_by_path(file, name, &dimension);
        if (rc != NC_NOERR)
            return rc;
    } else {
        rc = esdmnc_name_normalise(file->instance, name, normalised);
        if (rc != NC_NOERR)
            return nc3 ? NC_EBADDIM : rc;
        dimension = find_in_scope(group->group, normalised);
    }
    if (dimension == NULL)
        return NC_EBADDIM;
    if (ret_dimid != NULL)
        *ret_dimid = (int) esdm_dimension_id(dimension);
    return NC_NOERR;
}

static esdm_dimension *
dim_at(const esdmnc_file *file, int dimid)
{
    if (dimid < 0 || (size_t) dimid >= esdm_container_dimension_count(file->container))
        return NULL;
    return esdm_container_dimension(file->container, (uint32_t) dimid);
}

int
esdmnc_inq_dim(esdmnc_id id, int dimid, char *ret_name, size_t *ret_length)
{
    esdmnc_file *file;
    esdmnc_group *group;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    const esdm_dimension *dimension = dim_at(file, dimid);
    if (dimension == NULL)
        return NC_EBADDIM;
    if (ret_name != NULL)
        esdmnc_name_copy(esdm_dimension_name(dimension), ret_name);
    if (ret_length == NULL)
        return NC_NOERR;
    *ret_length = (size_t) esdm_dimension_length(dimension);
    if (esdm_dimension_is_unlimited(dimension))
        esdmnc_chunks_told(file, dimension, *ret_length);
    return NC_NOERR;
}

/* The first unlimited dimension of the group, -1 when there is none. */
int
esdmnc_inq_unlimdim(esdmnc_id id, int *ret_dimid)
{
    esdmnc_file *file;
    esdmnc_group *group;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR || ret_dimid == NULL)
        return rc;
    *ret_dimid = -1;
    for (size_t i = 0; i < esdm_group_dimension_count(group->group); i++) {
        const esdm_dimension *dimension = esdm_group_dimension_at(group->group, i);
        if (esdm_dimension_is_unlimited(dimension)) {
            *ret_dimid = (int) esdm_dimension_id(dimension);
            break;
        }
    }
    return NC_NOERR;
}

int
esdmnc_inq_unlimdims(esdmnc_id id, int *ret_count, int *ret_dimids)
{
    esdmnc_file *file;
    esdmnc_group *group;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    int count = 0;
    for (size_t i = 0; i < esdm_group_dimension_count(group->group); i++) {
        const esdm_dimension *dimension = esdm_group_dimension_at(group->group, i);
        if (!esdm_dimension_is_unlimited(dimension))
            continue;
        if (ret_dimids != NULL)
            ret_dimids[count] = (int) esdm_dimension_id(dimension);
        count++;
    }
    if (ret_count != NULL)
        *ret_count = count;
    return NC_NOERR;
}

/* netCDF lists the ids in ascending order, whatever group they belong to. */
static void
insert_sorted(int *ids, int count, int id)
{
    int at = count;
    while (at > 0 && ids[at - 1] > id) {
        ids[at] = ids[at - 1];
        at--;
    }
    ids[at] = id;
}

int
esdmnc_inq_dimids(esdmnc_id id, int *ret_count, int *ret_dimids, int include_parents)
{
    esdmnc_file *file;
    esdmnc_group *group;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    int count = 0;
    const esdm_group *g = group->group;
    while (g != NULL) {
        for (size_t i = 0; i < esdm_group_dimension_count(g); i++) {
            if (ret_dimids != NULL)
                insert_sorted(ret_dimids, count,
                              (int) esdm_dimension_id(esdm_group_dimension_at(g, i)));
            count++;
        }
        g = include_parents ? esdm_group_parent(g) : NULL;
    }
    if (ret_count != NULL)
        *ret_count = count;
    return NC_NOERR;
}

int
esdmnc_rename_dim(esdmnc_id id, int dimid, const char *name)
{
    esdmnc_file *file;
    esdmnc_group *group;
    char normalised[ESDMNC_NAME_BYTES];
    if (name == NULL)
        return NC_EINVAL;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    if (!file->writable)
        return NC_EPERM;
    rc = esdmnc_name_check(file->instance, name, normalised);
    if (rc != NC_NOERR)
        return rc;
    esdm_dimension *dimension = dim_at(file, dimid);
    bool nc3 = esdmnc_is_nc3(file);
    if (dimension == NULL && !nc3)
        return NC_EBADDIM;
    if (esdm_group_dimension_find(group->group, normalised) != NULL)
        return NC_ENAMEINUSE;
    if (dimension == NULL)
        return NC_EBADDIM;
    const char *old_name = esdm_dimension_name(dimension);
    if (nc3 && !atomic_load(&file->indef) &&
        !esdmnc_room_suffices(file, dimension, NULL, old_name, normalised))
        return NC_ENOTINDEFINE;
    if ((rc = esdmnc_room_renamed(file, dimension, false, old_name, normalised)) != NC_NOERR)
        return rc;
    esdm_error err;
    esdm_status st = esdm_dimension_rename(dimension, normalised, &err);
    if (st == ESDM_EEXIST)
        return NC_ENAMEINUSE;
    return st == ESDM_OK ? NC_NOERR : esdmnc_error(&err, "rename dimension", normalised);
}
