/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file A rank of MPICH that waits for others asks UCX again and again and never yields: where
 * there are more ranks than cores, those that wait take most of the time. Programs of tests that
 * link this sleep a moment instead; MPICH finds this function before that of UCX. */

#include <dlfcn.h>
#include <stddef.h>
#include <time.h>

enum {
    ASKS = 100 /* without an answer, before it sleeps */
};

__attribute__((visibility("default"))) unsigned ucp_worker_progress(void *worker);

unsigned
ucp_worker_progress(void *worker)
{
    static _Thread_local unsigned (*real)(void *worker);
    static _Thread_local int asked;
    if (real == NULL)
        *(void **) &real = dlsym(RTLD_NEXT, "ucp_worker_progress");
    unsigned events = real != NULL ? real(worker) : 0;
    asked = events != 0 ? 0 : asked + 1;
    if (asked >= ASKS) {
        asked = 0;
        (void) nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL); /* and the slack of timers */
    }
    return events;
}
