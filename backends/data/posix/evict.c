/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Reading past the page cache: for measurements. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/error.h"
#include "posix.h"

/* Of linux/magic.h, which not every system has. */
#define TMPFS 0x01021994
#define RAMFS 0x858458f6

/* There the memory is the device. */
static bool
is_memory(int fd)
{
    struct statfs fs;
    return fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS || fs.f_type == RAMFS);
}

/* The part of the file that is in memory, 0 … 1. What cannot be told is 0. */
static double
resident(int fd, size_t bytes)
{
    size_t page = (size_t) sysconf(_SC_PAGESIZE);
    size_t pages = (bytes + page - 1) / page;
    size_t found = 0;
    unsigned char *map = malloc(pages);
    void *memory = mmap(NULL, bytes, PROT_NONE, MAP_SHARED, fd, 0);
    if (map != NULL && memory != MAP_FAILED && mincore(memory, bytes, map) == 0) {
        for (size_t i = 0; i < pages; i++)
            found += map[i] & 1;
    }
    if (memory != MAP_FAILED)
        (void) munmap(memory, bytes);
    free(map);
    return (double) found / (double) pages;
}

static esdm_status
evict(const posix__target *target, const char *name, int fd, esdm_error *err)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return esdm__error_set_errno(err, errno, "posix: cannot look at pack '%s' in '%s'", name,
                                     target->directory);
    if (status.st_size == 0 || is_memory(fd))
        return ESDM_OK;
    (void) posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    if (resident(fd, (size_t) status.st_size) <= 0.5)
        return ESDM_OK;
    return esdm__error_set(err, ESDM_ENOTSUP, "posix: the system keeps pack '%s' in '%s' in memory",
                           name, target->directory);
}

esdm_status
posix__pack_evict(void *self, const char *name, esdm_error *err)
{
    posix__target *target = self;
    int fd = -1;
    int slot = -1;
    esdm_status status = posix__cache_acquire(target->cache, target, name, &fd, &slot, err);
    if (status != ESDM_OK)
        return status;
    status = evict(target, name, fd, err);
    posix__cache_release(target->cache, fd, slot);
    return status;
}
