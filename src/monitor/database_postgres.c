/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Records in a PostgreSQL database. Nothing here blocks a program: what a server does not take is
 * waited for by poll(), until that is given up.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/plain_locale.h"
#include "base/thread.h"
#include "monitor/database.h"
#include "monitor/libpq.h"

#define POLL_MS   50
#define PATIENCE  UINT64_C(30000000000) /* of those who read, and for a connection */
#define LOCK_NAME "7309453621"          /* while tables are made */

typedef struct connection {
    const esdm__libpq *pq;
    esdm__pg_conn *conn;
    char *label; /* owned; the place without the password */
    const atomic_bool *give_up;
    uint64_t until_ns; /* 0: only until `give_up` */
    bool reads;        /* each wait has its own patience: a trace may take long */
} connection;

/* ---- waiting --------------------------------------------------------------------------------- */

/* False: it is not waited for any more. */
static bool
wait_for(const connection *c, short events)
{
    struct pollfd wanted = {.fd = c->pq->socket(c->conn), .events = events};
    uint64_t until_ns = c->reads ? esdm__monitor_now_ns() + PATIENCE : c->until_ns;
    for (;;) {
        int n = poll(&wanted, 1, POLL_MS);
        if (n > 0)
            return true;
        if ((n < 0 && errno != EINTR) || (c->give_up != NULL && atomic_load(c->give_up)) ||
            (until_ns > 0 && esdm__monitor_now_ns() > until_ns))
            return false;
    }
}

static esdm_status
failed(const connection *c, const char *what, const char *why, esdm_error *err)
{
    size_t bytes = strcspn(why, "\n");
    return esdm__error_set(err, ESDM_EIO, "%s: %s: %.*s", c->label, what, (int) bytes,
                           bytes > 0 ? why : "");
}

static esdm_status
no_answer(const connection *c, esdm_error *err)
{
    return esdm__error_set(err, ESDM_ETIMEDOUT, "%s: the server does not answer", c->label);
}

static bool
send_all(const connection *c)
{
    int left;
    while ((left = c->pq->flush(c->conn)) > 0) {
        if (!wait_for(c, POLLIN | POLLOUT) || c->pq->consume_input(c->conn) == 0)
            return false;
    }
    return left == 0;
}

/* *ret_result: NULL at the end of the answers. False: it does not come. */
static bool
next_result(const connection *c, esdm__pg_result **ret_result)
{
    while (c->pq->is_busy(c->conn) != 0) {
        if (!wait_for(c, POLLIN) || c->pq->consume_input(c->conn) == 0)
            return false;
    }
    *ret_result = c->pq->get_result(c->conn);
    return true;
}

/* ---- questions ------------------------------------------------------------------------------- */

static esdm__value
value_of(const connection *c, const esdm__pg_result *result, int row, int column, char type)
{
    if (c->pq->is_null(result, row, column) != 0)
        return (esdm__value){.kind = ESDM__VALUE_NULL};
    const char *text = c->pq->value(result, row, column);
    if (type == 'i')
        return (esdm__value){.kind = ESDM__VALUE_INTEGER, .integer = strtoll(text, NULL, 10)};
    if (type == 'r')
        return (esdm__value){.kind = ESDM__VALUE_REAL, .real = strtod(text, NULL)};
    return (esdm__value){.kind = ESDM__VALUE_TEXT, .text = text};
}

static bool
take_rows(const connection *c, const esdm__pg_result *result, const char *types, esdm__row_fn take,
          void *context)
{
    unsigned count = (unsigned) strlen(types);
    bool more = true;
    for (int row = 0; row < c->pq->rows(result) && more; row++) {
        esdm__value values[ESDM__DATABASE_COLUMNS];
        for (unsigned i = 0; i < count; i++)
            values[i] = value_of(c, result, row, (int) i, types[i]);
        more = take(context, count, values);
    }
    return more;
}

/* All answers to what was sent. @param types NULL: rows are not wanted. */
static esdm_status
answers(const connection *c, const char *types, esdm__row_fn take, void *context, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    bool more = true;
    if (!send_all(c))
        return c->pq->status(c->conn) == ESDM__PG_CONNECTION_OK
                   ? no_answer(c, err)
                   : failed(c, "the connection is lost", c->pq->error_message(c->conn), err);
    for (;;) {
        esdm__pg_result *result = NULL;
        if (!next_result(c, &result))
            return c->pq->status(c->conn) == ESDM__PG_CONNECTION_OK
                       ? no_answer(c, err)
                       : failed(c, "the connection is lost", c->pq->error_message(c->conn), err);
        if (result == NULL)
            return status;
        int code = c->pq->result_status(result);
        bool good = code == ESDM__PG_COMMAND_OK || code == ESDM__PG_TUPLES_OK ||
                    code == ESDM__PG_SINGLE_TUPLE;
        if (!good && status == ESDM_OK)
            status = failed(c, "the server refuses", c->pq->result_message(result), err);
        else if (types != NULL && more)
            more = take_rows(c, result, types, take, context);
        c->pq->clear(result);
    }
}

static esdm_status
say(const connection *c, const char *sql, esdm_error *err)
{
    if (c->pq->send_query(c->conn, sql) == 0)
        return failed(c, "the connection is lost", c->pq->error_message(c->conn), err);
    return answers(c, NULL, NULL, NULL, err);
}

static esdm_status
postgres_ask(void *argument, const char *query, const char *parameter, const char *types,
             esdm__row_fn take, void *context, esdm_error *err)
{
    connection *c = argument;
    c->until_ns = 0;
    if (c->pq->send_query_params(c->conn, query, parameter != NULL ? 1 : 0, NULL, &parameter, NULL,
                                 NULL, 0) == 0)
        return failed(c, "the connection is lost", c->pq->error_message(c->conn), err);
    (void) c->pq->set_single_row(c->conn); /* a trace can be longer than the memory */
    return answers(c, types, take, context, err);
}

/* ---- connections ----------------------------------------------------------------------------- */

/* "postgresql://HOST/DATABASE": what stands before and behind may be secret. */
static char *
label_of(const char *place)
{
    char *label = NULL;
    const char *rest = strstr(place, "://") + 3;
    size_t bytes = strcspn(rest, "?");
    const char *at = memrchr(rest, '@', bytes); /* one in a password that should be %40, too */
    if (at != NULL) {
        bytes -= (size_t) (at + 1 - rest);
        rest = at + 1;
    }
    return asprintf(&label, "postgresql://%.*s", (int) bytes, rest) >= 0 ? label : NULL;
}

static void
postgres_close(void *argument)
{
    connection *c = argument;
    esdm__descriptors_moving(true);
    if (c->conn != NULL)
        c->pq->finish(c->conn);
    esdm__descriptors_moving(false);
    free(c->label);
    free(c);
}

/* libpq quotes a URL that it does not understand, with the password. */
static bool
is_of_url(const char *why)
{
    return strstr(why, "URI") != NULL || strstr(why, "percent-encoded") != NULL;
}

static esdm_status
wrong_url(const connection *c, esdm_error *err)
{
    return esdm__error_set(err, ESDM_EINVAL,
                           "%s: this URL cannot be understood: it is "
                           "postgresql://USER:PASSWORD@HOST:PORT/DATABASE?KEY=VALUE, where other "
                           "characters are %%XX ('%%' is %%25, '@' is %%40)",
                           c->label);
}

/* A connection that another thread begins: libpq looks the host's name up at once, which can take
 * minutes. It belongs to both threads; who leaves last frees it. */
typedef struct beginning {
    const esdm__libpq *pq;
    esdm__pg_conn *conn;
    char *place;
    sem_t ended;
    atomic_bool left; /* by one of them */
} beginning;

static void
leave_beginning(beginning *b)
{
    if (!atomic_exchange(&b->left, true))
        return;
    esdm__descriptors_moving(true);
    if (b->conn != NULL)
        b->pq->finish(b->conn);
    esdm__descriptors_moving(false);
    (void) sem_destroy(&b->ended);
    free(b->place);
    free(b);
}

static void *
begin(void *argument)
{
    beginning *b = argument;
    const char *const keywords[] = {"dbname", "fallback_application_name", "client_encoding", NULL};
    const char *const values[] = {b->place, "esdm-monitor", "UTF8", NULL};
    esdm__plain_locale locale;
    bool plain = esdm__plain_locale_enter(&locale, NULL) == ESDM_OK;
    esdm__descriptors_moving(true);
    b->conn = b->pq->connect_start(keywords, values, 1);
    esdm__descriptors_moving(false);
    if (plain)
        esdm__plain_locale_leave(&locale);
    (void) sem_post(&b->ended);
    leave_beginning(b);
    return NULL;
}

static beginning *
new_beginning(const connection *c, const char *place)
{
    beginning *b = calloc(1, sizeof *b);
    if (b == NULL)
        return NULL;
    b->pq = c->pq;
    b->place = strdup(place);
    if (b->place != NULL && sem_init(&b->ended, 0, 0) == 0)
        return b;
    free(b->place);
    free(b);
    return NULL;
}

static bool
run_apart(beginning *b)
{
    pthread_t thread;
    bool runs = esdm__thread_start(&thread, NULL, begin, b);
    if (runs)
        (void) pthread_detach(thread);
    return runs;
}

/* False: it is not waited for any more. */
static bool
wait_for_beginning(const connection *c, beginning *b)
{
    for (;;) {
        const struct timespec until = esdm__deadline(CLOCK_REALTIME, POLL_MS * UINT64_C(1000000));
        if (sem_timedwait(&b->ended, &until) == 0)
            return true;
        if ((c->give_up != NULL && atomic_load(c->give_up)) || esdm__monitor_now_ns() > c->until_ns)
            return false;
    }
}

static esdm_status
begin_connection(connection *c, const char *place, esdm_error *err)
{
    beginning *b = new_beginning(c, place);
    if (b == NULL)
        return esdm__error_nomem(err, sizeof *b, "a connection");
    if (!run_apart(b)) {
        atomic_store(&b->left, true);
        leave_beginning(b);
        return esdm__error_set(err, ESDM_ENOMEM, "%s: no thread can be started", c->label);
    }
    bool ended = wait_for_beginning(c, b);
    if (ended) {
        c->conn = b->conn;
        b->conn = NULL;
    }
    leave_beginning(b);
    if (!ended)
        return esdm__error_set(err, ESDM_ETIMEDOUT, "%s: the name of the host is not found",
                               c->label);
    return c->conn != NULL ? ESDM_OK : esdm__error_nomem(err, sizeof *c, "a connection");
}

static esdm_status
connect_now(connection *c, const char *place, esdm_error *err)
{
    const char *user = strstr(place, "://") + 3;
    size_t bytes = strcspn(user, "/?");
    const char *at = memchr(user, '@', bytes);
    if (at != NULL &&
        at != memrchr(user, '@', bytes)) /* of the password, a part would be the host */
        return wrong_url(c, err);
    esdm_status status = begin_connection(c, place, err);
    if (status != ESDM_OK)
        return status;
    int state = c->pq->status(c->conn) == ESDM__PG_CONNECTION_BAD ? ESDM__PG_POLLING_FAILED
                                                                  : ESDM__PG_POLLING_WRITING;
    while (state != ESDM__PG_POLLING_OK && state != ESDM__PG_POLLING_FAILED) {
        if (!wait_for(c, state == ESDM__PG_POLLING_READING ? POLLIN : POLLOUT))
            return no_answer(c, err);
        state = c->pq->connect_poll(c->conn);
    }
    if (state == ESDM__PG_POLLING_OK)
        return c->pq->set_nonblocking(c->conn, 1) == 0 ? ESDM_OK : no_answer(c, err);
    const char *why = c->pq->error_message(c->conn);
    if (is_of_url(why))
        return wrong_url(c, err);
    return failed(c, "no connection", why, err);
}

/* Who comes here is in the locale "C" (base/plain_locale.h), as messages of libpq then are. */
static esdm_status
connect_high(connection *c, const char *place, esdm_error *err)
{
    c->until_ns = esdm__monitor_now_ns() + PATIENCE;
    esdm__descriptors_moving(true);
    esdm_status status = connect_now(c, place, err);
    esdm__descriptors_moving(false);
    return status;
}

/* One process at a time: CREATE … IF NOT EXISTS fails where two make the same. */
static esdm_status
make_tables(const connection *c, esdm_error *err)
{
    char *sql = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&sql, &bytes);
    if (out == NULL)
        return esdm__error_nomem(err, sizeof *c, "tables");
    (void) fputs("SET client_min_messages TO warning; BEGIN;"
                 "SELECT pg_advisory_xact_lock(" LOCK_NAME ");"
                 "CREATE TABLE IF NOT EXISTS esdm_records (format BIGINT);"
                 "INSERT INTO esdm_records SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM esdm_records);",
                 out);
    for (int i = 0; i < ESDM__TABLES; i++) {
        const esdm__table_text *t = &esdm__table_texts[i];
        (void) fprintf(out, "CREATE TABLE IF NOT EXISTS %s (%s);", t->name, t->columns);
        if (i != ESDM__TABLE_PROCESS)
            (void) fprintf(out, "CREATE INDEX IF NOT EXISTS %s_of ON %s (process);", t->name,
                           t->name);
    }
    (void) fputs("COMMIT", out);
    esdm_status status = fclose(out) == 0 && sql != NULL ? say(c, sql, err)
                                                         : esdm__error_nomem(err, bytes, "tables");
    free(sql);
    return status;
}

static bool
take_number(void *context, unsigned count, const esdm__value *values)
{
    (void) count;
    *(int64_t *) context = values[0].kind == ESDM__VALUE_INTEGER ? values[0].integer : 0;
    return true;
}

static esdm_status
set_up(connection *c, bool reads, esdm_error *err)
{
    int64_t there = 0;
    int64_t format = 0;
    esdm_status status = say(c,
                             "SET standard_conforming_strings TO on; SET synchronous_commit TO off;"
                             "SET datestyle TO 'ISO'",
                             err);
    if (status == ESDM_OK)
        status = postgres_ask(c, "SELECT (to_regclass('esdm_records') IS NOT NULL)::int::bigint",
                              NULL, "i", take_number, &there, err);
    if (status == ESDM_OK && there == 0 && reads)
        return esdm__error_set(err, ESDM_ENOENT,
                               "%s: it holds no records: a program leaves some with "
                               "ESDM_MONITOR=stats:URL,trace:URL",
                               c->label);
    if (status == ESDM_OK && there == 0)
        return make_tables(c, err);
    if (status == ESDM_OK)
        status = postgres_ask(c, "SELECT max(format) FROM esdm_records", NULL, "i", take_number,
                              &format, err);
    return status == ESDM_OK ? esdm__database_check_format(format, c->label, err) : status;
}

static esdm_status
postgres_open(const char *place, bool reads, const atomic_bool *give_up, void **ret_connection,
              esdm_error *err)
{
    connection *c = calloc(1, sizeof *c);
    if (c == NULL || (c->label = label_of(place)) == NULL) {
        free(c);
        return esdm__error_nomem(err, sizeof *c, "a connection");
    }
    c->give_up = give_up;
    c->reads = reads;
    c->pq = esdm__libpq_find();
    esdm_status status =
        c->pq != NULL ? connect_high(c, place, err)
                      : esdm__error_set(err, ESDM_ENOTSUP,
                                        "%s: records go to PostgreSQL by libpq (libpq.so.5), which "
                                        "is not installed here",
                                        c->label);
    if (status == ESDM_OK)
        status = set_up(c, reads, err);
    if (status != ESDM_OK) {
        postgres_close(c);
        return status;
    }
    *ret_connection = c;
    return ESDM_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void
put_value(FILE *out, const esdm__value *v)
{
    switch (v->kind) {
    case ESDM__VALUE_INTEGER:
        (void) fprintf(out, "%" PRId64, v->integer);
        break;
    case ESDM__VALUE_REAL:
        (void) fprintf(out, "%.17g", v->real);
        break;
    case ESDM__VALUE_TEXT:
        (void) fputc('\'', out);
        for (const char *at = v->text; *at != '\0'; at++) {
            if (*at == '\'')
                (void) fputc('\'', out);
            (void) fputc(*at, out);
        }
        (void) fputc('\'', out);
        break;
    case ESDM__VALUE_NULL:
        (void) fputs("NULL", out);
        break;
    }
}

/* Statements of one message are one transaction. The row of the process may be there: where the
 * connection broke before the answer came. */
static char *
insertion(const esdm__row *rows, size_t count)
{
    char *sql = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&sql, &bytes);
    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        const esdm__table_text *t = &esdm__table_texts[rows[i].table];
        if (i == 0 || rows[i - 1].table != rows[i].table)
            (void) fprintf(out, "%sINSERT INTO %s VALUES ", i > 0 ? ";" : "", t->name);
        else
            (void) fputc(',', out);
        for (unsigned v = 0; v < t->count; v++) {
            (void) fputc(v > 0 ? ',' : '(', out);
            put_value(out, &rows[i].values[v]);
        }
        (void) fputs(rows[i].table == ESDM__TABLE_PROCESS ? ") ON CONFLICT DO NOTHING" : ")", out);
    }
    bool failed_to = ferror(out) != 0;
    if (fclose(out) == 0 && !failed_to)
        return sql;
    free(sql);
    return NULL;
}

static esdm_status
postgres_write(void *argument, const esdm__row *rows, size_t count, const atomic_bool *give_up,
               esdm_error *err)
{
    connection *c = argument;
    c->give_up = give_up;
    c->until_ns = 0;
    char *sql = insertion(rows, count);
    esdm_status status =
        sql != NULL ? say(c, sql, err) : esdm__error_nomem(err, count * sizeof *rows, "records");
    free(sql);
    return status;
}

const esdm__engine esdm__engine_postgres = {postgres_open, postgres_write, postgres_ask,
                                            postgres_close};
