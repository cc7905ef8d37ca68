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

#include "store.h"

typedef struct fixture {
    char directory[64];
    char json[128];
    sqlite__store *store;
    sqlite__store *other; /* of another program */
    uint64_t container;
    int statements; /* that the reader of `store` has begun */
} fixture;

static uint64_t
commit(sqlite__store *store, const char *name, esdm_meta_commit_kind kind, uint64_t container,
       uint64_t length)
{
    static unsigned number;
    char uuid[40];
    esdm_error err = {0};
    esdm_meta_committed done = {0};
    const esdm_meta_length lengths[] = {{.dimension = 1, .length = length}};
    (void) snprintf(uuid, sizeof uuid, "%032x", ++number);
    const esdm_meta_commit what = {.kind = kind,
                                   .name = name,
                                   .uuid = uuid,
                                   .container = container,
                                   .document = kind == ESDM_META_UPDATE ? NULL : "{}",
                                   .document_bytes = kind == ESDM_META_UPDATE ? 0 : 2,
                                   .lengths = lengths,
                                   .nlengths = 1,
                                   .history = 1};
    if (sqlite__commit(store, &what, &done, &err) != ESDM_OK)
        fail_msg("%s", err.message);
    return done.container;
}

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
        cmocka_unit_test_setup_teardown(test_newest__held_state_is_kept, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
