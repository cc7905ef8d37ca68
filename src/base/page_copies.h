/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_PAGE_COPIES_H
#define ESDM_BASE_PAGE_COPIES_H

/** @file Copies of index pages that come one by one, in one array. One thread. */

#include "esdm/sys/meta_store.h"

/** Zero-initialise. */
typedef struct esdm__page_copies {
    esdm_meta_new_page *pages; /* owned, and what those from `borrowed` on point to */
    size_t count;
    size_t capacity;
    size_t borrowed; /* the first so many stay where they are; set before any is added */
} esdm__page_copies;

/** Adds a page; false when out of memory. */
bool esdm__page_copies_add(esdm__page_copies *copies, const esdm_meta_new_page *page);
void esdm__page_copies_clear(esdm__page_copies *copies);

#endif
