/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Tables. README.md says what they hold. */

#include <stdio.h>
#include <time.h>

#include "base/error.h"
#include "store.h"

#define TEXT_OF(number) TEXT(number)
#define TEXT(number)    #number

/* What is looked at alone stands before the long ones. */
#define SNAPSHOT_COLUMNS                                                                           \
    "(id INTEGER PRIMARY KEY, parent INTEGER NOT NULL, structure INTEGER NOT NULL,"                \
    " document_at INTEGER NOT NULL, time_ns INTEGER NOT NULL, pruned INTEGER NOT NULL,"            \
    " writer TEXT NOT NULL, message TEXT NOT NULL, sum INTEGER, lengths BLOB, document BLOB,"      \
    " attributes BLOB);"

/* Since format 5: records that refer to packs of other uuids than their own (shared.c), and names
 * of snapshots (tags.c). */
#define TABLES_OF_5                                                                                \
    "CREATE TABLE IF NOT EXISTS shared("                                                           \
    " uuid TEXT NOT NULL, container INTEGER NOT NULL, sum INTEGER,"                                \
    " PRIMARY KEY(uuid, container)) WITHOUT ROWID;"                                                \
    "CREATE INDEX IF NOT EXISTS shared_container ON shared(container);"                            \
    "CREATE TABLE IF NOT EXISTS tag("                                                              \
    " container INTEGER NOT NULL, name TEXT NOT NULL, snapshot INTEGER NOT NULL,"                  \
    " created_ns INTEGER NOT NULL, author TEXT NOT NULL, sum INTEGER,"                             \
    " PRIMARY KEY(container, name)) WITHOUT ROWID;"                                                \
    "CREATE INDEX IF NOT EXISTS tag_snapshot ON tag(container, snapshot);"

static const char tables_of_5[] = TABLES_OF_5;

/* Versions that do not know these tables would take packs for garbage that a clone needs, and
 * delete snapshots that have names. They refuse to open the store; what has it open already cannot
 * prepare these statements any more. Made when there is the first such row, so that programs of
 * both versions go on working until then. */
static const char guards[] =
    "CREATE TRIGGER IF NOT EXISTS snapshot_delete BEFORE DELETE ON snapshot "
    "BEGIN SELECT newer_ESDM_needed(); END;"
    "CREATE TRIGGER IF NOT EXISTS snapshot_prune BEFORE UPDATE OF pruned ON snapshot "
    "BEGIN SELECT newer_ESDM_needed(); END;"
    "CREATE TRIGGER IF NOT EXISTS snapshot_insert BEFORE INSERT ON snapshot "
    "WHEN EXISTS (SELECT 1 FROM tag WHERE name = '" ESDM_META_TAG_SEAL "') "
    "BEGIN SELECT newer_ESDM_needed(); END;"
    "CREATE TRIGGER IF NOT EXISTS page_relocate BEFORE UPDATE OF page ON page "
    "BEGIN SELECT newer_ESDM_needed(); END;";

static const char tables[] =
    "BEGIN IMMEDIATE;"
    "CREATE TABLE IF NOT EXISTS store(key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;"
    "INSERT OR IGNORE INTO store VALUES('indexed', 0);"
    "INSERT OR IGNORE INTO store SELECT 'names', 1 WHERE NOT EXISTS (SELECT 1 FROM sqlite_master "
    "WHERE name = 'attribute');"
    "CREATE TABLE IF NOT EXISTS container("
    " container INTEGER PRIMARY KEY, name TEXT UNIQUE, uuid TEXT NOT NULL,"
    " snapshot INTEGER NOT NULL, structure INTEGER NOT NULL, document_at INTEGER NOT NULL,"
    " next_page INTEGER NOT NULL, created_ns INTEGER NOT NULL, modified_ns INTEGER NOT NULL,"
    " raw_bytes INTEGER NOT NULL, stored_bytes INTEGER NOT NULL, fragments INTEGER NOT NULL,"
    " datasets INTEGER NOT NULL, sum INTEGER);" SQLITE__HIDDEN_INDEX
    "CREATE TABLE IF NOT EXISTS snapshot" SNAPSHOT_COLUMNS "CREATE TABLE IF NOT EXISTS page("
    " container INTEGER NOT NULL, dataset INTEGER NOT NULL, page INTEGER NOT NULL,"
    " records INTEGER NOT NULL, level INTEGER NOT NULL, absolute INTEGER NOT NULL,"
    " added INTEGER NOT NULL, removed INTEGER NOT NULL, raw_bytes INTEGER NOT NULL,"
    " stored_bytes INTEGER NOT NULL, box BLOB NOT NULL, sum INTEGER,"
    " PRIMARY KEY(container, dataset, page)) WITHOUT ROWID;"
    "CREATE INDEX IF NOT EXISTS page_removed ON page(container) WHERE removed <> 0;"
    "CREATE TABLE IF NOT EXISTS page_data("
    " page INTEGER PRIMARY KEY, dataset INTEGER NOT NULL, data BLOB NOT NULL);"
    "CREATE TABLE IF NOT EXISTS attribute("
    " container INTEGER NOT NULL, dataset INTEGER NOT NULL, name TEXT NOT NULL,"
    " entry INTEGER NOT NULL, path TEXT, value, text TEXT,"
    " PRIMARY KEY(container, dataset, name, entry)) WITHOUT ROWID;"
    "CREATE INDEX IF NOT EXISTS attribute_value ON attribute(name, value);" TABLES_OF_5
    "PRAGMA application_id = " TEXT_OF(SQLITE__APP_ID) ";"
                                                       "PRAGMA user_version = " TEXT_OF(
                                                           SQLITE__FORMAT) ";"
                                                                           "COMMIT;";

/* Format 1, and 2 in a migration, had no checksums of rows. */
#define FORMAT_WITHOUT_SUMS 2
/* Formats 3 and 4 had no tables `shared` and `tag`. */
#define FORMAT_WITHOUT_SHARED 4

/* For readers, which change nothing. */
static const char views[] =
    "PRAGMA temp_store = MEMORY;"
    "CREATE TEMP VIEW container AS SELECT *, 'none' AS sum FROM main.container;"
    "CREATE TEMP VIEW snapshot AS SELECT *, 'none' AS sum FROM main.snapshot;"
    "CREATE TEMP VIEW page AS SELECT *, 'none' AS sum FROM main.page;";

static const char columns[] = "ALTER TABLE container ADD COLUMN sum INTEGER;"
                              "ALTER TABLE page ADD COLUMN sum INTEGER;"
                              "CREATE TABLE sealed_snapshot" SNAPSHOT_COLUMNS;

static const char replacement[] = "DROP TABLE snapshot;"
                                  "ALTER TABLE sealed_snapshot RENAME TO snapshot;";

esdm_status
sqlite__schema_adapt(sqlite__link *link, esdm_error *err)
{
    int64_t format = 0;
    esdm_status status = sqlite__query_number(link, "PRAGMA user_version", &format, err);
    if (status != ESDM_OK || format > FORMAT_WITHOUT_SUMS)
        return status;
    return sqlite__exec(link, views, err);
}

static esdm_status
seal_rows(sqlite__link *link, esdm_error *err)
{
    esdm_status status = sqlite__exec(link, columns, err);
    if (status == ESDM_OK)
        status = sqlite__run(link, SQLITE__SEAL_CONTAINERS, err, "");
    if (status == ESDM_OK)
        status = sqlite__run(link, SQLITE__SEAL_SNAPSHOTS, err, "");
    if (status == ESDM_OK)
        status = sqlite__run(link, SQLITE__SEAL_PAGES, err, "");
    return status == ESDM_OK ? sqlite__exec(link, replacement, err) : status;
}

esdm_status
sqlite__schema_upgrade(sqlite__link *link, bool *ret_current, esdm_error *err)
{
    char pragma[64];
    int64_t format = 0;
    esdm_status status = sqlite__query_number(link, "PRAGMA user_version", &format, err);
    *ret_current = status == ESDM_OK && format > FORMAT_WITHOUT_SHARED;
    if (status != ESDM_OK || *ret_current)
        return status;
    bool migration = sqlite__is_migration((uint64_t) format);
    (void) snprintf(pragma, sizeof pragma, "PRAGMA user_version = %d",
                    migration ? SQLITE__FORMAT_MIGRATION : SQLITE__FORMAT);
    if (format <= FORMAT_WITHOUT_SUMS)
        status = seal_rows(link, err);
    if (status == ESDM_OK)
        status = sqlite__exec(link, tables_of_5, err);
    /* Older versions that have the store open go by it: they are to find none. */
    if (status == ESDM_OK && !migration)
        status = sqlite__run(link, SQLITE__STATE_FORGET, err, "");
    if (status == ESDM_OK)
        status = sqlite__exec(link, pragma, err);
    return status == ESDM_OK ? ESDM_OK
                             : esdm__error_prefix(err, status, "cannot upgrade the metadata store");
}

esdm_status
sqlite__schema_guard(sqlite__link *link, esdm_error *err)
{
    int64_t there = 0;
    esdm_status status = sqlite__query_number(
        link, "SELECT count(*) FROM sqlite_master WHERE name = 'page_relocate'", &there, err);
    return status == ESDM_OK && there == 0 ? sqlite__exec(link, guards, err) : status;
}

esdm_status
sqlite__schema_has_tables_of_5(sqlite__link *link, bool *ret_has, esdm_error *err)
{
    int64_t format = 0;
    esdm_status status = ESDM_OK;
    if (!link->has_tables_of_5) {
        status = sqlite__query_number(link, "PRAGMA user_version", &format, err);
        link->has_tables_of_5 = status == ESDM_OK && format > FORMAT_WITHOUT_SHARED;
    }
    *ret_has = link->has_tables_of_5;
    return status;
}

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
                               "metadata store '%.200s' has no tables: esdm-mkfs --restore brings "
                               "it back from a backup "
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
