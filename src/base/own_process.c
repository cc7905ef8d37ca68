/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * A page of memory that the kernel clears in a child, however it was forked: with it go the number
 * of the process, random numbers that its parent will use, and a mutex that another thread of the
 * parent may have held.
 */

#include "base/own_process.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define POOL 1024

/* All zeros is its state at the beginning, that of the mutex included. */
typedef struct own_page {
    _Atomic(pid_t) pid;
    pthread_mutex_t mutex; /* guards what follows */
    size_t left;           /* of the pool, at its end */
    uint8_t pool[POOL];
} own_page;

static _Atomic(own_page *) page; /* NULL: not yet, or this kernel clears no memory */

/* What the kernel should have done: who restores a process from a checkpoint (DMTCP) may map its
 * memory without that advice. */
static void
wipe_in_child(void)
{
    own_page *own = atomic_load(&page);
    if (own != NULL)
        memset((void *) own, 0, sizeof *own);
}

/* Emulators of a kernel (qemu-user before 8) accept any advice, and follow none. */
static bool
clears_in_children(void *made)
{
    return madvise(made, sizeof(own_page), -1) != 0 &&
           madvise(made, sizeof(own_page), MADV_WIPEONFORK) == 0;
}

static void
make_page(void)
{
    void *made =
        mmap(NULL, sizeof(own_page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED)
        return;
    if (clears_in_children(made) && pthread_atfork(NULL, NULL, wipe_in_child) == 0)
        atomic_store(&page, made);
    else
        (void) munmap(made, sizeof(own_page));
}

static own_page *
find_page(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    own_page *own = atomic_load_explicit(&page, memory_order_acquire);
    if (own != NULL)
        return own;
    (void) pthread_once(&once, make_page);
    return atomic_load(&page);
}

pid_t
esdm__own_pid(void)
{
    own_page *own = find_page();
    if (own == NULL)
        return getpid();
    pid_t pid = atomic_load_explicit(&own->pid, memory_order_relaxed);
    if (pid == 0) {
        pid = getpid();
        atomic_store_explicit(&own->pid, pid, memory_order_relaxed);
    }
    return pid;
}

static void
fill(uint8_t *data, size_t bytes)
{
    for (size_t have = 0; have < bytes;) {
        ssize_t n = getrandom(data + have, bytes - have, 0);
        if (n > 0)
            have += (size_t) n;
    }
}

/* A process whose memory is restored twice (from a checkpoint of it, or of its machine) would give
 * the same numbers twice: but not at the same time. */
static void
mix_time(uint8_t *data, size_t bytes)
{
    struct timespec now;
    (void) clock_gettime(CLOCK_REALTIME, &now);
    uint64_t ns = (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
    for (size_t i = 0; i < bytes && i < sizeof ns; i++)
        data[i] ^= (uint8_t) (ns >> 8 * i);
}

void
esdm__own_random(void *ret_data, size_t bytes)
{
    own_page *own = bytes <= POOL / 8 ? find_page() : NULL;
    if (own == NULL) {
        fill(ret_data, bytes);
        return;
    }
    (void) pthread_mutex_lock(&own->mutex);
    if (own->left < bytes) {
        fill(own->pool, POOL);
        own->left = POOL;
    }
    own->left -= bytes;
    memcpy(ret_data, own->pool + own->left, bytes);
    memset(own->pool + own->left, 0, bytes);
    (void) pthread_mutex_unlock(&own->mutex);
    mix_time(ret_data, bytes);
}
