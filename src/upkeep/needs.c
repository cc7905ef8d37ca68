/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "upkeep/needs.h"

#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"

/* Two fragments with one key would both be stored anew, which does no harm. */
static uint64_t
key_of(const esdm__fragment *fragment)
{
    uint64_t parts[3] = {esdm__checksum(fragment->pack->target, strlen(fragment->pack->target)),
                         esdm__checksum(fragment->pack->pack, strlen(fragment->pack->pack)),
                         fragment->position};
    uint64_t key = esdm__checksum(parts, sizeof parts);
    return key != 0 ? key : 1;
}

static esdm__need *
slot_of(esdm__need *table, size_t slots, uint64_t key)
{
    size_t at = (size_t) key & (slots - 1);
    while (table[at].key != 0 && table[at].key != key)
        at = (at + 1) & (slots - 1);
    return &table[at];
}

static bool
grow(esdm__needs *needs)
{
    size_t slots = needs->slots > 0 ? 2 * needs->slots : 256;
    esdm__need *table = calloc(slots, sizeof *table);
    if (table == NULL)
        return false;
    for (size_t i = 0; i < needs->slots; i++) {
        if (needs->table[i].key != 0)
            *slot_of(table, slots, needs->table[i].key) = needs->table[i];
    }
    free(needs->table);
    needs->table = table;
    needs->slots = slots;
    return true;
}

bool
esdm__needs_add(esdm__needs *needs, const esdm__fragment *fragment, uint32_t copies)
{
    if (2 * (needs->count + 1) > needs->slots && !grow(needs))
        return false;
    uint64_t key = key_of(fragment);
    esdm__need *slot = slot_of(needs->table, needs->slots, key);
    needs->count += slot->key == 0;
    *slot = (esdm__need){.key = key, .copies = copies};
    return true;
}

uint32_t
esdm__needs_find(const esdm__needs *needs, const esdm__fragment *fragment)
{
    if (needs->slots == 0)
        return 0;
    uint64_t key = key_of(fragment);
    const esdm__need *slot = slot_of(needs->table, needs->slots, key);
    return slot->key == key ? slot->copies : 0;
}

void
esdm__needs_clear(esdm__needs *needs)
{
    free(needs->table);
    *needs = (esdm__needs){0};
}
