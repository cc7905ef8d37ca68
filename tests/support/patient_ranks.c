/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Ranks that wait for others leave the cores to them. MPICH asks UCX again and again and
 * never yields; Open MPI yields, and asks again at once: where there are more ranks than cores,
 * those that wait take most of the time. Programs of tests that link this sleep a moment instead:
 * both MPIs find these functions before those of UCX and of the C library. */

#include <dlfcn.h>
#include <stddef.h>
#include <time.h>

enum {
    ASKS = 100 /* without an answer, before it sleeps */
};

static void
asked_for_nothing(int *asked)
{
    if (++*asked >= ASKS) {
        *asked = 0;
        (void) nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL); /* and the slack of timers */
    }
}

__attribute__((visibility("default"))) unsigned ucp_worker_progress(void *worker);

/* MPICH. */
unsigned
ucp_worker_progress(void *worker)
{
    static _Thread_local unsigned (*real)(void *worker);
    static _Thread_local int asked;
    if (real == NULL)
        *(void **) &real = dlsym(RTLD_NEXT, "ucp_worker_progress");
    unsigned events = real != NULL ? real(worker) : 0;
    if (events != 0)
        asked = 0;
    else
        asked_for_nothing(&asked);
    return events;
}

__attribute__((visibility("default"))) int sched_yield(void);

/* Open MPI, with mpi_yield_when_idle: called where nothing has come. */
int
sched_yield(void)
{
    static _Thread_local int (*real)(void);
    static _Thread_local int asked;
    if (real == NULL)
        *(void **) &real = dlsym(RTLD_NEXT, "sched_yield");
    asked_for_nothing(&asked);
    return real != NULL ? real() : 0;
}
