/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "base/scratch.h"

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

/* What a thread keeps, the longest time unused first. */
typedef struct kept {
    piece *pieces[PIECES];
    size_t count;
    size_t bytes;
} kept;

static void
clear_kept(void *memory)
{
    kept *own = memory;
    for (size_t i = 0; i < own->count; i++)
        free(own->pieces[i]);
}

static esdm__per_thread threads = ESDM__PER_THREAD(kept, clear_kept);

__attribute__((destructor)) static void
drop_kept(void)
{
    esdm__per_thread_drop(&threads);
}

static piece *
take_out(kept *own, size_t i)
{
    piece *p = own->pieces[i];
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
    if (p->mapped) {
        (void) munmap(p, sizeof *p + p->bytes);
        return;
    }
    kept *own = KEEPS && p->bytes <= ESDM__SCRATCH_KEPT ? esdm__per_thread_get(&threads) : NULL;
    if (own == NULL) {
        free(p);
        return;
    }
    while (own->count == PIECES || own->bytes > ESDM__SCRATCH_KEPT - p->bytes)
        free(take_out(own, 0));
    own->pieces[own->count++] = p;
    own->bytes += p->bytes;
}
