/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "sqlite_store.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

bool
sqlite_is_tested(void)
{
    return strcmp(place_current->name, "sqlite") == 0;
}

void
sqlite_path(const fixture *f, const char *suffix, char path[300])
{
    (void) snprintf(path, 300, "%s/catalogue.sqlite%s", f->place.dir, suffix);
}

int
sqlite_try(const fixture *f, const char *sql)
{
    char path[300];
    sqlite3 *db = NULL;
    sqlite_path(f, "", path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    int code = sqlite3_exec(db, sql, NULL, NULL, NULL);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return code;
}

void
sqlite_run(const fixture *f, const char *sql)
{
    assert_int_equal(sqlite_try(f, sql), SQLITE_OK);
}

int64_t
sqlite_number(const fixture *f, const char *sql)
{
    char path[300];
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    sqlite_path(f, "", path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t number = sqlite3_column_int64(statement, 0);
    assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return number;
}
