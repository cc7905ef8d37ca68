/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "sql.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/ids.h"

#define RECORD                                                                                     \
    "container, uuid, snapshot, structure, created_ns, modified_ns, raw_bytes, stored_bytes, "     \
    "fragments, datasets"
#define PAGE                                                                                       \
    "SELECT page, dataset, records, added, level, absolute, raw_bytes, stored_bytes, box "         \
    "FROM page WHERE container = ?1 AND added <= ?2 AND (removed = 0 OR removed > ?2)"

static const char *const texts[SQLITE__STATEMENTS] = {
    [SQLITE__BEGIN] = "BEGIN",
    /* A transaction that reads and then writes would fail at once when another one wrote between.
     */
    [SQLITE__BEGIN_WRITE] = "BEGIN IMMEDIATE",
    [SQLITE__COMMIT] = "COMMIT",
    [SQLITE__ROLLBACK] = "ROLLBACK",
    [SQLITE__CONTAINER_FIND] = "SELECT " RECORD " FROM container WHERE name = ?1",
    [SQLITE__CONTAINER_LIST_ALL] =
        "SELECT " RECORD ", name FROM container WHERE name IS NOT NULL ORDER BY name",
    /* '0' follows '/' in ASCII: everything below "prefix/". */
    [SQLITE__CONTAINER_LIST] = "SELECT " RECORD ", name FROM container WHERE name = ?1 "
                               "UNION ALL SELECT * FROM (SELECT " RECORD ", name FROM container "
                               "WHERE name >= ?1 || '/' AND name < ?1 || '0' ORDER BY name)",
    [SQLITE__CONTAINER_ID] = "SELECT container FROM container WHERE name = ?1",
    [SQLITE__CONTAINER_STATE] =
        "SELECT c.name IS NOT NULL, c.snapshot, c.structure, c.document_at, c.next_page, "
        "c.modified_ns, s.lengths FROM container c JOIN snapshot s "
        "ON s.id = (c.container << 32) + c.snapshot WHERE c.container = ?1",
    [SQLITE__CONTAINER_INSERT] =
        "INSERT INTO container(name, uuid, snapshot, structure, document_at, next_page, "
        "created_ns, modified_ns, raw_bytes, stored_bytes, fragments, datasets) "
        "VALUES(?1, ?2, 1, 1, 1, ?3, ?4, ?4, ?5, ?6, ?7, ?8)",
    [SQLITE__CONTAINER_UPDATE] =
        "UPDATE container SET snapshot = ?2, structure = ?3, document_at = ?4, next_page = ?5, "
        "modified_ns = ?6, raw_bytes = raw_bytes + ?7, stored_bytes = stored_bytes + ?8, "
        "fragments = fragments + ?9, datasets = coalesce(?10, datasets) WHERE container = ?1",
    [SQLITE__CONTAINER_UNNAME] = "UPDATE container SET name = NULL WHERE container = ?1",
    [SQLITE__CONTAINER_RENAME] = "UPDATE container SET name = ?2 WHERE container = ?1",
    /* The highest number stays taken for ever by a tombstone (no uuid), until there is a higher
     * one: numbers are never reused. */
    [SQLITE__CONTAINER_DELETE] =
        "DELETE FROM container WHERE name IS NULL AND (container = ?1 OR uuid = '') "
        "AND container < (SELECT max(container) FROM container)",
    [SQLITE__CONTAINER_TOMBSTONE] = "UPDATE container SET uuid = '' WHERE container = ?1",
    [SQLITE__GARBAGE_LIST] =
        "SELECT container, uuid FROM container WHERE name IS NULL AND uuid <> ''",
    [SQLITE__GARBAGE_STATE] = "SELECT name IS NULL FROM container WHERE container = ?1 "
                              "AND uuid <> ''",
    [SQLITE__SNAPSHOT_OPEN] =
        "SELECT c.container, c.uuid, c.snapshot, c.structure, c.created_ns, c.modified_ns, "
        "c.raw_bytes, c.stored_bytes, c.fragments, c.datasets, s.id, s.structure, s.lengths, "
        "CASE WHEN c.container = ?3 AND s.structure = ?4 THEN NULL ELSE d.document END "
        "FROM container c LEFT JOIN snapshot s ON s.id = (c.container << 32) + "
        "CASE ?2 WHEN 0 THEN c.snapshot ELSE ?2 END AND s.pruned = 0 "
        "LEFT JOIN snapshot d ON d.id = (c.container << 32) + s.document_at WHERE c.name = ?1",
    [SQLITE__SNAPSHOT_EXISTS] = "SELECT 1 FROM snapshot WHERE id = ?1 AND pruned = 0",
    [SQLITE__SNAPSHOT_LIST] =
        "SELECT s.id & 0xffffffff, s.parent, s.time_ns, s.writer, s.message FROM container c "
        "JOIN snapshot s ON s.id BETWEEN c.container << 32 AND (c.container << 32) + 0xffffffff "
        "WHERE c.name = ?1 AND s.pruned = 0 ORDER BY s.id",
    [SQLITE__SNAPSHOT_INSERT] =
        "INSERT INTO snapshot(id, parent, structure, document_at, time_ns, pruned, writer, "
        "message, lengths, document, attributes) VALUES(?1, ?2, ?3, ?4, ?5, 0, ?6, ?7, ?8, ?9, "
        "?10)",
    [SQLITE__SNAPSHOT_SCAN] = "SELECT id & 0xffffffff, document_at, time_ns, pruned FROM snapshot "
                              "WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
    [SQLITE__SNAPSHOT_PRUNE] = "UPDATE snapshot SET pruned = 1 WHERE id = ?1",
    [SQLITE__SNAPSHOT_DELETE] = "DELETE FROM snapshot WHERE id = ?1",
    [SQLITE__SNAPSHOT_DELETE_ALL] = "DELETE FROM snapshot WHERE id BETWEEN ?1 AND ?2",
    [SQLITE__PAGE_LIST_ALL] = PAGE,
    [SQLITE__PAGE_LIST] = PAGE " AND dataset = ?3",
    [SQLITE__PAGE_LOAD] = "SELECT data FROM page_data WHERE page = ?1",
    [SQLITE__PAGE_INSERT] =
        "INSERT INTO page(container, dataset, page, records, level, absolute, added, removed, "
        "raw_bytes, stored_bytes, box) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8, ?9, ?10)",
    [SQLITE__PAGE_DATA_INSERT] = "INSERT INTO page_data(page, dataset, data) VALUES(?1, ?2, ?3)",
    [SQLITE__PAGE_DATASET] = "SELECT dataset FROM page_data WHERE page = ?1",
    /* OR FAIL: SQLite then keeps no journal of the statement, which would take most of its time.
     * What fails is taken back with the whole transaction. */
    [SQLITE__PAGE_RETIRE] =
        "UPDATE OR FAIL page SET removed = ?4 WHERE container = ?1 AND dataset = ?2 AND page = ?3 "
        "AND removed = 0 RETURNING raw_bytes, stored_bytes, records",
    [SQLITE__PAGE_RETIRED] = "SELECT dataset, page, added, removed FROM page "
                             "INDEXED BY page_removed WHERE container = ?1 AND removed <> 0",
    [SQLITE__PAGE_DELETE] = "DELETE FROM page WHERE container = ?1 AND dataset = ?2 AND page = ?3",
    [SQLITE__PAGE_DATA_DELETE] = "DELETE FROM page_data WHERE page = ?1",
    [SQLITE__PAGE_DELETE_ALL] = "DELETE FROM page WHERE container = ?1",
    [SQLITE__PAGE_DATA_DELETE_ALL] = "DELETE FROM page_data WHERE page BETWEEN ?1 AND ?2",
    [SQLITE__INDEXED_GET] = "SELECT value FROM store WHERE key = 'indexed'",
    [SQLITE__INDEXED_SET] = "UPDATE store SET value = ?1 WHERE key = 'indexed'",
    [SQLITE__ATTRIBUTE_INSERT] =
        "INSERT INTO attribute(container, dataset, name, entry, path, value, text) "
        "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [SQLITE__ATTRIBUTE_DELETE] = "DELETE FROM attribute WHERE container = ?1",
    [SQLITE__ATTRIBUTE_PENDING] =
        "SELECT c.container, s.attributes FROM container c JOIN snapshot s "
        "ON s.id = (c.container << 32) + c.document_at WHERE c.container > ?1 "
        "AND c.name IS NOT NULL ORDER BY c.container",
    [SQLITE__ATTRIBUTE_LIST] =
        "SELECT s.attributes FROM container c JOIN snapshot s "
        "ON s.id = (c.container << 32) + c.document_at WHERE c.container = ?1",
    [SQLITE__FORMAT_GET] = "PRAGMA user_version",
    [SQLITE__STATE_GET] = "SELECT s.value, n.value FROM store s JOIN store n "
                          "WHERE s.key = 'state' AND n.key = 'note'",
    [SQLITE__STATE_SET] = "INSERT OR REPLACE INTO store VALUES('state', ?1), ('note', ?2)",
    [SQLITE__FACT_GET] = "SELECT value FROM store WHERE key = 'fact:' || ?1",
    [SQLITE__FACT_PUT] = "INSERT OR REPLACE INTO store VALUES('fact:' || ?1, ?2)",
    [SQLITE__FACT_REMOVE] = "DELETE FROM store WHERE key = 'fact:' || ?1",
    [SQLITE__FACT_LIST] = "SELECT substr(key, 6), value FROM store "
                          "WHERE key >= 'fact:' || ?1 AND key < 'fact:' || ?1 || char(127) "
                          "ORDER BY key",
    /* '0' follows '/' in ASCII. */
    [SQLITE__FACT_FORGET] =
        "DELETE FROM store WHERE "
        "key > 'fact:' || (SELECT uuid FROM container WHERE container = ?1) || '/' AND "
        "key < 'fact:' || (SELECT uuid FROM container WHERE container = ?1) || '0'",
    [SQLITE__CONTAINER_IMPORT] =
        "INSERT INTO container(name, uuid, snapshot, structure, document_at, next_page, "
        "created_ns, modified_ns, raw_bytes, stored_bytes, fragments, datasets) "
        "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    [SQLITE__PAGE_IMPORT] =
        "INSERT INTO page(container, dataset, page, records, level, absolute, added, removed, "
        "raw_bytes, stored_bytes, box) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    [SQLITE__RECORD_LIST] =
        "SELECT container, uuid, name FROM container WHERE uuid <> '' ORDER BY container",
    [SQLITE__PAGE_LIST_KEPT] = "SELECT page, dataset, records, added, level, absolute, raw_bytes, "
                               "stored_bytes, box FROM page WHERE container = ?1 "
                               "AND (?2 = 0 OR dataset = ?2)",
    [SQLITE__PAGE_NUMBER_NEXT] = "UPDATE container SET next_page = next_page + 1 "
                                 "WHERE container = ?1 RETURNING next_page - 1",
    [SQLITE__PAGE_RENUMBER] =
        "UPDATE page SET page = ?4 WHERE container = ?1 AND dataset = ?2 AND page = ?3",
    [SQLITE__PAGE_DATA_REPLACE] = "UPDATE page_data SET page = ?2, data = ?3 WHERE page = ?1",
};

/* ---- errors --------------------------------------------------------------------------------- */

static esdm_status
set_error(const sqlite__link *link, esdm_status status, const char *text, esdm_error *err)
{
    return esdm__error_set(err, status, "metadata store '%.200s': %.200s", link->label, text);
}

esdm_status
sqlite__error(const sqlite__link *link, int code, esdm_error *err)
{
    int why = link->db != NULL ? sqlite3_system_errno(link->db) : 0;
    switch (code & 0xff) {
    case SQLITE_FULL:
        return set_error(link, ESDM_ENOSPC, "the disk is full", err);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
        return set_error(link, ESDM_ECORRUPT, "the database is damaged", err);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return set_error(link, ESDM_EACCES, "no permission to write", err);
    case SQLITE_NOMEM:
        return set_error(link, ESDM_ENOMEM, "out of memory", err);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        return set_error(link, ESDM_ETIMEDOUT,
                         "another process holds its lock for too long; is one stopped?", err);
    case SQLITE_TOOBIG:
        return set_error(link, ESDM_EINVAL, "a value is longer than 1 GB", err);
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
        if (code == SQLITE_IOERR_NOMEM)
            return set_error(link, ESDM_ENOMEM, "out of memory", err);
        if (code == SQLITE_IOERR_CORRUPTFS || code == SQLITE_IOERR_DATA)
            return set_error(link, ESDM_ECORRUPT, "the database is damaged", err);
        if (why != 0)
            return esdm__error_set_errno(err, why, "metadata store '%.200s'", link->label);
        return set_error(link, (code & 0xff) == SQLITE_CANTOPEN ? ESDM_EACCES : ESDM_EIO,
                         sqlite3_errstr(code), err);
    default:
        return set_error(link, ESDM_EIO, sqlite3_errstr(code), err);
    }
}

/* ---- connections ---------------------------------------------------------------------------- */

/* Called while another connection holds a lock. Commits take some tens of microseconds, so waiting
 * begins far below the millisecond at which SQLite's own handler begins. */
static int
wait_for_lock(void *user, int attempt)
{
    (void) user;
    uint64_t nap_ns = attempt < 8 ? UINT64_C(20000) << attempt : UINT64_C(5000000);
    /* 8 short naps are 5 ms; the rest are of 5 ms each. */
    if (attempt > SQLITE__BUSY_SECONDS * 200)
        return 0;
    struct timespec nap = {.tv_sec = 0, .tv_nsec = (long) nap_ns};
    (void) nanosleep(&nap, NULL);
    return 1;
}

esdm_status
sqlite__link_open(sqlite__link *link, const char *file, const char *label, int flags,
                  esdm_error *err)
{
    *link = (sqlite__link){.label = label};
    int code =
        sqlite3_open_v2(file, &link->db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI, NULL);
    if (code != SQLITE_OK) {
        esdm_status status =
            sqlite__error(link, link->db != NULL ? sqlite3_extended_errcode(link->db) : code, err);
        sqlite__link_close(link);
        return status;
    }
    int yes = 1;
    (void) sqlite3_extended_result_codes(link->db, 1);
    (void) sqlite3_busy_handler(link->db, wait_for_lock, NULL);
    /* The files -wal and -shm stay: whoever may only read needs them. */
    (void) sqlite3_file_control(link->db, "main", SQLITE_FCNTL_PERSIST_WAL, &yes);
    (void) sqlite3_db_config(link->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return ESDM_OK;
}

void
sqlite__link_close(sqlite__link *link)
{
    for (int i = 0; i < SQLITE__STATEMENTS; i++)
        (void) sqlite3_finalize(link->statements[i]);
    (void) sqlite3_close_v2(link->db);
    *link = (sqlite__link){0};
}

esdm_status
sqlite__exec(sqlite__link *link, const char *sql, esdm_error *err)
{
    int code = sqlite3_exec(link->db, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? ESDM_OK : sqlite__error(link, code, err);
}

esdm_status
sqlite__query_number(sqlite__link *link, const char *sql, int64_t *ret_number, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(link->db, sql, -1, &statement, NULL);
    if (code != SQLITE_OK)
        return sqlite__error(link, code, err);
    code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        *ret_number = sqlite3_column_int64(statement, 0);
    (void) sqlite3_finalize(statement);
    if (code == SQLITE_ROW)
        return ESDM_OK;
    return sqlite__error(link, code == SQLITE_DONE ? SQLITE_CORRUPT : code, err);
}

/* ---- statements ----------------------------------------------------------------------------- */

static int
bind_one(sqlite3_stmt *statement, int at, char type, va_list *args)
{
    switch (type) {
    case 'i':
        return sqlite3_bind_int64(statement, at, (sqlite3_int64) va_arg(*args, uint64_t));
    case 'd':
        return sqlite3_bind_double(statement, at, va_arg(*args, double));
    case 't': {
        const char *text = va_arg(*args, const char *);
        if (text == NULL)
            return sqlite3_bind_null(statement, at);
        return sqlite3_bind_text64(statement, at, text, strlen(text), SQLITE_STATIC, SQLITE_UTF8);
    }
    case 'b': {
        const void *data = va_arg(*args, const void *);
        size_t bytes = va_arg(*args, size_t);
        if (data == NULL)
            return sqlite3_bind_null(statement, at);
        return sqlite3_bind_blob64(statement, at, data, bytes, SQLITE_STATIC);
    }
    default:
        return sqlite3_bind_null(statement, at);
    }
}

static esdm_status
bind_all(sqlite__link *link, sqlite3_stmt *statement, const char *types, va_list *args,
         esdm_error *err)
{
    for (int i = 0; types[i] != '\0'; i++) {
        int code = bind_one(statement, i + 1, types[i], args);
        if (code != SQLITE_OK)
            return sqlite__error(link, code, err);
    }
    return ESDM_OK;
}

esdm_status
sqlite__bind(sqlite__link *link, sqlite3_stmt *statement, esdm_error *err, const char *types, ...)
{
    va_list args;
    va_start(args, types);
    esdm_status status = bind_all(link, statement, types, &args, err);
    va_end(args);
    return status;
}

static esdm_status
kept_statement(sqlite__link *link, sqlite__statement_id id, esdm_error *err)
{
    if (link->statements[id] != NULL)
        return ESDM_OK;
    int code = sqlite3_prepare_v3(link->db, texts[id], -1, SQLITE_PREPARE_PERSISTENT,
                                  &link->statements[id], NULL);
    return code == SQLITE_OK ? ESDM_OK : sqlite__error(link, code, err);
}

esdm_status
sqlite__prepare(sqlite__link *link, sqlite__statement_id id, sqlite3_stmt **ret_statement,
                esdm_error *err, const char *types, ...)
{
    esdm_status status = kept_statement(link, id, err);
    if (status != ESDM_OK)
        return status;
    va_list args;
    va_start(args, types);
    status = bind_all(link, link->statements[id], types, &args, err);
    va_end(args);
    if (status == ESDM_OK)
        *ret_statement = link->statements[id];
    return status;
}

esdm_status
sqlite__step(sqlite__link *link, sqlite3_stmt *statement, bool *ret_row, esdm_error *err)
{
    int code = sqlite3_step(statement);
    *ret_row = code == SQLITE_ROW;
    if (code == SQLITE_ROW)
        return ESDM_OK;
    esdm_status status = ESDM_OK;
    if (code != SQLITE_DONE)
        status = sqlite__error(link, code, err);
    (void) sqlite3_reset(statement);
    return status;
}

esdm_status
sqlite__value(sqlite__link *link, sqlite__statement_id id, void **ret_data, size_t *ret_bytes,
              esdm_error *err, const char *types, ...)
{
    bool row = false;
    *ret_data = NULL;
    *ret_bytes = 0;
    esdm_status status = kept_statement(link, id, err);
    if (status != ESDM_OK)
        return status;
    sqlite3_stmt *statement = link->statements[id];
    va_list args;
    va_start(args, types);
    status = bind_all(link, statement, types, &args, err);
    va_end(args);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    if (row) {
        status = sqlite__copy(statement, 0, ret_data, ret_bytes, err);
        (void) sqlite3_reset(statement);
    }
    return status;
}

esdm_status
sqlite__run(sqlite__link *link, sqlite__statement_id id, esdm_error *err, const char *types, ...)
{
    esdm_status status = kept_statement(link, id, err);
    if (status != ESDM_OK)
        return status;
    va_list args;
    va_start(args, types);
    status = bind_all(link, link->statements[id], types, &args, err);
    va_end(args);
    bool row = false;
    if (status == ESDM_OK)
        status = sqlite__step(link, link->statements[id], &row, err);
    if (row)
        (void) sqlite3_reset(link->statements[id]);
    return status;
}

/* ---- columns -------------------------------------------------------------------------------- */

uint64_t
sqlite__u64(sqlite3_stmt *statement, int column)
{
    return (uint64_t) sqlite3_column_int64(statement, column);
}

const char *
sqlite__text(sqlite3_stmt *statement, int column)
{
    const char *text = (const char *) sqlite3_column_text(statement, column);
    return text != NULL ? text : "";
}

esdm_status
sqlite__copy(sqlite3_stmt *statement, int column, void **ret_data, size_t *ret_bytes,
             esdm_error *err)
{
    *ret_data = NULL;
    *ret_bytes = 0;
    if (sqlite3_column_type(statement, column) == SQLITE_NULL)
        return ESDM_OK;
    const void *data = sqlite3_column_blob(statement, column);
    size_t bytes = (size_t) sqlite3_column_bytes(statement, column);
    char *copy = malloc(bytes + 1);
    if (copy == NULL || (data == NULL && bytes > 0)) {
        free(copy);
        return esdm__error_nomem(err, bytes + 1, "a value of the metadata store");
    }
    if (bytes > 0)
        memcpy(copy, data, bytes);
    copy[bytes] = '\0';
    *ret_data = copy;
    *ret_bytes = bytes;
    return ESDM_OK;
}
