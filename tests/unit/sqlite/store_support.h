/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TESTS_SQLITE_STORE_SUPPORT_H
#define ESDM_TESTS_SQLITE_STORE_SUPPORT_H

/** @file A store in a folder of its own, filled by SQL. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "find.h"
#include "store.h"

#define CONTAINERS 20000

typedef struct fixture {
    char directory[64];
    char json[128];
    esdm_plugin_config config;
    sqlite__store *store;
    uint64_t steps;
    size_t found;
    size_t plans; /* statements that were asked for their plans */
} fixture;

static inline void
change(const fixture *f, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(f->store->file, &db), SQLITE_OK);
    int code = sqlite3_exec(db, sql, NULL, NULL, NULL);
    if (code != SQLITE_OK)
        fail_msg("%s: %s", sqlite3_errmsg(db), sql);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/** @param sql may take the numbers 1 to CONTAINERS from the column `value` of the table `generate`.
 */
static inline fixture *
store_with(const char *sql)
{
    fixture *f = calloc(1, sizeof *f);
    esdm_error err = {0};
    char generate[200];
    void *store = NULL;
    (void) snprintf(f->directory, sizeof f->directory, "/tmp/esdm-sqlite.XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    (void) snprintf(f->json, sizeof f->json, "{\"directory\": \"%s/meta\"}", f->directory);
    f->config = (esdm_plugin_config){.name = "metadata",
                                     .json = f->json,
                                     .path = "metadata",
                                     .site_id = "0123456789abcdef0123456789abcdef"};
    if (sqlite__make(&f->config, false, NULL, NULL, &err) != ESDM_OK ||
        sqlite__open(&f->config, false, &store, &err) != ESDM_OK)
        fail_msg("%s", err.message);
    f->store = store;
    (void) snprintf(generate, sizeof generate,
                    "CREATE TABLE generate AS WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL "
                    "SELECT value + 1 FROM n WHERE value < %d) SELECT value FROM n;",
                    CONTAINERS);
    change(f, generate);
    change(f, sql);
    change(f, "DROP TABLE generate");
    return f;
}

static inline int
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

static inline int
count_step(void *user)
{
    ++*(uint64_t *) user;
    return 0;
}

static inline bool
count_match(const char *container, const char *path, void *user)
{
    (void) container, (void) path;
    ++*(size_t *) user;
    return true;
}

#endif
