/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file What a commit publishes, and when it conflicts. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ids.h"
#include "meta.h"

static void
test_commit__new_container_is_found(void **state)
{
    fixture *f = *state;
    uint64_t before_ns = esdm__now_ns();
    esdm_meta_commit commit = meta_new_commit(ESDM_META_CREATE);
    esdm_meta_new_page pages[2] = {meta_page(1, 5, 1), meta_page(2, 7, 1)};
    esdm_meta_length lengths[2] = {{.dimension = 4, .length = 40}, {.dimension = 1, .length = 10}};
    esdm_meta_committed committed = {0};
    commit.name = "exp/run 1 ä.nc";
    commit.pages = pages;
    commit.npages = 2;
    commit.lengths = lengths;
    commit.nlengths = 2;
    commit.message = "first";
    assert_ok(meta()->commit(f->store, &commit, &committed, &place_error));
    assert_true(committed.time_ns >= before_ns);

    esdm_meta_container record = meta_record(f, commit.name);
    assert_int_equal(record.container, committed.container);
    assert_string_equal(record.uuid, commit.uuid);
    assert_int_equal(record.snapshot, 1);
    assert_int_equal(record.structure, 1);
    assert_int_equal(record.created_ns, committed.time_ns);
    assert_int_equal(record.modified_ns, committed.time_ns);
    assert_int_equal(record.raw_bytes, 12000);
    assert_int_equal(record.stored_bytes, 120);
    assert_int_equal(record.fragments, 12);
    assert_int_equal(record.datasets, 1);

    esdm_meta_snapshot loaded = {0};
    assert_ok(meta()->snapshot_open(f->store, commit.name, 0, 0, 0, &loaded, &place_error));
    assert_int_equal(loaded.snapshot, 1);
    assert_int_equal(loaded.structure, 1);
    assert_int_equal(loaded.document_bytes, commit.document_bytes);
    assert_string_equal(loaded.document, commit.document);
    assert_int_equal(loaded.nlengths, 2);
    assert_int_equal(loaded.lengths[0].dimension, 1);
    assert_int_equal(loaded.lengths[0].length, 10);
    assert_int_equal(loaded.lengths[1].dimension, 4);
    assert_int_equal(loaded.lengths[1].length, 40);
    assert_memory_equal(&loaded.record, &record, sizeof record);
    free(loaded.document);
    free(loaded.lengths);
    meta()->unpin(f->store, loaded.record.container, loaded.snapshot);
}

static void
test_commit__taken_name_is_refused(void **state)
{
    fixture *f = *state;
    esdm_meta_committed first = meta_create(f->store, "a");
    esdm_meta_committed second = {.container = 99};
    assert_status(meta_try_create(f->store, "a", &second), ESDM_EEXIST);
    assert_int_equal(second.container, 99);
    assert_non_null(strstr(place_error.message, "'a'"));
    assert_int_equal(meta_record(f, "a").container, first.container);
    meta_create(f->store, "A");
    meta_create(f->store, "a/b");
}

static void
test_commit__replace_takes_the_name_over(void **state)
{
    fixture *f = *state;
    esdm_meta_committed old = meta_create(f->store, "a");
    esdm_meta_commit commit = meta_new_commit(ESDM_META_REPLACE);
    esdm_meta_committed committed = {0};
    commit.name = "a";
    assert_ok(meta()->commit(f->store, &commit, &committed, &place_error));
    assert_int_equal(committed.replaced, old.container);
    assert_true(committed.container != old.container);
    assert_int_equal(meta_record(f, "a").container, committed.container);
    assert_true(meta_is_garbage(f->store, old.container));
    commit = meta_new_commit(ESDM_META_REPLACE);
    commit.name = "free name";
    assert_ok(meta()->commit(f->store, &commit, &committed, &place_error));
    assert_int_equal(committed.replaced, 0);
}

static void
test_commit__updates_add_pages_and_sums(void **state)
{
    fixture *f = *state;
    esdm_meta_committed committed = meta_create(f->store, "a");
    uint64_t container = committed.container;
    uint64_t last_page = 0;
    for (uint64_t i = 0; i < 10; i++) {
        assert_ok(meta_append(f->store, container, 3, &committed));
        assert_int_equal(committed.container, container);
        assert_int_equal(committed.snapshot, i + 2);
        assert_int_equal(committed.structure, 1);
        assert_true(committed.first_page > last_page);
        last_page = committed.first_page;
    }
    esdm_meta_container record = meta_record(f, "a");
    assert_int_equal(record.snapshot, 11);
    assert_int_equal(record.raw_bytes, 30000);
    assert_int_equal(record.stored_bytes, 300);
    assert_int_equal(record.fragments, 30);
    assert_int_equal(record.modified_ns, committed.time_ns);
    assert_int_equal(meta_count_pages(f->store, container, 11, 0), 10);
    assert_int_equal(meta_count_pages(f->store, container, 11, 1), 10);
    assert_int_equal(meta_count_pages(f->store, container, 11, 2), 0);
}

/* ---- pages ---------------------------------------------------------------------------------- */

typedef struct expected_pages {
    const esdm_meta_new_page *pages;
    uint64_t first_page;
    size_t seen;
} expected_pages;

static bool
compare_page(const esdm_meta_page *page, void *user)
{
    expected_pages *expected = user;
    const esdm_meta_new_page *wanted = &expected->pages[page->page - expected->first_page];
    expected->seen++;
    assert_int_equal(page->dataset, wanted->dataset);
    assert_int_equal(page->records, wanted->records);
    assert_int_equal(page->level, wanted->level);
    assert_int_equal(page->absolute, wanted->absolute);
    assert_true(page->raw_bytes == wanted->raw_bytes);
    assert_true(page->stored_bytes == wanted->stored_bytes);
    assert_int_equal(page->added, 1);
    assert_int_equal(page->rank, wanted->rank);
    if (wanted->rank > 0)
        assert_memory_equal(page->box, wanted->box,
                            (size_t) 2 * wanted->rank * sizeof *wanted->box);
    return true;
}

static void
test_commit__pages_come_back_as_they_were(void **state)
{
    enum { LARGE = 5 << 20 };
    fixture *f = *state;
    uint64_t box[64];
    uint8_t *large = malloc(LARGE);
    assert_non_null(large);
    for (size_t i = 0; i < LARGE; i++)
        large[i] = (uint8_t) (i * 31 >> 3);
    for (size_t i = 0; i < 64; i++)
        box[i] = i % 2 != 0 ? UINT64_MAX - i : i;
    esdm_meta_new_page pages[4] = {
        {.dataset = 1, .rank = 0, .data = "x", .bytes = 1, .records = 1},
        {.dataset = UINT32_MAX,
         .rank = 32,
         .box = box,
         .data = large,
         .bytes = LARGE,
         .records = UINT32_MAX,
         .level = 7,
         .absolute = true,
         .raw_bytes = INT64_MAX,
         .stored_bytes = 5},
        {.dataset = 2, .rank = 1, .box = box, .data = NULL, .bytes = 0, .records = 0},
        {.dataset = 2, .rank = 2, .box = box, .data = "\0\0\0", .bytes = 3, .records = 2},
    };
    esdm_meta_commit commit = meta_new_commit(ESDM_META_CREATE);
    esdm_meta_committed committed = {0};
    commit.name = "a";
    commit.pages = pages;
    commit.npages = 4;
    assert_ok(meta()->commit(f->store, &commit, &committed, &place_error));
    expected_pages expected = {.pages = pages, .first_page = committed.first_page};
    assert_ok(meta()->page_list(f->store, committed.container, 1, 0, compare_page, &expected,
                                &place_error));
    assert_int_equal(expected.seen, 4);
    for (size_t i = 0; i < 4; i++) {
        void *data = NULL;
        size_t bytes = 99;
        assert_ok(
            meta()->page_load(f->store, committed.first_page + i, &data, &bytes, &place_error));
        assert_non_null(data);
        assert_int_equal(bytes, pages[i].bytes);
        if (bytes > 0)
            assert_memory_equal(data, pages[i].data, bytes);
        free(data);
    }
    void *data = NULL;
    size_t bytes = 0;
    assert_status(
        meta()->page_load(f->store, committed.first_page + 4, &data, &bytes, &place_error),
        ESDM_ENOENT);
    assert_null(data);
    free(large);
}

static bool
stop_at_once(const esdm_meta_page *page, void *user)
{
    (void) page;
    ++*(size_t *) user;
    return false;
}

static void
test_commit__page_list_stops_and_refuses(void **state)
{
    fixture *f = *state;
    esdm_meta_committed committed = meta_create(f->store, "a");
    size_t seen = 0;
    assert_ok(meta_append(f->store, committed.container, 1, &committed));
    assert_ok(meta_append(f->store, committed.container, 1, &committed));
    assert_ok(
        meta()->page_list(f->store, committed.container, 3, 0, stop_at_once, &seen, &place_error));
    assert_int_equal(seen, 1);
    assert_status(
        meta()->page_list(f->store, committed.container, 4, 0, stop_at_once, &seen, &place_error),
        ESDM_ENOENT);
    assert_status(meta()->page_list(f->store, committed.container, UINT64_C(1) << 40, 0,
                                    stop_at_once, &seen, &place_error),
                  ESDM_ENOENT);
    assert_status(meta()->page_list(f->store, committed.container + 1, 1, 0, stop_at_once, &seen,
                                    &place_error),
                  ESDM_ENOENT);
    assert_int_equal(seen, 1);
}

/* ---- lengths -------------------------------------------------------------------------------- */

static void
commit_length(const fixture *f, uint64_t container, uint32_t dimension, uint64_t length)
{
    esdm_meta_length one = {.dimension = dimension, .length = length};
    esdm_meta_commit commit = meta_new_commit(ESDM_META_UPDATE);
    esdm_meta_committed committed;
    commit.container = container;
    commit.lengths = &one;
    commit.nlengths = 1;
    assert_ok(meta()->commit(f->store, &commit, &committed, &place_error));
}

static void
test_commit__lengths_merge_by_maximum(void **state)
{
    static const struct {
        uint32_t dimension;
        uint64_t length, first, second;
    } steps[] = {{3, 10, 10, 0},
                 {3, 7, 10, 0},
                 {9, UINT64_MAX - 1, 10, UINT64_MAX - 1},
                 {3, 11, 11, UINT64_MAX - 1},
                 {9, 0, 11, UINT64_MAX - 1}};
    fixture *f = *state;
    esdm_meta_committed committed = meta_create(f->store, "a");
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        esdm_meta_snapshot loaded = {0};
        commit_length(f, committed.container, steps[i].dimension, steps[i].length);
        assert_ok(meta()->snapshot_open(f->store, "a", 0, 0, 0, &loaded, &place_error));
        assert_int_equal(loaded.nlengths, steps[i].second > 0 ? 2 : 1);
        assert_int_equal(loaded.lengths[0].dimension, 3);
        assert_true(loaded.lengths[0].length == steps[i].first);
        if (steps[i].second > 0) {
            assert_int_equal(loaded.lengths[1].dimension, 9);
            assert_true(loaded.lengths[1].length == steps[i].second);
        }
        free(loaded.document);
        free(loaded.lengths);
        meta()->unpin(f->store, loaded.record.container, loaded.snapshot);
    }
}

/* ---- structure ------------------------------------------------------------------------------ */

static esdm_status
commit_document(const fixture *f, uint64_t container, uint64_t structure, const char *document,
                esdm_meta_committed *ret)
{
    esdm_meta_commit commit = meta_new_commit(ESDM_META_UPDATE);
    commit.container = container;
    commit.structure = structure;
    commit.document = document;
    commit.document_bytes = strlen(document);
    commit.datasets = 5;
    return meta()->commit(f->store, &commit, ret, &place_error);
}

static void
test_commit__structure_change_that_lost_conflicts(void **state)
{
    fixture *f = *state;
    esdm_meta_committed committed = meta_create(f->store, "a");
    uint64_t container = committed.container;
    assert_ok(meta_append(f->store, container, 1, &committed));
    assert_ok(commit_document(f, container, 1, "{\"two\": 2}", &committed));
    assert_int_equal(committed.structure, 2);
    assert_int_equal(committed.snapshot, 3);
    assert_status(commit_document(f, container, 1, "{\"three\": 3}", &committed), ESDM_ECONFLICT);
    assert_non_null(strstr(place_error.message, "structure"));
    assert_status(commit_document(f, container, 3, "{\"three\": 3}", &committed), ESDM_ECONFLICT);
    assert_int_equal(meta_record(f, "a").snapshot, 3);
    assert_int_equal(meta_record(f, "a").datasets, 5);
    assert_ok(meta_append(f->store, container, 1, &committed)); /* only adds: no conflict */
    assert_int_equal(committed.structure, 2);

    esdm_meta_snapshot loaded = {0};
    assert_ok(meta()->snapshot_open(f->store, "a", 0, 0, 0, &loaded, &place_error));
    assert_string_equal(loaded.document, "{\"two\": 2}");
    free(loaded.document);
    assert_ok(meta()->snapshot_open(f->store, "a", 0, container, 2, &loaded, &place_error));
    assert_null(loaded.document);
    assert_int_equal(loaded.structure, 2);
    assert_ok(meta()->snapshot_open(f->store, "a", 0, container, 1, &loaded, &place_error));
    assert_non_null(loaded.document);
    free(loaded.document);
    assert_ok(meta()->snapshot_open(f->store, "a", 0, container + 1, 2, &loaded, &place_error));
    assert_non_null(loaded.document);
    free(loaded.document);
    for (int i = 0; i < 4; i++)
        meta()->unpin(f->store, container, 4);
}

static void
test_commit__garbage_conflicts(void **state)
{
    fixture *f = *state;
    esdm_meta_committed committed = meta_create(f->store, "a");
    uint64_t removed = 0;
    assert_ok(meta()->container_remove(f->store, "a", &removed, &place_error));
    assert_int_equal(removed, committed.container);
    assert_status(meta_append(f->store, removed, 1, &committed), ESDM_ECONFLICT);
    assert_non_null(strstr(place_error.message, "removed"));
    meta_create(f->store, "a");
    assert_status(meta_append(f->store, removed, 1, &committed), ESDM_ECONFLICT);
    assert_status(meta_append(f->store, 4711, 1, &committed), ESDM_ECONFLICT);
}

/* ---- merged pages --------------------------------------------------------------------------- */

static esdm_status
merge_pages(const fixture *f, uint64_t container, const uint64_t *merged, size_t nmerged,
            uint32_t records, esdm_meta_committed *ret)
{
    esdm_meta_commit commit = meta_new_commit(ESDM_META_UPDATE);
    esdm_meta_new_page page = meta_page(1, records, 3);
    page.absolute = true;
    page.level = 1;
    commit.container = container;
    commit.pages = &page;
    commit.npages = 1;
    commit.merged = merged;
    commit.nmerged = nmerged;
    return meta()->commit(f->store, &commit, ret, &place_error);
}

static void
test_commit__merged_pages_are_replaced(void **state)
{
    fixture *f = *state;
    uint64_t pages[4];
    esdm_meta_committed committed = meta_create(f->store, "a");
    uint64_t container = committed.container;
    for (size_t i = 0; i < 4; i++) {
        assert_ok(meta_append(f->store, container, 2, &committed));
        pages[i] = committed.first_page;
    }
    esdm_meta_snapshot old = meta_pin(f->store, "a", 0);
    esdm_meta_container before = meta_record(f, "a");
    assert_ok(merge_pages(f, container, pages, 3, 6, &committed));
    esdm_meta_container after = meta_record(f, "a");
    assert_int_equal(after.fragments, before.fragments);
    assert_int_equal(after.raw_bytes, before.raw_bytes);
    assert_int_equal(after.stored_bytes, before.stored_bytes);
    assert_int_equal(meta_count_pages(f->store, container, committed.snapshot, 0), 2);
    assert_int_equal(meta_count_pages(f->store, container, old.snapshot, 0), 4);

    /* A page that is not live, one that does not exist, one of another container. */
    uint64_t wrong[2] = {pages[3], pages[0]};
    uint64_t snapshot = committed.snapshot;
    esdm_meta_committed other = meta_create(f->store, "b");
    assert_ok(meta_append(f->store, other.container, 2, &other));
    assert_status(merge_pages(f, container, wrong, 2, 4, &committed), ESDM_ECONFLICT);
    wrong[1] = pages[3] + 1000;
    assert_status(merge_pages(f, container, wrong, 2, 4, &committed), ESDM_ECONFLICT);
    wrong[1] = other.first_page;
    assert_status(merge_pages(f, container, wrong, 2, 4, &committed), ESDM_ECONFLICT);
    assert_int_equal(meta_record(f, "a").snapshot, snapshot);
    assert_int_equal(meta_record(f, "a").fragments, before.fragments);
    assert_int_equal(meta_count_pages(f->store, container, snapshot, 0), 2);
    assert_int_equal(meta_record(f, "b").fragments, 2);
    void *data = NULL;
    size_t bytes = 0;
    assert_ok(meta()->page_load(f->store, pages[0], &data, &bytes, &place_error)); /* pinned */
    free(data);
    meta()->unpin(f->store, container, old.snapshot);
}

/* Yields `count` pages of one record, then the end, or the failure. */
typedef struct page_stream {
    uint32_t count;
    uint32_t yielded;
    esdm_status failure;
    esdm_meta_new_page page;
} page_stream;

static esdm_status
next_page(void *user, const esdm_meta_new_page **ret_page, esdm_error *err)
{
    page_stream *stream = user;
    if (stream->yielded == stream->count && stream->failure != ESDM_OK) {
        snprintf(err->message, sizeof err->message, "rank 3 went away");
        err->status = stream->failure;
        return stream->failure;
    }
    *ret_page = NULL;
    if (stream->yielded < stream->count) {
        stream->page = meta_page(2, 1, 100 + stream->yielded++);
        *ret_page = &stream->page;
    }
    return ESDM_OK;
}

static void
test_commit__streamed_pages_follow_those_at_hand(void **state)
{
    fixture *f = *state;
    for (int update = 0; update < 2; update++) {
        esdm_meta_commit commit = meta_new_commit(update ? ESDM_META_UPDATE : ESDM_META_CREATE);
        esdm_meta_new_page page = meta_page(1, 5, 1);
        uint8_t first_data[100]; /* the stream makes its pages in the same memory */
        uint64_t first_box[6];
        memcpy(first_data, page.data, sizeof first_data);
        memcpy(first_box, page.box, sizeof first_box);
        page.data = first_data;
        page.box = first_box;
        page_stream stream = {.count = 3};
        esdm_meta_committed committed = {0};
        commit.name = "streamed";
        commit.container = update ? meta_record(f, "streamed").container : 0;
        commit.structure = 1;
        commit.document = update ? NULL : commit.document;
        commit.pages = &page;
        commit.npages = 1;
        commit.next_page = next_page;
        commit.next_page_user = &stream;
        assert_ok(meta()->commit(f->store, &commit, &committed, &place_error));
        assert_int_equal(committed.snapshot, update + 1);

        esdm_meta_container record = meta_record(f, "streamed");
        assert_int_equal(record.fragments, 8 * (update + 1));
        assert_int_equal(record.raw_bytes, 8000 * (update + 1));
        assert_int_equal(record.stored_bytes, 80 * (update + 1));
        size_t pages = meta_count_pages(f->store, committed.container, committed.snapshot, 2);
        assert_int_equal(pages, 3 * (update + 1));
        for (uint32_t i = 0; i < 4; i++) {
            void *data = NULL;
            size_t bytes = 0;
            esdm_meta_new_page expected = i == 0 ? meta_page(1, 5, 1) : meta_page(2, 1, 99 + i);
            assert_ok(
                meta()->page_load(f->store, committed.first_page + i, &data, &bytes, &place_error));
            assert_int_equal(bytes, expected.bytes);
            assert_memory_equal(data, expected.data, bytes);
            free(data);
        }
    }
    esdm_meta_committed appended = {0};
    assert_ok(meta_append(f->store, meta_record(f, "streamed").container, 2, &appended));
    assert_int_equal(meta_record(f, "streamed").fragments, 18);
}

static void
test_commit__stream_that_fails_publishes_nothing(void **state)
{
    fixture *f = *state;
    for (int update = 0; update < 2; update++) {
        esdm_meta_commit commit = meta_new_commit(update ? ESDM_META_UPDATE : ESDM_META_CREATE);
        page_stream stream = {.count = 2, .failure = ESDM_EIO};
        esdm_meta_committed committed = {.container = 99};
        commit.name = "cut";
        commit.container = update ? meta_create(f->store, "cut").container : 0;
        commit.structure = 1;
        commit.next_page = next_page;
        commit.next_page_user = &stream;
        assert_status(meta()->commit(f->store, &commit, &committed, &place_error), ESDM_EIO);
        assert_non_null(strstr(place_error.message, "rank 3 went away"));
        assert_int_equal(committed.container, 99);
        esdm_meta_container record;
        esdm_status found = meta()->container_find(f->store, "cut", &record, &place_error);
        assert_int_equal(found, update ? ESDM_OK : ESDM_ENOENT);
        if (update) {
            assert_int_equal(record.snapshot, 1);
            assert_int_equal(record.fragments, 0);
            assert_int_equal(meta_count_pages(f->store, record.container, 1, 0), 0);
        }
    }
}

static void
test_commit__wrong_arguments_are_refused(void **state)
{
    fixture *f = *state;
    esdm_meta_committed committed = {.container = 5};
    esdm_meta_commit commit = meta_new_commit(ESDM_META_CREATE);
    uint64_t page = 1;
    assert_status(meta()->commit(f->store, &commit, &committed, &place_error), ESDM_EINVAL);
    commit.name = "a";
    commit.document = NULL;
    assert_status(meta()->commit(f->store, &commit, &committed, &place_error), ESDM_EINVAL);
    commit = meta_new_commit(ESDM_META_CREATE);
    commit.name = "a";
    commit.uuid = "short";
    assert_status(meta()->commit(f->store, &commit, &committed, NULL), ESDM_EINVAL);
    commit = meta_new_commit(ESDM_META_CREATE);
    commit.name = "a";
    commit.merged = &page;
    commit.nmerged = 1;
    assert_status(meta()->commit(f->store, &commit, &committed, &place_error), ESDM_EINVAL);
    commit = meta_new_commit(ESDM_META_UPDATE);
    assert_status(meta()->commit(f->store, &commit, &committed, &place_error), ESDM_EINVAL);
    commit.kind = (esdm_meta_commit_kind) 17;
    assert_status(meta()->commit(f->store, &commit, &committed, &place_error), ESDM_EINVAL);
    assert_int_equal(committed.container, 5);
}

static void
test_commit__durable_ones_work(void **state)
{
    fixture *f = *state;
    esdm_meta_committed committed = meta_create(f->store, "a");
    for (int i = 0; i < 6; i++) {
        esdm_meta_commit commit = meta_new_commit(ESDM_META_UPDATE);
        commit.container = committed.container;
        commit.durable = i % 3 != 0;
        assert_ok(meta()->commit(f->store, &commit, &committed, &place_error));
    }
    assert_int_equal(meta_record(f, "a").snapshot, 7);
}

static void
test_commit__is_seen_by_other_handles_at_once(void **state)
{
    fixture *f = *state;
    void *second = meta_open(f, false);
    esdm_meta_committed committed = meta_create(f->store, "a");
    for (int i = 0; i < 20; i++) {
        esdm_meta_container record;
        assert_ok(meta_append(i % 2 == 0 ? f->store : second, committed.container, 1, &committed));
        assert_ok(
            meta()->container_find(i % 2 == 0 ? second : f->store, "a", &record, &place_error));
        assert_int_equal(record.snapshot, committed.snapshot);
    }
    meta()->close(second);
}

const struct CMUnitTest meta_commit_tests[] = {
    WITH_STORE(test_commit__new_container_is_found),
    WITH_STORE(test_commit__taken_name_is_refused),
    WITH_STORE(test_commit__replace_takes_the_name_over),
    WITH_STORE(test_commit__updates_add_pages_and_sums),
    WITH_STORE(test_commit__pages_come_back_as_they_were),
    WITH_STORE(test_commit__page_list_stops_and_refuses),
    WITH_STORE(test_commit__lengths_merge_by_maximum),
    WITH_STORE(test_commit__structure_change_that_lost_conflicts),
    WITH_STORE(test_commit__garbage_conflicts),
    WITH_STORE(test_commit__merged_pages_are_replaced),
    WITH_STORE(test_commit__streamed_pages_follow_those_at_hand),
    WITH_STORE(test_commit__stream_that_fails_publishes_nothing),
    WITH_STORE(test_commit__wrong_arguments_are_refused),
    WITH_STORE(test_commit__durable_ones_work),
    WITH_STORE(test_commit__is_seen_by_other_handles_at_once),
};
const size_t meta_commit_count = sizeof meta_commit_tests / sizeof meta_commit_tests[0];
