/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Index pages that become one: which ones, in what order, and without what newer records
 * hide. */

#include <stdlib.h>

#include "base/error.h"
#include "layout/index_private.h"
#include "layout/shadow.h"
#include "layout/strided.h"

#define MERGE_PAGES_MIN 16u
#define MERGE_PAGES_MAX 64u /* more wait for the next commit, so that none takes long */

_Static_assert(ESDM__PAGE_RECORDS == 16u * 16u * 16u, "pages are aligned runs of the R-tree order");

/* Candidates */

esdm_status
esdm__index_merge_candidates(const esdm__index *index, uint64_t **ret_pages, size_t *ret_count,
                             esdm_error *err)
{
    const esdm__directory *directory = esdm__index_pages(index);
    uint32_t pages_of[ESDM__LEVEL_FULL] = {0};
    for (uint32_t i = 0; i < directory->count; i++) {
        if (directory->slots[i].entry.level < ESDM__LEVEL_FULL)
            pages_of[directory->slots[i].entry.level]++;
    }
    uint32_t level = 0;
    while (level < ESDM__LEVEL_FULL && pages_of[level] < MERGE_PAGES_MIN)
        level++;
    if (level == ESDM__LEVEL_FULL) {
        *ret_pages = NULL;
        *ret_count = 0;
        return ESDM_OK;
    }
    uint64_t *pages = malloc(MERGE_PAGES_MAX * sizeof *pages);
    if (pages == NULL)
        return esdm__error_nomem(err, MERGE_PAGES_MAX * sizeof *pages, "index pages to merge");
    size_t n = 0;
    for (uint32_t i = 0; i < directory->count && n < MERGE_PAGES_MAX; i++) {
        if (directory->slots[i].entry.level == level)
            pages[n++] = directory->slots[i].entry.page;
    }
    *ret_pages = pages;
    *ret_count = n;
    return ESDM_OK;
}

/* Encoding */

void
esdm__page_set_clear(esdm__page_set *set)
{
    for (size_t i = 0; i < set->npages; i++) {
        free((void *) set->pages[i].data);
        free((void *) set->pages[i].box);
    }
    free(set->pages);
    free(set->merged);
    free(set->merged_sums);
    free(set->order);
    *set = (esdm__page_set){0};
}

/* Which of order[0 … count-1] are strided, and which of these were written again as a whole. */
static bool
find_repeated(const esdm__records *records, const uint32_t *order, uint32_t count, uint8_t *porous,
              uint8_t *repeated)
{
    if (records->strides == NULL)
        return true;
    esdm__strided *items = malloc(count * sizeof *items);
    if (items == NULL)
        return false;
    size_t n = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t *stride = esdm__records_stride(records, order[i]);
        if (stride == NULL)
            continue;
        porous[i] = 1;
        const uint64_t *bounds = esdm__records_bounds(records, order[i]);
        items[n++] = (esdm__strided){bounds, stride, bounds, records->items[order[i]].sequence, i};
    }
    esdm__strided_hide_repeats(records->rank, items, n, repeated);
    free(items);
    return true;
}

/* Whether each of order[0 … count-1] begins where the one before it has ended, or later, in one and
 * the same dimension, as steps do that are written one after the other: then none hides another. */
static bool
are_in_a_row(const esdm__records *records, const uint32_t *order, uint32_t count)
{
    uint32_t rank = records->rank;
    for (uint32_t d = 0; d < rank; d++) {
        uint64_t end = 0;
        uint32_t i = 0;
        for (; i < count; i++) {
            const uint64_t *bounds = esdm__records_bounds(records, order[i]);
            if (bounds[d] < end)
                break;
            end = bounds[rank + d];
        }
        if (i == count)
            return true;
    }
    return false;
}

/* Keeps those of order[0 … *count-1] that newer records do not hide wholly, in the same order. */
static bool
drop_hidden(const esdm__records *records, uint32_t *order, uint32_t *count)
{
    uint32_t rank = records->rank;
    uint32_t all = *count;
    uint64_t *bounds = malloc(((size_t) all * 2 * rank + 1) * sizeof *bounds);
    uint64_t *sequence = malloc(all * sizeof *sequence);
    uint8_t *visible = calloc(all, 1);
    uint8_t *porous = calloc(all, 1);
    uint8_t *repeated = calloc(all, 1);
    esdm__parts parts = {0};
    bool ok = bounds != NULL && sequence != NULL && visible != NULL && porous != NULL &&
              repeated != NULL && find_repeated(records, order, all, porous, repeated);
    for (uint32_t i = 0; ok && i < all; i++) {
        esdm__bounds_copy(rank, bounds + (size_t) i * 2 * rank,
                          esdm__records_bounds(records, order[i]));
        sequence[i] = records->items[order[i]].sequence;
    }
    ok = ok && esdm__shadow_parts(rank, bounds, sequence, porous, all, &parts, NULL) == ESDM_OK;
    if (ok) {
        for (size_t i = 0; i < parts.count; i++)
            visible[parts.owner[i]] = 1;
        *count = 0;
        for (uint32_t i = 0; i < all; i++) {
            if (visible[i] != 0 && repeated[i] == 0)
                order[(*count)++] = order[i];
        }
    }
    esdm__parts_clear(&parts);
    free(bounds);
    free(sequence);
    free(visible);
    free(porous);
    free(repeated);
    return ok;
}

esdm_status
esdm__records_order(const esdm__records *records, uint32_t from, uint32_t **ret_order,
                    uint32_t *ret_count, esdm_error *err)
{
    uint32_t count = records->count - from;
    uint32_t *order = malloc(count * sizeof *order);
    for (uint32_t i = 0; order != NULL && i < count; i++)
        order[i] = from + i;
    if (order == NULL || !esdm__rtree_sort(records->rank, records->bounds, order, count) ||
        (count > 1 && !are_in_a_row(records, order, count) &&
         !drop_hidden(records, order, &count))) {
        free(order);
        return esdm__error_nomem(err, count * sizeof *records->items,
                                 "the index pages of a commit");
    }
    *ret_order = order;
    *ret_count = count;
    return ESDM_OK;
}

/* Bytes of the descriptions that a record needs in its page. */
static uint64_t
source_bytes(const esdm__records *records, uint32_t i)
{
    if (records->elsewhere == NULL)
        return 0;
    const esdm__elsewhere *e = &records->elsewhere[i];
    return (e->source != NULL ? e->source->bytes : 0) +
           (e->decoding != NULL ? e->decoding->bytes : 0);
}

static bool
same_sources(const esdm__records *records, uint32_t a, uint32_t b)
{
    return records->elsewhere == NULL ||
           (records->elsewhere[a].source == records->elsewhere[b].source &&
            records->elsewhere[a].decoding == records->elsewhere[b].decoding);
}

/* How many records, from order[0] on, make the next page. */
static uint32_t
page_length(const esdm__records *records, const uint32_t *order, uint32_t count)
{
    uint64_t inline_bytes = 0;
    uint32_t n = 0;
    for (; n < count && n < ESDM__PAGE_RECORDS; n++) {
        const esdm__record *item = &records->items[order[n]];
        inline_bytes += esdm__record_inline_bytes(item);
        if (n == 0 || !same_sources(records, order[n - 1], order[n]))
            inline_bytes += source_bytes(records, order[n]);
        if (inline_bytes > ESDM__PAGE_INLINE_MAX && n > 0)
            break;
    }
    return n;
}

static uint32_t
level_of(uint32_t records)
{
    uint32_t level = 0;
    while (records >= 16 && level < ESDM__LEVEL_FULL) {
        records /= 16;
        level++;
    }
    return level;
}

/* Everything of the directory entry that follows from the records. */
static bool
describe_page(const esdm__records *records, const uint32_t *order, uint32_t count,
              esdm_meta_new_page *page)
{
    uint32_t rank = records->rank;
    uint64_t hull[2 * ESDM_MAX_RANK];
    esdm__bounds_copy(rank, hull, esdm__records_bounds(records, order[0]));
    for (uint32_t i = 0; i < count; i++) {
        esdm__bounds_grow(rank, hull, esdm__records_bounds(records, order[i]));
        page->raw_bytes += records->items[order[i]].raw_bytes;
        page->stored_bytes += esdm__record_held_bytes(&records->items[order[i]]);
    }
    uint64_t *box = malloc((2 * (size_t) rank + 1) * sizeof *box);
    if (box == NULL)
        return false;
    for (uint32_t d = 0; d < rank; d++) {
        box[d] = hull[d];
        box[rank + d] = hull[rank + d] - hull[d];
    }
    page->records = count;
    page->rank = rank;
    page->box = box;
    return true;
}

static esdm_status
add_page(esdm__page_set *set, const esdm__records *records, const uint32_t *order, uint32_t count,
         bool full, bool absolute, esdm_error *err)
{
    esdm_meta_new_page *pages = realloc(set->pages, (set->npages + 1) * sizeof *pages);
    if (pages == NULL)
        return esdm__error_nomem(err, sizeof *pages, "the index pages of a commit");
    set->pages = pages;
    esdm_meta_new_page page = {.absolute = absolute,
                               .level = full ? ESDM__LEVEL_FULL : level_of(count)};
    if (!describe_page(records, order, count, &page))
        return esdm__error_nomem(err, sizeof page, "the index pages of a commit");
    uint8_t *data = NULL;
    esdm_status st = esdm__page_encode(records, order, count, absolute, &data, &page.bytes, err);
    if (st != ESDM_OK) {
        free((void *) page.box);
        return st;
    }
    page.data = data;
    set->pages[set->npages++] = page;
    return ESDM_OK;
}

esdm_status
esdm__pages_encode_ordered(esdm__page_set *set, const esdm__records *records, const uint32_t *order,
                           uint32_t count, bool absolute, esdm_error *err)
{
    esdm_status st = ESDM_OK;
    for (uint32_t first = 0; first < count && st == ESDM_OK;) {
        uint32_t n = page_length(records, order + first, count - first);
        bool full = first + n < count;
        st = add_page(set, records, order + first, n, full, absolute, err);
        first += n;
    }
    return st;
}

esdm_status
esdm__pages_encode(esdm__page_set *set, const esdm__records *records, uint32_t from, bool absolute,
                   esdm_error *err)
{
    if (records->count <= from)
        return ESDM_OK;
    uint32_t *order = NULL;
    uint32_t count = 0;
    esdm_status st = esdm__records_order(records, from, &order, &count, err);
    if (st != ESDM_OK)
        return st;
    st = esdm__pages_encode_ordered(set, records, order, count, absolute, err);
    free(order);
    return st;
}

esdm_status
esdm__pages_encode_own(esdm__page_set *set, const esdm__index *index, esdm_error *err)
{
    const esdm__records *pending = esdm__index_pending(index);
    if (pending->count == 0)
        return ESDM_OK;
    esdm_status st = esdm__records_order(pending, 0, &set->order, &set->nordered, err);
    return st != ESDM_OK
               ? st
               : esdm__pages_encode_ordered(set, pending, set->order, set->nordered, false, err);
}

uint64_t *
esdm__page_checksums(const esdm__index *index, const uint64_t *pages, size_t npages)
{
    uint64_t *sums = calloc(npages + 1, sizeof *sums);
    for (size_t i = 0; sums != NULL && i < npages; i++) {
        const esdm__slot *slot = esdm__index_slot(index, pages[i]);
        sums[i] = slot != NULL && slot->loaded != NULL ? slot->loaded->checksum : 0;
    }
    return sums;
}

esdm_status
esdm__page_collect(const esdm__index *index, uint64_t number, esdm__records *all, esdm_error *err)
{
    const esdm__slot *slot = esdm__index_slot(index, number);
    if (slot == NULL || slot->loaded == NULL)
        return esdm__error_set(err, ESDM_EINVAL, "index page %llu is not loaded",
                               (unsigned long long) number);
    const esdm__records *from = &slot->loaded->records;
    return esdm__records_append(all, from)
               ? ESDM_OK
               : esdm__error_nomem(err, from->count * sizeof *from->items, "merged index pages");
}

static esdm_status
add_merged(const esdm__index *index, const uint64_t *merge, size_t nmerge, esdm__page_set *set,
           esdm_error *err)
{
    if (nmerge == 0)
        return ESDM_OK;
    set->merged = malloc(nmerge * sizeof *set->merged);
    set->merged_sums = esdm__page_checksums(index, merge, nmerge);
    if (set->merged == NULL || set->merged_sums == NULL)
        return esdm__error_nomem(err, nmerge * sizeof *set->merged, "merged index pages");
    memcpy(set->merged, merge, nmerge * sizeof *merge);
    set->nmerged = nmerge;
    esdm__records all;
    esdm__records_init(&all, index->rank);
    esdm_status st = ESDM_OK;
    for (size_t i = 0; i < nmerge && st == ESDM_OK; i++)
        st = esdm__page_collect(index, merge[i], &all, err);
    uint64_t before = 0;
    for (uint32_t i = 0; i < all.count; i++)
        before += esdm__record_held_bytes(&all.items[i]);
    size_t first = set->npages;
    if (st == ESDM_OK)
        st = esdm__pages_encode(set, &all, 0, true, err);
    for (size_t i = first; i < set->npages; i++)
        before -= set->pages[i].stored_bytes;
    set->dropped_bytes = st == ESDM_OK ? before : 0;
    esdm__records_clear(&all);
    return st;
}

esdm_status
esdm__index_encode(const esdm__index *index, const uint64_t *merge, size_t nmerge,
                   esdm__page_set *ret_set, esdm_error *err)
{
    esdm__page_set set = {0};
    esdm_status st = esdm__pages_encode_own(&set, index, err);
    if (st == ESDM_OK)
        st = add_merged(index, merge, nmerge, &set, err);
    if (st != ESDM_OK) {
        esdm__page_set_clear(&set);
        return st;
    }
    *ret_set = set;
    return ESDM_OK;
}

esdm_status
esdm__index_encode_merged(const esdm__index *index, const uint64_t *merge, size_t nmerge,
                          esdm__page_set *ret_set, esdm_error *err)
{
    esdm__page_set set = {0};
    esdm_status st = add_merged(index, merge, nmerge, &set, err);
    if (st != ESDM_OK) {
        esdm__page_set_clear(&set);
        return st;
    }
    *ret_set = set;
    return ESDM_OK;
}

esdm_status
esdm__index_encode_pending(const esdm__index *index, uint32_t first, esdm__page_set *ret_set,
                           esdm_error *err)
{
    esdm__page_set set = {0};
    esdm_status st = esdm__pages_encode(&set, esdm__index_pending(index), first, false, err);
    if (st != ESDM_OK) {
        esdm__page_set_clear(&set);
        return st;
    }
    *ret_set = set;
    return ESDM_OK;
}
