/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_SESSION_POOL_H
#define ESDM_IO_SESSION_POOL_H

/**
 * @file
 * Thread pool of a session. Threads start at the first parallel call, so that a program that only
 * looks at metadata starts none. Threads: locked inside.
 */

#include <stdbool.h>

#include "esdm/status.h"

typedef struct esdm__pool esdm__pool;

/** One unit of work; i counts from 0. Runs on any pool thread or on the caller. */
typedef esdm_status (*esdm__task_fn)(void *context, size_t i, esdm_error *err);

/**
 * @param threads concurrency of one call, the caller included; ≥ 1.
 * @param waiting tasks that may wait on top of them, between esdm__pool_wait_begin() and _end().
 * NULL when out of memory.
 */
esdm__pool *esdm__pool_new(unsigned threads, unsigned waiting);
/** Joins the threads. No call may be running. NULL is accepted. */
void esdm__pool_free(esdm__pool *pool);
unsigned esdm__pool_threads(const esdm__pool *pool);

/**
 * Runs task(context, i) for i in [0, count) on the caller and the pool, and waits for all of them.
 * After a failure no further task starts. @return the failure with the lowest i seen, in err.
 */
esdm_status esdm__pool_run(esdm__pool *pool, size_t count, esdm__task_fn task, void *context,
                           esdm_error *err);

/** As esdm__pool_run(), for tasks that may be too short for others to be woken: the caller runs
 * them in their order, and the pool comes in when what is left would take the caller longer. */
esdm_status esdm__pool_run_short(esdm__pool *pool, size_t count, esdm__task_fn task, void *context,
                                 esdm_error *err);

/**
 * Around what a task waits for without using the CPU: a server's answer. Meanwhile another task of
 * the pool runs in its place. May be nested. Outside of tasks nothing happens. No lock may be held.
 */
void esdm__pool_wait_begin(esdm__pool *pool);
void esdm__pool_wait_end(esdm__pool *pool);
/** Whether tasks are expected to wait: then even a few small ones are worth the pool. */
bool esdm__pool_may_wait(const esdm__pool *pool);

#endif
