/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Who asks for the same container again is answered without another look, as long as nobody
 *  has committed anything; else as by the first one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "commit_support.h"
#include "store.h"

typedef struct fixture {
    char directory[64];
    char json[128];
    sqlite__store *store;
    sqlite__store *other; /* of another program */
    uint64_t container;
    int statements; /* that the reader of `store` has begun */
} fixture;

static int
count_statement(unsigned what, void *user, void *statement, void *text)
{
    (void) what, (void) statement, (void) text;
    ++*(int *) user;
    return 0;
}

static int
setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    esdm_error err = {0};
    void *stores[2] = {NULL, NULL};
    (void) snprintf(f->directory, sizeof f->directory, "/tmp/esdm-newest.XXXXXX");
    if (mkdtemp(f->directory) == NULL)
        return -1;
    (void) snprintf(f->json, sizeof f->json, "{\"directory\": \"%s/meta\"}", f->directory);
    const esdm_plugin_config config = {.name = "metadata",
                                       .json = f->json,
                                       .path = "metadata",
                                       .site_id = "0123456789abcdef0123456789abcdef"};
    assert_int_equal(sqlite__make(&config, false, NULL, NULL, &err), ESDM_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(sqlite__open(&config, false, &stores[i], &err), ESDM_OK);
    f->store = stores[0];
    f->other = stores[1];
    f->container = commit(f->store, "a", ESDM_META_CREATE, 0, 3);
    (void) sqlite3_trace_v2(f->store->reader.db, SQLITE_TRACE_STMT, count_statement,
                            &f->statements);
    *state = f;
    return 0;
}

static int
teardown(void **state)
{
    fixture *f = *state;
    char command[100];
    sqlite__close(f->store);
    sqlite__close(f->other);
    (void) snprintf(command, sizeof command, "rm -rf %s", f->directory);
    int status = system(command);
    free(f);
    return status;
}

/* As a handle of structure 1 does that wants the newest; statements are counted from here on. */
static esdm_status
open_again(fixture *f, uint64_t *ret_container, uint64_t *ret_snapshot, uint64_t *ret_length)
{
    esdm_meta_snapshot loaded = {0};
    esdm_error err = {0};
    f->statements = 0;
    esdm_status status = sqlite__snapshot_open(f->store, "a", 0, f->container, 1, &loaded, &err);
    if (status != ESDM_OK)
        return status;
    assert_int_equal(loaded.nlengths, 1);
    assert_int_equal(loaded.record.snapshot, loaded.snapshot);
    *ret_container = loaded.record.container;
    *ret_snapshot = loaded.snapshot;
    *ret_length = loaded.lengths[0].length;
    free(loaded.document);
    free(loaded.lengths);
    return ESDM_OK;
}

#define ANY (-1)

static void
expect(fixture *f, uint64_t container, uint64_t snapshot, uint64_t length, int statements)
{
    uint64_t found[3] = {0};
    assert_int_equal(open_again(f, &found[0], &found[1], &found[2]), ESDM_OK);
    assert_int_equal(found[0], container);
    assert_int_equal(found[1], snapshot);
    assert_int_equal(found[2], length);
    if (statements != ANY)
        assert_int_equal(f->statements, statements);
}

static void
test_newest__is_not_read_again(void **state)
{
    fixture *f = *state;
    expect(f, f->container, 1, 3, ANY);
    expect(f, f->container, 1, 3, 0); /* shared memory tells whether anybody has committed */
    sqlite__unpin(f->store, f->container, 1);
    expect(f, f->container, 1, 3, 0); /* one pin is left */
    sqlite__unpin(f->store, f->container, 1);
    sqlite__unpin(f->store, f->container, 1);
    expect(f, f->container, 1, 3, 0); /* so that who pins it anew knows that it is there */
    sqlite__unpin(f->store, f->container, 1);
}

static void
test_newest__is_what_others_have_committed(void **state)
{
    fixture *f = *state;
    sqlite__store *const writers[] = {f->other, f->store};
    uint64_t snapshot = 1;
    expect(f, f->container, 1, 3, ANY);
    for (int i = 0; i < 6; i++) {
        (void) commit(writers[i % 2], "a", ESDM_META_UPDATE, f->container, 10 + (uint64_t) i);
        expect(f, f->container, ++snapshot, 10 + (uint64_t) i, 1);
        expect(f, f->container, snapshot, 10 + (uint64_t) i, 0);
    }
    /* Of what is replaced, removed and renamed. */
    uint64_t second = commit(f->other, "a", ESDM_META_REPLACE, 0, 5);
    assert_int_not_equal(second, f->container);
    expect(f, second, 1, 5, ANY);
    uint64_t removed = 0;
    esdm_error err = {0};
    esdm_meta_container record = {0};
    assert_int_equal(sqlite__container_find(f->store, "a", &record, &err), ESDM_OK);
    assert_int_equal(record.container, second);
    assert_int_equal(sqlite__container_move(f->other, "a", "b", false, NULL, &removed, &err),
                     ESDM_OK);
    assert_int_equal(sqlite__container_find(f->store, "a", &record, &err), ESDM_ENOENT);
    uint64_t found[3];
    assert_int_equal(open_again(f, &found[0], &found[1], &found[2]), ESDM_ENOENT);
    assert_int_equal(sqlite__container_find(f->store, "b", &record, &err), ESDM_OK);
    assert_int_equal(record.container, second);
    assert_int_equal(sqlite__container_remove(f->store, "b", &removed, &err), ESDM_OK);
    assert_int_equal(sqlite__container_find(f->store, "b", &record, &err), ESDM_ENOENT);
}

static void
test_newest__record_is_not_read_again(void **state)
{
    fixture *f = *state;
    esdm_meta_container first = {0}, second = {0};
    esdm_error err = {0};
    (void) commit(f->other, "other", ESDM_META_CREATE, 0, 4);
    assert_int_equal(sqlite__container_find(f->store, "a", &first, &err), ESDM_OK);
    f->statements = 0;
    (void) sqlite3_trace_v2(f->store->reader.db, SQLITE_TRACE_STMT, count_statement,
                            &f->statements);
    assert_int_equal(sqlite__container_find(f->store, "a", &second, &err), ESDM_OK);
    assert_int_equal(f->statements, 0);
    assert_memory_equal(&first, &second, sizeof first);
    /* A record alone is no snapshot, and another name another record. */
    expect(f, f->container, 1, 3, ANY);
    assert_int_equal(sqlite__container_find(f->store, "other", &second, &err), ESDM_OK);
    assert_int_not_equal(second.container, first.container);
    assert_int_equal(sqlite__container_find(f->store, "none", &second, &err), ESDM_ENOENT);
}

static bool
count_one(const char *name, const esdm_meta_container *record, void *user)
{
    (void) name, (void) record;
    ++*(int *) user;
    return true;
}

/* A name that is free is asked for several times before a container gets it. */
static void
test_newest__absence_is_not_looked_for_again(void **state)
{
    fixture *f = *state;
    esdm_meta_container record = {0};
    esdm_error err = {0};
    uint64_t removed = 0;
    int below = 0;
    assert_int_equal(sqlite__container_find(f->store, "b", &record, &err), ESDM_ENOENT);
    for (int i = 0; i < 3; i++) {
        (void) commit(f->other, "c", i == 0 ? ESDM_META_CREATE : ESDM_META_REPLACE, 0, 4);
        assert_int_equal(sqlite__container_list(f->store, "b", count_one, &below, &err), ESDM_OK);
        f->statements = 0;
        assert_int_equal(sqlite__container_find(f->store, "b", &record, &err), ESDM_ENOENT);
        assert_int_equal(f->statements, 0);
        assert_int_equal(sqlite__container_find(f->store, "bb", &record, &err), ESDM_ENOENT);
        assert_int_equal(f->statements, 1);
        assert_int_equal(sqlite__container_find(f->store, "bb", &record, &err), ESDM_ENOENT);
        assert_int_equal(f->statements, 1);
    }
    assert_int_equal(below, 0);
    uint64_t made = commit(f->other, "bb", ESDM_META_CREATE, 0, 4);
    assert_int_equal(sqlite__container_find(f->store, "bb", &record, &err), ESDM_OK);
    assert_int_equal(record.container, made);
    assert_int_equal(sqlite__container_remove(f->store, "bb", &removed, &err), ESDM_OK);
    assert_int_equal(sqlite__container_find(f->store, "bb", &record, &err), ESDM_ENOENT);
    /* What lies below a name is no container of that name, and the other way round. */
    made = commit(f->store, "d/e", ESDM_META_CREATE, 0, 4);
    assert_int_equal(sqlite__container_list(f->store, "d", count_one, &below, &err), ESDM_OK);
    assert_int_equal(below, 1);
    assert_int_equal(sqlite__container_find(f->store, "d", &record, &err), ESDM_ENOENT);
    assert_int_equal(sqlite__container_find(f->store, "d/e", &record, &err), ESDM_OK);
    assert_int_equal(record.container, made);
}

static void
expect_absent(fixture *f, const char *name, int statements)
{
    esdm_meta_container record = {0};
    esdm_error err = {0};
    f->statements = 0;
    assert_int_equal(sqlite__container_find(f->store, name, &record, &err), ESDM_ENOENT);
    if (statements != ANY)
        assert_int_equal(f->statements, statements);
}

static void
expect_there(fixture *f, const char *name, uint64_t container)
{
    esdm_meta_container record = {0};
    esdm_error err = {0};
    assert_int_equal(sqlite__container_find(f->store, name, &record, &err), ESDM_OK);
    assert_int_equal(record.container, container);
}

/* A program makes one container after the other in a folder, which is no container. */
static void
test_newest__absence_outlives_commits_of_ones_own(void **state)
{
    fixture *f = *state;
    esdm_error err = {0};
    int below = 0;
    char name[40];
    expect_absent(f, "runs", 1);
    expect_absent(f, "runs/all", 1);
    for (int i = 0; i < 20; i++) {
        (void) snprintf(name, sizeof name, "runs/all/%d", i);
        f->statements = 0;
        assert_int_equal(sqlite__container_list(f->store, name, count_one, &below, &err), ESDM_OK);
        assert_true(i == 0 || f->statements == 0); /* the writer has all that it takes */
        expect_absent(f, name, 0);
        uint64_t made = commit(f->store, name, ESDM_META_CREATE, 0, 4);
        expect_there(f, name, made);
        (void) commit(f->store, name, ESDM_META_UPDATE, made, 5);
        expect_absent(f, "runs", 0);
        expect_absent(f, "runs/all", 0);
    }
    assert_int_equal(below, 0);
}

static void
test_newest__absence_ends_with_whatever_puts_the_name(void **state)
{
    fixture *f = *state;
    esdm_error err = {0};
    uint64_t replaced = 0;
    expect_absent(f, "b", 1);
    expect_absent(f, "c", 1);
    expect_there(f, "b", commit(f->store, "b", ESDM_META_CREATE, 0, 4)); /* itself */
    expect_absent(f, "c", 0);
    uint64_t c = commit(f->other, "c", ESDM_META_CREATE, 0, 4); /* another program, */
    expect_there(f, "c", c);
    expect_absent(f, "d", 1);
    uint64_t d = commit(f->other, "d", ESDM_META_CREATE, 0, 4); /* also just before */
    (void) commit(f->store, "e", ESDM_META_CREATE, 0, 4);
    expect_there(f, "d", d);
    expect_absent(f, "g", 1);
    (void) commit(f->store, "h", ESDM_META_CREATE, 0, 4);
    uint64_t g = commit(f->other, "g", ESDM_META_CREATE, 0, 4); /* and after */
    expect_there(f, "g", g);
    expect_absent(f, "i", 1);
    assert_int_equal(sqlite__container_move(f->store, "c", "i", false, NULL, &replaced, &err),
                     ESDM_OK);
    expect_there(f, "i", c); /* by a new name */
    expect_absent(f, "/former/i//1", 1);
    const esdm_meta_commit again = {.kind = ESDM_META_REPLACE,
                                    .name = "i",
                                    .uuid = "0123456789abcdef0123456789abcdef",
                                    .document = "{}",
                                    .document_bytes = 2,
                                    .keep_as = "/former/i//1",
                                    .history = 1};
    esdm_meta_committed done = {0};
    assert_int_equal(sqlite__commit(f->store, &again, &done, &err), ESDM_OK);
    expect_there(f, "/former/i//1", c); /* kept when it was replaced */
}

/* The writer is asked what is there, after a commit by it; it finds what others have, too. */
static void
test_newest__writer_finds_what_has_a_name(void **state)
{
    fixture *f = *state;
    esdm_error err = {0};
    int below = 0;
    (void) commit(f->other, "d/e/f", ESDM_META_CREATE, 0, 4);
    (void) commit(f->store, "g", ESDM_META_CREATE, 0, 4);
    (void) commit(f->store, "h!", ESDM_META_CREATE, 0, 4);
    (void) commit(f->store, "h0", ESDM_META_CREATE, 0, 4);
    static const struct {
        const char *name;
        int found;
    } names[] = {{"d", 1}, {"d/e", 1}, {"d/e/f", 1}, {"d/e/f/g", 0}, {"e", 0}, {"g", 1}, {"h", 0}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        below = 0;
        f->statements = 0;
        assert_int_equal(sqlite__container_list(f->store, names[i].name, count_one, &below, &err),
                         ESDM_OK);
        assert_int_equal(below, names[i].found);
        assert_true(below > 0 || f->statements == 0);
    }
    (void) commit(f->other, "e/1", ESDM_META_CREATE, 0, 4);
    assert_int_equal(sqlite__container_list(f->store, "e", count_one, &below, &err), ESDM_OK);
    assert_int_equal(below, 1);
}

/* What is in the log may go into the database, and a new log begin. */
static void
test_newest__absence_in_a_log_that_begins_anew(void **state)
{
    fixture *f = *state;
    uint64_t b = 0;
    for (int i = 0; i < 3; i++) {
        expect_absent(f, "b", ANY);
        assert_int_equal(
            sqlite3_exec(f->other->reader.db, "PRAGMA wal_checkpoint(RESTART)", NULL, NULL, NULL),
            SQLITE_OK);
        if (i == 2)
            b = commit(f->other, "b", ESDM_META_CREATE, 0, 4);
        (void) commit(f->store, "c", ESDM_META_REPLACE, 0, 4);
    }
    expect_there(f, "b", b);
}

/* What is read within a transaction is of that, whatever others commit. */
static void
test_newest__held_state_is_kept(void **state)
{
    fixture *f = *state;
    esdm_meta_container record = {0};
    esdm_error err = {0};
    assert_int_equal(sqlite__container_find(f->store, "b", &record, &err), ESDM_ENOENT);
    assert_int_equal(sqlite__hold(f->store, &err), ESDM_OK);
    assert_int_equal(sqlite__container_find(f->store, "a", &record, &err), ESDM_OK);
    (void) commit(f->other, "b", ESDM_META_CREATE, 0, 4);
    assert_int_equal(sqlite__container_find(f->store, "b", &record, &err), ESDM_ENOENT);
    assert_true(sqlite__release(f->store));
    assert_int_equal(sqlite__container_find(f->store, "b", &record, &err), ESDM_OK);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_newest__is_not_read_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_newest__is_what_others_have_committed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_newest__record_is_not_read_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_newest__absence_is_not_looked_for_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_newest__absence_outlives_commits_of_ones_own, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_newest__absence_ends_with_whatever_puts_the_name,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_newest__writer_finds_what_has_a_name, setup, teardown),
        cmocka_unit_test_setup_teardown(test_newest__absence_in_a_log_that_begins_anew, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_newest__held_state_is_kept, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
