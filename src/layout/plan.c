/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file From a box to the visible parts of fragments: search, newest first, what is hidden is cut
 * away. */

#include <stdlib.h>

#include "base/error.h"
#include "layout/index_private.h"
#include "layout/shadow.h"
#include "layout/strided.h"

#define APART_TESTS 4096u /* pairs of pieces compared to learn whether they cover a request */
#define HITS_INSIDE 16u   /* without memory of their own; also: compared pair by pair */

/* A record that meets the request. */
typedef struct hit {
    const esdm__records *records;
    esdm__page *page; /* NULL: pending */
    uint32_t row;
} hit;

typedef struct hits {
    esdm__index *index;
    const esdm__box *request;
    uint64_t bounds[2 * ESDM_MAX_RANK]; /* of the request */
    hit *items;
    size_t count;
    size_t capacity;
    size_t inline_bytes; /* of pending hits, to be copied */
    size_t strided;      /* how many are */
    size_t most;         /* hits that are wanted; */
    bool too_many;       /* there are more, and the search has ended */
    const esdm__slot *unloaded;
    esdm__page *page;             /* being searched; NULL: pending */
    const esdm__records *records; /* being searched */
    hit inside[HITS_INSIDE];
} hits;

/* One block of memory: this, the pages, the pieces, the fragments, pending inline data. */
typedef struct ownership {
    esdm__packs *packs; /* NULL: there are none, or the plan has copies of its names */
    size_t npages;
    esdm__page *pages[];
} ownership;

/* Search */

/* Visits the pages that the bounds meet. */
static bool
query_pages(const esdm__index *index, const uint64_t *bounds,
            bool (*visit)(uint32_t at, void *user), void *user)
{
    esdm__directory *directory = index->directory;
    return directory == NULL ||
           esdm__forest_query(&directory->forest, index->rank, directory->bounds, directory->count,
                              bounds, visit, user);
}

/* The same of pending fragments; NULL: there are none. */
static bool
query_pending(const esdm__index *index, esdm__pending *pending, const uint64_t *bounds,
              bool (*visit)(uint32_t at, void *user), void *user)
{
    return pending == NULL || pending->records.count == 0 ||
           esdm__forest_query(&pending->forest, index->rank, pending->records.bounds,
                              pending->records.count, bounds, visit, user);
}

static bool
add_hit(uint32_t row, void *user)
{
    hits *h = user;
    if (h->count == h->most) {
        h->too_many = true;
        return false;
    }
    if (h->count == h->capacity) {
        size_t capacity = h->capacity * 4;
        hit *items = malloc(capacity * sizeof *items);
        if (items == NULL || capacity > UINT32_MAX) {
            free(items);
            return false;
        }
        memcpy(items, h->items, h->count * sizeof *items);
        if (h->items != h->inside)
            free(h->items);
        h->items = items;
        h->capacity = capacity;
    }
    const esdm__records *records = h->records;
    if (h->page == NULL)
        h->inline_bytes += (size_t) esdm__record_inline_bytes(&records->items[row]);
    h->strided += esdm__records_stride(records, row) != NULL;
    h->items[h->count++] = (hit){records, h->page, row};
    return true;
}

static bool
search_page(uint32_t at, void *user)
{
    hits *h = user;
    esdm__slot *slot = &h->index->directory->slots[at];
    if (slot->loaded == NULL) {
        h->unloaded = slot;
        return false;
    }
    slot->last_use = h->index->clock;
    h->page = slot->loaded;
    h->records = &slot->loaded->records;
    return esdm__rtree_query(&h->page->tree, h->page->records.bounds, h->bounds, add_hit, h);
}

static esdm_status
search(hits *h, esdm_error *err)
{
    esdm__index *index = h->index;
    index->clock++;
    esdm__pending *const pending[] = {index->own, index->others};
    bool ok = query_pages(index, h->bounds, search_page, h);
    h->page = NULL;
    for (size_t i = 0; i < sizeof pending / sizeof *pending && ok; i++) {
        h->records = pending[i] != NULL ? &pending[i]->records : NULL;
        ok = query_pending(index, pending[i], h->bounds, add_hit, h);
    }
    if (h->unloaded != NULL)
        return esdm__error_set(err, ESDM_EINVAL, "index page %llu is not loaded",
                               (unsigned long long) h->unloaded->entry.page);
    return ok || h->too_many ? ESDM_OK
                             : esdm__error_nomem(err, h->count * sizeof *h->items, "a read plan");
}

/* Parts */

/* Fills `bounds` with the hits, cut to the request. */
static void
clip_hits(const hits *h, uint64_t *bounds, uint64_t *sequence)
{
    uint32_t rank = h->request->rank;
    for (size_t i = 0; i < h->count; i++) {
        uint64_t *box = bounds + i * 2 * rank;
        const hit *at = &h->items[i];
        esdm__bounds_copy(rank, box, esdm__records_bounds(at->records, at->row));
        esdm__bounds_clip(rank, box, h->bounds);
        sequence[i] = at->records->items[at->row].sequence;
    }
}

/* Takes out strided hits that a newer one repeats; fills `porous`. Not for hits without strided
 * ones. */
static bool
drop_repeats(hits *h, uint64_t *bounds, uint64_t *sequence, uint8_t *porous)
{
    uint32_t rank = h->request->rank;
    esdm__strided *items = malloc(h->strided * sizeof *items);
    uint8_t *hidden = calloc(h->count, 1);
    if (items == NULL || hidden == NULL) {
        free(items);
        free(hidden);
        return false;
    }
    size_t n = 0;
    for (size_t i = 0; i < h->count; i++) {
        const hit *at = &h->items[i];
        const uint64_t *stride = esdm__records_stride(at->records, at->row);
        if (stride != NULL)
            items[n++] = (esdm__strided){bounds + i * 2 * rank, stride,
                                         esdm__records_bounds(at->records, at->row), sequence[i],
                                         (uint32_t) i};
    }
    esdm__strided_hide_repeats(rank, items, n, hidden);
    n = 0;
    for (size_t i = 0; i < h->count; i++) {
        if (hidden[i] != 0)
            continue;
        h->items[n] = h->items[i];
        sequence[n] = sequence[i];
        memmove(bounds + n * 2 * rank, bounds + i * 2 * rank, (size_t) 2 * rank * sizeof *bounds);
        porous[n] = esdm__records_stride(h->items[n].records, h->items[n].row) != NULL;
        n++;
    }
    h->count = n;
    free(items);
    free(hidden);
    return true;
}

static bool
few_and_apart(uint32_t rank, const uint64_t *bounds, size_t count)
{
    if (count > HITS_INSIDE)
        return false;
    for (size_t i = 1; i < count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (esdm__bounds_meet(rank, bounds + i * 2 * rank, bounds + k * 2 * rank))
                return false;
        }
    }
    return true;
}

/* The hits as they are become the parts; takes over bounds. */
static bool
whole_parts(const hits *h, uint64_t **bounds, esdm__parts *parts)
{
    parts->owner = malloc(h->count * sizeof *parts->owner);
    if (parts->owner == NULL)
        return false;
    for (size_t i = 0; i < h->count; i++)
        parts->owner[i] = (uint32_t) i;
    parts->bounds = *bounds;
    parts->count = parts->capacity = h->count;
    *bounds = NULL;
    return true;
}

static esdm_status
find_parts(hits *h, esdm__parts *parts, esdm_error *err)
{
    uint32_t rank = h->request->rank;
    uint64_t *bounds = malloc((h->count * 2 * rank + 1) * sizeof *bounds);
    uint64_t *sequence = malloc(h->count * sizeof *sequence);
    uint8_t *porous = h->strided > 0 ? malloc(h->count) : NULL;
    bool ok = bounds != NULL && sequence != NULL && (h->strided == 0 || porous != NULL);
    esdm_status st = ESDM_OK;
    if (ok) {
        clip_hits(h, bounds, sequence);
        ok = h->strided == 0 || drop_repeats(h, bounds, sequence, porous);
    }
    if (ok) {
        if (few_and_apart(rank, bounds, h->count))
            ok = whole_parts(h, &bounds, parts);
        else
            st =
                esdm__shadow_parts(rank, bounds, sequence, porous, (uint32_t) h->count, parts, err);
    }
    free(bounds);
    free(sequence);
    free(porous);
    return ok ? st : esdm__error_nomem(err, h->count * sizeof *bounds, "a read plan");
}

/* Order of pieces */

typedef struct piece_key {
    uint64_t age; /* 0 of dense fragments, else the sequence */
    uint64_t position;
    uint32_t pack;
    uint32_t part;
} piece_key;

static int
by_place(const void *a, const void *b)
{
    const piece_key *x = a;
    const piece_key *y = b;
    if (x->age != y->age)
        return x->age < y->age ? -1 : 1;
    if (x->pack != y->pack)
        return x->pack < y->pack ? -1 : 1;
    if (x->position != y->position)
        return x->position < y->position ? -1 : 1;
    return x->part < y->part ? -1 : x->part > y->part;
}

static piece_key *
order_parts(const hits *h, const esdm__parts *parts)
{
    piece_key *keys = malloc((parts->count + 1) * sizeof *keys);
    if (keys == NULL)
        return NULL;
    if (h->index->packs != NULL)
        esdm__packs_order(h->index->packs);
    bool sorted = true;
    for (size_t i = 0; i < parts->count; i++) {
        const hit *at = &h->items[parts->owner[i]];
        const esdm__record *item = &at->records->items[at->row];
        bool in_page = item->pack == NULL && !esdm__kind_is_elsewhere(item->kind);
        uint64_t position = in_page ? 0 : item->position;
        uint64_t age = esdm__records_stride(at->records, at->row) != NULL ? item->sequence : 0;
        keys[i] = (piece_key){age, position, esdm__packs_rank(item->pack), (uint32_t) i};
        sorted = sorted && (i == 0 || by_place(&keys[i - 1], &keys[i]) < 0);
    }
    if (!sorted)
        qsort(keys, parts->count, sizeof *keys, by_place);
    return keys;
}

/* Building */

typedef struct builder {
    const hits *h;
    ownership *own;
    esdm__piece *pieces;
    esdm__fragment *fragments;
    uint8_t *inline_data; /* next free byte for what pending fragments hold */
} builder;

/* Pages are kept only for the inline data that fragments borrow from them. */
static size_t
count_pages(const hits *h)
{
    size_t n = 0;
    const esdm__page *last = NULL;
    for (size_t i = 0; i < h->count; i++) {
        const esdm__page *page = h->items[i].page;
        n += page != NULL && page != last && page->records.inline_bytes > 0;
        last = page;
    }
    return n;
}

static void
keep_pages(builder *b)
{
    const hits *h = b->h;
    const esdm__page *last = NULL;
    for (size_t i = 0; i < h->count; i++) {
        esdm__page *page = h->items[i].page;
        if (page != NULL && page != last && page->records.inline_bytes > 0) {
            atomic_fetch_add_explicit(&page->references, 1, memory_order_relaxed);
            b->own->pages[b->own->npages++] = page;
        }
        last = page;
    }
}

/* @param name_bytes for copies of names, in place of a reference: a count that the threads of all
 * plans change costs more than a short copy. */
static bool
builder_init(builder *b, const hits *h, size_t npieces, size_t nfragments, size_t name_bytes)
{
    size_t pages = count_pages(h);
    size_t head = (sizeof *b->own + pages * sizeof(esdm__page *) + 15) / 16 * 16;
    size_t bytes = head + npieces * sizeof *b->pieces + nfragments * sizeof *b->fragments +
                   h->inline_bytes + name_bytes;
    uint8_t *memory = malloc(bytes);
    if (memory == NULL)
        return false;
    *b = (builder){.h = h, .own = (ownership *) memory};
    b->pieces = (esdm__piece *) (memory + head);
    b->fragments = (esdm__fragment *) (b->pieces + npieces);
    b->inline_data = (uint8_t *) (b->fragments + nfragments);
    b->own->packs = name_bytes == 0 ? h->index->packs : NULL;
    if (b->own->packs != NULL)
        esdm__packs_ref(b->own->packs);
    b->own->npages = 0;
    keep_pages(b);
    return true;
}

static void
build_fragment(builder *b, const hit *at, esdm__fragment *fragment)
{
    esdm__records_fragment(at->records, at->row, fragment);
    if (at->page == NULL && fragment->inline_data != NULL) {
        memcpy(b->inline_data, fragment->inline_data, (size_t) fragment->stored_bytes);
        fragment->inline_data = b->inline_data;
        b->inline_data += fragment->stored_bytes;
    }
    if (at->page == NULL && fragment->outline != NULL) {
        memcpy(b->inline_data, fragment->outline, fragment->outline_bytes);
        fragment->outline = b->inline_data;
        b->inline_data += fragment->outline_bytes;
    }
}

static size_t
count_dense(const esdm__piece *pieces, size_t npieces)
{
    size_t n = npieces;
    while (n > 0 && pieces[n - 1].fragment->strided)
        n--;
    return n;
}

/* Whether strided pieces have no element in common with those before them. Not looked at when
 * there are many: filling first is right as well. */
static bool
strided_apart(const esdm__piece *pieces, size_t ndense, size_t npieces)
{
    if ((npieces - ndense) * npieces > APART_TESTS)
        return npieces == ndense;
    for (size_t i = ndense; i < npieces; i++) {
        for (size_t k = 0; k < i; k++) {
            if (esdm__strided_meet(&pieces[i], &pieces[k]))
                return false;
        }
    }
    return true;
}

static bool
covers(const esdm__box *request, const esdm__piece *pieces, size_t ndense, size_t npieces)
{
    uint64_t wanted = esdm__box_elements(request);
    uint64_t have = 0;
    if (npieces == 1)
        return ndense == 1 && esdm__box_equal(&pieces[0].part, request);
    if (wanted == UINT64_MAX) /* saturated; the reader then fills first, which is right as well */
        return false;
    for (size_t i = 0; i < ndense; i++)
        have += esdm__box_elements(&pieces[i].part);
    if (have == wanted || npieces == ndense || !strided_apart(pieces, ndense, npieces))
        return have == wanted;
    for (size_t i = ndense; i < npieces; i++)
        have += esdm__strided_elements(&pieces[i]);
    return have == wanted;
}

/* Of the pack of a stored fragment with their NULs, and what tells where they are; else 0. */
static size_t
name_bytes_of(const esdm__record *item)
{
    return item->pack != NULL && item->kind == ESDM__KIND_STORED
               ? sizeof(esdm__pack_name) + strlen(item->pack->target) + strlen(item->pack->pack) + 2
               : 0;
}

/* Behind the fragment, where it is aligned: there is one. */
static void
copy_name(esdm__fragment *fragment)
{
    esdm__pack_name *name = (esdm__pack_name *) (fragment + 1);
    size_t target_bytes = strlen(fragment->pack->target) + 1;
    char *texts = (char *) (name + 1);
    memcpy(texts, fragment->pack->target, target_bytes);
    memcpy(texts + target_bytes, fragment->pack->pack, strlen(fragment->pack->pack) + 1);
    *name = (esdm__pack_name){texts, texts + target_bytes};
    fragment->pack = name;
}

/* The usual case: one fragment serves the request. */
static esdm_status
build_single(const hits *h, esdm__plan *plan, esdm_error *err)
{
    builder b;
    uint64_t part[2 * ESDM_MAX_RANK];
    uint32_t rank = h->request->rank;
    size_t name_bytes = name_bytes_of(&h->items[0].records->items[h->items[0].row]);
    if (!builder_init(&b, h, 1, 1, name_bytes))
        return esdm__error_nomem(err, sizeof *b.pieces, "a read plan");
    b.inline_data += name_bytes;
    build_fragment(&b, &h->items[0], &b.fragments[0]);
    if (name_bytes > 0)
        copy_name(&b.fragments[0]);
    esdm__bounds_copy(rank, part, esdm__records_bounds(h->items[0].records, h->items[0].row));
    esdm__bounds_clip(rank, part, h->bounds);
    b.pieces[0].fragment = &b.fragments[0];
    esdm__bounds_to_box(rank, part, &b.pieces[0].part);
    size_t ndense = count_dense(b.pieces, 1);
    *plan = (esdm__plan){b.pieces, 1, ndense, covers(h->request, b.pieces, ndense, 1), b.own};
    return ESDM_OK;
}

/* Parts of one fragment follow each other; each run gets one copy of the record. */
static esdm_status
build_many(const hits *h, const esdm__parts *parts, esdm__plan *plan, esdm_error *err)
{
    uint32_t rank = h->request->rank;
    size_t nfragments = 0;
    for (size_t i = 0; i < parts->count; i++)
        nfragments += i == 0 || parts->owner[i] != parts->owner[i - 1];
    piece_key *keys = order_parts(h, parts);
    uint32_t *place = malloc((parts->count + 1) * sizeof *place); /* of the part's fragment */
    builder b;
    if (keys == NULL || place == NULL || !builder_init(&b, h, parts->count, nfragments, 0)) {
        free(keys);
        free(place);
        return esdm__error_nomem(err, parts->count * sizeof *b.pieces, "a read plan");
    }
    uint32_t n = 0;
    for (size_t i = 0; i < parts->count; i++) {
        if (i == 0 || parts->owner[i] != parts->owner[i - 1])
            build_fragment(&b, &h->items[parts->owner[i]], &b.fragments[n++]);
        place[i] = n - 1;
    }
    for (size_t i = 0; i < parts->count; i++) {
        uint32_t part = keys[i].part;
        b.pieces[i].fragment = &b.fragments[place[part]];
        esdm__bounds_to_box(rank, esdm__bounds_at(rank, parts->bounds, part), &b.pieces[i].part);
    }
    free(keys);
    free(place);
    size_t ndense = count_dense(b.pieces, parts->count);
    bool covered = covers(h->request, b.pieces, ndense, parts->count);
    *plan = (esdm__plan){b.pieces, parts->count, ndense, covered, b.own};
    return ESDM_OK;
}

static esdm_status
build(hits *h, esdm__plan *plan, esdm_error *err)
{
    if (h->count == 0) {
        *plan = (esdm__plan){.covered = false};
        return ESDM_OK;
    }
    if (h->count == 1)
        return build_single(h, plan, err);
    esdm__parts parts = {0};
    esdm_status st = find_parts(h, &parts, err);
    if (st == ESDM_OK)
        st = build_many(h, &parts, plan, err);
    esdm__parts_clear(&parts);
    return st;
}

esdm_status
esdm__index_resolve(esdm__index *index, const esdm__box *request, esdm__plan *ret_plan,
                    esdm_error *err)
{
    bool too_many;
    return esdm__index_resolve_most(index, request, SIZE_MAX, ret_plan, &too_many, err);
}

esdm_status
esdm__index_resolve_most(esdm__index *index, const esdm__box *request, size_t most,
                         esdm__plan *ret_plan, bool *ret_too_many, esdm_error *err)
{
    *ret_too_many = false;
    if (request->rank != index->rank)
        return esdm__error_set(err, ESDM_EINVAL, "a request of rank %u for a dataset of rank %u",
                               request->rank, index->rank);
    if (index->incomplete)
        return esdm__error_set(err, ESDM_ENOMEM,
                               "out of memory when the index was updated; reopen the container");
    if (esdm__box_is_empty(request)) {
        *ret_plan = (esdm__plan){.covered = true};
        return ESDM_OK;
    }
    hits h;
    h.index = index;
    h.request = request;
    h.items = h.inside;
    h.count = 0;
    h.capacity = HITS_INSIDE;
    h.inline_bytes = 0;
    h.strided = 0;
    h.most = most;
    h.too_many = false;
    h.unloaded = NULL;
    esdm__bounds_from_box(h.bounds, request);
    esdm__plan plan;
    esdm_status st = search(&h, err);
    if (st == ESDM_OK && !h.too_many)
        st = build(&h, &plan, err);
    if (h.items != h.inside)
        free(h.items);
    if (st == ESDM_OK && !h.too_many)
        *ret_plan = plan;
    *ret_too_many = st == ESDM_OK && h.too_many;
    return st;
}

/* Counting */

typedef struct counter {
    const esdm__directory *directory;
    uint32_t rank;
    uint64_t bounds[2 * ESDM_MAX_RANK];
    size_t count;
    size_t limit;
} counter;

static bool
count_record(uint32_t row, void *user)
{
    counter *c = user;
    (void) row;
    return ++c->count < c->limit;
}

static bool
count_page(uint32_t at, void *user)
{
    counter *c = user;
    const esdm__directory *directory = c->directory;
    const esdm__page *page = directory->slots[at].loaded;
    if (page != NULL)
        return esdm__rtree_query(&page->tree, page->records.bounds, c->bounds, count_record, c);
    const uint64_t *hull = esdm__bounds_at(c->rank, directory->bounds, at);
    uint64_t common[2 * ESDM_MAX_RANK];
    esdm__bounds_copy(c->rank, common, hull);
    esdm__bounds_clip(c->rank, common, c->bounds);
    double part = esdm__bounds_volume(c->rank, common) / esdm__bounds_volume(c->rank, hull);
    part = part < 1 ? part : 1; /* also of volumes beyond double's range */
    c->count += 1 + (size_t) (part * (double) directory->slots[at].entry.records);
    return c->count < c->limit;
}

size_t
esdm__index_count(esdm__index *index, const esdm__box *box, size_t limit)
{
    counter c = {.directory = index->directory, .rank = index->rank, .limit = limit};
    if (box->rank != index->rank || esdm__box_is_empty(box) || limit == 0)
        return 0;
    esdm__bounds_from_box(c.bounds, box);
    if (query_pages(index, c.bounds, count_page, &c) &&
        query_pending(index, index->own, c.bounds, count_record, &c))
        (void) query_pending(index, index->others, c.bounds, count_record, &c);
    return c.count < limit ? c.count : limit;
}

void
esdm__plan_clear(esdm__plan *plan)
{
    ownership *own = plan->ownership;
    if (own != NULL) {
        for (size_t i = 0; i < own->npages; i++)
            esdm__page_unref(own->pages[i]);
        esdm__packs_unref(own->packs);
        free(own);
    }
    *plan = (esdm__plan){0};
}
