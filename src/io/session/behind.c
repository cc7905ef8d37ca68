/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/session/behind.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own_process.h"
#include "base/thread.h"
#include "esdm/float_env.h"

struct esdm__behind {
    pthread_mutex_t lock; /* guards what follows, and lanes; a leaf lock */
    pthread_cond_t work;
    pthread_cond_t changed; /* a job ended: done, failed or dropped */
    esdm__job *first;
    esdm__job *last;
    atomic_size_t count;
    const esdm__lane *busy; /* whose first job is under way; NULL: none */
    uint64_t bytes;
    uint64_t limit_bytes;
    pthread_t thread;
    bool started;
    bool stop;
    pid_t owner; /* a forked child has no thread */
};

static const esdm_error no_memory = {.status = ESDM_ENOMEM,
                                     .message = "out of memory while data were being stored"};

esdm__behind *
esdm__behind_new(uint64_t limit_bytes)
{
    esdm__behind *b = calloc(1, sizeof *b);
    if (b == NULL)
        return NULL;
    b->limit_bytes = limit_bytes;
    b->owner = esdm__own_pid();
    (void) pthread_mutex_init(&b->lock, NULL);
    (void) pthread_cond_init(&b->work, NULL);
    (void) pthread_cond_init(&b->changed, NULL);
    return b;
}

uint64_t
esdm__behind_limit(const esdm__behind *behind)
{
    return behind->limit_bytes;
}

/* The child's copy of the lock may be held for ever, and the queue may be half changed. */
esdm_status
esdm__behind_check(const esdm__behind *b, esdm_error *err)
{
    if (b->owner == esdm__own_pid())
        return ESDM_OK;
    return esdm__error_set(err, ESDM_EINVAL,
                           "the session was opened before fork(): open it again in the child");
}

bool
esdm__behind_is_empty(const esdm__behind *behind)
{
    return atomic_load(&behind->count) == 0;
}

static void
forget_why(esdm__lane *lane)
{
    if (lane->why != &no_memory)
        free((void *) (uintptr_t) lane->why);
    lane->why = NULL;
}

static void
keep_why(esdm__lane *lane, const esdm_error *why)
{
    forget_why(lane);
    esdm_error *copy = malloc(sizeof *copy);
    if (copy != NULL)
        *copy = *why;
    lane->why = copy != NULL ? copy : &no_memory;
}

/* ---- the queue; with the lock held -------------------------------------------------------- */

static void
take_out(esdm__behind *b, const esdm__job *job)
{
    esdm__job *before = NULL;
    esdm__job **at = &b->first;
    while (*at != job) {
        before = *at;
        at = &(*at)->next;
    }
    *at = job->next;
    if (b->last == job)
        b->last = before;
}

/* With memory and all; who drops it says so before. */
static void
end(esdm__behind *b, esdm__job *job)
{
    b->bytes -= job->bytes;
    (void) atomic_fetch_sub(&job->lane->count, 1);
    (void) atomic_fetch_sub(&b->count, 1);
    job->free(job);
}

static esdm__job *
first_of(const esdm__behind *b, const esdm__lane *lane)
{
    esdm__job *job = b->first;
    while (job != NULL && job->lane != lane)
        job = job->next;
    return job;
}

/* One that can be done now: its lane has not failed, so it is the first of that. */
static esdm__job *
next_job(const esdm__behind *b)
{
    esdm__job *job = b->first;
    while (job != NULL && job->lane->why != NULL)
        job = job->next;
    return job;
}

static void
run_one(esdm__behind *b, esdm__job *job)
{
    esdm_error error = {0};
    b->busy = job->lane;
    (void) pthread_mutex_unlock(&b->lock);
    error.status = job->run(job, &error);
    (void) pthread_mutex_lock(&b->lock);
    b->busy = NULL;
    if (error.status != ESDM_OK) {
        keep_why(job->lane, &error);
    } else {
        take_out(b, job);
        end(b, job);
    }
    (void) pthread_cond_broadcast(&b->changed);
}

static void *
worker(void *argument)
{
    ESDM_FLOAT_ENV_OWN;
    esdm__behind *b = argument;
    (void) pthread_mutex_lock(&b->lock);
    while (!b->stop) {
        esdm__job *job = next_job(b);
        if (job != NULL)
            run_one(b, job);
        else
            (void) pthread_cond_wait(&b->work, &b->lock);
    }
    (void) pthread_mutex_unlock(&b->lock);
    return NULL;
}

static void
start(esdm__behind *b)
{
    b->started = esdm__thread_start(&b->thread, NULL, worker, b);
}

/* ---- jobs --------------------------------------------------------------------------------- */

void
esdm__behind_free(esdm__behind *behind)
{
    if (behind == NULL)
        return;
    if (behind->owner != esdm__own_pid()) { /* the jobs are the parent's */
        free(behind);
        return;
    }
    if (behind->started) {
        (void) pthread_mutex_lock(&behind->lock);
        behind->stop = true;
        (void) pthread_cond_broadcast(&behind->work);
        (void) pthread_mutex_unlock(&behind->lock);
        (void) pthread_join(behind->thread, NULL);
    }
    while (behind->first != NULL) {
        esdm__job *job = behind->first;
        forget_why(job->lane);
        take_out(behind, job);
        end(behind, job);
    }
    (void) pthread_cond_destroy(&behind->work);
    (void) pthread_cond_destroy(&behind->changed);
    (void) pthread_mutex_destroy(&behind->lock);
    free(behind);
}

/* Everything that has failed may be tried once more. Whether something had. */
static bool
try_all_again(esdm__behind *b)
{
    bool any = false;
    for (const esdm__job *job = b->first; job != NULL; job = job->next) {
        any = any || job->lane->why != NULL;
        forget_why(job->lane);
    }
    if (any)
        (void) pthread_cond_signal(&b->work);
    return any;
}

/* Without a thread: what can be done is done here. */
static void
run_all(esdm__behind *b)
{
    esdm__job *job;
    while (!b->started && b->busy == NULL && (job = next_job(b)) != NULL)
        run_one(b, job);
}

/* With the lock held: for a job to end; without a thread it is done here. */
static void
wait_or_work(esdm__behind *b)
{
    if (!b->started && b->busy == NULL && next_job(b) != NULL)
        run_all(b);
    else
        (void) pthread_cond_wait(&b->changed, &b->lock);
}

static esdm_status
tell_why(const esdm_error *why, esdm_error *err)
{
    if (err != NULL)
        *err = *why;
    return why->status;
}

esdm_status
esdm__behind_enter(esdm__behind *behind, uint64_t bytes, esdm_error *err)
{
    esdm__behind *b = behind;
    bool again = false;
    esdm_status status = esdm__behind_check(b, err);
    if (status != ESDM_OK)
        return status;
    (void) pthread_mutex_lock(&b->lock);
    while (b->bytes + bytes > b->limit_bytes && status == ESDM_OK) {
        const bool stuck = b->first != NULL && b->busy == NULL && next_job(b) == NULL;
        if (stuck && !again)
            again = try_all_again(b);
        else if (stuck)
            status = esdm__error_prefix(err, tell_why(b->first->lane->why, err),
                                        "memory is full of data that cannot be stored");
        else
            wait_or_work(b);
    }
    if (status == ESDM_OK)
        b->bytes += bytes;
    (void) pthread_mutex_unlock(&b->lock);
    return status;
}

void
esdm__behind_leave(esdm__behind *behind, uint64_t bytes)
{
    (void) pthread_mutex_lock(&behind->lock);
    behind->bytes -= bytes;
    (void) pthread_cond_broadcast(&behind->changed);
    (void) pthread_mutex_unlock(&behind->lock);
}

void
esdm__behind_put(esdm__behind *behind, esdm__lane *lane, esdm__job *job)
{
    esdm__behind *b = behind;
    job->lane = lane;
    job->next = NULL;
    (void) pthread_mutex_lock(&b->lock);
    if (!b->started)
        start(b);
    if (b->last != NULL)
        b->last->next = job;
    else
        b->first = job;
    b->last = job;
    (void) atomic_fetch_add(&lane->count, 1);
    (void) atomic_fetch_add(&b->count, 1);
    (void) pthread_cond_signal(&b->work);
    run_all(b);
    (void) pthread_mutex_unlock(&b->lock);
}

/* With the lock held: until the lane's jobs are done, or one has failed. */
static void
wait_for(esdm__behind *b, const esdm__lane *lane)
{
    while (atomic_load(&lane->count) > 0 && lane->why == NULL)
        wait_or_work(b);
}

esdm_status
esdm__behind_settle(esdm__behind *behind, esdm__lane *lane, esdm_error *err)
{
    if (atomic_load(&lane->count) == 0)
        return ESDM_OK;
    esdm_status status = esdm__behind_check(behind, err);
    if (status != ESDM_OK)
        return status;
    (void) pthread_mutex_lock(&behind->lock);
    if (lane->why != NULL) {
        forget_why(lane);
        (void) pthread_cond_signal(&behind->work);
    }
    wait_for(behind, lane);
    if (lane->why != NULL)
        status = tell_why(lane->why, err);
    (void) pthread_mutex_unlock(&behind->lock);
    return status;
}

void
esdm__behind_wait(esdm__behind *behind, const esdm__lane *lane)
{
    if (atomic_load(&lane->count) == 0 || esdm__behind_check(behind, NULL) != ESDM_OK)
        return;
    (void) pthread_mutex_lock(&behind->lock);
    wait_for(behind, lane);
    (void) pthread_mutex_unlock(&behind->lock);
}

size_t
esdm__behind_drop(esdm__behind *behind, esdm__lane *lane, bool all,
                  void (*lost)(void *user, const esdm__job *job), void *user)
{
    esdm__behind *b = behind;
    size_t dropped = 0;
    if (atomic_load(&lane->count) == 0 || esdm__behind_check(b, NULL) != ESDM_OK)
        return 0;
    (void) pthread_mutex_lock(&b->lock);
    for (;;) {
        esdm__job *job = first_of(b, lane);
        if (job != NULL && b->busy == lane) {
            (void) pthread_cond_wait(&b->changed, &b->lock);
            continue;
        }
        if (job == NULL || (!all && (dropped > 0 || lane->why == NULL)))
            break;
        take_out(b, job);
        dropped++;
        forget_why(lane);
        if (lost != NULL)
            lost(user, job);
        end(b, job);
    }
    (void) pthread_cond_broadcast(&b->changed);
    (void) pthread_cond_signal(&b->work);
    (void) pthread_mutex_unlock(&b->lock);
    return dropped;
}
