/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file What a path of a program is for ESDM: asked for once, and answered as stat() would. */

#include "shim/shim.h"

const char *
shim_missing(const char *path)
{
    return path && errno == ENOENT ? esdmnc__path_mangled(path) : NULL;
}

int
shim_return(int error)
{
    if (error == 0) {
        return 0;
    }
    errno = error;
    return -1;
}

int
shim_errno(int nc_status)
{
    if (nc_status >= 0) {
        return nc_status; /* NetCDF passes errno values on as they are */
    }
    switch (nc_status) {
    case NC_EPERM:
        return EACCES;
    case NC_ENOMEM:
        return ENOMEM;
    case NC_EEXIST:
        return EEXIST;
    case NC_EMAXNAME:
        return ENAMETOOLONG;
    case NC_EINVAL:
    case NC_EBADNAME:
        return EINVAL;
    case NC_ENOTBUILT:
        return ENOSYS;
    default:
        return EIO;
    }
}

/** FNV-1a of the name: stands for an inode number. 2 for the root, as is custom. */
static uint64_t
folder_id(const char *name)
{
    uint64_t hash = 14695981039346656037U;
    for (const char *at = name; *at; at++) {
        hash = (hash ^ (unsigned char) *at) * 1099511628211U;
    }
    return *name ? hash : 2;
}

int
shim_lookup(const char *path, esdmnc_stat *ret, bool *ret_is_folder)
{
    char container[ESDMNC_NAME_MAX + 1];
    int saved = errno;
    int status = esdmnc__path_container(path, container, sizeof(container));
    if (status != NC_NOERR) {
        return shim_errno(status);
    }
    const esdmnc__core *core = esdmnc__core_get();
    *ret_is_folder = container[0] == '\0';
    if (!*ret_is_folder) {
        status = core ? core->exists(container, ret) : NC_ENOTBUILT;
        *ret_is_folder =
            status == ENOENT && (esdmnc__creating_below(container) || core->is_folder(container));
    }
    if (*ret_is_folder) {
        memset(ret, 0, sizeof(*ret));
        ret->id = folder_id(container);
        status = NC_NOERR;
    }
    errno = saved;
    return shim_errno(status);
}
