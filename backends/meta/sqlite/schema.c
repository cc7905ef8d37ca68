/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Tables. README.md says what they hold. */

#include <stdio.h>
#include <time.h>

#include "base/error.h"
#include "store.h"

#define TEXT_OF(number) TEXT(number)
#define TEXT(number)    #number

static const char tables[] =
    "BEGIN IMMEDIATE;"
    "CREATE TABLE IF NOT EXISTS store(key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;"
    "INSERT OR IGNORE INTO store VALUES('indexed', 0);"
    "CREATE TABLE IF NOT EXISTS container("
    " container INTEGER PRIMARY KEY, name TEXT UNIQUE, uuid TEXT NOT NULL,"
    " snapshot INTEGER NOT NULL, structure INTEGER NOT NULL, document_at INTEGER NOT NULL,"
    " next_page INTEGER NOT NULL, created_ns INTEGER NOT NULL, modified_ns INTEGER NOT NULL,"
    " raw_bytes INTEGER NOT NULL, stored_bytes INTEGER NOT NULL, fragments INTEGER NOT NULL,"
    " datasets INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS snapshot("
    " id INTEGER PRIMARY KEY, parent INTEGER NOT NULL, structure INTEGER NOT NULL,"
    " document_at INTEGER NOT NULL, time_ns INTEGER NOT NULL, pruned INTEGER NOT NULL,"
    " writer TEXT NOT NULL, message TEXT NOT NULL, lengths BLOB, document BLOB, attributes BLOB);"
    "CREATE TABLE IF NOT EXISTS page("
    " container INTEGER NOT NULL, dataset INTEGER NOT NULL, page INTEGER NOT NULL,"
    " records INTEGER NOT NULL, level INTEGER NOT NULL, absolute INTEGER NOT NULL,"
    " added INTEGER NOT NULL, removed INTEGER NOT NULL, raw_bytes INTEGER NOT NULL,"
    " stored_bytes INTEGER NOT NULL, box BLOB NOT NULL,"
    " PRIMARY KEY(container, dataset, page)) WITHOUT ROWID;"
    "CREATE INDEX IF NOT EXISTS page_removed ON page(container) WHERE removed <> 0;"
    "CREATE TABLE IF NOT EXISTS page_data("
    " page INTEGER PRIMARY KEY, dataset INTEGER NOT NULL, data BLOB NOT NULL);"
    "CREATE TABLE IF NOT EXISTS attribute("
    " container INTEGER NOT NULL, dataset INTEGER NOT NULL, name TEXT NOT NULL,"
    " entry INTEGER NOT NULL, path TEXT, value, text TEXT,"
    " PRIMARY KEY(container, dataset, name, entry)) WITHOUT ROWID;"
    "CREATE INDEX IF NOT EXISTS attribute_value ON attribute(name, value);"
    "PRAGMA application_id = " TEXT_OF(SQLITE__APP_ID) ";"
                                                       "PRAGMA user_version = " TEXT_OF(
                                                           SQLITE__FORMAT) ";"
                                                                           "COMMIT;";

esdm_status
sqlite__schema_check(sqlite__link *link, esdm_error *err)
{
    int64_t format = 0;
    int64_t application = 0;
    esdm_status status = sqlite__query_number(link, "PRAGMA user_version", &format, err);
    if (status == ESDM_OK)
        status = sqlite__query_number(link, "PRAGMA application_id", &application, err);
    if (status != ESDM_OK)
        return status;
    if (format == 0 && application == 0)
        return esdm__error_set(err, ESDM_ENOENT,
                               "metadata store '%.200s' has no tables: bring it back from a backup "
                               "if the site was in use, else run esdm-mkfs again",
                               link->label);
    if (application != SQLITE__APP_ID)
        return esdm__error_set(err, ESDM_ECORRUPT,
                               "metadata store '%.200s' is a database of another program",
                               link->label);
    if (format > SQLITE__FORMAT_MIGRATION)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "metadata store '%.200s' has format %lld, newer than the %d that "
                               "this version of ESDM knows; use a newer ESDM",
                               link->label, (long long) format, SQLITE__FORMAT);
    return ESDM_OK;
}

esdm_status
sqlite__schema_make(sqlite__link *link, esdm_error *err)
{
    esdm_status status = sqlite__exec(link, tables, err);
    if (status != ESDM_OK && sqlite3_get_autocommit(link->db) == 0)
        (void) !sqlite__exec(link, "ROLLBACK", NULL);
    return status;
}
