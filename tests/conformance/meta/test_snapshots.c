/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Snapshots, their history, and pins. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "meta.h"

/* Stores may spare young snapshots, for writers that have not pinned theirs yet. */
#define OLD_ENOUGH_US 700000
/* …and need not delete at every commit. */
#define SLACK 64

static void
append(const fixture *f, uint64_t container, unsigned commits, uint32_t history)
{
    for (unsigned i = 0; i < commits; i++) {
        esdm_meta_commit commit = meta_new_commit(ESDM_META_UPDATE);
        esdm_meta_committed committed;
        esdm_meta_new_page page = meta_page(1, 1, i);
        commit.container = container;
        commit.pages = &page;
        commit.npages = 1;
        commit.history = history;
        assert_ok(meta()->commit(f->store, &commit, &committed, &place_error));
    }
}

typedef struct told {
    uint64_t snapshot, parent;
    char writer[64], message[64];
    size_t count;
} told;

static bool
tell(uint64_t snapshot, uint64_t parent, uint64_t time_ns, const char *writer, const char *message,
     void *user)
{
    told *t = user;
    assert_true(time_ns > 0);
    t->snapshot = snapshot;
    t->parent = parent;
    (void) snprintf(t->writer, sizeof t->writer, "%s", writer);
    (void) snprintf(t->message, sizeof t->message, "%s", message);
    return ++t->count != 2;
}

static void
test_snapshot__list_tells_about_each(void **state)
{
    fixture *f = *state;
    esdm_meta_committed committed = meta_create(f->store, "a");
    esdm_meta_commit commit = meta_new_commit(ESDM_META_UPDATE);
    told t = {0};
    commit.container = committed.container;
    commit.history = 10;
    commit.writer = "me@here:7";
    commit.message = "a message";
    assert_ok(meta()->commit(f->store, &commit, &committed, &place_error));
    assert_ok(meta()->commit(f->store, &commit, &committed, &place_error));
    assert_int_equal(meta_count_snapshots(f->store, "a"), 3);
    assert_ok(meta()->snapshot_list(f->store, "a", tell, &t, &place_error));
    assert_int_equal(t.count, 2); /* stopped */
    assert_int_equal(t.snapshot, 2);
    assert_int_equal(t.parent, 1);
    assert_string_equal(t.writer, "me@here:7");
    assert_string_equal(t.message, "a message");
}

typedef struct timed {
    uint64_t snapshots[64], times[64];
    size_t count;
} timed;

static bool
note_time(uint64_t snapshot, uint64_t parent, uint64_t time_ns, const char *writer,
          const char *message, void *user)
{
    timed *all = user;
    (void) parent, (void) writer, (void) message;
    assert_true(all->count == 0 || time_ns >= all->times[all->count - 1]);
    all->snapshots[all->count] = snapshot;
    all->times[all->count++] = time_ns;
    return all->count < 64;
}

/* Asks for each time that the list has, and for the nanosecond before it. */
static void
check_times(const fixture *f, const char *name)
{
    timed all = {.count = 0};
    assert_ok(meta()->snapshot_list(f->store, name, note_time, &all, &place_error));
    for (size_t i = 0; i < all.count; i++) {
        for (uint64_t before = 0; before < 2; before++) {
            uint64_t asked = all.times[i] - before;
            uint64_t wanted = 0, found = 0;
            for (size_t j = 0; j < all.count && all.times[j] <= asked; j++)
                wanted = all.snapshots[j];
            esdm_status status = meta()->snapshot_at(f->store, name, asked, &found, &place_error);
            assert_int_equal(status, wanted == 0 ? ESDM_ENOENT : ESDM_OK);
            assert_int_equal(found, wanted);
        }
    }
    uint64_t last = 0;
    assert_ok(meta()->snapshot_at(f->store, name, INT64_MAX, &last, &place_error));
    assert_int_equal(last, all.snapshots[all.count - 1]);
}

static void
test_snapshot__is_found_by_its_time(void **state)
{
    fixture *f = *state;
    uint64_t found = 0;
    if (meta()->snapshot_at == NULL)
        skip();
    assert_int_equal(meta()->snapshot_at(f->store, "a", INT64_MAX, &found, &place_error),
                     ESDM_ENOENT);
    for (unsigned commits = 0; commits < 12; commits++) { /* others lie before and behind it */
        char name[8];
        (void) snprintf(name, sizeof name, "a%u", commits);
        esdm_meta_committed committed = meta_create(f->store, name);
        append(f, committed.container, commits, 100);
        check_times(f, name);
    }
    /* Some are gone, and one among them is kept by a pin. */
    esdm_meta_committed committed = meta_create(f->store, "b");
    append(f, committed.container, 20, 100);
    esdm_meta_snapshot pinned = meta_pin(f->store, "b", 7);
    usleep(OLD_ENOUGH_US);
    assert_ok(meta()->prune(f->store, committed.container, 5, &place_error));
    check_times(f, "b");
    meta()->unpin(f->store, committed.container, pinned.snapshot);
    assert_ok(meta()->prune(f->store, committed.container, 1, &place_error));
    check_times(f, "b");
}

static void
test_snapshot__old_ones_show_old_state(void **state)
{
    fixture *f = *state;
    esdm_meta_committed committed = meta_create(f->store, "a");
    append(f, committed.container, 5, 100);
    for (uint64_t s = 1; s <= 6; s++) {
        esdm_meta_snapshot old = meta_pin(f->store, "a", s);
        assert_int_equal(old.snapshot, s);
        assert_int_equal(old.record.snapshot, 6);
        assert_int_equal(meta_count_pages(f->store, committed.container, s, 0), s - 1);
        meta()->unpin(f->store, committed.container, s);
    }
}

static void
test_snapshot__history_is_bounded(void **state)
{
    fixture *f = *state;
    esdm_meta_snapshot gone;
    esdm_meta_committed one = meta_create(f->store, "one");
    esdm_meta_committed five = meta_create(f->store, "five");
    for (int round = 0; round < 3; round++) {
        append(f, one.container, 100, 1);
        append(f, five.container, 100, 5);
        (void) usleep(OLD_ENOUGH_US);
    }
    append(f, one.container, SLACK, 1);
    append(f, five.container, SLACK, 5);
    assert_in_range(meta_count_snapshots(f->store, "one"), 1, 1 + 2 * SLACK);
    assert_in_range(meta_count_snapshots(f->store, "five"), 5, 5 + 2 * SLACK);
    assert_status(meta()->snapshot_open(f->store, "one", 5, 0, 0, &gone, &place_error),
                  ESDM_ENOENT);
    /* The document came with snapshot 1, which is gone. */
    esdm_meta_snapshot newest = meta_pin(f->store, "one", 0);
    assert_int_equal(newest.snapshot, 301 + SLACK);
    assert_int_equal(meta_count_pages(f->store, one.container, newest.snapshot, 0), 300 + SLACK);
    meta()->unpin(f->store, one.container, newest.snapshot);
}

/* Each commit merges all pages into one; what the pins need must stay, the rest must go. */
static void
test_snapshot__pinned_ones_survive_pruning(void **state)
{
    enum { COMMITS = 200 };
    fixture *f = *state;
    uint64_t pages[COMMITS];
    uint64_t pinned[3] = {0};
    size_t npinned = 0;
    esdm_meta_committed committed = meta_create(f->store, "a");
    uint64_t container = committed.container;
    for (unsigned i = 0; i < COMMITS; i++) {
        esdm_meta_commit commit = meta_new_commit(ESDM_META_UPDATE);
        esdm_meta_new_page page = meta_page(1, 1 + i, i);
        char document[64];
        commit.container = container;
        commit.pages = &page;
        commit.npages = 1;
        commit.merged = &pages[i > 0 ? i - 1 : 0];
        commit.nmerged = i > 0;
        if (i % 10 == 0) {
            (void) snprintf(document, sizeof document, "{\"n\": %u}", i);
            commit.structure = committed.structure;
            commit.document = document;
            commit.document_bytes = strlen(document);
        }
        assert_ok(meta()->commit(f->store, &commit, &committed, &place_error));
        pages[i] = committed.first_page;
        if (i % 60 == 25)
            pinned[npinned++] = meta_pin(f->store, "a", 0).snapshot;
        if (i % 50 == 49)
            (void) usleep(OLD_ENOUGH_US);
    }
    assert_int_equal(npinned, 3);
    for (size_t p = 0; p < npinned; p++) {
        esdm_meta_snapshot loaded = {0};
        char document[64];
        void *data = NULL;
        size_t bytes = 0;
        uint64_t i = pinned[p] - 2;
        assert_ok(meta()->snapshot_open(f->store, "a", pinned[p], 0, 0, &loaded, &place_error));
        (void) snprintf(document, sizeof document, "{\"n\": %u}", (unsigned) (i / 10 * 10));
        assert_string_equal(loaded.document, document);
        free(loaded.document);
        assert_int_equal(meta_count_pages(f->store, container, pinned[p], 0), 1);
        assert_ok(meta()->page_load(f->store, pages[i], &data, &bytes, &place_error));
        assert_memory_equal(data, meta_page(1, 1, i).data, bytes);
        free(data);
        meta()->unpin(f->store, container, pinned[p]); /* twice: pins count */
    }
    size_t kept = 0;
    for (unsigned i = 0; i < COMMITS; i++) {
        void *data = NULL;
        size_t bytes = 0;
        kept += meta()->page_load(f->store, pages[i], &data, &bytes, NULL) == ESDM_OK;
        free(data);
    }
    assert_in_range(kept, 4, 4 + 2 * SLACK);
    for (size_t p = 0; p < npinned; p++)
        meta()->unpin(f->store, container, pinned[p]);
    append(f, container, SLACK, 1);
    (void) usleep(OLD_ENOUGH_US);
    append(f, container, SLACK, 1);
    for (size_t p = 0; p < npinned; p++) {
        esdm_meta_snapshot gone;
        assert_status(meta()->snapshot_open(f->store, "a", pinned[p], 0, 0, &gone, &place_error),
                      ESDM_ENOENT);
    }
}

static void
test_snapshot__pin_needs_a_snapshot(void **state)
{
    fixture *f = *state;
    esdm_meta_committed committed = meta_create(f->store, "a");
    assert_ok(meta()->pin(f->store, committed.container, 1, &place_error));
    assert_status(meta()->pin(f->store, committed.container, 2, &place_error), ESDM_ENOENT);
    assert_status(meta()->pin(f->store, committed.container + 5, 1, &place_error), ESDM_ENOENT);
    assert_int_not_equal(meta()->pin(f->store, UINT64_MAX, 1, &place_error), ESDM_OK);
    meta()->unpin(f->store, committed.container, 1);
    meta()->unpin(f->store, committed.container, 2); /* never pinned */
}

static void
test_snapshot__pinned_garbage_stays_whole(void **state)
{
    fixture *f = *state;
    void *second = meta_open(f, false);
    esdm_meta_committed committed = meta_create(f->store, "a");
    uint64_t container = committed.container;
    assert_ok(meta_append(f->store, container, 1, &committed));
    meta_pin(f->store, "a", 0);
    meta_pin(f->store, "a", 0);
    meta_pin(second, "a", 1);
    assert_ok(meta()->container_remove(f->store, "a", &container, &place_error));

    for (int left = 3; left > 0; left--) {
        void *data = NULL;
        size_t bytes = 0;
        assert_false(meta_is_garbage(f->store, container));
        assert_false(meta_is_garbage(second, container));
        assert_status(meta()->forget(f->store, container, &place_error), ESDM_ECONFLICT);
        assert_int_equal(meta_count_pages(second, container, 2, 0), 1);
        assert_ok(meta()->page_load(f->store, committed.first_page, &data, &bytes, &place_error));
        free(data);
        meta()->unpin(left == 1 ? second : f->store, container, left == 1 ? 1 : 2);
    }
    assert_true(meta_becomes_garbage(f->store, container));
    assert_ok(meta()->forget(second, container, &place_error));
    assert_false(meta_is_garbage(f->store, container));
    meta()->close(second);
}

static void
test_snapshot__closing_frees_pins(void **state)
{
    fixture *f = *state;
    void *second = meta_open(f, true);
    uint64_t container = meta_create(f->store, "a").container;
    meta_pin(second, "a", 0);
    assert_ok(meta()->container_remove(f->store, "a", &container, &place_error));
    assert_false(meta_is_garbage(f->store, container));
    meta()->close(second);
    assert_true(meta_becomes_garbage(f->store, container));
}

/* ---- other processes ------------------------------------------------------------------------ */

static void
pin_and_wait(const fixture *f, int tell_fd)
{
    void *store = NULL;
    esdm_meta_snapshot loaded;
    bool good = meta()->open(&f->place.config, true, &store, NULL) == ESDM_OK &&
                meta()->snapshot_open(store, "a", 0, 0, 0, &loaded, NULL) == ESDM_OK;
    char answer = good ? 'y' : 'n';
    if (write(tell_fd, &answer, 1) != 1)
        _exit(1);
    for (;;)
        (void) pause();
}

static void
test_snapshot__pins_of_a_process_die_with_it(void **state)
{
    fixture *f = *state;
    int fds[2];
    char answer = 0;
    skip_if(!place_current_kind->shared);
    uint64_t container = meta_create(f->store, "a").container;
    assert_int_equal(pipe(fds), 0);
    pid_t child = fork();
    if (child == 0)
        pin_and_wait(f, fds[1]);
    assert_int_equal(read(fds[0], &answer, 1), 1);
    assert_int_equal(answer, 'y');
    assert_ok(meta()->container_remove(f->store, "a", &container, &place_error));
    assert_false(meta_is_garbage(f->store, container));
    assert_status(meta()->forget(f->store, container, &place_error), ESDM_ECONFLICT);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(meta_becomes_garbage(f->store, container));
    assert_ok(meta()->forget(f->store, container, &place_error));
    (void) close(fds[0]);
    (void) close(fds[1]);
}

/* A forked child shares locks and connections: whatever it does with them must not matter. */
static void
use_inherited(void *user)
{
    const fixture *f = user;
    esdm_meta_container record;
    esdm_meta_committed committed;
    if (meta()->container_find(f->store, "a", &record, &place_error) == ESDM_OK)
        _exit(1);
    if (meta_try_create(f->store, "b", &committed) == ESDM_OK)
        _exit(2);
    meta()->unpin(f->store, 1, 1);
    void *own = NULL;
    if (meta()->open(&f->place.config, false, &own, &place_error) != ESDM_OK ||
        meta()->container_find(own, "a", &record, &place_error) != ESDM_OK ||
        meta_append(own, record.container, 1, &committed) != ESDM_OK)
        _exit(3);
    meta()->close(f->store);
    if (meta_append(own, record.container, 1, &committed) != ESDM_OK)
        _exit(4);
    meta()->close(own);
}

static void
test_snapshot__forked_child_disturbs_nothing(void **state)
{
    fixture *f = *state;
    skip_if(!place_current_kind->shared);
    esdm_meta_committed committed = meta_create(f->store, "a");
    uint64_t container = committed.container;
    esdm_meta_snapshot pinned = meta_pin(f->store, "a", 0);
    for (int round = 0; round < 5; round++) {
        assert_int_equal(place_in_child(use_inherited, f), 0);
        assert_ok(meta_append(f->store, container, 1, &committed));
        assert_int_equal(committed.snapshot, 4 + 3 * round);
    }
    assert_ok(meta()->container_remove(f->store, "a", &container, &place_error));
    assert_false(meta_is_garbage(f->store, container));
    meta()->unpin(f->store, container, pinned.snapshot);
    assert_true(meta_becomes_garbage(f->store, container));
}

const struct CMUnitTest meta_snapshot_tests[] = {
    WITH_STORE(test_snapshot__list_tells_about_each),
    WITH_STORE(test_snapshot__is_found_by_its_time),
    WITH_STORE(test_snapshot__old_ones_show_old_state),
    WITH_STORE(test_snapshot__history_is_bounded),
    WITH_STORE(test_snapshot__pinned_ones_survive_pruning),
    WITH_STORE(test_snapshot__pin_needs_a_snapshot),
    WITH_STORE(test_snapshot__pinned_garbage_stays_whole),
    WITH_STORE(test_snapshot__closing_frees_pins),
    WITH_STORE(test_snapshot__pins_of_a_process_die_with_it),
    WITH_STORE(test_snapshot__forked_child_disturbs_nothing),
};
const size_t meta_snapshot_count = sizeof meta_snapshot_tests / sizeof meta_snapshot_tests[0];
