/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "layout/index.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "layout/index_private.h"

esdm__index *
esdm__index_new(uint32_t rank)
{
    esdm__index *index = calloc(1, sizeof *index);
    if (index == NULL)
        return NULL;
    index->rank = rank;
    index->packs = esdm__packs_new();
    if (index->packs == NULL) {
        free(index);
        return NULL;
    }
    esdm__records_init(&index->pending, rank);
    esdm__records_init(&index->foreign, rank);
    return index;
}

void
esdm__index_free(esdm__index *index)
{
    if (index == NULL)
        return;
    esdm__index_forget_pages(index);
    free(index->directory.slots);
    free(index->directory.boxes);
    free(index->directory.bounds);
    esdm__index_drop_pending(index);
    esdm__packs_unref(index->packs);
    free(index);
}

const esdm__pack_name *
esdm__index_pack(esdm__index *index, const char *target, const char *pack)
{
    return esdm__packs_intern(index->packs, target, pack);
}

/* Directory */

/* Index of the first slot with a page number >= page. */
static uint32_t
lower_slot(const esdm__directory *directory, uint64_t page)
{
    uint32_t lo = 0;
    uint32_t hi = directory->count;
    if (hi > 0 && directory->slots[hi - 1].entry.page < page)
        return hi;
    while (lo < hi) {
        uint32_t middle = lo + (hi - lo) / 2;
        if (directory->slots[middle].entry.page < page)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

esdm__slot *
esdm__index_slot(const esdm__index *index, uint64_t page)
{
    const esdm__directory *directory = &index->directory;
    uint32_t i = lower_slot(directory, page);
    return i < directory->count && directory->slots[i].entry.page == page ? &directory->slots[i]
                                                                          : NULL;
}

static bool
directory_reserve(esdm__directory *directory, uint32_t rank)
{
    if (directory->count < directory->capacity)
        return true;
    if (directory->count > UINT32_MAX / 4)
        return false;
    uint32_t capacity = directory->capacity < 16 ? 16 : directory->capacity * 2;
    size_t numbers = (size_t) capacity * 2 * rank + 1; /* not NULL for rank 0 either */
    esdm__slot *slots = realloc(directory->slots, capacity * sizeof *slots);
    if (slots != NULL)
        directory->slots = slots;
    uint64_t *boxes = realloc(directory->boxes, numbers * sizeof *boxes);
    if (boxes != NULL)
        directory->boxes = boxes;
    uint64_t *bounds = realloc(directory->bounds, numbers * sizeof *bounds);
    if (bounds != NULL)
        directory->bounds = bounds;
    if (slots == NULL || boxes == NULL || bounds == NULL)
        return false;
    directory->capacity = capacity;
    return true;
}

static esdm_status
check_entry(const esdm__index *index, const esdm_meta_page *page, esdm_error *err)
{
    const char *what = NULL;
    if (page->rank != index->rank)
        what = "its rank is not the dataset's";
    else if (page->records == 0 || page->records > ESDM__PAGE_RECORDS)
        what = "its number of records is out of range";
    else if (page->rank > 0 && page->box == NULL)
        what = "it has no box";
    for (uint32_t d = 0; d < page->rank && what == NULL; d++) {
        uint64_t end;
        if (page->box[page->rank + d] == 0 ||
            __builtin_add_overflow(page->box[d], page->box[page->rank + d], &end))
            what = "its box is empty or too large";
    }
    if (what == NULL)
        return ESDM_OK;
    return esdm__error_set(err, ESDM_ECORRUPT,
                           "directory entry of index page %llu of dataset %u is damaged: %s",
                           (unsigned long long) page->page, page->dataset, what);
}

/* Makes room for one entry at `at` and fills it. */
static void
directory_put(esdm__directory *directory, uint32_t rank, uint32_t at, const esdm_meta_page *page)
{
    size_t numbers = 2 * (size_t) rank;
    size_t behind = directory->count - at;
    if (behind > 0) {
        memmove(&directory->slots[at + 1], &directory->slots[at],
                behind * sizeof *directory->slots);
        memmove(&directory->boxes[(at + 1) * numbers], &directory->boxes[at * numbers],
                behind * numbers * sizeof *directory->boxes);
        memmove(&directory->bounds[(at + 1) * numbers], &directory->bounds[at * numbers],
                behind * numbers * sizeof *directory->bounds);
        esdm__forest_clear(&directory->forest);
    }
    directory->count++;
    directory->slots[at] = (esdm__slot){.entry = *page};
    directory->slots[at].entry.box = NULL;
    for (uint32_t d = 0; d < rank; d++) {
        directory->boxes[at * numbers + d] = page->box[d];
        directory->boxes[at * numbers + rank + d] = page->box[rank + d];
        directory->bounds[at * numbers + d] = page->box[d];
        directory->bounds[at * numbers + rank + d] = page->box[d] + page->box[rank + d];
    }
}

esdm_status
esdm__index_add_page(esdm__index *index, const esdm_meta_page *page, esdm_error *err)
{
    esdm_status st = check_entry(index, page, err);
    if (st != ESDM_OK)
        return st;
    esdm__directory *directory = &index->directory;
    uint32_t at = lower_slot(directory, page->page);
    if (at < directory->count && directory->slots[at].entry.page == page->page)
        return ESDM_OK; /* pages never change */
    if (!directory_reserve(directory, index->rank))
        return esdm__error_nomem(err, directory->capacity * sizeof *directory->slots,
                                 "the directory of index pages");
    directory_put(directory, index->rank, at, page);
    return ESDM_OK;
}

static void
unload(esdm__index *index, esdm__slot *slot)
{
    if (slot->loaded == NULL)
        return;
    index->memory_bytes -= slot->loaded->memory_bytes;
    index->directory.loaded--;
    esdm__page_unref(slot->loaded);
    slot->loaded = NULL;
}

void
esdm__index_forget_pages(esdm__index *index)
{
    esdm__directory *directory = &index->directory;
    for (uint32_t i = 0; i < directory->count; i++)
        unload(index, &directory->slots[i]);
    directory->count = 0;
    esdm__forest_clear(&directory->forest);
    index->incomplete = false;
}

bool
esdm__index_page_entry(const esdm__index *index, uint64_t page, esdm_meta_page *ret_entry)
{
    const esdm__slot *slot = esdm__index_slot(index, page);
    if (slot == NULL)
        return false;
    *ret_entry = slot->entry;
    ret_entry->box =
        index->directory.boxes + (size_t) (slot - index->directory.slots) * 2 * index->rank;
    return true;
}

/* Loading */

/* Lets the records point to the index's own pack names. */
static bool
intern_packs(esdm__index *index, esdm__page *page)
{
    if (page->npacks == 0)
        return true;
    const esdm__pack_name **names = malloc(page->npacks * sizeof(esdm__pack_name *));
    bool ok = names != NULL;
    for (uint32_t i = 0; ok && i < page->npacks; i++) {
        names[i] = esdm__packs_intern(index->packs, page->packs[i].target, page->packs[i].pack);
        ok = names[i] != NULL;
    }
    for (uint32_t i = 0; ok && i < page->records.count; i++) {
        esdm__record *item = &page->records.items[i];
        if (item->pack != NULL)
            item->pack = names[item->pack - page->packs];
    }
    free(names);
    if (ok) {
        free(page->packs);
        free(page->names);
        page->packs = NULL;
        page->names = NULL;
        page->npacks = 0;
    }
    return ok;
}

esdm_status
esdm__index_insert(esdm__index *index, uint64_t page, esdm__page *loaded, esdm_error *err)
{
    esdm__slot *slot = esdm__index_slot(index, page);
    if (loaded == NULL)
        return ESDM_OK;
    esdm_status status = ESDM_OK;
    bool wanted = slot != NULL && slot->loaded == NULL; /* else forgotten, or loaded twice */
    if (wanted && loaded->records.rank != index->rank)
        status = esdm__error_set(err, ESDM_ECORRUPT, "a page of rank %u in an index of rank %u",
                                 loaded->records.rank, index->rank);
    else if (wanted && !intern_packs(index, loaded))
        status = esdm__error_nomem(err, loaded->memory_bytes, "an index page");
    if (!wanted || status != ESDM_OK) {
        esdm__page_unref(loaded);
        return status;
    }
    slot->loaded = loaded;
    slot->last_use = ++index->clock;
    index->directory.loaded++;
    index->memory_bytes += loaded->memory_bytes;
    return ESDM_OK;
}

esdm__page *
esdm__index_hold(esdm__index *index, uint64_t page)
{
    esdm__slot *slot = esdm__index_slot(index, page);
    if (slot == NULL || slot->loaded == NULL)
        return NULL;
    slot->last_use = ++index->clock;
    atomic_fetch_add_explicit(&slot->loaded->references, 1, memory_order_relaxed);
    return slot->loaded;
}

bool
esdm__index_has_loaded(const esdm__index *index, const uint64_t *pages, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const esdm__slot *slot = esdm__index_slot(index, pages[i]);
        if (slot == NULL || slot->loaded == NULL)
            return false;
    }
    return true;
}

typedef struct missing {
    const esdm__directory *directory;
    uint64_t *pages;
    size_t count;
    size_t capacity;
} missing;

static bool
note_missing(uint32_t at, void *user)
{
    missing *m = user;
    if (m->directory->slots[at].loaded != NULL)
        return true;
    if (m->count == m->capacity) {
        size_t capacity = m->capacity < 16 ? 16 : m->capacity * 2;
        uint64_t *pages = realloc(m->pages, capacity * sizeof *pages);
        if (pages == NULL)
            return false;
        m->pages = pages;
        m->capacity = capacity;
    }
    m->pages[m->count++] = m->directory->slots[at].entry.page;
    return true;
}

esdm_status
esdm__index_missing(const esdm__index *index, const esdm__box *box, uint64_t **ret_pages,
                    size_t *ret_count, esdm_error *err)
{
    /* The forest is a cache of the directory; the caller's lock covers it as well. */
    esdm__directory *directory = (esdm__directory *) &index->directory;
    missing m = {.directory = directory};
    if (directory->loaded < directory->count && !esdm__box_is_empty(box)) {
        uint64_t request[2 * ESDM_MAX_RANK];
        esdm__bounds_from_box(request, box);
        if (!esdm__forest_query(&directory->forest, index->rank, directory->bounds,
                                directory->count, request, note_missing, &m)) {
            free(m.pages);
            return esdm__error_nomem(err, m.capacity * sizeof *m.pages, "a list of index pages");
        }
    }
    *ret_pages = m.pages;
    *ret_count = m.count;
    return ESDM_OK;
}

/* Memory */

size_t
esdm__index_memory_bytes(const esdm__index *index)
{
    return index->memory_bytes;
}

static int
by_last_use(const void *a, const void *b)
{
    const esdm__slot *x = *(esdm__slot *const *) a;
    const esdm__slot *y = *(esdm__slot *const *) b;
    return x->last_use < y->last_use ? -1 : x->last_use > y->last_use;
}

void
esdm__index_evict(esdm__index *index, size_t keep_bytes)
{
    esdm__directory *directory = &index->directory;
    if (index->memory_bytes <= keep_bytes || directory->loaded == 0)
        return;
    esdm__slot **slots = malloc(directory->loaded * sizeof(esdm__slot *));
    if (slots == NULL)
        return;
    size_t n = 0;
    for (uint32_t i = 0; i < directory->count; i++) {
        esdm__page *page = directory->slots[i].loaded;
        /* Only the holder of the lock adds references, so one reference stays one. */
        if (page != NULL && atomic_load_explicit(&page->references, memory_order_acquire) == 1)
            slots[n++] = &directory->slots[i];
    }
    qsort(slots, n, sizeof(esdm__slot *), by_last_use);
    for (size_t i = 0; i < n && index->memory_bytes > keep_bytes; i++)
        unload(index, slots[i]);
    free(slots);
}

/* Pending fragments */

static esdm_status
check_pending(const esdm__index *index, const esdm__fragment *fragment, esdm_error *err)
{
    const char *what = NULL;
    uint64_t end;
    if (fragment->box.rank != index->rank)
        what = "its rank is not the dataset's";
    else if (esdm__box_is_empty(&fragment->box))
        what = "its box is empty";
    else if (fragment->pack == NULL &&
             (fragment->inline_data == NULL || fragment->raw_bytes != fragment->stored_bytes ||
              fragment->head_bytes != 0 || fragment->stored_bytes > ESDM__PAGE_INLINE_MAX))
        what = "inline data is missing, too long or not raw";
    else if (fragment->pack != NULL && fragment->inline_data != NULL)
        what = "it is inline and in a pack";
    else if (fragment->pack != NULL &&
             (fragment->pack->target[0] == '\0' || fragment->pack->pack[0] == '\0' ||
              strlen(fragment->pack->target) > ESDM__PAGE_NAME_MAX ||
              strlen(fragment->pack->pack) > ESDM__PAGE_NAME_MAX))
        what = "the name of its target or pack is empty or too long";
    else if (fragment->pack != NULL &&
             (fragment->head_bytes > fragment->stored_bytes ||
              __builtin_add_overflow(fragment->position, fragment->stored_bytes, &end)))
        what = "its position or length is out of range";
    for (uint32_t d = 0; d < index->rank && what == NULL; d++) {
        if (__builtin_add_overflow(fragment->box.lo[d], fragment->box.n[d], &end))
            what = "its box is too large";
        uint64_t stride = fragment->strided ? fragment->stride[d] : 1;
        if (stride == 0 || (fragment->box.n[d] - 1) % stride != 0 ||
            (fragment->box.n[d] == 1 && stride != 1))
            what = "a stride does not fit its box";
    }
    return what == NULL ? ESDM_OK
                        : esdm__error_set(err, ESDM_EINVAL, "fragment cannot be indexed: %s", what);
}

esdm_status
esdm__index_add_pending(esdm__index *index, const esdm__fragment *fragment, esdm_error *err)
{
    esdm_status st = check_pending(index, fragment, err);
    if (st != ESDM_OK)
        return st;
    esdm__record item = {
        .sequence = ESDM__SEQUENCE_PENDING | index->next_order,
        .raw_bytes = fragment->raw_bytes,
        .stored_bytes = fragment->stored_bytes,
        .position = fragment->position,
        .pack = fragment->pack,
        .head_bytes = fragment->head_bytes,
    };
    memcpy(item.codec_ids, fragment->codec_ids, sizeof item.codec_ids);
    uint64_t bounds[2 * ESDM_MAX_RANK];
    esdm__bounds_from_box(bounds, &fragment->box);
    const uint64_t *stride = fragment->strided ? fragment->stride : NULL;
    if (!esdm__records_add(&index->pending, bounds, stride, &item, fragment->inline_data))
        return esdm__error_nomem(err, sizeof item, "the record of a fragment; commit more often");
    index->next_order++;
    return ESDM_OK;
}

esdm_status
esdm__index_move_pack(esdm__index *index, const char *pack, const char *from, const char *to,
                      esdm_error *err)
{
    const esdm__pack_name *old = esdm__packs_intern(index->packs, from, pack);
    const esdm__pack_name *new = esdm__packs_intern(index->packs, to, pack);
    if (old == NULL || new == NULL)
        return esdm__error_nomem(err, sizeof *new, "the fragment index");
    for (uint32_t i = 0; i < index->pending.count; i++) {
        if (index->pending.items[i].pack == old)
            index->pending.items[i].pack = new;
    }
    return ESDM_OK;
}

bool
esdm__index_needs_pack(const esdm__index *index, const char *pack)
{
    const esdm__pack_name *other = NULL; /* neighbours lie in the same one */
    for (uint32_t i = 0; i < index->pending.count; i++) {
        const esdm__pack_name *name = index->pending.items[i].pack;
        if (name != NULL && name != other && strcmp(name->pack, pack) == 0)
            return true;
        other = name;
    }
    return false;
}

void
esdm__index_renumber(esdm__index *index, const esdm__order_run *runs, size_t nruns, uint32_t next)
{
    for (size_t k = 0; k < nruns; k++) {
        uint32_t end = k + 1 < nruns ? runs[k + 1].first : index->pending.count;
        for (uint32_t i = runs[k].first; i < end; i++)
            index->pending.items[i].sequence =
                ESDM__SEQUENCE_PENDING | ((uint64_t) runs[k].base + i - runs[k].first);
    }
    index->next_order = next;
}

size_t
esdm__index_pending_count(const esdm__index *index)
{
    return index->pending.count;
}

size_t
esdm__index_pending_inline_bytes(const esdm__index *index)
{
    return index->pending.inline_bytes;
}

void
esdm__index_drop_pending(esdm__index *index)
{
    esdm__forest_clear(&index->pending_forest);
    esdm__records_clear(&index->pending);
    index->next_order = 0;
    esdm__forest_clear(&index->foreign_forest);
    esdm__records_clear(&index->foreign);
}

/* Pending fragments of other writers */

esdm_meta_page
esdm__page_entry(const esdm_meta_new_page *page)
{
    return (esdm_meta_page){
        .dataset = page->dataset,
        .records = page->records,
        .absolute = page->absolute,
        .raw_bytes = page->raw_bytes,
        .stored_bytes = page->stored_bytes,
        .rank = page->rank,
        .box = page->box,
    };
}

esdm_status
esdm__index_add_foreign(esdm__index *index, const esdm_meta_new_page *page, esdm_error *err)
{
    const esdm_meta_page entry = esdm__page_entry(page);
    esdm__page *decoded = NULL;
    if (page->rank != index->rank || page->absolute)
        return esdm__error_set(err, ESDM_EINVAL, "a page of another kind cannot be looked into");
    esdm_status st = esdm__page_decode(&entry, page->data, page->bytes, &decoded, err);
    if (st != ESDM_OK)
        return st;
    const esdm__records *from = &decoded->records;
    bool ok = intern_packs(index, decoded) &&
              esdm__records_reserve(&index->foreign, from->count, from->inline_bytes);
    for (uint32_t i = 0; ok && i < from->count; i++) {
        esdm__record item = from->items[i];
        const uint8_t *data = item.pack == NULL ? from->inline_data + item.position : NULL;
        item.sequence |= ESDM__SEQUENCE_PENDING;
        ok = esdm__records_add(&index->foreign, esdm__records_bounds(from, i),
                               esdm__records_stride(from, i), &item, data);
    }
    if (!ok)
        st = esdm__error_nomem(err, decoded->memory_bytes, "index pages of other ranks");
    esdm__page_unref(decoded);
    return st;
}

/* Commit */

static bool
is_merged(const esdm__page_set *set, uint64_t page)
{
    for (size_t i = 0; i < set->nmerged; i++) {
        if (set->merged[i] == page)
            return true;
    }
    return false;
}

static void
drop_merged(esdm__index *index, const esdm__page_set *set)
{
    esdm__directory *directory = &index->directory;
    if (set->nmerged == 0)
        return;
    size_t numbers = 2 * (size_t) index->rank;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < directory->count; i++) {
        if (is_merged(set, directory->slots[i].entry.page)) {
            unload(index, &directory->slots[i]);
            continue;
        }
        if (kept < i) {
            directory->slots[kept] = directory->slots[i];
            memcpy(&directory->boxes[kept * numbers], &directory->boxes[i * numbers],
                   numbers * sizeof *directory->boxes);
            memcpy(&directory->bounds[kept * numbers], &directory->bounds[i * numbers],
                   numbers * sizeof *directory->bounds);
        }
        kept++;
    }
    directory->count = kept;
    esdm__forest_clear(&directory->forest);
}

void
esdm__index_committed(esdm__index *index, const esdm__page_set *set, uint64_t first_page,
                      uint64_t snapshot)
{
    drop_merged(index, set);
    for (size_t i = 0; i < set->npages; i++) {
        const esdm_meta_new_page *page = &set->pages[i];
        const esdm_meta_page entry = {
            .page = first_page + i,
            .dataset = page->dataset,
            .records = page->records,
            .added = snapshot,
            .level = page->level,
            .absolute = page->absolute,
            .raw_bytes = page->raw_bytes,
            .stored_bytes = page->stored_bytes,
            .rank = page->rank,
            .box = page->box,
        };
        esdm__page *loaded;
        if (esdm__index_add_page(index, &entry, NULL) != ESDM_OK)
            index->incomplete = true;
        else if (esdm__page_decode(&entry, page->data, page->bytes, &loaded, NULL) == ESDM_OK)
            (void) !esdm__index_insert(index, entry.page, loaded, NULL); /* or loaded again later */
    }
    esdm__index_drop_pending(index);
}
