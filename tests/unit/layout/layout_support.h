/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TESTS_LAYOUT_SUPPORT_H
#define ESDM_TESTS_LAYOUT_SUPPORT_H

/** @file What the tests of the layout layer share: random boxes, and a store of pages in memory. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "layout/index.h"

typedef struct rng {
    uint64_t state;
} rng;

static inline uint64_t
rng_below(rng *r, uint64_t n)
{
    r->state = r->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (r->state >> 33) % n;
}

/* A random box, not empty, inside `size`. */
static inline void
random_box(rng *r, uint32_t rank, const uint64_t *size, esdm__box *box)
{
    box->rank = rank;
    for (uint32_t d = 0; d < rank; d++) {
        box->lo[d] = rng_below(r, size[d]);
        box->n[d] = 1 + rng_below(r, size[d] - box->lo[d]);
    }
}

static inline double
now_ms(void)
{
    struct timespec now;
    (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double) now.tv_sec * 1e3 + (double) now.tv_nsec / 1e6;
}

/** Published pages, as a metadata store keeps them. */
typedef struct store_page {
    esdm_meta_page entry; /* box: owned */
    uint8_t *data;
    size_t bytes;
    bool removed;
} store_page;

typedef struct store {
    store_page *pages; /* page number: index + 1 */
    size_t count;
    size_t capacity;
    uint64_t snapshot;
} store;

static inline void
store_clear(store *s)
{
    for (size_t i = 0; i < s->count; i++) {
        free(s->pages[i].data);
        free((void *) (uintptr_t) s->pages[i].entry.box);
    }
    free(s->pages);
    *s = (store){0};
}

/* Copies a set into the store as the next snapshot; returns the first page's number. */
static inline uint64_t
store_publish(store *s, const esdm__page_set *set)
{
    uint64_t first = s->count + 1;
    s->snapshot++;
    for (size_t i = 0; i < set->nmerged; i++) {
        assert_false(s->pages[set->merged[i] - 1].removed);
        s->pages[set->merged[i] - 1].removed = true;
    }
    if (s->count + set->npages > s->capacity) {
        s->capacity = 2 * (s->count + set->npages);
        s->pages = realloc(s->pages, s->capacity * sizeof *s->pages);
    }
    for (size_t i = 0; i < set->npages; i++) {
        const esdm_meta_new_page *p = &set->pages[i];
        uint64_t *box = malloc((2 * p->rank + 1) * sizeof *box);
        for (uint32_t d = 0; d < 2 * p->rank; d++)
            box[d] = p->box[d];
        store_page *page = &s->pages[s->count++];
        *page = (store_page){.entry = {.page = s->count,
                                       .dataset = 1,
                                       .records = p->records,
                                       .added = s->snapshot,
                                       .level = p->level,
                                       .absolute = p->absolute,
                                       .raw_bytes = p->raw_bytes,
                                       .stored_bytes = p->stored_bytes,
                                       .rank = p->rank,
                                       .box = box},
                             .data = malloc(p->bytes),
                             .bytes = p->bytes};
        memcpy(page->data, p->data, p->bytes);
    }
    return first;
}

static inline size_t
store_live_pages(const store *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->count; i++)
        n += !s->pages[i].removed;
    return n;
}

/* Loads some pages as the engine does. */
static inline void
store_load(const store *s, esdm__index *index, const uint64_t *pages, size_t count)
{
    esdm_error err = {0};
    for (size_t i = 0; i < count; i++) {
        const store_page *p = &s->pages[pages[i] - 1];
        esdm_meta_page entry;
        esdm__page *loaded;
        assert_true(esdm__index_page_entry(index, pages[i], &entry));
        if (esdm__page_decode(&entry, p->data, p->bytes, &loaded, &err) != ESDM_OK)
            fail_msg("%s", err.message);
        assert_int_equal(ESDM_OK, esdm__index_insert(index, pages[i], loaded, NULL));
    }
}

/* An index of all live pages, none loaded. */
static inline esdm__index *
store_open(const store *s, uint32_t rank)
{
    esdm__index *index = esdm__index_new(rank);
    for (size_t i = 0; i < s->count; i++) {
        if (!s->pages[i].removed)
            assert_int_equal(esdm__index_add_page(index, &s->pages[i].entry, NULL), ESDM_OK);
    }
    return index;
}

/* Commits as the engine does. */
static inline void
store_commit(store *s, esdm__index *index, bool merge)
{
    esdm_error err = {0};
    uint64_t *candidates = NULL;
    size_t ncandidates = 0;
    if (merge)
        assert_int_equal(esdm__index_merge_candidates(index, &candidates, &ncandidates, &err),
                         ESDM_OK);
    for (size_t i = 0; i < ncandidates; i++) {
        esdm__box box;
        esdm_meta_page entry;
        uint64_t *missing;
        size_t nmissing;
        assert_true(esdm__index_page_entry(index, candidates[i], &entry));
        esdm__box_set(&box, entry.rank, entry.box, entry.box + entry.rank);
        assert_int_equal(esdm__index_missing(index, &box, &missing, &nmissing, &err), ESDM_OK);
        store_load(s, index, missing, nmissing);
        free(missing);
    }
    esdm__page_set set;
    if (esdm__index_encode(index, candidates, ncandidates, &set, &err) != ESDM_OK)
        fail_msg("%s", err.message);
    uint64_t first = store_publish(s, &set);
    esdm__index_committed(index, &set, first, s->snapshot);
    esdm__page_set_clear(&set);
    free(candidates);
}

/* Resolves, loading what is missing. */
static inline void
store_resolve(const store *s, esdm__index *index, const esdm__box *request, esdm__plan *plan)
{
    esdm_error err = {0};
    uint64_t *missing;
    size_t nmissing;
    assert_int_equal(esdm__index_missing(index, request, &missing, &nmissing, &err), ESDM_OK);
    store_load(s, index, missing, nmissing);
    free(missing);
    if (esdm__index_resolve(index, request, plan, &err) != ESDM_OK)
        fail_msg("%s", err.message);
}

#endif
