/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_LAYOUT_PACKS_H
#define ESDM_LAYOUT_PACKS_H

/**
 * @file
 * The pack names of one index, and the descriptions of what lies elsewhere (layout/source.h), each
 * stored once, so that pointers compare.
 *
 * Threads: the reference count is atomic; everything else belongs to the holder of the dataset's
 * lock. Names never move and live as long as the table.
 */

#include "layout/fragment.h"

typedef struct esdm__packs esdm__packs;

esdm__packs *esdm__packs_new(void); /* one reference; NULL: no memory */
void esdm__packs_ref(esdm__packs *packs);
void esdm__packs_unref(esdm__packs *packs); /* NULL is accepted */

/** The stored form of a name, entered when it is new. NULL: no memory. */
const esdm__pack_name *esdm__packs_intern(esdm__packs *packs, const char *target, const char *pack);

/** The same of a description. */
const esdm__source *esdm__packs_source(esdm__packs *packs, const esdm__source *source);

/** Brings ranks up to date: esdm__packs_rank() then orders by target and pack. */
void esdm__packs_order(esdm__packs *packs);
/** Place of a stored name, from 1, in that order; 0 for NULL (inline). */
uint32_t esdm__packs_rank(const esdm__pack_name *name);

#endif
