/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Room for what is to be written, and errors of the lack of it. */

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/error.h"
#include "kv.h"

/* A record's head and key; the last chunk, the length and the list of a shard. */
#define RECORD_BYTES UINT64_C(320)
#define END_BYTES    (KV__CHUNK_BYTES + (UINT64_C(48) << 10))
/* What is reserved for packs to come. */
#define AHEAD_BYTES (UINT64_C(64) << 10)
#define STAT_BLOCK  512u /* st_blocks */
/* When less is free, that is why something failed. */
#define LOW_SPACE (UINT64_C(1) << 20)

static esdm_status
no_space(const kv__target *target, uint64_t bytes, esdm_error *err)
{
    return esdm__error_set(err, ESDM_ENOSPC, "kv: no space for %llu bytes in '%s'",
                           (unsigned long long) bytes, target->directory);
}

static bool
is_within_limit(uint64_t end)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           end <= limit.rlim_cur;
}

static bool
has_free(const kv__target *target, uint64_t bytes)
{
    struct statvfs space;
    return fstatvfs(target->fd, &space) != 0 || (uint64_t) space.f_bavail * space.f_frsize >= bytes;
}

esdm_status
kv__reserve(const kv__target *target, const kv__handle *handle, uint64_t bytes, uint64_t records,
            esdm_error *err)
{
    struct stat found;
    int fd = kv__descriptor(handle);
    uint64_t need = bytes + records * RECORD_BYTES + END_BYTES;
    if (fd < 0 || fstat(fd, &found) != 0)
        return has_free(target, need) ? ESDM_OK : no_space(target, bytes, err);
    uint64_t end = (uint64_t) found.st_size + need;
    if (!is_within_limit(end))
        return no_space(target, bytes, err);
    /* Blocks behind the end of the file, where the records go; some for the next ones, too. */
    if ((uint64_t) found.st_blocks * STAT_BLOCK >= end ||
        fallocate(fd, FALLOC_FL_KEEP_SIZE, found.st_size, (off_t) (need + AHEAD_BYTES)) == 0 ||
        fallocate(fd, FALLOC_FL_KEEP_SIZE, found.st_size, (off_t) need) == 0)
        return ESDM_OK;
    if (errno != ENOSPC && errno != EDQUOT && errno != EFBIG && has_free(target, need))
        return ESDM_OK; /* the file system cannot do that */
    return no_space(target, bytes, err);
}

esdm_status
kv__expect_room(const kv__target *target, uint64_t bytes, esdm_error *err)
{
    uint64_t need = bytes + (bytes / KV__CHUNK_BYTES + 1) * RECORD_BYTES + KV__EMPTY_BYTES;
    if (has_free(target, need + 2 * END_BYTES) && is_within_limit(need + END_BYTES))
        return ESDM_OK;
    return no_space(target, bytes, err);
}

esdm_status
kv__error(const kv__target *target, const char *file, KCDB *db, const char *what, esdm_error *err)
{
    int32_t code = kcdbecode(db);
    if (code == KCENOPERM)
        return esdm__error_set(err, ESDM_EACCES, "kv: cannot %s '%s/%s': no permission", what,
                               target->directory, file);
    if (code == KCEBROKEN)
        return esdm__error_set(err, ESDM_ECORRUPT, "kv: cannot %s '%s/%s': the file is damaged",
                               what, target->directory, file);
    if (!has_free(target, LOW_SPACE))
        return esdm__error_set(err, ESDM_ENOSPC, "kv: cannot %s '%s/%s': no space left", what,
                               target->directory, file);
    return esdm__error_set(err, ESDM_EIO, "kv: cannot %s '%s/%s': %s", what, target->directory,
                           file, kcdbemsg(db));
}
