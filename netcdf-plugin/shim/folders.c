/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Folders and permissions of `esdm:` paths. Folders exist as parts of names, as long as a container
 * lies below: making one has nothing to do, and must not make a folder called `esdm:` on disk.
 * Containers have the permissions of the site; a program that makes sure its output is writable is
 * right already.
 */
#include "shim/shim.h"

#include <fcntl.h>
#include <unistd.h>

static int
make_folder(const char *path)
{
    esdmnc_stat st;
    bool is_folder;
    int error = shim_lookup(path, &st, &is_folder);
    return shim_return(error == 0 ? EEXIST : error == ENOENT ? 0 : error);
}

ESDMNC_EXPORT int
mkdir(const char *path, mode_t mode)
{
    const char *ours = shim_path(path);
    if (!ours) {
        int result = SHIM_REAL(mkdir)(path, mode);
        if (result == 0 || !(ours = shim_missing(path))) {
            return result;
        }
    }
    return make_folder(ours);
}

ESDMNC_EXPORT int
mkdirat(int dirfd, const char *path, mode_t mode)
{
    const char *ours = dirfd == AT_FDCWD ? shim_path(path) : NULL;
    if (!ours) {
        int result = SHIM_REAL(mkdirat)(dirfd, path, mode);
        if (result == 0 || !(ours = shim_missing(path))) {
            return result;
        }
    }
    return make_folder(ours);
}

/** Agrees when the owner is to read and write, as is the case; refuses to take that away. */
static int
change_mode(const char *path, mode_t mode)
{
    esdmnc_stat st;
    bool is_folder;
    int error = shim_lookup(path, &st, &is_folder);
    if (error == 0 && (mode & (S_IRUSR | S_IWUSR)) != (S_IRUSR | S_IWUSR)) {
        error = EOPNOTSUPP;
    }
    return shim_return(error);
}

ESDMNC_EXPORT int
chmod(const char *path, mode_t mode)
{
    const char *ours = shim_path(path);
    if (!ours) {
        int result = SHIM_REAL(chmod)(path, mode);
        if (result == 0 || !(ours = shim_missing(path))) {
            return result;
        }
    }
    return change_mode(ours, mode);
}

ESDMNC_EXPORT int
fchmodat(int dirfd, const char *path, mode_t mode, int flags)
{
    const char *ours = dirfd == AT_FDCWD ? shim_path(path) : NULL;
    if (!ours) {
        int result = SHIM_REAL(fchmodat)(dirfd, path, mode, flags);
        if (result == 0 || !(ours = shim_missing(path))) {
            return result;
        }
    }
    return change_mode(ours, mode);
}
