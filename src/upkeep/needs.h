/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_UPKEEP_NEEDS_H
#define ESDM_UPKEEP_NEEDS_H

/** @file Fragments that are to be stored anew, and how often. One thread at a time while growing.
 */

#include "layout/fragment.h"

typedef struct esdm__need {
    uint64_t key; /* of places, pack and position; 0: free */
    uint32_t copies;
} esdm__need;

typedef struct esdm__needs {
    esdm__need *table; /* owned; open addressing; a power of two */
    size_t slots;
    size_t count;
} esdm__needs;

/** false when out of memory. */
bool esdm__needs_add(esdm__needs *needs, const esdm__fragment *fragment, uint32_t copies);
/** 0: it stays as it is. */
uint32_t esdm__needs_find(const esdm__needs *needs, const esdm__fragment *fragment);
void esdm__needs_clear(esdm__needs *needs);

#endif
