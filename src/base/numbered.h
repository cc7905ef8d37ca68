/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_NUMBERED_H
#define ESDM_BASE_NUMBERED_H

/**
 * @file
 * Items of one size that are each kept once and have numbers, so that many refer to them with four
 * bytes. Items are compared as bytes: gaps in a structure must be zero. One thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Zeroed at the start. */
typedef struct esdm__numbered {
    void *items; /* owned; by their numbers */
    size_t count;
    size_t bytes;    /* of all that is in use */
    uint32_t *table; /* owned; by hash: number plus 1; 0: none */
    size_t slots;
} esdm__numbered;

/** The number of an item, which is added if it is new. @return false: no memory. */
bool esdm__numbered_add(esdm__numbered *n, const void *item, size_t item_bytes,
                        uint32_t *ret_number);
void esdm__numbered_clear(esdm__numbered *n);

/** The slot, of so many (less than 2^32), at which looking for a hash begins. */
static inline size_t
esdm__slot_of_hash(uint64_t hash, size_t slots)
{
    return (size_t) ((hash >> 32) * slots >> 32);
}

#endif
