/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Stores and fork(). A child must not use its parent's connections, and there is more to it:
 * SQLite keeps state of each open file per process. A child that opens the same file again would
 * find its parent's entry there and believe in locks that only the parent holds. So a child closes
 * what it inherited before it opens anything; and a fork waits a little until no thread is inside,
 * so that the child finds SQLite's own mutexes free.
 */

#include <pthread.h>
#include <unistd.h>

#include "base/sqlite_files.h"
#include "base/thread.h"
#include "store.h"

/* A thread that forks within a visitor holds a mutex itself: do not wait for ever. */
#define FORK_WAIT_NS 200000000

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER; /* guards open_stores; outermost */
static sqlite__store *open_stores;
static pid_t forking; /* process that is in fork(); under list_mutex */

/* ---- around fork() -------------------------------------------------------------------------- */

static bool
lock_until(pthread_mutex_t *mutex, const struct timespec *deadline)
{
    return pthread_mutex_timedlock(mutex, deadline) == 0;
}

static void
before_fork(void)
{
    (void) pthread_mutex_lock(&list_mutex);
    forking = getpid();
    const struct timespec deadline = esdm__deadline(CLOCK_REALTIME, FORK_WAIT_NS);
    for (sqlite__store *store = open_stores; store != NULL; store = store->next) {
        if (store->pid != forking)
            continue; /* inherited, and idle ever since */
        store->held[0] = lock_until(&store->write_mutex, &deadline);
        store->held[1] = lock_until(&store->read_mutex, &deadline);
        store->held[2] = lock_until(&store->second_mutex, &deadline);
    }
}

static void
release_all(bool in_child)
{
    for (sqlite__store *store = open_stores; store != NULL; store = store->next) {
        if (in_child && store->pid == forking &&
            !(store->held[0] && store->held[1] && store->held[2]))
            store->busy = true;
        if (store->held[2])
            (void) pthread_mutex_unlock(&store->second_mutex);
        if (store->held[1])
            (void) pthread_mutex_unlock(&store->read_mutex);
        if (store->held[0])
            (void) pthread_mutex_unlock(&store->write_mutex);
        store->held[0] = store->held[1] = store->held[2] = false;
    }
    (void) pthread_mutex_unlock(&list_mutex);
}

static void
after_fork_in_parent(void)
{
    release_all(false);
}

static void
after_fork_in_child(void)
{
    release_all(true);
}

/* What is registered first is locked last before a fork: the mutex of descriptors, which SQLite
 * takes in the middle of its calls, after those of the stores. */
static void
register_handlers(void)
{
    esdm__sqlite_high_descriptors();
    (void) pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* ---- list ----------------------------------------------------------------------------------- */

void
sqlite__enter_list(sqlite__store *store)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void) pthread_once(&once, register_handlers);
    (void) pthread_mutex_lock(&list_mutex);
    store->next = open_stores;
    open_stores = store;
    (void) pthread_mutex_unlock(&list_mutex);
}

void
sqlite__leave_list(sqlite__store *store)
{
    (void) pthread_mutex_lock(&list_mutex);
    for (sqlite__store **at = &open_stores; *at != NULL; at = &(*at)->next) {
        if (*at == store) {
            *at = store->next;
            break;
        }
    }
    (void) pthread_mutex_unlock(&list_mutex);
}

bool
sqlite__abandon(sqlite__store *store)
{
    if (store->busy)
        return false;
    sqlite__link_close(&store->reader);
    sqlite__link_close(&store->second);
    sqlite__link_close(&store->writer);
    return true;
}

void
sqlite__abandon_inherited(void)
{
    (void) pthread_mutex_lock(&list_mutex);
    for (sqlite__store *store = open_stores; store != NULL; store = store->next) {
        if (store->pid != getpid())
            (void) sqlite__abandon(store);
    }
    (void) pthread_mutex_unlock(&list_mutex);
}
