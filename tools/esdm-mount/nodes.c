/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Inodes of the mounted folder: numbers that the kernel holds, and what they stand for. */

#include <pthread.h>

#include "esdm-mount/esdm-mount.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static GHashTable *by_number; /* mount_node, owned */
static GHashTable *by_key;    /* the same, borrowed */
static fuse_ino_t last = FUSE_ROOT_ID;

static void
free_node(gpointer data)
{
    mount_node *node = data;
    g_free(node->key);
    g_free(node->path);
    g_free(node);
}

void
mount_nodes_init(void)
{
    by_number = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, free_node);
    by_key = g_hash_table_new(g_str_hash, g_str_equal);
    mount_node *root = g_new0(mount_node, 1);
    root->number = FUSE_ROOT_ID;
    root->path = g_strdup("");
    root->key = g_strdup("root");
    root->lookups = 1;
    (void) g_hash_table_insert(by_number, &root->number, root);
}

void
mount_nodes_clear(void)
{
    g_hash_table_unref(by_key);
    g_hash_table_unref(by_number);
}

const mount_node *
mount_node_get(fuse_ino_t number)
{
    (void) pthread_mutex_lock(&lock);
    const mount_node *node = g_hash_table_lookup(by_number, &number);
    (void) pthread_mutex_unlock(&lock);
    return node;
}

const mount_node *
mount_node_enter(mount_node *like)
{
    char *key = g_strdup_printf("%d %d %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %s", like->kind,
                                like->fixed, (guint64) like->created_ns, (guint64) like->snapshot,
                                like->path);
    (void) pthread_mutex_lock(&lock);
    mount_node *node = g_hash_table_lookup(by_key, key);
    if (node != NULL) {
        g_free(key);
        g_free(like->path);
    } else {
        node = g_memdup2(like, sizeof *like);
        node->number = ++last;
        node->key = key;
        node->lookups = 0;
        (void) g_hash_table_insert(by_key, node->key, node);
        (void) g_hash_table_insert(by_number, &node->number, node);
    }
    like->path = NULL;
    node->lookups++;
    (void) pthread_mutex_unlock(&lock);
    return node;
}

void
mount_node_forget(fuse_ino_t number, uint64_t lookups)
{
    (void) pthread_mutex_lock(&lock);
    mount_node *node = g_hash_table_lookup(by_number, &number);
    if (node != NULL && number != FUSE_ROOT_ID) {
        node->lookups -= MIN(lookups, node->lookups);
        if (node->lookups == 0) {
            (void) g_hash_table_remove(by_key, node->key);
            (void) g_hash_table_remove(by_number, &number);
        }
    }
    (void) pthread_mutex_unlock(&lock);
}
