/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* The next bytes of a file that is read directly from its beginning to its end: while the kernel
 * hands an answer to the program, the next one is made. Of other files the kernel reads ahead. */

#include <pthread.h>

#include "esdm-mount/esdm-mount.h"

/* Programs that read less at a time hop about, or would win little. */
#define SMALLEST_READ (64u << 10)
#define MOST_THREADS  4

typedef enum progress { NOTHING, UNDER_WAY, READY } progress;

struct mount_ahead {
    pthread_mutex_t lock; /* guards all of it but what `made` says */
    pthread_cond_t changed;
    progress progress;
    const mount_open *opened;
    fuse_ino_t number;
    uint64_t expected; /* where the next read begins, if it goes on where the last one ended */
    /* While it is UNDER_WAY the thread that makes them alone writes to these. */
    char *bytes;
    uint64_t offset;
    size_t size, got;
    int wrong;
};

static GThreadPool *threads;

static void
make(gpointer data, gpointer user)
{
    (void) user;
    mount_ahead *a = data;
    int wrong = mount_read(a->opened, a->bytes, a->size, (off_t) a->offset, &a->got, a->number);
    (void) pthread_mutex_lock(&a->lock);
    a->wrong = wrong;
    a->progress = READY;
    (void) pthread_cond_broadcast(&a->changed);
    (void) pthread_mutex_unlock(&a->lock);
}

void
mount_ahead_init(void)
{
    threads = g_thread_pool_new(make, NULL, MOST_THREADS, FALSE, NULL);
}

void
mount_ahead_clear(void)
{
    g_thread_pool_free(threads, FALSE, TRUE);
    threads = NULL;
}

mount_ahead *
mount_ahead_new(const mount_open *opened, fuse_ino_t number)
{
    mount_ahead *a = g_new0(mount_ahead, 1);
    a->opened = opened;
    a->number = number;
    (void) pthread_mutex_init(&a->lock, NULL);
    (void) pthread_cond_init(&a->changed, NULL);
    return a;
}

static void
drop(mount_ahead *a)
{
    mount_answer_give(a->bytes);
    a->bytes = NULL;
    a->progress = NOTHING;
}

void
mount_ahead_free(mount_ahead *a)
{
    if (a == NULL)
        return;
    (void) pthread_mutex_lock(&a->lock);
    while (a->progress == UNDER_WAY)
        (void) pthread_cond_wait(&a->changed, &a->lock);
    drop(a);
    (void) pthread_mutex_unlock(&a->lock);
    (void) pthread_cond_destroy(&a->changed);
    (void) pthread_mutex_destroy(&a->lock);
    g_free(a);
}

char *
mount_ahead_take(mount_ahead *a, size_t size, uint64_t offset, size_t *ret_got)
{
    char *bytes = NULL;
    (void) pthread_mutex_lock(&a->lock);
    while (a->progress == UNDER_WAY && a->offset == offset && a->size == size)
        (void) pthread_cond_wait(&a->changed, &a->lock);
    if (a->progress == READY && a->offset == offset && a->size == size && a->wrong == 0) {
        bytes = g_steal_pointer(&a->bytes);
        *ret_got = a->got;
    }
    if (a->progress ==
        READY) /* taken; or the program reads elsewhere now, or is told what failed */
        drop(a);
    (void) pthread_mutex_unlock(&a->lock);
    return bytes;
}

void
mount_ahead_go_on(mount_ahead *a, size_t size, uint64_t offset)
{
    (void) pthread_mutex_lock(&a->lock);
    bool goes_on = offset == a->expected && size >= SMALLEST_READ;
    a->expected = offset + size;
    if (goes_on && a->progress == NOTHING && (a->bytes = mount_answer_take()) != NULL) {
        a->progress = UNDER_WAY;
        a->offset = offset + size;
        a->size = size;
        (void) g_thread_pool_push(threads, a, NULL);
    }
    (void) pthread_mutex_unlock(&a->lock);
}
