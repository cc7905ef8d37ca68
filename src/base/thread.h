/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_THREAD_H
#define ESDM_BASE_THREAD_H

/** @file How ESDM's own threads begin, and until when they wait. */

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/** Begins a thread that gets no signals: these are for the program's threads.
 *  @param attributes NULL: the usual ones. @return whether it runs. */
static inline bool
esdm__thread_start(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument)
{
    sigset_t all;
    sigset_t before;
    (void) sigfillset(&all);
    (void) pthread_sigmask(SIG_SETMASK, &all, &before);
    bool runs = pthread_create(thread, attributes, run, argument) == 0;
    (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
    return runs;
}

/** The time of that clock in so many nanoseconds, as pthread_cond_timedwait() and its kin want it.
 */
static inline struct timespec
esdm__deadline(clockid_t clock, uint64_t in_ns)
{
    static const uint64_t second = UINT64_C(1000000000);
    struct timespec until;
    (void) clock_gettime(clock, &until);
    uint64_t ns = (uint64_t) until.tv_nsec + in_ns % second;
    until.tv_sec += (time_t) (in_ns / second + ns / second);
    until.tv_nsec = (long) (ns % second);
    return until;
}

#endif
