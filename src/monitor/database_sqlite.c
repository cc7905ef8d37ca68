/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Records in a file of SQLite. The SQLite is the one in libesdm, which no program sees. Several
 * processes write in turn; in WAL mode readers hold nobody up.
 *
 * A forked child finds SQLite's state of files in its memory, with locks that only its parent has:
 * it closes what it inherited before it opens anything. A fork waits a little until no thread is in
 * SQLite, so that the child finds its mutexes free; where that takes too long, or a thread waits
 * for a lock amid a statement, which nobody could end in the child, it does without records.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/sqlite_files.h"
#include "base/thread.h"
#include "monitor/database.h"

#define NAP_NS      20000000L
#define READ_WAIT_S 10 /* for a lock, of those who read */

#define FORK_WAIT_NS 200000000L

typedef struct connection {
    struct connection *next;
    pid_t pid; /* that opened it */
    sqlite3 *db;
    const char *place;          /* borrowed */
    const atomic_bool *give_up; /* of the call that is under way */
    unsigned naps;              /* in this call */
    sqlite3_stmt *inserts[ESDM__TABLES];
} connection;

/* Held by a thread that is in SQLite; guards the list, too. Innermost but for SQLite's own. */
static pthread_mutex_t inside = PTHREAD_MUTEX_INITIALIZER;
static connection *connections;
static unsigned waiting; /* threads that wait for a lock amid a statement; under `inside` */
static bool fork_holds;  /* from before a fork to after it */
static bool is_unusable; /* forked while another thread was in SQLite */

static void
before_fork(void)
{
    const struct timespec until = esdm__deadline(CLOCK_REALTIME, FORK_WAIT_NS);
    fork_holds = pthread_mutex_timedlock(&inside, &until) == 0;
}

static void
after_fork_in_parent(void)
{
    if (fork_holds)
        (void) pthread_mutex_unlock(&inside);
}

static void
after_fork_in_child(void)
{
    is_unusable = is_unusable || !fork_holds || waiting > 0;
    if (fork_holds)
        (void) pthread_mutex_unlock(&inside);
    else
        (void) pthread_mutex_init(&inside, NULL);
}

/* The mutex of descriptors, which SQLite takes, is registered first, so locked last. */
static void
prepare(void)
{
    esdm__sqlite_high_descriptors();
    (void) pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* Somebody else has the lock: called until there is no point in waiting. */
static int
wait_for_lock(void *argument, int count)
{
    (void) count;
    connection *c = argument;
    if (c->give_up != NULL ? atomic_load(c->give_up)
                           : ++c->naps > READ_WAIT_S * (1000000000L / NAP_NS))
        return 0;
    struct timespec nap = {.tv_nsec = NAP_NS};
    waiting++;
    (void) pthread_mutex_unlock(&inside); /* SQLite holds none of its own here */
    (void) nanosleep(&nap, NULL);
    (void) pthread_mutex_lock(&inside);
    waiting--;
    return 1;
}

/* SQLite says of several things that a file cannot be opened. */
static const char *
why_closed(const char *place)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(place, '/');
    size_t bytes = slash == NULL ? 0 : (size_t) (slash - place) + 1;
    if (bytes >= sizeof folder)
        return "";
    (void) snprintf(folder, sizeof folder, "%.*s", (int) bytes, bytes > 0 ? place : "");
    if (bytes == 0)
        (void) snprintf(folder, sizeof folder, ".");
    if (access(folder, F_OK) != 0)
        return "; there is no such folder";
    if (access(place, F_OK) == 0 && access(place, R_OK) != 0)
        return "; you may not read it";
    if (access(folder, W_OK) != 0)
        return access(place, F_OK) != 0 ? "; there is no such file, and its folder may not be "
                                          "written to"
                                        : "; its folder may not be written to, which SQLite wants "
                                          "to: copy the file, with those in -wal and -shm";
    return access(place, F_OK) != 0 ? "; there is no such file" : "";
}

/* Whether there is a log with something in it; SQLite makes an empty one when it opens a file. */
static bool
has_log(const char *place)
{
    char path[PATH_MAX];
    struct stat st;
    int n = snprintf(path, sizeof path, "%s-wal", place);
    return n > 0 && (size_t) n < sizeof path && stat(path, &st) == 0 && st.st_size > 0;
}

/* What SQLite could not bring from its log to the file, as the file system was full, stays in the
 * log; some pages of the file may be newer than others then. */
static const char *
why_torn(const char *place, int code)
{
    if (code == SQLITE_FULL && has_log(place))
        return "; the file with -wal at the end of its name belongs to it: copy and move both";
    if ((code == SQLITE_CORRUPT || code == SQLITE_NOTADB) && !has_log(place))
        return "; if there was a file with -wal at the end of its name where it comes from, bring "
               "that, too: what was written when a file system was full is there";
    return "";
}

static esdm_status
failed(const connection *c, const char *what, esdm_error *err)
{
    int code = c->db != NULL ? sqlite3_errcode(c->db) & 0xff : SQLITE_NOMEM;
    esdm_status status = code == SQLITE_FULL                              ? ESDM_ENOSPC
                         : code == SQLITE_BUSY                            ? ESDM_ETIMEDOUT
                         : code == SQLITE_CANTOPEN                        ? ESDM_ENOENT
                         : code == SQLITE_READONLY || code == SQLITE_PERM ? ESDM_EACCES
                                                                          : ESDM_EIO;
    const char *why = code == SQLITE_CANTOPEN || code == SQLITE_READONLY ? why_closed(c->place)
                                                                         : why_torn(c->place, code);
    return esdm__error_set(err, status, "%s: %s: %s%s", c->place, what,
                           c->db != NULL ? sqlite3_errmsg(c->db) : "no memory", why);
}

/* Under the mutex. */
static void
close_one(connection *c)
{
    for (connection **at = &connections; *at != NULL; at = &(*at)->next) {
        if (*at == c) {
            *at = c->next;
            break;
        }
    }
    for (int i = 0; i < ESDM__TABLES; i++)
        (void) sqlite3_finalize(c->inserts[i]);
    (void) sqlite3_close(c->db);
    free(c);
}

static void
sqlite_close(void *argument)
{
    (void) pthread_mutex_lock(&inside);
    close_one(argument);
    (void) pthread_mutex_unlock(&inside);
}

/* Under the mutex. */
static void
close_inherited(void)
{
    connection *next = NULL;
    for (connection *c = connections; c != NULL; c = next) {
        next = c->next;
        if (c->pid != getpid())
            close_one(c);
    }
}

static bool
run(connection *c, const char *sql)
{
    return sqlite3_exec(c->db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

static bool
make_tables(connection *c)
{
    char sql[2048];
    bool good = run(c, "BEGIN IMMEDIATE") &&
                run(c, "CREATE TABLE IF NOT EXISTS esdm_records (format BIGINT)") &&
                run(c, "INSERT INTO esdm_records SELECT 1 WHERE NOT EXISTS "
                       "(SELECT 1 FROM esdm_records)");
    for (int i = 0; i < ESDM__TABLES && good; i++) {
        const esdm__table_text *t = &esdm__table_texts[i];
        (void) snprintf(sql, sizeof sql, "CREATE TABLE IF NOT EXISTS %s (%s)", t->name, t->columns);
        good = run(c, sql);
        (void) snprintf(sql, sizeof sql, "CREATE INDEX IF NOT EXISTS %s_of ON %s (process)",
                        t->name, t->name);
        good = good && (i == ESDM__TABLE_PROCESS || run(c, sql));
    }
    return (good && run(c, "COMMIT")) || (run(c, "ROLLBACK"), false);
}

/* Whether there are tables, of which format. */
static bool
format_of(connection *c, int64_t *ret_format)
{
    sqlite3_stmt *statement = NULL;
    *ret_format = 0;
    if (sqlite3_prepare_v2(c->db, "SELECT count(*) FROM sqlite_schema WHERE name = 'esdm_records'",
                           -1, &statement, NULL) != SQLITE_OK)
        return false;
    bool good = sqlite3_step(statement) == SQLITE_ROW;
    bool there = good && sqlite3_column_int(statement, 0) > 0;
    (void) sqlite3_finalize(statement);
    if (!there)
        return good;
    good = sqlite3_prepare_v2(c->db, "SELECT max(format) FROM esdm_records", -1, &statement,
                              NULL) == SQLITE_OK &&
           sqlite3_step(statement) == SQLITE_ROW;
    if (good)
        *ret_format = sqlite3_column_int64(statement, 0);
    (void) sqlite3_finalize(statement);
    return good;
}

static esdm_status
set_up(connection *c, bool reads, esdm_error *err)
{
    int64_t format = 0;
    (void) sqlite3_busy_handler(c->db, wait_for_lock, c);
    /* Records survive the end of the program; what a power cut takes are the last ones. Where a
     * file system has no shared memory the journal stays what it is. */
    if (!reads) {
        (void) run(c, "PRAGMA synchronous = NORMAL"); /* whether or not there is a WAL */
        (void) run(c, "PRAGMA journal_mode = WAL");
    }
    if (!format_of(c, &format))
        return failed(c, "its records cannot be read", err);
    if (format == 0 && reads)
        return esdm__error_set(err, ESDM_ENOENT,
                               "%s: it holds no records: a program leaves some with "
                               "ESDM_MONITOR=stats:%s,trace:%s",
                               c->place, c->place, c->place);
    if (format == 0)
        return make_tables(c) ? ESDM_OK : failed(c, "its tables cannot be made", err);
    return esdm__database_check_format(format, c->place, err);
}

static esdm_status
open_file(connection *c, bool reads, esdm_error *err)
{
    int flags = reads ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    if (sqlite3_open_v2(c->place, &c->db, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
        return failed(c, "it cannot be opened", err);
    return set_up(c, reads, err);
}

/* Somebody else's file in a folder that may not be written to, where SQLite would make files of its
 * own to read it. Without a log nobody has it open. */
static bool
is_left_alone(const char *place)
{
    char log[PATH_MAX];
    int n = snprintf(log, sizeof log, "%s-wal", place);
    return n > 0 && (size_t) n < sizeof log && access(place, R_OK) == 0 && access(log, F_OK) != 0 &&
           errno == ENOENT;
}

static esdm_status
open_unchanging(connection *c, esdm_error *err)
{
    char *uri = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&uri, &bytes);
    if (out == NULL)
        return esdm__error_nomem(err, sizeof *c, c->place);
    (void) fputs(c->place[0] == '/' ? "file://" : "file:", out);
    for (const char *at = c->place; *at != '\0'; at++)
        (void) fprintf(out, strchr("%?#", *at) != NULL ? "%%%02X" : "%c", (unsigned char) *at);
    (void) fputs("?immutable=1", out);
    bool good =
        fclose(out) == 0 &&
        sqlite3_open_v2(uri, &c->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX,
                        NULL) == SQLITE_OK;
    free(uri);
    return good ? set_up(c, true, err) : failed(c, "it cannot be opened", err);
}

/* Under the mutex. */
static esdm_status
open_one(const char *place, bool reads, const atomic_bool *give_up, void **ret_connection,
         esdm_error *err)
{
    connection *c = calloc(1, sizeof *c);
    if (c == NULL)
        return esdm__error_nomem(err, sizeof *c, place);
    *c = (connection){.next = connections, .pid = getpid(), .place = place, .give_up = give_up};
    connections = c;
    esdm_status status = open_file(c, reads, err);
    if (status != ESDM_OK && reads && is_left_alone(place)) {
        esdm_error other = {0};
        (void) sqlite3_close(c->db);
        c->db = NULL;
        if (open_unchanging(c, &other) == ESDM_OK)
            status = ESDM_OK;
    }
    if (status != ESDM_OK) {
        close_one(c);
        return status;
    }
    *ret_connection = c;
    return ESDM_OK;
}

static esdm_status
sqlite_open(const char *place, bool reads, const atomic_bool *give_up, void **ret_connection,
            esdm_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void) pthread_once(&once, prepare);
    (void) pthread_mutex_lock(&inside);
    close_inherited();
    esdm_status status =
        is_unusable
            ? esdm__error_set(err, ESDM_ENOTSUP,
                              "%s: this process was forked while another thread wrote records",
                              place)
            : open_one(place, reads, give_up, ret_connection, err);
    (void) pthread_mutex_unlock(&inside);
    return status;
}

static bool
bind(sqlite3_stmt *statement, int at, const esdm__value *v)
{
    switch (v->kind) {
    case ESDM__VALUE_INTEGER:
        return sqlite3_bind_int64(statement, at, v->integer) == SQLITE_OK;
    case ESDM__VALUE_REAL:
        return sqlite3_bind_double(statement, at, v->real) == SQLITE_OK;
    case ESDM__VALUE_TEXT:
        return sqlite3_bind_text(statement, at, v->text, -1, SQLITE_STATIC) == SQLITE_OK;
    case ESDM__VALUE_NULL:
        break;
    }
    return sqlite3_bind_null(statement, at) == SQLITE_OK;
}

static bool
prepare_insert(connection *c, esdm__table table)
{
    const esdm__table_text *t = &esdm__table_texts[table];
    char sql[256];
    if (c->inserts[table] != NULL)
        return true;
    int n = snprintf(sql, sizeof sql, "INSERT INTO %s VALUES (?", t->name);
    for (unsigned i = 1; i < t->count; i++)
        n += snprintf(sql + n, sizeof sql - (size_t) n, ",?");
    (void) snprintf(sql + n, sizeof sql - (size_t) n, ")");
    return sqlite3_prepare_v3(c->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &c->inserts[table],
                              NULL) == SQLITE_OK;
}

static bool
insert(connection *c, const esdm__row *row)
{
    bool good = prepare_insert(c, row->table);
    sqlite3_stmt *statement = c->inserts[row->table];
    for (unsigned i = 0; i < esdm__table_texts[row->table].count && good; i++)
        good = bind(statement, (int) i + 1, &row->values[i]);
    good = good && sqlite3_step(statement) == SQLITE_DONE;
    (void) sqlite3_reset(statement);
    return good;
}

static esdm_status
sqlite_write(void *argument, const esdm__row *rows, size_t count, const atomic_bool *give_up,
             esdm_error *err)
{
    connection *c = argument;
    c->give_up = give_up;
    c->naps = 0;
    (void) pthread_mutex_lock(&inside);
    bool good = run(c, "BEGIN IMMEDIATE");
    for (size_t i = 0; i < count && good; i++)
        good = insert(c, &rows[i]);
    good = good && run(c, "COMMIT");
    esdm_status status = good ? ESDM_OK : failed(c, "records cannot be written", err);
    if (!good && sqlite3_get_autocommit(c->db) == 0)
        (void) run(c, "ROLLBACK");
    (void) pthread_mutex_unlock(&inside);
    return status;
}

static void
take_column(sqlite3_stmt *statement, int i, esdm__value *ret)
{
    switch (sqlite3_column_type(statement, i)) {
    case SQLITE_INTEGER:
        *ret = (esdm__value){.kind = ESDM__VALUE_INTEGER,
                             .integer = sqlite3_column_int64(statement, i)};
        break;
    case SQLITE_FLOAT:
        *ret = (esdm__value){.kind = ESDM__VALUE_REAL, .real = sqlite3_column_double(statement, i)};
        break;
    case SQLITE_TEXT:
        *ret = (esdm__value){.kind = ESDM__VALUE_TEXT,
                             .text = (const char *) sqlite3_column_text(statement, i)};
        break;
    default:
        *ret = (esdm__value){.kind = ESDM__VALUE_NULL};
    }
}

static esdm_status
sqlite_ask(void *argument, const char *query, const char *parameter, const char *types,
           esdm__row_fn take, void *context, esdm_error *err)
{
    connection *c = argument;
    sqlite3_stmt *statement = NULL;
    unsigned count = (unsigned) strlen(types);
    (void) pthread_mutex_lock(&inside); /* `take` does not come back here */
    int code = sqlite3_prepare_v2(c->db, query, -1, &statement, NULL);
    if (code == SQLITE_OK && parameter != NULL)
        code = sqlite3_bind_text(statement, 1, parameter, -1, SQLITE_STATIC);
    bool more = code == SQLITE_OK;
    c->naps = 0;
    while (more) {
        esdm__value values[ESDM__DATABASE_COLUMNS];
        code = sqlite3_step(statement);
        for (unsigned i = 0; i < count && code == SQLITE_ROW; i++)
            take_column(statement, (int) i, &values[i]);
        more = code == SQLITE_ROW && take(context, count, values);
    }
    esdm_status status = code == SQLITE_DONE || code == SQLITE_ROW
                             ? ESDM_OK
                             : failed(c, "its records cannot be read", err);
    (void) sqlite3_finalize(statement);
    (void) pthread_mutex_unlock(&inside);
    return status;
}

const esdm__engine esdm__engine_sqlite = {sqlite_open, sqlite_write, sqlite_ask, sqlite_close};
