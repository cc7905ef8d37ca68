/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TESTS_SQLITE_TREES_SUPPORT_H
#define ESDM_TESTS_SQLITE_TREES_SUPPORT_H

/** @file A catalogue with many times and boxes. */

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

/* Container n: times n % 97 to that + 2, latitudes n % 90, longitudes n % 170, each to that + 1. */
#define CONTAINERS 20000
static const char catalogue[] =
    "BEGIN;"
    "INSERT INTO container SELECT value, printf('run%d', value), 'u', 1, 1, 1, 1, 1, 1, 0, 0, 0, 2,"
    " NULL FROM generate;"
    "INSERT INTO attribute SELECT value, 0, '@time_min', 0, NULL, value % 97, NULL FROM generate;"
    "INSERT INTO attribute SELECT value, 0, '@time_max', 0, NULL, value % 97 + 2, NULL"
    " FROM generate;"
    "INSERT INTO attribute SELECT value, 0, '@lat_min', 0, NULL, value % 90, NULL FROM generate;"
    "INSERT INTO attribute SELECT value, 0, '@lat_max', 0, NULL, value % 90 + 1, NULL"
    " FROM generate;"
    "INSERT INTO attribute SELECT value, 0, '@lon_min', 0, NULL, value % 170, NULL FROM generate;"
    "INSERT INTO attribute SELECT value, 0, '@lon_max', 0, NULL, value % 170 + 1, NULL"
    " FROM generate;"
    "UPDATE store SET value = 1000000 WHERE key = 'indexed';"
    "COMMIT;";

typedef struct fixture {
    char directory[64];
    char json[128];
    esdm_plugin_config config;
    sqlite__store *store;
    uint64_t steps;
    size_t found;
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

static inline int
setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    esdm_error err = {0};
    char generate[200];
    void *store = NULL;
    (void) snprintf(f->directory, sizeof f->directory, "/tmp/esdm-trees.XXXXXX");
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
    (void) snprintf(generate, sizeof generate,
                    "CREATE TABLE generate AS WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL "
                    "SELECT value + 1 FROM n WHERE value < %d) SELECT value FROM n;",
                    CONTAINERS);
    change(f, generate);
    change(f, catalogue);
    change(f, "DROP TABLE generate");
    *state = f;
    return 0;
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

#define NUMBER(key, sign, value)                                                                   \
    {                                                                                              \
        .attribute = (key), .op = ESDM_META_##sign, .is_number = true, .number = (value)           \
    }

/* What is asked of times alone: @time_min <= low, @time_max >= high. */
static inline size_t
count_times(fixture *f, double low, double high)
{
    const esdm_meta_condition c[] = {NUMBER("@time_min", LE, low), NUMBER("@time_max", GE, high)};
    esdm_error err = {0};
    size_t found = 0;
    if (sqlite__find(f->store, c, 2, count_match, &found, &err) != ESDM_OK)
        fail_msg("%s", err.message);
    return found;
}

#endif
