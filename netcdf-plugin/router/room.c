/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Room for ESDM's descriptors, which have high numbers (esdm/descriptors.h). The kernel makes its
 * table of a process's descriptors larger for the first of them. With a single thread, as in a
 * program that esdm-run starts or in a forked child, that takes a microsecond. With several, as in
 * Python with NumPy, it waits until no processor uses the former table: 9 ms on a quiet machine, 65
 * on a busy one. So it is done before the first opening, by a thread of its own where it would
 * wait. Without success the first opening does it.
 */
#include "router/router.h"

#include <esdm/descriptors.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif
#include <unistd.h>

enum { STACK_BYTES = 64 << 10 };

static bool
has_threads(void)
{
#if __has_include(<sys/single_threaded.h>)
    return __libc_single_threaded == 0;
#else
    return false; /* not known */
#endif
}

/* The number is as src/base/descriptor.c chooses it. The kernel makes the table larger before it
 * sees that there is no descriptor -1: so nothing is opened, which the program could close, or a
 * child of fork() inherit. Safe in a forked child. */
static void
make_room(void)
{
    int saved = errno;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        rlim_t number = limit.rlim_cur > ESDM_DESCRIPTORS_MIN ? (rlim_t) ESDM_DESCRIPTORS_MIN
                                                              : limit.rlim_cur / 2;
        (void) syscall(SYS_dup3, -1, (int) number, O_CLOEXEC);
    }
    errno = saved;
}

static void *
make_room_aside(void *unused)
{
    make_room();
    return unused;
}

/* Signals are for the program's threads. */
static void
start_thread(void)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    pthread_t thread;
    if (pthread_attr_init(&attributes) != 0) {
        return;
    }
    (void) sigfillset(&all);
    if (pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0 &&
        pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0 &&
        pthread_sigmask(SIG_SETMASK, &all, &before) == 0) {
        (void) pthread_create(&thread, &attributes, make_room_aside, NULL);
        (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    (void) pthread_attr_destroy(&attributes);
}

void
esdmnc__room_activated(void)
{
    static atomic_bool begun;
    if (!atomic_exchange(&begun, true) && has_threads()) {
        start_thread();
    }
}

void
esdmnc__room_forked(void)
{
    make_room();
}

__attribute__((constructor)) static void
room_start(void)
{
    if (!has_threads()) {
        make_room();
    }
}
