/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Items that are kept once and have numbers: an array, and a table by hashes of their bytes. */
#include "base/numbered.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/checksum.h"

#define SLOTS_LEAST 64u

static uint32_t *
slot_of(const esdm__numbered *n, const void *item, size_t item_bytes)
{
    const uint8_t *items = n->items;
    size_t at = esdm__slot_of_hash(esdm__checksum(item, item_bytes), n->slots);
    while (n->table[at] != 0 &&
           memcmp(items + (n->table[at] - 1) * item_bytes, item, item_bytes) != 0)
        at = at + 1 < n->slots ? at + 1 : 0;
    return &n->table[at];
}

static bool
grow_table(esdm__numbered *n, size_t item_bytes)
{
    const uint8_t *items = n->items;
    if (4 * (n->count + 1) <= 3 * n->slots)
        return true;
    size_t slots = n->slots > 0 ? 2 * n->slots : SLOTS_LEAST;
    uint32_t *table = calloc(slots, sizeof *table);
    if (table == NULL)
        return false;
    free(n->table);
    n->table = table;
    n->slots = slots;
    for (size_t i = 0; i < n->count; i++)
        *slot_of(n, items + i * item_bytes, item_bytes) = (uint32_t) i + 1;
    return true;
}

bool
esdm__numbered_add(esdm__numbered *n, const void *item, size_t item_bytes, uint32_t *ret_number)
{
    if (!grow_table(n, item_bytes))
        return false;
    uint32_t *slot = slot_of(n, item, item_bytes);
    if (*slot == 0) {
        if (n->count >= UINT32_MAX - 1 || !esdm__array_grow(&n->items, n->count, item_bytes))
            return false;
        memcpy((uint8_t *) n->items + n->count * item_bytes, item, item_bytes);
        *slot = (uint32_t) ++n->count;
        n->bytes = n->count * item_bytes;
    }
    *ret_number = *slot - 1;
    return true;
}

void
esdm__numbered_clear(esdm__numbered *n)
{
    free(n->items);
    free(n->table);
    *n = (esdm__numbered){0};
}
