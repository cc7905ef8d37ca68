/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "base/usage.h"

#include <errno.h>
#include <sys/statvfs.h>

#include "base/error.h"

esdm_status
esdm__usage_of_directory(int fd, const char *plugin, const char *directory,
                         esdm_target_usage *ret_usage, esdm_error *err)
{
    struct statvfs space;
    if (fstatvfs(fd, &space) != 0)
        return esdm__error_set_errno(err, errno, "%s: cannot ask for the space of '%s'", plugin,
                                     directory);
    *ret_usage = (esdm_target_usage){.total_bytes = (uint64_t) space.f_blocks * space.f_frsize,
                                     .free_bytes = (uint64_t) space.f_bavail * space.f_frsize};
    return ESDM_OK;
}

bool
esdm__usage_add(const char *name, uint64_t bytes, uint64_t modified_ns, void *user)
{
    (void) name;
    (void) modified_ns;
    esdm_target_usage *sum = user;
    sum->used_bytes += bytes;
    sum->packs++;
    return true;
}
