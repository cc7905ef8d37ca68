/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Kyoto Cabinet opens files itself, under low numbers and so that programs which are started
 * inherit them. Where libc's calls are intercepted they are moved (base/descriptor.h). Elsewhere
 * they are at least closed by exec().
 */

#include "base/descriptor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kv.h"

/* Numbers that are looked at: the lowest free one is taken. */
#define NUMBERS 256

bool
kv__begin(const kv__target *target, KCDB *db, bool durable)
{
    durable = durable || target->durable;
    esdm__descriptors_moving(true); /* the log of the transaction */
    bool good = kcdbbegintran(db, durable) != 0;
    esdm__descriptors_moving(false);
    if (good && durable && fsync(target->fd) != 0) {
        (void) kcdbendtran(db, false);
        good = false;
    }
    return good;
}

bool
kv__end(const kv__target *target, KCDB *db, bool durable, bool good)
{
    if (good && (durable || target->durable))
        good = kcdbsync(db, 1, NULL, NULL) != 0;
    return kcdbendtran(db, good) != 0 && good;
}

static void
close_on_exec(const kv__target *target, const char *file)
{
    struct stat wanted;
    if (fstatat(target->fd, file, &wanted, AT_SYMLINK_NOFOLLOW) != 0)
        return;
    for (int fd = 3; fd < NUMBERS; fd++) {
        struct stat found;
        if (fstat(fd, &found) != 0 || found.st_ino != wanted.st_ino ||
            found.st_dev != wanted.st_dev)
            continue;
        int flags = fcntl(fd, F_GETFD);
        if (flags >= 0 && (flags & FD_CLOEXEC) == 0) {
            (void) fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
            return;
        }
    }
}

bool
kv__start(const kv__target *target, const char *file, KCDB *db, const char *path, uint32_t flags)
{
    esdm__descriptors_moving(true);
    bool good = kcdbopen(db, path, flags) != 0;
    esdm__descriptors_moving(false);
    if (good)
        close_on_exec(target, file);
    return good;
}

bool
kv__finish(KCDB *db)
{
    esdm__descriptors_moving(true);
    bool good = kcdbclose(db) != 0;
    esdm__descriptors_moving(false);
    return good;
}
