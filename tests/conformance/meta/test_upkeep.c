/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Care for packs: all records, living writers, pages that are replaced. */

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "meta.h"

typedef struct seen_record {
    uint64_t container;
    size_t count;
    bool garbage;
} seen_record;

static bool
see_record(uint64_t container, const char *uuid, const char *name, void *user)
{
    seen_record *seen = user;
    assert_int_equal(strlen(uuid), ESDM_META_UUID_BYTES - 1);
    seen->count++;
    if (container == seen->container)
        seen->garbage = name == NULL;
    return true;
}

static void
test_record_list__holds_garbage_that_is_pinned(void **state)
{
    fixture *f = *state;
    uint64_t removed = 0;
    esdm_meta_committed kept = meta_create(f->store, "a");
    esdm_meta_committed gone = meta_create(f->store, "b");
    esdm_meta_snapshot pin = meta_pin(f->store, "b", 0);
    assert_ok(meta()->container_remove(f->store, "b", &removed, &place_error));
    seen_record seen = {.container = gone.container};
    assert_ok(meta()->record_list(f->store, see_record, &seen, &place_error));
    assert_int_equal(seen.count, 2);
    assert_true(seen.garbage);
    seen = (seen_record){.container = kept.container, .garbage = true};
    assert_ok(meta()->record_list(f->store, see_record, &seen, &place_error));
    assert_false(seen.garbage);
    meta()->unpin(f->store, pin.record.container, pin.snapshot);
    assert_true(meta_becomes_garbage(f->store, gone.container));
    assert_ok(meta()->forget(f->store, gone.container, &place_error));
    seen = (seen_record){0};
    assert_ok(meta()->record_list(f->store, see_record, &seen, &place_error));
    assert_int_equal(seen.count, 1);
}

/* ---- writers -------------------------------------------------------------------------------- */

#define WRITER "00c0ffee12345678"

static bool
lives(void *store)
{
    bool alive = true;
    for (int i = 0; i < 5000 && alive; i++) { /* a server may hear of the end a little later */
        assert_ok(meta()->writer_lives(store, WRITER, &alive, &place_error));
        if (alive && i > 0)
            (void) usleep(20000);
    }
    return alive;
}

static void
test_writer__lives_until_it_ends(void **state)
{
    fixture *f = *state;
    bool alive = false;
    void *other = meta_open(f, false);
    assert_false(lives(other));
    assert_ok(meta()->writer_begin(f->store, WRITER, &place_error));
    assert_ok(meta()->writer_begin(f->store, WRITER, &place_error));
    assert_ok(meta()->writer_lives(other, WRITER, &alive, &place_error));
    assert_true(alive);
    assert_ok(meta()->writer_lives(f->store, WRITER, &alive, &place_error));
    assert_true(alive);
    assert_ok(meta()->writer_lives(other, "1111111112345678", &alive, &place_error));
    assert_false(alive);
    meta()->writer_end(f->store, WRITER);
    assert_ok(meta()->writer_lives(other, WRITER, &alive, &place_error));
    assert_true(alive);
    meta()->writer_end(f->store, WRITER);
    assert_false(lives(other));
    meta()->close(other);
}

static void
test_writer__dies_with_its_process(void **state)
{
    fixture *f = *state;
    int ready[2];
    char byte = 0;
    bool alive = false;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        void *store = NULL;
        if (meta()->open(&f->place.config, false, &store, NULL) == ESDM_OK &&
            meta()->writer_begin(store, WRITER, NULL) == ESDM_OK && write(ready[1], "x", 1) == 1)
            (void) pause();
        _exit(1);
    }
    (void) close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void) close(ready[0]);
    assert_ok(meta()->writer_lives(f->store, WRITER, &alive, &place_error));
    assert_true(alive);
    (void) kill(child, SIGKILL);
    (void) waitpid(child, NULL, 0);
    assert_false(lives(f->store));
}

/* ---- pages ---------------------------------------------------------------------------------- */

typedef struct page_entry {
    esdm_meta_page entry;
    uint64_t box[6];
    size_t count;
} page_entry;

static bool
take_entry(const esdm_meta_page *page, void *user)
{
    page_entry *to = user;
    to->entry = *page;
    memcpy(to->box, page->box, sizeof to->box);
    to->count++;
    return true;
}

static page_entry
only_page(void *store, uint64_t container, uint64_t snapshot)
{
    page_entry found = {0};
    assert_ok(meta()->page_list(store, container, snapshot, 0, take_entry, &found, &place_error));
    assert_int_equal(found.count, 1);
    return found;
}

static void
test_relocate__gives_a_page_a_new_number_and_content(void **state)
{
    fixture *f = *state;
    esdm_meta_committed committed = meta_create(f->store, "a");
    uint64_t container = committed.container;
    assert_ok(meta_append(f->store, container, 3, &committed));
    esdm_meta_snapshot pin = meta_pin(f->store, "a", 0);
    page_entry before = only_page(f->store, container, pin.snapshot);
    esdm_meta_relocation move = {.page = before.entry.page, .data = "elsewhere", .bytes = 9};
    assert_ok(meta()->relocate(f->store, container, &move, 1, false, &place_error));
    assert_true(move.moved);

    page_entry after = only_page(f->store, container, pin.snapshot);
    assert_true(after.entry.page != before.entry.page);
    assert_int_equal(after.entry.dataset, before.entry.dataset);
    assert_int_equal(after.entry.added, before.entry.added);
    assert_int_equal(after.entry.records, before.entry.records);
    assert_int_equal(after.entry.raw_bytes, before.entry.raw_bytes);
    assert_int_equal(after.entry.level, before.entry.level);
    assert_memory_equal(after.box, before.box, sizeof before.box);
    void *data = NULL;
    size_t bytes = 0;
    assert_ok(meta()->page_load(f->store, after.entry.page, &data, &bytes, &place_error));
    assert_int_equal(bytes, 9);
    assert_memory_equal(data, "elsewhere", 9);
    free(data);
    assert_status(meta()->page_load(f->store, before.entry.page, &data, &bytes, &place_error),
                  ESDM_ENOENT);
    esdm_meta_container record;
    assert_ok(meta()->container_find(f->store, "a", &record, &place_error));
    assert_int_equal(record.snapshot, pin.snapshot);
    assert_int_equal(record.fragments, 3);

    assert_ok(meta()->relocate(f->store, container, NULL, 0, false, &place_error));
    /* The number is used up: neither a second move nor a commit meets the page. */
    move.moved = true;
    assert_ok(meta()->relocate(f->store, container, &move, 1, true, &place_error));
    assert_false(move.moved);
    assert_ok(meta_append(f->store, container, 1, &committed));
    assert_true(committed.first_page != after.entry.page);
    meta()->unpin(f->store, container, pin.snapshot);
}

/* What merges a page that was moved meanwhile would bring the old places back. */
static void
test_relocate__makes_merging_the_old_page_a_conflict(void **state)
{
    fixture *f = *state;
    esdm_meta_committed committed = meta_create(f->store, "a");
    uint64_t container = committed.container;
    assert_ok(meta_append(f->store, container, 3, &committed));
    uint64_t old = only_page(f->store, container, committed.snapshot).entry.page;
    esdm_meta_relocation move = {.page = old, .data = "elsewhere", .bytes = 9};
    assert_ok(meta()->relocate(f->store, container, &move, 1, false, &place_error));

    esdm_meta_commit commit = meta_new_commit(ESDM_META_UPDATE);
    esdm_meta_new_page page = meta_page(1, 3, 1);
    page.absolute = true;
    commit.container = container;
    commit.pages = &page;
    commit.npages = 1;
    commit.merged = &old;
    commit.nmerged = 1;
    assert_status(meta()->commit(f->store, &commit, &committed, &place_error), ESDM_ECONFLICT);
    uint64_t now = only_page(f->store, container, committed.snapshot).entry.page;
    commit.merged = &now;
    assert_ok(meta()->commit(f->store, &commit, &committed, &place_error));
}

static void
test_relocate__moves_pages_of_old_snapshots(void **state)
{
    fixture *f = *state;
    esdm_meta_committed committed = meta_create(f->store, "a");
    uint64_t container = committed.container;
    assert_ok(meta_append(f->store, container, 3, &committed));
    esdm_meta_snapshot pin = meta_pin(f->store, "a", 0);
    uint64_t old = only_page(f->store, container, pin.snapshot).entry.page;
    esdm_meta_commit commit = meta_new_commit(ESDM_META_UPDATE);
    esdm_meta_new_page page = meta_page(1, 3, 1);
    page.absolute = true;
    commit.container = container;
    commit.pages = &page;
    commit.npages = 1;
    commit.merged = &old;
    commit.nmerged = 1;
    assert_ok(meta()->commit(f->store, &commit, &committed, &place_error));

    page_entry kept = {0};
    assert_ok(meta()->page_list(f->store, container, ESDM_META_EVERY_SNAPSHOT, 0, take_entry, &kept,
                                &place_error));
    assert_int_equal(kept.count, 2);
    kept = (page_entry){0};
    assert_ok(meta()->page_list(f->store, container, ESDM_META_EVERY_SNAPSHOT, 7, take_entry, &kept,
                                &place_error));
    assert_int_equal(kept.count, 0);
    esdm_meta_relocation moves[2] = {{.page = old, .data = "one", .bytes = 3},
                                     {.page = 12345, .data = "two", .bytes = 3}};
    assert_ok(meta()->relocate(f->store, container, moves, 2, false, &place_error));
    assert_true(moves[0].moved);
    assert_false(moves[1].moved);
    assert_true(only_page(f->store, container, pin.snapshot).entry.page != old);
    assert_int_equal(meta_count_pages(f->store, container, committed.snapshot, 0), 1);
    meta()->unpin(f->store, container, pin.snapshot);
}

const struct CMUnitTest meta_upkeep_tests[] = {
    WITH_STORE(test_record_list__holds_garbage_that_is_pinned),
    WITH_STORE(test_writer__lives_until_it_ends),
    WITH_STORE(test_writer__dies_with_its_process),
    WITH_STORE(test_relocate__gives_a_page_a_new_number_and_content),
    WITH_STORE(test_relocate__makes_merging_the_old_page_a_conflict),
    WITH_STORE(test_relocate__moves_pages_of_old_snapshots),
};
const size_t meta_upkeep_count = sizeof meta_upkeep_tests / sizeof meta_upkeep_tests[0];
