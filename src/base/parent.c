/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "base/parent.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/error.h"

/* File systems that the kernel makes up, in which nobody makes folders for data. */
static const char *
made_up(const char *directory)
{
    struct statfs facts;
    if (statfs(directory, &facts) != 0)
        return NULL;
    switch ((unsigned long) facts.f_type) {
    case PROC_SUPER_MAGIC:
        return "proc";
    case SYSFS_MAGIC:
        return "sysfs";
    case DEBUGFS_MAGIC:
        return "debugfs";
    case DEVPTS_SUPER_MAGIC:
        return "devpts";
    default:
        return NULL;
    }
}

esdm_status
esdm__parent_check(const char *path, const char *directory, esdm_error *err)
{
    char parent[PATH_MAX];
    struct stat found;
    (void) snprintf(parent, sizeof parent, "%s", directory);
    while (stat(parent, &found) != 0) {
        if (errno != ENOENT)
            return esdm__error_set_errno(err, errno, "%s: cannot make directory '%s'", path,
                                         directory);
        char *slash = strrchr(parent, '/');
        if (slash == NULL || slash == parent)
            (void) snprintf(parent, sizeof parent, "%s", slash == parent ? "/" : ".");
        else
            *slash = '\0';
    }
    if (!S_ISDIR(found.st_mode))
        return esdm__error_set(err, ESDM_EEXIST, "%s: cannot make directory '%s': '%s' is none",
                               path, directory, parent);
    const char *kind = made_up(parent);
    if (kind != NULL)
        return esdm__error_set(err, ESDM_ENOENT,
                               "%s: cannot make directory '%s': '%s' is a file system of the "
                               "kernel (%s), which keeps no data",
                               path, directory, parent, kind);
    if (faccessat(AT_FDCWD, parent, W_OK | X_OK, AT_EACCESS) != 0)
        return esdm__error_set_errno(err, errno, "%s: cannot make directory '%s' in '%s'", path,
                                     directory, parent);
    return ESDM_OK;
}

void
esdm__sync_parent(const char *path)
{
    char parent[PATH_MAX];
    (void) snprintf(parent, sizeof parent, "%s", path);
    char *slash = strrchr(parent, '/');
    if (slash == NULL)
        return;
    slash[slash == parent] = '\0';
    int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void) fsync(fd);
    (void) close(fd);
}
