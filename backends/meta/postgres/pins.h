/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_POSTGRES_PINS_H
#define ESDM_BACKEND_POSTGRES_PINS_H

/**
 * @file
 * Which snapshots this store handle has pinned. A pin is a shared advisory lock of the session, so
 * that it dies with its process; after a lost connection all pins are taken anew. Under the mutex
 * of the store.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct postgres__pin_entry {
    uint64_t container;
    uint64_t snapshot;
    uint32_t count; /* of our users; 0: of nobody yet, see `floating` */
    uint32_t held;  /* of locks that the server counts for this session */
    bool lost;      /* it was deleted while there was no connection */
    bool unseen;    /* a writer's: others may have taken it for dead since it was last asked */
} postgres__pin_entry;

typedef struct postgres__pins {
    postgres__pin_entry *entries; /* owned, in no order */
    size_t count;
    size_t capacity;
    /* A commit pins what it publishes, so that pinning it afterwards is free. Number of such
     * entries that nobody has asked for. */
    size_t floating;
} postgres__pins;

/** NULL when it is not pinned. Borrowed until the next change. */
postgres__pin_entry *postgres__pins_find(postgres__pins *pins, uint64_t container,
                                         uint64_t snapshot);
/** Finds or makes an entry; NULL: out of memory. */
postgres__pin_entry *postgres__pins_add(postgres__pins *pins, uint64_t container,
                                        uint64_t snapshot);
void postgres__pins_erase(postgres__pins *pins, postgres__pin_entry *entry);
void postgres__pins_clear(postgres__pins *pins);

#endif
