/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Small index pages beside the one that was asked for come with it: each page as it is, few
 *  readings, and none that counts after somebody has committed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "store.h"

#define PAGES 12
#define LARGE 6 /* number of the page that is larger than what is kept */

typedef struct fixture {
    char directory[64];
    char json[128];
    sqlite__store *store;
    sqlite__store *other; /* of another program */
    uint64_t container;
    int statements; /* that the reader of `store` has begun */
} fixture;

static size_t
size_of(uint64_t number)
{
    return number == LARGE ? 9000 : 100 + number;
}

static uint64_t
commit(sqlite__store *store, const char *name)
{
    static unsigned number;
    static char data[PAGES][9000];
    char uuid[40];
    esdm_error err = {0};
    esdm_meta_committed done = {0};
    esdm_meta_new_page pages[PAGES];
    const uint64_t box[] = {0, 1};
    (void) snprintf(uuid, sizeof uuid, "%032x", ++number);
    for (size_t i = 0; i < PAGES; i++) {
        memset(data[i], (int) (i + 1), sizeof data[i]);
        pages[i] = (esdm_meta_new_page){.dataset = (uint32_t) i + 1,
                                        .rank = 1,
                                        .box = box,
                                        .records = 1,
                                        .data = data[i],
                                        .bytes = size_of(i + 1)};
    }
    const esdm_meta_commit what = {.kind = ESDM_META_CREATE,
                                   .name = name,
                                   .uuid = uuid,
                                   .document = "{}",
                                   .document_bytes = 2,
                                   .pages = pages,
                                   .npages = PAGES,
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
    (void) snprintf(f->directory, sizeof f->directory, "/tmp/esdm-ahead.XXXXXX");
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
    f->container = commit(f->store, "a");
    (void) commit(f->store, "b");
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

/* @return statements that it took. */
static int
load(fixture *f, uint64_t number)
{
    char expected[9000];
    void *data = NULL;
    size_t bytes = 0;
    esdm_error err = {0};
    f->statements = 0;
    if (sqlite__page_load(f->store, sqlite__key(f->container, number), &data, &bytes, &err) !=
        ESDM_OK)
        fail_msg("page %d: %s", (int) number, err.message);
    memset(expected, (int) number, sizeof expected);
    assert_int_equal(bytes, size_of(number));
    assert_memory_equal(data, expected, bytes);
    free(data);
    return f->statements;
}

static void
test_pages_ahead__come_with_one_of_them(void **state)
{
    fixture *f = *state;
    assert_int_equal(load(f, 3), 1);
    assert_int_equal(load(f, 1), 0);
    assert_int_equal(load(f, 5), 0);
    assert_int_equal(load(f, 2), 0);
    assert_int_equal(load(f, 4), 0);
    assert_int_equal(load(f, 4), 1); /* it was given away */
    assert_int_equal(load(f, 8), 1);
    assert_int_equal(load(f, 9), 1); /* one after the other */
    for (uint64_t number = 10; number <= PAGES; number++)
        assert_int_equal(load(f, number), 0);
    assert_int_equal(load(f, LARGE), 1);
    assert_int_equal(load(f, 1), 1);
    assert_int_equal(load(f, 2), 1); /* up to the large one */
    assert_int_equal(load(f, 5), 0);
    assert_true(load(f, LARGE) > 0);
}

static void
test_pages_ahead__go_with_each_commit(void **state)
{
    fixture *f = *state;
    void *data = NULL;
    size_t bytes = 0;
    esdm_error err = {0};
    assert_int_equal(load(f, 1), 1);
    assert_int_equal(load(f, 2), 0);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(f->store->file, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db, "DELETE FROM page_data WHERE page & 0xffffffff = 3", NULL, NULL, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_int_equal(sqlite__page_load(f->store, sqlite__key(f->container, 3), &data, &bytes, &err),
                     ESDM_ENOENT);
    assert_int_equal(load(f, 4), 0); /* it came with what was asked for since */
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_pages_ahead__come_with_one_of_them, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pages_ahead__go_with_each_commit, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
