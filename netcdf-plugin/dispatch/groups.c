/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Groups. The ncid of a group is the file's with the group's number in the lower 16 bits. */

#include "internal.h"

#include "calls.h"

#include <stdlib.h>
#include <string.h>

/* The lower 16 bits of an ncid. */
#define GROUPS_MAX 65536

static int
group_ncid(const esdmnc_file *file, const esdm_group *group)
{
    return file->ncid | (int) esdm_group_id(group);
}

int
esdmnc_name_free(const esdm_group *group, const char *name)
{
    if (esdm_group_find(group, name) != NULL || esdm_group_dataset_find(group, name) != NULL ||
        esdm_group_type_find(group, name) != ESDM_TYPE_NONE)
        return NC_ENAMEINUSE;
    return NC_NOERR;
}

int
esdmnc_def_grp(esdmnc_id id, const char *name, int *ret_ncid)
{
    esdmnc_file *file;
    esdmnc_group *group;
    char normalised[ESDMNC_NAME_BYTES];
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    if (esdmnc_is_nc3(file))
        return NC_ENOTNC4;
    rc = esdmnc_name_check(file->instance, name, normalised);
    if (rc == NC_NOERR)
        rc = esdmnc_name_free(group->group, normalised);
    if (rc == NC_NOERR && esdmnc_is_classic(file))
        rc = NC_ESTRICTNC3;
    if (rc == NC_NOERR)
        rc = esdmnc_need_define(file);
    if (rc != NC_NOERR)
        return rc;
    if (file->group_count >= GROUPS_MAX)
        return NC_EDIMMETA;
    esdm_error err;
    esdm_group *made;
    if (esdm_group_create(group->group, normalised, &made, &err) != ESDM_OK)
        return esdmnc_error(&err, "define group", normalised);
    rc = esdmnc_file_index(file);
    if (rc == NC_NOERR && ret_ncid != NULL)
        *ret_ncid = group_ncid(file, made);
    return rc;
}

int
esdmnc_rename_grp(esdmnc_id id, const char *name)
{
    esdmnc_file *file;
    esdmnc_group *group;
    char normalised[ESDMNC_NAME_BYTES];
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    if (esdmnc_is_nc3(file))
        return NC_ENOTNC4;
    if (!file->writable)
        return NC_EPERM;
    const esdm_group *parent = esdm_group_parent(group->group);
    if (parent == NULL)
        return NC_EBADGRPID;
    rc = esdmnc_name_check(file->instance, name, normalised);
    if (rc == NC_NOERR)
        rc = esdmnc_name_free(parent, normalised);
    if (rc == NC_NOERR)
        rc = esdmnc_need_define(file);
    if (rc != NC_NOERR)
        return rc;
    esdm_error err;
    if (esdm_group_rename(group->group, normalised, &err) != ESDM_OK)
        return esdmnc_error(&err, "rename group", normalised);
    return NC_NOERR;
}

int
esdmnc_inq_grps(esdmnc_id id, int *ret_count, int *ret_ncids)
{
    esdmnc_file *file;
    esdmnc_group *group;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    size_t count = esdm_group_count(group->group);
    for (size_t i = 0; ret_ncids != NULL && i < count; i++)
        ret_ncids[i] = group_ncid(file, esdm_group_at(group->group, i));
    if (ret_count != NULL)
        *ret_count = (int) count;
    return NC_NOERR;
}

int
esdmnc_inq_grpname(esdmnc_id id, char *ret_name)
{
    esdmnc_file *file;
    esdmnc_group *group;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR || ret_name == NULL)
        return rc;
    bool is_root = esdm_group_parent(group->group) == NULL;
    esdmnc_name_copy(is_root ? "/" : esdm_group_name(group->group), ret_name);
    return NC_NOERR;
}

int
esdmnc_inq_grpname_full(esdmnc_id id, size_t *ret_bytes, char *ret_name)
{
    esdmnc_file *file;
    esdmnc_group *group;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    size_t bytes = 0;
    for (const esdm_group *g = group->group; esdm_group_parent(g) != NULL; g = esdm_group_parent(g))
        bytes += 1 + strlen(esdm_group_name(g));
    if (ret_bytes != NULL)
        *ret_bytes = bytes == 0 ? 1 : bytes;
    if (ret_name == NULL)
        return NC_NOERR;
    if (bytes == 0) {
        esdmnc_name_copy("/", ret_name);
        return NC_NOERR;
    }
    ret_name[bytes] = '\0';
    for (const esdm_group *g = group->group; esdm_group_parent(g) != NULL;
         g = esdm_group_parent(g)) {
        size_t length = strlen(esdm_group_name(g));
        bytes -= length;
        memcpy(ret_name + bytes, esdm_group_name(g), length);
        ret_name[--bytes] = '/';
    }
    return NC_NOERR;
}

int
esdmnc_inq_grp_parent(esdmnc_id id, int *ret_ncid)
{
    esdmnc_file *file;
    esdmnc_group *group;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    const esdm_group *parent = esdm_group_parent(group->group);
    if (parent == NULL)
        return NC_ENOGRP;
    if (ret_ncid != NULL)
        *ret_ncid = group_ncid(file, parent);
    return NC_NOERR;
}

int
esdmnc_inq_ncid(esdmnc_id id, const char *name, int *ret_ncid)
{
    esdmnc_file *file;
    esdmnc_group *group;
    char normalised[ESDMNC_NAME_BYTES];
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    const esdm_group *found = NULL;
    if (name == NULL || esdmnc_is_nc3(file)) {
        found = esdm_container_root(file->container);
    } else {
        rc = esdmnc_name_check(file->instance, name, normalised);
        if (rc != NC_NOERR)
            return rc;
        found = esdm_group_find(group->group, normalised);
    }
    if (found == NULL)
        return NC_ENOGRP;
    if (ret_ncid != NULL)
        *ret_ncid = group_ncid(file, found);
    return NC_NOERR;
}

/* Walks a path of names; the root answers to "/" and to paths that start with it. */
int
esdmnc_inq_grp_full_ncid(esdmnc_id id, const char *path, int *ret_ncid)
{
    esdmnc_file *file;
    esdmnc_group *group;
    if (path == NULL)
        return NC_EINVAL;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    if (esdmnc_is_nc3(file))
        return NC_ENOGRP;
    const esdm_group *at = group->group;
    bool any = false;
    while (*path != '\0') {
        size_t bytes = strcspn(path, "/");
        if (bytes > NC_MAX_NAME)
            return NC_EMAXNAME;
        if (bytes > 0) {
            char part[ESDMNC_NAME_BYTES];
            char normalised[ESDMNC_NAME_BYTES];
            memcpy(part, path, bytes);
            part[bytes] = '\0';
            if ((rc = esdmnc_name_check(file->instance, part, normalised)) != NC_NOERR)
                return rc;
            if ((at = esdm_group_find(at, normalised)) == NULL)
                return NC_ENOGRP;
            any = true;
        }
        path += bytes + (path[bytes] == '/');
    }
    if (!any && esdm_group_parent(at) != NULL)
        return NC_ENOGRP;
    if (ret_ncid != NULL)
        *ret_ncid = group_ncid(file, at);
    return NC_NOERR;
}

int
esdmnc_inq_varids(esdmnc_id id, int *ret_count, int *ret_varids)
{
    esdmnc_file *file;
    esdmnc_group *group;
    int rc = esdmnc_find(id, &file, &group);
    if (rc != NC_NOERR)
        return rc;
    for (size_t i = 0; ret_varids != NULL && i < group->count; i++)
        ret_varids[i] = (int) i;
    if (ret_count != NULL)
        *ret_count = (int) group->count;
    return NC_NOERR;
}
