/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Names of snapshots. */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "meta.h"
#include "sqlite_store.h"

typedef struct tags {
    char text[400]; /* "name=snapshot;" of each */
    uint64_t created_ns;
    char author[40];
} tags;

static bool
note_tag(const esdm_meta_tag *tag, void *user)
{
    tags *all = user;
    size_t used = strlen(all->text);
    (void) snprintf(all->text + used, sizeof all->text - used, "%s=%llu;", tag->name,
                    (unsigned long long) tag->snapshot);
    all->created_ns = tag->created_ns;
    (void) snprintf(all->author, sizeof all->author, "%s", tag->author);
    return true;
}

static tags
list(void *store, uint64_t container)
{
    tags all = {.text = ""};
    assert_ok(meta()->tag_list(store, container, note_tag, &all, &place_error));
    return all;
}

static esdm_status
set(void *store, uint64_t container, const char *name, uint64_t snapshot, bool replace)
{
    const esdm_meta_tag tag = {.name = name, .snapshot = snapshot, .author = "\xe9milie"};
    return meta()->tag_set(store, container, &tag, replace, &place_error);
}

static void
test_tag__is_set_moved_listed_and_removed(void **state)
{
    fixture *f = *state;
    esdm_meta_committed made;
    skip_if(meta()->tag_set == NULL);
    uint64_t container = meta_create(f->store, "a").container;
    assert_string_equal(list(f->store, container).text, "");
    assert_ok(set(f->store, container, "submission v1", 1, false));
    assert_ok(meta_append(f->store, container, 1, &made));
    assert_ok(set(f->store, container, "Frühling\xff", 2, false));
    tags all = list(f->store, container);
    assert_string_equal(all.text, "Frühling\xff=2;submission v1=1;");
    assert_string_equal(all.author, "\xe9milie");
    assert_true(all.created_ns > 1000000000000000000);
    assert_status(set(f->store, container, "submission v1", 2, false), ESDM_EEXIST);
    assert_ok(set(f->store, container, "submission v1", 2, true));
    assert_string_equal(list(f->store, container).text, "Frühling\xff=2;submission v1=2;");
    assert_status(set(f->store, container, "other", 7, false), ESDM_ENOENT);
    assert_status(set(f->store, 4711, "other", 1, false), ESDM_ENOENT);
    assert_status(set(f->store, container, "", 1, false), ESDM_EINVAL);
    assert_ok(meta()->tag_remove(f->store, container, "Frühling\xff", &place_error));
    assert_status(meta()->tag_remove(f->store, container, "Frühling\xff", &place_error),
                  ESDM_ENOENT);
    assert_string_equal(list(f->store, container).text, "submission v1=2;");
    assert_string_equal(list(f->store, container + 1).text, "");
}

static void
test_tag__comes_with_a_commit(void **state)
{
    fixture *f = *state;
    esdm_meta_committed made;
    const esdm_meta_tag tag = {.name = "it's\xff", .snapshot = 4711, .author = "a \"b\""};
    skip_if(!meta()->commit_tags);
    uint64_t container = meta_create(f->store, "a").container;
    for (int i = 2; i < 4; i++) { /* anew, and in the place of the one before */
        char expected[32];
        esdm_meta_commit commit = meta_new_commit(ESDM_META_UPDATE);
        commit.container = container;
        commit.tag = &tag;
        assert_ok(meta()->commit(f->store, &commit, &made, &place_error));
        assert_int_equal(made.snapshot, i);
        tags all = list(f->store, container);
        (void) snprintf(expected, sizeof expected, "it's\xff=%d;", i);
        assert_string_equal(all.text, expected);
        assert_string_equal(all.author, "a \"b\"");
        assert_true(all.created_ns > 1000000000000000000);
    }
    /* what is refused leaves none */
    esdm_meta_commit wrong = meta_new_commit(ESDM_META_UPDATE);
    const esdm_meta_tag other = {.name = "other"};
    wrong.container = 4711;
    wrong.tag = &other;
    assert_int_not_equal(meta()->commit(f->store, &wrong, &made, &place_error), ESDM_OK);
    assert_string_equal(list(f->store, container).text, "it's\xff=3;");
}

static void
test_tag__only_moves_to_newer_snapshots(void **state)
{
    fixture *f = *state;
    esdm_meta_committed made;
    skip_if(meta()->tag_set == NULL);
    uint64_t container = meta_create(f->store, "a").container;
    for (int i = 0; i < 3; i++)
        assert_ok(meta_append(f->store, container, 1, &made));
    esdm_meta_tag tag = {.name = "in", .snapshot = 3, .author = "x", .only_newer = true};
    assert_ok(meta()->tag_set(f->store, container, &tag, true, &place_error));
    assert_string_equal(list(f->store, container).text, "in=3;");
    tag.snapshot = 2;
    assert_ok(meta()->tag_set(f->store, container, &tag, true, &place_error));
    assert_string_equal(list(f->store, container).text, "in=3;");
    tag.snapshot = 4;
    assert_ok(meta()->tag_set(f->store, container, &tag, true, &place_error));
    assert_string_equal(list(f->store, container).text, "in=4;");
    tag.snapshot = 2;
    tag.only_newer = false;
    assert_ok(meta()->tag_set(f->store, container, &tag, true, &place_error));
    assert_string_equal(list(f->store, container).text, "in=2;");
    tag.snapshot = 9;
    tag.only_newer = true;
    assert_status(meta()->tag_set(f->store, container, &tag, true, &place_error), ESDM_ENOENT);
}

static void
test_commit__follows_from_another_record(void **state)
{
    fixture *f = *state;
    esdm_meta_committed made;
    skip_if(!meta()->commit_follows);
    uint64_t container = meta_create(f->store, "a").container;
    const esdm_meta_tag tag = {.name = "followed"};
    esdm_meta_seen seen = {.container = meta_create(f->store, "b").container, .snapshot = 1};
    uint64_t other = seen.container, removed = 0;
    esdm_meta_commit commit = meta_new_commit(ESDM_META_UPDATE);
    commit.container = container;
    commit.follows = &seen;
    commit.tag = &tag;
    assert_ok(meta()->commit(f->store, &commit, &made, &place_error));
    assert_int_equal(made.snapshot, 2);
    assert_ok(meta_append(f->store, other, 1, &made));
    assert_status(meta()->commit(f->store, &commit, &made, &place_error), ESDM_ECONFLICT);
    assert_non_null(strstr(place_error.message, "from which this follows"));
    assert_string_equal(list(f->store, container).text, "followed=2;");
    seen.snapshot = 2;
    assert_ok(meta()->commit(f->store, &commit, &made, &place_error));
    assert_int_equal(made.snapshot, 3);
    /* neither of two that follow from each other's former snapshots */
    esdm_meta_seen back = {.container = container, .snapshot = 2};
    esdm_meta_commit backwards = meta_new_commit(ESDM_META_UPDATE);
    backwards.container = other;
    backwards.follows = &back;
    assert_status(meta()->commit(f->store, &backwards, &made, &place_error), ESDM_ECONFLICT);
    /* what is not there, itself, and something new */
    seen.container = 4711;
    assert_status(meta()->commit(f->store, &commit, &made, &place_error), ESDM_ECONFLICT);
    seen = (esdm_meta_seen){.container = container, .snapshot = 3};
    assert_status(meta()->commit(f->store, &commit, &made, &place_error), ESDM_EINVAL);
    esdm_meta_commit created = meta_new_commit(ESDM_META_CREATE);
    created.name = "c";
    created.follows = &back;
    assert_status(meta()->commit(f->store, &created, &made, &place_error), ESDM_EINVAL);
    assert_ok(meta()->container_remove(f->store, "b", &removed, &place_error));
    assert_ok(meta()->forget(f->store, other, &place_error));
    seen = (esdm_meta_seen){.container = other, .snapshot = 2};
    assert_status(meta()->commit(f->store, &commit, &made, &place_error), ESDM_ECONFLICT);
    assert_int_equal(meta_record(f, "a").snapshot, 3);
}

static void
test_tag__keeps_its_snapshot(void **state)
{
    fixture *f = *state;
    esdm_meta_committed made;
    skip_if(meta()->tag_set == NULL);
    uint64_t container = meta_create(f->store, "a").container;
    for (int i = 0; i < 6; i++)
        assert_ok(meta_append(f->store, container, 1, &made));
    assert_ok(set(f->store, container, "kept", 3, false));
    assert_ok(set(f->store, container, "kept too", 3, false));
    meta()->unpin(f->store, container, made.snapshot);
    (void) usleep(600000); /* young ones stay */
    assert_ok(meta()->prune(f->store, container, 1, &place_error));
    assert_int_equal(meta_count_snapshots(f->store, "a"), 2);
    assert_int_equal(meta_count_pages(f->store, container, 3, 0), 2);
    assert_ok(meta()->tag_remove(f->store, container, "kept", &place_error));
    assert_ok(meta()->prune(f->store, container, 1, &place_error));
    assert_int_equal(meta_count_snapshots(f->store, "a"), 2);
    assert_ok(meta()->tag_remove(f->store, container, "kept too", &place_error));
    assert_ok(meta()->prune(f->store, container, 1, &place_error));
    assert_int_equal(meta_count_snapshots(f->store, "a"), 1);
    assert_status(set(f->store, container, "late", 3, false), ESDM_ENOENT);
}

static void
test_tag__goes_with_its_container(void **state)
{
    fixture *f = *state;
    uint64_t removed = 0;
    skip_if(meta()->tag_set == NULL);
    uint64_t container = meta_create(f->store, "a").container;
    assert_ok(set(f->store, container, "first", 1, false));
    meta()->unpin(f->store, container, 1);
    assert_ok(meta()->container_remove(f->store, "a", &removed, &place_error));
    assert_string_equal(list(f->store, container).text, "first=1;");
    assert_true(meta_becomes_garbage(f->store, container));
    assert_ok(meta()->forget(f->store, container, &place_error));
    assert_string_equal(list(f->store, container).text, "");
}

static void
test_tag__that_seals_ends_all_changes(void **state)
{
    fixture *f = *state;
    const char former[] = "/former/a//00000000000000000001-00000000-d";
    esdm_meta_committed made;
    uint64_t other = 0;
    skip_if(meta()->tag_set == NULL);
    uint64_t container = meta_create(f->store, "a").container;
    (void) meta_create(f->store, "b");
    assert_ok(meta_append(f->store, container, 1, &made));
    assert_status(set(f->store, container, ESDM_META_TAG_SEAL, 1, false), ESDM_ECONFLICT);
    assert_ok(set(f->store, container, ESDM_META_TAG_SEAL, made.snapshot, false));
    assert_status(meta_append(f->store, container, 1, &made), ESDM_EACCES);
    assert_status(meta()->container_move(f->store, "a", "c", false, NULL, &other, &place_error),
                  ESDM_EACCES);
    assert_status(meta()->container_move(f->store, "b", "a", true, NULL, &other, &place_error),
                  ESDM_EACCES);
    assert_status(meta()->container_move(f->store, "b", "a", true,
                                         "/former/a//00000000000000000001-00000000-r", &other,
                                         &place_error),
                  ESDM_EACCES);
    assert_status(meta()->container_remove(f->store, "a", &other, &place_error), ESDM_EACCES);
    assert_int_equal(meta_count_snapshots(f->store, "a"), 2);
    assert_ok(set(f->store, container, ESDM_META_TAG_RETRACTION, made.snapshot, false));
    assert_ok(meta()->container_move(f->store, "a", former, false, NULL, &other, &place_error));
    assert_ok(meta()->container_move(f->store, former, "a", false, NULL, &other, &place_error));
    assert_status(meta_append(f->store, container, 1, &made), ESDM_EACCES);
}

static void
test_tag__that_is_damaged_stops_pruning(void **state)
{
    fixture *f = *state;
    esdm_meta_committed made;
    skip_if(!sqlite_is_tested());
    uint64_t container = meta_create(f->store, "a").container;
    for (int i = 0; i < 4; i++)
        assert_ok(meta_append(f->store, container, 1, &made));
    assert_ok(set(f->store, container, "kept", 3, false));
    meta()->unpin(f->store, container, made.snapshot);
    (void) usleep(600000);
    sqlite_run(f, "UPDATE tag SET snapshot = 2");
    assert_ok(meta()->prune(f->store, container, 1, &place_error));
    assert_int_equal(meta_count_snapshots(f->store, "a"), 5);
    tags all = {.text = ""};
    assert_status(meta()->tag_list(f->store, container, note_tag, &all, &place_error),
                  ESDM_ECORRUPT);
    sqlite_run(f, "DELETE FROM tag");
    assert_ok(meta()->prune(f->store, container, 1, &place_error));
    assert_int_equal(meta_count_snapshots(f->store, "a"), 1);
}

const struct CMUnitTest meta_tag_tests[] = {
    WITH_STORE(test_tag__is_set_moved_listed_and_removed),
    WITH_STORE(test_tag__comes_with_a_commit),
    WITH_STORE(test_tag__only_moves_to_newer_snapshots),
    WITH_STORE(test_commit__follows_from_another_record),
    WITH_STORE(test_tag__keeps_its_snapshot),
    WITH_STORE(test_tag__goes_with_its_container),
    WITH_STORE(test_tag__that_seals_ends_all_changes),
    WITH_STORE(test_tag__that_is_damaged_stops_pruning),
};
const size_t meta_tag_count = sizeof meta_tag_tests / sizeof meta_tag_tests[0];
