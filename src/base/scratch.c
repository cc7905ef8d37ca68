/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "base/scratch.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/per_thread.h"

#define PIECES 6

/* Tools that look for misuse of memory see each piece made and freed. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KEEPS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define KEEPS 0
#endif
#endif
#ifndef KEEPS
#define KEEPS 1
#endif

/* Before the memory that is handed out. */
typedef union piece {
    struct {
        size_t bytes;
        bool mapped;
    };
    max_align_t align;
} piece;

/* What is kept, the longest time unused first. */
typedef struct kept {
    piece *pieces[PIECES];
    size_t count;
    size_t bytes;
} kept;

static void
drop_piece(piece *p)
{
    if (p->mapped)
        (void) munmap(p, sizeof *p + p->bytes);
    else
        free(p);
}

static void
clear_kept(void *memory)
{
    kept *own = memory;
    for (size_t i = 0; i < own->count; i++)
        drop_piece(own->pieces[i]);
}

static esdm__per_thread threads = ESDM__PER_THREAD(kept, clear_kept);

/* Large pieces are kept for all threads together. The lock is only tried: who does not get it, as a
 * forked child of a thread that held it, goes to the system. */
static pthread_mutex_t large_lock = PTHREAD_MUTEX_INITIALIZER;
static kept large;

/* Other threads may go on while a process ends: the lock stays taken, so that they go to the system
 * from now on. */
__attribute__((destructor)) static void
drop_kept(void)
{
    esdm__per_thread_drop(&threads);
    if (pthread_mutex_trylock(&large_lock) == 0)
        clear_kept(&large);
}

static piece *
take_out(kept *own, size_t i)
{
    piece *p = own->pieces[i];
    /* What was dropped is in no list. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
    own->bytes -= p->bytes;
    own->count--;
    for (; i < own->count; i++)
        own->pieces[i] = own->pieces[i + 1];
    return p;
}

/* The smallest that is long enough and not far too long; or NULL. */
static piece *
find_kept(kept *own, size_t bytes)
{
    size_t best = own->count;
    for (size_t i = 0; i < own->count; i++) {
        size_t have = own->pieces[i]->bytes;
        if (have >= bytes && have / 2 <= bytes &&
            (best == own->count || have < own->pieces[best]->bytes))
            best = i;
    }
    return best < own->count ? take_out(own, best) : NULL;
}

/* Keeps a piece in place of those that were not used for the longest time. */
static void
keep(kept *own, piece *p, size_t limit)
{
    while (own->count == PIECES || own->bytes > limit - p->bytes)
        drop_piece(take_out(own, 0));
    own->pieces[own->count++] = p;
    own->bytes += p->bytes;
}

static piece *
find_large(size_t bytes)
{
    piece *p = NULL;
    if (pthread_mutex_trylock(&large_lock) == 0) {
        p = find_kept(&large, bytes);
        (void) pthread_mutex_unlock(&large_lock);
    }
    return p;
}

static bool
keep_large(piece *p)
{
    if (p->bytes > ESDM__SCRATCH_LARGE || pthread_mutex_trylock(&large_lock) != 0)
        return false;
    keep(&large, p, ESDM__SCRATCH_LARGE);
    (void) pthread_mutex_unlock(&large_lock);
    return true;
}

/* malloc keeps much of what a thread frees for that thread alone. */
static piece *
map_large(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p != MAP_FAILED ? p : NULL;
}

static void *
new_piece(size_t bytes, bool map)
{
    piece *p = NULL;
    kept *own = KEEPS && bytes <= ESDM__SCRATCH_KEPT ? esdm__per_thread_get(&threads) : NULL;
    if (own != NULL)
        p = find_kept(own, bytes);
    else if (map)
        p = find_large(bytes);
    if (p == NULL && bytes <= SIZE_MAX - sizeof *p) {
        p = map ? map_large(sizeof *p + bytes) : malloc(sizeof *p + bytes);
        if (p != NULL) {
            p->bytes = bytes;
            p->mapped = map;
        }
    }
    return p != NULL ? p + 1 : NULL;
}

void *
esdm__scratch_new(size_t bytes)
{
    return new_piece(bytes, KEEPS && bytes > ESDM__SCRATCH_KEPT);
}

void *
esdm__scratch_new_near(size_t bytes)
{
    return new_piece(bytes, false);
}

void
esdm__scratch_free(void *memory)
{
    if (memory == NULL)
        return;
    piece *p = (piece *) memory - 1;
    bool small = KEEPS && !p->mapped && p->bytes <= ESDM__SCRATCH_KEPT;
    kept *own = small ? esdm__per_thread_get(&threads) : NULL;
    if (own != NULL)
        keep(own, p, ESDM__SCRATCH_KEPT);
    else if (!p->mapped || !keep_large(p))
        drop_piece(p);
}
