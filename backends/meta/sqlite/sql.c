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
#include "base/sqlite_files.h"

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
    if (code == SQLITE__CORRUPT_ROW && link->db != NULL)
        return esdm__error_set(
            err, ESDM_ECORRUPT,
            "metadata store '%.200s': the database is damaged: %.60s; " SQLITE__REMEDY, link->label,
            sqlite3_errmsg(link->db));
    switch (code & 0xff) {
    case SQLITE_FULL:
        return set_error(link, ESDM_ENOSPC, "the disk is full", err);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
        return set_error(link, ESDM_ECORRUPT, "the database is damaged: " SQLITE__REMEDY, err);
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
    case SQLITE_INTERRUPT:
        return set_error(link, ESDM_ETIMEDOUT, "a question takes longer than it may", err);
    case SQLITE_TOOBIG:
        return set_error(link, ESDM_EINVAL, "a value is longer than 1 GB", err);
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
        if (code == SQLITE_IOERR_NOMEM)
            return set_error(link, ESDM_ENOMEM, "out of memory", err);
        if (code == SQLITE_IOERR_CORRUPTFS || code == SQLITE_IOERR_DATA)
            return set_error(link, ESDM_ECORRUPT, "the database is damaged: " SQLITE__REMEDY, err);
        if (why != 0)
            return esdm__error_set_errno(err, why, "metadata store '%.200s'", link->label);
        return set_error(link, (code & 0xff) == SQLITE_CANTOPEN ? ESDM_EACCES : ESDM_EIO,
                         sqlite3_errstr(code), err);
    default:
        return set_error(link, ESDM_EIO, sqlite3_errstr(code), err);
    }
}

/* ---- connections ---------------------------------------------------------------------------- */

static uint64_t
monotonic_ns(void)
{
    struct timespec now;
    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

/* Called while another connection holds a lock. Commits take some tens of microseconds, so waiting
 * begins far below the millisecond at which SQLite's own handler begins. */
static int
wait_for_lock(void *user, int attempt)
{
    sqlite__link *link = user;
    uint64_t nap_ns = attempt < 8 ? UINT64_C(20000) << attempt : UINT64_C(5000000);
    uint64_t now_ns = monotonic_ns();
    if (attempt > 0) /* what naps have really taken */
        link->waited_ns += now_ns - link->nap_began_ns;
    link->nap_began_ns = now_ns;
    if (link->waited_ns >= SQLITE__BUSY_SECONDS * UINT64_C(1000000000))
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
    esdm__sqlite_high_descriptors();
    int code =
        sqlite3_open_v2(file, &link->db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI, NULL);
    if (code == SQLITE_OK)
        code = sqlite__sums_register(link->db);
    if (code == SQLITE_OK)
        code = sqlite__columns_register(link);
    if (code != SQLITE_OK) {
        esdm_status status =
            sqlite__error(link, link->db != NULL ? sqlite3_extended_errcode(link->db) : code, err);
        sqlite__link_close(link);
        return status;
    }
    int yes = 1;
    (void) sqlite3_extended_result_codes(link->db, 1);
    (void) sqlite3_busy_handler(link->db, wait_for_lock, link);
    /* The files -wal and -shm stay: whoever may only read needs them. */
    (void) sqlite3_file_control(link->db, "main", SQLITE_FCNTL_PERSIST_WAL, &yes);
    (void) sqlite3_db_config(link->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return ESDM_OK;
}

void
sqlite__link_wait(sqlite__link *link, bool waits)
{
    (void) sqlite3_busy_handler(link->db, waits ? wait_for_lock : NULL, link);
}

static int
is_over(void *user)
{
    const sqlite__link *link = user;
    return monotonic_ns() > link->until_ns;
}

void
sqlite__link_limit(sqlite__link *link, uint32_t most_ms)
{
    link->until_ns = monotonic_ns() + (uint64_t) most_ms * 1000000;
    sqlite3_progress_handler(link->db, 1000, most_ms > 0 ? is_over : NULL, link);
}

void
sqlite__link_close(sqlite__link *link)
{
    for (int i = 0; i < SQLITE__STATEMENTS; i++)
        (void) sqlite3_finalize(link->statements[i]);
    (void) sqlite3_close_v2(link->db);
    sqlite__ahead_clear(link);
    sqlite__columns_clear(link);
    sqlite__waiting_clear(link);
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
    int code = sqlite3_prepare_v3(link->db, sqlite__texts[id], -1, SQLITE_PREPARE_PERSISTENT,
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
