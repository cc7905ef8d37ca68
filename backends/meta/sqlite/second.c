/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * A second connection for reading. Threads that open containers ask one after the other otherwise:
 * a connection serves one thread at a time, and most of an opening is what is asked. It is opened
 * when the first one was in use some times; programs whose threads take turns never have it. What
 * lists and queries keep (names that are free, facets, what waits for the index) is of the first
 * one, which they use alone.
 */

#include <stdatomic.h>

#include "base/own_process.h"
#include "store.h"

/* So often a thread has waited for the first connection before there is a second one. */
#define WAITS 16

/* Threads keep to the same connection, which has what they read last. */
static bool
prefers_second(void)
{
    static atomic_uint threads;
    static _Thread_local unsigned number; /* 0: none yet */
    if (number == 0)
        number = atomic_fetch_add(&threads, 1) + 1;
    return number % 2 == 0;
}

/* The file of a connection; false: it is not there any more under the name by which it was opened.
 */
static bool
find_file(const sqlite__link *link, const char *name, dev_t *ret_device, ino_t *ret_inode)
{
    struct stat found;
    int moved = 1;
    if (stat(name, &found) != 0 ||
        sqlite3_file_control(link->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) != SQLITE_OK ||
        moved != 0)
        return false;
    *ret_device = found.st_dev;
    *ret_inode = found.st_ino;
    return true;
}

void
sqlite__second_allow(sqlite__store *store)
{
    if (find_file(&store->reader, store->file, &store->device, &store->inode))
        atomic_store(&store->second_is, SQLITE__SECOND_LATER);
}

/* A store that was made anew, or put back from a backup, is another one: who has it open goes on
 * with what was there. */
static bool
is_same_file(const sqlite__store *store)
{
    dev_t device = 0;
    ino_t inode = 0;
    return find_file(&store->second, store->file, &device, &inode) && device == store->device &&
           inode == store->inode;
}

/* Under second_mutex. */
static bool
open_second(sqlite__store *store)
{
    sqlite__link *link = &store->second;
    bool writes = false;
    bool good =
        sqlite__link_open(link, store->file, store->file, store->open_flags, NULL) == ESDM_OK &&
        sqlite__schema_check(link, NULL) == ESDM_OK && is_same_file(store) &&
        sqlite__check_state(link, store->migrating, &writes, NULL) == ESDM_OK &&
        sqlite__schema_adapt(link, NULL) == ESDM_OK;
    link->shares_log = good;
    if (!good) { /* moved elsewhere meanwhile, say: the first one goes on */
        sqlite__link_close(link);
        atomic_store(&store->second_is, SQLITE__SECOND_NEVER);
        return false;
    }
    atomic_store(&store->second_is, SQLITE__SECOND_THERE);
    return true;
}

static bool
take_second(sqlite__store *store)
{
    int is = atomic_load(&store->second_is);
    if (is == SQLITE__SECOND_NEVER ||
        (is == SQLITE__SECOND_LATER && atomic_fetch_add(&store->waits, 1) < WAITS) ||
        pthread_mutex_trylock(&store->second_mutex) != 0)
        return false;
    store->second.waited_ns = 0;
    if (store->second.db != NULL || open_second(store))
        return true;
    (void) pthread_mutex_unlock(&store->second_mutex);
    return false;
}

esdm_status
sqlite__begin_opening(sqlite__store *store, sqlite__link **ret_link, esdm_error *err)
{
    int is = atomic_load(&store->second_is);
    *ret_link = &store->reader;
    if (is == SQLITE__SECOND_NEVER || store->pid != esdm__own_pid() || sqlite__holds(store))
        return sqlite__begin_read(store, err);
    bool taken = is == SQLITE__SECOND_THERE && prefers_second() && take_second(store);
    if (!taken && pthread_mutex_trylock(&store->read_mutex) == 0) {
        store->reader.waited_ns = 0;
        return ESDM_OK;
    }
    if (!taken && !take_second(store))
        return sqlite__begin_read(store, err);
    *ret_link = &store->second;
    return ESDM_OK;
}

void
sqlite__end_opening(sqlite__store *store, const sqlite__link *link)
{
    if (link == &store->second)
        (void) pthread_mutex_unlock(&store->second_mutex);
    else
        sqlite__end_read(store);
}
