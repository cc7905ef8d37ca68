/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Rows of records: gathered, written in batches, counted where they are lost. */
#include "monitor/database.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"

#define FLUSH_NS      UINT64_C(250000000)
#define FIRST_PAUSE   UINT64_C(1000000000) /* after a failure; twice as long each time */
#define LONGEST_PAUSE UINT64_C(30000000000)

const esdm__table_text esdm__table_texts[ESDM__TABLES] = {
    [ESDM__TABLE_PROCESS] = {"esdm_process",
                             "process BIGINT PRIMARY KEY, job TEXT, program TEXT, host TEXT, pid "
                             "BIGINT, rank BIGINT, realtime_ns BIGINT, monotonic_ns BIGINT",
                             8},
    [ESDM__TABLE_SPAN] = {"esdm_span",
                          "process BIGINT, kind TEXT, thread BIGINT, id BIGINT, cause BIGINT, "
                          "start_ns BIGINT, ns BIGINT, container TEXT, dataset TEXT, target TEXT, "
                          "bytes BIGINT, stored_bytes BIGINT, pieces BIGINT, status BIGINT, "
                          "detail TEXT",
                          15},
    [ESDM__TABLE_DATASET] = {"esdm_dataset", "process BIGINT, facts TEXT", 2},
    [ESDM__TABLE_NODE] = {"esdm_node",
                          "process BIGINT, at_ns BIGINT, seconds DOUBLE PRECISION, cpu_busy DOUBLE "
                          "PRECISION, cpu_wait DOUBLE PRECISION, memory_free_bytes DOUBLE "
                          "PRECISION, dirty_bytes DOUBLE PRECISION, net_in_bytes_per_s DOUBLE "
                          "PRECISION, net_out_bytes_per_s DOUBLE PRECISION, disk_read_bytes_per_s "
                          "DOUBLE PRECISION, disk_write_bytes_per_s DOUBLE PRECISION, disk_busy "
                          "DOUBLE PRECISION, watts DOUBLE PRECISION",
                          13},
    [ESDM__TABLE_STATISTIC] =
        {"esdm_statistic",
         "process BIGINT, kind TEXT, container TEXT, dataset TEXT, target TEXT, calls BIGINT, "
         "failed BIGINT, pieces BIGINT, bytes BIGINT, stored_bytes BIGINT, seconds DOUBLE "
         "PRECISION, longest_s DOUBLE PRECISION, below_1k BIGINT, below_4k BIGINT, below_16k "
         "BIGINT, below_64k BIGINT, below_256k BIGINT, below_1m BIGINT, below_4m BIGINT, larger "
         "BIGINT",
         20},
    [ESDM__TABLE_ACTION] = {"esdm_action",
                            "process BIGINT, kind TEXT, container TEXT, dataset TEXT, requests "
                            "BIGINT, used BIGINT, bytes BIGINT, gained_ns BIGINT, cost_ns BIGINT, "
                            "stopped TEXT",
                            10},
    [ESDM__TABLE_NODE_TOTAL] =
        {"esdm_node_total",
         "process BIGINT, seconds DOUBLE PRECISION, cpu_busy_s DOUBLE PRECISION, cpu_wait_s DOUBLE "
         "PRECISION, cpu_all_s DOUBLE PRECISION, net_in_bytes DOUBLE PRECISION, net_out_bytes "
         "DOUBLE PRECISION, disk_read_bytes DOUBLE PRECISION, disk_write_bytes DOUBLE PRECISION, "
         "disk_busy_s DOUBLE PRECISION, process_read_bytes DOUBLE PRECISION, process_write_bytes "
         "DOUBLE PRECISION, energy_j DOUBLE PRECISION",
         13},
    [ESDM__TABLE_END] = {"esdm_end",
                         "process BIGINT, at_ns BIGINT, seconds DOUBLE PRECISION, dropped BIGINT, "
                         "failure TEXT",
                         5},
};

struct esdm__database {
    char *place; /* owned */
    const esdm__engine *engine;
    const esdm__who *who;
    char *program;    /* owned; plain */
    int64_t process;  /* number of this process in the tables */
    void *connection; /* NULL: none */
    bool entered;     /* the row of the process was committed */
    uint64_t retry_ns;
    uint64_t pause_ns;
    uint64_t first_ns; /* when the oldest row was gathered */
    uint64_t lost;
    _Atomic(char *) failure; /* owned; set once */
    size_t count;
    esdm__row rows[ESDM__DATABASE_ROWS + 1]; /* the first: of the process */
};

/* ---- values ---------------------------------------------------------------------------------- */

static esdm__value
integer(uint64_t number)
{
    return (esdm__value){.kind = ESDM__VALUE_INTEGER, .integer = (int64_t) number};
}

static esdm__value
real(double number)
{
    return (esdm__value){.kind = ESDM__VALUE_REAL, .real = number};
}

/* Negative ones stand for what cannot be read here. */
static esdm__value
measured(double number)
{
    return number < 0 ? (esdm__value){.kind = ESDM__VALUE_NULL} : real(number);
}

static esdm__value
text(const char *string)
{
    return string == NULL ? (esdm__value){.kind = ESDM__VALUE_NULL}
                          : (esdm__value){.kind = ESDM__VALUE_TEXT, .text = string};
}

/* ---- life ------------------------------------------------------------------------------------ */

const esdm__engine *
esdm__database_engine(const char *file)
{
    static const char *const names[] = {".sqlite", ".sqlite3", ".db"};
    if (strncmp(file, "postgresql://", 13) == 0 || strncmp(file, "postgres://", 11) == 0)
        return &esdm__engine_postgres;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (esdm__monitor_ends_with(file, names[i]))
            return &esdm__engine_sqlite;
    }
    return NULL;
}

bool
esdm__monitor_is_database(const char *file)
{
    return esdm__database_engine(file) != NULL;
}

esdm_status
esdm__database_check_format(int64_t format, const char *place, esdm_error *err)
{
    if (format == ESDM__DATABASE_FORMAT)
        return ESDM_OK;
    return esdm__error_set(
        err, ESDM_ENOTSUP,
        "%s: its records are of format %lld, and this ESDM knows %d: use another "
        "database, or the ESDM that made them",
        place, (long long) format, ESDM__DATABASE_FORMAT);
}

/* A number that no other process has. */
static int64_t
draw_number(const esdm__who *who)
{
    uint64_t number = 0;
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != (ssize_t) sizeof number)
        number = who->realtime_ns * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t) who->pid << 40;
    return (int64_t) (number >> 1);
}

static char *
plain(const char *json)
{
    json_t *value = esdm__json_read_any(json);
    char *copy = strdup(json_is_string(value) ? json_string_value(value) : "");
    json_decref(value);
    return copy;
}

esdm__database *
esdm__database_new(char *place, const esdm__who *who)
{
    esdm__database *d = calloc(1, sizeof *d);
    if (d == NULL) {
        free(place);
        return NULL;
    }
    d->place = place;
    d->engine = esdm__database_engine(place);
    d->who = who;
    d->program = plain(who->program);
    d->process = draw_number(who);
    d->pause_ns = FIRST_PAUSE;
    d->rows[0] = (esdm__row){.table = ESDM__TABLE_PROCESS,
                             .values = {integer((uint64_t) d->process), text(who->job),
                                        text(d->program), text(who->host),
                                        integer((uint64_t) who->pid), integer((uint64_t) who->rank),
                                        integer(who->realtime_ns), integer(who->monotonic_ns)}};
    return d;
}

/* A forked child leaves the connection of its parent alone. */
static void
disconnect(esdm__database *d)
{
    if (d->connection != NULL && d->who->pid == getpid())
        d->engine->close(d->connection);
    d->connection = NULL;
}

void
esdm__database_close(esdm__database *d)
{
    if (d != NULL)
        disconnect(d);
}

static void
forget_rows(esdm__database *d)
{
    for (size_t i = 1; i <= d->count; i++)
        free(d->rows[i].own);
    d->count = 0;
}

void
esdm__database_free(esdm__database *d)
{
    if (d == NULL)
        return;
    forget_rows(d);
    disconnect(d);
    free(atomic_load(&d->failure));
    free(d->program);
    free(d->place);
    free(d);
}

bool
esdm__database_is_at(const esdm__database *d, const char *place)
{
    return strcmp(d->place, place) == 0;
}

/* ---- batches --------------------------------------------------------------------------------- */

static void
note_failure(esdm__database *d, const esdm_error *err)
{
    char *expected = NULL;
    char *copy = strdup(err->message);
    if (copy != NULL && !atomic_compare_exchange_strong(&d->failure, &expected, copy))
        free(copy);
}

/* Whether it worked. After a failure some time passes before the next attempt. */
static bool
write_batch(esdm__database *d, const atomic_bool *give_up)
{
    esdm_error err = {0};
    uint64_t now = esdm__monitor_now_ns();
    if (now < d->retry_ns)
        return false;
    esdm_status status = d->connection != NULL
                             ? ESDM_OK
                             : d->engine->open(d->place, false, give_up, &d->connection, &err);
    if (status == ESDM_OK) {
        size_t from = d->entered ? 1 : 0;
        status =
            d->engine->write(d->connection, d->rows + from, d->count + 1 - from, give_up, &err);
        d->entered = d->entered || status == ESDM_OK;
    }
    if (status == ESDM_OK) {
        d->pause_ns = FIRST_PAUSE;
        return true;
    }
    note_failure(d, &err);
    disconnect(d); /* opened afresh next time */
    d->retry_ns = esdm__monitor_now_ns() + d->pause_ns;
    d->pause_ns = d->pause_ns < LONGEST_PAUSE / 2 ? 2 * d->pause_ns : LONGEST_PAUSE;
    return false;
}

static bool
write_all(esdm__database *d, const atomic_bool *give_up)
{
    bool good = d->count == 0 || write_batch(d, give_up);
    if (!good)
        d->lost += d->count;
    forget_rows(d);
    return good;
}

void
esdm__database_flush(esdm__database *d, bool now, const atomic_bool *give_up)
{
    if (d->count > 0 && (now || esdm__monitor_now_ns() - d->first_ns >= FLUSH_NS))
        (void) write_all(d, give_up);
}

static esdm__row *
add_row(esdm__database *d, esdm__table table, const atomic_bool *give_up)
{
    if (d->count == ESDM__DATABASE_ROWS)
        (void) write_all(d, give_up);
    if (d->count == 0)
        d->first_ns = esdm__monitor_now_ns();
    esdm__row *row = &d->rows[++d->count];
    row->table = table;
    row->own = NULL;
    row->values[0] = integer((uint64_t) d->process);
    return row;
}

uint64_t
esdm__database_lost(esdm__database *d)
{
    uint64_t lost = d->lost;
    d->lost = 0;
    return lost;
}

const char *
esdm__database_failure(const esdm__database *d)
{
    return atomic_load(&d->failure);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* `,"handle":7` as an object of its own. NULL: none, or no memory. */
static char *
detail_object(const char *detail)
{
    char *object = NULL;
    if (detail == NULL || detail[0] != ',' || asprintf(&object, "{%s}", detail + 1) < 0)
        return NULL;
    return object;
}

bool
esdm__database_span(esdm__database *d, const esdm__object *object, const esdm__record *r,
                    const atomic_bool *give_up)
{
    esdm__row *row = add_row(d, ESDM__TABLE_SPAN, give_up);
    esdm__value *v = row->values;
    row->own = detail_object(r->detail);
    v[1] = text(esdm__span_name((esdm__span_kind) r->kind));
    v[2] = integer((uint64_t) r->thread);
    v[3] = integer(r->id);
    v[4] = integer(r->cause);
    v[5] = integer(r->start_ns);
    v[6] = integer(r->ns);
    v[7] = text(object->plain[0]);
    v[8] = text(object->plain[1]);
    v[9] = text(object->plain[2]);
    v[10] = integer(r->bytes);
    v[11] = integer(r->stored_bytes);
    v[12] = integer(r->pieces);
    v[13] = integer((uint64_t) r->status);
    v[14] = text(row->own);
    return true;
}

bool
esdm__database_dataset(esdm__database *d, const char *line, const atomic_bool *give_up)
{
    char *copy = strdup(line);
    if (copy == NULL)
        return false;
    copy[strcspn(copy, "\n")] = '\0';
    esdm__row *row = add_row(d, ESDM__TABLE_DATASET, give_up);
    row->own = copy;
    row->values[1] = text(copy);
    return true;
}

bool
esdm__database_sample(esdm__database *d, const double *numbers, uint64_t at_ns,
                      const atomic_bool *give_up)
{
    esdm__row *row = add_row(d, ESDM__TABLE_NODE, give_up);
    row->values[1] = integer(at_ns);
    for (unsigned i = 2; i < esdm__table_texts[ESDM__TABLE_NODE].count; i++)
        row->values[i] = measured(numbers[i - 2]);
    return true;
}

static void
add_counts(esdm__database *d, const esdm__object *object, esdm__span_kind kind,
           const atomic_bool *give_up)
{
    esdm__span_counts c;
    esdm__counts_read(&object->counts[kind], &c);
    if (c.count == 0)
        return;
    esdm__value *v = add_row(d, ESDM__TABLE_STATISTIC, give_up)->values;
    v[1] = text(esdm__span_name(kind));
    v[2] = text(object->plain[0]);
    v[3] = text(object->plain[1]);
    v[4] = text(object->plain[2]);
    v[5] = integer(c.count);
    v[6] = integer(c.failed);
    v[7] = integer(c.pieces);
    v[8] = integer(c.bytes);
    v[9] = integer(c.stored_bytes);
    v[10] = real((double) c.ns / 1e9);
    v[11] = real((double) c.longest_ns / 1e9);
    for (size_t i = 0; i < ESDM__SPAN_SIZES; i++)
        v[12 + i] = integer(c.sizes[i]);
}

/* @param list of the actions, which lives until the rows are written. */
static void
add_actions(esdm__database *d, const json_t *list, const atomic_bool *give_up)
{
    static const char *const texts[] = {"action", "container", "dataset"};
    static const char *const numbers[] = {"requests", "used", "bytes", "gained_ns", "cost_ns"};
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        esdm__value *v = add_row(d, ESDM__TABLE_ACTION, give_up)->values;
        for (size_t t = 0; t < 3; t++)
            v[1 + t] = text(json_string_value(json_object_get(one, texts[t])));
        for (size_t n = 0; n < 5; n++)
            v[4 + n] = integer((uint64_t) json_integer_value(json_object_get(one, numbers[n])));
        v[9] = text(json_string_value(json_object_get(one, "stopped")));
    }
}

static void
add_node_total(esdm__database *d, const esdm__node_sample *before, const atomic_bool *give_up)
{
    esdm__node_sample now;
    double totals[ESDM__NODE_TOTALS];
    esdm__node_read(&now);
    esdm__node_totals(before, &now, totals);
    esdm__value *v = add_row(d, ESDM__TABLE_NODE_TOTAL, give_up)->values;
    for (unsigned i = 0; i < ESDM__NODE_TOTALS; i++)
        v[1 + i] = measured(totals[i]);
}

static json_t *
actions_of(esdm__monitor *m)
{
    char *all = NULL;
    json_t *list = NULL;
    (void) pthread_mutex_lock(&m->lock);
    int n = asprintf(&all, "[%s]", m->actions != NULL ? m->actions : "");
    (void) pthread_mutex_unlock(&m->lock);
    if (n >= 0) {
        list = esdm__json_read(all);
        free(all);
    }
    return list;
}

static void
add_statistics(esdm__database *d, esdm__monitor *m, const json_t *actions,
               const atomic_bool *give_up)
{
    unsigned count = atomic_load(&m->objects.count);
    for (unsigned i = 1; i < count; i++) {
        for (int kind = 0; kind < ESDM__SPAN_KINDS; kind++)
            add_counts(d, esdm__objects_get(&m->objects, i), (esdm__span_kind) kind, give_up);
    }
    add_actions(d, actions, give_up);
    if ((m->options.modules & ESDM__MONITOR_NODE) != 0)
        add_node_total(d, &m->first, give_up);
}

bool
esdm__database_end(esdm__database *d, esdm__monitor *m, bool statistics, const atomic_bool *give_up)
{
    json_t *actions = statistics ? actions_of(m) : NULL;
    uint64_t lost_before = d->lost;
    d->retry_ns = 0; /* the last attempt is made at once */
    if (statistics)
        add_statistics(d, m, actions, give_up);
    esdm__value *v = add_row(d, ESDM__TABLE_END, give_up)->values;
    v[1] = integer(esdm__monitor_now_ns());
    v[2] = real((double) (esdm__monitor_now_ns() - m->who.monotonic_ns) / 1e9);
    v[3] = integer(esdm__monitor_dropped(m));
    v[4] = text(esdm__database_failure(d));
    bool good = write_all(d, give_up) && d->lost == lost_before;
    d->lost = lost_before; /* rows of the statistics are no spans */
    json_decref(actions);
    return good;
}
