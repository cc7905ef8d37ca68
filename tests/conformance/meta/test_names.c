/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Listing, removing and moving containers; garbage. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta.h"

typedef struct listing {
    char text[2000];
    size_t stop_after;
    size_t count;
} listing;

static bool
add_name(const char *name, const esdm_meta_container *record, void *user)
{
    listing *l = user;
    size_t used = strlen(l->text);
    assert_true(record->container > 0 && record->snapshot > 0 && strlen(record->uuid) == 32);
    (void) snprintf(l->text + used, sizeof l->text - used, "%s%s", used > 0 ? " " : "", name);
    return ++l->count != l->stop_after;
}

static void
expect_names(const fixture *f, const char *prefix, const char *expected)
{
    listing l = {.text = ""};
    assert_ok(meta()->container_list(f->store, prefix, add_name, &l, &place_error));
    assert_string_equal(l.text, expected);
}

static void
test_name__list_is_in_byte_order_by_prefix(void **state)
{
    static const char *const names[] = {"b",     "a/x",  "a",        "a-b", "a/y/z", "a.nc",
                                        "a/x/1", "aa/x", "\xc3\xa4", "A",   "a0",    "a%b"};
    fixture *f = *state;
    expect_names(f, NULL, "");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        meta_create(f->store, names[i]);
    expect_names(f, NULL, "A a a%b a-b a.nc a/x a/x/1 a/y/z a0 aa/x b \xc3\xa4");
    expect_names(f, "", "A a a%b a-b a.nc a/x a/x/1 a/y/z a0 aa/x b \xc3\xa4");
    expect_names(f, "a", "a a/x a/x/1 a/y/z");
    expect_names(f, "a/x", "a/x a/x/1");
    expect_names(f, "aa", "aa/x");
    expect_names(f, "a%b", "a%b");
    expect_names(f, "%", "");
    expect_names(f, "a/x/1/", "");
    listing l = {.text = "", .stop_after = 2};
    assert_ok(meta()->container_list(f->store, NULL, add_name, &l, &place_error));
    assert_string_equal(l.text, "A a");
}

static void
test_name__unknown_names_are_enoent(void **state)
{
    fixture *f = *state;
    esdm_meta_container record;
    esdm_meta_snapshot snapshot;
    uint64_t number = 7;
    meta_create(f->store, "a");
    memset(&record, 0x11, sizeof record);
    assert_status(meta()->container_find(f->store, "nope", &record, &place_error), ESDM_ENOENT);
    assert_non_null(strstr(place_error.message, "nope"));
    assert_int_equal(record.container, UINT64_C(0x1111111111111111));
    assert_status(meta()->container_find(f->store, "nope", &record, NULL), ESDM_ENOENT);
    assert_status(meta()->container_remove(f->store, "nope", &number, &place_error), ESDM_ENOENT);
    assert_status(meta()->container_move(f->store, "nope", "a", true, NULL, &number, &place_error),
                  ESDM_ENOENT);
    assert_status(meta()->snapshot_open(f->store, "nope", 0, 0, 0, &snapshot, &place_error),
                  ESDM_ENOENT);
    assert_status(meta()->snapshot_open(f->store, "a", 2, 0, 0, &snapshot, &place_error),
                  ESDM_ENOENT);
    assert_status(
        meta()->snapshot_open(f->store, "a", UINT64_C(1) << 33, 0, 0, &snapshot, &place_error),
        ESDM_ENOENT);
    assert_status(meta()->snapshot_list(f->store, "nope", NULL, NULL, &place_error), ESDM_ENOENT);
    assert_int_equal(number, 7);
    expect_names(f, NULL, "a");
}

static void
test_name__removal_frees_the_name(void **state)
{
    fixture *f = *state;
    esdm_meta_committed first = meta_create(f->store, "a");
    esdm_meta_committed beside = meta_create(f->store, "a2");
    uint64_t removed = 0;
    assert_ok(meta_append(f->store, beside.container, 5, &beside));
    assert_ok(meta()->container_remove(f->store, "a", &removed, &place_error));
    assert_int_equal(removed, first.container);
    expect_names(f, NULL, "a2");
    esdm_meta_committed second = meta_create(f->store, "a");
    assert_true(second.container != first.container);
    assert_ok(meta()->forget(f->store, first.container, &place_error));
    assert_int_equal(meta_count_pages(f->store, beside.container, 2, 0), 1);
    expect_names(f, NULL, "a a2");
}

/* What others changed or replaced since it was seen stays. */
static void
test_name__move_over_what_was_seen(void **state)
{
    fixture *f = *state;
    uint64_t replaced = 7;
    esdm_meta_committed next;
    if (meta()->container_move_seen == NULL)
        skip();
    esdm_meta_committed a = meta_create(f->store, "a");
    esdm_meta_committed b = meta_create(f->store, "b");
    const esdm_meta_seen seen = {.container = b.container, .snapshot = b.snapshot};
    const esdm_meta_seen other = {.container = a.container, .snapshot = b.snapshot};
    assert_ok(meta_append(f->store, b.container, 5, &next));
    const esdm_meta_seen now = {.container = b.container, .snapshot = next.snapshot};
    for (int keeps = 0; keeps < 2; keeps++) {
        const char *keep_as = keeps != 0 ? "/kept/b//1" : NULL;
        assert_status(meta()->container_move_seen(f->store, "a", "b", keep_as, &seen, &replaced,
                                                  &place_error),
                      ESDM_ECONFLICT);
        assert_non_null(strstr(place_error.message, "'b'"));
        assert_status(meta()->container_move_seen(f->store, "a", "b", keep_as, &other, &replaced,
                                                  &place_error),
                      ESDM_ECONFLICT);
        assert_status(meta()->container_move_seen(f->store, "nope", "b", keep_as, &now, &replaced,
                                                  &place_error),
                      ESDM_ENOENT);
    }
    assert_int_equal(replaced, 7);
    expect_names(f, NULL, "a b");
    /* Nothing is in the way where nothing is. */
    assert_ok(meta()->container_move_seen(f->store, "a", "c", "/kept/c//1", &seen, &replaced,
                                          &place_error));
    assert_int_equal(replaced, 0);
    assert_ok(meta()->container_move_seen(f->store, "c", "b", "/kept/b//1", &now, &replaced,
                                          &place_error));
    assert_int_equal(replaced, b.container);
    expect_names(f, NULL, "/kept/b//1 b");
    esdm_meta_committed d = meta_create(f->store, "d");
    const esdm_meta_seen first = {.container = a.container, .snapshot = a.snapshot};
    assert_ok(
        meta()->container_move_seen(f->store, "d", "b", NULL, &first, &replaced, &place_error));
    assert_int_equal(replaced, a.container);
    assert_true(d.container != a.container);
    expect_names(f, NULL, "/kept/b//1 b");
}

static void
test_name__move_renames_and_replaces(void **state)
{
    fixture *f = *state;
    uint64_t replaced = 7;
    esdm_meta_container record;
    esdm_meta_committed a = meta_create(f->store, "a");
    esdm_meta_committed b = meta_create(f->store, "b");
    assert_status(meta()->container_move(f->store, "a", "b", false, NULL, &replaced, &place_error),
                  ESDM_EEXIST);
    assert_int_equal(replaced, 7);
    expect_names(f, NULL, "a b");
    assert_ok(meta()->container_move(f->store, "a", "x/y", false, NULL, &replaced, &place_error));
    assert_int_equal(replaced, 0);
    expect_names(f, NULL, "b x/y");
    assert_ok(meta()->container_move(f->store, "x/y", "b", true, NULL, &replaced, &place_error));
    assert_int_equal(replaced, b.container);
    expect_names(f, NULL, "b");
    assert_ok(meta()->container_find(f->store, "b", &record, &place_error));
    assert_int_equal(record.container, a.container);
    assert_ok(meta()->container_move(f->store, "b", "b", false, NULL, &replaced, &place_error));
    assert_int_equal(replaced, 0);
    expect_names(f, NULL, "b");
    assert_true(meta_is_garbage(f->store, b.container));
    assert_false(meta_is_garbage(f->store, a.container));
}

/* What a name loses may be kept under another one: whole, readable, and closed to its writers. */
static void
test_name__what_is_replaced_can_be_kept(void **state)
{
    fixture *f = *state;
    uint64_t number = 7;
    esdm_meta_container record;
    esdm_meta_committed committed = {0};
    esdm_meta_committed first = meta_create(f->store, "a");
    assert_ok(meta_append(f->store, first.container, 1, &committed));
    esdm_meta_commit commit = meta_new_commit(ESDM_META_REPLACE);
    commit.name = "a";
    commit.uuid = "abcdefabcdefabcdefabcdefabcdef02";
    commit.keep_as = "/kept/a//1";
    assert_ok(meta()->commit(f->store, &commit, &committed, &place_error));
    assert_int_equal(committed.replaced, first.container);
    assert_true(committed.container != first.container);
    assert_false(meta_is_garbage(f->store, first.container));
    expect_names(f, NULL, "/kept/a//1 a");
    expect_names(f, "/kept/a", "/kept/a//1");
    assert_ok(meta()->container_find(f->store, "/kept/a//1", &record, &place_error));
    assert_int_equal(record.container, first.container);
    assert_int_equal(meta_check_whole(f->store, "/kept/a//1"), 1);
    esdm_meta_committed untouched = {.snapshot = 77};
    assert_status(meta_append(f->store, first.container, 1, &untouched), ESDM_ECONFLICT);
    assert_int_equal(untouched.snapshot, 77);
    /* Back again, and the other one is kept. */
    assert_ok(meta()->container_move(f->store, "/kept/a//1", "a", true, "/kept/a//2", &number,
                                     &place_error));
    assert_int_equal(number, committed.container);
    expect_names(f, NULL, "/kept/a//2 a");
    assert_ok(meta_append(f->store, first.container, 5, &committed));
    assert_status(
        meta()->container_move(f->store, "nope", "a", true, "/kept/a//3", &number, &place_error),
        ESDM_ENOENT);
    expect_names(f, NULL, "/kept/a//2 a");
    /* Where nothing is replaced nothing is kept. */
    commit.name = "b";
    commit.uuid = "abcdefabcdefabcdefabcdefabcdef03";
    commit.keep_as = "/kept/b//1";
    assert_ok(meta()->commit(f->store, &commit, &committed, &place_error));
    assert_int_equal(committed.replaced, 0);
    expect_names(f, NULL, "/kept/a//2 a b");
    assert_ok(meta()->container_remove(f->store, "/kept/a//2", &number, &place_error));
    assert_ok(meta()->forget(f->store, number, &place_error));
    expect_names(f, NULL, "a b");
}

static void
test_name__numbers_are_never_reused(void **state)
{
    fixture *f = *state;
    uint64_t highest = 0;
    for (int round = 0; round < 5; round++) {
        esdm_meta_committed committed = meta_create(f->store, "a");
        uint64_t removed = 0;
        assert_true(committed.container > highest);
        highest = committed.container;
        assert_ok(meta_append(f->store, highest, 1, &committed));
        assert_ok(meta()->container_remove(f->store, "a", &removed, &place_error));
        assert_ok(meta()->forget(f->store, removed, &place_error));
        assert_status(meta()->forget(f->store, removed, &place_error), ESDM_ECONFLICT);
        assert_false(meta_is_garbage(f->store, removed));
        meta()->close(f->store);
        f->store = meta_open(f, false);
    }
}

static void
test_name__only_garbage_is_forgotten(void **state)
{
    fixture *f = *state;
    esdm_meta_committed a = meta_create(f->store, "a");
    assert_false(meta_is_garbage(f->store, a.container));
    assert_status(meta()->forget(f->store, a.container, &place_error), ESDM_ECONFLICT);
    assert_status(meta()->forget(f->store, 0, &place_error), ESDM_ECONFLICT);
    assert_status(meta()->forget(f->store, UINT64_MAX, &place_error), ESDM_ECONFLICT);
    expect_names(f, NULL, "a");
}

static void
test_name__forgetting_deletes_pages(void **state)
{
    fixture *f = *state;
    esdm_meta_committed committed = meta_create(f->store, "a");
    uint64_t removed = 0;
    void *data = NULL;
    size_t bytes = 0;
    assert_ok(meta_append(f->store, committed.container, 1, &committed));
    uint64_t page = committed.first_page;
    assert_ok(meta()->container_remove(f->store, "a", &removed, &place_error));
    assert_ok(meta()->page_load(f->store, page, &data, &bytes, &place_error));
    free(data);
    assert_ok(meta()->forget(f->store, removed, &place_error));
    assert_status(meta()->page_load(f->store, page, &data, &bytes, &place_error), ESDM_ENOENT);
}

/* Lists are of the state that is held, whoever stops them, and end it not. */
static void
test_name__lists_of_one_state(void **state)
{
    fixture *f = *state;
    if (meta()->hold == NULL)
        skip();
    meta_create(f->store, "a");
    meta_create(f->store, "b");
    for (int round = 0; round < 2; round++) {
        assert_ok(meta()->hold(f->store, &place_error));
        expect_names(f, NULL, "a b");
        listing l = {.text = "", .stop_after = 1};
        assert_ok(meta()->container_list(f->store, NULL, add_name, &l, &place_error));
        expect_names(f, "b", "b");
        expect_names(f, NULL, "a b");
        assert_true(meta()->release(f->store));
    }
    meta_create(f->store, "c");
    expect_names(f, NULL, "a b c");
}

const struct CMUnitTest meta_name_tests[] = {
    WITH_STORE(test_name__lists_of_one_state),
    WITH_STORE(test_name__list_is_in_byte_order_by_prefix),
    WITH_STORE(test_name__unknown_names_are_enoent),
    WITH_STORE(test_name__removal_frees_the_name),
    WITH_STORE(test_name__move_over_what_was_seen),
    WITH_STORE(test_name__move_renames_and_replaces),
    WITH_STORE(test_name__what_is_replaced_can_be_kept),
    WITH_STORE(test_name__numbers_are_never_reused),
    WITH_STORE(test_name__only_garbage_is_forgotten),
    WITH_STORE(test_name__forgetting_deletes_pages),
};
const size_t meta_name_count = sizeof meta_name_tests / sizeof meta_name_tests[0];
