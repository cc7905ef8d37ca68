/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "layout/index.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "layout/index_private.h"
#include "layout/source.h"

esdm__index *
esdm__index_new(uint32_t rank)
{
    esdm__index *index = calloc(1, sizeof *index);
    if (index == NULL)
        return NULL;
    index->rank = rank;
    return index;
}

esdm__packs *
esdm__index_names(esdm__index *index)
{
    if (index->packs == NULL)
        index->packs = esdm__packs_new();
    return index->packs;
}

static void
free_directory(esdm__index *index)
{
    esdm__directory *directory = index->directory;
    if (directory == NULL)
        return;
    free(directory->slots);
    free(directory->boxes);
    free(directory->bounds);
    free(directory);
    index->directory = NULL;
}

void
esdm__index_free(esdm__index *index)
{
    if (index == NULL)
        return;
    esdm__index_forget_pages(index);
    free_directory(index);
    esdm__index_drop_pending(index);
    esdm__packs_unref(index->packs);
    free(index);
}

const esdm__pack_name *
esdm__index_pack(esdm__index *index, const char *target, const char *pack)
{
    esdm__packs *names = esdm__index_names(index);
    return names != NULL ? esdm__packs_intern(names, target, pack) : NULL;
}

const esdm__source *
esdm__index_source(esdm__index *index, uint32_t role, const void *data, size_t bytes)
{
    if (bytes > ESDM__SOURCE_BYTES_MAX)
        return NULL;
    const esdm__source source = {role, (uint32_t) bytes, data};
    esdm__packs *names = esdm__index_names(index);
    return names != NULL ? esdm__packs_source(names, &source) : NULL;
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
    const esdm__directory *directory = esdm__index_pages(index);
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
    /* Most of very many datasets have one page. */
    uint32_t capacity = directory->capacity == 0 ? 1 : directory->capacity * 2;
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
    if (index->directory == NULL)
        index->directory = calloc(1, sizeof *index->directory);
    esdm__directory *directory = index->directory;
    if (directory == NULL)
        return esdm__error_nomem(err, sizeof *directory, "the directory of index pages");
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
    index->directory->loaded--;
    esdm__page_unref(slot->loaded);
    slot->loaded = NULL;
}

void
esdm__index_forget_pages(esdm__index *index)
{
    esdm__directory *directory = index->directory;
    index->incomplete = false;
    if (directory == NULL)
        return;
    for (uint32_t i = 0; i < directory->count; i++)
        unload(index, &directory->slots[i]);
    directory->count = 0;
    esdm__forest_clear(&directory->forest);
}

bool
esdm__index_page_entry(const esdm__index *index, uint64_t page, esdm_meta_page *ret_entry)
{
    const esdm__slot *slot = esdm__index_slot(index, page);
    if (slot == NULL)
        return false;
    *ret_entry = slot->entry;
    ret_entry->box =
        index->directory->boxes + (size_t) (slot - index->directory->slots) * 2 * index->rank;
    return true;
}

/* Loading */

static bool
intern_names(esdm__index *index, esdm__page *page)
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
    return ok;
}

static bool
intern_sources(esdm__index *index, esdm__page *page)
{
    if (page->nsources == 0)
        return true;
    const esdm__source **own = malloc(page->nsources * sizeof(esdm__source *));
    bool ok = own != NULL;
    for (uint32_t i = 0; ok && i < page->nsources; i++) {
        own[i] = esdm__packs_source(index->packs, &page->sources[i]);
        ok = own[i] != NULL;
    }
    for (uint32_t i = 0; ok && page->records.elsewhere != NULL && i < page->records.count; i++) {
        esdm__elsewhere *e = &page->records.elsewhere[i];
        e->source = e->source != NULL ? own[e->source - page->sources] : NULL;
        e->decoding = e->decoding != NULL ? own[e->decoding - page->sources] : NULL;
    }
    free(own);
    return ok;
}

bool
esdm__index_intern(esdm__index *index, esdm__page *page)
{
    if ((page->npacks > 0 || page->nsources > 0) && esdm__index_names(index) == NULL)
        return false;
    if (!intern_names(index, page) || !intern_sources(index, page))
        return false;
    esdm__page_forget_names(page);
    return true;
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
    else if (wanted && !esdm__index_intern(index, loaded))
        status = esdm__error_nomem(err, loaded->memory_bytes, "an index page");
    if (!wanted || status != ESDM_OK) {
        esdm__page_unref(loaded);
        return status;
    }
    slot->loaded = loaded;
    slot->last_use = ++index->clock;
    index->directory->loaded++;
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
    esdm__directory *directory = index->directory;
    missing m = {.directory = directory};
    if (directory != NULL && directory->loaded < directory->count && !esdm__box_is_empty(box)) {
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

size_t
esdm__index_directory_bytes(const esdm__index *index)
{
    const esdm__directory *directory = index->directory;
    if (directory == NULL)
        return 0;
    size_t each = sizeof *directory->slots + (size_t) 4 * index->rank * sizeof(uint64_t);
    return sizeof *directory + directory->capacity * each;
}

bool
esdm__index_is_idle(const esdm__index *index)
{
    return esdm__index_pending(index)->count == 0 && index->others == NULL;
}

size_t
esdm__index_fixed_bytes(void)
{
    return sizeof(esdm__index);
}

bool
esdm__index_release(esdm__index *index)
{
    esdm__index_evict(index, 0);
    if (esdm__index_pages(index)->loaded > 0 || index->incomplete)
        return false;
    esdm__index_forget_pages(index);
    free_directory(index);
    if (esdm__index_is_idle(index)) {
        esdm__packs_unref(index->packs); /* plans have references of their own */
        index->packs = NULL;
    }
    return true;
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
    esdm__directory *directory = index->directory;
    if (index->memory_bytes <= keep_bytes || directory == NULL || directory->loaded == 0)
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
    esdm__directory *directory = index->directory;
    if (set->nmerged == 0 || directory == NULL)
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

/* A page of the set as it is in memory: of the pending fragments that it was made of, which saves
 * decoding it, else of its stored form. NULL: it is loaded again later. */
static esdm__page *
page_of_set(const esdm__index *index, const esdm__page_set *set, size_t i, uint32_t first,
            const esdm_meta_page *entry)
{
    const esdm_meta_new_page *page = &set->pages[i];
    esdm__page *loaded = NULL;
    if (!page->absolute && entry->added < ESDM__SEQUENCE_PENDING >> 32 &&
        first + page->records <= set->nordered)
        return esdm__page_of_records(entry, esdm__index_pending(index), set->order + first,
                                     page->data);
    return esdm__page_decode(entry, page->data, page->bytes, &loaded, NULL) == ESDM_OK ? loaded
                                                                                       : NULL;
}

void
esdm__index_committed(esdm__index *index, const esdm__page_set *set, uint64_t first_page,
                      uint64_t snapshot)
{
    uint32_t first = 0;
    drop_merged(index, set);
    for (size_t i = 0; i < set->npages; first += set->pages[i++].records) {
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
        if (esdm__index_add_page(index, &entry, NULL) != ESDM_OK)
            index->incomplete = true;
        else
            (void) !esdm__index_insert(index, entry.page, page_of_set(index, set, i, first, &entry),
                                       NULL);
    }
    esdm__index_drop_pending(index);
}
