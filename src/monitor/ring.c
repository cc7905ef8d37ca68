/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * A bounded queue with many writers and one reader, without locks (D. Vyukov's: each cell has a
 * turn, by which writers and the reader know whose it is).
 */
#include <stdlib.h>

#include "monitor/parts.h"

typedef struct cell {
    /* Equal to a position: free for it; one more: filled. Less the number of the cell, so that
     * fresh memory is right, and is not touched before it is needed. */
    atomic_size_t turn;
    esdm__record record;
} cell;

struct esdm__ring {
    size_t mask;
    char apart[64]; /* writers and the reader on different lines of the CPU's cache */
    atomic_size_t head;
    char apart_too[64];
    size_t tail;
    cell cells[];
};

esdm__ring *
esdm__ring_new(uint64_t bytes)
{
    size_t count = 1;
    while (2 * count * sizeof(cell) <= bytes && count < (size_t) 1 << 24)
        count *= 2;
    esdm__ring *ring = calloc(1, sizeof *ring + count * sizeof(cell));
    if (ring == NULL)
        return NULL;
    ring->mask = count - 1;
    return ring;
}

void
esdm__ring_free(esdm__ring *ring)
{
    free(ring);
}

bool
esdm__ring_put(esdm__ring *ring, const esdm__record *record)
{
    size_t at = atomic_load_explicit(&ring->head, memory_order_relaxed);
    for (;;) {
        cell *c = &ring->cells[at & ring->mask];
        size_t number = at & ring->mask;
        size_t turn = atomic_load_explicit(&c->turn, memory_order_acquire) + number;
        if (turn == at) {
            if (atomic_compare_exchange_weak_explicit(&ring->head, &at, at + 1,
                                                      memory_order_relaxed, memory_order_relaxed)) {
                c->record = *record;
                atomic_store_explicit(&c->turn, at + 1 - number, memory_order_release);
                return true;
            }
        } else if ((ptrdiff_t) (turn - at) < 0) {
            return false;
        } else {
            at = atomic_load_explicit(&ring->head, memory_order_relaxed);
        }
    }
}

bool
esdm__ring_take(esdm__ring *ring, esdm__record *ret_record)
{
    size_t number = ring->tail & ring->mask;
    cell *c = &ring->cells[number];
    if (atomic_load_explicit(&c->turn, memory_order_acquire) + number != ring->tail + 1)
        return false;
    *ret_record = c->record;
    atomic_store_explicit(&c->turn, ring->tail + ring->mask + 1 - number, memory_order_release);
    ring->tail++;
    return true;
}
