/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Making a shard. Kyoto Cabinet writes what a database begins with piece by piece; a file in which
 * some of it was lost cannot be opened, and who lists packs opens all shards. So it is made under
 * another name, flushed, and gets its own name at once.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "kv.h"

static esdm_status
fill(const kv__target *target, const char *file, esdm_error *err)
{
    char tuned[PATH_MAX];
    if (snprintf(tuned, sizeof tuned, "%s/%s" KV__TUNING, target->directory, file) >=
        (int) sizeof tuned)
        return esdm__error_set(err, ESDM_EINVAL, "kv: '%.200s' is too long", target->directory);
    KCDB *db = kcdbnew();
    if (db == NULL)
        return esdm__error_nomem(err, 1, "a database");
    bool good = kv__start(target, file, db, tuned, KCOWRITER | KCOCREATE | KCOTRYLOCK);
    good = good && kv__finish(db);
    esdm_status status = good ? ESDM_OK : kv__error(target, file, db, "make", err);
    kcdbdel(db);
    return status;
}

/* @param fd of the file. */
static esdm_status
publish(const kv__target *target, const char *unfinished, int fd, const char *file, esdm_error *err)
{
    const char *what = "flush";
    if (fsync(fd) == 0) {
        what = "name";
        if (esdm__place_rename_new(target->fd, unfinished, file) == 0) {
            what = "flush the folder of";
            if (fsync(target->fd) == 0)
                return ESDM_OK;
        }
    }
    return esdm__error_set_errno(err, errno, "kv: cannot %s the new '%s/%s'", what,
                                 target->directory, file);
}

esdm_status
kv__make_shard(const kv__target *target, const char *file, esdm_error *err)
{
    char unfinished[KV__FILE_BYTES];
    kv__unfinished_file(file, unfinished);
    int fd =
        openat(target->fd, unfinished, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0 && errno == EEXIST)
        return ESDM_ECANCELED;
    if (fd < 0)
        return esdm__error_set_errno(err, errno, "kv: cannot make '%s/%s'", target->directory,
                                     unfinished);
    fd = esdm__descriptor_keep(fd);
    esdm_error why = {0};
    esdm_status status = fill(target, unfinished, &why);
    if (status == ESDM_OK)
        status = publish(target, unfinished, fd, file, &why);
    (void) esdm__descriptor_close(fd);
    if (status == ESDM_OK)
        return ESDM_OK;
    (void) !kv__delete(target, unfinished, NULL);
    if (status == ESDM_ENOENT || status == ESDM_EEXIST)
        return ESDM_ECANCELED; /* taken for garbage meanwhile, or somebody else was faster */
    if (err != NULL)
        *err = why;
    return status;
}
