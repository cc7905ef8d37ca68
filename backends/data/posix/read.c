/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Reading packs. */

#include <errno.h>
#include <sys/uio.h>

#include "base/error.h"
#include "posix.h"

/* Neighbours this close are fetched by one call: reading the gap costs less than another call. */
#define GAP_BYTES 8192
#define BATCH     64

typedef struct run {
    struct iovec vec[BATCH];
    int count;
    uint64_t position;
    uint64_t bytes;
} run;

/* Reads the whole run. Returns 0, an errno, or -1 at the end of the file. */
static int
read_run(int fd, run *todo)
{
    struct iovec *vec = todo->vec;
    int count = todo->count;
    uint64_t position = todo->position;
    while (count > 0) {
        ssize_t n = preadv(fd, vec, count, (off_t) position);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        if (n == 0)
            return -1;
        position += (uint64_t) n;
        size_t done = (size_t) n;
        while (count > 0 && done >= vec->iov_len) {
            done -= vec->iov_len;
            vec++;
            count--;
        }
        if (count > 0) {
            vec->iov_base = (char *) vec->iov_base + done;
            vec->iov_len -= done;
        }
    }
    return 0;
}

/* Adds a range, over a gap if there is one; false when it does not belong into this run. */
static bool
add_range(run *todo, const esdm_range *range, char *gap)
{
    if (todo->count > 0) {
        uint64_t end = todo->position + todo->bytes;
        if (range->position < end || range->position - end > GAP_BYTES || todo->count + 2 > BATCH)
            return false;
        uint64_t between = range->position - end;
        if (between > 0)
            todo->vec[todo->count++] = (struct iovec){.iov_base = gap, .iov_len = (size_t) between};
        todo->bytes += between;
    } else {
        todo->position = range->position;
    }
    todo->vec[todo->count++] =
        (struct iovec){.iov_base = range->buffer, .iov_len = (size_t) range->bytes};
    todo->bytes += range->bytes;
    return true;
}

static int
read_ranges(int fd, const esdm_range *ranges, size_t nranges)
{
    char gap[GAP_BYTES]; /* what lies between wanted ranges; never looked at */
    size_t at = 0;
    int why = 0;
    while (at < nranges && why == 0) {
        run todo = {.count = 0, .position = 0, .bytes = 0};
        for (; at < nranges; at++) {
            if (ranges[at].bytes > 0 && !add_range(&todo, &ranges[at], gap))
                break;
        }
        why = read_run(fd, &todo);
    }
    return why;
}

static esdm_status
read_once(posix__target *target, const char *name, const esdm_range *ranges, size_t nranges,
          int *ret_why, esdm_error *err)
{
    int fd = -1;
    int slot = -1;
    esdm_status status = posix__cache_acquire(target->cache, target, name, &fd, &slot, err);
    if (status != ESDM_OK)
        return status;
    *ret_why = read_ranges(fd, ranges, nranges);
    posix__cache_release(target->cache, fd, slot);
    return ESDM_OK;
}

esdm_status
posix__pack_read(void *self, const char *name, const esdm_range *ranges, size_t nranges,
                 esdm_error *err)
{
    posix__target *target = self;
    for (size_t i = 0; i < nranges; i++) {
        if (ranges[i].position > INT64_MAX || ranges[i].bytes > INT64_MAX - ranges[i].position)
            return esdm__error_set(err, ESDM_ECORRUPT,
                                   "posix: pack '%.120s' in '%s' has no position %llu", name,
                                   target->directory, (unsigned long long) ranges[i].position);
    }
    int why = 0;
    esdm_status status = read_once(target, name, ranges, nranges, &why, err);
    if (status == ESDM_OK && (why < 0 || why == ESTALE)) {
        /* On a network file system an open file may be as long as it was some seconds ago, or gone:
         * who opens it anew asks the server. */
        posix__cache_drop(target->cache, name);
        status = read_once(target, name, ranges, nranges, &why, err);
    }
    if (status != ESDM_OK)
        return status;
    if (why < 0)
        return esdm__error_set(err, ESDM_ECORRUPT,
                               "posix: pack '%s' in '%s' is shorter than the bytes asked for", name,
                               target->directory);
    if (why > 0)
        return esdm__error_set_errno(err, why, "posix: cannot read pack '%s' in '%s'", name,
                                     target->directory);
    return ESDM_OK;
}
