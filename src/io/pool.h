/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_POOL_H
#define ESDM_IO_POOL_H

/**
 * @file
 * Thread pool of a session. Threads start at the first parallel call, so that a program that only
 * looks at metadata starts none. Threads: locked inside.
 */

#include "esdm/status.h"

typedef struct esdm__pool esdm__pool;

/** One unit of work; i counts from 0. Runs on any pool thread or on the caller. */
typedef esdm_status (*esdm__task_fn)(void *context, size_t i, esdm_error *err);

/** @param threads concurrency of one call, the caller included; ≥ 1. NULL when out of memory. */
esdm__pool *esdm__pool_new(unsigned threads);
/** Joins the threads. No call may be running. NULL is accepted. */
void esdm__pool_free(esdm__pool *pool);
unsigned esdm__pool_threads(const esdm__pool *pool);

/**
 * Runs task(context, i) for i in [0, count) on the caller and the pool, and waits for all of them.
 * After a failure no further task starts. @return the failure with the lowest i seen, in err.
 */
esdm_status esdm__pool_run(esdm__pool *pool, size_t count, esdm__task_fn task, void *context,
                           esdm_error *err);

#endif
