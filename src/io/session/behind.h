/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_SESSION_BEHIND_H
#define ESDM_IO_SESSION_BEHIND_H

/**
 * @file
 * What a session does behind its callers: jobs in bounded memory, one after the other, by a thread
 * of its own, which starts with the first one. The jobs of one *lane* (a dataset) are done in the
 * order in which they came. One that fails stays, and those of its lane wait behind it, until
 * somebody settles the lane, when it is tried again, or drops them.
 * Threads: locked inside. In a forked child nothing is done any more: ESDM_EINVAL.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "esdm/status.h"

typedef struct esdm__behind esdm__behind;

/** First member of a struct of its maker's. */
typedef struct esdm__job {
    struct esdm__job *next; /* the queue's */
    struct esdm__lane *lane;
    uint64_t bytes; /* of memory that it holds */
    esdm_status (*run)(struct esdm__job *job, esdm_error *err);
    void (*free)(struct esdm__job *job); /* it is done or dropped; the queue is locked */
} esdm__job;

/** Zero-initialise. What it has is the queue's, but the number, which anybody may read. */
typedef struct esdm__lane {
    atomic_size_t count;   /* jobs that are not done */
    const esdm_error *why; /* owned; NULL, or: the first one has failed */
} esdm__lane;

/** @param limit_bytes that waiting jobs may hold together. NULL when out of memory. */
esdm__behind *esdm__behind_new(uint64_t limit_bytes);
/** Ends the thread, and frees jobs that are left; in a forked child they are left alone. NULL is
 * accepted. */
void esdm__behind_free(esdm__behind *behind);
/** ESDM_EINVAL in a forked child: locks may have been held when it was forked, and nobody gives
 * them back. Needs none. */
esdm_status esdm__behind_check(const esdm__behind *behind, esdm_error *err);
/** Whether no job is there at all; when others may put some it is true for a moment. */
bool esdm__behind_is_empty(const esdm__behind *behind);
uint64_t esdm__behind_limit(const esdm__behind *behind);

/**
 * Waits until there is memory for so many bytes, and takes them: before they are allocated. What
 * has failed is tried again when nothing else can make room.
 * @param bytes at most the limit; of a job that follows, or esdm__behind_leave().
 * @return the failure of a job that stays, when that leaves too little.
 */
esdm_status esdm__behind_enter(esdm__behind *behind, uint64_t bytes, esdm_error *err);
void esdm__behind_leave(esdm__behind *behind, uint64_t bytes);
/** Appends a job, for whose bytes there is room. Owned by the queue from now on. Where no thread
 * can be started it is done here. */
void esdm__behind_put(esdm__behind *behind, esdm__lane *lane, esdm__job *job);

/** Waits until the jobs of the lane are done; what has failed is tried again once. @return the
 *  failure of one that stays. */
esdm_status esdm__behind_settle(esdm__behind *behind, esdm__lane *lane, esdm_error *err);
/** Waits until none is under way: they are done, or wait behind one that has failed. */
void esdm__behind_wait(esdm__behind *behind, const esdm__lane *lane);
/** Takes away the first one, if it has failed, or (`all`) all, after the one that is under way.
 * @param lost told of each before it is freed; NULL: nobody is. @return how many. */
size_t esdm__behind_drop(esdm__behind *behind, esdm__lane *lane, bool all,
                         void (*lost)(void *user, const esdm__job *job), void *user);

#endif
