/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/session/ahead.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/own_process.h"
#include "base/thread.h"
#include "esdm/float_env.h"
#include "io/session/cache.h"

/* They only wait. */
#define STACK_BYTES ((size_t) 1 << 20)
/* What is under way when the program ends is waited for, but not for ever. */
#define END_WAIT_S 10

typedef enum state { QUEUED, READING, READY, FAILED } state;

typedef struct entry {
    struct entry *next;
    esdm__cache_key key; /* of target and pack */
    esdm__target *target;
    char *pack; /* owned */
    uint64_t position;
    uint64_t bytes;
    uint8_t *data; /* owned; from READING on */
    const void *owner;
    uint64_t turn;
    unsigned takers;              /* that wait for it or copy from it */
    esdm__ahead_account *account; /* borrowed; NULL: nobody counts */
    uint64_t took_ns;             /* the request; with an account */
    bool used;
    state state;
    bool dropped; /* whoever has it last frees it */
} entry;

struct esdm__ahead {
    pthread_mutex_t
        lock; /* guards all below, but for data of entries that are READY; a leaf lock */
    pthread_cond_t work;
    pthread_cond_t arrived;
    entry *first; /* in the order in which they were asked for */
    entry *last;
    uint64_t used_bytes; /* of all entries */
    size_t queued;
    size_t reading;
    pthread_t *threads;
    unsigned nthreads;
    unsigned started;
    unsigned idle;
    bool stop;
    atomic_uint entries; /* changed under the lock; most sessions never have one */
    /* constant */
    uint64_t limit_bytes;
    esdm__ahead_read read;
    void *user;
    pid_t owner;       /* a forked child has no threads, and may have copied a held lock */
    esdm__ahead *next; /* of all; guarded by `all_lock` */
};

/* ---- the end of the program ---------------------------------------------------------------- */

/* Taken before the lock of one. */
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static esdm__ahead *all; /* of this process */
static pthread_once_t prepare_once = PTHREAD_ONCE_INIT;

/* With the lock held, which is given back meanwhile. */
static void
wait_for_readers(esdm__ahead *ahead, const struct timespec *until)
{
    int rc = 0;
    while (ahead->reading > 0 && rc == 0)
        rc = pthread_cond_timedwait(&ahead->arrived, &ahead->lock, until);
}

/* A program may end with a session open. Libraries that requests need go next: none is begun any
 * more, and none is under way. */
static void
end_all(void)
{
    struct timespec until;
    (void) clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += END_WAIT_S;
    if (pthread_mutex_timedlock(&all_lock, &until) != 0)
        return; /* exit() was called above the lock's holder */
    for (esdm__ahead *a = all; a != NULL; a = a->next) {
        if (a->owner != esdm__own_pid() || pthread_mutex_timedlock(&a->lock, &until) != 0)
            continue;
        a->stop = true;
        wait_for_readers(a, &until);
        (void) pthread_mutex_unlock(&a->lock);
    }
    (void) pthread_mutex_unlock(&all_lock);
}

/* Another thread of the parent may have had the lock, and the list half changed: the child has no
 * such thread, and no request that is under way. */
static void
after_fork_in_child(void)
{
    (void) pthread_mutex_init(&all_lock, NULL);
    all = NULL;
}

static void
prepare(void)
{
    (void) atexit(end_all);
    (void) pthread_atfork(NULL, NULL, after_fork_in_child);
}

static void
enter(esdm__ahead *ahead)
{
    (void) pthread_once(&prepare_once, prepare);
    (void) pthread_mutex_lock(&all_lock);
    ahead->next = all;
    all = ahead;
    (void) pthread_mutex_unlock(&all_lock);
}

static void
leave(const esdm__ahead *ahead)
{
    esdm__ahead **at = &all;
    (void) pthread_mutex_lock(&all_lock);
    while (*at != ahead)
        at = &(*at)->next;
    *at = ahead->next;
    (void) pthread_mutex_unlock(&all_lock);
}

/* ---- life ---------------------------------------------------------------------------------- */

esdm__ahead *
esdm__ahead_new(unsigned threads, uint64_t limit_bytes, esdm__ahead_read read, void *user)
{
    esdm__ahead *ahead = calloc(1, sizeof *ahead);
    if (ahead == NULL)
        return NULL;
    ahead->threads = calloc(threads + 1u, sizeof *ahead->threads);
    if (ahead->threads == NULL) {
        free(ahead);
        return NULL;
    }
    ahead->nthreads = threads;
    ahead->limit_bytes = limit_bytes;
    ahead->read = read;
    ahead->user = user;
    ahead->owner = esdm__own_pid();
    (void) pthread_mutex_init(&ahead->lock, NULL);
    (void) pthread_cond_init(&ahead->work, NULL);
    (void) pthread_cond_init(&ahead->arrived, NULL);
    enter(ahead);
    return ahead;
}

/* ---- entries; with the lock held ----------------------------------------------------------- */

static void
free_entry(entry *e)
{
    free(e->pack);
    free(e->data);
    free(e);
}

/* Takes it out of the list. */
static void
forget(esdm__ahead *ahead, entry *e, entry *before)
{
    *(before != NULL ? &before->next : &ahead->first) = e->next;
    if (ahead->last == e)
        ahead->last = before;
    ahead->used_bytes -= e->bytes;
    atomic_fetch_sub(&ahead->entries, 1u);
    ahead->queued -= e->state == QUEUED;
    free_entry(e);
}

/* What is dropped goes as soon as nobody has it. */
static void
sweep(esdm__ahead *ahead)
{
    entry *before = NULL;
    for (entry *e = ahead->first, *next; e != NULL; e = next) {
        next = e->next;
        if (e->dropped && e->takers == 0 && e->state != READING)
            forget(ahead, e, before);
        else
            before = e;
    }
}

static bool
holds(const entry *e, uint64_t position, uint64_t bytes)
{
    return position >= e->position && bytes <= e->bytes &&
           position - e->position <= e->bytes - bytes;
}

static entry *
find(const esdm__ahead *ahead, const esdm__cache_key *key, uint64_t position, uint64_t bytes)
{
    for (entry *e = ahead->first; e != NULL; e = e->next) {
        if (e->key.low == key->low && e->key.high == key->high && !e->dropped &&
            e->state != FAILED && holds(e, position, bytes))
            return e;
    }
    return NULL;
}

/* ---- what it was good for ------------------------------------------------------------------ */

static uint64_t
now_ns(void)
{
    struct timespec t;
    (void) clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

/* Asked for, or (`more` false) the one who wants it does it. */
static void
count_request(const entry *e, bool more)
{
    if (e->account == NULL)
        return;
    atomic_fetch_add(&e->account->requests, more ? UINT64_C(1) : UINT64_MAX);
    atomic_fetch_add(&e->account->bytes, more ? e->bytes : 0 - e->bytes);
}

/* The first who took it waited so long. */
static void
count_use(entry *e, uint64_t waited_ns)
{
    if (e->account == NULL || e->used)
        return;
    e->used = true;
    atomic_fetch_add(&e->account->used, 1u);
    if (waited_ns < e->took_ns)
        atomic_fetch_add(&e->account->gained_ns, e->took_ns - waited_ns);
}

/* ---- threads ------------------------------------------------------------------------------- */

/* Called and returns with the lock held. */
static void
read_entry(esdm__ahead *ahead, entry *e)
{
    e->state = READING;
    ahead->queued--;
    ahead->reading++;
    (void) pthread_mutex_unlock(&ahead->lock);
    uint8_t *data = malloc((size_t) e->bytes);
    esdm_range range = {e->position, e->bytes, data};
    uint64_t began = e->account != NULL ? now_ns() : 0;
    bool good =
        data != NULL && ahead->read(ahead->user, e->target, e->pack, &range, NULL) == ESDM_OK;
    uint64_t took = e->account != NULL ? now_ns() - began : 0;
    (void) pthread_mutex_lock(&ahead->lock);
    e->took_ns = took;
    e->data = data;
    e->state = good ? READY : FAILED;
    ahead->reading--;
    e->dropped = e->dropped || !good;
    (void) pthread_cond_broadcast(&ahead->arrived);
    if (e->dropped)
        sweep(ahead);
}

static void *
worker(void *argument)
{
    ESDM_FLOAT_ENV_OWN; /* not that of the program's thread, which starts it */
    esdm__ahead *ahead = argument;
    (void) pthread_mutex_lock(&ahead->lock);
    while (!ahead->stop) {
        entry *e = ahead->queued > 0 ? ahead->first : NULL;
        while (e != NULL && e->state != QUEUED)
            e = e->next;
        if (e != NULL) {
            read_entry(ahead, e);
            continue;
        }
        ahead->idle++;
        (void) pthread_cond_wait(&ahead->work, &ahead->lock);
        ahead->idle--;
    }
    (void) pthread_mutex_unlock(&ahead->lock);
    return NULL;
}

/* With the lock held: so that somebody begins with what is queued. @return whether anybody is
 * there to do it. */
static bool
wake(esdm__ahead *ahead)
{
    if (ahead->idle < ahead->queued && ahead->started < ahead->nthreads) {
        pthread_attr_t attributes;
        (void) pthread_attr_init(&attributes);
        (void) pthread_attr_setstacksize(&attributes, STACK_BYTES);
        if (esdm__thread_start(&ahead->threads[ahead->started], &attributes, worker, ahead))
            ahead->started++;
        (void) pthread_attr_destroy(&attributes);
    }
    (void) pthread_cond_signal(&ahead->work);
    return ahead->started > 0;
}

void
esdm__ahead_free(esdm__ahead *ahead)
{
    if (ahead == NULL ||
        ahead->owner != esdm__own_pid()) /* a child's copy stays: locks may be held */
        return;
    leave(ahead);
    (void) pthread_mutex_lock(&ahead->lock);
    ahead->stop = true;
    (void) pthread_cond_broadcast(&ahead->work);
    (void) pthread_mutex_unlock(&ahead->lock);
    for (unsigned i = 0; i < ahead->started; i++)
        (void) pthread_join(ahead->threads[i], NULL);
    (void) pthread_cond_destroy(&ahead->arrived);
    (void) pthread_cond_destroy(&ahead->work);
    (void) pthread_mutex_destroy(&ahead->lock);
    for (entry *e = ahead->first, *next; e != NULL; e = next) {
        next = e->next;
        free_entry(e);
    }
    free(ahead->threads);
    free(ahead);
}

/* ---- callers ------------------------------------------------------------------------------- */

static entry *
new_entry(const esdm__ahead_want *want, const esdm__cache_key *key)
{
    entry *e = calloc(1, sizeof *e);
    char *pack = strdup(want->pack);
    if (e == NULL || pack == NULL) {
        free(e);
        free(pack);
        return NULL;
    }
    *e = (entry){.key = *key,
                 .target = want->target,
                 .pack = pack,
                 .position = want->position,
                 .bytes = want->bytes,
                 .owner = want->owner,
                 .turn = want->turn,
                 .account = want->account};
    return e;
}

/* With the lock held. */
static bool
add(esdm__ahead *ahead, const esdm__ahead_want *want, const esdm__cache_key *key)
{
    if (want->bytes == 0 || ahead->stop || ahead->used_bytes > ahead->limit_bytes ||
        want->bytes > ahead->limit_bytes - ahead->used_bytes)
        return false;
    entry *e = new_entry(want, key);
    if (e == NULL)
        return false;
    *(ahead->last != NULL ? &ahead->last->next : &ahead->first) = e;
    ahead->last = e;
    ahead->used_bytes += e->bytes;
    atomic_fetch_add(&ahead->entries, 1u);
    ahead->queued++;
    count_request(e, true);
    if (wake(ahead))
        return true;
    e->dropped = true; /* the system starts no threads */
    sweep(ahead);
    return false;
}

uint64_t
esdm__ahead_limit(const esdm__ahead *ahead)
{
    return ahead->limit_bytes;
}

bool
esdm__ahead_is_empty(const esdm__ahead *ahead)
{
    return ahead == NULL || atomic_load(&ahead->entries) == 0;
}

bool
esdm__ahead_ask(esdm__ahead *ahead, const esdm__ahead_want *want)
{
    if (ahead == NULL || ahead->nthreads == 0 || ahead->owner != esdm__own_pid())
        return false;
    esdm__cache_key key = esdm__cache_key_of(want->target->name, want->pack, 0);
    (void) pthread_mutex_lock(&ahead->lock);
    entry *e = find(ahead, &key, want->position, want->bytes);
    bool there = e != NULL;
    if (there && e->owner == want->owner && e->turn < want->turn)
        e->turn = want->turn;
    if (!there)
        there = add(ahead, want, &key);
    (void) pthread_mutex_unlock(&ahead->lock);
    return there;
}

bool
esdm__ahead_take(esdm__ahead *ahead, const esdm__target *target, const char *pack,
                 const esdm_range *range)
{
    if (esdm__ahead_is_empty(ahead) || ahead->owner != esdm__own_pid())
        return false;
    esdm__cache_key key = esdm__cache_key_of(target->name, pack, 0);
    (void) pthread_mutex_lock(&ahead->lock);
    entry *e = find(ahead, &key, range->position, range->bytes);
    if (e != NULL && e->state == QUEUED) {
        count_request(e, false);
        e->dropped = true;
        sweep(ahead);
        e = NULL;
    }
    if (e == NULL) {
        (void) pthread_mutex_unlock(&ahead->lock);
        return false;
    }
    e->takers++;
    uint64_t since = e->state == READING && e->account != NULL ? now_ns() : 0;
    while (e->state == READING)
        (void) pthread_cond_wait(&ahead->arrived, &ahead->lock);
    bool good = e->state == READY;
    if (good)
        count_use(e, since > 0 ? now_ns() - since : 0);
    (void) pthread_mutex_unlock(&ahead->lock);
    if (good)
        memcpy(range->buffer, e->data + (range->position - e->position), (size_t) range->bytes);
    (void) pthread_mutex_lock(&ahead->lock);
    e->takers--;
    if (e->dropped)
        sweep(ahead);
    (void) pthread_mutex_unlock(&ahead->lock);
    return good;
}

bool
esdm__ahead_forget(esdm__ahead *ahead, const esdm__target *target, const char *pack)
{
    bool any = false;
    if (esdm__ahead_is_empty(ahead) || ahead->owner != esdm__own_pid())
        return false;
    esdm__cache_key key = esdm__cache_key_of(target->name, pack, 0);
    (void) pthread_mutex_lock(&ahead->lock);
    for (entry *e = ahead->first; e != NULL; e = e->next) {
        if (e->key.low == key.low && e->key.high == key.high && !e->dropped) {
            any |= e->state != QUEUED;
            e->dropped = true;
        }
    }
    sweep(ahead);
    (void) pthread_mutex_unlock(&ahead->lock);
    return any;
}

void
esdm__ahead_drop(esdm__ahead *ahead, const void *owner, uint64_t from, uint64_t before)
{
    if (esdm__ahead_is_empty(ahead) || ahead->owner != esdm__own_pid())
        return;
    (void) pthread_mutex_lock(&ahead->lock);
    for (entry *e = ahead->first; e != NULL; e = e->next) {
        if (e->owner == owner && e->turn >= from && e->turn < before)
            e->dropped = true;
    }
    sweep(ahead);
    (void) pthread_mutex_unlock(&ahead->lock);
}
