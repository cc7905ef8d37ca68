/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_SHORT_MUTEX_H
#define ESDM_BASE_SHORT_MUTEX_H

/** @file Mutexes that are held for less time than it takes to put a thread to sleep. */

#include <pthread.h>

/** Who finds it taken tries again for a moment before it sleeps (glibc; elsewhere as any other). */
static inline void
esdm__mutex_init_short(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;
    (void) pthread_mutexattr_init(&attributes);
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
    (void) pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
#endif
    (void) pthread_mutex_init(mutex, &attributes);
    (void) pthread_mutexattr_destroy(&attributes);
}

#endif
