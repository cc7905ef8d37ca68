/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* The next bytes of a file that is read directly from its beginning to its end: while the kernel
 * hands an answer to the program, the next one is made. Of other files the kernel reads ahead. */

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "esdm-mount/esdm-mount.h"

/* Programs that read less at a time hop about, or would win little. */
#define SMALLEST_READ (64u << 10)
#define MOST_THREADS  4
/* What is made for all open files together: the memory stays until the folder is unmounted. */
#define MOST_MADE 32

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
static atomic_int made; /* under way, or kept for a file */

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

/* Of what is under way or ready. */
static char *
steal(mount_ahead *a)
{
    a->progress = NOTHING;
    (void) atomic_fetch_sub(&made, 1);
    return g_steal_pointer(&a->bytes);
}

void
mount_ahead_free(mount_ahead *a)
{
    if (a == NULL)
        return;
    (void) pthread_mutex_lock(&a->lock);
    while (a->progress == UNDER_WAY)
        (void) pthread_cond_wait(&a->changed, &a->lock);
    if (a->progress == READY)
        mount_answer_give(steal(a));
    (void) pthread_mutex_unlock(&a->lock);
    (void) pthread_cond_destroy(&a->changed);
    (void) pthread_mutex_destroy(&a->lock);
    g_free(a);
}

/* What the piece has of a read that begins in it. The kernel cuts reads where pages of the
 * program's memory end: of memory that begins within one, as malloc() gives it, a read of 1 MiB is
 * two, and the small one leaves the rest of the piece to the next. */
static char *
take_part(mount_ahead *a, size_t size, uint64_t offset, size_t *ret_got)
{
    size_t skipped = (size_t) (offset - a->offset);
    size_t left = a->got - skipped;
    char *bytes;
    if (size >= left) {
        bytes = steal(a);
        if (skipped > 0)
            memmove(bytes, bytes + skipped, left);
        *ret_got = left;
        return bytes;
    }
    bytes = mount_answer_take();
    if (bytes != NULL) {
        memcpy(bytes, a->bytes + skipped, size);
        *ret_got = size;
    }
    return bytes;
}

char *
mount_ahead_take(mount_ahead *a, size_t size, uint64_t offset, size_t *ret_got)
{
    char *bytes = NULL;
    (void) pthread_mutex_lock(&a->lock);
    while (a->progress == UNDER_WAY && offset >= a->offset && offset - a->offset < a->size)
        (void) pthread_cond_wait(&a->changed, &a->lock);
    if (a->progress == READY && a->wrong == 0 && offset >= a->offset && offset - a->offset < a->got)
        bytes = take_part(a, size, offset, ret_got);
    else if (a->progress == READY) /* the program reads elsewhere now, or is told what failed */
        mount_answer_give(steal(a));
    (void) pthread_mutex_unlock(&a->lock);
    return bytes;
}

void
mount_ahead_go_on(mount_ahead *a, size_t size, uint64_t offset)
{
    (void) pthread_mutex_lock(&a->lock);
    bool goes_on = offset == a->expected && size >= SMALLEST_READ;
    a->expected = offset + size;
    if (goes_on && a->progress == NOTHING) {
        if (atomic_fetch_add(&made, 1) < MOST_MADE && (a->bytes = mount_answer_take()) != NULL) {
            a->progress = UNDER_WAY;
            a->offset = offset + size;
            a->size = size;
            (void) g_thread_pool_push(threads, a, NULL);
        } else {
            (void) atomic_fetch_sub(&made, 1);
        }
    }
    (void) pthread_mutex_unlock(&a->lock);
}
