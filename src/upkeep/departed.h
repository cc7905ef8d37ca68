/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_UPKEEP_DEPARTED_H
#define ESDM_UPKEEP_DEPARTED_H

/** @file How much of which packs was moved to other targets. One thread at a time. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct esdm__departed_pack {
    char *name; /* owned */
    uint64_t bytes;
} esdm__departed_pack;

/** Zero-initialise. */
typedef struct esdm__departed {
    esdm__departed_pack *packs; /* owned; the first `sorted` by name, each once */
    size_t count;
    size_t capacity;
    size_t sorted;
} esdm__departed;

/** Bytes of a pack were moved. What there is no memory for counts as not moved. */
void esdm__departed_add(esdm__departed *departed, const char *pack, uint64_t bytes);
/** How many of its bytes were. */
uint64_t esdm__departed_bytes(esdm__departed *departed, const char *pack);
void esdm__departed_clear(esdm__departed *departed);

#endif
