/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file States of a store, and containers that come from another one. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta.h"

#define UUID "00112233445566778899aabbccddeeff"

static void *
open_in_any_state(const fixture *f)
{
    esdm_plugin_config config = f->place.config;
    void *store = NULL;
    config.migrating = true;
    assert_ok(meta()->open(&config, false, &store, &place_error));
    return store;
}

static void
expect_state(void *store, esdm_meta_state expected, const char *text)
{
    esdm_meta_state state = (esdm_meta_state) 77;
    char note[ESDM_META_NOTE_BYTES] = "untouched";
    assert_ok(meta()->state(store, &state, note, &place_error));
    assert_int_equal(state, expected);
    assert_string_equal(note, text);
}

static void
test_migration__leaving_store_is_read_only(void **state)
{
    fixture *f = *state;
    esdm_meta_committed committed = meta_create(f->store, "a");
    uint64_t number = 0;
    expect_state(f->store, ESDM_META_ACTIVE, "");
    void *migrating = open_in_any_state(f);
    assert_ok(meta()->set_state(migrating, ESDM_META_LEAVING, "goes to \"x\"; 100%", &place_error));
    expect_state(migrating, ESDM_META_LEAVING, "goes to \"x\"; 100%");

    /* A handle that was open before, and one that is opened now. */
    void *later = meta_open(f, false);
    void *const handles[] = {f->store, later};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(meta_pin(handles[i], "a", 0).snapshot, 1);
        meta()->unpin(handles[i], committed.container, 1);
        assert_status(meta_append(handles[i], committed.container, 1, &committed), ESDM_EACCES);
        assert_status(meta_try_create(handles[i], "b", &committed), ESDM_EACCES);
        assert_status(meta()->container_remove(handles[i], "a", &number, &place_error),
                      ESDM_EACCES);
        assert_status(
            meta()->container_move(handles[i], "a", "b", false, NULL, &number, &place_error),
            ESDM_EACCES);
    }
    assert_true(meta()->is_writable(f->store));
    assert_false(meta()->is_writable(later));
    meta()->close(later);
    assert_ok(meta_append(migrating, committed.container, 1, &committed));

    assert_ok(meta()->set_state(migrating, ESDM_META_ACTIVE, "", &place_error));
    meta()->close(migrating);
    assert_ok(meta_append(f->store, committed.container, 1, &committed));
    expect_state(f->store, ESDM_META_ACTIVE, "");
    assert_ok(meta()->check(&f->place.config, NULL, NULL, &place_error));
}

static void
test_migration__closed_stores_say_why(void **state)
{
    static const esdm_meta_state closed[] = {ESDM_META_ARRIVING, ESDM_META_LEFT};
    fixture *f = *state;
    meta_create(f->store, "a");
    void *migrating = open_in_any_state(f);
    for (size_t i = 0; i < 2; i++) {
        void *store = NULL;
        char id[ESDM_META_UUID_BYTES];
        const esdm_plugin_config *config = &f->place.config;
        assert_ok(meta()->set_state(migrating, closed[i], "was moved to y", &place_error));
        assert_status(meta()->open(config, false, &store, &place_error), ESDM_ENOTSUP);
        assert_non_null(strstr(place_error.message, "was moved to y"));
        assert_status(meta()->open(config, true, &store, &place_error), ESDM_ENOTSUP);
        assert_null(store);
        assert_status(meta()->make(config, false, NULL, NULL, &place_error), ESDM_ENOTSUP);
        assert_status(meta()->make(config, true, NULL, NULL, &place_error), ESDM_ENOTSUP);
        assert_status(meta()->check(config, NULL, NULL, &place_error), ESDM_ENOTSUP);
        assert_status(meta()->remove(config, true, NULL, NULL, &place_error), ESDM_ENOTSUP);
        assert_status(meta()->remove(config, false, NULL, NULL, &place_error), ESDM_ENOTSUP);
        assert_non_null(strstr(place_error.message, "was moved to y"));
        assert_ok(meta()->site_id(config, id, &place_error));
        assert_string_equal(id, PLACE_SITE);
        void *again = open_in_any_state(f);
        expect_state(again, closed[i], "was moved to y");
        assert_int_equal(meta_pin(again, "a", 0).snapshot, 1);
        meta()->close(again);
    }
    assert_ok(meta()->set_state(migrating, ESDM_META_ACTIVE, "", &place_error));
    meta()->close(migrating);
    void *store = meta_open(f, false);
    meta()->close(store);
}

/* ---- import --------------------------------------------------------------------------------- */

static const esdm_meta_attribute attributes[] = {
    {.dataset = 0, .name = "institution", .text = "Gro\xdfwetter"},
    {.dataset = 0, .name = "levels", .text = "7", .number = 7, .has_number = true},
    {.dataset = 0, .name = "levels", .text = "inf", .number = INFINITY, .has_number = true},
    {.dataset = 3, .dataset_path = "/g/tas", .name = "zz", .text = ""},
    {.dataset = 3, .dataset_path = "/g/tas", .name = "units", .text = "K"},
    {.dataset = 3,
     .dataset_path = "/g/tas",
     .name = "third",
     .text = "0.33333333333333331",
     .number = 1.0 / 3.0,
     .has_number = true},
    {.dataset = 3,
     .dataset_path = "/g/tas",
     .name = "tiny",
     .text = "5e-324",
     .number = 5e-324,
     .has_number = true},
};
enum { ATTRIBUTES = sizeof attributes / sizeof attributes[0], PAGES = 2500 };

static const esdm_meta_length lengths[] = {{.dimension = 2, .length = 8},
                                           {.dimension = 7, .length = UINT64_MAX - 1}};

static const esdm_meta_import_snapshot snapshots[] = {
    {.snapshot = 4,
     .parent = 3,
     .structure = 2,
     .time_ns = 1000,
     .writer = "me@here:1",
     .message = "",
     .document = "{\"two\": 2}",
     .document_bytes = 10},
    {.snapshot = 6,
     .parent = 5,
     .structure = 2,
     .time_ns = 2000,
     .writer = "\xff",
     .message = "a \"message\"\n",
     .lengths = lengths,
     .nlengths = 2},
    {.snapshot = 9,
     .parent = 8,
     .structure = 5,
     .time_ns = 3000,
     .writer = "me@here:2",
     .message = "",
     .document = "{\"five\": 5}",
     .document_bytes = 11,
     .lengths = lengths,
     .nlengths = 1},
};

/* Pages of the datasets 1, 2, 3 in turn; every third one goes with snapshot 6, every fifth comes
 * with 6, all others are there from snapshot 2 on. */
typedef struct page_maker {
    uint64_t next;
    uint64_t fail_at;
} page_maker;

static uint64_t
added(uint64_t i)
{
    return i % 5 == 0 ? 6 : 2;
}

static uint64_t
removed(uint64_t i)
{
    return i % 3 == 0 && i % 5 != 0 ? 6 : 0;
}

static esdm_status
make_page(void *user, esdm_meta_import_page *ret_page, esdm_error *err)
{
    page_maker *maker = user;
    uint64_t i = maker->next++;
    if (i == maker->fail_at) {
        err->status = ESDM_EIO;
        (void) snprintf(err->message, sizeof err->message, "no page");
        return ESDM_EIO;
    }
    *ret_page = (esdm_meta_import_page){.page = meta_page((uint32_t) (1 + i / 900), 1, i),
                                        .added = added(i),
                                        .removed = removed(i)};
    return ESDM_OK;
}

static esdm_meta_import
whole_import(const char *name, page_maker *maker)
{
    return (esdm_meta_import){
        .name = name,
        .record = {.uuid = UUID,
                   .snapshot = 9,
                   .structure = 5,
                   .created_ns = 500,
                   .modified_ns = 3000,
                   .raw_bytes = 12345,
                   .stored_bytes = 678,
                   .fragments = 90,
                   .datasets = 3},
        .snapshots = snapshots,
        .nsnapshots = 3,
        .attributes = attributes,
        .nattributes = ATTRIBUTES,
        .npages = PAGES,
        .next_page = make_page,
        .user = maker,
    };
}

typedef struct seen_pages {
    const fixture *f;
    uint64_t snapshot;
    size_t count;
} seen_pages;

static bool
check_page(const esdm_meta_page *page, void *user)
{
    seen_pages *seen = user;
    assert_true(page->added <= seen->snapshot);
    assert_true(page->added == 2 || page->added == 6);
    assert_int_equal(page->rank, 3);
    uint64_t i = page->box[0]; /* see meta_page() */
    assert_int_equal(page->dataset, 1 + i / 900);
    assert_int_equal(page->added, added(i));
    assert_true(removed(i) == 0 || removed(i) > seen->snapshot);
    seen->count++;
    return true;
}

static size_t
pages_at(uint64_t snapshot)
{
    size_t count = 0;
    for (uint64_t i = 0; i < PAGES; i++)
        count += added(i) <= snapshot && (removed(i) == 0 || removed(i) > snapshot);
    return count;
}

static bool
check_attribute(const esdm_meta_attribute *got, void *user)
{
    const esdm_meta_attribute *wanted = &attributes[(*(size_t *) user)++];
    assert_int_equal(got->dataset, wanted->dataset);
    assert_string_equal(got->dataset_path != NULL ? got->dataset_path : "(none)",
                        wanted->dataset_path != NULL ? wanted->dataset_path : "(none)");
    assert_string_equal(got->name, wanted->name);
    assert_string_equal(got->text, wanted->text);
    assert_int_equal(got->has_number, wanted->has_number);
    if (wanted->has_number)
        assert_memory_equal(&got->number, &wanted->number, sizeof got->number);
    return true;
}

static void
check_snapshots(const fixture *f, uint64_t container)
{
    for (size_t i = 0; i < 3; i++) {
        const esdm_meta_import_snapshot *wanted = &snapshots[i];
        esdm_meta_snapshot loaded = {0};
        seen_pages seen = {.f = f, .snapshot = wanted->snapshot};
        assert_ok(meta()->snapshot_open(f->store, "moved", wanted->snapshot, 0, 0, &loaded,
                                        &place_error));
        assert_int_equal(loaded.structure, wanted->structure);
        assert_string_equal(loaded.document, snapshots[i == 2 ? 2 : 0].document);
        assert_int_equal(loaded.nlengths, wanted->nlengths);
        for (size_t k = 0; k < loaded.nlengths; k++) {
            assert_int_equal(loaded.lengths[k].dimension, lengths[k].dimension);
            assert_true(loaded.lengths[k].length == lengths[k].length);
        }
        free(loaded.document);
        free(loaded.lengths);
        assert_ok(meta()->page_list(f->store, container, wanted->snapshot, 0, check_page, &seen,
                                    &place_error));
        assert_int_equal(seen.count, pages_at(wanted->snapshot));
        meta()->unpin(f->store, container, wanted->snapshot);
    }
    assert_int_equal(meta_count_snapshots(f->store, "moved"), 3);
}

static void
test_migration__imported_container_is_whole(void **state)
{
    fixture *f = *state;
    page_maker maker = {.fail_at = UINT64_MAX};
    esdm_meta_import import = whole_import("moved", &maker);
    esdm_meta_container record;
    size_t nattributes = 0;
    meta_create(f->store, "before");
    void *migrating = open_in_any_state(f);
    assert_ok(meta()->import(migrating, &import, &place_error));
    meta()->close(migrating);
    assert_ok(meta()->container_find(f->store, "moved", &record, &place_error));
    uint64_t container = record.container;
    assert_true(container > 0);
    record.container = 0;
    assert_memory_equal(&record, &import.record, sizeof record);
    check_snapshots(f, container);
    assert_ok(meta()->attributes(f->store, container, check_attribute, &nattributes, &place_error));
    assert_int_equal(nattributes, ATTRIBUTES);

    /* It goes on as any other. */
    esdm_meta_committed committed;
    assert_ok(meta_append(f->store, container, 2, &committed));
    assert_int_equal(committed.snapshot, 10);
    assert_int_equal(committed.structure, 5);
    assert_true(committed.time_ns > 3000);
    assert_int_equal(meta_count_pages(f->store, container, 10, 0), pages_at(9) + 1);
    assert_ok(meta()->check(&f->place.config, NULL, NULL, &place_error));
}

static bool
count_match(const char *name, const char *path, void *user)
{
    assert_string_equal(name, "moved");
    assert_string_equal(path, "/g/tas");
    ++*(size_t *) user;
    return true;
}

static void
test_migration__imported_container_is_found(void **state)
{
    fixture *f = *state;
    page_maker maker = {.fail_at = UINT64_MAX};
    esdm_meta_import import = whole_import("moved", &maker);
    esdm_meta_condition condition = {.attribute = "units", .op = ESDM_META_EQ, .text = "K"};
    size_t found = 0;
    import.npages = 0;
    assert_ok(meta()->import(f->store, &import, &place_error));
    assert_ok(meta()->find(f->store, &condition, 1, count_match, &found, &place_error));
    assert_int_equal(found, 1);
}

static void
test_migration__failed_import_leaves_nothing(void **state)
{
    fixture *f = *state;
    page_maker maker = {.fail_at = PAGES - 10};
    esdm_meta_import import = whole_import("moved", &maker);
    esdm_meta_container record;
    assert_status(meta()->import(f->store, &import, &place_error), ESDM_EIO);
    assert_non_null(strstr(place_error.message, "no page"));
    assert_status(meta()->container_find(f->store, "moved", &record, &place_error), ESDM_ENOENT);
    maker = (page_maker){.fail_at = UINT64_MAX};
    meta_create(f->store, "moved");
    assert_status(meta()->import(f->store, &import, &place_error), ESDM_EEXIST);
    import.name = "other";
    import.nsnapshots = 2;
    assert_status(meta()->import(f->store, &import, &place_error), ESDM_EINVAL);
    import.nsnapshots = 0;
    assert_status(meta()->import(f->store, &import, &place_error), ESDM_EINVAL);
    assert_status(meta()->container_find(f->store, "other", &record, &place_error), ESDM_ENOENT);
}

const struct CMUnitTest meta_migration_tests[] = {
    WITH_STORE(test_migration__leaving_store_is_read_only),
    WITH_STORE(test_migration__closed_stores_say_why),
    WITH_STORE(test_migration__imported_container_is_whole),
    WITH_STORE(test_migration__imported_container_is_found),
    WITH_STORE(test_migration__failed_import_leaves_nothing),
};
const size_t meta_migration_count = sizeof meta_migration_tests / sizeof meta_migration_tests[0];
