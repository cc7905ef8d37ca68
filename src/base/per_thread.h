/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_PER_THREAD_H
#define ESDM_BASE_PER_THREAD_H

/**
 * @file
 * Things that every thread keeps for itself because making them takes long, such as the contexts of
 * compression libraries. They end with their thread, or with the library for the thread that
 * unloads it.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct esdm__per_thread {
    size_t bytes;          /* of the memory of a thread */
    void (*clear)(void *); /* what the memory refers to */
    pthread_mutex_t lock;
    atomic_bool ready;
    pthread_key_t key;
} esdm__per_thread;

/** A static one. */
#define ESDM__PER_THREAD(type, clear)                                                              \
    {                                                                                              \
        sizeof(type), clear, PTHREAD_MUTEX_INITIALIZER, false, 0                                   \
    }

/** The calling thread's memory, zeroed when it is new. NULL when out of memory or keys. */
void *esdm__per_thread_get(esdm__per_thread *all);
/**
 * For the destructor of a library: threads that outlive it must not call into it. Ends the calling
 * thread's memory. That of other threads which are still there stays until the process ends: the
 * destructor also runs when a process ends while they work with it, and nothing tells it apart.
 * Threads of a pool have ended with their session.
 */
void esdm__per_thread_drop(esdm__per_thread *all);

#endif
