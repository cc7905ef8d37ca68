/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/session/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/cores.h"
#include "base/own_process.h"
#include "base/thread.h"
#include "esdm/float_env.h"
#include "monitor/monitor.h"

/* Others are woken for short tasks when those that are left take longer than this: some 0.1 ms go
 * into waking one, and its memory is then another part of the heap, whose every growth is a system
 * call that stops the caller, too. */
#define WAKE_NS UINT64_C(500000)
/* The first tasks find caches cold, so the shortest of so many counts. */
#define TASKS_TIMED 3u

/* One esdm__pool_run() call. Lives on its caller's stack; linked into the pool while it has tasks
 * left to hand out. All fields but the constant ones are guarded by the pool's lock. */
typedef struct job {
    esdm__task_fn task; /* constant */
    void *context;      /* constant */
    size_t count;       /* constant */
    uint64_t cause;     /* constant: span of the caller */
    size_t next;        /* first task not handed out */
    size_t running;
    size_t failed_at;
    esdm_status status;
    esdm_error error;
    pthread_cond_t done;
    struct job *link;
} job;

/* One thread of the pool. Its own but the constants, which it is given before it begins. */
typedef struct member {
    pthread_t thread;
    esdm__pool *pool;
    bool moved;       /* it begins away from its maker's core, and may then use these */
    cpu_set_t usable; /* as its maker does */
} member;

struct esdm__pool {
    pthread_mutex_t lock; /* guards what changes below, and in jobs; a leaf lock */
    pthread_cond_t work;
    pthread_cond_t resume;
    job *jobs;
    member *threads;
    unsigned nthreads; /* pool threads that may work at once, the callers not counted */
    unsigned most;     /* that may be there at all */
    unsigned started;
    unsigned idle;
    unsigned working;   /* of the pool threads; neither idle nor waiting */
    unsigned lent;      /* callers that wait: a pool thread may work in the place of each */
    unsigned returning; /* pool threads that have waited and may not work yet */
    bool stop;
    pid_t owner; /* a forked child has no threads, and may have copied a held lock */
};

/* The task that this thread runs. */
static _Thread_local struct here {
    const esdm__pool *pool;
    bool is_caller;
    unsigned waits; /* begun and not ended */
} here;

esdm__pool *
esdm__pool_new(unsigned threads, unsigned waiting)
{
    esdm__pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return NULL;
    pool->owner = esdm__own_pid();
    pool->nthreads = threads > 0 ? threads - 1 : 0;
    pool->most = pool->nthreads + waiting;
    pool->threads = calloc(pool->most + 1u, sizeof *pool->threads);
    if (pool->threads == NULL) {
        free(pool);
        return NULL;
    }
    (void) pthread_mutex_init(&pool->lock, NULL);
    (void) pthread_cond_init(&pool->work, NULL);
    (void) pthread_cond_init(&pool->resume, NULL);
    return pool;
}

void
esdm__pool_free(esdm__pool *pool)
{
    if (pool == NULL)
        return;
    if (pool->owner != esdm__own_pid()) {
        free(pool->threads);
        free(pool);
        return;
    }
    (void) pthread_mutex_lock(&pool->lock);
    pool->stop = true;
    (void) pthread_cond_broadcast(&pool->work);
    (void) pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i < pool->started; i++)
        (void) pthread_join(pool->threads[i].thread, NULL);
    (void) pthread_cond_destroy(&pool->work);
    (void) pthread_cond_destroy(&pool->resume);
    (void) pthread_mutex_destroy(&pool->lock);
    free(pool->threads);
    free(pool);
}

unsigned
esdm__pool_threads(const esdm__pool *pool)
{
    return pool->nthreads + 1;
}

static void
unlink_job(esdm__pool *pool, const job *done)
{
    for (job **at = &pool->jobs; *at != NULL; at = &(*at)->link) {
        if (*at == done) {
            *at = done->link;
            return;
        }
    }
}

/* Takes and runs one task of `j`. Called and returns with the lock held. */
static void
run_one(esdm__pool *pool, job *j, bool is_caller)
{
    const struct here before = here;
    size_t i = j->next++;
    j->running++;
    if (j->next == j->count)
        unlink_job(pool, j);
    (void) pthread_mutex_unlock(&pool->lock);

    esdm_error error = {0};
    here = (struct here){.pool = pool, .is_caller = is_caller};
    uint64_t cause = esdm__span_adopt(j->cause);
    esdm_status status = j->task(j->context, i, &error);
    (void) esdm__span_adopt(cause);
    here = before;

    (void) pthread_mutex_lock(&pool->lock);
    if (status != ESDM_OK && (j->status == ESDM_OK || i < j->failed_at)) {
        j->status = status;
        j->error = error;
        j->failed_at = i;
    }
    if (status != ESDM_OK && j->next < j->count) { /* start nothing more */
        j->next = j->count;
        unlink_job(pool, j);
    }
    if (--j->running == 0 && j->next == j->count)
        (void) pthread_cond_signal(&j->done);
}

/* With the lock held: whether one thread more may work. */
static bool
has_room(const esdm__pool *pool)
{
    return pool->working < pool->nthreads + pool->lent;
}

/* With the lock held: somebody takes the place that became free; who has waited comes first. */
static void
pass_on(esdm__pool *pool)
{
    if (pool->returning > 0)
        (void) pthread_cond_signal(&pool->resume);
    else if (pool->jobs != NULL)
        (void) pthread_cond_signal(&pool->work);
}

static void *
worker(void *argument)
{
    ESDM_FLOAT_ENV_OWN; /* not that of the program's thread, which starts it */
    const member *self = argument;
    esdm__pool *pool = self->pool;
    if (self->moved)
        (void) sched_setaffinity(0, sizeof self->usable, &self->usable);
    (void) pthread_mutex_lock(&pool->lock);
    while (!pool->stop) {
        if (pool->jobs != NULL && pool->returning == 0 && has_room(pool)) {
            pool->working++;
            run_one(pool, pool->jobs, false);
            pool->working--;
            pass_on(pool);
        } else {
            pool->idle++;
            (void) pthread_cond_wait(&pool->work, &pool->lock);
            pool->idle--;
        }
    }
    (void) pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* Begins a thread on another core than the caller's, who goes on. Where all others are taken (also
 * by threads that wait by turning, as those of OpenBLAS and OpenMP do for a while) the kernel would
 * put it behind the caller, and it would run when the work is done. */
static bool
start_away(member *m)
{
    bool runs = false;
#ifdef __GLIBC__
    pthread_attr_t attributes;
    cpu_set_t others;
    if (!esdm__other_cores(&m->usable, &others) || pthread_attr_init(&attributes) != 0)
        return false;
    m->moved = true;
    runs = pthread_attr_setaffinity_np(&attributes, sizeof others, &others) == 0 &&
           esdm__thread_start(&m->thread, &attributes, worker, m);
    if (!runs)
        m->moved = false;
    (void) pthread_attr_destroy(&attributes);
#else
    (void) m;
#endif
    return runs;
}

/* With the lock held. A thread that cannot start is no error: the caller does the work. */
static void
start_threads(esdm__pool *pool, unsigned count)
{
    while (pool->started < count) {
        member *m = &pool->threads[pool->started];
        m->pool = pool;
        if (!start_away(m) && !esdm__thread_start(&m->thread, NULL, worker, m))
            return;
        pool->started++;
    }
}

static esdm_status
run_alone(size_t count, esdm__task_fn task, void *context, esdm_error *err)
{
    for (size_t i = 0; i < count; i++) {
        esdm_status status = task(context, i, err);
        if (status != ESDM_OK)
            return status;
    }
    return ESDM_OK;
}

/* From task `first` on. */
static esdm_status
run_together(esdm__pool *pool, size_t first, size_t count, esdm__task_fn task, void *context,
             esdm_error *err)
{
    job j = {.task = task,
             .context = context,
             .count = count,
             .next = first,
             .cause = esdm__span_current(),
             .failed_at = SIZE_MAX};
    (void) pthread_cond_init(&j.done, NULL);
    (void) pthread_mutex_lock(&pool->lock);
    if (pool->started < pool->nthreads)
        start_threads(pool, pool->nthreads);
    j.link = pool->jobs;
    pool->jobs = &j;
    (void) pthread_cond_broadcast(&pool->work);
    while (j.next < j.count)
        run_one(pool, &j, true);
    pool->lent++;
    pass_on(pool);
    while (j.running > 0)
        (void) pthread_cond_wait(&j.done, &pool->lock);
    pool->lent--;
    (void) pthread_mutex_unlock(&pool->lock);
    (void) pthread_cond_destroy(&j.done);

    if (j.status != ESDM_OK && err != NULL)
        *err = j.error;
    return j.status;
}

/* Whether tasks have others to be run by. */
static bool
has_others(const esdm__pool *pool)
{
    return pool->most > 0 && pool->owner == esdm__own_pid();
}

esdm_status
esdm__pool_run(esdm__pool *pool, size_t count, esdm__task_fn task, void *context, esdm_error *err)
{
    if (count <= 1 || !has_others(pool))
        return run_alone(count, task, context, err);
    return run_together(pool, 0, count, task, context, err);
}

static uint64_t
monotonic_ns(void)
{
    struct timespec now;
    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

/* Whether `left` tasks are worth the others, after `done` in all of `took_ns`. */
static bool
is_long(uint64_t took_ns, uint64_t shortest_ns, size_t done, size_t left)
{
    return shortest_ns * left > WAKE_NS ||
           (took_ns > WAKE_NS && took_ns / done * left > WAKE_NS / 2);
}

esdm_status
esdm__pool_run_short(esdm__pool *pool, size_t count, esdm__task_fn task, void *context,
                     esdm_error *err)
{
    if (count <= 1 || !has_others(pool))
        return run_alone(count, task, context, err);
    uint64_t began = monotonic_ns(), before = began, shortest = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        if (i >= TASKS_TIMED && count - i > 1 && is_long(before - began, shortest, i, count - i))
            return run_together(pool, i, count, task, context, err);
        esdm_status status = task(context, i, err);
        if (status != ESDM_OK)
            return status;
        uint64_t now = monotonic_ns();
        shortest = now - before < shortest ? now - before : shortest;
        before = now;
    }
    return ESDM_OK;
}

/* ---- waiting ------------------------------------------------------------------------------ */

bool
esdm__pool_may_wait(const esdm__pool *pool)
{
    return pool->most > pool->nthreads;
}

void
esdm__pool_wait_begin(esdm__pool *pool)
{
    if (here.pool != pool || here.waits++ > 0)
        return;
    (void) pthread_mutex_lock(&pool->lock);
    if (here.is_caller)
        pool->lent++;
    else
        pool->working--;
    if (pool->jobs != NULL && pool->idle == 0 && pool->returning == 0 && pool->started < pool->most)
        start_threads(pool, pool->started + 1);
    pass_on(pool);
    (void) pthread_mutex_unlock(&pool->lock);
}

void
esdm__pool_wait_end(esdm__pool *pool)
{
    if (here.pool != pool || --here.waits > 0)
        return;
    (void) pthread_mutex_lock(&pool->lock);
    if (here.is_caller) {
        pool->lent--; /* for a moment there may be one thread too many */
    } else {
        pool->returning++;
        while (!has_room(pool))
            (void) pthread_cond_wait(&pool->resume, &pool->lock);
        pool->returning--;
        pool->working++;
        if (has_room(pool))
            pass_on(pool);
    }
    (void) pthread_mutex_unlock(&pool->lock);
}
