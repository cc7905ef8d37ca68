/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/resource.h>
#include <unistd.h>

static void set_moving(bool on);

static esdm__descriptors own = {.set_moving = set_moving};
static _Atomic(esdm__descriptors *) used = &own;
static _Thread_local bool moving;

static void
set_moving(bool on)
{
    moving = on;
}

void
esdm__descriptors_moving(bool on)
{
    atomic_load(&used)->set_moving(on);
}

void
esdm__descriptors_share(esdm__descriptors *table)
{
    atomic_store(&used, table);
}

/* ---- table ---------------------------------------------------------------------------------- */

static bool
is_numbered(int fd)
{
    return fd >= 0 && fd < ESDM_DESCRIPTORS_MAX;
}

static bool
has(_Atomic uint64_t *set, int fd)
{
    return (atomic_load(&set[fd / 64]) >> (fd % 64) & 1) != 0;
}

/* Whether it was in the set. */
static bool
take_out(_Atomic uint64_t *set, int fd)
{
    uint64_t bit = UINT64_C(1) << (fd % 64);
    return has(set, fd) && (atomic_fetch_and(&set[fd / 64], ~bit) & bit) != 0;
}

/* What the parent kept open the child has inherited. A child of vfork() shares the memory of its
 * parent, and does not come here. */
static void
after_fork_in_child(void)
{
    for (size_t i = 0; i < sizeof own.kept / sizeof own.kept[0]; i++) {
        uint64_t kept = atomic_load_explicit(&own.kept[i], memory_order_relaxed);
        if (kept == 0)
            continue;
        atomic_fetch_or(&own.inherited[i], kept);
        atomic_store(&own.kept[i], 0);
    }
    atomic_store(&own.owner, getpid());
}

static void
prepare_forks(void)
{
    atomic_store(&own.owner, getpid());
    (void) pthread_atfork(NULL, NULL, after_fork_in_child);
}

esdm__descriptors *
esdm__descriptors_own(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void) pthread_once(&once, prepare_forks);
    return &own;
}

void
esdm__descriptor_enter(int fd)
{
    esdm__descriptors *table = atomic_load(&used);
    if (table == &own)
        (void) esdm__descriptors_own();
    if (is_numbered(fd)) {
        (void) take_out(table->inherited, fd);
        atomic_fetch_or(&table->kept[fd / 64], UINT64_C(1) << (fd % 64));
    }
}

/* ---- calls that are intercepted ------------------------------------------------------------- */

bool
esdm_descriptor_is_kept(int fd)
{
    if (!is_numbered(fd))
        return false;
    bool kept = has(own.kept, fd);
    if (!kept && !has(own.inherited, fd))
        return false;
    if (atomic_load(&own.owner) != getpid())
        return false; /* between vfork() and exec(): it shares our memory, not our descriptors */
    if (kept && !moving)
        return true;
    (void) take_out(kept ? own.kept : own.inherited, fd);
    return false;
}

int
esdm_descriptor_opened(int fd)
{
    return moving ? esdm__descriptor_keep(fd) : fd;
}

/* ---- numbers -------------------------------------------------------------------------------- */

/* -1: there is no room. */
static int
dup_high(int fd)
{
    int high = fcntl(fd, F_DUPFD_CLOEXEC, ESDM_DESCRIPTORS_MIN);
    if (high >= 0)
        return high;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
        limit.rlim_cur >= 2 * (rlim_t) ESDM_DESCRIPTORS_MIN)
        return -1;
    return fcntl(fd, F_DUPFD_CLOEXEC, (int) (limit.rlim_cur / 2));
}

int
esdm__descriptor_dup(int fd)
{
    int copy = dup_high(fd);
    if (copy < 0)
        copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (copy >= 0)
        esdm__descriptor_enter(copy);
    return copy;
}

int
esdm__descriptor_keep(int fd)
{
    if (fd < 0)
        return -1;
    int high = fd < ESDM_DESCRIPTORS_MIN ? dup_high(fd) : -1;
    if (high > fd) {
        (void) close(fd);
        fd = high;
    } else {
        if (high >= 0)
            (void) close(high);
        (void) fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
    esdm__descriptor_enter(fd);
    return fd;
}

int
esdm__descriptor_close(int fd)
{
    esdm__descriptors *table = atomic_load(&used);
    bool open = !is_numbered(fd) || take_out(table->kept, fd) || take_out(table->inherited, fd);
    return open ? close(fd) : 0;
}
