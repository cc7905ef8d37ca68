/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * The last requests, for the case that they turn out to have been slow. A round of cells that
 * writers overwrite; each cell has a turn, odd while it is written, by which the reader knows
 * whose it is and whether it stayed. Words are atomic: what a reader sees of a cell that changes
 * meanwhile is thrown away, but it is no race.
 */
#include <stdlib.h>
#include <string.h>

#include "monitor/parts.h"

#define WORDS (sizeof(esdm__record) / sizeof(uint64_t))
_Static_assert(sizeof(esdm__record) % sizeof(uint64_t) == 0, "a record is words");

typedef struct cell {
    atomic_uint_fast64_t turn; /* of request n: 2n + 1 while it is written, then 2n + 2 */
    atomic_uint_fast64_t words[WORDS];
} cell;

struct esdm__recent {
    atomic_uint_fast64_t head;
    uint64_t taken; /* of the reader: what came before was taken */
    uint64_t most;
    cell cells[];
};
_Static_assert(sizeof(struct esdm__recent) + ESDM__RECENT_MOST * sizeof(cell) <= 81 << 10,
               "as docs/admin.md says");

esdm__recent *
esdm__recent_new(uint32_t most)
{
    esdm__recent *recent = calloc(1, sizeof *recent + most * sizeof(cell));
    if (recent != NULL)
        recent->most = most;
    return recent;
}

void
esdm__recent_free(esdm__recent *recent)
{
    free(recent);
}

void
esdm__recent_put(esdm__recent *recent, const esdm__record *record)
{
    uint64_t words[WORDS];
    uint64_t n = atomic_fetch_add_explicit(&recent->head, 1, memory_order_relaxed);
    cell *c = &recent->cells[n % recent->most];
    uint64_t turn = atomic_load_explicit(&c->turn, memory_order_relaxed);
    /* Another thread may be a whole round behind or ahead: then one of the two is left out. */
    if ((turn & 1) != 0 || turn > 2 * n ||
        !atomic_compare_exchange_strong_explicit(&c->turn, &turn, 2 * n + 1, memory_order_acquire,
                                                 memory_order_relaxed))
        return;
    memcpy(words, record, sizeof words);
    for (size_t i = 0; i < WORDS; i++)
        atomic_store_explicit(&c->words[i], words[i], memory_order_release);
    atomic_store_explicit(&c->turn, 2 * n + 2, memory_order_release);
}

static bool
read_cell(cell *c, uint64_t n, esdm__record *ret)
{
    uint64_t words[WORDS];
    if (atomic_load_explicit(&c->turn, memory_order_acquire) != 2 * n + 2)
        return false;
    for (size_t i = 0; i < WORDS; i++)
        words[i] = atomic_load_explicit(&c->words[i], memory_order_acquire);
    memcpy(ret, words, sizeof words);
    ret->detail = NULL; /* whose it was has freed it */
    return atomic_load_explicit(&c->turn, memory_order_relaxed) == 2 * n + 2;
}

uint64_t
esdm__recent_count(const esdm__recent *recent)
{
    return atomic_load_explicit(&recent->head, memory_order_acquire);
}

bool
esdm__recent_see(esdm__recent *recent, uint64_t number, esdm__record *ret_record)
{
    return read_cell(&recent->cells[number % recent->most], number, ret_record);
}

bool
esdm__recent_take(esdm__recent *recent, esdm__record *ret_record)
{
    uint64_t head = atomic_load_explicit(&recent->head, memory_order_acquire);
    if (head - recent->taken > recent->most)
        recent->taken = head - recent->most;
    while (recent->taken < head) {
        uint64_t n = recent->taken++;
        if (esdm__recent_see(recent, n, ret_record))
            return true;
    }
    return false;
}
