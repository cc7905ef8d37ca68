/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_LAYOUT_INDEX_PRIVATE_H
#define ESDM_LAYOUT_INDEX_PRIVATE_H

/** @file Inside of the fragment index, for index.c, pending.c, plan.c and merge.c. */

#include "layout/forest.h"
#include "layout/index.h"
#include "layout/packs.h"
#include "layout/page.h"

/** Pages of this level and above are full and never merged. Level l holds 16^l … 16^(l+1)-1
 * records. */
#define ESDM__LEVEL_FULL 3u

/** One committed page. */
typedef struct esdm__slot {
    esdm_meta_page entry; /* its `box` is not set here: see esdm__directory.boxes */
    esdm__page *loaded;   /* owned reference; NULL: not loaded */
    uint64_t last_use;    /* clock of the index */
} esdm__slot;

/** The committed pages, sorted by number. */
typedef struct esdm__directory {
    uint32_t count;
    uint32_t capacity;
    uint32_t loaded; /* how many are loaded */
    esdm__slot *slots;
    uint64_t *boxes;  /* as esdm_meta_page.box: 2 * rank a page */
    uint64_t *bounds; /* layout/bounds.h */
    esdm__forest forest;
} esdm__directory;

/** Pending fragments. Sequence: ESDM__SEQUENCE_PENDING | order. */
typedef struct esdm__pending {
    esdm__records records;
    esdm__forest forest;
} esdm__pending;

/** Very many datasets have one: what most do not need is made when it is needed. */
struct esdm__index {
    uint32_t rank;
    bool incomplete;   /* a committed page could not be entered: no answer would be right */
    bool frees_little; /* see esdm__index_free_little() */
    uint64_t clock;
    size_t memory_bytes;        /* of loaded pages */
    esdm__packs *packs;         /* NULL: nothing was interned yet */
    esdm__directory *directory; /* owned; NULL: no page is known */
    esdm__pending *own;         /* owned; NULL: none */
    esdm__pending *others;      /* of other writers; the same */
    uint64_t next_order;        /* of the pending fragment that is added next */
};

static inline const esdm__directory *
esdm__index_pages(const esdm__index *index)
{
    static const esdm__directory none = {0};
    return index->directory != NULL ? index->directory : &none;
}

/** The pending fragments of this writer. */
static inline const esdm__records *
esdm__index_pending(const esdm__index *index)
{
    static const esdm__records none = {0};
    return index->own != NULL ? &index->own->records : &none;
}

/** Pending fragments of `own` or `others`, made at first use. NULL: out of memory. */
esdm__records *esdm__index_need_pending(const esdm__index *index, esdm__pending **place);

/** Where the index keeps names and descriptions, made at first use. NULL: out of memory. */
esdm__packs *esdm__index_names(esdm__index *index);

/** Lets the records of a page point to the index's own pack names and descriptions. After a failure
 *  (out of memory) the page is of no use. */
bool esdm__index_intern(esdm__index *index, esdm__page *page);
/** A directory entry for a page of orders that is in no store. */
esdm_meta_page esdm__page_entry(const esdm_meta_new_page *page);

/** Encodes the records from number `from` on into pages behind those of the set: spatially sorted,
 *  without what newer ones hide. */
esdm_status esdm__pages_encode(esdm__page_set *set, const esdm__records *records, uint32_t from,
                               bool absolute, esdm_error *err);
/** The pending fragments into pages of an empty set, which keeps their order. */
esdm_status esdm__pages_encode_own(esdm__page_set *set, const esdm__index *index, esdm_error *err);
/** Checksums of loaded pages; owned. NULL: out of memory. */
uint64_t *esdm__page_checksums(const esdm__index *index, const uint64_t *pages, size_t npages);
/** Copies the records of a loaded page behind those that are there. */
esdm_status esdm__page_collect(const esdm__index *index, uint64_t page, esdm__records *all,
                               esdm_error *err);
/** Encodes records[order[0 … count-1]], which are in the order of the R-tree. */
esdm_status esdm__pages_encode_ordered(esdm__page_set *set, const esdm__records *records,
                                       const uint32_t *order, uint32_t count, bool absolute,
                                       esdm_error *err);
/** Indices of the records from `from` on that no newer one hides, in R-tree order.
 *  @param ret_order owned. */
esdm_status esdm__records_order(const esdm__records *records, uint32_t from, uint32_t **ret_order,
                                uint32_t *ret_count, esdm_error *err);

/** Slot of a page number, or NULL. */
esdm__slot *esdm__index_slot(const esdm__index *index, uint64_t page);

#endif
