/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "vfile/pool.h"

#include <glib.h>
#include <pthread.h>

struct vfile_shared {
    char *key;
    esdm_vfile *file; /* NULL: it could not be opened */
    unsigned users;
    bool opening;  /* one thread does it, others wait */
    uint64_t used; /* a clock, of the last use */
};

struct vfile_pool {
    esdm_session *session;
    unsigned most_idle;
    pthread_mutex_t lock; /* all below, and what is in the files */
    pthread_cond_t opened;
    GHashTable *files; /* key → vfile_shared, owned */
    uint64_t clock;
};

static void
free_shared(gpointer data)
{
    vfile_shared *shared = data;
    esdm_vfile_close(shared->file);
    g_free(shared->key);
    g_free(shared);
}

vfile_pool *
vfile_pool_new(esdm_session *session, unsigned most_idle)
{
    vfile_pool *pool = g_new0(vfile_pool, 1);
    pool->session = session;
    pool->most_idle = most_idle;
    (void) pthread_mutex_init(&pool->lock, NULL);
    (void) pthread_cond_init(&pool->opened, NULL);
    pool->files = g_hash_table_new(g_str_hash, g_str_equal);
    return pool;
}

void
vfile_pool_free(vfile_pool *pool)
{
    if (pool == NULL)
        return;
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, pool->files);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        free_shared(value);
    g_hash_table_unref(pool->files);
    (void) pthread_cond_destroy(&pool->opened);
    (void) pthread_mutex_destroy(&pool->lock);
    g_free(pool);
}

/* Takes the one that was not used for the longest time out of the pool, if there are too many. */
static vfile_shared *
take_superfluous(vfile_pool *pool)
{
    vfile_shared *oldest = NULL;
    unsigned idle = 0;
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, pool->files);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        vfile_shared *shared = value;
        if (shared->users > 0)
            continue;
        idle++;
        if (oldest == NULL || shared->used < oldest->used)
            oldest = shared;
    }
    if (idle <= pool->most_idle)
        return NULL;
    (void) g_hash_table_remove(pool->files, oldest->key);
    return oldest;
}

/* Nobody uses it any more. Under the lock. */
static void
leave(vfile_pool *pool, vfile_shared *shared, vfile_shared **ret_close)
{
    shared->used = ++pool->clock;
    if (--shared->users == 0 && shared->file == NULL) {
        (void) g_hash_table_remove(pool->files, shared->key);
        *ret_close = shared;
    } else {
        *ret_close = take_superfluous(pool);
    }
}

static void
open_shared(vfile_pool *pool, vfile_shared *shared, const char *name, uint64_t snapshot,
            esdm_vfile_format format, esdm_error *err, esdm_status *ret_status)
{
    esdm_vfile *file = NULL;
    shared->opening = true;
    (void) pthread_mutex_unlock(&pool->lock);
    *ret_status = esdm_vfile_open(pool->session, name, snapshot, format, &file, err);
    (void) pthread_mutex_lock(&pool->lock);
    shared->file = file;
    shared->opening = false;
    (void) pthread_cond_broadcast(&pool->opened);
}

esdm_status
vfile_pool_get(vfile_pool *pool, const char *name, uint64_t created_ns, uint64_t snapshot,
               esdm_vfile_format format, vfile_shared **ret_file, esdm_error *err)
{
    g_autofree char *key =
        g_strdup_printf("%s\n%" G_GUINT64_FORMAT "\n%" G_GUINT64_FORMAT "\n%d", name,
                        (guint64) created_ns, (guint64) snapshot, (int) format);
    vfile_shared *close = NULL;
    esdm_status status = ESDM_OK;
    (void) pthread_mutex_lock(&pool->lock);
    vfile_shared *shared = g_hash_table_lookup(pool->files, key);
    if (shared == NULL) {
        shared = g_new0(vfile_shared, 1);
        shared->key = g_steal_pointer(&key);
        (void) g_hash_table_insert(pool->files, shared->key, shared);
    }
    shared->users++;
    while (shared->opening)
        (void) pthread_cond_wait(&pool->opened, &pool->lock);
    if (shared->file == NULL)
        open_shared(pool, shared, name, snapshot, format, err, &status);
    if (status != ESDM_OK)
        leave(pool, shared, &close);
    (void) pthread_mutex_unlock(&pool->lock);
    if (close != NULL)
        free_shared(close);
    if (status == ESDM_OK)
        *ret_file = shared;
    return status;
}

void
vfile_pool_put(vfile_pool *pool, vfile_shared *file)
{
    vfile_shared *close = NULL;
    (void) pthread_mutex_lock(&pool->lock);
    leave(pool, file, &close);
    (void) pthread_mutex_unlock(&pool->lock);
    if (close != NULL)
        free_shared(close);
}

esdm_vfile *
vfile_of(const vfile_shared *file)
{
    return file->file;
}
