/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Something that may hang, such as a file system of a server that is away, in its own thread. */
#include "common/common.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

enum { RUNNING, ENDED, LEFT };

typedef struct errand {
    void (*run)(void *data);
    void *data;
    GDestroyNotify free;
    atomic_int state;
} errand;

static void *
go(void *argument)
{
    errand *e = argument;
    e->run(e->data);
    if (atomic_exchange(&e->state, ENDED) == LEFT) {
        e->free(e->data);
        g_free(e);
    }
    return NULL;
}

/* Whether the thread has ended after so many seconds, or so many after it got on last. */
static bool
wait_for(pthread_t thread, double seconds, const atomic_uint *progress)
{
    unsigned before;
    do {
        struct timespec until;
        before = progress != NULL ? atomic_load(progress) : 0;
        (void) clock_gettime(CLOCK_REALTIME, &until);
        gint64 ns = until.tv_nsec + (gint64) (seconds * 1e9);
        until.tv_sec += (time_t) (ns / 1000000000);
        until.tv_nsec = (long) (ns % 1000000000);
        if (pthread_timedjoin_np(thread, NULL, &until) == 0)
            return true;
    } while (progress != NULL && atomic_load(progress) != before);
    return false;
}

bool
tool_in_time(void (*run)(void *data), void *data, GDestroyNotify free, double seconds,
             const atomic_uint *progress)
{
    sigset_t all, before;
    pthread_t thread;
    errand *e = g_new0(errand, 1);
    e->run = run;
    e->data = data;
    e->free = free;
    (void) sigfillset(&all);
    (void) pthread_sigmask(SIG_SETMASK, &all, &before);
    bool starts = pthread_create(&thread, NULL, go, e) == 0;
    (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!starts) {
        run(data);
        g_free(e);
        return true;
    }
    if (wait_for(thread, seconds, progress)) {
        g_free(e);
        return true;
    }
    if (atomic_exchange(&e->state, LEFT) == ENDED) {
        (void) pthread_join(thread, NULL);
        g_free(e);
        return true;
    }
    (void) pthread_detach(thread);
    return false;
}
