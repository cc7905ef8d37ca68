/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MONITOR_DATABASE_H
#define ESDM_MONITOR_DATABASE_H

/**
 * @file
 * Records in tables of a database: SQLite (a name in .sqlite, .sqlite3, .db) or PostgreSQL (a URL).
 *
 * Rows are gathered, and written by one transaction a batch. Only the thread of the monitor comes
 * here; it alone waits for a lock or a server, until it is told to give up. What is not written is
 * counted. The tables are those of `esdm__table_texts`, and are explained in docs/admin.md.
 */

#include <stdatomic.h>

#include "monitor/monitor.h"
#include "monitor/parts.h"

#define ESDM__DATABASE_FORMAT  1
#define ESDM__DATABASE_COLUMNS 20u  /* of a table, at most */
#define ESDM__DATABASE_ROWS    2048 /* of a batch, at most */

typedef enum esdm__table {
    ESDM__TABLE_PROCESS,
    ESDM__TABLE_SPAN,
    ESDM__TABLE_DATASET,
    ESDM__TABLE_NODE,
    ESDM__TABLE_STATISTIC,
    ESDM__TABLE_ACTION,
    ESDM__TABLE_NODE_TOTAL,
    ESDM__TABLE_END,
    ESDM__TABLES
} esdm__table;

/** Of a table: its name, and the definitions of its columns. The same text serves SQLite and
 *  PostgreSQL. */
typedef struct esdm__table_text {
    const char *name;
    const char *columns;
    unsigned count;
} esdm__table_text;
extern const esdm__table_text esdm__table_texts[ESDM__TABLES];

typedef enum esdm__value_kind {
    ESDM__VALUE_NULL,
    ESDM__VALUE_INTEGER,
    ESDM__VALUE_REAL,
    ESDM__VALUE_TEXT
} esdm__value_kind;

typedef struct esdm__value {
    esdm__value_kind kind;
    union {
        int64_t integer;
        double real;
        const char *text; /* borrowed until the batch is written; UTF-8 */
    };
} esdm__value;

typedef struct esdm__row {
    esdm__table table;
    char *own; /* text of one of the values, owned; NULL: none */
    esdm__value values[ESDM__DATABASE_COLUMNS];
} esdm__row;

/** Takes one row of an answer. Values are borrowed. False: no more. */
typedef bool (*esdm__row_fn)(void *context, unsigned count, const esdm__value *values);

/** A kind of database. Functions may wait, until `give_up`. */
typedef struct esdm__engine {
    /** Makes the tables where there are none, unless it is opened for reading.
     *  @param ret_connection owned by the caller: for close(). ESDM_ENOTSUP: of another format. */
    esdm_status (*open)(const char *place, bool reads, const atomic_bool *give_up,
                        void **ret_connection, esdm_error *err);
    /** All rows, or none. */
    esdm_status (*write)(void *connection, const esdm__row *rows, size_t count,
                         const atomic_bool *give_up, esdm_error *err);
    /** @param parameter of `$1` in the query; NULL: there is none. @param types of the columns. */
    esdm_status (*ask)(void *connection, const char *query, const char *parameter,
                       const char *types, esdm__row_fn take, void *context, esdm_error *err);
    void (*close)(void *connection);
} esdm__engine;

extern const esdm__engine esdm__engine_sqlite;   /* database_sqlite.c */
extern const esdm__engine esdm__engine_postgres; /* database_postgres.c */

/** NULL: the name is not that of a database. */
const esdm__engine *esdm__database_engine(const char *file);
/** The condition on `format` that all engines check. */
esdm_status esdm__database_check_format(int64_t format, const char *place, esdm_error *err);

typedef struct esdm__database esdm__database;

/** @param place taken over. @param who borrowed. NULL: no memory. */
esdm__database *esdm__database_new(char *place, const esdm__who *who);
void esdm__database_free(esdm__database *database); /* NULL is accepted; writes nothing */

/** Rows of a trace. False: it is lost. `give_up` may be NULL: then nothing waits. */
bool esdm__database_span(esdm__database *d, const esdm__object *object, const esdm__record *record,
                         const atomic_bool *give_up);
bool esdm__database_dataset(esdm__database *d, const char *line, const atomic_bool *give_up);
bool esdm__database_sample(esdm__database *d, const double *numbers, uint64_t at_ns,
                           const atomic_bool *give_up);
/** Writes what has been gathered, if it is old enough or `now`. */
void esdm__database_flush(esdm__database *d, bool now, const atomic_bool *give_up);
/** The last rows: what was counted (with `statistics`), and how many were dropped.
 *  @return whether they have been committed. */
bool esdm__database_end(esdm__database *d, esdm__monitor *monitor, bool statistics,
                        const atomic_bool *give_up);
/** Ends the connection: a file of SQLite then needs none beside it. The next batch opens it again.
 */
void esdm__database_close(esdm__database *d); /* NULL is accepted */
/** Rows of the trace that could not be written, since this was asked last. */
uint64_t esdm__database_lost(esdm__database *d);
/** Why something could not be written, first; NULL: nothing. Borrowed; any thread. */
const char *esdm__database_failure(const esdm__database *d);
bool esdm__database_is_at(const esdm__database *d, const char *place);

#endif
