/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Mutexes of the SQLite in libesdm: as its own, but who finds one taken tries again for a moment
 * before it sleeps. Threads that read meet at the mutex of the log's shared memory, which each
 * statement holds twice, for a system call of half a microsecond; to sleep and to be woken up costs
 * ten times as much.
 */

#include "mutexes.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/short_mutex.h"

struct sqlite3_mutex {
    pthread_mutex_t mutex;
};

#define STATIC_FIRST SQLITE_MUTEX_STATIC_MAIN
#define STATIC_LAST  SQLITE_MUTEX_STATIC_VFS3

static sqlite3_mutex of_all[STATIC_LAST - STATIC_FIRST + 1];

static void
make_static(void)
{
    for (size_t i = 0; i < sizeof of_all / sizeof *of_all; i++)
        esdm__mutex_init_short(&of_all[i].mutex);
}

/* SQLite may be ended and begin anew: they stay. */
static int
begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    return pthread_once(&once, make_static) == 0 ? SQLITE_OK : SQLITE_ERROR;
}

static int
end(void)
{
    return SQLITE_OK;
}

static void
make_recursive(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;
    (void) pthread_mutexattr_init(&attributes);
    (void) pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    (void) pthread_mutex_init(mutex, &attributes);
    (void) pthread_mutexattr_destroy(&attributes);
}

static sqlite3_mutex *
make(int kind)
{
    if (kind >= STATIC_FIRST)
        return kind <= STATIC_LAST ? &of_all[kind - STATIC_FIRST] : NULL;
    sqlite3_mutex *made = malloc(sizeof *made);
    if (made == NULL)
        return NULL;
    if (kind == SQLITE_MUTEX_RECURSIVE)
        make_recursive(&made->mutex);
    else
        esdm__mutex_init_short(&made->mutex);
    return made;
}

static void
drop(sqlite3_mutex *mutex)
{
    (void) pthread_mutex_destroy(&mutex->mutex);
    free(mutex);
}

static void
enter(sqlite3_mutex *mutex)
{
    (void) pthread_mutex_lock(&mutex->mutex);
}

static int
try_to_enter(sqlite3_mutex *mutex)
{
    return pthread_mutex_trylock(&mutex->mutex) == 0 ? SQLITE_OK : SQLITE_BUSY;
}

static void
leave(sqlite3_mutex *mutex)
{
    (void) pthread_mutex_unlock(&mutex->mutex);
}

void
sqlite__mutexes_install(void)
{
    static const sqlite3_mutex_methods methods = {.xMutexInit = begin,
                                                  .xMutexEnd = end,
                                                  .xMutexAlloc = make,
                                                  .xMutexFree = drop,
                                                  .xMutexEnter = enter,
                                                  .xMutexTry = try_to_enter,
                                                  .xMutexLeave = leave};
    (void) sqlite3_config(SQLITE_CONFIG_MUTEX, &methods);
}
