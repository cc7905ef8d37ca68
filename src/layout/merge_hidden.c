/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Committed pages of which pending fragments hide the most: a variable that is written again. Else
 * they would stay until there are 16 of a level, with as many copies of the data. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "layout/bounds.h"
#include "layout/index_private.h"

/* More wait for the next commit, so that none takes long. */
#define HIDDEN_PAGES_MAX 64u
/* Fragments of a commit beyond which looking takes too long. */
#define PENDING_MAX 65536u
/* A commit looks for pages that hold so many times as much as it has written, at most. */
#define TIMES_MAX 16u

void
esdm__index_free_little(esdm__index *index)
{
    index->frees_little = true;
}

static uint64_t
least_bytes(const esdm__index *index)
{
    return index->frees_little ? 0 : ESDM__HIDDEN_BYTES;
}

/* The hull of what is pending, and its bytes. */
static uint64_t
pending_hull(const esdm__index *index, uint64_t *hull)
{
    const esdm__records *pending = esdm__index_pending(index);
    uint64_t raw_bytes = 0;
    for (uint32_t i = 0; i < pending->count; i++) {
        const uint64_t *bounds = esdm__records_bounds(pending, i);
        if (i == 0)
            esdm__bounds_copy(index->rank, hull, bounds);
        else
            esdm__bounds_grow(index->rank, hull, bounds);
        raw_bytes += pending->items[i].raw_bytes;
    }
    return raw_bytes;
}

/* What stores all anew commits in steps, and a page of an earlier time may lie across several of
 * them: it goes with the last one, for which all that hides it is looked at. @param hull of what is
 * pending; grows to that of the pages, too, which it meets. */
static void
grow_to_met(const esdm__index *index, uint64_t *hull)
{
    const esdm__directory *directory = esdm__index_pages(index);
    uint64_t pending[2 * ESDM_MAX_RANK];
    esdm__bounds_copy(index->rank, pending, hull);
    for (uint32_t i = 0; i < directory->count; i++) {
        const uint64_t *bounds = directory->bounds + (size_t) i * 2 * index->rank;
        if (esdm__bounds_meet(index->rank, pending, bounds))
            esdm__bounds_grow(index->rank, hull, bounds);
    }
}

esdm_status
esdm__index_hidden_candidates(const esdm__index *index, uint64_t **ret_pages, size_t *ret_count,
                              esdm_error *err)
{
    const esdm__directory *directory = esdm__index_pages(index);
    size_t pending = esdm__index_pending_count(index);
    uint64_t hull[2 * ESDM_MAX_RANK];
    uint64_t stored_bytes = 0;
    uint64_t raw_bytes = 0;
    size_t n = 0;
    *ret_pages = NULL;
    *ret_count = 0;
    if (pending == 0 || pending > PENDING_MAX || directory->count == 0)
        return ESDM_OK;
    uint64_t pending_bytes = pending_hull(index, hull);
    if (index->frees_little)
        grow_to_met(index, hull);
    uint64_t *pages = malloc(HIDDEN_PAGES_MAX * sizeof *pages);
    if (pages == NULL)
        return esdm__error_nomem(err, HIDDEN_PAGES_MAX * sizeof *pages, "index pages to merge");
    for (uint32_t i = 0; i < directory->count && n < HIDDEN_PAGES_MAX; i++) {
        const esdm_meta_page *entry = &directory->slots[i].entry;
        const uint64_t *bounds = directory->bounds + (size_t) i * 2 * index->rank;
        if (!(index->frees_little ? esdm__bounds_meet(index->rank, hull, bounds)
                                  : esdm__bounds_contain(index->rank, hull, bounds)))
            continue;
        pages[n++] = entry->page;
        stored_bytes += entry->stored_bytes;
        raw_bytes += entry->raw_bytes;
    }
    if (stored_bytes < least_bytes(index) ||
        (!index->frees_little && raw_bytes / TIMES_MAX > pending_bytes)) {
        free(pages);
        return ESDM_OK;
    }
    *ret_pages = pages;
    *ret_count = n;
    return ESDM_OK;
}

/* Whether it is worth storing the records of the pages anew. References to files hold nothing.
 * @param dropped records. */
static bool
frees_enough(const esdm__index *index, uint32_t dropped, uint64_t before, uint64_t after)
{
    uint64_t share = index->frees_little ? before / 4 : before - before / 2;
    return dropped > 0 && before - after >= least_bytes(index) && before - after >= share;
}

/* What is left of the first `committed` records. Nothing is merged when that is most of them. */
static esdm_status
encode_left(esdm__page_set *set, const esdm__index *index, const esdm__records *all,
            uint32_t committed, const uint64_t *merge, size_t nmerge, esdm_error *err)
{
    uint32_t *order = NULL;
    uint32_t count = 0;
    uint32_t left = 0;
    uint64_t before = 0;
    uint64_t after = 0;
    esdm_status st = esdm__records_order(all, 0, &order, &count, err);
    if (st != ESDM_OK)
        return st;
    for (uint32_t i = 0; i < committed; i++)
        before += esdm__record_held_bytes(&all->items[i]);
    for (uint32_t i = 0; i < count; i++) {
        if (order[i] >= committed)
            continue;
        after += esdm__record_held_bytes(&all->items[order[i]]);
        order[left++] = order[i];
    }
    if (frees_enough(index, committed - left, before, after)) {
        set->merged = malloc(nmerge * sizeof *set->merged);
        st = set->merged != NULL
                 ? ESDM_OK
                 : esdm__error_nomem(err, nmerge * sizeof *set->merged, "merged index pages");
        if (st == ESDM_OK) {
            memcpy(set->merged, merge, nmerge * sizeof *merge);
            set->nmerged = nmerge;
            set->dropped_bytes = before - after;
            st = esdm__pages_encode_ordered(set, all, order, left, true, err);
        }
    }
    free(order);
    return st;
}

esdm_status
esdm__index_encode_hidden(const esdm__index *index, const uint64_t *merge, size_t nmerge,
                          esdm__page_set *ret_set, esdm_error *err)
{
    esdm__page_set set = {0};
    esdm__records all;
    esdm__records_init(&all, index->rank);
    esdm_status st = esdm__pages_encode_own(&set, index, err);
    for (size_t i = 0; i < nmerge && st == ESDM_OK; i++)
        st = esdm__page_collect(index, merge[i], &all, err);
    uint32_t committed = all.count;
    /* Pending ones come behind the others: they hide, and are not encoded. */
    if (st == ESDM_OK && committed > 0 && !esdm__records_append(&all, esdm__index_pending(index)))
        st = esdm__error_nomem(err, all.count * sizeof *all.items, "merged index pages");
    if (st == ESDM_OK && (set.merged_sums = esdm__page_checksums(index, merge, nmerge)) == NULL)
        st = esdm__error_nomem(err, nmerge * sizeof *merge, "merged index pages");
    if (st == ESDM_OK && committed > 0)
        st = encode_left(&set, index, &all, committed, merge, nmerge, err);
    esdm__records_clear(&all);
    if (st != ESDM_OK) {
        esdm__page_set_clear(&set);
        return st;
    }
    *ret_set = set;
    return ESDM_OK;
}
