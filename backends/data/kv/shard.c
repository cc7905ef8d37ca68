/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Databases that this process has open.
 *
 * Kyoto Cabinet locks files by fcntl(): a lock belongs to the process, and closing any descriptor
 * of the file gives it up. So a process opens each database once, and its threads share it here.
 * A forked child has none of its parent's locks: it leaves their handles alone.
 *
 * Opening and closing a shard takes longer than storing a few bytes in it. So it stays open between
 * the transactions of a burst: until one of this process wants to read it, or IDLE_NS have passed
 * (the keeper, a thread that lives as long as there are such shards, sees to that), or it has been
 * open for HELD_NS. Then it is closed after each transaction for REST_NS, so that others get hold
 * of it, who try often (database.c).
 */

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/thread.h"
#include "kv.h"

#define MILLION UINT64_C(1000000)

/* Packs that follow each other within this time are a burst. */
#define BURST_NS UINT64_C(1000000)
#define IDLE_NS  UINT64_C(2000000)
#define HELD_NS  UINT64_C(6000000)
#define REST_NS  UINT64_C(2000000)

struct kv__handle {
    struct kv__handle *next;
    char *path;
    KCDB *db; /* NULL: being opened or closed */
    int fd;   /* of a writer, for space: closed after the database, for that gives up its lock */
    kv__mode mode;
    unsigned users;   /* 0: it is held open, or being closed */
    uint64_t held_ns; /* since when it is held open */
    uint64_t opened_ns;
    kv__target *target; /* of one that is, or was, held open */
    pid_t pid;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards the list and what is in it */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static kv__handle *handles;
static pid_t keeper; /* process whose keeper runs; 0: none */

KCDB *
kv__database(const kv__handle *handle)
{
    return handle->db;
}

int
kv__descriptor(const kv__handle *handle)
{
    return handle->fd;
}

/* ---- handles -------------------------------------------------------------------------------- */

static uint64_t
monotonic_ns(void)
{
    struct timespec now;
    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000 * MILLION + (uint64_t) now.tv_nsec;
}

static void
lock_for_fork(void)
{
    kv__lock_packs();
    (void) pthread_mutex_lock(&mutex);
}

static void
unlock_after_fork(void)
{
    (void) pthread_mutex_unlock(&mutex);
    kv__unlock_packs();
}

/* Who waits in the parent is not here: the condition would wait for it. */
static void
unlock_in_child(void)
{
    changed = (pthread_cond_t) PTHREAD_COND_INITIALIZER;
    unlock_after_fork();
}

static void
register_handlers(void)
{
    (void) pthread_atfork(lock_for_fork, unlock_after_fork, unlock_in_child);
}

void
kv__prepare_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void) pthread_once(&once, register_handlers);
}

/* Under the mutex; of this process. */
static kv__handle *
find_handle(const char *path)
{
    kv__handle *handle = handles;
    while (handle != NULL && (handle->pid != getpid() || strcmp(handle->path, path) != 0))
        handle = handle->next;
    return handle;
}

/* Under the mutex. */
static void
erase_handle(kv__handle *handle)
{
    for (kv__handle **at = &handles; *at != NULL; at = &(*at)->next) {
        if (*at == handle) {
            *at = handle->next;
            break;
        }
    }
    free(handle->path);
    free(handle);
    (void) pthread_cond_broadcast(&changed);
}

/* Under the mutex: nobody uses it, and it is open. */
static bool
is_held(const kv__handle *handle)
{
    return handle->users == 0 && handle->db != NULL;
}

/* Under the mutex, which is let go meanwhile: others wait until it is closed. The handle is gone.
 * Of one that is held, whose packs count as stored, a failure is told by `target` later. */
static esdm_status
close_handle(kv__handle *handle, esdm_error *err)
{
    KCDB *db = handle->db;
    esdm_status status = ESDM_OK;
    esdm_error why = {0};
    handle->db = NULL;
    (void) pthread_mutex_unlock(&mutex);
    if (!kv__finish(db) && handle->mode != KV__READ)
        status = esdm__error_set(&why, ESDM_EIO, "kv: cannot close '%.300s': %s", handle->path,
                                 kcdbemsg(db));
    kcdbdel(db);
    if (handle->fd >= 0)
        (void) esdm__descriptor_close(handle->fd);
    (void) pthread_mutex_lock(&mutex);
    if (status != ESDM_OK && err != NULL)
        *err = why;
    else if (status != ESDM_OK && handle->target != NULL)
        handle->target->failure = why;
    erase_handle(handle);
    return status;
}

/* Under the mutex: waits until the database is free, or can be shared, which gives its handle; so
 * does one that is held open, to a writer.
 * false: out of time. */
static bool
wait_for_turn(const char *path, kv__mode mode, uint64_t until_ns, kv__handle **ret_shared)
{
    struct timespec until = {.tv_sec = (time_t) (until_ns / 1000 / MILLION),
                             .tv_nsec = (long) (until_ns % (1000 * MILLION))};
    *ret_shared = NULL;
    for (;;) {
        kv__handle *handle = find_handle(path);
        if (handle == NULL)
            return true;
        if (is_held(handle) && mode == KV__READ) {
            (void) !close_handle(handle, NULL);
            continue;
        }
        if (is_held(handle)) {
            *ret_shared = handle;
            return true;
        }
        if (mode == KV__READ && handle->mode == KV__READ && handle->db != NULL) {
            *ret_shared = handle;
            return true;
        }
        if (pthread_cond_timedwait(&changed, &mutex, &until) == ETIMEDOUT &&
            find_handle(path) != NULL)
            return false;
    }
}

/* Under the mutex: takes the place, so that other threads wait. */
static kv__handle *
enter_handle(const char *path, kv__mode mode)
{
    kv__handle *handle = calloc(1, sizeof *handle);
    char *copy = strdup(path);
    if (handle == NULL || copy == NULL) {
        free(handle);
        free(copy);
        return NULL;
    }
    *handle = (kv__handle){
        .next = handles, .path = copy, .fd = -1, .mode = mode, .users = 1, .pid = getpid()};
    handles = handle;
    return handle;
}

esdm_status
kv__acquire(const kv__target *target, const char *file, kv__mode mode, unsigned wait_ms,
            kv__handle **ret_handle, esdm_error *err)
{
    char path[PATH_MAX];
    uint64_t until_ns = esdm__now_ns() + wait_ms * MILLION;
    kv__handle *shared = NULL;
    if (snprintf(path, sizeof path, "%s/%s", target->directory, file) >= (int) sizeof path)
        return esdm__error_set(err, ESDM_EINVAL, "kv: '%.200s' is too long", target->directory);
    (void) pthread_mutex_lock(&mutex);
    bool in_time = wait_for_turn(path, mode, until_ns, &shared);
    kv__handle *handle = in_time && shared == NULL ? enter_handle(path, mode) : NULL;
    if (shared != NULL)
        shared->users++;
    (void) pthread_mutex_unlock(&mutex);
    if (!in_time)
        return kv__locked_error(target, file, getpid(), wait_ms, err);
    if (shared != NULL) {
        *ret_handle = shared;
        return ESDM_OK;
    }
    if (handle == NULL)
        return esdm__error_nomem(err, sizeof *handle, "a database");
    KCDB *db = NULL;
    int fd = -1;
    esdm_status status =
        kv__open_database(target, file, path, mode, until_ns, wait_ms, &db, &fd, err);
    (void) pthread_mutex_lock(&mutex);
    handle->db = db;
    handle->fd = fd;
    handle->opened_ns = monotonic_ns();
    if (status != ESDM_OK)
        erase_handle(handle);
    else
        (void) pthread_cond_broadcast(&changed);
    (void) pthread_mutex_unlock(&mutex);
    if (status == ESDM_OK)
        *ret_handle = handle;
    return status;
}

esdm_status
kv__release(kv__handle *handle, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    if (handle == NULL || handle->pid != getpid())
        return ESDM_OK;
    (void) pthread_mutex_lock(&mutex);
    if (--handle->users == 0)
        status = close_handle(handle, err);
    (void) pthread_mutex_unlock(&mutex);
    return status;
}

/* ---- shards that are held open -------------------------------------------------------------- */

/* Under the mutex: one that is held since before that; NULL: none. `target` NULL: any. */
static kv__handle *
find_held(const kv__target *target, uint64_t before_ns)
{
    kv__handle *handle = handles;
    while (handle != NULL &&
           (handle->pid != getpid() || !is_held(handle) || handle->held_ns > before_ns ||
            (target != NULL && handle->target != target)))
        handle = handle->next;
    return handle;
}

static void *
keep(void *nothing)
{
    (void) nothing;
    (void) pthread_mutex_lock(&mutex);
    while (find_held(NULL, UINT64_MAX) != NULL) {
        kv__handle *expired = find_held(NULL, monotonic_ns() - IDLE_NS);
        if (expired != NULL) {
            (void) !close_handle(expired, NULL); /* its transactions have ended */
            continue;
        }
        (void) pthread_mutex_unlock(&mutex);
        kv__nap(IDLE_NS / 2);
        (void) pthread_mutex_lock(&mutex);
    }
    keeper = 0;
    (void) pthread_mutex_unlock(&mutex);
    return NULL;
}

/* Under the mutex. */
static bool
start_keeper(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    if (keeper == getpid())
        return true;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    (void) pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    bool good = esdm__thread_start(&thread, &attributes, keep, NULL);
    (void) pthread_attr_destroy(&attributes);
    keeper = good ? getpid() : 0;
    return good;
}

/* Under the mutex. */
static bool
shall_hold(kv__target *target, const kv__handle *handle, uint64_t now_ns)
{
    bool burst = now_ns - target->stored_ns < BURST_NS;
    target->stored_ns = now_ns;
    if (now_ns - handle->opened_ns > HELD_NS)
        target->rest_ns = now_ns + REST_NS;
    return burst && now_ns >= target->rest_ns && start_keeper();
}

esdm_status
kv__release_soon(kv__target *target, kv__handle *handle, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    if (handle == NULL || handle->pid != getpid())
        return ESDM_OK;
    uint64_t now_ns = monotonic_ns();
    (void) pthread_mutex_lock(&mutex);
    handle->users = 0;
    if (shall_hold(target, handle, now_ns)) {
        handle->held_ns = now_ns;
        handle->target = target;
        (void) pthread_cond_broadcast(&changed);
    } else {
        status = close_handle(handle, err);
    }
    (void) pthread_mutex_unlock(&mutex);
    return status;
}

/* Under the mutex: whether one that was held for the target is not closed yet. */
static bool
is_holder(const kv__target *target)
{
    const kv__handle *handle = handles;
    while (handle != NULL && (handle->pid != getpid() || handle->target != target))
        handle = handle->next;
    return handle != NULL;
}

void
kv__release_all(const kv__target *target)
{
    (void) pthread_mutex_lock(&mutex);
    while (is_holder(target)) {
        kv__handle *held = find_held(target, UINT64_MAX);
        if (held != NULL)
            (void) !close_handle(held, NULL);
        else
            (void) pthread_cond_wait(&changed, &mutex);
    }
    (void) pthread_mutex_unlock(&mutex);
}

esdm_status
kv__held_failure(kv__target *target, esdm_error *err)
{
    (void) pthread_mutex_lock(&mutex);
    esdm_status status = target->failure.status;
    if (status != ESDM_OK && err != NULL)
        *err = target->failure;
    target->failure = (esdm_error){0};
    (void) pthread_mutex_unlock(&mutex);
    return status;
}
