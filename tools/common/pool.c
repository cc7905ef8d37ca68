/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Things that are shared by those who use them, and kept open a while. */

#include "common/pool.h"

#include <glib.h>
#include <pthread.h>

struct tool_held {
    char *key;
    void *thing; /* NULL: it could not be opened */
    unsigned users;
    bool opening;  /* one thread does it, others wait */
    uint64_t used; /* a clock, of the last use */
};

struct tool_pool {
    tool_pool_opener open;
    tool_pool_closer close;
    void *user;
    unsigned most_idle;
    pthread_mutex_t lock; /* all below, and what is in the things held */
    pthread_cond_t opened;
    GHashTable *things; /* key → tool_held, owned */
    uint64_t clock;
};

static void
free_held(const tool_pool *pool, tool_held *held)
{
    if (held->thing != NULL)
        pool->close(held->thing);
    g_free(held->key);
    g_free(held);
}

tool_pool *
tool_pool_new(tool_pool_opener open, tool_pool_closer close, void *user, unsigned most_idle)
{
    tool_pool *pool = g_new0(tool_pool, 1);
    pool->open = open;
    pool->close = close;
    pool->user = user;
    pool->most_idle = most_idle;
    (void) pthread_mutex_init(&pool->lock, NULL);
    (void) pthread_cond_init(&pool->opened, NULL);
    pool->things = g_hash_table_new(g_str_hash, g_str_equal);
    return pool;
}

void
tool_pool_free(tool_pool *pool)
{
    if (pool == NULL)
        return;
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, pool->things);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        free_held(pool, value);
    g_hash_table_unref(pool->things);
    (void) pthread_cond_destroy(&pool->opened);
    (void) pthread_mutex_destroy(&pool->lock);
    g_free(pool);
}

/* Takes the one that was not used for the longest time out of the pool, if there are too many. */
static tool_held *
take_superfluous(tool_pool *pool)
{
    tool_held *oldest = NULL;
    unsigned idle = 0;
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, pool->things);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        tool_held *held = value;
        if (held->users > 0)
            continue;
        idle++;
        if (oldest == NULL || held->used < oldest->used)
            oldest = held;
    }
    if (idle <= pool->most_idle)
        return NULL;
    (void) g_hash_table_remove(pool->things, oldest->key);
    return oldest;
}

/* Nobody uses it any more. Under the lock. */
static void
leave(tool_pool *pool, tool_held *held, tool_held **ret_close)
{
    held->used = ++pool->clock;
    if (--held->users == 0 && held->thing == NULL) {
        (void) g_hash_table_remove(pool->things, held->key);
        *ret_close = held;
    } else {
        *ret_close = take_superfluous(pool);
    }
}

static esdm_status
open_held(tool_pool *pool, tool_held *held, const void *wanted, esdm_error *err)
{
    void *thing = NULL;
    held->opening = true;
    (void) pthread_mutex_unlock(&pool->lock);
    esdm_status status = pool->open(pool->user, wanted, &thing, err);
    (void) pthread_mutex_lock(&pool->lock);
    held->thing = status == ESDM_OK ? thing : NULL;
    held->opening = false;
    (void) pthread_cond_broadcast(&pool->opened);
    return status;
}

esdm_status
tool_pool_get(tool_pool *pool, const char *key, const void *wanted, tool_held **ret_held,
              esdm_error *err)
{
    tool_held *close = NULL;
    esdm_status status = ESDM_OK;
    (void) pthread_mutex_lock(&pool->lock);
    tool_held *held = g_hash_table_lookup(pool->things, key);
    if (held == NULL) {
        held = g_new0(tool_held, 1);
        held->key = g_strdup(key);
        (void) g_hash_table_insert(pool->things, held->key, held);
    }
    held->users++;
    while (held->opening)
        (void) pthread_cond_wait(&pool->opened, &pool->lock);
    if (held->thing == NULL)
        status = open_held(pool, held, wanted, err);
    if (status != ESDM_OK)
        leave(pool, held, &close);
    (void) pthread_mutex_unlock(&pool->lock);
    if (close != NULL)
        free_held(pool, close);
    if (status == ESDM_OK)
        *ret_held = held;
    return status;
}

void
tool_pool_put(tool_pool *pool, tool_held *held)
{
    tool_held *close = NULL;
    (void) pthread_mutex_lock(&pool->lock);
    leave(pool, held, &close);
    (void) pthread_mutex_unlock(&pool->lock);
    if (close != NULL)
        free_held(pool, close);
}

void *
tool_held_thing(const tool_held *held)
{
    return held->thing;
}
