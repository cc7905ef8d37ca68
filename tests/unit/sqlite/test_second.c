/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Threads that open containers do not wait for each other: a second connection for reading,
 *  once the first one was often in use, and none for who reads alone. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "commit_support.h"
#include "store.h"

#define ROUNDS  1000
#define READERS 4

typedef struct fixture {
    char directory[64];
    char json[128];
    esdm_plugin_config config;
    sqlite__store *store;
    uint64_t container;
    atomic_bool opened; /* by another thread */
    uint64_t length;    /* that it found */
    atomic_bool ended;
} fixture;

static int
setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    esdm_error err = {0};
    void *store = NULL;
    (void) snprintf(f->directory, sizeof f->directory, "/tmp/esdm-second.XXXXXX");
    if (mkdtemp(f->directory) == NULL)
        return -1;
    (void) snprintf(f->json, sizeof f->json, "{\"directory\": \"%s/meta\"}", f->directory);
    f->config = (esdm_plugin_config){.name = "metadata",
                                     .json = f->json,
                                     .path = "metadata",
                                     .site_id = "0123456789abcdef0123456789abcdef"};
    assert_int_equal(sqlite__make(&f->config, false, NULL, NULL, &err), ESDM_OK);
    assert_int_equal(sqlite__open(&f->config, false, &store, &err), ESDM_OK);
    f->store = store;
    f->container = commit(f->store, "a", ESDM_META_CREATE, 0, 3);
    *state = f;
    return 0;
}

static int
teardown(void **state)
{
    fixture *f = *state;
    char command[100];
    sqlite__close(f->store);
    (void) snprintf(command, sizeof command, "rm -rf %s", f->directory);
    int status = system(command);
    free(f);
    return status;
}

static bool
no_page(const esdm_meta_page *page, void *user)
{
    (void) page, (void) user;
    return true;
}

/* As an opening does. Threads have no use of cmocka: 0 is a failure. */
static uint64_t
open_once(sqlite__store *store, const char *name)
{
    esdm_meta_snapshot loaded = {0};
    esdm_error err = {0};
    if (sqlite__snapshot_open(store, name, 0, 0, 0, &loaded, &err) != ESDM_OK)
        return 0;
    uint64_t length = loaded.nlengths == 1 ? loaded.lengths[0].length : 0;
    uint64_t snapshot = loaded.snapshot;
    if (sqlite__page_list(store, loaded.record.container, snapshot, 0, no_page, NULL, &err) !=
        ESDM_OK)
        length = 0;
    sqlite__unpin(store, loaded.record.container, snapshot);
    free(loaded.document);
    free(loaded.lengths);
    return length;
}

static void *
open_beside(void *user)
{
    fixture *f = user;
    f->length = open_once(f->store, "a");
    atomic_store(&f->opened, true);
    return NULL;
}

/* @return whether another thread could open the container while this one holds the connection. */
static bool
opens_meanwhile(fixture *f)
{
    esdm_error err = {0};
    pthread_t thread;
    const struct timespec nap = {.tv_nsec = 1000000};
    atomic_store(&f->opened, false);
    assert_int_equal(sqlite__hold(f->store, &err), ESDM_OK);
    assert_int_equal(pthread_create(&thread, NULL, open_beside, f), 0);
    for (int i = 0; i < 20 && !atomic_load(&f->opened); i++)
        (void) nanosleep(&nap, NULL);
    bool meanwhile = atomic_load(&f->opened);
    assert_true(sqlite__release(f->store));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_not_equal(f->length, 0);
    return meanwhile;
}

static void
need_second(fixture *f)
{
    int round = 0;
    while (round < ROUNDS && !opens_meanwhile(f))
        round++;
    assert_true(round < ROUNDS);
    assert_non_null(f->store->second.db);
}

static void
test_second__opens_while_the_first_is_held(void **state)
{
    fixture *f = *state;
    assert_false(opens_meanwhile(f)); /* who waits now and then has no second one */
    assert_null(f->store->second.db);
    need_second(f);
    assert_int_equal(f->length, 3);
    for (uint64_t i = 4; i < 10; i++) { /* what was committed last, with either of them */
        (void) commit(f->store, "a", ESDM_META_UPDATE, f->container, i);
        (void) opens_meanwhile(f);
        assert_int_equal(f->length, i);
        assert_int_equal(open_once(f->store, "a"), i);
    }
}

static void
test_second__is_not_there_for_one_thread(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < 100; i++)
        assert_int_equal(open_once(f->store, "a"), 3);
    assert_null(f->store->second.db);
    assert_int_equal(atomic_load(&f->store->waits), 0);
}

static void
test_second__not_of_a_store_without_a_log(void **state)
{
    fixture *f = *state;
    esdm_error err = {0};
    void *store = NULL;
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(f->store->file, &db), SQLITE_OK);
    sqlite__close(f->store);
    assert_int_equal(sqlite3_exec(db, "PRAGMA journal_mode = TRUNCATE", NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_int_equal(sqlite__open(&f->config, false, &store, &err), ESDM_OK);
    f->store = store;
    assert_true(f->store->rollback_journal);
    for (int i = 0; i < 40; i++)
        assert_false(opens_meanwhile(f));
    assert_null(f->store->second.db);
}

/* Another store in the place of this one is left alone: what was open goes on. */
static void
test_second__is_of_the_same_file(void **state)
{
    fixture *f = *state;
    char command[300];
    (void) snprintf(command, sizeof command,
                    "cd %s/meta && mkdir away && mv %s* away && cp away/%s* .", f->directory,
                    SQLITE__FILE, SQLITE__FILE);
    assert_int_equal(system(command), 0);
    (void) commit(f->store, "a", ESDM_META_UPDATE, f->container, 4);
    for (int i = 0; i < 60; i++) {
        (void) opens_meanwhile(f);
        assert_int_equal(f->length, 4);
    }
    assert_true(atomic_load(&f->store->waits) >= 16); /* it was tried */
    assert_null(f->store->second.db);
}

/* A child leaves its parent's connections alone, and opens its own store. */
static void
test_second__is_not_used_by_a_child(void **state)
{
    fixture *f = *state;
    need_second(f);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        void *own = NULL;
        esdm_error err = {0};
        if (open_once(f->store, "a") != 0 || f->store->busy)
            _exit(1);
        if (sqlite__open(&f->config, false, &own, &err) != ESDM_OK || open_once(own, "a") != 3)
            _exit(2);
        if (f->store->second.db != NULL || f->store->reader.db != NULL)
            _exit(3); /* not given up before SQLite was used */
        sqlite__close(own);
        sqlite__close(f->store);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    need_second(f); /* the parent has it still */
}

static void *
open_all_the_time(void *user)
{
    fixture *f = user;
    uint64_t wrong = 0;
    uint64_t last = 0;
    while (!atomic_load(&f->ended) && wrong == 0) {
        uint64_t length = open_once(f->store, "a");
        wrong += length < last; /* nobody goes back in time */
        last = length;
        wrong += open_once(f->store, "b") == 0;
    }
    return (void *) (uintptr_t) wrong;
}

static void
test_second__follows_commits_of_all(void **state)
{
    fixture *f = *state;
    pthread_t threads[READERS];
    void *other = NULL;
    esdm_error err = {0};
    assert_int_equal(sqlite__open(&f->config, false, &other, &err), ESDM_OK);
    (void) commit(f->store, "b", ESDM_META_CREATE, 0, 1);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_all_the_time, f), 0);
    for (uint64_t i = 4; i < 200; i++) {
        (void) commit(i % 2 == 0 ? f->store : other, "a", ESDM_META_UPDATE, f->container, i);
        assert_int_equal(open_once(f->store, "a"), i);
        if (i % 10 == 0)
            (void) commit(other, "b", ESDM_META_REPLACE, 0, i);
    }
    atomic_store(&f->ended, true);
    for (int i = 0; i < READERS; i++) {
        void *wrong = NULL;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
    sqlite__close(other);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_second__opens_while_the_first_is_held, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_second__is_not_there_for_one_thread, setup, teardown),
        cmocka_unit_test_setup_teardown(test_second__not_of_a_store_without_a_log, setup, teardown),
        cmocka_unit_test_setup_teardown(test_second__is_of_the_same_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_second__is_not_used_by_a_child, setup, teardown),
        cmocka_unit_test_setup_teardown(test_second__follows_commits_of_all, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
