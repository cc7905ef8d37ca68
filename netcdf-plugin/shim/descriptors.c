/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Calls that close descriptors by number: they do not touch those that ESDM has open. A program
 * that closes all from 3 on would else go on with its own files under the numbers of ESDM's. Calls
 * that open descriptors within libraries that ESDM uses put them where programs do not look.
 *
 * close() may be called in signal handlers, and between fork() and exec(): nothing here waits or
 * allocates.
 */
#include "shim/shim.h"

#include <esdm/descriptors.h>

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static bool
is_kept(int fd)
{
    const esdmnc__core *core = fd >= 0 ? esdmnc__core_if_loaded() : NULL;
    return core && core->descriptor_is_kept(fd);
}

int
shim_descriptor_opened(int fd)
{
    const esdmnc__core *core = fd >= 0 ? esdmnc__core_if_loaded() : NULL;
    return core ? core->descriptor_opened(fd) : fd;
}

/* ---- closing -------------------------------------------------------------------------------- */

/* The next definitions. dlsym() takes a lock, which a forked child might never get, and is nothing
 * for signal handlers: they are looked up before. */
static __typeof__(&close)
real_close(void)
{
    return SHIM_REAL(close);
}

static __typeof__(&dup2)
real_dup2(void)
{
    return SHIM_REAL(dup2);
}

static __typeof__(&dup3)
real_dup3(void)
{
    return SHIM_REAL(dup3);
}

__attribute__((constructor)) static void
look_up(void)
{
    (void) real_close();
    (void) real_dup2();
    (void) real_dup3();
}

ESDMNC_EXPORT int
close(int fd)
{
    return is_kept(fd) ? shim_return(EBADF) : real_close()(fd);
}

ESDMNC_EXPORT int
dup2(int old, int new)
{
    return old != new &&is_kept(new) ? shim_return(EBADF) : real_dup2()(old, new);
}

ESDMNC_EXPORT int
dup3(int old, int new, int flags)
{
    return old != new &&is_kept(new) ? shim_return(EBADF) : real_dup3()(old, new, flags);
}

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)

static __typeof__(&close_range)
real_close_range(void)
{
    return SHIM_REAL(close_range);
}

static __typeof__(&closefrom)
real_closefrom(void)
{
    return SHIM_REAL(closefrom);
}

__attribute__((constructor)) static void
look_up_ranges(void)
{
    (void) real_close_range();
    (void) real_closefrom();
}

/** The first number from `first` to `last` that is kept; -1: none. */
static int
next_kept(unsigned first, unsigned last)
{
    const esdmnc__core *core = esdmnc__core_if_loaded();
    unsigned end = core ? core->descriptor_limit() : 0; /* none is kept from here on */
    for (unsigned fd = first; fd <= last && fd < end; fd++) {
        if (core->descriptor_is_kept((int) fd)) {
            return (int) fd;
        }
    }
    return -1;
}

ESDMNC_EXPORT int
close_range(unsigned first, unsigned last, int flags)
{
    if (first > last || (flags & CLOSE_RANGE_CLOEXEC)) {
        return real_close_range()(first, last, flags); /* ours are closed by exec() anyhow */
    }
    for (;;) {
        int kept = next_kept(first, last);
        unsigned end = kept < 0 ? last : (unsigned) kept - 1;
        if ((kept < 0 || (unsigned) kept > first) && real_close_range()(first, end, flags) != 0) {
            return -1;
        }
        if (kept < 0 || (unsigned) kept == last) {
            return 0;
        }
        first = (unsigned) kept + 1;
        flags &= ~(int) CLOSE_RANGE_UNSHARE; /* done by the first call */
    }
}

ESDMNC_EXPORT void
closefrom(int first)
{
    unsigned from = first > 0 ? (unsigned) first : 0;
    if (next_kept(from, INT_MAX) < 0) {
        real_closefrom()(first);
    } else if (close_range(from, UINT_MAX, 0) != 0) {
        struct rlimit limit; /* a kernel before 5.9 */
        int end = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < INT_MAX
                      ? (int) limit.rlim_cur
                      : INT_MAX;
        for (int fd = (int) from; fd < end; fd++) {
            (void) close(fd);
        }
    }
}
#endif

/* ---- opening -------------------------------------------------------------------------------- */

ESDMNC_EXPORT int
socket(int domain, int type, int protocol)
{
    return shim_descriptor_opened(SHIM_REAL(socket)(domain, type, protocol));
}

static int
pair_opened(int result, int pair[2])
{
    if (result == 0) {
        pair[0] = shim_descriptor_opened(pair[0]);
        pair[1] = shim_descriptor_opened(pair[1]);
    }
    return result;
}

ESDMNC_EXPORT int
socketpair(int domain, int type, int protocol, int pair[2])
{
    return pair_opened(SHIM_REAL(socketpair)(domain, type, protocol, pair), pair);
}

ESDMNC_EXPORT int
pipe(int pair[2])
{
    return pair_opened(SHIM_REAL(pipe)(pair), pair);
}

ESDMNC_EXPORT int
pipe2(int pair[2], int flags)
{
    return pair_opened(SHIM_REAL(pipe2)(pair, flags), pair);
}

ESDMNC_EXPORT int
eventfd(unsigned value, int flags)
{
    return shim_descriptor_opened(SHIM_REAL(eventfd)(value, flags));
}
