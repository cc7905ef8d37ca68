/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Who settles a store, as exit() does, and commits once more waits for others as before. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "store.h"

/* Another program's commit, which takes its time. */
static void *
end_later(void *db)
{
    (void) usleep(50000);
    (void) sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    return NULL;
}

static void
test_settle__leaves_a_store_that_waits(void **state)
{
    char directory[] = "/tmp/esdm-settle.XXXXXX";
    char text[128];
    void *opened = NULL;
    sqlite__link other = {0};
    pthread_t thread;
    esdm_error err = {0};
    const struct timespec past[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    (void) state;
    assert_non_null(mkdtemp(directory));
    (void) snprintf(text, sizeof text, "{\"directory\": \"%s/meta\"}", directory);
    const esdm_plugin_config config = {.name = "metadata",
                                       .json = text,
                                       .path = "metadata",
                                       .site_id = "0123456789abcdef0123456789abcdef"};
    assert_int_equal(sqlite__make(&config, false, NULL, NULL, &err), ESDM_OK);
    assert_int_equal(sqlite__open(&config, false, &opened, &err), ESDM_OK);
    sqlite__store *store = opened;
    assert_int_equal(sqlite__fact_put(store, "a", "1", &err), ESDM_OK);
    assert_int_equal(utimensat(AT_FDCWD, store->file, past, 0), 0);
    sqlite__settle(store);
    struct stat found;
    char log[256];
    (void) snprintf(log, sizeof log, "%s-wal", store->file);
    assert_int_equal(stat(log, &found), 0);
    assert_int_equal(found.st_size, 0); /* it was settled */
    assert_int_equal(sqlite__link_open(&other, store->file, "a", SQLITE_OPEN_READWRITE, &err),
                     ESDM_OK);
    assert_int_equal(sqlite3_exec(other.db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(pthread_create(&thread, NULL, end_later, other.db), 0);
    assert_int_equal(sqlite__fact_put(store, "a", "2", &err), ESDM_OK);
    assert_true(store->writer.waited_ns > 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    sqlite__link_close(&other);
    sqlite__close(store);
    (void) snprintf(text, sizeof text, "rm -rf %s", directory);
    assert_int_equal(system(text), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_settle__leaves_a_store_that_waits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
