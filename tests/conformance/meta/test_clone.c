/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Records that begin as a copy of another one and share its packs. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta.h"

#define UUID_OF_CLONE  "c10e0000000000000000000000000001"
#define UUID_OF_CLONE2 "c10e0000000000000000000000000002"

typedef struct pairs {
    char uuids[16][ESDM_META_UUID_BYTES];
    uint64_t containers[16];
    size_t count;
} pairs;

static bool
note_pair(const char *uuid, uint64_t container, void *user)
{
    pairs *all = user;
    assert_true(all->count < 16);
    (void) snprintf(all->uuids[all->count], sizeof all->uuids[0], "%s", uuid);
    all->containers[all->count++] = container;
    return true;
}

static pairs
list(void *store)
{
    pairs all = {.count = 0};
    assert_ok(meta()->shared_list(store, 0, note_pair, &all, &place_error));
    return all;
}

/* Those of one uuid: the same as among all. */
static size_t
count_of(void *store, const char *uuid)
{
    pairs all = list(store);
    pairs some = {.count = 0};
    size_t count = 0;
    assert_non_null(meta()->shared_of);
    assert_ok(meta()->shared_of(store, uuid, note_pair, &some, &place_error));
    for (size_t i = 0; i < all.count; i++)
        count += strcmp(all.uuids[i], uuid) == 0;
    assert_int_equal(some.count, count);
    for (size_t i = 0; i < some.count; i++)
        assert_string_equal(some.uuids[i], uuid);
    return count;
}

static bool
shares(const pairs *all, const char *uuid, uint64_t container)
{
    for (size_t i = 0; i < all->count; i++) {
        if (all->containers[i] == container && strcmp(all->uuids[i], uuid) == 0)
            return true;
    }
    return false;
}

static esdm_meta_clone
new_clone(const fixture *f, const char *from, const char *to, const char *uuid)
{
    return (esdm_meta_clone){.container = meta_record(f, from).container,
                             .from = from,
                             .name = to,
                             .uuid = uuid,
                             .writer = "tests",
                             .message = "clone"};
}

static void
test_clone__has_the_pages_of_the_snapshot_and_goes_on_alone(void **state)
{
    fixture *f = *state;
    esdm_meta_committed made;
    esdm_meta_committed cloned;
    if (meta()->clone == NULL)
        skip();
    esdm_meta_committed source = meta_create(f->store, "a");
    for (uint32_t i = 0; i < 5; i++)
        assert_ok(meta_append(f->store, source.container, 1, &made));
    esdm_meta_clone wanted = new_clone(f, "a", "b", UUID_OF_CLONE);
    assert_ok(meta()->clone(f->store, &wanted, &cloned, &place_error));
    assert_int_equal(cloned.snapshot, made.snapshot);
    assert_int_equal(meta_count_pages(f->store, cloned.container, cloned.snapshot, 0), 5);
    assert_int_equal(meta_check_whole(f->store, "b"), meta_check_whole(f->store, "a"));
    assert_int_equal(meta_count_snapshots(f->store, "b"), 1);
    esdm_meta_container record = meta_record(f, "b");
    assert_string_equal(record.uuid, UUID_OF_CLONE);
    assert_int_equal(record.stored_bytes, meta_record(f, "a").stored_bytes);
    /* each goes on without the other */
    assert_ok(meta_append(f->store, cloned.container, 1, &made));
    assert_int_equal(made.snapshot, cloned.snapshot + 1);
    assert_int_equal(meta_count_pages(f->store, made.container, made.snapshot, 0), 6);
    uint64_t removed = 0;
    assert_ok(meta()->container_remove(f->store, "a", &removed, &place_error));
    assert_true(meta_becomes_garbage(f->store, removed));
    assert_ok(meta()->forget(f->store, removed, &place_error));
    assert_int_equal(meta_count_pages(f->store, made.container, made.snapshot, 0), 6);
    (void) meta_check_whole(f->store, "b");
}

static void
test_clone__is_listed_with_all_whose_packs_it_shares(void **state)
{
    fixture *f = *state;
    esdm_meta_committed first;
    esdm_meta_committed second;
    char uuid[ESDM_META_UUID_BYTES];
    uint64_t removed = 0;
    if (meta()->clone == NULL)
        skip();
    (void) meta_create(f->store, "a");
    (void) snprintf(uuid, sizeof uuid, "%s", meta_record(f, "a").uuid);
    assert_int_equal(list(f->store).count, 0);
    esdm_meta_clone wanted = new_clone(f, "a", "b", UUID_OF_CLONE);
    assert_ok(meta()->clone(f->store, &wanted, &first, &place_error));
    wanted = new_clone(f, "b", "c", UUID_OF_CLONE2);
    assert_ok(meta()->clone(f->store, &wanted, &second, &place_error));
    pairs all = list(f->store);
    assert_int_equal(all.count, 3);
    assert_true(shares(&all, uuid, first.container));
    assert_true(shares(&all, uuid, second.container));
    assert_true(shares(&all, UUID_OF_CLONE, second.container));
    assert_int_equal(count_of(f->store, uuid), 2);
    assert_int_equal(count_of(f->store, UUID_OF_CLONE), 1);
    assert_int_equal(count_of(f->store, UUID_OF_CLONE2), 0);
    pairs of_one = {.count = 0};
    assert_ok(meta()->shared_list(f->store, second.container, note_pair, &of_one, &place_error));
    assert_int_equal(of_one.count, 2);
    assert_true(shares(&of_one, uuid, second.container));
    assert_true(shares(&of_one, UUID_OF_CLONE, second.container));
    /* the rows of a record go with it, those that name it stay */
    assert_ok(meta()->container_remove(f->store, "b", &removed, &place_error));
    assert_int_equal(list(f->store).count, 3);
    assert_true(meta_becomes_garbage(f->store, removed));
    assert_ok(meta()->forget(f->store, removed, &place_error));
    all = list(f->store);
    assert_int_equal(all.count, 2);
    assert_true(shares(&all, UUID_OF_CLONE, second.container));
}

static void
test_clone__refuses_names_that_are_taken_or_not_there(void **state)
{
    fixture *f = *state;
    esdm_meta_committed cloned = {.container = 77};
    if (meta()->clone == NULL)
        skip();
    (void) meta_create(f->store, "a");
    esdm_meta_committed other = meta_create(f->store, "b");
    esdm_meta_clone wanted = new_clone(f, "a", "b", UUID_OF_CLONE);
    assert_int_equal(meta()->clone(f->store, &wanted, &cloned, &place_error), ESDM_EEXIST);
    wanted.container = 4711;
    assert_int_equal(meta()->clone(f->store, &wanted, &cloned, &place_error), ESDM_ECONFLICT);
    wanted = new_clone(f, "a", "c", UUID_OF_CLONE);
    wanted.snapshot = 9;
    assert_int_equal(meta()->clone(f->store, &wanted, &cloned, &place_error), ESDM_ENOENT);
    assert_int_equal(cloned.container, 77);
    assert_int_equal(list(f->store).count, 0);
    wanted = new_clone(f, "a", "b", UUID_OF_CLONE);
    wanted.replace = true;
    wanted.keep_as = "/former/b//1";
    assert_ok(meta()->clone(f->store, &wanted, &cloned, &place_error));
    assert_int_equal(cloned.replaced, other.container);
    assert_int_equal(meta_record(f, "/former/b//1").container, other.container);
}

/* A container goes back to what it was: the clone takes its name. */
static void
test_clone__replaces_what_it_is_made_of(void **state)
{
    fixture *f = *state;
    esdm_meta_committed made;
    esdm_meta_committed cloned;
    if (meta()->clone == NULL)
        skip();
    esdm_meta_committed source = meta_create(f->store, "a");
    assert_ok(meta_append(f->store, source.container, 1, &made));
    esdm_meta_clone wanted = new_clone(f, "a", "a", UUID_OF_CLONE);
    wanted.replace = true;
    wanted.keep_as = "/former/a//1";
    assert_ok(meta()->clone(f->store, &wanted, &cloned, &place_error));
    assert_int_equal(cloned.replaced, source.container);
    assert_int_equal(meta_record(f, "a").container, cloned.container);
    assert_int_equal(meta_check_whole(f->store, "a"), 1);
    wanted = new_clone(f, "/former/a//1", "a", UUID_OF_CLONE2);
    wanted.replace = true;
    uint64_t first = cloned.container;
    assert_ok(meta()->clone(f->store, &wanted, &cloned, &place_error));
    assert_int_equal(cloned.replaced, first);
    /* what is garbage cannot be cloned any more */
    wanted.container = first;
    assert_int_equal(meta()->clone(f->store, &wanted, &cloned, &place_error), ESDM_ECONFLICT);
    assert_int_equal(meta_check_whole(f->store, "a"), 1);
}

typedef struct attribute_list {
    char text[200];
} attribute_list;

static bool
note_attribute(const esdm_meta_attribute *attribute, void *user)
{
    attribute_list *all = user;
    size_t used = strlen(all->text);
    (void) snprintf(all->text + used, sizeof all->text - used, "%s=%s;", attribute->name,
                    attribute->text);
    return true;
}

static void
check_attributes(void *store, uint64_t container, const char *expected)
{
    attribute_list all = {.text = ""};
    assert_ok(meta()->attributes(store, container, note_attribute, &all, &place_error));
    assert_string_equal(all.text, expected);
}

static bool
count_match(const char *container, const char *dataset_path, void *user)
{
    (void) container, (void) dataset_path;
    ++*(int *) user;
    return true;
}

/* An old snapshot has the document and the attributes of its time. */
static void
test_clone__of_an_old_snapshot_is_found_by_its_attributes(void **state)
{
    fixture *f = *state;
    esdm_meta_committed made;
    esdm_meta_committed cloned;
    esdm_meta_attribute attribute = {.name = "source", .text = "old"};
    if (meta()->clone == NULL)
        skip();
    esdm_meta_commit commit = meta_new_commit(ESDM_META_CREATE);
    commit.name = "a";
    commit.attributes = &attribute;
    commit.nattributes = 1;
    commit.history = 10;
    assert_ok(meta()->commit(f->store, &commit, &made, &place_error));
    esdm_meta_attribute newer = {.name = "source", .text = "new"};
    esdm_meta_commit update = meta_new_commit(ESDM_META_UPDATE);
    update.container = made.container;
    update.structure = 1;
    update.document = "{\"format\": 1, \"groups\": [], \"newer\": 1}";
    update.document_bytes = strlen(update.document);
    update.datasets = 1;
    update.attributes = &newer;
    update.nattributes = 1;
    update.history = 10;
    assert_ok(meta()->commit(f->store, &update, &made, &place_error));
    assert_int_equal(made.structure, 2);
    esdm_meta_clone wanted = new_clone(f, "a", "b", UUID_OF_CLONE);
    wanted.snapshot = 1;
    wanted.attributes = &attribute;
    wanted.nattributes = 1;
    assert_ok(meta()->clone(f->store, &wanted, &cloned, &place_error));
    assert_int_equal(cloned.snapshot, 1);
    assert_int_equal(cloned.structure, 1);
    check_attributes(f->store, cloned.container, "source=old;");
    esdm_meta_snapshot loaded = {0};
    assert_ok(meta()->snapshot_open(f->store, "b", 0, 0, 0, &loaded, &place_error));
    assert_null(strstr(loaded.document, "newer"));
    free(loaded.document);
    free(loaded.lengths);
    meta()->unpin(f->store, loaded.record.container, loaded.snapshot);
    wanted = new_clone(f, "a", "c", UUID_OF_CLONE2);
    wanted.attributes = &newer;
    wanted.nattributes = 1;
    assert_ok(meta()->clone(f->store, &wanted, &cloned, &place_error));
    assert_int_equal(cloned.structure, 2);
    check_attributes(f->store, cloned.container, "source=new;");
    int matches = 0;
    esdm_meta_condition condition = {.attribute = "source", .op = ESDM_META_EQ, .text = "old"};
    assert_ok(meta()->find(f->store, &condition, 1, count_match, &matches, &place_error));
    assert_int_equal(matches, 1);
}

static void
test_share__adds_a_record_and_all_that_it_shares(void **state)
{
    fixture *f = *state;
    esdm_meta_committed cloned;
    char uuid[ESDM_META_UUID_BYTES];
    uint64_t removed = 0;
    if (meta()->share == NULL)
        skip();
    esdm_meta_committed a = meta_create(f->store, "a");
    esdm_meta_committed other = meta_create(f->store, "other");
    (void) snprintf(uuid, sizeof uuid, "%s", meta_record(f, "a").uuid);
    esdm_meta_clone wanted = new_clone(f, "a", "b", UUID_OF_CLONE);
    assert_ok(meta()->clone(f->store, &wanted, &cloned, &place_error));
    assert_ok(meta()->share(f->store, other.container, cloned.container, &place_error));
    pairs all = list(f->store);
    assert_int_equal(all.count, 3);
    assert_true(shares(&all, UUID_OF_CLONE, other.container));
    assert_true(shares(&all, uuid, other.container));
    /* once more, and of itself: nothing is new; its own uuid is no row */
    assert_ok(meta()->share(f->store, other.container, cloned.container, &place_error));
    assert_ok(meta()->share(f->store, other.container, other.container, &place_error));
    assert_ok(meta()->share(f->store, a.container, cloned.container, &place_error));
    all = list(f->store);
    assert_int_equal(all.count, 4);
    assert_true(shares(&all, UUID_OF_CLONE, a.container));
    /* garbage neither gets nor gives */
    assert_ok(meta()->container_remove(f->store, "b", &removed, &place_error));
    assert_int_equal(meta()->share(f->store, other.container, cloned.container, &place_error),
                     ESDM_ECONFLICT);
    assert_int_equal(meta()->share(f->store, cloned.container, other.container, &place_error),
                     ESDM_ECONFLICT);
    assert_int_equal(meta()->share(f->store, other.container, 4711, &place_error), ESDM_ECONFLICT);
    assert_int_equal(list(f->store).count, 4);
}

static void
test_share__comes_with_a_commit_also_of_what_has_lost_its_name(void **state)
{
    fixture *f = *state;
    esdm_meta_committed cloned, made, next;
    char uuid[ESDM_META_UUID_BYTES];
    uint64_t removed = 0;
    if (!meta()->commit_shares)
        skip();
    esdm_meta_committed a = meta_create(f->store, "a");
    (void) snprintf(uuid, sizeof uuid, "%s", meta_record(f, "a").uuid);
    esdm_meta_clone wanted = new_clone(f, "a", "b", UUID_OF_CLONE);
    assert_ok(meta()->clone(f->store, &wanted, &cloned, &place_error));
    esdm_meta_snapshot pinned = meta_pin(f->store, "b", 0);
    esdm_meta_commit commit = meta_new_commit(ESDM_META_CREATE);
    const uint64_t others[] = {cloned.container, 0};
    commit.name = "c";
    commit.shares = others;
    commit.nshares = 1;
    assert_ok(meta()->commit(f->store, &commit, &made, &place_error));
    pairs all = list(f->store);
    assert_int_equal(all.count, 3);
    assert_true(shares(&all, UUID_OF_CLONE, made.container));
    assert_true(shares(&all, uuid, made.container));
    /* what is replaced by the commit itself, and garbage that is pinned */
    assert_ok(meta()->container_remove(f->store, "b", &removed, &place_error));
    esdm_meta_snapshot former = meta_pin(f->store, "a", 0);
    const uint64_t both[] = {cloned.container, a.container};
    commit = meta_new_commit(ESDM_META_REPLACE);
    commit.name = "a";
    commit.shares = both;
    commit.nshares = 2;
    assert_ok(meta()->commit(f->store, &commit, &next, &place_error));
    assert_int_equal(next.replaced, a.container);
    all = list(f->store);
    assert_true(shares(&all, UUID_OF_CLONE, next.container));
    assert_true(shares(&all, uuid, next.container));
    /* an update, and itself: no row */
    esdm_meta_commit update = meta_new_commit(ESDM_META_UPDATE);
    update.container = made.container;
    update.shares = &made.container;
    update.nshares = 1;
    assert_ok(meta()->commit(f->store, &update, &made, &place_error));
    assert_int_equal(list(f->store).count, all.count);
    /* what is not there: nothing is published */
    const uint64_t none = 4711;
    update.shares = &none;
    uint64_t before = made.snapshot;
    assert_int_equal(meta()->commit(f->store, &update, &next, &place_error), ESDM_ECONFLICT);
    assert_int_equal(meta_record(f, "c").snapshot, before);
    commit = meta_new_commit(ESDM_META_CREATE);
    commit.name = "d";
    commit.shares = &none;
    commit.nshares = 1;
    assert_int_equal(meta()->commit(f->store, &commit, &next, &place_error), ESDM_ECONFLICT);
    assert_int_equal(meta()->container_find(f->store, "d", &(esdm_meta_container){0}, &place_error),
                     ESDM_ENOENT);
    meta()->unpin(f->store, pinned.record.container, pinned.snapshot);
    meta()->unpin(f->store, former.record.container, former.snapshot);
}

const struct CMUnitTest meta_clone_tests[] = {
    WITH_STORE(test_clone__has_the_pages_of_the_snapshot_and_goes_on_alone),
    WITH_STORE(test_clone__is_listed_with_all_whose_packs_it_shares),
    WITH_STORE(test_clone__of_an_old_snapshot_is_found_by_its_attributes),
    WITH_STORE(test_clone__refuses_names_that_are_taken_or_not_there),
    WITH_STORE(test_clone__replaces_what_it_is_made_of),
    WITH_STORE(test_share__adds_a_record_and_all_that_it_shares),
    WITH_STORE(test_share__comes_with_a_commit_also_of_what_has_lost_its_name),
};
const size_t meta_clone_count = sizeof meta_clone_tests / sizeof meta_clone_tests[0];
